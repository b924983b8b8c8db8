/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_ARCHIVED_RUN_H
#define QUERN_SCHED_HISTORY_ARCHIVED_RUN_H

/* The state of schedules in an archive: everything outside of rows, links, names and resources that the next frame
 * depends on.
 *
 *   head        the world's clock, numbers of schedules and archetypes
 *   schedules   of each: the names of its phases and systems, then its state (archived_run.h)
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

/* Returns the archetype of the world for the archetype at a position in the archive, or NULL if the archive has
 * fewer. */
static inline const quern__archived_archetype *quern__run_archetype(const quern__run_reader *reader,
                                                                    uint32_t position)
{
    return position < reader->image->archetypes.count ? &reader->image->archetypes.items[position] : NULL;
}

/* Returns the number of rows that the slot of an archetype will have when its rows are loaded. */
static inline uint32_t quern__run_rows_in(const quern__archived_archetype *archived, uint32_t slot)
{
    const uint32_t left = archived->row_count - slot * archived->archetype->row_capacity;
    return left < archived->archetype->row_capacity ? left : archived->archetype->row_capacity;
}

static inline uint32_t quern__run_slot_count(const quern__archived_archetype *archived)
{
    const uint32_t capacity = archived->archetype->row_capacity;
    return archived->row_count / capacity + (archived->row_count % capacity != 0);
}

/* Fails with BAD_ARCHIVE because a part of the state cannot be read. */
quern_result quern__run_fail(const char *part);

/* Writes the state of the schedules. Errors: INVALID_ARGUMENT (something waits that cannot be saved), OUT_OF_MEMORY. */
quern_result quern__run_write(const quern__archived_run *run, quern__byte_writer *writer);

/* The functions of a quern__run_restorer, whose argument is a quern__archived_run. */
quern_result quern__run_prepare(void *argument, const quern__image *image);
void quern__run_restore(void *argument, const quern__image *image, quern__remap_function *remap,
                        void *remap_argument);

/* The parts. Preparing fails with BAD_ARCHIVE, LAYOUT_MISMATCH, UNKNOWN_EVENT or OUT_OF_MEMORY. */
quern_result quern__run_write_reactions(const quern__archived_run *run, quern__byte_writer *writer);
quern_result quern__run_prepare_reactions(const quern__archived_run *run, quern__run_reader *reader);
void quern__run_restore_reactions(const quern__archived_run *run, quern__run_reader *reader);

quern_result quern__run_write_events(const quern_world *world, quern__byte_writer *writer);
quern_result quern__run_prepare_events(quern__archived_run *run, quern__run_reader *reader);
void quern__run_restore_events(quern__archived_run *run, quern__run_reader *reader);

/* The part of a saved frame that belongs to a schedule. */

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

struct quern_history {
    quern__history core;
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES];
    uint32_t schedule_count;
};

/* Returns INVALID_ARGUMENT, with a message that the history does not contain the frame. */
quern_result quern__history_fail_frame(const quern_history *history, uint64_t frame);

#endif
