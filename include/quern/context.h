/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CONTEXT_H
#define QUERN_CONTEXT_H

/* What a kernel (quern_kernel in <quern/query.h>) and the other callbacks of a system have besides a view.
 *
 * A context is good until the callback returns, and for the thread that runs the callback alone: not for
 * the jobs of a quern_jobs_parallel_for inside it. Calls while no callback runs with the context are
 * reported in the log and give 0 or NULL, but for quern_context_lookup and quern_context_has, which then
 * still read the world. A build with QUERN_CHECKS reports these, and calls from another thread, too, and
 * hands the message to the assert handler.
 *
 * One kernel may serve a system, a parallel query (<quern/parallel.h>) and a fill (<quern/bulk.h>). Outside
 * of systems nothing is declared but the terms: what has to be declared besides (lookups, resources, the
 * world) is refused there as it is in a system that has not declared it, and what only frames have (partial
 * results, their time and number) is 0 or NULL. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of <quern/jobs.h>. */
typedef struct quern_jobs quern_jobs;

/* The recorder of this callback. Never NULL in systems. Good as long as the context. NULL, refused, in a
 * fill. */
QUERN_API quern_commands *quern_context_commands(quern_context *context);

/* The component of any living entity, to read; NULL when it has none, or when the entity is not alive (no
 * message: that is an answer). The component must be declared in `lookups`, otherwise the call is refused
 * (UNDECLARED_ACCESS). So it is for a tag, which has no value. */
QUERN_API const void *quern_context_lookup(quern_context *context, quern_entity entity,
                                           quern_component component);

/* Whether a living entity has the component, which may be a tag. False when the entity is not alive (no
 * message: that is an answer). The component must be declared in `lookups`, as above. */
QUERN_API bool quern_context_has(quern_context *context, quern_entity entity, quern_component component);

/* Whether the entity lives. What commands of this phase do to it does not show yet. */
QUERN_API bool quern_context_is_alive(const quern_context *context, quern_entity entity);

/* A declared resource, to read. NULL, refused, when it was not declared. */
QUERN_API const void *quern_context_resource(quern_context *context, quern_resource resource);

/* A resource declared with QUERN_WRITE or QUERN_WRITE_CONCURRENT. NULL, refused, when it was not. */
QUERN_API void *quern_context_resource_write(quern_context *context, quern_resource resource);

/* In run: this view's own partial result, partial_bytes, zeroed before the frame, aligned to 64.
 * NULL in begin and end, or without partial_bytes (no message: that is an answer). */
QUERN_API void *quern_context_partial(quern_context *context);

/* In end: how many partial results there are (one per view), and each, in the order of views. Combining
 * them in that order gives the same bits at every thread count. NULL beyond the last, and elsewhere than in
 * end (no message: that is an answer). */
QUERN_API uint32_t quern_context_partial_count(const quern_context *context);
QUERN_API const void *quern_context_partial_at(const quern_context *context, uint32_t ordinal);

/* Of the definition of the system, or as given to the call. */
QUERN_API void *quern_context_user_data(const quern_context *context);

/* In systems, as given to quern_schedule_run; the step of a phase with a fixed one; since the latest run, with an
 * interval. */
QUERN_API double quern_context_delta_seconds(const quern_context *context);

/* 0 in the first frame of the schedule. */
QUERN_API uint64_t quern_context_frame_index(const quern_context *context);

/* 0 to thread count - 1; 0 in a fill. For scratch memory per worker; results must not depend on it. */
QUERN_API uint32_t quern_context_worker_index(const quern_context *context);

/* The pool of this frame or parallel query, for quern_jobs_parallel_for inside a kernel; NULL when it has
 * none. */
QUERN_API quern_jobs *quern_context_jobs(const quern_context *context);

/* The world: in exclusive systems only; NULL, refused, in others. */
QUERN_API quern_world *quern_context_world(quern_context *context);

#ifdef __cplusplus
}
#endif

#endif
