/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_REACTING_H
#define QUERN_SCHED_SCHEDULE_REACTING_H

/* What a pass of reactions goes over: not the chunks of its tables, but the rows to which something
 * happened (core/reactions/reaction.h). That is listed anew for each round.
 *
 *   stage 1   copies of what is gone, run by run; left out where there are none
 *   stage 2   chunks with rows that were added or set; on each the pass's systems are called in order, each
 *             for its runs of such rows
 *
 * Stages are over before the next begins, so a system that keeps an index sees what is gone before what is
 * added. Copies belong to one system each, so that the systems of a pass need no order over them.
 *
 * The numbers of a system's views (ordinal) begin with what is gone, in the order of archetype and row;
 * then come its chunks, each of which has one, whatever its runs. All of that follows from the world alone.
 *
 * An exclusive reaction changes the world while it is called. So its views have copies of the handles, made
 * before, and no columns but those of what is gone. */

#include "sched/schedule/schedule_plan.h"

/* Whether something may have happened that a system of the segment reacts to. */
bool quern__reacting_is_due(const quern__plan *plan, const quern__segment *segment);

/* Takes what has happened, and arranges it as items of the pass. What is disabled drops it. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__reacting_prepare(quern__pass *pass);

/* When the segment is over: what was taken goes, with its copies; where it could not run, it is as if
 * nothing had been taken. */
void quern__reacting_finish(const quern__plan *plan, const quern__segment *segment, bool has_run);

/* Forgets all that has happened. */
void quern__reacting_drop(const quern__plan *plan);

#endif
