/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_GETTER_INTERNAL_H
#define QUERN_CORE_CALLS_GETTER_INTERNAL_H

/* What the files of getters share. A getter looks where values are in a table by the number of the
 * archetype, which stands in the entity's record: so it touches the record, the table and the value. */

#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/getter.h>

typedef struct quern__getter {
    quern_getter face; /* first: users have its address */
    quern_world *world;
    quern__position_table table;
    bool has_refs;
} quern__getter;

_Static_assert(offsetof(quern__getter, face) == 0, "a getter begins with what users see of it");

/* Whether somebody has to be told of values that are got to be written. */
static inline bool quern__getter_tells(const quern__getter *getter)
{
    return QUERN_CHECKS || *getter->face.filter_count > 0;
}

/* The value at this location is about to be written. */
static inline void quern__getter_note_written(const quern__getter *getter, uintptr_t location)
{
    const uint32_t index = getter->table.component_index;
    quern__row_lent(quern__chunk_of(location)->archetype, location, index);
    quern__storage_note_pointer_given(&getter->world->storage, index);
}

#endif
