/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_RESULTS_H
#define QUERN_BENCH_HARNESS_RESULTS_H

/* The results of a run, measured now or read from the file of an earlier run, and how far they can be trusted. Tables,
 * files, comparisons and the report are made from them. */

#include <stdio.h>

#include "bench/harness/machine.h"
#include "bench/harness/statistics.h"

/* The results of one subject in one case. A record owns its texts and arrays. */
typedef struct quern__bench_record {
    char *workload;
    char *subject;
    char *control; /* name of the subject that it is compared with; NULL: it is a control itself */
    char *unit;
    uint32_t entity_count;
    uint32_t thread_count;
    uint32_t bytes_per_entity; /* 0: unknown */
    bool is_bytes;             /* figures are bytes per unit; otherwise nanoseconds per unit */
    double *samples;     /* figures in the order of measuring; the samples i of all subjects were taken one
                        after the other */
    size_t sample_count; /* at least 1 */
    double *frames;      /* durations of single passes in nanoseconds; NULL: not measured */
    size_t frame_count;
    double counters[QUERN_HARDWARE_EVENT_COUNT]; /* hardware events per unit; NAN: not counted */
    uint64_t checksum;
    quern__bench_summary summary; /* summary of the samples */
} quern__bench_record;

typedef struct quern__bench_results {
    quern__bench_machine machine;
    quern__bench_record *records; /* a control precedes the records that are compared with it */
    size_t record_count;
    size_t record_capacity;
} quern__bench_results;

/* Adds a record; the results become the owner of its memory. Returns its address, valid until another
 * record is added. */
quern__bench_record *quern__bench_results_add(quern__bench_results *results,
                                              const quern__bench_record *record);

void quern__bench_record_close(quern__bench_record *record);
void quern__bench_results_close(quern__bench_results *results);

/* Returns the record with the workload, subject, entity_count and thread_count of `like`; NULL if there is
 * none. */
const quern__bench_record *quern__bench_results_find(const quern__bench_results *results,
                                                     const quern__bench_record *like);

/* Returns the control of a record; NULL if the record is a control itself, or its control is missing. */
const quern__bench_record *quern__bench_results_control(const quern__bench_results *results,
                                                        const quern__bench_record *record);

/* Returns whether another record has this record as its control. A change of such a record indicates a
 * change of the machine rather than of the program. */
bool quern__bench_results_is_control(const quern__bench_results *results,
                                     const quern__bench_record *record);

/* Formats workload, case and subject of a record: "iter, 1000 entities, 1 thread, quern". */
enum { QUERN__BENCH_CASE_TEXT_BYTES = 256 };
void quern__bench_format_case(char text[QUERN__BENCH_CASE_TEXT_BYTES], const quern__bench_record *record);

/* Returns whether the checksums of the subject and its control are equal; true without a control. If they
 * differ, the subject did other work than its control, and its figures mean nothing. */
bool quern__bench_record_agrees(const quern__bench_record *record, const quern__bench_record *control);

/* Returns the median divided by the control's median; NAN if there is no control or the checksums
 * differ. */
double quern__bench_record_ratio(const quern__bench_record *record, const quern__bench_record *control);

/* Computes percentiles of the durations of single frames: 50, 90, 95, 99 and 100 %. */
enum { QUERN__BENCH_FRAME_PERCENTILE_COUNT = 5 };
extern const double quern__bench_frame_percentiles[QUERN__BENCH_FRAME_PERCENTILE_COUNT];
void quern__bench_record_frames(const quern__bench_record *record,
                                double times_ns[QUERN__BENCH_FRAME_PERCENTILE_COUNT]);

bool quern__bench_record_has_counters(const quern__bench_record *record);

/* Returns the unit of the record's figures: "ns" or "bytes". */
const char *quern__bench_record_measure(const quern__bench_record *record);

/* -------------------------------------------------------------------------------------------- trust */

/* Judges how far figures can be trusted: computes an interval for each ratio, and finds controls with
 * varying samples, which indicate that the machine was busy. */

/* Confidence of the intervals. */
#define QUERN__BENCH_CONFIDENCE 0.95

/* A control is unsteady if its median absolute deviation is a greater fraction of its median. */
#define QUERN__BENCH_SPREAD_LIMIT 0.1

/* The ratio of a subject to its control. All numbers are NAN if the subject has no ratio. */
typedef struct quern__bench_trust {
    double ratio;    /* result of quern__bench_record_ratio */
    double low;      /* end of the interval; 0 if there are too few samples for one */
    double high;     /* end of the interval; infinity if there are too few samples for one */
    bool is_unclear; /* the interval includes 1: the samples show no difference from the control */
} quern__bench_trust;

/* Computes the interval by bootstrap: draws the samples with replacement 1,000 times, and computes the
 * ratio of the medians each time. Sample i of the subject and sample i of its control are drawn together,
 * since they were measured one after the other. Equal samples always give equal intervals. */
quern__bench_trust quern__bench_judge(const quern__bench_record *record,
                                      const quern__bench_record *control);

/* Returns the median absolute deviation divided by the median; 0 if both are 0. */
double quern__bench_record_spread(const quern__bench_record *record);

/* How steady the controls of some results are. */
typedef struct quern__bench_steadiness {
    size_t control_count;
    size_t unsteady_count; /* controls with a spread above the limit */
    const quern__bench_record
        *worst; /* the control with the greatest spread; NULL if there is no control */
} quern__bench_steadiness;

quern__bench_steadiness quern__bench_assess_controls(const quern__bench_results *results);

/* Formats a warning, "2 of 6 controls spread by more than 10 % ...", as one line without a line feed; an
 * empty text if no control is unsteady. */
enum { QUERN__BENCH_STEADINESS_TEXT_BYTES = 512 };
void quern__bench_format_steadiness(char text[QUERN__BENCH_STEADINESS_TEXT_BYTES],
                                    const quern__bench_steadiness *steadiness);

#endif
