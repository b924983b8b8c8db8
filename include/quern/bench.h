/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_H
#define QUERN_BENCH_H

/** @file
 * A harness for the benchmarks of your own programs. Quern's own benchmark uses it, too.
 *
 * The harness is a separate library: link quern::quern_bench, and after it quern::quern. Without CMake and
 * pkg-config, link -lquern_bench -lquern -lm and the system's thread library, and -lcjson if the
 * harness was built with the system's cJSON. Describe workloads in tables, and write main as
 *
 *     const quern_bench_suite suite = {
 *         .program = "my_bench", .workloads = workloads, .workload_count = workload_count};
 *     return quern_bench_main(&suite, argc, argv);
 *
 * The program then has options for thread counts, sizes, samples, output, comparisons and a report;
 * --help lists them.
 *
 * A workload has up to QUERN_BENCH_MAX_SUBJECTS subjects that do the same work. The first subject is the
 * control: each other subject is reported as a ratio to the control, and its checksum must equal the
 * control's checksum. Subjects run in one process and are measured in turn, sample by sample, so that a
 * disturbance of the machine affects all of them. A sample is
 *
 *     enter (not timed) | run (timed) | leave (not timed)
 *
 * docs/benchmarks/method.md explains how samples are evaluated.
 *
 * Threads: main, unless a comment says otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_BENCH_MAX_SUBJECTS 6 /**< Maximum number of subjects of a workload. */
#define QUERN_BENCH_MAX_SIZES    4 /**< Maximum number of default sizes of a workload. */

/** The parameters of one measurement. */
typedef struct quern_bench_case {
    uint32_t entity_count; /**< Size of the workload; the workload defines its meaning. */
    uint32_t thread_count; /**< Number of threads, at least 1. */
} quern_bench_case;

struct quern_frame_capture;

/** One implementation of a workload. On failure, callbacks may end the program with quern_bench_die. */
typedef struct quern_bench_subject {
    /** Creates and returns the state that the other callbacks get. May be NULL: the state is NULL. */
    void *(*open)(const quern_bench_case *scene)QUERN__ZERO;
    void (*enter)(void *state) QUERN__ZERO; /**< Called before each run, not timed. May be NULL. */
    /** Runs pass_count passes; timed. NULL ends the list of subjects. */
    void (*run)(void *state, uint32_t pass_count) QUERN__ZERO;
    void (*leave)(void *state) QUERN__ZERO; /**< Called after each run, not timed. May be NULL. */
    /** Returns a checksum of the results of all passes, independent of their order. Called after the last
     * run, before its leave. NULL: the checksum is 0. */
    uint64_t (*checksum)(void *state) QUERN__ZERO;
    void (*close)(void *state) QUERN__ZERO; /**< Frees the state. May be NULL. */
    /** For --forecast: runs a pass that consists of one frame, with quern_schedule_run_captured
     * (<quern/profile.h>). May be NULL. */
    quern_result (*capture)(void *state, struct quern_frame_capture *capture) QUERN__ZERO;
} quern_bench_subject;

/** A workload. A member that is zero has its default, if it has one. Workloads are usually static
 * tables. */
