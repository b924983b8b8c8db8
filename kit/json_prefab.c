/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads prefabs from JSON. The members are listed in the order of the text, without recursion, so that no text exhausts
 * the stack. A first pass over them checks everything but values, and lists components and targets. A second one reads
 * the values. quern_prefab_create then makes the prefab, or fails and changes nothing. */

#include "kit/json_reader_internal.h"

#include <quern/enabled.h>
#include <quern/prefab.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct prefab_loader {
    quern__json_reader reader;
    quern__json_document document;
    uint32_t member_count, value_count, target_count, id_count;
    uint32_t constructed_count;     /* number of values, from the first, that are constructed in memory */
    const quern__json_item **items; /* the object of each member */
    quern_prefab_member_def *members;
    quern_prefab_value *values;
    quern_prefab_target *targets;
    quern__json_id *sorted;
    uint64_t *ids;
    uint32_t *indices;
    quern_entity *handles; /* of each member */
    char *block;           /* the memory of all these arrays */
    size_t block_bytes;
    char *value_memory; /* the values, in order, each aligned */
    size_t value_bytes;
} prefab_loader;

/* Allocates the arrays in one block, those with the strictest alignment first. */
static quern_result reserve_member_lists(prefab_loader *loader)
{
    /* Upper limits of the numbers of elements, since the members of values may have the same keys. */
    size_t members = 1, values = 0, targets = 0;
    for (uint32_t i = 0; i < loader->document.count; i++) {
        const quern__json_item *item = &loader->document.items[i];
        if (item->key == NULL) continue;
        if (strcmp(item->key, "children") == 0) members += item->count;
        if (strcmp(item->key, "components") == 0) values += item->count;
        if (strcmp(item->key, "targets") == 0) targets += item->span;
    }
    if (members > QUERN_MAX_PREFAB_MEMBERS) members = QUERN_MAX_PREFAB_MEMBERS;
    const quern_allocator *allocator = &loader->reader.allocator;
    const size_t member_bytes = sizeof(quern_prefab_member_def) + sizeof(quern__json_id) +
                                sizeof(uint64_t) + sizeof(quern_entity) + sizeof(const quern__json_item *) +
                                sizeof(uint32_t);
    loader->block_bytes = members * member_bytes + values * sizeof(quern_prefab_value) +
                          targets * sizeof(quern_prefab_target);
    loader->block = allocator->allocate(allocator->user_data, loader->block_bytes, _Alignof(max_align_t));
    if (loader->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for lists of %zu members", members);
    loader->sorted = (quern__json_id *)(void *)loader->block;
    loader->ids = (uint64_t *)(loader->sorted + members);
    loader->handles = (quern_entity *)(loader->ids + members);
    loader->targets = (quern_prefab_target *)(loader->handles + members);
    loader->values = (quern_prefab_value *)(loader->targets + targets);
    loader->members = (quern_prefab_member_def *)(loader->values + values);
    loader->items = (const quern__json_item **)(loader->members + members);
    loader->indices = (uint32_t *)(loader->items + members);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- members */

/* Names the member in the message of an error, and notes its object. Returns `result`. */
static quern_result add_member_to_error(prefab_loader *loader, uint32_t i, quern_result result)
{
    char prefix[128];
    const char *name = quern__json_name_of(loader->items[i]);
    if (result == QUERN_OK) return QUERN_OK;
    if (name != NULL)
        snprintf(prefix, sizeof prefix, "member %u ('%.63s')", i, name);
    else
        snprintf(prefix, sizeof prefix, "member %u", i);
    return quern__json_note(&loader->reader, loader->items[i], quern__json_prefix_error(result, prefix));
}

static quern_result fail_at(prefab_loader *loader, const quern__json_item *item, const char *key,
                            const char *expected)
{
    return quern__json_note(
        &loader->reader, item,
        quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' must be %s", key, expected));
}

static quern_result append_member(prefab_loader *loader, uint32_t parent, const quern__json_item *item)
{
    const uint32_t i = loader->member_count;
    if (i == QUERN_MAX_PREFAB_MEMBERS)
        return quern__json_note(
            &loader->reader, item,
            quern__json_fail(QUERN_ERROR_LIMIT,
                             "there are more than %d members (QUERN_MAX_PREFAB_MEMBERS): make several "
                             "prefabs",
                             QUERN_MAX_PREFAB_MEMBERS));
    loader->items[i] = item;
    loader->members[i] = (quern_prefab_member_def){.parent = parent};
    loader->handles[i] = quern_prefab_member_handle(i);
    loader->member_count++;
    const quern__json_item *children = quern__json_member(item, "children");
    if (item->kind != QUERN__JSON_OBJECT)
        return add_member_to_error(loader, i, fail_at(loader, item, "children", "an array of objects"));
    if (children != NULL && children->kind != QUERN__JSON_ARRAY)
        return add_member_to_error(loader, i, fail_at(loader, children, "children", "an array of objects"));
    return QUERN_OK;
}

/* Returns the object after that of member *at, in the order of the text, and stores the index of its parent in *at.
 * NULL after the last. */
static const quern__json_item *next_member(const prefab_loader *loader, uint32_t *at)
{
    const quern__json_item *next = quern__json_first(quern__json_member(loader->items[*at], "children"));
    while (next == NULL && *at > 0) {
        const quern__json_item *inner = loader->items[*at];
        *at = loader->members[*at].parent;
        next = quern__json_next(quern__json_member(loader->items[*at], "children"), inner);
    }
    return next;
}

static quern_result list_member_ids(prefab_loader *loader)
{
    for (uint32_t i = 0; i < loader->member_count; i++) {
        const quern__json_item *id = quern__json_member(loader->items[i], "id");
        uint64_t number;
        if (id == NULL) continue;
        if (!quern__json_as_count(id, QUERN__JSON_MAX_ID, &number))
            return add_member_to_error(loader, i,
                                       fail_at(loader, id, "id", "a whole number from 0 to 2^53 - 1"));
        loader->sorted[loader->id_count++] = (quern__json_id){number, i};
    }
    loader->reader.handles = (quern__json_handles){.ids = loader->ids,
                                                   .indices = loader->indices,
                                                   .created = loader->handles,
                                                   .count = loader->id_count,
                                                   .accepts_text = true};
    uint32_t repeated = 0;
    const quern_result result =
        quern__json_sort_ids(loader->sorted, loader->id_count, loader->ids, loader->indices, &repeated);
    return result == QUERN_OK ? QUERN_OK : add_member_to_error(loader, repeated, result);
}

/* -------------------------------------------------------------------------------------- values of members */

/* Returns the result of a failed quern_world_disabled_tag, which has only a message, and keeps that. A call that would
 * fail anyway, and changes nothing, says whether the world is locked. */
static quern_result fail_disabled_tag(quern_world *world)
{
    char message[256];
    snprintf(message, sizeof message, "%.255s", quern_error_message());
    const bool is_locked = quern_prefab_destroy(world, (quern_prefab){0}) == QUERN_ERROR_WORLD_LOCKED;
    return quern__json_fail(is_locked ? QUERN_ERROR_WORLD_LOCKED : QUERN_ERROR_OUT_OF_MEMORY, "%s",
                            message);
}

/* Finds a component. The tag of disabled entities is registered if the world does not have it. Stores null if the
 * component is unknown and left out. */
static quern_result find_component(prefab_loader *loader, const char *name, quern_component *out_component)
{
    quern_world *world = loader->reader.world;
    *out_component = quern_component_find(world, name);
    if (!quern_component_is_null(*out_component)) return QUERN_OK;
    if (strcmp(name, "disabled") != 0)
        return quern__json_handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "component", name,
                                          NULL);
    *out_component = quern_world_disabled_tag(world);
    return quern_component_is_null(*out_component) ? fail_disabled_tag(world) : QUERN_OK;
}

static size_t aligned(size_t bytes, size_t alignment_bytes)
{
    return (bytes + alignment_bytes - 1) & ~(alignment_bytes - 1);
}

/* Lists a component of a member, and the memory of its value. */
static quern_result list_value(prefab_loader *loader, quern_prefab_member_def *member,
                               const quern__json_item *item)
{
    quern_component component;
    quern_type_info type;
    quern_result result = find_component(loader, item->key, &component);
    if (result != QUERN_OK || quern_component_is_null(component)) return result;
    result = quern_component_get_info(loader->reader.world, component, &type);
    if (result != QUERN_OK) return result;
    if (type.is_managed)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is maintained by the world: list targets of the relation in 'targets', and "
            "members of the tree in 'children'",
            type.name);
    loader->values[loader->value_count++] = (quern_prefab_value){.component = component};
    loader->value_bytes = aligned(loader->value_bytes, type.alignment_bytes) + type.size_bytes;
    member->value_count++;
    return QUERN_OK;
}

/* Marks the components of a member that its list 'disabled' names. */
static quern_result list_disabled(prefab_loader *loader, quern_prefab_member_def *member,
                                  const quern__json_item *components, const quern__json_item *item)
{
    const char *name = item->kind == QUERN__JSON_STRING ? item->text : "";
    quern_prefab_value *values = loader->values + loader->value_count - member->value_count;
    quern_type_info type;
    if (quern__json_member(components, name) == NULL)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'disabled' names '%.63s', which is not in 'components': add it there, or remove it from the "
            "list",
            name);
    const quern_component component = quern_component_find(loader->reader.world, name);
    for (uint32_t i = 0; i < member->value_count; i++) {
        if (values[i].component.bits != component.bits) continue;
        const quern_result result = quern_component_get_info(loader->reader.world, component, &type);
        if (result == QUERN_OK && !type.can_disable)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                    "component '%s' cannot be disabled: register it with can_disable, or "
                                    "remove it from the list",
                                    name);
        values[i].is_disabled = true;
        return result;
    }
    return QUERN_OK; /* the component was left out */
}

