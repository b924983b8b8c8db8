/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_LEVELS_H
#define QUERN_SCHED_SCHEDULE_LEVELS_H

/* Level-by-level execution of a pass.
 *
 * All entities of an archetype are on one level of a relation (core/relations/relation_internal.h). So the
 * pass iterates its tables in ascending order of level, and the tables of one level in ascending order of
 * archetype. Each level that has chunks is a stage: a node of the graph, after the node of the previous
 * level. A table on which the pass calls no level-ordered system belongs to the first stage, whatever its
 * level.
 *
 * The last level also holds all deeper entities, so its entities may be targets of each other. The pass
 * iterates these entities last, in the order of their true depth, as one item. Each level-ordered system is
 * called for all of them before the next system starts, exactly as if it ran alone. The other systems are
 * called on their chunks, in between. A view of the last level holds adjacent rows of one chunk that have
 * the same depth, often a single row. Views of equal depth are ordered by archetype, chunk and row.
 *
 * Ordinals: the views of all other levels are numbered first, by archetype and chunk as in every pass. The
 * views of the last level follow in the order of iteration. Stages, views and ordinals depend on the world
 * alone.
 *
 * The result is the same at any thread count. The target of a row is on a lower level or at a smaller
 * depth, so it is already processed when a system reads it, as if the system ran alone on one thread. */

#include "sched/schedule/pass.h"

/* Arranges a pass: the order of its tables, the stages, and the views of the last level. Precondition: the tables have
 * been counted. Errors: OUT_OF_MEMORY. */
quern_result quern__levels_arrange(quern__pass *pass);

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

#endif
