/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Values of edges (relation_internal.h): the component that holds them, reading and setting one value, and pending
 * values of a transaction. */
#include "core/relations/relation_internal.h"

#include "core/base/list_internal.h"
#include "core/storage/change.h"
#include "core/storage/list_values.h"

#include <quern/relation.h>

#include <stdlib.h>

/* ------------------------------------------------------------------------------------- registering */

static quern_result fail_type(const quern_relation_def *def, const quern__component *component,
                              const char *why, const char *remedy)
{
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "relation '%s': component '%s' cannot hold the values of its edges, because %s: %s",
                       def->name, component->type.name, why, remedy);
}

/* Checks that the one field of the type is a list of structs that begin with an entity. */
static quern_result check_list(const quern_relation_def *def, const quern__component *component)
{
    const quern__type *type = &component->type;
    const quern_field *list = type->field_count == 1 ? &type->fields[0] : NULL;
    if (list == NULL || list->type != QUERN_FIELD_LIST || list->element->type != 0 || list->count != 1 ||
        type->size_bytes != sizeof(quern_list))
        return fail_type(def, component,
                         "a source has several targets, and its only member is no list of structs",
                         "give it one QUERN_LIST, with an element per edge");
    const quern_field *first = list->element->fields;
    for (uint32_t i = 1; i < list->element->field_count; i++)
        if (list->element->fields[i].offset_bytes < first->offset_bytes) first = &list->element->fields[i];
    if (first->type != QUERN_FIELD_ENTITY || first->count != 1 || first->offset_bytes != 0)
        return fail_type(def, component, "the elements of its list do not begin with the target",
                         "make a quern_entity their first member, and describe it");
    if (list->element->size_bytes > QUERN__EDGE_ELEMENT_BYTES)
        return fail_type(def, component, "the elements of its list have more than 1024 bytes",
                         "keep large data elsewhere, and a handle or an index in the element");
    if (!type->owns_only_lists || type->default_value != NULL)
        return fail_type(def, component, "it has hooks or a default value",
                         "leave them out: elements begin with zero bytes");
    return QUERN_OK;
}

quern_result quern__edge_values_check(const quern__storage *storage, const quern_relation_def *def)
{
    const quern__components *components = &storage->components;
    if (def->value.bits == 0) return QUERN_OK;
    quern_result result = quern__components_check(components, def->value);
    if (result != QUERN_OK) return quern__message_add_call(result, "value", NULL);
    const quern__component *component = components->list.items[quern__component_index(def->value)];
    if (component->is_managed)
        return fail_type(def, component, "the world adds and removes it by itself", "register another one");
    if (component->edge_owner != 0)
        return fail_type(def, component, "it has those of another relation", "register another one");
    if (component->type.size_bytes == 0)
        return fail_type(def, component, "it is a tag", "give it a size, or leave out 'value'");
    if (component->archetypes.count > 0)
        return fail_type(def, component, "entities have it already or had it",
                         "register the relation before entities get it");
    for (uint32_t i = 0; i < components->list.count; i++)
        for (uint32_t k = 0; k < components->list.items[i]->required.count; k++)
            if (components->list.items[i]->required.items[k] == quern__component_index(def->value))
                return fail_type(def, component, "another component requires it", "register another one");
    if (def->many) return check_list(def, component);
    if (component->type.hooks.destroy != NULL && component->type.hooks.copy == NULL)
        return fail_type(def, component, "it has a destroy hook and no copy hook",
                         "give it a copy hook, since commands and saved states copy values");
    return QUERN_OK;
}

/* Makes the type of the elements of a list. */
static quern_result init_element(quern__type *out_type, const quern_allocator *allocator,
                                 const quern__type *list)
{
    const quern_element *element = list->fields[0].element;
    quern_field fields[QUERN_MAX_FIELDS] = {{.name = NULL}};
    memcpy(fields, element->fields, element->field_count * sizeof *fields);
    return quern__type_init(out_type, allocator, "component", list->name, NULL, element->size_bytes,
                            element->alignment_bytes, &(quern_hooks){.copy = NULL}, fields);
}

