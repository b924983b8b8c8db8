/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_RANDOM_H
#define KEEP_RANDOM_H

/* Random numbers as a function of an entity, a step and a number. A generator with a state of its own
 * would make results depend on the order of its callers. */

#include <stdint.h>

static inline uint64_t random_hash(uint64_t key, uint64_t number)
{
    uint64_t x = key + (number + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Returns a number in [0, 1). */
static inline float random_unit(uint64_t bits)
{
    return (float)(bits >> 40) * 0x1p-24f;
}

/* Returns a number in [-1, 1), from other bits than random_unit. */
static inline float random_signed(uint64_t bits)
{
    return (float)(bits & 0xFFFFFFu) * 0x1p-23f - 1.0f;
}

#endif
