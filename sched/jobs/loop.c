/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/loop.h"

/* How a range is divided.
 *
 *     slots:  |0 ..... 24|25 ..... 49|50 ..... 74|75 ..... 99|     worker w starts in slot w, every time
 *              ^ claims   ^                     ^
 *              from the   not come yet:         a thief takes the back half
 *              front      all of it goes
 *
 * A slot is one 64-bit word with begin and end, changed by compare-and-swap; so an item is in one slot at a
 * time, and whoever swaps it out has it alone. The word says all there is to know of a slot: a value that
 * comes back (ABA) does no harm. Relaxed order is enough, since no data is handed over with items: what the
 * loop reads was written before it began, and reaches helpers through the deques; what it writes reaches
 * whoever waits through `references`.
 *
 * Who takes an offer and finds items makes two new offers before it begins, until there are as many
 * participants as there is work for; so they come in a growing tree and no single thread has to call them
 * all. Offers that nobody took are withdrawn in the end: calls nest, so they are the newest in the worker's
 * deque.
 *
 * Whoever waits for the last participants looks for items of this loop, then for what they have put on
 * offer (wait.c), and then sleeps.
 *
 * What it costs. Waking a sleeper takes the waker longer than many loops run, and the sleeper comes later
 * still; to share with a worker that is awake takes a few transfers of a cache line between two processors,
 * which is longer than very small loops run. So a worker remembers what an item of a function took lately:
 * alone, and in a shared loop from beginning to end. A loop that is expected to take less than INLINE_NS,
 * or less than sharing it would, runs here. One that is expected to be over before a sleeper comes
 * (QUIET_NS) wakes nobody, unless others went before it in a row; whoever is awake may help. What is known
 * of a shared loop is what its caller's own items took, with the price of sharing in it; so a short one is
 * tried alone once. As time goes by the other way gets another try. In builds with QUERN_CHECKS every loop
 * is shared: there, finding races matters more than time. */

#ifndef QUERN__FEW_THREADS
#define QUERN__FEW_THREADS 16 /* with no more, slots take 1 KiB of stack per nested call */
#endif

enum {
    OFFERS_PER_WORKER = 2,
    SLEEPING_REFERENCE = 1 << 30, /* added to references: the caller sleeps until no other is left */
    INLINE_NS = 500,
    TRY_INLINE_NS = 20000,
    QUIET_NS = 50000,
    FORGET_SHARE = 64,
    FIRST_SHARE = 8
};

/* ------------------------------------------------------------------------------------------ ranges */

bool quern__range_is_plain(const quern__range *range, uint32_t thread_count)
{
    return thread_count == 1 || range->count - range->first <= 1 ||
           range->count - range->first <= range->grain;
}

void quern__range_run(const quern__range *range, uint32_t worker_index)
{
    uint32_t grain = range->grain != 0 ? range->grain : range->count;
    for (uint32_t begin = range->first, end; begin < range->count; begin = end) {
        end = range->count - begin > grain ? begin + grain : range->count;
        range->function(range->user_data, begin, end, worker_index);
    }
}

/* ------------------------------------------------------------------------------------------- slots */

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

static bool replace(quern__slot *slot, uint64_t *expected, uint64_t items)
{
    return atomic_compare_exchange_weak_explicit(&slot->items, expected, items, memory_order_relaxed,
                                                 memory_order_relaxed);
}

/* Where the claim that starts at the front of these ends: an eighth of what is left, in whole grains, which
 * are called one by one; with automatic grain a quarter, in one call. So claims are few, and get smaller
 * toward the end, where they even out the finish. */
static uint32_t claim_end(const quern__loop *loop, uint64_t items)
{
    uint32_t left = end_of(items) - begin_of(items);
    uint32_t size = left / 4;
    if (loop->range.grain != 0) size = left / 8 / loop->grain * loop->grain;
    if (size < loop->grain) size = loop->grain;
    return size < left ? begin_of(items) + size : end_of(items);
}

