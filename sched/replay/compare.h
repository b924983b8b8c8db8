/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_COMPARE_H
#define QUERN_SCHED_REPLAY_COMPARE_H

/* Where two states part. */

#include "sched/replay/state.h"

#include <quern/replay.h>

/* Both states have the same flags; actual is the world's as it is now. Fills in the report from
 * `difference` on, in which the frame and the hashes are known. */
void quern__replay_compare(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report);

#endif
