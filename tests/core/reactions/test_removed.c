/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reactions/reaction.h"

#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Copies of rows, without a reaction. The value of a row is its number, from 0. */

enum { ROWS = 1700, COLUMNS = 2 };

static failing_allocator *memory;
static quern_allocator allocator;
static quern_world *world;
static tracked_counts counts;
static quern_entity entities[ROWS];
static const quern__archetype *archetype;
static quern__removed_column columns[COLUMNS];
static quern__removed copies;

static quern__removed_column column_at(uint32_t i)
{
    const quern__column *column = &archetype->columns[i];
    return (quern__removed_column){.type = quern__hooks_exist(&column->type->hooks) ? column->type : NULL,
                                   .source_offset_bytes = column->offset_bytes,
                                   .size_bytes = (uint16_t)column->size_bytes};
}

/* Creates the rows. has_hooks: they also have a value with hooks, which is copied, too. */
static void open_copies(bool has_hooks)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    memset((void *)&counts, 0, sizeof counts);
    must(quern_world_create(NULL, &world));
    const quern_component types[COLUMNS] = {setup_component(world, "number", sizeof(uint64_t), 8),
                                            tracked_register(world, "tracked", &counts)};
    const uint32_t count = has_hooks ? 2 : 1;
    uint16_t indices[COLUMNS];
    for (uint64_t i = 0; i < ROWS; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        must(quern_entity_create_with(world, types, (const void *[]){&i, &value}, count, &entities[i]));
        tracked_destroy(&value, &counts);
    }
    for (uint32_t i = 0; i < count; i++)
        indices[i] = (uint16_t)quern__component_index(types[i]);
    archetype = quern__storage_find_archetype(&world->storage, indices, count);
    cr_assert_not_null(archetype);
    copies = (quern__removed){.columns = columns, .column_count = count};
    for (uint32_t i = 0; i < count; i++)
        columns[i] = column_at(i);
    quern__removed_lay_out(&copies, archetype);
    cr_assert(archetype->chunk_count > 1 && ROWS > 3 * copies.block_rows, "several chunks and blocks");
}

static void close_copies(void)
{
    quern__removed_release(&copies, &allocator);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0);
    cr_assert_eq(counts.broken_count, 0);
    failing_allocator_close(memory);
}

/* Copies `count` rows from `first` on, chunk by chunk. */
static void copy_rows(uint32_t first, uint32_t count, bool orders_by_row)
{
    while (count > 0) {
        const quern__chunk_slot *slot = &archetype->slots[first / archetype->shape.row_capacity];
        const uint32_t row = first % archetype->shape.row_capacity;
        const uint32_t piece = count < slot->row_count - row ? count : slot->row_count - row;
        quern__removed_copy(&copies, quern__location_make(quern__slot_chunk(slot), row), piece,
                            orders_by_row);
        first += piece;
        count -= piece;
    }
}

static char *block_of(uint32_t i)
{
    return copies.blocks.items[i / copies.block_rows];
}

/* Checks that the i-th copy is that of the row. */
static void expect_copy(uint32_t i, uint32_t row)
{
    const uint32_t place = i % copies.block_rows;
    const quern_entity *handles = (const quern_entity *)(const void *)block_of(i);
    cr_assert_eq(handles[place].bits, entities[row].bits, "copy %u is not of row %u", i, row);
    uint64_t number;
    memcpy(&number, block_of(i) + columns[0].offset_bytes + (size_t)place * sizeof number, sizeof number);
    cr_assert_eq(number, row);
    if (copies.column_count == 1) return;
    const tracked *value = &((const tracked *)(const void *)(block_of(i) + columns[1].offset_bytes))[place];
    cr_assert(tracked_is_live(value) && value->payload == row);
}

static void expect_copies(uint32_t first, uint32_t first_row, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        expect_copy(first + i, first_row + i);
}

static void reserve(uint64_t change, uint32_t count)
{
    cr_assert(quern__removed_reserve(&copies, &allocator, change, count));
}

/* ------------------------------------------------------------------------------------------- order */

/* Copies pieces of the rows from `first` on in random order, as several threads would. */
static void copy_shuffled(uint32_t first, uint32_t count, random_source *random)
{
    uint32_t begins[ROWS], lengths[ROWS], piece_count = 0;
    for (uint32_t done = 0; done < count; done += lengths[piece_count++]) {
        lengths[piece_count] = 1 + random_below(random, 200);
        if (lengths[piece_count] > count - done) lengths[piece_count] = count - done;
        begins[piece_count] = first + done;
    }
    for (; piece_count > 0; piece_count--) {
        const uint32_t pick = random_below(random, piece_count);
        copy_rows(begins[pick], lengths[pick], true);
        begins[pick] = begins[piece_count - 1];
        lengths[pick] = lengths[piece_count - 1];
    }
}

static void try_order(bool has_hooks, uint64_t seed)
{
    random_source random = {seed};
    const uint32_t part = 700 + random_below(&random, 200);
    open_copies(has_hooks);
    reserve(1, part);
    reserve(1, ROWS - part);
    copy_shuffled(0, ROWS, &random);
    cr_assert_eq(copies.count, (uint32_t)ROWS);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, ROWS);
    reserve(2, 300); /* calls: in the order of copying */
    copy_rows(200, 100, false);
    copy_rows(0, 200, false);
    reserve(3, 500);
    copy_shuffled(100, 500, &random);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, ROWS);
    expect_copies(ROWS, 200, 100);
    expect_copies(ROWS + 100, 0, 200);
    expect_copies(ROWS + 300, 100, 500);
    close_copies();
}

