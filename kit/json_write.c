/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/json_internal.h"

#include <quern/name.h>
#include <quern/world.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A buffer of JSON text before a sink. */
typedef struct writer {
    quern_sink sink;
    const quern_world *world;
    quern__json_ids ids;
    bool has_failed;
    size_t used_bytes;
    char text[512];
} writer;

enum {
    FIELD_TEXT_BYTES = 8192
}; /* limit of the text of one element: the path of an entity is the longest */

static void flush(writer *to)
{
    if (to->used_bytes > 0 && !to->has_failed)
        to->has_failed = !to->sink.write(to->sink.user_data, to->text, to->used_bytes);
    to->used_bytes = 0;
}

static void put(writer *to, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (to->used_bytes == sizeof to->text) flush(to);
        to->text[to->used_bytes++] = text[i];
    }
}

static void print(writer *to, const char *text)
{
    put(to, text, strlen(text));
}

/* Bytes that are not UTF-8 are written unchanged: names of types may contain them, and the reader compares bytes. */
static void print_string(writer *to, const char *text, size_t bytes)
{
    print(to, "\"");
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        char escaped[8];
        if (byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", byte);
        else if (byte < ' ' || byte == 0x7F)
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        else
            snprintf(escaped, sizeof escaped, "%c", byte);
        print(to, escaped);
    }
    print(to, "\"");
}

static void print_key(writer *to, const char *key, size_t bytes, bool *has_items)
{
    if (*has_items) print(to, ", ");
    *has_items = true;
    print_string(to, key, bytes);
    print(to, ": ");
}

static void print_number(writer *to, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    print(to, text);
}

static quern_result close_writer(writer *to, const char *function)
{
    flush(to);
    if (!to->has_failed) to->has_failed = !to->sink.write(to->sink.user_data, "", 0);
    return to->has_failed
               ? quern__json_fail(QUERN_ERROR_IO, "%s: the sink could not write the JSON", function)
               : QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ fields */

/* Writes the text of a field or of an array element and returns its length, 0 on an error. */
static size_t text_of(const writer *to, const quern_type_info *type, const void *value, const char *path,
                      char text[FIELD_TEXT_BYTES])
{
    quern_text_buffer buffer = {text, FIELD_TEXT_BYTES, 0};
    if (quern_value_get_text(to->world, type, value, path, quern_sink_text(&buffer)) != QUERN_OK) return 0;
    return buffer.length_bytes < FIELD_TEXT_BYTES ? buffer.length_bytes : FIELD_TEXT_BYTES - 1;
}

static void print_id(writer *to, quern_entity entity)
{
    uint32_t first = 0, end = to->ids.count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (quern_entity_index(to->ids.entities[middle]) < quern_entity_index(entity))
            first = middle + 1;
        else
            end = middle;
    }
    if (first < to->ids.count && quern_entity_equal(to->ids.entities[first], entity))
        print_number(to, first);
    else
        print(to, "null");
}

static bool is_number(const char *text)
{
    const char digit = text[text[0] == '-'];
    return digit >= '0' && digit <= '9';
}

static bool is_exact(const quern_field *field, const char *at)
{
    uint64_t u64 = 0;
    int64_t i64 = 0;
    if (field->type == QUERN_FIELD_U64) memcpy(&u64, at, sizeof u64);
    if (field->type == QUERN_FIELD_I64) memcpy(&i64, at, sizeof i64);
    return (double)u64 < QUERN__JSON_EXACT && (double)i64 < QUERN__JSON_EXACT &&
           (double)i64 > -QUERN__JSON_EXACT;
}

static void print_element(writer *to, const quern__json_field *one, const char *value, const char *path,
                          const char *at)
{
    char text[FIELD_TEXT_BYTES];
    quern_entity entity;
    if (one->field.type == QUERN_FIELD_ENTITY) memcpy(&entity, at, sizeof entity);
    if (one->field.type == QUERN_FIELD_ENTITY &&
        (to->ids.entities != NULL || quern_entity_is_null(entity))) {
        print_id(to, entity);
        return;
    }
    const size_t bytes = text_of(to, &one->type, value, path, text);
    const bool is_plain =
        one->field.type == QUERN_FIELD_BOOL ||
        (one->field.type != QUERN_FIELD_ENTITY && is_number(text) && is_exact(&one->field, at));
    if (is_plain)
        put(to, text, bytes);
    else
        print_string(to, text, bytes);
}

