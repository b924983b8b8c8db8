/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/program.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <criterion/criterion.h>
#include <quern/bulk.h>

#include <string.h>

/* Every call must leave what the calls for one entity at a time would have left. */

enum { MANY = 3000, HUGE_COUNT = 200000 };

static quern_world *world;
static quern_component number, point, frozen; /* uint64_t, vec3, a tag */
static tracked_counts counts;
static quern_component tracked_type;
static atomic_llong owned_live;
static quern_component owned_type;
static quern_entity entities[HUGE_COUNT];
static uint64_t numbers[HUGE_COUNT];

static void open_bulk(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    frozen = setup_tag(world, "frozen");
    counts = (tracked_counts){0};
    tracked_type = tracked_register(world, "tracked", &counts);
    owned_type = owned_register(world, "owned", &owned_live);
    for (uint32_t i = 0; i < HUGE_COUNT; i++)
        numbers[i] = i;
}

/* The end of each test: an assertion after it, in .fini, would not fail it. */
static void close_bulk(void)
{
    assert_valid(world);
    quern_world_destroy(world);
    cr_assert_eq(counts.broken_count, 0u, "hooks were called on what was no live value");
    cr_assert_eq(tracked_live_count(&counts), 0u, "values were not destroyed");
    cr_assert_eq(owned_live, 0, "values were not destroyed, or twice");
}

static void must_stay_valid(quern_result result)
{
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    assert_valid(world);
}

static uint64_t alive_count(void)
{
    return stats_of_world(world).entity_count;
}

static uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value);
    return *value;
}

static uint64_t payload_of(quern_entity entity)
{
    const tracked *value = quern_entity_get(world, entity, tracked_type);
    cr_assert_not_null(value);
    cr_assert(tracked_is_live(value), "the value was moved as bytes");
    return value->payload;
}

/* count entities numbered from `first`, with these components besides. */
static void create_numbered(uint32_t first, uint32_t count, const quern_component *others,
                            uint32_t other_count)
{
    quern_component components[8] = {number};
    const void *columns[8] = {&numbers[first]};
    for (uint32_t i = 0; i < other_count; i++)
        components[1 + i] = others[i];
    must_stay_valid(
        quern_entity_create_many(world, components, columns, 1 + other_count, count, &entities[first]));
}

static void assert_numbered(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        cr_assert_eq(number_of(entities[i]), i, "entity %u", i);
}

static quern_query *query_all(quern_component component)
{
    return setup_query(world, (quern_term[]){quern_term_read(component)}, 1);
}

static uint64_t count_all(quern_component component)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(component)}, 1);
    uint64_t count = quern_query_count(query);
    quern_query_destroy(query);
    return count;
}

TestSuite(create_many, .init = open_bulk);
TestSuite(create_filled, .init = open_bulk);
TestSuite(destroy_many, .init = open_bulk);
TestSuite(query_destroy, .init = open_bulk);
TestSuite(query_add, .init = open_bulk);
TestSuite(query_remove, .init = open_bulk);
TestSuite(bulk, .init = open_bulk);

/* ------------------------------------------------------------------------------------- create many */

Test(create_many, takes_columns_in_the_order_given)
{
    static vec3 points[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        points[i] = (vec3){(float)i, 1.0f, -(float)i};
    quern_component components[] = {point, frozen, number};
    const void *columns[] = {points, NULL, numbers};
    must_stay_valid(quern_entity_create_many(world, components, columns, 3, MANY, entities));
    for (uint32_t i = 0; i < MANY; i++) {
        const vec3 *value = quern_entity_get(world, entities[i], point);
        cr_assert_eq(memcmp(value, &points[i], sizeof points[i]), 0, "entity %u", i);
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert(quern_entity_has(world, entities[i], frozen));
    }
    close_bulk();
}

/* The rows of all matches of a query, one after the other. */
static uint32_t list_rows(quern_query *query, quern_entity *out_entities)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        memcpy(&out_entities[count], it.view.entities, it.view.count * sizeof *out_entities);
        count += it.view.count;
    }
    cr_assert_eq(it.result, QUERN_OK);
    return count;
}

Test(create_many, gives_handles_in_the_order_of_rows)
{
    static quern_entity rows[MANY];
    quern_query *query = query_all(number);
    create_numbered(0, MANY, NULL, 0);
    cr_assert_eq(list_rows(query, rows), (uint32_t)MANY);
    cr_assert_eq(memcmp(rows, entities, MANY * sizeof *rows), 0);
    quern_query_destroy(query);
    close_bulk();
}

Test(create_many, constructs_what_has_no_column)
{
    quern_component components[] = {number, tracked_type, point};
    const void *columns[] = {NULL, NULL, NULL};
    create_numbered(0, MANY, &tracked_type, 1);
    must_stay_valid(quern_entity_destroy_many(world, entities, MANY));
    must_stay_valid(quern_entity_create_many(world, components, NULL, 3, MANY / 2, entities));
    must_stay_valid(quern_entity_create_many(world, components, columns, 3, MANY / 2, &entities[MANY / 2]));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(number_of(entities[i]), 0u, "used memory shows");
        cr_assert_eq(payload_of(entities[i]), (uint64_t)TRACKED_DEFAULT);
    }
    close_bulk();
}

Test(create_many, needs_neither_components_nor_room_for_handles)
{
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 100, entities));
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 100, NULL));
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 100, NULL));
    cr_assert_eq(alive_count(), 300u);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
    close_bulk();
}

Test(create_many, of_nobody_does_nothing)
{
    quern_entity untouched = {0x1234};
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 0, &untouched));
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 0, NULL));
    cr_assert_eq(quern_world_hash(world), before);
    cr_assert_eq(untouched.bits, 0x1234u);
    close_bulk();
}

/* A chunk that is partly full gets the first of the new rows, then as many chunks follow as are needed. */
Test(create_many, continues_where_the_last_chunk_ends)
{
    quern_query *query = query_all(number);
    const uint32_t steps[] = {1, 5, 400, 1023, 1, 2000, 7};
    uint32_t total = 0;
    for (uint32_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        create_numbered(total, steps[s], NULL, 0);
        total += steps[s];
        assert_numbered(0, total);
        cr_assert_eq(quern_query_count(query), total);
    }
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    uint32_t capacity = it.view.count;
    cr_assert_eq(stats_of_world(world).chunk_count, (total + capacity - 1) / capacity);
    quern_query_destroy(query);
    close_bulk();
}

