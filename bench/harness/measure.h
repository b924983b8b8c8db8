/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MEASURE_H
#define QUERN_BENCH_HARNESS_MEASURE_H

/* Measures one workload in one case. */

#include "bench/harness/counters.h"
#include "bench/harness/profile.h"
#include "bench/harness/progress.h"
#include "bench/harness/results.h"

typedef struct quern__bench_settings {
    const quern_bench_suite *suite;
    uint32_t repeat_count;    /* minimum number of samples of each subject */
    uint32_t warm_up_count;   /* discarded samples at the beginning of each placement */
    uint32_t placement_count; /* number of times that all subjects are opened; at least 1. No more than
                                 repeat_count are used, so that each gives at least one sample. */
    uint32_t max_passes;      /* maximum number of passes in a sample */
    double time_s;            /* minimum duration of the samples of a case in seconds */
    bool frames;              /* whether single frames are timed, too */
    const quern_hardware_source *counter_source; /* NULL: no events are counted */
    const quern__bench_profiles *profiles;       /* NULL: no frames are profiled */
    struct quern__bench_forecasts *forecasts;    /* NULL: no frames are captured */
    const quern__bench_progress *progress;
} quern__bench_settings;

uint32_t quern__bench_subject_count(const quern_bench_workload *workload);

/* Returns whether the rounds of a sample are shorter than the resolution of the clock. */
bool quern__bench_is_too_short(double sample_ns, uint32_t round_count);

/* Measures all subjects of the workload and adds one record for each, the control first. */
void quern__bench_measure(quern__bench_results *results, const quern__bench_settings *settings,
                          const quern_bench_workload *workload, const quern_bench_case *scene);

#endif
