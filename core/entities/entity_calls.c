/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of world.h that immediately change or read one entity. Each call checks its arguments, reserves all memory,
 * and then changes the world. The calls that create entities are in create.c.
 *
 * Changing calls try a fast path first. If it does not apply, a function named ..._slowly runs all checks again, performs
 * the change, or fails with the message. */
#include "core/entities/entities_internal.h"

#include "core/base/containers.h"
#include "core/reactions/hook.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"

static QUERN__SLOW_PATH quern_result fail_entity(const quern_world *world, quern_entity entity,
                                                 const char *function)
{
    return quern__in_call(quern__entities_check(&world->storage.entities, entity), function);
}

static QUERN__SLOW_PATH quern_result fail_component(const quern_world *world, quern_component component,
                                                    const char *function)
{
    return quern__in_call(quern__components_check(&world->storage.components, component), function);
}

/* Finds the record of a living entity. Fails if the world is locked or the entity is not alive. */
static inline quern_result check_entity(const quern_world *world, quern_entity entity, const char *function,
                                        quern__record **out_record)
{
    if (world == NULL) return quern__fail_null(function, "world");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    *out_record = quern__entities_find(&world->storage.entities, entity);
    if (QUERN__UNLIKELY(*out_record == NULL)) return fail_entity(world, entity, function);
    return QUERN_OK;
}

static inline quern_result check_entity_and_component(const quern_world *world, quern_entity entity,
                                                      quern_component component, const char *function,
                                                      quern__record **out_record)
{
    quern_result result = check_entity(world, entity, function, out_record);
    if (result != QUERN_OK) return result;
    const quern__components *components = &world->storage.components;
    if (quern__components_unchecked_index(components, component) < components->list.count) return QUERN_OK;
    return fail_component(world, component, function);
}

/* Performs check_entity_and_component for a call that reads, which entity hooks may make in a locked world. */
static quern_result check_readable(const quern_world *world, quern_entity entity, quern_component component,
                                   const char *function, const quern__record **out_record)
{
    if (world == NULL) return quern__fail_null(function, "world");
    const quern_result result = quern__world_check_readable(world, function);
    if (result != QUERN_OK) return result;
    *out_record = quern__entities_find(&world->storage.entities, entity);
    if (QUERN__UNLIKELY(*out_record == NULL)) return fail_entity(world, entity, function);
    const quern__components *components = &world->storage.components;
    if (quern__components_unchecked_index(components, component) < components->list.count) return QUERN_OK;
    return fail_component(world, component, function);
}

/* Returns the record of a living entity of an unlocked world, or NULL. check_entity gives the message. */
static inline quern__record *find_unlocked(const quern_world *world, quern_entity entity)
{
    if (QUERN__UNLIKELY(world == NULL || world->locked)) return NULL;
    return quern__entities_find(&world->storage.entities, entity);
}

static const char *component_name(const quern_world *world, quern_component component)
{
    return quern__components_type(&world->storage.components, quern__component_index(component))->name;
}

static quern_result fail_absent(const quern_world *world, quern_entity entity, quern_component component,
                                const char *function)
{
    return quern__fail(QUERN_ERROR_COMPONENT_ABSENT, "%s: entity %u:%u does not have '%s'", function,
                       quern_entity_index(entity), quern_entity_generation(entity),
                       component_name(world, component));
}

/* ---------------------------------------------------------------------------------------- destroy */

static QUERN__SLOW_PATH quern_result destroy_slowly(quern_world *world, quern_entity entity)
{
    quern__record *record;
    quern_result result = check_entity(world, entity, "quern_entity_destroy", &record);
    if (result != QUERN_OK) return result;
    quern__storage *storage = &world->storage;
    if (storage->has_attachments && quern__relations_has_links(storage->relations, (uint32_t)entity.bits))
        return quern__in_call(quern__world_destroy_cascade(world, &entity, 1), "quern_entity_destroy");
    result = quern__row_leaving_reserve(storage, quern__storage_archetype_of(storage, record), NULL);
    if (result != QUERN_OK) return quern__in_call(result, "quern_entity_destroy");
    quern__hooks_before_leaving(storage, quern__storage_archetype_of(storage, record), NULL,
                                record->location, 1);
    if (storage->has_attachments) quern__names_drop(storage->names, quern_entity_index(entity));
    quern__row_leave(storage, entity);
    return QUERN_OK;
}

