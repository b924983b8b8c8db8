/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The apply stage. Input: resolved sequences, groups and archetype deltas, and reserved memory. Output: the changed world.
 * Cannot fail.
 *
 *   1. Creates get their handles, which replace provisional handles in values. Prefab instances are put into the world.
 *   2. For each edited chunk: rows that leave for other archetypes are copied to the rows reserved there, values
 *      are set in place, and rows that left are listed as gaps.
 *   3. New entities fill gaps, or rows after the last one.
 *   4. The last rows of each archetype fill the remaining gaps, and the archetype shrinks.
 *   5. Slots of destroyed entities are freed.
 *
 * Threads share steps 2 to 4, and the replacement of handles in step 1. What one chunk, stream or gap
 * writes, no other writes or reads in the same step. Edits that call hooks are applied afterwards, on the
 * calling thread and in order, so that hooks are called in the same order with every number of threads.
 *
 * Parts: a check of provisional handles, values, handles, chunks, creates, the end, the stage. */
#include "core/playback/stages.h"

#include "core/reactions/hook.h"
#include "core/storage/change.h"

/* ------------------------------------------------------------------------- check of provisional handles */

/* Builds with QUERN_CHECKS only: finds provisional handles outside of described fields. A sync point replaces
 * handles in fields described as QUERN_FIELD_ENTITY; elsewhere, a handle would silently stay provisional.
 *
 * A handle cannot be distinguished from a number there. To avoid false reports, a word is reported only if all
 * of this holds: it belongs to a value given by a command, at a multiple of the size of a handle, in a type without
 * hooks of its own and aligned like a handle, outside of all described fields, and is equal to the handle of a create of this sync
 * point. Such a number has 0 in its upper byte, the serial of a stream, which changes from frame to frame, in
 * the next three bytes, and the number of one of its creates in the lower half. */

typedef struct finding {
    const quern__gathered *gathered;
    uint32_t lowest_serial, highest_serial; /* range over all streams with creates */
    uint64_t count;
    const quern__stream *stream; /* stream of the first finding */
    const quern__type *type;     /* type of its value */
    uint32_t offset_bytes;       /* offset in the value */
    quern_entity entity;
} finding;

static bool is_created(const finding *found, quern_entity entity)
{
    const uint32_t serial = quern_entity_generation(entity);
    if (!quern_entity_is_provisional(entity) || serial < found->lowest_serial ||
        serial > found->highest_serial)
        return false;
    for (uint32_t i = 0; i < found->gathered->streams.count; i++) {
        const quern__stream *stream = found->gathered->streams.items[i].stream;
        if (stream->origin.serial == serial) return quern_entity_index(entity) < stream->create_count;
    }
    return false;
}

static void find_created_handles(finding *found, const quern__stream *stream, const quern__type *type,
                                 const char *value)
{
    for (uint32_t at = 0; at + sizeof(quern_entity) <= type->size_bytes; at += sizeof(quern_entity)) {
        quern_entity entity;
        memcpy(&entity, value + at, sizeof entity);
        if (!is_created(found, entity) || quern__type_has_field_in(type, at, sizeof entity)) continue;
        if (found->count++ > 0) continue;
        found->stream = stream;
        found->type = type;
        found->offset_bytes = at;
        found->entity = entity;
    }
}

/* Number of different values of a batch that gives values. */
static inline uint32_t batch_value_count(quern__command_batch *batch)
{
    return batch->is_view && quern__view_of(batch)->value_bytes == 0 ? 1 : batch->item_count;
}

/* Returns the address before the i-th value, as an item or as quern__view_item. */
static inline char *batch_value(quern__command_batch *batch, uint32_t i)
{
    return batch->is_view ? quern__view_item(quern__view_items_of(batch), i)
                          : (char *)quern__batch_item(batch, i);
}

static void check_batch(finding *found, const quern__stream *stream, quern__command_batch *batch)
{
    for (uint32_t i = 0; i < batch->operation->operand_count; i++) {
        const quern__operand *operand = &batch->operation->operands[i];
        if (operand->offset_bytes == 0 || operand->type->alignment_bytes < _Alignof(quern_entity)) continue;
        if (operand->is_relation) continue; /* the relate stage finds the targets of relations */
        /* Objects with hooks may have parts that nothing has written, such as the buffer of a short string in C++, with a
         * handle that the memory had before. */
        if (quern__type_owns_unknown(operand->type)) continue;
        for (uint32_t k = 0; k < batch_value_count(batch); k++)
            find_created_handles(found, stream, operand->type,
                                 batch_value(batch, k) + operand->offset_bytes);
    }
}

