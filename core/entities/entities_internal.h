/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ENTITIES_ENTITIES_INTERNAL_H
#define QUERN_CORE_ENTITIES_ENTITIES_INTERNAL_H

/* The calls that create, change and destroy entities immediately, and those on the world that holds them. Here is what
 * several of them share, also with rooms above. `function` is the public function that messages name. */

#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

#include <quern/commands.h>

/* Finds or creates the archetype of a list of components, in any order. Managed components are refused. Errors:
 * UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, INVALID_ARGUMENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__world_ensure_archetype(quern_world *world, const quern_component *components,
                                           uint32_t count, quern__archetype **out_archetype);

/* Adds a component with a constructed value, or removes it. Errors: those of quern_entity_add and
 * quern_entity_remove. */
quern_result quern__world_add(quern_world *world, quern_entity entity, quern_component component,
                              const char *function);
quern_result quern__world_remove(quern_world *world, quern_entity entity, quern_component component,
                                 const char *function);

/* Registers quern_world_disabled_tag and the tag beside it, unless the world has them. Errors: those of
 * quern_world_disabled_tag. */
quern_result quern__world_register_disabled(quern_world *world);

/* Fails with INVALID_ARGUMENT for a managed component. The message says how the component changes instead. */
quern_result quern__world_fail_managed(const quern_world *world, quern_component component);

/* Makes `list` the archetypes of the world, in its order; histories call this. Archetypes that are not in the list
 * must have no rows and is_removed set. Archetypes that the storage does not have yet must have been created by
 * quern__storage_create_archetype, with room for them reserved. */
void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count);

/* Removes empty archetypes, as the settings of the world say (world_life.c). Sync points call this after applying commands
 * if the world has at least removal_count archetypes. */
void quern__world_reclaim_archetypes(quern_world *world);

/* The functions of quern_flag_info, for each row flag (core/storage/type_internal.h) and named after its member. The
 * first returns whether the bit of a component is set for an entity; the second records the command that sets it. */
#define QUERN__FLAG_FUNCTIONS(flag, member, ...)                                       \
    bool quern__##member##_is_listed(const quern_world *world, quern_entity entity,    \
                                     quern_component component);                       \
    quern_result quern__##member##_list(quern_commands *commands, quern_entity entity, \
                                        quern_component component);
QUERN__ROW_FLAGS(QUERN__FLAG_FUNCTIONS)

/* Destroys living entities and the sources that the policies of relations destroy with them. These sources end
 * first, sources before their targets; then the listed entities end in their order. The list may contain an entity
 * twice. Errors, with nothing changed: TARGET_IN_USE, OUT_OF_MEMORY, those of quern__storage_ensure_archetype. */
quern_result quern__world_destroy_cascade(quern_world *world, const quern_entity *entities, uint32_t count);

#endif
