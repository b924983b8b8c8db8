/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/type_internal.h"

#include "core/base/containers.h"
#include "core/base/handle.h"
#include "core/storage/list_values.h"
#include "core/storage/storage.h"

#include <quern/component.h>
#include <quern/reflect.h>

#include <stdio.h>

static const uint8_t field_bytes[] = {
    [QUERN_FIELD_BOOL] = 1,
    [QUERN_FIELD_I8] = 1,
    [QUERN_FIELD_U8] = 1,
    [QUERN_FIELD_I16] = 2,
    [QUERN_FIELD_U16] = 2,
    [QUERN_FIELD_I32] = 4,
    [QUERN_FIELD_U32] = 4,
    [QUERN_FIELD_I64] = 8,
    [QUERN_FIELD_U64] = 8,
    [QUERN_FIELD_F32] = 4,
    [QUERN_FIELD_F64] = 8,
    [QUERN_FIELD_ENTITY] = 8,
    [QUERN_FIELD_TEXT] = 1,
    [QUERN_FIELD_STRING] = sizeof(quern_string),
    [QUERN_FIELD_LIST] = sizeof(quern_list),
};

uint32_t quern__field_bytes(quern_field_type type)
{
    return (size_t)type < QUERN__COUNT_OF(field_bytes) ? field_bytes[type] : 0;
}

bool quern__field_integer_range(quern_field_type type, int64_t *out_least, int64_t *out_greatest)
{
    const bool is_integer = type >= QUERN_FIELD_I8 && type <= QUERN_FIELD_U64;
    const bool is_signed = type == QUERN_FIELD_I8 || type == QUERN_FIELD_I16 || type == QUERN_FIELD_I32 ||
                           type == QUERN_FIELD_I64;
    const uint32_t bits = is_integer ? 8u * field_bytes[type] : 0;
    *out_least = is_signed ? -(int64_t)(UINT64_C(1) << (bits - 2)) * 2 : 0;
    *out_greatest = is_signed ? -(*out_least + 1) : is_integer ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0;
    return is_integer;
}

/* ------------------------------------------------------------------------------------- definition */

static bool is_good_value_name(const char *name)
{
    const unsigned char first = (unsigned char)name[0];
    const bool is_letter = (first | 0x20) >= 'a' && (first | 0x20) <= 'z';
    if (!is_letter && first != '_' && first < 0x80) return false;
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == ',' || *at == '[' || *at == ']' || *at == 0x7F) return false;
    return name[strlen(name) - 1] != ' ';
}

static quern_result check_value(const quern_field *field, uint32_t k)
{
    const quern_named_value *value = &field->values[k];
    int64_t least, greatest;
    quern_result result = quern__check_name(value->name, "value");
    if (result != QUERN_OK) return quern__message_add_element(result, "value", k);
    if (!is_good_value_name(value->name))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "a value is named '%s'; names of values begin with a letter or '_', do not end "
                           "with a space, and have no comma, bracket or control character",
                           value->name);
    quern__field_integer_range(field->type, &least, &greatest);
    if (field->type != QUERN_FIELD_U64 && (value->value < least || value->value > greatest))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its value '%s' is %lld, which its type cannot hold: use a value in its range",
                           value->name, (long long)value->value);
    for (uint32_t i = 0; i < k; i++)
        if (strcmp(field->values[i].name, value->name) == 0)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "two of its values are named '%s': rename one of them", value->name);
    return QUERN_OK;
}

static uint32_t count_values(const quern_field *field)
{
    uint32_t count = 0;
    while (field->values != NULL && count <= QUERN_MAX_NAMED_VALUES && field->values[count].name != NULL)
        count++;
    return count;
}

/* Checks the named values, unit and range of a field. */
static quern_result check_meaning(const quern_field *field)
{
    int64_t least, greatest;
    const bool is_integer = quern__field_integer_range(field->type, &least, &greatest);
    const bool is_number = is_integer || field->type == QUERN_FIELD_F32 || field->type == QUERN_FIELD_F64;
    const uint32_t value_count = count_values(field);
    if (value_count > QUERN_MAX_NAMED_VALUES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its list of values has no end within %d elements (QUERN_MAX_NAMED_VALUES); the "
                           "last one has a name that is NULL",
                           QUERN_MAX_NAMED_VALUES);
    if (value_count > 0 && !is_integer)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "it has named values, but is no integer: use an integer type, or "
                           "remove the values");
    if (field->unit != NULL && strlen(field->unit) > QUERN_MAX_NAME_BYTES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "its unit has %zu bytes; the limit is %d",
                           strlen(field->unit), QUERN_MAX_NAME_BYTES);
    if ((field->minimum != 0 || field->maximum != 0) && !is_number)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "it has a range, but is no number: remove minimum and maximum");
    if (!(field->minimum <= field->maximum))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "its range is empty: from %g to %g",
                           field->minimum, field->maximum);
    for (uint32_t k = 0; k < value_count; k++) {
        const quern_result result = check_value(field, k);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static quern_result check_element(const quern_field *field);

static quern_result check_field(const quern_field *fields, uint32_t i, const char *owner,
                                uint32_t size_bytes)
{
    const quern_field *field = &fields[i];
    char subject[QUERN_MAX_NAME_BYTES + QUERN_MAX_NAME_BYTES + sizeof "'': field ''"];
    quern_result result = quern__check_name(field->name, "field");
    if (result != QUERN_OK) {
        snprintf(subject, sizeof subject, "'%s'", owner);
        quern__message_add_element(result, "field", i);
        return quern__message_add_call(result, subject, NULL);
    }
    if (field->type < QUERN_FIELD_BOOL || (size_t)field->type >= QUERN__COUNT_OF(field_bytes))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s': field '%s' has type %d, which is none of quern_field_type", owner,
                           field->name, (int)field->type);
    uint64_t bytes = (uint64_t)field_bytes[field->type] * (field->count ? field->count : 1);
    if (field->offset_bytes + bytes > size_bytes)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s': field '%s' ends at byte %llu, beyond the size of %u bytes", owner,
                           field->name, (unsigned long long)(field->offset_bytes + bytes), size_bytes);
    result = check_meaning(field);
    if (result == QUERN_OK) result = check_element(field);
    if (result == QUERN_OK) return QUERN_OK;
    snprintf(subject, sizeof subject, "'%s': field '%s'", owner, field->name);
    return quern__message_add_call(result, subject, NULL);
}