Test(removed, copies_are_sorted_by_change_and_row)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        try_order(false, seed);
        try_order(true, seed);
    }
}

Test(removed, copies_in_order_are_not_moved)
{
    open_copies(false);
    reserve(1, ROWS);
    copy_rows(0, ROWS, true);
    const char *first_block = copies.blocks.items[0];
    const uint64_t calls = failing_allocator_call_count(memory);
    cr_assert(quern__removed_sort(&copies, &allocator));
    cr_assert(copies.blocks.items[0] == first_block && failing_allocator_call_count(memory) == calls);
    expect_copies(0, 0, ROWS);
    close_copies();
}

/* The copy is in the last block, whose remaining rows are uninitialised. */
Test(removed, one_copy_out_of_order_is_sorted)
{
    open_copies(false);
    reserve(1, 3);
    copy_rows(0, 1, true);
    copy_rows(5, 1, true);
    copy_rows(2, 1, true);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copy(0, 0);
    expect_copy(1, 2);
    expect_copy(2, 5);
    close_copies();
}

/* The memory after the last copy contains the key of the row that would follow. */
Test(removed, cleared_copies_do_not_join_sequences)
{
    open_copies(false);
    reserve(1, 4);
    copy_rows(7, 3, true);
    copy_rows(2, 1, true);
    quern__removed_clear(&copies);
    reserve(2, 3);
    copy_rows(5, 1, true);
    copy_rows(0, 2, true);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, 2);
    expect_copy(2, 5);
    close_copies();
}

/* ------------------------------------------------------------------------------------------- blocks */

Test(removed, reserved_memory_adds_up_within_a_change_and_is_reused_by_the_next)
{
    open_copies(false);
    const uint32_t rows = copies.block_rows;
    reserve(1, rows - 1);
    cr_assert_eq(copies.blocks.count, 1);
    reserve(1, 1);
    cr_assert_eq(copies.blocks.count, 1);
    reserve(1, 1);
    cr_assert_eq(copies.blocks.count, 2);
    copy_rows(0, 10, true);
    reserve(2, 2 * rows - 10); /* reuses the memory that the first change has not used */
    cr_assert_eq(copies.blocks.count, 2);
    reserve(2, 1);
    cr_assert_eq(copies.blocks.count, 3);
    cr_assert_eq(quern__removed_used_blocks(&copies), 1);
    cr_assert(!quern__removed_reserve(&copies, &allocator, 3, UINT32_MAX),
              "numbers of copies have 32 bits");
    close_copies();
}

Test(removed, blocks_are_reserved_for_a_total_of_copies)
{
    open_copies(false);
    const uint32_t rows = copies.block_rows;
    cr_assert(quern__removed_reserve_total(&copies, &allocator, 0));
    cr_assert_eq(copies.blocks.count, 0);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, rows));
    cr_assert_eq(copies.blocks.count, 1);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, rows + 1));
    cr_assert_eq(copies.blocks.count, 2);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, 1));
    cr_assert_eq(copies.blocks.count, 2);
    close_copies();
}

Test(removed, blocks_without_copies_are_trimmed)
{
    open_copies(true);
    const uint32_t rows = copies.block_rows;
    reserve(1, 3 * rows);
    copy_rows(0, rows + 1, true);
    quern__removed_trim(&copies, &allocator, 1);
    cr_assert_eq(copies.blocks.count, 3);
    quern__removed_trim(&copies, &allocator, 0);
    cr_assert_eq(copies.blocks.count, 2);
    expect_copies(0, 0, rows + 1);
    quern__removed_clear(&copies);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)ROWS);
    cr_assert(copies.count == 0 && copies.blocks.count == 2);
    quern__removed_trim(&copies, &allocator, 0);
    cr_assert_eq(copies.blocks.count, 0);
    reserve(2, 5);
    copy_rows(20, 5, true);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)ROWS + 5);
    expect_copies(0, 20, 5);
    close_copies(); /* with copies */
}

/* ------------------------------------------------------------------------------------------- memory */

Test(removed, without_memory_the_copies_stay_as_they_were)
{
    open_copies(true);
    const uint32_t rows = copies.block_rows, part = 2 * rows + 7;
    uint32_t failed_count = 0;
    for (bool is_done = false; !is_done; failed_count += !is_done) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1);
        is_done = quern__removed_reserve(&copies, &allocator, 1, part);
        failing_allocator_heal(memory);
        cr_assert(quern__removed_reserve_total(&copies, &allocator, rows * (failed_count + 1)));
    }
    cr_assert_eq(failed_count, 3);
    cr_assert_eq(copies.promised_count, part);
    copy_rows(part - 5, 5, true);
    copy_rows(0, part - 5, true);
    for (uint64_t n = 1;; n++) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + n);
        const uint64_t outstanding_bytes = failing_allocator_outstanding_bytes(memory);
        const bool is_done = quern__removed_sort(&copies, &allocator);
        failing_allocator_heal(memory);
        if (is_done) break;
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), outstanding_bytes);
        expect_copies(0, part - 5, 5);
        expect_copies(5, 0, part - 5);
        cr_assert_lt(n, 6u);
    }
    expect_copies(0, 0, part);
    close_copies();
}
