/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs.h"

#include <stdio.h>

/* Sleeping and waking.
 *
 * A worker without a job searches (it is counted in searching_count), spinning for a while; then it sleeps.
 * Whoever pushes jobs wakes at most one sleeper, and none while somebody searches, because waking costs the
 * waker a system call of several microseconds.
 *
 *     pusher (push, notify)              worker (search, sleep)
 *     bottom = b + 1                     searching_count -= 1
 *     fence                              idle |= me
 *     read searching_count, idle         fence
 *     wake one if none and some          look at all deques; sleep if they are empty
 *
 * No job is left lying while everybody sleeps: of the two fences one comes first. If it is the pusher's, the
 * worker sees the job and does not sleep. If it is the worker's, the pusher sees the worker idle and not
 * searching, and wakes it or another one.
 *
 * No job is left lying while there are sleepers and only the pusher is awake: a searcher that finds a job
 * stops searching, and when it was the last, looks again (fence, deques) and wakes one for what it sees. A
 * pusher that woke nobody because of that searcher pushed before that look; one that pushed after it saw no
 * searcher. Each woken worker does the same, so a burst of jobs wakes workers in a growing tree.
 * A worker that leaves sleep always searches first, whatever woke it: it may have used up the wake-up that
 * was meant for another job than the one it finds.
 *
 * A permit given to a worker is kept until taken (sched/thread.h), so wake-ups with an addressee (the pool
 * stops, a graph has finished, a loop's last helper has left) need none of this. Permits left over from an
 * earlier wait cost one round without a result. */

enum {
    LOOKS_PER_CLOCK = 16, /* a look at all deques is cheaper than reading the clock */
    DEFAULT_SPIN_NS = 200000
};

static _Thread_local quern__worker *current_worker;

/* ------------------------------------------------------------------------------------------- sleep */

static bool any_job(const quern_jobs *jobs)
{
    for (uint32_t index = 0; index < jobs->thread_count; index++)
        if (!quern__deque_looks_empty(&jobs->workers[index].deque)) return true;
    return false;
}

/* Of several wakers, the one that clears the bit gives the permit. Relaxed: the permit carries the order. */
static bool wake_one_of(quern_jobs *jobs, uint32_t word)
{
    _Atomic uint64_t *idle = &jobs->idle[word];
    uint64_t mask = atomic_load_explicit(idle, QUERN__HANDSHAKE_RELAXED);
    while (mask != 0) {
        uint64_t bit = mask & (~mask + 1);
        mask = atomic_fetch_and_explicit(idle, ~bit, memory_order_relaxed);
        if ((mask & bit) != 0) {
            quern__parker_give(&jobs->workers[word * 64 + (uint32_t)__builtin_ctzll(bit)].parker);
            return true;
        }
    }
    return false;
}

void quern__jobs_notify(quern_jobs *jobs)
{
    quern__handshake_fence(); /* between the push and the look at sleepers */
    if (atomic_load_explicit(&jobs->searching_count, QUERN__HANDSHAKE_RELAXED) != 0) return;
    for (uint32_t word = 0; word < jobs->idle_word_count; word++)
        if (wake_one_of(jobs, word)) return;
}

void quern__worker_sleep(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    _Atomic uint64_t *idle = &jobs->idle[worker->index / 64];
    uint64_t bit = (uint64_t)1 << (worker->index % 64);
    atomic_fetch_or_explicit(idle, bit, QUERN__HANDSHAKE_RELAXED);
    quern__handshake_fence(); /* between the announcement and the last look */
    if (!any_job(jobs)) quern__parker_take(&worker->parker);
    /* A waker has cleared it already, unless the permit came from somebody else. */
    atomic_fetch_and_explicit(idle, ~bit, memory_order_relaxed);
    worker->has_slept = true;
}

/* ------------------------------------------------------------------------------------------ search */

/* Once around the others. Victims are looked at before they are stolen from, so that spinning only reads. */
static quern__job *steal_any(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    worker->random = worker->random * 1664525u + 1013904223u;
    uint32_t victim = (worker->random >> 16) % jobs->thread_count;
    for (uint32_t turn = 0; turn < jobs->thread_count; turn++) {
        quern__deque *deque = &jobs->workers[victim].deque;
        if (victim != worker->index && !quern__deque_looks_empty(deque)) {
            quern__job *job = quern__deque_steal(deque);
            if (job != NULL) return job;
        }
        if (++victim == jobs->thread_count) victim = 0;
    }
    return NULL;
}

