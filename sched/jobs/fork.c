/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Forks and joins.
 *
 * A fork is a job on the stack of the job that forked it, with a completion state of its own instead of a
 * counter. If no other worker steals it, forking and joining use no atomic read-modify-write operations
 * apart from those of the deque. */

enum { FORK_OPEN, FORK_DONE, FORK_SLEEPING };

/* quern_jobs_fork and quern_jobs_join take a few nanoseconds; their alignment to cache lines changes that
 * by a fifth. */
#define ALIGNED QUERN__CODE_ALIGNED(QUERN__CACHE_LINE_BYTES)

static void call(quern_fork *fork, quern__worker *worker, int64_t bottom)
{
    int64_t floor = worker->floor;
    worker->floor = bottom;
    fork->function(fork->user_data, worker->index);
    worker->floor = floor;
}

/* Runs a fork on a worker that is not joining it: one that stole it, or the owner during another wait. The
 * fork may be gone after the exchange, but its owner is not. Release: pairs with fork_has_ended. */
static void run_fork(quern__job *job, quern__worker *worker)
{
    quern_fork *fork = job->target;
    const uint32_t float_mode = fork->float_mode;
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    fork->function(fork->user_data, worker->index);
    quern__float_mode_leave(float_mode, own_mode);
    quern__worker_flush_finished(worker);
    quern__worker *owner = fork->owner;
    uint32_t before = atomic_exchange_explicit(&fork->state, FORK_DONE, memory_order_acq_rel);
    if (before == FORK_SLEEPING) quern__parker_give(&owner->parker);
}

static quern_result refuse_fork(const quern_jobs *jobs, const quern_fork *fork, const void *function,
                                const char *name)
{
    if (jobs == NULL) return quern__fail_null(name, "jobs");
    if (fork == NULL) return quern__fail_null(name, "fork");
    if (function == NULL) return quern__fail_null(name, "function");
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: not called from inside a job of pool '%s'; enter with quern_jobs_run", name,
                       jobs->name);
}

ALIGNED quern_result quern_jobs_fork(quern_jobs *jobs, quern_fork *fork, quern_job_function *function,
                                     void *user_data)
{
    quern__worker *worker = jobs != NULL ? quern__jobs_current_worker(jobs) : NULL;
    if (QUERN__UNLIKELY(worker == NULL || fork == NULL || function == NULL))
        return refuse_fork(jobs, fork, (const void *)(uintptr_t)function, "quern_jobs_fork");
    fork->function = function;
    fork->user_data = user_data;
    fork->owner = worker;
    fork->float_mode = quern__float_mode();
    /* Relaxed: the push publishes it. */
    atomic_store_explicit(&fork->state, FORK_OPEN, memory_order_relaxed);
    quern__job job = {.run = run_fork, .scope = fork, .target = fork};
    if (quern__deque_push(&worker->deque, &job, 0)) {
        quern__jobs_notify(jobs, worker, fork);
    } else {
        call(fork, worker, quern__deque_bottom(&worker->deque));
        atomic_store_explicit(&fork->state, FORK_DONE, memory_order_relaxed);
    }
    return QUERN_OK;
}

/* Acquire: pairs with the exchange in run_fork. */
static bool fork_has_ended(const quern_fork *fork)
{
    return atomic_load_explicit(&fork->state, memory_order_acquire) == FORK_DONE;
}

static bool fork_is_done(const quern__wait *wait)
{
    return fork_has_ended(wait->target);
}

/* Asks for a permit at the end of the fork. Has no effect if the fork is done already. Relaxed: the
 * exchange in run_fork orders the fork's writes, and the permit orders the rest. */
static void announce_fork(const quern__wait *wait, quern__worker *worker)
{
    quern_fork *fork = wait->target;
    uint32_t expected = FORK_OPEN;
    (void)worker;
    atomic_compare_exchange_strong_explicit(&fork->state, &expected, FORK_SLEEPING, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Not inlined: most joins do not wait and should not pay for the wait's stack frame. */
static QUERN__NO_INLINE void wait_for_fork(quern__worker *worker, quern_fork *fork)
{
    const quern__wait wait = {
        .scope = fork, .target = fork, .is_done = fork_is_done, .announce = announce_fork};
    quern__worker_wait(worker, &wait);
}

/* Pops jobs until the popped job is the fork, and calls it. Jobs above it in the deque were forked or
 * submitted later by the same job, and run first. Returns false if the fork was stolen. Relaxed: only this
 * worker writes the slot. */
static bool call_unless_stolen(quern__worker *worker, quern_fork *fork)
{
    while (quern__deque_bottom(&worker->deque) > worker->floor) {
        quern__deque_slot *slot = quern__deque_pop(&worker->deque);
        if (slot == NULL) return false;
        if (atomic_load_explicit(&slot->target, memory_order_relaxed) == fork) {
            quern__worker_flush_finished(worker); /* subtract the jobs that ran above the fork */
            call(fork, worker, quern__deque_bottom(&worker->deque));
            return true;
        }
        quern__job job;
        quern__deque_read_slot(slot, &job);
        quern__worker_run_own_job(worker, &job);
    }
    return false;
}

static quern_result refuse_join(const quern_jobs *jobs)
{
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_join: the fork was not made by this worker of pool '%s', or is joined already; join "
        "each fork once, in the job that made it",
        jobs->name);
}

ALIGNED quern_result quern_jobs_join(quern_jobs *jobs, quern_fork *fork)
{
    quern__worker *worker = jobs != NULL ? quern__jobs_current_worker(jobs) : NULL;
    if (QUERN__UNLIKELY(worker == NULL || fork == NULL))
        return refuse_fork(jobs, fork, (const void *)jobs, "quern_jobs_join");
    if (QUERN__UNLIKELY(fork->owner != worker)) return refuse_join(jobs);
    if (!fork_has_ended(fork) && !call_unless_stolen(worker, fork)) wait_for_fork(worker, fork);
    fork->owner = NULL;
    return QUERN_OK;
}
