/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Makes prefabs: quern_prefab_capture from a tree of entities, quern_prefab_create from a list of members. Both list
 * the depths and the sets of components of all members, and describe where values, names and links are from by a
 * prefab_source; prefab_capture_finish then compiles them into a prefab (core/prefabs/prefab_internal.h). Nothing
 * in the world changes, so that on failure only the unfinished prefab has to be released.
 *
 * In order: links of captured trees, links and hierarchy of prefabs, groups, columns, values, names; captured trees;
 * described members. */
#include "core/prefabs/prefab_internal.h"

#include "core/base/containers.h"
#include "core/storage/change.h"
#include "core/storage/list_values.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

#include <quern/prefab.h>

/* The components of a member, ascending. */
typedef struct member_components {
    const uint16_t *indices;
    uint32_t count;
} member_components;

/* By member: the index of its link in the current relation, or QUERN_NO_MEMBER. */
typedef QUERN__ARRAY(uint32_t) link_indices;

struct prefab_source;

/* A prefab under construction. */
typedef struct prefab_capture {
    quern__storage *storage;
    const quern_allocator *allocator;
    quern__prefab *prefab;
    const struct prefab_source *source;
    QUERN__ARRAY(uint32_t) depths;        /* levels below the root, by member */
    QUERN__ARRAY(member_components) sets; /* by member */
    /* common to all members of a group, by group: */
    QUERN__ARRAY(member_components) group_sets;
    QUERN__ARRAY(uint32_t) previous_groups; /* the group of the same depth before it, or QUERN_NO_MEMBER */
    QUERN__ARRAY(uint32_t) last_groups;     /* by depth: its last group */
    /* of captured trees: */
    QUERN__ARRAY(quern_entity) entities; /* by member */
    quern__map members;                  /* handle -> member */
    /* of descriptions: */
    const quern_prefab_member_def *described;
    QUERN__ARRAY(uint16_t) set_indices; /* the sets of all members, one after another */
    QUERN__ARRAY(quern_entity) parts;   /* the handles that stand for members, by member */
} prefab_capture;

/* Where members are from. */
typedef struct prefab_source {
    /* Returns the value of a component of a member, or NULL if the type constructs it. */
    const void *(*value)(const prefab_capture *it, uint32_t member, uint32_t component_index);
    const char *(*name)(const prefab_capture *it, uint32_t member); /* NULL if it has none */
    /* Finds the member that a handle in a field stands for, or QUERN_NO_MEMBER. Fails if the handle must not be in a
     * prefab. */
    quern_result (*find_member)(const prefab_capture *it, quern_entity entity, const quern__type *type,
                                const quern_field *field, uint32_t *out_member);
    quern_result (*list_toggles)(prefab_capture *it);
    /* Lists the links of one relation by prefab_capture_add_link. */
    quern_result (*list_links)(prefab_capture *it, quern__relation *relation, link_indices *links);
} prefab_source;

/* --------------------------------------------------------------------------------------------- links */

/* Adds a link to the prefab. target: member, or QUERN_NO_MEMBER if it is `outside` of the tree. In a relation with
 * levels, the link of the target must have been added before. Returns false if out of memory. */
static bool prefab_capture_add_link(prefab_capture *it, quern__relation *relation, link_indices *links,
                                    uint32_t source, uint32_t target, quern_entity outside)
{
    quern__prefab *prefab = it->prefab;
    if (!quern__array_reserve(it->allocator, &prefab->links, prefab->links.count + 1)) return false;
    links->items[source] = prefab->links.count;
    prefab->links.items[prefab->links.count++] = (quern__prefab_link){
        .relation = relation,
        .source = source,
        .target = target,
        .target_link = target != QUERN_NO_MEMBER ? links->items[target] : QUERN_NO_MEMBER,
        .outside = outside};
    prefab->has_outside |= target == QUERN_NO_MEMBER;
    prefab->has_outside_levels |= target == QUERN_NO_MEMBER && relation->has_levels;
    prefab->has_edges |= relation->is_many;
    return true;
}

/* Returns the member number of an entity, or QUERN_NO_MEMBER. */
static inline uint32_t prefab_capture_find_member(const prefab_capture *it, quern_entity entity)
{
    const uint64_t *member = entity.bits != 0 ? quern__map_find(&it->members, entity.bits) : NULL;
    return member != NULL ? (uint32_t)*member : QUERN_NO_MEMBER;
}

/* Adds the link of a member to a target outside of the tree, if it has one. Leaves out the parent of the root. */
static bool add_outside_link(prefab_capture *it, quern__relation *relation, link_indices *links,
                             uint32_t member)
{
    const bool is_roots_parent = member == 0 && relation == it->storage->relations->parent;
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const uint32_t target = quern__links_target(&relation->links, slot);
    if (target == QUERN__SLOT_NONE || is_roots_parent) return true;
    const quern_entity entity = quern__entity_of_slot(it->storage, target);
    return prefab_capture_find_member(it, entity) != QUERN_NO_MEMBER ||
           prefab_capture_add_link(it, relation, links, member, QUERN_NO_MEMBER, entity);
}

/* Adds the links of all members that have `member` as their target, in sibling order. */
static bool add_sources(prefab_capture *it, quern__relation *relation, link_indices *links, uint32_t member)
{
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    for (uint32_t slot_of_source = quern__links_first(&relation->links, slot);
         slot_of_source != QUERN__SLOT_NONE;
         slot_of_source = quern__links_at(&relation->links, slot_of_source)->next) {
        const uint32_t source =
            prefab_capture_find_member(it, quern__entity_of_slot(it->storage, slot_of_source));
        if (source != QUERN_NO_MEMBER && (source != 0 || relation != it->storage->relations->parent) &&
            !prefab_capture_add_link(it, relation, links, source, member, quern_entity_null()))
            return false;
    }
    return true;
}

/* Whether the member's target in the relation is also a member. */
static bool has_target_inside(const prefab_capture *it, const quern__relation *relation, uint32_t member)
{
    if (member == 0 && relation == it->storage->relations->parent) return false;
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const uint32_t target = quern__links_target(&relation->links, slot);
    return target != QUERN__SLOT_NONE &&
           prefab_capture_find_member(it, quern__entity_of_slot(it->storage, target)) != QUERN_NO_MEMBER;
}

