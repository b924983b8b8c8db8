/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/loop.h"

/* How workers divide a range.
 *
 *     slots:  |0 ..... 24|25 ..... 49|50 ..... 74|75 ..... 99|     worker w starts with slot w, in every loop
 *              ^ claims   ^                     ^
 *              from the   worker not started:   a thief takes the back half
 *              front      a thief takes all
 *
 * A slot is one 64-bit word with begin and end index, changed by compare-and-swap. An item is in one slot
 * at a time, so the worker that swaps it out is the only one that runs it. The word is the complete state
 * of a slot; a value that returns to an earlier one (ABA) does no harm. Relaxed order is sufficient because
 * items carry no data: what the loop reads was written before it began and reaches helpers through the
 * deques, and what the loop writes reaches the waiting caller through `references`.
 *
 * A worker that takes an offer and finds items makes two new offers before it begins, until there are as
 * many participants as there is work for. Participants thus arrive as a growing tree, and no single thread
 * has to wake all of them. At the end each worker withdraws its unused offers. They are the newest jobs in
 * its deque, because calls nest.
 *
 * A range with a cancel request checks the request after each claim and between calls. With automatic
 * grain, one claim is split into calls of about PIECE_NS. A worker that sees the request sets was_cancelled and
 * leaves; the items that it had claimed are skipped. Other workers see the request at the latest when they
 * claim again. So items were skipped if and only if was_cancelled is set.
 *
 * A caller that waits for the last participants first runs remaining items of the loop, then jobs that the
 * participants pushed (wait.c), and then sleeps. */

enum { OFFERS_PER_WORKER = 2, PIECE_NS = 4000 };

/* ---------------------------------------------------------------------------------------------- ranges */

static void run_all(const quern__range *range, uint32_t worker_index)
{
    uint32_t grain = range->grain != 0 ? range->grain : range->count;
    for (uint32_t begin = range->first, end; begin < range->count; begin = end) {
        end = range->count - begin > grain ? begin + grain : range->count;
        range->function(range->user_data, begin, end, worker_index);
    }
}

/* Adapts the number of items per call to PIECE_NS. It at most doubles, because the first items may be the
 * fast ones, but shrinks at once. */
static uint32_t adapt(uint32_t piece, uint64_t took_ns)
{
    if (took_ns < PIECE_NS / 2 && piece <= UINT32_MAX / 2) return 2 * piece;
    if (took_ns <= 2 * (uint64_t)PIECE_NS) return piece;
    uint32_t smaller = (uint32_t)(piece * (uint64_t)PIECE_NS / took_ns);
    return smaller != 0 ? smaller : 1;
}

/* Runs a range until a cancel request. `piece` is the number of items per call with automatic grain; each
 * call updates it. The clock is read once per call: the end of one call is the beginning of the next. */
static bool run_until_asked(const quern__range *range, uint32_t worker_index, uint32_t *piece)
{
    uint64_t start_ns = range->grain == 0 ? quern__clock_ns() : 0;
    for (uint32_t begin = range->first, end; begin < range->count; begin = end) {
        if (quern__cancel_is_requested(range->cancel)) return false;
        uint32_t size = range->grain != 0 ? range->grain : *piece;
        end = range->count - begin > size ? begin + size : range->count;
        range->function(range->user_data, begin, end, worker_index);
        if (range->grain != 0) continue;
        uint64_t now_ns = quern__clock_ns();
        *piece = adapt(*piece, now_ns - start_ns);
        start_ns = now_ns;
    }
    return true;
}

static QUERN__NO_INLINE bool run_until_asked_alone(const quern__range *range, uint32_t worker_index)
{
    uint32_t piece = 1;
    return run_until_asked(range, worker_index, &piece);
}

bool quern__range_run(const quern__range *range, uint32_t worker_index)
{
    if (QUERN__UNLIKELY(range->cancel != NULL)) return run_until_asked_alone(range, worker_index);
    run_all(range, worker_index);
    return true;
}

