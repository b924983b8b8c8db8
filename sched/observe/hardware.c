/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/profile_internal.h"

#include "core/base/base_internal.h"
#include "core/platform/platform.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Hardware counters: the counts of each worker in a profile, and the counters of the operating system. */

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

void quern__hardware_counters_add(const quern__hardware_counters *counters, uint32_t worker_index,
                                  uint32_t system_index, uint64_t took_ns)
{
    quern__worker_hardware_counters *worker = &counters->items[worker_index];
    quern_hardware_reading now;
    if (!worker->is_reading) return;
    worker->is_reading = counters->source.read(worker->counters, &now);
    if (!worker->is_reading) return;
    quern__hardware_count_sum *sum = &worker->sums[system_index];
    for (int event = 0; event < QUERN_HARDWARE_EVENT_COUNT; event++) {
        const double count = quern_hardware_difference(&worker->last, &now, (quern_hardware_event)event);
        if (isnan(count)) continue;
        sum->counts[event] += count > worker->bias[event] ? count - worker->bias[event] : 0;
        sum->covered_ns[event] += (double)took_ns;
    }
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
    quern__hardware_count_sum *sums = (quern__hardware_count_sum *)(void *)(items + worker_count);
    for (uint32_t i = 0; i < worker_count; i++)
        items[i].sums = sums + (size_t)i * system_count;
    for (uint32_t i = 0; i < counters->worker_count; i++) {
        quern__hardware_count_sum *copied = items[i].sums;
        memcpy(copied, counters->items[i].sums, counters->system_count * sizeof *copied);
        items[i] = counters->items[i];
        items[i].sums = copied;
    }
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

void quern__hardware_counters_forget(quern__hardware_counters *counters, uint32_t system_index)
{
    for (uint32_t i = 0; i < counters->worker_count && system_index < counters->system_count; i++)
        counters->items[i].sums[system_index] = (quern__hardware_count_sum){0};
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

const char *quern_hardware_event_string(quern_hardware_event event)
{
    static const char *const names[QUERN_HARDWARE_EVENT_COUNT] = {
        [QUERN_HARDWARE_CYCLES] = "cycles",         [QUERN_HARDWARE_INSTRUCTIONS] = "instructions",
        [QUERN_HARDWARE_L1_MISSES] = "L1 misses",   [QUERN_HARDWARE_L2_MISSES] = "L2 misses",
        [QUERN_HARDWARE_LLC_MISSES] = "LLC misses", [QUERN_HARDWARE_TLB_MISSES] = "TLB misses",
    };
    return (unsigned)event < QUERN_HARDWARE_EVENT_COUNT ? names[event] : "unknown event";
}

double quern_hardware_difference(const quern_hardware_reading *from, const quern_hardware_reading *to,
                                 quern_hardware_event event)
{
    if (from == NULL || to == NULL || (unsigned)event >= QUERN_HARDWARE_EVENT_COUNT) {
        (void)quern__fail(from != NULL && to != NULL ? QUERN_ERROR_INVALID_ARGUMENT
                                                     : QUERN_ERROR_NULL_ARGUMENT,
                          "quern_hardware_difference: %s",
                          from == NULL ? "'from' is NULL"
                          : to == NULL ? "'to' is NULL"
                                       : "'event' is no quern_hardware_event");
        return NAN;
    }
    const uint64_t running_ns = to->running_ns[event] - from->running_ns[event];
    const uint64_t enabled_ns = to->enabled_ns[event] - from->enabled_ns[event];
    if (running_ns == 0) return NAN;
    return (double)(to->counts[event] - from->counts[event]) * (double)enabled_ns / (double)running_ns;
}

/* ------------------------------------------------------------------------------------------ counters */

/* Each event is opened separately, not in a group: the system counts a group completely or not at all, and
 * may reserve one of the few counters for itself. */
typedef struct counters {
    int files[QUERN_HARDWARE_EVENT_COUNT]; /* negative if not available */
} counters;

static quern_result refuse(int error)
{
    const char *why = strerror(error);
    if (error == EACCES || error == EPERM)
        why = "the system does not allow it (see /proc/sys/kernel/perf_event_paranoid)";
    else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
        why = "this processor, or the virtual machine, has none";
    else if (error == ENOSYS)
        why = "this system has no perf_event_open";
    return quern__fail(QUERN_ERROR_UNAVAILABLE, "hardware counters are not available: %s", why);
}

static void close_counters(void *opened)
{
    counters *closed = opened;
    const quern_allocator allocator = quern_allocator_default();
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (closed->files[i] >= 0) quern__hardware_counter_close(closed->files[i]);
    quern__release(&allocator, closed, sizeof *closed, _Alignof(counters));
}

quern_result quern__hardware_open(const quern__hardware_code *codes, quern_hardware_scope scope,
                                  void **out_counters)
{
    const quern_allocator allocator = quern_allocator_default();
    counters *opened = quern__allocate(&allocator, sizeof *opened, _Alignof(counters));
    if (opened == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for hardware counters");
    int first_error = 0, count = 0;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++) {
        opened->files[i] = quern__hardware_counter_open(&codes[i], scope);
        count += opened->files[i] >= 0;
        if (opened->files[i] < 0 && first_error == 0) first_error = -opened->files[i];
    }
    if (count == 0) {
        close_counters(opened);
        return refuse(first_error);
    }
    *out_counters = opened;
    return QUERN_OK;
}

static bool read_counters(void *opened, quern_hardware_reading *out_reading)
{
    const counters *from = opened;
    *out_reading = (quern_hardware_reading){0};
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (from->files[i] >= 0 && !quern__hardware_counter_read(from->files[i], out_reading, i))
            return false;
    return true;
}

static quern_result open_system(void *user_data, quern_hardware_scope scope, void **out_counters)
{
    (void)user_data;
    return quern__hardware_open(quern__hardware_codes, scope, out_counters);
}

quern_hardware_source quern_hardware_source_default(void)
{
    return (quern_hardware_source){.open = open_system, .read = read_counters, .close = close_counters};
}
