/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_JOBS_H
#define QUERN_JOBS_H

/* A pool of worker threads that steal work from each other. It knows nothing of worlds: use it for
 * whatever your program has to do in parallel.
 *
 * A pool of n threads starts n - 1; the thread that calls quern_jobs_parallel_for or quern_graph_run from
 * outside takes part as worker 0. One outside thread at a time may do so (POOL_BUSY otherwise); calls
 * made from inside a job are always allowed, nest to any depth, and help instead of blocking. Idle workers
 * spin for a bounded time, then sleep; a pool left alone uses no processor time. */

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_THREADS     256       /* per pool, the caller included */
#define QUERN_MAX_GRAPH_NODES (1 << 20) /* per graph */

typedef struct quern_jobs quern_jobs;

/* ------------------------------------------------------------------------------------------- pool */

/* Start from quern_jobs_def_default(); one that was not is refused. */
typedef struct quern_jobs_def {
    uint32_t thread_count; /* 1 to QUERN_MAX_THREADS; 0, the default: the processors this process may use */
    uint32_t spin_ns;      /* how long an idle worker looks for work before it sleeps; default 200,000; 0 is
                              used instead when there are more threads than processors */
    const char *name;      /* threads are called name/1, name/2 …; default "quern" */
    quern_allocator allocator; /* default quern_allocator_default() */
    uint32_t cookie;           /* internal: set by _default() */
} quern_jobs_def;

QUERN_API quern_jobs_def quern_jobs_def_default(void);

/* def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD. */
QUERN_API quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs);

/* Stops and joins the threads. No work may be running. NULL is allowed. */
QUERN_API void quern_jobs_destroy(quern_jobs *jobs);

/* Threads of the pool, the caller included. Any thread. */
QUERN_API uint32_t quern_jobs_thread_count(const quern_jobs *jobs);

/* Processors this process may run on. At least 1. Any thread. */
QUERN_API uint32_t quern_processor_count(void);

/* ---------------------------------------------------------------------------------- parallel loop */

/* Works on the items begin to end - 1. worker_index: 0 to thread_count - 1, of the thread it runs on. */
typedef void quern_range_function(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* Calls function so that every item from 0 to count - 1 is covered exactly once, on as many threads as
 * help, and returns when all calls have returned (what they wrote is then visible to the caller).
 * grain: the most items one call gets; 0 chooses automatically. How the range is cut is not defined.
 * count 0 does nothing. Errors: NULL_ARGUMENT, POOL_BUSY. From outside the pool or inside a job. */
QUERN_API quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                               quern_range_function *function, void *argument);

/* ------------------------------------------------------------------------------------------ graph */

/* A graph of parallel loops: a node starts when all its predecessors have finished. Build it once, run
 * it often. */
typedef struct quern_graph quern_graph;

/* Start from quern_graph_node_def_default(); one that was not is refused. */
typedef struct quern_graph_node_def {
    quern_range_function *function; /* may be NULL: the node only joins edges */
    void *argument;
    uint32_t count;   /* items; 0: the node does nothing; default 1 */
    uint32_t grain;   /* as in quern_jobs_parallel_for; default 0 */
    bool caller_only; /* all items run, in order, in one call, on the thread that runs the graph */
    uint32_t cookie;  /* internal: set by _default() */
} quern_graph_node_def;

QUERN_API quern_graph_node_def quern_graph_node_def_default(void);

/* allocator may be NULL for the default. Errors: NULL_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph);

/* NULL is allowed. The graph must not be running. */
QUERN_API void quern_graph_destroy(quern_graph *graph);

/* Takes all nodes and edges out and keeps the memory. */
QUERN_API void quern_graph_clear(quern_graph *graph);

/* Nodes are numbered 0, 1, 2 … in the order they are added. out_node may be NULL.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (also while the graph runs), LIMIT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def,
                                            uint32_t *out_node);

/* after starts when before has finished. Edges lead from lower to higher numbers, so there is no cycle;
 * others, and any while the graph runs, are INVALID_ARGUMENT. The same edge twice is harmless. Errors
 * also: NULL_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after);

/* Changes how many items a node has. The graph must not be running. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT. */
QUERN_API quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count);

/* Runs every node once and returns when all have finished. jobs NULL, or with one thread: nodes run one after
 * another in the order of their numbers, on the caller. Memory is taken in the first run on several threads
 * and when nodes or threads have been added; other runs allocate nothing.
 *
 * Runs are timed. One that is too short to gain from other threads runs on the caller, or wakes nobody; so
 * nodes must not wait for each other except through edges.
 * Errors, with nothing run: NULL_ARGUMENT, OUT_OF_MEMORY, POOL_BUSY (another thread uses the pool, the
 * graph is running, or the call comes from inside a job of this pool). */
QUERN_API quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs);

#ifdef __cplusplus
}
#endif

#endif