/* ----------------------------------------------------------------------------------------------- slots */

static uint64_t pack(uint32_t begin, uint32_t end)
{
    return (uint64_t)end << 32 | begin;
}

static uint32_t begin_of(uint64_t items)
{
    return (uint32_t)items;
}

static uint32_t end_of(uint64_t items)
{
    return (uint32_t)(items >> 32);
}

static bool is_empty(uint64_t items)
{
    return begin_of(items) == end_of(items);
}

static bool replace(quern__loop_slot *slot, uint64_t *expected, uint64_t items)
{
    return atomic_compare_exchange_weak_explicit(&slot->items, expected, items, memory_order_relaxed,
                                                 memory_order_relaxed);
}

/* Returns the end of a claim that starts at the begin of `items`. A claim is one eighth of the items in
 * whole grains, which are called one by one; with automatic grain it is one quarter, in one call. So claims
 * are few, and they shrink toward the end of the range, so that all workers finish at about the same
 * time. */
static uint32_t claim_end(const quern__loop *loop, uint64_t items)
{
    uint32_t left = end_of(items) - begin_of(items);
    uint32_t size = left / 4;
    if (loop->range.grain != 0) size = left / 8 / loop->grain * loop->grain;
    if (size < loop->grain) size = loop->grain;
    return size < left ? begin_of(items) + size : end_of(items);
}

static bool steal_items(quern__loop *loop, quern__loop_slot *victim, uint64_t *out_items)
{
    uint64_t items = atomic_load_explicit(&victim->items, memory_order_relaxed);
    while (!is_empty(items)) {
        /* Takes the back half in whole grains; all if that is one grain, or if the slot's worker has not
         * started. */
        uint32_t middle = begin_of(items);
        if (atomic_load_explicit(&victim->is_owned, memory_order_relaxed)) {
            uint32_t grain_count = 1 + (end_of(items) - begin_of(items) - 1) / loop->grain;
            middle += grain_count / 2 * loop->grain;
        }
        *out_items = pack(middle, end_of(items));
        if (replace(victim, &items, pack(begin_of(items), middle))) return true;
    }
    return false;
}

/* Steals items, claims the first of them and puts the rest into the worker's own slot. A plain store is
 * sufficient: the own slot is empty, and other workers never swap an empty slot. */
static bool claim_stolen(quern__loop *loop, const quern__worker *worker, uint64_t *out_call)
{
    uint64_t start_ns = quern__worker_event_start(worker);
    uint64_t items;
    uint32_t own = worker->index, victim = own;
    do {
        if (++victim == loop->slot_count) victim = 0;
        if (victim == own) return false;
    } while (!steal_items(loop, &loop->slots[victim], &items));
    if (start_ns != 0)
        quern__worker_report_event(worker, QUERN__JOB_EVENT_STEAL, start_ns,
                                   end_of(items) - begin_of(items));
    uint32_t end = claim_end(loop, items);
    *out_call = pack(begin_of(items), end);
    atomic_store_explicit(&loop->slots[own].items, pack(end, end_of(items)), memory_order_relaxed);
    return true;
}

/* Claims items from the worker's own slot, and steals some if it is empty. */
static bool claim(quern__loop *loop, const quern__worker *worker, uint64_t *out_call)
{
    quern__loop_slot *own = &loop->slots[worker->index];
    uint64_t items = atomic_load_explicit(&own->items, memory_order_relaxed);
    while (!is_empty(items)) {
        uint32_t end = claim_end(loop, items);
        *out_call = pack(begin_of(items), end);
        if (replace(own, &items, pack(end, end_of(items)))) return true;
    }
    return claim_stolen(loop, worker, out_call);
}

