/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/hash.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__

/* Makes each word from the bytes that a little-endian machine has at its place. */
uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count)
{
    const unsigned char *bytes = numbers;
    const size_t size = number_bytes * count;
    for (size_t start = 0; start < size; start += 8) {
        const size_t end = size - start < 8 ? size : start + 8;
        uint64_t word = end - start < 8 ? (uint64_t)(end - start) << 56 : 0;
        for (size_t i = start; i < end; i++) {
            const size_t number = i / number_bytes, byte = number_bytes - 1 - i % number_bytes;
            word |= (uint64_t)bytes[number * number_bytes + byte] << (i - start) * 8;
        }
        hash = quern__hash_word(hash, word);
    }
    return hash;
}

uint64_t quern__hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    return quern__hash_numbers(hash, bytes, 1, count);
}

#else

uint64_t quern__hash_numbers(uint64_t hash, const void *numbers, size_t number_bytes, size_t count)
{
    return quern__hash_bytes(hash, numbers, number_bytes * count);
}

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

#endif

uint64_t quern__hash_string(const char *string)
{
    return quern__hash_bytes(0, string, strlen(string));
}
