/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_HISTORY_H
#define QUERN_HISTORY_H

/** @file
 * A history keeps the last frames of a world and can restore each of them.
 *
 * A history saves a world and its schedules between frames, under numbers that the program chooses. After
 * a frame is restored, the world has the same entities with the same handles, values, row order, targets,
 * names, resources and waiting events as when the frame was saved. The frames that run next then compute
 * the same results again, bit for bit, on any number of threads.
 *
 *     quern_history *history;
 *     quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history);
 *     for (uint64_t frame = 0;; frame++) {
 *         quern_history_save(history, frame, jobs);      // before the frame with this number
 *         quern_schedule_run(schedule, jobs, seconds);
 *         if (late) {                                    // an input of frame `late` has just arrived
 *             quern_history_restore(history, late, jobs);
 *             frame = late - 1;                          // the frames from `late` on run again
 *         }
 *     }
 *
 * Frames share the columns of chunks that were not written between them. Saving copies the columns that
 * were written since the last call, and restoring copies the columns that differ. Writes are known from
 * calls and views, never by comparing values. Therefore a pointer for writing must not be used after the
 * next save or restore, even if no row has moved: request it again. A build with QUERN_CHECKS detects such
 * writes.
 *
 * Saved and restored:
 *   - entities, their components, values, rows and order;
 *   - which entities and components are disabled;
 *   - targets, names and resources;
 *   - waiting events, and which readers have seen them;
 *   - commands that wait to be applied, and changes that reactions have not seen yet;
 *   - serial numbers;
 *   - of the schedules of the history: the number of the next frame, number and remaining time of fixed
 *     steps, remaining time of intervals, what change filters have seen, which systems and sets are enabled,
 *     and the targets of systems.
 *
 * Not restored:
 *   - types, relations, prefabs, queries and systems created since, which remain;
 *   - settings of schedules;
 *   - resources registered since, which keep their values;
 *   - change filters of queries in code between frames, which then see everything as changed once;
 *   - data outside of the world, such as user_data.
 *
 * Values of a type with a copy hook are copied into and out of the history by this hook, and destroyed by
 * the destroy hook, also in waiting commands and events. A type with a move or destroy hook but no copy
 * hook cannot be saved.
 *
 * While a world has a history, all its chunks keep change versions, as if all components had change
 * filters.
 *
 * Threads: main, between frames. */

#include <quern/base.h>
#include <quern/jobs.h>
#include <quern/schedule.h>
#include <quern/sink.h>
#include <quern/source.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_HISTORY_SCHEDULES 8     /**< Maximum number of schedules that one history saves. */
#define QUERN_MAX_HISTORY_FRAMES    65536 /**< Maximum number of frames that one history keeps. */

/** The last frames of a world; see quern_history_create. */
typedef struct quern_history quern_history;

/** Definition of a history. */
typedef struct quern_history_def {
    /** Schedules that are saved with the world. The list ends at its first NULL. They must belong to the
     * history's world and outlive the history. */
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES] QUERN__ZERO;
    /** Maximum number of kept frames, up to QUERN_MAX_HISTORY_FRAMES; 0 means 16. Creating the history
     * allocates about 112 bytes for each; saving a frame allocates its contents. */
    uint32_t frame_count QUERN__ZERO;
    /** Allocator of the history. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
} quern_history_def;

/** Statistics of a history and of its last call. */
typedef struct quern_history_stats {
    uint32_t frame_count; /**< Number of frames kept. */
    /** Number of memory pages in use. A page that several frames share counts once. */
    uint64_t page_count;
    uint64_t used_bytes; /**< Bytes of the pages in use. */
    /** Bytes of all memory allocated for pages, freed when the history is destroyed. */
    uint64_t held_bytes;
    uint64_t copied_bytes; /**< Bytes of columns that the last save or restore copied. */
    uint64_t copied_count; /**< Columns of chunks that the last save or restore copied. */
} quern_history_stats;

/** Creates a history without frames. A world has at most one. Until the history is destroyed, all chunks of
 * the world keep change versions. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (a schedule of
 * another world, or a schedule listed twice), LIMIT (frame_count exceeds QUERN_MAX_HISTORY_FRAMES, or the
 * world has a history already), OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_history_create(quern_world *world, const quern_history_def *def,
                                            quern_history **out_history);

/** Destroys a history and all its frames. The world does not change. Destroy the history's deltas first,
 * and its schedules and its world afterwards; a call in another order is refused, and so is one while a user of the
 * world refers to the history (quern_world_add_user). NULL is allowed. Threads:
 * main, between frames. */
