/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/containers.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

static failing_allocator *memory;
static quern_allocator allocator;

static void open_memory(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
}

static void refuse_next(void)
{
    failing_allocator_fail_at(memory, 1);
}

/* ------------------------------------------------------------------------------------------- array */

TestSuite(array, .init = open_memory);

typedef QUERN__ARRAY(uint64_t) numbers;

Test(array, keeps_its_items_while_it_grows)
{
    numbers array = {0};
    for (uint32_t i = 0; i < 10000; i++) {
        cr_assert(quern__array_reserve(&allocator, &array, array.count + 1));
        array.items[array.count++] = i;
    }
    for (uint32_t i = 0; i < 10000; i++)
        cr_assert_eq(array.items[i], i);
    quern__array_release(&allocator, &array);
    failing_allocator_close(memory);
}

Test(array, grows_seldom)
{
    numbers array = {0};
    for (uint32_t i = 0; i < 100000; i++, array.count++)
        cr_assert(quern__array_reserve(&allocator, &array, array.count + 1));
    cr_assert_lt(failing_allocator_call_count(memory), 20u);
    quern__array_release(&allocator, &array);
    failing_allocator_close(memory);
}

Test(array, reserves_many_items_at_once)
{
    numbers array = {0};
    cr_assert(quern__array_reserve(&allocator, &array, 1001));
    cr_assert_geq(array.capacity, 1001u);
    cr_assert(quern__array_reserve(&allocator, &array, 5));
    cr_assert_eq(failing_allocator_call_count(memory), 1u);
    quern__array_release(&allocator, &array);
    failing_allocator_close(memory);
}

Test(array, is_unchanged_when_out_of_memory)
{
    numbers array = {0};
    refuse_next();
    cr_assert_not(quern__array_reserve(&allocator, &array, 1));
    cr_assert_eq(array.capacity, 0u);
    cr_assert(quern__array_reserve(&allocator, &array, 1));
    array.items[array.count++] = 42;
    uint32_t capacity = array.capacity;
    refuse_next();
    cr_assert_not(quern__array_reserve(&allocator, &array, capacity + 1));
    cr_assert_eq(array.capacity, capacity);
    cr_assert_eq(array.items[0], 42u);
    quern__array_release(&allocator, &array);
    failing_allocator_close(memory);
}

/* --------------------------------------------------------------------------------------------- map */

TestSuite(map, .init = open_memory);

static void must_put(quern__map *map, uint64_t key, uint64_t value)
{
    cr_assert(quern__map_reserve(map, &allocator, map->count + 1));
    quern__map_put(map, key, value);
}

static void assert_maps_to(const quern__map *map, uint64_t key, uint64_t value)
{
    const uint64_t *found = quern__map_find(map, key);
    cr_assert_not_null(found, "key %llx is lost", (unsigned long long)key);
    cr_assert_eq(*found, value, "key %llx", (unsigned long long)key);
}

Test(map, finds_nothing_when_empty)
{
    quern__map map = {0};
    cr_assert_null(quern__map_find(&map, 1));
    cr_assert_null(quern__map_find_pointer(&map, 1));
    quern__map_release(&map, &allocator);
    failing_allocator_close(memory);
}

Test(map, finds_exactly_the_keys_that_were_put)
{
    quern__map map = {0};
    random_source random = {.state = 7};
    for (uint64_t i = 1; i <= 5000; i++)
        must_put(&map, i * 2, i);
    for (uint64_t i = 1; i <= 5000; i++) {
        assert_maps_to(&map, i * 2, i);
        cr_assert_null(quern__map_find(&map, i * 2 + 1));
        cr_assert_null(quern__map_find(&map, random_next(&random) | 1));
    }
    cr_assert_eq(map.count, 5000u);
    quern__map_release(&map, &allocator);
    failing_allocator_close(memory);
}

Test(map, handles_keys_that_differ_only_in_high_bits)
{
    quern__map map = {0};
    for (uint64_t i = 1; i < 2000; i++)
        must_put(&map, i << 48, i);
    for (uint64_t i = 1; i < 2000; i++)
        assert_maps_to(&map, i << 48, i);
    quern__map_release(&map, &allocator);
    failing_allocator_close(memory);
}

