/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* jobs_wake_latency_*: the time from the call by which an external thread submits a job to the job's first
 * instruction, while all threads of the pool are asleep. The control is one thread that sleeps in a futex,
 * and a wake of that futex.
 *
 * A pass is a pause and one job, and a sample is one pass. So the median, the interval and the percentiles
 * (--frames) are those of single jobs; --repeat 300 gives enough samples for the 99th percentile. The caller
 * spins until the job has begun, like a thread with other work. In cases of one thread, the pool has two. */

#include "bench/burn.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { FRAME_NS = 16666667, FRAME_WORK_NS = 1000000 };

typedef struct wake_scene {
    quern_jobs *jobs; /* NULL: this is the control */
    quern_counter counter;
    pthread_t thread;            /* sleeping thread of the control */
    _Atomic uint32_t wake_count; /* futex of the control */
    _Atomic bool is_ending;
    _Atomic bool has_begun;
    uint64_t job_count; /* number of jobs that the caller has seen begin */
} wake_scene;

/* ----------------------------------------------------------------------------------------- control */

#if defined(__linux__)

static void sleep_while(wake_scene *scene, uint32_t count)
{
    syscall(SYS_futex, &scene->wake_count, FUTEX_WAIT_PRIVATE, count, NULL, NULL, 0);
}

static void wake(wake_scene *scene)
{
    syscall(SYS_futex, &scene->wake_count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#else

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

/* Relaxed: the mutex orders the accesses. */
static void sleep_while(wake_scene *scene, uint32_t count)
{
    pthread_mutex_lock(&mutex);
    while (atomic_load_explicit(&scene->wake_count, memory_order_relaxed) == count)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void wake(wake_scene *scene)
{
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}

#endif

/* Release: pairs with the acquire in wait_for_begin and in sleeper_main. */
static void publish_begin(wake_scene *scene)
{
    atomic_store_explicit(&scene->has_begun, true, memory_order_release);
}

/* Acquire: pairs with the release in wake_sleeper. */
static void *sleeper_main(void *argument)
{
    wake_scene *scene = argument;
    for (uint32_t seen = 0;;) {
        uint32_t count;
        while ((count = atomic_load_explicit(&scene->wake_count, memory_order_acquire)) == seen)
            sleep_while(scene, seen);
        seen = count;
        if (atomic_load_explicit(&scene->is_ending, memory_order_relaxed)) return NULL;
        publish_begin(scene);
    }
}

/* Release: pairs with the acquire in sleeper_main. */
static void wake_sleeper(wake_scene *scene)
{
    atomic_fetch_add_explicit(&scene->wake_count, 1, memory_order_release);
    wake(scene);
}

static void *open_futex(const bench_case *bench)
{
    wake_scene *scene = bench_allocate(1, sizeof *scene);
    if (pthread_create(&scene->thread, NULL, sleeper_main, scene) != 0)
        bench_die("cannot start the control's thread");
    return scene;
}

/* ------------------------------------------------------------------------------------------- passes */

static void begin_job(void *argument, uint32_t worker_index)
{
    publish_begin(*(wake_scene **)argument);
}

static void *open_pool(const bench_case *bench)
{
    wake_scene *scene = bench_allocate(1, sizeof *scene);
    /* The caller spins, so a pool without another thread would never begin the job. */
    scene->jobs = bench_jobs_create(bench->thread_count > 1 ? bench->thread_count : 2);
    return scene;
}

/* Acquire: pairs with the release in publish_begin. */
static void wait_for_begin(wake_scene *scene)
{
    while (!atomic_load_explicit(&scene->has_begun, memory_order_acquire))
        continue;
    scene->job_count++;
}

static void run_futex(void *state, uint32_t pass_count)
{
    (void)pass_count; /* 1: the workload is fresh */
    wake_sleeper(state);
    wait_for_begin(state);
}

static void run_pool(void *state, uint32_t pass_count)
{
    wake_scene *scene = state;
    const quern_job_def def = {.function = begin_job,
                               .payload = &scene,
                               .payload_bytes = sizeof scene,
                               .counter = &scene->counter};
    REQUIRE(quern_jobs_submit(scene->jobs, &def));
    wait_for_begin(scene);
}

static void leave(void *state)
{
    wake_scene *scene = state;
    if (scene->jobs != NULL) REQUIRE(quern_jobs_wait(scene->jobs, &scene->counter));
    atomic_store_explicit(&scene->has_begun, false, memory_order_relaxed);
}

static uint64_t checksum(void *state)
{
    const wake_scene *scene = state;
    return scene->job_count;
}

static void close_scene(void *state)
{
    wake_scene *scene = state;
    if (scene->jobs == NULL) {
        atomic_store_explicit(&scene->is_ending, true, memory_order_relaxed);
        wake_sleeper(scene);
        pthread_join(scene->thread, NULL);
    }
    quern_jobs_destroy(scene->jobs);
    free(scene);
}

/* --------------------------------------------------------------------------------------------- gaps */

static void sleep_for(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)},
              NULL);
}

static void enter_1ms(void *state)
{
    sleep_for(1000000);
}

static void enter_10ms(void *state)
{
    sleep_for(10000000);
}

static void enter_100ms(void *state)
{
    sleep_for(100000000);
}

static void enter_1s(void *state)
{
    sleep_for(1000000000);
}

/* Sleeps until the next frame of 60 Hz begins, and then works on the caller, as at the start of a frame. */
static void enter_60hz(void *state)
{
    sleep_for(FRAME_NS - bench_now_ns() % FRAME_NS);
    bench_burn_for(FRAME_WORK_NS);
}

static uint32_t one_pass(uint32_t entity_count)
{
    return 1;
}

#define WORKLOAD_WAKE(suffix, text)                                                                        \
    const bench_workload workload_jobs_wake_latency_##suffix = {                                           \
        .name = "jobs_wake_latency_" #suffix,                                                              \
        .summary = "time from submitting a job to its start, " text "; raw: a futex wake",                 \
        .unit = "job",                                                                                     \
        .entity_counts = {1},                                                                              \
        .fixed_size = true,                                                                                \
        .fresh = true,                                                                                     \
        .frames = true,                                                                                    \
        .pass_count = one_pass,                                                                            \
        .subjects =                                                                                        \
            {                                                                                              \
                [BENCH_RAW] = {open_futex, enter_##suffix, run_futex, leave, checksum, close_scene, NULL}, \
                [BENCH_QUERN] = {open_pool, enter_##suffix, run_pool, leave, checksum, close_scene, NULL}, \
            },                                                                                             \
    }

WORKLOAD_WAKE(1ms, "after 1 ms of sleep");
WORKLOAD_WAKE(10ms, "after 10 ms of sleep");
WORKLOAD_WAKE(60hz, "after 1 ms of work in each frame at 60 Hz");
WORKLOAD_WAKE(100ms, "after 100 ms of sleep");
WORKLOAD_WAKE(1s, "after 1 s of sleep");
