/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_JSON_H
#define QUERN_BENCH_HARNESS_JSON_H

/* Results as JSON lines: the machine first, then one object for each record. docs/benchmarks/using.md lists
 * the fields. */

#include <stdio.h>

#include "bench/harness/results.h"

typedef struct cJSON cJSON;

/* Each to be given to cJSON_Delete. */
cJSON *quern__bench_json_machine(const quern__bench_machine *machine);
cJSON *quern__bench_json_record(const quern__bench_record *record, const quern__bench_record *control);

/* How far all results together can be trusted. */
cJSON *quern__bench_json_trust(const quern__bench_results *results);

/* One line. */
void quern__bench_json_write_machine(FILE *file, const quern__bench_machine *machine);
void quern__bench_json_write_record(FILE *file, const quern__bench_record *record,
                                    const quern__bench_record *control);

void quern__bench_json_write_trust(FILE *file, const quern__bench_results *results);

/* What was written before, by one run or by several of the same program on the same machine: samples of the
 * same case and subject are joined, and the date is that of the last. Lines of a type that is not known are
 * left out. False, with one line of message and no results, when the text is something else. */
enum { QUERN__BENCH_JSON_MESSAGE_BYTES = 256 };
bool quern__bench_json_read(const char *text, quern__bench_results *results,
                            char message[QUERN__BENCH_JSON_MESSAGE_BYTES]);

#endif
