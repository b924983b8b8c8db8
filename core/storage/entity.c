/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/entity.h"

#include "core/platform/platform.h"

#include <stdatomic.h>

enum {
    ABSENT_PAGE_BYTES =
        2 << 20, /* at least RECORD_PAGE_BYTES; three quarters are used with 32-bit pointers */
    RECORD_PAGE_BYTES = QUERN__PAGE_RECORDS * sizeof(quern__record),
    RECORD_PAGE_ALIGNMENT_BYTES = 2 << 20 /* size of a huge page */
};

/* The page of records that all absent pages of all worlds share. Its records are zero and are never written; lookups
 * of handles that are not alive read them. Systems with mapped memory map it when the first page becomes absent:
 * untouched zero pages use no physical memory, and the library's data does not grow. The page belongs to no world and
 * no allocator, and is never released. */
#if QUERN__HAS_PAGES

static _Atomic(quern__record *) absent_records;

/* Acquire: pairs with the release store by the thread that mapped the page. */
static quern__record *get_absent_records(void)
{
    return atomic_load_explicit(&absent_records, memory_order_acquire);
}

/* Maps the page of absent records if it is not mapped yet. If several threads map one, the first is kept and the
 * others are unmapped: the release of its thread pairs with the acquire of the others. Returns false if out of
 * memory. */
static bool make_absent_records(void)
{
    if (get_absent_records() != NULL) return true;
    quern__record *made = quern__pages_map(ABSENT_PAGE_BYTES, ABSENT_PAGE_BYTES), *known = NULL;
    if (made == NULL) return false;
    if (!atomic_compare_exchange_strong_explicit(&absent_records, &known, made, memory_order_release,
                                                 memory_order_acquire))
        quern__pages_unmap(made, ABSENT_PAGE_BYTES);
    return true;
}

#else

static quern__record absent_records[QUERN__PAGE_RECORDS];

static quern__record *get_absent_records(void)
{
    return absent_records;
}

static bool make_absent_records(void)
{
    return true;
}

#endif

void quern__entities_init(quern__entities *entities, uint32_t first_handle_high)
{
    *entities = (quern__entities){.first_free = QUERN__SLOT_NONE, .first_handle_high = first_handle_high};
}

/* Allocates a page of which `slots` slots were ever used. Returns NULL if out of memory. */
static quern__record *page_allocate(const quern_allocator *allocator, uint32_t page, uint32_t slots)
{
    quern__record *records = quern__allocate(allocator, RECORD_PAGE_BYTES, RECORD_PAGE_ALIGNMENT_BYTES);
    if (records != NULL && (page > 0 || slots >= QUERN__FIRST_PAGE_HUGE_FROM))
        quern__advise_huge_pages(records, RECORD_PAGE_BYTES);
    return records;
}

static void page_release(quern__entities *entities, const quern_allocator *allocator, uint32_t page)
{
    quern__release(allocator, entities->pages.items[page], RECORD_PAGE_BYTES, RECORD_PAGE_ALIGNMENT_BYTES);
}

void quern__entities_release(quern__entities *entities, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < entities->pages.count; i++)
        if (!quern__entities_is_absent(entities, i)) page_release(entities, allocator, i);
    quern__array_release(allocator, &entities->pages);
    quern__array_release(allocator, &entities->absent_highs);
    quern__marks_release(&entities->modified, allocator);
}

/* -------------------------------------------------------------------------------------- modified slots */

bool quern__entities_track_modified(quern__entities *entities, const quern_allocator *allocator)
{
    if (!quern__marks_extend(&entities->modified, allocator,
                             entities->pages.count * QUERN__PAGE_MODIFIED_WORDS))
        return false;
    quern__marks_fill(&entities->modified, ~UINT64_C(0));
    return true;
}

/* --------------------------------------------------------------------------------- room for entities */

static bool page_add(quern__entities *entities, const quern_allocator *allocator)
{
    const uint32_t count = entities->pages.count;
    if (!quern__array_reserve(allocator, &entities->pages, count + 1) ||
        !quern__array_reserve(allocator, &entities->absent_highs, count + 1) ||
        (entities->modified.items != NULL &&
         !quern__marks_extend(&entities->modified, allocator, (count + 1) * QUERN__PAGE_MODIFIED_WORDS)))
        return false;
    quern__record *records = page_allocate(allocator, count, 0);
    if (records == NULL) return false;
    entities->pages.items[entities->pages.count++] = records;
    entities->absent_highs.items[entities->absent_highs.count++] = 0;
    return true;
}

