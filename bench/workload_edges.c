/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A relation with several targets per source: each entity is related to ten others, at random. The control keeps the
 * targets and the sources of each entity in two sorted arrays that grow. */

#include "bench/workloads.h"
#include "bench/world.h"

#include <stdlib.h>
#include <string.h>

enum { EDGES_EACH = 10 };

/* The pairs of all edges, by source, and a shuffled order of them. */
typedef struct edge_plan {
    uint32_t entity_count, count;
    uint32_t *sources, *targets, *order;
} edge_plan;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15u;
    return (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u >> 16;
}

static bool has_before(const edge_plan *plan, uint32_t at, uint32_t target)
{
    for (uint32_t i = at - at % EDGES_EACH; i < at; i++)
        if (plan->targets[i] == target) return true;
    return false;
}

static edge_plan make_plan(uint32_t entity_count)
{
    edge_plan plan = {.entity_count = entity_count, .count = entity_count * EDGES_EACH};
    plan.sources = bench_allocate(plan.count, sizeof *plan.sources);
    plan.targets = bench_allocate(plan.count, sizeof *plan.targets);
    plan.order = bench_shuffled_indices(plan.count);
    uint64_t next = 1;
    for (uint32_t i = 0; i < plan.count; i++) {
        plan.sources[i] = i / EDGES_EACH;
        do
            plan.targets[i] = (uint32_t)(mix(next++) % entity_count);
        while (plan.targets[i] == plan.sources[i] || has_before(&plan, i, plan.targets[i]));
    }
    return plan;
}

static void release_plan(const edge_plan *plan)
{
    free(plan->sources);
    free(plan->targets);
    free(plan->order);
}

static uint64_t hash_edge(uint32_t source, uint32_t target)
{
    return mix((uint64_t)source << 32 | target);
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_set {
    uint32_t *items;
    uint32_t count, capacity;
} raw_set;

typedef struct raw_edges {
    edge_plan plan;
    raw_set *targets, *sources;
    uint64_t sum;
} raw_edges;

static uint32_t raw_find(const raw_set *set, uint32_t item)
{
    uint32_t first = 0;
    for (uint32_t count = set->count; count > 0;) {
        const uint32_t half = count / 2;
        const bool is_below = set->items[first + half] < item;
        first += is_below ? half + 1 : 0;
        count = is_below ? count - half - 1 : half;
    }
    return first;
}

static void raw_insert(raw_set *set, uint32_t item)
{
    const uint32_t at = raw_find(set, item);
    if (set->count == set->capacity) {
        set->capacity = set->capacity > 0 ? set->capacity * 2 : 4;
        set->items = realloc(set->items, set->capacity * sizeof *set->items);
        if (set->items == NULL) bench_die("out of memory");
    }
    memmove(set->items + at + 1, set->items + at, (set->count - at) * sizeof *set->items);
    set->items[at] = item;
    set->count++;
}

static void raw_remove(raw_set *set, uint32_t item)
{
    const uint32_t at = raw_find(set, item);
    memmove(set->items + at, set->items + at + 1, (set->count - at - 1) * sizeof *set->items);
    set->count--;
}

static void *open_raw(const bench_case *scene)
{
    raw_edges *edges = bench_allocate(1, sizeof *edges);
    edges->plan = make_plan(scene->entity_count);
    return edges;
}

static void begin_raw(void *state)
{
    raw_edges *edges = state;
    edges->targets = bench_allocate(edges->plan.entity_count, sizeof *edges->targets);
    edges->sources = bench_allocate(edges->plan.entity_count, sizeof *edges->sources);
}

static void run_add_raw(void *state, uint32_t pass_count)
{
    const raw_edges *edges = state;
    for (uint32_t i = 0; i < edges->plan.count; i++) {
        const uint32_t source = edges->plan.sources[i], target = edges->plan.targets[i];
        const raw_set *targets = &edges->targets[source];
        const uint32_t at = raw_find(targets, target);
        if (at < targets->count && targets->items[at] == target) continue;
        raw_insert(&edges->targets[source], target);
        raw_insert(&edges->sources[target], source);
    }
}

static void fill_raw(void *state)
{
    begin_raw(state);
    run_add_raw(state, 1);
}

/* Leaves the first edge of each entity. */
static void run_remove_raw(void *state, uint32_t pass_count)
{
    const raw_edges *edges = state;
    for (uint32_t i = 0; i < edges->plan.count; i++) {
        const uint32_t at = edges->plan.order[i];
        if (at % EDGES_EACH == 0) continue;
        raw_remove(&edges->targets[edges->plan.sources[at]], edges->plan.targets[at]);
        raw_remove(&edges->sources[edges->plan.targets[at]], edges->plan.sources[at]);
    }
}

static uint64_t checksum_raw(void *state)
{
    const raw_edges *edges = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < edges->plan.entity_count; i++) {
        for (uint32_t k = 0; k < edges->targets[i].count; k++)
            sum += hash_edge(i, edges->targets[i].items[k]);
        for (uint32_t k = 0; k < edges->sources[i].count; k++)
            sum += 3 * hash_edge(edges->sources[i].items[k], i);
    }
    return sum;
}

