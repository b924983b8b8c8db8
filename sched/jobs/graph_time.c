/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* When runs are shared.
 *
 * Waking a sleeper takes longer than many graphs run, and so may sharing very small nodes. So runs are
 * timed. Long ones wake sleepers. Short ones leave them alone, since those would come too late; whoever
 * spins may help. Tiny ones, and those that sharing has made slower, are not shared; and a short one of
 * which it is not known how long it takes alone is run so once. */

enum {
    SERIAL_NS = 1000,       /* less: not worth a job */
    GRAPH_QUIET_NS = 50000, /* less: over before a sleeper arrives */
    FIRST_ALONE_RUNS = 32,
    MOST_ALONE_RUNS = 2048,
    LEARN_SHARE = 8
};

static uint64_t count_items(const quern_graph *graph)
{
    uint64_t count = 0;
    for (uint32_t index = 0; index < graph->node_count; index++)
        count += graph->nodes[index].range.count;
    return count;
}

static quern__run_mode choose_by_times(const quern__graph_times *times)
{
    if (times->serial_ns >= GRAPH_QUIET_NS) return QUERN__RUN_WAKE;
    if (times->serial_ns < SERIAL_NS || times->measured_ns == 0) return QUERN__RUN_ALONE;
    return times->shared_ns >= times->serial_ns && times->alone_runs_left != 0 ? QUERN__RUN_ALONE
                                                                               : QUERN__RUN_QUIET;
}

quern__run_mode quern__graph_choose_mode(quern_graph *graph)
{
    if (QUERN_CHECKS) return QUERN__RUN_WAKE; /* there, finding races matters more than time */
    const uint64_t item_count = count_items(graph);
    if (item_count / 2 > graph->times.item_count) quern__graph_forget_times(graph);
    graph->times.item_count = item_count;
    return choose_by_times(&graph->times);
}

/* One run may take far too long, when the thread was interrupted. And a coarse clock says that a run of
 * nothing takes no time, from which nothing would grow. */
void quern__graph_learn_alone(quern_graph *graph, uint64_t took_ns)
{
    quern__graph_times *times = &graph->times;
    const uint64_t known_ns = times->serial_ns;
    const uint64_t likely_ns = took_ns / 2 < known_ns ? took_ns : 2 * known_ns;
    times->serial_ns =
        times->measured_ns != 0 ? known_ns - known_ns / LEARN_SHARE + likely_ns / LEARN_SHARE : took_ns;
    if (times->serial_ns < LEARN_SHARE) times->serial_ns = LEARN_SHARE;
    times->measured_ns = times->serial_ns;
    if (times->alone_runs_left != 0) times->alone_runs_left--;
}

/* Each time that sharing has made it slower, the next try is twice as far away: it disturbs the runs behind
 * it, too, whose data has moved to another processor's cache. */
static void put_off_sharing(quern__graph_times *times, bool was_slower)
{
    uint32_t runs = times->alone_runs == 0 ? FIRST_ALONE_RUNS : 2 * times->alone_runs;
    if (runs > MOST_ALONE_RUNS) runs = MOST_ALONE_RUNS;
    times->alone_runs = was_slower ? runs : 0;
    times->alone_runs_left = times->alone_runs;
}

/* A run with helpers tells less of the time for one thread: at least what it took, at most that for each
 * thread. What was known before is brought within these bounds, and measured again where it has grown or is
 * less than half; two threads, with two caches, may well be a little more than twice as fast. The flag is
 * read relaxed: who finds a run at its end has acquired all that helpers did. */
void quern__graph_learn_shared(quern_graph *graph, uint64_t took_ns, quern__worker *worker)
{
    quern__graph_times *times = &graph->times;
    bool was_helped = atomic_load_explicit(&graph->was_helped, memory_order_relaxed);
    if (!was_helped && took_ns >= 2 * (uint64_t)GRAPH_QUIET_NS) quern__worker_let_others_come(worker);
    const uint64_t most_ns = was_helped ? took_ns * worker->jobs->thread_count : took_ns;
    if (times->serial_ns > most_ns) times->serial_ns = most_ns;
    if (times->serial_ns < took_ns) times->serial_ns = took_ns;
    if (times->serial_ns > times->measured_ns || times->serial_ns < times->measured_ns / 2)
        times->measured_ns = 0;
    times->shared_ns = took_ns;
    put_off_sharing(times, times->serial_ns == took_ns);
}
