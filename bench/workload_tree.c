/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Trees of 100 nodes on 5 levels. Each node has Position, Velocity and at most three children. tree_create
 * creates them node by node. tree_destroy destroys all trees but the last by their roots. tree_reparent
 * gives random nodes random parents; tree_reparent_level chooses parents of the same depth as before.
 *
 * The control keeps the links and the depth of each node in arrays, indexed by the number of the node. */

#include "bench/raw.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>

enum { TREE_NODES = 100, CHILDREN = 3, LAST_LEVEL = 40, LEVEL_BEFORE = 13, NODES_PER_MOVE = 10 };

#define NO_NODE UINT32_MAX

static uint32_t tree_parent(uint32_t node)
{
    const uint32_t number = node % TREE_NODES;
    return number == 0 ? NO_NODE : node - number + (number - 1) / CHILDREN;
}

static uint32_t find_count(uint32_t entity_count)
{
    return entity_count < 2 * TREE_NODES ? 2 * TREE_NODES : entity_count / TREE_NODES * TREE_NODES;
}

static uint64_t node_count(uint32_t entity_count)
{
    return find_count(entity_count);
}

static uint64_t doomed_count(uint32_t entity_count)
{
    return find_count(entity_count) - TREE_NODES;
}

static uint64_t move_count(uint32_t entity_count)
{
    return find_count(entity_count) / NODES_PER_MOVE;
}

/* ------------------------------------------------------------------------------------ links in arrays */

typedef struct raw_node {
    uint32_t parent, first, next, previous, depth;
} raw_node;

typedef struct tree_move {
    uint32_t node, parent;
} tree_move;

typedef struct raw_tree {
    raw_store store;
    uint32_t count;
    raw_node *nodes;
    raw_entity *entities;
    uint32_t *stack;
    tree_move *moves;
    bool keeps_depth;
} raw_tree;

static void raw_link(raw_node *nodes, uint32_t node, uint32_t parent)
{
    raw_node *child = &nodes[node];
    child->parent = parent;
    child->next = NO_NODE;
    child->depth = nodes[parent].depth + 1;
    const uint32_t first = nodes[parent].first;
    if (first == NO_NODE) {
        nodes[parent].first = child->previous = node;
        return;
    }
    child->previous = nodes[first].previous;
    nodes[child->previous].next = node;
    nodes[first].previous = node;
}

static void raw_unlink(raw_node *nodes, uint32_t node)
{
    const raw_node *child = &nodes[node];
    raw_node *parent = &nodes[child->parent];
    if (child->next != NO_NODE)
        nodes[child->next].previous = child->previous;
    else if (parent->first != node)
        nodes[parent->first].previous = child->previous;
    if (parent->first == node)
        parent->first = child->next;
    else
        nodes[child->previous].next = child->next;
}

/* Lists the node and all its descendants level by level. Returns their number. */
static uint32_t raw_collect(const raw_node *nodes, uint32_t root, uint32_t *out)
{
    uint32_t count = 1;
    out[0] = root;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t child = nodes[out[i]].first; child != NO_NODE; child = nodes[child].next)
            out[count++] = child;
    return count;
}

static void raw_move(raw_tree *tree, const tree_move *move)
{
    raw_node *nodes = tree->nodes;
    const uint32_t depth = nodes[move->node].depth;
    if (nodes[move->node].parent == move->parent) return;
    raw_unlink(nodes, move->node);
    raw_link(nodes, move->node, move->parent);
    if (nodes[move->node].depth == depth) return;
    const uint32_t count = raw_collect(nodes, move->node, tree->stack);
    for (uint32_t i = 1; i < count; i++)
        nodes[tree->stack[i]].depth = nodes[nodes[tree->stack[i]].parent].depth + 1;
}

static void link_trees(raw_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        tree->nodes[i] =
            (raw_node){.parent = NO_NODE, .first = NO_NODE, .next = NO_NODE, .previous = NO_NODE};
        if (parent != NO_NODE) raw_link(tree->nodes, i, parent);
    }
}

