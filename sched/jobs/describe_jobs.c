/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include "core/base/text.h"

/* Times and events that a pool reports about its workers.
 *
 *     busy           |  idle                                |  busy
 *        finds no job|spins      |sleeps              |woken|finds a job
 *
 * Each worker writes its own times. A thread that reads them at the moment when a period begins or ends
 * may count that period twice or not at all. Only the figures of one frame depend on it, so relaxed order
 * is enough. */

static uint64_t read_time(const _Atomic uint64_t *time_ns)
{
    return atomic_load_explicit(time_ns, memory_order_relaxed);
}

static void set_time(_Atomic uint64_t *time_ns, uint64_t value_ns)
{
    atomic_store_explicit(time_ns, value_ns, memory_order_relaxed);
}

static uint64_t time_at(const _Atomic uint64_t *sum_ns, const _Atomic uint64_t *since_ns, uint64_t now_ns)
{
    const uint64_t begun_ns = read_time(since_ns);
    const uint64_t known_ns = read_time(sum_ns);
    return begun_ns != 0 && begun_ns < now_ns ? known_ns + now_ns - begun_ns : known_ns;
}

/* ----------------------------------------------------------------------------------------------- times */

void quern__worker_begin_idle_time(quern__worker *worker, uint64_t now_ns)
{
    if (read_time(&worker->times.idle_since_ns) == 0) set_time(&worker->times.idle_since_ns, now_ns);
}

/* Ends the current idle time and adds it to idle_ns. Reads the clock and adds only if a profiler reads idle
 * times. */
void quern__worker_end_idle_time(quern__worker *worker)
{
    quern__worker_times *times = &worker->times;
    if (atomic_load_explicit(&worker->jobs->idle_time_reader, memory_order_relaxed) != NULL)
        set_time(&times->idle_ns, time_at(&times->idle_ns, &times->idle_since_ns, quern__clock_ns()));
    set_time(&times->idle_since_ns, 0);
    quern__worker_publish_processor(worker);
}

uint64_t quern__worker_idle_ns(const quern__worker *worker, uint64_t now_ns)
{
    return time_at(&worker->times.idle_ns, &worker->times.idle_since_ns, now_ns);
}

void quern__worker_begin_sleep_time(quern__worker *worker)
{
    set_time(&worker->times.asleep_since_ns, quern__clock_ns());
}

uint64_t quern__worker_end_sleep_time(quern__worker *worker)
{
    quern__worker_times *times = &worker->times;
    const uint64_t since_ns = read_time(&times->asleep_since_ns);
    const uint64_t slept_ns = time_at(&times->sleep_ns, &times->asleep_since_ns, quern__clock_ns());
    set_time(&times->asleep_since_ns, 0);
    set_time(&times->sleep_ns, slept_ns);
    return since_ns;
}

uint64_t quern__worker_sleep_ns(const quern__worker *worker, uint64_t now_ns)
{
    return time_at(&worker->times.sleep_ns, &worker->times.asleep_since_ns, now_ns);
}

void quern__worker_park(quern__worker *worker, uint64_t until_ns)
{
    quern__worker_begin_sleep_time(worker);
    quern__parker_take_until(&worker->parker, until_ns);
    quern__worker_report_event(worker, QUERN__JOB_EVENT_SLEEP, quern__worker_end_sleep_time(worker), 0);
}

/* -------------------------------------------------------------------------------------------- observer */

void quern__worker_report_event(const quern__worker *worker, quern__job_event event, uint64_t start_ns,
                                uint32_t count)
{
    quern__observer *observer = worker->jobs->observer;
    if (quern__observer_is_recording(observer))
        observer->report(observer, worker->index, event, NULL, start_ns, count);
}

/* -------------------------------------------------------------------------------------- named work */

/* Relaxed: the worker alone writes the name, and readers need only a recent value. */
quern__named_work quern__worker_publish_name(quern__worker *worker, const char *name)
{
    const quern__named_work work = {.name = name,
                                    .outer = atomic_load_explicit(&worker->work_name, memory_order_relaxed),
                                    .start_ns = quern__worker_event_start(worker)};
    atomic_store_explicit(&worker->work_name, name, memory_order_relaxed);
    return work;
}

