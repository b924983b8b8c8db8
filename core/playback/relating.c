/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The relate stage. Input: streams in order. Output: final links and names, and streams with follow-up commands on
 * rows. Can fail: memory, and slots for created entities; then everything is reverted. Parts: the lists of
 * follow-up commands, notes, changes of links and names, entities that end, the follow-up commands of each note,
 * the stage, and refusals. */
#include "core/playback/stages.h"

#include "core/reactions/hook.h"

#include <quern/world.h>

/* ----------------------------------------------------------------------------- lists of follow-up commands */

void quern__follow_ups_begin(quern__follow_ups *follow_ups, const quern__gathered *gathered)
{
    quern__commands_reset(&follow_ups->recorder);
    follow_ups->extended.count = 0;
    follow_ups->recorded_traits = gathered->traits;
    follow_ups->item_count = gathered->item_count;
    follow_ups->recorded_stream_count = gathered->streams.count;
    follow_ups->has_extra_stream = false;
}

/* The key is larger than that of any callback. The origin has no name, since follow-up commands are never
 * dropped and reported. */
static void start_list(quern__follow_ups *follow_ups)
{
    const quern__origin origin = {.key = UINT64_MAX};
    quern__commands_begin(&follow_ups->recorder, &origin);
}

/* Adds a command to the list. The caller writes its value after the head of the item. Errors: OUT_OF_MEMORY. */
static quern_result append_item(quern__follow_ups *follow_ups, const quern__operation *operation,
                                quern__item head, quern__item **out_item)
{
    char *space;
    const quern_result result =
        quern__item_space_get(&follow_ups->recorder, operation, "follow-up commands", &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    *out_item = quern__item_append(&follow_ups->recorder, operation, space);
    **out_item = head;
    return QUERN_OK;
}

/* Ends the list of follow-up commands and returns its stream, or NULL if it is empty. */
static quern__stream *end_list(quern__follow_ups *follow_ups, quern__gathered *gathered)
{
    const bool is_empty = follow_ups->recorder.open == NULL;
    quern__commands_end(&follow_ups->recorder);
    if (is_empty) return NULL;
    quern__stream *list = &follow_ups->recorder.streams.items[follow_ups->recorder.streams.count - 1];
    gathered->traits &= list->traits;
    gathered->item_count += list->item_count;
    return list;
}

/* ---------------------------------------------------------------------------------------------- state */

enum { RELATING_ALIGNMENT_BYTES = 128 };

_Static_assert(_Alignof(quern_commands) <= RELATING_ALIGNMENT_BYTES, "recorders are aligned enough");

quern__relating *quern__relating_create(quern__storage *storage)
{
    quern__relating *relating =
        quern__allocate(&storage->allocator, sizeof *relating, RELATING_ALIGNMENT_BYTES);
    if (relating == NULL) return NULL;
    *relating = (quern__relating){.storage = storage};
    quern__commands_init(&relating->follow_ups.recorder, storage);
    quern__commands_list(&relating->follow_ups.recorder);
    relating->follow_ups.recorder.operations.allows_managed = true;
    return relating;
}

void quern__relating_destroy(quern__relating *relating)
{
    if (relating == NULL) return;
    const quern_allocator *allocator = &relating->storage->allocator;
    quern__array_release(allocator, &relating->follow_ups.extended);
    quern__commands_release(&relating->follow_ups.recorder);
    quern__array_release(allocator, &relating->note_of_slot);
    quern__array_release(allocator, &relating->notes);
    quern__array_release(allocator, &relating->differences);
    quern__array_release(allocator, &relating->dropped);
    quern__array_release(allocator, &relating->created);
    quern__array_release(allocator, &relating->streams);
    quern__array_release(allocator, &relating->ending_slots);
    quern__array_release(allocator, &relating->drops);
    quern__array_release(allocator, &relating->refused);
    quern__release(allocator, relating, sizeof *relating, RELATING_ALIGNMENT_BYTES);
}

/* --------------------------------------------------------------------------------------------- notes */

void quern__relating_note_created(quern__relating *relating, quern__note *entity, uint32_t stream,
                                  uint32_t number)
{
    quern__walked_stream *walked = &relating->streams.items[stream];
    const uint32_t index = (uint32_t)(entity - relating->notes.items);
    if (entity->stream == stream) return;
    entity->stream = stream;
    entity->number = number;
    if (walked->first_note == QUERN__NOTE_NONE)
        walked->first_note = index;
    else
        relating->notes.items[walked->last_note].next = index;
    walked->last_note = index;
}

/* Records that the noted entity is the one with this number among all creates. */
static void note_member(quern__relating *relating, quern__note *entity, uint32_t created)
{
    uint32_t begin = 0,
             end = relating->follow_ups.recorded_stream_count; /* the last stream that begins by it */
    while (end - begin > 1) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (relating->streams.items[middle].first_created <= created)
            begin = middle;
        else
            end = middle;
    }
    quern__relating_note_created(relating, entity, begin,
                                 created - relating->streams.items[begin].first_created);
}

