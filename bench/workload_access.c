/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Random access: Position of all entities with Position and Velocity is read in a shuffled order. get reads
 * one value by handle, get_many reads a list of handles, and ref reads by refs. In all three workloads the
 * control reads by handle, its fastest method that remains valid after structural changes. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

/* Number of handles in one call of quern_getter_get_many. */
enum { BATCH_COUNT = 256 };

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_access {
    raw_store store;
    uint32_t entity_count;
    raw_entity *entities; /* entities in the order in which they are visited */
    uint32_t bits_sum;
} raw_access;

static void *open_raw(const bench_case *scene)
{
    raw_access *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw_store_open(&raw->store, RAW_MOVING);
    raw_entity *created = bench_allocate(scene->entity_count, sizeof *created);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        created[i] = raw_create_moving(&raw->store, i);
    raw->entities = bench_allocate(scene->entity_count, sizeof *raw->entities);
    uint32_t *order = bench_shuffled_indices(scene->entity_count);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw->entities[i] = created[order[i]];
    free(order);
    free(created);
    return raw;
}

static uint32_t get_all_raw(const raw_store *store, const raw_entity *entities, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!raw_is_alive(store, entities[i])) continue;
        const raw_record record = store->records[(uint32_t)entities[i]];
        const Position *positions = raw_column(&store->tables[record.table], RAW_POSITION);
        sum += position_bits(&positions[record.row]);
    }
    return sum;
}

static void run_raw(void *state, uint32_t pass_count)
{
    raw_access *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw->bits_sum += get_all_raw(&raw->store, raw->entities, raw->entity_count);
}

static uint64_t bits_sum_raw(void *state)
{
    const raw_access *raw = state;
    return raw->bits_sum;
}

static void close_raw(void *state)
{
    raw_access *raw = state;
    raw_store_close(&raw->store);
    free(raw->entities);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct access_scene {
    bench_world bench;
    uint32_t entity_count;
    quern_entity *entities; /* entities in the order in which they are visited */
    quern_getter *getter;
    quern_ref *refs; /* refs to the entities, for the workload ref */
    uint32_t bits_sum;
} access_scene;

static void *open_quern(const bench_case *scene)
{
    access_scene *quern = bench_allocate(1, sizeof *quern);
    quern->entity_count = scene->entity_count;
    bench_world_open(&quern->bench);
    quern_entity *created = bench_allocate(scene->entity_count, sizeof *created);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        created[i] = bench_world_create_moving(&quern->bench, i);
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    uint32_t *order = bench_shuffled_indices(scene->entity_count);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        quern->entities[i] = created[order[i]];
    free(order);
    free(created);
    return quern;
}

static void *open_with_getter(const bench_case *scene, bool has_refs)
{
    access_scene *quern = open_quern(scene);
    const quern_getter_def def = {.component = quern->bench.position, .refs = has_refs};
    REQUIRE(quern_getter_create(quern->bench.world, &def, &quern->getter));
    return quern;
}

static void *open_get_many(const bench_case *scene)
{
    return open_with_getter(scene, false);
}

static void *open_ref(const bench_case *scene)
{
    access_scene *quern = open_with_getter(scene, true);
    quern->refs = bench_allocate(scene->entity_count, sizeof *quern->refs);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        quern->refs[i] = (quern_ref){.entity = quern->entities[i]};
    return quern;
}

static uint32_t get_all(quern_world *world, quern_component component, const quern_entity *entities,
                        uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const Position *position = quern_entity_get(world, entities[i], component);
        if (position == NULL) bench_die("quern_entity_get: %s", quern_error_message());
        sum += position_bits(position);
    }
    return sum;
}

static uint32_t get_all_many(const quern_getter *getter, const quern_entity *entities, uint32_t count)
{
    const void *values[BATCH_COUNT];
    uint32_t sum = 0;
    for (uint32_t first = 0, batch; first < count; first += batch) {
        batch = count - first < BATCH_COUNT ? count - first : BATCH_COUNT;
        if (quern_getter_get_many(getter, entities + first, batch, values) < batch)
            bench_die("quern_getter_get_many: %s", quern_error_message());
        for (uint32_t i = 0; i < batch; i++)
            sum += position_bits(values[i]);
    }
    return sum;
}

static uint32_t get_all_refs(const quern_getter *getter, quern_ref *refs, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const Position *position = quern_ref_get(getter, &refs[i]);
        if (position == NULL) bench_die("quern_ref_get: %s", quern_error_message());
        sum += position_bits(position);
    }
    return sum;
}

static void run_get(void *state, uint32_t pass_count)
{
    access_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        quern->bits_sum +=
            get_all(quern->bench.world, quern->bench.position, quern->entities, quern->entity_count);
}

static void run_get_many(void *state, uint32_t pass_count)
{
    access_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        quern->bits_sum += get_all_many(quern->getter, quern->entities, quern->entity_count);
}

static void run_ref(void *state, uint32_t pass_count)
{
    access_scene *quern = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        quern->bits_sum += get_all_refs(quern->getter, quern->refs, quern->entity_count);
}

static uint64_t bits_sum_quern(void *state)
{
    const access_scene *quern = state;
    return quern->bits_sum;
}

static void close_quern(void *state)
{
    access_scene *quern = state;
    quern_getter_destroy(quern->getter);
    bench_world_close(&quern->bench);
    free(quern->refs);
    free(quern->entities);
    free(quern);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_get = {
    .name = "get",
    .summary = "read Position through handles in a shuffled order",
    .unit = "read",
    .entity_counts = {1000000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, bits_sum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_get, NULL, bits_sum_quern, close_quern, NULL},
        },
};

const bench_workload workload_get_many = {
    .name = "get_many",
    .summary = "read Position through lists of 256 shuffled handles; raw: one by one",
    .unit = "read",
    .entity_counts = {1000000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, bits_sum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_get_many, NULL, run_get_many, NULL, bits_sum_quern, close_quern, NULL},
        },
};

const bench_workload workload_ref = {
    .name = "ref",
    .summary = "read Position through refs in a shuffled order; raw: through handles",
    .unit = "read",
    .entity_counts = {1000000},
    .single_thread = true,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, bits_sum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_ref, NULL, run_ref, NULL, bits_sum_quern, close_quern, NULL},
        },
};
