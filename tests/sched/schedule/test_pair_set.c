/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Sets of pairs against a naive table. */

#include "sched/schedule/access.h"

#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

enum { ROWS = 700, WORDS = QUERN__BITSET_WORDS(ROWS), PUTS = 3000 };

static bool table[ROWS][ROWS]; /* [later][earlier] */

static void assert_row(const quern__pair_set *set, uint32_t later)
{
    uint64_t words[WORDS] = {0};
    quern__pair_set_get(set, later, words);
    quern__pair_walk walk = quern__pair_set_walk(set, later);
    for (uint32_t earlier = later; earlier-- > 0;) {
        cr_assert_eq(quern__pair_set_has(set, earlier, later), table[later][earlier]);
        cr_assert_eq(quern__bitset_has(words, earlier), table[later][earlier]);
        uint32_t next = UINT32_MAX;
        if (!table[later][earlier]) continue;
        cr_assert(quern__pair_walk_next(&walk, &next));
        cr_assert_eq(next, earlier);
    }
    uint32_t none;
    cr_assert_not(quern__pair_walk_next(&walk, &none));
}

/* Replaces a row by one in which about `percent` of the pairs exist. */
static bool put_random_row(quern__pair_set *set, const quern_allocator *allocator, random_source *random,
                           uint32_t later, uint32_t percent)
{
    uint64_t words[WORDS] = {0};
    for (uint32_t earlier = 0; earlier < later; earlier++)
        if (random_chance(random, percent)) quern__bitset_add(words, earlier);
    if (!quern__pair_set_put(set, allocator, later, words)) return false;
    for (uint32_t earlier = 0; earlier < later; earlier++)
        table[later][earlier] = quern__bitset_has(words, earlier);
    return true;
}

/* Rows grow, shrink and change their form; the memory of replaced rows is used again. */
Test(pair_set, rows_are_like_those_of_a_table)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {7};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    static const uint32_t percents[] = {0, 1, 4, 30, 100};
    for (uint32_t i = 0; i < PUTS; i++) {
        const uint32_t later = random_below(&random, ROWS);
        cr_assert(put_random_row(&set, &allocator, &random, later, percents[random_below(&random, 5)]));
        assert_row(&set, later);
        cr_assert_leq(set.rows.items[later].unit_count, later / 16 + 1);
    }
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    uint32_t used_count = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        used_count += set.rows.items[i].unit_count;
    cr_assert_eq(set.units.count, used_count + set.unused_count);
    cr_assert(quern__pair_set_reset(&set, &allocator, 3));
    cr_assert_not(quern__pair_set_has(&set, 0, 2));
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}

Test(pair_set, replaced_rows_do_not_pile_up)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {8};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    uint32_t most = 0;
    for (uint32_t turn = 0; turn < 20; turn++)
        for (uint32_t later = 0; later < ROWS; later++) {
            cr_assert(put_random_row(&set, &allocator, &random, later, turn % 2 == 0 ? 0 : 50));
            if (set.units.count > most) most = set.units.count;
        }
    cr_assert_lt(most, 2 * 65536 + 2 * ROWS * ROWS / 32);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}

Test(pair_set, missing_memory_changes_nothing)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {9};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    uint32_t failed_count = 0;
    for (uint32_t i = 0; i < PUTS; i++) {
        const uint32_t later = random_below(&random, ROWS);
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + i % 2);
        failed_count += !put_random_row(&set, &allocator, &random, later, i % 2 * 60);
        failing_allocator_heal(memory);
        assert_row(&set, later);
    }
    cr_assert_gt(failed_count, 2u);
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}
