/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_LINKS_H
#define QUERN_CORE_RELATIONS_LINKS_H

/* Memory for the pages of links of all relations of a world. Pages of 128 KiB are cut from blocks of
 * 2 MiB. Blocks are advised to be huge pages; the first block only once a quarter of it is in use, to save memory
 * in small worlds. A block is released as soon as all of its pages are free. */

#include "core/base/containers.h"
#include "core/storage/entity.h"

#include <quern/relation.h>

#include <stddef.h>

enum {
    QUERN__LINK_PAGE_BYTES = 128 * 1024,
    QUERN__LINK_BLOCK_BYTES = 2 * 1024 * 1024,
    QUERN__LINK_BLOCK_PAGES = QUERN__LINK_BLOCK_BYTES / QUERN__LINK_PAGE_BYTES
};

typedef struct quern__link_block {
    char *memory;       /* NULL: the entry is unused */
    uint32_t free_mask; /* one bit per page */
    bool is_huge;       /* advised to be a huge page */
} quern__link_block;

typedef struct quern__link_pages {
    QUERN__ARRAY(quern__link_block) blocks;
    uint32_t block_count; /* entries in use */
} quern__link_pages;

/* Releases the list of blocks. Precondition: all pages have been given back. */
void quern__link_pages_release(quern__link_pages *pages, const quern_allocator *allocator);

/* Returns uninitialised memory for a page, or NULL if out of memory. */
void *quern__link_pages_take(quern__link_pages *pages, const quern_allocator *allocator);

/* Gives a page back. Releases its block if no other page of it is in use. */
void quern__link_pages_give(quern__link_pages *pages, const quern_allocator *allocator, void *page);

static inline uint64_t quern__link_pages_held_bytes(const quern__link_pages *pages)
{
    return (uint64_t)pages->block_count * QUERN__LINK_BLOCK_BYTES;
}

/* The links of one relation: the target of each source and the ordered list of sources of each target. The sources of
 * one target are siblings. Links refer to slots only. Their users (relation_internal.h) handle liveness of entities and the
 * archetypes of their rows.
 *
 * Links are indexed by slot, in pages that are allocated on first use. A slot without a page has no links.
 *
 *   target = t            if and only if the slot is once in the source list of t: first, next, next, ... none
 *   count                 number of sources in the slot's own list
 *   last                  last source in the list. The list is doubly linked: the previous sibling of a slot's
 *                         next sibling is the slot itself
 *   level                 min(depth, QUERN_MAX_RELATION_LEVEL), set by the users of relations with levels;
 *                         0 for slots without a target, and in relations without levels
 *
 * Only quern__links_reserve can fail. The functions that change links require pages for all slots they are given. */

enum { QUERN__LINK_PAGE_LOG2 = 12, QUERN__LINK_PAGE_SLOTS = 1 << QUERN__LINK_PAGE_LOG2 };

/* The links of one slot. Half a cache line in size and aligned to it, so that no node spans two cache lines. */
typedef struct quern__link_node {
    _Alignas(32) uint32_t target; /* slot; QUERN__SLOT_NONE in this and the next four members: none */
    uint32_t first, last;         /* first and last source of this slot */
    uint32_t next, previous;      /* siblings */
    uint32_t count;               /* number of sources of this slot */
    uint32_t level;
} quern__link_node;

_Static_assert(QUERN__LINK_PAGE_SLOTS * sizeof(quern__link_node) == QUERN__LINK_PAGE_BYTES,
               "a page is full");

/* The links of a slot that has none. */
static const quern__link_node quern__empty_link_node = {.target = QUERN__SLOT_NONE,
                                                        .first = QUERN__SLOT_NONE,
                                                        .last = QUERN__SLOT_NONE,
                                                        .next = QUERN__SLOT_NONE,
                                                        .previous = QUERN__SLOT_NONE};

typedef struct quern__links {
    QUERN__ARRAY(quern__link_node *) pages; /* NULL: no slot of the page has links */
    quern__link_pages *memory;              /* page allocator, shared by all relations of the world */
    uint32_t held_count;                    /* pages that exist */
    uint64_t version;                       /* incremented whenever slots are given a target */
    /* One word per page, one bit per group of slots. While marking is on, there is a word for every page. */
    quern__marks touched;
} quern__links;

