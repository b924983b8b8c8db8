/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* ------------------------------------------------------------------------------------- whether to share */

/* Decides how to run a graph (sharing.c). Its known times are those of another graph if it has more than
 * twice as many items now. */
static quern__run_mode choose_mode(quern_graph *graph)
{
    uint64_t item_count = 0;
    for (uint32_t index = 0; index < graph->node_count; index++)
        item_count += graph->nodes[index].range.count;
    if (item_count / 2 > graph->item_count) quern__times_forget(&graph->times);
    graph->item_count = item_count;
    return quern__times_choose(&graph->times, 1);
}

/* Notes the duration of a run on several threads; `worker` ran its last node. The flag is read with relaxed
 * order, because the worker that ends a run has acquired all writes of helpers. */
static void learn_shared(quern_graph *graph, uint64_t took_ns, quern__worker *worker)
{
    const bool had_help = atomic_load_explicit(&graph->own_run.was_helped, memory_order_relaxed);
    if (!had_help && took_ns >= 2 * (uint64_t)QUERN__QUIET_NS) quern__worker_yield_after_long_work(worker);
    quern__times_learn_shared(&graph->times, 1, took_ns,
                              (double)took_ns * (had_help ? worker->jobs->thread_count : 1));
}

/* ------------------------------------------------------------------------------------ runs on one thread */

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

