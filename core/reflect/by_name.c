/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that find components and resources by name. */

#include "core/base/printer.h"
#include "core/calls/calls_internal.h"
#include "core/reflect/value.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/reflect.h>

/* ------------------------------------------------------------------------------------------ finding */

/* Returns the length of the name if the path is the name, or begins with the name and a dot; otherwise 0. */
static size_t match_prefix(const char *path, const char *name)
{
    const size_t bytes = strlen(name);
    return strncmp(path, name, bytes) == 0 && (path[bytes] == '.' || path[bytes] == '\0') ? bytes : 0;
}

/* Returns the rest of a path after the name and the dot. It may be empty; then quern__path_find fails. */
static const char *rest_of(const char *path, size_t bytes)
{
    return path[bytes] == '.' ? path + bytes + 1 : path + bytes;
}

static quern_result find_component(const quern_world *world, const char *path,
                                   quern_component *out_component, const char **out_field)
{
    const quern__components *components = &world->storage.components;
    size_t longest = 0;
    for (uint32_t i = 0; i < components->list.count; i++) {
        const quern__component *component = components->list.items[i];
        const size_t bytes = component->managed.is_hidden ? 0 : match_prefix(path, component->type.name);
        if (bytes <= longest) continue;
        longest = bytes;
        *out_component = quern__component_handle(components, i);
    }
    if (longest == 0)
        return quern__fail(
            QUERN_ERROR_UNKNOWN_COMPONENT,
            "the path '%.127s' does not begin with the name of a component of this world: check "
            "the name, or register the component",
            path);
    *out_field = rest_of(path, longest);
    return QUERN_OK;
}

static quern_result find_resource(const quern_world *world, const char *path, uint32_t *out_index,
                                  const char **out_field)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < world->resources.list.count; i++) {
        const size_t bytes = match_prefix(path, world->resources.list.items[i].type.name);
        if (bytes <= longest) continue;
        longest = bytes;
        *out_index = i;
    }
    if (longest == 0)
        return quern__fail(
            QUERN_ERROR_UNKNOWN_RESOURCE,
            "the path '%.127s' does not begin with the name of a resource of this world: check "
            "the name, or register the resource",
            path);
    *out_field = rest_of(path, longest);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- entities */

/* The component of an entity, and the field in it, that a path names. */
typedef struct component_field {
    const quern__record *record;
    quern_component component;
    quern_type_info type;
    quern__path path;
} component_field;

static quern_result find_component_field(const quern_world *world, quern_entity entity, const char *path,
                                         component_field *out)
{
    const char *field;
    out->record = quern__entities_find(&world->storage.entities, entity);
    if (out->record == NULL) return quern__entities_check(&world->storage.entities, entity);
    quern_result result = find_component(world, path, &out->component, &field);
    if (result == QUERN_OK) result = quern_component_get_info(world, out->component, &out->type);
    if (result == QUERN_OK && out->type.size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a tag and has no value: use quern_entity_has to test for it",
                           out->type.name);
    return result == QUERN_OK ? quern__path_find(&out->type, field, &out->path) : result;
}

static void *value_of(const quern_world *world, const component_field *found)
{
    return quern__storage_value(quern__storage_archetype_of(&world->storage, found->record),
                                found->record->location, quern__component_index(found->component));
}

static quern_result fail_absent(quern_entity entity, const component_field *found)
{
    return quern__fail(QUERN_ERROR_COMPONENT_ABSENT, "entity %u:%u does not have '%s': add it first",
                       quern_entity_index(entity), quern_entity_generation(entity), found->type.name);
}

quern_result quern_entity_get_text(const quern_world *world, quern_entity entity, const char *path,
                                   quern_sink sink)
{
    static const char function[] = "quern_entity_get_text";
    component_field found = {0};
    if (world == NULL) return quern__fail_null(function, "world");
    if (path == NULL) return quern__fail_null(function, "path");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = quern__check_sink(sink, function);
    if (result == QUERN_OK) result = find_component_field(world, entity, path, &found);
    if (result != QUERN_OK) return quern__in_call(result, function);
    const void *value = value_of(world, &found);
    if (value == NULL) return quern__in_call(fail_absent(entity, &found), function);
    return quern__value_print(world, &found.path, value, sink, function);
}

/* Sets the target of a relation. A relation's value must not be written directly, because links must change with it. */
static quern_result set_target(quern_world *world, quern_entity entity, const component_field *found,
                               const char *text)
{
    static const char function[] = "quern_entity_set_text";
    const quern_relation relation = {found->component.bits};
    quern_entity target = {0};
    const quern_result result = quern__value_set_text(world, &found->path, &target, text);
    if (result != QUERN_OK) return quern__in_call(result, function);
    return quern_entity_is_null(target) ? quern__world_unrelate(world, entity, relation, function)
                                        : quern__world_relate(world, entity, relation, target, function);
}

