/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

#include <criterion/criterion.h>

/* The decision whether to share runs of a graph: tests the shipped sched/jobs/graph_run.c with given
 * durations. */

/* Builds with checks share every run. */
#undef QUERN_CHECKS
#define QUERN_CHECKS 0
/* Replaces the library's object file, so it defines everything that the object file defines. */
#include "sched/jobs/graph_run.c" /* NOLINT(bugprone-suspicious-include) */

TestSuite(graph_times, .timeout = 60);

static quern_jobs pool = {.thread_count = 2};
static quern__worker caller = {.jobs = &pool};
static quern_graph graph;

/* Runs the graph repeatedly. Returns the number of shared runs; all of these had help. */
static uint32_t run_often(uint32_t run_count, uint64_t alone_ns, uint64_t shared_ns)
{
    uint32_t shared_count = 0;
    for (uint32_t i = 0; i < run_count; i++) {
        if (quern__graph_choose_mode(&graph) == QUERN__RUN_SERIAL) {
            quern__graph_learn_serial(&graph, alone_ns);
            continue;
        }
        atomic_store(&graph.own_run.was_helped, true);
        quern__graph_learn_shared(&graph, shared_ns, &caller);
        shared_count++;
    }
    return shared_count;
}

Test(graph_times, a_graph_that_is_slower_when_shared_is_rarely_shared)
{
    quern__graph_forget_times(&graph);
    cr_assert_leq(run_often(1000, 2000, 3000), 10u);
    cr_assert_leq(run_often(100000, 2000, 3000), 60u);
}

Test(graph_times, a_graph_that_becomes_quicker_when_shared_is_shared_again)
{
    quern__graph_forget_times(&graph);
    run_often(100000, 2000, 3000);
    cr_assert_geq(run_often(2 * MOST_SERIAL_RUNS, 2000, 1500), 1u);
    cr_assert_eq(run_often(1000, 2000, 1500), 1000u);
    cr_assert_leq(run_often(1000, 2000, 3000), 20u);
}

Test(graph_times, a_graph_that_becomes_longer_is_shared_soon)
{
    quern__graph_forget_times(&graph);
    run_often(100000, 2000, 3000);
    cr_assert_geq(run_often(100, 20000, 12000), 50u);
}

/* Each thread has a cache of its own. */
Test(graph_times, a_graph_that_is_more_than_twice_as_fast_when_shared_is_shared_always)
{
    quern__graph_forget_times(&graph);
    cr_assert_geq(run_often(1000, 20000, 9000), 998u);
}

Test(graph_times, a_graph_that_becomes_shorter_is_measured_again)
{
    quern__graph_forget_times(&graph);
    cr_assert_geq(run_often(100, 40000, 22000), 98u);
    cr_assert_leq(run_often(1000, 4000, 5000), 20u);
}

/* A coarse clock reports no time for a short run. */
Test(graph_times, a_graph_that_took_no_time_is_shared_once_it_is_long)
{
    quern__graph_forget_times(&graph);
    run_often(100, 0, 0);
    cr_assert_geq(run_often(200, 10 * (uint64_t)GRAPH_QUIET_NS, 5 * (uint64_t)GRAPH_QUIET_NS), 50u);
}

Test(graph_times, one_run_that_was_interrupted_changes_little)
{
    quern__graph_forget_times(&graph);
    run_often(10000, 2000, 3000);
    graph.times.serial_runs_left = MOST_SERIAL_RUNS;
    quern__graph_learn_serial(&graph, 5000000);
    cr_assert_eq(run_often(100, 2000, 3000), 0u);
}

Test(graph_times, a_tiny_graph_is_not_shared)
{
    quern__graph_forget_times(&graph);
    cr_assert_leq(run_often(100000, SERIAL_NS / 2, SERIAL_NS / 4), 2u);
}

Test(graph_times, a_long_graph_is_always_shared)
{
    quern__graph_forget_times(&graph);
    cr_assert_eq(run_often(1000, 10 * GRAPH_QUIET_NS, 20 * GRAPH_QUIET_NS), 1000u);
}
