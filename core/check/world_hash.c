/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_world_hash: a hash of all state that must not depend on the number of threads. It excludes world tags, the
 * first generation of slots, memory addresses, archetypes without rows, and resources without described
 * fields. */

#include "core/check/world_hash.h"

uint64_t quern__hash_slots(const quern__entities *entities, uint64_t hash)
{
    hash = quern__hash_word(hash, entities->slot_count);
    for (uint32_t i = 0; i < entities->slot_count; i++) {
        const quern__record *record = quern__entities_record(entities, i);
        const uint32_t absent_high = entities->absent_highs.items[i >> QUERN__PAGE_RECORDS_LOG2];
        const uint32_t handle_high = absent_high != 0 ? absent_high : record->handle_high;
        const uint64_t life =
            quern__generation_use_count(entities->first_handle_high, handle_high & QUERN__MAX_GENERATION);
        hash = quern__hash_word(hash, life << 1 | (record->location != 0));
    }
    /* the order in which free slots will be reused decides future handles */
    for (uint32_t i = entities->first_free; i != QUERN__SLOT_NONE;) {
        hash = quern__hash_word(hash, i);
        i = quern__entities_record(entities, i)->archetype_number;
    }
    for (uint32_t page = 0; page < entities->pages.count; page++)
        if (quern__entities_is_absent(entities, page))
            for (uint32_t i = 0; i < quern__entities_page_slots(entities, page); i++)
                hash = quern__hash_word(hash, page * QUERN__PAGE_RECORDS + i);
    return hash;
}

static uint64_t hash_names(const quern__storage *storage, const quern__archetype *archetype, uint64_t hash)
{
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__type *type =
            quern__components_type(&storage->components, archetype->component_indices[i]);
        hash = quern__hash_word(hash, quern__hash_string(type->name));
    }
    return hash;
}

static uint64_t hash_rows(const quern__archetype *archetype, const quern__chunk_slot *slot, uint64_t hash,
                          uint32_t first_handle_high)
{
    const quern_entity *entities = quern__archetype_entities(archetype, slot->chunk);
    hash = quern__hash_word(hash, slot->row_count);
    for (uint32_t row = 0; row < slot->row_count; row++)
        hash = quern__hash_word(hash, quern__entity_to_relative(entities[row], first_handle_high));
    for (uint32_t c = 0; c < archetype->column_count; c++) {
        const quern__column *column = &archetype->columns[c];
        for (uint32_t row = 0; row < slot->row_count; row++)
            hash = quern__type_hash(column->type, hash, quern__column_value(column, slot->chunk, row),
                                    first_handle_high);
    }
    return hash;
}

/* Adds the row bits of components. Bit columns without a set bit leave the hash unchanged, so the hash does not depend
 * on flags that are registered but unused. */
static uint64_t hash_row_flags(const quern__storage *storage, const quern__archetype *archetype,
                               uint32_t slot, uint64_t hash)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    for (uint32_t i = 0; row_bits != NULL && i < row_bits->count; i++) {
        if (!quern__bit_column_is_of_component(row_bits->list[i].kind))
            break; /* bit columns of components precede all others */
        if (quern__bit_column_count(row_bits, i, slot) == 0) continue;
        const quern__type *type = quern__components_type(&storage->components, row_bits->list[i].id);
        const uint64_t *words = quern__bit_column_words(row_bits, i, slot);
        hash = quern__hash_word(hash, quern__hash_string(type->name) + row_bits->list[i].kind);
        for (uint32_t word = 0; word * 64 < archetype->slots[slot].row_count; word++)
            hash = quern__hash_word(hash, words[word]);
    }
    return hash;
}

uint64_t quern__hash_entity_names(const quern__storage *storage, uint64_t hash)
{
    for (uint32_t slot = 0; slot < storage->entities.slot_count && storage->names->count > 0; slot++) {
        const quern__name *name = quern__names_of(storage->names, slot);
        if (name != NULL)
            hash = quern__hash_word(quern__hash_word(hash, slot), quern__hash_string(name->text));
    }
    return hash;
}

static uint64_t hash_resources(const quern__resources *resources, uint64_t hash, uint32_t first_handle_high)
{
    for (uint32_t i = 0; i < resources->list.count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        if (resource->type.field_count > 0)
            hash = quern__type_hash(&resource->type, hash, resource->value, first_handle_high);
    }
    return hash;
}

/* A missing page and a page without links give the same hash. */
uint64_t quern__hash_links(const quern__links *links, uint64_t name, uint64_t hash)
{
    for (uint32_t page = 0; page < links->pages.count; page++)
        for (uint32_t i = 0; links->pages.items[page] != NULL && i < QUERN__LINK_PAGE_SLOTS; i++) {
            const quern__link_node *node = &links->pages.items[page][i];
            if (node->target == QUERN__SLOT_NONE) continue;
            hash = quern__hash_word(hash, name ^ ((uint64_t)page * QUERN__LINK_PAGE_SLOTS + i));
            hash = quern__hash_word(hash, (uint64_t)node->target << 32 | node->next);
        }
    return hash;
}

/* Sets with the same members give the same hash, however their memory is divided. */
uint64_t quern__hash_edges(const quern__edges *edges, uint64_t name, uint64_t hash)
{
    for (uint32_t page = 0; page < edges->pages.count; page++)
        for (uint32_t i = 0; edges->pages.items[page] != NULL && i < QUERN__EDGE_PAGE_SLOTS; i++) {
            const quern__edge_list *targets = &edges->pages.items[page][i].targets;
            if (targets->count == 0) continue;
            hash = quern__hash_word(hash, name ^ ((uint64_t)page * QUERN__EDGE_PAGE_SLOTS + i));
            hash = quern__hash_word(hash, targets->count);
            for (uint32_t r = 0; r < quern__edge_list_ranges(targets); r++) {
                const quern__edge_range range = quern__edge_list_range(targets, r);
                for (uint32_t k = 0; k < range.count; k++)
                    hash = quern__hash_word(hash, range.slots[k]);
            }
        }
    return hash;
}

static uint64_t hash_relations(const quern__storage *storage, uint64_t hash)
{
    for (uint32_t i = 0; i < storage->relations->list.count; i++) {
        const quern__relation *relation = storage->relations->list.items[i];
        const uint64_t name = quern__hash_string(quern__relation_name(storage, relation));
        hash = quern__hash_links(&relation->links, name, hash);
        hash = quern__hash_edges(&relation->edges, name, hash);
    }
    return hash;
}

uint64_t quern_world_hash(const quern_world *world)
{
    if (world == NULL) {
        quern__fail_null("quern_world_hash", "world");
        return 0;
    }
    if (quern__world_check_unlocked(world, "quern_world_hash") != QUERN_OK) return 0;
    const quern__storage *storage = &world->storage;
    const uint32_t first_handle_high = storage->entities.first_handle_high;
    uint64_t hash = quern__hash_slots(&storage->entities, 0);
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->chunk_count == 0) continue;
        hash = hash_names(storage, archetype, hash);
        for (uint32_t k = 0; k < archetype->chunk_count; k++) {
            hash = hash_rows(archetype, &archetype->slots[k], hash, first_handle_high);
            hash = hash_row_flags(storage, archetype, k, hash);
        }
    }
    hash = hash_relations(storage, hash);
    hash = quern__hash_entity_names(storage, hash);
    return hash_resources(&world->resources, hash, first_handle_high);
}
