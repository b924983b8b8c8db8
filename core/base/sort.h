/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SORT_H
#define QUERN_CORE_BASE_SORT_H

/* Stable sorting by 64-bit keys. The caller provides the memory; the C library's qsort may allocate without the user's
 * allocator. */

#include "core/base/base_internal.h"

typedef struct quern__sort_item {
    uint64_t key;
    void *pointer;
} quern__sort_item;

/* Sorts items ascending by key. Items with equal keys keep their order. scratch: memory for `count` items. O(n) for
 * sorted input, O(n log r) for input that consists of r ascending runs. */
void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count);

#endif
