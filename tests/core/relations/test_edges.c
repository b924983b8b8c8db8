/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Edges alone, compared with a naive matrix, and with sets that are large enough for directories. */

#include "core/relations/links.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 40, HUB = 70000, LARGE = 5000, CHANGES = 6000 };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__link_pages pages;
static quern__edge_pool pool;
static quern__edges edges;
static random_source dice;

static void open_edges(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    pages = (quern__link_pages){0};
    pool = (quern__edge_pool){.memory = &pages};
    edges = (quern__edges){.pool = &pool};
    dice = (random_source){7};
}

static void close_edges(void)
{
    quern__edges_release(&edges, &allocator);
    quern__edge_pool_trim(&pool, &allocator);
    assert_at_end(pool.directory_bytes == 0u);
    quern__link_pages_release(&pages, &allocator);
    failing_allocator_close(memory);
}

TestSuite(edges, .init = open_edges, .fini = close_edges);

/* Returns the i-th slot. Slots are in several pages. */
static uint32_t slot_of(uint32_t i)
{
    return i % 3 * QUERN__EDGE_PAGE_SLOTS + i;
}

static void add(uint32_t source, uint32_t target)
{
    cr_assert(quern__edges_reserve(&edges, &allocator, source, target));
    quern__edges_add(&edges, source, target);
}

/* Checks that a set has exactly the slots of the list, in order, by each way to read it. */
static void check_set(const quern__edge_list *list, const uint32_t *expected, uint32_t count)
{
    uint32_t *copy = malloc((count + 1) * sizeof *copy), slot = QUERN__SLOT_NONE, position = 0;
    cr_assert_not_null(copy);
    cr_assert_eq(list->count, count);
    quern__edge_list_copy(list, copy);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(copy[i], expected[i]);
        slot = quern__edge_list_next(list, slot);
        cr_assert_eq(slot, expected[i]);
        cr_assert(quern__edge_list_has(list, slot));
    }
    cr_assert_eq(quern__edge_list_next(list, slot), QUERN__SLOT_NONE);
    for (uint32_t i = 0; i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        for (uint32_t k = 0; k < range.count; k++)
            cr_assert_eq(range.slots[k], expected[position++]);
    }
    cr_assert_eq(position, count);
    free(copy);
}

/* -------------------------------------------------------------------------------------- small sets */

static bool naive[SLOTS][SLOTS];

static void check_matrix(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t targets[SLOTS], sources[SLOTS], target_count = 0, source_count = 0;
        for (uint32_t page = 0; page < 3; page++) /* in the order of slots */
            for (uint32_t k = page; k < SLOTS; k += 3) {
                cr_assert_eq(quern__edges_has(&edges, slot_of(i), slot_of(k)), naive[i][k]);
                if (naive[i][k]) targets[target_count++] = slot_of(k);
                if (naive[k][i]) sources[source_count++] = slot_of(k);
            }
        check_set(quern__edges_targets(&edges, slot_of(i)), targets, target_count);
        check_set(quern__edges_sources(&edges, slot_of(i)), sources, source_count);
        count += target_count;
    }
    cr_assert_eq(edges.count, count);
}

static void clear_slot(uint32_t i)
{
    for (uint32_t k = 0; k < SLOTS; k++) {
        if (naive[i][k]) quern__edges_remove(&edges, slot_of(i), slot_of(k));
        naive[i][k] = false;
        if (naive[k][i]) quern__edges_remove(&edges, slot_of(k), slot_of(i));
        naive[k][i] = false;
    }
    quern__edges_clear(&edges, &allocator, slot_of(i));
}

Test(edges, random_changes_agree_with_a_matrix)
{
    memset(naive, 0, sizeof naive);
    check_matrix();
    for (uint32_t i = 0; i < CHANGES; i++) {
        const uint32_t source = random_below(&dice, SLOTS), target = random_below(&dice, SLOTS);
        if (random_chance(&dice, 1)) {
            clear_slot(source);
            continue;
        }
        if (naive[source][target])
            quern__edges_remove(&edges, slot_of(source), slot_of(target));
        else
            add(slot_of(source), slot_of(target));
        naive[source][target] ^= true;
        if (i % 500 == 250) quern__edges_trim(&edges, &allocator);
        if (i % 100 == 0) check_matrix();
    }
    check_matrix();
}

