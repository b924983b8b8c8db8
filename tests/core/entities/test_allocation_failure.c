/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>

/* Runs a script that uses everything in core that allocates memory, and refuses the first, the second, the third
 * ... request in turn. The call that lacks memory must fail with a message and leave the world unchanged. After the
 * call is repeated, the script must end with the same world as without failures. */

enum {
    TYPE_COUNT = 24,
    RESOURCE_COUNT = 12,
    EMPTY_COUNT = 100,
    SET_COUNT = 100,
    LARGE_COUNT = 300, /* of two rows a chunk: more than a slab */
    CROWD_COUNT = 4100 /* more than a page of entity records */
};

enum {
    FIRST_OF_SETS = EMPTY_COUNT,
    FIRST_LARGE = FIRST_OF_SETS + SET_COUNT,
    FIRST_OF_CROWD = FIRST_LARGE + LARGE_COUNT,
    ENTITY_COUNT = FIRST_OF_CROWD + CROWD_COUNT,
    MAX_CALL_COUNT = 2 * ENTITY_COUNT
};

typedef struct script {
    quern_world_def world_def;
    quern_world *world;
    quern_component types[TYPE_COUNT];
    quern_component tracked_type;
    quern_component large_type;
    quern_resource resources[RESOURCE_COUNT];
    quern_query *query;
    quern_getter *getters[2]; /* with refs; the script creates archetypes and slabs while they exist */
    quern_entity entities[ENTITY_COUNT];
    tracked_counts counts;
} script;

typedef quern_result script_step(script *run, uint32_t i);

static script run;

/* ------------------------------------------------------------------------------------------- steps */

static quern_result create_world(script *s, uint32_t i)
{
    return quern_world_create(&s->world_def, &s->world);
}

static quern_result register_sized(script *s, const char *name, uint32_t size_bytes,
                                   quern_component *out_component)
{
    quern_field field = {"field", QUERN_FIELD_U8, 0, .count = 1};
    quern_component_def def = {.name = name, .size_bytes = size_bytes, .alignment_bytes = 8};
    if (size_bytes > 0) def.fields[0] = field;
    return quern_component_register(s->world, &def, out_component);
}

static quern_result register_type(script *s, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "type%u", i);
    return register_sized(s, name, i % 4 * 8, &s->types[i]);
}

static quern_result register_large(script *s, uint32_t i)
{
    return register_sized(s, "large", 8000, &s->large_type);
}

static quern_result register_tracked(script *s, uint32_t i)
{
    s->tracked_type = tracked_register(s->world, "tracked", &s->counts);
    return quern_component_is_null(s->tracked_type) ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK;
}

static quern_result register_again(script *s, uint32_t i)
{
    quern_component before = s->types[i];
    quern_result result = register_type(s, i);
    cr_assert(quern_component_equal(before, s->types[i]));
    return result;
}

static quern_result register_resource(script *s, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "resource%u", i);
    quern_field field = {"field", QUERN_FIELD_U64, 8, .count = 1};
    quern_resource_def def = {.name = name, .size_bytes = 16u << i};
    if (i % 2) def.fields[0] = field;
    return quern_resource_register(s->world, &def, &s->resources[i]);
}

static quern_result create_query(script *s, uint32_t i)
{
    quern_query_def def = {.terms = {quern_term_optional(s->types[1], QUERN_ACCESS_READ)}};
    return quern_query_create(s->world, &def, &s->query);
}

static quern_result create_getter(script *s, uint32_t i)
{
    const quern_getter_def def = {.component = i == 0 ? s->types[3] : s->large_type, .refs = true};
    return quern_getter_create(s->world, &def, &s->getters[i]);
}

static quern_result create_empty(script *s, uint32_t i)
{
    return quern_entity_create(s->world, &s->entities[i]);
}

static quern_result create_of_some_set(script *s, uint32_t i)
{
    quern_component chosen[3] = {s->types[i % TYPE_COUNT], s->types[(i + 5) % TYPE_COUNT], s->tracked_type};
    return quern_entity_create_with(s->world, chosen, NULL, 1 + i % 3, &s->entities[FIRST_OF_SETS + i]);
}

static quern_result create_large(script *s, uint32_t i)
{
    return quern_entity_create_with(s->world, &s->large_type, NULL, 1, &s->entities[FIRST_LARGE + i]);
}

