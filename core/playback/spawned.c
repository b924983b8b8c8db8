/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Compact instances of prefabs at a sync point: lists them, plans and reserves their rows with the resolve stage, and
 * spawns them with the apply stage. */
#include "core/playback/stages.h"

#include "core/record/spawn.h"

/* --------------------------------------------------------------------------------------------- lists */

static quern__prefab *prefab_of(const quern__spawned *it)
{
    return it->operation->variant->cache->prefab;
}

/* Whether the item directly continues the instances. Instances with overrides must be in one batch, so that the
 * distance between their values is constant. */
static bool continues(const quern__spawned *it, const quern__operation *operation, const char *item,
                      uint32_t first_created)
{
    if (first_created != it->first_created + it->count * prefab_of(it)->members.count) return false;
    if (operation->operand_count == 0 && it->operation->operand_count == 0)
        return operation->variant->cache->prefab == prefab_of(it);
    return operation == it->operation && item == it->first_item + (size_t)it->count * operation->item_bytes;
}

/* Lists the compact instances of a batch, joined to consecutive ones where possible. Returns false if out of
 * memory. */
static bool list_batch(quern__resolved *resolved, const quern_allocator *allocator,
                       quern__command_batch *batch, uint32_t stream_first)
{
    const quern__operation *operation = batch->operation;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        const quern__item *item = quern__batch_item(batch, i);
        if (quern_entity_is_null(item->entity)) continue; /* the instance was expanded */
        const uint32_t first_created = stream_first + quern_entity_index(item->entity);
        const uint32_t count = resolved->spawned.count;
        if (count > 0 &&
            continues(&resolved->spawned.items[count - 1], operation, (const char *)item, first_created)) {
            resolved->spawned.items[count - 1].count++;
            continue;
        }
        if (!quern__array_reserve(allocator, &resolved->spawned, count + 1)) return false;
        resolved->spawned.items[resolved->spawned.count++] = (quern__spawned){
            .operation = operation,
            .first_item = (const char *)item,
            .count = 1,
            .first_created = first_created,
        };
    }
    return true;
}

static bool list_streams(quern__resolved *resolved, const quern_allocator *allocator,
                         const quern__gathered *gathered)
{
    uint32_t stream_first = 0;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        const bool spawns = QUERN__MAY(stream->traits, SPAWNS);
        for (uint32_t k = 0; k < stream->batch_count && spawns; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (batch->operation->kind == QUERN__OPERATION_SPAWN &&
                !list_batch(resolved, allocator, batch, stream_first))
                return false;
        }
        stream_first += stream->create_count;
    }
    return true;
}

/* --------------------------------------------------------------------------------------------- plans */

/* Finds the plan of consecutive instances and counts their rows. Refuses them if no archetype can be created for their
 * members, which then end at once. */
static quern_result plan_one(quern__resolved *resolved, quern__storage *storage, quern__spawned *it)
{
    quern__prefab *prefab = prefab_of(it);
    const quern_result result = quern__prefab_plan_find(storage, prefab, QUERN__SLOT_NONE, &it->plan);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    if (result != QUERN_OK) {
        const uint32_t count = it->count * prefab->members.count;
        it->plan = NULL;
        it->first_destroyed = (uint32_t)resolved->destroyed_count;
        resolved->destroyed_count += count;
        resolved->refused_count += count;
        if (resolved->refused_result == QUERN_OK) resolved->refused_result = result;
        return QUERN_OK;
    }
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        quern__archetype_delta *delta = quern__resolved_add(resolved, storage, it->plan->archetypes[i]);
        if (delta == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        delta->spawned_count += it->count * prefab->groups.items[i].width;
    }
    return QUERN_OK;
}

quern_result quern__spawned_plan(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage)
{
    quern_result result =
        list_streams(resolved, &storage->allocator, gathered) ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < resolved->spawned.count && result == QUERN_OK; i++)
        result = plan_one(resolved, storage, &resolved->spawned.items[i]);
    if (result == QUERN_OK) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list spawned instances");
}

/* ----------------------------------------------------------------------------------------- instances */

/* Describes the instances for core/prefabs. overrides: array of QUERN_MAX_SPAWN_OVERRIDES elements. */
static quern__instances instances_of(const quern__spawned *it, quern__storage *storage,
                                     quern__prefab_override *overrides)
{
    const quern__operation *operation = it->operation;
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        overrides[i] = operation->variant->overrides[i];
        overrides[i].values = it->first_item + operation->operands[i].offset_bytes;
        overrides[i].stride_bytes = operation->item_bytes;
    }
    return (quern__instances){.storage = storage,
                              .prefab = prefab_of(it),
                              .plan = it->plan,
                              .overrides = overrides,
                              .override_count = operation->operand_count,
                              .count = it->count};
}

quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage)
{
    const quern__entities *entities = &storage->entities;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t used_count = (uint32_t)resolved->created_count, name_count = 0;
    quern_result result = QUERN_OK;
    if (entities->absent_count == 0 && entities->free_count < used_count) used_count = entities->free_count;
    quern__entities_peek(entities, used_count, resolved->created.items);
    for (uint32_t i = 0; i < resolved->spawned.count && result == QUERN_OK; i++) {
        const quern__spawned *it = &resolved->spawned.items[i];
        if (it->plan == NULL) continue;
        const quern__instances instances = instances_of(it, storage, overrides);
        const uint32_t first = it->first_created;
        const quern__new_slots slots = {.handles = resolved->created.items + first,
                                        .handle_count = first < used_count ? used_count - first : 0,
                                        .first = entities->slot_count +
                                                 (first > used_count ? first - used_count : 0)};
        result = quern__instances_reserve_links(&instances, &slots, &name_count);
    }
    return result;
}

void quern__spawned_put(const quern__resolved *resolved, quern__storage *storage)
{
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < resolved->spawned.count; i++) {
        const quern__spawned *it = &resolved->spawned.items[i];
        const quern_entity *handles = resolved->created.items + it->first_created;
        if (it->plan != NULL) {
            const quern__instances instances = instances_of(it, storage, overrides);
            quern__instances_put(&instances, 0, it->count, handles);
            continue;
        }
        for (uint32_t k = 0; k < it->count * prefab_of(it)->members.count; k++)
            resolved->destroyed.items[it->first_destroyed + k] = quern_entity_index(handles[k]);
    }
}
