/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/links.h"

#include <quern/relation.h>

enum { PAGE_BYTES = QUERN__LINK_PAGE_SLOTS * sizeof(quern__kin) };

static void page_release(quern__links *links, const quern_allocator *allocator, uint32_t page)
{
    quern__release(allocator, links->pages.items[page], PAGE_BYTES, QUERN__ARRAY_ALIGNMENT_BYTES);
    links->pages.items[page] = NULL;
}

void quern__links_release(quern__links *links, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < links->pages.count; i++)
        page_release(links, allocator, i);
    quern__array_release(allocator, &links->pages);
    *links = (quern__links){0};
}

bool quern__links_add_page(quern__links *links, const quern_allocator *allocator, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__LINK_PAGE_LOG2;
    if (!quern__array_reserve(allocator, &links->pages, page + 1)) return false;
    quern__kin *added = quern__allocate(allocator, PAGE_BYTES, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (added == NULL) return false;
    for (uint32_t i = 0; i < QUERN__LINK_PAGE_SLOTS; i++)
        added[i] = (quern__kin){.target = QUERN__SLOT_NONE,
                                .first = QUERN__SLOT_NONE,
                                .next = QUERN__SLOT_NONE,
                                .previous = QUERN__SLOT_NONE};
    while (links->pages.count <= page)
        links->pages.items[links->pages.count++] = NULL;
    links->pages.items[page] = added;
    links->held_count++;
    return true;
}

void quern__links_link(quern__links *links, uint32_t source, uint32_t target, uint32_t before)
{
    quern__kin *child = quern__links_at(links, source), *parent = quern__links_at(links, target);
    assert(child->target == QUERN__SLOT_NONE);
    links->version++;
    child->target = target;
    child->next = before;
    parent->count++;
    if (parent->first == QUERN__SLOT_NONE) {
        child->previous = source;
        parent->first = source;
        return;
    }
    /* the one after it, or else the first, which knows the last */
    quern__kin *after = quern__links_at(links, before != QUERN__SLOT_NONE ? before : parent->first);
    child->previous = after->previous;
    after->previous = source;
    if (parent->first == before)
        parent->first = source;
    else
        quern__links_at(links, child->previous)->next = source;
}

static inline uint32_t slot_of(const quern_entity *entities, uint32_t number)
{
    return number != QUERN__SLOT_NONE ? quern_entity_index(entities[number]) : QUERN__SLOT_NONE;
}

void quern__links_put_tree(quern__links *links, const quern__kin *kin, uint32_t count,
                           const quern_entity *entities)
{
    quern__kin *root = quern__links_at(links, quern_entity_index(entities[0]));
    const uint32_t root_level = root->level;
    root->first = slot_of(entities, kin[0].first);
    root->count = kin[0].count;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t level = root_level + kin[i].level;
        *quern__links_at(links, quern_entity_index(entities[i])) =
            (quern__kin){.target = slot_of(entities, kin[i].target),
                         .first = slot_of(entities, kin[i].first),
                         .next = slot_of(entities, kin[i].next),
                         .previous = slot_of(entities, kin[i].previous),
                         .count = kin[i].count,
                         .level = level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL};
    }
    links->version++;
}

void quern__links_unlink(const quern__links *links, uint32_t source)
{
    quern__kin *child = quern__links_at(links, source);
    quern__kin *parent = quern__links_at(links, child->target);
    parent->count--;
    if (child->next != QUERN__SLOT_NONE)
        quern__links_at(links, child->next)->previous = child->previous;
    else if (parent->first != source)
        quern__links_at(links, parent->first)->previous = child->previous;
    if (parent->first == source)
        parent->first = child->next;
    else
        quern__links_at(links, child->previous)->next = child->next;
    child->target = child->next = child->previous = QUERN__SLOT_NONE;
}

void quern__links_place(quern__links *links, uint32_t source, uint32_t before)
{
    const uint32_t target = quern__links_at(links, source)->target;
    if (before == source) return;
    quern__links_unlink(links, source);
    quern__links_link(links, source, target, before);
}

bool quern__links_is_above(const quern__links *links, uint32_t slot, uint32_t below)
{
    while (below != slot && below != QUERN__SLOT_NONE)
        below = quern__links_target(links, below);
    return below == slot;
}

static bool is_page_unused(const quern__kin *page)
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
        links->held_count--;
    }
}

uint64_t quern__links_held_bytes(const quern__links *links)
{
    return (uint64_t)links->held_count * PAGE_BYTES;
}
