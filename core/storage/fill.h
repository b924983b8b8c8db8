/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_FILL_H
#define QUERN_CORE_STORAGE_FILL_H

/* Initial values, for raw memory of new rows or of a component that rows receive. */

#include "core/storage/storage.h"

/* Turns raw memory into `count` adjacent values: copies of the adjacent `values`, or constructed values if `values`
 * is NULL. */
static inline void quern__fill_values(const quern__type *type, void *targets, const void *values,
                                      uint32_t count)
{
    if (values == NULL)
        quern__type_construct(type, targets, count);
    else if (count == 1 && type->hooks.copy == NULL)
        quern__copy_value(targets, values, type->size_bytes);
    else
        quern__type_copy(type, targets, values, count);
}

/* Performs quern__fill_values for a component of consecutive rows of one chunk. Does nothing if the archetype has no
 * such column. */
static inline void quern__fill_component(const quern__storage *storage, const quern__archetype *archetype,
                                         uintptr_t first, uint32_t component_index, const void *values,
                                         uint32_t count)
{
    void *targets = quern__storage_value(archetype, first, component_index);
    if (targets == NULL) return;
    quern__fill_values(quern__components_type(&storage->components, component_index), targets, values,
                       count);
}

#endif
