/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_SUITE_H
#define QUERN_BENCH_HARNESS_SUITE_H

/* The tables that describe workloads. */

#include "bench/harness/options.h"
#include "bench/harness/results.h"

/* Returns the suite with defaults instead of zeros. */
quern_bench_suite quern__bench_suite_fill(const quern_bench_suite *suite);

/* Of the workload's subject, by the workload or by the suite. */
const char *quern__bench_subject_name(const quern_bench_suite *suite, const quern_bench_workload *workload,
                                      uint32_t index);

/* False, with one line of message, when the suite cannot be measured. */
bool quern__bench_suite_check(const quern_bench_suite *suite, char message[QUERN__BENCH_MESSAGE_BYTES]);

/* To stdout. */
void quern__bench_suite_list(const quern_bench_suite *suite);

/* Results of which files know a workload by its alias get its own name: so they were written once. */
void quern__bench_suite_rename(const quern_bench_suite *suite, quern__bench_results *results);

/* Leaves those that -w, -x, -n and -t ask for, as far as they were given. */
void quern__bench_suite_filter(const quern_bench_suite *suite, const quern__bench_options *options,
                               quern__bench_results *results);

#endif
