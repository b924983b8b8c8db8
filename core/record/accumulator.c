/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording of accumulated values: how numbers are combined, the registry of combine functions, and the
 * accumulations of a recorder, each with an operation of its own. */
#include "core/record/accumulator.h"

#include "core/base/containers.h"
#include "core/base/handle.h"
#include "core/record/record.h"
#include "core/storage/list_values.h"
#include "core/world/world_internal.h"

/* ------------------------------------------------------------------------------------------ numbers */

/* NOLINTBEGIN(bugprone-macro-parentheses): types */

/* Combines a constant number of numbers in each pair. Accumulated values do not overlap the values that they
 * are combined with, so all numbers may be read before any is written. */
#define COMBINE_FEW(type, count, combined)                                                 \
    for (const quern__pair *at = pairs; at < pairs + pair_count; at++) {                   \
        type *values = (type *)(void *)(at->value + offset_bytes);                         \
        const type *others = (const type *)(const void *)(at->accumulated + offset_bytes); \
        type results[count];                                                               \
        for (uint32_t i = 0; i < (count); i++) {                                           \
            const type mine = values[i], other = others[i];                                \
            results[i] = combined;                                                         \
        }                                                                                  \
        memcpy(values, results, sizeof results);                                           \
    }

/* Combines four numbers at a time, then the remaining ones. */
#define COMBINER(name, type, combined)                                                     \
    static void name(const quern__pair *pairs, uint32_t pair_count, uint32_t offset_bytes, \
                     uint32_t number_count)                                                \
    {                                                                                      \
        for (; number_count >= 4; number_count -= 4, offset_bytes += 4 * sizeof(type))     \
            COMBINE_FEW(type, 4, combined)                                                 \
        if (number_count == 3) COMBINE_FEW(type, 3, combined)                              \
        if (number_count == 2) COMBINE_FEW(type, 2, combined)                              \
        if (number_count == 1) COMBINE_FEW(type, 1, combined)                              \
    }

/* Integers are added as uint64_t, so overflow wraps around. NaN is neither less nor greater than any number. */
#define COMBINERS(suffix, type, sum_type)                                  \
    COMBINER(sum_##suffix, type, (type)((sum_type)mine + (sum_type)other)) \
    COMBINER(min_##suffix, type, other < mine ? other : mine)              \
    COMBINER(max_##suffix, type, other > mine ? other : mine)

/* NOLINTEND(bugprone-macro-parentheses) */

COMBINERS(i8, int8_t, uint64_t)
COMBINERS(u8, uint8_t, uint64_t)
COMBINERS(i16, int16_t, uint64_t)
COMBINERS(u16, uint16_t, uint64_t)
COMBINERS(i32, int32_t, uint64_t)
COMBINERS(u32, uint32_t, uint64_t)
COMBINERS(i64, int64_t, uint64_t)
COMBINERS(u64, uint64_t, uint64_t)
COMBINERS(f32, float, float)
COMBINERS(f64, double, double)

#define BY_NUMBER(verb)                                                                                 \
    {                                                                                                   \
        [QUERN_FIELD_I8] = verb##_i8, [QUERN_FIELD_U8] = verb##_u8, [QUERN_FIELD_I16] = verb##_i16,     \
        [QUERN_FIELD_U16] = verb##_u16, [QUERN_FIELD_I32] = verb##_i32, [QUERN_FIELD_U32] = verb##_u32, \
        [QUERN_FIELD_I64] = verb##_i64, [QUERN_FIELD_U64] = verb##_u64, [QUERN_FIELD_F32] = verb##_f32, \
        [QUERN_FIELD_F64] = verb##_f64, [QUERN_FIELD_LIST] = NULL                                       \
    }

enum { READY_MADE_COUNT = 3, NUMBER_TYPE_COUNT = QUERN_FIELD_LIST + 1 };

static quern__number_combiner *const ready_made[READY_MADE_COUNT][NUMBER_TYPE_COUNT] = {
    BY_NUMBER(sum), BY_NUMBER(min), BY_NUMBER(max)};

static const uint8_t number_bytes[NUMBER_TYPE_COUNT] = {
    [QUERN_FIELD_I8] = 1,  [QUERN_FIELD_U8] = 1,  [QUERN_FIELD_I16] = 2, [QUERN_FIELD_U16] = 2,
    [QUERN_FIELD_I32] = 4, [QUERN_FIELD_U32] = 4, [QUERN_FIELD_I64] = 8, [QUERN_FIELD_U64] = 8,
    [QUERN_FIELD_F32] = 4, [QUERN_FIELD_F64] = 8};

void quern__combine_pairs(const quern__combiner *combiner, const quern__type *type,
                          const quern__pair *pairs, uint32_t count)
{
    if (QUERN__LIKELY(combiner->numbers != NULL)) {
        combiner->numbers(pairs, count, 0, combiner->number_count);
        return;
    }
    if (combiner->registered != NULL) {
        const quern__combine *combine = &combiner->registered->list.items[combiner->registered_number];
        for (uint32_t i = 0; i < count; i++)
            combine->function(pairs[i].value, pairs[i].accumulated, combine->user_data);
        return;
    }
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        combiner->by_number[field->type](pairs, count, field->offset_bytes, field->count);
    }
}

/* Whether all fields have the same type. Every byte belongs to a field, so the value is an array of that type. */
static bool is_uniform(const quern__type *type)
{
    for (uint32_t i = 1; i < type->field_count; i++)
        if (type->fields[i].type != type->fields[0].type) return false;
    return true;
}

/* Checks that every byte of the value belongs to a described number. */
static quern_result check_numbers(const quern__type *type)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        if (number_bytes[type->fields[i].type] == 0)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "field '%s' of '%s' is not a number, but QUERN_SUM, QUERN_MIN and QUERN_MAX combine "
                "only numbers: register a function of your own (quern_combine_register)",
                type->fields[i].name, type->name);
    for (uint32_t at = 0; at < type->size_bytes; at++)
        if (!quern__type_has_field_in(type, at, 1))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "byte %u of '%s' belongs to no described field: QUERN_SUM, QUERN_MIN and "
                "QUERN_MAX need all of them described as numbers; describe them, or register "
                "a function of your own (quern_combine_register)",
                at, type->name);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- registry */

