/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* The nodes of a run on several threads: how they become ready, begin and finish. graph_run.c has the whole
 * and says when memory may be used again.
 *
 * A task is in one place at a time: with a worker, in a deque, in a list. Where there are choices, a node
 * may be wanted again before it has run: `due_count` says how often. Only the first who counts it up makes
 * it ready, and who has run it does so again for the others. So a node never runs twice at a time, and how
 * often it runs does not depend on who is quicker.
 *
 * Where nodes have priorities, ready tasks are in lists under a lock, and for each there is a ticket: with a
 * worker, or in a deque in place of the task. Whoever has a ticket takes the best task that is ready then.
 * There are as many tickets as tasks, so he finds one. */

/* ------------------------------------------------------------------------------------ for guests alone */

static void run_called(quern__job *job, quern__worker *guest);

/* The list is written before the count: who is counted finds a task. Of a submitted run, the first that is
 * counted calls a guest, by a node that is not in the queue: it was taken out before the last one was
 * counted down (run_called). Acquire and release: each count pairs with that. */
static void call_guest(quern_graph *root, quern__worker *worker)
{
    if (atomic_fetch_add_explicit(&root->call_count, 1, memory_order_acq_rel) != 0) return;
    root->caller_node.job.run = run_called;
    root->caller_node.job.scope = root->scope;
    root->caller_node.job.target = root;
    quern__node_submit(&root->caller_node, worker);
}

/* Release pairs with the acquire of take_caller_task. The permit ends the caller's sleep. The first look
 * is relaxed: the swap checks it. */
