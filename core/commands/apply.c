/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Applying: everything has been found and reserved, and nothing can fail.
 *
 *   1. creates take their handles, and provisional handles inside values become these
 *   2. each chunk that commands touch: rows that go to other archetypes are copied behind the rows there, values
 *      are set in place, rows that are left are listed as gaps
 *   3. new entities fill gaps, or the rows behind
 *   4. the last rows of each archetype fill the gaps that are left, and the archetype ends there
 *   5. slots of destroyed entities are freed
 *
 * Steps 2, 3 and 4 are shared out among threads: what one chunk, one stream or one gap writes nobody else
 * touches, and what a step reads the steps before have written. Where hooks are called, the same is done on
 * the caller alone, in the same order, after the threads have done the rest: hooks see one order at every
 * number of threads. */

#include "core/commands/apply.h"
#include "core/storage/change.h"

/* What all functions here work with. */
typedef struct applying {
    quern__resolved *resolved;
    quern__merged *merged;
    const quern__gathered *gathered;
    quern__storage *storage;
    const quern__executor *executor;
} applying;

enum { EDITS_PER_CALL = 4, MOVES_PER_CALL = 1024 };

/* --------------------------------------------------------------------------------------------- values */

static inline void fill_plain(const quern__fill *fill, char *target, const char *item)
{
    if (fill->value_offset_bytes != 0)
        quern__copy_value(target, item + fill->value_offset_bytes, fill->size_bytes);
    else
        memset(target, 0, fill->size_bytes);
}

static void fill_hooked(const quern__fill *fill, char *target, char *item)
{
    if (fill->replaces) quern__type_destroy(fill->type, target, 1);
    if (fill->value_offset_bytes == 0) {
        quern__type_construct(fill->type, target, 1);
        return;
    }
    quern__type_move(fill->type, target, item + fill->value_offset_bytes, 1);
    if (fill->living_offset_bytes != 0) item[fill->living_offset_bytes] = 0;
}

static inline void fill_value(const quern__fill *fill, char *target, char *item)
{
    if (fill->is_plain)
        fill_plain(fill, target, item);
    else
        fill_hooked(fill, target, item);
}

/* All values of one row; its sequence has several operations. */
static void fill_row(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                     const quern__edit *edit)
{
    const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill];
    char *item = edit->item;
    uint32_t hop = 0, earlier = edit->earlier;
    for (const quern__fill *end = fill + sequence->fill_count; fill < end; fill++) {
        for (; hop < fill->hop; hop++) {
            const quern__earlier_item *link = &scratch->earlier_items.items[earlier];
            item = link->item;
            earlier = link->earlier;
        }
        fill_value(fill, quern__location_value(to, fill->target_offset_bytes, fill->size_bytes), item);
    }
}

/* The values of neighbouring rows with the same sequence of one operation, column by column. */
static void fill_columns(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                         const quern__edit *rows, uint32_t count)
{
    const quern__fill *fill = &scratch->sequences.fills.items[sequence->first_fill];
    for (const quern__fill *end = fill + sequence->fill_count; fill < end; fill++) {
        char *target = quern__location_value(to, fill->target_offset_bytes, fill->size_bytes);
        for (uint32_t i = 0; i < count; i++, target += fill->size_bytes)
            fill_value(fill, target, rows[i].item);
    }
}

