/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls that use prefabs: they destroy prefabs, find members and parts, and spawn instances immediately. A spawn first
 * prepares everything that may fail: the plan, rows, slots and pages of links. It then allocates handles and puts the
 * instances into the world, block by block (prefab_internal.h). */
#include "core/prefabs/prefab_internal.h"

#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/prefab.h>

quern_result quern_prefab_destroy(quern_world *world, quern_prefab prefab)
{
    QUERN__ENTER_UNLOCKED(world);
    if (quern__prefabs_find(&world->storage, prefab) == NULL)
        return quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    quern__prefabs_remove(&world->storage, prefab);
    return QUERN_OK;
}

uint32_t quern_prefab_member_count(const quern_world *world, quern_prefab prefab)
{
    QUERN__NEED_OR(world, 0);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return found->members.count;
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    return 0;
}

uint32_t quern_world_list_prefabs(const quern_world *world, quern_prefab *out_prefabs, uint32_t capacity)
{
    QUERN__NEED_OR(world, 0);
    QUERN__NEED_LIST_OR(out_prefabs, capacity, 0);
    const quern__prefabs *prefabs = world->storage.prefabs;
    if (prefabs == NULL) return 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < prefabs->slots.count && count < capacity; i++)
        if (prefabs->slots.items[i].prefab != NULL)
            out_prefabs[count++] = quern__prefabs_handle(&world->storage, i);
    return prefabs->count;
}

/* Finds the child of a member by a name of `bytes` bytes. Returns QUERN_NO_MEMBER if there is none. */
static uint32_t find_child(const quern__prefab *prefab, uint32_t member, const char *text, size_t bytes)
{
    uint32_t child = prefab->nodes.items[member].first;
    for (; child != QUERN_NO_MEMBER; child = prefab->nodes.items[child].next) {
        const uint32_t at = prefab->members.items[child].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = prefab->names.items + at;
        if (strlen(name) == bytes && memcmp(name, text, bytes) == 0) break;
    }
    return child;
}

uint32_t quern_prefab_find_member(const quern_world *world, quern_prefab prefab, const char *path)
{
    QUERN__NEED_OR(world, QUERN_NO_MEMBER);
    QUERN__NEED_OR(path, QUERN_NO_MEMBER);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found == NULL) {
        quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
        return QUERN_NO_MEMBER;
    }
    uint32_t member = 0;
    while (member != QUERN_NO_MEMBER && *path != '\0') {
        const size_t bytes = strcspn(path, "/");
        member = find_child(found, member, path, bytes);
        path += bytes;
        if (path[0] == '/' && path[1] != '\0')
            path++;
        else if (path[0] == '/')
            return QUERN_NO_MEMBER; /* no member has an empty name */
    }
    return member;
}

bool quern_prefab_is_enabled(const quern_world *world, quern_prefab prefab)
{
    QUERN__NEED_OR(world, false);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return quern__prefab_is_enabled(found, &world->storage);
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    return false;
}

/* --------------------------------------------------------------------------------------------- slots */

quern_result quern_prefab_slot_register(quern_world *world, const char *name, quern_component *out_slot)
{
    const quern_component_def def = {.name = name,
                                     .size_bytes = sizeof(quern_entity),
                                     .alignment_bytes = _Alignof(quern_entity),
                                     .fields = {{.name = "part", .type = QUERN_FIELD_ENTITY}},
                                     .is_hidden = true};
    const quern_result result = quern_component_register(world, &def, out_slot);
    return result == QUERN_OK ? result : quern__message_add_call(result, __func__, NULL);
}

quern_result quern__prefab_check_slot(const quern__storage *storage, quern_component slot)
{
    const quern_result result = quern__components_check(&storage->components, slot);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(slot);
    const quern__type *type = quern__components_type(&storage->components, index);
    if (type->size_bytes == sizeof(quern_entity) && type->has_entity_fields &&
        !quern__components_is_managed(&storage->components, index))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%s' is no prefab slot: register one by quern_prefab_slot_register", type->name);
}

