/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_MAP_H
#define QUERN_CORE_BASE_MAP_H

/* A hash map from 64-bit keys (not 0) to 64-bit values. Open addressing with linear probing, at most half
 * full. No slot in a cluster is ever empty, so a probe ends at the first empty slot. All zero is empty. */

#include "core/base/base_internal.h"
#include "core/base/hash.h"

typedef struct quern__map_slot {
    uint64_t key; /* 0: empty */
    uint64_t value;
} quern__map_slot;

typedef struct quern__map {
    quern__map_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t count;    /* at most capacity / 2 */
} quern__map;

void quern__map_release(quern__map *map, const quern_allocator *allocator);

/* Room for `wanted` entries in all; false, with the map as it was, when there is no memory. */
bool quern__map_reserve(quern__map *map, const quern_allocator *allocator, uint32_t wanted);

/* Empties the map and keeps its memory. */
void quern__map_clear(quern__map *map);

/* Called for every key, empties the map: cheaper than clearing when they are few. In between it is no
 * map. */
void quern__map_forget(quern__map *map, uint64_t key);

/* Takes out an entry that is there. */
void quern__map_remove(quern__map *map, uint64_t key);

/* Puts an entry whose key is not there yet; room must have been reserved. */
void quern__map_put(quern__map *map, uint64_t key, uint64_t value);

/* The value of a key, or NULL. Valid until the next put or reserve. */
static inline uint64_t *quern__map_find(const quern__map *map, uint64_t key)
{
    if (map->capacity == 0) return NULL;
    uint32_t mask = map->capacity - 1;
    for (uint32_t i = (uint32_t)quern__hash_mix(key) & mask;; i = (i + 1) & mask) {
        if (map->slots[i].key == key) return &map->slots[i].value;
        if (map->slots[i].key == 0) return NULL;
    }
}

static inline void *quern__map_find_pointer(const quern__map *map, uint64_t key)
{
    uint64_t *value = quern__map_find(map, key);
    return value ? (void *)(uintptr_t)*value : NULL;
}

#endif
