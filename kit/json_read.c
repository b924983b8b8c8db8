/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads values from JSON: fields by their types, handles as ids or text, and types without described fields as bytes. */

#include "kit/json_reader_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { JSON_SCRATCH_ALIGNMENT_BYTES = 64 };

void quern__json_construct(const quern_type_info *type, void *value)
{
    if (type->default_value != NULL && type->hooks.copy != NULL)
        type->hooks.copy(value, type->default_value, 1, type->hooks.user_data);
    else if (type->default_value != NULL)
        memcpy(value, type->default_value, type->size_bytes);
    else if (type->hooks.construct != NULL)
        type->hooks.construct(value, 1, type->hooks.user_data);
    else
        memset(value, 0, type->size_bytes);
}

void quern__json_destroy(const quern_type_info *type, void *value)
{
    if (type->hooks.destroy != NULL) type->hooks.destroy(value, 1, type->hooks.user_data);
}

void quern__json_copy(const quern_type_info *type, void *target, const void *value)
{
    if (type->hooks.copy != NULL)
        type->hooks.copy(target, value, 1, type->hooks.user_data);
    else
        memcpy(target, value, type->size_bytes);
}

/* ------------------------------------------------------------------------------------------ reader */

quern_result quern__json_reader_open(quern__json_reader *reader, const quern_world *world,
                                     const quern_json_options *options, const char *function)
{
    static const quern_json_options defaults;
    *reader = (quern__json_reader){.world = (quern_world *)world,
                                   .options = options != NULL ? options : &defaults};
    if (world == NULL) return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: 'world' is NULL", function);
    const quern_allocator *given_allocator = &reader->options->allocator;
    if ((given_allocator->allocate == NULL) != (given_allocator->release == NULL))
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the allocator has only one of allocate and release: set both, or neither", function);
    const quern_allocator standard = quern_allocator_default();
    const bool has_allocator = given_allocator->allocate != NULL;
    reader->allocator =
        (quern_allocator){.allocate = has_allocator ? given_allocator->allocate : standard.allocate,
                          .release = has_allocator ? given_allocator->release : standard.release,
                          .user_data = has_allocator ? given_allocator->user_data : standard.user_data};
    return QUERN_OK;
}

void quern__json_reader_close(quern__json_reader *reader)
{
    if (reader->scratch != NULL)
        reader->allocator.release(reader->allocator.user_data, reader->scratch, reader->scratch_bytes,
                                  JSON_SCRATCH_ALIGNMENT_BYTES);
    reader->scratch = NULL;
    reader->scratch_bytes = 0;
}

quern_result quern__json_reserve_scratch(quern__json_reader *reader, size_t bytes)
{
    if (bytes <= reader->scratch_bytes) return QUERN_OK;
    const size_t rounded =
        (bytes + JSON_SCRATCH_ALIGNMENT_BYTES - 1) & ~(size_t)(JSON_SCRATCH_ALIGNMENT_BYTES - 1);
    char *scratch =
        reader->allocator.allocate(reader->allocator.user_data, rounded, JSON_SCRATCH_ALIGNMENT_BYTES);
    if (scratch == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a value of %zu bytes", bytes);
    quern__json_reader_close(reader);
    reader->scratch = scratch;
    reader->scratch_bytes = rounded;
    return QUERN_OK;
}

/* Returns the field of `owner`, or the component, resource or relation of the world, that a name probably stands for. */
static quern_suggestion suggest(const quern_world *world, const char *what, const char *name,
                                const quern_type_info *owner)
{
    static const struct {
        const char *what;
        quern_type_kind kind;
    } lists[] = {{"component", QUERN_TYPE_COMPONENT},
                 {"slot", QUERN_TYPE_COMPONENT},
                 {"resource", QUERN_TYPE_RESOURCE},
                 {"relation", QUERN_TYPE_RELATION}};
    quern_suggestion suggestion = {0};
    quern_type_info type;
    for (uint32_t i = 0; owner != NULL && i < owner->field_count; i++)
        quern_suggestion_offer(&suggestion, name, strlen(name), owner->fields[i].name);
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++)
        for (uint32_t i = 0; strcmp(what, lists[k].what) == 0 && i < quern_type_count(world, lists[k].kind);
             i++)
            if (quern_type_at(world, lists[k].kind, i, &type) == QUERN_OK)
                quern_suggestion_offer(&suggestion, name, strlen(name), type.name);
    return suggestion;
}

