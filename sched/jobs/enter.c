/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* External threads: threads that the pool did not start, and that are workers of it between
 * quern__jobs_enter and quern__jobs_leave.
 *
 * Each external slot belongs to one worker. Slot 0 is worker 0; the workers of the others follow the
 * pool's own threads. The word external_slots holds the state of all slots:
 *
 *     |reserved: 31 ... 1 0|inside: 31 ... 1 0|     entering sets an inside bit by a swap, for a slot that has
 *                                                   neither bit; leaving clears it
 *
 * A registered thread (register.c) has reserved a slot and enters there at any time; a thread that must be
 * alone reserves all others. So no two threads are the same worker at a time. A thread that enters
 * acquires what the previous thread of the slot released when it left: all changes of the word between
 * them are read-modify-write operations, which continue that release sequence.
 *
 * A thread sleeps only if another one will continue the work. So it relies on the external threads inside,
 * and on each of them that leaves:
 *
 *     leaves                          sleeps in a wait (wait.c), or outside (job_counter_wait.c)
 *     inside &= ~me                   blocked_count or outside_waiter_count += 1
 *     fence                           fence
 *     read both counts;               read external_slots (and blocked_count): sleep unless no other
 *     if not 0: wake a thread         worker is awake, or a slot is free
 *
 * At least one of the two sees the other. If several threads leave, the last one in the modification order
 * of the word sees that all others have left, and sees the jobs that they pushed. */

/* ------------------------------------------------------------------------------------ forked processes */

quern_result quern__jobs_check_threads(const quern_jobs *jobs, const char *function)
{
    if (QUERN__LIKELY(!quern__jobs_has_threads_elsewhere(jobs))) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_THREAD_UNAVAILABLE,
        "%s: this process was forked after job pool '%s' was made, and the pool's threads are in "
        "the parent; make a pool in this process",
        function, jobs->name);
}

/* ----------------------------------------------------------------------------------- entering, leaving */

QUERN__THREAD_LOCAL(quern__worker *, quern__thread_worker);

quern__worker *quern__jobs_outer_worker(const quern_jobs *jobs)
{
    quern__worker *worker = quern__current_worker;
    while (worker != NULL && worker->jobs != jobs)
        worker = worker->outer;
    return worker;
}

