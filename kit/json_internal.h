/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_INTERNAL_H
#define QUERN_KIT_JSON_INTERNAL_H

/* Declarations shared by the sources of the JSON library, and by the inspector, which also writes JSON. */

#include "kit/json.h"

#include <string.h>

enum { QUERN__JSON_VERSION = 1 };

/* Sets the error and returns `code`. A macro, so that the compiler sees the returned value. */
#define quern__json_fail(code, ...) ((void)quern_error_set((code), __VA_ARGS__), (code))

/* One field as a writable type of its own: quern_value_* finds its only field in the first step, and
 * `is_read_only` is cleared. Points into itself, so it must not be copied. */
typedef struct quern__json_field {
    quern_field field;
    quern_type_info type;
} quern__json_field;

static inline void quern__json_field_init(quern__json_field *single, const quern_type_info *type,
                                          uint32_t i)
{
    single->field = type->fields[i];
    single->field.is_read_only = false;
    single->type = *type;
    single->type.fields = &single->field;
    single->type.field_count = 1;
}

/* The elements of a list as a type: their fields, or one field for numbers, handles and strings. Points into itself. */
typedef struct quern__json_elements {
    quern_field field;
    quern_type_info type;
    uint32_t element; /* for the calls of quern/list.h */
} quern__json_elements;

