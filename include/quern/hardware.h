/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_HARDWARE_H
#define QUERN_HARDWARE_H

/** @file
 * Counts of processors: cycles, instructions, cache misses.
 *
 * Profiles (quern_schedule_set_counting in <quern/profile.h>) and the benchmark harness read them from a
 * source: that of the operating system, or one of your own where Quern does not know the system's
 * counters. */

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a processor counts. */
typedef enum quern_hardware_event {
    QUERN_HARDWARE_CYCLES,       /**< Clock cycles. */
    QUERN_HARDWARE_INSTRUCTIONS, /**< Completed instructions. */
    QUERN_HARDWARE_L1_MISSES,    /**< Reads that miss the first-level data cache. */
    QUERN_HARDWARE_L2_MISSES,    /**< Reads that reach the last-level cache. */
    QUERN_HARDWARE_LLC_MISSES,   /**< Reads that miss the last-level cache. */
    QUERN_HARDWARE_TLB_MISSES,   /**< Reads that miss the data TLB. */
    QUERN_HARDWARE_EVENT_COUNT   /**< The number of events. */
} quern_hardware_event;

/** Returns the event in words, such as "L1 misses". Never NULL. Threads: any. */
QUERN_API const char *quern_hardware_event_string(quern_hardware_event event);

/** Whose events are counted. */
typedef enum quern_hardware_scope {
    QUERN_HARDWARE_THREAD, /**< The thread that opens the counters. */
    QUERN_HARDWARE_PROCESS /**< That thread, and all threads that it or one of them starts afterwards. */
} quern_hardware_scope;

/** What counters show at one moment.
 *
 * Processors have fewer counters than there are events. The system may let events take turns, so each has
 * two times: how long it was to be counted, and how long it was. */
typedef struct quern_hardware_reading {
    uint64_t counts[QUERN_HARDWARE_EVENT_COUNT]; /**< Events while the counter ran. */
    uint64_t
        enabled_ns[QUERN_HARDWARE_EVENT_COUNT]; /**< Time since opening; 0: the event is not available. */
    uint64_t running_ns[QUERN_HARDWARE_EVENT_COUNT]; /**< Time in which the counter ran. */
} quern_hardware_reading;

/** Returns the events between two readings, scaled up to the whole time. NAN for an event that was not
 * counted between them; NAN, with a message, for NULL and for an unknown event. Threads: any. */
QUERN_API double quern_hardware_difference(const quern_hardware_reading *from,
                                           const quern_hardware_reading *to, quern_hardware_event event);

/** Where counts come from. All functions are required. Several threads may call them at once, each with its
 * own counters. */
typedef struct quern_hardware_source {
    /** Starts to count. A profile opens counters once for each worker, and again when another thread
     * becomes that worker. Errors: UNAVAILABLE, or any other; then nothing is open. */
    quern_result (*open)(void *user_data, quern_hardware_scope scope, void **out_counters);
    /** Reads the counters, on the thread that opened them. Returns false when they cannot be read. */
    bool (*read)(void *counters, quern_hardware_reading *out_reading);
    /** Closes the counters. Threads: any. */
    void (*close)(void *counters);
    void *user_data; /**< Passed to open. */
} quern_hardware_source;

/** Returns the system's counters: on Linux those of perf_event_open, in user mode only, since that is all
 * an unprivileged user may count. An event that the processor lacks does not affect the others. When no
 * event is available, open fails with UNAVAILABLE and the message says why. Threads: any. */
QUERN_API quern_hardware_source quern_hardware_source_default(void);

#ifdef __cplusplus
}
#endif

#endif
