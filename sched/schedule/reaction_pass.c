/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/schedule_plan.h"

/* The preparation of a pass of reactions: takes the pending changes and arranges them as items (schedule_plan.h). */

bool quern__reaction_pass_is_due(const quern__plan *plan, const quern__segment *segment)
{
    for (uint32_t i = segment->first; i < segment->end; i++)
        if (plan->order.items[i]->reaction->is_pending) return true;
    return false;
}

/* ---------------------------------------------------------------------------------------------- taking */

static bool reserve_items(quern__pass *pass)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    uint32_t block_count = 0, rows_count = 0, handle_count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        const quern__taken *taken = &system->reaction->taken;
        block_count += taken->removed.count;
        rows_count += taken->rows.count;
        if (quern__system_has_flag(system, QUERN_SYSTEM_EXCLUSIVE))
            for (uint32_t k = 0; k < taken->rows.count; k++)
                handle_count += taken->rows.items[k].count;
    }
    return quern__array_reserve(allocator, &pass->reaction_copies, block_count) &&
           quern__array_reserve(allocator, &pass->reaction_chunks, rows_count) &&
           quern__array_reserve(allocator, &pass->reaction_calls, rows_count) &&
           quern__array_reserve(allocator, &pass->reaction_handles, handle_count);
}

/* ------------------------------------------------------------------------------------------- arrange */

/* Returns the system's first rows that have no call yet, or NULL. */
static const quern__taken_rows *next_taken_rows(const quern__system *system)
{
    const quern__taken *taken = &system->reaction->taken;
    return system->next_taken_rows < taken->rows.count ? &taken->rows.items[system->next_taken_rows] : NULL;
}

/* Returns the rows of the first chunk, by archetype and index, for which some system has no call yet, or
 * NULL. */
static const quern__taken_rows *first_rows(const quern__pass *pass)
{
    const quern__taken_rows *first = NULL;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__taken_rows *rows = next_taken_rows(pass->systems.items[i]);
        if (rows == NULL) continue;
        if (first == NULL || rows->archetype->index < first->archetype->index ||
            (rows->archetype == first->archetype && rows->slot < first->slot))
            first = rows;
    }
    return first;
}

static void copy_handles(quern__pass *pass, const quern__taken *taken, const quern__taken_rows *rows)
{
    const quern__archetype *archetype = rows->archetype;
    const quern_entity *handles =
        quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[rows->slot]));
    quern__bit_range range = {0};
    while (quern__bitset_next_range(taken->words.items + rows->first_word,
                                    QUERN__BITSET_WORDS(archetype->shape.row_capacity), &range)) {
        memcpy(&pass->reaction_handles.items[pass->reaction_handles.count], handles + range.first,
               range.count * sizeof *handles);
        pass->reaction_handles.count += range.count;
    }
}

/* Adds the system's calls on the chunk: one for its added rows, and one for its set rows. */
static void add_calls(quern__pass *pass, const quern__reaction_chunk *chunk, quern__system *system)
{
    const quern__pass_table *table = &pass->tables.items[chunk->table];
    for (const quern__taken_rows *rows; (rows = next_taken_rows(system)) != NULL;) {
        if (rows->archetype != table->archetype || rows->slot != chunk->chunk_index) return;
        const quern__pass_call *call = &pass->calls.items[table->first_call];
        while (call->system != system)
            call++;
        system->next_taken_rows++;
        pass->reaction_calls.items[pass->reaction_calls.count++] =
            (quern__reaction_call){.call = call, .rows = rows, .ordinal = system->view_count++};
        system->entity_count += rows->count;
        if (quern__system_has_flag(system, QUERN_SYSTEM_EXCLUSIVE))
            copy_handles(pass, &system->reaction->taken, rows);
    }
}

/* Lists the chunks with their calls. The tables and the taken rows of each system are sorted by
 * archetype. */
static void add_chunks(quern__pass *pass)
{
    uint32_t table = 0;
    for (const quern__taken_rows *first; (first = first_rows(pass)) != NULL;) {
        while (pass->tables.items[table].archetype != first->archetype)
            table++;
        quern__reaction_chunk *chunk = &pass->reaction_chunks.items[pass->reaction_chunks.count++];
        *chunk = (quern__reaction_chunk){
            .table = table, .chunk_index = first->slot, .first_call = pass->reaction_calls.count};
        for (uint32_t i = 0; i < pass->systems.count; i++)
            add_calls(pass, chunk, pass->systems.items[i]);
        chunk->end_call = pass->reaction_calls.count;
    }
}

/* ------------------------------------------------------------------------------------------- prepare */

static void add_chunks_as_stage(quern__pass *pass, uint32_t count, bool shows_removed)
{
    const bool is_serial = pass->kind == QUERN__PASS_SERIAL;
    pass->stages[pass->stage_count++] = (quern__pass_stage){.pass = pass,
                                                            .chunk_count = count,
                                                            .item_count = is_serial ? count > 0 : count,
                                                            .shows_removed = shows_removed};
    pass->chunk_count += count;
    pass->item_count += pass->stages[pass->stage_count - 1].item_count;
}

quern_result quern__reaction_pass_prepare(quern__pass *pass)
{
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        quern__storage *storage = system->query.storage;
        system->is_active = false;
        system->view_count = system->next_taken_rows = 0;
        system->entity_count = 0;
        if (!system->is_enabled) quern__reaction_drop(storage, system->reaction);
        const quern_result result = quern__reaction_take(storage, system->reaction);
        if (result != QUERN_OK) return quern__message_add_call(result, system->name, NULL);
    }
    pass->reaction_copies.count = pass->reaction_chunks.count = 0;
    pass->reaction_calls.count = pass->reaction_handles.count = 0;
    if (!reserve_items(pass))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the views of reaction '%s'",
                           pass->systems.items[0]->name);
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        const quern__taken *taken = &system->reaction->taken;
        for (uint32_t k = 0; k < taken->removed.count; k++) {
            pass->reaction_copies.items[pass->reaction_copies.count++] = (quern__reaction_copies){
                .system = system, .block = &taken->removed.items[k], .ordinal = system->view_count++};
            system->entity_count += taken->removed.items[k].count;
        }
    }
    add_chunks(pass);
    pass->stage_count = pass->chunk_count = pass->item_count = 0;
    if (pass->reaction_copies.count > 0) add_chunks_as_stage(pass, pass->reaction_copies.count, true);
    add_chunks_as_stage(pass, pass->reaction_chunks.count, false);
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->is_active = system->view_count > 0;
        const quern_result reserved = quern__system_reserve_partials(system);
        if (reserved != QUERN_OK) return reserved;
    }
    return QUERN_OK;
}

void quern__reaction_pass_finish(const quern__plan *plan, const quern__segment *segment, bool has_run)
{
    for (uint32_t i = segment->first; i < segment->end; i++) {
        const quern__system *system = plan->order.items[i];
        if (has_run && system->refresh_result == QUERN_OK)
            quern__reaction_finish(system->query.storage, system->reaction);
        else
            quern__reaction_put_back(system->query.storage, system->reaction);
    }
}

void quern__reaction_pass_drop_changes(const quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        const quern__system *system = plan->systems.items[i];
        if (system->reaction != NULL) quern__reaction_drop(system->query.storage, system->reaction);
    }
}
