/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/link_log.h"

void quern__link_log_release(quern__link_log *log, const quern_allocator *allocator)
{
    quern__array_release(allocator, &log->changes);
    quern__array_release(allocator, &log->saved_names);
    *log = (quern__link_log){0};
}

/* --------------------------------------------------------------------------------------------- links */

QUERN__SLOW_PATH quern_result quern__link_log_fail(const quern__storage *storage)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to log %u changes of links and names",
                       storage->relations->log.changes.count + 1);
}

/* Sets the levels of a slot's sources to that slot's level plus one, and logs each change. Sources in the cascade
 * `ending` keep their levels. Returns false if out of memory. */
static inline bool set_source_levels(quern__storage *storage, quern__relation *relation, uint32_t slot,
                                     const quern__cascade *ending)
{
    quern__link_log *log = &storage->relations->log;
    const quern__links *links = &relation->links;
    const quern__link_node *above = quern__links_at(links, slot);
    if (above->count == 0) return true;
    const uint32_t level =
        above->level < QUERN_MAX_RELATION_LEVEL ? above->level + 1 : QUERN_MAX_RELATION_LEVEL;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + above->count))
        return false;
    quern__link_change *entry = log->changes.items + log->changes.count;
    for (uint32_t source = above->first; source != QUERN__SLOT_NONE;) {
        quern__link_node *node = quern__links_at(links, source);
        QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, source));
        quern__links_fetch_or(links, node->first, source); /* the breadth-first walk reads them soon */
        if (node->level != level && (ending == NULL || !quern__cascade_has(ending, source))) {
            quern__link_change_fill(entry, relation, source, node, QUERN__CHANGE_LEVEL);
            entry++->row_tier = level + 1;
            node->level = level;
            quern__links_touch(links, source);
        }
        source = node->next;
    }
    log->changes.count = (uint32_t)(entry - log->changes.items);
    return true;
}

quern_result quern__link_log_set_levels_below(quern__storage *storage, quern__relation *relation,
                                              uint32_t first, const quern__cascade *ending)
{
    const quern__link_log *log = &storage->relations->log;
    for (uint32_t i = first; i < log->changes.count; i++)
        if (!set_source_levels(storage, relation, log->changes.items[i].slot, ending))
            return quern__link_log_fail(storage);
    return QUERN_OK;
}

quern_result quern__link_log_unlink(quern__storage *storage, quern__relation *relation, uint32_t source)
{
    const quern__link_node *node = quern__links_at(&relation->links, source);
    if (quern__link_log_add(storage, relation, source, node) == NULL) return quern__link_log_fail(storage);
    quern__links_unlink(&relation->links, source);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- edges */

/* Logs a change of an edge. had_target and has_target: whether the source has targets before and after it. */
static bool log_edge(quern__storage *storage, quern__relation *relation, uint32_t source, uint32_t target,
                     quern__link_change_kind kind, bool had_target, bool has_target)
{
    quern__link_log *log = &storage->relations->log;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + 1)) return false;
    log->changes.items[log->changes.count++] =
        (quern__link_change){.relation = relation,
                             .slot = source,
                             .old_target = target,
                             .old_level = had_target,
                             .row_tier = had_target != has_target ? (uint32_t)has_target : QUERN__ROW_STAYS,
                             .kind = kind};
    return true;
}

quern_result quern__link_log_add_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                      uint32_t target)
{
    if (!quern__edges_reserve(&relation->edges, &storage->allocator, source, target) ||
        !log_edge(storage, relation, source, target, QUERN__CHANGE_EDGE_ADDED,
                  quern__edges_at(&relation->edges, source)->targets.count > 0, true))
        return quern__link_log_fail(storage);
    quern__edges_add(&relation->edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

quern_result quern__link_log_remove_edge(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target)
{
    if (!log_edge(storage, relation, source, target, QUERN__CHANGE_EDGE_REMOVED, true,
                  quern__edges_at(&relation->edges, source)->targets.count > 1))
        return quern__link_log_fail(storage);
    quern__edges_remove(&relation->edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- names */

/* Logs the current name of a slot, or that it has none. Returns false if out of memory. */
static bool log_name(quern__storage *storage, uint32_t slot)
{
    const quern_allocator *allocator = &storage->allocator;
    quern__link_log *log = &storage->relations->log;
    const quern__name *name = quern__names_of(storage->names, slot);
    if (!quern__array_reserve(allocator, &log->changes, log->changes.count + 1) ||
        !quern__array_reserve(allocator, &log->saved_names, log->saved_names.count + 1))
        return false;
    log->changes.items[log->changes.count++] = (quern__link_change){
        .kind = QUERN__CHANGE_NAME,
        .slot = slot,
        .old_target = name != NULL ? log->saved_names.count : QUERN__SLOT_NONE,
    };
    if (name != NULL) log->saved_names.items[log->saved_names.count++] = *name;
    return true;
}

quern_result quern__link_log_drop_name(quern__storage *storage, uint32_t slot)
{
    if (quern__names_number(storage->names, slot) == QUERN__NAME_NONE) return QUERN_OK;
    if (!log_name(storage, slot)) return quern__link_log_fail(storage);
    quern__names_drop(storage->names, slot);
    return QUERN_OK;
}

quern_result quern__link_log_put_name(quern__storage *storage, uint32_t slot, uint32_t parent,
                                      const char *text, uint32_t text_bytes)
{
    if (!quern__names_reserve(storage->names, &storage->allocator, slot) || !log_name(storage, slot))
        return quern__link_log_fail(storage);
    quern__names_drop(storage->names, slot);
    quern__names_put(storage->names, slot, parent, text, text_bytes);
    storage->has_attachments = true;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- undo */

/* Restores the name of a slot. The table has room for the name, because the name was in it before. */
static void revert_name(const quern__storage *storage, const quern__link_change *change)
{
    quern__names *names = storage->names;
    quern__names_drop(names, change->slot);
    if (change->old_target == QUERN__SLOT_NONE) return;
    const quern__name *saved = &storage->relations->log.saved_names.items[change->old_target];
    quern__names_put(names, change->slot, saved->parent, saved->text, (uint32_t)strlen(saved->text));
}

static void revert_link(quern__storage *storage, const quern__link_change *change)
{
    quern__links *links = &change->relation->links;
    const uint32_t slot = change->slot;
    quern__links_set_level(links, slot, change->old_level);
    if (change->kind == QUERN__CHANGE_LEVEL) return;
    if (quern__links_at(links, slot)->target != QUERN__SLOT_NONE) quern__links_unlink(links, slot);
    if (change->old_target != QUERN__SLOT_NONE)
        quern__links_link(links, slot, change->old_target, change->old_next);
    quern__naming_update_parent(storage, change->relation, slot, change->old_target);
}

void quern__link_log_revert(quern__storage *storage)
{
    const quern__link_log *log = &storage->relations->log;
    for (uint32_t i = log->changes.count; i-- > 0;) {
        const quern__link_change *change = &log->changes.items[i];
        if (change->kind == QUERN__CHANGE_NAME)
            revert_name(storage, change);
        else if (change->kind == QUERN__CHANGE_EDGE_ADDED)
            quern__edges_remove(&change->relation->edges, change->slot, change->old_target);
        else if (change->kind == QUERN__CHANGE_EDGE_REMOVED)
            quern__edges_add(&change->relation->edges, change->slot, change->old_target);
        else
            revert_link(storage, change);
    }
}