static void run_node(const quern__graph_node *node, quern__graph_run *run, quern__worker *worker);

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
    const bool begins = quern__node_has_work(node) && !quern__graph_is_stopped(graph->run);
    if (node->choose == NULL) {
        if (begins) run_node(node, graph->run, worker);
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

/* Runs a whole graph, which may be a node of another, on this thread. `worker` is NULL if there is no
 * pool. */
static void graph_run_serial(quern_graph *graph, quern__worker *worker)
{
    if (graph->choice_count != 0 || graph->prioritized_count != 0)
        run_by_readiness(graph, worker);
    else {
        /* By index: edges lead from lower to higher indices, so that this order respects them. */
        const bool has_limits = graph->run->has_limits;
        for (uint32_t index = 0; index < graph->node_count; index++) {
            const quern__graph_node *node = &graph->nodes[index];
            if (!has_limits || (quern__node_has_work(node) && !quern__graph_is_stopped(graph->run)))
                run_node(node, graph->run, worker);
        }
    }
}

static void run_node(const quern__graph_node *node, quern__graph_run *run, quern__worker *worker)
{
    if (node->inner != NULL) {
        graph_run_serial(node->inner, worker);
        return;
    }
    const quern__named_work work = begin_named(worker, node);
    if (node->is_for_caller) {
        quern__node_call_once(node, index_of(worker));
    } else if (node->range.function != NULL && QUERN__LIKELY(run->cancel == NULL)) {
        quern__range_run(&node->range, index_of(worker));
    } else if (node->range.function != NULL) {
        quern__range range = node->range;
        range.cancel = run->cancel;
        if (!quern__range_run(&range, index_of(worker))) quern__graph_note_cancelled(run);
    }
    quern__worker_end_named(worker, &work);
}

/* -------------------------------------------------------------------------------------------------- runs */

/* Runs of a graph.
 *
 * Each node has a counter of unfinished predecessors. The worker that finishes a node counts down its
 * successors; those that reach 0 are ready. The worker runs the first of them itself and pushes the others
 * into its deque for other workers. A node with a range to share is a loop: the worker that starts it
 * invites others, runs items, and continues without waiting; the worker that leaves the loop last finishes
 * the node. A node that is a graph puts its ready nodes on the worker's list; the worker that finishes the
 * last of them finishes the node. So no worker ever blocks inside of a node. Nodes for the caller wait in
 * a list that the caller checks between two jobs.
 *
 * The caller of a run, quern_graph_run, waits for it. Any worker may be a caller, also inside of a node of
 * another graph. A submitted run has no caller: it begins as a job in a queue, and the worker that finishes
 * its last node ends it. Several graphs may run at a time.
 *
 * A node never begins in the middle of another node on the same worker, except nodes that the other one
 * asked for. All jobs that a run pushes have one closed scope, its own (deque.h). A worker that waits
 * inside of a node takes them only if it waits for this run. So graphs nest on a worker only as calls do.
 *
 * Each run makes progress. The caller of a run waits for nothing else, and takes what other workers do not
 * take. Jobs of a submitted run are taken by any worker that is not inside of a node, also by the last
 * worker that is awake in a wait (wait.c). The only requirement is that a node waits for other nodes only
 * by running a graph or by waiting for the counter of one.
 *
 * The end of a run. `unfinished_count` is the number of unfinished nodes. In graphs with choices, where a
 * node may run often or never, it is the number of due executions; only a worker with an unfinished
 * execution increments it, before it finishes that one. So it reaches 0 once, when no part of the graph is
 * in a deque, in a list or on a worker. A node remains unfinished while its loop has references, and while
 * it is a graph that runs. Each access to a graph is covered by a node that is unfinished until after the
 * access:
 *
 *     a worker that runs a task, or has it on its list   that task
 *     a worker that has taken a job out of a deque       the task in the job; for a ticket, the task it finds
 *     a worker that gives a task to the caller, or       that task, or the one behind it in the same list
 *     calls an external worker for it
 *     a worker that counts down                          none: it has read all that it needs before
 *     a worker that has counted down to 0                with a caller none: it accesses the graph no more;
 *                                                        otherwise none is needed: it alone ends the run
 *
 * That worker ends a submitted run. It releases the graphs that are nodes, then the root (`claimed_by`),
 * and counts down the counter last, because a thread may wait for the counter to destroy the graph. In a
 * run with a caller, the caller's permit follows the count; the caller is a worker of the pool, and stays
 * one as long as other threads may access it. */

/* ---------------------------------------------------------------------------------------------- memory */

void quern__graph_release_tasks(quern_graph *graph)
{
    size_t slot_count = (size_t)graph->task_capacity * graph->slots_per_task;
    quern__release(&graph->allocator, graph->tasks, graph->task_capacity * sizeof(quern__graph_task),
                   _Alignof(quern__graph_task));
    quern__release(&graph->allocator, graph->slots, slot_count * sizeof(quern__loop_slot),
                   _Alignof(quern__loop_slot));
    graph->tasks = NULL;
    graph->slots = NULL;
    graph->task_capacity = 0;
    graph->slots_per_task = 0;
}

/* Allocates tasks and slots for `worker_count` workers; later runs reuse them. */
static quern_result prepare(quern_graph *graph, uint32_t worker_count, const char *function)
{
    if (graph->node_count <= graph->task_capacity && worker_count <= graph->slots_per_task) return QUERN_OK;
    quern__graph_release_tasks(graph);
    const uint32_t capacity = graph->node_capacity;
    size_t slots_bytes = (size_t)capacity * worker_count * sizeof(quern__loop_slot);
    graph->task_capacity = capacity;
    graph->slots_per_task = worker_count;
    graph->tasks = quern__allocate(&graph->allocator, capacity * sizeof(quern__graph_task),
                                   _Alignof(quern__graph_task));
    graph->slots = quern__allocate(&graph->allocator, slots_bytes, _Alignof(quern__loop_slot));
    if (graph->tasks == NULL || graph->slots == NULL) {
        quern__graph_release_tasks(graph);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for %u nodes on %u workers",
                           function, (unsigned)graph->node_count, (unsigned)worker_count);
    }
    for (uint32_t index = 0; index < graph->task_capacity; index++) {
        graph->tasks[index].graph = graph;
        graph->tasks[index].index = index;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- claiming */

/* A run claims the graph and all graphs that are nodes of it, at any depth, from its beginning to its end.
 * No other run can use a claimed graph, and no call can change it. */
typedef struct claimant {
    quern__graph_run *run;
    uint32_t worker_count; /* workers that may share the run; 1: it runs on one thread */
    const char *function;  /* name of the public call in messages */
    bool has_root;         /* whether the root is claimed */
    uint32_t index;        /* index of the node with the graph that is being claimed */
    const char *name;      /* name of that node */
} claimant;

static quern_result claim(claimant *by, quern_graph *graph);

/* Releases the graphs of the first node_count nodes. Release: successive runs may be on different threads;
 * it pairs with the acquire in claim. */
static void release_inner(const quern_graph *graph, uint32_t node_count)
{
    for (uint32_t index = 0; index < node_count && graph->inner_count != 0; index++) {
        quern_graph *inner = graph->nodes[index].inner;
        if (inner == NULL) continue;
        release_inner(inner, inner->node_count);
        atomic_store_explicit(&inner->claimed_by, NULL, memory_order_release);
    }
}

static quern_result claim_inner(claimant *by, const quern_graph *graph)
{
    for (uint32_t index = 0; index < graph->node_count; index++) {
        if (graph->nodes[index].inner == NULL) continue;
        by->index = index;
        by->name = graph->nodes[index].name;
        quern_result result = claim(by, graph->nodes[index].inner);
        if (result == QUERN_OK) continue;
        release_inner(graph, index);
        return result;
    }
    return QUERN_OK;
}

static quern_result check_beginning(const claimant *by, const quern_graph *graph)
{
    if (graph->choice_count == 0) return QUERN_OK;
    for (uint32_t index = 0; index < graph->node_count; index++)
        if (graph->nodes[index].predecessor_count == 0 && !graph->nodes[index].is_chosen) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: none of %u nodes can begin, because edges lead to all of them; add a node without"
        " edges to it",
        by->function, (unsigned)graph->node_count);
}

static quern_result claim_memory(claimant *by, quern_graph *graph)
{
    const bool is_prioritized = graph->prioritized_count != 0;
    quern_result result = check_beginning(by, graph);
    const bool has_tasks = by->worker_count > 1 || graph->choice_count != 0 || is_prioritized;
    if (result == QUERN_OK && has_tasks && graph->node_count != 0)
        result = prepare(graph, by->worker_count, by->function);
    if (result == QUERN_OK && is_prioritized && !by->run->has_ready_mutex) {
        by->run->has_ready_mutex = quern__mutex_init(&by->run->ready_mutex);
        if (!by->run->has_ready_mutex)
            result = quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE, "%s: the system could not create a mutex",
                                 by->function);
    }
    if (result == QUERN_OK && graph->inner_count != 0) result = claim_inner(by, graph);
    if (result != QUERN_OK) return result;
    by->run->has_priorities |= is_prioritized;
    by->run->has_limits |= graph->choice_count != 0;
    by->run->needs_external_worker |= graph->caller_count != 0;
    return QUERN_OK;
}