/* Returns the address of the link at the end of the free list. */
static uint32_t *find_free_end(quern__entities *entities)
{
    uint32_t *end = &entities->first_free;
    while (*end != QUERN__SLOT_NONE)
        end = &quern__entities_record(entities, *end)->archetype_number;
    return end;
}

/* Allocates an absent page again and appends its slots to the free list after its last link, `end`. Returns the list's
 * new last link, or NULL if out of memory. */
static uint32_t *page_allocate_again(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t page, uint32_t *end)
{
    const uint32_t slots = quern__entities_page_slots(entities, page);
    quern__record *records = page_allocate(allocator, page, slots);
    if (records == NULL) return NULL;
    for (uint32_t i = 0; i < slots; i++) {
        *end = page * QUERN__PAGE_RECORDS + i;
        records[i] = (quern__record){.handle_high = entities->absent_highs.items[page]};
        end = &records[i].archetype_number;
    }
    *end = QUERN__SLOT_NONE;
    entities->pages.items[page] = records;
    entities->absent_highs.items[page] = 0;
    entities->absent_count -= slots;
    entities->free_count += slots;
    return end;
}

/* Allocates absent pages again until the free list has `count` slots or no page is absent. Returns false if out of
 * memory. Pages that were allocated by then are kept, because the order of slot allocation is the same with them. */
static bool allocate_absent_pages(quern__entities *entities, const quern_allocator *allocator,
                                  uint32_t count)
{
    if (entities->absent_count == 0) return true;
    quern__marks_fill(&entities->modified, ~UINT64_C(0));
    uint32_t *end = find_free_end(entities);
    for (uint32_t i = 0; entities->free_count < count && entities->absent_count > 0; i++) {
        if (!quern__entities_is_absent(entities, i)) continue;
        end = page_allocate_again(entities, allocator, i, end);
        if (end == NULL) return false;
    }
    return true;
}

static bool add_pages(quern__entities *entities, const quern_allocator *allocator, uint64_t slots)
{
    while ((uint64_t)entities->pages.count * QUERN__PAGE_RECORDS < slots)
        if (!page_add(entities, allocator)) return false;
    return true;
}

/* Reserves `count` slots by adding pages. Fails with LIMIT if the world may not have that many slots. */
static QUERN__SLOW_PATH quern_result reserve_pages(quern__entities *entities,
                                                   const quern_allocator *allocator, uint32_t count)
{
    const uint64_t free = (uint64_t)entities->free_count + entities->absent_count;
    const uint64_t slots = entities->slot_count + (count > free ? count - free : 0);
    if (slots > QUERN_MAX_ENTITIES)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "the world has no slots left for %u more entities (%u alive, %u retired, limit %u, "
            "QUERN_MAX_ENTITIES): destroy entities first",
            count, quern__entities_alive_count(entities), entities->retired_count, QUERN_MAX_ENTITIES);
    if (allocate_absent_pages(entities, allocator, count) && add_pages(entities, allocator, slots))
        return QUERN_OK;
    quern__entities_trim(entities, allocator);
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the records of %u more entities", count);
}

quern_result quern__entities_reserve(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t count)
{
    if (count <= entities->free_count) return QUERN_OK;
    const uint64_t slots = (uint64_t)entities->slot_count + (count - entities->free_count);
    const uint64_t room = (uint64_t)entities->pages.count * QUERN__PAGE_RECORDS;
    if (QUERN__LIKELY(slots <= room && slots <= QUERN_MAX_ENTITIES && entities->absent_count == 0))
        return QUERN_OK;
    return reserve_pages(entities, allocator, count);
}

void quern__entities_trim(quern__entities *entities, const quern_allocator *allocator)
{
    while (entities->pages.count > 0 &&
           quern__entities_page_slots(entities, entities->pages.count - 1) == 0) {
        page_release(entities, allocator, --entities->pages.count);
        entities->absent_highs.count--;
    }
}

/* ------------------------------------------------------------------------------------- pages released */

/* Returns the handle_high with which all slots of a page would continue if the page were released: that of its most
 * often used slot. Returns 0 if the page must be kept. */
static uint32_t find_absent_high(const quern__entities *entities, uint32_t page)
{
    const quern__record *records = entities->pages.items[page];
    const uint32_t slots = quern__entities_page_slots(entities, page);
    uint32_t most = 0, high = 0;
    for (uint32_t i = 0; i < slots; i++) {
        const uint32_t use_count =
            quern__generation_use_count(entities->first_handle_high, quern__record_generation(&records[i]));
        /* a free slot with only its last generation left has the same record as a retired slot: the page is kept */
        if (records[i].location != 0 || use_count == QUERN__MAX_GENERATION) return 0;
        if (use_count > most) {
            most = use_count;
            high = records[i].handle_high;
        }
    }
    return high;
}

