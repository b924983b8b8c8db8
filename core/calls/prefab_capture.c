/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Compiles the members of a tree into a prefab (core/prefabs/prefab_internal.h), and captures the members of a tree of
 * entities. Nothing in the world changes, so that on failure only the unfinished prefab has to be released. */

#include "core/calls/prefab_capture.h"

#include "core/relations/relate.h"
#include "core/storage/fill.h"

#include <quern/prefab.h>

enum { VALUE_ALIGNMENT_BYTES = 64 };

static void release_capture(quern__prefab_capture *it)
{
    quern__array_release(it->allocator, &it->depths);
    quern__array_release(it->allocator, &it->sets);
    quern__array_release(it->allocator, &it->group_sets);
    quern__array_release(it->allocator, &it->previous_groups);
    quern__array_release(it->allocator, &it->last_groups);
    quern__array_release(it->allocator, &it->entities);
    quern__map_release(&it->members, it->allocator);
    quern__array_release(it->allocator, &it->set_indices);
    quern__array_release(it->allocator, &it->parts);
}

/* -------------------------------------------------------------------------------------------- groups */

static bool set_has(const quern__prefab_set *set, uint32_t component_index)
{
    for (uint32_t i = 0; i < set->count && set->indices[i] <= component_index; i++)
        if (set->indices[i] == component_index) return true;
    return false;
}

static bool are_same(const quern__prefab_set *a, const quern__prefab_set *b)
{
    return a->count == b->count &&
           (a->indices == b->indices || memcmp(a->indices, b->indices, a->count * sizeof *a->indices) == 0);
}

/* Whether a member with these components has a level in a relation other than the hierarchy. Each such member forms
 * its own group, since its instances may get different levels. */
static bool has_other_levels(const quern__prefab_capture *it, const quern__prefab_set *set)
{
    const quern__relations *relations = it->world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        const quern__relation *relation = relations->list.items[i];
        if (relation != relations->parent && relation->has_levels &&
            set_has(set, relation->component_index))
            return true;
    }
    return false;
}

/* Returns the index of the group for a member, or the number of groups if the member starts a new one. */
static uint32_t find_group(const quern__prefab_capture *it, const quern__prefab_set *set, uint32_t depth)
{
    const uint32_t none = it->group_sets.count;
    if (depth >= it->last_groups.count || has_other_levels(it, set)) return none;
    for (uint32_t i = it->last_groups.items[depth]; i != QUERN_NO_MEMBER; i = it->previous_groups.items[i])
        if (are_same(&it->group_sets.items[i], set)) return i;
    return none;
}

/* Precondition: the depth is at most one more than that of a member before. */
static bool add_group(quern__prefab_capture *it, const quern__prefab_set *set, uint32_t depth)
{
    quern__prefab *prefab = it->prefab;
    const uint32_t group = prefab->groups.count;
    if (!quern__array_reserve(it->allocator, &prefab->groups, group + 1) ||
        !quern__array_reserve(it->allocator, &it->group_sets, group + 1) ||
        !quern__array_reserve(it->allocator, &it->previous_groups, group + 1) ||
        !quern__array_reserve(it->allocator, &it->last_groups, depth + 1))
        return false;
    if (depth == it->last_groups.count) it->last_groups.items[it->last_groups.count++] = QUERN_NO_MEMBER;
    it->group_sets.items[it->group_sets.count++] = *set;
    it->previous_groups.items[it->previous_groups.count++] = it->last_groups.items[depth];
    it->last_groups.items[depth] = group;
    prefab->groups.items[prefab->groups.count++] = (quern__prefab_group){.is_plain = true};
    return true;
}

