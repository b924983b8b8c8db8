/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_H
#define QUERN_BENCH_H

/* A harness for benchmarks of your own, the one that Quern's own benchmark uses. It is a library by itself:
 * link quern::quern_bench and behind it quern::quern, which it uses; without CMake or pkg-config, that is
 * -lquern_bench -lquern -lm and the system's threads. Describe workloads in tables, and make the program's
 * main
 *
 *     const quern_bench_suite suite = {
 *         .program = "my_bench", .workloads = workloads, .workload_count = workload_count};
 *     return quern_bench_main(&suite, argc, argv);
 *
 * which gives it options for thread counts, sizes, samples, output, comparing and a report; --help lists
 * them.
 *
 * A workload has up to QUERN_BENCH_MAX_SUBJECTS subjects that do the same work. The first is the
 * control: the others are judged by their ratio to it, and must end with its checksum. Subjects live in
 * one process and are measured in turn, sample by sample, so whatever disturbs the machine hits all of
 * them. A sample is
 *
 *     enter (not timed) | run (timed) | leave (not timed)
 *
 * docs/benchmarks/method.md says what is done with the samples. Everything here is for the main thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quern/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_BENCH_MAX_SUBJECTS 4
#define QUERN_BENCH_MAX_SIZES    4 /* default numbers of entities of one workload */

/* What one measurement is asked for. */
typedef struct quern_bench_case {
    uint32_t entity_count; /* what the number means is up to the workload */
    uint32_t thread_count; /* 1 or more */
} quern_bench_case;

struct quern_capture; /* of <quern/profile.h> */

/* Callbacks may end the program with quern_bench_die when something fails. */
typedef struct quern_bench_subject {
    void *(*open)(const quern_bench_case *scene);  /* returns the state that the others get; may be NULL */
    void (*enter)(void *state);                    /* may be NULL */
    void (*run)(void *state, uint32_t pass_count); /* NULL ends the list of subjects */
    void (*leave)(void *state);                    /* may be NULL */
    uint64_t (*checksum)(void *state);             /* after the last run, before its leave; of what the
                                                           passes have done, in no order. May be NULL: 0 */
    void (*close)(void *state);                    /* may be NULL */
    /* For --forecast: runs a pass that is one frame with quern_schedule_run_captured. May be NULL. */
    quern_result (*capture)(void *state, struct quern_capture *capture);
} quern_bench_subject;

/* Zero is the default of every field that has one. Static tables are the usual way to make these. */
typedef struct quern_bench_workload {
    const char *name;    /* in options and results; required, and no other's in the suite */
    const char *alias;   /* another name that --workload finds it by; results bear the first. May be NULL */
    const char *summary; /* one line; required */
    const char *unit;    /* what one operation is; default "pass" */
    uint32_t
        entity_counts[QUERN_BENCH_MAX_SIZES]; /* default sizes; a 0 that is not the first ends the list */
    bool fixed_size;                          /* --entities does not apply */
    bool single_thread;                       /* left out when more threads are asked for */
    bool fresh;     /* run uses up what enter has built: one pass per enter, and a sample is many rounds */
    bool footprint; /* figures are bytes by which run makes a process grow, not time */
    bool frames;    /* a pass is a frame of a main loop: single passes are timed, too (--frames) */
    uint32_t
        bytes_per_entity; /* that a pass touches: puts the caches into charts; 0, the default: unknown */
    uint32_t (*pass_count)(uint32_t entity_count); /* in one sample; NULL: as many as take 5 ms at first,
                                                      so that checksums of two runs may differ */
    uint64_t (*operation_count)(uint32_t entity_count); /* in one pass; NULL: one */
    quern_bench_subject subjects[QUERN_BENCH_MAX_SUBJECTS];
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS]; /* NULL: as the suite calls them */
} quern_bench_workload;

/* Zero is the default of every field that has one. Nothing is copied: what is pointed to must live until
 * quern_bench_main returns. Of flags and commit, CMake knows what they are:
 *
 *     quern_bench_describe(my_bench) # behind the target's compile options
 *
 * gives my_bench the header "quern_bench_build.h", made at each build, which defines QUERN_BENCH_COMMIT,
 * and defines QUERN_BENCH_FLAGS. */
typedef struct quern_bench_suite {
    const char *program;                                 /* in messages and help; default "bench" */
    const char *summary;                                 /* for --help, one line; may be NULL */
    const quern_bench_workload *const *workloads;        /* in the order in which they run */
    uint32_t workload_count;                             /* at least 1 */
    const char *subject_names[QUERN_BENCH_MAX_SUBJECTS]; /* default "control", "subject", "subject2" … */
    const char *compiler; /* of what is measured; default: the compiler of this library */
    const char *flags;    /* with which it was compiled; default "unknown" */
    const char *commit; /* of its sources; default "unknown": two versions of a program would look alike */
} quern_bench_suite;

enum {
    QUERN_BENCH_EXIT_OK = 0,
    QUERN_BENCH_EXIT_FAILED = 1, /* something failed, a subject disagrees with its control, or
                                    --fail-slower found nothing to compare */
    QUERN_BENCH_EXIT_USAGE = 2,  /* the command line is wrong; nothing was measured */
    QUERN_BENCH_EXIT_SLOWER = 3, /* with --fail-slower: slower than what was compared with */
};

/* Measures what the command line asks for and returns the exit status for main. Results go to stdout;
 * progress (on a terminal), notes and errors go to stderr. Not to be called twice at a time. */
QUERN_API int quern_bench_main(const quern_bench_suite *suite, int argc, char **argv);

/* ----------------------------------------------------------------------------------- for the subjects */

struct quern_trace;

/* With --trace, the trace for pools and schedules that subjects make (the fields called trace of their
 * definitions); NULL without. It runs for some passes of the subject after the control, behind the last
 * sample of each case; that of the last case is written. */
QUERN_API struct quern_trace *quern_bench_trace(void);

struct quern_schedule;

/* For --profile: the schedule whose frames the passes of a subject are; to be called in its open. Such
 * frames are profiled after everything else, from the last placement of each case. Without the option it
 * does nothing. */
QUERN_API void quern_bench_set_schedule(struct quern_schedule *schedule);

/* Has the compiler believe that what the pointer points to is read and may be changed here, so that work
 * on it cannot be left out: for results that nothing else uses. Costs no instruction. What lies in a
 * register only should be put into a variable first. Any thread. */
static inline void quern_bench_keep(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

/* Of a clock that never goes back. Any thread. */
QUERN_API uint64_t quern_bench_now_ns(void);

/* Zeroed; to be given to free(). The program ends with a message when there is no memory. Any thread. */
QUERN_API void *quern_bench_allocate(size_t count, size_t size_bytes);

/* Prints the program's name and the message to stderr, and ends the program with status 1. Any thread. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2), noreturn, cold))
#endif
QUERN_API void
quern_bench_die(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