/* Adds the links of a relation with one target. Those of a relation with levels are added targets before sources: first
 * those of members without a target in the tree, then, breadth first, those of the sources of each listed link. A
 * relation without levels may have cycles; its links have any order. */
static bool add_links(prefab_capture *it, quern__relation *relation, link_indices *links)
{
    const uint32_t first = it->prefab->links.count;
    for (uint32_t i = 0; i < it->entities.count; i++)
        if (!add_outside_link(it, relation, links, i)) return false;
    for (uint32_t i = 0; i < it->entities.count; i++)
        if ((!relation->has_levels ||
             (!has_target_inside(it, relation, i) && links->items[i] == QUERN_NO_MEMBER)) &&
            !add_sources(it, relation, links, i))
            return false;
    for (uint32_t i = first; relation->has_levels && i < it->prefab->links.count; i++)
        if (!add_sources(it, relation, links, it->prefab->links.items[i].source)) return false;
    return true;
}

/* Adds a link for each edge of the members, in the order of sources and targets. Edges from outside of the tree to
 * members are not captured. */
static bool capture_edges(prefab_capture *it, quern__relation *relation, link_indices *links)
{
    for (uint32_t i = 0; i < it->entities.count; i++) {
        const quern__edge_list *targets =
            quern__edges_targets(&relation->edges, quern_entity_index(it->entities.items[i]));
        for (uint32_t r = 0; r < quern__edge_list_ranges(targets); r++) {
            const quern__edge_range range = quern__edge_list_range(targets, r);
            for (uint32_t k = 0; k < range.count; k++) {
                const quern_entity target = quern__entity_of_slot(it->storage, range.slots[k]);
                const uint32_t member = prefab_capture_find_member(it, target);
                const bool is_outside = member == QUERN_NO_MEMBER;
                if (!prefab_capture_add_link(it, relation, links, i, member,
                                             is_outside ? target : quern_entity_null()))
                    return false;
            }
        }
    }
    return true;
}

static inline quern_result prefab_capture_fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a prefab");
}

/* Lists the links of a captured tree; the function of its source. */
static quern_result prefab_capture_list_links(prefab_capture *it, quern__relation *relation,
                                              link_indices *links)
{
    const bool is_done =
        relation->is_many ? capture_edges(it, relation, links) : add_links(it, relation, links);
    return is_done ? QUERN_OK : prefab_capture_fail_memory();
}

static quern_result list_links(prefab_capture *it)
{
    const quern__relations *relations = it->storage->relations;
    link_indices links = {0};
    quern_result result = QUERN_OK;
    if (relations->list.count > 0 && !quern__array_reserve(it->allocator, &links, it->depths.count))
        result = prefab_capture_fail_memory();
    for (uint32_t i = 0; i < relations->list.count && result == QUERN_OK; i++) {
        for (links.count = 0; links.count < it->depths.count; links.count++)
            links.items[links.count] = QUERN_NO_MEMBER;
        result = it->source->list_links(it, relations->list.items[i], &links);
    }
    quern__array_release(it->allocator, &links);
    return result;
}

/* Returns whether the link decides a level of its group: it is a link of the group's first member. */
static bool is_level_link(const quern__prefab *prefab, const quern__prefab_link *link)
{
    return link->relation->has_levels && prefab->members.items[link->source].row == 0;
}

static quern_result list_level_links(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    if (!quern__array_reserve(it->allocator, &prefab->level_links, prefab->links.count))
        return prefab_capture_fail_memory();
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        if (is_level_link(prefab, link))
            prefab->groups.items[prefab->members.items[link->source].group].level_link_count++;
    }
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        quern__prefab_group *group = &prefab->groups.items[i];
        group->first_level_link = prefab->level_links.count;
        prefab->level_links.count += group->level_link_count;
        group->level_link_count = 0;
    }
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        quern__prefab_group *group = &prefab->groups.items[prefab->members.items[link->source].group];
        if (is_level_link(prefab, link))
            prefab->level_links.items[group->first_level_link + group->level_link_count++] = i;
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- hierarchy */

/* Makes the nodes of the hierarchy. Its links are listed level by level, so each target has its level. */
static quern_result list_nodes(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    const uint32_t count = prefab->members.count;
    if (!quern__array_reserve(it->allocator, &prefab->nodes, count)) return prefab_capture_fail_memory();
    for (; prefab->nodes.count < count; prefab->nodes.count++)
        prefab->nodes.items[prefab->nodes.count] = quern__empty_link_node;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        const bool is_parent = link->relation == it->storage->relations->parent;
        prefab->has_children |= is_parent;
        prefab->has_other_links |= !is_parent;
        if (!is_parent) continue;
        quern__link_node *node = prefab->nodes.items;
        quern__link_node *target = &node[link->target], *source = &node[link->source];
        source->target = link->target;
        source->level = target->level + 1;
        source->previous = target->last;
        target->last = link->source;
        if (target->count++ == 0)
            target->first = link->source;
        else
            node[source->previous].next = link->source;
    }
    return QUERN_OK;
}

enum { VALUE_ALIGNMENT_BYTES = 64 };

/* -------------------------------------------------------------------------------------------- groups */

static bool set_has(const member_components *set, uint32_t component_index)
{
    for (uint32_t i = 0; i < set->count && set->indices[i] <= component_index; i++)
        if (set->indices[i] == component_index) return true;
    return false;
}

/* Whether a member with these components has a level in a relation other than the hierarchy. Each such member forms
 * its own group, since its instances may get different levels. */
static bool has_other_levels(const prefab_capture *it, const member_components *set)
{
    const quern__relations *relations = it->storage->relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        const quern__relation *relation = relations->list.items[i];
        if (relation != relations->parent && relation->has_levels &&
            set_has(set, relation->component_index))
            return true;
    }
    return false;
}

/* Returns the index of the group for a member, or the number of groups if the member starts a new one. */
static uint32_t find_group(const prefab_capture *it, const member_components *set, uint32_t depth)
{
    const uint32_t none = it->group_sets.count;
    if (depth >= it->last_groups.count || has_other_levels(it, set)) return none;
    for (uint32_t i = it->last_groups.items[depth]; i != QUERN_NO_MEMBER;
         i = it->previous_groups.items[i]) {
        const member_components *other = &it->group_sets.items[i];
        if (other->count == set->count &&
            (other->indices == set->indices ||
             memcmp(other->indices, set->indices, set->count * sizeof *set->indices) == 0))
            return i;
    }
    return none;
}

