/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/graph_internal.h"

/* Nodes of a run on several threads: how they become ready, begin and finish. graph_run.c has the overview
 * and the rules for accessing a graph.
 *
 * A task is in one place at a time: on a worker, in a deque or in a list. In graphs with choices a node may
 * become due again before it has run; `due_count` is the number of its executions that have not finished.
 * Only the worker that increments it from 0 makes the task ready; after an execution the worker makes the
 * task ready again if more are due. So a node never runs on two workers at a time, and the number of its
 * executions does not depend on timing.
 *
 * In graphs with priorities, ready tasks are in lists under a lock, and there is one ticket per ready task,
 * on a worker or in a deque. A worker with a ticket takes the best task that is ready at that time. There
 * are as many tickets as ready tasks, so it always finds one. */

/* --------------------------------------------------------------------- tasks that only the caller may run */

static void run_external_call(quern__job *job, quern__worker *worker);

/* Counts a task in caller_tasks, and calls an external worker if the task is the first that is counted. The
 * task is in the list before it is counted, so each counted task is found. The job caller_node is not in a
 * queue then: the called worker takes it out before it counts down the last task (run_external_call). Acquire and
 * release: each increment pairs with that subtraction. */
static void call_external_worker(quern__graph_run *run, quern__worker *worker)
{
    if (atomic_fetch_add_explicit(&run->call_count, 1, memory_order_acq_rel) != 0) return;
    run->caller_node.job.run = run_external_call;
    run->caller_node.job.scope = run->scope;
    run->caller_node.job.target = run;
    quern__node_submit(&run->caller_node, worker);
}

/* Hands a ready task to the caller of the run; in a submitted run, to an external worker. Release: pairs
 * with the acquire in take_caller_task. The permit ends the caller's sleep. The first load is relaxed
 * because the compare-and-swap checks its value. */
