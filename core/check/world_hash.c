/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_world_hash: a hash of all state that must not depend on the number of threads. It excludes world tags, the
 * first generation of slots, memory addresses, archetypes without rows, and resources without described
 * fields. */
#include "core/check/world_hash.h"

#include "core/base/containers.h"
#include "core/relations/relation_internal.h"
#include "core/storage/list_values.h"
#include "core/world/world_internal.h"

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

static uint64_t hash_rows(const quern__archetype *archetype, const quern__chunk_slot *slot, uint64_t hash,
                          uint32_t first_handle_high)
{
    const quern_entity *entities = quern__archetype_entities(archetype, quern__slot_chunk(slot));
    hash = quern__hash_word(hash, slot->row_count);
    for (uint32_t row = 0; row < slot->row_count; row++)
        hash = quern__hash_word(hash, quern__entity_to_relative(entities[row], first_handle_high));
    for (uint32_t c = 0; c < archetype->column_count; c++) {
        const quern__column *column = &archetype->columns[c];
        for (uint32_t row = 0; row < slot->row_count; row++)
            hash = quern__type_hash(column->type, hash,
                                    quern__column_value(column, quern__slot_chunk(slot), row),
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

static uint64_t hash_resources(const quern__resources *resources, uint32_t count, uint64_t hash,
                               uint32_t first_handle_high)
{
    for (uint32_t i = 0; i < count; i++) {
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

uint64_t quern__hash_world(const quern_world *world, uint32_t resource_count)
{
    const quern__storage *storage = &world->storage;
    const uint32_t first_handle_high = storage->entities.first_handle_high;
    uint64_t hash = quern__hash_slots(&storage->entities, 0);
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->chunk_count == 0) continue;
        for (uint32_t n = 0; n < archetype->component_count; n++) {
            const quern__type *type =
                quern__components_type(&storage->components, archetype->component_indices[n]);
            hash = quern__hash_word(hash, quern__hash_string(type->name));
        }
        for (uint32_t k = 0; k < archetype->chunk_count; k++) {
            hash = hash_rows(archetype, &archetype->slots[k], hash, first_handle_high);
            hash = hash_row_flags(storage, archetype, k, hash);
        }
    }
    for (uint32_t i = 0; i < storage->relations->list.count; i++) {
        const quern__relation *relation = storage->relations->list.items[i];
        const uint64_t name = quern__hash_string(quern__relation_name(storage, relation));
        hash = quern__hash_links(&relation->links, name, hash);
        hash = quern__hash_edges(&relation->edges, name, hash);
    }
    hash = quern__hash_entity_names(storage, hash);
    return hash_resources(&world->resources, resource_count, hash, first_handle_high);
}

uint64_t quern_world_hash(const quern_world *world)
{
    QUERN__NEED_OR(world, 0);
    if (quern__world_check_unlocked(world, __func__) != QUERN_OK) return 0;
    return quern__hash_world(world, world->resources.list.count);
}

/* --------------------------------------------------------------------------------------- hash by id */

/* quern_world_hash_by: a hash of the entities that have an id component, by their ids. The order of anything must not
 * matter, neither of slots, rows, archetypes nor registered types. So the hash is a sum: of entities, and within an
 * entity of its components, each with the hash of its name. The sum of the entities is returned as it is, so that
 * worlds that share the entities of one can add their hashes. */

typedef struct hashing {
    const quern__storage *storage;
    uint32_t id_index; /* component index of the id component */
    uint64_t hash;     /* of the value that is being hashed */
} hashing;

/* A row is the sum of its parts. So rows are hashed column by column. */
typedef struct row_sums {
    uint64_t sums[QUERN__BIT_COLUMN_MAX_ROWS];
} row_sums;

static quern_result check_id(const quern_world *world, quern_component id)
{
    const quern_result result = quern__components_check(&world->storage.components, id);
    if (result != QUERN_OK) return result;
    const quern__type *type =
        quern__components_type(&world->storage.components, quern__component_index(id));
    if (type->size_bytes == sizeof(uint64_t) && !type->has_entity_fields &&
        !quern__components_is_managed(&world->storage.components, quern__component_index(id)))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "component '%s' has %u bytes%s, so its values are no ids: give a component that has 8 bytes "
        "and no entity field",
        type->name, type->size_bytes, type->has_entity_fields ? " and an entity field" : "");
}

/* Stands for an entity inside a value: its id, or 0 if the entity is dead or has no id. */
static uint64_t hash_of_entity(const hashing *it, quern_entity entity)
{
    uint64_t id;
    const quern__record *record = quern__entities_find(&it->storage->entities, entity);
    if (record == NULL) return 0;
    const void *value = quern__storage_value(quern__storage_archetype_of(it->storage, record),
                                             record->location, it->id_index);
    if (value == NULL) return 0;
    memcpy(&id, value, sizeof id);
    return quern__hash_word(1, id);
}

static quern_entity visit_handle(void *argument, quern_entity entity)
{
    hashing *it = argument;
    it->hash = quern__hash_word(it->hash, hash_of_entity(it, entity));
    return entity;
}

/* Hashes the described fields, or all bytes if none is described. Bytes of a type with hooks may be addresses, so
 * without described fields they are left out. */
static uint64_t hash_value(hashing *it, const quern__type *type, const char *value)
{
    it->hash = 0;
    if (type->field_count == 0)
        return quern__hooks_own_resources(&type->hooks) ? 0 : quern__hash_bytes(0, value, type->size_bytes);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        if (QUERN__UNLIKELY(quern__field_is_list(field->type)))
            it->hash = quern__field_hash_lists(field, it->hash, value + field->offset_bytes);
        else if (field->type != QUERN_FIELD_ENTITY)
            it->hash = quern__hash_bytes(it->hash, value + field->offset_bytes,
                                         (size_t)quern__field_bytes(field->type) * field->count);
    }
    if (type->has_entity_fields) quern__type_visit_entities(type, value, visit_handle, it);
    return it->hash;
}

/* ------------------------------------------------------------------------------------------- rows */

static void add_values(hashing *it, const quern__archetype *archetype, const quern__chunk_slot *slot,
                       uint32_t index, row_sums *rows)
{
    const quern__component *component = it->storage->components.list.items[index];
    const quern__column *column = quern__archetype_find_column(archetype, index);
    const uint64_t name = quern__hash_string(component->type.name);
    for (uint32_t row = 0; row < slot->row_count; row++) {
        const char *value = quern__column_value(column, quern__slot_chunk(slot), row);
        quern_entity target;
        if (component->managed.relation == NULL) {
            rows->sums[row] += quern__hash_word(name, hash_value(it, &component->type, value));
            continue;
        }
        memcpy(&target, value, sizeof target);
        const uint64_t of_target = hash_of_entity(it, target);
        if (of_target != 0) rows->sums[row] += quern__hash_word(name, of_target);
    }
}

/* Adds the targets of rows that may have several. */
static void add_edges(const hashing *it, const quern__archetype *archetype, const quern__chunk_slot *slot,
                      const quern__component *component, row_sums *rows)
{
    const quern_entity *entities = quern__archetype_entities(archetype, quern__slot_chunk(slot));
    const uint64_t name = quern__hash_string(component->type.name);
    for (uint32_t row = 0; row < slot->row_count; row++) {
        const quern__edge_list *targets =
            quern__edges_targets(&component->managed.relation->edges, quern_entity_index(entities[row]));
        for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
            const quern__edge_range range = quern__edge_list_range(targets, i);
            for (uint32_t k = 0; k < range.count; k++) {
                const uint64_t of_target =
                    hash_of_entity(it, quern__entity_of_slot(it->storage, range.slots[k]));
                if (of_target != 0) rows->sums[row] += quern__hash_word(name, of_target);
            }
        }
    }
}

