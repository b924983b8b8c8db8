/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* A pool on threads of its host (sched/jobs/jobs.c): a worker without jobs sets its bit, and the thread
 * that clears the bit requests a call for the worker. Checked: each job runs, although all workers are on
 * host threads; one thread at a time runs as a worker (otherwise its data race); once no call is left, no
 * thread accesses the pool. */

enum { MAX_CALLS = 3 };

static _Atomic int call_count;
static _Atomic int run_count;
static pthread_t calls[MAX_CALLS];

static void *call_lent(void *argument)
{
    quern__worker *worker = argument;
    quern__current_worker = NULL;
    own_index_or_0 = worker->index;
    quern__jobs_run_on_host_thread(worker);
    return NULL;
}

static void submit(void *user_data, void (*function)(void *argument), void *argument)
{
    (void)user_data, (void)function;
    int call = atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    pthread_create(&calls[call], NULL, call_lent, argument);
}

static void run_job(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
    atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed);
}

static void push(void)
{
    const quern__job job = {.run = run_job};
    pass_fence_point();
    quern__deque_push(&workers[0].deque, &job, 0);
    quern__jobs_notify(&pool, &workers[0], NULL);
}

static void *queue(void *argument)
{
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = QUERN__QUEUE_NORMAL;
    node->job.run = run_job;
    quern__queues_push(&pool.queues, node);
    quern__jobs_notify(&pool, NULL, NULL);
    return argument;
}

static void set_up_lent(uint32_t worker_count, bool uses_asymmetric_fence)
{
    set_up(worker_count);
    pool.uses_asymmetric_fence = uses_asymmetric_fence;
    pool.host_threads.submit = submit;
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    open_host_workers(&pool);
}

static void wait_for_runs(int count)
{
    end_fenceless();
    AWAIT(atomic_load_explicit(&run_count, memory_order_relaxed) == count);
    AWAIT(atomic_load_explicit(&pool.active_thread_count, memory_order_acquire) == 0);
    quern__mutex_lock(&pool.outside_mutex); /* like wait_for_host_calls */
    quern__mutex_unlock(&pool.outside_mutex);
    assert(!quern__jobs_has_any_job(&pool));
    assert(workers[1].outer == NULL); /* a plain read: the call has finished its accesses */
}

static void run_pushes(int count)
{
    begin_fenceless();
    for (int i = 0; i < count; i++)
        push();
    wait_for_runs(count);
}

void host_one_job(void)
{
    set_up_lent(2, true);
    run_pushes(1);
}

void host_two_jobs(void)
{
    set_up_lent(2, true);
    run_pushes(2);
}

void host_two_jobs_fences(void)
{
    set_up_lent(2, false);
    run_pushes(2);
}

/* Two threads request the same worker. */
void host_two_pushers(void)
{
    pthread_t pusher;
    set_up_lent(2, false);
    pthread_create(&pusher, NULL, queue, NULL);
    push();
    pthread_join(pusher, NULL);
    wait_for_runs(2);
}
