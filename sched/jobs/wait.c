/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Waiting for one of several counters, with or without a time limit.
 *
 * A waiting thread polls the counters until it is about to sleep. Then it adds one link per counter to the
 * lists of the counters; the links are on its stack. From then on it polls the links only: a fired link
 * proves that its counter was at zero, even if that counter is in use again or gone.
 *
 * quern_jobs_wait does not access its counter again after the link fired. A wait for several counters, or
 * with a limit, may end while links have not fired; it removes these from the lists. If such a link is in
 * no list any more, another thread has taken it out and is about to fire it. The wait then lasts until the
 * link has fired, because firing writes to this stack.
 *
 * A firing thread first marks the link and then gives a permit or broadcasts. A sleeper that checks the
 * mark before it sleeps therefore misses no wake-up. The end of the time limit needs no other thread: the
 * sleep itself has a timeout. */

typedef struct job_counter_wait {
    quern_counter *const *counters; /* [count] */
    quern__link *links;             /* [count] */
    uint32_t count;
    /* number of links added; if it is not 0, the wait polls the links instead of the counters. add_links
     * marks the last one as fired by itself if its counter was at zero */
    uint32_t link_count;
    uint64_t until_ns; /* end of the time limit on quern__clock_ns; 0: no limit */
    bool (*is_over)(const quern__wait *wait);
    quern__node node; /* represents the waiting thread: all links of the wait refer to it */
} job_counter_wait;

/* Acquire: pairs with the release in wake_sleeper and fire_outside (job_counter.c). */
static bool has_fired(const quern__link *link)
{
    return atomic_load_explicit(&link->node, QUERN__HANDSHAKE_ACQUIRE) == NULL;
}

/* Returns the index of the first counter that was at zero, or `count` if none was. */
static uint32_t find_done(const job_counter_wait *waiting)
{
    if (waiting->link_count == 0) {
        for (uint32_t i = 0; i < waiting->count; i++)
            if (quern_counter_is_done(waiting->counters[i])) return i;
    }
    for (uint32_t i = 0; i < waiting->link_count; i++)
        if (has_fired(&waiting->links[i])) return i;
    return waiting->count;
}

static bool is_over(const quern__wait *wait)
{
    const job_counter_wait *waiting = wait->target;
    return find_done(waiting) != waiting->count ||
           (waiting->until_ns != 0 && quern__clock_ns() >= waiting->until_ns);
}

/* is_over for one counter without limit. */
static bool is_done(const quern__wait *wait)
{
    const job_counter_wait *waiting = wait->target;
    return waiting->link_count == 0 ? quern_counter_is_done(waiting->counters[0])
                                    : has_fired(&waiting->links[0]);
}

/* Adds links until one of the counters is at zero, which ends the wait. `worker` is NULL for an outside
 * thread. Relaxed: the counter's lock publishes the link; the link of a counter at zero was never
 * published. */
static void add_links(job_counter_wait *waiting, quern_jobs *jobs, quern__worker *worker)
{
    waiting->node.job.run = NULL;
    waiting->node.job.target = worker;
    waiting->node.jobs = jobs;
    for (uint32_t i = 0; i < waiting->count; i++) {
        quern__link *link = &waiting->links[i];
        atomic_store_explicit(&link->node, &waiting->node, memory_order_relaxed);
        waiting->link_count = i + 1;
        if (quern__counter_add_link(waiting->counters[i], link, worker)) continue;
        atomic_store_explicit(&link->node, NULL, memory_order_relaxed);
        return;
    }
}

static void announce(const quern__wait *wait, quern__worker *worker)
{
    add_links(wait->target, worker->jobs, worker);
}

/* Waits until a link has fired that another thread has taken out of its list. */
static void await_fired(quern_jobs *jobs, quern__worker *worker, const quern__link *link)
{
    if (worker != NULL) {
        while (!has_fired(link))
            quern__worker_park(worker, 0);
        return;
    }
    quern__mutex_lock(&jobs->outside_mutex);
    while (!has_fired(link))
        quern__condition_wait(&jobs->outside_condition, &jobs->outside_mutex, 0);
    quern__mutex_unlock(&jobs->outside_mutex);
}

/* Removes the links that have not fired. Afterwards no other thread has a pointer to any of the links. */
static void remove_links(const job_counter_wait *waiting, quern_jobs *jobs, quern__worker *worker)
{
    for (uint32_t i = 0; i < waiting->link_count; i++) {
        quern__link *link = &waiting->links[i];
        if (has_fired(link) || quern__counter_remove_link(waiting->counters[i], link, worker)) continue;
        await_fired(jobs, worker, link);
    }
}

