/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Guests: threads from outside the pool that are workers of it until they leave.
 *
 * There is a place for each guest. A place is one worker: the first is worker 0, the others come behind the
 * pool's own threads. `guests` says which places are taken, and all of it is in one word:
 *
 *     |reserved: 31 ... 1 0|inside: 31 ... 1 0|     who comes in sets a bit on the right, by a swap, where
 *                                                   neither half has one; who leaves clears it
 *
 * A place is reserved by a registered thread (register.c), which comes in there whenever it likes, and by
 * one that must be alone. So no two threads are the same worker at a time. Who comes in acquires what the
 * last one at this place released when it left: all other changes of the word are swaps, so what it reads
 * goes back to that.
 *
 * Who sleeps because somebody else will go on relies on the guests inside, and so on each that leaves:
 *
 *     leaves                          sleeps in a wait (wait.c), or outside (job_counter.c)
 *     inside &= ~me                   blocked_count or outside_waiter_count += 1
 *     fence                           fence
 *     read both counts;               read guests (and blocked_count): sleep unless this is the last one
 *     if not 0: wake somebody         that is awake, or a place is free
 *
 * One of the two sees the other. Of several that leave, the last one in the order of the word sees that
 * all others are gone, and what they have pushed. */

/* ------------------------------------------------------------------------------------ forked processes */

quern_result quern__jobs_check_threads(const quern_jobs *jobs, const char *function)
{
    if (QUERN__LIKELY(!quern__jobs_has_threads_elsewhere(jobs))) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_THREAD,
        "%s: this process was forked after job pool '%s' was made, and the pool's threads are in "
        "the parent; make a pool in this process",
        function, jobs->name);
}

/* ----------------------------------------------------------------------------------- entering, leaving */

QUERN__FAST_THREAD_LOCAL quern__worker *quern__current_worker;

quern__worker *quern__jobs_outer_worker(const quern_jobs *jobs)
{
    quern__worker *worker = quern__current_worker;
    while (worker != NULL && worker->jobs != jobs)
        worker = worker->outer;
    return worker;
}

static uint32_t all_external_slots(const quern_jobs *jobs)
{
    return UINT32_MAX >> (QUERN_MAX_GUESTS - jobs->external_count);
}

static uint32_t free_slots(const quern_jobs *jobs, uint64_t slots)
{
    return all_external_slots(jobs) & ~(uint32_t)(slots | slots >> 32);
}

/* seq_cst: as the read of a handshake it pairs with quern__jobs_leave. */
bool quern__jobs_has_free_external_slot(const quern_jobs *jobs)
{
    return free_slots(jobs, atomic_load_explicit(&jobs->external_slots, memory_order_seq_cst)) != 0;
}

/* What the last guest has left in the deque is not this one's, unless it was the same thread. (One that has
 * ended may have had the same address; then its jobs count as this one's.) */
static quern__worker *become_worker(quern__worker *worker)
{
    if (worker->last_thread != &quern__current_worker) {
        worker->last_thread = &quern__current_worker;
        worker->floor = quern__deque_bottom(&worker->deque);
    }
    worker->outer = quern__current_worker;
    quern__current_worker = worker;
    return worker;
}

/* Nobody else changes a bit of a place that this thread has for itself. seq_cst: see is_last_one in wait.c.
 * Acquire pairs with the release of whoever was there before it was reserved: see quern__jobs_reserve_external_slot. */
static quern__worker *enter_reserved_slot(quern_jobs *jobs, uint32_t slot)
{
    atomic_fetch_or_explicit(&jobs->external_slots, (uint64_t)1 << slot, memory_order_seq_cst);
    return become_worker(quern__jobs_external_worker(jobs, slot));
}

/* Acquire pairs with the release in leave: a worker passes from one thread to the next. seq_cst: see
 * is_last_one in wait.c. */
