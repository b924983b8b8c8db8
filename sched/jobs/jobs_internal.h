/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_JOBS_INTERNAL_H
#define QUERN_SCHED_JOBS_JOBS_INTERNAL_H

/* The job pool: types and functions that the files of this folder share.
 *
 *     workers    jobs.c (threads, create, resize, destroy), enter.c (external threads, jobs for one worker),
 *                search.c (find jobs, sleep, wake), wait.c (waits), yield.c (two workers on one processor)
 *     jobs       submit.c (submitted jobs, jobs that wait for counters, forks), job_counter.c, loop.h
 *                (loop.c, sharing.c, submit_loop.c), graph_internal.h
 *     reports    describe_jobs.c (times, events, description as text)
 *     machine    processors.c (stack, processors, names, quotas, caches)
 *
 * An *external thread* is a thread that the pool did not start. While it takes part in the pool it is a
 * worker like the pool's own threads, in one of the *external slots*; otherwise it is *outside*. */

#include "core/base/base_internal.h"
#include "core/platform/platform.h"
#include "sched/jobs/deque.h"
#include "sched/jobs/queue.h"

#include <quern/graph.h>
#include <quern/jobs.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------ observers */

/* Interfaces through which a pool reports what its workers do. The job system knows nothing else about an
 * observer; the trace (sched/observe/profile_internal.h) implements one. While no observer records, reporting costs
 * one branch. */

typedef enum quern__job_event {
    QUERN__JOB_EVENT_STEAL, /* a search that found a job or loop items */
    QUERN__JOB_EVENT_SLEEP, /* a sleep */
    QUERN__JOB_EVENT_LOOP,  /* help with a parallel loop that another thread waits for */
    QUERN__JOB_EVENT_NAMED  /* work with a name */
} quern__job_event;

/* Receiver of the events of pools and schedules. */
typedef struct quern__observer {
    _Atomic bool is_recording;   /* whether events are wanted */
    _Atomic uint32_t user_count; /* number of pools and schedules that hold a pointer to the observer */
    /* Reports an event that ends now. Called by the worker on its own thread. name: of the work, or NULL;
     * valid during the call. */
    void (*report)(struct quern__observer *observer, uint32_t worker_index, quern__job_event event,
                   const char *name, uint64_t begin_ns, uint32_t count);
} quern__observer;

/* Receiver of the durations of loops in a pool of one thread, attached to one worker. Loops inside of such
 * a loop are not reported. */
typedef struct quern__loop_observer {
    /* Reports a loop that ended just now. Called by the worker on its own thread. piece_count: number of
     * pieces of `grain` items that the loop had; the last one may be smaller. */
    void (*report)(struct quern__loop_observer *observer, uint32_t piece_count, uint64_t took_ns);
} quern__loop_observer;

/* Returns whether events are wanted. Relaxed: an event too many or too few does no harm. */
static inline bool quern__observer_is_recording(const quern__observer *observer)
{
    return observer != NULL && atomic_load_explicit(&observer->is_recording, memory_order_relaxed);
}

/* Registers a pool or schedule that keeps a pointer to the observer. observer may be NULL. Relaxed: the
 * caller guarantees that the observer is not destroyed meanwhile. */
static inline void quern__observer_add_user(quern__observer *observer)
{
    if (observer != NULL) atomic_fetch_add_explicit(&observer->user_count, 1, memory_order_relaxed);
}

/* Ends quern__observer_add_user. Release: pairs with the acquire in quern_trace_destroy, which therefore
 * happens after all reports. */
static inline void quern__observer_remove_user(quern__observer *observer)
{
    if (observer != NULL) atomic_fetch_sub_explicit(&observer->user_count, 1, memory_order_release);
}

/* ------------------------------------------------------------------------------------------- workers */

typedef struct quern__worker quern__worker;

#ifndef QUERN__LOOP_COST_COUNT
#define QUERN__LOOP_COST_COUNT 64 /* a power of two */
#endif

/* A spinning worker reads the clock once per this many scans of the deques; a clock read costs more than a
 * scan. */
#ifndef QUERN__SCANS_PER_CLOCK_READ
#define QUERN__SCANS_PER_CLOCK_READ 16
#endif

/* Known durations of work that recurs, in nanoseconds per unit: per run of a graph, or per item of loops over
 * one function; see sharing.c. All zero: nothing is known. */
typedef struct quern__known_times {
    double alone_ns;     /* estimated duration on one thread; 0: unknown */
    double measured_ns;  /* alone_ns after the last run on one thread; 0: to be measured */
    double shared_ns;    /* duration of the last shared run; 0: unknown */
    uint32_t alone_runs; /* runs on one thread between two attempts to share, while sharing is slower */
    uint32_t alone_runs_left; /* those that remain until the next attempt */
} quern__known_times;

/* Times of loops over this function with similar numbers of items; see loop.c. */
typedef struct quern__loop_cost {
    quern_range_function *function;
    uint32_t size_class;
    quern__known_times times;
} quern__loop_cost;

