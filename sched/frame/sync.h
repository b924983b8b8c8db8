/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SYNC_H
#define QUERN_SCHED_FRAME_SYNC_H

/* Sync points: the commands that have been recorded are applied, with the threads of the frame. */

#include "core/calls/world_commands.h"
#include "sched/frame/event_frame.h"
#include "sched/frame/schedule_internal.h"

/* Applies what code between frames and parallel queries have left, before a frame's first system. Errors
 * end the frame. */
quern_result quern__sync_world(quern_schedule *schedule, quern__flush_report *report);

/* Applies what systems have recorded; that may make archetypes. Errors end the frame. */
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

/* The same where events wait: what was emitted is published when commands have been applied. */
quern_result quern__sync_events(quern_schedule *schedule, quern__flush_report *report);

/* A sync point. One without commands, as most of them are, costs a look at the recorders; one without
 * events, a branch. */
static inline quern_result quern__sync(quern_schedule *schedule, quern__flush_report *report)
{
    if (QUERN__UNLIKELY(quern__schedule_has_events(schedule))) return quern__sync_events(schedule, report);
    return quern__schedule_has_commands(schedule) ? quern__sync_commands(schedule, report) : QUERN_OK;
}

#endif