/* Checks the description of a list's elements. Lists in elements are refused, so descriptions have no depth. */
static quern_result check_element(const quern_field *field)
{
    const quern_element *element = field->element;
    if (field->type != QUERN_FIELD_LIST)
        return element == NULL ? QUERN_OK
                               : quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                             "it has an element and is no list: set its type to "
                                             "QUERN_FIELD_LIST, or its element to NULL");
    if (element == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "it is a list without an element: describe its elements");
    const bool is_known = element->type >= QUERN_FIELD_BOOL && element->type <= QUERN_FIELD_STRING &&
                          element->type != QUERN_FIELD_TEXT;
    if (element->type != 0)
        return is_known ? QUERN_OK
                        : quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                      "its elements have type %d: use a number, QUERN_FIELD_ENTITY or "
                                      "QUERN_FIELD_STRING, or 0 for structs",
                                      (int)element->type);
    if (element->fields == NULL || element->field_count == 0 || element->size_bytes == 0 ||
        element->size_bytes > QUERN_MAX_COMPONENT_BYTES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its elements are structs of %u bytes with %u fields: describe at least one "
                           "field, of a struct of up to %d bytes (QUERN_MAX_COMPONENT_BYTES)",
                           element->size_bytes, element->field_count, QUERN_MAX_COMPONENT_BYTES);
    if (!quern__is_power_of_two(element->alignment_bytes) ||
        element->alignment_bytes > QUERN_LIST_ALIGNMENT)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its elements have alignment %u: use a power of two up to %d "
                           "(QUERN_LIST_ALIGNMENT)",
                           element->alignment_bytes, QUERN_LIST_ALIGNMENT);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < element->field_count && result == QUERN_OK && i < QUERN_MAX_FIELDS; i++) {
        if (quern__field_is_list(element->fields[i].type))
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "its elements have a list or a string, '%.63s': structs in lists have plain "
                               "fields alone; use a list of strings beside it, or entities",
                               element->fields[i].name != NULL ? element->fields[i].name : "");
        result = check_field(element->fields, i, field->name, element->size_bytes);
    }
    return result;
}

static uint32_t element_field_count(const quern_field *field)
{
    return field->type == QUERN_FIELD_LIST && field->element->type == 0 ? field->element->field_count : 0;
}

/* Returns whether two fields have bytes in common. */
static bool overlap(const quern_field *a, const quern_field *b)
{
    const uint64_t a_bytes = (uint64_t)field_bytes[a->type] * (a->count ? a->count : 1);
    const uint64_t b_bytes = (uint64_t)field_bytes[b->type] * (b->count ? b->count : 1);
    return a->offset_bytes < b->offset_bytes + b_bytes && b->offset_bytes < a->offset_bytes + a_bytes;
}

/* Checks what the lists of a type need of all fields together. Precondition: each field is valid. */
static quern_result check_lists(const quern_field *fields, uint32_t field_count, const char *owner)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < field_count; i++) {
        count += element_field_count(&fields[i]);
        for (uint32_t k = 0; k < field_count && quern__field_is_list(fields[i].type); k++)
            if (k != i && overlap(&fields[i], &fields[k]))
                return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                   "'%s': field '%s' overlaps '%s': lists share no bytes with other fields",
                                   owner, fields[i].name, fields[k].name);
    }
    if (count <= QUERN_MAX_FIELDS) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%s': the structs in its lists have %llu fields together; the limit is %d "
                       "(QUERN_MAX_FIELDS)",
                       owner, (unsigned long long)count, QUERN_MAX_FIELDS);
}

static bool is_end_of_fields(const void *list, uint32_t i)
{
    const quern_field *field = &((const quern_field *)list)[i];
    return field->name == NULL && field->type == 0 && field->offset_bytes == 0 && field->count == 0 &&
           field->values == NULL && field->unit == NULL;
}

static quern_result check_alignment(const char *what, const char *name, uint32_t alignment_bytes)
{
    if (!quern__is_power_of_two(alignment_bytes) || alignment_bytes > QUERN_MAX_ALIGNMENT_BYTES)
        return quern__fail(QUERN_ERROR_BAD_ALIGNMENT,
                           "%s '%s' has alignment %u; use a power of two up to %d "
                           "(QUERN_MAX_ALIGNMENT_BYTES)",
                           what, name, alignment_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    return QUERN_OK;
}

/* Write positions in the allocation of a type's fields: fields of elements, elements, named values, where the lists are,
 * and then text, which needs no alignment. */
typedef struct fields_block {
    quern_field *fields;
    quern_element *elements;
    quern_named_value *values;
    quern__list_slots *lists;
    char *text;
    size_t field_count, element_count, value_count, list_count, text_bytes;
} fields_block;

static const char *copy_text(fields_block *block, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = block->text;
    memcpy(copy, text, bytes);
    block->text += bytes;
    return copy;
}

static void copy_field(fields_block *block, quern_field *to, const quern_field *from)
{
    const uint32_t value_count = count_values(from);
    *to = *from;
    to->name = copy_text(block, from->name);
    to->unit = from->unit != NULL ? copy_text(block, from->unit) : NULL;
    to->count = from->count ? from->count : 1;
    to->values = value_count > 0 ? block->values : NULL;
    for (uint32_t k = 0; k < value_count; k++)
        *block->values++ =
            (quern_named_value){copy_text(block, from->values[k].name), from->values[k].value};
    if (value_count > 0) *block->values++ = (quern_named_value){NULL, 0};
    if (from->type != QUERN_FIELD_LIST) return;
    quern_element *element = block->elements++;
    *element = (quern_element){.type = from->element->type};
    to->element = element;
    if (element->type != 0) return;
    *element = *from->element;
    quern_field *fields = block->fields;
    element->fields = fields;
    block->fields += element->field_count;
    for (uint32_t i = 0; i < element->field_count; i++)
        copy_field(block, &fields[i], &from->element->fields[i]);
}

/* Counts what copies of fields need. */
static void measure_fields(fields_block *block, const quern_field *fields, uint32_t field_count)
{
    for (uint32_t i = 0; i < field_count; i++) {
        const quern_field *field = &fields[i];
        const uint32_t named_count = count_values(field);
        block->text_bytes += strlen(field->name) + 1 + (field->unit ? strlen(field->unit) + 1 : 0);
        for (uint32_t k = 0; k < named_count; k++)
            block->text_bytes += strlen(field->values[k].name) + 1;
        block->value_count += named_count > 0 ? named_count + 1 : 0;
        block->field_count++;
        block->element_count += field->type == QUERN_FIELD_LIST;
        if (quern__field_is_list(field->type)) block->list_count += field->count ? field->count : 1;
        if (element_field_count(field) > 0)
            measure_fields(block, field->element->fields, field->element->field_count);
    }
}

static bool has_entities(const quern_field *field)
{
    if (field->type != QUERN_FIELD_LIST) return field->type == QUERN_FIELD_ENTITY;
    if (field->element->type != 0) return field->element->type == QUERN_FIELD_ENTITY;
    bool has_some = false;
    for (uint32_t i = 0; i < field->element->field_count; i++)
        has_some |= field->element->fields[i].type == QUERN_FIELD_ENTITY;
    return has_some;
}

static void place_lists(quern__type *type, quern__list_slots *lists)
{
    *lists = (quern__list_slots){.value_bytes = type->size_bytes};
    for (uint32_t i = 0; i < type->field_count; i++)
        for (uint32_t k = 0; quern__field_is_list(type->fields[i].type) && k < type->fields[i].count; k++)
            lists->offsets[lists->count++] =
                type->fields[i].offset_bytes + k * (uint32_t)sizeof(quern_list);
    type->lists = lists;
}

static quern_result copy_fields(quern__type *type, const quern_allocator *allocator,
                                const quern_field *fields, uint32_t field_count)
{
    fields_block block = {.field_count = 0};
    if (field_count == 0) return QUERN_OK;
    measure_fields(&block, fields, field_count);
    const size_t lists_bytes =
        block.list_count > 0
            ? quern__align_up(sizeof(quern__list_slots) + block.list_count * sizeof(uint32_t), 8)
            : 0;
    type->fields_bytes = block.field_count * sizeof *type->fields +
                         block.element_count * sizeof(quern_element) +
                         block.value_count * sizeof(quern_named_value) + lists_bytes + block.text_bytes;
    type->fields = quern__allocate(allocator, type->fields_bytes, _Alignof(quern_field));
    if (type->fields == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "'%s': no memory for %u fields", type->name,
                           field_count);
    type->field_count = field_count;
    block.fields = type->fields + field_count;
    block.elements = (quern_element *)(type->fields + block.field_count);
    block.values = (quern_named_value *)(block.elements + block.element_count);
    block.lists = (quern__list_slots *)(block.values + block.value_count);
    block.text = (char *)block.lists + lists_bytes;
    for (uint32_t i = 0; i < field_count; i++) {
        copy_field(&block, &type->fields[i], &fields[i]);
        type->has_entity_fields |= has_entities(&fields[i]);
    }
    if (block.list_count > 0) place_lists(type, block.lists);
    return QUERN_OK;
}

static uint64_t end_of(const quern_field *field)
{
    return field->offset_bytes + (uint64_t)field_bytes[field->type] * field->count;
}

/* Whether described fields leave no room in a value but what a compiler puts there to align them: nothing else in it can
 * own something then. */
static bool fields_cover(const quern__type *type)
{
    uint64_t at = 0; /* all bytes before are covered, but for padding */
    for (;;) {
        const quern_field *next = NULL; /* the first one that ends after `at` */
        for (uint32_t i = 0; i < type->field_count; i++) {
            const quern_field *field = &type->fields[i];
            if (end_of(field) > at && (next == NULL || field->offset_bytes < next->offset_bytes))
                next = field;
        }
        if (next == NULL) break;
        const uint32_t bytes = field_bytes[next->type], alignment = bytes < 8 ? bytes : 8;
        if (next->offset_bytes >= at + alignment) return false;
        at = end_of(next);
    }
    return type->size_bytes < at + type->alignment_bytes && type->size_bytes < at + sizeof(void *);
}

/* Gives a type with lists its hooks, or checks those that it has. */
static quern_result init_lists(quern__type *type)
{
    quern_hooks *hooks = &type->hooks;
    const bool has_own = quern__hooks_exist(hooks) && hooks->copy != quern__lists_copy;
    if (has_own && (hooks->copy == NULL || hooks->destroy == NULL))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' has lists or strings, and hooks that do not copy or destroy them: give it "
                           "copy and destroy hooks that call quern_list_copy and quern_list_free, or no "
                           "hooks at all",
                           type->name);
    type->owns_only_lists = !has_own || fields_cover(type);
    if (!has_own)
        *hooks = (quern_hooks){.copy = quern__lists_copy,
                               .destroy = quern__lists_destroy,
                               .user_data = (void *)(uintptr_t)type->lists};
    return QUERN_OK;
}

