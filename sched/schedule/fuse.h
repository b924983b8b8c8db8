/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_FUSE_H
#define QUERN_SCHED_SCHEDULE_FUSE_H

/* Which systems share a pass.
 *
 * A system may join a pass when
 *   - it and all systems of the pass go over chunks in parallel (not serial, not without terms),
 *   - it does not go by the levels of one relation and the pass by those of another,
 *   - its conflicts with them are local, so that the order within each chunk is all that matters,
 *   - every system before it in the order, with which it conflicts, is in that pass or an earlier one: then
 *     edges lead from earlier passes to later ones, and there is no cycle.
 * Systems are taken in their order. Of the passes that one may join it joins the one that it shares the
 * most components with, the last of equals; if there is none, it starts a new one. */

#include "sched/schedule/schedule_plan.h"

/* Groups the systems of a RUN or EXCLUSIVE segment, whose conflicts are known, into new passes; those of
 * before are destroyed. Their order respects all edges. Errors: OUT_OF_MEMORY; the segment may then have no
 * passes or some. */
quern_result quern__fuse(quern__plan *plan, quern__segment *segment);

/* Why the systems of two passes of a segment must keep their order, the later one having the greater index;
 * the strongest conflict there is. */
quern__conflict quern__fuse_conflict(const quern__pass *earlier, const quern__pass *later);

/* Whether the pass may go by the levels that the system goes by, or the other way round. */
bool quern__fuse_agrees(const quern__pass *pass, const quern__system *system);

/* Whether a system may share a pass with others at all. */
bool quern__fuse_allows(const quern__system *system);

#endif
