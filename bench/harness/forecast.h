/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_FORECAST_H
#define QUERN_BENCH_HARNESS_FORECAST_H

/* --forecast: captured frames of subjects, and their expected duration on other numbers of threads. */

#include <stdio.h>

#include "bench/harness/options.h"
#include "bench/harness/results.h"

enum { QUERN__BENCH_CAPTURES = 9 }; /* of each subject; the median of their forecasts counts */

typedef struct quern__bench_captured {
    const char *workload; /* as in records; not copied */
    const char *subject;
    uint32_t entity_count;
    uint32_t thread_count;
    double operations; /* of a frame */
    uint32_t capture_count;
    struct quern_frame_capture *captures[QUERN__BENCH_CAPTURES];
} quern__bench_captured;

typedef struct quern__bench_forecasts {
    quern__bench_captured *items;
    size_t count;
    size_t capacity;
} quern__bench_forecasts;

/* Records one frame of the subject, unless that was done for its case with another number of threads, or
 * often enough. like: its names and case. */
void quern__bench_forecasts_capture(quern__bench_forecasts *forecasts, const quern__bench_captured *like,
                                    const quern_bench_subject *subject, void *state);

/* Measures what threads and memory cost, and writes a table for each case: forecasts for the counts asked
 * for and for those that were measured, with what was measured and the error. False, with a note, when
 * something failed. */
bool quern__bench_forecasts_write(FILE *file, const quern__bench_forecasts *forecasts,
                                  const quern__bench_options *options, const quern__bench_results *results);

void quern__bench_forecasts_close(quern__bench_forecasts *forecasts);

#endif
