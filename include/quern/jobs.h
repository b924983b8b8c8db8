/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_JOBS_H
#define QUERN_JOBS_H

/** @file
 * A pool of worker threads that steal work from each other. The pool is independent of worlds: use it for
 * anything that your program does in parallel.
 *
 * A pool of n threads starts n - 1 threads. A thread outside of the pool that calls
 * quern_jobs_parallel_for, quern_jobs_run, quern_jobs_wait or quern_graph_run takes part as a worker until
 * the call returns; it is then an *external thread* of the pool. external_thread_count in quern_jobs_def limits the
 * number of external threads at a time, by default to one. If the limit is reached, waits sleep, and the
 * other calls return POOL_BUSY.
 *
 * Calls made from inside a job are always allowed, nest to any depth, and help with the work instead of
 * blocking. Idle workers search for work for a bounded time, then sleep: an idle pool uses no processor
 * time.
 *
 * In a process that was forked outside of a job, the pool has no threads. There, calls of a pool with
 * threads return THREAD_UNAVAILABLE, and quern_jobs_destroy only frees the memory.
 *
 * docs/jobs.md explains which call to use when. */

#include <quern/base.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of workers of a pool: its own threads and external threads. A program may define another
 * number if the library is built with the same one. */
#ifndef QUERN_MAX_THREADS
#define QUERN_MAX_THREADS 256
#endif

/** Maximum number of external threads of a pool at the same time. */
#define QUERN_MAX_EXTERNAL_THREADS 32

/** A job pool. */
typedef struct quern_jobs quern_jobs;

/* Fields that the library accesses as atomics, in types that the program only stores. C++ sees the plain
 * type. */
#ifdef __cplusplus
#define QUERN__ATOMIC(type) type
#else
#define QUERN__ATOMIC(type) _Atomic(type)
#endif

/* ------------------------------------------------------------------------------------------------ pool */

/** Threads of the program, for a pool that starts none of its own. */
typedef struct quern_host_threads {
    /** Must arrange for function(data) to be called once, soon, on a thread other than the caller's, and
     * never inside submit. The called function works for the pool until it finds no more work, then
     * returns; it may sleep while a job of the pool waits for another job. At most thread_count - 1 such
     * calls are in progress at a time. Threads: submit is called from any thread, also from inside jobs.
     */
    void (*submit)(void *user_data, void (*function)(void *data), void *data) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to submit. */
} quern_host_threads;

/** One more than the highest processor number in a set. */
#define QUERN_MAX_PROCESSORS 1024

/** A set of processors, by the numbers that the operating system gives them. Zero it, then fill it with
 * quern_processors_add. */
typedef struct quern_processors {
    uint64_t words[QUERN_MAX_PROCESSORS / 64]; /**< Internal. */
} quern_processors;

/** Adds processor `index` to a set. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (index is QUERN_MAX_PROCESSORS
 * or more). Threads: any; one at a time for each set. */
QUERN_API quern_result quern_processors_add(quern_processors *processors, uint32_t index);