/* Builds with QUERN_CHECKS only: reports provisional handles that no stage will replace. Must be called before
 * values are moved out of the items. */
static void report_provisional(const quern__gathered *gathered)
{
    finding found = {.gathered = gathered, .lowest_serial = UINT32_MAX};
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        if (stream->create_count == 0) continue;
        if (stream->origin.serial < found.lowest_serial) found.lowest_serial = stream->origin.serial;
        if (stream->origin.serial > found.highest_serial) found.highest_serial = stream->origin.serial;
    }
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            check_batch(&found, stream, batch);
        }
    }
    if (found.count == 0) return;
    const char *name = found.stream->origin.name;
    quern__report_violation(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "%s%s%s gave '%s' the provisional handle of a deferred create (number %u) at byte "
        "%u, where no field is described, so it remains provisional: describe the field "
        "as QUERN_FIELD_ENTITY (%llu such handles at this sync point)",
        name ? "system '" : "", name ? name : "a command", name ? "'" : "", found.type->name,
        quern_entity_index(found.entity), found.offset_bytes, (unsigned long long)found.count);
}

/* --------------------------------------------------------------------------------------------- values */

/* Arguments of all functions here. */
typedef struct applying {
    quern__resolved *resolved;
    quern__merged *merged;
    const quern__gathered *gathered;
    quern__storage *storage;
    const quern__executor *executor;
} applying;

enum { EDITS_PER_CALL = 4 };

static void fill_hooked(const quern__fill *fill, char *target, char *item)
{
    if (fill->replaces) quern__type_destroy(fill->type, target, 1);
    if (fill->value_offset_bytes == 0) {
        quern__type_construct(fill->type, target, 1);
        return;
    }
    quern__type_move(fill->type, target, item + fill->value_offset_bytes, 1);
    if (fill->owned_offset_bytes != 0) item[fill->owned_offset_bytes] = 0;
}

static inline void fill_value(const quern__fill *fill, char *target, char *item)
{
    if (!fill->is_plain)
        fill_hooked(fill, target, item);
    else
        quern__fill_plain(fill, fill->size_bytes, target, item);
}

/* Writes all values of one row. Its sequence has several operations. */
static void fill_row(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                     const quern__edit *edit)
{
    const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill];
    const quern__run_place place = quern__run_place_of(&sequence->target->shape, to);
    char *item = edit->item;
    uint32_t hop = 0, earlier = edit->earlier;
    for (const quern__fill *end = fill + sequence->fill_count; fill < end; fill++) {
        for (; hop < fill->hop; hop++) {
            const quern__earlier_item *before = &scratch->earlier_items.items[earlier];
            item = before->item;
            earlier = before->earlier;
        }
        fill_value(fill, quern__run_value(place, fill->target_offset_bytes, fill->size_bytes), item);
    }
}

/* size_bytes is a constant in most inlined copies. */
static inline void copy_sized(const quern__fill *fill, char *target, const quern__edit *rows,
                              uint32_t count, uint32_t size_bytes)
{
    const size_t offset_bytes = fill->value_offset_bytes;
    for (uint32_t i = 0; i < count; i++, target += size_bytes)
        quern__copy_value(target, rows[i].item + offset_bytes, size_bytes);
}

/* Copies the values that commands gave to consecutive rows. */
static void copy_given(const quern__fill *fill, char *target, const quern__edit *rows, uint32_t count)
{
    QUERN__CALL_BY_SIZE(fill->size_bytes, copy_sized, fill, target, rows, count);
}

/* Writes the values of consecutive rows, column by column if their sequence has only one operation. */
static void fill_rows(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                      const quern__edit *rows, uint32_t count)
{
    if (sequence->fill_count == 0) return; /* the list of fills may be NULL */
    if (sequence->depth > 1) {
        for (uint32_t i = 0; i < count; i++)
            fill_row(scratch, sequence, to + i, &rows[i]);
        return;
    }
    const quern__run_place place = quern__run_place_of(&sequence->target->shape, to);
    const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill];
    for (const quern__fill *end = fill + sequence->fill_count; fill < end; fill++) {
        char *target = quern__run_value(place, fill->target_offset_bytes, fill->size_bytes);
        if (fill->is_plain && fill->value_offset_bytes != 0)
            copy_given(fill, target, rows, count);
        else
            for (uint32_t i = 0; i < count; i++, target += fill->size_bytes)
                fill_value(fill, target, rows[i].item);
    }
}

