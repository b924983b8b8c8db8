/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Immediate calls that relate and unrelate: changing links or edges, and moving the rows that this changes. A call
 * reserves everything before the first row moves; the log of links reverts what a failure leaves. */
#include "core/relations/relation_internal.h"

#include "core/base/containers.h"
#include "core/reactions/hook.h"
#include "core/storage/change.h"

enum {
    SHORT_LIST = 64, /* in lists up to this length, all rows are prefetched before the first one moves */
    /* Prefetch distances in longer lists, in list entries. Records and link nodes are prefetched first. The
     * addresses of rows and adjacent nodes are read from them, so these are prefetched when their entry is nearer. */
    RELATE_RECORDS_AHEAD = 24,
    RELATE_ROWS_AHEAD = 12
};

/* --------------------------------------------------------------------------------------------- rows */

static inline void fetch_record(const quern__storage *storage, uint32_t slot)
{
    QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, slot));
}

/* Notes the archetype in which an entity is after its latest reserved move. */
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

/* Constructs the values of edges, and of what they require, in a row that has received them, and perhaps the target, by a
 * move from `before`. */
static void construct_edge_values(const quern__storage *storage, const quern__relation *relation,
                                  const quern__archetype *before, uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        if (column->component_index != relation->component_index &&
            !quern__archetype_has(before, column->component_index))
            quern__type_construct(column->type, quern__column_at(column, record->location), 1);
    }
}

/* Prefetches the row of a change. It is moved only after all rows have been reserved, so the load has time. */
static inline void fetch_row(const quern__storage *storage, const quern__link_change *change)
{
    const quern__archetype *archetype = change->plan->source;
    const quern__record *record = quern__entities_record(&storage->entities, change->slot);
    QUERN__PREFETCH_WRITE(quern__row_handle(archetype, quern__archetype_row(archetype, record->location)));
    for (uint32_t i = 0; i < archetype->column_count; i++)
        QUERN__PREFETCH_WRITE(quern__column_at(&archetype->columns[i], record->location));
}

/* Returns whether the row of a change moves by the same plan as the row of the previous change. */
static inline bool shares_plan(const quern__storage *storage, const quern__link_change *change)
{
    const quern__link_change *before = change - 1;
    const quern__record *record = quern__entities_record(&storage->entities, change->slot);
    return record->archetype_number == before->plan->source->number &&
           change->row_tier == before->row_tier && change->relation == before->relation;
}

/* Finds the plan of a change and reserves rows for it and for all changes directly after it with the same plan; the
 * entities below one target often have the same. notes_moves: entities may move more than once, so reserved moves
 * are noted in `moved`. *out_count: number of these changes. */
static quern_result reserve_same_plan(quern__storage *storage, uint32_t first, bool notes_moves,
                                      uint32_t *out_count)
{
    quern__link_log *log = &storage->relations->log;
    quern__link_change *change = &log->changes.items[first];
    const quern__link_change *end = log->changes.items + log->changes.count;
    const bool is_short = log->changes.count <= SHORT_LIST;
    uint32_t count = 1;
    quern__archetype *source = NULL; /* where the entity is after the moves reserved so far */
    if (notes_moves)
        source = quern__map_find_pointer(&storage->relations->moved, (uint64_t)change->slot + 1);
    if (source == NULL)
        source =
            quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, change->slot));
    quern_result result =
        quern__relation_plan(storage, change->relation, source, change->row_tier, &change->plan);
    if (result != QUERN_OK) return result;
    const quern__move_plan *plan = change->plan;
    if (is_short) fetch_row(storage, change);
    if (notes_moves) result = note_moved(storage, change->slot, plan->target);
    for (; !notes_moves && ++change < end && shares_plan(storage, change); count++) {
        if (end - change > RELATE_RECORDS_AHEAD) fetch_record(storage, change[RELATE_RECORDS_AHEAD].slot);
        change->plan = plan;
        if (is_short) fetch_row(storage, change);
    }
    *out_count = count;
    if (result == QUERN_OK) result = quern__leaving_reserve(storage, plan->source, plan->target, count);
    return result == QUERN_OK ? quern__rows_reserve(storage, plan->target, count) : result;
}

