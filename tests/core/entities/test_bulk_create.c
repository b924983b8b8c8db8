/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/core/entities/bulk_scene.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

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

/* ----------------------------------------------------------------------------------------------- lists */

/* quern_entity_create_with caches the latest lists of components. These tests use more lists than it caches, in
 * random order: plain lists, lists with one relation, with two relations, and with a type that has a copy hook.
 * Each entity must have the components and targets of its list. */

enum { COMPONENTS = 4, LISTS = 9, ENTITIES = 3000 };

static quern_component components[COMPONENTS]; /* the last one with hooks */
static quern_relation parent, owner;

/* Contents of a list: a mask of components, and relations. */
static const struct list {
    uint32_t mask;
    bool has_parent, has_owner;
} lists[LISTS] = {{0, false, false}, {1, false, false}, {3, false, false},
                  {8, false, false}, {11, true, false}, {0, true, false},
                  {5, false, true},  {6, true, true},   {15, true, false}};

static quern_entity made[ENTITIES];
static const struct list *list_of[ENTITIES];
static uint32_t parent_of[ENTITIES], owner_of[ENTITIES]; /* target, if the list has the relation */

static void copy_negated(void *targets, const void *sources, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint32_t *)targets)[i] = ~((const uint32_t *)sources)[i];
}

static void construct_sevens(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint32_t *)values)[i] = 7;
}

static void open_lists(void)
{
    world = setup_world();
    components[0] = setup_component(world, "a", 4, 4);
    components[1] = setup_component(world, "b", 4, 4);
    components[2] = setup_tag(world, "tag");
    components[3] = make_component(world, .name = "hooked", .size_bytes = 4, .alignment_bytes = 4,
                                   .hooks = {.copy = copy_negated, .construct = construct_sevens});
    parent = quern_world_parent(world);
    owner = make_relation(world, .name = "owner");
}

TestSuite(create_lists, .init = open_lists, .fini = close_valid_world);

static bool has_values(uint32_t i)
{
    return i % 3 != 0;
}

/* Every third entity is created without values except targets. */
static void create(uint32_t i, const struct list *list, random_source *random)
{
    quern_component ids[COMPONENTS + 2];
    const void *values[COMPONENTS + 2];
    uint32_t count = 0;
    list_of[i] = list;
    parent_of[i] = owner_of[i] = i > 0 ? random_below(random, i) : 0;
    if (i == 0) list_of[i] = &lists[0];
    for (uint32_t c = 0; c < COMPONENTS; c++) {
        if ((list_of[i]->mask >> c & 1) == 0) continue;
        ids[count] = components[c];
        values[count++] = has_values(i) && c != 2 ? &i : NULL;
    }
    if (list_of[i]->has_parent) {
        ids[count] = quern_relation_component(parent);
        values[count++] = &made[parent_of[i]];
    }
    if (list_of[i]->has_owner) {
        ids[count] = quern_relation_component(owner);
        values[count++] = &made[owner_of[i]];
    }
    must(quern_entity_create_with(world, ids, values, count, &made[i]));
}

static void check_target(uint32_t i, quern_relation relation, bool has_it, uint32_t target)
{
    cr_assert_eq(quern_entity_target(world, made[i], relation).bits, has_it ? made[target].bits : 0);
}

static void check(uint32_t i)
{
    for (uint32_t c = 0; c < COMPONENTS; c++) {
        const bool has_it = (list_of[i]->mask >> c & 1) != 0;
        cr_assert_eq(quern_entity_has(world, made[i], components[c]), has_it);
        if (!has_it || c == 2) continue;
        const uint32_t plain = has_values(i) ? i : 0, hooked = has_values(i) ? ~i : 7;
        const uint32_t *value = quern_entity_get(world, made[i], components[c]);
        cr_assert_eq(*value, c == 3 ? hooked : plain);
    }
    check_target(i, parent, list_of[i]->has_parent, parent_of[i]);
    check_target(i, owner, list_of[i]->has_owner, owner_of[i]);
}

Test(create_lists, entities_have_the_components_of_their_list)
{
    random_source random = {.state = 3};
    for (uint32_t i = 0; i < ENTITIES; i++) {
        create(i, &lists[random_below(&random, LISTS)], &random);
        check(i);
        if (i % 500 == 0) assert_valid(world);
    }
    for (uint32_t i = 0; i < ENTITIES; i++)
        check(i);
}

/* Removes all entities of a list and their archetypes, on all levels, and uses the list again. */
Test(create_lists, lists_are_found_again_after_archetypes_are_removed)
{
    random_source random = {.state = 4};
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 40; i++)
            create(i, &lists[i == 0 ? 0 : random_below(&random, LISTS)], &random);
        for (uint32_t i = 0; i < 40; i++)
            check(i);
        if (round % 4 != 3) { /* in the other rounds some entities remain */
            for (uint32_t i = 0; i < 40; i++)
                if (quern_entity_is_alive(world, made[i])) must(quern_entity_destroy(world, made[i]));
        }
        must(quern_world_remove_empty_archetypes(world, NULL));
        assert_valid(world);
    }
}

