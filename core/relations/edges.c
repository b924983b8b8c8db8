/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Edges: sets of slots in small blocks of a pool, or, if large, in blocks of a directory; and the pages that have a
 * set of targets and a set of sources per slot. */
#include "core/relations/links.h"

const quern__edge_list quern__no_edges = {.slots = NULL};

static inline bool has_directory(const quern__edge_list *list)
{
    return list->capacity == QUERN__EDGE_DIRECTORY;
}

/* Returns the index of the first of `count` ascending slots that is not below `slot`. The additions compile to
 * conditional moves, because the processor could not predict the comparisons. */
static inline uint32_t lower_bound(const uint32_t *slots, uint32_t count, uint32_t slot)
{
    uint32_t first = 0;
    while (count > 0) {
        const uint32_t half = count / 2;
        const bool is_below = slots[first + half] < slot;
        first += is_below ? half + 1 : 0;
        count = is_below ? count - half - 1 : half;
    }
    return first;
}

/* Returns the index of the block whose range contains the slot. */
static uint32_t find_block(const quern__edge_directory *directory, uint32_t slot)
{
    uint32_t low = 0, high = directory->blocks.count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (directory->blocks.items[middle].first <= slot)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool quern__edge_list_has(const quern__edge_list *list, uint32_t slot)
{
    quern__edge_range range = {list->slots, list->count};
    if (has_directory(list)) range = quern__edge_list_range(list, find_block(list->directory, slot));
    const uint32_t at = lower_bound(range.slots, range.count, slot);
    return at < range.count && range.slots[at] == slot;
}

uint32_t quern__edge_list_next(const quern__edge_list *list, uint32_t slot)
{
    const uint32_t least = slot + 1; /* 0 after QUERN__SLOT_NONE */
    for (uint32_t i = has_directory(list) ? find_block(list->directory, least) : 0;
         i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        const uint32_t at = lower_bound(range.slots, range.count, least);
        if (at < range.count) return range.slots[at];
    }
    return QUERN__SLOT_NONE;
}

void quern__edge_list_copy(const quern__edge_list *list, uint32_t *out_slots)
{
    for (uint32_t i = 0; i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        if (range.count > 0) memcpy(out_slots, range.slots, range.count * sizeof *out_slots);
        out_slots += range.count;
    }
}

/* -------------------------------------------------------------------------------------------- memory */

/* Makes room in the array of blocks, and counts its memory. */
static bool reserve_blocks(quern__edge_pool *pool, const quern_allocator *allocator,
                           quern__edge_directory *directory, uint32_t count)
{
    const uint32_t capacity = directory->blocks.capacity;
    if (!quern__array_reserve(allocator, &directory->blocks, count)) return false;
    pool->directory_bytes += (directory->blocks.capacity - capacity) * sizeof *directory->blocks.items;
    return true;
}

static quern__edge_directory *directory_create(quern__edge_pool *pool, const quern_allocator *allocator,
                                               uint32_t block_count)
{
    quern__edge_directory *directory =
        quern__allocate(allocator, sizeof *directory, _Alignof(quern__edge_directory));
    if (directory == NULL) return NULL;
    *directory = (quern__edge_directory){.blocks = {0}};
    if (reserve_blocks(pool, allocator, directory, block_count)) {
        pool->directory_bytes += sizeof *directory;
        return directory;
    }
    quern__release(allocator, directory, sizeof *directory, _Alignof(quern__edge_directory));
    return NULL;
}

/* The head of a page; its blocks follow. */
struct quern__edge_page {
    _Alignas(QUERN__CACHE_LINE_BYTES) quern__edge_page *next, *previous; /* in the list of its class */
    void *first_free;    /* free blocks, of which each begins with the address of the next */
    uint32_t used_count; /* blocks in use */
    uint32_t untouched;  /* offset of the blocks that were never used; no list contains them */
    uint32_t size_class;
    uint32_t block_bytes;
};

static void list_insert(quern__edge_pool *pool, quern__edge_page *page)
{
    quern__edge_page **first = &pool->partial[page->size_class];
    page->previous = NULL;
    page->next = *first;
    if (*first != NULL) (*first)->previous = page;
    *first = page;
}

static void pool_list_remove(quern__edge_pool *pool, quern__edge_page *page)
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

static void edge_pool_give(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t *block)
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
    pool_list_remove(pool, page);
    quern__link_pages_give(pool->memory, allocator, page);
}

