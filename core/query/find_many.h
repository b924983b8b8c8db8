/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_FIND_MANY_H
#define QUERN_CORE_QUERY_FIND_MANY_H

/* Lookup of one component in many entities. Single lookups would miss the cache twice each, at the record and
 * at the value. Here the records of a batch are prefetched while the previous batch is looked up, and each
 * value is prefetched as soon as its address is known. The lookup itself reads no value. */

#include "core/storage/archetype_filter.h"
#include "core/storage/storage.h"

enum { QUERN__FIND_BATCH = 16 };

static inline void quern__prefetch_records(const quern__entities *entities, const quern_entity *handles,
                                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern_entity_index(handles[i]);
        if (index < entities->slot_count) QUERN__PREFETCH(quern__entities_record(entities, index));
    }
}

/* Returns the position of the component's values in the chunks of the entity's archetype; its offset_bytes is
 * 0 if the archetype lacks the component. table: the component's position table, or NULL if there is none. */
static inline quern__column_position quern__find_place(const quern__storage *storage,
                                                       const quern__position_table *table,
                                                       uint32_t component_index,
                                                       const quern__record *record)
{
    if (table != NULL) return table->positions[record->archetype_number];
    return quern__archetype_column_position(quern__storage_archetype_of(storage, record), component_index);
}

/* Writes the address of the component of handles[i], or NULL, into out_values[i]. Returns the number of values
 * found. table: the component's position table, or NULL. limit: components that an entity must have or lack,
 * or NULL. Each call site passes NULL for `table` always or never, and for `limit` likewise, so that the
 * compiler can drop a branch. */
static inline uint32_t quern__find_many(const quern__storage *storage, const quern__position_table *table,
                                        uint32_t component_index, const quern__archetype_filter *limit,
                                        const quern_entity *handles, uint32_t count,
                                        const void **out_values)
{
    const quern__entities *entities = &storage->entities;
    uint32_t found_count = 0;
    uint32_t next = count < QUERN__FIND_BATCH ? count : QUERN__FIND_BATCH;
    quern__prefetch_records(entities, handles, next);
    for (uint32_t first = 0, end = next; first < count; first = end, end += next) {
        next = count - end < QUERN__FIND_BATCH ? count - end : QUERN__FIND_BATCH;
        quern__prefetch_records(entities, handles + end, next);
        for (uint32_t i = first; i < end; i++) {
            const quern__record *record = quern__entities_find(entities, handles[i]);
            out_values[i] = NULL;
            if (QUERN__UNLIKELY(record == NULL)) continue;
            if (limit != NULL &&
                !quern__archetype_filter_passes(*limit, quern__storage_archetype_of(storage, record)))
                continue;
            const quern__column_position position =
                quern__find_place(storage, table, component_index, record);
            if (QUERN__UNLIKELY(position.offset_bytes == 0)) continue;
            out_values[i] = quern__position_value(position, record->location);
            QUERN__PREFETCH(out_values[i]);
            found_count++;
        }
    }
    return found_count;
}

#endif
