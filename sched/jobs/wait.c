/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Waiting.
 *
 * A worker that waits inside a job keeps that job on its stack. If it ran just any other job meanwhile,
 * that one could wait as well and so on: stacks would grow without bound, and a wait for something short
 * could be held up by something long. So it helps with what it waits for, and nothing else:
 *
 *     1. jobs in its own deque that the current job has put there, or a guest outside of jobs (above `floor`),
 *     2. jobs whose scope is what it waits for: in a queue, its own newest, and the oldest of others,
 *     3. jobs that were submitted by work on it: when another worker takes a job, it publishes the job's
 *        scope (`serving`) and how full its deque was then (`serving_from`); everything above is a part of
 *        that scope;
 *     4. the same for what such a worker waits for in its turn, and so on.
 *
 *     A waits for S      B serves S, waits for T      C serves T: |older|part of T, so of S|
 *                                                              serving_from
 *
 * When the jobs that the waiting job made have been stolen, everything older in its deque was stolen
 * before: thieves take the oldest first. So one pair of words for a worker, for what it took last, is
 * enough.
 *
 * A wait for any of several does all this for each of them; it ends when one is done, or when its time has
 * come. A job that it has begun to help with is not interrupted.
 *
 * The pair is read while it may be changing; then at worst a job is taken that is not a part of S, and runs
 * here instead of elsewhere: a matter of time, not of correctness. But a closed job (deque.h) is taken only
 * by who waits for its graph, whatever those words say; or, where any job is taken, by a worker that has no
 * closed job on its stack (closed_depth).
 *
 * Progress: somebody always goes on. A worker sleeps in a wait only if another worker of the pool is
 * not asleep in one; the last does not sleep while there is any job at all, and takes that, to a limit
 * of depth. Waits with a limit count as asleep from beginning to end, and who finds at the end of one that
 * all others wait takes a job, too: so workers that come back to such waits again and again go on as well.
 * Only nodes of graphs have to wait for it: what somebody waits for inside a node must not depend on other
 * nodes. What is assigned to a worker (assigned.c) nobody else can run, so it does so in its waits, to the
 * same limit; beyond, only what it waits for. A pusher that finds all of them asleep wakes one (search.c),
 * and a guest that leaves looks, too. */

