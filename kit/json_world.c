/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads entities and worlds from JSON. A first pass over the document checks that everything fits, and keeps plain
 * values. Then entities are created and a second pass records commands for them; one flush applies all commands or none.
 * A flush drops commands that would close a cycle or take a used name, so the first pass checks for both. */

#include "kit/json_reader_internal.h"

#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/enabled.h>
#include <quern/name.h>

#include <stdlib.h>

#define NO_ENTITY UINT32_MAX

/* A name and the entity's parent, for the check that siblings have different names. */
typedef struct entity_name {
    const char *name;
    uint32_t parent; /* index of an entity, or NO_ENTITY */
} entity_name;

typedef struct world_loader {
    quern__json_reader reader;
    quern__json_document document;
    quern_commands *commands; /* NULL during the first pass, which only checks */
    uint32_t count;           /* number of entities */
    const quern__json_item *entities;
    const quern__json_item **items;
    quern__json_id *sorted;
    uint64_t *ids;
    uint32_t *indices;
    quern_entity *created;
    uint32_t *targets; /* index of each entity's target in the relation that is checked */
    entity_name *names;
    char *block; /* the memory of all these arrays */
    size_t block_bytes;
    quern_byte_buffer
        values; /* values that the first pass has read and the second one only records, in order */
    size_t used_value_bytes; /* those that the second pass has recorded */
} world_loader;

/* -------------------------------------------------------------------------------------- components */

static quern_result record(const world_loader *loader, quern_entity entity, quern_component component,
                           const quern_type_info *type)
{
    if (type->size_bytes == 0) return quern_commands_add(loader->commands, entity, component, NULL);
    return quern_commands_set(loader->commands, entity, component, loader->reader.scratch);
}

/* Records the values of an entity's edges, which are in the scratch memory: of its target, or of each element of a list. */
static quern_result record_edge_values(const world_loader *loader, quern_entity entity,
                                       const quern_type_info *type, quern_entity target)
{
    quern_relation_def def;
    quern_result result = quern_relation_get_def(loader->reader.world, type->edges_of, &def);
    if (result == QUERN_OK && !def.many)
        return quern_commands_set_edge_value(loader->commands, entity, type->edges_of, target,
                                             loader->reader.scratch);
    quern_list list;
    memcpy(&list, loader->reader.scratch, sizeof list);
    for (uint32_t i = 0; i < list.count && result == QUERN_OK; i++) {
        const char *element = (const char *)list.items + (size_t)i * type->fields[0].element->size_bytes;
        memcpy(&target, element, sizeof target);
        if (!quern_entity_is_null(target))
            result =
                quern_commands_set_edge_value(loader->commands, entity, type->edges_of, target, element);
    }
    return result;
}

/* Whether the first pass keeps new values of a type: plain bytes without handles of entities, which the first pass does
 * not have. */
static bool keeps_values(const quern_type_info *type)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        if (type->fields[i].type == QUERN_FIELD_ENTITY) return false;
    return type->size_bytes > 0 && !quern__json_has_hooks(type);
}

/* Reads a value that the first pass keeps, or records the kept one. */
static quern_result load_kept(world_loader *loader, quern_entity entity, quern_component component,
                              const quern_type_info *type, const quern__json_item *item)
{
    char *value = loader->reader.scratch;
    if (loader->commands == NULL) {
        quern__json_construct(type, value);
        const quern_result result = quern__json_read_fields(&loader->reader, type, item, value);
        const quern_sink sink = quern_sink_bytes(&loader->values);
        loader->values.allocator = loader->reader.allocator;
        if (result != QUERN_OK || sink.write(sink.user_data, value, type->size_bytes)) return result;
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for values of %zu bytes",
                                loader->values.size_bytes + type->size_bytes);
    }
    memcpy(value, (const char *)loader->values.bytes + loader->used_value_bytes, type->size_bytes);
    loader->used_value_bytes += type->size_bytes;
    return record(loader, entity, component, type);
}

/* Reads a new value. Recording moves the value into the commands if its type cannot be copied. */
static quern_result load_new(world_loader *loader, quern_entity entity, quern_component component,
                             const quern_type_info *type, const quern__json_item *item)
{
    char *value = loader->reader.scratch;
    if (type->size_bytes > 0) quern__json_construct(type, value);
    quern_result result = quern__json_read_fields(&loader->reader, type, item, value);
    const bool is_recorded = result == QUERN_OK && loader->commands != NULL;
    if (is_recorded) result = record(loader, entity, component, type);
    const bool is_handed_over = is_recorded && result == QUERN_OK && type->hooks.copy == NULL;
    if (type->size_bytes > 0 && !is_handed_over) quern__json_destroy(type, value);
    return result;
}

