/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_TRACING_H
#define QUERN_BENCH_HARNESS_TRACING_H

/* The trace of the option --trace. Subjects get it from quern_bench_trace(). */

#include <stdbool.h>
#include <stdint.h>

/* Creates the trace, for pools of up to thread_count threads. Returns false, with a note, if memory is
 * exhausted. */
bool quern__bench_tracing_open(uint32_t thread_count);
void quern__bench_tracing_close(void);

/* Call these functions before and after the traced work. Starting drops earlier events. */
void quern__bench_tracing_start(void);
void quern__bench_tracing_stop(void);

/* Writes the events as JSON. Returns false, with a note, if the file cannot be written. */
bool quern__bench_tracing_write(const char *path);

#endif
