/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_ARCHIVED_RUN_H
#define QUERN_SCHED_HISTORY_ARCHIVED_RUN_H

/* The state of schedules in an archive: everything outside of rows, links, names and resources that the next frame
 * depends on.
 *
 *   head        the world's clock, numbers of schedules and archetypes
 *   schedules   of each: the names of its phases and systems, then its state
 *   versions    of each archetype: change versions of chunks and rows; none if it keeps none
 *   reactions   of each system that is a reaction: pending rows and copies of removed rows, by archetype
 *   events      of each event type: its schema, its readers, and the batches that wait
 *
 * Unlike a frame of a history, these bytes can be read by another process: they identify systems, events and readers
 * by name, and archetypes by their position in the archive. Handles are those of the saved world; restoring maps them.
 *
 * The bytes may be forged. Each part is read twice: `prepare` checks it completely and reserves memory, `restore`
 * reads it again and relies on that. */

#include "core/archive/image.h"
#include "core/base/bytes.h"
#include "core/events/event_internal.h"
#include "core/history/history_internal.h"
#include "sched/frame/schedule_internal.h"

#include <quern/history.h>

enum { QUERN__RUN_NAME_LENGTH_BYTES = 1 }; /* size of the length before a name */

typedef struct quern__archived_run {
    quern_world *world;
    quern_schedule *const *schedules;
    uint32_t schedule_count;
    quern__event_block *event_blocks; /* blocks that prepare has reserved */
} quern__archived_run;

/* The bytes of a state while a part is read, and the archetypes that it refers to. */
typedef struct quern__run_reader {
    const quern__image *image;
    quern__byte_reader bytes;
    /* When restoring: maps handles of the archive to the world. */
    quern__remap_function *remap;
    void *remap_argument;
} quern__run_reader;

/* The part of a saved frame that belongs to a schedule. */

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

struct quern_history {
    quern__history core;
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES];
    uint32_t schedule_count;
};

#endif
