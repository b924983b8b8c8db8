/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SYNC_H
#define QUERN_SCHED_FRAME_SYNC_H

/* Sync points: the commands that have been recorded are applied, with the threads of the frame. */

#include "sched/frame/schedule.h"

/* What goes wrong in a frame without ending it. */
typedef struct quern__frame_report {
    quern_result record_result;  /* a command could not be recorded */
    quern_result refused_result; /* an entity asked for more than it, or the world, can have */
    uint64_t refused_count;      /* such entities */
} quern__frame_report;

/* Applies what has been recorded; that may make archetypes. Errors end the frame. */
quern_result quern__sync(quern_schedule *schedule, quern__frame_report *report);

#endif
