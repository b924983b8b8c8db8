/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_CONTEXT_INTERNAL_H
#define QUERN_SCHED_FRAME_CONTEXT_INTERNAL_H

/* The context of a callback: what it can access besides its view. Each worker has one context, which is set
 * anew for each callback. */

#include "sched/frame/schedule_internal.h"
#include "sched/jobs/atomic.h"

/* Aligned so that the contexts of different workers share no cache line. */
struct quern_context {
    _Alignas(QUERN__APART_BYTES)
        quern__scope scope; /* first member: core converts a context to its scope */
    quern_schedule *schedule;
    const quern__system *system;
    quern_commands *commands;
    /* Working memory for the up-terms of a view (core/query/up.h). NULL if no system has up-terms. */
    const void **addresses;
    uint32_t worker_index;
    quern__callback_kind callback;
    /* Thread that runs callbacks with the context now, or NULL. Only set in builds with QUERN_CHECKS. */
    const void *thread;
    /* Value of the thread's quern__world_of_callback before the pass, which restores it. */
    const quern_world *outer_world;
    /* Number of the callback's command stream within its system (frame.h). */
    uint32_t call_index;
    uint32_t reaction; /* quern_reaction_kind of the view's rows; 0: not a reaction */
    bool has_stream;   /* the recorder has begun this callback's stream */
    bool has_output;   /* has_stream is true, or open_emitters is not empty */
    bool is_busy;      /* a job of a pass runs callbacks with the context */
    /* Guards of columns that the callback looked up for writing (guard.h). */
    struct quern__guard *open_guards;
    const char *refused_system;    /* last system of this frame that was refused an access, or NULL */
    quern__emitter *open_emitters; /* emitters that this callback has opened */
};

_Static_assert(offsetof(struct quern_context, scope) == 0, "core takes a context for its scope");

/* Notes the system if the callback was refused an access, and prepares the scope for the next callback.
 * Must be called after each callback. */
static inline void quern__context_note_refusal(quern_context *context)
{
    if (QUERN__LIKELY(quern__scope_refused(&context->scope) == QUERN_OK)) return;
    context->refused_system = context->system->name;
    quern__scope_reset(&context->scope);
}

/* Returns whether the callback of a system calls `function`. Otherwise reports the error and returns false.
 * `what`: what the caller asked for, for the message, such as "events". */
bool quern__context_is_system(quern_context *context, const char *function, const char *what);

/* Refuses a call with an invalid handle, most often because the object was never registered. The message
 * repeats the last error message. `what`: kind of the handle, such as "event". */
void quern__context_refuse_handle(quern_context *context, const char *what, const char *function);

#endif
