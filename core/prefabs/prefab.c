/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Prefabs of a world: the registry, plans, overrides, and the calls that use prefabs. They destroy prefabs, find members
 * and parts, and spawn instances immediately. A spawn first prepares everything that may fail: the plan, rows, slots and
 * pages of links. It then allocates handles and puts the instances into the world, block by block (prefab_internal.h). */
#include "core/prefabs/prefab_internal.h"

#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/prefab.h>

enum { PREFAB_ALIGNMENT_BYTES = 64 };

/* ----------------------------------------------------------------------------------------- one prefab */

static inline size_t prefab_plan_bytes(const quern__prefab *prefab)
{
    return sizeof(quern__prefab_plan) + prefab->groups.count * sizeof(quern__archetype *) +
           prefab->columns.count * sizeof(quern__prefab_copy) +
           2 * (size_t)prefab->members.count * sizeof(quern__link_node);
}

/* Relaxed: a thread that retains a prefab has found it in the registry, which no thread modifies meanwhile. The
 * main thread releases prefabs after all systems have run. The count orders no other access. */
void quern__prefab_retain(quern__prefab *prefab)
{
    atomic_fetch_add_explicit(&prefab->reference_count, 1, memory_order_relaxed);
}

void quern__prefab_release(quern__prefab *prefab, const quern_allocator *allocator)
{
    /* relaxed: see quern__prefab_retain */
    if (prefab == NULL || atomic_fetch_sub_explicit(&prefab->reference_count, 1, memory_order_relaxed) != 1)
        return;
    for (uint32_t i = 0; i < prefab->columns.count; i++) {
        const quern__prefab_column *column = &prefab->columns.items[i];
        if (column->constructed_count > 0)
            quern__type_destroy(column->type, column->values, column->constructed_count);
    }
    for (uint32_t i = 0; i < QUERN__LEVEL_COUNT; i++)
        quern__release(allocator, prefab->plans[i], prefab_plan_bytes(prefab), _Alignof(quern__link_node));
    quern__release(allocator, prefab->values, prefab->values_bytes, PREFAB_ALIGNMENT_BYTES);
    quern__array_release(allocator, &prefab->members);
    quern__array_release(allocator, &prefab->groups);
    quern__array_release(allocator, &prefab->columns);
    quern__array_release(allocator, &prefab->fields);
    quern__array_release(allocator, &prefab->links);
    quern__array_release(allocator, &prefab->nodes);
    quern__array_release(allocator, &prefab->names);
    quern__array_release(allocator, &prefab->toggles);
    quern__array_release(allocator, &prefab->level_links);
    quern__array_release(allocator, &prefab->row_members);
    quern__array_release(allocator, &prefab->component_indices);
    quern__release(allocator, prefab, sizeof *prefab, _Alignof(quern__prefab));
}

/* ----------------------------------------------------------------------------------------- conversion */

static bool is_changed(const quern__prefab *prefab, uint32_t column, const quern__type_change *change)
{
    return prefab->columns.items[column].component_index == change->component_index;
}

/* Returns the offset that a handle of the old layout has in the new one, or UINT32_MAX if that lacks it. */
static uint32_t new_offset(const quern__type_change *change, uint32_t offset_bytes)
{
    const quern__conversion *conversion = &change->conversion;
    if (conversion->kind == QUERN__CONVERT_BYTES) return offset_bytes;
    for (uint32_t p = 0; p < conversion->pair_count; p++) {
        const quern_field *from = &conversion->source->fields[conversion->pairs[p].source];
        const quern_field *to = &conversion->target->fields[conversion->pairs[p].target];
        const uint32_t count = from->count < to->count ? from->count : to->count;
        if ((from->type == QUERN_FIELD_ENTITY || from->type == QUERN_FIELD_LIST) &&
            offset_bytes >= from->offset_bytes &&
            offset_bytes < from->offset_bytes + count * quern__field_bytes(from->type))
            return to->offset_bytes + (offset_bytes - from->offset_bytes);
    }
    return UINT32_MAX;
}

quern_result quern__prefab_check_conversion(const quern__prefab *prefab, quern__type_change *change,
                                            size_t *out_bytes)
{
    size_t bytes = 0;
    bool has_values = false;
    for (uint32_t g = 0; g < prefab->groups.count; g++) {
        const quern__prefab_group *group = &prefab->groups.items[g];
        for (uint32_t k = group->first_column; k < group->first_column + group->column_count; k++) {
            const quern__prefab_column *column = &prefab->columns.items[k];
            const bool changes = is_changed(prefab, k, change);
            const uint32_t size_bytes = changes ? change->type->size_bytes : column->size_bytes;
            bytes += quern__align_up((size_t)group->width * size_bytes, PREFAB_ALIGNMENT_BYTES);
            if (!changes) continue;
            has_values = true;
            if (change->type->hooks.destroy != NULL && change->type->hooks.copy == NULL)
                return quern__fail(
                    QUERN_ERROR_INVALID_ARGUMENT,
                    "a prefab has values of '%s', which gets a destroy hook and no copy hook: give "
                    "the type a copy hook, or destroy the prefab first",
                    change->old.name);
            const quern_result result = quern__type_change_check(change, column->values, group->width);
            if (result != QUERN_OK) return result;
        }
        for (uint32_t i = 0; i < group->field_count; i++) {
            const quern__prefab_field *field = &prefab->fields.items[group->first_field + i];
            if (change->conversion.kind == QUERN__CONVERT_MIGRATION &&
                is_changed(prefab, group->first_column + field->column, change))
                return quern__fail(
                    QUERN_ERROR_INVALID_ARGUMENT,
                    "a prefab has handles of its members in '%s', for which a function (migrate) "
                    "cannot find the new place: rename fields instead, or destroy the prefab first",
                    change->old.name);
        }
    }
    *out_bytes = has_values ? bytes : 0;
    return QUERN_OK;
}

