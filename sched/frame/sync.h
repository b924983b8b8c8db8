/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SYNC_H
#define QUERN_SCHED_FRAME_SYNC_H

/* Sync points: they apply the recorded commands, on the threads of the frame. */

#include "core/calls/world_commands.h"
#include "sched/frame/event_frame.h"
#include "sched/frame/schedule_internal.h"

/* Applies the commands of code between frames and of parallel queries, before the first system of a frame.
 * Errors end the frame. */
quern_result quern__sync_world(quern_schedule *schedule, quern__flush_report *report);

/* Applies the commands that systems have recorded, which may create archetypes. Errors end the frame. */
quern_result quern__sync_commands(quern_schedule *schedule, quern__flush_report *report);

static inline bool quern__schedule_has_commands(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        const quern_commands *recorder = schedule->recorders.items[i];
        if ((recorder->streams.count | (uint32_t)recorder->failed) != 0 ||
            quern__accumulator_is_used(recorder))
            return true;
    }
    return false;
}

/* Runs a sync point with events: applies commands, if there are any, and then publishes the emitted events.
 * Errors end the frame. */
quern_result quern__sync_events(quern_schedule *schedule, quern__flush_report *report);

/* Runs a sync point. Most sync points have no commands, which costs a check of each recorder. A sync point
 * without events costs one branch for them. */
static inline quern_result quern__sync(quern_schedule *schedule, quern__flush_report *report)
{
    if (QUERN__UNLIKELY(quern__schedule_has_events(schedule))) return quern__sync_events(schedule, report);
    return quern__schedule_has_commands(schedule) ? quern__sync_commands(schedule, report) : QUERN_OK;
}

#endif
