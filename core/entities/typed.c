/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The macros of shorthand.h with a world or commands as argument. They find components by the names of C types, and
 * then call the public functions. The errors and thread rules of those functions apply. */

#include "core/base/base_internal.h"
#include "core/events/event_internal.h"
#include "core/record/record.h"
#include "core/relations/relation_internal.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

#include <quern/commands.h>
#include <quern/loader.h>
#include <quern/shorthand.h>

#include <stdlib.h>
#include <string.h>

/* The components of a call, in the form that the public functions accept. */
typedef struct typed_list {
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const void *values[QUERN_MAX_ENTITY_COMPONENTS];
    uint32_t count;
} typed_list;

static const char *name_of_type(const char *text)
{
    return strncmp(text, "const ", 6) == 0 ? text + 6 : text;
}

/* Finds the component of a type. Stores null and returns QUERN_OK if there is none. Errors: LAYOUT_MISMATCH. */
static quern_result find(const quern__components *components, const quern_value *type, const char *macro,
                         quern_component *out_component)
{
    const char *name = name_of_type(type->type_name);
    *out_component = quern__components_find(components, name);
    if (out_component->bits == 0 || type->size_bytes == QUERN__ANY_SIZE) return QUERN_OK;
    const uint32_t size_bytes =
        quern__components_type(components, quern__component_index(*out_component))->size_bytes;
    if (size_bytes == type->size_bytes) return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "%s: component '%s' has %u bytes in this world, and the C type has %u: use the type "
                       "that was registered",
                       macro, name, size_bytes, type->size_bytes);
}

static quern_result fail_unknown(const quern__components *components, const quern_value *type,
                                 const char *macro)
{
    const char *name = name_of_type(type->type_name);
    return quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT,
                       "%s: the world has no component '%s': register it before (QUERN_REGISTER, "
                       "QUERN_REGISTER_TAGS)%s",
                       macro, name, quern__components_suggest(components, name, strlen(name)).text);
}

quern_result quern__world_get_type(quern_world *world, const quern_value *type, const char *macro,
                                   quern_component *out_component)
{
    if (world == NULL) return quern__fail_null(macro, "world");
    const char *name = name_of_type(type->type_name);
    const quern_component_def def = {.name = name,
                                     .size_bytes = type->size_bytes,
                                     .alignment_bytes = type->alignment_bytes,
                                     .type_name = name};
    const bool has_size = type->size_bytes != QUERN__ANY_SIZE;
    const quern_loader *loader = world->loader;
    quern_result result = QUERN_OK;
    if (loader != NULL && has_size) {
        *out_component = quern__components_find(&world->storage.components, name);
        if (out_component->bits != 0)
            result =
                loader->use_type(loader->user_data, QUERN_TYPE_COMPONENT, out_component->bits, &def, false);
    } else {
        result = find(&world->storage.components, type, macro, out_component);
    }
    if (result != QUERN_OK || out_component->bits != 0) return result;
    return has_size ? quern_component_register(world, &def, out_component)
                    : fail_unknown(&world->storage.components, type, macro);
}

static quern_result find_recorded(quern_commands *commands, const quern_value *type, const char *macro,
                                  quern_component *out_component)
{
    if (commands == NULL) return quern__fail_null(macro, "commands");
    quern_result result = find(&commands->storage->components, type, macro, out_component);
    if (result == QUERN_OK && out_component->bits == 0)
        result = fail_unknown(&commands->storage->components, type, macro);
    return result == QUERN_OK ? QUERN_OK : quern__commands_fail(commands, result, macro);
}

static quern_value named(const char *name)
{
    return (quern_value){.type_name = name, .size_bytes = QUERN__ANY_SIZE};
}

static quern_result check_count(size_t count)
{
    if (count <= QUERN_MAX_ENTITY_COMPONENTS) return QUERN_OK;
    return quern__fail(QUERN_ERROR_TOO_MANY_COMPONENTS,
                       "QUERN_CREATE: %zu values; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)", count,
                       QUERN_MAX_ENTITY_COMPONENTS);
}

/* -------------------------------------------------------------------------------------------- world */

quern_component quern__world_type(quern_world *world, const quern_value *type)
{
    quern_component component;
    const quern_result result = quern__world_get_type(world, type, "QUERN_ID", &component);
    return result == QUERN_OK ? component : (quern_component){0};
}

quern_result quern__world_register_tags(quern_world *world, const char *names)
{
    quern_result result = QUERN_OK;
    while (result == QUERN_OK && *names != '\0') {
        char name[QUERN_MAX_NAME_BYTES + 2];
        const size_t length = strcspn(names, ", ");
        /* one byte too many, so that registering refuses a name that is too long */
        const size_t kept = length < sizeof name ? length : sizeof name - 1;
        quern_component ignored;
        memcpy(name, names, kept);
        name[kept] = '\0';
        result = quern_component_register(world, &(quern_component_def){.name = name}, &ignored);
        names += length;
        names += strspn(names, ", ");
    }
    return result;
}