quern_result quern__edge_values_init(const quern__storage *storage, quern__relation *relation,
                                     const quern_relation_def *def)
{
    relation->value_index = QUERN__NO_COMPONENT;
    if (def->value.bits == 0) return QUERN_OK;
    relation->value_index = quern__component_index(def->value);
    if (!def->many) return QUERN_OK;
    return init_element(&relation->element, &storage->allocator,
                        quern__components_type(&storage->components, relation->value_index));
}

quern_result quern__edge_values_redefine(const quern__relation *relation, const quern_allocator *allocator,
                                         const quern__type *type, bool is_converted,
                                         quern__type *out_element)
{
    if (!relation->is_many) {
        if (type->hooks.destroy == NULL || type->hooks.copy != NULL) return QUERN_OK;
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%s' holds the values of edges and gets a destroy hook and no copy "
                           "hook: give it a copy hook, since commands and saved states copy values",
                           type->name);
    }
    if (is_converted)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "component '%s' has an element for each target of a relation with several, so "
                           "its layout cannot change: give the new values to another relation",
                           type->name);
    if (type->default_value != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%s' has an element for each target of a relation, so a default "
                           "value has no effect: leave it out, since elements begin with zero bytes",
                           type->name);
    return init_element(out_element, allocator, type);
}

/* -------------------------------------------------------------------------------- elements of a list */

/* Returns the index of the first element of which the target is not below a slot. */
static uint32_t lower_bound(const quern_list *list, uint32_t element_bytes, uint32_t slot)
{
    const char *items = list->items;
    uint32_t first = 0;
    for (uint32_t count = list->count; count > 0;) {
        const uint32_t half = count / 2;
        quern_entity target;
        memcpy(&target, items + (size_t)(first + half) * element_bytes, sizeof target);
        const bool is_below = quern_entity_index(target) < slot;
        first += is_below ? half + 1 : 0;
        count = is_below ? count - half - 1 : half;
    }
    return first;
}

/* Returns the index of the element of a target, or the number of elements. */
static uint32_t find_element(const quern_list *list, uint32_t element_bytes, uint32_t slot)
{
    const uint32_t at = lower_bound(list, element_bytes, slot);
    quern_entity target;
    if (at == list->count) return at;
    memcpy(&target, (const char *)list->items + (size_t)at * element_bytes, sizeof target);
    return quern_entity_index(target) == slot ? at : list->count;
}

uint32_t quern_edge_values_find(const quern_list *list, uint32_t element_bytes, quern_entity target)
{
    if (list == NULL) return 0;
    const uint32_t at = find_element(list, element_bytes, quern_entity_index(target));
    quern_entity found;
    if (at == list->count) return at;
    memcpy(&found, (const char *)list->items + (size_t)at * element_bytes, sizeof found);
    return quern_entity_equal(found, target) ? at : list->count;
}

/* Writes an element of a list that shares no block. value: NULL for zero bytes. */
static void write_element(const quern__relation *relation, quern_list *list, uint32_t at,
                          quern_entity target, const void *value)
{
    const uint32_t bytes = relation->element.size_bytes;
    char *element = (char *)quern_list_write(list, bytes) + (size_t)at * bytes;
    if (value != NULL)
        memmove(element, value, bytes);
    else
        memset(element, 0, bytes);
    memcpy(element, &target, sizeof target);
}

/* Inserts the element of a target, or replaces it. value: NULL for zero bytes. Errors: OUT_OF_MEMORY; then the list is
 * unchanged. */
static quern_result put_element(const quern__relation *relation, quern_list *list, quern_entity target,
                                const void *value)
{
    const uint32_t bytes = relation->element.size_bytes, slot = quern_entity_index(target);
    const uint32_t at = lower_bound(list, bytes, slot);
    if (at == list->count || find_element(list, bytes, slot) == list->count) {
        const quern_result result = quern_list_insert(list, bytes, at, value, 1);
        if (result != QUERN_OK) return result;
    } else if (quern_list_write(list, bytes) == NULL) {
        return QUERN_ERROR_OUT_OF_MEMORY;
    }
    write_element(relation, list, at, target, value);
    return QUERN_OK;
}

