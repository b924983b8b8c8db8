/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_CONVERSION_H
#define QUERN_CORE_STORAGE_CONVERSION_H

/* Conversion of values from one layout to another, field by field: those of an archive, and those of a type that is
 * redefined. */

#include "core/storage/type_internal.h"

#include <quern/redefine.h>

/* How values are converted. */
typedef enum quern__conversion_kind {
    QUERN__CONVERT_BYTES, /* values are copied as bytes: the layouts are equal, or one side has no described fields */
    QUERN__CONVERT_FIELDS, /* values are constructed, then converted field by field */
    QUERN__CONVERT_MIGRATION
} quern__conversion_kind;

/* Two fields of the same name, or of a name and its new one, in the source and in the target. */
typedef struct quern__field_pair {
    uint32_t source, target; /* indices in the lists of fields */
} quern__field_pair;

/* Parts of messages. */
typedef struct quern__conversion_words {
    const char *before; /* when the source was the type: "when it was saved" */
    const char *now;    /* where the target is the type: "in this world" */
    const char *value;  /* kind of the values: "saved" */
} quern__conversion_words;

typedef struct quern__conversion {
    const quern__type *source, *target;
    const quern__conversion_words *words;
    const quern_field_rename *renames; /* fields with another name in the target; NULL: none */
    quern__conversion_kind kind;
    bool may_fail;                /* a number of some pair may not fit into the target's type */
    bool changes_elements;        /* the elements of some list have another type in the target */
    uint32_t dropped_field_count; /* number of fields of the source that the target lacks */
    uint32_t pair_count;
    quern__field_pair pairs[QUERN_MAX_FIELDS];
} quern__conversion;

/* Initialises the conversion from `source` to `target`. If one type has no described fields, both must have the same
 * size. Errors: LAYOUT_MISMATCH; the message names the field or the sizes. */
quern_result quern__conversion_init(quern__conversion *conversion, const quern__type *source,
                                    const quern__type *target, const quern__conversion_words *words,
                                    const quern_field_rename *renames);

/* Checks that all numbers in the values fit into the target. Errors: INVALID_ARGUMENT; the message names
 * the field. */
quern_result quern__conversion_check(const quern__conversion *conversion, const char *sources,
                                     uint32_t count);

/* Gives the lists in a value of the source the elements that the target has, so that converting the value can move them.
 * Errors, with a valid value: INVALID_ARGUMENT (a number does not fit), OUT_OF_MEMORY. */
quern_result quern__conversion_convert_lists(const quern__conversion *conversion, char *source);

/* The lists in sources are moved to targets, and left empty. So sources of a type with lists must be writable, and their
 * lists have elements of the target: quern__conversion_convert_lists. */

/* Converts values into uninitialised memory. Handles are copied unchanged. Preconditions: the kind is
 * BYTES or FIELDS, and quern__conversion_check has accepted the sources. */
void quern__convert(const quern__conversion *conversion, char *targets, const char *sources,
                    uint32_t count);

/* Remaps the handles that the converted values got from their sources. For kind MIGRATION, remaps all
 * handles in described fields of the target. */
void quern__conversion_remap(const quern__conversion *conversion, char *targets, uint32_t count,
                             quern__remap_function *remap, void *argument);

/* Remaps the handles in the lists that a field of one target got from its source. A target with more lists keeps the
 * others: their handles are of the world, not of the source. */
void quern__conversion_visit_lists(const quern__conversion *conversion, const quern__field_pair *pair,
                                   char *target, quern__remap_function *remap, void *argument);

/* Writes the fields that both types have to one value of the target. Other bytes of the value are
 * unchanged. */
void quern__convert_fields(const quern__conversion *conversion, char *target, const char *source);

/* Copies the described fields of one value, except lists. Other bytes of the target are unchanged. */
void quern__copy_fields(const quern__type *type, char *target, const char *source);

/* The values of a type that gets another definition with another layout. */
typedef struct quern__type_change {
    quern__type old; /* the type before; `conversion.source` */
    const quern__type
        *type; /* the type of the world, which has the new definition already; `conversion.target` */
    uint32_t component_index; /* QUERN__NO_COMPONENT: a resource or an event */
    quern__conversion conversion;
    quern_migrate_function *migrate; /* of the kind MIGRATION */
    void *user_data;
    uint64_t value_count;     /* values that were checked */
    uint64_t shortened_count; /* texts in them that end earlier in the new layout */
} quern__type_change;

/* Checks `count` values before anything is changed, and counts them. Errors: INVALID_ARGUMENT (a number does not fit). */
quern_result quern__type_change_check(quern__type_change *change, const void *values, uint32_t count);

/* Turns values of the old definition, which become uninitialised memory, into values of the new one in uninitialised
 * memory. Precondition: quern__type_change_check has accepted them. */
void quern__type_change_values(const quern__type_change *change, void *targets, void *sources,
                               uint32_t count);

#endif
