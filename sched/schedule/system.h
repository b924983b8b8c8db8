/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SYSTEM_H
#define QUERN_SCHED_SCHEDULE_SYSTEM_H

/* A system: its checked definition, its query, and its state in the frame that runs. */

#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "sched/jobs/atomic.h"
#include "sched/schedule/access.h"
#include "sched/schedule/event_use.h"

/* A before or after of the definition, by name until the schedule is compiled. */
typedef struct quern__order_rule {
    char name[QUERN_MAX_NAME_BYTES + 1];
    bool is_before; /* this system runs before the one of that name */
} quern__order_rule;

typedef struct quern__system {
    struct quern__plan *plan;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__accessor accessor; /* with that name; counts the refusals of a frame */
    uint32_t index;           /* in the order of registration */
    uint32_t phase;
    uint32_t flags; /* quern_system_flags; serial where it is implied */
    bool enabled;
    quern_view_callback *run;
    quern_system_callback *begin, *end;
    quern_system_condition *condition;
    double interval_seconds; /* 0: every frame */
    void *user_data;
    quern__access access;
    quern__event_use events;
    quern__query query;      /* without terms: no archetype matches, and run is called once, or on items */
    quern__relation *levels; /* by which it goes level by level; or NULL */
    uint32_t reacts_to;      /* quern_reaction_kind, combined; 0: it is no reaction */
    quern__reaction *reaction; /* what it is to react to; NULL: it is none */
    QUERN__ARRAY(quern__order_rule) rules;

    /* compiled */
    uint32_t position;               /* in the order of execution */
    QUERN__ARRAY(uint32_t) partners; /* positions of systems it may come to conflict with over components */
    uint32_t judged_count;           /* matches of the query whose conflicts are known */
    uint32_t judged_removed_count;   /* the query's removed_count then; another one: judged_count is void */
    struct quern__pass *pass;
    uint32_t lane;                 /* in its pass */
    uint32_t merged_count;         /* matches of the query that are in the pass's tables */
    uint32_t merged_removed_count; /* as judged_removed_count */

    /* prepared, for the rows there are */
    uint32_t view_count;
    uint32_t first_deep_ordinal; /* of its views in the last level */
    uint64_t entity_count;
    uint32_t next_rows;     /* of a reaction: the first of those taken that are not yet arranged */
    uint32_t serial_offset; /* of its streams' serials in those of the segment */
    size_t partial_bytes;   /* as declared */
    size_t partial_stride_bytes;
    char *partials; /* view_count times the stride */
    size_t partials_capacity_bytes;

    /* in a frame */
    bool is_active; /* enabled, and neither interval nor condition holds it back */
    /* of one with an interval */
    double due_seconds;     /* it runs when they reach the interval */
    double elapsed_seconds; /* since it ran */
    double delta_seconds;   /* of this run */
    uint64_t command_count;
    uint32_t step_view_count; /* over the steps of a phase with a fixed one, or the rounds of reactions */
    uint64_t step_entity_count;
} quern__system;

/* Checks and copies a definition. Errors: as quern_schedule_add_system, less
 * DUPLICATE_NAME and LIMIT. */
quern_result quern__system_create(quern_world *world, const quern_system_def *def, uint32_t phase_count,
                                  quern__system **out_system);

void quern__system_destroy(quern__system *system);

/* Whether no sync point stands between them, so that they may have to keep an order. Reactions to one sync
 * point run together, of whatever phase they are. */
static inline bool quern__system_meets(const quern__system *system, const quern__system *other)
{
    if (system->reaction != NULL || other->reaction != NULL)
        return system->reaction != NULL && other->reaction != NULL;
    return system->phase == other->phase;
}

static inline bool quern__system_is(const quern__system *system, quern_system_flags flag)
{
    return (system->flags & (uint32_t)flag) != 0;
}

/* Makes room for the partial results of view_count views. Errors: OUT_OF_MEMORY. */
quern_result quern__system_reserve_partials(quern__system *system);

/* Whether it is to run in this frame is only known when its turn comes. */
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