quern_result quern__json_handle_unknown(const quern__json_reader *reader, quern_result code,
                                        const char *what, const char *name, const quern_type_info *type)
{
    const quern_sink *sink = &reader->options->left_out;
    const char *owner = type != NULL ? type->name : NULL;
    char line[256];
    if (!reader->options->leaves_out_unknown)
        return quern__json_fail(
            code, "%s%s%sunknown %s '%.63s': correct it, or set leaves_out_unknown to skip it%s",
            owner != NULL ? "'" : "", owner != NULL ? owner : "", owner != NULL ? "': " : "", what, name,
            suggest(reader->world, what, name, type).text);
    if (reader->is_second_pass || sink->write == NULL) return QUERN_OK;
    const int bytes = snprintf(line, sizeof line, "%s '%.63s'%s%.63s\n", what, name,
                               owner != NULL ? " of " : "", owner != NULL ? owner : "");
    if (bytes > 0 && sink->write(sink->user_data, line, (size_t)bytes)) return QUERN_OK;
    return quern__json_fail(QUERN_ERROR_IO, "the sink left_out could not write a line");
}

quern_result quern__json_check_members(quern__json_reader *reader, const quern__json_item *object,
                                       const char *what, bool (*is_member)(const char *key))
{
    const quern__json_item *item = quern__json_first(object);
    for (; item != NULL; item = quern__json_next(object, item)) {
        if (is_member(item->key)) continue;
        const quern_result result =
            quern__json_handle_unknown(reader, QUERN_ERROR_INVALID_ARGUMENT, what, item->key, NULL);
        if (result != QUERN_OK) return quern__json_note(reader, item, result);
    }
    return QUERN_OK;
}

quern_result quern__json_check_version(quern__json_reader *reader, const quern__json_item *version)
{
    uint64_t number;
    if (quern__json_as_count(version, UINT32_MAX, &number) && number == QUERN__JSON_VERSION)
        return QUERN_OK;
    return quern__json_note(reader, version,
                            quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                             "the JSON has version %.*s; this library reads %d",
                                             (int)(version->bytes < 32 ? version->bytes : 32),
                                             version->text, QUERN__JSON_VERSION));
}

/* --------------------------------------------------------------------------------------------- ids */

static int compare_ids(const void *a, const void *b)
{
    const quern__json_id *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

quern_result quern__json_sort_ids(quern__json_id *sorted, uint32_t count, uint64_t *ids, uint32_t *indices,
                                  uint32_t *out_repeated)
{
    if (count > 0) qsort(sorted, count, sizeof *sorted, compare_ids);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = sorted[i].id;
        indices[i] = sorted[i].index;
        if (i == 0 || ids[i] != ids[i - 1]) continue;
        *out_repeated = indices[i] > indices[i - 1] ? indices[i] : indices[i - 1];
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "two entities have the id %llu: ids must differ",
                                (unsigned long long)ids[i]);
    }
    return QUERN_OK;
}

bool quern__json_find_id(const quern__json_handles *handles, const quern__json_item *item,
                         uint32_t *out_index)
{
    uint64_t id;
    uint32_t first = 0, end = handles->count;
    if (!quern__json_as_count(item, QUERN__JSON_MAX_ID, &id)) return false;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (handles->ids[middle] < id)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == handles->count || handles->ids[first] != id) return false;
    *out_index = handles->indices[first];
    return true;
}

/* ------------------------------------------------------------------------------------------ fields */

