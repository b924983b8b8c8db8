/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_REQUIRED_H
#define QUERN_CORE_STORAGE_REQUIRED_H

/* Required components (quern_component_def.required).
 *
 * Invariant: the set of each archetype with a component has all components that it requires. Sets are formed from
 * other sets or from lists, in four places: lists of a call (component_list.c), one component more or less
 * (move_plan.c), edit sequences (effect.c), and archives (load.c). Each of them completes its set by the functions
 * here. All other sets differ from the set of an archetype only in components that the world manages, which no
 * component may require. */

#include "core/storage/component_internal.h"

/* Checks the list of required components in a definition, and stores it and all that it requires. Errors:
 * INVALID_ARGUMENT, UNKNOWN_COMPONENT, OUT_OF_MEMORY; the caller then releases the component. */
quern_result quern__component_set_required(quern__component *component, const quern_allocator *allocator,
                                           const quern__components *components,
                                           const quern_component_def *def);

/* Adds all components that those of a bitset require to another bitset, or to the same one. Precondition:
 * components->has_requirements. */
void quern__components_add_required(const quern__components *components, const uint64_t *set,
                                    uint64_t *required);

/* Adds to a sorted set, which has room for QUERN_MAX_COMPONENTS, all that its components require. Returns the new
 * number of components. */
uint32_t quern__components_complete(const quern__components *components, uint16_t *set, uint32_t count);

/* Returns the first component of a set that requires the component, or QUERN__NO_COMPONENT. */
uint32_t quern__components_find_requiring(const quern__components *components, const uint16_t *set,
                                          uint32_t count, uint32_t component_index);

/* Returns a hash of the component's list, which is never 0 unless the list is empty. */
uint32_t quern__component_required_hash(const quern__component *component);

#endif
