/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Calls that destroy prefabs and find their members. */

#include "core/prefabs/prefab_internal.h"
#include "core/world/world_internal.h"

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
