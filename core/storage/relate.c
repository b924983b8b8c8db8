/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/relate.h"

#include "core/storage/change.h"
#include "core/storage/naming.h"

/* -------------------------------------------------------------------------------- lists of changes */

void quern__changes_begin(quern__storage *storage)
{
    storage->level_changes.count = 0;
}

/* Written field by field: a copy of a whole one would have to wait for its fields to reach the cache. */
static inline bool append(quern__storage *storage, quern__relation *relation, uint32_t slot,
                          bool has_target, uint32_t level)
{
    const uint32_t count = storage->level_changes.count;
    if (!quern__array_reserve(&storage->allocator, &storage->level_changes, count + 1)) return false;
    quern__level_change *change = &storage->level_changes.items[storage->level_changes.count++];
    change->relation = relation;
    change->slot = slot;
    change->level = level;
    change->has_target = has_target;
    return true;
}

/* The children of a slot are walked soon, and their links may come from memory. No branch: the processor
 * could not foresee it. */
static inline void fetch_children(const quern__links *links, const quern__kin *kin, uint32_t slot)
{
    const uint32_t first = kin->first != QUERN__SLOT_NONE ? kin->first : slot;
    __builtin_prefetch(quern__links_at(links, first));
}

/* Appends the children of the i-th that come to another level with it. */
static inline bool append_below(quern__storage *storage, quern__relation *relation, uint32_t i,
                                const quern__cascade *cascade)
{
    const quern__links *links = &relation->links;
    const quern__level_change *above = &storage->level_changes.items[i];
    const uint32_t level =
        above->level < QUERN_MAX_RELATION_LEVEL ? above->level + 1 : QUERN_MAX_RELATION_LEVEL;
    for (uint32_t slot = quern__links_at(links, above->slot)->first; slot != QUERN__SLOT_NONE;) {
        const quern__kin *kin = quern__links_at(links, slot);
        const bool stays = kin->level == level || (cascade != NULL && quern__cascade_has(cascade, slot));
        __builtin_prefetch(quern__entities_record(&storage->entities, slot), 1);
        fetch_children(links, kin, slot);
        if (!stays && !append(storage, relation, slot, true, level)) return false;
        slot = kin->next;
    }
    return true;
}

quern_result quern__changes_list(quern__storage *storage, quern__relation *relation, uint32_t slot,
                                 bool has_target, uint32_t level, const quern__cascade *cascade)
{
    const bool is_all = quern__links_level(&relation->links, slot) == level;
    uint32_t i = storage->level_changes.count;
    bool has_room = append(storage, relation, slot, has_target, level);
    for (; has_room && !is_all && i < storage->level_changes.count; i++)
        has_room = append_below(storage, relation, i, cascade);
    if (has_room) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory for the list of %u entities whose level changes",
                       storage->level_changes.count);
}

/* Whether changes of several relations are listed, so that one entity may have several. */
static bool are_several(const quern__storage *storage)
{
    const quern__relation *first = storage->level_changes.items[0].relation;
    return storage->level_changes.items[storage->level_changes.count - 1].relation != first;
}

/* Where an entity is when the changes listed so far are made, as far as they are noted. */
static inline quern__archetype *find_source(const quern__storage *storage, uint32_t slot, bool notes)
{
    quern__archetype *moved = notes ? quern__map_find_pointer(&storage->moved, (uint64_t)slot + 1) : NULL;
    return moved != NULL
               ? moved
               : quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, slot));
}

