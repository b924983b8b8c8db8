/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In: streams in order. Out: links as they will be, and streams with what follows from that for rows. What
 * may fail: memory, and slots for what is created; then everything is taken back. */
#include "core/playback/relating.h"

#include <quern/world.h>

/* ------------------------------------------------------------------------------------------ commands */

/* A walk over a stream. */
typedef struct relate_walk {
    quern__relating *relating;
    const quern__gathered_stream *gathered;
    uint32_t stream;             /* which it is */
    const quern_entity *created; /* the handles of what it creates */
    quern__run *run;
    uint64_t number; /* of the run's first item */
} relate_walk;

static void drop(const relate_walk *it, const quern__item *item, uint32_t i, quern_drop_reason reason,
                 uint64_t count)
{
    const quern__stream *stream = it->gathered->stream;
    const quern__drop dropped = {.source = stream->origin.source,
                                 .reason = reason,
                                 .count = count,
                                 .first_key = stream->origin.key,
                                 .first_item_number = it->number + i,
                                 .first_entity = item->entity};
    if (!quern__drops_add(&it->relating->drops, &it->relating->storage->allocator, 0, &dropped))
        it->relating->is_out_of_memory = true;
}

/* The same, for a command that merging would do. */
static void drop_and_skip(const relate_walk *it, quern__item *item, uint32_t i, quern_drop_reason reason)
{
    drop(it, item, i, reason, it->run->operation->command_count);
    if (!quern__relating_reserve_one(it->relating, &it->relating->dropped)) return;
    it->relating->dropped.items[it->relating->dropped.count++] =
        (quern__dropped_item){.item = item, .head = *item};
    *item = (quern__item){.entity = quern_entity_null()};
}

/* The slot of the entity that a handle names here; QUERN__NOTE_NONE: it does not live. */
static uint32_t find_slot(const relate_walk *it, quern_entity entity)
{
    const quern__entities *entities = &it->relating->storage->entities;
    if (quern_entity_is_provisional(entity))
        return quern_entity_index(it->created[quern_entity_index(entity)]);
    if (!it->gathered->is_located && quern__entities_find(entities, entity) == NULL)
        return QUERN__NOTE_NONE;
    return quern_entity_index(entity);
}

/* The note of an item's entity, made where there is none. */
static quern__note *note_item(const relate_walk *it, const quern__item *item, uint32_t slot)
{
    quern__note *entity = quern__relating_note(it->relating, slot);
    if (entity != NULL && quern_entity_is_provisional(item->entity))
        quern__relating_note_created(it->relating, entity, it->stream, quern_entity_index(item->entity));
    return entity;
}

static bool would_be_cycle(const quern__relation *relation, uint32_t source, uint32_t target)
{
    const quern__links *links = &relation->links;
    /* who has no children is above nobody */
    return relation->has_levels && quern__links_first(links, source) != QUERN__SLOT_NONE &&
           quern__links_is_above(links, source, target);
}

/* Why a living source cannot have this target, or -1. */
static int find_hindrance(const relate_walk *it, const quern__relation *relation, uint32_t source,
                          uint32_t target)
{
    if (target == QUERN__NOTE_NONE || quern__relating_has_ended(it->relating, target))
        return QUERN_DROP_TARGET_DEAD;
    if (would_be_cycle(relation, source, target)) return QUERN_DROP_CYCLE;
    return quern__naming_is_free(it->relating->storage, relation, source, target) ? -1
                                                                                  : QUERN_DROP_NAME_TAKEN;
}

/* The i-th item of the run relates: to the target that is the value of this operand. */
static void relate(const relate_walk *it, const quern__item *item, uint32_t i,
                   const quern__operand *operand, quern__note *source)
{
    quern__relating *relating = it->relating;
    quern__storage *storage = relating->storage;
    quern__relation *relation = storage->components.list.items[operand->component_index]->managed.relation;
    const bool creates = it->run->operation->kind == QUERN__OPERATION_CREATE;
    quern_entity entity;
    memcpy(&entity, (const char *)item + operand->offset_bytes, sizeof entity);
    const uint32_t slot = source->slot, target = find_slot(it, entity);
    const int hindrance = find_hindrance(it, relation, slot, target);
    if (creates && !quern__relating_note_row(relating, source, relation->index,
                                             hindrance >= 0 ? QUERN__WRONG_TARGET : target, 0))
        return;
    if (hindrance >= 0) {
        drop(it, item, i, (quern_drop_reason)hindrance, 1);
        return;
    }
    if (!quern__links_reserve(&relation->links, &storage->allocator, slot) ||
        !quern__links_reserve(&relation->links, &storage->allocator, target)) {
        relating->is_out_of_memory = true;
        return;
    }
    if (quern__links_target(&relation->links, slot) != target &&
        quern__relating_note_link(relating, source, relation))
        quern__relating_set_target(relating, relation, slot, target);
}