/* Idle and sleep times of a worker since it was created; see describe_jobs.c. */
typedef struct quern__worker_times {
    /* Total time without a job, awake or asleep, in finished idle periods. Counted only while
     * quern_jobs.idle_time_reader is set. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t idle_ns;
    _Atomic uint64_t idle_since_ns;   /* begin of the current idle period; 0 while the worker has a job */
    _Atomic uint64_t sleep_ns;        /* total time of finished sleeps */
    _Atomic uint64_t asleep_since_ns; /* begin of the current sleep; 0 while awake */
} quern__worker_times;

/* Recent duration of a job function; see yield.c. */
typedef struct quern__job_time {
    quern_job_function *function;
    uint64_t longest_ns; /* processor time of the longest recent call; decays slowly */
} quern__job_time;

enum { QUERN__JOB_TIME_COUNT = 16 }; /* a power of two */

/* The processor that a worker uses, so that two workers can avoid sharing one; see yield.c. */
typedef struct quern__cpu_slot {
    /* Processor on which the worker last began work, counted from 1; 0 if unknown. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t processor;
    _Atomic uint32_t checked_wakeup_count; /* number of next wake-ups after which the waker may yield */
    /* How often the worker had a reason to yield, or found another worker on its processor; wraps. */
    _Atomic uint32_t yield_count;
    /* The remaining members are accessed by the worker alone. */
    quern__job_time job_times[QUERN__JOB_TIME_COUNT]; /* hash table by function */
    quern__job_time *timed;            /* entry of the function that is being timed, or NULL */
    uint64_t timed_from_ns;            /* processor time of the thread when timing began */
    uint32_t timed_executed_job_count; /* executed_job_count when timing began */
    uint64_t move_ns;                  /* average duration of recent moves */
    /* Whether the worker runs its job although another worker has one on the same processor. */
    bool stays_on_shared_processor;
} quern__cpu_slot;

/* One participant of a pool: a thread of the pool, or an external slot and the thread inside it, if any. */
struct quern__worker {
    quern__deque deque;
    _Alignas(QUERN__APART_BYTES) quern__parker parker;
    /* The next six members are read by waiting workers that look for a worker to help; see wait.c. */
    _Alignas(QUERN__APART_BYTES) _Atomic(const void *) served_scope; /* scope of the current job */
    _Atomic int64_t served_from_index;   /* deque jobs from this index on belong to served_scope, too */
    _Atomic(const void *) awaited_scope; /* scope of the innermost wait, or NULL */
    _Atomic(const char *) work_name;     /* name of the innermost work, or NULL */
    _Atomic uint32_t more_awaited_count; /* number of further scopes of a wait for any of several */
    _Atomic(const void *) more_awaited_scopes[QUERN_MAX_AFTER - 1]; /* [more_awaited_count] */
    _Alignas(QUERN__APART_BYTES) quern_jobs *jobs;
    quern__worker *outer; /* the thread's worker in the pool with the job that entered this pool, or NULL */
    const struct quern__wait *wait; /* innermost wait, or NULL; its scopes are published above */
    int64_t floor; /* deque index: the current job pushed only jobs at this index and above */
    /* Counter of the last finished jobs that were not subtracted from it yet, and their number; see
     * job_counter.c. */
    const void *done_counter;
    uint32_t done_count;
    uint32_t index;
    const void *last_thread;       /* identity of the external thread that was inside last; see enter.c */
    uint32_t random;               /* state of the generator that picks the first victim of a search */
    uint32_t assumed_full_count;   /* number of next submits for which the deque counts as full */
    uint32_t executed_job_count;   /* number of jobs run; wraps */
    uint32_t rescue_depth;         /* jobs on the stack that a wait ran although it did not wait for them */
    _Atomic uint32_t closed_depth; /* closed jobs on the stack (deque.h); only the worker writes it */
    uint32_t inline_depth;         /* jobs on the stack that run inside the call that submitted them */
    bool has_slept;                /* whether the worker slept since its last search */
    quern__job
        *claim; /* place of the next pushed job, which the worker runs itself; or NULL; see search.c */
    quern__thread thread;     /* valid for the pool's own threads */
    quern__queue assigned;    /* jobs that this worker alone may run; see enter.c */
    quern__node *spare_nodes; /* [spare_count] list of free nodes, linked by next; see submit.c */
    uint32_t spare_count;
    uint64_t loop_end_ns; /* when this worker's last shared loop ended */
    uint64_t quiet_ns;    /* total duration of the last successive loops that woke no worker */
    quern__loop_observer *loop_observer; /* NULL if none; set on the worker's own thread */
    quern__loop_cost loop_costs[QUERN__LOOP_COST_COUNT];
    quern__worker_times times;
    quern__cpu_slot cpu_slot;
};

enum { QUERN__WORKER_MASK_WORDS = (QUERN_MAX_THREADS + 63) / 64 };

/* One bit per worker, by index. */
typedef struct quern__worker_mask {
    _Atomic uint64_t words[QUERN__WORKER_MASK_WORDS];
} quern__worker_mask;

