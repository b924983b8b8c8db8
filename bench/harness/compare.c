/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Comparisons with an earlier run: verdicts, the drift of the machine, the table, and the exit status. */
#include "bench/harness/compare.h"

#include "bench/harness/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ verdicts */

const char *quern__bench_verdict_text(quern__bench_verdict verdict, bool is_bytes)
{
    switch (verdict) {
    case QUERN__BENCH_FASTER:
        return is_bytes ? "smaller" : "faster";
    case QUERN__BENCH_SLOWER:
        return is_bytes ? "larger" : "slower";
    case QUERN__BENCH_TOO_FEW:
        return "too few samples";
    case QUERN__BENCH_NOT_COMPARABLE:
        return "not comparable";
    case QUERN__BENCH_NEW:
        return "new";
    default:
        return "within noise";
    }
}

/* Returns the verdict on a change. low, high: the ends of the interval of the change, now / before. */
static quern__bench_verdict judge(double low, double high, double noise)
{
    if (low > 1 + noise) return QUERN__BENCH_SLOWER;
    return high < 1 / (1 + noise) ? QUERN__BENCH_FASTER : QUERN__BENCH_WITHIN_NOISE;
}

/* Compares memory. A record of memory has a single sample, so no test is possible. */
static void compare_bytes(quern__bench_comparison *comparison, double noise)
{
    comparison->before_figure = comparison->before->summary.median;
    comparison->now_figure = comparison->now->summary.median;
    const double change = comparison->now_figure / comparison->before_figure;
    if (comparison->before_figure > 0)
        comparison->verdict = judge(change, change, noise);
    else if (comparison->now_figure > 0)
        comparison->verdict = QUERN__BENCH_SLOWER;
}

/* Returns the values of a record that are compared, to be released with free(): the samples or, with a
 * control, their ratios to the samples of the control. */
static double *compared_samples(const quern__bench_record *record, const quern__bench_record *control,
                                size_t *count)
{
    *count = record->sample_count;
    if (control != NULL && control->sample_count < *count) *count = control->sample_count;
    double *samples = quern_bench_allocate(*count, sizeof *samples);
    for (size_t i = 0; i < *count; i++)
        samples[i] = record->samples[i] / (control != NULL ? control->samples[i] : 1);
    return samples;
}

