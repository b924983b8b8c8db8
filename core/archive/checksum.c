/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/checksum.h"

#include "core/base/hash.h"

enum { LANES = 8, STRIPE_BYTES = LANES * sizeof(uint64_t) };

/* 2^64 divided by the golden ratio: odd, with set bits spread over the whole word. */
#define FACTOR 0x9E3779B97F4A7C15ull

static inline uint64_t mix_word(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * FACTOR;
    return lane << 29 | lane >> 35;
}

static inline void mix_stripe(uint64_t *lanes, const char *stripe)
{
    uint64_t words[LANES];
    memcpy(words, stripe, sizeof words);
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = mix_word(lanes[i], words[i]);
}

uint64_t quern__checksum(uint64_t seed, const void *bytes, size_t count)
{
    const char *at = bytes;
    uint64_t lanes[LANES], hash = quern__hash_word(seed, count);
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = seed + i * FACTOR;
    for (; count >= STRIPE_BYTES; at += STRIPE_BYTES, count -= STRIPE_BYTES)
        mix_stripe(lanes, at);
    if (count > 0) {
        char rest[STRIPE_BYTES] = {0};
        memcpy(rest, at, count);
        mix_stripe(lanes, rest);
    }
    for (uint32_t i = 0; i < LANES; i++)
        hash = quern__hash_word(hash, lanes[i]);
    return hash;
}
