/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

quern__bench_record *quern__bench_results_add(quern__bench_results *results,
                                              const quern__bench_record *record)
{
    results->records = quern__bench_grow(results->records, results->record_count, &results->record_capacity,
                                         sizeof *results->records);
    quern__bench_record *added = &results->records[results->record_count++];
    *added = *record;
    return added;
}

void quern__bench_record_close(quern__bench_record *record)
{
    free(record->workload);
    free(record->subject);
    free(record->control);
    free(record->unit);
    free(record->samples);
    free(record->frames);
    *record = (quern__bench_record){0};
}

void quern__bench_results_close(quern__bench_results *results)
{
    for (size_t i = 0; i < results->record_count; i++)
        quern__bench_record_close(&results->records[i]);
    free(results->records);
    quern__bench_machine_close(&results->machine);
    *results = (quern__bench_results){0};
}

static const quern__bench_record *find(const quern__bench_results *results, const quern__bench_record *like,
                                       const char *subject)
{
    for (size_t i = 0; i < results->record_count; i++) {
        const quern__bench_record *record = &results->records[i];
        if (record->entity_count == like->entity_count && record->thread_count == like->thread_count &&
            strcmp(record->subject, subject) == 0 && strcmp(record->workload, like->workload) == 0)
            return record;
    }
    return NULL;
}

const quern__bench_record *quern__bench_results_find(const quern__bench_results *results,
                                                     const quern__bench_record *like)
{
    return find(results, like, like->subject);
}

const quern__bench_record *quern__bench_results_control(const quern__bench_results *results,
                                                        const quern__bench_record *record)
{
    return record->control != NULL ? find(results, record, record->control) : NULL;
}

bool quern__bench_results_is_control(const quern__bench_results *results, const quern__bench_record *record)
{
    for (size_t i = 0; i < results->record_count; i++)
        if (quern__bench_results_control(results, &results->records[i]) == record) return true;
    return false;
}

void quern__bench_format_case(char text[QUERN__BENCH_CASE_TEXT_BYTES], const quern__bench_record *record)
{
    snprintf(text, QUERN__BENCH_CASE_TEXT_BYTES, "%s, %" PRIu32 " entities, %" PRIu32 " thread%s, %s",
             record->workload, record->entity_count, record->thread_count,
             record->thread_count == 1 ? "" : "s", record->subject);
}

bool quern__bench_record_agrees(const quern__bench_record *record, const quern__bench_record *control)
{
    return control == NULL || control->checksum == record->checksum;
}

double quern__bench_record_ratio(const quern__bench_record *record, const quern__bench_record *control)
{
    if (control == NULL || !quern__bench_record_agrees(record, control)) return NAN;
    return record->summary.median / control->summary.median;
}

const double quern__bench_frame_percentiles[QUERN__BENCH_FRAME_PERCENTILE_COUNT] = {0.5, 0.9, 0.95, 0.99,
                                                                                    1};

void quern__bench_record_frames(const quern__bench_record *record,
                                double times_ns[QUERN__BENCH_FRAME_PERCENTILE_COUNT])
{
    for (int i = 0; i < QUERN__BENCH_FRAME_PERCENTILE_COUNT; i++)
        times_ns[i] = record->frame_count > 0 ? quern__bench_quantile(record->frames, record->frame_count,
                                                                      quern__bench_frame_percentiles[i])
                                              : NAN;
}

bool quern__bench_record_has_counters(const quern__bench_record *record)
{
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (!isnan(record->counters[i])) return true;
    return false;
}

const char *quern__bench_record_measure(const quern__bench_record *record)
{
    return record->is_bytes ? "bytes" : "ns";
}
