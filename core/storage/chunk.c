/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/chunk.h"

#include "core/base/bitset.h"
#include "core/platform/platform.h"

_Static_assert(sizeof(quern__chunk) <= QUERN__CHUNK_HEADER_BYTES, "the header has 64 bytes");
_Static_assert(QUERN__SLAB_CHUNKS == 128, "a slab's free mask has two words");

enum { INDICES_BYTES = QUERN__SLAB_CHUNKS * sizeof(uint32_t) };

static void slab_release(const quern__slab *slab, const quern_allocator *allocator)
{
    quern__release(allocator, slab->indices, INDICES_BYTES, QUERN__CACHE_LINE_BYTES);
    quern__release(allocator, slab->memory, QUERN__SLAB_BYTES, QUERN__SLAB_BYTES);
}

void quern__slabs_release(quern__slabs *slabs, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < slabs->list.count; i++)
        slab_release(&slabs->list.items[i], allocator);
    quern__array_release(allocator, &slabs->list);
    quern__array_release(allocator, &slabs->holders);
    assert(slabs->move_counts.first_reader == NULL); /* getters must be destroyed before their world */
}

static quern__chunk *chunk_at(const quern__slab *slab, uint32_t slot)
{
    return (quern__chunk *)(void *)(slab->memory + (size_t)slot * QUERN__CHUNK_BYTES);
}

static uint32_t find_unused_entry(const quern__slabs *slabs)
{
    uint32_t i = 0;
    while (i < slabs->list.count && slabs->list.items[i].memory != NULL)
        i++;
    return i;
}

/* Adds a slab with all chunks free and returns its entry, or NULL. */
static quern__slab *slab_add(quern__slabs *slabs, const quern_allocator *allocator)
{
    uint32_t index = find_unused_entry(slabs);
    if (!quern__array_reserve(allocator, &slabs->list, index + 1) ||
        !quern__move_counts_grow(&slabs->move_counts, allocator, (index + 1) * QUERN__SLAB_CHUNKS))
        return NULL;
    quern__slab fresh = {.free_mask = {~0ull, ~0ull}, .free_count = QUERN__SLAB_CHUNKS};
    fresh.memory = quern__allocate(allocator, QUERN__SLAB_BYTES, QUERN__SLAB_BYTES);
    fresh.indices = quern__allocate(allocator, INDICES_BYTES, QUERN__CACHE_LINE_BYTES);
    if (fresh.memory == NULL || fresh.indices == NULL) {
        slab_release(&fresh, allocator);
        return NULL;
    }
    fresh.is_huge = slabs->slab_count > 0;
    if (fresh.is_huge) quern__advise_huge_pages(fresh.memory, QUERN__SLAB_BYTES);
    chunk_at(&fresh, 0)->slab_indices = fresh.indices;

    slabs->list.items[index] = fresh;
    if (index == slabs->list.count) slabs->list.count++;
    if (index < slabs->first_index) slabs->first_index = index;
    slabs->slab_count++;
    slabs->empty_count++;
    slabs->free_count += QUERN__SLAB_CHUNKS;
    return &slabs->list.items[index];
}

static quern__slab *find_slab_with_room(quern__slabs *slabs)
{
    for (; slabs->first_index < slabs->list.count; slabs->first_index++)
        if (slabs->list.items[slabs->first_index].free_count > 0)
            return &slabs->list.items[slabs->first_index];
    return NULL;
}

static bool is_free(const quern__slab *slab, uint32_t slot)
{
    return slot < QUERN__SLAB_CHUNKS && quern__bitset_has(slab->free_mask, slot);
}

/* Returns the first of `wanted` adjacent free chunks, or of the longest sequence that exists. Sets *out_count to the
 * length of the sequence. Precondition: the slab has a free chunk. */
static uint32_t find_adjacent(const quern__slab *slab, uint32_t wanted, uint32_t *out_count)
{
    uint32_t best = 0, best_count = 0;
    for (uint32_t slot = 0; slot < QUERN__SLAB_CHUNKS && best_count < wanted; slot++) {
        uint32_t count = 0;
        while (count < wanted && is_free(slab, slot + count))
            count++;
        if (count > best_count) {
            best = slot;
            best_count = count;
        }
        slot += count;
    }
    *out_count = best_count;
    return best;
}

quern__chunk *quern__chunk_allocate_adjacent(quern__slabs *slabs, const quern_allocator *allocator,
                                             uint32_t *count)
{
    quern__slab *slab = find_slab_with_room(slabs);
    if (slab == NULL) slab = slab_add(slabs, allocator);
    if (slab == NULL) return NULL;

    if (slab->free_count == QUERN__SLAB_CHUNKS) slabs->empty_count--;
    uint32_t first = find_adjacent(slab, *count, count);
    for (uint32_t slot = first; slot < first + *count; slot++) {
        quern__bitset_remove(slab->free_mask, slot);
        chunk_at(slab, slot)->slab_index = (uint32_t)(slab - slabs->list.items);
    }
    slab->free_count -= *count;
    slabs->free_count -= *count;
    if (!slab->is_huge && slab->free_count < QUERN__SLAB_CHUNKS / 4 * 3) {
        slab->is_huge = true;
        quern__collapse_huge_page(slab->memory, QUERN__SLAB_BYTES);
    }
    return chunk_at(slab, first);
}

static void slab_drop(quern__slabs *slabs, const quern_allocator *allocator, quern__slab *slab)
{
    slab_release(slab, allocator);
    *slab = (quern__slab){0};
    slabs->slab_count--;
    slabs->empty_count--;
    slabs->free_count -= QUERN__SLAB_CHUNKS;
}

void quern__chunk_release(quern__slabs *slabs, const quern_allocator *allocator, quern__chunk *chunk)
{
    uint32_t index = chunk->slab_index;
    quern__slab *slab = &slabs->list.items[index];
    quern__bitset_add(slab->free_mask, (uint32_t)(((char *)chunk - slab->memory) / QUERN__CHUNK_BYTES));
    slab->free_count++;
    slabs->free_count++;
    if (index < slabs->first_index) slabs->first_index = index;
    if (slab->free_count < QUERN__SLAB_CHUNKS) return;
    slabs->empty_count++;
    if (slabs->empty_count > 1) slab_drop(slabs, allocator, slab);
}

void quern__slabs_trim(quern__slabs *slabs, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < slabs->list.count; i++) {
        quern__slab *slab = &slabs->list.items[i];
        if (slab->memory != NULL && slab->free_count == QUERN__SLAB_CHUNKS)
            slab_drop(slabs, allocator, slab);
    }
}
