/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The archetypes that the groups of a prefab go to. They depend on where the root comes to: its parent, and
 * the level of all below it. So there is a plan for each level of the root, 0 standing for a root without
 * parent, which holds as long as no archetype comes or goes. */
#include "core/prefabs/prefab_internal.h"

/* A sorted set of components, with room for those that come to a captured one. */
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

static uint32_t level_below(uint32_t level)
{
    return level < QUERN_MAX_RELATION_LEVEL ? level + 1 : QUERN_MAX_RELATION_LEVEL;
}

/* Gives each link the level that its source comes to. */
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
        link->level = level_below(above);
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
    for (uint32_t k = 0; k < group->tied_count; k++) {
        const quern__prefab_link *link = &prefab->links.items[prefab->ties.items[group->first_tied + k]];
        insert(&set, quern__relation_tag(link->relation, link->level));
    }
    if (i == 0 && root_level > 0) {
        insert(&set, storage->relations->parent->component_index);
        insert(&set, quern__relation_tag(storage->relations->parent, root_level));
    }
    return quern__storage_archetype(storage, set.indices, set.count, out_archetype);
}

static bool has_before(const quern__prefab_plan *plan, uint32_t i)
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
            .offset_bytes = quern__archetype_place(archetype, column->component_index).offset_bytes};
    }
}

static void find_kin(const quern__prefab *prefab, uint32_t root_level, const quern__prefab_plan *plan)
{
    for (uint32_t i = 0; i < prefab->members.count; i++) {
        const uint32_t level = root_level + prefab->kin.items[i].level;
        plan->kin[i] = prefab->kin.items[i];
        plan->kin[i].level = level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL;
        plan->kin_bases[i] = quern__kin_bases(&plan->kin[i]);
    }
}

/* Archetypes that are made on the way are new to the plan alone. */
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
        /* only the last level has groups that differ in depth alone */
        plan->shares_archetypes = plan->shares_archetypes || has_before(plan, i);
    }
    find_kin(prefab, root_level, plan);
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
                "member %u is related by '%s' to an entity outside of the prefab, which does "
                "not live any more; capture the tree again",
                link->source, quern__relation_name(storage, link->relation));
    }
    return QUERN_OK;
}

/* NULL: no memory. */
static quern__prefab_plan *add_plan(const quern_allocator *allocator, const quern__prefab *prefab)
{
    quern__prefab_plan *plan =
        quern__allocate(allocator, quern__prefab_plan_bytes(prefab), _Alignof(quern__kin));
    if (plan == NULL) return NULL;
    plan->kin = (quern__kin *)(void *)(plan + 1);
    plan->kin_bases = plan->kin + prefab->members.count;
    plan->copies = (quern__prefab_copy *)(void *)(plan->kin_bases + prefab->members.count);
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
        root_level = quern__relation_child_level(storage->relations->parent, parent_slot);
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
