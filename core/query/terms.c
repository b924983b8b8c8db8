/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Terms that name other entities than the row's: up-terms (definition, buffers of iterations, finding values,
 * rows), and terms by target (definition, the list of rows, views, calls). */
#include "core/query/keys.h"

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

/* ------------------------------------------------------------------------------ up-terms: definition */

quern_result quern__up_check(const quern__storage *storage, const quern_term *term, uint32_t i)
{
    const quern__type *type =
        quern__components_type(&storage->components, quern__component_index(term->component));
    if ((unsigned)term->path > QUERN_PATH_NEAREST)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has path %d, which is none of quern_term_path", i, type->name,
                           (int)term->path);
    quern__relation *relation;
    if (quern_relation_is_null(term->relation))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u reads '%s' upward and names no relation: was it registered?", i,
                           type->name);
    const quern_result result = quern__relation_check(storage, term->relation, &relation);
    if (result != QUERN_OK) return quern__message_add_element(result, "the relation of term", i);
    if (relation->is_many)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u reads '%s' upward, but in relation '%s' a source has several targets "
                           "(.many): list them with quern_context_list_targets and look up their values",
                           i, type->name, quern__relation_name(storage, relation));
    if (type->size_bytes == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u reads '%s' upward, but a tag has no value: use a term on the row itself", i,
            type->name);
    if (term->access != QUERN_ACCESS_READ)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u is an up-term, so '%s' can only be read: use QUERN_ACCESS_READ", i,
                           type->name);
    if (term->changed)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u reads '%s' upward and sets `changed`: change filters check only the "
                           "row's own components",
                           i, type->name);
    if (term->match == 0 || term->match == QUERN_MATCH_ALL || term->match == QUERN_MATCH_OPTIONAL)
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "term %u reads '%s' upward: it may be QUERN_MATCH_ALL or QUERN_MATCH_OPTIONAL", i,
                       type->name);
}

uint32_t quern__query_up_conflict(const quern__query *query, quern_relation levels)
{
    for (uint32_t i = 0; i < query->term_count; i++) {
        if (query->terms[i].path == QUERN_PATH_ROW) continue;
        if (quern_relation_equal(query->terms[i].relation, levels)) continue;
        for (uint32_t k = 0; k < query->term_count; k++)
            if (query->terms[k].access == QUERN_ACCESS_WRITE &&
                quern_component_equal(query->terms[k].component, query->terms[i].component))
                return i;
    }
    return query->term_count;
}

/* -------------------------------------------------------------------------------- up-terms: create */

static size_t ups_bytes(uint32_t up_count)
{
    return sizeof(quern__ups) + up_count * sizeof(quern__up);
}

/* Appends the state of one up-term. Fails with OUT_OF_MEMORY. */
static quern_result add_up(quern__storage *storage, quern__ups *ups, const quern_term *term)
{
    quern__up *up = &ups->items[ups->count];
    *up = (quern__up){.relation_index = quern__term_index(term),
                      .is_optional = term->match == QUERN_MATCH_OPTIONAL,
                      .is_nearest = term->path == QUERN_PATH_NEAREST};
    quern_result result =
        quern__storage_add_position_table(storage, quern__component_index(term->component), &up->values);
    if (result != QUERN_OK) return result;
    if (up->is_nearest)
        result = quern__storage_add_position_table(storage, up->relation_index, &up->targets);
    if (result != QUERN_OK) {
        quern__storage_remove_position_table(storage, &up->values);
        return result;
    }
    ups->has_required |= !up->is_optional;
    ups->count++;
    return QUERN_OK;
}

quern_result quern__ups_create(quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    const uint32_t up_count = query->up_count;
    query->ups = quern__allocate(allocator, ups_bytes(up_count), _Alignof(quern__ups));
    if (query->ups == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for %u up-terms", up_count);
    memset(query->ups, 0, ups_bytes(up_count));
    query->ups->pool.buffer_count = QUERN__UP_BUFFERS;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < query->term_count && result == QUERN_OK; i++)
        if (query->terms[i].path != QUERN_PATH_ROW)
            result = add_up(query->storage, query->ups, &query->terms[i]);
    if (result != QUERN_OK) quern__ups_destroy(query);
    return result;
}

