/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Counters.
 *
 * A counter is one word, how many are pending, and a list of links: to nodes whose jobs start when it comes
 * to zero, and to workers that sleep until then (see queue.h).
 *
 *     pending:  | HAS_LINKS | IS_LOCKED | how many jobs and holds |   0: finished; nobody will touch it
 *
 * The last point is what lets a counter live on the stack of whoever waits for it. So the word is not 0
 * while anybody has to do with the list. Whoever reads or writes that has locked it, with a bit in the same
 * word:
 *
 *     adds or removes a link:   locks the list unless the word is 0; unlocks it
 *     takes the last one off:   no links, not locked: the word becomes 0, and that is all
 *                               links, not locked:    locks the list in the same step, and finishes
 *                               locked:               leaves it at that; who has locked it finishes
 *
 * Who finishes, instead of unlocking, takes all links out, and makes the word 0 only then. When nothing of
 * the counter is left in its hands it fires the nodes, which live elsewhere. Taking off never waits for a
 * lock. Who adds or removes does, but only as long as another thread links one in or looks for one.
 *
 * Whoever fires a node makes somebody go on, who may destroy the pool of that node next. A worker of this
 * pool is waited for by quern_jobs_destroy; a thread that is none says that it is there (outside_calls),
 * from before the word becomes 0 until it is done with the pool. The same holds for a thread that submits.
 *
 * Workers keep finished jobs back and take several off a counter at once, because the word is contended.
 * They may, as long as the next job that they run is counted by the same counter, since until then it
 * cannot finish anyway. Before anything else runs, and when there is nothing to run, they settle. */

#define HAS_LINKS  (1u << 31)
#define IS_LOCKED  (1u << 30)
#define COUNT_MASK (IS_LOCKED - 1)

/* ---------------------------------------------------------------------------------------------- firing */

static bool is_inside(const quern__node *node, const quern__worker *worker)
{
    return worker != NULL && worker->jobs == node->jobs;
}

/* Relaxed: whoever has added the link published it under the lock. */
static quern__node *node_of(const quern__link *link)
{
    return atomic_load_explicit(&link->node, memory_order_relaxed);
}

/* Before the counter is out of hand: from then on somebody may go on and destroy the pools of the nodes, or free
 * the counter. Release: pairs with the acquire in quern__jobs_drop_links (after.c), which sees the call if it
 * sees that the link has no counter. */
static void announce_calls(quern__link *list, const quern__worker *worker)
{
    for (quern__link *link = list; link != NULL; link = link->next) {
        if (!is_inside(node_of(link), worker)) quern__jobs_begin_outside_call(node_of(link)->jobs);
        atomic_store_explicit(&link->counter, NULL, memory_order_release);
    }
}

/* The mutex covers all of this, so the sleeper, who takes it before it goes, and its pool are there until
 * the end. It may have come in as a guest meanwhile. Release: pairs with the acquire in has_fired (counter_wait.c). */
static void fire_outside(quern__link *link, quern_jobs *jobs)
{
    pthread_mutex_lock(&jobs->outside_mutex);
    atomic_store_explicit(&link->node, NULL, QUERN__HANDSHAKE_RELEASE);
    pthread_cond_broadcast(&jobs->outside_condition);
    if (quern__jobs_begin_visit(jobs)) {
        quern__jobs_tell_guests(jobs);
        quern__jobs_end_visit(jobs);
    }
    pthread_mutex_unlock(&jobs->outside_mutex);
}

/* Release pairs with has_fired (counter_wait.c); then the link is gone. */
static void wake_sleeper(quern__link *link, quern__worker *sleeper)
{
    atomic_store_explicit(&link->node, NULL, memory_order_release);
    quern__parker_give(&sleeper->parker);
}

/* Ends the call that announce_calls has begun. */
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

/* In the order in which they were added. */
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

/* By who has locked the list, when nobody is pending any more. Acquire and release: it pairs with the same
 * as take_off. Who has come back to the counter too early finds its own count. */
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

/* Writes that come from jobs and holds are released; the last one acquires them all and hands them on.
 * Returns whether this call has locked the list, to finish. Acquire and release: each pairs with all others
 * of the same counter, and with the acquire in quern_counter_is_done. The first look is relaxed: the swap
 * checks it. */
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

void quern__worker_settle_slowly(quern__worker *worker)
{
    /* Cast: the scope of a submitted job is its counter. */
    quern_counter *counter = (quern_counter *)(uintptr_t)worker->done_counter;
    uint32_t count = worker->done_count;
    worker->done_counter = NULL;
    worker->done_count = 0;
    quern__counter_finish(counter, count, worker);
}

/* ------------------------------------------------------------------------------------------- the links */

/* False when the counter is at zero. Acquire: pairs with the release in unlock, for the list, and with that
 * in take_off. Who holds the lock does not wait for anything, so it is unlocked soon. */
static bool lock_unless_zero(quern_counter *counter)
{
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_acquire);
    for (uint32_t look = 0; pending != 0;) {
        if ((pending & IS_LOCKED) != 0) {
            quern__thread_wait_for_another(look++);
            pending = atomic_load_explicit(&counter->pending, memory_order_acquire);
        } else if (atomic_compare_exchange_weak_explicit(&counter->pending, &pending, pending | IS_LOCKED,
                                                         memory_order_acquire, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

/* Release: pairs with the acquire in lock_unless_zero and in take_off. The first look is relaxed: the swap
 * checks it. */
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

/* Relaxed: the lock orders the link's counter. */
bool quern__counter_add_link(quern_counter *counter, quern__link *link, quern__worker *worker)
{
    if (!lock_unless_zero(counter)) return false;
    link->next = counter->links;
    counter->links = link;
    atomic_store_explicit(&link->counter, counter, memory_order_relaxed);
    unlock(counter, worker);
    return true;
}

/* Relaxed: the lock orders the link's counter. */
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
