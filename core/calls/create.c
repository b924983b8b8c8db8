/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of world.h that create one entity. The world caches the latest lists of components and their archetypes
 * (quern__create_lists in world_internal.h). A list with one relation has an archetype per level. Lists with several
 * relations or more than QUERN__CREATE_LIST_COMPONENTS components are not cached. */

#include "core/calls/calls_internal.h"
#include "core/storage/change.h"
#include "core/storage/fill.h"
#include "core/world/world_internal.h"

/* -------------------------------------------------------------------------------------- cached lists */

static inline bool has_components(const quern__create_list *list, const quern_component *components,
                                  uint32_t count)
{
    if (list->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (list->components[i].bits != components[i].bits) return false;
    return true;
}

/* Finds a cached list and makes it the latest. Returns NULL if the list is not cached. */
static quern__create_list *find_cached_list(quern_world *world, const quern_component *components,
                                            uint32_t count)
{
    quern__create_lists *lists = &world->create_lists;
    for (uint32_t i = 0; i < QUERN__CREATE_LISTS && lists->latest != NULL; i++)
        if (lists->items[i].is_used && has_components(&lists->items[i], components, count))
            return lists->latest = &lists->items[i];
    return NULL;
}

/* Finds the only relation in the list, NULL if there is none, and its position. Returns false if there are several. */
static bool find_relation(const quern_world *world, const quern_component *components, uint32_t count,
                          quern__relation **out_relation, uint32_t *out_position)
{
    *out_relation = NULL;
    *out_position = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation =
            quern__relation_of(&world->storage, (quern_relation){components[i].bits});
        if (relation == NULL) continue;
        if (*out_relation != NULL) return false;
        *out_relation = relation;
        *out_position = i;
    }
    return true;
}

static void set_layout(const quern__create_list *list, quern__archetype *archetype,
                       quern__create_layout *out_layout)
{
    out_layout->archetype = archetype;
    for (uint32_t i = 0; i < list->count; i++)
        out_layout->columns[i] = archetype->column_positions[quern__component_index(list->components[i])];
}

/* Finds the archetype of a level and caches it. */
static QUERN__SLOW_PATH quern_result find_layout(quern_world *world, const quern__create_list *list,
                                                 const void *const *values,
                                                 quern__create_layout *out_layout)
{
    quern__archetype *archetype;
    quern_result result =
        quern__world_ensure_related_archetype(world, list->components, values, list->count, &archetype);
    if (result == QUERN_OK) set_layout(list, archetype, out_layout);
    return result;
}

/* Lists the components with values that the archetype has because listed ones require them. Returns false if they do not
 * fit the cache. */
static bool list_required(const quern_world *world, const quern_component *components, uint32_t count,
                          const quern__archetype *archetype, uint16_t *out_required, uint32_t *out_count)
{
    for (uint32_t i = 0; i < archetype->column_count && world->storage.components.has_requirements; i++) {
        const uint16_t index = archetype->columns[i].component_index;
        if (quern__list_has(components, count, index)) continue;
        if (*out_count == QUERN__CREATE_LIST_COMPONENTS) return false;
        out_required[(*out_count)++] = index;
    }
    return true;
}

/* Caches a valid list. archetype: that of the list; cached too if the list has no relation. Returns NULL if the list
 * cannot be cached. */
