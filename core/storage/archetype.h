/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ARCHETYPE_H
#define QUERN_CORE_STORAGE_ARCHETYPE_H

/* One archetype: all entities with exactly the same set of components, stored in chunks.
 *
 *   slots[0 .. chunk_count)            chunks with rows; all but the last are full
 *   slots[chunk_count .. held_count)   chunks without rows, held for later rows
 *   slots[-1]                          a sentinel without a chunk that counts as full: code that appends to the
 *                                      last slot need not check whether one exists
 *   row count of the archetype = (chunk_count - 1) * row_capacity + slots[chunk_count - 1].row_count
 *   row count of the archetype + reserved_count <= held_count * row_capacity
 *
 * A pass over the rows iterates over the table of slots and never has to read a chunk's header.
 *
 * Colour: the parts (columns and handles) of the archetype with layout_index i begin (i / 8) % 32 cache lines
 * later than the earliest possible offset. Chunks are aligned to 16 KiB, so without colours the first rows of
 * many small archetypes would all map to the same few cache sets. The formula is not i % 32: archetypes
 * created in succession have chunks at successive addresses, so those colours would be correlated with the
 * addresses.
 *
 * From archetype 256 on there are 64 colours. All of them leave 64 cache lines unused, because a capacity
 * that shrinks with the colour would move the later parts back to the same cache sets. In addition, every 512
 * archetypes another part (a column or the handles) is placed first. This costs up to a third of the rows in a
 * chunk, but in worlds with that many archetypes most of them hold few rows. */

#include "core/base/array.h"
#include "core/base/map.h"
#include "core/storage/chunk.h"
#include "core/storage/component_internal.h"
#include "core/storage/copy.h"
#include "core/storage/listener.h"
#include "core/storage/row_bits.h"
#include "core/storage/row_versions.h"
#include "core/storage/version.h"

#include <quern/id.h>

/* Array of one component's values inside every chunk of the archetype. Tags have no column. */
typedef struct quern__column {
    const quern__type *type;
    uint16_t component_index;
    uint16_t offset_bytes; /* offset from the chunk's address; a multiple of 64 */
    uint16_t size_bytes;   /* size of one value */
} quern__column;

/* Position of a component's values in every chunk, in one word for random gets. Offset 0: the archetype has no such
 * column. */
typedef struct quern__column_position {
    uint16_t offset_bytes;
    uint16_t size_bytes;
} quern__column_position;

/* Cached transition to the archetype with one component more or less: the data that a single call needs from the
 * plan. The plan is_plain (see move_plan.h). */
typedef struct quern__edge {
    uint64_t key; /* quern__edge_key; 0: no edge */
    struct quern__archetype *target;
    const quern__copy_word *carry;
    uint32_t target_number;       /* copy of target->number; the entity's next call depends on it */
    quern__column_position added; /* of the added component; size 0 if it is removed or is a tag */
} quern__edge;

/* Number of cached edges. The component determines the only entry in which an edge is stored and looked up. If two
 * edges share an entry, the later one replaces the earlier one, which quern__plan_find_edge finds again. */
enum { QUERN__EDGE_COUNT = 4 };

typedef struct quern__chunk_slot {
    quern__chunk *chunk;
    uint32_t row_count;
} quern__chunk_slot;

/* The first cache line holds the data that a query or a pass reads of an archetype with one chunk. The second to fourth
 * lines hold the data that adding and removing single rows also needs. */
