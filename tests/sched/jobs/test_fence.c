/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/platform/platform.h"

#include <quern/jobs.h>

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>

/* The fence of all threads, between a thread that executes it and one that only keeps its compiler from reordering. Each
 * stores to its own variable and then loads the other's: with the fence, at least one of them sees the other's store.
 * Processors delay stores, the more so the more stores to contended cache lines precede them. */

TestSuite(fence, .timeout = 120);

enum { ROUNDS = 20000, MOST_NS = 3000000000u, CONTENDED = 16 };

typedef struct line {
    _Alignas(128) _Atomic uint32_t value;
} line;

static line with_fence, without_fence, begun, ended, contended[CONTENDED];
static uint32_t seen_by_light;

static uint32_t load(line *of)
{
    return atomic_load_explicit(&of->value, memory_order_acquire);
}

static void wait_for(line *of, uint32_t round)
{
    for (uint32_t look = 0; load(of) < round; look++)
        quern__thread_spin_wait(look);
}

static void delay_stores(uint32_t round)
{
    for (uint32_t i = 0; i < CONTENDED; i++)
        atomic_store_explicit(&contended[i].value, round, memory_order_relaxed);
}

static void *take_light_side(void *argument)
{
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        wait_for(&begun, round);
        delay_stores(round);
        atomic_store_explicit(&without_fence.value, round, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        seen_by_light = atomic_load_explicit(&with_fence.value, memory_order_relaxed);
        atomic_store_explicit(&ended.value, round, memory_order_release);
    }
    return argument;
}

Test(fence, of_all_threads_orders_the_stores_of_threads_without_a_fence)
{
    if (!quern__can_fence_all_threads()) cr_skip_test("the system has no such fence");
    if (quern_processor_count() < 2) cr_skip_test("one processor reorders nothing for its own threads");
    pthread_t thread;
    uint32_t both_missed_count = 0;
    const uint64_t end_ns = quern__clock_ns() + MOST_NS;
    cr_assert_eq(pthread_create(&thread, NULL, take_light_side, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        atomic_store_explicit(&begun.value, round, memory_order_release);
        if (quern__clock_ns() > end_ns) continue; /* the other thread ends its rounds */
        delay_stores(round);
        for (volatile uint32_t i = 0; i < round % 32; i++) {
        }
        atomic_store_explicit(&with_fence.value, round, memory_order_relaxed);
        quern__fence_all_threads();
        const uint32_t seen = atomic_load_explicit(&without_fence.value, memory_order_relaxed);
        wait_for(&ended, round);
        both_missed_count += seen != round && seen_by_light != round;
    }
    pthread_join(thread, NULL);
    cr_assert_eq(both_missed_count, 0u);
}
