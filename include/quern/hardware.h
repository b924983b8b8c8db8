/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_HARDWARE_H
#define QUERN_HARDWARE_H

/* What processors count: cycles, instructions, misses of caches. Profiles (quern_schedule_set_counting in
 * <quern/profile.h>) and the benchmark harness read them from a source: the system's, or one of your own on
 * a system whose counters Quern does not know. */

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quern_hardware_event {
    QUERN_HARDWARE_CYCLES,
    QUERN_HARDWARE_INSTRUCTIONS,
    QUERN_HARDWARE_L1_MISSES,  /* reads that the first-level data cache does not have */
    QUERN_HARDWARE_L2_MISSES,  /* reads that come as far as the last level */
    QUERN_HARDWARE_LLC_MISSES, /* reads that the last level does not have */
    QUERN_HARDWARE_TLB_MISSES, /* reads whose page the data TLB does not know */
    QUERN_HARDWARE_EVENT_COUNT
} quern_hardware_event;

/* In words, such as "L1 misses". Never NULL. Any thread. */
QUERN_API const char *quern_hardware_event_string(quern_hardware_event event);

/* Whose events are counted. */
typedef enum quern_hardware_scope {
    QUERN_HARDWARE_THREAD, /* the thread's that opens the counters */
    QUERN_HARDWARE_PROCESS /* that one's, and those of threads that it, or one of them, starts afterwards */
} quern_hardware_scope;

/* What counters show at some time. Processors have fewer counters than there are events; the system may
 * have events take turns, so each has two times: for which it was to be counted, and for which it was. */
typedef struct quern_hardware_reading {
    uint64_t counts[QUERN_HARDWARE_EVENT_COUNT];
    uint64_t enabled_ns[QUERN_HARDWARE_EVENT_COUNT]; /* 0: the event is not available */
    uint64_t running_ns[QUERN_HARDWARE_EVENT_COUNT];
} quern_hardware_reading;

/* Events between two readings, scaled up to the whole time; NAN for one that was not counted meanwhile.
 * NAN, with a message, for NULL and for an event that there is not. Any thread. */
QUERN_API double quern_hardware_difference(const quern_hardware_reading *from,
                                           const quern_hardware_reading *to, quern_hardware_event event);

/* Where counts come from. All functions are required; several threads may call them at once, each with
 * counters of its own. */
typedef struct quern_hardware_source {
    /* Begins to count. A profile opens counters once for each worker, and again when that is another thread.
     * Errors: UNAVAILABLE, and others as they come; nothing is opened then. */
    quern_result (*open)(void *user_data, quern_hardware_scope scope, void **out_counters);
    /* By the thread that opened them. False when they cannot be read. */
    bool (*read)(void *counters, quern_hardware_reading *out_reading);
    /* Any thread. */
    void (*close)(void *counters);
    void *user_data;
} quern_hardware_source;

/* The system's: on Linux perf_event_open, in user mode alone, which is what an unprivileged user may count
 * where anything may be counted. An event that the processor lacks takes no other with it. open fails with
 * UNAVAILABLE where there is none at all, and the message says why. Any thread. */
QUERN_API quern_hardware_source quern_hardware_source_default(void);

#ifdef __cplusplus
}
#endif

#endif
