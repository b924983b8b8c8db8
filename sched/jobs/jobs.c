/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <stdio.h>

/* Lifecycle of a pool: the main functions of its threads, and how it is created, resized and destroyed.
 * search.c has how workers find jobs. */

enum { DEFAULT_SPIN_NS = 200000, POLL_NS = 50000 };

/* --------------------------------------------------------------------------------------------- threads */

/* Acquire: pairs with end_threads, which also gives each worker a permit, so that no worker stays
 * asleep. */
static bool is_stopping(const quern_jobs *jobs)
{
    return atomic_load_explicit(&jobs->is_stopping, memory_order_acquire);
}

/* Acquire: pairs with stop_locked, after which each worker gets a permit. */
static bool has_stopped(const quern_jobs *jobs)
{
    return atomic_load_explicit(&jobs->has_stopped, memory_order_acquire);
}

/* Returns whether the worker may find a job. External workers also run caller-only jobs. */
static bool may_find_job(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    return !quern__queue_is_empty(&worker->assigned) || quern__jobs_has_any_job(jobs) ||
           (quern__worker_is_external(worker) &&
            !quern__queue_looks_empty(&jobs->queues, QUERN__QUEUE_CALLER));
}

/* Wakes all own threads and worker 0, as which the caller of end_threads rests. */
static void wake_all(quern_jobs *jobs)
{
    for (uint32_t index = 0; index < jobs->thread_count; index++)
        quern__parker_give(&jobs->workers[index].parker);
}

/* Stops the pool's threads. Precondition: the queues' lock is held and all workers rest. Returns false if a job
 * that only one certain worker may run is still queued; that worker will end its rest to run it. After success
 * no job can be assigned to a thread any more. Release: pairs with the acquire loads of has_stopped. */
static bool stop_locked(quern_jobs *jobs)
{
    if (!quern__queue_looks_empty(&jobs->queues, QUERN__QUEUE_CALLER)) return false;
    for (uint32_t index = 1; index < jobs->thread_count; index++)
        if (!quern__queue_is_empty(&jobs->workers[index].assigned)) return false;
    for (uint32_t index = 1; index < jobs->thread_count; index++)
        jobs->workers[index].assigned.is_open = false;
    atomic_store_explicit(&jobs->has_stopped, true, memory_order_release);
    return true;
}

/* Begins the rest of a worker that found no job while the pool ends. The last worker to rest stops the
 * threads. Returns false if there is a job for the worker after all.
 *
 * The queues' lock makes "all workers rest and there is no job" one observation: jobs are queued and
 * assigned under it, workers begin and end their rest under it, and only a worker that does not rest has
 * jobs in its deque. Relaxed: the lock orders the count. */
static bool begin_rest(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    bool stops = false;
    quern__mutex_lock(&jobs->queues.mutex);
    bool can_rest = !may_find_job(worker);
    if (can_rest && atomic_fetch_sub_explicit(&jobs->active_thread_count, 1, memory_order_relaxed) == 1)
        stops = stop_locked(jobs);
    quern__mutex_unlock(&jobs->queues.mutex);
    if (stops) wake_all(jobs);
    return can_rest;
}

/* Ends the rest if the worker may find a job. Returns false if it found none and still rests. Relaxed: the
 * lock orders the count. */
static bool end_rest(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    quern__mutex_lock(&jobs->queues.mutex);
    bool continues = !has_stopped(jobs) && may_find_job(worker);
    if (continues) atomic_fetch_add_explicit(&jobs->active_thread_count, 1, memory_order_relaxed);
    quern__mutex_unlock(&jobs->queues.mutex);
    return continues;
}

/* Sleeps until there is a job. A worker that pushes a job wakes resting workers like all sleepers
 * (quern__worker_sleep). Returns false when the threads stop. */
