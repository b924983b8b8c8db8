/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_COUNTERS_H
#define QUERN_BENCH_HARNESS_COUNTERS_H

/* Counts hardware events (<quern/hardware.h>) of all threads of the process during a piece of work. */

#include <stdbool.h>

#include <quern/hardware.h>

/* Names of the events in JSON, such as "l1_misses". */
extern const char *const quern__bench_counter_keys[QUERN_HARDWARE_EVENT_COUNT];

typedef struct quern__bench_counters {
    const quern_hardware_source *source;
    void *opened; /* handle of the source; NULL: no event can be counted */
    bool is_counting;
    quern_hardware_reading started;            /* reading at the last start */
    double totals[QUERN_HARDWARE_EVENT_COUNT]; /* events since the reset; NAN: not available */
} quern__bench_counters;

/* Opens the counters. The calling thread and all threads that it starts afterwards are counted, so open the
 * counters before the subject, which starts threads. */
void quern__bench_counters_open(quern__bench_counters *counters, const quern_hardware_source *source);
void quern__bench_counters_close(quern__bench_counters *counters);

/* Reset sets the totals to 0. Stop adds the events since the last start to the totals. */
void quern__bench_counters_reset(quern__bench_counters *counters);
void quern__bench_counters_start(quern__bench_counters *counters);
void quern__bench_counters_stop(quern__bench_counters *counters);

/* Returns whether at least one event can be counted. If not, quern_error_message has the cause. */
bool quern__bench_counters_available(const quern_hardware_source *source);

#endif
