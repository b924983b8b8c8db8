/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/base/base_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

/* Conversion of values to text and back. */

typedef enum Mood { MOOD_CALM, MOOD_ANGRY = 7 } Mood;

typedef struct Slot {
    uint16_t count;
    float weight;
} Slot;

typedef struct Thing {
    bool flag, flags[3];
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32, matrix[4];
    double f64;
    Mood mood;
    struct {
        float x, y;
    } place;
    Slot slots[2];
    char title[12];
    quern_entity friend, others[2];
    float speed;
    uint32_t serial;
} Thing;

static const quern_named_value moods[] = {{"calm", MOOD_CALM}, {"Very angry", MOOD_ANGRY}, {NULL, 0}};

static const quern_component_def thing_def = {
    QUERN_TYPE(Thing),
    .fields = {QUERN_FIELD(Thing, flag),
               QUERN_FIELD(Thing, flags),
               QUERN_FIELD(Thing, i8),
               QUERN_FIELD(Thing, u8),
               QUERN_FIELD(Thing, i16),
               QUERN_FIELD(Thing, u16),
               QUERN_FIELD(Thing, i32),
               QUERN_FIELD(Thing, u32),
               QUERN_FIELD(Thing, i64),
               QUERN_FIELD(Thing, u64),
               QUERN_FIELD(Thing, f32),
               QUERN_FIELD(Thing, matrix),
               QUERN_FIELD(Thing, f64),
               QUERN_FIELD_WITH(Thing, mood, .values = moods),
               QUERN_FIELD(Thing, place.x),
               QUERN_FIELD(Thing, place.y),
               QUERN_FIELD(Thing, slots[0].count),
               QUERN_FIELD(Thing, slots[1].weight),
               QUERN_TEXT(Thing, title),
               QUERN_FIELD(Thing, friend),
               QUERN_FIELD(Thing, others),
               QUERN_FIELD_WITH(Thing, speed, .unit = "m/s", .minimum = -1, .maximum = 10),
               QUERN_FIELD_WITH(Thing, serial, .is_read_only = true)}};

static quern_component component;
static quern_type_info type;
static quern_entity entity;
static Thing thing;

static void open_world(void)
{
    world = setup_world();
    must(quern_component_register(world, &thing_def, &component));
    must(quern_component_get_info(world, component, &type));
    entity = setup_entity_with(world, &component, 1);
    memset(&thing, 0, sizeof thing);
}

TestSuite(text, .init = open_world, .fini = close_world);

static char said[512];

static const char *get(const char *path)
{
    quern_text_buffer buffer = {said, sizeof said, 0};
    must(quern_value_get_text(world, &type, &thing, path, quern_sink_text(&buffer)));
    cr_assert_lt(buffer.length_bytes, sizeof said);
    return said;
}

static void set(const char *path, const char *text)
{
    must(quern_value_set_text(world, &type, &thing, path, text));
}

static void assert_text(const char *path, const char *given, const char *expected)
{
    set(path, given);
    cr_assert_str_eq(get(path), expected, "%s: '%s' gave '%s'", path, given, said);
}

static void refuse(const char *path, const char *text, const char *words)
{
    const Thing before = thing;
    must_refuse(INVALID_ARGUMENT, world, quern_value_set_text(world, &type, &thing, path, text));
    cr_assert_eq(memcmp(&before, &thing, sizeof thing), 0);
    cr_assert_not_null(strstr(quern_error_message(), words), "%s = %s: %s", path, text,
                       quern_error_message());
}

/* ----------------------------------------------------------------------------------------- numbers */

