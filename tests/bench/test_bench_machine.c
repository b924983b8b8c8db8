/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "bench/harness/json.h"
#include "bench/harness/machine.h"
#include "bench/harness/measure.h"
#include "bench/harness/results.h"
#include "bench/harness/statistics.h"
#include "bench/harness/table.h"
#include "tests/bench/bench_records.h"

#include <criterion/criterion.h>
#include <quern/jobs.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(bench_machine, .timeout = 60);

Test(bench_machine, describes_this_machine)
{
    quern_bench_suite suite = {.flags = "-O9"};
    quern__bench_machine machine = quern__bench_machine_describe(&suite);
    cr_expect_eq(machine.processor_count, quern_processor_count());
    cr_expect_str_eq(machine.flags, "-O9");
    cr_expect_gt(strlen(machine.processor), 0u);
    cr_expect_str_eq(machine.commit, "unknown", "the suite does not set it");
    cr_expect_eq(machine.date[10], 'T');
    cr_expect_eq(machine.checks, quern_has_checks());
    const quern_cache_sizes caches = quern_processor_caches();
    cr_assert_eq(machine.cache_count, 2);
    cr_expect_str_eq(machine.caches[0].name, "own");
    cr_expect_eq(machine.caches[0].bytes, caches.own_bytes);
    cr_expect_str_eq(machine.caches[1].name, "shared");
    cr_expect_eq(machine.caches[1].bytes, caches.shared_bytes);
    static const char *const sources[] = {"assumed", "sysconf", "kernel files"};
    cr_expect_str_eq(machine.caches[0].source, sources[caches.own_source]);
    cr_expect_str_eq(machine.caches[1].source, sources[caches.shared_source]);
    quern__bench_machine_close(&machine);
    cr_expect_null(machine.processor);
}

Test(bench_machine, sizes_and_figures_are_short)
{
    char text[QUERN__BENCH_SIZE_TEXT_BYTES];
    quern__bench_format_bytes(text, 512);
    cr_expect_str_eq(text, "512 bytes");
    quern__bench_format_bytes(text, 1536);
    cr_expect_str_eq(text, "1.5 KiB");
    quern__bench_format_bytes(text, (uint64_t)3 << 40);
    cr_expect_str_eq(text, "3 TiB");
    char figure[QUERN__BENCH_FIGURE_BYTES];
    quern__bench_format_figure(figure, 0.12345);
    cr_expect_str_eq(figure, "0.123");
    quern__bench_format_figure(figure, 123456.7);
    cr_expect_str_eq(figure, "123457");
}

Test(bench_machine, remaining_time_has_suitable_unit)
{
    char text[QUERN__BENCH_LEFT_TEXT_BYTES];
    quern__bench_format_left(text, 0.001, 5);
    cr_expect_str_eq(text, "", "no estimate after so little time");
    quern__bench_format_left(text, 0.5, 20);
    cr_expect_str_eq(text, "about 20 s left");
    quern__bench_format_left(text, 0.25, 100);
    cr_expect_str_eq(text, "about 5 min left");
    quern__bench_format_left(text, 0.5, 7200);
    cr_expect_str_eq(text, "about 2.0 h left");
}

#if defined(__linux__)
static uint32_t count_threads(void)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    for (const struct dirent *each; (each = readdir(tasks)) != NULL;)
        count += each->d_name[0] != '.';
    closedir(tasks);
    return count;
}

Test(bench_machine, a_crowd_begins_and_ends)
{
    const uint32_t before = count_threads();
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert(quern__bench_crowd_start(3));
        cr_expect_eq(count_threads(), before + 3);
        quern__bench_crowd_stop();
        for (uint32_t look = 0; look < 20000 && count_threads() != before; look++)
            usleep(1000); /* a joined thread may be listed for a moment */
        cr_expect_eq(count_threads(), before);
    }
}

Test(bench_machine, pinning_is_undone)
{
    const uint32_t all = quern_processor_count();
    cr_expect_not(quern__bench_pin(all + 1), "more processors than there are");
    cr_expect_eq(quern_processor_count(), all);
    cr_assert(quern__bench_pin(1));
    cr_expect_eq(quern_processor_count(), 1);
    cr_assert(quern__bench_pin(all), "the processors of the process count, not the pinned ones");
    cr_expect_eq(quern_processor_count(), all);
    cr_assert(quern__bench_pin(1));
    quern__bench_unpin();
    cr_expect_eq(quern_processor_count(), all);
}
#endif

/* ------------------------------------------------------------------------------------------ statistics */

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

/* ----------------------------------------------------------------------------------------------- trust */

TestSuite(bench_trust, .timeout = 60);

/* Returns results of a control and a subject. */
static quern__bench_results make_pair(size_t count, double ratio, double spread)
{
    quern__bench_results results = {.machine = make_machine()};
    add_made_record(&results, "iter", "raw", NULL, count, 100, spread);
    add_made_record(&results, "iter", "quern", "raw", count, 100 * ratio, spread);
    return results;
}

static quern__bench_trust judge(const quern__bench_results *results)
{
    return quern__bench_judge(&results->records[1], &results->records[0]);
}

static void reverse(quern__bench_record *record)
{
    for (size_t i = 0, k = record->sample_count - 1; i < k; i++, k--) {
        const double sample = record->samples[i];
        record->samples[i] = record->samples[k];
        record->samples[k] = sample;
    }
}

static bool is_about(double number, double expected)
{
    return fabs(number - expected) < 1e-9;
}