static const quern__registry registry =
    QUERN__REGISTRY_OF_ITEMS("combine", "world", QUERN_MAX_COMBINES, QUERN_OK, quern__combine, name);

quern_result quern__combines_register(quern__combines *combines, const quern_allocator *allocator,
                                      uint32_t world_tag, const quern_combine_def *def,
                                      quern_combine *out_combine)
{
    quern_result result =
        quern__registry_check_new(&registry, combines->list.items, combines->list.count, def->name);
    if (result == QUERN_OK && def->function == NULL)
        result =
            quern__fail(QUERN_ERROR_NULL_ARGUMENT, "combine '%s' has no function: set function", def->name);
    if (result == QUERN_OK)
        result = quern__registry_reserve(&registry, allocator, &combines->list, def->name);
    if (result != QUERN_OK) return result;
    quern__combine *fresh = &combines->list.items[combines->list.count];
    *fresh = (quern__combine){.function = def->function, .user_data = def->user_data};
    memcpy(fresh->name, def->name, strlen(def->name) + 1);
    out_combine->bits = quern__handle_bits(world_tag, combines->list.count++);
    return QUERN_OK;
}

quern_result quern_combine_register(quern_world *world, const quern_combine_def *def,
                                    quern_combine *out_combine)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_combine);
    quern_result result = quern__combines_register(world->storage.combines, &world->storage.allocator,
                                                   world->resources.world_tag, def, out_combine);
    return quern__in_call(result, __func__);
}

quern_result quern_combine_redefine(quern_world *world, const quern_combine_def *def,
                                    quern_combine *out_combine)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_combine);
    const quern__combines *combines = world->storage.combines;
    quern_result result = quern__redefine_check_frames(world, __func__);
    if (result != QUERN_OK) return result;
    result = quern__check_name(def->name, registry.what);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const uint32_t number =
        quern__registry_find(&registry, combines->list.items, 0, combines->list.count, def->name);
    if (number == combines->list.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the world has no combine '%s': register it (quern_combine_register)",
                           __func__, def->name);
    if (def->function == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "%s: combine '%s' has no function: set function",
                           __func__, def->name);
    combines->list.items[number].function = def->function;
    combines->list.items[number].user_data = def->user_data;
    out_combine->bits = quern__handle_bits(world->resources.world_tag, number);
    return QUERN_OK;
}

/* Finds how `combine` combines values of the type. Errors: INVALID_ARGUMENT if the handle is invalid, or if the
 * type is not suitable for a built-in function. */
