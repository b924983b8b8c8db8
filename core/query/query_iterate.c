/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Iteration over the matches of a query: selection of rows, counting, the list of chunks that repeated iterations
 * use, change filters, and the iterator. */
#include "core/query/query_internal.h"

#include "core/world/world_internal.h"

/* ------------------------------------------------------------------------------------------- masks */

/* Sets the mask to the rows of the view. */
static void begin_mask(const quern_view *view, quern__row_mask *mask)
{
    quern__row_mask_all(mask, view->first_row + view->count);
    for (uint32_t i = 0; i < view->first_row / 64; i++)
        mask->words[i] = 0;
    if (view->first_row % 64 != 0)
        mask->words[view->first_row / 64] &= ~UINT64_C(0) << view->first_row % 64;
}

static bool has_rows(const quern__row_mask *mask)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < mask->word_count; i++)
        any |= mask->words[i];
    return any != 0;
}

/* Returns a bit for each of `count` rows (at most 64), set if its version is newer than seen_version. Rows are
 * tested in groups of eight, because in most groups no row is newer. */
static uint64_t find_newer(const uint64_t *versions, uint32_t count, uint64_t seen_version)
{
    uint64_t newer = 0;
    uint32_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t differences = 0;
        for (uint32_t k = 0; k < 8; k++)
            differences |= seen_version - versions[i + k];
        if (differences >> 63 == 0) continue;
        for (uint32_t k = 0; k < 8; k++)
            newer |= (seen_version - versions[i + k]) >> 63 << (i + k);
    }
    for (; i < count; i++)
        newer |= (seen_version - versions[i]) >> 63 << i;
    return newer;
}

enum { WORD_GROUPS = 64 / QUERN__ROW_GROUP }; /* groups of the rows of a mask word */

/* Like find_newer, for `count` rows from a multiple of 64 on, of which moves brought none since seen_version: reads
 * only groups that are newer. */
static uint64_t find_newer_in_groups(const uint64_t *lane, uint32_t row, uint32_t count,
                                     uint64_t seen_version)
{
    const uint64_t *groups = lane - 1 - row / QUERN__ROW_GROUP;
    uint64_t newer = 0, differences = 0;
    if (count == 64) {
        for (int32_t i = 0; i < WORD_GROUPS; i++)
            differences |= seen_version - groups[-i];
        if (differences >> 63 == 0) return 0;
    }
    for (uint32_t i = 0; i < count; i += QUERN__ROW_GROUP) {
        if (groups[-(int32_t)(i / QUERN__ROW_GROUP)] <= seen_version) continue;
        const uint32_t left = count - i < QUERN__ROW_GROUP ? count - i : QUERN__ROW_GROUP;
        for (uint32_t k = 0; k < left; k++)
            newer |= (seen_version - lane[row + i + k]) >> 63 << (i + k);
    }
    return newer;
}

/* Selects the rows that pass the change filters. Row versions are read only if the chunk's version is newer than
 * seen_version. */
static quern__selection select_changed(const quern__query *query, const quern_view *view,
                                       uint64_t seen_version, quern__row_mask *mask)
{
    quern__row_mask newer = {.word_count = 0};
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_view_column *column = &view->columns[i];
        if (!query->terms[i].changed || !column->present) continue;
        assert(view->versions != NULL); /* a query with change filters keeps versions */
        if (view->versions[0] <= seen_version && view->versions[column->version_index] <= seen_version)
            continue;
        if ((query->row_filters >> i & 1) == 0) return QUERN__SELECT_ALL;
        if (newer.word_count == 0) {
            begin_mask(view, mask);
            newer.word_count = mask->word_count;
            memset(newer.words, 0, newer.word_count * sizeof *newer.words);
        }
        /* whole words: the mask may get rows of the chunk before the view, too */
        const uint64_t *versions = view->row_versions + view->row_offsets[column->version_index];
        const uint32_t end = view->first_row + view->count;
        const bool has_moved_rows = view->versions[0] > seen_version;
        for (uint32_t row = view->first_row / 64 * 64; row < end; row += 64) {
            const uint32_t count = end - row < 64 ? end - row : 64;
            newer.words[row / 64] |= has_moved_rows
                                         ? find_newer(versions + row, count, seen_version)
                                         : find_newer_in_groups(versions, row, count, seen_version);
        }
    }
    if (newer.word_count == 0) return QUERN__SELECT_NONE;
    quern__row_mask_keep(mask, newer.words);
    const uint32_t count = quern__row_mask_count(mask);
    if (count == 0) return QUERN__SELECT_NONE;
    return count == view->count ? QUERN__SELECT_ALL : QUERN__SELECT_SOME;
}