/* Returns the length of the UTF-8 character at `text`, of which `left` bytes exist, or 0 if it is not valid. */
static size_t character_bytes(const char *text, size_t left)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t bytes = first < 0x80   ? 1
                         : first < 0xC2 ? 0
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF5 ? 4
                                        : 0;
    if (bytes == 0 || bytes > left) return 0;
    for (size_t i = 1; i < bytes; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
    const unsigned char second = bytes > 1 ? (unsigned char)text[1] : 0;
    const bool is_wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                          (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return is_wrong ? 0 : bytes;
}

static void print_text(writer *to, const char *text, uint32_t count)
{
    const char *end = memchr(text, '\0', count);
    const size_t length_bytes = end != NULL ? (size_t)(end - text) : 0;
    bool is_good = end != NULL;
    for (size_t i = 0; i < length_bytes && is_good;) {
        const size_t bytes = character_bytes(text + i, length_bytes - i);
        is_good = bytes > 0;
        i += bytes;
    }
    if (is_good) {
        print_string(to, text, length_bytes);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        print(to, i == 0 ? "[" : ", ");
        print_number(to, (unsigned char)text[i]);
    }
    print(to, "]");
}

static uint32_t element_bytes(quern_field_type type)
{
    switch (type) {
    case QUERN_FIELD_I16:
    case QUERN_FIELD_U16:
        return 2;
    case QUERN_FIELD_I32:
    case QUERN_FIELD_U32:
    case QUERN_FIELD_F32:
        return 4;
    case QUERN_FIELD_I64:
    case QUERN_FIELD_U64:
    case QUERN_FIELD_F64:
    case QUERN_FIELD_ENTITY:
        return 8;
    default:
        return 1;
    }
}

static void print_field(writer *to, const quern_type_info *type, uint32_t i, const char *value)
{
    quern__json_field one;
    char path[QUERN_MAX_NAME_BYTES + 16];
    quern__json_field_init(&one, type, i);
    const char *at = value + one.field.offset_bytes;
    if (one.field.type == QUERN_FIELD_TEXT) {
        print_text(to, at, one.field.count);
        return;
    }
    if (one.field.count == 1) {
        print_element(to, &one, value, one.field.name, at);
        return;
    }
    for (uint32_t k = 0; k < one.field.count; k++) {
        print(to, k == 0 ? "[" : ", ");
        snprintf(path, sizeof path, "%s[%u]", one.field.name, k);
        print_element(to, &one, value, path, at + (size_t)k * element_bytes(one.field.type));
    }
    print(to, "]");
}

/* Whether the name of a field before the i-th one starts with the same `bytes` bytes. */
static bool was_before(const quern_type_info *type, uint32_t i, size_t bytes)
{
    for (uint32_t k = 0; k < i; k++)
        if (strncmp(type->fields[k].name, type->fields[i].name, bytes) == 0) return true;
    return false;
}

/* Prints an object of all fields whose names start with the first `skipped_bytes` bytes of the i-th field's name,
 * which end with a dot. Fields that share a longer prefix become members of one nested object, even if other
 * fields are declared between them. The recursion is as deep as a name has dots. */
static void print_fields(writer *to, const quern_type_info *type, const char *value, uint32_t i,
                         size_t skipped_bytes)
{
    const char *prefix = type->fields[i].name;
    bool has_items = false;
    print(to, "{");
    for (; i < type->field_count; i++) {
        const char *name = type->fields[i].name;
        if (strncmp(name, prefix, skipped_bytes) != 0) continue;
        const char *part = name + skipped_bytes, *dot = strchr(part, '.');
        const size_t path_bytes = dot != NULL ? (size_t)(dot - name) + 1 : 0;
        if (dot != NULL && was_before(type, i, path_bytes)) continue;
        print_key(to, part, dot != NULL ? (size_t)(dot - part) : strlen(part), &has_items);
        if (dot != NULL)
            print_fields(to, type, value, i, path_bytes);
        else
            print_field(to, type, i, value);
    }
    print(to, "}");
}

static void print_value(writer *to, const quern_type_info *type, const char *value)
{
    print_fields(to, type, value, 0, 0);
}

static void print_bytes(writer *to, const char *value, uint32_t bytes)
{
    print(to, "\"");
    for (uint32_t i = 0; i < bytes; i++) {
        char digits[4];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)value[i]);
        print(to, digits);
    }
    print(to, "\"");
}