quern__note *quern__relating_note(quern__relating *relating, uint32_t slot)
{
    quern__note *known = quern__relating_find(relating, slot);
    if (known != NULL) return known;
    if (!quern__relating_reserve_one(relating, &relating->notes)) return NULL;
    assert(relating->notes.items != NULL);
    const uint32_t mark = relating->note_of_slot.items[slot];
    relating->notes.items[relating->notes.count] = (quern__note){.slot = slot,
                                                                 .stream = QUERN__NOTE_NONE,
                                                                 .next = QUERN__NOTE_NONE,
                                                                 .first_difference = QUERN__NOTE_NONE};
    relating->note_of_slot.items[slot] = ++relating->notes.count;
    known = &relating->notes.items[relating->notes.count - 1];
    if (QUERN__UNLIKELY(mark != 0)) note_member(relating, known, mark & ~QUERN__MEMBER_MARK);
    return known;
}

bool quern__relating_note_row(quern__relating *relating, quern__note *entity, uint32_t relation,
                              uint32_t row_target, uint32_t row_level)
{
    for (uint32_t i = entity->first_difference; i != QUERN__NOTE_NONE;
         i = relating->differences.items[i].next)
        if (relating->differences.items[i].relation == relation) return true;
    if (!quern__relating_reserve_one(relating, &relating->differences)) return false;
    relating->differences.items[relating->differences.count] = (quern__difference){
        .relation = relation,
        .row_target = row_target,
        .row_level = row_level,
        .next = entity->first_difference,
    };
    entity->first_difference = relating->differences.count++;
    return true;
}

void quern__relating_mark_refused(quern__relating *relating, uint32_t slot, uint32_t created)
{
    note_member(relating, quern__relating_find(relating, slot), created);
}

/* Notes the row's targets and levels for all links that have changed since the last call. */
static bool note_changes(quern__relating *relating)
{
    const quern__link_log *log = &relating->storage->relations->log;
    for (; relating->noted_count < log->changes.count; relating->noted_count++) {
        const quern__link_change *change = &log->changes.items[relating->noted_count];
        if (change->kind == QUERN__CHANGE_NAME) continue;
        quern__note *entity = quern__relating_note(relating, change->slot);
        const bool had_tag = change->relation->is_many && change->old_level > 0;
        const uint32_t old_target =
            change->relation->is_many && !had_tag ? QUERN__SLOT_NONE : change->old_target;
        if (entity == NULL ||
            !quern__relating_note_row(relating, entity, change->relation->index, old_target,
                                      change->relation->is_many ? 0 : change->old_level))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------- links and names */

/* Whether a function of relation_internal.h succeeded. Notes its only error, OUT_OF_MEMORY. */
static inline bool note_result(quern__relating *relating, quern_result result)
{
    relating->is_out_of_memory |= result != QUERN_OK;
    return result == QUERN_OK;
}

bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target)
{
    return note_result(relating,
                       quern__link_log_set_target(relating->storage, relation, source, target, NULL)) &&
           note_changes(relating);
}

bool quern__relating_put_value(quern__relating *relating, quern__relation *relation, uint32_t source,
                               uint32_t target, const void *value)
{
    /* the row may have the target already, so that no change of links has been noted */
    quern__note *entity = quern__relating_note(relating, source);
    return entity != NULL &&
           quern__relating_note_row(relating, entity, relation->index, target,
                                    quern__links_level(&relation->links, source)) &&
           note_result(relating, quern__pending_put(relating->storage, relation, source, target, value));
}

bool quern__relating_add_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                              uint32_t target)
{
    return note_result(relating, quern__link_log_add_edge(relating->storage, relation, source, target)) &&
           note_changes(relating);
}

