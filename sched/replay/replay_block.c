/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/replay/replay_block.h"

#include "core/base/hash.h"

#include <inttypes.h>

enum { STEP_BYTES = 64 * 1024 };

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

void quern__replay_write_head(quern__sink_writer *sink)
{
    const uint32_t version[2] = {QUERN__REPLAY_VERSION, 0};
    quern__sink_write(sink, QUERN__REPLAY_MAGIC, 8);
    quern__sink_write(sink, version, sizeof version);
}

void quern__replay_write_block(quern__sink_writer *sink, quern__replay_kind kind, uint64_t number,
                               const quern__byte_writer *payload)
{
    block_head head = {.kind = kind, .bytes = (uint32_t)payload->count};
    head.checksum = checksum_of(&head, number, payload->bytes);
    quern__sink_write(sink, &head, sizeof head);
    quern__sink_write(sink, payload->bytes, payload->count);
}

static quern_result fail_cut_off(const quern__source_reader *reader, uint64_t number)
{
    if (reader->error != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording could not be read after byte %" PRIu64 ", in block %" PRIu64
                           ": %s",
                           reader->offset_bytes, number, strerror(reader->error));
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the recording is cut off at byte %" PRIu64 ", in block %" PRIu64
                       ": use a complete copy",
                       reader->offset_bytes, number);
}

quern_result quern__replay_read_head(quern__source_reader *reader)
{
    char magic[8];
    uint32_t version[2];
    if (!quern__source_read(reader, magic, sizeof magic) ||
        !quern__source_read(reader, version, sizeof version))
        return fail_cut_off(reader, 0);
    if (memcmp(magic, QUERN__REPLAY_MAGIC, sizeof magic) != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "the source is not a recording: it does not begin with "
                                                    "'" QUERN__REPLAY_MAGIC "'");
    if (version[0] != QUERN__REPLAY_VERSION || version[1] != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording has version %" PRIu32 "; this library reads version %d",
                           version[0], QUERN__REPLAY_VERSION);
    return QUERN_OK;
}

static quern_result read_payload(quern__source_reader *reader, uint64_t number, uint32_t count,
                                 quern__byte_writer *payload)
{
    quern__byte_writer_clear(payload);
    while (payload->count < count) {
        const size_t left = count - payload->count, room = payload->capacity - payload->count;
        size_t step = room > STEP_BYTES ? room : STEP_BYTES;
        if (step > left) step = left;
        char *at = quern__write_room(payload, step);
        if (at == NULL)
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for block %" PRIu64, number);
        if (!quern__source_read(reader, at, step)) return fail_cut_off(reader, number);
    }
    return QUERN_OK;
}

quern_result quern__replay_read_block(quern__source_reader *reader, uint64_t number,
                                      quern__byte_writer *payload, quern__replay_kind *out_kind)
{
    block_head head;
    const uint64_t start = reader->offset_bytes;
    if (!quern__source_read(reader, &head, sizeof head)) return fail_cut_off(reader, number);
    quern_result result = read_payload(reader, number, head.bytes, payload);
    if (result != QUERN_OK) return result;
    if (checksum_of(&head, number, payload->bytes) != head.checksum)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the recording is damaged: block %" PRIu64 ", from byte %" PRIu64
                           ", has a wrong checksum",
                           number, start);
    *out_kind = head.kind;
    return QUERN_OK;
}

quern_result quern__replay_fail_invalid(uint64_t number, const char *what)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE, "block %" PRIu64 " of the recording is invalid: %s", number,
                       what);
}
