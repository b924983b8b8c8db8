/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Writes values, entities, worlds and prefabs as JSON, from which json_read.c makes the same bits again: whole numbers
 * beyond 2^53, texts that are not UTF-8 and handles have forms of their own. Texts are made by the reflection of the
 * library, so that they are those of quern_entity_get_text. An entity has as id its index in the list that is written.
 * */

#include "kit/json_internal.h"

#include <quern/name.h>
#include <quern/world.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entities of a written world or prefab, ascending by slot. `entities` is NULL if handles are written as text. */
typedef struct json_ids {
    const quern_entity *entities;
    const uint32_t *numbers; /* the JSON id of each entity; NULL: its index in the list */
    uint32_t count;
    bool names_others; /* whether handles of other living entities are written as text; otherwise as null */
} json_ids;

/* A buffer of JSON text before a sink. */
typedef struct json_writer {
    quern_sink sink;
    const quern_world *world;
    json_ids ids;
    bool has_failed;
    size_t used_bytes;
    char text[512];
} json_writer;

enum {
    FIELD_TEXT_BYTES = 8192
}; /* limit of the text of one element: the path of an entity is the longest */

static void flush(json_writer *writer)
{
    if (writer->used_bytes > 0 && !writer->has_failed)
        writer->has_failed = !writer->sink.write(writer->sink.user_data, writer->text, writer->used_bytes);
    writer->used_bytes = 0;
}

static void put(json_writer *writer, const char *text, size_t bytes)
{
    while (bytes > 0) {
        if (writer->used_bytes == sizeof writer->text) flush(writer);
        const size_t room = sizeof writer->text - writer->used_bytes, fitting = bytes < room ? bytes : room;
        memcpy(writer->text + writer->used_bytes, text, fitting);
        writer->used_bytes += fitting;
        text += fitting;
        bytes -= fitting;
    }
}

