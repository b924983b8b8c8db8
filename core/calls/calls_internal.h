/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_CALLS_INTERNAL_H
#define QUERN_CORE_CALLS_CALLS_INTERNAL_H

/* What several calls share, and rooms above them use. */

#include "core/world/world_internal.h"

/* The archetype for a list of components as users give it: in any order. Errors: UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT, OUT_OF_MEMORY. */
quern_result quern__world_archetype(quern_world *world, const quern_component *components, uint32_t count,
                                    quern__archetype **out_archetype);

/* The same where components of relations may stand in the list, with values that are targets: on the levels
 * that follow. Further errors: those of quern__world_check_target. */
quern_result quern__world_archetype_related(quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t count,
                                            quern__archetype **out_archetype);

/* What is wrong with the value of a relation's component. Errors: NULL_ARGUMENT, those of handles. */
quern_result quern__world_check_target(const quern_world *world, const quern__relation *relation,
                                       const quern_entity *value);

/* Adds a component, constructed, or removes it, by the call that messages name. Errors: those of
 * quern_entity_add and quern_entity_remove. */
quern_result quern__world_add(quern_world *world, quern_entity entity, quern_component component,
                              const char *function);
quern_result quern__world_remove(quern_world *world, quern_entity entity, quern_component component,
                                 const char *function);

/* Relating and unrelating, by the call that is named: see relation_calls.c. Errors: as of quern_entity_relate and
 * quern_entity_unrelate. */
quern_result quern__world_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target, const char *function);
quern_result quern__world_unrelate(quern_world *world, quern_entity source, quern_relation relation,
                                   const char *function);

/* PROVISIONAL_ENTITY, naming the component, if a value that a call gives at once has a provisional handle.
 * values may be NULL, and its elements, too; values[i] are `count` values of the i-th component. */
quern_result quern__world_check_handles(const quern_world *world, const quern_component *components,
                                        const void *const *values, uint32_t component_count, uint32_t count,
                                        const char *commands);

/* INVALID_ARGUMENT, and which call does it, for a managed component where that cannot be. */
quern_result quern__world_fail_managed(const quern_world *world, quern_component component);

/* For a history: these archetypes and no others, in this order. Those that go are without rows and
 * is_removed; those that are in no list yet were made by quern__storage_create_archetype, and there is room
 * for them. */
void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count);

/* What a sync point of a world with empty_archetype_checks_per_sync does when commands have been applied.
 * */
void quern__world_remove_some_archetypes(quern_world *world);

/* For each row flag (core/storage/column_flags.h), by the name of its member: whether the bit of a component is set for
 * an entity, and recording the command that sets it; the functions of quern_flag_info. */
#define QUERN__FLAG_FUNCTIONS(flag, member, ...)                                       \
    bool quern__##member##_is_listed(const quern_world *world, quern_entity entity,    \
                                     quern_component component);                       \
    quern_result quern__##member##_list(quern_commands *commands, quern_entity entity, \
                                        quern_component component);
QUERN__ROW_FLAGS(QUERN__FLAG_FUNCTIONS)

#endif
