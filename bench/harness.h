/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_H
#define QUERN_BENCH_HARNESS_H

/* How a workload is described and measured.
 *
 * A workload has two subjects that do the same work: `raw`, hand-written arrays, is the control, and
 * `quern` the library. The harness alternates them sample by sample in one process, so that whatever
 * disturbs the machine hits both. A sample is
 *
 *     enter (not timed) | run (timed) | leave (not timed)
 *
 * For most workloads run makes as many passes as a sample needs to be long enough. One that uses up what
 * enter has built (creating, destroying) is marked fresh: its samples are the sum of that many
 * enter-run-leave rounds of one pass.
 *
 * A workload that is marked footprint measures memory instead of time: one pass, once, each subject in a process
 * of its own (footprint.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct bench_case {
    uint32_t entity_count;
    uint32_t thread_count;
} bench_case;

typedef struct bench_subject {
    void *(*open)(const bench_case *scene); /* returns the state that the others get */
    void (*enter)(void *state);             /* may be NULL */
    void (*run)(void *state, uint32_t pass_count);
    void (*leave)(void *state); /* may be NULL */
    /* After the last run, before its leave. Must not depend on the order of rows. */
    uint64_t (*checksum)(void *state);
    void (*close)(void *state);
} bench_subject;

enum { BENCH_RAW, BENCH_QUERN, BENCH_SUBJECT_COUNT };

enum { BENCH_MAX_SIZES = 4 };

extern const char *const bench_subject_names[BENCH_SUBJECT_COUNT];

typedef struct bench_workload {
    const char *name;
    const char *alias;                       /* another name that --workload finds it by, or NULL */
    const char *summary;                     /* one line */
    const char *unit;                        /* what one operation is: figures are nanoseconds per unit */
    uint32_t entity_counts[BENCH_MAX_SIZES]; /* by default, in this order; 0 ends the list */
    bool fixed_size;                         /* the number of entities cannot be chosen */
    bool single_thread;                      /* more threads are not supported */
    bool fresh;                              /* one pass per enter */
    bool footprint; /* figures are bytes per operation by which run makes the process grow */
    uint32_t (*pass_count)(uint32_t entity_count);      /* in one sample */
    uint64_t (*operation_count)(uint32_t entity_count); /* in one pass */
    bench_subject subjects[BENCH_SUBJECT_COUNT];
} bench_workload;

/* Nanoseconds, or bytes, per operation over the samples of one subject. */
typedef struct bench_figures {
    double median;
    double min;
    double max;
    uint64_t checksum;
} bench_figures;

typedef struct bench_result {
    const bench_workload *workload;
    bench_case scene;
    uint32_t repeat_count;
    bench_figures figures[BENCH_SUBJECT_COUNT];
} bench_result;

/* Warms up, then takes repeat_count samples of each subject in turn; of memory, one. */
bench_result bench_measure(const bench_workload *workload, const bench_case *scene, uint32_t repeat_count);

/* Both subjects did the same work. */
bool bench_result_agrees(const bench_result *result);

/* ------------------------------------------------------------------ usual parts of a workload's table */

/* Passes that touch about 4 and 1 million entities. */
uint32_t bench_passes_of_4m(uint32_t entity_count);
uint32_t bench_passes_of_1m(uint32_t entity_count);
/* As bench_passes_of_1m, but at most 100: each costs a world. */
uint32_t bench_passes_fresh(uint32_t entity_count);

uint64_t bench_operations_per_entity(uint32_t entity_count);
uint64_t bench_operations_per_frame(uint32_t entity_count);

/* --------------------------------------------------------------------------------- for the subjects */

static inline uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Zeroed. The program ends with a message when there is no memory. */
void *bench_allocate(size_t count, size_t size_bytes);

/* Prints the message and ends the program with status 1. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The numbers 0 to count - 1 in a shuffled order that is always the same; to be freed. */
uint32_t *bench_shuffled_indices(uint32_t count);

#endif
