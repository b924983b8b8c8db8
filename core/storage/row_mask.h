/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ROW_MASK_H
#define QUERN_CORE_STORAGE_ROW_MASK_H

/* Row masks: a subset of the rows of one chunk, one bit per row, and iteration over its ranges of consecutive rows.
 * Bits have the same order as in bit columns (core/storage/row_bits.h). Bits beyond the chunk's row count are
 * clear. */

#include "core/storage/row_bits.h"

#include <quern/query.h>

_Static_assert(sizeof((quern__row_mask){0}.words) / sizeof(uint64_t) == QUERN__BIT_COLUMN_ROW_WORDS,
               "a mask has room for a chunk's rows");

/* Sets the mask to all rows of a chunk with `row_count` rows. */
static inline void quern__row_mask_all(quern__row_mask *mask, uint32_t row_count)
{
    mask->word_count = (row_count + 63) / 64;
    for (uint32_t i = 0; i < mask->word_count; i++)
        mask->words[i] = ~UINT64_C(0);
    if (row_count % 64 != 0) mask->words[mask->word_count - 1] >>= 64 - row_count % 64;
}

/* Keeps only the rows with set bits in a bit column. */
static inline void quern__row_mask_keep(quern__row_mask *mask, const uint64_t *words)
{
    for (uint32_t i = 0; i < mask->word_count; i++)
        mask->words[i] &= words[i];
}

/* Removes the rows with set bits in a bit column. */
static inline void quern__row_mask_drop(quern__row_mask *mask, const uint64_t *words)
{
    for (uint32_t i = 0; i < mask->word_count; i++)
        mask->words[i] &= ~words[i];
}

static inline uint32_t quern__row_mask_count(const quern__row_mask *mask)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < mask->word_count; i++)
        count += quern__count_bits_64(mask->words[i]);
    return count;
}

/* Finds the next range of consecutive rows at or after *row and sets *row to the row after the range. Returns false
 * if there is no such range. */
static inline bool quern__row_mask_next(const quern__row_mask *mask, uint32_t *row, uint32_t *out_first,
                                        uint32_t *out_count)
{
    uint32_t i = *row / 64;
    if (i >= mask->word_count) return false;
    uint64_t bits = mask->words[i] & ~UINT64_C(0) << *row % 64;
    while (bits == 0) {
        if (++i == mask->word_count) return false;
        bits = mask->words[i];
    }
    const uint32_t first = i * 64 + quern__lowest_bit_64(bits);
    uint64_t clear = ~mask->words[i] & ~UINT64_C(0) << first % 64;
    while (clear == 0 && ++i < mask->word_count)
        clear = ~mask->words[i];
    *row = clear != 0 ? i * 64 + quern__lowest_bit_64(clear) : i * 64;
    *out_first = first;
    *out_count = *row - first;
    return true;
}

#endif
