/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/map.h"

enum { SLOT_ALIGNMENT_BYTES = 64 };

static quern__map_slot *slots_allocate(const quern_allocator *allocator, uint32_t capacity)
{
    size_t size_bytes = (size_t)capacity * sizeof(quern__map_slot);
    quern__map_slot *slots = quern__allocate(allocator, size_bytes, SLOT_ALIGNMENT_BYTES);
    if (slots != NULL) memset(slots, 0, size_bytes);
    return slots;
}

void quern__map_release(quern__map *map, const quern_allocator *allocator)
{
    quern__release(allocator, map->slots, (size_t)map->capacity * sizeof(quern__map_slot),
                   SLOT_ALIGNMENT_BYTES);
    *map = (quern__map){0};
}

bool quern__map_reserve(quern__map *map, const quern_allocator *allocator, uint32_t wanted)
{
    uint32_t capacity = map->capacity ? map->capacity : 4;
    while (capacity / 2 < wanted)
        capacity *= 2;
    if (capacity == map->capacity) return true;

    quern__map grown = {.slots = slots_allocate(allocator, capacity), .capacity = capacity};
    if (grown.slots == NULL) return false;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key != 0) quern__map_put(&grown, map->slots[i].key, map->slots[i].value);
    quern__map_release(map, allocator);
    *map = grown;
    return true;
}

void quern__map_clear(quern__map *map)
{
    if (map->count > 0) memset(map->slots, 0, (size_t)map->capacity * sizeof(quern__map_slot));
    map->count = 0;
}

/* Empties all slots from the key's home slot to the end of the cluster. Entries of other keys are lost or cannot be found
 * any more, so the caller has to pass all keys. No entry remains in the end: a call that has emptied a slot between a
 * key's home slot and its entry did not stop before that entry. */
void quern__map_clear_key(quern__map *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t i = (uint32_t)quern__hash_mix(key) & mask; map->slots[i].key != 0; i = (i + 1) & mask)
        map->slots[i].key = 0;
    map->count = 0;
}

/* Removing an entry leaves a gap. A later entry of the cluster that a search would miss because of the gap moves into it,
 * which makes the next gap. */
void quern__map_remove(quern__map *map, uint64_t key)
{
    const uint32_t mask = map->capacity - 1;
    uint32_t gap = (uint32_t)quern__hash_mix(key) & mask;
    while (map->slots[gap].key != key)
        gap = (gap + 1) & mask;
    for (uint32_t i = (gap + 1) & mask; map->slots[i].key != 0; i = (i + 1) & mask) {
        const uint32_t home = (uint32_t)quern__hash_mix(map->slots[i].key) & mask;
        if (((i - home) & mask) < ((i - gap) & mask)) continue; /* its search begins after the gap */
        map->slots[gap] = map->slots[i];
        gap = i;
    }
    map->slots[gap].key = 0;
    map->count--;
}

void quern__map_put(quern__map *map, uint64_t key, uint64_t value)
{
    assert(key != 0 && map->count < map->capacity / 2);
    uint32_t mask = map->capacity - 1;
    uint32_t i = (uint32_t)quern__hash_mix(key) & mask;
    while (map->slots[i].key != 0)
        i = (i + 1) & mask;
    map->slots[i] = (quern__map_slot){.key = key, .value = value};
    map->count++;
}
