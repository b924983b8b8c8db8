/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Several external threads in one pool (sched/jobs/enter.c); one that leaves may be the last awake worker.
 * Checked: no two threads are the same worker at a time, and a worker's data passes from one thread to the
 * next; a worker that sleeps in a wait because an external thread is inside is woken when that thread
 * leaves; a sleeping external thread is notified of caller-only jobs and of the end of its wait. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter counters[MAX_WORKERS]; /* by worker; outside threads use the first */
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

/* ----------------------------------------------------------------------------------------------- slots */

/* Plain memory: two visits at the same time, or without synchronization, are a race. */
static int visit_counts[MAX_WORKERS];

static void *visit(void *argument)
{
    quern__current_worker = NULL;
    quern__worker *worker = quern__jobs_try_enter(&pool);
    if (worker == NULL) return argument;
    visit_counts[worker->index]++;
    quern__jobs_leave(&pool);
    return argument;
}

/* Three threads enter a pool with two external slots. */
void external_slots_race(void)
{
    set_up_external(1, 2);
    for (uintptr_t i = 0; i < 3; i++)
        start(visit, i);
    join_all();
    assert(visit_counts[0] + visit_counts[1] >= 2);
    assert((uint32_t)atomic_load_explicit(&pool.external_slots, memory_order_relaxed) == 0);
}

static void *come_alone(void *argument)
{
    quern__current_worker = NULL;
    if (!quern__jobs_try_enter_exclusive(&pool)) return argument;
    visit_counts[0]++;
    visit_counts[1]++;
    quern__jobs_leave_exclusive(&pool);
    return argument;
}

/* One thread enters exclusively and owns all slots. */
void external_exclusive(void)
{
    set_up_external(1, 2);
    start(visit, 0);
    start(visit, 1);
    start(come_alone, 2);
    join_all();
    assert(atomic_load_explicit(&pool.external_slots, memory_order_relaxed) == 0);
}

/* ------------------------------------------------------------------------------------------------ waits */

/* Ends the wait, without its scope: the waiting worker does not know that. */
static void run_end(quern__job *job, quern__worker *worker)
{
    (void)job;
    assert(!atomic_exchange_explicit(&has_run, true, memory_order_relaxed));
    for (int i = 0; i < MAX_WORKERS; i++)
        if (!quern_counter_is_done(&counters[i])) quern__counter_finish(&counters[i], 1, worker);
}

static void push_end(quern__worker *worker)
{
    const quern__job job = {.run = run_end};
    pass_fence_point();
    quern__deque_push(&worker->deque, &job, 0);
    quern__jobs_notify(&pool, worker, NULL);
}

static void *wait_inside_job(void *argument)
{
    quern__worker *worker = &workers[(uintptr_t)argument];
    quern__current_worker = worker;
    own_index_or_0 = worker->index;
    wait_as_worker(worker, &counters[worker->index]);
    return NULL;
}

/* A thread that finds all slots in use. */
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
    quern__current_worker = &workers[(uintptr_t)argument];
    push_end(quern__current_worker);
    quern__jobs_leave(&pool);
    end_fenceless();
    return NULL;
}

/* Each waiting thread has its own counter. */
static void set_up_inside(uint32_t own_count, uint64_t inside, bool uses_asymmetric_fence, uint32_t waiting)
{
    set_up_external(own_count + 1, 2);
    pool.uses_asymmetric_fence = uses_asymmetric_fence;
    atomic_store_explicit(&pool.external_slots, inside, memory_order_relaxed);
    for (uint32_t i = 0; i < MAX_WORKERS; i++)
        if ((waiting >> i & 1) != 0) quern_counter_hold(&counters[i]);
}

/* One external thread waits; the other one leaves a job behind that it could have run. */
void external_one_leaves(void)
{
    set_up_inside(0, 3, true, 1 << 1);
    start(wait_inside_job, 1);
    start(push_and_leave, 0);
    join_all();
}

void external_one_leaves_fences(void)
{
    set_up_inside(0, 3, false, 1 << 1);
    start(wait_inside_job, 1);
    start(push_and_leave, 0);
    join_all();
}

