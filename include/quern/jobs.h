/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_JOBS_H
#define QUERN_JOBS_H

/** @file
 * A pool of worker threads that steal work from each other. It knows nothing of worlds: use it for
 * whatever your program has to do in parallel.
 *
 * A pool of n threads starts n - 1. A thread that calls quern_jobs_parallel_for, quern_jobs_run,
 * quern_jobs_wait or quern_graph_run from outside the pool takes part as a worker until the call returns:
 * it is a guest. The pool has places for as many guests at a time as its definition says, usually for one;
 * where all are taken, waits sleep and the others get POOL_BUSY. Calls made from inside a job are always
 * allowed, nest to any depth, and help with the work instead of blocking. Idle workers look for work for a bounded
 * time, then sleep: a pool that is left alone uses no processor time.
 *
 * A process that was forked outside of jobs has none of the pool's threads. There, calls of a pool with
 * threads return THREAD, but quern_jobs_destroy still gives back the memory.
 *
 * docs/jobs.md explains which call to use when. */

#include <quern/base.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most workers a pool may have: threads of its own and guests. A program may be built with another
 * number, if the library is built with the same one. */
#ifndef QUERN_MAX_THREADS
#define QUERN_MAX_THREADS 256
#endif

/** The most guests a pool may have at the same time: threads from outside that take part. */
#define QUERN_MAX_GUESTS 32

/** A job pool. */
typedef struct quern_jobs quern_jobs;

/* For types below that the program only stores: the library reads and writes these fields as atomics. */
#ifdef __cplusplus
#define QUERN__ATOMIC(type) type
#else
#define QUERN__ATOMIC(type) _Atomic(type)
#endif

/* ------------------------------------------------------------------------------------------------ pool */

/** Threads that the program already has, for a pool that starts none of its own.
 *
 * submit must see to it that function(data) is called once, soon, on any thread but the one that
 * called submit; calling it inside submit would be wrong. Such a call works for the pool until it finds
 * nothing more to do, then returns; it may sleep where a job of the pool waits for another. At most
 * thread_count - 1 are under way at a time. Threads: submit is called from any, also from inside jobs. */
typedef struct quern_host_threads {
    /** See above. */
    void (*submit)(void *user_data, void (*function)(void *data), void *data) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to submit. */
} quern_host_threads;

/** The highest number of a processor in a set, and one more. */
#define QUERN_MAX_PROCESSORS 1024

/** A set of processors, by the numbers that the system gives them: quern_processors_add fills it. */
typedef struct quern_processors {
    uint64_t words[QUERN_MAX_PROCESSORS / 64]; /**< Internal. */
} quern_processors;

/** Adds processor `index` to a set, which begins as all zero. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (not
 * below QUERN_MAX_PROCESSORS). Threads: any, one at a time for a set. */
QUERN_API quern_result quern_processors_add(quern_processors *processors, uint32_t index);

