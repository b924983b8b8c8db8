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
    quern__follow_ups_init(&relating->follow_ups, storage);
    return relating;
}

void quern__relating_destroy(quern__relating *relating)
{
    if (relating == NULL) return;
    const quern_allocator *allocator = &relating->storage->allocator;
    quern__follow_ups_release(&relating->follow_ups);
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

/* Whether a function of link_log.h succeeded. Notes its only error, OUT_OF_MEMORY. */
static inline bool is_done(quern__relating *relating, quern_result result)
{
    relating->is_out_of_memory |= result != QUERN_OK;
    return result == QUERN_OK;
}

bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target)
{
    return is_done(relating,
                   quern__link_log_set_target(relating->storage, relation, source, target, NULL)) &&
           note_changes(relating);
}

bool quern__relating_add_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                              uint32_t target)
{
    return is_done(relating, quern__link_log_add_edge(relating->storage, relation, source, target)) &&
           note_changes(relating);
}

bool quern__relating_remove_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                                 uint32_t target)
{
    return is_done(relating, quern__link_log_remove_edge(relating->storage, relation, source, target)) &&
           note_changes(relating);
}

bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken)
{
    quern__storage *storage = relating->storage;
    const uint32_t parent = quern__parent_slot(storage, slot), bytes = (uint32_t)strlen(name);
    *out_is_taken = false;
    if (bytes == 0) return is_done(relating, quern__link_log_drop_name(storage, slot));
    const uint32_t owner = quern__names_find(storage->names, parent, name, bytes);
    *out_is_taken = owner != QUERN__SLOT_NONE && owner != slot;
    if (owner != QUERN__SLOT_NONE) return true;
    return is_done(relating, quern__link_log_put_name(storage, slot, parent, name, bytes));
}

void quern__relating_clear_ended(const quern__relating *relating)
{
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
        !is_done(relating, quern__link_log_unlink(relating->storage, relation, slot)))
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
        if (!is_done(relating,
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