static void fill_rows(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                      const quern__edit *rows, uint32_t count)
{
    if (sequence->fill_count == 0) return; /* the list of all fills may have no memory */
    if (sequence->depth == 1) {
        fill_columns(scratch, sequence, to, rows, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        fill_row(scratch, sequence, to + i, &rows[i]);
}

/* -------------------------------------------------------------------------------------------- handles */

/* Most slots taken now are those freed by the latest sync point, the last one first. Their list is still
 * there, and the free list is a chain: without a hint each link of it would be waited for. */
static void fetch_freed(const applying *all, uint32_t wanted_count)
{
    const quern__entities *entities = &all->storage->entities;
    uint32_t first =
        all->resolved->freed_count > wanted_count ? all->resolved->freed_count - wanted_count : 0;
    for (uint32_t i = first; i < all->resolved->freed_count; i++)
        __builtin_prefetch(quern__entities_record(entities, all->resolved->destroyed.items[i]), 1);
}

/* Of all streams. */
static uint32_t created_count(const applying *all)
{
    if (all->merged->create_edits_count == 0) return 0;
    const quern__chunk_edits *last = &all->merged->edits.items[all->merged->create_edits_count - 1];
    return (uint32_t)last->first_created + last->row_count;
}

static void take_handles(const applying *all)
{
    const uint32_t count = created_count(all);
    fetch_freed(all, count);
    quern__slots_take(all->storage, count, all->resolved->created.items);
    all->resolved->created.count = count;
}

/* Provisional handles of one stream become real; the recorder has let no others pass. */
static quern_entity remap(void *argument, quern_entity entity)
{
    const quern_entity *created = argument;
    return quern_entity_is_provisional(entity) ? created[quern_entity_index(entity)] : entity;
}

static void remap_item(const quern__operation *operation, char *item, quern_entity *created)
{
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (operand->offset_bytes != 0)
            quern__type_remap(operand->type, item + operand->offset_bytes, remap, created);
    }
}

static void remap_stream(const applying *all, uint32_t stream_index)
{
    const quern__stream *stream = all->gathered->streams.items[stream_index].stream;
    const uint32_t create_edits = all->merged->streams.items[stream_index].create_edits;
    if (create_edits == QUERN__EDITS_NONE || !stream->has_entity_fields) return;
    quern_entity *created =
        all->resolved->created.items + all->merged->edits.items[create_edits].first_created;
    quern__run *run = stream->first;
    for (uint32_t i = 0; i < stream->run_count; i++) {
        if (i > 0) run = quern__run_next(run);
        if (!run->operation->has_entity_fields) continue;
        for (uint32_t k = 0; k < run->item_count; k++)
            remap_item(run->operation, (char *)quern__run_item(run, k), created);
    }
}

static void remap_streams(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        remap_stream(all, i);
}

/* --------------------------------------------------------------------------------------------- edits */

/* Edits being applied. */
typedef struct apply {
    const applying *all;
    const quern__chunk_edits *edits;
    uintptr_t *gap; /* where the next one is listed; NULL: nobody asks */
    uint32_t *destroyed;
} apply;

/* A part of a list that may be empty: then it has no memory, and NULL is not counted from. */
static uint32_t *destroyed_of(const applying *all, const quern__chunk_edits *edits)
{
    return all->resolved->destroyed.count > 0 ? all->resolved->destroyed.items + edits->first_destroyed
                                              : NULL;
}

static uintptr_t *gaps_of(const applying *all, const quern__archetype_delta *delta,
                          const quern__chunk_edits *edits)
{
    if (delta->is_emptied || delta->leaving_count == 0) return NULL;
    return all->resolved->gaps.items + delta->first_gap + edits->first_gap;
}

/* Where the next row that comes to a target goes, and how many go behind it in the same chunk. */
static uintptr_t next_arrival(quern__edit_group *leader, const quern__archetype_delta *delta,
                              uint32_t wanted, uint32_t *out_count)
{
    if (leader->left_count == 0) {
        leader->at = quern__archetype_location(delta->archetype, delta->row_count + leader->arrival);
        leader->left_count = delta->archetype->row_capacity - quern__location_row(leader->at);
    }
    uintptr_t at = leader->at;
    *out_count = wanted < leader->left_count ? wanted : leader->left_count;
    leader->left_count -= *out_count;
    leader->arrival += *out_count;
    leader->at += *out_count;
    return at;
}

static void move_rows(const apply *it, const quern__sequence *sequence, quern__edit_group *leader,
                      uint32_t row, uint32_t count)
{
    const quern__chunk_edits *edits = it->edits;
    const quern__archetype_delta *delta = quern__resolved_delta(it->all->resolved, sequence->target);
    for (uint32_t end = row + count, fitting; row < end; row += fitting) {
        uintptr_t to = next_arrival(leader, delta, end - row, &fitting);
        quern__rows_move(it->all->storage, sequence->plan, to, quern__location_make(edits->chunk, row),
                         fitting);
        fill_rows(edits->scratch, sequence, to, edits->rows + row, fitting);
    }
}

/* Values that were set in rows that stay. */
static void tell_written(const quern__chunk_edits *edits, const quern__sequence *sequence,
                         uintptr_t location, uint32_t count)
{
    const quern__fill *fill = &edits->scratch->sequences.fills.items[sequence->first_fill];
    for (uint32_t i = 0; i < sequence->fill_count; i++) {
        const quern__column *column = edits->archetype->columns;
        while (column->offset_bytes != fill[i].target_offset_bytes)
            column++;
        quern__rows_written(edits->archetype, location, count, column->component_index);
    }
}

static void apply_rows(apply *it, const quern__row_run *run)
{
    const quern__chunk_edits *edits = it->edits;
    quern__edit_group *groups = edits->scratch->groups.items;
    const quern__sequence *sequence = &edits->scratch->sequences.list.items[groups[run->group].sequence];
    uint32_t row = run->row, count = run->count;
    uintptr_t location = quern__location_make(edits->chunk, row);
    if (!sequence->is_destroyed && sequence->target == edits->archetype) {
        fill_rows(edits->scratch, sequence, location, edits->rows + row, count);
        if (quern__writes_are_heard(edits->archetype)) tell_written(edits, sequence, location, count);
        return;
    }
    if (sequence->is_destroyed) {
        quern__rows_leave(edits->archetype, location, count);
        assert(it->destroyed != NULL);
        for (uint32_t i = 0; i < count; i++)
            *it->destroyed++ =
                quern_entity_index(((const quern__item *)(const void *)edits->rows[row + i].item)->entity);
    } else {
        move_rows(it, sequence, &groups[groups[run->group].leader], row, count);
    }
    for (uint32_t i = 0; i < count && it->gap != NULL; i++)
        *it->gap++ = location + i;
}

static void apply_chunk(const applying *all, const quern__chunk_edits *edits)
{
    const quern__archetype_delta *delta = quern__resolved_delta(all->resolved, edits->archetype);
    apply it = {.all = all,
                .edits = edits,
                .gap = gaps_of(all, delta, edits),
                .destroyed = destroyed_of(all, edits)};
    const quern__row_run *run = &edits->scratch->runs.items[edits->first_run];
    for (const quern__row_run *end = run + edits->run_count; run < end; run++)
        apply_rows(&it, run);
}

static void apply_all_chunks(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!all->merged->chunk_edits.items[i]->is_hooked)
            apply_chunk(all, all->merged->chunk_edits.items[i]);
}

