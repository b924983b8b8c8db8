/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Links alone, compared with naive lists. */

#include "core/relations/links.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <string.h>

enum { NONE = (int)QUERN__SLOT_NONE, SLOTS = 40, CHAIN = 20, FAR = 5 * QUERN__LINK_PAGE_SLOTS };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__link_pages pages;
static quern__links links;

static void open_links(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    pages = (quern__link_pages){0};
    links = (quern__links){.memory = &pages};
}

static void close_links(void)
{
    quern__links_release(&links, &allocator);
    quern__link_pages_release(&pages, &allocator);
    failing_allocator_close(memory);
}

TestSuite(links, .init = open_links, .fini = close_links);

/* Returns the i-th slot. Slots are in several pages, so that lists cross pages. */
static uint32_t slot_of(uint32_t i)
{
    return i % 3 * QUERN__LINK_PAGE_SLOTS + i;
}

static void reserve_all(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        cr_assert(quern__links_reserve(&links, &allocator, slot_of(i)));
}

/* -------------------------------------------------------------------------------------- the model */

typedef struct naive_links {
    int target[SLOTS]; /* -1: none */
    int children[SLOTS][SLOTS];
    int count[SLOTS];
} naive_links;

static void naive_init(naive_links *naive)
{
    memset(naive, 0, sizeof *naive);
    for (int i = 0; i < SLOTS; i++)
        naive->target[i] = -1;
}

static int naive_position(const naive_links *naive, int target, int child)
{
    int i = 0;
    while (i < naive->count[target] && naive->children[target][i] != child)
        i++;
    return i;
}

static void naive_unlink(naive_links *naive, int source)
{
    const int target = naive->target[source];
    int *list = naive->children[target];
    const int at = naive_position(naive, target, source);
    memmove(list + at, list + at + 1, (size_t)(naive->count[target] - at - 1) * sizeof *list);
    naive->count[target]--;
    naive->target[source] = -1;
}

/* before: -1 for the end */
static void naive_link(naive_links *naive, int source, int target, int before)
{
    int *list = naive->children[target];
    const int at = before < 0 ? naive->count[target] : naive_position(naive, target, before);
    memmove(list + at + 1, list + at, (size_t)(naive->count[target] - at) * sizeof *list);
    list[at] = source;
    naive->count[target]++;
    naive->target[source] = target;
}

static uint32_t slot_or_none(int i)
{
    return i < 0 ? QUERN__SLOT_NONE : slot_of((uint32_t)i);
}

static void check_list(const naive_links *naive, int target)
{
    const quern__link_node *parent = quern__links_find(&links, slot_of((uint32_t)target));
    const int count = naive->count[target];
    cr_assert_eq(parent->count, (uint32_t)count);
    uint32_t slot = parent->first, previous = QUERN__SLOT_NONE;
    for (int i = 0; i < count; i++) {
        cr_assert_eq(slot, slot_of((uint32_t)naive->children[target][i]));
        cr_assert_eq(quern__links_at(&links, slot)->previous, previous);
        previous = slot;
        slot = quern__links_at(&links, slot)->next;
    }
    cr_assert_eq(slot, QUERN__SLOT_NONE);
    cr_assert_eq(parent->last, previous);
}

static void check_all(const naive_links *naive)
{
    for (int i = 0; i < SLOTS; i++) {
        cr_assert_eq(quern__links_target(&links, slot_of((uint32_t)i)), slot_or_none(naive->target[i]));
        check_list(naive, i);
    }
}

static int random_child(random_source *random, const naive_links *naive, int target)
{
    const int count = naive->count[target];
    const int at = (int)random_below(random, (uint32_t)count + 1);
    return at == count ? -1 : naive->children[target][at];
}

/* ------------------------------------------------------------------------------------------ tests */

Test(links, slots_without_pages_have_no_links)
{
    cr_assert_null(quern__links_find(&links, FAR));
    cr_assert_eq(quern__links_target(&links, FAR), QUERN__SLOT_NONE);
    cr_assert_eq(quern__links_first(&links, FAR), QUERN__SLOT_NONE);
    cr_assert_eq(quern__links_level(&links, FAR), 0u);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
}

Test(links, only_reserved_pages_exist)
{
    cr_assert(quern__links_reserve(&links, &allocator, FAR));
    cr_assert(quern__links_reserve(&links, &allocator, FAR + 1));
    cr_assert_eq(links.held_count, 1u);
    cr_assert_null(quern__links_find(&links, FAR - QUERN__LINK_PAGE_SLOTS));
    cr_assert_eq(quern__link_pages_held_bytes(&pages), (uint64_t)QUERN__LINK_BLOCK_BYTES);
}

