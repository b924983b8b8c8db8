/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include "core/platform/platform.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The threads that a pool starts: their stack size, processors and names. */

/* ------------------------------------------------------------------------------------------ processors */

quern_result quern_processors_add(quern_processors *processors, uint32_t index)
{
    if (processors == NULL) return quern__fail_null("quern_processors_add", "processors");
    if (index >= QUERN_MAX_PROCESSORS)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_processors_add: processor %u is not in 0 to %d (QUERN_MAX_PROCESSORS - "
                           "1): pass an index in this range",
                           (unsigned)index, QUERN_MAX_PROCESSORS - 1);
    processors->words[index / 64] |= (uint64_t)1 << index % 64;
    return QUERN_OK;
}

static bool has_any(const quern_processors *processors)
{
    uint64_t all = 0;
    for (uint32_t word = 0; word < QUERN__COUNT_OF(processors->words); word++)
        all |= processors->words[word];
    return all != 0;
}

typedef struct trial {
    const quern_processors *processors;
    uint32_t refused; /* first processor that may not be used; valid if may_use is false */
    bool may_use;
} trial;

static void *try_processors(void *argument)
{
    trial *of = argument;
    of->may_use = quern__thread_set_processors(of->processors, &of->refused);
    return NULL;
}

/* Fails if the process may not use one of the processors. Only the system knows, so a temporary thread
 * tries them; the calling thread must not move. */
static quern_result check_processors(const quern_jobs_def *def)
{
    quern__thread thread;
    trial of = {.processors = &def->processors};
    if (!has_any(&def->processors)) return QUERN_OK;
    if (!quern__thread_start(&thread, 0, try_processors, &of))
        return quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE,
                           "quern_jobs_create: the system refused the thread that tries the processors of "
                           "job pool '%s'",
                           def->name);
    quern__thread_join(&thread);
    if (of.may_use) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_create: processor %u is in the set of job pool '%s', and this process may "
        "not use it; leave it out",
        (unsigned)of.refused, def->name);
}

/* ------------------------------------------------------------------------------------------ definition */

static quern_result check_host_threads(const quern_jobs_def *def)
{
    if (def->stack_bytes == 0 && !has_any(&def->processors)) return QUERN_OK;
    const char *member = def->stack_bytes != 0 ? "stack_bytes" : "processors";
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_create: job pool '%s' sets host_threads and %s; leave out %s or host_threads",
        def->name, member, member);
}

quern_result quern__jobs_check_own_threads(const quern_jobs_def *def)
{
    if (def->host_threads.submit != NULL) return check_host_threads(def);
    const size_t least_bytes = quern__thread_min_stack_bytes();
    if (def->stack_bytes != 0 && def->stack_bytes < least_bytes)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_jobs_create: stack_bytes of job pool '%s' is %zu; the system's minimum is %zu, "
            "and 0 means its default",
            def->name, def->stack_bytes, least_bytes);
    return check_processors(def);
}

/* ----------------------------------------------------------------------------------- beginning and end */

/* Ignores processors that were taken from the process after the pool was created. */
void quern__worker_set_up_thread(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    uint32_t refused;
    char number[QUERN__THREAD_NAME_BYTES];
    /* larger than needed, for compilers that check the maximum length */
    char name[2 * QUERN__THREAD_NAME_BYTES];
    int number_length = snprintf(number, sizeof number, "/%u", (unsigned)worker->index);
    int room = QUERN__THREAD_NAME_BYTES - 1 - number_length;
    snprintf(name, sizeof name, "%.*s%s", room, worker->jobs->name, number);
    quern__thread_set_name(name);
    if (has_any(&jobs->processors)) (void)quern__thread_set_processors(&jobs->processors, &refused);
    if (jobs->pin_threads) quern__thread_pin(worker->index);
    quern__worker_call_start(worker);
}

/* ------------------------------------------------------------------------------------------------ quotas */

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
static uint32_t read_quota_line(const char *root, char *line)
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
    /* The least of the quotas of the group with this path and of all that enclose it, up to the mount point. */
    uint32_t least = UINT32_MAX;
    for (;;) {
        const uint32_t count = read_group(folder);
        if (count < least) least = count;
        char *last = strrchr(folder + mount_length, '/');
        if (last == NULL) return least;
        *last = '\0';
    }
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
        const uint32_t count = read_quota_line(root, line);
        if (count < least) least = count;
    }
    fclose(file);
    return least;
}

/* --------------------------------------------------------------------------------------- sizes of caches */

