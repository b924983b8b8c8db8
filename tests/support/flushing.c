/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/flushing.h"

#include "tests/support/setup.h"

quern_result flush_with_failures(quern_world *world, failing_allocator *memory, uint64_t seed)
{
    if (seed % 2 == 0) failing_allocator_fail_often(memory, 30, seed);
    const quern_result result = quern_world_flush(world);
    failing_allocator_heal(memory);
    assert_valid(world);
    return result == QUERN_ERROR_OUT_OF_MEMORY ? quern_world_flush(world) : result;
}

uint32_t flush_until_memory_suffices(quern_world *world, failing_allocator *memory)
{
    for (uint32_t failed_count = 0;; failed_count++) {
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_from(memory, 1 + failed_count);
        const quern_result result = quern_world_flush(world);
        failing_allocator_heal(memory);
        assert_valid(world);
        if (result == QUERN_OK) return failed_count;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(quern_world_hash(world), hash);
    }
}

uint64_t see_changes(quern_query *query)
{
    uint64_t sum = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += quern_entity_index(it.view.entities[i]) + 1;
    return sum;
}
