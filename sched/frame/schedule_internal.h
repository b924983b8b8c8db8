/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H
#define QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H

/* The schedule: its plan, and the state that frames keep from one to the next (frame.h). */

#include "core/events/event_internal.h"
#include "core/playback/playback.h"
#include "sched/frame/guard.h"
#include "sched/schedule/frame_observer.h"
#include "sched/schedule/schedule_plan.h"

#include <quern/schedule.h>

struct quern_context;

struct quern_schedule {
    quern__plan plan;
    const char *name; /* behind the phases in the same allocation; NULL if the schedule has no name */
    bool measures_times;
    quern__frame_observer *observer;

    /* frames */
    bool is_running;
    bool is_observed;        /* the observer observes the current frame */
    bool has_command_counts; /* some system's command_count must be cleared for the next frame */
    bool has_history;        /* a history saves the schedule (sched/history) */
    uint64_t frame_index;    /* index of the current frame, or between frames of the next one */
    double delta_seconds;
    quern_jobs *jobs;
    uint32_t caller_index; /* worker that runs the frame */
    uint64_t serial_base;  /* first serial of the current segment (frame.h) */
    /* Of the current segment: a system's writes have version version_base plus its position. */
    uint64_t version_base;
    QUERN__ARRAY(quern_commands *) recorders; /* one per worker (workers.h) */
    QUERN__ARRAY(struct quern_context *) contexts;
    uint32_t worker_count; /* entries of recorders, and of contexts */
    /* Working memory for up-terms: one array per worker, one after another. */
    const void **addresses;
    uint32_t addressed_worker_count; /* number of workers with an array in `addresses` */
    uint32_t up_count;               /* number of up-terms that each array in `addresses` has room for */

    /* Events (event_frame.h): one emitter per worker and channel, ordered by worker. Covers the first
     * emitter_channel_count channels. */
    quern__emitter **emitters;
    uint32_t emitter_row_count, emitter_channel_count;
    _Atomic bool has_emitted;     /* a callback has opened an emitter since the last sync point */
    quern_result emit_result;     /* error of the current frame if an event could not be emitted */
    quern__event_loss event_loss; /* events lost in the current frame */

    quern__playback playback;
    quern__guards guards; /* empty in builds without QUERN_CHECKS */
    quern_frame_stats stats;

    /* rounds of reactions (reaction_rounds.h) */
    bool has_reacted;             /* in the current frame, or in the last one */
    bool has_reached_round_limit; /* the limit of rounds was reached in the current frame */
    char reaction_trail[512];     /* reactions of the last rounds, for messages: "'a' -> 'b' -> 'a'" */

    quern_schedule *next_schedule; /* in the world's list of schedules */
};

/* Returns the recorders of all workers. */
static inline quern__recorders quern__schedule_recorders(const quern_schedule *schedule)
{
    return (quern__recorders){schedule->recorders.items, schedule->worker_count};
}

/* Creates a schedule with the observer that `create_observer` creates. Arguments and errors: as
 * quern_schedule_create; messages name that function. */
quern_result quern__schedule_create(quern_world *world, const quern_schedule_def *def,
                                    quern__frame_observer_create *create_observer,
                                    quern_schedule **out_schedule);

/* Fails with WORLD_LOCKED while the schedule runs a frame, also in its exclusive systems. Messages name
 * `function`. */
quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function);

/* Runs a frame like quern_schedule_run. Messages name `function`. */
quern_result quern__schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 const char *function);

/* Compiles the schedule like quern_schedule_compile. Messages name `function`. */
quern_result quern__schedule_compile(quern_schedule *schedule, const char *function);

/* Destroys the commands that failed frames have kept. Must not be called while a frame runs. */
void quern__schedule_discard_kept(quern_schedule *schedule);

/* Returns the system of a handle, or NULL if the handle is invalid. */
quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system system);

#endif