/* Adds the values of edges of rows that may have several. The order of targets differs between worlds with equal
 * content, so elements are added, not chained. */
static void add_edge_values(hashing *it, const quern__archetype *archetype, const quern__chunk_slot *slot,
                            const quern__component *component, row_sums *rows)
{
    const quern__relation *relation =
        it->storage->components.list.items[component->edge_owner - 1]->managed.relation;
    const quern__column *column = quern__archetype_find_column(archetype, relation->value_index);
    const uint64_t name = quern__hash_string(component->type.name);
    for (uint32_t row = 0; row < slot->row_count; row++) {
        const quern_list *list =
            (const quern_list *)(const void *)quern__column_value(column, quern__slot_chunk(slot), row);
        for (uint32_t i = 0; i < list->count; i++) {
            const char *element = (const char *)list->items + (size_t)i * relation->element.size_bytes;
            quern_entity target;
            memcpy(&target, element, sizeof target);
            if (hash_of_entity(it, target) != 0)
                rows->sums[row] += quern__hash_word(name, hash_value(it, &relation->element, element));
        }
    }
}

/* Adds tags, except those of levels and of edges, which follow from targets, and the hidden tag of entities that are
 * disabled through their parents, which neither deltas nor JSON carry. */
static void add_tag(const hashing *it, const quern__archetype *archetype, const quern__chunk_slot *slot,
                    uint32_t index, row_sums *rows)
{
    const quern__component *component = it->storage->components.list.items[index];
    if (component->managed.relation != NULL && component->managed.relation->is_many)
        add_edges(it, archetype, slot, component, rows);
    const uint32_t disabled = it->storage->disabled_index;
    if (component->managed.relation != NULL || (disabled != QUERN__NO_COMPONENT && index == disabled + 1))
        return;
    const uint64_t hash = quern__hash_word(quern__hash_string(component->type.name), 0);
    for (uint32_t row = 0; row < slot->row_count; row++)
        rows->sums[row] += hash;
}

