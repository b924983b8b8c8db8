/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/cascade.h"

#include "core/relations/link_log.h"
#include "core/relations/relate.h"
#include "core/storage/storage.h"

void quern__cascade_release(quern__cascade *cascade, const quern_allocator *allocator)
{
    quern__array_release(allocator, &cascade->slots);
    quern__array_release(allocator, &cascade->detached);
    quern__array_release(allocator, &cascade->marks);
    *cascade = (quern__cascade){0};
}

/* ---------------------------------------------------------------------- collecting destroyed entities */

static quern_result fail_memory(const quern__cascade *cascade)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory to list the entities that are destroyed together, %u so far",
                       cascade->slots.count);
}

quern_result quern__cascade_begin(quern__cascade *cascade, const quern__storage *storage)
{
    const uint32_t words = storage->entities.slot_count / 64 + 1;
    if (!quern__array_reserve(&storage->allocator, &cascade->marks, words)) return fail_memory(cascade);
    if (cascade->marks.count < words)
        memset(cascade->marks.items + cascade->marks.count, 0,
               (words - cascade->marks.count) * sizeof *cascade->marks.items);
    if (cascade->marks.count < words) cascade->marks.count = words;
    return QUERN_OK;
}

/* Appends the slot unless the cascade has it. Returns false if out of memory. */
static inline bool append(quern__cascade *cascade, const quern_allocator *allocator, uint32_t slot)
{
    if (quern__cascade_has(cascade, slot)) return true;
    if (!quern__array_reserve(allocator, &cascade->slots, cascade->slots.count + 1)) return false;
    cascade->marks.items[slot / 64] |= 1ull << slot % 64;
    cascade->slots.items[cascade->slots.count++] = slot;
    return true;
}

quern_result quern__cascade_add(quern__cascade *cascade, const quern__storage *storage, uint32_t slot)
{
    if (!append(cascade, &storage->allocator, slot)) return fail_memory(cascade);
    cascade->requested_count = cascade->slots.count;
    return QUERN_OK;
}

void quern__cascade_end(quern__cascade *cascade)
{
    for (uint32_t i = 0; i < cascade->slots.count; i++)
        cascade->marks.items[cascade->slots.items[i] / 64] = 0;
    cascade->slots.count = 0;
    cascade->requested_count = 0;
    cascade->detached.count = 0;
}

static bool append_sources(quern__cascade *cascade, const quern_allocator *allocator,
                           const quern__relation *relation, uint32_t slot)
{
    for (uint32_t source = quern__links_first(&relation->links, slot); source != QUERN__SLOT_NONE;
         source = quern__links_at(&relation->links, source)->next)
        if (!append(cascade, allocator, source)) return false;
    return true;
}

/* Performs append_sources for a relation with several targets per source. */
static bool append_edge_sources(quern__cascade *cascade, const quern_allocator *allocator,
                                const quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (!append(cascade, allocator, range.slots[k])) return false;
    }
    return true;
}

static bool append_dependents(quern__cascade *cascade, const quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    for (uint32_t i = 0; i < cascade->slots.count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            const quern__relation *relation = relations->list.items[k];
            if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE &&
                !append_sources(cascade, &storage->allocator, relation, cascade->slots.items[i]))
                return false;
            if (relations->many_count > 0 && relation->policy == QUERN_TARGET_DESTROYS_SOURCE &&
                !append_edge_sources(cascade, &storage->allocator, relation, cascade->slots.items[i]))
                return false;
        }
    return true;
}

static quern_result fail_in_use(const quern__storage *storage, const quern__relation *relation,
                                uint32_t target, uint32_t source)
{
    const quern_entity used = quern__entity_of_slot(storage, target),
                       user = quern__entity_of_slot(storage, source);
    return quern__fail(QUERN_ERROR_TARGET_IN_USE,
                       "entity %u:%u cannot be destroyed while it is the target of %u:%u in relation '%s' "
                       "(QUERN_TARGET_REFUSES): unrelate or destroy that source first",
                       quern_entity_index(used), quern_entity_generation(used), quern_entity_index(user),
                       quern_entity_generation(user), quern__relation_name(storage, relation));
}

quern_result quern__cascade_list_detached(quern__cascade *cascade, const quern__storage *storage,
                                          quern__relation *relation, uint32_t source, uint32_t target)
{
    if (!quern__array_reserve(&storage->allocator, &cascade->detached, cascade->detached.count + 1))
        return fail_memory(cascade);
    cascade->detached.items[cascade->detached.count++] = (quern__detached_source){relation, source, target};
    return QUERN_OK;
}

/* Applies the relation's policy to the surviving sources of a destroyed target: lists them as detached, or fails with
 * TARGET_IN_USE. */
