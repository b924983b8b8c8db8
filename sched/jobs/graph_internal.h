/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_GRAPH_INTERNAL_H
#define QUERN_SCHED_JOBS_GRAPH_INTERNAL_H

/* Graphs of loops: building them (graph.c), beginning and ending a run (graph_run.c), running nodes on
 * several threads (graph_task.c) or on one (graph_run.c), and the choice between the two
 * (graph_run.c). */

#include "sched/jobs/loop.h"

#include <quern/graph.h>

#define QUERN__NO_EDGE   UINT32_MAX
#define QUERN__NO_CHOICE UINT32_MAX

enum { QUERN__PRIORITY_COUNT = QUERN_PRIORITY_LOW + 1 };

typedef struct quern__graph_node {
    quern__range range;
    uint32_t predecessor_count; /* number of predecessors, without those that choose */
    /* Head of the list of edges to successors, newest first; QUERN__NO_EDGE if there is none. */
    uint32_t first_edge;
    quern_choice_function *choose;
    uint32_t choice_limit;
    uint32_t edge_count; /* number of edges; counted for nodes that choose */
    quern_graph *inner;
    const char *name;
    quern_priority priority;
    bool is_for_caller; /* QUERN_ON_CALLER */
    /* Whether an edge from a node that chooses leads here; such a node does not begin by itself. */
    bool is_chosen;
} quern__graph_node;

typedef struct quern__graph_edge {
    uint32_t after;
    uint32_t next; /* next edge of the same predecessor, or QUERN__NO_EDGE */
} quern__graph_edge;

/* State of one node during a run on several threads, or on one thread if nodes have priorities or
 * choose. */
typedef struct quern__graph_task {
    quern_graph *graph;
    struct quern__graph_task *next_ready; /* next task in a list of ready tasks */
    uint32_t index;                       /* index of the node */
    _Atomic uint32_t waiting_count;       /* number of unfinished predecessors */
    /* In graphs with choices: executions of the node that have not finished yet, begun or not. */
    _Atomic uint32_t due_count;
    uint32_t choice_count; /* how often the node has chosen in this run */
    quern__loop loop;      /* the node's loop while it is shared */
} quern__graph_task;

/* First in, first out. */
typedef struct quern__task_queue {
    quern__graph_task *first;
    quern__graph_task *last;
} quern__task_queue;

/* A run. It is kept in its root: the graph that was run or submitted. While the run is in progress, its
 * graphs are the root and the graphs that are nodes of it, directly or through other graphs. */
typedef struct quern__graph_run {
    quern_graph *root;
    quern__worker *caller;      /* worker that waits for the run; NULL for a submitted run */
    quern__worker *starter;     /* worker that began the run */
    const void *scope;          /* closed scope of all jobs that the run pushes */
    quern_cancel *cancel;       /* or NULL */
    bool wakes_sleepers;        /* whether offers wake sleeping workers */
    bool has_priorities;        /* whether the run has nodes with a priority other than normal */
    bool has_limits;            /* whether nodes may be skipped: the run has choices or a cancel request */
    bool needs_external_worker; /* whether the run has nodes for the caller */
    uint32_t sharer_count;      /* number of workers for which memory is allocated */
    uint32_t float_mode;        /* of the thread that ran or submitted the root; all nodes run in it */
    _Atomic uint32_t outcome;   /* quern_result; valid until the next run of the root */
    uint32_t limit_node;        /* with LIMIT: index of the node that has chosen too often */
    uint32_t limit_count;
    const char *limit_name;

    /* Of a submitted run: */
    quern_jobs *jobs;
    quern_counter *counter; /* or NULL */
    uint64_t start_ns;
    /* Whether the run waits for counters, in the pool's list waiting_runs; under the queues' lock. */
    bool is_waiting;
    struct quern__graph_run *next_waiting;
    struct quern__graph_run *before_waiting;
    /* Job for an external worker: starts the run there, or runs the tasks in caller_tasks. */
    quern__node caller_node;

    bool has_ready_mutex;
    quern__mutex ready_mutex; /* with has_priorities: protects `ready`; kept for later runs */
    quern__task_queue ready[QUERN__PRIORITY_COUNT];

    _Alignas(QUERN__APART_BYTES) _Atomic(quern__graph_task *)
        caller_tasks;            /* ready tasks of nodes for the caller, newest first */
    _Atomic uint32_t call_count; /* of a submitted run: tasks that a called external worker has to run */
    _Atomic bool was_helped;     /* whether a worker other than `starter` took part */
} quern__graph_run;