/* The links of a run's items, one by one. */
static void relate_item(const relate_walk *it, quern__item *item, uint32_t i)
{
    const quern__operation *operation = it->run->operation;
    const uint32_t slot = find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) {
        drop(it, item, i, QUERN_DROP_DEAD, operation->command_count);
        return;
    }
    quern__note *source = note_item(it, item, slot);
    if (source == NULL) return;
    if (source->has_ended || source->is_refused) {
        drop(it, item, i, source->is_refused ? QUERN_DROP_REFUSED : QUERN_DROP_DESTROYED,
             operation->command_count);
        return;
    }
    if (operation->kind == QUERN__OPERATION_RELATE) {
        relate(it, item, i, &operation->operands[0], source);
        return;
    }
    quern__relation *relation =
        it->relating->storage->components.list.items[operation->operands[0].component_index]
            ->managed.relation;
    if (quern__links_target(&relation->links, slot) == QUERN__SLOT_NONE) return;
    if (!quern__naming_is_free(it->relating->storage, relation, slot, QUERN__SLOT_NONE))
        drop(it, item, i, QUERN_DROP_NAME_TAKEN, operation->command_count);
    else if (quern__relating_note_link(it->relating, source, relation))
        quern__relating_set_target(it->relating, relation, slot, QUERN__SLOT_NONE);
}

static void name_item(const relate_walk *it, const quern__item *item, uint32_t i)
{
    const uint32_t slot = find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) {
        drop(it, item, i, QUERN_DROP_DEAD, 1);
        return;
    }
    const quern__note *entity = quern__relating_find(it->relating, slot);
    bool is_taken;
    if (entity != NULL && (entity->has_ended || entity->is_refused))
        drop(it, item, i, entity->is_refused ? QUERN_DROP_REFUSED : QUERN_DROP_DESTROYED, 1);
    else if (quern__relating_set_name(it->relating, slot, (const char *)(item + 1), &is_taken) && is_taken)
        drop(it, item, i, QUERN_DROP_NAME_TAKEN, 1);
}

/* A new entity that would be refused ends at once. */
static bool refuse_create(const relate_walk *it, const quern__item *item, uint32_t i)
{
    quern__note *entity = quern__relating_find(
        it->relating, quern_entity_index(it->created[quern_entity_index(item->entity)]));
    if (entity == NULL || !entity->is_refused) return false;
    quern__relating_note_created(it->relating, entity, it->stream, quern_entity_index(item->entity));
    entity->has_ended = true;
    const uint32_t others = it->run->operation->command_count - 1;
    if (others > 0) drop(it, item, i, QUERN_DROP_REFUSED, others);
    return true;
}

static void create_item(const relate_walk *it, const quern__item *item, uint32_t i)
{
    const quern__operation *operation = it->run->operation;
    if (it->relating->refused.count > 0 && refuse_create(it, item, i)) return;
    for (uint32_t k = 0; k < operation->operand_count && !it->relating->is_out_of_memory; k++) {
        if (!operation->operands[k].is_relation) continue;
        quern__note *source = note_item(it, item, find_slot(it, item->entity));
        if (source != NULL) relate(it, item, i, &operation->operands[k], source);
    }
}

/* relates: some command does; else only the links that are there matter. */
static void destroy_item(const relate_walk *it, quern__item *item, uint32_t i, bool relates)
{
    quern__relating *relating = it->relating;
    const uint32_t slot = find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) return; /* merging sees that */
    quern__note *entity = quern__relating_find(relating, slot);
    if (entity == NULL && !relates && !quern__relations_has_links(relating->storage->relations, slot) &&
        quern__names_number(relating->storage->names, slot) == QUERN__NAME_NONE)
        return;
    if (entity == NULL) entity = note_item(it, item, slot);
    if (entity == NULL) return;
    if (!entity->has_ended && !quern__relating_end(relating, slot)) {
        drop_and_skip(it, item, i, QUERN_DROP_TARGET_IN_USE);
        return;
    }
    quern__relating_find(relating, slot)->is_destroyed = true;
}

/* ------------------------------------------------------------------------------------------- walking */

/* Drops the commands on entities that are refused. */
static void refuse_items(const relate_walk *it)
{
    quern__item *item = quern__run_item(it->run, 0);
    for (uint32_t i = 0; i < it->run->item_count; i++) {
        const uint32_t slot = find_slot(it, item->entity);
        const quern__note *entity =
            slot != QUERN__NOTE_NONE ? quern__relating_find(it->relating, slot) : NULL;
        if (entity != NULL && entity->is_refused) drop_and_skip(it, item, i, QUERN_DROP_REFUSED);
        item = quern__item_next(item, it->run->operation);
    }
}

