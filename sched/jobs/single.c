/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs.h"

/* Single jobs: forks, submitted jobs, counters.
 *
 * A fork is a job on the stack of whoever forked it, and its own counter. As long as nobody steals it
 * nothing is counted and no atomic operation is made but for those of the deque.
 *
 * A counter is one word, how many are pending, and a list of nodes: jobs to submit when it comes to zero,
 * and workers that sleep until then.
 *
 *     pending:  | HAS_NODES | how many jobs and holds |   0: finished; nobody will touch the counter again
 *
 * The last point is what lets a counter live on the stack of whoever waits for it. Whoever takes the last
 * off does not write 0 while there are nodes: it swaps the word to 1 instead, a hold of its own without
 * HAS_NODES, takes the list, and takes its hold off, which may meet nodes that came meanwhile: then all of
 * that again. Only when nothing of the counter is left in its hands it fires the nodes, which live
 * elsewhere. A node is added under a hold, too.
 *
 * Whoever fires a node makes somebody go on, who may destroy the pool of that node next. A worker of this
 * pool is waited for by quern_jobs_destroy; a thread that is none says that it is there (outside_calls),
 * from before it fires until it is done with the pool. The same holds for a thread that submits.
 *
 * Workers keep finished jobs back and take several off a counter at once: the word is contended. They may,
 * as long as the next job that they run is counted by the same counter, since until then it cannot finish
 * anyway. Before anything else runs, and when there is nothing to run, they settle. */

#define HAS_NODES (1u << 31)

enum { FORK_OPEN, FORK_DONE, FORK_SLEEPING };

enum {
    FULL_FOR_JOBS = 32,
    MAX_AT_ONCE_DEPTH = 64 /* jobs on one stack that ran in the call that submitted them */
};

/* ---------------------------------------------------------------------------------------- counters */

/* Writes that come from jobs and holds are released; the last one acquires them all and hands them on.
 * Returns whether this call has to fire the nodes: then one is left pending. */
