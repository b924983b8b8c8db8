/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A folder in the layout of the kernel's description of a processor's caches. */
static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/quern_caches_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(cache_sizes, .init = make_folder, .fini = remove_folder, .timeout = 60);

static void write_file(int index, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/index%d", folder, index);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void write_cache(int index, const char *level, const char *type, const char *size,
                        const char *processors)
{
    write_file(index, "level", level);
    write_file(index, "type", type);
    write_file(index, "size", size);
    write_file(index, "shared_cpu_list", processors);
}

static void expect_sizes(size_t own_bytes, size_t shared_bytes)
{
    const quern_cache_sizes sizes = quern__read_cache_sizes(folder);
    cr_expect_eq(sizes.own_bytes, own_bytes, "own: %zu", sizes.own_bytes);
    cr_expect_eq(sizes.shared_bytes, shared_bytes, "shared: %zu", sizes.shared_bytes);
    cr_expect_eq(sizes.own_source, QUERN_CACHE_FROM_KERNEL);
    cr_expect_eq(sizes.shared_source, QUERN_CACHE_FROM_KERNEL);
}

/* Without a description, each size comes from sysconf or is assumed. */
static void expect_fallback(const char *path)
{
    const quern_cache_sizes sizes = quern__read_cache_sizes(path);
    cr_expect_gt(sizes.own_bytes, 0);
    cr_expect_gt(sizes.shared_bytes, 0);
    cr_expect_neq(sizes.own_source, QUERN_CACHE_FROM_KERNEL);
    cr_expect_neq(sizes.shared_source, QUERN_CACHE_FROM_KERNEL);
#ifdef __linux__
    cr_expect_leq(sizes.shared_bytes, (size_t)32 << 20,
                  "sysconf may add up the caches of all core complexes");
#endif
}

Test(cache_sizes, three_levels_give_the_second_and_the_last)
{
    write_cache(0, "1", "Data", "32K", "0,64");
    write_cache(1, "1", "Instruction", "64K", "0,64");
    write_cache(2, "2", "Unified", "512K", "0,64");
    write_cache(3, "3", "Unified", "32768K", "0-7,64-71");
    expect_sizes((size_t)512 << 10, (size_t)32 << 20);
}

Test(cache_sizes, shared_second_level_is_no_own_cache)
{
    write_cache(0, "1", "Data", "64K", "0");
    write_cache(1, "2", "Unified", "4M", "0-3");
    write_cache(2, "3", "Unified", "1G", "0-15");
    expect_sizes((size_t)64 << 10, (size_t)1 << 30);
}

Test(cache_sizes, the_last_of_two_levels_is_the_shared_one)
{
    write_cache(0, "1", "Data", "32K", "0");
    write_cache(1, "2", "Unified", "1024K", "0-3");
    expect_sizes((size_t)32 << 10, (size_t)1 << 20);
}

Test(cache_sizes, one_processor_has_shared_last_level)
{
    write_cache(0, "1", "Data", "48K", "0");
    write_cache(1, "2", "Unified", "2048K", "0");
    write_cache(2, "3", "Unified", "32768K", "0");
    expect_sizes((size_t)2 << 20, (size_t)32 << 20);
}

Test(cache_sizes, levels_are_found_in_any_order_and_with_gaps)
{
    write_cache(9, "1", "Data", "32K", "0");
    write_cache(2, "3", "Unified", "8M", "0-3");
    write_cache(5, "2", "Unified", "256K", "0");
    expect_sizes((size_t)256 << 10, (size_t)8 << 20);
}

Test(cache_sizes, invalid_level_is_ignored)
{
    write_cache(0, "1", "Data", "32K", "0");
    write_cache(1, "0", "Unified", "1K", "0-3");
    write_cache(2, "2", "Unified", "256K", "0");
    write_cache(3, "3", "Unified", "8M", "0-3");
    write_cache(4, "4", "Unified", "many", "0-3");
    write_cache(5, "5", "Unified", "18446744073709551615G", "0-3");
    write_file(6, "type", "Unified");
    expect_sizes((size_t)256 << 10, (size_t)8 << 20);
}

Test(cache_sizes, without_lists_of_processors_each_level_but_the_last_is_own)
{
    const char *sizes[] = {"32K", "256K", "8M"}, *levels[] = {"1", "2", "3"};
    for (int i = 0; i < 3; i++) {
        write_file(i, "level", levels[i]);
        write_file(i, "type", "Unified");
        write_file(i, "size", sizes[i]);
    }
    expect_sizes((size_t)256 << 10, (size_t)8 << 20);
}

Test(cache_sizes, without_a_description_sizes_come_from_sysconf)
{
    expect_fallback(NULL);
    expect_fallback("/nowhere/at/all");
    expect_fallback(folder);
}

Test(cache_sizes, a_single_level_is_not_enough)
{
    write_cache(0, "1", "Data", "32K", "0");
    expect_fallback(folder);
}

Test(cache_sizes, process_reads_sizes_once)
{
    const quern_cache_sizes first = quern_processor_caches(), second = quern_processor_caches();
    cr_expect_gt(first.own_bytes, 0);
    cr_expect_geq(first.shared_bytes, first.own_bytes);
    cr_expect_eq(memcmp(&first, &second, sizeof first), 0);
}
