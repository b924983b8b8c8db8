/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SYNC_H
#define QUERN_SCHED_FRAME_SYNC_H

/* Sync points: the commands that have been recorded are applied, with the threads of the frame. */

#include "core/world/world_commands.h"
#include "sched/frame/schedule.h"

/* Applies what code between frames and parallel queries have left, before a frame's first system. Errors
 * end the frame. */
quern_result quern__sync_world(quern_schedule *schedule, quern__flush_report *report);

/* Applies what has been recorded; that may make archetypes. Errors end the frame. */
quern_result quern__sync(quern_schedule *schedule, quern__flush_report *report);

#endif
