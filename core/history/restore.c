/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Taking a world back to a snapshot.
 *
 *   prepare   an archetype for each of the snapshot, made if there is none with that layout; room for rows,
 *             records, links and names; a list of what is different. May fail, and is undone then
 *   put back  archetypes that the snapshot lacks lose their rows; slots; values with hooks that go are
 *             destroyed; rows are cut or appended, values copied, handles put in their places; archetypes
 *             come into their order; links, names, resources and the rest */

#include "core/calls/calls_internal.h"
#include "core/history/history_internal.h"
#include "core/storage/change.h"

/* ---------------------------------------------------------------------------------- finding archetypes */

/* Of the i-th archetype of the snapshot. */
typedef struct restore_target {
    quern__archetype *archetype;
    const quern__saved_archetype *saved;
    const quern__saved_archetype *base; /* what live knows of the archetype; NULL: nothing */
    bool is_made;                       /* for this call */
} restore_target;

typedef struct restore {
    quern__history *history;
    quern__storage *storage;
    const quern__snapshot *snapshot;
    quern__page targets_page, base_page, list_page; /* scratch */
    restore_target *targets;
    uint32_t count;      /* of targets that were found or made */
    bool is_other_order; /* archetypes are to be made, to go, or to change places */
} restore;

static bool allocate_scratch(restore *it)
{
    quern__page_store *store = &it->history->store;
    const uint32_t count = it->snapshot->archetype_count;
    it->targets_page = quern__page_allocate(store, count * sizeof(restore_target));
    it->base_page = quern__page_allocate(store, it->storage->archetypes.count * sizeof(void *));
    it->list_page = quern__page_allocate(store, count * sizeof(quern__archetype *));
    it->targets = (restore_target *)(void *)quern__page_memory(store, it->targets_page);
    return it->targets_page != 0 && it->base_page != 0 && it->list_page != 0;
}

static void release_scratch(const restore *it)
{
    quern__page_release(&it->history->store, it->targets_page);
    quern__page_release(&it->history->store, it->base_page);
    quern__page_release(&it->history->store, it->list_page);
}

/* What live knows, by the archetype's index now. */
static const quern__saved_archetype **base_list(const restore *it)
{
    return (const quern__saved_archetype **)(void *)quern__page_memory(&it->history->store, it->base_page);
}

static void list_base(const restore *it)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < it->storage->archetypes.count; i++)
        base_list(it)[i] =
            quern__find_base_archetype(it->history, it->storage->archetypes.items[i], &place);
}

/* The archetype of the world with these components and this layout, or NULL. */
static quern__archetype *find_archetype(const restore *it, const quern__saved_archetype *saved, uint32_t i)
{
    quern__storage *storage = it->storage;
    if (i < storage->archetypes.count && storage->archetypes.items[i]->identity == saved->identity)
        return storage->archetypes.items[i];
    quern__archetype *archetype =
        quern__storage_find_archetype(storage, saved->component_indices, saved->component_count);
    return archetype != NULL && archetype->layout_index == saved->layout_index ? archetype : NULL;
}

static quern_result find_target(restore *it, uint32_t i)
{
    const quern__saved_archetype *saved = quern__saved_archetype_at(it->history, it->snapshot, i);
    quern__archetype *archetype = find_archetype(it, saved, i);
    const bool is_made = archetype == NULL;
    if (is_made) {
        const quern_result result = quern__storage_create_archetype(
            it->storage, saved->component_indices, saved->component_count, saved->layout_index, &archetype);
        if (result != QUERN_OK) return result;
    }
    it->is_other_order |= is_made || archetype->index != i;
    it->targets[it->count++] = (restore_target){.archetype = archetype,
                                                .saved = saved,
                                                .base = is_made ? NULL : base_list(it)[archetype->index],
                                                .is_made = is_made};
    assert(archetype->row_capacity == saved->row_capacity);
    return QUERN_OK;
}

static quern_result find_targets(restore *it)
{
    const uint32_t count = it->snapshot->archetype_count;
    it->is_other_order = it->storage->archetypes.count != count;
    list_base(it);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = find_target(it, i);
    if (result == QUERN_OK && it->is_other_order && !quern__storage_reserve_archetypes(it->storage, count))
        result = quern__history_fail_memory("archetypes");
    return result;
}

/* ---------------------------------------------------------------------------------- what is different */

static uint32_t rows_in(const quern__archetype *archetype, uint32_t slot)
{
    return slot < archetype->chunk_count ? archetype->slots[slot].row_count : 0;
}

/* Whether a chunk has the handles of the snapshot, in the rows that these have; where it has, its columns
 * may be the same, too. */
static bool has_rows(const restore *it, const restore_target *target, uint32_t slot)
{
    const quern__archetype *archetype = target->archetype;
    const uint32_t last = target->saved->column_count, rows = rows_in(archetype, slot);
    return target->base != NULL && slot < target->base->chunk_count && slot < target->saved->chunk_count &&
           rows == quern__saved_row_count(target->saved, slot) &&
           rows == quern__saved_row_count(target->base, slot) &&
           quern__versions_of(&archetype->versions, slot)[0] <= it->history->base_version &&
           quern__saved_pages(target->base, slot)[last] == quern__saved_pages(target->saved, slot)[last];
}