/** Definition of a pool. All zero is a good definition. */
typedef struct quern_jobs_def {
    /** Number of threads, 1 to QUERN_MAX_THREADS, including the first external thread. 0 means one per
     * processor that this process may use. With `processors`, 0 means one per processor of that set, and
     * one more for the external thread if it may use other processors. If the control group of the process has
     * a quota of processor time (Linux; containers), 0 means at most that many processors, rounded up. */
    uint32_t thread_count QUERN__ZERO;
    /** Maximum number of external threads at the same time, 1 to QUERN_MAX_EXTERNAL_THREADS; 0 means 1. A pool has
     * thread_count - 1 threads of its own plus these, at most QUERN_MAX_THREADS workers in all. */
    uint32_t external_thread_count QUERN__ZERO;
    /** Time that an idle worker searches for work before it sleeps, in nanoseconds; 0 means 200,000. If
     * the pool has more threads than processors, workers search once only. A searching worker that runs on
     * the same processor as a worker with a job yields the processor: it moves to another one or sleeps.
     * To do so, the pool may move its own threads unless they are pinned, but only among processors that
     * they were allowed to run on before. */
    uint32_t spin_ns QUERN__ZERO;
    /** Whether idle workers search once and then sleep. If set, spin_ns must be 0. */
    bool disable_spinning QUERN__ZERO;
    /** Whether worker i runs only on processor i, modulo their number, of those in `processors` or of those
     * that this process may use. External threads are not pinned. No effect if the system cannot pin
     * threads. */
    bool pin_threads QUERN__ZERO;
    /** Processors that the pool's threads run on; all zero means those of the creating thread. External
     * threads are not affected. Creating the pool fails if the process may not use one of them, or if
     * host_threads is set. No effect if the system does not support it. */
    quern_processors processors QUERN__ZERO;
    /** Stack size of each of the pool's threads, rounded up to whole pages; 0 means the system's default.
     * The pool itself needs less than 64 KiB; waiting in a job runs other jobs on the same stack. Creating
     * the pool fails if the size is below the system's minimum, or if host_threads is set. */
    size_t stack_bytes QUERN__ZERO;
    /** Called by each of the pool's threads before its first job; may be NULL. Each thread_start has its
     * thread_stop, on the same thread with the same index, even if creating the pool fails.
     * quern_jobs_create does not wait for thread_start. quern_jobs_destroy and quern_jobs_resize, which
     * replaces all threads, wait for thread_stop. With host_threads, thread_start is called each time that
     * a thread of the host becomes a worker, and thread_stop each time that this worker becomes idle. They
     * are not called for external threads. Neither function may call the pool. */
    void (*thread_start)(void *user_data, uint32_t worker_index) QUERN__ZERO;
    /** Called by each of the pool's threads after its last job; may be NULL. See thread_start. */
    void (*thread_stop)(void *user_data, uint32_t worker_index) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to thread_start and thread_stop. */
    /** Threads are named name/1, name/2 and so on, cut to 15 bytes. NULL means "quern". */
    const char *name QUERN__ZERO;
    /** The program's threads. If submit is NULL, the pool starts threads of its own. */
    quern_host_threads host_threads QUERN__ZERO;
    /** A trace that records the steals and sleeps of worker i on track i while it runs; may be NULL. It
     * must outlive the pool and belong to no other pool. There are quern_jobs_worker_count workers; workers
     * without a track are not recorded. See <quern/profile.h>. */
    struct quern_trace *trace QUERN__ZERO;
    /** Allocator of the pool. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
} quern_jobs_def;

/** Creates a pool and starts its threads. def may be NULL for the defaults. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD_UNAVAILABLE (the system refused to start a thread). Threads: any. */
QUERN_API quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs);

/** Runs all submitted jobs and the jobs that these submit, then ends the threads and frees the pool. The
 * calling thread helps.
 *
 * Jobs that still wait for counters are dropped, and graphs that do become idle with the result CANCELLED.
 * The counters that they wait for must remain valid until this call returns. Afterwards the program may
 * release, reuse and free these counters, also through other pools.
 *
 * NULL is allowed. The call is reported and refused if another thread is inside a call of the pool, and if
 * it is made from inside a job. Submitting and releasing on other threads are exceptions: this call waits
 * for them, because they may be what finishes a counter. */
QUERN_API void quern_jobs_destroy(quern_jobs *jobs);

/** Changes the number of threads; 0 means the same as in the definition. It first runs all jobs that were
 * submitted before, as quern_jobs_destroy does, even if the number does not change. Then it ends all
 * threads and starts new ones. Jobs that wait for counters continue to wait.
 *
 * Meanwhile, other threads may submit, hold, release, wake and query; what they submit runs before or after
 * the change. The change needs a moment at which the pool has no work, so threads that submit without pause
 * delay it. Waits of other threads sleep until it is over; their loops, graphs and quern_jobs_run return
 * POOL_BUSY. No other thread may run frames on the pool, and no job may call this.
 *
 * Errors, with nothing changed: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, POOL_BUSY (another thread
 * is registered, or is inside a wait, loop, graph or quern_jobs_run). THREAD_UNAVAILABLE means that the system refused
 * to start a thread: the pool then has as many as could be started (quern_jobs_thread_count). */
