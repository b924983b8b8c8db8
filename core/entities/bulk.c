/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of bulk.h that create entities and change the components of all matches of a query. Every step that may
 * fail precedes the first change. */

#include <quern/bulk.h>

#include "core/entities/entities_internal.h"
#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"

/* ----------------------------------------------------------------------------------------- create */

/* Consecutive new rows of one chunk. */
typedef struct new_rows {
    const quern__archetype *archetype;
    uintptr_t first;
    uint32_t count;
    uint32_t number; /* index of the first row among all rows that the call creates */
} new_rows;

/* What the new rows are filled with: values, constructed values, or values that a callback writes. */
typedef struct bulk_create {
    const quern_component *components;
    const void *const *columns; /* or NULL */
    uint32_t component_count;
    quern_view_callback *fill; /* or NULL */
    void *user_data;
    const quern_view_column *view_columns; /* for fill */
    quern__accessor *accessor;             /* for fill */
} bulk_create;

static quern_result create_rows(quern_world *world, quern__archetype *archetype, const bulk_create *create,
                                uint32_t count, quern_entity *out_entities)
{
    quern__storage *storage = &world->storage;
    quern_result result = quern__rows_reserve_new(storage, archetype, count);
    if (result != QUERN_OK) return result;
    new_rows rows = {.archetype = archetype};
    for (; rows.number < count; rows.number += rows.count) {
        rows.first = quern__rows_append(storage, archetype, count - rows.number, &rows.count);
        quern__rows_arrive_new(storage, archetype, rows.first, rows.count);
        for (uint32_t i = 0; i < create->component_count; i++) {
            const uint32_t index = quern__component_index(create->components[i]);
            const char *values = create->columns != NULL ? create->columns[i] : NULL;
            if (values != NULL)
                values +=
                    (size_t)rows.number * quern__components_type(&storage->components, index)->size_bytes;
            quern__fill_component(storage, archetype, rows.first, index, values, rows.count);
        }
        quern__fill_unlisted(storage, archetype, create->components, create->component_count, rows.first,
                             rows.count);
        if (create->fill != NULL) {
            quern__plain_context context = {.scope = {.accessor = create->accessor,
                                                      .storage = &world->storage,
                                                      .caller = QUERN__CALLER_FILL},
                                            .world = world,
                                            .user_data = create->user_data,
                                            .thread = quern__this_thread()};
            quern_view view = {
                .count = rows.count,
                .fill_index = rows.number,
                .context = (quern_context *)&context,
                .term_count = create->component_count,
                .columns = create->view_columns,
            };
            quern__view_set_rows(&view, rows.archetype, rows.first, rows.count);
            quern__world_set_locked(world, true); /* the other rows do not exist yet */
            create->fill(view.context, &view);
            quern__world_set_locked(world, false);
            quern__scope_reset(&context.scope);
        }
        if (out_entities == NULL) continue;
        const quern_entity *handles =
            quern__row_handle(archetype, quern__archetype_row(archetype, rows.first));
        memcpy(out_entities + rows.number, handles, rows.count * sizeof *handles);
    }
    quern__rows_gather_if_large(storage);
    quern__hooks_after(storage);
    return QUERN_OK;
}

quern_result quern_entity_create_many(quern_world *world, const quern_component *components,
                                      const void *const *columns, uint32_t component_count, uint32_t count,
                                      quern_entity *out_entities)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(components, component_count);
    quern__archetype *archetype = NULL;
    quern_result result = quern__world_ensure_archetype(world, components, component_count, &archetype);
    if (result == QUERN_OK)
        result = quern__world_check_provisional(world, components, columns, component_count, count,
                                                "quern_commands_create_many");
    if (result != QUERN_OK || count == 0) return quern__in_call(result, __func__);
    bulk_create create = {.components = components, .columns = columns, .component_count = component_count};
    return quern__in_call(create_rows(world, archetype, &create, count, out_entities), __func__);
}