/* Calls on_remove for the values of edges, and for what they require, that entities in the log lose. Each entity still has
 * its first row; with several moves it ends where `moved` says. */
static void call_hooks(quern__storage *storage, bool notes_moves)
{
    const quern__link_log *log = &storage->relations->log;
    for (uint32_t i = 0; i < log->changes.count; i++) {
        const quern__link_change *change = &log->changes.items[i];
        const quern__record *record = quern__entities_record(&storage->entities, change->slot);
        const quern__archetype *source = quern__storage_archetype_of(storage, record);
        if (change->row_tier == QUERN__ROW_STAYS || change->plan->source != source) continue;
        const quern__archetype *target =
            notes_moves ? quern__map_find_pointer(&storage->relations->moved, (uint64_t)change->slot + 1)
                        : change->plan->target;
        quern__hooks_before_leaving(storage, source, target, record->location, 1);
    }
}

/* Finds plans and reserves rows for all changes that move rows. On failure nothing is reserved; otherwise rows must move
 * next. */
static quern_result reserve_rows(quern__storage *storage)
{
    const quern__link_log *log = &storage->relations->log;
    /* With links of several relations, the row of an entity may move more than once. The entries of one relation are
     * consecutive. */
    const bool notes_moves =
        log->changes.items[0].relation != log->changes.items[log->changes.count - 1].relation;
    quern_result result = QUERN_OK;
    uint32_t first = 0;
    for (uint32_t count = 1; first < log->changes.count; first += count, count = 1) {
        if (log->changes.items[first].row_tier == QUERN__ROW_STAYS) continue;
        result = reserve_same_plan(storage, first, notes_moves, &count);
        if (result != QUERN_OK) break;
    }
    if (result == QUERN_OK && quern__hooks_are_used(storage)) call_hooks(storage, notes_moves);
    if (notes_moves) quern__map_clear(&storage->relations->moved);
    while (result != QUERN_OK && first-- > 0)
        if (log->changes.items[first].row_tier != QUERN__ROW_STAYS)
            quern__rows_unreserve(storage, log->changes.items[first].plan->target);
    return result;
}

/* Writes the target into the row of the source, whose record is given. If the row had another target before, the write
 * is reported to listeners. */
static inline void write_target(const quern__storage *storage, const quern__relation *relation,
                                const quern__record *record, quern_entity target, bool had_target)
{
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const bool is_reported = had_target && QUERN__UNLIKELY(archetype->tracks_changes);
    if (is_reported) quern__rows_before_write(archetype, record->location, 1, relation->component_index);
    memcpy(quern__storage_value(archetype, record->location, relation->component_index), &target,
           sizeof target);
    if (is_reported) quern__rows_written(archetype, record->location, 1, relation->component_index);
}

/* Reserves and moves the rows of all entities in the log, which keeps its entries. On failure no row has moved. */
static quern_result move_logged_rows(quern__storage *storage)
{
    const quern_result result = reserve_rows(storage);
    if (result == QUERN_OK) {
        const uint32_t count = storage->relations->log.changes.count;
        const bool is_long = count > SHORT_LIST;
        const quern__link_change *change = storage->relations->log.changes.items;
        for (uint32_t i = 0; i < count; i++, change++) {
            if (is_long && count - i > RELATE_RECORDS_AHEAD) {
                fetch_record(storage, change[RELATE_RECORDS_AHEAD].slot);
                if (change[RELATE_ROWS_AHEAD].row_tier != QUERN__ROW_STAYS)
                    fetch_row(storage, change + RELATE_ROWS_AHEAD);
            }
            if (change->row_tier != QUERN__ROW_STAYS)
                quern__row_move_reserved(storage, quern__entity_of_slot(storage, change->slot),
                                         quern__entities_record(&storage->entities, change->slot),
                                         change->plan);
        }
    }
    return result;
}

