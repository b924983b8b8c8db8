/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* add_query: one component more for all entities, in one call. The control allocates one more array and
 * fills it. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

static const Health added_health = {.points = 100, .maximum = 100};

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_scene {
    raw_store store;
    uint32_t entity_count;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    return raw;
}

static void fill_raw(void *state)
{
    raw_scene *raw = state;
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < raw->entity_count; i++)
        raw_create_moving(&raw->store, i);
}

static void run_raw(void *state, uint32_t pass_count)
{
    (void)pass_count;
    raw_scene *raw = state;
    raw_table *table = &raw->store.tables[RAW_MAIN];
    Health *healths = malloc(table->capacity * sizeof *healths);
    if (healths == NULL) bench_die("out of memory");
    for (uint32_t i = 0; i < table->count; i++)
        healths[i] = added_health;
    table->columns[RAW_HEALTH] = (char *)healths;
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    const raw_table *table = &raw->store.tables[RAW_MAIN];
    return raw_checksum_moving(table) + table->count;
}

static void empty_raw(void *state)
{
    raw_scene *raw = state;
    raw_store_close(&raw->store);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct query_scene {
    bench_world bench;
    quern_query *query;
    uint32_t entity_count;
    uint64_t added_count;
} query_scene;

static void *open_quern(const bench_case *scene)
{
    query_scene *quern = bench_allocate(1, sizeof *quern);
    quern->entity_count = scene->entity_count;
    return quern;
}

static void fill_quern(void *state)
{
    query_scene *quern = state;
    bench_world_open(&quern->bench);
    for (uint32_t i = 0; i < quern->entity_count; i++)
        bench_world_create_moving(&quern->bench, i);
    const quern_term term = quern_term_with(quern->bench.position);
    quern->query = bench_world_query(&quern->bench, &term, 1);
}

static void run_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    query_scene *quern = state;
    REQUIRE(
        quern_query_add_component(quern->query, quern->bench.health, &added_health, &quern->added_count));
}

static uint64_t checksum_quern(void *state)
{
    query_scene *quern = state;
    return bench_world_checksum_moving(&quern->bench) + quern->added_count;
}

static void empty_quern(void *state)
{
    query_scene *quern = state;
    quern_query_destroy(quern->query);
    bench_world_close(&quern->bench);
}

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
            [BENCH_RAW] = {open_raw, fill_raw, run_raw, empty_raw, checksum_raw, free, NULL},
            [BENCH_QUERN] = {open_quern, fill_quern, run_quern, empty_quern, checksum_quern, free, NULL},
        },
};