/* Removes the slots of absent pages from the free list. The other slots remain in order. */
static void remove_absent_slots(quern__entities *entities)
{
    uint32_t *end = &entities->first_free;
    for (uint32_t i = entities->first_free; i != QUERN__SLOT_NONE;) {
        quern__record *record = quern__entities_record(entities, i);
        const uint32_t next = record->archetype_number;
        if (quern__entities_is_absent(entities, i >> QUERN__PAGE_RECORDS_LOG2)) {
            entities->free_count--;
            entities->absent_count++;
        } else {
            *end = i;
            end = &record->archetype_number;
        }
        i = next;
    }
    *end = QUERN__SLOT_NONE;
}

/* Releases the memory of absent pages that have some. */
static void release_absent_pages(quern__entities *entities, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < entities->pages.count; i++) {
        if (!quern__entities_is_absent(entities, i) || entities->pages.items[i] == get_absent_records())
            continue;
        page_release(entities, allocator, i);
        entities->pages.items[i] = get_absent_records();
    }
}

void quern__entities_drop_pages(quern__entities *entities, const quern_allocator *allocator)
{
    quern__entities_trim(entities, allocator);
    if (!make_absent_records()) return;
    bool drops = false;
    for (uint32_t i = 0; i < entities->pages.count; i++) {
        if (quern__entities_is_absent(entities, i)) continue;
        entities->absent_highs.items[i] = find_absent_high(entities, i);
        drops |= quern__entities_is_absent(entities, i);
    }
    if (!drops) return;
    quern__marks_fill(&entities->modified, ~UINT64_C(0));
    remove_absent_slots(entities);
    release_absent_pages(entities, allocator);
}

/* ------------------------------------------------------------------------------------- pages restored */

bool quern__entities_prepare_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs)
{
    if (!add_pages(entities, allocator, (uint64_t)page_count * QUERN__PAGE_RECORDS)) return false;
    for (uint32_t i = 0; i < page_count; i++) {
        if (absent_highs[i] != 0 && !make_absent_records()) return false;
        if (absent_highs[i] != 0 || !quern__entities_is_absent(entities, i)) continue;
        quern__record *records = page_allocate(allocator, i, QUERN__PAGE_RECORDS);
        if (records == NULL) return false;
        memset(records, 0, RECORD_PAGE_BYTES);
        entities->pages.items[i] = records;
    }
    return true;
}

void quern__entities_cancel_pages(quern__entities *entities, const quern_allocator *allocator)
{
    release_absent_pages(entities, allocator);
    quern__entities_trim(entities, allocator);
}

/* Removes the pages from page_count on: the frame has no slots in them. */
void quern__entities_restore_pages(quern__entities *entities, const quern_allocator *allocator,
                                   uint32_t page_count, const uint32_t *absent_highs)
{
    for (uint32_t i = 0; i < page_count; i++) {
        if (absent_highs[i] != 0 && !quern__entities_is_absent(entities, i)) {
            page_release(entities, allocator, i);
            entities->pages.items[i] = get_absent_records();
        }
        entities->absent_highs.items[i] = absent_highs[i];
    }
    while (entities->pages.count > page_count) {
        const uint32_t last = entities->pages.count - 1;
        if (!quern__entities_is_absent(entities, last)) page_release(entities, allocator, last);
        entities->pages.count--;
        entities->absent_highs.count--;
    }
}

uint64_t quern__entities_record_bytes(const quern__entities *entities)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < entities->pages.count; i++)
        bytes += quern__entities_is_absent(entities, i) ? 0 : RECORD_PAGE_BYTES;
    return bytes;
}

/* -------------------------------------------------------------------------------------------- slots */

void quern__entities_make_first_page_huge(const quern__entities *entities)
{
    quern__collapse_huge_page(entities->pages.items[0], RECORD_PAGE_BYTES);
}

