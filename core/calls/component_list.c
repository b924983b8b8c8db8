/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/calls/calls_internal.h"
#include "core/storage/required.h"

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

quern_result quern__world_check_target(const quern_world *world, const quern__relation *relation,
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

/* Inserts a component. Linear insertion suffices, since lists are short. */
static quern_result set_insert(listed_components *set, const quern_world *world, quern_component component)
{
    uint16_t index = (uint16_t)quern__component_index(component);
    uint32_t i = set->count;
    for (; i > 0 && set->indices[i - 1] >= index; i--)
        if (set->indices[i - 1] == index)
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "'%s' is listed twice; list each component once",
                               quern__components_type(&world->storage.components, index)->name);
    memmove(&set->indices[i + 1], &set->indices[i], (set->count - i) * sizeof set->indices[0]);
    set->indices[i] = index;
    set->count++;
    return QUERN_OK;
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
    quern_result result = quern__world_check_target(world, relation, value != NULL ? &target : NULL);
    if (result == QUERN_OK) result = set_insert(set, world, component);
    if (result != QUERN_OK || !relation->has_levels) return result;
    const uint32_t level = quern__relation_source_level(relation, quern_entity_index(target));
    const uint32_t tag = quern__relation_tag(relation, level);
    return set_insert(set, world, quern__component_handle(&storage->components, tag));
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
    return QUERN_OK;
}

quern_result quern__world_ensure_archetype(quern_world *world, const quern_component *components,
                                           uint32_t count, quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, NULL, false, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_ensure_archetype(&world->storage, set.indices, set.count, out_archetype);
}

quern_result quern__world_ensure_related_archetype(quern_world *world, const quern_component *components,
                                                   const void *const *values, uint32_t count,
                                                   quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, values, true, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_ensure_archetype(&world->storage, set.indices, set.count, out_archetype);
}

quern_result quern__world_check_provisional(const quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t component_count,
                                            uint32_t count, const char *commands)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < component_count && values != NULL && result == QUERN_OK; i++) {
        const uint32_t index = quern__component_index(components[i]);
        if (values[i] != NULL && !quern__components_is_managed(&world->storage.components, index))
            result = quern__type_check_provisional(
                quern__components_type(&world->storage.components, index), values[i], count, commands);
    }
    return result;
}