static void directory_release(quern__edge_pool *pool, const quern_allocator *allocator,
                              quern__edge_directory *directory)
{
    for (uint32_t i = 0; i < directory->blocks.count; i++)
        edge_pool_give(pool, allocator, directory->blocks.items[i].slots);
    pool->directory_bytes -=
        sizeof *directory + directory->blocks.capacity * sizeof *directory->blocks.items;
    quern__array_release(allocator, &directory->blocks);
    quern__release(allocator, directory, sizeof *directory, _Alignof(quern__edge_directory));
}

void quern__edge_list_release(quern__edge_pool *pool, const quern_allocator *allocator,
                              quern__edge_list *list)
{
    if (has_directory(list))
        directory_release(pool, allocator, list->directory);
    else if (list->capacity > 0)
        edge_pool_give(pool, allocator, list->slots);
    *list = quern__no_edges;
}

static QUERN__SLOW_PATH quern__edge_page *
pool_add_page(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t size_class)
{
    quern__edge_page *page = quern__link_pages_take(pool->memory, allocator);
    if (page == NULL) return NULL;
    /* classes of capacity 2 * 2^k and 3 * 2^k, from 4 slots */
    const uint32_t capacity = (size_class % 2 == 0 ? 4u : 6u) << size_class / 2;
    *page = (quern__edge_page){.size_class = size_class,
                               .block_bytes = capacity * (uint32_t)sizeof(uint32_t),
                               .untouched = sizeof *page};
    list_insert(pool, page);
    return page;
}

/* Returns a block of this capacity, which quern__edge_pool_capacity returned; NULL if out of memory. */
static uint32_t *edge_pool_take(quern__edge_pool *pool, const quern_allocator *allocator, uint32_t capacity)
{
    const uint32_t log2 = quern__highest_bit_32(capacity);
    const uint32_t size_class = 2 * (log2 - 2) + (capacity > 1u << log2);
    quern__edge_page *page = pool->partial[size_class];
    if (page == NULL) page = pool_add_page(pool, allocator, size_class);
    if (page == NULL) return NULL;
    void *block = page->first_free;
    if (block != NULL) {
        memcpy(&page->first_free, block, sizeof page->first_free);
    } else {
        block = (char *)page + page->untouched;
        page->untouched += page->block_bytes;
    }
    page->used_count++;
    if (is_full(page)) pool_list_remove(pool, page);
    return block;
}

/* Appends a block with the given slots, which are all above those of the blocks before it. */
static bool append_block(quern__edge_pool *pool, const quern_allocator *allocator,
                         quern__edge_directory *directory, const uint32_t *slots, uint32_t count)
{
    uint32_t *block = edge_pool_take(pool, allocator, QUERN__EDGE_BLOCK_SLOTS);
    if (block == NULL) return false;
    memcpy(block, slots, count * sizeof *block);
    directory->blocks.items[directory->blocks.count] = (quern__edge_block){
        .slots = block, .count = count, .first = directory->blocks.count > 0 ? slots[0] : 0};
    directory->blocks.count++;
    return true;
}

static bool build_directory(quern__edge_pool *pool, const quern_allocator *allocator, const uint32_t *slots,
                            uint32_t count, quern__edge_list *out_list)
{
    quern__edge_directory *directory =
        directory_create(pool, allocator, (count - 1) / QUERN__EDGE_BLOCK_SLOTS + 1);
    if (directory == NULL) return false;
    for (uint32_t i = 0; i < count; i += QUERN__EDGE_BLOCK_SLOTS) {
        const uint32_t left = count - i;
        if (append_block(pool, allocator, directory, slots + i,
                         left < QUERN__EDGE_BLOCK_SLOTS ? left : QUERN__EDGE_BLOCK_SLOTS))
            continue;
        directory_release(pool, allocator, directory);
        return false;
    }
    *out_list =
        (quern__edge_list){.directory = directory, .count = count, .capacity = QUERN__EDGE_DIRECTORY};
    return true;
}

