/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_world_validate and the statistics of a world. Checks, in this order: relations (links, components and level tags
 * agree), reactions, then the storage. */

#include "core/base/containers.h"
#include "core/events/event_internal.h"
#include "core/prefabs/prefab_internal.h"
#include "core/reactions/reaction.h"
#include "core/relations/relation_internal.h"
#include "core/storage/row_bits.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

/* Makes the calling function fail with CORRUPT and a formatted message if the condition is false. */
#define REQUIRE(condition, ...)                                                 \
    do {                                                                        \
        if (!(condition)) return quern__fail(QUERN_ERROR_CORRUPT, __VA_ARGS__); \
    } while (0)

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

/* Checks the links of one slot: its list of sources, its target, and its level. */
static quern_result validate_slot(relation_check *check, uint32_t slot, const quern__link_node *node)
{
    /* the list of the slot's sources */
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
    /* the component and the level tag in the row of a source */
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

/* Checks that the list of values has the targets of a source, in their order. */
static quern_result validate_edge_list(const relation_check *check, uint32_t slot,
                                       const quern__edge_list *targets)
{
    const quern__relation *relation = check->relation;
    if (!quern__relation_has_values(relation)) return QUERN_OK;
    const quern_list *list = quern__edge_values_of(check->storage, relation, slot);
    REQUIRE(
        list != NULL && list->count == targets->count,
        "slot %u has %u targets in relation '%s', but values of %u edges: was the list changed through a "
        "pointer?",
        slot, targets->count, check->name, list != NULL ? list->count : 0);
    uint32_t number = 0;
    for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
        const quern__edge_range range = quern__edge_list_range(targets, i);
        for (uint32_t k = 0; k < range.count; k++, number++) {
            quern_entity target;
            memcpy(&target, (const char *)list->items + (size_t)number * relation->element.size_bytes,
                   sizeof target);
            REQUIRE(
                quern_entity_equal(target, quern__entity_of_slot(check->storage, range.slots[k])),
                "slot %u has slot %u as target in relation '%s', but %#llx in its list of values: was it "
                "written through a pointer?",
                slot, range.slots[k], check->name, (unsigned long long)target.bits);
        }
    }
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
    return validate_edge_list(check, slot, &node->targets);
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

/* Checks that rows have values of edges if and only if they have a target. */
static quern_result validate_edge_values(const quern__storage *storage, const quern__relation *relation)
{
    for (uint32_t i = 0; i < storage->archetypes.count && quern__relation_has_values(relation); i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        REQUIRE(quern__archetype_row_count(archetype) == 0 ||
                    quern__archetype_has(archetype, relation->component_index) ==
                        quern__archetype_has(archetype, relation->value_index),
                "archetype %u has only one of relation '%s' and the values of its edges", i,
                quern__relation_name(storage, relation));
    }
    return QUERN_OK;
}

static quern_result validate_relation(const quern__storage *storage, const quern__relation *relation)
{
    const quern_result values = validate_edge_values(storage, relation);
    if (values != QUERN_OK) return values;
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

static quern_result world_validate_relations(const quern_world *world)
{
    const quern__relations *relations = world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern_result result = validate_relation(&world->storage, relations->list.items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- reactions */

/* The checks of quern_world_validate on reactions: each is subscribed to exactly the archetypes that it matches, and no
 * row is pending as ADDED and as SET. */

/* Checks the bits of pending rows in one chunk. */
static quern_result validate_bits(const quern__subscription *subscription, uint32_t added, uint32_t set,
                                  uint32_t slot)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    const uint32_t index = subscription->archetype->index, number = subscription->reaction->number;
    uint32_t count = 0;
    if (added != QUERN__NO_BIT_COLUMN) count += quern__bit_column_count(row_bits, added, slot);
    if (set != QUERN__NO_BIT_COLUMN) count += quern__bit_column_count(row_bits, set, slot);
    REQUIRE(count == 0 || (subscription->is_pending && subscription->reaction->is_pending),
            "%u rows of chunk %u of archetype %u are pending for reaction %u, whose flag is not set", count,
            slot, index, number);
    if (added == QUERN__NO_BIT_COLUMN || set == QUERN__NO_BIT_COLUMN) return QUERN_OK;
    for (uint32_t i = 0; i + 1 < row_bits->bit_column_words; i++)
        REQUIRE((quern__bit_column_words(row_bits, added, slot)[i] &
                 quern__bit_column_words(row_bits, set, slot)[i]) == 0,
                "a row of chunk %u of archetype %u is pending for reaction %u as added and as set", slot,
                index, number);
    return QUERN_OK;
}

static quern_result validate_subscription(const quern__subscription *subscription)
{
    const quern__archetype *archetype = subscription->archetype;
    const quern__removed *removed = &subscription->removed;
    const uint32_t kinds = subscription->reaction->kinds, number = subscription->reaction->number,
                   id = subscription->reaction->id;
    const uint32_t added = quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_ADDED, id);
    const uint32_t set = quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_SET, id);
    REQUIRE((added != QUERN__NO_BIT_COLUMN) == ((kinds & QUERN_REACT_ADDED) != 0) &&
                (set != QUERN__NO_BIT_COLUMN) == ((kinds & QUERN_REACT_SET) != 0),
            "reaction %u has bit columns in archetype %u for other kinds than it asks for", number,
            archetype->index);
    REQUIRE(archetype->tracks_changes && !(archetype->has_fast_leave && (kinds & QUERN_REACT_REMOVED) != 0),
            "rows may leave archetype %u without a call of reaction %u", archetype->index, number);
    REQUIRE(removed->count <= (uint64_t)removed->blocks.count * removed->block_rows,
            "reaction %u has %u copies of rows of archetype %u, more than its %u blocks hold", number,
            removed->count, archetype->index, removed->blocks.count);
    REQUIRE(removed->count == 0 || subscription->reaction->is_pending,
            "%u copies of rows of archetype %u are pending for reaction %u, whose flag is not set",
            removed->count, archetype->index, number);
    REQUIRE(subscription->old.column_count == 0 || subscription->old.blocks.count >= archetype->held_count,
            "reaction %u has old values for %u of the %u chunks of archetype %u", number,
            subscription->old.blocks.count, archetype->held_count, archetype->index);
    quern_result result = QUERN_OK;
    for (uint32_t slot = 0; slot < archetype->chunk_count && result == QUERN_OK; slot++)
        result = validate_bits(subscription, added, set, slot);
    return result;
}

/* Checks that the reaction's list has the subscriptions of all archetypes that it matches, in their order. */
static quern_result validate_reaction(const quern__storage *storage, const quern__reaction *reaction)
{
    uint32_t count = 0;
    REQUIRE(!reaction->is_pending || storage->reactions->is_pending,
            "reaction %u is pending, but the registry's flag is not set", reaction->number);
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__subscription *subscription = quern__find_subscription(archetype, reaction);
        REQUIRE((subscription != NULL) == quern__reaction_matches(reaction, archetype),
                "reaction %u must be subscribed to archetype %u exactly if it matches it", reaction->number,
                i);
        if (subscription == NULL) continue;
        REQUIRE(count < reaction->subscriptions.count &&
                    reaction->subscriptions.items[count] == subscription &&
                    subscription->archetype == archetype,
                "the subscription of reaction %u to archetype %u is not number %u of its list",
                reaction->number, i, count);
        const quern_result result = validate_subscription(subscription);
        if (result != QUERN_OK) return result;
        count++;
    }
    REQUIRE(count == reaction->subscriptions.count,
            "reaction %u matches %u archetypes, but its list has %u", reaction->number, count,
            reaction->subscriptions.count);
    return QUERN_OK;
}