/* Assigns each member to a row of a group, and lists the member of each row. */
static quern_result sort_into_groups(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    const uint32_t count = it->depths.count;
    if (!quern__array_reserve(it->allocator, &prefab->members, count) ||
        !quern__array_reserve(it->allocator, &prefab->row_members, count))
        return quern__prefab_capture_fail_memory();
    for (uint32_t i = 0; i < count; i++) {
        const quern__prefab_set *set = &it->sets.items[i];
        const uint32_t group = find_group(it, set, it->depths.items[i]);
        if (group == prefab->groups.count && !add_group(it, set, it->depths.items[i]))
            return quern__prefab_capture_fail_memory();
        prefab->members.items[prefab->members.count++] =
            (quern__prefab_member){.group = group, .row = prefab->groups.items[group].width++};
    }
    for (uint32_t i = 0, row = 0; i < prefab->groups.count; row += prefab->groups.items[i++].width)
        prefab->groups.items[i].first_row = row;
    for (uint32_t i = 0; i < count; i++) {
        const quern__prefab_member *member = &prefab->members.items[i];
        prefab->row_members.items[prefab->groups.items[member->group].first_row + member->row] = i;
    }
    prefab->row_members.count = count;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- columns */

/* Whether a prefab stores the component. Level tags and the parent of the root depend on where an instance is
 * spawned. */
static bool is_captured(const quern__prefab_capture *it, uint32_t group, uint32_t component_index)
{
    const quern__component *component = it->world->storage.components.list.items[component_index];
    if (!component->is_managed || component->managed.relation == NULL) return true;
    if (component->managed.level > 0) return false;
    return group != 0 || component->managed.relation != it->world->storage.relations->parent;
}

/* Whether the component is that of a relation other than the hierarchy. */
static bool is_other_target(const quern__prefab_capture *it, uint32_t component_index)
{
    const quern__component *component = it->world->storage.components.list.items[component_index];
    return component->is_managed && component->managed.relation != NULL &&
           component->managed.relation != it->world->storage.relations->parent;
}

static quern_result add_column(quern__prefab_capture *it, quern__prefab_group *group,
                               uint32_t component_index)
{
    quern__prefab *prefab = it->prefab;
    const quern__type *type = quern__components_type(&it->world->storage.components, component_index);
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' has a destroy hook and no copy hook, so its values cannot be copied into a "
            "prefab; give the type a copy hook, or remove the component from the tree",
            type->name);
    if (!quern__array_reserve(it->allocator, &prefab->columns, prefab->columns.count + 1))
        return quern__prefab_capture_fail_memory();
    const quern__prefab_column added = {.type = type,
                                        .component_index = (uint16_t)component_index,
                                        .size_bytes = (uint16_t)type->size_bytes,
                                        .is_other_target = is_other_target(it, component_index),
                                        .is_plain = type->hooks.copy == NULL};
    prefab->columns.items[prefab->columns.count++] = added;
    group->column_count++;
    group->is_plain &= added.is_plain;
    prefab->values_bytes += quern__align_up((size_t)group->width * type->size_bytes, VALUE_ALIGNMENT_BYTES);
    return QUERN_OK;
}

