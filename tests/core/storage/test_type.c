/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/support/setup.h"

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
