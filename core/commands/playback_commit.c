/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Committing: everything has been found and reserved, and nothing can fail.
 *
 *   1. creates take their handles, and provisional handles inside values become these
 *   2. each chunk with a sheet: rows that go to other archetypes are copied behind the rows there, values
 *      are set in place, rows that are left are listed as gaps
 *   3. new entities fill gaps, or the rows behind
 *   4. the last rows of each archetype fill the gaps that are left, and the archetype ends there
 *   5. slots of destroyed entities are freed
 *
 * Steps 2, 3 and 4 are shared out among threads: what one chunk, one stream or one gap writes nobody else
 * touches, and what a step reads the steps before have written. Where hooks are called, the same is done on
 * the caller alone, in the same order, after the threads have done the rest: hooks see one order at every
 * number of threads. */

#include "core/commands/playback.h"
#include "core/storage/change.h"

enum { SHEETS_PER_CALL = 4, MOVES_PER_CALL = 1024 };

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

/* All values of one row; its program has several operations. */
static void fill_row(const quern__scratch *scratch, const quern__program_node *node, uintptr_t to,
                     const quern__edit *edit)
{
    const quern__fill *fill = &scratch->programs.fills.items[node->first_fill];
    char *item = edit->item;
    uint32_t hop = 0, earlier = edit->earlier;
    for (const quern__fill *end = fill + node->fill_count; fill < end; fill++) {
        for (; hop < fill->hop; hop++) {
            const quern__link *link = &scratch->links.items[earlier];
            item = link->item;
            earlier = link->earlier;
        }
        fill_value(fill, quern__location_value(to, fill->target_offset_bytes, fill->size_bytes), item);
    }
}

/* The values of neighbouring rows with the same program of one operation, column by column. */
static void fill_columns(const quern__scratch *scratch, const quern__program_node *node, uintptr_t to,
                         const quern__edit *edits, uint32_t count)
{
    const quern__fill *fill = &scratch->programs.fills.items[node->first_fill];
    for (const quern__fill *end = fill + node->fill_count; fill < end; fill++) {
        char *target = quern__location_value(to, fill->target_offset_bytes, fill->size_bytes);
        for (uint32_t i = 0; i < count; i++, target += fill->size_bytes)
            fill_value(fill, target, edits[i].item);
    }
}

