/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_FILL_H
#define QUERN_CORE_CALLS_FILL_H

/* The values that an immediate call gives to one entity. */

#include "core/world/world_internal.h"

/* Turns raw memory into a copy of value, or a new value where that is NULL. */
static inline void quern__fill_value(const quern__type *type, void *target, const void *value)
{
    if (value == NULL)
        quern__type_construct(type, target, 1);
    else if (type->hooks.copy != NULL)
        quern__type_copy(type, target, value, 1);
    else
        quern__copy_value(target, value, type->size_bytes);
}

static inline void quern__fill_component(const quern_world *world, const quern__archetype *archetype,
                                         uintptr_t location, quern_component component, const void *value)
{
    uint32_t index = quern__component_index(component);
    void *target = quern__storage_value(archetype, location, index);
    if (target != NULL)
        quern__fill_value(quern__components_type(&world->storage.components, index), target, value);
}

#endif
