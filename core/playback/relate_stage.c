/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: streams in order. Output: final links, and streams with follow-up commands on rows. Can fail: memory,
 * and slots for created entities; then everything is reverted. */
#include "core/playback/kind_calls.h"
#include "core/playback/relating.h"
#include "core/playback/view_edits.h"

#include <quern/world.h>

/* ------------------------------------------------------------------------------------------- walking */

/* Drops the i-th command of the batch if its entity is refused. */
static void refuse_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    const quern__note *entity = slot != QUERN__NOTE_NONE ? quern__relating_find(it->relating, slot) : NULL;
    if (entity != NULL && entity->is_refused) quern__play_drop_and_skip(it, item, i, QUERN_DROP_REFUSED);
}

static void walk_batch(const quern__play_walk *it)
{
    const quern__operation_kind kind = it->batch->operation->kind;
    quern__play_function *play = quern__kind_calls_of[kind].play;
    const bool is_row = quern__command_kinds[kind].merge_kind == QUERN__MERGE_ROW;
    if (is_row && it->relating->refused.count > 0) quern__play_each(it, refuse_item);
    if (it->switches) quern__play_tags(it);
    if (play != NULL) play(it);
}

static void walk_stream(quern__relating *relating, const quern__gathered *gathered, uint32_t index)
{
    quern__play_walk it = {.relating = relating,
                           .gathered = &gathered->streams.items[index],
                           .stream = index,
                           .relates = (relating->follow_ups.recorded_traits & QUERN__TRAIT_UNRELATED) == 0,
                           .switches =
                               (relating->follow_ups.recorded_traits & QUERN__TRAIT_NO_SWITCHES) == 0};
    const quern__stream *stream = it.gathered->stream;
    quern__walked_stream *walked = &relating->streams.items[index];
    it.created = relating->created.count > 0 ? relating->created.items + walked->first_created : NULL;
    it.batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count && !relating->is_out_of_memory; i++) {
        if (i > 0) {
            it.number += it.batch->item_count;
            it.batch = quern__batch_next(it.batch);
        }
        walk_batch(&it);
    }
    walked->last_batch = it.batch;
}

/* ------------------------------------------------------------------------------------------ the stage */

static void forget(quern__relating *relating)
{
    for (uint32_t i = 0; i < relating->notes.count; i++)
        relating->note_of_slot.items[relating->notes.items[i].slot] = 0;
    relating->notes.count = 0;
    relating->differences.count = 0;
    relating->noted_count = 0;
    quern__link_log_clear(&relating->storage->relations->log);
    relating->dropped.count = 0;
    relating->drops.count = 0;
    relating->is_out_of_memory = false;
}

void quern__relating_begin(quern__relating *relating)
{
    relating->refused.count = 0;
    relating->refused_result = QUERN_OK;
}

/* Reserves records for all creates and predicts their handles, so that commands can relate created entities. */
static quern_result reserve_created(quern__relating *relating, const quern__gathered *gathered)
{
    quern__storage *storage = relating->storage;
    if (gathered->create_count > QUERN_MAX_ENTITIES)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "one sync point cannot create %llu entities; the limit is %u (QUERN_MAX_ENTITIES)",
            (unsigned long long)gathered->create_count, QUERN_MAX_ENTITIES);
    const uint32_t count = (uint32_t)gathered->create_count;
    const quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    relating->created.count = 0;
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(&storage->allocator, &relating->created, count)) {
        relating->is_out_of_memory = true;
        return QUERN_OK;
    }
    quern__entities_peek(&storage->entities, count, relating->created.items);
    relating->created.count = count;
    return QUERN_OK;
}

static bool reserve_lists(quern__relating *relating, const quern__gathered *gathered)
{
    const quern_allocator *allocator = &relating->storage->allocator;
    const uint32_t stream_count = gathered->streams.count;
    uint32_t slot_count = relating->storage->entities.slot_count, first_created = 0;
    for (uint32_t i = 0; i < relating->created.count; i++)
        if (quern_entity_index(relating->created.items[i]) >= slot_count)
            slot_count = quern_entity_index(relating->created.items[i]) + 1;
    if (!quern__array_reserve(allocator, &relating->streams, stream_count) ||
        !quern__array_reserve(allocator, &relating->note_of_slot, slot_count))
        return false;
    while (relating->note_of_slot.count < slot_count)
        relating->note_of_slot.items[relating->note_of_slot.count++] = 0;
    for (uint32_t i = 0; i < stream_count; i++) {
        relating->streams.items[i] = (quern__walked_stream){
            .first_created = first_created, .first_note = QUERN__NOTE_NONE, .last_note = QUERN__NOTE_NONE};
        first_created += gathered->streams.items[i].stream->create_count;
    }
    for (uint32_t i = 0; i < relating->refused.count; i++) {
        quern__note *entity = quern__relating_note(relating, relating->refused.items[i]);
        if (entity == NULL) return false;
        entity->is_refused = true;
    }
    return true;
}

static quern_result play(quern__relating *relating, quern__gathered *gathered)
{
    quern_result result = reserve_created(relating, gathered);
    if (result != QUERN_OK) return result;
    if (!reserve_lists(relating, gathered)) relating->is_out_of_memory = true;
    for (uint32_t i = 0; i < gathered->streams.count && !relating->is_out_of_memory; i++)
        walk_stream(relating, gathered, i);
    if (relating->is_out_of_memory)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to change relations by commands");
    return quern__relating_add_follow_ups(relating, gathered);
}

