/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_MODELS_POOL_H
#define TESTS_MODELS_POOL_H

/* A whole pool: the shipped sources, and stand-ins for their calls of the operating system and the rest of
 * the library. A model includes this header once. */

#include "tests/models/model.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A compiler fence does nothing in a model checker, but it is a point at which the fence requested by
 * another thread may happen. See quern__fence_all_threads. */
static void pass_fence_point(void);
#undef atomic_signal_fence
#define atomic_signal_fence(order) pass_fence_point()

#if __has_include(<genmc.h>)
/* GenMC has no condition variables. A pool has one. */
typedef struct model_condition {
    int unused;
} pthread_cond_t;
/* Missing in GenMC's C library, and never called here. */
int snprintf(char *text, size_t text_bytes, const char *format, ...);
#define pthread_cond_destroy(condition)   ((void)0)
#define pthread_cond_signal(condition)    broadcast()
#define pthread_cond_broadcast(condition) broadcast()
static void broadcast(void);
#endif

/* GenMC has neither. */
typedef int model_once, model_key;
#define pthread_once_t model_once
#define pthread_key_t  model_key

/* Static functions with one name in several sources are renamed by macros. */
#include "sched/jobs/deque.c"  /* NOLINT(bugprone-suspicious-include) */
#include "sched/jobs/queue.c"  /* NOLINT(bugprone-suspicious-include) */
#include "sched/jobs/search.c" /* NOLINT(bugprone-suspicious-include) */
/* In this file, the call waits for a counter's lock. */
#define quern__thread_spin_wait(look) ((void)(look), wait_for_unlock(counter))
static void wait_for_unlock(const quern_counter *counter);
#include "sched/jobs/job_counter.c" /* NOLINT(bugprone-suspicious-include) */
#undef quern__thread_spin_wait
#define pop_own pop_own_part
#include "sched/jobs/wait.c" /* NOLINT(bugprone-suspicious-include) */
#undef pop_own
#include "sched/jobs/submit.c" /* NOLINT(bugprone-suspicious-include) */
#define call call_items
#include "sched/jobs/loop.c" /* NOLINT(bugprone-suspicious-include) */
#undef call
#include "sched/jobs/enter.c"   /* NOLINT(bugprone-suspicious-include) */
#include "sched/jobs/sharing.c" /* NOLINT(bugprone-suspicious-include) */
/* In this file, the call waits for the end of visits. */
#define quern__thread_spin_wait(look) ((void)(look), wait_for_visitors(jobs))
static void wait_for_visitors(const quern_jobs *jobs);
#include "sched/jobs/jobs.c" /* NOLINT(bugprone-suspicious-include) */
#undef quern__thread_spin_wait

/* --------------------------------------------------------------------------------------- the pool */

enum { MAX_WORKERS = 3 };

static quern_jobs pool;
static quern__worker workers[MAX_WORKERS];

/* Sets up a pool as quern_jobs_create leaves it, without threads; the scenario runs the workers. */
static void set_up_external(uint32_t thread_count, uint32_t external_count)
{
    has_key = true;
    pool.workers = workers;
    pool.thread_count = thread_count;
    pool.external_count = external_count;
    pool.worker_count = thread_count - 1 + external_count;
    pool.public_thread_count = thread_count;
    pool.fork_count = QUERN__NO_THREADS;
    quern__mutex_init(&pool.outside_mutex);
    quern__mutex_init(&pool.queues.mutex);
    for (uint32_t index = 0; index < pool.worker_count; index++) {
        workers[index].jobs = &pool;
        workers[index].index = index;
        workers[index].random = index;
        workers[index].assigned.is_open = index != 0;
    }
}

static void set_up(uint32_t thread_count)
{
    set_up_external(thread_count, 1);
}

/* Begins a wait like the public calls. */
static void begin_wait(job_counter_wait *waiting, quern_counter *const *counters, quern__link *links,
                       uint32_t count)
{
    waiting->counters = counters;
    waiting->links = links;
    waiting->count = count;
    waiting->link_count = 0;
    waiting->until_ns = 0;
    waiting->is_over = is_over;
}

/* Wait like quern_jobs_wait: as a worker, and as a thread without an external slot. */
static void wait_as_worker(quern__worker *worker, quern_counter *counter)
{
    job_counter_wait waiting;
    begin_wait(&waiting, &counter, waiting.node.links, 1);
    wait_inside(worker, &waiting);
}

static void wait_without_slot(quern_counter *counter)
{
    job_counter_wait waiting;
    begin_wait(&waiting, &counter, waiting.node.links, 1);
    wait_outside(&pool, &waiting);
}

/* ------------------------------------------------------------------------------------------- sleep */