enum { QUERN__LINK_GROUP_LOG2 = 6, QUERN__LINK_GROUP = 1 << QUERN__LINK_GROUP_LOG2 };

_Static_assert(QUERN__LINK_PAGE_SLOTS / QUERN__LINK_GROUP == 64, "a page's groups are a word");

/* Marks the group of the slot as touched, if marking is on. Code that changes the links of a slot calls it. */
static inline void quern__links_touch(const quern__links *links, uint32_t slot)
{
    if (QUERN__UNLIKELY(links->touched.items != NULL) && slot != QUERN__SLOT_NONE)
        links->touched.items[slot >> QUERN__LINK_PAGE_LOG2] |= UINT64_C(1)
                                                               << (slot >> QUERN__LINK_GROUP_LOG2) % 64;
}

void quern__links_release(quern__links *links, const quern_allocator *allocator);

/* Adds the page of the slot: the slow path of quern__links_reserve. Returns false if out of memory. */
bool quern__links_add_page(quern__links *links, const quern_allocator *allocator, uint32_t slot);

static inline bool quern__links_has_page(const quern__links *links, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__LINK_PAGE_LOG2;
    return page < links->pages.count && links->pages.items[page] != NULL;
}

/* Adds a page for the slot unless there is one. Returns false if out of memory. */
static inline bool quern__links_reserve(quern__links *links, const quern_allocator *allocator,
                                        uint32_t slot)
{
    return QUERN__LIKELY(quern__links_has_page(links, slot)) ||
           quern__links_add_page(links, allocator, slot);
}

/* Returns the links of a slot. Precondition: the slot has a page. */
static inline quern__link_node *quern__links_at(const quern__links *links, uint32_t slot)
{
    return &links->pages.items[slot >> QUERN__LINK_PAGE_LOG2][slot & (QUERN__LINK_PAGE_SLOTS - 1)];
}

static inline void quern__links_set_level(const quern__links *links, uint32_t slot, uint32_t level)
{
    quern__links_at(links, slot)->level = level;
    quern__links_touch(links, slot);
}

/* Clears the links of the slot. The caller ensures that no remaining link refers to it. */
static inline void quern__links_clear(const quern__links *links, uint32_t slot)
{
    *quern__links_at(links, slot) = quern__empty_link_node;
    quern__links_touch(links, slot);
}

/* Returns the links of any slot for reading, or NULL if the slot has no page. */
static inline const quern__link_node *quern__links_find(const quern__links *links, uint32_t slot)
{
    return quern__links_has_page(links, slot) ? quern__links_at(links, slot) : NULL;
}

static inline uint32_t quern__links_target(const quern__links *links, uint32_t slot)
{
    const quern__link_node *link = quern__links_find(links, slot);
    return link != NULL ? link->target : QUERN__SLOT_NONE;
}

static inline uint32_t quern__links_first(const quern__links *links, uint32_t slot)
{
    const quern__link_node *link = quern__links_find(links, slot);
    return link != NULL ? link->first : QUERN__SLOT_NONE;
}

static inline uint32_t quern__links_level(const quern__links *links, uint32_t slot)
{
    const quern__link_node *link = quern__links_find(links, slot);
    return link != NULL ? link->level : 0;
}

/* Prefetch distances in lists of pairs that are to be linked, in pairs. The addresses of the links around a pair are
 * read from the links of the pair. */
enum { QUERN__LINKS_AHEAD = 24, QUERN__LINKS_AROUND_AHEAD = 12 };

/* Prefetches the links of a pair that is to be linked. Precondition: both slots have pages. */
static inline void quern__links_fetch_pair(const quern__links *links, uint32_t source, uint32_t target)
{
    QUERN__PREFETCH_WRITE(quern__links_at(links, source));
    QUERN__PREFETCH_WRITE(quern__links_at(links, target));
}