/* Returns whether the component holds the values of edges of sources with several targets. */
static bool holds_edge_list(const hashing *it, uint32_t index)
{
    const quern__components *components = &it->storage->components;
    const uint32_t owner = components->list.items[index]->edge_owner;
    return owner != 0 && components->list.items[owner - 1]->managed.relation->is_many;
}

static uint64_t hash_slot(hashing *it, const quern__archetype *archetype, uint32_t slot_index)
{
    const quern__chunk_slot *slot = &archetype->slots[slot_index];
    row_sums rows;
    memset(rows.sums, 0, slot->row_count * sizeof rows.sums[0]);
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint32_t index = archetype->component_indices[i];
        if (quern__archetype_column(archetype, index) >= QUERN__COLUMN_TAG)
            add_tag(it, archetype, slot, index, &rows);
        else if (index == it->id_index)
            continue;
        else if (QUERN__UNLIKELY(holds_edge_list(it, index)))
            add_edge_values(it, archetype, slot, it->storage->components.list.items[index], &rows);
        else
            add_values(it, archetype, slot, index, &rows);
    }
    const quern__row_bits *row_bits = archetype->row_bits;
    for (uint32_t i = 0; row_bits != NULL && i < row_bits->count; i++) {
        if (!quern__bit_column_is_of_component(row_bits->list[i].kind)) break;
        const quern__type *type = quern__components_type(&it->storage->components, row_bits->list[i].id);
        const uint64_t *words = quern__bit_column_words(row_bits, i, slot_index);
        const uint64_t hash = quern__hash_word(quern__hash_string(type->name), 1 + row_bits->list[i].kind);
        for (uint32_t row = 0; row < archetype->slots[slot_index].row_count; row++)
            rows.sums[row] += (words[row / 64] >> row % 64 & 1) * hash;
    }
    const quern_entity *entities = quern__archetype_entities(archetype, quern__slot_chunk(slot));
    for (uint32_t row = 0; row < slot->row_count && it->storage->names->count > 0; row++) {
        const quern__name *name = quern__names_of(it->storage->names, quern_entity_index(entities[row]));
        if (name != NULL) rows.sums[row] += quern__hash_word(2, quern__hash_string(name->text));
    }
    const quern__column *ids = quern__archetype_find_column(archetype, it->id_index);
    uint64_t sum = 0;
    for (uint32_t row = 0; row < slot->row_count; row++) {
        uint64_t id;
        memcpy(&id, quern__column_value(ids, quern__slot_chunk(slot), row), sizeof id);
        sum += quern__hash_word(quern__hash_word(3, id), rows.sums[row]);
    }
    return sum;
}

/* ------------------------------------------------------------------------------------------ worlds */

static uint64_t hash_resources_by_name(hashing *it, const quern__resources *resources)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < resources->list.count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        if (resource->type.field_count == 0) continue;
        sum += quern__hash_word(quern__hash_string(resource->type.name) ^ 4,
                                hash_value(it, &resource->type, resource->value));
    }
    return sum;
}

uint64_t quern_world_hash_by(const quern_world *world, quern_component id)
{
    QUERN__NEED_OR(world, 0);
    if (quern__world_check_unlocked(world, __func__) != QUERN_OK) return 0;
    if (quern__in_call(check_id(world, id), __func__) != QUERN_OK) return 0;
    hashing it = {.storage = &world->storage, .id_index = quern__component_index(id)};
    uint64_t sum = hash_resources_by_name(&it, &world->resources);
    for (uint32_t i = 0; i < world->storage.archetypes.count; i++) {
        const quern__archetype *archetype = world->storage.archetypes.items[i];
        for (uint32_t k = 0; k < archetype->chunk_count && quern__archetype_has(archetype, it.id_index);
             k++)
            sum += hash_slot(&it, archetype, k);
    }
    return sum;
}
