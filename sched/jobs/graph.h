/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_GRAPH_H
#define QUERN_SCHED_JOBS_GRAPH_H

/* A graph of loops: what it is made of (graph.c), and what it needs to run (graph_run.c). */

#include "sched/jobs/loop.h"

#include <quern/graph.h>

#define QUERN__NO_EDGE    UINT32_MAX
#define QUERN__UNKNOWN_NS UINT64_MAX

typedef struct quern__graph_node {
    quern__range range;
    uint32_t predecessor_count;
    uint32_t first_edge; /* to successors; the newest first */
    bool caller_only;
} quern__graph_node;

typedef struct quern__graph_edge {
    uint32_t after;
    uint32_t next; /* of the same predecessor */
} quern__graph_edge;

/* What a node needs to run on several threads. */
typedef struct quern__graph_task {
    quern_graph *graph;
    struct quern__graph_task *next_ready; /* in a list of ready tasks */
    uint32_t index;                       /* of its node */
    _Atomic uint32_t waiting_count;       /* unfinished predecessors */
    quern__loop loop;                     /* used when the range is shared */
} quern__graph_task;

struct quern_graph {
    quern_allocator allocator;
    quern__graph_node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    quern__graph_edge *edges;
    uint32_t edge_count;
    uint32_t edge_capacity;
    quern__graph_task *tasks; /* [task_capacity]; made by the first run on several threads */
    quern__slot *slots;       /* [task_capacity * slots_per_task] */
    uint32_t task_capacity;
    uint32_t slots_per_task;
    uint64_t serial_ns;        /* what a run takes on the caller alone; QUERN__UNKNOWN_NS */
    uint64_t measured_ns;      /* the same by the last run on the caller alone; 0: to be measured */
    uint64_t shared_ns;        /* what the last run took that others could help with; 0: not known */
    uint32_t alone_runs;       /* how many there are between tries to share that make it slower */
    uint32_t alone_runs_left;  /* until the next one */
    uint64_t timed_item_count; /* of the last run */
    quern__worker *caller;     /* waits for this run, and runs the nodes that are for it alone */
    bool wake;                 /* this run wakes sleepers */
    _Atomic bool is_running;
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t unfinished_count; /* nodes */
    _Atomic bool was_helped;                                        /* somebody but the caller took part */
    _Alignas(QUERN__APART_BYTES) _Atomic(quern__graph_task *)
        caller_tasks; /* ready, for the caller alone */
};

/* What is known of the time of runs is of no use any more. */
static inline void quern__graph_forget_times(quern_graph *graph)
{
    graph->serial_ns = QUERN__UNKNOWN_NS;
    graph->measured_ns = 0;
    graph->shared_ns = 0;
    graph->alone_runs = 0;
    graph->alone_runs_left = 0;
}

/* Gives back the memory that runs on several threads need. */
void quern__graph_release_tasks(quern_graph *graph);

/* quern_graph_run for a caller that is a worker of the pool already, and stays it afterwards; graph is not
 * NULL, and without a pool jobs is. */
quern_result quern__graph_run(quern_graph *graph, quern_jobs *jobs);

#endif