static quern_result fail_claim(const claimant *by, const quern__graph_run *claimed_by)
{
    if (!by->has_root)
        return quern__fail(QUERN_ERROR_POOL_BUSY,
                           "%s: the graph is running already; wait for that run first", by->function);
    const bool is_twice = claimed_by == by->run;
    return quern__fail(
        is_twice ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_ERROR_POOL_BUSY,
        "%s: the graph of node %u%s%s%s %s", by->function, (unsigned)by->index,
        by->name != NULL ? " '" : "", by->name != NULL ? by->name : "", by->name != NULL ? "'" : "",
        is_twice ? "is part of this run already; use another graph for each node" : "is running already");
}

/* Claims a graph and the graphs of its nodes. After an error nothing is claimed. Acquire: pairs with the
 * releases at the end of the previous run. The failure order is relaxed because only the pointer is used
 * then. */
static quern_result claim(claimant *by, quern_graph *graph)
{
    quern__graph_run *claimed_by = NULL;
    if (!atomic_compare_exchange_strong_explicit(&graph->claimed_by, &claimed_by, by->run,
                                                 memory_order_acquire, memory_order_relaxed))
        return fail_claim(by, claimed_by);
    if (!by->has_root) {
        by->run->has_priorities = false;
        by->run->has_limits = false;
        by->run->needs_external_worker = false;
    }
    by->has_root = true;
    graph->run = by->run;
    graph->parent = NULL;
    quern_result result = claim_memory(by, graph);
    /* Release: pairs with the acquire of the next claim. */
    if (result != QUERN_OK) atomic_store_explicit(&graph->claimed_by, NULL, memory_order_release);
    return result;
}

