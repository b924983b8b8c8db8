/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CONTEXT_H
#define QUERN_CONTEXT_H

/** @file
 * What a callback of type quern_view_callback (<quern/view.h>), and the other callbacks of a system, can access
 * in addition to a view.
 *
 * A context is valid until the callback returns, and only on the thread that runs the callback: not in the
 * jobs of a quern_jobs_parallel_for inside it. Using a context after its callback has returned is reported
 * in the log, and returns 0 or NULL; lookups (quern_context_lookup, quern_context_lookup_many,
 * quern_context_has) then still read the world. A build with QUERN_CHECKS also reports such lookups, and
 * calls from another thread, and passes the message to the assert handler. The context must not be NULL;
 * this is not checked, because these functions are called too often.
 *
 * A call for something that the system has not declared is *refused*. Functions that return a value, a
 * handle or a bool then return 0, null or false. Functions that return the address of a component, a
 * resource or a column then return scratch memory (see quern_view_write), so that a wrong declaration does
 * not crash. The frame or parallel query returns UNDECLARED_ACCESS at its end, with the number of refused
 * calls in its message; a fill does not, because its entities exist. The log contains one message per
 * system and frame, parallel query, fill or iteration: that of its first refused call, with the requested
 * access, the declared access, and the remedy. A build with QUERN_CHECKS passes this message to the assert
 * handler, which by default aborts.
 *
 * One callback may serve a system, a parallel query (<quern/parallel.h>) and a fill (<quern/bulk.h>).
 * Outside of systems only terms can be declared. All other declared access (lookups, resources, the world)
 * is refused there, as in a system that does not declare it. What only frames have (partial results, time,
 * frame number) is 0 or NULL. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/index.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job pool; see <quern/jobs.h>. */
typedef struct quern_jobs quern_jobs;

/** Returns the recorder of this callback, valid as long as the context. Never NULL in systems and parallel
 * queries. In a fill, the call is refused and returns NULL. */
QUERN_API quern_commands *quern_context_commands(quern_context *context);

/** Returns the address of a component of any living entity, to read. It is valid until the callback
 * returns; in an exclusive system, only until the next structural change. Returns NULL without a message
 * if the entity lacks the component, is not alive, or is outside of the limits of the lookup
 * (quern_lookup). Refused if the component is declared neither in `lookups` nor in `write_lookups`, and
 * for a tag, which has no value (use quern_context_has). Refused lookups of one callback return the same
 * scratch value, zeroed each time. */
QUERN_API const void *quern_context_lookup(quern_context *context, quern_entity entity,
                                           quern_component component);

/** Returns the address of a component of any living entity, to read and to write, valid while the callback
 * runs. Returns NULL in the same cases as quern_context_lookup. For change filters, each call is a change
 * of the component. Refused if the component is not declared in `write_lookups`. */
QUERN_API void *quern_context_lookup_write(quern_context *context, quern_entity entity,
                                           quern_component component);

/** Looks up a component of count entities, to read, and returns how many have it. out_values receives
 * count addresses, in the order of the handles; an entry is NULL where quern_context_lookup would return
 * NULL. A handle may occur more than once.
 *
 * The function prefetches the memory of later entities, so that cache misses overlap. It is faster than
 * single lookups of entities in random order in a large world. Some ten to some hundred handles per call
 * are best. Refused like quern_context_lookup, and if a list is NULL while count is not 0: it then returns
 * 0 and sets all addresses to that of one scratch value. */
QUERN_API uint32_t quern_context_lookup_many(quern_context *context, const quern_entity *entities,
                                             uint32_t count, quern_component component,
                                             const void **out_values);

/** Returns whether a living entity has the component, which may be a tag. False, without a message, if the
 * entity is not alive, or is outside of the limits of the lookup. Refused if the component is declared
 * neither in `lookups` nor in `write_lookups`. */
QUERN_API bool quern_context_has(quern_context *context, quern_entity entity, quern_component component);

/** Returns whether a living entity has the component, which may be a tag, and has it enabled. A component
 * that cannot be disabled is always enabled. False, without a message, if the entity is not alive, or is
 * outside of the limits of the lookup. Refused like quern_context_has. */
QUERN_API bool quern_context_is_component_enabled(quern_context *context, quern_entity entity,
                                                  quern_component component);

