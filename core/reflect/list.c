/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that list what a world has (components, resources, events, relations, entities, names), and
 * those that find components and resources by name. */

#include "core/base/handle.h"

#include "core/base/text.h"
#include "core/entities/entities_internal.h"
#include "core/events/event_internal.h"
#include "core/reactions/hook.h"
#include "core/reflect/reflect_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"
#include "core/storage/list_values.h"
#include "core/world/world_internal.h"

#include <quern/reflect.h>

static quern_type_info info_of(const quern__type *type)
{
    quern_type_info info = {.name = type->name,
                            .type_name = type->type_name,
                            .size_bytes = type->size_bytes,
                            .alignment_bytes = type->alignment_bytes,
                            .fields = type->fields,
                            .field_count = type->field_count,
                            .hooks = type->hooks,
                            .has_list_hooks = type->hooks.copy == quern__lists_copy,
                            .default_value = type->default_value};
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        const bool is_set = (type->flags & flag->bit) != 0;
        memcpy((char *)&info + flag->info_offset_bytes, &is_set, sizeof is_set);
    }
    return info;
}

static quern_result check_arguments(const quern_world *world, const void *out_info, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    return out_info != NULL ? QUERN_OK : quern__fail_null(function, "out_info");
}

/* ------------------------------------------------------------------------------------------- types */

quern_result quern_component_get_info(const quern_world *world, quern_component component,
                                      quern_type_info *out_info)
{
    quern_result result = check_arguments(world, out_info, __func__);
    if (result == QUERN_OK)
        result = quern__in_call(quern__components_check(&world->storage.components, component), __func__);
    if (result != QUERN_OK) return result;
    const quern__component *known = world->storage.components.list.items[quern__component_index(component)];
    *out_info = info_of(&known->type);
    out_info->component = component;
    out_info->required = known->listed_required.items;
    out_info->required_count = known->listed_required.count;
    out_info->is_managed = known->is_managed;
    if (known->edge_owner != 0)
        out_info->edges_of.bits =
            quern__component_handle(&world->storage.components, known->edge_owner - 1).bits;
    out_info->is_relation = known->managed.relation != NULL && known->managed.level == 0;
    out_info->is_hidden |= known->managed.is_hidden;
    return QUERN_OK;
}

quern_result quern_resource_get_info(const quern_world *world, quern_resource resource,
                                     quern_type_info *out_info)
{
    quern_result result = check_arguments(world, out_info, __func__);
    if (result == QUERN_OK)
        result = quern__in_call(quern__resources_check(&world->resources, resource), __func__);
    if (result != QUERN_OK) return result;
    *out_info = info_of(&world->resources.list.items[quern__handle_index(resource.bits)].type);
    out_info->resource = resource;
    return QUERN_OK;
}

quern_result quern_event_get_info(const quern_world *world, quern_event event, quern_type_info *out_info)
{
    quern__channel *channel;
    quern_result result = check_arguments(world, out_info, __func__);
    if (result == QUERN_OK) result = quern__in_call(quern__events_check(world, event, &channel), __func__);
    if (result != QUERN_OK) return result;
    *out_info = info_of(&channel->type);
    out_info->event = event;
    return QUERN_OK;
}

quern_result quern_relation_get_def(const quern_world *world, quern_relation relation,
                                    quern_relation_def *out_def)
{
    quern__relation *known;
    QUERN__NEED(world);
    QUERN__NEED(out_def);
    const quern_result result = quern__relation_check(&world->storage, relation, &known);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    *out_def = (quern_relation_def){.name = quern__relation_name(&world->storage, known),
                                    .on_target_destroyed = known->policy,
                                    .levels = known->has_levels,
                                    .ordered = known->is_ordered,
                                    .many = known->is_many};
    if (quern__relation_has_values(known))
        out_def->value = quern__component_handle(&world->storage.components, known->value_index);
    return QUERN_OK;
}

static quern_result count_types(const quern_world *world, quern_type_kind kind, uint32_t *out_count,
                                const char *function)
{
    *out_count = 0;
    if (world == NULL) return quern__fail_null(function, "world");
    if (kind == QUERN_TYPE_COMPONENT)
        *out_count = world->storage.components.list.count;
    else if (kind == QUERN_TYPE_RESOURCE)
        *out_count = world->resources.list.count;
    else if (kind == QUERN_TYPE_EVENT)
        *out_count = world->events != NULL ? world->events->channels.count : 0;
    else if (kind == QUERN_TYPE_RELATION)
        *out_count = world->storage.relations->list.count;
    else
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: kind is %d, which is no quern_type_kind: pass QUERN_TYPE_COMPONENT to "
                           "QUERN_TYPE_RELATION",
                           function, (int)kind);
    return QUERN_OK;
}

