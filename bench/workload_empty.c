/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* frame_empty0 and frame_empty1: the cost of a frame without work. A hundred systems each have a component
 * of their own, which no entity or exactly one entity has. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { SYSTEM_COUNT = 100, FRAMES_PER_SAMPLE = 2000 };

static uint32_t pass_count(uint32_t entity_count)
{
    return FRAMES_PER_SAMPLE;
}

typedef struct Slot {
    float value;
} Slot;

static void increment_all(Slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        slots[i].value += 1.0f;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef void raw_system(Slot *slots, size_t count);

/* The control: a hundred calls through a table. It uses one thread, also in cases with more, because more
 * threads would not make it faster. */
typedef struct raw_empty {
    Slot slots[SYSTEM_COUNT];
    size_t counts[SYSTEM_COUNT];
    raw_system *volatile systems[SYSTEM_COUNT]; /* volatile: the calls must not be inlined */
} raw_empty;

static void *open_raw(const bench_case *scene)
{
    raw_empty *empty = bench_allocate(1, sizeof *empty);
    for (uint32_t i = 0; i < SYSTEM_COUNT; i++) {
        empty->counts[i] = i < scene->entity_count ? 1 : 0;
        empty->systems[i] = increment_all;
    }
    return empty;
}

static void run_raw(void *state, uint32_t frame_count)
{
    raw_empty *empty = state;
    for (uint32_t frame = 0; frame < frame_count; frame++) {
        for (uint32_t i = 0; i < SYSTEM_COUNT; i++)
            empty->systems[i](&empty->slots[i], empty->counts[i]);
    }
}

static uint64_t checksum_raw(void *state)
{
    const raw_empty *empty = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SYSTEM_COUNT; i++)
        sum += (uint64_t)empty->slots[i].value;
    return sum;
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct empty_scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    uint32_t entity_count;
    quern_component slots[SYSTEM_COUNT];
    quern_entity entities[SYSTEM_COUNT]; /* the first entity_count elements are used */
} empty_scene;

static void increment(quern_context *context, const quern_view *view)
{
    increment_all(quern_view_write(view, 0), view->count);
}

static void register_slot(empty_scene *empty, uint32_t i)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    snprintf(name, sizeof name, "Slot%u", i);
    quern_component_def def = {.name = name, .size_bytes = sizeof(Slot), .alignment_bytes = _Alignof(Slot)};
    REQUIRE(quern_component_register(empty->world, &def, &empty->slots[i]));
}

static void add_increment(empty_scene *empty, uint32_t i)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    snprintf(name, sizeof name, "increment%u", i);
    bench_add_writer(empty->schedule, name, increment, empty->slots[i], (quern_component){0});
}

static void *open_quern(const bench_case *scene)
{
    empty_scene *empty = bench_allocate(1, sizeof *empty);
    empty->entity_count = scene->entity_count;
    REQUIRE(quern_world_create(NULL, &empty->world));
    REQUIRE(quern_schedule_create(empty->world, NULL, &empty->schedule));
    for (uint32_t i = 0; i < SYSTEM_COUNT; i++) {
        register_slot(empty, i);
        add_increment(empty, i);
        if (i >= empty->entity_count) continue;
        REQUIRE(quern_entity_create_with(empty->world, &empty->slots[i], NULL, 1, &empty->entities[i]));
    }
    empty->jobs = bench_jobs_create(scene->thread_count);
    return empty;
}

static void enter_quern(void *state)
{
    const empty_scene *empty = state;
    bench_jobs_wake(empty->jobs);
}

static void run_quern(void *state, uint32_t frame_count)
{
    const empty_scene *empty = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        REQUIRE(quern_schedule_run(empty->schedule, empty->jobs, (double)STEP_SECONDS));
}

static uint64_t checksum_quern(void *state)
{
    const empty_scene *empty = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < empty->entity_count; i++) {
        const Slot *slot = quern_entity_get(empty->world, empty->entities[i], empty->slots[i]);
        if (slot == NULL) bench_die("quern_entity_get: %s", quern_error_message());
        sum += (uint64_t)slot->value;
    }
    return sum;
}

static void close_quern(void *state)
{
    empty_scene *empty = state;
    quern_schedule_destroy(empty->schedule);
    quern_jobs_destroy(empty->jobs);
    quern_world_destroy(empty->world);
    free(empty);
}

const bench_workload workload_frame_empty0 = {
    .name = "frame_empty0",
    .summary = "a hundred systems that match nothing",
    .unit = "frame",
    .entity_counts = {0},
    .fixed_size = true,
    .frames = true,
    .pass_count = pass_count,
    .operation_count = bench_operations_per_frame,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, checksum_raw, free, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_frame_empty1 = {
    .name = "frame_empty1",
    .summary = "a hundred systems that match one entity each",
    .unit = "frame",
    .entity_counts = {SYSTEM_COUNT},
    .fixed_size = true,
    .frames = true,
    .pass_count = pass_count,
    .operation_count = bench_operations_per_frame,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, checksum_raw, free, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};