void quern__entities_allocate_many(quern__entities *entities, uint32_t count, quern_entity *out_handles)
{
    const uint32_t high = entities->first_handle_high;
    uint32_t i = 0;
    for (; i < count && entities->first_free != QUERN__SLOT_NONE; i++)
        out_handles[i] = quern__entities_allocate(entities);
    for (uint32_t taken; i < count; i += taken) {
        const uint32_t first = entities->slot_count;
        /* one loop for consecutive records; it also stops where the first page becomes a huge page */
        const uint32_t wanted = count - i;
        uint32_t end = (first | (QUERN__PAGE_RECORDS - 1)) + 1;
        if (first < QUERN__FIRST_PAGE_HUGE_FROM) end = QUERN__FIRST_PAGE_HUGE_FROM;
        taken = wanted < end - first ? wanted : end - first;
        if (QUERN__UNLIKELY(first == QUERN__FIRST_PAGE_HUGE_FROM))
            quern__entities_make_first_page_huge(entities);
        quern__record *records = quern__entities_record(entities, first);
        for (uint32_t k = 0; k < taken; k++) {
            records[k] = (quern__record){.handle_high = high};
            out_handles[i + k] = (quern_entity){(uint64_t)high << 32 | (first + k)};
        }
        if (QUERN__UNLIKELY(entities->modified.items != NULL))
            for (uint32_t k = 0; k < taken; k++)
                quern__entities_mark_modified(entities, first + k);
        entities->slot_count += taken;
    }
}

void quern__entities_restore(quern__entities *entities, const uint32_t *highs, uint32_t slot_count,
                             const uint32_t *free_slots, uint32_t free_count, uint32_t retired_count)
{
    assert(entities->slot_count == 0 &&
           (uint64_t)entities->pages.count * QUERN__PAGE_RECORDS >= slot_count);
    entities->slot_count = slot_count;
    entities->free_count = free_count;
    entities->retired_count = retired_count;
    if (slot_count > QUERN__FIRST_PAGE_HUGE_FROM) quern__entities_make_first_page_huge(entities);
    for (uint32_t i = 0; i < slot_count; i++)
        *quern__entities_record(entities, i) = (quern__record){.handle_high = highs[i]};
    uint32_t *end = &entities->first_free;
    for (uint32_t i = 0; i < free_count; i++) {
        *end = free_slots[i];
        end = &quern__entities_record(entities, free_slots[i])->archetype_number;
    }
    *end = QUERN__SLOT_NONE;
    quern__marks_fill(&entities->modified, ~UINT64_C(0));
}

void quern__entities_peek(const quern__entities *entities, uint32_t count, quern_entity *out_handles)
{
    uint32_t i = 0;
    for (uint32_t index = entities->first_free; i < count && index != QUERN__SLOT_NONE; i++) {
        const quern__record *record = quern__entities_record(entities, index);
        out_handles[i] = (quern_entity){(uint64_t)record->handle_high << 32 | index};
        index = record->archetype_number;
    }
    for (uint32_t index = entities->slot_count; i < count; i++, index++)
        out_handles[i] = (quern_entity){(uint64_t)entities->first_handle_high << 32 | index};
}

void quern__entities_free_or_retire(quern__entities *entities, uint32_t index)
{
    quern__record *record = quern__entities_record(entities, index);
    const uint32_t generation = quern__record_generation(record);
    if (quern__generation_use_count(entities->first_handle_high, generation) == QUERN__MAX_GENERATION) {
        record->location = 0;
        entities->retired_count++;
        quern__entities_mark_modified(entities, index);
        return;
    }
    /* the generation wraps to 1: an increment would overflow into the world tag */
    if (generation == QUERN__MAX_GENERATION) record->handle_high -= QUERN__MAX_GENERATION;
    quern__entities_free(entities, index, record);
}

quern_result quern__entities_check(const quern__entities *entities, quern_entity entity)
{
    if (quern__entities_find(entities, entity) != NULL) return QUERN_OK;
    uint32_t index = quern_entity_index(entity), generation = quern_entity_generation(entity);
    uint32_t tag = quern_entity_world_tag(entity);
    if (quern_entity_is_null(entity))
        return quern__fail(QUERN_ERROR_NULL_ENTITY,
                           "the entity handle is null: pass the handle of an entity");
    if (tag == 0)
        return quern__fail(
            QUERN_ERROR_PROVISIONAL_ENTITY,
            "the handle of a deferred create (number %u) is valid only in commands of the "
            "callback that made it, until the sync point; find the entity by a query afterwards",
            index);
    if (tag != entities->first_handle_high >> 24)
        return quern__fail(
            QUERN_ERROR_FOREIGN_ENTITY,
            "entity %u:%u belongs to world %u, not to this world (%u): pass it to calls of its own "
            "world, or find the entity of this world by its name or a query",
            index, generation, tag, entities->first_handle_high >> 24);
    return quern__fail(QUERN_ERROR_STALE_ENTITY,
                       "entity %u:%u is not alive any more: it was destroyed; test kept handles by "
                       "quern_entity_is_alive",
                       index, generation);
}