/* Claims a root graph for a run on up to worker_count workers, and initializes the run. `caller` is NULL
 * for a submitted run. Relaxed: beginning the run publishes these writes. */
static quern_result claim_all(quern_graph *graph, uint32_t worker_count, quern__worker *caller,
                              const char *function)
{
    quern__graph_run *run = &graph->own_run;
    claimant by = {.run = run, .worker_count = worker_count, .function = function};
    quern_result result = claim(&by, graph);
    if (result != QUERN_OK) return result;
    run->root = graph;
    run->sharer_count = worker_count;
    run->caller = caller;
    run->starter = caller;
    run->scope = quern__scope_close(graph);
    run->float_mode = quern__float_mode();
    run->cancel = NULL;
    atomic_store_explicit(&run->outcome, QUERN_OK, memory_order_relaxed);
    atomic_store_explicit(&run->was_helped, false, memory_order_relaxed);
    atomic_store_explicit(&run->caller_tasks, NULL, memory_order_relaxed);
    atomic_store_explicit(&run->call_count, 0, memory_order_relaxed);
    return QUERN_OK;
}

/* Release: pairs with the acquire in claim. */
static void release(quern_graph *root)
{
    release_inner(root, root->node_count);
    atomic_store_explicit(&root->claimed_by, NULL, memory_order_release);
}

/* ---------------------------------------------------------------------------------- runs with a caller */

/* Acquire: pairs with count_finished in graph_task.c. */
static bool has_finished(const quern_graph *graph)
{
    return atomic_load_explicit(&graph->unfinished_count, memory_order_acquire) == 0;
}

/* The list is read with relaxed order; taking a task out acquires. */
static bool has_finished_or_needs_caller(const quern__wait *wait)
{
    const quern_graph *graph = wait->target;
    return has_finished(graph) ||
           atomic_load_explicit(&graph->own_run.caller_tasks, memory_order_relaxed) != NULL;
}

/* The caller gets a permit for a task for the caller, and at the end of the run. */
static void run_shared(quern_graph *graph, quern__worker *caller)
{
    quern__graph_run *run = &graph->own_run;
    quern__wait wait = {.scope = run->scope, .target = graph, .is_done = has_finished_or_needs_caller};
    quern__worker_publish_processor(caller);
    quern__graph_run_ready(run, caller, quern__graph_reset(graph, caller, NULL));
    while (!has_finished(graph)) {
        quern__worker_wait(caller, &wait);
        quern__graph_run_ready(run, caller, NULL);
    }
}

static void run_serial(quern_graph *graph, quern__worker *worker)
{
    quern__worker_add_closed_depth(worker, 1);
    graph_run_serial(graph, worker);
    quern__worker_add_closed_depth(worker, (uint32_t)-1);
}

static void run_timed(quern_graph *graph, quern__worker *caller)
{
    const quern__run_mode mode = choose_mode(graph);
    const uint64_t start_ns = quern__clock_ns();
    if (mode == QUERN__RUN_ALONE) {
        run_serial(graph, caller);
        quern__times_learn_alone(&graph->times, 1, quern__clock_ns() - start_ns);
    } else {
        graph->own_run.wakes_sleepers = mode == QUERN__RUN_WAKE;
        run_shared(graph, caller);
        learn_shared(graph, quern__clock_ns() - start_ns, caller);
    }
}

/* Relaxed: the run is over. */
static quern_result result_of(const quern__graph_run *run, const char *function)
{
    const quern_result result = (quern_result)atomic_load_explicit(&run->outcome, memory_order_relaxed);
    if (QUERN__LIKELY(result == QUERN_OK)) return QUERN_OK;
    if (result == QUERN_ERROR_CANCELLED)
        return quern__fail(result, "%s: cancelled on request; some nodes did not run", function);
    return quern__fail(result,
                       "%s: node %u%s%s%s has chosen %u times, which is its choice_limit for one run: "
                       "raise it, or let the node end its loop earlier",
                       function, (unsigned)run->limit_node, run->limit_name != NULL ? " '" : "",
                       run->limit_name != NULL ? run->limit_name : "", run->limit_name != NULL ? "'" : "",
                       (unsigned)run->limit_count);
}

