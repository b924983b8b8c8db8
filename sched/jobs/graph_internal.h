/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_GRAPH_INTERNAL_H
#define QUERN_SCHED_JOBS_GRAPH_INTERNAL_H

/* A graph of loops: how it is built (graph.c), how a run begins and ends (graph_run.c), how its nodes run on
 * several threads (graph_task.c) or on one (graph_alone.c), and which of both it is (graph_time.c). */

#include "sched/jobs/loop.h"

#include <quern/graph.h>

#define QUERN__NO_EDGE    UINT32_MAX
#define QUERN__NO_CHOICE  UINT32_MAX
#define QUERN__UNKNOWN_NS UINT64_MAX

enum { QUERN__PRIORITY_COUNT = QUERN_PRIORITY_LOW + 1 };

typedef struct quern__graph_node {
    quern__range range;
    uint32_t predecessor_count; /* that this one waits for: edges from choices do not count */
    uint32_t first_edge;        /* to successors; the newest first */
    quern_choice_function *choose;
    uint32_t choice_limit;
    uint32_t edge_count; /* of a choice */
    quern_graph *inner;
    const char *name;
    quern_priority priority;
    bool caller_only;
    bool is_chosen; /* an edge from a choice leads here: it does not begin by itself */
} quern__graph_node;

typedef struct quern__graph_edge {
    uint32_t after;
    uint32_t next; /* of the same predecessor */
} quern__graph_edge;

/* What a node needs to run on several threads, or where there are choices. */
typedef struct quern__graph_task {
    quern_graph *graph;
    struct quern__graph_task *next_ready; /* in a list of ready tasks */
    uint32_t index;                       /* of its node */
    _Atomic uint32_t waiting_count;       /* unfinished predecessors */
    _Atomic uint32_t due_count;           /* where there are choices: runs that have begun or will */
    uint32_t choice_count;                /* how often it has chosen in this run */
    quern__loop loop;                     /* used when the range is shared */
} quern__graph_task;

/* First in, first out. */
typedef struct quern__task_queue {
    quern__graph_task *first;
    quern__graph_task *last;
} quern__task_queue;

/* What is known of the time that runs take: see graph_time.c. */
typedef struct quern__graph_times {
    uint64_t serial_ns;       /* what a run takes on one thread alone; QUERN__UNKNOWN_NS */
    uint64_t measured_ns;     /* the same by the last run on one thread alone; 0: to be measured */
    uint64_t shared_ns;       /* what the last run took that others could help with; 0: not known */
    uint32_t alone_runs;      /* how many there are between tries to share that make it slower */
    uint32_t alone_runs_left; /* until the next one */
    uint64_t item_count;      /* of the last run */
} quern__graph_times;

struct quern_graph {
    quern_allocator allocator;
    quern__graph_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    quern__graph_edge *edges;
    uint32_t edge_count;
    uint32_t edge_capacity;
    uint32_t choice_count;    /* nodes that choose */
    uint32_t inner_count;     /* nodes that are graphs */
    uint32_t caller_count;    /* nodes for the caller alone */
    uint32_t ranked_count;    /* nodes that are not of normal priority */
    quern__graph_task *tasks; /* [task_capacity]; made by the first run that needs them */
    quern__slot *slots;       /* [task_capacity * slots_per_task] */
    uint32_t task_capacity;
    uint32_t slots_per_task;
    quern__graph_times times;
    /* The run that this graph belongs to, by the graph that it is a run of: itself, or the one that has it
     * as a node, and so on. NULL: it does not run. */
    _Atomic(quern_graph *) claimed_by;
    quern_graph *root;         /* the same, for those who run it */
    quern__graph_task *parent; /* of one that is a node: that node */

    /* Of a root alone, and of one run: */
    quern__worker *caller; /* waits for the run; NULL: it was submitted, and nobody does */
    const void *scope;     /* of all that the run puts into deques; closed */
    quern_cancel *cancel;
    bool wake;             /* sleepers */
    bool has_ranks;        /* there are nodes that are not of normal priority */
    bool has_limits;       /* something may keep nodes from beginning: a choice too many, a request */
    bool needs_guest;      /* there are nodes for the caller alone */
    uint32_t sharer_count; /* workers for whom there is memory */
    bool has_ready_mutex;
    _Atomic uint32_t outcome; /* a quern_result; what it was at the end of the last run */
    uint32_t limit_node;      /* of LIMIT: which has chosen too often */
    uint32_t limit_count;
    const char *limit_name;
    quern_jobs *jobs; /* of a submitted run: */
    quern_counter *counter;
    bool is_waiting;           /* for counters: in the pool's list of such, under the queues' lock */
    quern_graph *next_waiting; /* in that list */
    quern_graph *before_waiting;
    quern__worker *starter; /* began it */
    uint64_t start_ns;
    quern__node caller_node;     /* calls a guest for what stands in caller_tasks */
    pthread_mutex_t ready_mutex; /* of what has_ranks: ready tasks, by priority */
    quern__task_queue ready[QUERN__PRIORITY_COUNT];

    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t unfinished_count; /* nodes; with choices: those due */
    _Atomic bool was_helped;                                        /* somebody but the caller took part */
    _Alignas(QUERN__APART_BYTES) _Atomic(quern__graph_task *)
        caller_tasks;            /* ready, for the caller alone */
    _Atomic uint32_t call_count; /* of a submitted run: tasks for which a guest was called */
};

