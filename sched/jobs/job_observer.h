/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_JOB_OBSERVER_H
#define QUERN_SCHED_JOBS_JOB_OBSERVER_H

/* Interfaces through which a pool reports what its workers do. The job system knows nothing else about an
 * observer; the trace (sched/observe/trace.h) implements one. While no observer records, reporting costs
 * one branch. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