static quern_result find_combiner(const quern__combines *combines, uint32_t world_tag,
                                  quern_combine combine, const quern__type *type,
                                  quern__combiner *out_combiner)
{
    *out_combiner = (quern__combiner){.numbers = NULL};
    if (quern__handle_is_valid(combine.bits, world_tag, combines->list.count)) {
        out_combiner->registered = combines;
        out_combiner->registered_number = quern__handle_index(combine.bits);
        return QUERN_OK;
    }
    if (combine.bits - 1 >= READY_MADE_COUNT)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "combine handle %#x is not of this world: use QUERN_SUM, QUERN_MIN, QUERN_MAX, "
                           "or a handle from quern_combine_register",
                           combine.bits);
    const quern_result result = check_numbers(type);
    if (result != QUERN_OK) return result;
    quern__number_combiner *const *by_number = ready_made[combine.bits - 1];
    out_combiner->by_number = by_number;
    if (!is_uniform(type)) return QUERN_OK;
    out_combiner->numbers = by_number[type->fields[0].type];
    out_combiner->number_count = type->size_bytes / number_bytes[type->fields[0].type];
    return QUERN_OK;
}

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

void quern__accumulator_forget_last(quern__accumulator *accumulator)
{
    accumulator->last = &no_accumulation;
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
    const uint32_t size_bytes = made->size_bytes;
    const bool is_quick = made->operation->is_copied && size_bytes <= 16 && size_bytes % 4 == 0;
    made->quick_operation = is_quick ? made->operation : &no_operation;
    return made;
}

static quern_result add_accumulation(quern_commands *commands, quern_component component,
                                     quern_combine combine)
{
    quern__accumulator *accumulator = commands->accumulator;
    const quern__storage *storage = commands->storage;
    const quern__components *components = &storage->components;
    quern_result result = check_component(components, component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(component);
    quern__accumulation fresh = {.type = quern__components_type(components, index),
                                 .component = component,
                                 .combine = combine,
                                 .world_tag = components->first_bits >> 24,
                                 .component_index = (uint16_t)index};
    result = find_combiner(storage->combines, fresh.world_tag, combine, fresh.type, &fresh.combiner);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(&storage->allocator, &accumulator->list, accumulator->list.count + 1))
        return quern__commands_fail_memory(commands);
    quern__accumulation *made = create_accumulation(storage, &fresh);
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
    const quern__operation *operation = commands->accumulator->last->operation;
    const quern__operand *operand = &operation->operands[0];
    quern__item_write_value(operation, space, 0, value);
    if (QUERN__UNLIKELY(!quern__type_own_provisional(operand->type, space + operand->offset_bytes))) {
        quern__type_destroy(operand->type, space + operand->offset_bytes, 1);
        return quern__commands_fail(commands, quern__commands_fail_memory(commands), function);
    }
    quern__item_append(recorder, operation, space)->entity = entity;
    recorder->open->create_count += quern_entity_is_provisional(entity);
    return QUERN_OK;
}

/* Path for values that the first check does not cover: those that begin a batch, are large, or need hooks. */
static QUERN__NO_INLINE quern_result accumulate_like_last(quern_commands *commands, quern_entity entity,
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
    quern__item_append(&accumulator->recorder, last->operation, space)->entity = entity;
    quern__item_write_value(last->operation, space, 0, value);
    return QUERN_OK;
}

/* Fast path: a small value that joins the open batch. It calls other functions only as its last action, so
 * the compiler saves no registers. */
quern_result quern_commands_accumulate(quern_commands *commands, quern_entity entity,
                                       quern_component component, const void *value, quern_combine combine)
{
    if (QUERN__UNLIKELY(commands == NULL || value == NULL || commands->accumulator == NULL))
        return accumulate_like_last(commands, entity, component, value, combine);
    quern__accumulator *accumulator = commands->accumulator;
    const quern__accumulation *last = accumulator->last;
    quern_commands *recorder = &accumulator->recorder;
    char *space = recorder->next;
    const uintptr_t next = (uintptr_t)space + last->item_bytes;
    if (QUERN__UNLIKELY(!matches(last, component, combine) ||
                        recorder->operation != last->quick_operation || next > (uintptr_t)recorder->end ||
                        quern_entity_world_tag(entity) != last->world_tag ||
                        !quern__commands_can_record(commands)))
        return accumulate_like_last(commands, entity, component, value, combine);
    recorder->next = (char *)next;
    recorder->batch->item_count++;
    ((quern__accumulated *)(void *)space)->entity = entity;
    quern__copy_few_words(space + last->offset_bytes, value, last->size_bytes);
    return QUERN_OK;
}
