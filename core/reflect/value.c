/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that describe the flags of component types, and those that write and read values
 * as text. */
#include "core/entities/entities_internal.h"

#include "core/base/text.h"
#include "core/reflect/reflect_internal.h"
#include "core/storage/type_internal.h"

#include <quern/reflect.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct flag_functions {
    bool (*is_listed)(const quern_world *world, quern_entity entity, quern_component component);
    quern_result (*list)(quern_commands *commands, quern_entity entity, quern_component component);
} flag_functions;

#define FUNCTIONS(flag, member, ...) {quern__##member##_is_listed, quern__##member##_list},
static const flag_functions functions_of[QUERN__ROW_FLAG_COUNT] = {QUERN__ROW_FLAGS(FUNCTIONS)};

uint32_t quern_component_flag_count(void)
{
    return QUERN__COLUMN_FLAG_COUNT;
}

quern_result quern_component_flag_get_info(uint32_t index, quern_flag_info *out_info)
{
    static const char function[] = "quern_component_flag_get_info";
    if (out_info == NULL) return quern__fail_null(function, "out_info");
    if (index >= QUERN__COLUMN_FLAG_COUNT)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: index %u is out of range: component types have %d flags", function, index,
                           QUERN__COLUMN_FLAG_COUNT);
    const quern__column_flag *flag = &quern__column_flags[index];
    *out_info = (quern_flag_info){.name = flag->name,
                                  .with = flag->with,
                                  .without = flag->without,
                                  .info_offset_bytes = flag->info_offset_bytes,
                                  .list_name = flag->list_name};
    if (index >= QUERN__ROW_FLAG_COUNT) return QUERN_OK;
    out_info->is_listed = functions_of[index].is_listed;
    out_info->list = functions_of[index].list;
    return QUERN_OK;
}

static size_t offset_of(const quern__path *path, uint32_t i)
{
    return path->field->offset_bytes + (size_t)quern__field_bytes(path->field->type) * (path->first + i);
}

/* ----------------------------------------------------------------------------------------- writing */

static const char *name_of(const quern_field *field, uint64_t bits)
{
    for (const quern_named_value *value = field->values; value != NULL && value->name != NULL; value++)
        if ((uint64_t)value->value == bits) return value->name;
    return NULL;
}

quern_result quern__value_print(const quern_world *world, const quern__path *path, const void *value,
                                quern_sink sink, const char *function)
{
    quern__printer printer;
    const char *bytes = value;
    quern__printer_open(&printer, sink);
    if (path->field->type == QUERN_FIELD_TEXT) {
        const char *text = bytes + path->field->offset_bytes, *end = memchr(text, '\0', path->field->count);
        quern__print_bytes(&printer, text, end != NULL ? (size_t)(end - text) : path->field->count);
        return quern__printer_close(&printer, function);
    }
    if (path->is_array) quern__print_bytes(&printer, "[", 1);
    for (uint32_t i = 0; i < path->count; i++) {
        if (i > 0) quern__print_bytes(&printer, ", ", 2);
        const char *at = bytes + offset_of(path, i);
        const quern_field *field = path->field;
        const uint64_t bits = quern__field_load(field->type, at);
        const char *name = name_of(field, bits);
        char text[QUERN__NUMBER_BYTES];
        if (field->type == QUERN_FIELD_ENTITY) {
            quern__handle_print(world, (quern_entity){bits}, !path->is_array, &printer);
        } else if (field->type == QUERN_FIELD_BOOL) {
            quern__print_bytes(&printer, bits != 0 ? "true" : "false", bits != 0 ? 4 : 5);
        } else if (name != NULL) {
            quern__print_bytes(&printer, name, strlen(name));
        } else {
            quern__print_bytes(&printer, text, quern__number_write(field->type, bits, text));
        }
    }
    if (path->is_array) quern__print_bytes(&printer, "]", 1);
    return quern__printer_close(&printer, function);
}

/* ----------------------------------------------------------------------------------------- reading */

