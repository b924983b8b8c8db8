/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Two workers on one processor.
 *
 * A pool with no more threads than processors spins, which is of use only if everybody has a processor to
 * himself. The system may put a worker that is woken on the processor of the one who wakes it, though
 * others are idle (virtual machines do so a lot: there an idle processor looks as if another guest had it),
 * and leaves it there for milliseconds. Then a spinning worker takes away the time that another needs, who
 * has the work it is waiting for; and a loop that two should share takes as long as on one.
 *
 * So each worker notes the processor on which it begins to do something. Who spins compares now and then:
 *
 *     somebody who has a job is on my processor       move away, or else sleep
 *     somebody was woken, and does not run yet        yield: it may be waiting for my processor
 *
 * One who is woken compares as soon as it runs, and moves away. Whoever woke it may keep it from running;
 * so after this has happened to a worker, those who wake it yield, for some time (arrivals_watched). And
 * who did all of a long loop himself, although others were awake or woken, yields as well: they may be
 * waiting behind.
 *
 * Guests can make more workers than there are processors, and then some are always kept from running:
 * nobody spins any longer (who waits yields a few times, then sleeps), and who has work that he can do
 * alone does not share it, for another worker would only take turns with those who are awake, and be
 * waited for in the end.
 *
 * A pool moves only threads of its own that are not pinned, and lets them go wherever they might go before.
 * What is noted may be old, for the system moves threads at any time. Then somebody moves, sleeps or yields
 * in vain, or spins to the end: a matter of time, not of correctness. So relaxed order will do everywhere
 * here. */

enum { WATCHED_ARRIVALS = 64 };

/* Relaxed, as all in this file. Written only when it changes, since others read it while they spin. */
void quern__worker_note_processor(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0) return;
    const uint32_t here = quern__thread_processor();
    if (atomic_load_explicit(&worker->place.processor, memory_order_relaxed) != here)
        atomic_store_explicit(&worker->place.processor, here, memory_order_relaxed);
}

static bool is_dry(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->times.dry_since_ns, memory_order_relaxed) != 0;
}

static bool is_asleep(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->times.asleep_since_ns, memory_order_relaxed) != 0;
}

/* Woken, and not yet running. */
static bool is_coming(const quern__worker *worker)
{
    return is_asleep(worker) && quern__parker_has_permit(&worker->parker);
}

/* The processors of the others that have a job. An outside thread that has left the pool counts as well: it
 * goes on with something else. */
static uint32_t list_taken(const quern__worker *worker, uint32_t *processors)
{
    const quern_jobs *jobs = worker->jobs;
    uint32_t count = 0;
    for (uint32_t index = 0; index < jobs->worker_count; index++) {
        const quern__worker *other = &jobs->workers[index];
        if (other == worker || is_dry(other)) continue;
        const uint32_t processor = atomic_load_explicit(&other->place.processor, memory_order_relaxed);
        if (processor != 0) processors[count++] = processor;
    }
    return count;
}

static bool contains(const uint32_t *processors, uint32_t count, uint32_t wanted)
{
    for (uint32_t i = 0; i < count; i++)
        if (processors[i] == wanted) return true;
    return false;
}

static void count_given_way(quern__worker *worker)
{
    atomic_fetch_add_explicit(&worker->place.given_way_count, 1, memory_order_relaxed);
}

static bool may_move(const quern__worker *worker)
{
    return !quern__worker_is_guest(worker) && worker->jobs->host_threads.submit == NULL &&
           !worker->jobs->pin_threads;
}

typedef enum place_state { PLACE_OWN, PLACE_LEFT, PLACE_SHARED } place_state;

/* Compares, and moves away from somebody who has a job. */
static place_state settle(quern__worker *worker)
{
    uint32_t processors[QUERN_MAX_THREADS];
    const uint32_t here = quern__thread_processor();
    const uint32_t count = list_taken(worker, processors);
    if (!contains(processors, count, here)) return PLACE_OWN;
    count_given_way(worker);
    return may_move(worker) && quern__thread_leave(processors, count) ? PLACE_LEFT : PLACE_SHARED;
}

static bool is_any_other(const quern__worker *worker, bool (*is_so)(const quern__worker *other))
{
    const quern_jobs *jobs = worker->jobs;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (index != worker->index && is_so(&jobs->workers[index])) return true;
    return false;
}

/* The counts may not fit together for a moment. */
int64_t quern__jobs_count_awake(const quern_jobs *jobs)
{
    uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->guests, memory_order_relaxed);
    uint32_t sleeper_count = atomic_load_explicit(&jobs->sleeper_count, memory_order_relaxed);
    return (int64_t)jobs->thread_count - 1 + __builtin_popcount(inside) - sleeper_count;
}

bool quern__worker_is_in_the_way(quern__worker *worker)
{
    if (quern__jobs_is_crowded(worker->jobs)) return true;
    if (settle(worker) == PLACE_SHARED) return true;
    if (is_any_other(worker, is_coming)) {
        count_given_way(worker);
        quern__thread_give_way();
    }
    return false;
}

/* Noted here, since a worker with a long job may have been moved since it began. */
void quern__worker_begin_waking(const quern__worker *sleeper)
{
    quern__worker *waker = quern__jobs_current_worker(sleeper->jobs);
    if (waker != NULL) quern__worker_note_processor(waker);
}

void quern__worker_end_waking(const quern__worker *sleeper)
{
    if (atomic_load_explicit(&sleeper->place.arrivals_watched, memory_order_relaxed) != 0)
        quern__thread_give_way();
}

void quern__worker_arrive(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0) return;
    uint32_t watched = atomic_load_explicit(&worker->place.arrivals_watched, memory_order_relaxed);
    if (settle(worker) != PLACE_OWN)
        watched = WATCHED_ARRIVALS;
    else if (watched != 0)
        watched--;
    else
        return;
    atomic_store_explicit(&worker->place.arrivals_watched, watched, memory_order_relaxed);
}

/* Awake without a job, or on its way: it would have come if it ran. */
static bool should_have_come(const quern__worker *worker)
{
    return is_dry(worker) && (!is_asleep(worker) || is_coming(worker));
}

void quern__worker_let_others_come(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0 || !is_any_other(worker, should_have_come)) return;
    count_given_way(worker);
    quern__thread_give_way();
}
