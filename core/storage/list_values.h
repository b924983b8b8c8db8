/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LIST_VALUES_H
#define QUERN_CORE_STORAGE_LIST_VALUES_H

/* Lists and strings as fields of a type. A type that describes some, and has no hooks of its own, gets hooks that copy and
 * destroy them; its values own nothing else. What other rooms do with fields, they do with the elements: hash, compare,
 * visit handles, write as bytes and read them again. Addresses and capacities never leave a process, nor a hash.
 *
 * The bytes of a list are its count (32 bits) and its elements; those of a string its size and its text. Of structs only
 * the described fields are written; all other bytes are zero. Strings in a list are written like strings. */

#include "core/base/bytes.h"
#include "core/base/list_internal.h"
#include "core/storage/type_internal.h"

static inline bool quern__field_is_list(quern_field_type type)
{
    return type == QUERN_FIELD_STRING || type == QUERN_FIELD_LIST;
}

/* Where the lists are in a value. */
struct quern__list_slots {
    uint32_t value_bytes;
    uint32_t count;
    uint32_t offsets[];
};

/* The hooks. user_data: the quern__list_slots of the type. */
void quern__lists_copy(void *targets, const void *sources, uint32_t count, void *user_data);
void quern__lists_destroy(void *values, uint32_t count, void *user_data);

/* `element` of the calls on the list in a field. */
uint32_t quern__field_element(const quern_field *field);

/* Returns whether elements of two fields have the same type: the same size, and the same fields. */
bool quern__field_same_elements(const quern_field *a, const quern_field *b);

/* Continues a hash with the elements, except handles, of the lists in a field. */
uint64_t quern__field_hash_lists(const quern_field *field, uint64_t hash, const char *at);

/* Returns whether the lists in a field of two values have equal elements. */
bool quern__field_same_lists(const quern_field *field, const char *a, const char *b);

/* Calls `remap` for each handle in the lists of a field. If `changes`, replaces it by the result; a list with a handle for
 * which the result differs gets a block of its own before. Without memory for that, it keeps its handles, which is
 * reported: callers cannot fail. Those that must not run out of memory have lists that share no block: lists that were just
 * read, or quern__type_own_provisional has prepared. */
void quern__field_visit_lists(const quern_field *field, char *at, bool changes,
                              quern__remap_function *remap, void *argument);

/* Gives each list of a value that has provisional handles a block of its own, so that they can be replaced without memory
 * later. Returns false, with a message, if out of memory. */
bool quern__type_own_provisional(const quern__type *type, char *value);

/* Sets the bytes of all lists in a value to zero, without releasing anything. For copies of values as bytes. */
void quern__type_clear_lists(const quern__type *type, char *value);

/* Returns whether the bytes of all lists in values are zero, as in an archive. */
bool quern__type_has_no_lists(const quern__type *type, const char *values, uint32_t count);

/* Writes the elements of all lists in a value. remap: maps the handles in them; NULL: they are written as they are. */
void quern__type_write_lists(const quern__type *type, const char *value, quern__byte_writer *writer,
                             quern__remap_function *remap, void *argument);

/* Replaces the lists in a value, which must be zero bytes, by those that the reader has. The bytes may be forged: each
 * size is compared with the bytes that are left before memory is allocated. The reader fails if they are not lists.
 * Returns false if out of memory. The lists that were made belong to the value in any case. */
bool quern__type_read_lists(const quern__type *type, char *value, quern__byte_reader *reader);

/* Destroys the lists in a value, which become empty. */
void quern__type_free_lists(const quern__type *type, char *value);

#endif
