/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Counters with their continuations and waiting threads; forks and joins (sched/jobs/job_counter.c,
 * fork.c). Checked: when a counter reaches zero, each continuation is submitted once and each sleeper
 * has its permit; earlier writes are visible; a thread that has seen the counter done may free it. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter *counter;
static quern__node nodes[MAX_THREADS];
static job_counter_wait waits[MAX_THREADS];
static int expected_count;       /* number of threads that write before they release */
static int written[MAX_THREADS]; /* plain: a race is a missing release or acquire */

static void start(void *(*entry)(void *argument), uintptr_t number)
{
    pthread_create(&threads[thread_count++], NULL, entry, (void *)number);
}

static void join_all(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
}

static void make_counter(uint32_t hold_count)
{
    set_up(MAX_WORKERS);
    counter = malloc(sizeof *counter);
    atomic_init(&counter->pending, 0);
    counter->links = NULL;
    expected_count = (int)hold_count;
    for (uint32_t i = 0; i < hold_count; i++)
        quern_counter_hold(counter);
}

static void run_nothing(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
}

/* Does what quern_jobs_submit_after does with a job that has no counter. */
static void *add_continuation(void *argument)
{
    quern__node *node = &nodes[(uintptr_t)argument];
    node->job.run = run_nothing;
    node->job.target = argument;
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = &pool;
    quern__node_submit_after(node, &counter, 1, NULL);
    return NULL;
}

static void *release(void *argument)
{
    written[(uintptr_t)argument] = 1;
    quern__counter_finish(counter, 1, NULL);
    return NULL;
}

static job_counter_wait *make_own_wait(uintptr_t number)
{
    job_counter_wait *waiting = &waits[number];
    begin_wait(waiting, &counter, waiting->node.links, 1);
    return waiting;
}

/* Begins a wait like a worker: checks the counter, announces that the worker sleeps, and checks again. */
static bool is_over_at_once(const quern__wait *wait, quern__worker *worker)
{
    if (is_done(wait)) return true;
    announce(wait, worker);
    return is_done(wait);
}

static void *wait_for_it(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    quern__wait wait = {.target = make_own_wait(number)};
    if (!is_over_at_once(&wait, &workers[number])) quern__worker_park(&workers[number], 0);
    return NULL;
}

static void *wait_and_free(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    quern__wait wait = {.target = make_own_wait(number)};
    if (!is_over_at_once(&wait, &workers[number])) {
        quern__worker_park(&workers[number], 0);
        assert(is_done(&wait));
    }
    assert(written[0] + written[1] == expected_count);
    free(counter);
    return NULL;
}

static void *look_and_free(void *argument)
{
    AWAIT(quern_counter_is_done(counter));
    assert(written[0] + written[1] == expected_count);
    free(counter);
    return argument;
}

/* Checks that each continuation was submitted once. A worker puts continuations into its deque, other
 * threads put them into the queue. */
static void check(int continuation_count)
{
    const quern__queue *queue = &pool.queues.queues[QUERN__QUEUE_NORMAL];
    int placed_count = 0;
    for (const quern__node *node = queue->first; node != NULL; node = node->next)
        placed_count++;
    for (uint32_t index = 0; index < MAX_WORKERS; index++)
        placed_count += (int)quern__deque_bottom(&workers[index].deque);
    assert(placed_count == continuation_count);
    assert(atomic_load_explicit(&counter->pending, memory_order_relaxed) == 0);
    assert(counter->links == NULL);
}

void counter_continuation(void)
{
    make_counter(1);
    start(release, 0);
    start(add_continuation, 1);
    join_all();
    check(1);
}

void counter_two_continuations(void)
{
    make_counter(1);
    start(release, 0);
    start(add_continuation, 1);
    start(add_continuation, 2);
    join_all();
    check(2);
}

/* The counter has a continuation before the worker begins to wait. */
void counter_continuation_and_sleeper(void)
{
    make_counter(1);
    add_continuation((void *)2);
    start(release, 0);
    start(wait_for_it, 1);
    join_all();
    check(1);
}

void counter_two_sleepers(void)
{
    make_counter(1);
    start(release, 0);
    start(wait_for_it, 1);
    start(wait_for_it, 2);
    join_all();
    check(0);
}

void counter_freed_after_wait(void)
{
    make_counter(2);
    start(release, 0);
    start(release, 1);
    start(wait_and_free, 2);
    join_all();
}

void counter_freed_after_look(void)
{
    make_counter(2);
    start(release, 0);
    start(release, 1);
    start(look_and_free, 2);
    join_all();
}

/* The releasing thread submits the continuation after another thread may have freed the counter. */
void counter_freed_with_continuation(void)
{
    make_counter(1);
    add_continuation((void *)2);
    start(release, 0);
    start(look_and_free, 1);
    join_all();
}

/* Waits in a thread that has no slot, while another thread is worker 0. */
static void *wait_outside_the_pool(void *argument)
{
    quern__current_worker = NULL;
    wait_without_slot(counter);
    assert(written[0] == 1);
    return argument;
}

void counter_outside(void)
{
    make_counter(1);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    start(wait_outside_the_pool, 0);
    start(release, 0);
    join_all();
}

/* ------------------------------------------------------------------------------------------ forks */

static _Atomic int call_count;

static void called(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    *(int *)argument = 1;
    atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
}

static void *steal_and_run(void *argument)
{
    quern__worker *worker = &workers[(uintptr_t)argument];
    quern__job job;
    quern__current_worker = worker;
    if (quern__deque_steal(&workers[0].deque, &job)) quern__worker_run_job(worker, &job);
    return NULL;
}

/* The owner joins a fork that another worker may steal, and frees it then. */
void counter_fork(void)
{
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    quern_fork *fork = malloc(sizeof *fork);
    fork->owner = NULL;
    start(steal_and_run, 1);
    quern_jobs_fork(&pool, fork, called, &written[0]);
    quern_jobs_join(&pool, fork);
    assert(written[0] == 1);
    free(fork);
    join_all();
    assert(atomic_load_explicit(&call_count, memory_order_relaxed) == 1);
}
