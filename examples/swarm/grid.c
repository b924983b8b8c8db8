/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "grid.h"

#include "check.h"

#include <stdlib.h>

Grid grid_make(uint32_t width, uint32_t height)
{
    Grid grid = {.columns = width + 2, .rows = height + 2};
    grid.cell_count = grid.columns * grid.rows;
    grid.cursors = check_memory(malloc(grid.cell_count * sizeof *grid.cursors));
    grid.starts = check_memory(calloc((size_t)grid.cell_count + 1, sizeof *grid.starts));
    return grid;
}

void grid_free(Grid *grid)
{
    free((void *)grid->cursors);
    free(grid->starts);
    free(grid->neighbours);
}

void grid_clear(Grid *grid)
{
    for (uint32_t cell = 0; cell < grid->cell_count; cell++)
        atomic_store_explicit(&grid->cursors[cell], 0, memory_order_relaxed);
}

static void reserve(Grid *grid, uint32_t count)
{
    if (count <= grid->capacity) return;
    free(grid->neighbours);
    grid->capacity = count + count / 4;
    grid->neighbours = check_memory(malloc(grid->capacity * sizeof *grid->neighbours));
}

void grid_sum(Grid *grid)
{
    uint32_t sum = 0;
    for (uint32_t cell = 0; cell < grid->cell_count; cell++) {
        grid->starts[cell] = sum;
        sum += atomic_load_explicit(&grid->cursors[cell], memory_order_relaxed);
        atomic_store_explicit(&grid->cursors[cell], grid->starts[cell], memory_order_relaxed);
    }
    grid->starts[grid->cell_count] = sum;
    grid->agent_count = sum;
    reserve(grid, sum);
}

/* By insertion: a cell holds few agents. */
static void sort_cell(Neighbour *neighbours, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        Neighbour moved = neighbours[i];
        uint32_t index = quern_entity_index(moved.entity);
        uint32_t slot = i;
        for (; slot > 0 && quern_entity_index(neighbours[slot - 1].entity) > index; slot--)
            neighbours[slot] = neighbours[slot - 1];
        neighbours[slot] = moved;
    }
}

void grid_sort(Grid *grid, uint32_t begin_row, uint32_t end_row)
{
    uint32_t end = end_row * grid->columns;
    for (uint32_t cell = begin_row * grid->columns; cell < end; cell++) {
        uint32_t start = grid->starts[cell];
        sort_cell(&grid->neighbours[start], grid->starts[cell + 1] - start);
    }
}
