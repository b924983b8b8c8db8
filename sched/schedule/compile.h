/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_COMPILE_H
#define QUERN_SCHED_SCHEDULE_COMPILE_H

/* From systems to segments.
 *
 *   order      by phase, then before/after, then registration (order.h)
 *   conflicts  for each pair of one phase: must they keep their order, and why? (conflict.h)
 *   segments      each phase is cut at its exclusive systems; every cut and end of a phase is a sync point
 *   passes     what lies between two cuts: systems that go over the chunks together (fuse.h)
 *   graphs     of passes, whose edges are the conflicts that do not follow from others
 *
 * The graph of a pass is begin -> run -> end, with the parts it does not have left out. Run is a node for
 * each of its stages, one after another. */

#include "sched/schedule/schedule_plan.h"

/* Compiles whatever is not compiled: everything after systems were added, else the conflicts that new
 * archetypes bring. Costs nothing when nothing is new. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT,
 * OUT_OF_MEMORY; the schedule is then not compiled, and the next call tries again. */
quern_result quern__compile(quern__plan *plan);

/* Gives the nodes of a RUN their counts, when its passes are prepared. Errors: OUT_OF_MEMORY. */
quern_result quern__compile_prepare(const quern__plan *plan, const quern__segment *segment);

void quern__compile_release(quern__plan *plan);

#endif
