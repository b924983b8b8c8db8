/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "bench/harness/compare.h"
#include "bench/harness/json.h"
#include "bench/harness/table.h"
#include "tests/bench/bench_records.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(bench_results, .timeout = 60);

static char *text;
static size_t text_bytes;

static FILE *open_text(void)
{
    FILE *file = open_memstream(&text, &text_bytes);
    cr_assert_not_null(file);
    return file;
}

static quern__bench_results make_results(void)
{
    quern__bench_results results = {.machine = make_machine()};
    add_made_record(&results, "iter", "raw", NULL, 9, 0.5, 0.01);
    quern__bench_record *quern = add_made_record(&results, "iter", "quern", "raw", 9, 0.625, 0.01);
    quern->bytes_per_entity = 24;
    quern->frames = quern_bench_allocate(2, sizeof *quern->frames);
    quern->frames[0] = 1500;
    quern->frames[1] = 2500;
    quern->frame_count = 2;
    quern->counters[QUERN_HARDWARE_CYCLES] = 1.75;
    quern->counters[QUERN_HARDWARE_TLB_MISSES] = 0;
    add_made_record(&results, "mem", "raw", NULL, 1, 40.25, 0)->is_bytes = true;
    return results;
}

static void write_json(const quern__bench_results *results)
{
    FILE *file = open_text();
    quern__bench_json_write_machine(file, &results->machine);
    for (size_t i = 0; i < results->record_count; i++)
        quern__bench_json_write_record(file, &results->records[i],
                                       quern__bench_results_control(results, &results->records[i]));
    fclose(file);
}

static void expect_same_records(const quern__bench_record *a, const quern__bench_record *b)
{
    cr_expect_str_eq(a->workload, b->workload);
    cr_expect_str_eq(a->subject, b->subject);
    cr_expect_eq(a->control == NULL, b->control == NULL);
    cr_expect_str_eq(a->unit, b->unit);
    cr_expect_eq(a->entity_count, b->entity_count);
    cr_expect_eq(a->thread_count, b->thread_count);
    cr_expect_eq(a->bytes_per_entity, b->bytes_per_entity);
    cr_expect_eq(a->is_bytes, b->is_bytes);
    cr_expect_eq(a->checksum, b->checksum);
    cr_assert_eq(a->sample_count, b->sample_count);
    for (size_t i = 0; i < a->sample_count; i++)
        cr_assert_float_eq(a->samples[i], b->samples[i], a->samples[i] * 1e-6);
    cr_assert_float_eq(a->summary.mad, b->summary.mad, 1e-6);
    cr_assert_eq(a->frame_count, b->frame_count);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        cr_expect(a->counters[i] == b->counters[i] || (isnan(a->counters[i]) && isnan(b->counters[i])));
}

Test(bench_results, json_round_trip)
{
    quern__bench_results results = make_results();
    quern__bench_results back;
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES];
    write_json(&results);
    cr_assert(quern__bench_json_read(text, &back, message), "%s", message);
    cr_assert_eq(back.record_count, results.record_count);
    for (size_t i = 0; i < results.record_count; i++)
        expect_same_records(&results.records[i], &back.records[i]);
    cr_expect_eq(back.records[1].frames[1], 2500);
    cr_expect_str_eq(back.records[1].control, "raw");
    cr_expect_str_eq(back.machine.processor, results.machine.processor);
    cr_expect_eq(back.machine.processor_count, 4);
    cr_expect_eq(back.machine.cache_count, 2);
    cr_expect_eq(back.machine.caches[1].bytes, 1048576);
    cr_expect_str_eq(back.machine.caches[0].name, "own");
    cr_expect_str_eq(back.machine.caches[0].source, "kernel files");
    cr_expect_str_eq(back.machine.caches[1].source, "");
    cr_expect_str_eq(back.machine.commit, "0123456789ab");
    quern__bench_results_close(&results);
    quern__bench_results_close(&back);
    free(text);
}

Test(bench_results, json_has_one_object_on_each_line)
{
    quern__bench_results results = make_results();
    write_json(&results);
    size_t line_count = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1, line_count++)
        cr_expect_eq(line[0], '{');
    cr_expect_eq(line_count, 4);
    cr_expect(strstr(text, "\"ns_per_op\":0.625,") != NULL, "%s", text);
    cr_expect(strstr(text, "\"ratio\":1.25,") != NULL, "%s", text);
    cr_expect(strstr(text, "\"bytes_per_op\":40.25,") != NULL, "%s", text);
    cr_expect(strstr(text, "\"counters\":{\"cycles\":1.75,\"tlb_misses\":0}") != NULL, "%s", text);
    quern__bench_results_close(&results);
    free(text);
}