quern_result quern__world_create_typed(quern_world *world, quern_entity *out_entity,
                                       const quern_value *values, size_t count)
{
    typed_list list = {.count = (uint32_t)count};
    quern_result result = check_count(count);
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = quern__world_get_type(world, &values[i], "QUERN_CREATE", &list.components[i]);
        list.values[i] = values[i].value;
    }
    if (result != QUERN_OK) return result;
    return quern_entity_create_with(world, list.components, list.values, list.count, out_entity);
}

quern_result quern__world_set_typed(quern_world *world, quern_entity entity, const quern_value *value)
{
    quern_component component;
    const quern_result result = quern__world_get_type(world, value, "QUERN_SET", &component);
    return result == QUERN_OK ? quern_entity_set(world, entity, component, value->value) : result;
}

quern_result quern__world_add_named(quern_world *world, quern_entity entity, const char *name)
{
    const quern_value type = named(name);
    quern_component component;
    const quern_result result = quern__world_get_type(world, &type, "QUERN_ADD", &component);
    return result == QUERN_OK ? quern_entity_add(world, entity, component, NULL) : result;
}

quern_result quern__world_remove_named(quern_world *world, quern_entity entity, const char *name)
{
    const quern_value type = named(name);
    quern_component component;
    const quern_result result = quern__world_get_type(world, &type, "QUERN_REMOVE", &component);
    return result == QUERN_OK ? quern_entity_remove(world, entity, component) : result;
}

bool quern__world_has_named(const quern_world *world, quern_entity entity, const char *name)
{
    const quern_value type = named(name);
    quern_component component;
    if (world == NULL) {
        quern__fail_null("QUERN_HAS", "world");
        return false;
    }
    find(&world->storage.components, &type, "QUERN_HAS", &component);
    if (component.bits != 0) return quern_entity_has(world, entity, component);
    fail_unknown(&world->storage.components, &type, "QUERN_HAS");
    return false;
}

void *quern__world_get_typed(quern_world *world, quern_entity entity, const quern_value *type)
{
    quern_component component;
    if (world == NULL) {
        quern__fail_null("QUERN_GET", "world");
        return NULL;
    }
    if (find(&world->storage.components, type, "QUERN_GET", &component) != QUERN_OK) return NULL;
    if (component.bits != 0) return quern_entity_get(world, entity, component);
    fail_unknown(&world->storage.components, type, "QUERN_GET");
    return NULL;
}

/* ------------------------------------------------------------------------------------ types with identities */

/* The type of a handle, the table of its kind, and the word for the kind. */
typedef struct type_place {
    quern__type *type;
    quern__type_ids *ids;
    const char *what;
} type_place;

static type_place place_of(quern_world *world, quern_type_kind kind, uint32_t bits)
{
    const uint32_t index = quern__handle_index(bits);
    if (kind == QUERN_TYPE_EVENT)
        return (type_place){&world->events->channels.items[index]->type, &world->events->type_ids, "event"};
    if (kind == QUERN_TYPE_RESOURCE)
        return (type_place){&world->resources.list.items[index].type, &world->resources.type_ids,
                            "resource"};
    quern__components *components = &world->storage.components;
    return (type_place){&components->list.items[index]->type, &components->type_ids, "component"};
}

uint32_t quern__world_find_type(const quern_world *world, quern_type_kind kind, uint64_t type_id)
{
    if (world->loader != NULL)
        return 0; /* found by name, and compared by the loader in quern__world_use_type */
    if (kind == QUERN_TYPE_COMPONENT)
        return quern__type_ids_find(&world->storage.components.type_ids, type_id);
    if (kind == QUERN_TYPE_RESOURCE) return quern__type_ids_find(&world->resources.type_ids, type_id);
    return world->events != NULL ? quern__type_ids_find(&world->events->type_ids, type_id) : 0;
}

quern_result quern__world_use_type(const quern_world *world, quern_type_kind kind, uint32_t bits,
                                   const quern_component_def *type)
{
    const quern_loader *loader = world->loader;
    if (loader != NULL) return loader->use_type(loader->user_data, kind, bits, type, true);
    quern_world *const changed = (quern_world *)(uintptr_t)world;
    const type_place place = place_of(changed, kind, bits);
    const quern_result result = quern__type_check_usable(place.type, type, place.what);
    if (result != QUERN_OK || world->locked) return result;
    if (!quern__type_ids_reserve(place.ids, &world->storage.allocator))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s '%s': no memory to note its C++ type", place.what,
                           place.type->name);
    quern__type_identify(place.type, place.ids, type->type_id, bits);
    return QUERN_OK;
}

