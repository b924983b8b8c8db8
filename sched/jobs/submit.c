/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Submitted jobs, and jobs that run inside the call. A worker pushes a submitted job into its own deque; an
 * outside thread, or a job with a priority or a fixed worker, uses a queue. */

enum {
    ASSUMED_FULL_COUNT = 32, /* number of next submits for which a full deque counts as full */
    MAX_INLINE_DEPTH = 64    /* jobs on one stack that run inside the call that submitted them */
};

/* ----------------------------------------------------------------------- running a job inside the call */

static void run_here(quern__worker *worker, quern_job_function *function, void *user_data)
{
    int64_t floor = worker->floor;
    worker->floor = quern__deque_bottom(&worker->deque);
    function(user_data, worker->index);
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
    quern__worker_publish_processor(worker);
    run_here(worker, function, user_data);
    quern__jobs_leave(jobs);
    return QUERN_OK;
}

static uint32_t run_caller_jobs(quern__worker *worker)
{
    uint32_t count = 0;
    quern__job job;
    const void *allowed = quern__worker_awaited_scope(worker, NULL);
    while (quern__worker_take_assigned(worker, NULL, &job) ||
           quern__queues_take_allowed(&worker->jobs->queues, QUERN__QUEUE_CALLER, allowed, &job)) {
        quern__worker_run_job(worker, &job);
        count++;
    }
    quern__worker_flush_finished(worker);
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
    uint32_t count = quern__worker_is_external(worker) ? run_caller_jobs(worker) : 0;
    if (out_count != NULL) *out_count = count;
    if (is_outside) quern__jobs_leave(jobs);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------- from a definition */

static uint32_t payload_room(const quern_job_def *def)
{
    uint32_t extra_count = (uint32_t)(def->cancel != NULL) + (uint32_t)(def->name != NULL);
    return QUERN_JOB_PAYLOAD_BYTES - extra_count * (uint32_t)sizeof(uintptr_t);
}

static quern_result fail_def(const quern_jobs *jobs, const quern_job_def *def, const char *function)
{
    if (jobs == NULL) return quern__fail_null(function, "jobs");
    if (def == NULL) return quern__fail_null(function, "def");
    if (def->function == NULL) return quern__fail_null(function, "def->function");
    if (def->payload_bytes > payload_room(def))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: def->payload_bytes is %u; the limit is %u: QUERN_JOB_PAYLOAD_BYTES, less %u "
            "for each of .cancel and .name",
            function, (unsigned)def->payload_bytes, (unsigned)payload_room(def),
            (unsigned)sizeof(uintptr_t));
    if (def->payload_bytes != 0 && def->payload == NULL) return quern__fail_null(function, "def->payload");
    if (def->payload_bytes == 0 && def->payload != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: def->payload is set, and def->payload_bytes is 0; set its size, or leave it out",
            function);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: def->priority is %d, which is no quern_priority",
                       function, (int)def->priority);
}

static bool has_extras(const quern_job_def *def)
{
    return ((uintptr_t)def->cancel | (uintptr_t)def->name) != 0;
}

/* Returns whether the definition uses more than function, payload and counter; one test for all members. */
static bool is_special(const quern_job_def *def)
{
    return ((uintptr_t)def->cancel | (uintptr_t)def->name | (uintptr_t)def->priority |
            (uintptr_t)def->caller_only | (uintptr_t)def->after | def->after_count | def->on_worker) != 0;
}

static quern_result check_worker(const quern_jobs *jobs, const quern_job_def *def, const char *function)
{
    if (def->on_worker == 0) return QUERN_OK;
    if (def->caller_only)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: def sets caller_only and on_worker (worker %u); leave out one of them",
                           function, (unsigned)def->on_worker - 1);
    return quern__jobs_check_assigned(jobs, def->on_worker, function);
}

/* Returns whether a definition that is not special is valid. */
static bool is_valid_plain(const quern_jobs *jobs, const quern_job_def *def)
{
    return jobs != NULL && def != NULL && def->function != NULL &&
           def->payload_bytes <= QUERN_JOB_PAYLOAD_BYTES &&
           (def->payload_bytes == 0) == (def->payload == NULL);
}

