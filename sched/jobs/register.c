/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Registered threads: external threads that reserve a slot.
 *
 * A registered thread always enters through its slot (enter.c), and no other thread does. So it is the
 * same worker each time, and jobs can be assigned to it. Each thread has a list of its registrations, one
 * per pool; the pools contain the elements.
 *
 * An element must not outlive its pool. So a pool cannot be destroyed while other threads are registered,
 * and a thread that ends releases its slots through the destructor of a thread-specific key. Jobs that are
 * still assigned to it then go to any worker. */

QUERN__THREAD_LOCAL(quern__registration *, quern__thread_registrations);

/* The key exists from the first registration until a pool is destroyed while no thread is registered. So
 * a shared library that contains Quern leaves nothing behind when it is unloaded after its last pool: no
 * function that the system would call, and no key, of which a process has few. */
static quern__mutex key_mutex = QUERN__MUTEX_INIT; /* of the next three variables */
static quern__exit_key exit_key;                   /* not NULL in threads with registrations */
static bool has_key;
static uint32_t registered_count; /* registrations of all threads with all pools */

static void unregister_at_thread_exit(void *value);

/* Counts a registration, and makes the system call the key's destructor when the calling thread ends. Returns
 * false, with nothing counted, if the system refuses the key. */
static bool set_exit_key(void)
{
    quern__mutex_lock(&key_mutex);
    if (!has_key) has_key = quern__exit_key_init(&exit_key, unregister_at_thread_exit);
    const bool is_set = has_key && quern__exit_key_set(&exit_key, &exit_key);
    if (is_set) registered_count++;
    quern__mutex_unlock(&key_mutex);
    return is_set;
}

/* Ends the effect of one set_exit_key. */
static void clear_exit_key(void)
{
    quern__mutex_lock(&key_mutex);
    registered_count--;
    if (quern__registrations == NULL) (void)quern__exit_key_set(&exit_key, NULL);
    quern__mutex_unlock(&key_mutex);
}

void quern__registrations_drop_unused_key(void)
{
    quern__mutex_lock(&key_mutex);
    if (has_key && registered_count == 0) {
        quern__exit_key_deinit(&exit_key);
        has_key = false;
    }
    quern__mutex_unlock(&key_mutex);
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
            clear_exit_key();
            return;
        }
}

/* ----------------------------------------------------------------------------------------- registering */

static quern_result check_outside(const quern_jobs *jobs, const char *function)
{
    if (quern__jobs_current_worker(jobs) == NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: called from inside a job of pool '%s'; call it from outside", function,
                       jobs->name);
}

static quern_result check_unregistered(const quern_jobs *jobs)
{
    const quern__registration *entry = quern__registration_of(jobs);
    if (entry == NULL) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_register_thread: this thread is registered already, as worker %u of pool "
        "'%s': register each thread once",
        (unsigned)quern__jobs_external_worker(jobs, entry->slot)->index, jobs->name);
}

static quern_result reserve_slot(quern_jobs *jobs, quern__registration **out_entry)
{
    uint32_t slot;
    if (!quern__jobs_reserve_external_slot(jobs, &slot))
        return quern__fail(
            QUERN_ERROR_POOL_BUSY,
            "quern_jobs_register_thread: all %u external slots of pool '%s' are in use; allow more "
            "with .external_thread_count",
            (unsigned)jobs->external_count, jobs->name);
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
    quern_result result = check_outside(jobs, "quern_jobs_register_thread");
    if (result == QUERN_OK) result = check_unregistered(jobs);
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_register_thread");
    if (result == QUERN_OK && !set_exit_key())
        result = quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE,
                             "quern_jobs_register_thread: the system has no key left that tells pool '%s' "
                             "when this thread ends",
                             jobs->name);
    if (result != QUERN_OK) return result;
    quern__registration *entry = NULL;
    result = reserve_slot(jobs, &entry);
    if (result != QUERN_OK) {
        clear_exit_key();
        return result;
    }
    quern__worker *worker = quern__jobs_external_worker(jobs, entry->slot);
    quern__queues_open(&jobs->queues, &worker->assigned);
    if (out_worker_index != NULL) *out_worker_index = worker->index;
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- returning it */

static void run_assigned(quern__worker *worker)
{
    quern__job job;
    while (!quern__queues_close(&worker->jobs->queues, &worker->assigned))
        if (quern__worker_take_assigned(worker, NULL, &job)) {
            quern__worker_run_job(worker, &job);
            quern__worker_flush_finished(worker);
        }
}

/* Ends a registration inside the pool: no other thread can be this worker before all is done, and leaving
 * wakes the threads that wait for a slot. `empty` disposes of the jobs that are assigned to the worker. */
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
    quern_result result = check_outside(jobs, "quern_jobs_unregister_thread");
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_unregister_thread");
    if (result != QUERN_OK) return result;
    quern__registration *entry = quern__registration_of(jobs);
    if (entry == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_unregister_thread: this thread is not registered with pool '%s': "
                           "unregister only registered threads",
                           jobs->name);
    end_registration(entry, run_assigned);
    return QUERN_OK;
}

/* Hands the jobs assigned to a thread that is ending to the other workers. */
static void hand_over_assigned(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    const void *scope;
    while (quern__queues_disown(&jobs->queues, &worker->assigned, &scope))
        quern__jobs_notify(jobs, NULL, scope);
}

/* After a fork the pools belong to the parent; the child only forgets them. */
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

/* Relaxed: the reserved bit orders nothing else. */
bool quern__jobs_is_slot_registered(const quern_jobs *jobs, uint32_t slot)
{
    return (atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) >> (32 + slot) & 1) != 0;
}