enum {
    MAX_SCOPES = 8,         /* how many waits one helper follows */
    MAX_RESCUE_DEPTH = 256, /* jobs on one stack that a wait was not for, and nobody else was left for */
    MAX_ASIDE = 32,         /* jobs that a rescuer looks behind */
    CROWDED_YIELDS = 4      /* of a wait, before it sleeps; sleeping at once took a tenth more of time */
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
    /* The worker's own words: relaxed loads see its last store. */
    const void *serving = atomic_load_explicit(&worker->served_scope, memory_order_relaxed);
    int64_t from = atomic_load_explicit(&worker->served_from_index, memory_order_relaxed);
    int64_t bottom = quern__deque_bottom(&worker->deque);
    atomic_store_explicit(&worker->served_from_index, bottom, memory_order_relaxed);
    /* Release pairs with the acquire in take_part: who sees the scope sees where it begins. */
    atomic_store_explicit(&worker->served_scope, job->scope, memory_order_release);
    quern__worker_run_own_job(worker, job);
    atomic_store_explicit(&worker->served_scope, serving, memory_order_relaxed);
    atomic_store_explicit(&worker->served_from_index, from, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------- finding a part */

static bool has_own(const quern__worker *worker)
{
    return quern__deque_bottom(&worker->deque) > worker->floor && !quern__deque_looks_empty(&worker->deque);
}

/* Whether its own next job is of another counter than those it has finished. Relaxed: the worker wrote the
 * scope itself. */
static bool turns_to_another(quern__worker *worker)
{
    const quern__deque_slot *next =
        quern__deque_slot_of(&worker->deque, quern__deque_bottom(&worker->deque) - 1);
    return atomic_load_explicit(&next->scope, memory_order_relaxed) != worker->done_counter;
}

static bool pop_own(quern__worker *worker, quern__job *out_job)
{
    quern__deque_slot *slot = quern__deque_pop(&worker->deque);
    if (slot != NULL) quern__deque_read_slot(slot, out_job);
    return slot != NULL;
}

static void run_filler(quern__job *job, quern__worker *worker)
{
    (void)job;
    (void)worker;
}

/* Its own newest job, put there by a job below on its stack, or by a guest before it, when that is what it
 * waits for; else its oldest. A filler takes the place of the newest, so that those jobs find the deque as
 * deep as they left it: `floor` would stand above what they push next. */
static bool take_awaited(quern__worker *worker, const void *awaited, quern__job *out_job)
{
    if (quern__deque_looks_empty(&worker->deque)) return false;
    const quern__deque_slot *newest =
        quern__deque_slot_of(&worker->deque, quern__deque_bottom(&worker->deque) - 1);
    /* Relaxed: the worker wrote it itself. */
    if (!quern__scope_matches(atomic_load_explicit(&newest->scope, memory_order_relaxed), awaited))
        return quern__deque_steal_for(&worker->deque, awaited, INT64_MAX, awaited, out_job);
    quern__deque_slot *slot = quern__deque_pop(&worker->deque);
    if (slot == NULL) return false;
    quern__deque_read_slot(slot, out_job);
    quern__deque_push(&worker->deque, &(quern__job){.run = run_filler}, 0);
    return true;
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

/* Relaxed: as above, what is read may be changing. */
static void add_more_scopes(scopes *set, const quern__worker *victim)
{
    uint32_t count = atomic_load_explicit(&victim->more_awaited_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        add_scope(set, atomic_load_explicit(&victim->more_awaited_scopes[i], memory_order_relaxed));
}

/* Acquire: pairs with the release in quern__worker_run_job. The rest is relaxed: see above, the pair is read
 * while it may be changing. */
static bool take_part(quern__worker *victim, const void *scope, scopes *set, const void *awaited,
                      quern__job *out_job)
{
    int64_t from = INT64_MAX;
    if (quern__scope_matches(atomic_load_explicit(&victim->served_scope, memory_order_acquire), scope)) {
        from = atomic_load_explicit(&victim->served_from_index, memory_order_relaxed);
        add_scope(set, atomic_load_explicit(&victim->awaited_scope, memory_order_relaxed));
        add_more_scopes(set, victim);
    }
    return !quern__deque_looks_empty(&victim->deque) &&
           quern__deque_steal_for(&victim->deque, scope, from, awaited, out_job);
}

static bool steal_part(quern__worker *worker, const void *awaited, quern__job *out_job)
{
    const quern_jobs *jobs = worker->jobs;
    scopes set = {.items = {awaited}, .count = 1};
    if (take_awaited(worker, awaited, out_job)) return true;
    for (uint32_t i = 0; i < set.count; i++)
        for (uint32_t index = 0; index < jobs->worker_count; index++)
            if (index != worker->index &&
                take_part(&jobs->workers[index], set.items[i], &set, awaited, out_job))
                return true;
    return false;
}

static const void *scope_of(const quern__wait *wait, uint32_t index)
{
    return index == 0 ? wait->scope : wait->more_scopes[index - 1];
}

static bool take_from_queues(quern_jobs *jobs, const quern__wait *wait, quern__job *out_job)
{
    for (uint32_t i = 0; i <= wait->more_count; i++)
        for (uint32_t index = QUERN__QUEUE_HIGH; index <= QUERN__QUEUE_LOW; index++)
            if (quern__queues_take(&jobs->queues, (quern__queue_index)index, scope_of(wait, i), out_job))
                return true;
    return false;
}

/* What guests alone may run; seldom is there any. */
static bool take_for_guests(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
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
    if (take_for_guests(worker, wait, out_job)) return true;
    for (uint32_t i = 0; i <= wait->more_count; i++)
        if (steal_part(worker, scope_of(wait, i), out_job)) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------- waiting */

static bool has_limit(const quern__wait *wait)
{
    return wait != NULL && wait->until_ns != 0;
}

/* seq_cst: pairs with the look in is_last_one. */
static void count_blocked(quern_jobs *jobs, bool is_blocked)
{
    if (is_blocked)
        atomic_fetch_add_explicit(&jobs->blocked_count, 1, memory_order_seq_cst);
    else
        atomic_fetch_sub_explicit(&jobs->blocked_count, 1, memory_order_seq_cst);
}

/* Tells others what the worker waits for, from now on. Relaxed: they read it as a hint. In a wait with a
 * limit it counts as blocked all the time: it may never get to sleep. */
static void tell_scopes(quern__worker *worker, const quern__wait *wait)
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

/* What the worker waits for is not what the job waits for that it runs meanwhile. */
static void run_meanwhile(quern__worker *worker, quern__job *job)
{
    const quern__wait *wait = worker->wait;
    tell_scopes(worker, NULL);
    quern__worker_run_job(worker, job);
    tell_scopes(worker, wait);
}

/* Finished jobs must not be kept back while this worker does something else. */
static bool settle_some(quern__worker *worker)
{
    bool has_some = worker->done_count != 0;
    quern__worker_flush_finished(worker);
    return has_some;
}

static bool help_with(const quern__wait *wait, quern__worker *worker)
{
    if (wait->help == NULL) return false;
    quern__worker_flush_finished(worker);
    return wait->help(wait, worker);
}

/* One that this worker alone may run, so that nobody has to wait for as long as this one waits. */
static bool take_assigned(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (QUERN__LIKELY(quern__queue_is_empty(&worker->assigned))) return false;
    if (worker->rescue_depth < MAX_RESCUE_DEPTH) return quern__worker_take_assigned(worker, NULL, out_job);
    for (uint32_t i = 0; i <= wait->more_count; i++)
        if (quern__worker_take_assigned(worker, scope_of(wait, i), out_job)) return true;
    return false;
}

/* One that the wait is not for. */
static void run_aside(quern__worker *worker, quern__job *job)
{
    worker->rescue_depth++;
    run_meanwhile(worker, job);
    worker->rescue_depth--;
}

/* Does something toward the end of the wait, if there is anything. What it has finished is taken off before
 * it turns to something else: the wait may be over. `look` counts tries in vain: those that take a lock are
 * rarer. */
static bool work_on(quern__worker *worker, const quern__wait *wait, uint32_t look)
{
    quern__job job;
    if (wait->more_count != 0 && settle_some(worker)) return true;
    if (has_own(worker)) {
        if (turns_to_another(worker) && settle_some(worker)) return true;
        if (pop_own(worker, &job)) {
            quern__worker_run_own_job(worker, &job);
            return true;
        }
    }
    if (help_with(wait, worker)) return true;
    if (take_assigned(worker, wait, &job)) {
        run_aside(worker, &job);
        return true;
    }
    bool found = take_from_others(worker, wait, &job) ||
                 (look % QUERN__SCANS_PER_CLOCK_READ == 0 && take_from_queues(worker->jobs, wait, &job));
    if (!found) return settle_some(worker);
    run_meanwhile(worker, &job);
    return true;
}

/* seq_cst: pairs with the count in sleep_in_wait and the swap in quern__jobs_try_enter, all of which have
 * one order. Participants first: one that comes in after that look sees this one blocked. */
static bool is_last_one(const quern_jobs *jobs)
{
    uint32_t participant_count = quern__jobs_participant_count(jobs);
    return atomic_load_explicit(&jobs->blocked_count, memory_order_seq_cst) >= participant_count;
}

/* Any job that may run where this worker waits, if it can be reached without taking others. The newest of
 * the queues first, as the likeliest to be what the wait comes down to: older ones would wait in their
 * turn, and the stack would grow to its limit. Out of deques the oldest, as thieves do, also out of its
 * own: see take_awaited. */
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

static bool steal_oldest(quern_jobs *jobs, quern__job *out_job)
{
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (quern__deque_steal(&jobs->workers[index].deque, out_job)) return true;
    return false;
}

/* Moves the oldest job of some deque, which may not run here and hides others, to the queue, where all can
 * take it. False when there is none, or no memory. */
static bool put_aside(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    quern__node *node = quern__queues_take_node(&jobs->queues);
    if (node == NULL) return false;
    if (!steal_oldest(jobs, &node->job)) {
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

static bool take_allowed_of_any(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    for (uint32_t i = 0; i <= wait->more_count; i++)
        if (take_allowed(worker, quern__worker_awaited_scope(worker, scope_of(wait, i)), out_job))
            return true;
    return false;
}

/* Any job that the waiting worker may run, also behind those that it may not. */
static bool find_any(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    for (uint32_t count = 0; !take_allowed_of_any(worker, wait, out_job); count++)
        if (count == MAX_ASIDE || !put_aside(worker)) return false;
    return true;
}

/* Where no worker is left that is not asleep in a wait. If there are jobs that may not run here, somebody
 * else is told who may run them. */
static bool rescue(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (worker->rescue_depth == MAX_RESCUE_DEPTH || !is_last_one(worker->jobs)) return false;
    if (find_any(worker, wait, out_job)) return true;
    if (quern__worker_has_closed_job(worker) && quern__jobs_has_any_job(worker->jobs))
        quern__jobs_notify(worker->jobs, NULL, QUERN__ANY_SCOPE);
    return false;
}

/* A last look after the announcement that this worker sleeps. */
static bool look_once_more(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    if (take_assigned(worker, wait, out_job) || take_from_others(worker, wait, out_job) ||
        take_from_queues(worker->jobs, wait, out_job))
        return true;
    return rescue(worker, wait, out_job);
}

/* Ends when something was given to this worker, too: see the head of search.c. Returns whether there is a
 * job to run instead. The counts pair with the looks in notify, is_last_one and quern__jobs_leave.
 * Counting sleepers down is relaxed: a look in vain does no harm. */
static bool sleep_in_wait(quern__worker *worker, const quern__wait *wait, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    quern__worker_mask_set(&jobs->blocked, worker->index);
    if (!has_limit(wait)) count_blocked(jobs, true);
    atomic_fetch_add_explicit(&jobs->sleeper_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs); /* between the announcement and the last look */
    bool found = !wait->is_done(wait) && look_once_more(worker, wait, out_job);
    if (!found && !wait->is_done(wait)) quern__worker_park(worker, wait->until_ns);
    quern__worker_mask_clear(&jobs->blocked, worker->index);
    if (!has_limit(wait)) count_blocked(jobs, false);
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    return found;
}

/* At the end of a wait with a limit, which may have been too short for a sleep: else all could come back to
 * such waits for ever, and nobody would take what none of them is for. */
static void rescue_in_the_end(quern__worker *worker, const quern__wait *wait)
{
    quern__job job;
    if (rescue(worker, wait, &job)) run_aside(worker, &job);
}

static void sleep_or_rescue(quern__worker *worker, const quern__wait *wait)
{
    quern__job job;
    if (sleep_in_wait(worker, wait, &job)) run_aside(worker, &job);
}

/* yield_count: since the worker has begun to look in vain. A wait with a limit spins for half of it at most,
 * and leaves the processor to others for the rest. */
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
    if (quern__jobs_is_oversubscribed(worker->jobs)) {
        if (++*yield_count > CROWDED_YIELDS) return true;
        quern__thread_yield();
        return false;
    }
    return spun_ns >= worker->jobs->spin_ns || quern__worker_should_stop_spinning(worker);
}

static void wait_until_done(quern__worker *worker, const quern__wait *wait)
{
    bool is_announced = wait->announce == NULL;
    uint64_t start_ns = 0;
    uint32_t look = 0, yield_count = 0;
    while (!wait->is_done(wait)) {
        if (work_on(worker, wait, look)) {
            look = 0;
            start_ns = 0;
            continue;
        }
        quern__relax();
        if (++look % QUERN__SCANS_PER_CLOCK_READ != 0 ||
            !has_spun_enough(worker, wait, &start_ns, &yield_count))
            continue;
        if (!is_announced) wait->announce(wait, worker);
        is_announced = true;
        sleep_or_rescue(worker, wait);
        start_ns = 0;
    }
    if (has_limit(wait) && quern__clock_ns() >= wait->until_ns) rescue_in_the_end(worker, wait);
}

void quern__worker_wait(quern__worker *worker, const quern__wait *wait)
{
    const quern__wait *outer = worker->wait;
    quern__worker_flush_finished(worker);
    tell_scopes(worker, wait);
    wait_until_done(worker, wait);
    quern__worker_note_job_found(worker);
    tell_scopes(worker, outer);
    quern__worker_flush_finished(worker);
}