static quern__create_list *cache_list(quern_world *world, const quern_component *components, uint32_t count,
                                      quern__archetype *archetype)
{
    quern__relation *relation;
    uint32_t position;
    uint16_t required[QUERN__CREATE_LIST_COMPONENTS] = {0};
    uint32_t required_count = 0;
    if (count > QUERN__CREATE_LIST_COMPONENTS ||
        !find_relation(world, components, count, &relation, &position) ||
        !list_required(world, components, count, archetype, required, &required_count))
        return NULL;
    quern__create_lists *lists = &world->create_lists;
    quern__create_list *list = &lists->items[lists->next++ % QUERN__CREATE_LISTS];
    *list = (quern__create_list){
        .is_used = true, .count = count, .relation_position = position, .relation = relation};
    for (uint32_t i = 0; i < count; i++) {
        const quern__type *type =
            quern__components_type(&world->storage.components, quern__component_index(components[i]));
        list->components[i] = components[i];
        list->has_handles |=
            type->has_entity_fields && !quern__components_is_managed(&world->storage.components,
                                                                     quern__component_index(components[i]));
        list->types[i] = type->hooks.copy != NULL || type->hooks.move != NULL ? type : NULL;
    }
    list->required_count = required_count;
    list->is_special = list->has_handles || required_count > 0;
    memcpy(list->required, required, sizeof list->required);
    if (relation == NULL) set_layout(list, archetype, &list->layouts[0]);
    return lists->latest = list;
}

/* -------------------------------------------------------------------------------------------- rows */

static inline quern_result reserve_slot(quern__storage *storage)
{
    if (QUERN__LIKELY(quern__entities_has_unreserved_slot(&storage->entities))) return QUERN_OK;
    return quern__entities_reserve(&storage->entities, &storage->allocator, 1);
}

/* Performs create_raw if the row needs another chunk or the archetype tracks changes. */
static QUERN__SLOW_PATH quern_result create_slowly(quern__storage *storage, quern__archetype *archetype,
                                                   quern_entity *out_entity, quern__row *out_row)
{
    uintptr_t location;
    quern_result result = quern__rows_reserve_new(storage, archetype, 1);
    if (result != QUERN_OK) return result;
    *out_entity = quern__row_arrive(storage, archetype, &location);
    *out_row = quern__row_of(location);
    return QUERN_OK;
}

/* Creates an entity with raw values. Precondition: a slot is reserved. */
static inline quern_result create_raw(quern__storage *storage, quern__archetype *archetype,
                                      quern_entity *out_entity, quern__row *out_row)
{
    if (QUERN__UNLIKELY(archetype->tracks_changes || !quern__row_append(archetype, out_row)))
        return create_slowly(storage, archetype, out_entity, out_row);
    *out_entity = quern__row_arrive_new(storage, archetype, *out_row);
    return QUERN_OK;
}

QUERN__ALWAYS_INLINE void fill_row(const quern_world *world, const quern__create_list *list,
                                   const quern__create_layout *layout, const void *const *values,
                                   quern__row row)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const quern__column_position column = layout->columns[i];
        const void *value = values != NULL ? values[i] : NULL;
        if (column.offset_bytes == 0) continue;
        if (QUERN__LIKELY(value != NULL && list->types[i] == NULL))
            quern__copy_value(quern__row_value(column, row), value, column.size_bytes);
        else
            quern__fill_component(&world->storage, layout->archetype, quern__row_location(row),
                                  quern__component_index(list->components[i]), value, 1);
    }
}

QUERN__ALWAYS_INLINE quern_result create_with_layout(quern_world *world, const quern__create_list *list,
                                                     const quern__create_layout *layout,
                                                     const void *const *values, quern_entity *out_entity)
{
    quern__row row = {0};
    quern_result result = create_raw(&world->storage, layout->archetype, out_entity, &row);
    if (QUERN__LIKELY(result == QUERN_OK)) fill_row(world, list, layout, values, row);
    return result;
}

/* ------------------------------------------------------------------------------------ with a target */

static quern_entity target_of(const void *value)
{
    quern_entity target;
    memcpy(&target, value, sizeof target);
    return target;
}

/* Reserves links for the target and for the entity that is created next. Precondition: a slot is reserved. */
static quern_result reserve_links(quern__storage *storage, quern__relation *relation, quern_entity target)
{
    const uint32_t next = quern__entities_next_slot(&storage->entities);
    if (quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(target)) &&
        quern__links_reserve(&relation->links, &storage->allocator, next))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
}

static inline void link_new(quern__relation *relation, quern_entity source, quern_entity target,
                            uint32_t level)
{
    quern__links *links = &relation->links;
    const uint32_t slot = quern_entity_index(source), to = quern_entity_index(target);
    if (QUERN__LIKELY(relation->is_ordered)) {
        quern__links_append(links, slot, to, level);
        return;
    }
    quern__links_link(links, slot, to, quern__links_at(links, to)->first);
    quern__links_set_level(links, slot, level);
}