/* Moves the handles of members to their offsets in the new layout, and drops those that it lacks. The lists of members
 * and groups stay in order. */
static void convert_fields(quern__prefab *prefab, const quern__type_change *change)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < prefab->groups.count; g++) {
        quern__prefab_group *group = &prefab->groups.items[g];
        group->first_field = count;
        for (uint32_t row = 0; row < group->width; row++) {
            quern__prefab_member *member =
                &prefab->members.items[prefab->row_members.items[group->first_row + row]];
            const uint32_t first = count;
            for (uint32_t i = 0; i < member->field_count; i++) {
                quern__prefab_field field = prefab->fields.items[member->first_field + i];
                if (is_changed(prefab, group->first_column + field.column, change))
                    field.offset_bytes = new_offset(change, field.offset_bytes);
                if (field.offset_bytes != UINT32_MAX) prefab->fields.items[count++] = field;
            }
            member->first_field = first;
            member->field_count = count - first;
        }
        group->field_count = count - group->first_field;
    }
    prefab->fields.count = count;
}

void quern__prefab_convert(quern__prefab *prefab, const quern_allocator *allocator,
                           const quern__type_change *change, char *values, size_t values_bytes)
{
    char *next = values;
    convert_fields(prefab, change);
    for (uint32_t g = 0; g < prefab->groups.count; g++) {
        quern__prefab_group *group = &prefab->groups.items[g];
        group->is_plain = true;
        for (uint32_t k = group->first_column; k < group->first_column + group->column_count; k++) {
            quern__prefab_column *column = &prefab->columns.items[k];
            if (is_changed(prefab, k, change)) {
                quern__type_change_values(change, next, column->values, group->width);
                column->size_bytes = (uint16_t)change->type->size_bytes;
                column->is_plain = change->type->hooks.copy == NULL;
            } else {
                quern__type_move(column->type, next, column->values, group->width);
            }
            column->values = next;
            group->is_plain &= column->is_plain;
            next += quern__align_up((size_t)group->width * column->size_bytes, PREFAB_ALIGNMENT_BYTES);
        }
    }
    quern__release(allocator, prefab->values, prefab->values_bytes, PREFAB_ALIGNMENT_BYTES);
    prefab->values = values;
    prefab->values_bytes = values_bytes;
    for (uint32_t i = 0; i < QUERN__LEVEL_COUNT; i++)
        if (prefab->plans[i] != NULL) prefab->plans[i]->archetypes_version = QUERN__PLAN_NONE;
}

static uint64_t held_bytes(const quern__prefab *prefab)
{
    return sizeof *prefab + prefab->values_bytes + prefab->names.capacity +
           (uint64_t)prefab->members.capacity * sizeof *prefab->members.items +
           (uint64_t)prefab->groups.capacity * sizeof *prefab->groups.items +
           (uint64_t)prefab->columns.capacity * sizeof *prefab->columns.items +
           (uint64_t)prefab->fields.capacity * sizeof *prefab->fields.items +
           (uint64_t)prefab->links.capacity * sizeof *prefab->links.items +
           (uint64_t)prefab->nodes.capacity * sizeof *prefab->nodes.items +
           (uint64_t)prefab->level_links.capacity * sizeof *prefab->level_links.items +
           (uint64_t)prefab->row_members.capacity * sizeof *prefab->row_members.items +
           (uint64_t)prefab->component_indices.capacity * sizeof *prefab->component_indices.items;
}

bool quern__prefab_is_enabled(const quern__prefab *prefab, const quern__storage *storage)
{
    const quern__prefab_group *group = &prefab->groups.items[0];
    for (uint32_t i = 0; i < group->component_count; i++)
        if (prefab->component_indices.items[group->first_component + i] == storage->disabled_index)
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------------- registry */

void quern__prefabs_release(quern__storage *storage)
{
    quern__prefabs *prefabs = storage->prefabs;
    if (prefabs == NULL) return;
    for (uint32_t i = 0; i < prefabs->slots.count; i++)
        quern__prefab_release(prefabs->slots.items[i].prefab, &storage->allocator);
    quern__array_release(&storage->allocator, &prefabs->slots);
    quern__array_release(&storage->allocator, &prefabs->handles);
    quern__release(&storage->allocator, prefabs, sizeof *prefabs, _Alignof(quern__prefabs));
    storage->prefabs = NULL;
}

/* Creates the registry if the world has none. Returns false if out of memory. */
static bool prefabs_ensure(quern__storage *storage)
{
    if (storage->prefabs != NULL) return true;
    quern__prefabs *made = quern__allocate(&storage->allocator, sizeof *made, _Alignof(quern__prefabs));
    if (made == NULL) return false;
    *made = (quern__prefabs){.first_free = QUERN__SLOT_NONE};
    storage->prefabs = made;
    return true;
}

static bool reserve_slot(quern__storage *storage)
{
    const quern_allocator *allocator = &storage->allocator;
    if (!prefabs_ensure(storage)) return false;
    quern__prefabs *prefabs = storage->prefabs;
    if (prefabs->first_free != QUERN__SLOT_NONE) return true;
    if (!quern__array_reserve(allocator, &prefabs->slots, prefabs->slots.count + 1)) return false;
    prefabs->slots.items[prefabs->slots.count] =
        (quern__prefab_slot){.generation = 1, .next_free = QUERN__SLOT_NONE};
    prefabs->first_free = prefabs->slots.count++;
    return true;
}

/* Returns the handle of the prefab in a slot. */
static inline quern_prefab prefabs_handle(const quern__storage *storage, uint32_t index)
{
    const uint64_t tag = storage->entities.first_handle_high >> 24;
    return (quern_prefab){tag << 56 | (uint64_t)storage->prefabs->slots.items[index].generation << 32 |
                          index};
}

quern_result quern__prefabs_add(quern__storage *storage, quern__prefab *prefab, quern_prefab *out_handle)
{
    if (!reserve_slot(storage))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for one more prefab");
    quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = prefabs->first_free;
    quern__prefab_slot *slot = &prefabs->slots.items[index];
    prefabs->first_free = slot->next_free;
    prefabs->count++;
    slot->prefab = prefab;
    *out_handle = prefabs_handle(storage, index);
    return QUERN_OK;
}

quern_result quern__prefabs_fail(const quern__storage *storage, quern_prefab handle)
{
    if (handle.bits == 0)
        return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB, "the prefab handle is null: capture a prefab first");
    const uint32_t tag = storage->entities.first_handle_high >> 24;
    if (handle.bits >> 56 != tag)
        return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB,
                           "the prefab belongs to another world (its tag is %u, this world's is %u): "
                           "capture it in this world",
                           (uint32_t)(handle.bits >> 56), tag);
    return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB,
                       "prefab %u was destroyed: keep it as long as it is spawned", (uint32_t)handle.bits);
}

