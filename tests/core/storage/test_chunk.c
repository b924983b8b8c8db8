/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/storage/chunk.h"
#include "core/storage/row_bits.h"
#include "tests/core/storage/run_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

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

/* ---------------------------------------------------------------------------------------- bits of rows */

/* Tests of bit columns against a naive model. */

enum { BIT_SLOTS = 3, KINDS = 3, IDS = 3, BIT_ROWS = 150, MOST_BIT_ROWS = 200 };

/* A substitute for an archetype: chunks with their index, and a naive model of the bits. */
typedef struct bits_side {
    quern__row_bits *row_bits;
    quern__run_shape shape; /* of one chunk, or of many */
    uint32_t slot_count;
    quern__chunk *chunks[BIT_SLOTS];
    bool has[KINDS][IDS];
    bool bits[KINDS][IDS][BIT_SLOTS][MOST_BIT_ROWS];
} bits_side;
static bits_side bits_sides[2];

static void open_bit_columns(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    for (uint32_t s = 0; s < 2; s++) {
        bits_sides[s] = (bits_side){
            .shape = quern__run_shape_make(s == 0 ? BIT_ROWS : MOST_BIT_ROWS, s * QUERN__RUN_SHIFT),
            .slot_count = 1};
        allocate_chunks(&slabs, &allocator, &bits_sides[s].shape, BIT_SLOTS, bits_sides[s].chunks);
    }
}

static void close_bit_columns(void)
{
    for (uint32_t s = 0; s < 2; s++) {
        quern__row_bits_release(&bits_sides[s].row_bits, &allocator);
        assert_at_end(bits_sides[s].row_bits == NULL);
    }
    quern__slabs_release(&slabs, &allocator);
    failing_allocator_close(memory);
}

TestSuite(row_bits, .init = open_bit_columns, .fini = close_bit_columns);

static quern__bit_column bit_column_of(uint32_t kind, uint32_t id)
{
    return (quern__bit_column){(quern__bit_column_kind)kind, id};
}

static void add(bits_side *where, uint32_t kind, uint32_t id)
{
    cr_assert(quern__row_bits_add_column(&where->row_bits, &allocator, bit_column_of(kind, id),
                                         &where->shape, where->slot_count));
    where->has[kind][id] = true;
}

static void set_bits(bits_side *where, uint32_t kind, uint32_t id, uint32_t slot, uint32_t row,
                     uint32_t count, bool bit)
{
    for (uint32_t i = row; i < row + count; i++)
        where->bits[kind][id][slot][i] = bit;
}

static uintptr_t place_of_bits(const bits_side *where, uint32_t slot, uint32_t row)
{
    return quern__location_make(where->chunks[slot], row);
}

/* ------------------------------------------------------------------------------------- the model */

/* Checks that bits and counts match the model, and that the list is ordered. */
static void compare_bits(const bits_side *where)
{
    uint32_t bit_column_count = 0;
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t id = 0; id < IDS; id++) {
            const uint32_t index =
                quern__row_bits_find_column(where->row_bits, (quern__bit_column_kind)kind, id);
            cr_assert_eq(index, where->has[kind][id] ? bit_column_count++ : QUERN__NO_BIT_COLUMN);
            for (uint32_t slot = 0; index != QUERN__NO_BIT_COLUMN && slot < where->slot_count; slot++) {
                uint32_t count = 0;
                for (uint32_t row = 0; row < where->shape.row_capacity; row++) {
                    const bool bit = where->bits[kind][id][slot][row];
                    count += bit;
                    cr_assert_eq(
                        quern__bit_column_test(where->row_bits, index, place_of_bits(where, slot, row)),
                        bit);
                }
                cr_assert_eq(quern__bit_column_count(where->row_bits, index, slot), count);
            }
        }
    cr_assert_eq(where->row_bits != NULL ? where->row_bits->count : 0, bit_column_count);
}

static void add_or_remove_one(bits_side *where, uint32_t kind, uint32_t id)
{
    if (!where->has[kind][id]) {
        add(where, kind, id);
        return;
    }
    quern__row_bits_remove_column(&where->row_bits, &allocator, bit_column_of(kind, id));
    where->has[kind][id] = false;
    memset(where->bits[kind][id], 0, sizeof where->bits[kind][id]);
}

static void grow_bits(bits_side *where)
{
    if (where->slot_count < BIT_SLOTS) where->slot_count++;
    cr_assert(quern__row_bits_grow(&where->row_bits, &allocator, where->slot_count));
}

