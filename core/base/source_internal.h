/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SOURCE_INTERNAL_H
#define QUERN_CORE_BASE_SOURCE_INTERNAL_H

/* Sequential reading from a source. The bytes of a source in memory can be read in place. */

#include "core/base/base_internal.h"

#include <quern/source.h>

typedef struct quern__source_reader {
    quern_source source;
    uint64_t offset_bytes; /* number of bytes read so far */
    int error;             /* errno of a failed read; 0 if the source has set none */
} quern__source_reader;

/* Checks the source that was passed to a public function. Errors: NULL_ARGUMENT. */
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

/* Reads exactly `count` bytes. Returns false if the source has fewer, or fails. */
bool quern__source_read(quern__source_reader *reader, void *bytes, size_t count);

/* Returns the address of the next `count` bytes and skips them, or returns NULL if there are fewer. The bytes stay
 * in the memory of the source. Precondition: the source is in memory. */
const void *quern__source_borrow(quern__source_reader *reader, size_t count);

#endif
