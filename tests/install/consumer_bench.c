/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/bench.h>

#ifdef CONSUMER_IS_DESCRIBED
#include "quern_bench_build.h"
#endif

static uint32_t counter;

static void count(void *state, uint32_t pass_count)
{
    (void)state;
    counter += pass_count;
}

int main(int argc, char **argv)
{
    static const quern_bench_workload counting = {
        .name = "counting", .summary = "counts", .subjects = {{.run = count}}};
    const quern_bench_workload *workloads[] = {&counting};
    const quern_bench_suite suite = {
        .workloads = workloads,
        .workload_count = 1,
#ifdef CONSUMER_IS_DESCRIBED
        .flags = QUERN_BENCH_FLAGS,
        .commit = QUERN_BENCH_COMMIT,
#endif
    };
    return quern_bench_main(&suite, argc, argv);
}
