/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Counters.
 *
 * A counter is one word, `pending`, and a list of links. The word holds the number of pending jobs and
 * holds. Each link refers to a node: a job that starts when the counter reaches zero, or a sleeper that
 * wakes then (see queue.h).
 *
 *     pending:  | HAS_LINKS | IS_LOCKED | number of jobs and holds |     0: finished; no thread will access it
 *
 * A counter may live on the stack of the thread that waits for it, because no thread accesses a counter
 * after the word became 0. The word therefore stays above 0 while any thread uses the list. A thread that
 * reads or writes the list has set IS_LOCKED first:
 *
 *     add or remove a link:      locks the list unless the word is 0; unlocks it afterwards
 *     subtract the last job:     no links, not locked: the word becomes 0
 *                                links, not locked:    the same step locks the list; the thread then finishes
 *                                locked:               the thread leaves; the lock holder finishes
 *
 * The thread that finishes a counter takes all links out of the list, and only then stores 0. From then on
 * it uses the links alone and fires their nodes, which are not part of the counter. Subtracting never waits
 * for a lock. Adding and removing links do, but a thread holds the lock only to insert, find or remove one
 * link.
 *
 * Firing a node may let a thread continue that destroys the node's pool next. quern_jobs_destroy waits for
 * the pool's own workers, and for all other threads through outside_call_count: the firing thread
 * increments it before the word becomes 0, and decrements it when it no longer accesses the pool. A thread
 * that submits does the same.
 *
 * The word is contended, so workers batch their updates: a worker keeps the number of jobs that it finished
 * and subtracts several at once. This delays nothing as long as the worker's next job has the same counter,
 * because that job keeps the counter above zero anyway. A worker subtracts before it runs a job with
 * another counter, and when it finds no job. */

#define HAS_LINKS  (1u << 31)
#define IS_LOCKED  (1u << 30)
#define COUNT_MASK (IS_LOCKED - 1)

/* ---------------------------------------------------------------------------------------------- firing */

static bool is_inside(const quern__node *node, const quern__worker *worker)
{
    return worker != NULL && worker->jobs == node->jobs;
}

/* Relaxed: the thread that added the link published this pointer under the lock. */
static quern__node *node_of(const quern__link *link)
{
    return atomic_load_explicit(&link->node, memory_order_relaxed);
}

/* Announces to the pools of the nodes that this thread will fire them. Must precede the store of 0:
 * afterwards another thread may destroy these pools, or free the counter. Release: pairs with the acquire
 * in quern__jobs_drop_links (submit.c), which sees the outside call if it sees that the link has no counter.
 * */
static void announce_calls(quern__link *list, const quern__worker *worker)
{
    for (quern__link *link = list; link != NULL; link = link->next) {
        if (!is_inside(node_of(link), worker)) quern__jobs_begin_outside_call(node_of(link)->jobs);
        atomic_store_explicit(&link->counter, NULL, memory_order_release);
    }
}

/* Wakes an outside sleeper. The sleeper locks the mutex before it returns, so it and its pool exist until
 * this thread unlocks it. The sleeper may meanwhile wait inside of the pool, in an external slot; therefore
 * external workers are woken, too. Release: pairs with the acquire in has_fired (wait.c). */
static void fire_outside(quern__link *link, quern_jobs *jobs)
{
    quern__mutex_lock(&jobs->outside_mutex);
    atomic_store_explicit(&link->node, NULL, QUERN__HANDSHAKE_RELEASE);
    quern__condition_broadcast(&jobs->outside_condition);
    if (quern__jobs_begin_visit(jobs)) {
        quern__jobs_wake_external_workers(jobs);
        quern__jobs_end_visit(jobs);
    }
    quern__mutex_unlock(&jobs->outside_mutex);
}

/* The link may be gone after the store. Release: pairs with has_fired (wait.c). */
static void wake_sleeper(quern__link *link, quern__worker *sleeper)
{
    atomic_store_explicit(&link->node, NULL, memory_order_release);
    quern__parker_give(&sleeper->parker);
}

/* Fires one link and ends the outside call that announce_calls began for it. */
static void fire(quern__link *link, quern__worker *worker)
{
    quern__node *node = node_of(link);
    quern_jobs *jobs = node->jobs;
    bool is_call = !is_inside(node, worker);
    if (node->job.run != NULL)
        quern__node_count_down(node, 1, worker);
    else if (node->job.target == NULL)
        fire_outside(link, jobs);
    else
        wake_sleeper(link, node->job.target);
    if (is_call) quern__jobs_end_outside_call(jobs);
}

