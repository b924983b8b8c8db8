/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_VERSION_H
#define QUERN_CORE_STORAGE_VERSION_H

/* Change versions of chunks: the time when the rows of a chunk, and each component in it, last changed. Only
 * archetypes that some `changed` filter reads keep them; in other archetypes a write only tests a pointer for NULL.
 * core/storage/row_versions.h keeps the versions of single rows.
 *
 * Times are values of the storage's clock, which never decreases. A filter stores the time of its last check;
 * everything with a later version is new to it.
 *
 *   items[slot * stride]          rows were added to the chunk or moved in it: all components count as changed
 *   items[slot * stride + i]      the component of version index i was written, enabled or disabled: first
 *                                 the columns in their order, then the tags
 *                                 (quern__archetype_version_index)
 *
 * The structural version of a chunk, items[slot * stride], is written where rows change (core/storage/change.h): by
 * the thread that owns the world, or at a sync point. There several threads may add rows to one chunk and all store
 * the same value; the store is therefore atomic. Component versions are also written by systems, each for the columns
 * that it may write in the chunk that its job owns. Getters of several threads may write different rows of one chunk;
 * they all store the same version. */

#include "core/base/base_internal.h"

typedef struct quern__versions {
    uint64_t *items; /* slot_capacity * stride; NULL: no versions are kept */
    uint32_t slot_capacity, stride;
    const uint64_t *clock; /* of the storage */
} quern__versions;

/* Starts to keep versions for `slot_capacity` slots, all set to the current time. `stride`: versions per slot,
 * including the structural version. Returns false if out of memory. */
bool quern__versions_start(quern__versions *versions, const quern_allocator *allocator,
                           uint32_t slot_capacity, uint32_t stride);

/* Reserves versions for `slot_capacity` slots. Does nothing if no versions are kept. Returns false and changes
 * nothing if out of memory. */
bool quern__versions_grow(quern__versions *versions, const quern_allocator *allocator,
                          uint32_t slot_capacity);

void quern__versions_release(quern__versions *versions, const quern_allocator *allocator);

/* Returns the array of versions of one chunk, or NULL if no versions are kept. */
static inline uint64_t *quern__versions_of(const quern__versions *versions, uint32_t slot)
{
    return versions->items != NULL ? versions->items + (size_t)slot * versions->stride : NULL;
}

static inline void quern__versions_note_rows(const quern__versions *versions, uint32_t slot)
{
    /* relaxed: readers wait for the writing threads before they read */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot), *versions->clock, __ATOMIC_RELAXED);
}

static inline void quern__versions_note(const quern__versions *versions, uint32_t slot,
                                        uint32_t version_index)
{
    /* relaxed: readers wait for the writing threads before they read */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot) + version_index, *versions->clock,
                         __ATOMIC_RELAXED);
}

/* Returns the index of the first version later than `base`, from index `from` on, or `count` if there is none. Tests
 * eight versions at a time, which most compilers turn into SIMD instructions. */
static inline size_t quern__versions_find_later(const uint64_t *versions, size_t from, size_t count,
                                                uint64_t base)
{
    enum { TOGETHER = 8 };
    for (bool is_later = false; from + TOGETHER <= count; from += TOGETHER) {
        for (size_t i = 0; i < TOGETHER; i++)
            is_later |= versions[from + i] > base;
        if (is_later) break;
    }
    while (from < count && versions[from] <= base)
        from++;
    return from;
}

#endif