static quern_result fail_kind(const quern_type_info *type, const char *path, const char *expected)
{
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' of '%s' must be %s", path, type->name,
                            expected);
}

quern_result quern__json_read_entity_text(const quern__json_reader *reader, const quern__json_item *item,
                                          quern_entity *out_entity)
{
    const quern_result result = quern_entity_from_text(reader->world, item->text, out_entity);
    if (result != QUERN_OK || quern_entity_is_null(*out_entity) ||
        quern_entity_is_alive(reader->world, *out_entity))
        return result;
    return quern__json_fail(QUERN_ERROR_STALE_ENTITY,
                            "'%.63s' is not a living entity: write the path of one, or the id of a member",
                            item->text);
}

static quern_result read_handle(quern__json_reader *reader, const quern_type_info *type,
                                const quern__json_item *item, const char *path, char *at)
{
    quern_entity entity = quern_entity_null();
    uint32_t index;
    if (item->kind == QUERN__JSON_STRING && reader->handles.accepts_text) {
        const quern_result result = quern__json_read_entity_text(reader, item, &entity);
        if (result != QUERN_OK) return quern__json_prefix_error(result, path);
    } else if (item->kind != QUERN__JSON_NULL) {
        if (!quern__json_find_id(&reader->handles, item, &index))
            return fail_kind(type, path,
                             reader->handles.accepts_text
                                 ? "null, the id of a member, or the path of an entity"
                                 : "null or the id of an entity that is in the JSON");
        if (reader->handles.created != NULL) entity = reader->handles.created[index];
    }
    memcpy(at, &entity, sizeof entity);
    return QUERN_OK;
}

enum { NUMBER_BYTES = 129 }; /* 128 characters, the limit of quern_value_set_text, and a 0 */

/* Writes the text of a number for quern_value_set_text. For integer fields, whole numbers become plain digits; all
 * other numbers stay as written. */
static quern_result number_text(const quern__json_field *single, const quern__json_item *item,
                                const char *path, char text[NUMBER_BYTES])
{
    const bool is_float = single->field.type == QUERN_FIELD_F32 || single->field.type == QUERN_FIELD_F64;
    if (!is_float && quern__json_as_whole(item, text)) return QUERN_OK;
    if (item->bytes >= NUMBER_BYTES)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' of '%s' cannot be a number of %u characters: write fewer digits",
                                path, single->type.name, item->bytes);
    memcpy(text, item->text, item->bytes);
    text[item->bytes] = '\0';
    return QUERN_OK;
}

/* entity: the address of the element if it is an entity handle. */
static quern_result read_element(quern__json_reader *reader, const quern__json_field *single,
                                 const quern__json_item *item, const char *path, char *value, char *entity)
{
    char number[NUMBER_BYTES] = "";
    const char *text = number;
    quern_result result = QUERN_OK;
    if (single->field.type == QUERN_FIELD_ENTITY && reader->handles.ids != NULL)
        return read_handle(reader, &single->type, item, path, entity);
    if (item->kind == QUERN__JSON_STRING)
        text = item->text;
    else if (item->kind == QUERN__JSON_TRUE || item->kind == QUERN__JSON_FALSE)
        text = item->kind == QUERN__JSON_TRUE ? "true" : "false";
    else if (item->kind == QUERN__JSON_NUMBER)
        result = number_text(single, item, path, number);
    else if (item->kind == QUERN__JSON_NULL && single->field.type == QUERN_FIELD_ENTITY)
        text = "none";
    else
        return fail_kind(&single->type, path, "a number, a string or a bool");
    return result == QUERN_OK ? quern_value_set_text(reader->world, &single->type, value, path, text)
                              : result;
}

