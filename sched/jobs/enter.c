/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Jobs that are assigned to one worker.
 *
 * Each worker has a queue from which it alone takes jobs: between two jobs before all others, and in its
 * waits. A thread that pushes to the queue wakes that worker, without the search protocol of search.c,
 * which wakes any worker:
 *
 *     pusher                                  worker
 *     push                                    takes the permit, if there is one
 *     clear its bit in idle; give a permit    reads the queue
 *                                             sleeps until there is a permit
 *
 * A thread always sleeps on its permit, and reads its queue after each permit and before each sleep. So
 * either it takes this permit and then sees the job, or the permit is still there when it tries to sleep.
 * A worker on a host thread has no thread while it is idle. It becomes idle by setting its bit, then reads
 * the queue once more; the two read-modify-write operations on the bit have an order. If clearing is
 * second, the pusher finds the bit and requests a host thread. If clearing is first, setting the bit
 * acquires it, and the last read sees the job. A left-over permit costs one needless round.
 *
 * A woken worker searches (search.c) for jobs including its assigned ones. So if its wake-up was meant for
 * another job, too, it still wakes a worker for that job before it begins.
 *
 * The queue is open while a thread takes jobs from it. Its lock decides: a job pushed before closing makes
 * closing fail, and a job pushed after closing goes to any worker.
 *
 * A pool that ends keeps its threads until none of them has a job, because a job may be assigned to any of
 * them; see rest in jobs.c. */

bool quern__node_assign(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    const uint32_t index = (uint32_t)node->queue - QUERN__QUEUE_WORKERS;
    if (index >= jobs->worker_count) return false;
    quern__worker *worker = &jobs->workers[index];
    if (!quern__queues_push_to(&jobs->queues, &worker->assigned, node)) return false;
    quern__worker_wake(worker);
    return true;
}

quern_result quern__jobs_check_assigned(const quern_jobs *jobs, uint32_t on_worker, const char *function)
{
    if (on_worker == 0 || on_worker == QUERN_ON_CALLER) return QUERN_OK;
    const uint32_t index = on_worker - 1;
    const uint32_t thread_count = quern_jobs_thread_count(jobs);
    const uint32_t worker_count = quern_jobs_worker_count(jobs);
    if (index >= worker_count)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: on_worker %u is worker %u, and pool '%s' has workers 0 to %u: name one of them", function,
            (unsigned)on_worker, (unsigned)index, jobs->name, (unsigned)worker_count - 1);
    if (index != 0 && index < thread_count) return QUERN_OK;
    if (quern__jobs_is_slot_registered(jobs, index == 0 ? 0 : index + 1 - thread_count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: on_worker %u is worker %u of pool '%s', an external slot without a registered "
                       "thread; register one (quern_jobs_register_thread), or set QUERN_ON_CALLER for any",
                       function, (unsigned)on_worker, (unsigned)index, jobs->name);
}

/* ------------------------------------------------------------------------------------ registered threads */

/* Registered threads: external threads that reserve a slot.
 *
 * A registered thread always enters through its slot, and no other thread does. So it is the
 * same worker each time, and jobs can be assigned to it. Each thread has a list of its registrations, one
 * per pool; the pools contain the elements.
 *
 * An element must not outlive its pool. So a pool cannot be destroyed while other threads are registered,
 * and a thread that ends releases its slots through the destructor of a thread-specific key. Jobs that are
 * still assigned to it then go to any worker. */

QUERN__THREAD_LOCAL(quern__registration *, quern__thread_registrations);

/* The key exists from the first registration until a pool is destroyed while no thread is registered. So
 * a shared library that contains Quern leaves nothing behind when it is unloaded after its last pool: no
 * function that the system would call, and no key, of which a process has few. */
static quern__mutex key_mutex = QUERN__MUTEX_INIT; /* of the next three variables */
static quern__exit_key exit_key;                   /* not NULL in threads with registrations */
static bool has_key;
static uint32_t registered_count; /* registrations of all threads with all pools */

static void unregister_at_thread_exit(void *value);

/* Counts a registration, and makes the system call the key's destructor when the calling thread ends. Returns
 * false, with nothing counted, if the system refuses the key. */
static bool set_exit_key(void)
{
    quern__mutex_lock(&key_mutex);
    if (!has_key) has_key = quern__exit_key_init(&exit_key, unregister_at_thread_exit);
    const bool is_set = has_key && quern__exit_key_set(&exit_key, &exit_key);
    if (is_set) registered_count++;
    quern__mutex_unlock(&key_mutex);
    return is_set;
}