Test(create_many, fills_chunks_to_the_row)
{
    create_numbered(0, 1, NULL, 0);
    quern_archetype_stats stats;
    quern_query *query = query_all(number);
    must_stay_valid(
        quern_world_get_archetype_stats(world, stats_of_world(world).archetype_count - 1, &stats));
    create_numbered(1, stats.row_capacity - 1, NULL, 0);
    cr_assert_eq(stats_of_world(world).chunk_count, 1u);
    create_numbered(stats.row_capacity, stats.row_capacity, NULL, 0);
    cr_assert_eq(stats_of_world(world).chunk_count, 2u);
    create_numbered(2 * stats.row_capacity, 1, NULL, 0);
    cr_assert_eq(stats_of_world(world).chunk_count, 3u);
    assert_numbered(0, 2 * stats.row_capacity + 1);
    quern_query_destroy(query);
    close_bulk();
}

Test(create_many, uses_slots_that_are_free)
{
    create_numbered(0, MANY, NULL, 0);
    for (uint32_t i = 0; i < MANY; i += 3)
        must_stay_valid(quern_entity_destroy(world, entities[i]));
    static quern_entity again[MANY];
    must_stay_valid(
        quern_entity_create_many(world, &number, (const void *[]){numbers}, 1, MANY / 3, again));
    for (uint32_t i = 0; i < MANY / 3; i++) {
        cr_assert_lt(quern_entity_index(again[i]), (uint32_t)MANY, "a new slot, while others are free");
        cr_assert_eq(number_of(again[i]), i);
    }
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), i % 3 != 0);
    close_bulk();
}

Test(create_many, copies_values_with_their_hook)
{
    static tracked values[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        tracked_construct(&values[i], i, &counts);
    quern_component components[] = {frozen, tracked_type};
    const void *columns[] = {NULL, values};
    must_stay_valid(quern_entity_create_many(world, components, columns, 2, MANY, entities));
    cr_assert_eq(counts.copied_count, (uint64_t)MANY);
    cr_assert_eq(counts.constructed_count, (uint64_t)MANY, "what gets a copy needs no constructing");
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(payload_of(entities[i]), i);
        tracked_destroy(&values[i], &counts);
    }
    close_bulk();
}

Test(create_many, takes_over_what_values_own)
{
    static owned values[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        owned_construct(&values[i], i, &owned_live);
    must_stay_valid(
        quern_entity_create_many(world, &owned_type, (const void *[]){values}, 1, MANY, entities));
    for (uint32_t i = 0; i < MANY; i++) {
        const owned *value = quern_entity_get(world, entities[i], owned_type);
        cr_assert(owned_is_intact(value));
        cr_assert_eq(value->payload, i);
    }
    cr_assert_eq(owned_live, MANY);
    close_bulk();
}

Test(create_many, takes_values_that_lie_in_the_world)
{
    create_numbered(0, 100, NULL, 0);
    const void *columns[] = {quern_entity_get(world, entities[0], number)};
    must_stay_valid(quern_entity_create_many(world, &number, columns, 1, 100, &entities[100]));
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(number_of(entities[100 + i]), i);
    close_bulk();
}

Test(create_many, of_very_many)
{
    quern_component others[] = {point, frozen};
    create_numbered(0, HUGE_COUNT, others, 2);
    assert_numbered(0, HUGE_COUNT);
    cr_assert_eq(alive_count(), (uint64_t)HUGE_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, HUGE_COUNT));
    cr_assert_eq(alive_count(), 0u);
    cr_assert_eq(stats_of_world(world).chunk_count, 0u);
    create_numbered(0, HUGE_COUNT, &tracked_type, 1);
    assert_numbered(0, HUGE_COUNT);
    close_bulk();
}

Test(create_many, refuses_wrong_lists)
{
    quern_component twice[] = {number, point, number};
    quern_component unknown[] = {number, component_unregistered(number)};
    quern_component foreign[] = {number, component_of_other_world(number)};
    quern_component large[] = {setup_component(world, "large", 9000, 8),
                               setup_component(world, "larger", 9500, 4)};
    create_numbered(0, 10, NULL, 0);
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_create_many(NULL, &number, NULL, 1, 10, entities));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_create_many(world, NULL, NULL, 1, 10, entities));
    assert_refused(world, QUERN_ERROR_DUPLICATE_COMPONENT,
                   quern_entity_create_many(world, twice, NULL, 3, 10, entities));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_create_many(world, unknown, NULL, 2, 10, entities));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_create_many(world, foreign, NULL, 2, 10, entities));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_create_many(world, &(quern_component){0}, NULL, 1, 10, entities));
    assert_refused(world, QUERN_ERROR_COMPONENT_TOO_LARGE,
                   quern_entity_create_many(world, large, NULL, 2, 10, entities));
    assert_numbered(0, 10);
    close_bulk();
}

Test(create_many, refuses_more_than_there_may_be)
{
    static quern_component tags[QUERN_MAX_ENTITY_COMPONENTS + 1];
    for (uint32_t i = 0; i <= QUERN_MAX_ENTITY_COMPONENTS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                                            (char)('0' + i % 10), '\0'});
    assert_refused(
        world, QUERN_ERROR_TOO_MANY_COMPONENTS,
        quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS + 1, 10, entities));
    must_stay_valid(quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS, 10, entities));
    assert_refused(world, QUERN_ERROR_LIMIT,
                   quern_entity_create_many(world, &number, NULL, 1, UINT32_MAX, NULL));
    assert_refused(world, QUERN_ERROR_LIMIT,
                   quern_entity_create_many(world, NULL, NULL, 0, QUERN_MAX_ENTITIES, NULL));
    close_bulk();
}

Test(create_many, refused_values_stay_with_the_caller)
{
    owned value;
    owned_construct(&value, 5, &owned_live);
    quern_component twice[] = {owned_type, frozen, frozen};
    const void *columns[] = {&value, NULL, NULL};
    assert_refused(world, QUERN_ERROR_DUPLICATE_COMPONENT,
                   quern_entity_create_many(world, twice, columns, 3, 1, entities));
    cr_assert(owned_is_intact(&value));
    owned_destroy(&value, &owned_live);
    close_bulk();
}

/* ----------------------------------------------------------------------------------- create filled */

