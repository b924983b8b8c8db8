/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* grid_build and grid_radius compare quern::quern_grid with a hand-written counting sort and loop over
 * cells. Entities are at random positions in a square, with two entities per cell of width 1 on average.
 *
 * The control sorts arrays of positions and entities. It knows the bounding box in advance, stores only two
 * dimensions, and splits the arrays into a part per thread, each with its own counters. Quern reads the
 * rows of a world. grid_radius finds the entities within the distance 1 of each sixteenth entity, in the
 * order of entities. */

#include "bench/harness.h"
#include "bench/team.h"
#include "bench/workloads.h"
#include "bench/world.h"

#include <quern/kit/grid.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PER_CELL = 2, ASKED = 16 };

static const float radius = 1.0f;

typedef struct Spot {
    float x, y;
} Spot;

/* Returns the number of cells along a side of the square. */
static uint32_t side_of(uint32_t entity_count)
{
    const uint32_t side = (uint32_t)sqrt((double)entity_count / PER_CELL);
    return side > 0 ? side : 1;
}

static Spot spot_at(uint32_t i, uint32_t side)
{
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    const float scale = (float)side / (float)(1u << 24);
    return (Spot){(float)(x >> 40) * scale, (float)(x & 0xFFFFFF) * scale};
}

static uint64_t bits_of(float x, float y)
{
    uint32_t bits[2];
    memcpy(&bits[0], &x, sizeof x);
    memcpy(&bits[1], &y, sizeof y);
    return ((uint64_t)bits[0] << 32 | bits[1]) * 0x9E3779B97F4A7C15u;
}

/* --------------------------------------------------------------------------------------------- raw */

typedef struct raw_item {
    float x, y;
    uint64_t entity;
} raw_item;

typedef struct raw_grid {
    uint32_t count, side, cell_count, part_count;
    Spot *spots;
    uint64_t *entities;
    uint32_t *cells;   /* cells of the entities */
    uint32_t *cursors; /* counts, later write positions, indexed by part and cell */
    uint32_t *starts;
    uint32_t *range_sums;
    raw_item *items;
    uint64_t answer_count;
    raw_team *team;
} raw_grid;

static uint32_t raw_axis(const raw_grid *grid, float x)
{
    const uint32_t cell = (uint32_t)x;
    return cell < grid->side ? cell : grid->side - 1;
}

static void raw_count(void *state, uint32_t part, uint32_t part_count)
{
    const raw_grid *grid = state;
    const raw_range rows = raw_team_share(grid->count, part, part_count);
    uint32_t *counters = grid->cursors + (size_t)part * grid->cell_count;
    memset(counters, 0, grid->cell_count * sizeof *counters);
    for (size_t i = rows.begin; i < rows.begin + rows.count; i++) {
        const Spot at = grid->spots[i];
        const uint32_t cell = raw_axis(grid, at.y) * grid->side + raw_axis(grid, at.x);
        grid->cells[i] = cell;
        counters[cell]++;
    }
}

static void raw_sum_range(void *state, uint32_t part, uint32_t part_count)
{
    const raw_grid *grid = state;
    const raw_range cells = raw_team_share(grid->cell_count, part, part_count);
    uint32_t sum = 0;
    for (uint32_t p = 0; p < part_count; p++)
        for (size_t cell = cells.begin; cell < cells.begin + cells.count; cell++)
            sum += grid->cursors[(size_t)p * grid->cell_count + cell];
    grid->range_sums[part] = sum;
}

static void raw_sum(void *state, uint32_t part, uint32_t part_count)
{
    const raw_grid *grid = state;
    const raw_range cells = raw_team_share(grid->cell_count, part, part_count);
    uint32_t place = 0;
    for (uint32_t p = 0; p < part; p++)
        place += grid->range_sums[p];
    for (size_t cell = cells.begin; cell < cells.begin + cells.count; cell++) {
        grid->starts[cell] = place;
        for (uint32_t p = 0; p < part_count; p++) {
            uint32_t *cursor = &grid->cursors[(size_t)p * grid->cell_count + cell];
            const uint32_t rows = *cursor;
            *cursor = place;
            place += rows;
        }
    }
}

