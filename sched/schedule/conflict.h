/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_CONFLICT_H
#define QUERN_SCHED_SCHEDULE_CONFLICT_H

/* The table of conflicts: for each pair of systems between which no sync point is guaranteed (one phase, or two
 * reactions), the strongest reason to keep their order (access.h). Conflicts that depend on archetypes are detected
 * when archetypes appear: between each system that matches the archetype and its *partners*, the systems with declared
 * accesses that could conflict with its own. */

#include "sched/schedule/schedule_plan.h"

/* Detects the conflicts that do not depend on archetypes, and lists each system's partners. Precondition: the systems
 * are ordered, and the table holds the conflicts declared by before/after rules. Errors: OUT_OF_MEMORY. */
quern_result quern__conflicts_start(quern__plan *plan);

/* Detects the conflicts that result from query matches added since the last call. Precondition: the queries have been
 * refreshed. Returns true if a conflict is new or has become stronger. */
bool quern__conflicts_extend(quern__plan *plan);

#endif
