/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <stdlib.h>

TestSuite(fork, .timeout = 120);

/* --------------------------------------------------------------------------------------- fork and join */

Test(fork, forks_nest)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t i = 0; i < 10; i++) {
            fib whole = {jobs, 16, 0};
            cr_assert_eq(quern_jobs_run(jobs, run_fib, &whole), QUERN_OK);
            cr_assert_eq(whole.result, 987u);
        }
        quern_jobs_destroy(jobs);
    }
}

static void join_below_a_job(void *argument, uint32_t worker_index)
{
    board *of = argument;
    ticket mine = {of, 0};
    quern_job_def def = job_of(count_run, &mine, &of->counter);
    quern_fork fork;
    _Atomic uint32_t forked_count = 0;
    cr_expect(quern_jobs_fork(of->jobs, &fork, count_plain, (void *)&forked_count) == QUERN_OK);
    cr_expect(quern_jobs_submit(of->jobs, &def) == QUERN_OK);
    cr_expect(quern_jobs_join(of->jobs, &fork) == QUERN_OK);
    cr_expect(atomic_load(&of->run_count) == 1 && atomic_load(&forked_count) == 1);
    cr_expect(quern_counter_is_done(&of->counter));
}

/* The pool has one thread, so the join runs the job. */
Test(fork, join_counts_all_finished_jobs)
{
    board of = {.jobs = open_pool(1)};
    cr_assert_eq(quern_jobs_run(of.jobs, join_below_a_job, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

enum { MANY_FORKS = 2000 };

/* More forks than a deque holds, joined in the order in which they were forked, which is the slow one. */
static void fork_many(void *argument, uint32_t worker_index)
{
    board *of = argument;
    quern_fork *forks = calloc(MANY_FORKS, sizeof *forks);
    for (uint32_t i = 0; i < MANY_FORKS; i++)
        cr_expect(quern_jobs_fork(of->jobs, &forks[i], count_plain, &of->run_count) == QUERN_OK);
    for (uint32_t i = 0; i < MANY_FORKS; i++)
        cr_expect(quern_jobs_join(of->jobs, &forks[i]) == QUERN_OK);
    free(forks);
}

Test(fork, forks_may_be_many_and_joined_in_any_order)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        board of = {.jobs = open_pool(thread_counts[t])};
        for (uint32_t i = 1; i <= 5; i++) {
            cr_assert_eq(quern_jobs_run(of.jobs, fork_many, &of), QUERN_OK);
            cr_assert_eq(atomic_load(&of.run_count), i * MANY_FORKS);
        }
        quern_jobs_destroy(of.jobs);
    }
}

static void note_number(void *argument, uint32_t worker_index)
{
    ++*(uint64_t *)argument;
}

static void join_wrongly(void *argument, uint32_t worker_index)
{
    quern_fork fork = {.function = NULL};
    uint64_t number = 3;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_join(argument, &fork));
    cr_expect(quern_jobs_fork(argument, &fork, note_number, &number) == QUERN_OK);
    cr_expect(quern_jobs_join(argument, &fork) == QUERN_OK);
    cr_expect_eq(number, 4u);
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_join(argument, &fork));
}

Test(fork, joining_twice_or_before_forking_is_rejected)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        quern_jobs *jobs = open_pool(threads);
        cr_assert_eq(quern_jobs_run(jobs, join_wrongly, jobs), QUERN_OK);
        quern_jobs_destroy(jobs);
    }
}

Test(fork, forks_are_rejected_outside_of_a_job)
{
    quern_jobs *jobs = open_pool(2);
    quern_fork fork;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_fork(jobs, &fork, run_fib, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_join(jobs, &fork));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_fork(NULL, &fork, run_fib, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_fork(jobs, NULL, run_fib, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_fork(jobs, &fork, NULL, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_join(jobs, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_run(jobs, NULL, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_jobs_run(NULL, run_fib, NULL));
    quern_jobs_destroy(jobs);
}
