/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/loop.h"

/* Parallel loops that a caller waits for, and the decision whether to share a loop.
 *
 * Waking a sleeping worker costs the waker more time than many loops take, and the sleeper starts even
 * later. Sharing with an awake worker costs a few transfers of a cache line between two processors, which
 * is longer than very small loops take. So each worker remembers, per function, the time per item of recent
 * loops: on one thread, and in a shared loop from its beginning to its end. The decisions are:
 *
 *     expected time below INLINE_NS, or below that of sharing:    run on this worker alone
 *     expected to end before a woken worker could start           share with awake workers only, except after a
 *     (LOOP_QUIET_NS):                                            series of such loops
 *     otherwise:                                                  share, and wake sleeping workers
 *
 * A shared loop yields the time of the caller's own items, which includes the overhead of sharing. So a
 * short loop is tried once on one thread. Both estimates decay slowly, so that the alternative is tried
 * again from time to time. Builds with QUERN_CHECKS share every loop, because there finding races matters
 * more than time. docs/jobs.md has measurements of each of these rules.
 *
 * Loops are not shared while external workers raise the number of awake workers above the number of processors;
 * see yield.c. */

/* Up to this number of workers, the slots need at most 1 KiB of stack per nested call. */
#ifndef QUERN__FEW_WORKERS
#define QUERN__FEW_WORKERS 16
#endif

enum {
    /* Added to `references` while the caller sleeps until no other reference is left. */
    SLEEPING_REFERENCE = 1 << 30,
    INLINE_NS = 500,
    TRY_INLINE_NS = 20000,
    LOOP_QUIET_NS = 50000,
    FORGET_SHARE = 64,
    FIRST_SHARE = 8
};

/* ---------------------------------------------------------------------------------------- shared loops */

/* A loop on the stack of the caller that waits for it. */
typedef struct awaited_loop {
    quern__loop loop;
    quern__worker *caller;
} awaited_loop;

static void run_awaited_offer(quern__job *job, quern__worker *worker)
{
    awaited_loop *awaited = job->target;
    uint64_t start_ns = quern__worker_event_start(worker);
    const bool is_closed = quern__scope_is_closed(job->scope);
    quern__worker_add_closed_depth(worker, is_closed);
    const quern__named_work work = quern__worker_begin_named(worker, awaited->loop.range.name);
    uint32_t done_count = 1 + quern__loop_join(&awaited->loop, worker, NULL);
    quern__worker_end_named(worker, &work);
    quern__worker_add_closed_depth(worker, 0u - is_closed);
    if (start_ns != 0) quern__worker_report_event(worker, QUERN__JOB_EVENT_LOOP, start_ns, 0);
    quern__worker *caller = awaited->caller;
    /* Release: pairs with the acquire in all_left. Afterwards the loop may be gone, except if the caller
     * sleeps. */
    uint32_t before =
        atomic_fetch_sub_explicit(&awaited->loop.references, done_count, memory_order_release);
    if (before == SLEEPING_REFERENCE + done_count) quern__parker_give(&caller->parker);
}

/* Acquire: pairs with the release of the participants that leave, so that the caller sees what they
 * wrote. */
static bool all_left(const quern__wait *wait)
{
    const quern__loop *loop = wait->target;
    uint32_t references = atomic_load_explicit(&loop->references, memory_order_acquire);
    return (references & ~(uint32_t)SLEEPING_REFERENCE) == 0;
}

static bool help_loop(const quern__wait *wait, quern__worker *caller)
{
    return quern__loop_help(wait->target, caller);
}

/* Asks the last participant for a permit: it gives one after its subtraction. Relaxed: the flag orders
 * nothing; all_left acquires, and the permit ends the sleep. */
static void announce_loop(const quern__wait *wait, quern__worker *caller)
{
    quern__loop *loop = wait->target;
    (void)caller;
    atomic_fetch_add_explicit(&loop->references, SLEEPING_REFERENCE, memory_order_relaxed);
}

