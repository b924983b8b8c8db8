/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/conversion.h"

#include <criterion/criterion.h>

#include <string.h>

/* Tests that values are read and changed in their described fields only, and that no field or value after the last one
 * is. Each list of fields is followed by one field, and each array of values by one value, that is not part of it. */

typedef struct item {
    quern_entity owner;
    uint32_t number, other;
    quern_entity stranger;
} item;

/* The same with its members in another order. */
typedef struct moved_item {
    uint32_t number, other;
    quern_entity owner, stranger;
} moved_item;

enum { COUNT = 3, FIELD_COUNT = 2 };

#define FIELD(of, member, kind)                                                                       \
    {                                                                                                 \
        .name = #member, .type = QUERN_FIELD_##kind, .offset_bytes = offsetof(of, member), .count = 1 \
    }

static quern_field fields[] = {FIELD(item, number, U32), FIELD(item, owner, ENTITY),
                               FIELD(item, stranger, ENTITY)};
static quern_field moved_fields[] = {FIELD(moved_item, owner, ENTITY), FIELD(moved_item, number, U32),
                                     FIELD(moved_item, stranger, ENTITY)};

static const quern__type type = {.name = "item",
                                 .size_bytes = sizeof(item),
                                 .alignment_bytes = 8,
                                 .fields = fields,
                                 .field_count = FIELD_COUNT,
                                 .has_entity_fields = true};
static const quern__type moved_type = {.name = "item",
                                       .size_bytes = sizeof(moved_item),
                                       .alignment_bytes = 8,
                                       .fields = moved_fields,
                                       .field_count = FIELD_COUNT,
                                       .has_entity_fields = true};

static const quern__conversion_words words = {"before", "now", "old"};

static quern_entity entity(uint64_t bits)
{
    return (quern_entity){.bits = bits};
}

static item item_of(uint32_t number)
{
    return (item){entity(number + 100), number, 7, entity(5)};
}

Test(conversion, values_with_equal_fields_are_the_same)
{
    const item value = item_of(1);
    item same = value, other = value;
    same.other++;
    same.stranger = entity(6);
    cr_assert(quern__type_same_value(&type, &value, &same));
    other.number++;
    cr_assert_not(quern__type_same_value(&type, &value, &other));
    other = value;
    other.owner.bits++;
    cr_assert_not(quern__type_same_value(&type, &value, &other));
    quern__type undescribed = type;
    undescribed.field_count = 0;
    other = value;
    cr_assert(quern__type_same_value(&undescribed, &value, &other));
    cr_assert_not(quern__type_same_value(&undescribed, &value, &same));
}

Test(conversion, bytes_overlap_a_field_if_they_share_one)
{
    static const struct {
        uint32_t offset_bytes, size_bytes;
        bool has_field;
    } ranges[] = {{0, 1, true},   {7, 1, true},   {11, 1, true},  {11, 9, true},  {4, 4, true},
                  {12, 4, false}, {12, 8, false}, {16, 8, false}, {23, 1, false}, {0, 24, true}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        cr_expect_eq(quern__type_has_field_in(&type, ranges[i].offset_bytes, ranges[i].size_bytes),
                     ranges[i].has_field, "%u bytes at %u", ranges[i].size_bytes, ranges[i].offset_bytes);
    quern__type late = type;
    late.field_count = 1; /* only the number */
    cr_expect(quern__type_has_field_in(&late, 8, 1));
    cr_expect_not(quern__type_has_field_in(&late, 0, 8), "ends where the field begins");
    cr_expect_not(quern__type_has_field_in(&late, 12, 4), "begins where the field ends");
}

static quern_entity next(void *argument, quern_entity old)
{
    ++*(uint32_t *)argument;
    return entity(old.bits + 1000);
}

Test(conversion, handles_of_converted_values_are_remapped_once)
{
    quern__conversion conversion;
    item sources[COUNT];
    moved_item targets[COUNT + 1];
    uint32_t call_count = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        sources[i] = item_of(i);
    memset(targets, 0, sizeof targets);
    targets[COUNT].owner = entity(9);
    cr_assert_eq(quern__conversion_init(&conversion, &type, &moved_type, &words, NULL), QUERN_OK);
    quern__convert(&conversion, (char *)targets, (const char *)sources, COUNT);
    quern__conversion_remap(&conversion, (char *)targets, COUNT, next, &call_count);
    cr_assert_eq(call_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(targets[i].owner.bits, 1100 + i);
        cr_assert_eq(targets[i].number, i);
        cr_assert_eq(targets[i].stranger.bits, 0u);
    }
    cr_assert_eq(targets[COUNT].owner.bits, 9u);
}

/* A target without described fields has the handles of its source. */
static void check_copied(const quern__type *target_type)
{
    quern__conversion conversion;
    item sources[COUNT], targets[COUNT + 1] = {{.number = 0}};
    uint32_t call_count = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        sources[i] = item_of(i);
    targets[COUNT].owner = entity(9);
    cr_assert_eq(quern__conversion_init(&conversion, &type, target_type, &words, NULL), QUERN_OK);
    quern__convert(&conversion, (char *)targets, (const char *)sources, COUNT);
    quern__conversion_remap(&conversion, (char *)targets, COUNT, next, &call_count);
    cr_assert_eq(call_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(targets[i].owner.bits, 1100 + i);
        cr_assert_eq(targets[i].stranger.bits, 5u);
    }
    cr_assert_eq(targets[COUNT].owner.bits, 9u);
}

Test(conversion, handles_of_copied_values_are_remapped_once)
{
    const quern__type undescribed = {.name = "item", .size_bytes = sizeof(item), .alignment_bytes = 8};
    check_copied(&type);
    check_copied(&undescribed);
}

Test(conversion, all_kinds_of_numbers_convert_to_each_other)
{
    for (int from = QUERN_FIELD_BOOL; from <= QUERN_FIELD_TEXT; from++)
        for (int to = QUERN_FIELD_BOOL; to <= QUERN_FIELD_TEXT; to++) {
            quern__conversion conversion;
            quern_field source = {.name = "x", .type = (quern_field_type)from, .count = 1}, target = source;
            target.type = (quern_field_type)to;
            const quern__type before = {.name = "x", .size_bytes = 8, .fields = &source, .field_count = 1},
                              now = {.name = "x", .size_bytes = 8, .fields = &target, .field_count = 1};
            const bool converts = from == to || (from <= QUERN_FIELD_F64 && to <= QUERN_FIELD_F64);
            cr_expect_eq(quern__conversion_init(&conversion, &before, &now, &words, NULL),
                         converts ? QUERN_OK : QUERN_ERROR_LAYOUT_MISMATCH, "%d to %d", from, to);
        }
}

Test(conversion, values_without_handles_are_not_remapped)
{
    quern__conversion conversion;
    quern__type numbers = type, moved_numbers = moved_type;
    uint32_t call_count = 0;
    numbers.field_count = 1;
    moved_numbers.fields = &moved_fields[1];
    moved_numbers.field_count = 1;
    numbers.has_entity_fields = moved_numbers.has_entity_fields = false;
    moved_item targets[1] = {{.number = 1}};
    cr_assert_eq(quern__conversion_init(&conversion, &numbers, &moved_numbers, &words, NULL), QUERN_OK);
    quern__conversion_remap(&conversion, (char *)targets, 1, next, &call_count);
    cr_assert_eq(call_count, 0u);
}