static quern_result print_any(writer *to, const quern_type_info *type, const void *value)
{
    if (type->size_bytes == 0)
        print(to, "true");
    else if (type->field_count > 0)
        print_value(to, type, value);
    else if (quern__json_has_hooks(type))
        return quern__json_fail_hooks(type);
    else
        print_bytes(to, value, type->size_bytes);
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- entities */

/* Prints the list of the components that are in the flag's state. */
static void print_list(writer *to, quern_entity entity, const quern_flag_info *flag,
                       const quern_component *components, uint32_t count)
{
    bool has_any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!flag->is_listed(to->world, entity, components[i])) continue;
        print(to, ", ");
        if (!has_any) {
            print_string(to, flag->list_name, strlen(flag->list_name));
            print(to, ": [");
        }
        has_any = true;
        const char *name = quern_component_name(to->world, components[i]);
        print_string(to, name, strlen(name));
    }
    if (has_any) print(to, "]");
}

static void print_children(writer *to, quern_entity target)
{
    bool has_relations = false;
    for (uint32_t i = 0; i < quern_relation_count(to->world); i++) {
        const quern_relation relation = quern_relation_at(to->world, i);
        quern_entity child = quern_entity_first_source(to->world, target, relation);
        if (quern_entity_is_null(child)) continue;
        if (!has_relations) print(to, ", \"children\": {");
        const char *name = quern_component_name(to->world, quern_relation_component(relation));
        print_key(to, name, strlen(name), &has_relations);
        for (const char *mark = "["; !quern_entity_is_null(child); mark = ", ") {
            print(to, mark);
            print_id(to, child);
            child = quern_entity_next_sibling(to->world, child, relation);
        }
        print(to, "]");
    }
    if (has_relations) print(to, "}");
}

/* Prints all members of an entity after "id". */
static quern_result print_entity(writer *to, quern_entity entity)
{
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count =
        quern_entity_list_components(to->world, entity, components, QUERN_MAX_ENTITY_COMPONENTS);
    const char *name = quern_entity_name(to->world, entity);
    bool has_items = false;
    if (name != NULL) {
        print(to, "\"name\": ");
        print_string(to, name, strlen(name));
        print(to, ", ");
    }
    print(to, "\"components\": {");
    for (uint32_t i = 0; i < count; i++) {
        quern_type_info type;
        quern_result result = quern_component_get_info(to->world, components[i], &type);
        if (result == QUERN_OK && type.is_managed) continue;
        if (result == QUERN_OK) print_key(to, type.name, strlen(type.name), &has_items);
        const void *value = result == QUERN_OK && type.size_bytes > 0
                                ? quern_entity_get((quern_world *)to->world, entity, components[i])
                                : NULL;
        if (result == QUERN_OK && type.size_bytes > 0 && value == NULL) return QUERN_ERROR_WORLD_LOCKED;
        if (result == QUERN_OK) result = print_any(to, &type, value);
        if (result != QUERN_OK) return result;
    }
    print(to, "}");
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);)
        print_list(to, entity, &flag, components, count);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- world */

static void print_field_type(writer *to, const quern_field *field)
{
    static const char *const names[] = {
        [QUERN_FIELD_BOOL] = "bool", [QUERN_FIELD_I8] = "i8",   [QUERN_FIELD_U8] = "u8",
        [QUERN_FIELD_I16] = "i16",   [QUERN_FIELD_U16] = "u16", [QUERN_FIELD_I32] = "i32",
        [QUERN_FIELD_U32] = "u32",   [QUERN_FIELD_I64] = "i64", [QUERN_FIELD_U64] = "u64",
        [QUERN_FIELD_F32] = "f32",   [QUERN_FIELD_F64] = "f64", [QUERN_FIELD_ENTITY] = "entity",
        [QUERN_FIELD_TEXT] = "text"};
    char text[32];
    if (field->count > 1)
        snprintf(text, sizeof text, "\"%s[%u]\"", names[field->type], field->count);
    else
        snprintf(text, sizeof text, "\"%s\"", names[field->type]);
    print(to, text);
}

static void print_schema(writer *to)
{
    bool has_types = false;
    print(to, "\"components\": {");
    for (uint32_t i = 0; i < quern_component_count(to->world); i++) {
        quern_type_info type;
        if (quern_component_get_info(to->world, quern_component_at(to->world, i), &type) != QUERN_OK ||
            type.is_managed)
            continue;
        print_key(to, type.name, strlen(type.name), &has_types);
        print(to, "{\"size\": ");
        print_number(to, type.size_bytes);
        bool has_fields = false;
        for (uint32_t k = 0; k < type.field_count; k++) {
            if (k == 0) print(to, ", \"fields\": {");
            print_key(to, type.fields[k].name, strlen(type.fields[k].name), &has_fields);
            print_field_type(to, &type.fields[k]);
        }
        print(to, has_fields ? "}}" : "}");
    }
    print(to, "}");
}

