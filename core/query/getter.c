/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Random access by getters and refs. A ref caches a value's address, with the move count of its chunk at that time
 * (core/storage/chunk.h). */

#include "core/query/query_internal.h"

/* ------------------------------------------------------------------------------------------ create */

/* Takes a number that no other getter with refs in the process has. A ref is valid only for the getter that found it:
 * not for other getters of the component, for other components or worlds, or for later getters. Refs that were never
 * found have number 0. Relaxed: the number publishes no other data. */
static quern_result take_number(uint32_t *out_number)
{
    static _Atomic uint64_t taken;
    const uint64_t number = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed) + 1;
    if (number >= QUERN__GETTER_CLOSED)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "this process has created %u getters with refs, which is the limit; reuse getters",
            QUERN__GETTER_CLOSED - 1);
    *out_number = (uint32_t)number;
    return QUERN_OK;
}

static quern_result getter_init(quern__getter *getter, quern_world *world, const quern_getter_def *def)
{
    quern__storage *storage = &world->storage;
    const uint32_t index = quern__component_index(def->component);
    *getter = (quern__getter){.base = {.filter_count = &storage->components.list.items[index]->filter_count,
                                       .number = QUERN__GETTER_CLOSED,
                                       .is_checked = QUERN_CHECKS},
                              .world = world,
                              .has_refs = def->refs};
    quern_result result = def->refs ? take_number(&getter->base.number) : QUERN_OK;
    if (result != QUERN_OK) return result;
    result = quern__storage_add_position_table(storage, index, &getter->table);
    if (result != QUERN_OK || !def->refs) return result;
    result = quern__storage_start_move_counts(storage, index, &getter->base);
    if (result != QUERN_OK) quern__storage_remove_position_table(storage, &getter->table);
    return result;
}