static void release_addresses(const quern__query *query, const void **addresses, uint32_t worker_count)
{
    quern__release(&query->storage->allocator, addresses,
                   worker_count * quern__ups_address_count(query->up_count) * sizeof *addresses,
                   QUERN__CACHE_LINE_BYTES);
}

static const void **allocate_addresses(const quern__query *query, uint32_t worker_count)
{
    return quern__allocate(&query->storage->allocator,
                           worker_count * quern__ups_address_count(query->up_count) * sizeof(void *),
                           QUERN__CACHE_LINE_BYTES);
}

/* Releases the pools of workers. The addresses of all of them are one allocation, which begins with those of the first
 * buffer. */
static void release_pools(const quern__query *query)
{
    quern__ups *ups = query->ups;
    if (ups->pool_count == 0) return;
    release_addresses(query, ups->worker_pools->buffers->addresses,
                      ups->pool_count * QUERN__UP_WORKER_BUFFERS);
    quern__release(&query->storage->allocator, ups->worker_pools,
                   ups->pool_count * sizeof *ups->worker_pools, _Alignof(quern__up_pool));
}

void quern__ups_destroy(quern__query *query)
{
    quern__ups *ups = query->ups;
    for (uint32_t i = 0; i < ups->count; i++) {
        quern__storage_remove_position_table(query->storage, &ups->items[i].values);
        if (ups->items[i].is_nearest)
            quern__storage_remove_position_table(query->storage, &ups->items[i].targets);
    }
    for (uint32_t i = 0; i < QUERN__UP_BUFFERS; i++)
        release_addresses(query, ups->pool.buffers[i].addresses, 1);
    release_addresses(query, ups->worker_addresses, ups->worker_count);
    release_pools(query);
    quern__release(&query->storage->allocator, ups, ups_bytes(query->up_count), _Alignof(quern__ups));
    query->ups = NULL;
}

quern_result quern__ups_reserve_workers(const quern__query *query, uint32_t worker_count)
{
    quern__ups *ups = query->ups;
    if (worker_count <= ups->worker_count) return QUERN_OK;
    const void **addresses = allocate_addresses(query, worker_count);
    if (addresses == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the up-terms of %u workers",
                           worker_count);
    release_addresses(query, ups->worker_addresses, ups->worker_count);
    ups->worker_addresses = addresses;
    ups->worker_count = worker_count;
    return QUERN_OK;
}

quern_result quern__ups_reserve_pools(const quern__query *query, uint32_t worker_count)
{
    quern__ups *ups = query->ups;
    if (worker_count <= ups->pool_count) return QUERN_OK;
    const quern_allocator *allocator = &query->storage->allocator;
    const size_t bytes = worker_count * sizeof(quern__up_pool);
    quern__up_pool *pools = quern__allocate(allocator, bytes, _Alignof(quern__up_pool));
    const void **addresses =
        pools != NULL ? allocate_addresses(query, worker_count * QUERN__UP_WORKER_BUFFERS) : NULL;
    if (addresses == NULL) {
        quern__release(allocator, pools, bytes, _Alignof(quern__up_pool));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the up-terms of %u workers",
                           worker_count);
    }
    memset(pools, 0, bytes);
    for (uint32_t i = 0; i < worker_count; i++) {
        pools[i].buffer_count = QUERN__UP_WORKER_BUFFERS;
        for (uint32_t k = 0; k < QUERN__UP_WORKER_BUFFERS; k++)
            pools[i].buffers[k].addresses =
                addresses + (i * QUERN__UP_WORKER_BUFFERS + k) * quern__ups_address_count(query->up_count);
    }
    release_pools(query);
    ups->worker_pools = pools;
    ups->pool_count = worker_count;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------- up-terms: iterations */