/* Sets and clears row bits of rows that arrived or stay, for components that commands enabled or disabled. */
static void toggle_rows(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                        uint32_t count)
{
    for (uint32_t i = 0; i < sequence->toggle_count; i++) {
        const quern__toggle *toggle = &scratch->sequences.toggles.items[sequence->first_toggle + i];
        quern__rows_enable(sequence->target, to, count, toggle->bit_column, toggle->clears);
    }
}

/* -------------------------------------------------------------------------------------------- handles */

quern_entity quern__remap_created(void *argument, quern_entity entity)
{
    const quern_entity *created = argument;
    return quern_entity_is_provisional(entity) ? created[quern_entity_index(entity)] : entity;
}

void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created)
{
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (operand->offset_bytes != 0)
            quern__type_remap(operand->type, item + operand->offset_bytes, quern__remap_created, created);
    }
}

void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage)
{
    if (resolved->created_count > 0) {
        /* Most of the slots taken now were freed by the previous sync point, in reverse order. The list of freed slots
         * allows to prefetch their records. The free list itself is a chain, so each of its reads would miss the
         * cache. */
        const uint32_t count = (uint32_t)resolved->created_count, freed_count = resolved->freed.count;
        for (uint32_t i = freed_count > count ? freed_count - count : 0; i < freed_count; i++)
            QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, resolved->freed.items[i]));
        quern__slots_allocate(storage, count, resolved->created.items);
        resolved->created.count = count;
        if (QUERN_CHECKS) report_provisional(gathered);
        if (QUERN__UNLIKELY(resolved->spawned.count > 0)) quern__spawned_put(resolved, storage);
    }
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        const quern__archetype_delta *delta = &resolved->deltas.items[i];
        if (delta->appended_count > 0)
            quern__rows_append_many(storage, delta->archetype, delta->appended_count);
    }
    storage->reactions->orders_by_row = true;
}

static void remap_stream(const applying *all, uint32_t stream_index)
{
    const quern__stream *stream = all->gathered->streams.items[stream_index].stream;
    if (stream->create_count == 0 || !QUERN__MAY(stream->traits, HANDLES)) return;
    quern_entity *created =
        all->resolved->created.items + all->merged->streams.items[stream_index].first_created;
    quern__command_batch *batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count; i++) {
        if (i > 0) batch = quern__batch_next(batch);
        if (!batch->operation->has_entity_fields) continue;
        for (uint32_t k = 0; k < batch_value_count(batch); k++)
            quern__item_remap(batch->operation, batch_value(batch, k), created);
    }
}

static void remap_streams(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        remap_stream(all, i);
}

/* --------------------------------------------------------------------------------------------- chunks */

/* Returns the part of the list of destroyed slots for these edits; NULL if the list is empty, since it may
 * have no memory then. */
static uint32_t *destroyed_of(const applying *all, const quern__chunk_edits *edits)
{
    return all->resolved->destroyed.count > 0 ? all->resolved->destroyed.items + edits->first_destroyed
                                              : NULL;
}

/* Returns the location for the next rows that arrive in a target, and how many of them fit there. */
static uintptr_t next_arrival(quern__edit_group *leader, const quern__archetype_delta *delta,
                              uint32_t wanted, uint32_t *out_count)
{
    if (leader->left_count == 0) {
        leader->at =
            quern__archetype_location(delta->archetype, quern__delta_row_count(delta) + leader->arrival);
        leader->left_count = delta->archetype->shape.row_capacity -
                             quern__location_row(&delta->archetype->shape, leader->at);
    }
    uintptr_t at = leader->at;
    *out_count = wanted < leader->left_count ? wanted : leader->left_count;
    leader->left_count -= *out_count;
    leader->arrival += *out_count;
    leader->at += *out_count;
    return at;
}