static void end_raw(void *state)
{
    raw_edges *edges = state;
    for (uint32_t i = 0; i < edges->plan.entity_count; i++) {
        free(edges->targets[i].items);
        free(edges->sources[i].items);
    }
    free(edges->targets);
    free(edges->sources);
}

static void close_raw(void *state)
{
    raw_edges *edges = state;
    release_plan(&edges->plan);
    free(edges);
}

static void *open_filled_raw(const bench_case *scene)
{
    raw_edges *edges = open_raw(scene);
    fill_raw(edges);
    return edges;
}

static void close_filled_raw(void *state)
{
    end_raw(state);
    close_raw(state);
}

/* Adds the indices of all targets and of all sources. */
static void run_iterate_raw(void *state, uint32_t pass_count)
{
    raw_edges *edges = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < edges->plan.entity_count; i++) {
            for (uint32_t k = 0; k < edges->targets[i].count; k++)
                edges->sum += edges->targets[i].items[k];
            for (uint32_t k = 0; k < edges->sources[i].count; k++)
                edges->sum += 3 * (uint64_t)edges->sources[i].items[k];
        }
}

static uint64_t checksum_iterate_raw(void *state)
{
    return ((const raw_edges *)state)->sum;
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct quern_edges {
    edge_plan plan;
    bench_world bench;
    quern_relation likes;
    quern_entity *entities, *sources,
        *targets; /* sources and targets: by pair, for quern_entity_relate_many */
    uint64_t sum;
} quern_edges;

static void *open_quern(const bench_case *scene)
{
    quern_edges *edges = bench_allocate(1, sizeof *edges);
    edges->plan = make_plan(scene->entity_count);
    edges->entities = bench_allocate(edges->plan.entity_count, sizeof *edges->entities);
    edges->sources = bench_allocate(edges->plan.count, sizeof *edges->sources);
    edges->targets = bench_allocate(edges->plan.count, sizeof *edges->targets);
    return edges;
}

static void begin_quern(void *state)
{
    quern_edges *edges = state;
    bench_world_open(&edges->bench);
    const quern_relation_def def = {
        .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true};
    REQUIRE(quern_relation_register(edges->bench.world, &def, &edges->likes));
    for (uint32_t i = 0; i < edges->plan.entity_count; i++)
        edges->entities[i] = bench_world_create_moving(&edges->bench, i);
    for (uint32_t i = 0; i < edges->plan.count; i++) {
        edges->sources[i] = edges->entities[edges->plan.sources[i]];
        edges->targets[i] = edges->entities[edges->plan.targets[i]];
    }
}

static void run_add_quern(void *state, uint32_t pass_count)
{
    const quern_edges *edges = state;
    for (uint32_t i = 0; i < edges->plan.count; i++)
        REQUIRE(
            quern_entity_relate(edges->bench.world, edges->sources[i], edges->likes, edges->targets[i]));
}

static void run_add_many_quern(void *state, uint32_t pass_count)
{
    const quern_edges *edges = state;
    REQUIRE(quern_entity_relate_many(edges->bench.world, edges->sources, edges->likes, edges->targets,
                                     edges->plan.count));
}

static void run_add_command_quern(void *state, uint32_t pass_count)
{
    const quern_edges *edges = state;
    quern_commands *commands = quern_world_commands(edges->bench.world);
    for (uint32_t i = 0; i < edges->plan.count; i++)
        REQUIRE(quern_commands_relate(commands, edges->sources[i], edges->likes, edges->targets[i]));
    REQUIRE(quern_world_flush(edges->bench.world));
}

static void fill_quern(void *state)
{
    begin_quern(state);
    run_add_many_quern(state, 1);
}

static void run_remove_quern(void *state, uint32_t pass_count)
{
    const quern_edges *edges = state;
    for (uint32_t i = 0; i < edges->plan.count; i++) {
        const uint32_t at = edges->plan.order[i];
        if (at % EDGES_EACH != 0)
            REQUIRE(quern_entity_unrelate_from(edges->bench.world, edges->sources[at], edges->likes,
                                               edges->targets[at]));
    }
}

static uint64_t checksum_quern(void *state)
{
    const quern_edges *edges = state;
    uint64_t sum = 0;
    quern_entity found[1000];
    for (uint32_t i = 0; i < edges->plan.entity_count; i++) {
        uint32_t count =
            quern_entity_list_targets(edges->bench.world, edges->entities[i], edges->likes, found, 1000);
        for (uint32_t k = 0; k < count; k++)
            sum += hash_edge(i, quern_entity_index(found[k]));
        count =
            quern_entity_list_sources(edges->bench.world, edges->entities[i], edges->likes, found, 1000);
        for (uint32_t k = 0; k < count; k++)
            sum += 3 * hash_edge(quern_entity_index(found[k]), i);
    }
    return sum;
}

static void end_quern(void *state)
{
    bench_world_close(&((quern_edges *)state)->bench);
}

static void close_quern(void *state)
{
    quern_edges *edges = state;
    release_plan(&edges->plan);
    free(edges->entities);
    free(edges->sources);
    free(edges->targets);
    free(edges);
}

static void *open_filled_quern(const bench_case *scene)
{
    quern_edges *edges = open_quern(scene);
    fill_quern(edges);
    return edges;
}

static void close_filled_quern(void *state)
{
    end_quern(state);
    close_quern(state);
}

static void run_iterate_quern(void *state, uint32_t pass_count)
{
    quern_edges *edges = state;
    quern_entity found[1000];
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < edges->plan.entity_count; i++) {
            uint32_t count = quern_entity_list_targets(edges->bench.world, edges->entities[i], edges->likes,
                                                       found, 1000);
            for (uint32_t k = 0; k < count; k++)
                edges->sum += quern_entity_index(found[k]);
            count = quern_entity_list_sources(edges->bench.world, edges->entities[i], edges->likes, found,
                                              1000);
            for (uint32_t k = 0; k < count; k++)
                edges->sum += 3 * (uint64_t)quern_entity_index(found[k]);
        }
}

