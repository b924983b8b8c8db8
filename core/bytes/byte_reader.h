/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BYTES_BYTE_READER_H
#define QUERN_CORE_BYTES_BYTE_READER_H

/* Reads values in order from bytes in memory. The bytes may be truncated or forged; a reader never reads
 * past their end. Values need no alignment; numbers are in the byte order of the machine.
 *
 * Invariant: a reader that has failed is at its end. So a loop until the end terminates, and every later
 * read of at least one byte fails too. A caller can check has_failed once after several reads. */

#include "core/base/base_internal.h"

typedef struct quern__byte_reader {
    const char *at, *end;
    bool has_failed;
} quern__byte_reader;

/* bytes may be NULL if count is 0. */
static inline quern__byte_reader quern__byte_reader_open(const void *bytes, size_t count)
{
    const char *at = bytes != NULL ? bytes : "";
    return (quern__byte_reader){.at = at, .end = at + count};
}

static inline size_t quern__bytes_left(const quern__byte_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Whether all bytes were read and no read has failed. */
static inline bool quern__is_fully_read(const quern__byte_reader *reader)
{
    return !reader->has_failed && reader->at == reader->end;
}

static inline void quern__fail_read(quern__byte_reader *reader)
{
    reader->has_failed = true;
    reader->at = reader->end;
}

/* Returns the next `count` bytes in place, without a copy. Returns NULL and fails if fewer are left. */
static inline const char *quern__read_in_place(quern__byte_reader *reader, size_t count)
{
    const char *bytes = reader->at;
    if (QUERN__UNLIKELY(count > quern__bytes_left(reader))) {
        quern__fail_read(reader);
        return NULL;
    }
    reader->at += count;
    return bytes;
}

/* Returns the next `count` items in place. Returns NULL and fails if fewer are left. The product count
 * * item_bytes may exceed SIZE_MAX; then the reader fails. */
static inline const char *quern__read_items(quern__byte_reader *reader, uint64_t count, size_t item_bytes)
{
    if (item_bytes > 0 && count > quern__bytes_left(reader) / item_bytes) {
        quern__fail_read(reader);
        return NULL;
    }
    return quern__read_in_place(reader, (size_t)count * item_bytes);
}

/* Copies the next `count` bytes to `out`. Fails if fewer are left, and then fills `out` with zeros. */
static inline void quern__read(quern__byte_reader *reader, void *out, size_t count)
{
    const char *bytes = quern__read_in_place(reader, count);
    if (count == 0) return;
    if (bytes != NULL)
        memcpy(out, bytes, count);
    else
        memset(out, 0, count);
}

static inline uint32_t quern__read_u32(quern__byte_reader *reader)
{
    uint32_t value;
    quern__read(reader, &value, sizeof value);
    return value;
}

static inline uint64_t quern__read_u64(quern__byte_reader *reader)
{
    uint64_t value;
    quern__read(reader, &value, sizeof value);
    return value;
}

/* Returns the number at `index` in an array that was read in place. */
static inline uint32_t quern__load_u32(const char *array, uint64_t index)
{
    uint32_t value;
    memcpy(&value, array + index * sizeof value, sizeof value);
    return value;
}

static inline uint64_t quern__load_u64(const char *array, uint64_t index)
{
    uint64_t value;
    memcpy(&value, array + index * sizeof value, sizeof value);
    return value;
}

#endif
