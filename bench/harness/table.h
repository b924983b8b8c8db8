/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TABLE_H
#define QUERN_BENCH_HARNESS_TABLE_H

/* Results for people: the machine, then a table. */

#include <stdio.h>

#include "bench/harness/results.h"

void quern__bench_table_write_machine(FILE *file, const quern__bench_machine *machine);
void quern__bench_table_write_head(FILE *file);

/* One line, and one more each when events were counted and when frames were timed. control: NULL when the
 * record is one. */
void quern__bench_table_write_record(FILE *file, const quern__bench_record *record,
                                     const quern__bench_record *control);

/* After all records: what the marks mean, and a warning if controls are unsteady. */
void quern__bench_table_write_trust(FILE *file, const quern__bench_results *results);

/* Four digits that say something, whether the figure is one or a million. */
enum { QUERN__BENCH_FIGURE_BYTES = 32 };
void quern__bench_format_figure(char text[QUERN__BENCH_FIGURE_BYTES], double figure);

#endif
