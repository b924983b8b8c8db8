/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_VERSION_H
#define QUERN_CORE_STORAGE_VERSION_H

/* Change versions: when the rows of a chunk, and each component in it, last changed. Only archetypes that
 * some `changed` filter looks at keep them; for the others, writing costs a look at a NULL. Those of single
 * rows are in core/storage/row_versions.h.
 *
 * Time is the storage's clock, which only grows. A filter remembers the time of its last look; what has a
 * later version is new to it.
 *
 *   items[slot * stride]          rows came to the chunk, or moved in it: all components count as changed
 *   items[slot * stride + i]      the component of version index i was written, enabled or disabled: first
 *                                 the columns in their order, then the tags
 *                                 (quern__archetype_version_index)
 *
 * The first is written where rows are (core/storage/change.h): by whoever owns the world, or at a sync
 * point, where several threads may bring rows to one chunk and all write the same; hence the atomic store.
 * The others also by systems, each the columns that it may write, in the chunk that its job owns; and by
 * getters of several threads, which may write different rows of one chunk and all write the same. */

#include "core/base/base_internal.h"

typedef struct quern__versions {
    uint64_t *items; /* NULL: not kept */
    uint32_t slot_capacity, stride;
    const uint64_t *clock;
} quern__versions;

/* Starts to keep versions for that many slots, all of them now. stride: of a slot, with that of its rows.
 * False when there is no memory. */
bool quern__versions_start(quern__versions *versions, const quern_allocator *allocator,
                           uint32_t slot_capacity, uint32_t stride);

/* Room for more slots, if they are kept. False, with nothing changed, when there is no memory. */
bool quern__versions_grow(quern__versions *versions, const quern_allocator *allocator,
                          uint32_t slot_capacity);

void quern__versions_release(quern__versions *versions, const quern_allocator *allocator);

/* The versions of one chunk, or NULL. */
static inline uint64_t *quern__versions_of(const quern__versions *versions, uint32_t slot)
{
    return versions->items != NULL ? versions->items + (size_t)slot * versions->stride : NULL;
}

static inline void quern__versions_note_rows(const quern__versions *versions, uint32_t slot)
{
    /* relaxed: read after the threads have been waited for */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot), *versions->clock, __ATOMIC_RELAXED);
}

static inline void quern__versions_note(const quern__versions *versions, uint32_t slot,
                                        uint32_t version_index)
{
    /* relaxed: as above */
    if (QUERN__UNLIKELY(versions->items != NULL))
        __atomic_store_n(quern__versions_of(versions, slot) + version_index, *versions->clock,
                         __ATOMIC_RELAXED);
}

/* The first of them, from number `from` on, that is later than base; or count. Looks at eight together,
 * which most compilers turn into wide instructions. */
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
