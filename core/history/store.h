/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_STORE_H
#define QUERN_CORE_HISTORY_STORE_H

/* Memory for what a history keeps: pages, each of one of some sizes, which frames share by counting who
 * holds them. Pages are cut from blocks, and one that nobody holds goes to the next who asks for its size;
 * blocks go back with the store. So a history whose frames are alike allocates nothing once it is warm.
 *
 * Sizes are whole cache lines, as of columns in chunks, up to those of a chunk; from there on they grow by
 * a quarter at most. The page that was let go last is taken first: so who lets pages go from behind, and
 * takes the same sizes again, finds them lying one after the other as before. */

#include "core/base/array.h"
#include "core/bytes/byte_reader.h"
#include "core/bytes/byte_writer.h"
#include "core/storage/type_internal.h"

/* The number of a page; 0: none. */
typedef uint32_t quern__page;

enum { QUERN__PAGE_LINES = 256, QUERN__PAGE_CLASSES = QUERN__PAGE_LINES + 112 };

typedef struct quern__page_entry {
    char *memory;
    const quern__type *type; /* of the values with hooks that are in it; NULL: none are */
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
    QUERN__ARRAY(uint32_t) holders; /* by page: how many; of a free one, the next free one of its size */
    QUERN__ARRAY(quern__page_block) blocks;
    quern__page first_free[QUERN__PAGE_CLASSES];
    char *rest; /* of the last block, what is not cut yet */
    size_t rest_bytes;
    uint64_t held_bytes; /* of all blocks */
    uint64_t used_bytes; /* of pages that somebody holds */
    uint32_t used_count;
} quern__page_store;

/* All pages have been let go, or have no values with hooks. */
void quern__store_release(quern__page_store *store);

/* The part of quern__page_take for a page that is not there yet, or is larger than a chunk. */
quern__page quern__page_add(quern__page_store *store, size_t bytes);

/* The part of quern__page_let_go for a page that nobody holds any more: destroys values with hooks. */
void quern__page_free(quern__page_store *store, quern__page page);

/* A page with at least so many bytes, held once; 0 when there is no memory. */
static inline quern__page quern__page_take(quern__page_store *store, size_t bytes)
{
    const size_t last = bytes > 0 ? (bytes - 1) / QUERN__CACHE_LINE_BYTES : 0; /* number of the last line */
    const quern__page page = last < QUERN__PAGE_LINES ? store->first_free[last] : 0;
    if (QUERN__UNLIKELY(page == 0)) return quern__page_add(store, bytes);
    store->first_free[last] = store->holders.items[page];
    store->holders.items[page] = 1;
    store->used_count++;
    store->used_bytes += (last + 1) * QUERN__CACHE_LINE_BYTES;
    return page;
}

static inline char *quern__page_memory(const quern__page_store *store, quern__page page)
{
    return store->pages.items[page].memory;
}

/* Reads a page from its start, and writes one. */
quern__byte_reader quern__page_reader(const quern__page_store *store, quern__page page);
quern__byte_writer quern__page_writer(const quern__page_store *store, quern__page page);

/* Page 0 is nobody's: holding it, and letting it go, does nothing that counts. */
static inline quern__page quern__page_hold(const quern__page_store *store, quern__page page)
{
    store->holders.items[page]++;
    return page;
}

static inline void quern__page_let_go(quern__page_store *store, quern__page page)
{
    if (--store->holders.items[page] == 0 && page != 0) quern__page_free(store, page);
}

/* Makes page 0. False when there is no memory. */
bool quern__store_init(quern__page_store *store, const quern_allocator *allocator);

#endif
