/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMMANDS_H
#define QUERN_COMMANDS_H

/** @file
 * Commands: structural changes that a system asks for, applied at the next sync point. A sync point is
 * at the end of each phase, and within it before each exclusive system.
 *
 * Each job (one system on one chunk) records into its own stream, without locks. The sync point applies
 * streams in the order system, chunk, record, whichever thread recorded them, and however many threads
 * apply them:
 *   1. Creates get their handles, in that order. A slot freed at this sync point is not reused by it.
 *   2. All commands on one entity add up to one change. Later commands win over earlier ones; after a
 *      destroy, further commands on that entity are dropped. A component that is removed and added again at
 *      one sync point starts anew. Relations (<quern/relation.h>) are about several entities: there each
 *      command finds what all before it have done, and a destroy ends, or refuses to end, what the policies
 *      of relations say.
 *   3. Rows of each archetype: entities from other archetypes are appended, in the order of the archetype
 *      and row they come from. New entities, in the order of their creates, take the rows that others have
 *      left, the first one first, or are appended. Members of instances (<quern/prefab.h>) that are put
 *      together come next, in the order of instances. The archetype's last rows fill the rows that are
 *      still empty, first to first.
 *   4. Slots are freed in the order of archetype and row, then those of entities that were created and
 *      destroyed at the same sync point, in the order of their creates. The slot freed last is reused
 *      first.
 *
 * After all that, values that were accumulated (quern_commands_accumulate) are combined with what the
 * entities have by then.
 *
 * Component hooks run on the thread that called quern_schedule_run, in the same order at every number of
 * threads (but see copy in quern_hooks).
 *
 * Commands on an entity that is gone are dropped: quern_schedule_get_drop says whose, how many and why.
 * An entity whose commands add up to more than it can have (components, bytes), or to a set that the
 * world has no archetype left for, stays as it was. Its commands are dropped too, and the frame says so
 * at its end; a new entity is then not created.
 *
 * Nothing is lost when memory runs out: a sync point acquires all it needs before it changes anything.
 * If it cannot, the frame returns an error, the world is as it was before the sync point, and the
 * commands are kept: quern_schedule_run tries them again, unless quern_schedule_discard_commands is
 * called first.
 *
 * A recorder belongs to the callback that got it (quern_context_commands) and to that callback's thread,
 * and must not outlive the callback. Commands after the callback are refused (INVALID_ARGUMENT, and an
 * error in the log) as long as the schedule lives, whatever pools it runs on meanwhile, unless another
 * callback on the same worker has asked for the recorder. A build with QUERN_CHECKS also refuses commands from other threads, and hands the message to the assert
 * handler.
 *
 * A call that fails says why and records nothing. Running out of memory also makes quern_schedule_run
 * return QUERN_ERROR_OUT_OF_MEMORY at the end of that frame, so it cannot go unnoticed: also if the frame
 * fails for another reason, which the message tells as well.
 *
 * Errors of all calls: NULL_ARGUMENT, NULL_ENTITY, STALE_ENTITY (gone since the last sync point or
 * before), FOREIGN_ENTITY, PROVISIONAL_ENTITY (not created by this callback; a build with QUERN_CHECKS
 * hands the message to the assert handler), UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/relation.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Records commands; got from quern_context_commands. */
typedef struct quern_commands quern_commands;

/** Why commands were dropped. */
typedef enum quern_drop_reason {
    QUERN_DROP_DESTROYED, /**< An earlier command of the same sync point destroyed their entity. */
    QUERN_DROP_DEAD,      /**< It was gone when the sync point began: an exclusive system or the program
                             destroyed it. */
    QUERN_DROP_REFUSED,   /**< The commands on it add up to more than an entity, or the world, can have. */
    QUERN_DROP_TARGET_DEAD,   /**< Relate: the target was gone by then. */
    QUERN_DROP_CYCLE,         /**< Relate: the target was below the source by then. */
    QUERN_DROP_TARGET_IN_USE, /**< Destroy: a relation with QUERN_TARGET_REFUSES has sources of it, or of
                                what would be destroyed with it, that would go on. */
    QUERN_DROP_NAME_TAKEN,    /**< Set a name, relate, unrelate: a sibling had the name by then. */
    QUERN_DROP_NO_COMPONENT   /**< Accumulate: the entity does not have the component by then. */
} quern_drop_reason;