/* Precondition: the depth is at most one more than that of a member before. */
static bool add_group(prefab_capture *it, const member_components *set, uint32_t depth)
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
static quern_result sort_into_groups(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    const uint32_t count = it->depths.count;
    if (!quern__array_reserve(it->allocator, &prefab->members, count) ||
        !quern__array_reserve(it->allocator, &prefab->row_members, count))
        return prefab_capture_fail_memory();
    for (uint32_t i = 0; i < count; i++) {
        const member_components *set = &it->sets.items[i];
        const uint32_t group = find_group(it, set, it->depths.items[i]);
        if (group == prefab->groups.count && !add_group(it, set, it->depths.items[i]))
            return prefab_capture_fail_memory();
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
static bool is_captured(const prefab_capture *it, uint32_t group, uint32_t component_index)
{
    const quern__component *component = it->storage->components.list.items[component_index];
    if (!component->is_managed || component->managed.relation == NULL) return true;
    if (component->managed.level > 0) return false;
    return group != 0 || component->managed.relation != it->storage->relations->parent;
}

static quern_result add_column(prefab_capture *it, quern__prefab_group *group, uint32_t component_index)
{
    quern__prefab *prefab = it->prefab;
    const quern__type *type = quern__components_type(&it->storage->components, component_index);
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' has a destroy hook and no copy hook, so its values cannot be copied into a "
            "prefab; give the type a copy hook, or remove the component from the tree",
            type->name);
    if (!quern__array_reserve(it->allocator, &prefab->columns, prefab->columns.count + 1))
        return prefab_capture_fail_memory();
    const quern__prefab_column added = {.type = type,
                                        .component_index = (uint16_t)component_index,
                                        .size_bytes = (uint16_t)type->size_bytes,
                                        .is_plain = type->hooks.copy == NULL};
    prefab->columns.items[prefab->columns.count++] = added;
    group->column_count++;
    group->is_plain &= added.is_plain;
    prefab->values_bytes += quern__align_up((size_t)group->width * type->size_bytes, VALUE_ALIGNMENT_BYTES);
    return QUERN_OK;
}

static quern_result add_components(prefab_capture *it, uint32_t i)
{
    quern__prefab *prefab = it->prefab;
    quern__prefab_group *group = &prefab->groups.items[i];
    const member_components *set = &it->group_sets.items[i];
    group->first_component = prefab->component_indices.count;
    group->first_column = prefab->columns.count;
    if (!quern__array_reserve(it->allocator, &prefab->component_indices,
                              prefab->component_indices.count + set->count))
        return prefab_capture_fail_memory();
    for (uint32_t k = 0; k < set->count; k++) {
        const uint16_t index = set->indices[k];
        if (!is_captured(it, i, index)) continue;
        prefab->component_indices.items[prefab->component_indices.count++] = index;
        group->component_count++;
        quern_result result = QUERN_OK;
        if (quern__components_type(&it->storage->components, index)->size_bytes > 0)
            result = add_column(it, group, index);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Allocates all columns in one block, since values with hooks must not be moved later. */
static quern_result place_columns(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    if (prefab->values_bytes == 0) return QUERN_OK;
    prefab->values = quern__allocate(it->allocator, prefab->values_bytes, VALUE_ALIGNMENT_BYTES);
    if (prefab->values == NULL) return prefab_capture_fail_memory();
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

/* Lists a handle if it stands for a member. handle: its address; each instance writes its own there. */
static quern_result note_field(prefab_capture *it, const quern__type *type, const quern_field *field,
                               quern__prefab_field found, char *handle)
{
    quern__prefab *prefab = it->prefab;
    quern_entity entity; /* by memcpy, since fields need not be aligned */
    memcpy(&entity, handle, sizeof entity);
    const quern_result result = it->source->find_member(it, entity, type, field, &found.member);
    if (result != QUERN_OK || found.member == QUERN_NO_MEMBER) return result;
    memset(handle, 0, sizeof entity);
    if (!quern__array_reserve(it->allocator, &prefab->fields, prefab->fields.count + 1))
        return prefab_capture_fail_memory();
    prefab->fields.items[prefab->fields.count++] = found;
    return QUERN_OK;
}

/* Lists the handles in an array, or in the k-th handle field of structs in a list. */
static quern_result note_fields(prefab_capture *it, const quern__type *type, const quern_field *field,
                                quern__prefab_field found, char *items, uint32_t count)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = note_field(it, type, field, found, items);
        items += sizeof(quern_entity);
        if (found.element == 0)
            found.offset_bytes += (uint32_t)sizeof(quern_entity);
        else
            found.list_offset_bytes += (uint32_t)sizeof(quern_entity);
    }
    return result;
}

/* Lists the handles in a list, which gets a block of its own. */
static quern_result note_list(prefab_capture *it, const quern__type *type, const quern_field *field,
                              quern__prefab_field found, char *at)
{
    const quern_element *element = field->element;
    quern_list list;
    memcpy(&list, at, sizeof list);
    if (list.count == 0 || (element->type != 0 && element->type != QUERN_FIELD_ENTITY)) return QUERN_OK;
    found.element = quern__field_element(field);
    char *items = quern_list_write(&list, found.element);
    if (items == NULL) return prefab_capture_fail_memory();
    memcpy(at, &list, sizeof list);
    if (element->type == QUERN_FIELD_ENTITY) return note_fields(it, type, field, found, items, list.count);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < list.count && result == QUERN_OK; i++)
        for (uint32_t k = 0; k < element->field_count && result == QUERN_OK; k++) {
            const quern_field *part = &element->fields[k];
            if (part->type != QUERN_FIELD_ENTITY) continue;
            found.list_offset_bytes = i * element->size_bytes + part->offset_bytes;
            result = note_fields(it, type, field, found, items + found.list_offset_bytes, part->count);
        }
    return result;
}

/* Lists the handles in a value of the prefab that stand for members. */
static quern_result find_fields(prefab_capture *it, const quern__prefab_column *column,
                                quern__prefab_field found)
{
    char *value = column->values + (size_t)found.row * column->size_bytes;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < column->type->field_count && result == QUERN_OK; i++) {
        const quern_field *field = &column->type->fields[i];
        found.offset_bytes = field->offset_bytes;
        if (field->type == QUERN_FIELD_ENTITY)
            result = note_fields(it, column->type, field, found, value + found.offset_bytes, field->count);
        for (uint32_t k = 0; field->type == QUERN_FIELD_LIST && k < field->count && result == QUERN_OK;
             k++) {
            found.offset_bytes = field->offset_bytes + k * (uint32_t)sizeof(quern_list);
            result = note_list(it, column->type, field, found, value + found.offset_bytes);
        }
    }
    return result;
}

