/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads values, entities, worlds and prefabs from JSON. An error changes nothing, and its message has the line and
 * column of the innermost item that it is about (`place` of the reader).
 *
 * For entities and worlds, a first pass over the document checks that everything fits, and keeps plain values. Then
 * entities are created and a second pass records commands for them; one flush applies all commands or none. A flush
 * drops commands that would close a cycle or take a used name, so the first pass checks for both.
 *
 * The members of a prefab are listed in the order of the text, without recursion, so that no text exhausts the stack. A
 * first pass over them checks everything but values, and lists components and targets. A second one reads the values.
 * quern_prefab_create then makes the prefab, or fails and changes nothing. */

#include "kit/json_internal.h"

#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/enabled.h>
#include <quern/name.h>
#include <quern/prefab.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_SCRATCH_ALIGNMENT_BYTES = 64 };

/* The largest id: tools that store all numbers as doubles keep whole numbers up to it. */
#define MAX_ID ((UINT64_C(1) << 53) - 1)

/* Maps the ids in the JSON to entities. */
typedef struct json_handles {
    const uint64_t *ids;         /* ascending; NULL: handles are read as text */
    const uint32_t *indices;     /* indices[i]: index of the entity with ids[i] */
    const quern_entity *created; /* created entities by index; NULL: not created yet */
    uint32_t count;
    bool accepts_text; /* whether handles of other entities are read as text */
} json_handles;

/* An id in the JSON, and the index of its entity. */
typedef struct json_id {
    uint64_t id;
    uint32_t index;
} json_id;

typedef struct json_reader {
    quern_world *world; /* quern_json_read_value only reads it */
    quern_allocator allocator;
    const quern_json_options *options;
    json_handles handles;
    bool is_second_pass; /* whether what is left out has been reported already: set for the second pass */
    char *scratch;       /* space for one component or resource value */
    size_t scratch_bytes;
    const quern__json_item *place; /* innermost item of the error; NULL: no error, or one without an item */
} json_reader;

/* Notes the item that an error is about, unless an item inside of it is noted already. Returns `result`. */
static quern_result note(json_reader *reader, const quern__json_item *item, quern_result result)
{
    if (result != QUERN_OK && reader->place == NULL) reader->place = item;
    return result;
}

/* Constructs a value of a type. */
static void construct(const quern_type_info *type, void *value)
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

static void destroy(const quern_type_info *type, void *value)
{
    if (type->hooks.destroy != NULL) type->hooks.destroy(value, 1, type->hooks.user_data);
}

/* ------------------------------------------------------------------------------------------ reader */

