/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/board.h"

#include <criterion/criterion.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
