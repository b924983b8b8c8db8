/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/view_edits.h"

#include "core/base/bitset.h"

/* Appends a view edit. */
static quern__view_outcome append(quern__chunk_edits *edits, quern__command_batch *batch)
{
    quern__scratch *scratch = edits->scratch;
    const uint32_t index = scratch->view_edits.count;
    const uint32_t sequence = quern__sequences_extend(&scratch->sequences, edits->root, batch->operation);
    if (sequence == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->view_edits, index + 1))
        return QUERN__VIEW_OUT_OF_MEMORY;
    scratch->view_edits.items[scratch->view_edits.count++] =
        (quern__view_edit){.batch = batch,
                           .items = quern__view_items_of(batch),
                           .sequence = sequence,
                           .earlier = QUERN__EARLIER_NONE};
    if (edits->view_count++ > 0)
        quern__view_edit_at(edits, edits->last_view)->next = index;
    else
        edits->first_view = index;
    edits->last_view = edits->current_view = index;
    return QUERN__VIEW_MERGED;
}

/* Adds a command on exactly the rows of a view edit, as quern__edit_extend does for one row. */
static quern__view_outcome extend(quern__scratch *scratch, quern__view_edit *edit,
                                  quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    const quern__sequence *sequence = &scratch->sequences.list.items[edit->sequence];
    const quern__operation *last = sequence->operation;
    const quern__view_items items = quern__view_items_of(batch);
    if (sequence->is_destroyed) return QUERN__VIEW_DROPPED;
    if (quern__operation_replaces_itself(operation) && quern__operation_equal(last, operation)) {
        edit->items = items;
        return QUERN__VIEW_MERGED;
    }
    const uint32_t to = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
    const uint32_t count = scratch->earlier_views.count;
    if (to == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_views, count + 1))
        return QUERN__VIEW_OUT_OF_MEMORY;
    scratch->earlier_views.items[scratch->earlier_views.count++] =
        (quern__earlier_view){.items = edit->items, .earlier = edit->earlier};
    edit->items = items;
    edit->sequence = to;
    edit->earlier = count;
    return QUERN__VIEW_MERGED;
}

/* A system that visits the same rows as an earlier one visits them in the same order. Its next command is
 * therefore on the same rows as its latest one, or on those of the view edit after it. */
quern__view_outcome quern__view_edits_add(quern__chunk_edits *edits, quern__command_batch *batch)
{
    if (edits->view_count == 0) return append(edits, batch);
    quern__view_edit *current = quern__view_edit_at(edits, edits->current_view);
    if (quern__view_rows_equal(current->batch, batch)) return extend(edits->scratch, current, batch);
    const quern__view_edit *last = quern__view_edit_at(edits, edits->last_view);
    if (quern__view_first_row(batch) > quern__view_of(last->batch)->last_row) return append(edits, batch);
    edits->current_view = edits->current_view != edits->last_view ? current->next : edits->first_view;
    current = quern__view_edit_at(edits, edits->current_view);
    if (quern__view_rows_equal(current->batch, batch)) return extend(edits->scratch, current, batch);
    return QUERN__VIEW_REJECTED;
}

/* Adds the earlier items of the i-th row of a view edit. Returns the index of the first, or
 * QUERN__EARLIER_NONE. Precondition: memory is reserved. */
static uint32_t add_earlier_items(quern__scratch *scratch, const quern__view_edit *view, uint32_t i)
{
    const uint32_t first = scratch->earlier_items.count;
    if (view->earlier == QUERN__EARLIER_NONE) return QUERN__EARLIER_NONE;
    for (uint32_t at = view->earlier; at != QUERN__EARLIER_NONE;) {
        const quern__earlier_view *earlier = &scratch->earlier_views.items[at];
        at = earlier->earlier;
        const uint32_t index = scratch->earlier_items.count++;
        scratch->earlier_items.items[index] =
            (quern__earlier_item){.item = quern__view_item(earlier->items, i),
                                  .earlier = at != QUERN__EARLIER_NONE ? index + 1 : QUERN__EARLIER_NONE};
    }
    return first;
}

static uint32_t earlier_count_of(const quern__scratch *scratch, const quern__view_edit *view)
{
    uint32_t count = 0;
    for (uint32_t at = view->earlier; at != QUERN__EARLIER_NONE;
         at = scratch->earlier_views.items[at].earlier)
        count++;
    return count;
}

static bool expand_edit(quern__chunk_edits *edits, const quern__view_edit *view)
{
    quern__scratch *scratch = edits->scratch;
    const uint64_t wanted =
        scratch->earlier_items.count + (uint64_t)view->batch->item_count * earlier_count_of(scratch, view);
    if (wanted > UINT32_MAX ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_items, (uint32_t)wanted))
        return false;
    quern__view_range range = {.index = 0};
    while (quern__view_next_range(view->batch, &range))
        for (uint32_t i = 0; i < range.rows.count; i++) {
            const uint32_t row = range.rows.first + i;
            edits->touched[-1] |= 1ull << row / 64;
            quern__bitset_add(edits->touched, row);
            edits->rows[row] = (quern__edit){.item = quern__view_item(view->items, range.index + i),
                                             .sequence = view->sequence,
                                             .earlier = add_earlier_items(scratch, view, range.index + i)};
        }
    return true;
}

bool quern__view_edits_expand(quern__chunk_edits *edits)
{
    uint32_t index = edits->first_view;
    for (; edits->view_count > 0; edits->view_count--) {
        const quern__view_edit *view = quern__view_edit_at(edits, index);
        if (!expand_edit(edits, view)) return false;
        index = view->next;
    }
    return true;
}

uint32_t quern__view_edits_sequence(const quern__chunk_edits *edits, uint32_t row)
{
    const quern__view_edit *view = quern__view_edit_at(edits, edits->first_view);
    while (!quern__view_has_row(view->batch, row))
        view = quern__view_edit_at(edits, view->next);
    return view->sequence;
}
