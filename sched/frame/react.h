/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_REACT_H
#define QUERN_SCHED_FRAME_REACT_H

/* Rounds of reactions, after each sync point of a frame and before its first system.
 *
 *     while something has happened that a reaction of the schedule reacts to, at most max_reaction_rounds:
 *         each segment of the round: lists what has happened by now, and runs, as segments of phases do
 *         SYNC, the last of these: what they have recorded is applied, and may make for another round
 *
 * Without an exclusive reaction a round has one segment that runs, so all its reactions see the same state
 * of the world. Where the rounds are too many, what has happened is dropped, and the frame goes on; its
 * result names the reactions of the last rounds. */

#include "core/calls/world_commands.h"
#include "sched/frame/schedule_internal.h"

/* Errors end the frame; what has happened and was not yet shown is kept for the next one. */
quern_result quern__react_in_rounds(quern_schedule *schedule, quern__flush_report *report);

/* What a sync point ends with. A world where nobody reacts pays this one look. */
static inline quern_result quern__react(quern_schedule *schedule, quern__flush_report *report)
{
    if (QUERN__LIKELY(!quern__reactions_are_pending(schedule->plan.world->storage.reactions)))
        return QUERN_OK;
    return quern__react_in_rounds(schedule, report);
}

/* Before a frame, or a call between frames: no round was one too many yet. */
static inline void quern__react_start(quern_schedule *schedule)
{
    schedule->is_reaction_cut = false;
}

/* The reactions of the last frame that had any have not run in this one. */
void quern__react_forget_frame(quern_schedule *schedule);

/* When a frame begins: its reactions have not run yet. */
static inline void quern__react_start_frame(quern_schedule *schedule)
{
    if (QUERN__UNLIKELY(schedule->has_reacted)) quern__react_forget_frame(schedule);
}

/* Whether something may have happened that a reaction of the schedule reacts to. */
bool quern__react_is_due(const quern_schedule *schedule);

#endif
