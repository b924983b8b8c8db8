/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_REGISTRY_H
#define QUERN_CORE_BASE_REGISTRY_H

/* Common code of the registries of components, resources, events, combines and systems: finding items by name, checking
 * new names, and limits. The items are in a typed QUERN__ARRAY of the owner; a constant quern__registry describes it. */

#include "core/base/array.h"

typedef struct quern__registry {
    const char *what;           /* word for an item in messages, such as "component" */
    const char *owner;          /* word for the owner in messages, such as "world" */
    const char *limit_name;     /* name of the constant `limit`, for messages */
    uint32_t limit;             /* maximal number of items */
    quern_result unknown_error; /* error of invalid handles; QUERN_OK if items have no handles */
    bool holds_pointers;        /* whether the array's elements are pointers to items */
    uint32_t item_bytes;        /* size of an element of the array */
    uint32_t name_offset_bytes; /* offset of the name, a char array, in an item */
} quern__registry;

/* Initialisers for an array of items and for an array of pointers to items. name: member of the item with its name. */
#define QUERN__REGISTRY_OF_ITEMS(what, owner, limit, unknown_error, item, name)                      \
    {                                                                                                \
        (what), (owner), #limit, (limit), (unknown_error), false, sizeof(item), offsetof(item, name) \
    }
#define QUERN__REGISTRY_OF_POINTERS(what, owner, limit, unknown_error, item, name)                    \
    {                                                                                                 \
        (what), (owner), #limit, (limit), (unknown_error), true, sizeof(item *), offsetof(item, name) \
    }

/* Returns the index of the first item with the name, at `first` or later, or `count` if there is none. O(count). */
uint32_t quern__registry_find(const quern__registry *registry, const void *items, uint32_t first,
                              uint32_t count, const char *name);

/* Checks the name of a new item. Errors: INVALID_ARGUMENT if its length is wrong, DUPLICATE_NAME if an item has it. */
quern_result quern__registry_check_new(const quern__registry *registry, const void *items, uint32_t count,
                                       const char *name);

/* Reserves memory in the array for one more item. name: name of the item, for messages. Errors: LIMIT, OUT_OF_MEMORY. */
#define quern__registry_reserve(registry, allocator, array, name)                    \
    ((array)->count >= (registry)->limit ? quern__registry_fail_full(registry, name) \
     : quern__array_reserve((allocator), (array), (array)->count + 1)                \
         ? QUERN_OK                                                                  \
         : quern__registry_fail_memory(registry, name))

/* Report the errors of quern__registry_reserve. */
quern_result quern__registry_fail_full(const quern__registry *registry, const char *name);
quern_result quern__registry_fail_memory(const quern__registry *registry, const char *name);

/* Fails with the registry's unknown_error. The message says whether the handle is null or of another world. */
quern_result quern__registry_fail_unknown(const quern__registry *registry, uint32_t handle_bits,
                                          uint32_t world_tag);
#define quern__registry_fail_unknown(registry, handle_bits, world_tag) \
    quern__known_code((registry)->unknown_error,                       \
                      (quern__registry_fail_unknown)(registry, handle_bits, world_tag))

#endif