Test(links, random_operations_agree_with_naive_lists)
{
    static naive_links naive;
    random_source random = {.state = 5};
    naive_init(&naive);
    reserve_all();
    for (uint32_t step = 0; step < 20000; step++) {
        const int source = (int)random_below(&random, SLOTS), target = (int)random_below(&random, 6);
        if (naive.target[source] < 0 && source != target) {
            const int before = random_child(&random, &naive, target);
            quern__links_link(&links, slot_of((uint32_t)source), slot_of((uint32_t)target),
                              slot_or_none(before));
            naive_link(&naive, source, target, before);
        } else if (naive.target[source] >= 0 && step % 2 == 0) {
            quern__links_unlink(&links, slot_of((uint32_t)source));
            naive_unlink(&naive, source);
        } else if (naive.target[source] >= 0) {
            const int its = naive.target[source], before = random_child(&random, &naive, its);
            quern__links_move_before(&links, slot_of((uint32_t)source), slot_or_none(before));
            if (before != source) {
                naive_unlink(&naive, source);
                naive_link(&naive, source, its, before);
            }
        }
        check_all(&naive);
    }
}

Test(links, ancestors_are_found_by_walking_up)
{
    reserve_all();
    for (uint32_t i = 1; i < CHAIN; i++) {
        quern__links_link(&links, slot_of(i), slot_of(i - 1), QUERN__SLOT_NONE);
        quern__links_at(&links, slot_of(i))->level =
            i < QUERN_MAX_RELATION_LEVEL ? i : QUERN_MAX_RELATION_LEVEL;
    }
    for (uint32_t above = 0; above < CHAIN; above++)
        for (uint32_t below = 0; below < CHAIN; below++)
            cr_assert_eq(quern__links_is_at_or_above(&links, slot_of(above), slot_of(below)),
                         above <= below);
    cr_assert_not(quern__links_is_at_or_above(&links, slot_of(0), slot_of(CHAIN)));
    cr_assert_not(quern__links_is_at_or_above(&links, slot_of(0), FAR));
}

Test(links, trim_releases_pages_without_links)
{
    reserve_all();
    cr_assert(quern__links_reserve(&links, &allocator, FAR));
    cr_assert_eq(links.held_count, 4u);
    quern__links_link(&links, slot_of(1), slot_of(2), QUERN__SLOT_NONE); /* uses two of the pages */
    quern__links_trim(&links, &allocator);
    cr_assert_eq(links.held_count, 2u);
    cr_assert_eq(quern__links_target(&links, slot_of(1)), slot_of(2));
    quern__links_unlink(&links, slot_of(1));
    quern__links_trim(&links, &allocator);
    cr_assert_eq(links.held_count, 0u);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
    reserve_all();
    cr_assert_eq(links.held_count, 3u);
}

/* Two relations allocate pages alternately, more than fit a block. */
Test(links, shared_blocks_are_released_when_all_pages_are_free)
{
    enum { PAGES = QUERN__LINK_BLOCK_PAGES };
    quern__links others = {.memory = &pages};
    for (uint32_t page = 0; page < PAGES; page++) {
        const uint32_t slot = page * QUERN__LINK_PAGE_SLOTS;
        cr_assert(quern__links_reserve(&links, &allocator, slot));
        cr_assert(quern__links_reserve(&others, &allocator, slot));
        quern__links_at(&links, slot)->count = quern__links_at(&others, slot)->count = page + 1;
    }
    cr_assert_eq(pages.block_count, 2u);
    for (uint32_t page = 0; page < PAGES; page++) {
        cr_assert_eq(quern__links_at(&links, page * QUERN__LINK_PAGE_SLOTS)->count, page + 1);
        cr_assert_eq(quern__links_at(&others, page * QUERN__LINK_PAGE_SLOTS)->count, page + 1);
    }
    /* the first block contains the first half of the pages of each relation */
    for (uint32_t page = 0; page < PAGES / 2; page++) {
        quern__links_at(&links, page * QUERN__LINK_PAGE_SLOTS)->count = 0;
        quern__links_at(&others, page * QUERN__LINK_PAGE_SLOTS)->count = 0;
    }
    quern__links_trim(&links, &allocator);
    cr_assert_eq(pages.block_count, 2u);
    quern__links_trim(&others, &allocator);
    cr_assert_eq(pages.block_count, 1u);
    cr_assert(quern__links_reserve(&others, &allocator, 0));
    cr_assert_eq(pages.block_count, 2u);
    quern__links_release(&others, &allocator);
}

Test(links, failed_page_allocation_changes_nothing)
{
    cr_assert(quern__links_reserve(&links, &allocator, 0));
    for (uint32_t i = 1; i < QUERN__LINK_BLOCK_PAGES; i++) /* the next page needs a block */
        cr_assert(quern__links_reserve(&links, &allocator, i * QUERN__LINK_PAGE_SLOTS));
    for (uint32_t lacking = 1; lacking <= 2; lacking++) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + lacking);
        cr_assert_eq(quern__links_reserve(&links, &allocator, lacking * 100 * FAR), false);
        failing_allocator_heal(memory);
        cr_assert_eq(links.held_count, (uint32_t)QUERN__LINK_BLOCK_PAGES);
        cr_assert_eq(pages.block_count, 1u);
    }
    cr_assert(quern__links_reserve(&links, &allocator, 100 * FAR));
}
