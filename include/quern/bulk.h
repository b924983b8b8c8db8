/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BULK_H
#define QUERN_BULK_H

/** @file
 * Functions that create, destroy and change many entities in one call, faster than single calls. The rules
 * are those of world.h: between frames and in exclusive systems, on one thread. Each call succeeds
 * completely or changes nothing.
 *
 * Errors of all functions: NULL_ARGUMENT, WORLD_LOCKED, UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Creates count entities with the same components. columns[i] points to an array of count values of
 * components[i], which are copied. columns, and each columns[i], may be NULL: the components concerned are
 * then constructed (zero bytes without a hook). out_entities is NULL or has room for count handles, which
 * are stored in order. A count of 0 does nothing. Further errors: DUPLICATE_COMPONENT, PROVISIONAL_ENTITY
 * (as quern_entity_set), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_create_many(quern_world *world, const quern_component *components,
                                                const void *const *columns, uint32_t component_count,
                                                uint32_t count, quern_entity *out_entities);

/** Creates count entities like quern_entity_create_many, with values that the callback `fill` writes. fill
 * is called on this thread for one view after another, in order.
 *
 * The number of a view's first row within the call is view->fill_index. Term i of the view is components[i], to
 * write; its values are already constructed (zero bytes without a hook). The world is locked meanwhile,
 * and commands are not available: the context offers quern_context_user_data and quern_context_is_alive
 * only. component_count is at most QUERN_MAX_TERMS. Further errors: those of quern_entity_create_many, and
 * INVALID_ARGUMENT. */
QUERN_API quern_result quern_entity_create_filled(quern_world *world, const quern_component *components,
                                                  uint32_t component_count, uint32_t count,
                                                  quern_view_callback *fill, void *user_data,
                                                  quern_entity *out_entities);

/** Destroys all entities of a list, in its order. An entity may be listed more than once. A count of 0
 * does nothing. Sources of these entities are treated as by quern_entity_destroy, and are destroyed before
 * their targets. Further errors, with nothing destroyed: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY (for any entity of the list), TARGET_IN_USE. */
QUERN_API quern_result quern_entity_destroy_many(quern_world *world, const quern_entity *entities,
                                                 uint32_t count);

/** Destroys every entity that matches a query, and before it the sources that its destruction destroys by
 * the policies of relations. In this function and those below, change filters have no effect, and queries
 * that leave out single rows are an error (INVALID_ARGUMENT): those with a target term, with an up-term
 * that is not optional, or with a term that requires a component to be enabled or disabled. out_count,
 * which may be NULL, receives the number of destroyed entities. Further errors: TARGET_IN_USE. */
QUERN_API quern_result quern_entity_destroy_matching(quern_query *query, uint64_t *out_count);

/** Enables or disables a component of all entities of a list. An entity may be listed more than once, and
 * the order has no effect. Faster than single calls of quern_entity_set_component_enabled. A count of 0 does nothing.
 * Further errors, with nothing changed: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY,
 * COMPONENT_ABSENT (for any entity of the list), INVALID_ARGUMENT (the component cannot be disabled). */
QUERN_API quern_result quern_entity_set_component_enabled_many(quern_world *world,
                                                               const quern_entity *entities, uint32_t count,
                                                               quern_component component, bool enabled);

/** Adds a component to every entity that matches a query and lacks it. value is copied to each entity;
 * with NULL, the component is constructed. Moves whole columns of chunks instead of rows. out_count, which
 * may be NULL, receives the number of changed entities. Further errors: PROVISIONAL_ENTITY (as
 * quern_entity_set), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT, INVALID_ARGUMENT (a value of a type
 * with a destroy hook but no copy hook). */
QUERN_API quern_result quern_entity_add_matching(quern_query *query, quern_component component,
                                                 const void *value, uint64_t *out_count);

/** Removes a component from every entity that matches a query and has it. out_count, which may be NULL,
 * receives the number of changed entities. Removing the component of a relation unrelates the entities,
 * one by one. Further errors: LIMIT, SIBLING_NAME_TAKEN (an entity would have the name of another root, in
 * quern_world_parent). */
QUERN_API quern_result quern_entity_remove_matching(quern_query *query, quern_component component,
                                                    uint64_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
