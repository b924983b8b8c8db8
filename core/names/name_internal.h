/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_NAMES_NAME_INTERNAL_H
#define QUERN_CORE_NAMES_NAME_INTERNAL_H

/* The names of entities: a table beside the records. It knows slots and parents' slots, and nothing else:
 * who is whose parent, and who lives, is the matter of its users, who tell it of every change.
 *
 * A name lies in a block and never moves, so that the text may be lent. Two ways lead to it: by slot,
 * through pages that exist where somebody was ever named, and by parent and text, through buckets of a
 * hash table.
 *
 *   numbers[slot] = n      exactly when name n is of that slot; it then stands in the bucket of its hash
 *   parent, text           no two names agree in both
 *   names in buckets + free names = names of all blocks
 *
 * Only quern__names_reserve can fail. After it has been called for a slot, a put for the slot cannot, even
 * if the slot's name is dropped and put several times in between. */

#include "core/base/array.h"
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
    uint32_t slot;   /* whose name it is; QUERN__SLOT_NONE: it is free */
    uint32_t parent; /* the slot of the entity's parent; QUERN__SLOT_NONE: it is a root */
    uint32_t hash;   /* of parent and text */
    uint32_t next;   /* number of the next one in the bucket, or of the next free one */
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
} quern__name;

typedef struct quern__names {
    QUERN__ARRAY(uint32_t *) pages;     /* numbers by slot; NULL: no slot of the page has a name */
    QUERN__ARRAY(quern__name *) blocks; /* names by number; NULL: given back */
    uint32_t *buckets;                  /* numbers of first names */
    uint32_t bucket_count;              /* 0 or a power of two; at least count */
    uint32_t count;                     /* entities that have a name */
    uint32_t first_free;                /* number, good while free_count > 0 */
    uint32_t free_count;
    uint32_t held_page_count, held_block_count;
    uint64_t version; /* changes whenever a name does */
} quern__names;

void quern__names_release(quern__names *names, const quern_allocator *allocator);

/* Room for a name of the slot. False when there is no memory: nothing has changed that counts. */
bool quern__names_reserve(quern__names *names, const quern_allocator *allocator, uint32_t slot);

/* The same for names of several slots: their number, and a call for each. */
bool quern__names_reserve_count(quern__names *names, const quern_allocator *allocator, uint32_t count);
bool quern__names_reserve_page(quern__names *names, const quern_allocator *allocator, uint32_t slot);

/* The slot of the child of that parent, or root, with this name, or QUERN__SLOT_NONE. The text need not end
 * with a zero. */
uint32_t quern__names_find(const quern__names *names, uint32_t parent, const char *text,
                           uint32_t text_bytes);

/* The slot, which has none, gets a name that no sibling has; there is room. */
void quern__names_put(quern__names *names, uint32_t slot, uint32_t parent, const char *text,
                      uint32_t text_bytes);

/* The slot has no name any more, if it had one. */
void quern__names_drop(quern__names *names, uint32_t slot);

/* The slot, if it has a name, stands under another parent from now on, where no sibling has it. */
void quern__names_move(quern__names *names, uint32_t slot, uint32_t parent);

/* Gives back what holds no names. */
void quern__names_trim(quern__names *names, const quern_allocator *allocator);

uint64_t quern__names_held_bytes(const quern__names *names);

/* A name by number, of a block that exists. */
static inline quern__name *quern__names_at(const quern__names *names, uint32_t number)
{
    return &names->blocks.items[number >> QUERN__NAME_BLOCK_LOG2][number & (QUERN__NAME_BLOCK_NAMES - 1)];
}

/* The number of the slot's name, or QUERN__NAME_NONE. */
static inline uint32_t quern__names_number(const quern__names *names, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__NAME_PAGE_LOG2;
    if (page >= names->pages.count || names->pages.items[page] == NULL) return QUERN__NAME_NONE;
    return names->pages.items[page][slot & (QUERN__NAME_PAGE_SLOTS - 1)];
}

/* The slot's name, or NULL. */
static inline const quern__name *quern__names_of(const quern__names *names, uint32_t slot)
{
    const uint32_t number = quern__names_number(names, slot);
    return number != QUERN__NAME_NONE ? quern__names_at(names, number) : NULL;
}

#endif