/** Describes a pool. All zero is a good definition. */
typedef struct quern_jobs_def {
    /** 1 to QUERN_MAX_THREADS, the first guest included; 0 means one per processor this process may use. With
     * `processors` it means one for each of these, and one more for the guest where that may use others. */
    uint32_t thread_count QUERN__ZERO;
    /** How many threads from outside may take part at the same time, 1 to QUERN_MAX_GUESTS; 0 means 1.
     * There may be QUERN_MAX_THREADS workers in all: thread_count - 1 of its own, and these. */
    uint32_t guest_count QUERN__ZERO;
    /** How long an idle worker looks for work before it sleeps; 0 means 200,000. A pool with more threads
     * than processors never looks longer than one round. Who looks on the processor where another worker
     * has a job moves to another one, or sleeps: threads of the pool that are not pinned may be moved, but
     * may run on all processors that they might run on before. */
    uint32_t spin_ns QUERN__ZERO;
    bool no_spin QUERN__ZERO; /**< Idle workers look around once and sleep; spin_ns must then be 0. */
    /** Worker i stays on the i-th processor this process may use, or of `processors`, around and around;
     * the caller is left where it is. Does nothing where the system cannot pin threads. */
    bool pin_threads QUERN__ZERO;
    /** The threads of the pool run on these processors alone; all zero means wherever the creating thread
     * may run. The caller is left where it is. Refused are processors that the system does not let this
     * process use, and any set with host_threads. Does nothing where the system cannot do it. */
    quern_processors processors QUERN__ZERO;
    /** The stack of each thread of the pool, rounded up to whole pages; 0 means what the system gives. The
     * pool itself needs less than 64 KiB of it; a wait runs other jobs on top of the one that waits.
     * Refused are less than the system allows, and any number with host_threads. */
    size_t stack_bytes QUERN__ZERO;
    /** Called by each thread of the pool before its first job, and thread_stop after its last; either may
     * be NULL. Each start has its stop, by the same thread with the same index, also when the pool could
     * not be created as a whole. quern_jobs_create does not wait for the starts; quern_jobs_destroy, and
     * quern_jobs_resize, which ends all threads and starts others, wait for the stops. With host_threads
     * they stand around each stretch of work that a call does for the pool. Threads from outside are the
     * program's own: nothing is called for them. Neither function may call anything of the pool. */
    void (*thread_start)(void *user_data, uint32_t worker_index) QUERN__ZERO;
    void (*thread_stop)(void *user_data, uint32_t worker_index) QUERN__ZERO; /**< See thread_start. */
    void *user_data QUERN__ZERO; /**< Passed to thread_start and thread_stop. */
    /** Threads are called name/1, name/2 …, cut to 15 bytes; NULL means "quern". */
    const char *name QUERN__ZERO;
    quern_host_threads host_threads QUERN__ZERO; /**< submit NULL: the pool has threads of its own. */
    /** Shows the steals and sleeps of worker i on track i while the trace runs; may be NULL. It must
     * outlive the pool and belong to no other one. Workers without a track are left out: there are
     * thread_count, and one more for each place for guests but the first. See <quern/profile.h>. */
    struct quern_trace *trace QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero means quern_allocator_default(). */
} quern_jobs_def;

/** Creates a pool and starts its threads. def may be NULL for the defaults. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD (the system refused one). Threads: any. */
QUERN_API quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs);

/** Runs all jobs that were submitted, and what they submit, then ends the threads and frees the pool. The calling
 * thread takes part. Jobs that still wait for counters are dropped, and graphs that do are free again (their result
 * is CANCELLED). The counters that they wait for must be there until this call has returned; these may be released,
 * used again and freed afterwards, also through other pools. NULL is allowed. No other thread may be inside a
 * call of the pool, and no job may call this: both are reported and refused. Submitting and releasing are
 * exceptions: such a call may be what lets this thread go on, so it is waited for. */
QUERN_API void quern_jobs_destroy(quern_jobs *jobs);

/** Changes the number of threads; 0 means the same as in the definition. First it runs all jobs that were submitted
 * before, as quern_jobs_destroy does, also if the number stays the same; then it ends all threads and starts
 * others. Jobs that wait for counters go on waiting.
 *
 * Meanwhile other threads may submit, hold, release, wake and ask: what they submit runs before or after the
 * change. It needs a moment at which the pool has nothing to do, so threads that submit without a pause delay it.
 * Their waits sleep until it is over; loops, graphs and quern_jobs_run return POOL_BUSY. No other thread may run
 * frames on the pool, and no job may call this. Errors, with nothing changed: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY, POOL_BUSY (another thread is registered, or is inside a wait, loop, graph or quern_jobs_run).
 * THREAD means that the system refused a thread: the pool then has as many as could be started
 * (quern_jobs_thread_count). */
QUERN_API quern_result quern_jobs_resize(quern_jobs *jobs, uint32_t thread_count);

/** Returns how many threads the pool has, the first guest included. Threads: any. */
QUERN_API uint32_t quern_jobs_thread_count(const quern_jobs *jobs);

/** Returns how many workers the pool has: its own threads, and as many guests as may take part at the same
 * time. Indices of workers are below it. It is quern_jobs_thread_count for a pool with a place for one
 * guest. Threads: any. */
QUERN_API uint32_t quern_jobs_worker_count(const quern_jobs *jobs);