static quern__wait make_wait(job_counter_wait *waiting)
{
    return (quern__wait){.scope = waiting->counters[0],
                         .more_scopes = waiting->counters + 1,
                         .more_count = waiting->count - 1,
                         .target = waiting,
                         .until_ns = waiting->until_ns,
                         .is_done = waiting->is_over};
}

static void wait_inside(quern__worker *worker, job_counter_wait *waiting)
{
    quern__wait wait = make_wait(waiting);
    wait.announce = announce;
    quern__worker_wait(worker, &wait);
    remove_links(waiting, worker->jobs, worker);
}

/* Sleeps until the wait is over or an external slot is free. Links fire under the mutex. A thread that
 * frees a slot broadcasts if it sees outside_waiter_count above 0: the increment here and the check for a
 * free slot are a handshake that pairs with quern__jobs_leave. The decrement is relaxed: one broadcast too
 * many does no harm. */
static void sleep_outside(quern_jobs *jobs, const quern__wait *wait)
{
    atomic_fetch_add_explicit(&jobs->outside_waiter_count, 1, QUERN__HANDSHAKE_RELEASE);
    /* As in quern__jobs_sleeper_fence, but independent of the pool's kind of fence, which a resize may change
     * at any time while the caller is outside. */
    if (quern__can_fence_all_threads())
        quern__fence_all_threads();
    else
        quern__handshake_fence();
    quern__mutex_lock(&jobs->outside_mutex);
    while (!wait->is_done(wait) && !quern__jobs_has_free_external_slot(jobs))
        quern__condition_wait(&jobs->outside_condition, &jobs->outside_mutex, wait->until_ns);
    quern__mutex_unlock(&jobs->outside_mutex);
    atomic_fetch_sub_explicit(&jobs->outside_waiter_count, 1, memory_order_relaxed);
}

/* Waits while all external slots are in use: sleeps outside of the pool, or continues as a worker as soon
 * as a slot is free. */
static void wait_outside(quern_jobs *jobs, job_counter_wait *waiting)
{
    quern__wait wait = make_wait(waiting);
    add_links(waiting, jobs, NULL);
    while (!wait.is_done(&wait)) {
        quern__worker *worker = quern__jobs_try_enter(jobs);
        if (worker != NULL) {
            quern__worker_wait(worker, &wait);
            quern__jobs_leave(jobs);
        } else {
            sleep_outside(jobs, &wait);
        }
    }
    remove_links(waiting, jobs, NULL);
    /* The thread that fired a link holds this mutex until it no longer accesses the link; see fire_outside.
     * */
    quern__mutex_lock(&jobs->outside_mutex);
    quern__mutex_unlock(&jobs->outside_mutex);
}

static quern_result wait_from_outside(quern_jobs *jobs, job_counter_wait *waiting, const char *function)
{
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    quern__worker *worker = quern__jobs_try_enter(jobs);
    if (worker != NULL) {
        wait_inside(worker, waiting);
        quern__jobs_leave(jobs);
    } else {
        wait_outside(jobs, waiting);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- the public calls */

quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter)
{
    job_counter_wait waiting;
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_wait", "counter");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker == NULL && quern_counter_is_done(counter)) return QUERN_OK;
    waiting.counters = &counter;
    waiting.links = waiting.node.links;
    waiting.count = 1;
    waiting.link_count = 0;
    waiting.until_ns = 0;
    waiting.is_over = is_done;
    if (worker == NULL) return wait_from_outside(jobs, &waiting, "quern_jobs_wait");
    wait_inside(worker, &waiting);
    return QUERN_OK;
}

/* With a limit of 0 this checks the counters once and does not wait. */
static quern_result wait_for_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                 uint64_t limit_ns, const char *function, uint32_t *out_index)
{
    quern__link links[QUERN_MAX_AFTER];
    job_counter_wait waiting;
    quern_result result = QUERN_OK;
    waiting.counters = counters;
    waiting.links = links;
    waiting.count = count;
    waiting.link_count = 0;
    waiting.until_ns = 0;
    waiting.is_over = is_over;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) quern__worker_flush_finished(worker);
    *out_index = find_done(&waiting);
    if (*out_index != count || limit_ns == 0) return QUERN_OK;
    /* No limit, which is 0, if the end is beyond the range of the clock. */
    const uint64_t now_ns = quern__clock_ns();
    waiting.until_ns = limit_ns <= UINT64_MAX - 1 - now_ns ? now_ns + limit_ns : 0;
    if (worker == NULL)
        result = wait_from_outside(jobs, &waiting, function);
    else
        wait_inside(worker, &waiting);
    *out_index = find_done(&waiting);
    return result;
}

