/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_bench: measures the library against hand-written code that does the same work.
 * docs/benchmarks.md says how, and how to read the figures. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "bench/footprint.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/workloads.h"

static void list_workloads(void)
{
    for (uint32_t i = 0; i < bench_workload_count; i++) {
        const bench_workload *workload = bench_workloads[i];
        const char *also = workload->alias != NULL ? " (also: " : "";
        printf("%-17s %s%s%s%s\n", workload->name, workload->summary, also,
               workload->alias != NULL ? workload->alias : "", workload->alias != NULL ? ")" : "");
    }
}

static bool verify(const bench_result *result)
{
    if (bench_result_agrees(result)) return true;
    fprintf(stderr,
            "quern_bench: %s, %u entities, %u threads: checksums differ: raw %016" PRIx64
            ", quern %016" PRIx64 "\n",
            result->workload->name, result->scene.entity_count, result->scene.thread_count,
            result->figures[BENCH_RAW].checksum, result->figures[BENCH_QUERN].checksum);
    return false;
}

/* With a note when it is not. */
static bool can_run(const bench_workload *workload, uint32_t thread_count)
{
    if (workload->single_thread && thread_count > 1) {
        fprintf(stderr, "quern_bench: %s is single-threaded: left out with %u threads\n", workload->name,
                thread_count);
        return false;
    }
    if (workload->footprint && bench_resident_bytes() == 0) {
        fprintf(stderr, "quern_bench: the system does not tell how much memory is used: %s left out\n",
                workload->name);
        return false;
    }
    return true;
}

/* False when the subjects disagree. */
static bool run_case(const bench_options *options, const bench_workload *workload, uint32_t entity_count,
                     uint32_t thread_count)
{
    const bench_case scene = {.entity_count = entity_count, .thread_count = thread_count};
    const bench_result result = bench_measure(workload, &scene, options->repeat_count);
    if (options->json)
        bench_report_json(&result);
    else
        bench_report_table_row(&result);
    return verify(&result);
}

static bool run_sizes(const bench_options *options, const bench_workload *workload, uint32_t thread_count)
{
    if (options->entity_count > 0 && !workload->fixed_size)
        return run_case(options, workload, options->entity_count, thread_count);
    bool agreed = run_case(options, workload, workload->entity_counts[0], thread_count);
    for (uint32_t i = 1; i < BENCH_MAX_SIZES && workload->entity_counts[i] > 0; i++)
        agreed &= run_case(options, workload, workload->entity_counts[i], thread_count);
    return agreed;
}

static bool run_workload(const bench_options *options, const bench_workload *workload)
{
    bool agreed = true;
    for (uint32_t i = 0; i < options->thread_count_count; i++)
        if (can_run(workload, options->thread_counts[i]))
            agreed &= run_sizes(options, workload, options->thread_counts[i]);
    return agreed;
}

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
    const bench_options options = bench_options_parse(argc, argv);
    if (options.list) {
        list_workloads();
        return EXIT_SUCCESS;
    }
    fix_memory_policy();
    if (!options.json) bench_report_table_head(options.repeat_count);
    bool agreed = true;
    for (uint32_t i = 0; i < bench_workload_count; i++) {
        const char *name = bench_options_select(&options, bench_workloads[i]);
        if (name == NULL) continue;
        bench_workload workload = *bench_workloads[i];
        workload.name = name; /* results bear the name they were asked for by */
        agreed &= run_workload(&options, &workload);
    }
    return agreed ? EXIT_SUCCESS : EXIT_FAILURE;
}