quern_result quern_entity_destroy(quern_world *world, quern_entity entity)
{
    QUERN__ENTER(world);
    quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL || world->storage.has_attachments))
        return destroy_slowly(world, entity);
    quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    if (QUERN__UNLIKELY(!archetype->has_fast_leave || quern__record_may_retire_or_wrap(record)))
        return destroy_slowly(world, entity);
    return quern__row_leave_plain(&world->storage, archetype, entity, record);
}

bool quern_entity_is_alive(const quern_world *world, quern_entity entity)
{
    return world != NULL && quern__entities_find(&world->storage.entities, entity) != NULL;
}

static uint32_t use_count_of(const quern_world *world, quern_entity entity, const char *function)
{
    if (world == NULL) {
        quern__fail_null(function, "world");
        return 0;
    }
    const uint32_t first_handle_high = world->storage.entities.first_handle_high;
    if (quern_entity_world_tag(entity) == first_handle_high >> 24)
        return quern__generation_use_count(first_handle_high, quern_entity_generation(entity));
    quern__fail(quern_entity_is_null(entity)          ? QUERN_ERROR_NULL_ENTITY
                : quern_entity_is_provisional(entity) ? QUERN_ERROR_PROVISIONAL_ENTITY
                                                      : QUERN_ERROR_FOREIGN_ENTITY,
                "%s: handle %#llx is not of this world (tag %u); pass a handle that this world returned",
                function, (unsigned long long)entity.bits, first_handle_high >> 24);
    return 0;
}

uint32_t quern_entity_use_count(const quern_world *world, quern_entity entity)
{
    return use_count_of(world, entity, __func__);
}

uint64_t quern_entity_seed(const quern_world *world, quern_entity entity)
{
    const uint64_t use_count = use_count_of(world, entity, __func__);
    return use_count == 0 ? 0 : quern__hash_word(0, use_count << 32 | quern_entity_index(entity));
}

/* ------------------------------------------------------------------------------------ add, remove */

/* Refuses provisional handles in the described fields of a value that a call writes immediately. */
static QUERN__NO_INLINE quern_result check_handles(const quern_world *world, quern_component component,
                                                   const void *value)
{
    const quern__components *components = &world->storage.components;
    const uint32_t index = quern__component_index(component);
    const quern_result result =
        value != NULL ? quern__components_check_edge_list(components, index) : QUERN_OK;
    if (result != QUERN_OK) return result;
    return quern__type_check_provisional(quern__components_type(components, index), value, value != NULL,
                                         "quern_commands_set");
}

/* Adds the component, with a copy of value or (NULL) a constructed one, or removes it if the entity has it. */
static quern_result add_or_remove(quern_world *world, quern_entity entity, quern__record *record,
                                  quern_component component, const void *value)
{
    quern__storage *storage = &world->storage;
    quern__archetype *source = quern__storage_archetype_of(storage, record);
    const quern__move_plan *plan;
    quern_result result = check_handles(world, component, value);
    if (result == QUERN_OK)
        result = quern__plan_add_or_remove(storage, source, quern__component_index(component), &plan);
    if (result == QUERN_OK) result = quern__row_leaving_reserve(storage, source, plan->target);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, plan->target, 1);
    if (result != QUERN_OK) return result;
    quern__hooks_before_leaving(storage, source, plan->target, record->location, 1);
    uint32_t count;
    uintptr_t location = quern__rows_append(storage, plan->target, 1, &count);
    quern__fill_component(storage, plan->target, location, quern__component_index(component), value, 1);
    quern__fill_required(plan, quern__component_index(component), location, 1);
    quern__row_move(storage, entity, record, plan, location);
    quern__rows_gather_if_large(storage); /* not before: the value may be in the storage */
    quern__hooks_after(storage);
    return QUERN_OK;
}

static bool has(const quern_world *world, const quern__record *record, quern_component component)
{
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    return quern__archetype_has(archetype, quern__component_index(component));
}

/* The complete path of a call: reserves memory, calls hooks, and fails with messages. */
typedef quern_result slow_call(quern_world *world, quern_entity entity, quern_component component,
                               const void *value);

/* A call that adds or removes a component of a living entity. `adds` and `slowly` are constants where a change is made. */
typedef struct component_change {
    quern_world *world;
    quern_entity entity;
    quern__record *record;
    quern_component component;
    const void *value; /* to be added, or NULL */
    bool adds;
    slow_call *slowly;
} component_change;

