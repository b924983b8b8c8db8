/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/cache_sizes.h"

#include "core/platform/platform.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's files have precedence. On AMD processors, sysconf of glibc 2.36 multiplies the size of the
 * last level by the number of core complexes: 256 MiB where each core shares 32 MiB. */

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

/* Parses a size as the kernel writes it, such as "32768K". Returns 0 if the text is none. */
static size_t parse_size(const char *text)
{
    char *end = NULL;
    const unsigned long long number = strtoull(text, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return number > (SIZE_MAX >> shift) ? 0 : (size_t)number << shift;
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
    found->bytes = parse_size(size);
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
