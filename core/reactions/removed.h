/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_REMOVED_H
#define QUERN_CORE_REACTIONS_REMOVED_H

/* Copies of rows that went from an archetype, for one reaction to look at later: handles, and values of
 * some columns, in blocks. Copies are numbered as they are made; number n is in block n / block_rows, in
 * row n % block_rows:
 *
 *   block:  | handles | column | column | ... | keys |      each aligned to 64
 *
 * Room is reserved before a change begins, and when threads share a change each takes the next numbers for
 * its rows: so the numbers of one sync point depend on who came first. Its *keys* do not. Sorted by key,
 * copies are in the order of changes, and those of one sync point in the order of the rows that they had
 * before it; those of other changes, which one thread makes, in the order in which they were made. */

#include "core/storage/archetype.h"

typedef struct quern__removed_column {
    const quern__type *type;      /* NULL: plain bytes */
    uint16_t source_offset_bytes; /* in the archetype's chunks */
    uint16_t offset_bytes;        /* in a block */
    uint16_t size_bytes;
} quern__removed_column;

typedef struct quern__removed {
    const quern__archetype *archetype;
    quern__removed_column *columns;
    uint32_t column_count;
    bool calls_hooks; /* copying does */
    uint32_t block_rows;
    uint32_t keys_offset_bytes, block_bytes;
    uint32_t count;          /* of copies; threads take numbers here */
    uint32_t change_first;   /* count before the last change, */
    uint64_t change;         /* the number of that change, */
    uint64_t promised_count; /* and the copies that it may make */
    QUERN__ARRAY(char *) blocks;
} quern__removed;

/* Which columns are copied is set, but for their offsets in blocks. */
void quern__removed_lay_out(quern__removed *removed, const quern__archetype *archetype);

/* Destroys the copies, and releases all memory. */
void quern__removed_release(quern__removed *removed, const quern_allocator *allocator);

/* Room for so many copies more, in the change of this number. False when there is no memory; room that was
 * made is kept. */
bool quern__removed_reserve(quern__removed *removed, const quern_allocator *allocator, uint64_t change,
                            uint32_t count);

/* Blocks for so many copies in all, of no change. False when there is no memory; room that was made is
 * kept. */
bool quern__removed_hold(quern__removed *removed, const quern_allocator *allocator, uint32_t count);

/* Copies neighbouring rows; there is room. orders_by_row: in a sync point. Several threads may do so at a
 * time if copying calls no hooks. */
void quern__removed_copy(quern__removed *removed, uintptr_t first, uint32_t count, bool orders_by_row);

/* Brings the copies into the order of their keys. False, with nothing changed, when there is no memory. */
bool quern__removed_sort(quern__removed *removed, const quern_allocator *allocator);

/* Destroys the copies, and keeps the memory. */
void quern__removed_clear(quern__removed *removed);

/* Destroys the values of so many copies in a block. */
void quern__removed_destroy_values(const quern__removed *removed, char *block, uint32_t count);

/* Gives back blocks without copies, but for so many. */
void quern__removed_trim(quern__removed *removed, const quern_allocator *allocator, uint32_t keep_count);

/* How many blocks have copies. */
static inline uint32_t quern__removed_used_blocks(const quern__removed *removed)
{
    return (uint32_t)(((uint64_t)removed->count + removed->block_rows - 1) / removed->block_rows);
}

/* How many copies are in the i-th of these. */
static inline uint32_t quern__removed_rows_in(const quern__removed *removed, uint32_t i)
{
    const uint32_t left = removed->count - i * removed->block_rows;
    return left < removed->block_rows ? left : removed->block_rows;
}

#endif