static quern__range range_of(const quern__loop *loop, uint64_t items)
{
    return (quern__range){.function = loop->range.function,
                          .user_data = loop->range.user_data,
                          .count = end_of(items),
                          .grain = loop->range.grain,
                          .first = begin_of(items),
                          .cancel = loop->range.cancel};
}

/* ---------------------------------------------------------------------------------------- participants */

static void init_slot(quern__loop_slot *slot, uint64_t begin, uint64_t end)
{
    atomic_init(&slot->items, pack((uint32_t)begin, (uint32_t)end));
    atomic_init(&slot->is_owned, false);
}

/* Worker 0 and the external worker that calls share one portion: it belongs to the caller if that is an
 * external worker, otherwise to worker 0, which is likely to join the loop. Other external workers start
 * with an empty slot, because they may never join. */
void quern__loop_init(quern__loop *loop, void (*run)(quern__job *job, quern__worker *worker),
                      const void *scope, const quern__range *range, quern__loop_slot *slots,
                      const quern__worker *caller)
{
    const uint32_t thread_count = caller->jobs->thread_count;
    loop->offer.run = run;
    loop->offer.scope = scope;
    loop->offer.target = loop;
    loop->range.function = range->function;
    loop->range.user_data = range->user_data;
    loop->range.grain = range->grain;
    loop->range.cancel = range->cancel;
    loop->range.name = range->name;
    loop->grain = range->grain != 0 ? range->grain : 1;
    loop->wakes_sleepers = true;
    loop->is_stored = false;
    loop->queue = QUERN__QUEUE_NORMAL;
    loop->slots = slots;
    loop->slot_count = caller->jobs->worker_count;
    loop->float_mode = quern__float_mode();
    uint64_t grain_count = 1 + (uint64_t)(range->count - range->first - 1) / loop->grain;
    uint64_t share_count = grain_count < thread_count ? grain_count : thread_count;
    atomic_init(&loop->references, 0);
    atomic_init(&loop->invitation_count, (uint32_t)share_count - 1);
    atomic_init(&loop->was_cancelled, false);
    for (uint32_t index = thread_count; index < loop->slot_count; index++)
        init_slot(&slots[index], 0, 0);
    const uint32_t own = quern__worker_is_external(caller) ? caller->index : 0;
    if (own != 0) init_slot(&slots[0], 0, 0);
    uint64_t begin = range->first;
    for (uint64_t share = 0; share < thread_count; share++) {
        uint64_t end = begin;
        if (share < share_count) end = range->first + grain_count * (share + 1) / share_count * loop->grain;
        if (end > range->count) end = range->count;
        init_slot(&slots[share == 0 ? own : share], begin, end);
        begin = end;
    }
}

static uint32_t take_invitations(quern__loop *loop)
{
    uint32_t left = atomic_load_explicit(&loop->invitation_count, memory_order_relaxed);
    while (left != 0) {
        uint32_t taken = left < OFFERS_PER_WORKER ? left : OFFERS_PER_WORKER;
        if (atomic_compare_exchange_weak_explicit(&loop->invitation_count, &left, left - taken,
                                                  memory_order_relaxed, memory_order_relaxed))
            return taken;
    }
    return 0;
}

/* Relaxed: `references` cannot reach 0 meanwhile, because this worker has a reference itself or is the
 * caller. The push publishes the loop. */
static uint32_t offer_in_deque(quern__loop *loop, quern__worker *worker, uint32_t count)
{
    uint32_t word_count = loop->is_stored ? QUERN__STORED_OFFER_WORDS : 0;
    uint32_t pushed_count = 0;
    if (!loop->is_stored) atomic_fetch_add_explicit(&loop->references, count, memory_order_relaxed);
    while (pushed_count < count && quern__deque_push(&worker->deque, &loop->offer, word_count))
        pushed_count++;
    if (pushed_count < count && !loop->is_stored)
        atomic_fetch_sub_explicit(&loop->references, count - pushed_count, memory_order_relaxed);
    if (pushed_count != 0 && loop->wakes_sleepers)
        quern__jobs_notify(worker->jobs, worker, loop->offer.scope);
    return pushed_count;
}

