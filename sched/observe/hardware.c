/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/hardware_internal.h"

#include "core/base/base_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#if defined(__linux__) && __has_include(<linux/perf_event.h>) && !defined(QUERN__NO_PERF_EVENT)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_PERF_EVENT 1
#else
#define HAS_PERF_EVENT 0
#endif

const char *quern_hardware_event_string(quern_hardware_event event)
{
    static const char *const names[QUERN_HARDWARE_EVENT_COUNT] = {
        [QUERN_HARDWARE_CYCLES] = "cycles",         [QUERN_HARDWARE_INSTRUCTIONS] = "instructions",
        [QUERN_HARDWARE_L1_MISSES] = "L1 misses",   [QUERN_HARDWARE_L2_MISSES] = "L2 misses",
        [QUERN_HARDWARE_LLC_MISSES] = "LLC misses", [QUERN_HARDWARE_TLB_MISSES] = "TLB misses",
    };
    return (unsigned)event < QUERN_HARDWARE_EVENT_COUNT ? names[event] : "unknown event";
}

double quern_hardware_difference(const quern_hardware_reading *from, const quern_hardware_reading *to,
                                 quern_hardware_event event)
{
    if (from == NULL || to == NULL || (unsigned)event >= QUERN_HARDWARE_EVENT_COUNT) {
        (void)quern__fail(from != NULL && to != NULL ? QUERN_ERROR_INVALID_ARGUMENT
                                                     : QUERN_ERROR_NULL_ARGUMENT,
                          "quern_hardware_difference: %s",
                          from == NULL ? "'from' is NULL"
                          : to == NULL ? "'to' is NULL"
                                       : "'event' is no quern_hardware_event");
        return NAN;
    }
    const uint64_t running_ns = to->running_ns[event] - from->running_ns[event];
    const uint64_t enabled_ns = to->enabled_ns[event] - from->enabled_ns[event];
    if (running_ns == 0) return NAN;
    return (double)(to->counts[event] - from->counts[event]) * (double)enabled_ns / (double)running_ns;
}

/* -------------------------------------------------------------------------------------------- system */

#if HAS_PERF_EVENT

#define CACHE_EVENT(cache, result)                                    \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
     PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* Linux has no event for the second level. An access to the last level has missed the second one. */
static const quern__hardware_code system_codes[QUERN_HARDWARE_EVENT_COUNT] = {
    [QUERN_HARDWARE_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [QUERN_HARDWARE_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [QUERN_HARDWARE_L1_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, MISS)},
    [QUERN_HARDWARE_L2_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, ACCESS)},
    [QUERN_HARDWARE_LLC_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, MISS)},
    [QUERN_HARDWARE_TLB_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(DTLB, MISS)},
};

/* Returns a file descriptor, or a negative error number. */
static int open_event(const quern__hardware_code *code, quern_hardware_scope scope)
{
    struct perf_event_attr attributes = {
        .type = code->type,
        .size = sizeof attributes,
        .config = code->config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .inherit = scope == QUERN_HARDWARE_PROCESS,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return file >= 0 ? (int)file : -errno;
}

static bool read_event(int file, quern_hardware_reading *reading, int event)
{
    uint64_t values[3];
    if (read(file, values, sizeof values) != (ssize_t)sizeof values) return false;
    reading->counts[event] = values[0];
    reading->enabled_ns[event] = values[1];
    reading->running_ns[event] = values[2];
    return true;
}

static void close_event(int file)
{
    close(file);
}

#else

static const quern__hardware_code system_codes[QUERN_HARDWARE_EVENT_COUNT];

static int open_event(const quern__hardware_code *code, quern_hardware_scope scope)
{
    (void)code;
    (void)scope;
    return -ENOSYS;
}

static bool read_event(int file, quern_hardware_reading *reading, int event)
{
    (void)file;
    (void)reading;
    (void)event;
    return false;
}

static void close_event(int file)
{
    (void)file;
}

#endif

/* ------------------------------------------------------------------------------------------ counters */

/* Each event is opened separately, not in a group: the system counts a group completely or not at all, and
 * may reserve one of the few counters for itself. */
typedef struct counters {
    int files[QUERN_HARDWARE_EVENT_COUNT]; /* negative if not available */
} counters;

static quern_result refuse(int error)
{
    const char *why = strerror(error);
    if (error == EACCES || error == EPERM)
        why = "the system does not allow it (see /proc/sys/kernel/perf_event_paranoid)";
    else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
        why = "this processor, or the virtual machine, has none";
    else if (error == ENOSYS)
        why = "this system has no perf_event_open";
    return quern__fail(QUERN_ERROR_UNAVAILABLE, "hardware counters are not available: %s", why);
}

static void close_counters(void *opened)
{
    counters *closed = opened;
    const quern_allocator allocator = quern_allocator_default();
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (closed->files[i] >= 0) close_event(closed->files[i]);
    quern__release(&allocator, closed, sizeof *closed, _Alignof(counters));
}

quern_result quern__hardware_open(const quern__hardware_code *codes, quern_hardware_scope scope,
                                  void **out_counters)
{
    const quern_allocator allocator = quern_allocator_default();
    counters *opened = quern__allocate(&allocator, sizeof *opened, _Alignof(counters));
    if (opened == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for hardware counters");
    int first_error = 0, count = 0;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++) {
        opened->files[i] = open_event(&codes[i], scope);
        count += opened->files[i] >= 0;
        if (opened->files[i] < 0 && first_error == 0) first_error = -opened->files[i];
    }
    if (count == 0) {
        close_counters(opened);
        return refuse(first_error);
    }
    *out_counters = opened;
    return QUERN_OK;
}

static bool read_counters(void *opened, quern_hardware_reading *out_reading)
{
    const counters *from = opened;
    *out_reading = (quern_hardware_reading){0};
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (from->files[i] >= 0 && !read_event(from->files[i], out_reading, i)) return false;
    return true;
}

static quern_result open_system(void *user_data, quern_hardware_scope scope, void **out_counters)
{
    (void)user_data;
    return quern__hardware_open(system_codes, scope, out_counters);
}

quern_hardware_source quern_hardware_source_default(void)
{
    return (quern_hardware_source){.open = open_system, .read = read_counters, .close = close_counters};
}