/* What the views of one call show together. */
typedef struct filling {
    uint32_t next; /* number of the first row of the next view */
    uint32_t view_count;
    quern_entity handles[HUGE_COUNT];
} filling;

static filling fill_log;

static void fill_numbers(quern_context *context, const quern_view *view)
{
    filling *log = quern_context_user_data(context);
    const uint32_t first = view->first;
    cr_assert_eq(first, log->next, "views out of order");
    cr_assert_gt(view->count, 0u);
    cr_assert_eq(view->term_count, 3u);
    vec3 *points = quern_view_write(view, 0);
    uint64_t *values = quern_view_write(view, 2);
    cr_assert_null(quern_view_write(view, 1), "a tag has no values");
    cr_assert(quern_view_has(view, 0) && quern_view_has(view, 1) && quern_view_has(view, 2));
    cr_assert_not(quern_view_has(view, 3));
    cr_assert_eq(quern_view_read(view, 2), values);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert(values[i] == 0 && points[i].x == 0.0f, "the memory was not zeroed");
        values[i] = first + i;
        points[i].x = (float)(first + i);
        log->handles[first + i] = view->entities[i];
    }
    log->next += view->count;
    log->view_count++;
}

/* Its components are in an order that is not the storage's. */
static void create_filled(uint32_t count)
{
    quern_component components[] = {point, frozen, number};
    fill_log.next = fill_log.view_count = 0;
    must_stay_valid(
        quern_entity_create_filled(world, components, 3, count, fill_numbers, &fill_log, entities));
    cr_assert_eq(fill_log.next, count);
    cr_assert_eq(memcmp(fill_log.handles, entities, count * sizeof *entities), 0, "handles differ");
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert_eq(((vec3 *)quern_entity_get(world, entities[i], point))->x, (float)i);
    }
}

Test(create_filled, shows_each_run_of_rows_once_and_in_order)
{
    create_filled(10);
    cr_assert_eq(fill_log.view_count, 1u);
    create_filled(MANY); /* behind the ten, in memory of several chunks */
    cr_assert_gt(fill_log.view_count, 3u);
    create_filled(1);
    cr_assert_eq(alive_count(), 10u + MANY + 1u);
    close_bulk();
}

Test(create_filled, shows_zero_bytes_in_used_memory)
{
    for (uint32_t round = 0; round < 3; round++) {
        create_filled(MANY);
        must_stay_valid(quern_entity_destroy_many(world, entities, MANY));
    }
    close_bulk();
}

Test(create_filled, of_very_many)
{
    create_filled(HUGE_COUNT);
    close_bulk();
}

static void fill_payloads(quern_context *context, const quern_view *view)
{
    uint32_t *calls = quern_context_user_data(context);
    tracked *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert(tracked_is_live(&values[i]));
        cr_assert_eq(values[i].payload, (uint64_t)TRACKED_DEFAULT);
        values[i].payload = view->first + i;
    }
    (*calls)++;
}

Test(create_filled, constructs_before_it_fills)
{
    uint32_t calls = 0;
    must_stay_valid(
        quern_entity_create_filled(world, &tracked_type, 1, MANY, fill_payloads, &calls, entities));
    cr_assert_eq(counts.constructed_count, (uint64_t)MANY);
    cr_assert_gt(calls, 1u);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(payload_of(entities[i]), i);
    close_bulk();
}

static void count_call(quern_context *context, const quern_view *view)
{
    (void)view;
    uint32_t *calls = quern_context_user_data(context);
    (*calls)++;
}

Test(create_filled, of_nobody_fills_nothing)
{
    uint32_t calls = 0;
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_create_filled(world, &number, 1, 0, count_call, &calls, NULL));
    cr_assert_eq(calls, 0u);
    cr_assert_eq(quern_world_hash(world), before);
    close_bulk();
}

Test(create_filled, without_components_shows_the_handles)
{
    uint32_t calls = 0;
    must_stay_valid(quern_entity_create_filled(world, NULL, 0, 100, count_call, &calls, entities));
    cr_assert_eq(calls, 1u);
    cr_assert(quern_entity_is_alive(world, entities[99]));
    close_bulk();
}

static void fill_wrongly(quern_context *context, const quern_view *view)
{
    (void)context;
    quern_entity created;
    cr_assert_eq(quern_entity_create(world, &created), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_entity_create_many(world, &number, NULL, 1, 1, NULL), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_entity_destroy(world, view->entities[0]), QUERN_ERROR_WORLD_LOCKED);
    refusal before = refusal_begin(NULL);
    cr_assert(is_scratch(quern_view_write(view, 1), view->count * sizeof(uint64_t)));
    cr_assert(refusal_has_message(&before), "a term that is not there gives a message");
    cr_assert(is_scratch(quern_view_read(view, 77), view->count * sizeof(uint64_t)));
}

Test(create_filled, refuses_to_change_the_world_meanwhile)
{
    captured_reports reports;
    capture_reports(&reports);
    must_stay_valid(quern_entity_create_filled(world, &number, 1, MANY, fill_wrongly, NULL, NULL));
    cr_assert_eq(alive_count(), (uint64_t)MANY);
    setup_entity(world);
    close_bulk();
}

Test(create_filled, refuses_wrong_lists)
{
    static quern_component tags[QUERN_MAX_TERMS + 1];
    for (uint32_t i = 0; i <= QUERN_MAX_TERMS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 10), (char)('0' + i % 10), '\0'});
    uint32_t calls = 0;
    quern_component twice[] = {number, number};
    assert_refused(
        world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_entity_create_filled(world, tags, QUERN_MAX_TERMS + 1, 5, count_call, &calls, NULL));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_create_filled(world, tags, 1, 5, NULL, NULL, NULL));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_create_filled(NULL, tags, 1, 5, count_call, &calls, NULL));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_entity_create_filled(world, NULL, 1, 5, count_call, &calls, NULL));
    assert_refused(world, QUERN_ERROR_DUPLICATE_COMPONENT,
                   quern_entity_create_filled(world, twice, 2, 5, count_call, &calls, NULL));
    assert_refused(world, QUERN_ERROR_LIMIT,
                   quern_entity_create_filled(world, tags, 1, UINT32_MAX, count_call, &calls, NULL));
    cr_assert_eq(calls, 0u);
    must_stay_valid(quern_entity_create_filled(world, tags, QUERN_MAX_TERMS, 5, count_call, &calls, NULL));
    cr_assert_eq(calls, 1u);
    close_bulk();
}

