/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_CALLS_INTERNAL_H
#define QUERN_CORE_CALLS_CALLS_INTERNAL_H

/* Functions that several calls share, also those of rooms above. `function` is the public function that messages
 * name. */

#include "core/world/world_internal.h"

/* Finds or creates the archetype of a list of components, in any order. Managed components are refused. Errors:
 * UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, INVALID_ARGUMENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__world_ensure_archetype(quern_world *world, const quern_component *components,
                                           uint32_t count, quern__archetype **out_archetype);

/* Performs quern__world_ensure_archetype for a list that may contain components of relations. The value of such a
 * component is the target; the archetype also has the tag of the level below the target. values and its elements
 * may be NULL. Further errors: those of quern__world_check_target. */
quern_result quern__world_ensure_related_archetype(quern_world *world, const quern_component *components,
                                                   const void *const *values, uint32_t count,
                                                   quern__archetype **out_archetype);

/* Checks the value of a relation's component: the handle of a living target. Errors: NULL_ARGUMENT,
 * those of quern__entities_check. */
quern_result quern__world_check_target(const quern_world *world, const quern__relation *relation,
                                       const quern_entity *value);

/* Adds a component with a constructed value, or removes it. Errors: those of quern_entity_add and
 * quern_entity_remove. */
quern_result quern__world_add(quern_world *world, quern_entity entity, quern_component component,
                              const char *function);
quern_result quern__world_remove(quern_world *world, quern_entity entity, quern_component component,
                                 const char *function);

/* Relates and unrelates an entity. Errors: those of quern_entity_relate and quern_entity_unrelate. */
quern_result quern__world_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target, const char *function);
quern_result quern__world_unrelate(quern_world *world, quern_entity source, quern_relation relation,
                                   const char *function);

/* Fails with PROVISIONAL_ENTITY, naming the component, if a described field of the values has a provisional handle.
 * values[i]: `count` values of the i-th component; values and its elements may be NULL. commands: the command
 * function that the message recommends instead. */
quern_result quern__world_check_provisional(const quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t component_count,
                                            uint32_t count, const char *commands);

/* Fails with INVALID_ARGUMENT for a managed component. The message says how the component changes instead. */
quern_result quern__world_fail_managed(const quern_world *world, quern_component component);

/* Makes `list` the archetypes of the world, in its order; histories call this. Archetypes that are not in the list
 * must have no rows and is_removed set. Archetypes that the storage does not have yet must have been created by
 * quern__storage_create_archetype, with room for them reserved. */
void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count);

/* Removes empty archetypes, as the settings of the world say (reclaim.c). Sync points call this after applying commands
 * if the world has at least removal_count archetypes. */
void quern__world_reclaim_archetypes(quern_world *world);

/* The functions of quern_flag_info, for each row flag (core/storage/column_flags.h) and named after its member. The
 * first returns whether the bit of a component is set for an entity; the second records the command that sets it. */
#define QUERN__FLAG_FUNCTIONS(flag, member, ...)                                       \
    bool quern__##member##_is_listed(const quern_world *world, quern_entity entity,    \
                                     quern_component component);                       \
    quern_result quern__##member##_list(quern_commands *commands, quern_entity entity, \
                                        quern_component component);
QUERN__ROW_FLAGS(QUERN__FLAG_FUNCTIONS)

#endif