/* The list has the newest link first; links fire in the order in which they were added. */
static quern__link *reverse(quern__link *list)
{
    quern__link *reversed = NULL;
    while (list != NULL) {
        quern__link *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

/* Finishes a counter without pending jobs; the calling thread holds the lock. Acquire and release: pairs
 * with the acquire and release in take_off. The mask clears only the flags: if another thread broke the rules
 * and added a job too early, that job stays counted. */
static void finish_locked(quern_counter *counter, quern__worker *worker)
{
    quern__link *list = counter->links;
    counter->links = NULL;
    announce_calls(list, worker);
    atomic_fetch_and_explicit(&counter->pending, COUNT_MASK, memory_order_acq_rel);
    for (quern__link *link = reverse(list), *next; link != NULL; link = next) {
        next = link->next;
        fire(link, worker);
    }
}

/* --------------------------------------------------------------------------------------- counting down */

/* Subtracts `count` jobs or holds. Returns whether this call also locked the list, so that the caller has
 * to finish the counter. Acquire and release: each subtraction publishes what its thread wrote, and the
 * last one acquires all of that. It pairs with the other subtractions of the counter and with the acquire
 * in quern_counter_is_done. The first load is relaxed because the compare-and-swap checks its value. */
static bool take_off(quern_counter *counter, uint32_t count)
{
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_relaxed);
    uint32_t left;
    do
        left = pending == (HAS_LINKS | count) ? IS_LOCKED : pending - count;
    while (!atomic_compare_exchange_weak_explicit(&counter->pending, &pending, left, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return pending == (HAS_LINKS | count);
}

void quern__counter_finish(quern_counter *counter, uint32_t count, quern__worker *worker)
{
    if (take_off(counter, count)) finish_locked(counter, worker);
}

void quern__worker_flush_finished_slow(quern__worker *worker)
{
    /* Cast: the scope of a submitted job is its counter. */
    quern_counter *counter = (quern_counter *)(uintptr_t)worker->done_counter;
    uint32_t count = worker->done_count;
    worker->done_counter = NULL;
    worker->done_count = 0;
    quern__counter_finish(counter, count, worker);
}

/* ------------------------------------------------------------------------------------------- the links */

/* Returns false if the counter is at zero. Acquire: pairs with the release in unlock, for the list, and
 * with the release in take_off. A lock holder never waits for another thread, so spinning is short. */
static bool lock_unless_zero(quern_counter *counter)
{
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_acquire);
    for (uint32_t look = 0; pending != 0;) {
        if ((pending & IS_LOCKED) != 0) {
            quern__thread_spin_wait(look++);
            pending = atomic_load_explicit(&counter->pending, memory_order_acquire);
        } else if (atomic_compare_exchange_weak_explicit(&counter->pending, &pending, pending | IS_LOCKED,
                                                         memory_order_acquire, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

/* Unlocks the list, or finishes the counter if it has no pending jobs any more. Release: pairs with the
 * acquire in lock_unless_zero and in take_off. The first load is relaxed because the compare-and-swap
 * checks its value. */
static void unlock(quern_counter *counter, quern__worker *worker)
{
    uint32_t flag = counter->links != NULL ? HAS_LINKS : 0;
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_relaxed);
    while ((pending & COUNT_MASK) != 0)
        if (atomic_compare_exchange_weak_explicit(&counter->pending, &pending,
                                                  (pending & COUNT_MASK) | flag, memory_order_release,
                                                  memory_order_relaxed))
            return;
    finish_locked(counter, worker);
}

/* Relaxed: the list's lock orders accesses to the link's counter. */
bool quern__counter_add_link(quern_counter *counter, quern__link *link, quern__worker *worker)
{
    if (!lock_unless_zero(counter)) return false;
    link->next = counter->links;
    counter->links = link;
    atomic_store_explicit(&link->counter, counter, memory_order_relaxed);
    unlock(counter, worker);
    return true;
}

/* Relaxed: the list's lock orders accesses to the link's counter. */
bool quern__counter_remove_link(quern_counter *counter, quern__link *link, quern__worker *worker)
{
    if (!lock_unless_zero(counter)) return false;
    quern__link *before = NULL, *each = counter->links;
    while (each != NULL && each != link) {
        before = each;
        each = each->next;
    }
    if (each != NULL && before == NULL) counter->links = each->next;
    if (each != NULL && before != NULL) before->next = each->next;
    if (each != NULL) atomic_store_explicit(&link->counter, NULL, memory_order_relaxed);
    unlock(counter, worker);
    return each != NULL;
}

/* ------------------------------------------------------------------------------------ the public calls */

/* Acquire: pairs with the release in take_off. */
bool quern_counter_is_done(const quern_counter *counter)
{
    return counter == NULL || atomic_load_explicit(&counter->pending, memory_order_acquire) == 0;
}

/* Relaxed: either the caller already holds the counter or has a job in it, so that it cannot finish
 * meanwhile, or the counter is at zero and no other thread uses it. */
void quern_counter_hold(quern_counter *counter)
{
    if (counter != NULL) atomic_fetch_add_explicit(&counter->pending, 1, memory_order_relaxed);
}

quern_result quern_counter_release(quern_jobs *jobs, quern_counter *counter)
{
    if (jobs == NULL) return quern__fail_null("quern_counter_release", "jobs");
    if (counter == NULL) return quern__fail_null("quern_counter_release", "counter");
    if (quern_counter_is_done(counter))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_counter_release: the counter is at zero; release it once per quern_counter_hold");
    quern_result result = quern__jobs_check_threads(jobs, "quern_counter_release");
    if (result != QUERN_OK) return result;
    quern__counter_finish(counter, 1, quern__current_worker);
    return QUERN_OK;
}
