/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/entities/bulk_scene.h"

/* Creating many entities by one call. */

TestSuite(create_many, .init = open_bulk, .fini = close_bulk);
TestSuite(create_filled, .init = open_bulk, .fini = close_bulk);

/* ------------------------------------------------------------------------------------- create many */

Test(create_many, columns_have_the_order_of_components)
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
}

Test(create_many, handles_have_the_order_of_rows)
{
    static quern_entity rows[MANY];
    quern_query *query = query_all(number);
    create_numbered(0, MANY, NULL, 0);
    cr_assert_eq(list_rows(query, rows), (uint32_t)MANY);
    cr_assert_eq(memcmp(rows, entities, MANY * sizeof *rows), 0);
    quern_query_destroy(query);
}

Test(create_many, null_column_constructs)
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
}

Test(create_many, components_and_output_are_optional)
{
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 100, entities));
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 100, NULL));
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 100, NULL));
    cr_assert_eq(alive_count(), 300u);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
}

Test(create_many, count_zero_does_nothing)
{
    quern_entity untouched = {0x1234};
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_create_many(world, &number, NULL, 1, 0, &untouched));
    must_stay_valid(quern_entity_create_many(world, NULL, NULL, 0, 0, NULL));
    cr_assert_eq(quern_world_hash(world), before);
    cr_assert_eq(untouched.bits, 0x1234u);
}

/* A partly full chunk gets the first new rows; new chunks get the rest. */
Test(create_many, fills_the_last_chunk_first)
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
}

Test(create_many, fills_chunks_completely)
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
}

Test(create_many, reuses_free_slots)
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
}

Test(create_many, copies_values_by_hook)
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
}

Test(create_many, owned_values_become_property_of_the_world)
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
}

Test(create_many, values_may_be_in_the_world)
{
    create_numbered(0, 100, NULL, 0);
    const void *columns[] = {quern_entity_get(world, entities[0], number)};
    must_stay_valid(quern_entity_create_many(world, &number, columns, 1, 100, &entities[100]));
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(number_of(entities[100 + i]), i);
}

Test(create_many, creates_very_many)
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
}

Test(create_many, refuses_wrong_lists)
{
    quern_component twice[] = {number, point, number};
    quern_component unknown[] = {number, component_unregistered(number)};
    quern_component foreign[] = {number, component_of_other_world(number)};
    quern_component large[] = {setup_component(world, "large", 9000, 8),
                               setup_component(world, "larger", 9500, 4)};
    create_numbered(0, 10, NULL, 0);
    must_refuse(NULL_ARGUMENT, world, quern_entity_create_many(NULL, &number, NULL, 1, 10, entities));
    must_refuse(NULL_ARGUMENT, world, quern_entity_create_many(world, NULL, NULL, 1, 10, entities));
    must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_many(world, twice, NULL, 3, 10, entities));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_create_many(world, unknown, NULL, 2, 10, entities));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_create_many(world, foreign, NULL, 2, 10, entities));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_entity_create_many(world, &(quern_component){0}, NULL, 1, 10, entities));
    must_refuse(COMPONENT_TOO_LARGE, world, quern_entity_create_many(world, large, NULL, 2, 10, entities));
    assert_numbered(0, 10);
}

Test(create_many, refuses_more_than_the_entity_limit)
{
    static quern_component tags[QUERN_MAX_ENTITY_COMPONENTS + 1];
    for (uint32_t i = 0; i <= QUERN_MAX_ENTITY_COMPONENTS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                                            (char)('0' + i % 10), '\0'});
    assert_refused(
        world, QUERN_ERROR_TOO_MANY_COMPONENTS,
        quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS + 1, 10, entities));
    must_stay_valid(quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS, 10, entities));
    must_refuse(LIMIT, world, quern_entity_create_many(world, &number, NULL, 1, UINT32_MAX, NULL));
    must_refuse(LIMIT, world, quern_entity_create_many(world, NULL, NULL, 0, QUERN_MAX_ENTITIES, NULL));
}

Test(create_many, caller_keeps_values_of_failed_call)
{
    owned value;
    owned_construct(&value, 5, &owned_live);
    quern_component twice[] = {owned_type, frozen, frozen};
    const void *columns[] = {&value, NULL, NULL};
    must_refuse(DUPLICATE_COMPONENT, world,
                quern_entity_create_many(world, twice, columns, 3, 1, entities));
    cr_assert(owned_is_intact(&value));
    owned_destroy(&value, &owned_live);
}

/* ----------------------------------------------------------------------------------- create filled */

