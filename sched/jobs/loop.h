/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_LOOP_H
#define QUERN_SCHED_JOBS_LOOP_H

/* Whether to share recurring work, and loops over a range of items. The latter is the common part of loops that a caller waits for (loop.c),
 * loops that are submitted (submit_loop.c) and nodes of graphs (graph_task.c). loop.c explains how workers
 * divide a range. */

#include "sched/jobs/jobs_internal.h"

/* ------------------------------------------------------------------------------------------ sharing.c */

enum { QUERN__QUIET_NS = 50000 }; /* Shorter runs end before a woken worker could start. */

typedef enum quern__run_mode {
    QUERN__RUN_ALONE, /* on one thread */
    QUERN__RUN_QUIET, /* share, and wake no sleeping worker */
    QUERN__RUN_WAKE
} quern__run_mode;

/* Forgets all durations. Assigns member by member; see quern__job_copy. */
static inline void quern__times_forget(quern__known_times *times)
{
    times->alone_ns = 0;
    times->measured_ns = 0;
    times->shared_ns = 0;
    times->alone_runs = 0;
    times->alone_runs_left = 0;
}

/* Decides how to run the next unit_count units. */
quern__run_mode quern__times_choose(const quern__known_times *times, double unit_count);

/* Note the duration of a run on one thread, or of a shared one, which on one thread would have taken at most
 * most_ns. */
void quern__times_learn_alone(quern__known_times *times, double unit_count, uint64_t took_ns);
void quern__times_learn_shared(quern__known_times *times, double unit_count, uint64_t took_ns,
                               double most_ns);

/* --------------------------------------------------------------------------------------------- loop.c */

/* A range of items and the function to call for them. */
typedef struct quern__range {
    quern_range_function *function;
    void *user_data;
    uint32_t count;
    uint32_t grain; /* items per call; 0: automatic */
    uint32_t first; /* first item that is not done yet; below `count` */
    /* Whether the loop's scope is closed: a worker that waits inside of a closed job runs parts of the loop
     * only if it waits for this loop; see deque.h. */
    bool is_closed;
    const quern_cancel *cancel; /* or NULL */
    const char *name;           /* name of the work, published while a worker runs items; or NULL */
} quern__range;

/* quern_jobs_parallel_for for a range that may be closed and may have a cancel request. `function` names
 * the public call in messages. Additional error: CANCELLED if items were skipped. */
quern_result quern__jobs_parallel_for(quern_jobs *jobs, const quern__range *range, const char *function);

/* The items that a worker may claim next, on a cache line of its own. */
typedef struct quern__loop_slot {
    /* Index of the first item in the low half, index after the last item in the high half. */
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint64_t items;
    _Atomic bool is_owned; /* whether the slot's worker takes part */
} quern__loop_slot;

typedef struct quern__loop {
    quern__job offer;    /* job that invites one more worker; pushed into deques as often as needed */
    quern__range range;  /* first and count are unset: the slots have the items */
    uint32_t grain;      /* range.grain, or 1 if that is automatic */
    bool wakes_sleepers; /* whether offers wake sleeping workers */
    /* Whether the loop is in a store that outlives its offers; see submit_loop.c. Then offers hold no
     * reference, and unused ones may stay in deques: a worker that takes an offer finds out whether the
     * loop still runs. The first words of offer.data are copied with each offer for that purpose. */
    bool is_stored;
    /* Queue that receives the offers; NORMAL: the deque. Only loops with is_stored use other queues. */
    quern__queue_index queue;
    quern__loop_slot *slots; /* [slot_count] */
    uint32_t slot_count;     /* one slot per worker of the pool, external slots included */
    uint32_t float_mode;     /* of the thread that began the loop; all participants compute in it */
    /* Number of offers in deques plus number of participants, without the caller of
     * quern_jobs_parallel_for. No other thread accesses the loop after it became 0. */
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint32_t references;
    _Atomic uint32_t invitation_count; /* number of offers that may still be made */
    /* Whether a participant skipped items that it had claimed, because of a cancel request; read after all
     * participants left. */
    _Atomic bool was_cancelled;
} quern__loop;

enum { QUERN__STORED_OFFER_WORDS = 2 };

/* Whether the range needs only one call or one thread. The range has at least one item. */
static inline bool quern__range_is_plain(const quern__range *range, uint32_t thread_count)
{
    return thread_count == 1 || range->count - range->first <= 1 ||
           range->count - range->first <= range->grain;
}

/* Runs the whole range on this thread. Returns false if a cancel request made it skip items. */
bool quern__range_run(const quern__range *range, uint32_t worker_index);

/* Initializes a loop. `run` is the function of the offer, which finds the loop in job->target. `scope` is
 * the scope that the loop belongs to, or the loop itself. `slots` has one slot per worker of the pool.
 * `caller` is the worker that the loop runs for: it gets a share of the items, like the pool's own threads,
 * even if it is an external worker. */
void quern__loop_init(quern__loop *loop, void (*run)(quern__job *job, quern__worker *worker),
                      const void *scope, const quern__range *range, quern__loop_slot *slots,
                      const quern__worker *caller);

/* Part of a loop that one participant ran. */
typedef struct quern__loop_contribution {
    uint64_t item_count; /* number of items; 0 if a cancel request stopped it */
    uint64_t time_ns;
} quern__loop_contribution;

/* Invites other workers, then runs items until there are none left to claim. Returns the number of its own
 * offers that no worker took; they are withdrawn, and the caller has to subtract them from `references`.
 * `share` may be NULL. */
uint32_t quern__loop_join(quern__loop *loop, quern__worker *worker, quern__loop_contribution *share);

/* Runs items until there are none left to claim, without inviting others. Returns false if there were none.
 * It must not stop earlier: stolen items that it has not begun are in its own slot, and after all
 * participants left no other worker checks that slot. */
bool quern__loop_help(quern__loop *loop, quern__worker *worker);

/* A range of which a rest is to be shared. */
typedef struct quern__sharing {
    quern__range rest;
    quern__loop_cost *cost;
    uint64_t start_ns; /* when sharing begins */
    bool wake;         /* whether to wake sleeping workers */
    bool is_whole;     /* whether no items were skipped so far */
} quern__sharing;

/* Runs a range on this worker alone, as far as that is likely to be faster than sharing it; see loop.c.
 * Returns whether a rest is to be shared: then the caller shares it, and calls quern__range_end_shared. The
 * range must not be plain (quern__range_is_plain). */
bool quern__range_begin(quern__worker *worker, const quern__range *range, quern__sharing *out_sharing);

/* Learns from a shared rest, of which the worker ran `own` itself. */
void quern__range_end_shared(quern__worker *worker, const quern__sharing *sharing,
                             const quern__loop_contribution *own);

/* Shares a range with other workers and waits for the last participant. Returns false if items were
 * skipped. `wake`: whether to wake sleeping workers. `own` receives the caller's own part; it may be
 * NULL. */
bool quern__range_share(quern__worker *caller, const quern__range *range, bool wake,
                        quern__loop_contribution *own);

#endif
