/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_COUNTERS_H
#define QUERN_BENCH_HARNESS_COUNTERS_H

/* Counters of the processor around a piece of work, of all threads of the process, where the system allows it (Linux,
 * perf_event_open). Each event is opened by itself, so one that the processor lacks takes no other with it. The
 * processor has fewer counters than there are events; the system then takes turns, and counts are scaled up by the
 * part of the time in which an event had its turn. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum quern__bench_counter {
    QUERN__BENCH_CYCLES,
    QUERN__BENCH_INSTRUCTIONS,
    QUERN__BENCH_L1_MISSES,  /* reads that the first-level data cache does not have */
    QUERN__BENCH_L2_MISSES,  /* reads that come as far as the last level */
    QUERN__BENCH_LLC_MISSES, /* reads that the last level does not have */
    QUERN__BENCH_TLB_MISSES, /* reads whose page the data TLB does not know */
    QUERN__BENCH_COUNTER_COUNT
} quern__bench_counter;

/* As in JSON, such as "l1_misses"; and for people, such as "L1 misses". */
extern const char *const quern__bench_counter_keys[QUERN__BENCH_COUNTER_COUNT];
extern const char *const quern__bench_counter_titles[QUERN__BENCH_COUNTER_COUNT];

typedef struct quern__bench_reading {
    uint64_t value;
    uint64_t enabled_ns; /* for which the event was switched on */
    uint64_t running_ns; /* for which it was counted in fact */
} quern__bench_reading;

/* Where counts come from; the tests bring their own. open returns a handle of 0 or more, or a negative error
 * number; read returns false when nothing could be read. */
typedef struct quern__bench_counter_source {
    int (*open)(quern__bench_counter counter);
    void (*enable)(int handle, bool enabled);
    bool (*read)(int handle, quern__bench_reading *reading);
    void (*close)(int handle);
} quern__bench_counter_source;

/* The system's. */
extern const quern__bench_counter_source quern__bench_system_counters;

typedef struct quern__bench_counters {
    const quern__bench_counter_source *source;
    int handles[QUERN__BENCH_COUNTER_COUNT]; /* negative: not available */
    quern__bench_reading started[QUERN__BENCH_COUNTER_COUNT];
    double totals[QUERN__BENCH_COUNTER_COUNT]; /* NAN: not available */
} quern__bench_counters;

/* Threads that are started afterwards are counted as well; so open them before the subject. */
void quern__bench_counters_open(quern__bench_counters *counters, const quern__bench_counter_source *source);
void quern__bench_counters_close(quern__bench_counters *counters);

/* What happens between start and stop is added to totals. */
void quern__bench_counters_reset(quern__bench_counters *counters);
void quern__bench_counters_start(quern__bench_counters *counters);
void quern__bench_counters_stop(quern__bench_counters *counters);

/* True when at least one event can be counted. Otherwise writes one line that says why not. */
bool quern__bench_counters_available(const quern__bench_counter_source *source, char *reason,
                                     size_t reason_bytes);

#endif
