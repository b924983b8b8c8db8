/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_SINK_INTERNAL_H
#define QUERN_CORE_BASE_SINK_INTERNAL_H

/* Writing to a sink without checking each write: the first refusal is kept, and the sink gets nothing after it. */

#include "core/base/base_internal.h"

#include <quern/sink.h>

typedef struct quern__sink_writer {
    quern_sink sink;
    bool has_failed;
    int error; /* errno of the refused write; 0: the sink set none */
} quern__sink_writer;

/* For the start of a public function that writes to a sink. */
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

/* Passes bytes to the sink, unless it has refused some before. A count of 0 flushes the sink. */
void quern__sink_write(quern__sink_writer *writer, const void *bytes, size_t count);

/* Errors: FILE if the sink has refused a write; `what` names what was written. */
quern_result quern__sink_check(const quern__sink_writer *writer, const char *what);

#endif