static void compare_times(quern__bench_comparison *comparison, const quern__bench_record *control_before,
                          const quern__bench_record *control_now, double noise)
{
    size_t before_count;
    size_t now_count;
    double *before = compared_samples(comparison->before, control_before, &before_count);
    double *now = compared_samples(comparison->now, control_now, &now_count);
    const quern__bench_difference difference =
        quern__bench_compare_samples(before, before_count, now, now_count, QUERN__BENCH_ALPHA);
    comparison->is_tested = true;
    comparison->before_figure = quern__bench_summarise(before, before_count).median;
    comparison->now_figure = quern__bench_summarise(now, now_count).median;
    comparison->difference = difference;
    if (difference.least_p >= QUERN__BENCH_ALPHA)
        comparison->verdict = QUERN__BENCH_TOO_FEW;
    else if (difference.p < QUERN__BENCH_ALPHA)
        comparison->verdict = judge(difference.low, difference.high, noise);
    free(before);
    free(now);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns why two records of the same case cannot be compared; NULL if they can. */
static const char *find_reason(const quern__bench_record *before, const quern__bench_record *control_before,
                               const quern__bench_record *now, const quern__bench_record *control_now)
{
    if (before->is_bytes != now->is_bytes) return "one is a time, the other a size in bytes";
    if (!same_text(before->unit, now->unit)) return "the unit was different before";
    if (!same_text(before->control, now->control)) return "the control was different before";
    if ((control_before == NULL) != (control_now == NULL)) return "the results of its control are missing";
    if (!quern__bench_record_agrees(now, control_now)) return "its checksum differs from its control's";
    if (!quern__bench_record_agrees(before, control_before))
        return "its checksum differed from its control's before";
    return NULL;
}

quern__bench_comparison quern__bench_compare(const quern__bench_results *before,
                                             const quern__bench_results *now,
                                             const quern__bench_record *record, double noise)
{
    quern__bench_comparison comparison = {.before = quern__bench_results_find(before, record),
                                          .now = record};
    if (comparison.before == NULL) {
        comparison.verdict = QUERN__BENCH_NEW;
        return comparison;
    }
    const quern__bench_record *control_before = quern__bench_results_control(before, comparison.before);
    const quern__bench_record *control_now = quern__bench_results_control(now, record);
    comparison.reason = find_reason(comparison.before, control_before, record, control_now);
    if (comparison.reason != NULL) {
        comparison.verdict = QUERN__BENCH_NOT_COMPARABLE;
        return comparison;
    }
    comparison.by_ratio = control_now != NULL && !record->is_bytes;
    if (record->is_bytes)
        compare_bytes(&comparison, noise);
    else
        compare_times(&comparison, control_before, control_now, noise);
    return comparison;
}

/* --------------------------------------------------------------------------------------------- drift */

/* Gathers the changes of the times of controls on thread_count threads (0: on any number of threads).
 * Returns their number. `changes` has room for all records. */
static size_t gather_changes(const quern__bench_comparison *comparisons, const quern__bench_results *now,
                             uint32_t thread_count, double *changes)
{
    size_t count = 0;
    for (size_t i = 0; i < now->record_count; i++) {
        const quern__bench_comparison *comparison = &comparisons[i];
        const bool has_threads = thread_count == 0 || comparison->now->thread_count == thread_count;
        if (comparison->is_tested && has_threads && quern__bench_results_is_control(now, comparison->now))
            changes[count++] = comparison->difference.ratio;
    }
    return count;
}

quern__bench_drift quern__bench_find_drift(const quern__bench_comparison *comparisons,
                                           const quern__bench_results *now, uint32_t thread_count)
{
    quern__bench_drift drift = {.least = 1, .median = 1, .greatest = 1};
    double *changes = quern_bench_allocate(now->record_count, sizeof *changes);
    drift.control_count = gather_changes(comparisons, now, thread_count, changes);
    if (drift.control_count == 0) drift.control_count = gather_changes(comparisons, now, 0, changes);
    if (drift.control_count > 0) {
        const quern__bench_summary summary = quern__bench_summarise(changes, drift.control_count);
        drift.least = summary.min;
        drift.median = summary.median;
        drift.greatest = summary.max;
    }
    free(changes);
    return drift;
}

/* Returns the verdict that remains if `change` of the difference is due to the machine. */
static quern__bench_verdict judge_against(const quern__bench_difference *difference, double change,
                                          double noise)
{
    return judge(difference->low / change, difference->high / change, noise);
}

/* Makes a record without a control not comparable if its verdict does not hold relative to the drift. */
static void check_against_drift(quern__bench_comparison *comparison, const quern__bench_drift *drift,
                                double noise)
{
    const quern__bench_difference *difference = &comparison->difference;
    const quern__bench_verdict verdict = comparison->verdict;
    if (!comparison->is_tested || verdict == QUERN__BENCH_TOO_FEW) return;
    if (verdict == QUERN__BENCH_WITHIN_NOISE
            ? judge_against(difference, drift->median, noise) == verdict
            : judge_against(difference, drift->least, noise) == verdict &&
                  judge_against(difference, drift->greatest, noise) == verdict)
        return;
    comparison->verdict = QUERN__BENCH_NOT_COMPARABLE;
    comparison->reason = "it has no control, and controls of other workloads changed, too";
}

static bool has_control(const quern__bench_results *now, const quern__bench_record *record)
{
    return record->control != NULL || quern__bench_results_is_control(now, record);
}

quern__bench_comparison *quern__bench_compare_all(const quern__bench_results *before,
                                                  const quern__bench_results *now, double noise)
{
    quern__bench_comparison *comparisons = quern_bench_allocate(now->record_count, sizeof *comparisons);
    for (size_t i = 0; i < now->record_count; i++)
        comparisons[i] = quern__bench_compare(before, now, &now->records[i], noise);
    for (size_t i = 0; i < now->record_count; i++) {
        if (has_control(now, &now->records[i])) continue;
        const quern__bench_drift drift =
            quern__bench_find_drift(comparisons, now, now->records[i].thread_count);
        check_against_drift(&comparisons[i], &drift, noise);
    }
    return comparisons;
}

size_t quern__bench_count_verdicts(const quern__bench_comparison *comparisons,
                                   const quern__bench_results *now, quern__bench_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < now->record_count; i++)
        if (comparisons[i].verdict == verdict && !quern__bench_results_is_control(now, comparisons[i].now))
            count++;
    return count;
}

