/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H

/** @file
 * Graphs of parallel loops on a job pool (<quern/jobs.h>), which are built once and run many times. Nodes
 * can be loops, choices between nodes, and other graphs. A run can be submitted like a job.
 *
 * docs/jobs.md has an example. */

#include <quern/jobs.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of nodes of a graph. */
#define QUERN_MAX_GRAPH_NODES (1 << 20)

/** A graph of parallel loops: a node begins when all its predecessors have finished. Only one thread at a
 * time may use a graph. */
typedef struct quern_graph quern_graph;

/** Chooses the node that runs next: returns the index of one of the node's outgoing edges, from 0 in the
 * order in which they were added, or any other number for none. user_data is that of the node.
 * worker_index is that of the worker. */
typedef uint32_t quern_choice_function(void *user_data, uint32_t worker_index);

/** Definition of a node. All zero defines a node that only joins edges. At most one of function, choose
 * and graph may be set. */
typedef struct quern_graph_node_def {
    quern_range_function *function QUERN__ZERO; /**< The work of the node: a loop over its items. */
    void *user_data QUERN__ZERO;                /**< Passed to function or choose. */
    uint32_t count QUERN__ZERO; /**< Number of items; 0 means 1. quern_graph_set_count can set it to 0. */
    uint32_t grain QUERN__ZERO; /**< Maximum number of items per call, as in quern_jobs_parallel_for. */
    /** 0: the items run on any workers. QUERN_ON_CALLER: all items run in order, in one call, on the thread
     * that called quern_graph_run. In a submitted run, they run on an external thread, while it waits in any
     * call of the pool outside of a node, or calls quern_jobs_run_caller_jobs. No other value is allowed. */
    uint32_t on_worker QUERN__ZERO;
    /** Makes the node a choice: the function chooses the outgoing edge that is followed. Edges of a choice
     * may lead to any node, also backwards, so that nodes run again. A chosen node begins immediately,
     * whether its other predecessors have finished or not. A node with incoming edges of choices begins
     * only when chosen, unless it also has ordinary predecessors; then it also begins each time all of
     * these have finished. A node never runs twice at the same time: if chosen while it runs, it runs
     * again afterwards. */
    quern_choice_function *choose QUERN__ZERO;
    /** Maximum number of choices that the node makes in one run; 0 means 2^31. If it would exceed the
     * maximum, the run ends: no more nodes begin, and the result is LIMIT. */
    uint32_t choice_limit QUERN__ZERO;
    /** Graph to run as the work of the node. It must outlive this graph and belong to no other node. While
     * the outer graph runs, this one counts as running: it cannot be changed, or run on its own. */
    quern_graph *graph QUERN__ZERO;
    /** Order among nodes that are ready at the same time: higher priority begins first; 0 means
     * QUERN_PRIORITY_NORMAL. If any node has another priority, each node of the run costs a lock. */
    quern_priority priority QUERN__ZERO;
    /** Name for messages and traces; may be NULL. Not copied: it must remain valid as long as the graph. */
    const char *name QUERN__ZERO;
} quern_graph_node_def;

/** Creates an empty graph. allocator may be NULL for the default. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (only one function of the allocator is set), OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph);

/** Destroys a graph, which must not be running. NULL is allowed. */
QUERN_API void quern_graph_destroy(quern_graph *graph);

/** Removes all nodes and edges, and keeps the memory for new ones. The graph must not be running. */
QUERN_API void quern_graph_clear(quern_graph *graph);

/** Adds a node. Nodes are numbered from 0 in the order in which they are added. def may be NULL, which
 * equals a definition of all zero; out_node may be NULL. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (also
 * while the graph runs), LIMIT (QUERN_MAX_GRAPH_NODES), OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def,
                                            uint32_t *out_node);

/** Adds an edge: node `after` begins only when `before` has finished. If `before` is a choice, it can
 * choose `after` instead. Edges other than those of choices must lead from lower to higher numbers, which
 * excludes cycles; adding the same edge twice is harmless. Errors: NULL_ARGUMENT, OUT_OF_MEMORY,
 * INVALID_ARGUMENT (any other edge, or the graph runs). */
QUERN_API quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after);

/** Sets the number of items of a node; with 0 it only joins edges. The graph must not be running, and the
 * node must be neither a choice nor a graph. Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count);

/** Runs every node once, or with choices as often as it is chosen, and returns when all have finished. On
 * a single thread (jobs NULL, a pool of one thread, a short run) the order is always the same: by number,
 * or in a graph with choices or priorities, by priority and then in the order in which nodes become ready.
 *
 * Different graphs may run at the same time, from any threads and jobs; a node may run another graph.
 * Meanwhile, the caller works only on this graph (see quern_jobs_wait).
 *
 * The first run on several threads allocates memory, and so does the next one after nodes or threads were
 * added; other runs allocate nothing. Runs are timed: a run that is too short to gain from other threads
 * stays on the caller, or wakes no threads. Nodes must therefore not wait for each other except through
 * edges.
 *
 * Errors, with nothing run: NULL_ARGUMENT, OUT_OF_MEMORY, THREAD_UNAVAILABLE; POOL_BUSY (the graph or one that is a
 * node of it is running, or the pool has its maximum number of external threads); INVALID_ARGUMENT (a
 * graph is contained twice, or no node could begin). LIMIT: a node exceeded its choice_limit; the message
 * has its number, and all nodes that had begun have finished. Threads: any outside of the pool, or inside
 * a job. */
QUERN_API quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs);

/** Definition of a submitted run. All zero is a good definition. */
typedef struct quern_graph_run_def {
    /** Counts the run from the submitting call until it has finished; may be NULL. */
    quern_counter *counter QUERN__ZERO;
    /** Counters that the run waits for. It begins when each of them has been zero, at the submitting call
     * or later. The list is only read by the call. It must not contain `counter`. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< Length of `after`, as in quern_job_def. */
    /** A cancellation request; may be NULL. After the request, nodes that have not begun do not begin, and
     * loops make no further calls. It must remain valid until the run has finished. */
    quern_cancel *cancel QUERN__ZERO;
} quern_graph_run_def;

/** Submits a run and returns immediately. The graph is running until the run has finished. Then its memory
 * may be reused, also by a thread that has waited for the counter. Until then the graph must not be
 * destroyed.
 *
 * Waiting for the counter helps with the run; inside nodes of other graphs, no other wait does. Nodes with
 * QUERN_ON_CALLER run while an external thread waits. def may be NULL. The call acquires a lock. It allocates
 * memory if more jobs wait than ever before, or where quern_graph_run does. If the pool is destroyed while
 * the run waits for counters, the run ends without having begun: its result is CANCELLED, and its counter
 * is not changed. Errors, with nothing submitted: as quern_graph_run. Threads: any, also from inside jobs.
 */
QUERN_API quern_result quern_graph_submit(quern_graph *graph, quern_jobs *jobs,
                                          const quern_graph_run_def *def);

/** Returns the result of the last run: OK (also before the first run); CANCELLED (nodes or items were left
 * out because of a cancellation request); LIMIT, as for quern_graph_run. Errors: NULL_ARGUMENT, POOL_BUSY
 * (the graph is running). Threads: any. */
QUERN_API quern_result quern_graph_result(const quern_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
