/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_PAGE_STORE_H
#define QUERN_CORE_HISTORY_PAGE_STORE_H

/* The memory of a history: pages in fixed size classes. Frames share pages by counting references. Pages
 * are cut from blocks. A page without references is reused for the next request of its size class;
 * blocks are released with the store. So a history of similar frames allocates no memory after the
 * first ones.
 *
 * Sizes are whole cache lines, like columns in chunks, up to the size of a chunk; above that, size
 * classes grow by at most a quarter. The page freed last is reused first. So code that frees pages in
 * reverse order and requests the same sizes again receives them in the same memory order as before. */

#include "core/base/array.h"
#include "core/bytes/byte_reader.h"
#include "core/bytes/byte_writer.h"
#include "core/storage/type_internal.h"

/* Index of a page in the store; 0: no page. */
typedef uint32_t quern__page;

enum { QUERN__PAGE_LINES = 256, QUERN__PAGE_CLASSES = QUERN__PAGE_LINES + 112 };

typedef struct quern__page_entry {
    char *memory;
    const quern__type *type; /* type of the values with hooks; NULL: none */
    uint32_t value_count;
    uint16_t size_class;
} quern__page_entry;

typedef struct quern__page_block {
    char *memory;
    size_t size_bytes, alignment_bytes;
} quern__page_block;

typedef struct quern__page_store {
    quern_allocator allocator;
    QUERN__ARRAY(quern__page_entry) pages;
    /* By page: number of references; for a free page, the next free page of its size class. */
    QUERN__ARRAY(uint32_t) reference_counts;
    QUERN__ARRAY(quern__page_block) blocks;
    quern__page first_free[QUERN__PAGE_CLASSES];
    char *unused; /* unused end of the last block */
    size_t unused_bytes;
    uint64_t held_bytes; /* sum of the sizes of all blocks */
    uint64_t used_bytes; /* sum of the sizes of all pages with a reference */
    uint32_t used_count;
} quern__page_store;

/* Releases all memory. Precondition: no page with values that have hooks is referenced. */
void quern__page_store_release(quern__page_store *store);

/* Slow path of quern__page_allocate: reuses or adds a page when the fast path finds none or the size
 * exceeds a chunk. */
quern__page quern__page_allocate_slow(quern__page_store *store, size_t bytes);

/* Frees a page without references: destroys its values with hooks and adds the page to the free list. */
void quern__page_free(quern__page_store *store, quern__page page);

/* Returns a page of at least `bytes` bytes with one reference, or 0 if out of memory. */
static inline quern__page quern__page_allocate(quern__page_store *store, size_t bytes)
{
    const size_t last =
        bytes > 0 ? (bytes - 1) / QUERN__CACHE_LINE_BYTES : 0; /* index of the last cache line */
    const quern__page page = last < QUERN__PAGE_LINES ? store->first_free[last] : 0;
    if (QUERN__UNLIKELY(page == 0)) return quern__page_allocate_slow(store, bytes);
    store->first_free[last] = store->reference_counts.items[page];
    store->reference_counts.items[page] = 1;
    store->used_count++;
    store->used_bytes += (last + 1) * QUERN__CACHE_LINE_BYTES;
    return page;
}

static inline char *quern__page_memory(const quern__page_store *store, quern__page page)
{
    return store->pages.items[page].memory;
}

/* Return a reader and a writer for a page, from its start to the end of its size class. */
quern__byte_reader quern__page_reader(const quern__page_store *store, quern__page page);
quern__byte_writer quern__page_writer(const quern__page_store *store, quern__page page);

/* Add and remove a reference. Page 0 means no page: both calls accept it and never free it. */
static inline quern__page quern__page_acquire(const quern__page_store *store, quern__page page)
{
    store->reference_counts.items[page]++;
    return page;
}

static inline void quern__page_release(quern__page_store *store, quern__page page)
{
    if (--store->reference_counts.items[page] == 0 && page != 0) quern__page_free(store, page);
}

/* Initialises an empty store and its page 0. Returns false if out of memory. */
bool quern__page_store_init(quern__page_store *store, const quern_allocator *allocator);

#endif