QUERN_API void quern_history_destroy(quern_history *history);

/** Saves the world and the schedules of the history as frame number `frame`. Frames kept under this number
 * or a later one are dropped, because they belong to another timeline. If more than frame_count frames are
 * kept then, the oldest is dropped. Once frame_count frames of this size were saved, saving allocates
 * nothing. jobs may be NULL.
 *
 * Errors, with world and history unchanged: NULL_ARGUMENT, WORLD_LOCKED, POOL_BUSY, THREAD_UNAVAILABLE, OUT_OF_MEMORY,
 * and INVALID_ARGUMENT. The last means that something cannot be copied, and the message names it. It may
 * be a type with hooks but no copy hook, or a removed value with hooks that reactions have not seen. It
 * may be a waiting command that spawns a prefab, or that belongs to a schedule outside of the history. Or
 * it may be an event that a failed frame could not publish. In a build with QUERN_CHECKS it can also mean
 * that values were written through a pointer from before the last save or restore. Threads: main, between
 * frames. */
QUERN_API quern_result quern_history_save(quern_history *history, uint64_t frame, quern_jobs *jobs);

/** Restores the world and the schedules of the history to a kept frame, which may be earlier or later than
 * the current state. All kept frames remain. The current state may be that of a failed frame: commands that
 * were not applied and events that were not published are discarded in all schedules of the world. The
 * commands that waited when the frame was saved wait again. jobs may be NULL. Allocates from the world's
 * allocator only if the frame has more rows, records, events or commands than the world has room for.
 *
 * Errors, with everything unchanged: NULL_ARGUMENT, WORLD_LOCKED, POOL_BUSY, THREAD_UNAVAILABLE, OUT_OF_MEMORY,
 * INVALID_ARGUMENT (the frame is not kept). Threads: main, between frames. */
QUERN_API quern_result quern_history_restore(quern_history *history, uint64_t frame, quern_jobs *jobs);

/** Returns the numbers of the oldest and the newest kept frame; some numbers in between may not have been
 * saved. Returns false, and changes neither, if no frame is kept. Either pointer may be NULL. Threads:
 * main. */
QUERN_API bool quern_history_get_frames(const quern_history *history, uint64_t *out_oldest,
                                        uint64_t *out_newest);

/** Stores the numbers of up to `capacity` kept frames, from the oldest on in ascending order, and returns how many are
 * kept. out_frames may be NULL if capacity is 0. Returns 0, with a message, if the call is wrong. Costs O(capacity).
 * Threads: main. */
QUERN_API uint32_t quern_history_list_frames(const quern_history *history, uint64_t *out_frames,
                                             uint32_t capacity);

/** Returns the statistics of a history. Errors: NULL_ARGUMENT. Threads: main. */
QUERN_API quern_result quern_history_get_stats(const quern_history *history,
                                               quern_history_stats *out_stats);

/* ------------------------------------------------------------------------------------ differences */

/** The difference that a batch of a delta describes, from frame `from` to frame `to`. */
typedef enum quern_delta_kind {
    /** The entities exist only in `to`. ADDED batches with their components follow. */
    QUERN_DELTA_CREATED = 1,
    /** The entities have the component only in `to`. For a relation, they may also have another target in
     * `from`, which a REMOVED batch has removed before. */
    QUERN_DELTA_ADDED,
    /** The entities have the component in both, with different values. The value of an edge also changes with the target:
     * another edge has a value of its own, even if both are equal. */
    QUERN_DELTA_CHANGED,
    /** The entities have the component only in `from`. For a relation, they may also have another target
     * in `to`, which an ADDED batch adds later. */
    QUERN_DELTA_REMOVED,
    QUERN_DELTA_ENABLED,  /**< The component is disabled in `from`, but in `to` it is enabled or absent. */
    QUERN_DELTA_DISABLED, /**< The component is disabled in `to`, but not in `from`. */
    /** One entity gets another name, or none; it may get its final name in a later batch. */
    QUERN_DELTA_NAMED,
    /** The entities exist only in `from`. REMOVED batches with their components precede. */
    QUERN_DELTA_DESTROYED,
    QUERN_DELTA_RESOURCE, /**< A resource has different values. */
    /** The entities are related to the targets in `values` only in `to`, by a relation with `many`. */
    QUERN_DELTA_RELATED,
    /** The entities are related to the targets in `old_values` only in `from`, by a relation with `many`. */
    QUERN_DELTA_UNRELATED
} quern_delta_kind;