/** Returns a few words, such as "entity destroyed by an earlier command"; "unknown reason" for other
 * numbers. Never NULL. Threads: any. */
QUERN_API const char *quern_drop_reason_string(quern_drop_reason reason);

/** Creates an entity without components. Its provisional handle is valid in later commands of this
 * callback, and inside fields described as QUERN_FIELD_ENTITY of values given to them. Elsewhere in values
 * it stays provisional for ever, which a build with QUERN_CHECKS reports at the sync point
 * (docs/commands.md). Returns null, with a message, on failure. */
QUERN_API quern_entity quern_commands_create(quern_commands *commands);

/** Creates an entity with components; values as in quern_entity_create_with. Returns null, with a message,
 * on failure; nothing is recorded then. */
QUERN_API quern_entity quern_commands_create_with(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *values, uint32_t count);

/** Creates count entities with the same components; columns as in quern_entity_create_many. out_entities is
 * NULL or has room for count provisional handles, which it gets in order. On failure nothing is recorded.
 * Further errors: DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_commands_create_many(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *columns, uint32_t component_count,
                                                  uint32_t count, quern_entity *out_entities);

/** Destroys an entity, and by the policies of relations those that are related to it. Commands on these do
 * nothing then, before or after. Dropped where a relation refuses it. */
QUERN_API quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity);

/** Adds a component. value is copied now; NULL constructs the component at the sync point. If the entity
 * has the component by then, a value replaces the old one and NULL leaves it. */
