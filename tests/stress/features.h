/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_STRESS_FEATURES_H
#define TESTS_STRESS_FEATURES_H

/* Shared parts of the stress tests of all features: the pool under test, and ranges of items that count
 * how often each item ran. */

#include "tests/support/random.h"

#include <quern/jobs.h>

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { EXTERNAL_COUNT = 8, MAX_ITEMS = 300 };

typedef struct mix {
    quern_jobs *jobs;
    uint64_t seed;
    double deadline;
    uint32_t worker_count;
    /* the pool has fewer external slots than there are external threads */
    bool may_be_busy;
    /* per worker index: the thread that runs as this worker at present; 0: none */
    _Atomic uint64_t owners[QUERN_MAX_THREADS];
    uint32_t thread_count;
    /* per external thread: its worker index + 1 while it is registered, otherwise 0 */
    _Atomic uint32_t registered[EXTERNAL_COUNT];
    _Atomic uint32_t acting_count;
} mix;

static void act(mix *of, random_source *random, uint32_t depth);

static _Thread_local char own_address;

static inline uint64_t this_thread(void)
{
    return (uint64_t)(uintptr_t)&own_address;
}

/* Asserts that no two threads run as the same worker at the same time. Returns the value that `leave`
 * needs. */
static inline uint64_t enter(mix *of, uint32_t worker_index)
{
    cr_expect(worker_index < of->worker_count, "seed %llu: worker %u", (unsigned long long)of->seed,
              worker_index);
    const uint64_t before =
        atomic_exchange_explicit(&of->owners[worker_index], this_thread(), memory_order_relaxed);
    cr_expect(before == 0 || before == this_thread(), "seed %llu: two threads are worker %u",
              (unsigned long long)of->seed, worker_index);
    return before;
}

static inline void leave(mix *of, uint32_t worker_index, uint64_t before)
{
    atomic_store_explicit(&of->owners[worker_index], before, memory_order_relaxed);
}

static inline void disturb(uint64_t number)
{
    if (number % 5 == 0) sched_yield();
    if (number % 97 == 0) nanosleep(&(struct timespec){.tv_nsec = (long)(number % 200000)}, NULL);
}

static inline void expect_ok(const mix *of, quern_result result, const char *what)
{
    cr_expect(result == QUERN_OK, "seed %llu: %s: %s", (unsigned long long)of->seed, what,
              quern_error_message());
}

/* Checks the result of a call. Returns false if the pool had no free external slot, which is only
 * allowed for calls by external threads. */
static inline bool is_done(const mix *of, quern_result result, bool is_external, const char *what)
{
    if (result == QUERN_ERROR_POOL_BUSY && is_external && of->may_be_busy) return false;
    expect_ok(of, result, what);
    return true;
}

/* --------------------------------------------------------------------------------------------- items */

typedef struct range {
    mix *of;
    uint64_t seed;
    uint32_t depth;
    _Atomic uint8_t hits[MAX_ITEMS];
    struct range *before[3]; /* ranges that must be complete before this one begins */
    uint32_t before_count;
    uint32_t count;
    _Atomic uint32_t done_count;
} range;

static inline void run_range(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    range *self = argument;
    mix *of = self->of;
    random_source random = {self->seed + begin};
    const uint64_t before = enter(of, worker_index);
    for (uint32_t i = 0; i < self->before_count; i++)
        cr_expect(atomic_load_explicit(&self->before[i]->done_count, memory_order_relaxed) ==
                      self->before[i]->count,
                  "seed %llu: a node too early", (unsigned long long)of->seed);
    for (uint32_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&self->hits[i], 1, memory_order_relaxed);
    disturb(random_next(&random));
    if (self->depth > 0 && random_chance(&random, 5)) act(of, &random, self->depth - 1);
    atomic_fetch_add_explicit(&self->done_count, end - begin, memory_order_relaxed);
    leave(of, worker_index, before);
}

/* Asserts that each item ran once. If the range was cancelled, items may not have run at all. */
static inline void check_items(range *self, bool is_cancelled)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const uint32_t hits = atomic_exchange_explicit(&self->hits[i], 0, memory_order_relaxed);
        cr_expect(hits == 1 || (hits == 0 && is_cancelled), "seed %llu: item %u of %u ran %u times",
                  (unsigned long long)self->of->seed, i, self->count, hits);
    }
}

/* Asserts that each item ran hit_count times; 0 after a call that failed. */
static inline void check_range(range *self, uint32_t hit_count)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const uint32_t hits = atomic_exchange_explicit(&self->hits[i], 0, memory_order_relaxed);
        cr_expect(hits == hit_count, "seed %llu: item %u of %u ran %u times, not %u",
                  (unsigned long long)self->of->seed, i, self->count, hits, hit_count);
    }
    atomic_store_explicit(&self->done_count, 0, memory_order_relaxed);
}

#endif
