/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* Graphs (sched/jobs/graph_run.c, graph_task.c). Checked: each node runs as often as specified, after
 * its predecessors and never twice at the same time; its writes are visible to its successors and to the
 * thread that finds the run done. That thread may free the graph, so no thread accesses the graph
 * afterwards. The run ends, also if some nodes are for one thread only. */

/* Several sources have static functions with these names. */
#include "sched/jobs/graph_task.c" /* NOLINT(bugprone-suspicious-include) */
#define claim         claim_graph
#define fail_memory   fail_graph_memory
#define release       release_graph
#define run_shared    run_graph_shared
#define run_submitted run_graph_submitted
#define run_task      run_task_alone
#include "sched/jobs/graph_run.c" /* NOLINT(bugprone-suspicious-include) */

/* ----------------------------------------------------------------------------------------- the graph */

enum { MAX_NODES = 4, MAX_EDGES = 4 };

static quern_graph *graph;
/* plain: a node that runs twice at the same time, or too early, is a race */
static int run_counts[MAX_NODES];
static pthread_t thread;

void quern__release(const quern_allocator *allocator, void *pointer, size_t size_bytes,
                    size_t alignment_bytes)
{
    (void)allocator, (void)size_bytes, (void)alignment_bytes;
    if (pointer != NULL) free(pointer);
}

/* Creates an empty graph like quern_graph_create, with reserved nodes, edges and tasks. Its measured
 * times make runs shared, without waking workers: the helping thread is awake. Members are set one by
 * one, because GenMC does not support copies of structures in allocated memory. */
static void make_graph(void)
{
    graph = malloc(sizeof *graph);
    graph->nodes = malloc(MAX_NODES * sizeof *graph->nodes);
    graph->node_count = 0;
    graph->edges = malloc(MAX_EDGES * sizeof *graph->edges);
    graph->edge_count = 0;
    graph->choice_count = 0;
    graph->inner_count = 0;
    graph->caller_count = 0;
    graph->prioritized_count = 0;
    graph->own_run.has_ready_mutex = false;
    graph->tasks = malloc(MAX_NODES * sizeof *graph->tasks);
    graph->slots = NULL;
    graph->task_capacity = MAX_NODES;
    graph->slots_per_task = MAX_WORKERS;
    graph->times.alone_ns = 2 * TINY_NS;
    graph->times.measured_ns = 2 * TINY_NS;
    graph->times.shared_ns = 0;
    graph->times.alone_runs = 0;
    graph->times.alone_runs_left = 0;
    graph->item_count = MAX_NODES;
    for (uint32_t rank = 0; rank < QUERN__PRIORITY_COUNT; rank++) {
        graph->own_run.ready[rank].first = NULL;
        graph->own_run.ready[rank].last = NULL;
    }
    atomic_init(&graph->claimed_by, NULL);
}

static void free_graph(void)
{
    assert(!quern__graph_is_running(graph));
    free(graph->nodes);
    free(graph->edges);
    free(graph->tasks);
    free(graph);
}

/* Like quern_graph_add_node and quern_graph_add_edge. */
static quern__graph_node *add_node(quern_range_function *function)
{
    const uint32_t index = graph->node_count++;
    quern__graph_node *node = &graph->nodes[index];
    node->range.function = function;
    node->range.user_data = &run_counts[index];
    node->range.count = 1;
    node->range.grain = 0;
    node->range.first = 0;
    node->range.cancel = NULL;
    node->predecessor_count = 0;
    node->first_edge = QUERN__NO_EDGE;
    node->choose = NULL;
    node->choice_limit = UINT32_MAX;
    node->edge_count = 0;
    node->inner = NULL;
    node->name = NULL;
    node->priority = QUERN_PRIORITY_NORMAL;
    node->is_for_caller = false;
    node->is_chosen = false;
    graph->tasks[index].graph = graph;
    graph->tasks[index].index = index;
    return node;
}

static void add_choice(quern_choice_function *choose)
{
    add_node(NULL)->choose = choose;
    graph->choice_count++;
}

