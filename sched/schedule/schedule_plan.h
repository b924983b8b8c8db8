/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H
#define QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H

/* What was declared of a schedule, and what compiling made of it (compile.h): the order of systems, what
 * keeps them apart, and the segments of a frame. Frames read it; what they keep is in sched/frame. */

#include "core/world/world_internal.h"
#include "sched/schedule/pass.h"

#include <quern/graph.h>
#include <quern/schedule.h>

/* What a frame does, one segment after another. */
typedef enum quern__segment_kind {
    QUERN__SEGMENT_RUN,       /* passes, as a graph */
    QUERN__SEGMENT_EXCLUSIVE, /* one system, alone, on the caller */
    QUERN__SEGMENT_SYNC       /* apply the commands recorded since the last sync */
} quern__segment_kind;

typedef struct quern__segment {
    quern__segment_kind kind;
    uint32_t phase;
    bool reacts;         /* it is of a round of reactions, and its phase means nothing */
    uint32_t first, end; /* systems, by position in the order of execution */

    /* of a RUN or EXCLUSIVE */
    QUERN__ARRAY(quern__pass *) passes; /* in an order that respects all edges */
    quern_graph *graph;                 /* of a RUN */
    uint64_t prepared_version;          /* of the storage's structure; 0: not prepared */
    uint32_t prepared_threads;
    bool has_depths;       /* some pass goes over the last level of a relation */
    bool has_targets;      /* some system has a target term, */
    bool has_readers;      /* reads events, */
    bool has_items;        /* or goes over them */
    uint32_t serial_count; /* serials that its streams may take */
    bool is_idle;          /* nothing to call, whatever the frame */
} quern__segment;

typedef struct quern__phase {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t first_segment, end_segment; /* compiled */
    double step_seconds;                 /* of a fixed step; 0: once per frame */
    uint32_t max_step_count;             /* of one frame */
    double elapsed_seconds;              /* not yet stepped through */
} quern__phase;

typedef struct quern__plan {
    struct quern_schedule *schedule; /* whose frames carry it out; opaque to this room */
    const quern__pass_functions *functions;

    /* declared */
    quern_world *world;
    quern__phase *phases;
    uint32_t phase_count;
    bool fuse;
    uint64_t shuffle_seed; /* 0: none */
    quern_prefetch prefetch;
    size_t own_cache_bytes;                /* of the cache that a core has to itself */
    size_t shared_cache_bytes;             /* of the last level, which cores share */
    QUERN__ARRAY(quern__system *) systems; /* in the order of registration; they never move */
    uint32_t up_count;                     /* the most up-terms of a system */
    uint32_t reaction_count;               /* systems that are reactions */
    uint32_t max_reaction_rounds;          /* after one sync point */
    uint32_t emitted_channel_count;        /* channels up to the last that a system emits to */

    /* compiled: valid while is_compiled, except for archetypes that are new since compiled_version */
    bool is_compiled;
    uint64_t compiled_version;               /* of the storage's archetypes */
    uint32_t pass_count;                     /* over all segments */
    uint64_t passes_version;                 /* how often the passes have been made anew */
    QUERN__ARRAY(quern__system *) order;     /* of execution */
    QUERN__ARRAY(quern__conflict) conflicts; /* [later * systems + earlier], by position */
    QUERN__ARRAY(quern__segment) segments;   /* of all phases, then of a round of reactions */
    uint32_t first_reaction_segment;
} quern__plan;

static inline const quern_allocator *quern__plan_allocator(const quern__plan *plan)
{
    return &plan->world->storage.allocator;
}

/* Between frames, when what segments prepared no longer holds. */
static inline void quern__plan_unprepare(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->segments.count; i++)
        plan->segments.items[i].prepared_version = 0;
}

static inline quern__conflict *quern__plan_conflict(const quern__plan *plan, uint32_t earlier,
                                                    uint32_t later)
{
    return &plan->conflicts.items[(size_t)later * plan->order.count + earlier];
}

#endif