/* Returns the number of workers that may take part. */
static uint32_t sharers(const quern_jobs *jobs)
{
    return jobs == NULL || quern_jobs_thread_count(jobs) == 1 ? 1 : quern_jobs_worker_count(jobs);
}

quern_result quern__graph_run_inside(quern_graph *graph, quern_jobs *jobs)
{
    quern__worker *caller = jobs != NULL ? quern__jobs_current_worker(jobs) : NULL;
    quern_result result = claim_all(graph, sharers(jobs), caller, "quern_graph_run");
    if (result != QUERN_OK) return result;
    if (caller != NULL) {
        /* The jobs below the end of the deque are not part of the run. */
        const int64_t floor = caller->floor;
        caller->floor = quern__deque_bottom(&caller->deque);
        if (caller->jobs->thread_count == 1 || graph->node_count == 0)
            run_serial(graph, caller);
        else
            run_timed(graph, caller);
        caller->floor = floor;
    } else
        graph_run_serial(graph, NULL);
    result = result_of(&graph->own_run, "quern_graph_run");
    release(graph);
    return result;
}

quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs)
{
    if (graph == NULL) return quern__fail_null("quern_graph_run", "graph");
    if (jobs == NULL) return quern__graph_run_inside(graph, NULL);
    if (quern__jobs_current_worker(jobs) != NULL) return quern__graph_run_inside(graph, jobs);
    quern_result result = quern__jobs_enter(jobs, "quern_graph_run");
    if (result != QUERN_OK) return result;
    result = quern__graph_run_inside(graph, jobs);
    quern__jobs_leave(jobs);
    return result;
}

/* -------------------------------------------------------------------------------------- submitted runs */

/* The graph may be gone after its release, and the counter after the subtraction. */
static void end_run(quern__graph_run *run, quern__worker *worker)
{
    quern_counter *counter = run->counter;
    release(run->root);
    if (counter != NULL) quern__counter_finish(counter, 1, worker);
}

void quern__graph_end_submitted(quern__graph_run *run, quern__worker *worker)
{
    learn_shared(run->root, quern__clock_ns() - run->start_ns, worker);
    end_run(run, worker);
}

/* Whether a submitted run has to run on one thread. The pool may have more workers now than the run has
 * memory for. */
static bool is_for_one(const quern__graph_run *run, const quern_jobs *jobs)
{
    return jobs->thread_count == 1 || run->root->node_count == 0 || jobs->worker_count > run->sharer_count;
}

/* Lists a run that waits for counters. It may never begin; then the end of the pool ends it, so that the
 * graph is free again. */
static void enlist(quern__graph_run *run)
{
    quern_jobs *jobs = run->jobs;
    quern__mutex_lock(&jobs->queues.mutex);
    run->is_waiting = true;
    run->before_waiting = NULL;
    run->next_waiting = jobs->waiting_runs;
    if (run->next_waiting != NULL) run->next_waiting->before_waiting = run;
    jobs->waiting_runs = run;
    quern__mutex_unlock(&jobs->queues.mutex);
}

static void delist(quern__graph_run *run)
{
    quern_jobs *jobs = run->jobs;
    quern__mutex_lock(&jobs->queues.mutex);
    run->is_waiting = false;
    *(run->before_waiting == NULL ? &jobs->waiting_runs : &run->before_waiting->next_waiting) =
        run->next_waiting;
    if (run->next_waiting != NULL) run->next_waiting->before_waiting = run->before_waiting;
    quern__mutex_unlock(&jobs->queues.mutex);
}

/* The graph may be gone after its release. */
void quern__jobs_drop_graphs(quern_jobs *jobs)
{
    for (quern__graph_run *run = jobs->waiting_runs, *next; run != NULL; run = next) {
        next = run->next_waiting;
        quern__graph_note_cancelled(run);
        release(run->root);
    }
}

