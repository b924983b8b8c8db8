/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/rows.h"

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

/* Like find_newer, for `count` rows from a multiple of 64 on, of which moves brought none since seen_version: reads only
 * groups that are newer. */
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

/* Adds the rows in which one component is newer than seen_version. The mask may get rows of the chunk before
 * the view, too. offset: offset of the component's row versions. */
static void add_newer(const quern_view *view, uint32_t offset, uint64_t seen_version, quern__row_mask *mask)
{
    const uint64_t *versions = view->row_versions + offset;
    const uint32_t end = view->first_row + view->count;
    const bool has_moved_rows = view->versions[0] > seen_version;
    for (uint32_t row = view->first_row / 64 * 64; row < end; row += 64) {
        const uint32_t count = end - row < 64 ? end - row : 64;
        mask->words[row / 64] |= has_moved_rows ? find_newer(versions + row, count, seen_version)
                                                : find_newer_in_groups(versions, row, count, seen_version);
    }
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
        if (view->versions[0] <= seen_version && view->versions[column->version_index] <= seen_version)
            continue;
        if ((query->row_filters >> i & 1) == 0) return QUERN__SELECT_ALL;
        if (newer.word_count == 0) {
            begin_mask(view, mask);
            newer.word_count = mask->word_count;
            memset(newer.words, 0, newer.word_count * sizeof *newer.words);
        }
        add_newer(view, view->row_offsets[column->version_index], seen_version, &newer);
    }
    if (newer.word_count == 0) return QUERN__SELECT_NONE;
    quern__row_mask_keep(mask, newer.words);
    const uint32_t count = quern__row_mask_count(mask);
    if (count == 0) return QUERN__SELECT_NONE;
    return count == view->count ? QUERN__SELECT_ALL : QUERN__SELECT_SOME;
}

quern__selection quern__rows_select(const quern__query *query, const quern_view *view,
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

bool quern__rows_next(const quern__query *query, const quern__row_mask *mask, uint32_t *next,
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

bool quern__rows_apply_ups(const quern__query *query, quern__up_rows *rows, quern_view *view,
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
        if (quern__rows_apply_ups(query, &rows, &view, &mask)) callback(view.context, &view);
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
    const quern__selection selection = quern__rows_select(query, chunk_view, seen_version, &mask);
    if (selection == QUERN__SELECT_NONE) return;
    if (selection == QUERN__SELECT_ALL) {
        if (query->up_count == 0)
            callback(chunk_view->context, chunk_view);
        else
            call_rows(chunk_view, addresses, callback);
        return;
    }
    quern_view view = *chunk_view;
    for (uint32_t next = 0; quern__rows_next(query, &mask, &next, &view);)
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
    const quern__selection selection = quern__rows_select(query, &view, QUERN__SEEN_NOTHING, &mask);
    if (selection == QUERN__SELECT_NONE) return 0;
    if (selection == QUERN__SELECT_ALL) begin_mask(&view, &mask);
    if (query->ups == NULL || !query->ups->has_required) return quern__row_mask_count(&mask);
    uint64_t selected_count = 0;
    const quern__chunk *chunk = match->archetype->slots[chunk_index].chunk;
    for (uint32_t row = first_row; row < first_row + count; row++)
        if ((mask.words[row / 64] >> row % 64 & 1) != 0)
            selected_count += quern__up_selects(query, match->archetype, quern__location_make(chunk, row));
    return selected_count;
}

uint64_t quern__rows_count(const quern__query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        for (uint32_t k = 0; k < match->archetype->chunk_count; k++)
            count += quern__rows_count_range(query, match, k, 0, match->archetype->slots[k].row_count);
    }
    return count;
}