uint32_t quern_type_count(const quern_world *world, quern_type_kind kind)
{
    uint32_t count;
    (void)count_types(world, kind, &count, __func__);
    return count;
}

quern_result quern_type_at(const quern_world *world, quern_type_kind kind, uint32_t index,
                           quern_type_info *out_info)
{
    static const char *const names[] = {[QUERN_TYPE_COMPONENT] = "components",
                                        [QUERN_TYPE_RESOURCE] = "resources",
                                        [QUERN_TYPE_EVENT] = "events",
                                        [QUERN_TYPE_RELATION] = "relations"};
    uint32_t count;
    QUERN__NEED(out_info);
    quern_result result = count_types(world, kind, &count, __func__);
    if (result != QUERN_OK) return result;
    if (index >= count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: index %u is out of range: the world has %u %s", __func__, index, count,
                           names[kind]);
    const uint32_t bits = quern__handle_bits(world->resources.world_tag, index);
    if (kind == QUERN_TYPE_COMPONENT)
        return quern_component_get_info(world, quern__component_handle(&world->storage.components, index),
                                        out_info);
    if (kind == QUERN_TYPE_RESOURCE)
        return quern_resource_get_info(world, (quern_resource){.bits = bits}, out_info);
    if (kind == QUERN_TYPE_EVENT) return quern_event_get_info(world, (quern_event){.bits = bits}, out_info);
    const quern_relation relation =
        quern__relation_handle(&world->storage, world->storage.relations->list.items[index]);
    result = quern_component_get_info(world, quern_relation_component(relation), out_info);
    out_info->relation = relation;
    return result;
}

/* ---------------------------------------------------------------------------------------- entities */

uint32_t quern_world_list_entities(const quern_world *world, quern_entity *out_entities, uint32_t capacity)
{
    QUERN__NEED_OR(world, 0);
    QUERN__NEED_LIST_OR(out_entities, capacity, 0);
    const quern__entities *entities = &world->storage.entities;
    uint32_t count = 0;
    for (uint32_t page = 0; page < entities->pages.count; page++) {
        if (quern__entities_is_absent(entities, page)) continue;
        const uint32_t first = page * QUERN__PAGE_RECORDS,
                       slots = quern__entities_page_slots(entities, page);
        for (uint32_t slot = first; slot < first + slots; slot++) {
            const quern__record *record = quern__entities_record(entities, slot);
            if (record->location == 0) continue;
            if (count < capacity)
                out_entities[count] = (quern_entity){(uint64_t)record->handle_high << 32 | slot};
            count++;
        }
    }
    return count;
}

/* Limit of the slots that one call visits, per entity of its capacity. */
enum { VISITS_PER_ENTITY = 64 };

uint32_t quern_world_list_entities_from(const quern_world *world, uint32_t *cursor,
                                        quern_entity *out_entities, uint32_t capacity)
{
    if (!quern__check_page(world, cursor, out_entities, "out_entities", capacity, __func__)) return 0;
    const quern__entities *entities = &world->storage.entities;
    uint64_t visits = (uint64_t)capacity * VISITS_PER_ENTITY;
    uint32_t slot = *cursor, count = 0;
    for (; slot < entities->slot_count && count < capacity && visits > 0; visits--) {
        if (quern__entities_is_absent(entities, slot >> QUERN__PAGE_RECORDS_LOG2)) {
            slot = (slot | (QUERN__PAGE_RECORDS - 1)) + 1;
            continue;
        }
        const quern__record *record = quern__entities_record(entities, slot);
        if (record->location != 0)
            out_entities[count++] = (quern_entity){(uint64_t)record->handle_high << 32 | slot};
        slot++;
    }
    *cursor = slot < entities->slot_count ? slot : QUERN_LIST_END;
    return count;
}

uint32_t quern_entity_list_components(const quern_world *world, quern_entity entity,
                                      quern_component *out_components, uint32_t capacity)
{
    if (world == NULL || (out_components == NULL && capacity > 0)) {
        quern__fail_null(__func__, world == NULL ? "world" : "out_components");
        return 0;
    }
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    if (record == NULL) {
        quern__in_call(quern__entities_check(&world->storage.entities, entity), __func__);
        return 0;
    }
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    for (uint32_t i = 0; i < archetype->component_count && i < capacity; i++)
        out_components[i] =
            quern__component_handle(&world->storage.components, archetype->component_indices[i]);
    return archetype->component_count;
}

/* -------------------------------------------------------------------------------------------- names */

/* The call of quern/reflect.h that lists entities by a prefix of their names.
 *
 * The names are a hash table without an order, so one pass visits all of them. The best matches so far form a binary
 * heap in the caller's array, with the last one of the order at the top: a better match replaces it. */