/* Prefetches the links of a slot, or those of `instead` if the slot is QUERN__SLOT_NONE. Choosing an address needs no
 * branch; skipping the prefetch would need one, which the processor could not predict. */
static inline void quern__links_fetch_or(const quern__links *links, uint32_t slot, uint32_t instead)
{
    QUERN__PREFETCH_WRITE(quern__links_at(links, slot != QUERN__SLOT_NONE ? slot : instead));
}

/* Prefetches the other links that linking a pair changes: those of the old target, of both old siblings, and of the new
 * sibling; and the first source of the source, whose level changes. Precondition: both slots have pages. */
static inline void quern__links_fetch_around(const quern__links *links, bool is_ordered, uint32_t source,
                                             uint32_t target)
{
    const quern__link_node *source_node = quern__links_at(links, source),
                           *target_node = quern__links_at(links, target);
    quern__links_fetch_or(links, source_node->target, source);
    quern__links_fetch_or(links, source_node->next, source);
    quern__links_fetch_or(links, source_node->previous, source);
    quern__links_fetch_or(links, source_node->first, source);
    quern__links_fetch_or(links, is_ordered ? target_node->last : target_node->first, target);
}

/* Returns the address of the member that refers to a slot from one side in the source list of its target: a member
 * of the sibling on that side, or of the target if `sibling` is QUERN__SLOT_NONE. The offsets are those of the two
 * members in quern__link_node; callers pass constants. Arithmetic replaces a branch that the processor could not
 * predict: a misprediction would be found only after the links are loaded from memory, and no other work would
 * start meanwhile. Compilers turn a conditional expression into a branch here. */
QUERN__ALWAYS_INLINE uint32_t *quern__links_side(const quern__links *links, uint32_t target,
                                                 uint32_t sibling, size_t sibling_offset,
                                                 size_t target_offset)
{
    const size_t is_end = 0 - (size_t)(sibling == QUERN__SLOT_NONE); /* all ones, or zero */
    const uint32_t slot = sibling ^ ((sibling ^ target) & (uint32_t)is_end);
    const size_t offset = sibling_offset ^ ((sibling_offset ^ target_offset) & is_end);
    return (uint32_t *)(void *)((char *)quern__links_at(links, slot) + offset);
}

/* Sets previous->next to `to_next` and next->previous to `to_previous` in the source list of the target. If
 * `previous` is QUERN__SLOT_NONE, sets the target's `first` instead; if `next` is, the target's `last`. */
static inline void quern__links_set_sides(const quern__links *links, uint32_t target, uint32_t previous,
                                          uint32_t next, uint32_t to_next, uint32_t to_previous)
{
    *quern__links_side(links, target, previous, offsetof(quern__link_node, next),
                       offsetof(quern__link_node, first)) = to_next;
    *quern__links_side(links, target, next, offsetof(quern__link_node, previous),
                       offsetof(quern__link_node, last)) = to_previous;
    if (QUERN__LIKELY(links->touched.items == NULL)) return;
    quern__links_touch(links, target);
    quern__links_touch(links, previous);
    quern__links_touch(links, next);
}

/* Inserts the source into the list of the target: before the source `before`, or at the end if `before` is
 * QUERN__SLOT_NONE. The source's level does not change. Precondition: the source has no target. */
static inline void quern__links_link(quern__links *links, uint32_t source, uint32_t target, uint32_t before)
{
    quern__link_node *source_node = quern__links_at(links, source),
                     *target_node = quern__links_at(links, target);
    const uint32_t previous = *quern__links_side(
        links, target, before, offsetof(quern__link_node, previous), offsetof(quern__link_node, last));
    assert(source_node->target == QUERN__SLOT_NONE);
    links->version++;
    source_node->target = target;
    source_node->next = before;
    source_node->previous = previous;
    target_node->count++;
    quern__links_touch(links, source);
    quern__links_set_sides(links, target, previous, before, source, source);
}

/* Inserts the source into the list of the target: at the end if the links are ordered, otherwise at the front. Does what
 * quern__links_link does for these places, where one side is the target. source_node and target_node: the links of both.
 * The source's level does not change. Precondition: the source has no target. */
