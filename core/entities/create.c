/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls that create one entity, and those that destroy many. Every step that may fail precedes the first change.
 *
 * Creating: the world caches the latest lists of components and their archetypes (quern__create_lists in
 * world_internal.h). A list with one relation has an archetype per level. Lists with several relations or more than
 * QUERN__CREATE_LIST_COMPONENTS components are not cached.
 *
 * In order: the archetype of a list, cached lists, rows, entities with a target, the calls that create; prefetching, the
 * call that destroys a list, cascades, the call that destroys all matches of a query. */
#include "core/entities/entities_internal.h"

#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"
#include "core/storage/type_internal.h"

#include <quern/bulk.h>

/* ---------------------------------------------------------------------------------- archetypes of lists */

quern_result quern__world_fail_managed(const quern_world *world, quern_component component)
{
    const quern__component *managed =
        world->storage.components.list.items[quern__component_index(component)];
    if (managed->managed.relation != NULL && managed->managed.relation->is_many)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is the tag of a relation with several targets per source; add targets by "
                           "quern_entity_relate or quern_commands_relate",
                           managed->type.name);
    if (managed->managed.relation != NULL && managed->managed.level == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' is the component of a relation; relate each entity by quern_entity_relate, "
            "quern_entity_create_with or commands",
            managed->type.name);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "Quern maintains '%s' itself; it cannot be added, set or removed directly",
                       managed->type.name);
}

/* Checks the value of a relation's component: the handle of a living target. Errors: NULL_ARGUMENT,
 * those of quern__entities_check. */
static quern_result world_check_target(const quern_world *world, const quern__relation *relation,
                                       const quern_entity *value)
{
    const char *name = quern__relation_name(&world->storage, relation);
    if (value == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                           "relation '%s' needs a value: the target, a quern_entity", name);
    quern_result result = quern__entities_check(&world->storage.entities, *value);
    return result != QUERN_OK ? quern__message_add_call(result, name, NULL) : QUERN_OK;
}

/* A sorted set of component indices, with room for level tags and required components. */
typedef struct listed_components {
    uint16_t indices[QUERN_MAX_COMPONENTS];
    uint32_t count;
} listed_components;

static quern_result set_insert(listed_components *set, const quern_world *world, quern_component component)
{
    const uint32_t index = quern__component_index(component);
    if (quern__components_insert(set->indices, &set->count, index)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT, "'%s' is listed twice; list each component once",
                       quern__components_type(&world->storage.components, index)->name);
}

/* Inserts the component of a relation and the tag of the level below the target. value: the target. */
static quern_result insert_relation(listed_components *set, const quern_world *world,
                                    quern_component component, const quern_entity *value)
{
    const quern__storage *storage = &world->storage;
    const quern__relation *relation = quern__relation_of(storage, (quern_relation){component.bits});
    if (relation == NULL || relation->is_many) return quern__world_fail_managed(world, component);
    quern_entity target = {0};
    if (value != NULL) memcpy(&target, value, sizeof target); /* values need not be aligned */
    quern_result result = world_check_target(world, relation, value != NULL ? &target : NULL);
    if (result == QUERN_OK) result = set_insert(set, world, component);
    if (result != QUERN_OK || !relation->has_levels) return result;
    const uint32_t level = quern__relation_source_level(relation, quern_entity_index(target));
    const uint32_t tag = quern__relation_tag(relation, level);
    return set_insert(set, world, quern__component_handle(&storage->components, tag));
}

/* Checks that values of edges are listed with the component of their relation. */
static quern_result check_edge_values(const quern_world *world, const quern_component *list, uint32_t count)
{
    const quern__components *components = &world->storage.components;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern__component_index(list[i]),
                       owner = components->list.items[index]->edge_owner;
        if (owner != 0 && !quern__list_has(list, count, owner - 1))
            return quern__components_fail_edge_value(components, index);
    }
    return QUERN_OK;
}