static void clear_rows(bits_side *where, uint32_t slot, uint32_t row, uint32_t count)
{
    if (where->row_bits != NULL)
        quern__row_bits_clear(where->row_bits, place_of_bits(where, slot, row), count);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t id = 0; id < IDS; id++)
            set_bits(where, kind, id, slot, row, count, false);
}

/* Moves rows in both archetypes and the model. Clears the target rows first, because they must be raw. */
static void move_rows(bits_side *target, uint32_t to_slot, uint32_t to_row, bits_side *source,
                      uint32_t from_slot, uint32_t from_row, uint32_t count)
{
    clear_rows(target, to_slot, to_row, count);
    if (source->row_bits == NULL) return;
    quern__row_bits_move(target->row_bits, place_of_bits(target, to_slot, to_row), source->row_bits,
                         place_of_bits(source, from_slot, from_row), count);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t id = 0; id < IDS; id++)
            for (uint32_t i = 0; i < count; i++) {
                bool *from = &source->bits[kind][id][from_slot][from_row + i];
                target->bits[kind][id][to_slot][to_row + i] = *from && target->has[kind][id];
                *from = false;
            }
}

static void change_run(bits_side *where, random_source *random, uint32_t slot, uint32_t row, uint32_t count)
{
    const uint32_t kind = random_below(random, KINDS), id = random_below(random, IDS);
    const uint32_t index = quern__row_bits_find_column(where->row_bits, (quern__bit_column_kind)kind, id);
    if (index == QUERN__NO_BIT_COLUMN) return;
    const uint32_t verb = random_below(random, 8);
    if (verb == 0) {
        quern__bit_column_clear_slot(where->row_bits, index, slot);
        set_bits(where, kind, id, slot, 0, where->shape.row_capacity, false);
    } else if (verb < 4) {
        quern__bit_column_clear_rows(where->row_bits, index, place_of_bits(where, slot, row), count);
        set_bits(where, kind, id, slot, row, count, false);
    } else {
        quern__bit_column_set_rows(where->row_bits, index, place_of_bits(where, slot, row), count);
        set_bits(where, kind, id, slot, row, count, true);
    }
}

Test(row_bits, match_a_naive_model)
{
    random_source random = {.state = 17};
    for (uint32_t step = 0; step < 4000; step++) {
        bits_side *one = &bits_sides[random_below(&random, 2)],
                  *other = &bits_sides[random_below(&random, 2)];
        const uint32_t slot = random_below(&random, one->slot_count);
        const uint32_t row = random_below(&random, BIT_ROWS - 1);
        const uint32_t count = 1 + random_below(&random, BIT_ROWS - row - 1);
        const uint32_t choice = random_below(&random, 16);
        const uint32_t to_slot = random_below(&random, other->slot_count);
        const uint32_t to_row = random_below(&random, BIT_ROWS - count);
        const bool overlaps =
            one == other && slot == to_slot && row < to_row + count && to_row < row + count;
        if (choice == 0)
            add_or_remove_one(one, random_below(&random, KINDS), random_below(&random, IDS));
        else if (choice == 1)
            grow_bits(one);
        else if (choice < 4)
            clear_rows(one, slot, row, count);
        else if (choice >= 8)
            change_run(one, &random, slot, row, count);
        else if (!overlaps)
            move_rows(other, to_slot, to_row, one, slot, row, count);
        compare_bits(one);
        compare_bits(other);
    }
}

/* ------------------------------------------------------------------------------------- which bit columns */

Test(row_bits, of_components_keep_their_index_when_others_are_added)
{
    add(&bits_sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 2);
    quern__bit_column_set_rows(bits_sides[0].row_bits, 0, place_of_bits(&bits_sides[0], 0, 60), 10);
    set_bits(&bits_sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 2, 0, 60, 10, true);
    add(&bits_sides[0], QUERN__BIT_COLUMN_SET, 0);
    add(&bits_sides[0], QUERN__BIT_COLUMN_ADDED, 1);
    add(&bits_sides[0], QUERN__BIT_COLUMN_ADDED, 0);
    cr_assert_eq(quern__row_bits_find_column(bits_sides[0].row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, 2), 0u);
    compare_bits(&bits_sides[0]);
}

