/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* The processor time that Linux grants to the process's control group. A container with a quota of 150 ms per
 * 100 ms has 1.5 processors, although it may run on all of them. With more threads than that, the group has
 * used its quota before the period ends, and all its threads stand still until the next period.
 *
 *     /proc/self/cgroup                          version 2: "0::/PATH"     version 1: "4:cpu,cpuacct:/PATH"
 *     /sys/fs/cgroup/PATH/cpu.max                version 2: "QUOTA PERIOD", or "max PERIOD"
 *     /sys/fs/cgroup/CONTROLLERS/PATH/cpu.cfs_quota_us, cpu.cfs_period_us       version 1: -1 is no quota
 *
 * The quotas of all enclosing groups hold, too. Inside a container, PATH may be the one that the host sees, of
 * which only the mount point itself exists here. So files that do not exist are skipped. */

enum { QUOTA_PATH_BYTES = 1024 };

/* Reads up to two numbers from a file of one line. A word that is no number, such as "max", reads as 0. Returns
 * false if there is no such file. */
static bool read_numbers(const char *folder, const char *name, long long numbers[2])
{
    char path[QUOTA_PATH_BYTES + 64], line[64] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    (void)!fgets(line, sizeof line, file);
    fclose(file);
    char *end = line;
    numbers[0] = strtoll(line, &end, 10);
    while (*end != ' ' && *end != '\0')
        end++;
    numbers[1] = strtoll(end, NULL, 10);
    return true;
}

/* Returns the number of processors that a group may use, rounded up; UINT32_MAX if it has no quota. */
static uint32_t read_group(const char *folder)
{
    long long quota[2], period[2];
    if (!read_numbers(folder, "cpu.max", quota)) {
        if (!read_numbers(folder, "cpu.cfs_quota_us", quota) ||
            !read_numbers(folder, "cpu.cfs_period_us", period))
            return UINT32_MAX;
        quota[1] = period[0];
    }
    if (quota[0] <= 0 || quota[1] <= 0) return UINT32_MAX;
    const long long count = quota[0] / quota[1] + (quota[0] % quota[1] != 0);
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Returns the least of the quotas of the group with this path and of all that enclose it, up to the mount
 * point, which is the first mount_length characters. */
static uint32_t read_groups(char *folder, size_t mount_length)
{
    uint32_t least = UINT32_MAX;
    for (;;) {
        const uint32_t count = read_group(folder);
        if (count < least) least = count;
        char *last = strrchr(folder + mount_length, '/');
        if (last == NULL) return least;
        *last = '\0';
    }
}

/* Returns whether a list with commas, such as "cpu,cpuacct", names the controller of processor time. */
static bool names_processor_time(const char *controllers)
{
    for (const char *each = controllers; *each != '\0'; each += strcspn(each, ",")) {
        each += *each == ',';
        if (strncmp(each, "cpu", 3) == 0 && (each[3] == ',' || each[3] == '\0')) return true;
    }
    return false;
}

/* Reads the groups that a line of /proc/self/cgroup names. */
static uint32_t read_line(const char *root, char *line)
{
    char folder[QUOTA_PATH_BYTES];
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) return UINT32_MAX;
    *path++ = '\0';
    controllers++;
    if (*controllers != '\0' && !names_processor_time(controllers)) return UINT32_MAX;
    const int mount_length = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root,
                                      *controllers != '\0' ? "/" : "", controllers);
    if (mount_length < 0 || (size_t)mount_length + strlen(path) >= sizeof folder) return UINT32_MAX;
    memcpy(folder + mount_length, path, strlen(path) + 1);
    return read_groups(folder, (size_t)mount_length);
}

uint32_t quern__read_processor_quota(const char *root)
{
    char path[QUOTA_PATH_BYTES], line[QUOTA_PATH_BYTES];
    uint32_t least = UINT32_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    if (file == NULL) return least;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const uint32_t count = read_line(root, line);
        if (count < least) least = count;
    }
    fclose(file);
    return least;
}
