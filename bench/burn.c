/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/burn.h"

#include "bench/harness.h"

#include <quern/jobs.h>

enum { TRIAL_COUNT = 9, TRIAL_STEPS = 400000 };

/* Returns the duration of a step in the fastest of several trials, since the slower ones were disturbed. */
static double measure_step_ns(void)
{
    uint64_t best_ns = UINT64_MAX;
    for (uint32_t trial = 0; trial < TRIAL_COUNT; trial++) {
        const uint64_t start_ns = bench_now_ns();
        bench_burn(TRIAL_STEPS);
        const uint64_t time_ns = bench_now_ns() - start_ns;
        if (time_ns < best_ns) best_ns = time_ns;
    }
    return (double)best_ns / TRIAL_STEPS;
}

uint64_t bench_burn_steps(double nanoseconds)
{
    static double step_ns;
    if (step_ns == 0) step_ns = measure_step_ns();
    return (uint64_t)(nanoseconds / step_ns);
}

void bench_burn_for(uint64_t nanoseconds)
{
    const uint64_t start_ns = bench_now_ns();
    while (bench_now_ns() - start_ns < nanoseconds) {
    }
}

uint64_t bench_tally_sum(const bench_tally *tallies)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < QUERN_MAX_THREADS; i++)
        sum += tallies[i].count;
    return sum;
}
