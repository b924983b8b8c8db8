/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_SCHED_JOBS_PLANNED_GRAPH_H
#define TESTS_SCHED_JOBS_PLANNED_GRAPH_H

/* Helpers for tests of graphs: short ways to build graphs, and random graphs that check their own order. */

#include "core/base/base_internal.h"
#include "tests/support/random.h"

#include <quern/graph.h>

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_NODES = 300, MAX_ITEMS = 40 };

static const uint32_t thread_counts[] = {1, 2, 3, 8, 16};

static inline quern_graph *open_graph(void)
{
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    return graph;
}

static inline quern_jobs *open_pool(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    return jobs;
}

static inline void run_graph(quern_graph *graph, quern_jobs *jobs)
{
    cr_assert_eq(quern_graph_run(graph, jobs), QUERN_OK, "%s", quern_error_message());
}

static inline uint32_t add_node(quern_graph *graph, quern_range_function *function, void *argument,
                                uint32_t count)
{
    quern_graph_node_def def = {.function = function, .user_data = argument, .count = count};
    uint32_t number = UINT32_MAX;
    cr_assert_eq(quern_graph_add_node(graph, &def, &number), QUERN_OK);
    if (count == 0) cr_assert_eq(quern_graph_set_count(graph, number, 0), QUERN_OK);
    return number;
}

static inline void add_edge(quern_graph *graph, uint32_t before, uint32_t after)
{
    cr_assert_eq(quern_graph_add_edge(graph, before, after), QUERN_OK, "%s", quern_error_message());
}

static inline void pass_time(uint32_t microseconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 <
             (long)microseconds);
}

static inline void count_items(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    atomic_fetch_add_explicit((_Atomic uint32_t *)argument, end - begin, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------- planned graphs */

typedef struct planned_graph planned_graph;

/* The predecessors of each node are stored here a second time, and each item checks that they have
 * finished. `done` is not atomic on purpose, so that wrong order is a data race. */
typedef struct planned_node {
    planned_graph *of;
    uint32_t number;
    uint32_t count;
    uint32_t grain;
    uint32_t microseconds; /* one per item */
    bool caller_only;
    uint32_t predecessor_count;
    uint32_t predecessors[MAX_NODES];
    _Atomic uint32_t call_count[MAX_ITEMS];
    uint32_t done[MAX_ITEMS]; /* number of the last run in which the item was done */
} planned_node;

struct planned_graph {
    planned_node nodes[MAX_NODES];
    uint32_t node_count;
    uint32_t run_number;
    uint32_t thread_count;
    pthread_t caller;
    uint32_t caller_index;
    quern_graph *graph;
};

static inline bool has_run(const planned_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->done[i] != node->of->run_number) return false;
    return true;
}

static inline void run_planned(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    planned_node *node = argument;
    cr_expect(begin < end && end <= node->count && worker_index < node->of->thread_count);
    cr_expect(node->grain == 0 || node->caller_only || end - begin <= node->grain);
    for (uint32_t i = 0; i < node->predecessor_count; i++)
        cr_expect(has_run(&node->of->nodes[node->predecessors[i]]), "node %u ran before node %u",
                  node->number, node->predecessors[i]);
    if (node->caller_only) {
        cr_expect(pthread_equal(pthread_self(), node->of->caller) &&
                  worker_index == node->of->caller_index);
        cr_expect(begin == 0 && end == node->count);
    }
    for (uint32_t i = begin; i < end; i++) {
        if (node->microseconds != 0) pass_time(node->microseconds);
        atomic_fetch_add_explicit(&node->call_count[i], 1, memory_order_relaxed);
        node->done[i] = node->of->run_number;
    }
}

static inline void add_planned_node(planned_graph *plan, random_source *random)
{
    planned_node *node = &plan->nodes[plan->node_count];
    node->of = plan;
    node->number = plan->node_count++;
    node->count = random_chance(random, 50) ? 1 : random_below(random, MAX_ITEMS);
    node->grain = random_below(random, 4);
    node->microseconds = random_chance(random, 10) ? random_below(random, 20) : 0;
    node->caller_only = random_chance(random, 10);
    quern_graph_node_def def = {.function = run_planned,
                                .user_data = node,
                                .count = node->count,
                                .grain = node->grain,
                                .on_worker = node->caller_only ? QUERN_ON_CALLER : 0};
    cr_assert_eq(quern_graph_add_node(plan->graph, &def, NULL), QUERN_OK);
    if (node->count == 0) cr_assert_eq(quern_graph_set_count(plan->graph, node->number, 0), QUERN_OK);
}

static inline void add_planned_edges(planned_graph *plan, random_source *random, uint32_t per_node)
{
    for (uint32_t after = 1; after < plan->node_count; after++) {
        for (uint32_t i = random_below(random, per_node + 1); i != 0; i--) {
            uint32_t before = random_below(random, after);
            planned_node *node = &plan->nodes[after];
            node->predecessors[node->predecessor_count++] = before;
            add_edge(plan->graph, before, after);
        }
    }
}

static inline planned_graph *open_plan(uint64_t seed, uint32_t node_count, uint32_t edges_per_node)
{
    random_source random = {seed};
    planned_graph *plan = calloc(1, sizeof *plan);
    cr_assert_not_null(plan);
    plan->graph = open_graph();
    while (plan->node_count < node_count)
        add_planned_node(plan, &random);
    add_planned_edges(plan, &random, edges_per_node);
    return plan;
}

static inline void close_plan(planned_graph *plan)
{
    quern_graph_destroy(plan->graph);
    free(plan);
}

/* `caller_index`: index of the calling worker. */
static inline void run_plan(planned_graph *plan, quern_jobs *jobs, uint32_t caller_index)
{
    plan->thread_count = jobs != NULL ? quern_jobs_thread_count(jobs) : 1;
    plan->caller = pthread_self();
    plan->caller_index = caller_index;
    plan->run_number++;
    cr_expect(quern_graph_run(plan->graph, jobs) == QUERN_OK, "%s", quern_error_message());
    for (uint32_t n = 0; n < plan->node_count; n++) {
        planned_node *node = &plan->nodes[n];
        cr_expect(has_run(node), "node %u", n);
        for (uint32_t i = 0; i < node->count; i++)
            cr_expect(atomic_exchange(&node->call_count[i], 0) == 1, "node %u item %u", n, i);
    }
}

#endif
