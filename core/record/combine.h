/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_COMBINE_H
#define QUERN_CORE_RECORD_COMBINE_H

/* Functions that combine a value with an accumulated one. Built-in: sum, minimum and maximum, for types with
 * all bytes described as numbers. Others are registered by the program. */

#include "core/base/array.h"
#include "core/storage/type_internal.h"

#include <quern/commands.h>

typedef struct quern__combine {
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_combine_function *function;
    void *user_data;
} quern__combine;

typedef struct quern__combines {
    QUERN__ARRAY(quern__combine) list;
} quern__combines;

/* A value and the accumulated value to combine it with. Both are aligned for their type. */
typedef struct quern__pair {
    char *value;
    const char *accumulated;
} quern__pair;

/* Combines consecutive numbers of one type, for each pair. The numbers start offset_bytes after the beginning
 * of both values. A call handles many pairs, so that memory accesses of different pairs overlap. */
typedef void quern__number_combiner(const quern__pair *pairs, uint32_t pair_count, uint32_t offset_bytes,
                                    uint32_t number_count);

/* How values of one type are combined: by `numbers` if it is not NULL, otherwise by `function` if it is not
 * NULL, otherwise by `by_number`, field by field. */
typedef struct quern__combiner {
    quern__number_combiner *numbers; /* the value is an array of number_count numbers of one type */
    uint32_t number_count;
    /* the value has fields of several types; indexed by quern_field_type */
    quern__number_combiner *const *by_number;
    quern_combine_function *function; /* function registered by the program */
    void *user_data;
} quern__combiner;

/* Registers a function of the program. Errors: INVALID_ARGUMENT, NULL_ARGUMENT, DUPLICATE_NAME, LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__combines_register(quern__combines *combines, const quern_allocator *allocator,
                                      uint32_t world_tag, const quern_combine_def *def,
                                      quern_combine *out_combine);

/* Finds how `combine` combines values of the type. Errors: INVALID_ARGUMENT if the handle is invalid, or if the
 * type is not suitable for a built-in function. */
quern_result quern__combines_find(const quern__combines *combines, uint32_t world_tag,
                                  quern_combine combine, const quern__type *type,
                                  quern__combiner *out_combiner);

/* Combines all pairs in order. Several pairs may have the same value. */
void quern__combine_pairs(const quern__combiner *combiner, const quern__type *type,
                          const quern__pair *pairs, uint32_t count);

#endif