/* Like platform_portable.c, without the system call. */
void quern__parker_give(quern__parker *parker)
{
    atomic_exchange_explicit(&parker->state, 1, memory_order_release);
}

bool quern__parker_has_permit(const quern__parker *parker)
{
    return atomic_load_explicit(&parker->state, memory_order_acquire) == 1;
}

/* Time advances when a scenario says so; each reader may read before or after that. */
static _Atomic uint64_t model_time;

uint64_t quern__clock_ns(void)
{
    return atomic_load_explicit(&model_time, memory_order_relaxed);
}

static bool is_time_up(uint64_t until_ns)
{
    return until_ns != 0 && quern__clock_ns() >= until_ns;
}

void quern__parker_take_until(quern__parker *parker, uint64_t until_ns)
{
    AWAIT(atomic_load_explicit(&parker->state, memory_order_acquire) == 1 || is_time_up(until_ns));
    atomic_exchange_explicit(&parker->state, 0, memory_order_acquire);
}

void quern__parker_take(quern__parker *parker)
{
    quern__parker_take_until(parker, 0);
}

/* Whether a worker that falls asleep ends its thread, for scenarios at whose end workers may be asleep. */
static bool sleep_is_the_end;
static bool is_asleep[MAX_WORKERS];

void quern__worker_park(quern__worker *worker, uint64_t until_ns)
{
    if (!sleep_is_the_end) {
        quern__parker_take_until(&worker->parker, until_ns);
        return;
    }
    if (atomic_exchange_explicit(&worker->parker.state, 0, memory_order_acquire) == 1) return;
    is_asleep[worker->index] = true;
    pthread_exit(NULL);
}

bool quern__condition_init(quern__condition *condition)
{
    (void)condition;
    return true;
}

/* Threads of a model need no cleanup at their end, so the key does nothing. */
bool quern__exit_key_init(quern__exit_key *made, void (*function)(void *value))
{
    (void)made;
    (void)function;
    return true;
}

void quern__exit_key_deinit(const quern__exit_key *key)
{
    (void)key;
}

bool quern__exit_key_set(const quern__exit_key *set, void *value)
{
    (void)set;
    (void)value;
    return true;
}

void quern__thread_sleep(uint64_t ns)
{
    (void)ns;
}

#if __has_include(<genmc.h>)
static _Atomic int broadcast_count; /* written under the mutex */

static void broadcast(void)
{
    int count = atomic_load_explicit(&broadcast_count, memory_order_relaxed);
    atomic_store_explicit(&broadcast_count, count + 1, memory_order_relaxed);
}

static void wait_for_broadcast(quern__mutex *mutex, uint64_t until_ns)
{
    int before = atomic_load_explicit(&broadcast_count, memory_order_relaxed);
    quern__mutex_unlock(mutex);
    AWAIT(atomic_load_explicit(&broadcast_count, memory_order_relaxed) != before || is_time_up(until_ns));
    quern__mutex_lock(mutex);
}

void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns)
{
    (void)condition;
    wait_for_broadcast(mutex, until_ns);
}
#else
void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns)
{
    (void)until_ns;
    pthread_cond_wait(&condition->handle, &mutex->handle);
}
#endif

/* ----------------------------------------------------------------------------- fences on all threads */

/* In a pool whose pushers have no fence (uses_asymmetric_fence), a sleeper executes a fence on every
 * thread. In a scenario one thread has no fences from begin_fenceless to end_fenceless. The requested fence
 * then happens at some point where it matters: before or after a push, or between a push and the check for
 * sleepers. */
static _Atomic int asked_fences[MAX_WORKERS]; /* fences requested by each worker */
static _Atomic int passed_fences[MAX_WORKERS];
static int seen_fences[MAX_WORKERS]; /* fences that the fenceless thread has seen, by requesting worker */
static _Atomic bool fenceless_has_ended;
static _Thread_local bool is_fenceless;
static _Thread_local uint32_t own_index_or_0; /* index of the worker that this thread is; 0: none */

static void pass_fence_point(void)
{
    if (!is_fenceless) return;
    for (uint32_t index = 1; index < pool.worker_count; index++) {
        int asked = atomic_load_explicit(&asked_fences[index], memory_order_acquire);
        if (asked == seen_fences[index]) continue;
        seen_fences[index] = asked;
        atomic_thread_fence(memory_order_seq_cst);
        atomic_store_explicit(&passed_fences[index], asked, memory_order_release);
    }
}

static void begin_fenceless(void)
{
    is_fenceless = pool.uses_asymmetric_fence;
    pass_fence_point();
}

