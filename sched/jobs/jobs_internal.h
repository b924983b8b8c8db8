/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_JOBS_INTERNAL_H
#define QUERN_SCHED_JOBS_JOBS_INTERNAL_H

/* The pool: its workers (jobs.c), how they find jobs and sleep (search.c), and how they wait (wait.c).
 * Outside threads come in by enter.c. Submitted jobs (submit.c, after.c) with their counters (counter.c),
 * forks (fork.c), loops (loop.h) and graphs (graph_internal.h) are built from that; requests to stop are in
 * cancel.c. What a definition says of the pool's threads is in own_threads.c. How jobs come to a given
 * worker is in assigned.c, and how a thread from outside becomes one of those, in register.c. That two
 * workers do not share a processor is up to give_way.c. What can be seen of a pool is in worker_times.c and
 * describe_jobs.c. */

#include "core/base/base_internal.h"
#include "sched/jobs/deque.h"
#include "sched/jobs/job_observer.h"
#include "sched/jobs/queue.h"
#include "sched/jobs/thread.h"

#include <quern/graph.h>
#include <quern/jobs.h>

typedef struct quern__worker quern__worker;

#ifndef QUERN__COST_COUNT
#define QUERN__COST_COUNT 64 /* a power of two */
#endif

/* Who spins reads the clock after this many looks: one at all deques is cheaper than that. */
#ifndef QUERN__LOOKS_PER_CLOCK
#define QUERN__LOOKS_PER_CLOCK 16
#endif

/* What an item of a loop over this function takes, see loop.c. */
typedef struct quern__cost {
    quern_range_function *function;
    double alone_ns;  /* on one thread; 0: not known */
    double shared_ns; /* from beginning to end, when shared */
    uint32_t size_class;
    bool is_measured; /* alone_ns is from a loop that one thread ran, not only a guess */
} quern__cost;

/* Where the time of a worker goes, since the pool began: see worker_times.c. */
typedef struct quern__worker_times {
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t
        dry_ns; /* without a job, asleep or not, up to the last that it found; while watched */
    _Atomic uint64_t dry_since_ns;    /* 0: it has one */
    _Atomic uint64_t slept_ns;        /* asleep, up to its last waking */
    _Atomic uint64_t asleep_since_ns; /* 0: awake */
} quern__worker_times;

/* How long a function takes that is submitted as a job: see give_way.c. */
typedef struct quern__brevity {
    quern_job_function *function;
    uint64_t longest_ns; /* processor time of late calls; falls slowly */
} quern__brevity;

enum { QUERN__BREVITY_COUNT = 16 }; /* a power of two */

/* The processor of a worker, so that two workers can avoid sharing one: see give_way.c. */
typedef struct quern__worker_place {
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t
        processor; /* where it last began to do something, counted from 1; 0: not known */
    _Atomic uint32_t arrivals_watched; /* wakings to come after which it is let run at once */
    _Atomic uint32_t given_way_count;  /* how often it has given way, over and over */
    /* The rest is the worker's own. */
    quern__brevity brevities[QUERN__BREVITY_COUNT]; /* by the hash of the function */
    quern__brevity *timed;                          /* the function whose time is being taken, or NULL */
    uint64_t timed_from_ns;                         /* processor time of the thread when the time began */
    uint32_t timed_run_count;                       /* run_count of the worker then */
    uint64_t move_ns;                               /* the time of late moves */
    bool is_staying; /* it was woken on a processor that another worker needs, and did not move */
} quern__worker_place;

/* One participant of a pool: one of its own threads, or the outside thread that has this place for a guest,
 * whichever it is. */
