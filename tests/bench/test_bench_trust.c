/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/results.h"

#include "bench/harness/json.h"
#include "bench/harness/table.h"
#include "tests/bench/bench_records.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
