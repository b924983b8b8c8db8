/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_LINK_PAGES_H
#define QUERN_CORE_RELATIONS_LINK_PAGES_H

/* Memory for the pages of links (links.h) of all relations of a world. Pages of 128 KiB are cut from blocks of
 * 2 MiB. Blocks are advised to be huge pages; the first block only once a quarter of it is in use, to save memory
 * in small worlds. A block is released as soon as all of its pages are free. */

#include "core/base/array.h"

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

#endif