/* Selects the rows of a view that pass the query's row filters (changed after seen_version) and its terms on
 * enabled or disabled components. Up-terms are not applied. Writes *out_mask only if it returns
 * QUERN__SELECT_SOME. */
static quern__selection rows_select(const quern__query *query, const quern_view *view,
                                    uint64_t seen_version, quern__row_mask *out_mask)
{
    quern__selection selection = QUERN__SELECT_ALL;
    if (query->row_filters != 0 && seen_version != QUERN__SEEN_NOTHING)
        selection = select_changed(query, view, seen_version, out_mask);
    if (selection == QUERN__SELECT_NONE) return QUERN__SELECT_NONE;
    bool leaves_some_out = selection == QUERN__SELECT_SOME;
    if (view->row_bits == NULL)
        return selection; /* no component can be disabled, or the rows are copies of removed rows */
    for (uint32_t i = 0; i < query->row_term_count; i++) {
        const uint32_t term = query->row_terms[i];
        const quern_view_column *column = &view->columns[term];
        const uint64_t *bit_column =
            view->row_bits + (column->present - 2u) * (size_t)view->bit_column_words;
        const bool wants_disabled = query->terms[term].enabled == QUERN_TERM_DISABLED;
        if (*bit_column == 0 && wants_disabled) return QUERN__SELECT_NONE;
        if (*bit_column == 0) continue;
        if (!leaves_some_out) begin_mask(view, out_mask);
        leaves_some_out = true;
        if (wants_disabled)
            quern__row_mask_keep(out_mask, bit_column + 1);
        else
            quern__row_mask_drop(out_mask, bit_column + 1);
    }
    if (!leaves_some_out) return QUERN__SELECT_ALL;
    return has_rows(out_mask) ? QUERN__SELECT_SOME : QUERN__SELECT_NONE;
}

static void set_mask(quern_view *view, const quern__row_mask *mask)
{
    view->rows = mask->words;
    view->row_words = (uint16_t)mask->word_count;
}

/* Points the view at the next range of the mask from row *next on, and advances *next. If the query has
 * whole_chunks, the view instead keeps all rows and refers to the mask, which must outlive it. Returns false if
 * there is no further range. */
static bool rows_next(const quern__query *query, const quern__row_mask *mask, uint32_t *next,
                      quern_view *view)
{
    uint32_t first, count;
    if (query->whole_chunks) {
        if (*next == UINT32_MAX) return false;
        *next = UINT32_MAX;
        set_mask(view, mask);
        return true;
    }
    if (!quern__row_mask_next(mask, next, &first, &count)) return false;
    quern__view_point(view, first, count);
    return true;
}

/* Removes the rows that up-terms leave out from the selection of a view. If there are such rows, writes the
 * remaining ones to *mask and makes the view refer to it; otherwise the view does not change. Returns false
 * if no row remains. Precondition: the query has whole_chunks. */
static bool rows_apply_ups(const quern__query *query, quern__up_rows *rows, quern_view *view,
                           quern__row_mask *mask)
{
    quern_view range = *view;
    quern__row_mask selected = {.word_count = 0};
    if (!rows->leaves_some_out) return true;
    begin_mask(view, &selected);
    memset(selected.words, 0, selected.word_count * sizeof *selected.words);
    while (quern__up_next(query, rows, &range))
        for (uint32_t row = range.first_row; row < range.first_row + range.count; row++)
            selected.words[row / 64] |= UINT64_C(1) << row % 64;
    if (view->rows != NULL) quern__row_mask_keep(&selected, view->rows);
    *mask = selected;
    set_mask(view, mask);
    return has_rows(mask);
}

/* ------------------------------------------------------------------------------------------- calls */

