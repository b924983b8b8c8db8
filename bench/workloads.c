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
    &workload_frame7_watched,
    &workload_frame20,
    &workload_create,
    &workload_create_naive,
    &workload_create_bulk,
    &workload_destroy_order,
    &workload_destroy_shuffled,
    &workload_destroy_many,
    &workload_destroy_many_shuffled,
    &workload_add_remove,
    &workload_add_remove2,
    &workload_add_two,
    &workload_get,
    &workload_get_many,
    &workload_ref,
    &workload_spawn,
    &workload_add_remove_deferred,
    &workload_record_add,
    &workload_playback_mixed,
    &workload_add_query,
    &workload_sync_empty,
    &workload_frame_empty0,
    &workload_frame_empty1,
    &workload_jobs_empty_64,
    &workload_jobs_empty_64_auto,
    &workload_jobs_empty_1024,
    &workload_jobs_empty_65536,
    &workload_jobs_many,
    &workload_jobs_chain,
    &workload_jobs_fib,
    &workload_jobs_wake,
    &workload_jobs_gap,
    &workload_jobs_graph,
    &workload_jobs_uneven,
    &workload_jobs_uneven_auto,
};

const uint32_t bench_workload_count = sizeof bench_workloads / sizeof bench_workloads[0];