static bool sleep_at_rest(quern__worker *worker)
{
    while (!has_stopped(worker->jobs)) {
        quern__worker_sleep(worker);
        if (end_rest(worker)) return true;
    }
    return false;
}

/* Rests a worker that found no job while the pool ends. Returns false when the threads stop. */
static bool rest(quern__worker *worker)
{
    return !begin_rest(worker) || sleep_at_rest(worker);
}

static inline void worker_call_stop(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    if (jobs->thread_stop != NULL) jobs->thread_stop(jobs->user_data, worker->index);
}

static void *worker_main(void *argument)
{
    quern__worker *worker = argument;
    quern_jobs *jobs = worker->jobs;
    quern__job job;
    /* Wait until start_workers has set the final number of threads, which it does with the mutex locked. */
    quern__mutex_lock(&jobs->outside_mutex);
    quern__mutex_unlock(&jobs->outside_mutex);
    quern__worker_set_up_thread(worker);
    quern__current_worker = worker;
    for (;;) {
        if (quern__worker_find_job(worker, &job))
            quern__worker_run_job(worker, &job);
        else if (!is_stopping(jobs))
            quern__worker_sleep(worker);
        else if (!rest(worker))
            break;
    }
    worker_call_stop(worker);
    return NULL;
}

/* Announces that a worker on a host thread is idle. Returns false if a job arrived meanwhile and the thread
 * continues. Otherwise the worker belongs to the next thread that clears its bit. The count and the bit
 * pair with the reads in notify (search.c). The decrement is relaxed: one needless check for sleepers does
 * no harm. */
static bool become_idle(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    uint32_t index = worker->index;
    quern__worker_begin_sleep_time(worker);
    atomic_fetch_add_explicit(&jobs->sleeper_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__worker_mask_set(&jobs->idle, index);
    quern__jobs_sleeper_fence(jobs); /* between the announcement and the last search */
    bool has_work = quern__jobs_has_any_job(jobs) || !quern__queue_is_empty(&worker->assigned);
    if (!has_work || !quern__worker_mask_clear(&jobs->idle, index)) return true;
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    (void)quern__worker_end_sleep_time(worker);
    return false;
}

/* Release at the end: pairs with the acquire in wait_for_host_calls. The decrement of sleeper_count is
 * relaxed: one needless check for sleepers does no harm. */
void quern__jobs_run_on_host_thread(void *argument)
{
    quern__worker *worker = argument;
    quern_jobs *jobs = worker->jobs;
    quern__job job;
    worker->outer = quern__current_worker;
    quern__current_worker = worker;
    worker->has_slept = true;
    (void)quern__worker_end_sleep_time(worker);
    atomic_fetch_sub_explicit(&jobs->sleeper_count, 1, memory_order_relaxed);
    if (quern__parker_has_permit(&worker->parker)) quern__parker_take(&worker->parker);
    quern__worker *outer = worker->outer;
    do {
        quern__worker_call_start(worker);
        while (quern__worker_find_job(worker, &job))
            quern__worker_run_job(worker, &job);
        worker_call_stop(worker); /* before the worker is idle and another thread may run it */
    } while (!become_idle(worker));
    quern__current_worker = outer;
    /* Unlocking the mutex is the last access to the pool; see wait_for_host_calls. */
    quern__mutex_lock(&jobs->outside_mutex);
    atomic_fetch_sub_explicit(&jobs->active_thread_count, 1, memory_order_release);
    quern__mutex_unlock(&jobs->outside_mutex);
}

/* -------------------------------------------------------------------------------------------- lifetime */

static quern_result check_thread_count(uint32_t thread_count, uint32_t external_count, const char *function)
{
    if (external_count > QUERN_MAX_EXTERNAL_THREADS)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: external_thread_count is %u; the limit is %d (QUERN_MAX_EXTERNAL_THREADS)",
                           function, (unsigned)external_count, QUERN_MAX_EXTERNAL_THREADS);
    if (thread_count <= QUERN_MAX_THREADS + 1 - external_count) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: thread_count %u and external_thread_count %u make more than %d workers (QUERN_MAX_THREADS); "
        "lower one of them. The first external thread is one of thread_count",
        function, (unsigned)thread_count, (unsigned)external_count, QUERN_MAX_THREADS);
}