/** A difference that several entities have in common. The entities are consecutive in both frames, so that
 * handles and values are plain arrays. In RELATED and UNRELATED, an entity is repeated for each of its
 * targets. Members that do not apply to the kind are zero. */
typedef struct quern_delta_batch {
    quern_delta_kind kind;        /**< The difference. */
    uint32_t count;               /**< Number of entities, at least 1; 0 for RESOURCE. */
    const quern_entity *entities; /**< Handles of the entities. */
    /** The component, for ADDED, CHANGED, REMOVED, ENABLED and DISABLED; that of the relation, for RELATED
     * and UNRELATED. */
    quern_component component;
    quern_resource resource; /**< The resource, for RESOURCE. */
    uint32_t value_bytes;    /**< Size of one value; 0 for tags. */
    /** Values in `to`, for ADDED, CHANGED and RESOURCE; NULL for tags. For RELATED, the targets
     * (quern_entity). */
    const void *values;
    /** Values in `from`, for REMOVED, CHANGED and RESOURCE; NULL for tags. For UNRELATED, the targets. */
    const void *old_values;
    const char *name;     /**< Name after the batch, for NAMED; NULL for none. */
    const char *old_name; /**< Name before the batch, for NAMED; NULL for none. */
} quern_delta_batch;

/** The differences between two frames; see quern_delta_create. */
typedef struct quern_delta quern_delta;

/** Cost of a delta. */
typedef struct quern_delta_stats {
    uint64_t compared_count; /**< Columns of chunks and arrays of handles that were compared. */
    uint64_t compared_bytes; /**< Bytes that were compared, counted in one of the two frames. */
} quern_delta_stats;

/** Computes the differences between two kept frames, from `from`, which may be the later one, to `to`.
 * Columns that both frames share are skipped, so the cost is proportional to the data written between the
 * two. To compare the current world, save it first.
 *
 * The batches have this order, which depends on the two frames only:
 *
 *   1. NAMED without a name, by index of the entity: names that are cleared
 *   2. ENABLED and REMOVED, per range of rows by component: first for entities that exist in both frames,
 *      by archetype and row of `to`, then for entities that exist only in `from`, by archetype and row of
 *      `from`
 *   3. UNRELATED, by relation; in a batch by index of the source, then by index of the target
 *   4. DESTROYED, by archetype and row of `from`
 *   5. CREATED, by archetype and row of `to`
 *   6. per range of rows by component, by archetype and row of `to`; for one component in this order:
 *      ADDED or CHANGED, ENABLED, DISABLED
 *   7. RELATED, in the order of UNRELATED; then the values of edges, as in 6
 *   8. NAMED, by index of the entity: names that are set
 *   9. RESOURCE, in the order of registration
 *
 * A world equal to `from` becomes equal to `to` if each batch is applied in this order by plain calls, in
 * a loop over its entities: quern_entity_create, _add, _set, _remove, _enable, _relate, _unrelate_from,
 * _set_name and _destroy never fail because of the state of the world. A world with other handles must
 * translate the handles of the entities and the handles inside values; an entity is created before any
 * value refers to it.
 * Everything is removed before anything is added. Therefore names never collide, relations with levels
 * never form a cycle, and no entity exceeds its maximum number of components. A destroyed entity is no
 * entity's target, so policies of relations have no effect.
 *
 * The target of a relation is the value of the relation's component (a quern_entity), so relating appears
 * as ADDED, CHANGED and REMOVED. A new target appears as CHANGED if the old target exists in `to`, and the
 * relation has no levels or the source is itself no target in `to`; otherwise it appears as REMOVED, and
 * later as ADDED. Targets of relations with `many` appear as RELATED and UNRELATED, and the tag of these
 * relations in no batch.
 *
 * A name is cleared (1) if its entity does not exist in `to`, has no name or another parent there, or if
 * another entity has this parent and name in `to`. The entity's name in `to`, if any, is then set later
 * (8). Other names change in one step (8).
 *
 * Exchanging `from` and `to` gives the opposite delta: entities of CREATED are DESTROYED, components of
 * ADDED are REMOVED, and old values and values are exchanged.
 *
 * A delta does not contain: the order of rows, the order of the sources of a target, events, which handles
 * are given out next, the state of schedules, and whether an entity is disabled by itself or through its
 * parent (see <quern/enabled.h>; the tag quern_world_disabled_tag is contained). Entities that move to another
 * archetype appear as ADDED and REMOVED.
 *
 * Two values differ if their described fields differ, or for types without described fields, if their
 * bytes differ. Values of types with hooks and without described fields cannot be compared: they count as
 * CHANGED if they may have been written, and resources of such types always do.
 *
 * The delta owns the data that its batches point to, even after its frames are dropped and through saves
 * and restores, until quern_delta_destroy. It allocates nothing once a delta of this size was computed
 * before. Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY, INVALID_ARGUMENT (a frame is not kept, or
 * both are the same frame). Threads: main, between frames. */