/* Fails if an element in the scratch memory, of a list of the values of edges, has a target that the entity does not have:
 * its command would be dropped, and those of other changes applied. */
static quern_result check_edges_of(const world_loader *loader, quern_entity entity,
                                   const quern_type_info *type)
{
    const quern_world *world = loader->reader.world;
    quern_relation_def def;
    quern_list list;
    quern_result result = quern_relation_get_def(world, type->edges_of, &def);
    if (result != QUERN_OK || !def.many) return result;
    memcpy(&list, loader->reader.scratch, sizeof list);
    for (uint32_t i = 0; i < list.count; i++) {
        quern_entity target;
        memcpy(&target, (const char *)list.items + (size_t)i * type->fields[0].element->size_bytes,
               sizeof target);
        if (!quern_entity_is_null(target) &&
            !quern_entity_has_target(world, entity, type->edges_of, target))
            return quern__json_fail(QUERN_ERROR_COMPONENT_ABSENT,
                                    "element %u of '%s' holds the value of an edge to an entity that is no "
                                    "target in '%s': relate the entity to it first",
                                    i, type->name, def.name);
    }
    return QUERN_OK;
}

/* Changes the given fields of a value that the entity has already. */
static quern_result load_existing(world_loader *loader, quern_entity entity, quern_component component,
                                  const quern_type_info *type, const quern__json_item *item)
{
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' has a destroy hook and no copy hook: set its fields by "
                                "quern_entity_set_text",
                                type->name);
    if (type->size_bytes > 0)
        quern__json_copy(type, loader->reader.scratch,
                         quern_entity_get(loader->reader.world, entity, component));
    quern_result result = quern__json_read_fields(&loader->reader, type, item, loader->reader.scratch);
    const bool has_edges = !quern_relation_is_null(type->edges_of);
    if (result == QUERN_OK && has_edges && loader->commands == NULL)
        result = check_edges_of(loader, entity, type);
    else if (result == QUERN_OK && has_edges)
        result = record_edge_values(loader, entity, type,
                                    quern_entity_target(loader->reader.world, entity, type->edges_of));
    else if (result == QUERN_OK && loader->commands != NULL)
        result = record(loader, entity, component, type);
    if (type->hooks.copy != NULL) quern__json_destroy(type, loader->reader.scratch);
    return result;
}

/* entity: null if it does not exist yet. */
static quern_result load_component(world_loader *loader, quern_entity entity, const quern__json_item *item)
{
    quern_world *world = loader->reader.world;
    quern_type_info type;
    const quern_component component = quern_component_find(world, item->key);
    if (quern_component_is_null(component))
        return quern__json_handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "component",
                                          item->key, NULL);
    quern_result result = quern_component_get_info(world, component, &type);
    if (result != QUERN_OK) return result;
    if (type.is_managed)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is maintained by the world: list the relation in 'children' instead",
            type.name);
    result = quern__json_reserve_scratch(&loader->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    const bool has_component = loader->created == NULL && quern_entity_has(world, entity, component);
    if (has_component) return load_existing(loader, entity, component, &type, item);
    if (!quern_relation_is_null(type.edges_of) && loader->created == NULL && !quern_entity_is_null(entity))
        return quern__json_fail(QUERN_ERROR_COMPONENT_ABSENT,
                                "'%s' holds the values of edges, and the entity has no target in their "
                                "relation: relate the entity first",
                                type.name);
    if (!quern_relation_is_null(type.edges_of)) /* after the targets: see record_links */
        return loader->commands == NULL ? load_new(loader, entity, component, &type, item) : QUERN_OK;
    return keeps_values(&type) ? load_kept(loader, entity, component, &type, item)
                               : load_new(loader, entity, component, &type, item);
}

