/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness.h"

enum { MAX_FRESH_PASSES = 100 };

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