bool quern__edge_list_build(quern__edge_pool *pool, const quern_allocator *allocator, const uint32_t *slots,
                            uint32_t count, quern__edge_list *out_list)
{
    *out_list = quern__no_edges;
    if (count == 0) return true;
    if (count > QUERN__EDGE_BLOCK_SLOTS) return build_directory(pool, allocator, slots, count, out_list);
    const uint32_t capacity = quern__edge_pool_capacity(count);
    uint32_t *block = edge_pool_take(pool, allocator, capacity);
    if (block == NULL) return false;
    memcpy(block, slots, count * sizeof *block);
    *out_list = (quern__edge_list){.slots = block, .count = count, .capacity = capacity};
    return true;
}

/* ----------------------------------------------------------------------------------------- reserving */

/* Moves a set of one block to a larger block. */
static bool grow(quern__edge_pool *pool, const quern_allocator *allocator, quern__edge_list *list)
{
    const uint32_t capacity = quern__edge_pool_capacity(list->count + 1);
    uint32_t *block = edge_pool_take(pool, allocator, capacity);
    if (block == NULL) return false;
    if (list->count > 0) memcpy(block, list->slots, list->count * sizeof *block);
    if (list->capacity > 0) edge_pool_give(pool, allocator, list->slots);
    list->slots = block;
    list->capacity = capacity;
    return true;
}

/* Makes the block of a set the only block of a directory. */
static bool start_directory(quern__edge_pool *pool, const quern_allocator *allocator,
                            quern__edge_list *list)
{
    quern__edge_directory *directory = directory_create(pool, allocator, 2);
    if (directory == NULL) return false;
    directory->blocks.items[directory->blocks.count++] =
        (quern__edge_block){.slots = list->slots, .count = list->count};
    list->directory = directory;
    list->capacity = QUERN__EDGE_DIRECTORY;
    return true;
}

/* Splits a full block in two. The upper block begins with the new slot if that is above all others; slots that are
 * added in ascending order thus leave full blocks behind. */
static bool split_block(quern__edge_pool *pool, const quern_allocator *allocator,
                        quern__edge_directory *directory, uint32_t index, uint32_t slot)
{
    if (!reserve_blocks(pool, allocator, directory, directory->blocks.count + 1)) return false;
    uint32_t *upper = edge_pool_take(pool, allocator, QUERN__EDGE_BLOCK_SLOTS);
    if (upper == NULL) return false;
    quern__edge_block *block = &directory->blocks.items[index];
    const bool is_above = slot > block->slots[block->count - 1];
    const uint32_t kept = is_above ? block->count : block->count / 2;
    memmove(block + 2, block + 1, (directory->blocks.count - index - 1) * sizeof *block);
    block[1] = (quern__edge_block){
        .slots = upper, .count = block->count - kept, .first = is_above ? slot : block->slots[kept]};
    memcpy(upper, block->slots + kept, block[1].count * sizeof *upper);
    block->count = kept;
    directory->blocks.count++;
    return true;
}

static QUERN__SLOW_PATH bool reserve_slowly(quern__edge_pool *pool, const quern_allocator *allocator,
                                            quern__edge_list *list, uint32_t slot)
{
    if (!has_directory(list)) {
        if (list->count < QUERN__EDGE_BLOCK_SLOTS) return grow(pool, allocator, list);
        if (!start_directory(pool, allocator, list)) return false;
    }
    const uint32_t block = find_block(list->directory, slot);
    return list->directory->blocks.items[block].count < QUERN__EDGE_BLOCK_SLOTS ||
           split_block(pool, allocator, list->directory, block, slot);
}

static inline bool reserve_one(quern__edge_pool *pool, const quern_allocator *allocator,
                               quern__edge_list *list, uint32_t slot)
{
    return QUERN__LIKELY(!has_directory(list) && list->count < list->capacity) ||
           reserve_slowly(pool, allocator, list, slot);
}

static QUERN__SLOW_PATH bool add_page(quern__edges *edges, const quern_allocator *allocator, uint32_t page)
{
    if (!quern__array_reserve(allocator, &edges->pages, page + 1) ||
        (edges->touched.items != NULL && !quern__marks_extend(&edges->touched, allocator, page + 1)))
        return false;
    quern__edge_node *added = quern__link_pages_take(edges->pool->memory, allocator);
    if (added == NULL) return false;
    memset(added, 0, QUERN__EDGE_PAGE_SLOTS * sizeof *added);
    while (edges->pages.count <= page)
        edges->pages.items[edges->pages.count++] = NULL;
    edges->pages.items[page] = added;
    if (edges->touched.items != NULL) edges->touched.items[page] = ~UINT64_C(0);
    return true;
}

