/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs.h"

/* Counters.
 *
 * A counter is one word, how many are pending, and a list of nodes: jobs to submit when it comes to zero,
 * and workers that sleep until then.
 *
 *     pending:  | HAS_NODES | how many jobs and holds |   0: finished; nobody will touch the counter again
 *
 * The last point is what lets a counter live on the stack of whoever waits for it. Whoever takes the last
 * one off does not write 0 while there are nodes: it swaps the word to 1 instead, a hold of its own without
 * HAS_NODES, takes the list, and takes its hold off. That may meet nodes that came meanwhile: then all of
 * it again. Only when nothing of the counter is left in its hands does it fire the nodes, which live
 * elsewhere. A node is added under a hold, too.
 *
 * Whoever fires a node makes somebody go on, who may destroy the pool of that node next. A worker of this
 * pool is waited for by quern_jobs_destroy; a thread that is none says that it is there (outside_calls),
 * from before it fires until it is done with the pool. The same holds for a thread that submits.
 *
 * Workers keep finished jobs back and take several off a counter at once, because the word is contended.
 * They may, as long as the next job that they run is counted by the same counter, since until then it
 * cannot finish anyway. Before anything else runs, and when there is nothing to run, they settle. */

#define HAS_NODES (1u << 31)

/* --------------------------------------------------------------------------------------- counting down */

/* Writes that come from jobs and holds are released; the last one acquires them all and hands them on.
 * Returns whether this call has to fire the nodes: then one is left pending. Acquire and release: each
 * pairs with all others of the same counter, and with the acquire in quern_counter_is_done. The first look
 * is relaxed: the swap checks it. */
