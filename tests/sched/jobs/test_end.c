/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/jobs/jobs_internal.h"
#include "tests/sched/jobs/board.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <sched.h>

/* What the last running job may do while quern_jobs_destroy or quern_jobs_resize ends the threads. */

TestSuite(end, .timeout = 120);

/* The job that runs last submits another one, and waits for an effect that only that job has. */
typedef struct last_job {
    quern_jobs *jobs;
    quern_counter bell;
    quern_priority priority; /* priority of the submitted job */
    _Atomic bool has_begun;
    _Atomic uint32_t run_count;
} last_job;

static void ring(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    atomic_fetch_add(&of->run_count, 1);
    cr_expect_eq(quern_counter_release(of->jobs, &of->bell), QUERN_OK);
}

static quern_job_def last_job_def(last_job **of, quern_job_function *function)
{
    return (quern_job_def){.function = function, .payload = of, .payload_bytes = sizeof *of};
}

/* Waits until this worker is the only one that does not rest. */
static void await_rest(const quern_jobs *jobs)
{
    while (!atomic_load(&jobs->is_stopping) || atomic_load(&jobs->active_thread_count) > 1)
        sched_yield();
}

static void submit_and_wait(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_counter_hold(&of->bell);
    quern_job_def def = last_job_def(&of, ring);
    def.priority = of->priority;
    atomic_fetch_add(&of->run_count, 1);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &of->bell), QUERN_OK);
}

static void be_last(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    submit_and_wait(argument, worker_index);
}

static void submit_for_caller(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_job_def def = last_job_def(&of, submit_and_wait);
    def.on_worker = QUERN_ON_CALLER;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void submit_for_another(void *argument, uint32_t worker_index)
{
    last_job *of = *(last_job **)argument;
    quern_job_def def = last_job_def(&of, submit_and_wait);
    def.on_worker = worker_index == 1 ? 3 : 2;
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
}

static void end_while(quern_job_function *last, uint32_t thread_count, quern_priority priority,
                      bool resizes)
{
    last_job state = {.jobs = open_pool(thread_count), .priority = priority}, *of = &state;
    const quern_job_def def = last_job_def(&of, last);
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    while (!atomic_load(&state.has_begun))
        sched_yield();
    if (resizes) cr_assert_eq(quern_jobs_resize(state.jobs, thread_count + 1), QUERN_OK);
    if (resizes) cr_expect_eq(atomic_load(&state.run_count), 2u);
    quern_jobs_destroy(state.jobs);
    cr_expect_eq(atomic_load(&state.run_count), 2u);
}

static void end_in_every_way(quern_job_function *last, uint32_t least_threads)
{
    for (uint32_t thread_count = least_threads; thread_count <= 4; thread_count++)
        for (int priority = QUERN_PRIORITY_NORMAL; priority <= QUERN_PRIORITY_LOW; priority++)
            for (int resizes = 0; resizes < 2; resizes++)
                end_while(last, thread_count, (quern_priority)priority, resizes != 0);
}

Test(end, last_job_waits_for_an_unrelated_job)
{
    end_in_every_way(be_last, 2);
}

Test(end, last_job_for_the_caller_waits_for_an_unrelated_job)
{
    end_in_every_way(submit_for_caller, 2);
}

Test(end, last_job_of_a_given_worker_waits_for_an_unrelated_job)
{
    end_in_every_way(submit_for_another, 3);
}

/* ---------------------------------------------------------------------------------------------- sharing */

enum { MEETING_THREADS = 4 };

typedef struct meeting {
    quern_jobs *jobs;
    _Atomic bool has_begun;
    _Atomic uint32_t arrived_count;
} meeting;

/* Returns only when all such jobs run at the same time. */
static void meet(void *argument, uint32_t worker_index)
{
    meeting *of = *(meeting **)argument;
    atomic_fetch_add(&of->arrived_count, 1);
    while (atomic_load(&of->arrived_count) < MEETING_THREADS)
        sched_yield();
}

static void call_meeting(void *argument, uint32_t worker_index)
{
    meeting *of = *(meeting **)argument;
    quern_counter done = {0};
    const quern_job_def def = {
        .function = meet, .payload = &of, .payload_bytes = sizeof of, .counter = &done};
    atomic_store(&of->has_begun, true);
    await_rest(of->jobs);
    for (uint32_t i = 0; i < MEETING_THREADS; i++)
        cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait(of->jobs, &done), QUERN_OK);
}

