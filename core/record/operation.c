/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/operation.h"

#include "core/base/containers.h"
#include "core/relations/relation_internal.h"

#include <stddef.h>

#define KIND_ROW(name, kind_traits, read, set, play, ...) \
    [QUERN__OPERATION_##name] = {.traits = (uint8_t)(kind_traits), __VA_ARGS__},
const quern__command_kind quern__command_kinds[QUERN__OPERATION_COUNT] = {QUERN__COMMAND_KINDS(KIND_ROW)};

enum { ITEM_ALIGNMENT_BYTES = 8 };

static size_t operation_bytes(uint32_t operand_count)
{
    return sizeof(quern__operation) + operand_count * sizeof(quern__operand);
}

static quern__operation *operation_allocate(const quern_allocator *allocator, quern__operation_kind kind,
                                            uint32_t operand_count)
{
    quern__operation *operation =
        quern__allocate(allocator, operation_bytes(operand_count), _Alignof(quern__operation));
    if (operation == NULL) return NULL;
    *operation = (quern__operation){.kind = (uint8_t)kind,
                                    .operand_count = (uint16_t)operand_count,
                                    .command_count = 1,
                                    .item_bytes = sizeof(quern__item),
                                    .alignment_bytes = ITEM_ALIGNMENT_BYTES};
    return operation;
}

void quern__operation_release(quern__operation *operation, const quern_allocator *allocator)
{
    if (operation != NULL)
        quern__release(allocator, operation, operation_bytes(operation->operand_count),
                       _Alignof(quern__operation));
}

void quern__operations_release(quern__operations *operations, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < operations->singles.count; i++)
        quern__operation_release(operations->singles.items[i], allocator);
    for (uint32_t i = 0; i < operations->creates.capacity; i++) {
        quern__operation *next = NULL;
        if (operations->creates.slots[i].key == 0) continue;
        for (quern__operation *it = (void *)(uintptr_t)operations->creates.slots[i].value; it != NULL;
             it = next) {
            next = it->next_same_key;
            quern__operation_release(it, allocator);
        }
    }
    quern__array_release(allocator, &operations->singles);
    quern__map_release(&operations->creates, allocator);
    *operations = (quern__operations){0};
}

/* -------------------------------------------------------------------------------------------- layout */

/* The type of targets, for commands on the tag of a relation with several targets per source. No field is described,
 * because such commands are played, and never merged to values of rows. */
static const quern__type target_type = {.name = "target",
                                        .size_bytes = sizeof(quern_entity),
                                        .alignment_bytes = _Alignof(quern_entity),
                                        .has_entity_fields = true};

/* Whether the component belongs to a relation; tags of levels do not. */
static bool is_relation(const quern__components *components, uint32_t component_index)
{
    const quern__component *component = components->list.items[component_index];
    return component->is_managed && component->managed.relation != NULL && component->managed.level == 0;
}

/* Whether the component is the tag of a relation with several targets per source. */
static bool is_many(const quern__components *components, uint32_t component_index)
{
    return is_relation(components, component_index) &&
           components->list.items[component_index]->managed.relation->is_many;
}

/* Checks that commands may use the component if the world manages it: only relating and unrelating may.
 * relates: the command relates or unrelates if the component belongs to a relation. allows_many: also if that has
 * several targets per source. */
static quern_result check_managed(const quern__components *components, uint32_t component_index,
                                  bool relates, bool allows_many)
{
    const quern__component *component = components->list.items[component_index];
    if (!component->is_managed) return QUERN_OK;
    if (is_many(components, component_index) && !allows_many)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is the tag of a relation with several targets per source; add targets by "
                           "quern_commands_relate",
                           component->type.name);
    if (relates && is_relation(components, component_index)) return QUERN_OK;
    if (is_relation(components, component_index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is the component of a relation: its value is the target, which must be "
                           "given: use quern_commands_relate",
                           component->type.name);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "the world manages '%s' itself: commands cannot add, set or remove it",
                       component->type.name);
}

