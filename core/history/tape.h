/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_TAPE_H
#define QUERN_CORE_HISTORY_TAPE_H

/* Small things of all kinds, one after the other in memory, and taken from there in the same order. What
 * puts them is called twice: first without memory, to learn how long the tape gets. */

#include "core/base/base_internal.h"

typedef struct quern__tape {
    char *bytes; /* NULL: only the length counts */
    size_t length_bytes;
} quern__tape;

static inline void quern__tape_put(quern__tape *tape, const void *bytes, size_t count)
{
    if (tape->bytes != NULL && count > 0) memcpy(tape->bytes + tape->length_bytes, bytes, count);
    tape->length_bytes += count;
}

static inline void quern__tape_put_word(quern__tape *tape, uint64_t word)
{
    quern__tape_put(tape, &word, sizeof word);
}

static inline void quern__tape_take(quern__tape *tape, void *bytes, size_t count)
{
    if (count > 0) memcpy(bytes, tape->bytes + tape->length_bytes, count);
    tape->length_bytes += count;
}

static inline uint64_t quern__tape_take_word(quern__tape *tape)
{
    uint64_t word;
    quern__tape_take(tape, &word, sizeof word);
    return word;
}

#endif