static quern_result world_validate_reactions(const quern_world *world)
{
    const quern__reactions *reactions = world->storage.reactions;
    uint32_t count = 0;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        if (reaction == NULL) continue;
        REQUIRE(reaction->number == i, "reaction %u is listed as number %u", reaction->number, i);
        const quern_result result = validate_reaction(&world->storage, reaction);
        if (result != QUERN_OK) return result;
        count++;
    }
    for (uint32_t i = 0; i < reactions->hooks.count; i++)
        REQUIRE(!reactions->hooks.items[i]->is_pending, "entity hooks of component %u were not called",
                quern__component_index(reactions->hooks.items[i]->terms[0].component));
    REQUIRE(count == reactions->count, "%u reactions are listed, but %u are counted", count,
            reactions->count);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ storage */

/* quern_world_validate: checks the invariants of the storage. References are checked in both directions, such as
 * from rows to records and from records to rows. */

static quern_result validate_chunk(const quern__storage *storage, const quern__archetype *archetype,
                                   uint32_t i)
{
    const quern__chunk_slot *slot = &archetype->slots[i];
    REQUIRE(quern__chunk_archetype(quern__slot_chunk(slot)) == archetype,
            "the slab has chunk %u of archetype %u as that of another archetype", i, archetype->index);
    REQUIRE(quern__chunk_index_at(&archetype->shape, (uintptr_t)quern__slot_chunk(slot)) == i,
            "the slab has chunk %u of archetype %u as number %u", i, archetype->index,
            quern__chunk_index_at(&archetype->shape, (uintptr_t)quern__slot_chunk(slot)));
    bool is_last = i + 1 == archetype->chunk_count;
    REQUIRE(slot->row_count == archetype->shape.row_capacity ||
                (is_last && slot->row_count > 0 && slot->row_count < archetype->shape.row_capacity),
            "chunk %u of %u of archetype %u has %u rows of %u", i, archetype->chunk_count, archetype->index,
            slot->row_count, archetype->shape.row_capacity);
    for (uint32_t row = 0; row < slot->row_count; row++) {
        const quern__chunk *chunk = quern__slot_chunk(slot);
        quern_entity entity = quern__archetype_entities(archetype, chunk)[row];
        const quern__record *record = quern__entities_find(&storage->entities, entity);
        REQUIRE(record != NULL, "archetype %u, chunk %u, row %u holds handle %#llx, which is not alive",
                archetype->index, i, row, (unsigned long long)entity.bits);
        REQUIRE(record->location == quern__location_make(chunk, row) &&
                    record->archetype_number == archetype->number,
                "entity %u:%u is in archetype %u, chunk %u, row %u, but its record points elsewhere",
                quern_entity_index(entity), quern_entity_generation(entity), archetype->index, i, row);
    }
    return QUERN_OK;
}

