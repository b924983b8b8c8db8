/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/target.h"

#include "core/query/rows.h"
#include "core/world/world_internal.h"

/* --------------------------------------------------------------------------------------- definition */

static quern_result check_entity(const quern__storage *storage, quern_entity target)
{
    if (quern_entity_is_null(target) || quern__entities_find(&storage->entities, target) != NULL)
        return QUERN_OK;
    return quern__entities_check(&storage->entities, target);
}

quern_result quern__target_check(const quern__storage *storage, const quern_term *terms, uint32_t i)
{
    const quern_term *term = &terms[i];
    const quern__relation *relation =
        quern__relation_of(storage, (quern_relation){.bits = term->component.bits});
    const char *name =
        quern__components_type(&storage->components, quern__component_index(term->component))->name;
    if (relation == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u is a target term, but '%s' is no relation: register it with quern_relation_register",
            i, name);
    if ((term->match != 0 && term->match != QUERN_MATCH_ALL) || term->path != QUERN_PATH_ROW)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u is a target term by '%s': it must be on the row itself "
                           "(QUERN_MATCH_ALL, QUERN_PATH_ROW)",
                           i, name);
    for (uint32_t k = 0; k < i; k++)
        if (terms[k].by_target)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "term %u and term %u are target terms, but a query has at most one: remove one", k, i);
    const quern_result result = check_entity(storage, term->target);
    return result != QUERN_OK ? quern__message_add_element(result, "the target of term", i) : QUERN_OK;
}

static const quern_term *find_term(const quern__query *query)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].by_target) return &query->terms[i];
    return NULL;
}

