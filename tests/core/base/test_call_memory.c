/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/base_internal.h"
#include "core/platform/compiler.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <string.h>

static failing_allocator *memory;
static quern_allocator allocator;
static quern__call_memory block;

static void open_block(void)
{
    memory = failing_allocator_create();
    const quern_allocator backing = failing_allocator_interface(memory);
    cr_assert(quern__call_memory_init(&block, &backing));
    allocator = quern__call_memory_allocator(&block);
}

static void close_block(void)
{
    quern__call_memory_release(&block);
    failing_allocator_close(memory); /* asserts that nothing is left */
}

TestSuite(call_memory, .init = open_block, .fini = close_block);

/* Whether the next allocation of the size needs the allocator behind the block. */
static bool needs_backing(size_t size_bytes, size_t alignment_bytes)
{
    const uint64_t before = failing_allocator_call_count(memory);
    void *bytes = quern__allocate(&allocator, size_bytes, alignment_bytes);
    cr_assert_not_null(bytes);
    cr_assert_eq((uintptr_t)bytes % alignment_bytes, 0u);
    memset(bytes, 1, size_bytes);
    quern__release(&allocator, bytes, size_bytes, alignment_bytes);
    return failing_allocator_call_count(memory) != before;
}

Test(call_memory, only_large_parts_need_the_allocator_behind_it)
{
    if (QUERN__IS_ADDRESS_SANITIZED) cr_skip_test("the address sanitizer keeps no call memory");
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES, 64));
    cr_assert(needs_backing(QUERN__CALL_MEMORY_BYTES + 1, 64));
    cr_assert(needs_backing(8, 128));
    void *first = quern__allocate(&allocator, 1, 8);
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES - 8, 8));
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES - 8, 8), "the last part was released");
    cr_assert(needs_backing(QUERN__CALL_MEMORY_BYTES - 7, 8));
    quern__release(&allocator, first, 1, 8);
}

Test(call_memory, it_is_empty_when_all_parts_are_released)
{
    void *parts[3];
    if (QUERN__IS_ADDRESS_SANITIZED) cr_skip_test("the address sanitizer keeps no call memory");
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = quern__allocate(&allocator, 10000, 64);
    cr_assert(needs_backing(10000, 64));
    quern__release(&allocator, parts[0], 10000, 64);
    quern__release(&allocator, parts[1], 10000, 64);
    cr_assert(needs_backing(10000, 64));
    quern__release(&allocator, parts[2], 10000, 64);
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES, 8));
}

Test(call_memory, parts_do_not_overlap)
{
    enum { PARTS = 40 };
    unsigned char *parts[PARTS] = {0};
    size_t sizes[PARTS];
    random_source random = {1};
    for (uint32_t round = 0; round < 20000; round++) {
        const uint32_t i = random_below(&random, PARTS);
        const size_t alignment = (size_t)8 << i % 4;
        if (parts[i] == NULL) {
            sizes[i] = 1 + random_below(&random, 2000);
            parts[i] = quern__allocate(&allocator, sizes[i], alignment);
            cr_assert_eq((uintptr_t)parts[i] % alignment, 0u);
            memset(parts[i], (int)i, sizes[i]);
        } else {
            for (size_t k = 0; k < sizes[i]; k++)
                if (parts[i][k] != i) cr_assert_fail("part %u was overwritten", i);
            quern__release(&allocator, parts[i], sizes[i], alignment);
            parts[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < PARTS; i++)
        if (parts[i] != NULL) quern__release(&allocator, parts[i], sizes[i], (size_t)8 << i % 4);
}

Test(call_memory, exhausted_memory_is_reported)
{
    quern__call_memory other;
    const quern_allocator backing = failing_allocator_interface(memory);
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1);
    cr_assert_not(quern__call_memory_init(&other, &backing));
    failing_allocator_heal(memory);
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1);
    cr_assert_null(quern__allocate(&allocator, 2 * QUERN__CALL_MEMORY_BYTES, 8));
    failing_allocator_heal(memory);
}