QUERN_API quern_result quern_commands_add(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

/** Removes a component. Does nothing if the entity does not have it by then. */
QUERN_API quern_result quern_commands_remove(quern_commands *commands, quern_entity entity,
                                             quern_component component);

/** Gives a component a value, which is copied now, and adds the component where it is missing. value must
 * not be NULL unless the component is a tag. */
QUERN_API quern_result quern_commands_set(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

/** Enables or disables a component that can be disabled, as quern_entity_enable does, in the order of
 * commands. Does nothing if the entity does not have it by then. Components that are added are enabled,
 * also one that is removed and added again. Further errors: INVALID_ARGUMENT (it cannot be disabled). */
QUERN_API quern_result quern_commands_enable(quern_commands *commands, quern_entity entity,
                                             quern_component component, bool enabled);

/** Gives the source a target, as quern_entity_relate does, in the order of commands: what earlier commands
 * have done counts, also those of other callbacks. Either may be provisional. To set or add the component
 * of the relation, or to create with it, is the same. Dropped where the target is gone by then, or below
 * the source. Further errors: INVALID_ARGUMENT (no relation of this world, or the source itself). */
QUERN_API quern_result quern_commands_relate(quern_commands *commands, quern_entity source,
                                             quern_relation relation, quern_entity target);

/** Takes the target from the source; so does removing the component of the relation. Does nothing if it has
 * none by then. Further errors: INVALID_ARGUMENT (no relation of this world). */
QUERN_API quern_result quern_commands_unrelate(quern_commands *commands, quern_entity source,
                                               quern_relation relation);

/** Gives an entity a name, as quern_entity_set_name does, in the order of commands: what earlier commands
 * have done counts, also those of other callbacks. The entity may be provisional. NULL or "" takes its name
 * away. Dropped where a sibling has the name by then (NAME_TAKEN); so is relating or unrelating by
 * quern_world_parent where a new sibling has the name of the entity. Further errors: INVALID_ARGUMENT (too
 * long, not UTF-8, or with '/'). */
QUERN_API quern_result quern_commands_set_name(quern_commands *commands, quern_entity entity,
                                               const char *name);

/* -------------------------------------------------------------------------------------- accumulating */

#define QUERN_MAX_COMBINES 256 /**< Functions registered with quern_combine_register, per world. */

/** How an accumulated value comes to the one that is there: QUERN_SUM, QUERN_MIN, QUERN_MAX, or a
 * function of the program's own. */
typedef struct quern_combine {
    uint32_t bits; /**< Internal. */
} quern_combine;

#ifdef __cplusplus
#define QUERN_SUM (quern_combine{1})
#define QUERN_MIN (quern_combine{2})
#define QUERN_MAX (quern_combine{3})
#else
#define QUERN_SUM ((quern_combine){1}) /**< Adds, field by field; integers wrap around. */
#define QUERN_MIN \
    ((quern_combine){2}) /**< The lesser one, field by field; NaN is neither less nor greater. */
#define QUERN_MAX ((quern_combine){3}) /**< The greater one, likewise. */
#endif

/** Makes value what the two come to. Called at sync points, by several threads at the same time for
 * different values, and for the same value in the order of commands. It must not call into the world. */
typedef void quern_combine_function(void *value, const void *accumulated, void *user_data);

/** Describes a way to combine. */
typedef struct quern_combine_def {
    const char *name QUERN__ZERO; /**< 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world. */
    quern_combine_function *function QUERN__ZERO; /**< Required. */
    void *user_data QUERN__ZERO;                  /**< For the function. */
} quern_combine_def;

/** Registers a way to combine values. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name), DUPLICATE_NAME,
 * LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_combine_register(quern_world *world, const quern_combine_def *def,
                                              quern_combine *out_combine);

/** Combines a value with the one that the entity has after all other commands of the sync point: a turret
 * lowers the health of what it hits. value is copied now. The entity may be provisional. Unlike other
 * commands this one does not look whether the entity lives: whoever is hit at random would have to be
 * waited for. A stale handle is not refused but dropped.
 *
 * Values for one entity are combined in the order of commands, so sums of floats, too, are the same at
 * every number of threads. QUERN_SUM, QUERN_MIN and QUERN_MAX are for components whose bytes are all
 * described as numbers (QUERN_FIELD_I8 to QUERN_FIELD_F64). Dropped where the entity is gone by then, or
 * lacks the component. Change filters and reactions count it as setting the component. Further errors:
 * INVALID_ARGUMENT (no way to combine of this world; the component has bytes that are not described as
 * numbers, is a tag, or is kept by Quern itself). */
QUERN_API quern_result quern_commands_accumulate(quern_commands *commands, quern_entity entity,
                                                 quern_component component, const void *value,
                                                 quern_combine combine);

/* ----------------------------------------------------------------------------------- between frames */

/** Returns a recorder for code between frames and in exclusive systems, for the calls above. Its commands
 * are applied by quern_world_flush, or else before the first system of the next frame on the world: as a
 * sync point of their own, before everything else, even commands that an earlier frame has kept.
 *
 * Everything recorded since the last time counts as one callback: handles from quern_commands_create are
 * provisional until then. The callback of an exclusive system counts as one of its own, and so does what
 * follows a failed sync point. After each, and after a frame, ask for the recorder again.
 * quern_world_hash and quern_world_validate ignore waiting commands; quern_world_destroy destroys their
 * values. Returns NULL with a message; errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_commands *quern_world_commands(quern_world *world);

/** Applies the commands of quern_world_commands, by the rules above; does nothing without any.
 *
 * Errors, with the world as it was and the commands kept for the next time: NULL_ARGUMENT, WORLD_LOCKED,
 * OUT_OF_MEMORY, LIMIT (of entities). Errors after everything is done: OUT_OF_MEMORY, when a command
 * could not be recorded; TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE or LIMIT, as in quern_schedule_run.
 * Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_world_flush(quern_world *world);

/** Forgets the commands of quern_world_commands that wait, and destroys their values: for who has recorded
 * a part of what belongs together, and cannot record the rest. Errors: NULL_ARGUMENT, WORLD_LOCKED.
 * Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_world_discard_commands(quern_world *world);

/** What the last sync point outside of a frame did: that of quern_world_flush, the same before the first
 * system of a frame, or that of quern_query_parallel_for. */
typedef struct quern_flush_stats {
    uint64_t command_count;   /**< Applied or dropped; a create with n components counts as 1 + n. */
    uint64_t dropped_count;   /**< Those whose entity had been destroyed, or asked for too much. */
    uint64_t created_count;   /**< Entities created. */
    uint64_t destroyed_count; /**< Entities destroyed. */
} quern_flush_stats;

/** Returns what the last flush did; all 0 before the first. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_world_get_flush_stats(const quern_world *world, quern_flush_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
