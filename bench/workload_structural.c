/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Structural changes outside of frames, with entities that have Position and Velocity:
 *
 *     create*    entities are created by one call each, or component by component
 *     mem        the memory of these entities
 *     destroy*   entities are destroyed in the order of creation or shuffled, one at a time or by a list
 *     add_query  one call adds a component to all entities */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

/* Every 64th entity survives destroy, so that the checksum covers some entities. */
enum { SURVIVOR_INTERVAL = 64 };

static const Health added_health = {.points = 100, .maximum = 100};

static bool survives(uint32_t i)
{
    return i % SURVIVOR_INTERVAL == SURVIVOR_INTERVAL - 1;
}

static uint64_t destroyed_count(uint32_t entity_count)
{
    return entity_count - entity_count / SURVIVOR_INTERVAL;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_structural {
    raw_store store;
    uint32_t entity_count;
    uint32_t *order;      /* numbers of entities, in the order in which they are visited */
    raw_entity *entities; /* entities in the order of creation */
} raw_structural;

static void *open_raw(const bench_case *scene)
{
    raw_structural *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw->entities = bench_allocate(scene->entity_count, sizeof *raw->entities);
    return raw;
}

static void fill_raw(void *state)
{
    raw_structural *raw = state;
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < raw->entity_count; i++)
        raw->entities[i] = raw_create_moving(&raw->store, i);
}

static void begin_raw(void *state)
{
    raw_structural *raw = state;
    raw_store_open(&raw->store, RAW_MOVING);
}

static void end_raw(void *state)
{
    raw_structural *raw = state;
    raw_store_close(&raw->store);
}

static uint64_t checksum_raw(void *state)
{
    const raw_structural *raw = state;
    return raw_checksum_moving(&raw->store.tables[RAW_MAIN]);
}

static void close_raw(void *state)
{
    raw_structural *raw = state;
    free(raw->order);
    free(raw->entities);
    free(raw);
}

static void run_create_raw(void *state, uint32_t pass_count)
{
    raw_structural *raw = state;
    for (uint32_t i = 0; i < raw->entity_count; i++)
        raw_create_moving(&raw->store, i);
}

static void run_destroy_raw(void *state, uint32_t pass_count)
{
    raw_structural *raw = state;
    for (uint32_t i = 0; i < raw->entity_count; i++) {
        const uint32_t number = raw->order != NULL ? raw->order[i] : i;
        if (!survives(number)) raw_destroy(&raw->store, raw->entities[number], RAW_MOVING);
    }
}

static void *open_shuffled_raw(const bench_case *scene)
{
    raw_structural *raw = open_raw(scene);
    raw->order = bench_shuffled_indices(scene->entity_count);
    return raw;
}

/* Adds a component to all rows by allocating and filling one array. */
static void run_add_query_raw(void *state, uint32_t pass_count)
{
    raw_structural *raw = state;
    raw_table *table = &raw->store.tables[RAW_MAIN];
    Health *healths = bench_allocate_fresh(table->capacity * sizeof *healths);
    for (uint32_t i = 0; i < table->count; i++)
        healths[i] = added_health;
    table->columns[RAW_HEALTH] = (char *)healths;
}

