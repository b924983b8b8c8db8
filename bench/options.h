/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_OPTIONS_H
#define QUERN_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/harness.h"

enum { BENCH_MAX_PATTERNS = 64, BENCH_MAX_THREAD_COUNTS = 64 };

typedef struct bench_options {
    char *patterns[BENCH_MAX_PATTERNS]; /* of workload names; none: all of them */
    uint32_t pattern_count;
    uint32_t thread_counts[BENCH_MAX_THREAD_COUNTS]; /* in the order given, each once */
    uint32_t thread_count_count;
    uint32_t entity_count; /* 0: what each workload has by default */
    uint32_t repeat_count;
    bool json;
    bool list; /* print the workloads and do nothing else */
} bench_options;

/* The name under which the workload was chosen, its own or its alias; NULL when it was not. */
const char *bench_options_select(const bench_options *options, const bench_workload *workload);

/* Ends the program with status 2 and a message when the command line is wrong, and with status 0 after
 * --help. */
bench_options bench_options_parse(int argc, char **argv);

#endif
