/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* tree_create creates trees (tree.h) node by node. tree_destroy destroys all trees but the last by their roots. */

#include "bench/tree.h"
#include "bench/workloads.h"

static uint64_t node_count(uint32_t entity_count)
{
    return tree_find_count(entity_count);
}

static uint64_t doomed_count(uint32_t entity_count)
{
    return tree_find_count(entity_count) - TREE_NODES;
}

static void *open_raw(const bench_case *scene)
{
    return tree_open_raw(scene, TREE_MOVES_ANY);
}

static void run_destroy_raw(void *state, uint32_t pass_count)
{
    raw_tree *tree = state;
    for (uint32_t root = 0; root < tree->count - TREE_NODES; root += TREE_NODES)
        for (uint32_t count = tree_raw_collect(tree->nodes, root, tree->stack); count-- > 0;) {
            const uint32_t node = tree->stack[count];
            tree->nodes[node] = (raw_node){.parent = TREE_NO_NODE,
                                           .first = TREE_NO_NODE,
                                           .next = TREE_NO_NODE,
                                           .previous = TREE_NO_NODE};
            raw_destroy(&tree->store, tree->entities[node], RAW_MOVING);
        }
}

static void *open_quern(const bench_case *scene)
{
    return tree_open_quern(scene, TREE_MOVES_ANY);
}

/* Creates each entity without a parent, and then relates it. */
static void run_relate_quern(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        trees->entities[i] = bench_world_create_moving(&trees->bench, i);
        if (parent == TREE_NO_NODE) continue;
        REQUIRE(quern_entity_relate(trees->bench.world, trees->entities[i], trees->parent,
                                    trees->entities[parent]));
    }
}

/* Creates entities without a relation, to show its cost. The checksum is computed as if they had one. */
static void run_flat_quern(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++)
        trees->entities[i] = bench_world_create_moving(&trees->bench, i);
}

static void run_destroy_quern(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    for (uint32_t root = 0; root < trees->tree->count - TREE_NODES; root += TREE_NODES)
        REQUIRE(quern_entity_destroy(trees->bench.world, trees->entities[root]));
}

static uint64_t checksum_flat(void *state)
{
    tree_scene *trees = state;
    uint64_t sum = bench_world_checksum_moving(&trees->bench);
    for (uint32_t i = 0; i < trees->tree->count; i++)
        if (trees->tree->nodes[i].parent != TREE_NO_NODE)
            sum += tree_hash_node(i, trees->tree->nodes[i].parent, trees->tree->nodes[i].depth);
    return sum;
}

/* --------------------------------------------------------------------------------------- workloads */

const bench_workload workload_tree_create = {
    .name = "tree_create",
    .summary =
        "create trees of 100 nodes on five levels in a new world, node by node (flat: without parents)",
    .unit = "node",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = node_count,
    .subjects =
        {
            {open_raw, tree_begin_raw, tree_create_raw, tree_end_raw, tree_checksum_raw, tree_close_raw,
             NULL},
            {open_quern, tree_begin_quern, tree_create_quern, tree_end_quern, tree_checksum_quern,
             tree_close_quern, NULL},
            {open_quern, tree_begin_quern, run_relate_quern, tree_end_quern, tree_checksum_quern,
             tree_close_quern, NULL},
            {open_quern, tree_begin_quern, run_flat_quern, tree_end_quern, checksum_flat, tree_close_quern,
             NULL},
        },
    .subject_names = {"raw", "quern", "relate", "flat"},
};

const bench_workload workload_tree_destroy = {
    .name = "tree_destroy",
    .summary = "destroy all trees of 100 nodes but one, by their roots, one at a time",
    .unit = "node",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = doomed_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, tree_fill_raw, run_destroy_raw, tree_end_raw, tree_checksum_raw,
                           tree_close_raw, NULL},
            [BENCH_QUERN] = {open_quern, tree_fill_quern, run_destroy_quern, tree_end_quern,
                             tree_checksum_quern, tree_close_quern, NULL},
        },
};
