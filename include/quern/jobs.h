/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_JOBS_H
#define QUERN_JOBS_H

/* A pool of worker threads that steal work from each other. It knows nothing of worlds: use it for
 * whatever your program has to do in parallel.
 *
 * A pool of n threads starts n - 1; a thread that calls quern_jobs_parallel_for, quern_jobs_run,
 * quern_jobs_wait or quern_graph_run from outside takes part as worker 0 until the call returns. One
 * outside thread at a time may do so (POOL_BUSY otherwise); calls made from inside a job are always
 * allowed, nest to any depth, and help instead of blocking. Idle workers spin for a bounded time, then
 * sleep; a pool left alone uses no processor time. A process forked outside of jobs has none of the
 * threads: calls of pools with threads are THREAD there, but quern_jobs_destroy, which gives back the
 * memory. docs/jobs.md explains what to use when. */

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Per pool, the caller included. A program may be built with another number, if the library is, too. */
#ifndef QUERN_MAX_THREADS
#define QUERN_MAX_THREADS 256
#endif
#define QUERN_MAX_GRAPH_NODES (1 << 20) /* per graph */

typedef struct quern_jobs quern_jobs;

/* For types below that are only to be kept: the library reads and writes them as atomics. */
#ifdef __cplusplus
#define QUERN__ATOMIC(type) type
#else
#define QUERN__ATOMIC(type) _Atomic(type)
#endif

/* ------------------------------------------------------------------------------------------- pool */

/* A job system that the program has already, for a pool that starts no threads of its own. submit must see
 * to it that function(argument) is called once, soon, on any thread but that of the caller: in the middle
 * of submit would be wrong. Such a call works for the pool until it finds nothing more to do, and then
 * returns; it may sleep where a job of the pool waits for another. At most thread_count - 1 are under way
 * at a time. Called from any thread, also from inside jobs. */
typedef struct quern_scheduler {
    void (*submit)(void *user, void (*function)(void *argument), void *argument);
    void *user;
} quern_scheduler;

/* Start from quern_jobs_def_default(); one that was not is refused. */
typedef struct quern_jobs_def {
    uint32_t thread_count; /* 1 to QUERN_MAX_THREADS; 0, the default: the processors this process may use */
    uint32_t spin_ns;      /* how long an idle worker looks for work before it sleeps; default 200,000; 0 is
                              used instead when there are more threads than processors */
    bool pin_threads; /* worker i stays on the i-th processor this process may use, around and around; the
                              caller is left where it is. Where the system cannot, nothing. Default false */
    /* Threads are called name/1, name/2 …, cut to the 15 bytes that Linux keeps. Default "quern". */
    const char *name;
    quern_scheduler scheduler; /* submit NULL, the default: the pool has threads of its own */
    /* Shows steals and sleeps while it runs, on track i for worker i; of no other pool, and destroyed after
     * this one. Workers without a track are left out. Default NULL. See <quern/profile.h>. */
    struct quern_trace *trace;
    quern_allocator allocator; /* default quern_allocator_default() */
    uint32_t cookie;           /* internal: set by _default() */
} quern_jobs_def;

QUERN_API quern_jobs_def quern_jobs_def_default(void);

/* def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY, THREAD. */
QUERN_API quern_result quern_jobs_create(const quern_jobs_def *def, quern_jobs **out_jobs);

/* Runs all jobs that were submitted, and what they submit, then stops and joins the threads. Jobs that wait
 * for a counter that never finishes are dropped. No other thread may be inside a call of the pool, nor a
 * job call this: that is reported and refused. Submitting and releasing are an exception: such a call may
 * be what lets this thread go on, and is waited for. NULL is allowed. */
QUERN_API void quern_jobs_destroy(quern_jobs *jobs);

/* Changes the number of threads, 0 meaning as in the definition. No other thread may be using the pool, nor
 * may a job call this. Jobs that were submitted are kept. Errors, with nothing changed: NULL_ARGUMENT,
 * INVALID_ARGUMENT, OUT_OF_MEMORY, POOL_BUSY. THREAD: the system refused a thread, and the pool has as many
 * as could be started (quern_jobs_thread_count). */
QUERN_API quern_result quern_jobs_resize(quern_jobs *jobs, uint32_t thread_count);

/* Threads of the pool, the caller included. Any thread. */
QUERN_API uint32_t quern_jobs_thread_count(const quern_jobs *jobs);

/* Wakes all threads that sleep for want of a job, each once, so that they are there when work begins: a
 * thread takes tens of microseconds to come, and about ten of the caller's to be called. They sleep again
 * when no work comes. Any thread. NULL is allowed. */
QUERN_API void quern_jobs_wake(quern_jobs *jobs);

/* Processors this process may run on. At least 1. Any thread. */
QUERN_API uint32_t quern_processor_count(void);

/* What every worker is doing, in words, one line each, for a program that hangs: state, jobs in its deque.
 * Writes at most capacity_bytes with the final 0 and returns the bytes of the whole text without it, as
 * snprintf does. Any thread; never waits for a lock. */
QUERN_API size_t quern_jobs_describe(const quern_jobs *jobs, char *text, size_t capacity_bytes);

