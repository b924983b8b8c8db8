/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs.h"

/* Threads from outside the pool: one at a time comes in as worker 0, and others may wait for its place. */

/* ------------------------------------------------------------------------------------ forked processes */

quern_result quern__jobs_check_threads(const quern_jobs *jobs, const char *function)
{
    if (QUERN__LIKELY(!quern__jobs_has_threads_elsewhere(jobs))) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_THREAD,
        "%s: this process was forked after job pool '%s' was made, and the pool's threads are in "
        "the parent; make a pool in this process",
        function, jobs->name);
}

/* ----------------------------------------------------------------------------------- entering, leaving */

QUERN__FAST_THREAD_LOCAL quern__worker *quern__current_worker;

quern__worker *quern__jobs_outer_worker(const quern_jobs *jobs)
{
    quern__worker *worker = quern__current_worker;
    while (worker != NULL && worker->jobs != jobs)
        worker = worker->outer;
    return worker;
}

bool quern__jobs_try_enter(quern_jobs *jobs)
{
    /* Acquire pairs with the release in leave: worker 0 passes from one thread to the next. seq_cst: see
     * is_last_one in wait.c. */
    if (atomic_exchange_explicit(&jobs->is_entered, true, memory_order_seq_cst)) return false;
    quern__worker *caller = &jobs->workers[0];
    caller->outer = quern__current_worker;
    quern__current_worker = caller;
    return true;
}

quern_result quern__jobs_enter(quern_jobs *jobs, const char *function)
{
    quern__worker *inside = quern__jobs_current_worker(jobs);
    if (inside != NULL && inside->is_resting) {
        inside->is_resting = false;
        inside->again_count++;
        return QUERN_OK;
    }
    if (inside != NULL)
        return quern__fail(QUERN_ERROR_POOL_BUSY,
                           "%s: called from inside a job of pool '%s'; call it from outside", function,
                           jobs->name);
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    if (quern__jobs_try_enter(jobs)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_POOL_BUSY,
                       "%s: another thread is running work on job pool '%s'; one outside thread at a time "
                       "may",
                       function, jobs->name);
}

/* Worker 0 has left. All others may be asleep in waits, and jobs be left that it might have run; and a
 * thread that waits outside may come in and help. */
static void tell_others(quern_jobs *jobs)
{
    if (quern__jobs_any(jobs)) quern__jobs_notify_sleepers(jobs, NULL, NULL);
    pthread_mutex_lock(&jobs->outside_mutex);
    pthread_cond_broadcast(&jobs->outside_condition);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

/* The store pairs with the exchange in try_enter; the loads, with the counts in sleep_outside and
 * sleep_in_wait. */
void quern__jobs_leave(quern_jobs *jobs)
{
    quern__worker *caller = &jobs->workers[0];
    if (caller->again_count > 0) {
        caller->again_count--;
        caller->is_resting = true;
        return;
    }
    quern__worker_settle(caller);
    quern__current_worker = caller->outer;
    atomic_store_explicit(&jobs->is_entered, false, QUERN__HANDSHAKE_RELEASE);
    /* The write and the read of a handshake with those who sleep while there is a worker 0; they make up
     * for a fence that is missing. */
    if (!jobs->is_asymmetric) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t sleepers = atomic_load_explicit(&jobs->blocked_count, QUERN__HANDSHAKE_RELAXED) |
                        atomic_load_explicit(&jobs->outside_count, QUERN__HANDSHAKE_RELAXED);
    if (QUERN__UNLIKELY(sleepers != 0)) tell_others(jobs);
}
