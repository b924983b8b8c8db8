/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_LINK_H
#define QUERN_SCHED_SCHEDULE_LINK_H

/* The edges between the passes of a segment. */

#include "sched/schedule/schedule_plan.h"

/* Lists in waits_for of each pass the indices of the passes that it must wait for, the greatest first. Omits passes for
 * which another of these waits, directly or indirectly. Preconditions: the passes are in ascending order of index, and
 * all conflicts lead from earlier to later ones. Errors: OUT_OF_MEMORY. */
quern_result quern__link_passes(const quern__plan *plan, const quern__segment *segment);

#endif
