/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANDOM_H
#define QUERN_KIT_RANDOM_H

/** @file
 * Random numbers without a state: each is a function of a key and a counter, so results do not depend on the order of
 * calls, nor on the number of threads. They are the same on every platform.
 *
 * A usual key is the seed of an entity (quern_entity_seed) or of a level, a usual counter the number of the frame:
 *
 *     const uint64_t bits = quern_random(quern_entity_seed(world, entity), frame);
 *     const float angle = 6.2831853f * quern_random_unit(bits);
 *     if (quern_random_below(quern_random(bits, 1), 6) == 0) ...
 *
 * For further numbers, use the bits as a key, with a counter of their own. quern_random_unit and quern_random_signed
 * read different halves of the bits, so one call of quern_random serves both.
 *
 * The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014). It is not for cryptography. All functions may be called on any thread. */

#include <stdint.h>

/* Internal: a conversion without a cast that C++ calls old. */
#ifdef __cplusplus
#define QUERN__RANDOM_CAST(type, value) static_cast<type>(value)
#else
#define QUERN__RANDOM_CAST(type, value) ((type)(value))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Returns 64 random bits for a key. Neighbouring keys have unrelated bits. */
static inline uint64_t quern_random_mix(uint64_t key)
{
    key += 0x9E3779B97F4A7C15u;
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
    return key ^ (key >> 31);
}

/** Returns 64 random bits for a key and a counter. */
static inline uint64_t quern_random(uint64_t key, uint64_t counter)
{
    return quern_random_mix(key ^ quern_random_mix(counter));
}

/** Returns a number from 0 to just below 1, a multiple of 2^-24, from the upper 24 bits. */
static inline float quern_random_unit(uint64_t bits)
{
    return QUERN__RANDOM_CAST(float, bits >> 40) * 0x1p-24f;
}

/** Returns a number from -1 to just below 1, a multiple of 2^-23, from the lower 24 bits. */
static inline float quern_random_signed(uint64_t bits)
{
    return QUERN__RANDOM_CAST(float, bits & 0xFFFFFFu) * 0x1p-23f - 1.0f;
}

/** Returns a whole number from 0 to limit - 1, from the upper 32 bits; 0 if limit is 0. Some numbers are more frequent
 * than others, by less than limit / 2^32. */
static inline uint32_t quern_random_below(uint64_t bits, uint32_t limit)
{
    return QUERN__RANDOM_CAST(uint32_t, (bits >> 32) * limit >> 32);
}

#ifdef __cplusplus
}
#endif

#endif
