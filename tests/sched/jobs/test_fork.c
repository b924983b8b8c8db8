/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* --------------------------------------------------------------------------------- in a forked process */

/* Pools of the parent in a forked process. */

TestSuite(forked, .timeout = 120);

static void do_nothing(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index) {}

static void count_job(void *argument, uint32_t worker_index) {}

/* Runs in the child: returns 0 if every call reports the error, and a new pool works. */
static int use_pools_of(quern_jobs *parents, quern_jobs *alone)
{
    quern_counter counter = {0}, held = {0};
    quern_job_def job = {.function = count_job, .counter = &counter};
    quern_counter_hold(&held);
    if (quern_jobs_parallel_for(parents, 100, 1, do_nothing, NULL) != QUERN_ERROR_THREAD_UNAVAILABLE)
        return 1;
    if (strstr(quern_error_message(), "quern_jobs_parallel_for: this process was forked") == NULL) return 2;
    if (quern_jobs_submit(parents, &job) != QUERN_ERROR_THREAD_UNAVAILABLE ||
        !quern_counter_is_done(&counter))
        return 3;
    if (quern_jobs_submit_after(parents, &job, &held) != QUERN_ERROR_THREAD_UNAVAILABLE) return 4;
    if (quern_jobs_wait(parents, &held) != QUERN_ERROR_THREAD_UNAVAILABLE) return 5;
    if (quern_jobs_resize(parents, 2) != QUERN_ERROR_THREAD_UNAVAILABLE) return 6;
    if (quern_counter_release(parents, &held) != QUERN_ERROR_THREAD_UNAVAILABLE ||
        quern_counter_is_done(&held))
        return 8;
    quern_jobs_destroy(parents);
    if (quern_jobs_parallel_for(alone, 100, 1, do_nothing, NULL) != QUERN_OK) return 7;
    quern_jobs_destroy(alone);
    return 0;
}

/* A pool with all its threads inside a call. */
typedef struct busy_pool {
    quern_jobs *jobs;
    quern_counter held;
    _Atomic bool is_over;
} busy_pool;

static void stay(void *argument, uint32_t worker_index)
{
    busy_pool *of = argument;
    while (!atomic_load(&of->is_over))
        sleep_ms(1);
}

static void *enter_and_stay(void *argument)
{
    busy_pool *of = argument;
    cr_expect(quern_jobs_run(of->jobs, stay, of) == QUERN_OK);
    return NULL;
}

static void *wait_outside(void *argument)
{
    busy_pool *of = argument;
    cr_expect(quern_jobs_wait(of->jobs, &of->held) == QUERN_OK);
    return NULL;
}

Test(forked, forked_process_can_destroy_a_pool_in_any_state)
{
    busy_pool of = {.jobs = open_pool(2)};
    pthread_t inside, outside;
    quern_counter_hold(&of.held);
    cr_assert_eq(pthread_create(&inside, NULL, enter_and_stay, &of), 0);
    sleep_ms(20);
    cr_assert_eq(pthread_create(&outside, NULL, wait_outside, &of), 0);
    sleep_ms(20);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        quern_jobs_destroy(of.jobs);
        _exit(0);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    atomic_store(&of.is_over, true);
    cr_assert_eq(quern_counter_release(of.jobs, &of.held), QUERN_OK);
    pthread_join(inside, NULL);
    pthread_join(outside, NULL);
    quern_jobs_destroy(of.jobs);
}

Test(forked, forked_process_gets_thread_errors)
{
    quern_jobs *jobs = open_pool(3), *alone = open_pool(1);
    cr_assert_eq(quern_jobs_parallel_for(jobs, 100, 1, do_nothing, NULL), QUERN_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(use_pools_of(jobs, alone));
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    cr_assert_eq(quern_jobs_parallel_for(jobs, 100, 1, do_nothing, NULL), QUERN_OK);
    quern_jobs_destroy(jobs);
    quern_jobs_destroy(alone);
}
