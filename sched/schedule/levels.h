/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_LEVELS_H
#define QUERN_SCHED_SCHEDULE_LEVELS_H

/* How a pass goes level by level.
 *
 * All entities of an archetype are on one level of a relation (core/relations/relation_internal.h). So the tables of a
 * pass are walked in the order of their levels, those of a level as they stand, and each level that has
 * chunks is a stage: a node of the graph, after that of the level before. Where no system is called that
 * goes by levels, a table belongs to the first stage, whatever its level.
 *
 * The last level has all that is deeper, too, and so its entities are each other's targets. They are walked
 * last, in the order of their true depth, as one item: each system that goes by levels is called for all of
 * them, and then the next, so that this is what it would do on its own; other systems are called on their
 * chunks, in between. A view has rows of one depth that are neighbours in a chunk, in the order of
 * archetype, chunk and row; often it is one row. The views of the others come first in the numbers
 * (ordinal), in the order of archetype and chunk as in every pass; those of the last level in the order of
 * the walk. All of that follows from the world alone.
 *
 * Deterministic at any thread count: a system that reads the target of a row reads what is on a lower level
 * or less deep, and thus done, as it would be if the system ran alone on one thread. */

#include "sched/schedule/pass.h"

/* Arranges a pass whose tables have been counted: the walk, the stages, and the views of the last level.
 * Errors: OUT_OF_MEMORY. */
quern_result quern__levels_arrange(quern__pass *pass);

/* Whether the pass goes over the last level, in the order of depths. */
static inline bool quern__levels_has_depths(const quern__pass *pass)
{
    return pass->stages[pass->stage_count - 1].is_deep;
}

/* Whether these depths, if it does, are as they were when it was arranged. */
static inline bool quern__levels_are_known(const quern__pass *pass)
{
    return !quern__levels_has_depths(pass) || pass->links_version == pass->levels->links.version;
}

#endif
