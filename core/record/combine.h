/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_COMBINE_H
#define QUERN_CORE_RECORD_COMBINE_H

/* Ways to combine a value with one that was accumulated: those that are ready-made, for values whose
 * bytes are all described as numbers, and functions that the program has registered. */

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

/* A value, and one that it is combined with. Both are aligned as their type asks. */
typedef struct quern__pair {
    char *value;
    const char *accumulated;
} quern__pair;

/* Combines, pair by pair, number_count numbers of one type that lie next to each other, offset_bytes from
 * the beginning of both. Many pairs go in one call, so that none of them has to wait for a call. */
typedef void quern__number_combiner(const quern__pair *pairs, uint32_t pair_count, uint32_t offset_bytes,
                                    uint32_t number_count);

/* How values of one type are combined. */
typedef struct quern__combiner {
    quern__number_combiner *numbers; /* the value is so many numbers of one type; or NULL */
    uint32_t number_count;
    quern__number_combiner *const *by_number; /* it has several types: by quern_field_type */
    quern_combine_function *function;         /* the program's; or NULL */
    void *user_data;
} quern__combiner;

/* Errors: INVALID_ARGUMENT, NULL_ARGUMENT, DUPLICATE_NAME, LIMIT, OUT_OF_MEMORY. */
quern_result quern__combines_register(quern__combines *combines, const quern_allocator *allocator,
                                      uint32_t world_tag, const quern_combine_def *def,
                                      quern_combine *out_combine);

/* How values of the type are combined. Errors: INVALID_ARGUMENT. */
quern_result quern__combines_find(const quern__combines *combines, uint32_t world_tag,
                                  quern_combine combine, const quern__type *type,
                                  quern__combiner *out_combiner);

/* In the order of the pairs, several of which may have the same value. */
void quern__combine_pairs(const quern__combiner *combiner, const quern__type *type,
                          const quern__pair *pairs, uint32_t count);

#endif
