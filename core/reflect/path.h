/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_PATH_H
#define QUERN_CORE_REFLECT_PATH_H

/* Paths of fields: "velocity.x", "points[2]". They name a field of a type, or one element of an array. */

#include "core/base/base_internal.h"

#include <quern/reflect.h>

typedef struct quern__path {
    const quern_type_info *type;
    const quern_field *field;
    const char *text; /* the path, for messages */
    uint32_t first;   /* index of the first element */
    uint32_t count;   /* number of elements: 1, or all elements of an array */
    bool is_array;    /* whether the path names a whole array; texts of its value are in brackets */
} quern__path;

/* Finds the field that a path names. Errors: INVALID_ARGUMENT, with a message that names the valid fields or
 * elements. */
quern_result quern__path_find(const quern_type_info *type, const char *text, quern__path *out_path);

#endif
