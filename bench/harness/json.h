/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_JSON_H
#define QUERN_BENCH_HARNESS_JSON_H

/* Results as JSON lines: the machine first, then one object for each record, and last the trust in all
 * results. docs/benchmarks/using.md lists the fields. */

#include <stdio.h>

#include "bench/harness/results.h"

typedef struct cJSON cJSON;

/* Return the machine or a record as a JSON object, to be released with cJSON_Delete. control: the record's
 * control; NULL if it has none. */
cJSON *quern__bench_json_machine(const quern__bench_machine *machine);
cJSON *quern__bench_json_record(const quern__bench_record *record, const quern__bench_record *control);

/* Returns how many controls were measured and how many of them are unsteady, as a JSON object, to be
 * released with cJSON_Delete. */
cJSON *quern__bench_json_trust(const quern__bench_results *results);

/* Each writes one line. */
void quern__bench_json_write_machine(FILE *file, const quern__bench_machine *machine);
void quern__bench_json_write_record(FILE *file, const quern__bench_record *record,
                                    const quern__bench_record *control);

void quern__bench_json_write_trust(FILE *file, const quern__bench_results *results);

/* Reads results that the functions above have written. The text may hold several runs of one program on one
 * machine: the samples of a subject in the same case are then joined, and the date is that of the last run.
 * Lines of an unknown type are ignored. On failure, returns false with no results and a message of one
 * line. */
enum { QUERN__BENCH_JSON_MESSAGE_BYTES = 256 };
bool quern__bench_json_read(const char *text, quern__bench_results *results,
                            char message[QUERN__BENCH_JSON_MESSAGE_BYTES]);

#endif
