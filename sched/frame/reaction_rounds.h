/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_REACTION_ROUNDS_H
#define QUERN_SCHED_FRAME_REACTION_ROUNDS_H

/* Rounds of reactions. They run after each sync point of a frame, and before its first system.
 *
 *     while changes are pending for a reaction of the schedule, at most max_reaction_rounds times:
 *         each segment of the round: takes the changes that are pending by now, and runs like other segments
 *         SYNC, the last segment: applies the commands of the reactions, which may cause another round
 *
 * Without an exclusive reaction, one segment of a round runs systems, so all reactions see the same state
 * of the world. If the limit is reached, pending changes are discarded and the frame continues. The result
 * of the frame then names the reactions of the last rounds. */

#include "core/calls/world_commands.h"
#include "sched/frame/schedule_internal.h"

/* Runs rounds until no change is pending. Errors end the frame; changes that were not shown to reactions
 * remain pending for the next frame. */
quern_result quern__reaction_rounds_run(quern_schedule *schedule, quern__flush_report *report);

/* Runs reactions at the end of a sync point. Costs one branch if no reaction of the world has pending
 * changes. */
static inline quern_result quern__run_pending_reactions(quern_schedule *schedule,
                                                        quern__flush_report *report)
{
    if (QUERN__LIKELY(!quern__reactions_are_pending(schedule->plan.world->storage.reactions)))
        return QUERN_OK;
    return quern__reaction_rounds_run(schedule, report);
}

/* Clears the mark of a reached limit. Called before a frame, and before reactions that run between
 * frames. */
static inline void quern__reaction_rounds_clear_limit(quern_schedule *schedule)
{
    schedule->has_reached_round_limit = false;
}

/* Sets the statistics of reactions to zero, after an earlier frame in which reactions ran. */
void quern__reaction_rounds_clear_frame(quern_schedule *schedule);

/* Prepares the reactions for a new frame, in which none has run yet. */
static inline void quern__reaction_rounds_start_frame(quern_schedule *schedule)
{
    if (QUERN__UNLIKELY(schedule->has_reacted)) quern__reaction_rounds_clear_frame(schedule);
}

/* Returns whether changes may be pending for a reaction of the schedule. */
bool quern__reaction_rounds_are_due(const quern_schedule *schedule);

#endif
