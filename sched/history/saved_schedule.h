/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H
#define QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H

/* The part of a saved frame or archive that belongs to a schedule. */

#include "core/base/bytes.h"
#include "sched/frame/schedule_internal.h"

/* Checks a list of schedules, which NULL ends, and counts them. Errors: LIMIT, INVALID_ARGUMENT. */
quern_result quern__schedules_check(const quern_world *world, quern_schedule *const *schedules,
                                    uint32_t capacity, uint32_t *out_count);

/* Fails with INVALID_ARGUMENT if a failed frame of the schedule has left events that are not published. */
quern_result quern__schedule_check_published(const quern_schedule *schedule);

/* For a schedule that the history does not save: fails with INVALID_ARGUMENT if a failed frame has left
 * commands that are not applied, or events that are not published. */
quern_result quern__schedule_check_unsaved(const quern_schedule *schedule);

/* Saves the state of a schedule: of its phases, then of its sets, then of its systems, in their order. */
void quern__schedule_save(const quern_schedule *schedule, quern__byte_writer *writer);

/* Saves of which phases, sets and systems that state is: before it, for a schedule that may change before it is restored. */
void quern__schedule_save_members(const quern_schedule *schedule, quern__byte_writer *writer);

/* Checks bytes that may be forged: whether they are a state that quern__schedule_save wrote for a schedule with as
 * many phases and systems, at a time when the world's clock was `clock`. Advances the reader past them. */
bool quern__schedule_check_bytes(const quern_schedule *schedule, quern__byte_reader *reader,
                                 uint64_t clock);

/* Restores the schedule from the state that quern__schedule_save wrote. Precondition: quern__schedule_check_bytes
 * succeeded. */
void quern__schedule_restore(quern_schedule *schedule, quern__byte_reader *reader);

/* Restores the schedule from what quern__schedule_save_members and quern__schedule_save wrote. The state of phases and
 * systems that were removed is skipped; those that were added since are as they were when they were added. */
void quern__schedule_restore_members(quern_schedule *schedule, quern__byte_reader *reader);

#endif
