/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/platform/platform.h"
#include "sched/jobs/jobs_internal.h"

#include <criterion/criterion.h>
#include <quern/jobs.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------- sizes of caches */

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

/* ---------------------------------------------------------------------------------------------- quotas */

/* A folder with the files of /proc and /sys that describe control groups. */
static char root[64];

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/quern_quota_XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(quota, .init = make_root, .fini = remove_root, .timeout = 60);

static void write_at(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_quota(uint32_t count)
{
    cr_expect_eq(quern__read_processor_quota(root), count, "%u", quern__read_processor_quota(root));
}

Test(quota, without_files_there_is_none)
{
    expect_quota(UINT32_MAX);
    write_at("proc/self/cgroup", "0::/\n");
    expect_quota(UINT32_MAX);
    write_at("proc/self/cgroup", "no group\n\n:\n");
    expect_quota(UINT32_MAX);
}

Test(quota, version_2_is_rounded_up)
{
    static const struct {
        const char *text;
        uint32_t count;
    } cases[] = {
        {"150000 100000\n", 2},       {"100000 100000\n", 1}, {"1000 100000\n", 1},
        {"max 100000\n", UINT32_MAX}, {"800000 200000\n", 4}, {"", UINT32_MAX},
        {"100000 0\n", UINT32_MAX},   {"100000", UINT32_MAX}, {"9223372036854775807 1\n", UINT32_MAX}};
    write_at("proc/self/cgroup", "0::/game\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_at("sys/fs/cgroup/game/cpu.max", cases[i].text);
        cr_expect_eq(quern__read_processor_quota(root), cases[i].count, "%s", cases[i].text);
    }
}

Test(quota, the_least_quota_of_enclosing_groups_holds)
{
    write_at("proc/self/cgroup", "0::/machine/game/server\n");
    write_at("sys/fs/cgroup/machine/game/server/cpu.max", "500000 100000\n");
    expect_quota(5);
    write_at("sys/fs/cgroup/machine/cpu.max", "300000 100000\n");
    expect_quota(3);
    write_at("sys/fs/cgroup/machine/game/cpu.max", "max 100000\n");
    expect_quota(3);
    write_at("sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_quota(2);
}

/* A container that does not hide the host's path sees its own group at the mount point. */
Test(quota, a_path_that_only_the_host_has_is_skipped)
{
    write_at("proc/self/cgroup", "0::/host/docker/1f2e\n");
    write_at("sys/fs/cgroup/cpu.max", "250000 100000\n");
    expect_quota(3);
}

Test(quota, version_1_has_two_files_in_the_folder_of_the_controller)
{
    write_at("proc/self/cgroup", "11:memory:/game\n5:cpuacct,cpu:/game\n4:cpuset:/game\n0::/\n");
    write_at("sys/fs/cgroup/memory/game/cpu.cfs_quota_us", "100000\n"); /* of another controller */
    write_at("sys/fs/cgroup/memory/game/cpu.cfs_period_us", "100000\n");
    write_at("sys/fs/cgroup/cpuset/game/cpu.cfs_quota_us", "100000\n");
    write_at("sys/fs/cgroup/cpuset/game/cpu.cfs_period_us", "100000\n");
    write_at("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_quota_us", "-1\n");
    expect_quota(UINT32_MAX);
    write_at("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_period_us", "50000\n");
    expect_quota(UINT32_MAX);
    write_at("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_quota_us", "175000\n");
    expect_quota(4);
    write_at("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_period_us", "100000\n");
    write_at("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_quota_us", "100000\n");
    expect_quota(1);
}

Test(quota, a_path_that_is_too_long_has_none)
{
    char line[4000];
    memset(line, 'x', sizeof line);
    memcpy(line, "0::/", 4);
    line[sizeof line - 1] = '\0';
    write_at("proc/self/cgroup", line);
    write_at("sys/fs/cgroup/cpu.max", "100000 100000\n");
    (void)quern__read_processor_quota(root);
    line[900] = '\0';
    write_at("proc/self/cgroup", line);
    expect_quota(1);
}

Test(quota, the_default_is_the_smaller_of_processors_and_quota)
{
    cr_expect_eq(quern__default_thread_count(1, 8, 3), 3u);
    cr_expect_eq(quern__default_thread_count(1, 2, 3), 2u);
    cr_expect_eq(quern__default_thread_count(3, QUERN_MAX_THREADS, UINT32_MAX), QUERN_MAX_THREADS - 2u);
}

/* ---------------------------------------------------------------------------------- unknown processors */

/* A system that does not say on which processors a thread may run: Linux, if it has more of them than a set of the C library
 * can hold. The library calls the function of this file instead of that of the C library. */

#if defined(__linux__) && QUERN__HAS_AFFINITY

static uint32_t asked_count;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the names of the C library are reserved */
int sched_getaffinity(pid_t id, size_t bytes, cpu_set_t *out_set)
{
    (void)id;
    memset(out_set, 0xFF, bytes); /* the library must not use it */
    asked_count++;
    errno = EINVAL;
    return -1;
}

Test(unknown_processors, all_that_are_online_count)
{
    cr_assert_eq(quern_processor_count(), (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    cr_assert_eq(asked_count, 1u);
}

Test(unknown_processors, sets_are_refused_at_their_first_processor)
{
    quern_processors processors = {.words[0] = 1};
    uint32_t refused = 7;
    cr_assert_not(quern__thread_set_processors(&processors, &refused));
    cr_assert_eq(refused, 0u);
    cr_assert_eq(quern__count_processors_with_caller(&processors), quern_processor_count());
}

Test(unknown_processors, threads_are_neither_pinned_nor_moved)
{
    const uint32_t processor = 1;
    cr_assert_not(quern__thread_move_off(&processor, 1));
    quern__thread_pin(0);
    quern_jobs *jobs;
    const quern_jobs_def def = {.thread_count = 2, .pin_threads = true};
    cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_jobs_thread_count(jobs), 2u);
    quern_jobs_destroy(jobs);
}

#endif
