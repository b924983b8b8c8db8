/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Plans: the archetypes of a prefab's groups. They depend on whether the root has a parent, and on the root's
 * level, from which the levels of all members follow. A prefab therefore has one plan per level of the root; level
 * 0 means a root without a parent. A plan is valid as long as no archetype is created or removed. */
#include "core/prefabs/prefab_internal.h"

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

/* Sets the level of each link: the level of its source if the root has root_level. */
static void find_levels(const quern__storage *storage, quern__prefab *prefab, uint32_t root_level)
{
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        quern__prefab_link *link = &prefab->links.items[i];
        if (!link->relation->has_levels) continue;
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
            .size_bytes = column->size_bytes,
            .offset_bytes =
                quern__archetype_column_position(archetype, column->component_index).offset_bytes};
    }
}

static void make_nodes(const quern__prefab *prefab, uint32_t root_level, const quern__prefab_plan *plan)
{
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const uint32_t level = root_level + prefab->nodes.items[i].level;
        plan->nodes[i] = prefab->nodes.items[i];
        plan->nodes[i].level = level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL;
        plan->node_bases[i] = quern__link_node_bases(&plan->nodes[i]);
    }
}

/* The version is stored last: archetypes that are created for this plan do not invalidate it. */
static quern_result make_plan(quern__storage *storage, quern__prefab *prefab, uint32_t root_level,
                              quern__prefab_plan *plan)
{
    find_levels(storage, prefab, root_level);
    plan->archetypes_version = QUERN__PLAN_NONE;
    plan->shares_archetypes = false;
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        quern_result result = find_archetype(storage, prefab, i, root_level, &plan->archetypes[i]);
        if (result != QUERN_OK) return result;
        find_copies(prefab, &prefab->groups.items[i], plan->archetypes[i], plan->copies);
        /* only at the last level can groups that differ in their depth share an archetype */
        plan->shares_archetypes = plan->shares_archetypes || is_archetype_shared(plan, i);
    }
    make_nodes(prefab, root_level, plan);
    plan->archetypes_version = storage->archetypes_version;
    return QUERN_OK;
}

static quern_result check_outside(const quern__storage *storage, const quern__prefab *prefab)
{
    for (uint32_t i = 0; i < prefab->links.count; i++) {
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
        quern__allocate(allocator, quern__prefab_plan_bytes(prefab), _Alignof(quern__link_node));
    if (plan == NULL) return NULL;
    plan->nodes = (quern__link_node *)(void *)(plan + 1);
    plan->node_bases = plan->nodes + prefab->members.count;
    plan->copies = (quern__prefab_copy *)(void *)(plan->node_bases + prefab->members.count);
    plan->archetypes = (quern__archetype **)(void *)(plan->copies + prefab->columns.count);
    return plan;
}

quern_result quern__prefab_plan_find(quern__storage *storage, quern__prefab *prefab, uint32_t parent_slot,
                                     const quern__prefab_plan **out_plan)
{
    uint32_t root_level = 0;
    quern_result result = prefab->has_outside ? check_outside(storage, prefab) : QUERN_OK;
    if (result != QUERN_OK) return result;
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
    return make_plan(storage, prefab, root_level, plan);
}
