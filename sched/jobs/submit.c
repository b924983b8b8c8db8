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

quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = 0;
    if (jobs == NULL) return quern__fail_null("quern_jobs_run_caller_jobs", "jobs");
    bool is_outside = quern__jobs_current_worker(jobs) == NULL;
    quern_result result = QUERN_OK;
    if (is_outside) result = quern__jobs_enter(jobs, "quern_jobs_run_caller_jobs");
    if (result != QUERN_OK) return result;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    uint32_t count = 0;
    if (quern__worker_is_external(worker)) {
        quern__job job;
        const void *allowed = quern__worker_awaited_scope(worker, NULL);
        while (quern__worker_take_assigned(worker, NULL, &job) ||
               quern__queues_take_allowed(&worker->jobs->queues, QUERN__QUEUE_CALLER, allowed, &job)) {
            quern__worker_run_job(worker, &job);
            count++;
        }
        quern__worker_flush_finished(worker);
    }
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

/* Returns whether the definition uses more than function, payload and counter; one test for all members. */
static bool is_special(const quern_job_def *def)
{
    return ((uintptr_t)def->cancel | (uintptr_t)def->name | (uintptr_t)def->priority |
            (uintptr_t)def->after | def->after_count | def->on_worker) != 0;
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
    if (def->cancel != NULL || def->name != NULL) add_extras(def, job);
}

static quern__queue_index queue_of(const quern_job_def *def)
{
    if (def->on_worker == 0) return quern__queue_of_priority(def->priority);
    if (def->on_worker == QUERN_ON_CALLER) return QUERN__QUEUE_CALLER;
    return (quern__queue_index)(QUERN__QUEUE_WORKERS + def->on_worker - 1);
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

/* Submits from an outside thread. Not inlined, because workers submit most nodes. */
static QUERN__NO_INLINE void submit_from_outside(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    const void *scope = node->job.scope;
    if (node->queue >= QUERN__QUEUE_WORKERS) {
        const bool is_visit = quern__jobs_begin_visit(jobs);
        const bool is_assigned = is_visit && quern__node_assign(node);
        if (is_visit) quern__jobs_end_visit(jobs);
        if (is_assigned) return;
        node->queue = QUERN__QUEUE_NORMAL;
    }
    const quern__queue_index queue = node->queue; /* the node may be reused after the push */
    if (!quern__queues_push_from_outside(jobs, node)) return;
    notify_of_queued(jobs, queue, scope);
    quern__jobs_end_visit(jobs);
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

static quern_result submit_to_queue(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                    const char *function)
{
    if (queue < QUERN__QUEUE_COUNT && quern__jobs_current_worker(jobs) == NULL) {
        /* Of an outside thread: taking a node and pushing it are one step, with one lock. */
        bool is_visit;
        if (!quern__queues_push_job(jobs, job, queue, &is_visit)) return fail_memory(function);
        if (!is_visit) return QUERN_OK;
        notify_of_queued(jobs, queue, job->scope);
        quern__jobs_end_visit(jobs);
        return QUERN_OK;
    }
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
    quern_result result = quern__jobs_check_assigned(jobs, def->on_worker, "quern_jobs_submit");
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
    quern_result result = quern__jobs_check_assigned(jobs, def->on_worker, "quern_jobs_submit_after");
    if (result != QUERN_OK) return result;
    quern__job job;
    make_job(def, &job);
    return quern__job_submit_after(jobs, &job, queue_of(def), &after, 1, "quern_jobs_submit_after");
}

/* ----------------------------------------------------------------------------------- jobs after counters */

/* Jobs that start after several counters.
 *
 * A node that waits for counters has one link in the list of each counter and the number of links that have
 * not fired yet. The thread that fires the last link submits the job. An added link may fire at once, on
 * another thread. The number starts with all counters, so the node exists as long as its submitter has
 * links to add; the submitter does not access the node after it added the last one. A counter that is at
 * zero gets no link: the submitter subtracts all such counters at the end, in one step.
 *
 *     node:  | job | count | link | link | link |        node:  | job | count | link | link | more |
 *     up to three counters: no further nodes                                                   |
 *                                                        further nodes: | next | link | link | link |
 *
 * Each counter is subtracted once, when it first reaches zero. Afterwards it may be reused or freed. */

/* A node may still wait when its pool ends. Its job is dropped, and its links are removed from the lists of
 * their counters, so these counters must exist until then. A counter is not accessed after
 * its link has fired. */
void quern__jobs_drop_links(quern_jobs *jobs)
{
    quern__mutex_lock(&jobs->queues.mutex);
    quern__node_block *block = jobs->queues.blocks;
    quern__mutex_unlock(&jobs->queues.mutex);
    for (; block != NULL; block = block->next)
        for (uint32_t i = 0; i < QUERN__NODE_BLOCK_COUNT * QUERN__OWN_LINKS; i++) {
            quern__link *link = &block->nodes[i / QUERN__OWN_LINKS].links[i % QUERN__OWN_LINKS];
            /* Acquire: pairs with the release in announce_calls (job_counter.c). */
            quern_counter *counter = atomic_load_explicit(&link->counter, memory_order_acquire);
            if (counter != NULL) (void)quern__counter_remove_link(counter, link, &jobs->workers[0]);
        }
}

quern_result quern__check_after_list(quern_counter *const *after, uint32_t count,
                                     const quern_counter *counter, const char *function)
{
    if (count > QUERN_MAX_AFTER)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: def->after_count is %u; the maximum is %d (QUERN_MAX_AFTER). Wait for more "
                           "counters by jobs in between",
                           function, (unsigned)count, QUERN_MAX_AFTER);
    if (count != 0 && after == NULL) return quern__fail_null(function, "def->after");
    for (uint32_t i = 0; i < count; i++) {
        if (after[i] == NULL)
            return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                               "%s: def->after[%u] is NULL; def->after_count is %u", function, (unsigned)i,
                               (unsigned)count);
        if (after[i] == counter)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: def->after[%u] is def->counter, so it would wait for its own end; use another "
                "counter",
                function, (unsigned)i);
    }
    return QUERN_OK;
}