/* Makes offers. Returns the number of offers in the deque. */
static uint32_t invite(quern__loop *loop, quern__worker *worker)
{
    uint32_t count = take_invitations(loop);
    if (count == 0) return 0;
    if (loop->queue == QUERN__QUEUE_NORMAL) return offer_in_deque(loop, worker, count);
    /* Offers for which there is no memory are skipped: the loop then has fewer participants. */
    for (uint32_t i = 0; i < count; i++) {
        quern__node *node = quern__node_create(worker->jobs, &loop->offer, loop->queue);
        if (node == NULL) break;
        quern__node_submit(node, NULL);
    }
    return 0;
}

/* Withdraws this worker's unused offers. Offers begin at deque index `bottom`; above them there may be jobs
 * that items have submitted, which run now. Older jobs stay untouched, even if a rescuing wait has removed
 * the offers (wait.c). Above the offers of a loop with is_stored, jobs stay in the deque: they may wait for
 * the loop's counter, which cannot reach zero before this worker returns. */
static uint32_t withdraw(const quern__loop *loop, quern__worker *worker, uint32_t offer_count,
                         int64_t bottom)
{
    uint32_t withdrawn_count = 0;
    while (withdrawn_count < offer_count && quern__deque_bottom(&worker->deque) > bottom) {
        const quern__deque_slot *newest =
            quern__deque_slot_of(&worker->deque, quern__deque_bottom(&worker->deque) - 1);
        /* Relaxed: only this worker writes the slot. */
        if (loop->is_stored && atomic_load_explicit(&newest->target, memory_order_relaxed) != loop) break;
        quern__deque_slot *slot = quern__deque_pop(&worker->deque);
        if (slot == NULL) break;
        if (atomic_load_explicit(&slot->target, memory_order_relaxed) == loop) {
            withdrawn_count++;
            continue;
        }
        quern__job job;
        quern__deque_read_slot(slot, &job);
        quern__worker_run_own_job(worker, &job);
    }
    quern__worker_flush_finished(worker);
    return withdrawn_count;
}

/* Returns the number of items that it ran. */
static uint64_t work_to_the_end(quern__loop *loop, uint64_t items, const quern__worker *worker)
{
    uint64_t item_count = 0;
    do {
        const quern__range claimed = range_of(loop, items);
        run_all(&claimed, worker->index);
        item_count += end_of(items) - begin_of(items);
    } while (claim(loop, worker, &items));
    return item_count;
}

/* Returns 0 if a cancel request stopped it. The flag is relaxed: leaving the loop publishes it. Not
 * inlined, so that loops without a cancel request do not pay for it. */
static QUERN__NO_INLINE uint64_t work_until_asked(quern__loop *loop, uint64_t items,
                                                  const quern__worker *worker)
{
    uint64_t item_count = 0;
    uint32_t piece = 1;
    do {
        const quern__range claimed = range_of(loop, items);
        if (!run_until_asked(&claimed, worker->index, &piece)) {
            atomic_store_explicit(&loop->was_cancelled, true, memory_order_relaxed);
            return 0;
        }
        item_count += end_of(items) - begin_of(items);
    } while (claim(loop, worker, &items));
    return item_count;
}

static void work(quern__loop *loop, uint64_t items, const quern__worker *worker,
                 quern__loop_contribution *share)
{
    const uint32_t float_mode = loop->float_mode; /* the loop may be gone at the end */
    const uint32_t own_mode = quern__float_mode_enter(float_mode);
    uint64_t start_ns = share != NULL ? quern__clock_ns() : 0;
    uint64_t item_count = QUERN__LIKELY(loop->range.cancel == NULL) ? work_to_the_end(loop, items, worker)
                                                                    : work_until_asked(loop, items, worker);
    quern__float_mode_leave(float_mode, own_mode);
    if (share == NULL) return;
    share->item_count = item_count;
    share->time_ns = quern__clock_ns() - start_ns;
}

