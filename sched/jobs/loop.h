/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_LOOP_H
#define QUERN_SCHED_JOBS_LOOP_H

/* A loop over a range of items that several workers share: what loops that are waited for (parallel_for.c),
 * loops that are submitted (submit_loop.c) and the nodes of a graph have in common. See loop.c for how a
 * range is divided. */

#include "sched/jobs/jobs_internal.h"

/* What is to be done. */
typedef struct quern__range {
    quern_range_function *function;
    void *user_data;
    uint32_t count;
    uint32_t grain;             /* 0: automatic */
    uint32_t first;             /* items before it are done already; < count */
    bool is_closed;             /* no part of it runs on a thread while another waits there: see deque.h */
    const quern_cancel *cancel; /* or NULL */
    const char *name;           /* shown while somebody works on it; or NULL */
} quern__range;

/* quern_jobs_parallel_for, of a range that may be closed and may be asked to stop: then CANCELLED, when items
 * were left out. For messages, what the user called. */
quern_result quern__jobs_parallel_for(quern_jobs *jobs, const quern__range *range, const char *function);

/* The items that one worker has claimed and not yet begun, one line each. */
typedef struct quern__slot {
    _Alignas(
        QUERN__CACHE_LINE_BYTES) _Atomic uint64_t items; /* begin in the low half, end in the high one */
    _Atomic bool is_owned;                               /* its worker has come */
} quern__slot;

typedef struct quern__loop {
    quern__job offer; /* what lies in deques to invite others; the same as often as needed */
    quern__range range;
    uint32_t grain; /* range.grain; 1 when automatic */
    bool wake;      /* offers wake sleepers */
    /* It is in a store that outlives its offers. So these are no references: they may be left lying, and who
     * takes one finds out whether the loop is still there. The first words of offer.data go with them. */
    bool is_kept;
    quern__queue_index queue; /* where offers go: NORMAL is the deque; others only of one that is kept */
    quern__slot *slots;       /* [slot_count] */
    uint32_t slot_count;      /* the pool's workers */
    /* Offers lying in deques and workers taking part (not the caller of parallel_for). At 0 nobody else
     * will touch the loop again. */
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint32_t references;
    _Atomic uint32_t invitation_count; /* offers that may still be made */
    _Atomic bool
        was_cut; /* somebody has left out items that he had claimed; to be read when all have left */
} quern__loop;

enum { QUERN__KEPT_OFFER_WORDS = 2 };

/* Whether one call, or one thread, is all the work needs; of at least one item. */
static inline bool quern__range_is_plain(const quern__range *range, uint32_t thread_count)
{
    return thread_count == 1 || range->count - range->first <= 1 ||
           range->count - range->first <= range->grain;
}

/* All of it on this thread. False when it was asked to stop, and items were left out. */
bool quern__range_run(const quern__range *range, uint32_t worker_index);

/* run: what a worker does with an offer; the offer's target is the loop. scope: what the loop is a part of,
 * or the loop itself. slots: one per worker of the pool. caller: for whom it is; a guest gets a share, as
 * the pool's own threads do. */
void quern__loop_init(quern__loop *loop, void (*run)(quern__job *job, quern__worker *worker),
                      const void *scope, const quern__range *range, quern__slot *slots,
                      const quern__worker *caller);

/* What one participant did of a loop. */
typedef struct quern__loop_share {
    uint64_t item_count; /* 0 when it was asked to stop */
    uint64_t time_ns;
} quern__loop_share;

/* Works on items until there are none to claim, inviting others before. Returns how many of the offers that
 * it made nobody took: they are withdrawn, and the caller of this has to subtract them from references.
 * share may be NULL. */
uint32_t quern__loop_join(quern__loop *loop, quern__worker *worker, quern__loop_share *share);

/* Works on items until there are none to claim, without inviting others. False when there were none. It
 * must not stop earlier: what it has stolen and not begun lies in its own slot, and when all others have
 * left, nobody else looks there. */
bool quern__loop_help(quern__loop *loop, quern__worker *worker);

/* How a range is shared once it is clear that it shall be: wake and own as in quern__range_share. The first
 * member of whatever else that needs. False when it is known that items were left out. */
typedef struct quern__sharing {
    bool (*share)(struct quern__sharing *sharing, quern__worker *worker, const quern__range *range,
                  bool wake, quern__loop_share *own);
} quern__sharing;

/* Runs a range that is not plain on this worker alone, or shares it, as is likely to be quicker: see
 * parallel_for.c. False when items were left out, as far as this worker knows. */
bool quern__range_run_or_share(quern__worker *worker, const quern__range *range, quern__sharing *sharing);

/* Shares it, and waits for the last who takes part. False when items were left out. own: what the caller
 * did itself; may be NULL. */
bool quern__range_share(quern__worker *caller, const quern__range *range, bool wake,
                        quern__loop_share *own);

#endif