/* Lists the handles that name members, row by row. */
static quern_result list_fields(prefab_capture *it, quern__prefab_group *group)
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

static quern_result copy_values(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < prefab->groups.count && result == QUERN_OK; i++) {
        quern__prefab_group *group = &prefab->groups.items[i];
        for (uint32_t k = 0; k < group->column_count; k++) {
            quern__prefab_column *column = &prefab->columns.items[group->first_column + k];
            for (uint32_t row = 0; row < group->width; row++, column->constructed_count++)
                quern__fill_values(column->type, column->values + (size_t)row * column->size_bytes,
                                   it->source->value(it, prefab->row_members.items[group->first_row + row],
                                                     column->component_index),
                                   1);
        }
        result = list_fields(it, group);
    }
    return result;
}

/* -------------------------------------------------------------------------------------------- names */

static quern_result copy_names(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const char *name = i > 0 ? it->source->name(it, i) : NULL;
        prefab->members.items[i].name = QUERN_NO_MEMBER;
        if (name == NULL) continue;
        const uint32_t bytes = (uint32_t)strlen(name) + 1;
        if (!quern__array_reserve(it->allocator, &prefab->names, prefab->names.count + bytes))
            return prefab_capture_fail_memory();
        prefab->members.items[i].name = prefab->names.count;
        memcpy(prefab->names.items + prefab->names.count, name, bytes);
        prefab->names.count += bytes;
        prefab->name_count++;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- compiling */

/* Compiles members that have their depths and sets into it->prefab. Releases `it`, and on failure also the prefab. */
static quern_result prefab_capture_finish(prefab_capture *it, quern_result result,
                                          quern__prefab **out_prefab)
{
    if (result == QUERN_OK) result = sort_into_groups(it);
    for (uint32_t i = 0; result == QUERN_OK && i < it->prefab->groups.count; i++)
        result = add_components(it, i);
    if (result == QUERN_OK) result = place_columns(it);
    if (result == QUERN_OK) result = copy_values(it);
    if (result == QUERN_OK) result = list_links(it);
    if (result == QUERN_OK) result = list_nodes(it);
    if (result == QUERN_OK) result = list_level_links(it);
    if (result == QUERN_OK) result = copy_names(it);
    if (result == QUERN_OK) result = it->source->list_toggles(it);

    quern__array_release(it->allocator, &it->depths);
    quern__array_release(it->allocator, &it->sets);
    quern__array_release(it->allocator, &it->group_sets);
    quern__array_release(it->allocator, &it->previous_groups);
    quern__array_release(it->allocator, &it->last_groups);
    quern__array_release(it->allocator, &it->entities);
    quern__map_release(&it->members, it->allocator);
    quern__array_release(it->allocator, &it->set_indices);
    quern__array_release(it->allocator, &it->parts);
    if (result == QUERN_OK)
        *out_prefab = it->prefab;
    else
        quern__prefab_release(it->prefab, it->allocator);
    return result;
}

/* Registers a prefab that was compiled. Releases it on failure. */
static quern_result add_compiled(quern__storage *storage, quern_result result, quern__prefab *prefab,
                                 quern_prefab *out_handle)
{
    if (result != QUERN_OK) return result;
    const quern_result added = quern__prefabs_add(storage, prefab, out_handle);
    if (added != QUERN_OK) quern__prefab_release(prefab, &storage->allocator);
    return added;
}

/* ---------------------------------------------------------------------------------- trees of entities */

static const quern__record *record_of(const prefab_capture *it, uint32_t member)
{
    return quern__entities_record(&it->storage->entities, quern_entity_index(it->entities.items[member]));
}

static quern__archetype *archetype_of(const prefab_capture *it, uint32_t member)
{
    return quern__storage_archetype_of(it->storage, record_of(it, member));
}

static bool add_member(prefab_capture *it, quern_entity entity, uint32_t depth)
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
        (member_components){archetype->component_indices, archetype->component_count};
    return true;
}

/* Lists the root and all entities below it, breadth first. */
static quern_result list_tree(prefab_capture *it, quern_entity root)
{
    const quern__storage *storage = it->storage;
    const quern__relation *parent = storage->relations->parent;
    if (!add_member(it, root, 0)) return prefab_capture_fail_memory();
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
                return prefab_capture_fail_memory();
        }
    }
    return QUERN_OK;
}

static const void *captured_value(const prefab_capture *it, uint32_t member, uint32_t component_index)
{
    return quern__storage_value(archetype_of(it, member), record_of(it, member)->location, component_index);
}

static const char *captured_name(const prefab_capture *it, uint32_t member)
{
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const quern__name *name = quern__names_of(it->storage->names, slot);
    return name != NULL ? name->text : NULL;
}

static quern_result find_captured(const prefab_capture *it, quern_entity entity, const quern__type *type,
                                  const quern_field *field, uint32_t *out_member)
{
    (void)field;
    *out_member = prefab_capture_find_member(it, entity);
    /* A command that spawns the prefab would confuse the handle with a provisional handle of its own sync point. */
    if (quern_entity_is_provisional(entity))
        return quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                           "a field of '%s' in the tree has a provisional handle, which is valid only in "
                           "its callback; write a real handle before capturing",
                           type->name);
    return QUERN_OK;
}

static quern_result list_toggles(prefab_capture *it)
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
                return prefab_capture_fail_memory();
            prefab->toggles.items[prefab->toggles.count++] =
                (quern__prefab_toggle){.member = i, .component_index = row_bits->list[k].id};
        }
    }
    return QUERN_OK;
}

static const prefab_source tree = {.value = captured_value,
                                   .name = captured_name,
                                   .find_member = find_captured,
                                   .list_toggles = list_toggles,
                                   .list_links = prefab_capture_list_links};

