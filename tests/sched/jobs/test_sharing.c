/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

#include <criterion/criterion.h>

/* The decision whether several workers share runs of a graph, or loops (sched/jobs/sharing.c), with given
 * durations. */

/* Builds with checks share everything. */
#undef QUERN_CHECKS
#define QUERN_CHECKS 0
/* These replace the library's object files, so they define everything that those define. */
#include "sched/jobs/sharing.c" /* NOLINT(bugprone-suspicious-include) */
#define claim      claim_items
#define run_shared run_loop_shared
#include "sched/jobs/loop.c" /* NOLINT(bugprone-suspicious-include) */
#undef claim
#undef run_shared
#include "sched/jobs/graph_run.c" /* NOLINT(bugprone-suspicious-include) */

TestSuite(sharing, .timeout = 60);

static quern_jobs pool = {.thread_count = 2, .worker_count = 2, .external_count = 1};
static quern__worker caller = {.jobs = &pool};
static quern_graph graph;
static quern__known_times times;

/* Runs something repeatedly, for which two threads together need up to twice the time of one thread. Returns
 * the number of shared runs; all of these had help. */
static uint32_t run_items_often(uint32_t run_count, double item_count, uint64_t alone_ns,
                                uint64_t shared_ns)
{
    uint32_t shared_count = 0;
    for (uint32_t i = 0; i < run_count; i++) {
        if (quern__times_choose(&times, item_count) == QUERN__RUN_ALONE) {
            quern__times_learn_alone(&times, item_count, alone_ns);
            continue;
        }
        quern__times_learn_shared(&times, item_count, shared_ns, 2 * (double)shared_ns);
        shared_count++;
    }
    return shared_count;
}

static uint32_t run_often(uint32_t run_count, uint64_t alone_ns, uint64_t shared_ns)
{
    return run_items_often(run_count, 1, alone_ns, shared_ns);
}

Test(sharing, a_graph_that_is_slower_when_shared_is_rarely_shared)
{
    cr_assert_leq(run_often(1000, 2000, 3000), 10u);
    cr_assert_leq(run_often(100000, 2000, 3000), 60u);
}

Test(sharing, a_graph_that_becomes_quicker_when_shared_is_shared_again)
{
    run_often(100000, 2000, 3000);
    cr_assert_geq(run_often(2 * MOST_ALONE_RUNS, 2000, 1500), 1u);
    cr_assert_eq(run_often(1000, 2000, 1500), 1000u);
    cr_assert_leq(run_often(1000, 2000, 3000), 20u);
}

Test(sharing, a_graph_that_becomes_longer_is_shared_soon)
{
    run_often(100000, 2000, 3000);
    cr_assert_geq(run_often(100, 20000, 12000), 50u);
}

/* Each thread has a cache of its own. */
Test(sharing, a_graph_that_is_more_than_twice_as_fast_when_shared_is_shared_always)
{
    cr_assert_geq(run_often(1000, 20000, 9000), 998u);
}

Test(sharing, a_graph_that_becomes_shorter_is_measured_again)
{
    cr_assert_geq(run_often(100, 40000, 22000), 98u);
    cr_assert_leq(run_often(1000, 4000, 5000), 20u);
}

/* A coarse clock reports no time for a short run. */
Test(sharing, a_graph_that_took_no_time_is_shared_once_it_is_long)
{
    cr_assert_leq(run_often(100, 0, 0), 2u);
    cr_assert_geq(run_often(200, 10 * (uint64_t)QUERN__QUIET_NS, 5 * (uint64_t)QUERN__QUIET_NS), 50u);
}

Test(sharing, one_run_that_was_interrupted_changes_little)
{
    run_often(10000, 2000, 3000);
    times.alone_runs_left = MOST_ALONE_RUNS;
    quern__times_learn_alone(&times, 1, 5000000);
    cr_assert_eq(run_often(100, 2000, 3000), 0u);
}

Test(sharing, one_shared_run_that_was_interrupted_changes_little)
{
    run_often(1000, 20000, 12000);
    quern__times_learn_shared(&times, 1, 5000000, 5000000);
    cr_assert_geq(run_often(100, 20000, 12000), 97u);
}

/* Attempts cost little, so they are not put off further and further: perhaps no other worker was awake. */
Test(sharing, what_is_a_little_slower_when_shared_is_often_shared)
{
    quern__times_learn_alone(&times, 1, 20000);
    cr_assert_geq(run_often(1000, 20000, 20600), 300u);
}

Test(sharing, a_shared_run_that_took_as_long_as_alone_is_no_reason_to_measure_again)
{
    quern__times_learn_alone(&times, 1, 20000);
    quern__times_learn_shared(&times, 1, 20200, 40400);
    cr_assert_eq(quern__times_choose(&times, 1), QUERN__RUN_QUIET);
}

