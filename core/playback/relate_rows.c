/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: the changes of links. Output: follow-up commands that make rows agree with links. Can fail: memory. */
#include "core/playback/relating.h"

/* Returns the head of follow-up commands on the entity. */
static quern__item head_of(const quern__relating *relating, const quern__gathered *gathered,
                           const quern__note *entity)
{
    if (entity->stream != QUERN__NOTE_NONE)
        return (quern__item){
            .entity = quern__entity_make(0, gathered->streams.items[entity->stream].stream->origin.serial,
                                         entity->number)};
    const quern__record *record = quern__entities_record(&relating->storage->entities, entity->slot);
    return (quern__item){.entity = {(uint64_t)record->handle_high << 32 | entity->slot},
                         .location = record->location};
}

static quern_result add_follow_up(quern__relating *relating, uint32_t component_index,
                                  quern__operation_kind kind, quern__item head, quern__item **out_item)
{
    const quern__operation *operation;
    const quern_result result =
        quern__follow_ups_find_operation(&relating->follow_ups, component_index, kind, &operation);
    return result == QUERN_OK ? quern__follow_ups_add(&relating->follow_ups, operation, head, out_item)
                              : result;
}

/* Returns the handle of the entity in the slot, or the handle that the next entity there will get. */
static quern_entity handle_of(const quern__relating *relating, uint32_t slot)
{
    const quern__entities *entities = &relating->storage->entities;
    const uint32_t high = slot < entities->slot_count ? quern__entities_record(entities, slot)->handle_high
                                                      : entities->first_handle_high;
    return (quern_entity){(uint64_t)high << 32 | slot};
}

static quern_result add_target(quern__relating *relating, const quern__relation *relation, uint32_t target,
                               quern__item head)
{
    quern__item *item;
    if (target == QUERN__SLOT_NONE)
        return add_follow_up(relating, relation->component_index, QUERN__OPERATION_REMOVE, head, &item);
    const quern_result result =
        add_follow_up(relating, relation->component_index, QUERN__OPERATION_SET, head, &item);
    const quern_entity handle = handle_of(relating, target);
    if (result == QUERN_OK) memcpy(item + 1, &handle, sizeof handle);
    return result;
}

static quern_result add_level(quern__relating *relating, const quern__relation *relation, uint32_t before,
                              uint32_t level, quern__item head)
{
    quern__item *ignored;
    quern_result result = QUERN_OK;
    if (before > 0)
        result = add_follow_up(relating, quern__relation_tag(relation, before), QUERN__OPERATION_REMOVE,
                               head, &ignored);
    if (result == QUERN_OK && level > 0)
        result = add_follow_up(relating, quern__relation_tag(relation, level), QUERN__OPERATION_ADD, head,
                               &ignored);
    return result;
}

/* Adds or removes the tag of a relation with several targets per source. */
static quern_result add_tag(quern__relating *relating, const quern__relation *relation,
                            const quern__difference *before, uint32_t slot, quern__item head)
{
    quern__item *ignored;
    const bool has_tag = quern__edges_targets(&relation->edges, slot)->count > 0;
    if ((before->row_target != QUERN__SLOT_NONE) == has_tag) return QUERN_OK;
    return add_follow_up(relating, relation->component_index,
                         has_tag ? QUERN__OPERATION_ADD : QUERN__OPERATION_REMOVE, head, &ignored);
}

/* Adds follow-up commands for every difference between the entity's links and its row. */
static quern_result add_differences(quern__relating *relating, const quern__note *entity, quern__item head)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = entity->first_difference; i != QUERN__NOTE_NONE && result == QUERN_OK;
         i = relating->differences.items[i].next) {
        const quern__difference *before = &relating->differences.items[i];
        const quern__relation *relation = relating->storage->relations->list.items[before->relation];
        if (relation->is_many) {
            result = add_tag(relating, relation, before, entity->slot, head);
            continue;
        }
        const uint32_t target = quern__links_target(&relation->links, entity->slot);
        const uint32_t level = quern__links_level(&relation->links, entity->slot);
        if (before->row_target != target) result = add_target(relating, relation, target, head);
        if (result == QUERN_OK && before->row_level != level)
            result = add_level(relating, relation, before->row_level, level, head);
    }
    return result;
}

/* Adds follow-up commands that give the row of a switched entity its tags of disabled entities. */
static quern_result add_tags(quern__relating *relating, const quern__note *entity, quern__item head)
{
    quern__item *ignored;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < 2 && result == QUERN_OK; i++)
        result = add_follow_up(
            relating, relating->storage->disabled_index + i,
            (entity->tags >> i & 1) != 0 ? QUERN__OPERATION_ADD : QUERN__OPERATION_REMOVE, head, &ignored);
    return result;
}

static quern_result add_of_entity(quern__relating *relating, const quern__gathered *gathered,
                                  const quern__note *entity)
{
    quern__item *ignored;
    const quern__item head = head_of(relating, gathered, entity);
    if (!entity->has_ended) {
        const quern_result result = add_differences(relating, entity, head);
        return result == QUERN_OK && entity->is_switched ? add_tags(relating, entity, head) : result;
    }
    if (entity->is_destroyed) return QUERN_OK;
    return quern__follow_ups_add(&relating->follow_ups, &quern__operation_destroy, head, &ignored);
}

/* Adds follow-up commands on the entities that a stream creates, chained to that stream. Only streams that
 * relate entities get follow-up commands, and these streams leave space for the jump (leave_tail in
 * record.c). The notes of other streams are of entities that the stream itself destroys. */
static quern_result add_of_stream(quern__relating *relating, quern__gathered *gathered, uint32_t stream)
{
    quern_result result = QUERN_OK;
    const quern__walked_stream *walked = &relating->streams.items[stream];
    if (walked->first_note == QUERN__NOTE_NONE) return QUERN_OK;
    quern__follow_ups_start(&relating->follow_ups);
    for (uint32_t i = walked->first_note; i != QUERN__NOTE_NONE && result == QUERN_OK;
         i = relating->notes.items[i].next)
        result = add_of_entity(relating, gathered, &relating->notes.items[i]);
    if (result != QUERN_OK) return result;
    return quern__follow_ups_append_to_stream(&relating->follow_ups, gathered,
                                              gathered->streams.items[stream].stream, walked->last_batch);
}

quern_result quern__relating_add_follow_ups(quern__relating *relating, quern__gathered *gathered)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < gathered->streams.count && result == QUERN_OK; i++)
        result = add_of_stream(relating, gathered, i);
    if (result != QUERN_OK) return result;
    quern__follow_ups_start(&relating->follow_ups);
    for (uint32_t i = 0; i < relating->notes.count && result == QUERN_OK; i++)
        if (relating->notes.items[i].stream == QUERN__NOTE_NONE)
            result = add_of_entity(relating, gathered, &relating->notes.items[i]);
    return result == QUERN_OK ? quern__follow_ups_add_stream(&relating->follow_ups, gathered) : result;
}