/* ----------------------------------------------------------------------------------- fork and join */

/* argument: what the job was given. worker_index: 0 to thread_count - 1, of the thread it runs on. No two
 * threads have the same index at a time, and a job keeps its own from beginning to end. */
typedef void quern_job_function(void *argument, uint32_t worker_index);

/* Runs function as a job on the calling thread and returns when it has returned: the way into the pool,
 * from outside, for code that forks. Errors: NULL_ARGUMENT, POOL_BUSY. From outside the pool or inside a
 * job. */
QUERN_API quern_result quern_jobs_run(quern_jobs *jobs, quern_job_function *function, void *argument);

/* A call that another thread may take over; usually on the stack. Must stay where it is until it was
 * joined. */
typedef struct quern_fork {
    quern_job_function *function; /* all fields are internal */
    void *argument;
    void *owner;
    QUERN__ATOMIC(uint32_t) state;
} quern_fork;

/* Offers function(argument) to other threads. Every fork must be joined, by the job that forked it and
 * before that returns; the latest first is quickest. Nothing is allocated; when there is no room for more
 * offers the call is made at once. Errors: NULL_ARGUMENT; INVALID_ARGUMENT when not called from inside a
 * job of this pool. */
QUERN_API quern_result quern_jobs_fork(quern_jobs *jobs, quern_fork *fork, quern_job_function *function,
                                       void *argument);

/* Makes the call if nobody else has begun it; otherwise waits until it has returned (what it wrote is then
 * visible), and meanwhile helps with what it consists of, and with nothing else. Errors: as
 * quern_jobs_fork; INVALID_ARGUMENT also for one that has been joined, or another worker's. */
QUERN_API quern_result quern_jobs_join(quern_jobs *jobs, quern_fork *fork);

/* ------------------------------------------------------------------------------------- single jobs */

/* Counts what has to finish: jobs submitted with it, and holds. All zero when new: quern_counter counter =
 * {0}. Must stay where it is until it has finished and nobody waits for it. It finishes whenever it comes
 * to zero, and may be used again and again; but to add to it while it may just be finishing is a mistake.
 * Jobs that it counts may add to it, and whoever holds it. */
typedef struct quern_counter {
    QUERN__ATOMIC(uint32_t) pending; /* all fields are internal */
    QUERN__ATOMIC(void *) nodes;
} quern_counter;

typedef enum quern_priority {
    QUERN_PRIORITY_NORMAL, /* the quick way: no lock; a worker runs its own newest first */
    /* The next worker that is free takes it, before anything else; in order. Who waits is not free: it
     * helps first with what it has submitted itself. */
    QUERN_PRIORITY_HIGH,
    /* Run when there is nothing else, in order, and not by waits for other things; but where all workers
     * wait, one of them takes the newest job of any priority. */
    QUERN_PRIORITY_LOW
} quern_priority;

#ifndef QUERN_JOB_PAYLOAD_BYTES
#define QUERN_JOB_PAYLOAD_BYTES \
    40 /* another number needs another QUERN__JOB_DATA_WORDS: sched/jobs/deque.h */
#endif

/* Start from quern_job_def_default(); one that was not is refused. May be used for many jobs. */
typedef struct quern_job_def {
    quern_job_function *function; /* gets the address of a copy of the payload, aligned to 8, writable */
    const void *payload;          /* copied when the job is submitted; may be NULL when there is none */
    uint32_t payload_bytes;       /* 0, the default, to QUERN_JOB_PAYLOAD_BYTES */
    quern_priority priority;      /* default QUERN_PRIORITY_NORMAL */
    /* It runs on an outside thread: while that waits in any call of this pool, or in
     * quern_jobs_run_caller_jobs. In order; priority has no meaning then. Default false. */
    bool caller_only;
    quern_counter *counter; /* counts this job; NULL, the default: nothing does */
    uint32_t cookie;        /* internal: set by _default() */
} quern_job_def;

QUERN_API quern_job_def quern_job_def_default(void);

/* Hands a job in and returns, mostly at once: when a worker's deque is full (512 jobs) it runs the job
 * itself. A job of normal priority from inside a job, or from the outside thread when no other is in the
 * pool, needs no lock and no memory. Others take a lock, and memory when more wait than ever before: high,
 * low, for the caller, from other threads, and what finds a full deque inside 64 jobs that did so, each run
 * by the call that submitted it. Any thread, also from inside jobs.
 * Errors, with nothing submitted: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_jobs_submit(quern_jobs *jobs, const quern_job_def *def);

/* A continuation: the job is submitted when `after` next comes to zero; now, if it is zero. def->counter
 * counts it from now on, and must be another counter. Errors and threads as quern_jobs_submit; takes a
 * lock. */
QUERN_API quern_result quern_jobs_submit_after(quern_jobs *jobs, const quern_job_def *def,
                                               quern_counter *after);

