/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ROW_BITS_H
#define QUERN_CORE_STORAGE_ROW_BITS_H

/* Row bits: bit columns of an archetype, with one bit per row, stored outside of the chunks. An archetype has row
 * bits only if one of its components can be disabled, or if a reaction needs bits of its rows. In other archetypes a
 * change of rows costs only the test of tracks_changes (core/storage/change.h).
 *
 *   per slot:                | bit column | bit column | ...   ordered by kind, then id
 *   per bit column in it:    | count | word | word | ...       bit r % 64 of word r / 64 belongs to row r
 *
 * Invariants (checked by quern_world_validate): each count is the number of set bits; the bits of raw rows, and those
 * beyond the chunk's row count, are clear.
 *
 * A bit moves with its row: code that moves a row also moves its bits in the bit columns that both archetypes have,
 * and clears all bits of the old row. A bit column has the same index in every slot of its archetype. The bit columns
 * of components precede all others and are created with the archetype, so their indices never change.
 *
 * Threads: when rows are divided among threads, each thread changes the bits of its own rows. Several threads may
 * change one word and one count at the same time, so these operations are atomic. They are relaxed: no thread needs a
 * bit of another thread's row, and code that reads all bits, or a count as a number, runs after the threads have been
 * waited for.
 *
 * While the threads run, a count is at least the number of set bits in the rows of any one thread: each thread adds
 * to the count what it has set, and subtracts only what it has cleared in its own rows. A thread that reads a count
 * of 0 therefore has no bits to clear. */

#include "core/storage/chunk.h"
#include "core/storage/type_internal.h"

#include <quern/query.h>

#include <assert.h>

/* The meaning of a bit column's bits. The first kinds belong to components, one for each row flag (type_internal.h).
 * For example, a set bit in QUERN__BIT_COLUMN_CAN_DISABLE means that the component is disabled in the row. The id of
 * such a bit column is the component's index. */
#define QUERN__BIT_COLUMN_OF_FLAG(flag, ...) QUERN__BIT_COLUMN_##flag,
typedef enum quern__bit_column_kind {
    QUERN__ROW_FLAGS(QUERN__BIT_COLUMN_OF_FLAG)
        QUERN__BIT_COLUMN_ADDED, /* the entity started to match a reaction; id: that of the reaction */
    QUERN__BIT_COLUMN_SET        /* values that a reaction observes were set; id: that of the reaction */
} quern__bit_column_kind;

typedef struct quern__bit_column {
    quern__bit_column_kind kind;
    uint32_t id;
} quern__bit_column;

typedef struct quern__row_bits {
    quern__bit_column *list;       /* the bit columns by index: ordered by kind, then id */
    uint64_t *words;               /* counts and bits; slot_capacity * slot_words words */
    uint32_t count;                /* number of bit columns */
    const quern__run_shape *shape; /* of the archetype's runs */
    uint32_t bit_column_words;     /* words per bit column and slot: 1 for the count, the rest for bits */
    uint32_t slot_words;           /* bit_column_words * count */
    uint32_t slot_capacity;
    size_t bytes; /* size of the allocation that holds this structure, list and words */
} quern__row_bits;

enum { QUERN__BIT_COLUMN_ROW_WORDS = 32, QUERN__BIT_COLUMN_MAX_ROWS = 64 * QUERN__BIT_COLUMN_ROW_WORDS };
_Static_assert((QUERN__CHUNK_BYTES - QUERN__CHUNK_UNUSED_BYTES) / sizeof(quern_entity) <=
                   QUERN__BIT_COLUMN_MAX_ROWS,
               "the rows of a chunk have room in a bit column");

#define QUERN__NO_BIT_COLUMN UINT32_MAX

/* ---------------------------------------------------------------------------- set of bit columns */

/* Returns whether the ids of bit columns of this kind are component indices. */
static inline bool quern__bit_column_is_of_component(quern__bit_column_kind kind)
{
    return kind < QUERN__BIT_COLUMN_ADDED;
}

/* Adds a bit column with all bits clear. Precondition: it does not exist. Other bit columns keep their bits.
 * Allocates *row_bits if it is NULL. Returns false and changes nothing if out of memory. */
bool quern__row_bits_add_column(quern__row_bits **row_bits, const quern_allocator *allocator,
                                quern__bit_column bit_column, const quern__run_shape *shape,
                                uint32_t slot_capacity);

/* Removes a bit column. Precondition: it exists. Other bit columns keep their bits. Sets *row_bits to NULL when the
 * last bit column is removed. */
void quern__row_bits_remove_column(quern__row_bits **row_bits, const quern_allocator *allocator,
                                   quern__bit_column bit_column);

/* Reserves `slot_capacity` slots. Does nothing if *row_bits is NULL. Returns false and changes nothing if out of
 * memory. */
bool quern__row_bits_grow(quern__row_bits **row_bits, const quern_allocator *allocator,
                          uint32_t slot_capacity);

/* Frees all bit columns and sets *row_bits to NULL. *row_bits may be NULL. */
void quern__row_bits_release(quern__row_bits **row_bits, const quern_allocator *allocator);

