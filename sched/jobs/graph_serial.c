/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* Runs of a graph on one thread: in pools of one thread, without a pool, and for short runs. The order of
 * the nodes is always the same. */

/* `worker` is NULL if there is no pool. */
static uint32_t index_of(const quern__worker *worker)
{
    return worker != NULL ? worker->index : 0;
}

static quern__named_work begin_named(quern__worker *worker, const quern__graph_node *node)
{
    return quern__worker_begin_named(worker, worker != NULL ? node->name : NULL);
}

static void run_items(const quern__graph_node *node, quern_graph *root, uint32_t worker_index)
{
    if (QUERN__LIKELY(root->cancel == NULL)) {
        quern__range_run(&node->range, worker_index);
        return;
    }
    quern__range range = node->range;
    range.cancel = root->cancel;
    if (!quern__range_run(&range, worker_index)) quern__graph_note_cancelled(root);
}

static void run_node(const quern__graph_node *node, quern_graph *root, quern__worker *worker)
{
    if (node->inner != NULL) {
        quern__graph_run_serial(node->inner, worker);
        return;
    }
    const quern__named_work work = begin_named(worker, node);
    if (node->caller_only)
        quern__node_call_once(node, index_of(worker));
    else if (node->range.function != NULL)
        run_items(node, root, index_of(worker));
    quern__worker_end_named(worker, &work);
}

/* Runs the nodes by index. Edges lead from lower to higher indices, so that this order respects them. */
static void run_by_number(const quern_graph *graph, quern__worker *worker)
{
    const bool has_limits = graph->root->has_limits;
    for (uint32_t index = 0; index < graph->node_count; index++) {
        const quern__graph_node *node = &graph->nodes[index];
        if (!has_limits || (quern__node_has_work(node) && !quern__graph_is_stopped(graph->root)))
            run_node(node, graph->root, worker);
    }
}

/* --------------------------------------------------------------------------------- in order of readiness */

static void put(quern__task_queue *ready, quern__graph_task *task)
{
    quern__task_queue *queue = &ready[quern__task_node(task)->priority];
    task->next_ready = NULL;
    if (queue->first == NULL)
        queue->first = task;
    else
        queue->last->next_ready = task;
    queue->last = task;
}

static quern__graph_task *take(quern__task_queue *ready)
{
    static const quern_priority order[] = {QUERN_PRIORITY_HIGH, QUERN_PRIORITY_NORMAL, QUERN_PRIORITY_LOW};
    for (uint32_t i = 0; i < QUERN__PRIORITY_COUNT; i++) {
        quern__task_queue *queue = &ready[order[i]];
        quern__graph_task *first = queue->first;
        if (first == NULL) continue;
        queue->first = first->next_ready;
        return first;
    }
    return NULL;
}

/* Counts one more execution of a task. Returns whether no other one was due. Relaxed: only one thread runs
 * the graph. */
static bool becomes_due(quern__graph_task *task)
{
    return atomic_fetch_add_explicit(&task->due_count, 1, memory_order_relaxed) == 0;
}

/* Puts the successors that became ready into the queues, in the order in which their edges were added; the
 * list of edges has the newest first. */
static void put_successors(quern__task_queue *ready, const quern__graph_task *finished)
{
    const quern_graph *graph = finished->graph;
    quern__graph_task *list = NULL;
    for (uint32_t index = quern__task_node(finished)->first_edge; index != QUERN__NO_EDGE;
         index = graph->edges[index].next) {
        quern__graph_task *successor = &graph->tasks[graph->edges[index].after];
        if (!quern__task_count_down(successor) || !becomes_due(successor)) continue;
        successor->next_ready = list;
        list = successor;
    }
    while (list != NULL) {
        quern__graph_task *next = list->next_ready;
        put(ready, list);
        list = next;
    }
}

static void run_task(quern__task_queue *ready, quern__graph_task *task, quern__worker *worker)
{
    const quern_graph *graph = task->graph;
    const quern__graph_node *node = quern__task_node(task);
    const bool begins = quern__node_has_work(node) && !quern__graph_is_stopped(graph->root);
    if (node->choose == NULL) {
        if (begins) run_node(node, graph->root, worker);
        put_successors(ready, task);
    } else if (begins) {
        const quern__named_work work = begin_named(worker, node);
        const uint32_t chosen = quern__task_choose(task, index_of(worker));
        quern__worker_end_named(worker, &work);
        if (chosen != QUERN__NO_CHOICE && becomes_due(&graph->tasks[chosen]))
            put(ready, &graph->tasks[chosen]);
    }
}

/* Runs the tasks by priority, in the order in which they become ready. Relaxed: only one thread runs the
 * graph. */
static void run_by_readiness(const quern_graph *graph, quern__worker *worker)
{
    quern__task_queue ready[QUERN__PRIORITY_COUNT] = {0};
    for (uint32_t index = 0; index < graph->node_count; index++) {
        const quern__graph_node *node = &graph->nodes[index];
        quern__graph_task *task = &graph->tasks[index];
        atomic_store_explicit(&task->waiting_count, node->predecessor_count, memory_order_relaxed);
        atomic_store_explicit(&task->due_count, 0, memory_order_relaxed);
        task->choice_count = 0;
        if (node->predecessor_count == 0 && !node->is_chosen && becomes_due(task)) put(ready, task);
    }
    for (quern__graph_task *task; (task = take(ready)) != NULL;) {
        run_task(ready, task, worker);
        if (atomic_fetch_sub_explicit(&task->due_count, 1, memory_order_relaxed) != 1) put(ready, task);
    }
}

void quern__graph_run_serial(quern_graph *graph, quern__worker *worker)
{
    if (graph->choice_count != 0 || graph->prioritized_count != 0)
        run_by_readiness(graph, worker);
    else
        run_by_number(graph, worker);
}
