/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_BITSET_H
#define QUERN_CORE_BASE_BITSET_H

/* Sets of small numbers: arrays of 64-bit words, owned by the caller, with one bit per number. */

#include "core/base/base_internal.h"

#define QUERN__BITSET_WORDS(bits) (((bits) + 63) / 64)

static inline void quern__bitset_add(uint64_t *words, uint32_t bit)
{
    words[bit >> 6] |= 1ull << (bit & 63);
}

static inline void quern__bitset_remove(uint64_t *words, uint32_t bit)
{
    words[bit >> 6] &= ~(1ull << (bit & 63));
}

static inline bool quern__bitset_has(const uint64_t *words, uint32_t bit)
{
    return (words[bit >> 6] >> (bit & 63)) & 1;
}

/* Clears the lowest set bit of a word and returns its index. Precondition: the word is not 0. */
static inline uint32_t quern__bitset_pop_lowest(uint64_t *word)
{
    uint32_t bit = quern__lowest_bit_64(*word);
    *word &= *word - 1;
    return bit;
}

/* Writes the numbers in the set to out_list, in ascending order. Returns their count. */
static inline uint32_t quern__bitset_list(const uint64_t *words, uint32_t word_count, uint16_t *out_list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        for (uint64_t left = words[i]; left != 0;)
            out_list[count++] = (uint16_t)(i * 64 + quern__bitset_pop_lowest(&left));
    return count;
}

/* Consecutive numbers that are all in a set. */
typedef struct quern__bit_range {
    uint32_t first, count;
} quern__bit_range;

/* Advances *range to the next maximal range of the set. The caller zeroes *range before the first call. Returns false if
 * there is no further range. */
static inline bool quern__bitset_next_range(const uint64_t *words, uint32_t word_count,
                                            quern__bit_range *range)
{
    const uint32_t end = 64 * word_count;
    uint32_t bit = range->first + range->count;
    uint64_t rest = 0;
    if (bit < end) rest = words[bit / 64] >> bit % 64 << bit % 64;
    while (bit < end && rest == 0) {
        bit = (bit / 64 + 1) * 64;
        if (bit < end) rest = words[bit / 64];
    }
    if (bit >= end) return false;
    range->first = bit / 64 * 64 + quern__lowest_bit_64(rest);
    bit = range->first;
    rest = ~words[bit / 64] >> bit % 64 << bit % 64;
    while (rest == 0) {
        bit = (bit / 64 + 1) * 64;
        if (bit >= end) break;
        rest = ~words[bit / 64];
    }
    const uint32_t range_end = bit < end ? bit / 64 * 64 + quern__lowest_bit_64(rest) : end;
    range->count = range_end - range->first;
    return true;
}

#endif