/* Notifies listeners of values that are about to replace others, or, if is_written, that have replaced them, in rows
 * that stay or have been moved. */
static void report_written(const quern__scratch *scratch, const quern__sequence *sequence,
                           uintptr_t location, uint32_t count, bool is_written)
{
    const quern__archetype *archetype = sequence->target;
    for (uint32_t i = 0; i < sequence->fill_count; i++) {
        const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill + i];
        const quern__column *column = archetype->columns;
        while (column->offset_bytes != fill->target_offset_bytes)
            column++;
        if (!fill->replaces) continue;
        if (is_written)
            quern__rows_written_from(archetype, sequence->source, location, count, column->component_index);
        else
            quern__rows_before_write_from(archetype, sequence->source, location, count,
                                          column->component_index);
    }
}

void quern__edits_write(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t location,
                        const quern__edit *rows, uint32_t count)
{
    /* values of a new entity were not written before */
    const bool is_tracked = quern__writes_are_tracked(sequence->target) && !sequence->is_member;
    if (is_tracked && sequence->target->first_listener != NULL)
        report_written(scratch, sequence, location, count, false);
    fill_rows(scratch, sequence, location, rows, count);
    toggle_rows(scratch, sequence, location, count);
    if (is_tracked) report_written(scratch, sequence, location, count, true);
}

void quern__edits_fill(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                       const quern__edit *rows, uint32_t count)
{
    if (QUERN__UNLIKELY(
            sequence->is_member)) { /* a member of an instance has no values that a write replaces */
        fill_rows(scratch, sequence, to, rows, count);
        toggle_rows(scratch, sequence, to, count);
        return;
    }
    const bool is_tracked = quern__writes_are_tracked(sequence->target);
    if (is_tracked && sequence->target->first_listener != NULL)
        report_written(scratch, sequence, to, count, false);
    fill_rows(scratch, sequence, to, rows, count);
    if (is_tracked) report_written(scratch, sequence, to, count, true);
    toggle_rows(scratch, sequence, to, count);
}

/* Writes the values of a view edit to consecutive rows that have moved or stay. index: of the first row among
 * those of the edit. Values with hooks are constructed: commands for views give none. */
static void fill_view(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                      const quern__view_edit *view, uint32_t index, uint32_t count)
{
    const bool is_tracked = quern__writes_are_tracked(sequence->target);
    if (is_tracked && sequence->target->first_listener != NULL)
        report_written(scratch, sequence, to, count, false);
    const quern__run_place place = quern__run_place_of(&sequence->target->shape, to);
    quern__view_items items = view->items;
    uint32_t hop = 0, earlier = view->earlier;
    for (uint32_t i = 0; i < sequence->fill_count; i++) {
        const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill + i];
        for (; hop < fill->hop; hop++) {
            items = scratch->earlier_views.items[earlier].items;
            earlier = scratch->earlier_views.items[earlier].earlier;
        }
        char *target = quern__run_value(place, fill->target_offset_bytes, fill->size_bytes);
        if (fill->is_plain && fill->value_offset_bytes != 0) {
            quern__view_copy_values(target, items, index, count, fill->value_offset_bytes,
                                    fill->size_bytes);
            continue;
        }
        assert(fill->value_offset_bytes == 0);
        if (!fill->is_plain && fill->replaces) quern__type_destroy(fill->type, target, count);
        quern__type_construct(fill->type, target, count);
    }
    toggle_rows(scratch, sequence, to, count);
    if (is_tracked) report_written(scratch, sequence, to, count, true);
}

/* Moves listed rows of a chunk to consecutive rows. */
static void move_listed_rows(const quern__storage *storage, const quern__move_plan *plan, uintptr_t to,
                             quern__chunk *chunk, const uint16_t *rows, uint32_t count)
{
    if (plan->is_plain) {
        quern__rows_move_picked(storage, plan, to, chunk, rows, count);
        return;
    }
    for (uint32_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && rows[i + run] == rows[i] + run) /* NOLINT(clang-analyzer-core*) */
            run++;
        /* NOLINTNEXTLINE(clang-analyzer-core*): the caller lists count rows */
        quern__rows_move(storage, plan, to + i, quern__location_make(chunk, rows[i]), run);
    }
}