/* Ends the effect of one set_exit_key. */
static void clear_exit_key(void)
{
    quern__mutex_lock(&key_mutex);
    registered_count--;
    if (quern__registrations == NULL) (void)quern__exit_key_set(&exit_key, NULL);
    quern__mutex_unlock(&key_mutex);
}

void quern__registrations_drop_unused_key(void)
{
    quern__mutex_lock(&key_mutex);
    if (has_key && registered_count == 0) {
        quern__exit_key_deinit(&exit_key);
        has_key = false;
    }
    quern__mutex_unlock(&key_mutex);
}

quern__registration *quern__registration_of(const quern_jobs *jobs)
{
    quern__registration *entry = quern__registrations;
    while (entry != NULL && entry->jobs != jobs)
        entry = entry->next;
    return entry;
}

void quern__registration_forget(const quern_jobs *jobs)
{
    for (quern__registration **link = &quern__registrations; *link != NULL; link = &(*link)->next)
        if ((*link)->jobs == jobs) {
            *link = (*link)->next;
            clear_exit_key();
            return;
        }
}

/* ----------------------------------------------------------------------------------------- registering */

static quern_result check_outside(const quern_jobs *jobs, const char *function)
{
    if (quern__jobs_current_worker(jobs) == NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: called from inside a job of pool '%s'; call it from outside", function,
                       jobs->name);
}

/* Returns the worker of an external slot: slot 0 is worker 0, all others follow the pool's own threads. */
static inline quern__worker *external_worker(const quern_jobs *jobs, uint32_t slot)
{
    return &jobs->workers[slot == 0 ? 0 : jobs->thread_count - 1 + slot];
}

static uint32_t all_external_slots(const quern_jobs *jobs)
{
    return UINT32_MAX >> (QUERN_MAX_EXTERNAL_THREADS - jobs->external_count);
}

static uint32_t free_slots(const quern_jobs *jobs, uint64_t slots)
{
    return all_external_slots(jobs) & ~(uint32_t)(slots | slots >> 32);
}

/* The load is relaxed: the swap verifies the value. Acquire: pairs with the release in quern__jobs_leave, so
 * that the reserving thread sees what the previous thread of the slot wrote. */
static bool reserve_slot(quern_jobs *jobs, uint32_t *out_slot)
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

quern_result quern_jobs_register_thread(quern_jobs *jobs, uint32_t *out_worker_index)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_register_thread", "jobs");
    quern_result result = check_outside(jobs, "quern_jobs_register_thread");
    const quern__registration *known = quern__registration_of(jobs);
    if (result == QUERN_OK && known != NULL)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_register_thread: this thread is registered already, as worker %u of pool "
            "'%s': register each thread once",
            (unsigned)external_worker(jobs, known->slot)->index, jobs->name);
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_register_thread");
    if (result == QUERN_OK && !set_exit_key())
        result = quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE,
                             "quern_jobs_register_thread: the system has no key left that tells pool '%s' "
                             "when this thread ends",
                             jobs->name);
    if (result != QUERN_OK) return result;
    uint32_t slot;
    if (!reserve_slot(jobs, &slot)) {
        clear_exit_key();
        return quern__fail(
            QUERN_ERROR_POOL_BUSY,
            "quern_jobs_register_thread: all %u external slots of pool '%s' are in use; allow more "
            "with .external_thread_count",
            (unsigned)jobs->external_count, jobs->name);
    }
    quern__registration *entry = &jobs->registrations[slot];
    entry->next = quern__registrations;
    entry->jobs = jobs;
    entry->slot = slot;
    quern__registrations = entry;
    quern__worker *worker = external_worker(jobs, entry->slot);
    quern__queues_open(&jobs->queues, &worker->assigned);
    if (out_worker_index != NULL) *out_worker_index = worker->index;
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- returning it */

static void run_assigned(quern__worker *worker)
{
    quern__job job;
    while (!quern__queues_close(&worker->jobs->queues, &worker->assigned))
        if (quern__worker_take_assigned(worker, NULL, &job)) {
            quern__worker_run_job(worker, &job);
            quern__worker_flush_finished(worker);
        }
}

/* Ends a registration inside the pool: no other thread can be this worker before all is done, and leaving
 * wakes the threads that wait for a slot. `empty` disposes of the jobs that are assigned to the worker. */
