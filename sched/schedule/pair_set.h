/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_PAIR_SET_H
#define QUERN_SCHED_SCHEDULE_PAIR_SET_H

/* A set of pairs (earlier, later) of numbers below 65,536. Each later number has a row: the set of its earlier numbers.
 * A row is stored as the shorter of two forms: a sorted list, or a bit set in units of 16 bits. So a row of few pairs
 * takes 2 bytes per pair, and no row takes more than one bit for each smaller number. */

#include "core/base/array.h"
#include "core/base/bitset.h"

typedef struct quern__pair_row {
    uint32_t first_unit;
    uint16_t unit_count; /* at most 4096: a row of bits has one unit for 16 numbers */
    bool is_bits;
} quern__pair_row;

/* A set with all members zero is empty and has no rows. */
typedef struct quern__pair_set {
    QUERN__ARRAY(uint16_t) units; /* of all rows; also of replaced ones, until the memory is compacted */
    QUERN__ARRAY(quern__pair_row) rows;
    uint32_t unused_count; /* units of replaced rows */
} quern__pair_set;

void quern__pair_set_release(quern__pair_set *set, const quern_allocator *allocator);

/* Removes all pairs, and gives the set row_count empty rows. Returns false if out of memory; the set then has no rows. */
bool quern__pair_set_reset(quern__pair_set *set, const quern_allocator *allocator, uint32_t row_count);

/* Replaces a row. words: bit set of the earlier numbers, of later / 64 + 1 words. Returns false, with the set unchanged,
 * if out of memory. */
bool quern__pair_set_put(quern__pair_set *set, const quern_allocator *allocator, uint32_t later,
                         const uint64_t *words);

/* Adds the earlier numbers of a row to a bit set of later / 64 + 1 words. */
void quern__pair_set_get(const quern__pair_set *set, uint32_t later, uint64_t *words);

/* O(log n). */
bool quern__pair_set_has(const quern__pair_set *set, uint32_t earlier, uint32_t later);

/* An iteration over a row, from the greatest earlier number to the smallest. */
typedef struct quern__pair_walk {
    const uint16_t *units;
    uint32_t left; /* units that have not been read */
    bool is_bits;
    uint32_t bits; /* rest of the current unit of a row of bits, which is units[left] */
} quern__pair_walk;

static inline quern__pair_walk quern__pair_set_walk(const quern__pair_set *set, uint32_t later)
{
    const quern__pair_row *row = &set->rows.items[later];
    return (quern__pair_walk){
        .units = set->units.items + row->first_unit, .left = row->unit_count, .is_bits = row->is_bits};
}

/* Sets *out_earlier to the next earlier number. Returns false if there is none. */
static inline bool quern__pair_walk_next(quern__pair_walk *walk, uint32_t *out_earlier)
{
    if (!walk->is_bits) {
        if (walk->left == 0) return false;
        *out_earlier = walk->units[--walk->left];
        return true;
    }
    while (walk->bits == 0) {
        if (walk->left == 0) return false;
        walk->bits = walk->units[--walk->left];
    }
    const uint32_t bit = quern__highest_bit_32(walk->bits);
    walk->bits &= ~(UINT32_C(1) << bit);
    *out_earlier = 16 * walk->left + bit;
    return true;
}

#endif
