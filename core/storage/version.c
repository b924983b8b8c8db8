/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/version.h"

enum { VERSION_ALIGNMENT_BYTES = 64 };

static size_t bytes_for(const quern__versions *versions, uint32_t slot_capacity)
{
    return (size_t)slot_capacity * versions->stride * sizeof *versions->items;
}

bool quern__versions_start(quern__versions *versions, const quern_allocator *allocator,
                           uint32_t slot_capacity, uint32_t stride)
{
    versions->stride = stride;
    uint64_t *items =
        quern__allocate(allocator, bytes_for(versions, slot_capacity), VERSION_ALIGNMENT_BYTES);
    if (items == NULL) return false;
    for (size_t i = 0; i < (size_t)slot_capacity * versions->stride; i++)
        items[i] = *versions->clock;
    versions->items = items;
    versions->slot_capacity = slot_capacity;
    return true;
}

bool quern__versions_grow(quern__versions *versions, const quern_allocator *allocator,
                          uint32_t slot_capacity)
{
    if (versions->items == NULL || slot_capacity <= versions->slot_capacity) return true;
    quern__versions larger = *versions;
    if (!quern__versions_start(&larger, allocator, slot_capacity, versions->stride)) return false;
    memcpy(larger.items, versions->items, bytes_for(versions, versions->slot_capacity));
    quern__versions_release(versions, allocator);
    *versions = larger;
    return true;
}

void quern__versions_release(quern__versions *versions, const quern_allocator *allocator)
{
    quern__release(allocator, versions->items, bytes_for(versions, versions->slot_capacity),
                   VERSION_ALIGNMENT_BYTES);
    versions->items = NULL;
}