static uint64_t checksum_iterate_quern(void *state)
{
    return ((const quern_edges *)state)->sum;
}

/* --------------------------------------------------------------------------------------- workloads */

static uint64_t edge_count(uint32_t entity_count)
{
    return (uint64_t)entity_count * EDGES_EACH;
}

static uint64_t removed_count(uint32_t entity_count)
{
    return (uint64_t)entity_count * (EDGES_EACH - 1);
}

static uint64_t visited_count(uint32_t entity_count)
{
    return 2 * edge_count(entity_count);
}

#define SUBJECT_RAW(run)                                                 \
    {                                                                    \
        open_raw, begin_raw, run, end_raw, checksum_raw, close_raw, NULL \
    }
#define SUBJECT_QUERN(run)                                                         \
    {                                                                              \
        open_quern, begin_quern, run, end_quern, checksum_quern, close_quern, NULL \
    }

const bench_workload workload_edges_add = {
    .name = "edges_add",
    .summary =
        "relate each entity to ten others (many: in one call; command: by commands and their sync point)",
    .unit = "edge",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = edge_count,
    .subjects = {SUBJECT_RAW(run_add_raw), SUBJECT_QUERN(run_add_quern), SUBJECT_QUERN(run_add_many_quern),
                 SUBJECT_QUERN(run_add_command_quern)},
    .subject_names = {"raw", "quern", "many", "command"},
};

const bench_workload workload_edges_mem = {
    .name = "edges_mem",
    .summary = "memory of the edges, ten for each entity",
    .unit = "edge",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .footprint = true,
    .pass_count = bench_passes_fresh,
    .operation_count = edge_count,
    .subjects = {SUBJECT_RAW(run_add_raw), SUBJECT_QUERN(run_add_quern)},
};

const bench_workload workload_edges_remove = {
    .name = "edges_remove",
    .summary = "remove nine of ten edges of each entity, in shuffled order",
    .unit = "edge",
    .entity_counts = {100000},
    .single_thread = true,
    .fresh = true,
    .pass_count = bench_passes_fresh,
    .operation_count = removed_count,
    .subjects =
        {
            {open_raw, fill_raw, run_remove_raw, end_raw, checksum_raw, close_raw, NULL},
            {open_quern, fill_quern, run_remove_quern, end_quern, checksum_quern, close_quern, NULL},
        },
};

const bench_workload workload_edges_iterate = {
    .name = "edges_iterate",
    .summary = "list the targets and the sources of all entities, ten of each on average",
    .unit = "edge",
    .entity_counts = {100000},
    .single_thread = true,
    .operation_count = visited_count,
    .pass_count = bench_passes_of_1m,
    .subjects =
        {
            {open_filled_raw, NULL, run_iterate_raw, NULL, checksum_iterate_raw, close_filled_raw, NULL},
            {open_filled_quern, NULL, run_iterate_quern, NULL, checksum_iterate_quern, close_filled_quern,
             NULL},
        },
};