/* Creates an empty prefab with one reference. Returns NULL if out of memory. */
static quern__prefab *prefab_create(const quern_allocator *allocator)
{
    quern__prefab *prefab = quern__allocate(allocator, sizeof *prefab, _Alignof(quern__prefab));
    if (prefab == NULL) return NULL;
    *prefab = (quern__prefab){0};
    atomic_init(&prefab->reference_count, 1);
    return prefab;
}

quern_result quern__prefab_capture(quern__storage *storage, quern_entity root, quern__prefab **out_prefab)
{
    const quern_allocator *allocator = &storage->allocator;
    quern_result result = quern__entities_check(&storage->entities, root);
    if (result != QUERN_OK) return result;
    prefab_capture it = {
        .storage = storage, .allocator = allocator, .prefab = prefab_create(allocator), .source = &tree};
    result = it.prefab != NULL ? list_tree(&it, root) : prefab_capture_fail_memory();
    return prefab_capture_finish(&it, result, out_prefab);
}

quern_result quern_prefab_capture(quern_world *world, quern_entity root, quern_prefab *out_prefab)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(out_prefab);
    quern__prefab *prefab = NULL;
    quern_result result = quern__prefab_capture(&world->storage, root, &prefab);
    result = add_compiled(&world->storage, result, prefab, out_prefab);
    if (result == QUERN_OK && !quern__prefab_is_enabled(prefab, &world->storage))
        quern__log(
            QUERN_LOG_INFO,
            "quern_prefab_capture: entity %u:%u is disabled, so instances of prefab %u will be, too: "
            "enable it before capturing, or enable instances by quern_entity_set_enabled",
            quern_entity_index(root), quern_entity_generation(root), (uint32_t)out_prefab->bits);
    return quern__in_call(result, __func__);
}

/* --------------------------------------------------------------------------------- described members
 *
 * Each member gets the set of components that an entity with its values and targets would have. */

/* A sorted set of component indices, with room for required components. */
typedef struct member_set {
    uint16_t indices[QUERN_MAX_COMPONENTS];
    uint32_t count;
    uint32_t level_count; /* number of relations with levels in the set; each adds a tag to the entity */
} member_set;

/* ---------------------------------------------------------------------------------------------- sets */

static quern_result fail_duplicate(const quern__storage *storage, uint32_t index)
{
    return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT, "it has '%s' twice: list each component once",
                       quern__components_type(&storage->components, index)->name);
}

static quern_result add_value(const quern__storage *storage, const quern_prefab_value *value,
                              member_set *set)
{
    const quern__components *components = &storage->components;
    const quern_result result = quern__components_check(components, value->component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(value->component);
    const quern__type *type = quern__components_type(components, index);
    if (quern__components_is_managed(components, index))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' is maintained by Quern, so it has no value here: list targets of relations "
            "in 'targets', and the hierarchy in 'parent'",
            type->name);
    if (type->size_bytes == 0 && value->value != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' is a tag and has a value: set it to NULL",
                           type->name);
    if (value->is_disabled && !quern__components_has_flag(components, index, QUERN__FLAG_CAN_DISABLE))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' cannot be disabled: register it with can_disable, or clear is_disabled",
                           type->name);
    return quern__components_insert(set->indices, &set->count, index) ? QUERN_OK
                                                                      : fail_duplicate(storage, index);
}

/* Checks the entity of a target: a member of the list, or a living entity. */
static quern_result check_target_entity(const prefab_capture *it, quern_entity target)
{
    const quern__entities *entities = &it->storage->entities;
    if (!quern_entity_is_provisional(target)) return quern__entities_check(entities, target);
    const uint32_t index = quern_entity_index(target);
    if (!quern_entity_equal(target, quern_prefab_member_handle(index)))
        return quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                           "the handle is provisional, which is valid only in its callback: use "
                           "quern_prefab_member_handle");
    if (index >= it->parts.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "there is no member %u, since the list has %u: pass a lower index", index,
                           it->parts.count);
    return QUERN_OK;
}

/* Whether an earlier target of the member is the same one of the same relation. */
static bool has_target_before(const quern_prefab_member_def *member, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (member->targets[k].relation.bits == member->targets[i].relation.bits &&
            quern_entity_equal(member->targets[k].target, member->targets[i].target))
            return true;
    return false;
}

static quern_result add_target(const prefab_capture *it, const quern_prefab_member_def *member, uint32_t i,
                               member_set *set)
{
    const quern__storage *storage = it->storage;
    quern__relation *relation;
    quern_result result = quern__relation_check(storage, member->targets[i].relation, &relation);
    if (result != QUERN_OK) return result;
    const char *name = quern__relation_name(storage, relation);
    if (relation == storage->relations->parent)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the relation is '%s', the hierarchy: set 'parent' of the member", name);
    result = check_target_entity(it, member->targets[i].target);
    if (result == QUERN_OK &&
        quern_entity_equal(member->targets[i].target,
                           quern_prefab_member_handle((uint32_t)(member - it->described))))
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "the member cannot be its own target: remove the target");
    if (result != QUERN_OK) return quern__message_add_call(result, name, NULL);
    const bool is_new = quern__components_insert(set->indices, &set->count, relation->component_index);
    if (is_new) set->level_count += relation->has_levels;
    if (is_new || (relation->is_many && !has_target_before(member, i))) return QUERN_OK;
    return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                       relation->is_many ? "it has a target in '%s' twice: list it once"
                                         : "it has two targets in '%s': keep one, or register the relation "
                                           "with .many",
                       name);
}

/* Adds the slots in which the root has members as its parts. */
static quern_result add_slots(const prefab_capture *it, member_set *set)
{
    for (uint32_t i = 0; i < it->parts.count; i++) {
        const quern_component slot = it->described[i].slot;
        if (quern_component_is_null(slot)) continue;
        quern_result result = i > 0 ? quern__prefab_check_slot(it->storage, slot)
                                    : quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                                  "the root is no part of itself: clear its slot");
        if (result == QUERN_OK &&
            !quern__components_insert(set->indices, &set->count, quern__component_index(slot)))
            result = fail_duplicate(it->storage, quern__component_index(slot));
        if (result != QUERN_OK) return quern__message_add_element(result, "the slot of member", i);
    }
    return QUERN_OK;
}

