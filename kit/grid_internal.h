/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_GRID_INTERNAL_H
#define QUERN_KIT_GRID_INTERNAL_H

/* Declarations shared by the sources of the grid library. */

#include "kit/grid.h"

#include <stdatomic.h>

/* The rows of one view. The addresses are valid until the structure of the world changes. */
typedef struct quern__grid_rows {
    const char *positions;
    const char *payloads; /* NULL without payload */
    const quern_entity *entities;
    uint32_t count;
    uint32_t first; /* index of the first row among the rows of all views */
    uint32_t marks;
} quern__grid_rows;

/* The items from cells.starts[cells.cell_count] to row_count have positions that are not finite; no search finds
 * them. */
struct quern_grid {
    quern_grid_def def; /* def.name is NULL */
    quern_allocator allocator;
    quern_world *owner;
    quern_resource resource;
    char watcher_name[QUERN_MAX_NAME_BYTES + 1], builder_name[QUERN_MAX_NAME_BYTES + 1];
    quern_term terms[QUERN_MAX_TERMS];
    uint32_t first_mark_term, mark_count;
    uint32_t payload_term;
    uint32_t position_bytes, payload_bytes; /* size of one value; without payload 0 */
    uint32_t dimension_count;
    quern_query *query;

    quern__grid_rows *rows; /* of the last build, or those gathered in this frame */
    uint32_t rows_count, rows_capacity;
    uint32_t old_rows_count; /* rows_count before this frame */
    bool rows_differ;        /* the gathered rows differ from those of the last build */
    bool rows_failed;        /* there was no memory to gather all rows */
    uint64_t restore_count;  /* quern_world_restore_count at the last build */
    atomic_bool has_changed; /* relaxed: the system that reads it runs after those that set it */

    quern_grid_cells cells;
    uint32_t row_count;  /* rows of all views */
    uint32_t item_count; /* items that can be found */
    quern_grid_item *items;
    char *payloads; /* in the order of items */
    uint32_t item_capacity;
    int32_t *cell_of; /* cell of each row */
    uint32_t *starts; /* cell_count + 1 entries */
    size_t starts_capacity;
    /* by part and cell: number of rows; then the index at which the next row is placed */
    uint32_t *cursors;
    size_t cursors_capacity;
    uint64_t build_count;
    quern_result last_result;
};

/* Makes room for one more entry of `rows`. Returns false if there is no memory. */
bool quern__grid_reserve_rows(quern_grid *grid);

/* Releases all memory of a grid except the grid itself. */
void quern__grid_release(quern_grid *grid);

/* Sorts the gathered rows into cells. Fails with OUT_OF_MEMORY; then the grid is empty. */
quern_result quern__grid_sort(quern_grid *grid, quern_jobs *jobs);

/* Finds the cells along one axis that can contain an item with a coordinate that differs from `center` by at most the
 * radius, as computed in float. The index of a cell grows with the coordinate, also after rounding, so a coordinate
 * between two others is in a cell between theirs. The margin is far larger than any rounding error. */
static inline void quern__grid_cells_within(const quern_grid_cells *cells, uint32_t axis, float center,
                                            float radius, uint32_t *first, uint32_t *end)
{
    const float least_radius = 1e-15f, most_radius = 1e15f, margin = 1.0f / (1 << 20);
    if (radius > most_radius) { /* its square may be infinite */
        *first = 0;
        *end = cells->counts[axis];
        return;
    }
    if (radius < least_radius)
        radius = least_radius; /* the square of a smaller radius may be rounded to 0 */
    const float wide = radius + (radius + (center < 0 ? -center : center)) * margin;
    *first = quern_grid_cell_along(cells, axis, center - wide);
    *end = quern_grid_cell_along(cells, axis, center + wide) + 1;
}

static inline float quern__grid_square(const quern_grid_item *item, const float *center)
{
    const float x = item->position[0] - center[0], y = item->position[1] - center[1],
                z = item->position[2] - center[2];
    return x * x + y * y + z * z;
}

#endif