bool quern__loop_help(quern__loop *loop, quern__worker *worker)
{
    uint64_t items;
    if (quern__cancel_is_requested(loop->range.cancel) || !claim(loop, worker, &items)) return false;
    quern__worker_note_job_found(worker);
    work(loop, items, worker, NULL);
    return true;
}

uint32_t quern__loop_join(quern__loop *loop, quern__worker *worker, quern__loop_contribution *share)
{
    uint64_t items;
    /* Relaxed: a thief that does not see the flag yet steals all items instead of half of them. */
    atomic_store_explicit(&loop->slots[worker->index].is_owned, true, memory_order_relaxed);
    if (!claim(loop, worker, &items)) return 0;
    int64_t bottom = quern__deque_bottom(&worker->deque);
    uint32_t offer_count = invite(loop, worker);
    int64_t floor = worker->floor;
    worker->floor = quern__deque_bottom(&worker->deque); /* an item must not wait for the offers below */
    work(loop, items, worker, share);
    worker->floor = floor;
    return withdraw(loop, worker, offer_count, bottom);
}

/* ------------------------------------------------------------------------- loops that a caller waits for */

/* Each worker remembers, per function, the times per item of recent loops, alone and shared, and decides by
 * them (sharing.c). A loop that is expected to be short is shared with awake workers only, except after a
 * series of such loops. A shared loop yields the time of the caller's own items, which includes the overhead
 * of sharing.
 *
 * Loops are not shared while external workers raise the number of awake workers above the number of
 * processors; see yield.c. */

/* Up to this number of workers, the slots need at most 1 KiB of stack per nested call. */
#ifndef QUERN__FEW_WORKERS
#define QUERN__FEW_WORKERS 16
#endif