static void *leave(void *argument)
{
    begin_fenceless();
    quern__current_worker = &workers[(uintptr_t)argument];
    quern__jobs_leave(&pool);
    end_fenceless();
    return NULL;
}

/* Two threads leave at the same time, and one of them has left a job behind. The third waits, and runs the
 * job when both have left. */
void external_two_leave(void)
{
    set_up_external(1, 3);
    atomic_store_explicit(&pool.external_slots, 7, memory_order_relaxed);
    quern_counter_hold(&counters[2]);
    push_end(&workers[0]);
    start(wait_inside_job, 2);
    start(leave, 0);
    start(leave, 1);
    join_all();
}

static void *push_and_wait(void *argument)
{
    quern__worker *worker = &workers[(uintptr_t)argument];
    quern__current_worker = worker;
    push_end(worker);
    worker->floor = quern__deque_bottom(&worker->deque); /* otherwise the wait would take the job at once */
    return wait_inside_job(argument);
}

/* All threads wait, one of them in the second slot, and the job belongs to no wait. */
void external_all_blocked(void)
{
    set_up_inside(0, 3, false, 3);
    start(push_and_wait, 0);
    start(wait_inside_job, 1);
    join_all();
}

/* ------------------------------------------------------------------------------------- notified threads */

static void *release_hold(void *argument)
{
    quern__current_worker = NULL;
    quern__counter_finish(&counters[0], 1, NULL);
    return argument;
}

/* The thread found no free slot, then one, and sleeps inside. */
void external_notified_of_end(void)
{
    set_up_inside(0, 1, false, 1);
    start(wait_from_outside_the_pool, 0);
    start(release_hold, 0);
    join_all();
}

static void *queue_caller_only_job(void *argument)
{
    quern__current_worker = NULL;
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = QUERN__QUEUE_CALLER;
    node->jobs = &pool;
    node->job.run = run_end;
    quern__node_submit(node, NULL);
    return argument;
}

/* Enters and waits while a caller-only job is submitted. */
static void *enter_and_wait(void *argument)
{
    quern__current_worker = NULL;
    quern__worker *worker = quern__jobs_try_enter(&pool);
    own_index_or_0 = 1;
    wait_as_worker(worker, &counters[0]);
    quern__jobs_leave(&pool);
    return argument;
}

void external_notified_of_job(void)
{
    set_up_inside(0, 1, false, 1);
    start(enter_and_wait, 0);
    start(queue_caller_only_job, 0);
    join_all();
}

/* ----------------------------------------------------------------------------------- registered threads */

static uint32_t own_index; /* index of the registered thread */

static void queue_end(quern__queue_index queue)
{
    quern__current_worker = NULL;
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = queue;
    node->jobs = &pool;
    node->job.run = run_end;
    quern__node_submit(node, NULL);
}

static void *queue_for_registered(void *argument)
{
    queue_end((quern__queue_index)(QUERN__QUEUE_WORKERS + own_index));
    return argument;
}

/* The thread enters its own slot and waits there, as in quern_jobs_wait. */
static void register_and_wait(void *(*submit)(void *argument))
{
    set_up_external(1, 2);
    quern__current_worker = NULL;
    quern_result result = quern_jobs_register_thread(&pool, &own_index);
    assert(result == QUERN_OK);
    quern_counter_hold(&counters[own_index]);
    start(submit, 0);
    quern__worker *worker = quern__jobs_try_enter(&pool);
    assert(worker == &workers[own_index]);
    wait_as_worker(worker, &counters[own_index]);
    quern__jobs_leave(&pool);
    result = quern_jobs_unregister_thread(&pool);
    assert(result == QUERN_OK);
    join_all();
    assert(atomic_load_explicit(&has_run, memory_order_relaxed));
}

/* Only the registered thread may run the job that ends its wait. */
void external_registered_waits(void)
{
    register_and_wait(queue_for_registered);
}

/* Any external thread may run the job that ends the wait, and no other one is inside. */
void external_registered_notified_of_job(void)
{
    register_and_wait(queue_caller_only_job);
}
