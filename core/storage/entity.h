/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ENTITY_H
#define QUERN_CORE_STORAGE_ENTITY_H

/* Entity records: the location of each entity. There is one record per slot, 16 bytes (12 with 32-bit pointers), in
 * pages of 131,072 records. A record never moves while its page exists.
 *
 *   alive slot:  location = address of the run | row in the run     (runs are aligned to their size: chunk.h)
 *   free slot:   location = 0, archetype_number = next free slot or QUERN__SLOT_NONE
 *
 * The record stores the archetype although the slab's tables do, too. A random get therefore costs two cache
 * misses, record and value, instead of three.
 *
 *   alive slots + free_count + absent_count + retired_count = slot_count
 *
 * A handle is alive if its slot is alive and the generations are equal. A slot that has used every generation once is
 * retired: it is neither alive nor in the free list, and is never reused.
 *
 * The generations of a slot start at the world's generation base (see handle.h), continue up to
 * QUERN__MAX_GENERATION, wrap around to 1, and end before the base.
 *
 * Absent pages: quern__entities_drop_pages releases pages without alive slots. The table of pages then points to a
 * shared page of zero records, in which no handle is alive, so that lookups need no extra test. When an absent page
 * is allocated again, all its slots continue with one generation: that of its most often used slot. No old handle can
 * become alive that way.
 *
 * Slots are allocated from the free list first, then from absent pages in ascending order, then from slots that were
 * never used. The slots of a page that is allocated again are appended to the free list. The order of allocation
 * therefore does not depend on when that happens. */

#include "core/base/containers.h"
#include "core/base/handle.h"

#include <quern/world.h>

enum { QUERN__PAGE_RECORDS_LOG2 = 17, QUERN__PAGE_RECORDS = 1 << QUERN__PAGE_RECORDS_LOG2 };

/* Number of used slots from which on the first page is advised to be a huge page, so that small worlds stay small.
 * All other pages are advised when they are allocated. */
enum { QUERN__FIRST_PAGE_HUGE_FROM = QUERN__PAGE_RECORDS / 4 };

#define QUERN__SLOT_NONE UINT32_MAX

typedef struct quern__record {
    uintptr_t location;
    uint32_t archetype_number;
    /* Upper half of the handle, world tag and generation, so that one comparison checks both. The generation, 1 to
     * QUERN__MAX_GENERATION, is that of the alive entity; in a free slot, that of the next entity. */
    uint32_t handle_high;
} quern__record;

typedef struct quern__entities {
    QUERN__ARRAY(quern__record *) pages;
    /* By page: 0 if the page exists; otherwise the handle_high with which the slots of the absent page continue. */
    QUERN__ARRAY(uint32_t) absent_highs;
    uint32_t slot_count;   /* slots that were ever used; their pages exist or are absent */
    uint32_t first_free;   /* head of the free list: the slot freed last is reused first */
    uint32_t free_count;   /* length of the free list */
    uint32_t absent_count; /* slots in absent pages; they are free, but not in the free list */
    uint32_t retired_count;
    uint32_t first_handle_high; /* handle_high of slots that were never used */
    /* One bit per group of slots, set when a slot of the group is allocated or freed. While marking is on, there are
     * words for all pages. */
    quern__marks modified;
} quern__entities;

/* Number of slots that share a bit of `modified`, and number of words of these bits per page. */
enum {
    QUERN__SLOT_GROUP_LOG2 = 9,
    QUERN__SLOT_GROUP = 1 << QUERN__SLOT_GROUP_LOG2,
    QUERN__PAGE_MODIFIED_WORDS = QUERN__PAGE_RECORDS / QUERN__SLOT_GROUP / 64
};

/* Starts tracking modified slots, with all slots marked. Returns false if out of memory. */
bool quern__entities_track_modified(quern__entities *entities, const quern_allocator *allocator);

static inline void quern__entities_mark_modified(const quern__entities *entities, uint32_t index)
{
    if (QUERN__UNLIKELY(entities->modified.items != NULL))
        entities->modified.items[index >> (QUERN__SLOT_GROUP_LOG2 + 6)] |=
            UINT64_C(1) << (index >> QUERN__SLOT_GROUP_LOG2) % 64;
}

void quern__entities_init(quern__entities *entities, uint32_t first_handle_high);

void quern__entities_release(quern__entities *entities, const quern_allocator *allocator);

/* Ensures that the next `count` slots can be allocated without failing. On failure no page is added, but pages that
 * were absent may exist again. Errors: LIMIT, OUT_OF_MEMORY. */
quern_result quern__entities_reserve(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t count);

/* Releases the last pages if none of their slots was ever used, such as pages that an unused reservation added. */
void quern__entities_trim(quern__entities *entities, const quern_allocator *allocator);

/* Releases every page without slots that are alive, retired, or free for their last generation. Visits all
 * slots. Later entities get other handles than without this call; which ones depends only on the state of the
 * slots, so they are deterministic. */