Test(bench_trust, simultaneous_samples_are_drawn_together)
{
    quern__bench_results results = make_pair(15, 1.25, 0.05);
    const quern__bench_trust together = judge(&results);
    cr_expect(is_about(together.ratio, 1.25));
    cr_expect(is_about(together.low, 1.25), "%g", together.low);
    cr_expect(is_about(together.high, 1.25), "%g", together.high);
    cr_expect_not(together.is_unclear);
    reverse(&results.records[1]);
    const quern__bench_trust apart = judge(&results);
    cr_expect(apart.low < 1.2 && apart.high > 1.3, "%g to %g", apart.low, apart.high);
    const quern__bench_trust again = judge(&results);
    cr_expect(is_about(again.low, apart.low) && is_about(again.high, apart.high));
    quern__bench_results_close(&results);
}

/* Returns the text that write_record writes for all records, to be released with free(). */
static char *write_all(const quern__bench_results *results,
                       void (*write_record)(FILE *file, const quern__bench_record *record,
                                            const quern__bench_record *control),
                       void (*write_trust)(FILE *file, const quern__bench_results *results))
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    cr_assert_not_null(file);
    for (size_t i = 0; i < results->record_count; i++)
        write_record(file, &results->records[i],
                     quern__bench_results_control(results, &results->records[i]));
    write_trust(file, results);
    fclose(file);
    return text;
}

static void expect_table(const quern__bench_results *results, const char *wanted, bool is_wanted)
{
    char *text = write_all(results, quern__bench_table_write_record, quern__bench_table_write_trust);
    cr_expect_eq(strstr(text, wanted) != NULL, is_wanted, "'%s': %s", wanted, text);
    free(text);
}

static void expect_json(const quern__bench_results *results, const char *wanted, bool is_wanted)
{
    char *text = write_all(results, quern__bench_json_write_record, quern__bench_json_write_trust);
    cr_expect_eq(strstr(text, wanted) != NULL, is_wanted, "'%s': %s", wanted, text);
    free(text);
}

Test(bench_trust, a_ratio_is_marked_if_its_interval_includes_1)
{
    quern__bench_results results = make_pair(15, 1.02, 0.05);
    reverse(&results.records[1]);
    const quern__bench_trust trust = judge(&results);
    cr_expect(trust.is_unclear && trust.low < 1 && trust.high > 1, "%g to %g", trust.low, trust.high);
    expect_table(&results, "1.02? 0.", true);
    expect_table(&results, "? 1 ratios: the 95 % interval includes 1", true);
    expect_json(&results, "\"is_unclear\":true", true);
    expect_json(&results, "\"ratio_low\":0.", true);
    quern__bench_results_close(&results);
    results = make_pair(15, 1.02, 0.0001);
    expect_table(&results, "1.02  1.02 to 1.02", true);
    expect_table(&results, "?", false);
    expect_json(&results, "\"is_unclear\":false", true);
    quern__bench_results_close(&results);
}

Test(bench_trust, few_samples_give_no_interval)
{
    quern__bench_results results = make_pair(5, 3, 0.0001);
    const quern__bench_trust trust = judge(&results);
    cr_expect(trust.is_unclear && trust.low <= 0 && isinf(trust.high));
    expect_table(&results, "3.00? too few samples", true);
    expect_json(&results, "ratio_low", false);
    quern__bench_results_close(&results);
    results = make_pair(6, 3, 0.0001);
    cr_expect_not(judge(&results).is_unclear);
    quern__bench_results_close(&results);
}

Test(bench_trust, constant_bytes_need_few_samples)
{
    quern__bench_results results = make_pair(1, 2, 0);
    results.records[0].is_bytes = results.records[1].is_bytes = true;
    const quern__bench_trust trust = judge(&results);
    cr_expect(is_about(trust.low, 2) && is_about(trust.high, 2) && !trust.is_unclear);
    quern__bench_results_close(&results);
}

Test(bench_trust, a_subject_without_a_ratio_has_no_interval)
{
    quern__bench_results results = make_pair(9, 2, 0.01);
    results.records[1].checksum++;
    const quern__bench_trust trust = judge(&results);
    cr_expect(isnan(trust.ratio) && isnan(trust.low) && isnan(trust.high) && !trust.is_unclear);
    expect_json(&results, "is_unclear", false);
    quern__bench_results_close(&results);
}

Test(bench_trust, unsteady_controls_give_a_warning)
{
    quern__bench_results results = make_pair(9, 2, 0.01);
    add_made_record(&results, "get", "raw", NULL, 9, 93, 0.1);
    add_made_record(&results, "get", "quern", "raw", 9, 93, 0.01);
    const quern__bench_steadiness steadiness = quern__bench_assess_controls(&results);
    cr_expect_eq(steadiness.control_count, 2u);
    cr_expect_eq(steadiness.unsteady_count, 1u);
    cr_expect_eq(steadiness.worst, &results.records[2]);
    expect_table(&results, "UNSTEADY", true);
    expect_table(&results, "WARNING   1 of 2 controls spread by more than 10 %", true);
    expect_table(&results, "get, 1000 entities, 1 thread, raw, 20 %", true);
    expect_json(&results, "\"unsteady_controls\":1,\"warning\":\"1 of 2 controls", true);
    quern__bench_results_close(&results);
}

/* An unsteady subject that is no control gives no warning. */
Test(bench_trust, steady_controls_give_no_warning)
{
    quern__bench_results results = make_pair(9, 2, 0.01);
    add_made_record(&results, "get", "raw", NULL, 9, 93, 0.01);
    add_made_record(&results, "get", "quern", "raw", 9, 93, 0.2);
    expect_table(&results, "WARNING", false);
    expect_table(&results, "UNSTEADY", false);
    expect_json(&results, "\"unsteady_controls\":0}", true);
    quern__bench_results_close(&results);
}
