/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_CONFLICT_H
#define QUERN_SCHED_SCHEDULE_CONFLICT_H

/* Fills the table of conflicts: for each pair of systems of one phase, the strongest reason to keep their
 * order (access.h). What depends on archetypes is judged as they appear, between the systems that match
 * them and their *partners*: those whose declared accesses could meet theirs. */

#include "sched/schedule/schedule_plan.h"

/* Judges what does not depend on archetypes, and notes each system's partners. The order is there, with the
 * conflicts that were declared. Errors: OUT_OF_MEMORY. */
quern_result quern__conflicts_start(quern__plan *plan);

/* Judges the matches that are new since the last time. The queries have been refreshed. True when a
 * conflict is new or has become stronger. */
bool quern__conflicts_extend(quern__plan *plan);

#endif
