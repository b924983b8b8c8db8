/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of world.h that create one entity. */

#include "core/storage/change.h"
#include "core/world/fill.h"
#include "core/world/world.h"

/* ----------------------------------------------------------------------------------------- create */

/* ------------------------------------------------------------------------------------------ the cache */

/* The relation whose component stands in the list, and where; NULL where there is none. False where there
 * are several. */
static bool find_relation(const quern_world *world, const quern_component *components, uint32_t count,
                          quern__relation **out_relation, uint32_t *out_position)
{
    *out_relation = NULL;
    *out_position = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation =
            quern__relation_of(&world->storage, (quern_relation){components[i].bits});
        if (relation == NULL) continue;
        if (*out_relation != NULL) return false;
        *out_relation = relation;
        *out_position = i;
    }
    return true;
}

/* False for a list that has no cache. Levels are noted when an entity is created there. */
static bool write_create_cache(quern_world *world, quern__archetype *archetype,
                               const quern_component *components, uint32_t count)
{
    quern__create_cache *cache = &world->create_cache;
    cache->archetype = NULL;
    if (!find_relation(world, components, count, &cache->relation, &cache->relation_position)) return false;
    cache->archetype = archetype;
    cache->count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = quern__component_index(components[i]);
        cache->components[i] = components[i];
        cache->places[i] = archetype->places[index];
        cache->types[i] = quern__components_type(&world->storage.components, index);
    }
    for (uint32_t i = 0; i < QUERN__LEVEL_COUNT; i++)
        cache->levels[i].archetype = NULL;
    return true;
}

/* The cache, if it was filled for this list. */
static inline quern__create_cache *find_create_cache(quern_world *world, const quern_component *components,
                                                     uint32_t count)
{
    quern__create_cache *cache = &world->create_cache;
    bool is_known = cache->archetype != NULL && cache->count == count;
    for (uint32_t i = 0; is_known && i < count; i++)
        is_known = cache->components[i].bits == components[i].bits;
    return is_known ? cache : NULL;
}

/* Fills the cache for a list. NULL for one that can have none: it is too long, or has several relations;
 * *out_result says when it fails. */
static quern__create_cache *fill_create_cache(quern_world *world, const quern_component *components,
                                              const void *const *values, uint32_t count,
                                              quern_result *out_result)
{
    *out_result = QUERN_OK;
    if (count > QUERN__CREATE_CACHE_COMPONENTS) return NULL;
    quern__archetype *archetype;
    *out_result = quern__world_archetype_related(world, components, values, count, &archetype);
    if (*out_result != QUERN_OK) return NULL;
    return write_create_cache(world, archetype, components, count) ? &world->create_cache : NULL;
}

/* Where the row needs another chunk, or somebody listens. */
static QUERN__SLOW_PATH quern_result create_raw_slowly(quern__storage *storage, quern__archetype *archetype,
                                                       quern_entity *out_entity, uintptr_t *out_location)
{
    quern_result result = quern__rows_reserve_new(storage, archetype, 1);
    if (result != QUERN_OK) return result;
    *out_entity = quern__row_arrive(storage, archetype, out_location);
    return QUERN_OK;
}

/* A new entity in the archetype, its values raw memory. */
static inline quern_result create_raw(quern__storage *storage, quern__archetype *archetype,
                                      quern_entity *out_entity, uintptr_t *out_location)
{
    quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, 1);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    quern__row row;
    if (QUERN__UNLIKELY(archetype->is_watched || !quern__row_append(archetype, &row)))
        return create_raw_slowly(storage, archetype, out_entity, out_location);
    *out_entity = quern__row_arrive_new(storage, archetype, row);
    *out_location = quern__row_location(row);
    return QUERN_OK;
}

QUERN__ALWAYS_INLINE void fill_by_cache(const quern__create_cache *cache, const quern__place *places,
                                        const void *const *values, uintptr_t location)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        const quern__place place = places[i];
        if (place.offset_bytes != 0)
            quern__fill_value(cache->types[i], quern__place_value(place, location),
                              values ? values[i] : NULL);
    }
}

QUERN__ALWAYS_INLINE quern_result create_by_cache(quern_world *world, const quern__create_cache *cache,
                                                  const void *const *values, quern_entity *out_entity)
{
    uintptr_t location = 0;
    quern_result result = create_raw(&world->storage, cache->archetype, out_entity, &location);
    if (result == QUERN_OK) fill_by_cache(cache, cache->places, values, location);
    return result;
}

/* ------------------------------------------------------------------------------------ with a target */

static quern_entity target_of(const void *value)
{
    quern_entity target;
    memcpy(&target, value, sizeof target);
    return target;
}

/* Links for the entity that is created next, and for its target. */
static inline quern_result reserve_links(quern__storage *storage, quern__relation *relation,
                                         quern_entity target)
{
    quern_result result = quern__entities_reserve(&storage->entities, &storage->allocator, 1);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    const uint32_t next = quern__entities_next_slot(&storage->entities);
    if (quern__links_reserve(&relation->links, &storage->allocator, quern_entity_index(target)) &&
        quern__links_reserve(&relation->links, &storage->allocator, next))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of entities");
}

