/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/list_values.h"

/* Lists may be at any offset, so they are loaded and stored as bytes. */

static quern_list load_list(const char *at)
{
    quern_list list;
    memcpy(&list, at, sizeof list);
    return list;
}

void quern__lists_copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    const quern__list_slots *slots = user_data;
    memcpy(targets, sources, (size_t)slots->value_bytes * count);
    char *value = targets;
    for (uint32_t i = 0; i < count; i++, value += slots->value_bytes)
        for (uint32_t k = 0; k < slots->count; k++) {
            quern_list list = load_list(value + slots->offsets[k]);
            quern__list_share(&list);
            memcpy(value + slots->offsets[k], &list, sizeof list);
        }
}

void quern__lists_destroy(void *values, uint32_t count, void *user_data)
{
    const quern__list_slots *slots = user_data;
    const char *value = values;
    for (uint32_t i = 0; i < count; i++, value += slots->value_bytes)
        for (uint32_t k = 0; k < slots->count; k++) {
            quern_list list = load_list(value + slots->offsets[k]);
            quern_list_free(&list);
        }
}

/* ---------------------------------------------------------------------------------------- elements */

static bool is_list_of_structs(const quern_field *field)
{
    return field->type == QUERN_FIELD_LIST && field->element->type == 0;
}

static bool is_list_of_strings(const quern_field *field)
{
    return field->type == QUERN_FIELD_LIST && field->element->type == QUERN_FIELD_STRING;
}

uint32_t quern__field_element(const quern_field *field)
{
    if (field->type == QUERN_FIELD_STRING) return QUERN__LIST_TEXT;
    if (field->element->type == QUERN_FIELD_STRING) return QUERN_LIST_STRINGS;
    return field->element->type != 0 ? quern__field_bytes(field->element->type)
                                     : field->element->size_bytes;
}

bool quern__field_same_elements(const quern_field *a, const quern_field *b)
{
    const quern_element *x = a->element, *y = b->element;
    if (x == NULL || y == NULL || x->type != 0 || y->type != 0)
        return (x == NULL) == (y == NULL) && (x == NULL || x->type == y->type);
    if (x->size_bytes != y->size_bytes || x->field_count != y->field_count) return false;
    const quern__type type = {.fields = (quern_field *)(uintptr_t)x->fields, .field_count = x->field_count};
    return quern__type_different_field(&type, y->fields) == x->field_count;
}

static bool has_handles(const quern_field *field)
{
    if (field->type != QUERN_FIELD_LIST) return false;
    if (field->element->type != 0) return field->element->type == QUERN_FIELD_ENTITY;
    for (uint32_t i = 0; i < field->element->field_count; i++)
        if (field->element->fields[i].type == QUERN_FIELD_ENTITY) return true;
    return false;
}

static size_t bytes_of(const quern_field *field)
{
    return (size_t)quern__field_bytes(field->type) * field->count;
}

static uint64_t hash_text(uint64_t hash, const quern_list *text)
{
    hash = quern__hash_word(hash, text->count);
    return text->count > 0 ? quern__hash_bytes(hash, text->items, text->count) : hash;
}

static uint64_t hash_list(const quern_field *field, uint64_t hash, const quern_list *list)
{
    const char *items = list->items;
    if (field->type == QUERN_FIELD_STRING) return hash_text(hash, list);
    hash = quern__hash_word(hash, list->count);
    if (is_list_of_strings(field)) {
        for (uint32_t i = 0; i < list->count; i++)
            hash = hash_text(hash, &((const quern_string *)list->items)[i].list);
    } else if (is_list_of_structs(field)) {
        const quern_element *element = field->element;
        for (uint32_t i = 0; i < list->count; i++, items += element->size_bytes)
            for (uint32_t k = 0; k < element->field_count; k++) {
                const quern_field *part = &element->fields[k];
                if (part->type != QUERN_FIELD_ENTITY)
                    hash = quern__hash_numbers(hash, items + part->offset_bytes,
                                               quern__field_bytes(part->type), part->count);
            }
    } else if (field->element->type != QUERN_FIELD_ENTITY && list->count > 0) {
        hash = quern__hash_numbers(hash, items, quern__field_bytes(field->element->type), list->count);
    }
    return hash;
}

