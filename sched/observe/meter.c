/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/meter.h"

#include "sched/jobs/thread.h"

#include <math.h>
#include <string.h>

enum { EMPTY_READINGS = 16 };

/* ------------------------------------------------------------------------------------------ threads */

/* A number that no other thread has had: a worker's counters are of no use to the thread that is this
 * worker next. Relaxed: numbers only have to differ. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t latest;
    static _Thread_local uint64_t number;
    if (number == 0) number = atomic_fetch_add_explicit(&latest, 1, memory_order_relaxed) + 1;
    return number;
}

/* What two readings, one after the other, tell of as counted. */
static void measure_bias(const quern_hardware_source *source, quern__meter *meter)
{
    quern_hardware_reading from, to;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        meter->bias[i] = INFINITY;
    for (int i = 0; i < EMPTY_READINGS; i++) {
        if (!source->read(meter->counters, &from) || !source->read(meter->counters, &to)) break;
        for (int event = 0; event < QUERN_HARDWARE_EVENT_COUNT; event++) {
            const double count = quern_hardware_difference(&from, &to, (quern_hardware_event)event);
            if (count < meter->bias[event]) meter->bias[event] = count;
        }
    }
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (isinf(meter->bias[i])) meter->bias[i] = 0;
}

/* A thread that was refused is not asked again. */
static bool is_open(const quern__meters *meters, quern__meter *meter)
{
    if (meter->thread == this_thread()) return meter->counters != NULL;
    if (meter->counters != NULL) meters->source.close(meter->counters);
    meter->thread = this_thread();
    meter->counters = NULL;
    if (meters->source.open(meters->source.user_data, QUERN_HARDWARE_THREAD, &meter->counters) != QUERN_OK)
        meter->counters = NULL;
    if (meter->counters != NULL) measure_bias(&meters->source, meter);
    return meter->counters != NULL;
}

/* ----------------------------------------------------------------------------------------- counting */

void quern__meter_begin(const quern__meters *meters, uint32_t worker_index)
{
    quern__meter *meter = &meters->items[worker_index];
    meter->is_reading = is_open(meters, meter) && meters->source.read(meter->counters, &meter->last);
}

static void add_event(quern__meter *meter, quern__meter_sum *sum, const quern_hardware_reading *now,
                      int event, uint64_t took_ns)
{
    const double count = quern_hardware_difference(&meter->last, now, (quern_hardware_event)event);
    if (isnan(count)) return;
    sum->counts[event] += count > meter->bias[event] ? count - meter->bias[event] : 0;
    sum->covered_ns[event] += (double)took_ns;
}

void quern__meter_add(const quern__meters *meters, uint32_t worker_index, uint32_t system_index,
                      uint64_t took_ns)
{
    quern__meter *meter = &meters->items[worker_index];
    quern_hardware_reading now;
    if (!meter->is_reading) return;
    meter->is_reading = meters->source.read(meter->counters, &now);
    if (!meter->is_reading) return;
    for (int event = 0; event < QUERN_HARDWARE_EVENT_COUNT; event++)
        add_event(meter, &meter->sums[system_index], &now, event, took_ns);
    meter->last = now;
}

double quern__meters_rate(const quern__meters *meters, uint32_t system_index, quern_hardware_event event)
{
    double counts = 0, covered_ns = 0;
    for (uint32_t i = 0; i < meters->worker_count && system_index < meters->system_count; i++) {
        counts += meters->items[i].sums[system_index].counts[event];
        covered_ns += meters->items[i].sums[system_index].covered_ns[event];
    }
    return covered_ns > 0 ? counts / covered_ns : NAN;
}

/* ------------------------------------------------------------------------------------------- memory */

/* Meters, and behind them the sums of one worker after the other. */
static size_t block_bytes(uint32_t worker_count, uint32_t system_count)
{
    return worker_count * (sizeof(quern__meter) + system_count * sizeof(quern__meter_sum));
}

static void point_to_sums(quern__meter *meters, uint32_t worker_count, uint32_t system_count)
{
    quern__meter_sum *sums = (quern__meter_sum *)(void *)(meters + worker_count);
    for (uint32_t i = 0; i < worker_count; i++)
        meters[i].sums = sums + (size_t)i * system_count;
}

static void copy_meter(quern__meter *target, const quern__meter *source, uint32_t system_count)
{
    quern__meter_sum *sums = target->sums;
    memcpy(sums, source->sums, system_count * sizeof *sums);
    *target = *source;
    target->sums = sums;
}

static void release_block(const quern__meters *meters, const quern_allocator *allocator)
{
    quern__release(allocator, meters->items, block_bytes(meters->worker_count, meters->system_count),
                   _Alignof(quern__meter));
}

quern_result quern__meters_reserve(quern__meters *meters, uint32_t worker_count, uint32_t system_count,
                                   const quern_allocator *allocator)
{
    if (!meters->is_on) return QUERN_OK;
    if (worker_count <= meters->worker_count && system_count <= meters->system_count) return QUERN_OK;
    if (worker_count < meters->worker_count) worker_count = meters->worker_count;
    const size_t bytes = block_bytes(worker_count, system_count);
    quern__meter *items = quern__allocate(allocator, bytes, _Alignof(quern__meter));
    if (items == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the counts of %u systems",
                           system_count);
    memset((void *)items, 0, bytes);
    point_to_sums(items, worker_count, system_count);
    for (uint32_t i = 0; i < meters->worker_count; i++)
        copy_meter(&items[i], &meters->items[i], meters->system_count);
    release_block(meters, allocator);
    meters->items = items;
    meters->worker_count = worker_count;
    meters->system_count = system_count;
    return QUERN_OK;
}

void quern__meters_forget(quern__meters *meters)
{
    for (uint32_t i = 0; i < meters->worker_count; i++)
        memset((void *)meters->items[i].sums, 0, meters->system_count * sizeof(quern__meter_sum));
}

void quern__meters_release(quern__meters *meters, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < meters->worker_count; i++)
        if (meters->items[i].counters != NULL) meters->source.close(meters->items[i].counters);
    release_block(meters, allocator);
    *meters = (quern__meters){0};
}

/* The time of a reading, or 0 when they cannot be read. */
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

/* Tried on this thread, so that a refusal comes here and not in a frame. */
quern_result quern__meters_start(quern__meters *meters, const quern_hardware_source *source,
                                 const quern_allocator *allocator)
{
    void *counters;
    const quern_result result = source->open(source->user_data, QUERN_HARDWARE_THREAD, &counters);
    if (result != QUERN_OK) return result;
    const uint64_t read_ns = time_reading(source, counters);
    source->close(counters);
    if (read_ns == 0)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "quern_schedule_set_counting: hardware counters are not available: they cannot be "
            "read");
    quern__meters_release(meters, allocator);
    *meters = (quern__meters){.is_on = true, .source = *source, .read_ns = read_ns};
    return QUERN_OK;
}