Test(text, integers_from_the_least_to_the_greatest)
{
    static const struct {
        const char *path, *least, *greatest, *below, *above;
    } cases[] = {
        {"i8", "-128", "127", "-129", "128"},
        {"u8", "0", "255", "-1", "256"},
        {"i16", "-32768", "32767", "-32769", "32768"},
        {"u16", "0", "65535", "-1", "65536"},
        {"i32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
        {"u32", "0", "4294967295", "-1", "4294967296"},
        {"i64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
         "9223372036854775808"},
        {"u64", "0", "18446744073709551615", "-1", "18446744073709551616"},
    };
    for (uint32_t i = 0; i < QUERN__COUNT_OF(cases); i++) {
        assert_text(cases[i].path, cases[i].least, cases[i].least);
        assert_text(cases[i].path, cases[i].greatest, cases[i].greatest);
        refuse(cases[i].path, cases[i].below, "cannot hold");
        refuse(cases[i].path, cases[i].above, "cannot hold");
        refuse(cases[i].path, "99999999999999999999999999", "expected a whole number from ");
        assert_text(cases[i].path, "0x7F", "127");
        assert_text(cases[i].path, " +12\n", "12");
    }
    assert_text("i8", "-0x80", "-128");
    assert_text("u64", "0xffffffffffffffff", "18446744073709551615");
    assert_text("u8", "-0", "0");
    static const char *const wrong[] = {"",   " ",   "-",   "+",   "1.0", "1e3", "x",
                                        "0x", "0xg", "1 2", "--1", "1-",  "١"};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(wrong); i++)
        refuse("i32", wrong[i], "'i32' of 'Thing' cannot be '");
}

Test(text, floats_are_short_and_exact)
{
    static const struct {
        const char *given, *f32, *f64;
    } cases[] = {
        {"0", "0", "0"},
        {"-0", "-0", "-0"},
        {"0.1", "0.1", "0.1"},
        {"1", "1", "1"},
        {"1000000", "1000000", "1000000"},
        {"16777217", "16777216", "16777217"},
        {"3.4028235e38", "3.4028235e+38", "3.4028235e+38"},
        {"1e-45", "1.4013e-45", "1e-45"},
        {".5", "0.5", "0.5"},
        {"5.", "5", "5"},
        {"-1.5E+3", "-1500", "-1500"},
        {"inf", "inf", "inf"},
        {"-inf", "-inf", "-inf"},
        {"nan", "nan", "nan"},
        {"-nan", "-nan", "-nan"},
        {"1e-999", "0", "0"},
    };
    for (uint32_t i = 0; i < QUERN__COUNT_OF(cases); i++) {
        assert_text("f32", cases[i].given, cases[i].f32);
        assert_text("f64", cases[i].given, cases[i].f64);
    }
    set("f64", "1.7976931348623157e308");
    cr_assert_eq(thing.f64, DBL_MAX);
    set("f64", "4.9406564584124654e-324");
    cr_assert_eq(thing.f64, 4.9406564584124654e-324);
    assert_text("f32", "nan(0x7fa00001)", "nan(0x7fa00001)");
    assert_text("f64", "nan(0xfff4000000000001)", "nan(0xfff4000000000001)");
    static const char *const wrong[] = {"",
                                        "e5",
                                        ".",
                                        "1e",
                                        "1,5",
                                        "0x1p3",
                                        "infinity",
                                        "INF",
                                        "nan()",
                                        "nan(0x3f800000)",
                                        "nan(0x7fa000011)",
                                        "1.2.3",
                                        "1 2",
                                        "+-1",
                                        "nan(0x7fa00001"};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(wrong); i++)
        refuse("f32", wrong[i], "expected a number");
    refuse("f32", "3.5e38", "'f32' of 'Thing' cannot hold '3.5e38'");
    refuse("f64", "-1e309", "cannot hold");
    char digits[200];
    memset(digits, '1', sizeof digits);
    digits[sizeof digits - 1] = '\0';
    refuse("f64", digits, "expected a number");
}

