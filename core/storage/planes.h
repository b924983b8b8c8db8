/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_PLANES_H
#define QUERN_CORE_STORAGE_PLANES_H

/* Planes: bits of rows, beside the chunks. An archetype has planes only if one of its components can be
 * disabled, or if somebody else wants to know something of single rows; for the others, rows that come, go
 * and move cost no more than the one look that all listeners share (core/storage/change.h).
 *
 *   per slot:   | plane | plane | ...                 in the order of the list: by kind, then id
 *   per plane:  | count | word | word | ...           bit r % 64 of word r / 64 is row r's
 *
 * Invariants (checked by quern_world_validate): the count is the number of bits that are set; the bits of
 * raw rows, and of rows that are not there, are not set.
 *
 * A bit follows its row: whoever moves the row carries the bits of planes that both archetypes have, and
 * leaves none behind. All planes of one archetype have the same place in every slot; the planes of
 * components come first and are there from the archetype's beginning, so their place never changes.
 *
 * Threads. Where rows are shared out among threads, each changes the bits of its own rows, and several may
 * do so in one word, and add to one count: hence the atomic operations. Relaxed: nobody reads a bit of
 * another thread's row, and who reads counts and words later has waited for the threads. Meanwhile a count
 * is never less than the bits that a thread's own rows had before: bits are counted after they were set,
 * and no longer after they were cleared. So who finds the count 0 has nothing to clear. */

#include "core/storage/chunk.h"
#include "core/storage/column_flags.h"

/* What a bit says of a row. The first kinds are those of components, one for each row flag (column_flags.h), such as
 * QUERN__PLANE_CAN_DISABLE: the component, whose index is the id, is disabled. */
#define QUERN__PLANE_OF_FLAG(flag, ...) QUERN__PLANE_##flag,
typedef enum quern__plane_kind {
    QUERN__ROW_FLAGS(QUERN__PLANE_OF_FLAG)
        QUERN__PLANE_ADDED, /* the entity has come to what a reaction matches; id: the reaction's index */
    QUERN__PLANE_SET        /* values that a reaction looks at were given to the entity; id: as above */
} quern__plane_kind;

typedef struct quern__plane {
    quern__plane_kind kind;
    uint32_t id;
} quern__plane;

typedef struct quern__planes {
    quern__plane *list; /* by kind, then id */
    uint64_t *words;    /* slot_capacity * slot_words */
    uint32_t count;     /* of planes */
    uint32_t row_capacity;
    uint32_t plane_words; /* the count's and the bits' */
    uint32_t slot_words;  /* plane_words * count */
    uint32_t slot_capacity;
    size_t bytes; /* of the allocation that all this is */
} quern__planes;

enum { QUERN__PLANE_ROW_WORDS = 32, QUERN__PLANE_MAX_ROWS = 64 * QUERN__PLANE_ROW_WORDS };
_Static_assert((QUERN__CHUNK_BYTES - QUERN__CHUNK_HEADER_BYTES) / sizeof(quern_entity) <=
                   QUERN__PLANE_MAX_ROWS,
               "the rows of a chunk have room in a plane");

#define QUERN__NO_PLANE UINT32_MAX

/* ------------------------------------------------------------------------------------ which planes */

/* Whether the id of a plane is the index of a component. */
static inline bool quern__plane_is_of_component(quern__plane_kind kind)
{
    return kind < QUERN__PLANE_ADDED;
}

/* Adds a plane without bits, which must not be there yet; the first one brings *planes into being. The
 * others keep their bits. False, with nothing changed, when there is no memory. */
bool quern__planes_add(quern__planes **planes, const quern_allocator *allocator, quern__plane plane,
                       uint32_t row_capacity, uint32_t slot_capacity);

/* Takes a plane out, which must be there; the others keep their bits. *planes is NULL after the last one.
 */
void quern__planes_remove(quern__planes **planes, const quern_allocator *allocator, quern__plane plane);

/* Room for more slots, if there are planes. False, with nothing changed, when there is no memory. */
bool quern__planes_grow(quern__planes **planes, const quern_allocator *allocator, uint32_t slot_capacity);

/* NULL is allowed. */
void quern__planes_release(quern__planes **planes, const quern_allocator *allocator);

/* The place in the list, or QUERN__NO_PLANE. planes may be NULL. */
static inline uint32_t quern__planes_find(const quern__planes *planes, quern__plane_kind kind, uint32_t id)
{
    for (uint32_t i = 0; planes != NULL && i < planes->count; i++)
        if (planes->list[i].kind == kind && planes->list[i].id == id) return i;
    return QUERN__NO_PLANE;
}

/* ------------------------------------------------------------------------------------ one plane */

/* The bits of a plane in a slot, with the count before them. index: in the list. */
static inline uint64_t *quern__plane_words(const quern__planes *planes, uint32_t index, uint32_t slot)
{
    return planes->words + (size_t)slot * planes->slot_words + (size_t)index * planes->plane_words + 1;
}

/* How many rows of the slot have the bit. Relaxed: see above. */
static inline uint32_t quern__plane_count(const quern__planes *planes, uint32_t index, uint32_t slot)
{
    return (uint32_t)__atomic_load_n(quern__plane_words(planes, index, slot) - 1, __ATOMIC_RELAXED);
}

/* Relaxed: see above. */
static inline bool quern__plane_test(const quern__planes *planes, uint32_t index, uintptr_t location)
{
    const uint32_t row = quern__location_row(location);
    const uint64_t *words = quern__plane_words(planes, index, quern__chunk_index_at(location));
    return __atomic_load_n(&words[row / 64], __ATOMIC_RELAXED) >> row % 64 & 1;
}

/* Sets or clears the bit of one row, for who has all rows of the chunk to itself. words: of the plane in
 * the slot. Returns 1, or 0 where the bit was so. */
static inline uint64_t quern__plane_put_row(uint64_t *words, uint32_t row, bool bit)
{
    const uint64_t word = words[row / 64], mask = UINT64_C(1) << row % 64;
    const uint64_t change = ((word & mask) != 0) != bit;
    words[row / 64] = bit ? word | mask : word & ~mask;
    words[-1] += bit ? change : 0 - change;
    return change;
}

/* The same, of the row at a location. */
static inline void quern__plane_put(const quern__planes *planes, uint32_t index, uintptr_t location,
                                    bool bit)
{
    uint64_t *words = quern__plane_words(planes, index, quern__chunk_index_at(location));
    quern__plane_put_row(words, quern__location_row(location), bit);
}

/* Sets the bit of each of these rows of one chunk, whether it was set or not. */
void quern__plane_set_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count);
void quern__plane_clear_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count);

/* Clears the bits of all rows of a slot. */
void quern__plane_clear_slot(const quern__planes *planes, uint32_t index, uint32_t slot);

/* ------------------------------------------------------------------------------------ all planes */

/* Rows have left: clears their bits in every plane. */
void quern__planes_clear_rows(const quern__planes *planes, uintptr_t first, uint32_t count);

/* Rows move, from one archetype to another or within one: carries the bits of planes that both have to rows
 * whose bits are clear, and clears all that were at `from`. target: NULL when the archetype there has no
 * planes. */
void quern__planes_move_rows(const quern__planes *target, uintptr_t to, const quern__planes *source,
                             uintptr_t from, uint32_t count);

#endif