quern_result quern__type_init(quern__type *type, const quern_allocator *allocator, const char *what,
                              const char *name, const char *type_name, uint32_t size_bytes,
                              uint32_t alignment_bytes, const quern_hooks *hooks, const quern_field *fields)
{
    uint32_t field_count = 0;
    quern_result result = quern__check_name(name, what);
    if (result == QUERN_OK) result = check_alignment(what, name, alignment_bytes);
    if (result == QUERN_OK && type_name != NULL) result = quern__check_name(type_name, "type");
    if (result == QUERN_OK)
        result = quern__list_count(fields, QUERN_MAX_FIELDS, is_end_of_fields, "field", name, &field_count);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < field_count; i++) {
        result = check_field(fields, i, name, size_bytes);
        if (result != QUERN_OK) return result;
    }
    result = check_lists(fields, field_count, name);
    if (result != QUERN_OK) return result;
    assert(name != NULL); /* quern__check_name refuses NULL */
    *type = (quern__type){.size_bytes = size_bytes, .alignment_bytes = alignment_bytes, .hooks = *hooks};
    memcpy(type->name, name, strlen(name) + 1);
    if (type_name != NULL) memcpy(type->type_name, type_name, strlen(type_name) + 1);
    result = copy_fields(type, allocator, fields, field_count);
    if (result == QUERN_OK && type->lists != NULL) result = init_lists(type);
    if (result != QUERN_OK) quern__type_release(type, allocator);
    return result;
}

void quern__type_release(quern__type *type, const quern_allocator *allocator)
{
    if (type->default_value != NULL) quern__type_destroy(type, type->default_value, 1);
    quern__release(allocator, type->default_value, type->size_bytes, type->alignment_bytes);
    type->default_value = NULL;
    quern__release(allocator, type->fields, type->fields_bytes, _Alignof(quern_field));
    type->fields = NULL;
    type->field_count = 0;
    type->lists = NULL;
}

/* Strips keywords such as const and struct before a type's name, and a const after it. Returns the start of the bare
 * name within `name`, and its length in *out_bytes. */
static const char *strip_keywords(const char *name, size_t *out_bytes)
{
    static const char *const words[] = {"const ", "struct ", "class ", "union ", "enum ", " "};
    static const char last_const[] = " const";
    for (uint32_t i = 0; i < QUERN__COUNT_OF(words);) {
        const size_t bytes = strlen(words[i]);
        const bool is_there = strncmp(name, words[i], bytes) == 0;
        if (is_there) name += bytes;
        i = is_there ? 0 : i + 1;
    }
    *out_bytes = strlen(name);
    const size_t const_bytes = sizeof last_const - 1;
    if (*out_bytes > const_bytes && strcmp(name + *out_bytes - const_bytes, last_const) == 0)
        *out_bytes -= const_bytes;
    return name;
}

static bool is_c_name(const quern__type *type, const char *type_name)
{
    size_t bytes, other_bytes;
    const char *name = strip_keywords(type->type_name, &bytes),
               *other = strip_keywords(type_name, &other_bytes);
    const size_t common = bytes < other_bytes ? bytes : other_bytes;
    const char *rest = bytes > common ? name + bytes - common : other + other_bytes - common;
    if (bytes == 0) return true;
    if (memcmp(name + bytes - common, other + other_bytes - common, common) != 0) return false;
    return bytes == other_bytes || (rest[-1] == ':' && common > 0);
}

/* C++ gives two names, "Alias = game::Position". */
bool quern__type_has_c_name(const quern__type *type, const char *type_name)
{
    static const char between[] = " = ";
    const char *const end = strstr(type_name, between);
    if (end == NULL) return is_c_name(type, type_name);
    char alias[2 * QUERN_MAX_NAME_BYTES];
    const size_t bytes = (size_t)(end - type_name);
    memcpy(alias, type_name, bytes < sizeof alias ? bytes : 0);
    alias[bytes < sizeof alias ? bytes : 0] = '\0';
    return is_c_name(type, end + sizeof between - 1) || (alias[0] != '\0' && is_c_name(type, alias));
}

static bool same_hooks(const quern_hooks *a, const quern_hooks *b)
{
    if (a->copy == quern__lists_copy && b->copy == quern__lists_copy)
        return true; /* the fields are compared */
    return a->construct == b->construct && a->copy == b->copy && a->move == b->move &&
           a->destroy == b->destroy && a->user_data == b->user_data;
}

uint32_t quern__type_different_field(const quern__type *type, const quern_field *fields)
{
    uint32_t i = 0;
    while (i < type->field_count && strcmp(type->fields[i].name, fields[i].name) == 0 &&
           type->fields[i].type == fields[i].type &&
           type->fields[i].offset_bytes == fields[i].offset_bytes &&
           type->fields[i].count == fields[i].count &&
           quern__field_same_elements(&type->fields[i], &fields[i]))
        i++;
    return i;
}