QUERN__ALWAYS_INLINE quern_result change_slowly(const component_change it)
{
    return it.slowly(it.world, it.entity, it.component, it.value);
}

/* Moves the entity along an edge. Takes the complete path if no row is free, if the edge needs a value that is not given,
 * or if the value has provisional handles. */
QUERN__ALWAYS_INLINE quern_result move_along_edge(const component_change it, quern__archetype *source,
                                                  const quern__edge *edge)
{
    quern__row to;
    if (it.adds && QUERN__UNLIKELY(it.value == NULL && edge->added.size_bytes > 0))
        return change_slowly(it);
    if (it.adds && QUERN__UNLIKELY(edge->target->has_handles) &&
        check_handles(it.world, it.component, it.value) != QUERN_OK)
        return change_slowly(it);
    if (QUERN__UNLIKELY(!quern__row_append(edge->target, &to))) return change_slowly(it);
    if (it.adds && it.value != NULL)
        quern__copy_value(quern__row_value(&edge->added, to), it.value, edge->added.size_bytes);
    return quern__row_move_plain(&it.world->storage, source, it.entity, it.record, edge, to);
}

/* Performs move_by_edge if the cached edges of the archetype do not contain the edge, or if moving along it needs a
 * reservation. If the reservation fails, the complete path repeats it, and reports the error. */
static QUERN__NO_INLINE quern_result move_by_uncached_edge(quern_world *world, quern_entity entity,
                                                           quern__record *record, uint64_t edge_key,
                                                           const void *value, slow_call *slowly)
{
    quern__archetype *source = quern__storage_archetype_of(&world->storage, record);
    const quern__edge *edge = quern__archetype_edge(source, edge_key);
    const component_change it = {world, entity, record, quern__edge_component(edge_key),
                                 value, true,   slowly};
    if (edge->key != (edge_key | QUERN__EDGE_NEEDS_ROOM))
        edge = quern__plan_find_edge(&world->storage, source, edge_key);
    if (edge == NULL || source->has_hooks || edge->target->has_hooks) return change_slowly(it);
    if (!source->has_fast_leave &&
        quern__row_leaving_reserve(&world->storage, source, edge->target) != QUERN_OK)
        return change_slowly(it);
    return move_along_edge(it, source, edge);
}

/* Moves the entity along the edge of the component. */
QUERN__ALWAYS_INLINE quern_result move_by_edge(const component_change it, quern__archetype *source)
{
    const uint64_t key = quern__edge_key(it.component, it.adds);
    const quern__edge *edge = quern__archetype_edge(source, key);
    if (QUERN__UNLIKELY(edge->key != key))
        return move_by_uncached_edge(it.world, it.entity, it.record, key, it.value, it.slowly);
    return move_along_edge(it, source, edge);
}

static bool is_managed(const quern_world *world, quern_component component)
{
    return quern__components_is_managed(&world->storage.components, quern__component_index(component));
}

/* Whether the component has the target of a relation as value, so that callers may add and set it. */
static bool has_target_value(const quern_world *world, quern_component component)
{
    const quern__relation *relation = quern__relation_of(&world->storage, (quern_relation){component.bits});
    return relation != NULL && !relation->is_many;
}

/* Adds or sets a managed component: relates the entity, or fails if it is not the component of a relation. */
static quern_result set_managed(quern_world *world, quern_entity entity, quern_component component,
                                const void *value, const char *function)
{
    if (!has_target_value(world, component))
        return quern__in_call(quern__world_fail_managed(world, component), function);
    if (value == NULL) return quern__fail_null(function, "value");
    quern_entity target;
    memcpy(&target, value, sizeof target);
    return quern__world_relate(world, entity, (quern_relation){component.bits}, target, function);
}

/* Adds a component, with all checks. function: for messages. */
static quern_result add_checked(quern_world *world, quern_entity entity, quern_component component,
                                const void *value, const char *function)
{
    quern__record *record;
    quern_result result = check_entity_and_component(world, entity, component, function, &record);
    if (result != QUERN_OK) return result;
    if (is_managed(world, component) &&
        (!has(world, record, component) || !has_target_value(world, component)))
        return set_managed(world, entity, component, value, function);
    if (has(world, record, component))
        return quern__fail(QUERN_ERROR_COMPONENT_PRESENT,
                           "%s: entity %u:%u already has '%s'; use quern_entity_set to change its value",
                           function, quern_entity_index(entity), quern_entity_generation(entity),
                           component_name(world, component));
    return quern__in_call(add_or_remove(world, entity, record, component, value), function);
}