quern_result quern_entity_create_filled(quern_world *world, const quern_component *components,
                                        uint32_t component_count, uint32_t count, quern_view_callback *fill,
                                        void *user_data, quern_entity *out_entities)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(components, component_count);
    QUERN__NEED(fill);
    if (component_count > QUERN_MAX_TERMS)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_entity_create_filled: %u components; a view has at most %d (QUERN_MAX_TERMS)",
            component_count, QUERN_MAX_TERMS);
    quern__archetype *archetype;
    const quern_result result =
        quern__world_ensure_archetype(world, components, component_count, &archetype);
    if (result != QUERN_OK || count == 0) return quern__in_call(result, __func__);
    quern_view_column columns[QUERN_MAX_TERMS];
    quern__accessor accessor = {.name = NULL};
    for (uint32_t i = 0; i < component_count; i++)
        columns[i] = quern__view_fill_column(archetype, components[i]);
    bulk_create create = {.components = components,
                          .accessor = &accessor,
                          .component_count = component_count,
                          .fill = fill,
                          .user_data = user_data,
                          .view_columns = columns};
    return quern__in_call(create_rows(world, archetype, &create, count, out_entities), __func__);
}

/* ------------------------------------------------------------------------------------ add, remove */

/* A component to add to or remove from the entities of all matches. Source and target archetypes never overlap, since
 * only one side has the component. */
typedef struct matching_change {
    quern_query *query;
    uint32_t component_index;
    bool adds;
    const void *value;
} matching_change;

static bool is_source(const matching_change *change, const quern__archetype *archetype)
{
    return quern__archetype_row_count(archetype) > 0 &&
           quern__archetype_has(archetype, change->component_index) != change->adds;
}

/* Finds the plan and reserves rows for one match. The row count fits uint32_t, since each row belongs to an
 * entity record, of which there are at most QUERN_MAX_ENTITIES. */
static quern_result reserve_match(const matching_change *change, quern__archetype *source)
{
    quern__storage *storage = change->query->storage;
    const quern__move_plan *plan;
    quern_result result = quern__plan_add_or_remove(storage, source, change->component_index, &plan);
    const uint32_t count = (uint32_t)quern__archetype_row_count(source);
    if (result == QUERN_OK) result = quern__leaving_reserve(storage, source, plan->target, count);
    return result == QUERN_OK ? quern__rows_reserve(storage, plan->target, count) : result;
}

/* Returns the plan of a match. Precondition: reserve_match has succeeded. */
static const quern__move_plan *plan_of(const matching_change *change, quern__archetype *source)
{
    const quern__move_plan *plan = NULL;
    quern__plan_add_or_remove(change->query->storage, source, change->component_index, &plan);
    assert(plan != NULL);
    return plan;
}

static quern_result reserve_all(const matching_change *change)
{
    const quern_query *query = change->query;
    quern__leaving_begin(query->storage);
    for (uint32_t i = 0; i < query->matches.count; i++) {
        quern__archetype *source = query->matches.items[i].archetype;
        quern_result result = is_source(change, source) ? reserve_match(change, source) : QUERN_OK;
        if (result == QUERN_OK) continue;
        while (i-- > 0)
            if (is_source(change, query->matches.items[i].archetype))
                quern__rows_unreserve(query->storage,
                                      plan_of(change, query->matches.items[i].archetype)->target);
        return result;
    }
    return QUERN_OK;
}

/* Moves all rows, one source after the other, because sources can share a target: the component may require others,
 * which some of the sources have. `value` may point into one of the rows, so it is used for the first source only, whose
 * new values are written before its rows move. Further sources get copies of the first new value, which does not move. */
static uint64_t move_all(const matching_change *change)
{
    quern_query *query = change->query;
    quern__storage *storage = query->storage;
    const void *value = change->value;
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        quern__archetype *source = query->matches.items[i].archetype;
        if (!is_source(change, source)) continue;
        const quern__move_plan *plan = plan_of(change, source);
        const void *copy = quern__rows_append_all(storage, plan, change->component_index, value);
        if (value != NULL) value = copy;
        quern__rows_move_all(storage, plan);
        count += quern__archetype_row_count(source);
        quern__rows_cut_all(storage, source);
    }
    return count;
}

