/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_HISTORY_H
#define QUERN_HISTORY_H

/** @file
 * History: the last frames of a world, to which it can be taken back.
 *
 * A history saves a world and its schedules between frames, under numbers that the program counts, and
 * restores any of the frames that it keeps. Afterwards everything is as it was: the same entities with the
 * same handles, values, order of rows, targets, names, resources, events that wait; and what follows is the
 * same, too: the frames that run next do what they did, bit for bit, on any number of threads.
 *
 *     quern_history *history;
 *     quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history);
 *     for (uint64_t frame = 0;; frame++) {
 *         quern_history_save(history, frame, jobs);      // before the frame of that number
 *         quern_schedule_run(schedule, jobs, seconds);
 *         if (late) {                                    // an input of frame `late` came just now
 *             quern_history_restore(history, late, jobs);
 *             frame = late - 1;                          // those from there on run again
 *         }
 *     }
 *
 * A column of a chunk that was not written between two frames is kept once for both: saving copies what was
 * written since the last call, and restoring what differs. What was written is known from calls and views,
 * never by comparing; so no pointer to write that a call has given out may be used after the next save or
 * restore, even if nothing has moved: get it again. A build with QUERN_CHECKS finds who does.
 *
 * What is taken back: entities, their components, values, places and order; which are disabled; targets and
 * names; resources; events that wait, and who has read them; commands that wait to be applied; what
 * reactions are still to be told; serial numbers; of the schedules of the history: the number of the next
 * frame, time that fixed steps and intervals have left, what filters have seen, which systems are enabled,
 * targets of systems. What is not: types, relations, prefabs, queries and systems that were made since,
 * which stay; settings of schedules; resources registered since, which keep their values; queries of code
 * between frames with filters, which see everything as changed once; anything outside of the world, such as
 * user_data.
 *
 * Types: one with a copy hook is copied by it into the history, and from there, and destroyed by its
 * destroy hook; so are values in commands and events that wait. One with a move or destroy hook and no copy
 * hook cannot be saved.
 *
 * A world with a history writes down when its chunks were written, as with filters on changes of all
 * components.
 *
 * Threads: main, between frames. */

#include <quern/base.h>
#include <quern/jobs.h>
#include <quern/schedule.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_HISTORY_SCHEDULES 8     /**< Schedules that one history saves. */
#define QUERN_MAX_HISTORY_FRAMES    65536 /**< Frames that one history keeps. */

/** Keeps the last frames of a world; see quern_history_create. */
typedef struct quern_history quern_history;

/** Describes a history. */
typedef struct quern_history_def {
    /** Those whose state belongs to the frames: a list that ends at the first NULL, or when it is full. All
     * are of the history's world. They must outlive the history. */
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES] QUERN__ZERO;
    /** Frames that are kept at most, up to QUERN_MAX_HISTORY_FRAMES; 0 means 16. Creating the history
     * allocates about 112 bytes for each; what a frame holds is allocated when it is saved. */
    uint32_t frame_count QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< For what is kept. All zero: quern_allocator_default(). */
} quern_history_def;

/** What a history holds, and what its last call did. */
typedef struct quern_history_stats {
    uint32_t frame_count;  /**< Frames that are kept now. */
    uint64_t page_count;   /**< Pieces of memory in use, each counted once however many frames share it. */
    uint64_t used_bytes;   /**< Of these. */
    uint64_t held_bytes;   /**< Of all memory taken for pages: it goes back when the history does. */
    uint64_t copied_bytes; /**< Of columns, by the last save or restore. */
    uint64_t copied_count; /**< Columns of chunks that were copied, likewise. */
} quern_history_stats;

/** Creates a history without frames. A world has at most one. Until the history is destroyed, all chunks of
 * the world keep change versions. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (a schedule of
 * another world, or one twice), LIMIT (frame_count is above QUERN_MAX_HISTORY_FRAMES, or the world has a
 * history already), OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_history_create(quern_world *world, const quern_history_def *def,
                                            quern_history **out_history);

/** Destroys a history and all its frames; the world stays as it is. To be done before its schedules, which
 * refuse to go, and before its world, but after its deltas. NULL is allowed. Threads: main, between frames.
 */
QUERN_API void quern_history_destroy(quern_history *history);

