/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_BURN_H
#define QUERN_BENCH_BURN_H

/* Work of a known length that touches no memory, for the workloads of the job system: it costs the same on
 * every processor, so that what is left is the scheduler's. */

#include <stdint.h>

/* One chain of dependent operations, which no compiler shortens. It begins when what came before has ended:
 * else a processor overlaps one chain with the next by up to 100 ns, but only where no atomic operation
 * stands between them, and the control would seem to be quicker than the work is. */
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

/* How many steps take that long on this machine; measured once. */
uint64_t bench_burn_steps(double nanoseconds);

/* Keeps the calling thread busy. */
void bench_burn_for(uint64_t nanoseconds);

/* What one worker has done: away from the others and from what stands before and behind, so that counting
 * does not become the work. */
typedef struct bench_tally {
    uint64_t before[8];
    uint64_t count;
    uint64_t behind[7];
} bench_tally;

/* Over QUERN_MAX_THREADS of them. */
uint64_t bench_tally_sum(const bench_tally *tallies);

#endif
