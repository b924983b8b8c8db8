/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/base.h"

/* The exact distribution of U is computed for up to this many samples of both sets together. C(50, 25) is
 * below 2^53, so a double holds every count without rounding. */
enum { MAX_EXACT_SAMPLES = 50 };

/* ----------------------------------------------------------------------------------- order statistics */

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Returns a sorted copy, to be released with free(). */
static double *sorted_copy(const double *samples, size_t count)
{
    double *copy = quern_bench_allocate(count, sizeof *copy);
    memcpy(copy, samples, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, compare_doubles);
    return copy;
}

static double middle(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

quern__bench_summary quern__bench_summarise(const double *samples, size_t count)
{
    double *values = sorted_copy(samples, count);
    quern__bench_summary summary = {
        .median = middle(values, count), .min = values[0], .max = values[count - 1]};
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - summary.median);
    qsort(values, count, sizeof *values, compare_doubles);
    summary.mad = middle(values, count);
    free(values);
    return summary;
}

double quern__bench_quantile(const double *samples, size_t count, double fraction)
{
    double *values = sorted_copy(samples, count);
    const double position = fraction * (double)(count - 1);
    const size_t below = (size_t)position;
    const size_t above = below + 1 < count ? below + 1 : below;
    const double value = values[below] + (position - (double)below) * (values[above] - values[below]);
    free(values);
    return value;
}

/* --------------------------------------------------------------------------------- distribution of U */

/* Returns an array, to be released with free(): element u is the number of orders of n samples of one set
 * and m of another for which U is u. These numbers are the coefficients of the Gaussian binomial, the
 * product over i = 1 to n of (1 - q^(m+i)) / (1 - q^i). For each i, the numerator is multiplied in and the
 * denominator divided out, in place; the array then has the coefficients for n = i. */
static double *count_orders(size_t n, size_t m)
{
    const size_t degree = n * m;
    double *order_counts = quern_bench_allocate(degree + 1, sizeof *order_counts);
    order_counts[0] = 1;
    for (size_t i = 1; i <= n; i++) {
        for (size_t u = degree; u >= m + i; u--)
            order_counts[u] -= order_counts[u - (m + i)];
        for (size_t u = i; u <= degree; u++)
            order_counts[u] += order_counts[u - i];
    }
    return order_counts;
}

/* Returns the probability that U is at most u, for u up to n * m. */
static double exact_lower_tail(const double *order_counts, size_t degree, double u)
{
    double below = 0;
    double all = 0;
    for (size_t i = 0; i <= degree; i++) {
        all += order_counts[i];
        if ((double)i <= u) below += order_counts[i];
    }
    return below / all;
}

static double exact_p(size_t n, size_t m, double u)
{
    const size_t degree = n * m;
    double *order_counts = count_orders(n, m);
    const double lesser = u < (double)degree - u ? u : (double)degree - u;
    const double p = 2 * exact_lower_tail(order_counts, degree, lesser);
    free(order_counts);
    return p < 1 ? p : 1;
}

static double normal_lower_tail(double z)
{
    return 0.5 * erfc(-z * sqrt(0.5));
}

/* Returns the sum of t^3 - t over all groups of t equal values. */
static double tie_sum(const double *sorted, size_t count)
{
    double sum = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && sorted[end] == sorted[begin];)
            end++;
        const double size = (double)(end - begin);
        sum += size * size * size - size;
    }
    return sum;
}

/* Returns the two-sided p of U by the normal approximation, corrected for ties and for continuity. */
static double normal_p(size_t n, size_t m, double u, double ties)
{
    const double all = (double)(n + m);
    const double product = (double)n * (double)m;
    const double spread = sqrt(product / 12 * (all + 1 - ties / (all * (all - 1))));
    const double distance = fabs(u - product / 2) - 0.5;
    if (distance <= 0 || !(spread > 0)) return 1;
    return 2 * normal_lower_tail(-distance / spread);
}

/* -------------------------------------------------------------------------------------------- shift */

static double *logarithm_differences(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double *differences = quern_bench_allocate(a_count * b_count, sizeof *differences);
    for (size_t i = 0; i < a_count; i++) {
        for (size_t j = 0; j < b_count; j++)
            differences[i * b_count + j] = log(b[j]) - log(a[i]);
    }
    qsort(differences, a_count * b_count, sizeof *differences, compare_doubles);
    return differences;
}

/* Returns how many of the sorted differences are outside of the interval at each end: the largest number
 * for which the probability of the tail is at most alpha / 2. */
static size_t cut_count(size_t n, size_t m, double alpha)
{
    const size_t degree = n * m;
    size_t cut = 0;
    if (n + m <= MAX_EXACT_SAMPLES) {
        double *order_counts = count_orders(n, m);
        while (cut < degree / 2 && 2 * exact_lower_tail(order_counts, degree, (double)cut) <= alpha)
            cut++;
        free(order_counts);
        return cut;
    }
    while (cut < degree / 2 && normal_p(n, m, (double)cut, 0) <= alpha)
        cut++;
    return cut;
}

static void estimate_ratio(quern__bench_difference *difference, const double *a, size_t a_count,
                           const double *b, size_t b_count, double alpha)
{
    const size_t count = a_count * b_count;
    double *differences = logarithm_differences(a, a_count, b, b_count);
    const size_t cut = cut_count(a_count, b_count, alpha);
    difference->ratio = exp(middle(differences, count));
    difference->low = cut > 0 ? exp(differences[cut - 1]) : 0;
    difference->high = cut > 0 ? exp(differences[count - cut]) : INFINITY;
    free(differences);
}

/* ------------------------------------------------------------------------------------------- compare */

static double count_pairs(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double u = 0;
    for (size_t i = 0; i < a_count; i++) {
        for (size_t j = 0; j < b_count; j++)
            u += b[j] > a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
    }
    return u;
}

static double joint_tie_sum(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double *all = quern_bench_allocate(a_count + b_count, sizeof *all);
    memcpy(all, a, a_count * sizeof *all);
    memcpy(all + a_count, b, b_count * sizeof *all);
    qsort(all, a_count + b_count, sizeof *all, compare_doubles);
    const double sum = tie_sum(all, a_count + b_count);
    free(all);
    return sum;
}

quern__bench_difference quern__bench_compare_samples(const double *a, size_t a_count, const double *b,
                                                     size_t b_count, double alpha)
{
    const double ties = joint_tie_sum(a, a_count, b, b_count);
    const bool few = a_count + b_count <= MAX_EXACT_SAMPLES;
    quern__bench_difference difference = {
        .u = count_pairs(a, a_count, b, b_count),
        .is_exact = few && ties == 0,
        .least_p = few ? exact_p(a_count, b_count, 0) : normal_p(a_count, b_count, 0, 0),
    };
    difference.p = difference.is_exact ? exact_p(a_count, b_count, difference.u)
                                       : normal_p(a_count, b_count, difference.u, ties);
    estimate_ratio(&difference, a, a_count, b, b_count, alpha);
    return difference;
}
