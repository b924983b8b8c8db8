/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/archetype.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

enum { ROWS = 5, MAX_COLUMNS = 250, MAX_SIZE = QUERN__COPY_MAX_BYTES };

static failing_allocator *memory;
static quern_allocator allocator;

static void open_memory(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
}

static void close_memory(void)
{
    failing_allocator_close(memory);
}

TestSuite(copy, .init = open_memory, .fini = close_memory);

/* Two chunks with random bytes, with consecutive columns of ROWS rows each, and the expected target. Object files of
 * Windows align data to 8192 bytes at most, so they are aligned less than chunks, which copies do not depend on. */
static _Alignas(QUERN__CACHE_LINE_BYTES) char source[QUERN__CHUNK_BYTES];
static _Alignas(QUERN__CACHE_LINE_BYTES) char target[QUERN__CHUNK_BYTES];
static char expected[QUERN__CHUNK_BYTES];

static void fill_with_noise(random_source *random, char *bytes)
{
    for (uint32_t i = 0; i < QUERN__CHUNK_BYTES; i++)
        bytes[i] = (char)random_below(random, 256);
}

/* Lays out columns with the sizes that size_of returns, in opposite order in the target. Returns how many fit. */
static uint32_t lay_out(quern__copy *copies, uint32_t wanted, uint32_t (*size_of)(random_source *),
                        random_source *random)
{
    uint32_t begin = 64, end = QUERN__CHUNK_BYTES, count = 0;
    for (; count < wanted; count++) {
        const uint32_t size_bytes = size_of(random);
        if (begin + ROWS * size_bytes > QUERN__CHUNK_BYTES || end < 64 + ROWS * size_bytes) break;
        end -= ROWS * size_bytes;
        copies[count] = (quern__copy){.source_offset_bytes = (uint16_t)begin,
                                      .target_offset_bytes = (uint16_t)end,
                                      .size_bytes = (uint16_t)size_bytes};
        begin += ROWS * size_bytes;
    }
    return count;
}

static void expect_copies(const quern__copy *copies, uint32_t count, uint32_t to, uint32_t from)
{
    memcpy(expected, target, sizeof expected);
    for (uint32_t i = 0; i < count; i++)
        memcpy(expected + copies[i].target_offset_bytes + to * copies[i].size_bytes,
               source + copies[i].source_offset_bytes + from * copies[i].size_bytes, copies[i].size_bytes);
}

/* Copies one row with as many columns as fit, and checks that no other byte changes. */
static void check_columns(uint32_t wanted, uint32_t (*size_of)(random_source *), random_source *random)
{
    quern__copy copies[MAX_COLUMNS];
    fill_with_noise(random, source);
    fill_with_noise(random, target);
    const uint32_t count = lay_out(copies, wanted, size_of, random);
    const uint32_t to = random_below(random, ROWS), from = random_below(random, ROWS);
    expect_copies(copies, count, to, from);
    quern__copy_word *plan = quern__copy_compile(&allocator, copies, count);
    cr_assert_not_null(plan);
    quern__copy_row(plan, (quern__row){target, to}, (quern__row){source, from});
    cr_assert_arr_eq(target, expected, sizeof expected, "%u columns, row %u to row %u", count, from, to);
    quern__copy_release(&allocator, plan);
}

/* Moves a row out and fills its gap with the chunk's last row, including columns that the target lacks. */
static void check_leaving(uint32_t wanted, uint32_t (*size_of)(random_source *), random_source *random)
{
    static char expected_source[QUERN__CHUNK_BYTES];
    quern__copy copies[MAX_COLUMNS];
    fill_with_noise(random, source);
    fill_with_noise(random, target);
    const uint32_t count = lay_out(copies, wanted, size_of, random);
    const uint32_t to = random_below(random, ROWS), last = 1 + random_below(random, ROWS - 1);
    const uint32_t gap = random_below(random, last);
    memcpy(expected, target, sizeof expected);
    memcpy(expected_source, source, sizeof expected_source);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size_bytes = copies[i].size_bytes;
        char *column = expected_source + copies[i].source_offset_bytes;
        if (random_below(random, 3) == 0)
            copies[i].target_offset_bytes = 0;
        else
            memcpy(expected + copies[i].target_offset_bytes + to * size_bytes, column + gap * size_bytes,
                   size_bytes);
        memcpy(column + gap * size_bytes, column + last * size_bytes, size_bytes);
    }
    quern__copy_word *plan = quern__copy_compile(&allocator, copies, count);
    cr_assert_not_null(plan);
    quern__move_row(plan, (quern__row){target, to}, (quern__row){source, gap}, (quern__row){source, last});
    cr_assert_arr_eq(target, expected, sizeof expected, "%u columns, row %u to row %u", count, gap, to);
    cr_assert_arr_eq(source, expected_source, sizeof expected_source, "%u columns, row %u to gap %u", count,
                     last, gap);
    quern__copy_release(&allocator, plan);
}

