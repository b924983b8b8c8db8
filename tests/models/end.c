/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* The end of a pool's threads (end_threads and rest in sched/jobs/jobs.c): a thread that rests, and the caller,
 * which is worker 0. Checked: the threads end, although the last running job submits another one and waits for
 * what that brings about; every job has run before; and a job that is submitted from outside meanwhile runs, or
 * is in a queue afterwards. */

static quern_counter bell;
static _Atomic int run_count;
static pthread_t threads[2];

/* As worker_main while the pool ends, but the thread rests at first, and looks for a job without a search: that
 * is the subject of other models, and it multiplies the executions. */
static void *work_from_rest(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    asker = worker->index;
    quern__current_worker = worker;
    for (bool goes_on = sleep_at_rest(worker); goes_on; goes_on = rest(worker))
        if (quern__worker_take_any(worker, &job)) quern__worker_run(worker, &job);
    return NULL;
}

/* The caller is inside and does not rest, as in end_threads. */
static void set_up_end(void)
{
    set_up(2);
    atomic_store_explicit(&pool.guests, 1, memory_order_relaxed);
    atomic_store_explicit(&pool.is_stopping, true, memory_order_relaxed);
    atomic_store_explicit(&pool.lent_count, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    pthread_create(&threads[0], NULL, work_from_rest, &workers[1]);
}

/* As end_threads does. */
static void end_and_check(int expected_count)
{
    do
        (void)drain(&pool);
    while (rest(&workers[0]));
    pthread_join(threads[0], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == expected_count);
    assert(!quern__jobs_any(&pool) && quern__queue_is_empty(&workers[1].assigned));
}

static void queue_job(void (*run)(quern__job *job, quern__worker *worker), quern__queue_index queue)
{
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->job.run = run;
    node->job.scope = NULL;
    node->job.target = NULL;
    node->queue = queue;
    node->jobs = &pool;
    quern__node_submit(node, NULL);
}

static void count_run(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
    atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed);
}

static void ring(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    quern__counter_finish(&bell, 1, worker);
}

static void submit_and_wait(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    quern_counter_hold(&bell);
    queue_job(ring, QUERN__QUEUE_LOW);
    wait_as_worker(worker, &bell);
}

/* The caller runs the last job, and the thread sleeps or is about to: it has to be woken, or the caller has to see
 * that it is the last one. */
void end_last_waits(void)
{
    set_up_end();
    submit_and_wait(NULL, &workers[0]);
    end_and_check(2);
}

/* The thread alone may run the last job. */
void end_last_is_assigned(void)
{
    set_up_end();
    queue_job(submit_and_wait, (quern__queue_index)(QUERN__QUEUE_WORKERS + 1));
    end_and_check(2);
}

static void submit_for_caller(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    queue_job(count_run, QUERN__QUEUE_CALLER);
}

/* The last job submits one for the caller, which may rest. */
void end_last_is_for_caller(void)
{
    set_up_end();
    queue_job(submit_for_caller, (quern__queue_index)(QUERN__QUEUE_WORKERS + 1));
    end_and_check(2);
}

/* The last job leaves another one in a deque. */
void end_last_pushes(void)
{
    const quern__job job = {.run = count_run};
    set_up_end();
    quern__deque_push(&workers[0].deque, &job, 0);
    quern__jobs_notify(&pool, &workers[0], NULL);
    end_and_check(1);
}

/* When the threads have ended, the caller is the only one left: it runs what it does not wait for. */
void end_caller_goes_on(void)
{
    set_up_end();
    end_and_check(0);
    queue_job(submit_and_wait, QUERN__QUEUE_NORMAL);
    (void)drain(&pool);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 2);
}

/* ------------------------------------------------------------------------------------------ from outside */

static void *queue_one(void *argument)
{
    quern__current_worker = NULL;
    queue_job(count_run, (quern__queue_index)(uintptr_t)argument);
    return NULL;
}

static void submit_beside(quern__queue_index queue)
{
    set_up_end();
    pthread_create(&threads[1], NULL, queue_one, (void *)(uintptr_t)queue);
    while (rest(&workers[0]))
        (void)drain(&pool);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(quern__queue_is_empty(&workers[1].assigned));
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) + quern__jobs_any(&pool) == 1);
}

void end_submitted_outside(void)
{
    submit_beside(QUERN__QUEUE_NORMAL);
}

void end_assigned_outside(void)
{
    submit_beside((quern__queue_index)(QUERN__QUEUE_WORKERS + 1));
}