Test(edges, slots_without_pages_have_no_edges)
{
    cr_assert_not(quern__edges_has(&edges, 5, HUB));
    cr_assert_eq(quern__edges_targets(&edges, HUB)->count, 0u);
    cr_assert_eq(quern__edge_list_next(quern__edges_sources(&edges, HUB), QUERN__SLOT_NONE),
                 QUERN__SLOT_NONE);
    quern__edges_clear(&edges, &allocator, HUB);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
}

/* -------------------------------------------------------------------------------------- large sets */

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void shuffle(uint32_t *slots, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t k = random_below(&dice, i), slot = slots[k];
        slots[k] = slots[i - 1];
        slots[i - 1] = slot;
    }
}

/* Checks the sources of HUB against a list in any order. */
static void check_hub(const uint32_t *slots, uint32_t count)
{
    static uint32_t sorted[LARGE];
    memcpy(sorted, slots, count * sizeof *slots);
    qsort(sorted, count, sizeof *sorted, compare);
    check_set(quern__edges_sources(&edges, HUB), sorted, count);
}

static void list_slots(uint32_t *slots)
{
    for (uint32_t i = 0; i < LARGE; i++)
        slots[i] = i * 3 + i % 2;
}

Test(edges, a_hub_has_any_number_of_sources_in_any_order_of_adding)
{
    static uint32_t slots[LARGE];
    for (int order = 0; order < 3; order++) { /* ascending, descending, random */
        list_slots(slots);
        if (order == 1)
            for (uint32_t i = 0; i < LARGE; i++)
                slots[i] = (LARGE - i) * 3;
        if (order == 2) shuffle(slots, LARGE);
        for (uint32_t i = 0; i < LARGE; i++) {
            add(slots[i], HUB);
            if (i % 617 == 0 || i == QUERN__EDGE_BLOCK_SLOTS) check_hub(slots, i + 1);
        }
        check_hub(slots, LARGE);
        shuffle(slots, LARGE);
        for (uint32_t i = LARGE; i-- > 0;) {
            quern__edges_remove(&edges, slots[i], HUB);
            if (i == LARGE / 2 || i == 1000) quern__edges_trim(&edges, &allocator);
            if (i % 617 == 0) check_hub(slots, i);
        }
        cr_assert_eq(edges.count, 0u);
        quern__edges_trim(&edges, &allocator);
        quern__edge_pool_trim(&pool, &allocator);
        cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
    }
}

Test(edges, ascending_slots_fill_their_blocks)
{
    for (uint32_t i = 0; i < LARGE; i++)
        add(i, HUB);
    cr_assert_eq(quern__edge_list_ranges(quern__edges_sources(&edges, HUB)),
                 (LARGE - 1) / QUERN__EDGE_BLOCK_SLOTS + 1u);
}

/* Edges that were removed are added again in reverse order, without reservations and without memory, though blocks have
 * split meanwhile. Assertions in the store notice a missing place. */
Test(edges, changes_can_be_undone_without_memory)
{
    typedef struct change {
        uint32_t source;
        bool is_removal;
    } change;
    static change changes[4 * LARGE];
    static uint32_t slots[LARGE];
    static bool is_source[4 * LARGE];
    uint32_t count = 0;
    list_slots(slots);
    shuffle(slots, LARGE);
    memset(is_source, 0, sizeof is_source);
    for (uint32_t i = 0; i < 3000; i++) {
        add(slots[i], HUB);
        is_source[slots[i]] = true;
    }
    for (; count < 4 * LARGE; count++) {
        const uint32_t source = random_below(&dice, 3 * LARGE + 1);
        changes[count] = (change){source, is_source[source]};
        if (is_source[source])
            quern__edges_remove(&edges, source, HUB);
        else
            add(source, HUB);
        is_source[source] ^= true;
    }
    failing_allocator_fail_from(memory, 1);
    while (count-- > 0) {
        if (changes[count].is_removal)
            quern__edges_add(&edges, changes[count].source, HUB);
        else
            quern__edges_remove(&edges, changes[count].source, HUB);
    }
    cr_assert_eq(failing_allocator_failed_count(memory), 0u);
    failing_allocator_heal(memory);
    check_hub(slots, 3000);
}

