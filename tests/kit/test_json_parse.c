/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json.h"
#include "tests/kit/json_scene.h"

#include <stdio.h>
#include <string.h>

/* Texts that the JSON parser rejects, and the strings, numbers and structs that it reads. */

TestSuite(json_parse, .fini = close_texts);

static quern_result read_thing(const scene *at, Thing *thing, const char *text)
{
    quern_type_info type;
    must(quern_component_get_info(at->world, at->thing, &type));
    return quern_json_read_value(at->world, &type, thing, text, strlen(text), NULL);
}

/* Each text fails at its first invalid byte with a message that says what was expected. */
Test(json_parse, invalid_json_fails_at_its_first_invalid_byte)
{
    static const struct {
        const char *text;
        unsigned at;
        const char *said;
    } cases[] = {
        {"", 0, "a value was expected"},
        {"  ", 2, "a value was expected"},
        {"{", 1, "a key in quotes was expected"},
        {"{}x", 2, "the end of the text was expected"},
        {"{} {}", 3, "the end of the text was expected"},
        {"{\"i64\"}", 6, "':' was expected"},
        {"{\"i64\": }", 8, "a value was expected"},
        {"{\"i64\": 1,}", 10, "a key in quotes was expected"},
        {"{\"i64\": 1 2}", 10, "',' or '}' was expected"},
        {"{\"i64\": 1]", 9, "',' or '}' was expected"},
        {"{\"flags\": [1,]}", 13, "a value was expected"},
        {"{\"flags\": [1}", 12, "',' or ']' was expected"},
        {"{\"flags\": [1 2]}", 13, "',' or ']' was expected"},
        {"{, \"i64\": 1}", 1, "a key in quotes was expected"},
        {"{i64: 1}", 1, "a key in quotes was expected"},
        {"{\"i64\": 01}", 9, "',' or '}' was expected"},
        {"{\"i64\": -01}", 10, "',' or '}' was expected"},
        {"{\"i64\": 5.}", 8, "a value was expected"},
        {"{\"i64\": .5}", 8, "a value was expected"},
        {"{\"i64\": 1.e1}", 8, "a value was expected"},
        {"{\"i64\": +5}", 8, "a value was expected"},
        {"{\"i64\": -}", 8, "a value was expected"},
        {"{\"i64\": --5}", 8, "a value was expected"},
        {"{\"i64\": 1e}", 8, "a value was expected"},
        {"{\"i64\": 1e+}", 8, "a value was expected"},
        {"{\"i64\": 0x10}", 9, "',' or '}' was expected"},
        {"{\"f64\": NaN}", 8, "a value was expected"},
        {"{\"f64\": Infinity}", 8, "a value was expected"},
        {"{\"flags\": [True]}", 11, "a value was expected"},
        {"{\"flags\": [truer]}", 15, "',' or ']' was expected"},
        {"{\"title\": \"abc}", 15, "a string does not end"},
        {"{\"title\": \"a\tb\"}", 12, "control characters"},
        {"{\"title\": \"\\x\"}", 12, "no such escape"},
        {"{\"title\": \"\\", 12, "no such escape"},
        {"{\"title\": \"\\u12g4\"}", 12, "four hexadecimal digits"},
        {"{\"title\": \"\\u12\"}", 12, "four hexadecimal digits"},
        {"{\"title\": \"\\u0000\"}", 12, "U+0000"},
        {"{\"title\": \"\\ud83d\"}", 12, "surrogate"},
        {"{\"title\": \"\\ud83d\\u0041\"}", 12, "surrogate"},
        {"{\"title\": \"\\ud83d\\ue000\"}", 12, "surrogate"},
        {"{\"title\": \"\\udc00\"}", 12, "surrogate"},
        {"{\"x\": {\"a\": 1, \"b\": {\"a\": 1}, \"a\": {}}}", 31, "the object has the key 'a' already"},
        {"{\"a\": 1, \"\\u0061\": 1}", 10, "the object has the key 'a' already"},
        {"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"1\":0}", 50,
         "the object has the key '1' already"},
        {"{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"7\":0}", 44,
         "the object has the key '7' already"},
        {"# comment", 0, "a value was expected"},
    };
    const scene at = open_scene(NULL);
    Thing thing, before;
    memset(&thing, 0, sizeof thing);
    before = thing;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[64];
        (void)snprintf(said, sizeof said, "at byte %u of", cases[i].at);
        cr_assert_eq(read_thing(&at, &thing, cases[i].text), QUERN_ERROR_INVALID_ARGUMENT, "%s",
                     cases[i].text);
        cr_assert_not_null(strstr(quern_error_message(), said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_not_null(strstr(quern_error_message(), cases[i].said), "%s: %s", cases[i].text,
                           quern_error_message());
        cr_assert_eq(memcmp(&thing, &before, sizeof thing), 0);
    }
    cr_assert_eq(read_thing(&at, &thing, "{\"i64\":\n 1,\n  x}"), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "(line 3, column 3)"), "%s", quern_error_message());
    quern_type_info type;
    must(quern_component_get_info(at.world, at.thing, &type));
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, "{}\0", 3, NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, "{\"title\": \"a\0b\"}", 16, NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_json_read_value(NULL, &type, &thing, "{}", 2, NULL), QUERN_ERROR_NULL_ARGUMENT);
    const quern_json_options half = {.allocator = {.allocate = quern_allocator_default().allocate}};
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, "{}", 2, &half),
                 QUERN_ERROR_INVALID_ARGUMENT);
    quern_world_destroy(at.world);
}