/* Relaxed: see quern__worker_publish_name. */
void quern__worker_retract_name(quern__worker *worker, const quern__named_work *work)
{
    quern__observer *observer = worker->jobs->observer;
    atomic_store_explicit(&worker->work_name, work->outer, memory_order_relaxed);
    if (work->start_ns != 0 && quern__observer_is_recording(observer))
        observer->report(observer, worker->index, QUERN__JOB_EVENT_NAMED, work->name, work->start_ns, 0);
}

/* --------------------------------------------------------------------------------- description of a pool */

/* Description of a pool as text, while it runs: all loads are relaxed and give approximate values. */

static bool has_bit(const quern__worker_mask *mask, uint32_t index)
{
    return (atomic_load_explicit(&mask->words[index / 64], memory_order_relaxed) >> (index % 64) & 1) != 0;
}

static const char *state_of(const quern_jobs *jobs, const quern__worker *worker)
{
    const uint32_t slot = quern__worker_is_external(worker) ? quern__worker_external_slot(worker) : 0;
    if (quern__worker_is_external(worker) &&
        (atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) >> slot & 1) == 0)
        return quern__jobs_is_slot_registered(jobs, slot) ? "outside, registered" : "outside";
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

static void describe_workers(quern__printer *printer, quern_jobs *jobs)
{
    if (!quern__jobs_begin_visit(jobs)) {
        quern__print(printer, "its workers are being replaced (quern_jobs_resize)\n");
        return;
    }
    for (uint32_t index = 0; index < jobs->worker_count; index++) {
        const quern__worker *worker = &jobs->workers[index];
        int64_t top = atomic_load_explicit(&worker->deque.top, memory_order_relaxed);
        int64_t bottom = atomic_load_explicit(&worker->deque.bottom, memory_order_relaxed);
        const char *work = atomic_load_explicit(&worker->work_name, memory_order_relaxed);
        quern__print(
            printer,
            "worker %u: %s%s%s%s; deque %lld to %lld; %u for it alone; parker %u; yielded %u times\n",
            (unsigned)worker->index, state_of(jobs, worker), work != NULL ? ", in '" : "",
            work != NULL ? work : "", work != NULL ? "'" : "", (long long)top, (long long)bottom,
            (unsigned)atomic_load_explicit(&worker->assigned.count, memory_order_relaxed),
            (unsigned)atomic_load_explicit(&worker->parker.state, memory_order_relaxed),
            (unsigned)atomic_load_explicit(&worker->cpu_slot.yield_count, memory_order_relaxed));
    }
    quern__jobs_end_visit(jobs);
}

quern_result quern_jobs_describe(const quern_jobs *jobs, quern_sink sink)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_describe", "jobs");
    quern_result result = quern__check_sink(sink, "quern_jobs_describe");
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    const uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    quern__print(
        &printer,
        "pool '%s': %u threads, %u of %u external threads inside, %u searching; queued: %u high, %u "
        "normal, %u low, "
        "%u for the caller\n",
        jobs->name, (unsigned)quern_jobs_thread_count(jobs), (unsigned)quern__count_bits_32(inside),
        (unsigned)jobs->external_count,
        (unsigned)atomic_load_explicit(&jobs->searching_count, memory_order_relaxed),
        (unsigned)count_queue(jobs, QUERN__QUEUE_HIGH), (unsigned)count_queue(jobs, QUERN__QUEUE_NORMAL),
        (unsigned)count_queue(jobs, QUERN__QUEUE_LOW), (unsigned)count_queue(jobs, QUERN__QUEUE_CALLER));
    /* Cast: a visit increments visitor_count. */
    describe_workers(&printer, (quern_jobs *)(uintptr_t)jobs);
    return quern__printer_close(&printer, "quern_jobs_describe");
}