/* -------------------------------------------------------------------------------------- memory */

/* Adds many edges while allocations fail. A failed reservation changes no set, and succeeds later. */
Test(edges, reservations_fail_without_a_change)
{
    static uint32_t slots[LARGE];
    uint32_t failures = 0;
    list_slots(slots);
    shuffle(slots, LARGE);
    failing_allocator_fail_often(memory, 75, 3);
    for (uint32_t i = 0; i < LARGE; i++) {
        while (!quern__edges_reserve(&edges, &allocator, slots[i], HUB)) {
            failures++;
            check_hub(slots, i);
        }
        quern__edges_add(&edges, slots[i], HUB);
    }
    cr_assert_gt(failures, 5u);
    quern__edges_trim(&edges, &allocator);
    failing_allocator_heal(memory);
    check_hub(slots, LARGE);
}

Test(edges, sets_are_built_of_ascending_slots)
{
    static uint32_t slots[LARGE];
    static const uint32_t counts[] = {0, 1, 4, 5, 6, 7, 1023, 1024, 1025, 2048, 2049, LARGE};
    list_slots(slots);
    for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        quern__edge_list list;
        cr_assert(quern__edge_list_build(&pool, &allocator, slots, counts[i], &list));
        check_set(&list, slots, counts[i]);
        quern__edge_list_release(&pool, &allocator, &list);
        cr_assert_eq(list.capacity, 0u);
    }
    bool is_built = false;
    for (uint32_t i = 1; !is_built; i++) {
        quern__edge_list list;
        quern__edge_pool_trim(&pool, &allocator);
        failing_allocator_fail_at(memory, i);
        is_built = quern__edge_list_build(&pool, &allocator, slots, LARGE, &list);
        cr_assert(is_built || i < 20);
        if (is_built) check_set(&list, slots, LARGE);
        quern__edge_list_release(&pool, &allocator, &list);
    }
    failing_allocator_heal(memory);
}

Test(edges, capacities_are_the_smallest_that_suffice)
{
    uint32_t last = 0, count = 0;
    for (uint32_t i = 1; i <= QUERN__EDGE_BLOCK_SLOTS; i++) {
        const uint32_t capacity = quern__edge_pool_capacity(i);
        cr_assert_geq(capacity, i);
        cr_assert(capacity <= 4 || 3 * i > 2 * (capacity - capacity / 3), "%u for %u", capacity, i);
        cr_assert(capacity == last || i == last + 1, "%u for %u after %u", capacity, i, last);
        count += capacity != last;
        last = capacity;
    }
    cr_assert_eq(count, (uint32_t)QUERN__EDGE_CLASSES);
}

Test(edges, trimmed_memory_is_that_of_the_remaining_edges)
{
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t k = 1; k <= 40; k++)
            add(i, (i + k * 61) % 20000);
    const uint64_t full = quern__link_pages_held_bytes(&pages);
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t k = 2; k <= 40; k++)
            quern__edges_remove(&edges, i, (i + k * 61) % 20000);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), full);
    quern__edges_trim(&edges, &allocator);
    quern__edge_pool_trim(&pool, &allocator);
    cr_assert_lt(quern__link_pages_held_bytes(&pages), full);
    for (uint32_t i = 0; i < 20000; i++)
        check_set(quern__edges_targets(&edges, i), &(uint32_t){(i + 61) % 20000}, 1);
}

Test(edges, changed_groups_are_touched)
{
    add(1, HUB);
    cr_assert(quern__marks_extend(&edges.touched, &allocator, edges.pages.count));
    quern__marks_fill(&edges.touched, 0);
    add(64, HUB);
    cr_assert_eq(edges.touched.items[0], 2u);
    cr_assert_eq(edges.touched.items[HUB / 4096], UINT64_C(1) << HUB / 64 % 64);
    edges.touched.items[0] = 0;
    quern__edges_remove(&edges, 1, HUB);
    cr_assert_eq(edges.touched.items[0], 1u);
    quern__marks_release(&edges.touched, &allocator);
    quern__edges_clear(&edges, &allocator, 1);
}
