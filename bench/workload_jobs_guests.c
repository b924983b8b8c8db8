/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_guests, jobs_outside4: several external threads use one pool at the same time, with more workers than
 * processors. In jobs_guests they run loops, in jobs_outside4 they submit empty jobs and wait for them. In the control,
 * the same threads do the same work without a pool: they share nothing and wait for nothing.
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
enum { BATCH_JOBS = 1000, BATCHES_PER_SAMPLE = 40 };

typedef struct external_scene external_scene;

typedef struct external_thread {
    external_scene *scene;
    pthread_t thread;
    bench_tally loops;
} external_thread;

struct external_scene {
    quern_jobs *jobs; /* NULL: each thread works alone */
    void (*run_once)(external_thread *self);
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

static void do_nothing(void *argument, uint32_t worker_index)
{
    external_scene *scene = *(external_scene **)argument;
    scene->tallies[worker_index].count++;
}

static void run_batch(external_thread *self)
{
    external_scene *scene = self->scene;
    quern_counter counter = {0};
    quern_job_function *volatile function = do_nothing; /* volatile: the calls must not be inlined */
    const quern_job_def def = {
        .function = do_nothing, .payload = &scene, .payload_bytes = sizeof scene, .counter = &counter};
    for (uint32_t i = 0; i < BATCH_JOBS && scene->jobs == NULL; i++)
        function(&scene, (uint32_t)(self - scene->threads));
    for (uint32_t i = 0; i < BATCH_JOBS && scene->jobs != NULL; i++)
        REQUIRE(quern_jobs_submit(scene->jobs, &def));
    if (scene->jobs != NULL) REQUIRE(quern_jobs_wait(scene->jobs, &counter));
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
            scene->run_once(self);
        pthread_barrier_wait(&scene->end);
    }
}

static external_scene *open_scene(quern_jobs *jobs, void (*run_once)(external_thread *self))
{
    external_scene *scene = bench_allocate(1, sizeof *scene);
    scene->jobs = jobs;
    scene->run_once = run_once;
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
    return open_scene(NULL, run_loop);
}

static void *open_batch_raw(const bench_case *bench)
{
    return open_scene(NULL, run_batch);
}

/* The pool has one external slot, as by default: threads that find it in use submit to a queue. */
static void *open_batch(const bench_case *bench)
{
    return open_scene(bench_jobs_create(bench->thread_count), run_batch);
}

static void *open_quern(const bench_case *bench)
{
    const quern_jobs_def def = {.thread_count = bench->thread_count,
                                .external_thread_count = EXTERNAL_THREAD_COUNT};
    quern_jobs *jobs;
    REQUIRE(quern_jobs_create(&def, &jobs));
    return open_scene(jobs, run_loop);
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
    if (scene->run_once == run_loop) print_shares(scene);
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

/* Returns 1 if every job of every batch ran once. */
static uint64_t checksum_batch(void *state)
{
    const external_scene *scene = state;
    uint64_t batch_count = 0;
    for (uint32_t i = 0; i < EXTERNAL_THREAD_COUNT; i++)
        batch_count += scene->threads[i].loops.count;
    return bench_tally_sum(scene->tallies) == batch_count * BATCH_JOBS;
}

static uint32_t batches_per_sample(uint32_t entity_count)
{
    return BATCHES_PER_SAMPLE;
}

static uint64_t operations_of_batch(uint32_t entity_count)
{
    return BATCH_JOBS;
}

static uint32_t loops_per_sample(uint32_t entity_count)
{
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

const bench_workload workload_jobs_outside4 = {
    .name = "jobs_outside4",
    .summary = "4 external threads that each submit batches of 1,000 empty jobs; raw: as many calls",
    .unit = "job",
    .entity_counts = {BATCH_JOBS},
    .fixed_size = true,
    .pass_count = batches_per_sample,
    .operation_count = operations_of_batch,
    .subjects =
        {
            [BENCH_RAW] = {open_batch_raw, NULL, run, NULL, checksum_batch, close_scene, NULL},
            [BENCH_QUERN] = {open_batch, NULL, run, NULL, checksum_batch, close_scene, NULL},
        },
};
