/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include <quern/graph.h>

#include "core/base/base_internal.h"
#include "tests/sched/jobs/planned_graph.h"

#include <criterion/criterion.h>

#include <stdatomic.h>

/* Graphs that run inside jobs, inside nodes of other graphs, and several at a time. */

TestSuite(graph_nested, .timeout = 120);

enum { MOST_PLANS = 8, DEEPEST = 4 };

typedef struct crowd {
    quern_jobs *jobs;
    planned_graph *plans[MOST_PLANS];
} crowd;

static void open_crowd(crowd *of, uint32_t thread_count)
{
    of->jobs = open_pool(thread_count);
    for (uint32_t i = 0; i < MOST_PLANS; i++)
        of->plans[i] = open_plan(100 + i, 20 + 5 * i, i % 4);
}

static void close_crowd(crowd *of)
{
    for (uint32_t i = 0; i < MOST_PLANS; i++)
        close_plan(of->plans[i]);
    quern_jobs_destroy(of->jobs);
}

static void run_some_plans(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    crowd *of = argument;
    for (uint32_t i = begin; i < end; i++)
        for (uint32_t run = 0; run < 5; run++)
            run_plan(of->plans[i], of->jobs, worker_index);
}

Test(graph_nested, items_of_a_loop_may_each_run_a_graph)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        crowd of;
        open_crowd(&of, thread_counts[t]);
        for (uint32_t round = 0; round < 5; round++)
            cr_assert_eq(quern_jobs_parallel_for(of.jobs, MOST_PLANS, 1, run_some_plans, &of), QUERN_OK);
        close_crowd(&of);
    }
}

Test(graph_nested, nodes_may_each_run_a_graph)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        crowd of;
        open_crowd(&of, thread_counts[t]);
        quern_graph *outer = open_graph();
        add_node(outer, run_some_plans, &of, MOST_PLANS);
        for (uint32_t run = 0; run < 5; run++)
            run_graph(outer, of.jobs);
        quern_graph_destroy(outer);
        close_crowd(&of);
    }
}

typedef struct ticket {
    crowd *of;
    uint32_t number;
} ticket;

static void run_as_job(void *argument, uint32_t worker_index)
{
    ticket *mine = argument;
    run_some_plans(mine->of, mine->number, mine->number + 1, worker_index);
}

Test(graph_nested, submitted_jobs_run_graphs_while_the_caller_runs_one)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        crowd of;
        open_crowd(&of, thread_counts[t]);
        for (uint32_t round = 0; round < 5; round++) {
            quern_counter counter = {0};
            for (uint32_t i = 1; i < MOST_PLANS; i++) {
                ticket mine = {&of, i};
                quern_job_def def = {.function = run_as_job,
                                     .payload = &mine,
                                     .payload_bytes = sizeof mine,
                                     .priority = (quern_priority)(i % 3),
                                     .counter = &counter};
                cr_assert_eq(quern_jobs_submit(of.jobs, &def), QUERN_OK);
            }
            run_some_plans(&of, 0, 1, 0);
            cr_assert_eq(quern_jobs_wait(of.jobs, &counter), QUERN_OK);
        }
        close_crowd(&of);
    }
}

/* ---------------------------------------------------------------------------------------- nested graphs */

typedef struct level {
    quern_jobs *jobs;
    quern_graph *graph;
    struct level *inner;
    _Atomic uint32_t run_count;
    _Atomic uint32_t in_node[16]; /* one per worker */
} level;

/* No node begins on a worker in the middle of another node of the same level. */
static void go_deeper(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    level *of = argument;
    cr_expect(atomic_fetch_add(&of->in_node[worker_index], 1) == 0, "began in the middle of another node");
    atomic_fetch_add(&of->run_count, 1);
    if (of->inner != NULL) {
        /* One of the callers that run it at the same time succeeds. */
        quern_result result = quern_graph_run(of->inner->graph, of->jobs);
        cr_expect(result == QUERN_OK || result == QUERN_ERROR_POOL_BUSY);
    }
    pass_time(20);
    atomic_fetch_sub(&of->in_node[worker_index], 1);
}

Test(graph_nested, no_node_begins_in_the_middle_of_another_of_its_graph)
{
    for (size_t t = 0; t < QUERN__COUNT_OF(thread_counts); t++) {
        level levels[DEEPEST] = {0};
        quern_jobs *jobs = open_pool(thread_counts[t]);
        for (uint32_t depth = 0; depth < DEEPEST; depth++) {
            level *of = &levels[depth];
            of->jobs = jobs;
            of->graph = open_graph();
            of->inner = depth + 1 < DEEPEST ? of + 1 : NULL;
            for (uint32_t i = 0; i < 12; i++)
                add_node(of->graph, go_deeper, of, 1);
            for (uint32_t i = 4; i < 12; i++)
                add_edge(of->graph, i - 4, i);
        }
        for (uint32_t run = 1; run <= 10; run++) {
            run_graph(levels[0].graph, jobs);
            cr_assert_eq(atomic_load(&levels[0].run_count), 12 * run);
        }
        for (uint32_t depth = 1; depth < DEEPEST; depth++)
            cr_assert_eq(atomic_load(&levels[depth].run_count) % 12, 0u);
        for (uint32_t depth = 0; depth < DEEPEST; depth++)
            quern_graph_destroy(levels[depth].graph);
        quern_jobs_destroy(jobs);
    }
}

/* -------------------------------------------------------------------------------------- without sharing */

static void check_index(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    cr_expect(worker_index == *(const uint32_t *)argument);
}

static void run_one_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern_jobs *jobs = argument;
    uint32_t expected_index = worker_index;
    quern_graph *graph;
    const quern_graph_node_def def = {
        .function = check_index, .user_data = &expected_index, .on_worker = QUERN_ON_CALLER};
    cr_expect(quern_graph_create(NULL, &graph) == QUERN_OK);
    cr_expect(quern_graph_add_node(graph, &def, NULL) == QUERN_OK);
    for (uint32_t run = 0; run < 3; run++)
        cr_expect(quern_graph_run(graph, jobs) == QUERN_OK);
    expected_index = 0;
    cr_expect(quern_graph_run(graph, NULL) == QUERN_OK);
    quern_graph_destroy(graph);
}

Test(graph_nested, caller_only_nodes_get_the_worker_index_of_the_running_job)
{
    quern_jobs *jobs = open_pool(4);
    for (uint32_t round = 0; round < 100; round++)
        cr_assert_eq(quern_jobs_parallel_for(jobs, 40, 1, run_one_node, jobs), QUERN_OK);
    quern_jobs_destroy(jobs);
}
