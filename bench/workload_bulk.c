/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* create_bulk: creates entities with Position and Velocity in one call, from two prepared arrays of
 * values. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

typedef struct bulk_scene {
    uint32_t entity_count;
    Position *positions;
    Velocity *velocities;
    raw_store store;   /* used by raw */
    bench_world bench; /* used by quern */
} bulk_scene;

static void *open_bulk(const bench_case *scene)
{
    bulk_scene *bulk = bench_allocate(1, sizeof *bulk);
    bulk->entity_count = scene->entity_count;
    bulk->positions = bench_allocate(scene->entity_count, sizeof *bulk->positions);
    bulk->velocities = bench_allocate(scene->entity_count, sizeof *bulk->velocities);
    for (uint32_t i = 0; i < scene->entity_count; i++) {
        bulk->positions[i] = start_position(i);
        bulk->velocities[i] = start_velocity(i);
    }
    return bulk;
}

static void close_bulk(void *state)
{
    bulk_scene *bulk = state;
    free(bulk->positions);
    free(bulk->velocities);
    free(bulk);
}

/* --------------------------------------------------------------------------------------------- raw */

static void begin_raw(void *state)
{
    bulk_scene *bulk = state;
    raw_store_open(&bulk->store, RAW_MOVING);
}

static void run_raw(void *state, uint32_t pass_count)
{
    bulk_scene *bulk = state;
    raw_create_many_moving(&bulk->store, bulk->positions, bulk->velocities, bulk->entity_count);
}

static uint64_t checksum_raw(void *state)
{
    const bulk_scene *bulk = state;
    return raw_checksum_moving(&bulk->store.tables[RAW_MAIN]);
}

static void end_raw(void *state)
{
    bulk_scene *bulk = state;
    raw_store_close(&bulk->store);
}

/* ------------------------------------------------------------------------------------------- quern */

static void begin_quern(void *state)
{
    bulk_scene *bulk = state;
    bench_world_open(&bulk->bench);
}

static void run_quern(void *state, uint32_t pass_count)
{
    bulk_scene *bulk = state;
    const quern_component components[] = {bulk->bench.position, bulk->bench.velocity};
    const void *const columns[] = {bulk->positions, bulk->velocities};
    REQUIRE(quern_entity_create_many(bulk->bench.world, components, columns, 2, bulk->entity_count, NULL));
}

static uint64_t checksum_quern(void *state)
{
    bulk_scene *bulk = state;
    return bench_world_checksum_moving(&bulk->bench);
}

static void end_quern(void *state)
{
    bulk_scene *bulk = state;
    bench_world_close(&bulk->bench);
}

const bench_workload workload_create_bulk = {
    .name = "create_bulk",
    .summary = "create entities with Position and Velocity in one call, from arrays of values",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_bulk, begin_raw, run_raw, end_raw, checksum_raw, close_bulk, NULL},
            [BENCH_QUERN] = {open_bulk, begin_quern, run_quern, end_quern, checksum_quern, close_bulk,
                             NULL},
        },
};
