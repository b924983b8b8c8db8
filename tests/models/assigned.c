/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Jobs that are assigned to one worker (sched/jobs/enter.c). Checked: the worker runs them wherever it
 * sleeps, although no other worker may; if it takes another job meanwhile, another worker is woken for that
 * job; when a pool ends, a worker without jobs still runs those that other workers assign to it. */

static _Atomic int run_count;
static quern_counter counter;
static pthread_t threads[MAX_WORKERS];
static pthread_t calls[2 * MAX_WORKERS];
static _Atomic int call_count;
static bool is_busy;

static void assign(uint32_t index, void (*run)(quern__job *job, quern__worker *worker))
{
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = (quern__queue_index)(QUERN__QUEUE_WORKERS + index);
    node->jobs = &pool;
    node->job.run = run;
    assert(quern__node_assign(node));
}

static void run_one(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
    atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed);
}

static void run_end(quern__job *job, quern__worker *worker)
{
    run_one(job, worker);
    quern__counter_finish(&counter, 1, worker);
}

/* A worker that sleeps until it has run one job. */
static void *work_until_run(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    own_index_or_0 = worker->index;
    quern__current_worker = worker;
    for (int round = 0; round < 2; round++) {
        if (quern__worker_find_job(worker, &job)) {
            quern__worker_run_job(worker, &job);
            return NULL;
        }
        quern__worker_sleep(worker);
    }
    assume(false);
    return NULL;
}

void assigned_idle(void)
{
    set_up(2);
    pthread_create(&threads[1], NULL, work_until_run, &workers[1]);
    assign(1, run_one);
    pthread_join(threads[1], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 1);
}

/* Worker 1: it is busy forever with the first job that it finds. Worker 2 is asleep. */
static void *work_once(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    own_index_or_0 = worker->index;
    for (int round = 0; round < 2; round++) {
        if (quern__worker_find_job(worker, &job)) {
            is_busy = true;
            return NULL;
        }
        quern__worker_sleep(worker);
    }
    assume(false);
    return NULL;
}

void assigned_two_jobs(void)
{
    const quern__job plain = {.run = run_one};
    set_up(3);
    sleep_is_the_end = true;
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    workers[1].has_slept = true;
    is_asleep[2] = true;
    atomic_store_explicit(&pool.idle.words[0], 4, memory_order_relaxed);
    atomic_store_explicit(&pool.sleeper_count, 1, memory_order_relaxed);
    pthread_create(&threads[1], NULL, work_once, &workers[1]);
    assign(1, run_one);
    quern__deque_push(&workers[0].deque, &plain, 0);
    quern__jobs_notify(&pool, &workers[0], NULL);
    pthread_join(threads[1], NULL);
    bool is_coming[MAX_WORKERS];
    for (uint32_t index = 1; index < 3; index++)
        is_coming[index] = is_asleep[index] && quern__parker_has_permit(&workers[index].parker);
    assert(quern__queue_is_empty(&workers[1].assigned) || is_busy || is_coming[1]);
    assert(!quern__jobs_has_any_job(&pool) || is_coming[1] || is_coming[2]);
}

static void *wait_for_end(void *argument)
{
    quern__worker *worker = argument;
    quern__current_worker = worker;
    own_index_or_0 = worker->index;
    wait_as_worker(worker, &counter);
    return NULL;
}

void assigned_wait(void)
{
    set_up(2);
    quern_counter_hold(&counter);
    pthread_create(&threads[1], NULL, wait_for_end, &workers[1]);
    assign(1, run_end);
    pthread_join(threads[1], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 1);
}

/* --------------------------------------------------------------------------------------- host threads */

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
    int call_index = atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    pthread_create(&calls[call_index], NULL, call_lent, argument);
}

static void assign_to_lent(int count)
{
    set_up(2);
    pool.host_threads.submit = submit;
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    open_host_workers(&pool);
    for (int i = 0; i < count; i++)
        assign(1, run_one);
    AWAIT(atomic_load_explicit(&run_count, memory_order_relaxed) == count);
    AWAIT(atomic_load_explicit(&pool.active_thread_count, memory_order_acquire) == 0);
    quern__mutex_lock(&pool.outside_mutex); /* like wait_for_host_calls */
    quern__mutex_unlock(&pool.outside_mutex);
    assert(quern__queue_is_empty(&workers[1].assigned));
}

void assigned_host(void)
{
    assign_to_lent(1);
}

void assigned_host_two_jobs(void)
{
    assign_to_lent(2);
}

/* --------------------------------------------------------------------------------------------- the end */

/* A worker that rests gets a job. */
static void *work_from_rest(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    for (bool goes_on = sleep_at_rest(worker); goes_on; goes_on = rest(worker))
        if (quern__worker_take_assigned(worker, NULL, &job)) job.run(&job, worker);
    return NULL;
}

/* The caller has not rested yet. */
void assigned_end(void)
{
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    atomic_store_explicit(&pool.active_thread_count, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    pthread_create(&threads[1], NULL, work_from_rest, &workers[1]);
    assign(1, run_one);
    while (rest(&workers[0])) {
    }
    pthread_join(threads[1], NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 1);
}

/* --------------------------------------------------------------------------------- registered threads */

static int visits[MAX_WORKERS]; /* plain: two threads that are one worker would race */

static void visit(void)
{
    quern__worker *worker = quern__jobs_try_enter(&pool);
    if (worker == NULL) return;
    visits[worker->index]++;
    quern__jobs_leave(&pool);
}

static void *come_and_go(void *argument)
{
    quern__current_worker = NULL;
    quern__registrations = NULL;
    visit();
    return argument;
}

static void *register_and_come(void *argument)
{
    uint32_t worker;
    quern__current_worker = NULL;
    quern__registrations = NULL;
    if (quern_jobs_register_thread(&pool, &worker) != QUERN_OK) return argument;
    int before = visits[worker];
    visit();
    assert(visits[worker] == before + 1);
    quern_result result = quern_jobs_unregister_thread(&pool);
    assert(result == QUERN_OK);
    return argument;
}

static void run_external(uint32_t external_count, void *(*first)(void *argument),
                         void *(*second)(void *argument))
{
    set_up_external(1, external_count);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(atomic_load_explicit(&pool.external_slots, memory_order_relaxed) == 0);
}

void assigned_register(void)
{
    run_external(1, register_and_come, come_and_go);
}

void assigned_register_two(void)
{
    run_external(2, register_and_come, register_and_come);
}

/* A job for a registered thread that is about to end: it runs on that thread or on another one. */
static void *assign_to_external(void *argument)
{
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = QUERN__QUEUE_WORKERS;
    node->jobs = &pool;
    node->job.run = run_one;
    quern__node_submit(node, NULL);
    return argument;
}

void assigned_unregister(void)
{
    set_up_external(1, 1);
    quern__current_worker = NULL;
    quern_result result = quern_jobs_register_thread(&pool, NULL);
    assert(result == QUERN_OK);
    pthread_create(&threads[0], NULL, assign_to_external, NULL);
    result = quern_jobs_unregister_thread(&pool);
    assert(result == QUERN_OK);
    pthread_join(threads[0], NULL);
    assert(quern__queue_is_empty(&workers[0].assigned));
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) + quern__jobs_has_any_job(&pool) == 1);
}