static void give_to_caller(quern__graph_task *ready, quern__worker *worker)
{
    quern_graph *root = ready->graph->root;
    quern__worker *caller = root->caller;
    _Atomic(quern__graph_task *) *list = &root->caller_tasks;
    ready->next_ready = atomic_load_explicit(list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(list, &ready->next_ready, ready, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    if (caller == NULL)
        call_guest(root, worker);
    else if (worker != caller)
        quern__parker_give(&caller->parker);
}

/* One thread at a time takes tasks out: the head that it has read stays in the list with the same next until
 * the swap succeeds. Acquire: pairs with the release in give_to_caller. */
static quern__graph_task *take_caller_task(quern_graph *root)
{
    quern__graph_task *head = atomic_load_explicit(&root->caller_tasks, memory_order_acquire);
    while (head != NULL &&
           !atomic_compare_exchange_weak_explicit(&root->caller_tasks, &head, head->next_ready,
                                                  memory_order_acquire, memory_order_acquire)) {
    }
    return head;
}

/* ---------------------------------------------------------------------------------- ready and finished */

/* Puts a task in front of the worker's list of ready tasks, or hands it to the caller. */
static quern__graph_task *make_ready(quern__graph_task *ready, quern__worker *worker,
                                     quern__graph_task *list)
{
    if (quern__task_node(ready)->caller_only) {
        give_to_caller(ready, worker);
        return list;
    }
    ready->next_ready = list;
    return ready;
}

/* Where there are choices. Whoever does it has a task of this graph that is not finished: so the count is
 * not 0 before, and relaxed is enough. Of the other, acquire and release: each run of a node happens before
 * the next; it pairs with itself and with finish_due. */
static quern__graph_task *make_due(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    atomic_fetch_add_explicit(&task->graph->unfinished_count, 1, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&task->due_count, 1, memory_order_acq_rel) != 0) return list;
    return make_ready(task, worker, list);
}

/* Acquire and release: what this predecessor wrote, and the others; it pairs with itself. The first look is
 * relaxed: the swap checks it. */
bool quern__task_count_down(quern__graph_task *task)
{
    const uint32_t all = quern__task_node(task)->predecessor_count;
    uint32_t waiting = atomic_load_explicit(&task->waiting_count, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&task->waiting_count, &waiting,
                                                  waiting == 1 ? all : waiting - 1, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    return waiting == 1;
}

static quern__graph_task *finish(quern__graph_task *finished, quern__worker *worker,
                                 quern__graph_task *list);

/* A node of the graph, or one that was due, is over, and with the last one the run. Until it is counted down
 * the graph is there; afterwards only if nobody else ends the run. The count acquires what all nodes wrote,
 * for the caller or for who comes after the node that this graph is: it pairs with itself, and with the
 * acquire in has_finished (graph_run.c). */
static quern__graph_task *count_finished(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    quern__worker *caller = graph->caller;
    if (atomic_fetch_sub_explicit(&graph->unfinished_count, 1, memory_order_acq_rel) != 1) return list;
    if (caller != NULL) {
        if (worker != caller) quern__parker_give(&caller->parker);
        return list;
    }
    if (graph->parent != NULL) return finish(graph->parent, worker, list);
    quern__graph_end_submitted(graph, worker);
    return list;
}

/* A task of a graph with choices has run. Acquire and release: it pairs with make_due. */
static quern__graph_task *finish_due(quern__graph_task *finished, quern__worker *worker,
                                     quern__graph_task *list)
{
    if (atomic_fetch_sub_explicit(&finished->due_count, 1, memory_order_acq_rel) != 1)
        list = make_ready(finished, worker, list);
    return count_finished(finished->graph, worker, list);
}

/* As below, where there are choices. */
static quern__graph_task *finish_again(quern__graph_task *finished, quern__worker *worker,
                                       quern__graph_task *list)
{
    quern_graph *graph = finished->graph;
    for (uint32_t index = quern__task_node(finished)->first_edge; index != QUERN__NO_EDGE;
         index = graph->edges[index].next) {
        quern__graph_task *successor = &graph->tasks[graph->edges[index].after];
        if (quern__task_count_down(successor)) list = make_due(successor, worker, list);
    }
    return finish_due(finished, worker, list);
}

/* Returns the list with the successors that became ready in front, in the order of their edges. */
static quern__graph_task *finish(quern__graph_task *finished, quern__worker *worker,
                                 quern__graph_task *list)
{
    quern_graph *graph = finished->graph;
    if (QUERN__UNLIKELY(graph->choice_count != 0)) return finish_again(finished, worker, list);
    for (uint32_t index = quern__task_node(finished)->first_edge; index != QUERN__NO_EDGE;
         index = graph->edges[index].next) {
        quern__graph_task *successor = &graph->tasks[graph->edges[index].after];
        /* Release what this node wrote, acquire what the other predecessors wrote: it pairs with itself. */
        if (atomic_fetch_sub_explicit(&successor->waiting_count, 1, memory_order_acq_rel) == 1)
            list = make_ready(successor, worker, list);
    }
    return count_finished(graph, worker, list);
}

static bool reset_task(quern__graph_task *task, const quern__graph_node *node)
{
    const bool begins = node->predecessor_count == 0 && !node->is_chosen;
    /* Relaxed: pushing the first task publishes all of it. */
    atomic_store_explicit(&task->waiting_count, node->predecessor_count, memory_order_relaxed);
    atomic_store_explicit(&task->due_count, begins, memory_order_relaxed);
    task->choice_count = 0;
    return begins;
}

/* The caller gets its tasks last of all: whoever has none of the others may not touch the graph after
 * that. Relaxed: see reset_task. */
quern__graph_task *quern__graph_reset(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_task *for_caller = NULL;
    uint32_t begin_count = 0;
    for (uint32_t index = graph->node_count; index-- != 0;) {
        quern__graph_task *task = &graph->tasks[index];
        const quern__graph_node *node = &graph->nodes[index];
        if (!reset_task(task, node)) continue;
        begin_count++;
        quern__graph_task **into = node->caller_only ? &for_caller : &list;
        task->next_ready = *into;
        *into = task;
    }
    atomic_store_explicit(&graph->unfinished_count,
                          graph->choice_count != 0 ? begin_count : graph->node_count, memory_order_relaxed);
    while (for_caller != NULL) {
        quern__graph_task *next = for_caller->next_ready;
        give_to_caller(for_caller, worker);
        for_caller = next;
    }
    return list;
}

/* --------------------------------------------------------------------------------------------- running */

/* Each subtraction pairs with those of the others that leave. */
static quern__graph_task *run_loop(quern__graph_task *shared, quern__worker *worker,
                                   quern__graph_task *list)
{
    const quern__named_work work = quern__worker_begin_named(worker, quern__task_node(shared)->name);
    quern__worker_close(worker, 1);
    uint32_t done_count = 1 + quern__loop_join(&shared->loop, worker, NULL);
    quern__worker_close(worker, (uint32_t)-1);
    quern__worker_end_named(worker, &work);
    /* Release what this worker wrote; the last one acquires what all wrote and hands it on. So the flag is
     * read relaxed. */
    uint32_t before = atomic_fetch_sub_explicit(&shared->loop.references, done_count, memory_order_acq_rel);
    if (before != done_count) return list;
    if (atomic_load_explicit(&shared->loop.was_cut, memory_order_relaxed))
        quern__graph_note_cancelled(shared->graph->root);
    return finish(shared, worker, list);
}

/* Relaxed: it is read when the run is over, and the end of the run orders that. */
static void note_help(quern_graph *root, const quern__worker *worker)
{
    if (worker != root->starter && !atomic_load_explicit(&root->was_helped, memory_order_relaxed))
        atomic_store_explicit(&root->was_helped, true, memory_order_relaxed);
}

static void run_task_offer(quern__job *job, quern__worker *worker)
{
    quern__loop *loop = job->target;
    quern__graph_task *shared =
        (quern__graph_task *)(void *)((char *)loop - offsetof(quern__graph_task, loop));
    quern_graph *root = shared->graph->root;
    note_help(root, worker);
    quern__graph_task *list = run_loop(shared, worker, NULL);
    if (list != NULL) quern__graph_run_ready(root, worker, list);
}

static void start_loop(quern__graph_task *starting, const quern__range *range, const quern__worker *worker)
{
    const quern_graph *graph = starting->graph, *root = graph->root;
    quern__slot *slots = graph->slots + (size_t)starting->index * graph->slots_per_task;
    quern__loop_init(&starting->loop, run_task_offer, root->scope, range, slots,
                     root->caller != NULL ? root->caller : worker);
    starting->loop.range.cancel = root->cancel;
    starting->loop.wake = root->wake && quern__jobs_has_processor(worker->jobs);
    /* The starter's own. Relaxed: nobody else knows the loop yet. */
    atomic_store_explicit(&starting->loop.references, 1, memory_order_relaxed);
}

/* A node that runs in one piece. */
typedef struct plain_work {
    int64_t floor;
    quern__named_work work;
} plain_work;

/* What stands in the deque before is not the node's own: ready tasks. */
static plain_work begin_plain(quern__worker *worker, const quern__graph_node *node)
{
    const plain_work plain = {.floor = worker->floor,
                              .work = quern__worker_begin_named(worker, node->name)};
    worker->floor = quern__deque_bottom(&worker->deque);
    quern__worker_close(worker, 1);
    return plain;
}

static void end_plain(quern__worker *worker, const plain_work *plain)
{
    quern__worker_close(worker, (uint32_t)-1);
    worker->floor = plain->floor;
    quern__worker_end_named(worker, &plain->work);
}

static void run_plain(const quern__graph_node *node, quern__worker *worker)
{
    const plain_work plain = begin_plain(worker, node);
    quern__node_call_once(node, worker->index);
    end_plain(worker, &plain);
}

/* Whoever wins writes which node it was; he has not finished it yet. Relaxed: the end of the run orders
 * it. */
static void stop_for_limit(quern__graph_task *task)
{
    quern_graph *root = task->graph->root;
    uint32_t none = QUERN_OK;
    if (!atomic_compare_exchange_strong_explicit(&root->outcome, &none, QUERN_ERROR_LIMIT,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    root->limit_node = task->index;
    root->limit_name = quern__task_node(task)->name;
    root->limit_count = task->choice_count;
}

uint32_t quern__task_choose(quern__graph_task *task, uint32_t worker_index)
{
    const quern__graph_node *node = quern__task_node(task);
    const quern_graph *graph = task->graph;
    if (task->choice_count == node->choice_limit) {
        stop_for_limit(task);
        return QUERN__NO_CHOICE;
    }
    task->choice_count++;
    const uint32_t choice = node->choose(node->range.user_data, worker_index);
    if (choice >= node->edge_count) return QUERN__NO_CHOICE;
    uint32_t edge = node->first_edge; /* the newest */
    for (uint32_t i = node->edge_count - 1; i != choice; i--)
        edge = graph->edges[edge].next;
    return graph->edges[edge].after;
}

static quern__graph_task *run_choice(quern__graph_task *task, quern__worker *worker,
                                     quern__graph_task *list)
{
    const plain_work plain = begin_plain(worker, quern__task_node(task));
    const uint32_t chosen = quern__task_choose(task, worker->index);
    end_plain(worker, &plain);
    if (chosen != QUERN__NO_CHOICE) list = make_due(&task->graph->tasks[chosen], worker, list);
    return finish_due(task, worker, list);
}

/* A graph that has nothing to begin with is over at once. Relaxed: nobody else has it yet. */
static quern__graph_task *run_inner(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    quern_graph *inner = quern__task_node(task)->inner;
    inner->parent = task;
    if (inner->node_count == 0) return finish(task, worker, list);
    return quern__graph_reset(inner, worker, list);
}

static quern__graph_task *leave_out(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    return quern__task_node(task)->choose != NULL ? finish_due(task, worker, list)
                                                  : finish(task, worker, list);
}

static quern__graph_task *run_task(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    const quern__graph_node *node = quern__task_node(task);
    if (QUERN__UNLIKELY(task->graph->root->has_limits) && quern__node_has_work(node) &&
        quern__graph_stops(task->graph->root))
        return leave_out(task, worker, list);
    if (node->range.function == NULL) {
        if (node->choose != NULL) return run_choice(task, worker, list);
        return node->inner != NULL ? run_inner(task, worker, list) : finish(task, worker, list);
    }
    if (!node->caller_only && !quern__range_is_plain(&node->range, worker->jobs->thread_count)) {
        start_loop(task, &node->range, worker);
        return run_loop(task, worker, list);
    }
    run_plain(node, worker);
    return finish(task, worker, list);
}

/* ------------------------------------------------------------------------------------------ the others */

static void run_start(quern__job *job, quern__worker *worker);

/* There is something in the worker's deque. */
static void tell_others(const quern_graph *root, quern__worker *worker)
{
    if (root->wake && quern__jobs_has_processor(worker->jobs))
        quern__jobs_notify(worker->jobs, worker, root->scope);
}

/* Puts as many as fit into the deque, for all to take, and returns the rest. */
static quern__graph_task *offer(const quern_graph *root, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_task *rest = list;
    while (rest != NULL) {
        quern__graph_task *next = rest->next_ready; /* gone once the task is in the deque */
        quern__job start = {.run = run_start, .scope = root->scope, .target = rest};
        if (!quern__deque_push(&worker->deque, &start, 0)) break;
        rest = next;
    }
    if (rest != list) tell_others(root, worker);
    return rest;
}

/* The caller runs what is waiting for it alone. */
static quern__graph_task *run_caller_tasks(quern_graph *root, quern__worker *caller,
                                           quern__graph_task *list)
{
    quern__graph_task *next;
    while ((next = take_caller_task(root)) != NULL)
        list = run_task(next, caller, list);
    return list;
}

/* A guest was called. Others are not, as long as the count is not 0; and each task that is counted is
 * unfinished, so the graph is there until it has run. Acquire and release: it pairs with call_guest. */
static void run_called(quern__job *job, quern__worker *guest)
{
    quern_graph *root = job->target;
    quern__graph_task *list = NULL;
    bool is_last;
    note_help(root, guest);
    do {
        quern__graph_task *task = take_caller_task(root);
        is_last = atomic_fetch_sub_explicit(&root->call_count, 1, memory_order_acq_rel) == 1;
        list = run_task(task, guest, list);
    } while (!is_last);
    if (list != NULL) quern__graph_run_ready(root, guest, list);
}

/* ------------------------------------------------------------------------------------------ priorities */

static void run_ticket(quern__job *job, quern__worker *worker);

/* Returns how many. */
static uint32_t put_by_rank(quern_graph *root, quern__graph_task *list)
{
    uint32_t count = 0;
    pthread_mutex_lock(&root->ready_mutex);
    for (quern__graph_task *next; list != NULL; list = next, count++) {
        quern__task_queue *queue = &root->ready[quern__task_node(list)->priority];
        next = list->next_ready;
        list->next_ready = NULL;
        *(queue->first == NULL ? &queue->first : &queue->last->next_ready) = list;
        queue->last = list;
    }
    pthread_mutex_unlock(&root->ready_mutex);
    return count;
}

static quern__graph_task *take_best(quern_graph *root)
{
    static const quern_priority order[] = {QUERN_PRIORITY_HIGH, QUERN_PRIORITY_NORMAL, QUERN_PRIORITY_LOW};
    pthread_mutex_lock(&root->ready_mutex);
    quern__graph_task *best = NULL;
    for (uint32_t i = 0; i < QUERN__PRIORITY_COUNT && best == NULL; i++) {
        quern__task_queue *queue = &root->ready[order[i]];
        best = queue->first;
        if (best != NULL) queue->first = best->next_ready;
    }
    pthread_mutex_unlock(&root->ready_mutex);
    return best;
}

/* Returns how many find no room in the deque. */
static uint32_t offer_tickets(quern_graph *root, quern__worker *worker, uint32_t count)
{
    const uint32_t all = count;
    const quern__job ticket = {.run = run_ticket, .scope = root->scope, .target = root};
    while (count != 0 && quern__deque_push(&worker->deque, &ticket, 0))
        count--;
    if (count != all) tell_others(root, worker);
    return count;
}

/* As quern__graph_run_ready, with so many tickets at hand. Nobody has the graph for sure who has neither a
 * ticket nor a task. */
static void run_by_rank(quern_graph *root, quern__worker *worker, quern__graph_task *list, uint32_t count)
{
    const bool is_caller = worker == root->caller;
    for (;;) {
        if (is_caller) list = run_caller_tasks(root, worker, list);
        if (list != NULL) count += put_by_rank(root, list);
        if (count == 0) return;
        count = offer_tickets(root, worker, count - 1);
        list = run_task(take_best(root), worker, NULL);
    }
}

static void run_ticket(quern__job *job, quern__worker *worker)
{
    quern_graph *root = job->target;
    note_help(root, worker);
    run_by_rank(root, worker, NULL, 1);
}

/* ------------------------------------------------------------------------------------------------- all */

/* Runs the first of the list, offers the others, and goes on with what becomes ready by that. Apart from
 * the caller, nobody may touch the graph when the list is empty: it may have finished. */
void quern__graph_run_ready(quern_graph *root, quern__worker *worker, quern__graph_task *list)
{
    const bool is_caller = worker == root->caller;
    if (QUERN__UNLIKELY(root->has_ranks)) {
        run_by_rank(root, worker, list, 0);
        return;
    }
    for (;;) {
        if (is_caller) list = run_caller_tasks(root, worker, list);
        if (list == NULL) return;
        quern__graph_task *first = list;
        list = offer(root, worker, first->next_ready);
        list = run_task(first, worker, list);
    }
}

static void run_start(quern__job *job, quern__worker *worker)
{
    quern__graph_task *starting = job->target;
    quern_graph *root = starting->graph->root;
    note_help(root, worker);
    starting->next_ready = NULL;
    quern__graph_run_ready(root, worker, starting);
}
