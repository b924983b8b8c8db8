/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/storage/conversion.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/setup.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tests of the macros of <quern/type.h> and <quern/component.h>. */

typedef enum Mood { MOOD_CALM, MOOD_ANGRY } Mood;

typedef struct Everything {
    bool yes, flags[3];
    char letter, text[7];
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    long long wide;
    unsigned long long wides[2];
    Mood mood;
    float x, matrix[16];
    double d;
    struct {
        float x, y;
    } place;
    quern_entity mother, children[4];
} Everything;

static const quern_field_type letter_type = CHAR_MIN < 0 ? QUERN_FIELD_I8 : QUERN_FIELD_U8;

static void assert_field(const quern_field *field, const char *name, quern_field_type type,
                         size_t offset_bytes, uint32_t count)
{
    cr_assert_str_eq(field->name, name);
    cr_assert_eq(field->type, type, "%s has type %d", name, (int)field->type);
    cr_assert_eq(field->offset_bytes, offset_bytes, "%s is at %u", name, field->offset_bytes);
    cr_assert_eq(field->count, count, "%s has %u elements", name, field->count);
}

#define FIELD(name, type, count) assert_field(field++, #name, type, offsetof(Everything, name), count)

Test(type, macros_describe_fields_of_every_type)
{
    static const quern_field fields[] =
        QUERN_FIELDS(Everything, yes, flags, letter, text, i8, u8, i16, u16, i32, u32, i64, u64, wide,
                     wides, mood, x, matrix, d, place.y, mother, children);
    const quern_field *field = fields;
    FIELD(yes, QUERN_FIELD_BOOL, 1);
    FIELD(flags, QUERN_FIELD_BOOL, 3);
    FIELD(letter, letter_type, 1);
    FIELD(text, letter_type, 7);
    FIELD(i8, QUERN_FIELD_I8, 1);
    FIELD(u8, QUERN_FIELD_U8, 1);
    FIELD(i16, QUERN_FIELD_I16, 1);
    FIELD(u16, QUERN_FIELD_U16, 1);
    FIELD(i32, QUERN_FIELD_I32, 1);
    FIELD(u32, QUERN_FIELD_U32, 1);
    FIELD(i64, QUERN_FIELD_I64, 1);
    FIELD(u64, QUERN_FIELD_U64, 1);
    FIELD(wide, QUERN_FIELD_I64, 1);
    FIELD(wides, QUERN_FIELD_U64, 2);
    FIELD(mood, QUERN_FIELD_U32, 1);
    FIELD(x, QUERN_FIELD_F32, 1);
    FIELD(matrix, QUERN_FIELD_F32, 16);
    FIELD(d, QUERN_FIELD_F64, 1);
    FIELD(place.y, QUERN_FIELD_F32, 1);
    FIELD(mother, QUERN_FIELD_ENTITY, 1);
    FIELD(children, QUERN_FIELD_ENTITY, 4);
    cr_assert_eq((size_t)(field - fields), QUERN__COUNT_OF(fields));
}

#define FOUR(n)    n##0, n##1, n##2, n##3
#define SIXTEEN(n) FOUR(n##0), FOUR(n##1), FOUR(n##2), FOUR(n##3)

typedef struct Many {
    uint8_t SIXTEEN(a), SIXTEEN(b), SIXTEEN(c), SIXTEEN(d);
} Many;

Test(type, macros_describe_64_fields)
{
    static const quern_field fields[] = QUERN_FIELDS(Many, SIXTEEN(a), SIXTEEN(b), SIXTEEN(c), SIXTEEN(d));
    cr_assert_eq(QUERN__COUNT_OF(fields), (size_t)QUERN_MAX_FIELDS);
    for (uint32_t i = 0; i < QUERN_MAX_FIELDS; i++)
        cr_assert_eq(fields[i].offset_bytes, i);
}

typedef struct Slot {
    uint16_t count;
    float weight;
} Slot;

typedef struct Bag {
    char title[24];
    Slot slots[3];
    Mood mood;
} Bag;

static const quern_named_value mood_values[] = {{"calm", MOOD_CALM}, {"angry", MOOD_ANGRY}, {NULL, 0}};