/** Saves the world under a number. Frames kept under this number and later ones are dropped: they are of
 * another time line. If there are more than frame_count then, the oldest is dropped. Takes no memory once
 * frames like this one were saved frame_count times. jobs may be NULL.
 *
 * Errors, with world and history as they were: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY;
 * INVALID_ARGUMENT: what cannot be copied is there, or waits, and is named (a type with hooks and without a
 * copy hook; instances of prefabs that commands spawn; copies with hooks for reactions; commands of
 * schedules that the history does not save; events that a failed frame could not publish), or in a build
 * with QUERN_CHECKS values were written through a pointer that was kept. Threads: main, between frames. */
QUERN_API quern_result quern_history_save(quern_history *history, uint64_t frame, quern_jobs *jobs);

/** Restores the world and the schedules of the history to a kept frame, earlier or later than the present
 * state. All kept frames stay. The present state may be what a failed frame has left: commands that are not
 * applied, and events that are not published, are discarded in all schedules of the world. The commands that
 * waited when the frame was saved wait again. jobs may be NULL. Allocates from the world's allocator only
 * where the frame has more rows, records, events or commands than the world has room for.
 *
 * Errors, with everything as it was: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY; INVALID_ARGUMENT: the
 * frame is not kept, or systems were added to a schedule since. Threads: main, between frames. */
QUERN_API quern_result quern_history_restore(quern_history *history, uint64_t frame, quern_jobs *jobs);

/** Tells the numbers of the oldest and the newest frame that are kept; some in between may not have been
 * saved. Returns false, and leaves both as they are, where there are none. Either pointer may be NULL.
 * Threads: main. */
QUERN_API bool quern_history_frames(const quern_history *history, uint64_t *out_oldest,
                                    uint64_t *out_newest);

/** Tells what the history holds. Errors: NULL_ARGUMENT. Threads: main. */
QUERN_API quern_result quern_history_get_stats(const quern_history *history,
                                               quern_history_stats *out_stats);

/* ------------------------------------------------------------------------------------ differences */

/** What a batch of a delta tells of its entities. */
typedef enum quern_delta_kind {
    QUERN_DELTA_CREATED = 1, /**< They live, and did not. ADDED batches with their components follow. */
    QUERN_DELTA_ADDED,     /**< They have the component, and did not. Of relations also: a new target after
                                REMOVED. */
    QUERN_DELTA_CHANGED,   /**< They have another value of the component. */
    QUERN_DELTA_REMOVED,   /**< They do not have the component, and did. Of relations also: before ADDED. */
    QUERN_DELTA_ENABLED,   /**< They have the component enabled or not at all, and had it disabled. */
    QUERN_DELTA_DISABLED,  /**< They have the component disabled, and did not. */
    QUERN_DELTA_NAMED,     /**< One entity has another name, or none, which it may get later. */
    QUERN_DELTA_DESTROYED, /**< They do not live, and did. REMOVED batches with their components come
                                before. */
    QUERN_DELTA_RESOURCE   /**< A resource has another value. */
} quern_delta_kind;

/** Some entities of which the same is to be told: neighbours in both frames, so that handles and values are
 * plain arrays. Members that a kind does not name are zero. */
typedef struct quern_delta_batch {
    quern_delta_kind kind;        /**< What is told. */
    uint32_t count;               /**< Entities, at least 1; of RESOURCE 0. */
    const quern_entity *entities; /**< Their handles. */
    quern_component component;    /**< Of ADDED, CHANGED, REMOVED, ENABLED, DISABLED. */
    quern_resource resource;      /**< Of RESOURCE. */
    uint32_t value_bytes;         /**< Bytes of one value; of tags 0. */
    const void *values;           /**< As they are in `to`: of ADDED, CHANGED, RESOURCE. NULL of tags. */
    const void *old_values;       /**< As they were in `from`: of REMOVED, CHANGED, RESOURCE. */
    const char *name;             /**< Of NAMED: after the batch. NULL: none. */
    const char *old_name;         /**< Of NAMED: before the batch. NULL: none. */
} quern_delta_batch;

/** What differs between two frames; see quern_history_delta. */
typedef struct quern_delta quern_delta;

