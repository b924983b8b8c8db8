/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quern/base.h>
#include <quern/jobs.h>

#ifndef QUERN_BENCH_FLAGS
#define QUERN_BENCH_FLAGS "unknown"
#endif

#if defined(__clang__)
#define COMPILER_NAME "clang"
#elif defined(__GNUC__)
#define COMPILER_NAME "gcc"
#else
#define COMPILER_NAME "compiler"
#endif

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "AArch64"
#else
#define ARCHITECTURE "unknown architecture"
#endif

enum { MODEL_BYTES = 128, FIGURE_BYTES = 32, RANGE_BYTES = 64 };

/* ------------------------------------------------------------------------------------- description */

/* The value of the first "model name" line that Linux gives on x86; false when there is none. */
static bool read_processor_model(char model[MODEL_BYTES])
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (value == NULL) continue;
        snprintf(model, MODEL_BYTES, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        found = true;
    }
    fclose(file);
    return found;
}

static void print_environment(uint32_t repeat_count)
{
    char model[MODEL_BYTES] = ARCHITECTURE;
    read_processor_model(model);
    printf("machine     %s, %u processors\n", model, quern_processor_count());
    printf("compiler    %s %s\n", COMPILER_NAME, __VERSION__);
    printf("flags       %s\n", QUERN_BENCH_FLAGS);
    printf("quern       %d.%d.%d%s\n", QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH,
           quern_has_checks() ? ", built with QUERN_CHECKS: not for comparing speed" : "");
    printf("figures     ns per unit, median of %u samples (least - greatest); of mem, bytes per entity\n\n",
           repeat_count);
}

/* ------------------------------------------------------------------------------------------- table */

void bench_report_table_head(uint32_t repeat_count)
{
    print_environment(repeat_count);
    printf("%-17s %9s %7s %-8s %10s %-21s %10s %-21s %9s\n", "workload", "entities", "threads", "unit",
           "raw", "", "quern", "", "quern/raw");
}

/* Four digits that say something, whether a sample took one nanosecond or a million. */
static void format_figure(char text[FIGURE_BYTES], double figure)
{
    const int decimals = figure < 10 ? 3 : figure < 100 ? 2 : figure < 1000 ? 1 : 0;
    snprintf(text, FIGURE_BYTES, "%.*f", decimals, figure);
}

static void print_figures(const bench_figures *figures)
{
    char median[FIGURE_BYTES];
    char least[FIGURE_BYTES];
    char greatest[FIGURE_BYTES];
    char range[RANGE_BYTES + FIGURE_BYTES];
    format_figure(median, figures->median);
    format_figure(least, figures->min);
    format_figure(greatest, figures->max);
    snprintf(range, sizeof range, "(%s - %s)", least, greatest);
    printf(" %10s %-21s", median, range);
}

void bench_report_table_row(const bench_result *result)
{
    const bench_figures *raw = &result->figures[BENCH_RAW];
    const bench_figures *quern = &result->figures[BENCH_QUERN];
    printf("%-17s %9u %7u %-8s", result->workload->name, result->scene.entity_count,
           result->scene.thread_count, result->workload->unit);
    print_figures(raw);
    print_figures(quern);
    printf(" %9.2f\n", quern->median / raw->median);
    fflush(stdout);
}

/* -------------------------------------------------------------------------------------------- JSON */

void bench_report_json(const bench_result *result)
{
    for (uint32_t i = 0; i < BENCH_SUBJECT_COUNT; i++) {
        const bench_figures *figures = &result->figures[i];
        printf("{\"workload\":\"%s\",\"subject\":\"%s\",\"entities\":%u,\"threads\":%u,\"unit\":\"%s\","
               "\"repeat\":%u,\"%s\":%.4f,\"min\":%.4f,\"max\":%.4f,\"checksum\":\"%016" PRIx64 "\"}\n",
               result->workload->name, bench_subject_names[i], result->scene.entity_count,
               result->scene.thread_count, result->workload->unit, result->repeat_count,
               result->workload->footprint ? "bytes_per_op" : "ns_per_op", figures->median, figures->min,
               figures->max, figures->checksum);
    }
    fflush(stdout);
}
