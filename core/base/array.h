/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_ARRAY_H
#define QUERN_CORE_BASE_ARRAY_H

/* Growing arrays. QUERN__ARRAY(type) declares one; an array with all members zero is empty. Only
 * quern__array_reserve moves the items. Items are appended in plain C:
 *     if (!quern__array_reserve(allocator, &array, array.count + 1)) return out of memory;
 *     array.items[array.count++] = item;  */

#include "core/base/base_internal.h"

#define QUERN__ARRAY(type)        \
    struct {                      \
        type *items;              \
        uint32_t count, capacity; \
    }

/* Makes sure that the array has capacity for `wanted` items in all. Returns false, with the array unchanged, if out of
 * memory. */
#define quern__array_reserve(allocator, array, wanted)                                                     \
    ((wanted) <= (array)->capacity ||                                                                      \
     quern__array_grow((allocator), (void *)&(array)->items, &(array)->capacity, (array)->count, (wanted), \
                       sizeof *(array)->items))

#define quern__array_release(allocator, array)                                                      \
    quern__release((allocator), (array)->items, (size_t)(array)->capacity * sizeof *(array)->items, \
                   QUERN__ARRAY_ALIGNMENT_BYTES)

enum { QUERN__ARRAY_ALIGNMENT_BYTES = 64 };

/* Grows a buffer to a capacity of at least `wanted` bytes (at most SIZE_MAX / 2), and keeps its first `count` bytes. The
 * capacity at least doubles; an empty buffer gets at least least_bytes. bytes_slot: address of the pointer to the
 * buffer, which the owner releases with QUERN__ARRAY_ALIGNMENT_BYTES. Returns false, with nothing changed, if out of
 * memory. */
bool quern__bytes_grow(const quern_allocator *allocator, void *bytes_slot, size_t *capacity, size_t count,
                       size_t wanted, size_t least_bytes);

/* The slow path of quern__array_reserve. items_slot: address of the pointer to the items, of any type. item_bytes: size
 * of one item. */
bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes);

#endif
