/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Tests of row versions against a naive model. */

#include "core/storage/chunk.h"
#include "tests/core/storage/run_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <string.h>

enum { SLOTS = 4, COMPONENTS = 3, ROWS = 100, MAX_ROWS = 150, VERSIONS = 6 };

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

static failing_allocator *memory;
static quern_allocator allocator;
static quern__slabs slabs;
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
        sides[s] = (side){.shape = quern__run_shape_make(s == 0 ? ROWS : MAX_ROWS, s * QUERN__RUN_SHIFT),
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
    failing_allocator_fail_from(memory, failing_allocator_call_count(memory) + 1);
    cr_assert_not(quern__row_versions_reserve(sides[0].versions, &allocator, 2));
    cr_assert_eq(sides[0].versions->slot_capacity, 1u);
    compare(&sides[0]);
    cr_assert(quern__row_versions_reserve(sides[0].versions, &allocator, 1), "there is room");
    cr_assert(quern__row_versions_reserve(NULL, &allocator, 2));
    cr_assert_null(create(0, 1));
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 2);
    cr_assert_null(create(0, 1), "the second of two blocks is missing");
    failing_allocator_heal(memory);
    grow(&sides[0]);
    failing_allocator_fail_from(memory, failing_allocator_call_count(memory) + 1);
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
                 before - 2 * (ROWS + (ROWS + 7) / 8) * sizeof(uint64_t));
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