static bool take_off(quern_counter *counter, uint32_t count)
{
    uint32_t pending = atomic_load_explicit(&counter->pending, memory_order_relaxed);
    uint32_t left;
    do
        left = pending == (HAS_NODES | count) ? 1 : pending - count;
    while (!atomic_compare_exchange_weak_explicit(&counter->pending, &pending, left, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return pending == (HAS_NODES | count);
}

/* The mutex covers all of this, so the sleeper, who takes it before it goes, and its pool are there until
 * the end. It may have become worker 0 meanwhile. */
static void fire_outside(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    pthread_mutex_lock(&jobs->outside_mutex);
    atomic_store_explicit(&node->has_fired, true, memory_order_release);
    pthread_cond_broadcast(&jobs->outside_condition);
    quern__parker_give(&jobs->workers[0].parker);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

/* A worker that is looking for its next job takes the first one itself: nobody has to be woken for it. */
static void tell(quern__worker *worker, const void *scope)
{
    if (worker->takes_next)
        worker->takes_next = false;
    else
        quern__jobs_notify(worker->jobs, worker, scope);
}

static void place(quern__node *node, quern__worker *worker)
{
    quern_jobs *jobs = node->jobs;
    const void *scope = node->job.scope;
    bool is_plain = node->queue == QUERN__QUEUE_NORMAL && worker != NULL && worker->jobs == jobs;
    if (is_plain && quern__deque_push(&worker->deque, &node->job, QUERN__JOB_DATA_WORDS)) {
        quern__queues_give_node(&jobs->queues, node);
        tell(worker, scope);
        return;
    }
    bool is_for_caller = node->queue == QUERN__QUEUE_CALLER;
    quern__queues_push(&jobs->queues, node);
    if (is_for_caller)
        quern__parker_give(&jobs->workers[0].parker);
    else
        quern__jobs_notify(jobs, NULL, scope);
}

static void wake_sleeper(quern__node *node)
{
    quern__worker *sleeper = node->worker;
    /* Release pairs with counter_is_done; then the node is gone. */
    atomic_store_explicit(&node->has_fired, true, memory_order_release);
    quern__parker_give(&sleeper->parker);
}

static bool is_inside(const quern__node *node, const quern__worker *worker)
{
    return worker != NULL && worker->jobs == node->jobs;
}

/* Ends the call that announce_calls has begun. */
static void fire(quern__node *node, quern__worker *worker)
{
    quern_jobs *jobs = node->jobs;
    bool is_call = !is_inside(node, worker);
    if (node->job.run != NULL)
        place(node, worker);
    else if (node->worker == NULL)
        fire_outside(node);
    else
        wake_sleeper(node);
    if (is_call) quern__jobs_end_outside_call(jobs);
}

/* In the order in which they were added. */
static quern__node *reverse(quern__node *list)
{
    quern__node *reversed = NULL;
    while (list != NULL) {
        quern__node *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

/* Before the counter is out of hand: from then on somebody may go on and destroy the pools of the nodes. */
static quern__node *announce_calls(quern__node *list, const quern__worker *worker)
{
    for (const quern__node *node = list; node != NULL; node = node->next)
        if (!is_inside(node, worker)) quern__jobs_begin_outside_call(node->jobs);
    return list;
}

/* Both lists have their newest first. */
static quern__node *join_lists(quern__node *newer, quern__node *older)
{
    if (newer == NULL) return older;
    quern__node *last = newer;
    while (last->next != NULL)
        last = last->next;
    last->next = older;
    return newer;
}

/* worker: the calling one, in whichever pool, or NULL. */
static void finish(quern_counter *counter, uint32_t count, quern__worker *worker)
{
    quern__node *nodes = NULL;
    bool has_nodes = take_off(counter, count);
    while (has_nodes) {
        /* Acquire pairs with the release in add_node. */
        quern__node *newer = atomic_exchange_explicit(&counter->nodes, NULL, memory_order_acquire);
        nodes = join_lists(announce_calls(newer, worker), nodes);
        has_nodes = take_off(counter, 1);
    }
    for (quern__node *node = reverse(nodes), *next; node != NULL; node = next) {
        next = node->next;
        fire(node, worker);
    }
}

/* Fires the node at once when the counter is at zero. */
static void add_node(quern_counter *counter, quern__node *node, quern__worker *worker)
{
    /* Acquire: what the jobs wrote, when it was zero. */
    atomic_fetch_add_explicit(&counter->pending, 1, memory_order_acq_rel);
    void *next = atomic_load_explicit(&counter->nodes, memory_order_relaxed);
    do
        node->next = next;
    while (!atomic_compare_exchange_weak_explicit(&counter->nodes, &next, node, memory_order_release,
                                                  memory_order_relaxed));
    atomic_fetch_or_explicit(&counter->pending, HAS_NODES, memory_order_relaxed);
    finish(counter, 1, worker);
}

bool quern_counter_is_done(const quern_counter *counter)
{
    return counter == NULL || atomic_load_explicit(&counter->pending, memory_order_acquire) == 0;
}

void quern_counter_hold(quern_counter *counter)
{
    if (counter != NULL) atomic_fetch_add_explicit(&counter->pending, 1, memory_order_relaxed);
}

quern_result quern_jobs_release(quern_jobs *jobs, quern_counter *counter)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_release", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_release", "counter");
    if (quern_counter_is_done(counter))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_release: the counter is at zero; nothing holds it");
    quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_release");
    if (result != QUERN_OK) return result;
    finish(counter, 1, quern__current_worker);
    return QUERN_OK;
}

void quern__worker_settle_slowly(quern__worker *worker)
{
    /* Cast: the scope of a submitted job is its counter. */
    quern_counter *counter = (quern_counter *)(uintptr_t)worker->done_counter;
    uint32_t count = worker->done_count;
    worker->done_counter = NULL;
    worker->done_count = 0;
    finish(counter, count, worker);
}

/* ------------------------------------------------------------------------------------------- submit */

static quern_result refuse_def(const quern_jobs *jobs, const quern_job_def *def, const char *function)
{
    if (jobs == NULL) return quern__fail_null(function, "jobs");
    if (def == NULL) return quern__fail_null(function, "def");
    if (def->function == NULL) return quern__fail_null(function, "def->function");
    if (def->payload_bytes > QUERN_JOB_PAYLOAD_BYTES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: a payload of %u bytes; a job has room for %d (QUERN_JOB_PAYLOAD_BYTES)",
                           function, (unsigned)def->payload_bytes, QUERN_JOB_PAYLOAD_BYTES);
    if (def->payload_bytes != 0 && def->payload == NULL) return quern__fail_null(function, "def->payload");
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: no priority %d", function, (int)def->priority);
}

static bool is_good(const quern_jobs *jobs, const quern_job_def *def)
{
    return jobs != NULL && def != NULL && def->function != NULL &&
           def->payload_bytes <= QUERN_JOB_PAYLOAD_BYTES &&
           (def->payload_bytes == 0 || def->payload != NULL) &&
           (uint32_t)def->priority <= QUERN_PRIORITY_LOW;
}

static void run_submitted(quern__job *job, quern__worker *worker)
{
    quern_job_function *function = (quern_job_function *)(uintptr_t)job->target;
    function(job->data, worker->index);
    if (job->scope == NULL) return;
    if (worker->done_counter != job->scope) quern__worker_settle(worker);
    worker->done_counter = job->scope;
    worker->done_count++;
}

_Static_assert(sizeof(uintptr_t) * QUERN__JOB_DATA_WORDS >= QUERN_JOB_PAYLOAD_BYTES,
               "room for the payload");

/* Word by word, as it was probably written a moment ago: a processor can read back a store that has not
 * reached the cache, but not several at once, and then everything before has to end first. */
static void copy_payload(const quern_job_def *def, uintptr_t *data)
{
    const unsigned char *payload = def->payload;
    uint32_t word_count = def->payload_bytes / (uint32_t)sizeof(uintptr_t);
    uint32_t rest = def->payload_bytes % (uint32_t)sizeof(uintptr_t);
    for (uint32_t i = 0; i < word_count; i++)
        memcpy(&data[i], payload + i * sizeof(uintptr_t), sizeof(uintptr_t));
    if (rest == 4)
        memcpy(&data[word_count], payload + word_count * sizeof(uintptr_t), 4);
    else if (rest != 0)
        memcpy(&data[word_count], payload + word_count * sizeof(uintptr_t), rest);
}

static void make_job(const quern_job_def *def, quern__job *job)
{
    job->run = run_submitted;
    job->scope = def->counter;
    job->target = (void *)(uintptr_t)def->function;
    copy_payload(def, job->data);
}

static uint32_t data_words(const quern_job_def *def)
{
    return (uint32_t)((def->payload_bytes + sizeof(uintptr_t) - 1) / sizeof(uintptr_t));
}

/* Relaxed: whoever sees the counter above zero learns nothing else from it. */
static void count_job(const quern_job_def *def)
{
    if (def->counter != NULL) atomic_fetch_add_explicit(&def->counter->pending, 1, memory_order_relaxed);
}

static void run_here(quern__worker *worker, quern_job_function *function, void *user_data)
{
    int64_t floor = worker->floor;
    bool was_resting = worker->is_resting;
    worker->floor = quern__deque_bottom(&worker->deque);
    worker->is_resting = false;
    function(user_data, worker->index);
    worker->is_resting = was_resting;
    worker->floor = floor;
}

/* Counted like any other, since it may add to its counter, or submit what has to wait for that. */
static void run_at_once(quern__worker *worker, const quern_job_def *def)
{
    uintptr_t data[QUERN__JOB_DATA_WORDS];
    copy_payload(def, data);
    quern_counter *counter = def->counter;
    count_job(def);
    worker->at_once_depth++;
    run_here(worker, def->function, data);
    worker->at_once_depth--;
    if (counter != NULL) finish(counter, 1, worker);
}

/* Looking again at how full the deque is means to fetch a cache line that thieves write. So one that was
 * full counts as full for the next few jobs; others are busy with it anyway. */
static bool has_room(quern__worker *worker)
{
    if (!quern__deque_was_full(&worker->deque)) return true;
    if (worker->full_count != 0) {
        worker->full_count--;
        return false;
    }
    if (!quern__deque_is_full(&worker->deque)) return true;
    worker->full_count = FULL_FOR_JOBS;
    return false;
}

static quern__node *make_node(quern_jobs *jobs, const quern_job_def *def)
{
    static const quern__queue_index queues[] = {
        [QUERN_PRIORITY_NORMAL] = QUERN__QUEUE_NORMAL,
        [QUERN_PRIORITY_HIGH] = QUERN__QUEUE_HIGH,
        [QUERN_PRIORITY_LOW] = QUERN__QUEUE_LOW,
    };
    quern__node *node = quern__queues_take_node(&jobs->queues);
    if (node == NULL) return NULL;
    node->job = (quern__job){.run = NULL};
    make_job(def, &node->job);
    node->queue = def->caller_only ? QUERN__QUEUE_CALLER : queues[def->priority];
    node->jobs = jobs;
    node->worker = NULL;
    return node;
}

static quern_result fail_memory(const char *function)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a job that has to wait", function);
}

static quern_result submit_to_queue(quern_jobs *jobs, const quern_job_def *def)
{
    quern__node *node = make_node(jobs, def);
    if (node == NULL) return fail_memory("quern_jobs_submit");
    count_job(def);
    place(node, NULL);
    return QUERN_OK;
}

/* A full deque means that there is enough for all to do, so this worker does the job itself; but jobs that
 * submit jobs that submit jobs must not use up its stack. */
static quern_result submit_to(quern__worker *worker, const quern_job_def *def)
{
    if (!has_room(worker)) {
        if (worker->at_once_depth == MAX_AT_ONCE_DEPTH) return submit_to_queue(worker->jobs, def);
        run_at_once(worker, def);
        return QUERN_OK;
    }
    quern__job job;
    make_job(def, &job);
    count_job(def);
    quern__deque_push(&worker->deque, &job, data_words(def));
    quern__jobs_notify(worker->jobs, worker, def->counter);
    return QUERN_OK;
}

static quern_result submit_outside(quern_jobs *jobs, const quern_job_def *def)
{
    bool is_plain = def->priority == QUERN_PRIORITY_NORMAL && !def->caller_only;
    quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_submit");
    if (result != QUERN_OK) return result;
    quern__jobs_begin_outside_call(jobs);
    bool has_entered = is_plain && quern__jobs_try_enter(jobs);
    result = has_entered ? submit_to(&jobs->workers[0], def) : submit_to_queue(jobs, def);
    if (has_entered) quern__jobs_leave(jobs);
    quern__jobs_end_outside_call(jobs);
    return result;
}

quern_result quern_jobs_submit(quern_jobs *jobs, const quern_job_def *def)
{
    if (QUERN__UNLIKELY(!is_good(jobs, def))) return refuse_def(jobs, def, "quern_jobs_submit");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker == NULL) return submit_outside(jobs, def);
    if (def->priority != QUERN_PRIORITY_NORMAL || def->caller_only) return submit_to_queue(jobs, def);
    return submit_to(worker, def);
}

quern_result quern_jobs_submit_after(quern_jobs *jobs, const quern_job_def *def, quern_counter *after)
{
    if (!is_good(jobs, def)) return refuse_def(jobs, def, "quern_jobs_submit_after");
    if (after == NULL) return quern__fail_null("quern_jobs_submit_after", "after");
    if (after == def->counter)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_submit_after: def->counter is `after` itself; the job would wait for "
            "its own end. Count it with another counter");
    quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_submit_after");
    if (result != QUERN_OK) return result;
    quern__node *node = make_node(jobs, def);
    if (node == NULL) return fail_memory("quern_jobs_submit_after");
    count_job(def);
    add_node(after, node, quern__jobs_current_worker(jobs));
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------- wait for a counter */

typedef struct counter_wait {
    quern_counter *counter;
    quern__node node;
    bool is_asleep; /* the node is in the list: then the wait ends with it */
} counter_wait;

static bool counter_is_done(const quern__wait *wait)
{
    const counter_wait *waiting = wait->target;
    if (!waiting->is_asleep) return quern_counter_is_done(waiting->counter);
    return atomic_load_explicit(&waiting->node.has_fired, memory_order_acquire);
}

static void make_sleeper(quern__node *node, quern_jobs *jobs, quern__worker *worker)
{
    node->job.run = NULL;
    node->jobs = jobs;
    node->worker = worker;
    atomic_init(&node->has_fired, false);
}

static void announce_counter(const quern__wait *wait, quern__worker *worker)
{
    counter_wait *waiting = wait->target;
    make_sleeper(&waiting->node, worker->jobs, worker);
    waiting->is_asleep = true;
    add_node(waiting->counter, &waiting->node, worker);
}

static void wait_inside(quern__worker *worker, quern_counter *counter)
{
    counter_wait waiting = {.counter = counter, .is_asleep = false};
    quern__wait wait = {
        .scope = counter, .target = &waiting, .is_done = counter_is_done, .announce = announce_counter};
    quern__worker_wait(worker, &wait);
}

/* Until the node has fired or there is no worker 0. The predicate's first half changes under the mutex; for
 * the other see quern__jobs_leave, which broadcasts when it sees outside_count. */
static void sleep_outside(quern_jobs *jobs, const quern__node *node)
{
    atomic_fetch_add_explicit(&jobs->outside_count, 1, QUERN__HANDSHAKE_RELEASE);
    quern__jobs_sleeper_fence(jobs);
    pthread_mutex_lock(&jobs->outside_mutex);
    while (!atomic_load_explicit(&node->has_fired, memory_order_relaxed) &&
           atomic_load_explicit(&jobs->is_entered, memory_order_seq_cst))
        pthread_cond_wait(&jobs->outside_condition, &jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
    atomic_fetch_sub_explicit(&jobs->outside_count, 1, memory_order_relaxed);
}

/* Another thread is worker 0: sleeps, and takes its place when it has left. */
static void wait_outside(quern_jobs *jobs, quern_counter *counter)
{
    counter_wait waiting = {.counter = counter, .is_asleep = true};
    quern__wait wait = {.scope = counter, .target = &waiting, .is_done = counter_is_done};
    make_sleeper(&waiting.node, jobs, NULL);
    add_node(counter, &waiting.node, NULL);
    while (!counter_is_done(&wait)) {
        if (quern__jobs_try_enter(jobs)) {
            quern__worker_wait(&jobs->workers[0], &wait);
            quern__jobs_leave(jobs);
        } else {
            sleep_outside(jobs, &waiting.node);
        }
    }
    /* Whoever fired the node is done with it; see fire_outside. */
    pthread_mutex_lock(&jobs->outside_mutex);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_wait", "jobs");
    if (counter == NULL) return quern__fail_null("quern_jobs_wait", "counter");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) {
        wait_inside(worker, counter);
    } else if (!quern_counter_is_done(counter)) {
        quern_result result = quern__jobs_check_threads(jobs, "quern_jobs_wait");
        if (result != QUERN_OK) return result;
        bool has_entered = quern__jobs_try_enter(jobs);
        if (has_entered)
            wait_inside(&jobs->workers[0], counter);
        else
            wait_outside(jobs, counter);
        if (has_entered) quern__jobs_leave(jobs);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- fork and join */

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

static bool fork_is_done(const quern__wait *wait)
{
    const quern_fork *fork = wait->target;
    return atomic_load_explicit(&fork->state, memory_order_acquire) == FORK_DONE;
}

/* Fails when it is done already. */
static void announce_fork(const quern__wait *wait, quern__worker *worker)
{
    quern_fork *fork = wait->target;
    uint32_t expected = FORK_OPEN;
    (void)worker;
    atomic_compare_exchange_strong_explicit(&fork->state, &expected, FORK_SLEEPING, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Pops until the fork comes; what stands above it in the deque was forked or submitted later, by the same
 * job. False when it was stolen. */
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
    quern__wait wait = {.scope = fork, .target = fork, .is_done = fork_is_done, .announce = announce_fork};
    if (!fork_is_done(&wait) && !call_unless_stolen(worker, fork)) quern__worker_wait(worker, &wait);
    fork->owner = NULL;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------- from the outside */

quern_result quern_jobs_run(quern_jobs *jobs, quern_job_function *function, void *user_data)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_run", "jobs");
    if (function == NULL) return quern__fail_null("quern_jobs_run", "function");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) {
        run_here(worker, function, user_data);
        return QUERN_OK;
    }
    quern_result result = quern__jobs_enter(jobs, "quern_jobs_run");
    if (result != QUERN_OK) return result;
    run_here(&jobs->workers[0], function, user_data);
    quern__jobs_leave(jobs);
    return QUERN_OK;
}

static uint32_t run_caller_jobs(quern__worker *caller)
{
    uint32_t count = 0;
    quern__job job;
    for (; quern__queues_take(&caller->jobs->queues, QUERN__QUEUE_CALLER, NULL, &job); count++)
        quern__worker_run(caller, &job);
    quern__worker_settle(caller);
    return count;
}

quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = 0;
    if (jobs == NULL) return quern__fail_null("quern_jobs_run_caller_jobs", "jobs");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern_result result = QUERN_OK;
    if (worker == NULL) result = quern__jobs_enter(jobs, "quern_jobs_run_caller_jobs");
    if (result != QUERN_OK) return result;
    uint32_t count = worker == NULL || worker->index == 0 ? run_caller_jobs(&jobs->workers[0]) : 0;
    if (out_count != NULL) *out_count = count;
    if (worker == NULL) quern__jobs_leave(jobs);
    return QUERN_OK;
}