static bool swap_in(quern_jobs *jobs, uint64_t *slots, uint32_t slot)
{
    return atomic_compare_exchange_strong_explicit(&jobs->external_slots, slots,
                                                   *slots | (uint64_t)1 << slot, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

/* Not inlined: most guests find nobody inside. */
__attribute__((noinline)) static quern__worker *enter_any_slot(quern_jobs *jobs, uint64_t slots)
{
    for (;;) {
        uint32_t free_mask = free_slots(jobs, slots);
        if (free_mask == 0) return NULL;
        uint32_t slot = (uint32_t)__builtin_ctz(free_mask);
        if (swap_in(jobs, &slots, slot)) return become_worker(quern__jobs_external_worker(jobs, slot));
    }
}

/* Inlined into quern__jobs_enter in any case: each loop from outside goes through it. */
__attribute__((always_inline)) static inline quern__worker *enter_slot(quern_jobs *jobs)
{
    if (QUERN__UNLIKELY(quern__registrations != NULL)) {
        const quern__registration *own = quern__registration_of(jobs);
        if (own != NULL) return enter_reserved_slot(jobs, own->slot);
    }
    /* Relaxed: the swap checks it. */
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    if (QUERN__LIKELY(slots == 0) && swap_in(jobs, &slots, 0)) return become_worker(&jobs->workers[0]);
    return enter_any_slot(jobs, slots);
}

quern__worker *quern__jobs_try_enter(quern_jobs *jobs)
{
    return enter_slot(jobs);
}

/* The others count as reserved, not as inside: nobody is there who could do a job. The first look is
 * relaxed: the swap checks it. That is seq_cst, and acquires: it pairs with the release in leave. */
bool quern__jobs_try_enter_exclusive(quern_jobs *jobs)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    if (slots != 0) return false;
    uint64_t alone = (uint64_t)all_external_slots(jobs) << 32 | 1;
    if (!atomic_compare_exchange_strong_explicit(&jobs->external_slots, &slots, alone, memory_order_seq_cst,
                                                 memory_order_relaxed))
        return false;
    become_worker(&jobs->workers[0]);
    return true;
}

/* Its deque is new, so what it has pushed itself begins at the bottom, 0. */
void quern__jobs_rebind_worker_0(quern_jobs *jobs, const quern__worker *before)
{
    quern__worker *first = &jobs->workers[0];
    first->last_thread = &quern__current_worker;
    first->outer = before->outer;
    quern__current_worker = first;
}

quern_result quern__jobs_enter(quern_jobs *jobs, const char *function)
{
    quern_result result = quern__jobs_check_threads(jobs, function);
    if (result != QUERN_OK) return result;
    if (enter_slot(jobs) != NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_POOL_BUSY,
                       "%s: as many outside threads as may (%u) are running work on job pool '%s'; allow "
                       "more with .guest_count",
                       function, (unsigned)jobs->external_count, jobs->name);
}

/* A guest has left. All others may be asleep in waits, and jobs be left that it might have run; and a
 * thread that waits outside may come in and help. Not inlined: mostly no thread sleeps. */
__attribute__((noinline)) static void wake_after_leave(quern_jobs *jobs)
{
    if (quern__jobs_begin_visit(jobs)) {
        if (quern__jobs_has_any_job(jobs)) quern__jobs_notify_sleepers(jobs, NULL, NULL);
        quern__jobs_end_visit(jobs);
    }
    pthread_mutex_lock(&jobs->outside_mutex);
    pthread_cond_broadcast(&jobs->outside_condition);
    pthread_mutex_unlock(&jobs->outside_mutex);
}

/* Where there is one place, the first, nobody else changes the word while it is taken. Release: pairs with
 * the acquire in try_enter. Acquire: the last to leave sees what the others have pushed. */
static void clear_inside_bit(quern_jobs *jobs, const quern__worker *worker)
{
    if (jobs->external_count == 1)
        atomic_store_explicit(&jobs->external_slots,
                              atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) &
                                  ~(uint64_t)1,
                              QUERN__HANDSHAKE_RELEASE);
    else
        atomic_fetch_and_explicit(&jobs->external_slots,
                                  ~((uint64_t)1 << quern__worker_external_slot(worker)),
                                  memory_order_seq_cst);
}

/* The write and the loads are a handshake that pairs with the counts in sleep_outside and sleep_in_wait. */
void quern__jobs_leave(quern_jobs *jobs)
{
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern__worker_flush_finished(worker);
    const bool uses_asymmetric_fence =
        jobs->uses_asymmetric_fence; /* while the thread is inside: a resize may change it */
    quern__current_worker = worker->outer;
    clear_inside_bit(jobs, worker);
    /* Those who sleep while there are guests make up for a fence that is missing. */
    if (!uses_asymmetric_fence) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t sleepers = atomic_load_explicit(&jobs->blocked_count, QUERN__HANDSHAKE_RELAXED) |
                        atomic_load_explicit(&jobs->outside_waiter_count, QUERN__HANDSHAKE_RELAXED);
    if (QUERN__UNLIKELY(sleepers != 0)) wake_after_leave(jobs);
}

/* The places can be taken again before this guest leaves, so that it tells those who wait for one. Release:
 * what it did to them; it pairs with the acquire in try_enter. */
void quern__jobs_leave_exclusive(quern_jobs *jobs)
{
    atomic_fetch_and_explicit(&jobs->external_slots, UINT32_MAX, memory_order_release);
    quern__jobs_leave(jobs);
}

/* The first look is relaxed: the swap checks it. That acquires what the last one there has released, so
 * that it is seen by the thread that has the place now: it pairs with quern__jobs_leave. */
bool quern__jobs_reserve_external_slot(quern_jobs *jobs, uint32_t *out_slot)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    for (;;) {
        uint32_t free_mask = free_slots(jobs, slots);
        if (free_mask == 0) return false;
        *out_slot = (uint32_t)__builtin_ctz(free_mask);
        if (atomic_compare_exchange_strong_explicit(&jobs->external_slots, &slots,
                                                    slots | (uint64_t)1 << (32 + *out_slot),
                                                    memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
}

/* Relaxed: leaving orders it, and tells those who wait for a place. */
void quern__jobs_release_external_slot(quern_jobs *jobs, const quern__worker *worker)
{
    uint64_t kept = ~((uint64_t)1 << (32 + quern__worker_external_slot(worker)));
    atomic_fetch_and_explicit(&jobs->external_slots, kept, memory_order_relaxed);
}

/* Relaxed: for a message. */
uint32_t quern__jobs_registered_count(const quern_jobs *jobs)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    return (uint32_t)__builtin_popcount((uint32_t)(slots >> 32));
}

/* The look pairs with the swap in try_enter: a thread that comes in later, or has come in but is not seen
 * here, sees the write before it sleeps, for its fence is in sleep_in_wait. */
void quern__jobs_wake_external_workers(quern_jobs *jobs)
{
    quern__handshake_fence(); /* between the write and the look at guests */
    uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->external_slots, QUERN__HANDSHAKE_RELAXED);
    for (; inside != 0; inside &= inside - 1)
        quern__parker_give(&quern__jobs_external_worker(jobs, (uint32_t)__builtin_ctz(inside))->parker);
}