static uint32_t own_count(uint32_t count)
{
    return count <= QUERN__OWN_LINKS ? count : QUERN__OWN_LINKS - 1;
}

/* Returns the last link of a node with further nodes; its `node` member is the first of these. A further
 * node has no job: its job.target is the next further node. */
static quern__link *more_of(quern__node *node)
{
    return &node->links[QUERN__OWN_LINKS - 1];
}

/* Relaxed: no other thread has the node before it has links, and afterwards no thread writes this member.
 * */
bool quern__node_reserve_links(quern__node *node, uint32_t count)
{
    uint32_t more_count = count - own_count(count);
    node->link_count = (uint16_t)count;
    if (more_count == 0) return true;
    uint32_t node_count = (more_count + QUERN__OWN_LINKS - 1) / QUERN__OWN_LINKS;
    quern__node *list = quern__queues_take_nodes(&node->jobs->queues, node_count);
    if (list == NULL) return false;
    atomic_store_explicit(&more_of(node)->node, list, memory_order_relaxed);
    for (; list != NULL; list = list->next)
        list->job.target = list->next;
    return true;
}

/* Subtracts `count` counters and submits the job after the last one. Acquire and release: everything that
 * happened before one of the counters reached zero happens before the job; each subtraction pairs with the
 * others of the node. If the first load returns exactly `count`, all other counters are subtracted already,
 * and no atomic subtraction is needed. */
void quern__node_count_down(quern__node *node, uint32_t count, quern__worker *worker)
{
    uint16_t difference = (uint16_t)count;
    if (atomic_load_explicit(&node->waiting_count, memory_order_acquire) != difference &&
        atomic_fetch_sub_explicit(&node->waiting_count, difference, memory_order_acq_rel) != difference)
        return;
    if (node->link_count > QUERN__OWN_LINKS) {
        /* Relaxed: see quern__node_reserve_links. */
        quern__node *further = atomic_load_explicit(&more_of(node)->node, memory_order_relaxed);
        for (quern__node *each = further; each != NULL; each = each->next)
            each->next = each->job.target;
        quern__queues_return_nodes(&node->jobs->queues, further);
    }
    quern__node_submit(node, worker);
}

/* Returns the next link to add and advances `holder` and `index` past it; there must be one. Relaxed: see
 * quern__node_reserve_links. */
static quern__link *next_link(quern__node *node, quern__node **holder, uint32_t *index)
{
    uint32_t end = *holder == node ? own_count(node->link_count) : QUERN__OWN_LINKS;
    if (*index == end) {
        *holder = *holder == node ? atomic_load_explicit(&more_of(node)->node, memory_order_relaxed)
                                  : (*holder)->job.target;
        *index = 0;
    }
    return &(*holder)->links[(*index)++];
}

/* Relaxed: adding the links, under the locks of their counters, publishes them and the node. */
void quern__node_add_links(quern__node *node, quern_counter *const *after, quern__worker *worker)
{
    uint32_t index = 0, done_count = 0, count = node->link_count;
    quern__node *holder = node;
    atomic_store_explicit(&node->waiting_count, (uint16_t)count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        quern__link *link = next_link(node, &holder, &index);
        atomic_store_explicit(&link->node, node, memory_order_relaxed);
        done_count += !quern__counter_add_link(after[i], link, worker);
    }
    if (done_count != 0 || count == 0) quern__node_count_down(node, done_count, worker);
}

/* --------------------------------------------------------------------------------------- forks and joins */

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