static quern_result check_component(const quern_world *world, quern_component component)
{
    const quern__components *components = &world->storage.components;
    const quern_result result = quern__components_check(components, component);
    if (result != QUERN_OK) return result;
    const quern__type *type = quern__components_type(components, quern__component_index(component));
    if (type->size_bytes > 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%s' is a tag and has no value; use quern_entity_has to test for it", type->name);
}

quern_result quern_getter_create(quern_world *world, const quern_getter_def *def, quern_getter **out_getter)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_getter);
    quern_result result = check_component(world, def->component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const quern_allocator *allocator = &world->storage.allocator;
    quern__getter *getter = quern__allocate(allocator, sizeof *getter, _Alignof(quern__getter));
    if (getter == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a getter", __func__);
    result = getter_init(getter, world, def);
    if (result != QUERN_OK) {
        quern__release(allocator, getter, sizeof *getter, _Alignof(quern__getter));
        return quern__in_call(result, __func__);
    }
    world->user_count++;
    *out_getter = &getter->base;
    return QUERN_OK;
}

void quern_getter_destroy(quern_getter *base)
{
    if (base == NULL) return;
    quern__getter *getter = (quern__getter *)base;
    if (getter->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_getter_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the getter's world; destroy the getter afterwards");
        return;
    }
    quern__storage *storage = &getter->world->storage;
    if (getter->has_refs) quern__storage_stop_move_counts(storage, getter->table.component_index, base);
    quern__storage_remove_position_table(storage, &getter->table);
    getter->world->user_count--;
    quern__release(&storage->allocator, getter, sizeof *getter, _Alignof(quern__getter));
}

/* --------------------------------------------------------------------------------------------- get */

/* Reports that the getter is NULL or the world locked. Returns NULL. */
static QUERN__SLOW_PATH void *refuse(const quern_getter *base, const char *function)
{
    if (base == NULL)
        quern__fail_null(function, "getter");
    else
        quern__world_fail_locked(function);
    return NULL;
}

static inline bool can_get(const quern__getter *getter)
{
    return QUERN__LIKELY(getter != NULL && !getter->world->locked);
}

/* Returns the address of the component's value of an entity, or NULL. */
static inline void *find(const quern__getter *getter, quern_entity entity, const quern__record **out_record)
{
    const quern__record *record = quern__entities_find(&getter->world->storage.entities, entity);
    if (QUERN__UNLIKELY(record == NULL)) return NULL;
    const quern__column_position position = getter->table.positions[record->archetype_number];
    *out_record = record;
    return QUERN__LIKELY(position.offset_lines != 0) ? quern__position_value(position, record->location)
                                                     : NULL;
}

const void *quern_getter_get(const quern_getter *base, quern_entity entity)
{
    const quern__getter *getter = (const quern__getter *)base;
    if (!can_get(getter)) return refuse(base, __func__);
    const quern__record *record;
    return find(getter, entity, &record);
}

static void *find_for_write(const quern__getter *getter, quern_entity entity)
{
    const quern__record *record;
    void *value = find(getter, entity, &record);
    if (value != NULL && quern__getter_notes_writes(getter))
        quern__getter_note_written(getter, record->location);
    return value;
}

void *quern_getter_get_write(const quern_getter *base, quern_entity entity)
{
    const quern__getter *getter = (const quern__getter *)base;
    return can_get(getter) ? find_for_write(getter, entity) : refuse(base, __func__);
}

/* Returns whether the arguments are valid. If not, reports the error and clears out_values. */
static bool can_get_many(const quern_getter *base, const quern_entity *entities, uint32_t count,
                         const void **out_values, const char *function)
{
    if (count > 0 && out_values == NULL) {
        quern__fail_null(function, "out_values");
        return false;
    }
    const quern__getter *getter = (const quern__getter *)base;
    const bool has_list = count == 0 || entities != NULL;
    if (has_list && can_get(getter)) return true;
    if (count > 0) memset(out_values, 0, count * sizeof *out_values);
    if (has_list)
        (void)refuse(base, function);
    else
        quern__fail_null(function, "entities");
    return false;
}

uint32_t quern_getter_get_many(const quern_getter *base, const quern_entity *entities, uint32_t count,
                               const void **out_values)
{
    if (!can_get_many(base, entities, count, out_values, __func__)) return 0;
    const quern__getter *getter = (const quern__getter *)base;
    return quern__find_many(&getter->world->storage, &getter->table, getter->table.component_index, NULL,
                            entities, count, out_values);
}

uint32_t quern_getter_get_many_write(const quern_getter *base, const quern_entity *entities, uint32_t count,
                                     void **out_values)
{
    const void **values = (const void **)out_values;
    if (!can_get_many(base, entities, count, values, __func__)) return 0;
    const quern__getter *getter = (const quern__getter *)base;
    const uint32_t found_count =
        quern__find_many(&getter->world->storage, &getter->table, getter->table.component_index, NULL,
                         entities, count, values);
    if (quern__getter_notes_writes(getter))
        for (uint32_t i = 0; i < count; i++)
            if (out_values[i] != NULL) find_for_write(getter, entities[i]);
    return found_count;
}

/* -------------------------------------------------------------------------------------------- refs */

/* Finds the value and caches its location in the ref. */
static void *find_for_ref(const quern__getter *getter, quern_ref *ref)
{
    const quern__record *record;
    ref->getter = 0;
    ref->value = find(getter, ref->entity, &record);
    if (ref->value == NULL) return NULL;
    ref->getter = getter->base.number;
    ref->chunk = quern__chunk_number(&quern__storage_archetype_of(&getter->world->storage, record)->shape,
                                     record->location);
    ref->move_count = getter->world->storage.slabs.move_counts.counts[ref->chunk];
    return ref->value;
}

static bool can_find_for_ref(const quern_getter *base, const char *function)
{
    const quern__getter *getter = (const quern__getter *)base;
    if (!can_get(getter)) {
        (void)refuse(base, function);
        return false;
    }
    if (getter->has_refs) return true;
    quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: the getter of '%s' was created without refs; set refs in quern_getter_def", function,
        quern__components_type(&getter->world->storage.components, getter->table.component_index)->name);
    return false;
}

const void *quern__ref_find(const quern_getter *base, quern_ref *ref)
{
    return can_find_for_ref(base, "quern_ref_get") ? find_for_ref((const quern__getter *)base, ref) : NULL;
}

void *quern__ref_find_write(const quern_getter *base, quern_ref *ref)
{
    if (!can_find_for_ref(base, "quern_ref_get_write")) return NULL;
    (void)find_for_ref((const quern__getter *)base, ref);
    return find_for_write((const quern__getter *)base, ref->entity);
}
