/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/combine.h"

#include "core/base/handle.h"
#include "core/base/registry.h"

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
        [QUERN_FIELD_F64] = verb##_f64, [QUERN_FIELD_TEXT] = NULL                                       \
    }

enum { READY_MADE_COUNT = 3, NUMBER_TYPE_COUNT = QUERN_FIELD_TEXT + 1 };

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
    if (combiner->function != NULL) {
        for (uint32_t i = 0; i < count; i++)
            combiner->function(pairs[i].value, pairs[i].accumulated, combiner->user_data);
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

quern_result quern__combines_find(const quern__combines *combines, uint32_t world_tag,
                                  quern_combine combine, const quern__type *type,
                                  quern__combiner *out_combiner)
{
    *out_combiner = (quern__combiner){.numbers = NULL};
    if (quern__handle_is_valid(combine.bits, world_tag, combines->list.count)) {
        const quern__combine *known = &combines->list.items[quern__handle_index(combine.bits)];
        out_combiner->function = known->function;
        out_combiner->user_data = known->user_data;
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
