/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/counters.h"

#include <math.h>

const char *const quern__bench_counter_keys[QUERN_HARDWARE_EVENT_COUNT] = {
    [QUERN_HARDWARE_CYCLES] = "cycles",         [QUERN_HARDWARE_INSTRUCTIONS] = "instructions",
    [QUERN_HARDWARE_L1_MISSES] = "l1_misses",   [QUERN_HARDWARE_L2_MISSES] = "l2_misses",
    [QUERN_HARDWARE_LLC_MISSES] = "llc_misses", [QUERN_HARDWARE_TLB_MISSES] = "tlb_misses",
};

static void *open_process(const quern_hardware_source *source)
{
    void *opened;
    return source->open(source->user_data, QUERN_HARDWARE_PROCESS, &opened) == QUERN_OK ? opened : NULL;
}

void quern__bench_counters_open(quern__bench_counters *counters, const quern_hardware_source *source)
{
    *counters = (quern__bench_counters){.source = source, .opened = open_process(source)};
    quern__bench_counters_reset(counters);
}

void quern__bench_counters_close(quern__bench_counters *counters)
{
    if (counters->opened != NULL) counters->source->close(counters->opened);
    counters->opened = NULL;
}

void quern__bench_counters_reset(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        counters->totals[i] = counters->opened != NULL ? 0 : NAN;
}

void quern__bench_counters_start(quern__bench_counters *counters)
{
    counters->is_counting =
        counters->opened != NULL && counters->source->read(counters->opened, &counters->started);
}

/* The total of an event becomes NAN if the event cannot be read or was never scheduled on the hardware. */
void quern__bench_counters_stop(quern__bench_counters *counters)
{
    quern_hardware_reading now;
    const bool is_known = counters->is_counting && counters->source->read(counters->opened, &now);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        counters->totals[i] +=
            is_known ? quern_hardware_difference(&counters->started, &now, (quern_hardware_event)i) : NAN;
    counters->is_counting = false;
}

bool quern__bench_counters_available(const quern_hardware_source *source)
{
    void *opened = open_process(source);
    if (opened == NULL) return false;
    source->close(opened);
    return true;
}