/* ------------------------------------------------------------------------------------ destroy many */

/* MANY entities of four archetypes, whose rows take turns. */
static void create_mixed(void)
{
    quern_component others[] = {point, tracked_type};
    for (uint32_t i = 0; i < MANY; i++) {
        quern_component components[] = {number, others[i / 2 % 2], frozen};
        const void *values[] = {&numbers[i], NULL, NULL};
        must_stay_valid(quern_entity_create_with(world, components, values, 2 + i % 2, &entities[i]));
    }
}

Test(destroy_many, leaves_the_others_alone)
{
    static quern_entity list[MANY];
    uint32_t count = 0;
    create_mixed();
    for (uint32_t i = MANY; i-- > 0;)
        if (i % 3 != 0) list[count++] = entities[i];
    must_stay_valid(quern_entity_destroy_many(world, list, count));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), i % 3 == 0);
        if (i % 3 == 0) cr_assert_eq(number_of(entities[i]), i);
    }
    cr_assert_eq(alive_count(), (uint64_t)MANY / 3);
    close_bulk();
}

Test(destroy_many, takes_an_entity_twice)
{
    create_numbered(0, MANY, &tracked_type, 1);
    quern_entity list[] = {entities[5], entities[7], entities[5], entities[5], entities[7], entities[0]};
    must_stay_valid(quern_entity_destroy_many(world, list, 6));
    cr_assert_eq(alive_count(), (uint64_t)MANY - 3);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)MANY - 3);
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 3, list));
    cr_assert_eq(alive_count(), (uint64_t)MANY);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_lt(quern_entity_index(list[i]), (uint32_t)MANY);
    close_bulk();
}

Test(destroy_many, of_nobody_does_nothing)
{
    create_numbered(0, 10, NULL, 0);
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_destroy_many(world, NULL, 0));
    must_stay_valid(quern_entity_destroy_many(world, entities, 0));
    cr_assert_eq(quern_world_hash(world), before);
    close_bulk();
}

static void check_bad_entry(quern_entity bad, quern_result expected)
{
    static const uint32_t places[] = {0, 5, 9};
    for (uint32_t p = 0; p < 3; p++) {
        quern_entity list[10];
        memcpy(list, entities, sizeof list);
        list[places[p]] = bad;
        assert_refused(world, expected, quern_entity_destroy_many(world, list, 10));
    }
    cr_assert_eq(alive_count(), (uint64_t)MANY);
}

Test(destroy_many, with_one_bad_handle_destroys_nobody)
{
    quern_entity gone = setup_entity(world);
    must_stay_valid(quern_entity_destroy(world, gone));
    create_numbered(0, MANY, &tracked_type, 1);
    check_bad_entry(quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
    check_bad_entry(gone, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry((quern_entity){entities[0].bits | 0xFFFFFF00u}, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry(entity_of_other_world(entities[3]), QUERN_ERROR_FOREIGN_ENTITY);
    check_bad_entry(entity_provisional(3), QUERN_ERROR_PROVISIONAL_ENTITY);
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_entity_destroy_many(world, NULL, 1));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_entity_destroy_many(NULL, entities, 1));
    cr_assert_eq(counts.destroyed_count, 0u);
    close_bulk();
}

/* A random order of the first MANY entities, the same at every call. */
static void shuffled(uint32_t order[MANY])
{
    random_source random = {.state = 5};
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t j = random_below(&random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static uint64_t hash_after_destroying(bool at_once)
{
    static uint32_t order[MANY];
    static quern_entity list[MANY];
    open_bulk();
    create_mixed();
    shuffled(order);
    for (uint32_t i = 0; i < MANY / 2; i++) {
        list[i] = entities[order[i]];
        if (!at_once) must_stay_valid(quern_entity_destroy(world, list[i]));
    }
    if (at_once) must_stay_valid(quern_entity_destroy_many(world, list, MANY / 2));
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, MANY / 4, NULL));
    uint64_t hash = quern_world_hash(world);
    close_bulk();
    return hash;
}

Test(destroy_many, goes_through_the_list_in_order)
{
    close_bulk();
    cr_assert_eq(hash_after_destroying(true), hash_after_destroying(false));
}

/* ------------------------------------------------------------------------------------ query destroy */

Test(query_destroy, destroys_all_matches_and_nobody_else)
{
    create_mixed();
    quern_term terms[] = {quern_term_with(tracked_type), quern_term_without(frozen)};
    quern_query *query = setup_query(world, terms, 2);
    uint64_t expected = quern_query_count(query), count = 77;
    cr_assert_eq(expected, (uint64_t)MANY / 4);
    must_stay_valid(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, expected);
    cr_assert_eq(quern_query_count(query), 0u);
    for (uint32_t i = 0; i < MANY; i++) {
        bool matched = i % 4 == 2;
        cr_assert_eq(quern_entity_is_alive(world, entities[i]), !matched, "entity %u", i);
        if (!matched) cr_assert_eq(number_of(entities[i]), i);
    }
    must_stay_valid(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, 0u);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_destroy, reaches_every_archetype)
{
    create_mixed();
    quern_query *query = query_all(number), *left = query_all(tracked_type);
    must_stay_valid(quern_entity_destroy_matching(query, NULL));
    cr_assert_eq(alive_count(), 0u);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(quern_query_count(left), 0u);
    create_mixed();
    cr_assert_eq(quern_query_count(query), (uint64_t)MANY);
    assert_numbered(0, MANY);
    quern_query_destroy(query);
    quern_query_destroy(left);
    close_bulk();
}

Test(query_destroy, handles_are_stale_afterwards)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_destroy_matching(query, NULL));
    static quern_entity again[MANY];
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, MANY, again));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_not(quern_entity_is_alive(world, entities[i]));
        cr_assert_lt(quern_entity_index(again[i]), (uint32_t)MANY, "slots are reused");
    }
    quern_query_destroy(query);
    close_bulk();
}

/* -------------------------------------------------------------------------------------- query add */