/* Checks that only bits of existing rows are set, and that the count of set bits is right. */
static quern_result validate_bit_column(const quern__archetype *archetype, uint32_t index, uint32_t slot)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    const uint64_t *words = quern__bit_column_words(row_bits, index, slot);
    const uint32_t row_count = slot < archetype->chunk_count ? archetype->slots[slot].row_count : 0;
    quern__row_mask rows;
    quern__row_mask_all(&rows, row_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i + 1 < row_bits->bit_column_words; i++) {
        REQUIRE((words[i] & ~(i < rows.word_count ? rows.words[i] : 0)) == 0,
                "bit column %u of archetype %u has bits set for rows that chunk %u does not have", index,
                archetype->index, slot);
        count += quern__count_bits_64(words[i]);
    }
    REQUIRE(count == quern__bit_column_count(row_bits, index, slot),
            "bit column %u of archetype %u has %u rows in chunk %u, but %u are counted", index,
            archetype->index, count, slot, quern__bit_column_count(row_bits, index, slot));
    return QUERN_OK;
}

static quern_result validate_bit_columns(const quern__archetype *archetype)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    if (row_bits == NULL) return QUERN_OK;
    REQUIRE(archetype->tracks_changes,
            "archetype %u has bit columns, but does not track changes, so changes do not update them",
            archetype->index);
    REQUIRE(row_bits->slot_capacity >= archetype->slot_capacity && row_bits->shape == &archetype->shape,
            "the bit columns of archetype %u are too small for its rows", archetype->index);
    for (uint32_t slot = 0; slot < row_bits->slot_capacity; slot++)
        for (uint32_t i = 0; i < row_bits->count; i++) {
            quern_result result = validate_bit_column(archetype, i, slot);
            if (result != QUERN_OK) return result;
        }
    return QUERN_OK;
}

