/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/jobs/planned_graph.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>

/* Combinations of two features of a pool. */

TestSuite(together, .timeout = 120);

/* ----------------------------------------------------------------------------- runs of graphs, resizing */

static void run_on_external(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    cr_expect_eq(worker_index, 0u, "a node for the caller ran on worker %u", (unsigned)worker_index);
    count_items(argument, begin, end, worker_index);
}

/* Adds more nodes with items than there are threads, also in a nested graph. */
static void add_nodes(quern_graph *graph, quern_graph *inner, bool has_caller_nodes, void *sum)
{
    const quern_graph_node_def as_node = {.graph = inner};
    for (uint32_t i = 0; i < 20; i++) {
        const quern_graph_node_def def = {.function = has_caller_nodes && i % 5 == 0 ? run_on_external
                                                                                     : count_items,
                                          .user_data = sum,
                                          .count = 100,
                                          .on_worker = has_caller_nodes && i % 5 == 0 ? QUERN_ON_CALLER : 0,
                                          .priority = (quern_priority)(i % 3)};
        cr_assert_eq(quern_graph_add_node(i % 2 ? graph : inner, &def, NULL), QUERN_OK);
    }
    cr_assert_eq(quern_graph_add_node(graph, &as_node, NULL), QUERN_OK);
}

static void resize_before_the_run(uint32_t before, uint32_t after, bool has_caller_nodes)
{
    quern_jobs *jobs = open_pool(before);
    quern_graph *graph = open_graph(), *inner = open_graph();
    _Atomic uint32_t sum = 0;
    quern_counter held = {0}, counter = {0}, *const list[] = {&held};
    const quern_graph_run_def def = {.counter = &counter, .after = list, .after_count = 1};
    add_nodes(graph, inner, has_caller_nodes, (void *)&sum);
    for (uint32_t run = 1; run <= 3; run++) {
        cr_assert_eq(quern_jobs_resize(jobs, before), QUERN_OK);
        quern_counter_hold(&held);
        cr_assert_eq(quern_graph_submit(graph, jobs, &def), QUERN_OK);
        cr_assert_eq(quern_jobs_resize(jobs, after), QUERN_OK);
        cr_assert_eq(quern_counter_release(jobs, &held), QUERN_OK);
        if (run == 2) pass_time(2000);
        cr_assert_eq(quern_jobs_wait(jobs, &counter), QUERN_OK);
        cr_assert_eq(atomic_load(&sum), 2000 * run);
        run_graph(graph, jobs);
        cr_assert_eq(atomic_exchange(&sum, 2000 * run), 2000 * (run + 1));
    }
    quern_graph_destroy(graph);
    quern_graph_destroy(inner);
    quern_jobs_destroy(jobs);
}

/* A submitted run has memory for the old number of workers. */
Test(together, a_run_begins_after_its_pool_was_resized)
{
    static const uint32_t sizes[] = {1, 2, 5, 24};
    for (size_t before = 0; before < QUERN__COUNT_OF(sizes); before++)
        for (size_t after = 0; after < QUERN__COUNT_OF(sizes); after++) {
            resize_before_the_run(sizes[before], sizes[after], false);
            resize_before_the_run(sizes[before], sizes[after], true);
        }
}

/* ----------------------------------------------------------------------- waits for any, inside of nodes */

typedef struct scene {
    quern_jobs *jobs;
    quern_graph *other;
    quern_counter held, counter;
    uint32_t index;
    _Atomic uint32_t sum;
} scene;

static void submit_and_wait_for_any(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    scene *of = argument;
    quern_counter *const list[] = {&of->held, &of->counter};
    const quern_graph_run_def def = {.counter = &of->counter};
    cr_expect_eq(quern_graph_submit(of->other, of->jobs, &def), QUERN_OK);
    cr_expect_eq(quern_jobs_wait_any(of->jobs, list, 2, UINT64_C(10000000000), &of->index), QUERN_OK);
}

/* While a node waits for several graphs, its external thread may run nodes of all of these graphs, but of
 * no others. */
Test(together, node_waiting_for_any_runs_caller_nodes)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        scene of = {.jobs = open_pool(threads), .other = open_graph()};
        quern_graph *graph = open_graph();
        const quern_graph_node_def waiter = {
            .function = submit_and_wait_for_any, .user_data = &of, .on_worker = QUERN_ON_CALLER};
        cr_assert_eq(quern_graph_add_node(graph, &waiter, NULL), QUERN_OK);
        const quern_graph_node_def caller_node = {.function = run_on_external,
                                                  .user_data = (void *)&of.sum,
                                                  .count = 1,
                                                  .on_worker = QUERN_ON_CALLER};
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(quern_graph_add_node(of.other, &caller_node, NULL), QUERN_OK);
        quern_counter_hold(&of.held);
        run_graph(graph, of.jobs);
        cr_assert_eq(of.index, 1u, "the wait ended by its limit");
        cr_assert_eq(atomic_load(&of.sum), 3u);
        cr_assert_eq(quern_counter_release(of.jobs, &of.held), QUERN_OK);
        quern_graph_destroy(graph);
        quern_graph_destroy(of.other);
        quern_jobs_destroy(of.jobs);
    }
}

/* --------------------------------------------------------------- external submits and the end of a pool */

typedef struct host {
    quern_jobs *jobs;
    _Atomic bool has_run, is_gone, was_gone;
    pthread_t thread;
    void (*function)(void *data);
    void *data;
} host;

static void *call_lent(void *argument)
{
    host *of = argument;
    of->function(of->data);
    return NULL;
}

/* Delays the submitting thread for longer than the job takes. */
static void submit_to_host_and_delay(void *user_data, void (*function)(void *data), void *data)
{
    host *of = user_data;
    of->function = function;
    of->data = data;
    cr_expect_eq(pthread_create(&of->thread, NULL, call_lent, of), 0);
    pass_time(100000);
    if (atomic_load(&of->is_gone)) atomic_store(&of->was_gone, true);
}

static void note_run(void *argument, uint32_t worker_index)
{
    host *const *of = argument;
    atomic_store(&(*of)->has_run, true);
}

static void *submit_after_zero(void *argument)
{
    host *of = argument;
    quern_counter zero = {0}, *const list[] = {&zero};
    const quern_job_def def = {.function = note_run,
                               .payload = &argument,
                               .payload_bytes = sizeof argument,
                               .after = list,
                               .after_count = 1};
    cr_expect_eq(quern_jobs_submit(of->jobs, &def), QUERN_OK);
    return NULL;
}

/* The job may allow another thread to destroy the pool. */
Test(together, pool_outlives_call_that_submits_after_counters)
{
    host of = {.jobs = NULL};
    const quern_jobs_def def = {.thread_count = 2, .host_threads = {submit_to_host_and_delay, &of}};
    pthread_t submitter;
    cr_assert_eq(quern_jobs_create(&def, &of.jobs), QUERN_OK);
    cr_assert_eq(pthread_create(&submitter, NULL, submit_after_zero, &of), 0);
    while (!atomic_load(&of.has_run))
        pass_time(100);
    quern_jobs_destroy(of.jobs);
    atomic_store(&of.is_gone, true);
    pthread_join(submitter, NULL);
    pthread_join(of.thread, NULL);
    cr_assert(!atomic_load(&of.was_gone), "the pool went while a call was in it");
}
