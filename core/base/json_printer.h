/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_JSON_PRINTER_H
#define QUERN_CORE_BASE_JSON_PRINTER_H

/* Writes JSON to a printer, which reports errors when it is closed. `key` is the name of a value in an object, and NULL
 * for a value in an array or the outermost value. Keys are constants of the library and are not escaped. The output
 * does not depend on the locale.
 *
 *     quern__json json = {.printer = &printer, .line_depth = 1};
 *     quern__json_open(&json, NULL, '{');
 *     quern__json_text(&json, "name", name);
 *     quern__json_close(&json, '}'); */

#include "core/base/printer.h"

typedef struct quern__json {
    quern__printer *printer;
    uint32_t line_depth; /* largest depth with values on separate lines; deeper values share a line */
    uint32_t depth;      /* number of open objects and arrays */
    bool has_items;      /* whether the innermost open object or array has a value */
} quern__json;

/* Opens and closes an object or array. bracket: '{' or '[' to open, '}' or ']' to close. */
void quern__json_open(quern__json *json, const char *key, char bracket);
void quern__json_close(quern__json *json, char bracket);

/* Writes a string. Bytes that are not UTF-8 are replaced by U+FFFD. */
void quern__json_text(quern__json *json, const char *key, const char *text);

void quern__json_integer(quern__json *json, const char *key, uint64_t count);

/* Writes units / 10^digits exactly. digits: 1 to 9. */
void quern__json_decimal(quern__json *json, const char *key, uint64_t units, uint32_t digits);

void quern__json_bool(quern__json *json, const char *key, bool flag);
void quern__json_null(quern__json *json, const char *key);

#endif
