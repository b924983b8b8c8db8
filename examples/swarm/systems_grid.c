/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "sense": sorts the agents into the grid. See grid.h for why the result does not depend on
 * threads. */

#include "check.h"
#include "grid.h"
#include "systems.h"

static Grid *grid_write(quern_context *context)
{
    const Types *types = quern_context_user_data(context);
    return quern_context_resource_write(context, types->grid);
}

/* ------------------------------------------------------------------------------------------- count */

enum { COUNT_POSITION, COUNT_CELL };

static void count_begin(quern_context *context)
{
    grid_clear(grid_write(context));
}

static void count_agents(quern_context *context, const quern_view *view)
{
    const Position *position = QUERN_COLUMN(view, COUNT_POSITION, const Position);
    Cell *cell = QUERN_COLUMN(view, COUNT_CELL, Cell);
    Grid *grid = grid_write(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        cell[i].index = grid_cell_at(grid, position[i]);
        grid_count(grid, cell[i].index);
    }
}

static void count_end(quern_context *context)
{
    grid_sum(grid_write(context));
}

static void add_count(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "count agents per cell",
                                  .phase = PHASE_SENSE,
                                  .begin = count_begin,
                                  .run = count_agents,
                                  .end = count_end,
                                  .user_data = types,
                                  .terms = {[COUNT_POSITION] = quern_term_read(types->position),
                                            [COUNT_CELL] = quern_term_write(types->cell)},
                                  .resources = {{types->grid, QUERN_WRITE_CONCURRENT}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* ------------------------------------------------------------------------------------------- place */

enum { PLACE_CELL, PLACE_POSITION, PLACE_VELOCITY, PLACE_HUNTER };

static void place_agents(quern_context *context, const quern_view *view)
{
    const Cell *cell = QUERN_COLUMN(view, PLACE_CELL, const Cell);
    const Position *position = QUERN_COLUMN(view, PLACE_POSITION, const Position);
    const Velocity *velocity = QUERN_COLUMN(view, PLACE_VELOCITY, const Velocity);
    Neighbour neighbour = {.is_hunter = quern_view_has(view, PLACE_HUNTER)};
    Grid *grid = grid_write(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        neighbour.position = position[i];
        neighbour.velocity = velocity[i];
        neighbour.entity = view->entities[i];
        grid_place(grid, cell[i].index, &neighbour);
    }
}

static void add_place(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "place agents in cells",
        .phase = PHASE_SENSE,
        .run = place_agents,
        .user_data = types,
        .terms = {[PLACE_CELL] = quern_term_read(types->cell),
                  [PLACE_POSITION] = quern_term_read(types->position),
                  [PLACE_VELOCITY] = quern_term_read(types->velocity),
                  [PLACE_HUNTER] = quern_term_optional(types->hunter, QUERN_NO_ACCESS)},
        .resources = {{types->grid, QUERN_WRITE_CONCURRENT}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* -------------------------------------------------------------------------------------------- sort */

static void sort_rows(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    grid_sort(user_data, begin, end);
}

/* A system without terms runs once; its own loop brings in the other threads. */
static void sort_cells(quern_context *context, const quern_view *view)
{
    (void)view;
    Grid *grid = grid_write(context);
    quern_jobs *jobs = quern_context_jobs(context);
    if (jobs != NULL)
        check(quern_jobs_parallel_for(jobs, grid->rows, 0, sort_rows, grid));
    else
        grid_sort(grid, 0, grid->rows);
}

static void add_sort(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "sort cells",
                                  .phase = PHASE_SENSE,
                                  .run = sort_cells,
                                  .user_data = types,
                                  .resources = {{types->grid, QUERN_WRITE}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_grid(quern_schedule *schedule, Types *types)
{
    add_count(schedule, types);
    add_place(schedule, types);
    add_sort(schedule, types);
}
