/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Playing the commands that disable and enable trees (quern_commands_set_enabled). The state of an entity is that of its
 * two tags (core/calls/entity_enabled.c). Rows do not change before merging, so notes have the tags of entities whose tags
 * earlier commands changed. Follow-up commands give rows the tags of switched entities. */
#include "core/playback/play.h"

/* Bit i of a note's tags is the i-th tag (disabled_index + i); TAGS_KNOWN: the note has the tags, otherwise the row has them. */
enum { TAG_DISABLED = 1, TAG_BY_PARENT = 2, TAGS_KNOWN = 4, BOTH_TAGS = TAG_DISABLED | TAG_BY_PARENT };

/* The tag that the component is, or 0. */
static uint8_t tag_of(const quern__storage *storage, uint32_t component_index)
{
    if (storage->disabled_index == QUERN__NO_COMPONENT) return 0;
    if (component_index == storage->disabled_index) return TAG_DISABLED;
    return component_index == storage->disabled_index + 1 ? TAG_BY_PARENT : 0;
}

static uint8_t tags_of_row(const quern__storage *storage, uint32_t slot)
{
    if (slot >= storage->entities.slot_count) return 0;
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    if (record->location == 0) return 0; /* created by these commands */
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    return (uint8_t)((quern__archetype_has(archetype, storage->disabled_index) ? TAG_DISABLED : 0) |
                     (quern__archetype_has(archetype, storage->disabled_index + 1) ? TAG_BY_PARENT : 0));
}

static uint8_t tags_of(const quern__relating *relating, uint32_t slot)
{
    const quern__note *entity = quern__relating_find(relating, slot);
    if (entity != NULL && (entity->tags & TAGS_KNOWN) != 0) return entity->tags & BOTH_TAGS;
    return tags_of_row(relating->storage, slot);
}

/* ------------------------------------------------------------------------- commands on the tags themselves */

static void note_tag(const quern__play_walk *it, const quern__item *item, uint8_t tag, bool is_present)
{
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) return;
    const uint8_t tags = tags_of(it->relating, slot);
    quern__note *entity = quern__play_note(it, item, slot);
    if (entity == NULL || entity->is_refused) return;
    entity->tags = (uint8_t)(TAGS_KNOWN | (is_present ? tags | tag : tags & ~tag));
}

static void note_tags(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__operation *operation = it->batch->operation;
    (void)i;
    if (quern_entity_is_null(item->entity)) return; /* dropped */
    for (uint32_t k = 0; k < operation->operand_count; k++) {
        const uint8_t tag = tag_of(it->relating->storage, operation->operands[k].component_index);
        if (tag != 0) note_tag(it, item, tag, operation->kind != QUERN__OPERATION_REMOVE);
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

/* ------------------------------------------------------------------------------------------- switching */

/* Gives an entity these tags. Refused entities keep theirs. */
static void set_tags(quern__relating *relating, uint32_t slot, uint8_t tags)
{
    if (tags_of(relating, slot) == tags) return;
    quern__note *entity = quern__relating_note(relating, slot);
    if (entity == NULL || entity->is_refused) return;
    entity->tags = TAGS_KNOWN | tags;
    entity->is_switched = true;
}

/* Returns the slot after `slot` in a preorder walk of the tree below `root`, or QUERN__SLOT_NONE at the end. */
static uint32_t next_below(const quern__links *links, uint32_t root, uint32_t slot)
{
    const uint32_t child = quern__links_first(links, slot);
    if (child != QUERN__SLOT_NONE) return child;
    for (; slot != root; slot = quern__links_target(links, slot))
        if (quern__links_at(links, slot)->next != QUERN__SLOT_NONE)
            return quern__links_at(links, slot)->next;
    return QUERN__SLOT_NONE;
}

static bool parent_is_off(const quern__relating *relating, uint32_t slot)
{
    const uint32_t parent = quern__parent_slot(relating->storage, slot);
    return parent != QUERN__SLOT_NONE && (tags_of(relating, parent) & TAG_DISABLED) != 0;
}

static void switch_tree(quern__relating *relating, uint32_t root, bool enables)
{
    const quern__relation *parent = relating->storage->relations->parent;
    if (!enables)
        set_tags(relating, root, TAG_DISABLED);
    else
        set_tags(relating, root, parent_is_off(relating, root) ? BOTH_TAGS : 0);
    if (parent == NULL) return;
    for (uint32_t slot = next_below(&parent->links, root, root);
         slot != QUERN__SLOT_NONE && !relating->is_out_of_memory;
         slot = next_below(&parent->links, root, slot))
        if (tags_of(relating, slot) != TAG_DISABLED) /* otherwise it is disabled by itself */
            set_tags(relating, slot, parent_is_off(relating, slot) ? BOTH_TAGS : 0);
}

static void switch_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const quern__note *root = quern__play_find_note(it, item, i);
    if (root != NULL)
        switch_tree(it->relating, root->slot, it->batch->operation->kind == QUERN__OPERATION_ENABLE_TREE);
}

void quern__play_switches(const quern__play_walk *walk)
{
    quern__play_each(walk, switch_item);
}
