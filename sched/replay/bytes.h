/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_BYTES_H
#define QUERN_SCHED_REPLAY_BYTES_H

/* Bytes that grow while they are written, bytes that are read with care, and blocks of them on their way to
 * a sink and from a source. */

#include "core/base/source_internal.h"
#include "sched/replay/replay_format.h"

#include <quern/sink.h>

/* ----------------------------------------------------------------------------------------- writing */

/* All zero but the allocator is empty. Without memory it has failed, and takes nothing more. */
typedef struct quern__bytes {
    const quern_allocator *allocator;
    char *items;
    size_t count, capacity;
    bool has_failed;
} quern__bytes;

void quern__bytes_release(quern__bytes *bytes);

/* Appends so many bytes and returns where they are to be written; NULL when it has failed. */
void *quern__bytes_append(quern__bytes *bytes, size_t count);

void quern__bytes_put(quern__bytes *bytes, const void *from, size_t count);
void quern__bytes_put_name(quern__bytes *bytes, const char *name);

static inline void quern__bytes_put_u32(quern__bytes *bytes, uint32_t value)
{
    quern__bytes_put(bytes, &value, sizeof value);
}

static inline void quern__bytes_put_u64(quern__bytes *bytes, uint64_t value)
{
    quern__bytes_put(bytes, &value, sizeof value);
}

/* Where something was reserved before. */
static inline void quern__bytes_set_u32(quern__bytes *bytes, size_t at, uint32_t value)
{
    if (!bytes->has_failed) memcpy(bytes->items + at, &value, sizeof value);
}

/* ----------------------------------------------------------------------------------------- reading */

/* What lies before the end. Who asks for more gets zeros, and it has failed from then on. */
typedef struct quern__cursor {
    const char *at, *end;
    bool has_failed;
} quern__cursor;

static inline size_t quern__cursor_left(const quern__cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* So many items of so many bytes each; NULL, and failed, when there are fewer. */
static inline const char *quern__cursor_take(quern__cursor *cursor, uint64_t count, size_t item_bytes)
{
    const char *at = cursor->at;
    if (cursor->has_failed || count > quern__cursor_left(cursor) / item_bytes) {
        cursor->has_failed = true;
        return NULL;
    }
    cursor->at += count * item_bytes;
    return at;
}

static inline uint32_t quern__get_u32(const char *at, uint64_t index)
{
    uint32_t value;
    memcpy(&value, at + index * sizeof value, sizeof value);
    return value;
}

static inline uint64_t quern__get_u64(const char *at, uint64_t index)
{
    uint64_t value;
    memcpy(&value, at + index * sizeof value, sizeof value);
    return value;
}

static inline uint32_t quern__cursor_u32(quern__cursor *cursor)
{
    const char *at = quern__cursor_take(cursor, 1, sizeof(uint32_t));
    return at != NULL ? quern__get_u32(at, 0) : 0;
}

static inline uint64_t quern__cursor_u64(quern__cursor *cursor)
{
    const char *at = quern__cursor_take(cursor, 1, sizeof(uint64_t));
    return at != NULL ? quern__get_u64(at, 0) : 0;
}

/* A name of at most QUERN_MAX_NAME_BYTES bytes; "" when it has failed. */
void quern__cursor_name(quern__cursor *cursor, char *out_name);

/* ------------------------------------------------------------------------------------------ blocks */

/* Writes what stands before the first block. False: the sink has refused. */
bool quern__replay_write_head(quern_sink sink);

bool quern__replay_write_block(quern_sink sink, quern__replay_kind kind, uint64_t number,
                               const quern__bytes *payload);

/* Errors: BAD_ARCHIVE (no recording, another version). */
quern_result quern__replay_read_head(quern__reader *reader);

/* Reads the next block, whatever it is. A length that is made up takes no more memory than twice what is
 * really there. Errors: BAD_ARCHIVE, OUT_OF_MEMORY. */
quern_result quern__replay_read_block(quern__reader *reader, uint64_t number, quern__bytes *payload,
                                      quern__replay_kind *out_kind);

/* The contents of a block that is in order are not what they should be. */
quern_result quern__replay_fail_made_up(uint64_t number, const char *what);

static inline quern__cursor quern__cursor_open(const quern__bytes *bytes)
{
    const char *at = bytes->count > 0 ? bytes->items : "";
    return (quern__cursor){.at = at, .end = at + bytes->count};
}

#endif
