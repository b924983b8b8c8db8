/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_empty_*, jobs_uneven*, jobs_wake, jobs_gap: parallel loops of the job system.
 *
 * The control is the duration of the work alone. For little work (empty, wake), the control makes all calls
 * on one thread. For work that is worth sharing (uneven, gap), it does the work of one thread, the total
 * divided by the number of threads: quern/raw is then the inverse of the parallel efficiency. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { UNEVEN_ITEMS = 1024, UNEVEN_NS = 10000000, GAP_ITEMS = 64, GAP_ITEM_NS = 2000, GAP_NS = 100000 };
enum { WAKE_ITEMS = 2, WAKE_ITEM_NS = 20000, WAKE_IDLE_NS = 5000000 };

typedef struct loop_scene {
    quern_jobs *jobs;
    uint32_t item_count;
    uint32_t grain;
    uint32_t thread_count;
    uint64_t item_steps; /* steps of an item, if all items have equal cost */
    double square_steps; /* for uneven: item i has square_steps * i * i steps */
    bench_tally tallies[QUERN_MAX_THREADS];
} loop_scene;

static loop_scene *open_scene(const bench_case *scene, uint32_t item_count, uint32_t grain)
{
    loop_scene *loop = bench_allocate(1, sizeof *loop);
    loop->item_count = item_count;
    loop->grain = grain;
    loop->thread_count = scene->thread_count;
    return loop;
}

static void *with_pool(loop_scene *loop)
{
    loop->jobs = bench_jobs_create(loop->thread_count);
    return loop;
}

static void close_scene(void *state)
{
    loop_scene *loop = state;
    quern_jobs_destroy(loop->jobs);
    free(loop);
}

static void enter_awake(void *state)
{
    const loop_scene *loop = state;
    if (loop->jobs != NULL) bench_jobs_wake(loop->jobs);
}

static uint64_t checksum_items(void *state)
{
    const loop_scene *loop = state;
    return loop->item_count;
}

/* Returns the number of items if every item of every pass ran once, for any number of passes. */
static uint64_t checksum_done(void *state)
{
    const loop_scene *loop = state;
    return bench_tally_sum(loop->tallies) % loop->item_count == 0 ? loop->item_count : 0;
}

static void share(loop_scene *loop, quern_range_function *function)
{
    REQUIRE(quern_jobs_parallel_for(loop->jobs, loop->item_count, loop->grain, function, loop));
}

static uint64_t one_loop(uint32_t entity_count)
{
    return 1;
}

/* ------------------------------------------------------------------------------------------- empty */

static void do_nothing(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    for (uint32_t i = begin; i < end; i++)
        __asm__ volatile("" ::"r"(i));
}

static void *open_empty_raw(const bench_case *scene)
{
    return open_scene(scene, scene->entity_count, 1);
}

static void *open_empty(const bench_case *scene)
{
    return with_pool(open_scene(scene, scene->entity_count, 1));
}

static void *open_empty_auto(const bench_case *scene)
{
    return with_pool(open_scene(scene, scene->entity_count, 0));
}

static void run_empty_raw(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    quern_range_function *volatile function = do_nothing; /* volatile: the calls must not be inlined */
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < loop->item_count; i++)
            function(loop, i, i + 1, 0);
}

static void run_empty(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        share(loop, do_nothing);
}

static uint32_t passes_of_empty(uint32_t item_count)
{
    return 1 + 8000000 / (item_count + 500);
}

#define WORKLOAD_EMPTY(count, suffix, other_name, text, open_it)                                       \
    const bench_workload workload_jobs_empty_##count##suffix = {                                       \
        .name = "jobs_empty_" #count #suffix,                                                          \
        .alias = (other_name),                                                                         \
        .summary = "a parallel loop over " #count " items that do nothing, " text,                     \
        .unit = "loop",                                                                                \
        .entity_counts = {count},                                                                      \
        .fixed_size = true,                                                                            \
        .pass_count = passes_of_empty,                                                                 \
        .operation_count = one_loop,                                                                   \
        .subjects =                                                                                    \
            {                                                                                          \
                [BENCH_RAW] = {open_empty_raw, NULL, run_empty_raw, NULL, checksum_items, close_scene, \
                               NULL},                                                                  \
                [BENCH_QUERN] = {open_it, enter_awake, run_empty, NULL, checksum_items, close_scene,   \
                                 NULL},                                                                \
            },                                                                                         \
    }

WORKLOAD_EMPTY(64, , NULL, "grain 1", open_empty);
WORKLOAD_EMPTY(64, _auto, NULL, "automatic grain", open_empty_auto);
WORKLOAD_EMPTY(1024, , NULL, "grain 1", open_empty);
WORKLOAD_EMPTY(65536, , "jobs_grain1", "grain 1", open_empty);

/* ------------------------------------------------------------------------------------------ uneven */

static void burn_square(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    loop_scene *loop = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn((uint64_t)(loop->square_steps * i * i));
    loop->tallies[worker_index].count += end - begin;
}

static loop_scene *open_uneven_scene(const bench_case *scene, uint32_t grain)
{
    loop_scene *loop = open_scene(scene, UNEVEN_ITEMS, grain);
    double sum = 0;
    for (uint32_t i = 0; i < UNEVEN_ITEMS; i++)
        sum += (double)i * i;
    loop->square_steps = (double)bench_burn_steps(UNEVEN_NS) / sum;
    return loop;
}

