/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/names/name_internal.h"

#include "core/base/containers.h"

enum {
    NAME_PAGE_BYTES = QUERN__NAME_PAGE_SLOTS * sizeof(uint32_t),
    NAME_BLOCK_BYTES = QUERN__NAME_BLOCK_NAMES * sizeof(quern__name),
    NAME_ALIGNMENT_BYTES = 64,
    LEAST_BUCKETS = 16
};

void quern__names_release(quern__names *names, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < names->pages.count; i++)
        quern__release(allocator, names->pages.items[i], NAME_PAGE_BYTES, NAME_ALIGNMENT_BYTES);
    for (uint32_t i = 0; i < names->blocks.count; i++)
        quern__release(allocator, names->blocks.items[i], NAME_BLOCK_BYTES, NAME_ALIGNMENT_BYTES);
    quern__array_release(allocator, &names->pages);
    quern__array_release(allocator, &names->blocks);
    quern__release(allocator, names->buckets, names->bucket_count * sizeof *names->buckets,
                   NAME_ALIGNMENT_BYTES);
    *names = (quern__names){.version = names->version + 1};
}

/* ------------------------------------------------------------------------------------------- buckets */

static uint32_t hash_of(uint32_t parent, const char *text, uint32_t text_bytes)
{
    return (uint32_t)quern__hash_word(quern__hash_bytes(0, text, text_bytes), parent);
}

static void enter(const quern__names *names, uint32_t number)
{
    quern__name *name = quern__names_at(names, number);
    uint32_t *first = &names->buckets[name->hash & (names->bucket_count - 1)];
    name->next = *first;
    *first = number;
}

static void leave(const quern__names *names, uint32_t number)
{
    const quern__name *name = quern__names_at(names, number);
    uint32_t *place = &names->buckets[name->hash & (names->bucket_count - 1)];
    while (*place != number)
        place = &quern__names_at(names, *place)->next;
    *place = name->next;
}

/* Rehashes all names into `count` buckets. Returns false, with nothing changed, if out of memory. */
static bool set_bucket_count(quern__names *names, const quern_allocator *allocator, uint32_t count)
{
    uint32_t *buckets = quern__allocate(allocator, count * sizeof *buckets, NAME_ALIGNMENT_BYTES);
    if (buckets == NULL) return false;
    memset(buckets, 0xFF, count * sizeof *buckets); /* every bucket is QUERN__NAME_NONE */
    quern__release(allocator, names->buckets, names->bucket_count * sizeof *buckets, NAME_ALIGNMENT_BYTES);
    names->buckets = buckets;
    names->bucket_count = count;
    for (uint32_t i = 0; i < names->blocks.count; i++)
        for (uint32_t k = 0; k < QUERN__NAME_BLOCK_NAMES && names->blocks.items[i] != NULL; k++)
            if (names->blocks.items[i][k].slot != QUERN__SLOT_NONE)
                enter(names, i << QUERN__NAME_BLOCK_LOG2 | k);
    return true;
}

/* ---------------------------------------------------------------------------------------------- room */

static bool reserve_page(quern__names *names, const quern_allocator *allocator, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__NAME_PAGE_LOG2;
    if (!quern__array_reserve(allocator, &names->pages, page + 1)) return false;
    while (names->pages.count <= page)
        names->pages.items[names->pages.count++] = NULL;
    if (names->pages.items[page] != NULL) return true;
    names->pages.items[page] = quern__allocate(allocator, NAME_PAGE_BYTES, NAME_ALIGNMENT_BYTES);
    if (names->pages.items[page] == NULL) return false;
    memset(names->pages.items[page], 0xFF, NAME_PAGE_BYTES); /* every number is QUERN__NAME_NONE */
    names->held_page_count++;
    return true;
}

static bool add_block(quern__names *names, const quern_allocator *allocator)
{
    uint32_t block = names->blocks.count;
    for (uint32_t i = 0; i < names->blocks.count && names->held_block_count < names->blocks.count; i++)
        if (names->blocks.items[i] == NULL) block = i;
    if (!quern__array_reserve(allocator, &names->blocks, block + 1)) return false;
    quern__name *fresh = quern__allocate(allocator, NAME_BLOCK_BYTES, NAME_ALIGNMENT_BYTES);
    if (fresh == NULL) return false;
    if (block == names->blocks.count) names->blocks.count++;
    names->blocks.items[block] = fresh;
    names->held_block_count++;
    /* all names of the block go to the front of the free list, in ascending order */
    for (uint32_t i = QUERN__NAME_BLOCK_NAMES; i-- > 0;) {
        quern__name *name = &names->blocks.items[block][i];
        name->slot = QUERN__SLOT_NONE;
        name->next = names->first_free;
        names->first_free = block << QUERN__NAME_BLOCK_LOG2 | i;
    }
    names->free_count += QUERN__NAME_BLOCK_NAMES;
    return true;
}

bool quern__names_reserve(quern__names *names, const quern_allocator *allocator, uint32_t slot)
{
    if (!reserve_page(names, allocator, slot)) return false;
    if (names->free_count == 0 && !add_block(names, allocator)) return false;
    if (names->count < names->bucket_count) return true;
    return set_bucket_count(names, allocator,
                            names->bucket_count > 0 ? 2 * names->bucket_count : LEAST_BUCKETS);
}

bool quern__names_reserve_count(quern__names *names, const quern_allocator *allocator, uint32_t count)
{
    while (names->free_count < count)
        if (!add_block(names, allocator)) return false;
    uint32_t bucket_count = names->bucket_count > 0 ? names->bucket_count : LEAST_BUCKETS;
    while (bucket_count < (uint64_t)names->count + count)
        bucket_count *= 2;
    return bucket_count == names->bucket_count || set_bucket_count(names, allocator, bucket_count);
}

