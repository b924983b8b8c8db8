/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_SUITE_H
#define QUERN_BENCH_HARNESS_SUITE_H

/* Checks the tables that describe workloads, fills in their defaults, and selects from them. */

#include "bench/harness/options.h"
#include "bench/harness/results.h"

/* Returns the suite with defaults instead of zeros. */
quern_bench_suite quern__bench_suite_fill(const quern_bench_suite *suite);

/* Returns the number of subjects of a workload. */
uint32_t quern__bench_subject_count(const quern_bench_workload *workload);

/* Returns the name of a subject: the workload's name for it or, without one, the suite's. */
const char *quern__bench_subject_name(const quern_bench_suite *suite, const quern_bench_workload *workload,
                                      uint32_t index);

/* Returns false, with a message of one line, if the suite has a fault. */
bool quern__bench_suite_check(const quern_bench_suite *suite, char message[QUERN__BENCH_MESSAGE_BYTES]);

/* Prints the names and summaries of all workloads to stdout. */
void quern__bench_suite_list(const quern_bench_suite *suite);

/* Replaces each alias in the results with the workload's name. Files from before a workload was renamed
 * contain its alias. */
void quern__bench_suite_rename(const quern_bench_suite *suite, quern__bench_results *results);

/* Removes all results that the options -w, -x, -n and -t do not select. An option that was not given
 * selects all results. */
void quern__bench_suite_filter(const quern_bench_suite *suite, const quern__bench_options *options,
                               quern__bench_results *results);

#endif
