/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MEASURE_H
#define QUERN_BENCH_HARNESS_MEASURE_H

/* Measuring one workload in one case. */

#include "bench/harness/counters.h"
#include "bench/harness/profile.h"
#include "bench/harness/progress.h"
#include "bench/harness/results.h"

typedef struct quern__bench_settings {
    const quern_bench_suite *suite;
    uint32_t repeat_count;
    uint32_t warm_up_count;   /* rounds in each placement */
    uint32_t placement_count; /* at least 1; each gives one sample at least */
    uint32_t most_passes;     /* in a sample */
    double time_s;            /* go on taking samples for this long */
    bool frames;
    const quern_hardware_source *counter_source; /* NULL: count nothing */
    const quern__bench_profiles *profiles;       /* NULL: profile nothing */
    struct quern__bench_forecasts *forecasts;    /* NULL: record nothing */
    const quern__bench_progress *progress;
} quern__bench_settings;

uint32_t quern__bench_subject_count(const quern_bench_workload *workload);

/* Returns whether the rounds of a sample are shorter than the resolution of the clock. */
bool quern__bench_is_too_short(double sample_ns, uint32_t round_count);

/* Adds one record for each subject, the control first. */
void quern__bench_measure(quern__bench_results *results, const quern__bench_settings *settings,
                          const quern_bench_workload *workload, const quern_bench_case *scene);

#endif