static QUERN__SLOW_PATH quern_result add_slowly(quern_world *world, quern_entity entity,
                                                quern_component component, const void *value)
{
    return add_checked(world, entity, component, value, "quern_entity_add");
}

quern_result quern__world_add(quern_world *world, quern_entity entity, quern_component component,
                              const char *function)
{
    QUERN__ENTER_AS(world, function);
    return add_checked(world, entity, component, NULL, function);
}

quern_result quern_entity_add(quern_world *world, quern_entity entity, quern_component component,
                              const void *value)
{
    QUERN__ENTER(world);
    quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL)) return add_slowly(world, entity, component, value);
    quern__archetype *source = quern__storage_archetype_of(&world->storage, record);
    return move_by_edge((component_change){world, entity, record, component, value, true, add_slowly},
                        source);
}

/* Removes a component, with all checks. function: for messages. */
static quern_result remove_checked(quern_world *world, quern_entity entity, quern_component component,
                                   const char *function)
{
    quern__record *record;
    quern_result result = check_entity_and_component(world, entity, component, function, &record);
    if (result != QUERN_OK) return result;
    if (!has(world, record, component)) return fail_absent(world, entity, component, function);
    if (quern__relation_of(&world->storage, (quern_relation){component.bits}) != NULL)
        return quern__world_unrelate(world, entity, (quern_relation){component.bits}, function);
    if (is_managed(world, component))
        return quern__in_call(quern__world_fail_managed(world, component), function);
    return quern__in_call(add_or_remove(world, entity, record, component, NULL), function);
}

static QUERN__SLOW_PATH quern_result remove_slowly(quern_world *world, quern_entity entity,
                                                   quern_component component, const void *no_value)
{
    (void)no_value;
    return remove_checked(world, entity, component, "quern_entity_remove");
}

quern_result quern__world_remove(quern_world *world, quern_entity entity, quern_component component,
                                 const char *function)
{
    QUERN__ENTER_AS(world, function);
    return remove_checked(world, entity, component, function);
}

quern_result quern_entity_remove(quern_world *world, quern_entity entity, quern_component component)
{
    QUERN__ENTER(world);
    quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL)) return remove_slowly(world, entity, component, NULL);
    quern__archetype *source = quern__storage_archetype_of(&world->storage, record);
    return move_by_edge((component_change){world, entity, record, component, NULL, false, remove_slowly},
                        source);
}

quern_result quern_entity_clear(quern_world *world, quern_entity entity)
{
    QUERN__ENTER(world);
    quern__record *record;
    quern_result result = check_entity(world, entity, __func__, &record);
    if (result != QUERN_OK) return result;
    quern__storage *storage = &world->storage;
    quern__archetype *source = quern__storage_archetype_of(storage, record), *target;
    uint16_t kept[QUERN_MAX_COMPONENTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < source->component_count; i++) {
        const uint16_t index = source->component_indices[i];
        const bool disables = index == storage->disabled_index || index == storage->disabled_index + 1;
        if (disables || quern__components_is_managed(&storage->components, index)) kept[count++] = index;
    }
    count = quern__components_complete(&storage->components, kept, count); /* values of edges */
    const quern__move_plan *plan;
    result = quern__storage_ensure_archetype(storage, kept, count, &target);
    if (result == QUERN_OK && target == source) return QUERN_OK;
    if (result == QUERN_OK) result = quern__plan_between(storage, source, target, &plan);
    if (result == QUERN_OK) result = quern__row_leaving_reserve(storage, source, target);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, target, 1);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__hooks_before_leaving(storage, source, target, record->location, 1);
    uint32_t appended;
    quern__row_move(storage, entity, record, plan, quern__rows_append(storage, target, 1, &appended));
    quern__rows_gather_if_large(storage);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- values */

static void copy_over(const quern__type *type, void *target, const void *value)
{
    if (target == NULL || target == value) return;
    if (QUERN__UNLIKELY(quern__hooks_own_resources(&type->hooks))) {
        quern__type_destroy(type, target, 1);
        quern__type_accept(type, target, value, 1);
        return;
    }
    quern__copy_value(target, value, type->size_bytes);
}