bool quern__names_reserve_page(quern__names *names, const quern_allocator *allocator, uint32_t slot)
{
    return reserve_page(names, allocator, slot);
}

/* --------------------------------------------------------------------------------------------- names */

uint32_t quern__names_find(const quern__names *names, uint32_t parent, const char *text,
                           uint32_t text_bytes)
{
    if (names->count == 0 || text_bytes > QUERN_MAX_ENTITY_NAME_BYTES) return QUERN__SLOT_NONE;
    const uint32_t hash = hash_of(parent, text, text_bytes);
    uint32_t number = names->buckets[hash & (names->bucket_count - 1)];
    while (number != QUERN__NAME_NONE) {
        const quern__name *name = quern__names_at(names, number);
        if (name->hash == hash && name->parent == parent && memcmp(name->text, text, text_bytes) == 0 &&
            name->text[text_bytes] == '\0')
            return name->slot;
        number = name->next;
    }
    return QUERN__SLOT_NONE;
}

void quern__names_put(quern__names *names, uint32_t slot, uint32_t parent, const char *text,
                      uint32_t text_bytes)
{
    assert(names->free_count > 0 && names->count < names->bucket_count &&
           quern__names_number(names, slot) == QUERN__NAME_NONE && text_bytes > 0 &&
           text_bytes <= QUERN_MAX_ENTITY_NAME_BYTES);
    const uint32_t number = names->first_free;
    quern__name *name = quern__names_at(names, number);
    names->first_free = name->next;
    names->free_count--;
    names->count++;
    names->version++;
    name->slot = slot;
    name->parent = parent;
    name->hash = hash_of(parent, text, text_bytes);
    memmove(name->text, text, text_bytes);
    name->text[text_bytes] = '\0';
    names->pages.items[slot >> QUERN__NAME_PAGE_LOG2][slot & (QUERN__NAME_PAGE_SLOTS - 1)] = number;
    enter(names, number);
}

void quern__names_drop(quern__names *names, uint32_t slot)
{
    const uint32_t number = quern__names_number(names, slot);
    if (number == QUERN__NAME_NONE) return;
    names->version++;
    leave(names, number);
    quern__name *name = quern__names_at(names, number);
    name->slot = QUERN__SLOT_NONE;
    name->next = names->first_free;
    names->first_free = number;
    names->free_count++;
    names->count--;
    names->pages.items[slot >> QUERN__NAME_PAGE_LOG2][slot & (QUERN__NAME_PAGE_SLOTS - 1)] =
        QUERN__NAME_NONE;
}

void quern__names_move(quern__names *names, uint32_t slot, uint32_t parent)
{
    const uint32_t number = quern__names_number(names, slot);
    if (number == QUERN__NAME_NONE) return;
    names->version++;
    quern__name *name = quern__names_at(names, number);
    leave(names, number);
    name->parent = parent;
    name->hash = hash_of(parent, name->text, (uint32_t)strlen(name->text));
    enter(names, number);
}

/* ---------------------------------------------------------------------------------------------- trim */

/* Releases blocks without used names, and rebuilds the free list. Its order may change, as numbers of names are
 * not visible to users. */
static void trim_blocks(quern__names *names, const quern_allocator *allocator)
{
    names->free_count = 0;
    for (uint32_t i = names->blocks.count; i-- > 0;) {
        quern__name *block = names->blocks.items[i];
        uint32_t used_count = 0;
        for (uint32_t k = QUERN__NAME_BLOCK_NAMES; block != NULL && k-- > 0;)
            used_count += block[k].slot != QUERN__SLOT_NONE;
        if (block != NULL && used_count == 0) {
            quern__release(allocator, block, NAME_BLOCK_BYTES, NAME_ALIGNMENT_BYTES);
            names->blocks.items[i] = NULL;
            names->held_block_count--;
            continue;
        }
        for (uint32_t k = QUERN__NAME_BLOCK_NAMES; block != NULL && k-- > 0;) {
            if (block[k].slot != QUERN__SLOT_NONE) continue;
            block[k].next = names->first_free;
            names->first_free = i << QUERN__NAME_BLOCK_LOG2 | k;
            names->free_count++;
        }
    }
}

void quern__names_trim(quern__names *names, const quern_allocator *allocator)
{
    if (names->count == 0) {
        quern__names_release(names, allocator);
        return;
    }
    for (uint32_t i = 0; i < names->pages.count; i++) {
        uint32_t *page = names->pages.items[i];
        uint32_t slot = 0;
        while (page != NULL && slot < QUERN__NAME_PAGE_SLOTS && page[slot] == QUERN__NAME_NONE)
            slot++;
        if (page == NULL || slot < QUERN__NAME_PAGE_SLOTS) continue;
        quern__release(allocator, page, NAME_PAGE_BYTES, NAME_ALIGNMENT_BYTES);
        names->pages.items[i] = NULL;
        names->held_page_count--;
    }
    trim_blocks(names, allocator);
    uint32_t bucket_count = LEAST_BUCKETS;
    while (bucket_count < names->count)
        bucket_count *= 2;
    /* if there is no memory for the smaller table, the larger one is kept */
    if (bucket_count < names->bucket_count) (void)set_bucket_count(names, allocator, bucket_count);
}

uint64_t quern__names_held_bytes(const quern__names *names)
{
    return (uint64_t)names->held_page_count * NAME_PAGE_BYTES +
           (uint64_t)names->held_block_count * NAME_BLOCK_BYTES +
           names->bucket_count * sizeof *names->buckets;
}