uint64_t quern__prefabs_held_bytes(const quern__storage *storage)
{
    const quern__prefabs *prefabs = storage->prefabs;
    if (prefabs == NULL) return 0;
    uint64_t bytes = sizeof *prefabs + (uint64_t)prefabs->slots.capacity * sizeof *prefabs->slots.items +
                     (uint64_t)prefabs->handles.capacity * sizeof(quern_entity);
    for (uint32_t i = 0; i < prefabs->slots.count; i++)
        if (prefabs->slots.items[i].prefab != NULL) bytes += held_bytes(prefabs->slots.items[i].prefab);
    return bytes;
}

/* Plans: the archetypes of a prefab's groups. They depend on whether the root has a parent, and on the root's
 * level, from which the levels of all members follow. A prefab therefore has one plan per level of the root; level
 * 0 means a root without a parent. A plan is valid as long as no archetype is created or removed. */

/* A sorted set of component indices, with room for the captured ones and the tags that a plan adds. */
typedef struct component_set {
    uint16_t indices[2 * QUERN_MAX_ENTITY_COMPONENTS + 2];
    uint32_t count;
} component_set;

/* Sets the level of each link: the level of its source if the root has root_level. keeps_outside_levels: only in the
 * hierarchy, since in other relations levels depend on targets outside of the tree alone. */
static void find_levels(const quern__storage *storage, quern__prefab *prefab, uint32_t root_level,
                        bool keeps_outside_levels)
{
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        quern__prefab_link *link = &prefab->links.items[i];
        if (!link->relation->has_levels) continue;
        if (keeps_outside_levels && link->relation != storage->relations->parent) continue;
        uint32_t above = 0;
        if (link->target_link != QUERN_NO_MEMBER)
            above = prefab->links.items[link->target_link].level;
        else if (link->target == QUERN_NO_MEMBER)
            above = quern__links_level(&link->relation->links, quern_entity_index(link->outside));
        else if (link->target == 0 && link->relation == storage->relations->parent)
            above = root_level;
        link->level = above < QUERN_MAX_RELATION_LEVEL ? above + 1 : QUERN_MAX_RELATION_LEVEL;
    }
}

static quern_result find_archetype(quern__storage *storage, const quern__prefab *prefab, uint32_t i,
                                   uint32_t root_level, quern__archetype **out_archetype)
{
    const quern__prefab_group *group = &prefab->groups.items[i];
    component_set set = {.count = group->component_count};
    if (set.count > 0)
        memcpy(set.indices, prefab->component_indices.items + group->first_component,
               set.count * sizeof *set.indices);
    for (uint32_t k = 0; k < group->level_link_count; k++) {
        const uint32_t index = prefab->level_links.items[group->first_level_link + k];
        const quern__prefab_link *link = &prefab->links.items[index];
        quern__components_insert(set.indices, &set.count, quern__relation_tag(link->relation, link->level));
    }
    if (i == 0 && root_level > 0) {
        quern__components_insert(set.indices, &set.count, storage->relations->parent->component_index);
        quern__components_insert(set.indices, &set.count,
                                 quern__relation_tag(storage->relations->parent, root_level));
    }
    return quern__storage_ensure_archetype(storage, set.indices, set.count, out_archetype);
}

/* Returns whether an earlier group has the archetype of group i. */
static bool is_archetype_shared(const quern__prefab_plan *plan, uint32_t i)
{
    for (uint32_t k = i; k-- > 0;)
        if (plan->archetypes[k] == plan->archetypes[i]) return true;
    return false;
}

static void find_copies(const quern__prefab *prefab, const quern__prefab_group *group,
                        const quern__archetype *archetype, quern__prefab_copy *copies)
{
    for (uint32_t i = group->first_column; i < group->first_column + group->column_count; i++) {
        const quern__prefab_column *column = &prefab->columns.items[i];
        copies[i] = (quern__prefab_copy){
            .values = column->values,
            .bytes = group->width * column->size_bytes,
            .column = quern__archetype_find_column(archetype, column->component_index)};
    }
}

/* Returns the masks `bases` for quern__links_put_trees. A member of the mask is all ones where `node` has the
 * number of an entity, to which the first slot of a tree is added. All other members are zero. */
static inline quern__link_node link_node_bases(const quern__link_node *node)
{
    return (quern__link_node){.target = node->target != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                              .first = node->first != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                              .last = node->last != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                              .next = node->next != QUERN__SLOT_NONE ? UINT32_MAX : 0,
                              .previous = node->previous != QUERN__SLOT_NONE ? UINT32_MAX : 0};
}

