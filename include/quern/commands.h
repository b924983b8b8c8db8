/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMMANDS_H
#define QUERN_COMMANDS_H

/** @file
 * Commands are structural changes that a system records while it runs. The next sync point applies them.
 * There is a sync point at the end of each phase, and before each exclusive system of the phase.
 *
 * Each job (one system on one chunk) records into its own stream, without locks. The sync point applies
 * the streams in the order of system, chunk and recording. The order depends neither on which thread
 * recorded a command, nor on the number of threads that apply them:
 *
 *   1. Created entities get their handles, in the order of the streams. A slot freed at this sync point is
 *      not reused at it.
 *   2. All commands on one entity are combined into one change. Later commands override earlier ones;
 *      commands after a destroy are dropped. A component that is removed and added again at one sync point
 *      is constructed anew. A remove of a component that the entity requires after all commands
 *      (quern_component_def.required) has no effect, not even if a later command adds it. Commands on
 *      relations (<quern/relation.h>) involve several entities: each one sees the result of all earlier
 *      ones. A destroy also destroys other entities, or is dropped, according to the policies of
 *      relations.
 *   3. Rows move. In each archetype, the members of spawned instances (<quern/prefab.h>) are appended, in
 *      the order of instances; further commands on them change these rows. Then entities from other
 *      archetypes are appended, in the order of their old archetype and row. New entities, in the order of
 *      their creation, fill the rows that became free, the first one first, and are appended after that.
 *      Finally the archetype's last rows fill the rows that are still free, first to first.
 *   4. Slots are freed in the order of archetype and row, those of members included, then the slots of
 *      entities that were created by other commands and destroyed at the same sync point, in the order of
 *      their creation, and of instances that were refused. The slot freed last is reused first.
 *
 * Then accumulated values (quern_commands_accumulate) are combined with the values that the entities have
 * at that point.
 *
 * Component hooks run on the thread that called quern_schedule_run, in the same order at every number of
 * threads (except copy; see quern_hooks).
 *
 * Commands on an entity that was destroyed are dropped; quern_schedule_get_dropped_command returns which system
 * recorded them, how many, and why. An entity does not change if its commands add up to more components or
 * bytes than an entity can have. The same applies if the world has no archetype left for the resulting
 * component set. Its commands are dropped, too, a new entity is not created, and the frame returns an
 * error at its end. A member of an instance stays as the spawn makes it; but overrides with hooks or entity
 * fields, and those beyond 4 KiB together, are set like by commands and dropped with its commands.
 *
 * Nothing is lost if memory runs out: a sync point acquires all the memory that it needs before it changes
 * anything. If it fails, the frame returns an error, the world is as it was before the sync point, and the
 * commands are kept. The next quern_schedule_run retries them, unless quern_schedule_discard_commands is
 * called first.
 *
 * A recorder belongs to the callback that requested it (quern_context_commands) and to that callback's
 * thread, and is valid until the callback returns. Later commands are refused (INVALID_ARGUMENT, and an
 * error in the log) as long as the schedule exists, unless another callback on the same worker has
 * requested the recorder since. A build with QUERN_CHECKS also refuses commands from other threads, and
 * passes the message to the assert handler.
 *
 * A call that fails sets quern_error_message and records nothing. quern_frame_stats counts the failed calls
 * of a frame (failed_command_count), and an error in the log describes the first one of each system and
 * frame, or parallel query. STALE_ENTITY is counted and not logged: programs may keep handles of entities
 * that were destroyed. The frame does not fail. If memory was exhausted, quern_schedule_run also returns
 * QUERN_ERROR_OUT_OF_MEMORY at the end of that frame. If the frame fails for another reason, its message
 * mentions both.
 *
 * Errors of all functions that record: NULL_ARGUMENT, NULL_ENTITY, STALE_ENTITY (destroyed at the last
 * sync point or before), FOREIGN_ENTITY, PROVISIONAL_ENTITY (not created by this callback; a build with
 * QUERN_CHECKS passes the message to the assert handler), UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/relation.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A recorder of commands; see quern_context_commands and quern_world_commands. */
