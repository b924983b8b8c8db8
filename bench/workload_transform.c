/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* transform: world transforms of trees of entities, by quern::quern_transform. A tree has 100 nodes on five
 * levels; each node has three children as long as there are nodes left. All subjects compute a world
 * transform with the same function, so they differ only in how they find nodes and the transforms of their
 * parents.
 *
 * The control has arrays of all nodes with the index of the parent, sorted by level and then by tree; nodes
 * never move in these arrays. In transform, entities are created in that order. In transform_shuffled, each
 * level is created in a random order. In transform_sparse, one in a hundred roots moves, the same roots in
 * each frame. */

#include "bench/harness.h"
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <quern/kit/transform.h>

#include <stdlib.h>

enum { TREE_NODES = 100, LEVELS = 5, SPARSENESS = 100, NO_PARENT = -1 };

/* ------------------------------------------------------------------------------------------- forest */

/* All nodes of all trees, level by level. Within a level, nodes are in the order of their parents. */
typedef struct forest {
    uint32_t tree_count, node_count;
    uint32_t level_begin[LEVELS + 1];
    int32_t *parents; /* parents of the nodes */
    /* node_count + 1 elements: the children of node i are first_child[i] to first_child[i + 1] - 1. */
    uint32_t *first_child;
    quern_local3 *locals; /* start values of the nodes */
} forest;

/* Returns how many nodes of a tree are on the levels before this one; the root is on level 0. Within a tree,
 * the parent of node k is node (k - 1) / 3. */
static uint32_t nodes_before(uint32_t level)
{
    uint32_t count = 0, width = 1;
    for (uint32_t i = 0; i < level; i++, width *= 3)
        count += width;
    return count < TREE_NODES ? count : TREE_NODES;
}

static quern_local3 start_local(uint32_t i)
{
    static const float rotations[4][4] = {
        {0, 0, 0, 1}, {0.6f, 0, 0, 0.8f}, {0, 0.28f, 0, 0.96f}, {0.5f, 0.5f, -0.5f, 0.5f}};
    quern_local3 local = quern_local3_identity();
    local.translation[0] = (float)(i % 17u) * 0.25f;
    local.translation[1] = (float)(i % 31u) * -0.125f;
    local.translation[2] = (float)(i % 5u);
    memcpy(local.rotation, rotations[i % 4u], sizeof local.rotation);
    local.scale[i % 3u] = 1.0f + (float)(i % 7u) * 0.03125f;
    return local;
}

static void forest_open(forest *f, uint32_t entity_count)
{
    f->tree_count = entity_count / TREE_NODES > 0 ? entity_count / TREE_NODES : 1;
    f->node_count = f->tree_count * TREE_NODES;
    f->parents = bench_allocate(f->node_count, sizeof *f->parents);
    f->first_child = bench_allocate((size_t)f->node_count + 1, sizeof *f->first_child);
    f->locals = bench_allocate(f->node_count, sizeof *f->locals);
    uint32_t node = 0;
    for (uint32_t level = 0; level < LEVELS; level++) {
        const uint32_t before = nodes_before(level), width = nodes_before(level + 1) - before;
        const uint32_t above = level > 0 ? nodes_before(level - 1) : 0;
        f->level_begin[level] = node;
        for (uint32_t i = 0; i < f->tree_count * width; i++, node++) {
            const uint32_t tree = i / width, k = before + i % width;
            f->parents[node] =
                level == 0
                    ? NO_PARENT
                    : (int32_t)(f->level_begin[level - 1] + tree * (before - above) + (k - 1) / 3 - above);
            f->locals[node] = start_local(node);
        }
    }
    f->level_begin[LEVELS] = node;
    uint32_t child = f->tree_count;
    for (uint32_t i = 0; i <= f->node_count; i++) {
        f->first_child[i] = child;
        while (child < f->node_count && f->parents[child] == (int32_t)i)
            child++;
    }
}

static void forest_close(forest *f)
{
    free(f->parents);
    free(f->first_child);
    free(f->locals);
}

/* Returns the i-th root that moves; the same roots move in each frame. */
static uint32_t moved_root(uint32_t i)
{
    return i * SPARSENESS;
}

static float moved_place(uint32_t frame, uint32_t i)
{
    return (float)((frame + i) % 64u) * 0.5f;
}

static uint32_t moved_count(const forest *f)
{
    return f->tree_count / SPARSENESS > 0 ? f->tree_count / SPARSENESS : 1;
}