bool quern__relating_remove_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                                 uint32_t target)
{
    return note_result(relating,
                       quern__link_log_remove_edge(relating->storage, relation, source, target)) &&
           note_changes(relating);
}

bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken)
{
    quern__storage *storage = relating->storage;
    const uint32_t parent = quern__parent_slot(storage, slot), bytes = (uint32_t)strlen(name);
    *out_is_taken = false;
    if (bytes == 0) return note_result(relating, quern__link_log_drop_name(storage, slot));
    const uint32_t owner = quern__names_find(storage->names, parent, name, bytes);
    *out_is_taken = owner != QUERN__SLOT_NONE && owner != slot;
    if (owner != QUERN__SLOT_NONE) return true;
    return note_result(relating, quern__link_log_put_name(storage, slot, parent, name, bytes));
}

/* --------------------------------------------------------------------------------------------- ending */

/* Lists an entity that ends, unless it has ended before. Returns false if out of memory. */
static bool list_ending(quern__relating *relating, uint32_t slot)
{
    quern__note *entity = quern__relating_note(relating, slot);
    if (entity == NULL || !quern__relating_reserve_one(relating, &relating->ending_slots)) return false;
    if (entity->has_ended) return true;
    entity->has_ended = true;
    relating->ending_slots.items[relating->ending_slots.count++] = slot;
    return true;
}

/* Lists all sources of edges to a slot. Returns false if out of memory. */
static bool list_edge_sources(quern__relating *relating, const quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (!list_ending(relating, range.slots[k])) return false;
    }
    return true;
}

/* Lists all entities that end with listed ones. Returns false if out of memory. */
static bool list_cascade(quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t i = 0; i < relating->ending_slots.count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            const quern__relation *relation = relations->list.items[k];
            if (relation->policy != QUERN_TARGET_DESTROYS_SOURCE) continue;
            for (uint32_t child = quern__links_first(&relation->links, relating->ending_slots.items[i]);
                 child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next)
                if (!list_ending(relating, child)) return false;
            if (relation->is_many &&
                !list_edge_sources(relating, relation, relating->ending_slots.items[i]))
                return false;
        }
    return true;
}

/* Whether some source of edges to a slot does not end. */
static bool has_living_edge_source(const quern__relating *relating, const quern__relation *relation,
                                   uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (!quern__relating_has_ended(relating, range.slots[k])) return true;
    }
    return false;
}

/* Whether a source that does not end refuses the end of its target, which is listed. */
static bool is_refused_by_sources(const quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        const quern__relation *relation = relations->list.items[k];
        if (relation->policy != QUERN_TARGET_REFUSES) continue;
        for (uint32_t i = 0; i < relating->ending_slots.count; i++) {
            if (relation->is_many &&
                has_living_edge_source(relating, relation, relating->ending_slots.items[i]))
                return true;
            for (uint32_t child = quern__links_first(&relation->links, relating->ending_slots.items[i]);
                 child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next)
                if (!quern__relating_has_ended(relating, child)) return true;
        }
    }
    return false;
}