uint32_t quern__default_thread_count(uint32_t external_count, uint32_t processor_count,
                                     uint32_t processor_quota)
{
    const uint32_t usable_count = processor_count < processor_quota ? processor_count : processor_quota;
    const uint32_t most = QUERN_MAX_THREADS + 1 - external_count;
    return usable_count < most ? usable_count : most;
}

static uint32_t choose_thread_count(uint32_t requested_count, uint32_t external_count,
                                    const quern_processors *processors)
{
    if (requested_count != 0) return requested_count;
    return quern__default_thread_count(external_count, quern__count_processors_with_caller(processors),
                                       quern__read_processor_quota(""));
}

/* --------------------------------------------------------------------------------------------- workers */

/* The first external slot is already counted as one of the threads. */
static uint32_t count_workers(uint32_t thread_count, uint32_t external_count)
{
    return thread_count - 1 + external_count;
}

static void release_workers(quern_jobs *jobs, quern__worker *workers, uint32_t count, uint32_t parker_count)
{
    for (uint32_t index = 0; index < parker_count; index++)
        quern__parker_deinit(&workers[index].parker);
    quern__release(&jobs->allocator, workers, count * sizeof(quern__worker), _Alignof(quern__worker));
}

static bool init_worker(quern_jobs *jobs, quern__worker *worker, uint32_t index, bool has_no_thieves)
{
    memset((void *)worker, 0, sizeof *worker);
    quern__deque_init(&worker->deque, has_no_thieves);
    atomic_init(&worker->served_scope, NULL);
    atomic_init(&worker->served_from_index, 0);
    atomic_init(&worker->awaited_scope, NULL);
    atomic_init(&worker->more_awaited_count, 0);
    worker->jobs = jobs;
    worker->index = index;
    worker->random = index;
    return quern__parker_init(&worker->parker);
}

/* Returns the workers, or NULL, with nothing allocated, if there is no memory. */
static quern__worker *make_workers(quern_jobs *jobs, uint32_t count)
{
    quern__worker *workers =
        quern__allocate(&jobs->allocator, count * sizeof(quern__worker), _Alignof(quern__worker));
    if (workers == NULL) return NULL;
    for (uint32_t index = 0; index < count; index++) {
        if (init_worker(jobs, &workers[index], index, count == 1)) continue;
        release_workers(jobs, workers, count, index);
        return NULL;
    }
    return workers;
}

static quern_result fail_workers(const char *function, const char *name, uint32_t count)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "%s: no memory for job pool '%s' of %u workers (%zu bytes)", function, name,
                       (unsigned)count, sizeof(quern_jobs) + count * sizeof(quern__worker));
}

/* --------------------------------------------------------------------------------------- start and end */

/* Relaxed: no other thread is in the pool yet. */
static void clear_mask(quern__worker_mask *mask)
{
    for (uint32_t word = 0; word < QUERN__WORKER_MASK_WORDS; word++)
        atomic_store_explicit(&mask->words[word], 0, memory_order_relaxed);
}

/* Sets all values that depend on the number of threads. Relaxed: outside threads read nothing else through
 * these members. */
static void set_thread_count(quern_jobs *jobs, uint32_t thread_count)
{
    jobs->thread_count = thread_count;
    jobs->worker_count = count_workers(thread_count, jobs->external_count);
    atomic_store_explicit(&jobs->public_thread_count, thread_count, memory_order_relaxed);
    atomic_store_explicit(&jobs->fork_count, jobs->worker_count > 1 ? quern__fork_count : QUERN__NO_THREADS,
                          memory_order_relaxed);
}

