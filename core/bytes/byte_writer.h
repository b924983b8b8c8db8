/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BYTES_BYTE_WRITER_H
#define QUERN_CORE_BYTES_BYTE_WRITER_H

/* Appends values to bytes in memory, without padding; numbers are in the byte order of the machine. A
 * writer is of one of three kinds:
 *
 *   growing    {.allocator = allocator}: memory grows by doubling; quern__byte_writer_release() frees it
 *   fixed      {.bytes = memory, .capacity = bytes}: memory of the caller, which never moves
 *   measuring  {.capacity = SIZE_MAX}: counts the bytes and stores none
 *
 * Invariant: a writer that has failed, because memory or capacity is exhausted, is full. So every later
 * write of at least one byte fails too. A caller can check has_failed once after several writes. */

#include "core/base/base_internal.h"

typedef struct quern__byte_writer {
    const quern_allocator *allocator; /* NULL: the writer is fixed or measuring */
    char *bytes;
    size_t count, capacity;
    bool has_failed;
} quern__byte_writer;

/* Frees the memory of a growing writer, which is empty afterwards. */
void quern__byte_writer_release(quern__byte_writer *writer);

/* Removes all bytes, clears has_failed and keeps the memory. */
static inline void quern__byte_writer_clear(quern__byte_writer *writer)
{
    writer->count = 0;
    writer->has_failed = false;
}

/* Makes room for `count` more bytes. Returns false and fails if there is none. */
QUERN__SLOW_PATH bool quern__byte_writer_grow(quern__byte_writer *writer, size_t count);

/* Appends `count` uninitialised bytes and returns their address. Returns NULL if the writer fails or
 * measures. */
static inline char *quern__write_room(quern__byte_writer *writer, size_t count)
{
    if (QUERN__UNLIKELY(count > writer->capacity - writer->count) &&
        !quern__byte_writer_grow(writer, count))
        return NULL;
    char *room = writer->bytes != NULL ? writer->bytes + writer->count : NULL;
    writer->count += count;
    return room;
}

static inline void quern__write(quern__byte_writer *writer, const void *bytes, size_t count)
{
    char *room = quern__write_room(writer, count);
    if (room != NULL && count > 0) memcpy(room, bytes, count);
}

static inline void quern__write_u32(quern__byte_writer *writer, uint32_t value)
{
    quern__write(writer, &value, sizeof value);
}

static inline void quern__write_u64(quern__byte_writer *writer, uint64_t value)
{
    quern__write(writer, &value, sizeof value);
}

/* Overwrites `count` written bytes, from offset `at` on. Does nothing if the writer has failed or
 * measures. */
static inline void quern__write_back(const quern__byte_writer *writer, size_t at, const void *bytes,
                                     size_t count)
{
    if (writer->bytes == NULL || writer->has_failed) return;
    assert(at <= writer->count && count <= writer->count - at);
    memcpy(writer->bytes + at, bytes, count);
}

#endif
