/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_after3: each job starts after three counters, which no other job uses. The control decrements plain
 * counters on one thread. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { BATCH_COUNT = 200, BATCH_JOBS = 100, AFTER_COUNT = 3 };

typedef struct after_scene {
    quern_jobs *jobs;
    quern_counter counters[BATCH_JOBS][AFTER_COUNT];
    uint32_t pending[BATCH_JOBS][AFTER_COUNT]; /* the control's counters */
    bench_tally tallies[QUERN_MAX_THREADS];
} after_scene;

static void *open_raw(const bench_case *bench)
{
    return bench_allocate(1, sizeof(after_scene));
}

static void *open_quern(const bench_case *bench)
{
    after_scene *scene = open_raw(bench);
    scene->jobs = bench_jobs_create(bench->thread_count);
    return scene;
}

static void close_scene(void *state)
{
    after_scene *scene = state;
    quern_jobs_destroy(scene->jobs);
    free(scene);
}

static void enter_awake(void *state)
{
    const after_scene *scene = state;
    bench_jobs_wake(scene->jobs);
}

static void count_call(void *argument, uint32_t worker_index)
{
    after_scene *scene = *(after_scene **)argument;
    scene->tallies[worker_index].count++;
}

static void run_raw(void *state, uint32_t pass_count)
{
    after_scene *scene = state;
    quern_job_function *volatile function = count_call; /* volatile: the calls must not be inlined */
    for (uint32_t batch = 0; batch < pass_count * BATCH_COUNT; batch++) {
        for (uint32_t i = 0; i < BATCH_JOBS; i++)
            for (uint32_t k = 0; k < AFTER_COUNT; k++)
                scene->pending[i][k]++;
        for (uint32_t i = 0; i < BATCH_JOBS; i++) {
            uint32_t done_count = 0;
            for (uint32_t k = 0; k < AFTER_COUNT; k++)
                done_count += --scene->pending[i][k] == 0;
            if (done_count == AFTER_COUNT) function(&state, 0);
        }
    }
}

static void submit_batch(after_scene *scene, quern_counter *all)
{
    quern_counter *list[AFTER_COUNT];
    const quern_job_def def = {.function = count_call,
                               .payload = &scene,
                               .payload_bytes = sizeof scene,
                               .counter = all,
                               .after = list,
                               .after_count = AFTER_COUNT};
    for (uint32_t i = 0; i < BATCH_JOBS; i++) {
        for (uint32_t k = 0; k < AFTER_COUNT; k++) {
            list[k] = &scene->counters[i][k];
            quern_counter_hold(list[k]);
        }
        REQUIRE(quern_jobs_submit(scene->jobs, &def));
    }
}

static void run_batches(void *argument, uint32_t worker_index)
{
    after_scene *scene = argument;
    quern_counter all = {0};
    for (uint32_t batch = 0; batch < BATCH_COUNT; batch++) {
        submit_batch(scene, &all);
        for (uint32_t i = 0; i < BATCH_JOBS; i++)
            for (uint32_t k = 0; k < AFTER_COUNT; k++)
                REQUIRE(quern_counter_release(scene->jobs, &scene->counters[i][k]));
        REQUIRE(quern_jobs_wait(scene->jobs, &all));
    }
}

static void run_quern(void *state, uint32_t pass_count)
{
    after_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_jobs_run(scene->jobs, run_batches, scene));
}

/* Returns 0 if every job ran once, for any number of passes. */
static uint64_t checksum(void *state)
{
    const after_scene *scene = state;
    return bench_tally_sum(scene->tallies) % ((uint64_t)BATCH_COUNT * BATCH_JOBS);
}

static uint32_t one_pass(uint32_t entity_count)
{
    return 1;
}

static uint64_t operation_count(uint32_t entity_count)
{
    return entity_count;
}

const bench_workload workload_jobs_after3 = {
    .name = "jobs_after3",
    .summary = "20,000 jobs, 100 at a time, each after three held counters; raw: plain counters and calls",
    .unit = "job",
    .entity_counts = {BATCH_COUNT * BATCH_JOBS},
    .fixed_size = true,
    .pass_count = one_pass,
    .operation_count = operation_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw, NULL, checksum, close_scene, NULL},
            [BENCH_QUERN] = {open_quern, enter_awake, run_quern, NULL, checksum, close_scene, NULL},
        },
};
