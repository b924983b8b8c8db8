/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BULK_H
#define QUERN_BULK_H

/** @file
 * Many entities in one call: the fastest way to create, destroy and change them. The rules are those of
 * world.h: between frames and in exclusive systems, on one thread, and each call does all or nothing.
 *
 * Errors of all calls: NULL_ARGUMENT, WORLD_LOCKED, UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Creates count entities with the same components. columns[i] points to count consecutive values of
 * components[i], to copy. columns, and each columns[i], may be NULL: those components are constructed
 * (zero bytes without a hook). out_entities is NULL or has room for count handles, which it gets in
 * order. With count 0 nothing happens. Further errors: DUPLICATE_COMPONENT, PROVISIONAL_ENTITY (as
 * quern_entity_set), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_create_many(quern_world *world, const quern_component *components,
                                                const void *const *columns, uint32_t component_count,
                                                uint32_t count, quern_entity *out_entities);

/** Creates count entities like quern_entity_create_many, with values that fill writes. fill is called for
 * one run of rows after another, in order, on this thread.
 *
 * The first row of a view is number view->first of the call. Term i of the view is components[i], to
 * write; its memory holds constructed values (zero bytes without a hook). The world is locked meanwhile,
 * and there are no commands: the context has user_data (quern_context_user_data) and knows which
 * entities are alive. component_count is at most QUERN_MAX_TERMS. Further errors: as there, and
 * INVALID_ARGUMENT. */
QUERN_API quern_result quern_entity_create_filled(quern_world *world, const quern_component *components,
                                                  uint32_t component_count, uint32_t count,
                                                  quern_kernel *fill, void *user_data,
                                                  quern_entity *out_entities);

/** Destroys all entities of a list, in its order; an entity that is in it twice is destroyed once. With
 * count 0 nothing happens. Further errors: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY
 * (for any of them; then nothing is destroyed), TARGET_IN_USE. Entities that are related to those of the
 * list are treated as by quern_entity_destroy; those that end with them end first. */
QUERN_API quern_result quern_entity_destroy_many(quern_world *world, const quern_entity *entities,
                                                 uint32_t count);

/** Destroys every entity that matches, and those that end with them by a relation, these first. Here and
 * below, change filters have no effect, and queries whose up-terms leave rows out are refused
 * (INVALID_ARGUMENT). out_count gets how many were destroyed, and may be NULL. Further
 * errors: TARGET_IN_USE. */
QUERN_API quern_result quern_entity_destroy_matching(quern_query *query, uint64_t *out_count);

/** Enables or disables a component of all entities of a list, in any order; one may be in it twice. Quicker
 * than quern_entity_enable for each of them. With count 0 nothing happens. Further errors: NULL_ENTITY,
 * STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY, COMPONENT_ABSENT (for any of them; then nothing is
 * changed), INVALID_ARGUMENT (it cannot be disabled). */
QUERN_API quern_result quern_entity_enable_many(quern_world *world, const quern_entity *entities,
                                                uint32_t count, quern_component component, bool enabled);

/** Adds a component to every entity that matches and does not have it. value is copied to each; NULL
 * constructs the component. Moves whole columns of chunks, not rows. out_count gets how many received
 * it, and may be NULL. Further errors: PROVISIONAL_ENTITY (as quern_entity_set), TOO_MANY_COMPONENTS,
 * COMPONENT_TOO_LARGE, LIMIT, INVALID_ARGUMENT (a value of a type with a destroy hook and no copy hook). */
QUERN_API quern_result quern_entity_add_matching(quern_query *query, quern_component component,
                                                 const void *value, uint64_t *out_count);

/** Removes a component from every entity that matches and has it. out_count gets how many lost it, and
 * may be NULL. The component of a relation takes the targets from them; this goes entity by entity. Further
 * errors: LIMIT, NAME_TAKEN (some would have the name of a root, or of each other). */
QUERN_API quern_result quern_entity_remove_matching(quern_query *query, quern_component component,
                                                    uint64_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