QUERN_API quern_result quern_jobs_resize(quern_jobs *jobs, uint32_t thread_count);

/** Returns the number of threads of the pool, including the first external thread; 0 for NULL. Threads:
 * any. */
QUERN_API uint32_t quern_jobs_thread_count(const quern_jobs *jobs);

/** Returns the number of workers of the pool: its own threads plus the maximum number of external threads.
 * Worker indices are below this number. With external_thread_count 1 it equals quern_jobs_thread_count. 0 for NULL.
 * Threads: any. */
QUERN_API uint32_t quern_jobs_worker_count(const quern_jobs *jobs);

/** Registers the calling thread as an external thread with a worker index of its own. From then on the
 * thread has this index whenever it takes part, and no other thread does. Jobs can be assigned to it
 * (on_worker in quern_job_def), for example because it owns a window, a GPU or a device. They run while the
 * thread waits in any call of this pool, or calls quern_jobs_run_caller_jobs. out_worker_index may be NULL.
 *
 * A registered thread occupies one of external_thread_count places; with external_thread_count 1, no other external thread can
 * take part. While threads are registered, the pool cannot be resized, and no other thread can destroy it.
 * A thread that ends is unregistered, and the jobs assigned to it run on any worker.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (called inside a job, or the thread is registered already);
 * POOL_BUSY (no place is free); THREAD_UNAVAILABLE. Threads: any outside of the pool. */
QUERN_API quern_result quern_jobs_register_thread(quern_jobs *jobs, uint32_t *out_worker_index);

/** Runs the jobs that are assigned to the calling thread, then unregisters it. quern_jobs_destroy does this
 * for the thread that calls it. Assigned jobs that still wait for counters will run on any worker. Errors:
 * NULL_ARGUMENT; INVALID_ARGUMENT (called inside a job, or the thread is not registered); THREAD_UNAVAILABLE. Threads:
 * the registered thread. */
QUERN_API quern_result quern_jobs_unregister_thread(quern_jobs *jobs);

/** Wakes all idle workers that sleep, once each, so that they are ready when work begins. A thread needs
 * tens of microseconds to wake up; waking it costs the caller about ten. Workers that find no work sleep
 * again. NULL is allowed. Threads: any. */
QUERN_API void quern_jobs_wake(quern_jobs *jobs);

/** Returns the number of processors that this process may run on, at least 1. A quota of processor time
 * (see quern_jobs_def.thread_count) does not change it. Threads: any. */
QUERN_API uint32_t quern_processor_count(void);

/** Where the library found the size of a cache. */
typedef enum quern_cache_source {
    QUERN_CACHE_ASSUMED,      /**< The system provides no size; a common one is assumed. */
    QUERN_CACHE_FROM_SYSCONF, /**< The function sysconf; the last level is used up to 32 MiB, since sysconf may
                                 add up several caches. */
    QUERN_CACHE_FROM_KERNEL /**< The kernel's description of processor 0 (Linux). */
} quern_cache_source;

/** Data cache sizes that frames are tuned for, in bytes. */
typedef struct quern_cache_sizes {
    size_t own_bytes;                 /**< Largest cache that belongs to a single core; 1 MiB if unknown. */
    size_t shared_bytes;              /**< Last-level cache, shared by several cores; 32 MiB if unknown. */
    quern_cache_source own_source;    /**< Origin of own_bytes. */
    quern_cache_source shared_source; /**< Origin of shared_bytes. */
} quern_cache_sizes;

/** Returns the cache sizes of this machine. The first call of a process reads files of the system; later
 * calls take nanoseconds. Schedules use these sizes to decide how much of the next chunk a worker
 * prefetches. Threads: any. */
QUERN_API quern_cache_sizes quern_processor_caches(void);

