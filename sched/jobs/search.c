/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* How workers find jobs, sleep and wake.
 *
 * A worker without a job searches, counted in searching_count: it spins for a while, then sleeps. A thread
 * that pushes a job wakes at most one sleeper, and none while a worker searches, because waking costs the
 * waker a system call of several microseconds.
 *
 *     pusher (push, notify)              worker (search, sleep)
 *     bottom = b + 1                     searching_count -= 1
 *     fence A                            idle |= me, sleeper_count += 1
 *     read sleeper_count; if not 0:      fence B
 *         fence C                        read all deques and queues; sleep if there are no jobs
 *         read searching_count, idle
 *         wake one if none and some
 *
 * No job is forgotten while all workers sleep. One of the fences A and B is first. If A is, the worker
 * sees the job and does not sleep. If B is, the pusher sees a sleeper, and by the same argument its reads
 * of searching_count and idle are recent enough: it wakes this worker or another one.
 *
 * Each push executes fence A, while fence B is rare and delays no work. So if the system supports it
 * (Linux: membarrier), the sleeper executes a fence on every thread of the process at B, and A only orders
 * the compiler. Workers spin before B so that B is rare. A pool that does not spin has a real fence at A.
 *
 * No job is forgotten while there are sleepers and only the pusher is awake. A searcher that finds a job
 * stops searching. If it was the last searcher, it reads all deques and queues again (fence, all jobs) and
 * wakes a worker if it sees a job. A pusher that woke no worker because of this searcher pushed before
 * that read (C and this fence); a pusher that pushed after it saw no searcher. Each woken worker does the
 * same, so a burst of jobs wakes workers in a growing tree. A worker that stops sleeping always searches
 * first, whatever woke it, because it may have used up the wake-up for another job than the one that it
 * finds.
 *
 * A permit given to a worker is stored until the worker uses it (core/platform/platform.h). So wake-ups of one
 * certain worker need no protocol: at the end of the pool, at the end of its wait, or for a job assigned
 * to it. A permit left over from an earlier wait costs one needless round.
 *
 * Workers that sleep in a wait (wait.c) may not run every job. If no idle worker is left, a pusher wakes a
 * waiting worker in two cases. First, the pusher's work belongs to what that worker waits for. Second, all
 * workers wait, so that no other one could run the job. In the second case the pusher prefers a worker
 * without a closed job on its stack, because that worker may run any job. A worker that is the last to
 * fall asleep and leaves jobs does the same.
 *
 * tests/models has models of this protocol, which include this file. */

/* ----------------------------------------------------------------------------------------------- sleep */

/* Pairs with quern__worker_mask_clear. */
void quern__worker_mask_set(quern__worker_mask *mask, uint32_t index)
{
    /* Release: the bit hands over a worker of the host's threads. Acquire: see enter.c. */
    atomic_fetch_or_explicit(&mask->words[index / 64], (uint64_t)1 << (index % 64), memory_order_acq_rel);
}

/* Acquire: pairs with the release in quern__worker_mask_set. Release: for the next thread that sets the
 * bit. */
bool quern__worker_mask_clear(quern__worker_mask *mask, uint32_t index)
{
    uint64_t bit = (uint64_t)1 << (index % 64);
    return (atomic_fetch_and_explicit(&mask->words[index / 64], ~bit, memory_order_acq_rel) & bit) != 0;
}

void quern__jobs_sleeper_fence(const quern_jobs *jobs)
{
    if (jobs->uses_asymmetric_fence)
        quern__fence_all_threads();
    else
        quern__handshake_fence();
}

bool quern__jobs_has_any_job(const quern_jobs *jobs)
{
    if (!quern__queues_look_empty(&jobs->queues)) return true;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (!quern__deque_looks_empty(&jobs->workers[index].deque)) return true;
    return false;
}

/* Wakes an idle worker whose bit the caller has cleared: gives it a permit, or asks the host for a thread.
 * Relaxed: the thread that the host provides sees the incremented count, because submit orders it. */
static void start_waking(quern_jobs *jobs, uint32_t index)
{
    quern__worker *worker = &jobs->workers[index];
    if (jobs->host_threads.submit == NULL) {
        quern__worker_begin_waking(worker);
        quern__parker_give(&worker->parker);
        quern__worker_end_waking(worker);
        return;
    }
    atomic_fetch_add_explicit(&jobs->active_thread_count, 1, memory_order_relaxed);
    jobs->host_threads.submit(jobs->host_threads.user_data, quern__jobs_run_on_host_thread, worker);
}

