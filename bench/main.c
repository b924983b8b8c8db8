/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_bench: measures the library against hand-written code that does the same work.
 * docs/benchmarks/method.md says how, docs/benchmarks/using.md how to read the figures. */

#include "bench/workloads.h"
#include "quern_bench_build.h" /* made by CMake at each build */

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* glibc moves this threshold by what was freed before, so whether a new world finds used memory or gets
 * fresh pages would hang on the workloads that ran before. Setting it keeps it: pages are always fresh. */
static void fix_memory_policy(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

int main(int argc, char **argv)
{
    fix_memory_policy();
    const quern_bench_suite suite = {
        .program = "quern_bench",
        .summary = "Measures workloads on quern and on hand-written arrays (raw), in turn, in one process.",
        .workloads = bench_workloads,
        .workload_count = bench_workload_count,
        .subject_names = {[BENCH_RAW] = "raw", [BENCH_QUERN] = "quern"},
        .flags = QUERN_BENCH_FLAGS,
        .commit = QUERN_BENCH_COMMIT,
    };
    return quern_bench_main(&suite, argc, argv);
}
