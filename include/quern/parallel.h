/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PARALLEL_H
#define QUERN_PARALLEL_H

/* A query's views on the threads of a job pool, from plain code between frames: for loading, tools, and
 * programs with a main loop of their own. */

#include <quern/base.h>
#include <quern/jobs.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called once for each view, on any thread of the pool, several at a time. It may touch the rows of its
 * view through the columns that the query's terms declare, and nothing else that others touch meanwhile.
 * worker_index: 0 to thread count - 1, for scratch memory. view->ordinal: from 0 to quern_query_view_count
 * - 1, for results per view; combined in that order they are the same at every thread count. The view is
 * good until the function returns. */
typedef void quern_view_function(void *argument, const quern_view *view, uint32_t worker_index);

/* Calls function on all views of the query, and returns when all are done. jobs may be NULL: on the caller
 * alone, in order. The world is locked meanwhile, as in a frame. Filters on changes leave views out as they
 * do for quern_query_iterate; their ordinals are left out, too. Between frames, or in an exclusive system.
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, POOL_BUSY, OUT_OF_MEMORY; then nothing was called. */
QUERN_API quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs,
                                                quern_view_function *function, void *argument);

/* How many views quern_query_parallel_for would number now, those included that filters would leave out. 0,
 * with a message, when the call is wrong or memory for new matches is missing. Between frames. */
QUERN_API uint32_t quern_query_view_count(quern_query *query);

#ifdef __cplusplus
}
#endif

#endif