/* Reads a text field from an array of all its bytes, the form of texts that are not UTF-8. */
static quern_result read_text_bytes(const quern__json_field *single, const quern__json_item *item, char *at)
{
    uint32_t i = 0;
    if (item->count != single->field.count)
        return fail_kind(&single->type, single->field.name, "a string, or an array of all its bytes");
    const quern__json_item *element = quern__json_first(item);
    for (; element != NULL; element = quern__json_next(item, element)) {
        uint64_t byte;
        if (!quern__json_as_count(element, UINT8_MAX, &byte))
            return fail_kind(&single->type, single->field.name,
                             "a string, or an array of bytes from 0 to 255");
        at[i++] = (char)(unsigned char)byte;
    }
    return QUERN_OK;
}

/* Reads a string from a JSON string, or from an array of its bytes, the form of texts that are not UTF-8. */
static quern_result read_string(const quern_type_info *type, const quern_field *field,
                                const quern__json_item *item, char *at)
{
    quern_string string = {{{0}, 0, 0}}, old;
    quern_result result = QUERN_OK;
    if (item->kind == QUERN__JSON_STRING) {
        result = quern_string_set_bytes(&string, item->text, item->bytes);
    } else if (item->kind == QUERN__JSON_ARRAY) {
        const quern__json_item *element = quern__json_first(item);
        for (; element != NULL && result == QUERN_OK; element = quern__json_next(item, element)) {
            uint64_t byte;
            if (!quern__json_as_count(element, UINT8_MAX, &byte) || byte == 0)
                result = fail_kind(type, field->name, "a string, or an array of bytes from 1 to 255");
            else
                result = quern_string_append_bytes(&string, &(char){(char)(unsigned char)byte}, 1);
        }
    } else {
        result = fail_kind(type, field->name, "a string");
    }
    if (result != QUERN_OK) {
        quern_string_free(&string);
        return result;
    }
    memcpy(&old, at, sizeof old);
    memcpy(at, &string, sizeof string);
    quern_string_free(&old);
    return QUERN_OK;
}

static quern_result read_object(quern__json_reader *reader, const quern_type_info *type,
                                const quern__json_item *object, const char *prefix, char *value);

static quern_result read_list_item(quern__json_reader *reader, const quern__json_elements *elements,
                                   const quern_field *field, const quern__json_item *item, char *at)
{
    quern__json_field single;
    if (field->element->type == QUERN_FIELD_STRING)
        return read_string(&elements->type, &elements->field, item, at);
    if (field->element->type == 0)
        return item->kind == QUERN__JSON_OBJECT
                   ? read_object(reader, &elements->type, item, "", at)
                   : fail_kind(&elements->type, field->name, "objects with the fields of its elements");
    quern__json_field_init(&single, &elements->type, 0);
    return read_element(reader, &single, item, field->name, at, at);
}

static quern_result read_list(quern__json_reader *reader, const quern_type_info *type,
                              const quern_field *field, const quern__json_item *item, char *at)
{
    quern__json_elements elements;
    quern_list list = {{0}, 0, 0}, old;
    quern__json_elements_init(&elements, field);
    if (item->kind != QUERN__JSON_ARRAY) return fail_kind(type, field->name, "an array of its elements");
    quern_result result = QUERN_OK;
    const quern__json_item *element = quern__json_first(item);
    for (; element != NULL && result == QUERN_OK; element = quern__json_next(item, element)) {
        /* the list grows as elements are read: their number alone would let a short text claim much memory */
        result = quern_list_resize(&list, elements.element, list.count + 1);
        if (result != QUERN_OK) break;
        char *items = quern_list_write(&list, elements.element);
        result = read_list_item(reader, &elements, field, element,
                                items + (size_t)(list.count - 1) * elements.type.size_bytes);
        if (result != QUERN_OK) result = quern__json_note(reader, element, result);
    }
    if (result != QUERN_OK) {
        quern_list_free(&list);
        return result;
    }
    memcpy(&old, at, sizeof old);
    memcpy(at, &list, sizeof list);
    quern_list_free(&old);
    return QUERN_OK;
}

