/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/replay/bytes.h"

#include "core/base/hash.h"

#include <inttypes.h>

enum { LEAST_BYTES = 1024, STEP_BYTES = 64 * 1024, REPLAY_ALIGNMENT_BYTES = 64 };

/* ----------------------------------------------------------------------------------------- writing */

void quern__bytes_release(quern__bytes *bytes)
{
    quern__release(bytes->allocator, bytes->items, bytes->capacity, REPLAY_ALIGNMENT_BYTES);
    bytes->items = NULL;
    bytes->count = bytes->capacity = 0;
}

static bool grow(quern__bytes *bytes, size_t wanted)
{
    size_t capacity = bytes->capacity > 0 ? 2 * bytes->capacity : LEAST_BYTES;
    while (capacity < wanted)
        capacity *= 2;
    char *items = quern__allocate(bytes->allocator, capacity, REPLAY_ALIGNMENT_BYTES);
    if (items == NULL) return false;
    if (bytes->count > 0) memcpy(items, bytes->items, bytes->count);
    quern__release(bytes->allocator, bytes->items, bytes->capacity, REPLAY_ALIGNMENT_BYTES);
    bytes->items = items;
    bytes->capacity = capacity;
    return true;
}

void *quern__bytes_append(quern__bytes *bytes, size_t count)
{
    if (bytes->has_failed || count > SIZE_MAX / 4 - bytes->count ||
        (bytes->count + count > bytes->capacity && !grow(bytes, bytes->count + count))) {
        bytes->has_failed = true;
        return NULL;
    }
    void *at = bytes->items + bytes->count;
    bytes->count += count;
    return at;
}

void quern__bytes_put(quern__bytes *bytes, const void *from, size_t count)
{
    void *at = quern__bytes_append(bytes, count);
    if (at != NULL && count > 0) memcpy(at, from, count);
}

void quern__bytes_put_name(quern__bytes *bytes, const char *name)
{
    const size_t count = strlen(name);
    quern__bytes_put_u32(bytes, (uint32_t)count);
    quern__bytes_put(bytes, name, count);
}

/* ----------------------------------------------------------------------------------------- reading */

void quern__cursor_name(quern__cursor *cursor, char *out_name)
{
    const uint32_t count = quern__cursor_u32(cursor);
    const char *text = count <= QUERN_MAX_NAME_BYTES ? quern__cursor_take(cursor, count, 1) : NULL;
    out_name[0] = '\0';
    if (text == NULL || memchr(text, '\0', count) != NULL) {
        cursor->has_failed = true;
        return;
    }
    memcpy(out_name, text, count);
    out_name[count] = '\0';
}

/* ------------------------------------------------------------------------------------------ blocks */

typedef struct block_head {
    uint32_t kind, bytes;
    uint64_t checksum;
} block_head;
_Static_assert(sizeof(block_head) == QUERN__REPLAY_BLOCK_BYTES, "as it is written");

static uint64_t checksum_of(const block_head *head, uint64_t number, const void *payload)
{
    uint64_t hash = quern__hash_word(number, (uint64_t)head->kind << 32 | head->bytes);
    return quern__hash_bytes(hash, payload, head->bytes);
}

static bool write(quern_sink sink, const void *bytes, size_t count)
{
    return count == 0 || sink.write(sink.user_data, bytes, count);
}

bool quern__replay_write_head(quern_sink sink)
{
    const uint32_t version[2] = {QUERN__REPLAY_VERSION, 0};
    return write(sink, QUERN__REPLAY_MAGIC, 8) && write(sink, version, sizeof version);
}

bool quern__replay_write_block(quern_sink sink, quern__replay_kind kind, uint64_t number,
                               const quern__bytes *payload)
{
    block_head head = {.kind = kind, .bytes = (uint32_t)payload->count};
    head.checksum = checksum_of(&head, number, payload->items);
    return write(sink, &head, sizeof head) && write(sink, payload->items, payload->count);
}

static quern_result fail_cut_off(const quern__reader *reader, uint64_t number)
{
    if (reader->error != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording could not be read on from byte %" PRIu64 ", in block %" PRIu64
                           ": %s",
                           reader->offset_bytes, number, strerror(reader->error));
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the recording is cut off at byte %" PRIu64 ", in block %" PRIu64,
                       reader->offset_bytes, number);
}

quern_result quern__replay_read_head(quern__reader *reader)
{
    char magic[8];
    uint32_t version[2];
    if (!quern__reader_read(reader, magic, sizeof magic) ||
        !quern__reader_read(reader, version, sizeof version))
        return fail_cut_off(reader, 0);
    if (memcmp(magic, QUERN__REPLAY_MAGIC, sizeof magic) != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "this is no recording: it does not begin with "
                                                    "'" QUERN__REPLAY_MAGIC "'");
    if (version[0] != QUERN__REPLAY_VERSION || version[1] != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording has version %" PRIu32 "; this library reads version %d",
                           version[0], QUERN__REPLAY_VERSION);
    return QUERN_OK;
}

static quern_result read_payload(quern__reader *reader, uint64_t number, uint32_t count,
                                 quern__bytes *payload)
{
    payload->count = 0;
    payload->has_failed = false;
    while (payload->count < count) {
        const size_t left = count - payload->count, room = payload->capacity - payload->count;
        size_t step = room > STEP_BYTES ? room : STEP_BYTES;
        if (step > left) step = left;
        void *at = quern__bytes_append(payload, step);
        if (at == NULL)
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for block %" PRIu64, number);
        if (!quern__reader_read(reader, at, step)) return fail_cut_off(reader, number);
    }
    return QUERN_OK;
}

quern_result quern__replay_read_block(quern__reader *reader, uint64_t number, quern__bytes *payload,
                                      quern__replay_kind *out_kind)
{
    block_head head;
    const uint64_t start = reader->offset_bytes;
    if (!quern__reader_read(reader, &head, sizeof head)) return fail_cut_off(reader, number);
    quern_result result = read_payload(reader, number, head.bytes, payload);
    if (result != QUERN_OK) return result;
    if (checksum_of(&head, number, payload->items) != head.checksum)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording is damaged: block %" PRIu64 ", from byte %" PRIu64
                           ", does not have its checksum",
                           number, start);
    *out_kind = head.kind;
    return QUERN_OK;
}

quern_result quern__replay_fail_made_up(uint64_t number, const char *what)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "block %" PRIu64 " of the recording makes no sense: %s",
                       number, what);
}
