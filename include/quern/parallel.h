/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PARALLEL_H
#define QUERN_PARALLEL_H

/* A query's views on the threads of a job pool, from plain code between frames: for loading, tools, and
 * programs with a main loop of their own. */

#include <quern/base.h>
#include <quern/context.h>
#include <quern/jobs.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls kernel once for each view of the query, on any thread of the pool, several at a time, and returns
 * when all are done. jobs may be NULL: on the caller alone, in order. The world is locked meanwhile, as in
 * a frame. view->ordinal: from 0 to quern_query_view_count - 1, for results per view; combined in that
 * order they are the same at every thread count. The context has user_data, the worker and the pool, and
 * knows who lives; <quern/context.h> says what it does not have. Filters on changes leave views out as they
 * do for quern_query_iterate; their ordinals are left out, too. Between frames, or in an exclusive system.
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, POOL_BUSY, OUT_OF_MEMORY; then nothing was called.
 * UNDECLARED_ACCESS when all is done: a kernel was refused something (see the log). */
QUERN_API quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs, quern_kernel *kernel,
                                                void *user_data);

/* How many views quern_query_parallel_for would number now, those included that filters would leave out. 0,
 * with a message, when the call is wrong or memory for new matches is missing. Between frames. */
QUERN_API uint32_t quern_query_view_count(quern_query *query);

#ifdef __cplusplus
}
#endif

#endif
