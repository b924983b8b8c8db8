/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Giving back what a world does not need: memory without rows (trim) and archetypes without rows (collect).
 * Neither changes anything that a user can see but the numbers of archetypes. */

#include "core/query.h"
#include "core/world.h"

/* -------------------------------------------------------------------------------------------- trim */

static quern_result check_world(const quern_world *world, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    return quern__world_check_unlocked(world, function);
}

static quern_result trim(quern_world *world)
{
    quern_result result = check_world(world, "quern_world_trim");
    if (result != QUERN_OK) return result;
    quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        storage->archetypes.items[i]->is_spare = false;
        quern__archetype_drop_spare(storage->archetypes.items[i], &storage->slabs, &storage->allocator);
    }
    memset(storage->spares, 0, sizeof storage->spares);
    quern__slabs_trim(&storage->slabs, &storage->allocator);
    quern__entities_trim(&storage->entities, &storage->allocator);
    return QUERN_OK;
}

quern_result quern_world_trim(quern_world *world)
{
    if (!quern__world_enter(world, "quern_world_trim")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, trim(world));
}

/* ----------------------------------------------------------------------------------------- collect */

/* Every query takes up what it has not seen yet, so that afterwards all have seen all. */
static quern_result refresh_queries(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next) {
        quern_result result = query->term_count > 0 ? quern__query_refresh(query) : QUERN_OK;
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Marks the archetypes to go, and returns how many. The one without components stays: new entities start
 * there. */
static uint32_t mark_collected(quern__storage *storage)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < storage->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        archetype->is_collected = archetype->chunk_count == 0;
        count += archetype->is_collected;
    }
    return count;
}

/* Takes the marked ones out of all that names archetypes by pointer. */
static void forget_collected(quern_world *world)
{
    quern__storage *storage = &world->storage;
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_forget_collected(query);
    for (uint32_t i = 0; i < QUERN__SPARE_ARCHETYPES; i++)
        if (storage->spares[i] != NULL && storage->spares[i]->is_collected) storage->spares[i] = NULL;
    if (world->recipe.archetype != NULL && world->recipe.archetype->is_collected)
        world->recipe.archetype = NULL;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        quern__storage_forget_plans(storage, storage->archetypes.items[i]);
}

static void renumber(quern__storage *storage, quern__archetype *archetype, uint32_t index)
{
    if (archetype->index == index) return;
    archetype->index = index;
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        const quern_entity *handles = quern__archetype_entities(archetype, slot->chunk);
        for (uint32_t row = 0; row < slot->row_count; row++)
            quern__entities_record(&storage->entities, quern_entity_index(handles[row]))->archetype_index =
                index;
    }
}

/* Releases the marked archetypes, and links the others anew, in their order: every list has the room, since
 * it had all of them before. */
static void relink(quern__storage *storage)
{
    uint32_t count = storage->archetypes.count;
    for (uint32_t i = 0; i < storage->components.list.count; i++)
        storage->components.list.items[i]->archetypes.count = 0;
    quern__map_clear(&storage->archetype_by_set);
    storage->archetypes.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        archetype->next_same_hash = NULL;
        if (archetype->is_collected) {
            quern__archetype_drop_spare(archetype, &storage->slabs, &storage->allocator);
            quern__archetype_release(archetype, &storage->allocator);
        } else {
            renumber(storage, archetype, storage->archetypes.count);
            quern__storage_link(storage, archetype);
        }
    }
}

/* They have seen all there are. */
static void count_scanned(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->scanned_count = query->driver == QUERN__NO_DRIVER
                                   ? storage->archetypes.count
                                   : storage->components.list.items[query->driver]->archetypes.count;
}

static quern_result collect(quern_world *world, uint32_t *out_count)
{
    quern_result result = check_world(world, "quern_world_collect");
    if (result == QUERN_OK) result = refresh_queries(&world->storage);
    if (result != QUERN_OK) return result;
    uint32_t count = mark_collected(&world->storage);
    if (count > 0) {
        forget_collected(world);
        relink(&world->storage);
        count_scanned(&world->storage);
        if (world->storage.archetypes.count < QUERN__UNCROWDED_ARCHETYPES)
            world->storage.is_crowded = false;
        world->storage.structure_version++; /* iterations under way are over: their matches moved */
    }
    if (out_count != NULL) *out_count = count;
    return QUERN_OK;
}

quern_result quern_world_collect(quern_world *world, uint32_t *out_count)
{
    if (!quern__world_enter(world, "quern_world_collect")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, collect(world, out_count));
}
