/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_JOBS_INTERNAL_H
#define QUERN_SCHED_JOBS_JOBS_INTERNAL_H

/* The job pool: types and functions that the files of this folder share.
 *
 *     workers    jobs.c (threads, create, resize, destroy), own_threads.c (stack, processors, names)
 *                enter.c, register.c (external threads), search.c (find jobs, sleep, wake), wait.c (waits),
 *                yield.c (two workers on one processor)
 *     jobs       submit.c, after.c (jobs that wait for counters), assigned.c (jobs for one worker),
 *                job_counter.c, fork.c, loop.h, graph_internal.h, cancel.c
 *     reports    worker_times.c, describe_jobs.c
 *
 * An *external thread* is a thread that the pool did not start. While it takes part in the pool it is a worker
 * like the pool's own threads, in one of the *external slots*; otherwise it is *outside*. */

#include "core/base/base_internal.h"
#include "sched/jobs/deque.h"
#include "sched/jobs/job_observer.h"
#include "sched/jobs/queue.h"
#include "sched/jobs/thread.h"

#include <quern/graph.h>
#include <quern/jobs.h>

typedef struct quern__worker quern__worker;

#ifndef QUERN__LOOP_COST_COUNT
#define QUERN__LOOP_COST_COUNT 64 /* a power of two */
#endif

/* A spinning worker reads the clock once per this many scans of the deques; a clock read costs more than a
 * scan. */
#ifndef QUERN__SCANS_PER_CLOCK_READ
#define QUERN__SCANS_PER_CLOCK_READ 16
#endif

/* Measured cost of one item of a loop over this function; see parallel_for.c. */
typedef struct quern__loop_cost {
    quern_range_function *function;
    double unshared_item_ns; /* time per item on one thread; 0 if unknown */
    double shared_item_ns;   /* duration of a shared loop divided by its item count */
    uint32_t size_class;
    bool is_measured; /* whether unshared_item_ns was measured on one thread; otherwise it is a guess */
} quern__loop_cost;

/* Idle and sleep times of a worker since it was created; see worker_times.c. */
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
    _Atomic uint32_t yield_count;          /* number of yields, moves and shared processors found; wraps */
    /* The remaining members are accessed by the worker alone. */
    quern__job_time job_times[QUERN__JOB_TIME_COUNT]; /* hash table by function */
    quern__job_time *timed;            /* entry of the function that is being timed, or NULL */
    uint64_t timed_from_ns;            /* processor time of the thread when timing began */
    uint32_t timed_executed_job_count; /* executed_job_count when timing began */
    uint64_t move_ns;                  /* average duration of recent moves */
    bool stays_on_shared_processor;    /* whether it decided to run its job where another worker has one */
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
    quern__worker *outer; /* the thread's worker in the pool from whose job it entered this pool, or NULL */
    const struct quern__wait *wait; /* innermost wait, whose scopes are published above, or NULL */
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
    bool claims_next_job;     /* whether the worker will take the next job that it pushes; see submit.c */
    quern__thread thread;     /* valid for the pool's own threads */
    quern__queue assigned;    /* jobs that this worker alone may run; see assigned.c */
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

/* External slot that a registered thread has reserved: an element of that thread's list. See register.c. */
typedef struct quern__registration {
    struct quern__registration *next;
    quern_jobs *jobs;
    uint32_t slot;
} quern__registration;