static void end_registration(quern__registration *entry, void (*empty)(quern__worker *worker))
{
    quern_jobs *jobs = entry->jobs;
    quern__worker *worker = quern__jobs_try_enter(jobs);
    empty(worker);
    quern__registration_forget(jobs);
    /* Relaxed: leaving, which is next, orders the change and wakes threads that wait for a slot. */
    const uint64_t kept = ~((uint64_t)1 << (32 + quern__worker_external_slot(worker)));
    atomic_fetch_and_explicit(&jobs->external_slots, kept, memory_order_relaxed);
    quern__jobs_leave(jobs);
}

quern_result quern_jobs_unregister_thread(quern_jobs *jobs)
{
    if (jobs == NULL) return quern__fail_null("quern_jobs_unregister_thread", "jobs");
    quern_result result = check_outside(jobs, "quern_jobs_unregister_thread");
    if (result == QUERN_OK) result = quern__jobs_check_threads(jobs, "quern_jobs_unregister_thread");
    if (result != QUERN_OK) return result;
    quern__registration *entry = quern__registration_of(jobs);
    if (entry == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_jobs_unregister_thread: this thread is not registered with pool '%s': "
                           "unregister only registered threads",
                           jobs->name);
    end_registration(entry, run_assigned);
    return QUERN_OK;
}

/* Hands the jobs assigned to a thread that is ending to the other workers. */
static void hand_over_assigned(quern__worker *worker)
{
    quern_jobs *jobs = worker->jobs;
    const void *scope;
    while (quern__queues_disown(&jobs->queues, &worker->assigned, &scope))
        quern__jobs_notify(jobs, NULL, scope);
}

/* After a fork the pools belong to the parent; the child only forgets them. */
static void unregister_at_thread_exit(void *value)
{
    (void)value;
    while (quern__registrations != NULL) {
        quern__registration *entry = quern__registrations;
        if (quern__jobs_has_threads_elsewhere(entry->jobs))
            quern__registration_forget(entry->jobs);
        else
            end_registration(entry, hand_over_assigned);
    }
}

/* ----------------------------------------------------------------------------------------- for assigned jobs */

/* Relaxed: the reserved bit orders nothing else. */
bool quern__jobs_is_slot_registered(const quern_jobs *jobs, uint32_t slot)
{
    return (atomic_load_explicit(&jobs->external_slots, memory_order_relaxed) >> (32 + slot) & 1) != 0;
}

/* -------------------------------------------------------------------------------------- external threads */

/* External threads: threads that the pool did not start, and that are workers of it between
 * quern__jobs_enter and quern__jobs_leave.
 *
 * Each external slot belongs to one worker. Slot 0 is worker 0; the workers of the others follow the
 * pool's own threads. The word external_slots holds the state of all slots:
 *
 *     |reserved: 31 ... 1 0|inside: 31 ... 1 0|     entering sets an inside bit by a swap, for a slot that has
 *                                                   neither bit; leaving clears it
 *
 * A registered thread has reserved a slot and enters there at any time; a thread that must be
 * alone reserves all others. So no two threads are the same worker at a time. A thread that enters
 * acquires what the previous thread of the slot released when it left: all changes of the word between
 * them are read-modify-write operations, which continue that release sequence.
 *
 * A thread sleeps only if another one will continue the work. So it relies on the external threads inside,
 * and on each of them that leaves:
 *
 *     leaves                          sleeps in a wait (wait.c), or outside (wait.c)
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

/* Tries to enter a slot. Acquire: pairs with the release in quern__jobs_leave, because a worker passes from
 * one thread to the next. seq_cst: see quern__jobs_all_are_blocked. */
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
        if (swap_in(jobs, &slots, slot)) return become_worker(external_worker(jobs, slot));
    }
}

/* Enters the reserved slot of the calling thread, or any free one. Always inlined into quern__jobs_enter,
 * because each loop of an outside thread calls it. */
QUERN__ALWAYS_INLINE quern__worker *enter_slot(quern_jobs *jobs)
{
    if (QUERN__UNLIKELY(quern__registrations != NULL)) {
        const quern__registration *own = quern__registration_of(jobs);
        if (own != NULL) {
            /* No other thread changes the bits of this slot. seq_cst: see quern__jobs_all_are_blocked. Acquire:
             * pairs with the release of the thread that left the slot before it was reserved; see
             * reserve_slot. */
            atomic_fetch_or_explicit(&jobs->external_slots, (uint64_t)1 << own->slot, memory_order_seq_cst);
            return become_worker(external_worker(jobs, own->slot));
        }
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
        quern__parker_give(&external_worker(jobs, quern__lowest_bit_32(inside))->parker);
}
