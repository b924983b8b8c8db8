/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_COMPARE_H
#define QUERN_SCHED_REPLAY_COMPARE_H

/* Finding the first difference between two states. */

#include "sched/replay/state.h"

#include <quern/replay.h>

/* Fills in the report from `difference` on; its frame and hashes must be set. Precondition: both states have the same
 * flags, and `actual` is the current state of the world. */
void quern__replay_compare(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report);

#endif