/* Calls the callback for the rows of a view that the up-terms select. */
static void call_rows(const quern_view *rows_view, const void **addresses, quern_view_callback *callback)
{
    const quern__query *query = rows_view->query;
    quern_view view = *rows_view;
    quern__row_mask mask;
    if (query->up_count == 0) {
        callback(view.context, &view);
        return;
    }
    quern__up_rows rows = quern__up_find(query, addresses, &view);
    if (query->whole_chunks) {
        if (rows_apply_ups(query, &rows, &view, &mask)) callback(view.context, &view);
        return;
    }
    while (quern__up_next(query, &rows, &view))
        callback(view.context, &view);
}

void quern__rows_call(const quern_view *chunk_view, uint64_t seen_version, const void **addresses,
                      quern_view_callback *callback)
{
    const quern__query *query = chunk_view->query;
    quern__row_mask mask;
    const quern__selection selection = rows_select(query, chunk_view, seen_version, &mask);
    if (selection == QUERN__SELECT_NONE) return;
    if (selection == QUERN__SELECT_ALL) {
        if (query->up_count == 0)
            callback(chunk_view->context, chunk_view);
        else
            call_rows(chunk_view, addresses, callback);
        return;
    }
    quern_view view = *chunk_view;
    for (uint32_t next = 0; rows_next(query, &mask, &next, &view);)
        call_rows(&view, addresses, callback);
}

/* ------------------------------------------------------------------------------------------- count */

uint64_t quern__rows_count_range(const quern__query *query, const quern__query_match *match,
                                 uint32_t chunk_index, uint32_t first_row, uint32_t count)
{
    quern_view view = {0};
    quern__row_mask mask = {.word_count = 0};
    quern__view_set(&view, query, match, &match->archetype->slots[chunk_index]);
    quern__view_point(&view, first_row, count);
    const quern__selection selection = rows_select(query, &view, QUERN__SEEN_NOTHING, &mask);
    if (selection == QUERN__SELECT_NONE) return 0;
    if (selection == QUERN__SELECT_ALL) begin_mask(&view, &mask);
    if (query->ups == NULL || !query->ups->has_required) return quern__row_mask_count(&mask);
    uint64_t selected_count = 0;
    const quern__chunk *chunk = quern__slot_chunk(&match->archetype->slots[chunk_index]);
    for (uint32_t row = first_row; row < first_row + count; row++)
        if ((mask.words[row / 64] >> row % 64 & 1) != 0)
            selected_count += quern__up_selects(query, match->archetype, quern__location_make(chunk, row));
    return selected_count;
}

/* Returns the number of selected rows in all matches. Change filters are not applied. */
static uint64_t rows_count(const quern__query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        for (uint32_t k = 0; k < match->archetype->chunk_count; k++)
            count += quern__rows_count_range(query, match, k, 0, match->archetype->slots[k].row_count);
    }
    return count;
}

/* Returns the number of rows that the query selects; 0, with a message, if there is no memory for the list. */
static uint64_t target_count(const quern__query *query)
{
    if (quern__in_call(quern__target_list(query), "quern_query_count") != QUERN_OK) return 0;
    if (!query->selects_rows) return query->target->rows.count;
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->target->ranges.count; i++) {
        const quern__target_range *range = &query->target->ranges.items[i];
        count += quern__rows_count_range(query, &query->matches.items[range->match], range->chunk_index,
                                         range->first_row, range->count);
    }
    return count;
}

uint64_t quern_query_count(quern_query *query)
{
    if (query == NULL) {
        quern__fail_null(__func__, "query");
        return 0;
    }
    if (quern__world_check_unlocked(query->world, __func__) != QUERN_OK ||
        quern__in_call(quern__query_refresh(query), __func__) != QUERN_OK)
        return 0;
    if (query->target != NULL) return target_count(query);
    if (query->row_term_count > 0 || (query->ups != NULL && query->ups->has_required))
        return rows_count(query);
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += quern__archetype_row_count(query->matches.items[i].archetype);
    return count;
}

/* ------------------------------------------------------------------------------------------- iteration */

/* Iteration over a query. It follows the list of chunks if there is one. It goes from match to match if there
 * is no list, if the query has change filters, or if terms select single rows. For a query with a target
 * term, it goes through the ranges of that term (query_internal.h). */

enum {
    PREFETCH_MATCHES = 4,
    /* Iterations over less data find all of it in the L2 cache, where prefetching gains nothing. */
    CACHED_BYTES = 256 * 1024,
    CACHED_CHUNKS = CACHED_BYTES / QUERN__CHUNK_BYTES,
    /* A chunk with fewer rows is processed before a prefetch of the next one would complete. */
    FEW_ROWS = 64
};

