/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_WORKLOADS_H
#define QUERN_BENCH_WORKLOADS_H

/* All workloads, in the order in which they are listed and run. Declare a new workload here, and add it to
 * the array in workloads.c. */

#include "bench/harness.h"

extern const bench_workload workload_iter;
extern const bench_workload workload_iter_wide;
extern const bench_workload workload_iter_frag26;
extern const bench_workload workload_iter_frag_many;
extern const bench_workload workload_iter_arch10000;
extern const bench_workload workload_frame7;
extern const bench_workload workload_frame7_pairs;
extern const bench_workload workload_frame7_watched;
extern const bench_workload workload_frame20;
extern const bench_workload workload_frame20_pairs;
extern const bench_workload workload_demo;
extern const bench_workload workload_game;
extern const bench_workload workload_rollback8;
extern const bench_workload workload_history_save;
extern const bench_workload workload_history_save_all;
extern const bench_workload workload_history_restore;
extern const bench_workload workload_history_restore_all;
extern const bench_workload workload_systems_apart;
extern const bench_workload workload_create;
extern const bench_workload workload_create_naive;
extern const bench_workload workload_create_bulk;
extern const bench_workload workload_mem;
extern const bench_workload workload_destroy_order;
extern const bench_workload workload_destroy_shuffled;
extern const bench_workload workload_destroy_many;
extern const bench_workload workload_destroy_many_shuffled;
extern const bench_workload workload_add_remove;
extern const bench_workload workload_add_remove2;
extern const bench_workload workload_add_two;
extern const bench_workload workload_get;
extern const bench_workload workload_get_many;
extern const bench_workload workload_ref;
extern const bench_workload workload_toggle;
extern const bench_workload workload_walk_enabled;
extern const bench_workload workload_walk_all_enabled;
extern const bench_workload workload_changed_rows;
extern const bench_workload workload_written_rows;
extern const bench_workload workload_walk_half;
extern const bench_workload workload_react_add_one;
extern const bench_workload workload_react_set_one;
extern const bench_workload workload_react_remove_one;
extern const bench_workload workload_emit_one;
extern const bench_workload workload_spawn;
extern const bench_workload workload_archive_save;
extern const bench_workload workload_archive_load;
extern const bench_workload workload_session_1000;
extern const bench_workload workload_session_1;
extern const bench_workload workload_json_write;
extern const bench_workload workload_json_read;
extern const bench_workload workload_text_get;
extern const bench_workload workload_text_set;
extern const bench_workload workload_prefab_spawn;
extern const bench_workload workload_tree_create;
extern const bench_workload workload_tree_destroy;
extern const bench_workload workload_relate_any;
extern const bench_workload workload_relate_same_level;
extern const bench_workload workload_relate_leaf;
extern const bench_workload workload_relate_leaf_many;
extern const bench_workload workload_relate_leaf_command;
extern const bench_workload workload_edges_add;
extern const bench_workload workload_edges_remove;
extern const bench_workload workload_edges_iterate;
extern const bench_workload workload_edges_mem;
extern const bench_workload workload_add_remove_deferred;
extern const bench_workload workload_deferred_view;
extern const bench_workload workload_deferred_view_half;
extern const bench_workload workload_destroy_view;
extern const bench_workload workload_record_pair;
extern const bench_workload workload_react_add;
extern const bench_workload workload_record_add;
extern const bench_workload workload_playback_mixed;
extern const bench_workload workload_accumulate;
extern const bench_workload workload_list_push;
extern const bench_workload workload_add_query;
extern const bench_workload workload_event;
extern const bench_workload workload_event_emit;
extern const bench_workload workload_event_read;
extern const bench_workload workload_transform;
extern const bench_workload workload_transform_shuffled;
extern const bench_workload workload_transform_sparse;
extern const bench_workload workload_grid_build;
extern const bench_workload workload_grid_radius;
extern const bench_workload workload_sync_empty;
extern const bench_workload workload_frame_empty0;
extern const bench_workload workload_frame_empty1;
extern const bench_workload workload_compile_1000;
extern const bench_workload workload_compile_4000;
extern const bench_workload workload_jobs_empty_64;
extern const bench_workload workload_jobs_empty_64_auto;
extern const bench_workload workload_jobs_empty_1024;
extern const bench_workload workload_jobs_empty_65536;
extern const bench_workload workload_jobs_loop_async;
extern const bench_workload workload_jobs_cancel;
extern const bench_workload workload_jobs_cancel_small;
extern const bench_workload workload_jobs_many;
extern const bench_workload workload_jobs_chain;
extern const bench_workload workload_jobs_after3;
extern const bench_workload workload_jobs_fib;
extern const bench_workload workload_jobs_wake;
extern const bench_workload workload_jobs_wake_latency_1ms;
extern const bench_workload workload_jobs_wake_latency_10ms;
extern const bench_workload workload_jobs_wake_latency_60hz;
extern const bench_workload workload_jobs_wake_latency_100ms;
extern const bench_workload workload_jobs_wake_latency_1s;
extern const bench_workload workload_jobs_gap;
extern const bench_workload workload_jobs_graph;
extern const bench_workload workload_jobs_guests;
extern const bench_workload workload_jobs_outside4;
extern const bench_workload workload_jobs_uneven;
extern const bench_workload workload_jobs_uneven_auto;

extern const bench_workload *const bench_workloads[];
extern const uint32_t bench_workload_count;

#endif
