/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "sched/schedule/schedule_plan.h"

/* Runs the items of passes of reactions (sched/schedule/schedule_plan.h), and rounds of reactions in and between
 * frames. */

/* ------------------------------------------------------------------------------------------------- items */

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
                             .memory = block->memory,
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
    quern_view view = {.ordinal = reaction_call->ordinal,
                       .term_count = call->term_count,
                       .columns = call->columns,
                       .query = call->query,
                       .context = context,
                       .structure = (uint32_t)context->scope.storage->structure_version,
                       .old = reaction_call->rows->old,
                       .version = context->schedule->version_base + call->system->position};
    quern__view_set_chunk(&view, archetype, slot);
    quern__view_set_change_data(&view, archetype, reaction_call->rows->slot);
    const quern_entity *entities = view.entities;
    context->reaction = reaction_call->rows->kind;
    quern__pass_enter_call(context, call->system, QUERN__CALL_FIRST_VIEW + reaction_call->ordinal);
    const uint64_t *words = call->system->reaction->taken.words.items + reaction_call->rows->first_word;
    quern__bit_range range = {0};
    while (quern__bitset_next_range(words, QUERN__BITSET_WORDS(archetype->shape.row_capacity), &range)) {
        view.count = range.count;
        view.first_row = range.first;
        view.entities = entities + range.first;
        quern__pass_call_rows(context, archetype, call->run, &view, is_reported);
    }
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
        for (uint32_t i = begin; i < end; i++) {
            const uint32_t item = permute_item(stage, i);
            if (stage->shows_removed)
                call_copies(&pass->reaction_copies.items[item], context, is_reported);
            else {
                const quern__reaction_chunk *chunk = &pass->reaction_chunks.items[item];
                for (uint32_t k = chunk->first_call; k < chunk->end_call; k++)
                    call_rows(&pass->tables.items[chunk->table], &pass->reaction_calls.items[k], context,
                              is_reported);
            }
        }
    context->reaction = 0;
}

enum { NAMED_ROUNDS = 4 }; /* rounds of a cycle that the message names */

void quern__reaction_rounds_clear_frame(quern_schedule *schedule)
{
    schedule->has_reacted = false;
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        if (system->reaction == NULL) continue;
        system->step_view_count = 0;
        system->step_entity_count = 0;
    }
}

bool quern__reaction_rounds_are_due(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        const quern__system *system = schedule->plan.systems.items[i];
        if (system->reaction != NULL && system->reaction->is_pending) return true;
    }
    return false;
}

/* --------------------------------------------------------------------------------------------- trail */

typedef bool reaction_choice(const quern__system *system);

static bool has_run(const quern__system *system)
{
    return system->is_active;
}

static bool is_due(const quern__system *system)
{
    return system->reaction->is_pending;
}

/* Appends the selected reactions of a round to the trail: "'a', 'b' -> 'c'". */
static void append_round(quern_schedule *schedule, reaction_choice *is_selected)
{
    const quern__plan *plan = &schedule->plan;
    char *trail = schedule->reaction_trail;
    const char *separator = trail[0] != '\0' ? " -> " : "";
    const uint32_t first = plan->order.count - plan->reaction_count;
    for (uint32_t i = first; i < plan->order.count; i++) {
        const quern__system *system = plan->order.items[i];
        if (!is_selected(system)) continue;
        quern__append(trail, sizeof schedule->reaction_trail, "%s'%s'", separator, system->name);
        separator = ", ";
    }
}

/* -------------------------------------------------------------------------------------------- rounds */

quern_result quern__reaction_rounds_run(quern_schedule *schedule, quern__flush_report *report)
{
    const uint32_t round_limit = schedule->plan.max_reaction_rounds;
    if (!schedule->has_reached_round_limit) schedule->reaction_trail[0] = '\0';
    for (uint32_t round = 0; quern__reaction_rounds_are_due(schedule); round++) {
        if (round == round_limit) {
            if (!schedule->has_reached_round_limit) append_round(schedule, is_due);
            schedule->has_reached_round_limit = true;
            quern__reaction_pass_drop_changes(&schedule->plan);
            return QUERN_OK;
        }
        /* All reactions are inactive at first: a segment without pending changes does not run, so it would
         * keep the marks of the previous round. */
        schedule->has_reacted = true;
        for (uint32_t i = 0; i < schedule->plan.systems.count; i++)
            if (schedule->plan.systems.items[i]->reaction != NULL)
                schedule->plan.systems.items[i]->is_active = false;
        const quern_result result = quern__frame_run_round(schedule, report);
        if (result != QUERN_OK) return result;
        if (round + NAMED_ROUNDS >= round_limit && !schedule->has_reached_round_limit)
            append_round(schedule, has_run);
    }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- between frames */

static const char function_name[] = "quern_world_react";

static quern_result check_schedules(const quern_world *world, uint32_t *out_round_limit)
{
    *out_round_limit = 0;
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule) {
        const quern_result result = quern__schedule_check_idle(it, function_name);
        if (result != QUERN_OK) return result;
        if (it->plan.max_reaction_rounds > *out_round_limit)
            *out_round_limit = it->plan.max_reaction_rounds;
    }
    return QUERN_OK;
}

static quern_result fail_between(const quern_world *world, uint32_t round_limit)
{
    char names[384] = "";
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule)
        for (uint32_t i = 0; i < it->plan.systems.count; i++) {
            const quern__system *system = it->plan.systems.items[i];
            if (system->reaction == NULL || !system->reaction->is_pending) continue;
            quern__append(names, sizeof names, "%s'%s'", names[0] != '\0' ? ", " : "", system->name);
        }
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule)
        quern__reaction_pass_drop_changes(&it->plan);
    return quern__fail(
        QUERN_ERROR_LIMIT,
        "reactions of several schedules caused each other %u times, and the pending changes were "
        "dropped: %s. Break the cycle, or raise max_reaction_rounds of a schedule",
        round_limit, names);
}

static quern_result react_until_quiet(const quern_world *world, quern_jobs *jobs)
{
    uint32_t round_limit;
    bool has_reacted_again = true;
    quern_result result = check_schedules(world, &round_limit);
    for (uint32_t turn = 0; has_reacted_again && result == QUERN_OK; turn++) {
        if (turn == round_limit + 1) return fail_between(world, round_limit);
        /* Each schedule reacts until it has no pending changes. It may cause changes for schedules before it. */
        has_reacted_again = false;
        for (quern_schedule *it = world->first_schedule; it != NULL && result == QUERN_OK;
             it = it->next_schedule) {
            if (!quern__reaction_rounds_are_due(it)) continue;
            has_reacted_again = true;
            result = quern__frame_run_reactions(it, jobs, function_name);
        }
    }
    return result;
}

quern_result quern_world_react(quern_world *world, quern_jobs *jobs)
{
    if (world == NULL) return quern__fail_null(function_name, "world");
    if (!quern__world_claim(world, function_name)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = quern__world_check_unlocked(world, function_name);
    if (result == QUERN_OK) result = quern__in_call(react_until_quiet(world, jobs), function_name);
    quern__world_unclaim(world);
    return result;
}