static void add_edge(uint32_t before, uint32_t after)
{
    const uint32_t index = graph->edge_count++;
    quern__graph_node *node = &graph->nodes[before];
    graph->edges[index].after = after;
    graph->edges[index].next = node->first_edge;
    node->first_edge = index;
    if (node->choose != NULL) {
        node->edge_count++;
        graph->nodes[after].is_chosen = true;
    } else {
        graph->nodes[after].predecessor_count++;
    }
}

static void run_node_once(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin, (void)end, (void)worker_index;
    ++*(int *)user_data;
}

/* The last node: all nodes before it must have run. */
static void run_last(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin, (void)end, (void)worker_index;
    int *own = user_data;
    for (int *count = run_counts; count != own; count++)
        assert(*count == 1);
    ++*own;
}

static void check(uint32_t node_count)
{
    for (uint32_t index = 0; index < node_count; index++)
        assert(run_counts[index] == 1);
}

/* Steals one job from the deque of worker 0, if there is one, and runs it. */
static void *take_one(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    quern__current_worker = worker;
    if (quern__deque_steal(&workers[0].deque, &job)) quern__worker_run_job(worker, &job);
    return NULL;
}

/* -------------------------------------------------------------------------------------- with a caller */

static void run_with_thief(void)
{
    set_up(2);
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    quern__current_worker = &workers[0];
    pthread_create(&thread, NULL, take_one, &workers[1]);
    quern_result result = quern_graph_run(graph, &pool);
    assert(result == QUERN_OK);
}

static void end_thief(void)
{
    pthread_join(thread, NULL);
    free_graph();
}

void graph_two_nodes(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    run_with_thief();
    check(2);
    end_thief();
}

void graph_join(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    add_node(run_last);
    add_edge(0, 2);
    add_edge(1, 2);
    run_with_thief();
    check(3);
    end_thief();
}

/* Two nodes after the first, and one node after both. */
void graph_diamond(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    add_node(run_node_once);
    add_node(run_last);
    add_edge(0, 1);
    add_edge(0, 2);
    add_edge(1, 3);
    add_edge(2, 3);
    run_with_thief();
    check(4);
    end_thief();
}

/* Index + 1 of the worker that has begun the node of low priority. Relaxed: a worker that runs both nodes sees its
 * own write. */
static _Atomic int low_runner;

static void run_low(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin, (void)end;
    atomic_store_explicit(&low_runner, 1 + (int)worker_index, memory_order_relaxed);
    ++*(int *)user_data;
}

/* A worker that runs both nodes runs this one first. */
static void run_high(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin, (void)end;
    assert(atomic_load_explicit(&low_runner, memory_order_relaxed) != 1 + (int)worker_index);
    ++*(int *)user_data;
}

void graph_ranked(void)
{
    make_graph();
    add_node(run_low)->priority = QUERN_PRIORITY_LOW;
    add_node(run_high)->priority = QUERN_PRIORITY_HIGH;
    graph->prioritized_count = 2;
    run_with_thief();
    check(2);
    end_thief();
}

/* A node for the caller only, after a node that the thief may run. */
static void run_for_caller(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    assert(worker_index == 0);
    run_last(user_data, begin, end, worker_index);
}

void graph_for_caller(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    add_node(run_for_caller)->is_for_caller = true;
    graph->caller_count++;
    add_edge(0, 2);
    add_edge(1, 2);
    run_with_thief();
    check(3);
    end_thief();
}

/* ------------------------------------------------------------------------------------------- choices */

static uint32_t choose_first(void *user_data, uint32_t worker_index)
{
    (void)worker_index;
    ++*(int *)user_data;
    return 0;
}

static uint32_t choose_first_once(void *user_data, uint32_t worker_index)
{
    return choose_first(user_data, worker_index) + (uint32_t)(*(int *)user_data == 2);
}

/* Two choice nodes choose the same node, which runs once for each of them. */
void graph_chosen_twice(void)
{
    make_graph();
    add_choice(choose_first);
    add_choice(choose_first);
    add_node(run_node_once);
    add_edge(0, 2);
    add_edge(1, 2);
    run_with_thief();
    check(2);
    assert(run_counts[2] == 2);
    end_thief();
}