quern_result quern__commands_relate(quern__relating *relating, quern__gathered *gathered)
{
    forget(relating);
    quern__follow_ups_begin(&relating->follow_ups, gathered);
    const quern_result result = play(relating, gathered);
    if (result != QUERN_OK) quern__relating_undo(relating, gathered);
    return result;
}

void quern__relating_undo(quern__relating *relating, quern__gathered *gathered)
{
    quern__link_log_revert(relating->storage);
    while (relating->dropped.count > 0) {
        const quern__dropped_item *dropped = &relating->dropped.items[--relating->dropped.count];
        if (dropped->is_of_view)
            *dropped->handle = dropped->head.entity;
        else
            *dropped->item = dropped->head;
    }
    quern__follow_ups_remove(&relating->follow_ups, gathered);
    quern__entities_trim(&relating->storage->entities, &relating->storage->allocator);
    forget(relating);
}

void quern__relating_finish(quern__relating *relating, quern__resolved *resolved)
{
    resolved->refused_count += relating->refused.count;
    if (relating->refused_result != QUERN_OK) resolved->refused_result = relating->refused_result;
    quern__relating_clear_ended(relating);
    forget(relating);
    quern__commands_reset(&relating->follow_ups.recorder);
}

quern_result quern__relating_count_drops(const quern__relating *relating, const quern__merged *merged)
{
    for (uint32_t i = 0; i < relating->drops.count; i++)
        if (!quern__drops_add(&merged->scratches.items[0]->drops, &relating->storage->allocator, 0,
                              &relating->drops.items[i]))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to count dropped commands");
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- refusals */

static quern_result refuse_slot(quern__relating *relating, uint32_t slot, quern_result why)
{
    const quern__note *entity = quern__relating_find(relating, slot);
    if (entity != NULL && entity->is_refused)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "commands on other entities change the level or target of entity %u, which cannot "
            "have the resulting components (%s): give the entity fewer or smaller components, or remove "
            "empty archetypes",
            slot, quern_result_string(why));
    if (!quern__relating_reserve_one(relating, &relating->refused))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list refused entities");
    relating->refused.items[relating->refused.count++] = slot;
    return QUERN_OK;
}

/* Lists the refused entities of view edits. */
static quern_result refuse_views(quern__relating *relating, const quern__chunk_edits *edits,
                                 quern_result why)
{
    quern_result result = QUERN_OK;
    uint32_t index = edits->first_view;
    for (uint32_t i = 0; i < edits->view_count; i++) {
        const quern__view_edit *view = quern__view_edit_at(edits, index);
        const quern_entity *entities = quern__view_entities(view->batch);
        index = view->next;
        if (!edits->scratch->sequences.list.items[view->sequence].is_refused) continue;
        for (uint32_t k = 0; k < view->batch->item_count && result == QUERN_OK; k++)
            if (quern__relating_find(relating, quern_entity_index(entities[k])) != NULL)
                result = refuse_slot(relating, quern_entity_index(entities[k]), why);
    }
    return result;
}

/* Lists the refused entities of these edits. created: handles of the created entities for edits of creates,
 * otherwise NULL. */
static quern_result refuse_rows(quern__relating *relating, const quern__chunk_edits *edits,
                                const quern_entity *created, quern_result why)
{
    const quern__row_range *range = &edits->scratch->row_ranges.items[edits->first_range];
    quern_result result = refuse_views(relating, edits, why);
    const quern_entity *handles = created;
    if (handles == NULL) handles = quern__archetype_entities(edits->archetype, edits->chunk);
    for (const quern__row_range *end = range + edits->range_count; range < end; range++) {
        const quern__edit_group *group = &edits->scratch->groups.items[range->group];
        if (!edits->scratch->sequences.list.items[group->sequence].is_refused) continue;
        for (uint32_t row = range->row; row < range->row + range->count && result == QUERN_OK; row++) {
            const uint32_t slot = quern_entity_index(handles[row]);
            if (created != NULL || quern__relating_find(relating, slot) != NULL)
                result = refuse_slot(relating, slot, why);
        }
    }
    return result;
}

quern_result quern__relating_refuse(quern__relating *relating, const quern__gathered *gathered,
                                    const quern__merged *merged, const quern__resolved *resolved,
                                    bool *out_is_again)
{
    const uint32_t count = relating->refused.count;
    const quern_result why = resolved->refused_result;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < merged->chunk_edits.count && result == QUERN_OK; i++)
        result = refuse_rows(relating, merged->chunk_edits.items[i], NULL, why);
    for (uint32_t i = 0; i < merged->streams.count && result == QUERN_OK; i++) {
        const uint32_t edits = merged->streams.items[i].create_edits;
        const bool relates = (gathered->streams.items[i].stream->traits & QUERN__TRAIT_UNRELATED) == 0;
        if (edits != QUERN__EDITS_NONE && relates)
            result = refuse_rows(relating, &merged->edits.items[edits],
                                 relating->created.items + relating->streams.items[i].first_created, why);
    }
    *out_is_again = relating->refused.count > count;
    if (*out_is_again && relating->refused_result == QUERN_OK) relating->refused_result = why;
    return result;
}
