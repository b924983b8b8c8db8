/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <quern/name.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* JSON text. */

static bool append(void *user_data, const char *bytes, size_t size)
{
    quern__inspect_text *text = user_data;
    if (size > QUERN_INSPECT_MAX_ANSWER_BYTES - text->bytes.size_bytes) text->is_too_long = true;
    if (text->is_too_long || text->is_out_of_memory) return false;
    const quern_sink sink = quern_sink_bytes(&text->bytes);
    text->is_out_of_memory = !sink.write(sink.user_data, bytes, size);
    return !text->is_out_of_memory;
}

static void print(quern__inspect_text *text, const char *bytes)
{
    append(text, bytes, strlen(bytes));
}

static void print_escaped(quern__inspect_text *text, unsigned char byte)
{
    char escape[8];
    if (byte == '"' || byte == '\\')
        snprintf(escape, sizeof escape, "\\%c", byte);
    else
        snprintf(escape, sizeof escape, "\\u%04x", byte);
    print(text, escape);
}

static void print_string(quern__inspect_text *text, const char *value)
{
    append(text, "\"", 1);
    while (*value != '\0') {
        const char *begin = value;
        while ((unsigned char)*value >= ' ' && *value != '"' && *value != '\\')
            value++;
        append(text, begin, (size_t)(value - begin));
        if (*value != '\0') print_escaped(text, (unsigned char)*value++);
    }
    append(text, "\"", 1);
}

/* A value follows another one unless the text is empty or ends with an opening bracket. */
static void begin_value(quern__inspect_text *text, const char *key)
{
    const char *bytes = text->bytes.bytes;
    const size_t size = text->bytes.size_bytes;
    if (size > 0 && bytes[size - 1] != '{' && bytes[size - 1] != '[') append(text, ",", 1);
    if (key == NULL) return;
    print_string(text, key);
    append(text, ":", 1);
}

void quern__inspect_open(quern__inspect_text *text, const char *key, char bracket)
{
    begin_value(text, key);
    append(text, &bracket, 1);
}

void quern__inspect_close(quern__inspect_text *text, char bracket)
{
    append(text, &bracket, 1);
}

void quern__inspect_put_text(quern__inspect_text *text, const char *key, const char *value)
{
    begin_value(text, key);
    if (value != NULL)
        print_string(text, value);
    else
        print(text, "null");
}

void quern__inspect_put_count(quern__inspect_text *text, const char *key, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    begin_value(text, key);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    append(text, digits + at, sizeof digits - at);
}

void quern__inspect_put_integer(quern__inspect_text *text, const char *key, int64_t value)
{
    char digits[32];
    begin_value(text, key);
    snprintf(digits, sizeof digits, "%" PRId64, value);
    print(text, digits);
}

/* The locale of the program may have a comma as its decimal point. */
void quern__inspect_put_real(quern__inspect_text *text, const char *key, double value)
{
    char digits[40];
    begin_value(text, key);
    if (!isfinite(value)) {
        print(text, "null");
        return;
    }
    snprintf(digits, sizeof digits, "%.9g", value);
    for (char *at = digits; *at != '\0'; at++)
        if (*at == ',') *at = '.';
    print(text, digits);
}

void quern__inspect_put_flag(quern__inspect_text *text, const char *key, bool value)
{
    begin_value(text, key);
    print(text, value ? "true" : "false");
}

void quern__inspect_put_hash(quern__inspect_text *text, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "0x%016" PRIx64, value);
    quern__inspect_put_text(text, key, digits);
}

quern_sink quern__inspect_put_json(quern__inspect_text *text, const char *key)
{
    begin_value(text, key);
    return (quern_sink){append, text};
}

void quern__inspect_put_entity(quern__inspect_text *text, const char *key, quern_entity entity)
{
    char handle[32];
    if (quern_entity_is_null(entity)) {
        quern__inspect_put_text(text, key, NULL);
        return;
    }
    snprintf(handle, sizeof handle, "%" PRIu32 ":%" PRIu32, quern_entity_index(entity),
             quern_entity_generation(entity));
    quern__inspect_put_text(text, key, handle);
}

void quern__inspect_put_path(quern__inspect_text *text, const char *key, const quern_world *world,
                             quern_entity entity)
{
    char path[1024];
    quern_text_buffer buffer = {path, sizeof path, 0};
    const bool has_path = quern_entity_is_alive(world, entity) &&
                          quern_entity_get_path(world, entity, quern_sink_text(&buffer)) == QUERN_OK;
    quern__inspect_put_text(text, key, has_path ? path : NULL);
}

/* ----------------------------------------------------------------------------------------- arguments */

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

/* Decodes the bytes up to one of `ends` or the end of the text, and advances *text to it. Returns the decoded byte
 * count, or -1 if the encoding is wrong or the result does not fit `room`. */
static int decode(const char **text, const char *ends, char *target, size_t room)
{
    const char *at = *text;
    size_t count = 0;
    while (*at != '\0' && strchr(ends, *at) == NULL) {
        char byte = *at++;
        if (byte == '+') byte = ' ';
        if (byte == '%') {
            const int high = digit_of(at[0]), low = high < 0 ? -1 : digit_of(at[1]);
            if (low < 0 || (high == 0 && low == 0)) return -1;
            byte = (char)(high * 16 + low);
            at += 2;
        }
        if (count + 1 >= room) return -1;
        target[count++] = byte;
    }
    target[count] = '\0';
    *text = at;
    return (int)count;
}

bool quern__inspect_arguments_read(quern__inspect_arguments *arguments, const char *text)
{
    size_t used = 0;
    arguments->count = 0;
    while (text != NULL && *text != '\0') {
        const uint32_t i = arguments->count;
        if (i == QUERN__INSPECT_ARGUMENTS) return false;
        for (int part = 0; part < 2; part++) {
            char *target = arguments->text + used;
            if (used == sizeof arguments->text) return false;
            const int count = decode(&text, part == 0 ? "=&" : "&", target, sizeof arguments->text - used);
            if (count < 0) return false;
            used += (size_t)count + 1;
            (part == 0 ? arguments->names : arguments->values)[i] = target;
            if (part == 0 && *text == '=') text++;
        }
        arguments->count++;
        if (*text == '&') text++;
    }
    return true;
}

const char *quern__inspect_argument(const quern__inspect_arguments *arguments, const char *name)
{
    for (uint32_t i = 0; i < arguments->count; i++)
        if (strcmp(arguments->names[i], name) == 0) return arguments->values[i];
    return NULL;
}
