/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Changes of edges by immediate calls. The row of a source moves only with its first and its last edge. */

#include "core/base/bitset.h"
#include "core/relations/link_log.h"
#include "core/storage/change.h"

enum { EDGE_NODES_AHEAD = 16, EDGE_SETS_AHEAD = 8 }; /* prefetch distances, in pairs of a list */

static QUERN__SLOW_PATH quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the edges of entities");
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
    if (result == QUERN_OK)
        quern__row_move_reserved(storage, quern__entity_of_slot(storage, source), record, plan);
    return result;
}

quern_result quern__relate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
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

quern_result quern__unrelate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                  uint32_t target)
{
    if (quern__edges_at(&relation->edges, source)->targets.count == 1) {
        const quern_result result = move_source(storage, relation, source, false);
        if (result != QUERN_OK) return result;
    }
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

/* -------------------------------------------------------------------------------------------- many */

static inline void fetch_nodes(const quern__edges *edges, uint32_t source, uint32_t target)
{
    if (quern__edges_has_page(edges, source)) QUERN__PREFETCH_WRITE(quern__edges_at(edges, source));
    if (quern__edges_has_page(edges, target)) QUERN__PREFETCH_WRITE(quern__edges_at(edges, target));
}

static inline void fetch_sets(const quern__edges *edges, uint32_t source, uint32_t target)
{
    QUERN__PREFETCH_WRITE(quern__edges_targets(edges, source)->slots);
    QUERN__PREFETCH_WRITE(quern__edges_sources(edges, target)->slots);
}

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
    quern_result result = QUERN_OK;
    uint32_t i = 0;
    for (; i < count && result == QUERN_OK; i++) {
        if (count - i > EDGE_NODES_AHEAD) {
            fetch_nodes(&relation->edges, quern_entity_index(sources[i + EDGE_NODES_AHEAD]),
                        quern_entity_index(targets[i + EDGE_NODES_AHEAD]));
            fetch_sets(&relation->edges, quern_entity_index(sources[i + EDGE_SETS_AHEAD]),
                       quern_entity_index(targets[i + EDGE_SETS_AHEAD]));
        }
        result =
            add_edge(storage, relation, quern_entity_index(sources[i]), quern_entity_index(targets[i]), i);
    }
    *out_count = result == QUERN_OK ? count : i - 1;
    return result;
}

/* Removes the edges that added_pairs lists by pair, the last one first. */
static void remove_added(quern__storage *storage, quern__relation *relation, const quern_entity *sources,
                         const quern_entity *targets, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;)
        if (quern__bitset_has(storage->relations->added_pairs.items, i))
            quern__edges_remove(&relation->edges, quern_entity_index(sources[i]),
                                quern_entity_index(targets[i]));
}

quern_result quern__relate_many_edges(quern__storage *storage, quern__relation *relation,
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
    if (result == QUERN_OK && relations->log.changes.count > 0) result = quern__move_logged_rows(storage);
    if (result != QUERN_OK) remove_added(storage, relation, sources, targets, count);
    relation->links.version++;
    for (uint32_t i = 0; i < word_count; i++)
        relations->added_pairs.items[i] = 0;
    quern__link_log_clear(&relations->log);
    return result;
}
