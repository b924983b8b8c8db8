/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static void write_file(const char *name, const char *text)
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
    write_file("proc/self/cgroup", "0::/\n");
    expect_quota(UINT32_MAX);
    write_file("proc/self/cgroup", "no group\n\n:\n");
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
    write_file("proc/self/cgroup", "0::/game\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("sys/fs/cgroup/game/cpu.max", cases[i].text);
        cr_expect_eq(quern__read_processor_quota(root), cases[i].count, "%s", cases[i].text);
    }
}

Test(quota, the_least_quota_of_enclosing_groups_holds)
{
    write_file("proc/self/cgroup", "0::/machine/game/server\n");
    write_file("sys/fs/cgroup/machine/game/server/cpu.max", "500000 100000\n");
    expect_quota(5);
    write_file("sys/fs/cgroup/machine/cpu.max", "300000 100000\n");
    expect_quota(3);
    write_file("sys/fs/cgroup/machine/game/cpu.max", "max 100000\n");
    expect_quota(3);
    write_file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_quota(2);
}

/* A container that does not hide the host's path sees its own group at the mount point. */
Test(quota, a_path_that_only_the_host_has_is_skipped)
{
    write_file("proc/self/cgroup", "0::/host/docker/1f2e\n");
    write_file("sys/fs/cgroup/cpu.max", "250000 100000\n");
    expect_quota(3);
}

Test(quota, version_1_has_two_files_in_the_folder_of_the_controller)
{
    write_file("proc/self/cgroup", "11:memory:/game\n5:cpuacct,cpu:/game\n4:cpuset:/game\n0::/\n");
    write_file("sys/fs/cgroup/memory/game/cpu.cfs_quota_us", "100000\n"); /* of another controller */
    write_file("sys/fs/cgroup/memory/game/cpu.cfs_period_us", "100000\n");
    write_file("sys/fs/cgroup/cpuset/game/cpu.cfs_quota_us", "100000\n");
    write_file("sys/fs/cgroup/cpuset/game/cpu.cfs_period_us", "100000\n");
    write_file("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_quota_us", "-1\n");
    expect_quota(UINT32_MAX);
    write_file("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_period_us", "50000\n");
    expect_quota(UINT32_MAX);
    write_file("sys/fs/cgroup/cpuacct,cpu/game/cpu.cfs_quota_us", "175000\n");
    expect_quota(4);
    write_file("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_period_us", "100000\n");
    write_file("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_quota_us", "100000\n");
    expect_quota(1);
}

Test(quota, a_path_that_is_too_long_has_none)
{
    char line[4000];
    memset(line, 'x', sizeof line);
    memcpy(line, "0::/", 4);
    line[sizeof line - 1] = '\0';
    write_file("proc/self/cgroup", line);
    write_file("sys/fs/cgroup/cpu.max", "100000 100000\n");
    (void)quern__read_processor_quota(root);
    line[900] = '\0';
    write_file("proc/self/cgroup", line);
    expect_quota(1);
}

Test(quota, the_default_is_the_smaller_of_processors_and_quota)
{
    cr_expect_eq(quern__default_thread_count(1, 8, 3), 3u);
    cr_expect_eq(quern__default_thread_count(1, 2, 3), 2u);
    cr_expect_eq(quern__default_thread_count(3, QUERN_MAX_THREADS, UINT32_MAX), QUERN_MAX_THREADS - 2u);
}