quern_result quern__target_create(quern__query *query)
{
    const quern_term *term = find_term(query);
    if (term == NULL) return QUERN_OK;
    query->target =
        quern__allocate(&query->storage->allocator, sizeof(quern__target), _Alignof(quern__target));
    if (query->target == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the target term of a query");
    *query->target = (quern__target){
        .relation = quern__relation_of(query->storage, (quern_relation){.bits = term->component.bits}),
        .entity = term->target};
    return QUERN_OK;
}

void quern__target_destroy(const quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    quern__array_release(allocator, &query->target->ranges);
    quern__array_release(allocator, &query->target->rows);
    quern__array_release(allocator, &query->target->sort_scratch);
    quern__release(allocator, query->target, sizeof *query->target, _Alignof(quern__target));
}

quern_result quern__target_set(const quern__query *query, quern_entity target)
{
    if (query->target == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the query has no target term: create it with one (quern_term_target)");
    const quern_result result = check_entity(query->storage, target);
    if (result == QUERN_OK) query->target->entity = target;
    return result;
}

/* ---------------------------------------------------------------------------------------------- list */

bool quern__target_is_listed(const quern__query *query)
{
    const quern__target *it = query->target;
    return it->is_listed && quern_entity_equal(it->listed, it->entity) &&
           it->structure_version == query->storage->structure_version &&
           it->archetypes_version == query->storage->archetypes_version &&
           it->links_version == it->relation->links.version;
}

/* Returns the index of the archetype's match, or UINT32_MAX. Binary search: matches ascend by archetype index. */
static uint32_t find_match(const quern__query *query, const quern__archetype *archetype)
{
    uint32_t low = 0, high = query->matches.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (query->matches.items[middle].archetype->index < archetype->index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < query->matches.count && query->matches.items[low].archetype == archetype ? low
                                                                                          : UINT32_MAX;
}

/* Sort key of a row, by visiting order: match, chunk and row, from the highest bits to the lowest. */
enum { ROW_BITS = 14, CHUNK_BITS = 32 };
_Static_assert(QUERN__CHUNK_BYTES / sizeof(quern_entity) <= 1 << ROW_BITS, "rows of a chunk");
_Static_assert(QUERN_MAX_ARCHETYPES <= 1 << 17, "matches of a query");

static uint64_t make_key(uint32_t match, uintptr_t location)
{
    return (uint64_t)match << (CHUNK_BITS + ROW_BITS) |
           (uint64_t)quern__chunk_of(location)->index << ROW_BITS | quern__location_row(location);
}

/* Writes the sort keys of the target's sources, if their archetypes match. Precondition: the memory is
 * reserved. Consecutive sources mostly share an archetype, so the last match is remembered. */
static void list_rows(const quern__query *query)
{
    quern__target *it = query->target;
    const quern__storage *storage = query->storage;
    const quern__links *links = &it->relation->links;
    const quern__archetype *last = NULL;
    uint32_t match = UINT32_MAX;
    for (uint32_t slot = quern__links_first(links, quern_entity_index(it->entity));
         slot != QUERN__SLOT_NONE; slot = quern__links_at(links, slot)->next) {
        const quern__record *record = quern__entities_record(&storage->entities, slot);
        const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
        if (archetype != last) match = find_match(query, archetype);
        last = archetype;
        if (match != UINT32_MAX)
            it->rows.items[it->rows.count++] = (quern__sort_item){.key = make_key(match, record->location)};
    }
}

/* Performs list_rows for a relation with several targets per source. */
static void list_edge_rows(const quern__query *query, const quern__edge_list *sources)
{
    quern__target *it = query->target;
    const quern__storage *storage = query->storage;
    const quern__archetype *last = NULL;
    uint32_t match = UINT32_MAX;
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++) {
            const quern__record *record = quern__entities_record(&storage->entities, range.slots[k]);
            const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
            if (archetype != last) match = find_match(query, archetype);
            last = archetype;
            if (match != UINT32_MAX)
                it->rows.items[it->rows.count++] =
                    (quern__sort_item){.key = make_key(match, record->location)};
        }
    }
}

/* Joins the sorted rows to ranges. */
static void join_rows(quern__target *it)
{
    uint64_t next = UINT64_MAX; /* key of the row after the last range */
    for (uint32_t i = 0; i < it->rows.count; i++) {
        const uint64_t key = it->rows.items[i].key;
        if (key == next)
            it->ranges.items[it->ranges.count - 1].count++;
        else
            it->ranges.items[it->ranges.count++] =
                (quern__target_range){.match = (uint32_t)(key >> (CHUNK_BITS + ROW_BITS)),
                                      .chunk_index = (uint32_t)(key >> ROW_BITS),
                                      .first_row = (uint16_t)(key & ((1 << ROW_BITS) - 1)),
                                      .count = 1};
        next = key + 1;
    }
}

/* A target that is dead has no sources. Its slot may belong to another entity by now; the
 * sources of that entity do not count. */
quern_result quern__target_list(const quern__query *query)
{
    quern__target *it = query->target;
    if (quern__target_is_listed(query)) return QUERN_OK;
    const quern__storage *storage = query->storage;
    const bool is_alive = quern__entities_find(&storage->entities, it->entity) != NULL;
    const quern__link_node *node =
        is_alive ? quern__links_find(&it->relation->links, quern_entity_index(it->entity)) : NULL;
    const quern__edge_list *sources =
        is_alive ? quern__edges_sources(&it->relation->edges, quern_entity_index(it->entity))
                 : &quern__no_edges;
    const uint32_t count = node != NULL ? node->count : sources->count;
    it->rows.count = it->ranges.count = 0;
    if (!quern__array_reserve(&storage->allocator, &it->rows, count) ||
        !quern__array_reserve(&storage->allocator, &it->sort_scratch, count) ||
        !quern__array_reserve(&storage->allocator, &it->ranges, count)) {
        it->is_listed = false;
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the %u sources of entity %u:%u",
                           count, quern_entity_index(it->entity), quern_entity_generation(it->entity));
    }
    if (sources->count > 0)
        list_edge_rows(query, sources);
    else if (count > 0)
        list_rows(query);
    quern__sort(it->rows.items, it->sort_scratch.items, it->rows.count);
    join_rows(it);
    it->list_number++;
    it->is_listed = true;
    it->listed = it->entity;
    it->structure_version = storage->structure_version;
    it->archetypes_version = storage->archetypes_version;
    it->links_version = it->relation->links.version;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- views */

void quern__target_get_view(const quern__query *query, uint32_t i, quern_view *view)
{
    const quern__target_range *range = &query->target->ranges.items[i];
    const quern__query_match *match = &query->matches.items[range->match];
    quern__view_set(view, query, match, &match->archetype->slots[range->chunk_index]);
    view->first_row = range->first_row;
    view->entities += range->first_row;
    view->count = range->count;
}

quern_result quern__target_begin(quern_query_iterator *iterator)
{
    const quern_result result = quern__target_list(iterator->query);
    iterator->chunk_index = iterator->query->target->list_number;
    return result;
}

bool quern__target_is_valid(const quern_query_iterator *iterator)
{
    return iterator->chunk_index == iterator->query->target->list_number &&
           quern__target_is_listed(iterator->query);
}

bool quern__target_next(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    while (iterator->match_index < query->target->ranges.count) {
        quern__target_get_view(query, iterator->match_index++, &iterator->view);
        if (!quern__query_passes(query, iterator->view.columns, iterator->view.versions,
                                 iterator->seen_version))
            continue;
        iterator->view.ordinal = iterator->view_count++;
        return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------------------- calls */

uint64_t quern__target_count(const quern__query *query)
{
    if (quern__in_call(quern__target_list(query), "quern_query_count") != QUERN_OK) return 0;
    if (!query->selects_rows) return query->target->rows.count;
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->target->ranges.count; i++) {
        const quern__target_range *range = &query->target->ranges.items[i];
        count += quern__rows_count_range(query, &query->matches.items[range->match], range->chunk_index,
                                         range->first_row, range->count);
    }
    return count;
}

static quern_result set_target(quern_query *query, quern_entity target)
{
    static const char function[] = "quern_query_set_target";
    if (query == NULL) return quern__fail_null(function, "query");
    quern_result result = quern__world_check_unlocked(query->world, function);
    if (result == QUERN_OK) result = quern__target_set(query, target);
    return quern__in_call(result, function);
}

quern_result quern_query_set_target(quern_query *query, quern_entity target)
{
    quern_world *world = query != NULL ? query->world : NULL;
    if (!quern__world_enter(world, "quern_query_set_target")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, set_target(query, target));
}