static quern_result find_part(const quern_world *world, quern_entity root, quern_component slot,
                              quern_entity *out_part)
{
    if (world == NULL) return quern__fail_null("quern_prefab_part", "world");
    const quern__entities *entities = &world->storage.entities;
    quern_result result = quern__world_check_unlocked(world, "quern_prefab_part");
    if (result != QUERN_OK) return result;
    const quern__record *record = quern__entities_find(entities, root);
    result = record != NULL ? quern__prefab_check_slot(&world->storage, slot)
                            : quern__entities_check(entities, root);
    if (result != QUERN_OK || record == NULL) return quern__in_call(result, "quern_prefab_part");
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    const quern_entity *part =
        quern__storage_value(archetype, record->location, quern__component_index(slot));
    if (part != NULL && quern__entities_find(entities, *part) != NULL) *out_part = *part;
    return QUERN_OK;
}

quern_entity quern_prefab_part(const quern_world *world, quern_entity root, quern_component slot)
{
    quern_entity part = quern_entity_null();
    (void)find_part(world, root, slot, &part);
    return part;
}

uint32_t quern_prefab_find_slot(const quern_world *world, quern_prefab prefab, quern_component slot)
{
    QUERN__NEED_OR(world, QUERN_NO_MEMBER);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    const quern_result result = found != NULL ? quern__prefab_check_slot(&world->storage, slot)
                                              : quern__prefabs_fail(&world->storage, prefab);
    quern__in_call(result, __func__);
    if (found == NULL || result != QUERN_OK) return QUERN_NO_MEMBER;
    const quern__prefab_member *root = &found->members.items[0];
    const quern__prefab_group *group = &found->groups.items[root->group];
    for (uint32_t i = root->first_field; i < root->first_field + root->field_count; i++) {
        const quern__prefab_field *field = &found->fields.items[i];
        const quern__prefab_column *column = &found->columns.items[group->first_column + field->column];
        if (column->component_index == quern__component_index(slot)) return field->member;
    }
    return QUERN_NO_MEMBER;
}

/* ------------------------------------------------------------------------------------------ spawning */

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

/* Reserves all memory: slots, rows, and the pages of links. Links need a list of slots for the first members, those that
 * reuse free slots, or for all if pages are absent; the other members get consecutive slots that were never used. On
 * failure nothing stays reserved except empty archetypes, pages of links and new entity
 * records. */
static quern_result reserve(spawn_call *it)
{
    quern__storage *storage = it->instances.storage;
    const bool has_links = it->instances.parent_relation != NULL || it->prefab->links.count > 0;
    const uint32_t count = it->instances.count * it->prefab->members.count;
    const quern__entities *entities = &storage->entities;
    const uint32_t used_count = !has_links ? 0
                                : entities->absent_count == 0 && entities->free_count < count
                                    ? entities->free_count
                                    : count;
    quern_result result = reserve_handles(it, used_count);
    if (result == QUERN_OK)
        result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    for (uint32_t i = 0; i < it->prefab->groups.count && result == QUERN_OK; i++)
        result = quern__rows_reserve(storage, it->instances.plan->archetypes[i],
                                     it->instances.count * it->prefab->groups.items[i].width);
    if (result == QUERN_OK && has_links) {
        const quern__new_slots slots = {
            .handles = it->handles, .handle_count = used_count, .first = entities->slot_count};
        uint32_t name_count = 0;
        if (used_count > 0) quern__entities_peek(entities, used_count, it->handles);
        result = quern__instances_reserve_links(&it->instances, &slots, &name_count);
    }
    if (QUERN__LIKELY(result == QUERN_OK)) return QUERN_OK;
    for (uint32_t i = 0; i < it->prefab->groups.count; i++)
        quern__rows_unreserve(storage, it->instances.plan->archetypes[i]);
    quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
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

static void call_fill(const spawn_call *it)
{
    const quern_spawn_def *def = it->def;
    const quern__archetype *archetype =
        it->instances.plan->archetypes[it->prefab->members.items[def->fill_member].group];
    quern_view_column columns[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < it->fill_term_count; i++)
        columns[i] = quern__view_fill_column(archetype, def->fill_components[i]);
    quern__accessor accessor = {.name = NULL};
    quern__plain_context context = {
        .scope = {.accessor = &accessor, .storage = &it->world->storage, .caller = QUERN__CALLER_FILL},
        .world = it->world,
        .user_data = def->user_data,
        .thread = quern__this_thread()};
    quern_view view = {
        .context = (quern_context *)&context, .term_count = it->fill_term_count, .columns = columns};
    /* one call for the instances whose members have consecutive rows of one chunk */
    for (; view.fill_index < it->instances.count; view.fill_index += view.count) {
        const uintptr_t first = location_of(it, view.fill_index);
        const uint32_t left = archetype->shape.row_capacity - quern__location_row(&archetype->shape, first);
        uint32_t count = 1;
        while (count < left && view.fill_index + count < it->instances.count &&
               location_of(it, view.fill_index + count) == first + count)
            count++;
        view.first_row = 0;
        quern__view_set_rows(&view, archetype, first, count);
        quern__world_set_locked(it->world, true);
        def->fill(view.context, &view);
        quern__world_set_locked(it->world, false);
        quern__scope_reset(&context.scope);
    }
}

/* ------------------------------------------------------------------------------------------ the calls */

/* Checks the definition, and registers the hierarchy if the roots have a parent. */
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
    if (result != QUERN_OK || it->def->parent.bits == 0) return result;

    quern__relations *relations = instances->storage->relations;
    result = quern__entities_check(&instances->storage->entities, it->def->parent);
    if (result == QUERN_OK && relations->parent == NULL)
        result = quern__relation_register(instances->storage, &quern__parent_def, &relations->parent);
    instances->parent = it->def->parent;
    instances->parent_relation = relations->parent;
    return result;
}

