/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_H
#define QUERN_SCHED_SCHEDULE_H

/* The schedule: its systems, what compiling made of them (compile.h), and what frames keep from one to the next
 * (frame.h). */

#include "core/playback.h"
#include "core/world.h"
#include "sched/system.h"

struct quern_context;

/* What a frame does, one step after another. */
typedef enum quern__step_kind {
    QUERN__STEP_RUN,       /* systems, as a graph */
    QUERN__STEP_EXCLUSIVE, /* one system, alone, on the caller */
    QUERN__STEP_SYNC       /* apply the commands recorded since the last sync */
} quern__step_kind;

typedef struct quern__step {
    quern__step_kind kind;
    uint32_t phase;
    uint32_t first, end; /* systems, by position in the order of execution */
    quern_graph *graph;  /* of a RUN */
} quern__step;

struct quern_schedule {
    quern_world *world;
    char (*phases)[QUERN_MAX_NAME_BYTES + 1];
    uint32_t phase_count;
    bool timing;
    QUERN__ARRAY(quern__system *) systems; /* in the order of registration; they never move */

    /* compiled: valid while is_compiled, except that conflicts may be missing for new archetypes */
    bool is_compiled;
    QUERN__ARRAY(quern__system *) order;     /* of execution */
    QUERN__ARRAY(quern__conflict) conflicts; /* [later * systems + earlier], by position */
    QUERN__ARRAY(quern__step) steps;

    /* frames */
    bool is_running;
    uint64_t frame_index; /* of the frame that runs, or the next one */
    double delta_seconds;
    quern_jobs *jobs;
    quern_commands *recorders; /* one per worker */
    struct quern_context *contexts;
    uint64_t *times_ns; /* [worker * time_stride + system] */
    uint32_t time_stride;
    uint32_t worker_count; /* entries of the three above */
    quern__playback playback;
    quern_frame_stats stats;
};

static inline quern__conflict *quern__schedule_conflict(const quern_schedule *schedule, uint32_t earlier,
                                                        uint32_t later)
{
    return &schedule->conflicts.items[(size_t)later * schedule->order.count + earlier];
}

/* The system of a handle, or NULL. */
quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system system);

#endif