/* Fills the set from a list, and with what the components require. values and its elements may be NULL. */
static quern_result collect_set(const quern_world *world, const quern_component *components,
                                const void *const *values, bool allows_relations, uint32_t count,
                                listed_components *set)
{
    if (count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(QUERN_ERROR_TOO_MANY_COMPONENTS,
                           "a list of %u components; the limit is %d "
                           "(QUERN_MAX_ENTITY_COMPONENTS)",
                           count, QUERN_MAX_ENTITY_COMPONENTS);
    set->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern_result result = quern__components_check(&world->storage.components, components[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "component", i);
        if (!quern__components_is_managed(&world->storage.components,
                                          quern__component_index(components[i])))
            result = set_insert(set, world, components[i]);
        else if (allows_relations)
            result = insert_relation(set, world, components[i], values != NULL ? values[i] : NULL);
        else
            result = quern__world_fail_managed(world, components[i]);
        if (result != QUERN_OK) return result;
    }
    set->count = quern__components_complete(&world->storage.components, set->indices, set->count);
    return world->storage.components.has_requirements ? check_edge_values(world, components, count)
                                                      : QUERN_OK;
}

quern_result quern__world_ensure_archetype(quern_world *world, const quern_component *components,
                                           uint32_t count, quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, NULL, false, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_ensure_archetype(&world->storage, set.indices, set.count, out_archetype);
}

/* Performs quern__world_ensure_archetype for a list that may contain components of relations. The value of such a
 * component is the target; the archetype also has the tag of the level below the target. values and its elements
 * may be NULL. Further errors: those of world_check_target. */
static quern_result world_ensure_related_archetype(quern_world *world, const quern_component *components,
                                                   const void *const *values, uint32_t count,
                                                   quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, values, true, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_ensure_archetype(&world->storage, set.indices, set.count, out_archetype);
}

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
        list->indices[i] = (uint16_t)quern__component_index(components[i]);
        list->has_handles |=
            type->has_entity_fields && !quern__components_is_managed(&world->storage.components,
                                                                     quern__component_index(components[i]));
        list->types[i] = type->hooks.copy != NULL || type->hooks.move != NULL ? type : NULL;
    }
    list->required_count = required_count;
    list->is_special = list->has_handles || required_count > 0 || archetype->has_hooks;
    memcpy(list->required, required, sizeof list->required);
    if (relation == NULL) list->archetypes[0] = archetype;
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
    *out_row = quern__archetype_row(archetype, location);
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
                                   quern__archetype *archetype, const void *const *values, quern__row row)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const quern__column_position *column = &archetype->column_positions[list->indices[i]];
        const void *value = values != NULL ? values[i] : NULL;
        if (column->offset_lines == 0) continue;
        if (QUERN__LIKELY(value != NULL && list->types[i] == NULL))
            quern__copy_value(quern__row_value(column, row), value, column->size_bytes);
        else
            quern__fill_component(&world->storage, archetype, quern__row_location(row), list->indices[i],
                                  value, 1);
    }
}

