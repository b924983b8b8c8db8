/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Jobs after several counters (sched/jobs/submit.c). Checked: the job is submitted once, after all of its
 * counters, whichever reaches zero last; writes before the releases are visible to it; no thread
 * accesses a counter once it has released the job, because the job may free the counters. */

enum { MAX_THREADS = 3 };

static pthread_t threads[MAX_THREADS];
static int thread_count;
static quern_counter *counters[MAX_THREADS];
static uint32_t counter_count;
static int written[MAX_THREADS]; /* plain: a race is a missing release or acquire */
static int run_count;

static void start(void *(*entry)(void *argument), uintptr_t number)
{
    pthread_create(&threads[thread_count++], NULL, entry, (void *)number);
}

static void make_counters(uint32_t count)
{
    set_up(1);
    counter_count = count;
    for (uint32_t i = 0; i < count; i++) {
        counters[i] = malloc(sizeof *counters[i]);
        atomic_init(&counters[i]->pending, 1);
        counters[i]->links = NULL;
    }
}

static void run_last(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
    for (uint32_t i = 0; i < counter_count; i++) {
        assert(written[i] == 1);
        free(counters[i]);
    }
    run_count++;
}

static void *submit(void *argument)
{
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->job.run = run_last;
    node->job.scope = NULL;
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = &pool;
    bool has_room = quern__node_submit_after(node, counters, counter_count, NULL);
    assert(has_room);
    return argument;
}

static void *release(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    written[number] = 1;
    quern__counter_finish(counters[number], 1, NULL);
    return NULL;
}

/* Waits until the job is in the queue and runs it. */
static void *run(void *argument)
{
    quern__job job;
    AWAIT(!quern__queues_look_empty(&pool.queues));
    bool is_taken = quern__queues_take(&pool.queues, QUERN__QUEUE_NORMAL, NULL, &job);
    assert(is_taken);
    job.run(&job, &workers[0]);
    return argument;
}

static void end(void)
{
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    if (run_count == 0) run(NULL);
    assert(run_count == 1);
    assert(quern__queues_look_empty(&pool.queues));
}

/* Links are added while the counters reach zero. */
void after_two(void)
{
    make_counters(2);
    start(release, 0);
    start(release, 1);
    submit(NULL);
    end();
}

/* The job frees the counters while the releasing threads may still be in their calls. */
void after_two_freed(void)
{
    make_counters(2);
    submit(NULL);
    start(release, 0);
    start(release, 1);
    start(run, 0);
    end();
}

void after_three(void)
{
    make_counters(3);
    submit(NULL);
    start(release, 0);
    start(release, 1);
    start(release, 2);
    end();
}
