/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Sleeping and waking.
 *
 * A worker without a job searches (it is counted in searching_count), spinning for a while; then it sleeps.
 * Whoever pushes jobs wakes at most one sleeper, and none while somebody searches, because waking costs the
 * waker a system call of several microseconds.
 *
 *     pusher (push, notify)              worker (search, sleep)
 *     bottom = b + 1                     searching_count -= 1
 *     fence A                            idle |= me, sleeper_count += 1
 *     read sleeper_count; if not 0:      fence B
 *         fence C                        look at all jobs; sleep if there are none
 *         read searching_count, idle
 *         wake one if none and some
 *
 * No job is left lying while everybody sleeps: of A and B one comes first. If it is the pusher's, the
 * worker sees the job and does not sleep. If it is the worker's, the pusher sees a sleeper, and then the
 * same holds for its look at searching_count and idle: it wakes this worker or another one.
 *
 * Fence A is on the way of every push, and B is not on the way of anything. So where the system can do it
 * (Linux: membarrier), the sleeper makes every thread of the process go through a fence at B, and A is
 * only an order for the compiler. Spinning comes before B, so that it is rare; a pool that does not spin
 * has a fence at A.
 *
 * No job is left lying while there are sleepers and only the pusher is awake: a searcher that finds a job
 * stops searching, and when it was the last, looks again (fence, all jobs) and wakes one for what it sees.
 * A pusher that woke nobody because of that searcher pushed before that look (C and this fence); one that
 * pushed after it saw no searcher. Each woken worker does the same, so a burst of jobs wakes workers in a
 * growing tree. A worker that leaves sleep always searches first, whatever woke it: it may have used up the
 * wake-up that was meant for another job than the one it finds.
 *
 * A permit given to a worker is kept until taken (sched/jobs/thread.h), so wake-ups with an addressee (the
 * pool stops, what somebody waits for is done, there is a job for this worker alone) need none of this.
 * Permits left over from an earlier wait cost one round without a result.
 *
 * Workers that sleep in a wait (wait.c) cannot take just any job. A pusher wakes one of them when no idle
 * worker is left, if its own work is a part of what that one waits for; or if all workers wait, because
 * then it is that one or nobody. In the latter case it is one that may run any job, if there is one: who has
 * a closed job on its stack might not. The same is done by one that falls asleep as the last and leaves jobs.
 *
 * tests/models has models of this, which include this file. */

/* ----------------------------------------------------------------------------------------------- sleep */

/* It pairs with quern__worker_mask_clear. */
void quern__worker_mask_set(quern__worker_mask *mask, uint32_t index)
{
    /* Release: a lent worker is handed over by its bit. Acquire: see assigned.c. */
    atomic_fetch_or_explicit(&mask->words[index / 64], (uint64_t)1 << (index % 64), memory_order_acq_rel);
}

/* Acquire: pairs with the release in quern__worker_mask_set; release, for the next one who sets it. */
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

/* Relaxed: the permit, or what the host does, carries the order. */
static void rouse(quern_jobs *jobs, uint32_t index)
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

/* Of several wakers, the one that clears the bit does it. The look pairs with quern__worker_mask_set of one that
 * falls asleep: see above, idle. */
static bool wake_idle(quern_jobs *jobs)
{
    for (uint32_t word = 0; word < (jobs->thread_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->idle.words[word], QUERN__HANDSHAKE_RELAXED);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(mask);
            if (!quern__worker_mask_clear(&jobs->idle, index)) continue;
            rouse(jobs, index);
            return true;
        }
    }
    return false;
}

/* Workers that could run a job at some time without being woken: all that are not asleep in a wait.
 * seq_cst: pairs with sleep_in_wait and quern__jobs_try_enter; see is_last_one in wait.c. */
static bool all_are_blocked(const quern_jobs *jobs)
{
    uint32_t participant_count = quern__jobs_participant_count(jobs);
    uint32_t blocked_count = atomic_load_explicit(&jobs->blocked_count, memory_order_seq_cst);
    return blocked_count >= participant_count && blocked_count != 0;
}

