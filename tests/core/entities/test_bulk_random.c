/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/entities/bulk_scene.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/program.h"
#include "tests/support/random.h"

/* Random programs of bulk calls, compared with a model, with and without memory failures. */

TestSuite(bulk_random, .init = open_bulk);

enum {
    BATCH = 400,
    SEED_COUNT = effort(6, 3, 1),
    ROUND_COUNT = 250,
    COLUMN_BYTES = BATCH * MODEL_VALUE_BYTES
};

static program run;

/* `count` consecutive values of a type, and the numbers they were made from. */
typedef struct column {
    _Alignas(64) unsigned char bytes[COLUMN_BYTES];
    uint32_t seeds[BATCH];
    uint32_t type;
    const void *pointer; /* address of the bytes; NULL if the values are constructed */
} column;

static uint32_t pick_seed(void)
{
    return 1 + random_below(&run.random, 1000000);
}

/* Makes a value at its final address, since it may contain the address. */
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

/* Destroys tracked source values, which the world has copied. Owned values are now the property of the world. */
static void column_drop(column *values, uint32_t count)
{
    if (values->pointer == NULL || model_types[values->type].kind != MODEL_TRACKED) return;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)(void *)values->bytes + i, &run.model.tracked);
}

/* Returns whether the call lacked memory and has to be repeated. It must then have changed nothing. */
static bool must_retry(quern_result result, uint64_t hash_before)
{
    if (result != QUERN_ERROR_OUT_OF_MEMORY || run.allocator == NULL) {
        must(result);
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

/* Creates entities by a fill that writes nothing, so that values stay as constructed. */
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

/* Creates queries without memory failures, since they are not what is tested here. */
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

Test(bulk_random, bulk_calls_agree_with_the_model, .timeout = 300)
{
    close_bulk();
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_program(seed, NULL);
}

Test(bulk_random, failing_bulk_calls_agree_with_the_model, .timeout = 300)
{
    close_bulk();
    for (uint64_t seed = 100; seed < 102; seed++) {
        failing_allocator *allocator = failing_allocator_create();
        run_program(seed, allocator);
        cr_assert_gt(run.out_of_memory_count, 20u, "memory hardly ever ran out");
        failing_allocator_close(allocator);
    }
}
