/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs.h"

/* Jobs that are submitted, or run as they are by the call that gives them. Where a submitted job goes is a
 * matter of who submits it: a worker puts it into its own deque, all others into a queue. */

enum {
    FULL_FOR_JOBS = 32,    /* a deque that was full counts as full for so many more */
    MAX_AT_ONCE_DEPTH = 64 /* jobs on one stack that ran in the call that submitted them */
};

/* ---------------------------------------------------------------------------------- running a job here */

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
    worker = quern__current_worker;
    quern__worker_note_processor(worker);
    run_here(worker, function, user_data);
    quern__jobs_leave(jobs);
    return QUERN_OK;
}

static uint32_t run_caller_jobs(quern__worker *guest)
{
    uint32_t count = 0;
    quern__job job;
    for (; quern__queues_take(&guest->jobs->queues, QUERN__QUEUE_CALLER, NULL, &job); count++)
        quern__worker_run(guest, &job);
    quern__worker_settle(guest);
    return count;
}

quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = 0;
    if (jobs == NULL) return quern__fail_null("quern_jobs_run_caller_jobs", "jobs");
    bool is_outside = quern__jobs_current_worker(jobs) == NULL;
    quern_result result = QUERN_OK;
    if (is_outside) result = quern__jobs_enter(jobs, "quern_jobs_run_caller_jobs");
    if (result != QUERN_OK) return result;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    uint32_t count = quern__worker_is_guest(worker) ? run_caller_jobs(worker) : 0;
    if (out_count != NULL) *out_count = count;
    if (is_outside) quern__jobs_leave(jobs);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------- from a definition */

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

/* --------------------------------------------------------------------------------------- where it goes */

/* A worker that is looking for its next job takes the first one itself: nobody has to be woken for it. */
static void tell(quern__worker *worker, const void *scope)
{
    if (worker->takes_next)
        worker->takes_next = false;
    else
        quern__jobs_notify(worker->jobs, worker, scope);
}

void quern__node_submit(quern__node *node, quern__worker *worker)
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
        quern__jobs_tell_guests(jobs);
    else
        quern__jobs_notify(jobs, NULL, scope);
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
    quern__node_submit(node, NULL);
    return QUERN_OK;
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
    if (counter != NULL) quern__counter_finish(counter, 1, worker);
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
    quern__worker *guest = is_plain ? quern__jobs_try_enter(jobs) : NULL;
    result = guest != NULL ? submit_to(guest, def) : submit_to_queue(jobs, def);
    if (guest != NULL) quern__jobs_leave(jobs);
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
    quern__counter_add_node(after, node, quern__jobs_current_worker(jobs));
    return QUERN_OK;
}
