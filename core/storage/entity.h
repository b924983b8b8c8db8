/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ENTITY_H
#define QUERN_CORE_STORAGE_ENTITY_H

/* Where each entity is. One record per slot, 16 bytes (12 with 32-bit pointers), in pages of 131,072
 * records that never move.
 *
 *   alive slot:  location = address of the chunk | row     (chunks are aligned to 16 KiB, so the row fits
 *                                                           into the low 14 bits)
 *   free slot:   location = 0, archetype_number = next free slot or QUERN__SLOT_NONE
 *
 * The archetype stands in the record rather than behind the chunk's header, so that a random get costs two
 * cache misses, record and value, and not three.
 *
 *   alive slots + free_count + absent_count + retired_count = slot_count
 *   a handle is alive when its slot is and the generations are equal; a slot that has lived once with each
 *   generation is retired: neither alive nor in the free list, for ever.
 *
 * Generations go round: from the world's first one (see handle.h) up to QUERN__MAX_GENERATION, and from 1
 * up to the one before the first.
 *
 * A page in which nobody lives may be given back (quern__entities_drop_pages). It is absent then: in its
 * place in the table is one in which all records are zero, so that no handle is alive there and nobody has
 * to ask. All its slots go on with one generation, that of the slot among them that has lived most often,
 * so that no handle comes alive again. Slots are taken from the free list, then from absent pages in
 * ascending order, then from those that were never used. So it does not show when an absent page comes
 * back: its slots are put at the end of the free list. */

#include "core/base/array.h"
#include "core/base/handle.h"

#include <quern/world.h>

enum { QUERN__PAGE_RECORDS_LOG2 = 17, QUERN__PAGE_RECORDS = 1 << QUERN__PAGE_RECORDS_LOG2 };

/* As with slabs: pages are advised to be huge ones, but the first page only when so many of its slots are
 * in use, for the sake of small worlds. */
enum { QUERN__FIRST_PAGE_HUGE_FROM = QUERN__PAGE_RECORDS / 4 };

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
    /* By page: 0, or the handle_high with which the slots of an absent one go on. */
    QUERN__ARRAY(uint32_t) absent_highs;
    uint32_t slot_count;   /* slots that were ever used; their pages exist or are absent */
    uint32_t first_free;   /* head of the free list: last freed, first reused */
    uint32_t free_count;   /* in the free list */
    uint32_t absent_count; /* in absent pages: free too */
    uint32_t retired_count;
    uint32_t first_handle_high; /* of a slot that was never used */
    /* A bit for each group of slots: some were taken or given since somebody looked. Without items: nobody
     * asks. Otherwise there is room for all pages. */
    QUERN__ARRAY(uint64_t) modified;
} quern__entities;

/* Slots that are marked together, and a page's groups in words. */
enum {
    QUERN__SLOT_GROUP_LOG2 = 9,
    QUERN__SLOT_GROUP = 1 << QUERN__SLOT_GROUP_LOG2,
    QUERN__PAGE_MODIFIED_WORDS = QUERN__PAGE_RECORDS / QUERN__SLOT_GROUP / 64
};

/* Begins to mark, with all slots touched. False when there is no memory. */
bool quern__entities_track_modified(quern__entities *entities, const quern_allocator *allocator);
void quern__entities_untrack_modified(quern__entities *entities, const quern_allocator *allocator);

/* For those that change many, or others than they name. */
void quern__entities_mark_all_modified(const quern__entities *entities);

static inline void quern__entities_mark_modified(const quern__entities *entities, uint32_t index)
{
    if (QUERN__UNLIKELY(entities->modified.items != NULL))
        entities->modified.items[index >> (QUERN__SLOT_GROUP_LOG2 + 6)] |=
            UINT64_C(1) << (index >> QUERN__SLOT_GROUP_LOG2) % 64;
}

void quern__entities_init(quern__entities *entities, uint32_t first_handle_high);

void quern__entities_release(quern__entities *entities, const quern_allocator *allocator);

/* Makes sure that the next `count` takes succeed. On failure no page is added, but absent ones may exist
 * again. Errors: LIMIT, OUT_OF_MEMORY. */
quern_result quern__entities_reserve(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t count);

/* Gives pages without slots back, which a reservation that came to nothing has left. */
void quern__entities_trim(quern__entities *entities, const quern_allocator *allocator);

/* Gives every page back in which no slot is alive, retired or about to begin its last life. That changes
 * which handles come next, by a rule that knows only the slots. Walks all slots. */
void quern__entities_drop_pages(quern__entities *entities, const quern_allocator *allocator);

/* For a history: memory for the first `page_count` pages, less those for which absent_highs is not 0; it
 * shows to nobody until the next call, by which these pages are absent, the others are not, and those
 * behind them are neither. False when there is no memory; then quern__entities_cancel_pages takes it back.
 */
bool quern__entities_prepare_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs);
void quern__entities_cancel_pages(quern__entities *entities, const quern_allocator *allocator);
void quern__entities_restore_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs);

/* The memory of records that exist. */
uint64_t quern__entities_record_bytes(const quern__entities *entities);

