/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_POOL_H
#define QUERN_BENCH_POOL_H

/* Shared by the quern subjects, also those with components of their own: the check of results, and job pools. */

#include <quern/quern.h>

/* Ends the program with the library's message if the call fails. */
#define REQUIRE(call) bench_require((call), #call)

_Noreturn void bench_die_of(quern_result result, const char *call) __attribute__((cold));

static inline void bench_require(quern_result result, const char *call)
{
    if (result != QUERN_OK) bench_die_of(result, call);
}

quern_jobs *bench_jobs_create(uint32_t thread_count);
/* trace may be NULL. */
quern_jobs *bench_jobs_create_with(uint32_t thread_count, quern_trace *trace);

/* Wakes every thread of the pool, and returns when all are awake, or after two milliseconds. A sample then
 * measures frames in a row and not the first one after a sleep. */
void bench_jobs_wake(quern_jobs *jobs);

#endif