bool quern__edges_reserve_page(quern__edges *edges, const quern_allocator *allocator, uint32_t slot)
{
    return QUERN__LIKELY(quern__edges_has_page(edges, slot)) ||
           add_page(edges, allocator, slot >> QUERN__EDGE_PAGE_LOG2);
}

bool quern__edges_reserve(quern__edges *edges, const quern_allocator *allocator, uint32_t source,
                          uint32_t target)
{
    return quern__edges_reserve_page(edges, allocator, source) &&
           quern__edges_reserve_page(edges, allocator, target) &&
           reserve_one(edges->pool, allocator, &quern__edges_at(edges, source)->targets, target) &&
           reserve_one(edges->pool, allocator, &quern__edges_at(edges, target)->sources, source);
}

/* ------------------------------------------------------------------------------------------ changing */

static inline void insert(uint32_t *slots, uint32_t count, uint32_t slot)
{
    uint32_t at = count;
    if (count > 0 && slots[count - 1] > slot) at = lower_bound(slots, count, slot);
    memmove(slots + at + 1, slots + at, (count - at) * sizeof *slots);
    slots[at] = slot;
}

static inline void list_add(quern__edge_list *list, uint32_t slot)
{
    assert(!quern__edge_list_has(list, slot));
    if (QUERN__LIKELY(!has_directory(list))) {
        assert(list->count < list->capacity);
        insert(list->slots, list->count, slot);
    } else {
        quern__edge_block *block = &list->directory->blocks.items[find_block(list->directory, slot)];
        assert(block->count < QUERN__EDGE_BLOCK_SLOTS);
        insert(block->slots, block->count++, slot);
    }
    list->count++;
}

static inline void take_out(uint32_t *slots, uint32_t count, uint32_t slot)
{
    const uint32_t at = lower_bound(slots, count, slot);
    assert(at < count && slots[at] == slot);
    memmove(slots + at, slots + at + 1, (count - at - 1) * sizeof *slots);
}

static inline void list_remove(quern__edge_list *list, uint32_t slot)
{
    if (QUERN__LIKELY(!has_directory(list))) {
        take_out(list->slots, list->count, slot);
    } else {
        quern__edge_block *block = &list->directory->blocks.items[find_block(list->directory, slot)];
        take_out(block->slots, block->count--, slot);
    }
    list->count--;
}

/* Marks the group of the slot as touched, if marking is on. */
static inline void touch(const quern__edges *edges, uint32_t slot)
{
    if (QUERN__UNLIKELY(edges->touched.items != NULL))
        edges->touched.items[slot >> QUERN__EDGE_PAGE_LOG2] |= UINT64_C(1)
                                                               << (slot >> QUERN__EDGE_GROUP_LOG2) % 64;
}

bool quern__edges_has(const quern__edges *edges, uint32_t source, uint32_t target)
{
    const quern__edge_list *targets = quern__edges_targets(edges, source),
                           *sources = quern__edges_sources(edges, target);
    return targets->count < sources->count ? quern__edge_list_has(targets, target)
                                           : quern__edge_list_has(sources, source);
}

void quern__edges_add(quern__edges *edges, uint32_t source, uint32_t target)
{
    list_add(&quern__edges_at(edges, source)->targets, target);
    list_add(&quern__edges_at(edges, target)->sources, source);
    edges->count++;
    touch(edges, source);
    touch(edges, target);
}

void quern__edges_forget_source(quern__edges *edges, uint32_t source, uint32_t target)
{
    list_remove(&quern__edges_at(edges, target)->sources, source);
    touch(edges, target);
}

void quern__edges_remove(quern__edges *edges, uint32_t source, uint32_t target)
{
    list_remove(&quern__edges_at(edges, source)->targets, target);
    quern__edges_forget_source(edges, source, target);
    edges->count--;
    touch(edges, source);
}

void quern__edges_put_targets(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                              const quern__edge_list *targets)
{
    quern__edge_node *node = quern__edges_at(edges, slot);
    assert(node->targets.count == 0);
    quern__edge_list_release(edges->pool, allocator, &node->targets);
    node->targets = *targets;
    edges->count += targets->count;
    touch(edges, slot);
}

