/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_GRID_H
#define SWARM_GRID_H

/* A uniform grid, made anew each frame, that answers "who is near?". A cell is as wide as an agent can
 * see, so the neighbours of an agent stand in 3 by 3 cells. Agents lie in the order of their cells, which
 * makes each 3 cells of a row one run of memory. A border of empty cells spares the tests at the edges.
 *
 * Building is a counting sort in steps that run on all threads:
 *   1. grid_clear, then grid_count for each agent
 *   2. grid_sum turns the counts into where each cell starts
 *   3. grid_place for each agent
 *   4. grid_sort orders each cell by entity index
 * Steps 1 and 3 may run for many agents at once. Counts do not depend on the order of counting; the order
 * in which agents are placed into a cell does depend on threads, and step 4 takes that away again. */

#include "components.h"

#include <stdatomic.h>

typedef struct Neighbour {
    Vector position;
    Vector velocity;
    quern_entity entity;
    bool is_hunter;
} Neighbour;

typedef struct Grid {
    uint32_t columns, rows; /* with the border */
    uint32_t cell_count;
    uint32_t agent_count;
    uint32_t capacity;         /* of neighbours */
    _Atomic uint32_t *cursors; /* cell_count: agents counted; then where the next one is placed */
    uint32_t *starts;          /* cell_count + 1: the first agent of each cell */
    Neighbour *neighbours;     /* agent_count, cell after cell */
} Grid;

/* For agents at 0 to width and 0 to height. */
Grid grid_make(uint32_t width, uint32_t height);
void grid_free(Grid *grid);

void grid_clear(Grid *grid);
void grid_sum(Grid *grid);

/* Orders the cells of the rows begin to end - 1. */
void grid_sort(Grid *grid, uint32_t begin_row, uint32_t end_row);

static inline uint32_t grid_cell_at(const Grid *grid, Vector position)
{
    return ((uint32_t)position.y + 1) * grid->columns + (uint32_t)position.x + 1;
}

/* Relaxed, here and in grid_place: only the sums matter, and the end of the system orders them before
 * those that read the result. */
static inline void grid_count(Grid *grid, uint32_t cell)
{
    atomic_fetch_add_explicit(&grid->cursors[cell], 1, memory_order_relaxed);
}

static inline void grid_place(Grid *grid, uint32_t cell, const Neighbour *neighbour)
{
    uint32_t slot = atomic_fetch_add_explicit(&grid->cursors[cell], 1, memory_order_relaxed);
    grid->neighbours[slot] = *neighbour;
}

/* Agents in three cells of a row: neighbours[begin], [begin + stride], ... below end. */
typedef struct GridRun {
    uint32_t begin, end, stride;
} GridRun;

enum { GRID_RUN_MAX = 10 };

/* The row above (-1), of (0) or below (1) a cell. Where it is crowded every second, third ... agent
 * stands for the others, so that the work for one agent has a bound. */
static inline GridRun grid_run(const Grid *grid, uint32_t cell, int32_t row)
{
    uint32_t middle = (uint32_t)((int32_t)cell + row * (int32_t)grid->columns);
    GridRun run = {.begin = grid->starts[middle - 1], .end = grid->starts[middle + 2]};
    run.stride = (run.end - run.begin + GRID_RUN_MAX - 1) / GRID_RUN_MAX;
    return run;
}

#endif