/* External slot that a registered thread has reserved: an element of that thread's list. See enter.c. */
typedef struct quern__registration {
    struct quern__registration *next;
    quern_jobs *jobs;
    uint32_t slot;
} quern__registration;

/* Value of quern_jobs.fork_count for a pool with worker 0 as its only worker: it still works after a fork. */
#define QUERN__NO_THREADS UINT32_MAX

struct quern_jobs {
    quern_allocator allocator;
    quern_host_threads host_threads;
    quern__observer *observer; /* or NULL */
    /* The profiler for which workers count idle time, or NULL. The pool never dereferences it. */
    _Atomic(const void *) idle_time_reader;
    uint32_t thread_count;      /* the pool's own threads, plus 1 for the first external slot */
    uint32_t external_count;    /* number of external slots; at least 1 */
    uint32_t worker_count;      /* own threads plus external slots; worker indices are below it */
    uint32_t processor_count;   /* processors that this process may use */
    uint32_t requested_spin_ns; /* of the definition */
    uint64_t spin_ns;           /* requested_spin_ns, or 0 if there are more threads than processors */
    _Atomic uint64_t no_yield_until_ns; /* workers do not yield before this time; see yield.c */
    bool pin_threads;
    quern_processors processors; /* allowed for the pool's own threads; empty: all */
    size_t stack_bytes;          /* per own thread; 0: the system's default */
    void (*thread_start)(void *user_data, uint32_t worker_index); /* or NULL */
    void (*thread_stop)(void *user_data, uint32_t worker_index);  /* or NULL */
    void *user_data;                                              /* of thread_start and thread_stop */
    /* Whether sleepers fence all threads, and pushers have no fence; see search.c. */
    bool uses_asymmetric_fence;
    char name[QUERN__THREAD_NAME_BYTES];
    quern__worker *workers;   /* [worker_capacity] */
    uint32_t worker_capacity; /* more than worker_count if the system refused a thread */
    _Atomic bool is_stopping; /* whether workers end once there is no job left */
    _Atomic bool has_stopped; /* whether the pool's own threads run no more jobs */
    /* With host threads: calls requested from the host that have not returned. Otherwise: own threads that
     * do not rest, and, while the pool ends, also the thread that ends it; see rest in jobs.c. */
    _Atomic uint32_t active_thread_count;
    _Atomic uint32_t fork_count; /* quern__fork_count when the threads started, or QUERN__NO_THREADS */
    /* copy of thread_count that outside threads may read at any time */
    _Atomic uint32_t public_thread_count;
    quern__mutex outside_mutex;
    /* a wait of an outside thread ended, or an external slot became free */
    quern__condition outside_condition;
    quern__queues queues;
    /* One bit per external slot in each half. Low half: a thread is inside. High half: the slot is
     * reserved, and only the thread that reserved it may enter. See enter.c. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t external_slots;
    /* by slot; accessed by the registered thread alone */
    quern__registration registrations[QUERN_MAX_EXTERNAL_THREADS];
    /* Number of bits in idle and blocked, or more while bits change: it is 0 only if both masks are
     * empty. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t sleeper_count;
    quern__worker_mask idle;    /* workers that found no job and are asleep or about to sleep */
    quern__worker_mask blocked; /* workers that are asleep or about to sleep in a wait */
    _Atomic uint32_t blocked_count;
    /* outside threads that sleep until a wait ends or a slot is free */
    _Atomic uint32_t outside_waiter_count;
    struct quern__submitted_loop *loops;      /* every loop object ever allocated; see submit_loop.c */
    struct quern__submitted_loop *free_loops; /* loop objects not in use; under the queues' lock */
    struct quern__graph_run
        *waiting_runs; /* submitted graph runs that wait for counters; under the queues' lock */
    _Atomic uint32_t outside_call_count; /* calls of outside threads in progress that may submit jobs */
    /* Number of threads that try to enter exclusively. While it is not 0, outside threads submit without
     * entering. */
    _Atomic uint32_t exclusive_request_count;
    _Atomic uint32_t visitor_count;    /* outside threads that access `workers` now */
    _Atomic bool is_replacing_workers; /* whether new visits are refused */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t searching_count; /* workers that search for a job */
};

/* Worker that the calling thread is in the pool that it entered last; NULL if it is in no pool. */
extern QUERN__THREAD_LOCAL(quern__worker *, quern__thread_worker);
#define quern__current_worker QUERN__OF_THREAD(quern__thread_worker)

quern__worker *quern__jobs_outer_worker(const quern_jobs *jobs);

/* Returns the worker that the calling thread is in this pool; NULL if the thread is outside. */
static inline quern__worker *quern__jobs_current_worker(const quern_jobs *jobs)
{
    quern__worker *worker = quern__current_worker;
    return worker == NULL || worker->jobs == jobs ? worker : quern__jobs_outer_worker(jobs);
}