/* Value of quern_jobs.fork_count for a pool whose only worker is worker 0: it still works after a fork. */
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
    bool pin_threads;
    quern_processors processors; /* allowed for the pool's own threads; empty: all */
    size_t stack_bytes;          /* per own thread; 0: the system's default */
    void (*thread_start)(void *user_data, uint32_t worker_index); /* or NULL */
    void (*thread_stop)(void *user_data, uint32_t worker_index);  /* or NULL */
    void *user_data;                                              /* of thread_start and thread_stop */
    bool
        uses_asymmetric_fence; /* whether sleepers fence all threads, and pushers have no fence; see search.c */
    char name[QUERN__THREAD_NAME_BYTES];
    quern__worker *workers;   /* [worker_capacity] */
    uint32_t worker_capacity; /* more than worker_count if the system refused a thread */
    _Atomic bool is_stopping; /* whether workers end once there is no job left */
    _Atomic bool has_stopped; /* whether the pool's own threads run no more jobs */
    /* With host threads: calls requested from the host that have not returned. Otherwise: own threads that do
     * not rest, and, while the pool ends, also the thread that ends it; see rest in jobs.c. */
    _Atomic uint32_t active_thread_count;
    _Atomic uint32_t fork_count; /* quern__fork_count when the threads started, or QUERN__NO_THREADS */
    _Atomic uint32_t
        public_thread_count; /* copy of thread_count that outside threads may read at any time */
    pthread_mutex_t outside_mutex;
    pthread_cond_t
        outside_condition; /* a wait of an outside thread ended, or an external slot became free */
    quern__queues queues;
    /* One bit per external slot in each half. Low half: a thread is inside. High half: the slot is reserved,
     * and only the thread that reserved it may enter. See enter.c. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t external_slots;
    quern__registration
        registrations[QUERN_MAX_GUESTS]; /* by slot; accessed by the registered thread alone */
    /* Number of bits in idle and blocked, or more while bits change: it is 0 only if both masks are empty. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t sleeper_count;
    quern__worker_mask idle;    /* workers that found no job and are asleep or about to sleep */
    quern__worker_mask blocked; /* workers that are asleep or about to sleep in a wait */
    _Atomic uint32_t blocked_count;
    _Atomic uint32_t
        outside_waiter_count; /* outside threads that sleep until a wait ends or a slot is free */
    struct quern__submitted_loop *loops;      /* every loop object ever allocated; see submit_loop.c */
    struct quern__submitted_loop *free_loops; /* loop objects not in use; under the queues' lock */
    quern_graph *waiting_graphs; /* submitted graph runs that wait for counters; under the queues' lock */
    _Atomic uint32_t outside_call_count; /* calls of outside threads in progress that may submit jobs */
    /* Threads that try to enter exclusively. While it is not 0, outside threads submit without entering. */
    _Atomic uint32_t exclusive_request_count;
    _Atomic uint32_t visitor_count;    /* outside threads that access `workers` now */
    _Atomic bool is_replacing_workers; /* whether new visits are refused */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t searching_count; /* workers that search for a job */
};

/* What the calling thread is in the pool that it entered last. */
extern QUERN__FAST_THREAD_LOCAL quern__worker *quern__current_worker;

quern__worker *quern__jobs_outer_worker(const quern_jobs *jobs);

/* The worker that the calling thread is in this pool; NULL when it is outside. */
static inline quern__worker *quern__jobs_current_worker(const quern_jobs *jobs)
{
    quern__worker *worker = quern__current_worker;
    return worker == NULL || worker->jobs == jobs ? worker : quern__jobs_outer_worker(jobs);
}

/* An outside thread becomes a worker (quern__jobs_current_worker), until it leaves. `function` names the
 * public call in the message. Errors: POOL_BUSY. */
quern_result quern__jobs_enter(quern_jobs *jobs, const char *function);
void quern__jobs_leave(quern_jobs *jobs);

/* The same without a message: which worker it is; NULL when all places are taken. */
quern__worker *quern__jobs_try_enter(quern_jobs *jobs);

/* Comes in as worker 0 and keeps all others out; false when somebody is inside, or has a place for himself.
 * leave_alone undoes it. */
bool quern__jobs_try_enter_exclusive(quern_jobs *jobs);
void quern__jobs_leave_exclusive(quern_jobs *jobs);

/* The calling thread, alone in the pool as worker `before`, becomes worker 0 of those that replace it. */
void quern__jobs_rebind_worker_0(quern_jobs *jobs, const quern__worker *before);

/* Whether an outside thread would find a place. seq_cst: see enter.c. */
bool quern__jobs_has_free_external_slot(const quern_jobs *jobs);

