/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_EDGES_H
#define QUERN_CORE_RELATIONS_EDGES_H

/* The edges of a relation with several targets per source (quern_relation_def.many). Edges refer to slots only, like
 * links (links.h); their users handle liveness of entities and the tag in the rows of sources.
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
 * world's edge pool (edge_pool.h).
 *
 * Only quern__edges_reserve and the functions that build lists can fail. Removing an edge frees no memory. So a removed
 * edge can be added again without a reservation, as long as all later changes have been undone before: blocks only
 * split, and a part of a block has room for all that the block contained. quern__edges_clear and quern__edges_trim free
 * memory. */

#include "core/relations/edge_pool.h"
#include "core/storage/entity.h"

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
    QUERN__ARRAY(uint64_t) touched;
} quern__edges;

enum { QUERN__EDGE_GROUP_LOG2 = 6, QUERN__EDGE_GROUP = 1 << QUERN__EDGE_GROUP_LOG2 };

/* The set of a slot that has no edges. */
extern const quern__edge_list quern__no_edges;

void quern__edges_release(quern__edges *edges, const quern_allocator *allocator);

/* Starts marking changed groups; all groups begin as touched. Returns false if out of memory. */
bool quern__edges_start_touching(quern__edges *edges, const quern_allocator *allocator);
void quern__edges_stop_touching(quern__edges *edges, const quern_allocator *allocator);

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
