/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/loop.h"

/* The decision whether several workers share a run of a graph or a loop.
 *
 * Waking a sleeping worker costs the waker more time than many loops and graphs take, and the sleeper starts
 * even later. Sharing with an awake worker costs a few transfers of a cache line between two processors,
 * which is longer than very small loops take. So runs are timed, and the next run of the graph, or the next
 * loop over the same function, follows these rules:
 *
 *     long runs                           wake sleeping workers
 *     short runs                          spinning workers may help; sleeping ones are not woken
 *     tiny runs, and runs that were       run on one thread
 *     slower when shared
 *     short runs of unknown duration      run on one thread once, to measure it
 *     on one thread
 *
 * While sharing is slower it is tried again from time to time. If it is a little slower, perhaps because no
 * worker was awake, the distance between attempts grows with the loss. If it is clearly slower, the distance
 * also doubles with each attempt. Builds with QUERN_CHECKS share every run, because there finding races
 * matters more than time. docs/jobs.md has measurements of these rules. */

enum {
    TINY_NS = 500,      /* Shorter runs are not worth a job. */
    ATTEMPT_SHARE = 64, /* reciprocal of the part of the time that attempts to share may cost */
    MOST_ALONE_RUNS = 2048,
    LEARN_SHARE = 8,
    SLOWER_SHARE = 8, /* sharing that is slower by this part of the time alone is clearly slower */
    LEAST_NS = 8      /* the estimate does not fall below it: see quern__times_learn_alone */
};

quern__run_mode quern__times_choose(const quern__known_times *times, double unit_count)
{
    if (QUERN_CHECKS) return QUERN__RUN_WAKE;
    const double expected_ns = times->alone_ns * unit_count;
    if (expected_ns == 0 || expected_ns >= QUERN__QUIET_NS) return QUERN__RUN_WAKE;
    if (expected_ns < TINY_NS || times->measured_ns == 0) return QUERN__RUN_ALONE;
    return times->shared_ns >= times->alone_ns && times->alone_runs_left != 0 ? QUERN__RUN_ALONE
                                                                              : QUERN__RUN_QUIET;
}

/* Averages the duration into alone_ns. A run counts as at most twice the known duration, because it is too
 * long if the thread was interrupted. A coarse clock may report 0 ns, from which the average could not grow;
 * LEAST_NS avoids that. */
void quern__times_learn_alone(quern__known_times *times, double unit_count, uint64_t took_ns)
{
    const double known_ns = times->alone_ns, new_ns = (double)took_ns / unit_count;
    const double likely_ns = new_ns < 2 * known_ns ? new_ns : 2 * known_ns;
    times->alone_ns = times->measured_ns != 0 ? known_ns + (likely_ns - known_ns) / LEARN_SHARE : new_ns;
    if (times->alone_ns < LEAST_NS / unit_count) times->alone_ns = LEAST_NS / unit_count;
    times->measured_ns = times->alone_ns;
    if (times->alone_runs_left != 0) times->alone_runs_left--;
}

/* The duration on one thread is at least that of this run, and at most most_ns; alone_ns is clamped to these
 * bounds. It has to be measured again if it became clearly larger, or less than half: two threads with two
 * caches may be slightly more than twice as fast as one. */
void quern__times_learn_shared(quern__known_times *times, double unit_count, uint64_t took_ns,
                               double most_ns)
{
    const double known_ns = times->alone_ns;
    times->shared_ns = (double)took_ns / unit_count;
    if (known_ns == 0 || known_ns > most_ns / unit_count) times->alone_ns = most_ns / unit_count;
    if (times->alone_ns < times->shared_ns) times->alone_ns = times->shared_ns;
    if (times->alone_ns < LEAST_NS / unit_count) times->alone_ns = LEAST_NS / unit_count;
    if (times->alone_ns > times->measured_ns + times->measured_ns / SLOWER_SHARE ||
        times->alone_ns < times->measured_ns / 2)
        times->measured_ns = 0;
    /* The doubling: a shared run also slows down the runs after it, because their data has moved to another
     * processor's cache. The limit: one run may be far too long because the thread was interrupted. */
    double loss = known_ns == 0 ? 0 : times->shared_ns / known_ns - 1;
    if (loss > 1) loss = 1;
    double runs = loss * ATTEMPT_SHARE;
    if (loss * SLOWER_SHARE > 1 && runs < 2.0 * times->alone_runs) runs = 2.0 * times->alone_runs;
    if (runs > MOST_ALONE_RUNS) runs = MOST_ALONE_RUNS;
    times->alone_runs = runs > 0 ? (uint32_t)runs : 0;
    times->alone_runs_left = times->alone_runs;
}
