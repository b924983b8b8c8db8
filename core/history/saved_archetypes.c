/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves the archetypes of a world: copies what was written to their chunks since the base, and shares
 * all other pages with the base. */

#include "core/history/history_internal.h"

/* ----------------------------------------------------------------------------------- one archetype */

/* An archetype that is being saved. */
typedef struct archetype_save {
    quern__history *history;
    const quern__archetype *archetype;
    const quern__saved_archetype *base; /* the archetype in the base; NULL: the base lacks it */
    quern__saved_archetype *saved;
} archetype_save;

/* Sets the offsets of the arrays in the page of the archetype. Returns the size of the page in bytes. */
static size_t set_offsets(quern__saved_archetype *saved, const quern__archetype *archetype)
{
    size_t offset = quern__align_up(
        sizeof *saved + archetype->component_count * sizeof saved->component_indices[0], sizeof(uint64_t));
    saved->versions_offset = (uint32_t)offset;
    offset += (size_t)saved->chunk_count * saved->version_count * sizeof(uint64_t);
    saved->words_offset = (uint32_t)offset;
    offset +=
        (size_t)saved->chunk_count * saved->bit_column_count * saved->bit_column_words * sizeof(uint64_t);
    saved->bit_columns_offset = (uint32_t)offset;
    offset += saved->bit_column_count * sizeof(quern__bit_column);
    saved->pages_offset = (uint32_t)offset;
    return offset + (size_t)saved->chunk_count * saved->slot_page_count * sizeof(quern__page);
}

static quern__saved_archetype describe(const quern__archetype *archetype)
{
    return (quern__saved_archetype){
        .identity = archetype->identity,
        .empty_since = archetype->empty_since,
        .row_count = quern__archetype_row_count(archetype),
        .layout_index = archetype->layout_index,
        .row_capacity = archetype->row_capacity,
        .chunk_count = archetype->chunk_count,
        .column_count = archetype->column_count,
        .component_count = archetype->component_count,
        .version_count = archetype->versions.stride,
        .slot_page_count = archetype->column_count + 1 +
                           (archetype->row_versions != NULL ? archetype->row_versions->lane_count : 0),
        .bit_column_count = archetype->row_bits != NULL ? archetype->row_bits->count : 0,
        .bit_column_words = archetype->row_bits != NULL ? archetype->row_bits->bit_column_words : 0,
    };
}

/* Whether nothing in the archetype has changed since the base. Row bits of reactions update no version,
 * so an archetype with row bits always counts as changed. Its columns may still be shared. */
static bool is_unchanged(const quern__history *history, const quern__archetype *archetype,
                         const quern__saved_archetype *base)
{
    if (base == NULL || archetype->row_bits != NULL || base->bit_column_count > 0 ||
        base->chunk_count != archetype->chunk_count || base->empty_since != archetype->empty_since ||
        base->row_count != quern__archetype_row_count(archetype))
        return false;
    const size_t count = (size_t)archetype->chunk_count * archetype->versions.stride;
    return quern__versions_find_later(archetype->versions.items, 0, count, history->base_version) == count;
}

/* Returns the size in bytes of the page for a column, the handles or a lane. */
static size_t page_bytes(const quern__archetype *archetype, uint32_t page_index)
{
    const size_t value_bytes =
        page_index < archetype->column_count ? archetype->columns[page_index].size_bytes : sizeof(uint64_t);
    return value_bytes * archetype->row_capacity;
}

/* Returns the index, among the versions of a chunk, of the version of a column or lane. */
static uint32_t version_of(const quern__archetype *archetype, uint32_t page_index)
{
    if (page_index < archetype->column_count) return 1 + page_index;
    return archetype->row_versions->lanes[page_index - archetype->column_count - 1].version_index;
}

/* Finds the memory to save in a page of a chunk: a column, the handles or a lane. Returns its address,
 * its size in bytes for the rows in use, and the type if its values have hooks, otherwise NULL. */
