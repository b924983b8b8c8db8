/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/text.h"

#include <inttypes.h>

static bool is_on_lines(const quern__json *json)
{
    return json->depth <= json->line_depth;
}

static void start_line(quern__json *json)
{
    quern__print(json->printer, "\n%*s", (int)(2 * json->depth), "");
}

/* Writes the separator, the line break and the key that precede a value. */
static void start_value(quern__json *json, const char *key)
{
    if (json->has_items) quern__print(json->printer, ",");
    if (json->depth > 0 && is_on_lines(json)) start_line(json);
    if (key != NULL) quern__print(json->printer, is_on_lines(json) ? "\"%s\": " : "\"%s\":", key);
    json->has_items = true;
}

void quern__json_open(quern__json *json, const char *key, char bracket)
{
    start_value(json, key);
    quern__print(json->printer, "%c", bracket);
    json->depth++;
    json->has_items = false;
}

void quern__json_close(quern__json *json, char bracket)
{
    const bool is_last_on_line = json->has_items && is_on_lines(json);
    json->depth--;
    if (is_last_on_line) start_line(json);
    quern__print(json->printer, json->depth > 0 ? "%c" : "%c\n", bracket);
    json->has_items = true;
}

void quern__json_text(quern__json *json, const char *key, const char *text)
{
    start_value(json, key);
    quern__print(json->printer, "\"");
    for (uint32_t bytes; *text != '\0'; text += bytes > 0 ? bytes : 1) {
        const unsigned char byte = (unsigned char)*text;
        bytes = quern__utf8_bytes(text);
        if (bytes == 0)
            quern__print(json->printer, QUERN__UTF8_REPLACEMENT);
        else if (byte == '"' || byte == '\\')
            quern__print(json->printer, "\\%c", byte);
        else if (byte < ' ')
            quern__print(json->printer, "\\u%04x", byte);
        else
            quern__print_bytes(json->printer, text, bytes);
    }
    quern__print(json->printer, "\"");
}

void quern__json_integer(quern__json *json, const char *key, uint64_t count)
{
    start_value(json, key);
    quern__print(json->printer, "%" PRIu64, count);
}

void quern__json_decimal(quern__json *json, const char *key, uint64_t units, uint32_t digits)
{
    start_value(json, key);
    quern__print_decimal(json->printer, units, digits);
}

void quern__json_bool(quern__json *json, const char *key, bool flag)
{
    start_value(json, key);
    quern__print(json->printer, flag ? "true" : "false");
}

void quern__json_null(quern__json *json, const char *key)
{
    start_value(json, key);
    quern__print(json->printer, "null");
}