/* Whether creating an entity with this target needs no preparation by prepare_related: the archetype is
 * cached, and a slot and the pages of links exist. */
static inline bool is_prepared(const quern__storage *storage, const quern__links *links,
                               quern_entity target, const quern__create_layout *layout)
{
    return layout->archetype != NULL && quern__entities_has_unreserved_slot(&storage->entities) &&
           quern__links_has_page(links, quern_entity_index(target)) &&
           quern__links_has_page(links, quern__entities_next_slot(&storage->entities));
}

static QUERN__SLOW_PATH quern_result prepare_related(quern_world *world, const quern__create_list *list,
                                                     const void *const *values, quern_entity target,
                                                     quern__create_layout *layout)
{
    quern_result result = QUERN_OK;
    if (layout->archetype == NULL) result = find_layout(world, list, values, layout);
    if (result == QUERN_OK) result = reserve_slot(&world->storage);
    return result == QUERN_OK ? reserve_links(&world->storage, list->relation, target) : result;
}

/* Creates an entity by a cached list with a relation. */
static quern_result create_related(quern_world *world, quern__create_list *list, const void *const *values,
                                   quern_entity *out_entity)
{
    quern__relation *relation = list->relation;
    if (QUERN__UNLIKELY(values == NULL || values[list->relation_position] == NULL))
        return quern__world_check_target(world, relation, NULL);
    const quern_entity target = target_of(values[list->relation_position]);
    if (QUERN__UNLIKELY(quern__entities_find(&world->storage.entities, target) == NULL))
        return quern__world_check_target(world, relation, &target);
    const uint32_t level = quern__relation_source_level(relation, quern_entity_index(target));
    quern__create_layout *layout = &list->layouts[level];
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(!is_prepared(&world->storage, &relation->links, target, layout)))
        result = prepare_related(world, list, values, target, layout);
    if (QUERN__LIKELY(result == QUERN_OK))
        result = create_with_layout(world, list, layout, values, out_entity);
    if (QUERN__LIKELY(result == QUERN_OK)) link_new(relation, *out_entity, target, level);
    return result;
}

/* Creates an entity by a cached list without a relation. */
QUERN__ALWAYS_INLINE quern_result create_unrelated(quern_world *world, const quern__create_list *list,
                                                   const void *const *values, quern_entity *out_entity)
{
    quern_result result = reserve_slot(&world->storage);
    return QUERN__LIKELY(result == QUERN_OK)
               ? create_with_layout(world, list, &list->layouts[0], values, out_entity)
               : result;
}

static quern_result check_handles(const quern_world *world, const quern_component *components,
                                  const void *const *values, uint32_t count)
{
    return quern__world_check_provisional(world, components, values, count, 1,
                                          "quern_commands_create_with");
}

/* Creates an entity by a list that is not cached. */
static quern_result create_looked_up(quern_world *world, const quern_component *components,
                                     const void *const *values, uint32_t count, quern__archetype *archetype,
                                     quern_entity *out_entity)
{
    quern__storage *storage = &world->storage;
    quern__row row = {0};
    quern_result result = check_handles(world, components, values, count);
    if (result == QUERN_OK) result = reserve_slot(storage);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__relation *relation = quern__relation_of(storage, (quern_relation){components[i].bits});
        if (relation != NULL) result = reserve_links(storage, relation, target_of(values[i]));
    }
    if (result == QUERN_OK) result = create_raw(storage, archetype, out_entity, &row);
    if (result != QUERN_OK) return result;
    quern__fill_unlisted(storage, archetype, components, count, quern__row_location(row), 1);
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation = quern__relation_of(storage, (quern_relation){components[i].bits});
        quern__fill_component(storage, archetype, quern__row_location(row),
                              quern__component_index(components[i]), values ? values[i] : NULL, 1);
        if (relation == NULL) continue;
        assert(values != NULL); /* the caller refused relations without a value */
        const quern_entity target = target_of(values[i]);
        link_new(relation, *out_entity, target,
                 quern__relation_source_level(relation, quern_entity_index(target)));
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- the calls */

