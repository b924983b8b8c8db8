/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_LINKS_H
#define QUERN_CORE_RELATIONS_LINKS_H

/* The links of one relation: who is whose child, and in which order. They know slots and nothing else:
 * whether an entity lives, and in which archetype its row is, is the matter of their users (relate.h).
 *
 * Links lie by slot, in pages that exist where they were ever needed; a slot without a page has no links.
 *
 *   target = t            exactly when the slot stands once in the list of t: first, next, next, ... none
 *   count                 how many stand in that list
 *   last                  the last of them, and next->previous is the slot itself: the list is the
 *                         same from behind
 *   level                 min(depth, QUERN_MAX_RELATION_LEVEL), kept by the users of relations with
 *                         levels; 0 for slots without target, and without levels
 *
 * Only quern__links_reserve can fail; the verbs need the pages of the slots that they name. */

#include "core/relations/link_pages.h"
#include "core/storage/entity.h"

#include <quern/relation.h>

#include <stddef.h>

enum { QUERN__LINK_PAGE_LOG2 = 12, QUERN__LINK_PAGE_SLOTS = 1 << QUERN__LINK_PAGE_LOG2 };

/* Half a cache line, so that none lies in two. */
typedef struct quern__kin {
    _Alignas(32) uint32_t target; /* QUERN__SLOT_NONE, as the next four: none */
    uint32_t first, last;         /* children */
    uint32_t next, previous;      /* siblings */
    uint32_t count;               /* of children */
    uint32_t level;
} quern__kin;

_Static_assert(QUERN__LINK_PAGE_SLOTS * sizeof(quern__kin) == QUERN__LINK_PAGE_BYTES, "a page is full");

/* A slot without links. */
static const quern__kin quern__no_kin = {.target = QUERN__SLOT_NONE,
                                         .first = QUERN__SLOT_NONE,
                                         .last = QUERN__SLOT_NONE,
                                         .next = QUERN__SLOT_NONE,
                                         .previous = QUERN__SLOT_NONE};

typedef struct quern__links {
    QUERN__ARRAY(quern__kin *) pages; /* NULL: no slot of the page has links */
    quern__link_pages *memory;        /* where pages come from: of all relations of the world */
    uint32_t held_count;              /* pages that exist */
    uint64_t version;                 /* changes whenever a slot gets a target */
    /* By page, a bit for each group of slots: some have other links than when somebody looked. Without
     * items: nobody asks. Otherwise there is room for all pages. */
    QUERN__ARRAY(uint64_t) touched;
} quern__links;

enum { QUERN__LINK_GROUP_LOG2 = 6, QUERN__LINK_GROUP = 1 << QUERN__LINK_GROUP_LOG2 };

_Static_assert(QUERN__LINK_PAGE_SLOTS / QUERN__LINK_GROUP == 64, "a page's groups are a word");

/* Begins to mark, with all slots touched. False when there is no memory. */
bool quern__links_start_touching(quern__links *links, const quern_allocator *allocator);
void quern__links_stop_touching(quern__links *links, const quern_allocator *allocator);

/* For who changes the links of a slot. */
static inline void quern__links_touch(const quern__links *links, uint32_t slot)
{
    if (QUERN__UNLIKELY(links->touched.items != NULL) && slot != QUERN__SLOT_NONE)
        links->touched.items[slot >> QUERN__LINK_PAGE_LOG2] |= UINT64_C(1)
                                                               << (slot >> QUERN__LINK_GROUP_LOG2) % 64;
}

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

static inline void quern__links_set_level(const quern__links *links, uint32_t slot, uint32_t level)
{
    quern__links_at(links, slot)->level = level;
    quern__links_touch(links, slot);
}