QUERN_API quern_result quern_delta_create(quern_history *history, uint64_t from, uint64_t to,
                                          quern_delta **out_delta);

#define QUERN_MAX_DELTA_COMPONENTS \
    64 /**< Maximum number of components to which a delta, or its bytes, are limited. */

/** The part of two frames that a limited delta compares. All zero: everything. */
typedef struct quern_delta_def {
    /** The entities: those that the query matches in each of both frames; NULL: all. The query belongs to the world of
     * the history. Terms may neither be change filters nor select single rows: no target terms, up-terms, and terms on
     * enabled or disabled rows (use quern_term_either for components that can be disabled). Disabled entities match as
     * in any query. */
    quern_query *query QUERN__ZERO;
    /** Components whose changes are compared. The list ends at its first null; if it is empty, all are compared. A
     * relation is listed by quern_relation_component. */
    quern_component components[QUERN_MAX_DELTA_COMPONENTS] QUERN__ZERO;
    bool skip_names QUERN__ZERO;     /**< Whether names are left out. */
    bool skip_resources QUERN__ZERO; /**< Whether resources are left out. */
} quern_delta_def;

/** Computes the differences between the parts of two kept frames that the definition selects, as if each frame had
 * nothing else. A copy of the selected part of `from` becomes one of `to`: the batches have the order of
 * quern_delta_create, and can be applied and written in the same ways.
 *
 * An entity that matches only in `to` is CREATED, with all its selected components. One that matches only in `from` is
 * DESTROYED. An entity that no longer matches, and matches again later, is thus destroyed and created again. Its key
 * (quern_entity_key) stays the same.
 *
 * A relation is selected only between two entities that match. If a target begins to match, its sources get the
 * relation in the same delta; if a target no longer matches, they lose it. A name is selected if the entity has no
 * parent, or if its parent matches and the components include quern_world_parent; it would not be unique otherwise.
 * Handles in other components are values, whether or not the entity matches: quern_delta_apply stores null for an
 * entity that the other world does not have, and does not repair the handle when that entity is created later.
 *
 * The cost is that of the selected changes. With a query in a world with relations or names, it also includes a visit
 * of each matching entity; and, if an entity has begun or ceased to match, of each selected relation. Everything else,
 * and errors, are as for quern_delta_create. Further errors: INVALID_ARGUMENT (a query of another world, or with terms
 * that are not possible; a component after the end of the list), UNKNOWN_COMPONENT. */
QUERN_API quern_result quern_delta_create_limited(quern_history *history, uint64_t from, uint64_t to,
                                                  const quern_delta_def *def, quern_delta **out_delta);

/** Destroys a delta. Destroy it before its history. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_delta_destroy(quern_delta *delta);

/** Returns the batches of a delta and sets out_count to their number; NULL and 0 if nothing differs. The
 * batches are valid until the delta is destroyed. Threads: any, also while frames run and are saved, until
 * the delta is destroyed. */
QUERN_API const quern_delta_batch *quern_delta_batches(const quern_delta *delta, uint32_t *out_count);

