/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_LIST_INTERNAL_H
#define QUERN_CORE_BASE_LIST_INTERNAL_H

/* Blocks of lists (<quern/list.h>). A block is shared by the lists that are copies of each other. Elements are constant
 * while several lists share them: a list gets a block of its own before it changes one. So a copy needs no memory, and the
 * hooks of types, which cannot fail, can copy lists.
 *
 * At most one of the lists that share a block has `quern__room`: it alone may append behind its elements, which no other
 * list has, without reading the block. A copy of a list's bytes that becomes a list of its own begins without room
 * (quern__list_share); it gets room once it is alone.
 *
 * Invariants: the list with room has at least as many elements as each list that shares its block. Lists of strings and
 * texts have no room, so those that share a block have the same count. A list without a block has count 0. */

#include "core/base/base_internal.h"

#include <quern/list.h>

#include <stdatomic.h>
#include <string.h>

#define QUERN__LIST_TEXT \
    0xFFFFFFFEu /* `element` of the list in a quern_string: bytes, and a zero byte after the last */

/* In front of the elements. */
typedef struct quern__list_block {
    _Atomic uint32_t share_count;
    uint32_t capacity; /* in elements */
    uint32_t element;
    uint32_t allocated_bytes;
} quern__list_block;

_Static_assert(sizeof(quern__list_block) == QUERN_LIST_ALIGNMENT, "elements are aligned");
_Static_assert(sizeof(quern_list) == 16 && sizeof(quern_string) == 16,
               "lists have one size on all platforms");

/* Returns the size of an element in bytes. */
static inline uint32_t quern__list_element_bytes(uint32_t element)
{
    return element == QUERN_LIST_STRINGS ? (uint32_t)sizeof(quern_string)
           : element == QUERN__LIST_TEXT ? 1
                                         : element;
}

/* Returns the block of a list, or NULL. */
static inline quern__list_block *quern__list_block_of(const quern_list *list)
{
    return list->items != NULL ? (quern__list_block *)(uintptr_t)list->items - 1 : NULL;
}

/* Makes a copy of a list's bytes a list of its own, which shares the block. */
static inline void quern__list_share(quern_list *list)
{
    if (list->items == NULL) return;
    list->quern__room = 0;
    /* relaxed, pairs with nothing: the thread has a share already, so no other one can destroy the block or change what
     * the thread reads */
    atomic_fetch_add_explicit(&quern__list_block_of(list)->share_count, 1, memory_order_relaxed);
}

/* Replaces an empty list by one with `count` uninitialised elements in a block of its own. Strings must be written
 * before anything else. Returns false, without a message, if out of memory or beyond QUERN_MAX_LIST_BYTES. */
bool quern__list_allocate(quern_list *list, uint32_t element, uint32_t count);

#endif