/* Sets the i-th operand. Appends its value to the item's layout if the operand has one. */
static void set_operand(quern__operation *operation, uint32_t i, const quern__components *components,
                        uint32_t component_index, bool is_given)
{
    const quern__type *type = quern__components_type(components, component_index);
    if (is_given && is_many(components, component_index)) type = &target_type;
    const uint32_t owner = components->list.items[component_index]->edge_owner;
    if (QUERN__UNLIKELY(owner != 0) && quern__command_kinds[operation->kind].gives_edge_value &&
        is_many(components, owner - 1))
        type = &components->list.items[owner - 1]->managed.relation->element;
    const uint32_t needed_flag = quern__command_kinds[operation->kind].needed_flag;
    quern__operand *operand = &operation->operands[i];
    *operand =
        (quern__operand){.type = type,
                         .component = quern__component_handle(components, component_index),
                         .component_index = (uint16_t)component_index,
                         .size_bytes = (uint16_t)type->size_bytes,
                         .is_plain = !quern__hooks_exist(&type->hooks),
                         .is_relation = is_given && is_relation(components, component_index),
                         .row_flags = type->flags & QUERN__ROW_FLAG_BITS,
                         .row_flag = (uint8_t)(needed_flag != 0 ? quern__lowest_bit_32(needed_flag) : 0)};
    if (!is_given || type->size_bytes == 0) return;
    operation->item_bytes = (uint32_t)quern__align_up(operation->item_bytes, type->alignment_bytes);
    operand->offset_bytes = (uint16_t)operation->item_bytes;
    operation->item_bytes += type->size_bytes;
    if (operation->alignment_bytes < type->alignment_bytes)
        operation->alignment_bytes = type->alignment_bytes;
    operation->has_destroy |= type->hooks.destroy != NULL;
    operation->has_entity_fields |= type->has_entity_fields;
}

static void finish_layout(quern__operation *operation)
{
    if (operation->has_destroy) {
        operation->owned_offset_bytes = (uint16_t)operation->item_bytes;
        operation->item_bytes += operation->operand_count;
    }
    operation->item_bytes = (uint32_t)quern__align_up(operation->item_bytes, operation->alignment_bytes);
    bool is_plain = true, has_relation = false;
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        is_plain &= operation->operands[i].is_plain;
        has_relation |= operation->operands[i].is_relation;
    }
    const quern__command_kind *kind = &quern__command_kinds[operation->kind];
    operation->traits = kind->traits;
    if (is_plain) operation->traits |= kind->plain_traits;
    operation->is_copied = is_plain && !operation->has_entity_fields;
    operation->join_key = operation->is_copied && operation->operand_count == 1
                              ? quern__join_key(operation->kind, operation->operands[0].component)
                              : 0;
    if (!operation->has_entity_fields) operation->traits |= QUERN__TRAIT_NO_HANDLES;
    if (!operation->has_destroy) operation->traits |= QUERN__TRAIT_NO_OWNED;
    if (kind->merge_kind == QUERN__MERGE_CREATE && has_relation)
        operation->traits &= (uint8_t)~QUERN__TRAIT_NO_RELATES;
}

bool quern__operation_has_value(const quern__operation *operation, uint32_t component_index)
{
    for (uint32_t i = 0; i < operation->operand_count; i++)
        if (operation->operands[i].component_index == component_index &&
            operation->operands[i].offset_bytes != 0)
            return true;
    return false;
}

/* The only trait that does not follow from the types and the kind stays. */
void quern__operation_change_layout(quern__operation *operation, const quern__components *components,
                                    uint32_t component_index)
{
    bool has_component = false;
    for (uint32_t i = 0; i < operation->operand_count; i++)
        has_component |= operation->operands[i].component_index == component_index;
    if (!has_component) return;
    const bool relates = QUERN__MAY(operation->traits, RELATES);
    operation->item_bytes = sizeof(quern__item);
    operation->alignment_bytes = ITEM_ALIGNMENT_BYTES;
    operation->owned_offset_bytes = 0;
    operation->has_destroy = operation->has_entity_fields = false;
    for (uint32_t i = 0; i < operation->operand_count; i++)
        set_operand(operation, i, components, operation->operands[i].component_index,
                    operation->operands[i].offset_bytes != 0);
    finish_layout(operation);
    if (relates) operation->traits &= (uint8_t)~QUERN__TRAIT_NO_RELATES;
}

bool quern__operation_equal(const quern__operation *a, const quern__operation *b)
{
    if (a == b) return true;
    if (a->key != b->key || a->kind != b->kind || a->operand_count != b->operand_count) return false;
    for (uint32_t i = 0; i < a->operand_count; i++)
        if (a->operands[i].component_index != b->operands[i].component_index ||
            a->operands[i].offset_bytes != b->operands[i].offset_bytes)
            return false;
    return true;
}

/* -------------------------------------------------------------------------------------------- singles */

/* The kind of the operation for a command of this kind on the component. Sets of tags become adds; commands on
 * the component of a relation have the kind's relation_kind. */
