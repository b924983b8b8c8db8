/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ARCHETYPE_H
#define QUERN_CORE_STORAGE_ARCHETYPE_H

/* One archetype: all entities with exactly the same set of components, in chunks.
 *
 *   slots[0 .. chunk_count)            chunks with rows; all but the last are full
 *   slots[chunk_count .. held_count)   chunks without rows, held for rows to come
 *   slots[-1]                          no chunk, but full: who appends to the last slot need not ask
 *                                      whether there is one
 *   rows in all = (chunk_count - 1) * row_capacity + slots[chunk_count - 1].row_count
 *   rows in all + reserved_count <= held_count * row_capacity
 *
 * The table of slots is what a pass walks: it never has to touch a chunk's header.
 *
 * Colour: the parts of archetype i begin (i / 8) % 32 cache lines later than they could. Chunks are aligned
 * to 16 KiB, so without that the first rows of many small archetypes would all fall on the same few sets of
 * the caches. Not i % 32: archetypes made one after the other have chunks one after the other, so that
 * colours would go in step with the addresses.
 *
 * From archetype 256 on there are 64 colours, all with the capacity of the last of them, for a capacity
 * that shrinks with the colour draws the later parts together again; and with every 512 archetypes another
 * part, column or handles, comes first. That costs up to a third of the rows in a chunk, but where
 * archetypes are that many, most hold few. */

#include "core/base/array.h"
#include "core/base/map.h"
#include "core/storage/chunk.h"
#include "core/storage/component_internal.h"
#include "core/storage/copy.h"
#include "core/storage/listener.h"
#include "core/storage/planes.h"
#include "core/storage/row_versions.h"
#include "core/storage/version.h"

#include <quern/id.h>

/* One component's array inside every chunk of the archetype. Tags have none. */
typedef struct quern__column {
    const quern__type *type;
    uint16_t component_index;
    uint16_t offset_bytes; /* from the chunk; a multiple of 64 */
    uint16_t size_bytes;   /* of one value */
} quern__column;

/* Where a component's values are in every chunk; offset 0: nowhere. What a random get needs, in one
 * word. */
typedef struct quern__place {
    uint16_t offset_bytes;
    uint16_t size_bytes;
} quern__place;

/* The way to the archetype with one component more or less: what a single call needs of its plan, which
 * is_plain (see move_plan.h). */
typedef struct quern__edge {
    uint64_t key; /* quern__edge_key; 0: no edge */
    struct quern__archetype *target;
    const quern__copy_word *carry;
    uint32_t target_number; /* its number, at hand: the entity's next call waits for it */
    quern__place added;     /* size 0 where the component is taken out, or is a tag */
} quern__edge;

/* Edges that are found at once. Each has its place by the component, so that it is looked for in one
 * place only; where two share one, the later stands there, and the earlier is found again by
 * quern__plan_recall. */
enum { QUERN__EDGE_PLACES = 4 };

typedef struct quern__chunk_slot {
    quern__chunk *chunk;
    uint32_t row_count;
} quern__chunk_slot;

/* The first line is what a query touches of an archetype with one chunk, the second and the third what
 * single rows that come and go touch besides. */