/* Returns the number of steps that iterations have made since the buffer was used last. */
static uint32_t age_of(const quern__up_pool *pool, const quern__up_buffer *buffer)
{
    return pool->step_number - buffer->number;
}

/* Returns whether a later iteration uses the buffer's iterator object, so that the buffer's own iteration is over. If
 * the object was copied, the iteration may still run. */
static bool is_superseded(const quern__up_pool *pool, const quern__up_buffer *buffer)
{
    for (uint32_t i = 0; i < pool->buffer_count && buffer->iterator != NULL; i++)
        if (pool->buffers[i].iterator == buffer->iterator &&
            age_of(pool, &pool->buffers[i]) < age_of(pool, buffer))
            return true;
    return false;
}

/* Returns a buffer that no iteration uses; otherwise the least recently used of the superseded ones, or of
 * all if none is superseded. */
static quern__up_buffer *choose_buffer(quern__up_pool *pool, uint64_t structure_version)
{
    quern__up_buffer *chosen = NULL;
    bool was_superseded = false;
    for (uint32_t i = 0; i < pool->buffer_count; i++) {
        quern__up_buffer *buffer = &pool->buffers[i];
        if (buffer->number == 0 || buffer->structure_version != structure_version) return buffer;
        const bool is_better = is_superseded(pool, buffer);
        if (chosen != NULL &&
            (is_better != was_superseded ? was_superseded : age_of(pool, buffer) < age_of(pool, chosen)))
            continue;
        chosen = buffer;
        was_superseded = is_better;
    }
    return chosen;
}

/* Gives a buffer of the pool, which has addresses, to the iteration. */
static void use_buffer(quern_query_iterator *iterator, quern__up_pool *pool, quern__up_buffer *buffer)
{
    buffer->structure_version = iterator->query->storage->structure_version;
    buffer->rows = (quern__up_rows){0};
    buffer->iterator = NULL;
    buffer->pool = pool;
    iterator->up_buffer = buffer;
    quern__ups_mark_used(iterator);
}