Test(end, all_workers_share_what_the_last_job_submits)
{
    meeting state = {.jobs = open_pool(MEETING_THREADS)}, *of = &state;
    const quern_job_def def = {.function = call_meeting, .payload = &of, .payload_bytes = sizeof of};
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    while (!atomic_load(&state.has_begun))
        sched_yield();
    quern_jobs_destroy(state.jobs);
    cr_expect_eq(atomic_load(&state.arrived_count), (uint32_t)MEETING_THREADS);
}

/* ------------------------------------------------------------------------------------- after the threads stopped */

enum { STOPPED_THREADS = 3 };

/* A pool all of whose workers but one are held between their sleep and the end of their rest, while the last one
 * stops the threads and another thread then submits a job. */
typedef struct stop {
    quern__observer observer; /* first; the pool reports sleeps to it */
    quern_jobs *jobs;
    _Atomic uint32_t held_count;
    _Atomic bool has_submitted;
    _Atomic bool has_run;
    bool ran_on_stopped_threads; /* written by the job */
} stop;

/* Called by each worker after a sleep. */
static void hold_at_rest(quern__observer *observer, uint32_t worker_index, quern__job_event event,
                         const char *name, uint64_t begin_ns, uint32_t count)
{
    stop *of = (stop *)(void *)observer;
    (void)worker_index, (void)name, (void)begin_ns, (void)count;
    if (event != QUERN__JOB_EVENT_SLEEP || !atomic_load(&of->jobs->is_stopping)) return;
    if (atomic_load(&of->jobs->active_thread_count) > 1 || atomic_load(&of->has_submitted)) return;
    atomic_fetch_add(&of->held_count, 1);
    while (!atomic_load(&of->has_submitted))
        sched_yield();
}

static void rest_last(void *argument, uint32_t worker_index)
{
    stop *of = *(stop **)argument;
    (void)worker_index;
    while (atomic_load(&of->held_count) < STOPPED_THREADS - 1) {
        quern_jobs_wake(of->jobs);
        sched_yield();
    }
}

static void note_state(void *argument, uint32_t worker_index)
{
    stop *of = *(stop **)argument;
    (void)worker_index;
    of->ran_on_stopped_threads = atomic_load(&of->jobs->has_stopped);
    atomic_store(&of->has_run, true);
}

static void *submit_after_stop(void *argument)
{
    stop *of = argument;
    const quern_job_def def = {.function = note_state, .payload = &of, .payload_bytes = sizeof of};
    while (!atomic_load(&of->jobs->has_stopped))
        sched_yield();
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    atomic_store(&of->has_submitted, true);
    return NULL;
}

/* The job needs threads that do not end: it may wait for others. So the threads of the resized pool run it. */
Test(end, a_job_submitted_after_the_threads_stopped_runs_on_new_threads)
{
    stop state = {.observer = {.report = hold_at_rest}}, *of = &state;
    const quern_jobs_def pool_def = {.thread_count = STOPPED_THREADS,
                                     .trace = (struct quern_trace *)(void *)&state.observer};
    const quern_job_def def = {
        .function = rest_last, .payload = &of, .payload_bytes = sizeof of, .on_worker = 2};
    pthread_t submitter;
    cr_assert_eq(quern_jobs_create(&pool_def, &state.jobs), QUERN_OK);
    atomic_store(&state.observer.is_recording, true);
    cr_assert_eq(quern_jobs_submit(state.jobs, &def), QUERN_OK);
    cr_assert_eq(pthread_create(&submitter, NULL, submit_after_stop, of), 0);
    cr_assert_eq(quern_jobs_resize(state.jobs, STOPPED_THREADS), QUERN_OK);
    pthread_join(submitter, NULL);
    while (!atomic_load(&state.has_run))
        sched_yield();
    cr_expect_not(state.ran_on_stopped_threads);
    quern_jobs_destroy(state.jobs);
}