quern_component quern__commands_find_type(const quern_commands *commands, uint64_t type_id)
{
    if (commands == NULL) return (quern_component){0};
    return (quern_component){quern__type_ids_find(&commands->storage->components.type_ids, type_id)};
}

quern_result quern__commands_use_type(quern_commands *commands, const quern_component_def *type,
                                      const char *call, quern_component *out_component)
{
    if (commands == NULL) return quern__fail_null(call, "commands");
    const quern__components *components = &commands->storage->components;
    *out_component = quern__components_find(components, type->name);
    const quern_result result =
        out_component->bits == 0
            ? quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT,
                          "the world has no component '%s': call component<T>() of the world before%s",
                          type->name,
                          quern__components_suggest(components, type->name, strlen(type->name)).text)
            : quern__type_check_usable(
                  quern__components_type(components, quern__component_index(*out_component)), type,
                  "component");
    return result == QUERN_OK ? QUERN_OK : quern__commands_fail(commands, result, call);
}

quern_result quern__option_fail(const char *option, uint32_t limit)
{
    return quern__fail(QUERN_ERROR_LIMIT,
                       "quern::%s: the list has %u elements, the limit: leave some out, or use several "
                       "systems or queries",
                       option, limit);
}

/* ------------------------------------------------------------------------------------ values of edges */

static quern_result check_edge_size(const quern__storage *storage, quern_relation relation,
                                    size_t size_bytes, const char *call)
{
    const quern__relation *known = quern__relation_of(storage, relation);
    if (known == NULL || !quern__relation_has_values(known)) return QUERN_OK;
    const quern__type *type = quern__components_type(&storage->components, known->value_index);
    const uint32_t expected = known->is_many ? known->element.size_bytes : type->size_bytes;
    if (size_bytes == expected) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%s: a value of an edge in '%s' has %u bytes%s%s, and the C++ type has %zu: give a %s", call,
        quern__relation_name(storage, known), expected, known->is_many ? ", as an element of " : ", as ",
        type->name, size_bytes,
        known->is_many ? "value of the type of the elements" : "value of that type");
}

quern_result quern__world_check_edge(const quern_world *world, quern_relation relation, size_t size_bytes,
                                     const char *call)
{
    return world == NULL ? QUERN_OK : check_edge_size(&world->storage, relation, size_bytes, call);
}

quern_result quern__commands_check_edge(quern_commands *commands, quern_relation relation,
                                        size_t size_bytes, const char *call)
{
    if (commands == NULL) return QUERN_OK;
    const quern_result result = check_edge_size(commands->storage, relation, size_bytes, call);
    return result == QUERN_OK ? QUERN_OK : quern__commands_fail(commands, result, call);
}

/* ----------------------------------------------------------------------------------------- commands */

quern_result quern__commands_create_typed(quern_commands *commands, quern_entity *out_entity,
                                          const quern_value *values, size_t count)
{
    typed_list list = {.count = (uint32_t)count};
    quern_entity ignored;
    quern_result result = check_count(count);
    if (result != QUERN_OK && commands != NULL)
        return quern__commands_fail(commands, result, "QUERN_CREATE");
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = find_recorded(commands, &values[i], "QUERN_CREATE", &list.components[i]);
        list.values[i] = values[i].value;
    }
    if (result != QUERN_OK) return result;
    return quern_commands_create_many(commands, list.components, list.values, list.count, 1,
                                      out_entity != NULL ? out_entity : &ignored);
}

quern_result quern__commands_set_typed(quern_commands *commands, quern_entity entity,
                                       const quern_value *value)
{
    quern_component component;
    const quern_result result = find_recorded(commands, value, "QUERN_SET", &component);
    return result == QUERN_OK ? quern_commands_set(commands, entity, component, value->value) : result;
}

quern_result quern__commands_add_named(quern_commands *commands, quern_entity entity, const char *name)
{
    const quern_value type = named(name);
    quern_component component;
    const quern_result result = find_recorded(commands, &type, "QUERN_ADD", &component);
    return result == QUERN_OK ? quern_commands_add(commands, entity, component, NULL) : result;
}

quern_result quern__commands_remove_named(quern_commands *commands, quern_entity entity, const char *name)
{
    const quern_value type = named(name);
    quern_component component;
    const quern_result result = find_recorded(commands, &type, "QUERN_REMOVE", &component);
    return result == QUERN_OK ? quern_commands_remove(commands, entity, component) : result;
}

/* --------------------------------------------------------------------------------------------- must */

void quern__must_end(const char *call, const char *file, int line)
{
    /* The call last: it may be longer than a message, and would cut off the reason. */
    if (file == NULL)
        quern__log(QUERN_LOG_ERROR, "%s; called by %s", quern_error_message(), call);
    else
        quern__log(QUERN_LOG_ERROR, "%s:%d: %s; called by QUERN_MUST(%s)", file, line,
                   quern_error_message(), call);
    abort();
}
