/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: streams in order. Output: changed links, and moved rows. Whatever can fail precedes the first move. */
#include "core/playback/only_relates.h"

#include "core/playback/play.h"

/* Returns the component of the batch's relation if it relates or unrelates entities one by one, otherwise
 * UINT32_MAX. */
static uint32_t component_of(const quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    const bool relates =
        operation->kind == QUERN__OPERATION_RELATE || operation->kind == QUERN__OPERATION_UNRELATE;
    return relates && !batch->is_view ? operation->operands[0].component_index : UINT32_MAX;
}

static quern_entity target_of(const quern__item *item, const quern__operation *operation)
{
    quern_entity target;
    memcpy(&target, (const char *)item + operation->operands[0].offset_bytes, sizeof target);
    return target;
}

/* Returns whether the first command of a batch would move a row to another archetype if no command preceded it. */
static bool moves_row(quern__command_batch *batch, const quern__relation *relation)
{
    const quern__item *item = quern__batch_item(batch, 0);
    const quern__link_node *link = quern__links_find(&relation->links, quern_entity_index(item->entity));
    uint32_t tier = 0;
    if (batch->operation->kind == QUERN__OPERATION_RELATE) {
        const quern_entity target = target_of(item, batch->operation);
        tier = quern__relation_source_level(relation, quern_entity_index(target)) + 1;
    }
    return tier != (link != NULL ? quern__link_tier(link) : 0);
}

/* Returns whether the first entity of a batch is in an archetype with listeners, or with hooks that a move of its row
 * would call. All stages run then. quern__tier_moves_prepare finds such archetypes of all entities, but only after all
 * links have changed, and these changes would have to be reverted. */
static bool is_observed(quern__command_batch *batch, const quern__relation *relation,
                        const quern__storage *storage)
{
    const quern__record *record =
        quern__entities_find(&storage->entities, quern__batch_item(batch, 0)->entity);
    if (record == NULL) return false;
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    return archetype->first_listener != NULL || (!archetype->is_plain && moves_row(batch, relation));
}

/* Returns the relation of all commands, or NULL if they are not all of the supported kinds and in one relation, or if
 * the first entity of a batch is observed. */
static quern__relation *relation_of_all(const quern__gathered *gathered, const quern__storage *storage)
{
    const uint32_t component = component_of(gathered->streams.items[0].stream->first);
    if (component == UINT32_MAX) return NULL;
    quern__relation *relation = storage->components.list.items[component]->managed.relation;
    if (relation->is_many) return NULL;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (component_of(batch) != component || is_observed(batch, relation, storage)) return NULL;
        }
    }
    return relation;
}

/* --------------------------------------------------------------------------------------------- links */

/* Adds a page of links for the slot, unless the slot belongs to an entity that no longer exists. */
static bool reserve_page(const quern__play_walk *it, quern__relation *relation, quern_entity entity)
{
    const quern__storage *storage = it->relating->storage;
    const uint32_t slot = quern_entity_index(entity);
    return slot >= storage->entities.slot_count ||
           quern__links_reserve(&relation->links, &storage->allocator, slot);
}

/* Reserves pages of links for all items of a batch. Returns false if out of memory. */
static bool reserve_pages(const quern__play_walk *it, quern__relation *relation)
{
    const quern__operation *operation = it->batch->operation;
    const bool relates = operation->kind == QUERN__OPERATION_RELATE;
    const quern__item *item = quern__batch_item(it->batch, 0);
    bool has_room = true;
    for (uint32_t i = 0; i < it->batch->item_count && has_room; i++) {
        has_room = reserve_page(it, relation, item->entity) &&
                   (!relates || reserve_page(it, relation, target_of(item, operation)));
        item = quern__item_next(item, operation);
    }
    return has_room;
}

/* Prefetches what playing relate commands soon after the i-th one reads. The slots of entities that no longer exist may
 * have no records. */
static inline void fetch_ahead(const quern__play_walk *it, const quern__relation *relation, uint32_t i)
{
    const quern__operation *operation = it->batch->operation;
    const quern__entities *entities = &it->relating->storage->entities;
    if (it->batch->item_count - i <= QUERN__LINKS_AHEAD) return;
    const quern__item *item = quern__batch_item(it->batch, i + QUERN__LINKS_AHEAD);
    uint32_t source = quern_entity_index(item->entity),
             target = quern_entity_index(target_of(item, operation));
    if (source < entities->slot_count && target < entities->slot_count) {
        QUERN__PREFETCH(quern__entities_record(entities, source));
        QUERN__PREFETCH(quern__entities_record(entities, target));
        quern__links_fetch_pair(&relation->links, source, target);
    }
    item = quern__batch_item(it->batch, i + QUERN__LINKS_AROUND_AHEAD);
    source = quern_entity_index(item->entity);
    target = quern_entity_index(target_of(item, operation));
    if (source < entities->slot_count && target < entities->slot_count)
        quern__links_fetch_around(&relation->links, relation->is_ordered, source, target);
}

