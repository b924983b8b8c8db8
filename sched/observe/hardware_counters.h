/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_HARDWARE_COUNTERS_H
#define QUERN_SCHED_OBSERVE_HARDWARE_COUNTERS_H

/* Hardware counters in a profile. Each worker reads the counters of its own thread before and after the
 * calls that the profiler samples (profile_internal.h).
 *
 * The result is a rate: events divided by the time during which they were counted. The system may multiplex
 * counters, so an event may be counted in some samples only, and a system is sampled for part of its time
 * only. The profile reports the rate multiplied by the system's time. */

#include "core/base/base_internal.h"
#include "sched/jobs/atomic.h"

#include <quern/hardware.h>

/* Sums of one system on one worker. */
typedef struct quern__hardware_count_sum {
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    double covered_ns[QUERN_HARDWARE_EVENT_COUNT]; /* time during which the event was counted */
} quern__hardware_count_sum;

/* Hardware counters of one worker. */
typedef struct quern__worker_hardware_counters {
    _Alignas(QUERN__APART_BYTES) void *counters; /* NULL if not open */
    /* Number of the thread that opened the counters; 0: none. */
    uint64_t thread;
    bool is_reading; /* whether `last` is the reading before the current call */
    quern_hardware_reading last;
    double bias[QUERN_HARDWARE_EVENT_COUNT]; /* events that the two readings add to a difference */
    quern__hardware_count_sum *sums;         /* indexed by system */
} quern__worker_hardware_counters;

/* Hardware counters of a schedule. If all members are zero, nothing is counted. */
typedef struct quern__hardware_counters {
    bool is_on;
    quern_hardware_source source;
    uint64_t read_ns;                       /* duration of one reading */
    quern__worker_hardware_counters *items; /* one per worker */
    uint32_t worker_count;
    uint32_t system_count; /* number of sums per worker */
} quern__hardware_counters;

/* Starts counting with a source; all sums start at 0. Errors: those of the source; then nothing has
 * changed. */
quern_result quern__hardware_counters_start(quern__hardware_counters *counters,
                                            const quern_hardware_source *source,
                                            const quern_allocator *allocator);

/* Reserves memory for this number of workers and systems; keeps the sums. Errors: OUT_OF_MEMORY. */
quern_result quern__hardware_counters_reserve(quern__hardware_counters *counters, uint32_t worker_count,
                                              uint32_t system_count, const quern_allocator *allocator);

void quern__hardware_counters_reset(quern__hardware_counters *counters);

/* Stops counting and frees the memory. */
void quern__hardware_counters_release(quern__hardware_counters *counters, const quern_allocator *allocator);

/* Called by the worker: begin before a sequence of calls, add after each call of a system, which is also
 * before the next one. took_ns is the duration of the call. Nothing is counted on a thread that cannot open
 * counters. */
void quern__hardware_counters_begin(const quern__hardware_counters *counters, uint32_t worker_index);
void quern__hardware_counters_add(const quern__hardware_counters *counters, uint32_t worker_index,
                                  uint32_t system_index, uint64_t took_ns);

/* Returns the events of the system per nanosecond; NAN if unknown. */
double quern__hardware_counters_rate(const quern__hardware_counters *counters, uint32_t system_index,
                                     quern_hardware_event event);

#endif