/* Moves all rows of a view edit to another archetype. rows: NULL: they are consecutive. */
static void move_view(const applying *all, const quern__chunk_edits *edits, const quern__view_edit *view,
                      const uint16_t *rows)
{
    quern__edit_group *groups = edits->scratch->groups.items;
    quern__edit_group *leader = &groups[groups[view->group].leader];
    const quern__sequence *sequence = &edits->scratch->sequences.list.items[view->sequence];
    const quern__archetype_delta *delta = quern__resolved_delta(all->resolved, sequence->target);
    const uint32_t first_row = quern__view_first_row(view->batch);
    for (uint32_t i = 0, end = view->batch->item_count, count; i < end; i += count) {
        const uintptr_t to = next_arrival(leader, delta, end - i, &count);
        if (rows != NULL)
            move_listed_rows(all->storage, sequence->plan, to, edits->chunk, rows + i, count);
        else
            quern__rows_move(all->storage, sequence->plan, to,
                             quern__location_make(edits->chunk, first_row + i), count);
        fill_view(edits->scratch, sequence, to, view, i, count);
    }
}

/* Destroys the entities of a view edit. Returns the rest of the list of destroyed slots. */
static uint32_t *destroy_view(const quern__chunk_edits *edits, const quern__view_edit *view,
                              uint32_t *destroyed)
{
    const quern_entity *handles = quern__archetype_entities(edits->archetype, edits->chunk);
    quern__view_range range = {.index = 0};
    assert(destroyed != NULL);
    while (quern__view_next_range(view->batch, &range)) {
        quern__rows_leave(edits->archetype, quern__location_make(edits->chunk, range.rows.first),
                          range.rows.count);
        for (uint32_t k = 0; k < range.rows.count; k++)
            *destroyed++ = quern_entity_index(handles[range.rows.first + k]);
    }
    return destroyed;
}

/* Applies the view edits of a chunk. */
static void apply_view_edits(const applying *all, const quern__chunk_edits *edits, uintptr_t *gap,
                             uint32_t *destroyed)
{
    uint16_t list[QUERN__BIT_COLUMN_MAX_ROWS];
    uint32_t index = edits->first_view;
    for (uint32_t i = 0; i < edits->view_count; i++) {
        const quern__view_edit *view = quern__view_edit_at(edits, index);
        const quern__sequence *sequence = &edits->scratch->sequences.list.items[view->sequence];
        const uint16_t *rows = quern__view_of(view->batch)->mask_word_count > 0 ? list : NULL;
        const uint32_t first_row = quern__view_first_row(view->batch);
        index = view->next;
        if (!sequence->is_destroyed && sequence->target == edits->archetype) {
            quern__view_range range = {.index = 0};
            while (quern__view_next_range(view->batch, &range))
                fill_view(edits->scratch, sequence, quern__location_make(edits->chunk, range.rows.first),
                          view, range.index, range.rows.count);
            continue;
        }
        if (rows != NULL) quern__view_list_rows(view->batch, list);
        if (sequence->is_destroyed)
            destroyed = destroy_view(edits, view, destroyed);
        else
            move_view(all, edits, view, rows);
        for (uint32_t k = 0; k < view->batch->item_count && gap != NULL; k++)
            *gap++ = quern__location_make(edits->chunk, rows != NULL ? rows[k] : first_row + k);
    }
}

