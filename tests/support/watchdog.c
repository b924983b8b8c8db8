/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/watchdog.h"

#include "tests/support/stress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HANG_SECONDS = 60, LOOK_NS = 20000000 };

static pthread_t thread;
static _Atomic bool is_over;
static _Atomic uint64_t step_count;
static _Atomic(quern_jobs *) watched;
static _Atomic uint64_t watched_seed;

static void report_hang(uint64_t step)
{
    fprintf(stderr, "no progress for %d s after step %llu, seed %llu\n", HANG_SECONDS,
            (unsigned long long)step, (unsigned long long)atomic_load(&watched_seed));
    quern_jobs *jobs = atomic_load(&watched);
    if (jobs != NULL) quern_jobs_describe(jobs, quern_sink_file(stderr));
    abort();
}

/* Counts sleeps instead of seconds, so that a process that was stopped for a while does not look like a
 * hang. */
static void *watch(void *argument)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    uint64_t last_step = UINT64_MAX, looks = 0;
    while (!atomic_load(&is_over)) {
        nanosleep(&pause, NULL);
        const uint64_t step = atomic_load(&step_count);
        looks = step == last_step ? looks + 1 : 0;
        last_step = step;
        if (looks > HANG_SECONDS * 1000000000ull / LOOK_NS) report_hang(step);
    }
    return NULL;
}

void watchdog_start(void)
{
    atomic_store(&is_over, false);
    if (pthread_create(&thread, NULL, watch, NULL) != 0) abort();
}

void watchdog_stop(void)
{
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

void watchdog_watch(quern_jobs *jobs, uint64_t seed)
{
    atomic_store(&watched_seed, seed);
    atomic_store(&watched, jobs);
}

void watchdog_beat(void)
{
    atomic_fetch_add(&step_count, 1);
}
