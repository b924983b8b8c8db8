/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/chunk.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

enum { COUNT = 3 * QUERN__SLAB_CHUNKS + 7, ROWS = 100 };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__slabs slabs;
static char *chunks[COUNT]; /* runs of one chunk */

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

static char *allocate_one(void)
{
    return quern__run_allocate(&slabs, &allocator, 0);
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
    quern__run_release(&slabs, &allocator, chunks[i], 0);
}

Test(chunk, chunks_are_aligned_to_their_size_and_do_not_overlap)
{
    allocate_all();
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq((uintptr_t)chunks[i] % QUERN__CHUNK_BYTES, 0u);
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
        cr_assert_eq(chunks[i], chunks[i - 1] + QUERN__CHUNK_BYTES);
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

/* Readers are told of new counts from when they are registered until they are unregistered, in any order. */
Test(chunk, counts_of_moves_grow_for_their_readers)
{
    enum { READERS = 3 };
    quern_getter readers[READERS];
    quern__move_counts *counts = &slabs.move_counts;
    for (uint32_t removed = 0; removed < READERS; removed++) {
        memset(readers, 0, sizeof readers);
        chunks[0] = allocate_one();
        for (uint32_t i = 0; i < READERS; i++)
            cr_assert(quern__move_counts_add_reader(counts, &allocator, QUERN__SLAB_CHUNKS, &readers[i]));
        quern__move_counts_remove_reader(counts, &allocator, &readers[removed]);
        readers[removed].move_counts = NULL;
        for (uint32_t i = 1; i < COUNT; i++)
            chunks[i] = allocate_one();
        for (uint32_t i = 0; i < READERS; i++)
            cr_expect_eq(readers[i].move_counts, i == removed ? NULL : counts->counts, "%u of %u", i,
                         removed);
        for (uint32_t i = 0; i < COUNT; i++)
            release(i);
        for (uint32_t i = 0; i < READERS; i++)
            if (i != removed) quern__move_counts_remove_reader(counts, &allocator, &readers[i]);
        cr_assert_null(counts->counts);
        quern__slabs_trim(&slabs, &allocator);
    }
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

/* Checks the places of the rows of a run of 2^shift chunks: chunk i begins at row i * ROWS of the run, whose memory is
 * aligned to its size. */
static void expect_run(char *run, uint32_t shift)
{
    cr_assert_not_null(run);
    const quern__run_shape shape = quern__run_shape_make(ROWS, shift);
    cr_assert_eq((uintptr_t)run % ((uintptr_t)QUERN__CHUNK_BYTES << shift), 0u);
    quern__run_assign(run, shift, NULL, 1000);
    const uint32_t first_number = quern__chunk_number(&shape, (uintptr_t)run);
    for (uint32_t i = 0; i < 1u << shift; i++) {
        const quern__chunk *chunk = (quern__chunk *)((uintptr_t)run + (uintptr_t)i * ROWS);
        for (uint32_t row = 0; row < ROWS; row += ROWS - 1) {
            const uintptr_t location = quern__location_make(chunk, row);
            cr_assert_eq(quern__chunk_of(&shape, location), chunk);
            cr_assert_eq(quern__location_row(&shape, location), row);
            cr_assert_eq(quern__chunk_index_at(&shape, location), 1000 + i);
            cr_assert_eq(quern__chunk_number(&shape, location), first_number + i);
            cr_assert_eq(quern__location_value(&shape, location, 640, 12),
                         run + ((size_t)640 << shift) + ((size_t)i * ROWS + row) * 12);
        }
    }
}

static char *allocate_many(void)
{
    return quern__run_allocate(&slabs, &allocator, QUERN__RUN_SHIFT);
}

Test(chunk, rows_of_any_capacity_are_divided_into_chunks)
{
    for (uint32_t shift = 0; shift <= QUERN__SLAB_SHIFT; shift++)
        for (uint32_t capacity = 1; capacity <= QUERN__MAX_CHUNK_ROWS; capacity++) {
            const quern__run_shape shape = quern__run_shape_make(capacity, shift);
            for (uint32_t i = 0; i < 1u << shift; i++) {
                cr_assert_eq(quern__chunk_in_run(&shape, (uintptr_t)i * capacity), i);
                cr_assert_eq(quern__chunk_in_run(&shape, (uintptr_t)(i + 1) * capacity - 1), i);
            }
        }
}

Test(chunk, runs_of_many_chunks_are_aligned_to_their_size)
{
    char *one = allocate_one(), *many = allocate_many();
    expect_run(one, 0);
    expect_run(many, QUERN__RUN_SHIFT);
    cr_assert_eq(slabs.slab_count, 1u);
    cr_assert_eq(slabs.free_count, QUERN__SLAB_CHUNKS - 1u - QUERN__RUN_CHUNKS);
    cr_assert_eq(allocate_one(), one + QUERN__CHUNK_BYTES,
                 "single chunks fill the space before the next run");
    quern__run_release(&slabs, &allocator, many, QUERN__RUN_SHIFT);
    cr_assert_eq(slabs.free_count, QUERN__SLAB_CHUNKS - 2u);
    cr_assert_eq(allocate_many(), many);
}

Test(chunk, a_run_that_fits_no_slab_gets_a_new_one)
{
    allocate_all();
    for (uint32_t i = 1; i < 14; i += 2)
        release(i);
    cr_assert_eq(slabs.slab_count, 4u);
    for (uint32_t i = 0; i < 7; i++)
        expect_run(allocate_many(), QUERN__RUN_SHIFT);
    cr_assert_eq(slabs.slab_count, 4u, "the last slab has seven free runs");
    expect_run(allocate_many(), QUERN__RUN_SHIFT);
    cr_assert_eq(slabs.slab_count, 5u, "9 free chunks and the scattered ones hold no run");
}