/* -------------------------------------------------------------------------------------------- creates */

/* Where the next new entity goes: a gap, or behind all rows. */
static uintptr_t next_created(const applying *all, quern__edit_group *leader,
                              const quern__archetype_delta *delta, uint32_t wanted, uint32_t *out_count)
{
    if (leader->arrival < delta->leaving_count) {
        *out_count = 1;
        return all->resolved->gaps.items[delta->first_gap + leader->arrival++];
    }
    if (leader->left_count == 0) {
        uint32_t row = delta->row_count + delta->arriving_count + leader->arrival - delta->leaving_count;
        leader->at = quern__archetype_location(delta->archetype, row);
        leader->left_count = delta->archetype->row_capacity - quern__location_row(leader->at);
    }
    return next_arrival(leader, delta, wanted, out_count);
}

static void create_rows(const apply *it, const quern__sequence *sequence, quern__edit_group *leader,
                        uint32_t row, uint32_t count)
{
    const quern__chunk_edits *edits = it->edits;
    const quern__archetype_delta *delta = quern__resolved_delta(it->all->resolved, sequence->target);
    const quern_entity *handles = it->all->resolved->created.items + edits->first_created;
    for (uint32_t end = row + count, fitting; row < end; row += fitting) {
        uintptr_t to = next_created(it->all, leader, delta, end - row, &fitting);
        quern__rows_arrive(it->all->storage, sequence->target, to, handles + row, fitting);
        fill_rows(edits->scratch, sequence, to, edits->rows + row, fitting);
    }
}

static void apply_creates(const applying *all, const quern__chunk_edits *edits)
{
    apply it = {.all = all, .edits = edits, .destroyed = destroyed_of(all, edits)};
    quern__edit_group *groups = edits->scratch->groups.items;
    const quern__row_run *run = &edits->scratch->runs.items[edits->first_run];
    for (const quern__row_run *end = run + edits->run_count; run < end; run++) {
        const quern__sequence *sequence =
            &edits->scratch->sequences.list.items[groups[run->group].sequence];
        assert(it.destroyed != NULL || !sequence->is_destroyed);
        if (sequence->is_destroyed)
            for (uint32_t i = 0; i < run->count; i++)
                *it.destroyed++ =
                    quern_entity_index(all->resolved->created.items[edits->first_created + run->row + i]);
        else
            create_rows(&it, sequence, &groups[groups[run->group].leader], run->row, run->count);
    }
}

static void apply_all_creates(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying *all = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!all->merged->edits.items[i].is_hooked) apply_creates(all, &all->merged->edits.items[i]);
}

/* ---------------------------------------------------------------------------------------- compaction */

/* The gaps of one archetype that no create has filled, and the rows that go there. */
typedef struct closing {
    const quern__storage *storage;
    const quern__archetype *archetype;
    const uintptr_t *gaps;
    const uintptr_t *tails;
} closing;

static uint32_t row_of(const quern__archetype *archetype, uintptr_t location)
{
    return quern__chunk_of(location)->index * archetype->row_capacity + quern__location_row(location);
}

