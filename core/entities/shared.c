/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Values that instances of prefabs share: entities that have them, and values of single instances. Shared values are made
 * of what the world has: a relation to a disabled entity, and up-terms. Histories, archives and deltas carry both. */
#include "core/entities/entities_internal.h"

#include "core/relations/relation_internal.h"

#include <quern/enabled.h>
#include <quern/prefab.h>

quern_result quern_shared_create(quern_world *world, const quern_prefab_value *values, uint32_t value_count,
                                 quern_entity *out_shared)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(values, value_count);
    QUERN__NEED(out_shared);
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS + 1];
    const void *list[QUERN_MAX_ENTITY_COMPONENTS + 1];
    if (value_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_shared_create: the list has no values: there is nothing to share");
    if (value_count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "quern_shared_create: a list of %u values; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)",
            value_count, QUERN_MAX_ENTITY_COMPONENTS);
    for (uint32_t i = 0; i < value_count; i++) {
        if (values[i].is_disabled)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "quern_shared_create: value %u is to be disabled, which shared values cannot be: leave "
                "is_disabled false",
                i);
        components[i] = values[i].component;
        list[i] = values[i].value;
    }
    const quern_result result = quern__world_register_disabled(world);
    if (result != QUERN_OK) return result;
    components[value_count] = quern_world_disabled_tag(world);
    list[value_count] = NULL;
    for (uint32_t i = 0; i < value_count; i++)
        if (components[i].bits == components[value_count].bits)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "quern_shared_create: value %u is the tag of disabled entities, which the entity has "
                "anyway: remove it",
                i);
    return quern__in_call(quern_entity_create_with(world, components, list, value_count + 1, out_shared),
                          __func__);
}

/* Returns the entity whose values an entity shares; null if there is none. */
static quern_entity shared_of(const quern_world *world, quern_entity entity)
{
    const quern__relation *relation = quern__relation_find(&world->storage, quern__shared_def.name);
    if (relation == NULL || !quern__relation_has_definition(relation, &quern__shared_def))
        return quern_entity_null();
    return quern__entity_of_link(&world->storage,
                                 quern__links_target(&relation->links, quern_entity_index(entity)));
}

static quern_result check(quern_world *world, quern_entity entity, quern_component component)
{
    const quern_result result = quern__entities_check(&world->storage.entities, entity);
    return result == QUERN_OK ? quern__components_check(&world->storage.components, component) : result;
}

static void *value_of(quern_world *world, quern_entity shared, quern_component component)
{
    const quern__record *record = quern__entities_find(&world->storage.entities, shared);
    if (record == NULL) return NULL;
    return quern__storage_value(quern__storage_archetype_of(&world->storage, record), record->location,
                                quern__component_index(component));
}

const void *quern_entity_get_shared(quern_world *world, quern_entity entity, quern_component component)
{
    QUERN__NEED_OR(world, NULL);
    if (quern__world_check_readable(world, __func__) != QUERN_OK) return NULL;
    if (quern__in_call(check(world, entity, component), __func__) != QUERN_OK) return NULL;
    return value_of(world, shared_of(world, entity), component);
}

/* Makes the entity share values with a copy of `shared` that has another value of a component. The copy is a child of the
 * entity. The page of its link is reserved first, so only the clone can fail: the entity has a target already, and its row
 * does not move. A copy that had to be destroyed again would have called hooks. */
static quern_result share_copy(quern_world *world, quern_entity entity, quern_entity shared,
                               quern_component component, const void *value)
{
    quern_entity copy;
    quern__storage *storage = &world->storage;
    quern__relation *relation = quern__relation_find(storage, quern__shared_def.name);
    const quern_spawn_def below = {.parent = entity,
                                   .overrides = {{.component = component, .column = value}}};
    if (!quern__links_reserve(&relation->links, &storage->allocator,
                              quern__entities_next_slot(&storage->entities)))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
    const quern_result result = quern_entity_clone(world, shared, &below, &copy);
    if (result != QUERN_OK) return result;
    return quern_entity_relate(world, entity, quern__relation_handle(storage, relation), copy);
}

quern_result quern_entity_override_shared(quern_world *world, quern_entity entity,
                                          quern_component component, const void *value)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(value);
    quern_result result = check(world, entity, component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const uint32_t index = quern__component_index(component);
    const quern__type *type = quern__components_type(&world->storage.components, index);
    const quern_entity shared = shared_of(world, entity);
    if (type->size_bytes == 0 || quern__components_is_managed(&world->storage.components, index))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_entity_override_shared: '%s' has no value of its own: it is a tag, or the world "
            "manages it",
            type->name);
    if (value_of(world, shared, component) == NULL)
        return quern__fail(QUERN_ERROR_COMPONENT_ABSENT,
                           "quern_entity_override_shared: entity %u:%u does not share '%s': relate it in "
                           "quern_world_shared, or use quern_entity_set for a value of its own",
                           quern_entity_index(entity), quern_entity_generation(entity), type->name);
    result = quern__type_check_provisional(type, value, 1, "final handles");
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const bool is_own =
        quern__parent_slot(&world->storage, quern_entity_index(shared)) == quern_entity_index(entity);
    result = is_own ? quern_entity_set(world, shared, component, value)
                    : share_copy(world, entity, shared, component, value);
    return quern__in_call(result, __func__);
}
