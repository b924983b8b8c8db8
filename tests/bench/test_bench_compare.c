/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/compare.h"
#include "tests/bench/bench_records.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(bench_compare, .timeout = 60);

enum { SAMPLES = 9 };

static const double noise = 0.05;

/* Returns results of a control and a subject around these times. */
static quern__bench_results make_pair(double raw, double quern, size_t count)
{
    quern__bench_results results = {.machine = make_machine()};
    add_made_record(&results, "iter", "raw", NULL, count, raw, 0.002);
    add_made_record(&results, "iter", "quern", "raw", count, quern, 0.003);
    return results;
}

static quern__bench_comparison compare(quern__bench_results *before, quern__bench_results *now,
                                       size_t index)
{
    return quern__bench_compare(before, now, &now->records[index], noise);
}

static void close_both(quern__bench_results *before, quern__bench_results *now)
{
    quern__bench_results_close(before);
    quern__bench_results_close(now);
}

static quern__bench_verdict verdict_of(double raw_before, double quern_before, double raw_now,
                                       double quern_now)
{
    quern__bench_results before = make_pair(raw_before, quern_before, SAMPLES);
    quern__bench_results now = make_pair(raw_now, quern_now, SAMPLES);
    const quern__bench_verdict verdict = compare(&before, &now, 1).verdict;
    close_both(&before, &now);
    return verdict;
}

Test(bench_compare, a_subject_is_judged_by_its_ratio)
{
    cr_expect_eq(verdict_of(1, 2, 1, 2.2), QUERN__BENCH_SLOWER);
    cr_expect_eq(verdict_of(1, 2, 1, 1.8), QUERN__BENCH_FASTER);
    cr_expect_eq(verdict_of(1, 2, 1, 2.04), QUERN__BENCH_WITHIN_NOISE,
                 "the change is certain, but smaller than the noise");
    cr_expect_eq(verdict_of(1, 2, 1.5, 3), QUERN__BENCH_WITHIN_NOISE,
                 "subject and control became slower alike");
    cr_expect_eq(verdict_of(1, 2, 1.5, 2), QUERN__BENCH_FASTER, "only the control became slower");
}

Test(bench_compare, a_control_is_judged_by_its_time)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1.5, 3, SAMPLES);
    const quern__bench_comparison control = compare(&before, &now, 0);
    cr_expect_not(control.by_ratio);
    cr_expect_eq(control.verdict, QUERN__BENCH_SLOWER);
    cr_assert_float_eq(control.difference.ratio, 1.5, 0.01);
    cr_expect(compare(&before, &now, 1).by_ratio);
    close_both(&before, &now);
}

Test(bench_compare, overlapping_samples_show_no_difference)
{
    quern__bench_results before = {.machine = make_machine()};
    quern__bench_results now = {.machine = make_machine()};
    add_made_record(&before, "iter", "alone", NULL, SAMPLES, 1, 0.1);
    add_made_record(&now, "iter", "alone", NULL, SAMPLES, 1.15, 0.1);
    const quern__bench_comparison comparison = compare(&before, &now, 0);
    cr_expect_eq(comparison.verdict, QUERN__BENCH_WITHIN_NOISE);
    cr_expect_gt(comparison.difference.p, QUERN__BENCH_ALPHA);
    close_both(&before, &now);
}

Test(bench_compare, too_few_samples_give_no_verdict)
{
    quern__bench_results before = make_pair(1, 2, 4);
    quern__bench_results now = make_pair(1, 9, 4);
    cr_expect_eq(compare(&before, &now, 1).verdict, QUERN__BENCH_TOO_FEW);
    close_both(&before, &now);
    before = make_pair(1, 2, 5);
    now = make_pair(1, 9, 5);
    cr_expect_eq(compare(&before, &now, 1).verdict, QUERN__BENCH_SLOWER);
    close_both(&before, &now);
}

Test(bench_compare, memory_is_compared_without_a_test)
{
    quern__bench_results before = {.machine = make_machine()};
    quern__bench_results now = {.machine = make_machine()};
    add_made_record(&before, "mem", "quern", NULL, 1, 50, 0)->is_bytes = true;
    add_made_record(&now, "mem", "quern", NULL, 1, 60, 0)->is_bytes = true;
    const quern__bench_comparison comparison = compare(&before, &now, 0);
    cr_expect_not(comparison.is_tested);
    cr_expect_eq(comparison.verdict, QUERN__BENCH_SLOWER);
    cr_expect_str_eq(quern__bench_verdict_text(comparison.verdict, true), "larger");
    now.records[0].summary.median = 51;
    cr_expect_eq(compare(&before, &now, 0).verdict, QUERN__BENCH_WITHIN_NOISE);
    close_both(&before, &now);
}

Test(bench_compare, incomparable_records_have_a_reason)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1, 2, SAMPLES);
    now.records[1].entity_count = 5;
    cr_expect_eq(compare(&before, &now, 1).verdict, QUERN__BENCH_NEW);
    now.records[1].entity_count = before.records[1].entity_count;
    memcpy(now.records[1].unit, "frame", sizeof "frame");
    cr_expect_eq(compare(&before, &now, 1).verdict, QUERN__BENCH_NOT_COMPARABLE);
    close_both(&before, &now);
}