static void *open_uneven_raw(const bench_case *scene)
{
    loop_scene *loop = open_uneven_scene(scene, 1);
    loop->square_steps /= scene->thread_count;
    return loop;
}

static void *open_uneven(const bench_case *scene)
{
    return with_pool(open_uneven_scene(scene, 1));
}

static void *open_uneven_auto(const bench_case *scene)
{
    return with_pool(open_uneven_scene(scene, 0));
}

static void run_uneven_raw(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        burn_square(loop, 0, loop->item_count, 0);
}

static void run_uneven(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        share(loop, burn_square);
}

static uint32_t passes_of_uneven(uint32_t item_count)
{
    return 2;
}

#define WORKLOAD_UNEVEN(suffix, text, open_it)                                                             \
    const bench_workload workload_jobs_uneven##suffix = {                                                  \
        .name = "jobs_uneven" #suffix,                                                                     \
        .summary = "1024 items, the cost of item i as i squared, 10 ms in all, " text "; raw: ideal time", \
        .unit = "loop",                                                                                    \
        .entity_counts = {UNEVEN_ITEMS},                                                                   \
        .fixed_size = true,                                                                                \
        .pass_count = passes_of_uneven,                                                                    \
        .operation_count = one_loop,                                                                       \
        .subjects =                                                                                        \
            {                                                                                              \
                [BENCH_RAW] = {open_uneven_raw, NULL, run_uneven_raw, NULL, checksum_done, close_scene,    \
                               NULL},                                                                      \
                [BENCH_QUERN] = {open_it, enter_awake, run_uneven, NULL, checksum_done, close_scene,       \
                                 NULL},                                                                    \
            },                                                                                             \
    }

WORKLOAD_UNEVEN(, "grain 1", open_uneven);
WORKLOAD_UNEVEN(_auto, "automatic grain", open_uneven_auto);

/* ---------------------------------------------------------------------------------------- wake, gap */

static void burn_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    loop_scene *loop = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn(loop->item_steps);
    loop->tallies[worker_index].count += end - begin;
}

static loop_scene *open_equal(const bench_case *scene, uint32_t item_count, double item_ns)
{
    loop_scene *loop = open_scene(scene, item_count, 1);
    loop->item_steps = bench_burn_steps(item_ns);
    return loop;
}

static void *open_wake_raw(const bench_case *scene)
{
    return open_equal(scene, WAKE_ITEMS, WAKE_ITEM_NS);
}

static void *open_wake(const bench_case *scene)
{
    return with_pool(open_equal(scene, WAKE_ITEMS, WAKE_ITEM_NS));
}

static void *open_gap_raw(const bench_case *scene)
{
    return open_equal(scene, GAP_ITEMS, GAP_ITEM_NS);
}

static void *open_gap(const bench_case *scene)
{
    return with_pool(open_equal(scene, GAP_ITEMS, GAP_ITEM_NS));
}

static void enter_wake(void *state)
{
    bench_burn_for(WAKE_IDLE_NS);
}

static void enter_gap(void *state)
{
    bench_burn_for(GAP_NS);
}

/* Does the work of one thread if all threads shared the work equally, on the calling thread. */
static void run_gap_raw(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    const uint32_t item_count = (GAP_ITEMS + loop->thread_count - 1) / loop->thread_count;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        burn_items(loop, 0, item_count, 0);
}

static void run_items_raw(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        burn_items(loop, 0, loop->item_count, 0);
}

static void run_items(void *state, uint32_t pass_count)
{
    loop_scene *loop = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        share(loop, burn_items);
}

static uint32_t passes_of_wake(uint32_t item_count)
{
    return 20;
}

static uint32_t passes_of_gap(uint32_t item_count)
{
    return 200;
}

const bench_workload workload_jobs_wake = {
    .name = "jobs_wake",
    .summary =
        "after 5 ms of work on the caller, a loop of 2 items of 20 us; raw: both items on the caller",
    .unit = "loop",
    .entity_counts = {WAKE_ITEMS},
    .fixed_size = true,
    .fresh = true,
    .pass_count = passes_of_wake,
    .operation_count = one_loop,
    .subjects =
        {
            [BENCH_RAW] = {open_wake_raw, enter_wake, run_items_raw, NULL, checksum_done, close_scene,
                           NULL},
            [BENCH_QUERN] = {open_wake, enter_wake, run_items, NULL, checksum_done, close_scene, NULL},
        },
};

const bench_workload workload_jobs_gap = {
    .name = "jobs_gap",
    .summary = "after 100 us of work on the caller, a loop of 64 items of 2 us; raw: ideal time",
    .unit = "loop",
    .entity_counts = {GAP_ITEMS},
    .fixed_size = true,
    .fresh = true,
    .pass_count = passes_of_gap,
    .operation_count = one_loop,
    .subjects =
        {
            [BENCH_RAW] = {open_gap_raw, enter_gap, run_gap_raw, NULL, checksum_items, close_scene, NULL},
            [BENCH_QUERN] = {open_gap, enter_gap, run_items, NULL, checksum_done, close_scene, NULL},
        },
};