/* Makes the calling outside thread a worker of the pool until quern__jobs_leave. `function` names the
 * public call in the message. Errors: THREAD_UNAVAILABLE, POOL_BUSY if all external slots are in use. */
quern_result quern__jobs_enter(quern_jobs *jobs, const char *function);
void quern__jobs_leave(quern_jobs *jobs);

/* Sets *executor to one that runs loops on the pool, and returns it. Returns NULL if jobs is NULL. */
const quern__executor *quern__jobs_executor(quern_jobs *jobs, quern__executor *executor);

/* Enters like quern__jobs_enter, without a message. Returns the worker, or NULL if all external slots are
 * in use. */
quern__worker *quern__jobs_try_enter(quern_jobs *jobs);

/* Enters as worker 0 and reserves all other external slots. Returns false if a thread is inside or a slot
 * is reserved. quern__jobs_leave_exclusive undoes it. */
bool quern__jobs_try_enter_exclusive(quern_jobs *jobs);
void quern__jobs_leave_exclusive(quern_jobs *jobs);

/* Makes the calling thread worker 0 of the new workers. Until now it was the worker `before`, and it is alone in
 * the pool. */
void quern__jobs_rebind_worker_0(quern_jobs *jobs, const quern__worker *before);

/* Returns whether an external slot is neither in use nor reserved. seq_cst: see enter.c. */
bool quern__jobs_has_free_external_slot(const quern_jobs *jobs);

/* Returns the number of reserved external slots. */
uint32_t quern__jobs_registered_count(const quern_jobs *jobs);

static inline bool quern__worker_is_external(const quern__worker *worker)
{
    return worker->index == 0 || worker->index >= worker->jobs->thread_count;
}

static inline uint32_t quern__worker_external_slot(const quern__worker *worker)
{
    return worker->index == 0 ? 0 : worker->index + 1 - worker->jobs->thread_count;
}

/* Returns how many workers may run a job now or later: the pool's own threads, unless they have stopped,
 * and the external threads inside. seq_cst: pairs with the swap in quern__jobs_try_enter; see
 * quern__jobs_all_are_blocked. Relaxed for has_stopped: the external thread that saw the threads stop is then the only one
 * that still waits. */
static inline uint32_t quern__jobs_participant_count(const quern_jobs *jobs)
{
    uint64_t slots = atomic_load_explicit(&jobs->external_slots, memory_order_seq_cst);
    bool has_threads = !atomic_load_explicit(&jobs->has_stopped, memory_order_relaxed);
    return (has_threads ? jobs->thread_count - 1 : 0) + quern__count_bits_32((uint32_t)slots);
}

/* Returns whether all workers that may run a job are asleep in waits, or about to be, so that none could run a
 * job without being woken. A worker that has counted itself as blocked asks whether all others are. seq_cst:
 * pairs with the count in sleep_in_wait (wait.c) and the swap in quern__jobs_try_enter, all of which have one
 * order. Participants are read first: a thread that enters after that read sees the calling worker as
 * blocked. */
static inline bool quern__jobs_all_are_blocked(const quern_jobs *jobs)
{
    uint32_t participant_count = quern__jobs_participant_count(jobs);
    uint32_t blocked_count = atomic_load_explicit(&jobs->blocked_count, memory_order_seq_cst);
    return blocked_count >= participant_count && blocked_count != 0;
}

/* Registrations of the calling thread, and its registration with one pool, or NULL if there is none. */
extern QUERN__THREAD_LOCAL(quern__registration *, quern__thread_registrations);
#define quern__registrations QUERN__OF_THREAD(quern__thread_registrations)
quern__registration *quern__registration_of(const quern_jobs *jobs);

/* Removes the pool from the calling thread's list of registrations. Does not release the slot. */
void quern__registration_forget(const quern_jobs *jobs);

/* Returns to the system what told registered threads of their end, if no thread is registered with any pool. */
void quern__registrations_drop_unused_key(void);

/* Returns whether a thread has reserved this external slot. */
bool quern__jobs_is_slot_registered(const quern_jobs *jobs, uint32_t slot);

/* Gives a permit to each external thread inside. Called after a write that these threads read before they
 * sleep. */
void quern__jobs_wake_external_workers(quern_jobs *jobs);

/* Returns whether the pool's threads exist only in the process from which this one was forked. Relaxed:
 * only a fork changes the result, and the child begins with one thread, which sees its own writes. */
static inline bool quern__jobs_has_threads_elsewhere(const quern_jobs *jobs)
{
    uint32_t fork_count = atomic_load_explicit(&jobs->fork_count, memory_order_relaxed);
    return fork_count != QUERN__NO_THREADS && fork_count != quern__fork_count;
}

/* Fails with THREAD_UNAVAILABLE if the process was forked after the pool started threads, which exist only in the
 * parent. Outside threads call it before they submit or wait. */
quern_result quern__jobs_check_threads(const quern_jobs *jobs, const char *function);

/* Runs jobs as the worker `argument` (a quern__worker) until there are none, then returns. The host calls
 * it on one of its threads. The pool requests the call after it cleared the worker's bit in idle; at the
 * end the call sets the bit again. */