/* The version is stored last: archetypes that are created for this plan do not invalidate it. */
static quern_result make_plan(quern__storage *storage, quern__prefab *prefab, uint32_t root_level,
                              bool keeps_outside_levels, quern__prefab_plan *plan)
{
    find_levels(storage, prefab, root_level, keeps_outside_levels);
    plan->archetypes_version = QUERN__PLAN_NONE;
    plan->shares_archetypes = false;
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        quern_result result = find_archetype(storage, prefab, i, root_level, &plan->archetypes[i]);
        if (result != QUERN_OK) return result;
        find_copies(prefab, &prefab->groups.items[i], plan->archetypes[i], plan->copies);
        /* only at the last level can groups that differ in their depth share an archetype */
        plan->shares_archetypes = plan->shares_archetypes || is_archetype_shared(plan, i);
    }
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const uint32_t level = root_level + prefab->nodes.items[i].level;
        plan->nodes[i] = prefab->nodes.items[i];
        plan->nodes[i].level = level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL;
        plan->node_bases[i] = link_node_bases(&plan->nodes[i]);
    }
    plan->archetypes_version = storage->archetypes_version;
    return QUERN_OK;
}

/* Fails with STALE_ENTITY if a target outside of the tree is dead. */
static quern_result prefab_check_outside(const quern__storage *storage, const quern__prefab *prefab)
{
    for (uint32_t i = 0; i < prefab->links.count && prefab->has_outside; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        if (link->target != QUERN_NO_MEMBER) continue;
        if (quern__entities_find(&storage->entities, link->outside) == NULL)
            return quern__fail(
                QUERN_ERROR_STALE_ENTITY,
                "member %u is related by '%s' to an entity outside of the prefab that is not alive "
                "any more: capture the tree again",
                link->source, quern__relation_name(storage, link->relation));
    }
    return QUERN_OK;
}

/* Allocates a plan and its arrays. Returns NULL if out of memory. */
static quern__prefab_plan *add_plan(const quern_allocator *allocator, const quern__prefab *prefab)
{
    quern__prefab_plan *plan =
        quern__allocate(allocator, prefab_plan_bytes(prefab), _Alignof(quern__link_node));
    if (plan == NULL) return NULL;
    plan->nodes = (quern__link_node *)(void *)(plan + 1);
    plan->node_bases = plan->nodes + prefab->members.count;
    plan->copies = (quern__prefab_copy *)(void *)(plan->node_bases + prefab->members.count);
    plan->archetypes = (quern__archetype **)(void *)(plan->copies + prefab->columns.count);
    return plan;
}

