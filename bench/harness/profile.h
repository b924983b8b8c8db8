/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PROFILE_H
#define QUERN_BENCH_HARNESS_PROFILE_H

/* --profile: profiles of the frames of subjects that have set their schedule. */

#include <stdio.h>

#include <quern/bench.h>
#include <quern/hardware.h>

/* Returns the schedule that quern_bench_set_schedule was given since the last call of this function; NULL
 * if it was not called. */
struct quern_schedule *quern__bench_take_schedule(void);

/* The tables of all profiles, in a text that grows while workloads are measured. */
typedef struct quern__bench_profiles {
    FILE *file; /* stream that writes to `text`; NULL: profiling is off */
    char *text;
    size_t bytes;                        /* size of the text */
    const quern_hardware_source *source; /* NULL: no hardware counters */
} quern__bench_profiles;

/* Opens an empty text. Returns false, with a note, if memory is exhausted. */
bool quern__bench_profiles_open(quern__bench_profiles *profiles, const quern_hardware_source *source);

/* Start switches the profile of the schedule on. Finish switches it off and appends a heading and the
 * schedule's table to the text. */
void quern__bench_profiles_start(const quern__bench_profiles *profiles, struct quern_schedule *schedule);
void quern__bench_profiles_finish(const quern__bench_profiles *profiles, struct quern_schedule *schedule,
                                  const char *workload, const char *subject, const quern_bench_case *scene);

/* Writes the text to the file; prints a note if no schedule was profiled. */
void quern__bench_profiles_write(quern__bench_profiles *profiles, FILE *file);

void quern__bench_profiles_close(quern__bench_profiles *profiles);

#endif
