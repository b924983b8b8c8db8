/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_CONTEXT_INTERNAL_H
#define QUERN_SCHED_FRAME_CONTEXT_INTERNAL_H

/* What a callback can reach besides its view. One per worker, set anew for each callback. */

#include "sched/frame/schedule_internal.h"
#include "sched/jobs/atomic.h"

/* Contexts of several workers lie in an array: each has cache lines of its own. */
struct quern_context {
    _Alignas(QUERN__APART_BYTES)
        quern__scope scope; /* first: core/query/query_internal.h reports refused columns through it */
    quern_schedule *schedule;
    const quern__system *system;
    quern_commands *commands;
    const void **addresses; /* for the up-terms of a view: see core/query/up.h; NULL: no system has any */
    uint32_t worker_index;
    quern__callback_kind callback;
    const void *thread;             /* that calls its callbacks now, or NULL; in builds with QUERN_CHECKS */
    const quern_world *outer_world; /* quern__world_of_callback of the thread before the pass; see there */
    uint32_t part;                  /* of the system's streams: see frame.h */
    uint32_t reaction;              /* what happened to the rows of the view, a quern_reaction_kind; or 0 */
    bool has_stream;                /* the recorder is set to this callback's stream */
    bool has_output;                /* has_stream, or open emitters */
    bool is_busy;                   /* callbacks of a pass are under way */
    struct quern__guard *lent;      /* guards of what the callback looked up to write; see guard.h */
    const char *refused_system;     /* the last that was refused something in this frame, or NULL */
    quern__emitter *open_emitters;  /* of this callback */
};

_Static_assert(offsetof(struct quern_context, scope) == 0, "core takes a context for its scope");

/* Call it when a callback has returned: notes its system if it was refused something, and prepares the scope
 * for the next callback. */
static inline void quern__context_note_refusal(quern_context *context)
{
    if (QUERN__LIKELY(quern__scope_refused(&context->scope) == QUERN_OK)) return;
    context->refused_system = context->system->name;
    quern__scope_reset(&context->scope);
}

/* For calls that only systems may make: false, and said, when it is no system that calls, or not from its
 * callback. what: is asked for. */
bool quern__context_is_system(quern_context *context, const char *function, const char *what);

/* A handle of nothing in this world, as the last message says. */
void quern__context_refuse_handle(quern_context *context, const char *what, const char *function);

#endif
