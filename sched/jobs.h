/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_H
#define QUERN_SCHED_JOBS_H

/* The pool: its workers, how they find jobs, and how they sleep. Loops (sched/loop.h) and graphs are built
 * from jobs. See jobs.c for why no wake-up is lost. */

#include "core/base.h"
#include "sched/deque.h"
#include "sched/thread.h"

#include <quern/jobs.h>

typedef struct quern__worker quern__worker;

/* First member of whatever is to be done; it stands in memory that lives until it has run. */
typedef struct quern__job {
    void (*run)(struct quern__job *job, quern__worker *worker);
} quern__job;

/* One participant of a pool. Worker 0 is the outside thread that is using the pool, whichever it is. */
struct quern__worker {
    quern__deque deque;
    _Alignas(QUERN__APART_BYTES) quern__parker parker;
    quern_jobs *jobs;
    quern__worker *outer; /* of the same thread, in the pool from whose job it entered this one */
    uint32_t index;
    uint32_t random; /* where the next search for work starts */
    bool has_slept;  /* since it last searched */
    bool is_resting; /* of worker 0: inside the pool, but with no job on its stack; it may enter again */
    uint32_t again_count; /* of worker 0: how often it has entered again */
    quern__thread thread; /* not of worker 0 */
};

enum { QUERN__IDLE_WORDS = (QUERN_MAX_THREADS + 63) / 64 };

struct quern_jobs {
    quern_allocator allocator;
    uint32_t thread_count;
    uint32_t idle_word_count;
    uint64_t spin_ns;
    char name[QUERN__THREAD_NAME_BYTES];
    _Atomic bool is_stopping;
    _Alignas(QUERN__APART_BYTES) _Atomic bool is_entered; /* an outside thread is worker 0 */
    /* Bit of every worker that sleeps or is about to. */
    _Alignas(QUERN__APART_BYTES) _Atomic uint64_t idle[QUERN__IDLE_WORDS];
    _Alignas(QUERN__APART_BYTES) _Atomic uint32_t searching_count;
    quern__worker workers[]; /* [thread_count] */
};

/* The worker that the calling thread is in this pool; NULL when it is outside. */
quern__worker *quern__jobs_current_worker(const quern_jobs *jobs);

/* An outside thread becomes worker 0, until it leaves. `function` names the public call in the message.
 * Errors: POOL_BUSY. */
quern_result quern__jobs_enter(quern_jobs *jobs, const char *function);
void quern__jobs_leave(quern_jobs *jobs);

/* After pushing: wakes one worker if there are sleepers and nobody is searching. */
void quern__jobs_notify(quern_jobs *jobs);

/* The next job for a worker that has none: its own newest, or another's oldest. Spins for a while. NULL when
 * there was nothing, or as soon as the worker has a permit. */
quern__job *quern__worker_next(quern__worker *worker);

/* Sleeps until there may be work or the worker has a permit. */
void quern__worker_sleep(quern__worker *worker);

#endif