Test(query_add, gives_it_to_those_that_lack_it)
{
    create_mixed();
    quern_query *query = query_all(number);
    vec3 value = {1.0f, 2.0f, 3.0f};
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, point, &value, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    for (uint32_t i = 0; i < MANY; i++) {
        const vec3 *found = quern_entity_get(world, entities[i], point);
        cr_assert_not_null(found, "entity %u", i);
        cr_assert_eq(found->y, i / 2 % 2 == 0 ? 0.0f : 2.0f, "entity %u", i);
        cr_assert_eq(quern_entity_has(world, entities[i], tracked_type), i / 2 % 2 == 1);
        cr_assert_eq(quern_entity_has(world, entities[i], frozen), i % 2 == 1);
    }
    assert_numbered(0, MANY);
    must_stay_valid(quern_entity_add_matching(query, point, &value, &count));
    cr_assert_eq(count, 0u);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, constructs_without_a_value)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_add_matching(query, point, &(vec3){1.0f, 1.0f, 1.0f}, NULL));
    must_stay_valid(quern_entity_remove_matching(query, point, NULL));
    must_stay_valid(quern_entity_add_matching(query, point, NULL, NULL));
    must_stay_valid(quern_entity_add_matching(query, tracked_type, NULL, NULL));
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(((vec3 *)quern_entity_get(world, entities[i], point))->x, 0.0f, "used memory shows");
        cr_assert_eq(payload_of(entities[i]), (uint64_t)TRACKED_DEFAULT);
    }
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, takes_tags)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, frozen, NULL, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    cr_assert_eq(count_all(frozen), (uint64_t)MANY);
    assert_numbered(0, MANY);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, moves_what_is_there_and_copies_what_is_new)
{
    create_numbered(0, MANY, &tracked_type, 1);
    quern_component second = tracked_register(world, "second", &counts);
    tracked value;
    tracked_construct(&value, 9, &counts);
    tracked_counts before = counts;
    quern_query *query = query_all(number);
    must_stay_valid(quern_entity_add_matching(query, second, &value, NULL));
    cr_assert_eq(counts.copied_count - before.copied_count, (uint64_t)MANY);
    cr_assert_eq(counts.moved_count - before.moved_count, (uint64_t)MANY);
    cr_assert_eq(counts.destroyed_count, before.destroyed_count);
    for (uint32_t i = 0; i < MANY; i++) {
        const tracked *found = quern_entity_get(world, entities[i], second);
        cr_assert(tracked_is_live(found) && found->payload == 9);
        cr_assert_eq(payload_of(entities[i]), (uint64_t)TRACKED_DEFAULT);
    }
    tracked_destroy(&value, &counts);
    quern_query_destroy(query);
    close_bulk();
}

/* Rows for the new archetype come to stand behind those that are there, from the middle of a chunk on. */
Test(query_add, appends_to_rows_that_are_there)
{
    quern_component others[] = {frozen};
    create_numbered(0, 700, others, 1);
    create_numbered(700, MANY - 700, NULL, 0);
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, frozen, NULL, &count));
    cr_assert_eq(count, MANY - 700u);
    assert_numbered(0, MANY);
    static quern_entity rows[MANY];
    cr_assert_eq(list_rows(query, rows), (uint32_t)MANY);
    cr_assert_eq(memcmp(rows, entities, sizeof rows), 0, "rows changed their order");
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, takes_a_value_that_lies_in_the_world)
{
    create_mixed();
    quern_component armour = setup_component(world, "armour", 8, 8);
    for (uint32_t chosen = 0; chosen < 4; chosen++) {
        quern_query *query = query_all(number);
        must_stay_valid(quern_entity_add_matching(query, armour,
                                                  quern_entity_get(world, entities[chosen], number), NULL));
        for (uint32_t i = 0; i < MANY; i++)
            cr_assert_eq(*(uint64_t *)quern_entity_get(world, entities[i], armour), chosen);
        must_stay_valid(quern_entity_remove_matching(query, armour, NULL));
        quern_query_destroy(query);
    }
    close_bulk();
}

/* The value is moved with its entity, maybe before it has been copied for the last time. */
Test(query_add, takes_a_value_with_hooks_that_lies_in_the_world)
{
    create_mixed();
    quern_component second = tracked_register(world, "second", &counts);
    quern_query *query = query_all(number);
    tracked *value = quern_entity_get(world, entities[2], tracked_type);
    value->payload = 1234;
    must_stay_valid(quern_entity_add_matching(query, second, value, NULL));
    cr_assert_eq(counts.broken_count, 0u, "a value was copied after it had been moved away");
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(((tracked *)quern_entity_get(world, entities[i], second))->payload, 1234u, "entity %u",
                     i);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, hands_no_value_over_to_many)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    owned value;
    owned_construct(&value, 5, &owned_live);
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_entity_add_matching(query, owned_type, &value, NULL));
    owned_destroy(&value, &owned_live);
    must_stay_valid(quern_entity_add_matching(query, owned_type, NULL, NULL));
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_null(((owned *)quern_entity_get(world, entities[i], owned_type))->box);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, that_one_match_cannot_take_changes_no_match)
{
    quern_component large = setup_component(world, "large", 9000, 8);
    quern_component larger = setup_component(world, "larger", 9500, 4);
    create_numbered(0, 100, NULL, 0);
    create_numbered(100, 20, &tracked_type, 1);
    create_numbered(120, 20, &large, 1);
    create_numbered(140, 20, &frozen, 1);
    quern_query *query = query_all(number);
    uint64_t count = 77;
    assert_refused(world, QUERN_ERROR_COMPONENT_TOO_LARGE,
                   quern_entity_add_matching(query, larger, NULL, &count));
    cr_assert_eq(count, 77u);
    cr_assert_eq(count_all(larger), 0u);
    must_stay_valid(quern_entity_add_matching(query, point, NULL, &count));
    cr_assert_eq(count, 160u);
    assert_numbered(0, 160);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_add, of_the_251st_component_is_refused)
{
    static quern_component tags[QUERN_MAX_ENTITY_COMPONENTS];
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                                            (char)('0' + i % 10), '\0'});
    must_stay_valid(quern_entity_create_many(world, tags, NULL, 5, 100, entities));
    must_stay_valid(
        quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS, 100, entities));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(tags[0])}, 1);
    assert_refused(world, QUERN_ERROR_TOO_MANY_COMPONENTS,
                   quern_entity_add_matching(query, number, NULL, NULL));
    cr_assert_eq(count_all(number), 0u);
    quern_query_destroy(query);
    close_bulk();
}

/* ----------------------------------------------------------------------------------- query remove */

