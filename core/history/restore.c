/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Restores a world to a snapshot, in two steps.
 *
 *   prepare   finds or makes an archetype of the world for each archetype of the snapshot; reserves rows,
 *             records, links and names; lists the columns that differ. May fail, and is undone then.
 *   restore   removes the rows of archetypes that the snapshot lacks; restores the slots; orders the
 *             archetypes; destroys values with hooks that are replaced; appends or removes rows; copies
 *             values and places handles; restores links, names, resources and the world state. Cannot
 *             fail. */

#include "core/entities/entities_internal.h"
#include "core/history/history_internal.h"
#include "core/reactions/reaction.h"
#include "core/storage/change.h"

/* ---------------------------------------------------------------------------------- finding archetypes */

/* An archetype of the world that will be restored to the i-th archetype of the snapshot. */
typedef struct restore_target {
    quern__archetype *archetype;
    const quern__saved_archetype *saved;
    const quern__saved_archetype *base; /* the archetype in the base; NULL: the base lacks it */
    bool is_made;                       /* whether this call made the archetype */
} restore_target;

typedef struct restore {
    quern__history *history;
    quern__storage *storage;
    const quern__snapshot *snapshot;
    /* Scratch memory: `targets`, base_list() and list_archetypes(). */
    quern__page targets_page, base_page, list_page;
    restore_target *targets;
    uint32_t count;     /* targets found or made so far */
    bool order_differs; /* whether archetypes must be made, removed or reordered */
} restore;

/* Returns the list of archetypes in the base, by the index that the archetype has in the world before
 * the restore. */
static const quern__saved_archetype **base_list(const restore *it)
{
    return (const quern__saved_archetype **)(void *)quern__page_memory(&it->history->store, it->base_page);
}

/* Finds the archetypes of the world with the saved components and layouts, and makes those that it lacks. An archetype
 * usually has the same index as in the snapshot. */