/* Installs new workers and resets the state of sleep and stop. No other thread is in the pool; starting the
 * threads publishes the relaxed stores. */
static void set_workers(quern_jobs *jobs, quern__worker *workers, uint32_t thread_count)
{
    quern__count_forks();
    jobs->workers = workers;
    set_thread_count(jobs, thread_count);
    jobs->worker_capacity = jobs->worker_count;
    jobs->processor_count = quern_processor_count();
    jobs->spin_ns =
        thread_count > quern__count_processors_with_caller(&jobs->processors) ? 0 : jobs->requested_spin_ns;
    jobs->uses_asymmetric_fence =
        (jobs->worker_count == 1 || jobs->spin_ns != 0) && quern__can_fence_all_threads();
    clear_mask(&jobs->idle);
    clear_mask(&jobs->blocked);
    atomic_store_explicit(&jobs->sleeper_count, 0, memory_order_relaxed);
    atomic_store_explicit(&jobs->is_stopping, false, memory_order_relaxed);
    atomic_store_explicit(&jobs->has_stopped, false, memory_order_relaxed);
    atomic_store_explicit(&jobs->active_thread_count, 0, memory_order_relaxed);
}

/* Makes all workers idle that will run on host threads. Relaxed: no outside thread knows the pool yet. */
static void open_host_workers(quern_jobs *jobs)
{
    atomic_store_explicit(&jobs->sleeper_count, jobs->thread_count - 1, memory_order_relaxed);
    for (uint32_t index = 1; index < jobs->thread_count; index++) {
        quern__queues_open(&jobs->queues, &jobs->workers[index].assigned);
        quern__worker_begin_idle_time(&jobs->workers[index], quern__clock_ns());
        quern__worker_begin_sleep_time(&jobs->workers[index]);
        quern__worker_mask_set(&jobs->idle, index);
    }
}

/* Starts the pool's threads. Returns the number of workers that exist, worker 0 included. The count is
 * relaxed: starting a thread publishes it, and before that only this thread reads it. */
static uint32_t start_threads(quern_jobs *jobs)
{
    for (uint32_t index = 1; index < jobs->thread_count; index++) {
        quern__worker *worker = &jobs->workers[index];
        atomic_fetch_add_explicit(&jobs->active_thread_count, 1, memory_order_relaxed);
        quern__queues_open(&jobs->queues, &worker->assigned);
        quern__worker_begin_idle_time(worker, quern__clock_ns()); /* idle until it finds its first job */
        if (quern__thread_start(&worker->thread, jobs->stack_bytes, worker_main, worker)) continue;
        atomic_fetch_sub_explicit(&jobs->active_thread_count, 1, memory_order_relaxed);
        (void)quern__queues_close(&jobs->queues, &worker->assigned);
        return index;
    }
    return jobs->thread_count;
}

/* Starts the pool's threads. If the system refuses one, fails with THREAD_UNAVAILABLE, and the pool keeps those that
 * started. The threads wait for the mutex before they begin, because all of them read the final count. */
static quern_result start_workers(quern_jobs *jobs, const char *function)
{
    if (jobs->host_threads.submit != NULL) {
        open_host_workers(jobs);
        return QUERN_OK;
    }
    const uint32_t requested_count = jobs->thread_count;
    quern__mutex_lock(&jobs->outside_mutex);
    const uint32_t count = start_threads(jobs);
    set_thread_count(jobs, count);
    quern__mutex_unlock(&jobs->outside_mutex);
    if (count == requested_count) return QUERN_OK;
    return quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE,
                       "%s: the system refused thread %u of %u of job pool '%s'; ask for fewer "
                       "(thread_count), or smaller stacks (stack_bytes, here %zu; 0: the system's default)",
                       function, (unsigned)count, (unsigned)requested_count - 1, jobs->name,
                       jobs->stack_bytes);
}

