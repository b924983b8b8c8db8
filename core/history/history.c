/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/history_internal.h"

#include "core/query/query_internal.h"

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
    quern__entities_untrack_modified(&storage->entities, &storage->allocator);
    for (uint32_t i = 0; i < storage->relations->list.count; i++)
        quern__relation_stop_touching(storage->relations->list.items[i], &storage->allocator);
}

static void stop_tracking(quern_world *world)
{
    quern__storage *storage = &world->storage;
    storage->components.first_filter_count = 0;
    for (uint32_t i = 0; i < storage->components.list.count; i++)
        quern__storage_remove_change_filter(storage, i);
    stop_marking(storage);
}

static void clear_marks(const quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->entities.modified.count; i++)
        storage->entities.modified.items[i] = 0;
    for (uint32_t k = 0; k < storage->relations->list.count; k++)
        quern__relation_clear_touched(storage->relations->list.items[k]);
}

/* ----------------------------------------------------------------------------------------- snapshots */

/* The number of pages that a snapshot refers to directly. */
enum { SNAPSHOT_PAGES = 11 };

static void list_pages(const quern__snapshot *snapshot, quern__page *pages)
{
    const quern__page list[SNAPSHOT_PAGES] = {snapshot->archetypes,         snapshot->relations,
                                              snapshot->resources,          snapshot->names,
                                              snapshot->world_state,        snapshot->caller_state,
                                              snapshot->slots.absent_highs, snapshot->slots.groups,
                                              snapshot->commands,           snapshot->command_values.list,
                                              snapshot->event_values.list};
    memcpy(pages, list, sizeof list);
}

void quern__snapshot_acquire(const quern__history *history, const quern__snapshot *snapshot)
{
    quern__page pages[SNAPSHOT_PAGES];
    list_pages(snapshot, pages);
    for (uint32_t i = 0; i < SNAPSHOT_PAGES; i++)
        quern__page_acquire(&history->store, pages[i]);
}

static bool has_single_reference(const quern__history *history, quern__page page)
{
    return page != 0 && history->store.reference_counts.items[page] == 1;
}

bool quern__value_pages_allocate(quern__history *history, uint32_t count, quern__value_pages *out_pages)
{
    const quern__page list = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (list == 0) return false;
    memset(quern__pages_in(history, list), 0, count * sizeof(quern__page));
    *out_pages = (quern__value_pages){list, count};
    return true;
}

void quern__value_pages_release(quern__history *history, const quern__value_pages *pages)
{
    if (!has_single_reference(history, pages->list)) return;
    for (uint32_t i = 0; i < pages->count; i++)
        quern__page_release(&history->store, quern__pages_in(history, pages->list)[i]);
}

void quern__snapshot_release(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_single_reference(history, snapshot->archetypes))
        quern__release_saved_archetypes(history, snapshot);
    if (has_single_reference(history, snapshot->relations)) quern__release_saved_links(history, snapshot);
    if (has_single_reference(history, snapshot->resources))
        quern__release_saved_resources(history, snapshot);
    if (has_single_reference(history, snapshot->slots.groups))
        quern__release_saved_slots(history, snapshot);
    quern__value_pages_release(history, &snapshot->command_values);
    quern__value_pages_release(history, &snapshot->event_values);
    quern__page pages[SNAPSHOT_PAGES];
    list_pages(snapshot, pages);
    for (uint32_t i = 0; i < SNAPSHOT_PAGES; i++)
        quern__page_release(&history->store, pages[i]);
}

void quern__history_set_base(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__snapshot base = *snapshot; /* `snapshot` may be &history->base */
    quern__snapshot_acquire(history, &base);
    quern__snapshot_release(history, &history->base);
    history->base = base;
    history->base.names_version = history->world->storage.names->version;
    history->base_version = history->world->storage.clock++;
    clear_marks(&history->world->storage);
}

static void drop_oldest(quern__history *history)
{
    quern__snapshot_release(history, quern__history_frame(history, 0));
    if (++history->first_frame == history->frame_capacity) history->first_frame = 0;
    history->frame_count--;
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

quern_result quern__history_init(quern__history *history, quern_world *world,
                                 const quern_allocator *allocator, uint32_t frame_count)
{
    *history = (quern__history){.world = world, .frame_capacity = frame_count};
    if (world->has_history)
        return quern__fail(QUERN_ERROR_LIMIT, "the world has a history already, and one history saves the "
                                              "whole world: use that one, or destroy it first");
    const bool has_store = quern__page_store_init(&history->store, allocator);
    history->frames = quern__allocate(allocator, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
    quern_result result =
        has_store && history->frames != NULL ? QUERN_OK : quern__history_fail_memory("a history");
    if (result == QUERN_OK) result = start_tracking(world);
    if (result != QUERN_OK) {
        stop_marking(&world->storage);
        quern__release(allocator, history->frames, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
        quern__page_store_release(&history->store);
        return result;
    }
    world->has_history = true;
    world->user_count++;
    return QUERN_OK;
}

void quern__history_release(quern__history *history)
{
    const quern_allocator allocator = history->store.allocator;
    while (history->frame_count > 0)
        drop_newest(history);
    quern__snapshot_release(history, &history->base);
    stop_tracking(history->world);
    quern__array_release(&allocator, &history->transfers);
    quern__array_release(&allocator, &history->column_restores);
    quern__array_release(&allocator, &history->edge_restores);
    quern__array_release(&allocator, &history->delta_scratch.ranges);
    quern__array_release(&allocator, &history->delta_scratch.unpaired);
    quern__map_release(&history->delta_scratch.unpaired_by_handle, &allocator);
    quern__map_release(&history->delta_scratch.used_names, &allocator);
    quern__release(&allocator, history->frames, frames_bytes(history), FRAMES_ALIGNMENT_BYTES);
    quern__page_store_release(&history->store);
    history->world->has_history = false;
    history->world->user_count--;
}

/* --------------------------------------------------------------------------------------------- saving */

static quern_result build_all(quern__history *history, quern__snapshot *snapshot)
{
    quern_result result = quern__build_world_state(history, snapshot);
    if (result == QUERN_OK) result = quern__build_archetypes(history, snapshot);
    if (result == QUERN_OK) result = quern__build_slots(history, snapshot);
    if (result == QUERN_OK) result = quern__build_links(history, snapshot);
    if (result == QUERN_OK) result = quern__build_names(history, snapshot);
    return result == QUERN_OK ? quern__build_resources(history, snapshot) : result;
}

quern_result quern__history_build(quern__history *history, uint64_t frame, size_t caller_state_bytes,
                                  quern__snapshot *out_snapshot)
{
    *out_snapshot = (quern__snapshot){.frame = frame};
    history->transfers.count = 0;
    history->copied_bytes = history->copied_count = 0;
    quern_result result = QUERN_OK;
    out_snapshot->caller_state = quern__page_allocate(&history->store, caller_state_bytes);
    if (out_snapshot->caller_state == 0) result = quern__history_fail_memory("the state of schedules");
    if (result == QUERN_OK) result = build_all(history, out_snapshot);
    if (result != QUERN_OK)
        quern__snapshot_release(history, out_snapshot);
    else
        quern__history_run_transfers(history, true);
    return result;
}

void quern__history_add_frame(quern__history *history, const quern__snapshot *snapshot)
{
    quern__history_set_base(history, snapshot);
    while (history->frame_count > 0 &&
           quern__history_frame(history, history->frame_count - 1)->frame >= snapshot->frame)
        drop_newest(history);
    if (history->frame_count == history->frame_capacity) drop_oldest(history);
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