typedef struct quern__archetype {
    quern__chunk_slot *slots; /* table of chunks; first_slots + 1 until more slots are needed */
    quern__chunk_slot first_slots[2];
    quern__chunk_slot *last_slot; /* slots + chunk_count - 1 */
    uint32_t chunk_count;
    uint32_t row_capacity; /* rows per chunk */
    uint16_t entities_offset_bytes;
    bool tracks_changes; /* has versions, move counts, row bits or listeners, which verbs must update */
    uint32_t number;     /* archetype number in entity records; reused after removal */
    uint32_t column_of_count; /* length of column_of and column_positions */
    uint32_t column_count;
    uint32_t held_count;
    uint32_t reserved_count; /* rows reserved for later appends; 0 between structural changes */

    quern__copy_word *relocation; /* copy plan from row to row within the archetype; NULL unless is_plain */
    quern__edge edges[QUERN__EDGE_COUNT];
    bool is_plain;       /* no type has a move or destroy hook, or is larger than QUERN__COPY_MAX_BYTES */
    bool has_fast_leave; /* is_plain, and no listener must reserve room for rows that leave */
    bool has_destroy;    /* some type has a destroy hook */
    /* whether the archetype may retain one chunk while it has no rows; then storage->spares lists the
     * archetype */
    bool may_retain_chunk;
    bool is_removed;  /* about to be removed: see core/calls/reclaim.c */
    bool has_handles; /* has a component with entity fields that users set */
    quern__versions versions;
    quern__row_versions *row_versions; /* NULL if no component has row_changes, or no versions are kept */
    quern__move_counts *move_counts;   /* of the storage; NULL if no component has refs */
    quern__row_bits *row_bits;         /* NULL if the archetype has no bit columns */

    quern__column *columns;      /* ascending by component */
    uint16_t *component_indices; /* including tags; ascending */
    uint8_t *column_of; /* by component index: a column index, QUERN__COLUMN_TAG or QUERN__COLUMN_NONE */
    uint32_t component_count;
    uint32_t slot_capacity;
    uint32_t asked_count; /* chunks that quern_world_reserve asked for, held until quern_world_trim */
    quern__map plans;     /* move plans with this source: see move_plan.h */
    uint64_t set_hash;
    /* Position in the order of archetypes, or QUERN__UNORDERED; changes when earlier archetypes are removed. */
    uint32_t index;
    /* Determines the layout of chunks: the index at creation, so never below index. A history or an archive may set
     * that of an archetype of another world. */
    uint32_t layout_index;
    /* Unique among all present and past archetypes of the world; a history may restore it. */
    uint64_t identity;
    uint64_t empty_since; /* first sync point that found it without rows, or 0: see reclaim.c */
    struct quern__move_plan *incoming;   /* list of the move plans with this target */
    quern__row_listener *first_listener; /* listeners of rooms above storage; NULL if none */
    struct quern__archetype *next_same_hash;
    quern__column_position column_positions[]; /* by component index, like column_of */
} quern__archetype;

enum { QUERN__COLUMN_NONE = 255, QUERN__COLUMN_TAG = 254, QUERN__PART_ALIGNMENT_BYTES = 64 };
_Static_assert(QUERN_MAX_ENTITY_COMPONENTS < QUERN__COLUMN_TAG, "columns are numbered in a byte");

/* The index of an archetype that is not in the order of archetypes yet. */
#define QUERN__UNORDERED UINT32_MAX

/* Creates an archetype without chunks for a sorted set of components. layout_index determines the layout of its
 * chunks; quern__storage_append_archetype sets the index. The archetype keeps change versions if some component is
 * filtered. Errors: COMPONENT_TOO_LARGE (a row does not fit in a chunk), OUT_OF_MEMORY. */
quern_result quern__archetype_create(const quern_allocator *allocator, const quern__components *components,
                                     const uint16_t *component_indices, uint32_t component_count,
                                     uint32_t layout_index, const uint64_t *clock,
                                     quern__archetype **out_archetype);

/* Starts keeping change versions. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_start_versions(quern__archetype *archetype, const quern_allocator *allocator,
                                             const quern__components *components);

/* Adds a bit column. Precondition: the archetype lacks this bit column. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_add_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                             quern__bit_column bit_column);
void quern__archetype_remove_bit_column(quern__archetype *archetype, const quern_allocator *allocator,
                                        quern__bit_column bit_column);

/* Recomputes tracks_changes. */
static inline void quern__archetype_update_tracking(quern__archetype *archetype)
{
    archetype->tracks_changes = archetype->versions.items != NULL || archetype->move_counts != NULL ||
                                archetype->row_bits != NULL || archetype->first_listener != NULL;
}

/* Returns the size of a column in a chunk, in bytes, including padding. */
static inline size_t quern__column_bytes(uint32_t value_bytes, uint32_t rows)
{
    return quern__align_up((size_t)rows * value_bytes, QUERN__PART_ALIGNMENT_BYTES);
}

/* Returns the size of a chunk's contents in bytes. `columns_bytes`: the sum of quern__column_bytes over the
 * columns. */
static inline size_t quern__layout_bytes(size_t columns_bytes, uint32_t rows)
{
    return QUERN__CHUNK_HEADER_BYTES + columns_bytes + quern__column_bytes(sizeof(quern_entity), rows);
}

/* Releases the archetype, but neither its chunks (they are released with their slabs) nor the values in them. */
void quern__archetype_release(quern__archetype *archetype, const quern_allocator *allocator);

/* Destroys all values of types with a destroy hook. */
void quern__archetype_destroy_values(quern__archetype *archetype);

static inline uint64_t quern__archetype_row_count(const quern__archetype *archetype)
{
    if (archetype->chunk_count == 0) return 0;
    uint32_t last = archetype->chunk_count - 1;
    return (uint64_t)last * archetype->row_capacity + archetype->slots[last].row_count;
}