/** Keeps a place for guests for the calling thread: from now on it is always this worker when it takes part,
 * nobody else is, and jobs can be given to it (quern_job_def.on_worker): for a thread that owns a window, a
 * GPU or a device. What is given to it runs while it waits in any call of this pool, or in
 * quern_jobs_run_caller_jobs. out_worker_index may be NULL.
 *
 * A pool with one place has none left for others then; see guest_count. The pool can be neither resized nor,
 * by another thread, destroyed while there are registered threads. A thread that ends gives its place back,
 * and jobs that were given to it go to any worker. Errors: NULL_ARGUMENT; INVALID_ARGUMENT inside a job, or
 * for a thread that is registered already; POOL_BUSY when no place is free; THREAD. Threads: any from
 * outside the pool. */
QUERN_API quern_result quern_jobs_register_thread(quern_jobs *jobs, uint32_t *out_worker_index);

/** Runs what was given to the calling thread, and gives its place back. quern_jobs_destroy does so for the
 * thread that calls it. Jobs for it that wait for their counters go to any worker. Errors: NULL_ARGUMENT;
 * INVALID_ARGUMENT inside a job, or for a thread that is not registered; THREAD. Threads: the registered
 * one. */
QUERN_API quern_result quern_jobs_unregister_thread(quern_jobs *jobs);

/** Wakes all threads that sleep for want of a job, each once, so that they are there when work begins. A
 * thread takes tens of microseconds to arrive, and about ten of the caller's to be woken. They sleep again
 * when no work comes. NULL is allowed. Threads: any. */
QUERN_API void quern_jobs_wake(quern_jobs *jobs);

/** Returns how many processors this process may run on, at least 1. Threads: any. */
QUERN_API uint32_t quern_processor_count(void);

/** Where Quern found the size of a cache. */
typedef enum quern_cache_source {
    QUERN_CACHE_ASSUMED,      /**< The system does not tell; a common size is assumed. */
    QUERN_CACHE_FROM_SYSCONF, /**< sysconf. */
    QUERN_CACHE_FROM_KERNEL   /**< The kernel's description of processor 0 (Linux). */
} quern_cache_source;

/** Sizes of the data caches that frames reckon with, in bytes. */
typedef struct quern_cache_sizes {
    size_t own_bytes;                 /**< The largest cache that a core has to itself; 1 MiB if unknown. */
    size_t shared_bytes;              /**< The last level, which several cores share; 32 MiB if unknown. */
    quern_cache_source own_source;    /**< Where own_bytes is from. */
    quern_cache_source shared_source; /**< Where shared_bytes is from. */
} quern_cache_sizes;

/** Returns the cache sizes of this machine. The first call of a process reads some files of the system; later
 * calls take some nanoseconds. Schedules use these sizes to decide how much of the next chunk a worker
 * prefetches. Thread-safe. */
QUERN_API quern_cache_sizes quern_processor_caches(void);

/** Describes in words what every worker is doing, one line each, for a program that hangs: its state and
 * the jobs in its deque. Takes no lock and no memory, unless the sink does. Errors: NULL_ARGUMENT, FILE.
 * Threads: any. */
QUERN_API quern_result quern_jobs_describe(const quern_jobs *jobs, quern_sink sink);

/* --------------------------------------------------------------------------------------- fork and join */

/** A job. user_data is the pointer that was given with it, or the address of a copy of its payload.
 * worker_index is that of the thread it runs on, 0 to quern_jobs_worker_count - 1: no two threads have the
 * same index at the same time, and a job keeps its own from beginning to end. The pool's own threads are 1
 * to thread_count - 1; the first place for guests is 0, others are thread_count and above. */
typedef void quern_job_function(void *user_data, uint32_t worker_index);

/** Runs function as a job on the calling thread and returns when it has returned. This is the way into the
 * pool, from outside, for code that forks. Errors: NULL_ARGUMENT, POOL_BUSY, THREAD. Threads: from outside
 * the pool or inside a job. */
QUERN_API quern_result quern_jobs_run(quern_jobs *jobs, quern_job_function *function, void *user_data);

/** A call that another thread may take over. It usually lives on the stack, and must stay where it is until
 * it has been joined. */
typedef struct quern_fork {
    quern_job_function *function;  /**< Internal. */
    void *user_data;               /**< Internal. */
    void *owner;                   /**< Internal. */
    QUERN__ATOMIC(uint32_t) state; /**< Internal. */
} quern_fork;

/** Offers function(user_data) to other threads. Every fork must be joined by the job that made it, before
 * that job returns; joining the last one first is quickest. Nothing is allocated: when there is no room for
 * more offers, the call is made at once. Errors: NULL_ARGUMENT; INVALID_ARGUMENT when not called from
 * inside a job of this pool. */