bool quern__type_same_layout(const quern__type *a, const quern__type *b)
{
    if (a->size_bytes != b->size_bytes || a->alignment_bytes != b->alignment_bytes) return false;
    /* hooks of one C++ type are at other addresses in each shared library that has them */
    const bool is_same_type =
        a->type_id != 0 && b->type_id != 0 ? a->type_id == b->type_id : same_hooks(&a->hooks, &b->hooks);
    return is_same_type && a->field_count == b->field_count &&
           quern__type_different_field(a, b->fields) == a->field_count;
}

bool quern__type_same_values(const quern__type *a, const quern__type *b)
{
    const quern_hooks *x = &a->hooks, *y = &b->hooks;
    return a->size_bytes == b->size_bytes && a->alignment_bytes == b->alignment_bytes &&
           a->field_count == b->field_count &&
           quern__type_different_field(a, b->fields) == a->field_count &&
           (x->construct != NULL) == (y->construct != NULL) && (x->copy != NULL) == (y->copy != NULL) &&
           (x->move != NULL) == (y->move != NULL) && (x->destroy != NULL) == (y->destroy != NULL);
}

/* Fails because two types have one name. */
static quern_result fail_other_type(const quern__type *known, const char *type_name, uint32_t size_bytes,
                                    uint32_t alignment_bytes, bool has_hooks, const char *what)
{
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%s '%s' is registered for the type '%s' (%u bytes aligned to %u, %s hooks), and '%s' (%u bytes "
        "aligned to %u, %s hooks) is another type: give one of them another name (quern::name), and "
        "declare one that several files use in a header, outside of unnamed namespaces",
        what, known->name, known->type_name[0] != '\0' ? known->type_name : "unknown", known->size_bytes,
        known->alignment_bytes, quern__hooks_exist(&known->hooks) ? "with" : "without",
        type_name != NULL ? type_name : "unknown", size_bytes, alignment_bytes,
        has_hooks ? "with" : "without");
}

quern_result quern__type_check_same_layout(const quern__type *known, const quern__type *type,
                                           const char *what)
{
    if (quern__type_same_layout(known, type)) return QUERN_OK;
    if (known->type_id != 0 && type->type_id != 0 && known->type_id != type->type_id)
        return fail_other_type(known, type->type_name, type->size_bytes, type->alignment_bytes,
                               quern__hooks_exist(&type->hooks), what);
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%s '%s' is registered with another layout (%u bytes aligned to %u, now %u aligned to "
        "%u, or other hooks or fields): register the same definition, or use another name",
        what, known->name, known->size_bytes, known->alignment_bytes, type->size_bytes,
        type->alignment_bytes);
}

quern_result quern__type_check_usable(const quern__type *known, const quern_component_def *def,
                                      const char *what)
{
    const bool has_hooks = quern__hooks_exist(&def->hooks);
    uint32_t field_count = 0;
    while (field_count < QUERN_MAX_FIELDS && !is_end_of_fields(def->fields, field_count))
        field_count++;
    if (known->type_id != 0 && def->type_id != 0) {
        if (known->type_id == def->type_id) return QUERN_OK;
    } else if (known->size_bytes == def->size_bytes && known->alignment_bytes >= def->alignment_bytes &&
               (!has_hooks || same_hooks(&known->hooks, &def->hooks)) &&
               (field_count == 0 || known->field_count == 0 ||
                (known->field_count == field_count &&
                 quern__type_different_field(known, def->fields) == field_count))) {
        return QUERN_OK;
    }
    return fail_other_type(known, def->type_name, def->size_bytes, def->alignment_bytes, has_hooks, what);
}

static void type_ids_put(quern__type_ids *ids, uint64_t type_id, uint32_t bits)
{
    uint32_t i = (uint32_t)(type_id >> 32);
    quern__type_id *slot;
    while (slot = &ids->slots[i & (ids->capacity - 1)], slot->type_id != 0 && slot->type_id != type_id)
        i++;
    ids->count += slot->type_id == 0;
    *slot = (quern__type_id){type_id, bits};
}

bool quern__type_ids_reserve(quern__type_ids *ids, const quern_allocator *allocator)
{
    if (ids->count < ids->capacity / 2) return true;
    quern__type_ids grown = {.capacity = ids->capacity > 0 ? 2 * ids->capacity : 16};
    grown.slots =
        quern__allocate(allocator, grown.capacity * sizeof *grown.slots, _Alignof(quern__type_id));
    if (grown.slots == NULL) return false;
    memset(grown.slots, 0, grown.capacity * sizeof *grown.slots);
    for (uint32_t i = 0; i < ids->capacity; i++)
        if (ids->slots[i].bits != 0) type_ids_put(&grown, ids->slots[i].type_id, ids->slots[i].bits);
    quern__type_ids_release(ids, allocator);
    *ids = grown;
    return true;
}

void quern__type_ids_release(quern__type_ids *ids, const quern_allocator *allocator)
{
    quern__release(allocator, ids->slots, ids->capacity * sizeof *ids->slots, _Alignof(quern__type_id));
    *ids = (quern__type_ids){0};
}

quern_result quern__type_ids_reserve_for(quern__type_ids *ids, const quern_allocator *allocator,
                                         const quern__type *type, uint32_t handle_bits, const char *what)
{
    const uint32_t known_bits = type->type_id != 0 ? quern__type_ids_find(ids, type->type_id) : handle_bits;
    if (known_bits == handle_bits) return QUERN_OK;
    if (known_bits != 0)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "%s '%s': another %s has the type_id of the definition: redefine that one, or give "
            "the definition the type_id of this one",
            what, type->name, what);
    if (quern__type_ids_reserve(ids, allocator)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s '%s': no memory to note its C++ type", what,
                       type->name);
}

void quern__type_ids_forget(quern__type_ids *ids, uint32_t handle_bits)
{
    for (uint32_t i = 0; i < ids->capacity; i++)
        if (ids->slots[i].bits == handle_bits) ids->slots[i].bits = 0;
}

void quern__type_identify(quern__type *type, quern__type_ids *ids, uint64_t type_id, uint32_t handle_bits)
{
    if (type_id == 0) return;
    if (type->type_id == 0) type->type_id = type_id;
    if (quern__type_ids_find(ids, type_id) == 0) type_ids_put(ids, type_id, handle_bits);
}

/* -------------------------------------------------------------------------------------- lifecycle */

void quern__type_construct(const quern__type *type, void *values, uint32_t count)
{
    if (type->default_value != NULL)
        for (uint32_t i = 0; i < count; i++)
            quern__type_copy(type, (char *)values + (size_t)i * type->size_bytes, type->default_value, 1);
    else if (type->hooks.construct)
        type->hooks.construct(values, count, type->hooks.user_data);
    else
        memset(values, 0, (size_t)type->size_bytes * count);
}

void quern__type_copy(const quern__type *type, void *targets, const void *sources, uint32_t count)
{
    if (type->hooks.copy)
        type->hooks.copy(targets, sources, count, type->hooks.user_data);
    else
        memcpy(targets, sources, (size_t)type->size_bytes * count);
}

void quern__type_accept(const quern__type *type, void *targets, const void *sources, uint32_t count)
{
    if (type->hooks.copy == NULL && type->hooks.move != NULL)
        /* The caller gives the values away, and then they are not const for it. */
        type->hooks.move(targets, (void *)(uintptr_t)sources, count, type->hooks.user_data);
    else
        quern__type_copy(type, targets, sources, count);
}