static bool is_valid(const quern_jobs *jobs, const quern_job_def *def)
{
    return is_valid_plain(jobs, def) && (uint32_t)def->priority <= QUERN_PRIORITY_LOW &&
           def->payload_bytes <= payload_room(def);
}

static void run_payload(quern__job *job, const quern__worker *worker)
{
    quern_job_function *function = (quern_job_function *)(uintptr_t)job->target;
    function(job->data, worker->index);
}

static void run_submitted(quern__job *job, quern__worker *worker)
{
    run_payload(job, worker);
    quern__job_count_down(job, worker);
}

/* Optional members of a job, in the last words of its data behind the payload. The job's run function
 * determines which of them exist, so jobs without them pay nothing. */
enum {
    /* the job's name; if the job has no name, its cancel object */
    LAST_WORD = QUERN__JOB_DATA_WORDS - 1,
    SECOND_LAST_WORD = LAST_WORD > 0 ? LAST_WORD - 1 : 0 /* cancel object of a job with a name */
};

static bool is_cancelled(const quern__job *job, uint32_t word)
{
    return quern__cancel_is_requested((const quern_cancel *)job->data[word]);
}

static void run_cancellable(quern__job *job, quern__worker *worker)
{
    if (!is_cancelled(job, LAST_WORD)) run_payload(job, worker);
    quern__job_count_down(job, worker);
}

static void run_named(quern__job *job, quern__worker *worker)
{
    const quern__named_work work = quern__worker_begin_named(worker, quern__job_name(job));
    run_payload(job, worker);
    quern__worker_end_named(worker, &work);
    quern__job_count_down(job, worker);
}

static void run_named_cancellable(quern__job *job, quern__worker *worker)
{
    if (is_cancelled(job, SECOND_LAST_WORD))
        quern__job_count_down(job, worker);
    else
        run_named(job, worker);
}

const char *quern__job_name(const quern__job *job)
{
    bool is_named = job->run == run_named || job->run == run_named_cancellable;
    return is_named ? (const char *)job->data[LAST_WORD] : quern__submitted_loop_name(job);
}

quern_job_function *quern__job_function(const quern__job *job)
{
    const bool is_submitted = job->run == run_submitted || job->run == run_cancellable ||
                              job->run == run_named || job->run == run_named_cancellable;
    return is_submitted ? (quern_job_function *)(uintptr_t)job->target : NULL;
}

/* The casts remove const; no code writes through these words. */
static void add_extras(const quern_job_def *def, quern__job *job)
{
    if (def->name == NULL) {
        job->run = run_cancellable;
        job->data[LAST_WORD] = (uintptr_t)def->cancel;
        return;
    }
    job->run = def->cancel != NULL ? run_named_cancellable : run_named;
    job->data[LAST_WORD] = (uintptr_t)def->name;
    if (def->cancel != NULL) job->data[SECOND_LAST_WORD] = (uintptr_t)def->cancel;
}

_Static_assert(sizeof(uintptr_t) * QUERN__JOB_DATA_WORDS >= QUERN_JOB_PAYLOAD_BYTES,
               "room for the payload");

/* Copies word by word, because the caller probably wrote the payload just before: a processor forwards a
 * single store that has not reached the cache, but not several stores at once, and would then wait for all
 * earlier ones. */
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

/* Makes a job without name and cancel object. Returns how many words of its data are used. */
static uint32_t make_plain_job(const quern_job_def *def, quern__job *job)
{
    job->run = run_submitted;
    job->scope = def->counter;
    job->target = (void *)(uintptr_t)def->function;
    copy_payload(def, job->data);
    return (uint32_t)((def->payload_bytes + sizeof(uintptr_t) - 1) / sizeof(uintptr_t));
}

static void make_job(const quern_job_def *def, quern__job *job)
{
    *job = (quern__job){.run = NULL};
    (void)make_plain_job(def, job);
    if (has_extras(def)) add_extras(def, job);
}

