/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_REACTION_PASS_H
#define QUERN_SCHED_SCHEDULE_REACTION_PASS_H

/* A pass of reactions. It does not iterate the chunks of its tables, but the rows that were added, set or
 * removed (core/reactions/reaction.h). These rows are listed again for each round.
 *
 *   stage 1   copies of removed rows, block by block; omitted if there are none
 *   stage 2   chunks with rows that were added or set: on each chunk, the systems are called in order, each
 *             on its contiguous ranges of such rows
 *
 * Stage 1 finishes before stage 2 begins, so a system that maintains an index sees removed rows before
 * added ones. Each copy belongs to one system, so the systems of a pass need no order in stage 1.
 *
 * Ordinals: the views of copies are numbered first, in order of archetype and row. Then each chunk gets one
 * ordinal per kind of change, whatever the number of its row ranges. The numbering depends on the world
 * alone.
 *
 * An exclusive reaction changes the world while it is called. So its views of stage 2 hold copies of the
 * handles, made before the first call, and no columns. */

#include "sched/schedule/schedule_plan.h"

/* Returns whether changes may be pending for a system of the segment. */
bool quern__reaction_pass_is_due(const quern__plan *plan, const quern__segment *segment);

/* Takes the pending changes of the pass's systems and arranges them as items. Discards the changes of
 * disabled systems. Errors: OUT_OF_MEMORY. */
quern_result quern__reaction_pass_prepare(quern__pass *pass);

/* Ends the segment in this round. If has_run, discards the taken changes and copies; otherwise they are
 * pending again. */
void quern__reaction_pass_finish(const quern__plan *plan, const quern__segment *segment, bool has_run);

/* Discards all pending changes of the plan's reactions. */
void quern__reaction_pass_drop_changes(const quern__plan *plan);

#endif
