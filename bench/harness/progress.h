/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PROGRESS_H
#define QUERN_BENCH_HARNESS_PROGRESS_H

/* Shows the current case and the remaining time in one line on the terminal. Prints nothing if stderr is
 * not a terminal. */

#include "bench/harness/base.h"

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

#endif