static bool take_off(quern_counter *counter, uint32_t count)
{
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_relaxed);
    uint32_t left;
    do
        left = pending == (HAS_NODES | count) ? 1 : pending - count;
    while (!atomic_compare_exchange_weak_explicit(&counter->pending, &pending, left, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return pending == (HAS_NODES | count);
}

static bool is_inside(const quern__node *node, const quern__worker *worker)
{
    return worker != NULL && worker->jobs == node->jobs;
}

/* Before the counter is out of hand: from then on somebody may go on and destroy the pools of the nodes. */
static quern__node *announce_calls(quern__node *list, const quern__worker *worker)
{
    for (const quern__node *node = list; node != NULL; node = node->next)
        if (!is_inside(node, worker)) quern__jobs_begin_outside_call(node->jobs);
    return list;
}

/* The mutex covers all of this, so the sleeper, who takes it before it goes, and its pool are there until
 * the end. It may have come in as a guest meanwhile. Release: pairs with the acquire in counter_is_done. */
static void fire_outside(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    pthread_mutex_lock(&jobs->outside_mutex);
    atomic_store_explicit(&node->has_fired, true, QUERN__HANDSHAKE_RELEASE);
    pthread_cond_broadcast(&jobs->outside_condition);
    quern__jobs_tell_guests(jobs);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

static void wake_sleeper(quern__node *node)
{
    quern__worker *sleeper = node->worker;
    /* Release pairs with counter_is_done; then the node is gone. */
    atomic_store_explicit(&node->has_fired, true, memory_order_release);
    quern__parker_give(&sleeper->parker);
}

/* Ends the call that announce_calls has begun. */
static void fire(quern__node *node, quern__worker *worker)
{
    quern_jobs *jobs = node->jobs;
    bool is_call = !is_inside(node, worker);
    if (node->job.run != NULL)
        quern__node_submit(node, worker);
    else if (node->worker == NULL)
        fire_outside(node);
    else
        wake_sleeper(node);
    if (is_call) quern__jobs_end_outside_call(jobs);
}

/* Both lists have their newest first. */
static quern__node *join_lists(quern__node *newer, quern__node *older)
{
    if (newer == NULL) return older;
    quern__node *last = newer;
    while (last->next != NULL)
        last = last->next;
    last->next = older;
    return newer;
}

/* In the order in which they were added. */
static quern__node *reverse(quern__node *list)
{
    quern__node *reversed = NULL;
    while (list != NULL) {
        quern__node *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

void quern__counter_finish(quern_counter *counter, uint32_t count, quern__worker *worker)
{
    quern__node *nodes = NULL;
    bool has_nodes = take_off(counter, count);
    while (has_nodes) {
        /* Acquire pairs with the release in add_node. */
        quern__node *newer = atomic_exchange_explicit(&counter->nodes, NULL, memory_order_acquire);
        nodes = join_lists(announce_calls(newer, worker), nodes);
        has_nodes = take_off(counter, 1);
    }
    for (quern__node *node = reverse(nodes), *next; node != NULL; node = next) {
        next = node->next;
        fire(node, worker);
    }
}

/* The add pairs with take_off. What is relaxed is checked by the swap, or is ordered by the hold: nobody
 * takes the list before that is off. */
void quern__counter_add_node(quern_counter *counter, quern__node *node, quern__worker *worker)
{
    /* Acquire: what the jobs wrote, when it was zero. */
    atomic_fetch_add_explicit(&counter->pending, 1, memory_order_acq_rel);
    void *next = atomic_load_explicit(&counter->nodes, memory_order_relaxed);
    do
        node->next = next;
    while (!atomic_compare_exchange_weak_explicit(&counter->nodes, &next, node, memory_order_release,
                                                  memory_order_relaxed));
    atomic_fetch_or_explicit(&counter->pending, HAS_NODES, memory_order_relaxed);
    quern__counter_finish(counter, 1, worker);
}

void quern__worker_settle_slowly(quern__worker *worker)
{
    /* Cast: the scope of a submitted job is its counter. */
    quern_counter *counter = (quern_counter *)(uintptr_t)worker->done_counter;
    uint32_t count = worker->done_count;
    worker->done_counter = NULL;
    worker->done_count = 0;
    quern__counter_finish(counter, count, worker);
}

/* ------------------------------------------------------------------------------------ the public calls */

/* Acquire: pairs with the release in take_off. */
bool quern_counter_is_done(const quern_counter *counter)
{
    return counter == NULL || atomic_load_explicit(&counter->pending, memory_order_acquire) == 0;
}

/* Relaxed: whoever adds to a counter has something that keeps it from finishing, or it is at zero and
 * nobody looks. */
void quern_counter_hold(quern_counter *counter)
{
    if (counter != NULL) atomic_fetch_add_explicit(&counter->pending, 1, memory_order_relaxed);
}

quern_result quern_jobs_release(quern_jobs *jobs, quern_counter *counter)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_release", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_release", "counter");
    if (quern_counter_is_done(counter))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_release: the counter is at zero; nothing holds it");
    quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_release");
    if (result != QUERN_OK) return result;
    quern__counter_finish(counter, 1, quern__current_worker);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- waiting for one */

typedef struct counter_wait {
    quern_counter *counter;
    quern__node node;
    bool is_asleep; /* the node is in the list: then the wait ends with it */
} counter_wait;

/* Acquire: pairs with the release in wake_sleeper and fire_outside. */
static bool counter_is_done(const quern__wait *wait)
{
    const counter_wait *waiting = wait->target;
    if (!waiting->is_asleep) return quern_counter_is_done(waiting->counter);
    return atomic_load_explicit(&waiting->node.has_fired, QUERN__HANDSHAKE_ACQUIRE);
}

static void make_sleeper(quern__node *node, quern_jobs *jobs, quern__worker *worker)
{
    node->job.run = NULL;
    node->jobs = jobs;
    node->worker = worker;
    atomic_init(&node->has_fired, false);
}

static void announce_counter(const quern__wait *wait, quern__worker *worker)
{
    counter_wait *waiting = wait->target;
    make_sleeper(&waiting->node, worker->jobs, worker);
    waiting->is_asleep = true;
    quern__counter_add_node(waiting->counter, &waiting->node, worker);
}

static void wait_inside(quern__worker *worker, quern_counter *counter)
{
    counter_wait waiting = {.counter = counter, .is_asleep = false};
    quern__wait wait = {
        .scope = counter, .target = &waiting, .is_done = counter_is_done, .announce = announce_counter};
    quern__worker_wait(worker, &wait);
}

/* Until the node has fired or there is a place. The predicate's first half changes under the mutex; for the
 * other see quern__jobs_leave, which broadcasts when it sees outside_count. The count and the look for a
 * place are a handshake that pairs with quern__jobs_leave. The look at the node is relaxed:
 * counter_is_done acquires. Counting down is relaxed: one broadcast too many does no harm. */
static void sleep_outside(quern_jobs *jobs, const quern__node *node)
{
    atomic_fetch_add_explicit(&jobs->outside_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs);
    pthread_mutex_lock(&jobs->outside_mutex);
    while (!atomic_load_explicit(&node->has_fired, memory_order_relaxed) && !quern__jobs_has_place(jobs))
        pthread_cond_wait(&jobs->outside_condition, &jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
    atomic_fetch_sub_explicit(&jobs->outside_count, 1, memory_order_relaxed);
}

/* All places are taken: sleeps, and takes one that becomes free. */
static void wait_outside(quern_jobs *jobs, quern_counter *counter)
{
    counter_wait waiting = {.counter = counter, .is_asleep = true};
    quern__wait wait = {.scope = counter, .target = &waiting, .is_done = counter_is_done};
    make_sleeper(&waiting.node, jobs, NULL);
    quern__counter_add_node(counter, &waiting.node, NULL);
    while (!counter_is_done(&wait)) {
        quern__worker *guest = quern__jobs_try_enter(jobs);
        if (guest != NULL) {
            quern__worker_wait(guest, &wait);
            quern__jobs_leave(jobs);
        } else {
            sleep_outside(jobs, &waiting.node);
        }
    }
    /* Whoever fired the node is done with it; see fire_outside. */
    pthread_mutex_lock(&jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_wait", "counter");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) {
        wait_inside(worker, counter);
    } else if (!quern_counter_is_done(counter)) {
        quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_wait");
        if (result != QUERN_OK) return result;
        worker = quern__jobs_try_enter(jobs);
        if (worker != NULL) {
            wait_inside(worker, counter);
            quern__jobs_leave(jobs);
        } else {
            wait_outside(jobs, counter);
        }
    }
    return QUERN_OK;
}
