/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Playing: what the relate stage does for each kind of command. First what all kinds share, then the commands that
 * change links, destroys and creates, names, and the commands that disable and enable trees. */
#include "core/playback/stages.h"

#include "core/storage/list_values.h"

void quern__play_drop(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                      quern_drop_reason reason, uint64_t count)
{
    const quern__stream *stream = walk->gathered->stream;
    const quern__drop dropped = {.system_number = stream->origin.system_number,
                                 .reason = reason,
                                 .count = count,
                                 .first_key = stream->origin.key,
                                 .first_item_number = walk->number + i,
                                 .first_entity = item->entity};
    if (!quern__drops_add(&walk->relating->drops, &walk->relating->storage->allocator, 0, &dropped))
        walk->relating->is_out_of_memory = true;
    quern__listener_drop(walk->relating->storage,
                         &(quern__dropped_items){.key = dropped.first_key,
                                                 .first_number = dropped.first_item_number,
                                                 .count = 1,
                                                 .command_count = count,
                                                 .reason = reason});
}

void quern__play_drop_and_skip(const quern__play_walk *walk, quern__item *item, uint32_t i,
                               quern_drop_reason reason)
{
    quern__play_drop(walk, item, i, reason, walk->batch->operation->command_count);
    if (!quern__relating_reserve_one(walk->relating, &walk->relating->dropped)) return;
    quern__dropped_item *dropped = &walk->relating->dropped.items[walk->relating->dropped.count++];
    *dropped = (quern__dropped_item){.item = item, .head = *item};
    *item = (quern__item){.entity = quern_entity_null()};
    if (QUERN__LIKELY(!walk->batch->is_view)) return;
    dropped->is_of_view = true;
    dropped->handle = &quern__view_entities(walk->batch)[i];
    *dropped->handle = quern_entity_null();
    quern__view_of(walk->batch)->has_skipped = true;
}

void quern__play_view(const quern__play_walk *walk, quern__play_item_function *play_item)
{
    const quern_entity *entities = quern__view_entities(walk->batch);
    for (uint32_t i = 0; i < walk->batch->item_count && !walk->relating->is_out_of_memory; i++) {
        quern__item item = {.entity = entities[i]};
        play_item(walk, &item, i);
    }
}

uint32_t quern__play_find_slot(const quern__play_walk *walk, quern_entity entity)
{
    const quern__entities *entities = &walk->relating->storage->entities;
    if (quern_entity_is_provisional(entity))
        return quern_entity_index(walk->created[quern_entity_index(entity)]);
    if (!walk->gathered->is_located && quern__entities_find(entities, entity) == NULL)
        return QUERN__NOTE_NONE;
    return quern_entity_index(entity);
}

/* Returns why commands on an entity that has ended or is refused are dropped. */
static quern_drop_reason reason_of_end(const quern__note *entity)
{
    if (entity->is_not_copied) return QUERN_DROP_NOT_COPIED;
    return entity->is_refused ? QUERN_DROP_REFUSED : QUERN_DROP_DESTROYED;
}

/* Returns the note of the item's entity, which has this slot, and adds one if there is none. Returns NULL if
 * out of memory. */
static quern__note *note_of(const quern__play_walk *walk, const quern__item *item, uint32_t slot)
{
    quern__note *entity = quern__relating_note(walk->relating, slot);
    if (entity != NULL && quern_entity_is_provisional(item->entity))
        quern__relating_note_created(walk->relating, entity, walk->stream,
                                     quern_entity_index(item->entity));
    return entity;
}

/* --------------------------------------------------------------------------------------------- links */

/* Returns the reason why a living source cannot have this target, or -1. */
static int find_drop_reason(const quern__play_walk *it, const quern__relation *relation, uint32_t source,
                            uint32_t target)
{
    if (target == QUERN__NOTE_NONE || quern__relating_has_ended(it->relating, target))
        return QUERN_DROP_TARGET_DEAD;
    if (quern__links_has_page(&relation->links, source) && quern__would_be_cycle(relation, source, target))
        return QUERN_DROP_CYCLE;
    return quern__naming_allows_target(it->relating->storage, relation, source, target)
               ? -1
               : QUERN_DROP_SIBLING_NAME_TAKEN;
}

