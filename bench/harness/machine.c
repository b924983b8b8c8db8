/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Describes the machine, pins threads to its processors, keeps these busy, and counts hardware events. */
#include "bench/harness/machine.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
    char model[TEXT_BYTES];
    quern__bench_machine machine = {
        .processor = quern__bench_copy_text(read_processor_model(model) ? model : ARCHITECTURE),
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
    /* The sizes to which the library adapts, so that they are found in one place. */
    const quern_cache_sizes sizes = quern_processor_caches();
    machine.caches[0] = describe_cache("own", sizes.own_bytes, sizes.own_source);
    machine.caches[1] = describe_cache("shared", sizes.shared_bytes, sizes.shared_source);
    machine.cache_count = 2;
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

/* ------------------------------------------------------------------------------------------ pinning */

#if defined(__linux__)

static cpu_set_t first_set;
static bool is_pinned;

bool quern__bench_pin(uint32_t processor_count)
{
    if (!is_pinned && sched_getaffinity(0, sizeof first_set, &first_set) != 0) return false;
    if (processor_count > (uint32_t)CPU_COUNT(&first_set)) return false;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    for (size_t i = 0; (uint32_t)CPU_COUNT(&chosen) < processor_count; i++)
        if (CPU_ISSET(i, &first_set)) CPU_SET(i, &chosen);
    const bool done = sched_setaffinity(0, sizeof chosen, &chosen) == 0;
    is_pinned |= done;
    return done;
}

void quern__bench_unpin(void)
{
    if (!is_pinned) return;
    sched_setaffinity(0, sizeof first_set, &first_set);
    is_pinned = false;
}

#else

bool quern__bench_pin(uint32_t processor_count)
{
    (void)processor_count;
    return false;
}

void quern__bench_unpin(void) {}

#endif

/* -------------------------------------------------------------------------------------------- crowd */

static pthread_t threads[QUERN__BENCH_MAX_CROWD];
static uint32_t started_count;
static _Atomic bool is_over;

/* Relaxed: the flag orders nothing; joining the thread does. */
static void *compute(void *argument)
{
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
    }
    return argument;
}

bool quern__bench_crowd_start(uint32_t thread_count)
{
    atomic_store_explicit(&is_over, false, memory_order_relaxed);
    for (started_count = 0; started_count < thread_count; started_count++) {
        if (pthread_create(&threads[started_count], NULL, compute, NULL) == 0) continue;
        quern__bench_crowd_stop();
        return false;
    }
    return true;
}

void quern__bench_crowd_stop(void)
{
    atomic_store_explicit(&is_over, true, memory_order_relaxed);
    while (started_count > 0)
        pthread_join(threads[--started_count], NULL);
}

/* ----------------------------------------------------------------------------------------- counters */

const char *const quern__bench_counter_keys[QUERN_HARDWARE_EVENT_COUNT] = {
    [QUERN_HARDWARE_CYCLES] = "cycles",         [QUERN_HARDWARE_INSTRUCTIONS] = "instructions",
    [QUERN_HARDWARE_L1_MISSES] = "l1_misses",   [QUERN_HARDWARE_L2_MISSES] = "l2_misses",
    [QUERN_HARDWARE_LLC_MISSES] = "llc_misses", [QUERN_HARDWARE_TLB_MISSES] = "tlb_misses",
};

static void *open_process(const quern_hardware_source *source)
{
    void *opened;
    return source->open(source->user_data, QUERN_HARDWARE_PROCESS, &opened) == QUERN_OK ? opened : NULL;
}

void quern__bench_counters_open(quern__bench_counters *counters, const quern_hardware_source *source)
{
    *counters = (quern__bench_counters){.source = source, .opened = open_process(source)};
    quern__bench_counters_reset(counters);
}

void quern__bench_counters_close(quern__bench_counters *counters)
{
    if (counters->opened != NULL) counters->source->close(counters->opened);
    counters->opened = NULL;
}

void quern__bench_counters_reset(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        counters->totals[i] = counters->opened != NULL ? 0 : NAN;
}

void quern__bench_counters_start(quern__bench_counters *counters)
{
    counters->is_counting =
        counters->opened != NULL && counters->source->read(counters->opened, &counters->started);
}

/* The total of an event becomes NAN if the event cannot be read or was never scheduled on the hardware. */
void quern__bench_counters_stop(quern__bench_counters *counters)
{
    quern_hardware_reading now;
    const bool is_known = counters->is_counting && counters->source->read(counters->opened, &now);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        counters->totals[i] +=
            is_known ? quern_hardware_difference(&counters->started, &now, (quern_hardware_event)i) : NAN;
    counters->is_counting = false;
}

bool quern__bench_counters_available(const quern_hardware_source *source)
{
    void *opened = open_process(source);
    if (opened == NULL) return false;
    source->close(opened);
    return true;
}
