/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Histories: the pages that snapshots share, the marks of what was modified, and the retained frames. */

#include "core/history/history_internal.h"

#include "core/platform/platform.h"
#include "core/query/query_internal.h"

enum {
    LINE_BYTES = QUERN__CACHE_LINE_BYTES,
    FIRST_BLOCK_BYTES = 64 * 1024,     /* small, for small worlds; the second block has 512 KiB */
    LAST_BLOCK_BYTES = 2 * 1024 * 1024 /* later blocks are backed by huge pages */
};

/* Page 0 starts with many references, so that it is never freed. */
static bool page_store_init(quern__page_store *store, const quern_allocator *allocator)
{
    *store = (quern__page_store){.allocator = *allocator};
    if (!quern__array_reserve(allocator, &store->pages, 1) ||
        !quern__array_reserve(allocator, &store->reference_counts, 1))
        return false;
    store->pages.items[store->pages.count++] = (quern__page_entry){.memory = NULL};
    store->reference_counts.items[store->reference_counts.count++] = UINT32_MAX / 2;
    return true;
}

/* Releases all memory. Precondition: no page with values that have hooks is referenced. */
static void page_store_release(quern__page_store *store)
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
    const size_t last =
        bytes > LINE_BYTES ? (bytes - 1) / LINE_BYTES : 0; /* index of the last cache line */
    uint32_t shift = 0;
    while (last >= QUERN__PAGE_LINES && last >> shift >= 8)
        shift++;
    size_bytes = (((last >> shift) + 1) << shift) * LINE_BYTES;
    const uint32_t size_class =
        shift == 0 ? (uint32_t)last : QUERN__PAGE_LINES + shift * 4 + (uint32_t)(last >> shift) - 4;
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

void quern__page_free(quern__page_store *store, quern__page page)
{
    quern__page_entry *entry = &store->pages.items[page];
    if (QUERN__UNLIKELY(entry->type != NULL)) {
        quern__type_destroy(entry->type, entry->memory, entry->value_count);
        entry->type = NULL;
        entry->value_count = 0;
    }
    store->reference_counts.items[page] = store->first_free[entry->size_class];
    store->first_free[entry->size_class] = page;
    store->used_count--;
    store->used_bytes -= class_bytes(entry->size_class);
}

enum { FRAMES_ALIGNMENT_BYTES = 64 };

quern_result quern__history_fail_memory(const char *what)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for %s; nothing was changed", what);
}

/* ------------------------------------------------------------------------------ tracking of changes */

/* Makes all writes of the world update versions, and all changes of slots and links set modification
 * marks. */
static quern_result start_tracking(quern_world *world)
{
    quern__storage *storage = &world->storage;
    quern_result result = QUERN_OK;
    uint32_t filtered_count = 0;
    for (; filtered_count < storage->components.list.count; filtered_count++) {
        result = quern__storage_add_change_filter(storage, filtered_count);
        if (result != QUERN_OK) break;
    }
    if (result == QUERN_OK)
        result = quern__archetype_start_versions(storage->archetypes.items[0], &storage->allocator,
                                                 &storage->components);
    bool has_marks =
        result == QUERN_OK && quern__entities_track_modified(&storage->entities, &storage->allocator);
    for (uint32_t k = 0; k < storage->relations->list.count && has_marks; k++)
        has_marks = quern__relation_start_touching(storage->relations->list.items[k], &storage->allocator);
    if (has_marks) {
        storage->components.first_filter_count = 1;
        storage->relations->marks_touched_groups = true;
        for (quern__query *query = storage->first_query; query != NULL; query = query->next)
            quern__query_relist(query);
        return QUERN_OK;
    }
    while (filtered_count > 0)
        quern__storage_remove_change_filter(storage, --filtered_count);
    return result != QUERN_OK ? result
                              : quern__history_fail_memory("modification marks of slots and links");
}

static void stop_marking(quern__storage *storage)
{
    storage->relations->marks_touched_groups = false;
    quern__marks_release(&storage->entities.modified, &storage->allocator);
    for (uint32_t i = 0; i < storage->relations->list.count; i++)
        quern__relation_stop_touching(storage->relations->list.items[i], &storage->allocator);
}

