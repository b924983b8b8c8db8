/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Forks and joins.
 *
 * A fork is a job on the stack of whoever forked it, and its own counter. As long as nobody steals it
 * nothing is counted, and no atomic operation is made but those of the deque. */

enum { FORK_OPEN, FORK_DONE, FORK_SLEEPING };

/* These two take a few nanoseconds; where they lie in cache lines of code makes a difference of a fifth. */
#define ALIGNED __attribute__((aligned(QUERN__CACHE_LINE_BYTES)))

static void call(quern_fork *fork, quern__worker *worker, int64_t bottom)
{
    int64_t floor = worker->floor;
    worker->floor = bottom;
    fork->function(fork->user_data, worker->index);
    worker->floor = floor;
}

/* For whoever takes the fork and is not joining it. Release pairs with fork_is_done; then the fork is gone,
 * but the worker that owns it is not. */
static void run_fork(quern__job *job, quern__worker *worker)
{
    quern_fork *fork = job->target;
    fork->function(fork->user_data, worker->index);
    quern__worker_settle(worker);
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

/* Fails when it is done already. Relaxed: the exchange in run_fork orders what was done, and the permit
 * the rest. */
static void announce_fork(const quern__wait *wait, quern__worker *worker)
{
    quern_fork *fork = wait->target;
    uint32_t expected = FORK_OPEN;
    (void)worker;
    atomic_compare_exchange_strong_explicit(&fork->state, &expected, FORK_SLEEPING, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Not inlined: most forks are not waited for, and should not pay for what a wait needs. */
__attribute__((noinline)) static void wait_for_fork(quern__worker *worker, quern_fork *fork)
{
    const quern__wait wait = {
        .scope = fork, .target = fork, .is_done = fork_is_done, .announce = announce_fork};
    quern__worker_wait(worker, &wait);
}

/* Pops until the fork comes; what stands above it in the deque was forked or submitted later, by the same
 * job. False when it was stolen. The slot is read relaxed: it is the owner's own. */
static bool call_unless_stolen(quern__worker *worker, quern_fork *fork)
{
    while (quern__deque_bottom(&worker->deque) > worker->floor) {
        quern__deque_slot *slot = quern__deque_pop(&worker->deque);
        if (slot == NULL) return false;
        if (atomic_load_explicit(&slot->target, memory_order_relaxed) == fork) {
            quern__worker_settle(worker); /* the jobs that stood above it */
            call(fork, worker, quern__deque_bottom(&worker->deque));
            return true;
        }
        quern__job job;
        quern__deque_read_slot(slot, &job);
        quern__worker_run_own(worker, &job);
    }
    return false;
}

static quern_result refuse_join(const quern_jobs *jobs)
{
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_join: this worker of pool '%s' has not forked it, or has joined it already",
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
