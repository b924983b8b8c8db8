/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H
#define QUERN_SCHED_SCHEDULE_SCHEDULE_PLAN_H

/* The plan of a schedule: the declared systems and phases, and the result of compiling them (compile.h):
 * execution order, conflicts and segments. Frames execute the plan; the state of frames is in
 * sched/frame. */

#include "core/base/map.h"
#include "core/world/world_internal.h"
#include "sched/schedule/access_index.h"
#include "sched/schedule/pair_set.h"
#include "sched/schedule/pass.h"

#include <quern/graph.h>
#include <quern/schedule.h>

/* The kinds of segments. A frame runs its segments one after another. */
typedef enum quern__segment_kind {
    QUERN__SEGMENT_RUN,       /* a graph of passes, on all threads */
    QUERN__SEGMENT_EXCLUSIVE, /* one system, alone, on the calling thread */
    QUERN__SEGMENT_SYNC       /* a sync point: applies the commands recorded since the previous one */
} quern__segment_kind;

typedef struct quern__segment {
    quern__segment_kind kind;
    uint32_t phase;
    bool runs_reactions; /* belongs to a round of reactions; `phase` is not used */
    uint32_t first, end; /* systems, by position in execution order */

    /* of RUN and EXCLUSIVE segments */
    QUERN__ARRAY(quern__pass *) passes; /* in an order that respects all edges */
    quern_graph *graph;                 /* of a RUN segment */
    /* 1 + structure version of the storage when prepared; 0: not prepared. */
    uint64_t prepared_version;
    uint32_t prepared_threads;
    bool has_depths;       /* some pass iterates the last level of a relation */
    bool has_targets;      /* some system has a target term */
    bool has_readers;      /* some system reads events */
    bool has_items;        /* some system iterates events (quern_system_def.items) */
    uint32_t serial_count; /* number of serials for its command streams */
    bool is_idle;          /* no frame has anything to call until the segment is prepared again */
} quern__segment;

typedef struct quern__phase {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t first_segment, end_segment; /* set by quern__compile */
    void *user_data;                     /* user data of the phase's systems that have none of their own */
    double step_seconds;                 /* fixed time step; 0: the phase runs once per frame */
    uint32_t max_step_count;             /* maximum number of steps per frame */
    double elapsed_seconds;              /* time that no step has covered yet */
} quern__phase;

/* Two systems of which the first must run before the second. */
typedef struct quern__order_pair {
    uint32_t first, second;
} quern__order_pair;

/* The systems that must keep their order, by position (conflict.h). */
typedef struct quern__conflicts {
    quern__pair_set all;
    quern__pair_set global; /* those of `all` whose conflict is not local */
    quern__access_index index;
    QUERN__ARRAY(uint64_t) words; /* bit sets of positions: working memory */
} quern__conflicts;

typedef struct quern__plan {
    struct quern_schedule *schedule; /* schedule that executes the plan; opaque to this room */
    const quern__pass_functions *functions;

    /* declared */
    quern_world *world;
    quern__phase *phases;
    uint32_t phase_count;
    bool fuses_systems;
    uint64_t shuffle_seed; /* for tests: seed of a random order of passes and items; 0: none */
    quern_prefetch prefetch;
    size_t own_cache_bytes;                /* size of the cache that each core has to itself */
    size_t shared_cache_bytes;             /* size of the last-level cache, which cores share */
    QUERN__ARRAY(quern__system *) systems; /* in order of registration; their addresses are stable */
    quern__map names;        /* hash of a name -> 1 + index of the last registered system with that hash */
    uint32_t up_count;       /* largest number of up-terms of one system */
    uint32_t reaction_count; /* number of systems that are reactions */
    uint32_t max_reaction_rounds;   /* limit after one sync point */
    uint32_t emitted_channel_count; /* 1 + largest index of an emitted channel; 0: none */

    /* Compiled: valid while is_compiled, except for archetypes that are newer than compiled_version. */
    bool is_compiled;
    uint64_t compiled_version;           /* archetypes_version of the storage when compiled */
    uint32_t pass_count;                 /* number of passes in all segments */
    uint64_t passes_version;             /* incremented whenever passes are rebuilt */
    QUERN__ARRAY(quern__system *) order; /* systems in execution order */
    /* The before/after rules by position, each once, ascending by second system, then first. */
    QUERN__ARRAY(quern__order_pair) rules;
    quern__conflicts conflicts;
    bool has_pairs; /* the pairs of `conflicts` are known for all matches that were checked */
    /* By position: index of the system's pass in its segment. Room for as many numbers more, as working memory. */
    QUERN__ARRAY(uint32_t) pass_indices;
    QUERN__ARRAY(quern__segment) segments; /* of all phases, then of a round of reactions */
    uint32_t first_reaction_segment;
} quern__plan;

static inline const quern_allocator *quern__plan_allocator(const quern__plan *plan)
{
    return &plan->world->storage.allocator;
}

/* Makes the next run of each segment prepare its passes again. Must not be called while a segment runs. */
static inline void quern__plan_invalidate_segments(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->segments.count; i++)
        plan->segments.items[i].prepared_version = 0;
}

/* Returns the system with the name, or NULL. O(1). */
quern__system *quern__plan_find_system(const quern__plan *plan, const char *name);

/* Makes sure that quern__plan_add_system has memory for one more system. Returns false if out of memory. */
bool quern__plan_reserve_system(quern__plan *plan);

/* Appends a system to the plan's systems. Preconditions: memory is reserved, and no system has its name. */
void quern__plan_add_system(quern__plan *plan, quern__system *system);

/* Destroys the plan's systems. Precondition: the compiled state is released (compile.h). */
void quern__plan_release_systems(quern__plan *plan);

#endif
