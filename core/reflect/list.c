/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that list components, resources, events, relations and entities. */

#include "core/base/handle.h"
#include "core/events/event_internal.h"
#include "core/world/world_internal.h"

#include <quern/reflect.h>

static quern_type_info info_of(const quern__type *type)
{
    quern_type_info info = {.name = type->name,
                            .type_name = type->type_name,
                            .size_bytes = type->size_bytes,
                            .alignment_bytes = type->alignment_bytes,
                            .fields = type->fields,
                            .field_count = type->field_count,
                            .hooks = type->hooks,
                            .default_value = type->default_value};
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        const bool is_set = (type->flags & flag->bit) != 0;
        memcpy((char *)&info + flag->info_offset_bytes, &is_set, sizeof is_set);
    }
    return info;
}

/* Returns whether a list of `count` items has an item of this index. If not, sets the error message. what: the items,
 * for the message. */
static bool has_index(const quern_world *world, uint32_t count, uint32_t index, const char *what,
                      const char *function)
{
    if (world == NULL)
        quern__fail_null(function, "world");
    else if (index >= count)
        quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: index %u is out of range: the world has %u %s",
                    function, index, count, what);
    return index < count;
}

static quern_result check_arguments(const quern_world *world, const void *out_info, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    return out_info != NULL ? QUERN_OK : quern__fail_null(function, "out_info");
}

/* -------------------------------------------------------------------------------------- components */

uint32_t quern_component_count(const quern_world *world)
{
    if (world != NULL) return world->storage.components.list.count;
    quern__fail_null("quern_component_count", "world");
    return 0;
}

quern_component quern_component_at(const quern_world *world, uint32_t index)
{
    const uint32_t count = world != NULL ? world->storage.components.list.count : 0;
    if (!has_index(world, count, index, "components", "quern_component_at")) return (quern_component){0};
    return quern__component_handle(&world->storage.components, index);
}