static quern__operation_kind kind_on(const quern__operations *operations,
                                     const quern__components *components, uint32_t component_index,
                                     quern__operation_kind kind)
{
    if (!operations->allows_managed && is_relation(components, component_index))
        return (quern__operation_kind)quern__command_kinds[kind].relation_kind;
    const bool is_tag = quern__components_type(components, component_index)->size_bytes == 0;
    return is_tag && kind == QUERN__OPERATION_SET ? QUERN__OPERATION_ADD : kind;
}

/* Finds or creates the operation without checking that the component allows it. Returns NULL if out of
 * memory. */
static const quern__operation *find_single(quern__operations *operations,
                                           const quern__components *components,
                                           const quern_allocator *allocator, uint32_t component_index,
                                           quern__operation_kind kind)
{
    uint32_t count = components->list.count * QUERN__SINGLE_KIND_COUNT;
    if (!quern__array_reserve(allocator, &operations->singles, count)) return NULL;
    while (operations->singles.count < count)
        operations->singles.items[operations->singles.count++] = NULL;
    quern__operation **space =
        &operations->singles.items[component_index * QUERN__SINGLE_KIND_COUNT + (uint32_t)kind];
    if (*space != NULL) return *space;
    const bool gives_edge_value = quern__command_kinds[kind].gives_edge_value;
    quern__operation *operation = operation_allocate(
        allocator, kind_on(operations, components, component_index, kind), gives_edge_value ? 2 : 1);
    if (operation == NULL) return NULL;
    set_operand(operation, 0, components, component_index, quern__command_kinds[kind].gives_value);
    if (gives_edge_value)
        set_operand(operation, 1, components,
                    components->list.items[component_index]->managed.relation->value_index, true);
    finish_layout(operation);
    operation->key = (uint64_t)(space - operations->singles.items + 1) << 8 | operation->kind;
    *space = operation;
    return operation;
}

quern_result quern__operations_find_single(quern__operations *operations,
                                           const quern__components *components,
                                           const quern_allocator *allocator, uint32_t component_index,
                                           quern__operation_kind kind,
                                           const quern__operation **out_operation)
{
    const quern__command_kind *row = &quern__command_kinds[kind];
    quern_result result = quern__components_check_flag(components, component_index, row->needed_flag);
    if (result == QUERN_OK && !operations->allows_managed) {
        result = check_managed(components, component_index, row->relation_kind != 0, row->allows_many);
        if (result == QUERN_OK && row->needed_flag == 0 &&
            quern__components_is_edge_value(components, component_index))
            result = quern__components_fail_edge_value(components, component_index);
    }
    if (result != QUERN_OK) return result;
    *out_operation = find_single(operations, components, allocator, component_index, kind);
    return *out_operation != NULL ? QUERN_OK
                                  : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a command");
}

/* -------------------------------------------------------------------------------------------- creates */

static bool is_given(const void *const *values, uint32_t i)
{
    return values != NULL && values[i] != NULL;
}

/* Checks that all components are known and listed once, that relations have targets, and that a row fits a
 * chunk. */
static quern_result check_list(const quern__components *components, const quern_component *list,
                               const void *const *values, uint32_t count)
{
    uint64_t seen[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)] = {0};
    size_t columns_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern_result result = quern__components_check(components, list[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "component", i);
        uint32_t index = quern__component_index(list[i]);
        const quern__type *type = quern__components_type(components, index);
        result = check_managed(components, index, is_given(values, i), false);
        if (result != QUERN_OK) return result;
        if (quern__bitset_has(seen, index))
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "'%s' is listed twice: list each component once", type->name);
        quern__bitset_add(seen, index);
        columns_bytes += quern__column_bytes(type->size_bytes, 1);
    }
    for (uint32_t i = 0; i < count && components->has_requirements; i++) {
        const uint32_t index = quern__component_index(list[i]);
        const uint32_t owner = components->list.items[index]->edge_owner;
        if (owner != 0 && !quern__bitset_has(seen, owner - 1))
            return quern__components_fail_edge_value(components, index);
    }
    size_t row_bytes = quern__layout_bytes(columns_bytes, 1);
    if (row_bytes <= QUERN__CHUNK_BYTES) return QUERN_OK;
    return quern__fail(QUERN_ERROR_COMPONENT_TOO_LARGE,
                       "an entity with these %u components needs %zu bytes of a chunk, which has %d: "
                       "use fewer or smaller components",
                       count, row_bytes, QUERN__CHUNK_BYTES);
}