/* Removes the element of a target, if there is one. Errors: as put_element. */
static quern_result remove_element(const quern__relation *relation, quern_list *list, uint32_t slot)
{
    const uint32_t at = find_element(list, relation->element.size_bytes, slot);
    return at < list->count ? quern_list_remove(list, relation->element.size_bytes, at, 1) : QUERN_OK;
}

quern_result quern__edge_list_put(const quern__relation *relation, quern_list *list, quern_entity target,
                                  const void *value)
{
    return put_element(relation, list, target, value);
}

/* ------------------------------------------------------------------------------------ values in rows */

void *quern__edge_values_of(const quern__storage *storage, const quern__relation *relation, uint32_t source)
{
    const quern__record *record = quern__entities_record(&storage->entities, source);
    return quern__storage_value(quern__storage_archetype_of(storage, record), record->location,
                                relation->value_index);
}

const void *quern__edge_value(const quern__storage *storage, const quern__relation *relation,
                              uint32_t source, uint32_t target)
{
    const void *value = quern__edge_values_of(storage, relation, source);
    if (!relation->is_many || value == NULL) return value;
    const quern_list *list = value;
    const uint32_t at = find_element(list, relation->element.size_bytes, target);
    return at < list->count ? (const char *)list->items + (size_t)at * relation->element.size_bytes : NULL;
}

/* Reports a write of the values in the row of a source. is_before: the values will be written. */
static void report(quern__storage *storage, const quern__relation *relation, uint32_t source,
                   bool is_before)
{
    const quern__record *record = quern__entities_record(&storage->entities, source);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (is_before) {
        quern__rows_before_write(archetype, record->location, 1, relation->value_index);
    } else {
        quern__rows_written(archetype, record->location, 1, relation->value_index);
        quern__storage_note_written(storage, relation->value_index);
    }
}

void quern__edge_value_replace(quern__storage *storage, const quern__relation *relation, uint32_t source,
                               const void *value, bool is_new)
{
    const quern__type *type = quern__components_type(&storage->components, relation->value_index);
    void *at = quern__edge_values_of(storage, relation, source);
    if (value == at) return;
    if (!is_new) report(storage, relation, source, true);
    quern__type_destroy(type, at, 1);
    if (value != NULL)
        quern__type_copy(type, at, value, 1);
    else
        quern__type_construct(type, at, 1);
    if (!is_new) report(storage, relation, source, false);
}