/* Checks that no row version of a component is newer than the versions of its chunk, or than its group and the chunk's
 * structural version. */
static quern_result validate_lane(const quern__archetype *archetype, const quern__row_lane *lane,
                                  uint32_t slot)
{
    const quern__chunk_slot *rows = &archetype->slots[slot];
    const uint64_t *versions = quern__versions_of(&archetype->versions, slot);
    const uint64_t of_rows = versions[0], of_component = versions[lane->version_index];
    const uint64_t latest = of_rows > of_component ? of_rows : of_component;
    uint64_t *items =
        quern__row_version(archetype->row_versions, archetype->row_versions->offsets[lane->version_index],
                           (uintptr_t)quern__slot_chunk(rows));
    for (uint32_t row = 0; row < rows->row_count; row++) {
        const uint64_t of_group = *quern__row_group(items, row);
        REQUIRE(items[row] <= of_rows || items[row] <= of_group,
                "component %u of archetype %u, chunk %u, row %u has version %llu, its group of rows %llu",
                lane->component_index, archetype->index, slot, row, (unsigned long long)items[row],
                (unsigned long long)of_group);
        REQUIRE(items[row] > 0 && items[row] <= latest,
                "component %u of archetype %u, chunk %u, row %u has version %llu, its chunk %llu",
                lane->component_index, archetype->index, slot, row, (unsigned long long)items[row],
                (unsigned long long)latest);
    }
    return QUERN_OK;
}

static quern_result validate_row_versions(const quern__storage *storage, const quern__archetype *archetype)
{
    const quern__row_versions *versions = archetype->row_versions;
    uint32_t count = 0;
    for (uint32_t i = 0; i < archetype->component_count && archetype->versions.items != NULL; i++) {
        const uint32_t index = archetype->component_indices[i];
        if (!quern__components_has_flag(&storage->components, index, QUERN__FLAG_ROW_CHANGES)) continue;
        REQUIRE(versions != NULL && count < versions->lane_count &&
                    versions->lanes[count].component_index == index,
                "component %u has no row versions in archetype %u", index, archetype->index);
        count++;
    }
    REQUIRE(versions == NULL || (archetype->tracks_changes && versions->lane_count == count &&
                                 versions->slot_capacity >= archetype->held_count &&
                                 versions->row_capacity == archetype->shape.row_capacity),
            "the versions of the rows of archetype %u do not fit it", archetype->index);
    for (uint32_t slot = 0; versions != NULL && slot < archetype->chunk_count; slot++)
        for (uint32_t i = 0; i < versions->lane_count; i++) {
            quern_result result = validate_lane(archetype, &versions->lanes[i], slot);
            if (result != QUERN_OK) return result;
        }
    return QUERN_OK;
}