void quern__jobs_run_on_host_thread(void *argument);

/* Marks the begin of a call of an outside thread that may submit jobs or end waits. quern_jobs_destroy
 * waits for the end of such calls. seq_cst: pairs with try_enter_exclusive in jobs.c. */
static inline void quern__jobs_begin_outside_call(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->outside_call_count, 1, memory_order_seq_cst);
}

/* Marks the end of a call that quern__jobs_begin_outside_call counted. Release: pairs with the acquire in
 * drop_waiting_jobs. */
static inline void quern__jobs_end_outside_call(quern_jobs *jobs)
{
    atomic_fetch_sub_explicit(&jobs->outside_call_count, 1, memory_order_release);
}

/* Begins a visit: an access of an outside thread to the pool's workers, which quern_jobs_resize may
 * replace. A visit neither blocks nor runs a job. Returns false while the workers are being replaced; the
 * replacing thread then finds jobs that the caller put into a queue before. seq_cst: pairs with
 * close_to_visitors in jobs.c, so that either the visit sees the flag or close_to_visitors sees the visit.
 * The decrement is relaxed: the refused visit accessed nothing. */
static inline bool quern__jobs_begin_visit(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->visitor_count, 1, memory_order_seq_cst);
    if (QUERN__LIKELY(!atomic_load_explicit(&jobs->is_replacing_workers, memory_order_seq_cst)))
        return true;
    atomic_fetch_sub_explicit(&jobs->visitor_count, 1, memory_order_relaxed);
    return false;
}

/* Ends a visit. Release: pairs with the acquire in close_to_visitors. */
static inline void quern__jobs_end_visit(quern_jobs *jobs)
{
    atomic_fetch_sub_explicit(&jobs->visitor_count, 1, memory_order_release);
}

/* -------------------------------------------------------------------------- processors.c: the machine */

/* Returns how many processors the control group of the process may use at a time, rounded up; UINT32_MAX if there is
 * no quota. root: of the folders /proc and /sys; "" outside of tests. */
uint32_t quern__read_processor_quota(const char *root);

/* Returns the default number of threads of a pool. */
uint32_t quern__default_thread_count(uint32_t external_count, uint32_t processor_count,
                                     uint32_t processor_quota);

/* Returns the cache sizes that `folder` describes, in the layout of Linux's
 * /sys/devices/system/cpu/cpu0/cache. A size that is missing there is read by sysconf, or assumed. NULL: no
 * folder. */
quern_cache_sizes quern__read_cache_sizes(const char *folder);

/* ------------------------------------------------------------------------------- processors.c: threads */

/* Fails if the definition's stack size or processors cannot be used, or contradict its host threads. */
quern_result quern__jobs_check_own_threads(const quern_jobs_def *def);

/* Names the calling thread of the pool, sets its processors, and calls thread_start. */
void quern__worker_set_up_thread(const quern__worker *worker);

/* Calls the definition's thread_start, and below thread_stop: around the time in which a thread, own or of
 * the host, runs jobs. */
static inline void quern__worker_call_start(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    if (jobs->thread_start != NULL) jobs->thread_start(jobs->user_data, worker->index);
}

/* -------------------------------------------------------------------------------------- search.c: jobs */

/* Wakes one sleeping worker that may run a job of this scope, unless a worker searches. Called after the
 * job was pushed. worker: the pushing worker, or NULL. */
void quern__jobs_notify_sleepers(quern_jobs *jobs, quern__worker *worker, const void *scope);

/* Wakes a worker for a job of this scope that was just pushed, if any worker sleeps. The read of
 * sleeper_count pairs with its increments in quern__worker_sleep and sleep_in_wait. */
static inline void quern__jobs_notify(quern_jobs *jobs, quern__worker *worker, const void *scope)
{
    /* Fence between the push and the read of sleeper_count. With asymmetric fences the sleepers execute it
     * for all threads. */
    if (!jobs->uses_asymmetric_fence || worker == NULL) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    if (QUERN__UNLIKELY(atomic_load_explicit(&jobs->sleeper_count, QUERN__HANDSHAKE_ACQUIRE) != 0))
        quern__jobs_notify_sleepers(jobs, worker, scope);
}

/* Finds a job for a worker without one: its own newest, or the oldest of another deque or a queue. Spins
 * for up to spin_ns. Returns false if there was none, or as soon as the worker has a permit. */
bool quern__worker_find_job(quern__worker *worker, quern__job *out_job);

/* Subtracts the worker's finished jobs, of which there must be some, from their counter. If this submits a job to the
 * worker's deque, the first such job is copied to out_job instead: the worker runs it next, and no other worker sees it.
 * Returns whether there was one. */
bool quern__worker_flush_and_claim(quern__worker *worker, quern__job *out_job);

/* Pushes a claimed job to the worker's deque after all. Returns false if the deque is full. */
bool quern__worker_unclaim(quern__worker *worker, const quern__job *job);