QUERN_API quern_result quern_jobs_fork(quern_jobs *jobs, quern_fork *fork, quern_job_function *function,
                                       void *user_data);

/** Makes the forked call if nobody else has begun it; otherwise waits until it has returned. What it wrote
 * is then visible. A wait helps with what the call consists of, and with nothing else. Errors: as
 * quern_jobs_fork; INVALID_ARGUMENT also for a fork that is joined already, or is another worker's. */
QUERN_API quern_result quern_jobs_join(quern_jobs *jobs, quern_fork *fork);

/* ------------------------------------------------------------------------------------------ cancellation */

/** A request to stop, for any number of jobs, loops and graphs that were given its address.
 *
 * All zero when new: quern_cancel cancel = {0}. It must stay where it is until all that was given it is
 * over. Once it is requested, jobs that have not begun do not begin, and loops make no further calls. Their
 * counters come to zero all the same. Nothing that runs is interrupted: long jobs ask for themselves. */
typedef struct quern_cancel {
    QUERN__ATOMIC(uint32_t) is_requested QUERN__ZERO; /**< Internal. */
} quern_cancel;

/** Asks all that was given this to stop; what the caller wrote before is visible to whoever sees it. Does
 * not wait for them: their counters tell. NULL is allowed. Threads: any. */
QUERN_API void quern_cancel_request(quern_cancel *cancel);

/** Returns whether it was requested, for jobs that take long. false for NULL. Threads: any. */
QUERN_API bool quern_cancel_is_requested(const quern_cancel *cancel);

/** Makes it as new. To be called when all that was given it is over: whoever has not seen the request would
 * not stop. NULL is allowed. Threads: any. */
QUERN_API void quern_cancel_reset(quern_cancel *cancel);

/* -------------------------------------------------------------------------------------- submitted jobs */

/** Counts what has to finish: jobs submitted with it, and holds.
 *
 * All zero when new: quern_counter counter = {0}. It must stay where it is until it has finished and nobody
 * waits for it. It finishes whenever it comes to zero, and may be used again and again; but adding to it
 * while it may just be finishing is a mistake. Jobs that it counts may add to it, and so may whoever holds
 * it. */
typedef struct quern_counter {
    QUERN__ATOMIC(uint32_t) pending QUERN__ZERO; /**< Internal. */
    void *links QUERN__ZERO;                     /**< Internal. */
} quern_counter;

/** When a submitted job has its turn. */
typedef enum quern_priority {
    QUERN_PRIORITY_NORMAL, /**< The quick way, without a lock; a worker runs its own newest job first. */
    /** The next worker that is free takes it, before anything else, in order. A worker that waits is not
     * free: it helps first with what it has submitted itself. */
    QUERN_PRIORITY_HIGH,
    /** Runs when there is nothing else, in order, and not in waits for other things; but where all workers
     * wait, one of them takes the newest job of any priority. */
    QUERN_PRIORITY_LOW
} quern_priority;

/** The most bytes that a job carries. */
#ifndef QUERN_JOB_PAYLOAD_BYTES
#define QUERN_JOB_PAYLOAD_BYTES \
    40 /* another number needs another QUERN__JOB_DATA_WORDS: sched/jobs/deque.h */
#endif

/** The most counters that something submitted may come after. */
#define QUERN_MAX_AFTER 64

