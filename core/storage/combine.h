/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COMBINE_H
#define QUERN_CORE_STORAGE_COMBINE_H

/* Ways to combine a value with one that was accumulated: those that are ready-made, for values whose
 * bytes are all described as numbers, and functions that the program has registered. */

#include "core/base/array.h"
#include "core/storage/type.h"

#include <quern/commands.h>

typedef struct quern__combine {
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_combine_function *function;
    void *user_data;
} quern__combine;

typedef struct quern__combines {
    QUERN__ARRAY(quern__combine) list;
} quern__combines;

/* Combines numbers of one type that lie next to each other. Both are aligned as their type asks. */
typedef void quern__number_combiner(void *value, const void *accumulated, uint32_t count);

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

/* The numbers of a value, field by field. */
void quern__combine_numbers(const quern__combiner *combiner, const quern__type *type, void *value,
                            const void *accumulated);

static inline void quern__combine_values(const quern__combiner *combiner, const quern__type *type,
                                         void *value, const void *accumulated)
{
    if (QUERN__LIKELY(combiner->numbers != NULL))
        combiner->numbers(value, accumulated, combiner->number_count);
    else if (combiner->function != NULL)
        combiner->function(value, accumulated, combiner->user_data);
    else
        quern__combine_numbers(combiner, type, value, accumulated);
}

#endif