static quern_result fail_element(const quern__path *path, const char *text, size_t bytes,
                                 bool is_out_of_range)
{
    char expected[256];
    const quern_field *field = path->field;
    int64_t least, greatest;
    expected[0] = '\0';
    if (field->type == QUERN_FIELD_BOOL) {
        quern__append(expected, sizeof expected, "true or false");
    } else if (field->type == QUERN_FIELD_ENTITY) {
        quern__append(expected, sizeof expected, "an entity as index:generation%s, or none",
                      !path->is_array ? ", as a path of names that leads to one, such as /tower/gun" : "");
    } else {
        for (const quern_named_value *value = field->values; value != NULL && value->name != NULL; value++)
            quern__append(expected, sizeof expected, "%s, ", value->name);
        const bool is_integer = quern__field_integer_range(field->type, &least, &greatest);
        quern__append(expected, sizeof expected, "%s%s", field->values != NULL ? "or " : "",
                      is_integer ? "a whole number" : "a number");
        if (field->minimum != 0 || field->maximum != 0)
            quern__append(expected, sizeof expected, " from %g to %g", field->minimum, field->maximum);
        else if (field->type == QUERN_FIELD_U64)
            quern__append(expected, sizeof expected, " from 0 to %" PRIu64, (uint64_t)greatest);
        else if (is_integer)
            quern__append(expected, sizeof expected, " from %" PRId64 " to %" PRId64, least, greatest);
        if (field->unit != NULL) quern__append(expected, sizeof expected, " (%s)", field->unit);
    }
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' of '%s' %s '%.*s': expected %s", path->text,
                       path->type->name, is_out_of_range ? "cannot hold" : "cannot be",
                       bytes < 60 ? (int)bytes : 60, text, expected);
}

static bool find_named(const quern_field *field, const char *text, size_t bytes, uint64_t *out_bits)
{
    for (const quern_named_value *value = field->values; value != NULL && value->name != NULL; value++) {
        if (strlen(value->name) != bytes || memcmp(value->name, text, bytes) != 0) continue;
        *out_bits = (uint64_t)value->value;
        return true;
    }
    return false;
}

static bool read_bool(const char *text, size_t bytes, uint64_t *out_bits)
{
    static const char *const words[] = {"false", "true", "0", "1"};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(words); i++) {
        if (strlen(words[i]) != bytes || memcmp(words[i], text, bytes) != 0) continue;
        *out_bits = i & 1;
        return true;
    }
    return false;
}

static bool is_in_range(const quern_field *field, uint64_t bits)
{
    if (field->minimum == 0 && field->maximum == 0) return true;
    const double value = quern__field_real(field->type, bits);
    return value >= field->minimum && value <= field->maximum;
}

/* Parses one element. `text` need not be zero-terminated. */
static quern_result read_element(const quern_world *world, const quern__path *path, const char *text,
                                 size_t bytes, uint64_t *out_bits)
{
    const quern_field *field = path->field;
    quern_entity entity;
    if (field->type == QUERN_FIELD_ENTITY) {
        if (!quern__handle_read(world, text, bytes, !path->is_array, &entity))
            return fail_element(path, text, bytes, false);
        *out_bits = entity.bits;
        return QUERN_OK;
    }
    if (field->type == QUERN_FIELD_BOOL)
        return read_bool(text, bytes, out_bits) ? QUERN_OK : fail_element(path, text, bytes, false);
    const quern__number_state state = find_named(field, text, bytes, out_bits)
                                          ? QUERN__NUMBER_OK
                                          : quern__number_read(field->type, text, bytes, out_bits);
    if (state != QUERN__NUMBER_OK)
        return fail_element(path, text, bytes, state == QUERN__NUMBER_OUT_OF_RANGE);
    return is_in_range(field, *out_bits) ? QUERN_OK : fail_element(path, text, bytes, true);
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Leaves out white space around an element, but not after a path, of which the last name may end in white space. */
static void trim(const quern__path *path, const char **text, size_t *bytes)
{
    while (*bytes > 0 && is_space(**text))
        (*text)++, (*bytes)--;
    if (path->field->type == QUERN_FIELD_ENTITY && *bytes > 0 && **text == '/') return;
    while (*bytes > 0 && is_space((*text)[*bytes - 1]))
        (*bytes)--;
}

static quern_result fail_array(const quern__path *path)
{
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "'%s' of '%s' is an array: expected %u elements in brackets, such as [1, 2, 3], or an "
        "element alone, as %s[0]",
        path->text, path->type->name, path->count, path->text);
}

