/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_ORDER_H
#define QUERN_SCHED_SCHEDULE_ORDER_H

/* The order of execution: by phase, then before/after, then registration. */

#include "sched/schedule/schedule_plan.h"

/* Orders the systems, and lists the before/after rules by position. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT,
 * OUT_OF_MEMORY. */
quern_result quern__order_systems(quern__plan *plan);

#endif