/** Returns the cost of a delta. Errors: NULL_ARGUMENT. Threads: as quern_delta_batches. */
QUERN_API quern_result quern_delta_get_stats(const quern_delta *delta, quern_delta_stats *out_stats);

/* ------------------------------------------------------------------------------- deltas as bytes */

/** What quern_delta_write writes of a delta. */
typedef struct quern_delta_write_def {
    /** Components whose changes are written. The list ends at its first null; if it is empty, all are written. Created
     * and destroyed entities are written in any case. A relation is listed by quern_relation_component. */
    quern_component components[QUERN_MAX_DELTA_COMPONENTS] QUERN__ZERO;
    bool skip_names QUERN__ZERO;     /**< Whether changes of names are left out. */
    bool skip_resources QUERN__ZERO; /**< Whether changes of resources are left out. */
    /** Number of the first batch to write, and how many to write at most; 0 means all. So a large delta can be divided:
     * its parts are applied one after another, in order. */
    uint32_t first_batch QUERN__ZERO;
    uint32_t batch_count QUERN__ZERO; /**< See first_batch. */
} quern_delta_write_def;

/** Writes a delta as bytes that quern_delta_apply applies to another world. def may be NULL. Entities are
 * written as their keys (quern_entity_key), also in described fields. Only new values are written, so the
 * bytes lead from `from` to `to` and not back. Types are written as names and hashes of their layouts: both
 * worlds must have the same types, in any order. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (a
 * value with hooks changes), UNKNOWN_COMPONENT, UNAVAILABLE (a big-endian machine), OUT_OF_MEMORY, IO.
 * Threads: main, between frames. */
QUERN_API quern_result quern_delta_write(const quern_delta *delta, const quern_delta_write_def *def,
                                         quern_sink sink);

/** Applies the deltas of another world to a world, and knows which of its entities is which. */
typedef struct quern_delta_applier quern_delta_applier;

/** Creates an applier. To begin with, each key stands for the entity with the same slot and use count: that
 * is right for a world into which an archive of the other world was loaded as its first entities, and that
 * both have not changed since. For all other entities, call quern_delta_applier_map. Entities that deltas
 * create are entered by themselves. Destroy the applier before its world. Errors: NULL_ARGUMENT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_delta_applier_create(quern_world *world, quern_delta_applier **out_applier);

/** Destroys an applier. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_delta_applier_destroy(quern_delta_applier *applier);

/** Enters which entity stands for a key of the other world. Use it with ids that both programs have. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (key 0), WORLD_LOCKED, STALE_ENTITY and the other errors of an invalid
 * handle, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_delta_applier_map(quern_delta_applier *applier, uint64_t key,
                                               quern_entity entity);

/** Returns the entity that stands for a key of the other world, or null. Threads: main, between frames. */
QUERN_API quern_entity quern_delta_applier_find(const quern_delta_applier *applier, uint64_t key);

/** Returns the key by which deltas refer to an entity of the world, alive or not: its use count in the upper
 * half, its slot in the lower one. It is the same in all processes. 0 for null, provisional and foreign
 * handles. Threads: any. */
QUERN_API uint64_t quern_entity_key(const quern_world *world, quern_entity entity);

/** Applies the bytes of a delta to a world that is in the older state, which then is in the newer state: by
 * one sync point, at which reactions see the changes like any others. The order of rows, slots and siblings
 * may differ from the other world. Keys in values that stand for no entity become null.
 *
 * Errors, with nothing changed: NULL_ARGUMENT, WORLD_LOCKED, BAD_ARCHIVE (truncated, damaged or forged
 * bytes; an entity does not exist, or exists already), UNKNOWN_COMPONENT (a missing component or resource),
 * LAYOUT_MISMATCH, UNAVAILABLE, OUT_OF_MEMORY, LIMIT. INVALID_ARGUMENT means that the world was not in the
 * older state: changes that were impossible were left out, and the others applied. Threads: main, between
 * frames. */
QUERN_API quern_result quern_delta_apply(quern_delta_applier *applier, quern_source source);

/** Returns a number that changes with each restore of the world. A cache outside of the world that is
 * updated from frame to frame must be rebuilt if the number has changed, because every value may differ. 0
 * with a message for NULL. Threads: main, between frames, and systems. */
QUERN_API uint64_t quern_world_restore_count(const quern_world *world);

#ifdef __cplusplus
}
#endif

#endif
