/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include "sched/jobs/loop.h"

/* Cancel requests. A request is one word that jobs, loops and graphs read before they begin a part of
 * their work. So the requesting thread needs no list of what it cancels. */

/* Release: pairs with the acquire in quern__cancel_is_requested. */
void quern_cancel_request(quern_cancel *cancel)
{
    if (cancel != NULL) atomic_store_explicit(&cancel->is_requested, 1, memory_order_release);
}

bool quern_cancel_is_requested(const quern_cancel *cancel)
{
    return quern__cancel_is_requested(cancel);
}

/* Relaxed: the caller resets a request only while no running work reads it; submitting work publishes the
 * reset. */
void quern_cancel_reset(quern_cancel *cancel)
{
    if (cancel != NULL) atomic_store_explicit(&cancel->is_requested, 0, memory_order_relaxed);
}

/* --------------------------------------------------------------------------------------- submitted loops */

/* Loops that are submitted.
 *
 * A submitted loop starts as an ordinary job that has the loop's parameters in its data words. Until it
 * begins it costs what a job costs, and so does a loop that one thread runs alone, as very short loops do.
 * The worker that begins the loop decides whether to share it (loop.c). To share it, the worker
 * takes a loop object, a *stored* loop, from the pool's store. If the store is empty and there is no memory,
 * the worker shares the loop on its stack and waits for it.
 *
 *     state of a stored loop:   | generation | participants |      no participants: in the store
 *
 * No worker waits for a stored loop: a participant that finds no more items leaves. The last one returns the
 * loop to the store and subtracts it from its counter, at once or together with the next jobs. The release
 * and acquire of all participants that leave publish what the loop wrote.
 *
 * An offer to take part names the loop and its generation, and holds no reference. A worker that takes an
 * offer enters the loop if the generation is unchanged and there is at least one participant; it increments
 * the number of participants in the same step. The loop then cannot return to the store before this worker
 * leaves, and the worker reads it as it was when it began (acquire; pairs with share_stored). If the worker
 * cannot enter, the offer is outdated and does nothing.
 *
 * So a loop ends when its work does, although offers remain in deques below jobs that take long or that
 * wait for this very loop. Therefore the store keeps loops until the pool ends, and only the pool's
 * workers, own and external, access them. Generations wrap after 2^32 loops; an offer that remains in a
 * deque that long lets a worker help with another loop than intended, which is harmless. */

/* Data words of the job. The queue, which is that of the loop's priority, is in the upper half of a word of 8
 * bytes; where words have 4 bytes there are more of them. */
enum {
    USER_DATA,
    COUNT,
    GRAIN,
    CANCEL,
    NAME,
    WORD_COUNT = sizeof(uintptr_t) > 4 ? NAME + 1 : NAME + 2,
    QUEUE = sizeof(uintptr_t) > 4 ? GRAIN : NAME + 1,
    QUEUE_SHIFT = sizeof(uintptr_t) > 4 ? 32 : 0
};

_Static_assert(WORD_COUNT <= QUERN__JOB_DATA_WORDS, "room for a loop in a job");

/* Data words of an offer. */
enum { OFFERED_GENERATION, OFFERED_NAME };

_Static_assert(OFFERED_NAME + 1 == QUERN__STORED_OFFER_WORDS, "what is copied of an offer");

typedef struct quern__submitted_loop {
    quern__loop loop;                        /* first member: offers point to it */
    const void *scope;                       /* the loop's counter, or NULL */
    struct quern__submitted_loop *next;      /* list of all loops of the pool */
    struct quern__submitted_loop *next_free; /* list of the loops in the store */
    size_t bytes;
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint64_t state;
    quern__loop_slot slots[]; /* [number of workers of the pool] */
} quern__submitted_loop;

enum { GENERATION_SHIFT = 32 };

/* --------------------------------------------------------------------------------------------- the store */

static quern__submitted_loop *create_stored_loop(quern_jobs *jobs)
{
    size_t bytes = sizeof(quern__submitted_loop) + jobs->worker_count * sizeof(quern__loop_slot);
    quern__submitted_loop *made = quern__allocate(&jobs->allocator, bytes, _Alignof(quern__submitted_loop));
    if (made == NULL) return NULL;
    made->bytes = bytes;
    atomic_init(&made->state, 0);
    made->next = jobs->loops;
    jobs->loops = made;
    return made;
}