/** Describes a job. It needs a function; one definition may be used for many jobs. */
typedef struct quern_job_def {
    /** Gets the address of a writable copy of the payload, aligned to 8. */
    quern_job_function *function QUERN__ZERO;
    /** Copied by the call that submits; NULL when there is none. */
    const void *payload QUERN__ZERO;
    /** 1 to QUERN_JOB_PAYLOAD_BYTES, a pointer less for each of cancel and name; 0 without a payload, and only
     * then. */
    uint32_t payload_bytes QUERN__ZERO;
    quern_priority priority QUERN__ZERO; /**< 0 means QUERN_PRIORITY_NORMAL. */
    /** The job runs on a guest, whichever comes first: while that waits in any call of this pool, or in
     * quern_jobs_run_caller_jobs. In order; priority has no meaning then. */
    bool caller_only QUERN__ZERO;
    /** Counts this job from the call that submits it; NULL: nothing does. */
    quern_counter *counter QUERN__ZERO;
    /** The job begins when each of these has come to zero, at this call or later; what becomes of it then
     * makes no difference. Read by the call alone; counter must not be among them. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< 0, none, to QUERN_MAX_AFTER. */
    /** When it is requested before the job begins, the job does not run; its counter is counted down all
     * the same. NULL: it always runs. */
    quern_cancel *cancel QUERN__ZERO;
    /** What it is called where jobs are shown; not copied: it must live as long as the job. NULL: none. */
    const char *name QUERN__ZERO;
    /** Worker on_worker - 1 alone runs it: a thread of the pool, between two jobs and in its waits, or a
     * registered thread; 0 means any worker. In order; priority has no meaning then. When there is no such
     * worker any more at the job's turn, because the pool was resized or the thread is no longer
     * registered, any worker runs it. Not with caller_only. */
    uint32_t on_worker QUERN__ZERO;
} quern_job_def;

/** Submits a job and returns, usually at once: when a worker's deque is full (512 jobs) the worker runs
 * the job inside this call.
 *
 * A job of normal priority needs no lock and no memory when a job submits it, or an outside thread while
 * there is a place for it in the pool. All others take a lock, and memory when more jobs wait than ever
 * before: those of high or low priority, after counters, for the caller, or from other threads, and those
 * that find the deque full 64 calls deep. Errors, with nothing submitted: NULL_ARGUMENT, INVALID_ARGUMENT,
 * OUT_OF_MEMORY, THREAD. Threads: any, also from inside jobs. */
QUERN_API quern_result quern_jobs_submit(quern_jobs *jobs, const quern_job_def *def);

/** Submits a job when `after` next comes to zero, or now if it is zero: a continuation, as with def->after,
 * which must be empty. def->counter counts the job from now on, and must be another counter. Errors and
 * threads: as quern_jobs_submit. */
QUERN_API quern_result quern_jobs_submit_after(quern_jobs *jobs, const quern_job_def *def,
                                               quern_counter *after);

/** Returns when the counter is at zero; what its jobs wrote is then visible.
 *
 * The caller helps meanwhile, with what it has submitted itself and with what the counter waits for: jobs of
 * this counter, and what they wait for in their turn. So stacks stay bounded, and waiting for something short
 * runs nothing long of anybody else's. Its own jobs, if they are of normal priority, come first, the newest
 * before the others and those of other counters too, until the counter is at zero: submit last what you
 * wait for first, and long jobs that nobody waits for with low priority. (When all workers wait and there
 * are other jobs, one worker runs those, up to 256 deep, rather than nobody.) From outside the pool the
 * caller is a guest meanwhile; while all places are taken it sleeps without helping. Errors: NULL_ARGUMENT,
 * THREAD. Threads: any. */
QUERN_API quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter);

/** Waits like quern_jobs_wait, but no longer than limit_ns. out_done, which may be NULL, says whether the
 * counter has come to zero; what its jobs wrote is then visible. The caller helps meanwhile, too, and a job
 * that it has begun is not interrupted when time is up: the call returns after that job. What runs until the
 * caller stops it must not be among the jobs that it may help with (see quern_jobs_wait). A limit of 0 only
 * looks; UINT64_MAX is none. The counter must stay where it is until the call has returned. Errors:
 * NULL_ARGUMENT, THREAD. Threads: any. */
QUERN_API quern_result quern_jobs_wait_for(quern_jobs *jobs, quern_counter *counter, uint64_t limit_ns,
                                           bool *out_done);

/** Waits until any of count counters, 1 to QUERN_MAX_AFTER, has come to zero, no longer than limit_ns, which is
 * as in quern_jobs_wait_for. out_index, which may be NULL, says which: of several the first in the list, and
 * count when time is up. What the jobs of that one wrote is then visible. The caller helps with the jobs of
 * all of them. All must stay where they are until the call has returned. Errors, with count in out_index:
 * NULL_ARGUMENT, INVALID_ARGUMENT, THREAD. Threads: any. */
QUERN_API quern_result quern_jobs_wait_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                           uint64_t limit_ns, uint32_t *out_index);

/** Returns whether the counter is at zero; if so, what its jobs wrote is visible. Only looks: in a pool of
 * one thread nobody else runs jobs, and a loop that asks until the counter is done never ends. Threads:
 * any. */