typedef struct quern_bench_workload {
    const char *name QUERN__ZERO; /**< Name in options and results; unique in the suite. Required. */
    /** Second name for --workload and --exclude; results contain `name` only. May be NULL. */
    const char *alias QUERN__ZERO;
    const char *summary QUERN__ZERO; /**< Description in one line. Required. */
    const char *unit QUERN__ZERO;    /**< Name of one operation; default "pass". */
    /** Default sizes. The list ends at the first 0 after the first element. */
    uint32_t entity_counts[QUERN_BENCH_MAX_SIZES] QUERN__ZERO;
    bool fixed_size QUERN__ZERO;    /**< Whether --entities does not apply. */
    bool single_thread QUERN__ZERO; /**< Whether the workload is skipped for more than one thread. */
    /** Whether `run` consumes the data that `enter` has built. Each call of `run` then does one pass, and
     * a sample has many rounds of enter, run and leave. */
    bool fresh QUERN__ZERO;
    /** Whether the workload measures memory instead of time: the bytes by which `run` makes the resident
     * set of the process grow. */
    bool footprint QUERN__ZERO;
    /** Whether a pass is a frame of a main loop. With --frames, the durations of single passes are then
     * recorded, too: with `fresh`, those of the samples, otherwise those of additional passes. */
    bool frames QUERN__ZERO;
    /** Bytes that a pass touches per entity, to mark cache sizes in charts; 0 if unknown. */
    uint32_t bytes_per_entity QUERN__ZERO;
    /** Returns the number of passes of one sample. NULL: the harness doubles the number until a sample of
     * the control takes 5 ms. The checksums of two runs of the program may then differ. */
    uint32_t (*pass_count)(uint32_t entity_count) QUERN__ZERO;
    /** Returns the number of operations of a pass; NULL means 1. */
    uint64_t (*operation_count)(uint32_t entity_count) QUERN__ZERO;
    /** Subjects, beginning with the control. */
    quern_bench_subject subjects[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO;
    /** Names of the subjects; for a NULL entry, the suite's name applies. */
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO;
} quern_bench_workload;

/** All workloads of a program. A member that is zero has its default, if it has one. Nothing is copied: all
 * pointers must remain valid until quern_bench_main returns. CMake provides the flags and the commit:
 *
 *     quern_bench_describe(my_bench) # after the target's compile options
 *
 * defines QUERN_BENCH_FLAGS for my_bench, and adds the header "quern_bench_build.h", generated at each
 * build, which defines QUERN_BENCH_COMMIT. */
typedef struct quern_bench_suite {
    const char *program QUERN__ZERO; /**< Name in messages and help; default "bench". */
    const char *summary QUERN__ZERO; /**< Description in one line, for --help. May be NULL. */
    /** Workloads, in the order in which they run. */
    const quern_bench_workload *const *workloads QUERN__ZERO;
    uint32_t workload_count QUERN__ZERO; /**< Number of workloads, at least 1. */
    /** Names of the subjects; default "control", "subject", "subject2" and so on. */
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO;
    /** Names of the workloads that --sweep measures if --workload selects none; default: all. */
    const char *const *sweep QUERN__ZERO;
    uint32_t sweep_count QUERN__ZERO; /**< Number of names in `sweep`. */
    /** Compiler of the measured code; default: the compiler of this library. */
    const char *compiler QUERN__ZERO;
    const char *flags QUERN__ZERO; /**< Compiler flags of the measured code; default "unknown". */
    /** Commit of the measured code's sources; default "unknown". Without a commit, results do not tell
     * versions apart. */
    const char *commit QUERN__ZERO;
} quern_bench_suite;

/** Exit statuses that quern_bench_main returns. */
enum {
    QUERN_BENCH_EXIT_OK = 0, /**< All workloads ran, and all checksums agree. */
    /** A workload failed, a file could not be written, the checksum of a subject differs from that of its
     * control, or --fail-slower found nothing to compare. */
    QUERN_BENCH_EXIT_FAILED = 1,
    QUERN_BENCH_EXIT_USAGE = 2,  /**< The command line is wrong; nothing was measured. */
    QUERN_BENCH_EXIT_SLOWER = 3, /**< With --fail-slower: a subject is slower than before. */
};

/** Runs the measurements that the command line requests, and returns the exit status for main. Results are
 * written to stdout; progress (on a terminal), notes and errors to stderr. Only one call may be active at
 * a time. */
QUERN_API int quern_bench_main(const quern_bench_suite *suite, int argc, char **argv);

/* ----------------------------------------------------------------------------------- for the subjects */

struct quern_trace;

/** Returns the trace of the option --trace, for the `trace` members of the pools and schedules of
 * subjects; NULL without the option. After the last sample of each case, the trace records some passes of
 * the first subject after the control. The file contains the events of the last case only. */
QUERN_API struct quern_trace *quern_bench_trace(void);

struct quern_schedule;

/** Sets the schedule that runs the passes of a subject, for --profile. Call it in `open`. The frames are
 * profiled after all measurements, in the last placement of each case. No effect without the option. */
QUERN_API void quern_bench_set_schedule(struct quern_schedule *schedule);

/** Makes the compiler assume that the memory at pointer is read and modified here. The compiler then cannot
 * remove work with otherwise unused results. Costs no instruction. To keep a computed value, store it
 * in a variable and pass the variable's address. Threads: any. */
static inline void quern_bench_keep(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

/** Returns the time of a monotonic clock in nanoseconds. Threads: any. */
QUERN_API uint64_t quern_bench_now_ns(void);

/** Returns zeroed memory, to be released with free(). If memory is exhausted, the program ends with a
 * message. Threads: any. */
QUERN_API void *quern_bench_allocate(size_t count, size_t size_bytes);

/** Prints the program's name and the message to stderr, and ends the program with status 1. Threads: any.
 */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2), noreturn, cold))
#endif
QUERN_API void
quern_bench_die(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
