/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_MEASURE_H
#define QUERN_BENCH_HARNESS_MEASURE_H

/* Measures one workload in one case: times, or memory; and shows the progress of all cases. */

#include "bench/harness/base.h"
#include "bench/harness/machine.h"
#include "bench/harness/observe.h"
#include "bench/harness/results.h"

/* ------------------------------------------------------------------------------------ progress */

/* Shows the current case and the remaining time in one line on the terminal. Prints nothing if stderr is
 * not a terminal. */

typedef struct quern__bench_progress {
    bool is_shown;
    uint64_t started_ns;
    uint32_t case_count;
    uint32_t done_count; /* number of cases that are done */
} quern__bench_progress;

void quern__bench_progress_begin(quern__bench_progress *progress, uint32_t case_count);

/* Shows the progress. fraction: completed fraction of the current case, 0 to 1. */
void quern__bench_progress_show(const quern__bench_progress *progress, const char *workload,
                                const quern_bench_case *scene, double fraction);

/* Counts a case as done and clears the line, so that the result of the case can be printed. */
void quern__bench_progress_step(quern__bench_progress *progress);

/* Describes the remaining time from the elapsed time and the completed fraction (0 to 1): "about 2 min
 * left"; "" if too little is done. */
enum { QUERN__BENCH_LEFT_TEXT_BYTES = 48 };
void quern__bench_format_left(char text[QUERN__BENCH_LEFT_TEXT_BYTES], double done_fraction,
                              double elapsed_s);

/* ----------------------------------------------------------------------------------- measuring */

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
    quern__bench_forecasts *forecasts;           /* NULL: no frames are captured */
    const quern__bench_progress *progress;
} quern__bench_settings;

/* Returns whether the rounds of a sample are shorter than the resolution of the clock. */
bool quern__bench_is_too_short(double sample_ns, uint32_t round_count);

/* Measures all subjects of the workload and adds one record for each, the control first. */
void quern__bench_measure(quern__bench_results *results, const quern__bench_settings *settings,
                          const quern_bench_workload *workload, const quern_bench_case *scene);

/* Returns the size of the resident set of this process in bytes; 0 if the system does not report it. */
uint64_t quern__bench_resident_bytes(void);

#endif