quern_result quern_component_get_info(const quern_world *world, quern_component component,
                                      quern_type_info *out_info)
{
    static const char function[] = "quern_component_get_info";
    quern_result result = check_arguments(world, out_info, function);
    if (result == QUERN_OK)
        result = quern__in_call(quern__components_check(&world->storage.components, component), function);
    if (result != QUERN_OK) return result;
    const quern__component *known = world->storage.components.list.items[quern__component_index(component)];
    *out_info = info_of(&known->type);
    out_info->required = known->listed_required.items;
    out_info->required_count = known->listed_required.count;
    out_info->is_managed = known->is_managed;
    out_info->is_relation = known->managed.relation != NULL && known->managed.level == 0;
    out_info->is_hidden |= known->managed.is_hidden;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- resources */

uint32_t quern_resource_count(const quern_world *world)
{
    if (world != NULL) return world->resources.list.count;
    quern__fail_null("quern_resource_count", "world");
    return 0;
}

quern_resource quern_resource_at(const quern_world *world, uint32_t index)
{
    const uint32_t count = world != NULL ? world->resources.list.count : 0;
    if (!has_index(world, count, index, "resources", "quern_resource_at")) return (quern_resource){0};
    return (quern_resource){.bits = quern__handle_bits(world->resources.world_tag, index)};
}

quern_result quern_resource_get_info(const quern_world *world, quern_resource resource,
                                     quern_type_info *out_info)
{
    static const char function[] = "quern_resource_get_info";
    quern_result result = check_arguments(world, out_info, function);
    if (result == QUERN_OK)
        result = quern__in_call(quern__resources_check(&world->resources, resource), function);
    if (result != QUERN_OK) return result;
    *out_info = info_of(&world->resources.list.items[quern__handle_index(resource.bits)].type);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ events */

uint32_t quern_event_count(const quern_world *world)
{
    if (world != NULL) return world->events != NULL ? world->events->channels.count : 0;
    quern__fail_null("quern_event_count", "world");
    return 0;
}

quern_event quern_event_at(const quern_world *world, uint32_t index)
{
    const uint32_t count = world != NULL ? quern_event_count(world) : 0;
    if (!has_index(world, count, index, "events", "quern_event_at")) return (quern_event){0};
    return (quern_event){.bits = quern__handle_bits(world->resources.world_tag, index)};
}

quern_result quern_event_get_info(const quern_world *world, quern_event event, quern_type_info *out_info)
{
    static const char function[] = "quern_event_get_info";
    quern__channel *channel;
    quern_result result = check_arguments(world, out_info, function);
    if (result == QUERN_OK) result = quern__in_call(quern__events_check(world, event, &channel), function);
    if (result != QUERN_OK) return result;
    *out_info = info_of(&channel->type);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- relations */

uint32_t quern_relation_count(const quern_world *world)
{
    if (world != NULL) return world->storage.relations->list.count;
    quern__fail_null("quern_relation_count", "world");
    return 0;
}

quern_relation quern_relation_at(const quern_world *world, uint32_t index)
{
    const uint32_t count = world != NULL ? world->storage.relations->list.count : 0;
    if (!has_index(world, count, index, "relations", "quern_relation_at")) return (quern_relation){0};
    return quern__relation_handle(&world->storage, world->storage.relations->list.items[index]);
}

quern_result quern_relation_get_def(const quern_world *world, quern_relation relation,
                                    quern_relation_def *out_def)
{
    static const char function[] = "quern_relation_get_def";
    quern__relation *known;
    if (world == NULL) return quern__fail_null(function, "world");
    if (out_def == NULL) return quern__fail_null(function, "out_def");
    const quern_result result = quern__relation_check(&world->storage, relation, &known);
    if (result != QUERN_OK) return quern__in_call(result, function);
    *out_def = (quern_relation_def){.name = quern__relation_name(&world->storage, known),
                                    .on_target_destroyed = known->policy,
                                    .levels = known->has_levels,
                                    .ordered = known->is_ordered,
                                    .many = known->is_many};
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- entities */

static uint32_t list_page(const quern__entities *entities, uint32_t page, quern_entity *out_entities,
                          uint32_t count, uint32_t capacity)
{
    const uint32_t first = page * QUERN__PAGE_RECORDS, slots = quern__entities_page_slots(entities, page);
    if (quern__entities_is_absent(entities, page)) return count;
    for (uint32_t i = 0; i < slots; i++) {
        const quern__record *record = quern__entities_record(entities, first + i);
        if (record->location == 0) continue;
        if (count < capacity)
            out_entities[count] = (quern_entity){(uint64_t)record->handle_high << 32 | (first + i)};
        count++;
    }
    return count;
}

uint32_t quern_world_list_entities(const quern_world *world, quern_entity *out_entities, uint32_t capacity)
{
    static const char function[] = "quern_world_list_entities";
    if (world == NULL || (out_entities == NULL && capacity > 0)) {
        quern__fail_null(function, world == NULL ? "world" : "out_entities");
        return 0;
    }
    uint32_t count = 0;
    for (uint32_t page = 0; page < world->storage.entities.pages.count; page++)
        count = list_page(&world->storage.entities, page, out_entities, count, capacity);
    return count;
}

/* Limit of the slots that one call visits, per entity of its capacity. */
enum { VISITS_PER_ENTITY = 64 };

static uint32_t list_from(const quern__entities *entities, uint32_t *cursor, quern_entity *out_entities,
                          uint32_t capacity)
{
    uint64_t visits = (uint64_t)capacity * VISITS_PER_ENTITY;
    uint32_t slot = *cursor, count = 0;
    for (; slot < entities->slot_count && count < capacity && visits > 0; visits--) {
        if (quern__entities_is_absent(entities, slot >> QUERN__PAGE_RECORDS_LOG2)) {
            slot = (slot | (QUERN__PAGE_RECORDS - 1)) + 1;
            continue;
        }
        const quern__record *record = quern__entities_record(entities, slot);
        if (record->location != 0)
            out_entities[count++] = (quern_entity){(uint64_t)record->handle_high << 32 | slot};
        slot++;
    }
    *cursor = slot < entities->slot_count ? slot : QUERN_LIST_END;
    return count;
}

uint32_t quern_world_list_entities_from(const quern_world *world, uint32_t *cursor,
                                        quern_entity *out_entities, uint32_t capacity)
{
    static const char function[] = "quern_world_list_entities_from";
    if (!quern__check_page(world, cursor, out_entities, "out_entities", capacity, function)) return 0;
    return list_from(&world->storage.entities, cursor, out_entities, capacity);
}

static uint32_t list_components(const quern_world *world, quern_entity entity,
                                quern_component *out_components, uint32_t capacity, const char *function)
{
    if (world == NULL || (out_components == NULL && capacity > 0)) {
        quern__fail_null(function, world == NULL ? "world" : "out_components");
        return 0;
    }
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    if (record == NULL) {
        quern__in_call(quern__entities_check(&world->storage.entities, entity), function);
        return 0;
    }
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    for (uint32_t i = 0; i < archetype->component_count && i < capacity; i++)
        out_components[i] =
            quern__component_handle(&world->storage.components, archetype->component_indices[i]);
    return archetype->component_count;
}

uint32_t quern_entity_component_count(const quern_world *world, quern_entity entity)
{
    return list_components(world, entity, NULL, 0, "quern_entity_component_count");
}

uint32_t quern_entity_list_components(const quern_world *world, quern_entity entity,
                                      quern_component *out_components, uint32_t capacity)
{
    return list_components(world, entity, out_components, capacity, "quern_entity_list_components");
}