/* Returns the location of a row. `row`: its index over all chunks. */
static inline uintptr_t quern__archetype_location(const quern__archetype *archetype, uint32_t row)
{
    return quern__location_make(archetype->slots[row / archetype->row_capacity].chunk,
                                row % archetype->row_capacity);
}

static inline uint32_t quern__archetype_column(const quern__archetype *archetype, uint32_t component_index)
{
    return component_index < archetype->column_of_count ? archetype->column_of[component_index]
                                                        : (uint32_t)QUERN__COLUMN_NONE;
}

/* Returns the position of a component's values; offset 0 if the archetype has no such column. */
static inline quern__column_position quern__archetype_column_position(const quern__archetype *archetype,
                                                                      uint32_t component_index)
{
    return component_index < archetype->column_of_count ? archetype->column_positions[component_index]
                                                        : (quern__column_position){0};
}

static inline bool quern__archetype_has(const quern__archetype *archetype, uint32_t component_index)
{
    return quern__archetype_column(archetype, component_index) != QUERN__COLUMN_NONE;
}

/* Returns the index of a component's version among the versions of a chunk. Precondition: the archetype has the
 * component. */
static inline uint32_t quern__archetype_version_index(const quern__archetype *archetype,
                                                      uint32_t component_index)
{
    const uint32_t column = archetype->column_of[component_index];
    if (column < QUERN__COLUMN_TAG) return 1 + column;
    uint32_t index = 1 + archetype->column_count;
    for (uint32_t i = 0; archetype->component_indices[i] != component_index; i++)
        index += archetype->column_of[archetype->component_indices[i]] == QUERN__COLUMN_TAG;
    return index;
}

/* Returns whether the entity in a row has the component, and the component is enabled. */
static inline bool quern__row_is_enabled(const quern__archetype *archetype, uintptr_t location,
                                         uint32_t component_index)
{
    if (!quern__archetype_has(archetype, component_index)) return false;
    const uint32_t bit_column =
        quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, component_index);
    return bit_column == QUERN__NO_BIT_COLUMN ||
           !quern__bit_column_test(archetype->row_bits, bit_column, location);
}

static inline quern_entity *quern__archetype_entities(const quern__archetype *archetype,
                                                      const quern__chunk *chunk)
{
    return (quern_entity *)(void *)((char *)(uintptr_t)chunk + archetype->entities_offset_bytes);
}

static inline void *quern__column_value(const quern__column *column, const quern__chunk *chunk,
                                        uint32_t row)
{
    return (char *)(uintptr_t)chunk + column->offset_bytes + (size_t)row * column->size_bytes;
}

/* Returns the key of an edge. A single comparison of keys distinguishes the component from those of other worlds,
 * and adding from removing. The key is never 0, even for the null component. */
static inline uint64_t quern__edge_key(quern_component component, bool adds)
{
    return (adds ? 1ull : 2ull) << 32 | component.bits;
}

/* Set in the key of a cached edge if moves along it need a reservation, because the source lacks has_fast_leave. Fast
 * paths, which make none, therefore do not find the edge. */
#define QUERN__EDGE_NEEDS_ROOM (1ull << 34)

static inline quern_component quern__edge_component(uint64_t key)
{
    return (quern_component){(uint32_t)key};
}

/* Returns the only entry that can hold the edge with this key. */
static inline quern__edge *quern__archetype_edge(quern__archetype *archetype, uint64_t key)
{
    return &archetype->edges[key % QUERN__EDGE_COUNT];
}

/* ----------------------------------------------------------------------------------- room for rows */

/* Implements the case of quern__archetype_reserve that needs more chunks. */
quern_result quern__archetype_reserve_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                             const quern_allocator *allocator, uint32_t count);

/* Returns the number of rows that can be reserved without another chunk. */
static inline uint64_t quern__archetype_available_count(const quern__archetype *archetype)
{
    return (uint64_t)archetype->held_count * archetype->row_capacity -
           quern__archetype_row_count(archetype) - archetype->reserved_count;
}

/* Reserves room for `count` more appends. On failure nothing is reserved. */
static inline quern_result quern__archetype_reserve(quern__archetype *archetype, quern__slabs *slabs,
                                                    const quern_allocator *allocator, uint32_t count)
{
    if (QUERN__UNLIKELY(quern__archetype_available_count(archetype) < count))
        return quern__archetype_reserve_chunks(archetype, slabs, allocator, count);
    archetype->reserved_count += count;
    return QUERN_OK;
}

/* Releases chunks without rows, except those needed for reserved rows and a few that are retained for later rows. */
void quern__archetype_trim(quern__archetype *archetype, quern__slabs *slabs,
                           const quern_allocator *allocator);

/* Releases all chunks without rows. */
void quern__archetype_release_spare_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                           const quern_allocator *allocator);

#endif
