/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Calls that destroy prefabs and find their members. */

#include "core/calls/prefab_capture.h"

#include <quern/prefab.h>

static quern_result destroy(quern_world *world, quern_prefab prefab)
{
    if (world == NULL) return quern__fail_null("quern_prefab_destroy", "world");
    quern_result result = quern__world_check_unlocked(world, "quern_prefab_destroy");
    if (result != QUERN_OK) return result;
    if (quern__prefabs_find(&world->storage, prefab) == NULL)
        return quern__in_call(quern__prefabs_fail(&world->storage, prefab), "quern_prefab_destroy");
    quern__prefabs_remove(&world->storage, prefab);
    return QUERN_OK;
}

quern_result quern_prefab_destroy(quern_world *world, quern_prefab prefab)
{
    if (!quern__world_enter(world, "quern_prefab_destroy")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, destroy(world, prefab));
}

uint32_t quern_prefab_member_count(const quern_world *world, quern_prefab prefab)
{
    if (world == NULL) {
        quern__fail_null("quern_prefab_member_count", "world");
        return 0;
    }
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return found->members.count;
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), "quern_prefab_member_count");
    return 0;
}

uint32_t quern_world_list_prefabs(const quern_world *world, quern_prefab *out_prefabs, uint32_t capacity)
{
    if (world == NULL || (out_prefabs == NULL && capacity > 0)) {
        quern__fail_null("quern_world_list_prefabs", world == NULL ? "world" : "out_prefabs");
        return 0;
    }
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
    static const char function[] = "quern_prefab_find_member";
    if (world == NULL || path == NULL) {
        quern__fail_null(function, world == NULL ? "world" : "path");
        return QUERN_NO_MEMBER;
    }
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found == NULL) {
        quern__in_call(quern__prefabs_fail(&world->storage, prefab), function);
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
    static const char function[] = "quern_prefab_is_enabled";
    if (world == NULL) {
        quern__fail_null(function, "world");
        return false;
    }
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return quern__prefab_is_enabled(found, &world->storage);
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), function);
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
    return result == QUERN_OK ? result
                              : quern__message_add_call(result, "quern_prefab_slot_register", NULL);
}

quern_result quern__prefab_check_slot(const quern_world *world, quern_component slot)
{
    const quern_result result = quern__components_check(&world->storage.components, slot);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(slot);
    const quern__type *type = quern__components_type(&world->storage.components, index);
    if (type->size_bytes == sizeof(quern_entity) && type->has_entity_fields &&
        !quern__components_is_managed(&world->storage.components, index))
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
    result = record != NULL ? quern__prefab_check_slot(world, slot) : quern__entities_check(entities, root);
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
    static const char function[] = "quern_prefab_find_slot";
    if (world == NULL) {
        quern__fail_null(function, "world");
        return QUERN_NO_MEMBER;
    }
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    const quern_result result = found != NULL ? quern__prefab_check_slot(world, slot)
                                              : quern__prefabs_fail(&world->storage, prefab);
    if (result == QUERN_OK) return quern__prefab_find_slot(found, quern__component_index(slot));
    quern__in_call(result, function);
    return QUERN_NO_MEMBER;
}
