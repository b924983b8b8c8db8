/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_RESULTS_H
#define QUERN_BENCH_HARNESS_RESULTS_H

/* What was measured, or read from a file that an earlier run wrote: the one form that tables, files,
 * comparisons and the report are made from. */

#include "bench/harness/counters.h"
#include "bench/harness/machine.h"
#include "bench/harness/statistics.h"

/* One subject in one case. Owns its texts and arrays. */
typedef struct quern__bench_record {
    char *workload;
    char *subject;
    char *control; /* the subject it is judged by; NULL: it is the control */
    char *unit;
    uint32_t entity_count;
    uint32_t thread_count;
    uint32_t bytes_per_entity; /* 0: unknown */
    bool is_bytes;             /* figures are bytes per unit; otherwise nanoseconds per unit */
    double *samples;     /* in the order of measuring; sample i of each subject is of about the same time */
    size_t sample_count; /* at least 1 */
    double *frames;      /* nanoseconds of single passes; NULL: not measured */
    size_t frame_count;
    double counters[QUERN_HARDWARE_EVENT_COUNT]; /* per unit; NAN: not counted */
    uint64_t checksum;
    quern__bench_summary summary; /* of the samples */
} quern__bench_record;

typedef struct quern__bench_results {
    quern__bench_machine machine;
    quern__bench_record *records; /* a control precedes the records that are compared with it */
    size_t record_count;
    size_t record_capacity;
} quern__bench_results;

/* Adds a record and takes ownership of its memory. Returns its address, valid until the next one is
 * added. */
quern__bench_record *quern__bench_results_add(quern__bench_results *results,
                                              const quern__bench_record *record);

void quern__bench_record_close(quern__bench_record *record);
void quern__bench_results_close(quern__bench_results *results);

/* The record of the same workload, subject and case; NULL when there is none. */
const quern__bench_record *quern__bench_results_find(const quern__bench_results *results,
                                                     const quern__bench_record *like);

/* The control of a record; NULL when it is one itself. */
const quern__bench_record *quern__bench_results_control(const quern__bench_results *results,
                                                        const quern__bench_record *record);

/* Whether another record is judged by this one: then what it does itself says how the machine was, not
 * how the program is. */
bool quern__bench_results_is_control(const quern__bench_results *results,
                                     const quern__bench_record *record);

/* "iter, 1000 entities, 1 thread, quern". */
enum { QUERN__BENCH_CASE_TEXT_BYTES = 256 };
void quern__bench_format_case(char text[QUERN__BENCH_CASE_TEXT_BYTES], const quern__bench_record *record);

/* Whether the subject did what its control did: false when their checksums differ, and then its figures
 * mean nothing. True where there is no control. */
bool quern__bench_record_agrees(const quern__bench_record *record, const quern__bench_record *control);

/* Median by the control's median; NAN where there is no control, or where the subject disagrees with it. */
double quern__bench_record_ratio(const quern__bench_record *record, const quern__bench_record *control);

/* Percentiles of the durations of single frames: 50, 90, 95, 99 and 100 %. */
enum { QUERN__BENCH_FRAME_PART_COUNT = 5 };
extern const double quern__bench_frame_parts[QUERN__BENCH_FRAME_PART_COUNT];
void quern__bench_record_frames(const quern__bench_record *record,
                                double times_ns[QUERN__BENCH_FRAME_PART_COUNT]);

bool quern__bench_record_has_counters(const quern__bench_record *record);

/* "ns" or "bytes". */
const char *quern__bench_record_measure(const quern__bench_record *record);

#endif
