/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_BITSET_H
#define QUERN_CORE_BASE_BITSET_H

/* Fixed sets of small numbers, as arrays of 64-bit words that the caller provides. */

#include "core/base/base.h"

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

/* Takes the lowest bit out of a word that is not 0 and returns its number. */
static inline uint32_t quern__bitset_take_lowest(uint64_t *word)
{
    uint32_t bit = (uint32_t)__builtin_ctzll(*word);
    *word &= *word - 1;
    return bit;
}

/* Lists the numbers in the set, in ascending order, and returns how many there are. */
static inline uint32_t quern__bitset_list(const uint64_t *words, uint32_t word_count, uint16_t *out_list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        for (uint64_t left = words[i]; left != 0;)
            out_list[count++] = (uint16_t)(i * 64 + quern__bitset_take_lowest(&left));
    return count;
}

#endif
