/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_GUARD_H
#define QUERN_SCHED_FRAME_GUARD_H

/* Guards detect that code writes through a pointer into a chunk that it kept beyond its callback. Only
 * builds with QUERN_CHECKS have guards.
 *
 * While the passes of a segment run, a column may only change through views and lookups that may write it.
 * Each column that a system of the schedule can access has a guard in each chunk of the world: the sum of
 * the hashes of its values. A guard is renewed after each call that may write the column by its view or by a
 * lookup. It is checked before the next call with a view of the column. At the end of a segment all guards
 * are checked, whatever the segment accessed. A guard that does not match was broken while no view of the
 * column existed.
 *
 * If a call was refused an access, the guards of the columns that it may only read are renewed, too: a
 * write to them has been reported already.
 *
 * A view of some rows of a chunk, such as the rows of one depth or one target, may be one of hundreds. So it
 * hashes only its own rows: before the call their hashes are subtracted from the guard, and after the call
 * they are added again. A broken guard is then found by the next view of the whole chunk, or at the end of
 * the segment.
 *
 * Guards remain valid across segments and frames. They are rebuilt where values may change:
 *
 *   - at a sync point with commands: all guards
 *   - between frames and in exclusive systems: all guards if rows were added, removed or moved, or if another
 *     schedule has run a frame. Otherwise the guards of components that a call has written, or for which a call
 *     has returned a pointer for writing that is still valid (quern__outside_writes); all other guards are checked.
 *
 * Threads: the guard of a column is written by calls that may write the column, and read by calls that may
 * read it. The schedule's conflicts keep these calls apart. */

#include "core/base/array.h"
#include "core/base/bitset.h"
#include "core/storage/archetype.h"

struct quern_schedule;
struct quern_context;
struct quern_view;

typedef struct quern__guard {
    uint64_t hash;
    /* Last system that could write the column. NULL: none since the guard exists. */
    const struct quern__system *last_writer;
    /* Used while a callback has a pointer to the column that it looked up for writing: the location of the
     * column, and the next guard that the callback keeps open. */
    const quern__archetype *archetype; /* NULL: no callback has a pointer to the column */
    uint32_t slot, column;
    struct quern__guard *next_open;
} quern__guard;

/* The guards of an archetype: guards[chunk index * column count + column]. */
typedef struct quern__guard_table {
    const quern__archetype *archetype;
    uint64_t set_hash; /* set_hash of the archetype: another archetype may reuse the address */
    quern__guard *guards;
    uint32_t capacity; /* number of guards */
} quern__guard_table;

typedef struct quern__guards {
    QUERN__ARRAY(quern__guard_table) tables; /* by archetype index */
    /* Components that systems can access by terms, up-terms or lookups. */
    uint64_t reachable[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint32_t system_count; /* systems that `reachable` includes */
    /* Structure version of the storage when the guards were built. */
    uint64_t structure_version;
    const char *when; /* for messages: found changes happened "before" or "in" the frame */
    /* The guards are valid: since they were built, values have changed only in calls that renew guards. */
    bool are_valid;
} quern__guards;

void quern__guards_release(quern__guards *guards, const quern_allocator *allocator);

/* Replaces the name of the refused system if no system is known to have had the column. */
extern const char quern__guard_no_system[];

/* Handles writes by code outside of the schedule's passes, at the beginning of a frame or after an
 * exclusive system. Renews the guards of components that such code may have written, and checks all others.
 * `when`: "before" or "in" the frame, for messages. */
void quern__guards_check_outside_writes(struct quern_schedule *schedule, const char *when);

/* Invalidates all guards, because values may change. The next quern__guards_rebuild rebuilds them. */
void quern__guards_invalidate(struct quern_schedule *schedule);

/* Rebuilds the guards if they are invalid. Called before each segment and at the end of a frame. Returns
 * false if out of memory. */
bool quern__guards_rebuild(struct quern_schedule *schedule);

/* Checks the guards of the view's columns, before each call with a view of rows of a chunk. For a view of
 * some rows of a chunk, subtracts the hashes of the rows that it may write from their guards instead. */
void quern__guards_check_view(struct quern_context *context, const quern__archetype *archetype,
                              const struct quern_view *view);

/* Renews the guards of the columns that the view may write. Called after the call. was_refused: the call
 * was refused an access, such as a write to a column that it may only read. That has been reported, so
 * the guards of the view's other columns are renewed, too. */
void quern__guards_renew_view(struct quern_context *context, const quern__archetype *archetype,
                              const struct quern_view *view, bool was_refused);

/* Checks the guard of a column to which a callback gets a pointer for writing, and keeps the guard open
 * until the callback returns. */
void quern__guards_open(struct quern_context *context, const quern__archetype *archetype, uint32_t slot,
                        uint32_t column);

/* Renews the guards that the callback kept open. Called after each callback. */
void quern__guards_renew_open(struct quern_context *context);

/* Checks all guards. Called after each segment. */
void quern__guards_check_all(struct quern_schedule *schedule);

#endif