static void expect_reason(quern__bench_results *before, quern__bench_results *now, const char *reason)
{
    const quern__bench_comparison comparison = compare(before, now, 1);
    cr_expect_eq(comparison.verdict, QUERN__BENCH_NOT_COMPARABLE);
    cr_assert_not_null(comparison.reason);
    cr_expect_str_eq(comparison.reason, reason);
}

Test(bench_compare, wrong_checksum_prevents_comparison)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1, 2, SAMPLES);
    now.records[1].checksum++;
    expect_reason(&before, &now, "its checksum differs from its control's");
    expect_reason(&now, &before, "its checksum differed from its control's before");
    before.records[1].is_bytes = true;
    expect_reason(&before, &now, "one is a time, the other a size in bytes");
    close_both(&before, &now);
}

Test(bench_compare, controls_are_not_counted_in_verdicts)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1.5, 6, SAMPLES);
    add_made_record(&before, "alone", "mine", NULL, SAMPLES, 1, 0.001);
    add_made_record(&now, "alone", "mine", NULL, SAMPLES, 2, 0.001);
    quern__bench_comparison *all = quern__bench_compare_all(&before, &now, noise);
    cr_expect_eq(all[0].verdict, QUERN__BENCH_SLOWER);
    cr_expect_eq(quern__bench_count_verdicts(all, &now, QUERN__BENCH_SLOWER), 2,
                 "the subject of iter and the record without a control");
    free(all);
    close_both(&before, &now);
}

static quern__bench_verdict verdict_without_control(double control_change, double change)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(control_change, 2 * control_change, SAMPLES);
    add_made_record(&before, "alone", "mine", NULL, SAMPLES, 1, 0.001);
    add_made_record(&now, "alone", "mine", NULL, SAMPLES, change, 0.001);
    quern__bench_comparison *all = quern__bench_compare_all(&before, &now, noise);
    const quern__bench_verdict verdict = all[2].verdict;
    cr_expect_eq(all[1].verdict, QUERN__BENCH_WITHIN_NOISE, "the subject has a control");
    cr_expect_eq(verdict == QUERN__BENCH_NOT_COMPARABLE, all[2].reason != NULL);
    free(all);
    close_both(&before, &now);
    return verdict;
}

Test(bench_compare, record_without_control_is_judged_against_drift_of_others)
{
    cr_expect_eq(verdict_without_control(1, 1.2), QUERN__BENCH_SLOWER);
    cr_expect_eq(verdict_without_control(1, 0.8), QUERN__BENCH_FASTER);
    cr_expect_eq(verdict_without_control(1.2, 1.2), QUERN__BENCH_NOT_COMPARABLE,
                 "the controls changed alike");
    cr_expect_eq(verdict_without_control(0.8, 0.8), QUERN__BENCH_NOT_COMPARABLE,
                 "the controls changed alike");
    cr_expect_eq(verdict_without_control(1.2, 1.5), QUERN__BENCH_SLOWER, "more than the controls");
    cr_expect_eq(verdict_without_control(0.8, 1.2), QUERN__BENCH_SLOWER);
    cr_expect_eq(verdict_without_control(0.8, 1), QUERN__BENCH_NOT_COMPARABLE,
                 "the controls became faster, the record did not");
}

Test(bench_compare, drift_without_matching_threads_uses_all_controls)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1.5, 2, SAMPLES);
    quern__bench_comparison *all = quern__bench_compare_all(&before, &now, noise);
    const quern__bench_drift drift = quern__bench_find_drift(all, &now, 4);
    cr_expect_eq(drift.control_count, 1, "no control has 4 threads, so all are used");
    cr_assert_float_eq(drift.median, 1.5, 0.01);
    free(all);
    quern__bench_record *control = &now.records[0];
    control->workload[0] = 'x';
    all = quern__bench_compare_all(&before, &now, noise);
    cr_expect_eq(quern__bench_find_drift(all, &now, 1).control_count, 0);
    free(all);
    close_both(&before, &now);
}

Test(bench_compare, table_has_method_warnings_and_verdicts)
{
    quern__bench_results before = make_pair(1, 2, SAMPLES);
    quern__bench_results now = make_pair(1, 2.5, SAMPLES);
    add_made_record(&before, "gone", "raw", NULL, SAMPLES, 1, 0.001);
    now.machine.flags[2] = '2';
    quern__bench_comparison *all = quern__bench_compare_all(&before, &now, noise);
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    quern__bench_write_comparisons(file, all, &before, &now, "before.jsonl", noise);
    fclose(file);
    static const char *const expected[] = {
        "before.jsonl",
        "Mann-Whitney",
        "99 % interval",
        "more than 5 %",
        "the set of flags was different before: -O3",
        " slower\n",
        "(control)",
        "not measured",
        "times of the controls, now / before: 1 ",
        "0 faster, 1 slower, 0 within noise",
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        cr_expect(strstr(text, expected[i]) != NULL, "'%s' is not in:\n%s", expected[i], text);
    free(text);
    free(all);
    close_both(&before, &now);
}
