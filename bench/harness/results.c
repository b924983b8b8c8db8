/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Results, and how far they can be trusted. */
#include "bench/harness/results.h"

#include "bench/harness/base.h"

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

/* With fewer samples, no interval has this confidence: all n samples are on one side of the median with
 * probability 2 / 2^n, which is above 0.05 for n = 5. */
enum { MIN_SAMPLES = 6, DRAW_COUNT = 1000 };

/* ------------------------------------------------------------------------------------------- intervals */

/* Returns the next number of the generator SplitMix64 (Steele, Lea, Flood; Vigna). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

typedef struct drawing {
    double *samples; /* count elements */
    size_t count;
} drawing;

static drawing drawing_open(const quern__bench_record *record)
{
    return (drawing){quern_bench_allocate(record->sample_count, sizeof(double)), record->sample_count};
}

/* Draws samples with replacement and returns the ratio of their medians. */
static double draw_ratio(const quern__bench_record *record, const quern__bench_record *control,
                         drawing *mine, drawing *theirs, uint64_t *random)
{
    for (size_t i = 0; i < mine->count || i < theirs->count; i++) {
        const uint64_t number = next_random(random);
        if (i < mine->count) mine->samples[i] = record->samples[number % mine->count];
        if (i < theirs->count) theirs->samples[i] = control->samples[number % theirs->count];
    }
    return quern__bench_quantile(mine->samples, mine->count, 0.5) /
           quern__bench_quantile(theirs->samples, theirs->count, 0.5);
}

static void find_interval(quern__bench_trust *trust, const quern__bench_record *record,
                          const quern__bench_record *control)
{
    double ratios[DRAW_COUNT];
    drawing mine = drawing_open(record), theirs = drawing_open(control);
    uint64_t random = 0;
    for (int i = 0; i < DRAW_COUNT; i++)
        ratios[i] = draw_ratio(record, control, &mine, &theirs, &random);
    trust->low = quern__bench_quantile(ratios, DRAW_COUNT, (1 - QUERN__BENCH_CONFIDENCE) / 2);
    trust->high = quern__bench_quantile(ratios, DRAW_COUNT, (1 + QUERN__BENCH_CONFIDENCE) / 2);
    free(mine.samples);
    free(theirs.samples);
}

/* Returns whether the record has equal numbers of bytes in all samples. A few samples are then enough. */
static bool is_constant(const quern__bench_record *record)
{
    return record->is_bytes && record->summary.min == record->summary.max;
}

quern__bench_trust quern__bench_judge(const quern__bench_record *record, const quern__bench_record *control)
{
    quern__bench_trust trust = {
        .ratio = quern__bench_record_ratio(record, control), .low = NAN, .high = NAN};
    if (!isfinite(trust.ratio)) return trust;
    const bool has_few_samples = record->sample_count < MIN_SAMPLES || control->sample_count < MIN_SAMPLES;
    if (is_constant(record) && is_constant(control)) {
        trust.low = trust.high = trust.ratio;
    } else if (has_few_samples) {
        trust.low = 0;
        trust.high = INFINITY;
    } else {
        find_interval(&trust, record, control);
    }
    trust.is_unclear = trust.low <= 1 && trust.high >= 1;
    return trust;
}

/* ---------------------------------------------------------------------------------------------- steadiness */

double quern__bench_record_spread(const quern__bench_record *record)
{
    return record->summary.mad > 0 ? record->summary.mad / record->summary.median : 0;
}

quern__bench_steadiness quern__bench_assess_controls(const quern__bench_results *results)
{
    quern__bench_steadiness steadiness = {0};
    for (size_t i = 0; i < results->record_count; i++) {
        const quern__bench_record *record = &results->records[i];
        if (!quern__bench_results_is_control(results, record)) continue;
        const double spread = quern__bench_record_spread(record);
        steadiness.control_count++;
        steadiness.unsteady_count += spread > QUERN__BENCH_SPREAD_LIMIT;
        if (steadiness.worst == NULL || spread > quern__bench_record_spread(steadiness.worst))
            steadiness.worst = record;
    }
    return steadiness;
}

void quern__bench_format_steadiness(char text[QUERN__BENCH_STEADINESS_TEXT_BYTES],
                                    const quern__bench_steadiness *steadiness)
{
    text[0] = '\0';
    if (steadiness->unsteady_count == 0) return;
    char worst[QUERN__BENCH_CASE_TEXT_BYTES];
    quern__bench_format_case(worst, steadiness->worst);
    snprintf(text, QUERN__BENCH_STEADINESS_TEXT_BYTES,
             "%zu of %zu controls spread by more than %g %% of their median (most: %s, %.0f %%): the "
             "machine was "
             "busy, or the samples are too short; do not trust the ratios of these cases, and measure them "
             "again",
             steadiness->unsteady_count, steadiness->control_count, 100 * QUERN__BENCH_SPREAD_LIMIT, worst,
             100 * quern__bench_record_spread(steadiness->worst));
}
