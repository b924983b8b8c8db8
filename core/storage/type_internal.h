/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_TYPE_INTERNAL_H
#define QUERN_CORE_STORAGE_TYPE_INTERNAL_H

/* What the runtime knows of a value's type, component or resource: its layout, its lifecycle, its fields.
 * Everything that is done to a value goes through here, so plain bytes and hooks live side by side. */

#include "core/base/base_internal.h"
#include "core/storage/column_flags.h"

#include <quern/component.h>

typedef struct quern__type {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t size_bytes; /* 0 for tags */
    uint32_t alignment_bytes;
    quern_hooks hooks;
    quern_field *fields; /* one block, with all that they point at; counts are at least 1 */
    uint32_t field_count;
    size_t fields_bytes; /* of the block */
    bool has_entity_fields;
    uint8_t flags;                            /* QUERN__FLAG_; of a resource or event IS_HIDDEN alone */
    char type_name[QUERN_MAX_NAME_BYTES + 1]; /* of the C type; "": not known */
} quern__type;

/* Checks the parts that components and resources share, and copies them. `what` is "component" or
 * "resource"; fields as in a definition.
 * Errors: INVALID_ARGUMENT, BAD_ALIGNMENT, OUT_OF_MEMORY; the type is then released already. */
quern_result quern__type_init(quern__type *type, const quern_allocator *allocator, const char *what,
                              const char *name, const char *type_name, uint32_t size_bytes,
                              uint32_t alignment_bytes, const quern_hooks *hooks,
                              const quern_field *fields);

void quern__type_release(quern__type *type, const quern_allocator *allocator);

/* Whether any is there; where none is, values are plain bytes. */
static inline bool quern__hooks_exist(const quern_hooks *hooks)
{
    return hooks->construct != NULL || hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Whether values may own something that their bytes do not tell: such values are never copied as bytes. */
static inline bool quern__hooks_own_resources(const quern_hooks *hooks)
{
    return hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Whether a C type of this name is what the type was registered as, as far as that is known: const, struct
 * and namespaces make no difference. */
bool quern__type_has_c_name(const quern__type *type, const char *type_name);

/* Bytes of one element of a field of this type; 0 for what is none of the types. */
uint32_t quern__field_bytes(quern_field_type type);

/* The range of an integer type: 0 and false for all others. The greatest of U64 is -1, its bits. */
bool quern__field_integer_range(quern_field_type type, int64_t *out_least, int64_t *out_greatest);

/* Compares the type with as many other fields, by name, type, offset and count. Returns the index of the first that
 * differs, or field_count. */
uint32_t quern__type_different_field(const quern__type *type, const quern_field *fields);

/* For registering a name again. Errors: LAYOUT_MISMATCH unless size, alignment, hooks, and names, types, offsets and
 * counts of fields are the same; `what` is as in quern__type_init. */
quern_result quern__type_check_same_layout(const quern__type *known, const quern__type *type,
                                           const char *what);

bool quern__type_same_layout(const quern__type *a, const quern__type *b);

/* The four below work on `count` values that lie next to each other.
 * Turns raw memory into values. */
void quern__type_construct(const quern__type *type, void *values, uint32_t count);

/* Turns raw memory into copies of the sources. */
void quern__type_copy(const quern__type *type, void *targets, const void *sources, uint32_t count);

/* Turns raw memory into what the sources were, and those into raw memory. */
void quern__type_move(const quern__type *type, void *targets, void *sources, uint32_t count);

/* Turns values into raw memory. */
void quern__type_destroy(const quern__type *type, void *values, uint32_t count);

/* Described fields alone, or all bytes; of handles what quern__entity_to_relative tells. */
uint64_t quern__type_hash(const quern__type *type, uint64_t hash, const void *value,
                          uint32_t first_handle_high);

/* Whether two values are the same: in described fields alone, or in all bytes. */
bool quern__type_same_value(const quern__type *type, const void *a, const void *b);

/* Whether some described field has one of these bytes. */
bool quern__type_has_field_in(const quern__type *type, uint32_t offset_bytes, uint32_t size_bytes);

typedef quern_entity quern__remap_function(void *argument, quern_entity entity);

/* Calls remap for every handle in described fields; what it returns is not used. */
void quern__type_visit_entities(const quern__type *type, const void *value, quern__remap_function *remap,
                                void *argument);

/* Returns a provisional handle in the described fields of `count` values, or null if there is none. */
quern_entity quern__type_find_provisional(const quern__type *type, const void *values, uint32_t count);

/* For calls that change a world at once. PROVISIONAL_ENTITY if one of `count` values has a provisional
 * handle in a described field: there it would stay provisional for ever. commands: the call that makes it
 * real. */
quern_result quern__type_check_provisional(const quern__type *type, const void *values, uint32_t count,
                                           const char *commands);

/* Replaces every handle in described fields by what remap makes of it. */
void quern__type_remap(const quern__type *type, void *value, quern__remap_function *remap, void *argument);

#endif
