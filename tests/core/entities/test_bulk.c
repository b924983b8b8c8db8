/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/world/world_internal.h"
#include "tests/core/entities/bulk_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

/* Rules of all bulk calls: wrong arguments, frames, iterators, missing memory. */

TestSuite(bulk, .init = open_bulk);

/* ------------------------------------------------------------------------------------- for each call */

Test(bulk, wrong_query_or_component_is_refused)
{
    create_numbered(0, 10, NULL, 0);
    quern_query *query = query_all(number);
    quern_component unknown = component_unregistered(number), foreign = component_of_other_world(number);
    uint64_t count;
    must_refuse(NULL_ARGUMENT, world, quern_entity_destroy_matching(NULL, &count));
    must_refuse(NULL_ARGUMENT, world, quern_entity_add_matching(NULL, point, NULL, &count));
    must_refuse(NULL_ARGUMENT, world, quern_entity_remove_matching(NULL, point, &count));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_add_matching(query, unknown, NULL, NULL));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_add_matching(query, foreign, NULL, NULL));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_remove_matching(query, (quern_component){0}, NULL));
    quern_query_destroy(query);
    close_bulk();
}

Test(bulk, calls_fail_while_a_frame_runs)
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

/* Calls each of which invalidates iterators. */
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

Test(bulk, calls_invalidate_iterators)
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

/* Repeats one call until memory suffices. Each failure must leave the world unchanged. */
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
    must(quern_world_create(&script_def, &world));
    number = setup_component(world, "number", 8, 8);
    point = setup_component(world, "point", sizeof(vec3), 4);
    tracked_type = tracked_register(world, "tracked", &counts);
    script_large = setup_component(world, "large", 7000, 8);
    quern_term terms[] = {quern_term_any(number, QUERN_ACCESS_READ),
                          quern_term_any(point, QUERN_ACCESS_READ)};
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

/* Runs the script and refuses request number `failing` (0: none). Returns whether the script made that request. */
static bool run_script(uint64_t failing)
{
    failing_allocator *allocator = failing_allocator_create();
    open_script(allocator);
    if (failing > 0) failing_allocator_fail_at(allocator, failing);
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

Test(bulk, each_memory_request_may_fail, .timeout = 300)
{
    close_bulk();
    run_script(0);
    uint64_t failing = 1;
    while (run_script(failing))
        failing++;
    cr_assert_gt(failing, 20u, "the script asks for memory %llu times only", (unsigned long long)failing);
}

Test(bulk, calls_without_memory_change_nothing, .timeout = 300)
{
    close_bulk();
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        failing_allocator *allocator = failing_allocator_create();
        open_script(allocator);
        for (uint32_t i = 0; i < step; i++)
            run_step(i);
        for (uint64_t spared = 0;; spared++) {
            uint64_t before = quern_world_hash(world), live_count = tracked_live_count(&counts);
            failing_allocator_fail_from(allocator, 1 + spared);
            if (script[step]() == QUERN_OK) break;
            assert_valid(world);
            cr_assert_eq(quern_world_hash(world), before, "step %u changed the world", step);
            cr_assert_eq(tracked_live_count(&counts), live_count, "step %u left values behind", step);
        }
        failing_allocator_heal(allocator);
        close_script(allocator);
    }
}

/* --------------------------------------------------------------- components of all entities of a query */

/* Adding and removing a component of all matches of a query. */

static uint64_t count_all(quern_component component)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(component)}, 1);
    uint64_t count = quern_query_count(query);
    quern_query_destroy(query);
    return count;
}

TestSuite(query_add, .init = open_bulk, .fini = close_bulk);
TestSuite(query_remove, .init = open_bulk, .fini = close_bulk);

/* -------------------------------------------------------------------------------------- query add */

Test(query_add, adds_component_where_it_is_missing)
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
}

Test(query_add, null_value_constructs)
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
}

Test(query_add, adds_tags)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_add_matching(query, frozen, NULL, &count));
    cr_assert_eq(count, (uint64_t)MANY / 2);
    cr_assert_eq(count_all(frozen), (uint64_t)MANY);
    assert_numbered(0, MANY);
}

Test(query_add, moves_existing_values_and_copies_new_one)
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
}

/* New rows are appended after existing rows, from the middle of a chunk on. */
Test(query_add, appends_to_existing_rows)
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
}

Test(query_add, value_may_be_in_the_world)
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
}

/* The value moves with its entity, possibly before its last copy. */
Test(query_add, value_with_hooks_may_be_in_the_world)
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
}

