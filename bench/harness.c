/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness.h"

#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

enum { MAX_FRESH_PASSES = 100, LINE_BYTES = 64, HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

void *bench_allocate_fresh(size_t bytes)
{
    const size_t alignment_bytes = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : LINE_BYTES;
    const size_t whole_bytes = (bytes / alignment_bytes + (bytes % alignment_bytes != 0)) * alignment_bytes;
    void *memory = aligned_alloc(alignment_bytes, whole_bytes > 0 ? whole_bytes : alignment_bytes);
    if (memory == NULL) bench_die("out of memory (%zu bytes)", bytes);
#ifdef MADV_HUGEPAGE
    if (alignment_bytes == HUGE_PAGE_BYTES) madvise(memory, whole_bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void *bench_allocate(size_t count, size_t size_bytes)
{
    if (size_bytes > 0 && count > SIZE_MAX / 2 / size_bytes)
        bench_die("out of memory (%zu times %zu bytes)", count, size_bytes);
    return memset(bench_allocate_fresh(count * size_bytes), 0, count * size_bytes);
}

static uint32_t passes_of(uint32_t total, uint32_t entity_count)
{
    const uint32_t passes = total / entity_count;
    return passes > 0 ? passes : 1;
}

uint32_t bench_passes_of_4m(uint32_t entity_count)
{
    return passes_of(4000000, entity_count);
}

uint32_t bench_passes_of_1m(uint32_t entity_count)
{
    return passes_of(1000000, entity_count);
}

uint32_t bench_passes_of_100k(uint32_t entity_count)
{
    return passes_of(100000, entity_count);
}

uint32_t bench_passes_fresh(uint32_t entity_count)
{
    const uint32_t passes = bench_passes_of_1m(entity_count);
    return passes < MAX_FRESH_PASSES ? passes : MAX_FRESH_PASSES;
}

uint64_t bench_operations_per_entity(uint32_t entity_count)
{
    return entity_count;
}

uint64_t bench_operations_per_frame(uint32_t entity_count)
{
    return 1;
}

uint32_t *bench_shuffled_indices(uint32_t count)
{
    uint32_t *indices = bench_allocate(count, sizeof *indices);
    for (uint32_t i = 0; i < count; i++)
        indices[i] = i;
    uint64_t state = 88172645463325252u;
    for (uint32_t i = count; i > 1; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const uint32_t other = (uint32_t)((state >> 16) % i);
        const uint32_t index = indices[i - 1];
        indices[i - 1] = indices[other];
        indices[other] = index;
    }
    return indices;
}