/* -------------------------------------------------------------------------------------- the list */

static uint64_t count_chunks(const quern__query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += query->matches.items[i].archetype->chunk_count;
    return count;
}

/* Builds the list of chunks. If out of memory, there is no list, and iterations go from match to match. */
static void list_entries(quern__query *query)
{
    const uint64_t count = count_chunks(query);
    query->entries_version = QUERN__NO_VERSION;
    query->entries.count = 0;
    if (count > UINT32_MAX - QUERN__PREFETCH_ENTRIES ||
        !quern__array_reserve(&query->storage->allocator, &query->entries,
                              (uint32_t)count + QUERN__PREFETCH_ENTRIES))
        return;
    uint64_t bytes = 0;
    bool any_tracks = false;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        uint32_t row_bytes = 0; /* that the terms access */
        for (uint32_t k = 0; k < query->term_count; k++)
            if (match->columns[k].access != QUERN_ACCESS_NONE) row_bytes += match->columns[k].size_bytes;
        bytes += quern__archetype_row_count(match->archetype) * row_bytes;
        for (uint32_t k = 0; k < match->archetype->chunk_count; k++) {
            const quern__chunk_slot *slot = &match->archetype->slots[k];
            quern_view view;
            quern__view_set_chunk(&view, match->archetype, slot);
            query->entries.items[query->entries.count] = (quern__chunk_entry){
                .count = slot->row_count,
                .ordinal = query->entries.count,
                .entities = view.entities,
                .run_shift = view.run_shift,
                .chunk_row = view.chunk_row,
                .memory = view.memory,
                .chunk = quern__slot_chunk(slot),
                .columns = match->columns,
                .tracking_archetype = match->archetype->tracks_changes ? match->archetype : NULL,
                .slot = k,
                .is_plain = true,
            };
            any_tracks |= query->entries.items[query->entries.count++].tracking_archetype != NULL;
        }
    }
    for (uint32_t i = 0; i < query->entries.count && any_tracks; i++)
        query->entries.items[i].is_plain = false;
    for (uint32_t i = 0; i < QUERN__PREFETCH_ENTRIES && count > 0; i++)
        query->entries.items[count + i] = query->entries.items[count - 1];
    /* each chunk with many rows that begins a run is prefetched while the previous entry is visited, unless all columns
     * fit a cache */
    for (uint32_t i = 1; i < query->entries.count && bytes > CACHED_BYTES; i++) {
        if (query->entries.items[i].count < FEW_ROWS || query->entries.items[i].chunk_row != 0) continue;
        query->entries.items[i - 1].fetches_next = true;
        query->entries.items[i - 1].is_plain = false;
    }
    query->entries_version = query->storage->structure_version;
}

void quern__query_attend(quern_query_iterator *iterator, const quern__chunk_entry *entry)
{
    quern__view_set_change_data(&iterator->view, entry->tracking_archetype, entry->slot);
    if (entry->fetches_next) quern__query_prefetch_next(iterator->query, entry);
}

quern_result quern__query_list(quern__query *query)
{
    if (query->target != NULL) return quern__target_list(query);
    if (query->entries_version != query->storage->structure_version) list_entries(query);
    if (query->entries_version == query->storage->structure_version) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the %llu chunks of a query",
                       (unsigned long long)count_chunks(query));
}

/* Without a structural change the list keeps its length, so its memory suffices and does not move. */
void quern__query_relist(quern__query *query)
{
    if (query->entries_version == query->storage->structure_version) list_entries(query);
}

/* --------------------------------------------------------------------------------------- filters */

bool quern__query_passes_filters(const quern__query *query, const quern_view_column *columns,
                                 const uint64_t *versions, uint64_t seen_version)
{
    if (versions == NULL) return false;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].changed && columns[i].present &&
            (versions[0] > seen_version || versions[columns[i].version_index] > seen_version))
            return true;
    return false;
}

/* An iteration with filters writes with the version at which it began, so its own writes are not new to the next
 * one. If another query with filters has begun an iteration since, the current version is used instead. The
 * writes are then new to all queries, because seeing a change twice is better than missing it. */