static void assert_floats_come_back(uint32_t bits, uint64_t wide_bits)
{
    char text[64];
    memcpy(&thing.f32, &bits, sizeof bits);
    memcpy(&thing.f64, &wide_bits, sizeof wide_bits);
    memcpy(text, get("f32"), sizeof text);
    thing.f32 = 1;
    set("f32", text);
    cr_assert_eq(memcmp(&thing.f32, &bits, sizeof bits), 0, "%#" PRIx32 " as %s", bits, text);
    memcpy(text, get("f64"), sizeof text);
    thing.f64 = 1;
    set("f64", text);
    cr_assert_eq(memcmp(&thing.f64, &wide_bits, sizeof wide_bits), 0, "%#" PRIx64 " as %s", wide_bits,
                 text);
}

Test(text, random_floats_round_trip)
{
    random_source random = {7};
    for (uint32_t i = 0; i < 5000; i++)
        assert_floats_come_back((uint32_t)random_next(&random), random_next(&random));
    for (uint32_t i = 0; i < 1000; i++) /* floats with few digits */
        assert_floats_come_back((uint32_t)(i << 20), (uint64_t)i << 50);
}

Test(text, conversion_is_independent_of_the_locale)
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "de_DE.utf8") == NULL &&
        setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        cr_skip_test("there is no locale with another decimal point");
    assert_text("f32", "0.25", "0.25");
    refuse("f32", "0,25", "cannot be");
    setlocale(LC_ALL, "C");
}

Test(text, bools)
{
    assert_text("flag", "true", "true");
    assert_text("flag", "false", "false");
    assert_text("flag", "1", "true");
    assert_text("flag", "0", "false");
    memset(&thing.flag, 0x40, 1);
    cr_assert_str_eq(get("flag"), "true");
    refuse("flag", "yes", "expected true or false");
    refuse("flag", "2", "expected true or false");
}

Test(text, named_values_and_numbers_without_one)
{
    assert_text("mood", "Very angry", "Very angry");
    cr_assert_eq(thing.mood, MOOD_ANGRY);
    assert_text("mood", " calm ", "calm");
    assert_text("mood", "7", "Very angry");
    assert_text("mood", "5", "5");
    refuse("mood", "CALM", "expected calm, Very angry, or a whole number from 0 to 4294967295");
}

Test(text, ranges_are_enforced)
{
    assert_text("speed", "10", "10");
    assert_text("speed", "-1", "-1");
    refuse("speed", "10.5", "'speed' of 'Thing' cannot hold '10.5': expected a number from -1 to 10 (m/s)");
    refuse("speed", "-1.001", "cannot hold");
    refuse("speed", "nan", "cannot hold");
    refuse("speed", "inf", "cannot hold");
}

Test(text, read_only_fields_can_be_read)
{
    thing.serial = 12;
    cr_assert_str_eq(get("serial"), "12");
    refuse("serial", "12", "'serial' of 'Thing' is read only");
}

/* -------------------------------------------------------------------------------- arrays, structs, text */

Test(text, arrays_and_their_elements)
{
    assert_text("matrix", "[1, 2.5, -inf, 4]", "[1, 2.5, -inf, 4]");
    assert_text("matrix", " [ 1,2 , 3,4 ] ", "[1, 2, 3, 4]");
    assert_text("matrix[3]", "0.5", "0.5");
    cr_assert_str_eq(get("matrix"), "[1, 2, 3, 0.5]");
    assert_text("flags", "[true, false, 1]", "[true, false, true]");
    refuse("matrix", "[1, 2, 3]", "expected 4 elements in brackets");
    refuse("matrix", "[1, 2, 3, 4, 5]", "expected 4 elements in brackets");
    refuse("matrix", "1, 2, 3, 4", "expected 4 elements in brackets");
    refuse("matrix", "[1, 2, 3, x]", "cannot be 'x'");
    refuse("matrix", "[1, 2, , 4]", "cannot be ''");
    refuse("matrix", "[", "brackets");
    refuse("matrix", "[]", "brackets");
    refuse("matrix", "", "brackets");
    refuse("matrix[4]", "1", "has the elements [0] to [3]");
    refuse("matrix[-1]", "1", "has the elements [0] to [3]");
    refuse("matrix[]", "1", "has the elements [0] to [3]");
    refuse("matrix[99999999999999999999]", "1", "has the elements [0] to [3]");
    refuse("f32[0]", "1", "'f32' of 'Thing' is no array");
    refuse("title[0]", "1", "'title' of 'Thing' is no array");
}