/* Never 0, and never the key of an operation on one component. */
static uint64_t key_of_list(const quern_component *list, const void *const *values, uint32_t count)
{
    uint64_t key = count;
    for (uint32_t i = 0; i < count; i++)
        key = quern__hash_word(key, (uint64_t)list[i].bits << 1 | is_given(values, i));
    return key | 1ull << 63;
}

/* Whether the operation creates entities with the listed components, with values exactly where values[i] is not
 * NULL. */
static inline bool operation_has_list(const quern__operation *operation, const quern_component *list,
                                      const void *const *values, uint32_t count)
{
    if (operation->operand_count != count) return false;
    const quern__operand *operand = operation->operands;
    for (uint32_t i = 0; i < count; i++, operand++) {
        if (operand->component.bits != list[i].bits) return false;
        if ((operand->offset_bytes != 0) != is_given(values, i) && operand->size_bytes > 0) return false;
    }
    return true;
}

/* Makes the operation for the list, which is found or created, the latest result. Checks the length of the list
 * before reading it. */
static quern_result select_create(quern__operations *operations, const quern__components *components,
                                  const quern_allocator *allocator, const quern_component *list,
                                  const void *const *values, uint32_t count)
{
    if (count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(QUERN_ERROR_TOO_MANY_COMPONENTS,
                           "%u components are listed; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)", count,
                           QUERN_MAX_ENTITY_COMPONENTS);
    const uint64_t key = key_of_list(list, values, count);
    quern__operation *known = quern__map_find_pointer(&operations->creates, key);
    while (known != NULL && !operation_has_list(known, list, values, count))
        known = known->next_same_key;
    if (known != NULL) {
        operations->last_create = known;
        return QUERN_OK;
    }
    const quern_result result = check_list(components, list, values, count);
    if (result != QUERN_OK) return result;
    const bool has_room =
        quern__map_reserve(&operations->creates, allocator, operations->creates.count + 1);
    quern__operation *operation =
        has_room ? operation_allocate(allocator, QUERN__OPERATION_CREATE, count) : NULL;
    if (operation == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a create with %u components",
                           count);
    operation->command_count = 1 + count;
    for (uint32_t i = 0; i < count; i++)
        set_operand(operation, i, components, quern__component_index(list[i]), is_given(values, i));
    finish_layout(operation);
    operation->key = key;
    uint64_t *first = quern__map_find(&operations->creates, key);
    if (first != NULL) {
        operation->next_same_key = (quern__operation *)(uintptr_t)*first;
        *first = (uintptr_t)operation;
    } else {
        quern__map_put(&operations->creates, key, (uintptr_t)operation);
    }
    operations->last_create = operation;
    return QUERN_OK;
}

quern_result quern__operations_find_create(quern__operations *operations, const quern__storage *storage,
                                           const quern_component *list, const void *const *values,
                                           uint32_t count, const quern__operation **out_operation)
{
    quern_result result = QUERN_OK;
    if (operations->last_create == NULL ||
        !operation_has_list(operations->last_create, list, values, count))
        result = select_create(operations, &storage->components, &storage->allocator, list, values, count);
    if (result == QUERN_OK) *out_operation = operations->last_create;
    return result;
}

/* -------------------------------------------------------------------------------------------- spawns */

quern__operation *quern__operation_create_spawn(const quern__components *components,
                                                const quern_allocator *allocator,
                                                const uint16_t *component_indices, uint32_t count,
                                                uint32_t command_count, bool relates)
{
    quern__operation *operation = operation_allocate(allocator, QUERN__OPERATION_SPAWN, count);
    if (operation == NULL) return NULL;
    for (uint32_t i = 0; i < count; i++)
        set_operand(operation, i, components, component_indices[i], true);
    finish_layout(operation);
    operation->command_count = command_count;
    if (relates) operation->traits &= (uint8_t)~QUERN__TRAIT_NO_RELATES;
    return operation;
}

/* ------------------------------------------------------------------------------------- accumulations */

quern__operation *quern__operation_create_accumulation(const quern__components *components,
                                                       const quern_allocator *allocator,
                                                       uint32_t component_index)
{
    quern__operation *operation = operation_allocate(allocator, QUERN__OPERATION_SET, 1);
    if (operation == NULL) return NULL;
    operation->item_bytes = sizeof(quern_entity);
    set_operand(operation, 0, components, component_index, true);
    finish_layout(operation);
    return operation;
}
