/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_WORKERS_H
#define QUERN_SCHED_FRAME_WORKERS_H

/* What each worker has in frames: a recorder of commands, the context of its callbacks, and memory for the
 * addresses of up-terms. User code may keep pointers to a recorder or a context beyond its callback; calls
 * with these pointers must be refused. So recorders and contexts keep their addresses as long as the
 * schedule exists, even if workers are added. */

#include "sched/frame/schedule_internal.h"

/* Ensures that the schedule has at least `worker_count` workers. Existing recorders keep their commands.
 * Errors: OUT_OF_MEMORY. */
quern_result quern__workers_reserve(quern_schedule *schedule, uint32_t worker_count);

void quern__workers_release(quern_schedule *schedule);

#endif
