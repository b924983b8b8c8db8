/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/entity.h"

#include <quern/world.h>

enum { FIRST_PAGE_NEARLY_FULL = QUERN__PAGE_RECORDS / 4 * 3 };
enum { PAGE_BYTES = QUERN__PAGE_RECORDS * sizeof(quern__record), PAGE_ALIGNMENT_BYTES = PAGE_BYTES };

void quern__entities_init(quern__entities *entities, uint32_t first_handle_high)
{
    *entities = (quern__entities){.first_free = QUERN__SLOT_NONE, .first_handle_high = first_handle_high};
}

void quern__entities_release(quern__entities *entities, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < entities->pages.count; i++)
        quern__release(allocator, entities->pages.items[i], PAGE_BYTES, PAGE_ALIGNMENT_BYTES);
    quern__array_release(allocator, &entities->pages);
}

static bool page_add(quern__entities *entities, const quern_allocator *allocator)
{
    if (!quern__array_reserve(allocator, &entities->pages, entities->pages.count + 1)) return false;
    quern__record *page = quern__allocate(allocator, PAGE_BYTES, PAGE_ALIGNMENT_BYTES);
    if (page == NULL) return false;
    /* as with slabs: the first one only when it is nearly full, for the sake of small worlds */
    if (entities->pages.count > 0) quern__advise_huge_pages(page, PAGE_BYTES);
    entities->pages.items[entities->pages.count++] = page;
    return true;
}

quern_result quern__entities_reserve(quern__entities *entities, const quern_allocator *allocator,
                                     uint32_t count)
{
    if (count <= entities->free_count) return QUERN_OK;
    uint64_t slots = (uint64_t)entities->slot_count + (count - entities->free_count);
    if (slots > QUERN_MAX_ENTITIES)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "the world has no slots left for %u more entities (%u alive, %u retired, limit %u, "
            "QUERN_MAX_ENTITIES)",
            count, quern__entities_alive_count(entities), entities->retired_count, QUERN_MAX_ENTITIES);
    while ((uint64_t)entities->pages.count * QUERN__PAGE_RECORDS < slots)
        if (!page_add(entities, allocator)) {
            quern__entities_trim(entities, allocator);
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the records of %u more entities",
                               count);
        }
    return QUERN_OK;
}

void quern__entities_trim(quern__entities *entities, const quern_allocator *allocator)
{
    uint32_t needed =
        (uint32_t)(((uint64_t)entities->slot_count + QUERN__PAGE_RECORDS - 1) / QUERN__PAGE_RECORDS);
    while (entities->pages.count > needed)
        quern__release(allocator, entities->pages.items[--entities->pages.count], PAGE_BYTES,
                       PAGE_ALIGNMENT_BYTES);
}

quern_entity quern__entities_take(quern__entities *entities)
{
    uint32_t index = entities->first_free;
    quern__record *record;
    if (index != QUERN__SLOT_NONE) {
        record = quern__entities_record(entities, index);
        entities->first_free = record->archetype_number;
        entities->free_count--;
    } else {
        index = entities->slot_count++;
        if (QUERN__UNLIKELY(index == FIRST_PAGE_NEARLY_FULL))
            quern__collapse_huge_page(entities->pages.items[0], PAGE_BYTES);
        record = quern__entities_record(entities, index);
        *record = (quern__record){.handle_high = entities->first_handle_high};
    }
    return (quern_entity){(uint64_t)record->handle_high << 32 | index};
}

void quern__entities_give(quern__entities *entities, uint32_t index)
{
    quern__record *record = quern__entities_record(entities, index);
    const uint32_t generation = quern__record_generation(record);
    if (quern__generation_life(entities->first_handle_high, generation) == QUERN__MAX_GENERATION) {
        record->location = 0;
        entities->retired_count++;
        return;
    }
    /* the world's tag stands above: generations must not run over into it */
    if (generation == QUERN__MAX_GENERATION) record->handle_high -= QUERN__MAX_GENERATION;
    quern__entities_free(entities, index, record);
}

quern_result quern__entities_check(const quern__entities *entities, quern_entity entity)
{
    if (quern__entities_find(entities, entity) != NULL) return QUERN_OK;
    uint32_t index = quern_entity_index(entity), generation = quern_entity_generation(entity);
    uint32_t tag = quern_entity_world_tag(entity);
    if (quern_entity_is_null(entity))
        return quern__fail(QUERN_ERROR_NULL_ENTITY, "the entity handle is null");
    if (tag == 0)
        return quern__fail(
            QUERN_ERROR_PROVISIONAL_ENTITY,
            "the handle of a deferred create (number %u) is valid only in commands of the "
            "callback that made it, until the sync point; find the entity by a query afterwards",
            index);
    if (tag != entities->first_handle_high >> 24)
        return quern__fail(QUERN_ERROR_FOREIGN_ENTITY,
                           "entity %u:%u belongs to world %u, not to this one (%u)", index, generation, tag,
                           entities->first_handle_high >> 24);
    return quern__fail(QUERN_ERROR_STALE_ENTITY, "entity %u:%u does not live any more", index, generation);
}
