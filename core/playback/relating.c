/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/relating.h"

enum { RELATING_ALIGNMENT_BYTES = 128 };

_Static_assert(_Alignof(quern_commands) <= RELATING_ALIGNMENT_BYTES, "recorders are aligned enough");

quern__relating *quern__relating_create(quern__storage *storage)
{
    quern__relating *relating =
        quern__allocate(&storage->allocator, sizeof *relating, RELATING_ALIGNMENT_BYTES);
    if (relating == NULL) return NULL;
    *relating = (quern__relating){.storage = storage};
    quern__followers_init(&relating->followers, storage);
    return relating;
}

void quern__relating_destroy(quern__relating *relating)
{
    if (relating == NULL) return;
    const quern_allocator *allocator = &relating->storage->allocator;
    quern__followers_release(&relating->followers);
    quern__array_release(allocator, &relating->note_of_slot);
    quern__array_release(allocator, &relating->notes);
    quern__array_release(allocator, &relating->differences);
    quern__array_release(allocator, &relating->log);
    quern__array_release(allocator, &relating->saved_names);
    quern__array_release(allocator, &relating->dropped);
    quern__array_release(allocator, &relating->created);
    quern__array_release(allocator, &relating->streams);
    quern__array_release(allocator, &relating->list);
    quern__array_release(allocator, &relating->drops);
    quern__array_release(allocator, &relating->refused);
    quern__release(allocator, relating, sizeof *relating, RELATING_ALIGNMENT_BYTES);
}

/* --------------------------------------------------------------------------------------------- notes */

quern__note *quern__relating_note(quern__relating *relating, uint32_t slot)
{
    quern__note *known = quern__relating_find(relating, slot);
    if (known != NULL) return known;
    if (!quern__relating_reserve_one(relating, &relating->notes)) return NULL;
    assert(relating->notes.items != NULL);
    relating->notes.items[relating->notes.count] = (quern__note){.slot = slot,
                                                                 .stream = QUERN__NOTE_NONE,
                                                                 .next = QUERN__NOTE_NONE,
                                                                 .first_difference = QUERN__NOTE_NONE};
    relating->note_of_slot.items[slot] = ++relating->notes.count;
    return quern__relating_find(relating, slot);
}

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

bool quern__relating_note_link(quern__relating *relating, quern__note *entity,
                               const quern__relation *relation)
{
    const quern__kin *kin = quern__links_at(&relation->links, entity->slot);
    return quern__relating_note_row(relating, entity, relation->index, kin->target, kin->level);
}

/* --------------------------------------------------------------------------------------------- links */

static bool log_change(quern__relating *relating, quern__undo_kind kind, const quern__relation *relation,
                       uint32_t slot)
{
    const quern__kin *kin = quern__links_at(&relation->links, slot);
    if (!quern__relating_reserve_one(relating, &relating->log)) return false;
    relating->log.items[relating->log.count++] =
        (quern__undo){.kind = kind,
                      .relation = relation->index,
                      .slot = slot,
                      .old = kind == QUERN__UNDO_LEVEL ? kin->level : kin->target,
                      .next = kin->next};
    return true;
}

/* A name that was put, moved or dropped. There is room for what it was: it was there. */
static void take_name_back(quern__relating *relating, const quern__undo *change)
{
    quern__names *names = relating->storage->names;
    quern__names_drop(names, change->slot);
    if (change->old == QUERN__NOTE_NONE) return;
    const quern__name *saved = &relating->saved_names.items[change->old];
    quern__names_put(names, change->slot, saved->parent, saved->text, (uint32_t)strlen(saved->text));
}

static void take_back(quern__relation *relation, const quern__undo *change)
{
    if (change->kind == QUERN__UNDO_LINK)
        quern__links_unlink(&relation->links, change->slot);
    else if (change->kind == QUERN__UNDO_UNLINK)
        quern__links_link(&relation->links, change->slot, change->old, change->next);
    else
        quern__links_set_level(&relation->links, change->slot, change->old);
}

static bool link_to(quern__relating *relating, quern__relation *relation, uint32_t source, uint32_t target)
{
    if (!log_change(relating, QUERN__UNDO_LINK, relation, source)) return false;
    quern__links_link(&relation->links, source, target,
                      quern__links_new_place(&relation->links, target, relation->is_ordered));
    return true;
}