/* Runs all jobs that worker 0 may run. Returns whether there was any. */
static bool drain(quern_jobs *jobs)
{
    quern__worker *caller = &jobs->workers[0];
    bool had_any = false;
    quern__job job;
    while (quern__worker_try_take_job(caller, &job) ||
           quern__queues_take(&jobs->queues, QUERN__QUEUE_CALLER, NULL, &job)) {
        quern__worker_run_job(caller, &job);
        quern__worker_flush_finished(caller);
        had_any = true;
    }
    return had_any;
}

/* Ends the pool's threads after all jobs have run. The caller runs jobs like a worker, and alone runs
 * caller-only jobs. Release: pairs with the acquire in is_stopping. The count is relaxed: no worker rests
 * before is_stopping is set. */
static void end_threads(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->active_thread_count, 1, memory_order_relaxed);
    atomic_store_explicit(&jobs->is_stopping, true, memory_order_release);
    wake_all(jobs);
    do
        (void)drain(jobs);
    while (rest(&jobs->workers[0]));
    for (uint32_t index = 1; index < jobs->thread_count; index++)
        quern__thread_join(&jobs->workers[index].thread);
}

/* Closes all queues of assigned jobs after the threads of the workers have ended. The caller runs the jobs that
 * outside threads assigned meanwhile. Returns whether there was any. */
static bool close_assigned(quern_jobs *jobs)
{
    bool had_any = false;
    quern__job job;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        while (!quern__queues_close(&jobs->queues, &jobs->workers[index].assigned))
            if (quern__worker_take_assigned(&jobs->workers[index], NULL, &job)) {
                quern__worker_run_job(&jobs->workers[0], &job);
                quern__worker_flush_finished(&jobs->workers[0]);
                had_any = true;
            }
    return had_any;
}

/* Waits until the last call of quern__jobs_run_on_host_thread has unlocked the mutex. */
static void wait_for_outside_mutex(quern_jobs *jobs)
{
    quern__mutex_lock(&jobs->outside_mutex);
    quern__mutex_unlock(&jobs->outside_mutex);
}

/* Waits until the host's calls have returned, which they do when there is no job; the host decides how long
 * that takes. Acquire: pairs with the release at the end of quern__jobs_run_on_host_thread. */
static void wait_for_host_calls(quern_jobs *jobs)
{
    while (atomic_load_explicit(&jobs->active_thread_count, memory_order_acquire) != 0) {
        (void)drain(jobs);
        quern__thread_sleep(POLL_NS);
    }
    wait_for_outside_mutex(jobs);
}

/* Ends the work of all workers. The caller is alone inside. Afterwards all jobs submitted before have run,
 * and no thread works for the pool. Acquire: pairs with the release at the end of
 * quern__jobs_run_on_host_thread. */
static void end_workers(quern_jobs *jobs)
{
    if (jobs->host_threads.submit == NULL) {
        end_threads(jobs);
        return;
    }
    /* Repeated because outside calls, and the jobs that the caller drains, may request host threads
     * again. */
    do {
        wait_for_host_calls(jobs);
        (void)drain(jobs);
    } while (atomic_load_explicit(&jobs->active_thread_count, memory_order_acquire) != 0 ||
             close_assigned(jobs));
}

/* Enters exclusively, for a resize or the end of the pool. Returns false if another thread is inside. If that
 * thread is inside only to submit a job, the call waits until it has left; threads that submit during this wait
 * do not enter. seq_cst: pairs with quern__jobs_begin_outside_call. A submitting call either sees
 * exclusive_request_count, or is counted before outside_call_count is read here. So if no call was counted, the
 * thread inside does not submit. Relaxed at the end: a submitting call that still sees the request does not
 * enter, which is harmless. */