struct quern__worker {
    quern__deque deque;
    _Alignas(QUERN__APART_BYTES) quern__parker parker;
    /* Read by those who look for somebody to help, see wait.c. */
    _Alignas(
        QUERN__APART_BYTES) _Atomic(const void *) serving; /* the scope its current work is a part of */
    _Atomic int64_t serving_from;  /* what stands there in its deque or later is a part of that, too */
    _Atomic(const void *) waiting; /* the scope it waits for, innermost; NULL */
    _Atomic(const char *) work;    /* the name of what it does, innermost; NULL */
    _Atomic uint32_t more_count;   /* other scopes that this wait is for */
    _Atomic(const void *) more_waiting[QUERN_MAX_AFTER - 1]; /* [more_count] */
    _Alignas(QUERN__APART_BYTES) quern_jobs *jobs;
    quern__worker *outer;           /* of the same thread, in the pool from whose job it entered this one */
    const struct quern__wait *wait; /* the one that `waiting` tells of; NULL */
    int64_t floor;                  /* jobs below it in the deque are not the current job's own */
    const void *done_counter; /* finished jobs that were not yet taken off their counter, see counter.c */
    uint32_t done_count;
    uint32_t index;
    const void *guest;     /* the thread that was inside here last: its address, see enter.c */
    uint32_t random;       /* where the next search for work starts */
    uint32_t full_count;   /* submitted jobs for which the deque still counts as full */
    uint32_t run_count;    /* of jobs, over and over */
    uint32_t rescue_depth; /* jobs on the stack that a wait took although it did not wait for them */
    _Atomic uint32_t closed_depth; /* closed jobs on the stack: see deque.h; others only look */
    uint32_t at_once_depth;        /* jobs on the stack that ran in the call that submitted them */
    bool has_slept;                /* since it last searched */
    bool takes_next;               /* looks for a job: the next that it pushes is its own, see submit.c */
    quern__thread thread;          /* not of a guest */
    quern__queue assigned;         /* jobs that this worker alone may run, see assigned.c */
    quern__node *spare_nodes;      /* [spare_count], by next: see submit.c */
    uint32_t spare_count;
    uint64_t loop_end_ns;          /* when the last shared loop of this worker ended */
    uint64_t quiet_ns;             /* loops in a row before that which woke nobody */
    quern__loop_watch *loop_watch; /* or NULL; set by its user, on the worker's own thread */
    quern__cost costs[QUERN__COST_COUNT];
    quern__worker_times times;
    quern__worker_place place;
};

enum { QUERN__MASK_WORDS = (QUERN_MAX_THREADS + 63) / 64 };

typedef struct quern__mask {
    _Atomic uint64_t words[QUERN__MASK_WORDS];
} quern__mask;

/* That a thread from outside has a place for itself: an element of this thread's list. */
typedef struct quern__registration {
    struct quern__registration *next;
    quern_jobs *jobs;
    uint32_t place;
} quern__registration;

/* A pool that has no workers but the one that calls: forks of the process do not concern it. */
#define QUERN__NO_THREADS UINT32_MAX