/* ------------------------------------------------------------------------------------------- writing */

static void write_comparison(FILE *file, const quern__bench_comparison *comparison, bool is_control)
{
    const quern__bench_record *now = comparison->now;
    char before_text[QUERN__BENCH_FIGURE_BYTES] = "";
    char now_text[QUERN__BENCH_FIGURE_BYTES] = "";
    if (comparison->before_figure > 0) {
        quern__bench_format_figure(before_text, comparison->before_figure);
        quern__bench_format_figure(now_text, comparison->now_figure);
    }
    const char *figure = comparison->by_ratio ? "ratio" : quern__bench_record_measure(now);
    fprintf(file, "%-18s %9" PRIu32 " %7" PRIu32 " %-8s %-6s %10s %10s", now->workload, now->entity_count,
            now->thread_count, now->subject, figure, before_text, now_text);
    const quern__bench_difference *difference = &comparison->difference;
    char interval[64] = "anything";
    if (comparison->is_tested && isfinite(difference->high))
        snprintf(interval, sizeof interval, "%.3f to %.3f", difference->low, difference->high);
    if (comparison->is_tested)
        fprintf(file, " %8.3f  %-16s %9.2g", difference->ratio, interval, difference->p);
    else if (comparison->before_figure > 0)
        fprintf(file, " %8.3f  %-16s %9s", comparison->now_figure / comparison->before_figure, "", "");
    else
        fprintf(file, " %8s  %-16s %9s", "", "", "");
    fprintf(file, "  %s%s%s%s\n", quern__bench_verdict_text(comparison->verdict, now->is_bytes),
            comparison->reason != NULL ? ": " : "", comparison->reason != NULL ? comparison->reason : "",
            is_control ? " (control)" : "");
}

static void warn_of_difference(FILE *file, const char *what, const char *before, const char *now)
{
    if (strcmp(before, now) != 0)
        fprintf(file, "WARNING   the %s was different before: %s\n", what, before);
}

static void write_warnings(FILE *file, const quern__bench_machine *before, const quern__bench_machine *now)
{
    warn_of_difference(file, "processor", before->processor, now->processor);
    warn_of_difference(file, "compiler", before->compiler, now->compiler);
    warn_of_difference(file, "set of flags", before->flags, now->flags);
    if (before->processor_count != now->processor_count)
        fprintf(file, "WARNING   the number of processors was different before: %" PRIu32 "\n",
                before->processor_count);
    if (before->checks != now->checks)
        fprintf(file, "WARNING   built with%s QUERN_CHECKS before\n", before->checks ? "" : "out");
}

static bool any_lacks_control(const quern__bench_comparison *comparisons, const quern__bench_results *now)
{
    for (size_t i = 0; i < now->record_count; i++)
        if (comparisons[i].is_tested && !has_control(now, comparisons[i].now)) return true;
    return false;
}

/* Writes how the machine has changed. Warns only if times were compared: ratios are not affected. */
static void write_drift(FILE *file, const quern__bench_comparison *comparisons,
                        const quern__bench_results *now, double noise)
{
    const quern__bench_drift drift = quern__bench_find_drift(comparisons, now, 0);
    if (drift.control_count == 0) {
        if (any_lacks_control(comparisons, now))
            fputs("WARNING   no control was compared, so changes of the machine may look like changes of "
                  "the program\n",
                  file);
        return;
    }
    fprintf(file, "times of the controls, now / before: %.3g (%.3g to %.3g)\n", drift.median, drift.least,
            drift.greatest);
    if (judge(drift.median, drift.median, noise) != QUERN__BENCH_WITHIN_NOISE)
        fputs("WARNING   the speed of the machine has changed: compare ratios, not times\n", file);
}

