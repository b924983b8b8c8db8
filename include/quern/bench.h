/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_H
#define QUERN_BENCH_H

/** @file
 * A harness for benchmarks of your own, the one that Quern's own benchmark uses.
 *
 * It is a library by itself: link quern::quern_bench, and after it quern::quern, which it uses. Without
 * CMake and pkg-config that is -lquern_bench -lquern -lm and the system's threads, and -lcjson if the
 * harness was built with the system's cJSON. Describe workloads in tables, and write the program's main
 * as
 *
 *     const quern_bench_suite suite = {
 *         .program = "my_bench", .workloads = workloads, .workload_count = workload_count};
 *     return quern_bench_main(&suite, argc, argv);
 *
 * which gives it options for thread counts, sizes, samples, output, comparisons and a report; --help
 * lists them.
 *
 * A workload has up to QUERN_BENCH_MAX_SUBJECTS subjects that do the same work. The first is the
 * control: the others are judged by their ratio to it, and must end with its checksum. Subjects live in
 * one process and are measured in turn, sample by sample, so a disturbance of the machine hits all of
 * them. A sample is
 *
 *     enter (not timed) | run (timed) | leave (not timed)
 *
 * docs/benchmarks/method.md says what happens with the samples. Call everything here from the main
 * thread, unless a comment says otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_BENCH_MAX_SUBJECTS 6 /**< Subjects of a workload. */
#define QUERN_BENCH_MAX_SIZES    4 /**< Default numbers of entities of a workload. */

/** What one measurement is about. */
typedef struct quern_bench_case {
    uint32_t entity_count; /**< The workload decides what this number means. */
    uint32_t thread_count; /**< 1 or more. */
} quern_bench_case;

struct quern_capture;

/** One way to do the work of a workload. Callbacks may end the program with quern_bench_die when something
 * fails. */
typedef struct quern_bench_subject {
    /** Returns the state for the others. May be NULL. */
    void *(*open)(const quern_bench_case *scene)QUERN__ZERO;
    void (*enter)(void *state) QUERN__ZERO; /**< Before each run, not timed. May be NULL. */
    /** Timed. NULL ends the list of subjects. */
    void (*run)(void *state, uint32_t pass_count) QUERN__ZERO;
    void (*leave)(void *state) QUERN__ZERO; /**< After each run, not timed. May be NULL. */
    /** Returns a checksum of what the passes did, independent of their order. Called after the last run,
     * before its leave. NULL: 0. */
    uint64_t (*checksum)(void *state) QUERN__ZERO;
    void (*close)(void *state) QUERN__ZERO; /**< Releases the state. May be NULL. */
    /** For --forecast: runs a pass that is one frame with quern_schedule_run_captured (<quern/profile.h>).
     * May be NULL. */
    quern_result (*capture)(void *state, struct quern_capture *capture) QUERN__ZERO;
} quern_bench_subject;

