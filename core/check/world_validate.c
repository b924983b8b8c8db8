/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_world_validate: checks the invariants of the storage. References are checked in both directions, such as
 * from rows to records and from records to rows. */

#include "core/base/bitset.h"
#include "core/check/validate.h"
#include "core/relations/naming.h"
#include "core/storage/required.h"
#include "core/storage/row_mask.h"

static quern_result validate_row(const quern__storage *storage, const quern__archetype *archetype,
                                 const quern__chunk *chunk, uint32_t row)
{
    quern_entity entity = quern__archetype_entities(archetype, chunk)[row];
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    REQUIRE(record != NULL, "archetype %u, chunk %u, row %u holds handle %#llx, which is not alive",
            archetype->index, chunk->index, row, (unsigned long long)entity.bits);
    REQUIRE(record->location == quern__location_make(chunk, row) &&
                record->archetype_number == archetype->number,
            "entity %u:%u is in archetype %u, chunk %u, row %u, but its record points elsewhere",
            quern_entity_index(entity), quern_entity_generation(entity), archetype->index, chunk->index,
            row);
    return QUERN_OK;
}

static quern_result validate_chunk(const quern__storage *storage, const quern__archetype *archetype,
                                   uint32_t i)
{
    const quern__chunk_slot *slot = &archetype->slots[i];
    REQUIRE(slot->chunk->archetype == archetype && slot->chunk->index == i,
            "the header of chunk %u of archetype %u was overwritten", i, archetype->index);
    REQUIRE(quern__chunk_index_at((uintptr_t)slot->chunk) == i,
            "the slab has chunk %u of archetype %u as number %u", i, archetype->index,
            quern__chunk_index_at((uintptr_t)slot->chunk));
    bool is_last = i + 1 == archetype->chunk_count;
    REQUIRE(slot->row_count == archetype->row_capacity ||
                (is_last && slot->row_count > 0 && slot->row_count < archetype->row_capacity),
            "chunk %u of %u of archetype %u has %u rows of %u", i, archetype->chunk_count, archetype->index,
            slot->row_count, archetype->row_capacity);
    for (uint32_t row = 0; row < slot->row_count; row++) {
        quern_result result = validate_row(storage, archetype, slot->chunk, row);
        if (result != QUERN_OK) return result;
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

/* Checks that the bit columns of components precede all others, ordered by flag and then by component. */
static quern_result validate_bit_column_list(const quern__storage *storage,
                                             const quern__archetype *archetype)
{
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
    return QUERN_OK;
}

static quern_result validate_bit_columns(const quern__archetype *archetype)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    if (row_bits == NULL) return QUERN_OK;
    REQUIRE(archetype->tracks_changes,
            "archetype %u has bit columns, but does not track changes, so changes do not update them",
            archetype->index);
    REQUIRE(row_bits->slot_capacity >= archetype->slot_capacity &&
                row_bits->row_capacity == archetype->row_capacity,
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
                           quern__location_make(rows->chunk, 0));
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
                                 versions->row_capacity == archetype->row_capacity),
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
    quern_result result = validate_bit_column_list(storage, archetype);
    if (result == QUERN_OK) result = validate_bit_columns(archetype);
    return result != QUERN_OK ? result : validate_row_versions(storage, archetype);
}

static quern_result validate_free_list(const quern__entities *entities)
{
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
    return validate_free_list(entities);
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
            REQUIRE(kept.offset_bytes == position.offset_bytes && kept.size_bytes == position.size_bytes,
                    "a table of places has component %u of archetype %u in the wrong place",
                    table->component_index, i);
        }
    return QUERN_OK;
}

/* Checks that a lookup of the name under its parent finds the slot; no two siblings can then have one name. */
static quern_result validate_name(const quern__storage *storage, uint32_t slot)
{
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
    return QUERN_OK;
}

static quern_result validate_names(const quern__storage *storage)
{
    const quern__names *names = storage->names;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < names->pages.count * QUERN__NAME_PAGE_SLOTS; slot++) {
        if (quern__names_of(names, slot) == NULL) continue;
        REQUIRE(slot < storage->entities.slot_count, "slot %u was never used and has a name", slot);
        quern_result result = validate_name(storage, slot);
        if (result != QUERN_OK) return result;
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
    if (result == QUERN_OK) result = quern__world_validate_relations(world);
    if (result == QUERN_OK) result = quern__world_validate_reactions(world);
    if (result == QUERN_OK) result = validate_names(storage);
    return result != QUERN_OK ? result : validate_slabs(storage, held_count);
}

quern_result quern_world_validate(const quern_world *world)
{
    if (world == NULL) return quern__fail_null("quern_world_validate", "world");
    if (world->locked) return quern__world_fail_locked("quern_world_validate");
    return quern__in_call(validate(world), "quern_world_validate");
}
