/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Redefinition of a component. With another layout, each archetype that has the component is replaced by one with the new
 * layout, as a history does when it restores archetypes: first all of them are created, with room for all rows, and all
 * values are checked. That may fail, and is undone then. Then rows, prefabs and what reactions keep are converted, which
 * cannot fail. */
#include "core/entities/entities_internal.h"

#include "core/prefabs/prefab_internal.h"
#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/record/record.h"

typedef struct replacement {
    quern__archetype *old, *fresh;
} replacement;

typedef struct prefab_values {
    quern__prefab *prefab;
    char *values;
    size_t bytes;
} prefab_values;

typedef struct conversion {
    quern_world *world;
    quern__type_change *change;
    QUERN__ARRAY(replacement) replacements;
    QUERN__ARRAY(quern__archetype *) archetypes; /* all of the world afterwards, in their order */
    QUERN__ARRAY(prefab_values) prefabs;
} conversion;

static quern_result fail_memory(const conversion *it)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "component '%s': no memory to convert its values",
                       it->change->old.name);
}

/* Checks the values of an archetype. */
static quern_result check_rows(const conversion *it, const quern__archetype *archetype)
{
    quern_result result = QUERN_OK;
    const quern__column *column = quern__archetype_find_column(archetype, it->change->component_index);
    for (uint32_t i = 0; i < archetype->chunk_count && column != NULL && result == QUERN_OK; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        result = quern__type_change_check(
            it->change, quern__column_value(column, quern__slot_chunk(slot), 0), slot->row_count);
    }
    return result;
}

/* Returns the number of rows for which an archetype holds chunks on request. */
static uint64_t asked_rows(const quern__archetype *archetype)
{
    return (uint64_t)archetype->asked_count * archetype->shape.row_capacity;
}

/* Creates the archetype with the new layout, with room for all rows. The component has its new type already. */
static quern_result create_archetype(conversion *it, quern__archetype *old)
{
    quern__storage *storage = &it->world->storage;
    if (!quern__array_reserve(&storage->allocator, &it->replacements, it->replacements.count + 1))
        return fail_memory(it);
    replacement *made = &it->replacements.items[it->replacements.count];
    *made = (replacement){.old = old};
    quern_result result = quern__storage_create_archetype(
        storage, old->component_indices, old->component_count, old->layout_index, &made->fresh);
    if (result != QUERN_OK) return result;
    it->replacements.count++;
    const uint64_t asked_count = asked_rows(old), row_count = quern__archetype_row_count(old);
    result = quern__rows_reserve(storage, made->fresh,
                                 (uint32_t)(asked_count > row_count ? asked_count : row_count));
    if (result == QUERN_OK)
        result = quern__reactions_prepare_conversion(storage, old, made->fresh, it->change);
    return result;
}

static quern_result prepare_archetypes(conversion *it)
{
    quern__storage *storage = &it->world->storage;
    const quern__component *component = storage->components.list.items[it->change->component_index];
    quern_result result = QUERN_OK;
    if (!quern__array_reserve(&storage->allocator, &it->archetypes, storage->archetypes.count))
        return fail_memory(it);
    for (uint32_t i = 0; i < component->archetypes.count && result == QUERN_OK; i++) {
        quern__archetype *archetype = storage->archetypes.items[component->archetypes.items[i]];
        result = check_rows(it, archetype);
        if (result == QUERN_OK) result = create_archetype(it, archetype);
    }
    if (result == QUERN_OK && !quern__storage_reserve_archetypes(storage, it->replacements.count))
        result = fail_memory(it);
    return result;
}

static quern_result prepare_prefabs(conversion *it)
{
    const quern__prefabs *prefabs = it->world->storage.prefabs;
    const quern_allocator *allocator = &it->world->storage.allocator;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; prefabs != NULL && i < prefabs->slots.count && result == QUERN_OK; i++) {
        prefab_values made = {.prefab = prefabs->slots.items[i].prefab};
        if (made.prefab == NULL) continue;
        result = quern__prefab_check_conversion(made.prefab, it->change, &made.bytes);
        if (result != QUERN_OK || made.bytes == 0) continue;
        if (!quern__array_reserve(allocator, &it->prefabs, it->prefabs.count + 1)) return fail_memory(it);
        made.values = quern__allocate(allocator, made.bytes, QUERN_MAX_ALIGNMENT_BYTES);
        if (made.values == NULL) return fail_memory(it);
        it->prefabs.items[it->prefabs.count++] = made;
    }
    return result;
}

static void undo(conversion *it)
{
    quern__storage *storage = &it->world->storage;
    const quern_allocator *allocator = &storage->allocator;
    for (uint32_t i = 0; i < it->replacements.count; i++) {
        quern__archetype *fresh = it->replacements.items[i].fresh;
        fresh->reserved_count = 0;
        fresh->is_removed = true; /* so that reactions forget it */
        quern__archetype_release_spare_chunks(fresh, &storage->slabs, allocator);
    }
    quern__reactions_forget_removed(storage);
    for (uint32_t i = 0; i < it->replacements.count; i++) {
        quern__row_listeners_release(it->replacements.items[i].fresh, allocator);
        quern__archetype_release(it->replacements.items[i].fresh, allocator);
    }
    for (uint32_t i = 0; i < it->prefabs.count; i++)
        quern__release(allocator, it->prefabs.items[i].values, it->prefabs.items[i].bytes,
                       QUERN_MAX_ALIGNMENT_BYTES);
}