void quern__edges_put_sources(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                              const quern__edge_list *sources)
{
    quern__edge_node *node = quern__edges_at(edges, slot);
    assert(node->sources.count == 0);
    quern__edge_list_release(edges->pool, allocator, &node->sources);
    node->sources = *sources;
    touch(edges, slot);
}

void quern__edges_clear(quern__edges *edges, const quern_allocator *allocator, uint32_t slot)
{
    if (!quern__edges_has_page(edges, slot)) return;
    quern__edge_node *node = quern__edges_at(edges, slot);
    edges->count -= node->targets.count;
    quern__edge_list_release(edges->pool, allocator, &node->targets);
    quern__edge_list_release(edges->pool, allocator, &node->sources);
    touch(edges, slot);
}

/* -------------------------------------------------------------------------------- life cycle, trimming */

static void page_release(quern__edges *edges, const quern_allocator *allocator, uint32_t page)
{
    quern__edge_node *nodes = edges->pages.items[page];
    for (uint32_t i = 0; i < QUERN__EDGE_PAGE_SLOTS; i++) {
        quern__edge_list_release(edges->pool, allocator, &nodes[i].targets);
        quern__edge_list_release(edges->pool, allocator, &nodes[i].sources);
    }
    quern__link_pages_give(edges->pool->memory, allocator, nodes);
    edges->pages.items[page] = NULL;
}

void quern__edges_release(quern__edges *edges, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < edges->pages.count; i++)
        if (edges->pages.items[i] != NULL) page_release(edges, allocator, i);
    quern__array_release(allocator, &edges->pages);
    quern__marks_release(&edges->touched, allocator);
    *edges = (quern__edges){.pool = edges->pool};
}

static bool fits(const quern__edge_list *list)
{
    if (list->count == 0) return list->capacity == 0;
    if (!has_directory(list)) return list->capacity == quern__edge_pool_capacity(list->count);
    return list->count > QUERN__EDGE_BLOCK_SLOTS &&
           list->directory->blocks.count == (list->count - 1) / QUERN__EDGE_BLOCK_SLOTS + 1;
}

/* Rebuilds a set with no more memory than it needs. Without memory for that, the set remains as it is. */
static void fit(quern__edge_pool *pool, const quern_allocator *allocator, quern__edge_list *list)
{
    if (fits(list)) return;
    QUERN__ARRAY(uint32_t) slots = {0};
    quern__edge_list fitted;
    const uint32_t count = list->count;
    if (count > 0 && !quern__array_reserve(allocator, &slots, count)) return;
    if (count > 0) quern__edge_list_copy(list, slots.items);
    if (quern__edge_list_build(pool, allocator, slots.items, count, &fitted)) {
        quern__edge_list_release(pool, allocator, list);
        *list = fitted;
    }
    quern__array_release(allocator, &slots);
}

void quern__edges_trim(quern__edges *edges, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < edges->pages.count; i++) {
        quern__edge_node *nodes = edges->pages.items[i];
        bool is_used = false;
        for (uint32_t k = 0; nodes != NULL && k < QUERN__EDGE_PAGE_SLOTS; k++) {
            fit(edges->pool, allocator, &nodes[k].targets);
            fit(edges->pool, allocator, &nodes[k].sources);
            is_used |= nodes[k].targets.count > 0 || nodes[k].sources.count > 0;
        }
        if (nodes != NULL && !is_used) page_release(edges, allocator, i);
    }
}

_Static_assert(4 << (QUERN__EDGE_CLASSES - 1) / 2 == QUERN__EDGE_BLOCK_SLOTS, "the last class");

uint32_t quern__edge_pool_capacity(uint32_t count)
{
    if (count <= 4) return 4;
    const uint32_t power = 1u << quern__highest_bit_32(count);
    if (count == power) return power;
    return count <= power + power / 2 ? power + power / 2 : 2 * power;
}

void quern__edge_pool_trim(quern__edge_pool *pool, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < QUERN__EDGE_CLASSES; i++)
        for (quern__edge_page *page = pool->partial[i], *next; page != NULL; page = next) {
            next = page->next;
            if (page->used_count > 0) continue;
            pool_list_remove(pool, page);
            quern__link_pages_give(pool->memory, allocator, page);
        }
}