static quern__job *spin(quern__worker *worker)
{
    uint64_t spin_ns = worker->jobs->spin_ns;
    uint64_t start_ns = spin_ns != 0 ? quern__clock_ns() : 0;
    do {
        for (uint32_t look = 0; look < LOOKS_PER_CLOCK; look++) {
            quern__job *job = steal_any(worker);
            if (job != NULL || quern__parker_has_permit(&worker->parker)) return job;
            quern__relax();
        }
    } while (spin_ns != 0 && quern__clock_ns() - start_ns < spin_ns);
    return NULL;
}

static quern__job *search(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    atomic_fetch_add_explicit(&jobs->searching_count, 1, memory_order_relaxed);
    quern__job *job = spin(worker);
    /* The write of a handshake with notify: the fence follows below, or in quern__worker_sleep. */
    uint32_t before = atomic_fetch_sub_explicit(&jobs->searching_count, 1, QUERN__HANDSHAKE_RELAXED);
    if (job == NULL || before != 1) return job;
    quern__handshake_fence();
    if (any_job(jobs)) quern__jobs_notify(jobs);
    return job;
}

quern__job *quern__worker_next(quern__worker *worker)
{
    quern__job *job = quern__deque_pop(&worker->deque);
    if (job == NULL && !worker->has_slept) job = steal_any(worker);
    if (job != NULL) return job;
    worker->has_slept = false;
    return search(worker);
}

/* ------------------------------------------------------------------------------- threads and callers */

static void name_thread(const quern__worker *worker)
{
    char number[QUERN__THREAD_NAME_BYTES];
    char name[2 * QUERN__THREAD_NAME_BYTES]; /* more than is used, for compilers that do the sum */
    int number_length = snprintf(number, sizeof number, "/%u", (unsigned)worker->index);
    int room = QUERN__THREAD_NAME_BYTES - 1 - number_length;
    snprintf(name, sizeof name, "%.*s%s", room, worker->jobs->name, number);
    quern__thread_set_name(name);
}

static void *worker_main(void *argument)
{
    quern__worker *worker = argument;
    current_worker = worker;
    name_thread(worker);
    /* Acquire pairs with stop_threads, which also gives a permit to end the sleep. */
    while (!atomic_load_explicit(&worker->jobs->is_stopping, memory_order_acquire)) {
        quern__job *job = quern__worker_next(worker);
        if (job != NULL)
            job->run(job, worker);
        else
            quern__worker_sleep(worker);
    }
    return NULL;
}

quern__worker *quern__jobs_current_worker(const quern_jobs *jobs)
{
    quern__worker *worker = current_worker;
    while (worker != NULL && worker->jobs != jobs)
        worker = worker->outer;
    return worker;
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
    /* Acquire pairs with the release in leave: worker 0 passes from one thread to the next. */
    if (atomic_exchange_explicit(&jobs->is_entered, true, memory_order_acquire))
        return quern__fail(
            QUERN_ERROR_POOL_BUSY,
            "%s: another thread is running work on job pool '%s'; one outside thread at a time "
            "may",
            function, jobs->name);
    jobs->workers[0].outer = current_worker;
    current_worker = &jobs->workers[0];
    return QUERN_OK;
}

void quern__jobs_leave(quern_jobs *jobs)
{
    quern__worker *caller = &jobs->workers[0];
    if (caller->again_count > 0) {
        caller->again_count--;
        caller->is_resting = true;
        return;
    }
    current_worker = jobs->workers[0].outer;
    atomic_store_explicit(&jobs->is_entered, false, memory_order_release);
}

/* ---------------------------------------------------------------------------------------- lifetime */

quern_jobs_def quern_jobs_def_default(void)
{
    return (quern_jobs_def){.thread_count = 0,
                            .spin_ns = DEFAULT_SPIN_NS,
                            .name = "quern",
                            .allocator = quern_allocator_default(),
                            .cookie = QUERN__COOKIE};
}

static quern_result check_def(const quern_jobs_def *def)
{
    quern_result result = quern__check_cookie(def->cookie, "quern_jobs_create", "quern_jobs_def_default");
    if (result == QUERN_OK) result = quern__check_name(def->name, "job pool");
    if (result == QUERN_OK) result = quern__check_allocator(&def->allocator, "quern_jobs_create");
    if (result == QUERN_OK && def->thread_count > QUERN_MAX_THREADS)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "quern_jobs_create: %u threads asked for; the limit is %d (QUERN_MAX_THREADS)",
                             (unsigned)def->thread_count, QUERN_MAX_THREADS);
    return result;
}

static size_t pool_size_bytes(uint32_t thread_count)
{
    return sizeof(quern_jobs) + thread_count * sizeof(quern__worker);
}

static void release_pool(quern_jobs *jobs, uint32_t parker_count)
{
    quern_allocator allocator = jobs->allocator;
    for (uint32_t index = 0; index < parker_count; index++)
        quern__parker_deinit(&jobs->workers[index].parker);
    quern__release(&allocator, jobs, pool_size_bytes(jobs->thread_count), _Alignof(quern_jobs));
}