static void fill_rows(const quern__scratch *scratch, const quern__program_node *node, uintptr_t to,
                      const quern__edit *edits, uint32_t count)
{
    if (node->fill_count == 0) return; /* the list of all fills may have no memory */
    if (node->depth == 1) {
        fill_columns(scratch, node, to, edits, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        fill_row(scratch, node, to + i, &edits[i]);
}

/* -------------------------------------------------------------------------------------------- handles */

/* Most slots taken now are those freed by the latest sync point, the last one first. Their list is still
 * there, and the free list is a chain: without a hint each link of it would be waited for. */
static void fetch_freed(const quern__playback *playback, uint32_t wanted_count)
{
    const quern__entities *entities = &playback->storage->entities;
    uint32_t first = playback->freed_count > wanted_count ? playback->freed_count - wanted_count : 0;
    for (uint32_t i = first; i < playback->freed_count; i++)
        __builtin_prefetch(quern__entities_record(entities, playback->destroyed.items[i]), 1);
}

/* Of all streams: the last sheet ends the list. */
static uint32_t created_count(const quern__playback *playback)
{
    if (playback->create_sheets.count == 0) return 0;
    const quern__sheet *last = playback->create_sheets.items[playback->create_sheets.count - 1];
    return (uint32_t)last->first_created + last->row_count;
}

static void take_handles(quern__playback *playback)
{
    const uint32_t count = created_count(playback);
    fetch_freed(playback, count);
    quern__slots_take(playback->storage, count, playback->created.items);
    playback->created.count = count;
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

static void remap_stream(const quern__playback *playback, const quern__sorted_stream *sorted)
{
    if (sorted->create_sheet == QUERN__SHEET_NONE || !sorted->stream->has_entity_fields) return;
    quern_entity *created =
        playback->created.items + playback->sheets.items[sorted->create_sheet].first_created;
    quern__run *run = sorted->stream->first;
    for (uint32_t i = 0; i < sorted->stream->run_count; i++) {
        if (i > 0) run = quern__run_next(run);
        if (!run->operation->has_entity_fields) continue;
        for (uint32_t k = 0; k < run->item_count; k++)
            remap_item(run->operation, (char *)quern__run_item(run, k), created);
    }
}

static void remap_streams(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__playback *playback = argument;
    for (uint32_t i = begin; i < end; i++)
        remap_stream(playback, &playback->streams.items[i]);
}

/* --------------------------------------------------------------------------------------------- sheets */

/* A sheet being committed. */
typedef struct commit {
    quern__playback *playback;
    const quern__sheet *sheet;
    uintptr_t *gap; /* where the next one is listed; NULL: nobody asks */
    uint32_t *destroyed;
} commit;

/* A part of a list that may be empty: then it has no memory, and NULL is not counted from. */
static uint32_t *destroyed_of(const quern__playback *playback, const quern__sheet *sheet)
{
    return playback->destroyed.count > 0 ? playback->destroyed.items + sheet->first_destroyed : NULL;
}

static uintptr_t *gaps_of(const quern__playback *playback, const quern__flow *flow,
                          const quern__sheet *sheet)
{
    if (flow->is_emptied || flow->leaving_count == 0) return NULL;
    return playback->gaps.items + flow->first_gap + sheet->first_gap;
}

/* Where the next row that comes to a target goes, and how many go behind it in the same chunk. */
static uintptr_t next_arrival(quern__tally *leader, const quern__flow *flow, uint32_t wanted,
                              uint32_t *out_count)
{
    if (leader->left_count == 0) {
        leader->at = quern__archetype_location(flow->archetype, flow->row_count + leader->arrival);
        leader->left_count = flow->archetype->row_capacity - quern__location_row(leader->at);
    }
    uintptr_t at = leader->at;
    *out_count = wanted < leader->left_count ? wanted : leader->left_count;
    leader->left_count -= *out_count;
    leader->arrival += *out_count;
    leader->at += *out_count;
    return at;
}

static void move_rows(const commit *it, const quern__program_node *node, quern__tally *leader, uint32_t row,
                      uint32_t count)
{
    const quern__sheet *sheet = it->sheet;
    const quern__flow *flow = quern__playback_flow(it->playback, node->target);
    for (uint32_t end = row + count, fitting; row < end; row += fitting) {
        uintptr_t to = next_arrival(leader, flow, end - row, &fitting);
        quern__rows_move(it->playback->storage, node->plan, to, quern__location_make(sheet->chunk, row),
                         fitting);
        fill_rows(sheet->scratch, node, to, sheet->edits + row, fitting);
    }
}

/* Values that were set in rows that stay. */
static void tell_written(const quern__sheet *sheet, const quern__program_node *node, uintptr_t location,
                         uint32_t count)
{
    const quern__fill *fill = &sheet->scratch->programs.fills.items[node->first_fill];
    for (uint32_t i = 0; i < node->fill_count; i++) {
        const quern__column *column = sheet->archetype->columns;
        while (column->offset_bytes != fill[i].target_offset_bytes)
            column++;
        quern__rows_written(sheet->archetype, location, count, column->component_index);
    }
}

static void commit_rows(commit *it, const quern__row_run *run)
{
    const quern__sheet *sheet = it->sheet;
    quern__tally *tallies = sheet->scratch->tallies.items;
    const quern__program_node *node = &sheet->scratch->programs.nodes.items[tallies[run->tally].node];
    uint32_t row = run->row, count = run->count;
    uintptr_t location = quern__location_make(sheet->chunk, row);
    if (!node->is_destroyed && node->target == sheet->archetype) {
        fill_rows(sheet->scratch, node, location, sheet->edits + row, count);
        if (quern__writes_are_heard(sheet->archetype)) tell_written(sheet, node, location, count);
        return;
    }
    if (node->is_destroyed) {
        quern__rows_leave(sheet->archetype, location, count);
        assert(it->destroyed != NULL);
        for (uint32_t i = 0; i < count; i++)
            *it->destroyed++ =
                quern_entity_index(((const quern__item *)(const void *)sheet->edits[row + i].item)->entity);
    } else {
        move_rows(it, node, &tallies[tallies[run->tally].leader], row, count);
    }
    for (uint32_t i = 0; i < count && it->gap != NULL; i++)
        *it->gap++ = location + i;
}

static void commit_sheet(quern__playback *playback, const quern__sheet *sheet)
{
    const quern__flow *flow = quern__playback_flow(playback, sheet->archetype);
    commit it = {.playback = playback,
                 .sheet = sheet,
                 .gap = gaps_of(playback, flow, sheet),
                 .destroyed = destroyed_of(playback, sheet)};
    const quern__row_run *run = &sheet->scratch->runs.items[sheet->first_run];
    for (const quern__row_run *end = run + sheet->run_count; run < end; run++)
        commit_rows(&it, run);
}

static void commit_sheets(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    quern__playback *playback = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!playback->sorted_sheets.items[i]->is_hooked)
            commit_sheet(playback, playback->sorted_sheets.items[i]);
}

/* -------------------------------------------------------------------------------------------- creates */

/* Where the next new entity goes: a gap, or behind all rows. */
static uintptr_t next_created(const quern__playback *playback, quern__tally *leader,
                              const quern__flow *flow, uint32_t wanted, uint32_t *out_count)
{
    if (leader->arrival < flow->leaving_count) {
        *out_count = 1;
        return playback->gaps.items[flow->first_gap + leader->arrival++];
    }
    if (leader->left_count == 0) {
        uint32_t row = flow->row_count + flow->arriving_count + leader->arrival - flow->leaving_count;
        leader->at = quern__archetype_location(flow->archetype, row);
        leader->left_count = flow->archetype->row_capacity - quern__location_row(leader->at);
    }
    return next_arrival(leader, flow, wanted, out_count);
}

static void create_rows(const commit *it, const quern__program_node *node, quern__tally *leader,
                        uint32_t row, uint32_t count)
{
    const quern__sheet *sheet = it->sheet;
    const quern__flow *flow = quern__playback_flow(it->playback, node->target);
    const quern_entity *handles = it->playback->created.items + sheet->first_created;
    for (uint32_t end = row + count, fitting; row < end; row += fitting) {
        uintptr_t to = next_created(it->playback, leader, flow, end - row, &fitting);
        quern__rows_arrive(it->playback->storage, node->target, to, handles + row, fitting);
        fill_rows(sheet->scratch, node, to, sheet->edits + row, fitting);
    }
}

static void commit_creates(quern__playback *playback, const quern__sheet *sheet)
{
    commit it = {.playback = playback, .sheet = sheet, .destroyed = destroyed_of(playback, sheet)};
    quern__tally *tallies = sheet->scratch->tallies.items;
    const quern__row_run *run = &sheet->scratch->runs.items[sheet->first_run];
    for (const quern__row_run *end = run + sheet->run_count; run < end; run++) {
        const quern__program_node *node = &sheet->scratch->programs.nodes.items[tallies[run->tally].node];
        assert(it.destroyed != NULL || !node->is_destroyed);
        if (node->is_destroyed)
            for (uint32_t i = 0; i < run->count; i++)
                *it.destroyed++ =
                    quern_entity_index(playback->created.items[sheet->first_created + run->row + i]);
        else
            create_rows(&it, node, &tallies[tallies[run->tally].leader], run->row, run->count);
    }
}

static void commit_create_sheets(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    quern__playback *playback = argument;
    for (uint32_t i = begin; i < end; i++)
        if (!playback->create_sheets.items[i]->is_hooked)
            commit_creates(playback, playback->create_sheets.items[i]);
}

/* ---------------------------------------------------------------------------------------- compaction */

/* The gaps of one flow that no create has filled, and the rows that go there. */
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
static uint32_t list_tails(quern__playback *playback, const quern__flow *flow, uint32_t end,
                           const uintptr_t *gap, const uintptr_t *gaps_end)
{
    const quern__archetype *archetype = flow->archetype;
    uint32_t row_count = (uint32_t)quern__archetype_row_count(archetype), count = 0;
    for (uint32_t row = end; row < row_count;) {
        uintptr_t location = quern__archetype_location(archetype, row);
        uint32_t in_chunk = archetype->row_capacity - quern__location_row(location);
        for (uint32_t i = 0; i < in_chunk && row < row_count; i++, row++) {
            if (gap < gaps_end && *gap == location + i)
                gap++;
            else
                playback->tails.items[count++] = location + i;
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

static void compact(quern__playback *playback, const quern__flow *flow)
{
    const quern__archetype *archetype = flow->archetype;
    const uintptr_t *gaps = playback->gaps.items + flow->first_gap + flow->created_count;
    const uintptr_t *gaps_end = gaps + flow->left_over_count;
    uint32_t end = (uint32_t)quern__archetype_row_count(archetype) - flow->left_over_count;
    const uintptr_t *behind = gaps_end;
    while (behind > gaps && row_of(archetype, behind[-1]) >= end)
        behind--;
    uint32_t count = list_tails(playback, flow, end, behind, gaps_end);
    assert(count == (uint32_t)(behind - gaps));
    closing it = {
        .storage = playback->storage, .archetype = archetype, .gaps = gaps, .tails = playback->tails.items};
    quern__executor_run(has_move_hook(archetype) ? NULL : playback->executor, count, MOVES_PER_CALL,
                        close_gaps, &it);
}

static void finish_flow(quern__playback *playback, const quern__flow *flow)
{
    if (flow->left_over_count > 0 && !flow->is_emptied) compact(playback, flow);
    quern__rows_cut(playback->storage, flow->archetype, flow->left_over_count);
}

/* --------------------------------------------------------------------------------------------- commit */

static void extend_flows(const quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->flows.count; i++)
        quern__rows_append_reserved(playback->storage, playback->flows.items[i].archetype);
}

static void commit_hooked(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->sorted_sheets.count; i++)
        if (playback->sorted_sheets.items[i]->is_hooked)
            commit_sheet(playback, playback->sorted_sheets.items[i]);
}

static void commit_hooked_creates(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->create_sheets.count; i++)
        if (playback->create_sheets.items[i]->is_hooked)
            commit_creates(playback, playback->create_sheets.items[i]);
}

void quern__playback_commit(quern__playback *playback)
{
    const quern__executor *executor = playback->executor;
    take_handles(playback);
    if (QUERN_CHECKS && playback->created.count > 0) quern__playback_look_for_provisional(playback);
    if (playback->created.count > 0)
        quern__executor_run(executor, playback->streams.count, SHEETS_PER_CALL, remap_streams, playback);
    extend_flows(playback);
    quern__executor_run(executor, playback->sorted_sheets.count, SHEETS_PER_CALL, commit_sheets, playback);
    commit_hooked(playback);
    quern__executor_run(executor, playback->create_sheets.count, SHEETS_PER_CALL, commit_create_sheets,
                        playback);
    commit_hooked_creates(playback);
    for (uint32_t i = 0; i < playback->flows.count; i++)
        finish_flow(playback, &playback->flows.items[i]);
    quern__slots_free(playback->storage, playback->destroyed.items, playback->destroyed.count);
    playback->freed_count = playback->destroyed.count;
    quern__structure_changed(playback->storage);
}
