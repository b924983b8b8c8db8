/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/page_store.h"

#include "core/platform/platform.h"

enum {
    LINE_BYTES = QUERN__CACHE_LINE_BYTES,
    FIRST_BLOCK_BYTES = 64 * 1024,     /* small, for small worlds; the second block has 512 KiB */
    LAST_BLOCK_BYTES = 2 * 1024 * 1024 /* later blocks are backed by huge pages */
};

/* Page 0 starts with many references, so that it is never freed. */
bool quern__page_store_init(quern__page_store *store, const quern_allocator *allocator)
{
    *store = (quern__page_store){.allocator = *allocator};
    if (!quern__array_reserve(allocator, &store->pages, 1) ||
        !quern__array_reserve(allocator, &store->reference_counts, 1))
        return false;
    store->pages.items[store->pages.count++] = (quern__page_entry){.memory = NULL};
    store->reference_counts.items[store->reference_counts.count++] = UINT32_MAX / 2;
    return true;
}

void quern__page_store_release(quern__page_store *store)
{
    for (uint32_t i = 0; i < store->blocks.count; i++) {
        const quern__page_block *block = &store->blocks.items[i];
        quern__release(&store->allocator, block->memory, block->size_bytes, block->alignment_bytes);
    }
    quern__array_release(&store->allocator, &store->blocks);
    quern__array_release(&store->allocator, &store->pages);
    quern__array_release(&store->allocator, &store->reference_counts);
}

/* ---------------------------------------------------------------------------------- size classes */

/* Returns the size class for `bytes`, and the size of its pages. Above the size of a chunk, sizes keep
 * three significant binary digits. */
static uint32_t find_size_class(size_t bytes, size_t *out_bytes)
{
    const size_t last =
        bytes > LINE_BYTES ? (bytes - 1) / LINE_BYTES : 0; /* index of the last cache line */
    uint32_t shift = 0;
    while (last >= QUERN__PAGE_LINES && last >> shift >= 8)
        shift++;
    *out_bytes = (((last >> shift) + 1) << shift) * LINE_BYTES;
    return shift == 0 ? (uint32_t)last : QUERN__PAGE_LINES + shift * 4 + (uint32_t)(last >> shift) - 4;
}

static size_t class_bytes(uint32_t size_class)
{
    if (size_class < QUERN__PAGE_LINES) return ((size_t)size_class + 1) * LINE_BYTES;
    const uint32_t number = size_class - QUERN__PAGE_LINES;
    return ((size_t)(number % 4 + 5) << number / 4) * LINE_BYTES;
}

quern__byte_reader quern__page_reader(const quern__page_store *store, quern__page page)
{
    const quern__page_entry *entry = &store->pages.items[page];
    return quern__byte_reader_open(entry->memory, class_bytes(entry->size_class));
}

quern__byte_writer quern__page_writer(const quern__page_store *store, quern__page page)
{
    const quern__page_entry *entry = &store->pages.items[page];
    return (quern__byte_writer){.bytes = entry->memory, .capacity = class_bytes(entry->size_class)};
}

/* ----------------------------------------------------------------------------------------- blocks */

static char *add_block(quern__page_store *store, size_t size_bytes, size_t alignment_bytes)
{
    if (!quern__array_reserve(&store->allocator, &store->blocks, store->blocks.count + 1)) return NULL;
    char *memory = quern__allocate(&store->allocator, size_bytes, alignment_bytes);
    if (memory == NULL) return NULL;
    if (alignment_bytes == LAST_BLOCK_BYTES) quern__advise_huge_pages(memory, size_bytes);
    store->blocks.items[store->blocks.count++] = (quern__page_block){memory, size_bytes, alignment_bytes};
    store->held_bytes += size_bytes;
    return memory;
}

/* Returns memory for one page. Large pages have a block of their own. Other pages are cut from the last
 * block; a new block is at least as large as all earlier blocks together, up to LAST_BLOCK_BYTES. */
static char *cut_from_block(quern__page_store *store, size_t bytes)
{
    if (bytes > LAST_BLOCK_BYTES / 8) return add_block(store, bytes, LINE_BYTES);
    if (store->unused_bytes < bytes) {
        size_t block_bytes = FIRST_BLOCK_BYTES;
        while (block_bytes < LAST_BLOCK_BYTES && (block_bytes < store->held_bytes || block_bytes < bytes))
            block_bytes = block_bytes * 8 < LAST_BLOCK_BYTES ? block_bytes * 8 : LAST_BLOCK_BYTES;
        char *memory =
            add_block(store, block_bytes, block_bytes == LAST_BLOCK_BYTES ? block_bytes : LINE_BYTES);
        if (memory == NULL) return NULL;
        store->unused = memory;
        store->unused_bytes = block_bytes;
    }
    char *memory = store->unused;
    store->unused += bytes;
    store->unused_bytes -= bytes;
    return memory;
}

/* ----------------------------------------------------------------------------------------- pages */

static quern__page add_page(quern__page_store *store, uint32_t size_class, size_t bytes)
{
    if (!quern__array_reserve(&store->allocator, &store->pages, store->pages.count + 1) ||
        !quern__array_reserve(&store->allocator, &store->reference_counts,
                              store->reference_counts.count + 1))
        return 0;
    char *memory = cut_from_block(store, bytes);
    if (memory == NULL) return 0;
    store->pages.items[store->pages.count++] =
        (quern__page_entry){.memory = memory, .size_class = (uint16_t)size_class};
    store->reference_counts.items[store->reference_counts.count++] = 0;
    return store->pages.count - 1;
}

quern__page quern__page_allocate_slow(quern__page_store *store, size_t bytes)
{
    size_t size_bytes;
    const uint32_t size_class = find_size_class(bytes, &size_bytes);
    quern__page page = store->first_free[size_class];
    if (page != 0)
        store->first_free[size_class] = store->reference_counts.items[page];
    else
        page = add_page(store, size_class, size_bytes);
    if (page == 0) return 0;
    store->reference_counts.items[page] = 1;
    store->used_count++;
    store->used_bytes += size_bytes;
    return page;
}

static void destroy_values(quern__page_entry *entry)
{
    quern__type_destroy(entry->type, entry->memory, entry->value_count);
    entry->type = NULL;
    entry->value_count = 0;
}

void quern__page_free(quern__page_store *store, quern__page page)
{
    quern__page_entry *entry = &store->pages.items[page];
    if (QUERN__UNLIKELY(entry->type != NULL)) destroy_values(entry);
    store->reference_counts.items[page] = store->first_free[entry->size_class];
    store->first_free[entry->size_class] = page;
    store->used_count--;
    store->used_bytes -= class_bytes(entry->size_class);
}
