/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_CSV_H
#define QUERN_BENCH_HARNESS_CSV_H

/* Writes results as comma-separated values (RFC 4180, but with plain line feeds): a line with the names of
 * the columns, then one line for each record. */

#include <stdio.h>

#include "bench/harness/results.h"

void quern__bench_csv_write_head(FILE *file);
void quern__bench_csv_write_record(FILE *file, const quern__bench_record *record,
                                   const quern__bench_record *control);

#endif