static quern_result open_reader(json_reader *reader, const quern_world *world,
                                const quern_json_options *options, const char *function)
{
    static const quern_json_options defaults;
    *reader =
        (json_reader){.world = (quern_world *)world, .options = options != NULL ? options : &defaults};
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

static void close_reader(json_reader *reader)
{
    if (reader->scratch != NULL)
        reader->allocator.release(reader->allocator.user_data, reader->scratch, reader->scratch_bytes,
                                  JSON_SCRATCH_ALIGNMENT_BYTES);
    reader->scratch = NULL;
    reader->scratch_bytes = 0;
}

/* Makes the scratch space large enough for a value of `bytes` bytes. Its content is lost if it grows. */
static quern_result reserve_scratch(json_reader *reader, size_t bytes)
{
    if (bytes <= reader->scratch_bytes) return QUERN_OK;
    const size_t rounded =
        (bytes + JSON_SCRATCH_ALIGNMENT_BYTES - 1) & ~(size_t)(JSON_SCRATCH_ALIGNMENT_BYTES - 1);
    char *scratch =
        reader->allocator.allocate(reader->allocator.user_data, rounded, JSON_SCRATCH_ALIGNMENT_BYTES);
    if (scratch == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a value of %zu bytes", bytes);
    close_reader(reader);
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

/* Handles a name that the world does not have: fails with `code`, or reports the name as left out and returns
 * QUERN_OK, depending on the options. type: the type that lacks a field, or NULL. */
static quern_result handle_unknown(const json_reader *reader, quern_result code, const char *what,
                                   const char *name, const quern_type_info *type)
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

/* Fails for, or reports as left out, each member of an object that `is_member` does not know. */
static quern_result check_members(json_reader *reader, const quern__json_item *object, const char *what,
                                  bool (*is_member)(const char *key))
{
    const quern__json_item *item = quern__json_first(object);
    for (; item != NULL; item = quern__json_next(object, item)) {
        if (is_member(item->key)) continue;
        const quern_result result =
            handle_unknown(reader, QUERN_ERROR_INVALID_ARGUMENT, what, item->key, NULL);
        if (result != QUERN_OK) return note(reader, item, result);
    }
    return QUERN_OK;
}

/* Checks the member 'quern' of the outermost object, the version of the format. */
static quern_result check_version(json_reader *reader, const quern__json_item *version)
{
    uint64_t number;
    if (quern__json_as_count(version, UINT32_MAX, &number) && number == QUERN__JSON_VERSION)
        return QUERN_OK;
    return note(reader, version,
                quern__json_fail(
                    QUERN_ERROR_INVALID_ARGUMENT, "the JSON has version %.*s; this library reads %d",
                    (int)(version->bytes < 32 ? version->bytes : 32), version->text, QUERN__JSON_VERSION));
}

/* --------------------------------------------------------------------------------------------- ids */

static int compare_ids(const void *a, const void *b)
{
    const json_id *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts ids, and stores them and their indices in two arrays of `count` elements. Fails if an id occurs twice, and then
 * stores the larger of the two indices. */
static quern_result sort_ids(json_id *sorted, uint32_t count, uint64_t *ids, uint32_t *indices,
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

/* Finds the index of the entity with an id. Returns false if there is none. */
static bool find_id(const json_handles *handles, const quern__json_item *item, uint32_t *out_index)
{
    uint64_t id;
    uint32_t first = 0, end = handles->count;
    if (!quern__json_as_count(item, MAX_ID, &id)) return false;
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

/* Reads the text of a living entity, such as its path, or 'none'. Entities that are not alive are refused, because
 * their handles may have the bits of a member's. */
static quern_result read_entity_text(const json_reader *reader, const quern__json_item *item,
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

static quern_result read_handle(json_reader *reader, const quern_type_info *type,
                                const quern__json_item *item, const char *path, char *at)
{
    quern_entity entity = quern_entity_null();
    uint32_t index;
    if (item->kind == QUERN__JSON_STRING && reader->handles.accepts_text) {
        const quern_result result = read_entity_text(reader, item, &entity);
        if (result != QUERN_OK) return quern__json_prefix_error(result, path);
    } else if (item->kind != QUERN__JSON_NULL) {
        if (!find_id(&reader->handles, item, &index))
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
static quern_result read_element(json_reader *reader, const quern__json_field *single,
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

static quern_result read_field(json_reader *reader, const quern_type_info *type, uint32_t i,
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
            read_element(reader, &single, element, path, value,
                         single.field.type == QUERN_FIELD_ENTITY ? at + k * sizeof(quern_entity) : at);
        if (result != QUERN_OK) return note(reader, element, result);
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
static quern_result read_object(json_reader *reader, const quern_type_info *type,
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
            result = handle_unknown(reader, QUERN_ERROR_INVALID_ARGUMENT, "field", name, type);
        if (result != QUERN_OK) return note(reader, item, result);
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

/* Sets the fields of a value to the members of an item. A type without described fields is read as bytes. */
static quern_result read_fields(json_reader *reader, const quern_type_info *type,
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

quern_result quern_json_read_value(const quern_world *world, const quern_type_info *type, void *value,
                                   const char *text, size_t bytes, const quern_json_options *options)
{
    static const char function[] = "quern_json_read_value";
    json_reader reader;
    quern__json_document document;
    quern_result result = open_reader(&reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (type == NULL || (value == NULL && type->size_bytes > 0))
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                                type == NULL ? "type" : "value");
    result = quern__json_parse(&reader.allocator, text, bytes, &document);
    if (result != QUERN_OK) return quern__json_prefix_error(result, function);
    /* Reads into a copy of the value, so that an error leaves the value unchanged. */
    result = reserve_scratch(&reader, type->size_bytes + (size_t)1);
    if (result == QUERN_OK) {
        if (type->size_bytes > 0) memcpy(reader.scratch, value, type->size_bytes);
        result = read_fields(&reader, type, document.items, reader.scratch);
    }
    if (result == QUERN_OK && type->size_bytes > 0) memcpy(value, reader.scratch, type->size_bytes);
    result = quern__json_add_place(&document, reader.place, result);
    quern__json_document_close(&document);
    close_reader(&reader);
    return quern__json_prefix_error(result, function);
}

/* ------------------------------------------------------------------------------------------ worlds */

#define NO_ENTITY UINT32_MAX

/* A name and the entity's parent, for the check that siblings have different names. */
typedef struct entity_name {
    const char *name;
    uint32_t parent; /* index of an entity, or NO_TARGET */
} entity_name;

typedef struct world_loader {
    json_reader reader;
    quern__json_document document;
    quern_commands *commands; /* NULL during the first pass, which only checks */
    uint32_t count;           /* number of entities */
    const quern__json_item *entities;
    const quern__json_item **items;
    json_id *sorted;
    uint64_t *ids;
    uint32_t *indices;
    quern_entity *created;
    uint32_t *targets; /* index of each entity's target in the relation that is checked */
    entity_name *names;
    char *block; /* the memory of all these arrays */
    size_t block_bytes;
    quern_byte_buffer
        values; /* values that the first pass has read and the second one only records, in order */
    size_t used_value_bytes; /* those that the second pass has recorded */
} world_loader;

/* -------------------------------------------------------------------------------------- components */

static quern_result record(const world_loader *loader, quern_entity entity, quern_component component,
                           const quern_type_info *type)
{
    if (type->size_bytes == 0) return quern_commands_add(loader->commands, entity, component, NULL);
    return quern_commands_set(loader->commands, entity, component, loader->reader.scratch);
}

/* Whether the first pass keeps new values of a type: plain bytes without handles of entities, which the first pass does
 * not have. */
static bool keeps_values(const quern_type_info *type)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        if (type->fields[i].type == QUERN_FIELD_ENTITY) return false;
    return type->size_bytes > 0 && !quern__json_has_hooks(type);
}

/* Reads a value that the first pass keeps, or records the kept one. */
static quern_result load_kept(world_loader *loader, quern_entity entity, quern_component component,
                              const quern_type_info *type, const quern__json_item *item)
{
    char *value = loader->reader.scratch;
    if (loader->commands == NULL) {
        construct(type, value);
        const quern_result result = read_fields(&loader->reader, type, item, value);
        const quern_sink sink = quern_sink_bytes(&loader->values);
        loader->values.allocator = loader->reader.allocator;
        if (result != QUERN_OK || sink.write(sink.user_data, value, type->size_bytes)) return result;
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for values of %zu bytes",
                                loader->values.size_bytes + type->size_bytes);
    }
    memcpy(value, (const char *)loader->values.bytes + loader->used_value_bytes, type->size_bytes);
    loader->used_value_bytes += type->size_bytes;
    return record(loader, entity, component, type);
}

/* Reads a new value. Recording moves the value into the commands if its type cannot be copied. */
static quern_result load_new(world_loader *loader, quern_entity entity, quern_component component,
                             const quern_type_info *type, const quern__json_item *item)
{
    char *value = loader->reader.scratch;
    if (type->size_bytes > 0) construct(type, value);
    quern_result result = read_fields(&loader->reader, type, item, value);
    const bool is_recorded = result == QUERN_OK && loader->commands != NULL;
    if (is_recorded) result = record(loader, entity, component, type);
    const bool is_handed_over = is_recorded && result == QUERN_OK && type->hooks.copy == NULL;
    if (type->size_bytes > 0 && !is_handed_over) destroy(type, value);
    return result;
}

/* Changes the given fields of a value that the entity has already. */
static quern_result load_existing(world_loader *loader, quern_entity entity, quern_component component,
                                  const quern_type_info *type, const quern__json_item *item)
{
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "'%s' has a destroy hook and no copy hook: set its fields by "
                                "quern_entity_set_text",
                                type->name);
    if (type->size_bytes > 0)
        memcpy(loader->reader.scratch, quern_entity_get(loader->reader.world, entity, component),
               type->size_bytes);
    const quern_result result = read_fields(&loader->reader, type, item, loader->reader.scratch);
    return result == QUERN_OK && loader->commands != NULL ? record(loader, entity, component, type)
                                                          : result;
}

/* entity: null if it does not exist yet. */
static quern_result load_component(world_loader *loader, quern_entity entity, const quern__json_item *item)
{
    quern_world *world = loader->reader.world;
    quern_type_info type;
    const quern_component component = quern_component_find(world, item->key);
    if (quern_component_is_null(component))
        return handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "component", item->key, NULL);
    quern_result result = quern_component_get_info(world, component, &type);
    if (result != QUERN_OK) return result;
    if (type.is_managed)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is maintained by the world: list the relation in 'children' instead",
            type.name);
    result = reserve_scratch(&loader->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    const bool has_component = loader->created == NULL && quern_entity_has(world, entity, component);
    if (has_component) return load_existing(loader, entity, component, &type, item);
    return keeps_values(&type) ? load_kept(loader, entity, component, &type, item)
                               : load_new(loader, entity, component, &type, item);
}

/* Applies one element of a flag's list: puts the component that it names into the flag's state. */
static quern_result load_listed(world_loader *loader, quern_entity entity, const quern_flag_info *flag,
                                const quern__json_item *components, const quern__json_item *item)
{
    const char *name = item->kind == QUERN__JSON_STRING ? item->text : "";
    const quern_component component = quern_component_find(loader->reader.world, name);
    quern_type_info type;
    if (quern__json_member(components, name) == NULL)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' names '%.63s', which is not in 'components': add it there, or remove it from the list",
            flag->list_name, name);
    if (quern_component_is_null(component)) return QUERN_OK; /* the component was left out */
    const quern_result result = quern_component_get_info(loader->reader.world, component, &type);
    if (result != QUERN_OK) return result;
    if (!quern_type_has_flag(&type, flag))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "component '%s' %s", name, flag->without);
    return loader->commands != NULL ? flag->list(loader->commands, entity, component) : QUERN_OK;
}

static bool is_root_member(const char *key)
{
    return strcmp(key, "quern") == 0 || strcmp(key, "components") == 0 || strcmp(key, "resources") == 0 ||
           strcmp(key, "entities") == 0;
}

static bool is_entity_member(const char *key)
{
    quern_flag_info flag;
    bool is_member = strcmp(key, "id") == 0 || strcmp(key, "name") == 0 || strcmp(key, "components") == 0 ||
                     strcmp(key, "children") == 0;
    for (uint32_t i = 0; !is_member && quern__json_next_list(&i, &flag);)
        is_member = strcmp(flag.list_name, key) == 0;
    return is_member;
}

static quern_result load_entity(world_loader *loader, quern_entity entity, const quern__json_item *object)
{
    const quern__json_item *components = quern__json_member(object, "components"), *item;
    if (!quern__json_is(components, QUERN__JSON_OBJECT))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "an entity must have an object 'components'");
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name);
        if (list != NULL && list->kind != QUERN__JSON_ARRAY)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                    "'%s' of an entity must be an array of component names",
                                    flag.list_name);
    }
    quern_result result = check_members(&loader->reader, object, "member of an entity", is_entity_member);
    if (result != QUERN_OK) return result;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        result = load_component(loader, entity, item);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    }
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);) {
        const quern__json_item *list = quern__json_member(object, flag.list_name);
        for (item = quern__json_first(list); item != NULL; item = quern__json_next(list, item)) {
            result = load_listed(loader, entity, &flag, components, item);
            if (result != QUERN_OK) return note(&loader->reader, item, result);
        }
    }
    return QUERN_OK;
}

