/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A JSON parser (RFC 8259) that loses nothing: numbers keep their text, so 64-bit integers and floats are read
 * from the digits themselves. It rejects input that programs read differently: a key that occurs twice in an
 * object, and the character U+0000, which a C string cannot hold.
 *
 * The items of a document are one array in the order of the text. A container is followed by its members or
 * elements, each with its own contents; `span` leads from an item to the next one that it does not contain. Strings
 * are decoded in place in a copy of the text: no escape is shorter than its decoded bytes. */

#include "kit/json_internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_PARENT UINT32_MAX

enum { LEAST_ITEMS = 64, FEW_MEMBERS = 8 };

typedef struct json_parser {
    quern__json_document *document;
    char *text; /* the document's copy of the text, zero-terminated */
    size_t at, bytes;
    /* index of the innermost open container; its `span` holds the index of the enclosing one */
    uint32_t open;
    const char *key; /* key of the next value, or NULL */
} json_parser;

/* --------------------------------------------------------------------------------------------- errors */

/* Line and column of a byte of a text, from 1. */
typedef struct text_place {
    uint32_t line;
    size_t column;
} text_place;

static text_place place_of(const char *source, size_t at)
{
    text_place place = {.line = 1};
    size_t start = 0;
    for (size_t i = 0; i < at; i++)
        if (source[i] == '\n') place.line++, start = i + 1;
    place.column = at - start + 1;
    return place;
}

static quern_result fail_at(const json_parser *parser, size_t at, const char *expected)
{
    const text_place place = place_of(parser->document->source, at);
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "the text is not valid JSON at byte %zu of %zu (line %u, column %zu): %s", at,
                            parser->bytes, place.line, place.column, expected);
}

static quern_result fail_memory(const json_parser *parser)
{
    return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to parse JSON of %zu bytes",
                            parser->bytes);
}

/* -------------------------------------------------------------------------------------------- strings */

/* Reads the four digits after \u. Returns -1 if they are not hexadecimal. */
static int32_t code_unit(const char *at)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = quern__json_hexadecimal(at[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static size_t put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    const size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((0xF00U >> bytes) | code);
    return bytes;
}

/* Decodes a \u escape and, if it is a high surrogate, the low surrogate after it. parser->at: the 'u'. */
static quern_result decode_code(json_parser *parser, char **to)
{
    const char *at = parser->text + parser->at;
    const int32_t unit = code_unit(at + 1);
    uint32_t code = (uint32_t)unit;
    if (unit < 0) return fail_at(parser, parser->at, "four hexadecimal digits were expected after \\u");
    if (unit == 0) return fail_at(parser, parser->at, "strings with the character U+0000 cannot be read");
    if (unit >= 0xD800 && unit < 0xE000) {
        const int32_t second = at[5] == '\\' && at[6] == 'u' ? code_unit(at + 7) : -1;
        if (unit >= 0xDC00 || second < 0xDC00 || second >= 0xE000)
            return fail_at(parser, parser->at, "an unpaired surrogate is not a character");
        code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)second - 0xDC00);
        parser->at += 6;
    }
    parser->at += 5;
    *to += put_utf8(*to, code);
    return QUERN_OK;
}

static quern_result decode_escape(json_parser *parser, char **to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char name = parser->text[++parser->at];
    if (name == 'u') return decode_code(parser, to);
    const char *found = name != '\0' ? strchr(names, name) : NULL;
    if (found == NULL) return fail_at(parser, parser->at, "JSON has no such escape");
    *(*to)++ = values[found - names];
    parser->at++;
    return QUERN_OK;
}