quern_result quern__prefab_plan_find(quern__storage *storage, quern__prefab *prefab, uint32_t parent_slot,
                                     bool keeps_outside_levels, const quern__prefab_plan **out_plan)
{
    uint32_t root_level = 0;
    if (parent_slot != QUERN__SLOT_NONE)
        root_level = quern__relation_source_level(storage->relations->parent, parent_slot);
    quern__prefab_plan *plan = prefab->plans[root_level];
    if (QUERN__LIKELY(plan != NULL && plan->archetypes_version == storage->archetypes_version &&
                      !prefab->has_outside_levels)) {
        *out_plan = plan;
        return QUERN_OK;
    }
    if (plan == NULL) plan = add_plan(&storage->allocator, prefab);
    if (plan == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to plan a spawn");
    prefab->plans[root_level] = plan;
    *out_plan = plan;
    return make_plan(storage, prefab, root_level, keeps_outside_levels, plan);
}

/* Overrides of a spawn: their columns are found and checked before anything is spawned. */

bool quern__is_end_of_overrides(const void *list, uint32_t i)
{
    const quern_spawn_override *override = (const quern_spawn_override *)list + i;
    return override->component.bits == 0 && override->member == 0 && override->column == NULL;
}

/* Whether a managed component is a tag: that of a level, or "disabled by parent". All others belong to relations. */
static bool is_hidden_tag(const quern__storage *storage, uint32_t component_index)
{
    return storage->components.list.items[component_index]->managed.is_hidden;
}

/* Finds the column of a component in the member's group. Fails with UNKNOWN_COMPONENT, with COMPONENT_ABSENT, or
 * with INVALID_ARGUMENT if there is no such member or the component has no values that users may write. */
static quern_result prefab_find_column(const quern__storage *storage, const quern__prefab *prefab,
                                       uint32_t member, quern_component component, uint32_t *out_column)
{
    quern_result result = quern__components_check(&storage->components, component);
    if (result != QUERN_OK) return result;
    if (member >= prefab->members.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "the prefab has no member %u: it has %u members",
                           member, prefab->members.count);
    const uint32_t index = quern__component_index(component);
    const char *name = quern__components_type(&storage->components, index)->name;
    if (quern__components_is_managed(&storage->components, index))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            is_hidden_tag(storage, index)
                ? "'%s' is a tag that Quern maintains, which has no values to override: override a "
                  "component with values"
                : "'%s' is a relation, which an override cannot set: use .parent, or relate the "
                  "spawned entities",
            name);
    result = quern__components_check_edge_list(&storage->components, index);
    if (result != QUERN_OK) return result;
    const quern__prefab_group *group = &prefab->groups.items[prefab->members.items[member].group];
    for (uint32_t i = 0; i < group->column_count; i++) {
        *out_column = i;
        if (prefab->columns.items[group->first_column + i].component_index == index) return QUERN_OK;
    }
    if (quern__components_type(&storage->components, index)->size_bytes == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' is a tag, which has no values to override: override a component with values", name);
    return quern__fail(QUERN_ERROR_COMPONENT_ABSENT,
                       "member %u has no '%s': only captured components can be overridden", member, name);
}

static quern_result resolve_override(const quern__storage *storage, const quern__prefab *prefab,
                                     const quern_spawn_override *given,
                                     quern__prefab_override *out_override)
{
    uint32_t column;
    quern_result result = prefab_find_column(storage, prefab, given->member, given->component, &column);
    if (result != QUERN_OK) return result;
    if (given->column == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its column is NULL: it must have one value per instance");
    const quern__prefab_member *member = &prefab->members.items[given->member];
    *out_override = (quern__prefab_override){
        .group = member->group,
        .row = member->row,
        .column = column,
        .values = given->column,
        .stride_bytes =
            prefab->columns.items[prefab->groups.items[member->group].first_column + column].size_bytes};
    return QUERN_OK;
}

quern_result quern__prefab_resolve_overrides(const quern__storage *storage, const quern__prefab *prefab,
                                             const quern_spawn_def *def,
                                             quern__prefab_override *out_overrides, uint32_t *out_count)
{
    quern_result result = quern__list_count(def->overrides, QUERN_MAX_SPAWN_OVERRIDES,
                                            quern__is_end_of_overrides, "override", NULL, out_count);
    for (uint32_t i = 0; i < *out_count && result == QUERN_OK; i++) {
        result = resolve_override(storage, prefab, &def->overrides[i], &out_overrides[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "override", i);
        for (uint32_t k = 0; k < i; k++)
            if (def->overrides[k].component.bits == def->overrides[i].component.bits &&
                def->overrides[k].member == def->overrides[i].member)
                return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                                   "overrides %u and %u are for the same component of member %u: keep one",
                                   k, i, def->overrides[i].member);
    }
    return result;
}

/* ----------------------------------------------------------------------------------------- members */

quern_result quern_prefab_destroy(quern_world *world, quern_prefab prefab)
{
    QUERN__ENTER_UNLOCKED(world);
    if (quern__prefabs_find(&world->storage, prefab) == NULL)
        return quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    quern__prefabs *prefabs = world->storage.prefabs;
    const uint32_t index = (uint32_t)prefab.bits;
    quern__prefab_slot *slot = &prefabs->slots.items[index];
    quern__prefab *removed = slot->prefab;
    slot->prefab = NULL;
    prefabs->count--;
    if (slot->generation < QUERN__MAX_GENERATION) { /* otherwise the slot is not reused */
        slot->generation++;
        slot->next_free = prefabs->first_free;
        prefabs->first_free = index;
    }
    quern__prefab_release(removed, &world->storage.allocator);
    return QUERN_OK;
}

uint32_t quern_prefab_member_count(const quern_world *world, quern_prefab prefab)
{
    QUERN__NEED_OR(world, 0);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return found->members.count;
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    return 0;
}

uint32_t quern_world_list_prefabs(const quern_world *world, quern_prefab *out_prefabs, uint32_t capacity)
{
    QUERN__NEED_OR(world, 0);
    QUERN__NEED_LIST_OR(out_prefabs, capacity, 0);
    const quern__prefabs *prefabs = world->storage.prefabs;
    if (prefabs == NULL) return 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < prefabs->slots.count && count < capacity; i++)
        if (prefabs->slots.items[i].prefab != NULL)
            out_prefabs[count++] = prefabs_handle(&world->storage, i);
    return prefabs->count;
}

/* Finds the child of a member by a name of `bytes` bytes. Returns QUERN_NO_MEMBER if there is none. */
static uint32_t find_child(const quern__prefab *prefab, uint32_t member, const char *text, size_t bytes)
{
    uint32_t child = prefab->nodes.items[member].first;
    for (; child != QUERN_NO_MEMBER; child = prefab->nodes.items[child].next) {
        const uint32_t at = prefab->members.items[child].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = prefab->names.items + at;
        if (strlen(name) == bytes && memcmp(name, text, bytes) == 0) break;
    }
    return child;
}

uint32_t quern_prefab_find_member(const quern_world *world, quern_prefab prefab, const char *path)
{
    QUERN__NEED_OR(world, QUERN_NO_MEMBER);
    QUERN__NEED_OR(path, QUERN_NO_MEMBER);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found == NULL) {
        quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
        return QUERN_NO_MEMBER;
    }
    uint32_t member = 0;
    while (member != QUERN_NO_MEMBER && *path != '\0') {
        const size_t bytes = strcspn(path, "/");
        member = find_child(found, member, path, bytes);
        path += bytes;
        if (path[0] == '/' && path[1] != '\0')
            path++;
        else if (path[0] == '/')
            return QUERN_NO_MEMBER; /* no member has an empty name */
    }
    return member;
}

bool quern_prefab_is_enabled(const quern_world *world, quern_prefab prefab)
{
    QUERN__NEED_OR(world, false);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    if (found != NULL) return quern__prefab_is_enabled(found, &world->storage);
    quern__in_call(quern__prefabs_fail(&world->storage, prefab), __func__);
    return false;
}

/* --------------------------------------------------------------------------------------------- slots */

quern_result quern_prefab_slot_register(quern_world *world, const char *name, quern_component *out_slot)
{
    const quern_component_def def = {.name = name,
                                     .size_bytes = sizeof(quern_entity),
                                     .alignment_bytes = _Alignof(quern_entity),
                                     .fields = {{.name = "part", .type = QUERN_FIELD_ENTITY}},
                                     .is_hidden = true};
    const quern_result result = quern_component_register(world, &def, out_slot);
    return result == QUERN_OK ? result : quern__message_add_call(result, __func__, NULL);
}

