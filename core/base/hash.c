/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/hash.h"

uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t word;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = quern__hash_word(hash, word);
    }
    if (count > 0) {
        word = (uint64_t)count << 56; /* distinguishes inputs that differ only in trailing zero bytes */
        memcpy(&word, at, count);
        hash = quern__hash_word(hash, word);
    }
    return hash;
}

uint64_t quern__hash_string(const char *string)
{
    return quern__hash_bytes(0, string, strlen(string));
}
