/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_SCHED_JOBS_COUNTED_ITEMS_H
#define TESTS_SCHED_JOBS_COUNTED_ITEMS_H

/* Submitted loops that count the calls per item. */

#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 20000 };

typedef struct items {
    quern_jobs *jobs;
    quern_counter counter;
    uint32_t count;
    uint32_t grain;
    uint8_t run_counts[MAX_ITEMS]; /* not atomic: only one worker runs each item */
    _Atomic uint32_t total;
    _Atomic uint32_t longest_call;
    _Atomic uint32_t in_call[QUERN_MAX_THREADS];
} items;

static inline items *open_items(quern_jobs *jobs)
{
    items *of = calloc(1, sizeof *of);
    of->jobs = jobs;
    return of;
}

static inline void count_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    items *of = argument;
    cr_expect(worker_index < quern_jobs_worker_count(of->jobs));
    cr_expect(begin < end && end <= of->count, "%u to %u of %u", begin, end, of->count);
    cr_expect(atomic_fetch_add(&of->in_call[worker_index], 1) == 0, "worker %u is there twice",
              worker_index);
    for (uint32_t i = begin; i < end; i++)
        of->run_counts[i]++;
    uint32_t longest = atomic_load(&of->longest_call);
    while (longest < end - begin &&
           !atomic_compare_exchange_weak(&of->longest_call, &longest, end - begin)) {
    }
    atomic_fetch_add(&of->total, end - begin);
    atomic_fetch_sub(&of->in_call[worker_index], 1);
}

static inline void check_items(items *of)
{
    for (uint32_t i = 0; i < of->count; i++)
        cr_assert_eq(of->run_counts[i], 1, "item %u of %u ran %u times", i, of->count, of->run_counts[i]);
    cr_assert_eq(atomic_load(&of->total), of->count);
    if (of->grain != 0) cr_assert_leq(atomic_load(&of->longest_call), of->grain);
    cr_assert(quern_counter_is_done(&of->counter));
}

static inline quern_loop_def loop_of(items *of, uint32_t count, uint32_t grain)
{
    memset(of->run_counts, 0, sizeof of->run_counts);
    atomic_store(&of->total, 0);
    atomic_store(&of->longest_call, 0);
    of->count = count;
    of->grain = grain;
    return (quern_loop_def){
        .function = count_items, .user_data = of, .count = count, .grain = grain, .counter = &of->counter};
}

#endif
