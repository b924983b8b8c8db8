/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_FRAME_H
#define QUERN_SCHED_FRAME_FRAME_H

/* Runs frames: the segments of a compiled schedule, one after another.
 *
 * Determinism: a command stream is identified by the position of its system and a call index: 0 for the condition and
 * begin,
 * 1 + ordinal for a view, and the last index for end. Its provisional handles contain a serial, which
 * counts the call indices of all systems of the segment in order. Position, call index and serial do not
 * depend on the worker that records the stream. Partial results are stored by ordinal. Nothing else that workers produce
 * outlives the segment. */

#include "sched/frame/schedule_internal.h"

struct quern__flush_report;

/* Runs one round of reactions, including its sync points. Errors end the frame. */
quern_result quern__frame_run_round(quern_schedule *schedule, struct quern__flush_report *report);

/* Applies the commands that a failed frame kept, and runs reactions to changes that calls between frames
 * have made. Messages name `function`. Errors: as quern_schedule_run. */
quern_result quern__frame_run_reactions(quern_schedule *schedule, quern_jobs *jobs, const char *function);

enum { QUERN__CALL_BEGIN = 0, QUERN__CALL_FIRST_VIEW = 1 };

/* Returns the remainder of dividing seconds by the interval: at least 0, and less than the interval.
 * Replaces fmod, because the library does not link libm. */
static inline double quern__time_rest(double seconds, double interval_seconds)
{
    const double whole_count = seconds / interval_seconds;
    if (!(whole_count < 0x1p53)) return 0; /* a double this large has no fraction; or the interval is 0 */
    const double rest = seconds - (double)(uint64_t)whole_count * interval_seconds;
    /* The division may round up to the next multiple. */
    return rest > 0 && rest < interval_seconds ? rest : 0;
}

#endif