/* Returns when the counter is at zero; what its jobs wrote is then visible. The caller helps, with what the
 * counter waits for and nothing else: jobs of this counter, and what they wait for in their turn; so the
 * stack stays bounded, and a wait for something short never runs something long. (When all workers wait and
 * there are other jobs, one of them runs those, up to 256 deep, rather than nobody.) From outside the pool
 * the caller is worker 0 meanwhile; if another thread is, it sleeps without helping. Errors:
 * NULL_ARGUMENT. */
QUERN_API quern_result quern_jobs_wait(quern_jobs *jobs, quern_counter *counter);

/* Whether the counter is at zero; then what its jobs wrote is visible. Only looks: in a pool of one thread
 * nobody else runs jobs, and a loop that asks until it is done never ends. Any thread. */
QUERN_API bool quern_counter_is_done(const quern_counter *counter);

/* Adds one to the counter for something that is not a job (a file being read, say), to be taken off with
 * quern_jobs_release. Also keeps it from finishing while jobs are added one after another. Any thread. */
QUERN_API void quern_counter_hold(quern_counter *counter);

/* Takes a hold off. Any thread. Errors: NULL_ARGUMENT; INVALID_ARGUMENT when the counter is at zero. */
QUERN_API quern_result quern_jobs_release(quern_jobs *jobs, quern_counter *counter);

/* Runs the jobs for the caller that are there now, from outside the pool or from inside one of its jobs on
 * worker 0, and says how many in out_count, which may be NULL. Errors: NULL_ARGUMENT, POOL_BUSY. */
QUERN_API quern_result quern_jobs_run_caller_jobs(quern_jobs *jobs, uint32_t *out_count);

/* ---------------------------------------------------------------------------------- parallel loop */

/* Works on the items begin to end - 1. worker_index: 0 to thread_count - 1, of the thread it runs on. */
typedef void quern_range_function(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* Calls function so that every item from 0 to count - 1 is covered exactly once, on as many threads as
 * help, and returns when all calls have returned (what they wrote is then visible to the caller).
 * grain: the most items one call gets; 0 chooses automatically. How the range is cut is not defined.
 *
 * The pool remembers what an item costs, by function. A loop that will be over before others could
 * help runs on the caller; one that will be over before a sleeper comes wakes nobody. So items must
 * not wait for each other. count 0 does nothing. Errors: NULL_ARGUMENT, POOL_BUSY. From outside the
 * pool or inside a job. */
QUERN_API quern_result quern_jobs_parallel_for(quern_jobs *jobs, uint32_t count, uint32_t grain,
                                               quern_range_function *function, void *argument);

/* ------------------------------------------------------------------------------------------ graph */

/* A graph of parallel loops: a node starts when all its predecessors have finished. Build it once, run
 * it often. */
typedef struct quern_graph quern_graph;

/* Start from quern_graph_node_def_default(); one that was not is refused. */
typedef struct quern_graph_node_def {
    quern_range_function *function; /* may be NULL: the node only joins edges */
    void *argument;
    uint32_t count;   /* items; 0: the node does nothing; default 1 */
    uint32_t grain;   /* as in quern_jobs_parallel_for; default 0 */
    bool caller_only; /* all items run, in order, in one call, on the thread that runs the graph */
    uint32_t cookie;  /* internal: set by _default() */
} quern_graph_node_def;

QUERN_API quern_graph_node_def quern_graph_node_def_default(void);

/* allocator may be NULL for the default. Errors: NULL_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_create(const quern_allocator *allocator, quern_graph **out_graph);

/* NULL is allowed. The graph must not be running. */
QUERN_API void quern_graph_destroy(quern_graph *graph);

/* Takes all nodes and edges out and keeps the memory. */
QUERN_API void quern_graph_clear(quern_graph *graph);

/* Nodes are numbered 0, 1, 2 … in the order they are added. out_node may be NULL.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (also while the graph runs), LIMIT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_node(quern_graph *graph, const quern_graph_node_def *def,
                                            uint32_t *out_node);

/* after starts when before has finished. Edges lead from lower to higher numbers, so there is no cycle;
 * others, and any while the graph runs, are INVALID_ARGUMENT. The same edge twice is harmless. Errors
 * also: NULL_ARGUMENT, OUT_OF_MEMORY. */
QUERN_API quern_result quern_graph_add_edge(quern_graph *graph, uint32_t before, uint32_t after);

/* Changes how many items a node has. The graph must not be running. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT. */
QUERN_API quern_result quern_graph_set_count(quern_graph *graph, uint32_t node, uint32_t count);

/* Runs every node once and returns when all have finished. jobs NULL, or with one thread: nodes run one
 * after another in the order of their numbers, on the caller. Memory is taken in the first run on several
 * threads and when nodes or threads have been added; other runs allocate nothing.
 *
 * Runs are timed. One that is too short to gain from other threads runs on the caller, or wakes nobody; so
 * nodes must not wait for each other except through edges.
 * Errors, with nothing run: NULL_ARGUMENT, OUT_OF_MEMORY, POOL_BUSY (another thread uses the pool, the
 * graph is running, or the call comes from inside a job of this pool). */
QUERN_API quern_result quern_graph_run(quern_graph *graph, quern_jobs *jobs);

#ifdef __cplusplus
}
#endif

#endif