static quern_result note_moved(quern__storage *storage, uint32_t slot, quern__archetype *target)
{
    uint64_t *known = quern__map_find(&storage->moved, (uint64_t)slot + 1);
    if (known != NULL) {
        *known = (uintptr_t)target;
        return QUERN_OK;
    }
    if (!quern__map_reserve(&storage->moved, &storage->allocator, storage->moved.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the list of entities that move");
    quern__map_put(&storage->moved, (uint64_t)slot + 1, (uintptr_t)target);
    return QUERN_OK;
}

/* The row is moved when all are reserved: until then it may come from memory. */
static inline void fetch_row(const quern__storage *storage, const quern__level_change *change)
{
    const quern__archetype *archetype = change->plan->source;
    const quern__record *record = quern__entities_record(&storage->entities, change->slot);
    const quern__row row = quern__row_of(record->location);
    __builtin_prefetch(quern__row_handle(archetype, row), 1);
    for (uint32_t i = 0; i < archetype->column_count; i++)
        __builtin_prefetch(quern__column_value(&archetype->columns[i], quern__chunk_of(record->location),
                                               (uint32_t)row.index),
                           1);
}

/* Plan and room for one change. */
static quern_result reserve(quern__storage *storage, quern__level_change *change, bool notes)
{
    quern_result result =
        quern__relation_plan(storage, change->relation, find_source(storage, change->slot, notes),
                             change->has_target, change->level, &change->plan);
    if (result == QUERN_OK) fetch_row(storage, change);
    if (result == QUERN_OK && notes) result = note_moved(storage, change->slot, change->plan->target);
    if (result == QUERN_OK)
        result = quern__leaving_reserve(storage, change->plan->source, change->plan->target, 1);
    return result == QUERN_OK ? quern__rows_reserve(storage, change->plan->target, 1) : result;
}

quern_result quern__changes_reserve(quern__storage *storage)
{
    const bool notes = are_several(storage);
    quern_result result = QUERN_OK;
    uint32_t i = 0;
    for (; i < storage->level_changes.count && result == QUERN_OK; i++)
        result = reserve(storage, &storage->level_changes.items[i], notes);
    if (notes) quern__map_clear(&storage->moved);
    while (result != QUERN_OK && --i > 0)
        quern__rows_unreserve(storage, storage->level_changes.items[i - 1].plan->target);
    return result;
}

void quern__changes_apply(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->level_changes.count; i++) {
        const quern__level_change *change = &storage->level_changes.items[i];
        quern__record *record = quern__entities_record(&storage->entities, change->slot);
        quern__row_move_reserved(storage, quern__entity_of_slot(storage, change->slot), record,
                                 change->plan);
        quern__links_set_level(&change->relation->links, change->slot, change->level);
    }
}

/* ----------------------------------------------------------------------------------------- changing */

/* The source's row gets the target that its links have. Who had another target before is told of. */
static inline void write_target(const quern__storage *storage, const quern__relation *relation,
                                uint32_t source, quern_entity target, bool had_target)
{
    const quern__record *record = quern__entities_record(&storage->entities, source);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    memcpy(quern__storage_value(archetype, record->location, relation->component_index), &target,
           sizeof target);
    if (had_target) quern__rows_written(archetype, record->location, 1, relation->component_index);
}

static inline void relink(quern__storage *storage, quern__relation *relation, uint32_t source,
                          uint32_t target)
{
    quern__links *links = &relation->links;
    if (quern__links_at(links, source)->target != QUERN__SLOT_NONE) quern__links_unlink(links, source);
    quern__links_link(links, source, target, quern__links_new_place(links, target, relation->is_ordered));
    quern__naming_follow(storage, relation, source, target);
}

static quern_result reserve_move(quern__storage *storage, quern__relation *relation, uint32_t source,
                                 bool has_target, uint32_t level)
{
    quern__changes_begin(storage);
    quern__leaving_begin(storage);
    quern_result result = quern__changes_list(storage, relation, source, has_target, level, NULL);
    return result == QUERN_OK ? quern__changes_reserve(storage) : result;
}

static quern_result fail_cycle(const quern__storage *storage, const quern__relation *relation,
                               quern_entity source, quern_entity target)
{
    return quern__fail(
        QUERN_ERROR_CYCLE, "entity %u:%u cannot have %u:%u as its '%s': that one is below it already",
        quern_entity_index(source), quern_entity_generation(source), quern_entity_index(target),
        quern_entity_generation(target), quern__relation_name(storage, relation));
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
    quern_result result = quern__naming_check(storage, relation, source, t);
    if (result != QUERN_OK) return result;
    const uint32_t level = quern__relation_child_level(relation, t);
    const bool had_target = link->target != QUERN__SLOT_NONE, moves = !had_target || link->level != level;
    if (moves) result = reserve_move(storage, relation, s, true, level);
    if (result != QUERN_OK) return result;
    relink(storage, relation, s, t);
    if (moves) quern__changes_apply(storage);
    write_target(storage, relation, s, target, had_target);
    if (!moves) quern__storage_note_set(storage, relation->component_index);
    return QUERN_OK;
}

quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source)
{
    const uint32_t s = quern_entity_index(source);
    quern_result result = quern__naming_check(storage, relation, source, QUERN__SLOT_NONE);
    if (result == QUERN_OK) result = reserve_move(storage, relation, s, false, 0);
    if (result != QUERN_OK) return result;
    quern__links_unlink(&relation->links, s);
    quern__naming_follow(storage, relation, s, QUERN__SLOT_NONE);
    quern__changes_apply(storage);
    return QUERN_OK;
}