/* Sets or removes (QUERN__SLOT_NONE) the target of the i-th item's entity, or drops the command. */
static void change_target(const quern__play_walk *it, quern__relation *relation, const quern__item *item,
                          uint32_t i, uint32_t source, uint32_t target)
{
    quern__relating *relating = it->relating;
    quern__storage *storage = relating->storage;
    const uint64_t count = it->batch->operation->command_count;
    if (quern__links_at(&relation->links, source)->target == target) return;
    if (target != QUERN__SLOT_NONE && quern__would_be_cycle(relation, source, target))
        quern__play_drop(it, item, i, QUERN_DROP_CYCLE, count);
    else if (!quern__naming_allows_target(storage, relation, source, target))
        quern__play_drop(it, item, i, QUERN_DROP_SIBLING_NAME_TAKEN, count);
    else if (quern__link_log_set_target(storage, relation, source, target, NULL) != QUERN_OK)
        relating->is_out_of_memory = true;
}

/* Changes the links by the commands of a batch, in order. */
static void play_items(const quern__play_walk *it, quern__relation *relation)
{
    const quern__operation *operation = it->batch->operation;
    const bool relates = operation->kind == QUERN__OPERATION_RELATE;
    const quern__item *item = quern__batch_item(it->batch, 0);
    for (uint32_t i = 0; i < it->batch->item_count && !it->relating->is_out_of_memory; i++) {
        if (relates) fetch_ahead(it, relation, i);
        const uint32_t source = quern__play_find_slot(it, item->entity);
        const uint32_t target =
            relates ? quern__play_find_slot(it, target_of(item, operation)) : QUERN__SLOT_NONE;
        if (source == QUERN__NOTE_NONE)
            quern__play_drop(it, item, i, QUERN_DROP_DEAD, operation->command_count);
        else if (relates && target == QUERN__NOTE_NONE)
            quern__play_drop(it, item, i, QUERN_DROP_TARGET_DEAD, operation->command_count);
        else
            change_target(it, relation, item, i, source, target);
        item = quern__item_next(item, operation);
    }
}

/* Changes the links by the commands of one stream. Returns false if out of memory. */
static bool play_stream(quern__relating *relating, quern__relation *relation,
                        const quern__gathered_stream *gathered, uint32_t index)
{
    const quern__stream *stream = gathered->stream;
    quern__play_walk it = {
        .relating = relating, .gathered = gathered, .stream = index, .batch = stream->first};
    for (uint32_t i = 0; i < stream->batch_count; i++) {
        if (i > 0) {
            it.number += it.batch->item_count;
            it.batch = quern__batch_next(it.batch);
        }
        if (!reserve_pages(&it, relation)) return false;
        play_items(&it, relation);
        if (relating->is_out_of_memory) return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------- path */

/* Adds the dropped commands to the drops of merging, and reserves entries for them. The end of the sync point marks the
 * sequences of a used scratch as current, so outdated ones are cleared first. Returns false if out of memory, or if no
 * sync point has made a scratch for drops yet. */
static bool count_drops(const quern__relating *relating, quern__merged *merged,
                        const quern__resolved *resolved, quern__drops *drops)
{
    const quern_allocator *allocator = &relating->storage->allocator;
    const uint32_t count = relating->drops.count;
    if (!quern__array_reserve(allocator, drops, drops->count + resolved->further_drop_count + count))
        return false;
    if (count == 0) return true;
    if (merged->scratches.count == 0) return false;
    quern__sequences_begin(&merged->scratches.items[0]->sequences, relating->storage->archetypes_version);
    merged->used_scratch_count = 1;
    if (quern__relating_count_drops(relating, merged) == QUERN_OK) return true;
    quern__merged_clear(merged, relating->storage, false);
    return false;
}

/* Changes all links and reserves what the rest needs. Returns false if that fails, or if all stages must run. */
static bool prepare(quern__relating *relating, quern__relation *relation, const quern__gathered *gathered,
                    quern__merged *merged, const quern__resolved *resolved, quern__drops *drops)
{
    quern__storage *storage = relating->storage;
    const uint32_t item_count = gathered->item_count < UINT32_MAX ? (uint32_t)gathered->item_count : 0;
    if (!quern__array_reserve(&storage->allocator, &storage->relations->log.changes, item_count))
        return false;
    for (uint32_t i = 0; i < gathered->streams.count; i++)
        if (!play_stream(relating, relation, &gathered->streams.items[i], i)) return false;
    if (quern__tier_moves_prepare(storage, relation) != QUERN_OK) return false;
    if (!storage->relations->tier_moves.is_observed && count_drops(relating, merged, resolved, drops))
        return true;
    quern__tier_moves_cancel(storage);
    return false;
}

bool quern__commands_only_relate(quern__relating *relating, quern__gathered *gathered,
                                 quern__merged *merged, quern__resolved *resolved, quern__drops *drops,
                                 const quern__executor *observer)
{
    quern__relation *relation = relation_of_all(gathered, relating->storage);
    if (relation == NULL) return false;
    quern__follow_ups_begin(&relating->follow_ups, gathered);
    if (!prepare(relating, relation, gathered, merged, resolved, drops)) {
        quern__relating_undo(relating, gathered);
        return false;
    }
    quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
    quern__tier_moves_apply(relating->storage, relation);
    quern__relating_finish(relating, resolved);
    return true;
}