/* Reuses a submitted loop of the pool that is not in use, or creates one. Returns NULL if there is no memory. */
static quern__submitted_loop *take_stored_loop(quern_jobs *jobs)
{
    quern__mutex_lock(&jobs->queues.mutex);
    quern__submitted_loop *taken = jobs->free_loops;
    if (taken != NULL)
        jobs->free_loops = taken->next_free;
    else
        taken = create_stored_loop(jobs);
    quern__mutex_unlock(&jobs->queues.mutex);
    return taken;
}

void quern__jobs_free_submitted_loops(quern_jobs *jobs)
{
    while (jobs->loops != NULL) {
        quern__submitted_loop *released = jobs->loops;
        jobs->loops = released->next;
        quern__release(&jobs->allocator, released, released->bytes, _Alignof(quern__submitted_loop));
    }
    jobs->free_loops = NULL;
}

/* ------------------------------------------------------------------------------------------ participants */

/* Acquire: pairs with the release in share_stored. The first load is relaxed because the compare-and-swap
 * checks its value. */
static bool try_enter(quern__submitted_loop *stored, uint32_t generation)
{
    uint64_t state = atomic_load_explicit(&stored->state, memory_order_relaxed);
    do
        if ((uint32_t)(state >> GENERATION_SHIFT) != generation || (uint32_t)state == 0) return false;
    while (!atomic_compare_exchange_weak_explicit(&stored->state, &state, state + 1, memory_order_acquire,
                                                  memory_order_relaxed));
    return true;
}

/* Takes part in a loop that the worker has entered, and leaves it. The subtraction releases what this
 * worker wrote; the last participant acquires what all wrote, and publishes it with the counter. Each
 * subtraction pairs with those of the other participants. `work` has begun; it ends before the loop can
 * end, because its name may be gone afterwards. */
static void participate(quern__submitted_loop *stored, quern__worker *worker,
                        quern__loop_contribution *share, const quern__named_work *work)
{
    (void)quern__loop_join(&stored->loop, worker, share);
    quern__worker_end_named(worker, work);
    const quern__job end = {.scope = stored->scope};
    uint64_t before = atomic_fetch_sub_explicit(&stored->state, 1, memory_order_acq_rel);
    if ((uint32_t)before != 1) return;
    quern_jobs *jobs = worker->jobs;
    quern__mutex_lock(&jobs->queues.mutex);
    stored->next_free = jobs->free_loops;
    jobs->free_loops = stored;
    quern__mutex_unlock(&jobs->queues.mutex);
    quern__job_count_down(&end, worker);
}

static void run_stored_offer(quern__job *job, quern__worker *worker)
{
    quern__submitted_loop *stored = job->target;
    if (!try_enter(stored, (uint32_t)job->data[OFFERED_GENERATION])) return;
    uint64_t start_ns = quern__worker_event_start(worker);
    const quern__named_work work = quern__worker_begin_named(worker, stored->loop.range.name);
    participate(stored, worker, NULL, &work);
    if (start_ns != 0) quern__worker_report_event(worker, QUERN__JOB_EVENT_LOOP, start_ns, 0);
}

/* --------------------------------------------------------------------------------------------- beginning */

/* Shares a range as a stored loop. Returns false, with nothing done, if there is no memory. Otherwise the
 * call ends `work`, and the loop counts the job down. */
static bool share_stored(const quern__job *job, quern__worker *worker, const quern__sharing *sharing,
                         const quern__named_work *work, quern__loop_contribution *own)
{
    quern__submitted_loop *stored = take_stored_loop(worker->jobs);
    if (stored == NULL) return false;
    quern__worker_publish_processor(worker);
    quern__loop_init(&stored->loop, run_stored_offer, job->scope, &sharing->rest, stored->slots, worker);
    stored->loop.wakes_sleepers = sharing->wake;
    stored->loop.is_stored = true;
    stored->loop.queue = (quern__queue_index)(job->data[QUEUE] >> QUEUE_SHIFT);
    stored->scope = job->scope;
    /* Begins a new generation with one participant. Release: pairs with the acquire in try_enter. The load is
     * relaxed: no thread changes the state of a loop without participants, and the lock of the store orders
     * earlier changes. */
    const uint32_t generation =
        (uint32_t)(atomic_load_explicit(&stored->state, memory_order_relaxed) >> GENERATION_SHIFT) + 1;
    stored->loop.offer.data[OFFERED_GENERATION] = generation;
    stored->loop.offer.data[OFFERED_NAME] = (uintptr_t)sharing->rest.name;
    atomic_store_explicit(&stored->state, (uint64_t)generation << GENERATION_SHIFT | 1,
                          memory_order_release);
    participate(stored, worker, own, work);
    return true;
}

