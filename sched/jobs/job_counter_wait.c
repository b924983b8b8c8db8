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

/* Like quern__jobs_sleeper_fence, but independent of the pool's kind of fence, which a resize may change at
 * any time while the caller is outside. */
static void fence_outside(void)
{
    if (quern__can_fence_all_threads())
        quern__fence_all_threads();
    else
        quern__handshake_fence();
}

/* Sleeps until the wait is over or an external slot is free. Links fire under the mutex. A thread that
 * frees a slot broadcasts if it sees outside_waiter_count above 0: the increment here and the check for a
 * free slot are a handshake that pairs with quern__jobs_leave. The decrement is relaxed: one broadcast too
 * many does no harm. */
static void sleep_outside(quern_jobs *jobs, const quern__wait *wait)
{
    atomic_fetch_add_explicit(&jobs->outside_waiter_count, 1, QUERN__HANDSHAKE_RELEASE);
    fence_outside();
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

/* Returns the end of a time limit that begins now. Returns 0, no limit, if the end is beyond the range of
 * the clock. */
static uint64_t end_of_limit(uint64_t limit_ns)
{
    uint64_t now_ns = quern__clock_ns();
    return limit_ns <= UINT64_MAX - 1 - now_ns ? now_ns + limit_ns : 0;
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
    waiting.until_ns = end_of_limit(limit_ns);
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

static quern_result check_counters(quern_counter *const *counters, uint32_t count)
{
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
    return QUERN_OK;
}

quern_result quern_jobs_wait_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                 uint64_t limit_ns, uint32_t *out_index)
{
    uint32_t index;
    if (out_index != NULL) *out_index = count;
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait_any", "jobs");
    quern_result result = check_counters(counters, count);
    if (result == QUERN_OK)
        result = wait_for_any(jobs, counters, count, limit_ns, "quern_jobs_wait_any", &index);
    if (result == QUERN_OK && out_index != NULL) *out_index = index;
    return result;
}