/* Node 1 and the following choice run twice. The thief may run any of these runs, or the other node. */
void graph_choice_loops(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    add_choice(choose_first_once);
    add_node(run_node_once);
    add_edge(0, 1);
    add_edge(0, 3);
    add_edge(1, 2);
    add_edge(2, 1);
    run_with_thief();
    assert(run_counts[0] == 1 && run_counts[1] == 2 && run_counts[2] == 2 && run_counts[3] == 1);
    end_thief();
}

/* ----------------------------------------------------------------------------------------- submitted */

static quern_counter *counter;
static pthread_t runner;

/* Takes the run from the queue, and ends when the worker's deque has no more of its jobs. */
static void *run_submitted_graph(void *argument)
{
    quern__worker *worker = argument;
    quern__job job;
    quern__current_worker = worker;
    const bool found = quern__queues_take(&pool.queues, QUERN__QUEUE_NORMAL, NULL, &job);
    assume(found);
    if (found) quern__worker_run_job(worker, &job);
    while (pop_own(worker, &job))
        quern__worker_run_job(worker, &job);
    return NULL;
}

/* Like quern_graph_submit. */
static void submit_graph(void)
{
    set_up(2);
    counter = malloc(sizeof *counter);
    atomic_init(&counter->pending, 0);
    counter->links = NULL;
    quern__current_worker = &workers[0];
    quern__graph_run *run = &graph->own_run;
    quern_result result = claim_all(graph, MAX_WORKERS, NULL, "quern_graph_submit");
    assert(result == QUERN_OK);
    run->counter = counter;
    run->jobs = &pool;
    run->is_waiting = false;
    run->scope = quern__scope_close(counter);
    run->caller_node.jobs = &pool;
    run->caller_node.queue = QUERN__QUEUE_CALLER;
    run->caller_node.link_count = QUERN__CALLER_OWNED_NODE;
    run->caller_node.job.data[0] = 0; /* copied with the job */
    quern__node *node = quern__queues_take_node(&pool.queues);
    node->job.run = run_graph_submitted;
    node->job.scope = run->scope;
    node->job.target = run;
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = &pool;
    atomic_fetch_add_explicit(&counter->pending, 1, memory_order_relaxed);
    quern__node_submit(node, &workers[0]);
}

static void free_all(void)
{
    quern_result result = quern_graph_result(graph);
    assert(result == QUERN_OK);
    free_graph();
    free(counter);
}

/* Polls the counter and frees everything as soon as the counter is zero. */
static void run_and_free(uint32_t node_count)
{
    pthread_create(&runner, NULL, run_submitted_graph, &workers[0]);
    assume(quern_counter_is_done(counter));
    check(node_count);
    free_all();
    pthread_join(runner, NULL);
}

void graph_freed(void)
{
    make_graph();
    add_node(run_node_once);
    submit_graph();
    run_and_free(1);
}

void graph_freed_with_thief(void)
{
    make_graph();
    add_node(run_node_once);
    add_node(run_node_once);
    submit_graph();
    pthread_create(&thread, NULL, take_one, &workers[1]);
    run_and_free(2);
    pthread_join(thread, NULL);
}

/* An external thread waits for a run and is the only thread that may run some of its nodes. A worker
 * that makes such a node ready wakes the external thread. */
static void run_with_external(uint32_t node_count)
{
    submit_graph();
    atomic_store_explicit(&pool.external_slots, 1, memory_order_relaxed);
    pthread_create(&runner, NULL, run_submitted_graph, &workers[1]);
    wait_as_worker(&workers[0], counter);
    check(node_count);
    free_all();
    pthread_join(runner, NULL);
}

static void add_caller_node(quern_range_function *function)
{
    add_node(function)->is_for_caller = true;
    graph->caller_count++;
}

void graph_submitted_for_caller(void)
{
    make_graph();
    add_node(run_node_once);
    add_caller_node(run_for_caller);
    add_edge(0, 1);
    run_with_external(2);
}

static void run_on_external(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    assert(worker_index == 0);
    run_node_once(user_data, begin, end, worker_index);
}

/* The external thread may run the first node before it is woken for the second. */
void graph_submitted_all_for_caller(void)
{
    make_graph();
    add_caller_node(run_on_external);
    add_caller_node(run_on_external);
    run_with_external(2);
}