typedef struct quern_commands quern_commands;

/** Why commands were dropped. */
typedef enum quern_drop_reason {
    QUERN_DROP_DESTROYED, /**< An earlier command of the same sync point destroyed the entity. */
    /** The entity had been destroyed before the sync point, by an exclusive system or by code between
     * frames. */
    QUERN_DROP_DEAD,
    /** The commands on the entity add up to more than an entity or the world can have. */
    QUERN_DROP_REFUSED,
    QUERN_DROP_TARGET_DEAD, /**< Relate, and links of a spawn: the target has been destroyed. */
    QUERN_DROP_CYCLE,       /**< Relate, in a relation with levels: the target is below the source. */
    /** Destroy: a relation with QUERN_TARGET_REFUSES has a source that would outlive its target. The target
     * is the entity or another one that would be destroyed with it. */
    QUERN_DROP_TARGET_IN_USE,
    QUERN_DROP_SIBLING_NAME_TAKEN, /**< Set a name, relate, unrelate: a sibling has the name. */
    QUERN_DROP_NO_COMPONENT,       /**< Accumulate: the entity does not have the component. */
    QUERN_DROP_NO_EDGE,            /**< Set the value of an edge: the source does not have the target. */
    /** Clone: the entity cannot be copied, as a line in the log says. Commands on the copy of an entity that was not
     * copied, for this reason or because it was dead; accumulated values on such a copy count as DESTROYED. */
    QUERN_DROP_NOT_COPIED
} quern_drop_reason;

/** Returns a short description, such as "entity destroyed by an earlier command"; "unknown reason" for
 * other numbers. Never NULL. Threads: any. */
QUERN_API const char *quern_drop_reason_string(quern_drop_reason reason);

/** Records the creation of an entity without components. out_entity, which may be NULL, receives a
 * provisional handle; null on failure. The handle is valid in later commands of this callback, and inside
 * fields described as QUERN_FIELD_ENTITY of values passed to these commands. In any other part of a value it
 * is never replaced by the final handle; a build with QUERN_CHECKS reports this at the sync point
 * (docs/commands.md). Further errors: LIMIT. */
QUERN_API quern_result quern_commands_create(quern_commands *commands, quern_entity *out_entity);

/** Records the creation of an entity with components; see quern_entity_create_with for the values, and
 * quern_commands_create for out_entity. Further errors: DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS,
 * COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_commands_create_with(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *values, uint32_t count,
                                                  quern_entity *out_entity);

/** Records the creation of count entities with the same components; see quern_entity_create_many for the
 * columns. out_entities is NULL or has room for count provisional handles, which are stored in order.
 * Further errors: DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_commands_create_many(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *columns, uint32_t component_count,
                                                  uint32_t count, quern_entity *out_entities);

/** Destroys an entity, and the entities related to it according to the policies of relations. All other
 * commands on these entities have no effect, whether recorded before or after. The command is dropped if a
 * relation refuses the destruction. */
QUERN_API quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity);

/** Adds a component. value is copied now; with NULL, the component is constructed at the sync point. If the
 * entity already has the component at that point, a value replaces the old one, and NULL has no effect. */
