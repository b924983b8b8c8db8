/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_CONVERT_H
#define QUERN_CORE_ARCHIVE_CONVERT_H

/* From values of one layout to values of another, field by field. */

#include "core/storage/type_internal.h"

/* What becomes of values. */
typedef enum quern__conversion_kind {
    QUERN__CONVERT_BYTES,  /* the same layout: copied as bytes */
    QUERN__CONVERT_FIELDS, /* constructed, then field by field */
    QUERN__CONVERT_MIGRATION
} quern__conversion_kind;

/* A field that both have. */
typedef struct quern__field_pair {
    uint32_t source, target; /* in the lists of fields */
} quern__field_pair;

typedef struct quern__conversion {
    const quern__type *source, *target;
    quern__conversion_kind kind;
    bool may_fail;                /* some number may not fit */
    uint32_t dropped_field_count; /* of the source, which the target lacks */
    uint32_t pair_count;
    quern__field_pair pairs[QUERN_MAX_FIELDS];
} quern__conversion;

/* Errors: LAYOUT_MISMATCH, naming the field, or the size. Types without fields need the same size. */
quern_result quern__conversion_init(quern__conversion *conversion, const quern__type *source,
                                    const quern__type *target);

/* Whether each of these values fits. Errors: INVALID_ARGUMENT, naming the field. */
quern_result quern__conversion_check(const quern__conversion *conversion, const char *sources,
                                     uint32_t count);

/* Turns raw memory into values of the target, by conversions of kinds NOTHING and FIELDS. The sources have
 * been checked. Handles are copied. */
void quern__convert(const quern__conversion *conversion, char *targets, const char *sources,
                    uint32_t count);

/* Replaces the handles that values of the target got from sources; for BY_USER all that fields describe. */
void quern__conversion_remap(const quern__conversion *conversion, char *targets, uint32_t count,
                             quern__remap_function *remap, void *argument);

/* Writes the fields that source and target have in common to one value of the target; the rest of the value
 * stays. */
void quern__convert_fields(const quern__conversion *conversion, char *target, const char *source);

/* Copies the described fields of a value; what else the target has stays. */
void quern__copy_fields(const quern__type *type, char *target, const char *source);

#endif