static void give_to_caller(quern__graph_task *ready, quern__worker *worker)
{
    quern__graph_run *run = ready->graph->run;
    quern__worker *caller = run->caller;
    _Atomic(quern__graph_task *) *list = &run->caller_tasks;
    ready->next_ready = atomic_load_explicit(list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(list, &ready->next_ready, ready, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    if (caller == NULL)
        call_external_worker(run, worker);
    else if (worker != caller)
        quern__parker_give(&caller->parker);
}

/* Takes the newest task out of caller_tasks; NULL if there is none. Only one thread at a time takes tasks
 * out, so the head that it has read keeps its `next_ready` until the compare-and-swap succeeds. Acquire:
 * pairs with the release in give_to_caller. */
static quern__graph_task *take_caller_task(quern__graph_run *run)
{
    quern__graph_task *head = atomic_load_explicit(&run->caller_tasks, memory_order_acquire);
    while (head != NULL &&
           !atomic_compare_exchange_weak_explicit(&run->caller_tasks, &head, head->next_ready,
                                                  memory_order_acquire, memory_order_acquire)) {
    }
    return head;
}

/* ---------------------------------------------------------------------------------- ready and finished */

/* Puts a ready task in front of the worker's list, or hands it to the caller. Returns the list. */
static quern__graph_task *make_ready(quern__graph_task *ready, quern__worker *worker,
                                     quern__graph_task *list)
{
    if (quern__task_node(ready)->is_for_caller) {
        give_to_caller(ready, worker);
        return list;
    }
    ready->next_ready = list;
    return ready;
}

/* Makes a task due once more, in graphs with choices. The caller has an unfinished task of this graph, so
 * unfinished_count is above 0 and a relaxed increment is enough. due_count needs acquire and release: each
 * execution of a node happens before the next one; it pairs with itself and with finish_due. */
static quern__graph_task *make_due(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    atomic_fetch_add_explicit(&task->graph->unfinished_count, 1, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&task->due_count, 1, memory_order_acq_rel) != 0) return list;
    return make_ready(task, worker, list);
}

/* Acquire and release: publishes what this predecessor wrote, and acquires what the other predecessors
 * wrote; pairs with itself. The first load is relaxed because the compare-and-swap checks its value. */
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

/* Counts one node, or one due execution, as finished; ends the run or finishes the parent node after the
 * last one. The graph exists until the subtraction; afterwards only if no other thread ends the run, which
 * holds for graphs without a caller. The subtraction acquires what all nodes wrote, for the caller or for
 * the successors of the parent node: it pairs with itself and with the acquire in has_finished
 * (graph_run.c). */
static quern__graph_task *count_finished(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_run *run = graph->run;
    quern__graph_task *parent = graph->parent;
    quern__worker *caller = parent == NULL ? run->caller : NULL;
    if (atomic_fetch_sub_explicit(&graph->unfinished_count, 1, memory_order_acq_rel) != 1) return list;
    if (caller != NULL) {
        if (worker != caller) quern__parker_give(&caller->parker);
        return list;
    }
    if (parent != NULL) return finish(parent, worker, list);
    quern__graph_end_submitted(run, worker);
    return list;
}

/* Finishes one execution of a task in a graph with choices. Acquire and release: pairs with make_due. */
static quern__graph_task *finish_due(quern__graph_task *finished, quern__worker *worker,
                                     quern__graph_task *list)
{
    if (atomic_fetch_sub_explicit(&finished->due_count, 1, memory_order_acq_rel) != 1)
        list = make_ready(finished, worker, list);
    return count_finished(finished->graph, worker, list);
}

/* finish for graphs with choices. */
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

/* Finishes a task. Returns the list with the successors that became ready in front, in the order of their
 * edges. */
static quern__graph_task *finish(quern__graph_task *finished, quern__worker *worker,
                                 quern__graph_task *list)
{
    quern_graph *graph = finished->graph;
    if (QUERN__UNLIKELY(graph->choice_count != 0)) return finish_again(finished, worker, list);
    for (uint32_t index = quern__task_node(finished)->first_edge; index != QUERN__NO_EDGE;
         index = graph->edges[index].next) {
        quern__graph_task *successor = &graph->tasks[graph->edges[index].after];
        /* Releases what this node wrote and acquires what the other predecessors wrote: pairs with
         * itself. */
        if (atomic_fetch_sub_explicit(&successor->waiting_count, 1, memory_order_acq_rel) == 1)
            list = make_ready(successor, worker, list);
    }
    return count_finished(graph, worker, list);
}

/* The caller's tasks are handed over last: if the worker has no other task, it must not access the graph
 * afterwards. Relaxed: pushing the first task publishes all of it. */
quern__graph_task *quern__graph_reset(quern_graph *graph, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_task *for_caller = NULL;
    uint32_t begin_count = 0;
    for (uint32_t index = graph->node_count; index-- != 0;) {
        quern__graph_task *task = &graph->tasks[index];
        const quern__graph_node *node = &graph->nodes[index];
        const bool begins = node->predecessor_count == 0 && !node->is_chosen;
        atomic_store_explicit(&task->waiting_count, node->predecessor_count, memory_order_relaxed);
        atomic_store_explicit(&task->due_count, begins, memory_order_relaxed);
        task->choice_count = 0;
        if (!begins) continue;
        begin_count++;
        quern__graph_task **into = node->is_for_caller ? &for_caller : &list;
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

/* Runs items of a task's loop and leaves the loop; the last participant finishes the task. Each subtraction
 * pairs with those of the other participants. */
static quern__graph_task *run_loop(quern__graph_task *shared, quern__worker *worker,
                                   quern__graph_task *list)
{
    const quern__named_work work = quern__worker_begin_named(worker, quern__task_node(shared)->name);
    quern__worker_add_closed_depth(worker, 1);
    uint32_t done_count = 1 + quern__loop_join(&shared->loop, worker, NULL);
    quern__worker_add_closed_depth(worker, (uint32_t)-1);
    quern__worker_end_named(worker, &work);
    /* Acquire and release: the subtraction pairs with those of the other participants. It publishes what
     * this worker wrote, and the last participant acquires what all wrote. Therefore the flag is read with
     * relaxed order. */
    uint32_t before = atomic_fetch_sub_explicit(&shared->loop.references, done_count, memory_order_acq_rel);
    if (before != done_count) return list;
    if (atomic_load_explicit(&shared->loop.was_cancelled, memory_order_relaxed))
        quern__graph_note_cancelled(shared->graph->run);
    return finish(shared, worker, list);
}

/* Relaxed: the flag is read after the end of the run, which orders it. */
static void note_help(quern__graph_run *run, const quern__worker *worker)
{
    if (worker != run->starter && !atomic_load_explicit(&run->was_helped, memory_order_relaxed))
        atomic_store_explicit(&run->was_helped, true, memory_order_relaxed);
}

/* Runs tasks on a worker that joins a run, in the floating-point mode of the run. The graph may be gone
 * afterwards, if the list is empty. */
static void run_joined(quern__graph_run *run, quern__worker *worker, quern__graph_task *list)
{
    if (list == NULL) return;
    const uint32_t float_mode = run->float_mode;
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    quern__graph_run_ready(run, worker, list);
    quern__float_mode_leave(float_mode, own_mode);
}

static void run_task_offer(quern__job *job, quern__worker *worker)
{
    quern__loop *loop = job->target;
    quern__graph_task *shared =
        (quern__graph_task *)(void *)((char *)loop - offsetof(quern__graph_task, loop));
    quern__graph_run *run = shared->graph->run;
    note_help(run, worker);
    run_joined(run, worker, run_loop(shared, worker, NULL));
}

static void start_loop(quern__graph_task *starting, const quern__range *range, const quern__worker *worker)
{
    const quern_graph *graph = starting->graph;
    const quern__graph_run *run = graph->run;
    quern__loop_slot *slots = graph->slots + (size_t)starting->index * graph->slots_per_task;
    quern__loop_init(&starting->loop, run_task_offer, run->scope, range, slots,
                     run->caller != NULL ? run->caller : worker);
    starting->loop.range.cancel = run->cancel;
    starting->loop.wakes_sleepers = run->wakes_sleepers && quern__jobs_has_spare_processor(worker->jobs);
    /* The starting worker's reference. Relaxed: no other thread knows the loop yet. */
    atomic_store_explicit(&starting->loop.references, 1, memory_order_relaxed);
}

/* State that the worker restores after it has run a node in one call. */
typedef struct plain_work {
    int64_t floor;
    quern__named_work work;
} plain_work;

/* Begins a call of a node. Raises the floor to the end of the deque: the jobs below it are ready tasks, not jobs of
 * the node. */
static plain_work begin_plain(quern__worker *worker, const quern__graph_node *node)
{
    const plain_work plain = {.floor = worker->floor,
                              .work = quern__worker_begin_named(worker, node->name)};
    worker->floor = quern__deque_bottom(&worker->deque);
    quern__worker_add_closed_depth(worker, 1);
    return plain;
}

static void end_plain(quern__worker *worker, const plain_work *plain)
{
    quern__worker_add_closed_depth(worker, (uint32_t)-1);
    worker->floor = plain->floor;
    quern__worker_end_named(worker, &plain->work);
}

uint32_t quern__task_choose(quern__graph_task *task, uint32_t worker_index)
{
    const quern__graph_node *node = quern__task_node(task);
    const quern_graph *graph = task->graph;
    if (task->choice_count == node->choice_limit) {
        /* Stops the run. The thread that sets the outcome also records the node; it has not finished its task
         * yet, so the end of the run publishes these writes, and relaxed order is enough. */
        quern__graph_run *run = graph->run;
        uint32_t none = QUERN_OK;
        if (atomic_compare_exchange_strong_explicit(&run->outcome, &none, QUERN_ERROR_LIMIT,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            run->limit_node = task->index;
            run->limit_name = node->name;
            run->limit_count = task->choice_count;
        }
        return QUERN__NO_CHOICE;
    }
    task->choice_count++;
    const uint32_t choice = node->choose(node->range.user_data, worker_index);
    if (choice >= node->edge_count) return QUERN__NO_CHOICE;
    uint32_t edge = node->first_edge; /* the list begins with the newest edge; choice 0 is the oldest */
    for (uint32_t i = node->edge_count - 1; i != choice; i--)
        edge = graph->edges[edge].next;
    return graph->edges[edge].after;
}

static quern__graph_task *run_task(quern__graph_task *task, quern__worker *worker, quern__graph_task *list)
{
    const quern__graph_node *node = quern__task_node(task);
    if (QUERN__UNLIKELY(task->graph->run->has_limits) && quern__node_has_work(node) &&
        quern__graph_is_stopped(task->graph->run))
        return node->choose != NULL ? finish_due(task, worker, list) : finish(task, worker, list);
    if (node->choose != NULL) {
        const plain_work plain = begin_plain(worker, node);
        const uint32_t chosen = quern__task_choose(task, worker->index);
        end_plain(worker, &plain);
        if (chosen != QUERN__NO_CHOICE) list = make_due(&task->graph->tasks[chosen], worker, list);
        return finish_due(task, worker, list);
    }
    if (node->inner != NULL) {
        node->inner->parent = task;
        return node->inner->node_count == 0 ? finish(task, worker, list)
                                            : quern__graph_reset(node->inner, worker, list);
    }
    if (node->range.function == NULL) return finish(task, worker, list);
    if (!node->is_for_caller && !quern__range_is_plain(&node->range, worker->jobs->thread_count)) {
        start_loop(task, &node->range, worker);
        return run_loop(task, worker, list);
    }
    const plain_work plain = begin_plain(worker, node);
    quern__node_call_once(node, worker->index);
    end_plain(worker, &plain);
    return finish(task, worker, list);
}

/* ------------------------------------------------------------------------------------------- offers */

static void run_start(quern__job *job, quern__worker *worker);

/* Wakes another worker, if the run may, after tasks were pushed into the worker's deque. */
static void notify_others(const quern__graph_run *run, quern__worker *worker)
{
    if (run->wakes_sleepers && quern__jobs_has_spare_processor(worker->jobs))
        quern__jobs_notify(worker->jobs, worker, run->scope);
}

/* Pushes as many tasks as fit into the deque for other workers. Returns the rest. */
static quern__graph_task *offer(const quern__graph_run *run, quern__worker *worker, quern__graph_task *list)
{
    quern__graph_task *rest = list;
    while (rest != NULL) {
        quern__graph_task *next = rest->next_ready; /* another worker may overwrite it after the push */
        quern__job start = {.run = run_start, .scope = run->scope, .target = rest};
        if (!quern__deque_push(&worker->deque, &start, 0)) break;
        rest = next;
    }
    if (rest != list) notify_others(run, worker);
    return rest;
}

/* Runs the tasks that only the caller may run. */
static quern__graph_task *run_caller_tasks(quern__graph_run *run, quern__worker *caller,
                                           quern__graph_task *list)
{
    quern__graph_task *next;
    while ((next = take_caller_task(run)) != NULL)
        list = run_task(next, caller, list);
    return list;
}

/* Runs on an external worker that call_external_worker called. No second one is called as long as call_count is above
 * 0. Each counted task is unfinished, so the graph exists until that task has run. Acquire and release:
 * pairs with call_external_worker. */
static void run_external_call(quern__job *job, quern__worker *worker)
{
    quern__graph_run *run = job->target;
    quern__graph_task *list = NULL;
    bool is_last;
    const uint32_t float_mode = run->float_mode;
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    note_help(run, worker);
    do {
        quern__graph_task *task = take_caller_task(run);
        is_last = atomic_fetch_sub_explicit(&run->call_count, 1, memory_order_acq_rel) == 1;
        list = run_task(task, worker, list);
    } while (!is_last);
    if (list != NULL) quern__graph_run_ready(run, worker, list);
    quern__float_mode_leave(float_mode, own_mode);
}

/* ------------------------------------------------------------------------------------------ priorities */

static void run_ticket(quern__job *job, quern__worker *worker);

/* Puts ready tasks into the lists of their priorities. Returns the number of tasks. */
static uint32_t put_by_priority(quern__graph_run *run, quern__graph_task *list)
{
    uint32_t count = 0;
    quern__mutex_lock(&run->ready_mutex);
    for (quern__graph_task *next; list != NULL; list = next, count++) {
        quern__task_queue *queue = &run->ready[quern__task_node(list)->priority];
        next = list->next_ready;
        list->next_ready = NULL;
        *(queue->first == NULL ? &queue->first : &queue->last->next_ready) = list;
        queue->last = list;
    }
    quern__mutex_unlock(&run->ready_mutex);
    return count;
}

static quern__graph_task *take_best(quern__graph_run *run)
{
    static const quern_priority order[] = {QUERN_PRIORITY_HIGH, QUERN_PRIORITY_NORMAL, QUERN_PRIORITY_LOW};
    quern__mutex_lock(&run->ready_mutex);
    quern__graph_task *best = NULL;
    for (uint32_t i = 0; i < QUERN__PRIORITY_COUNT && best == NULL; i++) {
        quern__task_queue *queue = &run->ready[order[i]];
        best = queue->first;
        if (best != NULL) queue->first = best->next_ready;
    }
    quern__mutex_unlock(&run->ready_mutex);
    return best;
}

/* quern__graph_run_ready for graphs with priorities; the worker has `count` tickets. A worker without a
 * ticket or a task must not access the graph, because the run may have ended; the caller may. */
static void run_by_priority(quern__graph_run *run, quern__worker *worker, quern__graph_task *list,
                            uint32_t count)
{
    const bool is_caller = worker == run->caller;
    const quern__job ticket = {.run = run_ticket, .scope = run->scope, .target = run};
    for (;;) {
        if (is_caller) list = run_caller_tasks(run, worker, list);
        if (list != NULL) count += put_by_priority(run, list);
        if (count == 0) return;
        /* Keeps one ticket, and offers the others, as far as the deque has room. */
        const uint32_t all = --count;
        while (count != 0 && quern__deque_push(&worker->deque, &ticket, 0))
            count--;
        if (count != all) notify_others(run, worker);
        list = run_task(take_best(run), worker, NULL);
    }
}

static void run_ticket(quern__job *job, quern__worker *worker)
{
    quern__graph_run *run = job->target;
    const uint32_t float_mode = run->float_mode;
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    note_help(run, worker);
    run_by_priority(run, worker, NULL, 1);
    quern__float_mode_leave(float_mode, own_mode);
}

/* -------------------------------------------------------------------------------------------- ready tasks */

/* Runs the first task of the list, offers the others, and continues with the tasks that become ready. When
 * the list is empty, the run may have ended, so only the caller of the run may still access the graph. */
void quern__graph_run_ready(quern__graph_run *run, quern__worker *worker, quern__graph_task *list)
{
    const bool is_caller = worker == run->caller;
    if (QUERN__UNLIKELY(run->has_priorities)) {
        run_by_priority(run, worker, list, 0);
        return;
    }
    for (;;) {
        if (is_caller) list = run_caller_tasks(run, worker, list);
        if (list == NULL) return;
        quern__graph_task *first = list;
        list = offer(run, worker, first->next_ready);
        list = run_task(first, worker, list);
    }
}

static void run_start(quern__job *job, quern__worker *worker)
{
    quern__graph_task *starting = job->target;
    quern__graph_run *run = starting->graph->run;
    note_help(run, worker);
    starting->next_ready = NULL;
    run_joined(run, worker, starting);
}
