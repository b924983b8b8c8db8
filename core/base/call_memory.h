/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_CALL_MEMORY_H
#define QUERN_CORE_BASE_CALL_MEMORY_H

/* An allocator for the temporary memory of a call that is repeated often. It hands out parts of one block, one after
 * another, and begins again when all of them were released. What does not fit into the block is allocated by the
 * allocator behind it, so a large call costs as much as without a block, and leaves nothing behind. Builds with the
 * address sanitizer allocate everything there, since the sanitizer does not check the parts of a block. */

#include "core/base/base_internal.h"

typedef struct quern__call_memory {
    quern_allocator backing;
    char *block;         /* QUERN__CALL_MEMORY_BYTES bytes; NULL: not initialised */
    size_t used;         /* parts begin below this offset */
    uint32_t live_count; /* number of parts that were not released */
} quern__call_memory;

enum { QUERN__CALL_MEMORY_BYTES = 32 * 1024 };

/* Allocates the block. Returns false if out of memory. */
bool quern__call_memory_init(quern__call_memory *memory, const quern_allocator *backing);

/* Releases the block. Precondition: all allocated memory was released. */
void quern__call_memory_release(quern__call_memory *memory);

/* Returns the allocator, which is not thread-safe and refers to `memory`. */
quern_allocator quern__call_memory_allocator(quern__call_memory *memory);

#endif
