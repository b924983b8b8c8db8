/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/text.h"

#include <criterion/criterion.h>

#include <string.h>

static char text[4096];
static quern_text_buffer buffer;
static quern__printer printer;

static quern__json begin(uint32_t line_depth)
{
    buffer = (quern_text_buffer){text, sizeof text, 0};
    quern__printer_open(&printer, quern_sink_text(&buffer));
    return (quern__json){.printer = &printer, .line_depth = line_depth};
}

static void assert_written(const char *expected)
{
    cr_assert_eq(quern__printer_close(&printer, "test"), QUERN_OK);
    cr_assert_str_eq(text, expected, "written:\n%s", text);
}

static void write_nested(quern__json *json)
{
    quern__json_open(json, NULL, '{');
    quern__json_bool(json, "yes", true);
    quern__json_open(json, "list", '[');
    quern__json_integer(json, NULL, UINT64_MAX);
    quern__json_open(json, NULL, '{');
    quern__json_null(json, "none");
    quern__json_bool(json, "no", false);
    quern__json_close(json, '}');
    quern__json_close(json, ']');
    quern__json_open(json, "empty", '[');
    quern__json_close(json, ']');
    quern__json_close(json, '}');
}

Test(json, shallow_values_are_on_separate_lines)
{
    quern__json json = begin(UINT32_MAX);
    write_nested(&json);
    assert_written("{\n"
                   "  \"yes\": true,\n"
                   "  \"list\": [\n"
                   "    18446744073709551615,\n"
                   "    {\n"
                   "      \"none\": null,\n"
                   "      \"no\": false\n"
                   "    }\n"
                   "  ],\n"
                   "  \"empty\": []\n"
                   "}\n");
}

Test(json, deep_values_share_a_line)
{
    quern__json json = begin(2);
    write_nested(&json);
    assert_written("{\n"
                   "  \"yes\": true,\n"
                   "  \"list\": [\n"
                   "    18446744073709551615,\n"
                   "    {\"none\":null,\"no\":false}\n"
                   "  ],\n"
                   "  \"empty\": []\n"
                   "}\n");
    json = begin(0);
    write_nested(&json);
    assert_written(
        "{\"yes\":true,\"list\":[18446744073709551615,{\"none\":null,\"no\":false}],\"empty\":[]}\n");
}

Test(json, strings_are_escaped_and_invalid_utf8_is_replaced)
{
    quern__json json = begin(0);
    quern__json_open(&json, NULL, '[');
    quern__json_text(&json, NULL, "");
    quern__json_text(&json, NULL, "\"\\\n\x1F");
    quern__json_text(&json, NULL, "\xE2\x82\xAC \xFF!");
    quern__json_close(&json, ']');
    assert_written("[\"\",\"\\\"\\\\\\u000a\\u001f\",\"\xE2\x82\xAC \xEF\xBF\xBD!\"]\n");
}

Test(json, decimals_are_exact_without_trailing_zeros)
{
    quern__json json = begin(0);
    quern__json_open(&json, NULL, '[');
    quern__json_decimal(&json, NULL, 0, 9);
    quern__json_decimal(&json, NULL, 1, 9);
    quern__json_decimal(&json, NULL, 1500, 3);
    quern__json_decimal(&json, NULL, 20050, 3);
    quern__json_decimal(&json, NULL, 7000, 3);
    quern__json_decimal(&json, NULL, UINT64_MAX, 3);
    quern__json_close(&json, ']');
    assert_written("[0,0.000000001,1.5,20.05,7,18446744073709551.615]\n");
}

static bool refuse(void *user_data, const char *part, size_t bytes)
{
    ++*(uint32_t *)user_data;
    return false;
}

Test(json, sink_error_is_reported_at_close)
{
    uint32_t call_count = 0;
    quern__printer_open(&printer, (quern_sink){refuse, &call_count});
    quern__json json = {.printer = &printer, .line_depth = UINT32_MAX};
    for (uint32_t i = 0; i < 200; i++)
        write_nested(&json);
    cr_assert_eq(quern__printer_close(&printer, "test"), QUERN_ERROR_IO);
    cr_assert_eq(call_count, 1u, "a sink that refused gets nothing more");
}