static quern_result find_targets(restore *it)
{
    quern__storage *storage = it->storage;
    const uint32_t count = it->snapshot->archetype_count;
    uint32_t index = 0;
    it->order_differs = storage->archetypes.count != count;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        base_list(it)[i] = quern__find_base_archetype(it->history, storage->archetypes.items[i], &index);
    for (uint32_t i = 0; i < count; i++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(it->history, it->snapshot, i);
        quern__archetype *archetype = i < storage->archetypes.count ? storage->archetypes.items[i] : NULL;
        if (archetype == NULL || archetype->identity != saved->identity)
            archetype =
                quern__storage_find_archetype(storage, saved->component_indices, saved->component_count);
        const bool is_made = archetype == NULL || archetype->layout_index != saved->layout_index;
        if (is_made) {
            const quern_result result = quern__storage_create_archetype(
                storage, saved->component_indices, saved->component_count, saved->layout_index, &archetype);
            if (result != QUERN_OK) return result;
        }
        it->order_differs |= is_made || archetype->index != i;
        it->targets[it->count++] =
            (restore_target){.archetype = archetype,
                             .saved = saved,
                             .base = is_made ? NULL : base_list(it)[archetype->index],
                             .is_made = is_made};
        assert(archetype->shape.row_capacity == saved->row_capacity);
    }
    if (it->order_differs && !quern__storage_reserve_archetypes(storage, count))
        return quern__history_fail_memory("archetypes");
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- differences */

/* Whether the rows of the chunk have the saved handles. Only in that case can its columns be unchanged. */
static bool has_same_rows(const restore *it, const restore_target *target, uint32_t slot)
{
    const quern__archetype *archetype = target->archetype;
    const uint32_t last = target->saved->column_count;
    const uint32_t rows = slot < archetype->chunk_count ? archetype->slots[slot].row_count : 0;
    return target->base != NULL && slot < target->base->chunk_count && slot < target->saved->chunk_count &&
           rows == quern__saved_row_count(target->saved, slot) &&
           rows == quern__saved_row_count(target->base, slot) &&
           quern__versions_of(&archetype->versions, slot)[0] <= it->history->base_version &&
           quern__saved_pages(target->base, slot)[last] == quern__saved_pages(target->saved, slot)[last];
}

static bool has_same_column(const restore *it, const restore_target *target, uint32_t slot, uint32_t column)
{
    return quern__versions_of(&target->archetype->versions, slot)[1 + column] <=
               it->history->base_version &&
           quern__saved_pages(target->base, slot)[column] ==
               quern__saved_pages(target->saved, slot)[column];
}

static bool add_column_restore(quern__history *history, quern__column_restore item)
{
    if (!quern__array_reserve(&history->store.allocator, &history->column_restores,
                              history->column_restores.count + 1))
        return false;
    history->column_restores.items[history->column_restores.count++] = item;
    return true;
}

/* Lists what differs in a chunk: columns without hooks and row versions as transfers, columns with hooks and handles as
 * column restores. Returns false if out of memory. */
static bool list_chunk(const restore *it, uint32_t i, uint32_t slot)
{
    quern__history *history = it->history;
    const restore_target *target = &it->targets[i];
    const quern__archetype *archetype = target->archetype;
    const quern__saved_archetype *saved = target->saved;
    const quern__page *pages = quern__saved_pages(saved, slot);
    const uint32_t rows = quern__saved_row_count(saved, slot);
    const bool has_rows = has_same_rows(it, target, slot);
    if (!has_rows && !add_column_restore(history, (quern__column_restore){i, slot, QUERN__RESTORE_HANDLES}))
        return false;
    for (uint32_t c = 0; c < saved->column_count; c++) {
        const quern__column *column = &archetype->columns[c];
        if (has_rows && has_same_column(it, target, slot, c)) continue;
        history->copied_bytes += (uint64_t)rows * column->size_bytes;
        history->copied_count++;
        const bool is_listed =
            quern__hooks_exist(&column->type->hooks)
                ? add_column_restore(history, (quern__column_restore){i, slot, c})
                : quern__history_add_transfer(
                      history, quern__column_value(column, quern__slot_chunk(&archetype->slots[slot]), 0),
                      quern__page_memory(&history->store, pages[c]), (size_t)rows * column->size_bytes);
        if (!is_listed) return false;
    }
    for (uint32_t lane = 0, page = saved->column_count + 1; page < saved->slot_page_count; lane++, page++) {
        const uint32_t version_index = archetype->row_versions->lanes[lane].version_index;
        if (has_rows &&
            quern__versions_of(&archetype->versions, slot)[version_index] <= history->base_version &&
            quern__saved_pages(target->base, slot)[page] == pages[page])
            continue;
        uint64_t *versions = quern__row_versions_lane(archetype->row_versions, lane, slot);
        const void *memory = quern__page_memory(&history->store, pages[page]);
        history->copied_bytes += rows * sizeof(uint64_t);
        history->copied_count++;
        quern__row_groups_raise_to(versions, memory, rows);
        if (!quern__history_add_transfer(history, (char *)versions, memory, rows * sizeof(uint64_t)))
            return false;
    }
    return true;
}

static bool has_same_pages(const restore_target *target, uint32_t slot)
{
    return target->base == target->saved ||
           memcmp(quern__saved_pages(target->base, slot), quern__saved_pages(target->saved, slot),
                  target->saved->slot_page_count * sizeof(quern__page)) == 0;
}

/* Reserves rows of an archetype and lists what differs in its chunks. Most chunks are full, have unchanged versions, and
 * share all pages between base and snapshot: these are skipped without checking each column. */
static quern_result prepare_target(const restore *it, uint32_t i)
{
    const restore_target *target = &it->targets[i];
    const quern__versions *versions = &target->archetype->versions;
    const uint64_t rows = quern__archetype_row_count(target->archetype);
    if (target->saved->row_count > rows) {
        const quern_result result = quern__rows_reserve(it->storage, target->archetype,
                                                        (uint32_t)(target->saved->row_count - rows));
        if (result != QUERN_OK) return result;
    }
    /* number of chunks, counted from the first, that are full in the world, in the base and in the snapshot */
    uint32_t count = target->base != NULL ? target->archetype->chunk_count : 0;
    if (count > 0 && count > target->base->chunk_count) count = target->base->chunk_count;
    if (count > target->saved->chunk_count) count = target->saved->chunk_count;
    if (count > 0) count--;
    /* index in versions->items of the first changed version after the chunks checked so far */
    size_t first_changed = 0;
    for (uint32_t slot = 0; slot < target->saved->chunk_count; slot++) {
        const size_t first = (size_t)slot * versions->stride;
        if (slot < count && first_changed <= first)
            first_changed = quern__versions_find_later(
                versions->items, first, (size_t)count * versions->stride, it->history->base_version);
        const bool is_same =
            slot < count && first_changed >= first + versions->stride && has_same_pages(target, slot);
        if (!is_same && !list_chunk(it, i, slot)) return quern__history_fail_memory("a list of columns");
    }
    return QUERN_OK;
}

/* Returns the archetypes of the world in the order of the snapshot. */
static quern__archetype **list_archetypes(const restore *it)
{
    quern__archetype **list =
        (quern__archetype **)(void *)quern__page_memory(&it->history->store, it->list_page);
    for (uint32_t i = 0; i < it->count; i++)
        list[i] = it->targets[i].archetype;
    return list;
}

static quern_result prepare(restore *it)
{
    quern__page_store *store = &it->history->store;
    const uint32_t count = it->snapshot->archetype_count;
    it->targets_page = quern__page_allocate(store, count * sizeof(restore_target));
    it->base_page = quern__page_allocate(store, it->storage->archetypes.count * sizeof(void *));
    it->list_page = quern__page_allocate(store, count * sizeof(quern__archetype *));
    it->targets = (restore_target *)(void *)quern__page_memory(store, it->targets_page);
    if (it->targets_page == 0 || it->base_page == 0 || it->list_page == 0)
        return quern__history_fail_memory("a list of archetypes");
    quern_result result = find_targets(it);
    for (uint32_t i = 0; i < it->count && result == QUERN_OK; i++)
        result = prepare_target(it, i);
    if (result == QUERN_OK) result = quern__prepare_slots(it->history, it->snapshot);
    if (result == QUERN_OK) result = quern__prepare_links(it->history, it->snapshot);
    if (result == QUERN_OK) result = quern__prepare_names(it->history, it->snapshot);
    if (result == QUERN_OK)
        result = quern__prepare_world_state(it->history, it->snapshot, list_archetypes(it));
    return result;
}

static void undo(const restore *it)
{
    const quern_allocator *allocator = &it->storage->allocator;
    for (uint32_t i = 0; i < it->count; i++)
        it->targets[i].archetype->is_removed = it->targets[i].is_made;
    quern__reactions_forget_removed(it->storage);
    for (uint32_t i = 0; i < it->count; i++) {
        quern__archetype *archetype = it->targets[i].archetype;
        if (!it->targets[i].is_made) {
            if (archetype->reserved_count > 0) quern__rows_unreserve(it->storage, archetype);
            continue;
        }
        quern__archetype_release_spare_chunks(archetype, &it->storage->slabs, allocator);
        quern__row_listeners_release(archetype, allocator);
        quern__archetype_release(archetype, allocator);
    }
    quern__entities_cancel_pages(&it->storage->entities, allocator);
    quern__undo_edges(it->history);
    quern__undo_world_state(it->history);
}

/* -------------------------------------------------------------------------------------------- restoring */

/* Destroys values with hooks in columns that will be replaced or removed. */
static void destroy_values(const restore *it, const restore_target *target)
{
    const quern__archetype *archetype = target->archetype;
    if (!archetype->has_destroy) return;
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++) {
        const bool has_rows = has_same_rows(it, target, slot);
        for (uint32_t i = 0; i < archetype->column_count; i++) {
            const quern__column *column = &archetype->columns[i];
            if (column->type->hooks.destroy == NULL) continue;
            if (has_rows && has_same_column(it, target, slot, i)) continue;
            quern__type_destroy(column->type,
                                quern__column_value(column, quern__slot_chunk(&archetype->slots[slot]), 0),
                                archetype->slots[slot].row_count);
        }
    }
}