static bool has_column(const restore *it, const restore_target *target, uint32_t slot, uint32_t column)
{
    return quern__versions_of(&target->archetype->versions, slot)[1 + column] <=
               it->history->base_version &&
           quern__saved_pages(target->base, slot)[column] ==
               quern__saved_pages(target->saved, slot)[column];
}

static bool has_lane(const restore *it, const restore_target *target, uint32_t slot, uint32_t lane)
{
    const quern__archetype *archetype = target->archetype;
    const uint32_t part = target->saved->column_count + 1 + lane;
    const uint32_t version_index = archetype->row_versions->lanes[lane].version_index;
    return quern__versions_of(&archetype->versions, slot)[version_index] <= it->history->base_version &&
           quern__saved_pages(target->base, slot)[part] == quern__saved_pages(target->saved, slot)[part];
}

/* The versions of rows for one component, to be put back. */
static bool note_lane(const restore *it, uint32_t i, uint32_t slot, uint32_t lane)
{
    quern__history *history = it->history;
    const restore_target *target = &it->targets[i];
    const size_t bytes = quern__saved_row_count(target->saved, slot) * sizeof(uint64_t);
    history->copied_bytes += bytes;
    history->copied_count++;
    const quern__page page =
        quern__saved_pages(target->saved, slot)[target->saved->column_count + 1 + lane];
    return quern__history_add_transfer(
        history, (char *)quern__row_versions_lane(target->archetype->row_versions, lane, slot),
        quern__page_memory(&history->store, page), bytes);
}

/* A column of a chunk to be put back, of plain bytes as a transfer. */
static bool note_column(const restore *it, uint32_t i, uint32_t slot, uint32_t column)
{
    quern__history *history = it->history;
    const restore_target *target = &it->targets[i];
    const quern__column *place = &target->archetype->columns[column];
    const uint32_t rows = quern__saved_row_count(target->saved, slot);
    history->copied_bytes += (uint64_t)rows * place->size_bytes;
    history->copied_count++;
    if (quern__hooks_exist(&place->type->hooks))
        return quern__history_add_column_restore(history, (quern__column_restore){i, slot, column});
    const quern__page page = quern__saved_pages(target->saved, slot)[column];
    return quern__history_add_transfer(
        history, quern__column_value(place, target->archetype->slots[slot].chunk, 0),
        quern__page_memory(&history->store, page), (size_t)rows * place->size_bytes);
}

static bool note_chunk(const restore *it, uint32_t i, uint32_t slot)
{
    const restore_target *target = &it->targets[i];
    const bool is_known = has_rows(it, target, slot);
    if (!is_known && !quern__history_add_column_restore(
                         it->history, (quern__column_restore){i, slot, QUERN__RESTORE_HANDLES}))
        return false;
    for (uint32_t column = 0; column < target->saved->column_count; column++)
        if (!(is_known && has_column(it, target, slot, column)) && !note_column(it, i, slot, column))
            return false;
    for (uint32_t lane = 0; target->saved->column_count + 1 + lane < target->saved->slot_page_count; lane++)
        if (!(is_known && has_lane(it, target, slot, lane)) && !note_lane(it, i, slot, lane)) return false;
    return true;
}

/* How many slots have all their rows, in the world, in live and in the snapshot. */
static uint32_t full_count(const restore_target *target)
{
    if (target->base == NULL) return 0;
    uint32_t count = target->archetype->chunk_count;
    if (count > target->base->chunk_count) count = target->base->chunk_count;
    if (count > target->saved->chunk_count) count = target->saved->chunk_count;
    return count > 0 ? count - 1 : 0;
}

static bool has_pages(const restore_target *target, uint32_t slot)
{
    return target->base == target->saved ||
           memcmp(quern__saved_pages(target->base, slot), quern__saved_pages(target->saved, slot),
                  target->saved->slot_page_count * sizeof(quern__page)) == 0;
}

/* Most slots have all their rows, and all that the snapshot has of them: nothing was noted of those, and
 * live has the same pages. */
static bool note_chunks(const restore *it, uint32_t i)
{
    const restore_target *target = &it->targets[i];
    const quern__versions *versions = &target->archetype->versions;
    const uint32_t count = full_count(target);
    size_t later = 0; /* the first version that was noted, from the slot on */
    for (uint32_t slot = 0; slot < target->saved->chunk_count; slot++) {
        const size_t first = (size_t)slot * versions->stride;
        if (slot < count && later <= first)
            later = quern__versions_find_later(versions->items, first, (size_t)count * versions->stride,
                                               it->history->base_version);
        const bool is_same = slot < count && later >= first + versions->stride && has_pages(target, slot);
        if (!is_same && !note_chunk(it, i, slot)) return false;
    }
    return true;
}

