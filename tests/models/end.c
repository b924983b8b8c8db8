/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* The end of a pool's threads (end_threads and rest in sched/jobs/jobs.c): a resting thread, and the caller
 * as worker 0. Checked: the threads end, although the last running job submits another one and waits for
 * its effect; all jobs have run before; a job submitted from outside meanwhile runs or is in a queue
 * afterwards. */

static quern_counter bell;
static _Atomic int run_count;
static pthread_t threads[2];

/* Like worker_main while the pool ends. The thread begins at rest and takes jobs without the search, which
 * other models check and which multiplies the executions. */
static void *work_from_rest(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    own_index_or_0 = worker->index;
    quern__current_worker = worker;
    for (bool goes_on = sleep_at_rest(worker); goes_on; goes_on = rest(worker))
        if (quern__worker_try_take_job(worker, &job)) quern__worker_run_job(worker, &job);
    return NULL;
}

/* The caller is inside and does not rest, as in end_threads. */
static void set_up_end(void)
{
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    atomic_store_explicit(&pool.is_stopping, true, memory_order_relaxed);
    atomic_store_explicit(&pool.active_thread_count, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    pthread_create(&threads[0], NULL, work_from_rest, &workers[1]);
}

/* Like end_threads. */
static void end_and_check(int expected_count)
{
    do
        (void)drain(&pool);
    while (rest(&workers[0]));
    pthread_join(threads[0], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == expected_count);
    assert(!quern__jobs_has_any_job(&pool) && quern__queue_is_empty(&workers[1].assigned));
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

/* Waits, outside of the pool's waits, until another worker has run the submitted job. */
static void submit_and_block(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    queue_job(count_run, QUERN__QUEUE_LOW);
    AWAIT(atomic_load_explicit(&run_count, memory_order_relaxed) == 2);
}

/* The caller runs the last job; the thread sleeps or is about to sleep. */
void end_last_blocks(void)
{
    set_up_end();
    submit_and_block(NULL, &workers[0]);
    end_and_check(2);
}

/* Only the thread may run the last job; the caller sleeps or is about to sleep. */
void end_last_is_assigned(void)
{
    set_up_end();
    queue_job(submit_and_block, (quern__queue_index)(QUERN__QUEUE_WORKERS + 1));
    end_and_check(2);
}

static void submit_for_caller(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    queue_job(count_run, QUERN__QUEUE_CALLER);
}

/* The last job submits a job for the caller, which may rest. */
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

static void submit_and_wait(quern__job *job, quern__worker *worker)
{
    count_run(job, worker);
    quern_counter_hold(&bell);
    queue_job(ring, QUERN__QUEUE_LOW);
    wait_as_worker(worker, &bell);
}

/* The threads have ended, and the caller alone runs the jobs that it does not wait for. */
void end_caller_goes_on(void)
{
    set_up_end();
    end_and_check(0);
    queue_job(submit_and_wait, QUERN__QUEUE_NORMAL);
    (void)drain(&pool);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 2);
}

/* ----------------------------------------------------------------------------------------- from outside */

static quern__node outside_node; /* not from the store, whose lock multiplies the executions */

static void set_up_outside(quern__queue_index queue)
{
    outside_node.job.run = count_run;
    outside_node.queue = queue;
    outside_node.jobs = &pool;
    outside_node.link_count = QUERN__CALLER_OWNED_NODE;
}

static void *submit_outside_node(void *argument)
{
    quern__current_worker = NULL;
    quern__node_submit(&outside_node, NULL);
    return argument;
}

static void submit_beside(quern__queue_index queue)
{
    set_up_end();
    set_up_outside(queue);
    pthread_create(&threads[1], NULL, submit_outside_node, NULL);
    while (rest(&workers[0]))
        (void)drain(&pool);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(quern__queue_is_empty(&workers[1].assigned));
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) + quern__jobs_has_any_job(&pool) == 1);
}

void end_submitted_outside(void)
{
    submit_beside(QUERN__QUEUE_NORMAL);
}

void end_assigned_outside(void)
{
    submit_beside((quern__queue_index)(QUERN__QUEUE_WORKERS + 1));
}

static void run_before_stop(quern__job *job, quern__worker *worker)
{
    assert(!has_stopped(&pool));
    count_run(job, worker);
}

/* Wakes no worker, which multiplies the executions: the last worker to rest sees the job. */
static void *queue_outside_node(void *argument)
{
    quern__current_worker = NULL;
    quern__queues_push(&pool.queues, &outside_node);
    return argument;
}

/* A job is queued while the threads stop. If they have stopped before, it stays in the queue for the threads that a
 * resize starts: it may need others, and these threads are about to end. */
void end_stopped(void)
{
    set_up_end();
    set_up_outside(QUERN__QUEUE_NORMAL);
    outside_node.job.run = run_before_stop;
    pthread_create(&threads[1], NULL, queue_outside_node, NULL);
    while (rest(&workers[0]))
        (void)drain(&pool);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) + quern__jobs_has_any_job(&pool) == 1);
}

/* -------------------------------------------------------------------------------- replacing the workers */

static quern__worker new_workers[MAX_WORKERS];

/* An outside thread submits a job while a resize replaces the workers. The submitter accesses either the
 * old workers, which still exist, or the new ones, of which one is woken. */
void end_replaced(void)
{
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    set_up_outside(QUERN__QUEUE_NORMAL);
    pthread_create(&threads[1], NULL, submit_outside_node, NULL);
    bool is_closed = close_to_visitors(&pool);
    assert(is_closed);
    for (uint32_t index = 0; index < 2; index++) {
        new_workers[index].jobs = &pool;
        new_workers[index].index = index;
    }
    pool.workers = new_workers;
    atomic_store_explicit(&pool.sleeper_count, 1, memory_order_relaxed);
    atomic_store_explicit(&pool.idle.words[0], 2, memory_order_relaxed);
    open_to_visitors(&pool);
    pthread_join(threads[1], NULL);
    assert(quern__jobs_has_any_job(&pool) && quern__parker_has_permit(&new_workers[1].parker));
}

/* ----------------------------------------------------------------------------------------- dropped jobs */

static void *release_bell(void *argument)
{
    quern__current_worker = NULL;
    quern__counter_finish(&bell, 1, NULL);
    return argument;
}

/* A counter is released from outside while the pool is destroyed, as in drop_waiting_jobs: the job that
 * waits for it runs or is dropped, and no thread uses its node afterwards. */
void end_dropped(void)
{
    set_up(1);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    quern_counter_hold(&bell);
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->job.run = count_run;
    node->job.scope = NULL;
    node->job.target = NULL;
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = &pool;
    node->link_count = 1;
    quern_counter *after = &bell;
    quern__node_add_links(node, &after, &workers[0]);
    pthread_create(&threads[1], NULL, release_bell, NULL);
    do {
        quern__jobs_drop_links(&pool);
        AWAIT(atomic_load_explicit(&pool.outside_call_count, memory_order_acquire) == 0);
    } while (drain(&pool));
    /* Not atomic, like the write that frees the node: a race shows that another thread still uses it. */
    node->link_count = 0;
    node->jobs = NULL;
    pthread_join(threads[1], NULL);
    assert(bell.links == NULL && quern_counter_is_done(&bell));
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) <= 1 && !quern__jobs_has_any_job(&pool));
}