Test(query_remove, takes_it_from_those_that_have_it)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_remove_matching(query, tracked_type, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    must_stay_valid(quern_entity_remove_matching(query, frozen, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    must_stay_valid(quern_entity_remove_matching(query, frozen, &count));
    cr_assert_eq(count, 0u);
    assert_numbered(0, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(quern_entity_has(world, entities[i], point), i / 2 % 2 == 0);
    quern_query_destroy(query);
    close_bulk();
}

/* The query has no match left afterwards. */
Test(query_remove, takes_what_the_query_asks_for)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_remove_matching(query, number, &count));
    cr_assert_eq(count, (uint64_t)MANY);
    cr_assert_eq(quern_query_count(query), 0u);
    cr_assert_eq(alive_count(), (uint64_t)MANY);
    quern_query_destroy(query);
    close_bulk();
}

Test(query_remove, can_leave_entities_with_nothing)
{
    must_stay_valid(quern_entity_create_many(world, &tracked_type, NULL, 1, MANY, entities));
    quern_query *query = query_all(tracked_type);
    must_stay_valid(quern_entity_remove_matching(query, tracked_type, NULL));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
    quern_query_destroy(query);
    close_bulk();
}

/* ------------------------------------------------------------------------------------- for each call */

Test(bulk, calls_without_a_query_or_with_a_wrong_component_are_refused)
{
    create_numbered(0, 10, NULL, 0);
    quern_query *query = query_all(number);
    quern_component unknown = component_unregistered(number), foreign = component_of_other_world(number);
    uint64_t count;
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_entity_destroy_matching(NULL, &count));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_entity_add_matching(NULL, point, NULL, &count));
    assert_refused(world, QUERN_ERROR_NULL_ARGUMENT, quern_entity_remove_matching(NULL, point, &count));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_add_matching(query, unknown, NULL, NULL));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_add_matching(query, foreign, NULL, NULL));
    assert_refused(world, QUERN_ERROR_UNKNOWN_COMPONENT,
                   quern_entity_remove_matching(query, (quern_component){0}, NULL));
    quern_query_destroy(query);
    close_bulk();
}

Test(bulk, calls_are_refused_while_a_frame_runs)
{
    create_numbered(0, 10, NULL, 0);
    quern_query *query = query_all(number);
    uint32_t calls = 0;
    quern_result expected = QUERN_ERROR_WORLD_LOCKED;
    world->locked = true;
    assert_refused(world, expected, quern_entity_create_many(world, &number, NULL, 1, 5, NULL));
    assert_refused(world, expected, quern_entity_create_many(world, NULL, NULL, 0, 0, NULL));
    assert_refused(world, expected,
                   quern_entity_create_filled(world, &number, 1, 5, count_call, &calls, NULL));
    assert_refused(world, expected, quern_entity_destroy_many(world, entities, 10));
    assert_refused(world, expected, quern_entity_destroy_matching(query, NULL));
    assert_refused(world, expected, quern_entity_add_matching(query, point, NULL, NULL));
    assert_refused(world, expected, quern_entity_remove_matching(query, number, NULL));
    world->locked = false;
    cr_assert_eq(calls, 0u);
    quern_query_destroy(query);
    close_bulk();
}

/* Each ends an iteration that has begun. */
static void change(quern_query *query, uint32_t kind)
{
    uint32_t calls = 0;
    switch (kind) {
    case 0:
        must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 5, NULL));
        break;
    case 1:
        must_stay_valid(quern_entity_create_filled(world, &number, 1, 5, count_call, &calls, NULL));
        break;
    case 2:
        must_stay_valid(quern_entity_destroy_many(world, entities, 5));
        break;
    case 3:
        must_stay_valid(quern_entity_add_matching(query, point, NULL, NULL));
        break;
    case 4:
        must_stay_valid(quern_entity_remove_matching(query, point, NULL));
        break;
    default:
        must_stay_valid(quern_entity_destroy_matching(query, NULL));
        break;
    }
}

Test(bulk, calls_end_an_iteration)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    for (uint32_t kind = 0; kind < 6; kind++) {
        quern_query_iterator it = quern_query_iterate(query);
        cr_assert(quern_query_next(&it));
        change(query, kind);
        cr_assert_not(quern_query_next(&it), "kind %u", kind);
        cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED, "kind %u", kind);
    }
    quern_query_destroy(query);
    close_bulk();
}

/* -------------------------------------------------------------------------------------- memory lacks */

enum { SCRIPT_COUNT = 5000, LARGE_COUNT = 300 /* of two rows a chunk: more than a slab */ };

static quern_world_def script_def;
static quern_query *script_query;
static quern_component script_large;
static tracked script_values[SCRIPT_COUNT];

static quern_result script_create(void)
{
    quern_component components[] = {number, tracked_type};
    const void *columns[] = {numbers, script_values};
    return quern_entity_create_many(world, components, columns, 2, SCRIPT_COUNT, entities);
}

static quern_result script_create_large(void)
{
    quern_component components[] = {number, script_large};
    return quern_entity_create_many(world, components, NULL, 2, LARGE_COUNT, &entities[SCRIPT_COUNT]);
}

static quern_result script_fill(void)
{
    uint32_t calls = 0;
    quern_component components[] = {point, number};
    return quern_entity_create_filled(world, components, 2, SCRIPT_COUNT, count_call, &calls, NULL);
}

static quern_result script_add(void)
{
    return quern_entity_add_matching(script_query, point, NULL, NULL);
}

static quern_result script_add_tracked(void)
{
    return quern_entity_add_matching(script_query, tracked_type, &script_values[7], NULL);
}

static quern_result script_remove(void)
{
    return quern_entity_remove_matching(script_query, number, NULL);
}

static quern_result script_destroy(void)
{
    return quern_entity_destroy_many(world, entities, SCRIPT_COUNT);
}

static quern_result script_destroy_all(void)
{
    return quern_entity_destroy_matching(script_query, NULL);
}

static quern_result (*const script[])(void) = {
    script_create,  script_create_large, script_fill,        script_add,  script_add_tracked,
    script_destroy, script_create,       script_destroy_all, script_fill, script_remove};

enum { STEP_COUNT = sizeof script / sizeof script[0] };

static uint64_t script_hashes[STEP_COUNT];