/* Parses a string. parser->at: its opening quote. *out: the zero-terminated decoded text. */
static quern_result parse_string(json_parser *parser, const char **out, uint32_t *out_bytes)
{
    char *const first = parser->text + parser->at + 1, *to = first;
    while ((unsigned char)*to >= ' ' && *to != '"' && *to != '\\')
        to++; /* bytes before the first escape need not be moved */
    for (parser->at = (size_t)(to - parser->text); parser->text[parser->at] != '"';) {
        const char byte = parser->text[parser->at];
        if (byte == '\\') {
            const quern_result result = decode_escape(parser, &to);
            if (result != QUERN_OK) return result;
            continue;
        }
        if ((unsigned char)byte < ' ')
            return fail_at(parser, parser->at,
                           parser->at < parser->bytes
                               ? "control characters in strings must be written as escapes"
                               : "a string does not end");
        *to++ = byte;
        parser->at++;
    }
    parser->at++;
    *to = '\0';
    *out = first;
    *out_bytes = (uint32_t)(to - first);
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- numbers */

static size_t skip_digits(const char *text, size_t at)
{
    while (text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* Returns the end of the number that begins at `at`, or `at` if no number does. */
static size_t number_end(const char *text, size_t at)
{
    const size_t begin = at, first = at + (text[at] == '-');
    at = text[first] == '0' ? first + 1 : skip_digits(text, first);
    if (at == first) return begin;
    if (text[at] == '.') {
        const size_t end = skip_digits(text, at + 1);
        if (end == at + 1) return begin;
        at = end;
    }
    if (text[at] != 'e' && text[at] != 'E') return at;
    at += text[at + 1] == '-' || text[at + 1] == '+' ? 2 : 1;
    const size_t end = skip_digits(text, at);
    return end > at ? end : begin;
}

/* --------------------------------------------------------------------------------------------- values */

static void skip_space(json_parser *parser)
{
    const char *at = parser->text + parser->at;
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
        at++;
    parser->at = (size_t)(at - parser->text);
}

/* Appends an item with the key that was parsed last. Returns NULL if there is no memory. */
static quern__json_item *append(json_parser *parser, quern__json_kind kind)
{
    quern__json_document *document = parser->document;
    if (document->count == document->capacity) {
        const quern_allocator *allocator = &document->allocator;
        const uint32_t capacity = document->capacity > 0 ? 2 * document->capacity : LEAST_ITEMS;
        quern__json_item *items =
            allocator->allocate(allocator->user_data, capacity * sizeof *items, _Alignof(max_align_t));
        if (items == NULL) return NULL;
        if (document->count > 0) memcpy(items, document->items, document->count * sizeof *items);
        if (document->items != NULL)
            allocator->release(allocator->user_data, document->items, document->capacity * sizeof *items,
                               _Alignof(max_align_t));
        document->items = items;
        document->capacity = capacity;
    }
    if (parser->open != NO_PARENT) document->items[parser->open].count++;
    quern__json_item *item = &document->items[document->count++];
    *item = (quern__json_item){.key = parser->key, .kind = kind, .span = 1};
    parser->key = NULL;
    return item;
}

/* Parses null, true, false or a number. */
static quern_result parse_word(json_parser *parser)
{
    static const struct {
        const char *word;
        quern__json_kind kind;
    } words[] = {{"null", QUERN__JSON_NULL}, {"true", QUERN__JSON_TRUE}, {"false", QUERN__JSON_FALSE}};
    const char *text = parser->text + parser->at;
    quern__json_kind kind = QUERN__JSON_NUMBER;
    size_t bytes = number_end(parser->text, parser->at) - parser->at;
    for (uint32_t i = 0; i < sizeof words / sizeof *words && bytes == 0; i++)
        if (strncmp(text, words[i].word, strlen(words[i].word)) == 0) {
            kind = words[i].kind;
            bytes = strlen(words[i].word);
        }
    if (bytes == 0) return fail_at(parser, parser->at, "a value was expected");
    quern__json_item *item = append(parser, kind);
    if (item == NULL) return fail_memory(parser);
    item->text = text;
    item->bytes = (uint32_t)bytes;
    parser->at += bytes;
    return QUERN_OK;
}

/* Parses a scalar value, or opens a container. */
static quern_result parse_value(json_parser *parser)
{
    const char byte = parser->text[parser->at];
    if (byte == '"') {
        const char *text = NULL;
        uint32_t bytes = 0;
        const quern_result result = parse_string(parser, &text, &bytes);
        if (result != QUERN_OK) return result;
        quern__json_item *item = append(parser, QUERN__JSON_STRING);
        if (item == NULL) return fail_memory(parser);
        item->text = text;
        item->bytes = bytes;
        return QUERN_OK;
    }
    if (byte != '{' && byte != '[') return parse_word(parser);
    quern__json_item *item = append(parser, byte == '{' ? QUERN__JSON_OBJECT : QUERN__JSON_ARRAY);
    if (item == NULL) return fail_memory(parser);
    item->span = parser->open;
    item->text = parser->text + parser->at;
    parser->open = parser->document->count - 1;
    parser->at++;
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- containers */

static int compare_keys(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static quern_result fail_repeated_key(const json_parser *parser, const char *key, const char *other_key)
{
    char message[128];
    const char *later = key > other_key ? key : other_key;
    (void)snprintf(message, sizeof message, "the object has the key '%.63s' already", later);
    return fail_at(parser, (size_t)(later - parser->text), message);
}

static quern_result check_few_keys(const json_parser *parser, const quern__json_item *object)
{
    const char *keys[FEW_MEMBERS];
    uint32_t count = 0;
    const quern__json_item *item = quern__json_first(object);
    for (; item != NULL; item = quern__json_next(object, item)) {
        for (uint32_t i = 0; i < count; i++)
            if (strcmp(keys[i], item->key) == 0) return fail_repeated_key(parser, keys[i], item->key);
        keys[count++] = item->key;
    }
    return QUERN_OK;
}

/* Fails if a key occurs twice. The object's span must be set. */
static quern_result check_keys(const json_parser *parser, const quern__json_item *object)
{
    if (object->count <= FEW_MEMBERS) return check_few_keys(parser, object);
    const quern_allocator *allocator = &parser->document->allocator;
    const size_t bytes = object->count * sizeof(const char *);
    const char **keys = allocator->allocate(allocator->user_data, bytes, _Alignof(max_align_t));
    if (keys == NULL) return fail_memory(parser);
    uint32_t count = 0;
    quern_result result = QUERN_OK;
    const quern__json_item *item = quern__json_first(object);
    for (; item != NULL; item = quern__json_next(object, item))
        keys[count++] = item->key;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (uint32_t i = 1; i < count && result == QUERN_OK; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0) result = fail_repeated_key(parser, keys[i - 1], keys[i]);
    allocator->release(allocator->user_data, keys, bytes, _Alignof(max_align_t));
    return result;
}

static quern_result parse_key(json_parser *parser)
{
    uint32_t bytes;
    if (parser->text[parser->at] != '"') return fail_at(parser, parser->at, "a key in quotes was expected");
    const quern_result result = parse_string(parser, &parser->key, &bytes);
    if (result != QUERN_OK) return result;
    skip_space(parser);
    if (parser->text[parser->at] != ':') return fail_at(parser, parser->at, "':' was expected after a key");
    parser->at++;
    skip_space(parser);
    return QUERN_OK;
}

/* Parses the next element or member of the open container, or its end. */
static quern_result parse_item(json_parser *parser)
{
    quern__json_item *container = &parser->document->items[parser->open];
    const bool is_object = container->kind == QUERN__JSON_OBJECT;
    if (parser->text[parser->at] == (is_object ? '}' : ']')) {
        const uint32_t outer = container->span;
        container->span = parser->document->count - parser->open;
        parser->open = outer;
        parser->at++;
        return is_object ? check_keys(parser, container) : QUERN_OK;
    }
    if (container->count > 0) {
        if (parser->text[parser->at] != ',')
            return fail_at(parser, parser->at,
                           is_object ? "',' or '}' was expected" : "',' or ']' was expected");
        parser->at++;
        skip_space(parser);
    }
    const quern_result result = is_object ? parse_key(parser) : QUERN_OK;
    return result == QUERN_OK ? parse_value(parser) : result;
}

/* --------------------------------------------------------------------------------------------- calls */

void quern__json_document_close(quern__json_document *document)
{
    const quern_allocator *allocator = &document->allocator;
    if (document->items != NULL)
        allocator->release(allocator->user_data, document->items,
                           document->capacity * sizeof *document->items, _Alignof(max_align_t));
    if (document->text != NULL)
        allocator->release(allocator->user_data, document->text, document->text_bytes,
                           _Alignof(max_align_t));
    *document = (quern__json_document){.count = 0};
}

quern_result quern__json_parse(const quern_allocator *allocator, const char *text, size_t bytes,
                               quern__json_document *out_document)
{
    *out_document = (quern__json_document){.allocator = *allocator, .source = text};
    json_parser parser = {.document = out_document, .bytes = bytes, .open = NO_PARENT};
    if (text == NULL) return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "'text' is NULL");
    if (bytes >= UINT32_MAX)
        return quern__json_fail(QUERN_ERROR_LIMIT, "JSON of %zu bytes exceeds 4 GiB: split it", bytes);
    out_document->text_bytes = bytes + 1;
    out_document->text =
        allocator->allocate(allocator->user_data, out_document->text_bytes, _Alignof(max_align_t));
    if (out_document->text == NULL) return fail_memory(&parser);
    memcpy(out_document->text, text, bytes);
    out_document->text[bytes] = '\0';
    parser.text = out_document->text;
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    if (bytes >= 3 && memcmp(parser.text, byte_order_mark, 3) == 0) parser.at = 3;
    skip_space(&parser);
    quern_result result = parse_value(&parser);
    while (result == QUERN_OK && parser.open != NO_PARENT) {
        skip_space(&parser);
        result = parse_item(&parser);
    }
    skip_space(&parser);
    if (result == QUERN_OK && parser.at != bytes)
        result = fail_at(&parser, parser.at, "the end of the text was expected");
    if (result != QUERN_OK) quern__json_document_close(out_document);
    return result;
}

quern_result quern__json_prefix_error(quern_result result, const char *prefix)
{
    char message[512];
    if (result == QUERN_OK) return QUERN_OK;
    strncpy(message, quern_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    return quern__json_fail(result, "%s: %s", prefix, message);
}

/* Decoding moves no first byte of a string, so each item is where it was in the source. */
quern_result quern__json_add_place(const quern__json_document *document, const quern__json_item *item,
                                   quern_result result)
{
    char prefix[64];
    if (result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY || item == NULL) return result;
    const bool is_quoted = item->key != NULL || item->kind == QUERN__JSON_STRING;
    const char *at = item->key != NULL ? item->key : item->text;
    const text_place place = place_of(document->source, (size_t)(at - document->text) - is_quoted);
    (void)snprintf(prefix, sizeof prefix, "line %u, column %zu", place.line, place.column);
    return quern__json_prefix_error(result, prefix);
}

const quern__json_item *quern__json_member(const quern__json_item *object, const char *key)
{
    if (!quern__json_is(object, QUERN__JSON_OBJECT)) return NULL;
    const quern__json_item *item = quern__json_first(object);
    while (item != NULL && strcmp(item->key, key) != 0)
        item = quern__json_next(object, item);
    return item;
}

/* The digits of a number: digit k has the value 10^(first_place - k). */
typedef struct decimal {
    const char *digits; /* may contain a decimal point */
    size_t count;       /* number of digits */
    int64_t first_place;
} decimal;

/* Limit of exponents. With a larger one, no number is whole or in range except 0, as no text has so many digits. */
#define FAR_EXPONENT INT64_C(1000000000000)

static decimal decimal_of(const quern__json_item *number)
{
    const char *end = number->text + number->bytes, *at = number->text + (number->text[0] == '-');
    decimal found = {.digits = at, .first_place = -1};
    for (bool is_fraction = false; at < end && *at != 'e' && *at != 'E'; at++) {
        is_fraction |= *at == '.';
        found.count += *at != '.';
        found.first_place += !is_fraction;
    }
    if (at == end) return found;
    int64_t exponent = 0;
    const bool is_negative = at[1] == '-';
    for (at += is_negative || at[1] == '+' ? 2 : 1; at < end; at++)
        if (exponent < FAR_EXPONENT) exponent = exponent * 10 + (*at - '0');
    found.first_place += is_negative ? -exponent : exponent;
    return found;
}

bool quern__json_as_whole(const quern__json_item *item, char text[QUERN__JSON_WHOLE_BYTES])
{
    enum { MOST_DIGITS = 20 };
    if (!quern__json_is(item, QUERN__JSON_NUMBER)) return false;
    const decimal number = decimal_of(item);
    const char *at = number.digits;
    uint32_t used = 0;
    int64_t place = number.first_place;
    if (item->text[0] == '-') text[used++] = '-';
    const uint32_t begin = used;
    for (size_t k = 0; k < number.count; k++, place--, at++) {
        if (*at == '.') at++;
        if (*at == '0' && (used == begin || place < 0)) continue;
        if (place < 0 || place + (int64_t)(used - begin) >= MOST_DIGITS) return false;
        text[used++] = *at;
    }
    for (; used > begin && place >= 0; place--)
        text[used++] = '0';
    if (used == begin) text[used++] = '0';
    text[used] = '\0';
    return true;
}

bool quern__json_as_count(const quern__json_item *item, uint64_t limit, uint64_t *out_count)
{
    char text[QUERN__JSON_WHOLE_BYTES];
    uint64_t count = 0;
    if (!quern__json_as_whole(item, text)) return false;
    for (const char *at = text + (text[0] == '-'); *at != '\0'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (digit > limit || count > (limit - digit) / 10) return false;
        count = count * 10 + digit;
    }
    *out_count = count;
    return text[0] != '-' || count == 0;
}