/* Names the entity in the message of an error, and notes its item. Returns `result`. */
static quern_result add_entity_to_error(world_loader *loader, quern_result result,
                                        const quern__json_item *object)
{
    char prefix[64] = "entity without a valid id";
    uint64_t id;
    if (result == QUERN_OK) return QUERN_OK;
    if (quern__json_as_count(quern__json_member(object, "id"), MAX_ID, &id))
        snprintf(prefix, sizeof prefix, "entity with id %llu", (unsigned long long)id);
    return note(&loader->reader, object, quern__json_prefix_error(result, prefix));
}

static quern_result load_entities(world_loader *loader)
{
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern_entity entity = loader->commands != NULL ? loader->created[i] : quern_entity_null();
        const quern_result result =
            add_entity_to_error(loader, load_entity(loader, entity, loader->items[i]), loader->items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- resources */

/* Reads a resource. stores_value: whether the value is stored in the world, after all checks. */
static quern_result load_resource(world_loader *loader, const quern__json_item *item, bool stores_value)
{
    quern_world *world = loader->reader.world;
    const quern_resource resource = quern_resource_find(world, item->key);
    quern_type_info type;
    if (resource.bits == 0)
        return handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_RESOURCE, "resource", item->key, NULL);
    void *value = quern_resource_get(world, resource);
    quern_result result = quern_resource_get_info(world, resource, &type);
    if (result == QUERN_OK && type.field_count == 0)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "resource '%s' has no described fields: describe them, or remove it from 'resources'",
            type.name);
    if (result == QUERN_OK) result = reserve_scratch(&loader->reader, type.size_bytes);
    if (result != QUERN_OK) return result;
    memcpy(loader->reader.scratch, value, type.size_bytes);
    result = read_fields(&loader->reader, &type, item, loader->reader.scratch);
    if (result == QUERN_OK && stores_value) memcpy(value, loader->reader.scratch, type.size_bytes);
    return result;
}

static quern_result load_resources(world_loader *loader, const quern__json_item *root, bool stores_value)
{
    const quern__json_item *resources = quern__json_member(root, "resources"), *item;
    if (resources != NULL && resources->kind != QUERN__JSON_OBJECT)
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'resources' must be an object");
    for (item = quern__json_first(resources); item != NULL; item = quern__json_next(resources, item)) {
        const quern_result result = load_resource(loader, item, stores_value);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- relations */

static const quern__json_item *children_of(const quern__json_item *object, const char *relation)
{
    return quern__json_member(quern__json_member(object, "children"), relation);
}

/* With several targets per source, other entities may list the child as well: its target in `targets` is then the last
 * one that did. */
static quern_result set_target_of_child(world_loader *loader, uint32_t target, const quern__json_item *item,
                                        const quern_relation_def *relation)
{
    uint32_t child;
    if (!find_id(&loader->reader.handles, item, &child))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "children by '%s' must be ids of entities in the JSON", relation->name);
    const uint32_t known = loader->targets[child];
    if (child == target || (relation->many ? known == target : known != NO_ENTITY))
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "entity with id %.*s is listed as a child by '%s' twice, or as its own child", (int)item->bytes,
            item->text, relation->name);
    loader->targets[child] = target;
    return QUERN_OK;
}