static void init_pool(quern_jobs *jobs, const quern_jobs_def *def, uint32_t thread_count)
{
    jobs->allocator = def->allocator;
    jobs->thread_count = thread_count;
    jobs->idle_word_count = (thread_count + 63) / 64;
    jobs->spin_ns = thread_count > quern_processor_count() ? 0 : def->spin_ns;
    snprintf(jobs->name, sizeof jobs->name, "%s", def->name);
    atomic_init(&jobs->is_stopping, false);
    atomic_init(&jobs->is_entered, false);
    atomic_init(&jobs->searching_count, 0);
    for (uint32_t word = 0; word < QUERN__IDLE_WORDS; word++)
        atomic_init(&jobs->idle[word], 0);
}

static bool init_worker(quern_jobs *jobs, uint32_t index)
{
    quern__worker *worker = &jobs->workers[index];
    quern__deque_init(&worker->deque);
    worker->jobs = jobs;
    worker->outer = NULL;
    worker->index = index;
    worker->random = index;
    worker->has_slept = false;
    worker->is_resting = false;
    worker->again_count = 0;
    return quern__parker_init(&worker->parker);
}

static quern_jobs *allocate_pool(const quern_jobs_def *def, uint32_t thread_count)
{
    quern_jobs *jobs =
        quern__allocate(&def->allocator, pool_size_bytes(thread_count), _Alignof(quern_jobs));
    if (jobs == NULL) return NULL;
    init_pool(jobs, def, thread_count);
    for (uint32_t index = 0; index < thread_count; index++) {
        if (init_worker(jobs, index)) continue;
        release_pool(jobs, index);
        return NULL;
    }
    return jobs;
}

/* Stops workers 1 to started_count. */
static void stop_threads(quern_jobs *jobs, uint32_t started_count)
{
    atomic_store_explicit(&jobs->is_stopping, true, memory_order_release);
    for (uint32_t index = 1; index <= started_count; index++)
        quern__parker_give(&jobs->workers[index].parker);
    for (uint32_t index = 1; index <= started_count; index++)
        quern__thread_join(&jobs->workers[index].thread);
}

static quern_result start_threads(quern_jobs *jobs)
{
    for (uint32_t index = 1; index < jobs->thread_count; index++) {
        quern__worker *worker = &jobs->workers[index];
        if (quern__thread_start(&worker->thread, worker_main, worker)) continue;
        stop_threads(jobs, index - 1);
        return quern__fail(QUERN_ERROR_THREAD,
                           "quern_jobs_create: the system refused thread %u of %u of job pool '%s'",
                           (unsigned)index, (unsigned)jobs->thread_count - 1, jobs->name);
    }
    return QUERN_OK;
}

static uint32_t choose_thread_count(uint32_t asked_count)
{
    if (asked_count != 0) return asked_count;
    uint32_t processor_count = quern_processor_count();
    return processor_count < QUERN_MAX_THREADS ? processor_count : QUERN_MAX_THREADS;
}

quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs)
{
    if (out_jobs == NULL) return quern__fail_null("quern_jobs_create", "out_jobs");
    *out_jobs = NULL;
    quern_jobs_def default_def = quern_jobs_def_default();
    if (def == NULL) def = &default_def;
    quern_result result = check_def(def);
    if (result != QUERN_OK) return result;
    uint32_t thread_count = choose_thread_count(def->thread_count);
    quern_jobs *jobs = allocate_pool(def, thread_count);
    if (jobs == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_jobs_create: no memory for job pool '%s' of %u threads (%zu bytes)",
                           def->name, (unsigned)thread_count, pool_size_bytes(thread_count));
    result = start_threads(jobs);
    if (result == QUERN_OK)
        *out_jobs = jobs;
    else
        release_pool(jobs, jobs->thread_count);
    return result;
}

void quern_jobs_destroy(quern_jobs *jobs)
{
    if (jobs == NULL) return;
    /* Acquire: as in enter. */
    if (quern__jobs_current_worker(jobs) != NULL ||
        atomic_load_explicit(&jobs->is_entered, memory_order_acquire)) {
        quern__violation(QUERN_ERROR_POOL_BUSY,
                         "quern_jobs_destroy: job pool '%s' is running work; it is left as it is",
                         jobs->name);
        return;
    }
    stop_threads(jobs, jobs->thread_count - 1);
    release_pool(jobs, jobs->thread_count);
}

uint32_t quern_jobs_thread_count(const quern_jobs *jobs)
{
    return jobs != NULL ? jobs->thread_count : 0;
}
