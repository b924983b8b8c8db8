/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMMANDS_H
#define QUERN_COMMANDS_H

/* Commands: structural changes asked for inside a system, applied at the next sync point (the end of
 * the phase).
 *
 * Each job (one system on one chunk) records into a stream of its own, without locks. At the sync point
 * streams are applied in the order system, chunk, record, whichever thread recorded them:
 *   1. creates get their handles, in that order; a slot freed at this sync point is not reused by it;
 *   2. then each entity, in the order of its first command, makes one move to the component set that
 *      its commands add up to. Later commands win over earlier ones; after a destroy, further commands on
 *      that entity are dropped, and counted in quern_frame_stats.
 * A component removed and added again at one sync point starts anew.
 *
 * An entity whose commands add up to more than it can have (components, bytes) stays as it was, and the frame
 * says so when it is done.
 *
 * A recorder belongs to the callback it was got from (quern_context_commands), and to its thread, and must not
 * outlive it.
 * A call that fails says why and records nothing; running out of memory also makes quern_schedule_run
 * return QUERN_ERROR_OUT_OF_MEMORY at the end of the frame, so it cannot pass unseen. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_commands quern_commands;

/* Common errors: NULL_ARGUMENT, NULL_ENTITY, STALE_ENTITY (destroyed before this phase), FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY (not created in this stream), UNKNOWN_COMPONENT, OUT_OF_MEMORY. */

/* A new entity without components. Its provisional handle is good in later commands of this callback and
 * inside fields described as QUERN_FIELD_ENTITY of values given to them. Null, with a message, on failure. */
QUERN_API quern_entity quern_commands_create(quern_commands *commands);

/* A new entity with components; values as in quern_entity_create_with. Null, with a message, on failure:
 * then nothing was recorded. */
QUERN_API quern_entity quern_commands_create_with(quern_commands *commands,
                                                  const quern_component *components,
                                                  const void *const *values, uint32_t count);

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
