/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_CONTEXT_H
#define QUERN_SCHED_FRAME_CONTEXT_H

/* What a callback can reach besides its view. One per worker, set anew for each callback. */

#include "sched/frame/schedule.h"
#include "sched/jobs/atomic.h"

typedef enum quern__callback_kind {
    QUERN__CALLBACK_BEGIN, /* also conditions */
    QUERN__CALLBACK_RUN,
    QUERN__CALLBACK_END
} quern__callback_kind;

/* Jobs of a pass that a worker has run one right after the other, and not yet timed: see profile.h. */
typedef struct quern__span {
    const quern__pass *pass;
    uint32_t run_count; /* the worker's */
    uint32_t chunk_count;
    uint64_t start_ns;
} quern__span;

/* Contexts of several workers lie in an array: each has cache lines of its own. */
struct quern_context {
    _Alignas(QUERN__APART_BYTES)
        quern__scope scope; /* first: core/world/query.h reports refused columns through it */
    quern_schedule *schedule;
    const quern__system *system;
    quern_commands *commands;
    uint32_t worker_index;
    quern__callback_kind callback;
    const void *thread;         /* that calls its callbacks now, or NULL; in builds with QUERN_CHECKS */
    uint32_t part;              /* of the system's streams: see frame.h */
    bool has_stream;            /* the recorder is set to this callback's stream */
    bool is_busy;               /* callbacks of a pass are under way */
    bool is_timed;              /* the callbacks that it makes now: see profile.h */
    bool is_shown;              /* likewise, in the trace */
    bool is_counted;            /* likewise, with hardware counters */
    uint32_t sample_countdown;  /* chunks up to and with the next that is timed by system; 0: none is */
    const char *refused_system; /* the latest that was refused something in this frame, or NULL */
    uint64_t lap_start_ns;      /* when the call began that is timed */
    quern__span span;           /* of jobs that are timed together */
    uint64_t sync_ns; /* in loops of sync points that others lead, in all frames that were watched */

    /* What worker 0 keeps of it between frames: apart, so that the worker's own lines stay where they
     * are. */
    _Alignas(QUERN__APART_BYTES) uint64_t sync_seen_ns;
    uint64_t slept_seen_ns;
    uint64_t dry_seen_ns;
    quern_worker_profile profile, profile_total;
};

_Static_assert(offsetof(struct quern_context, scope) == 0, "core takes a context for its scope");

/* Remembers who was refused something in the callback that has returned, if anything was. */
static inline void quern__context_note_refusal(quern_context *context)
{
    if (context->scope.refused == QUERN_OK) return;
    context->refused_system = context->system->name;
    context->scope.refused = QUERN_OK;
}

#endif
