/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_STATISTICS_H
#define QUERN_BENCH_HARNESS_STATISTICS_H

/* Medians, quantiles and rank tests. They use only the order of samples, because times of programs are
 * skewed and one bad sample must not affect the result. */

#include <stdbool.h>
#include <stddef.h>

typedef struct quern__bench_summary {
    double median;
    double min;
    double max;
    double mad; /* median absolute deviation: the median of the distances from the median */
} quern__bench_summary;

/* Summarises samples without changing them. count is at least 1. */
quern__bench_summary quern__bench_summarise(const double *samples, size_t count);

/* Returns a quantile of the samples, interpolated between two of them. fraction: 0 to 1. count is at least
 * 1. */
double quern__bench_quantile(const double *samples, size_t count, double fraction);

/* The difference of two sets of samples, by the Mann-Whitney U test and the Hodges-Lehmann estimate. All
 * samples are above 0. The estimated shift is the shift of their logarithms, so it is a ratio. */
typedef struct quern__bench_difference {
    double u;       /* number of pairs (a, b) with b above a; a pair of equal values counts half */
    double p;       /* probability of a difference at least as great, in either direction, by chance */
    bool is_exact;  /* whether p is exact; with ties or many samples it is a normal approximation */
    double ratio;   /* Hodges-Lehmann estimate of b / a: the median of the ratios of all pairs */
    double low;     /* lower bound of the ratio, with the requested confidence */
    double high;    /* upper bound; with too few samples, low is 0 and high is infinite */
    double least_p; /* p if the sets did not overlap; if it is above alpha, there are too few samples */
} quern__bench_difference;

/* Tests whether the samples b differ from the samples a. Both counts are at least 1. alpha is 1 minus the
 * confidence of the bounds, such as 0.01. */
quern__bench_difference quern__bench_compare_samples(const double *a, size_t a_count, const double *b,
                                                     size_t b_count, double alpha);

#endif