/* Relates the source to the target that is the value of this operand of the i-th item. */
static void relate(const quern__play_walk *it, const quern__item *item, uint32_t i,
                   const quern__operand *operand, quern__note *source)
{
    quern__relating *relating = it->relating;
    quern__storage *storage = relating->storage;
    quern__relation *relation = storage->components.list.items[operand->component_index]->managed.relation;
    const bool creates = it->batch->operation->kind == QUERN__OPERATION_CREATE;
    quern_entity entity;
    memcpy(&entity, (const char *)item + operand->offset_bytes, sizeof entity);
    const uint32_t slot = source->slot, target = quern__play_find_slot(it, entity);
    const int reason = find_drop_reason(it, relation, slot, target);
    if (creates && !quern__relating_note_row(relating, source, relation->index,
                                             reason >= 0 ? QUERN__WRONG_TARGET : target, 0))
        return;
    if (reason >= 0) {
        quern__play_drop(it, item, i, (quern_drop_reason)reason, 1);
        return;
    }
    if (!quern__links_reserve(&relation->links, &storage->allocator, slot) ||
        !quern__links_reserve(&relation->links, &storage->allocator, target)) {
        relating->is_out_of_memory = true;
        return;
    }
    if (quern__links_target(&relation->links, slot) == target) return;
    quern__relating_set_target(relating, relation, slot, target);
    /* a created row begins with the initial value, or the one that its create gives */
    if (QUERN__UNLIKELY(quern__relation_has_values(relation)) && !creates)
        quern__relating_put_value(relating, relation, slot, target, NULL);
}

/* Returns the note of the entity that the i-th item, of a kind that only this stage plays, is on. Returns NULL if the
 * command is dropped, or if out of memory. */
static quern__note *find_note(const quern__play_walk *it, const quern__item *item, uint32_t i)
{
    const uint64_t count = it->batch->operation->command_count;
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) {
        quern__play_drop(it, item, i, QUERN_DROP_DEAD, count);
        return NULL;
    }
    quern__note *source = note_of(it, item, slot);
    if (source == NULL || !(source->has_ended || source->is_refused)) return source;
    quern__play_drop(it, item, i, reason_of_end(source), count);
    return NULL;
}

static void relate_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    quern__note *source = find_note(it, item, i);
    if (source != NULL) relate(it, item, i, &it->batch->operation->operands[0], source);
}

/* Returns the relation of a batch of commands on one. */
static quern__relation *relation_of(const quern__play_walk *it)
{
    const quern__storage *storage = it->relating->storage;
    return storage->components.list.items[it->batch->operation->operands[0].component_index]
        ->managed.relation;
}

/* Returns the slot of the target in an item, or QUERN__NOTE_NONE if the target is dead. */
static uint32_t target_of(const quern__play_walk *it, const quern__item *item)
{
    quern_entity entity;
    memcpy(&entity, (const char *)item + it->batch->operation->operands[0].offset_bytes, sizeof entity);
    return quern__play_find_slot(it, entity);
}

static void add_edge_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__note *source = find_note(it, item, i);
    if (source == NULL) return;
    quern__relation *relation = relation_of(it);
    const uint32_t slot = source->slot, target = target_of(it, item);
    if (target == QUERN__NOTE_NONE || quern__relating_has_ended(it->relating, target))
        quern__play_drop(it, item, i, QUERN_DROP_TARGET_DEAD, 1);
    else if (!quern__edges_has(&relation->edges, slot, target))
        quern__relating_add_edge(it->relating, relation, slot, target);
}

/* -------------------------------------------------------------------------------- values of edges */

/* Gives an edge a copy of a value in which provisional handles are replaced: follow-up commands may be in another stream. */
static void put_value_with_handles(const quern__play_walk *it, quern__relation *relation, uint32_t source,
                                   uint32_t target, const void *value)
{
    const quern_allocator *allocator = &it->relating->storage->allocator;
    const quern__type *type = it->batch->operation->operands[1].type;
    void *copy = quern__allocate(allocator, type->size_bytes, type->alignment_bytes);
    if (copy == NULL) {
        it->relating->is_out_of_memory = true;
        return;
    }
    quern__type_copy(type, copy, value, 1);
    if (quern__type_own_provisional(type, copy)) {
        quern__type_remap(type, copy, quern__remap_created, (void *)(uintptr_t)it->created);
        quern__relating_put_value(it->relating, relation, source, target, copy);
    } else {
        it->relating->is_out_of_memory = true;
    }
    quern__type_destroy(type, copy, 1);
    quern__release(allocator, copy, type->size_bytes, type->alignment_bytes);
}

