/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_INTERNAL_H
#define QUERN_KIT_JSON_INTERNAL_H

/* What the sources of the JSON library share. */

#include "kit/json.h"

#include <cjson/cJSON.h>

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

/* ----------------------------------------------------------------------------------------- reading */

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
bool quern__json_find_id(const quern__json_handles *handles, const cJSON *item, uint32_t *out_index);

/* For something that the world does not have: an error, or QUERN_OK when it is left out. */
quern_result quern__json_unknown(const quern__json_reader *reader, quern_result code, const char *what,
                                 const char *name, const char *owner);

/* Gives a value what the item has. */
quern_result quern__json_read_fields(const quern__json_reader *reader, const quern_type_info *type,
                                     const cJSON *item, char *value);

quern_result quern__json_reader_open(quern__json_reader *reader, const quern_world *world,
                                     const quern_json_options *options, const char *function);

/* Room for a value of so many bytes. */
quern_result quern__json_reader_reserve(quern__json_reader *reader, size_t bytes);

void quern__json_reader_close(quern__json_reader *reader);

/* Errors: INVALID_ARGUMENT, saying at which byte. */
quern_result quern__json_parse(const char *text, size_t bytes, cJSON **out_root);

#endif
