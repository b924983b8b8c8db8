/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/accumulator.h"

#include "core/record/item_write.h"

static const char function[] = "quern_commands_accumulate";

/* Placeholders: no batch has this operation, and no component has this accumulation. */
static const quern__operation no_operation = {.item_bytes = sizeof(quern__accumulated)};
static const quern__accumulation no_accumulation = {.quick_operation = &no_operation};

/* ---------------------------------------------------------------------------------------- life cycle */

void quern__accumulator_release(quern_commands *commands)
{
    quern__accumulator *accumulator = commands->accumulator;
    if (accumulator == NULL) return;
    const quern_allocator *allocator = &commands->storage->allocator;
    quern__commands_release(&accumulator->recorder);
    for (uint32_t i = 0; i < accumulator->list.count; i++) {
        quern__operation_release(accumulator->list.items[i]->operation, allocator);
        quern__release(allocator, accumulator->list.items[i], sizeof(quern__accumulation),
                       _Alignof(quern__accumulation));
    }
    quern__array_release(allocator, &accumulator->list);
    quern__release(allocator, accumulator, sizeof *accumulator, _Alignof(quern__accumulator));
    commands->accumulator = NULL;
}

static quern_result create_accumulator(quern_commands *commands)
{
    quern__accumulator *made =
        quern__allocate(&commands->storage->allocator, sizeof *made, _Alignof(quern__accumulator));
    if (made == NULL) return quern__commands_fail_memory(commands);
    *made = (quern__accumulator){.last = &no_accumulation};
    quern__commands_init(&made->recorder, commands->storage);
    commands->accumulator = made;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- accumulations */

static quern_result check_component(const quern__components *components, quern_component component)
{
    const quern_result result = quern__components_check(components, component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(component);
    const quern__type *type = quern__components_type(components, index);
    if (type->size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a tag and has no value to combine: accumulate a component with values",
                           type->name);
    if (quern__components_is_managed(components, index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the world manages '%s' itself: relate and unrelate entities instead",
                           type->name);
    return QUERN_OK;
}

static bool is_quick(const quern__operation *operation)
{
    const quern__operand *operand = &operation->operands[0];
    return operation->is_copied && operand->size_bytes <= 16 && operand->size_bytes % 4 == 0;
}

static quern_result init_accumulation(const quern__storage *storage, quern_component component,
                                      quern_combine combine, quern__accumulation *out_accumulation)
{
    const quern__components *components = &storage->components;
    const quern_result result = check_component(components, component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(component);
    *out_accumulation = (quern__accumulation){.type = quern__components_type(components, index),
                                              .component = component,
                                              .combine = combine,
                                              .world_tag = components->first_bits >> 24,
                                              .component_index = (uint16_t)index};
    return quern__combines_find(storage->combines, out_accumulation->world_tag, combine,
                                out_accumulation->type, &out_accumulation->combiner);
}

/* Creates a copy of `from` with its operation. Returns NULL if out of memory. */
static quern__accumulation *create_accumulation(const quern__storage *storage,
                                                const quern__accumulation *from)
{
    const quern_allocator *allocator = &storage->allocator;
    quern__accumulation *made = quern__allocate(allocator, sizeof *made, _Alignof(quern__accumulation));
    if (made == NULL) return NULL;
    *made = *from;
    made->operation =
        quern__operation_create_accumulation(&storage->components, allocator, from->component_index);
    if (made->operation == NULL) {
        quern__release(allocator, made, sizeof *made, _Alignof(quern__accumulation));
        return NULL;
    }
    made->operation->accumulation = made;
    made->item_bytes = made->operation->item_bytes;
    made->offset_bytes = made->operation->operands[0].offset_bytes;
    made->size_bytes = made->operation->operands[0].size_bytes;
    made->quick_operation = is_quick(made->operation) ? made->operation : &no_operation;
    return made;
}

static quern_result add_accumulation(quern_commands *commands, quern_component component,
                                     quern_combine combine)
{
    quern__accumulator *accumulator = commands->accumulator;
    quern__accumulation fresh;
    const quern_result result = init_accumulation(commands->storage, component, combine, &fresh);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(&commands->storage->allocator, &accumulator->list,
                              accumulator->list.count + 1))
        return quern__commands_fail_memory(commands);
    quern__accumulation *made = create_accumulation(commands->storage, &fresh);
    if (made == NULL) return quern__commands_fail_memory(commands);
    accumulator->list.items[accumulator->list.count++] = made;
    accumulator->last = made;
    return QUERN_OK;
}

static inline bool matches(const quern__accumulation *accumulation, quern_component component,
                           quern_combine combine)
{
    return accumulation->component.bits == component.bits && accumulation->combine.bits == combine.bits;
}

/* Finds or adds the accumulation and makes it the latest result. */
static quern_result find_accumulation(quern_commands *commands, quern_component component,
                                      quern_combine combine)
{
    quern__accumulator *accumulator = commands->accumulator;
    for (uint32_t i = 0; i < accumulator->list.count; i++)
        if (matches(accumulator->list.items[i], component, combine)) {
            accumulator->last = accumulator->list.items[i];
            return QUERN_OK;
        }
    return add_accumulation(commands, component, combine);
}

/* ---------------------------------------------------------------------------------------- recording */

static inline void append_value(quern_commands *recorder, const quern__accumulation *accumulation,
                                char *space, quern_entity entity, const void *value)
{
    quern__item_append(recorder, accumulation->operation, space)->entity = entity;
    quern__item_write_value(accumulation->operation, space, 0, value);
}

/* Whether the handle belongs to this world; the entity may be dead. Liveness is not checked here, since reading
 * the entity's record would often miss the cache. */
static inline bool has_world_tag(const quern_commands *commands, quern_entity entity)
{
    return quern_entity_world_tag(entity) == commands->storage->components.first_bits >> 24;
}

/* Reserves space for one item. A new stream of accumulated values gets the origin of the running callback. */
static quern_result get_space(quern_commands *commands, char **out_space)
{
    quern_commands *recorder = &commands->accumulator->recorder;
    const quern__operation *operation = commands->accumulator->last->operation;
    recorder->callback_thread = commands->callback_thread;
    recorder->origin = commands->origin;
    const quern_result result = quern__item_space_get(recorder, operation, function, out_space);
    recorder->failed = QUERN_OK;
    if (result == QUERN_ERROR_OUT_OF_MEMORY) commands->failed = result;
    return result;
}

static QUERN__SLOW_PATH quern_result accumulate_checked(quern_commands *commands, quern_entity entity,
                                                        quern_component component, const void *value,
                                                        quern_combine combine)
{
    if (commands == NULL) return quern__fail_null(function, "commands");
    if (value == NULL) return quern__commands_fail(commands, quern__fail_null(function, "value"), function);
    char *space = NULL;
    quern_result result = quern__commands_can_record(commands) && commands->callback_thread != NULL
                              ? QUERN_OK
                              : quern__commands_fail_foreign_use(commands, function);
    if (result == QUERN_OK && !has_world_tag(commands, entity))
        result = quern__commands_check_entity(commands, entity, function);
    if (result == QUERN_OK && commands->accumulator == NULL) result = create_accumulator(commands);
    if (result == QUERN_OK) result = find_accumulation(commands, component, combine);
    if (result == QUERN_OK) {
        const quern__operand *operand = &commands->accumulator->last->operation->operands[0];
        result = quern__commands_check_value(commands, operand, entity, value, function);
    }
    if (result == QUERN_OK) result = get_space(commands, &space);
    if (result != QUERN_OK) return quern__commands_fail(commands, result, function);
    quern_commands *recorder = &commands->accumulator->recorder;
    append_value(recorder, commands->accumulator->last, space, entity, value);
    recorder->open->create_count += quern_entity_is_provisional(entity);
    return QUERN_OK;
}

/* Path for values that the first check does not cover: those that begin a batch, are large, or need hooks. */
static QUERN__NO_INLINE quern_result accumulate_known(quern_commands *commands, quern_entity entity,
                                                      quern_component component, const void *value,
                                                      quern_combine combine)
{
    if (QUERN__UNLIKELY(commands == NULL || value == NULL || commands->accumulator == NULL ||
                        !quern__commands_can_record(commands)))
        return accumulate_checked(commands, entity, component, value, combine);
    quern__accumulator *accumulator = commands->accumulator;
    const quern__accumulation *last = accumulator->last;
    if (last->operation == NULL || !matches(last, component, combine) ||
        last->operation->has_entity_fields || !has_world_tag(commands, entity))
        return accumulate_checked(commands, entity, component, value, combine);
    char *space = quern__item_space_find(&accumulator->recorder, last->operation);
    if (space == NULL) return accumulate_checked(commands, entity, component, value, combine);
    append_value(&accumulator->recorder, last, space, entity, value);
    return QUERN_OK;
}

/* Fast path: a small value that joins the open batch. It calls other functions only as its last action, so
 * the compiler saves no registers. */
quern_result quern_commands_accumulate(quern_commands *commands, quern_entity entity,
                                       quern_component component, const void *value, quern_combine combine)
{
    if (QUERN__UNLIKELY(commands == NULL || value == NULL || commands->accumulator == NULL))
        return accumulate_known(commands, entity, component, value, combine);
    quern__accumulator *accumulator = commands->accumulator;
    const quern__accumulation *last = accumulator->last;
    quern_commands *recorder = &accumulator->recorder;
    char *space = recorder->next;
    const uintptr_t next = (uintptr_t)space + last->item_bytes;
    if (QUERN__UNLIKELY(!matches(last, component, combine) ||
                        recorder->operation != last->quick_operation || next > (uintptr_t)recorder->end ||
                        quern_entity_world_tag(entity) != last->world_tag ||
                        !quern__commands_can_record(commands)))
        return accumulate_known(commands, entity, component, value, combine);
    recorder->next = (char *)next;
    recorder->batch->item_count++;
    ((quern__accumulated *)(void *)space)->entity = entity;
    quern__copy_few_words(space + last->offset_bytes, value, last->size_bytes);
    return QUERN_OK;
}
