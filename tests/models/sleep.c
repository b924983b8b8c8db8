/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Workers without a job: how they search and sleep, and how pushers wake them (sched/jobs/search.c).
 * Checked: at the end there is no job that a sleeping worker could run, unless an awake worker is about to
 * take it or a sleeper has a permit. A worker that finds a job is busy forever, because a job may last
 * until others have run. */

static int max_rounds = 2; /* of search and sleep; further rounds are not explored */
static bool is_busy[MAX_WORKERS];
static char scope[2];

static void *work_once(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    own_index_or_0 = worker->index;
    for (int round = 0; round < max_rounds; round++) {
        if (quern__worker_find_job(worker, &job)) {
            is_busy[worker->index] = true;
            return NULL;
        }
        quern__worker_sleep(worker);
    }
    assume(false);
    return NULL;
}

static void push_jobs(int count)
{
    begin_fenceless();
    for (int i = 0; i < count; i++) {
        quern__job job = {.scope = scope};
        pass_fence_point();
        quern__deque_push(&workers[0].deque, &job, 0);
        quern__jobs_notify(&pool, &workers[0], scope);
    }
    end_fenceless();
}

static void *push_one(void *argument)
{
    push_jobs(1);
    return argument;
}

static void *push_two(void *argument)
{
    push_jobs(2);
    return argument;
}

/* Submits from an outside thread. */
static void *queue_one(void *argument)
{
    begin_fenceless();
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->queue = QUERN__QUEUE_NORMAL;
    node->job.scope = scope;
    quern__queues_push(&pool.queues, node);
    quern__jobs_notify(&pool, NULL, scope);
    end_fenceless();
    return argument;
}

/* An awake worker that is not busy searches again. If all workers are busy, there are no sleepers, and
 * nothing is wrong. */
static void check(void)
{
    bool has_sleeper = false, has_permit = false;
    for (uint32_t index = 1; index < pool.thread_count; index++) {
        has_sleeper = has_sleeper || is_asleep[index];
        has_permit = has_permit || (is_asleep[index] && quern__parker_has_permit(&workers[index].parker));
    }
    assert(!quern__jobs_has_any_job(&pool) || !has_sleeper || has_permit);
}

/* Worker 0 pushes while the scenario's workers run. */
static void run(void *(*push)(void *argument), uint32_t searcher_count)
{
    pthread_t pusher, searchers[MAX_WORKERS];
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    pthread_create(&pusher, NULL, push, NULL);
    for (uint32_t index = 1; index <= searcher_count; index++)
        pthread_create(&searchers[index], NULL, work_once, &workers[index]);
    pthread_join(pusher, NULL);
    for (uint32_t index = 1; index <= searcher_count; index++)
        pthread_join(searchers[index], NULL);
    check();
}

static void set_up_searchers(uint32_t thread_count, bool uses_asymmetric_fence)
{
    set_up(thread_count);
    sleep_is_the_end = true;
    pool.uses_asymmetric_fence = uses_asymmetric_fence;
    for (uint32_t index = 1; index < thread_count; index++)
        workers[index].has_slept = true; /* workers begin with a search */
}

/* A worker that is asleep already. */
static void set_asleep(uint32_t index)
{
    is_asleep[index] = true;
    atomic_store_explicit(&pool.idle.words[0], (uint64_t)1 << index, memory_order_relaxed);
    atomic_store_explicit(&pool.sleeper_count, 1, memory_order_relaxed);
}

void sleep_one(void)
{
    set_up_searchers(2, true);
    run(push_one, 1);
}

void sleep_one_fences(void)
{
    set_up_searchers(2, false);
    run(push_one, 1);
}

void sleep_two_jobs(void)
{
    set_up_searchers(3, true);
    set_asleep(2);
    run(push_two, 1);
}

void sleep_two_jobs_fences(void)
{
    set_up_searchers(3, false);
    set_asleep(2);
    run(push_two, 1);
}

void sleep_two_searchers(void)
{
    set_up_searchers(3, true);
    max_rounds = 1;
    run(push_one, 2);
}

void sleep_two_searchers_fences(void)
{
    set_up_searchers(3, false);
    max_rounds = 1;
    run(push_one, 2);
}

void sleep_queue(void)
{
    set_up_searchers(2, true);
    run(queue_one, 1);
}