/* The slot has no links any more; nobody's lead to it. */
static inline void quern__links_clear(const quern__links *links, uint32_t slot)
{
    *quern__links_at(links, slot) = quern__no_kin;
    quern__links_touch(links, slot);
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

/* What leads to a slot in the list of a target's children, from one of its sides: a member of the sibling
 * there, or, where there is none, of the target. The members' offsets are constants. Arithmetic instead of a
 * branch, which the processor could not foresee: it would wait for links that come from memory, and begin
 * nothing else meanwhile. Compilers make a branch of a conditional expression here. */
QUERN__ALWAYS_INLINE uint32_t *quern__links_side(const quern__links *links, uint32_t target,
                                                 uint32_t sibling, size_t sibling_offset,
                                                 size_t target_offset)
{
    const size_t is_end = 0 - (size_t)(sibling == QUERN__SLOT_NONE); /* all ones, or zero */
    const uint32_t slot = sibling ^ ((sibling ^ target) & (uint32_t)is_end);
    const size_t offset = sibling_offset ^ ((sibling_offset ^ target_offset) & is_end);
    return (uint32_t *)(void *)((char *)quern__links_at(links, slot) + offset);
}

static inline void quern__links_set_sides(const quern__links *links, uint32_t target, uint32_t previous,
                                          uint32_t next, uint32_t to_next, uint32_t to_previous)
{
    *quern__links_side(links, target, previous, offsetof(quern__kin, next), offsetof(quern__kin, first)) =
        to_next;
    *quern__links_side(links, target, next, offsetof(quern__kin, previous), offsetof(quern__kin, last)) =
        to_previous;
    if (QUERN__LIKELY(links->touched.items == NULL)) return;
    quern__links_touch(links, target);
    quern__links_touch(links, previous);
    quern__links_touch(links, next);
}

/* The source, which has no target, becomes a child of the target: before one of its children, or the last
 * where that is QUERN__SLOT_NONE. Its level stays. */
static inline void quern__links_link(quern__links *links, uint32_t source, uint32_t target, uint32_t before)
{
    quern__kin *child = quern__links_at(links, source), *parent = quern__links_at(links, target);
    const uint32_t previous = *quern__links_side(links, target, before, offsetof(quern__kin, previous),
                                                 offsetof(quern__kin, last));
    assert(child->target == QUERN__SLOT_NONE);
    links->version++;
    child->target = target;
    child->next = before;
    child->previous = previous;
    parent->count++;
    quern__links_touch(links, source);
    quern__links_set_sides(links, target, previous, before, source, source);
}

/* The same for a source without links that becomes the last, on its level. */
static inline void quern__links_append(quern__links *links, uint32_t source, uint32_t target,
                                       uint32_t level)
{
    quern__kin *parent = quern__links_at(links, target);
    const uint32_t previous = parent->last;
    links->version++;
    *quern__links_at(links, source) = (quern__kin){.target = target,
                                                   .first = QUERN__SLOT_NONE,
                                                   .last = QUERN__SLOT_NONE,
                                                   .next = QUERN__SLOT_NONE,
                                                   .previous = previous,
                                                   .level = level};
    parent->count++;
    parent->last = source;
    *quern__links_side(links, target, previous, offsetof(quern__kin, next), offsetof(quern__kin, first)) =
        source;
    if (QUERN__LIKELY(links->touched.items == NULL)) return;
    quern__links_touch(links, source);
    quern__links_touch(links, target);
    quern__links_touch(links, previous);
}

/* Where a new child goes, for quern__links_link: to the end, or in links without order to the front. */
static inline uint32_t quern__links_new_place(const quern__links *links, uint32_t target, bool is_ordered)
{
    return is_ordered ? QUERN__SLOT_NONE : quern__links_at(links, target)->first;
}

/* What the first slot is added to when whole trees are linked: all ones for a number in kin, else zero. */
static inline quern__kin quern__kin_bases(const quern__kin *kin)
{
    return (quern__kin){.target = kin->target != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                        .first = kin->first != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                        .last = kin->last != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                        .next = kin->next != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                        .previous = kin->previous != QUERN__SLOT_NONE ? UINT32_MAX : 0};
}

/* Links trees that are alike: kin[i] are the links of the i-th entity of each, in which numbers stand for
 * slots, and bases[i] is quern__kin_bases of that. They have no links yet. Slots one after the other, as
 * new ones are, take least. */
void quern__links_put_trees(quern__links *links, const quern__kin *kin, const quern__kin *bases,
                            uint32_t kin_count, const quern_entity *entities, uint32_t tree_count);

/* The source leaves its target. Its level stays. */
static inline void quern__links_unlink(const quern__links *links, uint32_t source)
{
    quern__kin *child = quern__links_at(links, source);
    quern__links_at(links, child->target)->count--;
    quern__links_set_sides(links, child->target, child->previous, child->next, child->next,
                           child->previous);
    quern__links_touch(links, source);
    child->target = child->next = child->previous = QUERN__SLOT_NONE;
}

/* The source takes another place among its siblings; before is one of them, or QUERN__SLOT_NONE. */
void quern__links_place(quern__links *links, uint32_t source, uint32_t before);

/* Whether `below` is the slot itself, or one of its targets is, or one of theirs. In links of a relation
 * with levels: where they are not higher than the slot's, nobody is above it who is below the slot. */
bool quern__links_is_above(const quern__links *links, uint32_t slot, uint32_t below);

/* Gives back pages without links. */
void quern__links_trim(quern__links *links, const quern_allocator *allocator);

#endif
