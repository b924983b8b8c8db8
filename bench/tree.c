/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/tree.h"

#include <stdlib.h>

enum { LAST_LEVEL = 40, LEVEL_BEFORE = 13 };

uint32_t tree_find_count(uint32_t entity_count)
{
    return entity_count < 2 * TREE_NODES ? 2 * TREE_NODES : entity_count / TREE_NODES * TREE_NODES;
}

uint64_t tree_move_count(uint32_t entity_count)
{
    return tree_find_count(entity_count) / TREE_NODES_PER_MOVE;
}

/* ------------------------------------------------------------------------------------ links in arrays */

void tree_raw_link(raw_node *nodes, uint32_t node, uint32_t parent)
{
    raw_node *child = &nodes[node];
    child->parent = parent;
    child->next = TREE_NO_NODE;
    child->depth = nodes[parent].depth + 1;
    const uint32_t first = nodes[parent].first;
    if (first == TREE_NO_NODE) {
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
    if (child->next != TREE_NO_NODE)
        nodes[child->next].previous = child->previous;
    else if (parent->first != node)
        nodes[parent->first].previous = child->previous;
    if (parent->first == node)
        parent->first = child->next;
    else
        nodes[child->previous].next = child->next;
}

/* Lists the node and all its descendants level by level. Returns their number. */
uint32_t tree_raw_collect(const raw_node *nodes, uint32_t root, uint32_t *out)
{
    uint32_t count = 1;
    out[0] = root;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t child = nodes[out[i]].first; child != TREE_NO_NODE; child = nodes[child].next)
            out[count++] = child;
    return count;
}

void tree_raw_move(raw_tree *tree, const tree_move *move)
{
    raw_node *nodes = tree->nodes;
    const uint32_t depth = nodes[move->node].depth;
    if (nodes[move->node].parent == move->parent) return;
    raw_unlink(nodes, move->node);
    tree_raw_link(nodes, move->node, move->parent);
    if (nodes[move->node].depth == depth) return;
    const uint32_t count = tree_raw_collect(nodes, move->node, tree->stack);
    for (uint32_t i = 1; i < count; i++)
        nodes[tree->stack[i]].depth = nodes[nodes[tree->stack[i]].parent].depth + 1;
}

static void link_trees(raw_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        tree->nodes[i] = (raw_node){
            .parent = TREE_NO_NODE, .first = TREE_NO_NODE, .next = TREE_NO_NODE, .previous = TREE_NO_NODE};
        if (parent != TREE_NO_NODE) tree_raw_link(tree->nodes, i, parent);
    }
}

static bool is_above(const raw_node *nodes, uint32_t node, uint32_t below)
{
    while (below != node && below != TREE_NO_NODE)
        below = nodes[below].parent;
    return below == node;
}

static uint32_t draw(uint32_t *state, uint32_t bound)
{
    *state = next_seed(*state);
    return (uint32_t)((uint64_t)*state * bound >> 32);
}

/* Draws a node and a parent, of the last two levels if depths are to stay as they are. */
static tree_move draw_pair(const raw_tree *tree, uint32_t *seed)
{
    const uint32_t tree_count = tree->count / TREE_NODES;
    if (tree->which != TREE_MOVES_SAME_LEVEL)
        return (tree_move){.node = draw(seed, tree->count), .parent = draw(seed, tree->count)};
    return (tree_move){
        .node = draw(seed, tree_count) * TREE_NODES + LAST_LEVEL + draw(seed, TREE_NODES - LAST_LEVEL),
        .parent =
            draw(seed, tree_count) * TREE_NODES + LEVEL_BEFORE + draw(seed, LAST_LEVEL - LEVEL_BEFORE)};
}

/* Returns whether the move is one of those that the workload makes. Depths stay within the levels that a relation
 * tells apart. */
static bool is_wanted(const raw_tree *tree, const tree_move *move)
{
    const raw_node *node = &tree->nodes[move->node], *parent = &tree->nodes[move->parent];
    if (move->node % TREE_NODES == 0 || is_above(tree->nodes, move->node, move->parent)) return false;
    if (tree->which != TREE_MOVES_LEAF) return true;
    return node->first == TREE_NO_NODE && parent->depth + 1 != node->depth &&
           parent->depth + 1 < QUERN_MAX_RELATION_LEVEL;
}

static tree_move draw_move(const raw_tree *tree, uint32_t *seed)
{
    for (;;) {
        const tree_move move = draw_pair(tree, seed);
        if (is_wanted(tree, &move)) return move;
    }
}