/* Applies one element of a flag's list: puts the component that it names into the flag's state. */
static quern_result load_listed(world_loader *loader, quern_entity entity, const quern_flag_info *flag,
                                const quern__json_item *components, const quern__json_item *item)
{
    const char *name = item->kind == QUERN__JSON_STRING ? item->text : "";
    const quern_component component = quern_component_find(loader->reader.world, name);
    quern_type_info type;
    if (quern__json_member(components, name) == NULL)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' names '%.63s', which is not in 'components': add it there, or remove it from the list",
            flag->list_name, name);
    if (quern_component_is_null(component)) return QUERN_OK; /* the component was left out */
    const quern_result result = quern_component_get_info(loader->reader.world, component, &type);
    if (result != QUERN_OK) return result;
    if (!quern_type_has_flag(&type, flag))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "component '%s' %s", name, flag->without);
    return loader->commands != NULL ? flag->list(loader->commands, entity, component) : QUERN_OK;
}

static bool is_root_member(const char *key)
{
    return strcmp(key, "quern") == 0 || strcmp(key, "components") == 0 || strcmp(key, "resources") == 0 ||
           strcmp(key, "entities") == 0;
}

static bool is_entity_member(const char *key)
{
    quern_flag_info flag;
    bool is_member = strcmp(key, "id") == 0 || strcmp(key, "name") == 0 || strcmp(key, "components") == 0 ||
                     strcmp(key, "children") == 0;
    for (uint32_t i = 0; !is_member && quern__json_next_list(&i, &flag);)
        is_member = strcmp(flag.list_name, key) == 0;
    return is_member;
}

static quern_result load_entity(world_loader *loader, quern_entity entity, const quern__json_item *object)
{
    const quern__json_item *components = quern__json_member(object, "components"), *item;
    if (!quern__json_is(components, QUERN__JSON_OBJECT))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "an entity must have an object 'components'");
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name);
        if (list != NULL && list->kind != QUERN__JSON_ARRAY)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                    "'%s' of an entity must be an array of component names",
                                    flag.list_name);
    }
    quern_result result =
        quern__json_check_members(&loader->reader, object, "member of an entity", is_entity_member);
    if (result != QUERN_OK) return result;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        result = load_component(loader, entity, item);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    }
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name);
        for (item = quern__json_first(list); item != NULL; item = quern__json_next(list, item)) {
            result = load_listed(loader, entity, &flag, components, item);
            if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
        }
    }
    return QUERN_OK;
}

/* Names the entity in the message of an error, and notes its item. Returns `result`. */
static quern_result add_entity_to_error(world_loader *loader, quern_result result,
                                        const quern__json_item *object)
{
    char prefix[64] = "entity without a valid id";
    uint64_t id;
    if (result == QUERN_OK) return QUERN_OK;
    if (quern__json_as_count(quern__json_member(object, "id"), QUERN__JSON_MAX_ID, &id))
        snprintf(prefix, sizeof prefix, "entity with id %llu", (unsigned long long)id);
    return quern__json_note(&loader->reader, object, quern__json_prefix_error(result, prefix));
}