static uint64_t checksum_add_query_raw(void *state)
{
    const raw_structural *raw = state;
    return checksum_raw(state) + raw->store.tables[RAW_MAIN].count;
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct structural_scene {
    bench_world bench;
    uint32_t entity_count;
    uint32_t *order;
    quern_entity *entities;
    quern_entity *doomed; /* for destroy_many*: entities to destroy, in this order */
    uint32_t doomed_count;
    quern_query *query; /* for add_query: matches all entities */
    uint64_t added_count;
} structural_scene;

static void *open_quern(const bench_case *scene)
{
    structural_scene *quern = bench_allocate(1, sizeof *quern);
    quern->entity_count = scene->entity_count;
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    quern->doomed = bench_allocate(scene->entity_count, sizeof *quern->doomed);
    return quern;
}

static void begin_quern(void *state)
{
    structural_scene *quern = state;
    bench_world_open(&quern->bench);
}

static void fill_quern(void *state)
{
    structural_scene *quern = state;
    bench_world_open(&quern->bench);
    for (uint32_t i = 0; i < quern->entity_count; i++)
        quern->entities[i] = bench_world_create_moving(&quern->bench, i);
}

static void end_quern(void *state)
{
    structural_scene *quern = state;
    bench_world_close(&quern->bench);
}

static uint64_t checksum_quern(void *state)
{
    structural_scene *quern = state;
    return bench_world_checksum_moving(&quern->bench);
}

static void close_quern(void *state)
{
    structural_scene *quern = state;
    free(quern->order);
    free(quern->entities);
    free(quern->doomed);
    free(quern);
}

static void run_create_quern(void *state, uint32_t pass_count)
{
    structural_scene *quern = state;
    for (uint32_t i = 0; i < quern->entity_count; i++)
        bench_world_create_moving(&quern->bench, i);
}

static void run_create_naive_quern(void *state, uint32_t pass_count)
{
    structural_scene *quern = state;
    quern_world *world = quern->bench.world;
    for (uint32_t i = 0; i < quern->entity_count; i++) {
        const Position position = start_position(i);
        const Velocity velocity = start_velocity(i);
        quern_entity entity;
        REQUIRE(quern_entity_create(world, &entity));
        REQUIRE(quern_entity_set(world, entity, quern->bench.position, &position));
        REQUIRE(quern_entity_set(world, entity, quern->bench.velocity, &velocity));
    }
}

static void run_destroy_quern(void *state, uint32_t pass_count)
{
    structural_scene *quern = state;
    for (uint32_t i = 0; i < quern->entity_count; i++) {
        const uint32_t number = quern->order != NULL ? quern->order[i] : i;
        if (!survives(number)) REQUIRE(quern_entity_destroy(quern->bench.world, quern->entities[number]));
    }
}

static void *open_shuffled_quern(const bench_case *scene)
{
    structural_scene *quern = open_quern(scene);
    quern->order = bench_shuffled_indices(scene->entity_count);
    return quern;
}

/* Creates the entities, and lists those that one call is to destroy, in the order in which the control
 * destroys them. */
static void fill_listed_quern(void *state)
{
    structural_scene *quern = state;
    fill_quern(quern);
    uint32_t count = 0;
    for (uint32_t i = 0; i < quern->entity_count; i++) {
        const uint32_t number = quern->order != NULL ? quern->order[i] : i;
        if (!survives(number)) quern->doomed[count++] = quern->entities[number];
    }
    quern->doomed_count = count;
}

static void run_destroy_many_quern(void *state, uint32_t pass_count)
{
    const structural_scene *quern = state;
    REQUIRE(quern_entity_destroy_many(quern->bench.world, quern->doomed, quern->doomed_count));
}

static void fill_add_query_quern(void *state)
{
    structural_scene *quern = state;
    fill_quern(quern);
    const quern_term term = quern_term_with(quern->bench.position);
    quern->query = bench_world_query(&quern->bench, &term, 1);
}

static void run_add_query_quern(void *state, uint32_t pass_count)
{
    structural_scene *quern = state;
    REQUIRE(
        quern_entity_add_matching(quern->query, quern->bench.health, &added_health, &quern->added_count));
}

static uint64_t checksum_add_query_quern(void *state)
{
    const structural_scene *quern = state;
    return checksum_quern(state) + quern->added_count;
}

static void end_add_query_quern(void *state)
{
    structural_scene *quern = state;
    quern_query_destroy(quern->query);
    end_quern(state);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_create = {
    .name = "create",
    .summary = "create entities with Position and Velocity in a new world, one at a time",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, begin_raw, run_create_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, begin_quern, run_create_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_create_naive = {
    .name = "create_naive",
    .summary = "create entities without components, and then add Position and Velocity one after the other",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, begin_raw, run_create_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, begin_quern, run_create_naive_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_mem = {
    .name = "mem",
    .summary = "memory that entities with Position and Velocity need",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .footprint = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, begin_raw, run_create_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, begin_quern, run_create_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_destroy_order = {
    .name = "destroy_order",
    .alias = "destroy",
    .summary = "destroy 63 of 64 entities one at a time, in the order of their creation",
    .unit = "destroy",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = destroyed_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, fill_raw, run_destroy_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, fill_quern, run_destroy_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_destroy_shuffled = {
    .name = "destroy_shuffled",
    .summary = "destroy 63 of 64 entities one at a time, in a shuffled order",
    .unit = "destroy",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = destroyed_count,
    .subjects =
        {
            [BENCH_RAW] = {open_shuffled_raw, fill_raw, run_destroy_raw, end_raw, checksum_raw, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_shuffled_quern, fill_quern, run_destroy_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_destroy_many = {
    .name = "destroy_many",
    .summary = "destroy 63 of 64 entities by one call with a list, in the order of their creation",
    .unit = "destroy",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = destroyed_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, fill_raw, run_destroy_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, fill_listed_quern, run_destroy_many_quern, end_quern,
                             checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_destroy_many_shuffled = {
    .name = "destroy_many_shuffled",
    .summary = "destroy 63 of 64 entities by one call with a list, in a shuffled order",
    .unit = "destroy",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = destroyed_count,
    .subjects =
        {
            [BENCH_RAW] = {open_shuffled_raw, fill_raw, run_destroy_raw, end_raw, checksum_raw, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_shuffled_quern, fill_listed_quern, run_destroy_many_quern, end_quern,
                             checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_add_query = {
    .name = "add_query",
    .summary = "add a third component to all entities that match a query, in one call",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, fill_raw, run_add_query_raw, end_raw, checksum_add_query_raw,
                           close_raw, NULL},
            [BENCH_QUERN] = {open_quern, fill_add_query_quern, run_add_query_quern, end_add_query_quern,
                             checksum_add_query_quern, close_quern, NULL},
        },
};