static inline bool quern__graph_is_running(const quern_graph *graph)
{
    /* Acquire: pairs with the release at the end of a run. */
    return atomic_load_explicit(&graph->claimed_by, memory_order_acquire) != NULL;
}

/* Gives back the memory that runs need. */
void quern__graph_release_tasks(quern_graph *graph);

/* quern_graph_run for a caller that is a worker of the pool already, and stays it afterwards; graph is not
 * NULL, and without a pool jobs is. */
quern_result quern__graph_run(quern_graph *graph, quern_jobs *jobs);

/* A run that was submitted is over; nobody else touches it any more. worker: who found that. */
void quern__graph_end_submitted(quern_graph *graph, quern__worker *worker);

/* --------------------------------------------------------------------------------------- graph_task.c */

static inline quern__graph_node *quern__task_node(const quern__graph_task *task)
{
    return &task->graph->nodes[task->index];
}

/* Something was left out because that was requested. Relaxed: see quern__graph_stops. */
static inline void quern__graph_note_cancelled(quern_graph *root)
{
    uint32_t none = QUERN_OK;
    atomic_compare_exchange_strong_explicit(&root->outcome, &none, QUERN_ERROR_CANCELLED,
                                            memory_order_relaxed, memory_order_relaxed);
}

/* Relaxed: it only keeps nodes from beginning; see graph_run.c for who reads it in the end. */
static inline bool quern__graph_stops(quern_graph *root)
{
    if (QUERN__LIKELY(!root->has_limits)) return false;
    if (quern__cancel_is_requested(root->cancel)) quern__graph_note_cancelled(root);
    return atomic_load_explicit(&root->outcome, memory_order_relaxed) != QUERN_OK;
}

/* Whether a node has something to do that a stop keeps from beginning. */
static inline bool quern__node_has_work(const quern__graph_node *node)
{
    return node->choose != NULL || node->inner != NULL ||
           (node->range.function != NULL && node->range.count != 0);
}

/* All items in one call. */
static inline void quern__node_call_once(const quern__graph_node *node, uint32_t worker_index)
{
    const quern__range *range = &node->range;
    if (range->function != NULL && range->count != 0)
        range->function(range->user_data, 0, range->count, worker_index);
}

/* Where a node leads that chooses: the node of an edge, or QUERN__NO_CHOICE. */
uint32_t quern__task_choose(quern__graph_task *task, uint32_t worker_index);

/* Counts a predecessor down. Whether that makes the node ready: then it begins to count anew. */
bool quern__task_count_down(quern__graph_task *task);

/* Begins a run on several threads, or a node that is a graph: puts the tasks that are ready in front of the
 * list. Needs root, and parent of a node. */
quern__graph_task *quern__graph_reset(quern_graph *graph, quern__worker *worker, quern__graph_task *list);

/* Runs what is on the list, and what becomes ready by that; offers to others what it does not get to. When
 * it returns, the graph may be gone, but for the caller. */
void quern__graph_run_ready(quern_graph *root, quern__worker *worker, quern__graph_task *list);

/* ---------------------------------------------------------------------------------------- graph_alone.c */

/* All of a graph on this thread; one that is a node, too. worker may be NULL: there is no pool. */
void quern__graph_run_alone(quern_graph *graph, quern__worker *worker);

/* -------------------------------------------------------------------------------------- graph_time.c */

typedef enum quern__run_mode {
    QUERN__RUN_ALONE,
    QUERN__RUN_QUIET, /* wakes nobody */
    QUERN__RUN_WAKE
} quern__run_mode;

/* What is known of the time of runs is of no use any more. */
static inline void quern__graph_forget_times(quern_graph *graph)
{
    graph->times.serial_ns = QUERN__UNKNOWN_NS;
    graph->times.measured_ns = 0;
    graph->times.shared_ns = 0;
    graph->times.alone_runs = 0;
    graph->times.alone_runs_left = 0;
}

quern__run_mode quern__graph_choose_mode(quern_graph *graph);

/* What a run took: on one thread; on all that came. worker: who ran it, or its end. */
void quern__graph_learn_alone(quern_graph *graph, uint64_t took_ns);
void quern__graph_learn_shared(quern_graph *graph, uint64_t took_ns, quern__worker *worker);

#endif