static quern_result load_entities(world_loader *loader)
{
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern_entity entity = loader->commands != NULL ? loader->created[i] : quern_entity_null();
        const quern_result result =
            add_entity_to_error(loader, load_entity(loader, entity, loader->items[i]), loader->items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- resources */

/* Reads a resource. stores_value: whether the value is stored in the world, after all checks. */
static quern_result load_resource(world_loader *loader, const quern__json_item *item, bool stores_value)
{
    quern_world *world = loader->reader.world;
    const quern_resource resource = quern_resource_find(world, item->key);
    quern_type_info type;
    if (resource.bits == 0)
        return quern__json_handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_RESOURCE, "resource",
                                          item->key, NULL);
    void *value = quern_resource_get(world, resource);
    quern_result result = quern_resource_get_info(world, resource, &type);
    if (result == QUERN_OK && type.field_count == 0)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "resource '%s' has no described fields: describe them, or remove it from 'resources'",
            type.name);
    if (result == QUERN_OK) result = quern__json_reserve_scratch(&loader->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    char *copy = loader->reader.scratch;
    quern__json_copy(&type, copy, value);
    result = quern__json_read_fields(&loader->reader, &type, item, copy);
    if (type.hooks.copy != NULL && stores_value)
        quern__json_replace(&type, value, copy, result);
    else if (type.hooks.copy != NULL)
        quern__json_destroy(&type, copy);
    else if (result == QUERN_OK && stores_value)
        memcpy(value, copy, type.size_bytes);
    return result;
}

static quern_result load_resources(world_loader *loader, const quern__json_item *root, bool stores_value)
{
    const quern__json_item *resources = quern__json_member(root, "resources"), *item;
    if (resources != NULL && resources->kind != QUERN__JSON_OBJECT)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'resources' must be an object");
    for (item = quern__json_first(resources); item != NULL; item = quern__json_next(resources, item)) {
        const quern_result result = load_resource(loader, item, stores_value);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- relations */

static const quern__json_item *children_of(const quern__json_item *object, const char *relation)
{
    return quern__json_member(quern__json_member(object, "children"), relation);
}

/* With several targets per source, other entities may list the child as well: its target in `targets` is then the last
 * one that did. */
static quern_result set_target_of_child(world_loader *loader, uint32_t target, const quern__json_item *item,
                                        const quern_relation_def *relation)
{
    uint32_t child;
    if (!quern__json_find_id(&loader->reader.handles, item, &child))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "children by '%s' must be ids of entities in the JSON", relation->name);
    const uint32_t known = loader->targets[child];
    if (child == target || (relation->many ? known == target : known != NO_ENTITY))
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "entity with id %.*s is listed as a child by '%s' twice, or as its own child", (int)item->bytes,
            item->text, relation->name);
    loader->targets[child] = target;
    return QUERN_OK;
}

static quern_result collect_targets(world_loader *loader, const quern_relation_def *relation)
{
    for (uint32_t i = 0; i < loader->count; i++)
        loader->targets[i] = NO_ENTITY;
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *children = children_of(loader->items[i], relation->name), *child;
        if (children != NULL && children->kind != QUERN__JSON_ARRAY)
            return quern__json_note(&loader->reader, children,
                                    quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                                     "children by '%s' must be an array of ids",
                                                     relation->name));
        for (child = quern__json_first(children); child != NULL;
             child = quern__json_next(children, child)) {
            const quern_result result = add_entity_to_error(
                loader, set_target_of_child(loader, i, child, relation), loader->items[i]);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

/* Follows the targets of each entity upwards until they end or reach an entity that was visited before. Entities
 * visited for entity i are marked with i, so reaching the mark i again is a cycle. */
static quern_result check_cycles(world_loader *loader, const char *relation)
{
    uint32_t *visited_by = loader->indices + loader->count;
    for (uint32_t i = 0; i < loader->count; i++)
        visited_by[i] = NO_ENTITY;
    for (uint32_t i = 0; i < loader->count; i++) {
        uint32_t at = i;
        while (at != NO_ENTITY && visited_by[at] == NO_ENTITY) {
            visited_by[at] = i;
            at = loader->targets[at];
        }
        if (at != NO_ENTITY && visited_by[at] == i)
            return quern__json_fail(
                QUERN_ERROR_CYCLE,
                "entity with id %llu is its own ancestor by '%s': remove a child from the cycle",
                (unsigned long long)loader->sorted[at].id, relation);
    }
    return QUERN_OK;
}

static int compare_names(const void *a, const void *b)
{
    const entity_name *x = a, *y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Fails if two siblings have the same name. Precondition: `targets` are those of the parent hierarchy. */
static quern_result check_names(world_loader *loader)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *name = quern__json_member(loader->items[i], "name");
        if (name == NULL) continue;
        if (name->kind != QUERN__JSON_STRING)
            return add_entity_to_error(
                loader, quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'name' must be a string"),
                loader->items[i]);
        loader->names[count++] = (entity_name){name->text, loader->targets[i]};
    }
    if (count > 0) qsort(loader->names, count, sizeof *loader->names, compare_names);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && compare_names(&loader->names[i - 1], &loader->names[i]) == 0)
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "two siblings in the JSON are named '%.63s': rename one",
                                    loader->names[i].name);
        if (loader->names[i].parent == NO_ENTITY &&
            !quern_entity_is_null(quern_entity_find(loader->reader.world, loader->names[i].name)))
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "a root of the world is named '%.63s' already: rename one of the two",
                                    loader->names[i].name);
    }
    return QUERN_OK;
}

static quern_result check_relation_names(world_loader *loader)
{
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *children = quern__json_member(loader->items[i], "children"), *item;
        if (children != NULL && children->kind != QUERN__JSON_OBJECT)
            return add_entity_to_error(
                loader, quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'children' must be an object"),
                loader->items[i]);
        for (item = quern__json_first(children); item != NULL; item = quern__json_next(children, item)) {
            if (!quern_relation_is_null(quern_relation_find(loader->reader.world, item->key))) continue;
            const quern_result result = quern__json_handle_unknown(
                &loader->reader, QUERN_ERROR_INVALID_ARGUMENT, "relation", item->key, NULL);
            if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
        }
    }
    return QUERN_OK;
}