struct quern_graph {
    quern_allocator allocator;
    quern__graph_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    quern__graph_edge *edges;
    uint32_t edge_count;
    uint32_t edge_capacity;
    uint32_t choice_count;      /* number of nodes that choose */
    uint32_t inner_count;       /* number of nodes that are graphs */
    uint32_t caller_count;      /* number of nodes for the caller */
    uint32_t prioritized_count; /* number of nodes with a priority other than normal */
    quern__graph_task *tasks;   /* [task_capacity]; allocated by the first run that needs them */
    quern__loop_slot *slots;    /* [task_capacity * slots_per_task] */
    uint32_t task_capacity;
    uint32_t slots_per_task;
    quern__known_times times;               /* of runs of this graph as a root */
    uint64_t item_count;                    /* number of items in the last of these runs */
    _Atomic(quern__graph_run *) claimed_by; /* run that this graph belongs to; NULL: none */
    quern__graph_run *run;                  /* copy of claimed_by for the threads that run the graph */
    quern__graph_task *parent; /* task of the outer graph's node that runs this graph; NULL for a root */
    /* Number of unfinished nodes; in graphs with choices, sum of due_count. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t unfinished_count;
    quern__graph_run own_run; /* the run of which this graph is the root */
};

static inline bool quern__graph_is_running(const quern_graph *graph)
{
    /* Acquire: pairs with the release at the end of a run. */
    return atomic_load_explicit(&graph->claimed_by, memory_order_acquire) != NULL;
}

/* Frees the memory that runs use. */
void quern__graph_release_tasks(quern_graph *graph);

/* quern_graph_run for a thread that is a worker of the pool already and stays in the pool. `graph` must not
 * be NULL. `jobs` is NULL to run without a pool. */
quern_result quern__graph_run_inside(quern_graph *graph, quern_jobs *jobs);

/* Ends a submitted run after its last node, when no other thread accesses it any more. `worker` is the
 * calling worker. */
void quern__graph_end_submitted(quern__graph_run *run, quern__worker *worker);

/* --------------------------------------------------------------------------------------- graph_task.c */

static inline quern__graph_node *quern__task_node(const quern__graph_task *task)
{
    return &task->graph->nodes[task->index];
}

/* Records that a cancel request made the run skip something. Relaxed: see quern__graph_is_stopped. */
static inline void quern__graph_note_cancelled(quern__graph_run *run)
{
    uint32_t none = QUERN_OK;
    atomic_compare_exchange_strong_explicit(&run->outcome, &none, QUERN_ERROR_CANCELLED,
                                            memory_order_relaxed, memory_order_relaxed);
}

/* Whether nodes have to be skipped: after a cancel request, or after a node chose too often. Relaxed: the
 * outcome only keeps nodes from beginning; the end of the run orders it for result_of (graph_run.c). */
static inline bool quern__graph_is_stopped(quern__graph_run *run)
{
    if (QUERN__LIKELY(!run->has_limits)) return false;
    if (quern__cancel_is_requested(run->cancel)) quern__graph_note_cancelled(run);
    return atomic_load_explicit(&run->outcome, memory_order_relaxed) != QUERN_OK;
}

/* Whether the node has something to run. Nodes without it finish normally even if a cancel request or limit has
 * stopped the run. */
static inline bool quern__node_has_work(const quern__graph_node *node)
{
    return node->choose != NULL || node->inner != NULL ||
           (node->range.function != NULL && node->range.count != 0);
}

/* Calls the node's function once, for all items. */
static inline void quern__node_call_once(const quern__graph_node *node, uint32_t worker_index)
{
    const quern__range *range = &node->range;
    if (range->function != NULL && range->count != 0)
        range->function(range->user_data, 0, range->count, worker_index);
}

/* Lets a node choose. Returns the index of the chosen node, or QUERN__NO_CHOICE. */
uint32_t quern__task_choose(quern__graph_task *task, uint32_t worker_index);

/* Subtracts one finished predecessor. Returns whether the task is ready; its counter then starts anew. */
bool quern__task_count_down(quern__graph_task *task);

/* Resets the tasks of a graph at the beginning of a run on several threads, or of a node that is a graph.
 * Returns `list` with the ready tasks in front. `run`, and `parent` for a node, must be set. */
quern__graph_task *quern__graph_reset(quern_graph *graph, quern__worker *worker, quern__graph_task *list);

/* Runs the tasks of `list` and those that become ready through them; offers other workers the tasks that it
 * does not get to. The graph may be gone when it returns, unless the calling worker is the caller of the
 * run. */
void quern__graph_run_ready(quern__graph_run *run, quern__worker *worker, quern__graph_task *list);

#endif
