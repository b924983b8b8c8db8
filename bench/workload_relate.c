/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Giving nodes of trees (tree.h) another parent: any nodes, leaves of the same depth as before, or leaves whose depth
 * changes. Singly, in one call, or by commands. */

#include "bench/tree.h"
#include "bench/workloads.h"

static void run_reparent_raw(void *state, uint32_t pass_count)
{
    raw_tree *tree = state;
    for (uint32_t i = 0; i < tree->count / TREE_NODES_PER_MOVE; i++)
        tree_raw_move(tree, &tree->moves[i]);
}

static void run_reparent_quern(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count / TREE_NODES_PER_MOVE; i++) {
        const tree_move move = trees->tree->moves[i];
        REQUIRE(quern_entity_relate(trees->bench.world, trees->entities[move.node], trees->parent,
                                    trees->entities[move.parent]));
    }
}

/* Makes all moves in one call. */
static void run_reparent_many(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    const uint32_t count = trees->tree->count / TREE_NODES_PER_MOVE;
    for (uint32_t i = 0; i < count; i++) {
        trees->sources[i] = trees->entities[trees->tree->moves[i].node];
        trees->targets[i] = trees->entities[trees->tree->moves[i].parent];
    }
    REQUIRE(
        quern_entity_relate_many(trees->bench.world, trees->sources, trees->parent, trees->targets, count));
}

/* Records all moves as commands and applies them. */
static void run_reparent_commands(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    quern_world *world = trees->bench.world;
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < trees->tree->count / TREE_NODES_PER_MOVE; i++) {
        const tree_move move = trees->tree->moves[i];
        quern_commands_relate(commands, trees->entities[move.node], trees->parent,
                              trees->entities[move.parent]);
    }
    REQUIRE(quern_world_flush(world));
}

static void *open_any_raw(const bench_case *scene)
{
    return tree_open_raw(scene, TREE_MOVES_ANY);
}

static void *open_any_quern(const bench_case *scene)
{
    return tree_open_quern(scene, TREE_MOVES_ANY);
}

static void *open_same_level_raw(const bench_case *scene)
{
    return tree_open_raw(scene, TREE_MOVES_SAME_LEVEL);
}

static void *open_same_level_quern(const bench_case *scene)
{
    return tree_open_quern(scene, TREE_MOVES_SAME_LEVEL);
}

static void *open_leaf_raw(const bench_case *scene)
{
    return tree_open_raw(scene, TREE_MOVES_LEAF);
}

static void *open_leaf_quern(const bench_case *scene)
{
    return tree_open_quern(scene, TREE_MOVES_LEAF);
}

/* --------------------------------------------------------------------------------------- workloads */

#define RAW_SUBJECT(open)                                                                            \
    {                                                                                                \
        open, tree_fill_raw, run_reparent_raw, tree_end_raw, tree_checksum_raw, tree_close_raw, NULL \
    }
#define QUERN_SUBJECT(open, run)                                                                \
    {                                                                                           \
        open, tree_fill_quern, run, tree_end_quern, tree_checksum_quern, tree_close_quern, NULL \
    }

#define RELATE_WORKLOAD                                                              \
    .unit = "move", .entity_counts = {100000}, .single_thread = true, .fresh = true, \
    .pass_count = bench_passes_fresh, .operation_count = tree_move_count

const bench_workload workload_relate_any = {
    .name = "relate_any",
    .summary = "give a random tenth of the nodes of trees another parent; descendants move along",
    RELATE_WORKLOAD,
    .subjects = {RAW_SUBJECT(open_any_raw), QUERN_SUBJECT(open_any_quern, run_reparent_quern),
                 QUERN_SUBJECT(open_any_quern, run_reparent_many)},
    .subject_names = {NULL, NULL, "many"},
};

const bench_workload workload_relate_same_level = {
    .name = "relate_same_level",
    .summary = "give leaves of trees another parent of the same depth as before",
    RELATE_WORKLOAD,
    .subjects = {RAW_SUBJECT(open_same_level_raw), QUERN_SUBJECT(open_same_level_quern, run_reparent_quern),
                 QUERN_SUBJECT(open_same_level_quern, run_reparent_many)},
    .subject_names = {NULL, NULL, "many"},
};

const bench_workload workload_relate_leaf = {
    .name = "relate_leaf",
    .summary = "give leaves of trees another parent, by which their depth changes, one by one",
    RELATE_WORKLOAD,
    .subjects = {RAW_SUBJECT(open_leaf_raw), QUERN_SUBJECT(open_leaf_quern, run_reparent_quern)},
};

const bench_workload workload_relate_leaf_many = {
    .name = "relate_leaf_many",
    .summary = "the moves of relate_leaf in one call of quern_entity_relate_many",
    RELATE_WORKLOAD,
    .subjects = {RAW_SUBJECT(open_leaf_raw), QUERN_SUBJECT(open_leaf_quern, run_reparent_many)},
};

const bench_workload workload_relate_leaf_command = {
    .name = "relate_leaf_command",
    .summary = "the moves of relate_leaf by commands, recorded and applied",
    RELATE_WORKLOAD,
    .subjects = {RAW_SUBJECT(open_leaf_raw), QUERN_SUBJECT(open_leaf_quern, run_reparent_commands)},
};
