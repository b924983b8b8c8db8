/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_HARDWARE_H
#define QUERN_HARDWARE_H

/** @file
 * Hardware counters: cycles, instructions, cache misses.
 *
 * Profiles (quern_schedule_set_counting in <quern/profile.h>) and the benchmark harness read hardware
 * counters from a source: that of the operating system, or one of the program if Quern does not support
 * the system's counters. */

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An event that hardware counters count. */
typedef enum quern_hardware_event {
    QUERN_HARDWARE_CYCLES,       /**< Clock cycles. */
    QUERN_HARDWARE_INSTRUCTIONS, /**< Completed instructions. */
    QUERN_HARDWARE_L1_MISSES,    /**< Reads that miss the first-level data cache. */
    QUERN_HARDWARE_L2_MISSES,    /**< Reads that reach the last-level cache. */
    QUERN_HARDWARE_LLC_MISSES,   /**< Reads that miss the last-level cache. */
    QUERN_HARDWARE_TLB_MISSES,   /**< Reads that miss the data TLB. */
    QUERN_HARDWARE_EVENT_COUNT   /**< Number of enumerators above. */
} quern_hardware_event;

/** Returns a description of the event, such as "L1 misses". Never NULL. Threads: any. */
QUERN_API const char *quern_hardware_event_string(quern_hardware_event event);

/** The threads that are counted. */
typedef enum quern_hardware_scope {
    QUERN_HARDWARE_THREAD, /**< The thread that opens the counters. */
    /** The thread that opens the counters, and all threads that it and its descendants start afterwards. */
    QUERN_HARDWARE_PROCESS
} quern_hardware_scope;

/** Values of hardware counters at one moment.
 *
 * Processors have fewer counters than there are events. The system may therefore alternate between events,
 * so each event has two times: since when it should be counted, and for how long it was. */
typedef struct quern_hardware_reading {
    uint64_t counts[QUERN_HARDWARE_EVENT_COUNT]; /**< Number of events while the counter ran. */
    /** Time since opening; 0 if the event is not available. */
    uint64_t enabled_ns[QUERN_HARDWARE_EVENT_COUNT];
    uint64_t running_ns[QUERN_HARDWARE_EVENT_COUNT]; /**< Time during which the counter ran. */
} quern_hardware_reading;

/** Returns the number of events between two readings, extrapolated to the whole time. NAN if the event was
 * not counted between them, and with a message if a reading is NULL or the event unknown. Threads: any. */
QUERN_API double quern_hardware_difference(const quern_hardware_reading *from,
                                           const quern_hardware_reading *to, quern_hardware_event event);

/** A source of hardware counters. All functions are required. Several threads may call them at the same
 * time, each with its own counters. */
typedef struct quern_hardware_source {
    /** Starts counting. A profile opens counters once per worker, and again when another thread becomes
     * that worker. Errors, with nothing opened: UNAVAILABLE, or any other. */
    quern_result (*open)(void *user_data, quern_hardware_scope scope, void **out_counters);
    /** Reads the counters, on the thread that opened them. Returns false if they cannot be read. */
    bool (*read)(void *counters, quern_hardware_reading *out_reading);
    /** Closes the counters. Threads: any. */
    void (*close)(void *counters);
    void *user_data; /**< Passed to open. */
} quern_hardware_source;

/** Returns the operating system's hardware counters. On Linux, these are perf_event_open counters in user
 * mode, because unprivileged users may not count more. An event that the processor lacks does not affect
 * the others. If no event is available, open fails with UNAVAILABLE, and the message gives the reason.
 * Threads: any. */
QUERN_API quern_hardware_source quern_hardware_source_default(void);

#ifdef __cplusplus
}
#endif

#endif