void quern__bench_write_comparisons(FILE *file, const quern__bench_comparison *comparisons,
                                    const quern__bench_results *before, const quern__bench_results *now,
                                    const char *path, double noise)
{
    fprintf(file, "\ncompared with %s (%s, commit %s)\n", path, before->machine.date,
            before->machine.commit);
    fprintf(
        file,
        "change: now / before, of the ratio to the control (for a control, of its time); Hodges-Lehmann\n"
        "estimate with its %g %% interval. p: Mann-Whitney U, two-sided. faster or slower: p < %g, and\n"
        "the whole interval is more than %g %% away from 1.\n",
        100 * (1 - QUERN__BENCH_ALPHA), QUERN__BENCH_ALPHA, 100 * noise);
    write_warnings(file, &before->machine, &now->machine);
    write_drift(file, comparisons, now, noise);
    fprintf(file, "\n%-18s %9s %7s %-8s %-6s %10s %10s %8s  %-16s %9s  %s\n", "workload", "entities",
            "threads", "subject", "figure", "before", "now", "change", "interval", "p", "verdict");
    for (size_t i = 0; i < now->record_count; i++)
        write_comparison(file, &comparisons[i], quern__bench_results_is_control(now, comparisons[i].now));
    for (size_t i = 0; i < before->record_count; i++) {
        const quern__bench_record *record = &before->records[i];
        if (quern__bench_results_find(now, record) == NULL)
            fprintf(file, "%-18s %9" PRIu32 " %7" PRIu32 " %-8s not measured now\n", record->workload,
                    record->entity_count, record->thread_count, record->subject);
    }
    fprintf(file, "\n%zu faster, %zu slower, %zu within noise\n",
            quern__bench_count_verdicts(comparisons, now, QUERN__BENCH_FASTER),
            quern__bench_count_verdicts(comparisons, now, QUERN__BENCH_SLOWER),
            quern__bench_count_verdicts(comparisons, now, QUERN__BENCH_WITHIN_NOISE));
    fflush(file);
}

/* --------------------------------------------------------------------------------------------- gate */

static void note_uncompared(const quern__bench_record *record, const char *verdict, const char *reason)
{
    char text[QUERN__BENCH_CASE_TEXT_BYTES];
    quern__bench_format_case(text, record);
    quern__bench_note("--fail-slower ignores %s: %s%s%s", text, verdict, reason != NULL ? ": " : "",
                      reason != NULL ? reason : "");
}

int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now)
{
    size_t compared_count = 0;
    for (size_t i = 0; i < now->record_count; i++) {
        const quern__bench_comparison *comparison = &comparisons[i];
        if (quern__bench_results_is_control(now, comparison->now)) continue;
        const quern__bench_verdict verdict = comparison->verdict;
        if (verdict == QUERN__BENCH_FASTER || verdict == QUERN__BENCH_SLOWER ||
            verdict == QUERN__BENCH_WITHIN_NOISE)
            compared_count++;
        else
            note_uncompared(comparison->now, quern__bench_verdict_text(verdict, comparison->now->is_bytes),
                            comparison->reason);
    }
    for (size_t i = 0; i < before->record_count; i++) {
        const quern__bench_record *record = &before->records[i];
        if (quern__bench_results_find(now, record) == NULL &&
            !quern__bench_results_is_control(before, record))
            note_uncompared(record, "not measured now", NULL);
    }
    if (compared_count == 0) {
        quern__bench_note(
            "--fail-slower: no result could be compared; measure workloads and sizes that are in the file");
        return QUERN_BENCH_EXIT_FAILED;
    }
    return quern__bench_count_verdicts(comparisons, now, QUERN__BENCH_SLOWER) > 0 ? QUERN_BENCH_EXIT_SLOWER
                                                                                  : QUERN_BENCH_EXIT_OK;
}
