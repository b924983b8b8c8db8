/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Fields of components by path, such as "Position.x" or "Squad.members[2]", and conditions on them, such as
 * "Energy.value < 0.5, Position.x >= 3". Values are read through getters, which mark nothing as changed. */
#include "inspect/inspect_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- fields */

static const quern_field *field_at(const quern_type_info *type, const char *path, size_t path_bytes,
                                   uint32_t *out_element)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        const size_t bytes = strlen(field->name);
        *out_element = 0;
        if (bytes > path_bytes || strncmp(path, field->name, bytes) != 0) continue;
        if (bytes == path_bytes) return field;
        if (path[bytes] != '[' || path[path_bytes - 1] != ']') continue;
        char *end;
        const unsigned long element = strtoul(path + bytes + 1, &end, 10);
        if (end != path + path_bytes - 1 || end == path + bytes + 1 || element >= field->count) continue;
        *out_element = (uint32_t)element;
        return field;
    }
    return NULL;
}

/* Finds the field of a path. A name of a type may contain dots, and one may begin with another one: all types are tried. */
static bool find_field(const quern_world *world, quern__inspect_field *field)
{
    const char *path = field->path;
    const size_t path_bytes = field->path_bytes;
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_COMPONENT); i++) {
        quern_type_info type;
        uint32_t element;
        if (quern_type_at(world, QUERN_TYPE_COMPONENT, i, &type) != QUERN_OK) continue;
        const size_t bytes = strlen(type.name);
        if (bytes + 1 >= path_bytes || strncmp(path, type.name, bytes) != 0 || path[bytes] != '.') continue;
        const quern_field *found = field_at(&type, path + bytes + 1, path_bytes - bytes - 1, &element);
        if (found == NULL) continue;
        static const uint32_t sizes[] = {[QUERN_FIELD_BOOL] = 1,
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
                                         [QUERN_FIELD_LIST] = sizeof(quern_list)};
        if (field->getter != NULL && !quern_component_equal(field->component, type.component)) continue;
        field->component = type.component;
        field->type = found->type;
        field->offset_bytes = found->offset_bytes + element * sizes[found->type];
        field->text_bytes = found->type == QUERN_FIELD_TEXT ? found->count : 0;
        field->values = found->values;
        return true;
    }
    return false;
}

bool quern__inspect_field_open(quern__inspect_answer *answer, const char *path, size_t path_bytes,
                               quern__inspect_field *field)
{
    quern_world *world = answer->inspector->def.world;
    *field = (quern__inspect_field){.path = path, .path_bytes = path_bytes};
    if (!find_field(world, field)) {
        quern__inspect_fail(answer, 404, "%s: no component has a described field '%.*s'",
                            answer->route->path, path_bytes < 80 ? (int)path_bytes : 80, path);
        return false;
    }
    const quern_getter_def def = {.component = field->component};
    const quern_result result = quern_getter_create(world, &def, &field->getter);
    if (result != QUERN_OK) quern__inspect_fail_result(answer, result);
    return result == QUERN_OK;
}

void quern__inspect_field_renew(const quern_world *world, quern__inspect_field *field)
{
    if (field->getter != NULL && !find_field(world, field)) field->type = 0;
}

void quern__inspect_field_close(quern__inspect_field *field)
{
    quern_getter_destroy(field->getter);
    field->getter = NULL;
}

const char *quern__inspect_field_text(const quern__inspect_field *field, quern_entity entity)
{
    const char *value = quern_getter_get(field->getter, entity);
    return value != NULL && field->type == QUERN_FIELD_TEXT ? value + field->offset_bytes : NULL;
}

