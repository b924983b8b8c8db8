/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_COMPILE_H
#define QUERN_SCHED_SCHEDULE_COMPILE_H

/* Compiles the systems of a schedule into segments.
 *
 *   order      The systems are ordered by phase, then before/after, then registration (order.h).
 *   conflicts  The pairs of systems of one phase that must keep their order (conflict.h).
 *   segments   Each phase is split at its exclusive systems. Every split and the end of the phase is a sync point.
 *   passes     The systems between two sync points are grouped into passes: the systems of a pass iterate the chunks
 *              together (fuse.h).
 *   graphs     The passes of a segment form a graph. Its edges are the conflicts that other edges do not imply
 *              (link.h).
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

void quern__compile_release(quern__plan *plan);

#endif