/* Removes the links between an entity that ends and entities that do not. Links among entities that end stay
 * until the sync point has succeeded. */
static bool unlink_from_living(quern__relating *relating, quern__relation *relation, uint32_t slot)
{
    const quern__links *links = &relation->links;
    const uint32_t target = quern__links_target(links, slot);
    if (target != QUERN__SLOT_NONE && !quern__relating_has_ended(relating, target) &&
        !note_result(relating, quern__link_log_unlink(relating->storage, relation, slot)))
        return false;
    if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE) return true; /* all its sources end */
    for (uint32_t child = quern__links_first(links, slot), next; child != QUERN__SLOT_NONE; child = next) {
        next = quern__links_at(links, child)->next;
        if (!quern__relating_has_ended(relating, child) &&
            !quern__relating_set_target(relating, relation, child, QUERN__SLOT_NONE))
            return false;
    }
    return true;
}

/* Removes the edges between an entity that ends and entities that do not. */
static bool remove_edges_to_living(quern__relating *relating, quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, slot),
                           *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t target = quern__edge_list_next(targets, QUERN__SLOT_NONE); target != QUERN__SLOT_NONE;
         target = quern__edge_list_next(targets, target))
        if (!quern__relating_has_ended(relating, target) &&
            !quern__relating_remove_edge(relating, relation, slot, target))
            return false;
    for (uint32_t source = quern__edge_list_next(sources, QUERN__SLOT_NONE); source != QUERN__SLOT_NONE;
         source = quern__edge_list_next(sources, source))
        if (!quern__relating_has_ended(relating, source) &&
            !quern__relating_remove_edge(relating, relation, source, slot))
            return false;
    return true;
}

bool quern__relating_end(quern__relating *relating, uint32_t slot)
{
    const quern__relations *relations = relating->storage->relations;
    relating->ending_slots.count = 0;
    if (!list_ending(relating, slot) || !list_cascade(relating)) return true;
    if (is_refused_by_sources(relating)) {
        for (uint32_t i = 0; i < relating->ending_slots.count; i++)
            quern__relating_find(relating, relating->ending_slots.items[i])->has_ended = false;
        return false;
    }
    const uint32_t count = relating->ending_slots.count;
    for (uint32_t i = 0; i < count; i++)
        if (!note_result(relating,
                         quern__link_log_drop_name(relating->storage, relating->ending_slots.items[i])))
            return true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            quern__relation *relation = relations->list.items[k];
            const uint32_t ending = relating->ending_slots.items[i];
            if (quern__links_has_page(&relation->links, ending) &&
                !unlink_from_living(relating, relation, ending))
                return true;
            if (relation->is_many && !remove_edges_to_living(relating, relation, ending)) return true;
        }
    return true;
}

/* -------------------------------------------------------------------- follow-up commands of each note */

/* Input: the changes of links. Output: follow-up commands that make rows agree with links. Can fail: memory. */

/* Adds a command on one component, and its operation if there is none. Errors: OUT_OF_MEMORY. */
static quern_result add_follow_up(quern__relating *relating, uint32_t component_index,
                                  quern__operation_kind kind, quern__item head, quern__item **out_item)
{
    quern_commands *recorder = &relating->follow_ups.recorder;
    const quern__operations *operations = &recorder->operations;
    const uint32_t index = component_index * QUERN__SINGLE_KIND_COUNT + (uint32_t)kind;
    const quern__operation *operation =
        index < operations->singles.count ? operations->singles.items[index] : NULL;
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(operation == NULL))
        result =
            quern__operations_find_single(&recorder->operations, &recorder->storage->components,
                                          &recorder->storage->allocator, component_index, kind, &operation);
    if (result != QUERN_OK) return result;
    return append_item(&relating->follow_ups, operation, head, out_item);
}

/* Gives the row its target. The handle is that of the entity in the slot, or the one that the next entity there
 * gets. */
