/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* The decision whether to share a run.
 *
 * Waking a sleeping worker takes longer than many graphs run, and sharing very small nodes may, too. So
 * runs are timed, and the next run follows these rules:
 *
 *     long runs                           wake sleeping workers
 *     short runs                          spinning workers may help; sleeping ones are not woken
 *     tiny runs, and runs that were       run on one thread
 *     slower when shared
 *     short runs of unknown duration      run on one thread once, to measure it
 *     on one thread */

enum {
    SERIAL_NS = 1000,       /* Shorter runs are not worth a job. */
    GRAPH_QUIET_NS = 50000, /* Shorter runs end before a woken worker could start. */
    FIRST_SERIAL_RUNS = 32,
    MOST_SERIAL_RUNS = 2048,
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
    if (times->serial_ns < SERIAL_NS || times->measured_ns == 0) return QUERN__RUN_SERIAL;
    return times->shared_ns >= times->serial_ns && times->serial_runs_left != 0 ? QUERN__RUN_SERIAL
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

/* Averages the duration of a run into serial_ns. A run counts as at most twice the known duration, because
 * it is too long if the thread was interrupted. A coarse clock may report 0 ns, from which the average
 * could not grow; the minimum avoids that. */
void quern__graph_learn_serial(quern_graph *graph, uint64_t took_ns)
{
    quern__graph_times *times = &graph->times;
    const uint64_t known_ns = times->serial_ns;
    const uint64_t likely_ns = took_ns / 2 < known_ns ? took_ns : 2 * known_ns;
    times->serial_ns =
        times->measured_ns != 0 ? known_ns - known_ns / LEARN_SHARE + likely_ns / LEARN_SHARE : took_ns;
    if (times->serial_ns < LEARN_SHARE) times->serial_ns = LEARN_SHARE;
    times->measured_ns = times->serial_ns;
    if (times->serial_runs_left != 0) times->serial_runs_left--;
}

/* Doubles the distance to the next attempt to share each time that sharing was slower. A shared run also
 * slows down the runs after it, because their data has moved to another processor's cache. */
static void put_off_sharing(quern__graph_times *times, bool was_slower)
{
    uint32_t runs = times->serial_runs == 0 ? FIRST_SERIAL_RUNS : 2 * times->serial_runs;
    if (runs > MOST_SERIAL_RUNS) runs = MOST_SERIAL_RUNS;
    times->serial_runs = was_slower ? runs : 0;
    times->serial_runs_left = times->serial_runs;
}

/* Updates serial_ns after a run on several threads. The duration on one thread is at least the duration of
 * this run, and at most that times the number of threads; serial_ns is clamped to these bounds. It has to
 * be measured again if it became larger, or less than half: two threads with two caches may be slightly
 * more than twice as fast as one. The flag is read with relaxed order, because the worker that ends a run
 * has acquired all writes of helpers. */
void quern__graph_learn_shared(quern_graph *graph, uint64_t took_ns, quern__worker *worker)
{
    quern__graph_times *times = &graph->times;
    bool was_helped = atomic_load_explicit(&graph->was_helped, memory_order_relaxed);
    if (!was_helped && took_ns >= 2 * (uint64_t)GRAPH_QUIET_NS) quern__worker_yield_after_long_work(worker);
    const uint64_t most_ns = was_helped ? took_ns * worker->jobs->thread_count : took_ns;
    if (times->serial_ns > most_ns) times->serial_ns = most_ns;
    if (times->serial_ns < took_ns) times->serial_ns = took_ns;
    if (times->serial_ns > times->measured_ns || times->serial_ns < times->measured_ns / 2)
        times->measured_ns = 0;
    times->shared_ns = took_ns;
    put_off_sharing(times, times->serial_ns == took_ns);
}