quern_result quern__relate_rows(quern__storage *storage, quern_result result)
{
    if (result == QUERN_OK) result = move_logged_rows(storage);
    if (result != QUERN_OK)
        quern__link_log_revert(storage);
    else
        quern__pending_apply(storage);
    quern__link_log_clear(&storage->relations->log);
    return result;
}

/* ----------------------------------------------------------------------------------------- changing */

static quern_result fail_cycle(const quern__storage *storage, const quern__relation *relation,
                               quern_entity source, quern_entity target)
{
    return quern__fail(QUERN_ERROR_CYCLE,
                       "entity %u:%u cannot have target %u:%u in relation '%s': the target is below it, so "
                       "this would be a cycle; relate the target to another entity first, or unrelate it",
                       quern_entity_index(source), quern_entity_generation(source),
                       quern_entity_index(target), quern_entity_generation(target),
                       quern__relation_name(storage, relation));
}

/* Checks quern__naming_allows_target(). Errors: SIBLING_NAME_TAKEN. */
static inline quern_result naming_check(const quern__storage *storage, const quern__relation *relation,
                                        quern_entity source, uint32_t target)
{
    if (quern__naming_allows_target(storage, relation, quern_entity_index(source), target)) return QUERN_OK;
    return quern__naming_fail_taken(storage, source, target);
}

/* Checks that the source may get the target: that the link makes no name collision and, in a relation with levels,
 * no cycle. Precondition: both slots have pages of links.
 * Errors: CYCLE, SIBLING_NAME_TAKEN. */
static inline quern_result check_pair(const quern__storage *storage, const quern__relation *relation,
                                      quern_entity source, quern_entity target)
{
    const uint32_t t = quern_entity_index(target);
    if (quern__would_be_cycle(relation, quern_entity_index(source), t))
        return fail_cycle(storage, relation, source, target);
    return naming_check(storage, relation, source, t);
}

/* Prefetches what moving a source to another level will touch, as soon as its addresses are known: adjacent links, its
 * row, and the record of the entity that fills the gap. They are rarely in a cache, and the code that needs them would
 * wait for one after the other. */
static inline void fetch_move(const quern__storage *storage, const quern__links *links,
                              const quern__link_node *source, const quern__link_node *target,
                              const quern__record *record)
{
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const quern__row row = quern__archetype_row(archetype, record->location);
    const quern__chunk_slot *slot = archetype->last_slot;
    const quern__row last = quern__slot_row(slot, slot->row_count - 1);
    if (source->target != QUERN__SLOT_NONE) QUERN__PREFETCH_WRITE(quern__links_at(links, source->target));
    if (source->next != QUERN__SLOT_NONE) QUERN__PREFETCH_WRITE(quern__links_at(links, source->next));
    if (source->previous != QUERN__SLOT_NONE)
        QUERN__PREFETCH_WRITE(quern__links_at(links, source->previous));
    if (target != NULL && target->last != QUERN__SLOT_NONE)
        QUERN__PREFETCH_WRITE(quern__links_at(links, target->last));
    QUERN__PREFETCH_WRITE(quern__row_handle(archetype, row));
    for (uint32_t i = 0; i < archetype->column_count; i++)
        QUERN__PREFETCH_WRITE(quern__column_at(&archetype->columns[i], record->location));
    fetch_record(storage, quern_entity_index(*quern__row_handle(archetype, last)));
}

/* Performs change_target for a source without sources of its own. Only its own row may move, so that row is reserved
 * before any change, and no log is needed. node: the links of the source. */
static inline quern_result change_leaf_target(quern__storage *storage, quern__relation *relation,
                                              quern__link_node *node, quern_entity source, uint32_t target,
                                              uint32_t level)
{
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(source));
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const uint32_t tier = target != QUERN__SLOT_NONE ? level + 1 : 0;
    const quern__move_plan *plan;
    quern_result result = quern__relation_plan(storage, relation, archetype, tier, &plan);
    if (result == QUERN_OK) result = quern__row_leaving_reserve(storage, archetype, plan->target);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, plan->target, 1);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    quern__hooks_before_leaving(storage, archetype, plan->target, record->location, 1);
    quern__relink(storage, relation, node, quern_entity_index(source), target);
    node->level = level;
    quern__row_move_reserved(storage, source, record, plan);
    return QUERN_OK;
}

