/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/counters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

const char *const quern__bench_counter_keys[QUERN__BENCH_COUNTER_COUNT] = {
    "cycles", "instructions", "l1_misses", "l2_misses", "llc_misses", "tlb_misses"};

const char *const quern__bench_counter_titles[QUERN__BENCH_COUNTER_COUNT] = {
    "cycles", "instructions", "L1 misses", "L2 misses", "LLC misses", "TLB misses"};

/* -------------------------------------------------------------------------------------------- system */

#if defined(__linux__)

#define CACHE_EVENT(cache, result)                                    \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
     PERF_COUNT_HW_CACHE_RESULT_##result << 16)

typedef struct event {
    uint32_t type;
    uint64_t config;
} event;

/* Linux has no event for the second level; what comes as far as the last level has missed it. */
static const event events[QUERN__BENCH_COUNTER_COUNT] = {
    [QUERN__BENCH_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [QUERN__BENCH_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [QUERN__BENCH_L1_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, MISS)},
    [QUERN__BENCH_L2_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, ACCESS)},
    [QUERN__BENCH_LLC_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, MISS)},
    [QUERN__BENCH_TLB_MISSES] = {PERF_TYPE_HW_CACHE, CACHE_EVENT(DTLB, MISS)},
};

/* Of this process, user mode alone: what an unprivileged user may count where anything may be counted. */
static int open_event(quern__bench_counter counter)
{
    struct perf_event_attr attributes = {
        .type = events[counter].type,
        .size = sizeof attributes,
        .config = events[counter].config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return file >= 0 ? (int)file : -errno;
}

static void enable_event(int handle, bool enabled)
{
    ioctl(handle, enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static bool read_event(int handle, quern__bench_reading *reading)
{
    uint64_t values[3];
    if (read(handle, values, sizeof values) != sizeof values) return false;
    *reading = (quern__bench_reading){values[0], values[1], values[2]};
    return true;
}

static void close_event(int handle)
{
    close(handle);
}

#else

static int open_event(quern__bench_counter counter)
{
    (void)counter;
    return -ENOSYS;
}

static void enable_event(int handle, bool enabled)
{
    (void)handle;
    (void)enabled;
}

static bool read_event(int handle, quern__bench_reading *reading)
{
    (void)handle;
    (void)reading;
    return false;
}

static void close_event(int handle)
{
    (void)handle;
}

#endif

const quern__bench_counter_source quern__bench_system_counters = {open_event, enable_event, read_event,
                                                                  close_event};

/* ------------------------------------------------------------------------------------------ counting */

void quern__bench_counters_open(quern__bench_counters *counters, const quern__bench_counter_source *source)
{
    *counters = (quern__bench_counters){.source = source};
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++)
        counters->handles[i] = source->open((quern__bench_counter)i);
    quern__bench_counters_reset(counters);
}

void quern__bench_counters_close(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++) {
        if (counters->handles[i] >= 0) counters->source->close(counters->handles[i]);
        counters->handles[i] = -1;
    }
}

void quern__bench_counters_reset(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++)
        counters->totals[i] = counters->handles[i] >= 0 ? 0 : NAN;
}

void quern__bench_counters_start(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++) {
        if (counters->handles[i] < 0) continue;
        if (!counters->source->read(counters->handles[i], &counters->started[i])) counters->totals[i] = NAN;
        counters->source->enable(counters->handles[i], true);
    }
}

/* What was counted since the start, scaled up to the whole time; NAN when the event never had its turn. */
static double counted(const quern__bench_reading *from, const quern__bench_reading *to)
{
    const double enabled = (double)(to->enabled_ns - from->enabled_ns);
    const double running = (double)(to->running_ns - from->running_ns);
    return running > 0 ? (double)(to->value - from->value) * enabled / running : NAN;
}

void quern__bench_counters_stop(quern__bench_counters *counters)
{
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++)
        if (counters->handles[i] >= 0) counters->source->enable(counters->handles[i], false);
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++) {
        if (counters->handles[i] < 0) continue;
        quern__bench_reading now;
        const bool readable = counters->source->read(counters->handles[i], &now);
        counters->totals[i] += readable ? counted(&counters->started[i], &now) : NAN;
    }
}

/* ------------------------------------------------------------------------------------------- refusal */

static void explain(int error, char *reason, size_t reason_bytes)
{
    const char *why = strerror(error);
    if (error == EACCES || error == EPERM)
        why = "the system does not allow it (see /proc/sys/kernel/perf_event_paranoid)";
    else if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
        why = "this processor, or the virtual machine, has none";
    else if (error == ENOSYS)
        why = "this system has no perf_event_open";
    snprintf(reason, reason_bytes, "hardware counters are not available: %s", why);
}

bool quern__bench_counters_available(const quern__bench_counter_source *source, char *reason,
                                     size_t reason_bytes)
{
    int error = 0;
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++) {
        const int handle = source->open((quern__bench_counter)i);
        if (handle >= 0) {
            source->close(handle);
            return true;
        }
        if (error == 0) error = -handle;
    }
    explain(error, reason, reason_bytes);
    return false;
}
