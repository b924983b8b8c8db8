/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads entities and worlds from JSON. A first pass over the document checks that everything fits. Then entities
 * are created and a second pass records commands for them; one flush applies all commands or none. A flush drops
 * commands that would close a cycle or take a used name, so the first pass checks for both. */

#include "kit/json_internal.h"

#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/enabled.h>
#include <quern/name.h>

#include <stdlib.h>
#include <string.h>

#define NO_TARGET UINT32_MAX

typedef struct id_index {
    uint64_t id;
    uint32_t index;
} id_index;

/* A name and the entity's parent, for the check that siblings have different names. */
typedef struct named {
    const char *name;
    uint32_t parent; /* index of an entity, or NO_TARGET */
} named;

typedef struct loader {
    quern__json_reader reader;
    quern_commands *commands; /* NULL during the first pass, which only checks */
    uint32_t count;           /* number of entities */
    const quern__json_item *entities;
    const quern__json_item **items;
    id_index *sorted;
    uint64_t *ids;
    uint32_t *indices;
    quern_entity *made;
    uint32_t *targets; /* index of each entity's target in the relation that is checked */
    named *names;
    char *block; /* the memory of all these arrays */
    size_t block_bytes;
} loader;

/* -------------------------------------------------------------------------------------- components */

static void construct(const quern_type_info *type, char *value)
{
    if (type->hooks.construct != NULL)
        type->hooks.construct(value, 1, type->hooks.user_data);
    else
        memset(value, 0, type->size_bytes);
}

static void destroy(const quern_type_info *type, char *value)
{
    if (type->hooks.destroy != NULL) type->hooks.destroy(value, 1, type->hooks.user_data);
}

static quern_result record(const loader *from, quern_entity entity, quern_component component,
                           const quern_type_info *type)
{
    if (type->size_bytes == 0) return quern_commands_add(from->commands, entity, component, NULL);
    return quern_commands_set(from->commands, entity, component, from->reader.scratch);
}

/* Reads a new value. Recording moves the value into the commands if its type cannot be copied. */
static quern_result load_new(loader *from, quern_entity entity, quern_component component,
                             const quern_type_info *type, const quern__json_item *item)
{
    char *value = from->reader.scratch;
    if (type->size_bytes > 0) construct(type, value);
    quern_result result = quern__json_read_fields(&from->reader, type, item, value);
    const bool is_recorded = result == QUERN_OK && from->commands != NULL;
    if (is_recorded) result = record(from, entity, component, type);
    const bool is_handed_over = is_recorded && result == QUERN_OK && type->hooks.copy == NULL;
    if (type->size_bytes > 0 && !is_handed_over) destroy(type, value);
    return result;
}

/* Changes the given fields of a value that the entity has already. */
static quern_result load_known(loader *from, quern_entity entity, quern_component component,
                               const quern_type_info *type, const quern__json_item *item)
{
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' has a destroy hook and no copy hook: set its fields by "
                                "quern_entity_set_text",
                                type->name);
    if (type->size_bytes > 0)
        memcpy(from->reader.scratch, quern_entity_get(from->reader.world, entity, component),
               type->size_bytes);
    const quern_result result = quern__json_read_fields(&from->reader, type, item, from->reader.scratch);
    return result == QUERN_OK && from->commands != NULL ? record(from, entity, component, type) : result;
}

/* entity: null if it does not exist yet. */
static quern_result load_component(loader *from, quern_entity entity, const quern__json_item *item)
{
    quern_world *world = from->reader.world;
    quern_type_info type;
    const quern_component component = quern_component_find(world, item->key);
    if (quern_component_is_null(component))
        return quern__json_unknown(&from->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "component", item->key,
                                   NULL);
    quern_result result = quern_component_get_info(world, component, &type);
    if (result != QUERN_OK) return result;
    if (type.is_managed)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' is a component that the world keeps itself: relations are read from "
                                "'children'",
                                type.name);
    result = quern__json_reader_reserve(&from->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    const bool is_known = from->made == NULL && quern_entity_has(world, entity, component);
    return is_known ? load_known(from, entity, component, &type, item)
                    : load_new(from, entity, component, &type, item);
}