/* A failed call must not cache a list that a later call would treat as valid. */
Test(create_lists, wrong_lists_are_not_cached)
{
    const quern_component twice[] = {components[0], components[0]},
                          related[] = {components[0], quern_relation_component(parent)};
    const uint32_t value = 1;
    const quern_entity root = setup_entity(world), null = quern_entity_null();
    const quern_entity stale = setup_entity(world);
    must(quern_entity_destroy(world, stale));
    for (uint32_t i = 0; i < 3; i++) {
        quern_entity entity;
        must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_with(world, twice, NULL, 2, &entity));
        must_refuse(NULL_ARGUMENT, world, quern_entity_create_with(world, related, NULL, 2, &entity));
        assert_refused(
            world, QUERN_ERROR_NULL_ENTITY,
            quern_entity_create_with(world, related, (const void *[]){&value, &null}, 2, &entity));
        assert_refused(
            world, QUERN_ERROR_STALE_ENTITY,
            quern_entity_create_with(world, related, (const void *[]){&value, &stale}, 2, &entity));
        must(quern_entity_create_with(world, related, (const void *[]){&value, &root}, 2, &entity));
        cr_assert_eq(quern_entity_target(world, entity, parent).bits, root.bits);
    }
    cr_assert_eq(quern_entity_source_count(world, root, parent), 3u);
}

/* ------------------------------------------------------------------------------------------- reserving */

/* Memory that is reserved ahead (quern_world_reserve). */

enum { ROWS = 3000 };

static failing_allocator *memory;
static quern_component number, other;
static quern_entity reserved[ROWS];

static void open_pair(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
}

TestSuite(reserve, .init = open_pair, .fini = close_valid_world);

static quern_reserve_def rows_of_number(void)
{
    return (quern_reserve_def){.entity_count = ROWS, .components = {number}, .row_count = ROWS};
}

static void create_all(void)
{
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(world, &number, (const void *const[]){&i}, 1, &reserved[i]));
}

static void destroy_all(void)
{
    for (uint32_t i = 0; i < ROWS; i++)
        must(quern_entity_destroy(world, reserved[i]));
}

Test(reserve, rows_need_no_memory_until_a_trim)
{
    const quern_reserve_def def = rows_of_number();
    const uint64_t hash = quern_world_hash(world);
    must(quern_world_reserve(world, &def));
    cr_assert_eq(quern_world_hash(world), hash);
    assert_valid(world);
    const uint64_t calls = failing_allocator_call_count(memory);
    create_all();
    destroy_all();
    create_all();
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    destroy_all();
    must(quern_world_trim(world));
    const uint64_t trimmed_calls = failing_allocator_call_count(memory);
    create_all();
    cr_assert_gt(failing_allocator_call_count(memory), trimmed_calls);
}

Test(reserve, rows_are_added_to_those_that_exist)
{
    create_all();
    const quern_reserve_def def = rows_of_number();
    must(quern_world_reserve(world, &def));
    const uint64_t calls = failing_allocator_call_count(memory);
    create_all();
    cr_assert_eq(failing_allocator_call_count(memory), calls);
}

Test(reserve, links_and_commands_need_no_memory)
{
    quern_reserve_def def = rows_of_number();
    def.relations[0] = quern_world_parent(world);
    def.command_bytes = 2 * 64 * 1024;
    must(quern_world_reserve(world, &def));
    create_all();
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set(commands, reserved[0], number, &(uint64_t){1})); /* prepares the command */
    const uint64_t calls = failing_allocator_call_count(memory);
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_commands_set(commands, reserved[i], number, &i));
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    must(quern_world_flush(world));
    const quern__relation *hierarchy = quern__relation_of(&world->storage, quern_world_parent(world));
    cr_assert(quern__links_has_page(&hierarchy->links, quern_entity_index(reserved[ROWS - 1])));
}

/* Their links are edges; a page of links would hide them. */
Test(reserve, relations_with_several_targets_have_edges)
{
    quern_reserve_def def = rows_of_number();
    def.relations[0] = make_relation(world, .name = "likes", .many = true);
    const quern_relation likes = def.relations[0];
    must(quern_world_reserve(world, &def));
    const quern__relation *relation = quern__relation_of(&world->storage, likes);
    cr_assert(quern__edges_has_page(&relation->edges, ROWS - 1));
    cr_assert_eq(relation->links.pages.count, 0);
    create_all();
    must(quern_entity_relate(world, reserved[0], likes, reserved[1]));
    cr_assert(quern_entity_equal(quern_entity_target(world, reserved[0], likes), reserved[1]));
    cr_assert_eq(quern_entity_source_count(world, reserved[1], likes), 1);
}

Test(reserve, failed_allocations_are_reported_and_change_nothing)
{
    quern_reserve_def def = rows_of_number();
    def.relations[0] = quern_world_parent(world);
    def.command_bytes = 64 * 1024;
    const uint64_t hash = quern_world_hash(world);
    uint64_t n = 1;
    for (bool has_failed = true; has_failed; n++) {
        has_failed = runs_out_of_memory(memory, n, quern_world_reserve(world, &def));
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
    }
    cr_assert_gt(n, 3u);
}

Test(reserve, wrong_definitions_are_refused)
{
    quern_reserve_def def = {.components = {number}};
    must_refuse(INVALID_ARGUMENT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.components = {number, number}, .row_count = 1};
    must_refuse(DUPLICATE_COMPONENT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.entity_count = UINT32_MAX};
    must_refuse(LIMIT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.relations = {{12345}}};
    must_refuse(INVALID_ARGUMENT, world, quern_world_reserve(world, &def));
    must_refuse(NULL_ARGUMENT, world, quern_world_reserve(world, NULL));
    def = (quern_reserve_def){.entity_count = 0};
    must(quern_world_reserve(world, &def));
}