/* Wakes one idle worker and returns true; returns false if there is none. Of several wakers, the one that
 * clears a worker's bit wakes it. The load pairs with quern__worker_mask_set of a worker that falls asleep;
 * see `idle` in the protocol above. */
static bool wake_idle(quern_jobs *jobs)
{
    for (uint32_t word = 0; word < (jobs->thread_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->idle.words[word], QUERN__HANDSHAKE_RELAXED);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + quern__lowest_bit_64(mask);
            if (!quern__worker_mask_clear(&jobs->idle, index)) continue;
            start_waking(jobs, index);
            return true;
        }
    }
    return false;
}

/* Returns whether the worker waits for one of the two scopes. Relaxed: a wrong result wakes one worker too
 * many, or leaves the job to the check of quern__jobs_all_are_blocked. */
static bool waits_for(const quern__worker *worker, const void *served_scope, const void *scope)
{
    const void *awaited = atomic_load_explicit(&worker->awaited_scope, memory_order_relaxed);
    if (awaited != NULL &&
        (quern__scope_matches(served_scope, awaited) || quern__scope_matches(scope, awaited)))
        return true;
    uint32_t more_count = atomic_load_explicit(&worker->more_awaited_count, memory_order_relaxed);
    for (uint32_t i = 0; i < more_count; i++) {
        awaited = atomic_load_explicit(&worker->more_awaited_scopes[i], memory_order_relaxed);
        if (quern__scope_matches(served_scope, awaited) || quern__scope_matches(scope, awaited))
            return true;
    }
    return false;
}

/* Workers that are asleep in a wait. */
typedef enum sleeper_kind {
    WAITS_FOR_IT, /* waits for the scope that the pusher serves, or for the job's scope */
    MAY_RUN_ALL,  /* has no closed job on its stack */
    ANY_SLEEPER
} sleeper_kind;

/* Wakes one worker of this kind that sleeps in a wait; returns false if there is none. The load pairs with
 * quern__worker_mask_set of a worker that falls asleep. Acquire: that worker wrote the members read here
 * before it set its bit. */
static bool wake_one_blocked(quern_jobs *jobs, sleeper_kind kind, const void *served_scope,
                             const void *scope)
{
    for (uint32_t word = 0; word < (jobs->worker_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->blocked.words[word], QUERN__HANDSHAKE_ACQUIRE);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + quern__lowest_bit_64(mask);
            quern__worker *worker = &jobs->workers[index];
            const bool is_of_kind = kind == WAITS_FOR_IT
                                        ? waits_for(worker, served_scope, scope)
                                        : kind == ANY_SLEEPER || !quern__worker_has_closed_job(worker);
            if (!is_of_kind) continue;
            if (!quern__worker_mask_clear(&jobs->blocked, index)) continue;
            quern__parker_give(&worker->parker);
            return true;
        }
    }
    return false;
}

/* The loads pair with the counts of searchers and sleepers; see fence C above. The load of served_scope is
 * relaxed: the worker wrote it itself. */
void quern__jobs_notify_sleepers(quern_jobs *jobs, quern__worker *worker, const void *scope)
{
    quern__handshake_fence(); /* fence C: between the push and the read of searching_count */
    if (atomic_load_explicit(&jobs->searching_count, QUERN__HANDSHAKE_RELAXED) != 0) return;
    if (wake_idle(jobs)) return;
    if (atomic_load_explicit(&jobs->blocked_count, QUERN__HANDSHAKE_RELAXED) == 0) return;
    const void *served_scope =
        worker != NULL ? atomic_load_explicit(&worker->served_scope, memory_order_relaxed) : NULL;
    /* A worker that waits for one of the scopes is woken. If there is none and all workers are blocked, one
     * that may run the job; a worker with a closed job on its stack may not run another closed job (deque.h). */
    if (wake_one_blocked(jobs, WAITS_FOR_IT, served_scope, scope) || !quern__jobs_all_are_blocked(jobs))
        return;
    if (!wake_one_blocked(jobs, MAY_RUN_ALL, served_scope, scope) && !quern__scope_is_closed(scope))
        wake_one_blocked(jobs, ANY_SLEEPER, served_scope, scope);
}