/** A workload. Zero is the default of every field that has one. Workloads are usually static tables. */
typedef struct quern_bench_workload {
    const char *name QUERN__ZERO;  /**< In options and results; required, and unique in the suite. */
    const char *alias QUERN__ZERO; /**< Another name for --workload; results have the first. May be NULL. */
    const char *summary QUERN__ZERO; /**< One line; required. */
    const char *unit QUERN__ZERO;    /**< What one operation is; default "pass". */
    /** Default sizes; a 0 that is not the first element ends the list. */
    uint32_t entity_counts[QUERN_BENCH_MAX_SIZES] QUERN__ZERO;
    bool fixed_size QUERN__ZERO;    /**< --entities does not apply. */
    bool single_thread QUERN__ZERO; /**< Left out for more than one thread. */
    /** run uses up what enter built: one pass per enter, many rounds per sample. */
    bool fresh QUERN__ZERO;
    bool footprint QUERN__ZERO; /**< Figures are the bytes by which run makes a process grow, not times. */
    /** A pass is a frame of a main loop: single passes are timed, too (--frames). Of a fresh workload these are
     * the passes of the samples. */
    bool frames QUERN__ZERO;
    /** Bytes that a pass touches, to put the caches into charts; 0: unknown. */
    uint32_t bytes_per_entity QUERN__ZERO;
    /** Returns the passes of one sample. NULL: as many as take 5 ms at first; then the checksums of two
     * runs may differ. */
    uint32_t (*pass_count)(uint32_t entity_count) QUERN__ZERO;
    /** Returns the operations of a pass; NULL: 1. */
    uint64_t (*operation_count)(uint32_t entity_count) QUERN__ZERO;
    quern_bench_subject subjects[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO; /**< The control first. */
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO;    /**< NULL: as in the suite. */
} quern_bench_workload;

/** All workloads of a program. Zero is the default of every field that has one. Nothing is copied: what
 * pointers point to must live until quern_bench_main returns. CMake knows flags and commit:
 *
 *     quern_bench_describe(my_bench) # after the target's compile options
 *
 * gives my_bench the header "quern_bench_build.h", made at each build, which defines QUERN_BENCH_COMMIT,
 * and defines QUERN_BENCH_FLAGS. */
typedef struct quern_bench_suite {
    const char *program QUERN__ZERO;                          /**< In messages and help; default "bench". */
    const char *summary QUERN__ZERO;                          /**< One line for --help; may be NULL. */
    const quern_bench_workload *const *workloads QUERN__ZERO; /**< In the order in which they run. */
    uint32_t workload_count QUERN__ZERO;                      /**< At least 1. */
    /** Default "control", "subject", "subject2" ... */
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS] QUERN__ZERO;
    const char *compiler QUERN__ZERO; /**< Of the measured code; default: the compiler of this library. */
    const char *flags QUERN__ZERO;    /**< The compiler's; default "unknown". */
    /** Of the measured code's sources; default "unknown", and then two versions look alike. */
    const char *commit QUERN__ZERO;
} quern_bench_suite;

/** What quern_bench_main returns. */
enum {
    QUERN_BENCH_EXIT_OK = 0,     /**< Everything ran and agreed. */
    QUERN_BENCH_EXIT_FAILED = 1, /**< Something failed, a subject disagrees with its control, or
                                    --fail-slower found nothing to compare. */
    QUERN_BENCH_EXIT_USAGE = 2,  /**< The command line is wrong; nothing was measured. */
    QUERN_BENCH_EXIT_SLOWER = 3, /**< With --fail-slower: something is slower than before. */
};

/** Measures what the command line asks for, and returns the exit status for main. Results go to stdout;
 * progress (on a terminal), notes and errors go to stderr. Only one call at a time. */
QUERN_API int quern_bench_main(const quern_bench_suite *suite, int argc, char **argv);

/* ----------------------------------------------------------------------------------- for the subjects */

struct quern_trace;

/** Returns the trace of --trace, for pools and schedules that subjects make (the field trace of their
 * definitions); NULL without the option. It runs for some passes of the first subject after the control,
 * after the last sample of each case; the file has the last case. */
QUERN_API struct quern_trace *quern_bench_trace(void);

struct quern_schedule;

/** Names the schedule whose frames are the passes of a subject, for --profile; call it in open. Its frames
 * are profiled after everything else, in the last placement of each case. Without the option this does
 * nothing. */
QUERN_API void quern_bench_set_schedule(struct quern_schedule *schedule);

/** Makes the compiler assume that the memory at pointer is read and changed here, so it cannot leave out
 * work on results that nothing else uses. Costs no instruction. Put values that are only in a register
 * into a variable first. Threads: any. */
static inline void quern_bench_keep(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

/** Returns the time of a clock that never goes back. Threads: any. */
QUERN_API uint64_t quern_bench_now_ns(void);

/** Returns zeroed memory, to be released with free(). Without memory the program ends with a message.
 * Threads: any. */
QUERN_API void *quern_bench_allocate(size_t count, size_t size_bytes);

/** Prints the program's name and the message to stderr, and ends the program with status 1. Threads:
 * any. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2), noreturn, cold))
#endif
QUERN_API void
quern_bench_die(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