/* Makes one call again and again until memory suffices; each refusal must have changed nothing. */
static void run_step(uint32_t step)
{
    for (;;) {
        uint64_t live_count = tracked_live_count(&counts), before = quern_world_hash(world);
        quern_result result = script[step]();
        assert_valid(world);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "step %u: %s", step, quern_error_message());
        cr_assert_eq(quern_world_hash(world), before, "step %u changed the world", step);
        cr_assert_eq(tracked_live_count(&counts), live_count, "step %u left values behind", step);
    }
}

static void open_script(failing_allocator *allocator)
{
    script_def = (quern_world_def){0};
    script_def.allocator = failing_allocator_interface(allocator);
    cr_assert_eq(quern_world_create(&script_def, &world), QUERN_OK);
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    tracked_type = tracked_register(world, "tracked", &counts);
    script_large = setup_component(world, "large", 7000, 8);
    quern_term terms[] = {quern_term_any(number, QUERN_READ), quern_term_any(point, QUERN_READ)};
    script_query = setup_query(world, terms, 2);
    for (uint32_t i = 0; i < SCRIPT_COUNT; i++)
        tracked_construct(&script_values[i], i, &counts);
}

static void close_script(failing_allocator *allocator)
{
    quern_query_destroy(script_query);
    for (uint32_t i = 0; i < SCRIPT_COUNT; i++)
        tracked_destroy(&script_values[i], &counts);
    close_bulk();
    failing_allocator_close(allocator);
}

/* The script with its request number `failing` refused, 0 for none; whether it came to that. */
static bool run_script(uint64_t failing)
{
    failing_allocator *allocator = failing_allocator_create();
    open_script(allocator);
    if (failing > 0)
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + failing);
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        run_step(step);
        if (failing == 0) script_hashes[step] = quern_world_hash(world);
        cr_assert_eq(quern_world_hash(world), script_hashes[step], "request %llu, step %u",
                     (unsigned long long)failing, step);
    }
    bool has_failed = failing_allocator_failed_count(allocator) > 0;
    close_script(allocator);
    return has_failed;
}

Test(bulk, each_request_for_memory_may_fail, .timeout = 300)
{
    close_bulk();
    run_script(0);
    uint64_t failing = 1;
    while (run_script(failing))
        failing++;
    cr_assert_gt(failing, 20u, "the script asks for memory %llu times only", (unsigned long long)failing);
}

Test(bulk, without_any_memory_the_world_stays_as_it_was, .timeout = 300)
{
    close_bulk();
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        failing_allocator *allocator = failing_allocator_create();
        open_script(allocator);
        for (uint32_t i = 0; i < step; i++)
            run_step(i);
        for (uint64_t spared = 0;; spared++) {
            uint64_t before = quern_world_hash(world), live_count = tracked_live_count(&counts);
            failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1 + spared);
            if (script[step]() == QUERN_OK) break;
            assert_valid(world);
            cr_assert_eq(quern_world_hash(world), before, "step %u changed the world", step);
            cr_assert_eq(tracked_live_count(&counts), live_count, "step %u left values behind", step);
        }
        failing_allocator_heal(allocator);
        close_script(allocator);
    }
}

/* ---------------------------------------------------------------------------------- random programs */

enum { BATCH = 400, SEED_COUNT = 6, ROUND_COUNT = 250, COLUMN_BYTES = BATCH * MODEL_VALUE_BYTES };

static program run;

/* count values of a type, one behind the other, and what each was made from. */
typedef struct column {
    _Alignas(64) unsigned char bytes[COLUMN_BYTES];
    uint32_t seeds[BATCH];
    uint32_t type;
    const void *pointer; /* to the bytes; NULL when the values are to be constructed */
} column;

static uint32_t pick_seed(void)
{
    return 1 + random_below(&run.random, 1000000);
}

/* A value that stands where it was made, since it may know its address. */
static void value_make_at(uint32_t type, uint32_t seed, void *target)
{
    static model_value value;
    model_value_make(&run.model, type, seed, &value);
    if (model_types[type].kind == MODEL_TRACKED) {
        tracked_construct(target, ((tracked *)(void *)value.bytes)->payload, &run.model.tracked);
        model_value_drop(&run.model, &value, true);
    } else {
        memcpy(target, value.bytes, model_types[type].size_bytes);
    }
}

static void column_make(column *values, uint32_t type, uint32_t count)
{
    uint32_t size_bytes = model_types[type].size_bytes;
    bool constructs = size_bytes == 0 || random_chance(&run.random, 25);
    values->type = type;
    values->pointer = constructs ? NULL : values->bytes;
    for (uint32_t i = 0; i < count; i++) {
        values->seeds[i] = constructs ? MODEL_CONSTRUCTED : pick_seed();
        if (!constructs) value_make_at(type, values->seeds[i], values->bytes + (size_t)i * size_bytes);
    }
}

/* Of owned values the world has taken over what they own. */
static void column_drop(column *values, uint32_t count)
{
    if (values->pointer == NULL || model_types[values->type].kind != MODEL_TRACKED) return;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)(void *)values->bytes + i, &run.model.tracked);
}

/* Whether the call is to be made again, since memory was lacking; then it must have changed nothing. */
static bool must_retry(quern_result result, uint64_t hash_before)
{
    if (result != QUERN_ERROR_OUT_OF_MEMORY || run.allocator == NULL) {
        cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
        return false;
    }
    run.out_of_memory_count++;
    cr_assert_eq(quern_world_hash(run.model.world), hash_before, "a call without memory changed the world");
    assert_valid(run.model.world);
    return true;
}

#define RETRIED(call)                                              \
    do {                                                           \
        uint64_t retried_hash = quern_world_hash(run.model.world); \
        while (must_retry((call), retried_hash)) {                 \
        }                                                          \
    } while (0)

static void step_create_many(void)
{
    static column columns[4];
    static quern_entity handles[BATCH];
    quern_component components[4];
    const void *pointers[4];
    uint32_t type_count = random_below(&run.random, 5), count = random_below(&run.random, BATCH);
    uint32_t first = random_below(&run.random, MODEL_TYPE_COUNT);
    for (uint32_t c = 0; c < type_count; c++) {
        column_make(&columns[c], (first + c * 5) % MODEL_TYPE_COUNT, count);
        components[c] = run.model.components[columns[c].type];
        pointers[c] = columns[c].pointer;
    }
    RETRIED(quern_entity_create_many(run.model.world, components, pointers, type_count, count, handles));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entity = model_create(&run.model, handles[i]);
        for (uint32_t c = 0; c < type_count; c++)
            model_set(&run.model, entity, columns[c].type, columns[c].seeds[i]);
    }
    for (uint32_t c = 0; c < type_count; c++)
        column_drop(&columns[c], count);
}

