/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph.h"

/* A running graph.
 *
 * Every node has a counter of unfinished predecessors. Whoever finishes a node counts down its successors;
 * those that reach 0 are ready. The worker runs the first of them itself and puts the others into its deque
 * for all to take. Nodes with a range to share are loops: whoever starts one invites others, works along,
 * and goes on without waiting; the one that leaves the loop last finishes the node. So nobody ever blocks
 * inside a node. Nodes for the caller alone wait in a list until it comes by: between any two jobs.
 *
 * Any worker may be the caller, also inside a node of another graph; then it works on the inner graph alone
 * until that is over. For all that a run puts into deques is of one closed scope, its own (deque.h): who
 * waits runs it only if this run is what it waits for, and does not touch the nodes that are on its stack
 * or their graphs. So graphs nest on a worker only as calls do, and however many run at a time, each has
 * its caller, who takes what nobody else takes: none waits for another but the outer for the inner.
 *
 * When memory may be used again: what runs holds the node unfinished, a loop's references hold its node
 * unfinished, and counting `unfinished_count` down to 0 is the last access that any worker makes to the
 * graph; the caller, who is told then, is a worker of the pool and stays one.
 *
 * Waking a sleeper takes longer than many graphs run, and so may sharing very small nodes. So runs are
 * timed: see choose_mode. */

enum {
    SERIAL_NS = 1000, /* less: not worth a job */
    QUIET_NS = 50000, /* less: over before a sleeper arrives */
    FIRST_ALONE_RUNS = 32,
    MOST_ALONE_RUNS = 2048,
    LEARN_SHARE = 8
};

typedef enum run_mode { MODE_SERIAL, MODE_QUIET, MODE_WAKE } run_mode;

/* ---------------------------------------------------------------------------------- ready and finished */

static quern__graph_node *node_of(const quern__graph_task *task)
{
    return &task->graph->nodes[task->index];
}

/* Release pairs with the acquire of take_caller_task. The permit ends the caller's sleep. The first look
 * is relaxed: the swap checks it. */
