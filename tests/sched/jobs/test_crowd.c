/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <criterion/criterion.h>

/* When workers yield on a machine on which other programs run (sched/jobs/yield.c), with a clock and a yield of the
 * test. */

static uint64_t clock_now_ns = 1000;
static uint64_t yield_took_ns; /* how long a yield lasts */
static uint32_t yields;

static uint64_t read_clock(void)
{
    return clock_now_ns;
}

static void yield_thread(void)
{
    yields++;
    clock_now_ns += yield_took_ns;
}

/* These replace the library's object files. */
#define quern__clock_ns     read_clock
#define quern__thread_yield yield_thread
#include "sched/jobs/wait.c"  /* NOLINT(bugprone-suspicious-include) */
#include "sched/jobs/yield.c" /* NOLINT(bugprone-suspicious-include) */
#undef quern__clock_ns
#undef quern__thread_yield

static quern__worker workers[2];
static quern_jobs pool = {.thread_count = 2,
                          .worker_count = 2,
                          .external_count = 1,
                          .processor_count = 2,
                          .spin_ns = 200000,
                          .workers = workers};

/* Worker 0 has a job, on no known processor. Worker 1 was woken and does not run yet. */
static void set_up(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        workers[i].jobs = &pool;
        workers[i].index = i;
        cr_assert(quern__parker_init(&workers[i].parker));
    }
    atomic_store(&workers[1].times.idle_since_ns, 1);
    atomic_store(&workers[1].times.asleep_since_ns, 1);
    quern__parker_give(&workers[1].parker);
    atomic_store(&workers[1].cpu_slot.checked_wakeup_count, CHECKED_WAKEUPS);
}

TestSuite(crowd, .init = set_up);

static void wake(void)
{
    quern__worker_end_waking(&workers[1]);
}

static void spin_on(void)
{
    (void)quern__worker_should_stop_spinning(&workers[0]);
}

static void end_long_work(void)
{
    quern__worker_yield_after_long_work(&workers[0]);
}

static void (*const reasons[])(void) = {wake, spin_on, end_long_work};
enum { REASONS = sizeof reasons / sizeof reasons[0] };

static uint32_t yields_for_each_reason(void)
{
    const uint32_t before = yields;
    for (uint32_t i = 0; i < REASONS; i++)
        reasons[i]();
    return yields - before;
}

Test(crowd, a_short_yield_is_repeated_at_once)
{
    yield_took_ns = LOST_YIELD_NS;
    cr_expect_eq(yields_for_each_reason(), REASONS);
    cr_expect_eq(yields_for_each_reason(), REASONS);
}

Test(crowd, a_yield_to_another_program_ends_all_yields_for_many_times_as_long)
{
    yield_took_ns = LOST_YIELD_NS + 1;
    for (uint32_t i = 0; i < REASONS; i++) {
        reasons[i]();
        cr_expect_eq(yields, i + 1, "reason %u", (unsigned)i);
        cr_expect_eq(yields_for_each_reason(), 0);
        clock_now_ns += YIELD_SHARE * yield_took_ns - 1;
        cr_expect_eq(yields_for_each_reason(), 0);
        clock_now_ns++;
    }
}

Test(crowd, a_stop_of_the_process_counts_as_a_second)
{
    yield_took_ns = (uint64_t)3600 * MOST_LOST_NS;
    wake();
    clock_now_ns += (uint64_t)YIELD_SHARE * MOST_LOST_NS;
    yield_took_ns = 0;
    cr_expect_eq(yields_for_each_reason(), REASONS);
}

/* Otherwise the worker would spin for as long as the system lets it. */
Test(crowd, a_waiting_worker_of_an_oversubscribed_pool_sleeps_where_it_may_not_yield)
{
    const quern__wait wait = {0};
    uint64_t start_ns = 0;
    uint32_t count = 0;
    pool.external_count = 2;
    pool.processor_count = 1;
    atomic_store(&pool.external_slots, 1);
    cr_assert(quern__jobs_is_oversubscribed(&pool));
    yield_took_ns = LOST_YIELD_NS + 1;
    cr_expect_not(has_spun_enough(&workers[0], &wait, &start_ns, &count));
    cr_expect_eq(yields, 1);
    cr_expect(has_spun_enough(&workers[0], &wait, &start_ns, &count));
    cr_expect_eq(yields, 1);
}