static quern_result run_change(const matching_change *change, uint64_t *out_count)
{
    quern_result result = reserve_all(change);
    if (result != QUERN_OK) return result;
    const quern_query *query = change->query;
    for (uint32_t i = 0; i < query->matches.count && !change->adds && quern__hooks_are_used(query->storage);
         i++)
        if (is_source(change, query->matches.items[i].archetype))
            quern__hooks_before_all_leave(query->storage, query->matches.items[i].archetype,
                                          plan_of(change, query->matches.items[i].archetype)->target);
    uint64_t count = move_all(change);
    quern__rows_gather_if_large(query->storage);
    quern__hooks_after(query->storage);
    if (out_count != NULL) *out_count = count;
    return QUERN_OK;
}

quern_result quern_entity_add_matching(quern_query *query, quern_component component, const void *value,
                                       uint64_t *out_count)
{
    QUERN__ENTER(query != NULL ? query->world : NULL);
    quern_result result = quern__query_prepare(query, __func__);
    if (result == QUERN_OK) result = quern__components_check(&query->storage->components, component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    uint32_t index = quern__component_index(component);
    if (quern__components_is_managed(&query->storage->components, index))
        return quern__in_call(quern__world_fail_managed(query->world, component), __func__);
    if (quern__components_is_edge_value(&query->storage->components, index))
        return quern__in_call(quern__components_fail_edge_value(&query->storage->components, index),
                              __func__);
    const quern__type *type = quern__components_type(&query->storage->components, index);
    if (value != NULL && type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_entity_add_matching: '%s' has a destroy hook and no copy hook, so one value cannot be "
            "copied to many entities; give the type a copy hook",
            type->name);
    result = quern__type_check_provisional(type, value, value != NULL, "quern_commands_set");
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    matching_change change = {.query = query, .component_index = index, .adds = true, .value = value};
    return quern__in_call(run_change(&change, out_count), __func__);
}

static quern_result list_sources(quern__storage *storage, quern__relation *relation,
                                 const quern__archetype *archetype)
{
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern_entity *handles =
            quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[i]));
        for (uint32_t row = 0; row < archetype->slots[i].row_count && result == QUERN_OK; row++) {
            const uint32_t slot = quern_entity_index(handles[row]);
            result = quern__cascade_add(cascade, storage, slot);
            if (result == QUERN_OK)
                result = quern__cascade_list_detached(cascade, storage, relation, slot, QUERN__SLOT_NONE);
        }
    }
    return result;
}

/* Removes the targets of all matches in the relation. */
static quern_result unrelate_matching(const quern_query *query, quern__relation *relation,
                                      uint64_t *out_count)
{
    quern__storage *storage = query->storage;
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = quern__cascade_begin(cascade, storage);
    for (uint32_t i = 0; i < query->matches.count && result == QUERN_OK; i++) {
        const quern__archetype *archetype = query->matches.items[i].archetype;
        if (quern__archetype_has(archetype, relation->component_index))
            result = list_sources(storage, relation, archetype);
    }
    quern__leaving_begin(storage);
    if (result == QUERN_OK) result = quern__cascade_detach(cascade, storage);
    if (result == QUERN_OK && out_count != NULL) *out_count = cascade->requested_count;
    quern__cascade_end(cascade);
    return result;
}

quern_result quern_entity_remove_matching(quern_query *query, quern_component component,
                                          uint64_t *out_count)
{
    QUERN__ENTER(query != NULL ? query->world : NULL);
    quern_result result = quern__query_prepare(query, __func__);
    if (result == QUERN_OK) result = quern__components_check(&query->storage->components, component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__relation *relation = quern__relation_of(query->storage, (quern_relation){component.bits});
    if (relation != NULL) return quern__in_call(unrelate_matching(query, relation, out_count), __func__);
    if (quern__components_is_managed(&query->storage->components, quern__component_index(component)))
        return quern__in_call(quern__world_fail_managed(query->world, component), __func__);
    matching_change change = {
        .query = query, .component_index = quern__component_index(component), .adds = false, .value = NULL};
    return quern__in_call(run_change(&change, out_count), __func__);
}