struct quern_jobs {
    quern_allocator allocator;
    quern_host_threads host_threads;
    quern__observer *observer; /* or NULL */
    /* Who wants to know for how long workers are without a job; NULL: nobody. Never looked into. */
    _Atomic(const void *) watcher;
    uint32_t thread_count; /* its own threads, and one guest: how many usually share work */
    uint32_t guest_count;  /* places for guests */
    uint32_t worker_count; /* its own threads, and all guests: indices of workers are below it */
    uint32_t processor_count;
    uint32_t asked_spin_ns; /* the threads may be too many for it */
    uint64_t spin_ns;
    bool pin_threads;
    quern_processors processors; /* where the pool's threads run, unless it is empty */
    size_t stack_bytes;          /* of each; 0: what the system gives */
    void (*thread_start)(void *user_data, uint32_t worker_index); /* or NULL */
    void (*thread_stop)(void *user_data, uint32_t worker_index);
    void *user_data;    /* of both */
    bool is_asymmetric; /* pushers need no fence, see search.c */
    char name[QUERN__THREAD_NAME_BYTES];
    quern__worker *workers;   /* [worker_capacity] */
    uint32_t worker_capacity; /* more than worker_count when the system refused a thread */
    _Atomic bool is_stopping; /* workers end when there is nothing left to do */
    _Atomic bool has_stopped; /* its own threads run no job any more */
    /* Calls asked of the host's threads that have not returned; or the pool's own threads that do not rest,
     * and while the pool ends also the thread that ends it: see rest in jobs.c. */
    _Atomic uint32_t lent_count;
    _Atomic uint32_t fork_count; /* of the process, when the threads were started; or QUERN__NO_THREADS */
    _Atomic uint32_t
        public_thread_count; /* thread_count, for threads outside: these may read it at any time */
    pthread_mutex_t outside_mutex;
    pthread_cond_t outside_condition; /* a sleeper from outside has fired, or a guest has left */
    quern__queues queues;
    /* Of each place for guests, a bit in the low half: a thread is inside, as that worker; and one in the
     * high half: nobody else may come in there. See enter.c. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t guests;
    quern__registration registrations[QUERN_MAX_GUESTS]; /* by place; each its thread's, see register.c */
    /* Bits in idle and blocked, or more while bits are set and cleared: 0 only when both are empty. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t sleeper_count;
    quern__mask idle;    /* workers that sleep, or are about to, because they found no job */
    quern__mask blocked; /* those that sleep, or are about to, in a wait */
    _Atomic uint32_t blocked_count;
    _Atomic uint32_t outside_count;      /* threads that wait without being a worker */
    struct quern__kept_loop *loops;      /* that were ever submitted at a time: see submit_loop.c */
    struct quern__kept_loop *free_loops; /* those of them that nobody runs; under the queues' lock */
    quern_graph *waiting_graphs;         /* submitted runs that wait for counters; likewise */
    _Atomic uint32_t
        outside_calls; /* calls by others than workers that make somebody go on, see counter.c */
    _Atomic uint32_t
        wants_alone_count; /* threads that want the pool alone: submitting does not enter meanwhile */
    _Atomic uint32_t visitor_count;    /* threads outside that look at workers, or wake them */
    _Atomic bool is_replacing_workers; /* no visit may begin */
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t searching_count;
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
bool quern__jobs_try_enter_alone(quern_jobs *jobs);
void quern__jobs_leave_alone(quern_jobs *jobs);

/* The calling thread, alone in the pool as worker `before`, becomes worker 0 of those that replace it. */
void quern__jobs_become_first(quern_jobs *jobs, const quern__worker *before);

/* Whether an outside thread would find a place. seq_cst: see enter.c. */
bool quern__jobs_has_place(const quern_jobs *jobs);

/* Reserves a place that is free, unless there is none; by the guest inside, gives it back. */
bool quern__jobs_reserve(quern_jobs *jobs, uint32_t *out_place);
void quern__jobs_cancel_reservation(quern_jobs *jobs, const quern__worker *guest);

/* How many places are reserved. */
uint32_t quern__jobs_registered_count(const quern_jobs *jobs);

/* The worker that a thread at this place is. */
static inline quern__worker *quern__jobs_guest(const quern_jobs *jobs, uint32_t place)
{
    return &jobs->workers[place == 0 ? 0 : jobs->thread_count - 1 + place];
}

static inline bool quern__worker_is_guest(const quern__worker *worker)
{
    return worker->index == 0 || worker->index >= worker->jobs->thread_count;
}

static inline uint32_t quern__guest_place(const quern__worker *guest)
{
    return guest->index == 0 ? 0 : guest->index + 1 - guest->jobs->thread_count;
}

/* How many workers may run a job now or later: the pool's own threads, unless they have stopped, and the guests
 * inside. seq_cst: pairs with the swap in quern__jobs_try_enter; see is_last_one in wait.c. Relaxed: the guest
 * that has seen the threads stop is the only one that still waits then. */
static inline uint32_t quern__jobs_participant_count(const quern_jobs *jobs)
{
    uint64_t guests = atomic_load_explicit(&jobs->guests, memory_order_seq_cst);
    bool has_threads = !atomic_load_explicit(&jobs->has_stopped, memory_order_relaxed);
    return (has_threads ? jobs->thread_count - 1 : 0) + (uint32_t)__builtin_popcount((uint32_t)guests);
}

/* The list of the calling thread; and what it says of a pool, or NULL. */
extern QUERN__FAST_THREAD_LOCAL quern__registration *quern__registrations;
quern__registration *quern__registration_of(const quern_jobs *jobs);

/* Takes the pool out of the calling thread's list, and does nothing else. */
void quern__registration_forget(const quern_jobs *jobs);

/* Whether a thread has this place for itself. */
bool quern__jobs_is_registered(const quern_jobs *jobs, uint32_t place);

/* Gives a permit to each guest inside, after a write that guests look for before they sleep. */
void quern__jobs_tell_guests(quern_jobs *jobs);

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
void quern__jobs_lend(void *argument);

/* Around whatever a thread that is no worker does to a pool so that somebody may go on: until the end of
 * it quern_jobs_destroy waits. Release pairs with the acquire there. seq_cst: pairs with try_enter_alone in
 * jobs.c. */
static inline void quern__jobs_begin_outside_call(quern_jobs *jobs)
{
    atomic_fetch_add_explicit(&jobs->outside_calls, 1, memory_order_seq_cst);
}

/* Release: pairs with the acquire in wait_for_outside_calls. */
static inline void quern__jobs_end_outside_call(quern_jobs *jobs)
{
    atomic_fetch_sub_explicit(&jobs->outside_calls, 1, memory_order_release);
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
void quern__worker_begin_thread(const quern__worker *worker);

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
    if (!jobs->is_asymmetric || worker == NULL) quern__handshake_fence();
    atomic_signal_fence(memory_order_seq_cst);
    if (QUERN__UNLIKELY(atomic_load_explicit(&jobs->sleeper_count, QUERN__HANDSHAKE_ACQUIRE) != 0))
        quern__jobs_notify_sleepers(jobs, worker, scope);
}

/* A job for a worker that has none, whatever it is: its own newest, or somebody's oldest. Spins for a
 * while. False when there was nothing, or as soon as the worker has a permit. */
bool quern__worker_next(quern__worker *worker, quern__job *out_job);

/* The next that there is at this moment. */
bool quern__worker_take_any(quern__worker *worker, quern__job *out_job);

/* Runs a job that quern__worker_next found. */
void quern__worker_run(quern__worker *worker, quern__job *job);

/* Runs one that the current job has put into this worker's deque: a part of what it is serving anyway. */
void quern__worker_run_own(quern__worker *worker, quern__job *job);

/* Sleeps until there may be work or the worker has a permit. */
void quern__worker_sleep(quern__worker *worker);

/* Makes a worker look at what is assigned to it, wherever it is. */
void quern__worker_call(quern__worker *worker);

/* One that is assigned to this worker; with a scope that is not NULL the first one of this scope. */
static inline bool quern__worker_take_assigned(quern__worker *worker, const void *scope,
                                               quern__job *out_job)
{
    return !quern__queue_is_empty(&worker->assigned) &&
           quern__queues_take_from(&worker->jobs->queues, &worker->assigned, scope, out_job);
}

/* Whether there is any job, but for those that guests alone may run. The read of a handshake. */
bool quern__jobs_any(const quern_jobs *jobs);

/* Sets or clears a worker's bit of a mask. Clear returns whether it was set: of several, one gets true. */
void quern__mask_set(quern__mask *mask, uint32_t index);
bool quern__mask_clear(quern__mask *mask, uint32_t index);

/* Between "I am going to sleep" and the last look: the fence of both sides where pushers have none. */
void quern__jobs_sleeper_fence(const quern_jobs *jobs);

/* -------------------------------------------------------------------------- worker_times.c: looking on */

/* By the worker itself: it looks in vain since now_ns; it does no longer, for it has found a job. */
void quern__worker_run_dry(quern__worker *worker, uint64_t now_ns);
void quern__worker_end_dry(quern__worker *worker);

/* Relaxed: the worker writes it itself. */
static inline void quern__worker_found_job(quern__worker *worker)
{
    if (atomic_load_explicit(&worker->times.dry_since_ns, memory_order_relaxed) != 0)
        quern__worker_end_dry(worker);
}

/* Around a sleep, by the worker itself; the second returns when it fell asleep. */
void quern__worker_fall_asleep(quern__worker *worker);
uint64_t quern__worker_wake_up(quern__worker *worker);

/* quern__parker_take, with the time that passes meanwhile. until_ns: as there. */
void quern__worker_park(quern__worker *worker, uint64_t until_ns);

/* Time without a job, and the part of it asleep, with what lasts. Any thread. */
uint64_t quern__worker_dry_ns(const quern__worker *worker, uint64_t now_ns);
uint64_t quern__worker_slept_ns(const quern__worker *worker, uint64_t now_ns);

/* The time when something begins that the observer is shown, or 0: nobody wants to know. */
static inline uint64_t quern__worker_start_showing(const quern__worker *worker)
{
    return quern__observer_wants(worker->jobs->observer) ? quern__clock_ns() : 0;
}

/* Shows something that ends now, on the worker's track. */
void quern__worker_show(const quern__worker *worker, quern__job_event event, uint64_t start_ns,
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

/* ------------------------------------------------------------------- give_way.c: two on one processor */

/* By the worker itself, when it begins to do something that is worth it: it is on this processor. */
void quern__worker_note_processor(quern__worker *worker);

/* Whether the worker, who spins, holds a processor that another one of the pool needs, and should sleep. It
 * has tried to move away before. To be asked now and then. */
bool quern__worker_is_in_the_way(quern__worker *worker);

/* How many workers are awake, about. */
int64_t quern__jobs_count_awake(const quern_jobs *jobs);

/* Guests have made more of these than there are processors. */
static inline bool quern__jobs_is_crowded(const quern_jobs *jobs)
{
    return QUERN__UNLIKELY(jobs->guest_count != 1) && quern__jobs_count_awake(jobs) > jobs->processor_count;
}

/* Whether one more would not only take the time of those: for work that the worker does itself if nobody
 * comes. A pool for one guest does not ask. */
static inline bool quern__jobs_has_processor(const quern_jobs *jobs)
{
    return QUERN__LIKELY(jobs->guest_count == 1) || quern__jobs_count_awake(jobs) < jobs->processor_count;
}

/* A look at the job that quern__worker_next would probably return. Any thread may take the job meanwhile. */
bool quern__worker_peek(const quern__worker *worker, quern__job *out_job);

/* The function of a job that was submitted by itself; NULL for parts of loops, nodes of graphs and forks. */
quern_job_function *quern__job_function(const quern__job *job);

/* Around waking one that sleeps without a job, and by that one when it is awake again. */
void quern__worker_begin_waking(const quern__worker *sleeper);
void quern__worker_end_waking(const quern__worker *sleeper);
void quern__worker_begin_sleep(quern__worker *worker);
void quern__worker_arrive(quern__worker *worker);

/* After long work that others might have shared, and nobody came: lets them run who should have. */
void quern__worker_let_others_come(quern__worker *worker);

/* -------------------------------------------------------------------------- submit_loop.c: kept loops */

/* Gives back the memory of loops that were submitted; none is under way. */
void quern__jobs_release_loops(quern_jobs *jobs);

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
static inline bool quern__worker_is_closed(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->closed_depth, memory_order_relaxed) != 0;
}

/* Around such jobs, by the worker itself: so many more. Relaxed: as above. */
static inline void quern__worker_close(quern__worker *worker, uint32_t difference)
{
    uint32_t depth = atomic_load_explicit(&worker->closed_depth, memory_order_relaxed);
    atomic_store_explicit(&worker->closed_depth, depth + difference, memory_order_relaxed);
}

/* What quern__scope_allows is to be asked by a worker that waits for this scope and runs other jobs, too.
 */
static inline const void *quern__worker_allows(const quern__worker *worker, const void *scope)
{
    return quern__worker_is_closed(worker) ? scope : QUERN__ANY_SCOPE;
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
 * good: see quern__check_after. */
quern_result quern__job_submit_after(quern_jobs *jobs, const quern__job *job, quern__queue_index queue,
                                     quern_counter *const *after, uint32_t after_count,
                                     const char *function);

/* Puts back into the store what this worker has taken out and not needed; nobody is that worker. */
void quern__worker_give_spare_nodes(quern__worker *worker);

/* A node of the pool's store for such a job; NULL when there is no memory. */
quern__node *quern__node_make(quern_jobs *jobs, const quern__job *job, quern__queue_index queue);

/* The same as quern__job_name, of what stands for a submitted loop: see submit_loop.c. */
const char *quern__submitted_loop_name(const quern__job *job);

/* Puts a node's job where workers find it, and tells one. worker: the calling one, in whichever pool, or
 * NULL. */
void quern__node_submit(quern__node *node, quern__worker *worker);

/* --------------------------------------------------------------------- after.c: nodes after counters */

/* Refuses a list that a definition names: too long, with a NULL, or with what itself counts the submitted
 * thing. function names the public call in the message. Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
quern_result quern__check_after(quern_counter *const *after, uint32_t count, const quern_counter *counter,
                                const char *function);

/* Room for so many links. False when there is no memory. Needs jobs of the node. */
bool quern__node_add_room(quern__node *node, uint32_t count);

/* Submits a node that has room when each of these counters has come to zero since this call; now if all are
 * there. Needs job, jobs and queue of the node, and what the job counts as. The same counter twice is
 * harmless. worker: as above. */
void quern__node_add_links(quern__node *node, quern_counter *const *after, quern__worker *worker);

/* Both. False: no memory; nothing was done, and the node is still the caller's. */
static inline bool quern__node_submit_after(quern__node *node, quern_counter *const *after, uint32_t count,
                                            quern__worker *worker)
{
    if (!quern__node_add_room(node, count)) return false;
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

/* --------------------------------------------------------------------------------- counter.c: counters */

/* Takes so many off, and fires the counter's nodes when it comes to zero. worker: the calling one, in
 * whichever pool, or NULL. */
void quern__counter_finish(quern_counter *counter, uint32_t count, quern__worker *worker);

/* Fires the link when the counter comes to zero. False, with nothing done, when it is there. */
bool quern__counter_add_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Takes a link out again. False when it is not there: it has fired, or is about to. The counter must still
 * be there. */
bool quern__counter_remove_link(quern_counter *counter, quern__link *link, quern__worker *worker);

/* Takes the finished jobs that were kept back off their counter. */
void quern__worker_settle_slowly(quern__worker *worker);

static inline void quern__worker_settle(quern__worker *worker)
{
    if (worker->done_count != 0) quern__worker_settle_slowly(worker);
}

/* The end of a submitted job: takes it off its counter, or keeps that back for the next ones. */
static inline void quern__job_count_down(const quern__job *job, quern__worker *worker)
{
    if (job->scope == NULL) return;
    if (worker->done_counter != job->scope) quern__worker_settle(worker);
    worker->done_counter = job->scope;
    worker->done_count++;
}

#endif