quern_result quern__ups_begin_iteration(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    quern__up_pool *pool = &query->ups->pool;
    quern__up_buffer *buffer = choose_buffer(pool, query->storage->structure_version);
    if (buffer->addresses == NULL) buffer->addresses = allocate_addresses(query, 1);
    if (buffer->addresses == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the addresses of up-terms");
    use_buffer(iterator, pool, buffer);
    return QUERN_OK;
}

void quern__ups_begin_inside(quern_query_iterator *iterator, uint32_t worker_index)
{
    const quern__query *query = iterator->query;
    quern__up_pool *pool = &query->ups->worker_pools[worker_index];
    use_buffer(iterator, pool, choose_buffer(pool, query->storage->structure_version));
}

/* ---------------------------------------------------------------------------------- up-terms: find */

/* Returns the address of the target's component, or NULL if the target is invalid or lacks it. */
static inline const void *find_up(const quern__up *up, const quern__entities *entities, quern_entity target)
{
    const quern__record *record = quern__entities_find(entities, target);
    if (QUERN__UNLIKELY(record == NULL)) return NULL;
    const quern__column_position position = up->values.positions[record->archetype_number];
    return QUERN__LIKELY(position.offset_lines != 0) ? quern__position_value(position, record->location)
                                                     : NULL;
}

/* Returns the address of the component of the nearest entity that has it, from the target upward, or NULL. In a
 * cycle, the search ends once it meets the noted entity again. To find cycles that do not contain the first
 * target, the noted entity is replaced after 1, 2, 4, ... steps (Brent 1980). */
static const void *find_nearest(const quern__up *up, const quern__entities *entities, quern_entity target)
{
    quern_entity noted = target;
    for (uint32_t steps = 1, limit = 1;; steps++) {
        const quern__record *record = quern__entities_find(entities, target);
        if (record == NULL) return NULL;
        const quern__column_position value = up->values.positions[record->archetype_number];
        if (value.offset_lines != 0) return quern__position_value(value, record->location);
        const quern__column_position next = up->targets.positions[record->archetype_number];
        if (next.offset_lines == 0) return NULL;
        target = *(const quern_entity *)quern__position_value(next, record->location);
        if (quern_entity_equal(target, noted)) return NULL;
        if (steps < limit) continue;
        noted = target;
        limit *= 2;
        steps = 0;
    }
}

/* Writes the address of the value for targets[i], or NULL, into out_values[i]. Returns whether all were found.
 * is_nearest is a constant at each call. */
QUERN__ALWAYS_INLINE bool find_all(const quern__up *up, const quern__entities *entities,
                                   const quern_entity *targets, uint32_t count, uint32_t size_bytes,
                                   const void **out_values, const bool is_nearest)
{
    uint32_t next = count < QUERN__FIND_BATCH ? count : QUERN__FIND_BATCH;
    quern__prefetch_records(entities, targets, next);
    quern_entity target = quern_entity_null();
    const void *value = NULL;
    bool has_all = true;
    for (uint32_t first = 0, end = next; first < count; first = end, end += next) {
        next = count - end < QUERN__FIND_BATCH ? count - end : QUERN__FIND_BATCH;
        quern__prefetch_records(entities, targets + end, next);
        for (uint32_t i = first; i < end; i++) {
            if (!quern_entity_equal(targets[i], target)) {
                target = targets[i];
                value = is_nearest ? find_nearest(up, entities, target) : find_up(up, entities, target);
                if (value != NULL) { /* most values have no other cache lines than these two */
                    QUERN__PREFETCH(value);
                    QUERN__PREFETCH((const char *)value + size_bytes - 1);
                }
            }
            out_values[i] = value;
            has_all &= value != NULL;
        }
    }
    return has_all;
}

/* Looks up the addresses of one up-term for the rows of a view. Returns whether all were found. */
static bool find_up_term(const quern__up *up, const quern__entities *entities, const quern_view *view,
                         uint32_t size_bytes, const void **out_values)
{
    const quern__archetype *archetype = quern__chunk_archetype(view->chunk);
    const quern__column_position position = quern__archetype_column_position(archetype, up->relation_index);
    if (position.offset_lines == 0) {
        memset(out_values, 0, view->count * sizeof *out_values);
        return false;
    }
    const quern_entity *targets =
        quern__position_value(position, quern__location_make(view->chunk, view->first_row));
    return up->is_nearest ? find_all(up, entities, targets, view->count, size_bytes, out_values, true)
                          : find_all(up, entities, targets, view->count, size_bytes, out_values, false);
}

quern__up_rows quern__up_find(const quern__query *query, const void **addresses, quern_view *view)
{
    const quern__ups *ups = query->ups;
    quern__up_rows rows = {.next = view->first_row, .end = view->first_row + view->count};
    for (uint32_t i = 0; i < ups->count; i++) {
        const quern__up *up = &ups->items[i];
        const uint32_t size_bytes =
            quern__components_type(&query->storage->components, up->values.component_index)->size_bytes;
        const bool has_all = find_up_term(up, &query->storage->entities, view, size_bytes,
                                          addresses + quern__ups_address_count(i) + view->first_row);
        rows.leaves_some_out |= !has_all && !up->is_optional;
    }
    view->up = addresses;
    return rows;
}

/* --------------------------------------------------------------------------------- up-terms: rows */

/* Returns whether all required up-terms have a value for a row of the chunk. */
static bool is_selected(const quern__ups *ups, const void *const *addresses, uint32_t row)
{
    for (uint32_t i = 0; i < ups->count; i++)
        if (!ups->items[i].is_optional && addresses[quern__ups_address_count(i) + row] == NULL)
            return false;
    return true;
}

bool quern__up_next(const quern__query *query, quern__up_rows *rows, quern_view *view)
{
    uint32_t first = rows->next, end = rows->end;
    if (rows->leaves_some_out) {
        while (first < rows->end && !is_selected(query->ups, view->up, first))
            first++;
        end = first;
        while (end < rows->end && is_selected(query->ups, view->up, end))
            end++;
    }
    rows->next = end;
    if (first == end) return false;
    quern__view_point(view, first, end - first);
    return true;
}

bool quern__up_selects(const quern__query *query, const quern__archetype *archetype, uintptr_t location)
{
    for (uint32_t i = 0; i < query->ups->count; i++) {
        const quern__up *up = &query->ups->items[i];
        if (up->is_optional) continue;
        const quern_entity target =
            *(const quern_entity *)quern__storage_value(archetype, location, up->relation_index);
        const void *value = up->is_nearest ? find_nearest(up, &query->storage->entities, target)
                                           : find_up(up, &query->storage->entities, target);
        if (value == NULL) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------ terms by target: definition */

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

quern_result quern__target_create(quern__query *query)
{
    const quern_term *term = query->terms, *end = query->terms + query->term_count;
    while (term < end && !term->by_target)
        term++;
    if (term == end) return QUERN_OK;
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

/* ----------------------------------------------------------------------------- terms by target: list */

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

/* Sort key of a row: its position in visiting order. */
static uint64_t make_key(uint32_t match, const quern__run_shape *shape, uintptr_t location)
{
    return quern__position_make(match, quern__chunk_index_at(shape, location),
                                quern__location_row(shape, location));
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
            it->rows.items[it->rows.count++] =
                (quern__sort_item){.key = make_key(match, &archetype->shape, record->location)};
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
                    (quern__sort_item){.key = make_key(match, &archetype->shape, record->location)};
        }
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
    uint64_t next = UINT64_MAX; /* key of the row after the last range */
    for (uint32_t i = 0; i < it->rows.count; i++) {
        const uint64_t key = it->rows.items[i].key;
        if (key == next)
            it->ranges.items[it->ranges.count - 1].count++;
        else
            it->ranges.items[it->ranges.count++] =
                (quern__target_range){.match = quern__position_match(key),
                                      .chunk_index = quern__position_chunk(key),
                                      .first_row = (uint16_t)quern__position_row(key),
                                      .count = 1};
        next = key + 1;
    }
    it->list_number++;
    it->is_listed = true;
    it->listed = it->entity;
    it->structure_version = storage->structure_version;
    it->archetypes_version = storage->archetypes_version;
    it->links_version = it->relation->links.version;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------- terms by target: views */

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

/* --------------------------------------------------------------------------- terms by target: calls */

bool quern_query_matches(quern_query *query, quern_entity entity)
{
    QUERN__NEED_OR(query, false);
    const quern__entities *entities = &query->storage->entities;
    if (quern__world_check_unlocked(query->world, __func__) != QUERN_OK ||
        quern__in_call(quern__query_refresh(query), __func__) != QUERN_OK)
        return false;
    const quern__record *record = quern__entities_find(entities, entity);
    if (record == NULL) {
        quern__in_call(quern__entities_check(entities, entity), __func__);
        return false;
    }
    const quern__archetype *archetype = quern__storage_archetype_of(query->storage, record);
    const uint32_t match = find_match(query, archetype);
    if (match == UINT32_MAX) return false;
    const quern__target *target = query->target;
    if (target != NULL && (quern__entities_find(entities, target->entity) == NULL ||
                           !quern__relation_has_target(target->relation, quern_entity_index(entity),
                                                       quern_entity_index(target->entity))))
        return false;
    if (!query->selects_rows) return true;
    const quern__run_shape *shape = &archetype->shape;
    return quern__rows_count_range(query, &query->matches.items[match],
                                   quern__chunk_index_at(shape, record->location),
                                   quern__location_row(shape, record->location), 1) > 0;
}

quern_result quern_query_set_target(quern_query *query, quern_entity target)
{
    QUERN__NEED(query);
    QUERN__ENTER_UNLOCKED(query->world);
    return quern__in_call(quern__target_set(query, target), __func__);
}
