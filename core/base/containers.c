/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/containers.h"

/* Moves a buffer to new memory. `slot` is the address of a pointer of unknown type, so it is accessed by memcpy, which
 * strict aliasing allows. */
static bool move(const quern_allocator *allocator, void *slot, size_t old_bytes, size_t used_bytes,
                 size_t new_bytes)
{
    void *old, *fresh = quern__allocate(allocator, new_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (fresh == NULL) return false;
    memcpy(&old, slot, sizeof old);
    if (used_bytes > 0) memcpy(fresh, old, used_bytes);
    quern__release(allocator, old, old_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    memcpy(slot, &fresh, sizeof fresh);
    return true;
}

bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes)
{
    uint32_t grown = *capacity < 8 ? 8 : *capacity;
    while (grown < wanted)
        grown = grown > UINT32_MAX / 2 ? wanted : grown * 2;
    if (grown > SIZE_MAX / item_bytes) return false; /* possible only where size_t has 32 bits */
    if (!move(allocator, items_slot, *capacity * item_bytes, count * item_bytes, grown * item_bytes))
        return false;
    *capacity = grown;
    return true;
}

bool quern__marks_extend(quern__marks *marks, const quern_allocator *allocator, uint32_t word_count)
{
    if (!quern__array_reserve(allocator, marks, word_count > 0 ? word_count : 1)) return false;
    while (marks->count < word_count || marks->count == 0)
        marks->items[marks->count++] = ~UINT64_C(0);
    return true;
}

void quern__marks_release(quern__marks *marks, const quern_allocator *allocator)
{
    quern__array_release(allocator, marks);
    *marks = (quern__marks){0};
}

bool quern__bytes_grow(const quern_allocator *allocator, void *bytes_slot, size_t *capacity, size_t count,
                       size_t wanted, size_t least_bytes)
{
    size_t grown = *capacity > 0 ? 2 * *capacity : least_bytes;
    while (grown < wanted)
        grown *= 2;
    if (!move(allocator, bytes_slot, *capacity, count, grown)) return false;
    *capacity = grown;
    return true;
}

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

static const char *name_at(const quern__registry *registry, const void *items, uint32_t i)
{
    const void *item = (const char *)items + (size_t)i * registry->item_bytes;
    if (registry->holds_pointers) memcpy(&item, item, sizeof item);
    return (const char *)item + registry->name_offset_bytes;
}

uint32_t quern__registry_find(const quern__registry *registry, const void *items, uint32_t first,
                              uint32_t count, const char *name)
{
    uint32_t i = first;
    while (i < count && strcmp(name_at(registry, items, i), name) != 0)
        i++;
    return i;
}

quern_result quern__registry_check_new(const quern__registry *registry, const void *items, uint32_t count,
                                       const char *name)
{
    const quern_result result = quern__check_name(name, registry->what);
    if (result != QUERN_OK || quern__registry_find(registry, items, 0, count, name) == count) return result;
    return quern__fail(QUERN_ERROR_DUPLICATE_NAME, "the %s already has a %s '%s': choose another name",
                       registry->owner, registry->what, name);
}

quern_result quern__registry_fail_full(const quern__registry *registry, const char *name)
{
    return quern__fail(QUERN_ERROR_LIMIT, "%s '%s': the %s has %u already (%s): register fewer",
                       registry->what, name, registry->owner, registry->limit, registry->limit_name);
}

quern_result quern__registry_fail_memory(const quern__registry *registry, const char *name)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s '%s': no memory to register it", registry->what,
                       name);
}

quern_result(quern__registry_fail_unknown)(const quern__registry *registry, uint32_t handle_bits,
                                           uint32_t world_tag)
{
    if (handle_bits == 0)
        return quern__fail(
            registry->unknown_error,
            "the %s handle is null: register it first, or check its name (a search for an unknown "
            "name returns null)",
            registry->what);
    return quern__fail(registry->unknown_error,
                       "%s handle %#x is not of this world (tag %u): register the %s in this world",
                       registry->what, handle_bits, world_tag, registry->what);
}

/* Natural merge sort. The input is most often a concatenation of a few sorted lists. Each pass finds the ascending runs
 * and merges them in pairs. */

/* Returns the end of the ascending run that begins at `begin`. */
static uint32_t run_end(const quern__sort_item *items, uint32_t begin, uint32_t count)
{
    if (begin == count) return count;
    uint32_t end = begin + 1;
    while (end < count && items[end - 1].key <= items[end].key)
        end++;
    return end;
}

/* Merges [begin, middle) and [middle, end) of source into target. */
static void merge(quern__sort_item *target, const quern__sort_item *source, uint32_t begin, uint32_t middle,
                  uint32_t end)
{
    uint32_t a = begin, b = middle, to = begin;
    while (a < middle && b < end)
        target[to++] = source[a].key <= source[b].key ? source[a++] : source[b++];
    memcpy(target + to, source + a, (middle - a) * sizeof *target);
    memcpy(target + to + (middle - a), source + b, (end - b) * sizeof *target);
}

void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count)
{
    quern__sort_item *from = items, *to = scratch;
    uint32_t first_end = run_end(from, 0, count);
    while (first_end < count) {
        for (uint32_t begin = 0, middle = first_end, end; begin < count; begin = end) {
            if (begin > 0) middle = run_end(from, begin, count);
            end = run_end(from, middle, count);
            merge(to, from, begin, middle, end);
        }
        quern__sort_item *merged = to;
        to = from;
        from = merged;
        first_end = run_end(from, 0, count);
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__

/* Makes each word from the bytes that a little-endian machine has at its place. */
uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count)
{
    const unsigned char *bytes = numbers;
    const size_t size = number_bytes * count;
    for (size_t start = 0; start < size; start += 8) {
        const size_t end = size - start < 8 ? size : start + 8;
        uint64_t word = end - start < 8 ? (uint64_t)(end - start) << 56 : 0;
        for (size_t i = start; i < end; i++) {
            const size_t number = i / number_bytes, byte = number_bytes - 1 - i % number_bytes;
            word |= (uint64_t)bytes[number * number_bytes + byte] << (i - start) * 8;
        }
        hash = quern__hash_word(hash, word);
    }
    return hash;
}

uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    return quern__hash_numbers(hash, bytes, 1, count);
}

#else

uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count)
{
    return quern__hash_bytes(hash, numbers, number_bytes * count);
}

uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t word;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = quern__hash_word(hash, word);
    }
    if (count > 0) {
        word = (uint64_t)count << 56; /* distinguishes inputs that differ only in trailing zero bytes */
        memcpy(&word, at, count);
        hash = quern__hash_word(hash, word);
    }
    return hash;
}

#endif

uint64_t quern__hash_string(const char *string)
{
    return quern__hash_bytes(0, string, strlen(string));
}
