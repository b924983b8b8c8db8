/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/workloads.h"

/* mem comes first: later there would be memory to reuse in this process and in those forked from it. */
const bench_workload *const bench_workloads[] = {
    &workload_mem,
    &workload_iter,
    &workload_iter_frag26,
    &workload_iter_frag_many,
    &workload_frame7,
    &workload_create,
    &workload_create_bulk,
    &workload_destroy_order,
    &workload_destroy_shuffled,
    &workload_add_remove,
    &workload_get,
    &workload_spawn,
    &workload_frame_empty0,
    &workload_frame_empty1,
};

const uint32_t bench_workload_count = sizeof bench_workloads / sizeof bench_workloads[0];