static quern__queue_index queue_of(const quern_job_def *def)
{
    if (def->on_worker != 0) return (quern__queue_index)(QUERN__QUEUE_WORKERS + def->on_worker - 1);
    return def->caller_only ? QUERN__QUEUE_CALLER : quern__queue_of_priority(def->priority);
}

/* ----------------------------------------------------------------------------------------------- nodes */

/* Nodes move between the store and a worker in groups, so that most jobs that wait for a counter lock no
 * mutex. A worker's spare nodes need none, because only that worker accesses them. */
enum { FEW_NODES = 32, MOST_SPARE_NODES = 2 * FEW_NODES };

static bool is_of(const quern__worker *worker, const quern_jobs *jobs)
{
    return worker != NULL && worker->jobs == jobs;
}

static quern__node *take_node(quern_jobs *jobs, quern__worker *worker)
{
    if (!is_of(worker, jobs)) return quern__queues_take_node(&jobs->queues);
    if (worker->spare_nodes == NULL) {
        worker->spare_count = FEW_NODES;
        worker->spare_nodes = quern__queues_take_up_to(&jobs->queues, &worker->spare_count);
        if (worker->spare_nodes == NULL) return NULL;
    }
    quern__node *node = worker->spare_nodes;
    worker->spare_nodes = node->next;
    worker->spare_count--;
    return node;
}

static void return_few_nodes(quern__worker *worker)
{
    quern__node *list = worker->spare_nodes, *last = list;
    for (uint32_t i = 1; i < FEW_NODES; i++)
        last = last->next;
    worker->spare_nodes = last->next;
    worker->spare_count -= FEW_NODES;
    last->next = NULL;
    quern__queues_return_nodes(&worker->jobs->queues, list);
}

static void recycle_node(quern__worker *worker, quern__node *node)
{
    node->next = worker->spare_nodes;
    worker->spare_nodes = node;
    if (++worker->spare_count == MOST_SPARE_NODES) return_few_nodes(worker);
}

void quern__worker_return_spare_nodes(quern__worker *worker)
{
    quern__queues_return_nodes(&worker->jobs->queues, worker->spare_nodes);
    worker->spare_nodes = NULL;
    worker->spare_count = 0;
}

/* ------------------------------------------------------------------------------------- choice of queue */

static void notify_of_queued(quern_jobs *jobs, quern__queue_index queue, const void *scope)
{
    if (queue == QUERN__QUEUE_CALLER)
        quern__jobs_wake_external_workers(jobs);
    else
        quern__jobs_notify(jobs, NULL, scope);
}

static void push_node(quern__node *node, quern__worker *worker)
{
    quern_jobs *jobs = node->jobs;
    const void *scope = node->job.scope;
    if (QUERN__UNLIKELY(node->queue >= QUERN__QUEUE_WORKERS)) {
        if (quern__node_assign(node)) return;
        node->queue = QUERN__QUEUE_NORMAL;
    }
    bool is_plain = node->queue == QUERN__QUEUE_NORMAL && is_of(worker, jobs) &&
                    !quern__scope_is_closed(scope); /* a wait inside a node would find it in the deque */
    if (is_plain && worker->claim != NULL) {
        quern__job_copy(worker->claim, &node->job);
        worker->claim = NULL;
        recycle_node(worker, node);
        return;
    }
    if (is_plain && quern__deque_push(&worker->deque, &node->job, QUERN__JOB_DATA_WORDS)) {
        recycle_node(worker, node);
        quern__jobs_notify(jobs, worker, scope);
        return;
    }
    const quern__queue_index queue =
        node->queue; /* the job may have run after the push, and the node be reused */
    quern__queues_push(&jobs->queues, node);
    notify_of_queued(jobs, queue, scope);
}

/* Submits from an outside thread. Not inlined, because workers submit most nodes. While the workers are
 * being replaced, the replacing thread looks for queued jobs afterwards. */
static QUERN__NO_INLINE void submit_from_outside(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    if (quern__jobs_begin_visit(jobs)) {
        push_node(node, NULL);
        quern__jobs_end_visit(jobs);
        return;
    }
    if (node->queue >= QUERN__QUEUE_WORKERS) node->queue = QUERN__QUEUE_NORMAL;
    quern__queues_push(&jobs->queues, node);
}

