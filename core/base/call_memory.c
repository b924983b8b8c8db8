/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/call_memory.h"

#include "core/platform/compiler.h"

#include <assert.h>

enum { BLOCK_ALIGNMENT_BYTES = 64 };

bool quern__call_memory_init(quern__call_memory *memory, const quern_allocator *backing)
{
    *memory = (quern__call_memory){.backing = *backing};
    memory->block = quern__allocate(backing, QUERN__CALL_MEMORY_BYTES, BLOCK_ALIGNMENT_BYTES);
    return memory->block != NULL;
}

void quern__call_memory_release(quern__call_memory *memory)
{
    assert(memory->live_count == 0);
    quern__release(&memory->backing, memory->block, QUERN__CALL_MEMORY_BYTES, BLOCK_ALIGNMENT_BYTES);
    memory->block = NULL;
}

static void *allocate(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    quern__call_memory *memory = user_data;
    const size_t at = quern__align_up(memory->used, alignment_bytes);
    if (QUERN__IS_ADDRESS_SANITIZED || alignment_bytes > BLOCK_ALIGNMENT_BYTES ||
        at > QUERN__CALL_MEMORY_BYTES || size_bytes > QUERN__CALL_MEMORY_BYTES - at)
        return memory->backing.allocate(memory->backing.user_data, size_bytes, alignment_bytes);
    memory->used = at + size_bytes;
    memory->live_count++;
    return memory->block + at;
}

/* Releases memory. The last part of the block makes room for others at once, so the last size of a growing array leaves
 * no gap. */
static void release(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    quern__call_memory *memory = user_data;
    const uintptr_t at = (uintptr_t)pointer - (uintptr_t)memory->block;
    if (at >= QUERN__CALL_MEMORY_BYTES) {
        memory->backing.release(memory->backing.user_data, pointer, size_bytes, alignment_bytes);
        return;
    }
    assert(memory->live_count > 0 && size_bytes <= memory->used);
    if (--memory->live_count == 0)
        memory->used = 0;
    else if (at + size_bytes == memory->used)
        memory->used = at;
}

quern_allocator quern__call_memory_allocator(quern__call_memory *memory)
{
    return (quern_allocator){allocate, release, memory};
}