static quern_result add_components(quern__prefab_capture *it, uint32_t i)
{
    quern__prefab *prefab = it->prefab;
    quern__prefab_group *group = &prefab->groups.items[i];
    const quern__prefab_set *set = &it->group_sets.items[i];
    group->first_component = prefab->component_indices.count;
    group->first_column = prefab->columns.count;
    if (!quern__array_reserve(it->allocator, &prefab->component_indices,
                              prefab->component_indices.count + set->count))
        return quern__prefab_capture_fail_memory();
    for (uint32_t k = 0; k < set->count; k++) {
        const uint16_t index = set->indices[k];
        if (!is_captured(it, i, index)) continue;
        prefab->component_indices.items[prefab->component_indices.count++] = index;
        group->component_count++;
        quern_result result = QUERN_OK;
        if (quern__components_type(&it->world->storage.components, index)->size_bytes > 0)
            result = add_column(it, group, index);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Allocates all columns in one block, since values with hooks must not be moved later. */
static quern_result place_columns(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    if (prefab->values_bytes == 0) return QUERN_OK;
    prefab->values = quern__allocate(it->allocator, prefab->values_bytes, VALUE_ALIGNMENT_BYTES);
    if (prefab->values == NULL) return quern__prefab_capture_fail_memory();
    char *next = prefab->values;
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        const quern__prefab_group *group = &prefab->groups.items[i];
        for (uint32_t k = 0; k < group->column_count; k++) {
            quern__prefab_column *column = &prefab->columns.items[group->first_column + k];
            column->values = next;
            next += quern__align_up((size_t)group->width * column->size_bytes, VALUE_ALIGNMENT_BYTES);
        }
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- values, fields */

/* Lists the handles in a value of the prefab that stand for members. */
static quern_result find_fields(quern__prefab_capture *it, const quern__prefab_column *column,
                                quern__prefab_field found)
{
    quern__prefab *prefab = it->prefab;
    char *value = column->values + (size_t)found.row * column->size_bytes;
    for (uint32_t i = 0; i < column->type->field_count; i++) {
        const quern_field *field = &column->type->fields[i];
        for (uint32_t k = 0; field->type == QUERN_FIELD_ENTITY && k < field->count; k++) {
            found.offset_bytes = field->offset_bytes + k * (uint32_t)sizeof(quern_entity);
            quern_entity entity; /* by memcpy, since fields need not be aligned */
            memcpy(&entity, value + found.offset_bytes, sizeof entity);
            const quern_result result =
                it->source->find_member(it, entity, column->type, field, &found.member);
            if (result != QUERN_OK) return result;
            if (found.member == QUERN_NO_MEMBER) continue;
            memset(value + found.offset_bytes, 0, sizeof entity); /* each instance writes its own handle */
            if (!quern__array_reserve(it->allocator, &prefab->fields, prefab->fields.count + 1))
                return quern__prefab_capture_fail_memory();
            prefab->fields.items[prefab->fields.count++] = found;
        }
    }
    return QUERN_OK;
}

static void copy_column(const quern__prefab_capture *it, const quern__prefab_group *group,
                        quern__prefab_column *column)
{
    for (uint32_t row = 0; row < group->width; row++) {
        const uint32_t member = it->prefab->row_members.items[group->first_row + row];
        quern__fill_values(column->type, column->values + (size_t)row * column->size_bytes,
                           it->source->value(it, member, column->component_index), 1);
        column->constructed_count++;
    }
}

/* Lists the handles that name members, row by row. */
static quern_result list_fields(quern__prefab_capture *it, quern__prefab_group *group)
{
    quern__prefab *prefab = it->prefab;
    quern_result result = QUERN_OK;
    group->first_field = prefab->fields.count;
    for (uint32_t row = 0; row < group->width; row++) {
        const uint32_t member = prefab->row_members.items[group->first_row + row];
        prefab->members.items[member].first_field = prefab->fields.count;
        for (uint32_t k = 0; k < group->column_count && result == QUERN_OK; k++) {
            const quern__prefab_column *column = &prefab->columns.items[group->first_column + k];
            if (column->type->has_entity_fields)
                result = find_fields(it, column, (quern__prefab_field){.column = k, .row = row});
            if (result != QUERN_OK) return quern__message_add_element(result, "member", member);
        }
        prefab->members.items[member].field_count =
            prefab->fields.count - prefab->members.items[member].first_field;
    }
    group->field_count = prefab->fields.count - group->first_field;
    return result;
}

static quern_result copy_values(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < prefab->groups.count && result == QUERN_OK; i++) {
        quern__prefab_group *group = &prefab->groups.items[i];
        for (uint32_t k = 0; k < group->column_count; k++)
            copy_column(it, group, &prefab->columns.items[group->first_column + k]);
        result = list_fields(it, group);
    }
    return result;
}

/* -------------------------------------------------------------------------------------------- names */

static quern_result copy_names(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const char *name = i > 0 ? it->source->name(it, i) : NULL;
        prefab->members.items[i].name = QUERN_NO_MEMBER;
        if (name == NULL) continue;
        const uint32_t bytes = (uint32_t)strlen(name) + 1;
        if (!quern__array_reserve(it->allocator, &prefab->names, prefab->names.count + bytes))
            return quern__prefab_capture_fail_memory();
        prefab->members.items[i].name = prefab->names.count;
        memcpy(prefab->names.items + prefab->names.count, name, bytes);
        prefab->names.count += bytes;
        prefab->name_count++;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- compiling */

static quern_result compile(quern__prefab_capture *it)
{
    quern_result result = sort_into_groups(it);
    for (uint32_t i = 0; result == QUERN_OK && i < it->prefab->groups.count; i++)
        result = add_components(it, i);
    if (result == QUERN_OK) result = place_columns(it);
    if (result == QUERN_OK) result = copy_values(it);
    if (result == QUERN_OK) result = quern__prefab_capture_add_links(it);
    if (result == QUERN_OK) result = copy_names(it);
    return result == QUERN_OK ? it->source->list_toggles(it) : result;
}

quern_result quern__prefab_capture_finish(quern__prefab_capture *it, quern_result result,
                                          quern_prefab *out_prefab)
{
    if (result == QUERN_OK) result = compile(it);
    release_capture(it);
    if (result == QUERN_OK) result = quern__prefabs_add(&it->world->storage, it->prefab, out_prefab);
    if (result != QUERN_OK) quern__prefab_release(it->prefab, it->allocator);
    return result;
}

/* ---------------------------------------------------------------------------------- trees of entities */

static const quern__record *record_of(const quern__prefab_capture *it, uint32_t member)
{
    return quern__entities_record(&it->world->storage.entities,
                                  quern_entity_index(it->entities.items[member]));
}

static quern__archetype *archetype_of(const quern__prefab_capture *it, uint32_t member)
{
    return quern__storage_archetype_of(&it->world->storage, record_of(it, member));
}

static bool add_member(quern__prefab_capture *it, quern_entity entity, uint32_t depth)
{
    if (!quern__array_reserve(it->allocator, &it->entities, it->entities.count + 1) ||
        !quern__array_reserve(it->allocator, &it->depths, it->depths.count + 1) ||
        !quern__array_reserve(it->allocator, &it->sets, it->sets.count + 1) ||
        !quern__map_reserve(&it->members, it->allocator, it->entities.count + 1))
        return false;
    quern__map_put(&it->members, entity.bits, it->entities.count);
    it->entities.items[it->entities.count++] = entity;
    it->depths.items[it->depths.count++] = depth;
    const quern__archetype *archetype = archetype_of(it, it->entities.count - 1);
    it->sets.items[it->sets.count++] =
        (quern__prefab_set){archetype->component_indices, archetype->component_count};
    return true;
}

/* Lists the root and all entities below it, breadth first. */
static quern_result list_members(quern__prefab_capture *it, quern_entity root)
{
    const quern__storage *storage = &it->world->storage;
    const quern__relation *parent = storage->relations->parent;
    if (!add_member(it, root, 0)) return quern__prefab_capture_fail_memory();
    for (uint32_t i = 0; parent != NULL && i < it->entities.count; i++) {
        const uint32_t slot = quern_entity_index(it->entities.items[i]);
        for (uint32_t child = quern__links_first(&parent->links, slot); child != QUERN__SLOT_NONE;
             child = quern__links_at(&parent->links, child)->next) {
            if (it->entities.count == QUERN_MAX_PREFAB_MEMBERS)
                return quern__fail(QUERN_ERROR_LIMIT,
                                   "the tree has more than %d entities (QUERN_MAX_PREFAB_MEMBERS): capture "
                                   "parts of it as separate prefabs",
                                   QUERN_MAX_PREFAB_MEMBERS);
            if (!add_member(it, quern__entity_of_slot(storage, child), it->depths.items[i] + 1))
                return quern__prefab_capture_fail_memory();
        }
    }
    return QUERN_OK;
}

static const void *captured_value(const quern__prefab_capture *it, uint32_t member,
                                  uint32_t component_index)
{
    return quern__storage_value(archetype_of(it, member), record_of(it, member)->location, component_index);
}

static const char *captured_name(const quern__prefab_capture *it, uint32_t member)
{
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const quern__name *name = quern__names_of(it->world->storage.names, slot);
    return name != NULL ? name->text : NULL;
}

static quern_result find_captured(const quern__prefab_capture *it, quern_entity entity,
                                  const quern__type *type, const quern_field *field, uint32_t *out_member)
{
    (void)field;
    *out_member = quern__prefab_capture_find_member(it, entity);
    /* A command that spawns the prefab would confuse the handle with a provisional handle of its own sync point. */
    if (quern_entity_is_provisional(entity))
        return quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                           "a field of '%s' in the tree has a provisional handle, which is valid only in "
                           "its callback; write a real handle before capturing",
                           type->name);
    return QUERN_OK;
}

static quern_result list_toggles(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const quern__row_bits *row_bits = archetype_of(it, i)->row_bits;
        const uintptr_t location = record_of(it, i)->location;
        for (uint32_t k = 0; row_bits != NULL && k < row_bits->count; k++) {
            if (row_bits->list[k].kind != QUERN__BIT_COLUMN_CAN_DISABLE ||
                !quern__bit_column_test(row_bits, k, location))
                continue;
            if (!quern__array_reserve(it->allocator, &prefab->toggles, prefab->toggles.count + 1))
                return quern__prefab_capture_fail_memory();
            prefab->toggles.items[prefab->toggles.count++] =
                (quern__prefab_toggle){.member = i, .component_index = row_bits->list[k].id};
        }
    }
    return QUERN_OK;
}

static const quern__prefab_source tree = {.value = captured_value,
                                          .name = captured_name,
                                          .find_member = find_captured,
                                          .list_toggles = list_toggles,
                                          .list_links = quern__prefab_capture_list_links};

static quern_result capture_tree(quern_world *world, quern_entity root, quern_prefab *out_prefab)
{
    if (world == NULL) return quern__fail_null("quern_prefab_capture", "world");
    if (out_prefab == NULL) return quern__fail_null("quern_prefab_capture", "out_prefab");
    quern_result result = quern__world_check_unlocked(world, "quern_prefab_capture");
    if (result != QUERN_OK) return result;
    const quern_allocator *allocator = &world->storage.allocator;
    result = quern__entities_check(&world->storage.entities, root);
    if (result != QUERN_OK) return quern__in_call(result, "quern_prefab_capture");
    quern__prefab_capture it = {
        .world = world, .allocator = allocator, .prefab = quern__prefab_create(allocator), .source = &tree};
    result = it.prefab != NULL ? list_members(&it, root) : quern__prefab_capture_fail_memory();
    result = quern__prefab_capture_finish(&it, result, out_prefab);
    if (result == QUERN_OK && !quern__prefab_is_enabled(it.prefab, &world->storage))
        quern__log(
            QUERN_LOG_INFO,
            "quern_prefab_capture: entity %u:%u is disabled, so instances of prefab %u will be, too: "
            "enable it before capturing, or enable instances by quern_entity_set_enabled",
            quern_entity_index(root), quern_entity_generation(root), (uint32_t)out_prefab->bits);
    return quern__in_call(result, "quern_prefab_capture");
}

quern_result quern_prefab_capture(quern_world *world, quern_entity root, quern_prefab *out_prefab)
{
    if (!quern__world_enter(world, "quern_prefab_capture")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, capture_tree(world, root, out_prefab));
}
