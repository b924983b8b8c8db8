/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* sync_empty: sync points without work, in a frame of QUERN_MAX_PHASES phases without systems. The control
 * reads one word of memory for each sync point. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { PHASE_COUNT = QUERN_MAX_PHASES, FRAMES_PER_SAMPLE = 20000 };

static uint32_t pass_count(uint32_t entity_count)
{
    return FRAMES_PER_SAMPLE;
}

static uint64_t operation_count(uint32_t entity_count)
{
    return PHASE_COUNT;
}

static uint64_t no_checksum(void *state)
{
    return 0;
}

/* --------------------------------------------------------------------------------------------- raw */

static void *open_raw(const bench_case *scene)
{
    return bench_allocate(1, sizeof(volatile uint32_t));
}

static void run_raw(void *state, uint32_t frame_count)
{
    const volatile uint32_t *recorded_count = state;
    for (uint32_t i = 0; i < frame_count * PHASE_COUNT; i++)
        if (*recorded_count > 0) bench_die("sync_empty: the control has recorded commands");
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct sync_scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
} sync_scene;

static void *open_quern(const bench_case *scene)
{
    static const quern_schedule_def def = {
        .phases = {"p0",  "p1",  "p2",  "p3",  "p4",  "p5",  "p6",  "p7",  "p8",  "p9",  "p10",
                   "p11", "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19", "p20", "p21",
                   "p22", "p23", "p24", "p25", "p26", "p27", "p28", "p29", "p30", "p31"}};
    sync_scene *sync = bench_allocate(1, sizeof *sync);
    REQUIRE(quern_world_create(NULL, &sync->world));
    REQUIRE(quern_schedule_create(sync->world, &def, &sync->schedule));
    sync->jobs = bench_jobs_create(scene->thread_count);
    return sync;
}

static void run_quern(void *state, uint32_t frame_count)
{
    const sync_scene *sync = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        REQUIRE(quern_schedule_run(sync->schedule, sync->jobs, 0.01));
}

static void close_quern(void *state)
{
    sync_scene *sync = state;
    quern_schedule_destroy(sync->schedule);
    quern_jobs_destroy(sync->jobs);
    quern_world_destroy(sync->world);
    free(sync);
}

const bench_workload workload_sync_empty = {
    .name = "sync_empty",
    .summary = "sync points without commands",
    .unit = "sync point",
    .entity_counts = {1},
    .fixed_size = true,
    .pass_count = pass_count,
    .operation_count = operation_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, no_checksum, free, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run_quern, NULL, no_checksum, close_quern, NULL},
        },
};
