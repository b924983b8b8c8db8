/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SORT_H
#define QUERN_CORE_BASE_SORT_H

/* Sorting by 64-bit keys, in memory that the caller provides: the C library's qsort may allocate behind the
 * back of the user's allocator. */

#include "core/base/base_internal.h"

typedef struct quern__sort_item {
    uint64_t key;
    void *pointer;
} quern__sort_item;

/* Ascending by key; equal keys keep their order. scratch: room for count items. Sorted input costs one
 * look. */
void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count);

#endif