static void raw_place(void *state, uint32_t part, uint32_t part_count)
{
    const raw_grid *grid = state;
    const raw_range rows = raw_team_share(grid->count, part, part_count);
    uint32_t *cursors = grid->cursors + (size_t)part * grid->cell_count;
    for (size_t i = rows.begin; i < rows.begin + rows.count; i++)
        grid->items[cursors[grid->cells[i]]++] =
            (raw_item){grid->spots[i].x, grid->spots[i].y, grid->entities[i]};
}

static void raw_build(raw_grid *grid)
{
    raw_team_run(grid->team, raw_count, grid);
    if (grid->part_count > 1) raw_team_run(grid->team, raw_sum_range, grid);
    raw_team_run(grid->team, raw_sum, grid);
    raw_team_run(grid->team, raw_place, grid);
    grid->starts[grid->cell_count] = grid->count;
}

static void *open_raw(const bench_case *scene)
{
    raw_grid *grid = bench_allocate(1, sizeof *grid);
    grid->count = scene->entity_count;
    grid->part_count = scene->thread_count;
    grid->side = side_of(grid->count);
    grid->cell_count = grid->side * grid->side;
    grid->spots = bench_allocate(grid->count, sizeof *grid->spots);
    grid->entities = bench_allocate(grid->count, sizeof *grid->entities);
    grid->cells = bench_allocate(grid->count, sizeof *grid->cells);
    grid->cursors = bench_allocate((size_t)grid->cell_count * grid->part_count, sizeof *grid->cursors);
    grid->starts = bench_allocate((size_t)grid->cell_count + 1, sizeof *grid->starts);
    grid->range_sums = bench_allocate(grid->part_count, sizeof *grid->range_sums);
    grid->items = bench_allocate(grid->count, sizeof *grid->items);
    for (uint32_t i = 0; i < grid->count; i++) {
        grid->spots[i] = spot_at(i, grid->side);
        grid->entities[i] = i;
    }
    return grid;
}

static void enter_raw(void *state)
{
    raw_grid *grid = state;
    grid->team = raw_team_start(grid->part_count);
}

static void enter_raw_built(void *state)
{
    enter_raw(state);
    raw_build(state);
}

static void leave_raw(void *state)
{
    const raw_grid *grid = state;
    raw_team_stop(grid->team);
}

static void run_raw_build(void *state, uint32_t pass_count)
{
    for (uint32_t pass = 0; pass < pass_count; pass++)
        raw_build(state);
}

static uint32_t raw_ask(const raw_grid *grid, Spot center)
{
    const uint32_t x0 = raw_axis(grid, fmaxf(center.x - radius, 0)), x1 = raw_axis(grid, center.x + radius);
    const uint32_t y0 = raw_axis(grid, fmaxf(center.y - radius, 0)), y1 = raw_axis(grid, center.y + radius);
    uint32_t count = 0;
    for (uint32_t y = y0; y <= y1; y++) {
        const uint32_t end = grid->starts[y * grid->side + x1 + 1];
        for (uint32_t i = grid->starts[y * grid->side + x0]; i < end; i++) {
            const float dx = grid->items[i].x - center.x, dy = grid->items[i].y - center.y;
            if (dx * dx + dy * dy > radius * radius) continue;
            count++;
            quern_bench_keep(&grid->items[i]);
        }
    }
    return count;
}

static void run_raw_radius(void *state, uint32_t pass_count)
{
    raw_grid *grid = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < grid->count; i += ASKED)
            grid->answer_count += raw_ask(grid, grid->spots[i]);
}

static uint64_t checksum_raw_build(void *state)
{
    const raw_grid *grid = state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < grid->count; i++)
        sum += (i + 1) * bits_of(grid->items[i].x, grid->items[i].y);
    return sum;
}

static uint64_t checksum_raw_radius(void *state)
{
    const raw_grid *grid = state;
    return grid->answer_count;
}

static void close_raw(void *state)
{
    raw_grid *grid = state;
    free(grid->spots);
    free(grid->entities);
    free(grid->cells);
    free(grid->cursors);
    free(grid->starts);
    free(grid->range_sums);
    free(grid->items);
    free(grid);
}

/* ------------------------------------------------------------------------------------------- quern */

typedef struct grid_scene {
    quern_world *world;
    quern_grid *grid;
    quern_jobs *jobs; /* NULL on one thread */
    uint32_t count, side;
    Spot *spots; /* centres of the radius queries */
    uint64_t answer_count;
} grid_scene;