/* A worker that sleeps in a wait has its bit in another mask, and needs only the permit. */
void quern__worker_wake(quern__worker *worker)
{
    if (quern__worker_mask_clear(&worker->jobs->idle, worker->index))
        start_waking(worker->jobs, worker->index);
    else
        quern__parker_give(&worker->parker);
}

/* Wakes all idle workers. Each mask word is read once, so that workers that fall asleep again are not woken
 * again. Relaxed: the word is a hint; quern__worker_mask_clear decides. */
void quern_jobs_wake(quern_jobs *jobs)
{
    if (jobs == NULL || !quern__jobs_begin_visit(jobs)) return;
    for (uint32_t word = 0; word < (jobs->thread_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->idle.words[word], memory_order_relaxed);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + quern__lowest_bit_64(mask);
            if (quern__worker_mask_clear(&jobs->idle, index)) start_waking(jobs, index);
        }
    }
    quern__jobs_end_visit(jobs);
}

/* Setting the bit and incrementing the count pair with the reads in notify; see fence B above. The
 * decrement is relaxed: one needless check for sleepers does no harm. */
void quern__worker_sleep(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    quern__worker_mask_set(&jobs->idle, worker->index);
    atomic_fetch_add_explicit(&jobs->sleeper_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs); /* fence B: between the announcement and the last search */
    if (!quern__jobs_has_any_job(jobs) && quern__queue_is_empty(&worker->assigned)) {
        quern__worker_prepare_sleep(worker);
        quern__worker_park(worker, 0);
        quern__worker_leave_shared_processor(worker);
    }
    /* A waker has cleared the bit already, unless the permit was given for another reason. */
    quern__worker_mask_clear(&jobs->idle, worker->index);
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    worker->has_slept = true;
}

/* ---------------------------------------------------------------------------------------------- search */

/* Visits each other deque once. Checks a deque before stealing, so that spinning only reads. */
static bool steal_any(quern__worker *worker, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    worker->random = worker->random * 1664525u + 1013904223u;
    uint32_t victim = (worker->random >> 16) % jobs->worker_count;
    for (uint32_t turn = 0; turn < jobs->worker_count; turn++) {
        quern__deque *deque = &jobs->workers[victim].deque;
        if (victim != worker->index && !quern__deque_looks_empty(deque) &&
            quern__deque_steal(deque, out_job))
            return true;
        if (++victim == jobs->worker_count) victim = 0;
    }
    return false;
}

static bool pop_own(quern__worker *worker, quern__job *out_job)
{
    if (quern__deque_looks_empty(&worker->deque)) return false;
    quern__deque_slot *slot = quern__deque_pop(&worker->deque);
    if (slot != NULL) quern__deque_read_slot(slot, out_job);
    return slot != NULL;
}

static bool take_queued(quern__worker *worker, quern__queue_index index, quern__job *out_job)
{
    return quern__queues_take(&worker->jobs->queues, index, NULL, out_job);
}

static bool search_others(quern__worker *worker, quern__job *out_job)
{
    return take_queued(worker, QUERN__QUEUE_HIGH, out_job) || steal_any(worker, out_job) ||
           take_queued(worker, QUERN__QUEUE_NORMAL, out_job);
}

static bool search_everywhere(quern__worker *worker, quern__job *out_job)
{
    return search_others(worker, out_job) || take_queued(worker, QUERN__QUEUE_LOW, out_job);
}

bool quern__worker_try_take_job(quern__worker *worker, quern__job *out_job)
{
    return quern__worker_take_assigned(worker, NULL, out_job) ||
           take_queued(worker, QUERN__QUEUE_HIGH, out_job) || pop_own(worker, out_job) ||
           search_everywhere(worker, out_job);
}

bool quern__worker_peek_job(const quern__worker *worker, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    quern__queues *queues = &jobs->queues;
    if (quern__queues_peek(queues, &worker->assigned, out_job) ||
        quern__queues_peek(queues, &queues->queues[QUERN__QUEUE_HIGH], out_job))
        return true;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (quern__deque_peek(&jobs->workers[index].deque, out_job)) return true;
    return quern__queues_peek(queues, &queues->queues[QUERN__QUEUE_NORMAL], out_job) ||
           quern__queues_peek(queues, &queues->queues[QUERN__QUEUE_LOW], out_job);
}