/* Reserves a place that is free, unless there is none; by the guest inside, gives it back. */
bool quern__jobs_reserve_external_slot(quern_jobs *jobs, uint32_t *out_slot);
void quern__jobs_release_external_slot(quern_jobs *jobs, const quern__worker *worker);

/* How many places are reserved. */
uint32_t quern__jobs_registered_count(const quern_jobs *jobs);

/* The worker that a thread at this place is. */
static inline quern__worker *quern__jobs_external_worker(const quern_jobs *jobs, uint32_t slot)
{
    return &jobs->workers[slot == 0 ? 0 : jobs->thread_count - 1 + slot];
}

static inline bool quern__worker_is_external(const quern__worker *worker)
{
    return worker->index == 0 || worker->index >= worker->jobs->thread_count;
}

static inline uint32_t quern__worker_external_slot(const quern__worker *worker)
{
    return worker->index == 0 ? 0 : worker->index + 1 - worker->jobs->thread_count;
}

/* How many workers may run a job now or later: the pool's own threads, unless they have stopped, and the guests
 * inside. seq_cst: pairs with the swap in quern__jobs_try_enter; see is_last_one in wait.c. Relaxed: the guest
 * that has seen the threads stop is the only one that still waits then. */
static inline uint32_t quern__jobs_participant_count(const quern_jobs *jobs)
{
    uint64_t guests = atomic_load_explicit(&jobs->external_slots, memory_order_seq_cst);
    bool has_threads = !atomic_load_explicit(&jobs->has_stopped, memory_order_relaxed);
    return (has_threads ? jobs->thread_count - 1 : 0) + (uint32_t)__builtin_popcount((uint32_t)guests);
}

/* The list of the calling thread; and what it says of a pool, or NULL. */
extern QUERN__FAST_THREAD_LOCAL quern__registration *quern__registrations;
quern__registration *quern__registration_of(const quern_jobs *jobs);

/* Takes the pool out of the calling thread's list, and does nothing else. */
void quern__registration_forget(const quern_jobs *jobs);

/* Whether a thread has this place for itself. */
bool quern__jobs_is_slot_registered(const quern_jobs *jobs, uint32_t slot);

/* Gives a permit to each guest inside, after a write that guests look for before they sleep. */
void quern__jobs_wake_external_workers(quern_jobs *jobs);

/* Whether threads that may work for the pool are in the process that this one was forked from. Relaxed: only
 * a fork changes the answer, and the child has one thread, which sees its own writes. */
static inline bool quern__jobs_has_threads_elsewhere(const quern_jobs *jobs)
{
    uint32_t fork_count = atomic_load_explicit(&jobs->fork_count, memory_order_relaxed);
    return fork_count != QUERN__NO_THREADS && fork_count != quern__fork_count;
}

/* THREAD when the process was forked after the pool had started threads: they are in its parent alone. To
 * be asked by calls from outside before they hand anything in, or wait. */
quern_result quern__jobs_check_threads(const quern_jobs *jobs, const char *function);

/* What a worker does for as long as there are jobs, then returns; argument is a quern__worker. For a
 * host's thread: the worker is given away by clearing its bit in idle, and comes back when the bit is
 * set. */
void quern__jobs_run_on_host_thread(void *argument);

/* Around whatever a thread that is no worker does to a pool so that somebody may go on: until the end of
 * it quern_jobs_destroy waits. Release pairs with the acquire there. seq_cst: pairs with try_enter_exclusive in
 * jobs.c. */
static inline void quern__jobs_begin_outside_call(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->outside_call_count, 1, memory_order_seq_cst);
}

/* Release: pairs with the acquire in wait_for_outside_calls. */
static inline void quern__jobs_end_outside_call(quern_jobs *jobs)
{
    atomic_fetch_sub_explicit(&jobs->outside_call_count, 1, memory_order_release);
}

/* Around each access of a thread outside to the pool's workers, which quern_jobs_resize replaces. A visit does
 * not wait and runs no job. False: the workers are being replaced; what the caller has put into a queue before
 * is then found by the thread that replaces them. seq_cst: pairs with close_to_visitors in jobs.c: a visit that
 * begins sees the flag, or is seen there. Relaxed at the end: a visit that did not begin has touched nothing. */
