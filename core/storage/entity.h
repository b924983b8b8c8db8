/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ENTITY_H
#define QUERN_CORE_STORAGE_ENTITY_H

/* Where each entity is. One 16-byte record per slot, in pages of 2 MiB that never move.
 *
 *   alive slot:  location = address of the chunk | row     (chunks are aligned to 16 KiB, so the row fits
 *                                                           into the low 14 bits)
 *   free slot:   location = 0, archetype_number = next free slot or QUERN__SLOT_NONE
 *
 * The archetype stands in the record rather than behind the chunk's header, so that a random get costs two
 * cache misses, record and value, and not three.
 *
 *   alive slots + free_count + retired_count = slot_count
 *   a handle is alive when its slot is and the generations are equal; a slot that has lived once with each
 *   generation is retired: neither alive nor in the free list, for ever.
 *
 * Generations go round: from the world's first one (see handle.h) up to QUERN__MAX_GENERATION, and from 1
 * up to the one before the first. */

#include "core/base/array.h"
#include "core/base/handle.h"

#include <quern/id.h>

enum { QUERN__PAGE_RECORDS_LOG2 = 17, QUERN__PAGE_RECORDS = 1 << QUERN__PAGE_RECORDS_LOG2 };

#define QUERN__SLOT_NONE UINT32_MAX

typedef struct quern__record {
    uintptr_t location;
    uint32_t archetype_number;
    /* The upper half of the handle, world tag and generation, so that one comparison tells whether it is
     * good. The generation is that of the living entity, or of the next one; 1 to QUERN__MAX_GENERATION. */
    uint32_t handle_high;
} quern__record;

typedef struct quern__entities {
    QUERN__ARRAY(quern__record *) pages;
    uint32_t slot_count; /* slots that were ever used; their pages exist */
    uint32_t first_free; /* head of the free list: last freed, first reused */
    uint32_t free_count;
    uint32_t retired_count;
    uint32_t first_handle_high; /* of a slot that was never used */
} quern__entities;

void quern__entities_init(quern__entities *entities, uint32_t first_handle_high);

void quern__entities_release(quern__entities *entities, const quern_allocator *allocator);

/* Makes sure that the next `count` takes succeed. Errors: LIMIT, OUT_OF_MEMORY. */
quern_result quern__entities_reserve(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t count);

/* Gives pages without slots back, which a reservation that came to nothing has left. */
void quern__entities_trim(quern__entities *entities, const quern_allocator *allocator);

/* Takes a slot that has been reserved. The caller sets its record's location before anybody looks at it. */
quern_entity quern__entities_take(quern__entities *entities);

/* Frees the slot of a living entity, or retires it. */
void quern__entities_give(quern__entities *entities, uint32_t index);

/* Says with code and message what is wrong with a handle that is not alive, or QUERN_OK when it is. */
quern_result quern__entities_check(const quern__entities *entities, quern_entity entity);

static inline quern__record *quern__entities_record(const quern__entities *entities, uint32_t index)
{
    return &entities->pages.items[index >> QUERN__PAGE_RECORDS_LOG2][index & (QUERN__PAGE_RECORDS - 1)];
}

static inline uint32_t quern__record_generation(const quern__record *record)
{
    return record->handle_high & QUERN__MAX_GENERATION;
}

static inline quern_entity quern__entity_make(uint32_t world_tag, uint32_t generation, uint32_t index)
{
    return (quern_entity){(uint64_t)world_tag << 56 | (uint64_t)generation << 32 | index};
}

/* Whether the generation may be the last one of its slot, or the one after which they begin at 1 again:
 * quern__entities_give knows. Both end a stretch, since first generations begin one, and so the common case
 * needs to look for neither. */
static inline bool quern__record_ends_stretch(const quern__record *record)
{
    return (record->handle_high & (QUERN__STRETCH_GENERATIONS - 1)) == QUERN__STRETCH_GENERATIONS - 1;
}

/* Frees the slot of a living entity, whose record this is and whose generation ends no stretch. */
static inline void quern__entities_free(quern__entities *entities, uint32_t index, quern__record *record)
{
    record->location = 0;
    record->archetype_number = entities->first_free;
    record->handle_high++;
    entities->first_free = index;
    entities->free_count++;
}

static inline uint32_t quern__entities_alive_count(const quern__entities *entities)
{
    return entities->slot_count - entities->free_count - entities->retired_count;
}

/* The record of a living entity, or NULL. */
static inline quern__record *quern__entities_find(const quern__entities *entities, quern_entity entity)
{
    uint32_t index = (uint32_t)entity.bits;
    if (QUERN__UNLIKELY(index >= entities->slot_count)) return NULL;
    quern__record *record = quern__entities_record(entities, index);
    return record->handle_high == entity.bits >> 32 && record->location != 0 ? record : NULL;
}

#endif