static bool spin(quern__worker *worker, uint64_t start_ns, quern__job *out_job)
{
    uint64_t spin_ns = worker->jobs->spin_ns;
    do {
        for (uint32_t look = 0; look < QUERN__SCANS_PER_CLOCK_READ; look++) {
            if (quern__worker_take_assigned(worker, NULL, out_job) || search_everywhere(worker, out_job))
                return true;
            if (quern__parker_has_permit(&worker->parker)) return false;
            quern__relax();
        }
    } while (spin_ns != 0 && quern__clock_ns() - start_ns < spin_ns &&
             !quern__worker_should_stop_spinning(worker));
    return false;
}

/* Searches for a job and spins meanwhile. Decrementing searching_count pairs with its read in
 * quern__jobs_notify_sleepers. Incrementing it is relaxed: it only keeps pushers from waking workers. */
static bool search(quern__worker *worker, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    atomic_fetch_add_explicit(&jobs->searching_count, 1, memory_order_relaxed);
    uint64_t start_ns = quern__clock_ns();
    quern__worker_begin_idle_time(worker, start_ns);
    bool found = spin(worker, start_ns, out_job);
    if (found && quern__observer_is_recording(jobs->observer))
        quern__worker_report_event(worker, QUERN__JOB_EVENT_STEAL, start_ns, 1);
    /* The write of a handshake with notify. Its fence follows below, or in quern__worker_sleep. */
    uint32_t before = atomic_fetch_sub_explicit(&jobs->searching_count, 1, QUERN__HANDSHAKE_RELAXED);
    if (!found || before != 1) return found;
    quern__handshake_fence();
    if (atomic_load_explicit(&jobs->sleeper_count, QUERN__HANDSHAKE_RELAXED) != 0 &&
        quern__jobs_has_any_job(jobs))
        quern__jobs_notify_sleepers(jobs, NULL, NULL);
    return true;
}

bool quern__worker_flush_and_claim(quern__worker *worker, quern__job *out_job)
{
    worker->claim = out_job;
    quern__worker_flush_finished_slow(worker);
    const bool is_claimed = worker->claim == NULL;
    worker->claim = NULL;
    return is_claimed;
}

bool quern__worker_unclaim(quern__worker *worker, const quern__job *job)
{
    if (!quern__deque_push(&worker->deque, job, QUERN__JOB_DATA_WORDS)) return false;
    quern__jobs_notify(worker->jobs, worker, job->scope);
    return true;
}

/* Takes a queued job of high priority in place of a claimed one, if there is any. */
static QUERN__NO_INLINE void prefer_high(quern__worker *worker, quern__job *job)
{
    quern__job high;
    if (quern__deque_is_full(&worker->deque) || !take_queued(worker, QUERN__QUEUE_HIGH, &high)) return;
    (void)quern__worker_unclaim(worker, job);
    quern__job_copy(job, &high);
}

/* Subtracts finished jobs from their counter, then removes a job that this has submitted, if any. A chain of
 * continuations thus needs no deque, from which other workers could steal, and in which the owner competes with them
 * for the last job. */
static bool take_continuation(quern__worker *worker, quern__job *out_job)
{
    if (worker->done_count == 0) return false;
    if (!quern__worker_flush_and_claim(worker, out_job))
        return take_queued(worker, QUERN__QUEUE_HIGH, out_job) || pop_own(worker, out_job);
    if (QUERN__UNLIKELY(!quern__queue_looks_empty(&worker->jobs->queues, QUERN__QUEUE_HIGH)))
        prefer_high(worker, out_job);
    return true;
}

bool quern__worker_find_job(quern__worker *worker, quern__job *out_job)
{
    if (!worker->has_slept) {
        if (quern__worker_take_assigned(worker, NULL, out_job)) return true;
        if (take_queued(worker, QUERN__QUEUE_HIGH, out_job)) return true;
        if (pop_own(worker, out_job) || search_others(worker, out_job)) return true;
        if (take_continuation(worker, out_job)) return true;
        if (take_queued(worker, QUERN__QUEUE_LOW, out_job)) return true;
    }
    worker->has_slept = false;
    return search(worker, out_job);
}
