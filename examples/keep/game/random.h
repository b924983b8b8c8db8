/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_RANDOM_H
#define KEEP_RANDOM_H

#include <quern/kit/random.h>

/* Returns random bits for an entity or a step, and a number. quern_random has other bits; this sequence is the one with
 * which the game in levels/ was recorded. */
static inline uint64_t random_hash(uint64_t key, uint64_t number)
{
    return quern_random_mix(key + number * 0x9E3779B97F4A7C15u);
}

#endif