static inline bool quern__jobs_begin_visit(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->visitor_count, 1, memory_order_seq_cst);
    if (QUERN__LIKELY(!atomic_load_explicit(&jobs->is_replacing_workers, memory_order_seq_cst)))
        return true;
    atomic_fetch_sub_explicit(&jobs->visitor_count, 1, memory_order_relaxed);
    return false;
}

/* Release: pairs with the acquire in close_to_visitors. */
static inline void quern__jobs_end_visit(quern_jobs *jobs)
{
    atomic_fetch_sub_explicit(&jobs->visitor_count, 1, memory_order_release);
}

/* ------------------------------------------------------------------------------- own_threads.c: threads */

/* Whether the threads can be as the definition wants them. */
quern_result quern__jobs_check_own_threads(const quern_jobs_def *def);

/* What a thread of the pool does before its first job. */
void quern__worker_set_up_thread(const quern__worker *worker);

/* Around the time that a thread works for the pool, its own or one of the host. */
static inline void quern__worker_call_start(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    if (jobs->thread_start != NULL) jobs->thread_start(jobs->user_data, worker->index);
}

static inline void quern__worker_call_stop(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    if (jobs->thread_stop != NULL) jobs->thread_stop(jobs->user_data, worker->index);
}

/* -------------------------------------------------------------------------------------- search.c: jobs */

/* After pushing a job of this scope: wakes one worker if there are sleepers that could do it and nobody is
 * searching. worker: the pusher; NULL when that is none. */
void quern__jobs_notify_sleepers(quern_jobs *jobs, quern__worker *worker, const void *scope);

/* The look at sleepers pairs with their count in quern__worker_sleep and sleep_in_wait. */
static inline void quern__jobs_notify(quern_jobs *jobs, quern__worker *worker, const void *scope)
{
    /* Between the push and the look at sleepers; those make up for a fence that is missing. */
    if (!jobs->uses_asymmetric_fence || worker == NULL) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    if (QUERN__UNLIKELY(atomic_load_explicit(&jobs->sleeper_count, QUERN__HANDSHAKE_ACQUIRE) != 0))
        quern__jobs_notify_sleepers(jobs, worker, scope);
}

/* A job for a worker that has none, whatever it is: its own newest, or somebody's oldest. Spins for a
 * while. False when there was nothing, or as soon as the worker has a permit. */
bool quern__worker_find_job(quern__worker *worker, quern__job *out_job);

/* The next that there is at this moment. */
bool quern__worker_try_take_job(quern__worker *worker, quern__job *out_job);

/* Runs a job that quern__worker_find_job found. */
void quern__worker_run_job(quern__worker *worker, quern__job *job);

/* Runs one that the current job has put into this worker's deque: a part of what it is serving anyway. */
void quern__worker_run_own_job(quern__worker *worker, quern__job *job);

/* Sleeps until there may be work or the worker has a permit. */
void quern__worker_sleep(quern__worker *worker);

/* Makes a worker look at what is assigned to it, wherever it is. */
void quern__worker_wake(quern__worker *worker);

/* One that is assigned to this worker; with a scope that is not NULL the first one of this scope. */
static inline bool quern__worker_take_assigned(quern__worker *worker, const void *scope,
                                               quern__job *out_job)
{
    return !quern__queue_is_empty(&worker->assigned) &&
           quern__queues_take_from(&worker->jobs->queues, &worker->assigned, scope, out_job);
}

/* Whether there is any job, but for those that guests alone may run. The read of a handshake. */
bool quern__jobs_has_any_job(const quern_jobs *jobs);

/* Sets or clears a worker's bit of a mask. Clear returns whether it was set: of several, one gets true. */
void quern__worker_mask_set(quern__worker_mask *mask, uint32_t index);
bool quern__worker_mask_clear(quern__worker_mask *mask, uint32_t index);

/* Between "I am going to sleep" and the last look: the fence of both sides where pushers have none. */
void quern__jobs_sleeper_fence(const quern_jobs *jobs);