static bool is_above(const raw_node *nodes, uint32_t node, uint32_t below)
{
    while (below != node && below != NO_NODE)
        below = nodes[below].parent;
    return below == node;
}

static uint32_t draw(uint32_t *state, uint32_t bound)
{
    *state = next_seed(*state);
    return (uint32_t)((uint64_t)*state * bound >> 32);
}

/* Draws a node that is no root, and a new parent that is not below it. If depths are to stay as they are,
 * draws the node from the last level and the parent from the level before. */
static tree_move draw_move(const raw_tree *tree, uint32_t *seed)
{
    const uint32_t tree_count = tree->count / TREE_NODES;
    for (;;) {
        tree_move move = {.node = draw(seed, tree->count), .parent = draw(seed, tree->count)};
        if (tree->keeps_depth)
            move = (tree_move){
                draw(seed, tree_count) * TREE_NODES + LAST_LEVEL + draw(seed, TREE_NODES - LAST_LEVEL),
                draw(seed, tree_count) * TREE_NODES + LEVEL_BEFORE + draw(seed, LAST_LEVEL - LEVEL_BEFORE)};
        if (move.node % TREE_NODES != 0 && !is_above(tree->nodes, move.node, move.parent)) return move;
    }
}

/* Draws all moves. Each is applied before the next one is drawn; in the end the trees are restored. */
static void draw_moves(raw_tree *tree)
{
    uint32_t seed = 12345;
    link_trees(tree);
    for (uint32_t i = 0; i < tree->count / NODES_PER_MOVE; i++) {
        tree->moves[i] = draw_move(tree, &seed);
        raw_move(tree, &tree->moves[i]);
    }
    link_trees(tree);
}

static raw_tree *tree_open(const bench_case *scene, bool keeps_depth)
{
    raw_tree *tree = bench_allocate(1, sizeof *tree);
    tree->count = find_count(scene->entity_count);
    tree->keeps_depth = keeps_depth;
    tree->nodes = bench_allocate(tree->count, sizeof *tree->nodes);
    tree->entities = bench_allocate(tree->count, sizeof *tree->entities);
    tree->stack = bench_allocate(tree->count, sizeof *tree->stack);
    tree->moves = bench_allocate(tree->count / NODES_PER_MOVE, sizeof *tree->moves);
    draw_moves(tree);
    return tree;
}

static void tree_close(raw_tree *tree)
{
    free(tree->nodes);
    free(tree->entities);
    free(tree->stack);
    free(tree->moves);
    free(tree);
}

static uint64_t hash_node(uint32_t node, uint32_t parent, uint32_t depth)
{
    return (uint64_t)(node + 1) * (parent + 2ull) + depth;
}

/* --------------------------------------------------------------------------------------------- raw */

static void *open_raw(const bench_case *scene)
{
    return tree_open(scene, false);
}

static void *open_level_raw(const bench_case *scene)
{
    return tree_open(scene, true);
}

static void begin_raw(void *state)
{
    raw_tree *tree = state;
    raw_store_open(&tree->store, RAW_MOVING);
}

static void run_create_raw(void *state, uint32_t pass_count)
{
    (void)pass_count;
    raw_tree *tree = state;
    for (uint32_t i = 0; i < tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        tree->entities[i] = raw_create_moving(&tree->store, i);
        tree->nodes[i] =
            (raw_node){.parent = NO_NODE, .first = NO_NODE, .next = NO_NODE, .previous = NO_NODE};
        if (parent != NO_NODE) raw_link(tree->nodes, i, parent);
    }
}

static void fill_raw(void *state)
{
    begin_raw(state);
    run_create_raw(state, 1);
}

