/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_REPORT_H
#define QUERN_BENCH_REPORT_H

/* How results are printed, on stdout: as a table with the machine described above it, or as JSON lines. */

#include "bench/harness.h"

/* What was measured where, and the head of the table. */
void bench_report_table_head(uint32_t repeat_count);
void bench_report_table_row(const bench_result *result);

/* One object per subject, each on a line of its own. */
void bench_report_json(const bench_result *result);

#endif
