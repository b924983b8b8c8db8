/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TRACING_H
#define QUERN_BENCH_HARNESS_TRACING_H

/* The trace of --trace: quern_bench_trace() gives it to the subjects. */

#include <stdbool.h>
#include <stdint.h>

/* Makes the trace, for pools of up to thread_count threads. False, with a note, when there is no
 * memory for it. */
bool quern__bench_tracing_open(uint32_t thread_count);
void quern__bench_tracing_close(void);

/* Call these functions before and after the traced work. Starting drops earlier events. */
void quern__bench_tracing_start(void);
void quern__bench_tracing_stop(void);

/* False, with a note, when it cannot be written. */
bool quern__bench_tracing_write(const char *path);

#endif