Test(text, nested_fields_are_named_with_dots)
{
    assert_text("place.y", "2", "2");
    assert_text("slots[1].weight", "0.75", "0.75");
    cr_assert(thing.place.y == 2 && thing.slots[1].weight == 0.75f);
    refuse(
        "place", "1",
        "'place' of 'Thing' is a struct, or an array of them: name one of its fields, such as 'place.x'");
    refuse("slots", "1", "such as 'slots[0].count'");
    refuse("slots[1]", "1", "such as 'slots[1].weight'");
    refuse("placement", "1", "'Thing' has no field 'placement'; it has flag, flags, i8");
    refuse("place.z", "1", "'Thing' has no field 'place.z'; it has flag, flags, i8");
    refuse("place.z", "1", "; did you mean 'place.x'?");
    refuse("martix[2]", "1", "did you mean 'matrix'?");
    refuse("", "1", "'Thing' has no field ''");
    refuse("]", "1", "has no field");
    refuse("[0]", "1", "has no field");
    refuse("placex", "1", "has no field");
}

Test(text, text_fields_are_copied)
{
    assert_text("title", "", "");
    assert_text("title", " Käse [1] ", " Käse [1] ");
    assert_text("title", "eleven byte", "eleven byte");
    set("title", "short");
    for (uint32_t i = 5; i < sizeof thing.title; i++)
        cr_assert_eq(thing.title[i], '\0', "nothing is left of what was there");
    refuse("title", "twelve bytes", "'title' of 'Thing' has room for 11 bytes and a final 0, and the text");
    refuse("title", "a\xFFz", "must be UTF-8: byte 1 of the text (0xff)");
    memset(thing.title, 'x', sizeof thing.title);
    cr_assert_str_eq(get("title"), "xxxxxxxxxxxx", "of one without an end, all bytes");
}

/* ---------------------------------------------------------------------------------------- entities */

Test(text, entities_by_number_and_by_path)
{
    const quern_entity arena = setup_entity(world), gun = setup_entity(world),
                       nameless = setup_entity(world);
    char number[32];
    must(quern_entity_set_name(world, arena, "arena, east"));
    must(quern_entity_set_name(world, gun, "gun"));
    must(quern_entity_relate(world, gun, quern_world_parent(world), arena));
    assert_text("friend", "none", "none");
    snprintf(number, sizeof number, "%u:%u", quern_entity_index(nameless),
             quern_entity_generation(nameless));
    assert_text("friend", number, number);
    cr_assert(quern_entity_equal(thing.friend, nameless));
    snprintf(number, sizeof number, "%u:%u", quern_entity_index(gun), quern_entity_generation(gun));
    assert_text("friend", number, "/arena, east/gun");
    thing.friend = quern_entity_null();
    assert_text("friend", "/arena, east/gun", "/arena, east/gun");
    cr_assert(quern_entity_equal(thing.friend, gun));
    thing.others[0] = gun;
    snprintf(said, sizeof said, "[%s, none]", number);
    char expected[64];
    memcpy(expected, said, sizeof expected);
    assert_text("others", expected, expected);
    cr_assert_str_eq(get("others[0]"), "/arena, east/gun");
    must(quern_entity_unrelate(world, gun, quern_world_parent(world)));
    must(quern_entity_relate(world, gun, quern_world_parent(world), nameless));
    cr_assert_str_eq(get("friend"), number, "no path of names leads there");
    must(quern_entity_destroy(world, gun));
    cr_assert_str_eq(get("friend"), number, "dead ones keep their number");
    assert_text("friend", number, number);
    refuse("friend", "/arena, east/gun",
           "expected an entity as index:generation, as a path of names that leads to one, such as "
           "/tower/gun, or none");
    static const char *const wrong[] = {"",     "1",          "1:",           ":1",
                                        "1:0",  "1:16777216", "4294967296:1", "/",
                                        "//x",  "0x",         "arena, east",  "/arena, east/",
                                        "null", "-1:1",       "1:1:1"};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(wrong); i++)
        refuse("friend", wrong[i], "cannot be '");
    refuse("others", "[/arena, east, none]", "cannot be");
    refuse("others", "[/arena, none]", "cannot be '/arena'");
}