static uint64_t checksum_world(const quern_world3 *world)
{
    uint32_t words[12];
    memcpy(words, world, sizeof words);
    uint64_t sum = 0xCBF29CE484222325u;
    for (int i = 0; i < 12; i++)
        sum = (sum ^ words[i]) * 0x100000001B3u;
    return sum;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_scene {
    forest forest;
    quern_local3 *locals;
    quern_world3 *worlds;
    uint32_t level; /* level that the team processes */
    uint32_t frame;
    uint32_t thread_count;
    raw_team *team;
} raw_scene;

static void *open_raw(const bench_case *scene)
{
    raw_scene *raw = bench_allocate(1, sizeof *raw);
    forest_open(&raw->forest, scene->entity_count);
    raw->thread_count = scene->thread_count;
    raw->locals = bench_allocate(raw->forest.node_count, sizeof *raw->locals);
    raw->worlds = bench_allocate(raw->forest.node_count, sizeof *raw->worlds);
    memcpy(raw->locals, raw->forest.locals, raw->forest.node_count * sizeof *raw->locals);
    return raw;
}

static void enter_raw(void *state)
{
    raw_scene *raw = state;
    raw->team = raw_team_start(raw->thread_count);
}

static void leave_raw(void *state)
{
    const raw_scene *raw = state;
    raw_team_stop(raw->team);
}

static inline void raw_place(const raw_scene *raw, size_t begin, size_t end)
{
    const int32_t *parents = raw->forest.parents;
    for (size_t i = begin; i < end; i++)
        quern_world3_place(parents[i] == NO_PARENT ? NULL : &raw->worlds[parents[i]], &raw->locals[i],
                           &raw->worlds[i]);
}

static void raw_place_share(void *state, uint32_t part, uint32_t part_count)
{
    const raw_scene *raw = state;
    const uint32_t *begins = &raw->forest.level_begin[raw->level];
    const raw_range share = raw_team_share(begins[1] - begins[0], part, part_count);
    raw_place(raw, begins[0] + share.begin, begins[0] + share.begin + share.count);
}

static void run_raw(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (raw->level = 0; raw->level < LEVELS; raw->level++)
            raw_team_run(raw->team, raw_place_share, state);
}

/* Computes the subtrees of moved roots. The children of a range of nodes are a range of the next level. */
static void run_raw_sparse(void *state, uint32_t pass_count)
{
    raw_scene *raw = state;
    if (raw->frame == 0) raw_place(raw, 0, raw->forest.node_count);
    for (uint32_t pass = 0; pass < pass_count; pass++, raw->frame++)
        for (uint32_t i = 0; i < moved_count(&raw->forest); i++) {
            const uint32_t root = moved_root(i);
            raw->locals[root].translation[0] = moved_place(raw->frame, i);
            for (uint32_t begin = root, end = root + 1; begin < end;) {
                raw_place(raw, begin, end);
                begin = raw->forest.first_child[begin];
                end = raw->forest.first_child[end];
            }
        }
}

static uint64_t checksum_raw(void *state)
{
    const raw_scene *raw = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < raw->forest.node_count; i++)
        sum += checksum_world(&raw->worlds[i]);
    return sum;
}

static void close_raw(void *state)
{
    raw_scene *raw = state;
    forest_close(&raw->forest);
    free(raw->locals);
    free(raw->worlds);
    free(raw);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct quern_scene {
    forest forest;
    quern_world *world;
    quern_transform *transform;
    quern_schedule *schedule;
    quern_jobs *jobs;       /* NULL on one thread */
    quern_entity *entities; /* entities of the nodes */
    uint32_t frame;
} quern_scene;

/* Creates the entities level by level. is_shuffled: each level is created in a random order, so that the
 * row of an entity is independent of the row of its parent. */
static void create_entities(quern_scene *quern, bool is_shuffled)
{
    const forest *f = &quern->forest;
    const quern_relation parent = quern_world_parent(quern->world);
    const quern_component components[] = {quern_transform_local(quern->transform),
                                          quern_transform_world(quern->transform)};
    for (uint32_t level = 0; level < LEVELS; level++) {
        const uint32_t begin = f->level_begin[level], count = f->level_begin[level + 1] - begin;
        uint32_t *order = bench_shuffled_indices(count);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t node = begin + (is_shuffled ? order[i] : i);
            const void *values[] = {&f->locals[node], NULL};
            REQUIRE(quern_entity_create_with(quern->world, components, values, 2, &quern->entities[node]));
            if (level == 0) continue;
            REQUIRE(quern_entity_relate(quern->world, quern->entities[node], parent,
                                        quern->entities[f->parents[node]]));
        }
        free(order);
    }
}

/* Requests all locals for writing, like a system that animates all nodes, but changes none. */
static void touch(quern_context *context, const quern_view *view)
{
    quern_bench_keep(QUERN_COLUMN(view, 0, quern_local3));
}

static void *open_scene(const bench_case *scene, bool is_shuffled, bool is_sparse)
{
    quern_scene *quern = bench_allocate(1, sizeof *quern);
    forest_open(&quern->forest, scene->entity_count);
    quern->entities = bench_allocate(quern->forest.node_count, sizeof *quern->entities);
    REQUIRE(quern_world_create(NULL, &quern->world));
    REQUIRE(quern_transform_register(quern->world, NULL, &quern->transform));
    create_entities(quern, is_shuffled);
    if (scene->thread_count > 1) quern->jobs = bench_jobs_create(scene->thread_count);
    REQUIRE(quern_schedule_create(quern->world, NULL, &quern->schedule));
    const quern_system_def all_move = {
        .name = "touch",
        .run = touch,
        .terms = {quern_term_write(quern_transform_local(quern->transform))}};
    if (!is_sparse) REQUIRE(quern_schedule_add_system(quern->schedule, &all_move, NULL));
    REQUIRE(quern_transform_add_systems(quern->transform, quern->schedule, 0));
    quern_bench_set_schedule(quern->schedule);
    return quern;
}