static void run_destroy_raw(void *state, uint32_t pass_count)
{
    (void)pass_count;
    raw_tree *tree = state;
    for (uint32_t root = 0; root < tree->count - TREE_NODES; root += TREE_NODES)
        for (uint32_t count = raw_collect(tree->nodes, root, tree->stack); count-- > 0;) {
            const uint32_t node = tree->stack[count];
            tree->nodes[node] =
                (raw_node){.parent = NO_NODE, .first = NO_NODE, .next = NO_NODE, .previous = NO_NODE};
            raw_destroy(&tree->store, tree->entities[node], RAW_MOVING);
        }
}

static void run_reparent_raw(void *state, uint32_t pass_count)
{
    (void)pass_count;
    raw_tree *tree = state;
    for (uint32_t i = 0; i < tree->count / NODES_PER_MOVE; i++)
        raw_move(tree, &tree->moves[i]);
}

static void end_raw(void *state)
{
    raw_tree *tree = state;
    raw_store_close(&tree->store);
}

static uint64_t checksum_raw(void *state)
{
    const raw_tree *tree = state;
    uint64_t sum = raw_checksum_moving(&tree->store.tables[RAW_MAIN]);
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].parent != NO_NODE)
            sum += hash_node(i, tree->nodes[i].parent, tree->nodes[i].depth);
    return sum;
}

static void close_raw(void *state)
{
    tree_close(state);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct tree_scene {
    bench_world bench;
    quern_relation parent;
    raw_tree *tree; /* nodes and moves */
    quern_entity *entities;
    quern_entity *sources, *targets; /* nodes and parents of all moves, for one call */
} tree_scene;

static tree_scene *scene_open(const bench_case *scene, bool keeps_depth)
{
    tree_scene *trees = bench_allocate(1, sizeof *trees);
    trees->tree = tree_open(scene, keeps_depth);
    trees->entities = bench_allocate(trees->tree->count, sizeof *trees->entities);
    trees->sources = bench_allocate(trees->tree->count / NODES_PER_MOVE, sizeof *trees->sources);
    trees->targets = bench_allocate(trees->tree->count / NODES_PER_MOVE, sizeof *trees->targets);
    return trees;
}

static void *open_quern(const bench_case *scene)
{
    return scene_open(scene, false);
}

static void *open_level_quern(const bench_case *scene)
{
    return scene_open(scene, true);
}

static void begin_quern(void *state)
{
    tree_scene *trees = state;
    bench_world_open(&trees->bench);
    trees->parent = quern_world_parent(trees->bench.world);
}

static void create_node(tree_scene *trees, uint32_t i, uint32_t parent)
{
    const Position position = start_position(i);
    const Velocity velocity = start_velocity(i);
    const quern_component components[] = {trees->bench.position, trees->bench.velocity,
                                          quern_relation_component(trees->parent)};
    const void *const values[] = {&position, &velocity,
                                  parent != NO_NODE ? &trees->entities[parent] : NULL};
    REQUIRE(quern_entity_create_with(trees->bench.world, components, values, parent != NO_NODE ? 3 : 2,
                                     &trees->entities[i]));
}

static void run_create_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++)
        create_node(trees, i, tree_parent(i));
}

/* Creates each entity without a parent, and then relates it. */
static void run_relate_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        trees->entities[i] = bench_world_create_moving(&trees->bench, i);
        if (parent == NO_NODE) continue;
        REQUIRE(quern_entity_relate(trees->bench.world, trees->entities[i], trees->parent,
                                    trees->entities[parent]));
    }
}

/* Creates entities without a relation, to show its cost. The checksum is computed as if they had one. */
static void run_flat_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++)
        trees->entities[i] = bench_world_create_moving(&trees->bench, i);
}

static void fill_quern(void *state)
{
    begin_quern(state);
    run_create_quern(state, 1);
}

static void run_destroy_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    for (uint32_t root = 0; root < trees->tree->count - TREE_NODES; root += TREE_NODES)
        REQUIRE(quern_entity_destroy(trees->bench.world, trees->entities[root]));
}