Test(json_parse, strings_are_decoded)
{
    static const struct {
        const char *text, *title;
    } cases[] = {
        {"{\"title\": \"\"}", ""},
        {"{\"title\": \"\\\"\\\\\\/\"}", "\"\\/"},
        {"{\"title\": \"\\b\\f\\n\\r\\t\"}", "\b\f\n\r\t"},
        {"{\"title\": \"\\u0041\\u00e4\\u20AC\"}", "A\xC3\xA4\xE2\x82\xAC"},
        {"{\"title\": \"\\u007f\\u0080\"}", "\x7f\xC2\x80"},
        {"{\"title\": \"\\u07ff\\u0800\"}", "\xDF\xBF\xE0\xA0\x80"},
        {"{\"title\": \"\\uD83D\\ude00\"}", "\xF0\x9F\x98\x80"},
        {"{\"title\": \"\\ud800\\udc00x\"}", "\xF0\x90\x80\x80x"},
        {"{\"title\": \"\\udbff\\udfff\"}", "\xF4\x8F\xBF\xBF"},
        {" {\t\"titl\\u0065\"\r\n:\n\"x\" } ", "x"},
        {"\xEF\xBB\xBF{\"title\": \"bom\"}", "bom"},
    };
    const scene at = open_scene(NULL);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Thing thing;
        memset(&thing, 7, sizeof thing);
        cr_assert_eq(read_thing(&at, &thing, cases[i].text), QUERN_OK, "%s: %s", cases[i].text,
                     quern_error_message());
        cr_assert_str_eq(thing.title, cases[i].title);
    }
    quern_world_destroy(at.world);
}

Test(json_parse, whole_numbers_are_exact_in_every_notation)
{
    static const struct {
        const char *number;
        int64_t value;
    } cases[] = {
        {"9007199254740993", 9007199254740993},
        {"-9007199254740993", -9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-9223372036854775808.000", INT64_MIN},
        {"9223372036854775.807e3", INT64_MAX},
        {"92233720368547758070e-1", INT64_MAX},
        {"0", 0},
        {"-0", 0},
        {"-0.0", 0},
        {"0e999999999999999999999", 0},
        {"0.000e-5", 0},
        {"1e2", 100},
        {"1E+2", 100},
        {"100e-2", 1},
        {"0.5e1", 5},
        {"0.0012e4", 12},
        {"12.50e1", 125},
        {"1000000000000000000000000e-22", 100},
        {"\"9007199254740993\"", 9007199254740993},
    };
    static const char *const wrong[] = {"1.5",
                                        "0.5",
                                        "15e-1",
                                        "1e-1",
                                        "1e-999999999999999999999",
                                        "1e20",
                                        "1e99999",
                                        "0.1e0",
                                        "12.05e1",
                                        "9223372036854775808",
                                        "1e18446744073709551618"};
    const scene at = open_scene(NULL);
    char text[128];
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Thing thing = {.i64 = 77};
        (void)snprintf(text, sizeof text, "{\"i64\": %s}", cases[i].number);
        cr_assert_eq(read_thing(&at, &thing, text), QUERN_OK, "%s: %s", text, quern_error_message());
        cr_assert_eq(thing.i64, cases[i].value, "%s is %lld", text, (long long)thing.i64);
    }
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Thing thing = {.i64 = 77};
        (void)snprintf(text, sizeof text, "{\"i64\": %s}", wrong[i]);
        cr_assert_eq(read_thing(&at, &thing, text), QUERN_ERROR_INVALID_ARGUMENT, "%s", text);
        cr_assert_eq(thing.i64, 77);
    }
    Thing thing = {.u64 = 0};
    must(read_thing(&at, &thing, "{\"u64\": 18446744073709551615, \"flags\": [1.0, 0e5]}"));
    cr_assert(thing.u64 == UINT64_MAX && thing.flags[0] && !thing.flags[1]);
    quern_world_destroy(at.world);
}