QUERN__ALWAYS_INLINE quern_result create_in(quern_world *world, const quern__create_list *list,
                                            quern__archetype *archetype, const void *const *values,
                                            quern_entity *out_entity)
{
    quern__row row = {0};
    quern_result result = create_raw(&world->storage, archetype, out_entity, &row);
    if (QUERN__LIKELY(result == QUERN_OK)) fill_row(world, list, archetype, values, row);
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

/* Appends a source to the list of the target and sets the source's level. Precondition: the source has no links. */
static inline void links_append(quern__links *links, uint32_t source, uint32_t target, uint32_t level)
{
    quern__link_node *target_node = quern__links_at(links, target);
    const uint32_t previous = target_node->last;
    links->version++;
    *quern__links_at(links, source) = (quern__link_node){.target = target,
                                                         .first = QUERN__SLOT_NONE,
                                                         .last = QUERN__SLOT_NONE,
                                                         .next = QUERN__SLOT_NONE,
                                                         .previous = previous,
                                                         .level = level};
    target_node->count++;
    target_node->last = source;
    *quern__links_side(links, target, previous, offsetof(quern__link_node, next),
                       offsetof(quern__link_node, first)) = source;
    if (QUERN__LIKELY(links->touched.items == NULL)) return;
    quern__links_touch(links, source);
    quern__links_touch(links, target);
    quern__links_touch(links, previous);
}

static inline void link_new(quern__relation *relation, quern_entity source, quern_entity target,
                            uint32_t level)
{
    quern__links *links = &relation->links;
    const uint32_t slot = quern_entity_index(source), to = quern_entity_index(target);
    if (QUERN__LIKELY(relation->is_ordered)) {
        links_append(links, slot, to, level);
        return;
    }
    quern__links_link(links, slot, to, quern__links_at(links, to)->first);
    quern__links_set_level(links, slot, level);
}

/* Whether creating an entity with this target needs no preparation by prepare_related: the archetype is
 * cached, and a slot and the pages of links exist. */
static inline bool is_prepared(const quern__storage *storage, const quern__links *links,
                               quern_entity target, const quern__archetype *archetype)
{
    return archetype != NULL && quern__entities_has_unreserved_slot(&storage->entities) &&
           quern__links_has_page(links, quern_entity_index(target)) &&
           quern__links_has_page(links, quern__entities_next_slot(&storage->entities));
}

static QUERN__SLOW_PATH quern_result prepare_related(quern_world *world, const quern__create_list *list,
                                                     const void *const *values, quern_entity target,
                                                     quern__archetype **archetype)
{
    quern_result result = QUERN_OK;
    if (*archetype == NULL)
        result = world_ensure_related_archetype(world, list->components, values, list->count, archetype);
    if (result == QUERN_OK) result = reserve_slot(&world->storage);
    return result == QUERN_OK ? reserve_links(&world->storage, list->relation, target) : result;
}

/* Creates an entity by a cached list with a relation. */
static quern_result create_related(quern_world *world, quern__create_list *list, const void *const *values,
                                   quern_entity *out_entity)
{
    quern__relation *relation = list->relation;
    if (QUERN__UNLIKELY(values == NULL || values[list->relation_position] == NULL))
        return world_check_target(world, relation, NULL);
    const quern_entity target = target_of(values[list->relation_position]);
    if (QUERN__UNLIKELY(quern__entities_find(&world->storage.entities, target) == NULL))
        return world_check_target(world, relation, &target);
    const uint32_t level = quern__relation_source_level(relation, quern_entity_index(target));
    quern__archetype **archetype = &list->archetypes[level];
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(!is_prepared(&world->storage, &relation->links, target, *archetype)))
        result = prepare_related(world, list, values, target, archetype);
    if (QUERN__LIKELY(result == QUERN_OK)) result = create_in(world, list, *archetype, values, out_entity);
    if (QUERN__LIKELY(result == QUERN_OK)) link_new(relation, *out_entity, target, level);
    return result;
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
    quern__hooks_after(storage);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- the calls */

static inline quern_result create_plainly(quern_world *world, quern__create_list *list,
                                          const void *const *values, quern_entity *out_entity)
{
    if (list->relation != NULL) return create_related(world, list, values, out_entity);
    const quern_result result = reserve_slot(&world->storage);
    return QUERN__LIKELY(result == QUERN_OK)
               ? create_in(world, list, list->archetypes[0], values, out_entity)
               : result;
}

/* Creates an entity by a cached list with handles to be checked, with required components or with entity hooks. */
static QUERN__NO_INLINE quern_result create_specially(quern_world *world, quern__create_list *list,
                                                      const quern_component *components,
                                                      const void *const *values, quern_entity *out_entity)
{
    quern_result result = QUERN_OK;
    if (list->has_handles) result = check_handles(world, components, values, list->count);
    if (result == QUERN_OK) result = create_plainly(world, list, values, out_entity);
    if (result != QUERN_OK) return result;
    const quern__record *record =
        quern__entities_record(&world->storage.entities, quern_entity_index(*out_entity));
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    for (uint32_t i = 0; i < list->required_count; i++)
        quern__fill_component(&world->storage, archetype, record->location, list->required[i], NULL, 1);
    quern__hooks_after(&world->storage);
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
        quern_result result = world_ensure_related_archetype(world, components, values, count, &archetype);
        if (result != QUERN_OK) return result;
        list = cache_list(world, components, count, archetype);
        if (list == NULL) return create_looked_up(world, components, values, count, archetype, out_entity);
    }
    return create_by_list(world, list, components, values, out_entity);
}

quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                      const void *const *values, uint32_t count, quern_entity *out_entity)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(components, count);
    quern_entity entity = {0};
    quern__create_list *list = world->create_lists.latest;
    const quern_result result = QUERN__UNLIKELY(list == NULL || !has_components(list, components, count))
                                    ? create_by_other_list(world, components, values, count, &entity)
                                    : create_by_list(world, list, components, values, &entity);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__message_add_call(result, __func__, NULL);
    quern__rows_gather_if_large(&world->storage); /* not before: values may be in the storage */
    if (out_entity != NULL) *out_entity = entity;
    return QUERN_OK;
}

quern_result quern_entity_create(quern_world *world, quern_entity *out_entity)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(out_entity);
    quern__row row;
    quern__archetype *without_components = world->storage.archetypes.items[0];
    quern_result result = reserve_slot(&world->storage);
    if (result == QUERN_OK) result = create_raw(&world->storage, without_components, out_entity, &row);
    if (result == QUERN_OK) quern__rows_gather_if_large(&world->storage);
    return quern__in_call(result, __func__);
}

/* ------------------------------------------------------------------------------------ prefetching
 *
 * In an unordered list, the record and the row of each entity are far in memory from those of the entity before. They
 * are prefetched a number of entities ahead: first the record, then the row, which the record locates. Entities
 * in the order of slots need no prefetching, since the processor predicts these accesses. */
enum { DESTROY_RECORDS_AHEAD = 16, DESTROY_ROWS_AHEAD = 8, NEAR_SLOTS = 4 };

static inline bool is_far(uint32_t slot, uint32_t slot_before)
{
    return slot - slot_before + NEAR_SLOTS > 2 * NEAR_SLOTS;
}

static inline void prefetch_record(const quern__storage *storage, uint32_t slot)
{
    QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, slot));
}

/* Prefetches the handle and all values of a row. Destroying the entity overwrites them with the last row. */
static inline void prefetch_row(const quern__storage *storage, uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    if (record->location == 0) return; /* destroyed already: the list contains it twice */
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    QUERN__PREFETCH_WRITE(quern__row_handle(archetype, quern__archetype_row(archetype, record->location)));
    for (uint32_t i = 0; i < archetype->column_count; i++)
        QUERN__PREFETCH_WRITE(quern__column_at(&archetype->columns[i], record->location));
}

/* -------------------------------------------------------------------------------- lists of entities */

static QUERN__SLOW_PATH quern_result fail_listed(const quern__storage *storage,
                                                 const quern_entity *entities, uint32_t i)
{
    const quern_result result = quern__entities_check(&storage->entities, entities[i]);
    return quern__in_call(quern__message_add_element(result, "element", i), "quern_entity_destroy_many");
}

/* Prefetches for entities later in the list; the first of `count` entities is destroyed next. */
static inline void prefetch_later(const quern__storage *storage, const quern_entity *entities,
                                  uint32_t count)
{
    const uint32_t record = quern_entity_index(
                       entities[count > DESTROY_RECORDS_AHEAD ? DESTROY_RECORDS_AHEAD : 0]),
                   row = quern_entity_index(entities[count > DESTROY_ROWS_AHEAD ? DESTROY_ROWS_AHEAD : 0]);
    if (count > DESTROY_RECORDS_AHEAD &&
        is_far(record, quern_entity_index(entities[DESTROY_RECORDS_AHEAD - 1])))
        prefetch_record(storage, record);
    if (count > DESTROY_ROWS_AHEAD && is_far(row, quern_entity_index(entities[DESTROY_ROWS_AHEAD - 1])))
        prefetch_row(storage, row);
}

