/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Computing the current world of an entity, and changing its parent. */

#include "kit/transform_internal.h"

#include <string.h>

/* Returns the world transform that applies to children of an entity: computed from the current locals if the entity
 * has a local, otherwise its stored world. NULL if the entity is null or has no world. */
static const void *world_for_children(const quern_transform *transform, quern_entity entity,
                                      quern__transform_value *out_world)
{
    if (quern_entity_is_null(entity)) return NULL;
    const void *world = quern_getter_get(transform->worlds, entity);
    if (world == NULL || quern_getter_get(transform->locals, entity) == NULL) return world;
    return quern_transform_compute(transform, entity, out_world) == QUERN_OK ? out_world : NULL;
}

/* Multiplies locals from the entity upwards. Ends at a root, below a parent without a world, or with the world of a
 * parent without a local. */
quern_result quern_transform_compute(const quern_transform *transform, quern_entity entity, void *out_world)
{
    static const char function[] = "quern_transform_compute";
    if (transform == NULL) return quern__transform_null(function, "transform");
    if (out_world == NULL) return quern__transform_null(function, "out_world");
    const quern__transform_kind *kind = transform->kind;
    const void *local = quern_getter_get(transform->locals, entity);
    if (local == NULL) /* fails with the entity's error, or because it lacks a local */
        return quern_entity_mark_changed(transform->owner, entity, transform->local);
    quern__transform_value product, outer;
    kind->place(NULL, local, &product);
    while (local != NULL) {
        entity = quern_entity_target(transform->owner, entity, transform->parent);
        const void *world =
            quern_entity_is_null(entity) ? NULL : quern_getter_get(transform->worlds, entity);
        if (world == NULL) break;
        local = quern_getter_get(transform->locals, entity);
        if (local != NULL) kind->place(NULL, local, &outer);
        kind->multiply(local != NULL ? &outer : world, &product, &product);
    }
    memcpy(out_world, &product, kind->world.size_bytes);
    return QUERN_OK;
}

/* Computes the local that keeps an entity at its place in the world. parent_world may be NULL. */
static quern_result find_local(const quern_transform *transform, const void *parent_world,
                               const void *world, quern__transform_value *out_local, const char *function)
{
    if (transform->kind->split(parent_world, world, out_local)) return QUERN_OK;
    return quern_error_set(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: no local keeps the entity in place: its new parent is flat (a scale of 0 of its own or of an "
        "ancestor), or a number is not finite; correct that, or let the entity move",
        function);
}

quern_result quern_transform_set_parent(quern_transform *transform, quern_entity entity,
                                        quern_entity parent, bool keep_world)
{
    static const char function[] = "quern_transform_set_parent";
    if (transform == NULL) return quern__transform_null(function, "transform");
    quern_world *owner = transform->owner;
    quern__transform_value world, parent_world, local;
    quern_result result = QUERN_OK;
    if (keep_world) {
        result = quern_transform_compute(transform, entity, &world);
        if (result != QUERN_OK) return result;
        result = find_local(transform, world_for_children(transform, parent, &parent_world), &world, &local,
                            function);
        if (result != QUERN_OK) return result;
    }
    if (!quern_entity_is_null(parent))
        result = quern_entity_relate(owner, entity, transform->parent, parent);
    else
        result = quern_entity_unrelate(owner, entity, transform->parent);
    if (result == QUERN_ERROR_COMPONENT_ABSENT && quern_entity_is_null(parent)) result = QUERN_OK;
    /* Setting cannot fail: the component is present, and its values are plain bytes. */
    return result == QUERN_OK && keep_world ? quern_entity_set(owner, entity, transform->local, &local)
                                            : result;
}

quern_result quern_transform_record_parent(const quern_transform *transform, quern_commands *commands,
                                           quern_entity entity, quern_entity parent, const void *world,
                                           const void *parent_world)
{
    static const char function[] = "quern_transform_record_parent";
    if (transform == NULL) return quern__transform_null(function, "transform");
    quern__transform_value local;
    quern_result result = QUERN_OK;
    if (world != NULL) result = find_local(transform, parent_world, world, &local, function);
    if (result != QUERN_OK) return result;
    result = quern_entity_is_null(parent)
                 ? quern_commands_unrelate(commands, entity, transform->parent)
                 : quern_commands_relate(commands, entity, transform->parent, parent);
    if (result != QUERN_OK || world == NULL) return result;
    return quern_commands_set(commands, entity, transform->local, &local);
}
