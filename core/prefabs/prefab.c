/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/prefabs/prefab_internal.h"

enum { PREFAB_ALIGNMENT_BYTES = 64 };

/* ----------------------------------------------------------------------------------------- one prefab */

quern__prefab *quern__prefab_create(const quern_allocator *allocator)
{
    quern__prefab *prefab = quern__allocate(allocator, sizeof *prefab, _Alignof(quern__prefab));
    if (prefab == NULL) return NULL;
    *prefab = (quern__prefab){0};
    atomic_init(&prefab->reference_count, 1);
    return prefab;
}

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

bool quern__prefabs_ensure(quern__storage *storage)
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
    if (!quern__prefabs_ensure(storage)) return false;
    quern__prefabs *prefabs = storage->prefabs;
    if (prefabs->first_free != QUERN__SLOT_NONE) return true;
    if (!quern__array_reserve(allocator, &prefabs->slots, prefabs->slots.count + 1)) return false;
    prefabs->slots.items[prefabs->slots.count] =
        (quern__prefab_slot){.generation = 1, .next_free = QUERN__SLOT_NONE};
    prefabs->first_free = prefabs->slots.count++;
    return true;
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
    *out_handle = quern__prefabs_handle(storage, index);
    return QUERN_OK;
}

/* A slot that has used its last generation is not reused. */
void quern__prefabs_remove(quern__storage *storage, quern_prefab handle)
{
    quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = (uint32_t)handle.bits;
    quern__prefab_slot *slot = &prefabs->slots.items[index];
    quern__prefab *prefab = slot->prefab;
    slot->prefab = NULL;
    prefabs->count--;
    if (slot->generation < QUERN__MAX_GENERATION) {
        slot->generation++;
        slot->next_free = prefabs->first_free;
        prefabs->first_free = index;
    }
    quern__prefab_release(prefab, &storage->allocator);
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

static void insert(component_set *set, uint32_t index)
{
    uint32_t i = set->count++;
    for (; i > 0 && set->indices[i - 1] > index; i--)
        set->indices[i] = set->indices[i - 1];
    set->indices[i] = (uint16_t)index;
}

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
        insert(&set, quern__relation_tag(link->relation, link->level));
    }
    if (i == 0 && root_level > 0) {
        insert(&set, storage->relations->parent->component_index);
        insert(&set, quern__relation_tag(storage->relations->parent, root_level));
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

quern_result quern__prefab_check_outside(const quern__storage *storage, const quern__prefab *prefab)
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

static bool is_end_of_overrides(const void *list, uint32_t i)
{
    const quern_spawn_override *override = (const quern_spawn_override *)list + i;
    return override->component.bits == 0 && override->member == 0 && override->column == NULL;
}

/* Whether a managed component is a tag: that of a level, or "disabled by parent". All others belong to relations. */
static bool is_hidden_tag(const quern__storage *storage, uint32_t component_index)
{
    return storage->components.list.items[component_index]->managed.is_hidden;
}

quern_result quern__prefab_find_column(const quern__storage *storage, const quern__prefab *prefab,
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
    quern_result result =
        quern__prefab_find_column(storage, prefab, given->member, given->component, &column);
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
    quern_result result = quern__list_count(def->overrides, QUERN_MAX_SPAWN_OVERRIDES, is_end_of_overrides,
                                            "override", NULL, out_count);
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