static inline void destroy_living(quern__storage *storage, quern_entity entity, quern__record *record)
{
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (QUERN__LIKELY(archetype->is_plain && !quern__record_may_retire_or_wrap(record)))
        quern__row_leave_plain(storage, archetype, entity, record);
    else
        quern__row_leave(storage, entity);
}

/* ------------------------------------------------------------------------------- with cascades */

/* Destroys living entities, given by slots. */
static void destroy_slots(quern__storage *storage, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i + DESTROY_RECORDS_AHEAD < count &&
            is_far(slots[i + DESTROY_RECORDS_AHEAD], slots[i + DESTROY_RECORDS_AHEAD - 1]))
            prefetch_record(storage, slots[i + DESTROY_RECORDS_AHEAD]);
        if (i + DESTROY_ROWS_AHEAD < count &&
            is_far(slots[i + DESTROY_ROWS_AHEAD], slots[i + DESTROY_ROWS_AHEAD - 1]))
            prefetch_row(storage, slots[i + DESTROY_ROWS_AHEAD]);
        destroy_living(storage, quern__entity_of_slot(storage, slots[i]),
                       quern__entities_record(&storage->entities, slots[i]));
    }
}

/* Calls on_remove for living entities that are about to be destroyed, given by slots. */
static void call_hooks(quern__storage *storage, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const quern__record *record = quern__entities_record(&storage->entities, slots[i]);
        quern__hooks_before_leaving(storage, quern__storage_archetype_of(storage, record), NULL,
                                    record->location, 1);
    }
}

/* Calls on_remove for a cascade, in the order in which its entities will be destroyed. */
static void call_hooks_of_cascade(quern__storage *storage, const quern__cascade *cascade)
{
    if (!quern__hooks_are_used(storage)) return;
    for (uint32_t i = cascade->slots.count; i-- > cascade->requested_count;)
        call_hooks(storage, &cascade->slots.items[i], 1);
    call_hooks(storage, cascade->slots.items, cascade->requested_count);
}

/* Destroys the entities of a cascade that were not requested, in reverse order: sources before targets. */
static void destroy_cascaded(quern__storage *storage, quern__cascade *cascade)
{
    uint32_t *slots = cascade->slots.items + cascade->requested_count;
    const uint32_t count = cascade->slots.count - cascade->requested_count;
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint32_t other = slots[count - 1 - i];
        slots[count - 1 - i] = slots[i];
        slots[i] = other;
    }
    destroy_slots(storage, slots, count);
}

/* Completes a cascade that lists the requested entities: finds the others, reserves all memory, detaches sources that
 * survive and removes all links. Rows are reserved last, since only they would have to be unreserved on failure. */
static quern_result close_and_unlink(quern__storage *storage, quern__cascade *cascade)
{
    quern__leaving_begin(storage);
    quern_result result = quern__cascade_close(cascade, storage);
    for (uint32_t i = 0;
         i < cascade->slots.count && result == QUERN_OK && storage->reactions->removed_count > 0; i++) {
        const quern__record *record = quern__entities_record(&storage->entities, cascade->slots.items[i]);
        result = quern__leaving_reserve(storage, quern__storage_archetype_of(storage, record), NULL, 1);
    }
    if (result == QUERN_OK) result = quern__cascade_detach(cascade, storage);
    if (result == QUERN_OK) call_hooks_of_cascade(storage, cascade);
    if (result == QUERN_OK) quern__cascade_unlink(cascade, storage);
    return result;
}

quern_result quern__world_destroy_cascade(quern_world *world, const quern_entity *entities, uint32_t count)
{
    quern__storage *storage = &world->storage;
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = quern__cascade_begin(cascade, storage);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = quern__cascade_add(cascade, storage, quern_entity_index(entities[i]));
    if (result == QUERN_OK) result = close_and_unlink(storage, cascade);
    if (result == QUERN_OK) {
        destroy_cascaded(storage, cascade);
        destroy_slots(storage, cascade->slots.items, cascade->requested_count);
        quern__hooks_after(storage); /* sources that survive have lost values of edges */
    }
    quern__cascade_end(cascade);
    return result;
}