static inline void quern__links_insert(quern__links *links, bool is_ordered, quern__link_node *source_node,
                                       uint32_t source, quern__link_node *target_node, uint32_t target)
{
    const uint32_t sibling = is_ordered ? target_node->last : target_node->first;
    assert(source_node->target == QUERN__SLOT_NONE);
    links->version++;
    source_node->target = target;
    target_node->count++;
    if (is_ordered) {
        source_node->previous = sibling;
        target_node->last = source;
        *quern__links_side(links, target, sibling, offsetof(quern__link_node, next),
                           offsetof(quern__link_node, first)) = source;
    } else {
        source_node->next = sibling;
        target_node->first = source;
        *quern__links_side(links, target, sibling, offsetof(quern__link_node, previous),
                           offsetof(quern__link_node, last)) = source;
    }
    if (QUERN__LIKELY(links->touched.items == NULL)) return;
    quern__links_touch(links, source);
    quern__links_touch(links, target);
    quern__links_touch(links, sibling);
}

/* Links the entities of `tree_count` trees of identical shape. node[i] holds the links of the i-th entity of every
 * tree, with numbers of entities within the tree instead of slots; bases[i] is link_node_bases of node[i].
 * `entities` lists the entities tree by tree. Precondition: they have no links, and their slots have pages.
 * Consecutive slots, as new entities usually have, are the fastest case. */
void quern__links_put_trees(quern__links *links, const quern__link_node *node,
                            const quern__link_node *bases, uint32_t node_count,
                            const quern_entity *entities, uint32_t tree_count);

/* Removes the source from the list of its target. The source's level does not change. Precondition: the source has
 * a target. */
static inline void quern__links_unlink(const quern__links *links, uint32_t source)
{
    quern__link_node *source_node = quern__links_at(links, source);
    assert(source_node->target != QUERN__SLOT_NONE);
    quern__links_at(links, source_node->target)->count--;
    quern__links_set_sides(links, source_node->target, source_node->previous, source_node->next,
                           source_node->next, source_node->previous);
    quern__links_touch(links, source);
    source_node->target = source_node->next = source_node->previous = QUERN__SLOT_NONE;
}

/* Moves the source before its sibling `before`, or to the end if `before` is QUERN__SLOT_NONE. No effect if `before` is
 * the source. */
void quern__links_move_before(quern__links *links, uint32_t source, uint32_t before);

/* Returns the slot after `slot` in a preorder walk of the tree below `root`, or QUERN__SLOT_NONE at the end. */
uint32_t quern__links_next_below(const quern__links *links, uint32_t root, uint32_t slot);

/* Returns whether `below` is the slot itself or one of its direct or indirect sources. Precondition: the relation
 * has levels. Walks up the targets of `below`, and stops at a slot with a level not greater than that of `slot`,
 * because no such slot is below it. The maximal level does not stop the walk: it covers several depths. */
bool quern__links_is_at_or_above(const quern__links *links, uint32_t slot, uint32_t below);

/* Gives back all pages without links. */
void quern__links_trim(quern__links *links, const quern_allocator *allocator);

/* Memory for the sets of edges of all relations of a world: blocks of 4 to QUERN__EDGE_BLOCK_SLOTS slots in
 * classes of size, each class half as large again or a third larger than the previous one. A page has
 * blocks of one class. Taking and giving back a block are O(1). A page without blocks in use is given back, unless it
 * is the only page of its class with free blocks; quern__edge_pool_trim gives that one back, too. */

enum { QUERN__EDGE_BLOCK_SLOTS = 1024, QUERN__EDGE_CLASSES = 17 };

typedef struct quern__edge_page quern__edge_page;

typedef struct quern__edge_pool {
    quern__link_pages *memory;
    quern__edge_page *partial[QUERN__EDGE_CLASSES]; /* by class: list of pages with free blocks */
    uint64_t directory_bytes;                       /* memory of directories, which are no blocks */
} quern__edge_pool;