static quern_result validate_archetype(const quern__storage *storage, const quern__archetype *archetype)
{
    REQUIRE(archetype->chunk_count <= archetype->held_count, "archetype %u uses more chunks than it holds",
            archetype->index);
    REQUIRE(archetype->layout_index >= archetype->index && archetype->layout_index < QUERN_MAX_ARCHETYPES,
            "archetype %u has the layout of archetype %u, which it never was", archetype->index,
            archetype->layout_index);
    REQUIRE(archetype->last_slot == archetype->slots - 1 + archetype->chunk_count,
            "archetype %u has %u chunks with rows, but its last one is another", archetype->index,
            archetype->chunk_count);
    REQUIRE(archetype->reserved_count == 0, "archetype %u still has %u reserved rows", archetype->index,
            archetype->reserved_count);
    for (uint32_t i = 1; i < archetype->component_count; i++)
        REQUIRE(archetype->component_indices[i - 1] < archetype->component_indices[i],
                "the set of archetype %u is not sorted", archetype->index);
    uint16_t complete[QUERN_MAX_COMPONENTS];
    memcpy(complete, archetype->component_indices, archetype->component_count * sizeof *complete);
    REQUIRE(quern__components_complete(&storage->components, complete, archetype->component_count) ==
                archetype->component_count,
            "archetype %u lacks a component that another one of its components requires", archetype->index);
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        quern_result result = validate_chunk(storage, archetype, i);
        if (result != QUERN_OK) return result;
    }
    /* The bit columns of components precede all others, ordered by flag and then by component. */
    const quern__row_bits *row_bits = archetype->row_bits;
    uint32_t count = 0;
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        for (uint32_t i = 0; i < archetype->component_count; i++) {
            const uint32_t index = archetype->component_indices[i];
            if (!quern__components_has_flag(&storage->components, index, 1u << flag)) continue;
            REQUIRE(quern__row_bits_find_column(row_bits, flag, index) == count,
                    "the bit column of component %u of archetype %u is not number %u", index,
                    archetype->index, count);
            count++;
        }
    REQUIRE(row_bits == NULL || row_bits->count == count ||
                !quern__bit_column_is_of_component(row_bits->list[count].kind),
            "archetype %u has a bit column of a component that it lacks", archetype->index);
    const quern_result result = validate_bit_columns(archetype);
    return result != QUERN_OK ? result : validate_row_versions(storage, archetype);
}

/* The rows have been checked against records. Equal counts then mean that every living entity has a row. */
static quern_result validate_entities(const quern__entities *entities, uint64_t row_count)
{
    REQUIRE(row_count + entities->free_count + entities->absent_count + entities->retired_count ==
                entities->slot_count,
            "%llu rows, %u free slots, %u without records and %u retired do not add up to %u",
            (unsigned long long)row_count, entities->free_count, entities->absent_count,
            entities->retired_count, entities->slot_count);
    REQUIRE((uint64_t)entities->pages.count * QUERN__PAGE_RECORDS >= entities->slot_count,
            "%u slots have only %u pages of records", entities->slot_count, entities->pages.count);
    uint32_t absent_count = 0;
    for (uint32_t page = 0; page < entities->pages.count; page++) {
        if (!quern__entities_is_absent(entities, page)) continue;
        REQUIRE(entities->absent_highs.items[page] >> 24 == entities->first_handle_high >> 24,
                "the slots of page %u, without records, would go on as those of another world", page);
        absent_count += quern__entities_page_slots(entities, page);
    }
    REQUIRE(absent_count == entities->absent_count, "%u slots are without records, but %u are counted",
            absent_count, entities->absent_count);
    uint32_t count = 0;
    for (uint32_t i = entities->first_free; i != QUERN__SLOT_NONE; count++) {
        REQUIRE(i < entities->slot_count && count < entities->free_count,
                "the list of free slots is broken");
        REQUIRE(!quern__entities_is_absent(entities, i >> QUERN__PAGE_RECORDS_LOG2),
                "slot %u is in the free list, but its records were given back", i);
        const quern__record *record = quern__entities_record(entities, i);
        REQUIRE(record->location == 0, "slot %u is in the free list and alive", i);
        i = record->archetype_number;
    }
    REQUIRE(count == entities->free_count, "the list of free slots has %u of %u", count,
            entities->free_count);
    return QUERN_OK;
}

static quern_result validate_slabs(const quern__storage *storage, uint64_t held_count)
{
    uint64_t chunk_count = (uint64_t)storage->slabs.slab_count * QUERN__SLAB_CHUNKS;
    REQUIRE(held_count + storage->slabs.free_count == chunk_count,
            "%llu chunks held and %u free, but the slabs have %llu", (unsigned long long)held_count,
            storage->slabs.free_count, (unsigned long long)chunk_count);
    return QUERN_OK;
}

