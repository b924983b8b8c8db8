/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_INTERNAL_H
#define QUERN_KIT_JSON_INTERNAL_H

/* What the sources of the JSON library share. */

#include "kit/json.h"

enum { QUERN__JSON_VERSION = 1 };

/* quern_error_set, of which the compiler can see here what it returns. */
#define quern__json_fail(code, ...) ((void)quern_error_set((code), __VA_ARGS__), (code))

#define QUERN__JSON_EXACT 9007199254740992.0 /* 2^53: whole numbers up to it are doubles */

/* The numbers that handles have in the JSON of a world: positions in a list that is sorted by slot. NULL
 * list: handles are written as text. */
typedef struct quern__json_ids {
    const quern_entity *entities;
    uint32_t count;
} quern__json_ids;

/* A field without what keeps it from being set, as a type of its own, so that it is found at once. */
typedef struct quern__json_field {
    quern_field field;
    quern_type_info type;
} quern__json_field;

static inline void quern__json_field_init(quern__json_field *one, const quern_type_info *type, uint32_t i)
{
    one->field = type->fields[i];
    one->field.is_read_only = false;
    one->type = *type;
    one->type.fields = &one->field;
    one->type.field_count = 1;
}

static inline bool quern__json_has_hooks(const quern_type_info *type)
{
    return type->hooks.construct != NULL || type->hooks.copy != NULL || type->hooks.move != NULL ||
           type->hooks.destroy != NULL;
}

static inline quern_result quern__json_fail_hooks(const quern_type_info *type)
{
    return quern__json_fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "'%s' has hooks and no described fields: its bytes mean nothing elsewhere",
                            type->name);
}

/* Gives the flag, from number *index on, whose state an entity's object lists, and sets *index behind it. False:
 * there is none. */
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

/* A value of a document. Behind an array or object lie its elements or members, each with all that is in it. */
typedef struct quern__json_item {
    const char *key;  /* of a member of an object, ends with a 0; NULL: an element, or the root */
    const char *text; /* of a string, decoded, ends with a 0; of a number, as it is written, `bytes` long */
    uint32_t bytes;
    uint32_t count; /* of elements or members */
    uint32_t span;  /* items from this one to the next behind all that is in it */
    quern__json_kind kind;
} quern__json_item;

typedef struct quern__json_document {
    quern_allocator allocator;
    quern__json_item *items; /* the first one is the root */
    uint32_t count, capacity;
    char *text; /* the decoded copy that items point into */
    size_t text_bytes;
    const char *source; /* the caller's, for messages while it is parsed */
} quern__json_document;

/* Errors, with nothing to be closed: NULL_ARGUMENT, INVALID_ARGUMENT, saying where, LIMIT (4 GiB),
 * OUT_OF_MEMORY. */
quern_result quern__json_parse(const quern_allocator *allocator, const char *text, size_t bytes,
                               quern__json_document *out_document);

/* Gives the memory back; of a document of zero bytes there is none. */
void quern__json_document_close(quern__json_document *document);

/* item may be NULL in these: there is none. */
static inline bool quern__json_is(const quern__json_item *item, quern__json_kind kind)
{
    return item != NULL && item->kind == kind;
}

/* The first element or member, or NULL. */
static inline const quern__json_item *quern__json_first(const quern__json_item *item)
{
    return item != NULL && item->count > 0 ? item + 1 : NULL;
}

/* The element or member of `outer` behind another one, or NULL. */
static inline const quern__json_item *quern__json_next(const quern__json_item *outer,
                                                       const quern__json_item *inner)
{
    const quern__json_item *next = inner + inner->span;
    return next < outer + outer->span ? next : NULL;
}

/* The member of an object with a key; NULL if there is none, or object is none. */
const quern__json_item *quern__json_member(const quern__json_item *object, const char *key);

enum { QUERN__JSON_WHOLE_BYTES = 24 };

/* Writes a whole number of up to 20 digits as digits, with a sign if it has one: 1e2 and 100.0 become 100. False
 * for all else. */
bool quern__json_as_whole(const quern__json_item *item, char text[QUERN__JSON_WHOLE_BYTES]);

/* A whole number from 0 to limit. False for all else. */
bool quern__json_as_count(const quern__json_item *item, uint64_t limit, uint64_t *out_count);

/* ----------------------------------------------------------------------------------------- reading */

/* Ids are whole numbers from 0 on that any tool keeps, also one that has doubles alone. */
#define QUERN__JSON_MAX_ID ((UINT64_C(1) << 53) - 1)

/* What handles in values become. */
typedef struct quern__json_handles {
    const uint64_t *ids;      /* ascending; NULL: handles are text */
    const uint32_t *indices;  /* of the entities of the ids */
    const quern_entity *made; /* by index; NULL: they are not made yet */
    uint32_t count;
} quern__json_handles;

typedef struct quern__json_reader {
    quern_world *world; /* of a value alone, only looked at */
    quern_allocator allocator;
    const quern_json_options *options;
    quern__json_handles handles;
    bool is_quiet; /* the second time; what is left out was told */
    char *scratch; /* room for the largest value */
    size_t scratch_bytes;
} quern__json_reader;

/* The index of the entity with an id; false if there is none. */
bool quern__json_find_id(const quern__json_handles *handles, const quern__json_item *item,
                         uint32_t *out_index);

/* For something that the world does not have: an error, or QUERN_OK when it is left out. */
quern_result quern__json_unknown(const quern__json_reader *reader, quern_result code, const char *what,
                                 const char *name, const char *owner);

/* Gives a value what the item has. */
quern_result quern__json_read_fields(const quern__json_reader *reader, const quern_type_info *type,
                                     const quern__json_item *item, char *value);

quern_result quern__json_reader_open(quern__json_reader *reader, const quern_world *world,
                                     const quern_json_options *options, const char *function);

/* Room for a value of so many bytes. */
quern_result quern__json_reader_reserve(quern__json_reader *reader, size_t bytes);

void quern__json_reader_close(quern__json_reader *reader);

#endif
