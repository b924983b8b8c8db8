/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Settling: what each program comes to, how many rows each archetype loses and gets, and room for all of
 * it. The last step that may fail. */

#include "core/base/bitset.h"
#include "core/commands/playback.h"
#include "core/storage/change.h"

#include <quern/world.h>

/* ------------------------------------------------------------------------------------------- programs */

/* What a program makes of each component. It is read backwards: what comes last decides. */
typedef struct outcome {
    uint64_t decided[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint64_t present[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)]; /* of those decided */
    uint64_t fresh[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];   /* present, with a new value */
    /* present because of an add without a value, which leaves the value that an earlier operation decides
     * on */
    uint64_t pending[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    quern__fill fills[QUERN_MAX_COMPONENTS]; /* of components with a fresh value, half filled in */
} outcome;

static void decide(outcome *it, uint32_t component_index, bool is_present)
{
    quern__bitset_add(it->decided, component_index);
    if (is_present) quern__bitset_add(it->present, component_index);
}

static void decide_value(outcome *it, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    decide(it, operand->component_index, true);
    quern__bitset_add(it->fresh, operand->component_index);
    bool owns = operand->offset_bytes != 0 && operand->type->hooks.destroy != NULL;
    it->fills[operand->component_index] = (quern__fill){
        .type = operand->type,
        .size_bytes = operand->size_bytes,
        .value_offset_bytes = operand->offset_bytes,
        .living_offset_bytes = (uint16_t)(owns ? operation->living_offset_bytes + i : 0),
        .hop = hop,
        .is_plain = operand->is_plain,
    };
}

static void read_add(outcome *it, const quern__operation *operation, uint32_t hop)
{
    uint32_t index = operation->operands[0].component_index;
    if (quern__bitset_has(it->decided, index)) return;
    if (operation->operands[0].offset_bytes != 0)
        decide_value(it, operation, 0, hop);
    else
        quern__bitset_add(it->pending, index);
}

/* A component that is gone before a pending add comes back constructed. */
static void read_remove(outcome *it, const quern__operation *operation, uint32_t hop)
{
    uint32_t index = operation->operands[0].component_index;
    if (quern__bitset_has(it->decided, index)) return;
    if (quern__bitset_has(it->pending, index))
        decide_value(it, operation, 0, hop);
    else
        decide(it, index, false);
}

static void read_create(outcome *it, const quern__operation *operation, uint32_t hop)
{
    for (uint32_t i = 0; i < operation->operand_count; i++)
        if (!quern__bitset_has(it->decided, operation->operands[i].component_index))
            decide_value(it, operation, i, hop);
}

static void read_operation(outcome *it, const quern__operation *operation, uint32_t hop)
{
    if (operation->kind == QUERN__OPERATION_ADD)
        read_add(it, operation, hop);
    else if (operation->kind == QUERN__OPERATION_REMOVE)
        read_remove(it, operation, hop);
    else if (operation->kind == QUERN__OPERATION_CREATE)
        read_create(it, operation, hop);
}

/* What the program has not decided is as in the source; pending adds add what the source lacks. */
static void read_source(outcome *it, const quern__storage *storage, const quern__archetype *source)
{
    for (uint32_t i = 0; source != NULL && i < source->component_count; i++)
        if (!quern__bitset_has(it->decided, source->component_indices[i]))
            decide(it, source->component_indices[i], true);
    for (uint32_t word = 0; word < QUERN__COUNT_OF(it->pending); word++) {
        uint64_t left = it->pending[word] & ~it->decided[word];
        while (left != 0) {
            uint32_t index = word * 64 + quern__bitset_take_lowest(&left);
            const quern__type *type = quern__components_type(&storage->components, index);
            decide(it, index, true);
            quern__bitset_add(it->fresh, index);
            it->fills[index] = (quern__fill){.type = type, .size_bytes = (uint16_t)type->size_bytes};
        }
    }
}

static void read_program(outcome *it, const quern__storage *storage, const quern__programs *programs,
                         const quern__program_node *node)
{
    memset(it, 0, offsetof(outcome, fills));
    uint32_t hop = 0;
    for (const quern__program_node *at = node; at->operation != NULL;
         at = &programs->nodes.items[at->parent])
        read_operation(it, at->operation, hop++);
    read_source(it, storage, node->source);
}

static uint32_t list_present(const outcome *it, uint16_t *out_indices)
{
    uint32_t count = 0;
    for (uint32_t word = 0; word < QUERN__COUNT_OF(it->present); word++) {
        uint64_t left = it->present[word];
        while (left != 0)
            out_indices[count++] = (uint16_t)(word * 64 + quern__bitset_take_lowest(&left));
    }
    return count;
}

/* Sorted by hop, so that one walk along an edit's links meets them all. */
static void insert_fill(quern__programs *programs, uint32_t first, const quern__fill *fill)
{
    uint32_t i = programs->fills.count++;
    for (; i > first && programs->fills.items[i - 1].hop > fill->hop; i--)
        programs->fills.items[i] = programs->fills.items[i - 1];
    programs->fills.items[i] = *fill;
}

static bool list_fills(const outcome *it, quern__programs *programs, quern__program_node *node)
{
    const quern__archetype *target = node->target;
    uint32_t first = programs->fills.count;
    if (!quern__array_reserve(programs->allocator, &programs->fills, first + target->column_count))
        return false;
    for (uint32_t i = 0; i < target->column_count; i++) {
        const quern__column *column = &target->columns[i];
        if (!quern__bitset_has(it->fresh, column->component_index)) continue;
        quern__fill fill = it->fills[column->component_index];
        fill.target_offset_bytes = column->offset_bytes;
        fill.replaces = node->source != NULL && quern__archetype_has(node->source, column->component_index);
        insert_fill(programs, first, &fill);
        node->is_hooked |= !fill.is_plain;
    }
    node->first_fill = first;
    node->fill_count = programs->fills.count - first;
    return true;
}

/* What one entity asks for and cannot have must not stop all others: it stays as it was or, if it was to be
 * created, ends at once. */
static void refuse(quern__program_node *node, quern_result result, quern__playback_stats *stats)
{
    node->is_refused = true;
    node->target = node->source;
    node->is_destroyed = node->source == NULL;
    if (stats->refused_result == QUERN_OK) stats->refused_result = result;
}

static bool has_hooks(const quern__move_plan *plan)
{
    const quern__move_step *end =
        plan->steps + plan->shared_count + plan->added_count + plan->removed_count;
    for (const quern__move_step *step = plan->steps; step < end; step++)
        if (step->type != NULL) return true;
    return false;
}

static quern_result find_target(quern__storage *storage, const outcome *it, quern__program_node *node)
{
    uint16_t set[QUERN_MAX_COMPONENTS];
    uint32_t count = list_present(it, set);
    quern_result result = quern__storage_archetype(storage, set, count, &node->target);
    if (result != QUERN_OK || node->source == NULL || node->source == node->target) return result;
    result = quern__plan_between(storage, node->source, node->target, &node->plan);
    if (result == QUERN_OK) node->is_hooked = has_hooks(node->plan);
    return result;
}

static quern_result settle_node(quern__storage *storage, quern__programs *programs,
                                quern__program_node *node, quern__playback_stats *stats)
{
    node->is_settled = true;
    if (node->is_destroyed) {
        node->is_hooked = node->source != NULL && node->source->has_destroy;
        return QUERN_OK;
    }
    outcome it;
    read_program(&it, storage, programs, node);
    quern_result result = find_target(storage, &it, node);
    if (result == QUERN_OK && !list_fills(&it, programs, node))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the values of a program");
    if (result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    refuse(node, result, stats);
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------------- flows */

/* The flow of an archetype, made where there is none. NULL: no memory. */
static quern__flow *find_flow(quern__playback *playback, quern__archetype *archetype)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    uint32_t archetype_count = playback->storage->archetypes.count;
    if (!quern__array_reserve(allocator, &playback->flow_of_archetype, archetype_count)) return NULL;
    while (playback->flow_of_archetype.count < archetype_count)
        playback->flow_of_archetype.items[playback->flow_of_archetype.count++] = 0;
    uint32_t *place = &playback->flow_of_archetype.items[archetype->index];
    if (*place < playback->flows.count && playback->flows.items[*place].archetype == archetype)
        return &playback->flows.items[*place];
    if (!quern__array_reserve(allocator, &playback->flows, playback->flows.count + 1)) return NULL;
    *place = playback->flows.count++;
    playback->flows.items[*place] =
        (quern__flow){.archetype = archetype,
                      .row_count = (uint32_t)quern__archetype_row_count(archetype),
                      .counted_sheet = UINT32_MAX};
    return &playback->flows.items[*place];
}

/* What a walk over the sheets has counted. */
typedef struct totals {
    uint64_t destroyed; /* slots to be freed */
    uint64_t created;
} totals;

/* Rows that end in another archetype: they get their ranks there from the first tally of the sheet
 * that leads to it. */
static quern_result settle_arrivals(quern__playback *playback, const quern__sheet *sheet,
                                    uint32_t tally_index, quern__archetype *target)
{
    quern__flow *flow = find_flow(playback, target);
    if (flow == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t number = (uint32_t)(sheet - playback->sheets.items);
    uint32_t *coming = sheet->chunk != NULL ? &flow->arriving_count : &flow->created_count;
    quern__tally *tally = &sheet->scratch->tallies.items[tally_index];
    if (flow->counted_sheet != number) {
        flow->counted_sheet = number;
        flow->tally = tally_index;
        tally->arrival = *coming;
    }
    tally->leader = flow->tally;
    *coming += tally->count;
    return QUERN_OK;
}

static quern_result settle_tally(quern__playback *playback, quern__sheet *sheet, uint32_t tally_index,
                                 totals *sums, quern__playback_stats *stats)
{
    quern__programs *programs = &sheet->scratch->programs;
    quern__tally *tally = &sheet->scratch->tallies.items[tally_index];
    quern__program_node *node = &programs->nodes.items[tally->node];
    if (!node->is_settled) {
        quern_result result = settle_node(playback->storage, programs, node, stats);
        if (result != QUERN_OK) return result;
    }
    sheet->is_hooked |= node->is_hooked;
    if (node->is_refused) stats->refused_count += tally->count;
    if (node->is_destroyed) {
        sums->destroyed += tally->count;
        stats->destroyed_count += tally->count;
    }
    bool leaves = node->source != NULL && (node->is_destroyed || node->target != node->source);
    if (leaves) {
        quern__flow *flow = find_flow(playback, node->source);
        if (flow == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        flow->leaving_count += tally->count;
    }
    if (node->is_destroyed || node->target == node->source) return QUERN_OK;
    return settle_arrivals(playback, sheet, tally_index, node->target);
}

static quern_result settle_sheet(quern__playback *playback, quern__sheet *sheet, totals *sums,
                                 quern__playback_stats *stats)
{
    sheet->first_destroyed = sums->destroyed;
    if (sheet->chunk == NULL) {
        sheet->first_created = sums->created;
        sums->created += sheet->row_count;
    } else {
        const quern__flow *flow = find_flow(playback, sheet->archetype);
        if (flow == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        sheet->first_gap = flow->leaving_count; /* from the flow's first gap on */
    }
    for (uint32_t i = 0; i < sheet->tally_count; i++) {
        quern_result result = settle_tally(playback, sheet, sheet->first_tally + i, sums, stats);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result settle_sheets(quern__playback *playback, totals *sums, quern__playback_stats *stats)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < playback->sorted_sheets.count && result == QUERN_OK; i++)
        result = settle_sheet(playback, playback->sorted_sheets.items[i], sums, stats);
    for (uint32_t i = 0; i < playback->create_sheets.count && result == QUERN_OK; i++)
        result = settle_sheet(playback, playback->create_sheets.items[i], sums, stats);
    return result;
}

/* ----------------------------------------------------------------------------------------------- room */

static uint32_t appended_count(const quern__flow *flow)
{
    uint32_t filled = flow->created_count < flow->leaving_count ? flow->created_count : flow->leaving_count;
    return flow->arriving_count + flow->created_count - filled;
}

static quern_result reserve_flows(quern__playback *playback, uint64_t *out_gap_count,
                                  uint32_t *out_most_left_over)
{
    for (uint32_t i = 0; i < playback->flows.count; i++) {
        quern__flow *flow = &playback->flows.items[i];
        flow->first_gap = *out_gap_count;
        *out_gap_count += flow->leaving_count;
        if (flow->leaving_count > flow->created_count)
            flow->left_over_count = flow->leaving_count - flow->created_count;
        flow->is_emptied =
            flow->leaving_count == flow->row_count && flow->arriving_count == 0 && flow->created_count == 0;
        if (flow->left_over_count > *out_most_left_over) *out_most_left_over = flow->left_over_count;
        quern_result result = quern__rows_reserve(playback->storage, flow->archetype, appended_count(flow));
        if (result != QUERN_OK) return result;
        flow->is_reserved = true;
    }
    return QUERN_OK;
}

static bool reserve_lists(quern__playback *playback, uint64_t gap_count, uint32_t most_left_over,
                          const totals *sums)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    uint32_t drops = playback->drops.count;
    for (uint32_t i = 0; i < playback->scratches.count; i++)
        drops += playback->scratches.items[i]->drops.count;
    playback->destroyed.count = 0;
    if (sums->destroyed > playback->destroyed.capacity) playback->freed_count = 0;
    return quern__array_reserve(allocator, &playback->gaps, (uint32_t)gap_count) &&
           quern__array_reserve(allocator, &playback->tails, most_left_over) &&
           quern__array_reserve(allocator, &playback->destroyed, (uint32_t)sums->destroyed) &&
           quern__array_reserve(allocator, &playback->created, (uint32_t)sums->created) &&
           quern__array_reserve(allocator, &playback->drops, drops);
}

static quern_result reserve_room(quern__playback *playback, const totals *sums)
{
    quern__storage *storage = playback->storage;
    if (sums->created > QUERN_MAX_ENTITIES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "%llu creates at one sync point; the limit is %u "
                           "(QUERN_MAX_ENTITIES)",
                           (unsigned long long)sums->created, QUERN_MAX_ENTITIES);
    quern_result result =
        quern__entities_reserve(&storage->entities, &storage->allocator, (uint32_t)sums->created);
    uint64_t gap_count = 0;
    uint32_t most_left_over = 0;
    if (result == QUERN_OK) result = reserve_flows(playback, &gap_count, &most_left_over);
    if (result == QUERN_OK && !reserve_lists(playback, gap_count, most_left_over, sums))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list what comes and goes");
    if (result == QUERN_OK) playback->destroyed.count = (uint32_t)sums->destroyed;
    return result;
}

void quern__playback_unsettle(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->flows.count; i++)
        if (playback->flows.items[i].is_reserved)
            quern__rows_unreserve(playback->storage, playback->flows.items[i].archetype);
    quern__entities_trim(&playback->storage->entities, &playback->storage->allocator);
}

/* ------------------------------------------------------------------------------------------- refusals */

static const quern__program_node *node_of(const quern__playback *playback,
                                          const quern__sorted_stream *sorted, quern_entity entity)
{
    const quern__sheet *sheet = NULL;
    uint32_t row = quern_entity_index(entity);
    if (quern_entity_is_provisional(entity)) {
        sheet = &playback->sheets.items[sorted->create_sheet];
    } else {
        const quern__record *record = quern__entities_find(&playback->storage->entities, entity);
        if (record == NULL) return NULL;
        sheet = &playback->sheets.items[quern__chunk_of(record->location)->sheet_index];
        row = quern__location_row(record->location);
    }
    return &sheet->scratch->programs.nodes.items[sheet->edits[row].node];
}

/* Refusals are rare, so who asked is found by looking through all commands again. */
static void drop_refused_of_run(const quern__playback *playback, const quern__sorted_stream *sorted,
                                quern__run *run, uint64_t number)
{
    quern__scratch *scratch = playback->scratches.items[0];
    const quern__operation *operation = run->operation;
    bool creates = operation->kind == QUERN__OPERATION_CREATE;
    for (uint32_t i = 0; i < run->item_count; i++) {
        quern_entity entity = quern__run_item(run, i)->entity;
        const quern__program_node *node = node_of(playback, sorted, entity);
        if (node != NULL && node->is_refused && operation->command_count > creates)
            quern__scratch_drop(scratch, sorted->stream, number + i, entity,
                                operation->command_count - creates, QUERN_DROP_REFUSED);
    }
}

static bool drop_refused(const quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->streams.count; i++) {
        const quern__sorted_stream *sorted = &playback->streams.items[i];
        quern__run *run = sorted->stream->first;
        uint64_t number = 0;
        for (uint32_t k = 0; k < sorted->stream->run_count; k++) {
            if (k > 0) {
                number += run->item_count;
                run = quern__run_next(run);
            }
            drop_refused_of_run(playback, sorted, run, number);
        }
    }
    return !playback->scratches.items[0]->is_out_of_memory;
}

/* -------------------------------------------------------------------------------------------- settle */

quern_result quern__playback_settle(quern__playback *playback, quern__playback_stats *stats)
{
    totals sums = {0};
    quern_result result = settle_sheets(playback, &sums, stats);
    stats->created_count = sums.created;
    if (result == QUERN_OK && stats->refused_count > 0 && !drop_refused(playback))
        result = QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_OK) return reserve_room(playback, &sums);
    if (result == QUERN_ERROR_OUT_OF_MEMORY)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to settle what commands come to");
    return result;
}
