/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Spawns prefabs immediately. The call first prepares everything that may fail: the plan, rows, slots and pages of
 * links. It then allocates handles and puts the instances into the world, block by block (prefab_instances.h). */

#include "core/calls/calls_internal.h"
#include "core/prefabs/prefab_instances.h"
#include "core/query/query_internal.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/prefab.h>

/* Maximum number of handles for which memory is retained between calls. */
enum { RETAINED_HANDLES = 4096 };

/* State of one call. */
typedef struct spawn_call {
    quern_world *world;
    quern__prefab *prefab;
    const quern_spawn_def *def; /* or NULL */
    quern__instances instances;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    quern_entity *handles;    /* handles of the current block of instances, or of all instances */
    uint32_t handle_count;    /* capacity of handles */
    uint32_t fill_term_count; /* number of components of the fill */
} spawn_call;

/* ---------------------------------------------------------------------------------------------- room */

static quern_result reserve_rows(const quern__instances *it)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->prefab->groups.count && result == QUERN_OK; i++)
        result = quern__rows_reserve(it->storage, it->plan->archetypes[i],
                                     it->count * it->prefab->groups.items[i].width);
    return result;
}

static void unreserve(const quern__instances *it)
{
    for (uint32_t i = 0; i < it->prefab->groups.count; i++)
        quern__rows_unreserve(it->storage, it->plan->archetypes[i]);
    quern__entities_trim(&it->storage->entities, &it->storage->allocator);
}

/* Returns for how many members, from the first on, reserve_links needs a list of slots: for those that
 * reuse free slots, or for all if pages are absent. The other members get consecutive slots that were
 * never used. */
static uint32_t count_used_slots(const spawn_call *it)
{
    const quern__entities *entities = &it->instances.storage->entities;
    const uint32_t count = it->instances.count * it->prefab->members.count;
    return entities->absent_count == 0 && entities->free_count < count ? entities->free_count : count;
}