enum {
    /* Added to `references` while the caller sleeps until no other reference is left. */
    SLEEPING_REFERENCE = 1 << 30,
    FIRST_SHARE =
        8 /* part of a loop on one thread after which the worker looks whether it is as short as expected */
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
    if (cost->function == range->function && cost->size_class == size_class) return cost;
    cost->function = range->function;
    cost->size_class = size_class;
    quern__times_forget(&cost->times);
    return cost;
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

/* Runs a loop that is expected to be faster on one thread. If its first part takes longer than expected, the
 * rest remains to be shared. Returns whether it does. */
static bool run_alone(quern__worker *worker, const quern__range *range, quern__sharing *sharing)
{
    quern__known_times *times = &sharing->cost->times;
    const uint64_t start_ns = quern__clock_ns();
    const uint32_t grain = range->grain != 0 ? range->grain : 1;
    uint32_t first = range->count / FIRST_SHARE / grain * grain;
    if (first < grain) first = grain;
    quern__range part = *range;
    part.count = first < range->count ? first : range->count;
    sharing->rest.first = part.count;
    sharing->is_whole = quern__range_run(&part, worker->index);
    if (!sharing->is_whole) return false;
    uint64_t took_ns = quern__clock_ns() - start_ns;
    if (part.count < range->count && took_ns > QUERN__QUIET_NS / 4) {
        times->alone_ns = (double)took_ns / part.count;
        times->measured_ns = 0;
        return true;
    }
    sharing->is_whole = quern__range_run(&sharing->rest, worker->index);
    took_ns = quern__clock_ns() - start_ns;
    /* A nested loop may have replaced the cost entry. */
    if (sharing->is_whole && sharing->cost->function == range->function)
        quern__times_learn_alone(times, range->count, took_ns);
    return false;
}

bool quern__range_begin(quern__worker *worker, const quern__range *range, quern__sharing *out_sharing)
{
    quern__range *rest = &out_sharing->rest;
    quern__loop_cost *cost = cost_of(worker, range);
    *rest = *range;
    out_sharing->cost = cost;
    out_sharing->is_whole = true;
    if (quern__times_choose(&cost->times, range->count) == QUERN__RUN_ALONE &&
        !run_alone(worker, range, out_sharing))
        return false;
    if (!QUERN_CHECKS) {
        out_sharing->is_whole = run_in_crowd(worker, rest);
        if (!out_sharing->is_whole || rest->first == rest->count) return false;
    }
    const uint64_t now_ns = quern__clock_ns();
    /* Consecutive short loops with short gaps count as one long loop. */
    if (now_ns - worker->loop_end_ns > QUERN__QUIET_NS) worker->quiet_ns = 0;
    out_sharing->wake =
        QUERN_CHECKS || cost->times.alone_ns == 0 ||
        cost->times.alone_ns * (rest->count - rest->first) + (double)worker->quiet_ns >= QUERN__QUIET_NS;
    if (out_sharing->wake) worker->quiet_ns = 0;
    out_sharing->start_ns = now_ns;
    return true;
}

void quern__range_end_shared(quern__worker *worker, const quern__sharing *sharing,
                             const quern__loop_contribution *own)
{
    const uint32_t count = sharing->rest.count - sharing->rest.first;
    worker->loop_end_ns = quern__clock_ns();
    const uint64_t took_ns = worker->loop_end_ns - sharing->start_ns;
    if (!sharing->wake) worker->quiet_ns += took_ns;
    const bool had_help = own->item_count != count;
    if (!had_help && took_ns >= 2 * (uint64_t)QUERN__QUIET_NS) quern__worker_yield_after_long_work(worker);
    /* A nested loop may have replaced the cost entry; a cancelled one is not known. */
    if (sharing->cost->function != sharing->rest.function || own->item_count == 0 || !sharing->is_whole)
        return;
    const double own_item_ns = (double)own->time_ns / (double)own->item_count;
    quern__times_learn_shared(&sharing->cost->times, count, took_ns,
                              had_help ? own_item_ns * count : (double)took_ns);
}

/* ------------------------------------------------------------------------------------------- the calls */

static bool run_or_share(quern__worker *worker, const quern__range *range)
{
    quern__sharing sharing;
    quern__loop_contribution own = {0};
    if (!quern__range_begin(worker, range, &sharing)) return sharing.is_whole;
    sharing.is_whole = quern__range_share(worker, &sharing.rest, sharing.wake, &own);
    quern__range_end_shared(worker, &sharing, &own);
    return sharing.is_whole;
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

quern_result quern__jobs_parallel_for(quern_jobs *jobs, const quern__range *range, const char *function)
{
    if (range->count == 0) return QUERN_OK;
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern_result result = worker == NULL ? quern__jobs_enter(jobs, function) : QUERN_OK;
    if (result != QUERN_OK) return result;
    quern__worker *runner = worker != NULL ? worker : quern__current_worker;
    quern__worker_add_closed_depth(runner, range->is_closed);
    const quern__named_work work = quern__worker_begin_named(runner, range->name);
    const bool is_whole = QUERN__UNLIKELY(runner->loop_observer != NULL) ? run_watched(runner, range)
                          : quern__range_is_plain(range, runner->jobs->thread_count)
                              ? quern__range_run(range, runner->index)
                              : run_or_share(runner, range);
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

static void run_in_pool(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                        void *argument)
{
    quern_jobs_parallel_for(context, count, grain, function, argument);
}

const quern__executor *quern__jobs_executor(quern_jobs *jobs, quern__executor *executor)
{
    if (jobs == NULL) return NULL;
    *executor = (quern__executor){.parallel_for = run_in_pool,
                                  .context = jobs,
                                  .thread_count = jobs->thread_count,
                                  .worker_count = jobs->worker_count};
    return executor;
}
