/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H

/** @file
 * Graphs of parallel loops on a job pool (<quern/jobs.h>): what is built once, and run again and again.
 * Nodes may choose which node comes next, and be graphs themselves; runs may be submitted like jobs.
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

/** Chooses where a graph goes on: returns which of the node's edges is followed, counted from 0 in the order
 * in which they were added, or any other number for none. user_data is that of the node; worker_index that
 * of the thread it runs on. */
typedef uint32_t quern_choice_function(void *user_data, uint32_t worker_index);

/** Describes a node of a graph. All zero is a node that only joins edges. At most one of function, choose and
 * graph is set. */
typedef struct quern_graph_node_def {
    quern_range_function *function QUERN__ZERO; /**< The node's work, a loop over its items. */
    void *user_data QUERN__ZERO;                /**< Passed to function or choose. */
    uint32_t count QUERN__ZERO;                 /**< Items; 0 means 1. quern_graph_set_count can set 0. */
    uint32_t grain QUERN__ZERO;                 /**< As in quern_jobs_parallel_for. */
    /** All items run, in order, in one call, on the thread that called quern_graph_run. In a run that was
     * submitted: on an outside thread, while that waits in any call of the pool but not inside a node, or in
     * quern_jobs_run_caller_jobs. */
    bool caller_only QUERN__ZERO;
    /** The node decides which of its edges is followed: a condition. Its edges may lead to any node, also
     * back, so that nodes run again. Nobody waits for them: the node that is chosen begins whether its
     * predecessors have finished or not. A node to which such an edge leads begins in no other way, unless
     * it has predecessors of the other kind, too; then it also begins each time that these have finished. A
     * node never runs twice at a time: it runs again afterwards. */
    quern_choice_function *choose QUERN__ZERO;
    /** How often the node may choose in one run; 0 means 2^31. When it would do so once more, the run ends:
     * no more nodes begin, and the result is LIMIT. */
    uint32_t choice_limit QUERN__ZERO;
    /** The node's work is a run of this graph, which must outlive this one and belong to no other node. While
     * the whole runs it is running, too: it cannot be changed, or run on its own. */
    quern_graph *graph QUERN__ZERO;
    /** Of nodes that are ready at the same time those of higher priority begin first; 0 means
     * QUERN_PRIORITY_NORMAL. Takes a lock for each node of the run. */
    quern_priority priority QUERN__ZERO;
    /** For messages and traces; NULL: none. It must live as long as the graph. */
    const char *name QUERN__ZERO;
} quern_graph_node_def;

/** Creates an empty graph. allocator may be NULL for the default. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph);

/** Destroys a graph, which must not be running. NULL is allowed. */
QUERN_API void quern_graph_destroy(quern_graph *graph);

/** Removes all nodes and edges, and keeps the memory. The graph must not be running. */
QUERN_API void quern_graph_clear(quern_graph *graph);

/** Adds a node. Nodes are numbered 0, 1, 2 … in the order they are added. def may be NULL, like one that is
 * all zero; out_node may be NULL. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (also while the graph runs), LIMIT,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def,
                                            uint32_t *out_node);

/** Lets `after` start only when `before` has finished, or, when `before` has choose, lets it be chosen. Other
 * edges than those of choices lead from lower to higher numbers, so there is no cycle without a choice; the
 * same edge twice is harmless. Errors: NULL_ARGUMENT, OUT_OF_MEMORY; INVALID_ARGUMENT for any other edge,
 * and while the graph runs. */
QUERN_API quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after);

/** Sets how many items a node has; with 0 it does nothing but join edges. The graph must not be running, and
 * the node neither choose nor be a graph. Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count);

/** Runs every node once, or, where nodes choose, as often as it comes to that, and returns when all have
 * finished. On one thread alone (jobs NULL, a pool of one thread, a short run) the order is always the same:
 * by number, or, in a graph where nodes choose or have priorities, by priority and then in the order in
 * which nodes become ready.
 *
 * Different graphs may run at the same time, from any threads and jobs; a node may run another graph. What
 * the caller does meanwhile is to work on this graph, and on nothing else (see quern_jobs_wait).
 *
 * The first run on several threads takes memory, and so does the next one after nodes or threads were
 * added; other runs allocate nothing. Runs are timed: one that is too short to gain from other threads runs
 * on the caller, or wakes nobody. So nodes must not wait for each other except through edges. Errors, with
 * nothing run: NULL_ARGUMENT, OUT_OF_MEMORY, THREAD; POOL_BUSY (the graph or one that is a node is running,
 * or other outside threads have all places in the pool); INVALID_ARGUMENT (a graph stands in it twice, or no
 * node could begin). LIMIT: a node would have chosen too often, and the message has its number; what had
 * begun has finished. Threads: from outside the pool or inside a job. */
QUERN_API quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs);

/** Describes a run that is submitted. All zero is a good definition. */
typedef struct quern_graph_run_def {
    quern_counter *counter QUERN__ZERO; /**< Counts the run, from the call that submits it; NULL: none. */
    /** The run begins when each of these has come to zero, at this call or later. Read by the call alone;
     * counter must not be among them. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< As in quern_job_def. */
    /** When it is requested, nodes that have not begun do not begin, and loops in nodes stop where they are
     * divided; NULL: never. It must live until the run is over. */
    quern_cancel *cancel QUERN__ZERO;
} quern_graph_run_def;

/** Submits a run and returns at once. The graph is running until it is over; then its memory may be used
 * again, also by whoever has waited for the counter. Until then it must not be destroyed.
 *
 * A wait for the counter helps with the run. Inside nodes of other graphs only such a wait does. Nodes that
 * are caller_only run when an outside thread waits. def may be NULL. Takes a lock, and memory when more
 * jobs wait than ever before, or as quern_graph_run does. A run after counters that never come to zero is
 * over, without having begun, when the pool is destroyed: its result is CANCELLED then, and its counter is
 * left as it is. Errors, with nothing submitted: as
 * quern_graph_run. Threads: any, also from inside jobs. */
QUERN_API quern_result quern_graph_submit(quern_graph *graph, quern_jobs *jobs,
                                          const quern_graph_run_def *def);

/** Returns how the last run ended: OK (also when there was none); CANCELLED, when there were nodes or items
 * that were left out because that was requested; LIMIT, as quern_graph_run. Errors: NULL_ARGUMENT,
 * POOL_BUSY (it is running). Threads: any. */
QUERN_API quern_result quern_graph_result(const quern_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
