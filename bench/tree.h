/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_TREE_H
#define QUERN_BENCH_TREE_H

/* Trees of 100 nodes on 5 levels, for the workloads of trees and relations. Each node has Position, Velocity and at most
 * three children. The control keeps the links and the depth of each node in arrays, indexed by the number of the node;
 * rows are not sorted by depth. */

#include "bench/harness.h"
#include "bench/raw.h"
#include "bench/world.h"

enum { TREE_NODES = 100, TREE_NODES_PER_MOVE = 10 };

#define TREE_NO_NODE UINT32_MAX

/* Which nodes get another parent. */
typedef enum tree_moves {
    TREE_MOVES_ANY,        /* any node but roots, any parent that is not below it */
    TREE_MOVES_SAME_LEVEL, /* leaves of the last level, parents of the level before: no depth changes */
    TREE_MOVES_LEAF        /* nodes without children, parents by which their depth changes */
} tree_moves;

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
    tree_moves which;
} raw_tree;

/* The trees in a world. */
typedef struct tree_scene {
    bench_world bench;
    quern_relation parent;
    raw_tree *tree; /* nodes and moves */
    quern_entity *entities;
    quern_entity *sources, *targets; /* nodes and parents of all moves, for one call */
} tree_scene;

/* Returns the parent of a node in the trees as they are created, or TREE_NO_NODE for a root. */
static inline uint32_t tree_parent(uint32_t node)
{
    enum { CHILDREN = 3 };
    const uint32_t number = node % TREE_NODES;
    return number == 0 ? TREE_NO_NODE : node - number + (number - 1) / CHILDREN;
}

/* Rounds the number of entities to whole trees, at least two. */
uint32_t tree_find_count(uint32_t entity_count);

/* Returns the number of moves. */
uint64_t tree_move_count(uint32_t entity_count);

void tree_raw_link(raw_node *nodes, uint32_t node, uint32_t parent);

/* Gives a node another parent, and sets the depths of all nodes below it. */
void tree_raw_move(raw_tree *tree, const tree_move *move);

/* Lists the node and all its descendants level by level. Returns their number. */
uint32_t tree_raw_collect(const raw_node *nodes, uint32_t root, uint32_t *out);

/* The functions of the control: with the moves of the kind, and without any. */
void *tree_open_raw(const bench_case *scene, tree_moves which);
void tree_begin_raw(void *state);
void tree_create_raw(void *state, uint32_t pass_count);
void tree_fill_raw(void *state);
void tree_end_raw(void *state);
uint64_t tree_checksum_raw(void *state);
void tree_close_raw(void *state);

/* The functions of Quern's subjects. */
void *tree_open_quern(const bench_case *scene, tree_moves which);
void tree_begin_quern(void *state);
void tree_create_quern(void *state, uint32_t pass_count);
void tree_fill_quern(void *state);
void tree_end_quern(void *state);
uint64_t tree_checksum_quern(void *state);
void tree_close_quern(void *state);

uint64_t tree_hash_node(uint32_t node, uint32_t parent, uint32_t depth);

#endif
