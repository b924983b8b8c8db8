/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_PLANES_H
#define QUERN_CORE_STORAGE_PLANES_H

/* Planes: bits of rows, stored outside of the chunks. An archetype has planes only if one of its components can be
 * disabled, or if a reaction needs bits of its rows. In other archetypes, rows are added, removed and moved at the cost
 * of the one test that all change listeners share (core/storage/change.h).
 *
 *   per slot:   | plane | plane | ...                 in the order of the list: by kind, then id
 *   per plane:  | count | word | word | ...           bit r % 64 of word r / 64 belongs to row r
 *
 * Invariants (checked by quern_world_validate): the count is the number of set bits; the bits of raw rows, and those
 * beyond the chunk's row count, are clear.
 *
 * A bit moves with its row: code that moves a row also moves its bits in the planes that both archetypes have, and
 * clears all bits of the old row. A plane has the same position in every slot of its archetype. The planes of
 * components are first in the list and exist since the archetype was created, so their positions never change.
 *
 * Threads: when rows are divided among threads, each thread changes the bits of its own rows. Several threads may change
 * one word and one count at the same time; the operations are therefore atomic. They are relaxed: no thread reads a bit
 * of another thread's row, and later readers of counts and words wait for the threads first. Meanwhile a count is never
 * less than the number of bits that a thread's own rows had before: a bit is added to the count after it was set, and
 * subtracted after it was cleared. Therefore a thread that reads a count of 0 has no bits to clear. */

#include "core/storage/chunk.h"
#include "core/storage/column_flags.h"

/* The meaning of a plane's bits. The first kinds belong to components, one for each row flag (column_flags.h). Example:
 * in QUERN__PLANE_CAN_DISABLE a set bit means that the component, whose index is the plane's id, is disabled. */
#define QUERN__PLANE_OF_FLAG(flag, ...) QUERN__PLANE_##flag,
typedef enum quern__plane_kind {
    QUERN__ROW_FLAGS(QUERN__PLANE_OF_FLAG)
        QUERN__PLANE_ADDED, /* the entity now matches a reaction; id: the reaction's index */
    QUERN__PLANE_SET        /* values that a reaction observes were set; id: the reaction's index */
} quern__plane_kind;

typedef struct quern__plane {
    quern__plane_kind kind;
    uint32_t id;
} quern__plane;

typedef struct quern__planes {
    quern__plane *list; /* by kind, then id */
    uint64_t *words;    /* slot_capacity * slot_words */
    uint32_t count;     /* number of planes */
    uint32_t row_capacity;
    uint32_t plane_words; /* words per plane and slot: 1 for the count, the rest for bits */
    uint32_t slot_words;  /* plane_words * count */
    uint32_t slot_capacity;
    size_t bytes; /* size of the allocation that holds this structure, list and words */
} quern__planes;

enum { QUERN__PLANE_ROW_WORDS = 32, QUERN__PLANE_MAX_ROWS = 64 * QUERN__PLANE_ROW_WORDS };
_Static_assert((QUERN__CHUNK_BYTES - QUERN__CHUNK_HEADER_BYTES) / sizeof(quern_entity) <=
                   QUERN__PLANE_MAX_ROWS,
               "the rows of a chunk have room in a plane");

#define QUERN__NO_PLANE UINT32_MAX

/* ------------------------------------------------------------------------------------ which planes */

/* Returns whether the ids of planes of this kind are component indices. */
static inline bool quern__plane_is_of_component(quern__plane_kind kind)
{
    return kind < QUERN__PLANE_ADDED;
}

/* Adds a plane with all bits clear. The plane must not exist yet. Other planes keep their bits. Allocates *planes if it
 * is NULL. Returns false and changes nothing if out of memory. */
bool quern__planes_add(quern__planes **planes, const quern_allocator *allocator, quern__plane plane,
                       uint32_t row_capacity, uint32_t slot_capacity);

/* Removes a plane, which must exist. Other planes keep their bits. Sets *planes to NULL after the last plane. */
void quern__planes_remove(quern__planes **planes, const quern_allocator *allocator, quern__plane plane);

