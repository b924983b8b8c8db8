/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_GETTER_INTERNAL_H
#define QUERN_CORE_CALLS_GETTER_INTERNAL_H

/* Getters. A getter finds the position of its component's column in a table, by the archetype number in the entity's
 * record. A lookup therefore reads only the record and the table. */

#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/getter.h>

typedef struct quern__getter {
    quern_getter base; /* public part, first: the caller has its address */
    quern_world *world;
    quern__position_table table;
    bool has_refs;
} quern__getter;

_Static_assert(offsetof(quern__getter, base) == 0, "a getter begins with its public part");

/* Whether values that the caller will write have to be noted: change filters exist, or checks are on. */
static inline bool quern__getter_notes_writes(const quern__getter *getter)
{
    return QUERN_CHECKS || *getter->base.filter_count > 0;
}

/* Notes that the caller is about to write the value at this location. */
static inline void quern__getter_note_written(const quern__getter *getter, uintptr_t location)
{
    const uint32_t index = getter->table.component_index;
    quern__row_note_pointer_given(quern__chunk_of(location)->archetype, location, index);
    quern__storage_note_pointer_given(&getter->world->storage, index);
}

#endif