static quern_result collect_targets(world_loader *loader, const quern_relation_def *relation)
{
    for (uint32_t i = 0; i < loader->count; i++)
        loader->targets[i] = NO_ENTITY;
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *children = children_of(loader->items[i], relation->name), *child;
        if (children != NULL && children->kind != QUERN__JSON_ARRAY)
            return note(&loader->reader, children,
                        quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                         "children by '%s' must be an array of ids", relation->name));
        for (child = quern__json_first(children); child != NULL;
             child = quern__json_next(children, child)) {
            const quern_result result = add_entity_to_error(
                loader, set_target_of_child(loader, i, child, relation), loader->items[i]);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

/* Follows the targets of each entity upwards until they end or reach an entity that was visited before. Entities
 * visited for entity i are marked with i, so reaching the mark i again is a cycle. */
static quern_result check_cycles(world_loader *loader, const char *relation)
{
    uint32_t *visited_by = loader->indices + loader->count;
    for (uint32_t i = 0; i < loader->count; i++)
        visited_by[i] = NO_ENTITY;
    for (uint32_t i = 0; i < loader->count; i++) {
        uint32_t at = i;
        while (at != NO_ENTITY && visited_by[at] == NO_ENTITY) {
            visited_by[at] = i;
            at = loader->targets[at];
        }
        if (at != NO_ENTITY && visited_by[at] == i)
            return quern__json_fail(
                QUERN_ERROR_CYCLE,
                "entity with id %llu is its own ancestor by '%s': remove a child from the cycle",
                (unsigned long long)loader->sorted[at].id, relation);
    }
    return QUERN_OK;
}

static int compare_names(const void *a, const void *b)
{
    const entity_name *x = a, *y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return strcmp(x->name, y->name);
}

static const char *name_of(const quern__json_item *object)
{
    const quern__json_item *name = quern__json_member(object, "name");
    return quern__json_is(name, QUERN__JSON_STRING) ? name->text : NULL;
}

/* Fails if two siblings have the same name. Precondition: `targets` are those of the parent hierarchy. */
static quern_result check_names(world_loader *loader)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *name = quern__json_member(loader->items[i], "name");
        if (name == NULL) continue;
        if (name->kind != QUERN__JSON_STRING)
            return add_entity_to_error(
                loader, quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'name' must be a string"),
                loader->items[i]);
        loader->names[count++] = (entity_name){name->text, loader->targets[i]};
    }
    if (count > 0) qsort(loader->names, count, sizeof *loader->names, compare_names);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && compare_names(&loader->names[i - 1], &loader->names[i]) == 0)
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "two siblings in the JSON are named '%.63s': rename one",
                                    loader->names[i].name);
        if (loader->names[i].parent == NO_ENTITY &&
            !quern_entity_is_null(quern_entity_find(loader->reader.world, loader->names[i].name)))
            return quern__json_fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                    "a root of the world is named '%.63s' already: rename one of the two",
                                    loader->names[i].name);
    }
    return QUERN_OK;
}

static quern_result check_relation_names(world_loader *loader)
{
    for (uint32_t i = 0; i < loader->count; i++) {
        const quern__json_item *children = quern__json_member(loader->items[i], "children"), *item;
        if (children != NULL && children->kind != QUERN__JSON_OBJECT)
            return add_entity_to_error(
                loader, quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'children' must be an object"),
                loader->items[i]);
        for (item = quern__json_first(children); item != NULL; item = quern__json_next(children, item)) {
            if (!quern_relation_is_null(quern_relation_find(loader->reader.world, item->key))) continue;
            const quern_result result =
                handle_unknown(&loader->reader, QUERN_ERROR_INVALID_ARGUMENT, "relation", item->key, NULL);
            if (result != QUERN_OK) return note(&loader->reader, item, result);
        }
    }
    return QUERN_OK;
}

static quern_result check_relations(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    quern_result result = check_relation_names(loader);
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RELATION) && result == QUERN_OK; i++) {
        quern_type_info type;
        quern_relation_def def;
        result = quern_type_at(world, QUERN_TYPE_RELATION, i, &type);
        if (result == QUERN_OK) result = quern_relation_get_def(world, type.relation, &def);
        if (result == QUERN_OK) result = collect_targets(loader, &def);
        if (result == QUERN_OK && def.levels) result = check_cycles(loader, def.name);
    }
    if (result == QUERN_OK) result = collect_targets(loader, &(quern_relation_def){.name = "parent"});
    return result == QUERN_OK ? check_names(loader) : result;
}

