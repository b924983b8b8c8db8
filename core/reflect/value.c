/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that describe the flags of component types, and those that write and read values
 * as text. */
#include "core/entities/entities_internal.h"

#include "core/base/text.h"
#include "core/reflect/reflect_internal.h"
#include "core/storage/list_values.h"
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

static quern_list list_at(const void *value, const quern_field *field)
{
    quern_list list; /* by memcpy: fields need not be aligned */
    memcpy(&list, (const char *)value + field->offset_bytes, sizeof list);
    return list;
}

static quern_result check_index(const quern__path *path, const quern_list *list)
{
    if (path->list_index < list->count) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%.63s': the list '%s' of '%s' has %u elements: name one from 0 on", path->text,
                       path->list->name, path->type->name, list->count);
}

/* Prints a whole list. Only elements without white space have a text that can be read again. */
static void print_list(const quern_world *world, const quern_field *field, const quern_list *list,
                       quern__printer *printer)
{
    const quern_field_type type = field->element->type;
    if (type == 0 || type == QUERN_FIELD_STRING) {
        char text[48];
        const int bytes = snprintf(text, sizeof text, "%u %s%s", list->count,
                                   type == 0 ? "element" : "string", list->count == 1 ? "" : "s");
        quern__print_bytes(printer, text, (size_t)bytes);
        return;
    }
    quern__print_bytes(printer, "[", 1);
    for (uint32_t i = 0; i < list->count; i++) {
        char text[QUERN__NUMBER_BYTES];
        const uint64_t bits =
            quern__field_load(type, (const char *)list->items + (size_t)i * quern__field_bytes(type));
        if (i > 0) quern__print_bytes(printer, ", ", 2);
        if (type == QUERN_FIELD_ENTITY)
            quern__handle_print(world, (quern_entity){bits}, false, printer);
        else if (type == QUERN_FIELD_BOOL)
            quern__print_bytes(printer, bits != 0 ? "true" : "false", bits != 0 ? 4 : 5);
        else
            quern__print_bytes(printer, text, quern__number_write(type, bits, text));
    }
    quern__print_bytes(printer, "]", 1);
}