static bool try_enter_exclusive(quern_jobs *jobs)
{
    if (quern__jobs_current_worker(jobs) != NULL) return false;
    atomic_fetch_add_explicit(&jobs->exclusive_request_count, 1, memory_order_seq_cst);
    for (;;) {
        bool has_calls = atomic_load_explicit(&jobs->outside_call_count, memory_order_seq_cst) != 0;
        bool has_no_thieves = quern__jobs_try_enter_exclusive(jobs);
        if (has_no_thieves || !has_calls) {
            atomic_fetch_sub_explicit(&jobs->exclusive_request_count, 1, memory_order_relaxed);
            return has_no_thieves;
        }
        quern__thread_sleep(POLL_NS);
    }
}

/* ------------------------------------------------------------------------------ replacing the workers */

/* Lets outside threads access the workers again, and wakes a worker if there are jobs: one may have been
 * queued meanwhile without waking a worker. Either the lock orders its push before this check, or the visit
 * after the push succeeds. seq_cst: pairs with quern__jobs_begin_visit. */
static void open_to_visitors(quern_jobs *jobs)
{
    atomic_store_explicit(&jobs->is_replacing_workers, false, memory_order_seq_cst);
    quern__mutex_lock(&jobs->queues.mutex);
    quern__mutex_unlock(&jobs->queues.mutex);
    if (quern__jobs_has_any_job(jobs)) quern__jobs_notify_sleepers(jobs, NULL, NULL);
}

/* Keeps outside threads from accessing the workers, and waits for visits in progress. Returns false, with
 * nothing changed, if a visitor requested host threads meanwhile, which now work for the pool. seq_cst and
 * acquire: pairs with quern__jobs_begin_visit and quern__jobs_end_visit. */
static bool close_to_visitors(quern_jobs *jobs)
{
    atomic_store_explicit(&jobs->is_replacing_workers, true, memory_order_seq_cst);
    for (uint32_t look = 0; atomic_load_explicit(&jobs->visitor_count, memory_order_seq_cst) != 0; look++)
        quern__thread_spin_wait(look);
    if (atomic_load_explicit(&jobs->active_thread_count, memory_order_acquire) == 0) {
        wait_for_outside_mutex(jobs);
        return true;
    }
    open_to_visitors(jobs);
    return false;
}

/* Replaces the pool's workers after their threads have ended, and starts the new threads. A function of its own for
 * tests/models/resize.c, which brings workers that it has not allocated. */
static quern_result install_workers(quern_jobs *jobs, quern__worker *workers, uint32_t thread_count)
{
    quern__worker *before = jobs->workers;
    const uint32_t capacity = jobs->worker_capacity;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        quern__worker_return_spare_nodes(&before[index]);
    /* Submitted loops cannot be reused: they have one slot per old worker. */
    quern__jobs_free_submitted_loops(jobs);
    set_workers(jobs, workers, thread_count);
    quern__jobs_rebind_worker_0(jobs, before);
    release_workers(jobs, before, capacity, capacity);
    return start_workers(jobs, "quern_jobs_resize");
}

/* Replaces the workers by new ones for this many threads. The caller is alone inside, and leaves. */
static quern_result replace_workers(quern_jobs *jobs, uint32_t thread_count)
{
    const uint32_t worker_count = count_workers(thread_count, jobs->external_count);
    quern__worker *workers = make_workers(jobs, worker_count);
    quern_result result = QUERN_OK;
    if (workers != NULL) {
        do
            end_workers(jobs);
        while (!close_to_visitors(jobs));
        result = install_workers(jobs, workers, thread_count);
        open_to_visitors(jobs);
    } else {
        result = fail_workers("quern_jobs_resize", jobs->name, worker_count);
    }
    quern__jobs_leave_exclusive(jobs);
    return result;
}

/* ------------------------------------------------------------------------------------------- the calls */

static bool init_locks(quern_jobs *jobs)
{
    if (!quern__mutex_init(&jobs->outside_mutex)) return false;
    if (quern__condition_init(&jobs->outside_condition)) {
        if (quern__queues_init(&jobs->queues, &jobs->allocator)) return true;
        quern__condition_deinit(&jobs->outside_condition);
    }
    quern__mutex_deinit(&jobs->outside_mutex);
    return false;
}

