/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/relate.h"

#include "core/base/bitset.h"
#include "core/relations/naming.h"
#include "core/storage/change.h"

enum {
    SHORT_LIST = 64, /* what its rows are in may be fetched all at once */
    /* What a long list will need lies anywhere; so far ahead of its use it is fetched: records and links,
     * and what these lead to. */
    RELATE_RECORDS_AHEAD = 24,
    RELATE_ROWS_AHEAD = 12
};

/* -------------------------------------------------------------------------------- lists of changes */

void quern__changes_begin(quern__storage *storage)
{
    storage->relations->level_changes.count = 0;
}

/* Written field by field: a copy of a whole one would have to wait for its fields to reach the cache. */
static inline bool append(quern__storage *storage, quern__relation *relation, uint32_t slot,
                          bool has_target, uint32_t level)
{
    const uint32_t count = storage->relations->level_changes.count;
    if (!quern__array_reserve(&storage->allocator, &storage->relations->level_changes, count + 1))
        return false;
    quern__level_change *change =
        &storage->relations->level_changes.items[storage->relations->level_changes.count++];
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
    const quern__level_change *above = &storage->relations->level_changes.items[i];
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
    uint32_t i = storage->relations->level_changes.count;
    bool has_room = append(storage, relation, slot, has_target, level);
    for (; has_room && !is_all && i < storage->relations->level_changes.count; i++)
        has_room = append_below(storage, relation, i, cascade);
    if (has_room) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory for the list of %u entities whose level changes",
                       storage->relations->level_changes.count);
}

/* Whether changes of several relations are listed, so that one entity may have several. */
static bool are_several(const quern__storage *storage)
{
    const quern__relation *first = storage->relations->level_changes.items[0].relation;
    return storage->relations->level_changes.items[storage->relations->level_changes.count - 1].relation !=
           first;
}

/* Where an entity is when the changes listed so far are made, as far as they are noted. */
static inline quern__archetype *find_source(const quern__storage *storage, uint32_t slot, bool notes)
{
    quern__archetype *moved =
        notes ? quern__map_find_pointer(&storage->relations->moved, (uint64_t)slot + 1) : NULL;
    return moved != NULL
               ? moved
               : quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, slot));
}