quern_result quern__edge_value_set(quern__storage *storage, const quern__relation *relation,
                                   quern_entity source, quern_entity target, const void *value)
{
    const uint32_t slot = quern_entity_index(source);
    if (!relation->is_many) {
        quern__edge_value_replace(storage, relation, slot, value, false);
        return QUERN_OK;
    }
    /* a write is reported before it happens, and must not fail after that */
    quern_list *list = quern__edge_values_of(storage, relation, slot);
    if (list->count > 0 && quern_list_write(list, relation->element.size_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    report(storage, relation, slot, true);
    const quern_result result = put_element(relation, list, target, value);
    report(storage, relation, slot, false);
    return result;
}

quern_result quern__edge_element_add(quern__storage *storage, const quern__relation *relation,
                                     uint32_t source, quern_entity target, const void *value)
{
    quern_list *list = quern__edge_values_of(storage, relation, source);
    quern_result result = quern_list_reserve(list, relation->element.size_bytes, list->count + 1);
    if (result != QUERN_OK) return result;
    report(storage, relation, source, true);
    result = put_element(relation, list, target, value);
    report(storage, relation, source, false);
    return result;
}

quern_result quern__edge_element_remove(quern__storage *storage, const quern__relation *relation,
                                        uint32_t source, uint32_t target)
{
    quern_list *list = quern__edge_values_of(storage, relation, source);
    if (list->count > 0 && quern_list_write(list, relation->element.size_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    report(storage, relation, source, true);
    const quern_result result = remove_element(relation, list, target);
    report(storage, relation, source, false);
    return result;
}

static int compare_targets(const void *a, const void *b)
{
    quern_entity x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return quern_entity_index(x) < quern_entity_index(y) ? -1
                                                         : quern_entity_index(x) > quern_entity_index(y);
}

/* Returns whether an element is that of an edge. */
static bool is_of_edge(const quern__storage *storage, const quern__relation *relation, uint32_t source,
                       const char *element)
{
    quern_entity target;
    memcpy(&target, element, sizeof target);
    const uint32_t slot = quern_entity_index(target);
    return target.bits != 0 && quern__edges_has(&relation->edges, source, slot) &&
           quern_entity_equal(target, quern__entity_of_slot(storage, slot));
}

/* Returns whether the list has exactly the targets of the source. */
static bool is_settled(const quern__storage *storage, const quern__relation *relation, uint32_t source,
                       const quern_list *list)
{
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, source);
    if (list->count != targets->count) return false;
    const char *element = list->items;
    for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
        const quern__edge_range range = quern__edge_list_range(targets, i);
        for (uint32_t k = 0; k < range.count; k++, element += relation->element.size_bytes) {
            quern_entity target;
            memcpy(&target, element, sizeof target);
            if (!quern_entity_equal(target, quern__entity_of_slot(storage, range.slots[k]))) return false;
        }
    }
    return true;
}

void quern__edge_values_settle(const quern__storage *storage, const quern__relation *relation,
                               uint32_t source)
{
    const uint32_t bytes = relation->element.size_bytes;
    quern_list *list = quern__edge_values_of(storage, relation, source);
    if (list == NULL || is_settled(storage, relation, source, list)) return;
    char *items = quern_list_write(list, bytes);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count && items != NULL; i++)
        if (is_of_edge(storage, relation, source, items + (size_t)i * bytes))
            memmove(items + (size_t)kept++ * bytes, items + (size_t)i * bytes, bytes);
    if (kept > 1) qsort(items, kept, bytes, compare_targets);
    uint32_t unique = kept > 0;
    for (uint32_t i = 1; i < kept; i++)
        if (compare_targets(items + (size_t)(unique - 1) * bytes, items + (size_t)i * bytes) != 0)
            memmove(items + (size_t)unique++ * bytes, items + (size_t)i * bytes, bytes);
    bool has_room =
        list->count == 0 ||
        (items != NULL && (unique == list->count ||
                           quern_list_remove(list, bytes, unique, list->count - unique) == QUERN_OK));
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, source);
    for (uint32_t slot = quern__edge_list_next(targets, QUERN__SLOT_NONE);
         slot != QUERN__SLOT_NONE && has_room && list->count < targets->count;
         slot = quern__edge_list_next(targets, slot))
        if (find_element(list, bytes, slot) == list->count)
            has_room = put_element(relation, list, quern__entity_of_slot(storage, slot), NULL) == QUERN_OK;
    if (!has_room) quern__report_failure();
}

/* ----------------------------------------------------------------------------------- pending values */

static QUERN__SLOW_PATH quern_result fail_memory(const quern__storage *storage,
                                                 const quern__relation *relation)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the values of edges of relation '%s'",
                       quern__relation_name(storage, relation));
}

static uint64_t key_of(const quern__relation *relation, uint32_t source)
{
    return ((uint64_t)relation->index << 32 | source) + 1;
}

quern__pending_value *quern__pending_find(const quern__storage *storage, const quern__relation *relation,
                                          uint32_t source)
{
    const quern__pending_values *pending = &storage->relations->pending;
    if (QUERN__LIKELY(pending->list.count == 0)) return NULL;
    const uint64_t *found = quern__map_find(&pending->by_source, key_of(relation, source));
    return found != NULL ? &pending->list.items[*found] : NULL;
}