Test(type, macros_describe_units_ranges_and_values)
{
    static const quern_field fields[] = {
        QUERN_TEXT(Bag, title), QUERN_FIELD(Bag, slots[1].count),
        QUERN_FIELD_WITH(Bag, slots[2].weight, .unit = "kg", .maximum = 50),
        QUERN_FIELD_WITH(Bag, mood, .values = mood_values)};
    assert_field(&fields[0], "title", QUERN_FIELD_TEXT, 0, 24);
    assert_field(&fields[1], "slots[1].count", QUERN_FIELD_U16, offsetof(Bag, slots[1].count), 1);
    assert_field(&fields[2], "slots[2].weight", QUERN_FIELD_F32, offsetof(Bag, slots[2].weight), 1);
    assert_field(&fields[3], "mood", QUERN_FIELD_U32, offsetof(Bag, mood), 1);
    cr_assert_str_eq(fields[2].unit, "kg");
    cr_assert(fields[2].maximum == 50 && fields[3].values == mood_values);
}

static const quern__type *type_of(quern_world *world, quern_component component)
{
    return quern__components_type(&world->storage.components, quern__component_index(component));
}

Test(type, types_are_registered_with_their_fields)
{
    quern_world *world = setup_world();
    quern_component in_place, in_one_line;
    const quern_component_def def = {QUERN_TYPE(Everything), .fields = QUERN_FIELDS(Everything, x, mother)};
    must(quern_component_register(world, &def, &in_place));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &in_one_line, Everything, x, mother));
    cr_assert(quern_component_equal(in_place, in_one_line), "the same layout");
    const quern__type *type = type_of(world, in_place);
    cr_assert_str_eq(type->name, "Everything");
    cr_assert_str_eq(type->type_name, "Everything");
    cr_assert_eq(type->size_bytes, sizeof(Everything));
    cr_assert_eq(type->alignment_bytes, _Alignof(Everything));
    cr_assert_eq(type->field_count, 2u);
    quern_world_destroy(world);
}

/* The names of each field end where its own list ends. */
Test(type, two_fields_keep_their_own_named_values)
{
    static const quern_named_value moods[] = {{"calm", 0}, {"angry", 1}, {0}}, sides[] = {{"left", 5}, {0}};
    const quern_component_def def = {
        .name = "Pair",
        .size_bytes = 8,
        .alignment_bytes = 4,
        .fields = {{.name = "mood", .type = QUERN_FIELD_U32, .values = moods},
                   {.name = "side", .type = QUERN_FIELD_U32, .offset_bytes = 4, .values = sides}}};
    quern_world *world = setup_world();
    quern_component pair;
    must(quern_component_register(world, &def, &pair));
    const quern__type *type = type_of(world, pair);
    cr_assert_str_eq(type->fields[0].values[1].name, "angry");
    cr_assert_null(type->fields[0].values[2].name);
    cr_assert_str_eq(type->fields[1].values[0].name, "left");
    cr_assert_null(type->fields[1].values[1].name);
    quern_world_destroy(world);
}

/* The world remembers which component an address led to. */
Test(type, a_name_that_changes_in_place_leads_to_another_component)
{
    char name[8] = "First";
    quern_component first, second;
    quern_world *world = setup_world(), *other = setup_world();
    must(quern_component_register(world, &(quern_component_def){.name = "First"}, &first));
    must(quern_component_register(world, &(quern_component_def){.name = "Second"}, &second));
    for (uint32_t i = 0; i < 3; i++) {
        strcpy(name, "First");
        cr_assert_eq(quern_component_find(world, name).bits, first.bits);
        strcpy(name, "Second");
        cr_assert_eq(quern_component_find(world, name).bits, second.bits);
        strcpy(name, "Third");
        cr_assert_eq(quern_component_find(world, name).bits, 0);
        cr_assert_eq(quern_component_find(other, name).bits, 0);
    }
    quern_world_destroy(other);
    quern_world_destroy(world);
}