/* The kernel's files have precedence over sysconf, which may add up several caches. */

enum { MAX_CACHES = 16, TEXT_BYTES = 128, PATH_BYTES = 512 };

static const size_t assumed_own_bytes = (size_t)1 << 20;
static const size_t assumed_shared_bytes = (size_t)32 << 20;

typedef struct cache {
    unsigned long level;         /* 1: closest to the core */
    size_t bytes;                /* at least 1 */
    char processors[TEXT_BYTES]; /* processors that share the cache, as the kernel lists them */
} cache;

/* Reads the first line of one file of a cache. Returns false if there is none. */
static bool read_line(const char *folder, int index, const char *name, char text[TEXT_BYTES])
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const bool found = fgets(text, TEXT_BYTES, file) != NULL;
    fclose(file);
    if (found) text[strcspn(text, "\n")] = '\0';
    return found;
}

/* Reads one cache. Returns false if there is none, if it caches only instructions, or if its files cannot
 * be parsed. */
static bool read_cache(const char *folder, int index, cache *found)
{
    char type[TEXT_BYTES], level[TEXT_BYTES], size[TEXT_BYTES];
    if (!read_line(folder, index, "type", type) || strcmp(type, "Instruction") == 0) return false;
    if (!read_line(folder, index, "level", level) || !read_line(folder, index, "size", size)) return false;
    if (!read_line(folder, index, "shared_cpu_list", found->processors)) found->processors[0] = '\0';
    found->level = strtoul(level, NULL, 10);
    /* A size as the kernel writes it, such as "32768K"; 0 if the text is none. */
    char *end = NULL;
    const unsigned long long number = strtoull(size, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    found->bytes = number > (SIZE_MAX >> shift) ? 0 : (size_t)number << shift;
    return found->level > 0 && found->bytes > 0;
}

/* The shared cache is the one with the highest level. A core's own cache is the highest lower level shared
 * by the same processors as level 1: if level 2 of the processor serves several cores, the own cache is
 * level 1. */
static void read_folder(const char *folder, quern_cache_sizes *sizes)
{
    cache caches[MAX_CACHES];
    uint32_t count = 0;
    const cache *first = NULL, *last = NULL, *own = NULL;
    for (int index = 0; index < MAX_CACHES; index++)
        count += read_cache(folder, index, &caches[count]);
    for (uint32_t i = 0; i < count; i++) {
        if (first == NULL || caches[i].level < first->level) first = &caches[i];
        if (last == NULL || caches[i].level > last->level) last = &caches[i];
    }
    if (last == NULL || last == first) return;
    for (uint32_t i = 0; i < count; i++)
        if (caches[i].level < last->level && (own == NULL || caches[i].level > own->level) &&
            strcmp(caches[i].processors, first->processors) == 0)
            own = &caches[i];
    *sizes = (quern_cache_sizes){.own_bytes = own->bytes,
                                 .shared_bytes = last->bytes,
                                 .own_source = QUERN_CACHE_FROM_KERNEL,
                                 .shared_source = QUERN_CACHE_FROM_KERNEL};
}

/* Sets a size that is still unknown to the value of the system call, or to an assumed size. */
static void set_unknown_size(size_t *bytes, quern_cache_source *source, size_t host_bytes, size_t assumed)
{
    if (*bytes > 0) return;
    *bytes = host_bytes > 0 ? host_bytes : assumed;
    *source = host_bytes > 0 ? QUERN_CACHE_FROM_SYSCONF : QUERN_CACHE_ASSUMED;
}

quern_cache_sizes quern__read_cache_sizes(const char *folder)
{
    quern_cache_sizes sizes = {0};
    if (folder != NULL) read_folder(folder, &sizes);
    set_unknown_size(&sizes.own_bytes, &sizes.own_source, quern__host_cache_bytes(2), assumed_own_bytes);
    set_unknown_size(&sizes.shared_bytes, &sizes.shared_source, quern__host_cache_bytes(3),
                     assumed_shared_bytes);
    return sizes;
}

static quern__once process_once = QUERN__ONCE_INIT;
static quern_cache_sizes process_sizes;

static void read_for_process(void)
{
    process_sizes = quern__read_cache_sizes("/sys/devices/system/cpu/cpu0/cache");
}

/* Reads the files once per process: reading takes about 100 us, and each schedule calls this. */
quern_cache_sizes quern_processor_caches(void)
{
    quern__call_once(&process_once, read_for_process);
    return process_sizes;
}

uint32_t quern_processor_count(void)
{
    return quern__processor_count();
}