/* Claims from the worker's own slot. */
static bool claim_own(quern__loop *loop, quern__slot *own, uint64_t *out_call)
{
    uint64_t items = atomic_load_explicit(&own->items, memory_order_relaxed);
    while (!is_empty(items)) {
        uint32_t end = claim_end(loop, items);
        *out_call = pack(begin_of(items), end);
        if (replace(own, &items, pack(end, end_of(items)))) return true;
    }
    return false;
}

/* Where the part of a victim's items begins that a thief takes: the back half in whole grains, or all when
 * that is one grain or the worker whose slot it is has not come. */
static uint32_t cut(const quern__loop *loop, const quern__slot *victim, uint64_t items)
{
    if (!atomic_load_explicit(&victim->is_owned, memory_order_relaxed)) return begin_of(items);
    uint32_t grain_count = 1 + (end_of(items) - begin_of(items) - 1) / loop->grain;
    return begin_of(items) + grain_count / 2 * loop->grain;
}

static bool steal_items(quern__loop *loop, quern__slot *victim, uint64_t *out_items)
{
    uint64_t items = atomic_load_explicit(&victim->items, memory_order_relaxed);
    while (!is_empty(items)) {
        uint32_t middle = cut(loop, victim, items);
        *out_items = pack(middle, end_of(items));
        if (replace(victim, &items, pack(begin_of(items), middle))) return true;
    }
    return false;
}

/* A plain store puts stolen items into the own slot: it is empty, and nobody swaps an empty slot. */
static bool claim_stolen(quern__loop *loop, const quern__worker *worker, uint64_t *out_call)
{
    uint64_t start_ns = quern__worker_start_showing(worker);
    uint64_t items;
    uint32_t own = worker->index, victim = own;
    do {
        if (++victim == loop->slot_count) victim = 0;
        if (victim == own) return false;
    } while (!steal_items(loop, &loop->slots[victim], &items));
    if (start_ns != 0)
        quern__worker_show(worker, QUERN__JOB_STEAL, start_ns, end_of(items) - begin_of(items));
    uint32_t end = claim_end(loop, items);
    *out_call = pack(begin_of(items), end);
    atomic_store_explicit(&loop->slots[own].items, pack(end, end_of(items)), memory_order_relaxed);
    return true;
}

static bool claim(quern__loop *loop, const quern__worker *worker, uint64_t *out_call)
{
    return claim_own(loop, &loop->slots[worker->index], out_call) || claim_stolen(loop, worker, out_call);
}

static void call(const quern__loop *loop, uint64_t items, uint32_t worker_index)
{
    const quern__range claimed = {.function = loop->range.function,
                                  .user_data = loop->range.user_data,
                                  .count = end_of(items),
                                  .grain = loop->range.grain,
                                  .first = begin_of(items)};
    quern__range_run(&claimed, worker_index);
}

/* ------------------------------------------------------------------------------------- participants */