uint64_t quern__field_hash_lists(const quern_field *field, uint64_t hash, const char *at)
{
    for (uint32_t i = 0; i < field->count; i++) {
        const quern_list list = load_list(at + i * sizeof list);
        hash = hash_list(field, hash, &list);
    }
    return hash;
}

static bool is_same_text(const quern_list *a, const quern_list *b)
{
    return a->count == b->count &&
           (a->items == b->items || a->count == 0 || memcmp(a->items, b->items, a->count) == 0);
}

static bool is_same_struct(const quern_element *element, const char *a, const char *b)
{
    for (uint32_t k = 0; k < element->field_count; k++) {
        const quern_field *part = &element->fields[k];
        if (memcmp(a + part->offset_bytes, b + part->offset_bytes, bytes_of(part)) != 0) return false;
    }
    return true;
}

static bool is_same_list(const quern_field *field, const quern_list *a, const quern_list *b)
{
    if (a->count != b->count) return false;
    if (a->items == b->items || a->count == 0) return true; /* copies of each other */
    if (field->type == QUERN_FIELD_STRING) return is_same_text(a, b);
    const size_t size_bytes = quern__list_element_bytes(quern__field_element(field));
    if (!is_list_of_strings(field) && !is_list_of_structs(field))
        return memcmp(a->items, b->items, a->count * size_bytes) == 0;
    const char *x = a->items, *y = b->items;
    for (uint32_t i = 0; i < a->count; i++, x += size_bytes, y += size_bytes)
        if (is_list_of_structs(field)
                ? !is_same_struct(field->element, x, y)
                : !is_same_text((const quern_list *)(const void *)x, (const quern_list *)(const void *)y))
            return false;
    return true;
}