/* Withdrawn offers are subtracted with relaxed order: they were never used, so they have published nothing.
 * was_cancelled is read with relaxed order because all_left has acquired it. */
static bool run_shared(quern__worker *caller, const quern__range *range, quern__loop_slot *slots, bool wake,
                       quern__loop_contribution *own)
{
    awaited_loop awaited;
    quern__loop *loop = &awaited.loop;
    const void *scope = range->is_closed ? quern__scope_close(range) : loop;
    quern__wait wait = {
        .scope = scope, .target = loop, .is_done = all_left, .help = help_loop, .announce = announce_loop};
    awaited.caller = caller;
    quern__loop_init(loop, run_awaited_offer, scope, range, slots, caller);
    loop->wakes_sleepers = wake;
    uint32_t withdrawn_count = quern__loop_join(loop, caller, own);
    if (withdrawn_count != 0)
        atomic_fetch_sub_explicit(&loop->references, withdrawn_count, memory_order_relaxed);
    if (!all_left(&wait)) quern__worker_wait(caller, &wait);
    return !atomic_load_explicit(&loop->was_cancelled, memory_order_relaxed);
}

/* Not inlined, so that the stack frame has only the slots that the pool needs. */
static QUERN__NO_INLINE bool run_shared_few(quern__worker *caller, const quern__range *range, bool wake,
                                            quern__loop_contribution *own)
{
    quern__loop_slot slots[QUERN__FEW_WORKERS];
    return run_shared(caller, range, slots, wake, own);
}

static QUERN__NO_INLINE bool run_shared_many(quern__worker *caller, const quern__range *range, bool wake,
                                             quern__loop_contribution *own)
{
    quern__loop_slot slots[QUERN_MAX_THREADS];
    return run_shared(caller, range, slots, wake, own);
}

bool quern__range_share(quern__worker *caller, const quern__range *range, bool wake,
                        quern__loop_contribution *own)
{
    quern__worker_publish_processor(caller);
    if (caller->jobs->worker_count <= QUERN__FEW_WORKERS) return run_shared_few(caller, range, wake, own);
    return run_shared_many(caller, range, wake, own);
}

/* ----------------------------------------------------------------------------------------------- costs */

/* Returns the cost entry for the range's function and size class (power of two), because one function is
 * often used for loops of several kinds. A colliding loop replaces the entry. */
static quern__loop_cost *cost_of(quern__worker *worker, const quern__range *range)
{
    uint32_t size_class = 1 + quern__highest_bit_32(range->count);
    uint64_t hash = ((uint64_t)(uintptr_t)range->function + size_class) * 0x9E3779B97F4A7C15u;
    quern__loop_cost *cost = &worker->loop_costs[hash >> 32 & (QUERN__LOOP_COST_COUNT - 1)];
    if (cost->function != range->function || cost->size_class != size_class)
        *cost = (quern__loop_cost){.function = range->function, .size_class = size_class};
    return cost;
}

/* Averages a new measurement into a known cost. One measurement may be far too long because the thread was
 * interrupted, so it counts as at most twice the known cost. */
static void mix(double *known_ns, double new_ns)
{
    if (*known_ns != 0 && new_ns > 2 * *known_ns) new_ns = 2 * *known_ns;
    *known_ns = *known_ns == 0 ? new_ns : (*known_ns + new_ns) / 2;
}

/* Whether to run a loop on one thread. A loop of unknown cost is shared. */
static bool is_for_one(const quern__loop_cost *cost, double count)
{
    double alone_ns = cost->unshared_item_ns * count;
    if (alone_ns == 0) return false;
    if (!cost->is_measured) return alone_ns < TRY_INLINE_NS;
    return alone_ns < INLINE_NS ||
           (alone_ns < TRY_INLINE_NS && cost->unshared_item_ns <= cost->shared_item_ns);
}