void quern__type_move(const quern__type *type, void *targets, void *sources, uint32_t count)
{
    if (type->hooks.move)
        type->hooks.move(targets, sources, count, type->hooks.user_data);
    else
        memcpy(targets, sources, (size_t)type->size_bytes * count);
}

void quern__type_destroy(const quern__type *type, void *values, uint32_t count)
{
    if (type->hooks.destroy) type->hooks.destroy(values, count, type->hooks.user_data);
}

/* ----------------------------------------------------------------------------------------- fields */

/* A hash that is continued with handles. */
typedef struct hash_handles {
    uint64_t hash;
    uint32_t first_handle_high;
} hash_handles;

static quern_entity hash_handle(void *argument, quern_entity entity)
{
    hash_handles *it = argument;
    it->hash = quern__hash_word(it->hash, quern__entity_to_relative(entity, it->first_handle_high));
    return entity;
}

static uint64_t hash_field(const quern_field *field, uint64_t hash, const char *at,
                           uint32_t first_handle_high)
{
    if (quern__field_is_list(field->type)) {
        hash_handles handles = {quern__field_hash_lists(field, hash, at), first_handle_high};
        quern__field_visit_lists(field, (char *)(uintptr_t)at, false, hash_handle, &handles);
        return handles.hash;
    }
    if (field->type != QUERN_FIELD_ENTITY)
        return quern__hash_numbers(hash, at, field_bytes[field->type], field->count);
    for (uint32_t i = 0; i < field->count; i++) {
        quern_entity entity;
        memcpy(&entity, at + i * sizeof entity, sizeof entity);
        hash = quern__hash_word(hash, quern__entity_to_relative(entity, first_handle_high));
    }
    return hash;
}

uint64_t quern__type_hash(const quern__type *type, uint64_t hash, const void *value,
                          uint32_t first_handle_high)
{
    if (type->field_count == 0) return quern__hash_bytes(hash, value, type->size_bytes);
    for (uint32_t i = 0; i < type->field_count; i++)
        hash = hash_field(&type->fields[i], hash, (const char *)value + type->fields[i].offset_bytes,
                          first_handle_high);
    return hash;
}

bool quern__type_same_value(const quern__type *type, const void *a, const void *b)
{
    if (type->field_count == 0) return memcmp(a, b, type->size_bytes) == 0;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        const char *x = (const char *)a + field->offset_bytes, *y = (const char *)b + field->offset_bytes;
        if (quern__field_is_list(field->type)
                ? !quern__field_same_lists(field, x, y)
                : memcmp(x, y, (size_t)field_bytes[field->type] * field->count) != 0)
            return false;
    }
    return true;
}

bool quern__type_has_field_in(const quern__type *type, uint32_t offset_bytes, uint32_t size_bytes)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        const uint32_t bytes = field_bytes[field->type] * field->count;
        if (field->offset_bytes < offset_bytes + size_bytes && offset_bytes < field->offset_bytes + bytes)
            return true;
    }
    return false;
}

/* Calls `remap` for each entity handle in described fields and writes the results to `to`, unless it is NULL. */
static void visit_or_remap_entities(const quern__type *type, const char *from, char *to, bool with_lists,
                                    quern__remap_function *remap, void *argument)
{
    if (!type->has_entity_fields) return;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        if (field->type == QUERN_FIELD_LIST && with_lists)
            quern__field_visit_lists(field, (char *)(uintptr_t)from + field->offset_bytes, to != NULL,
                                     remap, argument);
        if (field->type != QUERN_FIELD_ENTITY) continue;
        for (uint32_t k = 0; k < field->count; k++) {
            size_t offset_bytes = field->offset_bytes + k * sizeof(quern_entity);
            quern_entity entity; /* through memcpy: fields need not be aligned */
            memcpy(&entity, from + offset_bytes, sizeof entity);
            entity = remap(argument, entity);
            if (to != NULL) memcpy(to + offset_bytes, &entity, sizeof entity);
        }
    }
}

void quern__type_visit_entities(const quern__type *type, const void *value, quern__remap_function *remap,
                                void *argument)
{
    visit_or_remap_entities(type, value, NULL, true, remap, argument);
}

static quern_entity note_provisional(void *argument, quern_entity entity)
{
    quern_entity *found = argument;
    if (quern_entity_is_provisional(entity)) *found = entity;
    return entity;
}

quern_entity quern__type_find_provisional(const quern__type *type, const void *values, uint32_t count)
{
    quern_entity found = {0};
    for (uint32_t i = 0; i < count && type->has_entity_fields; i++)
        quern__type_visit_entities(type, (const char *)values + (size_t)i * type->size_bytes,
                                   note_provisional, &found);
    return found;
}

quern_result quern__type_check_provisional(const quern__type *type, const void *values, uint32_t count,
                                           const char *commands)
{
    const quern_entity found = quern__type_find_provisional(type, values, count);
    if (found.bits == 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "a value of '%s' has the provisional handle of a deferred create (number %u), which would "
        "never be replaced by a real one: set the value by %s, which replaces it",
        type->name, quern_entity_index(found), commands);
}

void quern__type_remap(const quern__type *type, void *value, quern__remap_function *remap, void *argument)
{
    visit_or_remap_entities(type, value, value, true, remap, argument);
}

void quern__type_remap_fields(const quern__type *type, void *value, quern__remap_function *remap,
                              void *argument)
{
    visit_or_remap_entities(type, value, value, false, remap, argument);
}

/* Uses memcpy because fields need not be aligned. */
uint64_t quern__field_load(quern_field_type type, const char *at)
{
    uint8_t b8 = 0;
    uint16_t b16 = 0;
    uint32_t b32 = 0;
    uint64_t b64 = 0;
    switch (quern__field_bytes(type)) {
    case 1:
        memcpy(&b8, at, 1);
        return type == QUERN_FIELD_I8 ? (uint64_t)(int8_t)b8 : b8;
    case 2:
        memcpy(&b16, at, 2);
        return type == QUERN_FIELD_I16 ? (uint64_t)(int16_t)b16 : b16;
    case 4:
        memcpy(&b32, at, 4);
        return type == QUERN_FIELD_I32 ? (uint64_t)(int32_t)b32 : b32;
    default:
        memcpy(&b64, at, 8);
        return b64;
    }
}

void quern__field_store(quern_field_type type, char *at, uint64_t bits)
{
    const uint8_t b8 = (uint8_t)bits;
    const uint16_t b16 = (uint16_t)bits;
    const uint32_t b32 = (uint32_t)bits;
    switch (quern__field_bytes(type)) {
    case 1:
        memcpy(at, &b8, 1);
        return;
    case 2:
        memcpy(at, &b16, 2);
        return;
    case 4:
        memcpy(at, &b32, 4);
        return;
    default:
        memcpy(at, &bits, 8);
        return;
    }
}

double quern__field_real(quern_field_type type, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float f32;
    double f64;
    memcpy(&f32, &low, sizeof f32);
    memcpy(&f64, &bits, sizeof f64);
    if (type == QUERN_FIELD_F32) return (double)f32;
    if (type == QUERN_FIELD_F64) return f64;
    return type == QUERN_FIELD_U64 ? (double)bits : (double)(int64_t)bits;
}

/* -------------------------------------------------------------------------------------- conversion */

static bool is_floating(quern_field_type type)
{
    return type == QUERN_FIELD_F32 || type == QUERN_FIELD_F64;
}

