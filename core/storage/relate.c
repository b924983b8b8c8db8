/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/relate.h"

#include "core/storage/change.h"

/* ------------------------------------------------------------------------------ what comes to change */

static bool list_change(quern__storage *storage, uint32_t slot, uint32_t level)
{
    quern__level_changes *changes = &storage->relations.changes;
    if (!quern__array_reserve(&storage->allocator, changes, changes->count + 1)) return false;
    changes->items[changes->count++] = (quern__level_change){.slot = slot, .level = level};
    return true;
}

/* Lists an entity that comes to a level, and all below it whose level follows from that. Where a level stays
 * as it is, so do all below it. */
static bool list_changes(quern__storage *storage, const quern__relation *relation, uint32_t slot,
                         uint32_t level)
{
    quern__level_changes *changes = &storage->relations.changes;
    const quern__links *links = &relation->links;
    changes->count = 0;
    if (!list_change(storage, slot, level)) return false;
    if (quern__links_level(links, slot) == level) return true;
    for (uint32_t i = 0; i < changes->count; i++) {
        const quern__level_change change = changes->items[i];
        const uint32_t below =
            change.level < QUERN_MAX_RELATION_LEVEL ? change.level + 1 : QUERN_MAX_RELATION_LEVEL;
        for (uint32_t child = quern__links_first(links, change.slot); child != QUERN__SLOT_NONE;
             child = quern__links_at(links, child)->next)
            if (quern__links_at(links, child)->level != below && !list_change(storage, child, below))
                return false;
    }
    return true;
}

/* Plan and room for the i-th change. */
static quern_result reserve_change(quern__storage *storage, quern__relation *relation, uint32_t i,
                                   bool has_target)
{
    quern__level_change *change = &storage->relations.changes.items[i];
    const quern__record *record = quern__entities_record(&storage->entities, change->slot);
    quern_result result =
        quern__relation_plan(storage, relation, quern__storage_archetype_of(storage, record),
                             has_target || i > 0, change->level, &change->plan);
    if (result != QUERN_OK) return result;
    return quern__rows_reserve(storage, change->plan->target, 1);
}

/* Only the first of those listed may be one that has no target afterwards. */
static quern_result reserve_changes(quern__storage *storage, quern__relation *relation, bool has_target)
{
    const quern__level_changes *changes = &storage->relations.changes;
    for (uint32_t i = 0; i < changes->count; i++) {
        quern_result result = reserve_change(storage, relation, i, has_target);
        if (result == QUERN_OK) continue;
        while (i-- > 0)
            quern__rows_unreserve(storage, changes->items[i].plan->target);
        return result;
    }
    return QUERN_OK;
}

static void apply_changes(quern__storage *storage, const quern__relation *relation)
{
    const quern__level_changes *changes = &storage->relations.changes;
    for (uint32_t i = 0; i < changes->count; i++) {
        const quern__level_change *change = &changes->items[i];
        quern__record *record = quern__entities_record(&storage->entities, change->slot);
        uint32_t count;
        const uintptr_t to = quern__rows_append(storage, change->plan->target, 1, &count);
        quern__row_move(storage, quern__entity_of_slot(storage, change->slot), record, change->plan, to);
        quern__links_at(&relation->links, change->slot)->level = change->level;
    }
}

/* ----------------------------------------------------------------------------------------- changing */

static void write_target(const quern__storage *storage, const quern__relation *relation, uint32_t source,
                         quern_entity target)
{
    const quern__record *record = quern__entities_record(&storage->entities, source);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    memcpy(quern__storage_value(archetype, record->location, relation->component_index), &target,
           sizeof target);
}

static void relink(const quern__relation *relation, uint32_t source, uint32_t target)
{
    const quern__links *links = &relation->links;
    if (quern__links_target(links, source) != QUERN__SLOT_NONE) quern__links_unlink(links, source);
    quern__links_link(links, source, target,
                      relation->is_ordered ? QUERN__SLOT_NONE : quern__links_at(links, target)->first);
}

/* Where the source's archetype stays. */
static void retarget(const quern__storage *storage, const quern__relation *relation, uint32_t source,
                     quern_entity target)
{
    const quern__record *record = quern__entities_record(&storage->entities, source);
    relink(relation, source, quern_entity_index(target));
    write_target(storage, relation, source, target);
    quern__rows_written(quern__storage_archetype_of(storage, record), record->location, 1,
                        relation->component_index);
    quern__storage_note_set(storage, relation->component_index);
}

static quern_result reserve_move(quern__storage *storage, quern__relation *relation, uint32_t source,
                                 bool has_target, uint32_t level)
{
    if (!list_changes(storage, relation, source, level))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory for the list of those whose level changes");
    return reserve_changes(storage, relation, has_target);
}

static quern_result fail_cycle(const quern__storage *storage, const quern__relation *relation,
                               quern_entity source, quern_entity target)
{
    return quern__fail(QUERN_ERROR_CYCLE,
                       "entity %u:%u cannot have %u:%u as its '%s', which has it as its own, or one of "
                       "those that follow has",
                       quern_entity_index(source), quern_entity_generation(source),
                       quern_entity_index(target), quern_entity_generation(target),
                       quern__relation_name(storage, relation));
}

quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    const quern__links *links = &relation->links;
    if (!quern__links_reserve(&relation->links, &storage->allocator, s) ||
        !quern__links_reserve(&relation->links, &storage->allocator, t))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
    const quern__kin *link = quern__links_at(links, s);
    if (link->target == t) return QUERN_OK;
    /* who has no children is above nobody */
    if (relation->has_levels && link->count > 0 && quern__links_is_above(links, s, t))
        return fail_cycle(storage, relation, source, target);
    const uint32_t level = quern__relation_child_level(relation, t);
    if (link->target != QUERN__SLOT_NONE && link->level == level) {
        retarget(storage, relation, s, target);
        return QUERN_OK;
    }
    quern_result result = reserve_move(storage, relation, s, true, level);
    if (result != QUERN_OK) return result;
    relink(relation, s, t);
    apply_changes(storage, relation);
    write_target(storage, relation, s, target);
    return QUERN_OK;
}

quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source)
{
    const uint32_t s = quern_entity_index(source);
    quern_result result = reserve_move(storage, relation, s, false, 0);
    if (result != QUERN_OK) return result;
    quern__links_unlink(&relation->links, s);
    apply_changes(storage, relation);
    return QUERN_OK;
}
