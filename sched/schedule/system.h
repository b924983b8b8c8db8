/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SYSTEM_H
#define QUERN_SCHED_SCHEDULE_SYSTEM_H

/* A system: its checked definition, its query, its compiled state, and its state in the current frame. */

#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "sched/jobs/atomic.h"
#include "sched/schedule/access.h"
#include "sched/schedule/event_use.h"

/* A before or after rule of the definition. It refers to the other system by name until the schedule is
 * compiled, because that system may be added later. */
typedef struct quern__order_rule {
    char name[QUERN_MAX_NAME_BYTES + 1];
    bool is_before; /* this system runs before the named one; otherwise after it */
} quern__order_rule;

typedef struct quern__system {
    struct quern__plan *plan;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__accessor accessor; /* has the system's name; counts the refused accesses of a frame */
    _Atomic bool has_logged_failed_command; /* whether a failed command of this frame was logged */
    uint32_t index;                         /* in order of registration */
    uint32_t next_same_hash;                /* see quern__plan.names; 0: none */
    uint32_t phase;
    uint32_t flags; /* quern_system_flags, including flags that other declarations imply */
    bool is_enabled;
    quern_view_callback *run;
    quern_system_callback *begin, *end;
    quern_system_condition *condition;
    double interval_seconds; /* time between runs; 0: the system runs in every frame */
    void *user_data;
    quern__access access;
    quern__event_use events;
    /* Without terms, the query matches no archetype: `run` is called once, or on batches of events. */
    quern__query query;
    quern__relation *levels;   /* relation that orders the views by level, or NULL */
    uint32_t reacts_to;        /* bits of quern_reaction_kind; 0: not a reaction */
    quern__reaction *reaction; /* pending changes for a reaction; NULL: not a reaction */
    QUERN__ARRAY(quern__order_rule) rules;

    /* set by quern__compile */
    /* in execution order */
    uint32_t position; /* in the order of execution */
    uint32_t
        group_first; /* position of the first system that this one may overlap (quern__system_may_overlap) */
    uint32_t checked_match_count; /* matches of the query that were checked for conflicts */
    /* query.removed_count at that time; if it has changed, checked_match_count is invalid. */
    uint32_t checked_removed_count;
    struct quern__pass *pass;
    uint32_t lane;              /* lane in its pass */
    uint32_t table_match_count; /* matches of the query that the pass's tables contain */
    /* query.removed_count at that time; if it has changed, table_match_count is invalid. */
    uint32_t table_removed_count;

    /* set by quern__pass_prepare or quern__reaction_pass_prepare */
    uint32_t view_count;
    uint32_t first_deep_ordinal; /* ordinal of the first view on the last level */
    uint64_t entity_count;
    uint32_t next_taken_rows; /* of a reaction: first entry of taken.rows without a call */
    uint32_t serial_offset;   /* first serial of its command streams, relative to the segment's */
    size_t partial_bytes;     /* size of one partial result, as declared */
    size_t partial_stride_bytes;
    char *partials; /* view_count results, at a distance of partial_stride_bytes */
    size_t partials_capacity_bytes;

    /* state in the current frame */
    bool is_active; /* runs in this frame: enabled, interval reached, condition true */
    /* of a system with an interval */
    /* Time since the last due time that a run covered; see passes_gates in frame/pass_run.c. */
    double due_seconds;
    double elapsed_seconds; /* time since the last run */
    double delta_seconds;   /* time step of the current run */
    uint64_t command_count;
    /* Sums over the steps of a phase with a fixed step, or over the rounds of reactions. */
    uint32_t step_view_count;
    uint64_t step_entity_count;
} quern__system;

/* Checks and copies a definition. Errors: those of quern_schedule_add_system except DUPLICATE_NAME and
 * LIMIT. */
quern_result quern__system_create(quern_world *world, const quern_system_def *def, uint32_t phase_count,
                                  quern__system **out_system);

void quern__system_destroy(quern__system *system);

/* Enables or disables the system. Nothing is recorded for a disabled reaction; what is pending for it stays. The plan's
 * segments must be invalidated if the state changes. */
void quern__system_set_enabled(quern__system *system, bool enabled);

/* Returns whether the systems may run without a sync point between them, so that their conflicts matter.
 * Reactions to the same sync point run together, whatever their phases. */
static inline bool quern__system_may_overlap(const quern__system *system, const quern__system *other)
{
    if (system->reaction != NULL || other->reaction != NULL)
        return system->reaction != NULL && other->reaction != NULL;
    return system->phase == other->phase;
}

static inline bool quern__system_has_flag(const quern__system *system, quern_system_flags flag)
{
    return (system->flags & (uint32_t)flag) != 0;
}

/* Reserves memory for the partial results of view_count views. Errors: OUT_OF_MEMORY. */
quern_result quern__system_reserve_partials(quern__system *system);

/* Returns whether a condition or an interval decides during the frame if the system runs. */
static inline bool quern__system_is_gated(const quern__system *system)
{
    return system->condition != NULL || system->interval_seconds > 0;
}

static inline void *quern__system_partial(const quern__system *system, uint32_t ordinal)
{
    return system->partial_bytes > 0 && ordinal < system->view_count
               ? system->partials + ordinal * system->partial_stride_bytes
               : NULL;
}

#endif
