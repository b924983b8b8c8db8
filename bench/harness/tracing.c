/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/tracing.h"

#include "bench/harness/base.h"

#include <quern/profile.h>

static quern_trace *trace;

struct quern_trace *quern_bench_trace(void)
{
    return trace;
}

bool quern__bench_tracing_open(uint32_t thread_count)
{
    quern_trace_def def = {.track_count = thread_count};
    if (quern_trace_create(&def, &trace) == QUERN_OK) return true;
    quern__bench_note("--trace: %s", quern_error_message());
    return false;
}

void quern__bench_tracing_close(void)
{
    quern_trace_destroy(trace);
    trace = NULL;
}

void quern__bench_tracing_start(void)
{
    quern_trace_start(trace);
}

void quern__bench_tracing_stop(void)
{
    quern_trace_stop(trace);
}

bool quern__bench_tracing_write(const char *path)
{
    quern_trace_stats stats;
    if (quern_trace_get_stats(trace, &stats) == QUERN_OK && stats.event_count == 0)
        quern__bench_note("--trace: the trace has no events, because no subject of the last case passes "
                          "quern_bench_trace() to its pools and schedules");
    if (quern_trace_save(trace, path) == QUERN_OK) return true;
    quern__bench_note("--trace: %s", quern_error_message());
    return false;
}