static const char *find_source(const quern__archetype *archetype, uint32_t slot, uint32_t page_index,
                               size_t *out_bytes, const quern__type **out_type)
{
    const quern__chunk *chunk = archetype->slots[slot].chunk;
    const uint32_t rows = archetype->slots[slot].row_count;
    *out_type = NULL;
    *out_bytes = rows * sizeof(uint64_t);
    if (page_index == archetype->column_count)
        return (const char *)quern__archetype_entities(archetype, chunk);
    if (page_index > archetype->column_count)
        return (const char *)quern__row_versions_lane(archetype->row_versions,
                                                      page_index - archetype->column_count - 1, slot);
    const quern__column *it = &archetype->columns[page_index];
    *out_bytes = (size_t)rows * it->size_bytes;
    if (quern__hooks_exist(&it->type->hooks)) *out_type = it->type;
    return quern__column_value(it, chunk, 0);
}

/* Saves one page of a chunk. Values with hooks are copied immediately by the calling thread; other
 * values are copied by a transfer. */
static quern_result save_page(archetype_save *it, uint32_t slot, uint32_t column, quern__page *out_page)
{
    quern__history *history = it->history;
    size_t bytes;
    const quern__type *type;
    const char *source = find_source(it->archetype, slot, column, &bytes, &type);
    if (type != NULL && type->hooks.copy == NULL &&
        (type->hooks.move != NULL || type->hooks.destroy != NULL))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has a move or destroy hook and no copy hook, so a snapshot cannot "
            "copy its values: add a copy hook, or store such values outside of the world",
            type->name);
    *out_page = quern__page_allocate(&history->store, page_bytes(it->archetype, column));
    if (*out_page == 0) return quern__history_fail_memory("a column of a chunk");
    history->copied_bytes += bytes;
    history->copied_count++;
    char *target = quern__page_memory(&history->store, *out_page);
    if (type == NULL)
        return quern__history_add_transfer(history, target, source, bytes)
                   ? QUERN_OK
                   : quern__history_fail_memory("a list of columns");
    quern__page_entry *entry = &history->store.pages.items[*out_page];
    entry->type = type;
    entry->value_count = it->archetype->slots[slot].row_count;
    quern__type_copy(type, target, source, entry->value_count);
    return QUERN_OK;
}

/* Checks, in builds with checks, that a shared page has the values of the world. It fails if values were
 * written without updating a version. */
static quern_result check_shared(const archetype_save *it, uint32_t slot, uint32_t column, quern__page page)
{
    size_t bytes;
    const quern__type *type;
    const char *source = find_source(it->archetype, slot, column, &bytes, &type);
    if (type != NULL || memcmp(quern__page_memory(&it->history->store, page), source, bytes) == 0)
        return QUERN_OK;
    const char *name = column < it->archetype->column_count ? it->archetype->columns[column].type->name
                                                            : "handle or version";
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "values of '%s' were written through a pointer from before the last save or restore, so the change "
        "was not recorded: get the pointer again after each save and restore",
        name);
}

static quern_result save_slot(archetype_save *it, uint32_t slot)
{
    const quern__archetype *archetype = it->archetype;
    const uint64_t *versions = quern__versions_of(&archetype->versions, slot);
    const uint64_t base = it->history->base_version;
    const bool is_known = it->base != NULL && slot < it->base->chunk_count && versions[0] <= base;
    quern__page *pages = quern__saved_pages(it->saved, slot);
    const quern__page *base_pages = is_known ? quern__saved_pages(it->base, slot) : NULL;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->saved->slot_page_count && result == QUERN_OK; i++) {
        const bool is_shared =
            is_known && (i == archetype->column_count || versions[version_of(archetype, i)] <= base);
        if (is_shared)
            pages[i] = quern__page_acquire(&it->history->store, base_pages[i]);
        else
            result = save_page(it, slot, i, &pages[i]);
        if (QUERN_CHECKS && is_shared) result = check_shared(it, slot, i, pages[i]);
    }
    return result;
}

/* Shares all pages of the chunks from `begin` to `end` - 1, in which nothing has changed. */
static void share_slots(const archetype_save *it, uint32_t begin, uint32_t end)
{
    quern__page *pages = quern__saved_pages(it->saved, begin);
    const quern__page *base_pages = quern__saved_pages(it->base, begin);
    const size_t count = (size_t)(end - begin) * it->saved->slot_page_count;
    for (size_t i = 0; i < count; i++)
        pages[i] = quern__page_acquire(&it->history->store, base_pages[i]);
}

/* Returns the first chunk in [slot, end) in which something has changed since the base, or `end`. */
static uint32_t find_changed(const archetype_save *it, uint32_t slot, uint32_t end)
{
    const quern__versions *versions = &it->archetype->versions;
    return (uint32_t)(quern__versions_find_later(versions->items, (size_t)slot * versions->stride,
                                                 (size_t)end * versions->stride,
                                                 it->history->base_version) /
                      versions->stride);
}