static uint32_t any_size(random_source *random)
{
    return 1 + random_below(random, MAX_SIZE);
}

static uint32_t usual_size(random_source *random)
{
    return 4 * (1 + random_below(random, 4));
}

static uint32_t tiny_size(random_source *random)
{
    return 1 + random_below(random, 3);
}

Test(copy, rows_with_values_of_all_sizes_are_copied_exactly)
{
    random_source random = {1};
    for (uint32_t i = 0; i < 200; i++)
        check_columns(1 + i % 20, any_size, &random);
}

Test(copy, columns_of_the_usual_sizes_share_groups)
{
    random_source random = {2};
    for (uint32_t i = 0; i < 200; i++)
        check_columns(1 + i, usual_size, &random);
}

Test(copy, values_of_odd_sizes_are_copied_exactly)
{
    random_source random = {3};
    for (uint32_t i = 0; i < 100; i++)
        check_columns(MAX_COLUMNS, tiny_size, &random);
}

static uint32_t next_size;

static uint32_t one_size(random_source *random)
{
    return next_size;
}

Test(copy, values_of_each_single_size_are_copied_exactly)
{
    random_source random = {4};
    for (next_size = 1; next_size <= MAX_SIZE; next_size++) {
        check_columns(1, one_size, &random);
        check_columns(MAX_COLUMNS, one_size, &random);
    }
}

Test(copy, a_row_without_columns_copies_nothing)
{
    random_source random = {5};
    check_columns(0, any_size, &random);
    check_leaving(0, any_size, &random);
}

Test(copy, the_last_row_fills_the_gap_of_a_leaving_row)
{
    random_source random = {6};
    for (uint32_t i = 0; i < 200; i++) {
        check_leaving(1 + i % 20, any_size, &random);
        check_leaving(1 + i, usual_size, &random);
        check_leaving(1 + i, tiny_size, &random);
    }
}

Test(copy, columns_that_the_target_lacks_are_not_copied)
{
    quern__copy copies[] = {{64, 640, 12}, {128, 0, 4}, {192, 768, 12}};
    quern__copy_word *plan = quern__copy_compile(&allocator, copies, QUERN__COUNT_OF(copies));
    cr_assert_not_null(plan);
    cr_assert_eq(plan[0].group.step_count, 2u);
    cr_assert_eq(plan[3].group.step_count, 0u);
    cr_assert_eq(plan[4].group.value_bytes, 4u);
    cr_assert_eq(plan[4].group.step_count, 1u);
    cr_assert_eq(plan[6].group.step_count, 0u);
    quern__copy_release(&allocator, plan);
}

Test(copy, columns_of_equal_size_share_a_group)
{
    quern__copy copies[] = {{64, 640, 12}, {128, 704, 4}, {192, 768, 12}, {256, 832, 64}};
    quern__copy_word *plan = quern__copy_compile(&allocator, copies, QUERN__COUNT_OF(copies));
    cr_assert_not_null(plan);
    cr_assert_eq(plan[0].group.value_bytes, 4u);
    cr_assert_eq(plan[0].group.step_count, 1u);
    cr_assert_eq(plan[2].group.step_bytes, 12u);
    cr_assert_eq(plan[2].group.step_count, 2u);
    cr_assert_eq(plan[5].group.value_bytes, 64u);
    cr_assert_eq(plan[5].group.step_bytes, 16u);
    cr_assert_eq(plan[5].group.step_count, 4u);
    cr_assert_eq(plan[10].group.step_count, 0u);
    quern__copy_release(&allocator, plan);
}

Test(copy, compiling_fails_without_memory)
{
    quern__copy copies[] = {{64, 640, 12}};
    failing_allocator_fail_from(memory, 1);
    cr_assert_null(quern__copy_compile(&allocator, copies, 1));
    quern__copy_release(&allocator, NULL);
}

Test(copy, single_values_are_copied_exactly)
{
    random_source random = {6};
    fill_with_noise(&random, source);
    for (uint32_t size_bytes = 0; size_bytes <= MAX_SIZE; size_bytes++) {
        fill_with_noise(&random, target);
        memcpy(expected, target, sizeof expected);
        memcpy(expected + 100, source + 200, size_bytes);
        quern__copy_value(target + 100, source + 200, size_bytes);
        cr_assert_arr_eq(target, expected, sizeof expected, "%u bytes", size_bytes);
        if (size_bytes == 0) continue;
        memset(target + 100, 0, size_bytes);
        quern__copy_new_value(target + 100, source + 200, size_bytes);
        cr_assert_arr_eq(target, expected, sizeof expected, "%u bytes that are new", size_bytes);
    }
}