typedef struct quern__archetype {
    quern__chunk_slot *slots; /* first_slots + 1, until there are more */
    quern__chunk_slot first_slots[2];
    quern__chunk_slot *last_slot; /* slots + chunk_count - 1 */
    uint32_t chunk_count;
    uint32_t row_capacity; /* of one chunk */
    uint32_t entities_offset_bytes;
    uint32_t number;          /* by which records know it; when it is gone, another's */
    uint32_t column_of_count; /* components from here on are absent */
    uint32_t column_count;
    uint32_t held_count;
    uint32_t reserved_count; /* rows promised to appends to come; 0 between structural changes */

    quern__copy_word *relocation; /* brings a row to another one; NULL unless is_plain */
    quern__edge edges[QUERN__EDGE_PLACES];
    bool is_plain;    /* no type has a move or destroy hook, or is larger than QUERN__COPY_MAX_BYTES */
    bool is_quick;    /* is_plain, and no listener needs room for rows that leave */
    bool has_destroy; /* some type has such a hook */
    bool is_spare;    /* without rows, and on the list of those that may keep a chunk: see storage.h */
    bool is_removed;  /* about to be taken out: see core/calls/reclaim.c */
    bool is_watched;  /* verbs have to call versions, departures, planes or listeners */
    bool has_handles; /* a component that users give values to has entity fields */
    quern__versions versions;
    quern__row_versions *row_versions; /* only with versions; NULL: no component has row_changes */
    quern__departures *departures; /* the storage's, if somebody asks for one of the components; or NULL */
    quern__planes *planes;         /* NULL: there are none */

    quern__column *columns;      /* ascending by component */
    uint16_t *component_indices; /* tags too; ascending */
    uint8_t *column_of;          /* by component index: a column, QUERN__COLUMN_TAG or QUERN__COLUMN_NONE */
    uint32_t component_count;
    uint32_t slot_capacity;
    quern__map plans; /* to other archetypes: see storage.h */
    uint64_t set_hash;
    uint32_t index;       /* in the order of archetypes; another one when earlier ones are gone */
    uint32_t made_index;  /* decides the layout of chunks: the index when it was made, so never below index;
                             a history or an archive may give an archetype that of another world */
    uint64_t identity;    /* which no other archetype of the world has or had; a history may give it back */
    uint64_t empty_since; /* the sync point that saw it without rows first; 0: see core/calls/reclaim.c */
    struct quern__move_plan *incoming;   /* plans of others that lead here */
    quern__row_listener *first_listener; /* what rooms above storage want to hear; NULL: nothing */
    struct quern__archetype *next_same_hash;
    quern__place places[]; /* by component index, as column_of */
} quern__archetype;

enum { QUERN__COLUMN_NONE = 255, QUERN__COLUMN_TAG = 254, QUERN__PART_ALIGNMENT_BYTES = 64 };
_Static_assert(QUERN_MAX_ENTITY_COMPONENTS < QUERN__COLUMN_TAG, "columns are numbered in a byte");

/* Creates an archetype without chunks for a sorted set of components. made_index decides the layout of its
 * chunks; the index is set by quern__storage_link. It keeps change versions if some component is filtered.
 * Errors: COMPONENT_TOO_LARGE (a row does not fit a chunk), OUT_OF_MEMORY. */
quern_result quern__archetype_create(const quern_allocator *allocator, const quern__components *components,
                                     const uint16_t *component_indices, uint32_t component_count,
                                     uint32_t made_index, const uint64_t *clock,
                                     quern__archetype **out_archetype);

/* Keeps change versions from now on. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_track(quern__archetype *archetype, const quern_allocator *allocator,
                                    const quern__components *components);

/* Keeps a plane from now on, which it must not have yet. Errors: OUT_OF_MEMORY. */
quern_result quern__archetype_add_plane(quern__archetype *archetype, const quern_allocator *allocator,
                                        quern__plane plane);
void quern__archetype_remove_plane(quern__archetype *archetype, const quern_allocator *allocator,
                                   quern__plane plane);

/* Recomputes is_watched. */
static inline void quern__archetype_note_watched(quern__archetype *archetype)
{
    archetype->is_watched = archetype->versions.items != NULL || archetype->departures != NULL ||
                            archetype->planes != NULL || archetype->first_listener != NULL;
}

/* The chunk bytes that a column takes. */
static inline size_t quern__column_bytes(uint32_t value_bytes, uint32_t rows)
{
    return quern__align_up((size_t)rows * value_bytes, QUERN__PART_ALIGNMENT_BYTES);
}

/* The chunk bytes that rows with these columns take, given the sum of quern__column_bytes over the
 * columns. */