static void give_to_caller(quern__graph_task *ready, quern__worker *worker)
{
    _Atomic(quern__graph_task *) *list = &ready->graph->caller_tasks;
    ready->next_ready = atomic_load_explicit(list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(list, &ready->next_ready, ready, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    if (worker != ready->graph->caller) quern__parker_give(&ready->graph->caller->parker);
}

/* The caller is the only one to take tasks out, and each goes in once per run: the head it has read is
 * the same task with the same next when the swap succeeds. Acquire: pairs with the release in
 * give_to_caller. */
static quern__graph_task *take_caller_task(quern_graph *graph)
{
    quern__graph_task *head = atomic_load_explicit(&graph->caller_tasks, memory_order_acquire);
    while (head != NULL &&
           !atomic_compare_exchange_weak_explicit(&graph->caller_tasks, &head, head->next_ready,
                                                  memory_order_acquire, memory_order_acquire)) {
    }
    return head;
}

/* Puts a task in front of the worker's list of ready tasks, or hands it to the caller. */
static quern__graph_task *make_ready(quern__graph_task *ready, quern__worker *worker,
                                     quern__graph_task *list)
{
    if (node_of(ready)->caller_only) {
        give_to_caller(ready, worker);
        return list;
    }
    ready->next_ready = list;
    return ready;
}

/* Returns the list with the successors that became ready in front, in the order of their edges. */
static quern__graph_task *finish(quern__graph_task *finished, quern__worker *worker,
                                 quern__graph_task *list)
{
    quern_graph *graph = finished->graph;
    for (uint32_t index = node_of(finished)->first_edge; index != QUERN__NO_EDGE;
         index = graph->edges[index].next) {
        quern__graph_task *successor = &graph->tasks[graph->edges[index].after];
        /* Release what this node wrote, acquire what the other predecessors wrote. */
        if (atomic_fetch_sub_explicit(&successor->waiting_count, 1, memory_order_acq_rel) == 1)
            list = make_ready(successor, worker, list);
    }
    quern__worker *caller = graph->caller; /* the graph may be gone as soon as it is counted down */
    /* Release pairs with the caller's acquire in has_finished. */
    uint32_t before = atomic_fetch_sub_explicit(&graph->unfinished_count, 1, memory_order_release);
    if (before == 1 && worker != caller) quern__parker_give(&caller->parker);
    return list;
}

/* --------------------------------------------------------------------------------------------- running */

/* Each subtraction pairs with those of the others that leave. */
static quern__graph_task *run_loop(quern__graph_task *shared, quern__worker *worker,
                                   quern__graph_task *list)
{
    uint32_t done_count = 1 + quern__loop_join(&shared->loop, worker, NULL);
    /* Release what this worker wrote; the last one acquires what all wrote and hands it on. */
    uint32_t before = atomic_fetch_sub_explicit(&shared->loop.references, done_count, memory_order_acq_rel);
    return before == done_count ? finish(shared, worker, list) : list;
}

static void run_ready(quern_graph *graph, quern__worker *worker, quern__graph_task *list);
static void run_start(quern__job *job, quern__worker *worker);

/* Relaxed: it is read when the run is over, and the end of the run orders that. */
static void note_help(quern_graph *graph, const quern__worker *worker)
{
    if (worker != graph->caller && !atomic_load_explicit(&graph->was_helped, memory_order_relaxed))
        atomic_store_explicit(&graph->was_helped, true, memory_order_relaxed);
}

static void run_task_offer(quern__job *job, quern__worker *worker)
{
    quern__loop *loop = job->target;
    quern__graph_task *shared =
        (quern__graph_task *)(void *)((char *)loop - offsetof(quern__graph_task, loop));
    quern_graph *graph = shared->graph;
    note_help(graph, worker);
    quern__graph_task *list = run_loop(shared, worker, NULL);
    if (list != NULL) run_ready(graph, worker, list);
}

static void start_loop(quern__graph_task *starting, const quern__range *range)
{
    quern_graph *graph = starting->graph;
    quern__slot *slots = graph->slots + (size_t)starting->index * graph->slots_per_task;
    quern__loop_init(&starting->loop, run_task_offer, quern__scope_close(graph), range, slots,
                     graph->caller);
    starting->loop.wake = graph->wake && quern__jobs_has_processor(graph->caller->jobs);
    /* The starter's own. Relaxed: nobody else knows the loop yet. */
    atomic_store_explicit(&starting->loop.references, 1, memory_order_relaxed);
}

/* All items in one call. */
static void call_once(const quern__graph_node *node, uint32_t worker_index)
{
    const quern__range *range = &node->range;
    if (range->function != NULL && range->count != 0)
        range->function(range->user_data, 0, range->count, worker_index);
}

/* What stands in the deque before is not the node's own: ready tasks. */
static void run_plain(const quern__graph_node *node, quern__worker *worker)
{
    int64_t floor = worker->floor;
    worker->floor = quern__deque_bottom(&worker->deque);
    call_once(node, worker->index);
    worker->floor = floor;
}

static quern__graph_task *run_task(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    const quern__graph_node *node = node_of(task);
    if (node->range.function != NULL && !quern__range_is_plain(&node->range, worker->jobs->thread_count)) {
        start_loop(task, &node->range);
        return run_loop(task, worker, list);
    }
    run_plain(node, worker);
    return finish(task, worker, list);
}

/* Puts as many as fit into the deque, for all to take, and returns the rest. */
static quern__graph_task *offer(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_task *rest = list;
    while (rest != NULL) {
        quern__graph_task *next = rest->next_ready; /* gone once the task is in the deque */
        quern__job start = {.run = run_start, .scope = quern__scope_close(graph), .target = rest};
        if (!quern__deque_push(&worker->deque, &start, 0)) break;
        rest = next;
    }
    if (rest != list && graph->wake && quern__jobs_has_processor(worker->jobs))
        quern__jobs_notify(worker->jobs, worker, quern__scope_close(graph));
    return rest;
}

/* The caller runs what is waiting for it alone. */
static quern__graph_task *run_caller_tasks(quern_graph *graph, quern__worker *caller,
                                           quern__graph_task *list)
{
    quern__graph_task *next;
    while ((next = take_caller_task(graph)) != NULL) {
        run_plain(node_of(next), caller);
        list = finish(next, caller, list);
    }
    return list;
}

/* Runs the first of the list, offers the others, and goes on with what becomes ready by that. Apart from
 * the caller, nobody may touch the graph when the list is empty: it may have finished. */
static void run_ready(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    const bool is_caller = worker == graph->caller;
    for (;;) {
        if (is_caller) list = run_caller_tasks(graph, worker, list);
        if (list == NULL) return;
        quern__graph_task *first = list;
        list = offer(graph, worker, first->next_ready);
        list = run_task(first, worker, list);
    }
}

static void run_start(quern__job *job, quern__worker *worker)
{
    quern__graph_task *starting = job->target;
    quern_graph *graph = starting->graph;
    note_help(graph, worker);
    starting->next_ready = NULL;
    run_ready(graph, worker, starting);
}

/* ------------------------------------------------------------------------------------------------ runs */

/* Acquire: pairs with the release in finish. */
static bool has_finished(const quern_graph *graph)
{
    return atomic_load_explicit(&graph->unfinished_count, memory_order_acquire) == 0;
}

/* Relaxed: pushing the first task publishes all of it. Returns the tasks that are ready. */
static quern__graph_task *reset(quern_graph *graph, quern__worker *caller)
{
    quern__graph_task *ready = NULL;
    atomic_store_explicit(&graph->unfinished_count, graph->node_count, memory_order_relaxed);
    atomic_store_explicit(&graph->was_helped, false, memory_order_relaxed);
    atomic_store_explicit(&graph->caller_tasks, NULL, memory_order_relaxed);
    for (uint32_t index = graph->node_count; index-- != 0;) {
        uint32_t waiting_count = graph->nodes[index].predecessor_count;
        atomic_store_explicit(&graph->tasks[index].waiting_count, waiting_count, memory_order_relaxed);
        if (waiting_count == 0) ready = make_ready(&graph->tasks[index], caller, ready);
    }
    return ready;
}

/* The list is looked at relaxed: take_caller_task acquires. */
static bool has_finished_or_needs_caller(const quern__wait *wait)
{
    const quern_graph *graph = wait->target;
    return has_finished(graph) || atomic_load_explicit(&graph->caller_tasks, memory_order_relaxed) != NULL;
}

/* A permit is given for each reason to come back: a task for the caller alone, and the end. */
static void run_shared(quern_graph *graph, quern__worker *caller)
{
    quern__wait wait = {
        .scope = quern__scope_close(graph), .target = graph, .is_done = has_finished_or_needs_caller};
    quern__worker_note_processor(caller);
    run_ready(graph, caller, reset(graph, caller));
    while (!has_finished(graph)) {
        quern__worker_wait(caller, &wait);
        run_ready(graph, caller, NULL);
    }
}

/* Numbers are an order that respects the edges. */
static void run_serial(const quern_graph *graph, uint32_t worker_index)
{
    for (uint32_t index = 0; index < graph->node_count; index++) {
        const quern__graph_node *node = &graph->nodes[index];
        if (node->caller_only)
            call_once(node, worker_index);
        else if (node->range.function != NULL)
            quern__range_run(&node->range, worker_index);
    }
}

static uint64_t count_items(const quern_graph *graph)
{
    uint64_t count = 0;
    for (uint32_t index = 0; index < graph->node_count; index++)
        count += graph->nodes[index].range.count;
    return count;
}

/* Long runs wake sleepers. Short ones leave them alone, since those would come too late; whoever spins may
 * help. Tiny ones, and those that sharing has made slower, are not shared; and a short one of which it is
 * not known how long it takes alone is run so once. */
static run_mode choose_mode(const quern_graph *graph)
{
    if (QUERN_CHECKS) return MODE_WAKE; /* there, finding races matters more than time */
    if (graph->serial_ns >= QUIET_NS) return MODE_WAKE;
    if (graph->serial_ns < SERIAL_NS || graph->measured_ns == 0) return MODE_SERIAL;
    return graph->shared_ns >= graph->serial_ns && graph->alone_runs_left != 0 ? MODE_SERIAL : MODE_QUIET;
}

/* One run may take far too long, when the thread was interrupted. And a coarse clock says that a run of
 * nothing takes no time, from which nothing would grow. */
static void learn_serial(quern_graph *graph, uint64_t took_ns)
{
    const uint64_t known_ns = graph->serial_ns;
    const uint64_t likely_ns = took_ns / 2 < known_ns ? took_ns : 2 * known_ns;
    graph->serial_ns =
        graph->measured_ns != 0 ? known_ns - known_ns / LEARN_SHARE + likely_ns / LEARN_SHARE : took_ns;
    if (graph->serial_ns < LEARN_SHARE) graph->serial_ns = LEARN_SHARE;
    graph->measured_ns = graph->serial_ns;
    if (graph->alone_runs_left != 0) graph->alone_runs_left--;
}

/* Each time that sharing has made it slower, the next try is twice as far away: it disturbs the runs behind
 * it, too, whose data has moved to another processor's cache. */
static void put_off_sharing(quern_graph *graph, bool was_slower)
{
    uint32_t runs = graph->alone_runs == 0 ? FIRST_ALONE_RUNS : 2 * graph->alone_runs;
    if (runs > MOST_ALONE_RUNS) runs = MOST_ALONE_RUNS;
    graph->alone_runs = was_slower ? runs : 0;
    graph->alone_runs_left = graph->alone_runs;
}

/* A run with helpers tells less of the time for one thread: at least what it took, at most that for each
 * thread. What was known before is brought within these bounds, and measured again where it has grown or is
 * less than half; two threads, with two caches, may well be a little more than twice as fast. The flag is
 * read relaxed: has_finished has acquired all that helpers did. */
static void learn_shared(quern_graph *graph, uint64_t took_ns, quern__worker *caller)
{
    bool was_helped = atomic_load_explicit(&graph->was_helped, memory_order_relaxed);
    if (!was_helped && took_ns >= 2 * (uint64_t)QUIET_NS) quern__worker_let_others_come(caller);
    const uint64_t most_ns = was_helped ? took_ns * caller->jobs->thread_count : took_ns;
    if (graph->serial_ns > most_ns) graph->serial_ns = most_ns;
    if (graph->serial_ns < took_ns) graph->serial_ns = took_ns;
    if (graph->serial_ns > graph->measured_ns || graph->serial_ns < graph->measured_ns / 2)
        graph->measured_ns = 0;
    graph->shared_ns = took_ns;
    put_off_sharing(graph, graph->serial_ns == took_ns);
}

static void run_timed(quern_graph *graph, quern__worker *caller)
{
    uint64_t item_count = count_items(graph);
    if (item_count / 2 > graph->timed_item_count) quern__graph_forget_times(graph);
    graph->timed_item_count = item_count;
    run_mode mode = choose_mode(graph);
    uint64_t start_ns = quern__clock_ns();
    if (mode == MODE_SERIAL) {
        run_serial(graph, caller->index);
        learn_serial(graph, quern__clock_ns() - start_ns);
    } else {
        graph->caller = caller;
        graph->wake = mode == MODE_WAKE;
        run_shared(graph, caller);
        learn_shared(graph, quern__clock_ns() - start_ns, caller);
    }
}

void quern__graph_release_tasks(quern_graph *graph)
{
    size_t slot_count = (size_t)graph->task_capacity * graph->slots_per_task;
    quern__release(&graph->allocator, graph->tasks, graph->task_capacity * sizeof(quern__graph_task),
                   _Alignof(quern__graph_task));
    quern__release(&graph->allocator, graph->slots, slot_count * sizeof(quern__slot),
                   _Alignof(quern__slot));
    graph->tasks = NULL;
    graph->slots = NULL;
    graph->task_capacity = 0;
    graph->slots_per_task = 0;
}

static bool allocate_tasks(quern_graph *graph, uint32_t capacity, uint32_t worker_count)
{
    size_t slots_bytes = (size_t)capacity * worker_count * sizeof(quern__slot);
    graph->task_capacity = capacity;
    graph->slots_per_task = worker_count;
    graph->tasks = quern__allocate(&graph->allocator, capacity * sizeof(quern__graph_task),
                                   _Alignof(quern__graph_task));
    graph->slots = quern__allocate(&graph->allocator, slots_bytes, _Alignof(quern__slot));
    if (graph->tasks != NULL && graph->slots != NULL) return true;
    quern__graph_release_tasks(graph);
    return false;
}

/* Memory for running with that many workers; kept for later runs. */
static quern_result prepare(quern_graph *graph, uint32_t worker_count)
{
    if (graph->node_count <= graph->task_capacity && worker_count <= graph->slots_per_task) return QUERN_OK;
    quern__graph_release_tasks(graph);
    if (!allocate_tasks(graph, graph->node_capacity, worker_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_graph_run: no memory to run %u nodes on %u workers",
                           (unsigned)graph->node_count, (unsigned)worker_count);
    for (uint32_t index = 0; index < graph->task_capacity; index++) {
        graph->tasks[index].graph = graph;
        graph->tasks[index].index = index;
    }
    return QUERN_OK;
}

/* What stands in the caller's deque before is not the run's own. */
static quern_result run_on(quern_graph *graph, quern__worker *caller)
{
    int64_t floor = caller->floor;
    quern_result result = QUERN_OK;
    caller->floor = quern__deque_bottom(&caller->deque);
    if (caller->jobs->thread_count == 1 || graph->node_count == 0) {
        run_serial(graph, caller->index);
    } else {
        result = prepare(graph, caller->jobs->worker_count);
        if (result == QUERN_OK) run_timed(graph, caller);
    }
    caller->floor = floor;
    return result;
}

quern_result quern__graph_run(quern_graph *graph, quern_jobs *jobs)
{
    /* Acquire pairs with the release below: one run after another, on whichever thread. */
    if (atomic_exchange_explicit(&graph->is_running, true, memory_order_acquire))
        return quern__fail(QUERN_ERROR_POOL_BUSY, "quern_graph_run: the graph is running already");
    quern_result result = QUERN_OK;
    if (jobs != NULL)
        result = run_on(graph, quern__jobs_current_worker(jobs));
    else
        run_serial(graph, 0);
    atomic_store_explicit(&graph->is_running, false, memory_order_release);
    return result;
}

quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs)
{
    if (graph == NULL) return quern__fail_null("quern_graph_run", "graph");
    if (jobs == NULL) return quern__graph_run(graph, NULL);
    if (quern__jobs_current_worker(jobs) != NULL) return quern__graph_run(graph, jobs);
    quern_result result = quern__jobs_enter(jobs, "quern_graph_run");
    if (result != QUERN_OK) return result;
    result = quern__graph_run(graph, jobs);
    quern__jobs_leave(jobs);
    return result;
}