static void apply_chunk(const applying *all, const quern__chunk_edits *edits)
{
    const quern__archetype_delta *delta = quern__resolved_delta(all->resolved, edits->archetype);
    const bool lists_gaps = delta->leaving_count > 0 && !delta->is_emptied;
    uintptr_t *gap = lists_gaps ? all->resolved->gaps.items + delta->first_gap + edits->first_gap : NULL;
    uint32_t *destroyed = destroyed_of(all, edits);
    if (QUERN__UNLIKELY(edits->view_count > 0)) {
        apply_view_edits(all, edits, gap, destroyed);
        return;
    }
    quern__edit_group *groups = edits->scratch->groups.items;
    const quern__row_range *range = &edits->scratch->row_ranges.items[edits->first_range];
    for (const quern__row_range *end = range + edits->range_count; range < end; range++) {
        const quern__sequence *sequence =
            &edits->scratch->sequences.list.items[groups[range->group].sequence];
        const uintptr_t location = quern__location_make(edits->chunk, range->row);
        const quern__edit *rows = edits->rows + range->row;
        if (!sequence->is_destroyed && sequence->target == edits->archetype) {
            quern__edits_write(edits->scratch, sequence, location, rows, range->count);
            continue;
        }
        if (sequence->is_destroyed) {
            if (QUERN__UNLIKELY(sequence->is_member))
                quern__rows_leave_new(edits->archetype, location, range->count);
            else
                quern__rows_leave(edits->archetype, location, range->count);
            assert(destroyed != NULL);
            const quern_entity *handles = quern__archetype_entities(edits->archetype, edits->chunk);
            for (uint32_t i = 0; i < range->count; i++)
                *destroyed++ = quern_entity_index(handles[range->row + i]);
        } else {
            quern__edit_group *leader = &groups[groups[range->group].leader];
            const quern__archetype_delta *to_delta = quern__resolved_delta(all->resolved, sequence->target);
            for (uint32_t i = 0, fitting; i < range->count; i += fitting) {
                const uintptr_t to = next_arrival(leader, to_delta, range->count - i, &fitting);
                if (QUERN__UNLIKELY(sequence->is_member))
                    quern__rows_move_new(all->storage, sequence->plan, to, location + i, fitting);
                else
                    quern__rows_move(all->storage, sequence->plan, to, location + i, fitting);
                quern__edits_fill(edits->scratch, sequence, to, rows + i, fitting);
            }
        }
        for (uint32_t i = 0; i < range->count && gap != NULL; i++)
            *gap++ = location + i;
    }
}

static void apply_chunks(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!all->merged->chunk_edits.items[i]->is_hooked)
            apply_chunk(all, all->merged->chunk_edits.items[i]);
}

/* -------------------------------------------------------------------------------------------- creates */

/* Returns the location for the next new entities: a gap, or rows after the last one. */
static uintptr_t next_created(const applying *all, quern__edit_group *leader,
                              const quern__archetype_delta *delta, uint32_t wanted, uint32_t *out_count)
{
    if (leader->arrival < delta->leaving_count) {
        *out_count = 1;
        return all->resolved->gaps.items[delta->first_gap + leader->arrival++];
    }
    if (leader->left_count == 0) {
        uint32_t row =
            quern__delta_row_count(delta) + delta->arriving_count + leader->arrival - delta->leaving_count;
        leader->at = quern__archetype_location(delta->archetype, row);
        leader->left_count = delta->archetype->shape.row_capacity -
                             quern__location_row(&delta->archetype->shape, leader->at);
    }
    return next_arrival(leader, delta, wanted, out_count);
}

/* Creates the entities of one stream. */
static void apply_stream(const applying *all, const quern__chunk_edits *edits)
{
    const quern_entity *handles = all->resolved->created.items + edits->first_created;
    uint32_t *destroyed = destroyed_of(all, edits);
    quern__edit_group *groups = edits->scratch->groups.items;
    const quern__row_range *range = &edits->scratch->row_ranges.items[edits->first_range];
    for (const quern__row_range *end = range + edits->range_count; range < end; range++) {
        const quern__sequence *sequence =
            &edits->scratch->sequences.list.items[groups[range->group].sequence];
        if (sequence->operation == NULL) continue; /* members of instances, which have edits by row */
        const uint32_t end_row = range->row + range->count;
        if (sequence->is_destroyed) {
            assert(destroyed != NULL);
            for (uint32_t row = range->row; row < end_row; row++)
                *destroyed++ = quern_entity_index(handles[row]);
            continue;
        }
        quern__edit_group *leader = &groups[groups[range->group].leader];
        const quern__archetype_delta *delta = quern__resolved_delta(all->resolved, sequence->target);
        for (uint32_t row = range->row, fitting; row < end_row; row += fitting) {
            const uintptr_t to = next_created(all, leader, delta, end_row - row, &fitting);
            quern__rows_arrive(all->storage, sequence->target, to, handles + row, fitting);
            fill_rows(edits->scratch, sequence, to, edits->rows + row, fitting);
            toggle_rows(edits->scratch, sequence, to, fitting);
        }
    }
}

static void apply_creates(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!all->merged->edits.items[i].is_hooked) apply_stream(all, &all->merged->edits.items[i]);
}

/* ---------------------------------------------------------------------------------------------- end */

