/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_COUNTERS_H
#define QUERN_BENCH_HARNESS_COUNTERS_H

/* Hardware counters (<quern/hardware.h>) around a piece of work, of all threads of the process. */

#include <stdbool.h>

#include <quern/hardware.h>

/* As in JSON, such as "l1_misses". */
extern const char *const quern__bench_counter_keys[QUERN_HARDWARE_EVENT_COUNT];

typedef struct quern__bench_counters {
    const quern_hardware_source *source;
    void *opened; /* NULL: not available */
    bool is_counting;
    quern_hardware_reading started;
    double totals[QUERN_HARDWARE_EVENT_COUNT]; /* NAN: not available */
} quern__bench_counters;

/* Threads that are started afterwards are counted as well; so open them before the subject. */
void quern__bench_counters_open(quern__bench_counters *counters, const quern_hardware_source *source);
void quern__bench_counters_close(quern__bench_counters *counters);

/* What happens between start and stop is added to totals. */
void quern__bench_counters_reset(quern__bench_counters *counters);
void quern__bench_counters_start(quern__bench_counters *counters);
void quern__bench_counters_stop(quern__bench_counters *counters);

/* True when at least one event can be counted. Otherwise quern_error_message says why not. */
bool quern__bench_counters_available(const quern_hardware_source *source);

#endif