/* Returns the first element of a list of values of edges that is not the value of one of the member's edges, or the
 * second of one edge; the number of elements if there is none. relation_bits: of the relation. */
static uint32_t find_element_without_edge(const quern_prefab_member_def *member, const quern_list *list,
                                          uint32_t element_bytes, uint32_t relation_bits)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const char *element = (const char *)list->items + (size_t)i * element_bytes;
        quern_entity target;
        memcpy(&target, element, sizeof target); /* elements begin with the target */
        bool is_right = quern_entity_is_null(target);
        for (uint32_t k = 0; k < member->target_count && !is_right; k++)
            is_right = member->targets[k].relation.bits == relation_bits &&
                       quern_entity_equal(member->targets[k].target, target);
        for (uint32_t k = 0; k < i && is_right && !quern_entity_is_null(target); k++)
            is_right =
                memcmp((const char *)list->items + (size_t)k * element_bytes, &target, sizeof target) != 0;
        if (!is_right) return i;
    }
    return list->count;
}

/* Checks that a value of an edge is given with a target in its relation, and each element of a list with its own. */
static quern_result check_edge_value(const quern__storage *storage, const quern_prefab_member_def *member,
                                     const quern_prefab_value *value, const member_set *set)
{
    const quern__components *components = &storage->components;
    const uint32_t index = quern__component_index(value->component),
                   owner = components->list.items[index]->edge_owner;
    uint32_t i = 0;
    if (owner == 0) return QUERN_OK;
    while (i < set->count && set->indices[i] != owner - 1)
        i++;
    if (i == set->count) return quern__components_fail_edge_value(components, index);
    const quern__type *type = quern__components_type(components, index),
                      *relation = quern__components_type(components, owner - 1);
    if (relation->size_bytes > 0 || value->value == NULL) return QUERN_OK; /* one target, or no elements */
    const quern_list *list = value->value;
    i = find_element_without_edge(member, list, type->fields[0].element->size_bytes,
                                  quern__component_handle(components, owner - 1).bits);
    if (i == list->count) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "element %u of '%s' is not the value of an edge: list its target once in 'targets', "
                       "in '%s', and once in the elements",
                       i, type->name, relation->name);
}

static quern_result list_values(const prefab_capture *it, uint32_t i, member_set *set)
{
    const quern_prefab_member_def *member = &it->described[i];
    if (member->value_count > 0 && member->values == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "'values' is NULL, and value_count is %u: set both",
                           member->value_count);
    if (member->target_count > 0 && member->targets == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "'targets' is NULL, and target_count is %u: set both",
                           member->target_count);
    for (uint32_t k = 0; k < member->value_count; k++) {
        const quern_result result = add_value(it->storage, &member->values[k], set);
        if (result != QUERN_OK) return quern__message_add_element(result, "value", k);
    }
    for (uint32_t k = 0; k < member->target_count; k++) {
        const quern_result result = add_target(it, member, k, set);
        if (result != QUERN_OK) return quern__message_add_element(result, "target", k);
    }
    for (uint32_t k = 0; k < member->value_count; k++) {
        const quern_result result = check_edge_value(it->storage, member, &member->values[k], set);
        if (result != QUERN_OK) return quern__message_add_element(result, "value", k);
    }
    return QUERN_OK;
}

static quern_result append_set(prefab_capture *it, uint32_t i)
{
    const quern__storage *storage = it->storage;
    member_set set = {.count = 0};
    quern_result result = list_values(it, i, &set);
    if (i > 0 && result == QUERN_OK) {
        quern__components_insert(set.indices, &set.count, storage->relations->parent->component_index);
        set.level_count++;
    }
    if (result == QUERN_OK && i == 0) result = add_slots(it, &set);
    if (result != QUERN_OK) return result;
    set.count = quern__components_complete(&storage->components, set.indices, set.count);
    if (set.count + set.level_count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "it would have %u components; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS): list fewer",
            set.count + set.level_count, QUERN_MAX_ENTITY_COMPONENTS);
    if (!quern__array_reserve(it->allocator, &it->set_indices, it->set_indices.count + set.count))
        return prefab_capture_fail_memory();
    if (set.count > 0)
        memcpy(it->set_indices.items + it->set_indices.count, set.indices, set.count * sizeof *set.indices);
    it->set_indices.count += set.count;
    it->sets.items[it->sets.count++].count = set.count;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------- parents and names */

static quern_result check_parent(const quern_prefab_member_def *members, uint32_t i)
{
    const char *name = members[i].name;
    if (i == 0 && (members[0].parent != 0 || (name != NULL && name[0] != '\0')))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            members[0].parent != 0
                ? "the root has member %u as its parent: set it to 0, and pass the parent of "
                  "an instance when spawning"
                : "the root has a name, and each instance has its own: set it to NULL, and name "
                  "instances by quern_entity_set_name",
            members[0].parent);
    if (i > 0 && members[i].parent >= i)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "its parent is member %u, which does not precede it: list parents before their children",
            members[i].parent);
    return name != NULL ? quern__entity_check_name(name) : QUERN_OK;
}

/* Finds an earlier member with the name and parent of member i; QUERN_NO_MEMBER if there is none. `hashes` maps hashes
 * of both to the first member with the hash. Room for one more entry must be reserved. */
static uint32_t find_name_before(const quern_prefab_member_def *members, uint32_t i, quern__map *hashes)
{
    const uint64_t hash = quern__hash_word(quern__hash_string(members[i].name), members[i].parent) | 1;
    const uint64_t *first = quern__map_find(hashes, hash);
    if (first == NULL) {
        quern__map_put(hashes, hash, i);
        return QUERN_NO_MEMBER;
    }
    for (uint32_t k = *first > 0 ? (uint32_t)*first : 1; k < i; k++)
        if (members[k].parent == members[i].parent && members[k].name != NULL &&
            strcmp(members[k].name, members[i].name) == 0)
            return k;
    return QUERN_NO_MEMBER;
}

