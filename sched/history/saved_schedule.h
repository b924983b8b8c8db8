/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H
#define QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H

/* What a history keeps of a schedule, on a tape. */

#include "core/history/tape.h"
#include "sched/frame/schedule_internal.h"

/* Whether events wait to be published. Errors: INVALID_ARGUMENT (they do). */
quern_result quern__schedule_check_published(const quern_schedule *schedule);

/* Whether one that is not saved keeps nothing that would be lost. Errors: INVALID_ARGUMENT (commands wait,
 * or events to be published). */
quern_result quern__schedule_check_unsaved(const quern_schedule *schedule);

void quern__schedule_put(const quern_schedule *schedule, quern__tape *tape);

/* Whether the schedule has the systems that it had. The tape is moved on. Errors: INVALID_ARGUMENT. */
quern_result quern__schedule_check_tape(const quern_schedule *schedule, quern__tape *tape);

/* Puts it back. */
void quern__schedule_take(quern_schedule *schedule, quern__tape *tape);

#endif