/* It may have been an interruption. */
Test(sharing, one_shared_run_that_was_far_slower_puts_sharing_off_like_one_that_took_twice_as_long)
{
    quern__times_learn_alone(&times, 1, 4000);
    quern__times_learn_shared(&times, 1, 40000, 80000);
    cr_assert_eq(times.alone_runs_left, (uint32_t)ATTEMPT_SHARE);
    cr_assert_eq(run_often(ATTEMPT_SHARE, 4000, 2500), 0u);
    cr_assert_eq(run_often(100, 4000, 2500), 100u);
}

Test(sharing, a_tiny_graph_is_not_shared)
{
    cr_assert_leq(run_often(100000, TINY_NS / 2, TINY_NS / 4), 2u);
}

Test(sharing, a_long_graph_is_always_shared)
{
    cr_assert_eq(run_often(1000, 10 * QUERN__QUIET_NS, 20 * QUERN__QUIET_NS), 1000u);
}

Test(sharing, sleeping_workers_are_woken_for_long_runs_only)
{
    cr_assert_eq(quern__times_choose(&times, 1), QUERN__RUN_WAKE, "nothing is known");
    run_often(100, 20000, 12000);
    cr_assert_eq(quern__times_choose(&times, 1), QUERN__RUN_QUIET);
    cr_assert_eq(quern__times_choose(&times, 3), QUERN__RUN_WAKE);
}

/* Times are known per item. */
Test(sharing, loops_of_other_lengths_use_the_time_per_item)
{
    run_items_often(100, 100, 20000, 12000);
    cr_assert_eq(quern__times_choose(&times, 2), QUERN__RUN_ALONE);
    cr_assert_eq(quern__times_choose(&times, 100), QUERN__RUN_QUIET);
    cr_assert_eq(quern__times_choose(&times, 1000), QUERN__RUN_WAKE);
}

Test(sharing, a_graph_with_many_more_items_is_measured_again)
{
    quern__graph_node node = {.range.count = 10};
    graph = (quern_graph){.nodes = &node, .node_count = 1};
    cr_assert_eq(choose_mode(&graph), QUERN__RUN_WAKE);
    quern__times_learn_alone(&graph.times, 1, TINY_NS / 2);
    cr_assert_eq(choose_mode(&graph), QUERN__RUN_ALONE);
    node.range.count = 19;
    cr_assert_eq(choose_mode(&graph), QUERN__RUN_ALONE);
    node.range.count = 40;
    cr_assert_eq(choose_mode(&graph), QUERN__RUN_WAKE);
}

/* --------------------------------------------------------------------------------------------- loops */

static uint32_t run_item_count;

static void spin(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const uint64_t start_ns = quern__clock_ns();
    (void)user_data, (void)worker_index;
    run_item_count += end - begin;
    while (quern__clock_ns() - start_ns < QUERN__QUIET_NS) {
    }
}

/* The rest is not lost, and not run twice. */
Test(sharing, a_loop_that_is_longer_than_expected_is_shared_after_its_first_part)
{
    const quern__range range = {.function = spin, .count = 80, .grain = 1};
    quern__sharing sharing;
    quern__times_learn_alone(&cost_of(&caller, &range)->times, range.count, TINY_NS / 2);
    cr_assert(quern__range_begin(&caller, &range, &sharing));
    cr_assert_eq(run_item_count, 10u);
    cr_assert_eq(sharing.rest.first, 10u);
    cr_assert_eq(sharing.rest.count, 80u);
    cr_assert(sharing.is_whole);
    cr_assert(sharing.wake);
}

Test(sharing, a_loop_of_unknown_duration_wakes_workers)
{
    const quern__range range = {.function = spin, .count = 80, .grain = 1};
    quern__sharing sharing;
    cr_assert(quern__range_begin(&caller, &range, &sharing));
    cr_assert_eq(run_item_count, 0u);
    cr_assert_eq(sharing.rest.first, 0u);
    cr_assert(sharing.wake);
}

/* The caller ran a half in 30 us: alone it would need 60. */
Test(sharing, a_shared_loop_tells_how_long_it_would_take_alone)
{
    const quern__range range = {.function = spin, .count = 80, .grain = 1};
    quern__sharing sharing;
    cr_assert(quern__range_begin(&caller, &range, &sharing));
    const quern__loop_contribution own = {.item_count = 40, .time_ns = 30000};
    sharing.start_ns = quern__clock_ns();
    quern__range_end_shared(&caller, &sharing, &own);
    const double alone_ns = cost_of(&caller, &range)->times.alone_ns * range.count;
    cr_assert_geq(alone_ns, 59999.0);
}

Test(sharing, cancelled_loops_teach_nothing)
{
    const quern__range range = {.function = spin, .count = 80, .grain = 1};
    quern__sharing sharing;
    cr_assert(quern__range_begin(&caller, &range, &sharing));
    const quern__loop_contribution own = {.item_count = 40, .time_ns = 30000};
    sharing.is_whole = false;
    quern__range_end_shared(&caller, &sharing, &own);
    cr_assert_eq(cost_of(&caller, &range)->times.alone_ns, 0.0);
}
