/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PARALLEL_H
#define QUERN_PARALLEL_H

/** @file
 * Parallel queries: the views of a query, processed on the threads of a job pool, in plain code between
 * frames. For loading, tools, and programs with their own main loop. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/jobs.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Calls a callback for each view of a query, on any thread of the pool, several at a time, and returns
 * when all calls have returned. With jobs NULL, the calling thread processes the views in order.
 *
 * The world is locked meanwhile, as in a frame. For results per view, use view->ordinal, from 0 to
 * quern_query_view_count - 1; combined in that order, such results are the same at every number of
 * threads. The context offers user_data, the worker index, the pool, commands, and quern_context_is_alive;
 * <quern/context.h> lists what it lacks. Change filters leave out views, and their ordinals, as in
 * quern_query_iterate. If up-terms leave rows out, a chunk may yield several views with one ordinal, one
 * after another.
 *
 * Commands that callbacks record are applied after all calls, in the order of views, by the rules of
 * <quern/commands.h>.
 *
 * Errors, with no call made: NULL_ARGUMENT, INVALID_ARGUMENT (the query has an order), WORLD_LOCKED, POOL_BUSY,
 * THREAD_UNAVAILABLE, SCHEDULE_CONFLICT (an up-term reads what another term writes), OUT_OF_MEMORY. Errors after all calls: OUT_OF_MEMORY and LIMIT (the
 * commands could not be applied; the next parallel query, quern_world_flush or frame retries them); those
 * of quern_world_flush; UNDECLARED_ACCESS (a call of a callback was refused; see the log). Threads: main,
 * between frames and in exclusive systems. */
QUERN_API quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs,
                                                quern_view_callback *callback, void *user_data);

/** Returns the number of ordinals that quern_query_parallel_for would use now, including those that change
 * filters would leave out. 0, with a message, if the call is wrong or memory for new matches is exhausted.
 * Threads: main, between frames. */
QUERN_API uint32_t quern_query_view_count(quern_query *query);

#ifdef __cplusplus
}
#endif

#endif