static quern_result read_string_or_list(quern__json_reader *reader, const quern_type_info *type,
                                        const quern_field *field, const quern__json_item *item, char *at)
{
    return field->type == QUERN_FIELD_STRING ? read_string(type, field, item, at)
                                             : read_list(reader, type, field, item, at);
}

static quern_result read_field(quern__json_reader *reader, const quern_type_info *type, uint32_t i,
                               const quern__json_item *item, char *value)
{
    quern__json_field single;
    char path[QUERN__JSON_PATH_BYTES];
    uint32_t k = 0;
    quern__json_field_init(&single, type, i);
    char *at = value + single.field.offset_bytes;
    if (single.field.type == QUERN_FIELD_TEXT && item->kind == QUERN__JSON_ARRAY)
        return read_text_bytes(&single, item, at);
    if (single.field.type == QUERN_FIELD_TEXT && item->kind != QUERN__JSON_STRING)
        return fail_kind(type, single.field.name, "a string");
    const bool is_list = single.field.type == QUERN_FIELD_STRING || single.field.type == QUERN_FIELD_LIST;
    if (is_list && single.field.count == 1)
        return read_string_or_list(reader, type, &single.field, item, at);
    if (single.field.type == QUERN_FIELD_TEXT || single.field.count == 1)
        return read_element(reader, &single, item, single.field.name, value, at);
    if (item->kind != QUERN__JSON_ARRAY || item->count != single.field.count) {
        snprintf(path, sizeof path, "an array of %u", single.field.count);
        return fail_kind(type, single.field.name, path);
    }
    const quern__json_item *element = quern__json_first(item);
    for (; element != NULL; element = quern__json_next(item, element)) {
        quern__json_element_path(single.field.name, k, path);
        const quern_result result =
            is_list ? read_string_or_list(reader, type, &single.field, element, at + k * sizeof(quern_list))
                    : read_element(reader, &single, element, path, value,
                                   single.field.type == QUERN_FIELD_ENTITY ? at + k * sizeof(quern_entity)
                                                                           : at);
        if (result != QUERN_OK) return quern__json_note(reader, element, result);
        k++;
    }
    return QUERN_OK;
}

/* expected: number of the field to try first, since most JSON has the members in the order of the fields. */
static uint32_t find_field(const quern_type_info *type, const char *name, uint32_t expected)
{
    uint32_t i = 0;
    if (expected < type->field_count && strcmp(type->fields[expected].name, name) == 0) return expected;
    while (i < type->field_count && strcmp(type->fields[i].name, name) != 0)
        i++;
    return i;
}

static bool has_nested_fields(const quern_type_info *type, const char *name)
{
    const size_t bytes = strlen(name);
    for (uint32_t i = 0; i < type->field_count; i++)
        if (strncmp(type->fields[i].name, name, bytes) == 0 && type->fields[i].name[bytes] == '.')
            return true;
    return false;
}

enum { MEMBER_BYTES = QUERN_MAX_NAME_BYTES + 2 };

/* Writes the name of the field that a key of the object `prefix` names, cut off if it is too long. Returns its length
 * before that. */
