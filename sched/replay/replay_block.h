/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_REPLAY_BLOCK_H
#define QUERN_SCHED_REPLAY_REPLAY_BLOCK_H

/* Blocks of a recording, written to a sink and read from a source. */

#include "core/base/sink_internal.h"
#include "core/base/source_internal.h"
#include "sched/replay/replay_format.h"

/* Writes the head of a recording, before the first block. */
void quern__replay_write_head(quern__sink_writer *sink);

void quern__replay_write_block(quern__sink_writer *sink, quern__replay_kind kind, uint64_t number,
                               const quern__byte_writer *payload);

/* Reads the head. Fails with BAD_ARCHIVE if the source is not a recording, or one of another version. */
quern_result quern__replay_read_head(quern__source_reader *reader);

/* Reads the next block, of any kind, into the payload. A forged length allocates at most twice as many bytes as the
 * source has. Fails with BAD_ARCHIVE or OUT_OF_MEMORY. */
quern_result quern__replay_read_block(quern__source_reader *reader, uint64_t number,
                                      quern__byte_writer *payload, quern__replay_kind *out_kind);

/* Fails with BAD_ARCHIVE: a block has a valid checksum, but contents that no recorder writes. */
quern_result quern__replay_fail_invalid(uint64_t number, const char *what);

static inline quern__byte_reader quern__replay_payload(const quern__byte_writer *payload)
{
    return quern__byte_reader_open(payload->bytes, payload->count);
}

#endif