static quern_result check_relations(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    quern_result result = check_relation_names(loader);
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RELATION) && result == QUERN_OK; i++) {
        quern_type_info type;
        quern_relation_def def;
        result = quern_type_at(world, QUERN_TYPE_RELATION, i, &type);
        if (result == QUERN_OK) result = quern_relation_get_def(world, type.relation, &def);
        if (result == QUERN_OK) result = collect_targets(loader, &def);
        if (result == QUERN_OK && def.levels) result = check_cycles(loader, def.name);
    }
    if (result == QUERN_OK) result = collect_targets(loader, &(quern_relation_def){.name = "parent"});
    return result == QUERN_OK ? check_names(loader) : result;
}

/* Reads a new value with which edges of the relation begin into the scratch memory. type: of the value. Returns false if
 * the object has none, or if reading fails, with *out_result. The caller ends the value. */
static bool read_edge_value(world_loader *loader, const quern__json_item *object,
                            const quern_type_info *type, quern_result *out_result)
{
    const quern__json_item *item = quern__json_member(quern__json_member(object, "components"), type->name);
    *out_result = QUERN_OK;
    if (item == NULL) return false;
    *out_result = quern__json_reserve_scratch(&loader->reader, type->size_bytes);
    if (*out_result != QUERN_OK) return false;
    quern__json_construct(type, loader->reader.scratch);
    *out_result = quern__json_read_fields(&loader->reader, type, item, loader->reader.scratch);
    if (*out_result == QUERN_OK) return true;
    quern__json_destroy(type, loader->reader.scratch);
    return false;
}

/* Records the value of the edge from a source to its only target, or those of all edges of the source. */
static quern_result record_new_edge_values(world_loader *loader, uint32_t source, quern_component values,
                                           quern_entity target)
{
    quern_type_info type;
    quern_result result = quern_component_get_info(loader->reader.world, values, &type);
    if (result != QUERN_OK || !read_edge_value(loader, loader->items[source], &type, &result))
        return result;
    result = record_edge_values(loader, loader->created[source], &type, target);
    quern__json_destroy(&type, loader->reader.scratch);
    return result != QUERN_OK ? add_entity_to_error(loader, result, loader->items[source]) : QUERN_OK;
}

