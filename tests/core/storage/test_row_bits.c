/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Tests of bit columns against a naive model. */

#include "core/storage/row_bits.h"
#include "tests/core/storage/run_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

enum { SLOTS = 3, KINDS = 3, IDS = 3, ROWS = 150, MAX_ROWS = 200 };

/* A substitute for an archetype: chunks with their index, and a naive model of the bits. */
typedef struct side {
    quern__row_bits *row_bits;
    quern__run_shape shape; /* of one chunk, or of many */
    uint32_t slot_count;
    quern__chunk *chunks[SLOTS];
    bool has[KINDS][IDS];
    bool bits[KINDS][IDS][SLOTS][MAX_ROWS];
} side;

static failing_allocator *memory;
static quern_allocator allocator;
static quern__slabs slabs;
static side sides[2];

static void open_bit_columns(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    for (uint32_t s = 0; s < 2; s++) {
        sides[s] = (side){.shape = quern__run_shape_make(s == 0 ? ROWS : MAX_ROWS, s * QUERN__RUN_SHIFT),
                          .slot_count = 1};
        allocate_chunks(&slabs, &allocator, &sides[s].shape, SLOTS, sides[s].chunks);
    }
}

static void close_bit_columns(void)
{
    for (uint32_t s = 0; s < 2; s++) {
        quern__row_bits_release(&sides[s].row_bits, &allocator);
        assert_at_end(sides[s].row_bits == NULL);
    }
    quern__slabs_release(&slabs, &allocator);
    failing_allocator_close(memory);
}

TestSuite(row_bits, .init = open_bit_columns, .fini = close_bit_columns);

static quern__bit_column bit_column_of(uint32_t kind, uint32_t id)
{
    return (quern__bit_column){(quern__bit_column_kind)kind, id};
}

static void add(side *where, uint32_t kind, uint32_t id)
{
    cr_assert(quern__row_bits_add_column(&where->row_bits, &allocator, bit_column_of(kind, id),
                                         &where->shape, where->slot_count));
    where->has[kind][id] = true;
}

static void set_bits(side *where, uint32_t kind, uint32_t id, uint32_t slot, uint32_t row, uint32_t count,
                     bool bit)
{
    for (uint32_t i = row; i < row + count; i++)
        where->bits[kind][id][slot][i] = bit;
}

static uintptr_t place(const side *where, uint32_t slot, uint32_t row)
{
    return quern__location_make(where->chunks[slot], row);
}

/* ------------------------------------------------------------------------------------- the model */

/* Checks that bits and counts match the model, and that the list is ordered. */
static void compare(const side *where)
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
                    cr_assert_eq(quern__bit_column_test(where->row_bits, index, place(where, slot, row)),
                                 bit);
                }
                cr_assert_eq(quern__bit_column_count(where->row_bits, index, slot), count);
            }
        }
    cr_assert_eq(where->row_bits != NULL ? where->row_bits->count : 0, bit_column_count);
}

static void add_or_remove_one(side *where, uint32_t kind, uint32_t id)
{
    if (!where->has[kind][id]) {
        add(where, kind, id);
        return;
    }
    quern__row_bits_remove_column(&where->row_bits, &allocator, bit_column_of(kind, id));
    where->has[kind][id] = false;
    memset(where->bits[kind][id], 0, sizeof where->bits[kind][id]);
}

static void grow(side *where)
{
    if (where->slot_count < SLOTS) where->slot_count++;
    cr_assert(quern__row_bits_grow(&where->row_bits, &allocator, where->slot_count));
}

static void clear_rows(side *where, uint32_t slot, uint32_t row, uint32_t count)
{
    if (where->row_bits != NULL) quern__row_bits_clear(where->row_bits, place(where, slot, row), count);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t id = 0; id < IDS; id++)
            set_bits(where, kind, id, slot, row, count, false);
}

/* Moves rows in both archetypes and the model. Clears the target rows first, because they must be raw. */
static void move_rows(side *target, uint32_t to_slot, uint32_t to_row, side *source, uint32_t from_slot,
                      uint32_t from_row, uint32_t count)
{
    clear_rows(target, to_slot, to_row, count);
    if (source->row_bits == NULL) return;
    quern__row_bits_move(target->row_bits, place(target, to_slot, to_row), source->row_bits,
                         place(source, from_slot, from_row), count);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t id = 0; id < IDS; id++)
            for (uint32_t i = 0; i < count; i++) {
                bool *from = &source->bits[kind][id][from_slot][from_row + i];
                target->bits[kind][id][to_slot][to_row + i] = *from && target->has[kind][id];
                *from = false;
            }
}

