/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SINK_INTERNAL_H
#define QUERN_CORE_BASE_SINK_INTERNAL_H

/* Writing to a sink without checking each write. The writer records the first failed write and skips all later ones. */

#include "core/base/base_internal.h"

#include <quern/sink.h>

typedef struct quern__sink_writer {
    quern_sink sink;
    bool has_failed;
    int error; /* errno of the failed write; 0 if the sink has set none */
} quern__sink_writer;

/* Checks the sink that was passed to a public function. Errors: NULL_ARGUMENT. */
static inline quern_result quern__check_sink(quern_sink sink, const char *function)
{
    return sink.write != NULL
               ? QUERN_OK
               : quern__fail(
                     QUERN_ERROR_NULL_ARGUMENT,
                     "%s: the sink has no function to write: 'write', or the file or buffer that it "
                     "was made from, is NULL",
                     function);
}

/* Passes bytes to the sink, unless an earlier write has failed. A count of 0 flushes the sink. */
void quern__sink_write(quern__sink_writer *writer, const void *bytes, size_t count);

/* Reports a failed write. what: the written text or file, for the message. Errors: IO. */
quern_result quern__sink_check(const quern__sink_writer *writer, const char *what);

#endif
