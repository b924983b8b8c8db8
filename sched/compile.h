/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_COMPILE_H
#define QUERN_SCHED_COMPILE_H

/* From systems to steps.
 *
 *   order      by phase, then before/after, then registration
 *   conflicts  for each pair of one phase: may they run at the same time? (access.h)
 *   steps      each phase is cut at its exclusive systems; what lies between is a graph of parallel loops,
 *              whose edges are the conflicts that do not follow from others; every cut and every end of
 *              a phase is a sync point
 *
 * The graph of a system is begin -> run -> end, with the parts it does not have left out. */

#include "sched/schedule.h"

/* Compiles whatever is not compiled: everything after systems were added, else the conflicts that new
 * archetypes bring. Costs nothing when nothing is new. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT, OUT_OF_MEMORY; the
 * schedule is then not compiled, and the next call tries again. */
quern_result quern__compile(quern_schedule *schedule);

void quern__compile_release(quern_schedule *schedule);

#endif
