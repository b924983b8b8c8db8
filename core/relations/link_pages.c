/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/link_pages.h"

#include "core/platform/platform.h"

#define ALL_FREE ((uint32_t)((1ull << QUERN__LINK_BLOCK_PAGES) - 1))

void quern__link_pages_release(quern__link_pages *pages, const quern_allocator *allocator)
{
    assert(pages->block_count == 0);
    quern__array_release(allocator, &pages->blocks);
    *pages = (quern__link_pages){0};
}

/* Returns the index of the first entry with a free page, otherwise of the first unused entry, otherwise the index
 * after the last entry. */
static uint32_t find_entry(const quern__link_pages *pages)
{
    uint32_t unused = pages->blocks.count;
    for (uint32_t i = pages->blocks.count; i-- > 0;)
        if (pages->blocks.items[i].memory == NULL) unused = i;
    for (uint32_t i = 0; i < pages->blocks.count; i++)
        if (pages->blocks.items[i].free_mask != 0) return i;
    return unused;
}

static bool block_add(quern__link_pages *pages, const quern_allocator *allocator, uint32_t index)
{
    if (!quern__array_reserve(allocator, &pages->blocks, index + 1)) return false;
    char *memory = quern__allocate(allocator, QUERN__LINK_BLOCK_BYTES, QUERN__LINK_BLOCK_BYTES);
    if (memory == NULL) return false;
    const bool is_huge = pages->block_count > 0;
    if (is_huge) quern__advise_huge_pages(memory, QUERN__LINK_BLOCK_BYTES);
    pages->blocks.items[index] =
        (quern__link_block){.memory = memory, .free_mask = ALL_FREE, .is_huge = is_huge};
    if (index == pages->blocks.count) pages->blocks.count++;
    pages->block_count++;
    return true;
}

void *quern__link_pages_take(quern__link_pages *pages, const quern_allocator *allocator)
{
    const uint32_t index = find_entry(pages);
    const bool has_page = index < pages->blocks.count && pages->blocks.items[index].free_mask != 0;
    if (!has_page && !block_add(pages, allocator, index)) return NULL;
    quern__link_block *block = &pages->blocks.items[index];
    const uint32_t page = quern__lowest_bit_32(block->free_mask);
    block->free_mask &= block->free_mask - 1;
    if (!block->is_huge && quern__count_bits_32(block->free_mask) <= QUERN__LINK_BLOCK_PAGES / 4 * 3) {
        block->is_huge = true;
        quern__collapse_huge_page(block->memory, QUERN__LINK_BLOCK_BYTES);
    }
    return block->memory + (size_t)page * QUERN__LINK_PAGE_BYTES;
}

void quern__link_pages_give(quern__link_pages *pages, const quern_allocator *allocator, void *page)
{
    /* blocks are aligned to their size, so masking finds the start of the block */
    char *memory = (char *)((uintptr_t)page & ~(uintptr_t)(QUERN__LINK_BLOCK_BYTES - 1));
    quern__link_block *block = pages->blocks.items;
    while (block->memory != memory)
        block++;
    block->free_mask |= 1u << ((size_t)((char *)page - memory) / QUERN__LINK_PAGE_BYTES);
    if (block->free_mask != ALL_FREE) return;
    quern__release(allocator, memory, QUERN__LINK_BLOCK_BYTES, QUERN__LINK_BLOCK_BYTES);
    *block = (quern__link_block){0};
    pages->block_count--;
}