quern_result quern_jobs_wait_for(quern_jobs *jobs, quern_counter *counter, uint64_t limit_ns,
                                 bool *out_done)
{
    uint32_t index;
    if (out_done != NULL) *out_done = false;
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait_for", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_wait_for", "counter");
    quern_result result = wait_for_any(jobs, &counter, 1, limit_ns, "quern_jobs_wait_for", &index);
    if (result == QUERN_OK && out_done != NULL) *out_done = index == 0;
    return result;
}

quern_result quern_jobs_wait_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                 uint64_t limit_ns, uint32_t *out_index)
{
    uint32_t index;
    if (out_index != NULL) *out_index = count;
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait_any", "jobs");
    if (counters == NULL) return quern__fail_null("quern_jobs_wait_any", "counters");
    if (count == 0 || count > QUERN_MAX_AFTER)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_wait_any: count is %u; pass 1 to %d counters (QUERN_MAX_AFTER)",
                           (unsigned)count, QUERN_MAX_AFTER);
    for (uint32_t i = 0; i < count; i++)
        if (counters[i] == NULL)
            return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_jobs_wait_any: counters[%u] is NULL; count is %u", (unsigned)i,
                               (unsigned)count);
    quern_result result = wait_for_any(jobs, counters, count, limit_ns, "quern_jobs_wait_any", &index);
    if (result == QUERN_OK && out_index != NULL) *out_index = index;
    return result;
}

/* -------------------------------------------------------------------------------------- waits of workers */

/* Waiting.
 *
 * A worker that waits inside a job keeps that job on its stack. If it ran any other job meanwhile, that
 * job could wait as well, and so on: stacks would grow without bound, and a short wait could take as long
 * as a long job. So the waiting worker runs only jobs that bring its wait closer to its end, in this order:
 *
 *     1. jobs with the awaited scope in its own deque, wherever they are in it, newest first;
 *     2. jobs with the awaited scope in a queue, or at the old end of another deque;
 *     3. jobs submitted by jobs of that scope: a worker that runs a job publishes the job's scope
 *        (served_scope) and the bottom of its deque at the begin (served_from_index); the jobs from that
 *        index on belong to the scope;
 *     4. the jobs that such a worker waits for, found by the same rules;
 *     5. the other jobs in its own deque from `floor` on, which the current job has pushed, or an external
 *        thread outside of jobs.
 *
 *     A waits for S      B serves S, waits for T      C serves T: |older|part of T, so of S|
 *                                                              served_from_index
 *
 * Thieves steal the oldest job first. So once the jobs that the waiting job pushed were stolen, everything
 * older in its deque was stolen before. Therefore one pair of words per worker, for the job that it
 * removed last, is enough.
 *
 * A wait for any of several scopes applies the rules to each of them. It ends when one is done or when its
 * time is up. A job that the worker runs meanwhile is not interrupted.
 *
 * The pair may change while another worker reads it. Then at worst the reader steals a job that does not
 * belong to S, which runs here instead of elsewhere: a matter of time, not of correctness. A closed job
 * (deque.h) is different, whatever those words say: only a worker that waits for its graph takes it, or,
 * where any job is allowed, a worker without a closed job on its stack (closed_depth).
 *
 * Progress: at least one worker always continues, unless it waits for a job below it on a stack: a waiting job
 * continues only when the job that its wait runs has ended. So a job must not wait, directly or through other
 * waits, for a job that began earlier and waits itself. A wait for the job's own children, or for jobs that
 * begin later, never does. A worker sleeps in a wait only while another worker of
 * the pool is not asleep in one. The last worker does not sleep while there is any job that it may run; it
 * runs such jobs, up to a maximal depth (rescue). A wait with a time limit counts as asleep from begin to
 * end; if at its end all other workers wait, it runs such a job, too. So workers that repeat such waits
 * continue as well. Progress is not guaranteed for nodes of graphs: what a thread awaits inside a node
 * must not depend on other nodes. No other worker may run the jobs assigned to a worker (enter.c), so
 * it runs them in its waits, up to the same depth; beyond that depth, only those that it waits for. A
 * pusher that finds all workers asleep wakes one (search.c), and so does an external thread that leaves. */

