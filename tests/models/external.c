/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Several guests in one pool (sched/jobs/enter.c), where one that leaves may be the last that was awake.
 * Checked: no two threads are the same worker at a time, and a worker's data passes from one to the next;
 * whoever sleeps in a wait because a guest is inside goes on when that one has left; a guest that sleeps is
 * told of what only guests can do, or what ends its wait. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter counters[MAX_WORKERS]; /* by worker; the first also of who is none */
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

/* ---------------------------------------------------------------------------------------------- places */

static int
    visit_counts[MAX_WORKERS]; /* plain: two at the same time, or one after another unseen, are a race */

static void *visit(void *argument)
{
    quern__current_worker = NULL;
    quern__worker *worker = quern__jobs_try_enter(&pool);
    if (worker == NULL) return argument;
    visit_counts[worker->index]++;
    quern__jobs_leave(&pool);
    return argument;
}

/* Three come, and there is room for two. */
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

/* Who resizes the pool has all places. */
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

/* The job that the wait is for; nobody has said so. */
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
    asker = worker->index;
    wait_as_worker(worker, &counters[worker->index]);
    return NULL;
}

/* A thread that finds no place. */
static void *wait_from_outside_the_pool(void *argument)
{
    quern__current_worker = NULL;
    asker = 1; /* a number that no other thread has */
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

/* The waiting ones have a counter each. */
static void set_up_inside(uint32_t own_count, uint64_t inside, bool uses_asymmetric_fence, uint32_t waiting)
{
    set_up_external(own_count + 1, 2);
    pool.uses_asymmetric_fence = uses_asymmetric_fence;
    atomic_store_explicit(&pool.external_slots, inside, memory_order_relaxed);
    for (uint32_t i = 0; i < MAX_WORKERS; i++)
        if ((waiting >> i & 1) != 0) quern_counter_hold(&counters[i]);
}

/* One guest waits; the other one leaves a job behind, which it might have run. */
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

/* Two leave at the same time, and one has left a job; the third waits, and runs that when both are gone. */
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
    worker->floor = quern__deque_bottom(&worker->deque); /* else the wait would take it at once */
    return wait_inside_job(argument);
}

/* All wait, one of them a guest in the second place, and there is a job of neither. */
void external_all_blocked(void)
{
    set_up_inside(0, 3, false, 3);
    start(push_and_wait, 0);
    start(wait_inside_job, 1);
    join_all();
}

/* ------------------------------------------------------------------------------------ told of something */

static void *release_hold(void *argument)
{
    quern__current_worker = NULL;
    quern__counter_finish(&counters[0], 1, NULL);
    return argument;
}

/* It has found no place, then one, and sleeps there. */
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

/* A job that guests alone may run, while one comes in and waits. */
static void *come_and_wait(void *argument)
{
    quern__current_worker = NULL;
    quern__worker *worker = quern__jobs_try_enter(&pool);
    asker = 1;
    wait_as_worker(worker, &counters[0]);
    quern__jobs_leave(&pool);
    return argument;
}

void external_notified_of_job(void)
{
    set_up_inside(0, 1, false, 1);
    start(come_and_wait, 0);
    start(queue_caller_only_job, 0);
    join_all();
}

/* -------------------------------------------------------------------------------------- registered threads */

static uint32_t own_index; /* of the registered thread */

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

/* It comes in at its own place and waits there, as in quern_jobs_wait. */
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

/* What ends the wait may run on the registered thread alone. */
void external_registered_waits(void)
{
    register_and_wait(queue_for_registered);
}

/* What ends the wait may run on any guest, and no other one is there. */
void external_registered_notified_of_job(void)
{
    register_and_wait(queue_caller_only_job);
}