static void run_reparent_quern(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count / NODES_PER_MOVE; i++) {
        const tree_move move = trees->tree->moves[i];
        REQUIRE(quern_entity_relate(trees->bench.world, trees->entities[move.node], trees->parent,
                                    trees->entities[move.parent]));
    }
}

/* Makes all moves in one call. */
static void run_reparent_many(void *state, uint32_t pass_count)
{
    (void)pass_count;
    tree_scene *trees = state;
    const uint32_t count = trees->tree->count / NODES_PER_MOVE;
    for (uint32_t i = 0; i < count; i++) {
        trees->sources[i] = trees->entities[trees->tree->moves[i].node];
        trees->targets[i] = trees->entities[trees->tree->moves[i].parent];
    }
    REQUIRE(
        quern_entity_relate_many(trees->bench.world, trees->sources, trees->parent, trees->targets, count));
}

static void end_quern(void *state)
{
    tree_scene *trees = state;
    bench_world_close(&trees->bench);
}

/* Computes the checksum by node numbers. A new world uses slots in order, so a slot is a node number. */
static uint64_t checksum_quern(void *state)
{
    tree_scene *trees = state;
    quern_world *world = trees->bench.world;
    uint64_t sum = bench_world_checksum_moving(&trees->bench);
    for (uint32_t i = 0; i < trees->tree->count; i++) {
        if (!quern_entity_is_alive(world, trees->entities[i])) continue;
        const quern_entity parent = quern_entity_target(world, trees->entities[i], trees->parent);
        if (quern_entity_is_null(parent)) continue;
        uint32_t depth = 1;
        for (quern_entity above = parent;; depth++) {
            above = quern_entity_target(world, above, trees->parent);
            if (quern_entity_is_null(above)) break;
        }
        sum += hash_node(i, quern_entity_index(parent), depth);
    }
    return sum;
}

static uint64_t checksum_flat(void *state)
{
    tree_scene *trees = state;
    uint64_t sum = bench_world_checksum_moving(&trees->bench);
    for (uint32_t i = 0; i < trees->tree->count; i++)
        if (trees->tree->nodes[i].parent != NO_NODE)
            sum += hash_node(i, trees->tree->nodes[i].parent, trees->tree->nodes[i].depth);
    return sum;
}

static void close_quern(void *state)
{
    tree_scene *trees = state;
    tree_close(trees->tree);
    free(trees->entities);
    free(trees->sources);
    free(trees->targets);
    free(trees);
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
            {open_raw, begin_raw, run_create_raw, end_raw, checksum_raw, close_raw, NULL},
            {open_quern, begin_quern, run_create_quern, end_quern, checksum_quern, close_quern, NULL},
            {open_quern, begin_quern, run_relate_quern, end_quern, checksum_quern, close_quern, NULL},
            {open_quern, begin_quern, run_flat_quern, end_quern, checksum_flat, close_quern, NULL},
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
            [BENCH_RAW] = {open_raw, fill_raw, run_destroy_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, fill_quern, run_destroy_quern, end_quern, checksum_quern,
                             close_quern, NULL},
        },
};

const bench_workload workload_tree_reparent = {
    .name = "tree_reparent",
    .summary = "give a random tenth of the nodes of trees another parent; descendants move along",
    .unit = "move",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = move_count,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, fill_raw, run_reparent_raw, end_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, fill_quern, run_reparent_quern, end_quern, checksum_quern,
                             close_quern, NULL},
            {open_quern, fill_quern, run_reparent_many, end_quern, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "many"},
};

const bench_workload workload_tree_reparent_level = {
    .name = "tree_reparent_level",
    .summary = "give leaves of trees another parent of the same depth as before",
    .unit = "move",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = move_count,
    .subjects =
        {
            [BENCH_RAW] = {open_level_raw, fill_raw, run_reparent_raw, end_raw, checksum_raw, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_level_quern, fill_quern, run_reparent_quern, end_quern, checksum_quern,
                             close_quern, NULL},
            {open_level_quern, fill_quern, run_reparent_many, end_quern, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "many"},
};