/* Saves all chunks. Builds with checks compare every shared page, so they skip no chunk. */
static quern_result save_slots(archetype_save *it)
{
    const uint32_t count = it->archetype->chunk_count;
    uint32_t known_count = QUERN_CHECKS || it->base == NULL ? 0 : it->base->chunk_count;
    if (known_count > count) known_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t slot = 0; slot < count && result == QUERN_OK; slot++) {
        if (slot < known_count) {
            const uint32_t noted = find_changed(it, slot, known_count);
            share_slots(it, slot, noted);
            slot = noted;
        }
        if (slot < count) result = save_slot(it, slot);
    }
    return result;
}

static void copy_bit_columns(const archetype_save *it)
{
    const quern__row_bits *row_bits = it->archetype->row_bits;
    if (row_bits == NULL) return;
    memcpy(quern__saved_bit_columns(it->saved), row_bits->list, row_bits->count * sizeof *row_bits->list);
    memcpy(quern__saved_words(it->saved), row_bits->words,
           (size_t)it->saved->chunk_count * row_bits->slot_words * sizeof(uint64_t));
}

static quern_result build_one(quern__history *history, const quern__archetype *archetype,
                              const quern__saved_archetype *base, quern__page *out_page)
{
    quern__saved_archetype described = describe(archetype);
    const size_t bytes = set_offsets(&described, archetype);
    if (bytes > UINT32_MAX)
        return quern__history_fail_memory("an archetype with more than 4 GiB of chunk data");
    *out_page = quern__page_allocate(&history->store, bytes);
    if (*out_page == 0) return quern__history_fail_memory("an archetype");
    archetype_save it = {history, archetype, base, (void *)quern__page_memory(&history->store, *out_page)};
    *it.saved = described;
    memcpy(it.saved->component_indices, archetype->component_indices,
           archetype->component_count * sizeof archetype->component_indices[0]);
    if (archetype->chunk_count > 0) {
        memcpy(quern__saved_versions(it.saved), archetype->versions.items,
               (size_t)archetype->chunk_count * it.saved->version_count * sizeof(uint64_t));
        memset(quern__saved_pages(it.saved, 0), 0,
               (size_t)archetype->chunk_count * it.saved->slot_page_count * sizeof(quern__page));
    }
    copy_bit_columns(&it);
    return save_slots(&it);
}

/* ---------------------------------------------------------------------------------- all archetypes */

quern_result quern__build_archetypes(quern__history *history, quern__snapshot *snapshot)
{
    const quern__storage *storage = &history->world->storage;
    const uint32_t count = storage->archetypes.count;
    snapshot->archetypes = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (snapshot->archetypes == 0) return quern__history_fail_memory("a list of archetypes");
    snapshot->archetype_count = count;
    memset(quern__pages_in(history, snapshot->archetypes), 0, count * sizeof(quern__page));
    quern_result result = QUERN_OK;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__saved_archetype *base = quern__find_base_archetype(history, archetype, &cursor);
        quern__page page = 0;
        if (!QUERN_CHECKS && is_unchanged(history, archetype, base))
            page = quern__page_acquire(&history->store,
                                       quern__pages_in(history, history->base.archetypes)[cursor - 1]);
        else
            result = build_one(history, archetype, base, &page);
        quern__pages_in(history, snapshot->archetypes)[i] = page;
    }
    return result;
}

static void release_one(quern__history *history, quern__page page)
{
    const quern__saved_archetype *saved = (void *)quern__page_memory(&history->store, page);
    if (history->store.reference_counts.items[page] == 1) {
        const size_t count = (size_t)saved->chunk_count * saved->slot_page_count;
        const quern__page *pages = quern__saved_pages(saved, 0);
        for (size_t i = count; i-- > 0;) /* in reverse order: see page_store.h */
            quern__page_release(&history->store, pages[i]);
    }
    quern__page_release(&history->store, page);
}

void quern__release_saved_archetypes(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__page *pages = quern__pages_in(history, snapshot->archetypes);
    for (uint32_t i = snapshot->archetype_count; i-- > 0;)
        if (pages[i] != 0) release_one(history, pages[i]);
}
