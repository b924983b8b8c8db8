/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_STORAGE_MOVE_H
#define QUERN_CORE_STORAGE_STORAGE_MOVE_H

/* Structural changes taken apart, for playback: values, handles and the number of rows, each by itself and
 * for a run of neighbouring rows of one chunk. In between, the storage's invariants do not hold. None of
 * these can fail.
 *
 * Those that carry, relocate or place touch nothing but the rows they are given and the records of the
 * entities in them, so several threads may do so at a time for different rows, as long as no type has
 * hooks. */

#include "core/storage/storage.h"

/* A row of an archetype, counted over all of its chunks. */
static inline uintptr_t quern__archetype_location(const quern__archetype *archetype, uint32_t row)
{
    return quern__location_make(archetype->slots[row / archetype->row_capacity].chunk,
                                row % archetype->row_capacity);
}

static inline char *quern__location_value(uintptr_t location, uint32_t offset_bytes, uint32_t size_bytes)
{
    return (char *)quern__chunk_of(location) + offset_bytes +
           (size_t)quern__location_row(location) * size_bytes;
}

/* Moves the values that both sides of the plan have, and destroys those that the target lacks. */
void quern__storage_carry(const quern__move_plan *plan, uintptr_t to, uintptr_t from, uint32_t count);

/* Writes handles, and where they are now. */
void quern__storage_place(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                          const quern_entity *handles, uint32_t count);

/* Values and handles to other rows of the archetype. */
void quern__storage_relocate(const quern__storage *storage, const quern__archetype *archetype, uintptr_t to,
                             uintptr_t from, uint32_t count);

void quern__storage_destroy_values(const quern__archetype *archetype, uintptr_t location, uint32_t count);

/* Appends rows, out of those reserved; they are raw memory. */
void quern__storage_extend(quern__archetype *archetype, uint32_t count);

/* Takes the last rows out, which are raw memory or whose entities are elsewhere, and gives back what was
 * reserved and not used. */
void quern__storage_shrink(quern__storage *storage, quern__archetype *archetype, uint32_t count);

#endif