/* Replaces the archetypes, with their rows. */
static void convert_archetypes(conversion *it)
{
    quern__storage *storage = &it->world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        it->archetypes.items[i] = storage->archetypes.items[i];
    for (uint32_t i = 0; i < it->replacements.count; i++) {
        quern__archetype *old = it->replacements.items[i].old, *fresh = it->replacements.items[i].fresh;
        const uint32_t rows = fresh->shape.row_capacity;
        fresh->identity = old->identity; /* identities ascend in the order of archetypes */
        fresh->empty_since = old->empty_since;
        fresh->asked_count = (uint32_t)((asked_rows(old) + rows - 1) / rows);
        quern__storage_register_archetype(storage, fresh);
        quern__reactions_convert(old, fresh, it->change);
        quern__rows_convert(storage, old, fresh, it->change);
        fresh->reserved_count = 0;
        it->archetypes.items[old->index] = fresh;
        old->is_removed = true;
    }
    quern__world_set_archetypes(it->world, it->archetypes.items, storage->archetypes.count);
}

/* Converts all values of the component. Errors, with nothing changed: see quern_component_redefine. */
static quern_result convert(quern_world *world, quern__redefinition *redefinition, uint32_t *out_frames)
{
    quern__storage *storage = &world->storage;
    const quern_allocator *allocator = &storage->allocator;
    quern__type_change *change = &redefinition->change;
    conversion it = {.world = world, .change = change};
    quern_result result = quern__recorders_check_layout_change(storage, change->component_index);
    if (result == QUERN_OK)
        result = quern__reactions_check_hooks(storage, change->component_index, change->type);
    if (result == QUERN_OK) result = prepare_archetypes(&it);
    if (result == QUERN_OK) result = prepare_prefabs(&it);
    if (result == QUERN_OK && redefinition->only_checks) result = QUERN__CHECKED;
    if (result != QUERN_OK) {
        undo(&it);
    } else {
        *out_frames = quern__redefine_drop_frames(redefinition);
        quern__world_set_locked(world,
                                true); /* migrations and hooks must not call functions of the world */
        convert_archetypes(&it);
        for (uint32_t i = 0; i < it.prefabs.count; i++)
            quern__prefab_convert(it.prefabs.items[i].prefab, allocator, change, it.prefabs.items[i].values,
                                  it.prefabs.items[i].bytes);
        quern__recorders_change_layout(storage, change->component_index);
        if (storage->components.largest_bytes < change->type->size_bytes)
            storage->components.largest_bytes = change->type->size_bytes;
        quern__world_set_locked(world, false);
    }
    quern__array_release(allocator, &it.replacements);
    quern__array_release(allocator, &it.archetypes);
    quern__array_release(allocator, &it.prefabs);
    return result;
}

quern_result quern_component_redefine(quern_world *world, quern_component component,
                                      const quern_component_def *def, const quern_redefine_def *how,
                                      quern_redefine_report *out_report)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    quern__components *components = &world->storage.components;
    quern_result result = quern__redefine_check_frames(world, __func__);
    if (result != QUERN_OK) return result;
    result = quern__components_check(components, component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const uint32_t index = quern__component_index(component);
    quern__redefinition it = {.world = world,
                              .what = "component",
                              .type = &components->list.items[index]->type,
                              .ids = &components->type_ids,
                              .handle_bits = component.bits};
    quern_component_def named = *def;
    result = quern__redefine_check_name(it.type, &named.name, it.what);
    if (result == QUERN_OK)
        result =
            quern__components_redefine(components, &world->storage.allocator, index, &named, &it.fresh);
    result = quern__redefine_begin(&it, result, index, how, out_report);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    uint32_t frame_count = 0;
    const uint32_t edge_owner = components->list.items[index]->edge_owner;
    quern__relation *const relation =
        edge_owner != 0 ? components->list.items[edge_owner - 1]->managed.relation : NULL;
    quern__type element = {.size_bytes = 0};
    if (relation != NULL)
        result = quern__edge_values_redefine(relation, &world->storage.allocator, it.type, it.is_converted,
                                             &element);
    if (result == QUERN_OK && !it.only_checks && quern__entity_hooks_exist(&it.type->entity_hooks) &&
        components->list.items[index]->archetypes.count > 0)
        result = quern__hooks_attach(world, index);
    if (it.is_converted && result == QUERN_OK) result = convert(world, &it, &frame_count);
    result = quern__redefine_end(&it, result, out_report);
    if (result == QUERN_OK && !it.only_checks && element.size_bytes > 0) {
        const quern__type old = relation->element;
        relation->element = element;
        element = old;
    }
    quern__type_release(&element, &world->storage.allocator);
    if (result == QUERN_OK && out_report != NULL) out_report->dropped_frame_count = frame_count;
    return quern__in_call(result, __func__);
}