static inline void quern__json_elements_init(quern__json_elements *it, const quern_field *list)
{
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
                                     [QUERN_FIELD_STRING] = sizeof(quern_string)};
    const quern_element *element = list->element;
    it->field = (quern_field){.name = list->name, .type = element->type, .count = 1};
    it->type =
        (quern_type_info){.name = list->name,
                          .size_bytes = element->type != 0 ? sizes[element->type] : element->size_bytes,
                          .fields = element->type != 0 ? &it->field : element->fields,
                          .field_count = element->type != 0 ? 1 : element->field_count};
    it->element = element->type == QUERN_FIELD_STRING ? QUERN_LIST_STRINGS : it->type.size_bytes;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int quern__json_hexadecimal(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Returns the name of a field's type in JSON. */
static inline const char *quern__json_field_type(quern_field_type type)
{
    static const char *const names[] = {
        [QUERN_FIELD_BOOL] = "bool", [QUERN_FIELD_I8] = "i8",         [QUERN_FIELD_U8] = "u8",
        [QUERN_FIELD_I16] = "i16",   [QUERN_FIELD_U16] = "u16",       [QUERN_FIELD_I32] = "i32",
        [QUERN_FIELD_U32] = "u32",   [QUERN_FIELD_I64] = "i64",       [QUERN_FIELD_U64] = "u64",
        [QUERN_FIELD_F32] = "f32",   [QUERN_FIELD_F64] = "f64",       [QUERN_FIELD_ENTITY] = "entity",
        [QUERN_FIELD_TEXT] = "text", [QUERN_FIELD_STRING] = "string", [QUERN_FIELD_LIST] = "list"};
    return names[type];
}

enum { QUERN__JSON_WHOLE_BYTES = 24, QUERN__JSON_PATH_BYTES = QUERN_MAX_NAME_BYTES + 16 };

/* Writes a number without a final 0 and returns its length. */
static inline uint32_t quern__json_digits(uint64_t number, char text[QUERN__JSON_WHOLE_BYTES])
{
    char reversed[QUERN__JSON_WHOLE_BYTES];
    uint32_t count = 0;
    do
        reversed[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    for (uint32_t i = 0; i < count; i++)
        text[i] = reversed[count - 1 - i];
    return count;
}

/* Writes the path of an element of an array field, such as "matrix[2]". */
static inline void quern__json_element_path(const char *field, uint32_t index,
                                            char path[QUERN__JSON_PATH_BYTES])
{
    const size_t bytes = strlen(field);
    memcpy(path, field, bytes);
    path[bytes] = '[';
    const size_t end = bytes + 1 + quern__json_digits(index, path + bytes + 1);
    memcpy(path + end, "]", 2);
}

static inline bool quern__json_has_hooks(const quern_type_info *type)
{
    return type->hooks.construct != NULL || type->hooks.copy != NULL || type->hooks.move != NULL ||
           type->hooks.destroy != NULL;
}

static inline quern_result quern__json_fail_hooks(const quern_type_info *type)
{
    return quern__json_fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "'%s' has hooks and no described fields: describe its fields, since its bytes may hold pointers",
        type->name);
}

/* Puts `prefix` and a colon before the message of an error. Returns `result`. */
quern_result quern__json_prefix_error(quern_result result, const char *prefix);

/* Finds the next flag with a list in the JSON of entities, starting at flag number *index, and advances *index past
 * it. Returns false if there is none. */
static inline bool quern__json_next_list(uint32_t *index, quern_flag_info *out_flag)
{
    while (*index < quern_component_flag_count())
        if (quern_component_flag_get_info((*index)++, out_flag) == QUERN_OK && out_flag->list_name != NULL)
            return true;
    return false;
}

/* ----------------------------------------------------------------------------------------- parsing */

typedef enum quern__json_kind {
    QUERN__JSON_NULL,
    QUERN__JSON_FALSE,
    QUERN__JSON_TRUE,
    QUERN__JSON_NUMBER,
    QUERN__JSON_STRING,
    QUERN__JSON_ARRAY,
    QUERN__JSON_OBJECT
} quern__json_kind;

/* A value of a document. The elements or members of a container follow it, each with its own contents. */
typedef struct quern__json_item {
    const char *key; /* zero-terminated key of a member; NULL for an element and the root */
    /* of a string: decoded, zero-terminated; of a number: `bytes` characters as written; of a container: its bracket */
    const char *text;
    uint32_t bytes;
    uint32_t count; /* number of elements or members */
    uint32_t span;  /* number of items of this value, itself included */
    quern__json_kind kind;
} quern__json_item;

typedef struct quern__json_document {
    quern_allocator allocator;
    quern__json_item *items; /* the first item is the root */
    uint32_t count, capacity;
    char *text; /* the decoded copy that the items point into */
    size_t text_bytes;
    const char *source; /* the caller's text, for error messages of the parser */
} quern__json_document;

/* Parses a text. Fails with NULL_ARGUMENT, INVALID_ARGUMENT (the message names line and byte), LIMIT (4 GiB) or
 * OUT_OF_MEMORY; then there is nothing to close. */
quern_result quern__json_parse(const quern_allocator *allocator, const char *text, size_t bytes,
                               quern__json_document *out_document);

/* Releases the memory of a document. A document of zero bytes is allowed. */
void quern__json_document_close(quern__json_document *document);

/* Puts line and column of an item before the message of an error: those of its key, if it has one. Does nothing without
 * an item, and if memory is exhausted. The text that was parsed must still be there. Returns `result`. */
quern_result quern__json_add_place(const quern__json_document *document, const quern__json_item *item,
                                   quern_result result);

/* In the next two functions, item may be NULL. */
static inline bool quern__json_is(const quern__json_item *item, quern__json_kind kind)
{
    return item != NULL && item->kind == kind;
}

/* Returns the first element or member, or NULL. */
static inline const quern__json_item *quern__json_first(const quern__json_item *item)
{
    return item != NULL && item->count > 0 ? item + 1 : NULL;
}

/* Returns the element or member of `outer` that follows `inner`, or NULL. */
static inline const quern__json_item *quern__json_next(const quern__json_item *outer,
                                                       const quern__json_item *inner)
{
    const quern__json_item *next = inner + inner->span;
    return next < outer + outer->span ? next : NULL;
}

/* Returns the member with a key, or NULL if there is none or `object` is not an object. */
const quern__json_item *quern__json_member(const quern__json_item *object, const char *key);

/* Writes a whole number of up to 20 digits as a sign and digits: 1e2 and 100.0 become 100. Returns false for every
 * other item. */
bool quern__json_as_whole(const quern__json_item *item, char text[QUERN__JSON_WHOLE_BYTES]);

/* Reads a whole number from 0 to limit. Returns false for every other item. */
bool quern__json_as_count(const quern__json_item *item, uint64_t limit, uint64_t *out_count);

#endif
