/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_TYPE_INTERNAL_H
#define QUERN_CORE_STORAGE_TYPE_INTERNAL_H

/* Types of values, for components, resources and events: layout, hooks and described fields. Values are constructed,
 * copied, moved, destroyed, hashed and compared only by the functions below. They handle types with and without
 * hooks. */

#include "core/base/base_internal.h"
#include "core/storage/column_flags.h"

#include <quern/component.h>

typedef struct quern__type {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t size_bytes; /* 0 for tags */
    uint32_t alignment_bytes;
    quern_hooks hooks;
    quern_field *
        fields; /* NULL if none; counts are at least 1; the allocation also holds names, units and values */
    uint32_t field_count;
    size_t fields_bytes; /* size of the allocation of `fields` */
    bool has_entity_fields;
    void *default_value; /* value of a newly constructed component; NULL: see quern__type_construct */
    uint8_t flags;       /* QUERN__FLAG_ bits; resources and events have only IS_HIDDEN */
    char type_name[QUERN_MAX_NAME_BYTES + 1]; /* name of the C type; "": unknown */
} quern__type;

/* Checks and copies the members that all definitions of types have. `what`: "component", "resource" or "event", for
 * messages. `fields`: as in a definition.
 * Errors: INVALID_ARGUMENT, BAD_ALIGNMENT, OUT_OF_MEMORY. After an error the type holds no memory. */
quern_result quern__type_init(quern__type *type, const quern_allocator *allocator, const char *what,
                              const char *name, const char *type_name, uint32_t size_bytes,
                              uint32_t alignment_bytes, const quern_hooks *hooks,
                              const quern_field *fields);

void quern__type_release(quern__type *type, const quern_allocator *allocator);

/* Returns whether the type has hooks. Without hooks its values are plain bytes. */
static inline bool quern__hooks_exist(const quern_hooks *hooks)
{
    return hooks->construct != NULL || hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Returns whether values may own resources, such as memory. Such values are never copied byte by byte. */
static inline bool quern__hooks_own_resources(const quern_hooks *hooks)
{
    return hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Returns whether the type was registered for the C type of this name, or for an unknown one. Ignores const, struct
 * and similar keywords, and leading namespaces. */
bool quern__type_has_c_name(const quern__type *type, const char *type_name);

/* Returns the size of one element of a field of this type in bytes, or 0 if the type is invalid. */
uint32_t quern__field_bytes(quern_field_type type);

/* Returns whether a field type is an integer, and its range. The range of other types is 0 to 0. The greatest value
 * of U64 is returned as -1, which has the same bits. */
bool quern__field_integer_range(quern_field_type type, int64_t *out_least, int64_t *out_greatest);

/* Compares the type's fields with `fields`, an array of field_count fields, by name, type, offset and count. Returns
 * the index of the first difference, or field_count if there is none. */
uint32_t quern__type_different_field(const quern__type *type, const quern_field *fields);

/* Checks a type that is registered again under a known name. Fails with LAYOUT_MISMATCH unless size, alignment,
 * hooks, and the names, types, offsets and counts of fields are equal. `what`: as in quern__type_init. */
quern_result quern__type_check_same_layout(const quern__type *known, const quern__type *type,
                                           const char *what);

bool quern__type_same_layout(const quern__type *a, const quern__type *b);

/* Gives the type a copy of a default value. Errors: OUT_OF_MEMORY. */
quern_result quern__type_set_default(quern__type *type, const quern_allocator *allocator,
                                     const void *value);

/* Constructs `count` consecutive values in uninitialised memory: copies of the default value, or values of the hook, or
 * zero bytes. */
void quern__type_construct(const quern__type *type, void *values, uint32_t count);

/* Copies `count` consecutive values to uninitialised memory. */
void quern__type_copy(const quern__type *type, void *targets, const void *sources, uint32_t count);

/* Stores `count` consecutive values of a caller in uninitialised memory. Copies them if the type has a copy hook;
 * otherwise the caller gives them away, and they are moved. */
void quern__type_accept(const quern__type *type, void *targets, const void *sources, uint32_t count);

/* Moves `count` consecutive values to uninitialised memory. The sources become uninitialised. */
void quern__type_move(const quern__type *type, void *targets, void *sources, uint32_t count);

/* Destroys `count` consecutive values. Their memory becomes uninitialised. */
void quern__type_destroy(const quern__type *type, void *values, uint32_t count);

/* Continues a hash with a value: with its described fields, or with all bytes if none is described. Entity handles in
 * described fields are hashed as quern__entity_to_relative. */
uint64_t quern__type_hash(const quern__type *type, uint64_t hash, const void *value,
                          uint32_t first_handle_high);

/* Returns whether two values are equal in their described fields, or in all bytes if no field is described. */
bool quern__type_same_value(const quern__type *type, const void *a, const void *b);

/* Returns whether a described field overlaps these bytes of a value. */
bool quern__type_has_field_in(const quern__type *type, uint32_t offset_bytes, uint32_t size_bytes);

typedef quern_entity quern__remap_function(void *argument, quern_entity entity);

/* Calls `remap` for each handle in described fields and ignores the results. */
void quern__type_visit_entities(const quern__type *type, const void *value, quern__remap_function *remap,
                                void *argument);

/* Returns a provisional handle from the described fields of `count` values, or the null handle if there is none. */
quern_entity quern__type_find_provisional(const quern__type *type, const void *values, uint32_t count);

/* Checks values for calls that change a world immediately. Fails with PROVISIONAL_ENTITY if a described field of one
 * of `count` values has a provisional handle: no later step would replace it. `commands`: the deferred call that
 * replaces provisional handles, for the message. */
quern_result quern__type_check_provisional(const quern__type *type, const void *values, uint32_t count,
                                           const char *commands);

/* Replaces each handle in described fields by the result of `remap`. */
void quern__type_remap(const quern__type *type, void *value, quern__remap_function *remap, void *argument);

#endif