static void begin_submitted(quern__graph_run *run, quern__worker *worker)
{
    const bool can_run_alone = !run->needs_external_worker || quern__worker_is_external(worker);
    const bool runs_alone =
        is_for_one(run, worker->jobs) || (choose_mode(run->root) == QUERN__RUN_ALONE && can_run_alone);
    const uint64_t start_ns = quern__clock_ns();
    run->starter = worker;
    if (runs_alone) {
        run_serial(run->root, worker);
        quern__times_learn_alone(&run->root->times, 1, quern__clock_ns() - start_ns);
        end_run(run, worker);
        return;
    }
    run->start_ns = start_ns;
    /* Wakes always: an external worker may leave the pool with tasks in its deque for which no worker was
     * woken. */
    run->wakes_sleepers = true;
    quern__worker_publish_processor(worker);
    quern__graph_task *list = quern__graph_reset(run->root, worker, NULL);
    if (list != NULL) quern__graph_run_ready(run, worker, list);
}

static void run_submitted(quern__job *job, quern__worker *worker)
{
    quern__graph_run *run = job->target;
    if (run->is_waiting) delist(run);
    if (run->needs_external_worker && is_for_one(run, worker->jobs) && !quern__worker_is_external(worker)) {
        run->caller_node.job = *job; /* begin again, on an external worker */
        quern__node_submit(&run->caller_node, worker);
        return;
    }
    const uint32_t float_mode = run->float_mode; /* the graph may be gone at the end */
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    begin_submitted(run, worker);
    quern__float_mode_leave(float_mode, own_mode);
}

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "quern_graph_submit: out of memory; the run was not submitted");
}

/* Submits a claimed graph as a job, in a node of the pool's store, which waits for the counters of
 * `def`. */
static quern_result submit_claimed(quern_graph *graph, quern_jobs *jobs, const quern_graph_run_def *def)
{
    quern__graph_run *run = &graph->own_run;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern__node *node = quern__queues_take_node(&jobs->queues);
    if (node == NULL) return fail_memory();
    run->cancel = def->cancel;
    run->has_limits |= def->cancel != NULL;
    run->counter = def->counter;
    run->jobs = jobs;
    run->scope = quern__scope_close(def->counter != NULL ? (const void *)def->counter : graph);
    run->caller_node.jobs = jobs;
    run->caller_node.queue = QUERN__QUEUE_CALLER;
    run->caller_node.link_count = QUERN__CALLER_OWNED_NODE;
    node->job = (quern__job){.run = run_submitted, .scope = run->scope, .target = run};
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = jobs;
    if (!quern__node_reserve_links(node, def->after_count)) {
        quern__queues_return_node(&jobs->queues, node);
        return fail_memory();
    }
    run->is_waiting = false;
    if (def->after_count != 0) enlist(run);
    /* Relaxed: a thread that sees the counter above zero learns nothing else from it. */
    if (def->counter != NULL) atomic_fetch_add_explicit(&def->counter->pending, 1, memory_order_relaxed);
    if (worker == NULL) quern__jobs_begin_outside_call(jobs);
    quern__node_add_links(node, def->after, worker);
    if (worker == NULL) quern__jobs_end_outside_call(jobs);
    return QUERN_OK;
}

quern_result quern_graph_submit(quern_graph *graph, quern_jobs *jobs, const quern_graph_run_def *def)
{
    static const quern_graph_run_def plain = {0};
    if (graph == NULL) return quern__fail_null("quern_graph_submit", "graph");
    if (jobs == NULL) return quern__fail_null("quern_graph_submit", "jobs");
    if (def == NULL) def = &plain;
    quern_result result =
        quern__check_after_list(def->after, def->after_count, def->counter, "quern_graph_submit");
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_graph_submit");
    if (result == QUERN_OK) result = claim_all(graph, sharers(jobs), NULL, "quern_graph_submit");
    if (result != QUERN_OK) return result;
    result = submit_claimed(graph, jobs, def);
    if (result != QUERN_OK) release(graph);
    return result;
}

quern_result quern_graph_result(const quern_graph *graph)
{
    if (graph == NULL) return quern__fail_null("quern_graph_result", "graph");
    if (quern__graph_is_running(graph))
        return quern__fail(QUERN_ERROR_POOL_BUSY,
                           "quern_graph_result: the graph is running; wait for the run first");
    return result_of(&graph->own_run, "quern_graph_result");
}
