/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* iter_frag26, iter_frag_many and iter_arch10000: the loop of iter over entities with many component sets.
 *
 *     iter_frag26     26 further components of 4 bytes; each entity has one of them
 *     iter_frag_many  all 4096 combinations of 12 tags; 8 entities have each of them
 *     iter_arch10000  10,000 combinations of 14 tags; 10 entities have each of them
 *
 * raw has a table for each set, without the further components and tags. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { FEW_PARTS = 26, TAG_COUNT = 12, MANY_PARTS = 1 << TAG_COUNT, MANY_PART_ROWS = 8, NAME_BYTES = 16 };
enum { MOST_PARTS = 10000, MOST_TAGS = 14, MOST_PART_ROWS = 10 };

/* Returns the index of the first entity of a part; for part = part_count, the number of entities. */
static uint32_t first_of_part(uint32_t entity_count, uint32_t part, uint32_t part_count)
{
    return (uint32_t)((uint64_t)entity_count * part / part_count);
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_frag {
    raw_store store;
    raw_table *parts;
    uint32_t part_count;
} raw_frag;

static void *open_raw(const bench_case *scene, uint32_t part_count)
{
    raw_frag *frag = bench_allocate(1, sizeof *frag);
    frag->parts = bench_allocate(part_count, sizeof *frag->parts);
    frag->part_count = part_count;
    raw_store_open(&frag->store, RAW_MOVING);
    uint32_t i = 0;
    for (uint32_t part = 0; part < part_count; part++) {
        for (; i < first_of_part(scene->entity_count, part + 1, part_count); i++)
            raw_create_moving(&frag->store, i);
        frag->parts[part] = raw_store_take_main(&frag->store);
    }
    return frag;
}

static void *open_few_raw(const bench_case *scene)
{
    return open_raw(scene, FEW_PARTS);
}

static void *open_many_raw(const bench_case *scene)
{
    return open_raw(scene, MANY_PARTS);
}

static void *open_most_raw(const bench_case *scene)
{
    return open_raw(scene, MOST_PARTS);
}

static void run_raw(void *state, uint32_t pass_count)
{
    const raw_frag *frag = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t part = 0; part < frag->part_count; part++) {
            const raw_table *table = &frag->parts[part];
            kernel_move(raw_column(table, RAW_POSITION), raw_column(table, RAW_VELOCITY), table->count);
        }
    }
}

static uint64_t checksum_raw(void *state)
{
    const raw_frag *frag = state;
    uint64_t sum = 0;
    for (uint32_t part = 0; part < frag->part_count; part++)
        sum += raw_checksum_moving(&frag->parts[part]);
    return sum;
}

static void close_raw(void *state)
{
    raw_frag *frag = state;
    for (uint32_t part = 0; part < frag->part_count; part++)
        raw_table_close(&frag->parts[part]);
    raw_store_close(&frag->store);
    free(frag->parts);
    free(frag);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct frag_scene {
    bench_world bench;
    quern_query *query;
    quern_schedule *schedule; /* with the system "move"; NULL: the query is iterated */
    quern_component extras[FEW_PARTS];
} frag_scene;

static void register_extras(frag_scene *frag, uint32_t count, uint32_t size_bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "Extra%u", i);
        const quern_component_def def = {
            .name = name, .size_bytes = size_bytes, .alignment_bytes = size_bytes};
        REQUIRE(quern_component_register(frag->bench.world, &def, &frag->extras[i]));
    }
}

/* Creates an entity with Position, Velocity and, for each bit in the mask, the further component with this
 * number. */
static void create_entity(frag_scene *frag, uint32_t seed, uint32_t mask)
{
    const Position position = start_position(seed);
    const Velocity velocity = start_velocity(seed);
    quern_component components[2 + FEW_PARTS] = {frag->bench.position, frag->bench.velocity};
    const void *values[2 + FEW_PARTS] = {&position, &velocity};
    uint32_t count = 2;
    for (uint32_t i = 0; i < FEW_PARTS; i++)
        if (mask >> i & 1) components[count++] = frag->extras[i];
    REQUIRE(quern_entity_create_with(frag->bench.world, components, values, count, NULL));
}

static frag_scene *open_quern(uint32_t extra_count, uint32_t extra_bytes)
{
    frag_scene *frag = bench_allocate(1, sizeof *frag);
    bench_world_open(&frag->bench);
    register_extras(frag, extra_count, extra_bytes);
    const quern_term terms[] = {quern_term_write(frag->bench.position),
                                quern_term_read(frag->bench.velocity)};
    frag->query = bench_world_query(&frag->bench, terms, 2);
    return frag;
}

static void *open_few_quern(const bench_case *scene)
{
    frag_scene *frag = open_quern(FEW_PARTS, 4);
    uint32_t i = 0;
    for (uint32_t part = 0; part < FEW_PARTS; part++)
        for (; i < first_of_part(scene->entity_count, part + 1, FEW_PARTS); i++)
            create_entity(frag, i, 1u << part);
    return frag;
}

static void *open_many_quern(const bench_case *scene)
{
    frag_scene *frag = open_quern(TAG_COUNT, 0);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_entity(frag, i, i / MANY_PART_ROWS);
    return frag;
}

static void *open_most_quern(const bench_case *scene)
{
    frag_scene *frag = open_quern(MOST_TAGS, 0);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        create_entity(frag, i, i / MOST_PART_ROWS);
    return frag;
}

static void *open_most_system(const bench_case *scene)
{
    frag_scene *frag = open_most_quern(scene);
    REQUIRE(quern_schedule_create(frag->bench.world, NULL, &frag->schedule));
    bench_add_move(frag->schedule, &frag->bench);
    return frag;
}

static void run_system(void *state, uint32_t pass_count)
{
    const frag_scene *frag = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_schedule_run(frag->schedule, NULL, (double)STEP_SECONDS));
}

static void run_quern(void *state, uint32_t pass_count)
{
    const frag_scene *frag = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_query_iterator it = quern_query_iterate(frag->query);
        while (quern_query_next(&it))
            kernel_move(quern_view_write(&it.view, 0), quern_view_read(&it.view, 1), it.view.count);
        REQUIRE(it.result);
    }
}

static uint64_t checksum_quern(void *state)
{
    frag_scene *frag = state;
    return bench_world_checksum_moving(&frag->bench);
}

static void close_quern(void *state)
{
    frag_scene *frag = state;
    quern_schedule_destroy(frag->schedule);
    quern_query_destroy(frag->query);
    bench_world_close(&frag->bench);
    free(frag);
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_iter_frag26 = {
    .name = "iter_frag26",
    .summary = "position += velocity * step over 26 component sets",
    .unit = "entity",
    .entity_counts = {1000000},
    .single_thread = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity),
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_few_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_few_quern, NULL, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_iter_frag_many = {
    .name = "iter_frag_many",
    .summary = "position += velocity * step over 4096 component sets of 8 entities each",
    .unit = "entity",
    .entity_counts = {MANY_PARTS * MANY_PART_ROWS},
    .fixed_size = true,
    .single_thread = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity),
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_many_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_many_quern, NULL, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_iter_arch10000 = {
    .name = "iter_arch10000",
    .summary = "position += velocity * step over 10,000 component sets of 10 entities each, by a system",
    .unit = "entity",
    .entity_counts = {MOST_PARTS * MOST_PART_ROWS},
    .fixed_size = true,
    .single_thread = true,
    .bytes_per_entity = sizeof(Position) + sizeof(Velocity),
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_most_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_most_system, NULL, run_system, NULL, checksum_quern, close_quern, NULL},
            {open_most_quern, NULL, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "query"},
};