bool quern__field_same_lists(const quern_field *field, const char *a, const char *b)
{
    for (uint32_t i = 0; i < field->count; i++) {
        const quern_list x = load_list(a + i * sizeof x), y = load_list(b + i * sizeof y);
        if (!is_same_list(field, &x, &y)) return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------- handles */

/* Replaces each handle of an array by the result of `remap`. */
static void map_handles(char *at, uint32_t count, quern__remap_function *remap, void *argument)
{
    for (uint32_t i = 0; i < count; i++, at += sizeof(quern_entity)) {
        quern_entity entity;
        memcpy(&entity, at, sizeof entity);
        entity = remap(argument, entity);
        memcpy(at, &entity, sizeof entity);
    }
}

static void map_structs(const quern_element *element, char *items, uint32_t count,
                        quern__remap_function *remap, void *argument)
{
    for (uint32_t i = 0; i < count; i++, items += element->size_bytes)
        for (uint32_t k = 0; k < element->field_count; k++)
            if (element->fields[k].type == QUERN_FIELD_ENTITY)
                map_handles(items + element->fields[k].offset_bytes, element->fields[k].count, remap,
                            argument);
}

/* A visit of the handles in a list. */
typedef struct list_visit {
    quern__remap_function *remap;
    void *argument;
    uint32_t element;
    bool changes;
    bool has_failed; /* there was no memory for a block of its own */
    quern_list list;
} list_visit;

/* Visits consecutive handles from an offset in the list on. */
static void visit_handles(list_visit *it, size_t offset_bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, offset_bytes += sizeof(quern_entity)) {
        quern_entity entity;
        memcpy(&entity, (const char *)it->list.items + offset_bytes, sizeof entity);
        const quern_entity mapped = it->remap(it->argument, entity);
        if (!it->changes || mapped.bits == entity.bits || it->has_failed) continue;
        char *items = quern_list_write(&it->list, it->element);
        it->has_failed = items == NULL;
        if (items != NULL)
            memcpy(items + offset_bytes, &mapped, sizeof mapped);
        else
            quern__report_failure();
    }
}

void quern__field_visit_lists(const quern_field *field, char *at, bool changes,
                              quern__remap_function *remap, void *argument)
{
    if (!has_handles(field)) return;
    const quern_element *element = field->element;
    for (uint32_t i = 0; i < field->count; i++, at += sizeof(quern_list)) {
        list_visit it = {.remap = remap,
                         .argument = argument,
                         .element = quern__field_element(field),
                         .changes = changes,
                         .list = load_list(at)};
        if (!is_list_of_structs(field)) visit_handles(&it, 0, it.list.count);
        for (uint32_t row = 0; is_list_of_structs(field) && row < it.list.count; row++)
            for (uint32_t k = 0; k < element->field_count; k++)
                if (element->fields[k].type == QUERN_FIELD_ENTITY)
                    visit_handles(&it, (size_t)row * element->size_bytes + element->fields[k].offset_bytes,
                                  element->fields[k].count);
        if (changes) memcpy(at, &it.list, sizeof it.list);
    }
}

static quern_entity note_provisional(void *argument, quern_entity entity)
{
    bool *has_some = argument;
    *has_some |= quern_entity_is_provisional(entity);
    return entity;
}

bool quern__type_own_provisional(const quern__type *type, char *value)
{
    if (type->lists == NULL || !type->has_entity_fields) return true;
    for (uint32_t i = 0; i < type->field_count; i++) {
        quern_field field = type->fields[i];
        const uint32_t count = field.count;
        field.count = 1;
        for (uint32_t k = 0; field.type == QUERN_FIELD_LIST && k < count; k++) {
            char *at = value + field.offset_bytes + k * sizeof(quern_list);
            bool has_some = false;
            quern__field_visit_lists(&field, at, false, note_provisional, &has_some);
            if (!has_some) continue;
            quern_list list = load_list(at);
            if (quern_list_write(&list, quern__field_element(&field)) == NULL) return false;
            memcpy(at, &list, sizeof list);
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- bytes */

void quern__type_clear_lists(const quern__type *type, char *value)
{
    for (uint32_t i = 0; type->lists != NULL && i < type->lists->count; i++)
        memset(value + type->lists->offsets[i], 0, sizeof(quern_list));
}

void quern__type_free_lists(const quern__type *type, char *value)
{
    if (type->lists == NULL) return;
    quern__lists_destroy(value, 1, (void *)(uintptr_t)type->lists);
    quern__type_clear_lists(type, value);
}

bool quern__type_has_no_lists(const quern__type *type, const char *values, uint32_t count)
{
    static const char zero[sizeof(quern_list)];
    for (uint32_t i = 0; type->lists != NULL && i < count; i++, values += type->size_bytes)
        for (uint32_t k = 0; k < type->lists->count; k++)
            if (memcmp(values + type->lists->offsets[k], zero, sizeof zero) != 0) return false;
    return true;
}

static void write_text(const quern_list *text, quern__byte_writer *writer)
{
    quern__write_u32(writer, text->count);
    if (text->count > 0) quern__write(writer, text->items, text->count);
}

static void write_list(const quern_field *field, const quern_list *list, quern__byte_writer *writer,
                       quern__remap_function *remap, void *argument)
{
    const char *items = list->items;
    if (field->type == QUERN_FIELD_STRING) {
        write_text(list, writer);
        return;
    }
    const size_t size_bytes = quern__list_element_bytes(quern__field_element(field));
    quern__write_u32(writer, list->count);
    if (list->count == 0) return;
    if (is_list_of_strings(field)) {
        for (uint32_t i = 0; i < list->count; i++)
            write_text(&((const quern_string *)list->items)[i].list, writer);
        return;
    }
    char *room = quern__write_room(writer, list->count * size_bytes);
    if (room == NULL) return;
    if (!is_list_of_structs(field)) {
        memcpy(room, items, list->count * size_bytes);
        if (remap != NULL && field->element->type == QUERN_FIELD_ENTITY)
            map_handles(room, list->count, remap, argument);
        return;
    }
    const quern_element *element = field->element;
    memset(room, 0, list->count * size_bytes);
    for (uint32_t i = 0; i < list->count; i++)
        for (uint32_t k = 0; k < element->field_count; k++)
            memcpy(room + i * size_bytes + element->fields[k].offset_bytes,
                   items + i * size_bytes + element->fields[k].offset_bytes, bytes_of(&element->fields[k]));
    if (remap != NULL) map_structs(element, room, list->count, remap, argument);
}

void quern__type_write_lists(const quern__type *type, const char *value, quern__byte_writer *writer,
                             quern__remap_function *remap, void *argument)
{
    for (uint32_t i = 0; i < type->field_count && type->lists != NULL; i++) {
        const quern_field *field = &type->fields[i];
        for (uint32_t k = 0; quern__field_is_list(field->type) && k < field->count; k++) {
            const quern_list list = load_list(value + field->offset_bytes + k * sizeof list);
            write_list(field, &list, writer, remap, argument);
        }
    }
}

/* Reads a text into an empty list. Returns false if out of memory. */
static bool read_text(quern_list *list, quern__byte_reader *reader)
{
    const uint32_t count = quern__read_u32(reader);
    const char *bytes = count > 0 ? quern__read_in_place(reader, count) : NULL;
    if (bytes == NULL) return true;
    if (memchr(bytes, '\0', count) != NULL || count > QUERN_MAX_LIST_BYTES) {
        quern__fail_read(reader);
        return true;
    }
    if (!quern__list_allocate(list, QUERN__LIST_TEXT, count)) return false;
    memcpy((char *)(uintptr_t)list->items, bytes, count);
    return true;
}

/* Each string has at least its size, of 4 bytes. */
static bool read_strings(quern_list *list, uint32_t count, quern__byte_reader *reader)
{
    if (count > quern__bytes_left(reader) / sizeof(uint32_t) ||
        count > QUERN_MAX_LIST_BYTES / sizeof(quern_string)) {
        quern__fail_read(reader);
        return true;
    }
    if (!quern__list_allocate(list, QUERN_LIST_STRINGS, count)) return false;
    quern_string *strings = (quern_string *)(uintptr_t)list->items;
    memset(strings, 0, count * sizeof *strings);
    for (uint32_t i = 0; i < count && !reader->has_failed; i++)
        if (!read_text(&strings[i].list, reader)) return false;
    return true;
}

static bool read_list(const quern_field *field, quern_list *list, quern__byte_reader *reader)
{
    if (field->type == QUERN_FIELD_STRING) return read_text(list, reader);
    const uint32_t count = quern__read_u32(reader);
    if (count == 0 || reader->has_failed) return true;
    if (is_list_of_strings(field)) return read_strings(list, count, reader);
    const uint32_t element = quern__field_element(field);
    const char *items = quern__read_items(reader, count, element);
    if (items == NULL) {
        quern__fail_read(reader);
        return true;
    }
    if ((uint64_t)count * element > QUERN_MAX_LIST_BYTES) {
        quern__fail_read(reader);
        return true;
    }
    if (!quern__list_allocate(list, element, count)) return false;
    memcpy((char *)(uintptr_t)list->items, items, (size_t)count * element);
    return true;
}

bool quern__type_read_lists(const quern__type *type, char *value, quern__byte_reader *reader)
{
    for (uint32_t i = 0; i < type->field_count && type->lists != NULL; i++) {
        const quern_field *field = &type->fields[i];
        for (uint32_t k = 0; quern__field_is_list(field->type) && k < field->count; k++) {
            quern_list list = {.count = 0};
            const bool is_read = read_list(field, &list, reader);
            memcpy(value + field->offset_bytes + k * sizeof list, &list, sizeof list);
            if (!is_read || reader->has_failed) return is_read;
        }
    }
    return true;
}