/* Contents of all views of one call. */
typedef struct filling {
    uint32_t next; /* expected fill index of the next view */
    uint32_t view_count;
    quern_entity handles[HUGE_COUNT];
} filling;

static filling fill_log;

static void fill_numbers(quern_context *context, const quern_view *view)
{
    filling *log = quern_context_user_data(context);
    const uint32_t first = view->fill_index;
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

/* The components are listed in an order other than that of the storage. */
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

Test(create_filled, fill_sees_each_row_once_in_order)
{
    create_filled(10);
    cr_assert_eq(fill_log.view_count, 1u);
    create_filled(MANY); /* after the ten rows, in several chunks */
    cr_assert_gt(fill_log.view_count, 3u);
    create_filled(1);
    cr_assert_eq(alive_count(), 10u + MANY + 1u);
}

Test(create_filled, fill_sees_zero_bytes_in_reused_memory)
{
    for (uint32_t round = 0; round < 3; round++) {
        create_filled(MANY);
        must_stay_valid(quern_entity_destroy_many(world, entities, MANY));
    }
}

Test(create_filled, creates_very_many)
{
    create_filled(HUGE_COUNT);
}

static void fill_payloads(quern_context *context, const quern_view *view)
{
    uint32_t *calls = quern_context_user_data(context);
    tracked *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert(tracked_is_live(&values[i]));
        cr_assert_eq(values[i].payload, (uint64_t)TRACKED_DEFAULT);
        values[i].payload = view->fill_index + i;
    }
    (*calls)++;
}

Test(create_filled, fill_sees_constructed_values)
{
    uint32_t calls = 0;
    must_stay_valid(
        quern_entity_create_filled(world, &tracked_type, 1, MANY, fill_payloads, &calls, entities));
    cr_assert_eq(counts.constructed_count, (uint64_t)MANY);
    cr_assert_gt(calls, 1u);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(payload_of(entities[i]), i);
}

Test(create_filled, count_zero_calls_no_fill)
{
    uint32_t calls = 0;
    uint64_t before = quern_world_hash(world);
    must_stay_valid(quern_entity_create_filled(world, &number, 1, 0, count_call, &calls, NULL));
    cr_assert_eq(calls, 0u);
    cr_assert_eq(quern_world_hash(world), before);
}

Test(create_filled, fill_without_components_sees_handles)
{
    uint32_t calls = 0;
    must_stay_valid(quern_entity_create_filled(world, NULL, 0, 100, count_call, &calls, entities));
    cr_assert_eq(calls, 1u);
    cr_assert(quern_entity_is_alive(world, entities[99]));
}

static void fill_wrongly(quern_context *context, const quern_view *view)
{
    quern_entity created;
    cr_assert_eq(quern_entity_create(world, &created), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_entity_create_many(world, &number, NULL, 1, 1, NULL), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_entity_destroy(world, view->entities[0]), QUERN_ERROR_WORLD_LOCKED);
    refusal before = refusal_begin(NULL);
    cr_assert(is_scratch(quern_view_write(view, 1), view->count * sizeof(uint64_t)));
    cr_assert(refusal_has_message(&before), "a term that is not there gives a message");
    cr_assert(is_scratch(quern_view_read(view, 77), view->count * sizeof(uint64_t)));
}

Test(create_filled, fill_cannot_change_the_world)
{
    captured_reports reports;
    capture_reports(&reports);
    must_stay_valid(quern_entity_create_filled(world, &number, 1, MANY, fill_wrongly, NULL, NULL));
    cr_assert_eq(alive_count(), (uint64_t)MANY);
    setup_entity(world);
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
    must_refuse(NULL_ARGUMENT, world, quern_entity_create_filled(world, tags, 1, 5, NULL, NULL, NULL));
    must_refuse(NULL_ARGUMENT, world,
                quern_entity_create_filled(NULL, tags, 1, 5, count_call, &calls, NULL));
    must_refuse(NULL_ARGUMENT, world,
                quern_entity_create_filled(world, NULL, 1, 5, count_call, &calls, NULL));
    must_refuse(DUPLICATE_COMPONENT, world,
                quern_entity_create_filled(world, twice, 2, 5, count_call, &calls, NULL));
    must_refuse(LIMIT, world,
                quern_entity_create_filled(world, tags, 1, UINT32_MAX, count_call, &calls, NULL));
    cr_assert_eq(calls, 0u);
    must_stay_valid(quern_entity_create_filled(world, tags, QUERN_MAX_TERMS, 5, count_call, &calls, NULL));
    cr_assert_eq(calls, 1u);
}
