/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_FORECAST_H
#define QUERN_BENCH_HARNESS_FORECAST_H

/* --forecast: captures frames of subjects and computes their expected duration on other numbers of
 * threads. */

#include <stdio.h>

#include "bench/harness/options.h"
#include "bench/harness/results.h"

/* Number of frames captured of each subject, all on the first number of threads. The forecast of a subject
 * is the median of the forecasts from its captures. */
enum { QUERN__BENCH_CAPTURES = 9 };

typedef struct quern__bench_captured {
    const char *workload; /* name as in records; not copied */
    const char *subject;  /* name as in records; not copied */
    uint32_t entity_count;
    uint32_t thread_count; /* threads on which the frames were captured */
    double operations;     /* operations of a frame */
    uint32_t capture_count;
    struct quern_frame_capture *captures[QUERN__BENCH_CAPTURES];
} quern__bench_captured;

typedef struct quern__bench_forecasts {
    quern__bench_captured *items;
    size_t count;
    size_t capacity;
} quern__bench_forecasts;

/* Captures one frame of the subject. Does nothing if the subject was captured with as many entities on
 * another number of threads, or QUERN__BENCH_CAPTURES times. like: names and case of the subject. A failure
 * ends the program with a message. */
void quern__bench_forecasts_capture(quern__bench_forecasts *forecasts, const quern__bench_captured *like,
                                    const quern_bench_subject *subject, void *state);

/* Measures the costs of threads and memory, and writes a table for each captured subject. The table has a
 * line for each number of threads of --forecast and --threads: the forecast, the measured time if there is
 * one, and the error of the forecast. Returns false, with a note, on failure. */
bool quern__bench_forecasts_write(FILE *file, const quern__bench_forecasts *forecasts,
                                  const quern__bench_options *options, const quern__bench_results *results);

void quern__bench_forecasts_close(quern__bench_forecasts *forecasts);

#endif