uint64_t quern__query_write_version(const quern_query *query)
{
    const uint64_t clock = query->storage->clock;
    const bool is_latest_iteration = query->filter_count > 0 && query->seen_version + 1 == clock;
    return is_latest_iteration ? query->seen_version : clock;
}

/* ------------------------------------------------------------------------------------- iteration */

/* Points the iterator at the list of chunks. Builds the list for the second iteration over one structure,
 * because a third may follow. */
static void use_entries(quern__query *query, quern_query_iterator *iterator)
{
    const uint64_t version = query->storage->structure_version;
    if (query->filter_count > 0 || query->selects_rows || query->target != NULL || query->order != NULL)
        return;
    if (query->iterated_version == version && query->entries_version != version) list_entries(query);
    query->iterated_version = version;
    if (query->entries_version != version || query->entries.count == 0) return;
    iterator->next_entry = query->entries.items;
    iterator->end_entry = query->entries.items + query->entries.count;
}

/* The store is relaxed: an iteration belongs to one thread. */
quern_query_iterator quern_query_iterate(quern_query *query)
{
    quern_query_iterator iterator;
    memset(&iterator, 0, offsetof(quern_query_iterator, next_row));
    iterator.query = query;
    iterator.view.query = query;
    iterator.next_row = UINT32_MAX;
    if (query == NULL) {
        iterator.result = quern__fail_null("quern_query_iterate", "query");
        return iterator;
    }
    atomic_store_explicit(&query->accessor.refusal_count, 0, memory_order_relaxed);
    iterator.current_version = &query->storage->structure_version;
    iterator.expected_version = query->storage->structure_version;
    iterator.view.structure = (uint32_t)iterator.expected_version;
    iterator.is_locked = &query->world->locked;
    iterator.view.term_count = query->term_count;
    iterator.result = quern__world_check_unlocked(query->world, "quern_query_iterate");
    if (iterator.result == QUERN_OK)
        iterator.result = quern__in_call(quern__query_refresh(query), "quern_query_iterate");
    if (iterator.result == QUERN_OK && query->target != NULL)
        iterator.result = quern__in_call(quern__target_begin(&iterator), "quern_query_iterate");
    if (iterator.result == QUERN_OK && query->order != NULL) {
        iterator.result = quern__in_call(quern__order_refresh(query, true), "quern_query_iterate");
        iterator.chunk_index = quern__order_list_number(query);
    }
    if (iterator.result == QUERN_OK && query->up_count > 0)
        iterator.result = quern__in_call(quern__ups_begin_iteration(&iterator), "quern_query_iterate");
    if (iterator.result == QUERN_OK) use_entries(query, &iterator);
    /* the application may hold writable columns: views of an iteration stay usable while frames run */
    for (uint32_t i = 0; QUERN_CHECKS && iterator.result == QUERN_OK && i < query->term_count; i++)
        if (query->terms[i].access == QUERN_ACCESS_WRITE)
            quern__storage_note_pointer_given(query->storage,
                                              quern__component_index(query->terms[i].component));
    iterator.seen_version = query->seen_version;
    if (iterator.result == QUERN_OK && query->filter_count > 0)
        query->seen_version = query->storage->clock++;
    return iterator;
}

quern_result quern__query_prepare_inside(quern__query *query, uint32_t worker_count)
{
    const bool is_listed =
        query->target != NULL || (query->filter_count == 0 && !query->selects_rows && query->order == NULL);
    const quern_result result =
        query->up_count > 0 ? quern__ups_reserve_pools(query, worker_count) : QUERN_OK;
    return result == QUERN_OK && is_listed ? quern__query_list(query) : result;
}

/* The list of chunks, or of a target's rows, is that of quern__query_prepare_inside: nothing is built here. */
void quern__query_iterate_inside(quern__query *query, const quern__inside *inside,
                                 quern_query_iterator *out_iterator)
{
    static const bool never_locked = false; /* the frame that has locked the world runs the callback */
    quern_query_iterator *it = out_iterator;
    memset(it, 0, offsetof(quern_query_iterator, next_row));
    it->query = query;
    it->view.query = query;
    it->view.context = inside->context;
    it->view.version = inside->write_version;
    it->view.term_count = query->term_count;
    it->view.structure = (uint32_t)query->storage->structure_version;
    it->next_row = UINT32_MAX;
    it->current_version = &query->storage->structure_version;
    it->expected_version = query->storage->structure_version;
    it->is_locked = &never_locked;
    it->seen_version = inside->seen_version;
    if (query->target != NULL)
        it->chunk_index = query->target->list_number;
    else if (query->order != NULL)
        it->chunk_index = quern__order_list_number(query);
    else if (query->filter_count == 0 && !query->selects_rows && query->entries.count > 0) {
        it->next_entry = query->entries.items;
        it->end_entry = query->entries.items + query->entries.count;
    }
    if (query->up_count > 0) quern__ups_begin_inside(it, inside->worker_index);
}

