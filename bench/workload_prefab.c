/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* prefab_spawn: towers of a base and three parts are spawned in a new world from one blueprint: in one call,
 * one by one, or by commands. All have Position, Velocity, Rotation and Health, and each part knows its
 * base.
 *
 * The control keeps its arrays from pass to pass, and worlds reuse the memory of earlier worlds, so that the
 * cost of fresh pages is not measured. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { PART_COUNT = 3 };

/* The start values of an entity of the tower. */
typedef struct blueprint {
    Position position;
    Velocity velocity;
    Rotation rotation;
    Health health;
} blueprint;

static blueprint blueprint_of(uint32_t member)
{
    return (blueprint){start_position(member), start_velocity(member), start_rotation(),
                       start_health(member)};
}

static uint64_t hash_member(const Position *position, const Velocity *velocity, const Rotation *rotation,
                            const Health *health, const Position *base)
{
    uint64_t hash = hash_moving(position, velocity) + hash_rotation(rotation) + hash_health(health);
    if (base != NULL) hash ^= hash_floats(base->x, base->y + base->z);
    return hash_mix(hash);
}

/* --------------------------------------------------------------------------------------------- raw */

/* A table with one array per component. Bases and their parts are in separate tables. */
typedef struct raw_table {
    Position *positions;
    Velocity *velocities;
    Rotation *rotations;
    Health *healths;
    uint64_t *entities;
    uint32_t *parents; /* bases of parts, as entity indices; unused in the table of bases */
} raw_table;

typedef struct raw_location {
    uint32_t table, row, generation;
} raw_location;

typedef struct raw_towers {
    uint32_t tower_count;
    raw_table bases, parts;
    raw_location *locations; /* tables and rows of the entities, by entity index */
} raw_towers;

static void open_table(raw_table *table, size_t count)
{
    table->positions = bench_allocate_fresh(count * sizeof *table->positions);
    table->velocities = bench_allocate_fresh(count * sizeof *table->velocities);
    table->rotations = bench_allocate_fresh(count * sizeof *table->rotations);
    table->healths = bench_allocate_fresh(count * sizeof *table->healths);
    table->entities = bench_allocate_fresh(count * sizeof *table->entities);
    table->parents = bench_allocate_fresh(count * sizeof *table->parents);
}

static void close_table(const raw_table *table)
{
    free(table->positions);
    free(table->velocities);
    free(table->rotations);
    free(table->healths);
    free(table->entities);
    free(table->parents);
}

static void *open_raw(const bench_case *scene)
{
    raw_towers *towers = bench_allocate(1, sizeof *towers);
    towers->tower_count = scene->entity_count;
    open_table(&towers->bases, towers->tower_count);
    open_table(&towers->parts, (size_t)towers->tower_count * PART_COUNT);
    towers->locations =
        bench_allocate_fresh((size_t)towers->tower_count * (1 + PART_COUNT) * sizeof *towers->locations);
    return towers;
}

/* The parts of a blueprint, in one array per component as in a table. */
typedef struct raw_blueprint {
    Position positions[PART_COUNT];
    Velocity velocities[PART_COUNT];
    Rotation rotations[PART_COUNT];
    Health healths[PART_COUNT];
} raw_blueprint;

static raw_blueprint rows_of(uint32_t first_member, uint32_t count)
{
    raw_blueprint rows;
    for (uint32_t i = 0; i < count; i++) {
        const blueprint member = blueprint_of(first_member + i);
        rows.positions[i] = member.position;
        rows.velocities[i] = member.velocity;
        rows.rotations[i] = member.rotation;
        rows.healths[i] = member.health;
    }
    return rows;
}

static inline __attribute__((always_inline)) void raw_spawn(raw_towers *towers, raw_table *table,
                                                            uint32_t table_index, const raw_blueprint *rows,
                                                            uint32_t first, uint32_t count, uint32_t entity,
                                                            uint32_t parent)
{
    memcpy(table->positions + first, rows->positions, count * sizeof *rows->positions);
    memcpy(table->velocities + first, rows->velocities, count * sizeof *rows->velocities);
    memcpy(table->rotations + first, rows->rotations, count * sizeof *rows->rotations);
    memcpy(table->healths + first, rows->healths, count * sizeof *rows->healths);
    for (uint32_t i = 0; i < count; i++) {
        table->entities[first + i] = 1ull << 32 | (entity + i);
        table->parents[first + i] = parent;
        towers->locations[entity + i] = (raw_location){table_index, first + i, 1};
    }
}

static void run_raw(void *state, uint32_t pass)
{
    raw_towers *towers = state;
    const raw_blueprint base = rows_of(0, 1), parts = rows_of(1, PART_COUNT);
    for (uint32_t i = 0; i < towers->tower_count; i++) {
        const uint32_t entity = i * (1 + PART_COUNT);
        raw_spawn(towers, &towers->bases, 0, &base, i, 1, entity, UINT32_MAX);
        raw_spawn(towers, &towers->parts, 1, &parts, i * PART_COUNT, PART_COUNT, entity + 1, entity);
    }
}

static uint64_t hash_row(const raw_table *table, size_t row, const Position *base)
{
    return hash_member(&table->positions[row], &table->velocities[row], &table->rotations[row],
                       &table->healths[row], base);
}