/** Writes the pool's queue lengths and one line per worker: its state, the name of its work and the index range of
 * its deque. Use it to find out why a program hangs.
 * Takes no lock and allocates nothing, unless the sink does. Errors: NULL_ARGUMENT, IO. Threads: any. */
QUERN_API quern_result quern_jobs_describe(const quern_jobs *jobs, quern_sink sink);

/* --------------------------------------------------------------------------------------- fork and join */

/** A job function. user_data is the pointer given with the job, or the address of a copy of its payload.
 *
 * worker_index is the index of the worker that runs the job, 0 to quern_jobs_worker_count - 1. No two
 * threads have the same index at the same time, and the index does not change during a job. The pool's own
 * threads have the indices 1 to thread_count - 1; the first external thread has 0, further ones
 * thread_count and above. */
typedef void quern_job_function(void *user_data, uint32_t worker_index);

/** Runs function as a job on the calling thread, and returns when it has returned. Code outside of the pool
 * calls this to use quern_jobs_fork. Errors: NULL_ARGUMENT, POOL_BUSY, THREAD_UNAVAILABLE. Threads: any outside of the
 * pool, or inside a job. */
QUERN_API quern_result quern_jobs_run(quern_jobs *jobs, quern_job_function *function, void *user_data);

/** A function call that another thread may take over. It usually resides on the stack. It must not move or
 * be freed before it has been joined. */
typedef struct quern_fork {
    quern_job_function *function;  /**< Internal. */
    void *user_data;               /**< Internal. */
    void *owner;                   /**< Internal. */
    QUERN__ATOMIC(uint32_t) state; /**< Internal. */
    uint32_t float_mode;           /**< Internal. */
} quern_fork;

/** Offers the call function(user_data) to other threads. The job that made a fork must join it before the
 * job returns; joining in reverse order is fastest. Nothing is allocated: if there is no room for more
 * offers, the function is called immediately. Errors: NULL_ARGUMENT; INVALID_ARGUMENT (not inside a job of
 * this pool). */
QUERN_API quern_result quern_jobs_fork(quern_jobs *jobs, quern_fork *fork, quern_job_function *function,
                                       void *user_data);

/** Makes the forked call if no other thread has begun it; otherwise waits until it has returned. What the
 * call wrote is then visible. While waiting, the thread helps only with work that belongs to the call.
 * Errors: as quern_jobs_fork; INVALID_ARGUMENT also if the fork was joined already, or was made by another
 * worker. */
QUERN_API quern_result quern_jobs_join(quern_jobs *jobs, quern_fork *fork);

/* ------------------------------------------------------------------------------------------ cancellation */

/** A cancellation request that any number of jobs, loops and graphs can share.
 *
 * Initialise it with zero: quern_cancel cancel = {0}. It must not move before everything that refers to it
 * has finished. After the request, jobs that have not begun do not begin, and loops make no further calls;
 * their counters are decremented all the same. Running jobs are not interrupted: long ones call
 * quern_cancel_is_requested. */
typedef struct quern_cancel {
    QUERN__ATOMIC(uint32_t) is_requested QUERN__ZERO; /**< Internal. */
} quern_cancel;

/** Requests cancellation of all jobs, loops and graphs that refer to `cancel`. What the caller wrote before
 * is visible to every thread that sees the request. Does not wait for them; wait for their counters
 * instead. NULL is allowed. Threads: any. */
QUERN_API void quern_cancel_request(quern_cancel *cancel);

/** Returns whether cancellation was requested; false for NULL. Threads: any. */
QUERN_API bool quern_cancel_is_requested(const quern_cancel *cancel);

/** Withdraws the request, so that the object can be used again. Call it only when everything that refers to
 * it has finished; a job that has not seen the request yet would not stop. NULL is allowed. Threads: any.
 */
QUERN_API void quern_cancel_reset(quern_cancel *cancel);

/* -------------------------------------------------------------------------------------- submitted jobs */

