/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/statistics.h"

#include <criterion/criterion.h>

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(bench_statistics, .timeout = 60);

/* The permeability constants of Hollander and Wolfe, an example in handbooks of statistics. The one-sided p
 * is 0.1272. */
static const double at_term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
static const double before_term[] = {1.15, 0.88, 0.90, 0.74, 1.21};

Test(bench_statistics, summary_of_an_odd_number_of_samples)
{
    const double samples[] = {9, 1, 5, 2, 100};
    const quern__bench_summary summary = quern__bench_summarise(samples, COUNT(samples));
    cr_expect_eq(summary.median, 5);
    cr_expect_eq(summary.min, 1);
    cr_expect_eq(summary.max, 100);
    cr_expect_eq(summary.mad, 4, "of 4, 4, 0, 3 and 95");
    cr_expect_eq(samples[0], 9, "the samples are not changed");
}

Test(bench_statistics, summary_of_an_even_number_of_samples)
{
    const double samples[] = {4, 1, 3, 2};
    const quern__bench_summary summary = quern__bench_summarise(samples, COUNT(samples));
    cr_expect_eq(summary.median, 2.5);
    cr_expect_eq(summary.mad, 1, "of 1.5, 1.5, 0.5 and 0.5");
}

Test(bench_statistics, summary_of_one_sample)
{
    const double sample = 7;
    const quern__bench_summary summary = quern__bench_summarise(&sample, 1);
    cr_expect(summary.median == 7 && summary.min == 7 && summary.max == 7 && summary.mad == 0);
}

Test(bench_statistics, quantiles_are_interpolated)
{
    const double samples[] = {40, 10, 30, 20};
    cr_expect_eq(quern__bench_quantile(samples, COUNT(samples), 0), 10);
    cr_expect_eq(quern__bench_quantile(samples, COUNT(samples), 1), 40);
    cr_assert_float_eq(quern__bench_quantile(samples, COUNT(samples), 0.5), 25, 1e-12);
    cr_assert_float_eq(quern__bench_quantile(samples, COUNT(samples), 0.9), 37, 1e-12);
}

Test(bench_statistics, exact_p_of_known_example)
{
    const quern__bench_difference difference =
        quern__bench_compare_samples(at_term, COUNT(at_term), before_term, COUNT(before_term), 0.05);
    cr_expect(difference.is_exact);
    cr_expect_eq(difference.u, 15);
    cr_assert_float_eq(difference.p, 2 * 0.1272061272, 1e-9);
}

/* The expected values were computed from all 3003 orders of the samples by an independent program. */
Test(bench_statistics, ratio_and_interval_of_known_example)
{
    quern__bench_difference difference =
        quern__bench_compare_samples(at_term, COUNT(at_term), before_term, COUNT(before_term), 0.05);
    cr_assert_float_eq(difference.ratio, 0.7623304256784819, 1e-12);
    cr_assert_float_eq(difference.low, 0.5103448275862069, 1e-12);
    cr_assert_float_eq(difference.high, 1.1634615384615383, 1e-12);
    difference =
        quern__bench_compare_samples(at_term, COUNT(at_term), before_term, COUNT(before_term), 0.01);
    cr_assert_float_eq(difference.low, 0.4656084656084656, 1e-12);
    cr_assert_float_eq(difference.high, 1.4375, 1e-12);
}

Test(bench_statistics, ties_are_corrected_for)
{
    const double a[] = {1, 2, 2, 3, 4, 4, 4, 5};
    const double b[] = {2, 3, 4, 5, 5, 6, 6, 7, 7};
    const quern__bench_difference difference = quern__bench_compare_samples(a, COUNT(a), b, COUNT(b), 0.05);
    cr_expect_not(difference.is_exact);
    cr_expect_eq(difference.u, 58);
    cr_assert_float_eq(difference.p, 0.036083552871538326, 1e-12);
    cr_assert_float_eq(difference.ratio, 1.5, 1e-12);
}

Test(bench_statistics, many_samples_use_normal_approximation)
{
    double a[30];
    double b[30];
    for (int i = 0; i < 30; i++) {
        a[i] = 100 + i;
        b[i] = 110.5 + i;
    }
    const quern__bench_difference difference = quern__bench_compare_samples(a, 30, b, 30, 0.01);
    cr_expect_not(difference.is_exact);
    cr_expect_eq(difference.u, 710);
    cr_assert_float_eq(difference.p, 0.00012477053789099963, 1e-12);
    cr_expect(difference.low > 1 && difference.low < difference.ratio &&
              difference.ratio < difference.high);
}

/* The exact p and the normal approximation must agree at the number of samples where one replaces the
 * other. */
Test(bench_statistics, exact_and_normal_p_are_close)
{
    double a[25];
    double b[26];
    for (int i = 0; i < 25; i++) {
        a[i] = 100 + 3 * i;
        b[i] = 116.5 + 3 * i;
    }
    b[25] = b[12] + 0.25; /* a 26th sample in the middle changes little but the method */
    const quern__bench_difference exact = quern__bench_compare_samples(a, 25, b, 25, 0.01);
    const quern__bench_difference normal = quern__bench_compare_samples(a, 25, b, 26, 0.01);
    cr_assert(exact.is_exact && !normal.is_exact);
    cr_expect_lt(fabs(log(exact.p / normal.p)), 0.4, "%g and %g", exact.p, normal.p);
    cr_assert_float_eq(exact.low, normal.low, 0.02);
}

Test(bench_statistics, least_p_depends_on_sample_counts)
{
    const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const double b[] = {11, 12, 13, 14, 15, 16, 17, 18, 19};
    const quern__bench_difference nine = quern__bench_compare_samples(a, 9, b, 9, 0.01);
    cr_assert_float_eq(nine.least_p, 2.0 / 48620, 1e-12);
    cr_assert_float_eq(nine.p, nine.least_p, 1e-15);
    const quern__bench_difference four = quern__bench_compare_samples(a, 4, b, 4, 0.01);
    cr_assert_float_eq(four.least_p, 2.0 / 70, 1e-12);
    cr_expect(four.low == 0 && isinf(four.high), "four samples are too few for 99 %%");
}

Test(bench_statistics, equal_sets_have_no_difference)
{
    const double a[] = {3, 1, 2, 5, 4};
    const quern__bench_difference difference = quern__bench_compare_samples(a, 5, a, 5, 0.01);
    cr_expect_eq(difference.p, 1);
    cr_assert_float_eq(difference.ratio, 1, 1e-12);
    const double same[] = {2, 2, 2, 2, 2};
    cr_expect_eq(quern__bench_compare_samples(same, 5, same, 5, 0.01).p, 1);
}