/* Returns a bit column's index in the list, or QUERN__NO_BIT_COLUMN. `row_bits` may be NULL. */
static inline uint32_t quern__row_bits_find_column(const quern__row_bits *row_bits,
                                                   quern__bit_column_kind kind, uint32_t id)
{
    for (uint32_t i = 0; row_bits != NULL && i < row_bits->count; i++)
        if (row_bits->list[i].kind == kind && row_bits->list[i].id == id) return i;
    return QUERN__NO_BIT_COLUMN;
}

/* -------------------------------------------------------------------------------- one bit column */

/* Returns the words of a bit column in a slot. The word before the first is the count. `index`: index of the bit
 * column in the list. */
static inline uint64_t *quern__bit_column_words(const quern__row_bits *row_bits, uint32_t index,
                                                uint32_t slot)
{
    return row_bits->words + (size_t)slot * row_bits->slot_words +
           (size_t)index * row_bits->bit_column_words + 1;
}

/* Returns the number of set bits of a bit column in a slot. While other threads change bits, the count is only a
 * bound: 0 means that the rows of the calling thread have no set bits. The load is relaxed: a thread reads what it
 * added itself, and it has waited for threads that changed its rows before (see the top of this file). */
static inline uint32_t quern__bit_column_count(const quern__row_bits *row_bits, uint32_t index,
                                               uint32_t slot)
{
    return (uint32_t)__atomic_load_n(quern__bit_column_words(row_bits, index, slot) - 1, __ATOMIC_RELAXED);
}

/* Returns the bit of the row at a location. The load is relaxed: no thread reads a bit of another thread's row while
 * threads change bits (see the top of this file). */
static inline bool quern__bit_column_test(const quern__row_bits *row_bits, uint32_t index,
                                          uintptr_t location)
{
    const uint32_t row = quern__location_row(row_bits->shape, location);
    const uint64_t *words =
        quern__bit_column_words(row_bits, index, quern__chunk_index_at(row_bits->shape, location));
    return __atomic_load_n(&words[row / 64], __ATOMIC_RELAXED) >> row % 64 & 1;
}

/* Sets or clears the bit of one row without atomic operations: the caller must own all rows of the chunk. `words`:
 * the bits of the bit column in the slot. Returns 1 if the bit changed, otherwise 0. */
static inline uint64_t quern__bit_column_put_row(uint64_t *words, uint32_t row, bool bit)
{
    const uint64_t word = words[row / 64], mask = UINT64_C(1) << row % 64;
    const uint64_t change = ((word & mask) != 0) != bit;
    words[row / 64] = bit ? word | mask : word & ~mask;
    words[-1] += bit ? change : 0 - change;
    return change;
}

/* Sets or clears the bit of the row at a location without atomic operations: the caller must own all rows of the
 * chunk. */
static inline void quern__bit_column_put(const quern__row_bits *row_bits, uint32_t index,
                                         uintptr_t location, bool bit)
{
    uint64_t *words =
        quern__bit_column_words(row_bits, index, quern__chunk_index_at(row_bits->shape, location));
    quern__bit_column_put_row(words, quern__location_row(row_bits->shape, location), bit);
}

/* Sets the bit of the row at a location, whatever its state, without atomic operations: no other thread may change bits
 * of the chunk. */
static inline void quern__bit_column_set_row(const quern__row_bits *row_bits, uint32_t index,
                                             uintptr_t location)
{
    quern__bit_column_put(row_bits, index, location, true);
}

/* Set and clear the bits of `count` rows of one chunk from location `first` on, whatever their state. Thread-safe
 * while no other thread changes the same rows. */
void quern__bit_column_set_rows(const quern__row_bits *row_bits, uint32_t index, uintptr_t first,
                                uint32_t count);
void quern__bit_column_clear_rows(const quern__row_bits *row_bits, uint32_t index, uintptr_t first,
                                  uint32_t count);

/* Clears the bits of all rows of a slot in one bit column. Not atomic: the caller must own all rows of the chunk. */
void quern__bit_column_clear_slot(const quern__row_bits *row_bits, uint32_t index, uint32_t slot);

/* ------------------------------------------------------------------------------ all bit columns */

/* Clears the bits of `count` rows of one chunk in all bit columns. */
void quern__row_bits_clear(const quern__row_bits *row_bits, uintptr_t first, uint32_t count);

/* Moves the bits of `count` rows, in the bit columns that both archetypes have, and clears all bits of the rows at
 * `from`. `source` and `target` may be equal. `target`: NULL if that archetype has no row bits. Precondition: the
 * bits of the rows at `to` are clear. */
void quern__row_bits_move(const quern__row_bits *target, uintptr_t to, const quern__row_bits *source,
                          uintptr_t from, uint32_t count);

/* Row masks: a subset of the rows of one chunk, one bit per row, and iteration over its ranges of consecutive rows.
 * Bits have the same order as in bit columns. Bits beyond the chunk's row count are
 * clear. */

_Static_assert(sizeof((quern__row_mask){0}.words) / sizeof(uint64_t) == QUERN__BIT_COLUMN_ROW_WORDS,
               "a mask has room for a chunk's rows");

/* Sets the mask to all rows of a chunk with `row_count` rows. */
static inline void quern__row_mask_all(quern__row_mask *mask, uint32_t row_count)
{
    mask->word_count = (row_count + 63) / 64;
    assert(mask->word_count <= QUERN__BIT_COLUMN_ROW_WORDS && mask->word_count * 64 >= row_count);
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