/* Removes the next available job from a deque or queue, without spinning. */
bool quern__worker_try_take_job(quern__worker *worker, quern__job *out_job);

/* Runs a job that quern__worker_find_job found, and publishes its scope meanwhile. */
void quern__worker_run_job(quern__worker *worker, quern__job *job);

/* Runs a job that the current job pushed into this worker's deque. Its scope is not published, since it
 * belongs to the current one. */
void quern__worker_run_own_job(quern__worker *worker, quern__job *job);

/* Sleeps until there may be work or the worker has a permit. */
void quern__worker_sleep(quern__worker *worker);

/* Wakes the worker, idle or in a wait, so that it checks its assigned jobs. */
void quern__worker_wake(quern__worker *worker);

/* Removes the first job that is assigned to this worker; if scope is not NULL, the first one of this
 * scope. */
static inline bool quern__worker_take_assigned(quern__worker *worker, const void *scope,
                                               quern__job *out_job)
{
    return !quern__queue_is_empty(&worker->assigned) &&
           quern__queues_take_from(&worker->jobs->queues, &worker->assigned, scope, out_job);
}

/* Returns whether there is any job, except caller-only and assigned ones. It is the read of a handshake. */
bool quern__jobs_has_any_job(const quern_jobs *jobs);

/* Set or clear a worker's bit. Clear returns whether the bit was set: of several concurrent calls, one
 * returns true. */
void quern__worker_mask_set(quern__worker_mask *mask, uint32_t index);
bool quern__worker_mask_clear(quern__worker_mask *mask, uint32_t index);

/* Executes a sleeper's fence between the announcement of its sleep and its last search; with asymmetric
 * fences, for all threads. */
void quern__jobs_sleeper_fence(const quern_jobs *jobs);

/* ------------------------------------------------------------------- describe_jobs.c: times and reports */

/* Begin and end an idle period, in which the worker has no job. Called by the worker itself. */
void quern__worker_begin_idle_time(quern__worker *worker, uint64_t now_ns);
void quern__worker_end_idle_time(quern__worker *worker);

/* Ends the idle period, if there is one. Relaxed: the worker itself writes the member. */
static inline void quern__worker_note_job_found(quern__worker *worker)
{
    if (atomic_load_explicit(&worker->times.idle_since_ns, memory_order_relaxed) != 0)
        quern__worker_end_idle_time(worker);
}

/* Begin and end the measurement of a sleep. Called by the worker itself. The end returns when the sleep
 * began. */
void quern__worker_begin_sleep_time(quern__worker *worker);
uint64_t quern__worker_end_sleep_time(quern__worker *worker);

/* Sleeps like quern__parker_take_until, measures the time and reports it to the observer. */
void quern__worker_park(quern__worker *worker, uint64_t until_ns);

/* Return the total time without a job, and the part of it asleep, including periods in progress.
 * Thread-safe. */
uint64_t quern__worker_idle_ns(const quern__worker *worker, uint64_t now_ns);
uint64_t quern__worker_sleep_ns(const quern__worker *worker, uint64_t now_ns);

/* Returns the current time as the begin of an event, or 0 if no observer records. */
static inline uint64_t quern__worker_event_start(const quern__worker *worker)
{
    return quern__observer_is_recording(worker->jobs->observer) ? quern__clock_ns() : 0;
}

/* Reports an event that ends now to the observer, on the worker's track. */
void quern__worker_report_event(const quern__worker *worker, quern__job_event event, uint64_t start_ns,
                                uint32_t count);

/* Named work that a worker does now. */
typedef struct quern__named_work {
    const char *name;  /* NULL: the work has no name and is not reported */
    const char *outer; /* name of the enclosing work, or NULL */
    uint64_t start_ns; /* 0 if no observer records */
} quern__named_work;

quern__named_work quern__worker_publish_name(quern__worker *worker, const char *name);
void quern__worker_retract_name(quern__worker *worker, const quern__named_work *work);

/* Begins work with a name, which quern_jobs_describe shows until the end of the work. The end reports it to
 * the observer. Both are called by the worker itself. name may be NULL. */
static inline quern__named_work quern__worker_begin_named(quern__worker *worker, const char *name)
{
    if (QUERN__UNLIKELY(name != NULL)) return quern__worker_publish_name(worker, name);
    quern__named_work none; /* Assigned member by member; see quern__job_copy. */
    none.name = NULL;
    none.outer = NULL;
    none.start_ns = 0;
    return none;
}

static inline void quern__worker_end_named(quern__worker *worker, const quern__named_work *work)
{
    if (QUERN__UNLIKELY(work->name != NULL)) quern__worker_retract_name(worker, work);
}

/* --------------------------------------------------------- yield.c: workers that share a processor */

/* Publishes the processor on which the calling worker runs. Called when it begins work that is long
 * enough. */
void quern__worker_publish_processor(quern__worker *worker);

/* Returns whether the spinning worker should sleep, because another worker of the pool needs its processor
 * and it could not move to another one. Called from time to time while spinning. */
