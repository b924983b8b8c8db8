/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_COUNTERS_H
#define QUERN_SCHED_OBSERVE_COUNTERS_H

/* Hardware counters in a profile: read before and after the calls that are sampled anyway (profile_internal.h), by
 * each worker for its own thread.
 *
 * What is found is a rate, events by the time in which they were counted: an event may have had its turn in
 * some samples and not in others, and each system is sampled for a part of its time alone. The rate times
 * what the system takes is what the profile tells. */

#include "core/base/base_internal.h"
#include "sched/jobs/atomic.h"

#include <quern/hardware.h>

/* What was counted of a system. */
typedef struct quern__count_sum {
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    double covered_ns[QUERN_HARDWARE_EVENT_COUNT]; /* in which they were counted */
} quern__count_sum;

/* Of a worker. */
typedef struct quern__worker_counters {
    _Alignas(QUERN__APART_BYTES) void *counters; /* NULL: not open */
    uint64_t thread;                             /* whose they are; 0: nobody's yet */
    bool is_reading;                             /* last is the reading before the call that runs */
    quern_hardware_reading last;
    double bias[QUERN_HARDWARE_EVENT_COUNT]; /* what reading itself adds to a difference */
    quern__count_sum *sums;                  /* by the index of the system */
} quern__worker_counters;

/* Of a schedule. Zeroed, it does not count. */
typedef struct quern__counters {
    bool is_on;
    quern_hardware_source source;
    uint64_t read_ns;              /* what one reading takes */
    quern__worker_counters *items; /* one per worker */
    uint32_t worker_count;
    uint32_t system_count; /* sums of each */
} quern__counters;

/* Begins to count with a source, from nothing. Errors: the source's; then nothing is changed. */
quern_result quern__counters_start(quern__counters *counters, const quern_hardware_source *source,
                                   const quern_allocator *allocator);

/* Makes room for so many workers and systems, keeping what was counted. Errors: OUT_OF_MEMORY. */
quern_result quern__counters_reserve(quern__counters *counters, uint32_t worker_count,
                                     uint32_t system_count, const quern_allocator *allocator);

void quern__counters_forget(quern__counters *counters);

/* Counts no more. */
void quern__counters_release(quern__counters *counters, const quern_allocator *allocator);

/* By the worker: before a row of calls; after a call of the system, which took so long, and before the next
 * one. A thread that is refused counters has nothing counted. */
void quern__counters_begin(const quern__counters *counters, uint32_t worker_index);
void quern__counters_add(const quern__counters *counters, uint32_t worker_index, uint32_t system_index,
                         uint64_t took_ns);

/* Events of the system by nanosecond; NAN: not known. */
double quern__counters_rate(const quern__counters *counters, uint32_t system_index,
                            quern_hardware_event event);

#endif