static uint64_t checksum_raw(void *state)
{
    const raw_towers *towers = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < towers->tower_count; i++)
        sum += hash_row(&towers->bases, i, NULL);
    for (size_t i = 0; i < (size_t)towers->tower_count * PART_COUNT; i++) {
        const raw_location *base = &towers->locations[towers->parts.parents[i]];
        sum += hash_row(&towers->parts, i, &towers->bases.positions[base->row]);
    }
    return sum;
}

static void close_raw(void *state)
{
    raw_towers *towers = state;
    close_table(&towers->bases);
    close_table(&towers->parts);
    free(towers->locations);
    free(towers);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct tower_scene {
    uint32_t tower_count;
    bench_blocks blocks;
    bench_world bench;
    quern_prefab prefab;
} tower_scene;

static void *open_quern(const bench_case *scene)
{
    tower_scene *towers = bench_allocate(1, sizeof *towers);
    towers->tower_count = scene->entity_count;
    return towers;
}

static void close_quern(void *state)
{
    tower_scene *towers = state;
    bench_blocks_release(&towers->blocks);
    free(towers);
}

static quern_entity build_member(const bench_world *bench, uint32_t member)
{
    const blueprint values = blueprint_of(member);
    const quern_component components[] = {bench->position, bench->velocity, bench->rotation, bench->health};
    const void *const columns[] = {&values.position, &values.velocity, &values.rotation, &values.health};
    quern_entity entity;
    REQUIRE(quern_entity_create_with(bench->world, components, columns, 4, &entity));
    return entity;
}

/* Creates a world that has only the prefab. */
static void begin_quern(void *state)
{
    tower_scene *towers = state;
    const quern_world_def def = {.allocator = bench_blocks_allocator(&towers->blocks)};
    bench_world_open_with(&towers->bench, &def);
    quern_world *world = towers->bench.world;
    const quern_relation parent = quern_world_parent(world);
    quern_entity members[1 + PART_COUNT];
    for (uint32_t i = 0; i < 1 + PART_COUNT; i++) {
        members[i] = build_member(&towers->bench, i);
        if (i > 0) REQUIRE(quern_entity_relate(world, members[i], parent, members[0]));
    }
    REQUIRE(quern_prefab_capture(world, members[0], &towers->prefab));
    for (uint32_t i = 1 + PART_COUNT; i-- > 0;)
        REQUIRE(quern_entity_destroy(world, members[i]));
}

static void run_bulk(void *state, uint32_t pass)
{
    const tower_scene *towers = state;
    REQUIRE(quern_prefab_spawn_many(towers->bench.world, towers->prefab, towers->tower_count, NULL, NULL,
                                    NULL));
}

static void run_single(void *state, uint32_t pass)
{
    const tower_scene *towers = state;
    for (uint32_t i = 0; i < towers->tower_count; i++)
        REQUIRE(quern_prefab_spawn(towers->bench.world, towers->prefab, NULL, NULL));
}

static void run_command(void *state, uint32_t pass)
{
    const tower_scene *towers = state;
    quern_commands *commands = quern_world_commands(towers->bench.world);
    for (uint32_t i = 0; i < towers->tower_count; i++)
        REQUIRE(quern_commands_spawn(commands, towers->prefab, NULL, NULL));
    REQUIRE(quern_world_flush(towers->bench.world));
}

static uint64_t checksum_view(const quern_world *world, quern_component position, const quern_view *view)
{
    uint64_t sum = 0;
    const Position *positions = quern_view_read(view, 0);
    const Velocity *velocities = quern_view_read(view, 1);
    const Rotation *rotations = quern_view_read(view, 2);
    const Health *healths = quern_view_read(view, 3);
    const quern_entity *bases = quern_view_read(view, 4); /* NULL: the rows are bases, not parts */
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Position *base = NULL;
        if (bases != NULL) base = quern_entity_get((quern_world *)(uintptr_t)world, bases[i], position);
        sum += hash_member(&positions[i], &velocities[i], &rotations[i], &healths[i], base);
    }
    return sum;
}

static uint64_t checksum_quern(void *state)
{
    tower_scene *towers = state;
    bench_world *bench = &towers->bench;
    const quern_component parent = quern_relation_component(quern_world_parent(bench->world));
    const quern_term terms[] = {quern_term_read(bench->position), quern_term_read(bench->velocity),
                                quern_term_read(bench->rotation), quern_term_read(bench->health),
                                quern_term_optional(parent, QUERN_ACCESS_READ)};
    quern_query *query = bench_world_query(bench, terms, 5);
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += checksum_view(bench->world, bench->position, &it.view);
    REQUIRE(it.result);
    quern_query_destroy(query);
    return sum;
}

static void end_quern(void *state)
{
    tower_scene *towers = state;
    bench_world_close(&towers->bench);
}

const bench_workload workload_prefab_spawn = {
    .name = "prefab_spawn",
    .summary = "spawn towers of 4 entities with 4 components from a prefab, in a new world",
    .unit = "tower",
    .entity_counts = {25000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            {open_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            {open_quern, begin_quern, run_bulk, end_quern, checksum_quern, close_quern, NULL},
            {open_quern, begin_quern, run_single, end_quern, checksum_quern, close_quern, NULL},
            {open_quern, begin_quern, run_command, end_quern, checksum_quern, close_quern, NULL},
        },
    .subject_names = {"raw", "quern", "single", "command"},
};