/** What a delta has cost. */
typedef struct quern_delta_stats {
    uint64_t compared_count; /**< Columns of chunks, and arrays of handles, that were looked at. */
    uint64_t compared_bytes; /**< Of these, in one of the frames. */
} quern_delta_stats;

/** Finds what differs between two frames that are kept: `to` is what is, and `from`, which may be earlier
 * or later, what was. Columns that both frames share are not looked at, so this takes the time of a look at
 * what was written between the two. To compare the world as it is now, save it first.
 *
 * Batches have this order, which follows from the frames alone:
 *
 *   1. NAMED without a name, by the index of the entity: names that are cleared
 *   2. ENABLED and REMOVED, for each run of rows by component: first of entities that live in both frames, by
 *      archetype and row of `to`, then of those that end, by archetype and row of `from`
 *   3. DESTROYED, by archetype and row of `from`
 *   4. CREATED, by archetype and row of `to`
 *   5. by archetype and row of `to`, for each run of rows by component, and of one component in this order:
 *      ADDED or CHANGED, ENABLED, DISABLED
 *   6. NAMED, by the index of the entity: names that are given
 *   7. RESOURCE, by registration
 *
 * In this order each batch can be applied to a world that is like `from` by the plain calls, in a loop over its
 * entities, and the world is like `to` afterwards: quern_entity_create, _add, _set, _remove, _enable, _set_name
 * and _destroy are never refused. A world with other handles translates them: those of the entities, and those
 * in values, of which each was created before. Everything that goes does so before anything comes. So names never
 * collide, relations with levels close no cycle, an entity never exceeds its limit of components, and an entity
 * that is destroyed is nobody's target, whatever the policy of the relation.
 *
 * The target of a relation is the value of its component (a quern_entity), so relating shows as ADDED, CHANGED
 * and REMOVED. Another target shows as CHANGED if the old one lives in `to` and the source has no children in
 * `to` or the relation has no levels; otherwise as REMOVED, and as ADDED later.
 *
 * A name is cleared (1) if its entity ends, has no name in `to` or another parent there, or if another entity has
 * this parent and name in `to`; it or the next name is given later (6). Other names change in one step (6).
 *
 * With from and to in exchange the delta tells the opposite: entities of CREATED are DESTROYED, components of
 * ADDED are REMOVED, and old values are new ones.
 *
 * Not told are: the order of rows, which entities of one target are children in which order, events, which
 * handles come next, the state of schedules, and whether an entity is off by itself or because of its parent (see
 * <quern/active.h>; its tag is told). Entities that are moved to other components are told of by ADDED and
 * REMOVED.
 *
 * Values differ where their described fields do, or all bytes of a type without. Of types with hooks and
 * without described fields nobody can tell: they count as CHANGED where they may have been written, and
 * resources of such types always do.
 *
 * The delta keeps what it points at, also after its frames are dropped and through saves and restores,
 * until quern_delta_destroy. Takes no memory from the allocator once as much was needed before. Errors:
 * NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY; INVALID_ARGUMENT: a frame is not kept, or both are one.
 * Threads: main, between frames. */
QUERN_API quern_result quern_history_delta(quern_history *history, uint64_t from, uint64_t to,
                                           quern_delta **out_delta);

/** Lets a delta go. To be done before its history, which refuses to go. NULL is allowed. Threads: main,
 * between frames. */
QUERN_API void quern_delta_destroy(quern_delta *delta);

/** Returns the batches of a delta, and their number; NULL and 0 where nothing differs. They are valid until
 * the delta is destroyed. Threads: any, while nobody destroys it, also while frames run and others are
 * saved. */
QUERN_API const quern_delta_batch *quern_delta_batches(const quern_delta *delta, uint32_t *out_count);

/** Tells what a delta has cost. Errors: NULL_ARGUMENT. Threads: as quern_delta_batches. */
QUERN_API quern_result quern_delta_get_stats(const quern_delta *delta, quern_delta_stats *out_stats);

/** How often the world has been taken back: a number that changes with each restore. For caches outside of
 * the world that follow it from frame to frame: another number, and all may be different. Threads: main,
 * between frames, and systems. */
QUERN_API uint64_t quern_world_restore_count(const quern_world *world);

#ifdef __cplusplus
}
#endif

#endif