/** Counts unfinished jobs that were submitted with it, and holds. It is finished while it is zero.
 *
 * Initialise it with zero: quern_counter counter = {0}. It must not move until it has finished and no
 * thread waits for it. It finishes each time it reaches zero, and may be reused. Adding to a counter that
 * may be finishing at the same time is an error, so only jobs that it counts, and owners of a hold, may add
 * to it then. */
typedef struct quern_counter {
    QUERN__ATOMIC(uint32_t) pending QUERN__ZERO; /**< Internal. */
    void *links QUERN__ZERO;                     /**< Internal. */
} quern_counter;

/** When a submitted job is run. */
typedef enum quern_priority {
    QUERN_PRIORITY_NORMAL, /**< The fast path, without a lock. A worker runs its own newest job first. */
    /** The next free worker runs the job before anything else, in order of submission. A waiting worker is
     * not free: it first helps with jobs that it submitted itself. */
    QUERN_PRIORITY_HIGH,
    /** The job runs, in order of submission, if there is no other work, and not inside waits for other
     * things. If all workers wait, however, one of them runs the newest job of any priority. */
    QUERN_PRIORITY_LOW
} quern_priority;

/** Maximum payload of a job in bytes. */
#ifndef QUERN_JOB_PAYLOAD_BYTES
#define QUERN_JOB_PAYLOAD_BYTES \
    40 /* another value needs another QUERN__JOB_DATA_WORDS in sched/jobs/deque.h */
#endif

/** Maximum number of counters in an `after` list, and in a call of quern_jobs_wait_any. */
#define QUERN_MAX_AFTER 64

/** Value of on_worker in definitions of jobs and nodes: an external thread, such as the one that waits. */
#define QUERN_ON_CALLER UINT32_MAX

/** Definition of a job. Only the function is required. One definition may be used for many jobs. */
typedef struct quern_job_def {
    /** The job function. With a payload, its user_data is the address of a writable copy, aligned to 8. */
    quern_job_function *function QUERN__ZERO;
    /** The payload; the submitting call copies it. NULL if there is none. */
    const void *payload QUERN__ZERO;
    /** Size of the payload, 1 to QUERN_JOB_PAYLOAD_BYTES, less the size of a pointer for each of cancel and
     * name that is set. 0 if and only if payload is NULL. */
    uint32_t payload_bytes QUERN__ZERO;
    quern_priority priority QUERN__ZERO; /**< When the job is run; 0 means QUERN_PRIORITY_NORMAL. */
    /** Counts the job from the submitting call until it has finished; may be NULL. */
    quern_counter *counter QUERN__ZERO;
    /** Counters that the job waits for. It begins when each of them has been zero, at the submitting call
     * or later, even if one has been used again since. The list is only read by the call. It must not
     * contain `counter`. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< Length of `after`, 0 to QUERN_MAX_AFTER. */
    /** A cancellation request; may be NULL. If it is made before the job begins, the job does not run, but
     * its counter is decremented. */
    quern_cancel *cancel QUERN__ZERO;
    /** Name of the job in traces and descriptions; may be NULL. Not copied: it must remain valid as long as
     * the job. */
    const char *name QUERN__ZERO;
    /** 0: the job runs on any worker. QUERN_ON_CALLER: it runs on an external thread, on any that waits in
     * a call of this pool, or calls quern_jobs_run_caller_jobs. Otherwise it runs on worker on_worker - 1
     * only: a thread of the pool, between two jobs and inside its waits, or a registered thread. If that
     * worker no longer exists when the job is due, because the pool was resized or the thread was
     * unregistered, the job runs on any worker. Jobs of one worker, and those of QUERN_ON_CALLER, run in
     * order of submission; priority is ignored. */
    uint32_t on_worker QUERN__ZERO;
} quern_job_def;