/* Returns the smallest capacity of a block, at least `count`. Precondition: count <= QUERN__EDGE_BLOCK_SLOTS. */
uint32_t quern__edge_pool_capacity(uint32_t count);

/* Gives back all pages without blocks in use. */
void quern__edge_pool_trim(quern__edge_pool *pool, const quern_allocator *allocator);

/* The edges of a relation with several targets per source (quern_relation_def.many). Edges refer to slots only, like
 * links; their users handle liveness of entities and the tag in the rows of sources.
 *
 *   t is in the targets of s      if and only if s is in the sources of t
 *   targets and sources           are sets in ascending order of slots
 *
 * Both sets of a slot are a node; nodes are indexed by slot, in pages that are allocated on first use. Since a set has
 * an order of its own, its state does not depend on the order in which edges were added: undoing a change needs no
 * positions, and hashes, histories and archives write sets as they are.
 *
 * A small set is one block of slots. A set of more than QUERN__EDGE_BLOCK_SLOTS is a directory of blocks, each for a
 * range of slots, so that adding an edge to an entity with a million edges moves at most one block. Blocks are from the
 * world's edge pool.
 *
 * Only quern__edges_reserve and the functions that build lists can fail. Removing an edge frees no memory. So a removed
 * edge can be added again without a reservation, as long as all later changes have been undone before: blocks only
 * split, and a part of a block has room for all that the block contained. quern__edges_clear and quern__edges_trim free
 * memory. */

enum { QUERN__EDGE_PAGE_LOG2 = 12, QUERN__EDGE_PAGE_SLOTS = 1 << QUERN__EDGE_PAGE_LOG2 };

/* A part of a large set: the slots from `first` up to the first slot of the next block. */
typedef struct quern__edge_block {
    uint32_t *slots; /* QUERN__EDGE_BLOCK_SLOTS of capacity */
    uint32_t count;
    uint32_t first; /* 0 for the first block */
} quern__edge_block;

typedef struct quern__edge_directory {
    QUERN__ARRAY(quern__edge_block) blocks; /* at least one; any of them may be empty */
} quern__edge_directory;

/* The capacity of a set with a directory. */
#define QUERN__EDGE_DIRECTORY UINT32_MAX

/* A set of slots. All members are zero for a set without memory. */
typedef struct quern__edge_list {
    union {
        uint32_t *slots;
        quern__edge_directory *directory;
    };
    uint32_t count;
    uint32_t capacity; /* of `slots`, or QUERN__EDGE_DIRECTORY */
} quern__edge_list;

/* The edges of one slot. */
typedef struct quern__edge_node {
    quern__edge_list targets, sources;
} quern__edge_node;

_Static_assert(QUERN__EDGE_PAGE_SLOTS * sizeof(quern__edge_node) <= QUERN__LINK_PAGE_BYTES,
               "nodes fit a page");

typedef struct quern__edges {
    QUERN__ARRAY(quern__edge_node *) pages; /* NULL: no slot of the page has edges */
    quern__edge_pool *pool;                 /* shared by all relations of the world */
    uint64_t count;                         /* number of edges */
    /* One word per page, one bit per group of slots, as in quern__links. */
    quern__marks touched;
} quern__edges;

enum { QUERN__EDGE_GROUP_LOG2 = 6, QUERN__EDGE_GROUP = 1 << QUERN__EDGE_GROUP_LOG2 };

/* The set of a slot that has no edges. */
extern const quern__edge_list quern__no_edges;

void quern__edges_release(quern__edges *edges, const quern_allocator *allocator);

static inline bool quern__edges_has_page(const quern__edges *edges, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__EDGE_PAGE_LOG2;
    return page < edges->pages.count && edges->pages.items[page] != NULL;
}

/* Returns the edges of a slot. Precondition: the slot has a page. */
static inline quern__edge_node *quern__edges_at(const quern__edges *edges, uint32_t slot)
{
    return &edges->pages.items[slot >> QUERN__EDGE_PAGE_LOG2][slot & (QUERN__EDGE_PAGE_SLOTS - 1)];
}

