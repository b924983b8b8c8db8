/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_FUSE_H
#define QUERN_SCHED_SCHEDULE_FUSE_H

/* Groups systems into passes.
 *
 * A system may join a pass when
 *   - the system and all systems of the pass iterate chunks in parallel (none is serial, none lacks terms),
 *   - the system and the pass do not run level by level over different relations,
 *   - the system's conflicts with the systems of the pass are local, so only the order within each chunk matters,
 *   - every earlier system that conflicts with the system is in that pass or in an earlier one. So all edges lead from
 *     earlier to later passes, and the graph has no cycle.
 * Systems are assigned in the order of execution. A system joins the eligible pass with which it shares the most
 * components, the last such pass on a tie. If no pass is eligible, the system starts a new pass. */

#include "sched/schedule/schedule_plan.h"

/* Groups the systems of a RUN or EXCLUSIVE segment into new passes, and destroys the segment's previous passes. The
 * order of the passes respects all edges, and each pass lists the passes that it waits for. Precondition: the conflicts
 * of the systems are known. Errors: OUT_OF_MEMORY; the segment may then have no passes or only some of them. */
quern_result quern__fuse(quern__plan *plan, quern__segment *segment);

/* Returns whether the system may join the pass as far as levels are concerned: both are ordered by the levels of the
 * same relation, or one of them is not ordered by levels. */
bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system);

/* Returns whether a system may share a pass: it has terms and is not serial. */
bool quern__fuse_allows_system(const quern__system *system);

#endif