/** Submits a job and returns, usually immediately. If a worker submits while its deque is full (512 jobs),
 * the worker runs the job inside this call.
 *
 * A job of normal priority needs neither a lock nor memory if it is submitted inside a job, or by an
 * outside thread while the pool admits one more external thread. All other jobs acquire a lock, and allocate
 * memory if more of them wait than ever before: jobs of high or low priority, jobs after counters, jobs for
 * external threads, jobs from other threads, and jobs that find the deque full 64 calls deep.
 *
 * Errors, with nothing submitted: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD_UNAVAILABLE. Threads: any,
 * also from inside jobs. */
QUERN_API quern_result quern_jobs_submit(quern_jobs *jobs, const quern_job_def *def);

/** Submits a job that begins when `after` is next zero, or now if it is zero already. Equivalent to
 * def->after with one counter; def->after must be empty. def->counter counts the job from now on, and must
 * be another counter. Errors and threads: as quern_jobs_submit. */
QUERN_API quern_result quern_jobs_submit_after(quern_jobs *jobs, const quern_job_def *def,
                                               quern_counter *after);

/** Waits until the counter is zero. What its jobs wrote is then visible.
 *
 * While waiting, the calling thread runs the jobs of the counter and those that these wait for in turn, and
 * otherwise the jobs of normal priority that it submitted itself, newest first, until the counter is zero. It
 * runs no others, so stacks stay bounded, and waiting for something short does not run unrelated long jobs.
 * (Exception: if all workers wait and other jobs are left, one worker runs these, up to 256 deep.) Give low
 * priority to long jobs that you do not wait for.
 *
 * The waiting job continues after the jobs that its wait runs. So do not wait in a job for one that began
 * before it and waits itself: both may be on one stack, and then the wait never ends. Jobs that wait for what
 * they have submitted, or for jobs that begin later or do not wait, always continue.
 *
 * A thread outside of the pool becomes an external thread meanwhile; if external_thread_count is
 * reached, it sleeps without helping. Errors: NULL_ARGUMENT, THREAD_UNAVAILABLE. Threads: any. */
QUERN_API quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter);

/** Waits like quern_jobs_wait, but at most limit_ns nanoseconds. out_done, which may be NULL, is set to
 * whether the counter reached zero; if so, what its jobs wrote is visible.
 *
 * The calling thread helps meanwhile. A job that it has begun is not interrupted when the time is up: the
 * call returns after that job. So a job that runs until the caller stops it must not be among the jobs that
 * the caller may help with (see quern_jobs_wait). A limit of 0 only checks; UINT64_MAX means no limit. The
 * counter must not move until the call has returned. Errors: NULL_ARGUMENT, THREAD_UNAVAILABLE. Threads: any. */
QUERN_API quern_result quern_jobs_wait_for(quern_jobs *jobs, quern_counter *counter, uint64_t limit_ns,
                                           bool *out_done);

/** Waits until any of `count` counters, 1 to QUERN_MAX_AFTER, is zero, but at most limit_ns nanoseconds
 * (see quern_jobs_wait_for). out_index, which may be NULL, is set to the index of the first counter that is
 * zero, or to count when the time is up. What the jobs of that counter wrote is then visible. The calling
 * thread helps with the jobs of all counters, none of which may move until the call has returned. Errors,
 * with count in out_index: NULL_ARGUMENT, INVALID_ARGUMENT, THREAD_UNAVAILABLE. Threads: any. */
QUERN_API quern_result quern_jobs_wait_any(quern_jobs *jobs, quern_counter *const *counters, uint32_t count,
                                           uint64_t limit_ns, uint32_t *out_index);

/** Returns whether the counter is zero; if so, what its jobs wrote is visible. Only checks, and does not
 * help: in a pool of one thread, a loop that calls this until it returns true never ends. Threads: any. */
QUERN_API bool quern_counter_is_done(const quern_counter *counter);

/** Adds one to the counter for something that is not a job, such as a file being read. quern_counter_release
 * subtracts it again. A hold also keeps the counter from finishing while jobs are added one after another.
 * Threads: any. */
QUERN_API void quern_counter_hold(quern_counter *counter);

/** Subtracts a hold from the counter. Errors: NULL_ARGUMENT, THREAD_UNAVAILABLE; INVALID_ARGUMENT (the counter is
 * zero). Threads: any. */