quern_result quern_entity_destroy_many(quern_world *world, const quern_entity *entities, uint32_t count)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(entities, count);
    quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < count; i++)
        if (QUERN__UNLIKELY(quern__entities_find(&storage->entities, entities[i]) == NULL))
            return fail_listed(storage, entities, i);
    if (storage->has_attachments || quern__hooks_are_used(storage)) /* hooks: each entity once */
        return quern__in_call(quern__world_destroy_cascade(world, entities, count), __func__);
    /* copies for reactions; an entity that is in the list twice counts twice */
    quern_result result = QUERN_OK;
    quern__leaving_begin(storage);
    for (uint32_t i = 0; i < count && result == QUERN_OK && storage->reactions->removed_count > 0; i++) {
        const quern__record *record =
            quern__entities_record(&storage->entities, quern_entity_index(entities[i]));
        result = quern__leaving_reserve(storage, quern__storage_archetype_of(storage, record), NULL, 1);
    }
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    for (uint32_t i = 0; i < count; i++) {
        prefetch_later(storage, entities + i, count - i);
        quern__record *record = quern__entities_find(&storage->entities, entities[i]);
        if (QUERN__LIKELY(record != NULL)) /* NULL: the list contains the entity twice */
            destroy_living(storage, entities[i], record);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- whole matches */

static quern_result add_rows(quern__cascade *cascade, const quern__storage *storage,
                             const quern__archetype *archetype)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern_entity *handles =
            quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[i]));
        for (uint32_t row = 0; row < archetype->slots[i].row_count && result == QUERN_OK; row++)
            result = quern__cascade_add(cascade, storage, quern_entity_index(handles[row]));
    }
    return result;
}

/* Destroys the entities of all matches. Returns their number. */
static uint64_t destroy_matches(const quern_query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        quern__archetype *archetype = query->matches.items[i].archetype;
        count += quern__archetype_row_count(archetype);
        quern__rows_leave_all(query->storage, archetype);
    }
    return count;
}

/* Destroys all matches and their cascade. If sources lost their target and survived, they may have moved to an
 * archetype that matches. The requested entities are then destroyed one by one instead of whole archetypes. */
static quern_result destroy_matches_and_cascade(const quern_query *query, uint64_t *out_count)
{
    quern__storage *storage = query->storage;
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = quern__cascade_begin(cascade, storage);
    for (uint32_t i = 0; i < query->matches.count && result == QUERN_OK; i++)
        result = add_rows(cascade, storage, query->matches.items[i].archetype);
    if (result == QUERN_OK) result = close_and_unlink(storage, cascade);
    if (result == QUERN_OK) {
        *out_count = cascade->slots.count;
        destroy_cascaded(storage, cascade);
        if (cascade->detached.count > 0)
            destroy_slots(storage, cascade->slots.items, cascade->requested_count);
        else
            destroy_matches(query);
        quern__hooks_after(storage);
    }
    quern__cascade_end(cascade);
    return result;
}

quern_result quern_entity_destroy_matching(quern_query *query, uint64_t *out_count)
{
    QUERN__ENTER(query != NULL ? query->world : NULL);
    uint64_t count = 0;
    quern_result result = quern__query_prepare(query, __func__);
    if (result != QUERN_OK) return result;
    if (query->storage->has_attachments || quern__hooks_are_used(query->storage))
        result = destroy_matches_and_cascade(query, &count);
    else {
        quern__leaving_begin(query->storage); /* copies of all rows for reactions */
        for (uint32_t i = 0; i < query->matches.count && result == QUERN_OK; i++) {
            const quern__archetype *archetype = query->matches.items[i].archetype;
            result = quern__leaving_reserve(query->storage, archetype, NULL,
                                            (uint32_t)quern__archetype_row_count(archetype));
        }
        if (result == QUERN_OK) count = destroy_matches(query);
    }
    if (result == QUERN_OK && out_count != NULL) *out_count = count;
    return quern__in_call(result, __func__);
}
