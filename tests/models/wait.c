/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Workers that wait inside a job and sleep there (sched/jobs/wait.c, sched/jobs/search.c). Checked: each
 * wait ends. If all workers sleep in waits and there is a job that could end the waits, one of them runs
 * it, whichever thread pushed it. If a job belongs to the scope that a sleeper waits for, the sleeper is
 * woken for it. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter counters[2];
static _Atomic bool has_run;

static void start(void *(*entry)(void *argument), uintptr_t number)
{
    pthread_create(&threads[thread_count++], NULL, entry, (void *)number);
}

static void join_all(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

/* The job that all workers wait for. */
static void run_end(quern__job *job, quern__worker *worker)
{
    (void)job;
    assert(!atomic_exchange_explicit(&has_run, true, memory_order_relaxed));
    for (int i = 0; i < 2; i++)
        if (!quern_counter_is_done(&counters[i])) quern__counter_finish(&counters[i], 1, worker);
}

static void push_end(quern__worker *worker, const void *scope)
{
    const quern__job job = {.run = run_end, .scope = scope};
    pass_fence_point();
    quern__deque_push(&worker->deque, &job, 0);
    quern__jobs_notify(&pool, worker, scope);
}

/* Waits like a job of this worker. */
static void *wait_inside_job(void *argument)
{
    quern__worker *worker = &workers[(uintptr_t)argument];
    quern__current_worker = worker;
    own_index_or_0 = worker->index;
    wait_as_worker(worker, &counters[worker->index]);
    return NULL;
}

/* Raises the floor, because the wait would take a job above it at once. */
static void *push_and_wait(void *argument)
{
    quern__worker *worker = &workers[(uintptr_t)argument];
    quern__current_worker = worker;
    push_end(worker, NULL);
    worker->floor = quern__deque_bottom(&worker->deque);
    return wait_inside_job(argument);
}

static void *queue_end(void *argument)
{
    begin_fenceless();
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = QUERN__QUEUE_NORMAL;
    node->job.run = run_end;
    quern__queues_push(&pool.queues, node);
    quern__jobs_notify(&pool, NULL, NULL);
    end_fenceless();
    return argument;
}

/* Like quern_jobs_submit by an outside thread, which enters as worker 0. */
static void *submit_and_leave(void *argument)
{
    quern__current_worker = NULL;
    begin_fenceless();
    quern__worker *worker = quern__jobs_try_enter(&pool);
    assert(worker == &workers[0]);
    push_end(worker, NULL);
    quern__jobs_leave(&pool);
    end_fenceless();
    return argument;
}

/* A job of a scope that submits another job of the scope, and is then busy until another worker has run
 * that job. */
static void *push_part(void *argument)
{
    const void *scope = &counters[1];
    begin_fenceless();
    quern__current_worker = &workers[0];
    atomic_store_explicit(&workers[0].served_scope, scope, memory_order_release);
    push_end(&workers[0], scope);
    end_fenceless();
    AWAIT(atomic_load_explicit(&has_run, memory_order_relaxed));
    return argument;
}

/* An outside thread: if it cannot be worker 0, it sleeps until it can. */
static void *wait_from_outside_the_pool(void *argument)
{
    quern__current_worker = NULL;
    own_index_or_0 = 1; /* an index that no other thread has */
    wait_without_slot(&counters[0]);
    return argument;
}

static void *push_and_leave(void *argument)
{
    begin_fenceless();
    quern__current_worker = &workers[0];
    push_end(&workers[0], &counters[0]);
    quern__jobs_leave(&pool);
    end_fenceless();
    return argument;
}

static void set_up_waits(bool is_entered, bool uses_asymmetric_fence)
{
    set_up(2);
    pool.uses_asymmetric_fence = uses_asymmetric_fence;
    atomic_store_explicit(&pool.external_slots, is_entered, memory_order_relaxed);
    quern_counter_hold(&counters[0]);
    quern_counter_hold(&counters[1]);
}

/* Two workers wait; one of them has left a job that no worker waits for. */
void wait_all_blocked(void)
{
    set_up_waits(true, false);
    start(push_and_wait, 0);
    start(wait_inside_job, 1);
    join_all();
}

/* The only worker waits; an outside thread queues the job. */
void wait_foreign_job(void)
{
    set_up_waits(false, true);
    start(wait_inside_job, 1);
    start(queue_end, 0);
    join_all();
}

/* The only worker waits; an outside thread enters, leaves a job, and leaves. */
void wait_leave_fences(void)
{
    set_up_waits(false, false);
    start(wait_inside_job, 1);
    start(submit_and_leave, 0);
    join_all();
}

void wait_leave(void)
{
    set_up_waits(false, true);
    start(wait_inside_job, 1);
    start(submit_and_leave, 0);
    join_all();
}

/* Worker 0 leaves a job that the outside thread waits for. The only other worker is busy, so the outside
 * thread must enter. */
void wait_outside_fences(void)
{
    set_up_waits(true, false);
    start(wait_from_outside_the_pool, 0);
    start(push_and_leave, 0);
    join_all();
}

void wait_outside_leave(void)
{
    set_up_waits(true, true);
    start(wait_from_outside_the_pool, 0);
    start(push_and_leave, 0);
    join_all();
}

void wait_part_fences(void)
{
    set_up_waits(true, false);
    start(wait_inside_job, 1);
    start(push_part, 0);
    join_all();
}

void wait_part(void)
{
    set_up_waits(true, true);
    start(wait_inside_job, 1);
    start(push_part, 0);
    join_all();
}
