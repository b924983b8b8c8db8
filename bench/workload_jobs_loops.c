/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_loop_async, jobs_cancel*: submitted loops, and cancelled loops.
 *
 * The control of jobs_loop_async is the same loop by quern_jobs_parallel_for on as many threads, so that
 * quern/raw shows the cost of submitting. The control of jobs_cancel* is work of 20 us. On one thread, no
 * other thread can cancel the loop while the caller waits for it. So the loop cancels itself after a
 * hundredth of its items, and the control is the work of these items. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ASYNC_ITEMS = 64, ASYNC_ITEM_NS = 2000 };
enum {
    CANCEL_ITEMS = 1000000,
    CANCEL_SEEN_ITEMS = CANCEL_ITEMS / 100,
    CANCEL_ITEM_NS = 50,
    CANCEL_SMALL_GRAIN = 16,
    CANCEL_CONTROL_NS = 20000
};

typedef struct submitted_scene {
    quern_jobs *jobs;
    uint32_t thread_count;
    uint64_t item_steps;
    quern_loop_def loop;
    quern_counter counter;
    quern_cancel cancel;
    bench_tally tallies[QUERN_MAX_THREADS];
    _Atomic uint32_t seen_count; /* items that have run */
} submitted_scene;

static submitted_scene *open_scene(const bench_case *bench, double item_ns)
{
    submitted_scene *scene = bench_allocate(1, sizeof *scene);
    scene->thread_count = bench->thread_count;
    scene->item_steps = bench_burn_steps(item_ns);
    return scene;
}

static void close_scene(void *state)
{
    submitted_scene *scene = state;
    quern_jobs_destroy(scene->jobs);
    free(scene);
}

static uint64_t one_operation(uint32_t item_count)
{
    return 1;
}

/* ------------------------------------------------------------------------------------------- async */

static void burn_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    submitted_scene *scene = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn(scene->item_steps);
    scene->tallies[worker_index].count += end - begin;
}

/* Opens the loop for both subjects. */
static void *open_async(const bench_case *bench)
{
    submitted_scene *scene = open_scene(bench, ASYNC_ITEM_NS);
    scene->jobs = bench_jobs_create(bench->thread_count);
    scene->loop = (quern_loop_def){.function = burn_items,
                                   .user_data = scene,
                                   .count = ASYNC_ITEMS,
                                   .grain = 1,
                                   .counter = &scene->counter};
    return scene;
}

static void enter_awake(void *state)
{
    const submitted_scene *scene = state;
    bench_jobs_wake(scene->jobs);
}

static void run_blocking(void *state, uint32_t pass_count)
{
    submitted_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_jobs_parallel_for(scene->jobs, ASYNC_ITEMS, 1, burn_items, scene));
}

static void run_async(void *state, uint32_t pass_count)
{
    submitted_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        REQUIRE(quern_jobs_submit_loop(scene->jobs, &scene->loop));
        REQUIRE(quern_jobs_wait(scene->jobs, &scene->counter));
    }
}

/* Returns the number of items if every item of every pass ran once, for any number of passes. */
static uint64_t checksum_async(void *state)
{
    const submitted_scene *scene = state;
    return bench_tally_sum(scene->tallies) % ASYNC_ITEMS == 0 ? ASYNC_ITEMS : 0;
}

static uint32_t passes_of_async(uint32_t item_count)
{
    return 500;
}

const bench_workload workload_jobs_loop_async = {
    .name = "jobs_loop_async",
    .summary = "a submitted loop of 64 items of 2 us, and a wait for it; raw: quern_jobs_parallel_for",
    .unit = "loop",
    .entity_counts = {ASYNC_ITEMS},
    .fixed_size = true,
    .pass_count = passes_of_async,
    .operation_count = one_operation,
    .subjects =
        {
            [BENCH_RAW] = {open_async, enter_awake, run_blocking, NULL, checksum_async, close_scene, NULL},
            [BENCH_QUERN] = {open_async, enter_awake, run_async, NULL, checksum_async, close_scene, NULL},
        },
};

/* ------------------------------------------------------------------------------------------ cancel */