/* -------------------------------------------------------------------------- worker_times.c: looking on */

/* By the worker itself: it looks in vain since now_ns; it does no longer, for it has found a job. */
void quern__worker_begin_idle_time(quern__worker *worker, uint64_t now_ns);
void quern__worker_end_idle_time(quern__worker *worker);

/* Relaxed: the worker writes it itself. */
static inline void quern__worker_note_job_found(quern__worker *worker)
{
    if (atomic_load_explicit(&worker->times.idle_since_ns, memory_order_relaxed) != 0)
        quern__worker_end_idle_time(worker);
}

/* Around a sleep, by the worker itself; the second returns when it fell asleep. */
void quern__worker_begin_sleep_time(quern__worker *worker);
uint64_t quern__worker_end_sleep_time(quern__worker *worker);

/* quern__parker_take, with the time that passes meanwhile. until_ns: as there. */
void quern__worker_park(quern__worker *worker, uint64_t until_ns);

/* Time without a job, and the part of it asleep, with what lasts. Any thread. */
uint64_t quern__worker_idle_ns(const quern__worker *worker, uint64_t now_ns);
uint64_t quern__worker_sleep_ns(const quern__worker *worker, uint64_t now_ns);

/* The time when something begins that the observer is shown, or 0: nobody wants to know. */
static inline uint64_t quern__worker_event_start(const quern__worker *worker)
{
    return quern__observer_is_recording(worker->jobs->observer) ? quern__clock_ns() : 0;
}

/* Shows something that ends now, on the worker's track. */
void quern__worker_report_event(const quern__worker *worker, quern__job_event event, uint64_t start_ns,
                                uint32_t count);

/* Work that has a name, while a worker does it. */
typedef struct quern__named_work {
    const char *name;  /* NULL: it has none, and nothing is shown */
    const char *outer; /* of the work that it is done inside of */
    uint64_t start_ns; /* 0: nobody wants to see it */
} quern__named_work;

quern__named_work quern__worker_publish_name(quern__worker *worker, const char *name);
void quern__worker_retract_name(quern__worker *worker, const quern__named_work *work);

/* Around the work, by the worker itself. In between the name is seen by quern_jobs_describe; at the end the
 * work is shown to the observer. name may be NULL. */
static inline quern__named_work quern__worker_begin_named(quern__worker *worker, const char *name)
{
    if (QUERN__UNLIKELY(name != NULL)) return quern__worker_publish_name(worker, name);
    quern__named_work none; /* member by member: see quern__job_copy */
    none.name = NULL;
    none.outer = NULL;
    none.start_ns = 0;
    return none;
}

static inline void quern__worker_end_named(quern__worker *worker, const quern__named_work *work)
{
    if (QUERN__UNLIKELY(work->name != NULL)) quern__worker_retract_name(worker, work);
}

/* ------------------------------------------------------------------- yield.c: two on one processor */

/* By the worker itself, when it begins to do something that is worth it: it is on this processor. */
void quern__worker_publish_processor(quern__worker *worker);

/* Whether the worker, who spins, holds a processor that another one of the pool needs, and should sleep. It
 * has tried to move away before. To be asked now and then. */
bool quern__worker_should_stop_spinning(quern__worker *worker);

/* How many workers are awake, about. */
int64_t quern__jobs_count_awake(const quern_jobs *jobs);

/* Guests have made more of these than there are processors. */
static inline bool quern__jobs_is_oversubscribed(const quern_jobs *jobs)
{
    return QUERN__UNLIKELY(jobs->external_count != 1) &&
           quern__jobs_count_awake(jobs) > jobs->processor_count;
}

/* Whether one more would not only take the time of those: for work that the worker does itself if nobody
 * comes. A pool for one guest does not ask. */
static inline bool quern__jobs_has_spare_processor(const quern_jobs *jobs)
{
    return QUERN__LIKELY(jobs->external_count == 1) ||
           quern__jobs_count_awake(jobs) < jobs->processor_count;
}

