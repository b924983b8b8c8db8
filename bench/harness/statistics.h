/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_STATISTICS_H
#define QUERN_BENCH_HARNESS_STATISTICS_H

/* Order statistics only: times of programs are skewed, and one bad sample must not count. */

#include <stdbool.h>
#include <stddef.h>

typedef struct quern__bench_summary {
    double median;
    double min;
    double max;
    double mad; /* median absolute deviation: of the distances from the median, the median */
} quern__bench_summary;

/* count is at least 1. Leaves the samples as they are. */
quern__bench_summary quern__bench_summarise(const double *samples, size_t count);

/* Returns a quantile of the samples, interpolated between two of them. part: 0 to 1. count is at least
 * 1. */
double quern__bench_quantile(const double *samples, size_t count, double part);

/* Two sets of samples, by the test of Mann and Whitney and the estimate that belongs to it. All samples are
 * above 0: the shift is that of their logarithms, so it is a ratio. */
typedef struct quern__bench_difference {
    double u;       /* pairs (a, b) with b above a, those with b equal to a counting half */
    double p;       /* chance of a difference like this or greater, either way, when there is none */
    bool is_exact;  /* p was counted out; otherwise (ties, many samples) it is by the normal distribution */
    double ratio;   /* b / a: median of all pairs, as Hodges and Lehmann proposed */
    double low;     /* lower bound of the ratio, with the requested confidence */
    double high;    /* upper bound; low and high are 0 and infinity with too few samples */
    double least_p; /* what p would be if the sets did not overlap: above alpha, nothing can be shown */
} quern__bench_difference;

/* Both counts are at least 1; alpha is 1 less the confidence, such as 0.01. */
quern__bench_difference quern__bench_compare_samples(const double *a, size_t a_count, const double *b,
                                                     size_t b_count, double alpha);

#endif