static quern_result validate_places(const quern__storage *storage)
{
    for (const quern__position_table *table = storage->first_position_table; table != NULL;
         table = table->next)
        for (uint32_t i = 0; i < storage->archetypes.count; i++) {
            const quern__archetype *archetype = storage->archetypes.items[i];
            const quern__column_position position =
                quern__archetype_column_position(archetype, table->component_index);
            const quern__column_position kept = table->positions[archetype->number];
            REQUIRE(kept.offset_lines == position.offset_lines && kept.run_mask == position.run_mask &&
                        kept.size_bytes == position.size_bytes,
                    "a table of places has component %u of archetype %u in the wrong place",
                    table->component_index, i);
        }
    return QUERN_OK;
}

static quern_result validate_names(const quern__storage *storage)
{
    const quern__names *names = storage->names;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < names->pages.count * QUERN__NAME_PAGE_SLOTS; slot++) {
        if (quern__names_of(names, slot) == NULL) continue;
        REQUIRE(slot < storage->entities.slot_count, "slot %u was never used and has a name", slot);
        /* A lookup of the name under its parent must find the slot; then no two siblings have one name. */
        const quern__name *name = quern__names_of(storage->names, slot);
        const quern__record *record = quern__entities_record(&storage->entities, slot);
        REQUIRE(name->slot == slot, "the name of slot %u is that of slot %u", slot, name->slot);
        REQUIRE(record->location != 0, "slot %u is free and has a name, '%s'", slot, name->text);
        REQUIRE(name->parent == quern__parent_slot(storage, slot),
                "the name of slot %u, '%s', is registered under an entity that is not its parent", slot,
                name->text);
        REQUIRE(name->text[0] != '\0' && quern__entity_check_name(name->text) == QUERN_OK,
                "the name of slot %u is invalid", slot);
        const uint32_t found =
            quern__names_find(storage->names, name->parent, name->text, (uint32_t)strlen(name->text));
        REQUIRE(found == slot, "the name of slot %u, '%s', leads to slot %u", slot, name->text, found);
        count++;
    }
    REQUIRE(count == names->count, "%u entities have names, but %u are counted", count, names->count);
    REQUIRE(count + names->free_count == names->held_block_count * QUERN__NAME_BLOCK_NAMES,
            "%u names and %u free ones do not fill %u blocks", count, names->free_count,
            names->held_block_count);
    return QUERN_OK;
}

static quern_result validate(const quern_world *world)
{
    const quern__storage *storage = &world->storage;
    uint64_t row_count = 0, held_count = 0;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        REQUIRE(archetype->index == i, "archetype %u is listed as number %u", archetype->index, i);
        REQUIRE(archetype->number < storage->numbered.count &&
                    storage->numbered.items[archetype->number] == archetype,
                "archetype %u does not have its number, %u", i, archetype->number);
        quern_result result = validate_archetype(storage, archetype);
        if (result != QUERN_OK) return result;
        REQUIRE(quern__bitset_has(storage->slabs.holders.items, i) == (archetype->held_count > 0),
                "archetype %u holds %u chunks, and the set of holders says otherwise", i,
                archetype->held_count);
        row_count += quern__archetype_row_count(archetype);
        held_count += archetype->held_count;
    }
    quern_result result = validate_entities(&storage->entities, row_count);
    if (result == QUERN_OK) result = validate_places(storage);
    if (result == QUERN_OK) result = world_validate_relations(world);
    if (result == QUERN_OK) result = world_validate_reactions(world);
    if (result == QUERN_OK) result = validate_names(storage);
    return result != QUERN_OK ? result : validate_slabs(storage, held_count);
}

quern_result quern_world_validate(const quern_world *world)
{
    QUERN__NEED(world);
    if (world->locked) return quern__world_fail_locked(__func__);
    return quern__in_call(validate(world), __func__);
}

/* --------------------------------------------------------------------------------------- statistics */