bool quern__worker_should_stop_spinning(quern__worker *worker);

/* Yields the processor, so that another worker can run on it. Returns false, and does not yield, if another program
 * would run instead, as after a recent yield. */
bool quern__jobs_yield(quern_jobs *jobs);

/* Returns the approximate number of workers that are awake. */
int64_t quern__jobs_count_awake(const quern_jobs *jobs);

/* Returns whether more workers are awake than there are processors, which only external threads can
 * cause. */
static inline bool quern__jobs_is_oversubscribed(const quern_jobs *jobs)
{
    return QUERN__UNLIKELY(jobs->external_count != 1) &&
           quern__jobs_count_awake(jobs) > jobs->processor_count;
}

/* Returns whether another worker would find a processor. Used for work that the caller does itself if no
 * worker helps. A pool with one external slot always returns true. */
static inline bool quern__jobs_has_spare_processor(const quern_jobs *jobs)
{
    return QUERN__LIKELY(jobs->external_count == 1) ||
           quern__jobs_count_awake(jobs) < jobs->processor_count;
}

/* Copies the job that quern__worker_find_job would probably return. Another thread may take the job
 * meanwhile. */
bool quern__worker_peek_job(const quern__worker *worker, quern__job *out_job);

/* Returns the function of a single submitted job; NULL for parts of loops, nodes of graphs and forks. */
quern_job_function *quern__job_function(const quern__job *job);

/* Called by the waker before and after it wakes an idle sleeper, and by the sleeper before its sleep and
 * after waking. */
void quern__worker_begin_waking(const quern__worker *sleeper);
void quern__worker_end_waking(const quern__worker *sleeper);
void quern__worker_prepare_sleep(quern__worker *worker);
void quern__worker_leave_shared_processor(quern__worker *worker);

/* Yields the processor after long work that no worker shared, if an idle worker was awake or woken but did
 * not run. */
void quern__worker_yield_after_long_work(quern__worker *worker);

/* -------------------------------------------------------------------------- submit_loop.c: loop store */

/* Frees the memory of all submitted loops. None may be in progress. */
void quern__jobs_free_submitted_loops(quern_jobs *jobs);

/* ------------------------------------------------------------------------ graph_run.c: submitted runs */

/* Ends submitted graph runs that still wait for counters and have not begun; they never begin. */
void quern__jobs_drop_graphs(quern_jobs *jobs);

/* ------------------------------------------------------------------------------------- wait.c: waiting */

/* Description of a wait, for quern__worker_wait. */
typedef struct quern__wait {
    /* Jobs of this scope, and jobs submitted by them, bring the end of the wait closer. */
    const void *scope;
    /* [more_count] further scopes, for a wait for any of several counters */
    quern_counter *const *more_scopes;
    uint32_t more_count;
    void *target;      /* context of the functions below */
    uint64_t until_ns; /* time from which on is_done returns true; 0: no limit */
    /* Returns whether the wait is over, and acquires what the awaited jobs wrote. */
    bool (*is_done)(const struct quern__wait *wait);
    /* Does other useful work of the waiting thread and returns whether there was any. May be NULL. */
    bool (*help)(const struct quern__wait *wait, quern__worker *worker);
    /* Called once before the first sleep. From then on the thread that makes is_done true gives the worker
     * a permit afterwards. May be NULL. */
    void (*announce)(const struct quern__wait *wait, quern__worker *worker);
} quern__wait;

void quern__worker_wait(quern__worker *worker, const quern__wait *wait);

/* Returns whether a closed job is on the worker's stack. Relaxed: the worker itself writes the depth. Other
 * threads see the value from before the worker announced its sleep; see search.c. */
static inline bool quern__worker_has_closed_job(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->closed_depth, memory_order_relaxed) != 0;
}

/* Adds to the number of closed jobs on the worker's stack; called by the worker itself around such jobs.
 * Relaxed: see quern__worker_has_closed_job. */
static inline void quern__worker_add_closed_depth(quern__worker *worker, uint32_t difference)
{
    uint32_t depth = atomic_load_explicit(&worker->closed_depth, memory_order_relaxed);
    atomic_store_explicit(&worker->closed_depth, depth + difference, memory_order_relaxed);
}

/* Returns the `awaited` argument of quern__scope_allows for a worker that waits for this scope and may also
 * run other jobs. */
static inline const void *quern__worker_awaited_scope(const quern__worker *worker, const void *scope)
{
    return quern__worker_has_closed_job(worker) ? scope : QUERN__ANY_SCOPE;
}

/* -------------------------------------------------------------------------------------------- requests */

/* Inline version of quern_cancel_is_requested. Acquire: pairs with the release in quern_cancel_request. */
static inline bool quern__cancel_is_requested(const quern_cancel *cancel)
{
    return cancel != NULL && atomic_load_explicit(&cancel->is_requested, memory_order_acquire) != 0;
}

/* ----------------------------------------------------------------------------- submit.c: jobs and nodes */

