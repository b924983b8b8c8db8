/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_JSON_PRINTER_H
#define QUERN_CORE_BASE_JSON_PRINTER_H

/* JSON on its way to a printer, which keeps errors until it is closed. A value of an object has a key, a
 * value of an array has the key NULL. Keys are ours and are not escaped. No locale changes what is written.
 *
 *     quern__json json = {.printer = &printer, .line_depth = 1};
 *     quern__json_open(&json, NULL, '{');
 *     quern__json_text(&json, "name", name);
 *     quern__json_close(&json, '}'); */

#include "core/base/printer.h"

typedef struct quern__json {
    quern__printer *printer;
    uint32_t line_depth; /* values nested at most this deep stand on lines of their own */
    uint32_t depth;
    bool has_items; /* in what was opened last */
} quern__json;

/* bracket: '{' or '[', and the one that fits it. */
void quern__json_open(quern__json *json, const char *key, char bracket);
void quern__json_close(quern__json *json, char bracket);

/* Any bytes; those that are not UTF-8 are replaced. */
void quern__json_text(quern__json *json, const char *key, const char *text);

void quern__json_count(quern__json *json, const char *key, uint64_t count);

/* units / 10^digits, exactly; digits from 1 to 9. */
void quern__json_decimal(quern__json *json, const char *key, uint64_t units, uint32_t digits);

void quern__json_flag(quern__json *json, const char *key, bool flag);
void quern__json_null(quern__json *json, const char *key);

#endif
