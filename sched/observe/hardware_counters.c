/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/hardware_counters.h"

#include "core/platform/platform.h"

#include <math.h>
#include <string.h>

enum { EMPTY_READINGS = 16 };

/* ------------------------------------------------------------------------------------------ threads */

QUERN__THREAD_LOCAL(uint64_t, quern__number_of_thread);

/* Returns a number that is unique to the calling thread. Counters belong to a thread: they are useless to
 * the next thread with the same worker index. Relaxed: the numbers only have to differ. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t latest;
    uint64_t *number = &QUERN__OF_THREAD(quern__number_of_thread);
    if (*number == 0) *number = atomic_fetch_add_explicit(&latest, 1, memory_order_relaxed) + 1;
    return *number;
}

/* Measures the events that two consecutive readings count. */
static void measure_bias(const quern_hardware_source *source, quern__worker_hardware_counters *worker)
{
    quern_hardware_reading from, to;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        worker->bias[i] = INFINITY;
    for (int i = 0; i < EMPTY_READINGS; i++) {
        if (!source->read(worker->counters, &from) || !source->read(worker->counters, &to)) break;
        for (int event = 0; event < QUERN_HARDWARE_EVENT_COUNT; event++) {
            const double count = quern_hardware_difference(&from, &to, (quern_hardware_event)event);
            if (count < worker->bias[event]) worker->bias[event] = count;
        }
    }
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (isinf(worker->bias[i])) worker->bias[i] = 0;
}

/* Returns whether the worker's counters are open for the calling thread; opens them first if the worker has changed
 * threads. Does not retry on a thread that could not open them. */
static bool is_open(const quern__hardware_counters *counters, quern__worker_hardware_counters *worker)
{
    if (worker->thread == this_thread()) return worker->counters != NULL;
    if (worker->counters != NULL) counters->source.close(worker->counters);
    worker->thread = this_thread();
    worker->counters = NULL;
    if (counters->source.open(counters->source.user_data, QUERN_HARDWARE_THREAD, &worker->counters) !=
        QUERN_OK)
        worker->counters = NULL;
    if (worker->counters != NULL) measure_bias(&counters->source, worker);
    return worker->counters != NULL;
}

/* ----------------------------------------------------------------------------------------- counting */

void quern__hardware_counters_begin(const quern__hardware_counters *counters, uint32_t worker_index)
{
    quern__worker_hardware_counters *worker = &counters->items[worker_index];
    worker->is_reading =
        is_open(counters, worker) && counters->source.read(worker->counters, &worker->last);
}

static void add_event(quern__worker_hardware_counters *worker, quern__hardware_count_sum *sum,
                      const quern_hardware_reading *now, int event, uint64_t took_ns)
{
    const double count = quern_hardware_difference(&worker->last, now, (quern_hardware_event)event);
    if (isnan(count)) return;
    sum->counts[event] += count > worker->bias[event] ? count - worker->bias[event] : 0;
    sum->covered_ns[event] += (double)took_ns;
}

void quern__hardware_counters_add(const quern__hardware_counters *counters, uint32_t worker_index,
                                  uint32_t system_index, uint64_t took_ns)
{
    quern__worker_hardware_counters *worker = &counters->items[worker_index];
    quern_hardware_reading now;
    if (!worker->is_reading) return;
    worker->is_reading = counters->source.read(worker->counters, &now);
    if (!worker->is_reading) return;
    for (int event = 0; event < QUERN_HARDWARE_EVENT_COUNT; event++)
        add_event(worker, &worker->sums[system_index], &now, event, took_ns);
    worker->last = now;
}

double quern__hardware_counters_rate(const quern__hardware_counters *counters, uint32_t system_index,
                                     quern_hardware_event event)
{
    double counts = 0, covered_ns = 0;
    for (uint32_t i = 0; i < counters->worker_count && system_index < counters->system_count; i++) {
        counts += counters->items[i].sums[system_index].counts[event];
        covered_ns += counters->items[i].sums[system_index].covered_ns[event];
    }
    return covered_ns > 0 ? counts / covered_ns : NAN;
}

