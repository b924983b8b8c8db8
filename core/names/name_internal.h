/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_NAMES_NAME_INTERNAL_H
#define QUERN_CORE_NAMES_NAME_INTERNAL_H

/* The table of entity names. It contains slots and the slots of parents only. Its users know which entities are alive
 * and what their parents are, and report every change.
 *
 * A name never moves in memory, so its text may be returned to users. A name is found by slot, through pages that are
 * allocated when one of their slots is named, and by parent and text, through a hash table.
 *
 * Names are numbered by their position in the blocks. Invariants:
 *
 *   The number in the page of a slot is n if and only if name n belongs to the slot. Name n is then in the bucket of
 *   its hash.
 *   No two names in use have the same parent and the same text.
 *   Each name of a block is either in a bucket or in the free list.
 *
 * Only the reserve functions can fail. After a reservation for a slot, putting a name for it cannot fail, even if the
 * slot's name is dropped and put several times in between. */

#include "core/base/containers.h"
#include "core/storage/entity.h"

#include <quern/name.h>

enum {
    QUERN__NAME_PAGE_LOG2 = 12,
    QUERN__NAME_PAGE_SLOTS = 1 << QUERN__NAME_PAGE_LOG2,
    QUERN__NAME_BLOCK_LOG2 = 6,
    QUERN__NAME_BLOCK_NAMES = 1 << QUERN__NAME_BLOCK_LOG2
};

#define QUERN__NAME_NONE UINT32_MAX

typedef struct quern__name {
    uint32_t slot;   /* slot of the named entity; QUERN__SLOT_NONE: the name is free */
    uint32_t parent; /* slot of the entity's parent; QUERN__SLOT_NONE: the entity is a root */
    uint32_t hash;   /* hash of parent and text */
    uint32_t next;   /* number of the next name in the bucket, or of the next free name */
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
} quern__name;

typedef struct quern__names {
    QUERN__ARRAY(uint32_t *) pages;     /* numbers of names by slot; NULL: no slot of the page has a name */
    QUERN__ARRAY(quern__name *) blocks; /* names by number; NULL: released */
    uint32_t *buckets;                  /* number of the first name of each bucket */
    uint32_t bucket_count;              /* 0 or a power of two; at least count */
    uint32_t count;                     /* names in use */
    uint32_t first_free;                /* number of a free name; valid while free_count > 0 */
    uint32_t free_count;
    uint32_t held_page_count, held_block_count;
    uint64_t version; /* incremented with every change of a name */
} quern__names;

void quern__names_release(quern__names *names, const quern_allocator *allocator);

/* Reserves room for a name of the slot. Returns false, with all names unchanged, if out of memory. */
bool quern__names_reserve(quern__names *names, const quern_allocator *allocator, uint32_t slot);

/* Reserve room for names of several slots: the first function is called once with the number of names, the second for
 * each slot. Both return false if out of memory. */
bool quern__names_reserve_count(quern__names *names, const quern_allocator *allocator, uint32_t count);
bool quern__names_reserve_page(quern__names *names, const quern_allocator *allocator, uint32_t slot);

/* Returns the slot of the child of `parent` with this name, or QUERN__SLOT_NONE. parent: QUERN__SLOT_NONE to search the
 * roots. The text need not be zero-terminated. */
uint32_t quern__names_find(const quern__names *names, uint32_t parent, const char *text,
                           uint32_t text_bytes);

/* Names a slot. Preconditions: the slot has no name, no sibling has this one, and room was reserved. */
void quern__names_put(quern__names *names, uint32_t slot, uint32_t parent, const char *text,
                      uint32_t text_bytes);

/* Removes the name of the slot, if it has one. */
void quern__names_drop(quern__names *names, uint32_t slot);

/* Moves the name of the slot, if it has one, to another parent. Precondition: no child of that parent has the name. */
void quern__names_move(quern__names *names, uint32_t slot, uint32_t parent);

/* Releases pages and blocks without names, and spare buckets. */
void quern__names_trim(quern__names *names, const quern_allocator *allocator);

/* Returns the bytes of all pages, blocks and buckets, without the lists of pages and blocks. */
uint64_t quern__names_held_bytes(const quern__names *names);

/* Returns a name by its number. Precondition: its block exists. */
static inline quern__name *quern__names_at(const quern__names *names, uint32_t number)
{
    return &names->blocks.items[number >> QUERN__NAME_BLOCK_LOG2][number & (QUERN__NAME_BLOCK_NAMES - 1)];
}

/* Returns the number of the slot's name, or QUERN__NAME_NONE. */
static inline uint32_t quern__names_number(const quern__names *names, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__NAME_PAGE_LOG2;
    if (page >= names->pages.count || names->pages.items[page] == NULL) return QUERN__NAME_NONE;
    return names->pages.items[page][slot & (QUERN__NAME_PAGE_SLOTS - 1)];
}

/* Returns the slot's name, or NULL. */
static inline const quern__name *quern__names_of(const quern__names *names, uint32_t slot)
{
    const uint32_t number = quern__names_number(names, slot);
    return number != QUERN__NAME_NONE ? quern__names_at(names, number) : NULL;
}

#endif