typedef struct name_list {
    const quern__storage *storage;
    quern_entity *entities; /* the heap; NULL if capacity is 0 */
    uint32_t kept_count;    /* entities in the heap */
    uint32_t capacity;
    uint32_t match_count;
} name_list;

/* Which names match: those that begin with `prefix`, of the children of `parent` or of all entities. */
typedef struct name_filter {
    const char *prefix;
    size_t prefix_bytes;
    uint32_t parent; /* slot; QUERN__SLOT_NONE: the roots */
    bool by_parent;
} name_filter;

static bool matches(const name_filter *filter, const quern__name *name)
{
    return name->slot != QUERN__SLOT_NONE && (!filter->by_parent || name->parent == filter->parent) &&
           strncmp(name->text, filter->prefix, filter->prefix_bytes) == 0;
}

/* Returns the name of a listed entity. */
static const char *name_of(const name_list *list, quern_entity entity)
{
    const quern__names *names = list->storage->names;
    return quern__names_at(names, quern__names_number(names, quern_entity_index(entity)))->text;
}

/* Returns whether the entity `a` precedes `b` in the order of the list. */
static bool precedes(const name_list *list, quern_entity a, quern_entity b)
{
    const int order = strcmp(name_of(list, a), name_of(list, b));
    return order != 0 ? order < 0 : quern_entity_index(a) < quern_entity_index(b);
}

static void swap(name_list *list, uint32_t i, uint32_t k)
{
    const quern_entity entity = list->entities[i];
    list->entities[i] = list->entities[k];
    list->entities[k] = entity;
}

/* Moves the entity at the top of the first `count` entities down to its place. */
static void sift_down(name_list *list, uint32_t count)
{
    uint32_t i = 0;
    for (uint64_t child = 1; child < count; child = 2 * (uint64_t)i + 1) {
        if (child + 1 < count && precedes(list, list->entities[child], list->entities[child + 1])) child++;
        if (!precedes(list, list->entities[i], list->entities[child])) return;
        swap(list, i, (uint32_t)child);
        i = (uint32_t)child;
    }
}

static void add(name_list *list, uint32_t slot)
{
    const quern_entity entity = quern__entity_of_link(list->storage, slot);
    list->match_count++;
    if (list->kept_count < list->capacity) {
        list->entities[list->kept_count] = entity;
        uint32_t i = list->kept_count++;
        for (; i > 0 && precedes(list, list->entities[(i - 1) / 2], list->entities[i]); i = (i - 1) / 2)
            swap(list, i, (i - 1) / 2);
    } else if (list->capacity > 0 && precedes(list, entity, list->entities[0])) {
        list->entities[0] = entity;
        sift_down(list, list->kept_count);
    }
}

/* Splits a prefix into the path of the parent and the prefix of the name. Returns false if there is no such parent. */
static bool read_filter(const quern__storage *storage, const char *prefix, name_filter *out_filter)
{
    const char *last = strrchr(prefix, '/');
    *out_filter = (name_filter){.prefix = last != NULL ? last + 1 : prefix, .by_parent = last != NULL};
    out_filter->prefix_bytes = strlen(out_filter->prefix);
    if (last == NULL) return true;
    if (prefix[0] != '/') return false; /* a path as text begins with '/', and no name contains it */
    return quern__handle_find_path(storage, prefix, (size_t)(last - prefix), &out_filter->parent);
}

uint32_t quern_world_list_named(const quern_world *world, const char *prefix, quern_entity *out_entities,
                                uint32_t capacity)
{
    QUERN__NEED_OR(world, 0);
    QUERN__NEED_OR(prefix, 0);
    QUERN__NEED_LIST_OR(out_entities, capacity, 0);
    const quern__names *names = world->storage.names;
    name_list list = {.storage = &world->storage, .entities = out_entities, .capacity = capacity};
    name_filter filter;
    if (!read_filter(&world->storage, prefix, &filter)) return 0;
    for (uint32_t i = 0; i < names->blocks.count; i++)
        for (uint32_t k = 0; k < QUERN__NAME_BLOCK_NAMES && names->blocks.items[i] != NULL; k++)
            if (matches(&filter, &names->blocks.items[i][k])) add(&list, names->blocks.items[i][k].slot);
    for (uint32_t count = list.kept_count; count > 1; count--) {
        swap(&list, 0, count - 1);
        sift_down(&list, count - 1);
    }
    return list.match_count;
}

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
            "the name, or register the component%s",
            path, quern__components_suggest(components, path, strcspn(path, ".")).text);
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
            "the name, or register the resource%s",
            path, quern__resources_suggest(&world->resources, path, strcspn(path, ".")).text);
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
    component_field found = {0};
    QUERN__NEED(world);
    QUERN__NEED(path);
    quern_result result = quern__world_check_unlocked(world, __func__);
    if (result == QUERN_OK) result = quern__check_sink(sink, __func__);
    if (result == QUERN_OK) result = find_component_field(world, entity, path, &found);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const void *value = value_of(world, &found);
    if (value == NULL) return quern__in_call(fail_absent(entity, &found), __func__);
    return quern__value_print(world, &found.path, value, sink, __func__);
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