/* A small map, so that clusters are long and wrap around, compared with an array. */
Test(map, finds_remaining_entries_after_removals)
{
    enum { KEYS = 24 };
    quern__map map = {0};
    uint64_t values[KEYS + 1] = {0}; /* 0: absent */
    random_source random = {.state = 77};
    cr_assert(quern__map_reserve(&map, &allocator, KEYS));
    for (uint32_t step = 1; step <= 20000; step++) {
        const uint64_t key = 1 + random_below(&random, KEYS);
        if (values[key] == 0) {
            quern__map_put(&map, key, step);
            values[key] = step;
        } else {
            quern__map_remove(&map, key);
            values[key] = 0;
        }
        for (uint64_t k = 1; k <= KEYS; k++)
            if (values[k] != 0)
                assert_maps_to(&map, k, values[k]);
            else
                cr_assert_null(quern__map_find(&map, k), "step %u", step);
    }
    quern__map_release(&map, &allocator);
}

Test(map, is_empty_after_clear_and_keeps_its_memory)
{
    quern__map map = {0};
    for (uint64_t i = 1; i <= 100; i++)
        must_put(&map, i, i);
    quern__map_clear(&map);
    uint64_t calls = failing_allocator_call_count(memory);
    for (uint64_t i = 1; i <= 100; i++)
        cr_assert_null(quern__map_find(&map, i));
    for (uint64_t i = 1; i <= 100; i++)
        must_put(&map, i, i + 1);
    assert_maps_to(&map, 50, 51);
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    quern__map_release(&map, &allocator);
    failing_allocator_close(memory);
}

Test(map, is_unchanged_when_out_of_memory)
{
    quern__map map = {0};
    refuse_next();
    cr_assert_not(quern__map_reserve(&map, &allocator, 1));
    for (uint64_t i = 1; i <= 64; i++)
        must_put(&map, i, i);
    refuse_next();
    cr_assert_not(quern__map_reserve(&map, &allocator, 1000));
    for (uint64_t i = 1; i <= 64; i++)
        assert_maps_to(&map, i, i);
    quern__map_release(&map, &allocator);
    failing_allocator_close(memory);
}

/* ------------------------------------------------------------------------------------------ bitset */

Test(bitset, contains_added_and_not_removed_numbers)
{
    uint64_t words[QUERN__BITSET_WORDS(200)] = {0};
    cr_assert_eq(sizeof words / sizeof words[0], 4u);
    for (uint32_t bit = 0; bit < 200; bit += 3)
        quern__bitset_add(words, bit);
    for (uint32_t bit = 0; bit < 200; bit += 6)
        quern__bitset_remove(words, bit);
    for (uint32_t bit = 0; bit < 200; bit++)
        cr_assert_eq(quern__bitset_has(words, bit), bit % 3 == 0 && bit % 6 != 0, "bit %u", bit);
}

Test(bitset, pops_bits_in_ascending_order)
{
    uint64_t word = 1ull << 63 | 1ull << 5 | 1;
    cr_assert_eq(quern__bitset_pop_lowest(&word), 0u);
    cr_assert_eq(quern__bitset_pop_lowest(&word), 5u);
    cr_assert_eq(quern__bitset_pop_lowest(&word), 63u);
    cr_assert_eq(word, 0u);
}

/* -------------------------------------------------------------------------------------------- hash */

Test(hash_bytes, every_byte_and_the_length_affect_the_hash)
{
    unsigned char bytes[33] = {0};
    for (size_t length = 0; length < 32; length++) {
        uint64_t hash = quern__hash_bytes(1, bytes, length);
        cr_assert_neq(hash, quern__hash_bytes(1, bytes, length + 1), "length %zu", length);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = 1;
            cr_assert_neq(quern__hash_bytes(1, bytes, length), hash, "byte %zu of %zu", i, length);
            bytes[i] = 0;
        }
    }
}