/* Prefetches the archetype and the first chunk of later matches. With many small archetypes, each would cost a
 * cache miss otherwise, because the hardware prefetcher cannot predict their addresses. */
static void prefetch_ahead(const quern__query *query, uint32_t match_index)
{
    if (match_index + 2 * PREFETCH_MATCHES >= query->matches.count) return;
    QUERN__PREFETCH(query->matches.items[match_index + 2 * PREFETCH_MATCHES].archetype);
    const quern__query_match *match = &query->matches.items[match_index + PREFETCH_MATCHES];
    if (match->archetype->chunk_count == 0) return;
    const char *run = match->archetype->slots[0].run;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (match->columns[i].access != QUERN_ACCESS_NONE)
            QUERN__PREFETCH(run +
                            ((size_t)match->columns[i].offset_bytes << match->archetype->shape.shift));
}

/* Returns the first chunk of a match, from the given one on, that the change filters select; the number of chunks
 * if there is none. Reads nothing but versions, because most chunks are skipped if few rows change. */
static uint32_t find_changed(const quern__query *query, const quern__query_match *match, uint32_t chunk,
                             uint64_t seen_version)
{
    const uint32_t chunk_count = match->archetype->chunk_count;
    const quern__versions *all = &match->archetype->versions;
    uint32_t indices[QUERN_MAX_TERMS] = {0},
             index_count = 0; /* index 0 is the version of the chunk's rows */
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].changed && match->columns[i].present)
            indices[index_count++] = match->columns[i].version_index;
    if (all->items == NULL || index_count == 0) return chunk_count;
    const uint64_t *versions = quern__versions_of(all, chunk);
    const uint32_t first = indices[0], second = indices[1];
    for (; chunk < chunk_count; chunk++, versions += all->stride) {
        bool is_new = (versions[0] > seen_version) | (versions[first] > seen_version) |
                      (versions[second] > seen_version);
        for (uint32_t i = 2; i < index_count; i++)
            is_new |= versions[indices[i]] > seen_version;
        if (is_new) break;
    }
    return chunk;
}

/* Advances to the next chunk that the change filters select, in this match or a later one. */
static bool advance(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    if (query->target != NULL) return quern__target_next(iterator);
    if (query->order != NULL) return quern__order_next(iterator);
    for (; iterator->match_index < query->matches.count;
         iterator->match_index++, iterator->chunk_index = 0) {
        const quern__query_match *match = &query->matches.items[iterator->match_index];
        if (iterator->chunk_index == 0) prefetch_ahead(query, iterator->match_index);
        if (query->filter_count > 0)
            iterator->chunk_index =
                find_changed(query, match, iterator->chunk_index, iterator->seen_version);
        if (iterator->chunk_index < match->archetype->chunk_count) {
            const quern__chunk_slot *slot = &match->archetype->slots[iterator->chunk_index++];
            quern__view_set(&iterator->view, query, match, slot);
            if (match->archetype->chunk_count > CACHED_CHUNKS &&
                iterator->chunk_index < match->archetype->chunk_count) {
                if (slot[1].first_row == 0)
                    quern__query_prefetch_columns(
                        query, match->columns,
                        (quern__run_place){.memory = slot[1].run, .shift = match->archetype->shape.shift},
                        slot[1].row_count);
            }
            iterator->view.ordinal = iterator->view_count++;
            return true;
        }
    }
    return false;
}

/* Returns whether the iteration still has its addresses: no later iteration has reused them. */
static inline bool ups_owns_buffer(const quern_query_iterator *iterator)
{
    return iterator->up_buffer->number == iterator->up_number;
}

