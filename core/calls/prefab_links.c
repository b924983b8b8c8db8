/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/calls/prefab_capture.h"
#include "core/relations/relate.h"

/* --------------------------------------------------------------------------------------------- links */

bool quern__prefab_capture_add_link(quern__prefab_capture *it, quern__relation *relation,
                                    quern__prefab_link_indices *links, uint32_t source, uint32_t target,
                                    quern_entity outside)
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

/* Adds the link of a member to a target outside of the tree, if it has one. Leaves out the parent of the root. */
static bool add_outside_link(quern__prefab_capture *it, quern__relation *relation,
                             quern__prefab_link_indices *links, uint32_t member)
{
    const bool is_roots_parent = member == 0 && relation == it->world->storage.relations->parent;
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const uint32_t target = quern__links_target(&relation->links, slot);
    if (target == QUERN__SLOT_NONE || is_roots_parent) return true;
    const quern_entity entity = quern__entity_of_slot(&it->world->storage, target);
    return quern__prefab_capture_find_member(it, entity) != QUERN_NO_MEMBER ||
           quern__prefab_capture_add_link(it, relation, links, member, QUERN_NO_MEMBER, entity);
}

/* Adds the links of all members that have `member` as their target, in sibling order. */
static bool add_sources(quern__prefab_capture *it, quern__relation *relation,
                        quern__prefab_link_indices *links, uint32_t member)
{
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    for (uint32_t slot_of_source = quern__links_first(&relation->links, slot);
         slot_of_source != QUERN__SLOT_NONE;
         slot_of_source = quern__links_at(&relation->links, slot_of_source)->next) {
        const uint32_t source = quern__prefab_capture_find_member(
            it, quern__entity_of_slot(&it->world->storage, slot_of_source));
        if (source != QUERN_NO_MEMBER &&
            (source != 0 || relation != it->world->storage.relations->parent) &&
            !quern__prefab_capture_add_link(it, relation, links, source, member, quern_entity_null()))
            return false;
    }
    return true;
}

/* Whether the member's target in the relation is also a member. */
static bool has_target_inside(const quern__prefab_capture *it, const quern__relation *relation,
                              uint32_t member)
{
    if (member == 0 && relation == it->world->storage.relations->parent) return false;
    const uint32_t slot = quern_entity_index(it->entities.items[member]);
    const uint32_t target = quern__links_target(&relation->links, slot);
    return target != QUERN__SLOT_NONE &&
           quern__prefab_capture_find_member(it, quern__entity_of_slot(&it->world->storage, target)) !=
               QUERN_NO_MEMBER;
}

/* Adds the links of a relation with levels, targets before sources: first those of members without a target in the
 * tree, then, breadth first, those of the sources of each listed link. */
static bool add_links_by_level(quern__prefab_capture *it, quern__relation *relation,
                               quern__prefab_link_indices *links)
{
    const uint32_t first = it->prefab->links.count;
    for (uint32_t i = 0; i < it->entities.count; i++)
        if (!add_outside_link(it, relation, links, i)) return false;
    for (uint32_t i = 0; i < it->entities.count; i++)
        if (!has_target_inside(it, relation, i) && links->items[i] == QUERN_NO_MEMBER &&
            !add_sources(it, relation, links, i))
            return false;
    for (uint32_t i = first; i < it->prefab->links.count; i++)
        if (!add_sources(it, relation, links, it->prefab->links.items[i].source)) return false;
    return true;
}

/* Adds the links of a relation without levels, which may have cycles, in any order. */
static bool add_links_unordered(quern__prefab_capture *it, quern__relation *relation,
                                quern__prefab_link_indices *links)
{
    for (uint32_t i = 0; i < it->entities.count; i++)
        if (!add_outside_link(it, relation, links, i)) return false;
    for (uint32_t i = 0; i < it->entities.count; i++)
        if (!add_sources(it, relation, links, i)) return false;
    return true;
}

/* Adds a link for each edge of the members, in the order of sources and targets. Edges from outside of the tree to
 * members are not captured. */
static bool add_edges(quern__prefab_capture *it, quern__relation *relation,
                      quern__prefab_link_indices *links)
{
    for (uint32_t i = 0; i < it->entities.count; i++) {
        const quern__edge_list *targets =
            quern__edges_targets(&relation->edges, quern_entity_index(it->entities.items[i]));
        for (uint32_t r = 0; r < quern__edge_list_ranges(targets); r++) {
            const quern__edge_range range = quern__edge_list_range(targets, r);
            for (uint32_t k = 0; k < range.count; k++) {
                const quern_entity target = quern__entity_of_slot(&it->world->storage, range.slots[k]);
                const uint32_t member = quern__prefab_capture_find_member(it, target);
                const bool is_outside = member == QUERN_NO_MEMBER;
                if (!quern__prefab_capture_add_link(it, relation, links, i, member,
                                                    is_outside ? target : quern_entity_null()))
                    return false;
            }
        }
    }
    return true;
}

quern_result quern__prefab_capture_list_links(quern__prefab_capture *it, quern__relation *relation,
                                              quern__prefab_link_indices *links)
{
    const bool is_done = relation->is_many      ? add_edges(it, relation, links)
                         : relation->has_levels ? add_links_by_level(it, relation, links)
                                                : add_links_unordered(it, relation, links);
    return is_done ? QUERN_OK : quern__prefab_capture_fail_memory();
}

static quern_result list_links(quern__prefab_capture *it)
{
    const quern__relations *relations = it->world->storage.relations;
    quern__prefab_link_indices links = {0};
    quern_result result = QUERN_OK;
    if (relations->list.count > 0 && !quern__array_reserve(it->allocator, &links, it->depths.count))
        result = quern__prefab_capture_fail_memory();
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

static quern_result list_level_links(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    if (!quern__array_reserve(it->allocator, &prefab->level_links, prefab->links.count))
        return quern__prefab_capture_fail_memory();
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

/* Appends a source to the children of its target. Precondition: the target has its level. */
static void append_node(quern__link_node *node, const quern__prefab_link *link)
{
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

static quern_result list_nodes(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    const uint32_t count = prefab->members.count;
    if (!quern__array_reserve(it->allocator, &prefab->nodes, count))
        return quern__prefab_capture_fail_memory();
    for (; prefab->nodes.count < count; prefab->nodes.count++)
        prefab->nodes.items[prefab->nodes.count] = quern__empty_link_node;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const bool is_parent = prefab->links.items[i].relation == it->world->storage.relations->parent;
        prefab->has_children |= is_parent;
        prefab->has_other_links |= !is_parent;
        if (is_parent) append_node(prefab->nodes.items, &prefab->links.items[i]);
    }
    return QUERN_OK;
}

quern_result quern__prefab_capture_add_links(quern__prefab_capture *it)
{
    quern_result result = list_links(it);
    if (result == QUERN_OK) result = list_nodes(it);
    return result == QUERN_OK ? list_level_links(it) : result;
}
