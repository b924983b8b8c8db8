/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_OLD_VALUES_H
#define QUERN_CORE_REACTIONS_OLD_VALUES_H

/* Old values: for a reaction with old terms (quern_term_old), the values that the rows of one archetype had before they
 * were set. There is one block for each chunk that the archetype holds:
 *
 *   block:  | address of a column for each term | column | column | ...     each column aligned to 64 bytes
 *
 * The address of a term without old values is NULL. A column has one value for each row of the chunk. A value is valid
 * while the row's SET bit is set, and from the time when the reaction takes the bit until it has run. Values are copied
 * when the bit becomes set, and move with their rows.
 *
 * Blocks are reserved with the chunks of the archetype (`hold` in core/storage/listener.h), so copying cannot fail and
 * needs no order among threads. Old values are plain bytes: types with hooks for copies cannot have old terms. */

#include "core/base/array.h"
#include "core/storage/archetype.h"

#include <quern/query.h>

/* The values of one old term. */
typedef struct quern__old_column {
    const quern__type *type;
    uint32_t offset_bytes;        /* offset of the column in a block */
    uint16_t source_offset_bytes; /* offset of the component's column in the archetype's chunks */
    uint16_t size_bytes;          /* size of one value */
} quern__old_column;

typedef struct quern__old_values {
    quern__old_column *columns;  /* in the order of the old terms */
    uint32_t column_count;       /* 0: the reaction has no old terms, and no block is reserved */
    uint32_t block_bytes;        /* size of a block */
    QUERN__ARRAY(char *) blocks; /* by index of the chunk in the archetype */
} quern__old_values;

/* Lays out the blocks for the old terms of a list. `columns`: memory for one column per term. Precondition: the
 * archetype has the components of the old terms. */
void quern__old_values_init(quern__old_values *old, quern__old_column *columns,
                            const quern__archetype *archetype, const quern_term *terms,
                            uint32_t term_count);

/* Reserves blocks for `chunk_count` chunks. Returns false if out of memory; blocks that were allocated are kept. */
bool quern__old_values_hold(quern__old_values *old, const quern_allocator *allocator,
                            const quern_term *terms, uint32_t term_count, uint32_t chunk_count);

/* Releases the blocks after the first `keep_count`. */
void quern__old_values_trim(quern__old_values *old, const quern_allocator *allocator, uint32_t keep_count);

/* Releases all memory. */
void quern__old_values_release(quern__old_values *old, const quern_allocator *allocator);

/* Copies the current values of consecutive rows of one chunk to the old values of the rows from `to` on. `source`: the
 * old values of the archetype of these rows; its columns belong to the same terms. */
void quern__old_values_save(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count);

/* Copies the old values of consecutive rows of one chunk to other rows. */
void quern__old_values_move(const quern__old_values *old, uintptr_t to, const quern__old_values *source,
                            uintptr_t from, uint32_t count);

/* Calls a function for one old value. `argument`: that of the visit. */
typedef void quern__old_visit(void *argument, const quern__old_column *column, char *value);

/* Visits the old values of all rows of an archetype with a set bit in a bit column: by row, and in each row in the order
 * of terms. visit: NULL to count only. Returns the number of these rows; 0 if the reaction has no old terms. */
uint32_t quern__old_values_visit(const quern__old_values *old, const quern__archetype *archetype,
                                 uint32_t bit_column, quern__old_visit *visit, void *argument);

/* Returns the size of the old values of one row in bytes. */
uint32_t quern__old_values_row_bytes(const quern__old_values *old);

/* Returns the column addresses of a chunk, one per term; NULL if the reaction has no old terms. */
static inline const void *const *quern__old_values_of(const quern__old_values *old, uint32_t slot)
{
    return old->column_count > 0 ? (const void *const *)(const void *)old->blocks.items[slot] : NULL;
}

#endif
