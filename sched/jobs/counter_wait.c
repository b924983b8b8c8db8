/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Waiting for one of several counters, with or without an end in time.
 *
 * Who waits looks at the counters, until it wants to sleep. Then it adds a link to the list of each, on its
 * stack, and from there on looks at the links alone: a link that has fired tells that its counter was at zero,
 * whatever became of that afterwards. quern_jobs_wait touches its counter no more; a wait for several, or with
 * a limit, ends with links that have not fired, and takes them out again. A link that is in no list any more
 * was taken out by somebody who is about to fire it: that is waited for, since it writes on this stack.
 *
 * Whoever fires a link marks it first, then gives a permit, or broadcasts; so who sleeps until a link has
 * fired misses neither. The end in time needs nobody: sleeps are limited by it. */

typedef struct counter_wait {
    quern_counter *const *counters; /* [count] */
    quern__link *links;             /* [count] */
    uint32_t count;
    uint32_t
        link_count;    /* added, the last of them fired at once perhaps: then links are what is looked at */
    uint64_t until_ns; /* 0: without limit */
    bool (*is_over)(const quern__wait *wait);
    quern__node node; /* whose links they are */
} counter_wait;

/* Acquire: pairs with the release in wake_sleeper and fire_outside (counter.c). */
static bool has_fired(const quern__link *link)
{
    return atomic_load_explicit(&link->node, QUERN__HANDSHAKE_ACQUIRE) == NULL;
}

/* Which of them was at zero, the first in the list; count: none. */
static uint32_t find_done(const counter_wait *waiting)
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
    const counter_wait *waiting = wait->target;
    return find_done(waiting) != waiting->count ||
           (waiting->until_ns != 0 && quern__clock_ns() >= waiting->until_ns);
}

/* The same of one counter without limit. */
static bool is_done(const quern__wait *wait)
{
    const counter_wait *waiting = wait->target;
    return waiting->link_count == 0 ? quern_counter_is_done(waiting->counters[0])
                                    : has_fired(&waiting->links[0]);
}

/* worker is NULL for a thread from outside. When a counter is at zero, the wait is over. Relaxed: the
 * counter's lock publishes the link; at zero nobody else knows it. */
static void add_links(counter_wait *waiting, quern_jobs *jobs, quern__worker *worker)
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

/* Until it has fired: somebody is about to do it. */
static void await_fired(quern_jobs *jobs, quern__worker *worker, const quern__link *link)
{
    if (worker != NULL) {
        while (!has_fired(link))
            quern__worker_park(worker, 0);
        return;
    }
    pthread_mutex_lock(&jobs->outside_mutex);
    while (!has_fired(link))
        pthread_cond_wait(&jobs->outside_condition, &jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

/* When the wait is over; afterwards nobody knows the links any more. */
static void remove_links(const counter_wait *waiting, quern_jobs *jobs, quern__worker *worker)
{
    for (uint32_t i = 0; i < waiting->link_count; i++) {
        quern__link *link = &waiting->links[i];
        if (has_fired(link) || quern__counter_remove_link(waiting->counters[i], link, worker)) continue;
        await_fired(jobs, worker, link);
    }
}

static quern__wait make_wait(counter_wait *waiting)
{
    return (quern__wait){.scope = waiting->counters[0],
                         .more_scopes = waiting->counters + 1,
                         .more_count = waiting->count - 1,
                         .target = waiting,
                         .until_ns = waiting->until_ns,
                         .is_done = waiting->is_over};
}

static void wait_inside(quern__worker *worker, counter_wait *waiting)
{
    quern__wait wait = make_wait(waiting);
    wait.announce = announce;
    quern__worker_wait(worker, &wait);
    remove_links(waiting, worker->jobs, worker);
}

/* As quern__jobs_sleeper_fence, but right for each kind of pool: while it is resized, the kind may change. */
static void fence_outside(void)
{
    if (quern__can_fence_all_threads())
        quern__fence_all_threads();
    else
        quern__handshake_fence();
}

/* Until the wait is over or there is a place. Links fire under the mutex; for the place see
 * quern__jobs_leave, which broadcasts when it sees outside_count. The count and the look for a place are a
 * handshake that pairs with quern__jobs_leave. Counting down is relaxed: one broadcast too many does no
 * harm. */
static void sleep_outside(quern_jobs *jobs, const quern__wait *wait)
{
    atomic_fetch_add_explicit(&jobs->outside_count, 1, QUERN__HANDSHAKE_RELEASE);
    fence_outside();
    pthread_mutex_lock(&jobs->outside_mutex);
    while (!wait->is_done(wait) && !quern__jobs_has_place(jobs))
        quern__condition_wait(&jobs->outside_condition, &jobs->outside_mutex, wait->until_ns);
    pthread_mutex_unlock(&jobs->outside_mutex);
    atomic_fetch_sub_explicit(&jobs->outside_count, 1, memory_order_relaxed);
}

/* All places are taken: sleeps, and takes one that becomes free. */
static void wait_outside(quern_jobs *jobs, counter_wait *waiting)
{
    quern__wait wait = make_wait(waiting);
    add_links(waiting, jobs, NULL);
    while (!wait.is_done(&wait)) {
        quern__worker *guest = quern__jobs_try_enter(jobs);
        if (guest != NULL) {
            quern__worker_wait(guest, &wait);
            quern__jobs_leave(jobs);
        } else {
            sleep_outside(jobs, &wait);
        }
    }
    remove_links(waiting, jobs, NULL);
    /* Whoever fired a link is done with it; see fire_outside. */
    pthread_mutex_lock(&jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

static quern_result wait_from_outside(quern_jobs *jobs, counter_wait *waiting, const char *function)
{
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    quern__worker *guest = quern__jobs_try_enter(jobs);
    if (guest != NULL) {
        wait_inside(guest, waiting);
        quern__jobs_leave(jobs);
    } else {
        wait_outside(jobs, waiting);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- the public calls */

quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter)
{
    counter_wait waiting;
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

/* 0: without limit, also when that lies beyond the end of the clock. */
static uint64_t end_of_limit(uint64_t limit_ns)
{
    uint64_t now_ns = quern__clock_ns();
    return limit_ns <= UINT64_MAX - 1 - now_ns ? now_ns + limit_ns : 0;
}

/* A limit of 0 is only a look. */
static quern_result wait_for_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                 uint64_t limit_ns, const char *function, uint32_t *out_index)
{
    quern__link links[QUERN_MAX_AFTER];
    counter_wait waiting;
    quern_result result = QUERN_OK;
    waiting.counters = counters;
    waiting.links = links;
    waiting.count = count;
    waiting.link_count = 0;
    waiting.until_ns = 0;
    waiting.is_over = is_over;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) quern__worker_settle(worker);
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
                           "quern_jobs_wait_any: %u counters; it takes 1 to %d (QUERN_MAX_AFTER)",
                           (unsigned)count, QUERN_MAX_AFTER);
    for (uint32_t i = 0; i < count; i++)
        if (counters[i] == NULL)
            return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_jobs_wait_any: counters[%u] is NULL; there are %u", (unsigned)i,
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
