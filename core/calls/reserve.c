/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reserves memory ahead of its use, and touches it (quern_world_reserve). */

#include "core/calls/calls_internal.h"
#include "core/record/item_space.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"

static bool is_end_of_components(const void *list, uint32_t i)
{
    return quern_component_is_null(((const quern_component *)list)[i]);
}

static bool is_end_of_relations(const void *list, uint32_t i)
{
    return ((const quern_relation *)list)[i].bits == 0;
}

/* Reserves and touches the records of entities. *out_slot_end: the number of slots that then have records. */
static quern_result reserve_records(quern__storage *storage, uint32_t count, uint32_t *out_slot_end)
{
    quern__entities *entities = &storage->entities;
    const quern_result result = quern__entities_reserve(entities, &storage->allocator, count);
    const uint32_t free_count = entities->free_count + entities->absent_count;
    *out_slot_end = entities->slot_count + (count > free_count ? count - free_count : 0);
    if (result != QUERN_OK) return result;
    for (uint32_t slot = entities->slot_count, step; slot < *out_slot_end; slot += step) {
        step = QUERN__PAGE_RECORDS - slot % QUERN__PAGE_RECORDS;
        if (step > *out_slot_end - slot) step = *out_slot_end - slot;
        quern__touch_pages(quern__entities_record(entities, slot), step * sizeof(quern__record));
    }
    return QUERN_OK;
}

static quern_result reserve_links(quern__storage *storage, const quern_relation *relations, uint32_t count,
                                  uint32_t slot_end)
{
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation;
        const quern_result result = quern__relation_check(storage, relations[i], &relation);
        if (result != QUERN_OK) return result;
        for (uint32_t slot = 0; slot < slot_end; slot += QUERN__LINK_PAGE_SLOTS)
            if (!quern__links_reserve(&relation->links, &storage->allocator, slot))
                return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of %u entities",
                                   slot_end);
    }
    return QUERN_OK;
}

/* Reserves rows, touches the memory of all rows without entities, and keeps the chunks until quern_world_trim. */
static quern_result reserve_rows(quern_world *world, const quern_component *components,
                                 uint32_t component_count, uint32_t row_count)
{
    quern__storage *storage = &world->storage;
    quern__archetype *archetype;
    quern_result result = quern__world_ensure_archetype(world, components, component_count, &archetype);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, archetype, row_count);
    if (result != QUERN_OK) return result;
    archetype->asked_count = archetype->held_count;
    quern__rows_unreserve(storage, archetype);
    for (uint32_t i = archetype->chunk_count; i < archetype->held_count; i++)
        quern__touch_pages(archetype->slots[i].chunk, QUERN__CHUNK_BYTES);
    return QUERN_OK;
}

static quern_result reserve(quern_world *world, const quern_reserve_def *def)
{
    uint32_t component_count, relation_count, slot_end;
    quern_result result = quern__world_check_unlocked(world, "quern_world_reserve");
    if (result == QUERN_OK)
        result = quern__list_count(def->components, QUERN_MAX_ENTITY_COMPONENTS, is_end_of_components,
                                   "component", NULL, &component_count);
    if (result == QUERN_OK)
        result = quern__list_count(def->relations, QUERN_MAX_RESERVED_RELATIONS, is_end_of_relations,
                                   "relation", NULL, &relation_count);
    if (result == QUERN_OK && component_count > 0 && def->row_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_world_reserve: there are components, but row_count is 0: set it to the "
                           "number of rows with these components");
    if (result == QUERN_OK) result = reserve_records(&world->storage, def->entity_count, &slot_end);
    if (result == QUERN_OK)
        result = reserve_links(&world->storage, def->relations, relation_count, slot_end);
    if (result == QUERN_OK && def->row_count > 0)
        result = reserve_rows(world, def->components, component_count, def->row_count);
    if (result != QUERN_OK || def->command_bytes == 0) return quern__in_call(result, "quern_world_reserve");
    quern_commands *commands = quern_world_commands(world);
    if (commands != NULL && quern__blocks_reserve_bytes(commands, def->command_bytes)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "quern_world_reserve: no memory for %llu bytes of commands",
                       (unsigned long long)def->command_bytes);
}

quern_result quern_world_reserve(quern_world *world, const quern_reserve_def *def)
{
    static const char function[] = "quern_world_reserve";
    if (world == NULL) return quern__fail_null(function, "world");
    if (def == NULL) return quern__fail_null(function, "def");
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, reserve(world, def));
}