/* Sets or removes (QUERN__SLOT_NONE) the target of the source, and moves all rows with a changed tier. Precondition:
 * the tier of the source changes. */
static quern_result change_target(quern__storage *storage, quern__relation *relation, quern_entity source,
                                  uint32_t target, uint32_t level)
{
    const uint32_t slot = quern_entity_index(source);
    quern__link_node *node = quern__links_at(&relation->links, slot);
    if (QUERN__LIKELY(node->count == 0))
        return change_leaf_target(storage, relation, node, source, target, level);
    quern__leaving_begin(storage);
    return quern__relate_rows(storage, quern__link_log_set_target(storage, relation, slot, target, NULL));
}

/* --------------------------------------------------------------------------------------------- edges */

/* The row of a source moves only with its first and its last edge. */

static QUERN__SLOW_PATH quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the edges of entities");
}

/* Moves the row of a source that gets its first edge or loses its last one. */
static quern_result move_source(quern__storage *storage, quern__relation *relation, uint32_t source,
                                bool has_target)
{
    quern__record *record = quern__entities_record(&storage->entities, source);
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const quern__move_plan *plan;
    quern_result result = quern__relation_plan(storage, relation, archetype, has_target, &plan);
    if (result == QUERN_OK) result = quern__row_leaving_reserve(storage, archetype, plan->target);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, plan->target, 1);
    if (result != QUERN_OK) return result;
    quern__hooks_before_leaving(storage, archetype, plan->target, record->location, 1);
    quern__row_move_reserved(storage, quern__entity_of_slot(storage, source), record, plan);
    return QUERN_OK;
}

/* Performs relate_edge in a relation with values. value: NULL for the initial one. */
static quern_result relate_edge_with(quern__storage *storage, quern__relation *relation, uint32_t source,
                                     uint32_t target, const void *value)
{
    quern__edges *edges = &relation->edges;
    const quern_entity handle = quern__entity_of_slot(storage, target);
    if (quern__edges_has(edges, source, target)) return QUERN_OK;
    if (!quern__edges_reserve(edges, &storage->allocator, source, target)) return fail_memory();
    quern_result result = QUERN_OK;
    if (quern__edges_at(edges, source)->targets.count > 0) {
        result = quern__edge_element_add(storage, relation, source, handle, value);
    } else {
        const quern__archetype *before =
            quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, source));
        quern_list first = {.count = 0};
        result = quern__edge_list_put(relation, &first, handle, value);
        if (result == QUERN_OK) result = move_source(storage, relation, source, true);
        if (result == QUERN_OK) {
            construct_edge_values(storage, relation, before, source);
            quern__edge_value_replace(storage, relation, source, &first, true);
        }
        quern_list_free(&first);
    }
    if (result != QUERN_OK) return result;
    quern__edges_add(edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

/* Performs quern__relate in a relation with several targets per source. */
static quern_result relate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                uint32_t target)
{
    quern__edges *edges = &relation->edges;
    if (quern__edges_has(edges, source, target)) return QUERN_OK;
    if (!quern__edges_reserve(edges, &storage->allocator, source, target)) return fail_memory();
    if (quern__edges_at(edges, source)->targets.count == 0) {
        const quern_result result = move_source(storage, relation, source, true);
        if (result != QUERN_OK) return result;
    }
    quern__edges_add(edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

void quern__list_edge_entities(const quern__storage *storage, const quern__edge_list *list,
                               quern_entity *out_entities, uint32_t capacity)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < quern__edge_list_ranges(list) && written < capacity; i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        for (uint32_t k = 0; k < range.count && written < capacity; k++)
            out_entities[written++] = quern__entity_of_slot(storage, range.slots[k]);
    }
}

