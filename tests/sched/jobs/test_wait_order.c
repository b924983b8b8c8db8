/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"

#include <criterion/criterion.h>

#include <string.h>

/* What a wait runs first: the awaited job and what that one waits for, before other jobs of the waiting one. */

TestSuite(wait_order, .timeout = 60);

enum { COUNT = 100 };

typedef struct crowd {
    quern_jobs *jobs;
    quern_counter counters[COUNT];
    quern_priority priorities[COUNT];
    uint32_t awaited[COUNT]; /* of each job: 1 + the job for which it waits, or 0 */
    uint32_t wanted;         /* the job for which the first wait is */
    uint32_t run_count;      /* at the end of that wait */
    _Atomic uint32_t begun_count;
    uint32_t begun_by_caller[COUNT]; /* numbers of the jobs that worker 0 has begun, in order */
    uint32_t caller_count;
    _Atomic bool is_open; /* whether jobs that wait may do so */
} crowd;

typedef struct member {
    crowd *of;
    uint32_t number;
} member;

static void run_member(void *argument, uint32_t worker_index)
{
    const member *mine = argument;
    crowd *of = mine->of;
    atomic_fetch_add(&of->begun_count, 1);
    if (worker_index == 0) of->begun_by_caller[of->caller_count++] = mine->number;
    if (of->awaited[mine->number] == 0) return;
    while (!atomic_load(&of->is_open))
        sleep_ms(1);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[of->awaited[mine->number] - 1]), QUERN_OK);
}

static void submit_members(crowd *of, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        const member each = {of, i};
        cr_expect_eq(quern_jobs_submit(of->jobs, &(quern_job_def){.function = run_member,
                                                                  .payload = &each,
                                                                  .payload_bytes = sizeof each,
                                                                  .priority = of->priorities[i],
                                                                  .counter = &of->counters[i]}),
                     QUERN_OK);
    }
}

static void wait_for_one_then_all(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    submit_members(of, 0, COUNT);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[of->wanted]), QUERN_OK);
    of->run_count = atomic_load(&of->begun_count);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[i]), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT);
}

/* Runs the scene outside and inside of a job, and checks how many jobs have begun at the end of the first wait. */
static void expect_run_count(const crowd *scene, uint32_t run_count)
{
    static crowd of;
    for (uint32_t inside = 0; inside < 2; inside++) {
        memcpy((void *)&of, (const void *)scene, sizeof of);
        of.jobs = open_pool(1);
        of.is_open = true;
        if (inside != 0)
            cr_assert_eq(quern_jobs_run(of.jobs, wait_for_one_then_all, &of), QUERN_OK);
        else
            wait_for_one_then_all(&of, 0);
        cr_expect_eq(of.run_count, run_count, "%u jobs ran, inside %u", of.run_count, inside);
        quern_jobs_destroy(of.jobs);
    }
}

Test(wait_order, the_awaited_job_runs_before_newer_ones)
{
    static crowd of = {.wanted = 50};
    expect_run_count(&of, 1);
}

Test(wait_order, an_awaited_job_of_any_priority_runs_first)
{
    for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++) {
        static crowd of = {.wanted = 50};
        of.priorities[50] = (quern_priority)priority;
        expect_run_count(&of, 1);
    }
}

Test(wait_order, what_the_awaited_job_waits_for_runs_before_others)
{
    static crowd of = {.wanted = 50, .awaited = {[50] = 1 + 20, [20] = 1 + 70, [70] = 1 + 0}};
    expect_run_count(&of, 4);
}

/* All jobs of one counter are spread over the deque: placeholders do not hide them. */
static void share_counter(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    quern_counter even = {0}, odd = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        const member each = {of, i};
        cr_expect_eq(quern_jobs_submit(of->jobs, &(quern_job_def){.function = run_member,
                                                                  .payload = &each,
                                                                  .payload_bytes = sizeof each,
                                                                  .counter = i % 2 == 0 ? &even : &odd}),
                     QUERN_OK);
    }
    cr_expect_eq(quern_jobs_wait(of->jobs, &even), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT / 2);
    cr_expect_eq(quern_jobs_wait(of->jobs, &odd), QUERN_OK);
    cr_expect_eq(atomic_load(&of->begun_count), COUNT);
}

Test(wait_order, all_jobs_of_the_awaited_counter_run_before_others)
{
    static crowd of;
    of.jobs = open_pool(1);
    cr_assert_eq(quern_jobs_run(of.jobs, share_counter, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
}

/* Worker 1 runs job 0, which waits for job 2. That one is between others in the deque of worker 0, where worker 1
 * cannot take it. */
static void help_the_helper(void *argument, uint32_t worker_index)
{
    crowd *of = argument;
    submit_members(of, 0, 1);
    while (atomic_load(&of->begun_count) == 0)
        sleep_ms(1);
    submit_members(of, 1, 5);
    atomic_store(&of->is_open, true);
    const void *awaited;
    do
        awaited = atomic_load(&of->jobs->workers[1].awaited_scope);
    while (awaited != &of->counters[2]);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->counters[0]), QUERN_OK);
}

Test(wait_order, what_another_worker_waits_for_runs_before_others)
{
    static crowd of = {.awaited = {[0] = 1 + 2}};
    of.jobs = open_pool(2);
    cr_assert_eq(quern_jobs_run(of.jobs, help_the_helper, &of), QUERN_OK);
    quern_jobs_destroy(of.jobs);
    cr_expect_eq(of.begun_by_caller[0], 2u);
}
