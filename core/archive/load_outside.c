/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/load_outside.h"

#include "core/storage/change.h"
#include "core/storage/required.h"

bool quern__image_leads_outside(const quern__image *image)
{
    for (uint32_t i = 0; i < image->types.count; i++)
        if (image->types.items[i]->links != NULL && image->types.items[i]->links->outside_count > 0)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------- levels */

enum { RAISE_UNKNOWN = UINT8_MAX };

static uint32_t least_level(uint32_t level)
{
    return level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL;
}

/* Stores by how much the levels of an entity and of all entities above it in the archive rise: by the level of the
 * sources of the topmost entity's target. */
static void find_raise(const quern__image *image, const quern__archived_links *links, uint32_t slot,
                       uint8_t *raises)
{
    uint32_t top = slot, target;
    while (raises[top] == RAISE_UNKNOWN && (target = links->targets[top]) < image->head.slot_count)
        top = target;
    uint32_t raise = raises[top];
    if (raise == RAISE_UNKNOWN) {
        const quern_entity outside = quern__image_outside(image, links->targets[top]);
        raise =
            outside.bits == 0
                ? 0
                : least_level(quern__links_level(&links->relation->links, quern_entity_index(outside)) + 1);
    }
    for (uint32_t at = slot; raises[at] == RAISE_UNKNOWN; at = links->targets[at]) {
        raises[at] = (uint8_t)raise;
        if (at == top) break;
    }
}

static quern_result raise_levels(const quern__image *image, const quern__archived_links *links)
{
    const uint32_t slot_count = image->head.slot_count;
    uint8_t *raises = quern__allocate(&image->allocator, slot_count, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (raises == NULL) return quern__image_fail_memory();
    memset(raises, RAISE_UNKNOWN, slot_count);
    for (uint32_t slot = 0; slot < slot_count; slot++)
        find_raise(image, links, slot, raises);
    for (uint32_t slot = 0; slot < slot_count; slot++)
        links->levels[slot] = (uint8_t)least_level((uint32_t)links->levels[slot] + raises[slot]);
    quern__release(&image->allocator, raises, slot_count, QUERN__ARRAY_ALIGNMENT_BYTES);
    return QUERN_OK;
}

quern_result quern__image_raise_levels(const quern__image *image)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < image->types.count && result == QUERN_OK; i++) {
        const quern__archived_links *links = image->types.items[i]->links;
        if (links != NULL && links->outside_count > 0 && links->relation->has_levels)
            result = raise_levels(image, links);
    }
    return result;
}

/* -------------------------------------------------------------------------------------- archetypes */

/* The ascending set of components of a row. */
typedef struct row_set {
    uint16_t indices[QUERN_MAX_COMPONENTS];
    uint32_t count;
} row_set;

/* Adds a component unless the set has it. */
static void add_component(row_set *set, uint32_t index)
{
    uint32_t at = set->count;
    while (at > 0 && set->indices[at - 1] >= index)
        at--;
    if (at < set->count && set->indices[at] == index) return;
    memmove(&set->indices[at + 1], &set->indices[at], (set->count - at) * sizeof set->indices[0]);
    set->indices[at] = (uint16_t)index;
    set->count++;
}

/* Replaces the tag of a level. */
static void set_level(row_set *set, const quern__relation *relation, uint32_t level)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const uint32_t index = set->indices[i];
        if (index > relation->component_index &&
            index <= quern__relation_tag(relation, QUERN_MAX_RELATION_LEVEL))
            continue;
        set->indices[kept++] = (uint16_t)index;
    }
    set->count = kept;
    add_component(set, quern__relation_tag(relation, level));
}

/* Adds what the links of one relation say of the entity in the slot. */
static void add_relation(const quern__image *image, const quern__archived_links *links, uint32_t slot,
                         row_set *set)
{
    const quern__relation *relation = links->relation;
    if (links->targets == NULL) { /* a relation with several targets, which has no levels */
        if ((links->levels[slot] & QUERN__EDGES_LEAD_OUTSIDE) != 0)
            add_component(set, relation->component_index);
        return;
    }
    if (quern__image_outside(image, links->targets[slot]).bits != 0)
        add_component(set, relation->component_index);
    if (relation->has_levels && links->targets[slot] != QUERN__SLOT_NONE)
        set_level(set, relation, links->levels[slot]);
}

static quern_result find_archetype(const quern__image *image, const quern__archived_archetype *archived,
                                   uint32_t slot, quern__archetype **out_archetype)
{
    quern__storage *storage = &image->world->storage;
    row_set set = {.count = archived->component_count};
    memcpy(set.indices, archived->component_indices, set.count * sizeof set.indices[0]);
    for (uint32_t i = 0; i < image->types.count; i++) {
        const quern__archived_links *links = image->types.items[i]->links;
        if (links != NULL && links->outside_count > 0) add_relation(image, links, slot, &set);
    }
    set.count = quern__components_complete(&storage->components, set.indices, set.count);
    return quern__storage_ensure_archetype(storage, set.indices, set.count, out_archetype);
}

static quern_result reserve_rows(const quern__image *image, const quern__archived_archetype *archived,
                                 quern__byte_reader *payload, quern__archetype **out_archetypes)
{
    quern__storage *storage = &image->world->storage;
    quern__rows_section section;
    quern__read(payload, &section, sizeof section);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < section.row_count && result == QUERN_OK; i++) {
        const uint32_t slot = quern_entity_index((quern_entity){quern__read_u64(payload)});
        quern__archetype *archetype;
        result = find_archetype(image, archived, slot, &archetype);
        if (result != QUERN_OK) break;
        out_archetypes[slot] = archetype; /* the caller cancels its reservations if the next call fails */
        result = quern__rows_reserve(storage, archetype, 1);
    }
    return result;
}

quern_result quern__load_outside_reserve(const quern__image *image, quern__archetype **out_archetypes)
{
    quern__section_iterator walk = {.blocks = &image->blocks};
    quern__archive_section section;
    uint32_t archetype_count = 0;
    quern_result result = QUERN_OK;
    while (result == QUERN_OK && quern__section_next(&walk, &section)) {
        if (section.kind == QUERN__SECTION_ARCHETYPE) archetype_count++;
        if (section.kind == QUERN__SECTION_ROWS)
            result = reserve_rows(image, &image->archetypes.items[archetype_count - 1], &section.payload,
                                  out_archetypes);
    }
    return result;
}
