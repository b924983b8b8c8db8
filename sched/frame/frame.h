/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_FRAME_H
#define QUERN_SCHED_FRAME_FRAME_H

/* Running a frame: the segments of a compiled schedule, one after another.
 *
 * Determinism: a stream of commands is known by (position of the system, part), where part is 0 for begin,
 * 1 + the ordinal for a view, and the last for end; its provisional handles carry a serial that is counted
 * over the parts of all systems of the segment, in order. Neither depends on which worker recorded it.
 * Partial results lie in an array by ordinal. Nothing else that workers produce outlives the segment. */

#include "sched/frame/schedule_internal.h"

struct quern__flush_report;

/* One round of reactions, and the sync points in it. Errors end the frame. */
quern_result quern__frame_run_round(quern_schedule *schedule, struct quern__flush_report *report);

/* What a frame does before its first phase, but for commands of code between frames: reactions to what
 * calls have done. Errors: as of quern_schedule_run. */
quern_result quern__frame_react(quern_schedule *schedule, quern_jobs *jobs, const char *function);

enum { QUERN__PART_BEGIN = 0, QUERN__PART_FIRST_VIEW = 1 };

/* The time that is left when all whole intervals are taken out, 0 to less than an interval. The library does not
 * link libm, which has fmod. */
static inline double quern__time_rest(double seconds, double interval_seconds)
{
    const double whole_count = seconds / interval_seconds;
    if (whole_count >= 0x1p53) return 0; /* a double this large has no fraction */
    const double rest = seconds - (double)(uint64_t)whole_count * interval_seconds;
    return rest > 0 && rest < interval_seconds ? rest : 0; /* division may round across a multiple */
}

#endif