Test(text, handles_with_any_bits_round_trip)
{
    random_source random = {3};
    for (uint32_t i = 0; i < 1000; i++) {
        const quern_entity before = {random_next(&random) >> random_below(&random, 64)};
        char text[64];
        thing.friend = before;
        memcpy(text, get("friend"), sizeof text);
        thing.friend = quern_entity_null();
        set("friend", text);
        cr_assert(quern_entity_equal(thing.friend, before), "%s", text);
    }
}

/* ------------------------------------------------------------------------- components and resources */

static const char *get_of(quern_entity of, const char *path)
{
    quern_text_buffer buffer = {said, sizeof said, 0};
    must(quern_entity_get_text(world, of, path, quern_sink_text(&buffer)));
    return said;
}

Test(text, setting_component_text_is_reported_as_a_change)
{
    quern_query *query = make_query(world, .terms = {quern_term_changed(quern_term_read(component))});
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        ;
    it = quern_query_iterate(query);
    cr_assert_not(quern_query_next(&it), "nothing has changed");
    must(quern_entity_set_text(world, entity, "Thing.place.x", "3.5"));
    cr_assert_eq(((const Thing *)quern_entity_get(world, entity, component))->place.x, 3.5f);
    cr_assert_str_eq(get_of(entity, "Thing.place.x"), "3.5");
    it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it), "change filters see it");
    while (quern_query_next(&it))
        ;
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "Thing.i8", "1000"));
    it = quern_query_iterate(query);
    cr_assert_not(quern_query_next(&it), "what is refused is no change");
}

Test(text, longest_matching_component_name_is_used)
{
    quern_component a, ab;
    const quern_component_def a_def = {
        .name = "a",
        .size_bytes = 4,
        .fields = {{"b.x", QUERN_FIELD_U8, 0, .count = 1}, {"c", QUERN_FIELD_U8, 1, .count = 1}}};
    const quern_component_def ab_def = {
        .name = "a.b", .size_bytes = 4, .fields = {{"x", QUERN_FIELD_U8, 0, .count = 1}}};
    must(quern_component_register(world, &a_def, &a));
    must(quern_component_register(world, &ab_def, &ab));
    const quern_entity both = setup_entity_with(world, (quern_component[]){a, ab}, 2);
    must(quern_entity_set_text(world, both, "a.b.x", "7"));
    must(quern_entity_set_text(world, both, "a.c", "8"));
    cr_assert_eq(*(const uint8_t *)quern_entity_get(world, both, ab), 7);
    cr_assert_eq(((const uint8_t *)quern_entity_get(world, both, a))[0], 0);
    cr_assert_eq(((const uint8_t *)quern_entity_get(world, both, a))[1], 8);
}

Test(text, targets_relate_and_unrelate)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_entity target = setup_entity(world);
    must(quern_entity_set_name(world, target, "home"));
    must(quern_entity_set_text(world, entity, "parent.target", "/home"));
    cr_assert(quern_entity_equal(quern_entity_target(world, entity, parent), target));
    cr_assert_str_eq(get_of(entity, "parent.target"), "/home");
    must(quern_entity_set_name(world, entity, "guest"));
    must_refuse(CYCLE, world, quern_entity_set_text(world, target, "parent.target", "/home/guest"));
    must_refuse(STALE_ENTITY, world, quern_entity_set_text(world, target, "parent.target", "1000:1"));
    must(quern_entity_set_text(world, entity, "parent.target", "none"));
    cr_assert(quern_entity_is_null(quern_entity_target(world, entity, parent)));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_set_text(world, entity, "parent.target", "none"));
    assert_valid(world);
}