/* Relaxed: a wrong answer wakes one too many, or leaves it to all_are_blocked. */
static bool waits_for(const quern__worker *worker, const void *serving, const void *scope)
{
    const void *awaited = atomic_load_explicit(&worker->awaited_scope, memory_order_relaxed);
    if (awaited != NULL && (quern__scope_matches(serving, awaited) || quern__scope_matches(scope, awaited)))
        return true;
    uint32_t more_count = atomic_load_explicit(&worker->more_awaited_count, memory_order_relaxed);
    for (uint32_t i = 0; i < more_count; i++) {
        awaited = atomic_load_explicit(&worker->more_awaited_scopes[i], memory_order_relaxed);
        if (quern__scope_matches(serving, awaited) || quern__scope_matches(scope, awaited)) return true;
    }
    return false;
}

/* Of those asleep in a wait. */
typedef enum sleeper_kind {
    WAITS_FOR_IT, /* one that waits for what the pusher serves, or for what the job is counted by */
    MAY_RUN_ALL,  /* one that has no closed job on its stack */
    ANY_SLEEPER
} sleeper_kind;

static bool is_of_kind(const quern__worker *sleeper, sleeper_kind kind, const void *serving,
                       const void *scope)
{
    if (kind == WAITS_FOR_IT) return waits_for(sleeper, serving, scope);
    return kind == ANY_SLEEPER || !quern__worker_has_closed_job(sleeper);
}

/* The look pairs with quern__worker_mask_set of one that falls asleep in a wait; acquire: what is read of that
 * one was written before. */
static bool wake_one_blocked(quern_jobs *jobs, sleeper_kind kind, const void *serving, const void *scope)
{
    for (uint32_t word = 0; word < (jobs->worker_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->blocked.words[word], QUERN__HANDSHAKE_ACQUIRE);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(mask);
            quern__worker *worker = &jobs->workers[index];
            if (!is_of_kind(worker, kind, serving, scope)) continue;
            if (!quern__worker_mask_clear(&jobs->blocked, index)) continue;
            quern__parker_give(&worker->parker);
            return true;
        }
    }
    return false;
}

/* One that waits for it; when all are blocked, and none does, one that may run it: who has a
 * closed job on its stack may not run another (deque.h). */
static void wake_blocked(quern_jobs *jobs, const void *serving, const void *scope)
{
    if (wake_one_blocked(jobs, WAITS_FOR_IT, serving, scope) || !all_are_blocked(jobs)) return;
    if (!wake_one_blocked(jobs, MAY_RUN_ALL, serving, scope) && !quern__scope_is_closed(scope))
        wake_one_blocked(jobs, ANY_SLEEPER, serving, scope);
}

/* The looks pair with the counts of searchers and sleepers: see above, fence C. What the worker serves is
 * its own word: relaxed. */
void quern__jobs_notify_sleepers(quern_jobs *jobs, quern__worker *worker, const void *scope)
{
    quern__handshake_fence(); /* between the push and the look at searchers */
    if (atomic_load_explicit(&jobs->searching_count, QUERN__HANDSHAKE_RELAXED) != 0) return;
    if (wake_idle(jobs)) return;
    if (atomic_load_explicit(&jobs->blocked_count, QUERN__HANDSHAKE_RELAXED) == 0) return;
    const void *serving =
        worker != NULL ? atomic_load_explicit(&worker->served_scope, memory_order_relaxed) : NULL;
    wake_blocked(jobs, serving, scope);
}

/* One that sleeps in a wait has its bit in another mask, and needs no more than the permit. */
void quern__worker_wake(quern__worker *worker)
{
    if (quern__worker_mask_clear(&worker->jobs->idle, worker->index))
        rouse(worker->jobs, worker->index);
    else
        quern__parker_give(&worker->parker);
}

/* One look at each word: workers that fall asleep again meanwhile are not woken again. Relaxed: it is a
 * hint, and mask_clear decides. */
void quern_jobs_wake(quern_jobs *jobs)
{
    if (jobs == NULL || !quern__jobs_begin_visit(jobs)) return;
    for (uint32_t word = 0; word < (jobs->thread_count + 63) / 64; word++) {
        uint64_t mask = atomic_load_explicit(&jobs->idle.words[word], memory_order_relaxed);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(mask);
            if (quern__worker_mask_clear(&jobs->idle, index)) rouse(jobs, index);
        }
    }
    quern__jobs_end_visit(jobs);
}

