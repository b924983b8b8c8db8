/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_BURN_H
#define QUERN_BENCH_BURN_H

/* Work of a known length that touches no memory, for the workloads of the job system: it costs the same on every
 * processor, so that what is left is the scheduler's. */

#include <stdint.h>

/* One chain of dependent operations, which no compiler shortens. */
static inline void bench_burn(uint64_t steps)
{
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

#endif