/* Relaxed: the count publishes no data. */
static void burn_and_count(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    submitted_scene *scene = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn(scene->item_steps);
    const uint32_t before =
        atomic_fetch_add_explicit(&scene->seen_count, end - begin, memory_order_relaxed);
    if (scene->thread_count == 1 && before + (end - begin) >= CANCEL_SEEN_ITEMS)
        quern_cancel_request(&scene->cancel);
}

static void *open_cancel_raw(const bench_case *bench)
{
    return open_scene(bench, bench->thread_count == 1 ? CANCEL_ITEM_NS : CANCEL_CONTROL_NS);
}

static void *open_cancel_grain(const bench_case *bench, uint32_t grain)
{
    submitted_scene *scene = open_scene(bench, CANCEL_ITEM_NS);
    scene->jobs = bench_jobs_create(bench->thread_count);
    scene->loop = (quern_loop_def){.function = burn_and_count,
                                   .user_data = scene,
                                   .count = CANCEL_ITEMS,
                                   .grain = grain,
                                   .counter = &scene->counter,
                                   .cancel = &scene->cancel};
    return scene;
}

static void *open_cancel(const bench_case *bench)
{
    return open_cancel_grain(bench, 0);
}

static void *open_cancel_small(const bench_case *bench)
{
    return open_cancel_grain(bench, CANCEL_SMALL_GRAIN);
}

static void submit(submitted_scene *scene)
{
    quern_cancel_reset(&scene->cancel);
    atomic_store_explicit(&scene->seen_count, 0, memory_order_relaxed);
    REQUIRE(quern_jobs_submit_loop(scene->jobs, &scene->loop));
}

/* Submits the loop, and waits until other threads have run a hundredth of the items. */
static void enter_cancel(void *state)
{
    submitted_scene *scene = state;
    if (scene->thread_count == 1) return;
    submit(scene);
    while (atomic_load_explicit(&scene->seen_count, memory_order_relaxed) < CANCEL_SEEN_ITEMS) {
    }
}

static void run_cancel(void *state, uint32_t pass_count)
{
    submitted_scene *scene = state;
    if (scene->thread_count == 1)
        submit(scene);
    else
        quern_cancel_request(&scene->cancel);
    REQUIRE(quern_jobs_wait(scene->jobs, &scene->counter));
}

static void run_cancel_raw(void *state, uint32_t pass_count)
{
    const submitted_scene *scene = state;
    for (uint32_t i = 0; i < (scene->thread_count == 1 ? CANCEL_SEEN_ITEMS : 1); i++)
        bench_burn(scene->item_steps);
}

static uint64_t checksum_cancel_raw(void *state)
{
    return 1;
}

/* Returns 1 if the loop has ended before all items ran. */
static uint64_t checksum_cancel(void *state)
{
    submitted_scene *scene = state;
    const uint32_t seen_count = atomic_load_explicit(&scene->seen_count, memory_order_relaxed);
    return quern_counter_is_done(&scene->counter) && seen_count < CANCEL_ITEMS;
}

static uint32_t passes_of_cancel(uint32_t item_count)
{
    return 50;
}

#define WORKLOAD_CANCEL(suffix, text, open_it)                                                             \
    const bench_workload workload_jobs_cancel##suffix = {                                                  \
        .name = "jobs_cancel" #suffix,                                                                     \
        .summary =                                                                                         \
            "cancel a loop of 1,000,000 items of 50 ns after 1 %, and wait, " text "; raw: 20 us of work", \
        .unit = "stop",                                                                                    \
        .entity_counts = {CANCEL_ITEMS},                                                                   \
        .fixed_size = true,                                                                                \
        .fresh = true,                                                                                     \
        .pass_count = passes_of_cancel,                                                                    \
        .operation_count = one_operation,                                                                  \
        .subjects =                                                                                        \
            {                                                                                              \
                [BENCH_RAW] = {open_cancel_raw, NULL, run_cancel_raw, NULL, checksum_cancel_raw,           \
                               close_scene, NULL},                                                         \
                [BENCH_QUERN] = {open_it, enter_cancel, run_cancel, NULL, checksum_cancel, close_scene,    \
                                 NULL},                                                                    \
            },                                                                                             \
    }

WORKLOAD_CANCEL(, "automatic grain", open_cancel);
WORKLOAD_CANCEL(_small, "grain 16", open_cancel_small);