Test(row_bits, are_cleared_if_the_target_has_none)
{
    add(&bits_sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 0);
    quern__bit_column_set_rows(bits_sides[0].row_bits, 0, place_of_bits(&bits_sides[0], 0, 0), 3);
    quern__row_bits_move(NULL, place_of_bits(&bits_sides[1], 0, 0), bits_sides[0].row_bits,
                         place_of_bits(&bits_sides[0], 0, 0), 3);
    compare_bits(&bits_sides[0]);
}

Test(row_bits, are_unchanged_without_memory)
{
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_add_column(&bits_sides[0].row_bits, &allocator, bit_column_of(0, 0),
                                             &bits_sides[0].shape, 1));
    cr_assert_null(bits_sides[0].row_bits);
    failing_allocator_heal(memory);
    add(&bits_sides[0], 0, 0);
    quern__bit_column_set_rows(bits_sides[0].row_bits, 0, place_of_bits(&bits_sides[0], 0, 5), 1);
    set_bits(&bits_sides[0], 0, 0, 0, 5, 1, true);
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_add_column(&bits_sides[0].row_bits, &allocator, bit_column_of(1, 0),
                                             &bits_sides[0].shape, 1));
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_grow(&bits_sides[0].row_bits, &allocator, BIT_SLOTS));
    failing_allocator_heal(memory);
    compare_bits(&bits_sides[0]);
}

/* --------------------------------------------------------------------------------------- row masks */

/* Checks that the ranges contain exactly the rows with set bits, and that each range is maximal. */
static void compare_runs(const quern__row_mask *mask, const bool *bits, uint32_t row_count)
{
    uint32_t row = 0, expected = 0, total = 0;
    for (uint32_t first, count; quern__row_mask_next(mask, &row, &first, &count); expected = row) {
        cr_assert_gt(count, 0u);
        for (uint32_t i = expected; i < first; i++)
            cr_assert_not(bits[i]);
        for (uint32_t i = first; i < first + count; i++)
            cr_assert(bits[i]);
        cr_assert(first + count == row_count || !bits[first + count]);
        cr_assert_eq(row, first + count);
        total += count;
    }
    for (uint32_t i = expected; i < row_count; i++)
        cr_assert_not(bits[i]);
    cr_assert_eq(quern__row_mask_count(mask), total);
}

Test(row_bits, as_masks_yield_ranges_across_words)
{
    static const uint32_t row_counts[] = {1, 63, 64, 65, 128, 150, QUERN__BIT_COLUMN_MAX_ROWS};
    random_source random = {.state = 5};
    for (uint32_t k = 0; k < sizeof row_counts / sizeof *row_counts; k++)
        for (uint32_t step = 0; step < 300; step++) {
            static bool bits[QUERN__BIT_COLUMN_MAX_ROWS];
            const uint32_t row_count = row_counts[k];
            uint64_t keep[QUERN__BIT_COLUMN_ROW_WORDS] = {0}, drop[QUERN__BIT_COLUMN_ROW_WORDS] = {0};
            const uint32_t kept = step % 3 * 50, dropped = step / 3 % 5 * 25;
            for (uint32_t i = 0; i < row_count; i++) {
                const bool is_kept = random_chance(&random, kept);
                const bool is_dropped = random_chance(&random, dropped);
                bits[i] = is_kept && !is_dropped;
                keep[i / 64] |= (uint64_t)is_kept << i % 64;
                drop[i / 64] |= (uint64_t)is_dropped << i % 64;
            }
            quern__row_mask mask = {.word_count = 0};
            quern__row_mask_all(&mask, row_count);
            cr_assert_eq(quern__row_mask_count(&mask), row_count);
            quern__row_mask_keep(&mask, keep);
            quern__row_mask_drop(&mask, drop);
            compare_runs(&mask, bits, row_count);
        }
}

/* ------------------------------------------------------------------------------------ versions of rows */

/* Tests of row versions against a naive model. */

enum { SLOTS = 4, COMPONENTS = 3, VERSION_ROWS = 100, MAX_ROWS = 150, VERSIONS = 6 };

/* A substitute for an archetype: chunks with their index, and a naive model of the versions. */
typedef struct side {
    quern__row_versions *versions;
    quern__run_shape shape; /* of one chunk, or of many */
    uint32_t slot_count;
    quern__chunk *chunks[SLOTS];
    uint32_t version_indices[COMPONENTS]; /* 0: no lane */
    uint64_t naive[COMPONENTS][SLOTS][MAX_ROWS];
    uint64_t groups[COMPONENTS][SLOTS][MAX_ROWS]; /* by row: the latest write to a row of its group */
} side;
static side sides[2];
static uint64_t now;

