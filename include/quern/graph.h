/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H

/** @file
 * Graphs of parallel loops on a job pool (<quern/jobs.h>): what is built once, and run again and again.
 *
 * docs/jobs.md has an example. */

#include <quern/jobs.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most nodes a graph may have. */
#define QUERN_MAX_GRAPH_NODES (1 << 20)

/** A graph of parallel loops: a node starts when all its predecessors have finished. Build it once, run it
 * often. One thread at a time may use it. */
typedef struct quern_graph quern_graph;

/** Describes a node of a graph. All zero is a node that only joins edges. */
typedef struct quern_graph_node_def {
    quern_range_function *function QUERN__ZERO; /**< NULL: the node has no work of its own. */
    void *user_data QUERN__ZERO;                /**< Passed to function. */
    uint32_t count QUERN__ZERO;                 /**< Items; 0 means 1. quern_graph_set_count can set 0. */
    uint32_t grain QUERN__ZERO;                 /**< As in quern_jobs_parallel_for. */
    /** All items run, in order, in one call, on the thread that called quern_graph_run. */
    bool caller_only QUERN__ZERO;
} quern_graph_node_def;

/** Creates an empty graph. allocator may be NULL for the default. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph);

/** Destroys a graph, which must not be running. NULL is allowed. */
QUERN_API void quern_graph_destroy(quern_graph *graph);

/** Removes all nodes and edges, and keeps the memory. The graph must not be running. */
QUERN_API void quern_graph_clear(quern_graph *graph);

/** Adds a node. Nodes are numbered 0, 1, 2 … in the order they are added. def may be NULL, like one that is
 * all zero; out_node may be NULL. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the graph is running), LIMIT,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def,
                                            uint32_t *out_node);

/** Lets `after` start only when `before` has finished. Edges lead from lower to higher numbers, so there is
 * no cycle; the same edge twice is harmless. Errors: NULL_ARGUMENT, OUT_OF_MEMORY; INVALID_ARGUMENT for any
 * other edge, and while the graph runs. */
QUERN_API quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after);

/** Sets how many items a node has; with 0 it does nothing but join edges. The graph must not be running.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count);

/** Runs every node once and returns when all have finished. With jobs NULL, or one thread, nodes run one
 * after another in the order of their numbers, on the caller.
 *
 * Different graphs may run at the same time, from any threads and jobs; a node may run another graph. What
 * the caller does meanwhile is to work on this graph, and on nothing else (see quern_jobs_wait).
 *
 * The first run on several threads takes memory, and so does the next one after nodes or threads were
 * added; other runs allocate nothing. Runs are timed: one that is too short to gain from other threads runs
 * on the caller, or wakes nobody. So nodes must not wait for each other except through edges. Errors, with
 * nothing run: NULL_ARGUMENT, OUT_OF_MEMORY, THREAD, and POOL_BUSY (the graph is running, or other outside
 * threads have all places in the pool). Threads: from outside the pool or inside a job. */
QUERN_API quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs);

#ifdef __cplusplus
}
#endif

#endif
