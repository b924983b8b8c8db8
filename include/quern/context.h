/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CONTEXT_H
#define QUERN_CONTEXT_H

/** @file
 * What a kernel (quern_kernel in <quern/query.h>) and the other callbacks of a system can reach besides
 * a view.
 *
 * A context is valid until the callback returns, and only on the thread that runs the callback: not in
 * the jobs of a quern_jobs_parallel_for inside it. Calls while no callback runs with the context are
 * reported in the log and return 0 or NULL, except lookups (quern_context_lookup,
 * quern_context_lookup_many, quern_context_has), which still read the world. A build with QUERN_CHECKS also
 * reports these, and calls from another thread, and hands the message to the assert handler. The context
 * must not be NULL: these calls are too frequent to check that.
 *
 * A callback that asks for something it has not declared is *refused*: calls that return a value, a handle or
 * a bool return 0, null or false, and calls that return the address of a component, a resource or a column
 * return scratch memory (see quern_view_write), so that a wrong declaration is an error and no crash. What
 * runs the callback returns UNDECLARED_ACCESS in the end, with the number of refusals in its message; a fill
 * does not, for its entities exist. The log has one message for each system and frame, parallel query, fill
 * or iteration: that of its first refusal, with the call, what was asked for, what was declared, and what to
 * do. A build with QUERN_CHECKS hands this message to the assert handler, which stops the program by default.
 *
 * One kernel may serve a system, a parallel query (<quern/parallel.h>) and a fill (<quern/bulk.h>).
 * Outside of systems only terms are declared. Everything else that must be declared (lookups, resources,
 * the world) is refused there, as in a system that does not declare it; what only frames have (partial
 * results, time, frame number) is 0 or NULL. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A job pool; see <quern/jobs.h>. */
typedef struct quern_jobs quern_jobs;

/** Returns the recorder of this callback, valid as long as the context. Never NULL in systems. NULL,
 * refused, in a fill. */
QUERN_API quern_commands *quern_context_commands(quern_context *context);

/** Returns a component of any living entity, to read. Returns NULL without a message when the entity does
 * not have it, is not alive, or is beyond the limits of the lookup (quern_lookup). The call is refused when
 * the component is declared neither in `lookups` nor in `write_lookups`, and for a tag, which has no value:
 * quern_context_has tells whether an entity has it. Refused lookups of one callback return one scratch value,
 * which is zeroed each time. */
QUERN_API const void *quern_context_lookup(quern_context *context, quern_entity entity,
                                           quern_component component);

/** Returns a component of any living entity, to read and to write, while the callback runs. NULL as
 * quern_context_lookup. Change filters count the call as a change of the component. The call is refused
 * when the component is not declared in `write_lookups`. */
QUERN_API void *quern_context_lookup_write(quern_context *context, quern_entity entity,
                                           quern_component component);

/** Looks up a component of count entities, and returns how many have it. out_values gets count pointers, to
 * read, in the order of the handles: NULL stands for what quern_context_lookup returns NULL for. A handle
 * may come more than once.
 *
 * Asks for the memory of the next entities while it looks at one, so that the waits for memory overlap:
 * better than lookups one by one where they go all over a large world. Some ten to some hundred handles
 * per call are best. Refused as quern_context_lookup, and when a list is NULL though count is not 0: then it
 * returns 0, and all pointers are those of one scratch value. */
QUERN_API uint32_t quern_context_lookup_many(quern_context *context, const quern_entity *entities,
                                             uint32_t count, quern_component component,
                                             const void **out_values);

/** Returns whether a living entity has the component, which may be a tag. False, without a message, when
 * the entity is not alive, or is beyond the limits of the lookup. The component must be declared in
 * `lookups` or `write_lookups`, as above. */
QUERN_API bool quern_context_has(quern_context *context, quern_entity entity, quern_component component);