QUERN_API quern_result quern_commands_add(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

/** Removes a component. No effect if the entity does not have it at that point, or if a component that the
 * entity has after all commands of the sync point requires it. */
QUERN_API quern_result quern_commands_remove(quern_commands *commands, quern_entity entity,
                                             quern_component component);

/** Sets the value of a component, and adds the component if the entity lacks it. value is copied now, and
 * must not be NULL unless the component is a tag. */
QUERN_API quern_result quern_commands_set(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

/** Enables or disables a component that can be disabled, like quern_entity_set_component_enabled, in the order of
 * commands. No effect if the entity does not have the component at that point. A component that is added is
 * enabled, even if it was removed and added again. Further errors: INVALID_ARGUMENT (the component cannot
 * be disabled). */
QUERN_API quern_result quern_commands_set_component_enabled(quern_commands *commands, quern_entity entity,
                                                            quern_component component, bool enabled);

/** Disables or enables an entity and all its descendants in quern_world_parent, like quern_entity_set_enabled
 * (<quern/enabled.h>), in the order of commands: it sees the tree and the states that earlier commands leave, including
 * commands of other callbacks that relate entities, switch trees, or add and remove the tag. The entity may be
 * provisional. An entity that is related to the tree by a later command keeps its state. Further errors:
 * INVALID_ARGUMENT (the tag is not registered; call quern_world_disabled_tag before). */
QUERN_API quern_result quern_commands_set_enabled(quern_commands *commands, quern_entity entity,
                                                  bool enabled);

/** Sets the target of a source in a relation, or adds one in a relation with `many`, like
 * quern_entity_relate, in the order of commands: it sees the results of earlier commands, including those of
 * other callbacks. Source and target may be provisional. Setting or adding the component of the relation, or
 * creating an entity with it, is equivalent, except with `many`. The command is dropped if, at that point,
 * the target has been destroyed or, in a relation with levels, is below the source. Further errors:
 * INVALID_ARGUMENT (not a relation of this world, or source and target are the same). */
QUERN_API quern_result quern_commands_relate(quern_commands *commands, quern_entity source,
                                             quern_relation relation, quern_entity target);

/** Relates like quern_commands_relate, and sets the value of the edge, also of an existing one
 * (quern_entity_relate_with). The value is copied now, and provisional handles in it are replaced. If several
 * commands of a sync point set the value of an edge, the last one does. Further errors: those of
 * quern_commands_relate, and INVALID_ARGUMENT (edges of the relation have no values). */
QUERN_API quern_result quern_commands_relate_with(quern_commands *commands, quern_entity source,
                                                  quern_relation relation, quern_entity target,
                                                  const void *value);

/** Sets the value of an edge, like quern_entity_set_edge_value, in the order of commands. The command is
 * dropped if the source does not have the target at that point. Value and errors: as
 * quern_commands_relate_with. */
QUERN_API quern_result quern_commands_set_edge_value(quern_commands *commands, quern_entity source,
                                                     quern_relation relation, quern_entity target,
                                                     const void *value);

/** Removes the target of a source in a relation, or all targets in a relation with `many`; removing the
 * component of the relation is equivalent. No effect if the source has no target at that point. Further
 * errors: INVALID_ARGUMENT (not a relation of this world). */
QUERN_API quern_result quern_commands_unrelate(quern_commands *commands, quern_entity source,
                                               quern_relation relation);

/** Removes one target of a source in a relation, like quern_entity_unrelate_from. No effect if the source
 * does not have the target at that point. Further errors: those of quern_commands_relate. */
QUERN_API quern_result quern_commands_unrelate_from(quern_commands *commands, quern_entity source,
                                                    quern_relation relation, quern_entity target);

/** Sets the name of an entity, like quern_entity_set_name, in the order of commands: it sees the results of
 * earlier commands, including those of other callbacks. The entity may be provisional. NULL or "" removes
 * the name. The command is dropped with SIBLING_NAME_TAKEN if a sibling has the name at that point. A command that
 * gives the entity another parent (quern_world_parent) is dropped, too, if a sibling there has its name.
 * Further errors: INVALID_ARGUMENT (too long, not UTF-8, or contains '/'). */
QUERN_API quern_result quern_commands_set_name(quern_commands *commands, quern_entity entity,
                                               const char *name);

/* ---------------------------------------------------------------------------------------- whole views */

/** Maximum number of rows of a view, except those of copies of removed rows. A mask of its rows has room in
 * QUERN_MAX_VIEW_ROWS / 64 words. */
#define QUERN_MAX_VIEW_ROWS 2048

/** The rows of a view that a command concerns. Zeroed, or NULL in its place: all rows; in a view that has all
 * rows of its chunk (QUERN_SYSTEM_WHOLE_CHUNKS), those that quern_view_next_range returns. Set at most one of
 * mask and list. They may also name rows that terms leave out. */
typedef struct quern_view_rows {
    /** One bit per row of the view, view.count in all: bit i % 64 of word i / 64 is set if row i is chosen. */
    const uint64_t *mask QUERN__ZERO;
    const uint32_t *list QUERN__ZERO; /**< Indices of rows below view.count, each once, ascending. */
    uint32_t list_count QUERN__ZERO;  /**< Number of elements of the list. */
} quern_view_rows;

/** Adds a component to all entities of a view, or to the chosen rows. Like every command on views, the call has
 * the effect of quern_commands_add (or of the function with the corresponding name) for the entity of each row,
 * in the order of rows and of all commands, and counts as that many commands. It records no command per row,
 * and a sync point applies it to many rows at once (docs/commands.md lists costs and exceptions).
 *
 * The view must be one of the running callback, or of an iteration since the last structural change. The
 * entities are those that it has now: if rows move before the sync point, the command follows the entities.
 * value is copied now, once for all rows, so a type with a move or destroy hook needs a copy hook; with NULL, the
 * component is constructed. Further errors of all commands on views: INVALID_ARGUMENT (the view has no rows of
 * this world, because it is empty, too old, or has copies of removed rows; a list of rows is not ascending or has
 * an index out of range; both a mask and a list are set; one value of a type without a copy hook). */
QUERN_API quern_result quern_commands_add_view(quern_commands *commands, const quern_view *view,
                                               const quern_view_rows *rows, quern_component component,
                                               const void *value);

/** Sets a component of all entities of a view, or of the chosen rows, to one value, like quern_commands_set.
 * value is copied now, and must not be NULL unless the component is a tag. */
QUERN_API quern_result quern_commands_set_view(quern_commands *commands, const quern_view *view,
                                               const quern_view_rows *rows, quern_component component,
                                               const void *value);

/** Sets a component of all entities of a view, or of the chosen rows, each to its own value, like
 * quern_commands_set. values: an array with the value of each row of the view, view.count in all; those of rows
 * that are not chosen are not read. Copied now. */
QUERN_API quern_result quern_commands_set_view_values(quern_commands *commands, const quern_view *view,
                                                      const quern_view_rows *rows,
                                                      quern_component component, const void *values);

/** Removes a component from all entities of a view, or from the chosen rows, like quern_commands_remove. */
QUERN_API quern_result quern_commands_remove_view(quern_commands *commands, const quern_view *view,
                                                  const quern_view_rows *rows, quern_component component);

/** Destroys all entities of a view, or those in the chosen rows, like quern_commands_destroy. */
QUERN_API quern_result quern_commands_destroy_view(quern_commands *commands, const quern_view *view,
                                                   const quern_view_rows *rows);

/* -------------------------------------------------------------------------------------- accumulating */

/** Maximum number of functions registered with quern_combine_register, per world. */
#define QUERN_MAX_COMBINES 256

/** How an accumulated value is combined with the current one: QUERN_SUM, QUERN_MIN, QUERN_MAX, or a
 * registered function. */
typedef struct quern_combine {
    uint32_t bits; /**< Internal. */
} quern_combine;

#ifdef __cplusplus
#define QUERN_SUM (quern_combine{1})
#define QUERN_MIN (quern_combine{2})
#define QUERN_MAX (quern_combine{3})
#else
#define QUERN_SUM ((quern_combine){1}) /**< Adds the values, field by field; integers wrap around. */
/** Keeps the lesser value, field by field. NaN is neither less nor greater than any value. */
#define QUERN_MIN ((quern_combine){2})
/** Keeps the greater value, field by field. NaN is neither less nor greater than any value. */
#define QUERN_MAX ((quern_combine){3})
#endif

/** Combines `accumulated` into `value`. Called at sync points: for different values by several threads at
 * the same time, for one value in the order of commands. It must not call the world. */
typedef void quern_combine_function(void *value, const void *accumulated, void *user_data);

/** Definition of a way to combine values. */
typedef struct quern_combine_def {
    const char *name QUERN__ZERO; /**< Name of 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world. */
    quern_combine_function *function QUERN__ZERO; /**< The function. Required. */
    void *user_data QUERN__ZERO;                  /**< Passed to the function. */
} quern_combine_def;

/** Registers a function that combines values. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name),
 * DUPLICATE_NAME, LIMIT (QUERN_MAX_COMBINES), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames.
 */
QUERN_API quern_result quern_combine_register(quern_world *world, const quern_combine_def *def,
                                              quern_combine *out_combine);

/** Gives the registered combine of this name another function and user_data, also for values that are accumulated
 * already. Its handle stays. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the world has no combine of this name),
 * WORLD_LOCKED (also in exclusive systems). Threads: main, between frames. */
QUERN_API quern_result quern_combine_redefine(quern_world *world, const quern_combine_def *def,
                                              quern_combine *out_combine);

/** Combines a value with the value that the entity has after all other commands of the sync point. For
 * example, a turret lowers the health of its target. value is copied now. The entity may be provisional.
 * Unlike other commands, this one does not check that the entity is alive, because that read would be a
 * cache miss for each entity. The call therefore succeeds for a stale handle, and the command is dropped
 * at the sync point.
 *
 * Values for one entity are combined in the order of commands, so that even sums of floats are the same at
 * every number of threads. QUERN_SUM, QUERN_MIN and QUERN_MAX need components with all bytes described as
 * numbers (QUERN_FIELD_I8 to QUERN_FIELD_F64). The command is dropped if, at that point, the entity was
 * destroyed or lacks the component. Change filters and reactions treat it like setting the component.
 * Further errors: INVALID_ARGUMENT (unknown combine; or the component has bytes that are not described as
 * numbers, is a tag, or is maintained by Quern itself). */
QUERN_API quern_result quern_commands_accumulate(quern_commands *commands, quern_entity entity,
                                                 quern_component component, const void *value,
                                                 quern_combine combine);

/* ----------------------------------------------------------------------------------- between frames */

/** Returns a recorder for code between frames and in exclusive systems, for the functions above. Its
 * commands are applied by quern_world_flush, or otherwise before the first system of the next frame on the
 * world: at a sync point of their own, before everything else, even before commands that an earlier frame
 * has kept.
 *
 * All commands recorded since the recorder was last applied count as one callback: handles from
 * quern_commands_create are provisional until they are applied. The commands of each exclusive system's
 * callback, and those after a failed sync point, count as another callback. After each of these, and after
 * a frame, request the recorder again. quern_world_hash and quern_world_validate ignore waiting commands;
 * quern_world_destroy destroys their values. Returns NULL, with a message, on failure. Errors:
 * NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_commands *quern_world_commands(quern_world *world);

/** Applies the commands of quern_world_commands, by the rules above. Without commands it does nothing.
 *
 * Errors, with the world unchanged and the commands kept: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY, LIMIT
 * (number of entities). Errors after all commands were processed: OUT_OF_MEMORY (a command could not be
 * recorded); TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE or LIMIT, as in quern_schedule_run. Threads: main,
 * between frames and in exclusive systems. */
QUERN_API quern_result quern_world_flush(quern_world *world);

/** Drops the waiting commands of quern_world_commands and destroys their values. Use it if only a part of
 * related commands could be recorded. Errors: NULL_ARGUMENT, WORLD_LOCKED. Threads: main, between frames
 * and in exclusive systems. */
QUERN_API quern_result quern_world_discard_commands(quern_world *world);

/** Statistics of the world's last sync point outside of a schedule: that of quern_world_flush or
 * quern_query_parallel_for, or the one before the first system of a frame that applies the commands of
 * quern_world_commands. */
typedef struct quern_flush_stats {
    /** Commands applied or dropped. Creating an entity with n components counts as 1 + n. */
    uint64_t command_count;
    /** Commands dropped because their entity had been destroyed, or because they exceeded a limit. */
    uint64_t dropped_count;
    uint64_t created_count;   /**< Entities created. */
    uint64_t destroyed_count; /**< Entities destroyed. */
} quern_flush_stats;

/** Returns the statistics of the last flush; all 0 before the first. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_world_get_flush_stats(const quern_world *world, quern_flush_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
