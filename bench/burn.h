/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_BURN_H
#define QUERN_BENCH_BURN_H

/* Work of a known duration that touches no memory, for the workloads of the job system. Its duration is
 * the same on every thread, so the rest of a measured time is the cost of the scheduler. */

#include <stdint.h>

/* Runs a chain of dependent operations that a compiler cannot shorten. The barrier makes a chain begin only
 * after the previous one has ended. Without it, a processor overlaps two chains by up to 100 ns, unless an
 * atomic operation separates them as in a scheduler, and the control would seem too fast. */
static inline void bench_burn(uint64_t steps)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
    uint64_t value = steps | 1;
    for (uint64_t i = 0; i < steps; i++) {
        value = value * 0x9E3779B97F4A7C15u + i;
        __asm__ volatile("" : "+r"(value));
    }
}

/* Returns the number of steps of bench_burn that last so many nanoseconds on this machine. Measures the
 * duration of a step at the first call. */
uint64_t bench_burn_steps(double nanoseconds);

/* Spins for the given time. */
void bench_burn_for(uint64_t nanoseconds);

/* The count of one worker. It shares no cache line with other counts, so that counting costs little. */
typedef struct bench_tally {
    uint64_t before[8];
    uint64_t count;
    uint64_t after[7];
} bench_tally;

/* Returns the sum of QUERN_MAX_THREADS counts. */
uint64_t bench_tally_sum(const bench_tally *tallies);

#endif