/* Draws all moves. Each is applied before the next one is drawn; in the end the trees are restored. */
static void draw_moves(raw_tree *tree)
{
    uint32_t seed = 12345;
    link_trees(tree);
    for (uint32_t i = 0; i < tree->count / TREE_NODES_PER_MOVE; i++) {
        tree->moves[i] = draw_move(tree, &seed);
        tree_raw_move(tree, &tree->moves[i]);
    }
    link_trees(tree);
}

void *tree_open_raw(const bench_case *scene, tree_moves which)
{
    raw_tree *tree = bench_allocate(1, sizeof *tree);
    tree->count = tree_find_count(scene->entity_count);
    tree->which = which;
    tree->nodes = bench_allocate(tree->count, sizeof *tree->nodes);
    tree->entities = bench_allocate(tree->count, sizeof *tree->entities);
    tree->stack = bench_allocate(tree->count, sizeof *tree->stack);
    tree->moves = bench_allocate(tree->count / TREE_NODES_PER_MOVE, sizeof *tree->moves);
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

uint64_t tree_hash_node(uint32_t node, uint32_t parent, uint32_t depth)
{
    return (uint64_t)(node + 1) * (parent + 2ull) + depth;
}

/* --------------------------------------------------------------------------------------------- raw */

void tree_begin_raw(void *state)
{
    raw_tree *tree = state;
    raw_store_open(&tree->store, RAW_MOVING);
}

void tree_create_raw(void *state, uint32_t pass_count)
{
    raw_tree *tree = state;
    for (uint32_t i = 0; i < tree->count; i++) {
        const uint32_t parent = tree_parent(i);
        tree->entities[i] = raw_create_moving(&tree->store, i);
        tree->nodes[i] = (raw_node){
            .parent = TREE_NO_NODE, .first = TREE_NO_NODE, .next = TREE_NO_NODE, .previous = TREE_NO_NODE};
        if (parent != TREE_NO_NODE) tree_raw_link(tree->nodes, i, parent);
    }
}

void tree_fill_raw(void *state)
{
    tree_begin_raw(state);
    tree_create_raw(state, 1);
}

void tree_end_raw(void *state)
{
    raw_tree *tree = state;
    raw_store_close(&tree->store);
}

uint64_t tree_checksum_raw(void *state)
{
    const raw_tree *tree = state;
    uint64_t sum = raw_checksum_moving(&tree->store.tables[RAW_MAIN]);
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].parent != TREE_NO_NODE)
            sum += tree_hash_node(i, tree->nodes[i].parent, tree->nodes[i].depth);
    return sum;
}

void tree_close_raw(void *state)
{
    tree_close(state);
}

/* ------------------------------------------------------------------------------------------- quern */

void *tree_open_quern(const bench_case *scene, tree_moves which)
{
    tree_scene *trees = bench_allocate(1, sizeof *trees);
    trees->tree = tree_open_raw(scene, which);
    trees->entities = bench_allocate(trees->tree->count, sizeof *trees->entities);
    trees->sources = bench_allocate(trees->tree->count / TREE_NODES_PER_MOVE, sizeof *trees->sources);
    trees->targets = bench_allocate(trees->tree->count / TREE_NODES_PER_MOVE, sizeof *trees->targets);
    return trees;
}

void tree_begin_quern(void *state)
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
                                  parent != TREE_NO_NODE ? &trees->entities[parent] : NULL};
    REQUIRE(quern_entity_create_with(trees->bench.world, components, values, parent != TREE_NO_NODE ? 3 : 2,
                                     &trees->entities[i]));
}

void tree_create_quern(void *state, uint32_t pass_count)
{
    tree_scene *trees = state;
    for (uint32_t i = 0; i < trees->tree->count; i++)
        create_node(trees, i, tree_parent(i));
}

void tree_fill_quern(void *state)
{
    tree_begin_quern(state);
    tree_create_quern(state, 1);
}

void tree_end_quern(void *state)
{
    tree_scene *trees = state;
    bench_world_close(&trees->bench);
}

/* Computes the checksum by node numbers. A new world uses slots in order, so a slot is a node number. */
uint64_t tree_checksum_quern(void *state)
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
        sum += tree_hash_node(i, quern_entity_index(parent), depth);
    }
    return sum;
}

void tree_close_quern(void *state)
{
    tree_scene *trees = state;
    tree_close(trees->tree);
    free(trees->entities);
    free(trees->sources);
    free(trees->targets);
    free(trees);
}
