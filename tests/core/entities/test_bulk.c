/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/core/entities/bulk_scene.h"
#include "tests/support/failing_allocator.h"

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
    cr_assert_eq(quern_world_create(&script_def, &world), QUERN_OK);
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