/* Lists the depths of the members, and checks parents and names. */
static quern_result list_depths(prefab_capture *it)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->parts.count && result == QUERN_OK; i++) {
        const quern_prefab_member_def *member = &it->described[i];
        result = check_parent(it->described, i);
        if (result == QUERN_OK && i > 0 && member->name != NULL && member->name[0] != '\0') {
            const uint32_t other = find_name_before(it->described, i, &it->members);
            if (other != QUERN_NO_MEMBER)
                result = quern__fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                     "member %u has the same parent and the name '%s', too: rename one",
                                     other, member->name);
        }
        if (result != QUERN_OK) return quern__message_add_element(result, "member", i);
        it->depths.items[it->depths.count++] = i > 0 ? it->depths.items[member->parent] + 1 : 0;
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- source */

/* Returns the target of a member in a relation with one target, or NULL. */
static const quern_entity *target_of(const prefab_capture *it, uint32_t i, const quern__relation *relation)
{
    const quern_prefab_member_def *member = &it->described[i];
    if (relation == it->storage->relations->parent) return i > 0 ? &it->parts.items[member->parent] : NULL;
    for (uint32_t k = 0; k < member->target_count; k++)
        if (quern__component_index((quern_component){member->targets[k].relation.bits}) ==
            relation->component_index)
            return &member->targets[k].target;
    return NULL;
}

static const void *described_value(const prefab_capture *it, uint32_t i, uint32_t component_index)
{
    const quern__component *component = it->storage->components.list.items[component_index];
    const quern_prefab_member_def *member = &it->described[i];
    if (component->managed.relation != NULL) return target_of(it, i, component->managed.relation);
    for (uint32_t k = 0; k < member->value_count; k++)
        if (quern__component_index(member->values[k].component) == component_index)
            return member->values[k].value;
    for (uint32_t k = 1; i == 0 && k < it->parts.count; k++)
        if (!quern_component_is_null(it->described[k].slot) &&
            quern__component_index(it->described[k].slot) == component_index)
            return &it->parts.items[k];
    return NULL;
}

static const char *described_name(const prefab_capture *it, uint32_t i)
{
    const char *name = it->described[i].name;
    return name != NULL && name[0] != '\0' ? name : NULL;
}

static quern_result find_described(const prefab_capture *it, quern_entity entity, const quern__type *type,
                                   const quern_field *field, uint32_t *out_member)
{
    *out_member = QUERN_NO_MEMBER;
    if (!quern_entity_is_provisional(entity)) return QUERN_OK;
    const quern_result result = check_target_entity(it, entity);
    if (result == QUERN_OK) *out_member = quern_entity_index(entity);
    if (result == QUERN_OK) return QUERN_OK;
    char where[2 * QUERN_MAX_NAME_BYTES + 32];
    snprintf(where, sizeof where, "field '%s' of '%s'", field->name, type->name);
    return quern__message_add_call(result, where, NULL);
}

static quern_result list_disabled(prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < it->parts.count; i++)
        for (uint32_t k = 0; k < it->described[i].value_count; k++) {
            const quern_prefab_value *value = &it->described[i].values[k];
            if (!value->is_disabled) continue;
            if (!quern__array_reserve(it->allocator, &prefab->toggles, prefab->toggles.count + 1))
                return prefab_capture_fail_memory();
            prefab->toggles.items[prefab->toggles.count++] = (quern__prefab_toggle){
                .member = i, .component_index = quern__component_index(value->component)};
        }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- links */

static quern_result add_link(prefab_capture *it, quern__relation *relation, link_indices *links,
                             uint32_t source, quern_entity target)
{
    const bool is_member = quern_entity_is_provisional(target);
    const bool is_done = prefab_capture_add_link(it, relation, links, source,
                                                 is_member ? quern_entity_index(target) : QUERN_NO_MEMBER,
                                                 is_member ? quern_entity_null() : target);
    return is_done ? QUERN_OK : prefab_capture_fail_memory();
}

#define UNKNOWN_DEPTH UINT32_MAX

/* Finds the number of links from a member up to the end of its path in a relation, and stores it for all members of the
 * path. path: room for all members. Fails with CYCLE. */
static quern_result find_depth(const prefab_capture *it, const quern__relation *relation, uint32_t i,
                               uint32_t *depths, uint32_t *path)
{
    uint32_t count = 0, at = i;
    while (depths[at] == UNKNOWN_DEPTH) {
        if (count == it->parts.count)
            return quern__fail(
                QUERN_ERROR_CYCLE,
                "member %u: its targets in relation '%s' lead into a cycle: remove one of them", i,
                quern__relation_name(it->storage, relation));
        path[count++] = at;
        const quern_entity *target = target_of(it, at, relation);
        if (target == NULL || !quern_entity_is_provisional(*target)) {
            depths[at] = target != NULL;
            count--;
            break;
        }
        at = quern_entity_index(*target);
    }
    uint32_t depth = depths[at];
    while (count-- > 0)
        depths[path[count]] = ++depth;
    return QUERN_OK;
}

/* Adds the links of a relation with levels: targets before sources, and the sources of each target in the order of
 * members. scratch: room for 3 numbers per member, and 1 more. Fails with CYCLE, or OUT_OF_MEMORY. */
static quern_result add_by_depth(prefab_capture *it, quern__relation *relation, link_indices *links,
                                 uint32_t *scratch)
{
    const uint32_t count = it->parts.count;
    uint32_t *depths = scratch, *next = scratch + count, *firsts = scratch + 2 * (size_t)count;
    for (uint32_t i = 0; i < count; i++)
        depths[i] = UNKNOWN_DEPTH;
    for (uint32_t i = 0; i < count; i++) {
        const quern_result result = find_depth(it, relation, i, depths, firsts);
        if (result != QUERN_OK) return result;
    }
    /* lists of the members of each depth */
    for (uint32_t depth = 0; depth <= count; depth++)
        firsts[depth] = QUERN_NO_MEMBER;
    for (uint32_t i = count; i-- > 0;) {
        next[i] = firsts[depths[i]];
        firsts[depths[i]] = i;
    }
    for (uint32_t depth = 1; depth <= count; depth++)
        for (uint32_t i = firsts[depth]; i != QUERN_NO_MEMBER; i = next[i]) {
            const quern_result result = add_link(it, relation, links, i, *target_of(it, i, relation));
            if (result != QUERN_OK) return result;
        }
    return QUERN_OK;
}

