/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_CONVERT_H
#define QUERN_CORE_ARCHIVE_CONVERT_H

/* Conversion of values from one layout to another, field by field. */

#include "core/storage/type_internal.h"

/* How values are converted. */
typedef enum quern__conversion_kind {
    QUERN__CONVERT_BYTES, /* values are copied as bytes: the layouts are equal, or one side has no described fields */
    QUERN__CONVERT_FIELDS, /* values are constructed, then converted field by field */
    QUERN__CONVERT_MIGRATION
} quern__conversion_kind;

/* Two fields of the same name, in the source and in the target. */
typedef struct quern__field_pair {
    uint32_t source, target; /* indices in the lists of fields */
} quern__field_pair;

typedef struct quern__conversion {
    const quern__type *source, *target;
    quern__conversion_kind kind;
    bool may_fail;                /* a number of some pair may not fit into the target's type */
    uint32_t dropped_field_count; /* number of fields of the source that the target lacks */
    uint32_t pair_count;
    quern__field_pair pairs[QUERN_MAX_FIELDS];
} quern__conversion;

/* Initialises the conversion from `source` to `target`. If one type has no described fields, both must
 * have the same size. Errors: LAYOUT_MISMATCH; the message names the field or the sizes. */
quern_result quern__conversion_init(quern__conversion *conversion, const quern__type *source,
                                    const quern__type *target);

/* Checks that all numbers in the values fit into the target. Errors: INVALID_ARGUMENT; the message names
 * the field. */
quern_result quern__conversion_check(const quern__conversion *conversion, const char *sources,
                                     uint32_t count);

/* Converts values into uninitialised memory. Handles are copied unchanged. Preconditions: the kind is
 * BYTES or FIELDS, and quern__conversion_check has accepted the sources. */
void quern__convert(const quern__conversion *conversion, char *targets, const char *sources,
                    uint32_t count);

/* Remaps the handles that the converted values got from their sources. For kind MIGRATION, remaps all
 * handles in described fields of the target. */
void quern__conversion_remap(const quern__conversion *conversion, char *targets, uint32_t count,
                             quern__remap_function *remap, void *argument);

/* Writes the fields that both types have to one value of the target. Other bytes of the value are
 * unchanged. */
void quern__convert_fields(const quern__conversion *conversion, char *target, const char *source);

/* Copies the described fields of one value. Other bytes of the target are unchanged. */
void quern__copy_fields(const quern__type *type, char *target, const char *source);

#endif
