/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TABLE_H
#define QUERN_BENCH_HARNESS_TABLE_H

/* Results as text: a table to read, and comma-separated values. */

#include <stdio.h>

#include "bench/harness/results.h"

/* -------------------------------------------------------------------------------------------- table */

/* Writes results as text: the machine, then a table. */

void quern__bench_table_write_machine(FILE *file, const quern__bench_machine *machine);
void quern__bench_table_write_head(FILE *file);

/* Writes one line, one more if hardware events were counted, and one more if frames were timed. control:
 * NULL if the record is a control itself. */
void quern__bench_table_write_record(FILE *file, const quern__bench_record *record,
                                     const quern__bench_record *control);

/* Writes the end of the table: the meaning of the marks, and a warning if controls are unsteady. */
void quern__bench_table_write_trust(FILE *file, const quern__bench_results *results);

/* Formats a figure with the number of decimals that its size needs: 1.234, 12.34, 123.4, 1234. */
enum { QUERN__BENCH_FIGURE_BYTES = 32 };
void quern__bench_format_figure(char text[QUERN__BENCH_FIGURE_BYTES], double figure);

/* --------------------------------------------------------------------------- comma-separated values */

/* Writes results as comma-separated values (RFC 4180, but with plain line feeds): a line with the names of
 * the columns, then one line for each record. */

void quern__bench_csv_write_head(FILE *file);
void quern__bench_csv_write_record(FILE *file, const quern__bench_record *record,
                                   const quern__bench_record *control);

#endif
