/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_BURN_H
#define QUERN_BENCH_BURN_H

/* Work of a known duration that touches no memory, for the workloads of the job system. It costs the
 * same on every processor, so the rest of a measurement is the cost of the scheduler. */

#include <stdint.h>

/* Runs a chain of dependent operations, which no compiler shortens. It begins when the previous chain
 * has ended. Otherwise a processor would overlap one chain with the next by up to 100 ns, but only
 * without an atomic operation in between, and the control would seem to be faster than the work is. */
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

/* Returns the number of steps of this duration on this machine; measured once. */
uint64_t bench_burn_steps(double nanoseconds);

/* Keeps the calling thread busy. */
void bench_burn_for(uint64_t nanoseconds);

/* The count of one worker, on cache lines of its own, so that counting does not become the work. */
typedef struct bench_tally {
    uint64_t before[8];
    uint64_t count;
    uint64_t behind[7];
} bench_tally;

/* Over QUERN_MAX_THREADS of them. */
uint64_t bench_tally_sum(const bench_tally *tallies);

#endif