/* Whether to wake sleeping workers. Consecutive short loops with short gaps count as one long loop. */
static bool is_worth_waking(quern__worker *worker, double known_ns, uint64_t now_ns)
{
    if (now_ns - worker->loop_end_ns > LOOP_QUIET_NS) worker->quiet_ns = 0;
    bool wake = known_ns == 0 || known_ns + (double)worker->quiet_ns >= LOOP_QUIET_NS;
    if (wake) worker->quiet_ns = 0;
    return wake;
}

/* Returns the part of a range that ends before item `count`. */
static quern__range until(const quern__range *range, uint32_t count)
{
    quern__range part = *range;
    part.count = count;
    return part;
}

/* Runs items on this worker as long as there is no free processor for another worker. It checks that after
 * each eighth of the remaining items, in whole grains. Afterwards `rest` is the remaining part. Returns
 * false if items were skipped. */
static bool run_in_crowd(const quern__worker *worker, quern__range *rest)
{
    const uint32_t grain = rest->grain != 0 ? rest->grain : 1;
    while (rest->first < rest->count && !quern__jobs_has_spare_processor(worker->jobs)) {
        uint32_t size = (rest->count - rest->first) / 8 / grain * grain;
        if (size < grain) size = grain;
        quern__range part = *rest;
        if (size < part.count - part.first) part.count = part.first + size;
        if (!quern__range_run(&part, worker->index)) return false;
        rest->first = part.count;
    }
    return true;
}

static bool run_shared_timed(quern__worker *worker, const quern__range *range, quern__loop_cost *cost,
                             quern__sharing *sharing)
{
    uint32_t count = range->count - range->first;
    uint64_t start_ns = quern__clock_ns();
    quern__loop_contribution own = {0};
    bool wake = is_worth_waking(worker, cost->unshared_item_ns * count, start_ns);
    bool is_whole = sharing->share(sharing, worker, range, wake, &own);
    worker->loop_end_ns = quern__clock_ns();
    double took_ns = (double)(worker->loop_end_ns - start_ns);
    if (!wake) worker->quiet_ns += worker->loop_end_ns - start_ns;
    if (own.item_count == count && took_ns >= 2 * LOOP_QUIET_NS)
        quern__worker_yield_after_long_work(worker);
    if (cost->function != range->function || own.item_count == 0 || !is_whole) return is_whole;
    mix(&cost->shared_item_ns, took_ns / count);
    double own_ns = (double)own.time_ns / (double)own.item_count;
    bool is_better_guess =
        own_ns < cost->unshared_item_ns || took_ns >= 2 * LOOP_QUIET_NS || cost->unshared_item_ns == 0;
    if (!cost->is_measured && is_better_guess) cost->unshared_item_ns = own_ns;
    if (cost->is_measured) cost->unshared_item_ns -= cost->unshared_item_ns / FORGET_SHARE;
    cost->is_measured = cost->is_measured && took_ns < TRY_INLINE_NS;
    return true;
}

static bool run_timed(quern__worker *worker, const quern__range *range, quern__loop_cost *cost,
                      quern__sharing *sharing)
{
    quern__range rest = *range;
    if (!run_in_crowd(worker, &rest)) return false;
    return rest.first == rest.count || run_shared_timed(worker, &rest, cost, sharing);
}