static quern_result create_crowd(script *s, uint32_t i)
{
    return quern_entity_create_with(s->world, &s->types[3], NULL, 1, &s->entities[FIRST_OF_CROWD + i]);
}

static quern_result add_tracked(script *s, uint32_t i)
{
    tracked value;
    tracked_construct(&value, i, &s->counts);
    quern_result result = quern_entity_add(s->world, s->entities[i], s->tracked_type, &value);
    tracked_destroy(&value, &s->counts);
    return result;
}

static quern_result set_some(script *s, uint32_t i)
{
    uint64_t value[3] = {i, i, i};
    return quern_entity_set(s->world, s->entities[i], s->types[i % TYPE_COUNT], value);
}

static quern_result remove_tracked(script *s, uint32_t i)
{
    return quern_entity_remove(s->world, s->entities[i], s->tracked_type);
}

static quern_result destroy_every_second(script *s, uint32_t i)
{
    return quern_entity_destroy(s->world, s->entities[2 * i]);
}

static quern_result count_matches(script *s, uint32_t i)
{
    uint64_t expected = stats_of_world(s->world).entity_count;
    uint64_t count = quern_query_count(s->query);
    if (count == 0) return QUERN_ERROR_OUT_OF_MEMORY;
    cr_assert_eq(count, expected, "memory ran out, and some matches were left out silently");
    return QUERN_OK;
}

static quern_result walk_matches(script *s, uint32_t i)
{
    uint64_t count = 0;
    quern_query_iterator it = quern_query_iterate(s->query);
    while (quern_query_next(&it))
        count += it.view.count;
    if (it.result == QUERN_OK) cr_assert_eq(count, stats_of_world(s->world).entity_count);
    return it.result;
}

static const struct {
    script_step *step;
    uint32_t count;
} steps[] = {
    {create_world, 1},
    {register_type, TYPE_COUNT},
    {register_tracked, 1},
    {register_large, 1},
    {register_again, 3},
    {register_resource, RESOURCE_COUNT},
    {create_empty, EMPTY_COUNT},
    {create_query, 1},
    {create_getter, 2},
    {create_of_some_set, SET_COUNT},
    {count_matches, 1},
    {add_tracked, EMPTY_COUNT},
    {set_some, EMPTY_COUNT},
    {walk_matches, 1},
    {create_large, LARGE_COUNT},
    {create_crowd, CROWD_COUNT},
    {remove_tracked, EMPTY_COUNT},
    {destroy_every_second, ENTITY_COUNT / 2},
    {count_matches, 1},
};

/* ------------------------------------------------------------------------------------------- running */

/* Hashes of the world before each call of a run without failures, and after the last call. */
static uint64_t hashes[MAX_CALL_COUNT];

static uint64_t world_hash(void)
{
    return run.world != NULL ? quern_world_hash(run.world) : 0;
}

static void record_hash(script_step *step, uint32_t i, uint32_t call)
{
    cr_assert_lt(call, (uint32_t)MAX_CALL_COUNT);
    hashes[call] = world_hash();
    must(step(&run, i));
}

static void check_refusal(quern_result result, const refusal *before, uint32_t call, uint64_t live_count)
{
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "call %u gave %s", call, quern_result_string(result));
    cr_assert(refusal_has_message(before), "call %u says nothing", call);
    cr_assert_eq(world_hash(), hashes[call], "call %u changed the world", call);
    cr_assert_eq(tracked_live_count(&run.counts), live_count, "call %u left values behind", call);
    if (run.world != NULL) assert_valid(run.world);
}

/* Makes one call, and repeats it until it succeeds. Checks each failure. Returns whether the call lacked memory. */
static bool call_again_until_done(script_step *step, uint32_t i, uint32_t call,
                                  failing_allocator *allocator)
{
    uint64_t live_count = tracked_live_count(&run.counts);
    refusal before = refusal_begin(NULL);
    quern_result result = step(&run, i);
    if (failing_allocator_failed_count(allocator) == 0) {
        must(result);
        return false;
    }
    check_refusal(result, &before, call, live_count);
    result = step(&run, i);
    if (result != QUERN_OK) {
        check_refusal(result, &before, call, live_count);
        failing_allocator_heal(allocator);
        result = step(&run, i);
    }
    failing_allocator_heal(allocator);
    must(result);
    return true;
}