static void *open_quern(const bench_case *scene)
{
    return open_scene(scene, false, false);
}

static void *open_shuffled(const bench_case *scene)
{
    return open_scene(scene, true, false);
}

static void *open_sparse(const bench_case *scene)
{
    return open_scene(scene, false, true);
}

static void enter_quern(void *state)
{
    const quern_scene *quern = state;
    if (quern->jobs != NULL) bench_jobs_wake(quern->jobs);
}

static void run_frame(const quern_scene *quern)
{
    REQUIRE(quern_schedule_run(quern->schedule, quern->jobs, (double)STEP_SECONDS));
}

static void run_quern(void *state, uint32_t pass_count)
{
    for (uint32_t pass = 0; pass < pass_count; pass++)
        run_frame(state);
}

/* Moves roots by handle, and marks each as changed. */
static void run_marked(void *state, uint32_t pass_count)
{
    quern_scene *quern = state;
    const quern_component local = quern_transform_local(quern->transform);
    if (quern->frame == 0) run_frame(quern);
    for (uint32_t pass = 0; pass < pass_count; pass++, quern->frame++) {
        for (uint32_t i = 0; i < moved_count(&quern->forest); i++) {
            const quern_entity root = quern->entities[moved_root(i)];
            quern_local3 *value = quern_entity_get(quern->world, root, local);
            value->translation[0] = moved_place(quern->frame, i);
            REQUIRE(quern_transform_mark(quern->transform, root));
        }
        run_frame(quern);
    }
}

/* Moves roots by quern_entity_set, which change filters notice. */
static void run_set(void *state, uint32_t pass_count)
{
    quern_scene *quern = state;
    const quern_component local = quern_transform_local(quern->transform);
    if (quern->frame == 0) run_frame(quern);
    for (uint32_t pass = 0; pass < pass_count; pass++, quern->frame++) {
        for (uint32_t i = 0; i < moved_count(&quern->forest); i++) {
            const uint32_t node = moved_root(i);
            quern_local3 value = quern->forest.locals[node];
            value.translation[0] = moved_place(quern->frame, i);
            REQUIRE(quern_entity_set(quern->world, quern->entities[node], local, &value));
        }
        run_frame(quern);
    }
}

static uint64_t checksum_quern(void *state)
{
    quern_scene *quern = state;
    const quern_component world = quern_transform_world(quern->transform);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < quern->forest.node_count; i++)
        sum += checksum_world(quern_entity_get(quern->world, quern->entities[i], world));
    return sum;
}

static void close_quern(void *state)
{
    quern_scene *quern = state;
    quern_schedule_destroy(quern->schedule);
    quern_jobs_destroy(quern->jobs);
    quern_transform_release(quern->transform);
    quern_world_destroy(quern->world);
    forest_close(&quern->forest);
    free(quern->entities);
    free(quern);
}

/* --------------------------------------------------------------------------------------- workloads */

static uint64_t moved_nodes(uint32_t entity_count)
{
    const uint32_t tree_count = entity_count / TREE_NODES;
    return (uint64_t)(tree_count / SPARSENESS > 0 ? tree_count / SPARSENESS : 1) * TREE_NODES;
}

static uint32_t sparse_passes(uint32_t entity_count)
{
    return 200;
}

enum { NODE_BYTES = sizeof(quern_local3) + sizeof(quern_world3) + sizeof(quern_entity) };

const bench_workload workload_transform = {
    .name = "transform",
    .summary = "compute all world transforms of trees of 100 nodes on five levels",
    .unit = "node",
    .entity_counts = {100000},
    .bytes_per_entity = NODE_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern, NULL, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_transform_shuffled = {
    .name = "transform_shuffled",
    .summary = "transform, with the entities of each level in a random order (raw: in order)",
    .unit = "node",
    .entity_counts = {100000},
    .bytes_per_entity = NODE_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw, leave_raw, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_shuffled, enter_quern, run_quern, NULL, checksum_quern, close_quern,
                             NULL},
        },
};

const bench_workload workload_transform_sparse = {
    .name = "transform_sparse",
    .summary = "transform, with one in a hundred roots moving in each frame",
    .unit = "moved node",
    .entity_counts = {100000},
    .bytes_per_entity = NODE_BYTES,
    .pass_count = sparse_passes,
    .operation_count = moved_nodes,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, NULL, run_raw_sparse, NULL, checksum_raw, close_raw, NULL},
            [BENCH_QUERN] = {open_sparse, enter_quern, run_marked, NULL, checksum_quern, close_quern, NULL},
            {open_sparse, enter_quern, run_set, NULL, checksum_quern, close_quern, NULL},
        },
    .subject_names = {NULL, NULL, "set"},
};