static void set_row_count(const restore *it, const restore_target *target)
{
    quern__archetype *archetype = target->archetype;
    const uint64_t rows = quern__archetype_row_count(archetype), wanted = target->saved->row_count;
    if (rows < wanted) quern__rows_append_many(it->storage, archetype, (uint32_t)(wanted - rows));
    if (rows <= wanted) return;
    for (uint32_t slot = target->saved->chunk_count; slot < archetype->chunk_count; slot++)
        quern__count_move(archetype, quern__location_make(quern__slot_chunk(&archetype->slots[slot]), 0));
    quern__rows_cut(it->storage, archetype, (uint32_t)(rows - wanted));
}

static void restore_versions(const restore_target *target)
{
    quern__archetype *archetype = target->archetype;
    const quern__saved_archetype *saved = target->saved;
    archetype->identity = saved->identity;
    archetype->empty_since = saved->empty_since;
    if (saved->chunk_count > 0)
        memcpy(archetype->versions.items, quern__saved_versions(saved),
               (size_t)saved->chunk_count * saved->version_count * sizeof(uint64_t));
    for (uint32_t i = 0; archetype->row_bits != NULL && i < archetype->row_bits->count; i++) {
        /* if the snapshot lacks the bit column or the chunk, all bits become 0 */
        const quern__row_bits *row_bits = archetype->row_bits;
        const quern__bit_column *list = quern__saved_bit_columns(saved);
        uint32_t index = 0;
        while (index < saved->bit_column_count &&
               (list[index].kind != row_bits->list[i].kind || list[index].id != row_bits->list[i].id))
            index++;
        const size_t bytes = row_bits->bit_column_words * sizeof(uint64_t);
        for (uint32_t slot = 0; slot < row_bits->slot_capacity; slot++) {
            uint64_t *words = quern__bit_column_words(row_bits, i, slot) - 1;
            const size_t first =
                ((size_t)slot * saved->bit_column_count + index) * row_bits->bit_column_words;
            if (index < saved->bit_column_count && slot < saved->chunk_count)
                memcpy(words, quern__saved_words(saved) + first, bytes);
            else
                memset(words, 0, bytes);
        }
    }
}

