/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_GUARD_H
#define QUERN_SCHED_FRAME_GUARD_H

/* For builds with QUERN_CHECKS: who keeps a pointer into a chunk beyond its call, and writes there, is
 * found out.
 *
 * While the passes of a segment run, a column changes only under views that may write it. So each column
 * that some system of the schedule can reach, in each chunk of the world, bears a guard, the sum of the
 * hashes of its values. A guard is renewed after each call that may write its column, by its view or by
 * a lookup, and looked at before the next call that has the column, and, whatever the segment touches,
 * when the segment ends. One that does not fit was broken while nobody had a view.
 *
 * A view of a part of a chunk, as for one depth or one target, may be one of hundreds, so it hashes its
 * own rows only: their values are taken out of the sum before the call and put back after it. Then a
 * broken guard is found by the next view of the whole chunk, or when the segment ends.
 *
 * Guards go on from segment to segment and from frame to frame. They are made anew where values change by
 * right:
 *   - a sync point with commands: all of them;
 *   - between frames, and in exclusive systems: all of them when rows have come, gone or moved, or when a
 *     frame of another schedule has run; else those of the components that a call has written, or has given
 *     out a pointer to write to that is still good (quern__hands). The others are looked at.
 *
 * Threads: a guard is written by calls that may write its column, and read by calls that have it;
 * conflicts keep these apart. */

#include "core/base/array.h"
#include "core/base/bitset.h"
#include "core/storage/archetype.h"

struct quern_schedule;
struct quern_context;
struct quern_view;

typedef struct quern__guard {
    uint64_t hash;
    const struct quern__system
        *holder; /* the last that might write; NULL: none since the archetype is known */
    /* While a callback has a pointer into the column that it looked up to write: where the column is,
     * and the next of the guards that it keeps open so. */
    const quern__archetype *archetype; /* NULL: no callback has */
    uint32_t slot, column;
    struct quern__guard *next_lent;
} quern__guard;

/* Of one archetype, by chunk and column. */
typedef struct quern__guard_table {
    const quern__archetype *archetype;
    uint64_t set_hash; /* its: another archetype may come to the same address */
    quern__guard *guards;
    uint32_t capacity; /* guards */
} quern__guard_table;

typedef struct quern__guards {
    QUERN__ARRAY(quern__guard_table) tables; /* by archetype index, of the archetypes there were */
    uint64_t reached[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)]; /* by terms, also up-terms, or lookups */
    uint32_t system_count;                                       /* that reached is made of */
    uint64_t structure_version;                                  /* when the guards were made */
    const char *when; /* "before" or "in" the frame is what is found */
    bool are_whole;   /* nothing has changed by right since then */
} quern__guards;

void quern__guards_release(quern__guards *guards, const quern_allocator *allocator);

/* Stands for the system that was refused something where no system is known to have had the column. */
extern const char quern__guard_nobody[];

/* A frame begins, or an exclusive system has returned: others than the schedule may have written. Looks at
 * the guards that must still fit. when, for messages: "before" or "in" the frame. */
void quern__guards_resume(struct quern_schedule *schedule, const char *when);

/* Values have changed by right: the guards are made anew before they count again. */
void quern__guards_break(struct quern_schedule *schedule);

/* Before a segment, and at the end of a frame: guards what is not guarded. False: there is no memory. */
bool quern__guards_close(struct quern_schedule *schedule);

/* Before and after a call with a view of rows of a chunk. was_refused: it has written what it may only
 * read, and that has been told already. */
void quern__guards_check(struct quern_context *context, const quern__archetype *archetype,
                         const struct quern_view *view);
void quern__guards_renew(struct quern_context *context, const quern__archetype *archetype,
                         const struct quern_view *view, bool was_refused);

/* A callback gets a pointer into this column, to write: looks at its guard. */
void quern__guards_lend(struct quern_context *context, const quern__archetype *archetype, uint32_t slot,
                        uint32_t column);

/* After the callback: renews these guards. */
void quern__guards_take_back(struct quern_context *context);

/* After a segment: looks at all guards. */
void quern__guards_look(struct quern_schedule *schedule);

#endif