/* Applies one element of a flag's list: puts the component that it names into the flag's state. */
static quern_result load_listed(loader *from, quern_entity entity, const quern_flag_info *flag,
                                const quern__json_item *components, const quern__json_item *item)
{
    const char *name = item->kind == QUERN__JSON_STRING ? item->text : "";
    const quern_component component = quern_component_find(from->reader.world, name);
    quern_type_info type;
    if (quern__json_member(components, name) == NULL)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' names '%.63s', which is no component of it", flag->list_name, name);
    if (quern_component_is_null(component)) return QUERN_OK; /* the component was left out */
    const quern_result result = quern_component_get_info(from->reader.world, component, &type);
    if (result != QUERN_OK) return result;
    if (!quern_type_has_flag(&type, flag))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "component '%s' %s", name, flag->without);
    return from->commands != NULL ? flag->list(from->commands, entity, component) : QUERN_OK;
}

static quern_result load_lists(loader *from, quern_entity entity, const quern__json_item *object,
                               const quern__json_item *components)
{
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name), *item;
        if (list == NULL) continue;
        for (item = quern__json_first(list); item != NULL; item = quern__json_next(list, item)) {
            const quern_result result = load_listed(from, entity, &flag, components, item);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

static bool is_entity_list(const char *key)
{
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);)
        if (strcmp(flag.list_name, key) == 0) return true;
    return false;
}

static bool is_root_member(const char *key)
{
    return strcmp(key, "quern") == 0 || strcmp(key, "components") == 0 || strcmp(key, "resources") == 0 ||
           strcmp(key, "entities") == 0;
}

static bool is_entity_member(const char *key)
{
    return strcmp(key, "id") == 0 || strcmp(key, "name") == 0 || strcmp(key, "components") == 0 ||
           strcmp(key, "children") == 0 || is_entity_list(key);
}

/* Fails for, or reports as left out, each member of an object that `is_member` does not know. */
static quern_result check_members(const loader *from, const quern__json_item *object, const char *what,
                                  bool (*is_member)(const char *key))
{
    const quern__json_item *item = quern__json_first(object);
    for (; item != NULL; item = quern__json_next(object, item)) {
        if (is_member(item->key)) continue;
        const quern_result result =
            quern__json_unknown(&from->reader, QUERN_ERROR_INVALID_ARGUMENT, what, item->key, NULL);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result check_lists(const quern__json_item *object)
{
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name);
        if (list != NULL && list->kind != QUERN__JSON_ARRAY)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "an entity may have an array '%s'",
                                    flag.list_name);
    }
    return QUERN_OK;
}

static quern_result load_entity(loader *from, quern_entity entity, const quern__json_item *object)
{
    const quern__json_item *components = quern__json_member(object, "components"), *item;
    if (!quern__json_is(components, QUERN__JSON_OBJECT))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "an entity has an object 'components'");
    quern_result result = check_lists(object);
    if (result == QUERN_OK) result = check_members(from, object, "member of an entity", is_entity_member);
    if (result != QUERN_OK) return result;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        result = load_component(from, entity, item);
        if (result != QUERN_OK) return result;
    }
    return load_lists(from, entity, object, components);
}

/* Prefixes the error message with the entity's id. Returns `result`. */
static quern_result in_entity(quern_result result, const quern__json_item *object)
{
    const quern__json_item *id = quern__json_member(object, "id");
    uint64_t number;
    char said[400];
    if (result == QUERN_OK) return QUERN_OK;
    const long long known = quern__json_as_count(id, QUERN__JSON_MAX_ID, &number) ? (long long)number : -1;
    strncpy(said, quern_error_message(), sizeof said - 1);
    said[sizeof said - 1] = '\0';
    return quern__json_fail(result, "entity with id %lld: %s", known, said);
}