static void restore_rows(const restore *it)
{
    quern__history *history = it->history;
    for (uint32_t i = 0; i < it->count; i++)
        destroy_values(it, &it->targets[i]);
    for (uint32_t i = 0; i < it->count; i++)
        set_row_count(it, &it->targets[i]);
    quern__history_run_transfers(history, false);
    for (uint32_t i = 0; i < history->column_restores.count; i++) {
        const quern__column_restore *item = &history->column_restores.items[i];
        const restore_target *target = &it->targets[item->archetype];
        const quern__archetype *archetype = target->archetype;
        const bool is_rows = item->column == QUERN__RESTORE_HANDLES;
        const uint32_t column = is_rows ? target->saved->column_count : item->column;
        const uint32_t rows = quern__saved_row_count(target->saved, item->slot);
        const quern__page page = quern__saved_pages(target->saved, item->slot)[column];
        const char *memory = quern__page_memory(&it->history->store, page);
        quern__chunk *chunk = quern__slot_chunk(&archetype->slots[item->slot]);
        if (is_rows)
            quern__rows_restore(it->storage, archetype, quern__location_make(chunk, 0),
                                (const quern_entity *)(const void *)memory, rows);
        else
            quern__type_copy(archetype->columns[column].type,
                             quern__column_value(&archetype->columns[column], chunk, 0), memory, rows);
    }
    for (uint32_t i = 0; i < it->count; i++)
        restore_versions(&it->targets[i]);
    if (history->column_restores.count > 0) quern__structure_changed(it->storage);
}

static void restore_all(const restore *it)
{
    if (it->order_differs) {
        /* Marks the archetypes that the snapshot lacks as removed, destroys their values and removes
         * their rows. */
        quern__storage *storage = it->storage;
        for (uint32_t i = 0; i < storage->archetypes.count; i++)
            storage->archetypes.items[i]->is_removed = true;
        for (uint32_t i = 0; i < it->count; i++)
            it->targets[i].archetype->is_removed = false;
        for (uint32_t i = 0; i < storage->archetypes.count; i++) {
            quern__archetype *archetype = storage->archetypes.items[i];
            if (!archetype->is_removed) continue;
            quern__archetype_destroy_values(archetype);
            for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
                quern__count_move(archetype,
                                  quern__location_make(quern__slot_chunk(&archetype->slots[slot]), 0));
            if (archetype->chunk_count > 0) quern__rows_cut_all(storage, archetype);
        }
    }
    quern__restore_slots(it->history, it->snapshot);
    if (it->order_differs) quern__world_set_archetypes(it->history->world, list_archetypes(it), it->count);
    restore_rows(it);
    quern__restore_links(it->history, it->snapshot);
    quern__restore_names(it->history, it->snapshot);
    quern__restore_resources(it->history, it->snapshot);
    quern__restore_world_state(it->history, it->snapshot);
}

quern_result quern__history_restore(quern__history *history, const quern__snapshot *snapshot)
{
    restore it = {.history = history, .storage = &history->world->storage, .snapshot = snapshot};
    history->transfers.count = history->column_restores.count = 0;
    history->copied_bytes = history->copied_count = 0;
    const quern_result result = prepare(&it);
    if (result == QUERN_OK)
        restore_all(&it);
    else
        undo(&it);
    quern__page_release(&it.history->store, it.targets_page);
    quern__page_release(&it.history->store, it.base_page);
    quern__page_release(&it.history->store, it.list_page);
    if (result == QUERN_OK) quern__history_set_base(history, snapshot);
    return result;
}
