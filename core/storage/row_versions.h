/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ROW_VERSIONS_H
#define QUERN_CORE_STORAGE_ROW_VERSIONS_H

/* Change versions of single rows: when the component of the entity there last changed. Components that are
 * registered with row_changes have a lane in each of their archetypes that keeps change versions of chunks
 * (core/storage/version.h); other archetypes have none, and share one look with all that listens to
 * changes.
 *
 *   per slot:   | lane | lane | ...              in the order of components
 *   per lane:   | version | version | ...        of each row that the chunk has room for
 *
 * Versions follow their rows by whatever way they move; what a row gets anew with a component is new.
 *
 * Invariant (checked by quern_world_validate): no row has a later version than its chunk has for the
 * component, or for its rows. So who finds nothing new in the versions of the chunk need not look at rows.
 *
 * Threads. Who may write the value in a row, or moves the row, writes its version, and nobody else reads or
 * writes that one meanwhile. Versions of raw rows mean nothing. */

#include "core/storage/chunk.h"

typedef struct quern__row_lane {
    uint32_t component_index;
    uint32_t version_index; /* of the component, among the versions of a chunk */
} quern__row_lane;

typedef struct quern__row_versions {
    uint64_t *items; /* slot_capacity * slot_words; NULL: 0 slots */
    quern__row_lane *lanes;
    uint32_t *offsets; /* by version index: of the lane in a slot, or QUERN__NO_LANE */
    uint32_t lane_count, version_count;
    uint32_t row_capacity;
    uint32_t slot_words; /* row_capacity * lane_count */
    uint32_t slot_capacity;
} quern__row_versions;

#define QUERN__NO_LANE UINT32_MAX

/* Lanes, at least one, for an archetype whose chunks have version_count versions. All rows of these slots
 * are as new as `now`. NULL: no memory. */
quern__row_versions *quern__row_versions_create(const quern_allocator *allocator,
                                                const quern__row_lane *lanes, uint32_t lane_count,
                                                uint32_t version_count, uint32_t row_capacity,
                                                uint32_t slot_capacity, uint64_t now);

/* NULL is allowed. */
void quern__row_versions_release(quern__row_versions *versions, const quern_allocator *allocator);

/* Room for so many slots, and for more to come. versions: NULL where there are none. False, with nothing
 * changed, when there is no memory. */
bool quern__row_versions_reserve(quern__row_versions *versions, const quern_allocator *allocator,
                                 uint32_t slot_count);

/* Gives back the room behind so many slots, as far as there is memory to do so. NULL is allowed. */
void quern__row_versions_trim(quern__row_versions *versions, const quern_allocator *allocator,
                              uint32_t slot_count);

static inline size_t quern__row_versions_bytes(const quern__row_versions *versions)
{
    return (size_t)versions->slot_capacity * versions->slot_words * sizeof *versions->items;
}

static inline uint64_t *quern__row_versions_of(const quern__row_versions *versions, uint32_t slot)
{
    return versions->items + (size_t)slot * versions->slot_words;
}

/* The versions of the rows of a slot in a lane, by its number. */
static inline uint64_t *quern__row_versions_lane(const quern__row_versions *versions, uint32_t lane,
                                                 uint32_t slot)
{
    return quern__row_versions_of(versions, slot) + (size_t)lane * versions->row_capacity;
}

/* The version of a row in the lane of that offset. */
static inline uint64_t *quern__row_version(const quern__row_versions *versions, uint32_t offset,
                                           uintptr_t location)
{
    return quern__row_versions_of(versions, quern__chunk_of(location)->index) + offset +
           quern__location_row(location);
}

/* The component of these rows has changed, if it has a lane. */
static inline void quern__row_versions_note(const quern__row_versions *versions, uint32_t version_index,
                                            uintptr_t first, uint32_t count, uint64_t now)
{
    const uint32_t offset = versions->offsets[version_index];
    if (offset == QUERN__NO_LANE) return;
    uint64_t *rows = quern__row_version(versions, offset, first);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = now;
}

/* New entities are in these rows. */
void quern__row_versions_arrive(const quern__row_versions *versions, uintptr_t first, uint32_t count,
                                uint64_t now);

/* Rows move, from one archetype to another or within one: carries the versions of lanes that both have; in
 * other lanes of the target the rows are new. source: NULL when that archetype has none. */
void quern__row_versions_move(const quern__row_versions *target, uintptr_t to,
                              const quern__row_versions *source, uintptr_t from, uint32_t count,
                              uint64_t now);

#endif