/* Converts to the bits of the nearest F32. Returns false for a finite number beyond the range of F32. NaN and the
 * infinities stay NaN and infinities. */
static bool to_f32(double real, uint64_t *out_bits)
{
    const double most =
        0x1.fffffefffffffp127; /* from the next larger double on, the nearest float is infinite */
    const bool is_finite = real - real == 0;
    if (is_finite && (real > most || real < -most)) return false;
    const float value = (float)real;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out_bits = bits;
    return true;
}

/* Truncates to an I64 if the number is at most -1, otherwise to a U64. Returns false if the result is out of range.
 * The bounds are exact doubles. The comparison with 2^64 is negated so that it also rejects NaN. */
static bool whole_of(double real, uint64_t *out_bits, bool *out_is_negative)
{
    *out_is_negative = real <= -1;
    if (*out_is_negative ? real < -0x1p63 : !(real < 0x1p64)) return false;
    *out_bits = *out_is_negative ? (uint64_t)(int64_t)real : real < 1 ? 0 : (uint64_t)real;
    return true;
}

/* Converts an integer to the bits of the nearest F32. An intermediate double would round twice. */
static uint64_t f32_of_integer(quern_field_type from, uint64_t bits)
{
    const float value = from == QUERN_FIELD_U64 ? (float)bits : (float)(int64_t)bits;
    uint32_t low;
    memcpy(&low, &value, sizeof low);
    return low;
}

static bool to_integer(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits)
{
    int64_t least, greatest;
    quern__field_integer_range(from, &least, &greatest);
    bool is_negative = least < 0 && (int64_t)bits < 0;
    *out_bits = bits;
    if (is_floating(from) && !whole_of(quern__field_real(from, bits), out_bits, &is_negative)) return false;
    quern__field_integer_range(to, &least, &greatest);
    return is_negative ? (int64_t)*out_bits >= least : *out_bits <= (uint64_t)greatest;
}

bool quern__field_convert(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits)
{
    /* fabricated data may contain bools with bytes other than 0 and 1 */
    if (from == QUERN_FIELD_BOOL) bits = bits != 0;
    const double real = quern__field_real(from, bits);
    switch (to) {
    case QUERN_FIELD_BOOL:
        *out_bits = is_floating(from) ? real != 0 : bits != 0;
        return true;
    case QUERN_FIELD_F32:
        if (is_floating(from)) return to_f32(real, out_bits);
        *out_bits = f32_of_integer(from, bits);
        return true;
    case QUERN_FIELD_F64:
        memcpy(out_bits, &real, sizeof real);
        return true;
    default:
        return to_integer(from, bits, to, out_bits);
    }
}

#define FLAG_ROW(flag, member, ...)                             \
    {.name = #member,                                           \
     .def_offset_bytes = offsetof(quern_component_def, member), \
     .info_offset_bytes = offsetof(quern_type_info, member),    \
     .bit = QUERN__FLAG_##flag,                                 \
     __VA_ARGS__},
const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT] = {QUERN__COLUMN_FLAGS(FLAG_ROW)};

/* The flags are the last members of the definition, from can_disable to is_hidden. Insert new flags between these. */
_Static_assert(offsetof(quern_component_def, is_hidden) - offsetof(quern_component_def, can_disable) + 1 ==
                   QUERN__COLUMN_FLAG_COUNT * sizeof(bool),
               "every flag of quern_component_def has a row in QUERN__COLUMN_FLAGS");

uint32_t quern__column_flags_to_archive(uint32_t flags)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((flags & quern__column_flags[i].bit) != 0) bits |= quern__column_flags[i].archive_bit;
    return bits;
}

uint32_t quern__column_flags_to_replay(uint32_t flags)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((flags & quern__column_flags[i].bit) != 0) bits |= quern__column_flags[i].replay_bit;
    return bits;
}

uint8_t quern__column_flags_from_archive(uint32_t archive_bits)
{
    uint8_t flags = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((archive_bits & quern__column_flags[i].archive_bit) != 0) flags |= quern__column_flags[i].bit;
    return flags;
}

static const quern__registry registry = QUERN__REGISTRY_OF_POINTERS(
    "component", "world", QUERN_MAX_COMPONENTS, QUERN_ERROR_UNKNOWN_COMPONENT, quern__component, type.name);

quern_component quern__component_handle(const quern__components *components, uint32_t index)
{
    return (quern_component){.bits = components->first_bits + index};
}

quern_result quern__components_fail_unknown(const quern__components *components, quern_component component)
{
    return quern__registry_fail_unknown(&registry, component.bits, components->first_bits >> 24);
}

/* Whether the component may be found, and has the name. */
static bool has_name(const quern__component *component, const char *name)
{
    return !component->managed.is_hidden && strcmp(component->type.name, name) == 0;
}

/* A hint is only tried: what it leads to must have the name. So it may be out of date, and threads may write it at the same
 * time; relaxed, since it guards nothing. */
quern_component quern__components_find(const quern__components *components, const char *name)
{
    const uint32_t count = components->list.count;
    _Atomic uint16_t *hint = (_Atomic uint16_t *)(uintptr_t)&components
                                 ->hints[(uintptr_t)name * 0x9E3779B9u >> 20 & (QUERN__NAME_HINTS - 1)];
    const uint32_t hinted = atomic_load_explicit(hint, memory_order_relaxed);
    if (hinted != 0 && hinted <= count && has_name(components->list.items[hinted - 1], name))
        return quern__component_handle(components, hinted - 1);
    uint32_t i = 0;
    while (i < count && !has_name(components->list.items[i], name))
        i++;
    if (i == count) return (quern_component){0};
    atomic_store_explicit(hint, (uint16_t)(i + 1), memory_order_relaxed); /* see above */
    return quern__component_handle(components, i);
}

quern_suggestion quern__components_suggest(const quern__components *components, const char *name,
                                           size_t bytes)
{
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < components->list.count; i++)
        if (!components->list.items[i]->managed.is_hidden)
            quern_suggestion_offer(&suggestion, name, bytes, components->list.items[i]->type.name);
    return suggestion;
}

quern_result quern__components_check_flag(const quern__components *components, uint32_t index,
                                          uint32_t flag)
{
    if (flag == 0 || quern__components_has_flag(components, index, flag)) return QUERN_OK;
    const quern__column_flag *row = &quern__column_flags[quern__lowest_bit_32(flag)];
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "component '%s' %s: it was registered without %s",
                       quern__components_type(components, index)->name, row->without, row->name);
}

static void component_release(quern__component *component, const quern_allocator *allocator)
{
    quern__type_release(&component->type, allocator);
    quern__array_release(allocator, &component->archetypes);
    quern__array_release(allocator, &component->listed_required);
    quern__array_release(allocator, &component->required);
    quern__release(allocator, component, sizeof *component, _Alignof(quern__component));
}

void quern__components_release(quern__components *components, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < components->list.count; i++)
        component_release(components->list.items[i], allocator);
    quern__array_release(allocator, &components->list);
    quern__type_ids_release(&components->type_ids, allocator);
}

static uint8_t flags_of(const quern_component_def *def)
{
    uint8_t flags = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        bool is_set;
        memcpy(&is_set, (const char *)def + flag->def_offset_bytes, sizeof is_set);
        if (is_set) flags |= flag->bit;
    }
    return flags;
}

