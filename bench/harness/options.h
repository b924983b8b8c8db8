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
    uint32_t values[QUERN__BENCH_MAX_LIST]; /* in the order given, each once */
    uint32_t count;
} quern__bench_numbers;

typedef struct quern__bench_names {
    const char *patterns[QUERN__BENCH_MAX_PATTERNS];
    uint32_t count;
} quern__bench_names;

/* Texts are parts of argv. A path of "-" is stdout. */
typedef struct quern__bench_options {
    quern__bench_names workloads;       /* none: all of them */
    quern__bench_names excluded;        /* of those, these are left out */
    quern__bench_numbers thread_counts; /* at least one */
    bool threads_chosen;                /* false: thread_counts is the default */
    quern__bench_numbers entity_counts; /* none: what each workload has by default */
    uint32_t repeat_count;
    uint32_t warm_up_count;
    uint32_t placement_count;
    uint32_t most_passes; /* in a sample */
    double time_s;        /* seconds per case, at least; 0: the duration of the samples */
    bool pin;
    bool frames;
    bool counters;
    bool profile;
    bool list;
    bool help;
    const char *json;                     /* path, or NULL */
    const char *csv;                      /* path, or NULL */
    const char *report;                   /* path, or NULL */
    const char *compare;                  /* path, or NULL */
    quern__bench_numbers forecast_counts; /* threads; none: no forecast */
    const char *trace;                    /* path, or NULL */
    const char *load;                     /* path, or NULL */
    bool fail_slower;
    double noise; /* fraction of a figure below which a difference is not reported */
} quern__bench_options;

/* False when the command line is wrong; the message, one line without an end, says how. argv is changed:
 * lists are cut up in place. */
bool quern__bench_options_parse(quern__bench_options *options, const quern_bench_suite *suite, int argc,
                                char **argv, char message[QUERN__BENCH_MESSAGE_BYTES]);

void quern__bench_options_print_help(const quern_bench_suite *suite);

/* Returns whether the workload is selected, by its name or its alias, which may be NULL. */
bool quern__bench_options_select(const quern__bench_options *options, const char *name, const char *alias);

/* Nothing else may go to stdout. */
bool quern__bench_options_take_stdout(const quern__bench_options *options);

#endif