void quern__loop_init(quern__loop *loop, void (*run)(quern__job *job, quern__worker *worker),
                      const void *scope, const quern__range *range, quern__slot *slots, uint32_t slot_count)
{
    loop->offer.run = run;
    loop->offer.scope = scope;
    loop->offer.target = loop;
    loop->range.function = range->function;
    loop->range.user_data = range->user_data;
    loop->range.count = range->count;
    loop->range.grain = range->grain;
    loop->range.first = range->first;
    loop->grain = range->grain != 0 ? range->grain : 1;
    loop->wake = true;
    loop->slots = slots;
    loop->slot_count = slot_count;
    uint64_t grain_count = 1 + (uint64_t)(range->count - range->first - 1) / loop->grain;
    uint64_t share_count = grain_count < slot_count ? grain_count : slot_count;
    atomic_init(&loop->references, 0);
    atomic_init(&loop->invitation_count, (uint32_t)share_count - 1);
    uint64_t begin = range->first;
    for (uint64_t index = 0; index < slot_count; index++) {
        uint64_t end = begin;
        if (index < share_count) end = range->first + grain_count * (index + 1) / share_count * loop->grain;
        if (end > range->count) end = range->count;
        atomic_init(&slots[index].items, pack((uint32_t)begin, (uint32_t)end));
        atomic_init(&slots[index].is_owned, false);
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

/* Returns how many offers went into the deque. Relaxed: the worker's own reference, or being the caller,
 * keeps the count from meaning anything meanwhile; the push publishes the loop. */
static uint32_t invite(quern__loop *loop, quern__worker *worker)
{
    uint32_t invited_count = take_invitations(loop);
    if (invited_count == 0) return 0;
    atomic_fetch_add_explicit(&loop->references, invited_count, memory_order_relaxed);
    uint32_t pushed_count = 0;
    while (pushed_count < invited_count && quern__deque_push(&worker->deque, &loop->offer, 0))
        pushed_count++;
    if (pushed_count < invited_count)
        atomic_fetch_sub_explicit(&loop->references, invited_count - pushed_count, memory_order_relaxed);
    if (pushed_count != 0 && loop->wake) quern__jobs_notify(worker->jobs, worker, loop->offer.scope);
    return pushed_count;
}

/* The offers begin at `bottom`; above them there may be jobs that the items have submitted. Of what is
 * older nothing is touched, also when a rescuer has taken the offers out (wait.c). */
static uint32_t withdraw(const quern__loop *loop, quern__worker *worker, uint32_t offer_count,
                         int64_t bottom)
{
    uint32_t withdrawn_count = 0;
    while (withdrawn_count < offer_count && quern__deque_bottom(&worker->deque) > bottom) {
        quern__deque_slot *slot = quern__deque_pop(&worker->deque);
        if (slot == NULL) break;
        if (atomic_load_explicit(&slot->target, memory_order_relaxed) == loop) {
            withdrawn_count++;
            continue;
        }
        quern__job job;
        quern__deque_read_slot(slot, &job);
        quern__worker_run_own(worker, &job);
    }
    quern__worker_settle(worker);
    return withdrawn_count;
}

static void work(quern__loop *loop, uint64_t items, const quern__worker *worker, quern__part *part)
{
    uint64_t start_ns = part != NULL ? quern__clock_ns() : 0;
    uint64_t item_count = 0;
    do {
        item_count += end_of(items) - begin_of(items);
        call(loop, items, worker->index);
    } while (claim(loop, worker, &items));
    if (part == NULL) return;
    part->item_count = item_count;
    part->time_ns = quern__clock_ns() - start_ns;
}

bool quern__loop_help(quern__loop *loop, quern__worker *worker)
{
    uint64_t items;
    if (!claim(loop, worker, &items)) return false;
    quern__worker_found_job(worker);
    work(loop, items, worker, NULL);
    return true;
}

uint32_t quern__loop_join(quern__loop *loop, quern__worker *worker, quern__part *part)
{
    uint64_t items;
    /* Relaxed: a thief that does not see it yet takes more than it might have. */
    atomic_store_explicit(&loop->slots[worker->index].is_owned, true, memory_order_relaxed);
    if (!claim(loop, worker, &items)) return 0;
    int64_t bottom = quern__deque_bottom(&worker->deque);
    uint32_t offer_count = invite(loop, worker);
    int64_t floor = worker->floor;
    worker->floor = quern__deque_bottom(&worker->deque); /* the offers are not what an item may wait for */
    work(loop, items, worker, part);
    worker->floor = floor;
    return withdraw(loop, worker, offer_count, bottom);
}

/* ------------------------------------------------------------------------------------ parallel loop */

/* A loop on the stack of the caller, who waits for it. */
typedef struct awaited_loop {
    quern__loop loop;
    quern__worker *caller;
} awaited_loop;

static void run_awaited_offer(quern__job *job, quern__worker *worker)
{
    awaited_loop *awaited = job->target;
    uint64_t start_ns = quern__worker_start_showing(worker);
    uint32_t done_count = 1 + quern__loop_join(&awaited->loop, worker, NULL);
    if (start_ns != 0) quern__worker_show(worker, QUERN__JOB_LOOP, start_ns, 0);
    quern__worker *caller = awaited->caller;
    /* Release pairs with the caller's acquire. Then the loop is gone, unless the caller sleeps. */
    uint32_t before =
        atomic_fetch_sub_explicit(&awaited->loop.references, done_count, memory_order_release);
    if (before == SLEEPING_REFERENCE + done_count) quern__parker_give(&caller->parker);
}

/* Acquire pairs with the release of those who leave: what they wrote is visible now. */
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

/* Whoever leaves last gives a permit after subtracting. */
static void announce_loop(const quern__wait *wait, quern__worker *caller)
{
    quern__loop *loop = wait->target;
    (void)caller;
    atomic_fetch_add_explicit(&loop->references, SLEEPING_REFERENCE, memory_order_relaxed);
}

static void run_shared(quern__worker *caller, const quern__range *range, quern__slot *slots, bool wake,
                       quern__part *own)
{
    awaited_loop awaited;
    quern__loop *loop = &awaited.loop;
    quern__wait wait = {
        .scope = loop, .target = loop, .is_done = all_left, .help = help_loop, .announce = announce_loop};
    awaited.caller = caller;
    quern__loop_init(loop, run_awaited_offer, loop, range, slots, caller->jobs->thread_count);
    loop->wake = wake;
    uint32_t withdrawn_count = quern__loop_join(loop, caller, own);
    if (withdrawn_count != 0)
        atomic_fetch_sub_explicit(&loop->references, withdrawn_count, memory_order_relaxed);
    if (!all_left(&wait)) quern__worker_wait(caller, &wait);
}

/* Not inlined, so that each caller pays for the slots it needs. */
__attribute__((noinline)) static void run_shared_few(quern__worker *caller, const quern__range *range,
                                                     bool wake, quern__part *own)
{
    quern__slot slots[QUERN__FEW_THREADS];
    run_shared(caller, range, slots, wake, own);
}

__attribute__((noinline)) static void run_shared_many(quern__worker *caller, const quern__range *range,
                                                      bool wake, quern__part *own)
{
    quern__slot slots[QUERN_MAX_THREADS];
    run_shared(caller, range, slots, wake, own);
}

/* own: what the caller did itself; may be NULL. */
static void share(quern__worker *caller, const quern__range *range, bool wake, quern__part *own)
{
    if (caller->jobs->thread_count <= QUERN__FEW_THREADS)
        run_shared_few(caller, range, wake, own);
    else
        run_shared_many(caller, range, wake, own);
}

/* -------------------------------------------------------------------------------------------- costs */

/* By size as well, in powers of two: one function often stands for loops of several kinds. Who comes first
 * has a place until another needs it. */
static quern__cost *cost_of(quern__worker *worker, const quern__range *range)
{
    uint32_t size_class = 32 - (uint32_t)__builtin_clz(range->count);
    uint64_t hash = ((uint64_t)(uintptr_t)range->function + size_class) * 0x9E3779B97F4A7C15u;
    quern__cost *cost = &worker->costs[hash >> 32 & (QUERN__COST_COUNT - 1)];
    if (cost->function != range->function || cost->size_class != size_class)
        *cost = (quern__cost){.function = range->function, .size_class = size_class};
    return cost;
}

/* One measurement may be far too long, when the thread was interrupted. */
static void mix(double *known_ns, double new_ns)
{
    if (*known_ns != 0 && new_ns > 2 * *known_ns) new_ns = 2 * *known_ns;
    *known_ns = *known_ns == 0 ? new_ns : (*known_ns + new_ns) / 2;
}

/* Not known: 0, so that it is shared. */
static bool is_for_one(const quern__cost *cost, double count)
{
    double alone_ns = cost->alone_ns * count;
    if (alone_ns == 0) return false;
    if (!cost->is_measured) return alone_ns < TRY_INLINE_NS;
    return alone_ns < INLINE_NS || (alone_ns < TRY_INLINE_NS && cost->alone_ns <= cost->shared_ns);
}

/* A row of short loops, one soon after the other, is as good as a long one. */
static bool is_worth_waking(quern__worker *worker, double known_ns, uint64_t now_ns)
{
    if (now_ns - worker->loop_end_ns > QUIET_NS) worker->quiet_ns = 0;
    bool wake = known_ns == 0 || known_ns + (double)worker->quiet_ns >= QUIET_NS;
    if (wake) worker->quiet_ns = 0;
    return wake;
}

/* Part of a range, from its first item to `count`. */
static quern__range until(const quern__range *range, uint32_t count)
{
    quern__range part = *range;
    part.count = count;
    return part;
}

static void run_timed(quern__worker *worker, const quern__range *range, quern__cost *cost)
{
    uint32_t count = range->count - range->first;
    uint64_t start_ns = quern__clock_ns();
    quern__part own = {0};
    bool wake = is_worth_waking(worker, cost->alone_ns * count, start_ns);
    share(worker, range, wake, &own);
    worker->loop_end_ns = quern__clock_ns();
    double took_ns = (double)(worker->loop_end_ns - start_ns);
    if (!wake) worker->quiet_ns += worker->loop_end_ns - start_ns;
    if (cost->function != range->function || own.item_count == 0) return;
    mix(&cost->shared_ns, took_ns / count);
    double own_ns = (double)own.time_ns / (double)own.item_count;
    bool is_better_guess = own_ns < cost->alone_ns || took_ns >= 2 * QUIET_NS || cost->alone_ns == 0;
    if (!cost->is_measured && is_better_guess) cost->alone_ns = own_ns;
    if (cost->is_measured) cost->alone_ns -= cost->alone_ns / FORGET_SHARE;
    cost->is_measured = cost->is_measured && took_ns < TRY_INLINE_NS;
}

/* A first part shows whether the expectation holds; the rest is shared if it does not. */
static void run_alone(quern__worker *worker, const quern__range *range, quern__cost *cost)
{
    uint32_t grain = range->grain != 0 ? range->grain : 1;
    uint32_t first = range->count / FIRST_SHARE / grain * grain;
    if (first < grain) first = grain;
    quern__range part = until(range, first < range->count ? first : range->count);
    uint64_t start_ns = quern__clock_ns();
    quern__range_run(&part, worker->index);
    uint64_t took_ns = quern__clock_ns() - start_ns;
    quern__range rest = *range;
    rest.first = part.count;
    if (rest.first < rest.count && took_ns > TRY_INLINE_NS / 4) {
        cost->alone_ns = (double)took_ns / part.count;
        cost->is_measured = false;
        run_timed(worker, &rest, cost);
        return;
    }
    quern__range_run(&rest, worker->index);
    took_ns = quern__clock_ns() - start_ns;
    if (cost->function != range->function) return; /* a loop inside has taken the place */
    if (!cost->is_measured) cost->alone_ns = 0;
    cost->is_measured = true;
    mix(&cost->alone_ns, (double)took_ns / range->count);
    cost->shared_ns -= cost->shared_ns / FORGET_SHARE;
}

static void run_on(quern__worker *worker, const quern__range *range)
{
    if (quern__range_is_plain(range, worker->jobs->thread_count)) {
        quern__range_run(range, worker->index);
        return;
    }
    if (QUERN_CHECKS) {
        share(worker, range, true, NULL);
        return;
    }
    quern__cost *cost = cost_of(worker, range);
    if (is_for_one(cost, range->count))
        run_alone(worker, range, cost);
    else
        run_timed(worker, range, cost);
}

quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                     quern_range_function *function, void *user_data)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_parallel_for", "jobs");
    if (function == NULL) return quern__fail_null("quern_jobs_parallel_for", "function");
    if (count == 0) return QUERN_OK;
    quern__range range = {.function = function, .user_data = user_data, .count = count, .grain = grain};
    quern__worker *worker = quern__jobs_current_worker(jobs);
    if (worker != NULL) {
        bool was_resting = worker->is_resting; /* no longer, with this loop on its stack */
        worker->is_resting = false;
        run_on(worker, &range);
        worker->is_resting = was_resting;
        return QUERN_OK;
    }
    quern_result result = quern__jobs_enter(jobs, "quern_jobs_parallel_for");
    if (result != QUERN_OK) return result;
    run_on(&jobs->workers[0], &range);
    quern__jobs_leave(jobs);
    return QUERN_OK;
}
