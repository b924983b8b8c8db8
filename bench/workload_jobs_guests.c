/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_guests: several external threads run loops on one pool at the same time, with more workers than
 * processors. In the control, the same threads do the same loops without a pool: they share nothing and wait
 * for nothing.
 *
 * Each thread claims one loop after the other from a common count, so that all threads end together. When the workload closes, it prints how
 * evenly the pool served the threads: the smallest number of loops of a thread, divided by the largest. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXTERNAL_THREAD_COUNT = 4, ITEM_COUNT = 64, ITEM_NS = 2000, LOOPS_PER_SAMPLE = 400 };

typedef struct external_scene external_scene;

typedef struct external_thread {
    external_scene *scene;
    pthread_t thread;
    bench_tally loops;
} external_thread;

struct external_scene {
    quern_jobs *jobs; /* NULL: each thread works alone */
    uint64_t item_steps;
    uint32_t loop_count; /* loops of the current sample, over all threads; 0: the threads end */
    _Atomic uint32_t claimed_count;
    pthread_barrier_t begin, end;
    external_thread threads[EXTERNAL_THREAD_COUNT];
    bench_tally tallies[QUERN_MAX_THREADS];
};

static void burn_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    external_scene *scene = argument;
    for (uint32_t i = begin; i < end; i++)
        bench_burn(scene->item_steps);
    scene->tallies[worker_index].count += end - begin;
}

static void run_loop(external_thread *self)
{
    external_scene *scene = self->scene;
    if (scene->jobs != NULL)
        REQUIRE(quern_jobs_parallel_for(scene->jobs, ITEM_COUNT, 1, burn_items, scene));
    else
        burn_items(scene, 0, ITEM_COUNT, (uint32_t)(self - scene->threads));
    self->loops.count++;
}

static void *external_main(void *argument)
{
    external_thread *self = argument;
    external_scene *scene = self->scene;
    for (;;) {
        pthread_barrier_wait(&scene->begin);
        if (scene->loop_count == 0) return NULL;
        while (atomic_fetch_add_explicit(&scene->claimed_count, 1, memory_order_relaxed) <
               scene->loop_count)
            run_loop(self);
        pthread_barrier_wait(&scene->end);
    }
}

static external_scene *open_scene(quern_jobs *jobs)
{
    external_scene *scene = bench_allocate(1, sizeof *scene);
    scene->jobs = jobs;
    scene->item_steps = bench_burn_steps(ITEM_NS);
    pthread_barrier_init(&scene->begin, NULL, EXTERNAL_THREAD_COUNT + 1);
    pthread_barrier_init(&scene->end, NULL, EXTERNAL_THREAD_COUNT + 1);
    for (uint32_t i = 0; i < EXTERNAL_THREAD_COUNT; i++) {
        scene->threads[i].scene = scene;
        if (pthread_create(&scene->threads[i].thread, NULL, external_main, &scene->threads[i]) != 0)
            bench_die("cannot start thread %u of %d", i + 1, EXTERNAL_THREAD_COUNT);
    }
    return scene;
}

static void *open_raw(const bench_case *bench)
{
    (void)bench;
    return open_scene(NULL);
}

static void *open_quern(const bench_case *bench)
{
    const quern_jobs_def def = {.thread_count = bench->thread_count,
                                .external_thread_count = EXTERNAL_THREAD_COUNT};
    quern_jobs *jobs;
    REQUIRE(quern_jobs_create(&def, &jobs));
    return open_scene(jobs);
}

static void run(void *state, uint32_t pass_count)
{
    external_scene *scene = state;
    scene->loop_count = pass_count;
    atomic_store_explicit(&scene->claimed_count, 0, memory_order_relaxed);
    pthread_barrier_wait(&scene->begin);
    pthread_barrier_wait(&scene->end);
}

static void print_shares(const external_scene *scene)
{
    uint64_t least = UINT64_MAX, most = 1;
    for (uint32_t i = 0; i < EXTERNAL_THREAD_COUNT; i++) {
        const uint64_t count = scene->threads[i].loops.count;
        if (count < least) least = count;
        if (count > most) most = count;
    }
    fprintf(stderr, "jobs_guests: %s: smallest / largest number of loops of a thread: %.2f\n",
            scene->jobs != NULL ? "quern" : "raw", (double)least / (double)most);
}

static void close_scene(void *state)
{
    external_scene *scene = state;
    scene->loop_count = 0;
    pthread_barrier_wait(&scene->begin);
    for (uint32_t i = 0; i < EXTERNAL_THREAD_COUNT; i++)
        pthread_join(scene->threads[i].thread, NULL);
    print_shares(scene);
    pthread_barrier_destroy(&scene->begin);
    pthread_barrier_destroy(&scene->end);
    quern_jobs_destroy(scene->jobs);
    free(scene);
}

/* Returns 1 if every item of every loop ran once. */
static uint64_t checksum(void *state)
{
    const external_scene *scene = state;
    uint64_t loop_count = 0;
    for (uint32_t i = 0; i < EXTERNAL_THREAD_COUNT; i++)
        loop_count += scene->threads[i].loops.count;
    return bench_tally_sum(scene->tallies) == loop_count * ITEM_COUNT;
}

static uint32_t loops_per_sample(uint32_t entity_count)
{
    (void)entity_count;
    return LOOPS_PER_SAMPLE;
}

const bench_workload workload_jobs_guests = {
    .name = "jobs_guests",
    .summary = "4 external threads that each run loops of 64 items of 2 us; raw: without a pool",
    .unit = "loop",
    .entity_counts = {ITEM_COUNT},
    .fixed_size = true,
    .pass_count = loops_per_sample,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run, NULL, checksum, close_scene, NULL},
            [BENCH_QUERN] = {open_quern, NULL, run, NULL, checksum, close_scene, NULL},
        },
};