/* ------------------------------------------------------------------------------------------- memory */

/* The block has the workers, followed by the sums of each worker. */
static size_t block_bytes(uint32_t worker_count, uint32_t system_count)
{
    return worker_count *
           (sizeof(quern__worker_hardware_counters) + system_count * sizeof(quern__hardware_count_sum));
}

static void point_to_sums(quern__worker_hardware_counters *counters, uint32_t worker_count,
                          uint32_t system_count)
{
    quern__hardware_count_sum *sums = (quern__hardware_count_sum *)(void *)(counters + worker_count);
    for (uint32_t i = 0; i < worker_count; i++)
        counters[i].sums = sums + (size_t)i * system_count;
}

static void copy_worker(quern__worker_hardware_counters *target,
                        const quern__worker_hardware_counters *source, uint32_t system_count)
{
    quern__hardware_count_sum *sums = target->sums;
    memcpy(sums, source->sums, system_count * sizeof *sums);
    *target = *source;
    target->sums = sums;
}

static void release_block(const quern__hardware_counters *counters, const quern_allocator *allocator)
{
    quern__release(allocator, counters->items, block_bytes(counters->worker_count, counters->system_count),
                   _Alignof(quern__worker_hardware_counters));
}

quern_result quern__hardware_counters_reserve(quern__hardware_counters *counters, uint32_t worker_count,
                                              uint32_t system_count, const quern_allocator *allocator)
{
    if (!counters->is_on) return QUERN_OK;
    if (worker_count <= counters->worker_count && system_count <= counters->system_count) return QUERN_OK;
    if (worker_count < counters->worker_count) worker_count = counters->worker_count;
    const size_t bytes = block_bytes(worker_count, system_count);
    quern__worker_hardware_counters *items =
        quern__allocate(allocator, bytes, _Alignof(quern__worker_hardware_counters));
    if (items == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for the counts of %u systems",
                           system_count);
    memset((void *)items, 0, bytes);
    point_to_sums(items, worker_count, system_count);
    for (uint32_t i = 0; i < counters->worker_count; i++)
        copy_worker(&items[i], &counters->items[i], counters->system_count);
    release_block(counters, allocator);
    counters->items = items;
    counters->worker_count = worker_count;
    counters->system_count = system_count;
    return QUERN_OK;
}

void quern__hardware_counters_reset(quern__hardware_counters *counters)
{
    for (uint32_t i = 0; i < counters->worker_count; i++)
        memset((void *)counters->items[i].sums, 0,
               counters->system_count * sizeof(quern__hardware_count_sum));
}

void quern__hardware_counters_release(quern__hardware_counters *counters, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < counters->worker_count; i++)
        if (counters->items[i].counters != NULL) counters->source.close(counters->items[i].counters);
    release_block(counters, allocator);
    *counters = (quern__hardware_counters){0};
}

/* Returns the duration of a reading, or 0 if the counters cannot be read. */
static uint64_t time_reading(const quern_hardware_source *source, void *counters)
{
    quern_hardware_reading reading;
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < EMPTY_READINGS; i++) {
        const uint64_t start_ns = quern__clock_ns();
        if (!source->read(counters, &reading)) return 0;
        const uint64_t took_ns = quern__clock_ns() - start_ns;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    return least_ns + 1;
}

/* Tries the source on this thread, so that an error is reported here and not in a frame. */
quern_result quern__hardware_counters_start(quern__hardware_counters *counters,
                                            const quern_hardware_source *source,
                                            const quern_allocator *allocator)
{
    void *opened;
    const quern_result result = source->open(source->user_data, QUERN_HARDWARE_THREAD, &opened);
    if (result != QUERN_OK) return quern__in_call(result, "quern_schedule_set_counting");
    const uint64_t read_ns = time_reading(source, opened);
    source->close(opened);
    if (read_ns == 0)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "quern_schedule_set_counting: hardware counters are not available: they cannot be "
            "read");
    quern__hardware_counters_release(counters, allocator);
    *counters = (quern__hardware_counters){.is_on = true, .source = *source, .read_ns = read_ns};
    return QUERN_OK;
}
