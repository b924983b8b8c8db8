/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/bytes/byte_writer.h"

#include "core/base/array.h"

enum { LEAST_BYTES = 1024 };

void quern__byte_writer_release(quern__byte_writer *writer)
{
    quern__release(writer->allocator, writer->bytes, writer->capacity, QUERN__ARRAY_ALIGNMENT_BYTES);
    writer->bytes = NULL;
    writer->count = writer->capacity = 0;
}

bool quern__byte_writer_grow(quern__byte_writer *writer, size_t count)
{
    if (writer->allocator != NULL && !writer->has_failed &&
        count <= SIZE_MAX / 4 - writer->count && /* doubling does not overflow */
        quern__bytes_grow(writer->allocator, &writer->bytes, &writer->capacity, writer->count,
                          writer->count + count, LEAST_BYTES))
        return true;
    writer->has_failed = true;
    writer->count = writer->capacity;
    return false;
}
