/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/hardware_internal.h"

#include "core/base/base_internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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
        if (closed->files[i] >= 0) quern__hardware_counter_close(closed->files[i]);
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
        opened->files[i] = quern__hardware_counter_open(&codes[i], scope);
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
        if (from->files[i] >= 0 && !quern__hardware_counter_read(from->files[i], out_reading, i))
            return false;
    return true;
}

static quern_result open_system(void *user_data, quern_hardware_scope scope, void **out_counters)
{
    (void)user_data;
    return quern__hardware_open(quern__hardware_codes, scope, out_counters);
}

quern_hardware_source quern_hardware_source_default(void)
{
    return (quern_hardware_source){.open = open_system, .read = read_counters, .close = close_counters};
}