/* Reserves handles for a block of instances, or for all instances if a fill needs them at the end. */
static quern_result reserve_handles(spawn_call *it, uint32_t used_count)
{
    quern__storage *storage = it->instances.storage;
    const uint32_t member_count = it->prefab->members.count;
    const bool is_filled = it->def != NULL && it->def->fill != NULL;
    const uint32_t block = is_filled ? it->instances.count : quern__instances_per_block(it->prefab);
    const uint32_t most = it->instances.count < block ? it->instances.count : block;
    it->handle_count = most * member_count < used_count ? used_count : most * member_count;
    if (!quern__array_reserve(&storage->allocator, &storage->prefabs->handles, it->handle_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the handles of %u entities",
                           it->handle_count);
    it->handles = storage->prefabs->handles.items;
    return QUERN_OK;
}

/* Releases the memory of a large call. */
static void trim_handles(const spawn_call *it)
{
    quern__storage *storage = it->instances.storage;
    if (storage->prefabs->handles.capacity <= RETAINED_HANDLES) return;
    quern__array_release(&storage->allocator, &storage->prefabs->handles);
    storage->prefabs->handles.items = NULL;
    storage->prefabs->handles.capacity = 0;
}

static quern_result reserve_links(const spawn_call *it, uint32_t used_count)
{
    const quern__entities *entities = &it->instances.storage->entities;
    const quern__new_slots slots = {
        .handles = it->handles, .handle_count = used_count, .first = entities->slot_count};
    uint32_t name_count = 0;
    if (used_count > 0) quern__entities_peek(entities, used_count, it->handles);
    return quern__instances_reserve_links(&it->instances, &slots, &name_count);
}

/* Reserves all memory. On failure nothing stays reserved except empty archetypes, pages of links and new entity
 * records. */
static quern_result reserve(spawn_call *it)
{
    quern__storage *storage = it->instances.storage;
    const bool has_links = it->instances.parent_relation != NULL || it->prefab->links.count > 0;
    const uint32_t count = it->instances.count * it->prefab->members.count;
    const uint32_t used_count = has_links ? count_used_slots(it) : 0;
    quern_result result = reserve_handles(it, used_count);
    if (result == QUERN_OK)
        result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    if (result == QUERN_OK) result = reserve_rows(&it->instances);
    if (result == QUERN_OK && has_links) result = reserve_links(it, used_count);
    if (QUERN__UNLIKELY(result != QUERN_OK)) unreserve(&it->instances);
    return result;
}

/* --------------------------------------------------------------------------------------------- spawn */

static void output_handles(const spawn_call *it, uint32_t first, uint32_t count,
                           const quern_entity *handles, quern_entity *out_roots, quern_entity *out_members)
{
    const uint32_t member_count = it->prefab->members.count;
    for (uint32_t i = 0; out_roots != NULL && i < count; i++)
        out_roots[first + i] = handles[(size_t)i * member_count];
    if (out_members != NULL)
        memcpy(out_members + (size_t)first * member_count, handles,
               (size_t)count * member_count * sizeof *handles);
}

/* Spawns all instances, in blocks that the reserved handles allow. */
static void spawn_all(const spawn_call *it, quern_entity *out_roots, quern_entity *out_members)
{
    const uint32_t member_count = it->prefab->members.count, all = it->instances.count;
    const uint32_t most = it->handle_count / member_count;
    for (uint32_t first = 0, count; first < all; first += count) {
        count = all - first < most ? all - first : most;
        quern__slots_allocate(it->instances.storage, count * member_count, it->handles);
        quern__instances_put(&it->instances, first, count, it->handles);
        output_handles(it, first, count, it->handles, out_roots, out_members);
    }
}

/* ---------------------------------------------------------------------------------------------- fill */

static bool is_end_of_components(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

/* Checks the member and the components of the fill. */
static quern_result check_fill(spawn_call *it)
{
    const quern_spawn_def *def = it->def;
    quern_result result =
        quern__list_count(def->fill_components, QUERN_MAX_SPAWN_OVERRIDES, is_end_of_components,
                          "fill component", NULL, &it->fill_term_count);
    if (result == QUERN_OK && def->fill == NULL && it->fill_term_count > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "fill components are listed, but fill is NULL; set both or none");
    for (uint32_t i = 0; i < it->fill_term_count && result == QUERN_OK; i++) {
        uint32_t column;
        result = quern__prefab_find_column(it->instances.storage, it->prefab, def->fill_member,
                                           def->fill_components[i], &column);
        if (result != QUERN_OK) quern__message_add_element(result, "fill component", i);
    }
    if (result == QUERN_OK && def->fill_member >= it->prefab->members.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "there is no member %u to fill; the prefab has %u members", def->fill_member,
                           it->prefab->members.count);
    return result;
}

static uintptr_t location_of(const spawn_call *it, uint32_t instance)
{
    const quern_entity entity =
        it->handles[(size_t)instance * it->prefab->members.count + it->def->fill_member];
    return quern__entities_record(&it->instances.storage->entities, quern_entity_index(entity))->location;
}

/* Calls the fill for instances with consecutive rows of the member, from `first` on. */
static void fill_range(const spawn_call *it, quern_view *view, uintptr_t first)
{
    quern__chunk *chunk = quern__chunk_of(first);
    view->first_row = quern__location_row(first);
    view->entities = quern__archetype_entities(chunk->archetype, chunk) + view->first_row;
    view->chunk = (char *)chunk;
    quern__world_set_locked(it->world, true);
    it->def->fill(view->context, view);
    quern__world_set_locked(it->world, false);
}

static void call_fill(const spawn_call *it)
{
    const quern_spawn_def *def = it->def;
    const quern__archetype *archetype =
        it->instances.plan->archetypes[it->prefab->members.items[def->fill_member].group];
    quern_view_column columns[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < it->fill_term_count; i++) {
        const quern__column_position position =
            archetype->column_positions[quern__component_index(def->fill_components[i])];
        columns[i] = (quern_view_column){.offset_bytes = position.offset_bytes,
                                         .size_bytes = position.size_bytes,
                                         .access = QUERN_ACCESS_WRITE,
                                         .present = true,
                                         .is_checked = QUERN_CHECKS};
    }
    quern__accessor accessor = {.name = NULL};
    quern__plain_context context = {
        .scope = {.accessor = &accessor, .storage = &it->world->storage, .caller = QUERN__CALLER_FILL},
        .world = it->world,
        .user_data = def->user_data,
        .thread = quern__this_thread()};
    quern_view view = {
        .context = (quern_context *)&context, .term_count = it->fill_term_count, .columns = columns};
    for (; view.fill_index < it->instances.count; view.fill_index += view.count) {
        const uintptr_t first = location_of(it, view.fill_index);
        view.count = 1;
        while (view.fill_index + view.count < it->instances.count &&
               location_of(it, view.fill_index + view.count) == first + view.count)
            view.count++;
        fill_range(it, &view, first);
        quern__scope_reset(&context.scope);
    }
}

/* ------------------------------------------------------------------------------------------ the calls */

/* Checks the parent of the roots, and registers the hierarchy if needed. */
static quern_result find_parent(quern__instances *it, quern_entity parent)
{
    quern__relations *relations = it->storage->relations;
    quern_result result = quern__entities_check(&it->storage->entities, parent);
    if (result == QUERN_OK && relations->parent == NULL)
        result = quern__relation_register(it->storage, &quern__parent_def, &relations->parent);
    it->parent = parent;
    it->parent_relation = relations->parent;
    return result;
}

static quern_result check_def(spawn_call *it)
{
    quern__instances *instances = &it->instances;
    quern_result result = quern__prefab_resolve_overrides(instances->storage, it->prefab, it->def,
                                                          it->overrides, &instances->override_count);
    instances->overrides = it->overrides;
    for (uint32_t i = 0; i < instances->override_count && result == QUERN_OK; i++) {
        const quern_spawn_override *given = &it->def->overrides[i];
        result = quern__world_check_provisional(it->world, &given->component, &given->column, 1,
                                                instances->count, "quern_commands_spawn");
        if (result != QUERN_OK) quern__message_add_element(result, "override", i);
    }
    if (result == QUERN_OK) result = check_fill(it);
    if (result == QUERN_OK && it->def->parent.bits != 0) result = find_parent(instances, it->def->parent);
    return result;
}

/* Finds the prefab and the plan, and checks the definition. */
static quern_result prepare(spawn_call *it, quern_prefab handle)
{
    quern__instances *instances = &it->instances;
    quern__storage *storage = instances->storage;
    it->prefab = quern__prefabs_find(storage, handle);
    instances->prefab = it->prefab;
    if (it->prefab == NULL) return quern__prefabs_fail(storage, handle);
    if (it->def != NULL) {
        const quern_result result = check_def(it);
        if (result != QUERN_OK) return result;
    }
    if ((uint64_t)instances->count * it->prefab->members.count > QUERN_MAX_ENTITIES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "%u instances of %u members; a world has at most %u entities "
                           "(QUERN_MAX_ENTITIES)",
                           instances->count, it->prefab->members.count, QUERN_MAX_ENTITIES);
    const uint32_t parent_slot =
        instances->parent_relation != NULL ? quern_entity_index(instances->parent) : QUERN__SLOT_NONE;
    return quern__prefab_plan_find(storage, it->prefab, parent_slot, &instances->plan);
}

static quern_result spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                               const quern_spawn_def *def, quern_entity *out_roots,
                               quern_entity *out_members)
{
    spawn_call it;
    it.world = world;
    it.def = def;
    it.instances.storage = &world->storage;
    it.instances.parent_relation = NULL;
    it.instances.override_count = 0;
    it.instances.count = count;
    quern_result result = prepare(&it, prefab);
    if (result != QUERN_OK || count == 0) return result;
    result = reserve(&it);
    if (result != QUERN_OK) return result;
    spawn_all(&it, out_roots, out_members);
    if (def != NULL && def->fill != NULL) call_fill(&it);
    trim_handles(&it);
    return QUERN_OK;
}

static quern_result check_and_spawn(quern_world *world, quern_prefab prefab, uint32_t count,
                                    const quern_spawn_def *def, quern_entity *out_roots,
                                    quern_entity *out_members, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(spawn_many(world, prefab, count, def, out_roots, out_members), function);
}

quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                     const quern_spawn_def *def, quern_entity *out_roots,
                                     quern_entity *out_members)
{
    if (!quern__world_enter(world, "quern_prefab_spawn_many")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, check_and_spawn(world, prefab, count, def, out_roots, out_members,
                                                     "quern_prefab_spawn_many"));
}

quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    if (!quern__world_enter(world, "quern_prefab_spawn")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world,
                              check_and_spawn(world, prefab, 1, def, out_root, NULL, "quern_prefab_spawn"));
}