/** Starts iterating a further query of the system, by its index in `queries` of quern_system_def. Each call starts anew, and
 * several iterations of one query may be nested; of a query with up-terms, four. Iterate with quern_query_next; the views
 * are valid until the callback returns or the iterator moves on:
 *
 *     quern_query_iterator it = quern_context_query(context, 0);
 *     while (quern_query_next(&it)) {
 *         const Place *ghosts = QUERN_COLUMN(&it.view, 0, const Place);
 *         const uint32_t count = it.view.count;
 *         for (uint32_t i = 0; i < count; i++) ...
 *     }
 *
 * The views have an order that does not depend on threads: by archetype, chunk and row, as those of quern_query_iterate. They
 * contain the row of the own view, too, if it matches. The call takes no lock, allocates nothing and costs the same for
 * any number of matches. Refused, with an iteration without views, if the system has no such query, and outside of
 * systems; `result` of the iterator is then UNDECLARED_ACCESS. */
QUERN_API quern_query_iterator quern_context_query(quern_context *context, uint32_t query);

/** Finds the entities with a value in an index that the system declares (`indexes` in quern_system_def), as of the time
 * before the system runs. Returns their number. value: as for quern_index_find. *out_entities receives the first one; they
 * ascend by quern_entity_index, and are valid until the callback returns. NULL if there is none; out_entities may be NULL,
 * to count only. O(1); any number of callbacks may find at the same time. Refused, with 0, if the system does not declare
 * the index, and outside of systems. */
QUERN_API uint32_t quern_context_find(quern_context *context, const quern_index *index, uint64_t value,
                                      const quern_entity **out_entities);

/** Returns the target of a source in a relation, or its first target in a relation with `many`; null,
 * without a message, if it has none or is not alive. Commands of this phase have no effect yet. Refused if
 * the relation is not declared in `relations`. */
QUERN_API quern_entity quern_context_target(quern_context *context, quern_entity source,
                                            quern_relation relation);

/** Returns the entity itself, if it has the component, or else its nearest ancestor in the relation that has it; null,
 * without a message, if there is none, or if the entity is not alive or null. The component may be a tag, and may be
 * disabled. One step per ancestor. Entities outside of
 * the limits of the lookup are skipped. Refused like quern_context_target and quern_context_has, and if the relation has no
 * levels. */
QUERN_API quern_entity quern_context_nearest(quern_context *context, quern_entity entity,
                                             quern_relation relation, quern_component component);

/** Visits an entity and its ancestors in a relation, upward, as far as they have the component: the way of an event that
 * is sent to an entity and climbs until an entity handles it.
 *
 *     QUERN_EACH_EVENT(context, clicks, click, Click)
 *         QUERN_CLIMB(context, at, click->target, parent, button)
 *             if (press(context, at)) break; // handled: no ancestor gets the event
 *
 * Entities without the component are skipped. `break` ends the climb. See quern_context_nearest for what the system
 * declares, and for what is refused. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is a declarator */
#define QUERN_CLIMB(context, at, entity, relation, component)                                   \
    for (quern_entity at = quern_context_nearest((context), (entity), (relation), (component)); \
         !quern_entity_is_null(at);                                                             \
         at = quern_context_nearest((context), quern_context_target((context), at, (relation)), \
                                    (relation), (component)))
/* NOLINTEND(bugprone-macro-parentheses) */

/** Returns the first source of a target in a relation; null if it has none or is not alive. Refused like
 * quern_context_target. */
QUERN_API quern_entity quern_context_first_source(quern_context *context, quern_entity target,
                                                  quern_relation relation);

/** Returns whether a source has the target in a relation; false if one of them is not alive. Refused like
 * quern_context_target. */
QUERN_API bool quern_context_has_target(quern_context *context, quern_entity source,
                                        quern_relation relation, quern_entity target);

/** Returns the number of targets of a source in a relation; 0 if it is not alive. O(1). Refused like
 * quern_context_target. */
QUERN_API uint32_t quern_context_target_count(quern_context *context, quern_entity source,
                                              quern_relation relation);

/** Stores up to `capacity` targets of a source in a relation, in the order of quern_entity_next_target, and
 * returns how many it has; 0 if it is not alive. out_targets may be NULL if capacity is 0. Refused like
 * quern_context_target. */
QUERN_API uint32_t quern_context_list_targets(quern_context *context, quern_entity source,
                                              quern_relation relation, quern_entity *out_targets,
                                              uint32_t capacity);

