/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The checks of quern_world_validate on relations: links, components and level tags agree. */

#include "core/check/validate.h"
#include "core/relations/relate.h"

/* A relation, and the number of its sources as counted in three ways. */
typedef struct relation_check {
    const quern__storage *storage;
    const quern__relation *relation;
    const char *name;
    uint64_t target_count; /* slots that have a target */
    uint64_t listed_count; /* members of all lists of sources */
    uint64_t source_count; /* rows with the relation's component or a level tag */
} relation_check;

static bool is_alive(const quern__storage *storage, uint32_t slot)
{
    return slot < storage->entities.slot_count &&
           quern__entities_record(&storage->entities, slot)->location != 0;
}

/* Checks the list of a slot's sources. */
static quern_result validate_list(relation_check *check, uint32_t slot, const quern__link_node *node)
{
    const quern__links *links = &check->relation->links;
    uint32_t previous = QUERN__SLOT_NONE, count = 0;
    for (uint32_t source = node->first; source != QUERN__SLOT_NONE; count++) {
        const quern__link_node *found = quern__links_find(links, source);
        REQUIRE(count < node->count && found != NULL && found->target == slot,
                "slot %u is listed as a source of slot %u in relation '%s', but has another target", source,
                slot, check->name);
        REQUIRE(found->previous == previous,
                "slot %u in relation '%s' refers to another previous sibling than the list has", source,
                check->name);
        previous = source;
        source = found->next;
    }
    REQUIRE(count == node->count, "slot %u has %u sources in relation '%s', but counts %u", slot, count,
            check->name, node->count);
    REQUIRE(node->last == previous, "slot %u has another last source in relation '%s' than the list has",
            slot, check->name);
    check->listed_count += count;
    return QUERN_OK;
}

/* Checks the component and the level tag in the row of a source. */
static quern_result validate_row(const relation_check *check, uint32_t slot, const quern__link_node *node)
{
    const quern__storage *storage = check->storage;
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const quern_entity *value =
        quern__storage_value(archetype, record->location, check->relation->component_index);
    REQUIRE(value != NULL, "slot %u has a target in relation '%s', but not its component", slot,
            check->name);
    REQUIRE(value->bits == quern__entity_of_slot(storage, node->target).bits,
            "slot %u has slot %u as target in relation '%s', but its component holds %#llx: was it written "
            "through a pointer?",
            slot, node->target, check->name, (unsigned long long)value->bits);
    REQUIRE(quern__relation_level(check->relation, archetype) == node->level,
            "slot %u is on level %u of relation '%s', but among entities of level %u", slot, node->level,
            check->name, quern__relation_level(check->relation, archetype));
    return QUERN_OK;
}

/* Checks the links of one slot: its list of sources, its target, and its level. */
static quern_result validate_slot(relation_check *check, uint32_t slot, const quern__link_node *node)
{
    quern_result result = validate_list(check, slot, node);
    if (result != QUERN_OK) return result;
    if (node->target == QUERN__SLOT_NONE) {
        REQUIRE(node->level == 0 && node->next == QUERN__SLOT_NONE && node->previous == QUERN__SLOT_NONE,
                "slot %u has no target in relation '%s', but a level or siblings", slot, check->name);
        REQUIRE(node->count == 0 || is_alive(check->storage, slot),
                "slot %u has sources in relation '%s', but is not alive", slot, check->name);
        return QUERN_OK;
    }
    REQUIRE(is_alive(check->storage, slot) && is_alive(check->storage, node->target),
            "slot %u has slot %u as target in relation '%s', and not both are alive", slot, node->target,
            check->name);
    REQUIRE(node->level == quern__relation_source_level(check->relation, node->target),
            "slot %u is on level %u of relation '%s', which does not follow from its target", slot,
            node->level, check->name);
    check->target_count++;
    return validate_row(check, slot, node);
}

/* Counts the rows with the relation's component or a level tag. Only sources may have either. */
static void count_rows(relation_check *check)
{
    for (uint32_t i = 0; i < check->storage->archetypes.count; i++) {
        const quern__archetype *archetype = check->storage->archetypes.items[i];
        if (quern__archetype_has(archetype, check->relation->component_index) ||
            quern__relation_level(check->relation, archetype) > 0)
            check->source_count += quern__archetype_row_count(archetype);
    }
}

/* ----------------------------------------------------------------------------------------------- edges */