quern_result quern__prefab_check_slot(const quern__storage *storage, quern_component slot)
{
    const quern_result result = quern__components_check(&storage->components, slot);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(slot);
    const quern__type *type = quern__components_type(&storage->components, index);
    if (type->size_bytes == sizeof(quern_entity) && type->has_entity_fields &&
        !quern__components_is_managed(&storage->components, index))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%s' is no prefab slot: register one by quern_prefab_slot_register", type->name);
}

static quern_result find_part(const quern_world *world, quern_entity root, quern_component slot,
                              quern_entity *out_part)
{
    if (world == NULL) return quern__fail_null("quern_prefab_part", "world");
    const quern__entities *entities = &world->storage.entities;
    quern_result result = quern__world_check_unlocked(world, "quern_prefab_part");
    if (result != QUERN_OK) return result;
    const quern__record *record = quern__entities_find(entities, root);
    result = record != NULL ? quern__prefab_check_slot(&world->storage, slot)
                            : quern__entities_check(entities, root);
    if (result != QUERN_OK || record == NULL) return quern__in_call(result, "quern_prefab_part");
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    const quern_entity *part =
        quern__storage_value(archetype, record->location, quern__component_index(slot));
    if (part != NULL && quern__entities_find(entities, *part) != NULL) *out_part = *part;
    return QUERN_OK;
}

quern_entity quern_prefab_part(const quern_world *world, quern_entity root, quern_component slot)
{
    quern_entity part = quern_entity_null();
    (void)find_part(world, root, slot, &part);
    return part;
}

uint32_t quern_prefab_find_slot(const quern_world *world, quern_prefab prefab, quern_component slot)
{
    QUERN__NEED_OR(world, QUERN_NO_MEMBER);
    const quern__prefab *found = quern__prefabs_find(&world->storage, prefab);
    const quern_result result = found != NULL ? quern__prefab_check_slot(&world->storage, slot)
                                              : quern__prefabs_fail(&world->storage, prefab);
    quern__in_call(result, __func__);
    if (found == NULL || result != QUERN_OK) return QUERN_NO_MEMBER;
    const quern__prefab_member *root = &found->members.items[0];
    const quern__prefab_group *group = &found->groups.items[root->group];
    for (uint32_t i = root->first_field; i < root->first_field + root->field_count; i++) {
        const quern__prefab_field *field = &found->fields.items[i];
        const quern__prefab_column *column = &found->columns.items[group->first_column + field->column];
        if (column->component_index == quern__component_index(slot)) return field->member;
    }
    return QUERN_NO_MEMBER;
}

/* ------------------------------------------------------------------------------------------ spawning */

/* Maximum number of handles for which memory is retained between calls. */
enum { RETAINED_HANDLES = 4096 };

/* State of one call. */
typedef struct spawn_call {
    quern_world *world;
    quern__prefab *prefab;
    const quern_spawn_def *def; /* or NULL */
    quern__instances instances;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    quern_entity *handles;    /* handles of the current block of instances, or of all instances */
    uint32_t handle_count;    /* capacity of handles */
    uint32_t fill_term_count; /* number of components of the fill */
} spawn_call;

/* ---------------------------------------------------------------------------------------------- room */

