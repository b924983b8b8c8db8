/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_OWN_HARNESS_H
#define QUERN_BENCH_OWN_HARNESS_H

/* Shared by Quern's own workloads, which are described as in <quern/bench.h>. Their control, `raw`, uses
 * hand-written arrays; the other subject, `quern`, uses the library. */

#include <quern/bench.h>

typedef quern_bench_case bench_case;
typedef quern_bench_subject bench_subject;
typedef quern_bench_workload bench_workload;

enum { BENCH_RAW, BENCH_QUERN, BENCH_SUBJECT_COUNT };

#define bench_die    quern_bench_die
#define bench_now_ns quern_bench_now_ns

/* Return memory, to be released with free(), as a careful person would take it for arrays: aligned to lines of the cache,
 * and from 2 MiB on to huge pages, which are requested. bench_allocate returns zeros, so that all pages are there before
 * a measurement begins; the pages of bench_allocate_fresh are not. */
void *bench_allocate(size_t count, size_t size_bytes);
void *bench_allocate_fresh(size_t bytes);

/* Return the number of passes that together process about 4 million, 1 million or 100,000 entities. */
uint32_t bench_passes_of_4m(uint32_t entity_count);
uint32_t bench_passes_of_1m(uint32_t entity_count);
uint32_t bench_passes_of_100k(uint32_t entity_count);
/* Returns bench_passes_of_1m, but at most 100, for workloads that create a world for each pass. */
uint32_t bench_passes_fresh(uint32_t entity_count);

uint64_t bench_operations_per_entity(uint32_t entity_count);
uint64_t bench_operations_per_frame(uint32_t entity_count);

/* Returns the numbers 0 to count - 1 in a shuffled order, which depends only on count; to be released with
 * free(). */
uint32_t *bench_shuffled_indices(uint32_t count);

#endif