static void release_memory(quern_jobs *jobs)
{
    quern_allocator allocator = jobs->allocator;
    quern__jobs_free_submitted_loops(jobs);
    quern__release(&allocator, jobs->workers, jobs->worker_capacity * sizeof(quern__worker),
                   _Alignof(quern__worker));
    quern__queues_release(&jobs->queues);
    quern__observer_remove_user(jobs->observer);
    quern__release(&allocator, jobs, sizeof *jobs, _Alignof(quern_jobs));
}

static void release_pool(quern_jobs *jobs)
{
    quern__jobs_drop_graphs(jobs);
    for (uint32_t index = 0; index < jobs->worker_capacity; index++)
        quern__parker_deinit(&jobs->workers[index].parker);
    quern__mutex_deinit(&jobs->queues.mutex);
    quern__condition_deinit(&jobs->outside_condition);
    quern__mutex_deinit(&jobs->outside_mutex);
    release_memory(jobs);
    quern__registrations_drop_unused_key();
}

/* Allocates a pool from a definition that complete_def has completed. */
static quern_jobs *allocate_pool(const quern_jobs_def *def)
{
    quern_jobs *jobs = quern__allocate(&def->allocator, sizeof *jobs, _Alignof(quern_jobs));
    if (jobs == NULL) return NULL;
    memset((void *)jobs, 0, sizeof *jobs);
    jobs->allocator = def->allocator;
    jobs->host_threads = def->host_threads;
    /* a trace begins with an observer; see profile_internal.h */
    jobs->observer = (quern__observer *)(void *)def->trace;
    jobs->requested_spin_ns = def->spin_ns;
    jobs->pin_threads = def->pin_threads;
    jobs->processors = def->processors;
    jobs->stack_bytes = def->stack_bytes;
    jobs->thread_start = def->thread_start;
    jobs->thread_stop = def->thread_stop;
    jobs->user_data = def->user_data;
    jobs->external_count = def->external_thread_count;
    snprintf(jobs->name, sizeof jobs->name, "%s", def->name);
    const uint32_t worker_count = count_workers(def->thread_count, def->external_thread_count);
    quern__worker *workers = make_workers(jobs, worker_count);
    if (workers != NULL && init_locks(jobs)) {
        set_workers(jobs, workers, def->thread_count);
        quern__observer_add_user(jobs->observer);
        return jobs;
    }
    if (workers != NULL) release_workers(jobs, workers, worker_count, worker_count);
    quern__release(&def->allocator, jobs, sizeof *jobs, _Alignof(quern_jobs));
    return NULL;
}

/* Validates a definition and replaces zeros by their defaults. */
static quern_result complete_def(quern_jobs_def *def)
{
    if (def->name == NULL) def->name = "quern";
    quern_result result = quern__check_name(def->name, "job pool");
    if (def->external_thread_count == 0) def->external_thread_count = 1;
    if (result == QUERN_OK)
        result = check_thread_count(def->thread_count, def->external_thread_count, "quern_jobs_create");
    if (result == QUERN_OK && def->disable_spinning && def->spin_ns != 0)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_create: job pool '%s' sets spin_ns (%u) and disable_spinning; leave out one of "
            "them",
            def->name, (unsigned)def->spin_ns);
    if (result == QUERN_OK) result = quern__jobs_check_own_threads(def);
    const quern_allocator given = def->allocator;
    if (result == QUERN_OK) result = quern__choose_allocator(&given, "quern_jobs_create", &def->allocator);
    if (result == QUERN_OK)
        def->thread_count =
            choose_thread_count(def->thread_count, def->external_thread_count, &def->processors);
    if (def->spin_ns == 0 && !def->disable_spinning) def->spin_ns = DEFAULT_SPIN_NS;
    return result;
}

quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs)
{
    if (out_jobs == NULL) return quern__fail_null("quern_jobs_create", "out_jobs");
    quern_jobs_def complete = def != NULL ? *def : (quern_jobs_def){0};
    quern_result result = quern__in_call(complete_def(&complete), "quern_jobs_create");
    if (result != QUERN_OK) return result;
    quern_jobs *jobs = allocate_pool(&complete);
    if (jobs == NULL)
        return fail_workers("quern_jobs_create", complete.name,
                            count_workers(complete.thread_count, complete.external_thread_count));
    result = start_workers(jobs, "quern_jobs_create");
    if (result == QUERN_OK) {
        *out_jobs = jobs;
        return QUERN_OK;
    }
    /* The start of a thread failed. No job was submitted yet. */
    if (quern__jobs_try_enter_exclusive(jobs)) {
        end_workers(jobs);
        quern__jobs_leave(jobs);
    }
    release_pool(jobs);
    return result;
}

static const char *busy_reason(const quern_jobs *jobs)
{
    return quern__jobs_registered_count(jobs) != 0
               ? "has threads that are registered (quern_jobs_unregister_thread)"
               : "is running work";
}

/* Drops the jobs that still wait for counters. If an outside thread submits such a job at the same time,
 * the job runs. Afterwards no thread and no counter refers to the pool. */
static void drop_waiting_jobs(quern_jobs *jobs)
{
    do {
        quern__jobs_drop_links(jobs);
        /* Until no outside thread is in a call that may submit jobs or end waits. Acquire: pairs with the
         * release in quern__jobs_end_outside_call. */
        while (atomic_load_explicit(&jobs->outside_call_count, memory_order_acquire) != 0)
            quern__thread_sleep(POLL_NS);
        wait_for_host_calls(jobs);
    } while (drain(jobs));
}

void quern_jobs_destroy(quern_jobs *jobs)
{
    if (jobs == NULL) return;
    if (quern__jobs_has_threads_elsewhere(jobs)) {
        /* In a forked child: the pool's jobs, and the threads that may hold its locks, exist only in the
         * parent. So no lock is acquired and no job runs. */
        quern__registration_forget(jobs);
        release_memory(jobs);
        return;
    }
    if (quern__registration_of(jobs) != NULL) (void)quern_jobs_unregister_thread(jobs);
    if (!try_enter_exclusive(jobs)) {
        quern__report_violation(QUERN_ERROR_POOL_BUSY,
                                "quern_jobs_destroy: job pool '%s' %s; it is left as it is", jobs->name,
                                busy_reason(jobs));
        return;
    }
    end_workers(jobs);
    drop_waiting_jobs(jobs);
    quern__jobs_leave(jobs);
    release_pool(jobs);
}

quern_result quern_jobs_resize(quern_jobs *jobs, uint32_t thread_count)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_resize", "jobs");
    quern_result result = check_thread_count(thread_count, jobs->external_count, "quern_jobs_resize");
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_resize");
    if (result != QUERN_OK) return result;
    thread_count = choose_thread_count(thread_count, jobs->external_count, &jobs->processors);
    if (!try_enter_exclusive(jobs))
        return quern__fail(QUERN_ERROR_POOL_BUSY, "quern_jobs_resize: job pool '%s' %s", jobs->name,
                           busy_reason(jobs));
    return replace_workers(jobs, thread_count);
}

/* Relaxed: see set_thread_count. */
uint32_t quern_jobs_thread_count(const quern_jobs *jobs)
{
    return jobs != NULL ? atomic_load_explicit(&jobs->public_thread_count, memory_order_relaxed) : 0;
}

uint32_t quern_jobs_worker_count(const quern_jobs *jobs)
{
    return jobs != NULL ? count_workers(quern_jobs_thread_count(jobs), jobs->external_count) : 0;
}
