/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/context_internal.h"
#include "sched/frame/frame.h"
#include "sched/frame/pass_run.h"

/* Runs the items of a pass of reactions (sched/schedule/reaction_pass.h). */

/* Calls a system on copies of removed rows. The memory of the view is a block of the reaction instead of a
 * chunk. */
static void call_copies(const quern__reaction_copies *copies, quern_context *context, bool is_reported)
{
    const quern__taken_block *block = copies->block;
    const quern__system *system = copies->system;
    if (!system->is_active) return;
    const quern_view view = {.count = block->count,
                             .ordinal = copies->ordinal,
                             .entities = block->entities,
                             .term_count = system->query.term_count,
                             .chunk = block->memory,
                             .columns = block->columns,
                             .query = &system->query,
                             .context = context};
    context->reaction = QUERN_REACT_REMOVED;
    quern__pass_enter_call(context, system, QUERN__CALL_FIRST_VIEW + copies->ordinal);
    quern__pass_call_view(context, system->run, &view, is_reported);
}

/* Calls one system on its rows of one chunk. Each contiguous range of rows is a view. */
static void call_rows(const quern__pass_table *table, const quern__reaction_call *reaction_call,
                      quern_context *context, bool is_reported)
{
    const quern__pass_call *call = reaction_call->call;
    const quern__archetype *archetype = table->archetype;
    const quern__chunk_slot *slot = &archetype->slots[reaction_call->rows->slot];
    if (!call->system->is_active) return;
    const quern_entity *entities = quern__archetype_entities(archetype, slot->chunk);
    quern_view view = {.ordinal = reaction_call->ordinal,
                       .term_count = call->term_count,
                       .chunk = (char *)slot->chunk,
                       .columns = call->columns,
                       .query = call->query,
                       .context = context,
                       .old = reaction_call->rows->old,
                       .version = context->schedule->version_base + call->system->position};
    quern__view_set_change_data(&view, archetype, reaction_call->rows->slot);
    context->reaction = reaction_call->rows->kind;
    quern__pass_enter_call(context, call->system, QUERN__CALL_FIRST_VIEW + reaction_call->ordinal);
    const uint64_t *words = call->system->reaction->taken.words.items + reaction_call->rows->first_word;
    quern__bit_range range = {0};
    while (quern__bitset_next_range(words, QUERN__BITSET_WORDS(archetype->row_capacity), &range)) {
        view.count = range.count;
        view.first_row = range.first;
        view.entities = entities + range.first;
        quern__pass_call_rows(context, archetype, call->run, &view, is_reported);
    }
}

static void call_chunk(const quern__pass *pass, uint32_t item, quern_context *context, bool is_reported)
{
    const quern__reaction_chunk *chunk = &pass->reaction_chunks.items[item];
    for (uint32_t i = chunk->first_call; i < chunk->end_call; i++)
        call_rows(&pass->tables.items[chunk->table], &pass->reaction_calls.items[i], context, is_reported);
}

/* Makes all calls of an exclusive reaction in a round, on copied handles: earlier calls may have moved the
 * rows. */
static void call_exclusive(const quern__pass *pass, quern_context *context, bool is_reported)
{
    static const quern_view_column no_columns[QUERN_MAX_TERMS];
    const quern__system *system = pass->systems.items[0];
    const quern_entity *handles = pass->reaction_handles.items;
    for (uint32_t i = 0; i < pass->reaction_calls.count && system->is_active; i++) {
        const quern__reaction_call *reaction_call = &pass->reaction_calls.items[i];
        const quern_view view = {.count = reaction_call->rows->count,
                                 .ordinal = reaction_call->ordinal,
                                 .entities = handles,
                                 .term_count = system->query.term_count,
                                 .columns = no_columns,
                                 .query = &system->query,
                                 .context = context};
        context->reaction = reaction_call->rows->kind;
        quern__pass_enter_call(context, system, QUERN__CALL_FIRST_VIEW + reaction_call->ordinal);
        quern__pass_call_view(context, system->run, &view, is_reported);
        handles += view.count;
    }
}

static void call_item(const quern__pass_stage *stage, uint32_t item, quern_context *context,
                      bool is_reported)
{
    if (stage->shows_removed)
        call_copies(&stage->pass->reaction_copies.items[item], context, is_reported);
    else
        call_chunk(stage->pass, item, context, is_reported);
}

/* For tests: permutes items that may run in any order. */
static uint32_t permute_item(const quern__pass_stage *stage, uint32_t item)
{
    const uint64_t seed = stage->pass->plan->shuffle_seed;
    if (seed == 0 || stage->pass->kind != QUERN__PASS_CHUNKS) return item;
    return (stage->chunk_count - 1 - item + (uint32_t)(seed % stage->chunk_count)) % stage->chunk_count;
}

void quern__pass_run_reactions(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                               quern_context *context, bool is_reported)
{
    const quern__pass *pass = stage->pass;
    if (is_reported) quern__pass_begin_calls(context);
    if (!stage->shows_removed && quern__system_has_flag(pass->systems.items[0], QUERN_SYSTEM_EXCLUSIVE))
        call_exclusive(pass, context, is_reported);
    else
        for (uint32_t item = begin; item < end; item++)
            call_item(stage, permute_item(stage, item), context, is_reported);
    context->reaction = 0;
}
