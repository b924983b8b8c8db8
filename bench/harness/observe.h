/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_OBSERVE_H
#define QUERN_BENCH_HARNESS_OBSERVE_H

/* What the options --forecast, --profile and --trace see of frames that are run for them alone. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <quern/bench.h>
#include <quern/hardware.h>
#include <quern/profile.h>

#include "bench/harness/options.h"
#include "bench/harness/results.h"

/* ----------------------------------------------------------------------------------------- forecast */

/* --forecast: captures frames of subjects and computes their expected duration on other numbers of
 * threads. */

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
    /* set by quern__bench_forecasts_compute: one for each number of threads, ascending */
    uint32_t forecast_count;
    quern_forecast forecasts[2 * QUERN__BENCH_MAX_LIST];
} quern__bench_captured;

typedef struct quern__bench_forecasts {
    quern__bench_captured *items;
    size_t count;
    size_t capacity;
    quern_forecast_costs costs; /* set by quern__bench_forecasts_compute */
} quern__bench_forecasts;

/* Captures one frame of the subject. Does nothing if the subject was captured with as many entities on
 * another number of threads, or QUERN__BENCH_CAPTURES times. like: names and case of the subject. A failure
 * ends the program with a message. */
void quern__bench_forecasts_capture(quern__bench_forecasts *forecasts, const quern__bench_captured *like,
                                    const quern_bench_subject *subject, void *state);

/* Measures the costs of threads and memory, and forecasts each captured subject on the numbers of threads of --forecast
 * and --threads. Returns false, with a note, on failure. */
bool quern__bench_forecasts_compute(quern__bench_forecasts *forecasts, const quern__bench_options *options);

/* Writes a table for each captured subject, with a line for each number of threads: the forecast, the measured time if
 * there is one, and the error of the forecast. */
void quern__bench_forecasts_write(FILE *file, const quern__bench_forecasts *forecasts,
                                  const quern__bench_results *results);

void quern__bench_forecasts_close(quern__bench_forecasts *forecasts);

/* ------------------------------------------------------------------------------------------ profile */

/* --profile: profiles of the frames of subjects that have set their schedule. */

/* Returns the schedule that quern_bench_set_schedule was given since the last call of this function; NULL
 * if it was not called. */
struct quern_schedule *quern__bench_take_schedule(void);

/* The tables of all profiles, in a text that grows while workloads are measured. */
typedef struct quern__bench_profiles {
    FILE *file; /* stream that writes to `text`; NULL: profiling is off */
    char *text;
    size_t bytes;                        /* size of the text */
    const quern_hardware_source *source; /* NULL: no hardware counters */
} quern__bench_profiles;

/* Opens an empty text. Returns false, with a note, if memory is exhausted. */
bool quern__bench_profiles_open(quern__bench_profiles *profiles, const quern_hardware_source *source);

/* Start switches the profile of the schedule on. Finish switches it off and appends a heading and the
 * schedule's table to the text. */
void quern__bench_profiles_start(const quern__bench_profiles *profiles, struct quern_schedule *schedule);
void quern__bench_profiles_finish(const quern__bench_profiles *profiles, struct quern_schedule *schedule,
                                  const char *workload, const char *subject, const quern_bench_case *scene);

/* Writes the text to the file; prints a note if no schedule was profiled. */
void quern__bench_profiles_write(quern__bench_profiles *profiles, FILE *file);

void quern__bench_profiles_close(quern__bench_profiles *profiles);

/* -------------------------------------------------------------------------------------------- trace */

/* The trace of the option --trace. Subjects get it from quern_bench_trace(). */

/* Creates the trace, for pools of up to thread_count threads. Returns false, with a note, if memory is
 * exhausted. */
bool quern__bench_tracing_open(uint32_t thread_count);
void quern__bench_tracing_close(void);

/* Call these functions before and after the traced work. Starting drops earlier events. */
void quern__bench_tracing_start(void);
void quern__bench_tracing_stop(void);

/* Writes the events as JSON. Returns false, with a note, if the file cannot be written. */
bool quern__bench_tracing_write(const char *path);

#endif