bool quern__inspect_field_number(const quern__inspect_field *field, quern_entity entity, double *out_number)
{
    union {
        bool flag;
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        quern_entity entity;
        quern_list list;
    } as;
    const char *value = field->type != 0 ? quern_getter_get(field->getter, entity) : NULL;
    if (value == NULL) return false;
    const char *at = value + field->offset_bytes;
#define READ(member) (memcpy(&as.member, at, sizeof as.member), (double)as.member)
    switch (field->type) {
    case QUERN_FIELD_BOOL:
        *out_number = READ(u8) != 0;
        break;
    case QUERN_FIELD_I8:
        *out_number = READ(i8);
        break;
    case QUERN_FIELD_U8:
        *out_number = READ(u8);
        break;
    case QUERN_FIELD_I16:
        *out_number = READ(i16);
        break;
    case QUERN_FIELD_U16:
        *out_number = READ(u16);
        break;
    case QUERN_FIELD_I32:
        *out_number = READ(i32);
        break;
    case QUERN_FIELD_U32:
        *out_number = READ(u32);
        break;
    case QUERN_FIELD_I64:
        *out_number = READ(i64);
        break;
    case QUERN_FIELD_U64:
        *out_number = READ(u64);
        break;
    case QUERN_FIELD_F32:
        *out_number = READ(f32);
        break;
    case QUERN_FIELD_F64:
        *out_number = READ(f64);
        break;
    case QUERN_FIELD_ENTITY:
        memcpy(&as.entity, at, sizeof as.entity);
        *out_number = quern_entity_is_null(as.entity) ? -1 : (double)quern_entity_index(as.entity);
        break;
    case QUERN_FIELD_TEXT:
        /* The first bytes, so that texts have an order. */
        *out_number = 0;
        for (uint32_t i = 0, ended = 0; i < 6; i++) {
            ended = ended || i >= field->text_bytes || at[i] == '\0';
            *out_number = *out_number * 256 + (ended ? 0 : (unsigned char)at[i]);
        }
        break;
    case QUERN_FIELD_STRING:
    case QUERN_FIELD_LIST:
        memcpy(&as.list, at, sizeof as.list);
        *out_number = as.list.count;
        break;
    }
#undef READ
    return true;
}

/* --------------------------------------------------------------------------------------- conditions */

/* Those of two characters precede those that they begin with. */
static const struct {
    const char *text;
    quern__inspect_operator op;
} operators[] = {
    {"<=", QUERN__INSPECT_AT_MOST}, {">=", QUERN__INSPECT_AT_LEAST}, {"!=", QUERN__INSPECT_DIFFERENT},
    {"==", QUERN__INSPECT_EQUAL},   {"<", QUERN__INSPECT_LESS},      {">", QUERN__INSPECT_MORE},
    {"=", QUERN__INSPECT_EQUAL},    {"~", QUERN__INSPECT_CONTAINS},
};

enum { OPERATOR_COUNT = sizeof operators / sizeof operators[0] };

/* Reads the number on the right: a name of the field's values, true, false, none, an entity's index, or a number. A locale
 * with a comma as its decimal point would read less than is written. */
static bool read_number(const quern__inspect_field *field, const char *text, double *out_number)
{
    char *end;
    unsigned whole, generation;
    for (const quern_named_value *value = field->values; value != NULL && value->name != NULL; value++)
        if (strcmp(value->name, text) == 0) {
            *out_number = (double)value->value;
            return true;
        }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out_number = text[0] == 't';
        return true;
    }
    if (field->type == QUERN_FIELD_ENTITY) {
        *out_number = -1;
        if (strcmp(text, "none") == 0) return true;
        if (sscanf(text, "%u:%u", &whole, &generation) != 2) return false;
        *out_number = whole;
        return true;
    }
    *out_number = strtod(text, &end);
    if (*end == '.') {
        double scale = 0.1;
        for (const char *at = end + 1; *at >= '0' && *at <= '9'; at++, scale /= 10, end = (char *)at)
            *out_number += (text[0] == '-' ? -scale : scale) * (*at - '0');
        end++;
    }
    return end != text && *end == '\0' && !isnan(*out_number);
}

/* Divides a condition into path, operator and value, without the blanks around them. The value is copied to
 * condition->text. Returns the size of the path, or 0 if the text has no such parts. */
static size_t divide(const char *text, size_t bytes, quern__inspect_condition *condition)
{
    size_t path_bytes = 0;
    while (path_bytes < bytes && strchr("<>=!~", text[path_bytes]) == NULL)
        path_bytes++;
    const char *at = text + path_bytes, *end = text + bytes;
    int i = 0;
    while (i < OPERATOR_COUNT && strncmp(at, operators[i].text, strlen(operators[i].text)) != 0)
        i++;
    if (path_bytes == bytes || i == OPERATOR_COUNT) return 0;
    condition->op = operators[i].op;
    at += strlen(operators[i].text);
    while (at < end && *at == ' ')
        at++;
    while (at < end && end[-1] == ' ')
        end--;
    if (at >= end || (size_t)(end - at) >= sizeof condition->text) return 0;
    memcpy(condition->text, at, (size_t)(end - at));
    while (path_bytes > 0 && text[path_bytes - 1] == ' ')
        path_bytes--;
    return path_bytes;
}