void quern__history_set_base(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__snapshot base = *snapshot; /* `snapshot` may be &history->base */
    quern__snapshot_acquire(history, &base);
    quern__snapshot_release(history, &history->base);
    history->base = base;
    history->base.names_version = history->world->storage.names->version;
    history->base_version = history->world->storage.clock++;
    const quern__storage *storage = &history->world->storage;
    quern__marks_fill(&storage->entities.modified, 0);
    for (uint32_t k = 0; k < storage->relations->list.count; k++)
        quern__relation_clear_touched(storage->relations->list.items[k]);
}

static void drop_newest(quern__history *history)
{
    quern__snapshot_release(history, quern__history_frame(history, --history->frame_count));
}

/* ----------------------------------------------------------------------------------------- life cycle */

static size_t frames_bytes(const quern__history *history)
{
    return history->frame_capacity * sizeof *history->frames;
}

/* The function history_frames of the world: frames have the layouts of types from before a redefinition. The next save
 * then finds no base, and saves everything. */
static uint32_t count_or_drop_frames(quern__history *history, bool drops)
{
    const uint32_t count = history->frame_count;
    if (history->delta_count > 0) return UINT32_MAX;
    if (!drops) return count;
    while (history->frame_count > 0)
        drop_newest(history);
    quern__snapshot_release(history, &history->base);
    history->base = (quern__snapshot){.frame = 0};
    return count;
}

quern_result quern__history_init(quern__history *history, quern_world *world,
                                 const quern_allocator *allocator, uint32_t frame_count)
{
    *history = (quern__history){.world = world, .frame_capacity = frame_count};
    if (world->history != NULL)
        return quern__fail(QUERN_ERROR_LIMIT, "the world has a history already, and one history saves the "
                                              "whole world: use that one, or destroy it first");
    const bool has_store = page_store_init(&history->store, allocator);
    history->frames = quern__allocate(allocator, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
    quern_result result =
        has_store && history->frames != NULL ? QUERN_OK : quern__history_fail_memory("a history");
    if (result == QUERN_OK) result = start_tracking(world);
    if (result != QUERN_OK) {
        stop_marking(&world->storage);
        quern__release(allocator, history->frames, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
        page_store_release(&history->store);
        return result;
    }
    world->history = history;
    world->history_frames = count_or_drop_frames;
    world->user_count++;
    return QUERN_OK;
}

void quern__history_release(quern__history *history)
{
    const quern_allocator allocator = history->store.allocator;
    while (history->frame_count > 0)
        drop_newest(history);
    quern__snapshot_release(history, &history->base);
    quern__storage *storage = &history->world->storage;
    storage->components.first_filter_count = 0;
    for (uint32_t i = 0; i < storage->components.list.count; i++)
        quern__storage_remove_change_filter(storage, i);
    stop_marking(storage);
    quern__array_release(&allocator, &history->transfers);
    quern__array_release(&allocator, &history->column_restores);
    quern__array_release(&allocator, &history->edge_restores);
    quern__array_release(&allocator, &history->delta_scratch.ranges);
    quern__array_release(&allocator, &history->delta_scratch.unpaired);
    quern__map_release(&history->delta_scratch.unpaired_by_handle, &allocator);
    quern__map_release(&history->delta_scratch.used_names, &allocator);
    quern__release(&allocator, history->frames, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
    page_store_release(&history->store);
    history->world->history = NULL;
    history->world->user_count--;
}

/* --------------------------------------------------------------------------------------------- saving */

void quern__history_add_frame(quern__history *history, const quern__snapshot *snapshot)
{
    quern__history_set_base(history, snapshot);
    while (history->frame_count > 0 &&
           quern__history_frame(history, history->frame_count - 1)->frame >= snapshot->frame)
        drop_newest(history);
    if (history->frame_count == history->frame_capacity) { /* drops the oldest */
        quern__snapshot_release(history, quern__history_frame(history, 0));
        if (++history->first_frame == history->frame_capacity) history->first_frame = 0;
        history->frame_count--;
    }
    *quern__history_frame(history, history->frame_count++) = *snapshot;
}

const quern__snapshot *quern__history_find(const quern__history *history, uint64_t frame)
{
    uint32_t first = 0, end = history->frame_count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const quern__snapshot *snapshot = quern__history_frame(history, middle);
        if (snapshot->frame == frame) return snapshot;
        if (snapshot->frame < frame)
            first = middle + 1;
        else
            end = middle;
    }
    return NULL;
}
