/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/text.h"

#include <string.h>

static bool is_on_lines(const quern__json *json)
{
    return json->depth <= json->line_depth;
}

/* Tools ask for much JSON while a program runs, so that only numbers with fractions are formatted by the C library. */

static void put(quern__json *json, const char *text)
{
    quern__print_bytes(json->printer, text, strlen(text));
}

static void start_line(quern__json *json)
{
    put(json, "\n");
    for (uint32_t i = 0; i < json->depth; i++)
        quern__print_bytes(json->printer, "  ", 2);
}

/* Writes the separator, the line break and the key that precede a value. */
static void start_value(quern__json *json, const char *key)
{
    if (json->has_items) put(json, ",");
    if (json->depth > 0 && is_on_lines(json)) start_line(json);
    if (key != NULL) {
        put(json, "\"");
        put(json, key);
        put(json, is_on_lines(json) ? "\": " : "\":");
    }
    json->has_items = true;
}

void quern__json_open(quern__json *json, const char *key, char bracket)
{
    start_value(json, key);
    quern__print_bytes(json->printer, &bracket, 1);
    json->depth++;
    json->has_items = false;
}

void quern__json_close(quern__json *json, char bracket)
{
    const bool is_last_on_line = json->has_items && is_on_lines(json);
    json->depth--;
    if (is_last_on_line) start_line(json);
    quern__print_bytes(json->printer, &bracket, 1);
    if (json->depth == 0) put(json, "\n");
    json->has_items = true;
}

void quern__json_text(quern__json *json, const char *key, const char *text)
{
    start_value(json, key);
    put(json, "\"");
    while (*text != '\0') {
        const char *begin = text;
        unsigned char byte = (unsigned char)*text;
        uint32_t bytes = 0;
        while (byte >= ' ' && byte != '"' && byte != '\\' && (bytes = quern__utf8_bytes(text)) > 0) {
            text += bytes;
            byte = (unsigned char)*text;
        }
        quern__print_bytes(json->printer, begin, (size_t)(text - begin));
        if (byte == '\0') break;
        text++;
        if (byte == '"' || byte == '\\')
            quern__print(json->printer, "\\%c", byte);
        else if (byte < ' ')
            quern__print(json->printer, "\\u%04x", byte);
        else
            put(json, QUERN__UTF8_REPLACEMENT);
    }
    put(json, "\"");
}

void quern__json_integer(quern__json *json, const char *key, uint64_t count)
{
    char digits[20];
    size_t at = sizeof digits;
    start_value(json, key);
    do {
        digits[--at] = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    quern__print_bytes(json->printer, digits + at, sizeof digits - at);
}

void quern__json_decimal(quern__json *json, const char *key, uint64_t units, uint32_t digits)
{
    start_value(json, key);
    quern__print_decimal(json->printer, units, digits);
}

void quern__json_bool(quern__json *json, const char *key, bool flag)
{
    start_value(json, key);
    put(json, flag ? "true" : "false");
}

void quern__json_null(quern__json *json, const char *key)
{
    start_value(json, key);
    put(json, "null");
}
