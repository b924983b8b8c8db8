/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef TESTS_SUPPORT_WINDOWS_HEAP_H
#define TESTS_SUPPORT_WINDOWS_HEAP_H

/* Included before every test program on Windows. Its C library has no aligned_alloc, and aligned memory is released by
 * another call than the rest. So all calls of tests use the calls for aligned memory. */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static inline void *windows_heap_zeroed(size_t count, size_t size)
{
    void *memory = _aligned_malloc(count * size != 0 ? count * size : 1, 16);
    if (memory != NULL) memset(memory, 0, count * size);
    return memory;
}

#define malloc(bytes)                         _aligned_malloc(bytes, 16)
#define calloc(count, bytes)                  windows_heap_zeroed(count, bytes)
#define realloc(memory, bytes)                _aligned_realloc(memory, bytes, 16)
#define aligned_alloc(alignment_bytes, bytes) _aligned_malloc(bytes, alignment_bytes)
#define free(memory)                          _aligned_free(memory)

#endif
