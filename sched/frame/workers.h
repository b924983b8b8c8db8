/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_WORKERS_H
#define QUERN_SCHED_FRAME_WORKERS_H

/* What each worker has in frames: a recorder of commands, the context of the callbacks it makes, and memory
 * for the addresses of up-terms. User code may keep the addresses of recorder and context beyond its callback,
 * and calls on them must then be refused: both stay in their place as long as the schedule lives, however many
 * workers it gets. */

#include "sched/frame/schedule_internal.h"

/* Makes sure that there are so many. What recorders hold comes along. Errors: OUT_OF_MEMORY. */
quern_result quern__workers_reserve(quern_schedule *schedule, uint32_t worker_count);

void quern__workers_release(quern_schedule *schedule);

#endif
