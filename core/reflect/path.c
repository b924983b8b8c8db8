/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reflect/path.h"

#include "core/reflect/number.h"

enum { LIST_BYTES = 200 };

static bool is_named(const quern_field *field, const char *name, size_t bytes)
{
    return strlen(field->name) == bytes && memcmp(field->name, name, bytes) == 0;
}

static const quern_field *find_field(const quern_type_info *type, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        if (is_named(&type->fields[i], name, bytes)) return &type->fields[i];
    return NULL;
}

/* Returns the first field inside the struct or array of structs that the text names, or NULL if it names none. Such
 * fields are called "struct.field" or "struct[0].field". */
static const quern_field *find_inside(const quern_type_info *type, const char *text)
{
    const size_t bytes = strlen(text);
    for (uint32_t i = 0; i < type->field_count && bytes > 0; i++) {
        const char *name = type->fields[i].name;
        if (strncmp(name, text, bytes) == 0 && (name[bytes] == '.' || name[bytes] == '['))
            return &type->fields[i];
    }
    return NULL;
}

static quern_result fail_unknown(const quern_type_info *type, const char *text)
{
    const quern_field *inside = find_inside(type, text);
    char list[LIST_BYTES] = "";
    if (inside != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%.63s' of '%s' is a struct, or an array of them: name one of its fields, such as "
            "'%s'",
            text, type->name, inside->name);
    if (type->field_count == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' has no described fields, so it has no field '%.63s': describe its fields when "
            "registering it",
            type->name, text);
    for (uint32_t i = 0; i < type->field_count; i++)
        quern__append(list, sizeof list, "%s%s", i > 0 ? ", " : "", type->fields[i].name);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' has no field '%.63s'; it has %s%s", type->name,
                       text, list, strlen(list) == sizeof list - 1 ? "..." : "");
}

static quern_result select_element(quern__path *path, const char *index, size_t bytes)
{
    uint64_t number;
    if (!path->is_array)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%.63s': '%s' of '%s' is no array: leave out the index", path->text,
                           path->field->name, path->type->name);
    if (quern__digits_read(index, bytes, 10, UINT32_MAX, &number) != QUERN__NUMBER_OK ||
        number >= path->field->count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%.63s': '%s' of '%s' has the elements [0] to [%u]", path->text,
                           path->field->name, path->type->name, path->field->count - 1);
    path->first = (uint32_t)number;
    path->count = 1;
    path->is_array = false;
    return QUERN_OK;
}

/* The name of a field may end like an element, as in "points[0]", so the whole text is tried as a name first. */
quern_result quern__path_find(const quern_type_info *type, const char *text, quern__path *out_path)
{
    const size_t bytes = strlen(text);
    const char *bracket = bytes > 0 && text[bytes - 1] == ']' ? strrchr(text, '[') : NULL;
    const quern_field *field = find_field(type, text, bytes);
    if (field != NULL) bracket = NULL;
    if (bracket != NULL) field = find_field(type, text, (size_t)(bracket - text));
    if (field == NULL) return fail_unknown(type, text);
    const bool is_array = field->count > 1 && field->type != QUERN_FIELD_TEXT;
    *out_path = (quern__path){.type = type,
                              .field = field,
                              .text = text,
                              .count = is_array ? field->count : 1,
                              .is_array = is_array};
    if (bracket == NULL) return QUERN_OK;
    return select_element(out_path, bracket + 1, (size_t)(text + bytes - 1 - (bracket + 1)));
}
