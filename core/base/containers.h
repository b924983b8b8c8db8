/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_CONTAINERS_H
#define QUERN_CORE_BASE_CONTAINERS_H

/* Growing arrays. QUERN__ARRAY(type) declares one; an array with all members zero is empty. Only
 * quern__array_reserve moves the items. Items are appended in plain C:
 *     if (!quern__array_reserve(allocator, &array, array.count + 1)) return out of memory;
 *     array.items[array.count++] = item;  */

#include "core/base/base_internal.h"

#define QUERN__ARRAY(type)        \
    struct {                      \
        type *items;              \
        uint32_t count, capacity; \
    }

/* Makes sure that the array has capacity for `wanted` items in all. Returns false, with the array unchanged, if out of
 * memory. */
#define quern__array_reserve(allocator, array, wanted)                                                     \
    ((wanted) <= (array)->capacity ||                                                                      \
     quern__array_grow((allocator), (void *)&(array)->items, &(array)->capacity, (array)->count, (wanted), \
                       sizeof *(array)->items))

#define quern__array_release(allocator, array)                                                      \
    quern__release((allocator), (array)->items, (size_t)(array)->capacity * sizeof *(array)->items, \
                   QUERN__ARRAY_ALIGNMENT_BYTES)

enum { QUERN__ARRAY_ALIGNMENT_BYTES = 64 };

/* Grows a buffer to a capacity of at least `wanted` bytes (at most SIZE_MAX / 2), and keeps its first `count` bytes. The
 * capacity at least doubles; an empty buffer gets at least least_bytes. bytes_slot: address of the pointer to the
 * buffer, which the owner releases with QUERN__ARRAY_ALIGNMENT_BYTES. Returns false, with nothing changed, if out of
 * memory. */
bool quern__bytes_grow(const quern_allocator *allocator, void *bytes_slot, size_t *capacity, size_t count,
                       size_t wanted, size_t least_bytes);

/* The slow path of quern__array_reserve. items_slot: address of the pointer to the items, of any type. item_bytes: size
 * of one item. */
bool quern__array_grow(const quern_allocator *allocator, void *items_slot, uint32_t *capacity,
                       uint32_t count, uint32_t wanted, size_t item_bytes);

/* One bit for each group of things that may have changed since the bit was cleared. Without items, marking is off. */
typedef QUERN__ARRAY(uint64_t) quern__marks;

/* Adds words with all bits set until there are word_count, at least one, so that marking is on. Returns false if out of
 * memory. */
bool quern__marks_extend(quern__marks *marks, const quern_allocator *allocator, uint32_t word_count);

static inline void quern__marks_fill(const quern__marks *marks, uint64_t word)
{
    for (uint32_t i = 0; i < marks->count; i++)
        marks->items[i] = word;
}

/* Switches marking off. */
void quern__marks_release(quern__marks *marks, const quern_allocator *allocator);

/* Hash functions for hash tables and for the world hash. The same input gives the same hash on all machines. */

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit affects every output bit. */
static inline uint64_t quern__hash_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xBF58476D1CE4E5B9ull;
    value ^= value >> 27;
    value *= 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

/* Returns `hash` continued with a word. */
static inline uint64_t quern__hash_word(uint64_t hash, uint64_t word)
{
    return quern__hash_mix((hash ^ word) + 0x9E3779B97F4A7C15ull);
}

/* Returns `hash` continued with bytes. */
uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count);

/* Returns `hash` continued with numbers of number_bytes bytes each, which are hashed as little-endian bytes on all
 * machines. */
uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count);

uint64_t quern__hash_string(const char *string);

/* A hash map from 64-bit keys to 64-bit values. 0 is no key. Open addressing with linear probing, at most half full. All
 * slots between the home slot of a key and its entry are occupied, so a search ends at the first empty slot. A map with
 * all members zero is empty. */

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

/* Sets of small numbers: arrays of 64-bit words, owned by the caller, with one bit per number. */

#define QUERN__BITSET_WORDS(bits) (((bits) + 63) / 64)

static inline void quern__bitset_add(uint64_t *words, uint32_t bit)
{
    words[bit >> 6] |= 1ull << (bit & 63);
}

static inline void quern__bitset_remove(uint64_t *words, uint32_t bit)
{
    words[bit >> 6] &= ~(1ull << (bit & 63));
}

static inline bool quern__bitset_has(const uint64_t *words, uint32_t bit)
{
    return (words[bit >> 6] >> (bit & 63)) & 1;
}

/* Clears the lowest set bit of a word and returns its index. Precondition: the word is not 0. */
static inline uint32_t quern__bitset_pop_lowest(uint64_t *word)
{
    uint32_t bit = quern__lowest_bit_64(*word);
    *word &= *word - 1;
    return bit;
}

/* Writes the numbers in the set to out_list, in ascending order. Returns their count. */
static inline uint32_t quern__bitset_list(const uint64_t *words, uint32_t word_count, uint16_t *out_list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        for (uint64_t left = words[i]; left != 0;)
            out_list[count++] = (uint16_t)(i * 64 + quern__bitset_pop_lowest(&left));
    return count;
}

/* Consecutive numbers that are all in a set. */
typedef struct quern__bit_range {
    uint32_t first, count;
} quern__bit_range;

/* Advances *range to the next maximal range of the set. The caller zeroes *range before the first call. Returns false if
 * there is no further range. */
static inline bool quern__bitset_next_range(const uint64_t *words, uint32_t word_count,
                                            quern__bit_range *range)
{
    const uint32_t end = 64 * word_count;
    uint32_t bit = range->first + range->count;
    uint64_t rest = 0;
    if (bit < end) rest = words[bit / 64] >> bit % 64 << bit % 64;
    while (bit < end && rest == 0) {
        bit = (bit / 64 + 1) * 64;
        if (bit < end) rest = words[bit / 64];
    }
    if (bit >= end) return false;
    range->first = bit / 64 * 64 + quern__lowest_bit_64(rest);
    bit = range->first;
    rest = ~words[bit / 64] >> bit % 64 << bit % 64;
    while (rest == 0) {
        bit = (bit / 64 + 1) * 64;
        if (bit >= end) break;
        rest = ~words[bit / 64];
    }
    const uint32_t range_end = bit < end ? bit / 64 * 64 + quern__lowest_bit_64(rest) : end;
    range->count = range_end - range->first;
    return true;
}

/* Common code of the registries of components, resources, events, combines and systems: finding items by name, checking
 * new names, and limits. The items are in a typed QUERN__ARRAY of the owner; a constant quern__registry describes it. */

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

/* Stable sorting by 64-bit keys. The caller provides the memory; the C library's qsort may allocate without the user's
 * allocator. */

typedef struct quern__sort_item {
    uint64_t key;
    void *pointer;
} quern__sort_item;

/* Sorts items ascending by key. Items with equal keys keep their order. scratch: memory for `count` items. O(n) for
 * sorted input, O(n log r) for input that consists of r ascending runs. */
void quern__sort(quern__sort_item *items, quern__sort_item *scratch, uint32_t count);

#endif