/* Returns whether the command is on whatever target the source has, or on that of its element. */
static bool has_null_target(const quern__play_walk *it, const quern__item *item)
{
    quern_entity entity;
    memcpy(&entity, (const char *)item + it->batch->operation->operands[0].offset_bytes, sizeof entity);
    return quern_entity_is_null(entity);
}

static uint32_t edge_target_of(const quern__play_walk *it, const quern__item *item,
                               const quern__relation *relation, uint32_t source)
{
    if (!has_null_target(it, item)) return target_of(it, item);
    if (!relation->is_many) return quern__links_target(&relation->links, source);
    quern_entity target;
    memcpy(&target, (const char *)item + it->batch->operation->operands[1].offset_bytes, sizeof target);
    return quern__play_find_slot(it, target);
}

static void edge_value_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    quern__relating *relating = it->relating;
    const quern__operation *operation = it->batch->operation;
    quern__relation *relation = relation_of(it);
    const void *value = (const char *)item + operation->operands[1].offset_bytes;
    quern__note *source = find_note(it, item, i);
    if (source == NULL) return;
    const uint32_t slot = source->slot, target = edge_target_of(it, item, relation, slot);
    const bool relates = operation->kind == QUERN__OPERATION_RELATE_WITH;
    if (relates && relation->is_many)
        add_edge_item(it, item, i);
    else if (relates)
        relate(it, item, i, &operation->operands[0], source);
    if (relating->is_out_of_memory) return;
    if (target == QUERN__NOTE_NONE || quern__relating_has_ended(relating, target) ||
        !quern__relation_has_target(relation, slot, target)) {
        if (!relates && !has_null_target(it, item)) quern__play_drop(it, item, i, QUERN_DROP_NO_EDGE, 1);
        return;
    }
    if (operation->operands[1].type->has_entity_fields)
        put_value_with_handles(it, relation, slot, target, value);
    else
        quern__relating_put_value(relating, relation, slot, target, value);
}

void quern__play_edge_values(const quern__play_walk *walk)
{
    quern__play_each(walk, edge_value_item);
}

/* ----------------------------------------------------------------------------------- unrelating */

/* Removes the target of a source that has one. */
static void unrelate(const quern__play_walk *it, quern__item *item, uint32_t i, uint32_t slot)
{
    quern__relation *relation = relation_of(it);
    if (!quern__naming_allows_target(it->relating->storage, relation, slot, QUERN__SLOT_NONE))
        quern__play_drop(it, item, i, QUERN_DROP_SIBLING_NAME_TAKEN, it->batch->operation->command_count);
    else
        quern__relating_set_target(it->relating, relation, slot, QUERN__SLOT_NONE);
}

static void unrelate_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__note *source = find_note(it, item, i);
    if (source == NULL) return;
    quern__relation *relation = relation_of(it);
    const uint32_t slot = source->slot;
    if (!relation->is_many) {
        if (quern__links_target(&relation->links, slot) != QUERN__SLOT_NONE) unrelate(it, item, i, slot);
        return;
    }
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, slot);
    bool is_done = true;
    while (targets->count > 0 && is_done)
        is_done = quern__relating_remove_edge(it->relating, relation, slot,
                                              quern__edge_list_next(targets, QUERN__SLOT_NONE));
}

static void unrelate_from_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__note *source = find_note(it, item, i);
    if (source == NULL) return;
    quern__relation *relation = relation_of(it);
    const uint32_t slot = source->slot, target = target_of(it, item);
    if (target == QUERN__NOTE_NONE) return;
    if (relation->is_many && quern__edges_has(&relation->edges, slot, target))
        quern__relating_remove_edge(it->relating, relation, slot, target);
    else if (!relation->is_many && quern__links_target(&relation->links, slot) == target)
        unrelate(it, item, i, slot);
}

/* ------------------------------------------------------------------------------ destroys and creates */

/* Ends a new entity that an earlier pass through the stages refused, and drops the commands that give it
 * components. Returns false if it was not refused. */
static bool refuse_create(const quern__play_walk *it, const quern__item *item, uint32_t i)
{
    quern__note *entity = quern__relating_find(
        it->relating, quern_entity_index(it->created[quern_entity_index(item->entity)]));
    if (entity == NULL || !entity->is_refused) return false;
    quern__relating_note_created(it->relating, entity, it->stream, quern_entity_index(item->entity));
    entity->has_ended = true;
    const uint32_t others = it->batch->operation->command_count - 1;
    if (others > 0) quern__play_drop(it, item, i, QUERN_DROP_REFUSED, others);
    return true;
}

