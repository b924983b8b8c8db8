/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LINKS_H
#define QUERN_CORE_STORAGE_LINKS_H

/* The links of one relation: who is whose child, and in which order. They know slots and nothing else:
 * whether an entity lives, and in which archetype its row is, is the matter of their users (relate.h).
 *
 * Links lie by slot, in pages that exist where they were ever needed; a slot without a page has no links.
 *
 *   target = t            exactly when the slot stands once in the list of t: first, next, next, ... none
 *   count                 how many stand in that list
 *   first->previous       the last of the list, so that appending takes no walk; otherwise
 *   next->previous        is the slot itself
 *   level                 min(depth, QUERN_MAX_RELATION_LEVEL), kept by the users of relations with levels;
 *                         0 for slots without target, and without levels
 *
 * Only quern__links_reserve can fail; the verbs need the pages of the slots that they name. */

#include "core/base/array.h"
#include "core/storage/entity.h"

enum { QUERN__LINK_PAGE_LOG2 = 12, QUERN__LINK_PAGE_SLOTS = 1 << QUERN__LINK_PAGE_LOG2 };

typedef struct quern__kin {
    uint32_t target;         /* QUERN__SLOT_NONE, as the next three: none */
    uint32_t first;          /* child */
    uint32_t next, previous; /* siblings */
    uint32_t count;          /* of children */
    uint32_t level;
} quern__kin;

typedef struct quern__links {
    QUERN__ARRAY(quern__kin *) pages; /* NULL: no slot of the page has links */
    uint32_t held_count;              /* pages that exist */
    uint64_t version;                 /* changes whenever a slot gets a target */
} quern__links;

void quern__links_release(quern__links *links, const quern_allocator *allocator);

/* The part of quern__links_reserve that needs a page. */
bool quern__links_add_page(quern__links *links, const quern_allocator *allocator, uint32_t slot);

static inline bool quern__links_has_page(const quern__links *links, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__LINK_PAGE_LOG2;
    return page < links->pages.count && links->pages.items[page] != NULL;
}

/* The slot gets a page, if it has none. False when there is no memory. */
static inline bool quern__links_reserve(quern__links *links, const quern_allocator *allocator,
                                        uint32_t slot)
{
    return QUERN__LIKELY(quern__links_has_page(links, slot)) ||
           quern__links_add_page(links, allocator, slot);
}

/* The links of a slot that has a page. */
static inline quern__kin *quern__links_at(const quern__links *links, uint32_t slot)
{
    return &links->pages.items[slot >> QUERN__LINK_PAGE_LOG2][slot & (QUERN__LINK_PAGE_SLOTS - 1)];
}

/* The links of any slot, to read; NULL: it has none. */
static inline const quern__kin *quern__links_find(const quern__links *links, uint32_t slot)
{
    return quern__links_has_page(links, slot) ? quern__links_at(links, slot) : NULL;
}

static inline uint32_t quern__links_target(const quern__links *links, uint32_t slot)
{
    const quern__kin *link = quern__links_find(links, slot);
    return link != NULL ? link->target : QUERN__SLOT_NONE;
}

static inline uint32_t quern__links_first(const quern__links *links, uint32_t slot)
{
    const quern__kin *link = quern__links_find(links, slot);
    return link != NULL ? link->first : QUERN__SLOT_NONE;
}

static inline uint32_t quern__links_level(const quern__links *links, uint32_t slot)
{
    const quern__kin *link = quern__links_find(links, slot);
    return link != NULL ? link->level : 0;
}

/* The source, which has no target, becomes a child of the target: before one of its children, or the last
 * where that is QUERN__SLOT_NONE. Its level stays. */
void quern__links_link(quern__links *links, uint32_t source, uint32_t target, uint32_t before);

/* Links a whole tree: kin[i] are the links of the i-th of these entities, in which numbers stand for slots
 * and levels are counted from the first, the root. They have no links yet, but the root may have a target.
 * */
void quern__links_put_tree(quern__links *links, const quern__kin *kin, uint32_t count,
                           const quern_entity *entities);

/* The source leaves its target. Its level stays. */
void quern__links_unlink(const quern__links *links, uint32_t source);

/* The source takes another place among its siblings; before is one of them, or QUERN__SLOT_NONE. */
void quern__links_place(quern__links *links, uint32_t source, uint32_t before);

/* Whether `below` is the slot itself, or one of its targets is, or one of theirs. In links without
 * cycles. */
bool quern__links_is_above(const quern__links *links, uint32_t slot, uint32_t below);

/* Gives back pages without links. */
void quern__links_trim(quern__links *links, const quern_allocator *allocator);

uint64_t quern__links_held_bytes(const quern__links *links);

#endif
