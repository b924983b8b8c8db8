/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/prefabs/prefab_internal.h"

enum { PREFAB_ALIGNMENT_BYTES = 64 };

/* ----------------------------------------------------------------------------------------- one prefab */

quern__prefab *quern__prefab_create(const quern_allocator *allocator)
{
    quern__prefab *prefab = quern__allocate(allocator, sizeof *prefab, _Alignof(quern__prefab));
    if (prefab == NULL) return NULL;
    *prefab = (quern__prefab){0};
    atomic_init(&prefab->reference_count, 1);
    return prefab;
}

static void destroy(quern__prefab *prefab, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < prefab->columns.count; i++) {
        const quern__prefab_column *column = &prefab->columns.items[i];
        if (column->constructed_count > 0)
            quern__type_destroy(column->type, column->values, column->constructed_count);
    }
    for (uint32_t i = 0; i < QUERN__LEVEL_COUNT; i++)
        quern__release(allocator, prefab->plans[i], quern__prefab_plan_bytes(prefab),
                       _Alignof(quern__link_node));
    quern__release(allocator, prefab->values, prefab->values_bytes, PREFAB_ALIGNMENT_BYTES);
    quern__array_release(allocator, &prefab->members);
    quern__array_release(allocator, &prefab->groups);
    quern__array_release(allocator, &prefab->columns);
    quern__array_release(allocator, &prefab->fields);
    quern__array_release(allocator, &prefab->links);
    quern__array_release(allocator, &prefab->nodes);
    quern__array_release(allocator, &prefab->names);
    quern__array_release(allocator, &prefab->toggles);
    quern__array_release(allocator, &prefab->level_links);
    quern__array_release(allocator, &prefab->row_members);
    quern__array_release(allocator, &prefab->component_indices);
    quern__release(allocator, prefab, sizeof *prefab, _Alignof(quern__prefab));
}

/* Relaxed: a thread that retains a prefab has found it in the registry, which no thread modifies meanwhile. The
 * main thread releases prefabs after all systems have run. The count orders no other access. */
void quern__prefab_retain(quern__prefab *prefab)
{
    atomic_fetch_add_explicit(&prefab->reference_count, 1, memory_order_relaxed);
}

void quern__prefab_release(quern__prefab *prefab, const quern_allocator *allocator)
{
    /* relaxed: see quern__prefab_retain */
    if (prefab != NULL && atomic_fetch_sub_explicit(&prefab->reference_count, 1, memory_order_relaxed) == 1)
        destroy(prefab, allocator);
}

static uint64_t held_bytes(const quern__prefab *prefab)
{
    return sizeof *prefab + prefab->values_bytes + prefab->names.capacity +
           (uint64_t)prefab->members.capacity * sizeof *prefab->members.items +
           (uint64_t)prefab->groups.capacity * sizeof *prefab->groups.items +
           (uint64_t)prefab->columns.capacity * sizeof *prefab->columns.items +
           (uint64_t)prefab->fields.capacity * sizeof *prefab->fields.items +
           (uint64_t)prefab->links.capacity * sizeof *prefab->links.items +
           (uint64_t)prefab->nodes.capacity * sizeof *prefab->nodes.items +
           (uint64_t)prefab->level_links.capacity * sizeof *prefab->level_links.items +
           (uint64_t)prefab->row_members.capacity * sizeof *prefab->row_members.items +
           (uint64_t)prefab->component_indices.capacity * sizeof *prefab->component_indices.items;
}

bool quern__prefab_is_enabled(const quern__prefab *prefab, const quern__storage *storage)
{
    const quern__prefab_group *group = &prefab->groups.items[0];
    for (uint32_t i = 0; i < group->component_count; i++)
        if (prefab->component_indices.items[group->first_component + i] == storage->disabled_index)
            return false;
    return true;
}

uint32_t quern__prefab_find_slot(const quern__prefab *prefab, uint32_t component_index)
{
    const quern__prefab_member *root = &prefab->members.items[0];
    const quern__prefab_group *group = &prefab->groups.items[root->group];
    for (uint32_t i = root->first_field; i < root->first_field + root->field_count; i++) {
        const quern__prefab_field *field = &prefab->fields.items[i];
        if (prefab->columns.items[group->first_column + field->column].component_index == component_index)
            return field->member;
    }
    return QUERN_NO_MEMBER;
}

