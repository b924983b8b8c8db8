/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Statistics of a world as a whole and per archetype. */

#include "core/events/event_internal.h"
#include "core/prefabs/prefab_internal.h"

static uint32_t row_bytes(const quern__archetype *archetype)
{
    uint32_t bytes = sizeof(quern_entity);
    for (uint32_t i = 0; i < archetype->column_count; i++)
        bytes += archetype->columns[i].size_bytes;
    return bytes;
}

quern_result quern_world_get_stats(const quern_world *world, quern_world_stats *out_stats)
{
    if (world == NULL) return quern__fail_null("quern_world_get_stats", "world");
    if (out_stats == NULL) return quern__fail_null("quern_world_get_stats", "out_stats");
    quern_world_stats stats = {0};
    const quern__storage *storage = &world->storage;
    stats.entity_count = quern__entities_alive_count(&storage->entities);
    stats.retired_count = storage->entities.retired_count;
    stats.archetype_count = storage->archetypes.count;
    stats.component_count = storage->components.list.count;
    stats.chunk_free_count = storage->slabs.free_count;
    stats.name_count = storage->names->count;
    stats.held_bytes = (uint64_t)storage->slabs.slab_count * QUERN__SLAB_BYTES +
                       quern__entities_record_bytes(&storage->entities);
    stats.relation_count = storage->relations->list.count;
    stats.link_bytes = quern__link_pages_held_bytes(&storage->relations->link_pages) +
                       storage->relations->edge_pool.directory_bytes;
    for (uint32_t i = 0; i < storage->relations->list.count; i++)
        stats.edge_count += storage->relations->list.items[i]->edges.count;
    stats.held_bytes += stats.link_bytes + quern__names_held_bytes(storage->names);
    stats.held_bytes += quern__prefabs_held_bytes(storage);
    stats.event_bytes = quern__events_held_bytes(world);
    stats.held_bytes += stats.event_bytes;
    stats.prefab_count = storage->prefabs != NULL ? storage->prefabs->count : 0;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        stats.chunk_count += archetype->chunk_count;
        if (archetype->row_versions != NULL)
            stats.held_bytes += quern__row_versions_bytes(archetype->row_versions);
        stats.used_bytes +=
            (row_bytes(archetype) + sizeof(quern__record)) * quern__archetype_row_count(archetype);
    }
    *out_stats = stats;
    return QUERN_OK;
}

static const quern__archetype *find_archetype(const quern_world *world, uint32_t index,
                                              const char *function)
{
    if (world == NULL) {
        quern__fail_null(function, "world");
        return NULL;
    }
    if (index < world->storage.archetypes.count) return world->storage.archetypes.items[index];
    quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: no archetype %u; the world has %u", function, index,
                world->storage.archetypes.count);
    return NULL;
}

quern_result quern_world_get_archetype_stats(const quern_world *world, uint32_t index,
                                             quern_archetype_stats *out_stats)
{
    const quern__archetype *archetype = find_archetype(world, index, "quern_world_get_archetype_stats");
    if (archetype == NULL) return world ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_ERROR_NULL_ARGUMENT;
    if (out_stats == NULL) return quern__fail_null("quern_world_get_archetype_stats", "out_stats");
    uint64_t rows = quern__archetype_row_count(archetype);
    double held_bytes = (double)archetype->held_count * QUERN__CHUNK_BYTES;
    *out_stats = (quern_archetype_stats){
        .component_count = archetype->component_count,
        .row_bytes = row_bytes(archetype),
        .row_capacity = archetype->row_capacity,
        .chunk_count = archetype->chunk_count,
        .held_count = archetype->held_count,
        .entity_count = rows,
        .occupancy = archetype->held_count ? (double)(rows * row_bytes(archetype)) / held_bytes : 0,
    };
    return QUERN_OK;
}

uint32_t quern_world_list_archetype_components(const quern_world *world, uint32_t index,
                                               quern_component *components, uint32_t capacity)
{
    const quern__archetype *archetype =
        find_archetype(world, index, "quern_world_list_archetype_components");
    if (archetype == NULL) return 0;
    if (capacity > 0 && components == NULL) {
        quern__fail_null("quern_world_list_archetype_components", "components");
        return 0;
    }
    for (uint32_t i = 0; i < archetype->component_count && i < capacity; i++)
        components[i] =
            quern__component_handle(&world->storage.components, archetype->component_indices[i]);
    return archetype->component_count;
}
