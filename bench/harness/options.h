/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_OPTIONS_H
#define QUERN_BENCH_HARNESS_OPTIONS_H

/* The command line. */

#include <stdbool.h>
#include <stdint.h>

#include "bench/harness/base.h"

enum {
    QUERN__BENCH_MAX_PATTERNS = 64,
    QUERN__BENCH_MAX_LIST = 64,
    QUERN__BENCH_MESSAGE_BYTES = 256,
};

typedef struct quern__bench_numbers {
    uint32_t values[QUERN__BENCH_MAX_LIST]; /* different numbers, in the order of the command line */
    uint32_t count;
} quern__bench_numbers;

typedef struct quern__bench_names {
    const char *patterns[QUERN__BENCH_MAX_PATTERNS];
    uint32_t count;
} quern__bench_names;

/* The texts are parts of argv. The path "-" means stdout. */
typedef struct quern__bench_options {
    quern__bench_names workloads;       /* patterns of workloads to run; none: all workloads */
    quern__bench_names excluded;        /* patterns of workloads to leave out */
    quern__bench_numbers thread_counts; /* at least one */
    bool threads_chosen;                /* false: thread_counts is the default */
    quern__bench_numbers entity_counts; /* none: each workload has its default sizes */
    uint32_t repeat_count;
    uint32_t warm_up_count;
    uint32_t placement_count;
    uint32_t max_passes;  /* maximum number of passes in a sample */
    double time_s;        /* minimum duration of a case in seconds; 0: repeat_count alone decides */
    uint32_t crowd_count; /* busy threads beside each case */
    bool pin;
    bool frames;
    bool counters;
    bool profile;
    bool list;
    bool info;
    bool help;
    const char *json;                     /* path, or NULL */
    const char *csv;                      /* path, or NULL */
    const char *report;                   /* path, or NULL */
    const char *sweep;                    /* path, or NULL; then `report` is the same */
    const char *compare;                  /* path, or NULL */
    quern__bench_numbers forecast_counts; /* numbers of threads to forecast; none: no forecast */
    const char *trace;                    /* path, or NULL */
    const char *load;                     /* path, or NULL */
    bool fail_slower;
    double noise; /* smallest change that is reported, as a fraction of the figure */
} quern__bench_options;

/* Parses the command line. Returns false if it is wrong, with a message of one line without a line feed.
 * Modifies argv: lists are split in place. */
bool quern__bench_options_parse(quern__bench_options *options, const quern_bench_suite *suite, int argc,
                                char **argv, char message[QUERN__BENCH_MESSAGE_BYTES]);

void quern__bench_options_print_help(const quern_bench_suite *suite);

/* Returns whether the workload is selected, by its name or its alias, which may be NULL. */
bool quern__bench_options_select(const quern__bench_options *options, const char *name, const char *alias);

/* Returns whether results as JSON, CSV or HTML go to stdout, so that nothing else may be written there. */
bool quern__bench_options_use_stdout(const quern__bench_options *options);

#endif