static void end_fenceless(void)
{
    if (!is_fenceless) return;
    pass_fence_point();
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&fenceless_has_ended, true, memory_order_release);
}

void quern__fence_all_threads(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    int wanted = atomic_load_explicit(&asked_fences[own_index_or_0], memory_order_relaxed) + 1;
    atomic_store_explicit(&asked_fences[own_index_or_0], wanted, memory_order_release);
    AWAIT(atomic_load_explicit(&passed_fences[own_index_or_0], memory_order_acquire) == wanted ||
          atomic_load_explicit(&fenceless_has_ended, memory_order_acquire));
    atomic_thread_fence(memory_order_seq_cst);
}

bool quern__can_fence_all_threads(void)
{
    return pool.uses_asymmetric_fence;
}

/* ---------------------------------------------------------------------------------- other callbacks */

static quern__node_block node_block;

/* Returns the single block of nodes; nothing else is allocated. Not inlined, because compilers would
 * otherwise warn about other sizes. */
__attribute__((noinline)) void *quern__allocate(const quern_allocator *allocator, size_t size_bytes,
                                                size_t alignment_bytes)
{
    (void)allocator, (void)size_bytes, (void)alignment_bytes;
    return &node_block;
}

/* A spinning worker searches once per spin here, so yielding makes no difference. */
void quern__worker_publish_processor(quern__worker *worker)
{
    (void)worker;
}

bool quern__worker_should_stop_spinning(quern__worker *worker)
{
    (void)worker;
    return false;
}

int64_t quern__jobs_count_awake(const quern_jobs *jobs)
{
    (void)jobs;
    return 0;
}

bool quern__jobs_yield(quern_jobs *jobs)
{
    (void)jobs;
    return true;
}

void quern__worker_begin_waking(const quern__worker *sleeper)
{
    (void)sleeper;
}

void quern__worker_end_waking(const quern__worker *sleeper)
{
    (void)sleeper;
}

void quern__worker_prepare_sleep(quern__worker *worker)
{
    (void)worker;
}

void quern__worker_leave_shared_processor(quern__worker *worker)
{
    (void)worker;
}

/* Waits until the counter is unlocked; GenMC reports a lock that is never released. Executions after an
 * unlock are covered by those that see the counter unlocked at the first read. */
static void wait_for_unlock(const quern_counter *counter)
{
    AWAIT((atomic_load_explicit(&counter->pending, memory_order_acquire) & IS_LOCKED) == 0);
    assume(false);
}

/* Waits until there are no visitors; covered in the same way as wait_for_unlock. */
static void wait_for_visitors(const quern_jobs *jobs)
{
    AWAIT(atomic_load_explicit(&jobs->visitor_count, memory_order_acquire) == 0);
    assume(false);
}

void quern__worker_yield_after_long_work(quern__worker *worker)
{
    (void)worker;
}

void quern__worker_set_up_thread(const quern__worker *worker)
{
    own_index_or_0 = worker->index;
}

void quern__thread_join(quern__thread *thread)
{
    pthread_join(thread->handle, NULL);
}

#ifndef MODEL_WITH_SUBMITTED_LOOPS
/* No other model submits loops, because jobs have too few words for them. */
const char *quern__submitted_loop_name(const quern__job *job)
{
    (void)job;
    return NULL;
}

void quern__jobs_free_submitted_loops(quern_jobs *jobs)
{
    (void)jobs;
}
#endif

uint32_t quern__fork_count;

void quern__count_forks(void) {}

void quern__worker_begin_idle_time(quern__worker *worker, uint64_t now_ns)
{
    (void)worker, (void)now_ns;
}

void quern__worker_end_idle_time(quern__worker *worker)
{
    (void)worker;
}

void quern__worker_begin_sleep_time(quern__worker *worker)
{
    (void)worker;
}

uint64_t quern__worker_end_sleep_time(quern__worker *worker)
{
    (void)worker;
    return 0;
}

void quern__worker_report_event(const quern__worker *worker, quern__job_event event, uint64_t start_ns,
                                uint32_t count)
{
    (void)worker, (void)event, (void)start_ns, (void)count;
}

quern__named_work quern__worker_publish_name(quern__worker *worker, const char *name)
{
    (void)worker, (void)name;
    return (quern__named_work){.name = NULL};
}

void quern__worker_retract_name(quern__worker *worker, const quern__named_work *work)
{
    (void)worker, (void)work;
}

quern_result(quern__fail)(quern_result code, const char *format, ...)
{
    (void)format;
    return code;
}

quern_result(quern__fail_null)(const char *function, const char *argument)
{
    (void)function, (void)argument;
    return QUERN_ERROR_NULL_ARGUMENT;
}

#endif
