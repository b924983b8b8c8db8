/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_SCHEDULE_H
#define QUERN_SCHED_SCHEDULE_SCHEDULE_H

/* The schedule: its systems, what compiling made of them (compile.h), and what frames keep from one to the
 * next (frame.h). */

#include "core/commands/playback.h"
#include "core/world/world.h"
#include "sched/frame/seal.h"
#include "sched/observe/meter.h"
#include "sched/observe/trace.h"
#include "sched/schedule/pass.h"

#include <quern/schedule.h>

struct quern_context;

/* What is timed of a system: its views; begin, end and condition; of the first one of a pass: the pass's
 * jobs, a chunk of those whose chunks took longest, and the number of chunks in jobs that were not
 * timed. */
enum {
    QUERN__TIME_VIEWS,
    QUERN__TIME_HOOKS,
    QUERN__TIME_JOBS,
    QUERN__TIME_LONGEST,
    QUERN__TIME_COUNTED,
    QUERN__TIME_COUNT
};

/* What the profile keeps of a schedule: see profile.h. */
typedef struct quern__watch {
    quern_trace *trace;    /* or NULL */
    uint32_t trace_number; /* of the schedule, in the trace */
    bool is_profiling;
    bool is_on;                 /* in this frame: somebody wants to know */
    bool is_traced;             /* in this frame */
    bool is_learning;           /* from this frame: see profile.h */
    uint64_t watched_count;     /* frames in which is_on was true */
    quern_recording *recording; /* of this frame, or NULL */
    uint64_t start_ns;
    uint64_t step_start_ns, step_dry_ns; /* when the step began, and worker 0 without a job until then */
    uint64_t steps_ns;                   /* of this frame's steps, less worker 0 without a job */
    quern__sync_stage stage;             /* of the sync point that runs; SYNC: none */
    uint64_t stage_start_ns;
    quern__meters meters;
    quern_frame_profile frame; /* the latest */
    quern_frame_profile total; /* of all since the profile began */
    uint64_t frame_count;      /* of those */
} quern__watch;

/* What a frame does, one step after another. */
typedef enum quern__step_kind {
    QUERN__STEP_RUN,       /* passes, as a graph */
    QUERN__STEP_EXCLUSIVE, /* one system, alone, on the caller */
    QUERN__STEP_SYNC       /* apply the commands recorded since the last sync */
} quern__step_kind;

typedef struct quern__step {
    quern__step_kind kind;
    uint32_t phase;
    uint32_t first, end; /* systems, by position in the order of execution */

    /* of a RUN or EXCLUSIVE */
    QUERN__ARRAY(quern__pass *) passes; /* in an order that respects all edges */
    quern_graph *graph;                 /* of a RUN */
    uint64_t prepared_version;          /* of the storage's structure; 0: not prepared */
    uint32_t prepared_threads;
    uint32_t serial_count; /* serials that its streams may take */
    bool is_idle;          /* nothing to call, whatever the frame */
} quern__step;

typedef struct quern__phase {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t first_step, end_step; /* compiled */
    double step_seconds;           /* of a fixed step; 0: once per frame */
    uint32_t max_step_count;       /* of one frame */
    double elapsed_seconds;        /* not yet stepped through */
} quern__phase;

struct quern_schedule {
    quern_world *world;
    quern__phase *phases;
    uint32_t phase_count;
    bool timing, fuse;
    uint64_t shuffle_seed;                 /* 0: none */
    size_t cache_bytes;                    /* of one core */
    QUERN__ARRAY(quern__system *) systems; /* in the order of registration; they never move */

    /* compiled: valid while is_compiled, except for archetypes that are new since compiled_version */
    bool is_compiled;
    uint64_t compiled_version;               /* of the storage's archetypes */
    QUERN__ARRAY(quern__system *) order;     /* of execution */
    QUERN__ARRAY(quern__conflict) conflicts; /* [later * systems + earlier], by position */
    QUERN__ARRAY(quern__step) steps;

    /* frames */
    bool is_running;
    bool has_command_counts; /* of systems, from the latest frame */
    uint64_t frame_index;    /* of the frame that runs, or the next one */
    double delta_seconds;
    quern_jobs *jobs;
    uint64_t serial_base;      /* of the step that runs: see frame.h */
    uint64_t version_base;     /* likewise: what a system writes has this version plus its position */
    quern_commands *recorders; /* one per worker */
    struct quern_context *contexts;
    uint64_t *times_ns; /* [worker * time_stride + system * QUERN__TIME_COUNT + ..] */
    uint32_t time_stride;
    uint32_t worker_count; /* entries of the three above */
    quern__playback playback;
    quern__seals seals; /* in builds with QUERN_CHECKS */
    quern_frame_stats stats;
    quern__watch watch;
};

static inline const quern_allocator *quern__schedule_allocator(const quern_schedule *schedule)
{
    return &schedule->world->storage.allocator;
}

/* Between frames, when what steps prepared no longer holds. */
static inline void quern__schedule_unprepare(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->steps.count; i++)
        schedule->steps.items[i].prepared_version = 0;
}

static inline quern__conflict *quern__schedule_conflict(const quern_schedule *schedule, uint32_t earlier,
                                                        uint32_t later)
{
    return &schedule->conflicts.items[(size_t)later * schedule->order.count + earlier];
}

/* quern_schedule_compile, for another public function, which messages name. */
quern_result quern__schedule_compile(quern_schedule *schedule, const char *function);

/* WORLD_LOCKED, naming the call, while the schedule runs a frame; also in its exclusive systems. */
quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function);

/* The system of a handle, or NULL. */
quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system system);

#endif