static uint32_t row_bytes(const quern__archetype *archetype)
{
    uint32_t bytes = sizeof(quern_entity);
    for (uint32_t i = 0; i < archetype->column_count; i++)
        bytes += archetype->columns[i].size_bytes;
    return bytes;
}

quern_result quern_world_get_stats(const quern_world *world, quern_world_stats *out_stats)
{
    QUERN__NEED(world);
    QUERN__NEED(out_stats);
    quern_world_stats stats = {0};
    const quern__storage *storage = &world->storage;
    stats.entity_count = quern__entities_alive_count(&storage->entities);
    stats.retired_count = storage->entities.retired_count;
    stats.archetype_count = storage->archetypes.count;
    stats.component_count = storage->components.list.count;
    stats.chunk_free_count = storage->slabs.free_count;
    stats.name_count = storage->names->count;
    stats.held_bytes = (uint64_t)storage->slabs.slab_count * QUERN__SLAB_BYTES +
                       quern__entities_record_bytes(&storage->entities);
    stats.relation_count = storage->relations->list.count;
    stats.link_bytes = quern__link_pages_held_bytes(&storage->relations->link_pages) +
                       storage->relations->edge_pool.directory_bytes;
    for (uint32_t i = 0; i < storage->relations->list.count; i++)
        stats.edge_count += storage->relations->list.items[i]->edges.count;
    stats.held_bytes += stats.link_bytes + quern__names_held_bytes(storage->names);
    stats.held_bytes += quern__prefabs_held_bytes(storage);
    stats.event_bytes = quern__events_held_bytes(world);
    stats.held_bytes += stats.event_bytes;
    stats.prefab_count = storage->prefabs != NULL ? storage->prefabs->count : 0;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        stats.chunk_count += archetype->chunk_count;
        if (archetype->row_versions != NULL)
            stats.held_bytes += quern__row_versions_bytes(archetype->row_versions);
        stats.used_bytes +=
            (row_bytes(archetype) + sizeof(quern__record)) * quern__archetype_row_count(archetype);
    }
    *out_stats = stats;
    return QUERN_OK;
}

static const quern__archetype *find_archetype(const quern_world *world, uint32_t index,
                                              const char *function)
{
    if (world == NULL) {
        quern__fail_null(function, "world");
        return NULL;
    }
    if (index < world->storage.archetypes.count) return world->storage.archetypes.items[index];
    quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: no archetype %u; the world has %u", function, index,
                world->storage.archetypes.count);
    return NULL;
}

quern_result quern_world_get_archetype_stats(const quern_world *world, uint32_t index,
                                             quern_archetype_stats *out_stats)
{
    const quern__archetype *archetype = find_archetype(world, index, __func__);
    if (archetype == NULL) return world ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_ERROR_NULL_ARGUMENT;
    QUERN__NEED(out_stats);
    uint64_t rows = quern__archetype_row_count(archetype);
    double held_bytes = (double)archetype->held_count * QUERN__CHUNK_BYTES;
    *out_stats = (quern_archetype_stats){
        .component_count = archetype->component_count,
        .row_bytes = row_bytes(archetype),
        .row_capacity = archetype->shape.row_capacity,
        .chunk_count = archetype->chunk_count,
        .held_count = archetype->held_count,
        .entity_count = rows,
        .occupancy = archetype->held_count ? (double)(rows * row_bytes(archetype)) / held_bytes : 0,
    };
    return QUERN_OK;
}

uint32_t quern_world_list_archetype_components(const quern_world *world, uint32_t index,
                                               quern_component *components, uint32_t capacity)
{
    const quern__archetype *archetype = find_archetype(world, index, __func__);
    if (archetype == NULL) return 0;
    QUERN__NEED_LIST_OR(components, capacity, 0);
    for (uint32_t i = 0; i < archetype->component_count && i < capacity; i++)
        components[i] =
            quern__component_handle(&world->storage.components, archetype->component_indices[i]);
    return archetype->component_count;
}