static void print(json_writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static const char hexadecimal_digits[] = "0123456789abcdef";

static bool needs_escape(char byte)
{
    return (unsigned char)byte < ' ' || byte == '"' || byte == '\\' || byte == 0x7F;
}

static void print_escaped(json_writer *writer, char byte)
{
    const unsigned value = (unsigned char)byte;
    const char short_form[] = {'\\', byte},
               long_form[] = {
                   '\\', 'u', '0', '0', hexadecimal_digits[value >> 4], hexadecimal_digits[value & 15]};
    if (byte == '"' || byte == '\\')
        put(writer, short_form, sizeof short_form);
    else
        put(writer, long_form, sizeof long_form);
}

/* Bytes that are not UTF-8 are written unchanged: names of types may contain them, and the reader compares bytes. */
static void print_string(json_writer *writer, const char *text, size_t bytes)
{
    put(writer, "\"", 1);
    for (size_t i = 0; i < bytes;) {
        const size_t begin = i;
        while (i < bytes && !needs_escape(text[i]))
            i++;
        put(writer, text + begin, i - begin);
        if (i < bytes) print_escaped(writer, text[i++]);
    }
    put(writer, "\"", 1);
}

static void print_key(json_writer *writer, const char *key, size_t bytes, bool *has_items)
{
    if (*has_items) put(writer, ", ", 2);
    *has_items = true;
    print_string(writer, key, bytes);
    put(writer, ": ", 2);
}

static void print_number(json_writer *writer, uint64_t number)
{
    char text[QUERN__JSON_WHOLE_BYTES];
    put(writer, text, quern__json_digits(number, text));
}

static quern_result close_writer(json_writer *writer, const char *function)
{
    flush(writer);
    if (!writer->has_failed) writer->has_failed = !writer->sink.write(writer->sink.user_data, "", 0);
    return writer->has_failed
               ? quern__json_fail(QUERN_ERROR_IO, "%s: the sink could not write the JSON", function)
               : QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ fields */

/* Prints the handle of an entity as text. */
static void print_handle(json_writer *writer, quern_entity entity)
{
    char text[FIELD_TEXT_BYTES];
    quern_text_buffer buffer = {text, sizeof text, 0};
    if (quern_entity_to_text(writer->world, entity, quern_sink_text(&buffer)) == QUERN_OK)
        print_string(writer, text, strlen(text));
    else
        print(writer, "null");
}

static void print_id(json_writer *writer, quern_entity entity)
{
    const uint32_t count = writer->ids.entities != NULL ? writer->ids.count : 0;
    uint32_t first = 0, end = count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (quern_entity_index(writer->ids.entities[middle]) < quern_entity_index(entity))
            first = middle + 1;
        else
            end = middle;
    }
    if (first < count && quern_entity_equal(writer->ids.entities[first], entity))
        print_number(writer, writer->ids.numbers != NULL ? writer->ids.numbers[first] : first);
    else if (writer->ids.names_others && quern_entity_is_alive(writer->world, entity))
        print_handle(writer, entity);
    else
        print(writer, "null");
}

static bool is_number(const char *text)
{
    const char digit = text[text[0] == '-'];
    return digit >= '0' && digit <= '9';
}

static bool is_exact(const quern_field *field, const char *at)
{
    const double limit = 9007199254740992.0; /* 2^53: doubles represent all whole numbers up to it */
    uint64_t u64 = 0;
    int64_t i64 = 0;
    if (field->type == QUERN_FIELD_U64) memcpy(&u64, at, sizeof u64);
    if (field->type == QUERN_FIELD_I64) memcpy(&i64, at, sizeof i64);
    return (double)u64 < limit && (double)i64 < limit && (double)i64 > -limit;
}

static void print_element(json_writer *writer, const quern__json_field *single, const char *value,
                          const char *path, const char *at)
{
    char text[FIELD_TEXT_BYTES];
    quern_entity entity;
    if (single->field.type == QUERN_FIELD_ENTITY) memcpy(&entity, at, sizeof entity);
    if (single->field.type == QUERN_FIELD_ENTITY &&
        (writer->ids.entities != NULL || quern_entity_is_null(entity))) {
        print_id(writer, entity);
        return;
    }
    quern_text_buffer buffer = {text, sizeof text, 0};
    text[0] = '\0';
    if (quern_value_get_text(writer->world, &single->type, value, path, quern_sink_text(&buffer)) !=
        QUERN_OK)
        buffer.length_bytes = 0;
    const size_t bytes = buffer.length_bytes < sizeof text ? buffer.length_bytes : sizeof text - 1;
    const bool is_bare =
        single->field.type == QUERN_FIELD_BOOL ||
        (single->field.type != QUERN_FIELD_ENTITY && is_number(text) && is_exact(&single->field, at));
    if (is_bare)
        put(writer, text, bytes);
    else
        print_string(writer, text, bytes);
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
    const bool is_invalid = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                            (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return is_invalid ? 0 : bytes;
}

/* Prints a text of `length_bytes` bytes as a string, or all its `count` bytes as an array if it is no UTF-8. */
static void print_characters(json_writer *writer, const char *text, size_t length_bytes, uint32_t count,
                             bool is_valid)
{
    for (size_t i = 0; i < length_bytes && is_valid;) {
        const size_t bytes = character_bytes(text + i, length_bytes - i);
        is_valid = bytes > 0;
        i += bytes;
    }
    if (is_valid) {
        print_string(writer, text, length_bytes);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        print(writer, i == 0 ? "[" : ", ");
        print_number(writer, (unsigned char)text[i]);
    }
    print(writer, "]");
}

static void print_string_field(json_writer *writer, const char *at)
{
    quern_string string;
    memcpy(&string, at, sizeof string);
    const uint32_t bytes = quern_string_bytes(&string);
    print_characters(writer, quern_string_text(&string), bytes, bytes, true);
}

static void print_value(json_writer *writer, const quern_type_info *type, const char *value);

static void print_list(json_writer *writer, const quern_field *field, const char *at)
{
    quern__json_elements elements;
    quern_list list;
    memcpy(&list, at, sizeof list);
    quern__json_elements_init(&elements, field);
    put(writer, "[", 1);
    for (uint32_t i = 0; i < list.count; i++) {
        const char *item = (const char *)list.items + (size_t)i * elements.type.size_bytes;
        quern__json_field single;
        if (i > 0) put(writer, ", ", 2);
        if (field->element->type == 0) {
            print_value(writer, &elements.type, item);
        } else if (field->element->type == QUERN_FIELD_STRING) {
            print_string_field(writer, item);
        } else {
            quern__json_field_init(&single, &elements.type, 0);
            print_element(writer, &single, item, field->name, item);
        }
    }
    put(writer, "]", 1);
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

static void print_field(json_writer *writer, const quern_type_info *type, uint32_t i, const char *value)
{
    quern__json_field single;
    char path[QUERN__JSON_PATH_BYTES];
    quern__json_field_init(&single, type, i);
    const char *at = value + single.field.offset_bytes;
    if (single.field.type == QUERN_FIELD_TEXT) {
        const char *end = memchr(at, '\0', single.field.count);
        print_characters(writer, at, end != NULL ? (size_t)(end - at) : 0, single.field.count, end != NULL);
        return;
    }
    if (single.field.type == QUERN_FIELD_STRING || single.field.type == QUERN_FIELD_LIST) {
        for (uint32_t k = 0; k < single.field.count; k++, at += sizeof(quern_list)) {
            if (single.field.count > 1) print(writer, k == 0 ? "[" : ", ");
            if (single.field.type == QUERN_FIELD_STRING)
                print_string_field(writer, at);
            else
                print_list(writer, &single.field, at);
        }
        if (single.field.count > 1) print(writer, "]");
        return;
    }
    if (single.field.count == 1) {
        print_element(writer, &single, value, single.field.name, at);
        return;
    }
    for (uint32_t k = 0; k < single.field.count; k++) {
        print(writer, k == 0 ? "[" : ", ");
        quern__json_element_path(single.field.name, k, path);
        print_element(writer, &single, value, path, at + (size_t)k * element_bytes(single.field.type));
    }
    print(writer, "]");
}

/* Whether the name of a field before the i-th one starts with the same `bytes` bytes. */
static bool prefix_was_printed(const quern_type_info *type, uint32_t i, size_t bytes)
{
    for (uint32_t k = 0; k < i; k++)
        if (strncmp(type->fields[k].name, type->fields[i].name, bytes) == 0) return true;
    return false;
}

/* Prints an object of all fields with names that start with the first `skipped_bytes` bytes of the i-th field's
 * name. These bytes end with a dot. Fields that share a longer prefix become members of one nested object, even if
 * other fields are declared between them. The recursion is as deep as a name has dots. */
static void print_fields(json_writer *writer, const quern_type_info *type, const char *value, uint32_t i,
                         size_t skipped_bytes)
{
    const char *prefix = type->fields[i].name;
    bool has_items = false;
    print(writer, "{");
    for (; i < type->field_count; i++) {
        const char *name = type->fields[i].name;
        if (strncmp(name, prefix, skipped_bytes) != 0) continue;
        const char *part = name + skipped_bytes, *dot = strchr(part, '.');
        const size_t path_bytes = dot != NULL ? (size_t)(dot - name) + 1 : 0;
        if (dot != NULL && prefix_was_printed(type, i, path_bytes)) continue;
        print_key(writer, part, dot != NULL ? (size_t)(dot - part) : strlen(part), &has_items);
        if (dot != NULL)
            print_fields(writer, type, value, i, path_bytes);
        else
            print_field(writer, type, i, value);
    }
    print(writer, "}");
}

static void print_value(json_writer *writer, const quern_type_info *type, const char *value)
{
    print_fields(writer, type, value, 0, 0);
}

static quern_result print_any(json_writer *writer, const quern_type_info *type, const void *value)
{
    if (type->size_bytes == 0)
        print(writer, "true");
    else if (type->field_count > 0)
        print_value(writer, type, value);
    else if (quern__json_has_hooks(type))
        return quern__json_fail_hooks(type);
    else {
        put(writer, "\"", 1);
        for (uint32_t i = 0; i < type->size_bytes; i++) {
            const unsigned byte = ((const unsigned char *)value)[i];
            const char pair[] = {hexadecimal_digits[byte >> 4], hexadecimal_digits[byte & 15]};
            put(writer, pair, sizeof pair);
        }
        put(writer, "\"", 1);
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- entities */

/* Prints the list of the components that are in the flag's state. */
static void print_flag_list(json_writer *writer, quern_entity entity, const quern_flag_info *flag,
                            const quern_component *components, uint32_t count)
{
    bool has_any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!flag->is_listed(writer->world, entity, components[i])) continue;
        print(writer, ", ");
        if (!has_any) {
            print_string(writer, flag->list_name, strlen(flag->list_name));
            print(writer, ": [");
        }
        has_any = true;
        const char *name = quern_component_name(writer->world, components[i]);
        print_string(writer, name, strlen(name));
    }
    if (has_any) print(writer, "]");
}

/* Prints the sources of an entity by relation, or its targets, unless it has none. left_out: not printed; may be null.
 * */
static void print_links(json_writer *writer, quern_entity entity, bool are_targets, quern_relation left_out)
{
    const quern_world *world = writer->world;
    bool has_relations = false;
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RELATION); i++) {
        quern_type_info type;
        if (quern_type_at(world, QUERN_TYPE_RELATION, i, &type) != QUERN_OK) continue;
        const quern_relation relation = type.relation;
        quern_entity linked = are_targets
                                  ? quern_entity_next_target(world, entity, relation, quern_entity_null())
                                  : quern_entity_first_source(world, entity, relation);
        if (relation.bits == left_out.bits || quern_entity_is_null(linked)) continue;
        if (!has_relations) print(writer, are_targets ? ", \"targets\": {" : ", \"children\": {");
        print_key(writer, type.name, strlen(type.name), &has_relations);
        for (const char *mark = "["; !quern_entity_is_null(linked); mark = ", ") {
            print(writer, mark);
            print_id(writer, linked);
            linked = are_targets ? quern_entity_next_target(world, entity, relation, linked)
                                 : quern_entity_next_source(world, entity, relation, linked);
        }
        print(writer, "]");
    }
    if (has_relations) print(writer, "}");
}

/* Prints all members of an entity after "id". has_name: whether the name is one of them. */
static quern_result print_entity(json_writer *writer, quern_entity entity, bool has_name)
{
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count =
        quern_entity_list_components(writer->world, entity, components, QUERN_MAX_ENTITY_COMPONENTS);
    const char *name = has_name ? quern_entity_name(writer->world, entity) : NULL;
    bool has_items = false;
    if (name != NULL) {
        print(writer, "\"name\": ");
        print_string(writer, name, strlen(name));
        print(writer, ", ");
    }
    print(writer, "\"components\": {");
    for (uint32_t i = 0; i < count; i++) {
        quern_type_info type;
        quern_result result = quern_component_get_info(writer->world, components[i], &type);
        if (result == QUERN_OK && type.is_managed) continue;
        if (result == QUERN_OK) print_key(writer, type.name, strlen(type.name), &has_items);
        const void *value = result == QUERN_OK && type.size_bytes > 0
                                ? quern_entity_get((quern_world *)writer->world, entity, components[i])
                                : NULL;
        if (result == QUERN_OK && type.size_bytes > 0 && value == NULL) return QUERN_ERROR_WORLD_LOCKED;
        if (result == QUERN_OK) result = print_any(writer, &type, value);
        if (result != QUERN_OK) return result;
    }
    print(writer, "}");
    quern_flag_info flag;
    for (uint32_t i = 0; quern__json_next_list(&i, &flag);)
        print_flag_list(writer, entity, &flag, components, count);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- world */

static void print_schema(json_writer *writer)
{
    bool has_types = false;
    print(writer, "\"components\": {");
    for (uint32_t i = 0; i < quern_type_count(writer->world, QUERN_TYPE_COMPONENT); i++) {
        quern_type_info type;
        if (quern_type_at(writer->world, QUERN_TYPE_COMPONENT, i, &type) != QUERN_OK || type.is_managed)
            continue;
        print_key(writer, type.name, strlen(type.name), &has_types);
        print(writer, "{\"size\": ");
        print_number(writer, type.size_bytes);
        bool has_fields = false;
        for (uint32_t k = 0; k < type.field_count; k++) {
            if (k == 0) print(writer, ", \"fields\": {");
            print_key(writer, type.fields[k].name, strlen(type.fields[k].name), &has_fields);
            const quern_field *field = &type.fields[k];
            char text[32];
            if (field->count > 1)
                snprintf(text, sizeof text, "\"%s[%u]\"", quern__json_field_type(field->type),
                         field->count);
            else
                snprintf(text, sizeof text, "\"%s\"", quern__json_field_type(field->type));
            print(writer, text);
        }
        print(writer, has_fields ? "}}" : "}");
    }
    print(writer, "}");
}

/* Prints the resources with described fields, like the world's hash: others may contain pointers. */
static quern_result print_resources(json_writer *writer)
{
    bool has_items = false;
    print(writer, "\"resources\": {");
    for (uint32_t i = 0; i < quern_type_count(writer->world, QUERN_TYPE_RESOURCE); i++) {
        quern_type_info type;
        quern_result result = quern_type_at(writer->world, QUERN_TYPE_RESOURCE, i, &type);
        if (result == QUERN_OK && type.field_count == 0) continue;
        const char *value =
            result == QUERN_OK ? quern_resource_get((quern_world *)writer->world, type.resource) : NULL;
        if (value == NULL) return result != QUERN_OK ? result : QUERN_ERROR_WORLD_LOCKED;
        print_key(writer, type.name, strlen(type.name), &has_items);
        print_value(writer, &type, value);
    }
    print(writer, "}");
    return QUERN_OK;
}

static quern_result print_entities(json_writer *writer)
{
    print(writer, "\"entities\": [");
    for (uint32_t i = 0; i < writer->ids.count; i++) {
        print(writer, i > 0 ? ",\n {\"id\": " : "\n {\"id\": ");
        print_number(writer, i);
        print(writer, ", ");
        const quern_result result = print_entity(writer, writer->ids.entities[i], true);
        if (result != QUERN_OK) return result;
        print_links(writer, writer->ids.entities[i], false, (quern_relation){0});
        print(writer, "}");
    }
    print(writer, "\n]");
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- prefab */

/* A tree of entities in the order of a walk that visits parents before children, siblings in their order. */
typedef struct entity_tree {
    quern_entity *entities, *sorted; /* in that order; ascending by slot */
    uint32_t *numbers;               /* the position in `entities` of each element of `sorted` */
    uint32_t count;
    char *block;
    size_t block_bytes;
} entity_tree;

/* Returns the entity after `at` in the walk over the tree of root, and changes *depth, the depth of `at`, to that of
 * the returned one. Null after the last. */
static quern_entity next_in_tree(const quern_world *world, quern_relation parent, quern_entity at,
                                 uint32_t *depth)
{
    if (quern_relation_is_null(parent)) return quern_entity_null();
    quern_entity next = quern_entity_first_source(world, at, parent);
    if (!quern_entity_is_null(next)) (*depth)++;
    while (quern_entity_is_null(next) && *depth > 0) {
        const quern_entity above = quern_entity_target(world, at, parent);
        next = quern_entity_next_source(world, above, parent, at);
        at = above;
        if (quern_entity_is_null(next)) (*depth)--;
    }
    return next;
}

/* Returns the hierarchy, or null if the world does not have it. A relation of the same name without levels is another
 * one, and may have cycles. */
static quern_relation find_hierarchy(const quern_world *world)
{
    quern_relation_def def;
    const quern_relation parent = quern_relation_find(world, "parent");
    const bool is_hierarchy = !quern_relation_is_null(parent) &&
                              quern_relation_get_def(world, parent, &def) == QUERN_OK && def.levels;
    return is_hierarchy ? parent : (quern_relation){0};
}

static int compare_slots(const void *a, const void *b)
{
    const quern_entity *x = a, *y = b;
    const uint32_t a_slot = quern_entity_index(*x), b_slot = quern_entity_index(*y);
    return (a_slot > b_slot) - (a_slot < b_slot);
}

/* Lists the tree of root, and gives its entities numbers. */
static quern_result open_tree(json_writer *writer, quern_entity root, quern_relation parent,
                              entity_tree *tree)
{
    const quern_allocator allocator = quern_allocator_default();
    uint32_t depth = 0;
    *tree = (entity_tree){.count = 0};
    for (quern_entity at = root; !quern_entity_is_null(at);
         at = next_in_tree(writer->world, parent, at, &depth))
        tree->count++;
    if (tree->count > QUERN_MAX_PREFAB_MEMBERS)
        return quern__json_fail(QUERN_ERROR_LIMIT,
                                "entity %u:%u has %u descendants, more than a prefab can have with it "
                                "(%d, QUERN_MAX_PREFAB_MEMBERS): write parts of the tree",
                                quern_entity_index(root), quern_entity_generation(root), tree->count - 1,
                                QUERN_MAX_PREFAB_MEMBERS);
    tree->block_bytes = tree->count * (2 * sizeof(quern_entity) + sizeof(uint32_t));
    tree->block = allocator.allocate(allocator.user_data, tree->block_bytes, _Alignof(max_align_t));
    if (tree->block == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a list of %u entities",
                                tree->count);
    tree->entities = (quern_entity *)(void *)tree->block;
    tree->sorted = tree->entities + tree->count;
    tree->numbers = (uint32_t *)(tree->sorted + tree->count);
    quern_entity at = root;
    for (uint32_t i = 0; i < tree->count; i++) {
        tree->entities[i] = at;
        at = next_in_tree(writer->world, parent, at, &depth);
    }
    memcpy(tree->sorted, tree->entities, tree->count * sizeof(quern_entity));
    qsort(tree->sorted, tree->count, sizeof(quern_entity), compare_slots);
    for (uint32_t i = 0; i < tree->count; i++) {
        const quern_entity *found =
            bsearch(&tree->entities[i], tree->sorted, tree->count, sizeof(quern_entity), compare_slots);
        tree->numbers[found - tree->sorted] = i;
    }
    writer->ids = (json_ids){
        .entities = tree->sorted, .numbers = tree->numbers, .count = tree->count, .names_others = true};
    return QUERN_OK;
}

static quern_result print_tree(json_writer *writer, const entity_tree *tree, quern_relation parent)
{
    uint32_t depth = 0;
    print(writer, "{\"quern\": ");
    print_number(writer, QUERN__JSON_VERSION);
    print(writer, ",\n\"prefab\": ");
    for (uint32_t i = 0; i < tree->count; i++) {
        const quern_entity entity = tree->entities[i];
        print(writer, "{\"id\": ");
        print_number(writer, i);
        print(writer, ", ");
        const quern_result result = print_entity(writer, entity, i > 0);
        if (result != QUERN_OK) return result;
        print_links(writer, entity, true, parent);
        const uint32_t above = depth;
        const quern_entity next = next_in_tree(writer->world, parent, entity, &depth);
        if (depth > above) {
            print(writer, ", \"children\": [\n ");
            continue;
        }
        print(writer, "}");
        const uint32_t closed_count = above - depth;
        for (uint32_t k = 0; k < closed_count; k++)
            print(writer, "]}");
        if (!quern_entity_is_null(next)) print(writer, ",\n ");
    }
    print(writer, "}\n");
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------ public calls */

static quern_result check_sink(const quern_world *world, quern_sink sink, const char *function)
{
    if (world == NULL) return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: 'world' is NULL", function);
    if (sink.write != NULL) return QUERN_OK;
    return quern__json_fail(
        QUERN_ERROR_NULL_ARGUMENT,
        "%s: the sink has no function to write: 'write', or the file or buffer that it was "
        "made from, is NULL",
        function);
}

static quern_result check_entity(const quern_world *world, quern_entity entity, quern_sink sink,
                                 const char *function)
{
    const quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK || quern_entity_is_alive(world, entity)) return result;
    return quern__json_fail(QUERN_ERROR_STALE_ENTITY,
                            "%s: entity %u:%u is not alive in this world: pass a living one", function,
                            quern_entity_index(entity), quern_entity_generation(entity));
}

quern_result quern_json_write_value(const quern_world *world, const quern_type_info *type,
                                    const void *value, quern_sink sink)
{
    static const char function[] = "quern_json_write_value";
    json_writer writer = {.sink = sink, .world = world};
    quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK) return result;
    if (type == NULL || (value == NULL && type->size_bytes > 0))
        return quern__json_fail(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function,
                                type == NULL ? "type" : "value");
    result = print_any(&writer, type, value);
    return result == QUERN_OK ? close_writer(&writer, function)
                              : quern__json_prefix_error(result, function);
}

quern_result quern_json_write_entity(const quern_world *world, quern_entity entity, quern_sink sink)
{
    static const char function[] = "quern_json_write_entity";
    json_writer writer = {.sink = sink, .world = world};
    quern_result result = check_entity(world, entity, sink, function);
    if (result != QUERN_OK) return result;
    print(&writer, "{");
    result = print_entity(&writer, entity, true);
    print(&writer, "}\n");
    return result == QUERN_OK ? close_writer(&writer, function)
                              : quern__json_prefix_error(result, function);
}

quern_result quern_json_write_world(const quern_world *world, quern_sink sink)
{
    static const char function[] = "quern_json_write_world";
    json_writer writer = {.sink = sink, .world = world};
    quern_result result = check_sink(world, sink, function);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator = quern_allocator_default();
    const uint32_t count = quern_world_list_entities(world, NULL, 0);
    const size_t bytes = (count + (size_t)1) * sizeof(quern_entity);
    quern_entity *entities = allocator.allocate(allocator.user_data, bytes, _Alignof(max_align_t));
    if (entities == NULL)
        return quern__json_fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a list of %u entities",
                                function, count);
    writer.ids =
        (json_ids){.entities = entities, .count = quern_world_list_entities(world, entities, count)};
    print(&writer, "{\"quern\": ");
    print_number(&writer, QUERN__JSON_VERSION);
    print(&writer, ",\n");
    print_schema(&writer);
    print(&writer, ",\n");
    result = print_resources(&writer);
    print(&writer, ",\n");
    if (result == QUERN_OK) result = print_entities(&writer);
    print(&writer, "}\n");
    allocator.release(allocator.user_data, entities, bytes, _Alignof(max_align_t));
    return result == QUERN_OK ? close_writer(&writer, function)
                              : quern__json_prefix_error(result, function);
}

quern_result quern_json_write_prefab(const quern_world *world, quern_entity root, quern_sink sink)
{
    static const char function[] = "quern_json_write_prefab";
    json_writer writer = {.sink = sink, .world = world};
    quern_result result = check_entity(world, root, sink, function);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator = quern_allocator_default();
    const quern_relation parent = find_hierarchy(world);
    entity_tree tree;
    result = open_tree(&writer, root, parent, &tree);
    if (result == QUERN_OK) result = print_tree(&writer, &tree, parent);
    if (tree.block != NULL)
        allocator.release(allocator.user_data, tree.block, tree.block_bytes, _Alignof(max_align_t));
    return result == QUERN_OK ? close_writer(&writer, function)
                              : quern__json_prefix_error(result, function);
}
