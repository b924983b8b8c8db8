/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TRUST_H
#define QUERN_BENCH_HARNESS_TRUST_H

/* How far the figures can be trusted: an interval for each ratio, and whether the controls say that the
 * machine was busy. */

#include <stdio.h>

#include "bench/harness/results.h"

/* The confidence of the intervals. */
#define QUERN__BENCH_CONFIDENCE 0.95

/* A control is unsteady if its median absolute deviation is a greater fraction of its median. */
#define QUERN__BENCH_SPREAD_LIMIT 0.1

/* The ratio of a subject to its control. All are NAN where the subject has no ratio. */
typedef struct quern__bench_trust {
    double ratio;    /* as quern__bench_record_ratio */
    double low;      /* end of the interval; 0 if there are too few samples for one */
    double high;     /* end of the interval; infinity if there are too few samples for one */
    bool is_unclear; /* the interval includes 1: the samples show no difference from the control */
} quern__bench_trust;

/* Computes the interval by bootstrap: the ratio of medians of samples that are drawn again, 1,000 times.
 * Sample i of the subject and of its control are drawn together, since they were measured at about the
 * same time. The same samples always give the same interval. */
quern__bench_trust quern__bench_judge(const quern__bench_record *record,
                                      const quern__bench_record *control);

/* Median absolute deviation by median; 0 if both are 0. */
double quern__bench_record_spread(const quern__bench_record *record);

/* The controls of some results. */
typedef struct quern__bench_unrest {
    size_t control_count;
    size_t unsteady_count; /* controls with a spread above the limit */
    const quern__bench_record
        *worst; /* the control with the greatest spread; NULL if there is no control */
} quern__bench_unrest;

quern__bench_unrest quern__bench_find_unrest(const quern__bench_results *results);

/* "2 of 6 controls spread by more than 10 % ...", one line without an end. Empty if no control is
 * unsteady. */
enum { QUERN__BENCH_UNREST_TEXT_BYTES = 512 };
void quern__bench_format_unrest(char text[QUERN__BENCH_UNREST_TEXT_BYTES],
                                const quern__bench_unrest *unrest);

#endif
