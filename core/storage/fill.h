/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_FILL_H
#define QUERN_CORE_STORAGE_FILL_H

/* Initial values, for raw memory of new rows or of a component that rows receive. */

#include "core/storage/move_plan.h"

/* Turns raw memory into `count` adjacent values: those of the caller in `values`, or constructed values if `values` is
 * NULL. */
static inline void quern__fill_values(const quern__type *type, void *targets, const void *values,
                                      uint32_t count)
{
    if (values == NULL)
        quern__type_construct(type, targets, count);
    else if (count == 1 && type->hooks.copy == NULL && type->hooks.move == NULL)
        quern__copy_value(targets, values, type->size_bytes);
    else
        quern__type_accept(type, targets, values, count);
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

/* Constructs the values of required components that a plan adds with a component, for consecutive new rows. The caller
 * fills the component itself. */
static inline void quern__fill_required(const quern__move_plan *plan, uint32_t component_index,
                                        uintptr_t first, uint32_t count)
{
    if (QUERN__LIKELY(!quern__plan_adds_required(plan))) return;
    for (uint32_t i = 0; i < plan->target->column_count; i++) {
        const quern__column *column = &plan->target->columns[i];
        if (column->component_index == component_index ||
            quern__archetype_has(plan->source, column->component_index))
            continue;
        quern__type_construct(
            column->type, quern__location_value(first, column->offset_bytes, column->size_bytes), count);
    }
}

/* Whether a list has a component. */
static inline bool quern__list_has(const quern_component *list, uint32_t list_count,
                                   uint32_t component_index)
{
    for (uint32_t i = 0; i < list_count; i++)
        if (quern__component_index(list[i]) == component_index) return true;
    return false;
}

/* Constructs the values of required components in consecutive rows that a list of components created: those that are not
 * in the list. */
static inline void quern__fill_unlisted(const quern__storage *storage, const quern__archetype *archetype,
                                        const quern_component *list, uint32_t list_count, uintptr_t first,
                                        uint32_t count)
{
    if (QUERN__LIKELY(!storage->components.has_requirements)) return;
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        if (quern__list_has(list, list_count, column->component_index)) continue;
        quern__type_construct(
            column->type, quern__location_value(first, column->offset_bytes, column->size_bytes), count);
    }
}

#endif