static quern_result check_same_flags(const quern__type *known, uint8_t flags)
{
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        if (flag->is_layout && ((known->flags ^ flags) & flag->bit) != 0)
            return quern__fail(
                QUERN_ERROR_LAYOUT_MISMATCH,
                "component '%s' is registered as one that %s (%s): register the same definition",
                known->name, (known->flags & flag->bit) != 0 ? flag->with : flag->without, flag->name);
    }
    return QUERN_OK;
}

static quern_result check_same_required(const quern__component *known, const quern__component *definition)
{
    const uint32_t count = known->required.count;
    if (definition->required.count == count &&
        (count == 0 || memcmp(known->required.items, definition->required.items,
                              count * sizeof *known->required.items) == 0))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "component '%s' is registered with other required components: register the same "
                       "definition",
                       known->type.name);
}

/* Checks the entity hooks of a component that is registered again. Those of one C++ type have other addresses in each
 * shared library. As long as no archetype has the component, it may get its first ones. */
static quern_result check_entity_hooks(const quern__component *known, const quern__component *definition)
{
    const quern_entity_hooks *a = &known->type.entity_hooks, *b = &definition->type.entity_hooks;
    if (!quern__entity_hooks_exist(b) ||
        (a->on_add == b->on_add && a->on_set == b->on_set && a->on_remove == b->on_remove &&
         a->user_data == b->user_data) ||
        (quern__entity_hooks_exist(a) && known->type.type_id != 0 &&
         known->type.type_id == definition->type.type_id) ||
        (!quern__entity_hooks_exist(a) && known->archetypes.count == 0))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "component '%s' is registered with other entity hooks, or has entities already: register it with "
        "its hooks first, or give it others by quern_component_redefine",
        known->type.name);
}

/* Handles the registration of a known name: returns the known component if the definitions agree. The caller releases
 * the new one. Errors: LAYOUT_MISMATCH, OUT_OF_MEMORY. */
static quern_result check_known(quern__components *components, const quern_allocator *allocator,
                                quern_component known, const quern__component *definition,
                                quern_component *out_component)
{
    quern__type *type = &components->list.items[quern__component_index(known)]->type;
    if (quern__components_is_managed(components, quern__component_index(known)))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "component '%s' exists already and is managed by the world, for a relation or "
                           "internally: use another name",
                           type->name);
    quern_result result = check_same_flags(type, definition->type.flags);
    if (result == QUERN_OK)
        result = check_same_required(components->list.items[quern__component_index(known)], definition);
    if (result == QUERN_OK) result = quern__type_check_same_layout(type, &definition->type, registry.what);
    if (result == QUERN_OK)
        result = check_entity_hooks(components->list.items[quern__component_index(known)], definition);
    if (result == QUERN_OK && definition->type.type_id != 0 &&
        !quern__type_ids_reserve(&components->type_ids, allocator))
        result = quern__registry_fail_memory(&registry, type->name);
    if (result != QUERN_OK) return result;
    if (!quern__entity_hooks_exist(&type->entity_hooks)) type->entity_hooks = definition->type.entity_hooks;
    quern__type_identify(type, &components->type_ids, definition->type.type_id, known.bits);
    *out_component = known;
    return QUERN_OK;
}

static quern_result append(quern__components *components, const quern_allocator *allocator,
                           quern__component *component, quern_component *out_component)
{
    const uint64_t type_id = component->type.type_id;
    const quern_result result =
        quern__registry_reserve(&registry, allocator, &components->list, component->type.name);
    if (result != QUERN_OK) return result;
    if (type_id != 0 && !quern__type_ids_reserve(&components->type_ids, allocator))
        return quern__registry_fail_memory(&registry, component->type.name);
    components->list.items[components->list.count++] = component;
    components->has_requirements |= component->required.count > 0;
    if (components->largest_bytes < component->type.size_bytes)
        components->largest_bytes = component->type.size_bytes;
    *out_component = quern__component_handle(components, components->list.count - 1);
    quern__type_identify(&component->type, &components->type_ids, type_id, out_component->bits);
    return QUERN_OK;
}

/* Copies the default value of a definition. Errors: INVALID_ARGUMENT, PROVISIONAL_ENTITY, OUT_OF_MEMORY. */
static quern_result set_default(quern__component *component, const quern_allocator *allocator,
                                const void *value)
{
    quern__type *type = &component->type;
    if (value == NULL) return QUERN_OK;
    if (type->size_bytes == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is a tag (0 bytes) with a default value: set default_value to NULL",
            type->name);
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has a destroy hook and no copy hook, so its default value cannot "
            "be copied to entities: give the type a copy hook",
            type->name);
    const quern_result result =
        quern__type_check_provisional(type, value, 1, "a command for each entity instead");
    if (result != QUERN_OK) return result;
    void *copy = quern__allocate(allocator, type->size_bytes, type->alignment_bytes);
    if (copy == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "'%s': no memory for its default value", type->name);
    quern__type_copy(type, copy, value, 1);
    type->default_value = copy;
    return QUERN_OK;
}

static quern_result init(quern__component *component, const quern_allocator *allocator,
                         const quern_component_def *def, uint32_t filter_count)
{
    *component = (quern__component){.filter_count = filter_count};
    if (def->name != NULL && def->size_bytes > QUERN_MAX_COMPONENT_BYTES)
        return quern__fail(
            QUERN_ERROR_COMPONENT_TOO_LARGE,
            "component '%.63s' has %u bytes; the limit is %d (QUERN_MAX_COMPONENT_BYTES): keep "
            "large data elsewhere and a pointer or index in the component",
            def->name, def->size_bytes, QUERN_MAX_COMPONENT_BYTES);
    if (def->size_bytes == 0 && quern__hooks_exist(&def->hooks))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%.63s' is a tag (0 bytes) with hooks, which would never run: remove the "
            "hooks, or give the component a size",
            def->name ? def->name : "");
    quern_result result = quern__type_init(
        &component->type, allocator, "component", def->name, def->type_name, def->size_bytes,
        def->alignment_bytes ? def->alignment_bytes : 1, &def->hooks, def->fields);
    if (result == QUERN_OK && def->size_bytes % component->type.alignment_bytes != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has %u bytes, which is not a multiple of its alignment %u: pad it", def->name,
            def->size_bytes, def->alignment_bytes);
    component->type.flags = flags_of(def);
    component->type.type_id = def->type_id;
    component->type.entity_hooks = def->entity_hooks;
    if (result == QUERN_OK && def->size_bytes == 0 && def->entity_hooks.on_set != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is a tag (0 bytes) with on_set, which would never run, since a tag has no "
            "value: use on_add",
            def->name);
    return result == QUERN_OK ? set_default(component, allocator, def->default_value) : result;
}

static quern_result check_required(const quern__components *components, const quern_component_def *def,
                                   uint32_t i)
{
    const quern_result result = quern__components_check(components, def->required[i]);
    if (result != QUERN_OK) return quern__message_add_element(result, "required", i);
    const uint32_t index = quern__component_index(def->required[i]);
    if (quern__components_is_managed(components, index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%.63s' cannot require '%s', which the world adds and removes by "
                           "itself: remove it from the list",
                           def->name, quern__components_type(components, index)->name);
    for (uint32_t k = 0; k < i; k++)
        if (def->required[k].bits == def->required[i].bits)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "component '%.63s' requires '%s' twice: list each component once", def->name,
                               quern__components_type(components, index)->name);
    return QUERN_OK;
}