/* Runs a first part alone. If it takes longer than expected, the rest is shared. */
static bool run_alone(quern__worker *worker, const quern__range *range, quern__loop_cost *cost,
                      quern__sharing *sharing)
{
    uint32_t grain = range->grain != 0 ? range->grain : 1;
    uint32_t first = range->count / FIRST_SHARE / grain * grain;
    if (first < grain) first = grain;
    quern__range part = until(range, first < range->count ? first : range->count);
    uint64_t start_ns = quern__clock_ns();
    if (!quern__range_run(&part, worker->index)) return false;
    uint64_t took_ns = quern__clock_ns() - start_ns;
    quern__range rest = *range;
    rest.first = part.count;
    if (rest.first < rest.count && took_ns > TRY_INLINE_NS / 4) {
        cost->unshared_item_ns = (double)took_ns / part.count;
        cost->is_measured = false;
        return run_timed(worker, &rest, cost, sharing);
    }
    if (!quern__range_run(&rest, worker->index)) return false;
    took_ns = quern__clock_ns() - start_ns;
    if (cost->function != range->function) return true; /* a nested loop has replaced the cost entry */
    if (!cost->is_measured) cost->unshared_item_ns = 0;
    cost->is_measured = true;
    mix(&cost->unshared_item_ns, (double)took_ns / range->count);
    cost->shared_item_ns -= cost->shared_item_ns / FORGET_SHARE;
    return true;
}

bool quern__range_run_or_share(quern__worker *worker, const quern__range *range, quern__sharing *sharing)
{
    if (QUERN_CHECKS) return sharing->share(sharing, worker, range, true, NULL);
    quern__loop_cost *cost = cost_of(worker, range);
    if (is_for_one(cost, range->count)) return run_alone(worker, range, cost, sharing);
    return run_timed(worker, range, cost, sharing);
}

/* ------------------------------------------------------------------------------------------- the calls */

static bool share_and_wait(quern__sharing *sharing, quern__worker *worker, const quern__range *range,
                           bool wake, quern__loop_contribution *own)
{
    (void)sharing;
    return quern__range_share(worker, range, wake, own);
}

/* Runs a range in a pool of one thread and reports its duration and number of grains to the worker's loop
 * observer. Loops inside of it are not reported. */
static bool run_watched(quern__worker *worker, const quern__range *range)
{
    quern__loop_observer *watch = worker->loop_observer;
    const uint32_t grain = range->grain != 0 ? range->grain : 1, count = range->count - range->first;
    worker->loop_observer = NULL;
    const uint64_t start_ns = quern__clock_ns();
    const bool is_whole = quern__range_run(range, worker->index);
    watch->report(watch, count / grain + (count % grain != 0), quern__clock_ns() - start_ns);
    worker->loop_observer = watch;
    return is_whole;
}

static bool run_range(quern__worker *worker, const quern__range *range)
{
    if (QUERN__UNLIKELY(worker->loop_observer != NULL)) return run_watched(worker, range);
    return quern__range_is_plain(range, worker->jobs->thread_count)
               ? quern__range_run(range, worker->index)
               : quern__range_run_or_share(worker, range, &(quern__sharing){share_and_wait});
}

quern_result quern__jobs_parallel_for(quern_jobs *jobs, const quern__range *range, const char *function)
{
    if (range->count == 0) return QUERN_OK;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern_result result = worker == NULL ? quern__jobs_enter(jobs, function) : QUERN_OK;
    if (result != QUERN_OK) return result;
    quern__worker *runner = worker != NULL ? worker : quern__current_worker;
    quern__worker_add_closed_depth(runner, range->is_closed);
    const quern__named_work work = quern__worker_begin_named(runner, range->name);
    const bool is_whole = run_range(runner, range);
    quern__worker_end_named(runner, &work);
    quern__worker_add_closed_depth(runner, 0u - range->is_closed);
    if (worker == NULL) quern__jobs_leave(jobs);
    if (QUERN__LIKELY(is_whole)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_CANCELLED, "%s: cancelled on request; not all of %u items were run",
                       function, (unsigned)range->count);
}

quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                     quern_range_function *function, void *user_data)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_parallel_for", "jobs");
    if (function == NULL) return quern__fail_null("quern_jobs_parallel_for", "function");
    quern__range range = {.function = function, .user_data = user_data, .count = count, .grain = grain};
    return quern__jobs_parallel_for(jobs, &range, "quern_jobs_parallel_for");
}
