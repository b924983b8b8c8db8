/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_COMPILE_H
#define QUERN_SCHED_SCHEDULE_COMPILE_H

/* Compiles the systems of a schedule into segments.
 *
 *   order      The systems are ordered by phase, then before/after, then registration.
 *   conflicts  The pairs of systems of one phase that must keep their order.
 *   segments   Each phase is split at its exclusive systems, and where a system must see commands of another one. Every
 *              split and the end of the phase is a sync point.
 *   passes     The systems between two sync points are grouped into passes: the systems of a pass iterate the chunks
 *              together.
 *   graphs     The passes of a segment form a graph. Its edges are the conflicts that other edges do not imply.
 *
 * Each pass contributes the nodes begin -> run -> end; nodes that the pass does not need are omitted. Run is a chain of
 * nodes, one per stage of the pass. */

#include "sched/schedule/schedule_plan.h"

/* Compiles the schedule: completely if it is not compiled (systems were added), otherwise only the conflicts and tables
 * of new archetypes. O(1) if nothing changed. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT, OUT_OF_MEMORY; after an error
 * the schedule is not compiled, and the next call tries again. */
quern_result quern__compile(quern__plan *plan);

/* Sets the item counts of the graph nodes of a RUN segment. Precondition: its passes are prepared. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__compile_prepare(const quern__segment *segment);

/* Discards the compiled state, so that nothing refers to a system that is about to be destroyed, or to phases. The order
 * of execution stays, without the system, until the next compilation. system: may be NULL. */
void quern__compile_forget(quern__plan *plan, const quern__system *system);

void quern__compile_release(quern__plan *plan);

/* ------------------------------------------------------------------------------------ order of execution */

/* Orders the systems, and lists the before/after rules by position. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT,
 * OUT_OF_MEMORY. */
quern_result quern__order_systems(quern__plan *plan);

/* ------------------------------------------------------------------------------------------------ levels */

/* Returns whether the pass iterates a last level, in the order of depth. */
static inline bool quern__levels_has_depths(const quern__pass *pass)
{
    return pass->stages[pass->stage_count - 1].is_deep;
}

/* Returns whether the depths of the last level, if the pass has one, are unchanged since the pass was arranged. */
static inline bool quern__levels_depths_are_current(const quern__pass *pass)
{
    return !quern__levels_has_depths(pass) || pass->links_version == pass->levels->links.version;
}

/* -------------------------------------------------------------------------- grouping systems into passes */

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

/* Groups the systems of a RUN or EXCLUSIVE segment into new passes, and destroys the segment's previous passes. The
 * order of the passes respects all edges, and each pass lists the passes that it waits for. Precondition: the conflicts
 * of the systems are known. Errors: OUT_OF_MEMORY; the segment may then have no passes or only some of them. */
quern_result quern__fuse(quern__plan *plan, quern__segment *segment);

/* Returns whether the system may join the pass as far as levels are concerned: both are ordered by the levels of the
 * same relation, or one of them is not ordered by levels. */
bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system);

/* --------------------------------------------------------------------------------------------- conflicts */

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
 * of pairs that conflict, not with the number of all pairs (access.h). */

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
