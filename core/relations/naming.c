/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Names of entities below their parents, and the calls of name.h. Siblings have different names, as have entities without
 * parent; core/names finds an entity by its parent and its text.
 *
 * In order: checks, setting a name; the public calls: names, entities by path, paths. */
#include "core/relations/relation_internal.h"

#include "core/base/text.h"
#include "core/world/world_internal.h"

#include <quern/name.h>

#include <stdio.h>

/* Returns the length of a name in bytes, but at most QUERN_MAX_ENTITY_NAME_BYTES + 1. */
static uint32_t count_bytes(const char *name)
{
    uint32_t bytes = 0;
    while (name[bytes] != '\0' && bytes <= QUERN_MAX_ENTITY_NAME_BYTES)
        bytes++;
    return bytes;
}

quern_result quern__entity_check_name(const char *name)
{
    const uint32_t bytes = count_bytes(name);
    if (bytes > QUERN_MAX_ENTITY_NAME_BYTES)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the name '%.32s...' has more than %d bytes (QUERN_MAX_ENTITY_NAME_BYTES): use a shorter name",
            name, QUERN_MAX_ENTITY_NAME_BYTES);
    for (uint32_t i = 0; i < bytes;) {
        const uint32_t step = quern__utf8_bytes(name + i);
        if (step == 0)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "the name is not UTF-8: its byte %u (%#x) begins no character", i,
                               (unsigned)(unsigned char)name[i]);
        if (name[i] == '/')
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the name '%s' has a '/', which separates the names of a path: use another character",
                name);
        i += step;
    }
    return QUERN_OK;
}

static quern_result fail_taken(const quern__storage *storage, quern_entity entity, const char *text,
                               uint32_t parent, uint32_t owner)
{
    const quern_entity other = quern__entity_of_slot(storage, owner);
    char siblings[64] = "roots";
    if (parent != QUERN__SLOT_NONE)
        snprintf(siblings, sizeof siblings, "children of entity %u:%u", parent,
                 quern_entity_generation(quern__entity_of_slot(storage, parent)));
    return quern__fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                       "entity %u:%u cannot be named '%s': among the %s, entity %u:%u has this name",
                       quern_entity_index(entity), quern_entity_generation(entity), text, siblings,
                       quern_entity_index(other), quern_entity_generation(other));
}

quern_result quern__entity_set_name(quern__storage *storage, quern_entity entity, const char *name)
{
    quern__names *names = storage->names;
    const uint32_t slot = quern_entity_index(entity), parent = quern__parent_slot(storage, slot);
    if (name == NULL || name[0] == '\0') {
        quern__names_drop(names, slot);
        return QUERN_OK;
    }
    quern_result result = quern__entity_check_name(name);
    if (result != QUERN_OK) return result;
    const uint32_t bytes = count_bytes(name);
    const uint32_t owner = quern__names_find(names, parent, name, bytes);
    if (owner == slot) return QUERN_OK;
    if (owner != QUERN__SLOT_NONE) return fail_taken(storage, entity, name, parent, owner);
    if (!quern__names_reserve(names, &storage->allocator, slot))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the name of entity %u:%u",
                           quern_entity_index(entity), quern_entity_generation(entity));
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1]; /* a copy, because `name` may point into the old name */
    memcpy(text, name, bytes + 1);
    quern__names_drop(names, slot);
    quern__names_put(names, slot, parent, text, bytes);
    storage->has_attachments = true;
    return QUERN_OK;
}

quern_result quern__naming_fail_taken(const quern__storage *storage, quern_entity source, uint32_t target)
{
    const quern__name *name = quern__names_of(storage->names, quern_entity_index(source));
    assert(name != NULL);
    return fail_taken(storage, source, name->text, target,
                      quern__names_find(storage->names, target, name->text, (uint32_t)strlen(name->text)));
}

/* ------------------------------------------------------------------------------------ the public calls */

static quern_result check_named_entity(const quern_world *world, quern_entity entity, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    if (quern__entities_find(&world->storage.entities, entity) != NULL) return QUERN_OK;
    return quern__in_call(quern__entities_check(&world->storage.entities, entity), function);
}

quern_result quern_entity_set_name(quern_world *world, quern_entity entity, const char *name)
{
    QUERN__ENTER(world);
    quern_result result = check_named_entity(world, entity, __func__);
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(quern__entity_set_name(&world->storage, entity, name), __func__);
}

const char *quern_entity_name(const quern_world *world, quern_entity entity)
{
    if (check_named_entity(world, entity, __func__) != QUERN_OK) return NULL;
    const quern__name *name = quern__names_of(world->storage.names, quern_entity_index(entity));
    return name != NULL ? name->text : NULL;
}

/* Finds the entity at a path below a parent (QUERN__SLOT_NONE: below none). Since no name is empty, no entity has a
 * path with an empty part. */
static quern_entity find_below(const quern_world *world, uint32_t parent, const char *path)
{
    for (;;) {
        const char *end = path;
        while (*end != '\0' && *end != '/' && end - path <= QUERN_MAX_ENTITY_NAME_BYTES)
            end++;
        const uint32_t slot = quern__names_find(world->storage.names, parent, path, (uint32_t)(end - path));
        if (slot == QUERN__SLOT_NONE || *end == '\0') return quern__entity_of_link(&world->storage, slot);
        parent = slot;
        path = end + 1;
    }
}

quern_entity quern_entity_find(const quern_world *world, const char *path)
{
    QUERN__NEED_OR(world, quern_entity_null());
    QUERN__NEED_OR(path, quern_entity_null());
    return find_below(world, QUERN__SLOT_NONE, path);
}

quern_entity quern_entity_find_child(const quern_world *world, quern_entity parent, const char *path)
{
    if (check_named_entity(world, parent, __func__) != QUERN_OK) return quern_entity_null();
    QUERN__NEED_OR(path, quern_entity_null());
    return find_below(world, quern_entity_index(parent), path);
}

/* ---------------------------------------------------------------------------------------------- path */

enum { USUAL_DEPTH = 64 };

quern_result quern_entity_get_path(const quern_world *world, quern_entity entity, quern_sink sink)
{
    quern_result result = check_named_entity(world, entity, __func__);
    if (result == QUERN_OK) result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    const quern__storage *storage = &world->storage;
    uint32_t count = 0, usual[USUAL_DEPTH];
    for (uint32_t slot = quern_entity_index(entity); slot != QUERN__SLOT_NONE; count++)
        slot = quern__parent_slot(storage, slot);
    uint32_t *slots = usual; /* the entity, its parent, and so on up to the root */
    if (count > USUAL_DEPTH)
        slots = quern__allocate(&storage->allocator, count * sizeof *slots, _Alignof(max_align_t));
    if (slots == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a path of %u names", __func__,
                           count);
    slots[0] = quern_entity_index(entity);
    for (uint32_t i = 1; i < count; i++)
        slots[i] = quern__parent_slot(storage, slots[i - 1]);
    quern__printer printer;
    quern__printer_open(&printer, sink);
    for (uint32_t i = count; i-- > 0;) {
        const quern__name *name = quern__names_of(storage->names, slots[i]);
        if (name != NULL)
            quern__print(&printer, "%s", name->text);
        else
            quern__print(&printer, "#%u", slots[i]);
        if (i > 0) quern__print(&printer, "/");
    }
    result = quern__printer_close(&printer, __func__);
    if (count > USUAL_DEPTH)
        quern__release(&storage->allocator, slots, count * sizeof *slots, _Alignof(max_align_t));
    return result;
}
