/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/bytes/byte_writer.h"

enum { LEAST_BYTES = 1024, WRITER_ALIGNMENT_BYTES = 64 };

void quern__byte_writer_release(quern__byte_writer *writer)
{
    quern__release(writer->allocator, writer->bytes, writer->capacity, WRITER_ALIGNMENT_BYTES);
    writer->bytes = NULL;
    writer->count = writer->capacity = 0;
}

static bool grow_to(quern__byte_writer *writer, size_t wanted)
{
    size_t capacity = writer->capacity > 0 ? 2 * writer->capacity : LEAST_BYTES;
    while (capacity < wanted)
        capacity *= 2;
    char *bytes = quern__allocate(writer->allocator, capacity, WRITER_ALIGNMENT_BYTES);
    if (bytes == NULL) return false;
    if (writer->count > 0) memcpy(bytes, writer->bytes, writer->count);
    quern__release(writer->allocator, writer->bytes, writer->capacity, WRITER_ALIGNMENT_BYTES);
    writer->bytes = bytes;
    writer->capacity = capacity;
    return true;
}

bool quern__byte_writer_grow(quern__byte_writer *writer, size_t count)
{
    const bool may_grow = writer->allocator != NULL && !writer->has_failed &&
                          count <= SIZE_MAX / 4 - writer->count; /* doubling does not overflow */
    if (may_grow && grow_to(writer, writer->count + count)) return true;
    writer->has_failed = true;
    writer->count = writer->capacity;
    return false;
}