void quern__entities_drop_pages(quern__entities *entities, const quern_allocator *allocator);

/* Restore the pages of a history's frame in two steps. quern__entities_prepare_pages allocates the first `page_count`
 * pages except those that are absent in the frame (absent_highs is not 0), without any visible change. It returns
 * false if out of memory; the caller must then call quern__entities_cancel_pages, which releases the new pages.
 * quern__entities_restore_pages cannot fail: afterwards the same pages are absent as in the frame, and pages from
 * page_count on do not exist. */
bool quern__entities_prepare_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs);
void quern__entities_cancel_pages(quern__entities *entities, const quern_allocator *allocator);
void quern__entities_restore_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs);

/* Returns the memory of the pages that exist, in bytes. */
uint64_t quern__entities_record_bytes(const quern__entities *entities);

/* Allocates `count` reserved slots, in the order in which quern__entities_allocate would return them. The caller must
 * set location and archetype in their records before the records are read. */
void quern__entities_allocate_many(quern__entities *entities, uint32_t count, quern_entity *out_handles);

/* Asks the system to back the first page with a huge page, once QUERN__FIRST_PAGE_HUGE_FROM of its slots are used. */
void quern__entities_make_first_page_huge(const quern__entities *entities);

/* Creates all slots of a world that has none, like those of another world. Precondition: slot_count slots are
 * reserved. `highs`: handle_high by slot, of the alive entity or of the next one. `free_slots`: in order of
 * allocation. The caller must set location and archetype in the records of alive slots: all that are neither in
 * `free_slots` nor among the `retired_count` retired ones. */
void quern__entities_restore(quern__entities *entities, const uint32_t *highs, uint32_t slot_count,
                             const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count);

/* Returns the handles that the next `count` allocations will return, without allocating. Precondition: the slots are
 * reserved. */
void quern__entities_peek(const quern__entities *entities, uint32_t count, quern_entity *out_handles);

/* Returns the slot that the next allocation will return. Precondition: a slot is reserved. */
static inline uint32_t quern__entities_next_slot(const quern__entities *entities)
{
    return entities->first_free != QUERN__SLOT_NONE ? entities->first_free : entities->slot_count;
}

/* Frees the slot of an alive entity, or retires the slot if it has used all its generations. */
void quern__entities_free_or_retire(quern__entities *entities, uint32_t index);

/* Returns QUERN_OK if the handle is alive. Otherwise fails with NULL_ENTITY, PROVISIONAL_ENTITY, FOREIGN_ENTITY or
 * STALE_ENTITY. */
quern_result quern__entities_check(const quern__entities *entities, quern_entity entity);

/* Returns the record of a slot. `pages`: entities->pages.items, which the caller may load once before a loop. */
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

/* Returns the number of slots of a page that were ever used. */
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

/* Returns whether one slot can be allocated without a reservation. */
static inline bool quern__entities_has_unreserved_slot(const quern__entities *entities)
{
    const uint64_t room = (uint64_t)entities->pages.count * QUERN__PAGE_RECORDS;
    return entities->free_count > 0 || (entities->slot_count < room && entities->absent_count == 0 &&
                                        entities->slot_count < QUERN_MAX_ENTITIES);
}

/* Allocates one reserved slot. The caller must immediately set location and archetype in its record. */
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

/* Returns whether the slot's generation may be its last one, or QUERN__MAX_GENERATION, after which generations wrap
 * to 1. Then quern__entities_free_or_retire must free the slot. Generation bases are multiples of
 * QUERN__GENERATION_BASE_STEP (the first base is 1, with last generation QUERN__MAX_GENERATION). Both generations
 * therefore precede a multiple, so that one test of the low bits covers the common case. */
static inline bool quern__record_may_retire_or_wrap(const quern__record *record)
{
    return (record->handle_high & (QUERN__GENERATION_BASE_STEP - 1)) == QUERN__GENERATION_BASE_STEP - 1;
}

/* Frees the slot of an alive entity. `record`: that of the slot. Precondition: the slot can be reused, and its
 * generation is not QUERN__MAX_GENERATION. */
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

/* Returns the record of an alive entity, or NULL. */
static inline quern__record *quern__entities_find(const quern__entities *entities, quern_entity entity)
{
    uint32_t index = (uint32_t)entity.bits;
    if (QUERN__UNLIKELY(index >= entities->slot_count)) return NULL;
    quern__record *record = quern__entities_record(entities, index);
    return record->handle_high == entity.bits >> 32 && record->location != 0 ? record : NULL;
}

/* Prefetches the records of a list: elements of most lists are scattered in memory. */
static inline void quern__prefetch_records(const quern__entities *entities, const quern_entity *handles,
                                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern_entity_index(handles[i]);
        if (index < entities->slot_count) QUERN__PREFETCH(quern__entities_record(entities, index));
    }
}

#endif