static void replace_value(quern_world *world, const quern__record *record, quern_component component,
                          const void *value)
{
    uint32_t index = quern__component_index(component);
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    void *target = quern__storage_value(archetype, record->location, index);
    const quern__type *type = quern__components_type(&world->storage.components, index);
    if (QUERN__LIKELY(!archetype->tracks_changes)) {
        copy_over(type, target, value);
    } else {
        quern__rows_before_write(archetype, record->location, 1, index);
        copy_over(type, target, value);
        quern__rows_written(archetype, record->location, 1, index);
        if (QUERN__UNLIKELY(archetype->has_hooks)) quern__hooks_after(&world->storage);
    }
    quern__storage_note_written(&world->storage, index);
}

/* Sets a component, with all checks. function: for messages. */
static quern_result set_checked(quern_world *world, quern_entity entity, quern_component component,
                                const void *value, const char *function)
{
    quern__record *record;
    quern_result result = check_entity_and_component(world, entity, component, function, &record);
    if (result != QUERN_OK) return result;
    uint32_t index = quern__component_index(component);
    if (value == NULL && quern__components_type(&world->storage.components, index)->size_bytes > 0)
        return quern__fail_null(function, "value");
    if (is_managed(world, component)) return set_managed(world, entity, component, value, function);
    if (!has(world, record, component))
        return quern__in_call(add_or_remove(world, entity, record, component, value), function);
    result = check_handles(world, component, value);
    if (result == QUERN_OK) replace_value(world, record, component, value);
    return quern__in_call(result, function);
}

static QUERN__SLOW_PATH quern_result set_slowly(quern_world *world, quern_entity entity,
                                                quern_component component, const void *value)
{
    return set_checked(world, entity, component, value, "quern_entity_set");
}

/* Returns whether the entity has the component with this value; a tag has none that could differ. */
static bool has_value(const quern_world *world, const quern__record *record, quern_component component,
                      const void *value)
{
    const quern__components *components = &world->storage.components;
    const uint32_t index = quern__components_unchecked_index(components, component);
    if (index >= components->list.count || !has(world, record, component)) return false;
    if (is_managed(world, component) && !has_target_value(world, component)) return false;
    const void *now =
        quern__storage_value(quern__storage_archetype_of(&world->storage, record), record->location, index);
    return now == NULL ||
           (value != NULL && quern__type_same_value(quern__components_type(components, index), now, value));
}

quern_result quern_entity_set_if_different(quern_world *world, quern_entity entity,
                                           quern_component component, const void *value, bool *out_changed)
{
    QUERN__ENTER(world);
    if (out_changed != NULL) *out_changed = false;
    const quern__record *record = find_unlocked(world, entity);
    if (QUERN__LIKELY(record != NULL) && has_value(world, record, component, value)) return QUERN_OK;
    const quern_result result = set_checked(world, entity, component, value, __func__);
    if (out_changed != NULL) *out_changed = result == QUERN_OK;
    return result;
}

quern_result quern_entity_set(quern_world *world, quern_entity entity, quern_component component,
                              const void *value)
{
    QUERN__ENTER(world);
    quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL || value == NULL))
        return set_slowly(world, entity, component, value);
    quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    const uint32_t index = quern__components_unchecked_index(&world->storage.components, component);
    if (quern__archetype_column_position(archetype, index).offset_lines == 0)
        return move_by_edge((component_change){world, entity, record, component, value, true, set_slowly},
                            archetype);
    if (QUERN__UNLIKELY(quern__components_is_managed(&world->storage.components, index)))
        return set_slowly(world, entity, component, value);
    if (QUERN__UNLIKELY(archetype->has_handles) && check_handles(world, component, value) != QUERN_OK)
        return set_slowly(world, entity, component, value);
    replace_value(world, record, component, value);
    return QUERN_OK;
}

/* Performs a quern_entity_get that found no value in an unlocked world: gets it for an entity hook, or returns NULL and
 * reports the error, if there is one. */
static QUERN__SLOW_PATH void *get_slowly(const quern_world *world, quern_entity entity,
                                         quern_component component)
{
    static const char function[] = "quern_entity_get";
    const quern__record *record;
    if (check_readable(world, entity, component, function, &record) != QUERN_OK) return NULL;
    void *value = quern__storage_value(quern__storage_archetype_of(&world->storage, record),
                                       record->location, quern__component_index(component));
    if (value != NULL) return value;
    if (quern__components_type(&world->storage.components, quern__component_index(component))->size_bytes ==
        0)
        (void)quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                          "%s: '%s' is a tag and has no value; use quern_entity_has to test for it",
                          function, component_name(world, component));
    return NULL;
}

