/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/progress.h"

#include <stdio.h>
#include <unistd.h>

static const char clear_line[] = "\r\033[K";

void quern__bench_progress_begin(quern__bench_progress *progress, uint32_t case_count)
{
    *progress = (quern__bench_progress){.is_shown = isatty(STDERR_FILENO) != 0,
                                        .started_ns = quern_bench_now_ns(),
                                        .case_count = case_count};
}

void quern__bench_format_left(char text[QUERN__BENCH_LEFT_TEXT_BYTES], double done_fraction,
                              double elapsed_s)
{
    text[0] = '\0';
    if (done_fraction <= 0.01) return;
    const double left_s = elapsed_s / done_fraction * (1 - done_fraction);
    if (left_s < 90)
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.0f s left", left_s);
    else if (left_s < 90.0 * 60)
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.0f min left", left_s / 60);
    else
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.1f h left", left_s / 3600);
}

void quern__bench_progress_show(const quern__bench_progress *progress, const char *workload,
                                const quern_bench_case *scene, double fraction)
{
    if (!progress->is_shown) return;
    const double done_fraction = (progress->done_count + fraction) / progress->case_count;
    const double elapsed_s = (double)(quern_bench_now_ns() - progress->started_ns) * 1e-9;
    char left[QUERN__BENCH_LEFT_TEXT_BYTES];
    quern__bench_format_left(left, done_fraction, elapsed_s);
    fprintf(stderr, "%s%u of %u: %s, %u entities, %u thread%s, %.0f %%%s%s", clear_line,
            progress->done_count + 1, progress->case_count, workload, scene->entity_count,
            scene->thread_count, scene->thread_count == 1 ? "" : "s", 100 * fraction,
            left[0] != '\0' ? "; " : "", left);
    fflush(stderr);
}

void quern__bench_progress_step(quern__bench_progress *progress)
{
    progress->done_count++;
    if (progress->is_shown) fputs(clear_line, stderr);
}