static bool unlink_source(quern__relating *relating, const quern__relation *relation, uint32_t source)
{
    if (!log_change(relating, QUERN__UNDO_UNLINK, relation, source)) return false;
    quern__links_unlink(&relation->links, source);
    return true;
}

/* An entity that has been noted comes to a level. Those below it whose level follows from that are in the
 * list while theirs have to follow. */
static bool set_level(quern__relating *relating, const quern__relation *relation, uint32_t slot,
                      uint32_t level)
{
    if (quern__links_at(&relation->links, slot)->level == level) return true;
    if (!log_change(relating, QUERN__UNDO_LEVEL, relation, slot) ||
        !quern__relating_reserve_one(relating, &relating->list))
        return false;
    quern__links_set_level(&relation->links, slot, level);
    relating->list.items[relating->list.count++] = slot;
    return true;
}

static bool come_to_level(quern__relating *relating, const quern__relation *relation, uint32_t slot,
                          uint32_t level)
{
    const uint32_t first = relating->list.count; /* of ours: others may be at their list */
    bool is_done = set_level(relating, relation, slot, level);
    while (is_done && relating->list.count > first) {
        const uint32_t above = relating->list.items[--relating->list.count];
        const uint32_t below = quern__relation_child_level(relation, above);
        for (uint32_t child = quern__links_first(&relation->links, above);
             is_done && child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next) {
            if (quern__links_level(&relation->links, child) == below) continue;
            quern__note *entity = quern__relating_note(relating, child);
            is_done = entity != NULL && quern__relating_note_link(relating, entity, relation) &&
                      set_level(relating, relation, child, below);
        }
    }
    relating->list.count = first;
    return is_done;
}

/* --------------------------------------------------------------------------------------------- names */

/* Logs the name that a slot has, before it changes. */
static bool log_name(quern__relating *relating, uint32_t slot)
{
    const quern__name *name = quern__names_of(relating->storage->names, slot);
    if (!quern__relating_reserve_one(relating, &relating->log) ||
        !quern__relating_reserve_one(relating, &relating->saved_names))
        return false;
    quern__undo change = {.kind = QUERN__UNDO_NAME, .slot = slot, .old = QUERN__NOTE_NONE};
    if (name != NULL) {
        change.old = relating->saved_names.count;
        relating->saved_names.items[relating->saved_names.count++] = *name;
    }
    relating->log.items[relating->log.count++] = change;
    return true;
}

/* The slot, if it has a name, takes it to another parent, where no sibling has it. */
static bool take_name_along(quern__relating *relating, uint32_t slot, uint32_t parent)
{
    quern__names *names = relating->storage->names;
    if (quern__names_number(names, slot) == QUERN__NAME_NONE) return true;
    if (!log_name(relating, slot)) return false;
    quern__names_move(names, slot, parent);
    return true;
}

static bool drop_name(quern__relating *relating, uint32_t slot)
{
    quern__names *names = relating->storage->names;
    if (quern__names_number(names, slot) == QUERN__NAME_NONE) return true;
    if (!log_name(relating, slot)) return false;
    quern__names_drop(names, slot);
    return true;
}

bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken)
{
    quern__storage *storage = relating->storage;
    const uint32_t parent = quern__parent_slot(storage, slot), bytes = (uint32_t)strlen(name);
    *out_is_taken = false;
    if (bytes == 0) return drop_name(relating, slot);
    const uint32_t owner = quern__names_find(storage->names, parent, name, bytes);
    *out_is_taken = owner != QUERN__SLOT_NONE && owner != slot;
    if (owner != QUERN__SLOT_NONE) return true;
    if (!quern__names_reserve(storage->names, &storage->allocator, slot)) {
        relating->is_out_of_memory = true;
        return false;
    }
    if (!log_name(relating, slot)) return false;
    quern__names_drop(storage->names, slot);
    quern__names_put(storage->names, slot, parent, name, bytes);
    storage->has_attachments = true;
    return true;
}

/* ------------------------------------------------------------------------------------------- targets */

bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target)
{
    const bool has_one = quern__links_target(&relation->links, source) != QUERN__SLOT_NONE;
    if (has_one && !unlink_source(relating, relation, source)) return false;
    if (target != QUERN__SLOT_NONE && !link_to(relating, relation, source, target)) return false;
    if (relation == relating->storage->relations->parent && !take_name_along(relating, source, target))
        return false;
    if (!relation->has_levels) return true;
    return come_to_level(relating, relation, source,
                         target != QUERN__SLOT_NONE ? quern__relation_child_level(relation, target) : 0);
}

