/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <quern/jobs.h>

#if defined(__clang__)
#define COMPILER "clang " __VERSION__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "AArch64"
#else
#define ARCHITECTURE "unknown"
#endif

enum { TEXT_BYTES = 256, LINE_BYTES = 512 };

/* ----------------------------------------------------------------------------------------- processor */

/* Reads the first "model name" line of /proc/cpuinfo, which Linux has on x86. Returns false if there is
 * none. */
static bool read_processor_model(char model[TEXT_BYTES])
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        const char *value = strncmp(line, "model name", 10) == 0 ? strstr(line, ": ") : NULL;
        if (value == NULL) continue;
        snprintf(model, TEXT_BYTES, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        found = true;
    }
    fclose(file);
    return found;
}

static char *describe_processor(void)
{
    char model[TEXT_BYTES];
    return quern__bench_copy_text(read_processor_model(model) ? model : ARCHITECTURE);
}

/* -------------------------------------------------------------------------------------------- caches */

static quern__bench_cache describe_cache(const char *name, size_t bytes, quern_cache_source source)
{
    static const char *const sources[] = {[QUERN_CACHE_ASSUMED] = "assumed",
                                          [QUERN_CACHE_FROM_SYSCONF] = "sysconf",
                                          [QUERN_CACHE_FROM_KERNEL] = "kernel files"};
    quern__bench_cache cache = {.bytes = bytes};
    snprintf(cache.name, sizeof cache.name, "%s", name);
    snprintf(cache.source, sizeof cache.source, "%s", sources[source]);
    return cache;
}

/* Lists the sizes to which the library adapts, so that they are found in one place. */
static uint32_t list_caches(quern__bench_cache caches[QUERN__BENCH_MAX_CACHES])
{
    const quern_cache_sizes sizes = quern_processor_caches();
    caches[0] = describe_cache("own", sizes.own_bytes, sizes.own_source);
    caches[1] = describe_cache("shared", sizes.shared_bytes, sizes.shared_source);
    return 2;
}

/* ---------------------------------------------------------------------------------------------- rest */

void quern__bench_format_bytes(char text[QUERN__BENCH_SIZE_TEXT_BYTES], uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double size = (double)bytes;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        size /= 1024;
    snprintf(text, QUERN__BENCH_SIZE_TEXT_BYTES, "%.4g %s", size, units[unit]);
}

static uint64_t read_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

static char *describe_system(void)
{
    struct utsname names;
    if (uname(&names) != 0) return quern__bench_copy_text("unknown");
    char text[sizeof names.sysname + sizeof names.release + 1];
    snprintf(text, sizeof text, "%s %s", names.sysname, names.release);
    return quern__bench_copy_text(text);
}

static char *describe_date(void)
{
    char text[TEXT_BYTES];
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL) return quern__bench_copy_text("unknown");
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return quern__bench_copy_text(text);
}

static char *describe_version(void)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%d.%d.%d", QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH);
    return quern__bench_copy_text(text);
}

static char *copy_or(const char *text, const char *otherwise)
{
    return quern__bench_copy_text(text != NULL ? text : otherwise);
}

quern__bench_machine quern__bench_machine_describe(const quern_bench_suite *suite)
{
    quern__bench_machine machine = {
        .processor = describe_processor(),
        .processor_count = quern_processor_count(),
        .memory_bytes = read_memory_bytes(),
        .system = describe_system(),
        .compiler = copy_or(suite->compiler, COMPILER),
        .flags = copy_or(suite->flags, "unknown"),
        .version = describe_version(),
        .commit = copy_or(suite->commit, "unknown"),
        .date = describe_date(),
        .checks = quern_has_checks(),
    };
    machine.cache_count = list_caches(machine.caches);
    return machine;
}

void quern__bench_machine_close(quern__bench_machine *machine)
{
    free(machine->processor);
    free(machine->system);
    free(machine->compiler);
    free(machine->flags);
    free(machine->version);
    free(machine->commit);
    free(machine->date);
    *machine = (quern__bench_machine){0};
}
