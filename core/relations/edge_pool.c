/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/edge_pool.h"

/* The head of a page; its blocks follow. */
struct quern__edge_page {
    _Alignas(QUERN__CACHE_LINE_BYTES) quern__edge_page *next, *previous; /* in the list of its class */
    void *first_free;    /* free blocks, of which each begins with the address of the next */
    uint32_t used_count; /* blocks in use */
    uint32_t untouched;  /* offset of the blocks that were never used; no list contains them */
    uint32_t size_class;
    uint32_t block_bytes;
};

/* Classes of capacity 2 * 2^k and 3 * 2^k, from 4 slots. */
static inline uint32_t class_capacity(uint32_t size_class)
{
    return (size_class % 2 == 0 ? 4u : 6u) << size_class / 2;
}

static inline uint32_t class_of(uint32_t capacity)
{
    const uint32_t log2 = quern__highest_bit_32(capacity);
    return 2 * (log2 - 2) + (capacity > 1u << log2);
}

_Static_assert(4 << (QUERN__EDGE_CLASSES - 1) / 2 == QUERN__EDGE_BLOCK_SLOTS, "the last class");

uint32_t quern__edge_pool_capacity(uint32_t count)
{
    if (count <= 4) return 4;
    const uint32_t power = 1u << quern__highest_bit_32(count);
    if (count == power) return power;
    return count <= power + power / 2 ? power + power / 2 : 2 * power;
}

static void list_insert(quern__edge_pool *pool, quern__edge_page *page)
{
    quern__edge_page **first = &pool->partial[page->size_class];
    page->previous = NULL;
    page->next = *first;
    if (*first != NULL) (*first)->previous = page;
    *first = page;
}

static void list_remove(quern__edge_pool *pool, quern__edge_page *page)
{
    if (page->next != NULL) page->next->previous = page->previous;
    if (page->previous != NULL)
        page->previous->next = page->next;
    else
        pool->partial[page->size_class] = page->next;
}

static inline bool is_full(const quern__edge_page *page)
{
    return page->first_free == NULL && page->untouched + page->block_bytes > QUERN__LINK_PAGE_BYTES;
}

static QUERN__SLOW_PATH quern__edge_page *add_page(quern__edge_pool *pool, const quern_allocator *allocator,
                                                   uint32_t size_class)
{
    quern__edge_page *page = quern__link_pages_take(pool->memory, allocator);
    if (page == NULL) return NULL;
    *page = (quern__edge_page){.size_class = size_class,
                               .block_bytes = class_capacity(size_class) * (uint32_t)sizeof(uint32_t),
                               .untouched = sizeof *page};
    list_insert(pool, page);
    return page;
}

uint32_t *quern__edge_pool_take(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t capacity)
{
    const uint32_t size_class = class_of(capacity);
    quern__edge_page *page = pool->partial[size_class];
    if (page == NULL) page = add_page(pool, allocator, size_class);
    if (page == NULL) return NULL;
    void *block = page->first_free;
    if (block != NULL) {
        memcpy(&page->first_free, block, sizeof page->first_free);
    } else {
        block = (char *)page + page->untouched;
        page->untouched += page->block_bytes;
    }
    page->used_count++;
    if (is_full(page)) list_remove(pool, page);
    return block;
}

void quern__edge_pool_give(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t *block)
{
    /* pages are aligned to their size, so masking finds the start of the page */
    quern__edge_page *page =
        (quern__edge_page *)(void *)((char *)block - ((uintptr_t)block & (QUERN__LINK_PAGE_BYTES - 1)));
    const bool was_full = is_full(page);
    memcpy(block, &page->first_free, sizeof page->first_free);
    page->first_free = block;
    page->used_count--;
    if (was_full) list_insert(pool, page);
    if (page->used_count > 0 || (page->next == NULL && page->previous == NULL)) return;
    list_remove(pool, page);
    quern__link_pages_give(pool->memory, allocator, page);
}

void quern__edge_pool_trim(quern__edge_pool *pool, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < QUERN__EDGE_CLASSES; i++)
        for (quern__edge_page *page = pool->partial[i], *next; page != NULL; page = next) {
            next = page->next;
            if (page->used_count > 0) continue;
            list_remove(pool, page);
            quern__link_pages_give(pool->memory, allocator, page);
        }
}
