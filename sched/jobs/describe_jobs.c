/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include "core/base/printer.h"

/* Description of a pool as text, while it runs: all loads are relaxed and give approximate values. */

static bool has_bit(const quern__worker_mask *mask, uint32_t index)
{
    return (atomic_load_explicit(&mask->words[index / 64], memory_order_relaxed) >> (index % 64) & 1) != 0;
}

static bool is_inside(const quern_jobs *jobs, const quern__worker *worker)
{
    return (atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) >>
                quern__worker_external_slot(worker) &
            1) != 0;
}

static const char *state_of(const quern_jobs *jobs, const quern__worker *worker)
{
    if (quern__worker_is_external(worker) && !is_inside(jobs, worker))
        return quern__jobs_is_slot_registered(jobs, quern__worker_external_slot(worker))
                   ? "outside, registered"
                   : "outside";
    if (has_bit(&jobs->idle, worker->index)) return "asleep, no job";
    if (has_bit(&jobs->blocked, worker->index)) return "asleep in a wait";
    if (atomic_load_explicit(&worker->awaited_scope, memory_order_relaxed) != NULL) return "in a wait";
    if (atomic_load_explicit(&worker->served_scope, memory_order_relaxed) != NULL) return "in a job";
    return "awake";
}

static uint32_t count_queue(const quern_jobs *jobs, quern__queue_index index)
{
    return atomic_load_explicit(&jobs->queues.queues[index].count, memory_order_relaxed);
}

static void describe_pool(quern__printer *printer, const quern_jobs *jobs)
{
    const uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    quern__print(
        printer,
        "pool '%s': %u threads, %u of %u external threads inside, %u searching; queued: %u high, %u "
        "normal, %u low, "
        "%u for the caller\n",
        jobs->name, (unsigned)quern_jobs_thread_count(jobs), (unsigned)quern__count_bits_32(inside),
        (unsigned)jobs->external_count,
        (unsigned)atomic_load_explicit(&jobs->searching_count, memory_order_relaxed),
        (unsigned)count_queue(jobs, QUERN__QUEUE_HIGH), (unsigned)count_queue(jobs, QUERN__QUEUE_NORMAL),
        (unsigned)count_queue(jobs, QUERN__QUEUE_LOW), (unsigned)count_queue(jobs, QUERN__QUEUE_CALLER));
}

static void describe_worker(quern__printer *printer, const quern_jobs *jobs, const quern__worker *worker)
{
    int64_t top = atomic_load_explicit(&worker->deque.top, memory_order_relaxed);
    int64_t bottom = atomic_load_explicit(&worker->deque.bottom, memory_order_relaxed);
    const char *work = atomic_load_explicit(&worker->work_name, memory_order_relaxed);
    quern__print(printer,
                 "worker %u: %s%s%s%s; deque %lld to %lld; %u for it alone; parker %u; yielded %u times\n",
                 (unsigned)worker->index, state_of(jobs, worker), work != NULL ? ", in '" : "",
                 work != NULL ? work : "", work != NULL ? "'" : "", (long long)top, (long long)bottom,
                 (unsigned)atomic_load_explicit(&worker->assigned.count, memory_order_relaxed),
                 (unsigned)atomic_load_explicit(&worker->parker.state, memory_order_relaxed),
                 (unsigned)atomic_load_explicit(&worker->cpu_slot.yield_count, memory_order_relaxed));
}

static void describe_workers(quern__printer *printer, quern_jobs *jobs)
{
    if (!quern__jobs_begin_visit(jobs)) {
        quern__print(printer, "its workers are being replaced (quern_jobs_resize)\n");
        return;
    }
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        describe_worker(printer, jobs, &jobs->workers[index]);
    quern__jobs_end_visit(jobs);
}

quern_result quern_jobs_describe(const quern_jobs *jobs, quern_sink sink)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_describe", "jobs");
    quern_result result = quern__check_sink(sink, "quern_jobs_describe");
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    describe_pool(&printer, jobs);
    /* Cast: a visit increments visitor_count. */
    describe_workers(&printer, (quern_jobs *)(uintptr_t)jobs);
    return quern__printer_close(&printer, "quern_jobs_describe");
}