/* One archetype has lanes for components 0 and 1, the other for 1 and 2, with other version indices. */
static const quern__row_lane lanes[2][2] = {{{0, 1}, {1, 4}}, {{1, 2}, {2, 5}}};

static quern__row_versions *create(uint32_t s, uint32_t slot_capacity)
{
    return quern__row_versions_create(&allocator, lanes[s], 2, VERSIONS, &sides[s].shape, slot_capacity,
                                      now);
}

static void open_sides(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    now = 1;
    for (uint32_t s = 0; s < 2; s++) {
        sides[s] =
            (side){.shape = quern__run_shape_make(s == 0 ? VERSION_ROWS : MAX_ROWS, s * QUERN__RUN_SHIFT),
                   .slot_count = 1};
        for (uint32_t i = 0; i < 2; i++)
            sides[s].version_indices[lanes[s][i].component_index] = lanes[s][i].version_index;
        sides[s].versions = create(s, 1);
        cr_assert_not_null(sides[s].versions);
        for (uint32_t k = 0; k < COMPONENTS; k++)
            for (uint32_t row = 0; row < MAX_ROWS; row++)
                sides[s].naive[k][0][row] = sides[s].groups[k][0][row] = now;
        allocate_chunks(&slabs, &allocator, &sides[s].shape, SLOTS, sides[s].chunks);
    }
}

static void close_sides(void)
{
    for (uint32_t s = 0; s < 2; s++) {
        quern__row_versions_release(sides[s].versions, &allocator);
    }
    quern__slabs_release(&slabs, &allocator);
    failing_allocator_close(memory);
}

TestSuite(row_versions, .init = open_sides, .fini = close_sides);

static uintptr_t place(const side *where, uint32_t slot, uint32_t row)
{
    return quern__location_make(where->chunks[slot], row);
}

static void compare(const side *where)
{
    for (uint32_t k = 0; k < COMPONENTS; k++)
        for (uint32_t slot = 0; where->version_indices[k] != 0 && slot < where->slot_count; slot++)
            for (uint32_t row = 0; row < where->shape.row_capacity; row++) {
                const uint32_t offset = where->versions->offsets[where->version_indices[k]];
                cr_assert_eq(*quern__row_version(where->versions, offset, place(where, slot, row)),
                             where->naive[k][slot][row], "component %u, slot %u, row %u", k, slot, row);
                uint64_t *lane = quern__row_versions_of(where->versions, slot) + offset;
                cr_assert_eq(*quern__row_group(lane, row), where->groups[k][slot][row],
                             "group of component %u, slot %u, row %u", k, slot, row);
            }
}

static void note_naive(side *where, uint32_t k, uint32_t slot, uint32_t row, uint32_t count)
{
    for (uint32_t i = row; i < row + count; i++)
        where->naive[k][slot][i] = now;
    for (uint32_t i = row / 8 * 8; i < (row + count + 7) / 8 * 8 && i < MAX_ROWS; i++)
        where->groups[k][slot][i] = now;
}

/* Writes old or new versions to the first rows, as a history does. */
static void restore(side *where, random_source *random)
{
    const uint32_t k = random_below(random, COMPONENTS), slot = random_below(random, where->slot_count);
    const uint32_t count = random_below(random, where->shape.row_capacity);
    uint64_t saved[MAX_ROWS];
    if (where->version_indices[k] == 0) return;
    uint64_t *lane =
        quern__row_versions_of(where->versions, slot) + where->versions->offsets[where->version_indices[k]];
    for (uint32_t row = 0; row < count; row++)
        where->naive[k][slot][row] = saved[row] = 1 + random_below(random, (uint32_t)now);
    for (uint32_t row = 0; row < MAX_ROWS; row++)
        for (uint32_t i = row / 8 * 8; i < row / 8 * 8 + 8 && i < count; i++)
            if (where->groups[k][slot][row] < saved[i]) where->groups[k][slot][row] = saved[i];
    quern__row_groups_raise_to(lane, saved, count);
    memcpy(lane, saved, count * sizeof *saved);
}

/* Adds a slot and reports the arrival of all its rows. */
static void grow(side *where)
{
    if (where->slot_count == SLOTS) return;
    const uint32_t slot = where->slot_count++;
    cr_assert(quern__row_versions_reserve(where->versions, &allocator, where->slot_count));
    quern__row_versions_arrive(where->versions, place(where, slot, 0), where->shape.row_capacity, now);
    for (uint32_t k = 0; k < COMPONENTS; k++)
        note_naive(where, k, slot, 0, where->shape.row_capacity);
}