static quern_result load_entities(loader *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const quern_entity entity = from->commands != NULL ? from->made[i] : quern_entity_null();
        const quern_result result = in_entity(load_entity(from, entity, from->items[i]), from->items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- resources */

/* Reads a resource. is_put: the checks are done, and the value is stored in the world. */
static quern_result load_resource(loader *from, const quern__json_item *item, bool is_put)
{
    quern_world *world = from->reader.world;
    const quern_resource resource = quern_resource_find(world, item->key);
    quern_type_info type;
    if (resource.bits == 0)
        return quern__json_unknown(&from->reader, QUERN_ERROR_UNKNOWN_RESOURCE, "resource", item->key,
                                   NULL);
    void *value = quern_resource_get(world, resource);
    quern_result result = quern_resource_get_info(world, resource, &type);
    if (result == QUERN_OK && type.field_count == 0)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "resource '%s' has no described fields",
                                type.name);
    if (result == QUERN_OK) result = quern__json_reader_reserve(&from->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    memcpy(from->reader.scratch, value, type.size_bytes);
    result = quern__json_read_fields(&from->reader, &type, item, from->reader.scratch);
    if (result == QUERN_OK && is_put) memcpy(value, from->reader.scratch, type.size_bytes);
    return result;
}

static quern_result load_resources(loader *from, const quern__json_item *root, bool is_put)
{
    const quern__json_item *resources = quern__json_member(root, "resources"), *item;
    if (resources != NULL && resources->kind != QUERN__JSON_OBJECT)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'resources' must be an object");
    for (item = quern__json_first(resources); item != NULL; item = quern__json_next(resources, item)) {
        const quern_result result = load_resource(from, item, is_put);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- relations */

static const quern__json_item *children_of(const quern__json_item *object, const char *relation)
{
    return quern__json_member(quern__json_member(object, "children"), relation);
}

static quern_result check_child(loader *from, uint32_t target, const quern__json_item *item,
                                const char *relation)
{
    uint32_t child;
    if (!quern__json_find_id(&from->reader.handles, item, &child))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "children by '%s' are ids of entities that are in the JSON", relation);
    if (child == target || from->targets[child] != NO_TARGET)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "entity with id %.*s is named as a child by '%s' twice, or of itself",
                                (int)item->bytes, item->text, relation);
    from->targets[child] = target;
    return QUERN_OK;
}

static quern_result collect_targets(loader *from, const char *relation)
{
    for (uint32_t i = 0; i < from->count; i++)
        from->targets[i] = NO_TARGET;
    for (uint32_t i = 0; i < from->count; i++) {
        const quern__json_item *children = children_of(from->items[i], relation), *child;
        if (children != NULL && children->kind != QUERN__JSON_ARRAY)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                    "children by '%s' must be an array of ids", relation);
        for (child = quern__json_first(children); child != NULL;
             child = quern__json_next(children, child)) {
            const quern_result result = in_entity(check_child(from, i, child, relation), from->items[i]);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

/* Follows the targets of each entity upwards until they end or reach an entity that was visited before. Entities
 * visited for entity i are marked with i, so reaching the mark i again is a cycle. */
static quern_result check_cycles(loader *from, const char *relation)
{
    uint32_t *walks = from->indices + from->count;
    for (uint32_t i = 0; i < from->count; i++)
        walks[i] = NO_TARGET;
    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t at = i;
        while (at != NO_TARGET && walks[at] == NO_TARGET) {
            walks[at] = i;
            at = from->targets[at];
        }
        if (at != NO_TARGET && walks[at] == i)
            return quern__json_fail(QUERN_ERROR_CYCLE, "entity with id %llu is its own ancestor by '%s'",
                                    (unsigned long long)from->sorted[at].id, relation);
    }
    return QUERN_OK;
}

static int compare_names(const void *a, const void *b)
{
    const named *x = a, *y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return strcmp(x->name, y->name);
}

static const char *name_of(const quern__json_item *object)
{
    const quern__json_item *name = quern__json_member(object, "name");
    return quern__json_is(name, QUERN__JSON_STRING) ? name->text : NULL;
}

/* Fails if two siblings have the same name. Precondition: `targets` are those of the parent hierarchy. */
static quern_result check_names(loader *from)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const quern__json_item *name = quern__json_member(from->items[i], "name");
        if (name == NULL) continue;
        if (name->kind != QUERN__JSON_STRING)
            return in_entity(quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'name' must be a string"),
                             from->items[i]);
        from->names[count++] = (named){name->text, from->targets[i]};
    }
    if (count > 0) qsort(from->names, count, sizeof *from->names, compare_names);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && compare_names(&from->names[i - 1], &from->names[i]) == 0)
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "two siblings in the JSON are named '%.63s'", from->names[i].name);
        if (from->names[i].parent == NO_TARGET &&
            !quern_entity_is_null(quern_entity_find(from->reader.world, from->names[i].name)))
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "a root of the world is named '%.63s' already", from->names[i].name);
    }
    return QUERN_OK;
}