/* Parses all elements of an array, "[1, 2, 3]", and stores them in the value. value: NULL to only check the text. */
static quern_result read_array(const quern_world *world, const quern__path *path, const char *text,
                               size_t bytes, char *value)
{
    if (bytes < 2 || text[0] != '[' || text[bytes - 1] != ']') return fail_array(path);
    const char *at = text + 1, *end = text + bytes - 1;
    for (uint32_t i = 0; i < path->count; i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *element = at;
        const bool is_last = i + 1 == path->count;
        if ((comma == NULL) != is_last) return fail_array(path);
        size_t element_bytes = (size_t)((is_last ? end : comma) - at);
        uint64_t bits = 0;
        trim(path, &element, &element_bytes);
        const quern_result result = read_element(world, path, element, element_bytes, &bits);
        if (result != QUERN_OK) return result;
        if (value != NULL) quern__field_store(path->field->type, value + offset_of(path, i), bits);
        at = is_last ? end : comma + 1;
    }
    return QUERN_OK;
}

static quern_result check_characters(const quern__path *path, const char *text)
{
    const size_t bytes = strlen(text);
    if (bytes >= path->field->count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' of '%s' has room for %u bytes and a final 0, and the text '%.32s%s' has "
                           "%zu: shorten the text",
                           path->text, path->type->name, path->field->count - 1, text,
                           bytes > 32 ? "..." : "", bytes);
    for (const char *at = text; *at != '\0';) {
        const uint32_t step = quern__utf8_bytes(at);
        if (step == 0)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "'%s' of '%s' must be UTF-8: byte %zu of the text (%#x) begins no character",
                               path->text, path->type->name, (size_t)(at - text),
                               (unsigned)(unsigned char)*at);
        at += step;
    }
    return QUERN_OK;
}

quern_result quern__value_set_text(const quern_world *world, const quern__path *path, void *value,
                                   const char *text)
{
    size_t bytes = strlen(text);
    uint64_t bits = 0;
    if (path->field->is_read_only)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' of '%s' is read only: a text cannot set it",
                           path->text, path->type->name);
    if (path->field->type == QUERN_FIELD_TEXT) {
        const quern_result result = check_characters(path, text);
        if (result != QUERN_OK || value == NULL) return result;
        char *at = (char *)value + path->field->offset_bytes;
        memset(at, 0, path->field->count);
        memcpy(at, text, strlen(text) + 1);
        return QUERN_OK;
    }
    trim(path, &text, &bytes);
    if (path->is_array) {
        const quern_result result = read_array(world, path, text, bytes, NULL);
        return result == QUERN_OK && value != NULL ? read_array(world, path, text, bytes, value) : result;
    }
    const quern_result result = read_element(world, path, text, bytes, &bits);
    if (result == QUERN_OK && value != NULL)
        quern__field_store(path->field->type, (char *)value + offset_of(path, 0), bits);
    return result;
}

/* -------------------------------------------------------------------------------------- public calls */

quern_result quern_value_get_text(const quern_world *world, const quern_type_info *type, const void *value,
                                  const char *path, quern_sink sink)
{
    static const char function[] = "quern_value_get_text";
    quern__path found;
    if (world == NULL) return quern__fail_null(function, "world");
    if (type == NULL) return quern__fail_null(function, "type");
    if (value == NULL) return quern__fail_null(function, "value");
    if (path == NULL) return quern__fail_null(function, "path");
    quern_result result = quern__check_sink(sink, function);
    if (result == QUERN_OK) result = quern__in_call(quern__path_find(type, path, &found), function);
    return result == QUERN_OK ? quern__value_print(world, &found, value, sink, function) : result;
}

quern_result quern_value_set_text(const quern_world *world, const quern_type_info *type, void *value,
                                  const char *path, const char *text)
{
    static const char function[] = "quern_value_set_text";
    quern__path found;
    if (world == NULL) return quern__fail_null(function, "world");
    if (type == NULL) return quern__fail_null(function, "type");
    if (value == NULL) return quern__fail_null(function, "value");
    if (path == NULL) return quern__fail_null(function, "path");
    if (text == NULL) return quern__fail_null(function, "text");
    quern_result result = quern__path_find(type, path, &found);
    if (result == QUERN_OK) result = quern__value_set_text(world, &found, value, text);
    return quern__in_call(result, function);
}
