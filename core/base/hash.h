/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_HASH_H
#define QUERN_CORE_BASE_HASH_H

/* Hash functions for hash tables and for the world hash. The same input gives the same hash on all machines. */

#include "core/base/base_internal.h"

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit affects every output bit. */
static inline uint64_t quern__hash_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xBF58476D1CE4E5B9ull;
    value ^= value >> 27;
    value *= 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

/* Returns `hash` continued with a word. */
static inline uint64_t quern__hash_word(uint64_t hash, uint64_t word)
{
    return quern__hash_mix((hash ^ word) + 0x9E3779B97F4A7C15ull);
}

/* Returns `hash` continued with bytes. */
uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count);

/* Returns `hash` continued with numbers of number_bytes bytes each, which are hashed as little-endian bytes on all
 * machines. */
uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count);

uint64_t quern__hash_string(const char *string);

#endif