/* A look at the job that quern__worker_find_job would probably return. Any thread may take the job meanwhile. */
bool quern__worker_peek_job(const quern__worker *worker, quern__job *out_job);

/* The function of a job that was submitted by itself; NULL for parts of loops, nodes of graphs and forks. */
quern_job_function *quern__job_function(const quern__job *job);

/* Around waking one that sleeps without a job, and by that one when it is awake again. */
void quern__worker_begin_waking(const quern__worker *sleeper);
void quern__worker_end_waking(const quern__worker *sleeper);
void quern__worker_prepare_sleep(quern__worker *worker);
void quern__worker_leave_shared_processor(quern__worker *worker);

/* After long work that others might have shared, and nobody came: lets them run who should have. */
void quern__worker_yield_after_long_work(quern__worker *worker);

/* -------------------------------------------------------------------------- submit_loop.c: loop store */

/* Gives back the memory of loops that were submitted; none is under way. */
void quern__jobs_free_submitted_loops(quern_jobs *jobs);

/* ------------------------------------------------------------------------------ graph_run.c: submitted
 * runs */

/* Ends the runs that still wait for counters, without having begun: nothing ever begins them. */
void quern__jobs_drop_graphs(quern_jobs *jobs);

/* ------------------------------------------------------------------------------------- wait.c: waiting */

/* What a worker waits for. */
typedef struct quern__wait {
    const void *scope; /* jobs that have it, or are submitted by such jobs, bring the end nearer */
    quern_counter *const *more_scopes; /* [more_count] so do these, for a wait for any of several */
    uint32_t more_count;
    void *target;      /* for the functions */
    uint64_t until_ns; /* is_done is true from then on; 0: nobody knows when */
    /* Acquires what was done. */
    bool (*is_done)(const struct quern__wait *wait);
    /* Something else to do meanwhile, or NULL; returns whether there was. */
    bool (*help)(const struct quern__wait *wait, quern__worker *worker);
    /* Called once, before the first sleep, or NULL: from then on whoever makes is_done true gives the
     * worker a permit afterwards. */
    void (*announce)(const struct quern__wait *wait, quern__worker *worker);
} quern__wait;

void quern__worker_wait(quern__worker *worker, const quern__wait *wait);

/* Whether there is a closed job on its stack. Relaxed: its own word; others see it as it was when the
 * worker said that it sleeps, see search.c. */
static inline bool quern__worker_has_closed_job(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->closed_depth, memory_order_relaxed) != 0;
}

/* Around such jobs, by the worker itself: so many more. Relaxed: as above. */
static inline void quern__worker_add_closed_depth(quern__worker *worker, uint32_t difference)
{
    uint32_t depth = atomic_load_explicit(&worker->closed_depth, memory_order_relaxed);
    atomic_store_explicit(&worker->closed_depth, depth + difference, memory_order_relaxed);
}

/* What quern__scope_allows is to be asked by a worker that waits for this scope and runs other jobs, too.
 */
static inline const void *quern__worker_awaited_scope(const quern__worker *worker, const void *scope)
{
    return quern__worker_has_closed_job(worker) ? scope : QUERN__ANY_SCOPE;
}

/* -------------------------------------------------------------------------------------------- requests */

/* quern_cancel_is_requested, where it is asked often. Acquire: pairs with the release of
 * quern_cancel_request. */
static inline bool quern__cancel_is_requested(const quern_cancel *cancel)
{
    return cancel != NULL && atomic_load_explicit(&cancel->is_requested, memory_order_acquire) != 0;
}

/* ----------------------------------------------------------------------------- submit.c: jobs and nodes */

/* The name that a job was given; NULL: none. Of one that the caller has taken out and not yet run. */
const char *quern__job_name(const quern__job *job);

/* Submits a job that is made: what its run needs is in it, its scope is its counter, which this counts up,
 * and run counts it down; it may run in this call. `function` names the public call in messages. Any
 * thread. Errors, with nothing submitted: OUT_OF_MEMORY, THREAD. */
quern_result quern__job_submit(quern_jobs *jobs, quern__job *job, quern__queue_index queue,
                               const char *function);