static inline size_t quern__layout_bytes(size_t columns_bytes, uint32_t rows)
{
    return QUERN__CHUNK_HEADER_BYTES + columns_bytes + quern__column_bytes(sizeof(quern_entity), rows);
}

/* Releases the archetype but neither its chunks (they go with their slabs) nor the values in them. */
void quern__archetype_release(quern__archetype *archetype, const quern_allocator *allocator);

/* Destroys every value that has a destroy hook. */
void quern__archetype_destroy_values(quern__archetype *archetype);

static inline uint64_t quern__archetype_row_count(const quern__archetype *archetype)
{
    if (archetype->chunk_count == 0) return 0;
    uint32_t last = archetype->chunk_count - 1;
    return (uint64_t)last * archetype->row_capacity + archetype->slots[last].row_count;
}

/* A row, counted over all chunks. */
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

/* Offset 0 where the archetype has no such column. */
static inline quern__place quern__archetype_place(const quern__archetype *archetype,
                                                  uint32_t component_index)
{
    return component_index < archetype->column_of_count ? archetype->places[component_index]
                                                        : (quern__place){0};
}

static inline bool quern__archetype_has(const quern__archetype *archetype, uint32_t component_index)
{
    return quern__archetype_column(archetype, component_index) != QUERN__COLUMN_NONE;
}

/* Where the version of a component that the archetype has stands among those of a chunk. */
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

/* Whether the entity in a row has the component, and has it enabled. */
static inline bool quern__row_is_enabled(const quern__archetype *archetype, uintptr_t location,
                                         uint32_t component_index)
{
    if (!quern__archetype_has(archetype, component_index)) return false;
    const uint32_t plane = quern__planes_find(archetype->planes, QUERN__PLANE_CAN_DISABLE, component_index);
    return plane == QUERN__NO_PLANE || !quern__plane_test(archetype->planes, plane, location);
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

/* Compared as a whole, so that it tells a component of this world from others, and adding from removing, at
 * once. Never 0, not even for the null component. */
static inline uint64_t quern__edge_key(quern_component component, bool adds)
{
    return (adds ? 1ull : 2ull) << 32 | component.bits;
}

static inline quern_component quern__edge_component(uint64_t key)
{
    return (quern_component){(uint32_t)key};
}

/* Where the edge stands, if it does. */
static inline quern__edge *quern__archetype_edge(quern__archetype *archetype, uint64_t key)
{
    return &archetype->edges[key % QUERN__EDGE_PLACES];
}

/* ----------------------------------------------------------------------------------- room for rows */

/* The part of quern__archetype_reserve that needs more chunks. */
quern_result quern__archetype_reserve_chunks(quern__archetype *archetype, quern__slabs *slabs,
                                             const quern_allocator *allocator, uint32_t count);

/* Rows that can be promised without another chunk. */
static inline uint64_t quern__archetype_available_count(const quern__archetype *archetype)
{
    return (uint64_t)archetype->held_count * archetype->row_capacity -
           quern__archetype_row_count(archetype) - archetype->reserved_count;
}

/* Promises room for `count` more appends. On failure nothing is held that was not before. */
static inline quern_result quern__archetype_reserve(quern__archetype *archetype, quern__slabs *slabs,
                                                    const quern_allocator *allocator, uint32_t count)
{
    if (QUERN__UNLIKELY(quern__archetype_available_count(archetype) < count))
        return quern__archetype_reserve_chunks(archetype, slabs, allocator, count);
    archetype->reserved_count += count;
    return QUERN_OK;
}

/* Gives chunks without rows back, but for those promised and a few that are kept for the next rows. */
void quern__archetype_trim(quern__archetype *archetype, quern__slabs *slabs,
                           const quern_allocator *allocator);

/* Gives back every chunk without rows. */
void quern__archetype_drop_spare(quern__archetype *archetype, quern__slabs *slabs,
                                 const quern_allocator *allocator);

#endif
