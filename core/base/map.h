/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_MAP_H
#define QUERN_CORE_BASE_MAP_H

/* A hash map from 64-bit keys to 64-bit values. 0 is no key. Open addressing with linear probing, at most half full. All
 * slots between the home slot of a key and its entry are occupied, so a search ends at the first empty slot. A map with
 * all members zero is empty. */

#include "core/base/base_internal.h"
#include "core/base/hash.h"

typedef struct quern__map_slot {
    uint64_t key; /* 0: empty */
    uint64_t value;
} quern__map_slot;

typedef struct quern__map {
    quern__map_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t count;    /* number of entries; at most capacity / 2 */
} quern__map;

void quern__map_release(quern__map *map, const quern_allocator *allocator);

/* Makes sure that the map has room for `wanted` entries in all. Returns false, with the map unchanged, if out of memory.
 */
bool quern__map_reserve(quern__map *map, const quern_allocator *allocator, uint32_t wanted);

/* Empties the map and keeps its memory. */
void quern__map_clear(quern__map *map);

/* Empties the map if it is called for every key, in any order. Cheaper than quern__map_clear if there are few keys. The
 * map must not be used between the first call and the last. */
void quern__map_clear_key(quern__map *map, uint64_t key);

/* Removes an entry. Precondition: the map has the key. */
void quern__map_remove(quern__map *map, uint64_t key);

/* Adds an entry. Preconditions: the map lacks the key, and room was reserved. */
void quern__map_put(quern__map *map, uint64_t key, uint64_t value);

/* Returns the address of a key's value, or NULL. The address is valid until the map is reserved, cleared or
 * released, or an entry is removed; quern__map_put moves no entry. */
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