static void start(failing_allocator *allocator)
{
    quern__chunk_policies.gathered_chunks =
        UINT32_MAX; /* without memory to gather rows, no call fails: test_change.c */
    run = (script){.world = NULL};
    run.world_def.allocator = failing_allocator_interface(allocator);
}

static void finish(failing_allocator *allocator)
{
    quern_query_destroy(run.query);
    for (uint32_t i = 0; i < 2; i++)
        quern_getter_destroy(run.getters[i]);
    quern_world_destroy(run.world);
    cr_assert_eq(failing_allocator_outstanding_bytes(allocator), 0u, "memory was not given back");
    cr_assert_eq(failing_allocator_misuse_count(allocator), 0u, "memory was not given back as it was got");
    cr_assert_eq(tracked_live_count(&run.counts), 0u);
    cr_assert_eq(run.counts.broken_count, 0u);
    failing_allocator_destroy(allocator);
}

static void run_with_plenty(void)
{
    failing_allocator *allocator = failing_allocator_create();
    uint32_t call = 0;
    start(allocator);
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
        for (uint32_t i = 0; i < steps[s].count; i++)
            record_hash(steps[s].step, i, call++);
    hashes[call] = world_hash();
    finish(allocator);
}

/* Runs the script and refuses request number `failing`. Returns whether the script made that request. If `stops`, the
 * script ends after the failure. */
static bool run_with_failure(uint64_t failing, bool fails_on, bool stops)
{
    failing_allocator *allocator = failing_allocator_create();
    uint32_t call = 0;
    bool has_failed = false;
    start(allocator);
    if (fails_on)
        failing_allocator_fail_from(allocator, failing);
    else
        failing_allocator_fail_at(allocator, failing);
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
        for (uint32_t i = 0; i < steps[s].count && !(stops && has_failed); i++, call++) {
            if (has_failed)
                cr_assert_eq(steps[s].step(&run, i), QUERN_OK, "%s", quern_error_message());
            else
                has_failed = call_again_until_done(steps[s].step, i, call, allocator);
        }
    cr_assert_eq(world_hash(), hashes[call], "request %llu", (unsigned long long)failing);
    finish(allocator);
    return has_failed;
}

Test(allocation_failure, refused_request_fails_one_call_only, .timeout = 300)
{
    uint64_t failing = 1;
    run_with_plenty();
    while (run_with_failure(failing, false, false))
        failing++;
    cr_assert_gt(failing, 200u, "the script asks for memory %llu times only", (unsigned long long)failing);
}

Test(allocation_failure, calls_without_memory_change_nothing, .timeout = 300)
{
    run_with_plenty();
    for (uint64_t failing = 1; run_with_failure(failing, true, true);)
        failing++;
}

/* A sync point reserves like this: it needs many chunks at once. */
Test(allocation_failure, partial_reservation_is_released)
{
    failing_allocator *allocator = failing_allocator_create();
    start(allocator);
    must(create_world(&run, 0));
    must(register_large(&run, 0));
    quern__storage *storage = &run.world->storage;
    quern__archetype *archetype;
    must(quern__storage_ensure_archetype(storage, &(uint16_t){0}, 1, &archetype));
    for (uint32_t spared = 0; spared < 4; spared++) {
        failing_allocator_fail_from(allocator, 1 + spared);
        refusal before = refusal_begin(run.world);
        quern_result result = quern__rows_reserve(storage, archetype, 4 * QUERN__SLAB_CHUNKS);
        refusal_end_code(&before, result, QUERN_ERROR_OUT_OF_MEMORY, __LINE__, "reserving rows");
        cr_assert_eq(archetype->held_count, 0u);
    }
    failing_allocator_heal(allocator);
    finish(allocator);
}

/* Small lists may stay grown, but no page of records (2 MiB) and no slab may remain. */
Test(allocation_failure, failed_create_releases_entity_records)
{
    bool has_failed = true;
    for (uint64_t n = 1; has_failed; n++) {
        failing_allocator *allocator = failing_allocator_create();
        start(allocator);
        must(quern_world_create(&run.world_def, &run.world));
        uint64_t before = failing_allocator_outstanding_bytes(allocator);
        failing_allocator_fail_at(allocator, n);
        quern_entity entity;
        has_failed = quern_entity_create(run.world, &entity) == QUERN_ERROR_OUT_OF_MEMORY;
        if (has_failed) cr_assert_lt(failing_allocator_outstanding_bytes(allocator), before + 65536u);
        finish(allocator);
    }
}