/* Room for the rows of an archetype, and a list of what is to be put back there. */
static quern_result prepare_target(const restore *it, uint32_t i)
{
    const restore_target *target = &it->targets[i];
    const uint64_t rows = quern__archetype_row_count(target->archetype);
    if (target->saved->row_count > rows) {
        const quern_result result = quern__rows_reserve(it->storage, target->archetype,
                                                        (uint32_t)(target->saved->row_count - rows));
        if (result != QUERN_OK) return result;
    }
    return note_chunks(it, i) ? QUERN_OK : quern__history_fail_memory("a list of columns");
}

/* Those of the snapshot, in its order. */
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
    if (!allocate_scratch(it)) return quern__history_fail_memory("a list of archetypes");
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
    quern__undo_world_state(it->history);
}

/* ----------------------------------------------------------------------------------------- putting back */

/* Those that the snapshot lacks are marked, and lose what they have. */
static void empty_others(const restore *it)
{
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
            quern__count_move(archetype, quern__location_make(archetype->slots[slot].chunk, 0));
        if (archetype->chunk_count > 0) quern__rows_cut_all(storage, archetype);
    }
}

/* Values with hooks that the snapshot has not, or has others of. */
static void destroy_values(const restore *it, const restore_target *target)
{
    const quern__archetype *archetype = target->archetype;
    if (!archetype->has_destroy) return;
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++) {
        const bool is_known = has_rows(it, target, slot);
        for (uint32_t i = 0; i < archetype->column_count; i++) {
            const quern__column *column = &archetype->columns[i];
            if (column->type->hooks.destroy == NULL) continue;
            if (is_known && has_column(it, target, slot, i)) continue;
            quern__type_destroy(column->type, quern__column_value(column, archetype->slots[slot].chunk, 0),
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
        quern__count_move(archetype, quern__location_make(archetype->slots[slot].chunk, 0));
    quern__rows_cut(it->storage, archetype, (uint32_t)(rows - wanted));
}

static void restore_column(const restore *it, const quern__column_restore *place)
{
    const restore_target *target = &it->targets[place->archetype];
    const quern__archetype *archetype = target->archetype;
    const bool is_rows = place->column == QUERN__RESTORE_HANDLES;
    const uint32_t column = is_rows ? target->saved->column_count : place->column;
    const uint32_t rows = quern__saved_row_count(target->saved, place->slot);
    const quern__page page = quern__saved_pages(target->saved, place->slot)[column];
    const char *memory = quern__page_memory(&it->history->store, page);
    quern__chunk *chunk = archetype->slots[place->slot].chunk;
    if (is_rows)
        quern__rows_put_back(it->storage, archetype, quern__location_make(chunk, 0),
                             (const quern_entity *)(const void *)memory, rows);
    else
        quern__type_copy(archetype->columns[column].type,
                         quern__column_value(&archetype->columns[column], chunk, 0), memory, rows);
}

/* The bits of the i-th bit column of the archetype. */
static void put_back_bit_column(const quern__row_bits *row_bits, uint32_t i,
                                const quern__saved_archetype *saved)
{
    const quern__bit_column *list = quern__saved_bit_columns(saved);
    uint32_t place = 0;
    while (place < saved->bit_column_count &&
           (list[place].kind != row_bits->list[i].kind || list[place].id != row_bits->list[i].id))
        place++;
    const size_t bytes = row_bits->bit_column_words * sizeof(uint64_t);
    for (uint32_t slot = 0; slot < row_bits->slot_capacity; slot++) {
        uint64_t *words = quern__bit_column_words(row_bits, i, slot) - 1;
        const size_t first = ((size_t)slot * saved->bit_column_count + place) * row_bits->bit_column_words;
        if (place < saved->bit_column_count && slot < saved->chunk_count)
            memcpy(words, quern__saved_words(saved) + first, bytes);
        else
            memset(words, 0, bytes);
    }
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
    for (uint32_t i = 0; archetype->row_bits != NULL && i < archetype->row_bits->count; i++)
        put_back_bit_column(archetype->row_bits, i, saved);
}

static void restore_rows(const restore *it)
{
    quern__history *history = it->history;
    for (uint32_t i = 0; i < it->count; i++)
        destroy_values(it, &it->targets[i]);
    for (uint32_t i = 0; i < it->count; i++)
        set_row_count(it, &it->targets[i]);
    quern__history_run_transfers(history, false);
    for (uint32_t i = 0; i < history->column_restores.count; i++)
        restore_column(it, &history->column_restores.items[i]);
    for (uint32_t i = 0; i < it->count; i++)
        restore_versions(&it->targets[i]);
    if (history->column_restores.count > 0) quern__structure_changed(it->storage);
}

static void restore_all(const restore *it)
{
    if (it->is_other_order) empty_others(it);
    quern__restore_slots(it->history, it->snapshot);
    if (it->is_other_order) quern__world_set_archetypes(it->history->world, list_archetypes(it), it->count);
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
    release_scratch(&it);
    if (result == QUERN_OK) quern__history_set_base(history, snapshot);
    return result;
}