static bool read_condition(quern__inspect_answer *answer, const char *text, size_t bytes,
                           quern__inspect_condition *condition)
{
    memset(condition, 0, sizeof *condition);
    const size_t path_bytes = divide(text, bytes, condition);
    if (path_bytes > 0) {
        if (!quern__inspect_field_open(answer, text, path_bytes, &condition->field)) return false;
        const bool has_value =
            condition->field.type == QUERN_FIELD_TEXT
                ? condition->op >= QUERN__INSPECT_EQUAL
                : condition->op != QUERN__INSPECT_CONTAINS &&
                      read_number(&condition->field, condition->text, &condition->number);
        if (has_value) return true;
        quern__inspect_field_close(&condition->field);
    }
    quern__inspect_fail(
        answer, 400,
        "%s: '%.*s' is no condition: write a field, one of < <= > >= = != ~, and a value; a text "
        "has only = != ~",
        answer->route->path, bytes < 80 ? (int)bytes : 80, text);
    return false;
}

bool quern__inspect_conditions_open(quern__inspect_answer *answer, const char *text,
                                    quern__inspect_conditions *conditions)
{
    conditions->count = 0;
    while (*text != '\0') {
        const size_t bytes = strcspn(text, ",");
        size_t first = strspn(text, " ");
        if (first > bytes) first = bytes;
        if (conditions->count == QUERN__INSPECT_CONDITIONS) {
            quern__inspect_fail(answer, 400, "%s: there are more than %d conditions", answer->route->path,
                                QUERN__INSPECT_CONDITIONS);
            quern__inspect_conditions_close(conditions);
            return false;
        }
        if (!read_condition(answer, text + first, bytes - first, &conditions->items[conditions->count])) {
            quern__inspect_conditions_close(conditions);
            return false;
        }
        conditions->count++;
        text += bytes + (text[bytes] == ',');
    }
    return true;
}

void quern__inspect_conditions_close(quern__inspect_conditions *conditions)
{
    for (uint32_t i = 0; i < conditions->count; i++)
        quern__inspect_field_close(&conditions->items[i].field);
    conditions->count = 0;
}

void quern__inspect_conditions_renew(const quern_world *world, quern__inspect_conditions *conditions)
{
    for (uint32_t i = 0; i < conditions->count; i++)
        quern__inspect_field_renew(world, &conditions->items[i].field);
}

static bool holds_for_text(const quern__inspect_condition *condition, const char *text)
{
    const size_t bytes = strnlen(text, condition->field.text_bytes), wanted = strlen(condition->text);
    const bool is_equal = bytes == wanted && memcmp(text, condition->text, bytes) == 0;
    if (condition->op != QUERN__INSPECT_CONTAINS)
        return is_equal == (condition->op == QUERN__INSPECT_EQUAL);
    for (size_t i = 0; i + wanted <= bytes; i++)
        if (memcmp(text + i, condition->text, wanted) == 0) return true;
    return false;
}

static bool holds(const quern__inspect_condition *condition, quern_entity entity)
{
    double number;
    if (condition->field.type == QUERN_FIELD_TEXT) {
        const char *text = quern__inspect_field_text(&condition->field, entity);
        return text != NULL && holds_for_text(condition, text);
    }
    if (!quern__inspect_field_number(&condition->field, entity, &number)) return false;
    switch (condition->op) {
    case QUERN__INSPECT_LESS:
        return number < condition->number;
    case QUERN__INSPECT_AT_MOST:
        return number <= condition->number;
    case QUERN__INSPECT_MORE:
        return number > condition->number;
    case QUERN__INSPECT_AT_LEAST:
        return number >= condition->number;
    case QUERN__INSPECT_EQUAL:
        /* What the page shows of a float has fewer digits than its value as a double. */
        return number == condition->number ||
               (condition->field.type == QUERN_FIELD_F32 && (float)number == (float)condition->number);
    default:
        return number != condition->number;
    }
}

bool quern__inspect_conditions_hold(const quern__inspect_conditions *conditions, quern_entity entity)
{
    for (uint32_t i = 0; i < conditions->count; i++)
        if (!holds(&conditions->items[i], entity)) return false;
    return true;
}
