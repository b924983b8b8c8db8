/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_CONFLICT_H
#define QUERN_SCHED_SCHEDULE_CONFLICT_H

/* The pairs of systems that must keep their order, among those between which no sync point is guaranteed (one phase, or
 * two reactions), and whether their conflict is local (access.h).
 *
 * Pairs are found row by row, one row per later system. An index of the systems by component and resource gives its
 * *partners*, the earlier systems whose declared accesses could conflict with its own. Conflicts over resources, between
 * lookups, and by before/after rules need nothing else. The others are found when archetypes appear: two partners by
 * their terms conflict if they match a common archetype; a system with lookups or up-terms conflicts with the partners
 * that use these components in an archetype that they match. So the work is bit operations on rows, and only a pair
 * that really meets is looked at by itself.
 *
 * A conflict is kept until the next complete compilation, even if its archetype is removed. Memory grows with the number
 * of pairs that conflict, not with the number of all pairs (pair_set.h). */

#include "sched/schedule/schedule_plan.h"

/* Forgets all pairs, and indexes the accesses of the systems. Precondition: the systems are ordered. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__conflicts_start(quern__plan *plan);

/* Finds the conflicts that result from query matches added since the last call; the first call after
 * quern__conflicts_start finds the others, too. *out_found: whether a pair is new or its conflict is no longer local.
 * Precondition: the queries have been refreshed. Errors: OUT_OF_MEMORY; quern__conflicts_start must then be called
 * again. */
quern_result quern__conflicts_extend(quern__plan *plan, bool *out_found);

void quern__conflicts_release(quern__plan *plan);

/* Return whether the systems at two positions must keep their order, and whether the reason is not local. */
static inline bool quern__conflicts_have(const quern__plan *plan, uint32_t earlier, uint32_t later)
{
    return quern__pair_set_has(&plan->conflicts.all, earlier, later);
}

static inline bool quern__conflicts_have_global(const quern__plan *plan, uint32_t earlier, uint32_t later)
{
    return quern__pair_set_has(&plan->conflicts.global, earlier, later);
}

/* Returns the strongest reason why two systems must keep their order, or NO_CONFLICT. Walks the matches of both
 * systems: for descriptions. */
quern__conflict quern__conflict_between(const quern__system *earlier, const quern__system *later);

#endif
