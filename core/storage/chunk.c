/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/chunk.h"

#include "core/base/containers.h"
#include "core/platform/platform.h"

_Static_assert(sizeof(quern__slab_tables *) <= QUERN__CHUNK_UNUSED_BYTES, "no column uses these bytes");
_Static_assert(QUERN__SLAB_CHUNKS == 128, "a slab's free mask has two words");

static void slab_release(const quern__slab *slab, const quern_allocator *allocator)
{
    quern__release(allocator, slab->tables, sizeof *slab->tables, QUERN__CACHE_LINE_BYTES);
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

enum { MOVE_COUNT_ALIGNMENT_BYTES = 64 };

static void release_counts(quern__move_counts *move_counts, const quern_allocator *allocator)
{
    quern__release(allocator, move_counts->counts, move_counts->capacity * sizeof *move_counts->counts,
                   MOVE_COUNT_ALIGNMENT_BYTES);
}

static bool resize_move_counts(quern__move_counts *move_counts, const quern_allocator *allocator,
                               uint32_t chunk_count)
{
    uint64_t *counts = quern__allocate(allocator, chunk_count * sizeof *counts, MOVE_COUNT_ALIGNMENT_BYTES);
    if (counts == NULL) return false;
    const uint32_t known = move_counts->capacity;
    if (known > 0) memcpy(counts, move_counts->counts, known * sizeof *counts);
    memset(counts + known, 0, (chunk_count - known) * sizeof *counts);
    release_counts(move_counts, allocator);
    move_counts->counts = counts;
    move_counts->capacity = chunk_count;
    for (quern_getter *reader = move_counts->first_reader; reader != NULL; reader = reader->next)
        reader->move_counts = counts;
    return true;
}

/* Reserves counts for `chunk_count` chunks and updates the address in each reader. Does nothing without readers.
 * Returns false and changes nothing if out of memory. */
static bool move_counts_grow(quern__move_counts *move_counts, const quern_allocator *allocator,
                             uint32_t chunk_count)
{
    if (move_counts->first_reader == NULL || chunk_count <= move_counts->capacity) return true;
    const uint32_t twice = 2 * move_counts->capacity;
    return resize_move_counts(move_counts, allocator, chunk_count > twice ? chunk_count : twice);
}

/* Adds a slab with all chunks free and returns its entry, or NULL. */
static quern__slab *slab_add(quern__slabs *slabs, const quern_allocator *allocator)
{
    uint32_t index = 0; /* of the first unused entry */
    while (index < slabs->list.count && slabs->list.items[index].memory != NULL)
        index++;
    if (!quern__array_reserve(allocator, &slabs->list, index + 1) ||
        !move_counts_grow(&slabs->move_counts, allocator, (index + 1) * QUERN__SLAB_CHUNKS))
        return NULL;
    quern__slab fresh = {.free_mask = {~0ull, ~0ull}, .free_count = QUERN__SLAB_CHUNKS};
    fresh.memory = quern__allocate(allocator, QUERN__SLAB_BYTES, QUERN__SLAB_BYTES);
    fresh.tables = quern__allocate(allocator, sizeof *fresh.tables, QUERN__CACHE_LINE_BYTES);
    if (fresh.memory == NULL || fresh.tables == NULL) {
        slab_release(&fresh, allocator);
        return NULL;
    }
    fresh.is_huge = slabs->slab_count > 0;
    if (fresh.is_huge) quern__advise_huge_pages(fresh.memory, QUERN__SLAB_BYTES);
    fresh.tables->slab_index = index;
    memcpy(fresh.memory, &fresh.tables, sizeof fresh.tables);

    slabs->list.items[index] = fresh;
    if (index == slabs->list.count) slabs->list.count++;
    if (index < slabs->first_index) slabs->first_index = index;
    slabs->slab_count++;
    slabs->empty_count++;
    slabs->free_count += QUERN__SLAB_CHUNKS;
    return &slabs->list.items[index];
}

/* count: less than 64, and a divisor of 64. */
static bool is_free(const quern__slab *slab, uint32_t first, uint32_t count)
{
    const uint64_t mask = (UINT64_C(1) << count) - 1;
    return (slab->free_mask[first / 64] >> first % 64 & mask) == mask;
}

/* Finds a free run of `count` chunks in the slab. Returns the position of its first chunk, or QUERN__SLAB_CHUNKS. */
static uint32_t find_free_run(const quern__slab *slab, uint32_t count)
{
    uint32_t first = 0;
    if (slab->free_count < count) return QUERN__SLAB_CHUNKS;
    if (count == QUERN__SLAB_CHUNKS) return 0;
    while (first < QUERN__SLAB_CHUNKS && !is_free(slab, first, count))
        first += count;
    return first;
}

/* Finds a free run of `count` chunks in the slabs. Returns its slab, or NULL. */
static quern__slab *find_run(quern__slabs *slabs, uint32_t count, uint32_t *out_first)
{
    while (slabs->first_index < slabs->list.count && slabs->list.items[slabs->first_index].free_count == 0)
        slabs->first_index++;
    for (uint32_t i = slabs->first_index; i < slabs->list.count; i++) {
        *out_first = find_free_run(&slabs->list.items[i], count);
        if (*out_first < QUERN__SLAB_CHUNKS) return &slabs->list.items[i];
    }
    return NULL;
}

char *quern__run_allocate(quern__slabs *slabs, const quern_allocator *allocator, uint32_t shift)
{
    const uint32_t count = 1u << shift;
    uint32_t first = 0;
    quern__slab *slab = find_run(slabs, count, &first);
    if (slab == NULL) {
        slab = slab_add(slabs, allocator);
        first = 0;
    }
    if (slab == NULL) return NULL;
    if (slab->free_count == QUERN__SLAB_CHUNKS) slabs->empty_count--;
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_remove(slab->free_mask, first + i);
    slab->free_count -= count;
    slabs->free_count -= count;
    if (!slab->is_huge && slab->free_count < QUERN__SLAB_CHUNKS / 4 * 3) {
        slab->is_huge = true;
        quern__collapse_huge_page(slab->memory, QUERN__SLAB_BYTES);
    }
    return slab->memory + (size_t)first * QUERN__CHUNK_BYTES;
}

static void slab_drop(quern__slabs *slabs, const quern_allocator *allocator, quern__slab *slab)
{
    slab_release(slab, allocator);
    *slab = (quern__slab){0};
    slabs->slab_count--;
    slabs->empty_count--;
    slabs->free_count -= QUERN__SLAB_CHUNKS;
}

void quern__run_release(quern__slabs *slabs, const quern_allocator *allocator, char *run, uint32_t shift)
{
    const uint32_t index = quern__slab_tables_of((uintptr_t)run)->slab_index, count = 1u << shift;
    quern__slab *slab = &slabs->list.items[index];
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_add(slab->free_mask, quern__location_in_slab((uintptr_t)run) + i);
    slab->free_count += count;
    slabs->free_count += count;
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

bool quern__move_counts_add_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                   uint32_t chunk_count, quern_getter *reader)
{
    if (move_counts->first_reader == NULL &&
        !resize_move_counts(move_counts, allocator, chunk_count > 0 ? chunk_count : 1))
        return false;
    reader->move_counts = move_counts->counts;
    reader->next = move_counts->first_reader;
    if (reader->next != NULL) reader->next->previous = reader;
    move_counts->first_reader = reader;
    return true;
}

void quern__move_counts_remove_reader(quern__move_counts *move_counts, const quern_allocator *allocator,
                                      quern_getter *reader)
{
    if (reader->next != NULL) reader->next->previous = reader->previous;
    if (reader->previous != NULL) reader->previous->next = reader->next;
    if (move_counts->first_reader == reader) move_counts->first_reader = reader->next;
    if (move_counts->first_reader != NULL) return;
    release_counts(move_counts, allocator);
    move_counts->counts = NULL;
    move_counts->capacity = 0;
}

enum { VERSION_ALIGNMENT_BYTES = 64 };

static size_t bytes_for(const quern__versions *versions, uint32_t slot_capacity)
{
    return (size_t)slot_capacity * versions->stride * sizeof *versions->items;
}

bool quern__versions_start(quern__versions *versions, const quern_allocator *allocator,
                           uint32_t slot_capacity, uint32_t stride)
{
    versions->stride = stride;
    uint64_t *items =
        quern__allocate(allocator, bytes_for(versions, slot_capacity), VERSION_ALIGNMENT_BYTES);
    if (items == NULL) return false;
    for (size_t i = 0; i < (size_t)slot_capacity * versions->stride; i++)
        items[i] = *versions->clock;
    versions->items = items;
    versions->slot_capacity = slot_capacity;
    return true;
}

bool quern__versions_grow(quern__versions *versions, const quern_allocator *allocator,
                          uint32_t slot_capacity)
{
    if (versions->items == NULL || slot_capacity <= versions->slot_capacity) return true;
    quern__versions larger = *versions;
    if (!quern__versions_start(&larger, allocator, slot_capacity, versions->stride)) return false;
    memcpy(larger.items, versions->items, bytes_for(versions, versions->slot_capacity));
    quern__versions_release(versions, allocator);
    *versions = larger;
    return true;
}

void quern__versions_release(quern__versions *versions, const quern_allocator *allocator)
{
    quern__release(allocator, versions->items, bytes_for(versions, versions->slot_capacity),
                   VERSION_ALIGNMENT_BYTES);
    versions->items = NULL;
}

enum { ROW_VERSION_ALIGNMENT_BYTES = 64 };

/* ------------------------------------------------------------------------------------------- room */

/* Size of the allocation that holds the structure, its lanes and offsets, but not the versions. */
static size_t head_bytes(uint32_t lane_count, uint32_t version_count)
{
    return sizeof(quern__row_versions) + lane_count * sizeof(quern__row_lane) +
           version_count * sizeof(uint32_t);
}

quern__row_versions *quern__row_versions_create(const quern_allocator *allocator,
                                                const quern__row_lane *lanes, uint32_t lane_count,
                                                uint32_t version_count, const quern__run_shape *shape,
                                                uint32_t slot_capacity, uint64_t now)
{
    const uint32_t row_capacity = shape->row_capacity;
    char *memory =
        quern__allocate(allocator, head_bytes(lane_count, version_count), ROW_VERSION_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    quern__row_versions *versions = (quern__row_versions *)(void *)memory;
    *versions =
        (quern__row_versions){.lanes = (quern__row_lane *)(void *)(versions + 1),
                              .lane_count = lane_count,
                              .version_count = version_count,
                              .shape = shape,
                              .row_capacity = row_capacity,
                              .group_count = (row_capacity + QUERN__ROW_GROUP - 1) / QUERN__ROW_GROUP};
    versions->slot_words = (versions->group_count + row_capacity) * lane_count;
    versions->offsets = (uint32_t *)(void *)(versions->lanes + lane_count);
    memset(versions->offsets, 0xFF, version_count * sizeof *versions->offsets);
    for (uint32_t i = 0; i < lane_count; i++) {
        versions->lanes[i] = lanes[i];
        versions->offsets[lanes[i].version_index] = quern__row_versions_offset(versions, i);
    }
    if (!quern__row_versions_reserve(versions, allocator, slot_capacity)) {
        quern__row_versions_release(versions, allocator);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)slot_capacity * versions->slot_words; i++)
        versions->items[i] = now;
    return versions;
}

static void release_items(quern__row_versions *versions, const quern_allocator *allocator)
{
    if (versions->items != NULL)
        quern__release(allocator, versions->items, quern__row_versions_bytes(versions),
                       ROW_VERSION_ALIGNMENT_BYTES);
    versions->items = NULL;
    versions->slot_capacity = 0;
}

void quern__row_versions_release(quern__row_versions *versions, const quern_allocator *allocator)
{
    if (versions == NULL) return;
    release_items(versions, allocator);
    quern__release(allocator, versions, head_bytes(versions->lane_count, versions->version_count),
                   ROW_VERSION_ALIGNMENT_BYTES);
}

/* Changes the capacity and keeps the versions of as many slots as fit. Returns false and changes nothing if out of
 * memory. */
static bool resize_row_versions(quern__row_versions *versions, const quern_allocator *allocator,
                                uint32_t slot_capacity)
{
    quern__row_versions resized = *versions;
    resized.slot_capacity = slot_capacity;
    const size_t bytes = quern__row_versions_bytes(&resized),
                 old_bytes = quern__row_versions_bytes(versions);
    resized.items = quern__allocate(allocator, bytes, ROW_VERSION_ALIGNMENT_BYTES);
    if (resized.items == NULL) return false;
    if (old_bytes > 0) memcpy(resized.items, versions->items, old_bytes < bytes ? old_bytes : bytes);
    /* groups are raised, never set, so they need a value */
    if (bytes > old_bytes) memset((char *)resized.items + old_bytes, 0, bytes - old_bytes);
    release_items(versions, allocator);
    *versions = resized;
    return true;
}

bool quern__row_versions_reserve(quern__row_versions *versions, const quern_allocator *allocator,
                                 uint32_t slot_count)
{
    if (QUERN__LIKELY(versions == NULL) || slot_count <= versions->slot_capacity) return true;
    const uint32_t doubled = 2 * versions->slot_capacity;
    return resize_row_versions(versions, allocator, slot_count > doubled ? slot_count : doubled);
}

void quern__row_versions_trim(quern__row_versions *versions, const quern_allocator *allocator,
                              uint32_t slot_count)
{
    if (versions == NULL || slot_count == versions->slot_capacity) return;
    if (slot_count > 0)
        (void)resize_row_versions(versions, allocator, slot_count);
    else
        release_items(versions, allocator);
}

/* ------------------------------------------------------------------------------------------- rows */

static void note_lane(const quern__row_versions *versions, uint32_t lane, uintptr_t first, uint32_t count,
                      uint64_t now)
{
    quern__row_versions_note(versions, versions->lanes[lane].version_index, first, count, now);
}

void quern__row_groups_raise_to(uint64_t *lane, const uint64_t *row_versions, uint32_t count)
{
    for (uint32_t row = 0; row < count; row++)
        quern__row_groups_raise(lane, row, 1, row_versions[row]);
}

void quern__row_versions_arrive(const quern__row_versions *versions, uintptr_t first, uint32_t count,
                                uint64_t now)
{
    for (uint32_t i = 0; i < versions->lane_count; i++)
        note_lane(versions, i, first, count, now);
}

void quern__row_versions_move(const quern__row_versions *target, uintptr_t to,
                              const quern__row_versions *source, uintptr_t from, uint32_t count,
                              uint64_t now)
{
    const uint32_t source_count = source != NULL ? source->lane_count : 0;
    for (uint32_t i = 0, k = 0; i < target->lane_count; i++) {
        const uint32_t component_index = target->lanes[i].component_index;
        while (k < source_count && source->lanes[k].component_index < component_index)
            k++;
        if (k < source_count && source->lanes[k].component_index == component_index)
            memcpy(quern__row_version(target, quern__row_versions_offset(target, i), to),
                   quern__row_version(source, quern__row_versions_offset(source, k), from),
                   count * sizeof(uint64_t));
        else
            note_lane(target, i, to, count, now);
    }
}