static void create_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__operation *operation = it->batch->operation;
    if (it->relating->refused.count > 0 && refuse_create(it, item, i)) return;
    for (uint32_t k = 0; k < operation->operand_count && !it->relating->is_out_of_memory; k++) {
        if (!operation->operands[k].is_relation) continue;
        quern__note *source = note_of(it, item, quern__play_find_slot(it, item->entity));
        if (source != NULL) relate(it, item, i, &operation->operands[k], source);
    }
}

static void destroy_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    quern__relating *relating = it->relating;
    /* the entity is refused, so refuse_item has dropped the item */
    if (quern_entity_is_null(item->entity)) return;
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) return; /* the entity is dead, so merging drops the item */
    quern__note *entity = quern__relating_find(relating, slot);
    if (entity == NULL && !it->relates && !quern__relations_has_links(relating->storage->relations, slot) &&
        quern__names_number(relating->storage->names, slot) == QUERN__NAME_NONE)
        return;
    if (entity == NULL) entity = note_of(it, item, slot);
    if (entity == NULL) return;
    if (!entity->has_ended && !quern__relating_end(relating, slot)) {
        quern__play_drop_and_skip(it, item, i, QUERN_DROP_TARGET_IN_USE);
        return;
    }
    quern__relating_find(relating, slot)->is_destroyed = true;
}

void quern__play_destroys(const quern__play_walk *walk)
{
    quern__play_each(walk, destroy_item);
}

void quern__play_creates(const quern__play_walk *walk)
{
    const bool relates = QUERN__MAY(walk->batch->operation->traits, RELATES);
    if (relates || walk->relating->refused.count > 0) quern__play_each(walk, create_item);
}

void quern__play_relates(const quern__play_walk *walk)
{
    quern__play_each(walk, relate_item);
}

void quern__play_unrelates(const quern__play_walk *walk)
{
    quern__play_each(walk, unrelate_item);
}

void quern__play_adds_edges(const quern__play_walk *walk)
{
    quern__play_each(walk, add_edge_item);
}

void quern__play_unrelates_from(const quern__play_walk *walk)
{
    quern__play_each(walk, unrelate_from_item);
}

/* --------------------------------------------------------------------------------------------- names */

static void name_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) {
        quern__play_drop(it, item, i, QUERN_DROP_DEAD, 1);
        return;
    }
    const quern__note *entity = quern__relating_find(it->relating, slot);
    bool is_taken;
    if (entity != NULL && (entity->has_ended || entity->is_refused))
        quern__play_drop(it, item, i, reason_of_end(entity), 1);
    else if (quern__relating_set_name(it->relating, slot, (const char *)(item + 1), &is_taken) && is_taken)
        quern__play_drop(it, item, i, QUERN_DROP_SIBLING_NAME_TAKEN, 1);
}

void quern__play_names(const quern__play_walk *walk)
{
    quern__play_each(walk, name_item);
}

/* --------------------------------------------------------------------------------------------- trees */

/* Commands that disable and enable trees (quern_commands_set_enabled). The state of an entity is that of its two
 * tags (core/entities/enabled_calls.c). Rows do not change before merging, so notes have the tags of entities whose
 * tags earlier commands changed. Follow-up commands give rows the tags of switched entities. */

/* Bit i of a note's tags is the i-th tag (disabled_index + i); TAGS_KNOWN: the note has the tags, otherwise the row
 * has them. */
enum { TAG_DISABLED = 1, TAG_BY_PARENT = 2, TAGS_KNOWN = 4, BOTH_TAGS = TAG_DISABLED | TAG_BY_PARENT };

/* The tag that the component is, or 0. */
static uint8_t tag_of(const quern__storage *storage, uint32_t component_index)
{
    if (storage->disabled_index == QUERN__NO_COMPONENT) return 0;
    if (component_index == storage->disabled_index) return TAG_DISABLED;
    return component_index == storage->disabled_index + 1 ? TAG_BY_PARENT : 0;
}

/* Returns the archetype in which these commands spawn the entity of a slot, or NULL if the entity is no member. */
static const quern__archetype *spawned_archetype(const quern__relating *relating, uint32_t slot)
{
    if (QUERN__LIKELY(!relating->marks_members)) return NULL;
    const quern__note *entity = quern__relating_find(relating, slot);
    const uint32_t mark = relating->note_of_slot.items[slot];
    if (entity == NULL && mark == 0) return NULL;
    if (entity == NULL) return quern__spawned_archetype(relating->resolved, mark & ~QUERN__MEMBER_MARK);
    if (entity->stream == QUERN__NOTE_NONE) return NULL;
    return quern__spawned_archetype(relating->resolved,
                                    relating->streams.items[entity->stream].first_created + entity->number);
}

