/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* accumulate: for each entity, a system adds to the Damage of ten random entities by commands, and the sync
 * point combines the values. The control writes values and handles into an array, and then adds the values
 * in order. It uses one thread, also in cases with more. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { TARGETS_PER_ENTITY = 10 };

/* Returns random targets, to be released with free(). The i-th entity has TARGETS_PER_ENTITY of them, from
 * index i * TARGETS_PER_ENTITY on. */
static uint32_t *random_targets(uint32_t entity_count)
{
    const uint32_t count = entity_count * TARGETS_PER_ENTITY;
    uint32_t *targets = bench_allocate(count, sizeof *targets);
    for (uint32_t i = 0; i < count; i++)
        targets[i] = (uint32_t)(hash_mix(i + 1) % entity_count);
    return targets;
}

static inline Damage damage_of(uint32_t i)
{
    return (Damage){.attack = (int32_t)(i % 100u), .defence = 1};
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_addition {
    raw_entity entity;
    Damage damage;
} raw_addition;

typedef struct raw_scene {
    raw_store store;
    uint32_t entity_count;
    raw_entity *entities;
    Damage *damages; /* indexed by row */
    uint32_t *targets;
    raw_addition *additions;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    raw->entity_count = scene->entity_count;
    raw->targets = random_targets(scene->entity_count);
    raw->entities = bench_allocate(scene->entity_count, sizeof *raw->entities);
    raw->damages = bench_allocate(scene->entity_count, sizeof *raw->damages);
    raw->additions =
        bench_allocate((size_t)scene->entity_count * TARGETS_PER_ENTITY, sizeof *raw->additions);
    raw_store_open(&raw->store, RAW_MOVING);
    for (uint32_t i = 0; i < scene->entity_count; i++)
        raw->entities[i] = raw_create_moving(&raw->store, i);
    return raw;
}

static void run_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < raw->entity_count * TARGETS_PER_ENTITY; i++) {
            const raw_entity target = raw->entities[raw->targets[i]];
            if (raw_is_alive(&raw->store, target))
                raw->additions[count++] = (raw_addition){target, damage_of(i)};
        }
        for (uint32_t i = 0; i < count; i++) {
            const raw_addition *addition = &raw->additions[i];
            if (!raw_is_alive(&raw->store, addition->entity)) continue;
            Damage *damage = &raw->damages[raw->store.records[(uint32_t)addition->entity].row];
            damage->attack += addition->damage.attack;
            damage->defence += addition->damage.defence;
        }
    }
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->entity_count; i++)
        sum += hash_mix(i + 1) * hash_damage(&raw->damages[i]);
    return sum;
}

static void close_raw(void *state)
{
    raw_scene *raw = state;
    raw_store_close(&raw->store);
    free(raw->entities);
    free(raw->damages);
    free(raw->targets);
    free(raw->additions);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct accumulate_scene {
    quern_world *world;
    quern_component damage;
    quern_schedule *schedule;
    quern_jobs *jobs;
    uint32_t entity_count;
    quern_entity *entities;
    uint32_t *targets;
} accumulate_scene;

static void hit(quern_context *context, const quern_view *view)
{
    const accumulate_scene *scene = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const uint32_t first = quern_entity_index(scene->entities[0]);
    const uint32_t count = view->count;
    for (uint32_t row = 0; row < count; row++) {
        const uint32_t begin = (quern_entity_index(view->entities[row]) - first) * TARGETS_PER_ENTITY;
        for (uint32_t i = begin; i < begin + TARGETS_PER_ENTITY; i++) {
            const Damage damage = damage_of(i);
            REQUIRE(quern_commands_accumulate(commands, scene->entities[scene->targets[i]], scene->damage,
                                              &damage, QUERN_SUM));
        }
    }
}

static void *open_quern(const bench_case *size)
{
    accumulate_scene *scene = bench_allocate(1, sizeof *scene);
    scene->entity_count = size->entity_count;
    scene->targets = random_targets(size->entity_count);
    scene->entities = bench_allocate(size->entity_count, sizeof *scene->entities);
    REQUIRE(quern_world_create(NULL, &scene->world));
    REQUIRE(QUERN_COMPONENT_REGISTER_FIELDS(scene->world, &scene->damage, Damage, attack, defence));
    REQUIRE(quern_entity_create_many(scene->world, &scene->damage, NULL, 1, size->entity_count,
                                     scene->entities));
    scene->jobs = bench_jobs_create(size->thread_count);
    REQUIRE(quern_schedule_create(scene->world, NULL, &scene->schedule));
    quern_bench_set_schedule(scene->schedule);
    const quern_system_def def = {
        .name = "hit", .run = hit, .terms = {quern_term_with(scene->damage)}, .user_data = scene};
    REQUIRE(quern_schedule_add_system(scene->schedule, &def, NULL));
    return scene;
}

static void enter_quern(void *state)
{
    const accumulate_scene *scene = state;
    bench_jobs_wake(scene->jobs);
}

static void run_quern(void *state, uint32_t frame_count)
{
    const accumulate_scene *scene = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        REQUIRE(quern_schedule_run(scene->schedule, scene->jobs, (double)STEP_SECONDS));
}

static quern_result capture_frame(void *state, struct quern_frame_capture *capture)
{
    const accumulate_scene *scene = state;
    return quern_schedule_run_captured(scene->schedule, scene->jobs, (double)STEP_SECONDS, capture);
}

static uint64_t checksum_quern(void *state)
{
    const accumulate_scene *scene = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scene->entity_count; i++)
        sum += hash_mix(i + 1) *
               hash_damage(quern_entity_get(scene->world, scene->entities[i], scene->damage));
    return sum;
}

static void close_quern(void *state)
{
    accumulate_scene *scene = state;
    quern_schedule_destroy(scene->schedule);
    quern_jobs_destroy(scene->jobs);
    quern_world_destroy(scene->world);
    free(scene->entities);
    free(scene->targets);
    free(scene);
}

/* --------------------------------------------------------------------------------------- workloads */

static uint64_t ten_operations(uint32_t entity_count)
{
    return (uint64_t)TARGETS_PER_ENTITY * entity_count;
}

const bench_workload workload_accumulate = {
    .name = "accumulate",
    .summary = "for each entity, add to Damage of ten random entities by commands, and apply them",
    .unit = "addition",
    .entity_counts = {100000},
    .pass_count = bench_passes_of_1m,
    .operation_count = ten_operations,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern,
                             capture_frame},
        },
};
