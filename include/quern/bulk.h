/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BULK_H
#define QUERN_BULK_H

/* Many entities in one call: the fastest way to create, destroy and change them. The rules are those of
 * world.h: between frames and in exclusive systems, on one thread, and each call is all or nothing.
 *
 * Common errors: NULL_ARGUMENT, WORLD_LOCKED, UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates count entities with the same components. columns[i]: count values of components[i], one behind
 * the other, to copy; columns, and each columns[i], may be NULL: those are constructed (zero bytes without
 * a hook). out_entities: room for count handles, in order, or NULL. count 0 does nothing.
 * Errors also: DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_create_many(quern_world *world, const quern_component *components,
                                                const void *const *columns, uint32_t component_count,
                                                uint32_t count, quern_entity *out_entities);

/* As quern_entity_create_many; fill writes the values, and is called for one run of rows after the other,
 * in order, on this thread. The first row of a view is number view->first of the call. Term i of the view
 * is components[i], to write; its memory holds constructed values (zero bytes without a hook). The world is
 * locked meanwhile, and there are no commands: the context has user_data (quern_context_user_data) and
 * knows who lives. component_count is at most QUERN_MAX_TERMS. Errors also: as there, INVALID_ARGUMENT. */
QUERN_API quern_result quern_entity_create_filled(quern_world *world, const quern_component *components,
                                                  uint32_t component_count, uint32_t count,
                                                  quern_kernel *fill, void *user_data,
                                                  quern_entity *out_entities);

/* Destroys all entities of a list, in its order; one that stands in it twice is destroyed once. count 0
 * does nothing. Errors also: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY (of any of them;
 * then nothing is destroyed). */
QUERN_API quern_result quern_entity_destroy_many(quern_world *world, const quern_entity *entities,
                                                 uint32_t count);

/* Destroys every entity that matches. Here and below, filters on changes leave nobody out. out_count, how
 * many there were, may be NULL. */
QUERN_API quern_result quern_entity_destroy_matching(quern_query *query, uint64_t *out_count);

/* Adds a component to every entity that matches and does not have it. value is copied into each; NULL
 * constructs it. Whole columns of chunks are moved, not rows. out_count, how many got it, may be NULL.
 * Errors also: TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT, INVALID_ARGUMENT (a value of a type with a
 * destroy hook and no copy hook). */
QUERN_API quern_result quern_entity_add_matching(quern_query *query, quern_component component,
                                                 const void *value, uint64_t *out_count);

/* Removes a component from every entity that matches and has it. out_count, how many lost it, may be NULL.
 * Errors also: LIMIT. */
QUERN_API quern_result quern_entity_remove_matching(quern_query *query, quern_component component,
                                                    uint64_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
