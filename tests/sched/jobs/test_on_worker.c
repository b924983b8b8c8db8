/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <string.h>

TestSuite(on_worker, .timeout = 120);

enum { MOST_WORKERS = 8 };

typedef struct scene {
    quern_jobs *jobs;
    quern_counter counter;
    _Atomic uint32_t run_counts[MOST_WORKERS]; /* by the worker that the job was assigned to */
    _Atomic uint32_t fault_count;
    _Atomic bool gate;
    uint32_t orders[MOST_WORKERS]; /* by worker; written by that worker alone */
} scene;

typedef struct errand {
    scene *of;
    uint32_t worker; /* worker that the job is assigned to; UINT32_MAX: any */
    uint32_t number;
} errand;

static quern_job_def errand_for(quern_job_function *function, const errand *payload)
{
    return (quern_job_def){.function = function,
                           .payload = payload,
                           .payload_bytes = sizeof *payload,
                           .counter = &payload->of->counter,
                           .on_worker = payload->worker == UINT32_MAX ? 0 : payload->worker + 1};
}

static void run_errand(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    if (worker_index != mine->worker) atomic_fetch_add(&mine->of->fault_count, 1);
    atomic_fetch_add(&mine->of->run_counts[mine->worker], 1);
}

static void submit_errand(scene *of, quern_job_function *function, uint32_t worker, uint32_t number)
{
    const errand payload = {of, worker, number};
    const quern_job_def def = errand_for(function, &payload);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK, "%s", quern_error_message());
}

static void wait_for(scene *of)
{
    cr_assert_eq(quern_jobs_wait(of->jobs, &of->counter), QUERN_OK);
}

/* ---------------------------------------------------------------------------------------- where it runs */

static void submit_from_job(void *argument, uint32_t worker_index)
{
    scene *of = *(scene **)argument;
    for (uint32_t worker = 1; worker < quern_jobs_thread_count(of->jobs); worker++)
        submit_errand(of, run_errand, worker, 0);
}

Test(on_worker, given_worker_runs_job_from_any_submitter)
{
    for (uint32_t thread_count = 2; thread_count <= MOST_WORKERS; thread_count += 3) {
        scene of = {.jobs = open_pool(thread_count)};
        scene *address = &of;
        const quern_job_def from_job = {.function = submit_from_job,
                                        .payload = &address,
                                        .payload_bytes = sizeof address,
                                        .counter = &of.counter};
        for (uint32_t round = 0; round < 50; round++) {
            for (uint32_t worker = 1; worker < thread_count; worker++)
                submit_errand(&of, run_errand, worker, 0);
            cr_assert_eq(quern_jobs_submit(of.jobs, &from_job), QUERN_OK);
            if (round % 5 == 0) sleep_ms(1); /* the workers fall asleep */
            wait_for(&of);
        }
        for (uint32_t worker = 1; worker < thread_count; worker++)
            cr_expect_eq(atomic_load(&of.run_counts[worker]), 100u);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
        quern_jobs_destroy(of.jobs);
    }
}

static void check_order(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    if (mine->of->orders[worker_index]++ != mine->number) atomic_fetch_add(&mine->of->fault_count, 1);
    run_errand(argument, worker_index);
}

Test(on_worker, jobs_of_one_worker_run_in_order)
{
    scene of = {.jobs = open_pool(4)};
    for (uint32_t number = 0; number < 200; number++)
        for (uint32_t worker = 1; worker < 4; worker++)
            submit_errand(&of, check_order, worker, number);
    wait_for(&of);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs);
}

Test(on_worker, a_continuation_goes_to_the_given_worker)
{
    scene of = {.jobs = open_pool(3)};
    for (uint32_t round = 0; round < 100; round++) {
        quern_counter before = {0};
        const errand payload = {&of, 1 + round % 2, 0};
        const quern_job_def def = errand_for(run_errand, &payload);
        quern_counter_hold(&before);
        cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &before), QUERN_OK);
        cr_assert_eq(quern_counter_release(of.jobs, &before), QUERN_OK);
        wait_for(&of);
    }
    cr_expect_eq(atomic_load(&of.run_counts[1]), 50u);
    cr_expect_eq(atomic_load(&of.run_counts[2]), 50u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs);
}

