/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TRUST_H
#define QUERN_BENCH_HARNESS_TRUST_H

/* Judges how far figures can be trusted: computes an interval for each ratio, and finds controls with
 * varying samples, which indicate that the machine was busy. */

#include <stdio.h>

#include "bench/harness/results.h"

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