static void *open_quern(const bench_case *scene)
{
    grid_scene *it = bench_allocate(1, sizeof *it);
    it->count = scene->entity_count;
    it->side = side_of(it->count);
    it->spots = bench_allocate(it->count, sizeof *it->spots);
    REQUIRE(quern_world_create(NULL, &it->world));
    quern_component spot;
    REQUIRE(QUERN_COMPONENT_REGISTER(it->world, &spot, Spot));
    for (uint32_t i = 0; i < it->count; i++) {
        it->spots[i] = spot_at(i, it->side);
        quern_entity entity;
        REQUIRE(
            quern_entity_create_with(it->world, &spot, (const void *const[]){&it->spots[i]}, 1, &entity));
    }
    const quern_grid_def def = {.position = spot,
                                .planar = true,
                                .cell_size = 1,
                                .max = {(float)it->side - 0.5f, (float)it->side - 0.5f}};
    REQUIRE(quern_grid_create(it->world, &def, &it->grid));
    if (scene->thread_count > 1) it->jobs = bench_jobs_create(scene->thread_count);
    return it;
}

static void enter_quern(void *state)
{
    const grid_scene *it = state;
    if (it->jobs != NULL) bench_jobs_wake(it->jobs);
}

static void enter_quern_built(void *state)
{
    const grid_scene *it = state;
    enter_quern(state);
    REQUIRE(quern_grid_build(it->grid, it->jobs));
}

static void run_quern_build(void *state, uint32_t pass_count)
{
    const grid_scene *it = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        REQUIRE(quern_grid_build(it->grid, it->jobs));
}

static uint32_t ask(const quern_grid *grid, Spot center)
{
    const float at[2] = {center.x, center.y};
    uint32_t count = 0;
    quern_grid_iterator it = quern_grid_radius(grid, at, radius);
    while (quern_grid_next(&it)) {
        count++;
        quern_bench_keep(it.item);
    }
    return count;
}

static void run_quern_radius(void *state, uint32_t pass_count)
{
    grid_scene *it = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        for (uint32_t i = 0; i < it->count; i += ASKED)
            it->answer_count += ask(it->grid, it->spots[i]);
}

static uint64_t checksum_quern_build(void *state)
{
    const grid_scene *it = state;
    const quern_grid_cells *cells = quern_grid_get_cells(it->grid);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < it->count; i++)
        sum += (i + 1) * bits_of(cells->items[i].position[0], cells->items[i].position[1]);
    return sum;
}

static uint64_t checksum_quern_radius(void *state)
{
    const grid_scene *it = state;
    return it->answer_count;
}

static void close_quern(void *state)
{
    grid_scene *it = state;
    quern_grid_destroy(it->grid);
    quern_jobs_destroy(it->jobs);
    quern_world_destroy(it->world);
    free(it->spots);
    free(it);
}

/* -------------------------------------------------------------------------------------------- tables */

static uint64_t questions(uint32_t entity_count)
{
    return (entity_count + ASKED - 1) / ASKED;
}

const bench_workload workload_grid_build = {
    .name = "grid_build",
    .summary = "sort entities in a square into cells, two per cell (quern::quern_grid)",
    .unit = "entity",
    .entity_counts = {100000, 1000000},
    .bytes_per_entity = sizeof(Spot) + sizeof(quern_entity) + sizeof(quern_grid_item),
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw, run_raw_build, leave_raw, checksum_raw_build, close_raw,
                           NULL},
            [BENCH_QUERN] = {open_quern, enter_quern, run_quern_build, NULL, checksum_quern_build,
                             close_quern, NULL},
        },
};

const bench_workload workload_grid_radius = {
    .name = "grid_radius",
    .summary = "find the entities within the width of a cell, six on average, for each sixteenth entity",
    .unit = "question",
    .entity_counts = {100000, 1000000},
    .single_thread = true,
    .bytes_per_entity = sizeof(quern_grid_item),
    .pass_count = bench_passes_of_1m,
    .operation_count = questions,
    .subjects =
        {
            [BENCH_RAW] = {open_raw, enter_raw_built, run_raw_radius, leave_raw, checksum_raw_radius,
                           close_raw, NULL},
            [BENCH_QUERN] = {open_quern, enter_quern_built, run_quern_radius, NULL, checksum_quern_radius,
                             close_quern, NULL},
        },
};
