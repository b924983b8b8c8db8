/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_RANDOM_H
#define QUERN_TESTS_RANDOM_H

/* Random numbers that are the same on every machine, so that the seed that a failing test prints is
 * enough to reproduce the failure. */

#include <stdbool.h>
#include <stdint.h>

typedef struct random_source {
    uint64_t state;
} random_source;

/* Returns the next number: SplitMix64, a Weyl sequence with a mixer. Consecutive seeds give independent
 * sequences. */
static inline uint64_t random_next(random_source *random)
{
    uint64_t x = random->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Returns a number from 0 to bound - 1. */
static inline uint32_t random_below(random_source *random, uint32_t bound)
{
    return (uint32_t)(((random_next(random) >> 32) * bound) >> 32);
}

static inline bool random_chance(random_source *random, uint32_t percent)
{
    return random_below(random, 100) < percent;
}

#endif