QUERN_API bool quern_counter_is_done(const quern_counter *counter);

/** Adds one to the counter for something that is not a job, such as a file being read. quern_jobs_release
 * takes it off again. A hold also keeps the counter from finishing while jobs are added one after another.
 * Threads: any. */
QUERN_API void quern_counter_hold(quern_counter *counter);

/** Takes a hold off. Errors: NULL_ARGUMENT, THREAD; INVALID_ARGUMENT when the counter is at zero. Threads:
 * any. */
QUERN_API quern_result quern_jobs_release(quern_jobs *jobs, quern_counter *counter);

/** Runs the jobs that are there for the caller now (caller_only, or on_worker), and says how many in
 * out_count, which may be NULL.
 * Errors: NULL_ARGUMENT, POOL_BUSY, THREAD. Threads: from outside the pool, or inside a job on a guest. */
QUERN_API quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count);

/* --------------------------------------------------------------------------------------- parallel loop */

/** Works on the items begin to end - 1. user_data is the pointer that was given with the loop;
 * worker_index is that of the thread it runs on, 0 to quern_jobs_worker_count - 1. */
typedef void quern_range_function(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index);

/** Calls function so that every item from 0 to count - 1 is covered exactly once, on as many threads as
 * help, and returns when all calls have returned. What they wrote is then visible to the caller.
 *
 * grain is the most items one call gets; 0 chooses automatically. How the range is cut is not defined. The
 * pool remembers what an item costs, by function: a loop that would be over before others could help runs
 * on the caller, and one that would be over before a sleeping thread arrives wakes nobody. So items must
 * not wait for each other. A count of 0 does nothing. Errors: NULL_ARGUMENT, POOL_BUSY, THREAD. Threads:
 * from outside the pool or inside a job. */
QUERN_API quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                               quern_range_function *function, void *user_data);

/** Describes a loop. It needs a function; one definition may be used for many loops. */
typedef struct quern_loop_def {
    quern_range_function *function QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to function. */
    uint32_t count QUERN__ZERO;  /**< Items; with 0 there is nothing to do. */
    uint32_t grain QUERN__ZERO;  /**< The most items that one call gets; 0 chooses automatically. */
    /** When the loop has its turn, and when workers come to help with it. As of jobs, what runs is not
     * interrupted. 0 means QUERN_PRIORITY_NORMAL. */
    quern_priority priority QUERN__ZERO;
    quern_counter *counter QUERN__ZERO; /**< Counts the loop, as one; NULL: nothing does. */
    /** The loop begins when each of these has come to zero, as in quern_job_def. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< As in quern_job_def. */
    /** Once it is requested no further call is made: none begins later than what is under way then takes. A
     * call gets items for a few microseconds, if grain is 0. The counter comes to zero all the same. NULL:
     * all items run. */
    quern_cancel *cancel QUERN__ZERO;
    /** What it is called where jobs are shown; not copied: it must live as long as the loop. NULL: none. */
    const char *name QUERN__ZERO;
} quern_loop_def;

/** Runs a loop as quern_jobs_parallel_for does, and returns when all calls have returned. It has no counter,
 * comes after nothing, and its priority is normal. Errors: as quern_jobs_parallel_for; INVALID_ARGUMENT; CANCELLED when it
 * was asked to stop and items were left out. Threads: as quern_jobs_parallel_for. */
QUERN_API quern_result quern_jobs_run_loop(quern_jobs *jobs, const quern_loop_def *def);

/** Submits a loop and returns without waiting for it; what def->user_data points to must stay there until
 * it is over. quern_jobs_wait helps with its items. Who takes part goes on when there are no items left,
 * and the last one to do so counts the counter down: then all calls have returned, and what they wrote is
 * visible to whoever sees it. Whether items were left out for def->cancel is for the function to note.
 *
 * In what it takes, where it goes and when it runs, a loop is like one job (quern_jobs_submit), until it
 * begins; if there is no memory for sharing it then, who began it waits for those who help. Errors, with
 * nothing submitted: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD. Threads: any, also from inside
 * jobs. */
QUERN_API quern_result quern_jobs_submit_loop(quern_jobs *jobs, const quern_loop_def *def);

#ifdef __cplusplus
}
#endif

#endif