QUERN_API quern_result quern_counter_release(quern_jobs *jobs, quern_counter *counter);

/** Runs the queued jobs that only the calling thread may run (on_worker in quern_job_def). out_count, which
 * may be NULL, is set to their number. Errors: NULL_ARGUMENT, POOL_BUSY, THREAD_UNAVAILABLE. Threads: any outside of
 * the pool, or inside a job on an external thread. */
QUERN_API quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count);

/* --------------------------------------------------------------------------------------- parallel loop */

/** A loop function: processes the items begin to end - 1. user_data is the pointer given with the loop.
 * worker_index is the index of the worker, 0 to quern_jobs_worker_count - 1. */
typedef void quern_range_function(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index);

/** Runs a parallel loop: calls function for ranges that cover every item from 0 to count - 1 exactly once,
 * on as many threads as help, and returns when all calls have returned. What they wrote is then visible.
 *
 * grain is the maximum number of items per call; 0 chooses it automatically. How the items are divided is
 * not defined. The pool remembers the cost of an item per function: a loop that would finish before others
 * could help runs on the caller, and one that would finish before a sleeping thread wakes up wakes none.
 * Items must therefore not wait for each other. A count of 0 does nothing. Errors: NULL_ARGUMENT,
 * POOL_BUSY, THREAD_UNAVAILABLE. Threads: any outside of the pool, or inside a job. */
QUERN_API quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                               quern_range_function *function, void *user_data);

/** Definition of a parallel loop. Only the function is required. One definition may be used for many loops.
 */
typedef struct quern_loop_def {
    quern_range_function *function QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to function. */
    uint32_t count QUERN__ZERO;  /**< Number of items; 0 means an empty loop. */
    uint32_t grain QUERN__ZERO;  /**< Maximum number of items per call; 0 chooses it automatically. */
    /** When the loop begins, and when workers join it; running calls are not interrupted. 0 means
     * QUERN_PRIORITY_NORMAL. */
    quern_priority priority QUERN__ZERO;
    quern_counter *counter QUERN__ZERO; /**< Counts the whole loop as one; may be NULL. */
    /** Counters that the loop waits for, as in quern_job_def. */
    quern_counter *const *after QUERN__ZERO;
    uint32_t after_count QUERN__ZERO; /**< Length of `after`, as in quern_job_def. */
    /** A cancellation request; may be NULL. After the request, no further calls are made; calls in progress
     * finish. With grain 0, a call processes items for a few microseconds. The counter is decremented all
     * the same. */
    quern_cancel *cancel QUERN__ZERO;
    /** Name of the loop in traces and descriptions; may be NULL. Not copied: it must remain valid as long
     * as the loop. */
    const char *name QUERN__ZERO;
} quern_loop_def;

/** Runs a loop like quern_jobs_parallel_for, and returns when all calls have returned. The definition must
 * have no counter, no `after` and no priority. Errors: as quern_jobs_parallel_for; INVALID_ARGUMENT;
 * CANCELLED (items were left out because of a cancellation request). Threads: as quern_jobs_parallel_for.
 */
QUERN_API quern_result quern_jobs_run_loop(quern_jobs *jobs, const quern_loop_def *def);

/** Submits a loop and returns without waiting for it. What def->user_data points to must remain valid until
 * the loop has finished. quern_jobs_wait on its counter helps with its items. The counter is decremented
 * when all calls have returned; what they wrote is then visible to threads that see it. After a
 * cancellation request, only the function itself can know which items were left out.
 *
 * Until it begins, a loop costs, queues and runs like one job (quern_jobs_submit). If there is no memory
 * for sharing the loop when it begins, the worker that begins it waits for its helpers. Errors, with
 * nothing submitted: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD_UNAVAILABLE. Threads: any, also from inside
 * jobs. */
QUERN_API quern_result quern_jobs_submit_loop(quern_jobs *jobs, const quern_loop_def *def);

#ifdef __cplusplus
}
#endif

#endif