/* Lists the rows from `end` on that are no gaps; gap: the first one that is not before `end`. */
static uint32_t list_tails(const applying *all, const quern__archetype_delta *delta, uint32_t end,
                           const uintptr_t *gap, const uintptr_t *gaps_end)
{
    const quern__archetype *archetype = delta->archetype;
    uint32_t row_count = (uint32_t)quern__archetype_row_count(archetype), count = 0;
    for (uint32_t row = end; row < row_count;) {
        uintptr_t location = quern__archetype_location(archetype, row);
        uint32_t in_chunk = archetype->row_capacity - quern__location_row(location);
        for (uint32_t i = 0; i < in_chunk && row < row_count; i++, row++) {
            if (gap < gaps_end && *gap == location + i)
                gap++;
            else
                all->resolved->tails.items[count++] = location + i;
        }
    }
    return count;
}

static void close_gaps(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const closing *it = argument;
    for (uint32_t i = begin, count; i < end; i += count) {
        uintptr_t to = it->gaps[i], from = it->tails[i];
        count = 1;
        while (i + count < end && it->gaps[i + count] == to + count && it->tails[i + count] == from + count)
            count++;
        quern__rows_relocate(it->storage, it->archetype, to, from, count);
    }
}

static bool has_move_hook(const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->column_count; i++)
        if (archetype->columns[i].type->hooks.move != NULL) return true;
    return false;
}

static void compact(const applying *all, const quern__archetype_delta *delta)
{
    const quern__archetype *archetype = delta->archetype;
    const uintptr_t *gaps = all->resolved->gaps.items + delta->first_gap + delta->created_count;
    const uintptr_t *gaps_end = gaps + delta->left_over_count;
    uint32_t end = (uint32_t)quern__archetype_row_count(archetype) - delta->left_over_count;
    const uintptr_t *behind = gaps_end;
    while (behind > gaps && row_of(archetype, behind[-1]) >= end)
        behind--;
    uint32_t count = list_tails(all, delta, end, behind, gaps_end);
    assert(count == (uint32_t)(behind - gaps));
    closing it = {
        .storage = all->storage, .archetype = archetype, .gaps = gaps, .tails = all->resolved->tails.items};
    quern__executor_run(has_move_hook(archetype) ? NULL : all->executor, count, MOVES_PER_CALL, close_gaps,
                        &it);
}

static void finish_archetype(const applying *all, const quern__archetype_delta *delta)
{
    if (delta->left_over_count > 0 && !delta->is_emptied) compact(all, delta);
    quern__rows_cut(all->storage, delta->archetype, delta->left_over_count);
}

/* --------------------------------------------------------------------------------------------- apply */

static void extend_archetypes(const applying *all)
{
    for (uint32_t i = 0; i < all->resolved->deltas.count; i++)
        quern__rows_append_reserved(all->storage, all->resolved->deltas.items[i].archetype);
}

static void apply_hooked_chunks(const applying *all)
{
    for (uint32_t i = 0; i < all->merged->chunk_edits.count; i++)
        if (all->merged->chunk_edits.items[i]->is_hooked)
            apply_chunk(all, all->merged->chunk_edits.items[i]);
}

static void apply_hooked_creates(const applying *all)
{
    for (uint32_t i = 0; i < all->merged->create_edits_count; i++)
        if (all->merged->edits.items[i].is_hooked) apply_creates(all, &all->merged->edits.items[i]);
}

void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor)
{
    applying it = {.resolved = resolved,
                   .merged = merged,
                   .gathered = gathered,
                   .storage = storage,
                   .executor = executor};
    applying *all = &it;
    take_handles(all);
    if (QUERN_CHECKS && all->resolved->created.count > 0) quern__gathered_look_for_provisional(gathered);
    if (all->resolved->created.count > 0)
        quern__executor_run(executor, all->gathered->streams.count, EDITS_PER_CALL, remap_streams, all);
    extend_archetypes(all);
    quern__executor_run(executor, all->merged->chunk_edits.count, EDITS_PER_CALL, apply_all_chunks, all);
    apply_hooked_chunks(all);
    quern__executor_run(executor, all->merged->create_edits_count, EDITS_PER_CALL, apply_all_creates, all);
    apply_hooked_creates(all);
    for (uint32_t i = 0; i < all->resolved->deltas.count; i++)
        finish_archetype(all, &all->resolved->deltas.items[i]);
    quern__slots_free(all->storage, all->resolved->destroyed.items, all->resolved->destroyed.count);
    all->resolved->freed_count = all->resolved->destroyed.count;
    quern__structure_changed(all->storage);
}