static void *submit_from_outside(void *argument)
{
    scene *of = argument;
    for (uint32_t i = 0; i < 300; i++)
        submit_errand(of, run_errand, 1 + i % 3, 0);
    return NULL;
}

Test(on_worker, external_threads_assign_jobs)
{
    scene of = {.jobs = open_pool(4)};
    pthread_t threads[3];
    quern_counter_hold(&of.counter);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, submit_from_outside, &of), 0);
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(quern_counter_release(of.jobs, &of.counter), QUERN_OK);
    wait_for(&of);
    for (uint32_t worker = 1; worker < 4; worker++)
        cr_expect_eq(atomic_load(&of.run_counts[worker]), 300u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs);
}

/* ----------------------------------------------------------------------------------------------- waits */

static void wait_for_another(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    quern_counter done = {0};
    const errand other = {mine->of, mine->number, 0};
    quern_job_def def = errand_for(run_errand, &other);
    def.counter = &done;
    cr_expect_eq(quern_jobs_submit(mine->of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(mine->of->jobs, &done), QUERN_OK);
    run_errand(argument, worker_index);
}

/* Worker 1 waits for a job assigned to itself, then workers 1 and 2 wait for jobs assigned to each
 * other. */
Test(on_worker, a_worker_runs_its_jobs_while_it_waits)
{
    scene of = {.jobs = open_pool(3)};
    for (uint32_t round = 0; round < 100; round++) {
        submit_errand(&of, wait_for_another, 1, 1);
        submit_errand(&of, wait_for_another, 1, 2);
        submit_errand(&of, wait_for_another, 2, 1);
        if (round % 10 == 0) sleep_ms(1);
        wait_for(&of);
    }
    cr_expect_eq(atomic_load(&of.run_counts[1]), 400u);
    cr_expect_eq(atomic_load(&of.run_counts[2]), 200u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs);
}

static void wait_for_gate(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    while (!atomic_load(&mine->of->gate))
        sleep_ms(1);
    run_errand(argument, worker_index);
}

static void wait_long(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    quern_counter never_yet = {0};
    const errand other = {mine->of, 2, 0};
    quern_job_def def = errand_for(wait_for_gate, &other);
    def.counter = &never_yet;
    cr_expect_eq(quern_jobs_submit(mine->of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(mine->of->jobs, &never_yet), QUERN_OK);
    run_errand(argument, worker_index);
}

/* The gate opens only after worker 1 has run a job that arrived while it slept in a wait. */
Test(on_worker, worker_asleep_in_wait_is_woken)
{
    scene of = {.jobs = open_pool(3)};
    submit_errand(&of, wait_long, 1, 0);
    sleep_ms(5);
    submit_errand(&of, run_errand, 1, 0);
    while (atomic_load(&of.run_counts[1]) == 0)
        sleep_ms(1);
    atomic_store(&of.gate, true);
    wait_for(&of);
    cr_expect_eq(atomic_load(&of.run_counts[1]), 2u);
    quern_jobs_destroy(of.jobs);
}

enum {
    NESTED_JOBS = 400,
    MOST_NESTED = 257 /* one job, plus the unrelated jobs that nested waits may run */
};

static quern_counter held;

/* All jobs wait for the same counter, so each runs in the wait of the previous one. */
static void wait_on_and_on(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    atomic_fetch_add(&mine->of->run_counts[0], 1);
    cr_expect_eq(quern_jobs_wait(mine->of->jobs, &held), QUERN_OK);
    run_errand(argument, worker_index);
}

Test(on_worker, waits_nest_to_a_limit)
{
    scene of = {.jobs = open_pool(2)};
    quern_counter_hold(&held);
    for (uint32_t i = 0; i < NESTED_JOBS; i++)
        submit_errand(&of, wait_on_and_on, 1, 0);
    while (atomic_load(&of.run_counts[0]) < MOST_NESTED)
        sleep_ms(1);
    sleep_ms(20);
    cr_expect_eq(atomic_load(&of.run_counts[0]), (uint32_t)MOST_NESTED);
    cr_assert_eq(quern_counter_release(of.jobs, &held), QUERN_OK);
    wait_for(&of);
    cr_expect_eq(atomic_load(&of.run_counts[1]), (uint32_t)NESTED_JOBS);
    quern_jobs_destroy(of.jobs);
}

/* No other worker runs the jobs assigned to a busy worker, and no other job waits for them. */
Test(on_worker, assigned_jobs_run_on_no_other_worker)
{
    scene of = {.jobs = open_pool(3)};
    board others = {.jobs = of.jobs};
    submit_errand(&of, wait_for_gate, 1, 0);
    for (uint32_t i = 0; i < 10; i++)
        submit_errand(&of, run_errand, 1, 0);
    submit_many(&others, 100, QUERN_PRIORITY_NORMAL);
    cr_assert_eq(quern_jobs_wait(of.jobs, &others.counter), QUERN_OK);
    cr_expect_eq(atomic_load(&others.run_count), 100u);
    cr_expect_eq(atomic_load(&of.run_counts[1]), 0u);
    atomic_store(&of.gate, true);
    wait_for(&of);
    cr_expect_eq(atomic_load(&of.run_counts[1]), 11u);
    cr_expect_eq(atomic_load(&of.fault_count), 0u);
    quern_jobs_destroy(of.jobs);
}

/* ---------------------------------------------------------------------------------------------- the end */

/* Each job submits one to the next worker, whose thread may have ended already. */
static void pass_on(void *argument, uint32_t worker_index)
{
    errand mine = *(errand *)argument;
    run_errand(argument, worker_index);
    if (mine.number == 0) return;
    mine.number--;
    mine.worker = 1 + mine.worker % (quern_jobs_thread_count(mine.of->jobs) - 1);
    if (mine.number % 16 == 0) sleep_ms(1);
    const quern_job_def def = errand_for(pass_on, &mine);
    cr_expect_eq(quern_jobs_submit(mine.of->jobs, &def), QUERN_OK);
}

static uint32_t sum_runs(scene *of)
{
    uint32_t sum = 0;
    for (uint32_t worker = 0; worker < MOST_WORKERS; worker++)
        sum += atomic_load(&of->run_counts[worker]);
    return sum;
}

Test(on_worker, destroy_and_resize_run_assigned_jobs_on_their_workers)
{
    for (uint32_t round = 0; round < 50; round++) {
        scene of = {.jobs = open_pool(5)};
        submit_errand(&of, pass_on, 1 + round % 4, 40);
        cr_assert_eq(quern_jobs_resize(of.jobs, 3), QUERN_OK);
        cr_expect_eq(sum_runs(&of), 41u);
        submit_errand(&of, pass_on, 1 + round % 2, 40);
        quern_jobs_destroy(of.jobs);
        cr_expect_eq(sum_runs(&of), 82u);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
    }
}

static void submit_as_caller(void *argument, uint32_t worker_index)
{
    errand mine = *(errand *)argument;
    cr_expect_eq(worker_index, 0u);
    submit_errand(mine.of, pass_on, 1, mine.number);
}

Test(on_worker, caller_job_at_end_may_assign_jobs)
{
    for (uint32_t round = 0; round < 50; round++) {
        scene of = {.jobs = open_pool(3)};
        const errand payload = {&of, UINT32_MAX, 10};
        quern_job_def def = errand_for(submit_as_caller, &payload);
        def.on_worker = QUERN_ON_CALLER;
        cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
        if (round % 2 == 0) submit_errand(&of, pass_on, 1, 20);
        quern_jobs_destroy(of.jobs);
        cr_expect_eq(sum_runs(&of), round % 2 == 0 ? 32u : 11u);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
    }
}

static void count_anywhere(void *argument, uint32_t worker_index)
{
    const errand *mine = argument;
    cr_expect(worker_index < quern_jobs_thread_count(mine->of->jobs));
    atomic_fetch_add(&mine->of->run_counts[0], 1);
}

Test(on_worker, job_of_ended_worker_runs_anywhere)
{
    for (uint32_t left = 1; left <= 3; left++) {
        scene of = {.jobs = open_pool(4)};
        quern_counter before = {0};
        const errand payload = {&of, 3, 0};
        const quern_job_def def = errand_for(count_anywhere, &payload);
        quern_counter_hold(&before);
        cr_assert_eq(quern_jobs_submit_after(of.jobs, &def, &before), QUERN_OK);
        cr_assert_eq(quern_jobs_resize(of.jobs, left), QUERN_OK);
        cr_assert_eq(quern_counter_release(of.jobs, &before), QUERN_OK);
        wait_for(&of);
        cr_expect_eq(atomic_load(&of.run_counts[0]), 1u);
        quern_jobs_destroy(of.jobs);
    }
}

/* ----------------------------------------------------------------------------------------- host threads */

typedef struct host_call {
    void (*function)(void *data);
    void *data;
} host_call;

static void *make_call(void *argument)
{
    const host_call call = *(host_call *)argument;
    free(argument);
    call.function(call.data);
    return NULL;
}

static void submit_to_new_thread(void *user_data, void (*function)(void *data), void *data)
{
    pthread_t thread;
    host_call *call = malloc(sizeof *call);
    cr_assert_not_null(call);
    *call = (host_call){function, data};
    cr_assert_eq(pthread_create(&thread, NULL, make_call, call), 0);
    pthread_detach(thread);
}

Test(on_worker, host_thread_is_requested_for_assigned_job)
{
    for (uint32_t round = 0; round < 30; round++) {
        scene of = {0};
        const quern_jobs_def def = {.thread_count = 4, .host_threads.submit = submit_to_new_thread};
        cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
        for (uint32_t i = 0; i < 30; i++) {
            submit_errand(&of, run_errand, 1 + i % 3, 0);
            if (i % 10 == 0) wait_for(&of);
        }
        submit_errand(&of, wait_for_another, 1, 2);
        submit_errand(&of, wait_for_another, 2, 1);
        if (round % 2 == 0) wait_for(&of);
        submit_errand(&of, pass_on, 3, 10);
        quern_jobs_destroy(of.jobs);
        cr_expect_eq(sum_runs(&of), 30u + 4 + 11);
        cr_expect_eq(atomic_load(&of.fault_count), 0u);
    }
}

/* -------------------------------------------------------------------------------------------- refusals */

Test(on_worker, invalid_workers_are_refused)
{
    scene of = {.jobs = open_pool(3)};
    const errand payload = {&of, 0, 0};
    quern_job_def def = errand_for(run_errand, &payload);
    quern_counter after = {0};
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "worker 0"));
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, &after));
    def.on_worker = 4;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert_not_null(strstr(quern_error_message(), "workers 0 to 2"));
    def.on_worker = UINT32_MAX - 1;
    must_refuse(INVALID_ARGUMENT, NULL, quern_jobs_submit_after(of.jobs, &def, &after));
    cr_assert(quern_counter_is_done(&of.counter));
    quern_jobs_destroy(of.jobs);
}

Test(on_worker, failing_memory_leaves_nothing_submitted)
{
    failing_allocator *allocator = failing_allocator_create();
    scene of = {0};
    const quern_jobs_def pool = {.thread_count = 2, .allocator = failing_allocator_interface(allocator)};
    cr_assert_eq(quern_jobs_create(&pool, &of.jobs), QUERN_OK);
    const errand payload = {&of, 1, 0};
    const quern_job_def def = errand_for(run_errand, &payload);
    failing_allocator_fail_from(allocator, 1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_jobs_submit(of.jobs, &def));
    cr_assert(quern_counter_is_done(&of.counter));
    failing_allocator_heal(allocator);
    cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
    wait_for(&of);
    cr_expect_eq(atomic_load(&of.run_counts[1]), 1u);
    quern_jobs_destroy(of.jobs);
    failing_allocator_close(allocator);
}