static uint32_t all_external_slots(const quern_jobs *jobs)
{
    return UINT32_MAX >> (QUERN_MAX_EXTERNAL_THREADS - jobs->external_count);
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

/* Makes the calling thread this worker. If another thread was inside before, the jobs that it left in the
 * deque are below the floor: they are not the caller's own. (A thread that has ended may have had the same
 * address; its jobs then count as the caller's own.) */
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

/* Enters the slot that the calling thread has reserved, so no other thread changes its bits. seq_cst: see
 * is_last_awake in wait.c. Acquire: pairs with the release of the thread that left the slot before it was
 * reserved; see quern__jobs_reserve_external_slot. */
static quern__worker *enter_reserved_slot(quern_jobs *jobs, uint32_t slot)
{
    atomic_fetch_or_explicit(&jobs->external_slots, (uint64_t)1 << slot, memory_order_seq_cst);
    return become_worker(quern__jobs_external_worker(jobs, slot));
}

/* Tries to enter a slot. Acquire: pairs with the release in quern__jobs_leave, because a worker passes from
 * one thread to the next. seq_cst: see is_last_awake in wait.c. */
static bool swap_in(quern_jobs *jobs, uint64_t *slots, uint32_t slot)
{
    return atomic_compare_exchange_strong_explicit(&jobs->external_slots, slots,
                                                   *slots | (uint64_t)1 << slot, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

/* Enters any free slot. Not inlined, because most external threads enter while no other is inside. */
static QUERN__NO_INLINE quern__worker *enter_any_slot(quern_jobs *jobs, uint64_t slots)
{
    for (;;) {
        uint32_t free_mask = free_slots(jobs, slots);
        if (free_mask == 0) return NULL;
        uint32_t slot = quern__lowest_bit_32(free_mask);
        if (swap_in(jobs, &slots, slot)) return become_worker(quern__jobs_external_worker(jobs, slot));
    }
}

/* Enters the reserved slot of the calling thread, or any free one. Always inlined into quern__jobs_enter,
 * because each loop of an outside thread calls it. */
QUERN__ALWAYS_INLINE quern__worker *enter_slot(quern_jobs *jobs)
{
    if (QUERN__UNLIKELY(quern__registrations != NULL)) {
        const quern__registration *own = quern__registration_of(jobs);
        if (own != NULL) return enter_reserved_slot(jobs, own->slot);
    }
    /* Relaxed: the swap verifies the value. */
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    if (QUERN__LIKELY(slots == 0) && swap_in(jobs, &slots, 0)) return become_worker(&jobs->workers[0]);
    return enter_any_slot(jobs, slots);
}

quern__worker *quern__jobs_try_enter(quern_jobs *jobs)
{
    return enter_slot(jobs);
}

/* Enters the first external slot and reserves all others. Reserved slots do not count as entered: no thread is in
 * them that could run a job. The load is relaxed: the swap verifies the value. The swap is seq_cst; as an acquire
 * it pairs with the release in quern__jobs_leave. */
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

/* The new worker's floor is 0, the bottom of its empty deque. */
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
    return quern__fail(
        QUERN_ERROR_POOL_BUSY,
        "%s: all %u external slots of job pool '%s' are in use; allow more with .external_thread_count",
        function, (unsigned)jobs->external_count, jobs->name);
}

/* Wakes threads after an external thread has left: a worker that sleeps in a wait, if there are jobs that
 * the thread could have run, and outside threads that wait for a slot. Not inlined, because usually no
 * thread sleeps. */
static QUERN__NO_INLINE void wake_after_leave(quern_jobs *jobs)
{
    if (quern__jobs_begin_visit(jobs)) {
        if (quern__jobs_has_any_job(jobs)) quern__jobs_notify_sleepers(jobs, NULL, NULL);
        quern__jobs_end_visit(jobs);
    }
    quern__mutex_lock(&jobs->outside_mutex);
    quern__condition_broadcast(&jobs->outside_condition);
    quern__mutex_unlock(&jobs->outside_mutex);
}

/* Clears the inside bit. With one slot a store is enough: no other thread changes the word while the slot
 * is in use. Release: pairs with the acquire in quern__jobs_try_enter. Acquire: the last thread to leave
 * sees what the others have pushed. */
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

/* The store and the loads are a handshake that pairs with the counts in sleep_outside and sleep_in_wait. */
void quern__jobs_leave(quern_jobs *jobs)
{
    quern__worker *worker = quern__jobs_current_worker(jobs);
    quern__worker_flush_finished(worker);
    const bool uses_asymmetric_fence =
        /* read while the thread is inside: a resize may change it afterwards */
        jobs->uses_asymmetric_fence;
    quern__current_worker = worker->outer;
    clear_inside_bit(jobs, worker);
    /* With asymmetric fences, the threads that sleep while external threads are inside execute the
     * fence. */
    if (!uses_asymmetric_fence) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t sleepers = atomic_load_explicit(&jobs->blocked_count, QUERN__HANDSHAKE_RELAXED) |
                        atomic_load_explicit(&jobs->outside_waiter_count, QUERN__HANDSHAKE_RELAXED);
    if (QUERN__UNLIKELY(sleepers != 0)) wake_after_leave(jobs);
}

/* Releases the reserved slots before leaving, so that leaving wakes the threads that wait for one. Release:
 * pairs with the acquire in quern__jobs_try_enter and publishes the changes to the workers. */
void quern__jobs_leave_exclusive(quern_jobs *jobs)
{
    atomic_fetch_and_explicit(&jobs->external_slots, UINT32_MAX, memory_order_release);
    quern__jobs_leave(jobs);
}

/* The load is relaxed: the swap verifies the value. Acquire: pairs with the release in quern__jobs_leave, so
 * that the reserving thread sees what the previous thread of the slot wrote. */
bool quern__jobs_reserve_external_slot(quern_jobs *jobs, uint32_t *out_slot)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    for (;;) {
        uint32_t free_mask = free_slots(jobs, slots);
        if (free_mask == 0) return false;
        *out_slot = quern__lowest_bit_32(free_mask);
        if (atomic_compare_exchange_strong_explicit(&jobs->external_slots, &slots,
                                                    slots | (uint64_t)1 << (32 + *out_slot),
                                                    memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
}

/* Relaxed: the caller leaves next, which orders the change and wakes threads that wait for a slot. */
void quern__jobs_release_external_slot(quern_jobs *jobs, const quern__worker *worker)
{
    uint64_t kept = ~((uint64_t)1 << (32 + quern__worker_external_slot(worker)));
    atomic_fetch_and_explicit(&jobs->external_slots, kept, memory_order_relaxed);
}

/* Relaxed: the result is used in a message. */
uint32_t quern__jobs_registered_count(const quern_jobs *jobs)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    return quern__count_bits_32((uint32_t)(slots >> 32));
}

/* The load pairs with the swap in quern__jobs_try_enter. A thread that enters later, or has entered without
 * being seen here, sees the caller's write before it sleeps, because its own fence is in sleep_in_wait. */
void quern__jobs_wake_external_workers(quern_jobs *jobs)
{
    quern__handshake_fence(); /* between the write and the read of external_slots */
    uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->external_slots, QUERN__HANDSHAKE_RELAXED);
    for (; inside != 0; inside &= inside - 1)
        quern__parker_give(&quern__jobs_external_worker(jobs, quern__lowest_bit_32(inside))->parker);
}