/* The checks here do not distinguish errors; only a failed lookup finds out which one it was. */
void *quern_entity_get(quern_world *world, quern_entity entity, quern_component component)
{
    const quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL)) return get_slowly(world, entity, component);
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    const uint32_t index = quern__components_unchecked_index(&world->storage.components, component);
    void *value = quern__storage_value(archetype, record->location, index);
    if (QUERN__UNLIKELY(value == NULL)) return get_slowly(world, entity, component);
    quern__storage_note_pointer_given(&world->storage, index);
    return value;
}

quern_result quern_entity_ensure(quern_world *world, quern_entity entity, quern_component component,
                                 void **out_value, bool *out_added)
{
    QUERN__ENTER(world);
    quern__record *record;
    if (out_value != NULL) *out_value = NULL;
    if (out_added != NULL) *out_added = false;
    quern_result result = check_entity_and_component(world, entity, component, __func__, &record);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(component);
    if (is_managed(world, component))
        return quern__in_call(quern__world_fail_managed(world, component), __func__);
    const bool adds = !has(world, record, component);
    if (adds) result = quern__in_call(add_or_remove(world, entity, record, component, NULL), __func__);
    if (result != QUERN_OK) return result;
    if (out_added != NULL) *out_added = adds;
    if (out_value == NULL) return QUERN_OK;
    *out_value =
        quern__storage_value(quern__storage_archetype_of(&world->storage, record), record->location, index);
    if (*out_value != NULL) quern__storage_note_pointer_given(&world->storage, index);
    return QUERN_OK;
}

quern_result quern_entity_mark_changed(quern_world *world, quern_entity entity, quern_component component)
{
    QUERN__ENTER(world);
    quern__record *record;
    quern_result result = check_entity_and_component(world, entity, component, __func__, &record);
    if (result != QUERN_OK) return result;
    if (!has(world, record, component)) return fail_absent(world, entity, component, __func__);
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    quern__rows_before_write(archetype, record->location, 1, quern__component_index(component));
    quern__rows_written(archetype, record->location, 1, quern__component_index(component));
    quern__hooks_after(&world->storage);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- enabled */

static QUERN__SLOW_PATH quern_result fail_enable(const quern_world *world, quern_entity entity,
                                                 quern_component component)
{
    static const char function[] = "quern_entity_set_component_enabled";
    quern__record *record;
    quern_result result = check_entity_and_component(world, entity, component, function, &record);
    if (result == QUERN_OK)
        result = quern__in_call(quern__components_check_flag(&world->storage.components,
                                                             quern__component_index(component),
                                                             QUERN__FLAG_CAN_DISABLE),
                                function);
    return result != QUERN_OK ? result : fail_absent(world, entity, component, function);
}

quern_result quern_entity_set_component_enabled(quern_world *world, quern_entity entity,
                                                quern_component component, bool enabled)
{
    QUERN__ENTER(world);
    const quern__record *record = find_unlocked(world, entity);
    if (QUERN__UNLIKELY(record == NULL)) return fail_enable(world, entity, component);
    const quern__archetype *archetype = quern__storage_archetype_of(&world->storage, record);
    const uint32_t bit_column = quern__row_bits_find_column(
        archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE,
        quern__components_unchecked_index(&world->storage.components, component));
    if (QUERN__UNLIKELY(bit_column == QUERN__NO_BIT_COLUMN)) return fail_enable(world, entity, component);
    quern__row_enable(archetype, record->location, bit_column, enabled);
    return QUERN_OK;
}

bool quern_entity_is_component_enabled(const quern_world *world, quern_entity entity,
                                       quern_component component)
{
    const quern__record *record;
    if (check_readable(world, entity, component, __func__, &record) != QUERN_OK) return false;
    return quern__row_is_enabled(quern__storage_archetype_of(&world->storage, record), record->location,
                                 quern__component_index(component));
}

bool quern_entity_has(const quern_world *world, quern_entity entity, quern_component component)
{
    const quern__record *record;
    if (check_readable(world, entity, component, __func__, &record) != QUERN_OK) return false;
    return has(world, record, component);
}