/* Setting the bit and counting pair with the looks in notify: see above, fence B. Counting down is
 * relaxed: a look at sleepers in vain does no harm. */
void quern__worker_sleep(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    quern__worker_mask_set(&jobs->idle, worker->index);
    atomic_fetch_add_explicit(&jobs->sleeper_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs); /* between the announcement and the last look */
    if (!quern__jobs_has_any_job(jobs) && quern__queue_is_empty(&worker->assigned)) {
        quern__worker_prepare_sleep(worker);
        quern__worker_park(worker, 0);
        quern__worker_leave_shared_processor(worker);
    }
    /* A waker has cleared it already, unless the permit came from somebody else. */
    quern__worker_mask_clear(&jobs->idle, worker->index);
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    worker->has_slept = true;
}

/* ---------------------------------------------------------------------------------------------- search */

/* Once around the others. Victims are looked at before they are stolen from, so that spinning only
 * reads. */
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

static bool look_around(quern__worker *worker, quern__job *out_job)
{
    return take_queued(worker, QUERN__QUEUE_HIGH, out_job) || steal_any(worker, out_job) ||
           take_queued(worker, QUERN__QUEUE_NORMAL, out_job);
}

static bool look_everywhere(quern__worker *worker, quern__job *out_job)
{
    return look_around(worker, out_job) || take_queued(worker, QUERN__QUEUE_LOW, out_job);
}

bool quern__worker_try_take_job(quern__worker *worker, quern__job *out_job)
{
    return quern__worker_take_assigned(worker, NULL, out_job) ||
           take_queued(worker, QUERN__QUEUE_HIGH, out_job) || pop_own(worker, out_job) ||
           look_everywhere(worker, out_job);
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
            if (quern__worker_take_assigned(worker, NULL, out_job) || look_everywhere(worker, out_job))
                return true;
            if (quern__parker_has_permit(&worker->parker)) return false;
            quern__relax();
        }
    } while (spin_ns != 0 && quern__clock_ns() - start_ns < spin_ns &&
             !quern__worker_should_stop_spinning(worker));
    return false;
}

/* Counting searchers down pairs with the look at them in notify_sleepers; counting up is relaxed, since it
 * only keeps others from waking somebody. */
static bool search(quern__worker *worker, quern__job *out_job)
{
    quern_jobs *jobs = worker->jobs;
    atomic_fetch_add_explicit(&jobs->searching_count, 1, memory_order_relaxed);
    uint64_t start_ns = quern__clock_ns();
    quern__worker_begin_idle_time(worker, start_ns);
    bool found = spin(worker, start_ns, out_job);
    if (found && quern__observer_is_recording(jobs->observer))
        quern__worker_report_event(worker, QUERN__JOB_EVENT_STEAL, start_ns, 1);
    /* The write of a handshake with notify: the fence follows below, or in quern__worker_sleep. */
    uint32_t before = atomic_fetch_sub_explicit(&jobs->searching_count, 1, QUERN__HANDSHAKE_RELAXED);
    if (!found || before != 1) return found;
    quern__handshake_fence();
    if (atomic_load_explicit(&jobs->sleeper_count, QUERN__HANDSHAKE_RELAXED) != 0 &&
        quern__jobs_has_any_job(jobs))
        quern__jobs_notify_sleepers(jobs, NULL, NULL);
    return true;
}

/* Takes finished jobs off their counter; then one of what waited for that. */
static bool take_continuation(quern__worker *worker, quern__job *out_job)
{
    if (worker->done_count == 0) return false;
    worker->claims_next_job = true;
    quern__worker_flush_finished_slow(worker);
    worker->claims_next_job = false;
    return take_queued(worker, QUERN__QUEUE_HIGH, out_job) || pop_own(worker, out_job);
}

bool quern__worker_find_job(quern__worker *worker, quern__job *out_job)
{
    if (!worker->has_slept) {
        if (quern__worker_take_assigned(worker, NULL, out_job)) return true;
        if (take_queued(worker, QUERN__QUEUE_HIGH, out_job)) return true;
        if (pop_own(worker, out_job) || look_around(worker, out_job)) return true;
        if (take_continuation(worker, out_job)) return true;
        if (take_queued(worker, QUERN__QUEUE_LOW, out_job)) return true;
    }
    worker->has_slept = false;
    return search(worker, out_job);
}