quern_result quern__unrelate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                  uint32_t target)
{
    quern_result result = QUERN_OK;
    if (quern__edges_at(&relation->edges, source)->targets.count == 1)
        result = move_source(storage, relation, source, false);
    else if (QUERN__UNLIKELY(quern__relation_has_values(relation)))
        result = quern__edge_element_remove(storage, relation, source, target);
    if (result != QUERN_OK) return result;
    quern__edges_remove(&relation->edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

quern_result quern__unrelate_all_edges(quern__storage *storage, quern__relation *relation, uint32_t source)
{
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, source);
    const quern_result result = move_source(storage, relation, source, false);
    if (result != QUERN_OK) return result;
    while (targets->count > 0)
        quern__edges_remove(&relation->edges, source, quern__edge_list_next(targets, QUERN__SLOT_NONE));
    relation->links.version++;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- one pair */

/* Performs quern__relate, apart from values of edges. */
static quern_result relate_plain(quern__storage *storage, quern__relation *relation, quern_entity source,
                                 quern_entity target)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    const quern__links *links = &relation->links;
    if (QUERN__UNLIKELY(!quern__links_has_page(links, s) || !quern__links_has_page(links, t))) {
        if (relation->is_many) return relate_edge(storage, relation, s, t);
        if (!quern__links_reserve(&relation->links, &storage->allocator, s) ||
            !quern__links_reserve(&relation->links, &storage->allocator, t))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
    }
    quern__link_node *link = quern__links_at(links, s);
    const quern__link_node *target_link = quern__links_at(links, t);
    const quern__record *record = quern__entities_record(&storage->entities, s);
    if (link->target == t) return QUERN_OK;
    const uint32_t level = quern__relation_source_level_of(relation, target_link);
    const bool had_target = link->target != QUERN__SLOT_NONE, moves = !had_target || link->level != level;
    if (moves) fetch_move(storage, links, link, target_link, record);
    quern_result result = check_pair(storage, relation, source, target);
    if (result != QUERN_OK) return result;
    if (moves) {
        result = change_target(storage, relation, source, t, level);
        if (result != QUERN_OK) return result;
    } else {
        /* no row moves, so nothing can fail and no log is needed */
        quern__relink(storage, relation, link, s, t);
        quern__storage_note_written(storage, relation->component_index);
    }
    write_target(storage, relation, record, target, had_target);
    return QUERN_OK;
}

/* Performs quern__relate in a relation with values. */
static QUERN__SLOW_PATH quern_result relate_valued(quern__storage *storage, quern__relation *relation,
                                                   quern_entity source, quern_entity target)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    if (relation->is_many) return relate_edge_with(storage, relation, s, t, NULL);
    const uint32_t old_target = quern__links_target(&relation->links, s);
    const quern__archetype *before =
        quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, s));
    const quern_result result = relate_plain(storage, relation, source, target);
    if (result != QUERN_OK || old_target == t) return result;
    if (old_target == QUERN__SLOT_NONE)
        construct_edge_values(storage, relation, before, s);
    else
        quern__edge_value_replace(storage, relation, s, NULL, false);
    return QUERN_OK;
}

quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target)
{
    if (QUERN__UNLIKELY(quern__relation_has_values(relation)))
        return relate_valued(storage, relation, source, target);
    return relate_plain(storage, relation, source, target);
}

/* The value may be in the storage, where it would not survive the changes: so it is copied first. */
static quern_result relate_with_copy(quern__storage *storage, quern__relation *relation,
                                     quern_entity source, quern_entity target, const void *value)
{
    const quern__type *type = quern__components_type(&storage->components, relation->value_index);
    void *copy = quern__allocate(&storage->allocator, type->size_bytes, type->alignment_bytes);
    if (copy == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the value of an edge");
    quern__type_copy(type, copy, value, 1);
    const quern_result result = quern__relate(storage, relation, source, target);
    if (result == QUERN_OK)
        quern__edge_value_replace(storage, relation, quern_entity_index(source), copy, false);
    quern__type_destroy(type, copy, 1);
    quern__release(&storage->allocator, copy, type->size_bytes, type->alignment_bytes);
    return result;
}

quern_result quern__relate_with(quern__storage *storage, quern__relation *relation, quern_entity source,
                                quern_entity target, const void *value)
{
    const uint32_t s = quern_entity_index(source), t = quern_entity_index(target);
    char element[QUERN__EDGE_ELEMENT_BYTES];
    if (relation->is_many) {
        memcpy(element, value, relation->element.size_bytes);
        value = element;
    }
    if (quern__relation_has_target(relation, s, t))
        return quern__edge_value_set(storage, relation, source, target, value);
    if (!relation->is_many) return relate_with_copy(storage, relation, source, target, value);
    return relate_edge_with(storage, relation, s, t, value);
}

quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source)
{
    const quern_result result = naming_check(storage, relation, source, QUERN__SLOT_NONE);
    if (result != QUERN_OK) return result;
    return change_target(storage, relation, source, QUERN__SLOT_NONE, 0);
}