static quern_result check_relation_names(loader *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const quern__json_item *children = quern__json_member(from->items[i], "children"), *item;
        if (children != NULL && children->kind != QUERN__JSON_OBJECT)
            return in_entity(quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'children' must be an object"),
                             from->items[i]);
        for (item = quern__json_first(children); item != NULL; item = quern__json_next(children, item)) {
            if (!quern_relation_is_null(quern_relation_find(from->reader.world, item->key))) continue;
            const quern_result result = quern__json_unknown(&from->reader, QUERN_ERROR_INVALID_ARGUMENT,
                                                            "relation", item->key, NULL);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

static quern_result check_relations(loader *from)
{
    quern_world *world = from->reader.world;
    quern_result result = check_relation_names(from);
    for (uint32_t i = 0; i < quern_relation_count(world) && result == QUERN_OK; i++) {
        quern_relation_def def;
        result = quern_relation_get_def(world, quern_relation_at(world, i), &def);
        if (result == QUERN_OK) result = collect_targets(from, def.name);
        if (result == QUERN_OK && def.levels) result = check_cycles(from, def.name);
    }
    if (result == QUERN_OK) result = collect_targets(from, "parent");
    return result == QUERN_OK ? check_names(from) : result;
}

/* Relates children in the order in which the relation lists new ones: ordered relations append, others prepend. */
static quern_result record_children(loader *from, uint32_t target, quern_relation relation, bool is_ordered,
                                    const quern__json_item *children)
{
    for (uint32_t i = 0; i < children->count; i++) {
        /* All elements are numbers without contents, so they are adjacent. */
        const quern__json_item *item = children + 1 + (is_ordered ? i : children->count - 1 - i);
        uint32_t child = 0;
        (void)quern__json_find_id(&from->reader.handles, item, &child);
        const quern_result result =
            quern_commands_relate(from->commands, from->made[child], relation, from->made[target]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Records the relations, and then the names, since names must be unique among the siblings that result. */
static quern_result record_links(loader *from)
{
    quern_world *world = from->reader.world;
    for (uint32_t k = 0; k < quern_relation_count(world); k++) {
        quern_relation_def def;
        const quern_relation relation = quern_relation_at(world, k);
        quern_result result = quern_relation_get_def(world, relation, &def);
        for (uint32_t i = 0; i < from->count && result == QUERN_OK; i++) {
            const quern__json_item *children = children_of(from->items[i], def.name);
            if (children != NULL) result = record_children(from, i, relation, def.ordered, children);
        }
        if (result != QUERN_OK) return result;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        const char *name = name_of(from->items[i]);
        const quern_result result =
            name != NULL ? quern_commands_set_name(from->commands, from->made[i], name) : QUERN_OK;
        if (result != QUERN_OK) return in_entity(result, from->items[i]);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- world */

static int compare_ids(const void *a, const void *b)
{
    const id_index *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static quern_result list_ids(loader *from)
{
    const quern__json_item *item;
    uint32_t i = 0;
    for (item = quern__json_first(from->entities); item != NULL;
         item = quern__json_next(from->entities, item)) {
        const quern__json_item *id = quern__json_member(item, "id");
        uint64_t number;
        if (!quern__json_as_count(id, QUERN__JSON_MAX_ID, &number))
            return quern__json_fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "entity %u of the list has no 'id' that is a whole number from 0 to 2^53 - 1", i);
        from->sorted[i] = (id_index){number, i};
        from->items[i++] = item;
    }
    if (i > 0) qsort(from->sorted, i, sizeof *from->sorted, compare_ids);
    for (i = 0; i < from->count; i++) {
        from->ids[i] = from->sorted[i].id;
        from->indices[i] = from->sorted[i].index;
        if (i > 0 && from->ids[i] == from->ids[i - 1])
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "two entities have the id %llu",
                                    (unsigned long long)from->ids[i]);
    }
    for (i = 0; i < from->count; i++) /* from here on sorted[i].id is the id of entity i, for messages */
        from->sorted[from->indices[i]].id = from->ids[i];
    from->reader.handles = (quern__json_handles){from->ids, from->indices, NULL, from->count};
    return QUERN_OK;
}

/* Allocates the arrays in one block, count + 1 elements each, those with the strictest alignment first. */
static quern_result reserve_lists(loader *from)
{
    const size_t count = from->count + (size_t)1;
    const size_t bytes = sizeof(named) + sizeof(id_index) + sizeof(quern_entity) + sizeof(uint64_t) +
                         sizeof(const quern__json_item *) + 3 * sizeof(uint32_t);
    const quern_allocator *allocator = &from->reader.allocator;
    from->block_bytes = count * bytes;
    from->block = allocator->allocate(allocator->user_data, from->block_bytes, _Alignof(max_align_t));
    if (from->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for lists of %u entities",
                                from->count);
    from->names = (named *)(void *)from->block;
    from->sorted = (id_index *)(from->names + count);
    from->made = (quern_entity *)(from->sorted + count);
    from->ids = (uint64_t *)(from->made + count);
    from->items = (const quern__json_item **)(from->ids + count);
    from->targets = (uint32_t *)(from->items + count);
    from->indices = from->targets + count; /* two arrays of count + 1 elements: see check_cycles */
    return QUERN_OK;
}

/* Registers the parent relation and the disabled tag if the JSON uses them. */
static quern_result register_own(loader *from)
{
    quern_world *world = from->reader.world;
    bool needs_disabled = false, needs_parent = false;
    for (uint32_t i = 0; i < from->count; i++) {
        needs_parent |= children_of(from->items[i], "parent") != NULL;
        needs_disabled |=
            quern__json_member(quern__json_member(from->items[i], "components"), "disabled") != NULL;
    }
    const bool has_parent = !needs_parent ||
                            !quern_component_is_null(quern_component_find(world, "parent")) ||
                            !quern_relation_is_null(quern_world_parent(world));
    const bool has_disabled = !needs_disabled ||
                              !quern_component_is_null(quern_component_find(world, "disabled")) ||
                              !quern_component_is_null(quern_world_disabled_tag(world));
    return has_parent && has_disabled ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
}

static quern_result check_world(loader *from, const quern__json_item *root)
{
    const quern__json_item *version = quern__json_member(root, "quern");
    from->entities = quern__json_member(root, "entities");
    uint64_t number;
    if (!quern__json_is(version, QUERN__JSON_NUMBER) || !quern__json_is(from->entities, QUERN__JSON_ARRAY))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "a world is an object with a number 'quern' and an array 'entities'");
    if (!quern__json_as_count(version, UINT32_MAX, &number) || number != QUERN__JSON_VERSION)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT, "the JSON has version %.*s; this library reads %d",
            (int)(version->bytes < 32 ? version->bytes : 32), version->text, QUERN__JSON_VERSION);
    from->count = from->entities->count;
    quern_result result = check_members(from, root, "member", is_root_member);
    if (result == QUERN_OK) result = reserve_lists(from);
    if (result == QUERN_OK) result = list_ids(from);
    if (result == QUERN_OK) result = register_own(from);
    if (result == QUERN_OK) result = load_entities(from);
    if (result == QUERN_OK) result = load_resources(from, root, false);
    return result == QUERN_OK ? check_relations(from) : result;
}

/* Destroys the created entities in reverse order, which returns their slots to the free list in the old order. */
static void undo(loader *from)
{
    char said[512];
    strncpy(said, quern_error_message(), sizeof said - 1);
    said[sizeof said - 1] = '\0';
    (void)quern_world_discard_commands(from->reader.world);
    for (uint32_t i = from->count; i-- > 0;)
        if (quern_entity_is_alive(from->reader.world, from->made[i]))
            (void)quern_entity_destroy(from->reader.world, from->made[i]);
    (void)quern_error_set(QUERN_OK, "%s", said);
}

/* Applies the recorded commands and fails if any was dropped. No other commands wait. */
static quern_result flush(quern_world *world)
{
    quern_flush_stats stats;
    quern_result result = quern_world_flush(world);
    if (result == QUERN_OK) result = quern_world_get_flush_stats(world, &stats);
    if (result != QUERN_OK || stats.dropped_count == 0) return result;
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "%llu changes that the JSON asks for cannot be made",
                            (unsigned long long)stats.dropped_count);
}

static quern_result make_world(loader *from, const quern__json_item *root)
{
    quern_world *world = from->reader.world;
    quern_result result = from->count > 0
                              ? quern_entity_create_many(world, NULL, NULL, 0, from->count, from->made)
                              : QUERN_OK;
    if (result != QUERN_OK) return result;
    from->reader.handles.made = from->made;
    from->reader.is_quiet = true;
    from->commands = quern_world_commands(world);
    result = from->commands != NULL ? load_entities(from) : QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_OK) result = record_links(from);
    if (result == QUERN_OK) result = flush(world);
    if (result != QUERN_OK) {
        undo(from);
        return result;
    }
    from->commands = NULL;
    return load_resources(from, root, true);
}

static quern_result read_world(loader *from, const char *text, size_t bytes)
{
    quern__json_document document = {.count = 0};
    const quern_json_options *options = from->reader.options;
    quern_result result = quern_world_flush(from->reader.world);
    if (result == QUERN_OK) result = quern__json_parse(&from->reader.allocator, text, bytes, &document);
    if (result == QUERN_OK) result = check_world(from, document.items);
    if (result == QUERN_OK) result = make_world(from, document.items);
    for (uint32_t i = 0; i < from->count && result == QUERN_OK && options->loaded != NULL; i++)
        options->loaded(options->user_data, from->sorted[i].id, from->made[i]);
    quern__json_document_close(&document);
    if (from->block != NULL)
        from->reader.allocator.release(from->reader.allocator.user_data, from->block, from->block_bytes,
                                       _Alignof(max_align_t));
    return result;
}

quern_result quern_json_read_world(quern_world *world, const char *text, size_t bytes,
                                   const quern_json_options *options)
{
    loader from = {.count = 0};
    quern_result result = quern__json_reader_open(&from.reader, world, options, "quern_json_read_world");
    if (result != QUERN_OK) return result;
    result = read_world(&from, text, bytes);
    quern__json_reader_close(&from.reader);
    return result;
}

/* ---------------------------------------------------------------------------------------- an entity */

static quern_result read_entity(loader *from, quern_entity entity, const char *text, size_t bytes)
{
    quern__json_document document = {.count = 0};
    quern_world *world = from->reader.world;
    quern_result result = quern_world_flush(world);
    if (result == QUERN_OK) result = quern__json_parse(&from->reader.allocator, text, bytes, &document);
    if (result == QUERN_OK) result = load_entity(from, entity, document.items);
    if (result == QUERN_OK) {
        from->reader.is_quiet = true;
        from->commands = quern_world_commands(world);
        result =
            from->commands != NULL ? load_entity(from, entity, document.items) : QUERN_ERROR_OUT_OF_MEMORY;
        if (result == QUERN_OK) result = flush(world);
        if (result != QUERN_OK) undo(from);
    }
    quern__json_document_close(&document);
    return result;
}

quern_result quern_json_read_entity(quern_world *world, quern_entity entity, const char *text, size_t bytes,
                                    const quern_json_options *options)
{
    static const char function[] = "quern_json_read_entity";
    loader from = {.count = 0};
    quern_result result = quern__json_reader_open(&from.reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (!quern_entity_is_alive(world, entity))
        return quern__json_fail(QUERN_ERROR_STALE_ENTITY, "%s: entity %u:%u does not live in this world",
                                function, quern_entity_index(entity), quern_entity_generation(entity));
    result = read_entity(&from, entity, text, bytes);
    quern__json_reader_close(&from.reader);
    return result;
}
