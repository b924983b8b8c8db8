/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATE_H
#define QUERN_CORE_RELATIONS_RELATE_H

/* Relating entities, in relations with one target and with several targets per source (edges). Links, the component's
 * value and the level tags change together, for the source and for all entities below it that change their level. Each
 * call is all or nothing. Links change first, with an undo log
 * (link_log.h). Then all rows to move are reserved; if this fails, the links are reverted. Then the rows move. */

#include "core/relations/relation_internal.h"
#include "core/storage/storage.h"

/* Returns whether the source would be above itself with this target. A source without sources of its own cannot be.
 * Precondition: the source has a page of links. */
static inline bool quern__would_be_cycle(const quern__relation *relation, uint32_t source, uint32_t target)
{
    const quern__links *links = &relation->links;
    return relation->has_levels && quern__links_at(links, source)->count > 0 &&
           quern__links_is_at_or_above(links, source, target);
}

/* Sets the target of the source; with several targets per source, adds the edge unless it exists. Precondition: both
 * entities are alive and distinct. Errors: CYCLE, SIBLING_NAME_TAKEN, OUT_OF_MEMORY, and those of
 * quern__storage_ensure_archetype. */
quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target);

/* Sets the target of the i-th source to the i-th target, in order. Precondition: all entities are alive, and none is
 * its own target. The result equals `count` calls of quern__relate in order, except for the order of rows: all links
 * change first, and then each row moves at most once, as tier_moves.h says. All or nothing. Errors: those of
 * quern__relate; *out_failed is the index of the failed pair, or `count` if the error concerns no single pair. */
quern_result quern__relate_many(quern__storage *storage, quern__relation *relation,
                                const quern_entity *sources, const quern_entity *targets, uint32_t count,
                                uint32_t *out_failed);

/* Removes the target of the source. Precondition: the source is alive and has a target. Errors: those of
 * quern__relate, except CYCLE. */
quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source);

/* quern__relate and quern__relate_many for a relation with several targets per source. */
quern_result quern__relate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                uint32_t target);
quern_result quern__relate_many_edges(quern__storage *storage, quern__relation *relation,
                                      const quern_entity *sources, const quern_entity *targets,
                                      uint32_t count, uint32_t *out_failed);

/* Removes an edge, or all edges of a source with at least one. Precondition: the edge exists. Errors: those of
 * quern__unrelate. */
quern_result quern__unrelate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                  uint32_t target);
quern_result quern__unrelate_all_edges(quern__storage *storage, quern__relation *relation, uint32_t source);

/* Reserves and moves the rows of all entities in the log, which keeps its entries. On failure no row has moved. */
quern_result quern__move_logged_rows(quern__storage *storage);

/* Ends a transaction of link_log.h and clears the log: moves the rows of all entities in the log to the archetypes
 * of their new targets and levels. The caller writes the values of new targets. Preconditions: no link has changed
 * twice, though an entity may have changed links in several relations; the caller has called quern__leaving_begin
 * before. `result` is the result of the transaction so far. If it is an error, or if reserving rows fails, reverts
 * all links and names and returns the error. Errors: OUT_OF_MEMORY, and those of quern__storage_ensure_archetype. */
quern_result quern__relate_rows(quern__storage *storage, quern_result result);

/* Stores up to `capacity` entities of a set of edges, in its order. */
void quern__list_edge_entities(const quern__storage *storage, const quern__edge_list *list,
                               quern_entity *out_entities, uint32_t capacity);

/* Returns the entity in a slot. Precondition: the entity is alive. */
static inline quern_entity quern__entity_of_slot(const quern__storage *storage, uint32_t slot)
{
    return (quern_entity){(uint64_t)quern__entities_record(&storage->entities, slot)->handle_high << 32 |
                          slot};
}

/* Returns the entity in a slot, or the null handle for QUERN__SLOT_NONE. */
static inline quern_entity quern__entity_of_link(const quern__storage *storage, uint32_t slot)
{
    return slot != QUERN__SLOT_NONE ? quern__entity_of_slot(storage, slot) : (quern_entity){0};
}

#endif