/* Gives up the addresses of the iteration, unless a later iteration has reused them. */
static void release_up_buffer(quern_query_iterator *iterator)
{
    if (ups_owns_buffer(iterator)) iterator->up_buffer->number = 0;
    iterator->up_buffer = NULL;
}

/* Advances to the next range of rows that row filters and terms on enabled or disabled components select, in
 * this chunk or a later one. */
static bool advance_rows(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    if (query->row_term_count == 0 && query->row_filters == 0) return advance(iterator);
    while (iterator->next_row == UINT32_MAX ||
           !rows_next(query, &iterator->mask, &iterator->next_row, &iterator->view)) {
        if (!advance(iterator)) return false;
        const quern__selection selection =
            rows_select(query, &iterator->view, iterator->seen_version, &iterator->mask);
        iterator->next_row = selection == QUERN__SELECT_SOME ? 0 : UINT32_MAX;
        if (selection == QUERN__SELECT_ALL) return true;
    }
    return true;
}

/* Advances to the next range of rows that both advance_rows and the up-terms select. */
static bool advance_up(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    quern__up_buffer *buffer = iterator->up_buffer;
    quern__ups_mark_used(iterator);
    buffer->iterator = iterator;
    while (query->whole_chunks || !quern__up_next(query, &buffer->rows, &iterator->view)) {
        if (!advance_rows(iterator)) {
            release_up_buffer(iterator);
            return false;
        }
        buffer->rows = quern__up_find(query, buffer->addresses, &iterator->view);
        if (query->whole_chunks && rows_apply_ups(query, &buffer->rows, &iterator->view, &iterator->mask))
            return true;
    }
    return true;
}

/* Returns whether the iteration is still valid. Otherwise sets iterator->result, which is never overwritten. */
static bool check_valid(quern_query_iterator *iterator)
{
    if (iterator->result != QUERN_OK) return false;
    if (iterator->query->world != NULL) /* otherwise a callback iterates a further query of its system */
        iterator->result = quern__world_check_unlocked(iterator->query->world, "quern_query_next");
    const bool has_changed = *iterator->current_version != iterator->expected_version ||
                             (iterator->query->target != NULL && !quern__target_is_valid(iterator));
    if (iterator->result == QUERN_OK && has_changed)
        iterator->result =
            quern__fail(QUERN_ERROR_STRUCTURE_CHANGED, "quern_query_next: the world changed its structure "
                                                       "while a query was iterated: collect the entities "
                                                       "first, and change them after the loop");
    if (iterator->result == QUERN_OK && iterator->query->order != NULL &&
        iterator->chunk_index != quern__order_list_number(iterator->query))
        iterator->result = quern__fail(
            QUERN_ERROR_STRUCTURE_CHANGED,
            "quern_query_next: a later iteration of the same query has sorted its rows again, because the "
            "loop has written what they are sorted by: end the loop first, or create another query");
    if (iterator->result == QUERN_OK && iterator->up_buffer != NULL && !ups_owns_buffer(iterator))
        iterator->result = quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_query_next: a later iteration has reused the addresses of this one: a query with "
            "up-terms supports %d unfinished iterations; end those that are left early by "
            "quern_query_iterator_end, or create another query",
            (int)iterator->up_buffer->pool->buffer_count);
    return iterator->result == QUERN_OK;
}

bool quern__query_next(quern_query_iterator *iterator)
{
    if (iterator == NULL) {
        quern__fail_null("quern_query_next", "iterator");
        return false;
    }
    if (iterator->result == QUERN_OK && iterator->query->order != NULL)
        return quern__order_next_plain(iterator);
    return quern__query_next_any(iterator);
}

bool quern__query_next_any(quern_query_iterator *iterator)
{
    bool is_listed = iterator->end_entry != NULL;
    iterator->next_entry = iterator->end_entry; /* the list is exhausted, or the iteration is invalid */
    if (!check_valid(iterator) || is_listed) return false;
    return iterator->up_buffer == NULL ? advance_rows(iterator) : advance_up(iterator);
}

void quern_query_iterator_end(quern_query_iterator *iterator)
{
    if (iterator == NULL) return;
    if (iterator->up_buffer != NULL) release_up_buffer(iterator);
    iterator->next_entry = iterator->end_entry;
    iterator->match_index = UINT32_MAX; /* past the last match, range of a target term, or sorted row */
    iterator->next_row = UINT32_MAX;
}