/* Checks that a message names the public call. */
#define EXPECT_NAMED(call_name, call)                                                                    \
    do {                                                                                                 \
        cr_assert_neq((call), QUERN_OK);                                                                 \
        cr_assert_eq(strncmp(quern_error_message(), call_name ": ", sizeof call_name ": " - 1), 0, "%s", \
                     quern_error_message());                                                             \
    } while (0)

Test(text, messages_begin_with_the_call)
{
    const quern_entity other = setup_entity(world), dead = setup_entity(world);
    setup_tag(world, "tag");
    must(quern_entity_destroy(world, dead));
    must(quern_entity_add_by_name(world, other, "tag"));
    EXPECT_NAMED("quern_entity_add_by_name", quern_entity_add_by_name(world, other, "tag"));
    EXPECT_NAMED("quern_entity_add_by_name", quern_entity_add_by_name(world, dead, "tag"));
    EXPECT_NAMED("quern_entity_add_by_name", quern_entity_add_by_name(world, quern_entity_null(), "tag"));
    EXPECT_NAMED("quern_entity_remove_by_name", quern_entity_remove_by_name(world, dead, "tag"));
    EXPECT_NAMED("quern_entity_remove_by_name", quern_entity_remove_by_name(world, other, "Thing"));
    EXPECT_NAMED("quern_entity_add", quern_entity_add(world, dead, component, NULL));
    EXPECT_NAMED("quern_entity_remove", quern_entity_remove(world, dead, component));
    must(quern_entity_remove_by_name(world, other, "tag"));
    EXPECT_NAMED("quern_entity_remove_by_name", quern_entity_remove_by_name(world, other, "tag"));
}

Test(text, components_are_added_and_removed_by_name)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_relation parent = quern_world_parent(world);
    const quern_entity other = setup_entity(world);
    must(quern_entity_add_by_name(world, other, "Thing"));
    must(quern_entity_add_by_name(world, other, "tag"));
    cr_assert(quern_entity_has(world, other, component) && quern_entity_has(world, other, tag));
    cr_assert_str_eq(get_of(other, "Thing.mood"), "calm");
    must(quern_entity_remove_by_name(world, other, "Thing"));
    cr_assert_not(quern_entity_has(world, other, component));
    must(quern_entity_relate(world, other, parent, entity));
    must(quern_entity_remove_by_name(world, other, "parent"));
    cr_assert(quern_entity_is_null(quern_entity_target(world, other, parent)));
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add_by_name(world, other, "tag"));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_remove_by_name(world, other, "Thing"));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_add_by_name(world, other, "Tag"));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_remove_by_name(world, other, ""));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_add_by_name(world, other, "level 1 of parent"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_by_name(world, other, "parent"));
    cr_assert_not_null(strstr(quern_error_message(), "'parent.target'"));
    must_refuse(NULL_ARGUMENT, world, quern_entity_add_by_name(NULL, other, "tag"));
    must_refuse(NULL_ARGUMENT, world, quern_entity_add_by_name(world, other, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_entity_remove_by_name(world, other, NULL));
}

