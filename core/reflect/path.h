/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_PATH_H
#define QUERN_CORE_REFLECT_PATH_H

/* Where a path leads: a field, or an element of it. */

#include "core/base/base_internal.h"

#include <quern/reflect.h>

typedef struct quern__path {
    const quern_type_info *type;
    const quern_field *field;
    const char *text; /* as it was given */
    uint32_t first;   /* element */
    uint32_t count;   /* 1, or all of an array */
    bool is_array;    /* all of an array, to be written in brackets */
} quern__path;

/* Errors: INVALID_ARGUMENT, saying what there is. */
quern_result quern__path_find(const quern_type_info *type, const char *text, quern__path *out_path);

#endif