static quern_result list_values(prefab_loader *loader, uint32_t i)
{
    quern_prefab_member_def *member = &loader->members[i];
    const quern__json_item *components = quern__json_member(loader->items[i], "components"), *item;
    const quern__json_item *disabled = quern__json_member(loader->items[i], "disabled");
    if (components != NULL && components->kind != QUERN__JSON_OBJECT)
        return fail_at(loader, components, "components", "an object with a member for each component");
    if (disabled != NULL && disabled->kind != QUERN__JSON_ARRAY)
        return fail_at(loader, disabled, "disabled", "an array of component names");
    member->values = loader->values + loader->value_count;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        const quern_result result = list_value(loader, member, item);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    }
    for (item = quern__json_first(disabled); item != NULL; item = quern__json_next(disabled, item)) {
        const quern_result result = list_disabled(loader, member, components, item);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

/* Reads the values of a member. *at: index of the first of them, and then of the next member's. *used_bytes: memory of
 * the values before it. */
static quern_result read_values(prefab_loader *loader, uint32_t i, uint32_t *at, size_t *used_bytes)
{
    const quern__json_item *components = quern__json_member(loader->items[i], "components"), *item;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        const quern_component component = quern_component_find(loader->reader.world, item->key);
        quern_type_info type;
        if (quern_component_is_null(component)) continue; /* left out */
        quern_prefab_value *value = &loader->values[(*at)++];
        quern_result result = quern_component_get_info(loader->reader.world, component, &type);
        if (result != QUERN_OK) return result;
        char *memory = NULL;
        if (type.size_bytes > 0) {
            *used_bytes = aligned(*used_bytes, type.alignment_bytes);
            memory = loader->value_memory + *used_bytes;
            *used_bytes += type.size_bytes;
            quern__json_construct(&type, memory);
        }
        value->value = memory;
        loader->constructed_count = *at;
        result = quern__json_read_fields(&loader->reader, &type, item, memory);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

static quern_result read_all_values(prefab_loader *loader)
{
    const quern_allocator *allocator = &loader->reader.allocator;
    uint32_t at = 0;
    size_t used_bytes = 0;
    if (loader->value_bytes > 0)
        loader->value_memory =
            allocator->allocate(allocator->user_data, loader->value_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (loader->value_bytes > 0 && loader->value_memory == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for values of %zu bytes",
                                loader->value_bytes);
    for (uint32_t i = 0; i < loader->member_count; i++) {
        const quern_result result =
            add_member_to_error(loader, i, read_values(loader, i, &at, &used_bytes));
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------- targets and slots of members */

static quern_result list_target(prefab_loader *loader, quern_prefab_member_def *member,
                                quern_relation relation, const quern__json_item *item)
{
    quern_prefab_target target = {.relation = relation};
    uint32_t index;
    if (item->kind == QUERN__JSON_STRING) {
        const quern_result result = quern__json_read_entity_text(&loader->reader, item, &target.target);
        if (result != QUERN_OK) return quern__json_note(&loader->reader, item, result);
    } else if (quern__json_find_id(&loader->reader.handles, item, &index)) {
        target.target = loader->handles[index];
    } else {
        return quern__json_note(
            &loader->reader, item,
            quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "a target must be the id of a member, or the path of an entity"));
    }
    loader->targets[loader->target_count++] = target;
    member->target_count++;
    return QUERN_OK;
}

/* Lists the targets of a member in one relation: one target, or an array of them. */
static quern_result list_relation(prefab_loader *loader, quern_prefab_member_def *member,
                                  const quern__json_item *item)
{
    const quern_relation relation = quern_relation_find(loader->reader.world, item->key);
    if (strcmp(item->key, "parent") == 0)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'parent' is the hierarchy: list the member in 'children' of its parent instead");
    if (quern_relation_is_null(relation))
        return quern__json_handle_unknown(&loader->reader, QUERN_ERROR_INVALID_ARGUMENT, "relation",
                                          item->key, NULL);
    if (item->kind != QUERN__JSON_ARRAY) return list_target(loader, member, relation, item);
    const quern__json_item *element = quern__json_first(item);
    for (; element != NULL; element = quern__json_next(item, element)) {
        const quern_result result = list_target(loader, member, relation, element);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result list_targets(prefab_loader *loader, uint32_t i)
{
    quern_prefab_member_def *member = &loader->members[i];
    const quern__json_item *targets = quern__json_member(loader->items[i], "targets"), *item;
    if (targets != NULL && targets->kind != QUERN__JSON_OBJECT)
        return fail_at(loader, targets, "targets", "an object with a member for each relation");
    member->targets = loader->targets + loader->target_count;
    for (item = quern__json_first(targets); item != NULL; item = quern__json_next(targets, item)) {
        quern_result result = list_relation(loader, member, item);
        if (result != QUERN_OK)
            return quern__json_note(&loader->reader, item, quern__json_prefix_error(result, item->key));
    }
    return QUERN_OK;
}

static quern_result read_slot(prefab_loader *loader, uint32_t i)
{
    const quern__json_item *slot = quern__json_member(loader->items[i], "slot");
    if (slot == NULL) return QUERN_OK;
    if (slot->kind != QUERN__JSON_STRING) return fail_at(loader, slot, "slot", "the name of a slot");
    loader->members[i].slot = quern_component_find(loader->reader.world, slot->text);
    if (!quern_component_is_null(loader->members[i].slot)) return QUERN_OK;
    return quern__json_note(&loader->reader, slot,
                            quern__json_handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT,
                                                       "slot", slot->text, NULL));
}

static bool is_member_key(const char *key)
{
    static const char *const keys[] = {"id",       "name",    "slot",    "components",
                                       "disabled", "targets", "children"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static bool is_root_key(const char *key)
{
    return strcmp(key, "quern") == 0 || strcmp(key, "prefab") == 0;
}

/* Reads all of a member but its values. */
static quern_result list_member(prefab_loader *loader, uint32_t i)
{
    const quern__json_item *object = loader->items[i], *name = quern__json_member(object, "name");
    quern_result result =
        quern__json_check_members(&loader->reader, object, "key of a member", is_member_key);
    if (result == QUERN_OK && name != NULL && name->kind != QUERN__JSON_STRING)
        result = fail_at(loader, name, "name", "a string");
    loader->members[i].name = quern__json_name_of(object);
    if (result == QUERN_OK) result = read_slot(loader, i);
    if (result == QUERN_OK) result = list_values(loader, i);
    if (result == QUERN_OK) result = list_targets(loader, i);
    return add_member_to_error(loader, i, result);
}

/* -------------------------------------------------------------------------------------------- prefab */

/* Notes the object of the member that a message of quern_prefab_create names: that with the slot, or the first one. */
static quern_result note_created_member(prefab_loader *loader, quern_result result)
{
    static const char of_slot[] = "the slot of member ", of_any[] = ": member ";
    const char *message = quern_error_message(), *slot = strstr(message, of_slot);
    const char *found = slot != NULL ? slot + strlen(of_slot) : strstr(message, of_any);
    if (result == QUERN_OK || found == NULL) return result;
    const unsigned long index = strtoul(slot != NULL ? found : found + strlen(of_any), NULL, 10);
    return index < loader->member_count ? quern__json_note(&loader->reader, loader->items[index], result)
                                        : result;
}

/* The first pass: reads all but values. */
static quern_result list_prefab(prefab_loader *loader)
{
    const quern__json_item *root = loader->document.items;
    const quern__json_item *version = quern__json_member(root, "quern");
    const quern__json_item *prefab = quern__json_member(root, "prefab");
    if (!quern__json_is(version, QUERN__JSON_NUMBER) || !quern__json_is(prefab, QUERN__JSON_OBJECT))
        return quern__json_note(
            &loader->reader, root,
            quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "a prefab must be an object with a number 'quern' and an object 'prefab', "
                             "its root"));
    quern_result result = quern__json_check_version(&loader->reader, version);
    if (result == QUERN_OK)
        result = quern__json_check_members(&loader->reader, root, "member", is_root_key);
    if (result == QUERN_OK) result = reserve_member_lists(loader);
    if (result == QUERN_OK) result = append_member(loader, 0, prefab);
    while (result == QUERN_OK) {
        uint32_t parent = loader->member_count - 1;
        const quern__json_item *item = next_member(loader, &parent);
        if (item == NULL) break;
        result = append_member(loader, parent, item);
    }
    if (result == QUERN_OK) result = list_member_ids(loader);
    for (uint32_t i = 0; i < loader->member_count && result == QUERN_OK; i++)
        result = list_member(loader, i);
    return result;
}

quern_result quern_json_read_prefab(quern_world *world, const char *text, size_t bytes,
                                    const quern_json_options *options, quern_prefab *out_prefab)
{
    static const char function[] = "quern_json_read_prefab";
    prefab_loader loader = {.member_count = 0};
    quern_result result = quern__json_reader_open(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (out_prefab == NULL)
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: 'out_prefab' is NULL", function);
    result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = list_prefab(&loader);
    if (result == QUERN_OK) result = read_all_values(&loader);
    if (result == QUERN_OK) {
        result = quern_prefab_create(world, loader.members, loader.member_count, out_prefab);
        result = note_created_member(&loader, result);
    }
    result = quern__json_add_place(&loader.document, loader.reader.place, result);
    result = quern__json_prefix_error(result, function);
    const quern_allocator *allocator = &loader.reader.allocator;
    for (uint32_t i = 0; i < loader.constructed_count; i++) {
        const quern_prefab_value *value = &loader.values[i];
        quern_type_info type;
        if (value->value != NULL &&
            quern_component_get_info(loader.reader.world, value->component, &type) == QUERN_OK)
            quern__json_destroy(&type, (void *)value->value);
    }
    if (loader.value_memory != NULL)
        allocator->release(allocator->user_data, loader.value_memory, loader.value_bytes,
                           QUERN_MAX_ALIGNMENT_BYTES);
    if (loader.block != NULL)
        allocator->release(allocator->user_data, loader.block, loader.block_bytes, _Alignof(max_align_t));
    quern__json_document_close(&loader.document);
    quern__json_reader_close(&loader.reader);
    return result;
}