static inline quern_result create_plainly(quern_world *world, quern__create_list *list,
                                          const void *const *values, quern_entity *out_entity)
{
    if (list->relation != NULL) return create_related(world, list, values, out_entity);
    return create_unrelated(world, list, values, out_entity);
}

/* Creates an entity by a cached list with handles to be checked or with required components. */
static QUERN__NO_INLINE quern_result create_specially(quern_world *world, quern__create_list *list,
                                                      const quern_component *components,
                                                      const void *const *values, quern_entity *out_entity)
{
    quern_result result = QUERN_OK;
    if (list->has_handles) result = check_handles(world, components, values, list->count);
    if (result == QUERN_OK) result = create_plainly(world, list, values, out_entity);
    if (result != QUERN_OK || list->required_count == 0) return result;
    const quern__record *record =
        quern__entities_record(&world->storage.entities, quern_entity_index(*out_entity));
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    for (uint32_t i = 0; i < list->required_count; i++)
        quern__fill_component(&world->storage, archetype, record->location, list->required[i], NULL, 1);
    return QUERN_OK;
}

/* Creates an entity by a cached list. */
QUERN__ALWAYS_INLINE quern_result create_by_list(quern_world *world, quern__create_list *list,
                                                 const quern_component *components,
                                                 const void *const *values, quern_entity *out_entity)
{
    if (QUERN__UNLIKELY(list->is_special))
        return create_specially(world, list, components, values, out_entity);
    return create_plainly(world, list, values, out_entity);
}

/* Creates an entity by a list that differs from the latest one. */
static QUERN__NO_INLINE quern_result create_by_other_list(quern_world *world,
                                                          const quern_component *components,
                                                          const void *const *values, uint32_t count,
                                                          quern_entity *out_entity)
{
    quern__create_list *list = find_cached_list(world, components, count);
    if (list == NULL) {
        quern__archetype *archetype;
        quern_result result =
            quern__world_ensure_related_archetype(world, components, values, count, &archetype);
        if (result != QUERN_OK) return result;
        list = cache_list(world, components, count, archetype);
        if (list == NULL) return create_looked_up(world, components, values, count, archetype, out_entity);
    }
    return create_by_list(world, list, components, values, out_entity);
}

static inline quern_result create_with(quern_world *world, const quern_component *components,
                                       const void *const *values, uint32_t count, quern_entity *out_entity)
{
    quern__create_list *list = world->create_lists.latest;
    if (QUERN__UNLIKELY(list == NULL || !has_components(list, components, count)))
        return create_by_other_list(world, components, values, count, out_entity);
    return create_by_list(world, list, components, values, out_entity);
}

quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                      const void *const *values, uint32_t count, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_create_with";
    if (world == NULL) return quern__fail_null(function, "world");
    if (count > 0 && components == NULL) return quern__fail_null(function, "components");
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return quern__world_leave(world, result);
    quern_entity entity = {0};
    result = create_with(world, components, values, count, &entity);
    if (QUERN__UNLIKELY(result != QUERN_OK))
        return quern__world_leave(world, quern__message_add_call(result, function, NULL));
    if (out_entity != NULL) *out_entity = entity;
    return quern__world_leave(world, QUERN_OK);
}

static quern_result create(quern_world *world, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (out_entity == NULL) return quern__fail_null(function, "out_entity");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    quern__row row;
    quern__archetype *without_components = world->storage.archetypes.items[0];
    result = reserve_slot(&world->storage);
    if (result == QUERN_OK) result = create_raw(&world->storage, without_components, out_entity, &row);
    return quern__in_call(result, function);
}

quern_result quern_entity_create(quern_world *world, quern_entity *out_entity)
{
    if (!quern__world_enter(world, "quern_entity_create")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, create(world, out_entity));
}