/* Relates children in the order in which the relation lists new ones: ordered relations append, others prepend. */
static quern_result record_children(world_loader *loader, uint32_t target, quern_relation relation,
                                    bool is_ordered, const quern__json_item *children)
{
    for (uint32_t i = 0; i < children->count; i++) {
        /* All elements are numbers without contents, so they are adjacent. */
        const quern__json_item *item = children + 1 + (is_ordered ? i : children->count - 1 - i);
        uint32_t child = 0;
        (void)find_id(&loader->reader.handles, item, &child);
        const quern_result result = quern_commands_relate(loader->commands, loader->created[child],
                                                          relation, loader->created[target]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Records the relations, and then the names, since names must be unique among the siblings that result. */
static quern_result record_links(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    for (uint32_t k = 0; k < quern_type_count(world, QUERN_TYPE_RELATION); k++) {
        quern_type_info type;
        quern_relation_def def;
        quern_result result = quern_type_at(world, QUERN_TYPE_RELATION, k, &type);
        if (result == QUERN_OK) result = quern_relation_get_def(world, type.relation, &def);
        for (uint32_t i = 0; i < loader->count && result == QUERN_OK; i++) {
            const quern__json_item *children = children_of(loader->items[i], def.name);
            if (children != NULL) result = record_children(loader, i, type.relation, def.ordered, children);
        }
        if (result != QUERN_OK) return result;
    }
    for (uint32_t i = 0; i < loader->count; i++) {
        const char *name = name_of(loader->items[i]);
        const quern_result result =
            name != NULL ? quern_commands_set_name(loader->commands, loader->created[i], name) : QUERN_OK;
        if (result != QUERN_OK) return add_entity_to_error(loader, result, loader->items[i]);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- world */

static quern_result list_world_ids(world_loader *loader)
{
    const quern__json_item *item;
    uint32_t i = 0;
    for (item = quern__json_first(loader->entities); item != NULL;
         item = quern__json_next(loader->entities, item)) {
        const quern__json_item *id = quern__json_member(item, "id");
        uint64_t number;
        if (!quern__json_as_count(id, MAX_ID, &number))
            return note(&loader->reader, item,
                        quern__json_fail(
                            QUERN_ERROR_INVALID_ARGUMENT,
                            "entity %u of 'entities' has no 'id' that is a whole number from 0 to 2^53 - 1",
                            i));
        loader->sorted[i] = (json_id){number, i};
        loader->items[i++] = item;
    }
    const quern_result result = sort_ids(loader->sorted, loader->count, loader->ids, loader->indices, &i);
    if (result != QUERN_OK) return note(&loader->reader, loader->items[i], result);
    for (i = 0; i < loader->count; i++) /* from here on sorted[i].id is the id of entity i, for messages */
        loader->sorted[loader->indices[i]].id = loader->ids[i];
    loader->reader.handles =
        (json_handles){.ids = loader->ids, .indices = loader->indices, .count = loader->count};
    return QUERN_OK;
}

/* Allocates the arrays in one block, count + 1 elements each, those with the strictest alignment first. */
static quern_result reserve_world_lists(world_loader *loader)
{
    const size_t count = loader->count + (size_t)1;
    const size_t bytes = sizeof(entity_name) + sizeof(json_id) + sizeof(quern_entity) + sizeof(uint64_t) +
                         sizeof(const quern__json_item *) + 3 * sizeof(uint32_t);
    const quern_allocator *allocator = &loader->reader.allocator;
    loader->block_bytes = count * bytes;
    loader->block = allocator->allocate(allocator->user_data, loader->block_bytes, _Alignof(max_align_t));
    if (loader->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for lists of %u entities",
                                loader->count);
    loader->names = (entity_name *)(void *)loader->block;
    loader->sorted = (json_id *)(loader->names + count);
    loader->created = (quern_entity *)(loader->sorted + count);
    loader->ids = (uint64_t *)(loader->created + count);
    loader->items = (const quern__json_item **)(loader->ids + count);
    loader->targets = (uint32_t *)(loader->items + count);
    loader->indices = loader->targets + count; /* two arrays of count + 1 elements: see check_cycles */
    return QUERN_OK;
}

/* Registers the parent relation and the disabled tag if the JSON uses them. */
static quern_result register_used_builtins(world_loader *loader)
{
    quern_world *world = loader->reader.world;
    bool needs_disabled = false, needs_parent = false;
    for (uint32_t i = 0; i < loader->count; i++) {
        needs_parent |= children_of(loader->items[i], "parent") != NULL;
        needs_disabled |=
            quern__json_member(quern__json_member(loader->items[i], "components"), "disabled") != NULL;
    }
    const bool has_parent = !needs_parent ||
                            !quern_component_is_null(quern_component_find(world, "parent")) ||
                            !quern_relation_is_null(quern_world_parent(world));
    const bool has_disabled = !needs_disabled ||
                              !quern_component_is_null(quern_component_find(world, "disabled")) ||
                              !quern_component_is_null(quern_world_disabled_tag(world));
    return has_parent && has_disabled ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
}

static quern_result check_world(world_loader *loader, const quern__json_item *root)
{
    const quern__json_item *version = quern__json_member(root, "quern");
    loader->entities = quern__json_member(root, "entities");
    if (!quern__json_is(version, QUERN__JSON_NUMBER) ||
        !quern__json_is(loader->entities, QUERN__JSON_ARRAY))
        return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "a world must be an object with a number 'quern' and an array 'entities'");
    loader->count = loader->entities->count;
    quern_result result = check_version(&loader->reader, version);
    if (result == QUERN_OK) result = check_members(&loader->reader, root, "member", is_root_member);
    if (result == QUERN_OK) result = reserve_world_lists(loader);
    if (result == QUERN_OK) result = list_world_ids(loader);
    if (result == QUERN_OK) result = register_used_builtins(loader);
    if (result == QUERN_OK) result = load_entities(loader);
    if (result == QUERN_OK) result = load_resources(loader, root, false);
    return result == QUERN_OK ? check_relations(loader) : result;
}

/* Destroys the created entities in reverse order, which returns their slots to the free list in the old order. */
static void undo(world_loader *loader)
{
    char message[512];
    strncpy(message, quern_error_message(), sizeof message - 1);
    message[sizeof message - 1] = '\0';
    (void)quern_world_discard_commands(loader->reader.world);
    for (uint32_t i = loader->count; i-- > 0;)
        if (quern_entity_is_alive(loader->reader.world, loader->created[i]))
            (void)quern_entity_destroy(loader->reader.world, loader->created[i]);
    (void)quern_error_set(QUERN_OK, "%s", message);
}

/* Applies the recorded commands and fails if any was dropped. No other commands wait. */
static quern_result flush(quern_world *world)
{
    quern_flush_stats stats;
    quern_result result = quern_world_flush(world);
    if (result == QUERN_OK) result = quern_world_get_flush_stats(world, &stats);
    if (result != QUERN_OK || stats.dropped_count == 0) return result;
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "the world dropped %llu commands made from the JSON; nothing was changed",
                            (unsigned long long)stats.dropped_count);
}

static quern_result make_world(world_loader *loader, const quern__json_item *root)
{
    quern_world *world = loader->reader.world;
    quern_result result =
        loader->count > 0 ? quern_entity_create_many(world, NULL, NULL, 0, loader->count, loader->created)
                          : QUERN_OK;
    if (result != QUERN_OK) return result;
    loader->reader.handles.created = loader->created;
    loader->reader.is_second_pass = true;
    loader->commands = quern_world_commands(world);
    result = loader->commands != NULL ? load_entities(loader) : QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_OK) result = record_links(loader);
    if (result == QUERN_OK) result = flush(world);
    if (result != QUERN_OK) {
        undo(loader);
        return result;
    }
    loader->commands = NULL;
    return load_resources(loader, root, true);
}

/* Releases what a loader has, and adds the place and the function to an error. Returns `result`. */
static quern_result close_world_loader(world_loader *loader, quern_result result, const char *function)
{
    const quern_allocator *allocator = &loader->reader.allocator;
    result = quern__json_add_place(&loader->document, loader->reader.place, result);
    quern__json_document_close(&loader->document);
    if (loader->block != NULL)
        allocator->release(allocator->user_data, loader->block, loader->block_bytes, _Alignof(max_align_t));
    quern_byte_buffer_release(&loader->values);
    close_reader(&loader->reader);
    return quern__json_prefix_error(result, function);
}

quern_result quern_json_read_world(quern_world *world, const char *text, size_t bytes,
                                   const quern_json_options *options)
{
    static const char function[] = "quern_json_read_world";
    world_loader loader = {.count = 0};
    quern_result result = open_reader(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    result = quern_world_flush(world);
    if (result == QUERN_OK)
        result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = check_world(&loader, loader.document.items);
    if (result == QUERN_OK) result = make_world(&loader, loader.document.items);
    options = loader.reader.options;
    for (uint32_t i = 0; i < loader.count && result == QUERN_OK && options->loaded != NULL; i++)
        options->loaded(options->user_data, loader.sorted[i].id, loader.created[i]);
    return close_world_loader(&loader, result, function);
}

quern_result quern_json_read_entity(quern_world *world, quern_entity entity, const char *text, size_t bytes,
                                    const quern_json_options *options)
{
    static const char function[] = "quern_json_read_entity";
    world_loader loader = {.count = 0};
    quern_result result = open_reader(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (!quern_entity_is_alive(world, entity))
        return quern__json_fail(QUERN_ERROR_STALE_ENTITY,
                                "%s: entity %u:%u is not alive in this world: pass a living one", function,
                                quern_entity_index(entity), quern_entity_generation(entity));
    result = quern_world_flush(world);
    if (result == QUERN_OK)
        result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = load_entity(&loader, entity, loader.document.items);
    if (result == QUERN_OK) {
        loader.reader.is_second_pass = true;
        loader.commands = quern_world_commands(world);
        result = loader.commands != NULL ? load_entity(&loader, entity, loader.document.items)
                                         : QUERN_ERROR_OUT_OF_MEMORY;
        if (result == QUERN_OK) result = flush(world);
        if (result != QUERN_OK) undo(&loader);
    }
    return close_world_loader(&loader, result, function);
}

/* ----------------------------------------------------------------------------------------- prefabs */

typedef struct prefab_loader {
    json_reader reader;
    quern__json_document document;
    uint32_t member_count, value_count, target_count, id_count;
    uint32_t constructed_count;     /* number of values, from the first, that are constructed in memory */
    const quern__json_item **items; /* the object of each member */
    quern_prefab_member_def *members;
    quern_prefab_value *values;
    quern_prefab_target *targets;
    json_id *sorted;
    uint64_t *ids;
    uint32_t *indices;
    quern_entity *handles; /* of each member */
    char *block;           /* the memory of all these arrays */
    size_t block_bytes;
    char *value_memory; /* the values, in order, each aligned */
    size_t value_bytes;
} prefab_loader;

/* Allocates the arrays in one block, those with the strictest alignment first. */
static quern_result reserve_member_lists(prefab_loader *loader)
{
    /* Upper limits of the numbers of elements, since the members of values may have the same keys. */
    size_t members = 1, values = 0, targets = 0;
    for (uint32_t i = 0; i < loader->document.count; i++) {
        const quern__json_item *item = &loader->document.items[i];
        if (item->key == NULL) continue;
        if (strcmp(item->key, "children") == 0) members += item->count;
        if (strcmp(item->key, "components") == 0) values += item->count;
        if (strcmp(item->key, "targets") == 0) targets += item->span;
    }
    if (members > QUERN_MAX_PREFAB_MEMBERS) members = QUERN_MAX_PREFAB_MEMBERS;
    const quern_allocator *allocator = &loader->reader.allocator;
    const size_t member_bytes = sizeof(quern_prefab_member_def) + sizeof(json_id) + sizeof(uint64_t) +
                                sizeof(quern_entity) + sizeof(const quern__json_item *) + sizeof(uint32_t);
    loader->block_bytes = members * member_bytes + values * sizeof(quern_prefab_value) +
                          targets * sizeof(quern_prefab_target);
    loader->block = allocator->allocate(allocator->user_data, loader->block_bytes, _Alignof(max_align_t));
    if (loader->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for lists of %zu members", members);
    loader->sorted = (json_id *)(void *)loader->block;
    loader->ids = (uint64_t *)(loader->sorted + members);
    loader->handles = (quern_entity *)(loader->ids + members);
    loader->targets = (quern_prefab_target *)(loader->handles + members);
    loader->values = (quern_prefab_value *)(loader->targets + targets);
    loader->members = (quern_prefab_member_def *)(loader->values + values);
    loader->items = (const quern__json_item **)(loader->members + members);
    loader->indices = (uint32_t *)(loader->items + members);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- members */

/* Names the member in the message of an error, and notes its object. Returns `result`. */
static quern_result add_member_to_error(prefab_loader *loader, uint32_t i, quern_result result)
{
    char prefix[128];
    const char *name = name_of(loader->items[i]);
    if (result == QUERN_OK) return QUERN_OK;
    if (name != NULL)
        snprintf(prefix, sizeof prefix, "member %u ('%.63s')", i, name);
    else
        snprintf(prefix, sizeof prefix, "member %u", i);
    return note(&loader->reader, loader->items[i], quern__json_prefix_error(result, prefix));
}

static quern_result fail_at(prefab_loader *loader, const quern__json_item *item, const char *key,
                            const char *expected)
{
    return note(&loader->reader, item,
                quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' must be %s", key, expected));
}

static quern_result append_member(prefab_loader *loader, uint32_t parent, const quern__json_item *item)
{
    const uint32_t i = loader->member_count;
    if (i == QUERN_MAX_PREFAB_MEMBERS)
        return note(
            &loader->reader, item,
            quern__json_fail(QUERN_ERROR_LIMIT,
                             "there are more than %d members (QUERN_MAX_PREFAB_MEMBERS): make several "
                             "prefabs",
                             QUERN_MAX_PREFAB_MEMBERS));
    loader->items[i] = item;
    loader->members[i] = (quern_prefab_member_def){.parent = parent};
    loader->handles[i] = quern_prefab_member_handle(i);
    loader->member_count++;
    const quern__json_item *children = quern__json_member(item, "children");
    if (item->kind != QUERN__JSON_OBJECT)
        return add_member_to_error(loader, i, fail_at(loader, item, "children", "an array of objects"));
    if (children != NULL && children->kind != QUERN__JSON_ARRAY)
        return add_member_to_error(loader, i, fail_at(loader, children, "children", "an array of objects"));
    return QUERN_OK;
}

/* Returns the object after that of member *at, in the order of the text, and stores the index of its parent in *at.
 * NULL after the last. */
static const quern__json_item *next_member(const prefab_loader *loader, uint32_t *at)
{
    const quern__json_item *next = quern__json_first(quern__json_member(loader->items[*at], "children"));
    while (next == NULL && *at > 0) {
        const quern__json_item *inner = loader->items[*at];
        *at = loader->members[*at].parent;
        next = quern__json_next(quern__json_member(loader->items[*at], "children"), inner);
    }
    return next;
}

static quern_result list_member_ids(prefab_loader *loader)
{
    for (uint32_t i = 0; i < loader->member_count; i++) {
        const quern__json_item *id = quern__json_member(loader->items[i], "id");
        uint64_t number;
        if (id == NULL) continue;
        if (!quern__json_as_count(id, MAX_ID, &number))
            return add_member_to_error(loader, i,
                                       fail_at(loader, id, "id", "a whole number from 0 to 2^53 - 1"));
        loader->sorted[loader->id_count++] = (json_id){number, i};
    }
    loader->reader.handles = (json_handles){.ids = loader->ids,
                                            .indices = loader->indices,
                                            .created = loader->handles,
                                            .count = loader->id_count,
                                            .accepts_text = true};
    uint32_t repeated = 0;
    const quern_result result =
        sort_ids(loader->sorted, loader->id_count, loader->ids, loader->indices, &repeated);
    return result == QUERN_OK ? QUERN_OK : add_member_to_error(loader, repeated, result);
}

/* -------------------------------------------------------------------------------------- values of members */

/* Returns the result of a failed quern_world_disabled_tag, which has only a message, and keeps that. A call that would
 * fail anyway, and changes nothing, says whether the world is locked. */
static quern_result fail_disabled_tag(quern_world *world)
{
    char message[256];
    snprintf(message, sizeof message, "%.255s", quern_error_message());
    const bool is_locked = quern_prefab_destroy(world, (quern_prefab){0}) == QUERN_ERROR_WORLD_LOCKED;
    return quern__json_fail(is_locked ? QUERN_ERROR_WORLD_LOCKED : QUERN_ERROR_OUT_OF_MEMORY, "%s",
                            message);
}

/* Finds a component. The tag of disabled entities is registered if the world does not have it. Stores null if the
 * component is unknown and left out. */
static quern_result find_component(prefab_loader *loader, const char *name, quern_component *out_component)
{
    quern_world *world = loader->reader.world;
    *out_component = quern_component_find(world, name);
    if (!quern_component_is_null(*out_component)) return QUERN_OK;
    if (strcmp(name, "disabled") != 0)
        return handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "component", name, NULL);
    *out_component = quern_world_disabled_tag(world);
    return quern_component_is_null(*out_component) ? fail_disabled_tag(world) : QUERN_OK;
}

static size_t aligned(size_t bytes, size_t alignment_bytes)
{
    return (bytes + alignment_bytes - 1) & ~(alignment_bytes - 1);
}

/* Lists a component of a member, and the memory of its value. */
static quern_result list_value(prefab_loader *loader, quern_prefab_member_def *member,
                               const quern__json_item *item)
{
    quern_component component;
    quern_type_info type;
    quern_result result = find_component(loader, item->key, &component);
    if (result != QUERN_OK || quern_component_is_null(component)) return result;
    result = quern_component_get_info(loader->reader.world, component, &type);
    if (result != QUERN_OK) return result;
    if (type.is_managed)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is maintained by the world: list targets of the relation in 'targets', and "
            "members of the tree in 'children'",
            type.name);
    loader->values[loader->value_count++] = (quern_prefab_value){.component = component};
    loader->value_bytes = aligned(loader->value_bytes, type.alignment_bytes) + type.size_bytes;
    member->value_count++;
    return QUERN_OK;
}

/* Marks the components of a member that its list 'disabled' names. */
static quern_result list_disabled(prefab_loader *loader, quern_prefab_member_def *member,
                                  const quern__json_item *components, const quern__json_item *item)
{
    const char *name = item->kind == QUERN__JSON_STRING ? item->text : "";
    quern_prefab_value *values = loader->values + loader->value_count - member->value_count;
    quern_type_info type;
    if (quern__json_member(components, name) == NULL)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'disabled' names '%.63s', which is not in 'components': add it there, or remove it from the "
            "list",
            name);
    const quern_component component = quern_component_find(loader->reader.world, name);
    for (uint32_t i = 0; i < member->value_count; i++) {
        if (values[i].component.bits != component.bits) continue;
        const quern_result result = quern_component_get_info(loader->reader.world, component, &type);
        if (result == QUERN_OK && !type.can_disable)
            return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                    "component '%s' cannot be disabled: register it with can_disable, or "
                                    "remove it from the list",
                                    name);
        values[i].is_disabled = true;
        return result;
    }
    return QUERN_OK; /* the component was left out */
}

static quern_result list_values(prefab_loader *loader, uint32_t i)
{
    quern_prefab_member_def *member = &loader->members[i];
    const quern__json_item *components = quern__json_member(loader->items[i], "components"), *item;
    const quern__json_item *disabled = quern__json_member(loader->items[i], "disabled");
    if (components != NULL && components->kind != QUERN__JSON_OBJECT)
        return fail_at(loader, components, "components", "an object with a member for each component");
    if (disabled != NULL && disabled->kind != QUERN__JSON_ARRAY)
        return fail_at(loader, disabled, "disabled", "an array of component names");
    member->values = loader->values + loader->value_count;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        const quern_result result = list_value(loader, member, item);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    }
    for (item = quern__json_first(disabled); item != NULL; item = quern__json_next(disabled, item)) {
        const quern_result result = list_disabled(loader, member, components, item);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

/* Reads the values of a member. *at: index of the first of them, and then of the next member's. *used_bytes: memory of
 * the values before it. */
static quern_result read_values(prefab_loader *loader, uint32_t i, uint32_t *at, size_t *used_bytes)
{
    const quern__json_item *components = quern__json_member(loader->items[i], "components"), *item;
    for (item = quern__json_first(components); item != NULL; item = quern__json_next(components, item)) {
        const quern_component component = quern_component_find(loader->reader.world, item->key);
        quern_type_info type;
        if (quern_component_is_null(component)) continue; /* left out */
        quern_prefab_value *value = &loader->values[(*at)++];
        quern_result result = quern_component_get_info(loader->reader.world, component, &type);
        if (result != QUERN_OK) return result;
        char *memory = NULL;
        if (type.size_bytes > 0) {
            *used_bytes = aligned(*used_bytes, type.alignment_bytes);
            memory = loader->value_memory + *used_bytes;
            *used_bytes += type.size_bytes;
            construct(&type, memory);
        }
        value->value = memory;
        loader->constructed_count = *at;
        result = read_fields(&loader->reader, &type, item, memory);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    }
    return QUERN_OK;
}

static quern_result read_all_values(prefab_loader *loader)
{
    const quern_allocator *allocator = &loader->reader.allocator;
    uint32_t at = 0;
    size_t used_bytes = 0;
    if (loader->value_bytes > 0)
        loader->value_memory =
            allocator->allocate(allocator->user_data, loader->value_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (loader->value_bytes > 0 && loader->value_memory == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for values of %zu bytes",
                                loader->value_bytes);
    for (uint32_t i = 0; i < loader->member_count; i++) {
        const quern_result result =
            add_member_to_error(loader, i, read_values(loader, i, &at, &used_bytes));
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------- targets and slots of members */

static quern_result list_target(prefab_loader *loader, quern_prefab_member_def *member,
                                quern_relation relation, const quern__json_item *item)
{
    quern_prefab_target target = {.relation = relation};
    uint32_t index;
    if (item->kind == QUERN__JSON_STRING) {
        const quern_result result = read_entity_text(&loader->reader, item, &target.target);
        if (result != QUERN_OK) return note(&loader->reader, item, result);
    } else if (find_id(&loader->reader.handles, item, &index)) {
        target.target = loader->handles[index];
    } else {
        return note(&loader->reader, item,
                    quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                                     "a target must be the id of a member, or the path of an entity"));
    }
    loader->targets[loader->target_count++] = target;
    member->target_count++;
    return QUERN_OK;
}

/* Lists the targets of a member in one relation: one target, or an array of them. */
static quern_result list_relation(prefab_loader *loader, quern_prefab_member_def *member,
                                  const quern__json_item *item)
{
    const quern_relation relation = quern_relation_find(loader->reader.world, item->key);
    if (strcmp(item->key, "parent") == 0)
        return quern__json_fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'parent' is the hierarchy: list the member in 'children' of its parent instead");
    if (quern_relation_is_null(relation))
        return handle_unknown(&loader->reader, QUERN_ERROR_INVALID_ARGUMENT, "relation", item->key, NULL);
    if (item->kind != QUERN__JSON_ARRAY) return list_target(loader, member, relation, item);
    const quern__json_item *element = quern__json_first(item);
    for (; element != NULL; element = quern__json_next(item, element)) {
        const quern_result result = list_target(loader, member, relation, element);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result list_targets(prefab_loader *loader, uint32_t i)
{
    quern_prefab_member_def *member = &loader->members[i];
    const quern__json_item *targets = quern__json_member(loader->items[i], "targets"), *item;
    if (targets != NULL && targets->kind != QUERN__JSON_OBJECT)
        return fail_at(loader, targets, "targets", "an object with a member for each relation");
    member->targets = loader->targets + loader->target_count;
    for (item = quern__json_first(targets); item != NULL; item = quern__json_next(targets, item)) {
        quern_result result = list_relation(loader, member, item);
        if (result != QUERN_OK)
            return note(&loader->reader, item, quern__json_prefix_error(result, item->key));
    }
    return QUERN_OK;
}

static quern_result read_slot(prefab_loader *loader, uint32_t i)
{
    const quern__json_item *slot = quern__json_member(loader->items[i], "slot");
    if (slot == NULL) return QUERN_OK;
    if (slot->kind != QUERN__JSON_STRING) return fail_at(loader, slot, "slot", "the name of a slot");
    loader->members[i].slot = quern_component_find(loader->reader.world, slot->text);
    if (!quern_component_is_null(loader->members[i].slot)) return QUERN_OK;
    return note(&loader->reader, slot,
                handle_unknown(&loader->reader, QUERN_ERROR_UNKNOWN_COMPONENT, "slot", slot->text, NULL));
}

static bool is_member_key(const char *key)
{
    static const char *const keys[] = {"id",       "name",    "slot",    "components",
                                       "disabled", "targets", "children"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static bool is_root_key(const char *key)
{
    return strcmp(key, "quern") == 0 || strcmp(key, "prefab") == 0;
}

/* Reads all of a member but its values. */
static quern_result list_member(prefab_loader *loader, uint32_t i)
{
    const quern__json_item *object = loader->items[i], *name = quern__json_member(object, "name");
    quern_result result = check_members(&loader->reader, object, "key of a member", is_member_key);
    if (result == QUERN_OK && name != NULL && name->kind != QUERN__JSON_STRING)
        result = fail_at(loader, name, "name", "a string");
    loader->members[i].name = name_of(object);
    if (result == QUERN_OK) result = read_slot(loader, i);
    if (result == QUERN_OK) result = list_values(loader, i);
    if (result == QUERN_OK) result = list_targets(loader, i);
    return add_member_to_error(loader, i, result);
}

/* -------------------------------------------------------------------------------------------- prefab */

/* Notes the object of the member that a message of quern_prefab_create names: that with the slot, or the first one. */
static quern_result note_created_member(prefab_loader *loader, quern_result result)
{
    static const char of_slot[] = "the slot of member ", of_any[] = ": member ";
    const char *message = quern_error_message(), *slot = strstr(message, of_slot);
    const char *found = slot != NULL ? slot + strlen(of_slot) : strstr(message, of_any);
    if (result == QUERN_OK || found == NULL) return result;
    const unsigned long index = strtoul(slot != NULL ? found : found + strlen(of_any), NULL, 10);
    return index < loader->member_count ? note(&loader->reader, loader->items[index], result) : result;
}

/* The first pass: reads all but values. */
static quern_result list_prefab(prefab_loader *loader)
{
    const quern__json_item *root = loader->document.items;
    const quern__json_item *version = quern__json_member(root, "quern");
    const quern__json_item *prefab = quern__json_member(root, "prefab");
    if (!quern__json_is(version, QUERN__JSON_NUMBER) || !quern__json_is(prefab, QUERN__JSON_OBJECT))
        return note(
            &loader->reader, root,
            quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "a prefab must be an object with a number 'quern' and an object 'prefab', "
                             "its root"));
    quern_result result = check_version(&loader->reader, version);
    if (result == QUERN_OK) result = check_members(&loader->reader, root, "member", is_root_key);
    if (result == QUERN_OK) result = reserve_member_lists(loader);
    if (result == QUERN_OK) result = append_member(loader, 0, prefab);
    while (result == QUERN_OK) {
        uint32_t parent = loader->member_count - 1;
        const quern__json_item *item = next_member(loader, &parent);
        if (item == NULL) break;
        result = append_member(loader, parent, item);
    }
    if (result == QUERN_OK) result = list_member_ids(loader);
    for (uint32_t i = 0; i < loader->member_count && result == QUERN_OK; i++)
        result = list_member(loader, i);
    return result;
}

quern_result quern_json_read_prefab(quern_world *world, const char *text, size_t bytes,
                                    const quern_json_options *options, quern_prefab *out_prefab)
{
    static const char function[] = "quern_json_read_prefab";
    prefab_loader loader = {.member_count = 0};
    quern_result result = open_reader(&loader.reader, world, options, function);
    if (result != QUERN_OK) return result;
    if (out_prefab == NULL)
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: 'out_prefab' is NULL", function);
    result = quern__json_parse(&loader.reader.allocator, text, bytes, &loader.document);
    if (result == QUERN_OK) result = list_prefab(&loader);
    if (result == QUERN_OK) result = read_all_values(&loader);
    if (result == QUERN_OK) {
        result = quern_prefab_create(world, loader.members, loader.member_count, out_prefab);
        result = note_created_member(&loader, result);
    }
    result = quern__json_add_place(&loader.document, loader.reader.place, result);
    result = quern__json_prefix_error(result, function);
    const quern_allocator *allocator = &loader.reader.allocator;
    for (uint32_t i = 0; i < loader.constructed_count; i++) {
        const quern_prefab_value *value = &loader.values[i];
        quern_type_info type;
        if (value->value != NULL &&
            quern_component_get_info(loader.reader.world, value->component, &type) == QUERN_OK)
            destroy(&type, (void *)value->value);
    }
    if (loader.value_memory != NULL)
        allocator->release(allocator->user_data, loader.value_memory, loader.value_bytes,
                           QUERN_MAX_ALIGNMENT_BYTES);
    if (loader.block != NULL)
        allocator->release(allocator->user_data, loader.block, loader.block_bytes, _Alignof(max_align_t));
    quern__json_document_close(&loader.document);
    close_reader(&loader.reader);
    return result;
}
