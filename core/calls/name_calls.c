/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of name.h: names and paths of entities. */

#include "core/base/printer.h"
#include "core/relations/naming.h"
#include "core/world/world_internal.h"

#include <quern/name.h>

static quern_result check_entity(const quern_world *world, quern_entity entity, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    if (quern__entities_find(&world->storage.entities, entity) != NULL) return QUERN_OK;
    return quern__in_call(quern__entities_check(&world->storage.entities, entity), function);
}

/* ------------------------------------------------------------------------------------------- setting */

static quern_result set_name(quern_world *world, quern_entity entity, const char *name)
{
    static const char function[] = "quern_entity_set_name";
    quern_result result = check_entity(world, entity, function);
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(quern__entity_set_name(&world->storage, entity, name), function);
}

quern_result quern_entity_set_name(quern_world *world, quern_entity entity, const char *name)
{
    if (!quern__world_enter(world, "quern_entity_set_name")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, set_name(world, entity, name));
}

const char *quern_entity_name(const quern_world *world, quern_entity entity)
{
    if (check_entity(world, entity, "quern_entity_name") != QUERN_OK) return NULL;
    const quern__name *name = quern__names_of(world->storage.names, quern_entity_index(entity));
    return name != NULL ? name->text : NULL;
}

/* ------------------------------------------------------------------------------------------- finding */

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
    if (world != NULL && path != NULL) return find_below(world, QUERN__SLOT_NONE, path);
    quern__fail_null("quern_entity_find", world != NULL ? "path" : "world");
    return quern_entity_null();
}

quern_entity quern_entity_find_child(const quern_world *world, quern_entity parent, const char *path)
{
    if (check_entity(world, parent, "quern_entity_find_child") != QUERN_OK) return quern_entity_null();
    if (path != NULL) return find_below(world, quern_entity_index(parent), path);
    quern__fail_null("quern_entity_find_child", "path");
    return quern_entity_null();
}

/* ---------------------------------------------------------------------------------------------- path */

static void print_part(quern__printer *printer, const quern__names *names, uint32_t slot)
{
    const quern__name *name = quern__names_of(names, slot);
    if (name != NULL)
        quern__print(printer, "%s", name->text);
    else
        quern__print(printer, "#%u", slot);
}

/* slots: the entity, its parent, and so on up to the root. */
static quern_result print_path(const quern_world *world, const uint32_t *slots, uint32_t count,
                               quern_sink sink)
{
    quern__printer printer;
    quern__printer_open(&printer, sink);
    for (uint32_t i = count; i-- > 0;) {
        print_part(&printer, world->storage.names, slots[i]);
        if (i > 0) quern__print(&printer, "/");
    }
    return quern__printer_close(&printer, "quern_entity_get_path");
}

enum { USUAL_DEPTH = 64 };

quern_result quern_entity_get_path(const quern_world *world, quern_entity entity, quern_sink sink)
{
    static const char function[] = "quern_entity_get_path";
    quern_result result = check_entity(world, entity, function);
    if (result == QUERN_OK) result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    const quern__storage *storage = &world->storage;
    uint32_t count = 0, usual[USUAL_DEPTH];
    for (uint32_t slot = quern_entity_index(entity); slot != QUERN__SLOT_NONE; count++)
        slot = quern__parent_slot(storage, slot);
    uint32_t *slots = usual;
    if (count > USUAL_DEPTH)
        slots = quern__allocate(&storage->allocator, count * sizeof *slots, _Alignof(max_align_t));
    if (slots == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a path of %u names", function,
                           count);
    slots[0] = quern_entity_index(entity);
    for (uint32_t i = 1; i < count; i++)
        slots[i] = quern__parent_slot(storage, slots[i - 1]);
    result = print_path(world, slots, count, sink);
    if (count > USUAL_DEPTH)
        quern__release(&storage->allocator, slots, count * sizeof *slots, _Alignof(max_align_t));
    return result;
}
