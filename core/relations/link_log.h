/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_LINK_LOG_H
#define QUERN_CORE_RELATIONS_LINK_LOG_H

/* Transactions over the links and the names of a storage, with one undo log: storage->relations->log, empty between
 * transactions. The calls below change links and names at once and log their previous state. If one of them or a
 * later step of the transaction fails, quern__link_log_revert reverts all changes. Every transaction ends with
 * quern__link_log_clear, also after a failure.
 *
 * Rows do not change here. An immediate call then moves the rows of all entities in the log (relate.h). A sync
 * point keeps its transaction open until its commands are applied, and converts the log to commands on rows
 * (core/playback/relating.h).
 *
 * If the target of a link changes, an entry holds the link's complete previous state. Each entity
 * below it that changes its level as a result has its own entry; these entries directly follow in breadth-first order.
 * A slot may have several entries. Its first entry for a relation holds the state that the row still has. */

#include "core/relations/naming.h"

void quern__link_log_release(quern__link_log *log, const quern_allocator *allocator);

/* Fails with OUT_OF_MEMORY, and sets the message. */
quern_result quern__link_log_fail(const quern__storage *storage);

/* Fills an entry from the current links of a slot. Assigns single members, because copying a whole structure would
 * stall until earlier stores to its members have reached the cache. */
static inline void quern__link_change_fill(quern__link_change *entry, quern__relation *relation,
                                           uint32_t slot, const quern__link_node *node,
                                           quern__link_change_kind kind)
{
    entry->relation = relation;
    entry->slot = slot;
    entry->old_target = node->target;
    entry->old_level = node->level;
    entry->kind = kind;
}

/* Logs a link before a change of its target. Returns NULL if out of memory. */
static inline quern__link_change *quern__link_log_add(quern__storage *storage, quern__relation *relation,
                                                      uint32_t slot, const quern__link_node *node)
{
    quern__link_log *log = &storage->relations->log;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + 1)) return NULL;
    quern__link_change *entry = &log->changes.items[log->changes.count++];
    quern__link_change_fill(entry, relation, slot, node, QUERN__CHANGE_TARGET);
    entry->old_next = node->next;
    return entry;
}

/* Sets the levels of all entities below those of the entries from `first` on. Errors: OUT_OF_MEMORY. */
quern_result quern__link_log_set_levels_below(quern__storage *storage, quern__relation *relation,
                                              uint32_t first, const quern__cascade *ending);

/* Replaces the target of the source (QUERN__SLOT_NONE: no target), and sets the levels of all entities below it. In the
 * hierarchy, also moves the source's name to the new parent. `ending` is a cascade or NULL: entities in the cascade, and
 * all below them, keep their levels. Preconditions: source and target have pages of links; quern__naming_allows_target();
 * the change makes no cycle. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
QUERN__ALWAYS_INLINE quern_result quern__link_log_set_target(quern__storage *storage,
                                                             quern__relation *relation, uint32_t source,
                                                             uint32_t target, const quern__cascade *ending)
{
    const uint32_t level = target != QUERN__SLOT_NONE ? quern__relation_source_level(relation, target) : 0;
    quern__link_node *node = quern__links_at(&relation->links, source);
    const uint32_t old_tier = quern__link_tier(node), old_level = node->level;
    const uint32_t first = storage->relations->log.changes.count;
    quern__link_change *entry = quern__link_log_add(storage, relation, source, node);
    if (QUERN__UNLIKELY(entry == NULL)) return quern__link_log_fail(storage);
    quern__relink(storage, relation, source, target);
    node->level = level;
    const uint32_t tier = quern__link_tier(node);
    entry->row_tier = tier != old_tier ? tier : QUERN__ROW_STAYS;
    if (level == old_level || node->count == 0) return QUERN_OK;
    return quern__link_log_set_levels_below(storage, relation, first, ending);
}

/* Removes the target of a source that is being destroyed. Its name and all levels are kept. Errors: OUT_OF_MEMORY; the
 * caller then reverts the transaction. */
quern_result quern__link_log_unlink(quern__storage *storage, quern__relation *relation, uint32_t source);

/* Adds or removes an edge of a relation with several targets per source. Preconditions: the edge does not exist, or
 * exists. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_add_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                      uint32_t target);
quern_result quern__link_log_remove_edge(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target);

/* Sets the name of the slot and drops its old name. Preconditions: `text` does not point into the old name; no other
 * child of the parent has the name. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_put_name(quern__storage *storage, uint32_t slot, uint32_t parent,
                                      const char *text, uint32_t text_bytes);

/* Drops the name of the slot, if it has one. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_drop_name(quern__storage *storage, uint32_t slot);

/* Reverts all changes of the transaction, the last one first. The entries remain in the log. */
void quern__link_log_revert(quern__storage *storage);

/* Ends a transaction: empties the log. Its changes can no longer be reverted. */
static inline void quern__link_log_clear(quern__link_log *log)
{
    log->changes.count = 0;
    log->saved_names.count = 0;
}

#endif
