/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Threads from outside that keep a place for themselves.
 *
 * A registered thread has reserved its place (enter.c): it always comes in there, and nobody else does. So
 * it is the same worker each time, and jobs can be assigned to it. Of all other threads it is told by a
 * list of its own, with an entry for each pool; the entries stand in the pools.
 *
 * An entry must not outlive its pool. So a pool is not destroyed while other threads are registered, and a
 * thread that ends gives back what it has not: a key of the system's tells that. Jobs that are assigned to
 * it then go to any worker, for there is nobody else. */

QUERN__FAST_THREAD_LOCAL quern__registration *quern__registrations;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* has a value in threads with entries */
static bool has_key;

static void unregister_at_thread_exit(void *value);

static void make_key(void)
{
    has_key = pthread_key_create(&key, unregister_at_thread_exit) == 0;
}

/* For a thread with entries the key's value is not NULL. False when the system refuses. */
static bool set_exit_key(void)
{
    pthread_once(&key_once, make_key);
    return has_key && pthread_setspecific(key, &key) == 0;
}

quern__registration *quern__registration_of(const quern_jobs *jobs)
{
    quern__registration *entry = quern__registrations;
    while (entry != NULL && entry->jobs != jobs)
        entry = entry->next;
    return entry;
}

void quern__registration_forget(const quern_jobs *jobs)
{
    for (quern__registration **link = &quern__registrations; *link != NULL; link = &(*link)->next)
        if ((*link)->jobs == jobs) {
            *link = (*link)->next;
            return;
        }
}

/* ----------------------------------------------------------------------------------------- registering */

static quern_result refuse_inside(const quern_jobs *jobs, const char *function)
{
    if (quern__jobs_current_worker(jobs) == NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: called from inside a job of pool '%s'; call it from outside", function,
                       jobs->name);
}

static quern_result refuse_again(const quern_jobs *jobs)
{
    const quern__registration *entry = quern__registration_of(jobs);
    if (entry == NULL) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_register_thread: this thread is registered already, as worker %u of pool "
        "'%s'",
        (unsigned)quern__jobs_external_worker(jobs, entry->slot)->index, jobs->name);
}

static quern_result reserve_slot(quern_jobs *jobs, quern__registration **out_entry)
{
    uint32_t slot;
    if (!quern__jobs_reserve_external_slot(jobs, &slot))
        return quern__fail(
            QUERN_ERROR_POOL_BUSY,
            "quern_jobs_register_thread: no place for one more guest of pool '%s' is free; it "
            "has %u. Allow more with .guest_count",
            jobs->name, (unsigned)jobs->external_count);
    quern__registration *entry = &jobs->registrations[slot];
    entry->next = quern__registrations;
    entry->jobs = jobs;
    entry->slot = slot;
    quern__registrations = entry;
    *out_entry = entry;
    return QUERN_OK;
}

quern_result quern_jobs_register_thread(quern_jobs *jobs, uint32_t *out_worker_index)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_register_thread", "jobs");
    quern_result result = refuse_inside(jobs, "quern_jobs_register_thread");
    if (result == QUERN_OK) result = refuse_again(jobs);
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_register_thread");
    if (result == QUERN_OK && !set_exit_key())
        result = quern__fail(QUERN_ERROR_THREAD,
                             "quern_jobs_register_thread: the system has no key left that tells pool '%s' "
                             "when this thread ends",
                             jobs->name);
    quern__registration *entry = NULL;
    if (result == QUERN_OK) result = reserve_slot(jobs, &entry);
    if (result != QUERN_OK) return result;
    quern__worker *worker = quern__jobs_external_worker(jobs, entry->slot);
    quern__queues_open(&jobs->queues, &worker->assigned);
    if (out_worker_index != NULL) *out_worker_index = worker->index;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- giving it back */

static void run_assigned(quern__worker *worker)
{
    quern__job job;
    while (!quern__queues_close(&worker->jobs->queues, &worker->assigned))
        if (quern__worker_take_assigned(worker, NULL, &job)) {
            quern__worker_run_job(worker, &job);
            quern__worker_flush_finished(worker);
        }
}

/* Inside, so that nobody else is this worker before all is done, and those who wait for a place are told by
 * leaving. */
static void end_registration(quern__registration *entry, void (*empty)(quern__worker *worker))
{
    quern_jobs *jobs = entry->jobs;
    quern__worker *worker = quern__jobs_try_enter(jobs);
    empty(worker);
    quern__registration_forget(jobs);
    quern__jobs_release_external_slot(jobs, worker);
    quern__jobs_leave(jobs);
}

quern_result quern_jobs_unregister_thread(quern_jobs *jobs)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_unregister_thread", "jobs");
    quern_result result = refuse_inside(jobs, "quern_jobs_unregister_thread");
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_unregister_thread");
    if (result != QUERN_OK) return result;
    quern__registration *entry = quern__registration_of(jobs);
    if (entry == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_unregister_thread: this thread is not registered with pool '%s'",
                           jobs->name);
    end_registration(entry, run_assigned);
    return QUERN_OK;
}

/* Jobs of a thread that is about to be gone are not for it to run. */
static void hand_over_assigned(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    const void *scope;
    while (quern__queues_disown(&jobs->queues, &worker->assigned, &scope))
        quern__jobs_notify(jobs, NULL, scope);
}

/* In a forked process the pools belong to the parent. */
static void unregister_at_thread_exit(void *value)
{
    (void)value;
    while (quern__registrations != NULL) {
        quern__registration *entry = quern__registrations;
        if (quern__jobs_has_threads_elsewhere(entry->jobs))
            quern__registration_forget(entry->jobs);
        else
            end_registration(entry, hand_over_assigned);
    }
}

/* --------------------------------------------------------------------------------------- for assigned.c */

/* The look at the reserved half orders nothing, so it is relaxed. */
bool quern__jobs_is_slot_registered(const quern_jobs *jobs, uint32_t slot)
{
    return (atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) >> (32 + slot) & 1) != 0;
}