/* -------------------------------------------------------------------------------------------- many */

/* Links the pairs in order until one fails. *out_failed: index of the failed pair. */
static quern_result relate_all_links(quern__storage *storage, quern__relation *relation,
                                     const quern_entity *sources, const quern_entity *targets,
                                     uint32_t count, uint32_t *out_failed)
{
    quern_result result = QUERN_OK;
    uint32_t i = 0;
    for (; i < count; i++) {
        if (count - i > QUERN__LINKS_AHEAD) {
            quern__links_fetch_pair(&relation->links, quern_entity_index(sources[i + QUERN__LINKS_AHEAD]),
                                    quern_entity_index(targets[i + QUERN__LINKS_AHEAD]));
            quern__links_fetch_around(&relation->links, relation->is_ordered,
                                      quern_entity_index(sources[i + QUERN__LINKS_AROUND_AHEAD]),
                                      quern_entity_index(targets[i + QUERN__LINKS_AROUND_AHEAD]));
        }
        const uint32_t source = quern_entity_index(sources[i]), target = quern_entity_index(targets[i]);
        if (quern__links_at(&relation->links, source)->target == target) continue;
        result = check_pair(storage, relation, sources[i], targets[i]);
        if (result == QUERN_OK)
            result = quern__link_log_set_target(storage, relation, source, target, NULL);
        if (result != QUERN_OK) break;
    }
    *out_failed = i;
    return result;
}

enum { EDGE_NODES_AHEAD = 16, EDGE_SETS_AHEAD = 8 }; /* prefetch distances, in pairs of a list */

/* Adds one of many edges unless it exists. Only the first edge of a source is logged, because it moves a row. */
static quern_result add_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                             uint32_t target, uint32_t pair)
{
    quern__edges *edges = &relation->edges;
    if (quern__edges_has(edges, source, target)) return QUERN_OK;
    if (quern__edges_targets(edges, source)->count == 0) {
        const quern_result result = quern__link_log_add_edge(storage, relation, source, target);
        if (result != QUERN_OK) return result;
    } else {
        if (!quern__edges_reserve(edges, &storage->allocator, source, target)) return fail_memory();
        if (QUERN__UNLIKELY(quern__relation_has_values(relation))) {
            const quern_result result = quern__pending_put(storage, relation, source, target, NULL);
            if (result != QUERN_OK) return result;
        }
        quern__edges_add(edges, source, target);
    }
    quern__bitset_add(storage->relations->added_pairs.items, pair);
    return QUERN_OK;
}

/* Adds the edges in order until one fails, and notes the added ones in added_pairs, by pair. *out_count: number of
 * pairs before the failed one. */
static quern_result add_edges(quern__storage *storage, quern__relation *relation,
                              const quern_entity *sources, const quern_entity *targets, uint32_t count,
                              uint32_t *out_count)
{
    const quern__edges *edges = &relation->edges;
    quern_result result = QUERN_OK;
    uint32_t i = 0;
    for (; i < count && result == QUERN_OK; i++) {
        if (count - i > EDGE_NODES_AHEAD) {
            uint32_t source = quern_entity_index(sources[i + EDGE_NODES_AHEAD]),
                     target = quern_entity_index(targets[i + EDGE_NODES_AHEAD]);
            if (quern__edges_has_page(edges, source)) QUERN__PREFETCH_WRITE(quern__edges_at(edges, source));
            if (quern__edges_has_page(edges, target)) QUERN__PREFETCH_WRITE(quern__edges_at(edges, target));
            source = quern_entity_index(sources[i + EDGE_SETS_AHEAD]);
            target = quern_entity_index(targets[i + EDGE_SETS_AHEAD]);
            QUERN__PREFETCH_WRITE(quern__edges_targets(edges, source)->slots);
            QUERN__PREFETCH_WRITE(quern__edges_sources(edges, target)->slots);
        }
        result =
            add_edge(storage, relation, quern_entity_index(sources[i]), quern_entity_index(targets[i]), i);
    }
    *out_count = result == QUERN_OK ? count : i - 1;
    return result;
}