void quern__relating_take_back(quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    while (relating->log.count > 0) {
        const quern__undo *change = &relating->log.items[--relating->log.count];
        if (change->kind == QUERN__UNDO_NAME)
            take_name_back(relating, change);
        else
            take_back(relations->list.items[change->relation], change);
    }
    relating->saved_names.count = 0;
}

void quern__relating_clear_ended(const quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t i = 0; i < relating->notes.count; i++) {
        const quern__note *entity = &relating->notes.items[i];
        for (uint32_t k = 0; k < relations->list.count && entity->has_ended; k++) {
            const quern__links *links = &relations->list.items[k]->links;
            if (quern__links_has_page(links, entity->slot)) quern__links_clear(links, entity->slot);
        }
    }
}

/* --------------------------------------------------------------------------------------------- ending */

/* Lists the entity as one of those that end, unless it has ended. False: no memory. */
static bool list_ending(quern__relating *relating, uint32_t slot)
{
    quern__note *entity = quern__relating_note(relating, slot);
    if (entity == NULL || !quern__relating_reserve_one(relating, &relating->list)) return false;
    if (entity->has_ended) return true;
    entity->has_ended = true;
    relating->list.items[relating->list.count++] = slot;
    return true;
}

/* Lists all that end with those in the list. */
static bool list_cascade(quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t i = 0; i < relating->list.count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            const quern__relation *relation = relations->list.items[k];
            if (relation->policy != QUERN_TARGET_DESTROYS_SOURCE) continue;
            for (uint32_t child = quern__links_first(&relation->links, relating->list.items[i]);
                 child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next)
                if (!list_ending(relating, child)) return false;
        }
    return true;
}

/* Whether a source that goes on refuses the end of its target, one of those in the list. */
static bool is_refused_by_sources(const quern__relating *relating)
{
    const quern__relations *relations = relating->storage->relations;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        const quern__relation *relation = relations->list.items[k];
        if (relation->policy != QUERN_TARGET_REFUSES) continue;
        for (uint32_t i = 0; i < relating->list.count; i++)
            for (uint32_t child = quern__links_first(&relation->links, relating->list.items[i]);
                 child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next)
                if (!quern__relating_has_ended(relating, child)) return true;
    }
    return false;
}

/* An entity that ends and those that go on have no more links with each other. Those among entities that
 * end stay until all is done. */
static bool part_from_living(quern__relating *relating, quern__relation *relation, uint32_t slot)
{
    const quern__links *links = &relation->links;
    const uint32_t target = quern__links_target(links, slot);
    if (target != QUERN__SLOT_NONE && !quern__relating_has_ended(relating, target) &&
        !unlink_source(relating, relation, slot))
        return false;
    if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE) return true; /* all have ended */
    for (uint32_t child = quern__links_first(links, slot), next; child != QUERN__SLOT_NONE; child = next) {
        next = quern__links_at(links, child)->next;
        if (quern__relating_has_ended(relating, child)) continue;
        quern__note *source = quern__relating_note(relating, child);
        if (source == NULL || !quern__relating_note_link(relating, source, relation) ||
            !quern__relating_set_target(relating, relation, child, QUERN__SLOT_NONE))
            return false;
    }
    return true;
}

bool quern__relating_end(quern__relating *relating, uint32_t slot)
{
    const quern__relations *relations = relating->storage->relations;
    relating->list.count = 0;
    if (!list_ending(relating, slot) || !list_cascade(relating)) return true;
    if (is_refused_by_sources(relating)) {
        for (uint32_t i = 0; i < relating->list.count; i++)
            quern__relating_find(relating, relating->list.items[i])->has_ended = false;
        return false;
    }
    const uint32_t count = relating->list.count;
    for (uint32_t i = 0; i < count; i++)
        if (!drop_name(relating, relating->list.items[i])) return true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            quern__relation *relation = relations->list.items[k];
            const uint32_t ending = relating->list.items[i];
            if (quern__links_has_page(&relation->links, ending) &&
                !part_from_living(relating, relation, ending))
                return true;
        }
    return true;
}
