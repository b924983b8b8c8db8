/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_TEXT_H
#define QUERN_CORE_BASE_TEXT_H

/* Buffered printing to a sink. After the sink's first failed write, the printer drops all further text. Only
 * quern__printer_close reports the failure, so single prints need no check. */

#include "core/base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERN__PRINTER_BYTES 512

typedef struct quern__printer {
    quern__sink_writer sink;
    uint32_t used_bytes;
    char text[QUERN__PRINTER_BYTES];
} quern__printer;

void quern__printer_open(quern__printer *printer, quern_sink sink);

/* Prints formatted text. One call is truncated to QUERN__PRINTER_BYTES - 1 bytes. */
void quern__print(quern__printer *printer, const char *format, ...) QUERN__PRINTF(2, 3);

/* Prints any number of bytes. */
void quern__print_bytes(quern__printer *printer, const char *text, size_t bytes);

/* Prints units / 10^digits without trailing zeros, independent of the locale. digits: 1 to 9. */
void quern__print_decimal(quern__printer *printer, uint64_t units, uint32_t digits);

/* Writes the buffered text and flushes the sink. function: name of the public call, for the message. Errors: IO if the
 * sink has failed at any time. */
quern_result quern__printer_close(quern__printer *printer, const char *function);

/* Writes JSON to a printer, which reports errors when it is closed. `key` is the name of a value in an object, and NULL
 * for a value in an array or the outermost value. Keys are constants of the library and are not escaped. The output
 * does not depend on the locale.
 *
 *     quern__json json = {.printer = &printer, .line_depth = 1};
 *     quern__json_open(&json, NULL, '{');
 *     quern__json_text(&json, "name", name);
 *     quern__json_close(&json, '}'); */

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

/* UTF-8: finding the characters of a text, so that callers can refuse or replace bytes that are not UTF-8. */

#define QUERN__UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD, written for a byte that begins no character */

static inline bool quern__utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Returns the length in bytes of the UTF-8 character at the beginning of `text`, or 0 if there is none. */
static inline uint32_t quern__utf8_bytes(const char *text)
{
    unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4 || !quern__utf8_continues(text[1])) return 0;
    if (first < 0xE0) return 2;
    bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    bool is_beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
    if (is_overlong || is_beyond || !quern__utf8_continues(text[2])) return 0;
    if (first < 0xF0) return 3;
    return quern__utf8_continues(text[3]) ? 4 : 0;
}

#endif
