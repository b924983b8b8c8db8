/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_FILL_H
#define QUERN_CORE_CALLS_FILL_H

/* The values that immediate calls give to new rows, or to a component that rows get. */

#include "core/world/world_internal.h"

/* Turns raw memory of `count` neighbouring rows into values of the component: copies of `values`, which lie one after
 * the other, or constructed ones if that is NULL. Does nothing if the archetype has no such column. */
static inline void quern__fill_component(const quern_world *world, const quern__archetype *archetype,
                                         uintptr_t first, quern_component component, const void *values,
                                         uint32_t count)
{
    const uint32_t index = quern__component_index(component);
    void *targets = quern__storage_value(archetype, first, index);
    if (targets == NULL) return;
    const quern__type *type = quern__components_type(&world->storage.components, index);
    if (values == NULL)
        quern__type_construct(type, targets, count);
    else if (count == 1 && type->hooks.copy == NULL)
        quern__copy_value(targets, values, type->size_bytes);
    else
        quern__type_copy(type, targets, values, count);
}

#endif