void quern__node_submit(quern__node *node, quern__worker *worker)
{
    if (QUERN__UNLIKELY(!is_of(worker, node->jobs) && quern__jobs_current_worker(node->jobs) == NULL))
        submit_from_outside(node);
    else
        push_node(node, worker);
}

quern__node *quern__node_create(quern_jobs *jobs, const quern__job *job, quern__queue_index queue)
{
    quern__node *node = take_node(jobs, quern__jobs_current_worker(jobs));
    if (node == NULL) return NULL;
    quern__job_copy(&node->job, job);
    node->queue = queue;
    node->jobs = jobs;
    return node;
}

static quern_result fail_memory(const char *function)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a job that has to wait", function);
}

/* Submits a job of an outside thread to a shared queue. Taking a node and pushing it are one step, with one lock. */
static quern_result submit_to_shared_queue(quern_jobs *jobs, const quern__job *job,
                                           quern__queue_index queue, const char *function)
{
    const bool is_visit = quern__jobs_begin_visit(jobs);
    const bool is_pushed = quern__queues_push_job(&jobs->queues, job, queue, jobs);
    if (is_visit) {
        if (is_pushed) notify_of_queued(jobs, queue, job->scope);
        quern__jobs_end_visit(jobs);
    }
    return is_pushed ? QUERN_OK : fail_memory(function);
}

static quern_result submit_to_queue(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                    const char *function)
{
    if (queue < QUERN__QUEUE_COUNT && quern__jobs_current_worker(jobs) == NULL)
        return submit_to_shared_queue(jobs, job, queue, function);
    quern__node *node = quern__node_create(jobs, job, queue);
    if (node == NULL) return fail_memory(function);
    quern__job_count(job);
    quern__node_submit(node, NULL);
    return QUERN_OK;
}

/* Returns whether the deque has room. Reading `top` again fetches a cache line that thieves write. So a
 * deque that was full counts as full for the next ASSUMED_FULL_COUNT jobs; the other workers are busy with
 * it anyway. */
static bool has_room(quern__worker *worker)
{
    if (!quern__deque_was_full(&worker->deque)) return true;
    if (worker->assumed_full_count != 0) {
        worker->assumed_full_count--;
        return false;
    }
    if (!quern__deque_is_full(&worker->deque)) return true;
    worker->assumed_full_count = ASSUMED_FULL_COUNT;
    return false;
}

/* Runs a job inside the call that submits it. Its counter is incremented like for any other job, because
 * the job may add to its counter or submit jobs that wait for it. The worker's finished jobs are not
 * subtracted before: their counter also counts the job that submits this one, and cannot reach zero
 * meanwhile. */
static void run_inline(quern__worker *worker, quern__job *job)
{
    const int64_t floor = worker->floor;
    quern__job_count(job);
    worker->inline_depth++;
    worker->floor = quern__deque_bottom(&worker->deque);
    worker->executed_job_count++;
    job->run(job, worker);
    worker->floor = floor;
    worker->inline_depth--;
    quern__worker_flush_finished(worker);
}

/* Submits to the worker's deque. If the deque is full, there are enough jobs for all workers, and this
 * worker runs the job itself. Nested submits could overflow its stack, so beyond MAX_INLINE_DEPTH the job
 * goes to a queue. */
static inline quern_result submit_to(quern__worker *worker, quern__job *job, uint32_t word_count,
                                     const char *function)
{
    if (!has_room(worker)) {
        if (worker->inline_depth == MAX_INLINE_DEPTH)
            return submit_to_queue(worker->jobs, job, QUERN__QUEUE_NORMAL, function);
        run_inline(worker, job);
        return QUERN_OK;
    }
    quern__job_count(job);
    quern__deque_push(&worker->deque, job, word_count);
    quern__jobs_notify(worker->jobs, worker, job->scope);
    return QUERN_OK;
}