/* Reserves `slot_capacity` slots. Does nothing if *planes is NULL. Returns false and changes nothing if out of memory. */
bool quern__planes_grow(quern__planes **planes, const quern_allocator *allocator, uint32_t slot_capacity);

/* Frees all planes and sets *planes to NULL. *planes may be NULL. */
void quern__planes_release(quern__planes **planes, const quern_allocator *allocator);

/* Returns a plane's index in the list, or QUERN__NO_PLANE. `planes` may be NULL. */
static inline uint32_t quern__planes_find(const quern__planes *planes, quern__plane_kind kind, uint32_t id)
{
    for (uint32_t i = 0; planes != NULL && i < planes->count; i++)
        if (planes->list[i].kind == kind && planes->list[i].id == id) return i;
    return QUERN__NO_PLANE;
}

/* ------------------------------------------------------------------------------------ one plane */

/* Returns the bits of a plane in a slot; the word before them is the count. `index`: the plane's index in the list. */
static inline uint64_t *quern__plane_words(const quern__planes *planes, uint32_t index, uint32_t slot)
{
    return planes->words + (size_t)slot * planes->slot_words + (size_t)index * planes->plane_words + 1;
}

/* Returns the number of set bits of a plane in a slot. The load is relaxed: later readers have waited for the writing
 * threads (see the head of this file). */
static inline uint32_t quern__plane_count(const quern__planes *planes, uint32_t index, uint32_t slot)
{
    return (uint32_t)__atomic_load_n(quern__plane_words(planes, index, slot) - 1, __ATOMIC_RELAXED);
}

/* Returns the bit of the row at a location. The load is relaxed: no thread reads a bit of another thread's row while
 * threads change bits (see the head of this file). */
static inline bool quern__plane_test(const quern__planes *planes, uint32_t index, uintptr_t location)
{
    const uint32_t row = quern__location_row(location);
    const uint64_t *words = quern__plane_words(planes, index, quern__chunk_index_at(location));
    return __atomic_load_n(&words[row / 64], __ATOMIC_RELAXED) >> row % 64 & 1;
}

/* Sets or clears the bit of one row without atomic operations: the caller must own all rows of the chunk. `words`: the
 * bits of the plane in the slot. Returns 1 if the bit changed, otherwise 0. */
static inline uint64_t quern__plane_put_row(uint64_t *words, uint32_t row, bool bit)
{
    const uint64_t word = words[row / 64], mask = UINT64_C(1) << row % 64;
    const uint64_t change = ((word & mask) != 0) != bit;
    words[row / 64] = bit ? word | mask : word & ~mask;
    words[-1] += bit ? change : 0 - change;
    return change;
}

/* Sets or clears the bit of the row at a location without atomic operations: the caller must own all rows of the
 * chunk. */
static inline void quern__plane_put(const quern__planes *planes, uint32_t index, uintptr_t location,
                                    bool bit)
{
    uint64_t *words = quern__plane_words(planes, index, quern__chunk_index_at(location));
    quern__plane_put_row(words, quern__location_row(location), bit);
}

/* Set and clear the bits of `count` rows of one chunk from location `first` on, whatever their state. Thread-safe while
 * no other thread changes the same rows. */
void quern__plane_set_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count);
void quern__plane_clear_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count);

/* Clears the bits of all rows of a slot in one plane. Not atomic: the caller must own all rows of the chunk. */
void quern__plane_clear_slot(const quern__planes *planes, uint32_t index, uint32_t slot);

/* ------------------------------------------------------------------------------------ all planes */

/* Clears the bits of removed rows in every plane. */
void quern__planes_clear_rows(const quern__planes *planes, uintptr_t first, uint32_t count);

/* Moves the bits of rows that move from one archetype to another or within one, for the planes that both archetypes
 * have. Clears all bits of the rows at `from`. Precondition: the bits of the rows at `to` are clear. `target` is NULL if
 * that archetype has no planes. */
void quern__planes_move_rows(const quern__planes *target, uintptr_t to, const quern__planes *source,
                             uintptr_t from, uint32_t count);

#endif
