/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/gate.h"

static void note_uncompared(const quern__bench_record *record, const char *verdict, const char *reason)
{
    char text[QUERN__BENCH_CASE_TEXT_BYTES];
    quern__bench_format_case(text, record);
    quern__bench_note("--fail-slower ignores %s: %s%s%s", text, verdict, reason != NULL ? ": " : "",
                      reason != NULL ? reason : "");
}

static void note_missing(const quern__bench_results *before, const quern__bench_results *now)
{
    for (size_t i = 0; i < before->record_count; i++) {
        const quern__bench_record *record = &before->records[i];
        if (quern__bench_results_find(now, record) == NULL &&
            !quern__bench_results_is_control(before, record))
            note_uncompared(record, "not measured now", NULL);
    }
}

static bool is_compared(const quern__bench_comparison *comparison)
{
    return comparison->verdict == QUERN__BENCH_FASTER || comparison->verdict == QUERN__BENCH_SLOWER ||
           comparison->verdict == QUERN__BENCH_WITHIN_NOISE;
}

int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now)
{
    size_t compared_count = 0;
    for (size_t i = 0; i < now->record_count; i++) {
        const quern__bench_comparison *comparison = &comparisons[i];
        if (quern__bench_results_is_control(now, comparison->now)) continue;
        if (is_compared(comparison))
            compared_count++;
        else
            note_uncompared(comparison->now,
                            quern__bench_verdict_text(comparison->verdict, comparison->now->is_bytes),
                            comparison->reason);
    }
    note_missing(before, now);
    if (compared_count == 0) {
        quern__bench_note(
            "--fail-slower: no result could be compared; measure workloads and sizes that are in the file");
        return QUERN_BENCH_EXIT_FAILED;
    }
    return quern__bench_count_verdicts(comparisons, now, QUERN__BENCH_SLOWER) > 0 ? QUERN_BENCH_EXIT_SLOWER
                                                                                  : QUERN_BENCH_EXIT_OK;
}