static quern_result set_text(quern_world *world, quern_entity entity, const char *path, const char *text)
{
    static const char function[] = "quern_entity_set_text";
    component_field found = {0};
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = find_component_field(world, entity, path, &found);
    if (result != QUERN_OK) return quern__in_call(result, function);
    if (found.type.is_relation) return set_target(world, entity, &found, text);
    void *value = value_of(world, &found);
    result = quern__value_set_text(world, &found.path, NULL, text);
    if (result == QUERN_OK && value == NULL) result = fail_absent(entity, &found);
    if (result != QUERN_OK) return quern__in_call(result, function);
    const uint32_t index = quern__component_index(found.component);
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, found.record);
    quern__rows_before_write(archetype, found.record->location, 1, index);
    (void)quern__value_set_text(world, &found.path, value, text);
    quern__rows_written(archetype, found.record->location, 1, index);
    quern__storage_note_written(&world->storage, index);
    return QUERN_OK;
}

quern_result quern_entity_set_text(quern_world *world, quern_entity entity, const char *path,
                                   const char *text)
{
    static const char function[] = "quern_entity_set_text";
    if (world == NULL) return quern__fail_null(function, "world");
    if (path == NULL) return quern__fail_null(function, "path");
    if (text == NULL) return quern__fail_null(function, "text");
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, set_text(world, entity, path, text));
}

/* ---------------------------------------------------------------------------------------- resources */

static quern_result find_in_resource(const quern_world *world, const char *path, const char *function,
                                     quern_type_info *out_type, quern__path *out_path, void **out_value)
{
    const char *field;
    uint32_t index = 0;
    if (world == NULL) return quern__fail_null(function, "world");
    if (path == NULL) return quern__fail_null(function, "path");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = find_resource(world, path, &index, &field);
    if (result == QUERN_OK)
        result = quern_resource_get_info(world, quern_resource_at(world, index), out_type);
    if (result == QUERN_OK) result = quern__path_find(out_type, field, out_path);
    if (result != QUERN_OK) return quern__in_call(result, function);
    *out_value = world->resources.list.items[index].value;
    return QUERN_OK;
}

quern_result quern_resource_get_text(const quern_world *world, const char *path, quern_sink sink)
{
    static const char function[] = "quern_resource_get_text";
    quern_type_info type;
    quern__path found;
    void *value;
    quern_result result = quern__check_sink(sink, function);
    if (result == QUERN_OK) result = find_in_resource(world, path, function, &type, &found, &value);
    return result == QUERN_OK ? quern__value_print(world, &found, value, sink, function) : result;
}

quern_result quern_resource_set_text(quern_world *world, const char *path, const char *text)
{
    static const char function[] = "quern_resource_set_text";
    quern_type_info type;
    quern__path found;
    void *value;
    if (text == NULL) return quern__fail_null(function, "text");
    quern_result result = find_in_resource(world, path, function, &type, &found, &value);
    return result == QUERN_OK ? quern__in_call(quern__value_set_text(world, &found, value, text), function)
                              : result;
}

/* ------------------------------------------------------------------------------------------ by name */

static quern_result find_by_name(const quern_world *world, const char *name, const char *function,
                                 quern_component *out_component)
{
    if (world == NULL) return quern__fail_null(function, "world");
    if (name == NULL) return quern__fail_null(function, "name");
    *out_component = quern__components_find(&world->storage.components, name);
    if (out_component->bits != 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT,
                       "%s: the world has no component '%.63s': check the name, or register it", function,
                       name);
}

quern_result quern_entity_add_by_name(quern_world *world, quern_entity entity, const char *name)
{
    static const char function[] = "quern_entity_add_by_name";
    quern_component component;
    const quern_result result = find_by_name(world, name, function, &component);
    if (result != QUERN_OK) return result;
    if (quern__relation_of(&world->storage, (quern_relation){component.bits}) != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: '%s' is a relation and needs a target: set '%s.target' by "
                           "quern_entity_set_text",
                           function, name, name);
    return quern__world_add(world, entity, component, function);
}

quern_result quern_entity_remove_by_name(quern_world *world, quern_entity entity, const char *name)
{
    static const char function[] = "quern_entity_remove_by_name";
    quern_component component;
    const quern_result result = find_by_name(world, name, function, &component);
    return result == QUERN_OK ? quern__world_remove(world, entity, component, function) : result;
}
