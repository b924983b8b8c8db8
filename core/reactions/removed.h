/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_REMOVED_H
#define QUERN_CORE_REACTIONS_REMOVED_H

/* Copies of rows that left an archetype, which one reaction processes later. Blocks contain handles and the values of
 * some columns. Copies are numbered in the order in which they are made; number n is in block n / block_rows, in row
 * n % block_rows:
 *
 *   block:  | handles | column | column | ... | keys |      each part aligned to 64 bytes
 *
 * Memory is reserved before a change begins. Threads that share a change each claim the next numbers for their rows, so
 * the numbers of one sync point depend on timing. The *keys* do not. Sorted by key, copies are in the order of changes.
 * The copies of one sync point are in the order of the rows before it. Any other change is made by one thread; its
 * copies are in the order in which they were made. */

#include "core/storage/archetype.h"

/* A column with copied values. */
typedef struct quern__removed_column {
    const quern__type *type;      /* NULL: values are plain bytes */
    uint16_t source_offset_bytes; /* offset of the column in the archetype's chunks */
    uint16_t offset_bytes;        /* offset of the column in a block */
    uint16_t size_bytes;          /* size of one value */
} quern__removed_column;

typedef struct quern__removed {
    const quern__archetype *archetype;
    quern__removed_column *columns;
    uint32_t column_count;
    bool calls_hooks;    /* some column has a type with hooks, which copying calls */
    uint32_t block_rows; /* number of rows for which one block has room: 1 << block_shift */
    uint32_t block_shift;
    uint32_t keys_offset_bytes, block_bytes;
    uint32_t count;          /* copies; threads claim numbers by adding to it */
    uint32_t change_first;   /* value of `count` when the last change began */
    uint64_t change;         /* number of the last change that reserved memory; see quern__leaving_begin */
    uint64_t promised_count; /* copies that the last change may make */
    QUERN__ARRAY(char *) blocks;
} quern__removed;

/* Computes the layout of blocks: rows, sizes, and the offsets of columns. Precondition: all other members of the
 * columns are set. */
void quern__removed_lay_out(quern__removed *removed, const quern__archetype *archetype);

/* Destroys the copies and releases all memory. */
void quern__removed_release(quern__removed *removed, const quern_allocator *allocator);

/* Reserves memory for `count` more copies in a change. change: number of the change; reservations with the same
 * number add up. Returns false if out of memory; memory that was allocated is kept. */
bool quern__removed_reserve(quern__removed *removed, const quern_allocator *allocator, uint64_t change,
                            uint32_t count);

/* Makes sure that the blocks have memory for `count` copies in all. Returns false if out of memory; memory that was
 * allocated is kept. */
bool quern__removed_reserve_total(quern__removed *removed, const quern_allocator *allocator,
                                  uint32_t count);

/* Copies consecutive rows of one chunk. Precondition: room was reserved. orders_by_row: the change is a sync point.
 * Thread-safe for different rows unless calls_hooks. */
void quern__removed_copy(quern__removed *removed, uintptr_t first, uint32_t count, bool orders_by_row);

/* Copies one row in a change that is no sync point. Precondition: room was reserved, and no other thread copies. */
void quern__removed_copy_row(quern__removed *removed, uintptr_t row);

/* Sorts the copies by key. Returns false, with nothing changed, if out of memory. */
bool quern__removed_sort(quern__removed *removed, const quern_allocator *allocator);

/* Destroys the copies and keeps the memory. */
void quern__removed_clear(quern__removed *removed);

/* Destroys the values of the first `count` copies in a block. */
void quern__removed_destroy_values(const quern__removed *removed, char *block, uint32_t count);

/* Releases blocks without copies, except for keep_count of them. */
void quern__removed_trim(quern__removed *removed, const quern_allocator *allocator, uint32_t keep_count);

/* Returns the number of blocks with copies. */
static inline uint32_t quern__removed_used_blocks(const quern__removed *removed)
{
    return (uint32_t)(((uint64_t)removed->count + removed->block_rows - 1) / removed->block_rows);
}

/* Returns the number of copies in the i-th block. Precondition: i < quern__removed_used_blocks(). */
static inline uint32_t quern__removed_rows_in(const quern__removed *removed, uint32_t i)
{
    const uint32_t left = removed->count - i * removed->block_rows;
    return left < removed->block_rows ? left : removed->block_rows;
}

#endif
