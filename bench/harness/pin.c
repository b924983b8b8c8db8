/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/pin.h"

#if defined(__linux__)

#include <sched.h>

static cpu_set_t first_set;
static bool is_pinned;

static bool remember_first_set(void)
{
    return is_pinned || sched_getaffinity(0, sizeof first_set, &first_set) == 0;
}

bool quern__bench_pin(uint32_t processor_count)
{
    if (!remember_first_set() || processor_count > (uint32_t)CPU_COUNT(&first_set)) return false;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    for (size_t i = 0; (uint32_t)CPU_COUNT(&chosen) < processor_count; i++)
        if (CPU_ISSET(i, &first_set)) CPU_SET(i, &chosen);
    const bool done = sched_setaffinity(0, sizeof chosen, &chosen) == 0;
    is_pinned |= done;
    return done;
}

void quern__bench_unpin(void)
{
    if (!is_pinned) return;
    sched_setaffinity(0, sizeof first_set, &first_set);
    is_pinned = false;
}

#else

bool quern__bench_pin(uint32_t processor_count)
{
    (void)processor_count;
    return false;
}

void quern__bench_unpin(void) {}

#endif