enum { SET_WORDS = QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS) };

static quern_result store_required(quern__component *component, const quern_allocator *allocator,
                                   const quern__components *components, const quern_component *list,
                                   uint32_t count)
{
    uint64_t set[SET_WORDS] = {0};
    uint16_t indices[QUERN_MAX_COMPONENTS];
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_add(set, quern__component_index(list[i]));
    if (components->has_requirements) quern__components_add_required(components, set, set);
    const uint32_t all_count = quern__bitset_list(set, SET_WORDS, indices);
    if (!quern__array_reserve(allocator, &component->listed_required, count) ||
        !quern__array_reserve(allocator, &component->required, all_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "'%s': no memory for %u required components",
                           component->type.name, count);
    memcpy(component->listed_required.items, list, count * sizeof *list);
    memcpy(component->required.items, indices, all_count * sizeof *indices);
    component->listed_required.count = count;
    component->required.count = all_count;
    return QUERN_OK;
}

/* Checks the list of required components in a definition, and stores it and all that it requires. Errors:
 * INVALID_ARGUMENT, UNKNOWN_COMPONENT, OUT_OF_MEMORY; the caller then releases the component. */
static quern_result component_set_required(quern__component *component, const quern_allocator *allocator,
                                           const quern__components *components,
                                           const quern_component_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->required, QUERN_MAX_REQUIRED, quern__is_end_of_handles,
                                            "required component", def->name, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = check_required(components, def, i);
    if (result != QUERN_OK || count == 0) return result;
    return store_required(component, allocator, components, def->required, count);
}

quern_result quern__components_register(quern__components *components, const quern_allocator *allocator,
                                        const quern_component_def *def, quern_component *out_component)
{
    quern__component *component = quern__allocate(allocator, sizeof *component, _Alignof(quern__component));
    if (component == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to register a component");
    quern_result result = init(component, allocator, def, components->first_filter_count);
    if (result == QUERN_OK) result = component_set_required(component, allocator, components, def);
    if (result == QUERN_OK) {
        quern_component known = quern__components_find(components, component->type.name);
        if (known.bits == 0) {
            result = append(components, allocator, component, out_component);
            if (result == QUERN_OK) return QUERN_OK;
        } else {
            result = check_known(components, allocator, known, component, out_component);
        }
    }
    component_release(component, allocator);
    return result;
}

quern_result quern__components_redefine(const quern__components *components,
                                        const quern_allocator *allocator, uint32_t component_index,
                                        const quern_component_def *def, quern__type *out_type)
{
    const quern__component *known = components->list.items[component_index];
    if (known->is_managed)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the world manages component '%s' itself, for a relation or internally, so its "
                           "definition cannot change: redefine another component",
                           known->type.name);
    quern__component fresh = {.filter_count = 0};
    quern_result result = init(&fresh, allocator, def, 0);
    if (result == QUERN_OK) result = component_set_required(&fresh, allocator, components, def);
    if (result == QUERN_OK) result = check_same_flags(&known->type, fresh.type.flags);
    if (result == QUERN_OK) result = check_same_required(known, &fresh);
    if (result == QUERN_OK)
        *out_type = fresh.type;
    else
        quern__type_release(&fresh.type, allocator);
    quern__array_release(allocator, &fresh.listed_required);
    quern__array_release(allocator, &fresh.required);
    return result;
}

quern_result quern__components_fail_edge_value(const quern__components *components, uint32_t index)
{
    const quern__component *component = components->list.items[index];
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "'%s' holds the values of the edges of relation '%s', so an entity has it only with a "
        "target: relate the entity instead, with a value by quern_entity_relate_with or "
        "quern_commands_relate_with",
        component->type.name, quern__components_type(components, component->edge_owner - 1)->name);
}

/* The tag of a relation with several targets per source has no size. */
quern_result quern__components_check_edge_list(const quern__components *components, uint32_t index)
{
    const quern__component *component = components->list.items[index];
    if (QUERN__LIKELY(component->edge_owner == 0)) return QUERN_OK;
    const quern__type *owner = quern__components_type(components, component->edge_owner - 1);
    if (owner->size_bytes > 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "'%s' has an element for each target in relation '%s', so it cannot be replaced as a "
        "whole: set the value of each edge by quern_entity_set_edge_value or "
        "quern_commands_set_edge_value",
        component->type.name, owner->name);
}

quern_result quern__components_add_managed(quern__components *components, const quern_allocator *allocator,
                                           const quern_component_def *def, const quern__managed *managed)
{
    quern__component *component = quern__allocate(allocator, sizeof *component, _Alignof(quern__component));
    if (component == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "component '%s': no memory to register it",
                           def->name);
    quern_component ignored;
    quern_result result = init(component, allocator, def, components->first_filter_count);
    if (result == QUERN_OK) result = component_set_required(component, allocator, components, def);
    if (result == QUERN_OK) result = append(components, allocator, component, &ignored);
    if (result != QUERN_OK) {
        component_release(component, allocator);
        return result;
    }
    component->is_managed = true;
    component->managed = *managed;
    return QUERN_OK;
}

void quern__components_drop_last(quern__components *components, const quern_allocator *allocator,
                                 uint32_t count)
{
    while (components->list.count > count) {
        quern__component *component = components->list.items[--components->list.count];
        assert(component->type.type_id == 0); /* entries of type_ids are never removed */
        component_release(component, allocator);
    }
}

void quern__components_add_required(const quern__components *components, const uint64_t *set,
                                    uint64_t *required)
{
    for (uint32_t word = 0; word < SET_WORDS; word++)
        for (uint64_t left = set[word]; left != 0;) {
            const uint32_t index = word * 64 + quern__bitset_pop_lowest(&left);
            const quern__component *component = components->list.items[index];
            for (uint32_t i = 0; i < component->required.count; i++)
                quern__bitset_add(required, component->required.items[i]);
        }
}

bool quern__components_insert(uint16_t *set, uint32_t *count, uint32_t component_index)
{
    uint32_t at = *count;
    while (at > 0 && set[at - 1] > component_index)
        at--;
    if (at > 0 && set[at - 1] == component_index) return false;
    memmove(set + at + 1, set + at, (*count - at) * sizeof *set);
    set[at] = (uint16_t)component_index;
    ++*count;
    return true;
}

uint32_t quern__components_complete(const quern__components *components, uint16_t *set, uint32_t count)
{
    if (QUERN__LIKELY(!components->has_requirements)) return count;
    uint64_t bits[SET_WORDS] = {0};
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_add(bits, set[i]);
    quern__components_add_required(components, bits, bits);
    return quern__bitset_list(bits, SET_WORDS, set);
}

uint32_t quern__components_find_requiring(const quern__components *components, const uint16_t *set,
                                          uint32_t count, uint32_t component_index)
{
    for (uint32_t i = 0; i < count && components->has_requirements; i++) {
        const quern__component *component = components->list.items[set[i]];
        for (uint32_t k = 0; k < component->required.count; k++)
            if (component->required.items[k] == component_index) return set[i];
    }
    return QUERN__NO_COMPONENT;
}

uint32_t quern__component_required_hash(const quern__component *component)
{
    uint64_t hash = component->required.count;
    if (hash == 0) return 0;
    for (uint32_t i = 0; i < component->required.count; i++)
        hash = quern__hash_word(hash, component->required.items[i]);
    return (uint32_t)(hash >> 32) | 1;
}
