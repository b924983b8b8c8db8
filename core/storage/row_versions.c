/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/row_versions.h"

enum { ROW_VERSION_ALIGNMENT_BYTES = 64 };

/* ------------------------------------------------------------------------------------------- room */

/* Size of the allocation that holds the structure, its lanes and offsets, but not the versions. */
static size_t head_bytes(uint32_t lane_count, uint32_t version_count)
{
    return sizeof(quern__row_versions) + lane_count * sizeof(quern__row_lane) +
           version_count * sizeof(uint32_t);
}

quern__row_versions *quern__row_versions_create(const quern_allocator *allocator,
                                                const quern__row_lane *lanes, uint32_t lane_count,
                                                uint32_t version_count, uint32_t row_capacity,
                                                uint32_t slot_capacity, uint64_t now)
{
    char *memory =
        quern__allocate(allocator, head_bytes(lane_count, version_count), ROW_VERSION_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    quern__row_versions *versions = (quern__row_versions *)(void *)memory;
    *versions =
        (quern__row_versions){.lanes = (quern__row_lane *)(void *)(versions + 1),
                              .lane_count = lane_count,
                              .version_count = version_count,
                              .row_capacity = row_capacity,
                              .group_count = (row_capacity + QUERN__ROW_GROUP - 1) / QUERN__ROW_GROUP};
    versions->slot_words = (versions->group_count + row_capacity) * lane_count;
    versions->offsets = (uint32_t *)(void *)(versions->lanes + lane_count);
    memset(versions->offsets, 0xFF, version_count * sizeof *versions->offsets);
    for (uint32_t i = 0; i < lane_count; i++) {
        versions->lanes[i] = lanes[i];
        versions->offsets[lanes[i].version_index] = quern__row_versions_offset(versions, i);
    }
    if (!quern__row_versions_reserve(versions, allocator, slot_capacity)) {
        quern__row_versions_release(versions, allocator);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)slot_capacity * versions->slot_words; i++)
        versions->items[i] = now;
    return versions;
}

static void release_items(quern__row_versions *versions, const quern_allocator *allocator)
{
    if (versions->items != NULL)
        quern__release(allocator, versions->items, quern__row_versions_bytes(versions),
                       ROW_VERSION_ALIGNMENT_BYTES);
    versions->items = NULL;
    versions->slot_capacity = 0;
}

void quern__row_versions_release(quern__row_versions *versions, const quern_allocator *allocator)
{
    if (versions == NULL) return;
    release_items(versions, allocator);
    quern__release(allocator, versions, head_bytes(versions->lane_count, versions->version_count),
                   ROW_VERSION_ALIGNMENT_BYTES);
}

/* Changes the capacity and keeps the versions of as many slots as fit. Returns false and changes nothing if out of
 * memory. */
static bool resize(quern__row_versions *versions, const quern_allocator *allocator, uint32_t slot_capacity)
{
    quern__row_versions resized = *versions;
    resized.slot_capacity = slot_capacity;
    const size_t bytes = quern__row_versions_bytes(&resized),
                 old_bytes = quern__row_versions_bytes(versions);
    resized.items = quern__allocate(allocator, bytes, ROW_VERSION_ALIGNMENT_BYTES);
    if (resized.items == NULL) return false;
    if (old_bytes > 0) memcpy(resized.items, versions->items, old_bytes < bytes ? old_bytes : bytes);
    /* groups are raised, never set, so they need a value */
    if (bytes > old_bytes) memset((char *)resized.items + old_bytes, 0, bytes - old_bytes);
    release_items(versions, allocator);
    *versions = resized;
    return true;
}

bool quern__row_versions_reserve(quern__row_versions *versions, const quern_allocator *allocator,
                                 uint32_t slot_count)
{
    if (QUERN__LIKELY(versions == NULL) || slot_count <= versions->slot_capacity) return true;
    const uint32_t doubled = 2 * versions->slot_capacity;
    return resize(versions, allocator, slot_count > doubled ? slot_count : doubled);
}

void quern__row_versions_trim(quern__row_versions *versions, const quern_allocator *allocator,
                              uint32_t slot_count)
{
    if (versions == NULL || slot_count == versions->slot_capacity) return;
    if (slot_count > 0)
        (void)resize(versions, allocator, slot_count);
    else
        release_items(versions, allocator);
}

/* ------------------------------------------------------------------------------------------- rows */

static void note_lane(const quern__row_versions *versions, uint32_t lane, uintptr_t first, uint32_t count,
                      uint64_t now)
{
    quern__row_versions_note(versions, versions->lanes[lane].version_index, first, count, now);
}

void quern__row_groups_raise_to(uint64_t *lane, const uint64_t *row_versions, uint32_t count)
{
    for (uint32_t row = 0; row < count; row++)
        quern__row_groups_raise(lane, row, 1, row_versions[row]);
}

void quern__row_versions_arrive(const quern__row_versions *versions, uintptr_t first, uint32_t count,
                                uint64_t now)
{
    for (uint32_t i = 0; i < versions->lane_count; i++)
        note_lane(versions, i, first, count, now);
}

void quern__row_versions_move(const quern__row_versions *target, uintptr_t to,
                              const quern__row_versions *source, uintptr_t from, uint32_t count,
                              uint64_t now)
{
    const uint32_t source_count = source != NULL ? source->lane_count : 0;
    for (uint32_t i = 0, k = 0; i < target->lane_count; i++) {
        const uint32_t component_index = target->lanes[i].component_index;
        while (k < source_count && source->lanes[k].component_index < component_index)
            k++;
        if (k < source_count && source->lanes[k].component_index == component_index)
            memcpy(quern__row_version(target, quern__row_versions_offset(target, i), to),
                   quern__row_version(source, quern__row_versions_offset(source, k), from),
                   count * sizeof(uint64_t));
        else
            note_lane(target, i, to, count, now);
    }
}