static quern_result submit_outside(quern_jobs *jobs, quern__job *job, quern__queue_index queue,
                                   const char *function)
{
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    quern__jobs_begin_outside_call(jobs);
    /* seq_cst: pairs with try_enter_exclusive in jobs.c. */
    bool may_enter = queue == QUERN__QUEUE_NORMAL &&
                     atomic_load_explicit(&jobs->exclusive_request_count, memory_order_seq_cst) == 0;
    quern__worker *worker = may_enter ? quern__jobs_try_enter(jobs) : NULL;
    result = worker != NULL ? submit_to(worker, job, QUERN__JOB_DATA_WORDS, function)
                            : submit_to_queue(jobs, job, queue, function);
    if (worker != NULL) quern__jobs_leave(jobs);
    quern__jobs_end_outside_call(jobs);
    return result;
}

quern_result quern__job_submit(quern_jobs *jobs, quern__job *job, quern__queue_index queue,
                               const char *function)
{
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker == NULL) return submit_outside(jobs, job, queue, function);
    if (queue != QUERN__QUEUE_NORMAL) return submit_to_queue(jobs, job, queue, function);
    return submit_to(worker, job, QUERN__JOB_DATA_WORDS, function);
}

/* ------------------------------------------------------------------------------------- after counters */

/* The job is counted before it can run. */
quern_result quern__job_submit_after(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                     quern_counter *const *after, uint32_t after_count,
                                     const char *function)
{
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    quern__node *node = quern__node_create(jobs, job, queue);
    if (node == NULL) return fail_memory(function);
    if (!quern__node_reserve_links(node, after_count)) {
        quern__queues_return_node(&jobs->queues, node);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "%s: no memory for a job that has to wait for %u counters", function,
                           (unsigned)after_count);
    }
    quern__job_count(job);
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker == NULL) quern__jobs_begin_outside_call(jobs);
    quern__node_add_links(node, after, worker);
    if (worker == NULL) quern__jobs_end_outside_call(jobs);
    return QUERN_OK;
}

static QUERN__NO_INLINE quern_result submit_special(quern_jobs *jobs, const quern_job_def *def)
{
    quern__job job;
    if (!is_valid(jobs, def)) return fail_def(jobs, def, "quern_jobs_submit");
    quern_result result = check_worker(jobs, def, "quern_jobs_submit");
    if (result == QUERN_OK)
        result = quern__check_after_list(def->after, def->after_count, def->counter, "quern_jobs_submit");
    if (result != QUERN_OK) return result;
    make_job(def, &job);
    if (def->after_count == 0) return quern__job_submit(jobs, &job, queue_of(def), "quern_jobs_submit");
    return quern__job_submit_after(jobs, &job, queue_of(def), def->after, def->after_count,
                                   "quern_jobs_submit");
}

quern_result quern_jobs_submit(quern_jobs *jobs, const quern_job_def *def)
{
    if (QUERN__UNLIKELY(!is_valid_plain(jobs, def))) return fail_def(jobs, def, "quern_jobs_submit");
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker == NULL || is_special(def)) return submit_special(jobs, def);
    quern__job job;
    uint32_t word_count = make_plain_job(def, &job);
    return submit_to(worker, &job, word_count, "quern_jobs_submit");
}

quern_result quern_jobs_submit_after(quern_jobs *jobs, const quern_job_def *def, quern_counter *after)
{
    if (!is_valid(jobs, def)) return fail_def(jobs, def, "quern_jobs_submit_after");
    if (after == NULL) return quern__fail_null("quern_jobs_submit_after", "after");
    if (after == def->counter)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_submit_after: def->counter is `after` itself; the job would wait for "
            "its own end. Count it with another counter");
    if (def->after_count != 0 || def->after != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_submit_after: def->after names counters, too; name all of them there "
            "and call quern_jobs_submit");
    quern_result result = check_worker(jobs, def, "quern_jobs_submit_after");
    if (result != QUERN_OK) return result;
    quern__job job;
    make_job(def, &job);
    return quern__job_submit_after(jobs, &job, queue_of(def), &after, 1, "quern_jobs_submit_after");
}