static uint8_t tags_of(const quern__relating *relating, uint32_t slot)
{
    const quern__storage *storage = relating->storage;
    const quern__note *entity = quern__relating_find(relating, slot);
    if (entity != NULL && (entity->tags & TAGS_KNOWN) != 0) return entity->tags & BOTH_TAGS;
    const quern__archetype *archetype = spawned_archetype(relating, slot);
    if (archetype == NULL) {
        if (slot >= storage->entities.slot_count) return 0;
        const quern__record *record = quern__entities_record(&storage->entities, slot);
        if (record->location == 0) return 0; /* created by these commands */
        archetype = quern__storage_archetype_of(storage, record);
    }
    return (uint8_t)((quern__archetype_has(archetype, storage->disabled_index) ? TAG_DISABLED : 0) |
                     (quern__archetype_has(archetype, storage->disabled_index + 1) ? TAG_BY_PARENT : 0));
}

static void note_tags(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__operation *operation = it->batch->operation;
    (void)i;
    if (quern_entity_is_null(item->entity)) return; /* dropped */
    for (uint32_t k = 0; k < operation->operand_count; k++) {
        const uint8_t tag = tag_of(it->relating->storage, operation->operands[k].component_index);
        if (tag == 0) continue;
        const uint32_t slot = quern__play_find_slot(it, item->entity);
        if (slot == QUERN__NOTE_NONE) return;
        const uint8_t tags = tags_of(it->relating, slot);
        quern__note *entity = note_of(it, item, slot);
        if (entity == NULL || entity->is_refused) return;
        const bool is_present = operation->kind != QUERN__OPERATION_REMOVE;
        entity->tags = (uint8_t)(TAGS_KNOWN | (is_present ? tags | tag : tags & ~tag));
    }
}

void quern__play_tags(const quern__play_walk *walk)
{
    const quern__operation *operation = walk->batch->operation;
    if (operation->kind != QUERN__OPERATION_CREATE && operation->kind != QUERN__OPERATION_ADD &&
        operation->kind != QUERN__OPERATION_SET && operation->kind != QUERN__OPERATION_REMOVE)
        return;
    for (uint32_t k = 0; k < operation->operand_count; k++)
        if (tag_of(walk->relating->storage, operation->operands[k].component_index) != 0) {
            quern__play_each(walk, note_tags);
            return;
        }
}

/* Gives an entity these tags. Refused entities keep theirs. */
static void set_tags(quern__relating *relating, uint32_t slot, uint8_t tags)
{
    if (tags_of(relating, slot) == tags) return;
    quern__note *entity = quern__relating_note(relating, slot);
    if (entity == NULL || entity->is_refused) return;
    entity->tags = TAGS_KNOWN | tags;
    entity->is_switched = true;
}

static bool parent_is_off(const quern__relating *relating, uint32_t slot)
{
    const uint32_t parent = quern__parent_slot(relating->storage, slot);
    return parent != QUERN__SLOT_NONE && (tags_of(relating, parent) & TAG_DISABLED) != 0;
}

static void switch_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    quern__relating *relating = it->relating;
    const quern__relation *parent = relating->storage->relations->parent;
    const quern__note *entity = find_note(it, item, i);
    if (entity == NULL) return;
    const uint32_t root = entity->slot;
    if (it->batch->operation->kind != QUERN__OPERATION_ENABLE_TREE)
        set_tags(relating, root, TAG_DISABLED);
    else
        set_tags(relating, root, parent_is_off(relating, root) ? BOTH_TAGS : 0);
    if (parent == NULL) return;
    for (uint32_t slot = quern__links_next_below(&parent->links, root, root);
         slot != QUERN__SLOT_NONE && !relating->is_out_of_memory;
         slot = quern__links_next_below(&parent->links, root, slot))
        if (tags_of(relating, slot) != TAG_DISABLED) /* otherwise it is disabled by itself */
            set_tags(relating, slot, parent_is_off(relating, slot) ? BOTH_TAGS : 0);
}

void quern__play_switches(const quern__play_walk *walk)
{
    quern__play_each(walk, switch_item);
}
