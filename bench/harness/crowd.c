/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/crowd.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_t threads[QUERN__BENCH_MAX_CROWD];
static uint32_t started_count;
static _Atomic bool is_over;

/* Relaxed: the flag orders nothing; joining the thread does. */
static void *compute(void *argument)
{
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
    }
    return argument;
}

bool quern__bench_crowd_start(uint32_t thread_count)
{
    atomic_store_explicit(&is_over, false, memory_order_relaxed);
    for (started_count = 0; started_count < thread_count; started_count++) {
        if (pthread_create(&threads[started_count], NULL, compute, NULL) == 0) continue;
        quern__bench_crowd_stop();
        return false;
    }
    return true;
}

void quern__bench_crowd_stop(void)
{
    atomic_store_explicit(&is_over, true, memory_order_relaxed);
    while (started_count > 0)
        pthread_join(threads[--started_count], NULL);
}
