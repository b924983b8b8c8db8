/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_PROFILE_H
#define QUERN_BENCH_HARNESS_PROFILE_H

/* --profile: profiles of the frames of subjects that have set their schedule. */

#include <stdio.h>

#include <quern/bench.h>
#include <quern/hardware.h>

/* What quern_bench_set_schedule was given since the last call; or NULL. */
struct quern_schedule *quern__bench_take_schedule(void);

/* A text that grows while workloads are measured. */
typedef struct quern__bench_profiles {
    FILE *file; /* NULL: no profiles are wanted */
    char *text;
    size_t bytes;
    const quern_hardware_source *source; /* NULL: without hardware counters */
} quern__bench_profiles;

/* False, with a note, when there is no memory. */
bool quern__bench_profiles_open(quern__bench_profiles *profiles, const quern_hardware_source *source);

/* Has frames profiled from here until finish, which adds the schedule's table below a heading of its
 * own. */
void quern__bench_profiles_start(const quern__bench_profiles *profiles, struct quern_schedule *schedule);
void quern__bench_profiles_finish(const quern__bench_profiles *profiles, struct quern_schedule *schedule,
                                  const char *workload, const char *subject, const quern_bench_case *scene);

/* All of them; with a note when there are none. */
void quern__bench_profiles_write(quern__bench_profiles *profiles, FILE *file);

void quern__bench_profiles_close(quern__bench_profiles *profiles);

#endif