/* Relates children in the order in which the relation lists new ones: ordered relations append, others prepend. */
static quern_result record_children(world_loader *loader, uint32_t target, quern_relation relation,
                                    const quern_relation_def *def, const quern__json_item *children)
{
    const bool is_ordered = def->ordered;
    for (uint32_t i = 0; i < children->count; i++) {
        /* All elements are numbers without contents, so they are adjacent. */
        const quern__json_item *item = children + 1 + (is_ordered ? i : children->count - 1 - i);
        uint32_t child = 0;
        (void)quern__json_find_id(&loader->reader.handles, item, &child);
        quern_result result = quern_commands_relate(loader->commands, loader->created[child], relation,
                                                    loader->created[target]);
        if (result == QUERN_OK && !def->many && !quern_component_is_null(def->value))
            result = record_new_edge_values(loader, child, def->value, loader->created[target]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Records the relations, and then the names, since names must be unique among the siblings that result. */
static quern_result record_links(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    for (uint32_t k = 0; k < quern_type_count(world, QUERN_TYPE_RELATION); k++) {
        quern_type_info type;
        quern_relation_def def;
        quern_result result = quern_type_at(world, QUERN_TYPE_RELATION, k, &type);
        if (result == QUERN_OK) result = quern_relation_get_def(world, type.relation, &def);
        for (uint32_t i = 0; i < loader->count && result == QUERN_OK; i++) {
            const quern__json_item *children = children_of(loader->items[i], def.name);
            if (children != NULL) result = record_children(loader, i, type.relation, &def, children);
        }
        for (uint32_t i = 0; i < loader->count && result == QUERN_OK && def.many; i++)
            if (!quern_component_is_null(def.value))
                result = record_new_edge_values(loader, i, def.value, quern_entity_null());
        if (result != QUERN_OK) return result;
    }
    for (uint32_t i = 0; i < loader->count; i++) {
        const char *name = quern__json_name_of(loader->items[i]);
        const quern_result result =
            name != NULL ? quern_commands_set_name(loader->commands, loader->created[i], name) : QUERN_OK;
        if (result != QUERN_OK) return add_entity_to_error(loader, result, loader->items[i]);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- world */

static quern_result list_world_ids(world_loader *loader)
{
    const quern__json_item *item;
    uint32_t i = 0;
    for (item = quern__json_first(loader->entities); item != NULL;
         item = quern__json_next(loader->entities, item)) {
        const quern__json_item *id = quern__json_member(item, "id");
        uint64_t number;
        if (!quern__json_as_count(id, QUERN__JSON_MAX_ID, &number))
            return quern__json_note(
                &loader->reader, item,
                quern__json_fail(
                    QUERN_ERROR_INVALID_ARGUMENT,
                    "entity %u of 'entities' has no 'id' that is a whole number from 0 to 2^53 - 1", i));
        loader->sorted[i] = (quern__json_id){number, i};
        loader->items[i++] = item;
    }
    const quern_result result =
        quern__json_sort_ids(loader->sorted, loader->count, loader->ids, loader->indices, &i);
    if (result != QUERN_OK) return quern__json_note(&loader->reader, loader->items[i], result);
    for (i = 0; i < loader->count; i++) /* from here on sorted[i].id is the id of entity i, for messages */
        loader->sorted[loader->indices[i]].id = loader->ids[i];
    loader->reader.handles =
        (quern__json_handles){.ids = loader->ids, .indices = loader->indices, .count = loader->count};
    return QUERN_OK;
}

/* Allocates the arrays in one block, count + 1 elements each, those with the strictest alignment first. */
static quern_result reserve_world_lists(world_loader *loader)
{
    const size_t count = loader->count + (size_t)1;
    const size_t bytes = sizeof(entity_name) + sizeof(quern__json_id) + sizeof(quern_entity) +
                         sizeof(uint64_t) + sizeof(const quern__json_item *) + 3 * sizeof(uint32_t);
    const quern_allocator *allocator = &loader->reader.allocator;
    loader->block_bytes = count * bytes;
    loader->block = allocator->allocate(allocator->user_data, loader->block_bytes, _Alignof(max_align_t));
    if (loader->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for lists of %u entities",
                                loader->count);
    loader->names = (entity_name *)(void *)loader->block;
    loader->sorted = (quern__json_id *)(loader->names + count);
    loader->created = (quern_entity *)(loader->sorted + count);
    loader->ids = (uint64_t *)(loader->created + count);
    loader->items = (const quern__json_item **)(loader->ids + count);
    loader->targets = (uint32_t *)(loader->items + count);
    loader->indices = loader->targets + count; /* two arrays of count + 1 elements: see check_cycles */
    return QUERN_OK;
}

/* Registers the parent relation and the disabled tag if the JSON uses them. */
static quern_result register_used_builtins(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    bool needs_disabled = false, needs_parent = false;
    for (uint32_t i = 0; i < loader->count; i++) {
        needs_parent |= children_of(loader->items[i], "parent") != NULL;
        needs_disabled |=
            quern__json_member(quern__json_member(loader->items[i], "components"), "disabled") != NULL;
    }
    const bool has_parent = !needs_parent ||
                            !quern_component_is_null(quern_component_find(world, "parent")) ||
                            !quern_relation_is_null(quern_world_parent(world));
    const bool has_disabled = !needs_disabled ||
                              !quern_component_is_null(quern_component_find(world, "disabled")) ||
                              !quern_component_is_null(quern_world_disabled_tag(world));
    return has_parent && has_disabled ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
}

static quern_result check_world(world_loader *loader, const quern__json_item *root)
{
    const quern__json_item *version = quern__json_member(root, "quern");
    loader->entities = quern__json_member(root, "entities");
    if (!quern__json_is(version, QUERN__JSON_NUMBER) ||
        !quern__json_is(loader->entities, QUERN__JSON_ARRAY))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "a world must be an object with a number 'quern' and an array 'entities'");
    loader->count = loader->entities->count;
    quern_result result = quern__json_check_version(&loader->reader, version);
    if (result == QUERN_OK)
        result = quern__json_check_members(&loader->reader, root, "member", is_root_member);
    if (result == QUERN_OK) result = reserve_world_lists(loader);
    if (result == QUERN_OK) result = list_world_ids(loader);
    if (result == QUERN_OK) result = register_used_builtins(loader);
    if (result == QUERN_OK) result = load_entities(loader);
    if (result == QUERN_OK) result = load_resources(loader, root, false);
    return result == QUERN_OK ? check_relations(loader) : result;
}

/* Destroys the created entities in reverse order, which returns their slots to the free list in the old order. */
static void undo(world_loader *loader)
{
    char message[512];
    strncpy(message, quern_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    (void)quern_world_discard_commands(loader->reader.world);
    for (uint32_t i = loader->count; i-- > 0;)
        if (quern_entity_is_alive(loader->reader.world, loader->created[i]))
            (void)quern_entity_destroy(loader->reader.world, loader->created[i]);
    (void)quern_error_set(QUERN_OK, "%s", message);
}

/* Applies the recorded commands and fails if any was dropped. No other commands wait. */
static quern_result flush(quern_world *world)
{
    quern_flush_stats stats;
    quern_result result = quern_world_flush(world);
    if (result == QUERN_OK) result = quern_world_get_flush_stats(world, &stats);
    if (result != QUERN_OK || stats.dropped_count == 0) return result;
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "the world dropped %llu commands made from the JSON; nothing was changed",
                            (unsigned long long)stats.dropped_count);
}

static quern_result make_world(world_loader *loader, const quern__json_item *root)
{
    quern_world *world = loader->reader.world;
    quern_result result =
        loader->count > 0 ? quern_entity_create_many(world, NULL, NULL, 0, loader->count, loader->created)
                          : QUERN_OK;
    if (result != QUERN_OK) return result;
    loader->reader.handles.created = loader->created;
    loader->reader.is_second_pass = true;
    loader->commands = quern_world_commands(world);
    result = loader->commands != NULL ? load_entities(loader) : QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_OK) result = record_links(loader);
    if (result == QUERN_OK) result = flush(world);
    if (result != QUERN_OK) {
        undo(loader);
        return result;
    }
    loader->commands = NULL;
    return load_resources(loader, root, true);
}

/* Releases what a loader has, and adds the place and the function to an error. Returns `result`. */
static quern_result close_world_loader(world_loader *loader, quern_result result, const char *function)
{
    const quern_allocator *allocator = &loader->reader.allocator;
    result = quern__json_add_place(&loader->document, loader->reader.place, result);
    quern__json_document_close(&loader->document);
    if (loader->block != NULL)
        allocator->release(allocator->user_data, loader->block, loader->block_bytes, _Alignof(max_align_t));
    quern_byte_buffer_release(&loader->values);
    quern__json_reader_close(&loader->reader);
    return quern__json_prefix_error(result, function);
}

quern_result quern_json_read_world(quern_world *world, const char *text, size_t bytes,
                                   const quern_json_options *options)
{
    static const char function[] = "quern_json_read_world";
    world_loader loader = {.count = 0};
    quern_result result = quern__json_reader_open(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    result = quern_world_flush(world);
    if (result == QUERN_OK)
        result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = check_world(&loader, loader.document.items);
    if (result == QUERN_OK) result = make_world(&loader, loader.document.items);
    options = loader.reader.options;
    for (uint32_t i = 0; i < loader.count && result == QUERN_OK && options->loaded != NULL; i++)
        options->loaded(options->user_data, loader.sorted[i].id, loader.created[i]);
    return close_world_loader(&loader, result, function);
}

quern_result quern_json_read_entity(quern_world *world, quern_entity entity, const char *text, size_t bytes,
                                    const quern_json_options *options)
{
    static const char function[] = "quern_json_read_entity";
    world_loader loader = {.count = 0};
    quern_result result = quern__json_reader_open(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (!quern_entity_is_alive(world, entity))
        return quern__json_fail(QUERN_ERROR_STALE_ENTITY,
                                "%s: entity %u:%u is not alive in this world: pass a living one", function,
                                quern_entity_index(entity), quern_entity_generation(entity));
    result = quern_world_flush(world);
    if (result == QUERN_OK)
        result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = load_entity(&loader, entity, loader.document.items);
    if (result == QUERN_OK) {
        loader.reader.is_second_pass = true;
        loader.commands = quern_world_commands(world);
        result = loader.commands != NULL ? load_entity(&loader, entity, loader.document.items)
                                         : QUERN_ERROR_OUT_OF_MEMORY;
        if (result == QUERN_OK) result = flush(world);
        if (result != QUERN_OK) undo(&loader);
    }
    return close_world_loader(&loader, result, function);
}
