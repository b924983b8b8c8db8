/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/array.h"

bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes)
{
    uint32_t grown = *capacity < 8 ? 8 : *capacity;
    while (grown < wanted)
        grown = grown > UINT32_MAX / 2 ? wanted : grown * 2;
    if (grown > SIZE_MAX / item_bytes) return false; /* with 32-bit sizes */
    void *items = quern__allocate(allocator, grown * item_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (items == NULL) return false;

    void *old; /* through memcpy: the slot is a pointer to some item type, which must not be aliased */
    memcpy(&old, items_slot, sizeof old);
    if (count > 0) memcpy(items, old, count * item_bytes);
    quern__release(allocator, old, *capacity * item_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    memcpy(items_slot, &items, sizeof items);
    *capacity = grown;
    return true;
}