static void run_submitted_loop(quern__job *job, quern__worker *worker)
{
    const quern__range range = {.function = (quern_range_function *)(uintptr_t)job->target,
                                .user_data = (void *)job->data[USER_DATA],
                                .count = (uint32_t)job->data[COUNT],
                                .grain = (uint32_t)job->data[GRAIN],
                                .cancel = (const quern_cancel *)job->data[CANCEL],
                                .name = (const char *)job->data[NAME]};
    const quern__named_work work = quern__worker_begin_named(worker, range.name);
    quern__sharing sharing;
    quern__loop_contribution own = {0};
    if (range.count != 0 && quern__range_is_plain(&range, worker->jobs->thread_count)) {
        (void)quern__range_run(&range, worker->index);
    } else if (range.count != 0 && !quern__cancel_is_requested(range.cancel) &&
               quern__range_begin(worker, &range, &sharing)) {
        const bool is_stored = share_stored(job, worker, &sharing, &work, &own);
        if (!is_stored) sharing.is_whole = quern__range_share(worker, &sharing.rest, sharing.wake, &own);
        quern__range_end_shared(worker, &sharing, &own);
        if (is_stored) return;
    }
    quern__worker_end_named(worker, &work);
    quern__job_count_down(job, worker);
}

const char *quern__submitted_loop_name(const quern__job *job)
{
    if (job->run == run_stored_offer) return (const char *)job->data[OFFERED_NAME];
    return job->run == run_submitted_loop ? (const char *)job->data[NAME] : NULL;
}

/* ----------------------------------------------------------------------------------------- the calls */

static quern_result check_loop(const quern_jobs *jobs, const quern_loop_def *def, const char *function)
{
    if (jobs == NULL) return quern__fail_null(function, "jobs");
    if (def == NULL) return quern__fail_null(function, "def");
    if (def->function == NULL) return quern__fail_null(function, "def->function");
    if ((uint32_t)def->priority <= QUERN_PRIORITY_LOW) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: def->priority %d is no quern_priority", function,
                       (int)def->priority);
}

quern_result quern_jobs_run_loop(quern_jobs *jobs, const quern_loop_def *def)
{
    quern_result result = check_loop(jobs, def, "quern_jobs_run_loop");
    if (result != QUERN_OK) return result;
    if (def->counter != NULL || def->after != NULL || def->after_count != 0 ||
        def->priority != QUERN_PRIORITY_NORMAL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_run_loop: the caller begins the loop and waits for it, so it has no "
                           ".counter, .after or .priority; submit it with quern_jobs_submit_loop");
    const quern__range range = {.function = def->function,
                                .user_data = def->user_data,
                                .count = def->count,
                                .grain = def->grain,
                                .cancel = def->cancel,
                                .name = def->name};
    return quern__jobs_parallel_for(jobs, &range, "quern_jobs_run_loop");
}

quern_result quern_jobs_submit_loop(quern_jobs *jobs, const quern_loop_def *def)
{
    static const char *const function = "quern_jobs_submit_loop";
    quern__job job;
    quern_result result = check_loop(jobs, def, function);
    if (result != QUERN_OK) return result;
    result = quern__check_after_list(def->after, def->after_count, def->counter, function);
    if (result != QUERN_OK) return result;
    const quern__queue_index queue = quern__queue_of_priority(def->priority);
    /* The casts drop const: the loop only reads through these pointers. */
    job.run = run_submitted_loop;
    job.scope = def->counter;
    job.target = (void *)(uintptr_t)def->function;
    job.data[USER_DATA] = (uintptr_t)def->user_data;
    job.data[COUNT] = def->count;
    job.data[GRAIN] = def->grain;
    job.data[CANCEL] = (uintptr_t)def->cancel;
    job.data[NAME] = (uintptr_t)def->name;
    if (QUEUE != GRAIN) job.data[QUEUE] = 0;
    job.data[QUEUE] |= (uintptr_t)queue << QUEUE_SHIFT;
    if (def->after_count == 0)
        return def->count == 0 ? QUERN_OK : quern__job_submit(jobs, &job, queue, function);
    return quern__job_submit_after(jobs, &job, queue, def->after, def->after_count, function);
}
