/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_UTF8_H
#define QUERN_CORE_BASE_UTF8_H

/* UTF-8: finding the characters of a text, so that callers can refuse or replace bytes that are not UTF-8. */

#include <stdbool.h>
#include <stdint.h>

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