static void expect_refusal(const char *json, const char *expected)
{
    quern__bench_results results;
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES] = "";
    cr_expect_not(quern__bench_json_read(json, &results, message), "accepted: %s", json);
    cr_expect_str_eq(message, expected);
    cr_expect(results.records == NULL && results.machine.processor == NULL,
              "the results must be empty after a failure");
}

#define MACHINE "{\"type\":\"machine\",\"processor\":\"p\"}\n"
#define CASE    "{\"type\":\"result\",\"workload\":\"w\",\"subject\":\"s\","

Test(bench_results, other_json_is_refused)
{
    expect_refusal("", "the file has no results");
    expect_refusal(MACHINE, "the file has no results");
    expect_refusal("workload,subject\n", "line 1: not JSON; use a file that --json wrote");
    expect_refusal(MACHINE "{\"a\":1}\n",
                   "line 2: the field 'type' is missing; use a file that --json wrote");
    expect_refusal(MACHINE "{\"type\":\"result\",\"subject\":\"s\",\"samples\":[1]}",
                   "line 2: the field 'workload' of a result is missing or wrong");
    expect_refusal(MACHINE "{\"type\":\"result\",\"workload\":\"w\",\"samples\":[1]}",
                   "line 2: the field 'subject' of a result is missing or wrong");
    expect_refusal(MACHINE CASE "\"ns_per_op\":1}",
                   "line 2: the field 'samples' of a result is missing or wrong");
    expect_refusal(MACHINE CASE "\"samples\":[1,\"2\"]}",
                   "line 2: the field 'samples' of a result is missing or wrong");
    expect_refusal(MACHINE CASE "\"samples\":[1,0]}",
                   "line 2: the field 'samples' of a result is missing or wrong");
    expect_refusal(MACHINE CASE "\"samples\":[1]}\n{\"type\":\"res",
                   "line 3: not JSON; use a file that --json wrote");
    expect_refusal(CASE "\"samples\":[1]}",
                   "the line that describes the machine is missing; --json writes it first");
}

Test(bench_results, unknown_line_types_are_ignored)
{
    quern__bench_results results;
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES];
    cr_assert(quern__bench_json_read(MACHINE "\n{\"type\":\"tune\"}\n" CASE "\"samples\":[3]}", &results,
                                     message),
              "%s", message);
    cr_expect_eq(results.record_count, 1);
    cr_expect_eq(results.records[0].summary.median, 3);
    quern__bench_results_close(&results);
}

Test(bench_results, several_runs_in_one_file_are_joined)
{
    quern__bench_results once = make_results();
    write_json(&once);
    char *twice = malloc(2 * text_bytes + 1);
    cr_assert_not_null(twice);
    memcpy(twice, text, text_bytes);
    memcpy(twice + text_bytes, text, text_bytes + 1);
    quern__bench_results back;
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES];
    cr_assert(quern__bench_json_read(twice, &back, message), "%s", message);
    cr_assert_eq(back.record_count, once.record_count);
    cr_assert_eq(back.records[1].sample_count, 18);
    for (size_t i = 0; i < 18; i++)
        cr_assert_float_eq(back.records[1].samples[i], once.records[1].samples[i % 9], 1e-6);
    cr_expect_eq(back.records[1].frame_count, 4);
    cr_expect_eq(back.records[1].frames[3], 2500);
    cr_expect_eq(back.records[0].checksum, back.records[1].checksum);
    cr_expect_neq(back.records[0].checksum, once.records[0].checksum);
    cr_expect_eq(back.records[1].summary.median, once.records[1].summary.median);
    quern__bench_results_close(&once);
    quern__bench_results_close(&back);
    free(twice);
    free(text);
}