/** Stores up to `capacity` sources of a target in a relation, in their order, and returns how many it has; 0
 * if it is not alive. out_sources may be NULL if capacity is 0. Refused like quern_context_target. */
QUERN_API uint32_t quern_context_list_sources(quern_context *context, quern_entity target,
                                              quern_relation relation, quern_entity *out_sources,
                                              uint32_t capacity);

/** Returns the value of an edge for reading (quern_entity_edge_value); NULL if the source does not have the target
 * or is not alive. The system declares the relation in `relations` and the component with the values in `lookups`
 * or `write_lookups`; refused otherwise, and for relations whose edges have no values. A system that matches the
 * sources reads and writes the values of its rows by a term of that component instead. */
QUERN_API const void *quern_context_edge_value(quern_context *context, quern_entity source,
                                               quern_relation relation, quern_entity target);

/** Returns the sibling after a source in a relation without `many`; null if it is the last one, has no
 * target, or is not alive. Refused like quern_context_target, and in a relation with `many`: list the sources
 * of a target by quern_context_list_sources. */
QUERN_API quern_entity quern_context_next_sibling(quern_context *context, quern_entity source,
                                                  quern_relation relation);

/** Returns the number of sources of a target in a relation; 0 if it is not alive. O(1). Refused like
 * quern_context_target. */
QUERN_API uint32_t quern_context_source_count(quern_context *context, quern_entity target,
                                              quern_relation relation);

/** Returns whether the entity is alive. Commands of this phase have no effect yet. */
QUERN_API bool quern_context_is_alive(const quern_context *context, quern_entity entity);

/** Returns the address of a declared resource's value, to read. Refused if the resource is not declared.
 */
QUERN_API const void *quern_context_resource(quern_context *context, quern_resource resource);

/** Returns the address of a resource's value, to read and to write. Refused if the resource is not
 * declared with QUERN_ACCESS_WRITE or QUERN_ACCESS_WRITE_CONCURRENT. */
QUERN_API void *quern_context_resource_write(quern_context *context, quern_resource resource);

/** Returns the partial result of this view, in `run`: partial_bytes bytes, zeroed before the frame,
 * aligned to 64. NULL, without a message, in begin and end, and if partial_bytes is 0. */
QUERN_API void *quern_context_partial(quern_context *context);

/** Returns the number of partial results, in `end`: one per ordinal of views. */
QUERN_API uint32_t quern_context_partial_count(const quern_context *context);

/** Returns a partial result, in `end`, by ordinal of its view. Combining the partial results in this order
 * gives the same bits at every number of threads. NULL, without a message, after the last one, and in
 * other callbacks. */
QUERN_API const void *quern_context_partial_at(const quern_context *context, uint32_t ordinal);

/** Returns what happened to the rows of a reaction's view, in `run`: QUERN_REACT_ADDED, QUERN_REACT_SET or
 * QUERN_REACT_REMOVED, one of those in reacts_to. 0 in any other callback. */
QUERN_API uint32_t quern_context_reaction(const quern_context *context);

/** Returns the user_data of the system, of its phase or of its schedule, the first of them that is not NULL; in a
 * parallel query or fill, the user_data of the call. */
QUERN_API void *quern_context_user_data(const quern_context *context);

/** Returns the time step of a system: delta_seconds of quern_schedule_run; in a phase with a fixed step,
 * that step; with an interval, the time since the system last ran. */
QUERN_API double quern_context_delta_seconds(const quern_context *context);

/** Returns the number of the frame, from 0 for the first frame of the schedule. */
QUERN_API uint64_t quern_context_frame_index(const quern_context *context);

/** Returns the index of the worker, 0 to quern_jobs_worker_count - 1; 0 in a fill and without a pool. Use
 * it for scratch memory per worker; results must not depend on it. */
QUERN_API uint32_t quern_context_worker_index(const quern_context *context);

/** Returns the pool of this frame or parallel query, for example to call quern_jobs_parallel_for inside a
 * callback; NULL if there is none. */
QUERN_API quern_jobs *quern_context_jobs(const quern_context *context);

/** Returns the world, in exclusive systems. Refused, with NULL, in all others. */
QUERN_API quern_world *quern_context_world(quern_context *context);

#ifdef __cplusplus
}
#endif

#endif
