/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H
#define QUERN_SCHED_HISTORY_SAVED_SCHEDULE_H

/* The part of a saved frame that belongs to a schedule. */

#include "core/bytes/byte_reader.h"
#include "core/bytes/byte_writer.h"
#include "sched/frame/schedule_internal.h"

/* Fails with INVALID_ARGUMENT if a failed frame of the schedule has left events that are not published. */
quern_result quern__schedule_check_published(const quern_schedule *schedule);

/* For a schedule that the history does not save: fails with INVALID_ARGUMENT if a failed frame has left
 * commands that are not applied, or events that are not published. */
quern_result quern__schedule_check_unsaved(const quern_schedule *schedule);

void quern__schedule_save(const quern_schedule *schedule, quern__byte_writer *writer);

/* Checks that the schedule has as many systems as when it was saved (systems can be added, but never removed), and
 * advances the reader past the saved schedule. Fails with INVALID_ARGUMENT if systems were added. */
quern_result quern__schedule_check_saved(const quern_schedule *schedule, quern__byte_reader *reader);

/* Checks bytes that may be forged: whether they are a state that quern__schedule_save wrote for a schedule with as
 * many phases and systems, at a time when the world's clock was `clock`. Advances the reader past them. */
bool quern__schedule_check_bytes(const quern_schedule *schedule, quern__byte_reader *reader,
                                 uint64_t clock);

/* Restores the schedule from the state that quern__schedule_save wrote. Precondition: quern__schedule_check_saved
 * or quern__schedule_check_bytes succeeded. */
void quern__schedule_restore(quern_schedule *schedule, quern__byte_reader *reader);

#endif