static inline void link_new(quern__relation *relation, quern_entity source, quern_entity target,
                            uint32_t level)
{
    quern__links *links = &relation->links;
    const uint32_t slot = quern_entity_index(source), to = quern_entity_index(target);
    quern__links_at(links, slot)->level = level;
    quern__links_link(links, slot, to,
                      relation->is_ordered ? QUERN__SLOT_NONE : quern__links_at(links, to)->first);
}

/* For lists that have no cache. */
static quern_result create_by_list(quern_world *world, const quern_component *components,
                                   const void *const *values, uint32_t count, quern_entity *out_entity)
{
    quern__storage *storage = &world->storage;
    quern__archetype *archetype;
    uintptr_t location = 0;
    quern_result result = quern__world_archetype_related(world, components, values, count, &archetype);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__relation *relation = quern__relation_of(storage, (quern_relation){components[i].bits});
        if (relation != NULL) result = reserve_links(storage, relation, target_of(values[i]));
    }
    if (result == QUERN_OK) result = create_raw(storage, archetype, out_entity, &location);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation = quern__relation_of(storage, (quern_relation){components[i].bits});
        quern__fill_component(world, archetype, location, components[i], values ? values[i] : NULL);
        if (relation == NULL) continue;
        assert(values != NULL); /* a relation without a value has been refused */
        const quern_entity target = target_of(values[i]);
        link_new(relation, *out_entity, target,
                 quern__relation_child_level(relation, quern_entity_index(target)));
    }
    return QUERN_OK;
}

/* The first entity of the cache's list on this level. */
static QUERN__SLOW_PATH quern_result note_level(quern_world *world, const void *const *values,
                                                quern__create_level *level)
{
    const quern__create_cache *cache = &world->create_cache;
    quern__archetype *archetype;
    quern_result result =
        quern__world_archetype_related(world, cache->components, values, cache->count, &archetype);
    if (result != QUERN_OK) return result;
    level->archetype = archetype;
    for (uint32_t i = 0; i < cache->count; i++)
        level->places[i] = archetype->places[quern__component_index(cache->components[i])];
    return QUERN_OK;
}

/* For a cache with a relation. */
static quern_result create_related(quern_world *world, quern__create_cache *cache,
                                   const void *const *values, quern_entity *out_entity)
{
    quern__storage *storage = &world->storage;
    quern__relation *relation = cache->relation;
    if (values == NULL || values[cache->relation_position] == NULL)
        return quern__world_check_target(world, relation, NULL);
    const quern_entity target = target_of(values[cache->relation_position]);
    if (QUERN__UNLIKELY(quern__entities_find(&storage->entities, target) == NULL))
        return quern__world_check_target(world, relation, &target);
    const uint32_t level = quern__relation_child_level(relation, quern_entity_index(target));
    quern__create_level *place = &cache->levels[level];
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(place->archetype == NULL)) result = note_level(world, values, place);
    if (result == QUERN_OK) result = reserve_links(storage, relation, target);
    uintptr_t location = 0;
    if (result == QUERN_OK) result = create_raw(storage, place->archetype, out_entity, &location);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    fill_by_cache(cache, place->places, values, location);
    link_new(relation, *out_entity, target, level);
    return QUERN_OK;
}

/* For a list with a relation, and for one that the cache was not filled for. Not inlined: it would cost the
 * others their registers. */
static __attribute__((noinline)) quern_result
create_otherwise(quern_world *world, const quern_component *components, const void *const *values,
                 uint32_t count, quern__create_cache *cache, quern_entity *out_entity)
{
    quern_result result = QUERN_OK;
    if (cache == NULL) cache = fill_create_cache(world, components, values, count, &result);
    if (result != QUERN_OK) return result;
    if (cache == NULL) return create_by_list(world, components, values, count, out_entity);
    return cache->relation == NULL ? create_by_cache(world, cache, values, out_entity)
                                   : create_related(world, cache, values, out_entity);
}

/* --------------------------------------------------------------------------------------- the calls */

quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                      const void *const *values, uint32_t count, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_create_with";
    if (world == NULL) return quern__fail_null(function, "world");
    if (count > 0 && components == NULL) return quern__fail_null(function, "components");
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return quern__world_left(world, result);
    quern_entity entity = {0};
    quern__create_cache *cache = find_create_cache(world, components, count);
    if (QUERN__LIKELY(cache != NULL && cache->relation == NULL))
        result = create_by_cache(world, cache, values, &entity);
    else
        result = create_otherwise(world, components, values, count, cache, &entity);
    if (QUERN__UNLIKELY(result != QUERN_OK))
        return quern__world_left(world, quern__name_failure(result, function, NULL));
    if (out_entity != NULL) *out_entity = entity;
    return quern__world_left(world, QUERN_OK);
}

static quern_result create(quern_world *world, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (out_entity == NULL) return quern__fail_null(function, "out_entity");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    uintptr_t location;
    quern__archetype *without_components = world->storage.archetypes.items[0];
    return quern__in_call(create_raw(&world->storage, without_components, out_entity, &location), function);
}

quern_result quern_entity_create(quern_world *world, quern_entity *out_entity)
{
    if (!quern__world_enter(world, "quern_entity_create")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, create(world, out_entity));
}