static quern_result note_moved(quern__storage *storage, uint32_t slot, quern__archetype *target)
{
    uint64_t *known = quern__map_find(&storage->relations->moved, (uint64_t)slot + 1);
    if (known != NULL) {
        *known = (uintptr_t)target;
        return QUERN_OK;
    }
    if (!quern__map_reserve(&storage->relations->moved, &storage->allocator,
                            storage->relations->moved.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the list of entities that move");
    quern__map_put(&storage->relations->moved, (uint64_t)slot + 1, (uintptr_t)target);
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

/* Whether a change goes the same way as the one before it, which has its plan. */
static inline bool goes_along(const quern__storage *storage, const quern__level_change *change)
{
    const quern__level_change *before = change - 1;
    const quern__record *record = quern__entities_record(&storage->entities, change->slot);
    return record->archetype_number == before->plan->source->number && change->level == before->level &&
           change->has_target == before->has_target && change->relation == before->relation;
}

static inline void fetch_record(const quern__storage *storage, uint32_t slot)
{
    __builtin_prefetch(quern__entities_record(&storage->entities, slot), 1);
}

/* Plans and room for a change, and for those after it that go the same way: the entities below one target
 * often do. *out_count: how many these are. */
static quern_result reserve_run(quern__storage *storage, uint32_t first, bool notes, uint32_t *out_count)
{
    quern__level_change *change = &storage->relations->level_changes.items[first];
    const quern__level_change *end =
        storage->relations->level_changes.items + storage->relations->level_changes.count;
    const bool is_short = storage->relations->level_changes.count <= SHORT_LIST;
    uint32_t count = 1;
    quern_result result =
        quern__relation_plan(storage, change->relation, find_source(storage, change->slot, notes),
                             change->has_target, change->level, &change->plan);
    if (result != QUERN_OK) return result;
    const quern__move_plan *plan = change->plan;
    if (is_short) fetch_row(storage, change);
    if (notes) result = note_moved(storage, change->slot, plan->target);
    for (; !notes && ++change < end && goes_along(storage, change); count++) {
        if (end - change > RELATE_RECORDS_AHEAD) fetch_record(storage, change[RELATE_RECORDS_AHEAD].slot);
        change->plan = plan;
        if (is_short) fetch_row(storage, change);
    }
    *out_count = count;
    if (result == QUERN_OK) result = quern__leaving_reserve(storage, plan->source, plan->target, count);
    return result == QUERN_OK ? quern__rows_reserve(storage, plan->target, count) : result;
}

quern_result quern__changes_reserve(quern__storage *storage)
{
    const bool notes = are_several(storage);
    quern_result result = QUERN_OK;
    uint32_t first = 0;
    for (uint32_t count = 0; first < storage->relations->level_changes.count; first += count) {
        result = reserve_run(storage, first, notes, &count);
        if (result != QUERN_OK) break;
    }
    if (notes) quern__map_clear(&storage->relations->moved);
    while (result != QUERN_OK && first > 0)
        quern__rows_unreserve(storage, storage->relations->level_changes.items[--first].plan->target);
    return result;
}

void quern__changes_apply(quern__storage *storage)
{
    const uint32_t count = storage->relations->level_changes.count;
    const bool is_long = count > SHORT_LIST;
    const quern__level_change *change = storage->relations->level_changes.items;
    for (uint32_t i = 0; i < count; i++, change++) {
        if (is_long && count - i > RELATE_RECORDS_AHEAD) {
            fetch_record(storage, change[RELATE_RECORDS_AHEAD].slot);
            fetch_row(storage, change + RELATE_ROWS_AHEAD);
        }
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

/* Whether the source may get the target; both have links. Who has no children is above nobody. */
static inline quern_result check_pair(const quern__storage *storage, const quern__relation *relation,
                                      quern_entity source, quern_entity target)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    const quern__links *links = &relation->links;
    if (relation->has_levels && quern__links_at(links, s)->count > 0 && quern__links_is_above(links, s, t))
        return fail_cycle(storage, relation, source, target);
    return quern__naming_check(storage, relation, source, t);
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
    quern_result result = check_pair(storage, relation, source, target);
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

/* -------------------------------------------------------------------------------------------- many */

static quern_result fail_list(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the list of links that change");
}

/* Notes how a slot is linked. */
static inline bool note_link(quern__storage *storage, uint32_t slot, const quern__kin *kin,
                             bool is_level_alone)
{
    const uint32_t count = storage->relations->relinkings.count;
    if (!quern__array_reserve(&storage->allocator, &storage->relations->relinkings, count + 1))
        return false;
    storage->relations->relinkings.items[storage->relations->relinkings.count++] =
        (quern__relinking){.slot = slot,
                           .target = kin->target,
                           .next = kin->next,
                           .level = kin->level,
                           .is_level_alone = is_level_alone};
    return true;
}

/* The slot noted last comes to a level, and those below it to theirs. */
static bool follow_levels(quern__storage *storage, const quern__relation *relation, uint32_t level)
{
    const quern__links *links = &relation->links;
    uint32_t i = storage->relations->relinkings.count - 1;
    const uint32_t slot = storage->relations->relinkings.items[i].slot;
    if (quern__links_at(links, slot)->level == level) return true;
    quern__links_set_level(links, slot, level);
    for (; i < storage->relations->relinkings.count; i++) {
        const quern__kin *above = quern__links_at(links, storage->relations->relinkings.items[i].slot);
        const uint32_t below =
            above->level < QUERN_MAX_RELATION_LEVEL ? above->level + 1 : QUERN_MAX_RELATION_LEVEL;
        for (uint32_t child = above->first; child != QUERN__SLOT_NONE;) {
            const quern__kin *kin = quern__links_at(links, child);
            if (kin->level != below) {
                if (!note_link(storage, child, kin, true)) return false;
                quern__links_set_level(links, child, below);
            }
            child = kin->next;
        }
    }
    return true;
}

static quern_result relate_links(quern__storage *storage, quern__relation *relation, quern_entity source,
                                 quern_entity target)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    const quern__links *links = &relation->links;
    const quern__kin *kin = quern__links_at(links, s);
    if (kin->target == t) return QUERN_OK;
    const quern_result result = check_pair(storage, relation, source, target);
    if (result != QUERN_OK) return result;
    if (!note_link(storage, s, kin, false)) return fail_list();
    relink(storage, relation, s, t);
    return follow_levels(storage, relation, quern__relation_child_level(relation, t)) ? QUERN_OK
                                                                                      : fail_list();
}

static inline void fetch_links(const quern__links *links, uint32_t slot)
{
    const quern__kin *kin = quern__links_find(links, slot);
    if (kin != NULL) __builtin_prefetch(kin, 1);
}

/* What linking a pair will change: the links of both have come. */
static inline void fetch_neighbours(const quern__relation *relation, uint32_t source, uint32_t target)
{
    const quern__links *links = &relation->links;
    const quern__kin *child = quern__links_at(links, source), *parent = quern__links_at(links, target);
    fetch_links(links, child->target);
    fetch_links(links, child->next);
    fetch_links(links, child->previous);
    fetch_links(links, child->first);
    fetch_links(links, relation->is_ordered ? parent->last : parent->first);
}

/* Until one fails. *out_count: how many have not. */
static quern_result relate_all_links(quern__storage *storage, quern__relation *relation,
                                     const quern_entity *sources, const quern_entity *targets,
                                     uint32_t count, uint32_t *out_count)
{
    quern_result result = QUERN_OK;
    uint32_t i = 0;
    for (; i < count; i++) {
        if (count - i > RELATE_RECORDS_AHEAD) {
            fetch_links(&relation->links, quern_entity_index(sources[i + RELATE_RECORDS_AHEAD]));
            fetch_links(&relation->links, quern_entity_index(targets[i + RELATE_RECORDS_AHEAD]));
            fetch_neighbours(relation, quern_entity_index(sources[i + RELATE_ROWS_AHEAD]),
                             quern_entity_index(targets[i + RELATE_ROWS_AHEAD]));
        }
        result = relate_links(storage, relation, sources[i], targets[i]);
        if (result != QUERN_OK) break;
    }
    *out_count = i;
    return result;
}

static void take_links_back(quern__storage *storage, quern__relation *relation)
{
    quern__links *links = &relation->links;
    for (uint32_t i = storage->relations->relinkings.count; i-- > 0;) {
        const quern__relinking *before = &storage->relations->relinkings.items[i];
        quern__links_set_level(links, before->slot, before->level);
        if (before->is_level_alone) continue;
        quern__links_unlink(links, before->slot);
        if (before->target != QUERN__SLOT_NONE)
            quern__links_link(links, before->slot, before->target, before->next);
        quern__naming_follow(storage, relation, before->slot, before->target);
    }
}

/* Lists the rows that are to move. What is noted of a slot first is what its row says still. All slots that
 * are noted are in the set of those touched afterwards. */
static quern_result list_touched(quern__storage *storage, quern__relation *relation)
{
    const uint32_t count = storage->relations->relinkings.count;
    const quern__relinking *before = storage->relations->relinkings.items;
    quern__changes_begin(storage);
    if (!quern__array_reserve(&storage->allocator, &storage->relations->level_changes, count))
        return fail_list();
    for (uint32_t i = 0; i < count; i++, before++) {
        if (count - i > RELATE_RECORDS_AHEAD)
            fetch_links(&relation->links, before[RELATE_RECORDS_AHEAD].slot);
        if (quern__bitset_has(storage->relations->touched.items, before->slot)) continue;
        quern__bitset_add(storage->relations->touched.items, before->slot);
        fetch_record(storage, before->slot);
        const uint32_t level = quern__links_at(&relation->links, before->slot)->level;
        if (level != before->level || before->target == QUERN__SLOT_NONE)
            append(storage, relation, before->slot, true, level);
    }
    return QUERN_OK;
}

static void forget_touched(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->relations->relinkings.count; i++)
        quern__bitset_remove(storage->relations->touched.items,
                             storage->relations->relinkings.items[i].slot);
    storage->relations->relinkings.count = 0;
}

/* Where the target of a slot will be written, and what says which handle it has. */
static inline void fetch_target(const quern__storage *storage, const quern__relation *relation,
                                uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const void *value = quern__storage_value(quern__storage_archetype_of(storage, record), record->location,
                                             relation->component_index);
    __builtin_prefetch(value, 1);
    fetch_record(storage, quern__links_at(&relation->links, slot)->target);
}

/* The sources' rows get their targets. Those that have one are out of the set of those touched. */
static void write_targets(quern__storage *storage, const quern__relation *relation)
{
    const uint32_t count = storage->relations->relinkings.count;
    const quern__relinking *before = storage->relations->relinkings.items;
    for (uint32_t i = 0; i < count; i++, before++) {
        if (count - i > RELATE_RECORDS_AHEAD) {
            fetch_record(storage, before[RELATE_RECORDS_AHEAD].slot);
            fetch_target(storage, relation, before[RELATE_ROWS_AHEAD].slot);
        }
        if (before->is_level_alone || !quern__bitset_has(storage->relations->touched.items, before->slot))
            continue;
        quern__bitset_remove(storage->relations->touched.items, before->slot);
        const uint32_t target = quern__links_at(&relation->links, before->slot)->target;
        write_target(storage, relation, before->slot, quern__entity_of_slot(storage, target),
                     before->target != QUERN__SLOT_NONE);
    }
    if (count > 0) quern__storage_note_set(storage, relation->component_index);
}

/* Links for all slots that are named, and room for the rest that is known. */
static quern_result reserve_links(quern__storage *storage, quern__relation *relation,
                                  const quern_entity *sources, const quern_entity *targets, uint32_t count)
{
    const uint32_t word_count = QUERN__BITSET_WORDS(storage->entities.slot_count);
    bool has_room = quern__array_reserve(&storage->allocator, &storage->relations->touched, word_count) &&
                    quern__array_reserve(&storage->allocator, &storage->relations->relinkings, count);
    for (; has_room && storage->relations->touched.count < word_count; storage->relations->touched.count++)
        storage->relations->touched.items[storage->relations->touched.count] = 0;
    for (uint32_t i = 0; i < count && has_room; i++)
        has_room =
            quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(sources[i])) &&
            quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(targets[i]));
    return has_room ? QUERN_OK
                    : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
}

quern_result quern__relate_many(quern__storage *storage, quern__relation *relation,
                                const quern_entity *sources, const quern_entity *targets, uint32_t count,
                                uint32_t *out_failed)
{
    *out_failed = count;
    quern_result result = reserve_links(storage, relation, sources, targets, count);
    if (result != QUERN_OK) return result;
    result = relate_all_links(storage, relation, sources, targets, count, out_failed);
    if (result == QUERN_OK) result = list_touched(storage, relation);
    quern__leaving_begin(storage);
    if (result == QUERN_OK && storage->relations->level_changes.count > 0)
        result = quern__changes_reserve(storage);
    if (result == QUERN_OK) {
        quern__changes_apply(storage);
        write_targets(storage, relation);
    } else {
        take_links_back(storage, relation);
    }
    forget_touched(storage);
    return result;
}
