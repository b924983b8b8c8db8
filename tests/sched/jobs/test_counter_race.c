/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Includes the shipped sched/jobs/job_counter.c and runs steps of other threads between its own steps, in
 * orders that are very rare in practice. tests/models explores all such orders; this test needs no model
 * checker. */

static void sleep_ms(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

/* Called once, after the list was taken from a counter at zero and before it is unlocked. */
static void (*between)(void);

static uint32_t unlock_late(_Atomic uint32_t *pending, uint32_t mask, memory_order order)
{
    void (*step)(void) = between;
    between = NULL;
    if (step != NULL) step();
    return atomic_fetch_and_explicit(pending, mask, order);
}

/* Called after a sleeper's link was marked and before the permit is given: the sleeper gets a permit from
 * another thread. */
static _Atomic bool is_watched, is_gone, was_gone;

static void give_late(quern__parker *parker)
{
    quern__parker_give(parker);
    if (!atomic_load(&is_watched)) return;
    sleep_ms(100);
    if (atomic_load(&is_gone))
        atomic_store(&was_gone, true);
    else
        quern__parker_give(parker);
}

/* Called before an outside thread announces its call. */
static void begin_late(quern_jobs *pool)
{
    if (atomic_load(&is_watched)) sleep_ms(100);
    if (atomic_load(&is_gone))
        atomic_store(&was_gone, true);
    else
        quern__jobs_begin_outside_call(pool);
}

/* Called after that, and before the thread announces the end of the call. */
static void end_if_there(quern_jobs *pool)
{
    if (!atomic_load(&was_gone)) quern__jobs_end_outside_call(pool);
}

#undef atomic_fetch_and_explicit
#define atomic_fetch_and_explicit(object, mask, order) unlock_late(object, mask, order)
#define quern__parker_give(parker)                     give_late(parker)
#define quern__jobs_begin_outside_call(jobs)           begin_late(jobs)
#define quern__jobs_end_outside_call(jobs)             end_if_there(jobs)
/* Replaces the library's object file, so it defines everything that the object file defines. */
#include "sched/jobs/job_counter.c" /* NOLINT(bugprone-suspicious-include) */

TestSuite(counter_race, .timeout = 60);

static quern_jobs *jobs;
static quern_counter counter;
static _Atomic uint32_t run_counts[2];

static void open_pool(uint32_t thread_count)
{
    quern_jobs_def def = {.thread_count = thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
}

static void count_run(void *argument, uint32_t worker_index)
{
    atomic_fetch_add(&run_counts[*(uint32_t *)argument], 1);
}

static void continue_with(uint32_t which)
{
    quern_job_def def = {.function = count_run, .payload = &which, .payload_bytes = sizeof which};
    cr_assert_eq(quern_jobs_submit_after(jobs, &def, &counter), QUERN_OK);
}

static pthread_t second;

static void *continue_with_second(void *argument)
{
    continue_with(1);
    return argument;
}

/* A thread that adds a link meanwhile waits, and then finds the counter at zero. */
static void start_second(void)
{
    cr_assert_eq(pthread_create(&second, NULL, continue_with_second, NULL), 0);
    sleep_ms(50);
}

Test(counter_race, a_continuation_added_while_others_fire_runs)
{
    open_pool(1);
    quern_counter_hold(&counter);
    continue_with(0);
    between = start_second;
    cr_assert_eq(quern_counter_release(jobs, &counter), QUERN_OK);
    cr_assert_null(between);
    pthread_join(second, NULL);
    cr_assert(quern_counter_is_done(&counter));
    quern_jobs_destroy(jobs);
    cr_assert_eq(atomic_load(&run_counts[0]), 1u);
    cr_assert_eq(atomic_load(&run_counts[1]), 1u);
}

static void *release_from_outside(void *argument)
{
    sleep_ms(50); /* longer than the other thread spins */
    atomic_store(&is_watched, true);
    cr_expect(quern_counter_release(jobs, &counter) == QUERN_OK);
    return NULL;
}

/* A waiting thread may destroy the pool before the call that ended its wait has returned. */
Test(counter_race, a_pool_exists_until_the_releasing_call_has_ended)
{
    pthread_t thread;
    open_pool(2);
    quern_counter_hold(&counter);
    cr_assert_eq(pthread_create(&thread, NULL, release_from_outside, NULL), 0);
    cr_assert_eq(quern_jobs_wait(jobs, &counter), QUERN_OK);
    quern_jobs_destroy(jobs);
    atomic_store(&is_gone, true);
    pthread_join(thread, NULL);
    cr_assert(!atomic_load(&was_gone));
}

/* quern_counter_is_done sees the counter at zero before its continuation is submitted. */
Test(counter_race, a_pool_exists_until_the_continuation_is_submitted)
{
    pthread_t thread;
    open_pool(2);
    quern_counter_hold(&counter);
    continue_with(0);
    cr_assert_eq(pthread_create(&thread, NULL, release_from_outside, NULL), 0);
    while (!quern_counter_is_done(&counter))
        sleep_ms(1);
    quern_jobs_destroy(jobs);
    atomic_store(&is_gone, true);
    pthread_join(thread, NULL);
    cr_assert(!atomic_load(&was_gone));
    cr_assert_eq(atomic_load(&run_counts[0]), 1u);
}