/* Finds the plan, and checks the definition. */
static quern_result prepare(spawn_call *it)
{
    quern__instances *instances = &it->instances;
    quern__storage *storage = instances->storage;
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
    const quern_result result = quern__prefab_check_outside(storage, it->prefab);
    if (result != QUERN_OK) return result;
    return quern__prefab_plan_find(storage, it->prefab, parent_slot, false, &instances->plan);
}

static quern_result put_many(quern_world *world, quern__prefab *prefab, uint32_t count,
                             const quern_spawn_def *def, quern_entity *out_roots, quern_entity *out_members)
{
    spawn_call it;
    it.world = world;
    it.prefab = prefab;
    it.instances.prefab = prefab;
    it.def = def;
    it.instances.storage = &world->storage;
    it.instances.parent_relation = NULL;
    it.instances.override_count = 0;
    it.instances.count = count;
    it.instances.is_linked = false;
    quern_result result = prepare(&it);
    if (result != QUERN_OK || count == 0) return result;
    result = reserve(&it);
    if (result != QUERN_OK) return result;
    /* in blocks that the reserved handles allow */
    const uint32_t member_count = it.prefab->members.count, most = it.handle_count / member_count;
    for (uint32_t first = 0, part; first < count; first += part) {
        part = count - first < most ? count - first : most;
        quern__slots_allocate(&world->storage, part * member_count, it.handles);
        quern__instances_put(&it.instances, first, part, it.handles);
        for (uint32_t i = 0; out_roots != NULL && i < part; i++)
            out_roots[first + i] = it.handles[(size_t)i * member_count];
        if (out_members != NULL)
            memcpy(out_members + (size_t)first * member_count, it.handles,
                   (size_t)part * member_count * sizeof *it.handles);
    }
    if (def != NULL && def->fill != NULL) call_fill(&it);
    quern__rows_gather_if_large(&world->storage);
    quern__prefabs *prefabs = world->storage.prefabs;
    if (prefabs->handles.capacity > RETAINED_HANDLES) {
        quern__array_release(&world->storage.allocator, &prefabs->handles);
        prefabs->handles.items = NULL;
        prefabs->handles.capacity = 0;
    }
    quern__hooks_after(&world->storage);
    return QUERN_OK;
}

static quern_result spawn_many(quern_world *world, quern_prefab handle, uint32_t count,
                               const quern_spawn_def *def, quern_entity *out_roots,
                               quern_entity *out_members)
{
    quern__prefab *prefab = quern__prefabs_find(&world->storage, handle);
    return QUERN__LIKELY(prefab != NULL) ? put_many(world, prefab, count, def, out_roots, out_members)
                                         : quern__prefabs_fail(&world->storage, handle);
}

quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                     const quern_spawn_def *def, quern_entity *out_roots,
                                     quern_entity *out_members)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(spawn_many(world, prefab, count, def, out_roots, out_members), __func__);
}

quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(spawn_many(world, prefab, 1, def, out_root, NULL), __func__);
}

/* ---------------------------------------------------------------------------------------------- clones */

/* Copies a leaf of an archetype below a parent, which may be null. */
static quern_result copy_leaf(quern_world *world, quern_entity entity, quern__archetype *archetype,
                              quern_entity parent, quern_entity *out_copy)
{
    quern__storage *storage = &world->storage;
    quern__entities *entities = &storage->entities;
    const bool has_parent = parent.bits != 0;
    uint32_t name_count = 0;
    quern_entity copy;
    quern__archetype *target;
    quern__leaf_plan plan;
    quern_result result = quern__leaf_find_target(
        storage, archetype, has_parent ? quern_entity_index(parent) : QUERN__SLOT_NONE, &target);
    if (result != QUERN_OK) return result;
    quern__leaf_plan_init(&plan, target);
    const quern__instances instances = {.storage = storage,
                                        .prefab = &quern__leaf_prefab,
                                        .plan = &plan.plan,
                                        .parent_relation = has_parent ? storage->relations->parent : NULL,
                                        .parent = parent,
                                        .count = 1};
    result = quern__entities_reserve(entities, &storage->allocator, 1);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, target, 1);
    if (result == QUERN_OK && has_parent) {
        quern__entities_peek(entities, 1, &copy);
        const quern__new_slots slots = {.handles = &copy, .handle_count = 1};
        result = quern__instances_reserve_links(&instances, &slots, &name_count);
    }
    if (QUERN__UNLIKELY(result != QUERN_OK)) {
        quern__rows_unreserve(storage, target);
        quern__entities_trim(entities, &storage->allocator);
        return result;
    }
    quern__slots_allocate(storage, 1, &copy);
    quern__instances_put(&instances, 0, 1, &copy);
    quern__leaf_fill(storage, entity, copy);
    if (out_copy != NULL) *out_copy = copy;
    quern__rows_gather_if_large(storage);
    quern__hooks_after(storage);
    return QUERN_OK;
}

/* Whether the definition has nothing but a parent. */
static bool has_only_parent(const quern_spawn_def *def)
{
    for (uint32_t i = 0; i < QUERN_MAX_SPAWN_OVERRIDES; i++)
        if (def->overrides[i].component.bits != 0 || def->overrides[i].member != 0 ||
            def->overrides[i].column != NULL || def->fill_components[i].bits != 0)
            return false;
    return def->fill == NULL && def->fill_member == 0;
}

static quern_result clone_entity(quern_world *world, quern_entity entity, const quern_spawn_def *def,
                                 quern_entity *out_root)
{
    quern__storage *storage = &world->storage;
    quern__archetype *archetype;
    quern__prefab *prefab;
    quern_result result = quern__entities_check(&storage->entities, entity);
    if (result != QUERN_OK) return result;
    const quern_entity beside =
        quern__entity_of_link(storage, quern__parent_slot(storage, quern_entity_index(entity)));
    if ((def == NULL || has_only_parent(def)) && quern__leaf_find(storage, entity, &archetype)) {
        const quern_entity parent = def != NULL ? def->parent : beside;
        if (parent.bits != 0) result = quern__entities_check(&storage->entities, parent);
        if (parent.bits != 0 && result == QUERN_OK && storage->relations->parent == NULL)
            result = quern__relation_register(storage, &quern__parent_def, &storage->relations->parent);
        return result == QUERN_OK ? copy_leaf(world, entity, archetype, parent, out_root) : result;
    }
    result = quern__prefab_capture(storage, entity, &prefab);
    if (result != QUERN_OK) return result;
    const quern_spawn_def below_same = {.parent = beside};
    result = quern__prefabs_ensure(storage)
                 ? put_many(world, prefab, 1, def != NULL ? def : &below_same, out_root, NULL)
                 : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the handles of instances");
    quern__prefab_release(prefab, &storage->allocator);
    return result;
}

quern_result quern_entity_clone(quern_world *world, quern_entity entity, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(clone_entity(world, entity, def, out_root), __func__);
}
