/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/chunk.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

enum { COUNT = 3 * QUERN__SLAB_CHUNKS + 7 };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__slabs slabs;
static quern__chunk *chunks[COUNT];

static void open_slabs(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    slabs = (quern__slabs){0};
}

static void close_slabs(void)
{
    quern__slabs_release(&slabs, &allocator);
    failing_allocator_close(memory);
}

TestSuite(chunk, .init = open_slabs, .fini = close_slabs);

static quern__chunk *allocate_one(void)
{
    uint32_t count = 1;
    return quern__chunk_allocate_adjacent(&slabs, &allocator, &count);
}

static void allocate_all(void)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        chunks[i] = allocate_one();
        cr_assert_not_null(chunks[i]);
    }
}

static void release(uint32_t i)
{
    quern__chunk_release(&slabs, &allocator, chunks[i]);
}

Test(chunk, chunks_are_aligned_to_their_size_and_do_not_overlap)
{
    allocate_all();
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq((uintptr_t)chunks[i] % QUERN__CHUNK_BYTES, 0u);
        cr_assert_eq(quern__chunk_of((uintptr_t)chunks[i] + QUERN__CHUNK_BYTES - 1), chunks[i]);
        for (uint32_t k = 0; k < i; k++)
            cr_assert_neq(chunks[k], chunks[i]);
    }
    cr_assert_eq(slabs.slab_count, 4u);
    cr_assert_eq(slabs.free_count, QUERN__SLAB_CHUNKS - 7u);
}

Test(chunk, single_chunks_are_allocated_in_ascending_order)
{
    allocate_all();
    for (uint32_t i = 1; i < QUERN__SLAB_CHUNKS; i++)
        cr_assert_eq((char *)chunks[i], (char *)chunks[i - 1] + QUERN__CHUNK_BYTES);
}

Test(chunk, released_chunks_are_used_before_new_slabs)
{
    allocate_all();
    for (uint32_t i = 0; i < COUNT; i += 5)
        release(i);
    uint64_t calls = failing_allocator_call_count(memory);
    for (uint32_t i = 0; i < COUNT; i += 5)
        cr_assert_not_null(allocate_one());
    cr_assert_eq(failing_allocator_call_count(memory), calls);
}

Test(chunk, one_empty_slab_is_retained)
{
    allocate_all();
    for (uint32_t i = 0; i < COUNT; i++)
        release(i);
    cr_assert_eq(slabs.slab_count, 1u);
    cr_assert_eq(slabs.free_count, (uint32_t)QUERN__SLAB_CHUNKS);
    allocate_all();
    cr_assert_eq(slabs.slab_count, 4u);
}

Test(chunk, fluctuating_around_a_slab_boundary_allocates_nothing)
{
    allocate_all();
    uint64_t calls = failing_allocator_call_count(memory);
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = COUNT - 20; i < COUNT; i++)
            release(i);
        for (uint32_t i = COUNT - 20; i < COUNT; i++)
            chunks[i] = allocate_one();
    }
    cr_assert_eq(failing_allocator_call_count(memory), calls);
}

Test(chunk, out_of_memory_leaves_no_chunk_allocated)
{
    failing_allocator_fail_from(memory, 1);
    cr_assert_null(allocate_one());
    failing_allocator_fail_at(memory, 3);
    cr_assert_null(allocate_one());
    cr_assert_eq(slabs.slab_count, 0u);
    failing_allocator_heal(memory);
    allocate_all();
}

Test(chunk, counts_are_right_for_any_order_of_release)
{
    random_source random = {.state = 3};
    allocate_all();
    for (uint32_t left = COUNT; left > 0; left--) {
        uint32_t i = random_below(&random, left);
        release(i);
        chunks[i] = chunks[left - 1];
        cr_assert_eq(slabs.slab_count * QUERN__SLAB_CHUNKS - slabs.free_count, left - 1);
        cr_assert_leq(slabs.empty_count, 1u);
    }
}

Test(chunk, chunks_of_one_allocation_are_adjacent)
{
    uint32_t count = 16;
    const char *first = (const char *)quern__chunk_allocate_adjacent(&slabs, &allocator, &count);
    cr_assert_eq(count, 16u);
    cr_assert_eq(slabs.free_count, QUERN__SLAB_CHUNKS - 16u);
    cr_assert_eq((const char *)allocate_one(), first + 16 * QUERN__CHUNK_BYTES);
}

Test(chunk, an_allocation_is_limited_to_the_longest_gap)
{
    allocate_all();
    static const uint32_t freed[] = {3, 10, 11, 12, 20, 21};
    for (uint32_t i = 0; i < sizeof freed / sizeof freed[0]; i++)
        release(freed[i]);
    uint32_t count = 16;
    cr_assert_eq(quern__chunk_allocate_adjacent(&slabs, &allocator, &count), chunks[10]);
    cr_assert_eq(count, 3u);
}
