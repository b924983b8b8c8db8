/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_RESEAL_H
#define QUERN_TESTS_RESEAL_H

/* Corrects the checksums of a changed archive, so that the checks after them are reached. Stops where
 * the bytes are no archive. */

#include "core/archive/archive_internal.h"

static inline void reseal(char *bytes, size_t size)
{
    quern__archive_head head;
    if (size < sizeof head) return;
    memcpy(&head, bytes, sizeof head);
    head.checksum = quern__checksum(0, &head, offsetof(quern__archive_head, checksum));
    memcpy(bytes, &head, sizeof head);
    quern__archive_block_head block;
    for (size_t at = sizeof head; size - at >= sizeof block; at += block.stored_bytes) {
        memcpy(&block, bytes + at, sizeof block);
        char *stored = bytes + at + sizeof block;
        if (block.stored_bytes > size - at - sizeof block) return;
        block.checksum = quern__checksum(0, &block, offsetof(quern__archive_block_head, checksum));
        block.checksum = quern__checksum(block.checksum, stored, block.stored_bytes);
        memcpy(bytes + at, &block, sizeof block);
        at += sizeof block;
    }
}

#endif
