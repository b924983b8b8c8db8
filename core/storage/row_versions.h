/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ROW_VERSIONS_H
#define QUERN_CORE_STORAGE_ROW_VERSIONS_H

/* Change versions of single rows: the time when a component of the row's entity last changed. A component registered
 * with row_changes has a lane in each of its archetypes that keeps change versions of chunks
 * (core/storage/version.h). Other archetypes have no lanes.
 *
 *   per slot:   | lane | lane | ...              in the order of components
 *   per lane:   | ... | group | group | version | version | ...
 *                                                one version per row of the chunk's capacity
 *
 * A *group* is a version for 8 rows, at least the latest of theirs that a write gave them. The group of the first
 * rows is directly before their versions, the next one before it. A reader that looks for few changed rows reads an
 * eighth of the memory, and the versions of single rows only in groups that are new.
 *
 * A version moves with its row. A component that is added to a row has the current time as its version.
 *
 * Invariant (checked by quern_world_validate): the version of a row is at most the larger of two versions of its
 * chunk, that of the component and the structural one. A reader for which neither is new can therefore skip all rows
 * of the chunk. The invariant holds because every change of a row version also stores the current time in one of the
 * two, and rows that move carry an older version to a chunk, and the structural version of
 * that chunk becomes the current time. The version of a row is also at most the larger of its group's and the
 * structural version, for the same reason: moves leave groups alone.
 *
 * Threads: the thread that may write a row's value, or moves the row, writes its version. No other thread reads or
 * writes that version meanwhile. Several threads may raise one group. Versions of raw rows are meaningless. */

#include "core/storage/chunk.h"

typedef struct quern__row_lane {
    uint32_t component_index;
    uint32_t version_index; /* index of the component among the versions of a chunk */
} quern__row_lane;

typedef struct quern__row_versions {
    uint64_t *items; /* slot_capacity * slot_words; NULL if slot_capacity is 0 */
    quern__row_lane *lanes;
    uint32_t *offsets; /* by version index: offset of the lane in a slot, in words, or QUERN__NO_LANE */
    uint32_t lane_count, version_count;
    uint32_t row_capacity;
    uint32_t group_count; /* groups of a lane */
    uint32_t slot_words;  /* (group_count + row_capacity) * lane_count */
    uint32_t slot_capacity;
} quern__row_versions;

#define QUERN__NO_LANE UINT32_MAX

/* Rows of a group. quern__view_note_row in <quern/query.h> has the number, too. */
#define QUERN__ROW_GROUP 8u

/* Creates at least one lane for an archetype with version_count versions per chunk. The versions of all rows
 * are `now`. Returns NULL if out of memory. */
quern__row_versions *quern__row_versions_create(const quern_allocator *allocator,
                                                const quern__row_lane *lanes, uint32_t lane_count,
                                                uint32_t version_count, uint32_t row_capacity,
                                                uint32_t slot_capacity, uint64_t now);

/* Frees row versions. `versions` may be NULL. */
void quern__row_versions_release(quern__row_versions *versions, const quern_allocator *allocator);

/* Reserves slots for `slot_count` chunks, with spare capacity if it grows. `versions` may be NULL, if the
 * archetype has no lanes. Returns false and changes nothing if out of memory. */
bool quern__row_versions_reserve(quern__row_versions *versions, const quern_allocator *allocator,
                                 uint32_t slot_count);

/* Frees the capacity beyond `slot_count` slots, which must not exceed it. Keeps it if there is no memory for
 * the smaller copy. `versions` may be NULL. */
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

/* Returns the offset of the versions of rows in a lane, in words of its slot. */
static inline uint32_t quern__row_versions_offset(const quern__row_versions *versions, uint32_t lane)
{
    return lane * (versions->group_count + versions->row_capacity) + versions->group_count;
}

/* Returns the array of versions of a slot's rows in the lane with index `lane`. */
static inline uint64_t *quern__row_versions_lane(const quern__row_versions *versions, uint32_t lane,
                                                 uint32_t slot)
{
    return quern__row_versions_of(versions, slot) + quern__row_versions_offset(versions, lane);
}

/* Returns the address of the group of a row. lane: the versions of all rows. */
static inline uint64_t *quern__row_group(uint64_t *lane, uint32_t row)
{
    return lane - 1 - row / QUERN__ROW_GROUP;
}

/* Raises the groups of `count` rows, at least one, to `version`. lane: the versions of all rows. Relaxed: threads that
 * write rows of one group at the same time write the same version, and readers wait for the writing threads. */
static inline void quern__row_groups_raise(uint64_t *lane, uint32_t row, uint32_t count, uint64_t version)
{
    uint64_t *last = quern__row_group(lane, row + count - 1);
    for (uint64_t *group = quern__row_group(lane, row); group >= last; group--)
        if (__atomic_load_n(group, __ATOMIC_RELAXED) < version)
            __atomic_store_n(group, version, __ATOMIC_RELAXED);
}

/* Raises the groups of the first `count` rows to the given versions of these rows, which are about to be written without
 * the other functions. */
void quern__row_groups_raise_to(uint64_t *lane, const uint64_t *row_versions, uint32_t count);

/* Returns the address of a row's version, in the lane that begins `offset` words into its slot. */
static inline uint64_t *quern__row_version(const quern__row_versions *versions, uint32_t offset,
                                           uintptr_t location)
{
    return quern__row_versions_of(versions, quern__chunk_of(location)->index) + offset +
           quern__location_row(location);
}

/* Sets the versions of `count` rows to `now` after their component has changed. Does nothing if the component has no
 * lane. */
static inline void quern__row_versions_note(const quern__row_versions *versions, uint32_t version_index,
                                            uintptr_t first, uint32_t count, uint64_t now)
{
    const uint32_t offset = versions->offsets[version_index];
    if (offset == QUERN__NO_LANE) return;
    const uint32_t row = quern__location_row(first);
    uint64_t *rows = quern__row_version(versions, offset, first);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = now;
    if (count > 0) quern__row_groups_raise(rows - row, row, count, now);
}

/* Sets the versions of `count` rows with new entities to `now` in all lanes. */
void quern__row_versions_arrive(const quern__row_versions *versions, uintptr_t first, uint32_t count,
                                uint64_t now);

/* Copies the versions of rows that move from one archetype to another or within one, for components with a lane in
 * both. In other lanes of the target the versions become `now`. `source` is NULL if that archetype has no lanes. */
void quern__row_versions_move(const quern__row_versions *target, uintptr_t to,
                              const quern__row_versions *source, uintptr_t from, uint32_t count,
                              uint64_t now);

#endif