/* More names than the world remembers: each is found again. */
Test(type, each_of_many_names_is_found)
{
    enum { COUNT = 500 };
    static char names[COUNT][8];
    quern_component components[COUNT];
    quern_world *world = setup_world();
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "C%u", i);
        must(quern_component_register(world, &(quern_component_def){.name = names[i]}, &components[i]));
    }
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < COUNT; i++)
            cr_assert_eq(quern_component_find(world, names[i]).bits, components[i].bits);
    quern_world_destroy(world);
}

Test(type, resources_are_registered_in_one_line)
{
    quern_world *world = setup_world();
    quern_resource number, everything;
    must(QUERN_RESOURCE_REGISTER(world, &number, uint64_t));
    cr_assert_eq(*(uint64_t *)quern_resource_get(world, number), 0u);
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &everything, Everything, x));
    cr_assert_eq(quern_resource_find(world, "Everything").bits, everything.bits);
    const uint64_t hash = quern_world_hash(world);
    ((Everything *)quern_resource_get(world, everything))->x = 1;
    cr_assert_neq(quern_world_hash(world), hash, "what is described is part of the hash");
    quern_world_destroy(world);
}

Test(type, names_are_compared_without_keywords_and_namespaces)
{
    static const struct {
        const char *registered, *asked;
        bool fits;
    } cases[] = {
        {"Position", "Position", true},
        {"Position", "const Position", true},
        {"Position", "Position const", true},
        {"struct Position", "const struct Position", true},
        {"Position", "game::Position", true},
        {"game::Position", "const Position", true},
        {"a::Position", "b::Position", false},
        {"Position", "Velocity", false},
        {"Position", "OldPosition", false},
        {"std::pair<int, int>", "std::pair<int, int>", true},
        {"std::pair<int, int>", "std::pair<int, float>", false},
        {"", "Position", true},
    };
    for (uint32_t i = 0; i < QUERN__COUNT_OF(cases); i++) {
        quern__type type = {.size_bytes = 4};
        memcpy(type.type_name, cases[i].registered, strlen(cases[i].registered) + 1);
        cr_assert_eq(quern__type_has_c_name(&type, cases[i].asked), cases[i].fits, "'%s' as '%s'",
                     cases[i].registered, cases[i].asked);
    }
}

/* ---------------------------------------------------------------------------------------------- fields */

/* Tests of loading and storing elements of fields, and of conversions between number types. */