/* The values stay as they were constructed. */
static void step_create_filled(void)
{
    static quern_entity handles[BATCH];
    uint32_t count = random_below(&run.random, BATCH), calls = 0;
    uint32_t first = random_below(&run.random, MODEL_TYPE_COUNT);
    uint32_t types[] = {first, (first + 5) % MODEL_TYPE_COUNT};
    quern_component components[] = {run.model.components[types[0]], run.model.components[types[1]]};
    RETRIED(quern_entity_create_filled(run.model.world, components, 2, count, count_call, &calls, handles));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entity = model_create(&run.model, handles[i]);
        for (uint32_t c = 0; c < 2; c++)
            model_set(&run.model, entity, types[c], MODEL_CONSTRUCTED);
    }
}

static void step_destroy_many(void)
{
    static uint32_t chosen[BATCH];
    static quern_entity handles[BATCH];
    uint32_t count = 0, tries = random_below(&run.random, BATCH);
    for (uint32_t i = 0; i < tries && run.model.entity_count > 0; i++) {
        uint32_t entity = random_below(&run.random, run.model.entity_count);
        if (!run.model.entities[entity].is_alive) continue;
        chosen[count] = entity;
        handles[count++] = run.model.entities[entity].handle;
    }
    RETRIED(quern_entity_destroy_many(run.model.world, handles, count));
    for (uint32_t i = 0; i < count; i++)
        if (run.model.entities[chosen[i]].is_alive) model_destroy(&run.model, chosen[i]);
}

typedef struct random_terms {
    model_term terms[3];
    uint32_t count;
} random_terms;

static random_terms pick_terms(void)
{
    random_terms picked = {.count = 1 + random_below(&run.random, 3)};
    uint32_t first = random_below(&run.random, MODEL_TYPE_COUNT);
    for (uint32_t i = 0; i < picked.count; i++)
        picked.terms[i] =
            (model_term){.type = (first + i) % MODEL_TYPE_COUNT,
                         .match = (quern_match)(QUERN_MATCH_ALL + random_below(&run.random, 4)),
                         .either = true};
    return picked;
}

/* Queries are made without failures: they are what the calls need, not what is looked at here. */
static quern_query *open_query(const random_terms *picked)
{
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, true);
    quern_query *query = model_query(&run.model, picked->terms, picked->count);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, false);
    return query;
}

static void step_query_destroy(void)
{
    random_terms picked = pick_terms();
    uint32_t expected = model_count(&run.model, picked.terms, picked.count);
    if (expected > run.model.alive_count / 2) return;
    quern_query *query = open_query(&picked);
    uint64_t count = 0;
    RETRIED(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, expected);
    for (uint32_t i = 0; i < run.model.entity_count; i++)
        if (model_matches(&run.model.entities[i], picked.terms, picked.count)) model_destroy(&run.model, i);
    quern_query_destroy(query);
}

static void step_query_add(void)
{
    static model_value value;
    random_terms picked = pick_terms();
    uint32_t type = random_below(&run.random, MODEL_TYPE_COUNT), expected = 0;
    bool constructs = model_types[type].size_bytes == 0 || model_types[type].kind == MODEL_OWNED ||
                      random_chance(&run.random, 25);
    uint32_t seed = constructs ? MODEL_CONSTRUCTED : pick_seed();
    if (!constructs) model_value_make(&run.model, type, seed, &value);
    quern_query *query = open_query(&picked);
    uint64_t count = 0;
    RETRIED(quern_entity_add_matching(query, run.model.components[type], constructs ? NULL : value.bytes,
                                      &count));
    for (uint32_t i = 0; i < run.model.entity_count; i++) {
        model_entity *entity = &run.model.entities[i];
        if (entity->has[type] || !model_matches(entity, picked.terms, picked.count)) continue;
        model_set(&run.model, i, type, seed);
        expected++;
    }
    cr_assert_eq(count, expected);
    if (!constructs) model_value_drop(&run.model, &value, true);
    quern_query_destroy(query);
}

static void step_query_remove(void)
{
    random_terms picked = pick_terms();
    uint32_t type = random_below(&run.random, MODEL_TYPE_COUNT), expected = 0;
    quern_query *query = open_query(&picked);
    uint64_t count = 0;
    RETRIED(quern_entity_remove_matching(query, run.model.components[type], &count));
    for (uint32_t i = 0; i < run.model.entity_count; i++) {
        const model_entity *entity = &run.model.entities[i];
        if (!entity->has[type] || !model_matches(entity, picked.terms, picked.count)) continue;
        model_remove(&run.model, i, type);
        expected++;
    }
    cr_assert_eq(count, expected);
    quern_query_destroy(query);
}

static void step_tidy(void)
{
    if (random_chance(&run.random, 50))
        RETRIED(quern_world_trim(run.model.world));
    else
        RETRIED(quern_world_remove_empty_archetypes(run.model.world, NULL));
}

static void bulk_step(void)
{
    static void (*const steps[])(void) = {step_create_many,   step_create_filled, step_destroy_many,
                                          step_query_destroy, step_query_add,     step_query_remove,
                                          step_destroy_many,  step_tidy};
    steps[random_below(&run.random, sizeof steps / sizeof steps[0])]();
    assert_valid(run.model.world);
}

static void run_program(uint64_t seed, failing_allocator *allocator)
{
    program_init(&run, seed, allocator, allocator != NULL ? 40 : 0);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        bulk_step();
        for (uint32_t i = 0; i < 10; i++)
            program_step(&run);
        if (round % 25 == 0) program_check(&run);
    }
    program_release(&run);
}

Test(bulk, calls_among_others_leave_what_the_model_says, .timeout = 300)
{
    close_bulk();
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_program(seed, NULL);
}

Test(bulk, calls_that_lack_memory_now_and_then_leave_it_too, .timeout = 300)
{
    close_bulk();
    for (uint64_t seed = 100; seed < 102; seed++) {
        failing_allocator *allocator = failing_allocator_create();
        run_program(seed, allocator);
        cr_assert_gt(run.out_of_memory_count, 20u, "memory hardly ever ran out");
        failing_allocator_close(allocator);
    }
}
