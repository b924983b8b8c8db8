/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMMANDS_H
#define QUERN_COMMANDS_H

/* Commands: structural changes asked for inside a system, applied at the next sync point: at the end of the
 * phase, and within it before each exclusive system.
 *
 * Each job (one system on one chunk) records into a stream of its own, without locks. At the sync point
 * streams are applied in the order system, chunk, record, whichever thread recorded them, and however many
 * threads apply them:
 *   1. Creates get their handles, in that order; a slot freed at this sync point is not reused by it.
 *   2. All commands on one entity add up to one change. Later commands win over earlier ones; after a
 *      destroy, further commands on that entity are dropped. A component removed and added again at one
 *      sync point starts anew.
 *   3. Each archetype's rows: entities that come from other archetypes are appended, in the order of
 *      archetype and row that they come from. New entities, in the order of their creates, take the rows
 *      that others have left, the first one first, or are appended. Rows still empty then are filled by the
 *      archetype's last ones, first to first.
 *   4. Slots are freed in the order of archetype and row, and then, of entities that were created and
 *      destroyed at the same sync point, in the order of creates; the one freed last is reused first.
 * Hooks of components run on the thread that called quern_schedule_run, in the same order at every number
 * of threads (but see copy in quern_hooks).
 *
 * Commands whose entity is gone are dropped: quern_schedule_get_drop says whose, how many and why. An
 * entity whose commands add up to more than it can have (components, bytes), or to a set that the world has
 * no archetype left for, stays as it was, those commands are dropped, too, and the frame says so when it is
 * done; a new entity does not live then.
 *
 * Nothing is lost when memory is missing: a sync point gets all it needs before it changes anything. If it
 * cannot, the frame returns an error, the world is as before the sync point, and the commands are kept:
 * quern_schedule_run tries them again, unless quern_schedule_discard_commands is called first.
 *
 * A recorder belongs to the callback it was got from (quern_context_commands), and to its thread, and
 * must not outlive it. Commands are refused (INVALID_ARGUMENT, and an error in the log) when it is used
 * after its callback, unless another one on the same worker has asked for it meanwhile. A build with
 * QUERN_CHECKS refuses them from other threads, too, and hands the message to the assert handler.
 * A call that fails says why and records nothing; running out of memory also makes quern_schedule_run
 * return QUERN_ERROR_OUT_OF_MEMORY at the end of the frame, so it cannot pass unseen. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_commands quern_commands;

/* Why commands were dropped. */
typedef enum quern_drop_reason {
    QUERN_DROP_DESTROYED, /* an earlier command of the same sync point destroyed their entity */
    QUERN_DROP_DEAD,      /* it was gone when the sync point began: an exclusive system, or the program,
                             destroyed it */
    QUERN_DROP_REFUSED    /* the commands on it add up to more than an entity, or the world, can have */
} quern_drop_reason;

/* A few words, such as "entity destroyed by an earlier command"; "unknown reason" for other numbers. Never
 * NULL. Any thread. */
QUERN_API const char *quern_drop_reason_string(quern_drop_reason reason);

/* Common errors: NULL_ARGUMENT, NULL_ENTITY, STALE_ENTITY (gone since the latest sync point or before),
 * FOREIGN_ENTITY, PROVISIONAL_ENTITY (not created by this callback; a build with QUERN_CHECKS hands the
 * message to the assert handler), UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

/* A new entity without components. Its provisional handle is good in later commands of this callback and
 * inside fields described as QUERN_FIELD_ENTITY of values given to them; elsewhere in values it stays
 * provisional for ever, which a build with QUERN_CHECKS reports at the sync point (docs/commands.md). Null,
 * with a message, on failure. */
QUERN_API quern_entity quern_commands_create(quern_commands *commands);

/* A new entity with components; values as in quern_entity_create_with. Null, with a message, on failure:
 * then nothing was recorded. */
QUERN_API quern_entity quern_commands_create_with(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *values, uint32_t count);

/* count new entities with the same components; columns as in quern_entity_create_many. out_entities: room
 * for count provisional handles, in order, or NULL. On failure nothing was recorded. Errors also:
 * DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_commands_create_many(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *columns, uint32_t component_count,
                                                  uint32_t count, quern_entity *out_entities);

QUERN_API quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity);

/* Adds a component: value is copied now; NULL constructs it at the sync point. Where the entity has the
 * component by then, a value replaces the old one and NULL leaves it. */
QUERN_API quern_result quern_commands_add(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

/* Removes a component; does nothing where the entity does not have it by then. */
QUERN_API quern_result quern_commands_remove(quern_commands *commands, quern_entity entity,
                                             quern_component component);

/* Gives a component a value (copied now), adding it where it is missing. value must not be NULL unless
 * the component is a tag. */
QUERN_API quern_result quern_commands_set(quern_commands *commands, quern_entity entity,
                                          quern_component component, const void *value);

#ifdef __cplusplus
}
#endif

#endif