/* ------------------------------------------------------------------------------------------- registry */

void quern__prefabs_release(quern__storage *storage)
{
    quern__prefabs *prefabs = storage->prefabs;
    if (prefabs == NULL) return;
    for (uint32_t i = 0; i < prefabs->slots.count; i++)
        quern__prefab_release(prefabs->slots.items[i].prefab, &storage->allocator);
    quern__array_release(&storage->allocator, &prefabs->slots);
    quern__array_release(&storage->allocator, &prefabs->handles);
    quern__release(&storage->allocator, prefabs, sizeof *prefabs, _Alignof(quern__prefabs));
    storage->prefabs = NULL;
}

static bool reserve_slot(quern__storage *storage)
{
    const quern_allocator *allocator = &storage->allocator;
    if (storage->prefabs == NULL) {
        quern__prefabs *made = quern__allocate(allocator, sizeof *made, _Alignof(quern__prefabs));
        if (made == NULL) return false;
        *made = (quern__prefabs){.first_free = QUERN__SLOT_NONE};
        storage->prefabs = made;
    }
    quern__prefabs *prefabs = storage->prefabs;
    if (prefabs->first_free != QUERN__SLOT_NONE) return true;
    if (!quern__array_reserve(allocator, &prefabs->slots, prefabs->slots.count + 1)) return false;
    prefabs->slots.items[prefabs->slots.count] =
        (quern__prefab_slot){.generation = 1, .next_free = QUERN__SLOT_NONE};
    prefabs->first_free = prefabs->slots.count++;
    return true;
}

quern_result quern__prefabs_add(quern__storage *storage, quern__prefab *prefab, quern_prefab *out_handle)
{
    if (!reserve_slot(storage))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for one more prefab");
    quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = prefabs->first_free;
    quern__prefab_slot *slot = &prefabs->slots.items[index];
    prefabs->first_free = slot->next_free;
    prefabs->count++;
    slot->prefab = prefab;
    *out_handle = quern__prefabs_handle(storage, index);
    return QUERN_OK;
}

/* A slot that has used its last generation is not reused. */
void quern__prefabs_remove(quern__storage *storage, quern_prefab handle)
{
    quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = (uint32_t)handle.bits;
    quern__prefab_slot *slot = &prefabs->slots.items[index];
    quern__prefab *prefab = slot->prefab;
    slot->prefab = NULL;
    prefabs->count--;
    if (slot->generation < QUERN__MAX_GENERATION) {
        slot->generation++;
        slot->next_free = prefabs->first_free;
        prefabs->first_free = index;
    }
    quern__prefab_release(prefab, &storage->allocator);
}

quern_result quern__prefabs_fail(const quern__storage *storage, quern_prefab handle)
{
    if (handle.bits == 0)
        return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB, "the prefab handle is null: capture a prefab first");
    const uint32_t tag = storage->entities.first_handle_high >> 24;
    if (handle.bits >> 56 != tag)
        return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB,
                           "the prefab belongs to another world (its tag is %u, this world's is %u): "
                           "capture it in this world",
                           (uint32_t)(handle.bits >> 56), tag);
    return quern__fail(QUERN_ERROR_UNKNOWN_PREFAB,
                       "prefab %u was destroyed: keep it as long as it is spawned", (uint32_t)handle.bits);
}

uint64_t quern__prefabs_held_bytes(const quern__storage *storage)
{
    const quern__prefabs *prefabs = storage->prefabs;
    if (prefabs == NULL) return 0;
    uint64_t bytes = sizeof *prefabs + (uint64_t)prefabs->slots.capacity * sizeof *prefabs->slots.items +
                     (uint64_t)prefabs->handles.capacity * sizeof(quern_entity);
    for (uint32_t i = 0; i < prefabs->slots.count; i++)
        if (prefabs->slots.items[i].prefab != NULL) bytes += held_bytes(prefabs->slots.items[i].prefab);
    return bytes;
}