/* Takes `count` slots that have been reserved, in the order in which single takes would return them. The
 * caller sets the locations of their records before anybody looks at them. */
void quern__entities_allocate_many(quern__entities *entities, uint32_t count, quern_entity *out_handles);

/* The part of quern__entities_allocate that begins to use the first page as a large one. */
void quern__entities_make_first_page_huge(const quern__entities *entities);

/* Slots as they were in another world, for one that has none; so many are reserved. highs: by slot,
 * handle_high of those who live there, or come next. free_slots: in the order in which they will be taken.
 * The caller sets location and archetype in the records of all others but so many that are retired. */
void quern__entities_restore(quern__entities *entities, const uint32_t *highs, uint32_t slot_count,
                             const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count);

/* The handles that the next `count` takes will return, which have been reserved; nothing is taken. */
void quern__entities_peek(const quern__entities *entities, uint32_t count, quern_entity *out_handles);

/* The slot that is taken next, if one is reserved. */
static inline uint32_t quern__entities_next_slot(const quern__entities *entities)
{
    return entities->first_free != QUERN__SLOT_NONE ? entities->first_free : entities->slot_count;
}

/* Frees the slot of a living entity, or retires it. */
void quern__entities_free_or_retire(quern__entities *entities, uint32_t index);

/* Says with code and message what is wrong with a handle that is not alive, or QUERN_OK when it is. */
quern_result quern__entities_check(const quern__entities *entities, quern_entity entity);

/* For loops that have looked where the pages are. */
static inline quern__record *quern__entities_record_in(quern__record *const *pages, uint32_t index)
{
    return &pages[index >> QUERN__PAGE_RECORDS_LOG2][index & (QUERN__PAGE_RECORDS - 1)];
}

static inline quern__record *quern__entities_record(const quern__entities *entities, uint32_t index)
{
    return quern__entities_record_in(entities->pages.items, index);
}

static inline bool quern__entities_is_absent(const quern__entities *entities, uint32_t page)
{
    return entities->absent_highs.items[page] != 0;
}

/* The slots of a page that were ever used. */
static inline uint32_t quern__entities_page_slots(const quern__entities *entities, uint32_t page)
{
    const uint64_t first = (uint64_t)page * QUERN__PAGE_RECORDS;
    if (first >= entities->slot_count) return 0;
    const uint32_t left = entities->slot_count - (uint32_t)first;
    return left < QUERN__PAGE_RECORDS ? left : (uint32_t)QUERN__PAGE_RECORDS;
}

static inline uint32_t quern__record_generation(const quern__record *record)
{
    return record->handle_high & QUERN__MAX_GENERATION;
}

static inline quern_entity quern__entity_make(uint32_t world_tag, uint32_t generation, uint32_t index)
{
    return (quern_entity){(uint64_t)world_tag << 56 | (uint64_t)generation << 32 | index};
}

/* Whether one slot can be taken that was not reserved. */
static inline bool quern__entities_has_unreserved_slot(const quern__entities *entities)
{
    const uint64_t room = (uint64_t)entities->pages.count * QUERN__PAGE_RECORDS;
    return entities->free_count > 0 || (entities->slot_count < room && entities->absent_count == 0 &&
                                        entities->slot_count < QUERN_MAX_ENTITIES);
}

/* Takes one slot that has been reserved. The caller sets location and archetype in its record at once. */
static inline quern_entity quern__entities_allocate(quern__entities *entities)
{
    uint32_t index = entities->first_free;
    quern__record *record;
    if (index != QUERN__SLOT_NONE) {
        record = quern__entities_record(entities, index);
        entities->first_free = record->archetype_number;
        entities->free_count--;
    } else {
        index = entities->slot_count++;
        if (QUERN__UNLIKELY(index == QUERN__FIRST_PAGE_HUGE_FROM))
            quern__entities_make_first_page_huge(entities);
        record = quern__entities_record(entities, index);
        record->handle_high = entities->first_handle_high;
    }
    quern__entities_mark_modified(entities, index);
    return (quern_entity){(uint64_t)record->handle_high << 32 | index};
}

/* Whether the generation may be the last one of its slot, or the one after which they begin at 1 again:
 * quern__entities_free_or_retire knows. Both end a stretch, since first generations begin one, and so the common case
 * needs to look for neither. */
static inline bool quern__record_may_retire_or_wrap(const quern__record *record)
{
    return (record->handle_high & (QUERN__GENERATION_BASE_STEP - 1)) == QUERN__GENERATION_BASE_STEP - 1;
}

/* Frees the slot of a living entity, whose record this is and whose generation ends no stretch. */
static inline void quern__entities_free(quern__entities *entities, uint32_t index, quern__record *record)
{
    record->location = 0;
    record->archetype_number = entities->first_free;
    record->handle_high++;
    entities->first_free = index;
    entities->free_count++;
    quern__entities_mark_modified(entities, index);
}

static inline uint32_t quern__entities_alive_count(const quern__entities *entities)
{
    return entities->slot_count - entities->free_count - entities->absent_count - entities->retired_count;
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
