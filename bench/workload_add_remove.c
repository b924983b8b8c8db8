/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Components are added and removed by one call each, outside of frames. add_remove and add_two change an
 * entity and change it back before the next one; add_remove2 changes all entities and then changes all
 * back. All entities have Position and Velocity. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

static const Health added_health = {.points = 100, .maximum = 100};
static const Damage added_damage = {.attack = 7, .defence = 3};

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_scene {
    raw_store store;
    uint32_t entity_count;
    raw_entity *entities;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw->entities = bench_allocate(scene->entity_count, sizeof *raw->entities);
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < raw->entity_count; i++)
        raw->entities[i] = raw_create_moving(&raw->store, i);
    return raw;
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    return raw_checksum_moving(&raw->store.tables[RAW_MAIN]);
}

static void close_raw(void *state)
{
    raw_scene *raw = state;
    raw_store_close(&raw->store);
    free(raw->entities);
    free(raw);
}

/* Returns whether the entity is alive and not in the table. */
static bool can_move_to(const raw_store *store, raw_entity entity, uint32_t table)
{
    return raw_is_alive(store, entity) && store->records[(uint32_t)entity].table != table;
}

static void raw_add_health(raw_store *store, raw_entity entity)
{
    if (!can_move_to(store, entity, RAW_WITH_HEALTH)) return;
    const uint32_t row =
        raw_migrate(store, (uint32_t)entity, RAW_WITH_HEALTH, RAW_MOVING, RAW_MOVING_HEALTH);
    ((Health *)raw_column(&store->tables[RAW_WITH_HEALTH], RAW_HEALTH))[row] = added_health;
}

static void raw_remove_health(raw_store *store, raw_entity entity)
{
    if (!can_move_to(store, entity, RAW_MAIN)) return;
    raw_migrate(store, (uint32_t)entity, RAW_MAIN, RAW_MOVING_HEALTH, RAW_MOVING);
}

static void raw_add_damage(raw_store *store, raw_entity entity)
{
    if (!can_move_to(store, entity, RAW_WITH_HEALTH_DAMAGE)) return;
    const uint32_t row = raw_migrate(store, (uint32_t)entity, RAW_WITH_HEALTH_DAMAGE, RAW_MOVING_HEALTH,
                                     RAW_MOVING_HEALTH_DAMAGE);
    ((Damage *)raw_column(&store->tables[RAW_WITH_HEALTH_DAMAGE], RAW_DAMAGE))[row] = added_damage;
}

static void raw_remove_damage(raw_store *store, raw_entity entity)
{
    if (!can_move_to(store, entity, RAW_WITH_HEALTH)) return;
    raw_migrate(store, (uint32_t)entity, RAW_WITH_HEALTH, RAW_MOVING_HEALTH_DAMAGE, RAW_MOVING_HEALTH);
}

static void run_pairs_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < raw->entity_count; i++) {
            raw_add_health(&raw->store, raw->entities[i]);
            raw_remove_health(&raw->store, raw->entities[i]);
        }
    }
}

static void run_halves_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < raw->entity_count; i++)
            raw_add_health(&raw->store, raw->entities[i]);
        for (uint32_t i = 0; i < raw->entity_count; i++)
            raw_remove_health(&raw->store, raw->entities[i]);
    }
}

static void run_two_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < raw->entity_count; i++) {
            raw_add_health(&raw->store, raw->entities[i]);
            raw_add_damage(&raw->store, raw->entities[i]);
            raw_remove_damage(&raw->store, raw->entities[i]);
            raw_remove_health(&raw->store, raw->entities[i]);
        }
    }
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct quern_scene {
    bench_world bench;
    uint32_t entity_count;
    quern_entity *entities;
} quern_scene;

static void *open_quern(const bench_case *scene)
{
    quern_scene *quern = bench_allocate(1, sizeof *quern);
    quern->entity_count = scene->entity_count;
    quern->entities = bench_allocate(scene->entity_count, sizeof *quern->entities);
    bench_world_open(&quern->bench);
    for (uint32_t i = 0; i < quern->entity_count; i++)
        quern->entities[i] = bench_world_create_moving(&quern->bench, i);
    return quern;
}

static uint64_t checksum_quern(void *state)
{
    quern_scene *quern = state;
    return bench_world_checksum_moving(&quern->bench);
}

static void close_quern(void *state)
{
    quern_scene *quern = state;
    bench_world_close(&quern->bench);
    free(quern->entities);
    free(quern);
}

static void run_pairs_quern(void *state, uint32_t pass_count)
{
    const quern_scene *quern = state;
    quern_world *world = quern->bench.world;
    const quern_component health = quern->bench.health;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < quern->entity_count; i++) {
            REQUIRE(quern_entity_add(world, quern->entities[i], health, &added_health));
            REQUIRE(quern_entity_remove(world, quern->entities[i], health));
        }
    }
}

static void run_halves_quern(void *state, uint32_t pass_count)
{
    const quern_scene *quern = state;
    quern_world *world = quern->bench.world;
    const quern_component health = quern->bench.health;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < quern->entity_count; i++)
            REQUIRE(quern_entity_add(world, quern->entities[i], health, &added_health));
        for (uint32_t i = 0; i < quern->entity_count; i++)
            REQUIRE(quern_entity_remove(world, quern->entities[i], health));
    }
}

static void run_two_quern(void *state, uint32_t pass_count)
{
    const quern_scene *quern = state;
    quern_world *world = quern->bench.world;
    const quern_component health = quern->bench.health, damage = quern->bench.damage;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        for (uint32_t i = 0; i < quern->entity_count; i++) {
            REQUIRE(quern_entity_add(world, quern->entities[i], health, &added_health));
            REQUIRE(quern_entity_add(world, quern->entities[i], damage, &added_damage));
            REQUIRE(quern_entity_remove(world, quern->entities[i], damage));
            REQUIRE(quern_entity_remove(world, quern->entities[i], health));
        }
    }
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_add_remove = {
    .name = "add_remove",
    .summary = "for each entity in turn: add a third component, then remove it",
    .unit = "pair",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_pairs_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_pairs_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_add_remove2 = {
    .name = "add_remove2",
    .summary = "add a third component to all entities, one call each, then remove it from all",
    .unit = "pair",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_halves_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_halves_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_add_two = {
    .name = "add_two",
    .summary = "for each entity in turn: add a third and a fourth component, then remove both",
    .unit = "entity",
    .entity_counts = {100000},
    .single_thread = true,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_two_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_two_quern, NULL, checksum_quern, close_quern, NULL},
        },
};