static quern_result apply_policy(quern__cascade *cascade, const quern__storage *storage,
                                 quern__relation *relation, uint32_t slot)
{
    for (uint32_t source = quern__links_first(&relation->links, slot); source != QUERN__SLOT_NONE;
         source = quern__links_at(&relation->links, source)->next) {
        if (quern__cascade_has(cascade, source)) continue;
        if (relation->policy == QUERN_TARGET_REFUSES) return fail_in_use(storage, relation, slot, source);
        quern_result result = quern__cascade_list_detached(cascade, storage, relation, source, slot);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Performs apply_policy for a relation with several targets per source. */
static quern_result apply_edge_policy(quern__cascade *cascade, const quern__storage *storage,
                                      quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++) {
            if (quern__cascade_has(cascade, range.slots[k])) continue;
            if (relation->policy == QUERN_TARGET_REFUSES)
                return fail_in_use(storage, relation, slot, range.slots[k]);
            quern_result result =
                quern__cascade_list_detached(cascade, storage, relation, range.slots[k], slot);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

quern_result quern__cascade_close(quern__cascade *cascade, const quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    if (!append_dependents(cascade, storage)) return fail_memory(cascade);
    quern_result result = QUERN_OK;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        quern__relation *relation = relations->list.items[k];
        if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE) continue;
        for (uint32_t i = 0; i < cascade->slots.count && result == QUERN_OK; i++)
            result = relation->is_many
                         ? apply_edge_policy(cascade, storage, relation, cascade->slots.items[i])
                         : apply_policy(cascade, storage, relation, cascade->slots.items[i]);
    }
    return result;
}

/* ------------------------------------------------------------------------------------- removing links */

/* Removes the edge to the lost target, or all edges of the source. */
static quern_result detach_edges(quern__storage *storage, const quern__detached_source *detached)
{
    const quern__edge_list *targets = quern__edges_targets(&detached->relation->edges, detached->source);
    if (detached->target != QUERN__SLOT_NONE)
        return quern__link_log_remove_edge(storage, detached->relation, detached->source, detached->target);
    quern_result result = QUERN_OK;
    while (targets->count > 0 && result == QUERN_OK)
        result = quern__link_log_remove_edge(storage, detached->relation, detached->source,
                                             quern__edge_list_next(targets, QUERN__SLOT_NONE));
    return result;
}

quern_result quern__cascade_detach(const quern__cascade *cascade, quern__storage *storage)
{
    quern_result result = QUERN_OK;
    if (cascade->detached.count == 0) return QUERN_OK;
    for (uint32_t i = 0; i < cascade->detached.count && result == QUERN_OK; i++) {
        quern__relation *relation = cascade->detached.items[i].relation;
        const uint32_t source = cascade->detached.items[i].source;
        if (relation->is_many)
            result = detach_edges(storage, &cascade->detached.items[i]);
        else if (quern__naming_allows_target(storage, relation, source, QUERN__SLOT_NONE))
            result = quern__link_log_set_target(storage, relation, source, QUERN__SLOT_NONE, cascade);
        else
            result =
                quern__naming_fail_taken(storage, quern__entity_of_slot(storage, source), QUERN__SLOT_NONE);
    }
    return quern__relate_rows(storage, result);
}

/* Clears the links of a destroyed entity. Unlinks it from its target first, unless the target is destroyed, too. */
static void unlink_one(const quern__cascade *cascade, const quern__links *links, uint32_t slot)
{
    if (!quern__links_has_page(links, slot)) return;
    const quern__link_node *node = quern__links_at(links, slot);
    if (node->target != QUERN__SLOT_NONE && !quern__cascade_has(cascade, node->target))
        quern__links_unlink(links, slot);
    quern__links_clear(links, slot);
}

/* Clears the edges of all destroyed entities, after removing them from the sources of surviving targets. */
static void unlink_edges(const quern__cascade *cascade, const quern__storage *storage,
                         quern__relation *relation)
{
    quern__edges *edges = &relation->edges;
    for (uint32_t i = 0; i < cascade->slots.count; i++) {
        const uint32_t slot = cascade->slots.items[i];
        const quern__edge_list *targets = quern__edges_targets(edges, slot);
        for (uint32_t r = 0; r < quern__edge_list_ranges(targets); r++) {
            const quern__edge_range range = quern__edge_list_range(targets, r);
            for (uint32_t k = 0; k < range.count; k++)
                if (!quern__cascade_has(cascade, range.slots[k]))
                    quern__edges_forget_source(edges, slot, range.slots[k]);
        }
        quern__edges_clear(edges, &storage->allocator, slot);
    }
    relation->links.version++;
}

void quern__cascade_unlink(const quern__cascade *cascade, quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        const quern__links *links = &relations->list.items[k]->links;
        for (uint32_t i = 0; i < cascade->slots.count; i++)
            unlink_one(cascade, links, cascade->slots.items[i]);
    }
    for (uint32_t k = 0; k < relations->list.count && relations->many_count > 0; k++)
        if (relations->list.items[k]->is_many) unlink_edges(cascade, storage, relations->list.items[k]);
    for (uint32_t i = 0; i < cascade->slots.count && storage->names->count > 0; i++)
        quern__names_drop(storage->names, cascade->slots.items[i]);
}