/* Returns the name of a job that is about to run; NULL if it has none. */
const char *quern__job_name(const quern__job *job);

/* Submits a complete job. Its scope is its counter, or NULL; this call increments the counter, and the
 * job's run function decrements it. The job may run inside this call. `function` names the public call in
 * messages. Thread-safe. Errors, with nothing submitted: OUT_OF_MEMORY, THREAD_UNAVAILABLE. */
quern_result quern__job_submit(quern_jobs *jobs, quern__job *job, quern__queue_index queue,
                               const char *function);

/* Submits a job that begins when each counter of a non-empty list reached zero. The caller has validated
 * the list by quern__check_after_list. Otherwise like quern__job_submit. */
quern_result quern__job_submit_after(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                     quern_counter *const *after, uint32_t after_count,
                                     const char *function);

/* Returns the worker's unused nodes to the pool's store. No thread may be this worker. */
void quern__worker_return_spare_nodes(quern__worker *worker);

/* Returns a node of the pool's store that holds a copy of the job; NULL if there is no memory. */
quern__node *quern__node_create(quern_jobs *jobs, const quern__job *job, quern__queue_index queue);

/* Returns the name of a submitted loop from a job that offers it; NULL if the job is none or has no name.
 * See submit_loop.c. */
const char *quern__submitted_loop_name(const quern__job *job);

/* Pushes a node's job and wakes a worker for it. worker: the worker that the caller is in any pool, or
 * NULL. */
void quern__node_submit(quern__node *node, quern__worker *worker);

/* --------------------------------------------------------------------- submit.c: nodes after counters */

/* Validates the counter list of a definition. Fails with INVALID_ARGUMENT if it is too long or contains
 * `counter`, which counts the submitted work itself, and with NULL_ARGUMENT if it contains NULL. `function`
 * names the public call in the message. */
quern_result quern__check_after_list(quern_counter *const *after, uint32_t count,
                                     const quern_counter *counter, const char *function);

/* Reserves links for this many counters. Returns false if there is no memory. Requires node->jobs. */
bool quern__node_reserve_links(quern__node *node, uint32_t count);

/* Submits a node when each of these counters has reached zero once since this call; immediately if all are
 * zero. Requires reserved links, and job, jobs and queue of the node; its counter already counts the job. A
 * counter may be listed twice. worker: as for quern__node_submit. */
void quern__node_add_links(quern__node *node, quern_counter *const *after, quern__worker *worker);

/* Reserves the links and adds them. Returns false if there is no memory; the node is then unchanged and
 * still owned by the caller. */
static inline bool quern__node_submit_after(quern__node *node, quern_counter *const *after, uint32_t count,
                                            quern__worker *worker)
{
    if (!quern__node_reserve_links(node, count)) return false;
    quern__node_add_links(node, after, worker);
    return true;
}

/* Drops the jobs that wait for counters and removes their links. The caller is alone in the pool, as worker
 * 0. A link that another thread is about to fire is left to that thread; its call counts as an outside
 * call. */
void quern__jobs_drop_links(quern_jobs *jobs);

/* Subtracts `count` counters that reached zero from those that the node waits for; submits the node after
 * the last one. */
void quern__node_count_down(quern__node *node, uint32_t count, quern__worker *worker);

/* ---------------------------------------------------------------------- enter.c: for a given worker */

/* Assigns a node's job to the worker that its queue names, and wakes that worker. Returns false, with
 * nothing done, if that worker no longer accepts jobs. */
bool quern__node_assign(quern__node *node);

/* Fails with INVALID_ARGUMENT if on_worker of a definition names a worker that does not exist or accepts no assigned
 * jobs. */
quern_result quern__jobs_check_assigned(const quern_jobs *jobs, uint32_t on_worker, const char *function);

/* ---------------------------------------------------------------------------- job_counter.c: counters */

/* Subtracts `count` from the counter and fires its links if it reaches zero. worker: the worker that the
 * caller is in any pool, or NULL. */
void quern__counter_finish(quern_counter *counter, uint32_t count, quern__worker *worker);

/* Adds a link that fires when the counter reaches zero. Returns false, with nothing done, if the counter is
 * zero. */
bool quern__counter_add_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Removes a link. Returns false if the link has fired or is about to. The counter must still exist. */
bool quern__counter_remove_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Subtract the worker's finished jobs from their counter. The inline version first checks that there are
 * any. */
void quern__worker_flush_finished_slow(quern__worker *worker);

static inline void quern__worker_flush_finished(quern__worker *worker)
{
    if (worker->done_count != 0) quern__worker_flush_finished_slow(worker);
}

/* Ends a submitted job: notes that its counter is to be decremented. The worker subtracts several such jobs
 * at once. */
static inline void quern__job_count_down(const quern__job *job, quern__worker *worker)
{
    if (job->scope == NULL) return;
    if (worker->done_counter != job->scope) quern__worker_flush_finished(worker);
    worker->done_counter = job->scope;
    worker->done_count++;
}

#endif