static void shrink(side *where)
{
    if (where->slot_count > 1) where->slot_count--;
    quern__row_versions_trim(where->versions, &allocator, where->slot_count);
    cr_assert_eq(where->versions->slot_capacity, where->slot_count);
}

static void move(side *target, side *source, random_source *random)
{
    const uint32_t count = 1 + random_below(random, 40);
    const uint32_t from_slot = random_below(random, source->slot_count),
                   from = random_below(random, source->shape.row_capacity - count);
    const uint32_t to_slot = random_below(random, target->slot_count),
                   to = random_below(random, target->shape.row_capacity - count);
    if (target == source && to_slot == from_slot && to < from + count && from < to + count) return;
    const bool is_kept = random_chance(random, 90);
    quern__row_versions_move(target->versions, place(target, to_slot, to),
                             is_kept ? source->versions : NULL, place(source, from_slot, from), count, now);
    for (uint32_t k = 0; k < COMPONENTS; k++) {
        if (is_kept && source->version_indices[k] != 0)
            memmove(&target->naive[k][to_slot][to], &source->naive[k][from_slot][from],
                    count * sizeof(uint64_t));
        else
            note_naive(target, k, to_slot, to, count);
    }
}

static void note(side *where, random_source *random)
{
    const uint32_t k = random_below(random, COMPONENTS), slot = random_below(random, where->slot_count);
    const uint32_t row = random_below(random, where->shape.row_capacity),
                   count = 1 + random_below(random, where->shape.row_capacity - row);
    const uint32_t without = 3; /* a version index that has no lane */
    quern__row_versions_note(where->versions,
                             where->version_indices[k] != 0 ? where->version_indices[k] : without,
                             place(where, slot, row), count, now);
    if (where->version_indices[k] != 0) note_naive(where, k, slot, row, count);
}

Test(row_versions, versions_move_with_their_rows)
{
    random_source random = {7};
    for (uint32_t step = 0; step < 2000; step++) {
        side *where = &sides[random_below(&random, 2)], *source = &sides[random_below(&random, 2)];
        now++;
        switch (random_below(&random, 8)) {
        case 0:
            grow(where);
            break;
        case 1:
            if (random_chance(&random, 20)) shrink(where);
            restore(where, &random);
            break;
        case 2:
        case 3:
        case 4:
            move(where, source, &random);
            break;
        default:
            note(where, &random);
            break;
        }
        compare(&sides[0]);
        compare(&sides[1]);
    }
}

Test(row_versions, versions_are_unchanged_without_memory)
{
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_versions_reserve(sides[0].versions, &allocator, 2));
    cr_assert_eq(sides[0].versions->slot_capacity, 1u);
    compare(&sides[0]);
    cr_assert(quern__row_versions_reserve(sides[0].versions, &allocator, 1), "there is room");
    cr_assert(quern__row_versions_reserve(NULL, &allocator, 2));
    cr_assert_null(create(0, 1));
    failing_allocator_fail_at(memory, 2);
    cr_assert_null(create(0, 1), "the second of two blocks is missing");
    failing_allocator_heal(memory);
    grow(&sides[0]);
    failing_allocator_fail_from(memory, 1);
    quern__row_versions_trim(sides[0].versions, &allocator, 1);
    cr_assert_eq(sides[0].versions->slot_capacity, 2u, "it cannot be made smaller");
    compare(&sides[0]);
    failing_allocator_heal(memory);
}

Test(row_versions, trimming_frees_all_slots)
{
    const uint64_t before = failing_allocator_outstanding_bytes(memory);
    quern__row_versions_trim(sides[0].versions, &allocator, 0);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory),
                 before - 2 * (VERSION_ROWS + (VERSION_ROWS + 7) / 8) * sizeof(uint64_t));
    cr_assert_eq(quern__row_versions_bytes(sides[0].versions), 0u);
    quern__row_versions_trim(NULL, &allocator, 0);
    cr_assert(quern__row_versions_reserve(sides[0].versions, &allocator, 3));
    sides[0].slot_count = 0;
    now++;
    grow(&sides[0]);
    compare(&sides[0]);
    quern__row_versions *none = create(0, 0);
    cr_assert_not_null(none);
    quern__row_versions_release(none, &allocator);
}