quern_result quern__value_print(const quern_world *world, const quern__path *path, const void *value,
                                quern_sink sink, const char *function)
{
    quern__printer printer;
    const char *bytes = value;
    if (path->list != NULL) {
        const quern_list list = list_at(value, path->list);
        const quern_result result = check_index(path, &list);
        if (result != QUERN_OK) return quern__in_call(result, function);
        bytes = (const char *)list.items +
                (size_t)path->list_index * quern__list_element_bytes(quern__field_element(path->list));
    }
    quern__printer_open(&printer, sink);
    if (quern__field_is_list(path->field->type)) {
        for (uint32_t i = 0; i < path->count; i++) {
            quern_list list;
            memcpy(&list, bytes + offset_of(path, i), sizeof list);
            if (i > 0) quern__print_bytes(&printer, ", ", 2);
            if (path->field->type == QUERN_FIELD_LIST)
                print_list(world, path->field, &list, &printer);
            else if (list.count > 0)
                quern__print_bytes(&printer, list.items, list.count);
        }
        return quern__printer_close(&printer, function);
    }
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

/* Leaves out white space around an element, but not after a path, of which the last name may end in white space. */
static void trim(const quern__path *path, const char **text, size_t *bytes)
{
    while (*bytes > 0 && quern__is_space(**text))
        (*text)++, (*bytes)--;
    if (path->field->type == QUERN_FIELD_ENTITY && *bytes > 0 && **text == '/') return;
    while (*bytes > 0 && quern__is_space((*text)[*bytes - 1]))
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
    if (path->field->type == QUERN_FIELD_TEXT && bytes >= path->field->count)
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

/* Parses the elements of a list, "[1, 2, 3]", into a new one. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
static quern_result read_list(const quern_world *world, const quern__path *path, const char *text,
                              size_t bytes, quern_list *out_list)
{
    const quern_element *element = path->field->element;
    const quern_field field = {
        .name = path->field->name, .type = element->type, .count = 1, .unit = path->field->unit};
    quern__path items = {
        .type = path->type, .field = &field, .text = path->text, .count = 1, .is_array = true};
    if (element->type == 0 || element->type == QUERN_FIELD_STRING || bytes < 2 || text[0] != '[' ||
        text[bytes - 1] != ']')
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            element->type == 0 || element->type == QUERN_FIELD_STRING
                ? "'%s' of '%s' is a list of structs or strings, which no text sets as a whole: set "
                  "an element alone, as %s[0]"
                : "'%s' of '%s' is a list: expected its elements in brackets, such as [1, 2, "
                  "3], or an element alone, as %s[0]",
            path->text, path->type->name, path->text);
    const char *at = text + 1, *end = text + bytes - 1;
    size_t blank_bytes = (size_t)(end - at);
    const char *blank = at;
    trim(&items, &blank, &blank_bytes);
    quern_result result = QUERN_OK;
    while (blank_bytes > 0 && result == QUERN_OK) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *one = at;
        size_t one_bytes = (size_t)((comma != NULL ? comma : end) - at);
        uint64_t bits = 0;
        char stored[sizeof bits];
        trim(&items, &one, &one_bytes);
        result = read_element(world, &items, one, one_bytes, &bits);
        quern__field_store(element->type, stored, bits);
        if (result == QUERN_OK)
            result = quern_list_push(out_list, quern__field_bytes(element->type), stored);
        if (comma == NULL) break;
        at = comma + 1;
    }
    return result;
}

/* Sets a string or a whole list at `at`. at: NULL to only check the text. */
static quern_result set_list(const quern_world *world, const quern__path *path, char *at, const char *text)
{
    quern_list list = {.count = 0};
    size_t bytes = strlen(text);
    quern_result result;
    if (path->is_array) return fail_array(path);
    if (path->field->type == QUERN_FIELD_STRING) {
        quern_string string = {{{0}, 0, 0}};
        result = check_characters(path, text);
        if (result == QUERN_OK && at != NULL) result = quern_string_set(&string, text);
        list = string.list;
    } else {
        trim(path, &text, &bytes);
        result = read_list(world, path, text, bytes, &list);
    }
    if (result != QUERN_OK || at == NULL) {
        quern_list_free(&list);
        return result;
    }
    quern_list old;
    memcpy(&old, at, sizeof old);
    memcpy(at, &list, sizeof list);
    quern_list_free(&old);
    return QUERN_OK;
}

/* Sets *value to the element of a list, which may be written then. */
static quern_result find_element(const quern__path *path, void **value)
{
    quern_list list = list_at(*value, path->list);
    quern_result result = check_index(path, &list);
    if (result != QUERN_OK) return result;
    const uint32_t element = quern__field_element(path->list);
    char *items = quern_list_write(&list, element);
    if (items == NULL) return QUERN_ERROR_OUT_OF_MEMORY; /* with the message of quern_list_write */
    memcpy((char *)*value + path->list->offset_bytes, &list, sizeof list);
    *value = items + (size_t)path->list_index * quern__list_element_bytes(element);
    return QUERN_OK;
}

quern_result quern__value_set_text(const quern_world *world, const quern__path *path, void *value,
                                   const char *text)
{
    const bool is_read_only = path->field->is_read_only || (path->list != NULL && path->list->is_read_only);
    if (path->list != NULL && value != NULL && !is_read_only) {
        /* the text is checked before the list gets a block of its own */
        quern_result result = quern__value_set_text(world, path, NULL, text);
        if (result == QUERN_OK) result = find_element(path, &value);
        if (result != QUERN_OK) return result;
    }
    if (quern__field_is_list(path->field->type) && !is_read_only)
        return set_list(world, path, value != NULL ? (char *)value + offset_of(path, 0) : NULL, text);
    size_t bytes = strlen(text);
    uint64_t bits = 0;
    if (is_read_only)
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