static quern_result relate_many_edges(quern__storage *storage, quern__relation *relation,
                                      const quern_entity *sources, const quern_entity *targets,
                                      uint32_t count, uint32_t *out_failed)
{
    quern__relations *relations = storage->relations;
    const uint32_t word_count = QUERN__BITSET_WORDS(count);
    *out_failed = count;
    if (!quern__array_reserve(&storage->allocator, &relations->added_pairs, word_count))
        return fail_memory();
    while (relations->added_pairs.count < word_count)
        relations->added_pairs.items[relations->added_pairs.count++] = 0;
    quern__leaving_begin(storage);
    quern_result result = add_edges(storage, relation, sources, targets, count, out_failed);
    if (result == QUERN_OK && relations->log.changes.count > 0) result = move_logged_rows(storage);
    if (result != QUERN_OK) {
        for (uint32_t i = count; i-- > 0;)
            if (quern__bitset_has(storage->relations->added_pairs.items, i))
                quern__edges_remove(&relation->edges, quern_entity_index(sources[i]),
                                    quern_entity_index(targets[i]));
        quern__pending_cancel(storage);
    } else {
        for (uint32_t i = 0; i < relations->log.changes.count && quern__relation_has_values(relation); i++)
            construct_edge_values(storage, relation, relations->log.changes.items[i].plan->source,
                                  relations->log.changes.items[i].slot);
        quern__pending_apply(storage);
    }
    relation->links.version++;
    for (uint32_t i = 0; i < word_count; i++)
        relations->added_pairs.items[i] = 0;
    quern__link_log_clear(&relations->log);
    return result;
}

/* Gives the edges of sources that had another target before the initial value. Rows that had none have it already. */
static void reset_values(quern__storage *storage, const quern__relation *relation)
{
    const quern__link_log *log = &storage->relations->log;
    for (uint32_t i = 0; i < log->changes.count; i++)
        if (log->changes.items[i].kind == QUERN__CHANGE_TARGET &&
            log->changes.items[i].old_target != QUERN__SLOT_NONE)
            quern__edge_value_replace(storage, relation, log->changes.items[i].slot, NULL, false);
}

quern_result quern__relate_many(quern__storage *storage, quern__relation *relation,
                                const quern_entity *sources, const quern_entity *targets, uint32_t count,
                                uint32_t *out_failed)
{
    if (relation->is_many) return relate_many_edges(storage, relation, sources, targets, count, out_failed);
    *out_failed = count;
    bool has_room = quern__array_reserve(&storage->allocator, &storage->relations->log.changes, count);
    for (uint32_t i = 0; i < count && has_room; i++)
        has_room =
            quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(sources[i])) &&
            quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(targets[i]));
    quern_result result =
        has_room ? QUERN_OK : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
    if (result != QUERN_OK) return result;
    result = relate_all_links(storage, relation, sources, targets, count, out_failed);
    if (result == QUERN_OK) result = quern__tier_moves_prepare(storage, relation);
    if (result == QUERN_OK) {
        quern__tier_moves_apply(storage, relation);
        if (storage->relations->log.changes.count > 0)
            quern__storage_note_written(storage, relation->component_index);
        if (QUERN__UNLIKELY(quern__relation_has_values(relation))) reset_values(storage, relation);
    } else {
        quern__link_log_revert(storage);
    }
    quern__link_log_clear(&storage->relations->log);
    return result;
}