/** Returns whether a living entity has the component, which may be a tag, and has it enabled, as one that
 * cannot be disabled always is. False, without a message, when the entity is not alive, or is beyond the limits
 * of the lookup. The component must be declared in `lookups` or `write_lookups`, as above. */
QUERN_API bool quern_context_is_enabled(quern_context *context, quern_entity entity,
                                        quern_component component);

/** Returns the target of an entity in a relation; null, without a message, when it has none or is not alive.
 * Commands of this phase do not show yet. The call is refused when the relation is not declared in
 * `relations`. */
QUERN_API quern_entity quern_context_target(quern_context *context, quern_entity source,
                                            quern_relation relation);

/** Returns the first child of an entity in a relation; null when it has none or is not alive. Refused as
 * quern_context_target. */
QUERN_API quern_entity quern_context_first_child(quern_context *context, quern_entity target,
                                                 quern_relation relation);

/** Returns the sibling after an entity in a relation; null when it is the last, has no target or is not
 * alive. Refused as quern_context_target. */
QUERN_API quern_entity quern_context_next_sibling(quern_context *context, quern_entity source,
                                                  quern_relation relation);

/** Returns how many children an entity has in a relation; 0 when it is not alive. Refused as
 * quern_context_target. */
QUERN_API uint32_t quern_context_child_count(quern_context *context, quern_entity target,
                                             quern_relation relation);

/** Returns whether the entity is alive. Commands of this phase do not show yet. */
QUERN_API bool quern_context_is_alive(const quern_context *context, quern_entity entity);

/** Returns a declared resource, to read. Refused when it is not declared. */
QUERN_API const void *quern_context_resource(quern_context *context, quern_resource resource);

/** Returns a resource declared with QUERN_WRITE or QUERN_WRITE_CONCURRENT, to read and write.
 * Refused when it is not declared so. */
QUERN_API void *quern_context_resource_write(quern_context *context, quern_resource resource);

/** Returns this view's partial result, in run: partial_bytes, zeroed before the frame, aligned to 64.
 * NULL, without a message, in begin and end, and without partial_bytes. */
QUERN_API void *quern_context_partial(quern_context *context);

/** Returns how many partial results there are, in end: one per view. */
QUERN_API uint32_t quern_context_partial_count(const quern_context *context);

/** Returns a partial result, in end, in the order of views. Combining them in that order gives the same
 * bits at every thread count. NULL, without a message, after the last, and outside of end. */
QUERN_API const void *quern_context_partial_at(const quern_context *context, uint32_t ordinal);

/** Returns what happened to the rows of a reaction's view, in run: QUERN_ON_ADDED, QUERN_ON_SET or
 * QUERN_ON_REMOVED, one of those in its reacts_to. 0 elsewhere. */
QUERN_API uint32_t quern_context_reaction(const quern_context *context);

/** Returns user_data of the system, or as given to the call. */
QUERN_API void *quern_context_user_data(const quern_context *context);

/** Returns the time step of a system: as given to quern_schedule_run; the step of a phase with a fixed
 * step; with an interval, the time since the last run. */
QUERN_API double quern_context_delta_seconds(const quern_context *context);

/** Returns the number of the frame; 0 in the first of the schedule. */
QUERN_API uint64_t quern_context_frame_index(const quern_context *context);

/** Returns the worker, 0 to quern_jobs_worker_count - 1; 0 in a fill and without a pool. For scratch memory
 * per worker; results must not depend on it. */
QUERN_API uint32_t quern_context_worker_index(const quern_context *context);

/** Returns the pool of this frame or parallel query, for quern_jobs_parallel_for inside a kernel; NULL
 * when there is none. */
QUERN_API quern_jobs *quern_context_jobs(const quern_context *context);

/** Returns the world, in exclusive systems. NULL, refused, elsewhere. */
QUERN_API quern_world *quern_context_world(quern_context *context);

#ifdef __cplusplus
}
#endif

#endif
