/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MACHINE_H
#define QUERN_BENCH_HARNESS_MACHINE_H

/* The machine: its description and that of the build of the measured code, without which figures mean nothing; the
 * processors that threads may use, and how busy they are; and its hardware counters. */

#include <stdbool.h>
#include <stdint.h>

#include <quern/hardware.h>

#include "bench/harness/base.h"

/* -------------------------------------------------------------------------------------- description */

/* Describes the machine and the build of the measured code. Figures mean nothing without them. */

enum { QUERN__BENCH_MAX_CACHES = 8 };

enum { QUERN__BENCH_CACHE_TEXT_BYTES = 16 };

typedef struct quern__bench_cache {
    char name[QUERN__BENCH_CACHE_TEXT_BYTES];   /* "own" or "shared"; "L2" from files of older versions */
    char source[QUERN__BENCH_CACHE_TEXT_BYTES]; /* where the size is from, such as "sysconf"; may be "" */
    uint64_t bytes; /* size of the cache that one processor uses, also if it shares the cache */
} quern__bench_cache;

/* The texts are owned and never NULL. An unknown text is "unknown", an unknown number 0. */
typedef struct quern__bench_machine {
    char *processor;                                    /* model of the processor */
    uint32_t processor_count;                           /* processors that this process may use */
    quern__bench_cache caches[QUERN__BENCH_MAX_CACHES]; /* those that quern_processor_caches returns */
    uint32_t cache_count;
    uint64_t memory_bytes;
    char *system;   /* name and version of the operating system's kernel */
    char *compiler; /* compiler, flags and commit of the measured code */
    char *flags;
    char *version; /* version of quern */
    char *commit;
    char *date;  /* UTC, as 2026-01-31T12:00:00Z */
    bool checks; /* whether quern was built with QUERN_CHECKS, which makes it slower */
} quern__bench_machine;

/* Describes this machine at the current time. */
quern__bench_machine quern__bench_machine_describe(const quern_bench_suite *suite);

/* Frees the texts. `machine` may be all zero. */
void quern__bench_machine_close(quern__bench_machine *machine);

/* Formats a size with a binary unit: 1536 becomes "1.5 KiB". */
enum { QUERN__BENCH_SIZE_TEXT_BYTES = 32 };
void quern__bench_format_bytes(char text[QUERN__BENCH_SIZE_TEXT_BYTES], uint64_t bytes);

/* --------------------------------------------------------------------------------------- processors */

/* Restricts this thread, and the threads that it starts from now on, to the first processor_count
 * processors of those that it could use before it was pinned. Returns false, and changes nothing, if there
 * are fewer processors or the system has no such call. Only one thread may call these functions. */
bool quern__bench_pin(uint32_t processor_count);

/* Lets this thread use all processors again that it could use before it was pinned. */
void quern__bench_unpin(void);

/* -------------------------------------------------------------------------------------------- crowd */

enum { QUERN__BENCH_MAX_CROWD = 1000 };

/* Threads that compute without end, as other programs do on a busy machine. */

/* Starts this many. They may use the processors that the calling thread may use now. Returns false, with none
 * left, if the system refuses one. Only one thread may call these functions, in turn. */
bool quern__bench_crowd_start(uint32_t thread_count);

/* Ends the threads, if there are any. */
void quern__bench_crowd_stop(void);

/* ----------------------------------------------------------------------------------------- counters */

/* Counts hardware events (<quern/hardware.h>) of all threads of the process during a piece of work. */

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