static quern_result add_target(quern__relating *relating, const quern__relation *relation, uint32_t target,
                               quern__item head)
{
    const quern__entities *entities = &relating->storage->entities;
    quern__item *item;
    if (target == QUERN__SLOT_NONE)
        return add_follow_up(relating, relation->component_index, QUERN__OPERATION_REMOVE, head, &item);
    const quern_result result =
        add_follow_up(relating, relation->component_index, QUERN__OPERATION_SET, head, &item);
    const uint32_t high = target < entities->slot_count
                              ? quern__entities_record(entities, target)->handle_high
                              : entities->first_handle_high;
    const quern_entity handle = {(uint64_t)high << 32 | target};
    if (result == QUERN_OK) memcpy(item + 1, &handle, sizeof handle);
    return result;
}

/* Gives the row the pending value of its edges, or removes the values of a row that loses its last target. */
static quern_result add_edge_values(quern__relating *relating, const quern__relation *relation,
                                    uint32_t slot, bool had_target, quern__item head)
{
    const bool has_target = relation->is_many
                                ? quern__edges_targets(&relation->edges, slot)->count > 0
                                : quern__links_target(&relation->links, slot) != QUERN__SLOT_NONE;
    quern__item *item;
    if (!has_target && had_target)
        return add_follow_up(relating, relation->value_index, QUERN__OPERATION_REMOVE, head, &item);
    const quern__pending_value *pending = quern__pending_find(relating->storage, relation, slot);
    if (!has_target || pending == NULL) return QUERN_OK;
    const quern_result result =
        add_follow_up(relating, relation->value_index, QUERN__OPERATION_SET, head, &item);
    if (result == QUERN_OK)
        quern__item_write_value(relating->follow_ups.recorder.operation, (char *)item, 0, pending->value);
    return result;
}

/* Adds follow-up commands for every difference between the entity's links and its row. */
static quern_result add_differences(quern__relating *relating, const quern__note *entity, quern__item head)
{
    quern__item *ignored;
    quern_result result = QUERN_OK;
    for (uint32_t i = entity->first_difference; i != QUERN__NOTE_NONE && result == QUERN_OK;
         i = relating->differences.items[i].next) {
        const quern__difference *before = &relating->differences.items[i];
        const quern__relation *relation = relating->storage->relations->list.items[before->relation];
        if (QUERN__UNLIKELY(quern__relation_has_values(relation)))
            result = add_edge_values(relating, relation, entity->slot,
                                     before->row_target != QUERN__SLOT_NONE, head);
        if (result != QUERN_OK) break;
        if (relation->is_many) {
            const bool has_tag = quern__edges_targets(&relation->edges, entity->slot)->count > 0;
            if ((before->row_target != QUERN__SLOT_NONE) != has_tag)
                result =
                    add_follow_up(relating, relation->component_index,
                                  has_tag ? QUERN__OPERATION_ADD : QUERN__OPERATION_REMOVE, head, &ignored);
            continue;
        }
        const uint32_t target = quern__links_target(&relation->links, entity->slot);
        const uint32_t level = quern__links_level(&relation->links, entity->slot);
        if (before->row_target != target) result = add_target(relating, relation, target, head);
        if (before->row_level == level) continue;
        if (result == QUERN_OK && before->row_level > 0)
            result = add_follow_up(relating, quern__relation_tag(relation, before->row_level),
                                   QUERN__OPERATION_REMOVE, head, &ignored);
        if (result == QUERN_OK && level > 0)
            result = add_follow_up(relating, quern__relation_tag(relation, level), QUERN__OPERATION_ADD,
                                   head, &ignored);
    }
    return result;
}

/* Adds the follow-up commands on an entity: for the differences, the tags of disabled entities if it was switched, or a
 * destroy if it ends by cascade. */
