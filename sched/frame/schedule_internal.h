/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H
#define QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H

/* The schedule: its plan, and what frames keep from one to the next (frame.h). */

#include "core/events/event_internal.h"
#include "core/playback/playback.h"
#include "sched/frame/guard.h"
#include "sched/schedule/frame_observer.h"
#include "sched/schedule/schedule_plan.h"

#include <quern/schedule.h>

struct quern_context;

struct quern_schedule {
    quern__plan plan;
    bool timing;
    quern__frame_observer *observer;

    /* frames */
    bool is_running;
    bool is_observed;        /* this frame: the observer is looking */
    bool has_command_counts; /* of systems, from the last frame */
    bool has_history;        /* which saves it: see sched/history */
    uint64_t frame_index;    /* of the frame that runs, or the next one */
    double delta_seconds;
    quern_jobs *jobs;
    uint32_t caller_index; /* the worker that runs the frame */
    uint64_t serial_base;  /* of the segment that runs: see frame.h */
    uint64_t version_base; /* likewise: what a system writes has this version plus its position */
    QUERN__ARRAY(quern_commands *) recorders; /* one per worker: see workers.h */
    QUERN__ARRAY(struct quern_context *) contexts;
    uint32_t worker_count;           /* entries of both */
    const void **addresses;          /* of up-terms: an array for each worker, one after the other */
    uint32_t addressed_worker_count; /* workers that have such an array */
    uint32_t up_count;               /* up-terms that such an array has room for */

    /* Events (event_frame.h): an emitter for each worker and each of the first channels, by worker. */
    quern__emitter **emitters;
    uint32_t emitter_row_count, emitter_channel_count;
    _Atomic bool has_emitted;     /* some callback has asked for an emitter since the last sync point */
    quern_result emit_result;     /* of this frame: an event could not be emitted */
    quern__event_loss event_loss; /* of this frame */

    quern__playback playback;
    quern__guards guards; /* in builds with QUERN_CHECKS */
    quern_frame_stats stats;

    /* rounds of reactions: see react.h */
    bool has_reacted;         /* in this frame, or the last */
    bool is_reaction_cut;     /* there were too many, in this frame */
    char reaction_trail[512]; /* the systems of the last round: "'a' -> 'b' -> 'a'" */

    quern_schedule *next_schedule; /* of the world's */
};

/* The recorders of all workers. */
static inline quern__recorders quern__schedule_recorders(const quern_schedule *schedule)
{
    return (quern__recorders){schedule->recorders.items, schedule->worker_count};
}

/* Creates a schedule with the observer that `create_observer` makes. Arguments and errors: as
 * quern_schedule_create, in whose name messages speak. */
quern_result quern__schedule_create(quern_world *world, const quern_schedule_def *def,
                                    quern__frame_observer_create *create_observer,
                                    quern_schedule **out_schedule);

/* Fails with WORLD_LOCKED, naming the call, while the schedule runs a frame; also in its exclusive systems. */
quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function);

/* quern_schedule_run, for another public function, which messages name. */
quern_result quern__schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 const char *function);

/* quern_schedule_compile, for another public function, which messages name. */
quern_result quern__schedule_compile(quern_schedule *schedule, const char *function);

/* Destroys the commands that failed frames have left. No frame runs. */
void quern__schedule_discard_kept(quern_schedule *schedule);

/* The system of a handle, or NULL. */
quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system system);

#endif