static void walk_run(const relate_walk *it, bool relates)
{
    const quern__operation *operation = it->run->operation;
    const quern__operation_kind kind = operation->kind;
    const bool refuses = it->relating->refused.count > 0;
    if (refuses && kind < QUERN__OPERATION_CREATE) refuse_items(it);
    if (kind < QUERN__OPERATION_CREATE && kind != QUERN__OPERATION_DESTROY) return;
    if (kind == QUERN__OPERATION_SPAWN) return;
    if (kind == QUERN__OPERATION_CREATE && !refuses && (operation->traits & QUERN__TRAIT_UNRELATED) != 0)
        return;
    quern__item *item = quern__run_item(it->run, 0);
    for (uint32_t i = 0; i < it->run->item_count && !it->relating->is_out_of_memory; i++) {
        if (kind == QUERN__OPERATION_CREATE)
            create_item(it, item, i);
        else if (kind == QUERN__OPERATION_NAME)
            name_item(it, item, i);
        else if (kind != QUERN__OPERATION_DESTROY)
            relate_item(it, item, i);
        else if (!quern_entity_is_null(item->entity))
            destroy_item(it, item, i, relates);
        item = quern__item_next(item, operation);
    }
}

static void walk_stream(quern__relating *relating, const quern__gathered *gathered, uint32_t index)
{
    relate_walk it = {.relating = relating, .gathered = &gathered->streams.items[index], .stream = index};
    const quern__stream *stream = it.gathered->stream;
    quern__walked_stream *walked = &relating->streams.items[index];
    it.created = relating->created.count > 0 ? relating->created.items + walked->first_created : NULL;
    it.run = stream->first;
    for (uint32_t i = 0; i < stream->run_count && !relating->is_out_of_memory; i++) {
        if (i > 0) {
            it.number += it.run->item_count;
            it.run = quern__run_next(it.run);
        }
        walk_run(&it, (relating->followers.gathered_traits & QUERN__TRAIT_UNRELATED) == 0);
    }
    walked->last_run = it.run;
}

/* ------------------------------------------------------------------------------------------ the stage */

static void forget(quern__relating *relating)
{
    for (uint32_t i = 0; i < relating->notes.count; i++)
        relating->note_of_slot.items[relating->notes.items[i].slot] = 0;
    relating->notes.count = 0;
    relating->differences.count = 0;
    relating->log.count = 0;
    relating->saved_names.count = 0;
    relating->dropped.count = 0;
    relating->drops.count = 0;
    relating->is_out_of_memory = false;
}

void quern__relating_begin(quern__relating *relating)
{
    relating->refused.count = 0;
    relating->refused_result = QUERN_OK;
}

/* Handles are asked for where some command relates, to be known when it names what is created. */
static quern_result reserve_created(quern__relating *relating, const quern__gathered *gathered)
{
    quern__storage *storage = relating->storage;
    if (gathered->create_count > QUERN_MAX_ENTITIES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "%llu creates at one sync point; the limit is %u (QUERN_MAX_ENTITIES)",
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
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for what commands do to relations");
    return quern__relating_follow(relating, gathered);
}

quern_result quern__commands_relate(quern__relating *relating, quern__gathered *gathered)
{
    forget(relating);
    quern__followers_begin(&relating->followers, gathered);
    const quern_result result = play(relating, gathered);
    if (result != QUERN_OK) quern__relating_undo(relating, gathered);
    return result;
}

void quern__relating_undo(quern__relating *relating, quern__gathered *gathered)
{
    quern__relating_take_back(relating);
    while (relating->dropped.count > 0) {
        const quern__dropped_item *dropped = &relating->dropped.items[--relating->dropped.count];
        *dropped->item = dropped->head;
    }
    quern__followers_cut(&relating->followers, gathered);
    quern__entities_trim(&relating->storage->entities, &relating->storage->allocator);
    forget(relating);
}

void quern__relating_keep(quern__relating *relating, quern__resolved *resolved)
{
    resolved->refused_count += relating->refused.count;
    if (relating->refused_result != QUERN_OK) resolved->refused_result = relating->refused_result;
    quern__relating_clear_ended(relating);
    forget(relating);
    quern__commands_reset(&relating->followers.recorder);
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
        return quern__fail(QUERN_ERROR_LIMIT,
                           "entity %u is to come to another level, or to lose its target, and cannot have "
                           "the components that it has then (%s)",
                           slot, quern_result_string(why));
    if (!quern__relating_reserve_one(relating, &relating->refused))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list refused entities");
    relating->refused.items[relating->refused.count++] = slot;
    return QUERN_OK;
}

/* created: the handles, where these are the edits of creates. */
static quern_result refuse_rows(quern__relating *relating, const quern__chunk_edits *edits,
                                const quern_entity *created, quern_result why)
{
    const quern__row_run *run = &edits->scratch->runs.items[edits->first_run];
    quern_result result = QUERN_OK;
    for (const quern__row_run *end = run + edits->run_count; run < end; run++) {
        const quern__edit_group *group = &edits->scratch->groups.items[run->group];
        if (!edits->scratch->sequences.list.items[group->sequence].is_refused) continue;
        for (uint32_t row = run->row; row < run->row + run->count && result == QUERN_OK; row++) {
            const quern__item *item = (const quern__item *)(const void *)edits->rows[row].item;
            const uint32_t slot = quern_entity_index(created != NULL ? created[row] : item->entity);
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
