/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/containers.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

enum { MAX_COUNT = 300 };

static quern__sort_item items[MAX_COUNT + 1], scratch[MAX_COUNT + 1];

/* Fills the items with few distinct keys, so that many are equal. Pointers are input positions, to check stability. */
static void fill(uint32_t count, uint64_t seed)
{
    random_source random = {seed};
    for (uint32_t i = 0; i <= MAX_COUNT; i++) {
        items[i] = (quern__sort_item){.key = (uint64_t)random_below(&random, count + 1) << 40 | 7,
                                      .pointer = (void *)(uintptr_t)(i + 1)};
        scratch[i] = (quern__sort_item){0};
    }
}

Test(sort, items_are_sorted_by_key_and_stable)
{
    for (uint32_t count = 0; count <= MAX_COUNT; count++) {
        fill(count, count);
        uint64_t sum = 0, expected_sum = 0;
        for (uint32_t i = 0; i < count; i++)
            expected_sum += items[i].key * (uintptr_t)items[i].pointer;
        quern__sort_item behind = items[count];
        quern__sort(items, scratch, count);
        for (uint32_t i = 0; i < count; i++) {
            sum += items[i].key * (uintptr_t)items[i].pointer;
            if (i == 0) continue;
            cr_assert_leq(items[i - 1].key, items[i].key, "count %u, item %u", count, i);
            if (items[i - 1].key == items[i].key) cr_assert_lt(items[i - 1].pointer, items[i].pointer);
        }
        cr_assert_eq(sum, expected_sum, "count %u: other items than before", count);
        cr_assert_eq(items[count].pointer, behind.pointer, "count %u: an item behind them", count);
        cr_assert_null(scratch[count].pointer);
    }
}

Test(sort, sorted_input_is_unchanged)
{
    for (uint32_t i = 0; i < MAX_COUNT; i++)
        items[i] = (quern__sort_item){.key = i / 3, .pointer = (void *)(uintptr_t)i};
    quern__sort(items, NULL, MAX_COUNT); /* sorted input needs no scratch memory */
    for (uint32_t i = 0; i < MAX_COUNT; i++)
        cr_assert_eq((uintptr_t)items[i].pointer, i);
}
