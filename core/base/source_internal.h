/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SOURCE_INTERNAL_H
#define QUERN_CORE_BASE_SOURCE_INTERNAL_H

/* Reading from a source in order. A source in memory lends its bytes without a copy. */

#include "core/base/base_internal.h"

#include <quern/source.h>

typedef struct quern__source_reader {
    quern_source source;
    uint64_t offset_bytes; /* of what comes next, from where reading began */
    int error;             /* errno when the source gave less than was wanted; 0: it set none */
} quern__source_reader;

/* For the start of a public function that reads from a source. */
static inline quern_result quern__check_source(quern_source source, const char *function)
{
    return source.read != NULL || source.memory != NULL
               ? QUERN_OK
               : quern__fail(
                     QUERN_ERROR_NULL_ARGUMENT,
                     "%s: the source has no function to read and no memory: the file or memory that "
                     "it was made from is NULL",
                     function);
}

static inline void quern__source_reader_open(quern__source_reader *reader, quern_source source)
{
    *reader = (quern__source_reader){.source = source};
}

/* Exactly so many bytes: false when there are fewer. */
bool quern__source_read(quern__source_reader *reader, void *bytes, size_t count);

/* The same without copying, from a source in memory; NULL when there are fewer. */
const void *quern__source_lend(quern__source_reader *reader, size_t count);

#endif
