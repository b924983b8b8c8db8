/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PARALLEL_H
#define QUERN_PARALLEL_H

/** @file
 * The views of a query on the threads of a job pool, from plain code between frames: for loading, tools,
 * and programs with a main loop of their own. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/jobs.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Calls kernel for each view of the query, on any thread of the pool, several at a time, and returns
 * when all calls are done. jobs may be NULL: only the caller, in order.
 *
 * The world is locked meanwhile, as in a frame. Use view->ordinal, from 0 to quern_query_view_count - 1,
 * for results per view: combined in that order, they are the same at every thread count. The context has
 * user_data, the worker and the pool, and knows which entities are alive; <quern/context.h> says what it
 * does not have. Change filters leave out views, and their ordinals, as in quern_query_iterate. Where up-terms
 * leave rows out, a chunk may come as several views with one ordinal, one after another.
 *
 * Commands that kernels record are applied after all calls, in the order of views, by the rules of
 * <quern/commands.h>.
 *
 * Errors, with no call made: NULL_ARGUMENT, WORLD_LOCKED, POOL_BUSY, SCHEDULE_CONFLICT (an up-term reads
 * what another term writes), OUT_OF_MEMORY. Errors after all calls: OUT_OF_MEMORY and LIMIT, when the commands could not be applied (the next parallel query,
 * quern_world_flush or frame tries again), or as for quern_world_flush; UNDECLARED_ACCESS, when a kernel
 * was refused something (see the log). Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs, quern_kernel *kernel,
                                                void *user_data);

/** Returns how many ordinals quern_query_parallel_for would count now, including those that change filters
 * would leave out. 0, with a message, when the call is wrong or memory for new matches is missing.
 * Threads: main, between frames. */
QUERN_API uint32_t quern_query_view_count(quern_query *query);

#ifdef __cplusplus
}
#endif

#endif