Test(bench_results, runs_of_different_machines_or_programs_are_not_joined)
{
    static const char *const fields[][2] = {
        {"\"processor\":\"q\"", "processor"}, {"\"processors\":2", "number of processors"},
        {"\"compiler\":\"c\"", "compiler"},   {"\"flags\":\"-O1\"", "set of flags"},
        {"\"commit\":\"0\"", "commit"},       {"\"checks\":true", "setting of QUERN_CHECKS"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char json[512];
        char expected[160];
        const char *processor = i > 0 ? "\"processor\":\"p\"," : "";
        snprintf(json, sizeof json,
                 MACHINE CASE "\"samples\":[1]}\n{\"type\":\"machine\",%s%s}\n" CASE "\"samples\":[1]}\n",
                 processor, fields[i][0]);
        snprintf(expected, sizeof expected,
                 "line 3: the %s differs from that in an earlier line, so samples cannot be joined; use "
                 "one file for each",
                 fields[i][1]);
        expect_refusal(json, expected);
    }
}

Test(bench_results, csv_has_a_head_and_a_line_for_each_record)
{
    quern__bench_results results = make_results();
    add_made_record(&results, "a, \"b\"", "raw", NULL, 1, 2, 0);
    FILE *file = open_text();
    quern__bench_csv_write_head(file);
    for (size_t i = 0; i < results.record_count; i++)
        quern__bench_csv_write_record(file, &results.records[i],
                                      quern__bench_results_control(&results, &results.records[i]));
    fclose(file);
    cr_expect_str_eq(
        text,
        "workload,subject,control,entities,threads,unit,measure,samples,median,mad,min,max,ratio,"
        "cycles,instructions,l1_misses,l2_misses,llc_misses,tlb_misses,checksum,agrees,"
        "frames,frame_p50_ns,frame_p90_ns,frame_p95_ns,frame_p99_ns,frame_max_ns,ratio_low,ratio_high\n"
        "iter,raw,,1000,1,entity,ns,9,0.5,0.01,0.48,0.52,,,,,,,,fedcba9876543210,,0,,,,,,,\n"
        "iter,quern,raw,1000,1,entity,ns,9,0.625,0.0125,0.6,0.65,1.25,1.75,,,,,0,fedcba9876543210,yes,"
        "2,2000,2400,2450,2490,2500,1.25,1.25\n"
        "mem,raw,,1000,1,entity,bytes,1,40.25,0,40.25,40.25,,,,,,,,fedcba9876543210,,0,,,,,,,\n"
        "\"a, \"\"b\"\"\",raw,,1000,1,entity,ns,1,2,0,2,2,,,,,,,,fedcba9876543210,,0,,,,,,,\n",
        "%s", text);
    quern__bench_results_close(&results);
    free(text);
}

typedef void record_writer(FILE *file, const quern__bench_record *record,
                           const quern__bench_record *control);

static void expect_written(record_writer *write, const quern__bench_results *results, const char *wanted,
                           const char *unwanted)
{
    FILE *file = open_text();
    write(file, &results->records[1], &results->records[0]);
    fclose(file);
    cr_expect(strstr(text, wanted) != NULL, "'%s' is not in: %s", wanted, text);
    cr_expect(unwanted == NULL || strstr(text, unwanted) == NULL, "'%s' is in: %s", unwanted, text);
    free(text);
}

Test(bench_results, wrong_checksum_is_marked_and_has_no_ratio)
{
    quern__bench_results results = make_results();
    expect_written(quern__bench_json_write_record, &results, "\"agrees\":true", NULL);
    expect_written(quern__bench_table_write_record, &results, "1.25  1.25 to 1.25\n", "WRONG");
    expect_written(quern__bench_table_write_record, &results,
                   "of 2 frames 50 % within 2.000 us, 90 % within 2.400 us, 95 % within 2.450 us, 99 % "
                   "within 2.490 us, 100 % "
                   "within 2.500 us\n",
                   NULL);
    results.records[1].checksum++;
    expect_written(quern__bench_json_write_record, &results, "\"agrees\":false", "ratio");
    expect_written(quern__bench_csv_write_record, &results, ",no,", "1.25");
    expect_written(quern__bench_table_write_record, &results, "WRONG", "1.25");
    quern__bench_results_close(&results);
}

Test(bench_results, records_are_found_by_case_and_subject)
{
    quern__bench_results results = make_results();
    const quern__bench_record *quern = &results.records[1];
    cr_expect_eq(quern__bench_results_find(&results, quern), quern);
    cr_expect_eq(quern__bench_results_control(&results, quern), &results.records[0]);
    cr_expect_null(quern__bench_results_control(&results, &results.records[0]));
    quern__bench_record other = *quern;
    other.thread_count = 2;
    cr_expect_null(quern__bench_results_find(&results, &other));
    quern__bench_results_close(&results);
}

/* ------------------------------------------------------------------------------------------ comparison */

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
    char *printed;
    size_t size;
    FILE *file = open_memstream(&printed, &size);
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
        cr_expect(strstr(printed, expected[i]) != NULL, "'%s' is not in:\n%s", expected[i], printed);
    free(printed);
    free(all);
    close_both(&before, &now);
}
