/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_READER_INTERNAL_H
#define QUERN_KIT_JSON_READER_INTERNAL_H

/* What reads values from JSON, for values, worlds and prefabs. An error changes nothing, and its message has the line and
 * column of the innermost item that it is about (`place` of the reader). */

#include "kit/json_internal.h"

/* The largest id: tools that store all numbers as doubles keep whole numbers up to it. */
#define QUERN__JSON_MAX_ID ((UINT64_C(1) << 53) - 1)

/* Maps the ids in the JSON to entities. */
typedef struct quern__json_handles {
    const uint64_t *ids;         /* ascending; NULL: handles are read as text */
    const uint32_t *indices;     /* indices[i]: index of the entity with ids[i] */
    const quern_entity *created; /* created entities by index; NULL: not created yet */
    uint32_t count;
    bool accepts_text; /* whether handles of other entities are read as text */
} quern__json_handles;

/* An id in the JSON, and the index of its entity. */
typedef struct quern__json_id {
    uint64_t id;
    uint32_t index;
} quern__json_id;

typedef struct quern__json_reader {
    quern_world *world; /* quern_json_read_value only reads it */
    quern_allocator allocator;
    const quern_json_options *options;
    quern__json_handles handles;
    bool is_second_pass; /* whether what is left out has been reported already: set for the second pass */
    char *scratch;       /* space for one component or resource value */
    size_t scratch_bytes;
    const quern__json_item *place; /* innermost item of the error; NULL: no error, or one without an item */
} quern__json_reader;

/* Notes the item that an error is about, unless an item inside of it is noted already. Returns `result`. */
static inline quern_result quern__json_note(quern__json_reader *reader, const quern__json_item *item,
                                            quern_result result)
{
    if (result != QUERN_OK && reader->place == NULL) reader->place = item;
    return result;
}

static inline const char *quern__json_name_of(const quern__json_item *object)
{
    const quern__json_item *name = quern__json_member(object, "name");
    return quern__json_is(name, QUERN__JSON_STRING) ? name->text : NULL;
}

/* Constructs a value of a type. */
void quern__json_construct(const quern_type_info *type, void *value);

/* Destroys a value of a type. */
void quern__json_destroy(const quern_type_info *type, void *value);

/* Copies a value to uninitialised memory, as bytes if the type has no copy hook. */
void quern__json_copy(const quern_type_info *type, void *target, const void *value);

/* Replaces a value by a copy that was changed, or destroys the copy if that failed. Precondition: the type has a copy
 * hook. */
void quern__json_replace(const quern_type_info *type, void *value, void *copy, quern_result result);

/* Errors, with nothing to close: NULL_ARGUMENT, INVALID_ARGUMENT (half an allocator). options may be NULL. */
quern_result quern__json_reader_open(quern__json_reader *reader, const quern_world *world,
                                     const quern_json_options *options, const char *function);

/* Releases the scratch space. */
void quern__json_reader_close(quern__json_reader *reader);

/* Makes the scratch space large enough for a value of `bytes` bytes. Its content is lost if it grows. */
quern_result quern__json_reserve_scratch(quern__json_reader *reader, size_t bytes);

/* Handles a name that the world does not have: fails with `code`, or reports the name as left out and returns
 * QUERN_OK, depending on the options. type: the type that lacks a field, or NULL. */
quern_result quern__json_handle_unknown(const quern__json_reader *reader, quern_result code,
                                        const char *what, const char *name, const quern_type_info *type);

/* Fails for, or reports as left out, each member of an object that `is_member` does not know. */
quern_result quern__json_check_members(quern__json_reader *reader, const quern__json_item *object,
                                       const char *what, bool (*is_member)(const char *key));

/* Checks the member 'quern' of the outermost object, the version of the format. */
quern_result quern__json_check_version(quern__json_reader *reader, const quern__json_item *version);

/* Sorts ids, and stores them and their indices in two arrays of `count` elements. Fails if an id occurs twice, and then
 * stores the larger of the two indices. */
quern_result quern__json_sort_ids(quern__json_id *sorted, uint32_t count, uint64_t *ids, uint32_t *indices,
                                  uint32_t *out_repeated);

/* Finds the index of the entity with an id. Returns false if there is none. */
bool quern__json_find_id(const quern__json_handles *handles, const quern__json_item *item,
                         uint32_t *out_index);

/* Reads the text of a living entity, such as its path, or 'none'. Entities that are not alive are refused, because
 * their handles may have the bits of a member's. */
quern_result quern__json_read_entity_text(const quern__json_reader *reader, const quern__json_item *item,
                                          quern_entity *out_entity);

/* Sets the fields of a value to the members of an item. A type without described fields is read as bytes. */
quern_result quern__json_read_fields(quern__json_reader *reader, const quern_type_info *type,
                                     const quern__json_item *item, char *value);

#endif