/* Reserves handles for a block of instances, or for all instances if a fill needs them at the end. */
static quern_result reserve_handles(spawn_call *it, uint32_t used_count)
{
    quern__storage *storage = it->instances.storage;
    const uint32_t member_count = it->prefab->members.count;
    const bool is_filled = it->def != NULL && it->def->fill != NULL;
    const uint32_t block = is_filled ? it->instances.count : quern__instances_per_block(it->prefab);
    const uint32_t most = it->instances.count < block ? it->instances.count : block;
    it->handle_count = most * member_count < used_count ? used_count : most * member_count;
    if (!quern__array_reserve(&storage->allocator, &storage->prefabs->handles, it->handle_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the handles of %u entities",
                           it->handle_count);
    it->handles = storage->prefabs->handles.items;
    return QUERN_OK;
}

/* Reserves all memory: slots, rows, and the pages of links. Links need a list of slots for the first members, those that
 * reuse free slots, or for all if pages are absent; the other members get consecutive slots that were never used. On
 * failure nothing stays reserved except empty archetypes, pages of links and new entity
 * records. */
static quern_result reserve(spawn_call *it)
{
    quern__storage *storage = it->instances.storage;
    const bool has_links = it->instances.parent_relation != NULL || it->prefab->links.count > 0;
    const uint32_t count = it->instances.count * it->prefab->members.count;
    const quern__entities *entities = &storage->entities;
    const uint32_t used_count = !has_links ? 0
                                : entities->absent_count == 0 && entities->free_count < count
                                    ? entities->free_count
                                    : count;
    quern_result result = reserve_handles(it, used_count);
    if (result == QUERN_OK)
        result = quern__entities_reserve(&storage->entities, &storage->allocator, count);
    for (uint32_t i = 0; i < it->prefab->groups.count && result == QUERN_OK; i++)
        result = quern__rows_reserve(storage, it->instances.plan->archetypes[i],
                                     it->instances.count * it->prefab->groups.items[i].width);
    if (result == QUERN_OK && has_links) {
        const quern__new_slots slots = {
            .handles = it->handles, .handle_count = used_count, .first = entities->slot_count};
        uint32_t name_count = 0;
        if (used_count > 0) quern__entities_peek(entities, used_count, it->handles);
        result = quern__instances_reserve_links(&it->instances, &slots, &name_count);
    }
    if (QUERN__LIKELY(result == QUERN_OK)) return QUERN_OK;
    for (uint32_t i = 0; i < it->prefab->groups.count; i++)
        quern__rows_unreserve(storage, it->instances.plan->archetypes[i]);
    quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
}

/* ---------------------------------------------------------------------------------------------- fill */

/* Checks the member and the components of the fill. */
static quern_result check_fill(spawn_call *it)
{
    const quern_spawn_def *def = it->def;
    quern_result result =
        quern__list_count(def->fill_components, QUERN_MAX_SPAWN_OVERRIDES, quern__is_end_of_handles,
                          "fill component", NULL, &it->fill_term_count);
    if (result == QUERN_OK && def->fill == NULL && it->fill_term_count > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "fill components are listed, but fill is NULL; set both or none");
    for (uint32_t i = 0; i < it->fill_term_count && result == QUERN_OK; i++) {
        uint32_t column;
        result = prefab_find_column(it->instances.storage, it->prefab, def->fill_member,
                                    def->fill_components[i], &column);
        if (result != QUERN_OK) quern__message_add_element(result, "fill component", i);
    }
    if (result == QUERN_OK && def->fill_member >= it->prefab->members.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "there is no member %u to fill; the prefab has %u members", def->fill_member,
                           it->prefab->members.count);
    return result;
}

static uintptr_t location_of(const spawn_call *it, uint32_t instance)
{
    const quern_entity entity =
        it->handles[(size_t)instance * it->prefab->members.count + it->def->fill_member];
    return quern__entities_record(&it->instances.storage->entities, quern_entity_index(entity))->location;
}

static void call_fill(const spawn_call *it)
{
    const quern_spawn_def *def = it->def;
    const quern__archetype *archetype =
        it->instances.plan->archetypes[it->prefab->members.items[def->fill_member].group];
    quern_view_column columns[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < it->fill_term_count; i++)
        columns[i] = quern__view_fill_column(archetype, def->fill_components[i]);
    quern__accessor accessor = {.name = NULL};
    quern__plain_context context = {
        .scope = {.accessor = &accessor, .storage = &it->world->storage, .caller = QUERN__CALLER_FILL},
        .world = it->world,
        .user_data = def->user_data,
        .thread = quern__this_thread()};
    quern_view view = {
        .context = (quern_context *)&context, .term_count = it->fill_term_count, .columns = columns};
    /* one call for the instances whose members have consecutive rows of one chunk */
    for (; view.fill_index < it->instances.count; view.fill_index += view.count) {
        const uintptr_t first = location_of(it, view.fill_index);
        const uint32_t left = archetype->shape.row_capacity - quern__location_row(&archetype->shape, first);
        uint32_t count = 1;
        while (count < left && view.fill_index + count < it->instances.count &&
               location_of(it, view.fill_index + count) == first + count)
            count++;
        view.first_row = 0;
        quern__view_set_rows(&view, archetype, first, count);
        quern__world_set_locked(it->world, true);
        def->fill(view.context, &view);
        quern__world_set_locked(it->world, false);
        quern__scope_reset(&context.scope);
    }
}

/* ------------------------------------------------------------------------------------------ the calls */

/* Checks the definition, and registers the hierarchy if the roots have a parent. */
static quern_result check_def(spawn_call *it)
{
    quern__instances *instances = &it->instances;
    quern_result result = quern__prefab_resolve_overrides(instances->storage, it->prefab, it->def,
                                                          it->overrides, &instances->override_count);
    instances->overrides = it->overrides;
    for (uint32_t i = 0; i < instances->override_count && result == QUERN_OK; i++) {
        const quern_spawn_override *given = &it->def->overrides[i];
        result = quern__world_check_provisional(it->world, &given->component, &given->column, 1,
                                                instances->count, "quern_commands_spawn");
        if (result != QUERN_OK) quern__message_add_element(result, "override", i);
    }
    if (result == QUERN_OK) result = check_fill(it);
    if (result != QUERN_OK || it->def->parent.bits == 0) return result;

    quern__relations *relations = instances->storage->relations;
    result = quern__entities_check(&instances->storage->entities, it->def->parent);
    if (result == QUERN_OK && relations->parent == NULL)
        result = quern__relation_register(instances->storage, &quern__parent_def, &relations->parent);
    instances->parent = it->def->parent;
    instances->parent_relation = relations->parent;
    return result;
}

/* Finds the plan, and checks the definition. */
static quern_result prepare(spawn_call *it)
{
    quern__instances *instances = &it->instances;
    quern__storage *storage = instances->storage;
    if (it->def != NULL) {
        const quern_result result = check_def(it);
        if (result != QUERN_OK) return result;
    }
    if ((uint64_t)instances->count * it->prefab->members.count > QUERN_MAX_ENTITIES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "%u instances of %u members; a world has at most %u entities "
                           "(QUERN_MAX_ENTITIES)",
                           instances->count, it->prefab->members.count, QUERN_MAX_ENTITIES);
    const uint32_t parent_slot =
        instances->parent_relation != NULL ? quern_entity_index(instances->parent) : QUERN__SLOT_NONE;
    const quern_result result = prefab_check_outside(storage, it->prefab);
    if (result != QUERN_OK) return result;
    return quern__prefab_plan_find(storage, it->prefab, parent_slot, false, &instances->plan);
}

static quern_result put_many(quern_world *world, quern__prefab *prefab, uint32_t count,
                             const quern_spawn_def *def, quern_entity *out_roots, quern_entity *out_members)
{
    spawn_call it;
    it.world = world;
    it.prefab = prefab;
    it.instances.prefab = prefab;
    it.def = def;
    it.instances.storage = &world->storage;
    it.instances.parent_relation = NULL;
    it.instances.override_count = 0;
    it.instances.count = count;
    it.instances.is_linked = false;
    quern_result result = prepare(&it);
    if (result != QUERN_OK || count == 0) return result;
    result = reserve(&it);
    if (result != QUERN_OK) return result;
    /* in blocks that the reserved handles allow */
    const uint32_t member_count = it.prefab->members.count, most = it.handle_count / member_count;
    for (uint32_t first = 0, part; first < count; first += part) {
        part = count - first < most ? count - first : most;
        quern__slots_allocate(&world->storage, part * member_count, it.handles);
        quern__instances_put(&it.instances, first, part, it.handles);
        for (uint32_t i = 0; out_roots != NULL && i < part; i++)
            out_roots[first + i] = it.handles[(size_t)i * member_count];
        if (out_members != NULL)
            memcpy(out_members + (size_t)first * member_count, it.handles,
                   (size_t)part * member_count * sizeof *it.handles);
    }
    if (def != NULL && def->fill != NULL) call_fill(&it);
    quern__rows_gather_if_large(&world->storage);
    quern__prefabs *prefabs = world->storage.prefabs;
    if (prefabs->handles.capacity > RETAINED_HANDLES) {
        quern__array_release(&world->storage.allocator, &prefabs->handles);
        prefabs->handles.items = NULL;
        prefabs->handles.capacity = 0;
    }
    quern__hooks_after(&world->storage);
    return QUERN_OK;
}

static quern_result spawn_many(quern_world *world, quern_prefab handle, uint32_t count,
                               const quern_spawn_def *def, quern_entity *out_roots,
                               quern_entity *out_members)
{
    quern__prefab *prefab = quern__prefabs_find(&world->storage, handle);
    return QUERN__LIKELY(prefab != NULL) ? put_many(world, prefab, count, def, out_roots, out_members)
                                         : quern__prefabs_fail(&world->storage, handle);
}

quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                     const quern_spawn_def *def, quern_entity *out_roots,
                                     quern_entity *out_members)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(spawn_many(world, prefab, count, def, out_roots, out_members), __func__);
}

quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(spawn_many(world, prefab, 1, def, out_root, NULL), __func__);
}

/* ---------------------------------------------------------------------------------------------- clones */

/* Copies a leaf of an archetype below a parent, which may be null. */
static quern_result copy_leaf(quern_world *world, quern_entity entity, quern__archetype *archetype,
                              quern_entity parent, quern_entity *out_copy)
{
    quern__storage *storage = &world->storage;
    quern__entities *entities = &storage->entities;
    const bool has_parent = parent.bits != 0;
    uint32_t name_count = 0;
    quern_entity copy;
    quern__archetype *target;
    quern__leaf_plan plan;
    quern_result result = quern__leaf_find_target(
        storage, archetype, has_parent ? quern_entity_index(parent) : QUERN__SLOT_NONE, &target);
    if (result != QUERN_OK) return result;
    quern__leaf_plan_init(&plan, target);
    const quern__instances instances = {.storage = storage,
                                        .prefab = &quern__leaf_prefab,
                                        .plan = &plan.plan,
                                        .parent_relation = has_parent ? storage->relations->parent : NULL,
                                        .parent = parent,
                                        .count = 1};
    result = quern__entities_reserve(entities, &storage->allocator, 1);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, target, 1);
    if (result == QUERN_OK && has_parent) {
        quern__entities_peek(entities, 1, &copy);
        const quern__new_slots slots = {.handles = &copy, .handle_count = 1};
        result = quern__instances_reserve_links(&instances, &slots, &name_count);
    }
    if (QUERN__UNLIKELY(result != QUERN_OK)) {
        quern__rows_unreserve(storage, target);
        quern__entities_trim(entities, &storage->allocator);
        return result;
    }
    quern__slots_allocate(storage, 1, &copy);
    quern__instances_put(&instances, 0, 1, &copy);
    quern__leaf_fill(storage, entity, copy);
    if (out_copy != NULL) *out_copy = copy;
    quern__rows_gather_if_large(storage);
    quern__hooks_after(storage);
    return QUERN_OK;
}

/* Whether the definition has nothing but a parent. */
static bool has_only_parent(const quern_spawn_def *def)
{
    for (uint32_t i = 0; i < QUERN_MAX_SPAWN_OVERRIDES; i++)
        if (def->overrides[i].component.bits != 0 || def->overrides[i].member != 0 ||
            def->overrides[i].column != NULL || def->fill_components[i].bits != 0)
            return false;
    return def->fill == NULL && def->fill_member == 0;
}

static quern_result clone_entity(quern_world *world, quern_entity entity, const quern_spawn_def *def,
                                 quern_entity *out_root)
{
    quern__storage *storage = &world->storage;
    quern__archetype *archetype;
    quern__prefab *prefab;
    quern_result result = quern__entities_check(&storage->entities, entity);
    if (result != QUERN_OK) return result;
    const quern_entity beside =
        quern__entity_of_link(storage, quern__parent_slot(storage, quern_entity_index(entity)));
    if ((def == NULL || has_only_parent(def)) && quern__leaf_find(storage, entity, &archetype)) {
        const quern_entity parent = def != NULL ? def->parent : beside;
        if (parent.bits != 0) result = quern__entities_check(&storage->entities, parent);
        if (parent.bits != 0 && result == QUERN_OK && storage->relations->parent == NULL)
            result = quern__relation_register(storage, &quern__parent_def, &storage->relations->parent);
        return result == QUERN_OK ? copy_leaf(world, entity, archetype, parent, out_root) : result;
    }
    result = quern__prefab_capture(storage, entity, &prefab);
    if (result != QUERN_OK) return result;
    const quern_spawn_def below_same = {.parent = beside};
    result = prefabs_ensure(storage)
                 ? put_many(world, prefab, 1, def != NULL ? def : &below_same, out_root, NULL)
                 : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the handles of instances");
    quern__prefab_release(prefab, &storage->allocator);
    return result;
}

quern_result quern_entity_clone(quern_world *world, quern_entity entity, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    QUERN__ENTER_UNLOCKED(world);
    return quern__in_call(clone_entity(world, entity, def, out_root), __func__);
}