static size_t member_name(const char *prefix, const char *key, char name[MEMBER_BYTES])
{
    const size_t key_bytes = strlen(key);
    if (prefix[0] != '\0' || key_bytes >= MEMBER_BYTES) {
        const int bytes = snprintf(name, MEMBER_BYTES, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
        return bytes > 0 ? (size_t)bytes : 0;
    }
    memcpy(name, key, key_bytes + 1);
    return key_bytes;
}

/* Reads the members of an object into the fields with names that start with `prefix`. The recursion is as deep as a
 * field's name has dots. */
static quern_result read_object(quern__json_reader *reader, const quern_type_info *type,
                                const quern__json_item *object, const char *prefix, char *value)
{
    const quern__json_item *item = quern__json_first(object);
    uint32_t i = type->field_count;
    for (; item != NULL; item = quern__json_next(object, item)) {
        char name[MEMBER_BYTES];
        quern_result result;
        const size_t bytes = member_name(prefix, item->key, name);
        /* With dots in keys, a field could be named in two ways. */
        const bool fits = bytes > 0 && bytes <= QUERN_MAX_NAME_BYTES && strchr(item->key, '.') == NULL;
        i = fits ? find_field(type, name, i < type->field_count ? i + 1 : 0) : type->field_count;
        if (i < type->field_count)
            result = read_field(reader, type, i, item, value);
        else if (fits && item->kind == QUERN__JSON_OBJECT && has_nested_fields(type, name))
            result = read_object(reader, type, item, name, value);
        else
            result = quern__json_handle_unknown(reader, QUERN_ERROR_INVALID_ARGUMENT, "field", name, type);
        if (result != QUERN_OK) return quern__json_note(reader, item, result);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- bytes */

static quern_result read_bytes(const quern_type_info *type, const quern__json_item *item, char *value)
{
    const char *digits = item->text;
    bool is_valid = item->kind == QUERN__JSON_STRING && item->bytes == (size_t)type->size_bytes * 2;
    for (size_t i = 0; i < type->size_bytes && is_valid; i++) {
        const int high = quern__json_hexadecimal(digits[2 * i]),
                  low = quern__json_hexadecimal(digits[2 * i + 1]);
        is_valid = high >= 0 && low >= 0;
        if (is_valid) value[i] = (char)(unsigned char)(high * 16 + low);
    }
    if (is_valid) return QUERN_OK;
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "'%s' must be a string of its %u bytes, two digits from 0 to f each",
                            type->name, type->size_bytes);
}

quern_result quern__json_read_fields(quern__json_reader *reader, const quern_type_info *type,
                                     const quern__json_item *item, char *value)
{
    if (type->size_bytes == 0) {
        if (item->kind == QUERN__JSON_TRUE) return QUERN_OK;
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' is a tag and must be true", type->name);
    }
    if (type->field_count == 0 && quern__json_has_hooks(type)) return quern__json_fail_hooks(type);
    if (type->field_count == 0) return read_bytes(type, item, value);
    if (item->kind != QUERN__JSON_OBJECT)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' must be an object with its fields",
                                type->name);
    return read_object(reader, type, item, "", value);
}

/* --------------------------------------------------------------------------------------------- value */

void quern__json_replace(const quern_type_info *type, void *value, void *copy, quern_result result)
{
    if (result == QUERN_OK) {
        quern__json_destroy(type, value);
        type->hooks.copy(value, copy, 1, type->hooks.user_data);
    }
    quern__json_destroy(type, copy);
}

quern_result quern_json_read_value(const quern_world *world, const quern_type_info *type, void *value,
                                   const char *text, size_t bytes, const quern_json_options *options)
{
    static const char function[] = "quern_json_read_value";
    quern__json_reader reader;
    quern__json_document document;
    quern_result result = quern__json_reader_open(&reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (type == NULL || (value == NULL && type->size_bytes > 0))
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                                type == NULL ? "type" : "value");
    result = quern__json_parse(&reader.allocator, text, bytes, &document);
    if (result != QUERN_OK) return quern__json_prefix_error(result, function);
    /* Reads into a copy of the value, so that an error leaves the value unchanged. */
    result = quern__json_reserve_scratch(&reader, type->size_bytes + (size_t)1);
    if (result == QUERN_OK) {
        if (type->size_bytes > 0) quern__json_copy(type, reader.scratch, value);
        result = quern__json_read_fields(&reader, type, document.items, reader.scratch);
        if (type->hooks.copy != NULL) quern__json_replace(type, value, reader.scratch, result);
    }
    if (result == QUERN_OK && type->size_bytes > 0 && type->hooks.copy == NULL)
        memcpy(value, reader.scratch, type->size_bytes);
    result = quern__json_add_place(&document, reader.place, result);
    quern__json_document_close(&document);
    quern__json_reader_close(&reader);
    return quern__json_prefix_error(result, function);
}