/* Prints the resources with described fields, like the world's hash: others may contain pointers. */
static quern_result print_resources(writer *to)
{
    bool has_items = false;
    print(to, "\"resources\": {");
    for (uint32_t i = 0; i < quern_resource_count(to->world); i++) {
        const quern_resource resource = quern_resource_at(to->world, i);
        quern_type_info type;
        quern_result result = quern_resource_get_info(to->world, resource, &type);
        if (result == QUERN_OK && type.field_count == 0) continue;
        const char *value =
            result == QUERN_OK ? quern_resource_get((quern_world *)to->world, resource) : NULL;
        if (value == NULL) return result != QUERN_OK ? result : QUERN_ERROR_WORLD_LOCKED;
        print_key(to, type.name, strlen(type.name), &has_items);
        print_value(to, &type, value);
    }
    print(to, "}");
    return QUERN_OK;
}

static quern_result print_entities(writer *to)
{
    print(to, "\"entities\": [");
    for (uint32_t i = 0; i < to->ids.count; i++) {
        print(to, i > 0 ? ",\n {\"id\": " : "\n {\"id\": ");
        print_number(to, i);
        print(to, ", ");
        const quern_result result = print_entity(to, to->ids.entities[i]);
        if (result != QUERN_OK) return result;
        print_children(to, to->ids.entities[i]);
        print(to, "}");
    }
    print(to, "\n]");
    return QUERN_OK;
}

static quern_result print_world(writer *to)
{
    print(to, "{\"quern\": ");
    print_number(to, QUERN__JSON_VERSION);
    print(to, ",\n");
    print_schema(to);
    print(to, ",\n");
    quern_result result = print_resources(to);
    print(to, ",\n");
    if (result == QUERN_OK) result = print_entities(to);
    print(to, "}\n");
    return result;
}

/* ------------------------------------------------------------------------------------ public calls */

static quern_result check_sink(const quern_world *world, quern_sink sink, const char *function)
{
    if (world == NULL) return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: 'world' is NULL", function);
    if (sink.write != NULL) return QUERN_OK;
    return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: the sink has no function to write", function);
}

quern_result quern_json_write_value(const quern_world *world, const quern_type_info *type,
                                    const void *value, quern_sink sink)
{
    static const char function[] = "quern_json_write_value";
    writer to = {.sink = sink, .world = world};
    quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK) return result;
    if (type == NULL || (value == NULL && type->size_bytes > 0))
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                                type == NULL ? "type" : "value");
    result = print_any(&to, type, value);
    return result == QUERN_OK ? close_writer(&to, function) : result;
}

quern_result quern_json_write_entity(const quern_world *world, quern_entity entity, quern_sink sink)
{
    static const char function[] = "quern_json_write_entity";
    writer to = {.sink = sink, .world = world};
    quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK) return result;
    if (!quern_entity_is_alive(world, entity))
        return quern__json_fail(QUERN_ERROR_STALE_ENTITY, "%s: entity %u:%u does not live in this world",
                                function, quern_entity_index(entity), quern_entity_generation(entity));
    print(&to, "{");
    result = print_entity(&to, entity);
    print(&to, "}\n");
    return result == QUERN_OK ? close_writer(&to, function) : result;
}

quern_result quern_json_write_world(const quern_world *world, quern_sink sink)
{
    static const char function[] = "quern_json_write_world";
    writer to = {.sink = sink, .world = world};
    quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator = quern_allocator_default();
    const uint32_t count = quern_world_list_entities(world, NULL, 0);
    const size_t bytes = (count + (size_t)1) * sizeof(quern_entity);
    quern_entity *entities = allocator.allocate(allocator.user_data, bytes, _Alignof(max_align_t));
    if (entities == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a list of %u entities",
                                function, count);
    to.ids = (quern__json_ids){entities, quern_world_list_entities(world, entities, count)};
    result = print_world(&to);
    allocator.release(allocator.user_data, entities, bytes, _Alignof(max_align_t));
    return result == QUERN_OK ? close_writer(&to, function) : result;
}
