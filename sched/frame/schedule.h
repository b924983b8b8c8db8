/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SCHEDULE_H
#define QUERN_SCHED_FRAME_SCHEDULE_H

/* The schedule: its plan, and what frames keep from one to the next (frame.h). */

#include "core/commands/playback.h"
#include "sched/frame/guard.h"
#include "sched/observe/counters.h"
#include "sched/observe/trace.h"
#include "sched/schedule/plan.h"

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
    bool is_on;             /* in this frame: somebody wants to know */
    bool is_traced;         /* in this frame */
    bool is_learning;       /* from this frame: see profile.h */
    uint64_t watched_count; /* frames in which is_on was true */
    quern_capture *capture; /* of this frame, or NULL */
    uint64_t start_ns;
    uint64_t segment_start_ns,
        segment_dry_ns;      /* when the segment began, and worker 0 without a job until then */
    uint64_t segments_ns;    /* of this frame's segments, less worker 0 without a job */
    quern__sync_stage stage; /* of the sync point that runs; SYNC: none */
    uint64_t stage_start_ns;
    quern__counters counters;
    quern_frame_profile frame; /* the latest */
    quern_frame_profile total; /* of all since the profile began */
    uint64_t frame_count;      /* of those */
} quern__watch;

struct quern_schedule {
    quern__plan plan;
    bool timing;

    /* frames */
    bool is_running;
    bool has_command_counts; /* of systems, from the latest frame */
    uint64_t frame_index;    /* of the frame that runs, or the next one */
    double delta_seconds;
    quern_jobs *jobs;
    uint64_t serial_base;      /* of the segment that runs: see frame.h */
    uint64_t version_base;     /* likewise: what a system writes has this version plus its position */
    quern_commands *recorders; /* one per worker */
    struct quern_context *contexts;
    uint64_t *times_ns; /* [worker * time_stride + system * QUERN__TIME_COUNT + ..] */
    uint32_t time_stride;
    uint32_t worker_count; /* entries of the three above */
    quern__playback playback;
    quern__guards guards; /* in builds with QUERN_CHECKS */
    quern_frame_stats stats;
    quern__watch watch;
};

/* quern_schedule_compile, for another public function, which messages name. */
quern_result quern__schedule_compile(quern_schedule *schedule, const char *function);

/* WORLD_LOCKED, naming the call, while the schedule runs a frame; also in its exclusive systems. */
quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function);

/* The system of a handle, or NULL. */
quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system system);

#endif