void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor)
{
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        const quern__archetype_delta *delta = &resolved->deltas.items[i];
        if (delta->left_over_count == 0) continue; /* no gap is left */
        if (delta->is_emptied)
            quern__rows_cut(storage, delta->archetype, delta->left_over_count);
        else
            quern__rows_close_gaps(storage, delta->archetype,
                                   resolved->gaps.items + delta->first_gap + delta->created_count,
                                   delta->left_over_count, resolved->tails.items, executor);
    }
    resolved->freed.count = 0;
    if (resolved->destroyed.count > 0) {
        /* the next sync point uses the list of freed slots: quern__change_begin */
        quern__slots_free(storage, resolved->destroyed.items, resolved->destroyed.count);
        const quern__slot_list freed = resolved->destroyed;
        resolved->destroyed = resolved->freed;
        resolved->freed = freed;
    }
    storage->reactions->orders_by_row = false;
    quern__structure_changed(storage);
}

/* ---------------------------------------------------------------------------------------- entity hooks */

/* Calls on_remove for the rows of a chunk that will leave its archetype or lose components. */
static void call_hooks_of_chunk(quern__storage *storage, const quern__chunk_edits *edits)
{
    uint32_t index = edits->first_view;
    for (uint32_t i = 0; i < edits->view_count; i++) {
        const quern__view_edit *view = quern__view_edit_at(edits, index);
        const quern__sequence *sequence = &edits->scratch->sequences.list.items[view->sequence];
        quern__view_range range = {.index = 0};
        index = view->next;
        if (!sequence->is_destroyed && sequence->target == edits->archetype) continue;
        while (quern__view_next_range(view->batch, &range))
            quern__hooks_before_leaving(
                storage, edits->archetype, sequence->is_destroyed ? NULL : sequence->target,
                quern__location_make(edits->chunk, range.rows.first), range.rows.count);
    }
    if (edits->view_count > 0) return;
    const quern__edit_group *groups = edits->scratch->groups.items;
    const quern__row_range *range = &edits->scratch->row_ranges.items[edits->first_range];
    for (const quern__row_range *end = range + edits->range_count; range < end; range++) {
        const quern__sequence *sequence =
            &edits->scratch->sequences.list.items[groups[range->group].sequence];
        if (sequence->is_member || (!sequence->is_destroyed && sequence->target == edits->archetype))
            continue;
        quern__hooks_before_leaving(storage, edits->archetype,
                                    sequence->is_destroyed ? NULL : sequence->target,
                                    quern__location_make(edits->chunk, range->row), range->count);
    }
}

void quern__merged_call_hooks(const quern__merged *merged, quern__storage *storage)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < merged->chunk_edits.count; i++) {
        const quern__archetype *archetype = merged->chunk_edits.items[i]->archetype;
        const uint32_t level = archetype->has_hooks ? quern__hooks_level(storage, archetype) : 0;
        if (level > most) most = level;
    }
    for (uint32_t level = most + 1; level-- > 0;)
        for (uint32_t i = 0; i < merged->chunk_edits.count; i++) {
            const quern__chunk_edits *edits = merged->chunk_edits.items[i];
            if (edits->archetype->has_hooks && quern__hooks_level(storage, edits->archetype) == level)
                call_hooks_of_chunk(storage, edits);
        }
}

/* --------------------------------------------------------------------------------------------- apply */

void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor)
{
    applying all = {.resolved = resolved,
                    .merged = merged,
                    .gathered = gathered,
                    .storage = storage,
                    .executor = executor};
    quern__change_begin(resolved, gathered, storage);
    if (resolved->created_count > 0)
        quern__executor_run(executor, gathered->streams.count, EDITS_PER_CALL, remap_streams, &all);
    quern__executor_run(executor, merged->chunk_edits.count, EDITS_PER_CALL, apply_chunks, &all);
    for (uint32_t i = 0; i < merged->chunk_edits.count; i++)
        if (merged->chunk_edits.items[i]->is_hooked) apply_chunk(&all, merged->chunk_edits.items[i]);
    quern__executor_run(executor, merged->create_edits_count, EDITS_PER_CALL, apply_creates, &all);
    for (uint32_t i = 0; i < merged->create_edits_count; i++)
        if (merged->edits.items[i].is_hooked) apply_stream(&all, &merged->edits.items[i]);
    quern__change_end(resolved, storage, executor);
}
