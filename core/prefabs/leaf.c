/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Copies of entities that need no prefab: they have nothing below them and are related to nothing but a parent. The rows
 * and links of the copy are those of an instance of a prefab with one member and no components; its values are then copied
 * from the row of the entity. */
#include "core/prefabs/prefab_internal.h"

#include "core/storage/change.h"
#include "core/storage/type_internal.h"

/* The only member of the prefab, and its group without components. Never written. */
static quern__prefab_member leaf_member = {.name = QUERN_NO_MEMBER};
static quern__prefab_group leaf_group = {.width = 1, .is_plain = true};
static uint32_t leaf_row_member = 0;

const quern__prefab quern__leaf_prefab = {.members = {.items = &leaf_member, .count = 1},
                                          .groups = {.items = &leaf_group, .count = 1},
                                          .row_members = {.items = &leaf_row_member, .count = 1},
                                          .reference_count = 1};

/* Whether the component is the parent of an entity, or the tag of a level below one. */
static bool is_of_parent(const quern__storage *storage, uint32_t component_index)
{
    const quern__relation *relation = storage->components.list.items[component_index]->managed.relation;
    return relation != NULL && relation == storage->relations->parent;
}

bool quern__leaf_find(const quern__storage *storage, quern_entity entity, quern__archetype **out_archetype)
{
    const uint32_t slot = quern_entity_index(entity);
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const quern__relation *parent = storage->relations->parent;
    if (parent != NULL && quern__links_first(&parent->links, slot) != QUERN__SLOT_NONE) return false;
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__component *component = storage->components.list.items[archetype->component_indices[i]];
        if (QUERN__UNLIKELY(component->is_managed) && component->managed.relation != NULL &&
            component->managed.relation != parent)
            return false;
    }
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__type *type = archetype->columns[i].type;
        if (type->hooks.destroy != NULL && type->hooks.copy == NULL) return false;
        /* handles in lists need memory to be replaced, which capturing reserves before anything changes */
        if (QUERN__UNLIKELY(type->lists != NULL && type->has_entity_fields)) return false;
        if (QUERN__UNLIKELY(type->has_entity_fields) &&
            quern_entity_is_provisional(quern__type_find_provisional(
                type, quern__column_at(&archetype->columns[i], record->location), 1)))
            return false;
    }
    *out_archetype = archetype;
    return true;
}

quern_result quern__leaf_find_target(quern__storage *storage, quern__archetype *archetype,
                                     uint32_t parent_slot, quern__archetype **out_target)
{
    const quern__relation *parent = storage->relations->parent;
    const uint32_t level =
        parent_slot != QUERN__SLOT_NONE ? quern__relation_source_level(parent, parent_slot) : 0;
    *out_target = archetype;
    if (parent == NULL || (level > 0 ? quern__archetype_has(archetype, quern__relation_tag(parent, level))
                                     : !quern__archetype_has(archetype, parent->component_index)))
        return QUERN_OK;
    const uint32_t added[2] = {parent->component_index,
                               level > 0 ? quern__relation_tag(parent, level) : QUERN__NO_COMPONENT};
    uint16_t set[2 * QUERN_MAX_ENTITY_COMPONENTS + 2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++)
        if (!is_of_parent(storage, archetype->component_indices[i]))
            set[count++] = archetype->component_indices[i];
    for (uint32_t k = 0; k < 2 && level > 0; k++)
        quern__components_insert(set, &count, added[k]);
    return quern__storage_ensure_archetype(storage, set, count, out_target);
}

/* The entity and its copy. */
typedef struct copied_pair {
    quern_entity entity, copy;
} copied_pair;

static quern_entity replace_handle(void *argument, quern_entity entity)
{
    const copied_pair *pair = argument;
    return quern_entity_equal(entity, pair->entity) ? pair->copy : entity;
}

void quern__leaf_fill(quern__storage *storage, quern_entity entity, quern_entity copy)
{
    const quern__record *from = quern__entities_record(&storage->entities, quern_entity_index(entity));
    const quern__record *to = quern__entities_record(&storage->entities, quern_entity_index(copy));
    const quern__archetype *source = quern__storage_archetype_of(storage, from);
    const quern__archetype *target = quern__storage_archetype_of(storage, to);
    copied_pair pair = {entity, copy};
    for (uint32_t i = 0; i < target->column_count; i++) {
        const quern__column *column = &target->columns[i];
        if (QUERN__UNLIKELY(storage->components.list.items[column->component_index]->is_managed))
            continue; /* the parent */
        const quern__column *original =
            source == target ? column : quern__archetype_find_column(source, column->component_index);
        void *value = quern__column_at(column, to->location);
        quern__type_copy(column->type, value, quern__column_at(original, from->location), 1);
        if (QUERN__UNLIKELY(column->type->has_entity_fields))
            quern__type_remap(column->type, value, replace_handle, &pair);
    }
    const quern__row_bits *bits = source->row_bits;
    for (uint32_t i = 0; bits != NULL && i < bits->count; i++)
        if (bits->list[i].kind == QUERN__BIT_COLUMN_CAN_DISABLE &&
            quern__bit_column_test(bits, i, from->location))
            quern__row_enable(target, to->location,
                              quern__row_bits_find_column(target->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE,
                                                          bits->list[i].id),
                              false);
}