/* A float is rounded once, from its digits; rounded to double first, this one would become 16777216. */
Test(json_parse, floats_are_rounded_once)
{
    const scene at = open_scene(NULL);
    Thing thing = {.f32 = 0};
    must(read_thing(&at, &thing, "{\"f32\": 16777217.000000001, \"f64\": 1e-400}"));
    cr_assert_eq(thing.f32, 16777218.0f);
    cr_assert_eq(thing.f64, 0);
    char *text = malloc(2000100);
    int used = sprintf(text, "{\"f64\": ");
    memset(text + used, '9', 2000000);
    (void)sprintf(text + used + 2000000, "}");
    cr_assert_eq(read_thing(&at, &thing, text), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "'f64' of 'Thing' cannot be a number of 2000000"));
    free(text);
    quern_world_destroy(at.world);
}

/* Many members and deep nesting inside parts that are left out. */
Test(json_parse, large_objects_and_deep_arrays_are_parsed)
{
    enum { MEMBERS = 20000, DEPTH = 100000 };
    const scene at = open_scene(NULL);
    const quern_json_options options = {.leaves_out_unknown = true};
    quern_type_info type;
    Thing thing = {.i64 = 0};
    must(quern_component_get_info(at.world, at.thing, &type));
    char *text = malloc(MEMBERS * 16 + 64);
    size_t used = (size_t)sprintf(text, "{\"i64\": 3");
    for (uint32_t i = 0; i < MEMBERS; i++)
        used += (size_t)sprintf(text + used, ", \"m%u\": 0", i * 7919 % MEMBERS);
    (void)sprintf(text + used, "}");
    must(quern_json_read_value(at.world, &type, &thing, text, used + 1, &options));
    cr_assert_eq(thing.i64, 3);
    used += (size_t)sprintf(text + used, ", \"m17\": 0}");
    cr_assert_eq(quern_json_read_value(at.world, &type, &thing, text, used, &options),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "the key 'm17' already"), "%s", quern_error_message());
    used = (size_t)sprintf(text, "{\"deep\": ");
    memset(text + used, '[', DEPTH);
    memset(text + used + DEPTH, ']', DEPTH);
    used += 2 * DEPTH + (size_t)sprintf(text + used + 2 * DEPTH, ", \"i64\": 5}");
    must(quern_json_read_value(at.world, &type, &thing, text, used, &options));
    cr_assert_eq(thing.i64, 5);
    free(text);
    quern_world_destroy(at.world);
}

/* Fields with a common prefix become members of one object, whatever fields are declared between them. */
Test(json_parse, separate_fields_of_a_struct_become_one_object)
{
    quern_world *world = setup_world();
    quern_component component =
        make_component(world, .name = "mixed", .size_bytes = 20, .alignment_bytes = 4,
                       .fields = {{"a.x", QUERN_FIELD_U32, 0, .count = 1},
                                  {"b", QUERN_FIELD_U32, 4, .count = 1},
                                  {"a.in.y", QUERN_FIELD_U32, 8, .count = 1},
                                  {"ab.z", QUERN_FIELD_U32, 12, .count = 1},
                                  {"a.in.z", QUERN_FIELD_U32, 16, .count = 1}});
    quern_type_info type;
    must(quern_component_get_info(world, component, &type));
    const uint32_t value[5] = {1, 2, 3, 4, 5};
    uint32_t again[5] = {0};
    char text[256];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_json_write_value(world, &type, value, quern_sink_text(&buffer)));
    cr_assert_str_eq(text,
                     "{\"a\": {\"x\": 1, \"in\": {\"y\": 3, \"z\": 5}}, \"b\": 2, \"ab\": {\"z\": 4}}");
    must(quern_json_read_value(world, &type, again, text, strlen(text), NULL));
    cr_assert_arr_eq(again, value, sizeof value);
    quern_world_destroy(world);
}