static quern_result list_described_links(prefab_capture *it, quern__relation *relation, link_indices *links)
{
    if (relation->is_many || !relation->has_levels) {
        quern_result result = QUERN_OK;
        for (uint32_t i = 0; i < it->parts.count && result == QUERN_OK; i++) {
            const quern_prefab_member_def *member = &it->described[i];
            const quern_entity *target = relation->is_many ? NULL : target_of(it, i, relation);
            if (target != NULL) result = add_link(it, relation, links, i, *target);
            for (uint32_t k = 0; relation->is_many && k < member->target_count && result == QUERN_OK; k++)
                if (quern__component_index((quern_component){member->targets[k].relation.bits}) ==
                    relation->component_index)
                    result = add_link(it, relation, links, i, member->targets[k].target);
        }
        return result;
    }
    const size_t bytes = (3 * (size_t)it->parts.count + 1) * sizeof(uint32_t);
    uint32_t *scratch = quern__allocate(it->allocator, bytes, _Alignof(uint32_t));
    if (scratch == NULL) return prefab_capture_fail_memory();
    const quern_result result = add_by_depth(it, relation, links, scratch);
    quern__release(it->allocator, scratch, bytes, _Alignof(uint32_t));
    return result;
}

/* ---------------------------------------------------------------------------------------------- call */

static const prefab_source description = {.value = described_value,
                                          .name = described_name,
                                          .find_member = find_described,
                                          .list_toggles = list_disabled,
                                          .list_links = list_described_links};

/* Lists depths and sets of all members. Precondition: the world has the hierarchy, unless there is one member. */
static quern_result list_described_members(prefab_capture *it, uint32_t count)
{
    if (!quern__array_reserve(it->allocator, &it->depths, count) ||
        !quern__array_reserve(it->allocator, &it->sets, count) ||
        !quern__array_reserve(it->allocator, &it->parts, count) ||
        !quern__map_reserve(&it->members, it->allocator, count))
        return prefab_capture_fail_memory();
    while (it->parts.count < count) {
        it->parts.items[it->parts.count] = quern_prefab_member_handle(it->parts.count);
        it->parts.count++;
    }
    quern_result result = list_depths(it);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = append_set(it, i);
        if (result != QUERN_OK) return quern__message_add_element(result, "member", i);
    }
    /* the list does not move any more, now that all sets are in it */
    for (uint32_t i = 0, first = 0; i < it->sets.count; first += it->sets.items[i++].count)
        it->sets.items[i].indices = it->sets.items[i].count > 0 ? &it->set_indices.items[first] : NULL;
    return result;
}

/* A list of members in which shared values are targets of relations. */
typedef struct sharing {
    quern_prefab_member_def *members; /* NULL: no member shares values */
    quern_prefab_target *targets;
    uint32_t member_count, target_count;
} sharing;

static void sharing_release(sharing *it, const quern_allocator *allocator)
{
    quern__release(allocator, it->members, it->member_count * sizeof *it->members,
                   _Alignof(quern_prefab_member_def));
    quern__release(allocator, it->targets, it->target_count * sizeof *it->targets,
                   _Alignof(quern_prefab_target));
}

static quern_result sharing_init(sharing *it, quern_world *world, const quern_prefab_member_def *members,
                                 uint32_t count)
{
    const quern_allocator *allocator = &world->storage.allocator;
    uint32_t shared_count = 0, target_count = 0;
    *it = (sharing){.member_count = count};
    for (uint32_t i = 0; i < count; i++) {
        shared_count += !quern_entity_is_null(members[i].shared);
        target_count += members[i].targets != NULL ? members[i].target_count : 0;
    }
    if (shared_count == 0) return QUERN_OK;
    quern__relation *relation;
    const quern_result result = quern__relation_register(&world->storage, &quern__shared_def, &relation);
    if (result != QUERN_OK) return result;
    it->target_count = target_count + shared_count;
    it->members =
        quern__allocate(allocator, count * sizeof *it->members, _Alignof(quern_prefab_member_def));
    it->targets =
        quern__allocate(allocator, it->target_count * sizeof *it->targets, _Alignof(quern_prefab_target));
    if (it->members == NULL || it->targets == NULL) {
        sharing_release(it, allocator);
        *it = (sharing){.member_count = count};
        return prefab_capture_fail_memory();
    }
    quern_prefab_target *next = it->targets;
    for (uint32_t i = 0; i < count; i++) {
        it->members[i] = members[i];
        if (quern_entity_is_null(members[i].shared) ||
            (members[i].targets == NULL && members[i].target_count > 0)) /* which is refused later */
            continue;
        it->members[i].targets = next;
        if (members[i].target_count > 0)
            memcpy(next, members[i].targets, members[i].target_count * sizeof *next);
        next += members[i].target_count;
        *next++ =
            (quern_prefab_target){quern__relation_handle(&world->storage, relation), members[i].shared};
        it->members[i].target_count++;
    }
    return QUERN_OK;
}

quern_result quern_prefab_create(quern_world *world, const quern_prefab_member_def *members,
                                 uint32_t member_count, quern_prefab *out_prefab)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(members);
    QUERN__NEED(out_prefab);
    quern_result result = QUERN_OK;
    if (member_count == 0)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "the list has no members: a prefab has at least a root");
    if (member_count > QUERN_MAX_PREFAB_MEMBERS)
        result = quern__fail(QUERN_ERROR_LIMIT,
                             "the list has %u members; the limit is %d (QUERN_MAX_PREFAB_MEMBERS): make "
                             "several prefabs",
                             member_count, QUERN_MAX_PREFAB_MEMBERS);
    if (result == QUERN_OK && member_count > 1 && world->storage.relations->parent == NULL)
        result = quern__relation_register(&world->storage, &quern__parent_def,
                                          &world->storage.relations->parent);
    sharing shared = {.members = NULL};
    if (result == QUERN_OK) result = sharing_init(&shared, world, members, member_count);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const quern_allocator *allocator = &world->storage.allocator;
    prefab_capture it = {.storage = &world->storage,
                         .allocator = allocator,
                         .prefab = prefab_create(allocator),
                         .source = &description,
                         .described = shared.members != NULL ? shared.members : members};
    result = it.prefab != NULL ? list_described_members(&it, member_count) : prefab_capture_fail_memory();
    quern__prefab *prefab = NULL;
    result = prefab_capture_finish(&it, result, &prefab);
    result = add_compiled(&world->storage, result, prefab, out_prefab);
    sharing_release(&shared, allocator);
    return quern__in_call(result, __func__);
}