static uint64_t of_real(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static uint64_t of_float(float real)
{
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

Test(field, storing_restores_the_loaded_bytes)
{
    const unsigned char bytes[9] = {0xFF, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    for (int type = QUERN_FIELD_BOOL; type <= QUERN_FIELD_F64; type++) {
        char copy[9] = {0};
        const char *at = (const char *)bytes + 1; /* not aligned */
        const uint32_t size = quern__field_bytes((quern_field_type)type);
        quern__field_store((quern_field_type)type, copy, quern__field_load((quern_field_type)type, at));
        cr_assert_arr_eq(copy, at, size, "type %d", type);
        cr_assert_eq(copy[size], 0, "type %d", type);
    }
}

Test(field, loading_sign_extends_signed_integers)
{
    const int8_t small = -3;
    const int32_t large = INT32_MIN;
    cr_assert_eq((int64_t)quern__field_load(QUERN_FIELD_I8, (const char *)&small), -3);
    cr_assert_eq((int64_t)quern__field_load(QUERN_FIELD_I32, (const char *)&large), INT32_MIN);
    cr_assert_eq(quern__field_load(QUERN_FIELD_U8, (const char *)&small), 253);
    cr_assert_eq(quern__field_real(QUERN_FIELD_I32, (uint64_t)(int64_t)large), (double)INT32_MIN);
    cr_assert_eq(quern__field_real(QUERN_FIELD_U64, UINT64_MAX), 0x1p64);
}

typedef struct conversion_case {
    quern_field_type from, to;
    uint64_t bits;
    bool fits;
    uint64_t expected;
} conversion_case;

Test(field, conversion_fails_only_for_numbers_out_of_range)
{
    const conversion_case cases[] = {
        {QUERN_FIELD_I64, QUERN_FIELD_I8, (uint64_t)-128, true, (uint64_t)-128},
        {QUERN_FIELD_I64, QUERN_FIELD_I8, (uint64_t)-129, false, 0},
        {QUERN_FIELD_I64, QUERN_FIELD_U64, (uint64_t)-1, false, 0},
        {QUERN_FIELD_U64, QUERN_FIELD_I64, UINT64_MAX, false, 0},
        {QUERN_FIELD_U64, QUERN_FIELD_I64, INT64_MAX, true, INT64_MAX},
        {QUERN_FIELD_U32, QUERN_FIELD_U8, 255, true, 255},
        {QUERN_FIELD_U32, QUERN_FIELD_U8, 256, false, 0},
        {QUERN_FIELD_BOOL, QUERN_FIELD_U8, 0x40, true, 1},
        {QUERN_FIELD_I16, QUERN_FIELD_BOOL, (uint64_t)-7, true, 1},
        {QUERN_FIELD_F64, QUERN_FIELD_BOOL, of_real(-0.0), true, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_BOOL, of_real(0.25), true, 1},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(-0.9), true, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(-1), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U8, of_real(255.9), true, 255},
        {QUERN_FIELD_F64, QUERN_FIELD_I64, of_real(-0x1p63), true, (uint64_t)INT64_MIN},
        {QUERN_FIELD_F64, QUERN_FIELD_I64, of_real(0x1p63), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_U64, of_real(0x1p63), true, UINT64_C(1) << 63},
        {QUERN_FIELD_F64, QUERN_FIELD_U64, of_real(0x1p64), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_I32, of_real(-2.75), true, (uint64_t)-2},
        {QUERN_FIELD_F64, QUERN_FIELD_I32, of_real(NAN), false, 0},
        {QUERN_FIELD_F32, QUERN_FIELD_U64, of_float(INFINITY), false, 0},
        {QUERN_FIELD_F32, QUERN_FIELD_F64, of_float(0.5f), true, of_real(0.5)},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(FLT_MAX), true, of_float(FLT_MAX)},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(0x1.fffffefffffffp127), true, of_float(FLT_MAX)},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(0x1.ffffffp127), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(1e39), false, 0},
        {QUERN_FIELD_F64, QUERN_FIELD_F32, of_real(-INFINITY), true, of_float(-INFINITY)},
        {QUERN_FIELD_I64, QUERN_FIELD_F64, (uint64_t)-5, true, of_real(-5)},
        {QUERN_FIELD_I64, QUERN_FIELD_F32, (uint64_t)-5, true, of_float(-5)},
        {QUERN_FIELD_BOOL, QUERN_FIELD_F32, 0x40, true, of_float(1)},
        /* direct rounding goes up; rounding by a double first would hit the middle and go down to even */
        {QUERN_FIELD_I64, QUERN_FIELD_F32, UINT64_C(0x1000001000000001), true, of_float(0x1.000002p60f)},
        {QUERN_FIELD_U64, QUERN_FIELD_F32, UINT64_C(0x8000008000000001), true, of_float(0x1.000002p63f)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const conversion_case *it = &cases[i];
        uint64_t bits = 77;
        cr_assert_eq(quern__field_convert(it->from, it->bits, it->to, &bits), it->fits, "case %zu", i);
        if (it->fits) cr_assert_eq(bits, it->expected, "case %zu", i);
    }
}

Test(field, types_beyond_the_last_have_no_size)
{
    cr_assert_eq(quern__field_bytes(QUERN_FIELD_TEXT), 1u);
    cr_assert_eq(quern__field_bytes((quern_field_type)(QUERN_FIELD_LIST + 1)), 0u);
    cr_assert_eq(quern__field_bytes((quern_field_type)0), 0u);
}

/* ------------------------------------------------------------------------------------------ conversion */

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

#define FIELD_OF(of, member, kind)                                                                    \
    {                                                                                                 \
        .name = #member, .type = QUERN_FIELD_##kind, .offset_bytes = offsetof(of, member), .count = 1 \
    }

static quern_field fields[] = {FIELD_OF(item, number, U32), FIELD_OF(item, owner, ENTITY),
                               FIELD_OF(item, stranger, ENTITY)};
static quern_field moved_fields[] = {FIELD_OF(moved_item, owner, ENTITY), FIELD_OF(moved_item, number, U32),
                                     FIELD_OF(moved_item, stranger, ENTITY)};

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