Test(query_add, value_without_copy_hook_is_refused)
{
    create_numbered(0, MANY, NULL, 0);
    quern_query *query = query_all(number);
    owned value;
    owned_construct(&value, 5, &owned_live);
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_matching(query, owned_type, &value, NULL));
    owned_destroy(&value, &owned_live);
    must_stay_valid(quern_entity_add_matching(query, owned_type, NULL, NULL));
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_null(((owned *)quern_entity_get(world, entities[i], owned_type))->box);
}

Test(query_add, failure_of_one_match_changes_no_match)
{
    quern_component large = setup_component(world, "large", 9000, 8);
    quern_component larger = setup_component(world, "larger", 9500, 4);
    create_numbered(0, 100, NULL, 0);
    create_numbered(100, 20, &tracked_type, 1);
    create_numbered(120, 20, &large, 1);
    create_numbered(140, 20, &frozen, 1);
    quern_query *query = query_all(number);
    uint64_t count = 77;
    must_refuse(COMPONENT_TOO_LARGE, world, quern_entity_add_matching(query, larger, NULL, &count));
    cr_assert_eq(count, 77u);
    cr_assert_eq(count_all(larger), 0u);
    must_stay_valid(quern_entity_add_matching(query, point, NULL, &count));
    cr_assert_eq(count, 160u);
    assert_numbered(0, 160);
}

Test(query_add, the_251st_component_is_refused)
{
    static quern_component tags[QUERN_MAX_ENTITY_COMPONENTS];
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        tags[i] = setup_tag(world, (char[]){'t', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
                                            (char)('0' + i % 10), '\0'});
    must_stay_valid(quern_entity_create_many(world, tags, NULL, 5, 100, entities));
    must_stay_valid(
        quern_entity_create_many(world, tags, NULL, QUERN_MAX_ENTITY_COMPONENTS, 100, entities));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(tags[0])}, 1);
    must_refuse(TOO_MANY_COMPONENTS, world, quern_entity_add_matching(query, number, NULL, NULL));
    cr_assert_eq(count_all(number), 0u);
}

/* ----------------------------------------------------------------------------------- query remove */

Test(query_remove, removes_component_where_it_is_present)
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
}

/* The query has no match left afterwards. */
Test(query_remove, may_remove_component_of_the_query)
{
    create_mixed();
    quern_query *query = query_all(number);
    uint64_t count = 0;
    must_stay_valid(quern_entity_remove_matching(query, number, &count));
    cr_assert_eq(count, (uint64_t)MANY);
    cr_assert_eq(quern_query_count(query), 0u);
    cr_assert_eq(alive_count(), (uint64_t)MANY);
}

Test(query_remove, may_leave_entities_without_components)
{
    must_stay_valid(quern_entity_create_many(world, &tracked_type, NULL, 1, MANY, entities));
    quern_query *query = query_all(tracked_type);
    must_stay_valid(quern_entity_remove_matching(query, tracked_type, NULL));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
}

/* Destroying lists of entities, and all matches of a query. */

TestSuite(destroy_many, .init = open_bulk);
TestSuite(query_destroy, .init = open_bulk, .fini = close_bulk);

/* ------------------------------------------------------------------------------------ destroy many */

Test(destroy_many, keeps_other_entities)
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

Test(destroy_many, list_may_contain_an_entity_twice)
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

Test(destroy_many, count_zero_does_nothing)
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

Test(destroy_many, wrong_handle_destroys_nothing)
{
    quern_entity gone = setup_entity(world);
    must_stay_valid(quern_entity_destroy(world, gone));
    create_numbered(0, MANY, &tracked_type, 1);
    check_bad_entry(quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
    check_bad_entry(gone, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry((quern_entity){entities[0].bits | 0xFFFFFF00u}, QUERN_ERROR_STALE_ENTITY);
    check_bad_entry(entity_of_other_world(entities[3]), QUERN_ERROR_FOREIGN_ENTITY);
    check_bad_entry(entity_provisional(3), QUERN_ERROR_PROVISIONAL_ENTITY);
    must_refuse(NULL_ARGUMENT, world, quern_entity_destroy_many(world, NULL, 1));
    must_refuse(NULL_ARGUMENT, world, quern_entity_destroy_many(NULL, entities, 1));
    cr_assert_eq(counts.destroyed_count, 0u);
    close_bulk();
}

/* Returns the first MANY entities in a random order, which is the same at every call. */
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

Test(destroy_many, destroys_in_list_order)
{
    close_bulk();
    cr_assert_eq(hash_after_destroying(true), hash_after_destroying(false));
}

/* ------------------------------------------------------------------------------------ query destroy */

Test(query_destroy, destroys_matches_only)
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
}

Test(query_destroy, destroys_matches_in_all_archetypes)
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
}

Test(query_destroy, handles_become_stale)
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
}
