/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PAGE_H
#define QUERN_BENCH_HARNESS_PAGE_H

/* The report: one HTML file with everything in it. CMake joins the parts in page/ and the chart library;
 * this code adds the results. */

#include <stdio.h>

#include "bench/harness/compare.h"

typedef struct quern__bench_page {
    const char *program;
    const quern__bench_results *results;
    const quern__bench_comparison *comparisons; /* one for each record; NULL: nothing was compared */
    const quern__bench_results *before;         /* what was compared with */
    const char *before_path;
    double noise;
} quern__bench_page;

/* Whether it could be written is for the caller to ask the file. */
void quern__bench_page_write(FILE *file, const quern__bench_page *page);

/* Made by CMake: the page before and after the place of the results. */
extern const unsigned char quern__bench_page_head[];
extern const unsigned long quern__bench_page_head_bytes;
extern const unsigned char quern__bench_page_tail[];
extern const unsigned long quern__bench_page_tail_bytes;

#endif
