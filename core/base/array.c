/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/array.h"

/* Moves a buffer to new memory. `slot` is the address of a pointer of unknown type, so it is accessed by memcpy, which
 * strict aliasing allows. */
static bool move(const quern_allocator *allocator, void *slot, size_t old_bytes, size_t used_bytes,
                 size_t new_bytes)
{
    void *old, *fresh = quern__allocate(allocator, new_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (fresh == NULL) return false;
    memcpy(&old, slot, sizeof old);
    if (used_bytes > 0) memcpy(fresh, old, used_bytes);
    quern__release(allocator, old, old_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    memcpy(slot, &fresh, sizeof fresh);
    return true;
}

bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes)
{
    uint32_t grown = *capacity < 8 ? 8 : *capacity;
    while (grown < wanted)
        grown = grown > UINT32_MAX / 2 ? wanted : grown * 2;
    if (grown > SIZE_MAX / item_bytes) return false; /* possible only where size_t has 32 bits */
    if (!move(allocator, items_slot, *capacity * item_bytes, count * item_bytes, grown * item_bytes))
        return false;
    *capacity = grown;
    return true;
}

bool quern__bytes_grow(const quern_allocator *allocator, void *bytes_slot, size_t *capacity, size_t count,
                       size_t wanted, size_t least_bytes)
{
    size_t grown = *capacity > 0 ? 2 * *capacity : least_bytes;
    while (grown < wanted)
        grown *= 2;
    if (!move(allocator, bytes_slot, *capacity, count, grown)) return false;
    *capacity = grown;
    return true;
}