enum {
    MAX_SCOPES = 8, /* most scopes that one search follows */
    /* most unrelated jobs on one stack; waits run them if no other worker is left */
    MAX_RESCUE_DEPTH = 256,
    MAX_MOVED_JOBS = 32, /* most jobs that one rescue moves to the queue to reach others */
    /* Yields of a wait before it sleeps, if the pool is oversubscribed. Sleeping at once took a tenth
     * longer. */
    OVERSUBSCRIBED_YIELDS = 4
};

/* --------------------------------------------------------------------------------------- running a job */

void quern__worker_run_own_job(quern__worker *worker, quern__job *job)
{
    int64_t floor = worker->floor;
    if (worker->done_counter != job->scope) quern__worker_flush_finished(worker);
    worker->floor = quern__deque_bottom(&worker->deque);
    worker->executed_job_count++;
    quern__worker_note_job_found(worker);
    job->run(job, worker);
    worker->floor = floor;
}

void quern__worker_run_job(quern__worker *worker, quern__job *job)
{
    /* The worker's own words: relaxed loads see its last stores. */
    const void *served_scope = atomic_load_explicit(&worker->served_scope, memory_order_relaxed);
    int64_t from = atomic_load_explicit(&worker->served_from_index, memory_order_relaxed);
    int64_t bottom = quern__deque_bottom(&worker->deque);
    atomic_store_explicit(&worker->served_from_index, bottom, memory_order_relaxed);
    /* Release: pairs with the acquire in steal_related_from. A thread that sees the scope sees its
     * begin. */
    atomic_store_explicit(&worker->served_scope, job->scope, memory_order_release);
    quern__worker_run_own_job(worker, job);
    atomic_store_explicit(&worker->served_scope, served_scope, memory_order_relaxed);
    atomic_store_explicit(&worker->served_from_index, from, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------- finding a part */

static bool has_own(const quern__worker *worker)
{
    return quern__deque_bottom(&worker->deque) > worker->floor && !quern__deque_looks_empty(&worker->deque);
}

/* Returns the scope of the newest job in its own deque. Relaxed: the worker wrote the scope itself. */
static const void *newest_scope(quern__worker *worker)
{
    const quern__deque_slot *newest =
        quern__deque_slot_of(&worker->deque, quern__deque_bottom(&worker->deque) - 1);
    return atomic_load_explicit(&newest->scope, memory_order_relaxed);
}

static bool pop_own(quern__worker *worker, quern__job *out_job)
{
    quern__deque_slot *slot = quern__deque_pop(&worker->deque);
    if (slot != NULL) quern__deque_read_slot(slot, out_job);
    return slot != NULL;
}

static void run_placeholder(quern__job *job, quern__worker *worker)
{
    (void)job;
    (void)worker;
}

static const void *scope_of(const quern__wait *wait, uint32_t index)
{
    return index == 0 ? wait->scope : wait->more_scopes[index - 1];
}

static bool is_awaited(const quern__wait *wait, const void *scope)
{
    if (QUERN__LIKELY(quern__scope_matches(scope, wait->scope))) return true;
    for (uint32_t i = 0; i < wait->more_count; i++)
        if (quern__scope_matches(scope, wait->more_scopes[i])) return true;
    return false;
}

/* What a wait has tried since it began. */
typedef struct attempts {
    uint32_t look;      /* unsuccessful tries since the last successful one */
    uint32_t own_count; /* own jobs run that the wait does not need, as far as it can tell */
    /* Jobs in the own deque with indices from seen_from up to and excluding seen_to are not awaited. seen_to is
     * not above the bottom: an awaited job that is popped is not among them. */
    int64_t seen_from;
    int64_t seen_to;
} attempts;

/* Finds the newest awaited job in the worker's own deque that may run inside a wait for `allowed`. Returns its index, or
 * -1 if there is none. Jobs that were compared before are skipped. Relaxed: the worker wrote the scopes itself; if a
 * job was stolen meanwhile, taking it fails. */
static int64_t find_own_awaited(quern__worker *worker, const quern__wait *wait, const void *allowed,
                                attempts *tried)
{
    quern__deque *deque = &worker->deque;
    const int64_t bottom = quern__deque_bottom(deque);
    const int64_t top = atomic_load_explicit(&deque->top, memory_order_relaxed);
    int64_t index = bottom - 1;
    for (; index >= top; index--) {
        if (index < tried->seen_to && index >= tried->seen_from) {
            index = tried->seen_from;
            continue;
        }
        const quern__deque_slot *slot = quern__deque_slot_of(deque, index);
        const void *scope = atomic_load_explicit(&slot->scope, memory_order_relaxed);
        if (is_awaited(wait, scope) && quern__scope_allows(scope, allowed)) break;
    }
    tried->seen_from = index + 1;
    tried->seen_to = bottom;
    return index >= top ? index : -1;
}

/* Removes an awaited job from anywhere in the worker's own deque. A placeholder replaces it, so that enclosing
 * jobs find the deque as deep as they left it; otherwise their `floor` would be above what they push next.
 * While it was removed, a worker that fell asleep may have overlooked the newer jobs. */
static QUERN__NO_INLINE bool take_own_awaited(quern__worker *worker, const quern__wait *wait,
                                              const void *allowed, attempts *tried, int64_t *out_index,
                                              quern__job *out_job)
{
    *out_index = find_own_awaited(worker, wait, allowed, tried);
    if (*out_index < 0) return false;
    const bool is_taken =
        quern__deque_take_at(&worker->deque, *out_index, &(quern__job){.run = run_placeholder}, out_job);
    quern__jobs_notify(worker->jobs, worker, NULL);
    return is_taken;
}

typedef struct scopes {
    const void *items[MAX_SCOPES];
    uint32_t count;
} scopes;

static void add_scope(scopes *set, const void *scope)
{
    if (scope == NULL || set->count == MAX_SCOPES) return;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->items[i] == scope) return;
    set->items[set->count++] = scope;
}

/* Steals a job that belongs to the scope from the victim, and adds the scopes that the victim waits for to
 * `set`. Acquire: pairs with the release in quern__worker_run_job. The other loads are relaxed: they are
 * hints and may change meanwhile. */
static bool steal_related_from(quern__worker *victim, const void *scope, scopes *set, const void *awaited,
                               quern__job *out_job)
{
    int64_t from = INT64_MAX;
    if (quern__scope_matches(atomic_load_explicit(&victim->served_scope, memory_order_acquire), scope)) {
        from = atomic_load_explicit(&victim->served_from_index, memory_order_relaxed);
        add_scope(set, atomic_load_explicit(&victim->awaited_scope, memory_order_relaxed));
        uint32_t count = atomic_load_explicit(&victim->more_awaited_count, memory_order_relaxed);
        for (uint32_t i = 0; i < count; i++)
            add_scope(set, atomic_load_explicit(&victim->more_awaited_scopes[i], memory_order_relaxed));
    }
    return !quern__deque_looks_empty(&victim->deque) &&
           quern__deque_steal_for(&victim->deque, scope, from, awaited, out_job);
}

/* Takes a job of a scope that another worker seems to wait for. That worker may have published the scope after it
 * stopped to serve the awaited one, so a closed job is taken only as `awaited` allows it. */
static QUERN__NO_INLINE bool take_own_of_scope(quern__worker *worker, const void *scope,
                                               const void *awaited, quern__job *out_job)
{
    const quern__wait wait = {.scope = scope};
    attempts tried = {0};
    int64_t index;
    return take_own_awaited(worker, &wait, quern__worker_awaited_scope(worker, awaited), &tried, &index,
                            out_job);
}

/* The own deque has no job with the scope `awaited`, but may have some that another worker waits for. */
static bool steal_related(quern__worker *worker, const void *awaited, quern__job *out_job)
{
    const quern_jobs *jobs = worker->jobs;
    scopes set = {.items = {awaited}, .count = 1};
    for (uint32_t i = 0; i < set.count; i++) {
        if (i != 0 && take_own_of_scope(worker, set.items[i], awaited, out_job)) return true;
        for (uint32_t index = 0; index < jobs->worker_count; index++)
            if (index != worker->index &&
                steal_related_from(&jobs->workers[index], set.items[i], &set, awaited, out_job))
                return true;
    }
    return false;
}

static bool take_from_queues(quern_jobs *jobs, const quern__wait *wait, quern__job *out_job)
{
    for (uint32_t i = 0; i <= wait->more_count; i++)
        for (uint32_t index = QUERN__QUEUE_HIGH; index <= QUERN__QUEUE_LOW; index++)
            if (quern__queues_take(&jobs->queues, (quern__queue_index)index, scope_of(wait, i), out_job))
                return true;
    return false;
}

/* Removes a caller-only job, if the worker is external. There rarely is any. */
static bool take_caller_only(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    quern__queues *queues = &worker->jobs->queues;
    if (QUERN__LIKELY(quern__queue_looks_empty(queues, QUERN__QUEUE_CALLER))) return false;
    for (uint32_t i = 0; i <= wait->more_count && quern__worker_is_external(worker); i++)
        if (quern__queues_take_allowed(queues, QUERN__QUEUE_CALLER,
                                       quern__worker_awaited_scope(worker, scope_of(wait, i)), out_job))
            return true;
    return false;
}

static bool take_from_others(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (take_caller_only(worker, wait, out_job)) return true;
    for (uint32_t i = 0; i <= wait->more_count; i++)
        if (steal_related(worker, scope_of(wait, i), out_job)) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------- waiting */

static bool has_limit(const quern__wait *wait)
{
    return wait != NULL && wait->until_ns != 0;
}

/* seq_cst: pairs with the load in quern__jobs_all_are_blocked. */
static void count_blocked(quern_jobs *jobs, bool is_blocked)
{
    if (is_blocked)
        atomic_fetch_add_explicit(&jobs->blocked_count, 1, memory_order_seq_cst);
    else
        atomic_fetch_sub_explicit(&jobs->blocked_count, 1, memory_order_seq_cst);
}

/* Publishes the scopes that the worker waits for; NULL: none. Relaxed: other workers read them as hints. In
 * a wait with a time limit the worker counts as blocked from begin to end, because it may never sleep. */
static void publish_scopes(quern__worker *worker, const quern__wait *wait)
{
    uint32_t more_count = wait != NULL ? wait->more_count : 0;
    if (QUERN__UNLIKELY(has_limit(worker->wait) != has_limit(wait)))
        count_blocked(worker->jobs, has_limit(wait));
    worker->wait = wait;
    atomic_store_explicit(&worker->awaited_scope, wait != NULL ? wait->scope : NULL, memory_order_relaxed);
    if (QUERN__LIKELY(
            (more_count | atomic_load_explicit(&worker->more_awaited_count, memory_order_relaxed)) == 0))
        return;
    for (uint32_t i = 0; i < more_count; i++)
        atomic_store_explicit(&worker->more_awaited_scopes[i], wait->more_scopes[i], memory_order_relaxed);
    atomic_store_explicit(&worker->more_awaited_count, more_count, memory_order_relaxed);
}

/* Runs a job inside a wait. The wait's scopes are not published meanwhile, because the job may wait for
 * others. */
static void run_meanwhile(quern__worker *worker, quern__job *job)
{
    const quern__wait *wait = worker->wait;
    publish_scopes(worker, NULL);
    quern__worker_run_job(worker, job);
    publish_scopes(worker, wait);
}

/* Subtracts finished jobs from their counter before this worker does something else. Returns whether there
 * were any. */
static bool flush_some(quern__worker *worker)
{
    bool has_some = worker->done_count != 0;
    quern__worker_flush_finished(worker);
    return has_some;
}

/* Subtracts finished jobs from their counter, and runs a job that this has submitted, unless the wait is over. Returns
 * whether there were any. */
static bool flush_and_continue(quern__worker *worker, const quern__wait *wait)
{
    quern__job job;
    if (worker->done_count == 0) return false;
    if (!quern__worker_flush_and_claim(worker, &job)) return true;
    if (!wait->is_done(wait) || !quern__worker_unclaim(worker, &job))
        quern__worker_run_own_job(worker, &job);
    return true;
}

/* Removes a job that this worker alone may run, so that such jobs do not wait until this wait ends. */
static bool take_assigned(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (QUERN__LIKELY(quern__queue_is_empty(&worker->assigned))) return false;
    if (worker->rescue_depth < MAX_RESCUE_DEPTH) return quern__worker_take_assigned(worker, NULL, out_job);
    for (uint32_t i = 0; i <= wait->more_count; i++)
        if (quern__worker_take_assigned(worker, scope_of(wait, i), out_job)) return true;
    return false;
}

/* Runs a job that the wait does not depend on. */
static void run_unrelated(quern__worker *worker, quern__job *job)
{
    worker->rescue_depth++;
    run_meanwhile(worker, job);
    worker->rescue_depth--;
}

/* Runs a job of its own deque that the wait does not need, as far as the worker can tell. Finished jobs are
 * subtracted before, because the wait may be over. */
static QUERN__NO_INLINE bool run_unneeded_own(quern__worker *worker, attempts *tried)
{
    quern__job job;
    if (newest_scope(worker) != worker->done_counter && flush_some(worker)) return true;
    if (!pop_own(worker, &job)) return false;
    const int64_t bottom = quern__deque_bottom(&worker->deque);
    if (tried->seen_to > bottom) tried->seen_to = bottom;
    tried->own_count++;
    quern__worker_run_own_job(worker, &job);
    return true;
}

/* Runs an awaited job that is not the newest one of its own deque, or that another worker or a queue has.
 * Queues are searched less often, because that locks a mutex. */
static bool run_awaited(quern__worker *worker, const quern__wait *wait, attempts *tried, bool owns_jobs)
{
    quern__job job;
    int64_t own_index;
    if (!quern__deque_looks_empty(&worker->deque) &&
        take_own_awaited(worker, wait, QUERN__ANY_SCOPE, tried, &own_index, &job)) {
        if (own_index >= worker->floor)
            quern__worker_run_own_job(worker, &job);
        else
            run_meanwhile(worker, &job);
        return true;
    }
    const uint32_t turn = owns_jobs ? tried->own_count : tried->look;
    const bool is_found =
        take_from_others(worker, wait, &job) ||
        (turn % QUERN__SCANS_PER_CLOCK_READ == 0 && take_from_queues(worker->jobs, wait, &job));
    if (is_found) run_meanwhile(worker, &job);
    return is_found;
}

/* Does one piece of work that brings the wait closer to its end. Returns false if there is none. */
static bool work_on(quern__worker *worker, const quern__wait *wait, attempts *tried)
{
    quern__job job;
    if (wait->more_count != 0 && flush_some(worker)) return true;
    const bool owns_jobs = has_own(worker);
    if (owns_jobs && is_awaited(wait, newest_scope(worker)) && pop_own(worker, &job)) {
        quern__worker_run_own_job(worker, &job);
        return true;
    }
    if (wait->help != NULL) {
        quern__worker_flush_finished(worker);
        if (wait->help(wait, worker)) return true;
    }
    if (take_assigned(worker, wait, &job)) {
        run_unrelated(worker, &job);
        return true;
    }
    if (run_awaited(worker, wait, tried, owns_jobs)) return true;
    if (owns_jobs && run_unneeded_own(worker, tried)) return true;
    return flush_and_continue(worker, wait);
}

/* Removes any job that may run inside this wait and is not hidden behind other jobs. From the queues it
 * removes the newest job, because the wait most likely depends on that one: older jobs would wait in turn,
 * and the stack would grow to its limit. From deques, its own one included, it steals the oldest job, like
 * a thief; see take_own_awaited. */
static bool take_allowed(quern__worker *worker, const void *awaited, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    if (quern__queues_take_newest(&jobs->queues, awaited, out_job)) return true;
    if (has_own(worker) && pop_own(worker, out_job)) return true;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (quern__deque_steal_for(&jobs->workers[index].deque, NULL, INT64_MIN, awaited, out_job))
            return true;
    return false;
}

/* Moves the oldest job of some deque to the queue, where every worker finds it: the job may not run here
 * and hides others. Returns false if there is no job or no memory. */
static bool move_oldest_to_queue(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    quern__node *node = quern__queues_take_node(&jobs->queues);
    if (node == NULL) return false;
    bool is_found = false;
    for (uint32_t index = 0; index < jobs->worker_count && !is_found; index++)
        is_found = quern__deque_steal(&jobs->workers[index].deque, &node->job);
    if (!is_found) {
        quern__queues_return_node(&jobs->queues, node);
        return false;
    }
    node->queue = QUERN__QUEUE_NORMAL;
    node->jobs = jobs;
    const void *scope = node->job.scope;
    quern__queues_push(&jobs->queues, node);
    quern__jobs_notify(jobs, NULL, scope);
    return true;
}

/* Finds any job that may run inside this wait, also one that is hidden by jobs that may not. */
static bool find_any(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    for (uint32_t count = 0;; count++) {
        for (uint32_t i = 0; i <= wait->more_count; i++)
            if (take_allowed(worker, quern__worker_awaited_scope(worker, scope_of(wait, i)), out_job))
                return true;
        if (count == MAX_MOVED_JOBS || !move_oldest_to_queue(worker)) return false;
    }
}

/* Finds a job that the wait does not depend on, if no other worker is awake. If there are only jobs that
 * may not run here, notifies a worker that may run them. */
static bool rescue(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (worker->rescue_depth == MAX_RESCUE_DEPTH || !quern__jobs_all_are_blocked(worker->jobs))
        return false;
    if (find_any(worker, wait, out_job)) return true;
    if (quern__worker_has_closed_job(worker) && quern__jobs_has_any_job(worker->jobs))
        quern__jobs_notify(worker->jobs, NULL, QUERN__ANY_SCOPE);
    return false;
}

/* Sleeps until the wait may be over or the worker has a permit; see the head of search.c. Returns whether
 * there is a job to run instead. The counts pair with the reads in quern__jobs_notify_sleepers,
 * quern__jobs_all_are_blocked and quern__jobs_leave. The decrement of sleeper_count is relaxed: one needless check does
 * no harm. */
static bool sleep_in_wait(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    quern__worker_mask_set(&jobs->blocked, worker->index);
    if (!has_limit(wait)) count_blocked(jobs, true);
    atomic_fetch_add_explicit(&jobs->sleeper_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs); /* between the announcement and the last search */
    bool found = !wait->is_done(wait) &&
                 (take_assigned(worker, wait, out_job) || take_from_others(worker, wait, out_job) ||
                  take_from_queues(worker->jobs, wait, out_job) || rescue(worker, wait, out_job));
    if (!found && !wait->is_done(wait)) quern__worker_park(worker, wait->until_ns);
    quern__worker_mask_clear(&jobs->blocked, worker->index);
    if (!has_limit(wait)) count_blocked(jobs, false);
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    return found;
}

/* Returns whether the worker should sleep now. yield_count: yields since its search became unsuccessful. A
 * wait with a time limit spins for at most half of its remaining time, and leaves the processor to other
 * threads afterwards. */
static bool has_spun_enough(quern__worker *worker, const quern__wait *wait, uint64_t *start_ns,
                            uint32_t *yield_count)
{
    uint64_t now_ns = quern__clock_ns();
    if (*start_ns == 0) {
        *start_ns = now_ns;
        *yield_count = 0;
    }
    quern__worker_begin_idle_time(worker, *start_ns);
    uint64_t spun_ns = now_ns - *start_ns;
    if (wait->until_ns != 0 && spun_ns + now_ns >= wait->until_ns) return true;
    if (quern__jobs_is_oversubscribed(worker->jobs))
        return ++*yield_count > OVERSUBSCRIBED_YIELDS || !quern__jobs_yield(worker->jobs);
    return spun_ns >= worker->jobs->spin_ns || quern__worker_should_stop_spinning(worker);
}

static void wait_until_done(quern__worker *worker, const quern__wait *wait)
{
    quern__job job;
    bool is_announced = wait->announce == NULL;
    uint64_t start_ns = 0;
    uint32_t yield_count = 0;
    attempts tried = {0};
    while (!wait->is_done(wait)) {
        if (work_on(worker, wait, &tried)) {
            tried.look = 0;
            start_ns = 0;
            continue;
        }
        quern__relax();
        if (++tried.look % QUERN__SCANS_PER_CLOCK_READ != 0 ||
            !has_spun_enough(worker, wait, &start_ns, &yield_count))
            continue;
        if (!is_announced) wait->announce(wait, worker);
        is_announced = true;
        if (sleep_in_wait(worker, wait, &job)) run_unrelated(worker, &job);
        tried = (attempts){0}; /* a rescue may have popped jobs */
        start_ns = 0;
    }
    /* Run an unrelated job at the end of a wait with a time limit, which may have been too short for a sleep.
     * Otherwise all workers could repeat such waits for ever while no worker runs the jobs that they do not
     * depend on. */
    if (has_limit(wait) && quern__clock_ns() >= wait->until_ns && rescue(worker, wait, &job))
        run_unrelated(worker, &job);
}

void quern__worker_wait(quern__worker *worker, const quern__wait *wait)
{
    const quern__wait *outer = worker->wait;
    quern__worker_flush_finished(worker);
    publish_scopes(worker, wait);
    wait_until_done(worker, wait);
    quern__worker_note_job_found(worker);
    publish_scopes(worker, outer);
    quern__worker_flush_finished(worker);
}