static quern_result add_of_entity(quern__relating *relating, const quern__gathered *gathered,
                                  const quern__note *entity)
{
    quern__item *ignored, head;
    if (entity->stream != QUERN__NOTE_NONE) {
        const quern__stream *stream = gathered->streams.items[entity->stream].stream;
        head = (quern__item){.entity = quern__entity_make(0, stream->origin.serial, entity->number)};
    } else {
        const quern__record *record = quern__entities_record(&relating->storage->entities, entity->slot);
        head = (quern__item){.entity = {(uint64_t)record->handle_high << 32 | entity->slot},
                             .location = record->location};
    }
    if (entity->has_ended && entity->is_destroyed) return QUERN_OK;
    if (entity->has_ended)
        return append_item(&relating->follow_ups, &quern__operation_destroy, head, &ignored);
    quern_result result = add_differences(relating, entity, head);
    for (uint32_t i = 0; i < 2 && entity->is_switched && result == QUERN_OK; i++)
        result = add_follow_up(
            relating, relating->storage->disabled_index + i,
            (entity->tags >> i & 1) != 0 ? QUERN__OPERATION_ADD : QUERN__OPERATION_REMOVE, head, &ignored);
    return result;
}

/* Adds follow-up commands on the entities that a stream creates, chained to that stream after its last batch. Only
 * streams that relate entities get follow-up commands, and these streams leave space for the jump
 * (quern__commands_close_stream). The notes of other streams are of entities that the stream itself destroys.
 * Errors: OUT_OF_MEMORY. */