/* The same for a job that begins when each of these counters has come to zero, at least one. The list is
 * good: see quern__check_after_list. */
quern_result quern__job_submit_after(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                     quern_counter *const *after, uint32_t after_count,
                                     const char *function);

/* Puts back into the store what this worker has taken out and not needed; nobody is that worker. */
void quern__worker_return_spare_nodes(quern__worker *worker);

/* A node of the pool's store for such a job; NULL when there is no memory. */
quern__node *quern__node_create(quern_jobs *jobs, const quern__job *job, quern__queue_index queue);

/* The same as quern__job_name, of what stands for a submitted loop: see submit_loop.c. */
const char *quern__submitted_loop_name(const quern__job *job);

/* Puts a node's job where workers find it, and tells one. worker: the calling one, in whichever pool, or
 * NULL. */
void quern__node_submit(quern__node *node, quern__worker *worker);

/* --------------------------------------------------------------------- after.c: nodes after counters */

/* Refuses a list that a definition names: too long, with a NULL, or with what itself counts the submitted
 * thing. function names the public call in the message. Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
quern_result quern__check_after_list(quern_counter *const *after, uint32_t count,
                                     const quern_counter *counter, const char *function);

/* Room for so many links. False when there is no memory. Needs jobs of the node. */
bool quern__node_reserve_links(quern__node *node, uint32_t count);

/* Submits a node that has room when each of these counters has come to zero since this call; now if all are
 * there. Needs job, jobs and queue of the node, and what the job counts as. The same counter twice is
 * harmless. worker: as above. */
void quern__node_add_links(quern__node *node, quern_counter *const *after, quern__worker *worker);

/* Both. False: no memory; nothing was done, and the node is still the caller's. */
static inline bool quern__node_submit_after(quern__node *node, quern_counter *const *after, uint32_t count,
                                            quern__worker *worker)
{
    if (!quern__node_reserve_links(node, count)) return false;
    quern__node_add_links(node, after, worker);
    return true;
}

/* Drops the jobs that wait for counters: takes their links out of these. The caller is alone in the pool, as worker
 * 0. A link that another thread is about to fire is left to it: that is a call from outside. */
void quern__jobs_drop_links(quern_jobs *jobs);

/* So many of the counters that it waits for have come to zero; after the last one it is submitted. */
void quern__node_count_down(quern__node *node, uint32_t count, quern__worker *worker);

/* --------------------------------------------------------------------- assigned.c: for a given worker */

/* Gives a node's job to the worker that its queue names, and tells it; false, with nothing done, when there
 * is no such worker any more. */
bool quern__node_assign(quern__node *node);

/* Whether there is a worker of that number, counted from 1, that takes jobs. Errors: INVALID_ARGUMENT. */
quern_result quern__jobs_check_assigned(const quern_jobs *jobs, uint32_t on_worker, const char *function);

/* --------------------------------------------------------------------------------- job_counter.c: counters */

/* Takes so many off, and fires the counter's nodes when it comes to zero. worker: the calling one, in
 * whichever pool, or NULL. */
void quern__counter_finish(quern_counter *counter, uint32_t count, quern__worker *worker);

/* Fires the link when the counter comes to zero. False, with nothing done, when it is there. */
bool quern__counter_add_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Takes a link out again. False when it is not there: it has fired, or is about to. The counter must still
 * be there. */
bool quern__counter_remove_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Takes the finished jobs that were kept back off their counter. */
void quern__worker_flush_finished_slow(quern__worker *worker);

static inline void quern__worker_flush_finished(quern__worker *worker)
{
    if (worker->done_count != 0) quern__worker_flush_finished_slow(worker);
}

/* The end of a submitted job: takes it off its counter, or keeps that back for the next ones. */
static inline void quern__job_count_down(const quern__job *job, quern__worker *worker)
{
    if (job->scope == NULL) return;
    if (worker->done_counter != job->scope) quern__worker_flush_finished(worker);
    worker->done_counter = job->scope;
    worker->done_count++;
}

#endif