/* Returns whether two lists of values of edges have the same targets in the same order. */
static bool has_same_targets(const quern_list *a, const quern_list *b, uint32_t element_bytes)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (memcmp((const char *)a->items + (size_t)i * element_bytes,
                   (const char *)b->items + (size_t)i * element_bytes, sizeof(quern_entity)) != 0)
            return false;
    return true;
}

/* Sets a field of the values of edges of a source with several targets. The text must neither change targets nor their
 * number, so a copy of the list is changed first. */
static quern_result set_edge_list(const quern_world *world, quern_list *list, const component_field *found,
                                  const char *text)
{
    quern_list copy = {.count = 0};
    quern_list_copy(&copy, list);
    quern_result result = quern__value_set_text(world, &found->path, &copy, text);
    if (result == QUERN_OK && !has_same_targets(list, &copy, found->type.fields[0].element->size_bytes))
        result = quern__components_check_edge_list(&world->storage.components,
                                                   quern__component_index(found->component));
    if (result == QUERN_OK) {
        quern_list_free(list);
        *list = copy;
    } else {
        quern_list_free(&copy);
    }
    return result;
}

static bool is_edge_list(const quern_world *world, const component_field *found)
{
    quern_relation_def def;
    return !quern_relation_is_null(found->type.edges_of) &&
           quern_relation_get_def(world, found->type.edges_of, &def) == QUERN_OK && def.many;
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
    if (QUERN__UNLIKELY(is_edge_list(world, &found)))
        result = set_edge_list(world, value, &found, text);
    else
        result = quern__value_set_text(world, &found.path, value, text); /* fails only in lists */
    quern__rows_written(archetype, found.record->location, 1, index);
    quern__storage_note_written(&world->storage, index);
    quern__hooks_after(&world->storage);
    return quern__in_call(result, function);
}

quern_result quern_entity_set_text(quern_world *world, quern_entity entity, const char *path,
                                   const char *text)
{
    QUERN__NEED(world);
    QUERN__NEED(path);
    QUERN__NEED(text);
    QUERN__ENTER(world);
    return set_text(world, entity, path, text);
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
    if (result == QUERN_OK) result = quern_type_at(world, QUERN_TYPE_RESOURCE, index, out_type);
    if (result == QUERN_OK) result = quern__path_find(out_type, field, out_path);
    if (result != QUERN_OK) return quern__in_call(result, function);
    *out_value = world->resources.list.items[index].value;
    return QUERN_OK;
}

quern_result quern_resource_get_text(const quern_world *world, const char *path, quern_sink sink)
{
    quern_type_info type;
    quern__path found;
    void *value;
    quern_result result = quern__check_sink(sink, __func__);
    if (result == QUERN_OK) result = find_in_resource(world, path, __func__, &type, &found, &value);
    return result == QUERN_OK ? quern__value_print(world, &found, value, sink, __func__) : result;
}

quern_result quern_resource_set_text(quern_world *world, const char *path, const char *text)
{
    quern_type_info type;
    quern__path found;
    void *value;
    QUERN__NEED(text);
    quern_result result = find_in_resource(world, path, __func__, &type, &found, &value);
    return result == QUERN_OK ? quern__in_call(quern__value_set_text(world, &found, value, text), __func__)
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
                       "%s: the world has no component '%.63s': check the name, or register it%s", function,
                       name,
                       quern__components_suggest(&world->storage.components, name, strlen(name)).text);
}

quern_result quern_entity_add_by_name(quern_world *world, quern_entity entity, const char *name)
{
    quern_component component;
    const quern_result result = find_by_name(world, name, __func__, &component);
    if (result != QUERN_OK) return result;
    if (quern__relation_of(&world->storage, (quern_relation){component.bits}) != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: '%s' is a relation and needs a target: set '%s.target' by "
                           "quern_entity_set_text",
                           __func__, name, name);
    return quern__world_add(world, entity, component, __func__);
}

quern_result quern_entity_remove_by_name(quern_world *world, quern_entity entity, const char *name)
{
    quern_component component;
    const quern_result result = find_by_name(world, name, __func__, &component);
    return result == QUERN_OK ? quern__world_remove(world, entity, component, __func__) : result;
}