static quern_result add_of_stream(quern__relating *relating, quern__gathered *gathered, uint32_t index)
{
    quern_result result = QUERN_OK;
    quern__follow_ups *follow_ups = &relating->follow_ups;
    const quern__walked_stream *walked = &relating->streams.items[index];
    quern__stream *stream = gathered->streams.items[index].stream;
    if (walked->first_note == QUERN__NOTE_NONE) return QUERN_OK;
    start_list(follow_ups);
    for (uint32_t i = walked->first_note; i != QUERN__NOTE_NONE && result == QUERN_OK;
         i = relating->notes.items[i].next)
        result = add_of_entity(relating, gathered, &relating->notes.items[i]);
    if (result != QUERN_OK) return result;
    const quern__stream *list = end_list(follow_ups, gathered);
    if (list == NULL) return QUERN_OK;
    if (!quern__array_reserve(&relating->storage->allocator, &follow_ups->extended,
                              follow_ups->extended.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list follow-up commands");
    quern__command_batch *tail = (quern__command_batch *)(void *)quern__batch_end(walked->last_batch);
    *tail = (quern__command_batch){.next = list->first};
    follow_ups->extended.items[follow_ups->extended.count++] =
        (quern__extended_stream){.stream = stream, .batch_count = stream->batch_count};
    stream->batch_count += list->batch_count;
    return QUERN_OK;
}

/* Adds the follow-up commands to the streams: those on created entities to the streams that create them, and all
 * others as one more stream after all streams. Errors: OUT_OF_MEMORY. */
static quern_result add_follow_ups(quern__relating *relating, quern__gathered *gathered)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < gathered->streams.count && result == QUERN_OK; i++)
        result = add_of_stream(relating, gathered, i);
    if (result != QUERN_OK) return result;
    start_list(&relating->follow_ups);
    for (uint32_t i = 0; i < relating->notes.count && result == QUERN_OK; i++)
        if (relating->notes.items[i].stream == QUERN__NOTE_NONE)
            result = add_of_entity(relating, gathered, &relating->notes.items[i]);
    if (result != QUERN_OK) return result;
    quern__stream *list = end_list(&relating->follow_ups, gathered);
    if (list == NULL) return QUERN_OK;
    if (!quern__array_reserve(&relating->storage->allocator, &gathered->streams,
                              gathered->streams.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather follow-up commands");
    gathered->streams.items[gathered->streams.count++] =
        (quern__gathered_stream){.stream = list, .is_located = true};
    relating->follow_ups.has_extra_stream = true;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- walking */

/* Drops the i-th command of the batch if its entity is refused. */
static void refuse_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    const quern__note *entity = slot != QUERN__NOTE_NONE ? quern__relating_find(it->relating, slot) : NULL;
    if (entity != NULL && entity->is_refused) quern__play_drop_and_skip(it, item, i, QUERN_DROP_REFUSED);
}

static void walk_stream(quern__relating *relating, const quern__gathered *gathered, uint32_t index)
{
    quern__play_walk it = {.relating = relating,
                           .gathered = &gathered->streams.items[index],
                           .stream = index,
                           .relates = QUERN__MAY(relating->follow_ups.recorded_traits, RELATES),
                           .switches = QUERN__MAY(relating->follow_ups.recorded_traits, SWITCHES)};
    const quern__stream *stream = it.gathered->stream;
    quern__walked_stream *walked = &relating->streams.items[index];
    it.created = relating->created.count > 0 ? relating->created.items + walked->first_created : NULL;
    it.batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count && !relating->is_out_of_memory; i++) {
        if (i > 0) {
            it.number += it.batch->item_count;
            it.batch = quern__batch_next(it.batch);
        }
        const quern__operation_kind kind = it.batch->operation->kind;
        quern__play_function *play = quern__kind_calls_of[kind].play;
        const bool is_row = quern__command_kinds[kind].merge_kind == QUERN__MERGE_ROW;
        if (is_row && relating->refused.count > 0) quern__play_each(&it, refuse_item);
        if (it.switches) quern__play_tags(&it);
        if (play != NULL) play(&it);
    }
    walked->last_batch = it.batch;
}

/* ------------------------------------------------------------------------------------------ the stage */

static void forget(quern__relating *relating)
{
    for (uint32_t i = 0; i < relating->notes.count; i++)
        relating->note_of_slot.items[relating->notes.items[i].slot] = 0;
    for (uint32_t i = 0; i < relating->created.count && relating->marks_members; i++)
        relating->note_of_slot.items[quern_entity_index(relating->created.items[i])] = 0;
    relating->marks_members = false;
    relating->notes.count = 0;
    relating->differences.count = 0;
    relating->noted_count = 0;
    quern__link_log_clear(&relating->storage->relations->log);
    relating->dropped.count = 0;
    relating->drops.count = 0;
    relating->is_out_of_memory = false;
}

void quern__relating_begin(quern__relating *relating, quern__resolved *resolved)
{
    relating->resolved = resolved;
    relating->refused.count = 0;
    relating->refused_result = QUERN_OK;
}

/* Reserves records for all creates and predicts their handles, so that commands can relate created entities. */
static quern_result reserve_created(quern__relating *relating, const quern__gathered *gathered)
{
    quern__storage *storage = relating->storage;
    const bool spawns = QUERN__MAY(gathered->traits, SPAWNS);
    const uint64_t most = spawns ? QUERN__MEMBER_MARK - 1 : QUERN_MAX_ENTITIES;
    if (gathered->create_count > most)
        return quern__fail(
            QUERN_ERROR_LIMIT, "one sync point cannot create %llu entities; the limit is %llu%s",
            (unsigned long long)gathered->create_count, (unsigned long long)most,
            spawns ? " if it also spawns and relates: flush more often" : " (QUERN_MAX_ENTITIES)");
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
    for (uint32_t i = 0; i < count && quern__hooks_are_used(storage);
         i++) { /* which can reach them by relations */
        const quern_entity created = relating->created.items[i];
        const uint32_t slot = quern_entity_index(created);
        if (slot >= storage->entities.slot_count)
            *quern__entities_record(&storage->entities, slot) =
                (quern__record){.handle_high = (uint32_t)(created.bits >> 32)};
    }
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
    const quern_result added = add_follow_ups(relating, gathered);
    if (added == QUERN_OK) quern__pending_cancel(relating->storage);
    return added;
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
    const quern__command_listener *listener = relating->storage->command_listener;
    if (QUERN__UNLIKELY(listener != NULL)) listener->forget_drops(listener);
    quern__link_log_revert(relating->storage);
    while (relating->dropped.count > 0) {
        const quern__dropped_item *dropped = &relating->dropped.items[--relating->dropped.count];
        if (dropped->is_of_view)
            *dropped->handle = dropped->head.entity;
        else
            *dropped->item = dropped->head;
    }
    quern__follow_ups *follow_ups = &relating->follow_ups;
    for (uint32_t i = 0; i < follow_ups->extended.count; i++)
        follow_ups->extended.items[i].stream->batch_count = follow_ups->extended.items[i].batch_count;
    follow_ups->extended.count = 0;
    if (follow_ups->has_extra_stream) gathered->streams.count--;
    follow_ups->has_extra_stream = false;
    gathered->traits = follow_ups->recorded_traits;
    gathered->item_count = follow_ups->item_count;
    quern__entities_trim(&relating->storage->entities, &relating->storage->allocator);
    forget(relating);
}

void quern__relating_finish(quern__relating *relating, quern__resolved *resolved)
{
    resolved->refused_count += relating->refused.count;
    if (relating->refused_result != QUERN_OK) resolved->refused_result = relating->refused_result;
    /* the sync point has succeeded, so entities that have ended lose their links */
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t i = 0; i < relating->notes.count; i++) {
        const quern__note *entity = &relating->notes.items[i];
        for (uint32_t k = 0; k < relations->list.count && entity->has_ended; k++) {
            quern__relation *relation = relations->list.items[k];
            const quern__links *links = &relation->links;
            if (quern__links_has_page(links, entity->slot)) quern__links_clear(links, entity->slot);
            if (relation->is_many)
                quern__edges_clear(&relation->edges, &relating->storage->allocator, entity->slot);
        }
    }
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

/* Returns the slot of the entity in a row of a chunk, which may be the future row of a member. */
static uint32_t slot_in(const quern__relating *relating, const quern__chunk_edits *edits, uint32_t row)
{
    if (row <
        edits->archetype->slots[quern__chunk_index_at(&edits->archetype->shape, (uintptr_t)edits->chunk)]
            .row_count)
        return quern_entity_index(quern__archetype_entities(edits->archetype, edits->chunk)[row]);
    const uint32_t created = quern__spawned_at(relating->resolved, quern__location_make(edits->chunk, row));
    assert(created < relating->created.count && relating->created.items != NULL);
    return quern_entity_index(relating->created.items[created]);
}

/* Lists the refused entities of these edits. created: handles of the created entities for edits of creates,
 * otherwise NULL. */
static quern_result refuse_rows(quern__relating *relating, const quern__chunk_edits *edits,
                                const quern_entity *created, quern_result why)
{
    const quern__row_range *range = &edits->scratch->row_ranges.items[edits->first_range];
    quern_result result = refuse_views(relating, edits, why);
    for (const quern__row_range *end = range + edits->range_count; range < end; range++) {
        const quern__edit_group *group = &edits->scratch->groups.items[range->group];
        if (!edits->scratch->sequences.list.items[group->sequence].is_refused) continue;
        for (uint32_t row = range->row; row < range->row + range->count && result == QUERN_OK; row++) {
            const uint32_t slot =
                created != NULL ? quern_entity_index(created[row]) : slot_in(relating, edits, row);
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
        const bool relates = QUERN__MAY(gathered->streams.items[i].stream->traits, RELATES);
        if (edits != QUERN__EDITS_NONE && relates)
            result = refuse_rows(relating, &merged->edits.items[edits],
                                 relating->created.items + relating->streams.items[i].first_created, why);
    }
    *out_is_again = relating->refused.count > count;
    if (*out_is_again && relating->refused_result == QUERN_OK) relating->refused_result = why;
    return result;
}