Test(text, resources)
{
    quern_text_buffer buffer = {said, sizeof said, 0};
    quern_resource resource =
        make_resource(world, .name = "rules", .size_bytes = 8,
                      .fields = {{"gravity", QUERN_FIELD_F32, 4, .count = 1, .minimum = -20}});
    must(quern_resource_set_text(world, "rules.gravity", "-9.81"));
    cr_assert_eq(((const float *)quern_resource_get(world, resource))[1], -9.81f);
    must(quern_resource_get_text(world, "rules.gravity", quern_sink_text(&buffer)));
    cr_assert_str_eq(said, "-9.81");
    must_refuse(INVALID_ARGUMENT, world, quern_resource_set_text(world, "rules.gravity", "-21"));
    must_refuse(INVALID_ARGUMENT, world, quern_resource_set_text(world, "rules", "1"));
    must_refuse(UNKNOWN_RESOURCE, world, quern_resource_set_text(world, "rule.gravity", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_resource_set_text(world, "rules.gravity", NULL));
    must_refuse(NULL_ARGUMENT, world, quern_resource_set_text(world, NULL, "1"));
    must_refuse(NULL_ARGUMENT, world, quern_resource_set_text(NULL, "rules.gravity", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_resource_get_text(world, "rules.gravity", (quern_sink){0}));
}

Test(text, wrong_calls_are_refused)
{
    quern_text_buffer buffer = {said, sizeof said, 0};
    const quern_sink sink = quern_sink_text(&buffer);
    const quern_entity bare = setup_entity(world), dead = setup_entity(world);
    setup_tag(world, "tag");
    setup_component(world, "blob", 4, 4);
    must(quern_entity_destroy(world, dead));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_set_text(world, bare, "Thing.i8", "1"));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_get_text(world, bare, "Thing.i8", sink));
    must_refuse(STALE_ENTITY, world, quern_entity_set_text(world, dead, "Thing.i8", "1"));
    must_refuse(NULL_ENTITY, world, quern_entity_get_text(world, quern_entity_null(), "Thing.i8", sink));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_set_text(world, entity, "Thin.i8", "1"));
    must_refuse(UNKNOWN_COMPONENT, world, quern_entity_set_text(world, entity, "", "1"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "Thing", "1"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "tag.x", "1"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "blob.x", "1"));
    cr_assert_not_null(strstr(quern_error_message(), "'blob' has no described fields"));
    must_refuse(NULL_ARGUMENT, world, quern_entity_set_text(NULL, entity, "Thing.i8", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_entity_set_text(world, entity, NULL, "1"));
    must_refuse(NULL_ARGUMENT, world, quern_entity_set_text(world, entity, "Thing.i8", NULL));
    must_refuse(NULL_ARGUMENT, world, quern_entity_get_text(NULL, entity, "Thing.i8", sink));
    must_refuse(NULL_ARGUMENT, world, quern_entity_get_text(world, entity, NULL, sink));
    must_refuse(NULL_ARGUMENT, world, quern_entity_get_text(world, entity, "Thing.i8", (quern_sink){0}));
    must_refuse(NULL_ARGUMENT, world, quern_value_get_text(NULL, &type, &thing, "i8", sink));
    must_refuse(NULL_ARGUMENT, world, quern_value_get_text(world, NULL, &thing, "i8", sink));
    must_refuse(NULL_ARGUMENT, world, quern_value_get_text(world, &type, NULL, "i8", sink));
    must_refuse(NULL_ARGUMENT, world, quern_value_get_text(world, &type, &thing, NULL, sink));
    must_refuse(NULL_ARGUMENT, world, quern_value_get_text(world, &type, &thing, "i8", (quern_sink){0}));
    must_refuse(INVALID_ARGUMENT, world, quern_value_get_text(world, &type, &thing, "i9", sink));
    must_refuse(NULL_ARGUMENT, world, quern_value_set_text(NULL, &type, &thing, "i8", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_value_set_text(world, NULL, &thing, "i8", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_value_set_text(world, &type, NULL, "i8", "1"));
    must_refuse(NULL_ARGUMENT, world, quern_value_set_text(world, &type, &thing, NULL, "1"));
    must_refuse(NULL_ARGUMENT, world, quern_value_set_text(world, &type, &thing, "i8", NULL));
}
