/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_ARRAY_H
#define QUERN_CORE_BASE_ARRAY_H

/* A growing array: QUERN__ARRAY(type) declares one (all zero is empty), the calls below reserve room and
 * release it. Reserving may move the items; nothing else does. Appending is plain C after a reserve:
 *     if (!quern__array_reserve(allocator, &array, array.count + 1)) return out of memory;
 *     array.items[array.count++] = item;  */

#include "core/base/base_internal.h"

#define QUERN__ARRAY(type)        \
    struct {                      \
        type *items;              \
        uint32_t count, capacity; \
    }

/* Room for `wanted` items in all; false, with the array as it was, when there is no memory. */
#define quern__array_reserve(allocator, array, wanted)                                                     \
    ((wanted) <= (array)->capacity ||                                                                      \
     quern__array_grow((allocator), (void *)&(array)->items, &(array)->capacity, (array)->count, (wanted), \
                       sizeof *(array)->items))

#define quern__array_release(allocator, array)                                                      \
    quern__release((allocator), (array)->items, (size_t)(array)->capacity * sizeof *(array)->items, \
                   QUERN__ARRAY_ALIGNMENT_BYTES)

enum { QUERN__ARRAY_ALIGNMENT_BYTES = 64 };

/* Grows memory of bytes, at least by doubling, from `count` used bytes to at least `wanted`, which is at most
 * SIZE_MAX / 2; the first time to at least least_bytes. False, with all as it was, if there is no memory. bytes_slot: the
 * address of the pointer to the memory, which quern__release() takes with QUERN__ARRAY_ALIGNMENT_BYTES. */
bool quern__bytes_grow(const quern_allocator *allocator, void *bytes_slot, size_t *capacity, size_t count,
                       size_t wanted, size_t least_bytes);

/* items_slot: the address of a pointer to items of item_bytes each, whatever their type. */
bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes);

#endif
