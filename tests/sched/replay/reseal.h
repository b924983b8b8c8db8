/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_REPLAY_RESEAL_H
#define QUERN_TESTS_REPLAY_RESEAL_H

/* Finds blocks of a recording and corrects the checksum of a changed block, so that the reader goes on to its
 * contents. */

#include "core/base/containers.h"
#include "sched/replay/replay_internal.h"

typedef struct replay_block {
    uint32_t kind, bytes;
    uint64_t checksum;
} replay_block;

/* Bytes after the first one that is not part of a valid recording stay unchanged. */
static inline void replay_reseal(unsigned char *bytes, size_t size)
{
    size_t at = QUERN__REPLAY_HEAD_BYTES;
    for (uint64_t number = 0; size >= at && size - at >= sizeof(replay_block); number++) {
        replay_block block;
        memcpy(&block, bytes + at, sizeof block);
        at += sizeof block;
        if (block.bytes > size - at) return;
        block.checksum = quern__hash_bytes(
            quern__hash_word(number, (uint64_t)block.kind << 32 | block.bytes), bytes + at, block.bytes);
        memcpy(bytes + at - sizeof block, &block, sizeof block);
        at += block.bytes;
    }
}

/* Returns the offset of the count-th block of a kind, or `size` if there is none. */
static inline size_t replay_find_block(const void *bytes, size_t size, uint32_t kind, uint32_t count)
{
    size_t at = QUERN__REPLAY_HEAD_BYTES;
    while (size >= at && size - at >= sizeof(replay_block)) {
        replay_block block;
        memcpy(&block, (const char *)bytes + at, sizeof block);
        if (block.kind == kind && --count == 0) return at;
        at += sizeof block + block.bytes;
    }
    return size;
}

#endif
