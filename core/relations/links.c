/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/links.h"

static void page_release(quern__links *links, const quern_allocator *allocator, uint32_t page)
{
    quern__link_pages_give(links->memory, allocator, links->pages.items[page]);
    links->pages.items[page] = NULL;
    links->held_count--;
}

void quern__links_release(quern__links *links, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < links->pages.count; i++)
        if (links->pages.items[i] != NULL) page_release(links, allocator, i);
    quern__array_release(allocator, &links->pages);
    quern__links_stop_touching(links, allocator);
    *links = (quern__links){0};
}

static bool reserve_modified(quern__links *links, const quern_allocator *allocator, uint32_t page_count)
{
    if (!quern__array_reserve(allocator, &links->touched, page_count)) return false;
    while (links->touched.count < page_count)
        links->touched.items[links->touched.count++] = ~UINT64_C(0);
    return true;
}

/* Reserves at least one word, since `touched.items` must not be NULL while marking is on. */
bool quern__links_start_touching(quern__links *links, const quern_allocator *allocator)
{
    return reserve_modified(links, allocator, links->pages.count > 0 ? links->pages.count : 1);
}

void quern__links_stop_touching(quern__links *links, const quern_allocator *allocator)
{
    quern__array_release(allocator, &links->touched);
    links->touched.items = NULL;
    links->touched.count = links->touched.capacity = 0;
}

bool quern__links_add_page(quern__links *links, const quern_allocator *allocator, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__LINK_PAGE_LOG2;
    if (!quern__array_reserve(allocator, &links->pages, page + 1) ||
        (links->touched.items != NULL && !reserve_modified(links, allocator, page + 1)))
        return false;
    quern__link_node *added = quern__link_pages_take(links->memory, allocator);
    if (added == NULL) return false;
    for (uint32_t i = 0; i < QUERN__LINK_PAGE_SLOTS; i++)
        added[i] = quern__empty_link_node;
    while (links->pages.count <= page)
        links->pages.items[links->pages.count++] = NULL;
    links->pages.items[page] = added;
    if (links->touched.items != NULL) links->touched.items[page] = ~UINT64_C(0);
    links->held_count++;
    return true;
}

/* Returns whether the entities have consecutive slots. */
static bool have_consecutive_slots(const quern_entity *entities, uint32_t count)
{
    const uint32_t first = quern_entity_index(entities[0]);
    for (uint32_t i = 1; i < count; i++)
        if (quern_entity_index(entities[i]) != first + i) return false;
    return true;
}

_Static_assert(sizeof(quern__link_node) == 4 * sizeof(uint64_t), "links are words in pairs");

/* Writes the links of a tree with consecutive slots. A slot is the number of its entity in the tree plus the first
 * slot. Each 64-bit addition adds to two members at once; every sum fits in 32 bits, so no carry crosses over. */
static inline void put_consecutive(quern__link_node *restrict links, const quern__link_node *restrict node,
                                   const quern__link_node *restrict bases, uint32_t count, uint32_t first)
{
    const uint64_t both = (uint64_t)first << 32 | first;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[4], adds[4];
        memcpy(words, &node[i], sizeof words);
        memcpy(adds, &bases[i], sizeof adds);
        for (uint32_t k = 0; k < 4; k++)
            words[k] += adds[k] & both;
        memcpy(&links[i], words, sizeof words);
    }
}

static inline uint32_t slot_of(const quern_entity *entities, uint32_t number)
{
    return number != QUERN__SLOT_NONE ? quern_entity_index(entities[number]) : QUERN__SLOT_NONE;
}

/* Writes the links of a tree without consecutive slots. */
static void put_scattered(const quern__links *links, const quern__link_node *node, uint32_t count,
                          const quern_entity *entities)
{
    for (uint32_t i = 0; i < count; i++)
        *quern__links_at(links, quern_entity_index(entities[i])) =
            (quern__link_node){.target = slot_of(entities, node[i].target),
                               .first = slot_of(entities, node[i].first),
                               .last = slot_of(entities, node[i].last),
                               .next = slot_of(entities, node[i].next),
                               .previous = slot_of(entities, node[i].previous),
                               .count = node[i].count,
                               .level = node[i].level};
}

void quern__links_put_trees(quern__links *links, const quern__link_node *node,
                            const quern__link_node *bases, uint32_t node_count,
                            const quern_entity *entities, uint32_t tree_count)
{
    const bool are_consecutive = have_consecutive_slots(entities, node_count * tree_count);
    for (uint32_t i = 0; i < tree_count; i++, entities += node_count) {
        const uint32_t first = quern_entity_index(entities[0]), last = first + node_count - 1;
        if (are_consecutive && first >> QUERN__LINK_PAGE_LOG2 == last >> QUERN__LINK_PAGE_LOG2)
            put_consecutive(quern__links_at(links, first), node, bases, node_count, first);
        else
            put_scattered(links, node, node_count, entities);
        for (uint32_t k = 0; links->touched.items != NULL && k < node_count; k++)
            quern__links_touch(links, quern_entity_index(entities[k]));
    }
    links->version++;
}

void quern__links_move_before(quern__links *links, uint32_t source, uint32_t before)
{
    const uint32_t target = quern__links_at(links, source)->target;
    if (before == source) return;
    quern__links_unlink(links, source);
    quern__links_link(links, source, target, before);
}

bool quern__links_is_at_or_above(const quern__links *links, uint32_t slot, uint32_t below)
{
    const uint32_t level = quern__links_level(links, slot);
    while (below != slot && below != QUERN__SLOT_NONE) {
        const quern__link_node *node = quern__links_find(links, below);
        /* the maximal level covers several depths */
        if (node == NULL || (node->level <= level && node->level < QUERN_MAX_RELATION_LEVEL)) return false;
        below = node->target;
    }
    return below == slot;
}

static bool is_page_unused(const quern__link_node *page)
{
    for (uint32_t i = 0; i < QUERN__LINK_PAGE_SLOTS; i++)
        if (page[i].target != QUERN__SLOT_NONE || page[i].count > 0) return false;
    return true;
}

void quern__links_trim(quern__links *links, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < links->pages.count; i++) {
        if (links->pages.items[i] == NULL || !is_page_unused(links->pages.items[i])) continue;
        page_release(links, allocator, i);
    }
}
