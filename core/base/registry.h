/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_REGISTRY_H
#define QUERN_CORE_BASE_REGISTRY_H

/* What the registries of components, resources, events, combines and systems share: items in a QUERN__ARRAY that are
 * found by name, up to a limit, with the same messages. The array stays with its owner and is typed; a constant
 * quern__registry describes it. */

#include "core/base/array.h"

typedef struct quern__registry {
    const char *what;           /* an item in messages: "component" */
    const char *owner;          /* of the registry in messages: "world" */
    const char *limit_name;     /* the constant for `limit` */
    uint32_t limit;             /* the most items */
    quern_result unknown_error; /* for other handles than the registry's; QUERN_OK: there are no handles */
    bool holds_pointers;        /* the array has pointers to items */
    uint32_t item_bytes;        /* of an element of the array */
    uint32_t name_offset_bytes; /* of the name, an array of char, in an item */
} quern__registry;

/* Describes an array of items, or of pointers to items; `name` is the member with the name. */
#define QUERN__REGISTRY_OF_ITEMS(what, owner, limit, unknown_error, item, name)                      \
    {                                                                                                \
        (what), (owner), #limit, (limit), (unknown_error), false, sizeof(item), offsetof(item, name) \
    }
#define QUERN__REGISTRY_OF_POINTERS(what, owner, limit, unknown_error, item, name)                    \
    {                                                                                                 \
        (what), (owner), #limit, (limit), (unknown_error), true, sizeof(item *), offsetof(item, name) \
    }

/* Returns the index of the first item from `first` on that has the name, or `count`. O(count). */
uint32_t quern__registry_find(const quern__registry *registry, const void *items, uint32_t first,
                              uint32_t count, const char *name);

/* Checks the name of a new item. Errors: INVALID_ARGUMENT, DUPLICATE_NAME. */
quern_result quern__registry_check_new(const quern__registry *registry, const void *items, uint32_t count,
                                       const char *name);

/* Makes room in the array for one more item. Errors: LIMIT, OUT_OF_MEMORY. */
#define quern__registry_reserve(registry, allocator, array, name)                    \
    ((array)->count >= (registry)->limit ? quern__registry_fail_full(registry, name) \
     : quern__array_reserve((allocator), (array), (array)->count + 1)                \
         ? QUERN_OK                                                                  \
         : quern__registry_fail_memory(registry, name))

quern_result quern__registry_fail_full(const quern__registry *registry, const char *name);
quern_result quern__registry_fail_memory(const quern__registry *registry, const char *name);

/* Fails with unknown_error; the message tells a null handle from one of another world. */
quern_result quern__registry_fail_unknown(const quern__registry *registry, uint32_t handle_bits,
                                          uint32_t world_tag);
#define quern__registry_fail_unknown(registry, handle_bits, world_tag) \
    quern__first((registry)->unknown_error,                            \
                 (quern__registry_fail_unknown)(registry, handle_bits, world_tag))

#endif