static void change_run(side *where, random_source *random, uint32_t slot, uint32_t row, uint32_t count)
{
    const uint32_t kind = random_below(random, KINDS), id = random_below(random, IDS);
    const uint32_t index = quern__row_bits_find_column(where->row_bits, (quern__bit_column_kind)kind, id);
    if (index == QUERN__NO_BIT_COLUMN) return;
    const uint32_t verb = random_below(random, 8);
    if (verb == 0) {
        quern__bit_column_clear_slot(where->row_bits, index, slot);
        set_bits(where, kind, id, slot, 0, where->shape.row_capacity, false);
    } else if (verb < 4) {
        quern__bit_column_clear_rows(where->row_bits, index, place(where, slot, row), count);
        set_bits(where, kind, id, slot, row, count, false);
    } else {
        quern__bit_column_set_rows(where->row_bits, index, place(where, slot, row), count);
        set_bits(where, kind, id, slot, row, count, true);
    }
}

Test(row_bits, match_a_naive_model)
{
    random_source random = {.state = 17};
    for (uint32_t step = 0; step < 4000; step++) {
        side *one = &sides[random_below(&random, 2)], *other = &sides[random_below(&random, 2)];
        const uint32_t slot = random_below(&random, one->slot_count);
        const uint32_t row = random_below(&random, ROWS - 1);
        const uint32_t count = 1 + random_below(&random, ROWS - row - 1);
        const uint32_t choice = random_below(&random, 16);
        const uint32_t to_slot = random_below(&random, other->slot_count);
        const uint32_t to_row = random_below(&random, ROWS - count);
        const bool overlaps =
            one == other && slot == to_slot && row < to_row + count && to_row < row + count;
        if (choice == 0)
            add_or_remove_one(one, random_below(&random, KINDS), random_below(&random, IDS));
        else if (choice == 1)
            grow(one);
        else if (choice < 4)
            clear_rows(one, slot, row, count);
        else if (choice >= 8)
            change_run(one, &random, slot, row, count);
        else if (!overlaps)
            move_rows(other, to_slot, to_row, one, slot, row, count);
        compare(one);
        compare(other);
    }
}

/* ------------------------------------------------------------------------------------- which bit columns */

Test(row_bits, of_components_keep_their_index_when_others_are_added)
{
    add(&sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 2);
    quern__bit_column_set_rows(sides[0].row_bits, 0, place(&sides[0], 0, 60), 10);
    set_bits(&sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 2, 0, 60, 10, true);
    add(&sides[0], QUERN__BIT_COLUMN_SET, 0);
    add(&sides[0], QUERN__BIT_COLUMN_ADDED, 1);
    add(&sides[0], QUERN__BIT_COLUMN_ADDED, 0);
    cr_assert_eq(quern__row_bits_find_column(sides[0].row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, 2), 0u);
    compare(&sides[0]);
}

Test(row_bits, are_cleared_if_the_target_has_none)
{
    add(&sides[0], QUERN__BIT_COLUMN_CAN_DISABLE, 0);
    quern__bit_column_set_rows(sides[0].row_bits, 0, place(&sides[0], 0, 0), 3);
    quern__row_bits_move(NULL, place(&sides[1], 0, 0), sides[0].row_bits, place(&sides[0], 0, 0), 3);
    compare(&sides[0]);
}

Test(row_bits, are_unchanged_without_memory)
{
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_add_column(&sides[0].row_bits, &allocator, bit_column_of(0, 0),
                                             &sides[0].shape, 1));
    cr_assert_null(sides[0].row_bits);
    failing_allocator_heal(memory);
    add(&sides[0], 0, 0);
    quern__bit_column_set_rows(sides[0].row_bits, 0, place(&sides[0], 0, 5), 1);
    set_bits(&sides[0], 0, 0, 0, 5, 1, true);
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_add_column(&sides[0].row_bits, &allocator, bit_column_of(1, 0),
                                             &sides[0].shape, 1));
    failing_allocator_fail_from(memory, 1);
    cr_assert_not(quern__row_bits_grow(&sides[0].row_bits, &allocator, SLOTS));
    failing_allocator_heal(memory);
    compare(&sides[0]);
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