/* Checks that a set ascends within its ranges and counts its members. */
static quern_result validate_set(const relation_check *check, uint32_t slot, const quern__edge_list *list)
{
    uint64_t count = 0, least = 0;
    for (uint32_t i = 0; i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        const bool has_first = list->capacity == QUERN__EDGE_DIRECTORY;
        REQUIRE(!has_first || list->directory->blocks.items[i].first >= least,
                "slot %u in relation '%s' has a block of edges out of order", slot, check->name);
        if (has_first) least = list->directory->blocks.items[i].first;
        for (uint32_t k = 0; k < range.count; k++) {
            REQUIRE(range.slots[k] >= least, "slot %u in relation '%s' has edges out of order", slot,
                    check->name);
            REQUIRE(range.slots[k] != slot && is_alive(check->storage, range.slots[k]),
                    "slot %u in relation '%s' has an edge with slot %u, which is itself or not alive", slot,
                    check->name, range.slots[k]);
            least = (uint64_t)range.slots[k] + 1;
        }
        count += range.count;
    }
    REQUIRE(count == list->count, "slot %u in relation '%s' has %llu edges of one kind, but counts %u",
            slot, check->name, (unsigned long long)count, list->count);
    return QUERN_OK;
}

/* Checks the edges of one slot, and the tag of a source. */
static quern_result validate_node(relation_check *check, uint32_t slot, const quern__edge_node *node)
{
    if (node->targets.count == 0 && node->sources.count == 0) return QUERN_OK;
    REQUIRE(is_alive(check->storage, slot), "slot %u has edges in relation '%s', but is not alive", slot,
            check->name);
    quern_result result = validate_set(check, slot, &node->targets);
    if (result == QUERN_OK) result = validate_set(check, slot, &node->sources);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < quern__edge_list_ranges(&node->targets); i++) {
        const quern__edge_range range = quern__edge_list_range(&node->targets, i);
        for (uint32_t k = 0; k < range.count; k++)
            REQUIRE(
                quern__edge_list_has(quern__edges_sources(&check->relation->edges, range.slots[k]), slot),
                "slot %u has slot %u as target in relation '%s', but is not among its sources", slot,
                range.slots[k], check->name);
    }
    check->target_count += node->targets.count;
    check->listed_count += node->sources.count;
    if (node->targets.count == 0) return QUERN_OK;
    const quern__archetype *archetype = quern__storage_archetype_of(
        check->storage, quern__entities_record(&check->storage->entities, slot));
    REQUIRE(quern__archetype_has(archetype, check->relation->component_index),
            "slot %u has a target in relation '%s', but not its tag", slot, check->name);
    check->source_count--;
    return QUERN_OK;
}

static quern_result validate_edges(const quern__storage *storage, const quern__relation *relation)
{
    relation_check check = {
        .storage = storage, .relation = relation, .name = quern__relation_name(storage, relation)};
    const quern__edges *edges = &relation->edges;
    count_rows(&check);
    for (uint32_t page = 0; page < edges->pages.count; page++)
        for (uint32_t i = 0; edges->pages.items[page] != NULL && i < QUERN__EDGE_PAGE_SLOTS; i++) {
            quern_result result =
                validate_node(&check, page * QUERN__EDGE_PAGE_SLOTS + i, &edges->pages.items[page][i]);
            if (result != QUERN_OK) return result;
        }
    REQUIRE(
        check.listed_count == check.target_count && edges->count == check.target_count &&
            check.source_count == 0,
        "relation '%s' has %llu edges by targets, %llu by sources and %llu by count, and %llu rows with "
        "its tag have no target",
        check.name, (unsigned long long)check.target_count, (unsigned long long)check.listed_count,
        (unsigned long long)edges->count, (unsigned long long)check.source_count);
    return QUERN_OK;
}

static quern_result validate_relation(const quern__storage *storage, const quern__relation *relation)
{
    if (relation->is_many) return validate_edges(storage, relation);
    relation_check check = {
        .storage = storage, .relation = relation, .name = quern__relation_name(storage, relation)};
    const quern__links *links = &relation->links;
    for (uint32_t page = 0; page < links->pages.count; page++)
        for (uint32_t i = 0; links->pages.items[page] != NULL && i < QUERN__LINK_PAGE_SLOTS; i++) {
            quern_result result =
                validate_slot(&check, page * QUERN__LINK_PAGE_SLOTS + i, &links->pages.items[page][i]);
            if (result != QUERN_OK) return result;
        }
    count_rows(&check);
    REQUIRE(check.listed_count == check.target_count && check.source_count == check.target_count,
            "relation '%s' has %llu sources by links, %llu by lists of sources and %llu by components",
            check.name, (unsigned long long)check.target_count, (unsigned long long)check.listed_count,
            (unsigned long long)check.source_count);
    return QUERN_OK;
}

quern_result quern__world_validate_relations(const quern_world *world)
{
    const quern__relations *relations = world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern_result result = validate_relation(&world->storage, relations->list.items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}