/* Returns the type of a pending value. */
static const quern__type *type_of(const quern__storage *storage, const quern__pending_value *pending)
{
    return quern__components_type(&storage->components, pending->relation->value_index);
}

/* Returns the pending value of a source, which begins as the value in its row. Returns NULL if out of memory. */
static quern__pending_value *pending_of(quern__storage *storage, quern__relation *relation, uint32_t source)
{
    quern__pending_value *found = quern__pending_find(storage, relation, source);
    if (found != NULL) return found;
    quern__pending_values *pending = &storage->relations->pending;
    const quern__type *type = quern__components_type(&storage->components, relation->value_index);
    if (!quern__array_reserve(&storage->allocator, &pending->list, pending->list.count + 1) ||
        !quern__map_reserve(&pending->by_source, &storage->allocator, pending->list.count + 1))
        return NULL;
    void *value = quern__allocate(&storage->allocator, type->size_bytes, type->alignment_bytes);
    if (value == NULL) return NULL;
    /* an entity that does not exist yet has no row */
    const bool is_alive = source < storage->entities.slot_count &&
                          quern__entities_record(&storage->entities, source)->location != 0;
    const void *known = is_alive ? quern__edge_values_of(storage, relation, source) : NULL;
    if (known != NULL)
        quern__type_copy(type, value, known, 1);
    else
        quern__type_construct(type, value, 1);
    quern__map_put(&pending->by_source, key_of(relation, source), pending->list.count);
    found = &pending->list.items[pending->list.count++];
    *found = (quern__pending_value){
        .relation = relation, .source = source, .value = value, .is_in_row = known != NULL};
    return found;
}

static quern_entity handle_of(const quern__entities *entities, uint32_t slot)
{
    const uint32_t high = slot < entities->slot_count ? quern__entities_record(entities, slot)->handle_high
                                                      : entities->first_handle_high;
    return (quern_entity){(uint64_t)high << 32 | slot};
}

quern_result quern__pending_put(quern__storage *storage, quern__relation *relation, uint32_t source,
                                uint32_t target, const void *value)
{
    quern__pending_value *pending = pending_of(storage, relation, source);
    if (pending == NULL) return fail_memory(storage, relation);
    const quern__type *type = type_of(storage, pending);
    if (relation->is_many)
        return put_element(relation, pending->value, handle_of(&storage->entities, target), value);
    quern__type_destroy(type, pending->value, 1);
    if (value != NULL)
        quern__type_copy(type, pending->value, value, 1);
    else
        quern__type_construct(type, pending->value, 1);
    return QUERN_OK;
}

quern_result quern__pending_remove(quern__storage *storage, quern__relation *relation, uint32_t source,
                                   uint32_t target)
{
    const quern__pending_value *pending = pending_of(storage, relation, source);
    if (pending == NULL) return fail_memory(storage, relation);
    return remove_element(relation, pending->value, target);
}

static void clear(quern__storage *storage, bool applies)
{
    quern__pending_values *pending = &storage->relations->pending;
    for (uint32_t i = 0; i < pending->list.count; i++) {
        const quern__pending_value *it = &pending->list.items[i];
        const quern__type *type = type_of(storage, it);
        if (applies && quern__edge_values_of(storage, it->relation, it->source) != NULL)
            quern__edge_value_replace(storage, it->relation, it->source, it->value, !it->is_in_row);
        quern__type_destroy(type, it->value, 1);
        quern__release(&storage->allocator, it->value, type->size_bytes, type->alignment_bytes);
    }
    pending->list.count = 0;
    quern__map_clear(&pending->by_source);
}

void quern__pending_apply(quern__storage *storage)
{
    if (QUERN__UNLIKELY(storage->relations->pending.list.count > 0)) clear(storage, true);
}

void quern__pending_cancel(quern__storage *storage)
{
    if (QUERN__UNLIKELY(storage->relations->pending.list.count > 0)) clear(storage, false);
}
