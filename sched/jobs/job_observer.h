/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_JOB_OBSERVER_H
#define QUERN_SCHED_JOBS_JOB_OBSERVER_H

/* Who looks on at a pool. The job system knows no more of it than this; a trace is one
 * (sched/observe/trace.h). While nobody wants to see anything, looking costs one branch. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum quern__job_event {
    QUERN__JOB_STEAL, /* a search that found a job, or items of a loop */
    QUERN__JOB_SLEEP,
    QUERN__JOB_LOOP, /* help with a parallel loop that somebody else waits for */
    QUERN__JOB_NAMED /* work that has a name */
} quern__job_event;

typedef struct quern__observer {
    _Atomic bool is_running;     /* events are wanted */
    _Atomic uint32_t user_count; /* pools and schedules that hold on to it */
    /* By the worker itself, of what ends now. name: of the work, which may end with this call, or NULL. */
    void (*show)(struct quern__observer *observer, uint32_t worker_index, quern__job_event event,
                 const char *name, uint64_t begin_ns, uint32_t count);
} quern__observer;

/* Who looks on at the loops that one worker runs and waits for, in pools of one thread; not at those inside
 * of them. By the worker itself, when such a loop has ended. piece_count: of at least `grain` items each.
 */
typedef struct quern__loop_watch {
    void (*tell)(struct quern__loop_watch *watch, uint32_t piece_count, uint64_t took_ns);
} quern__loop_watch;

/* One relaxed load. It orders nothing, since an event too many or too few does no harm. */
static inline bool quern__observer_wants(const quern__observer *observer)
{
    return observer != NULL && atomic_load_explicit(&observer->is_running, memory_order_relaxed);
}

/* A pool or schedule begins to hold on to it, and has ended. observer may be NULL. Relaxed: whoever gives
 * the observer to somebody does not destroy it meanwhile. */
static inline void quern__observer_add_user(quern__observer *observer)
{
    if (observer != NULL) atomic_fetch_add_explicit(&observer->user_count, 1, memory_order_relaxed);
}

/* Release: pairs with the acquire in quern_trace_destroy, so that comes after all that was shown. */
static inline void quern__observer_remove_user(quern__observer *observer)
{
    if (observer != NULL) atomic_fetch_sub_explicit(&observer->user_count, 1, memory_order_release);
}

#endif
