/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs.h"

/* What a pool tells of its workers: where their time goes, and a trace of what they do between jobs.
 *
 * slept_ns and asleep_since_ns are written by the worker alone. Who reads them while it falls asleep or wakes may count the
 * sleep not at all, or as it was a moment ago: nothing but a figure depends on it. */

static void show(const quern__worker *worker, quern__trace_kind kind, uint64_t start_ns, uint32_t count)
{
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = quern__clock_ns() - start_ns,
                                      .kind = kind,
                                      .name = QUERN__TRACE_NO_NAME,
                                      .count = count};
    quern__trace_show(worker->jobs->trace, worker->index, &event);
}

void quern__worker_park(quern__worker *worker)
{
    const uint64_t start_ns = quern__clock_ns();
    atomic_store_explicit(&worker->asleep_since_ns, start_ns, memory_order_relaxed);
    quern__parker_take(&worker->parker);
    const uint64_t slept_ns = atomic_load_explicit(&worker->slept_ns, memory_order_relaxed);
    atomic_store_explicit(&worker->asleep_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&worker->slept_ns, slept_ns + quern__clock_ns() - start_ns, memory_order_relaxed);
    show(worker, QUERN__TRACE_SLEEP, start_ns, 0);
}

uint64_t quern__worker_slept_ns(const quern__worker *worker, uint64_t now_ns)
{
    const uint64_t since_ns = atomic_load_explicit(&worker->asleep_since_ns, memory_order_relaxed);
    const uint64_t slept_ns = atomic_load_explicit(&worker->slept_ns, memory_order_relaxed);
    return since_ns != 0 && since_ns < now_ns ? slept_ns + now_ns - since_ns : slept_ns;
}

void quern__worker_show_steal(const quern__worker *worker, uint64_t start_ns, uint32_t count)
{
    show(worker, QUERN__TRACE_STEAL, start_ns, count);
}