/* Return the sets of any slot for reading. */
static inline const quern__edge_list *quern__edges_targets(const quern__edges *edges, uint32_t slot)
{
    return quern__edges_has_page(edges, slot) ? &quern__edges_at(edges, slot)->targets : &quern__no_edges;
}

static inline const quern__edge_list *quern__edges_sources(const quern__edges *edges, uint32_t slot)
{
    return quern__edges_has_page(edges, slot) ? &quern__edges_at(edges, slot)->sources : &quern__no_edges;
}

bool quern__edges_has(const quern__edges *edges, uint32_t source, uint32_t target);

/* Adds a page for the slot unless there is one. Returns false if out of memory. */
bool quern__edges_reserve_page(quern__edges *edges, const quern_allocator *allocator, uint32_t slot);

/* Makes room for one edge. Returns false if out of memory. The room remains until another edge is added. */
bool quern__edges_reserve(quern__edges *edges, const quern_allocator *allocator, uint32_t source,
                          uint32_t target);

/* Adds an edge. Preconditions: the edge does not exist; quern__edges_reserve has made room for it, or the edge
 * existed and every change since it was removed has been undone. */
void quern__edges_add(quern__edges *edges, uint32_t source, uint32_t target);

/* Removes an edge. Precondition: it exists. */
void quern__edges_remove(quern__edges *edges, uint32_t source, uint32_t target);

/* Removes the source from the sources of the target, and leaves the targets of the source, which the caller clears. */
void quern__edges_forget_source(quern__edges *edges, uint32_t source, uint32_t target);

/* Clears both sets of a slot and frees their memory. Precondition: no other set contains the slot, or the caller
 * clears it, too. */
void quern__edges_clear(quern__edges *edges, const quern_allocator *allocator, uint32_t slot);

/* Give a slot its targets or its sources, as a set that quern__edge_list_build made. Preconditions: the slot has a page,
 * and its set of this kind is empty, which may have memory of a dead entity; the caller gives the other ends the
 * opposite sets. */
void quern__edges_put_targets(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                              const quern__edge_list *targets);
void quern__edges_put_sources(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                              const quern__edge_list *sources);

/* Fits all sets to their contents, as far as there is memory, and gives back pages without edges. */
void quern__edges_trim(quern__edges *edges, const quern_allocator *allocator);

/* --------------------------------------------------------------------------------------------- sets */

/* Some consecutive members of a set. */
typedef struct quern__edge_range {
    const uint32_t *slots;
    uint32_t count;
} quern__edge_range;

/* Returns the number of ranges of a set. */
static inline uint32_t quern__edge_list_ranges(const quern__edge_list *list)
{
    return list->capacity != QUERN__EDGE_DIRECTORY ? 1 : list->directory->blocks.count;
}

/* Returns the i-th range, which may be empty. All ranges in order contain all members in order. */
static inline quern__edge_range quern__edge_list_range(const quern__edge_list *list, uint32_t i)
{
    if (QUERN__LIKELY(list->capacity != QUERN__EDGE_DIRECTORY))
        return (quern__edge_range){list->slots, list->count};
    const quern__edge_block *block = &list->directory->blocks.items[i];
    return (quern__edge_range){block->slots, block->count};
}

bool quern__edge_list_has(const quern__edge_list *list, uint32_t slot);

/* Returns the first member after `slot`, or QUERN__SLOT_NONE. Starts with slot = QUERN__SLOT_NONE. Members may be
 * added and removed between the calls. */
uint32_t quern__edge_list_next(const quern__edge_list *list, uint32_t slot);

/* Copies all members to `out_slots`. */
void quern__edge_list_copy(const quern__edge_list *list, uint32_t *out_slots);

/* Makes a set of `count` ascending slots. Returns false, and no set, if out of memory. */
bool quern__edge_list_build(quern__edge_pool *pool, const quern_allocator *allocator, const uint32_t *slots,
                            uint32_t count, quern__edge_list *out_list);
void quern__edge_list_release(quern__edge_pool *pool, const quern_allocator *allocator,
                              quern__edge_list *list);

#endif
