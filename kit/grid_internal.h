/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_GRID_INTERNAL_H
#define QUERN_KIT_GRID_INTERNAL_H

/* What the files of this library share. */

#include "kit/grid.h"

#include <stdatomic.h>

/* Rows of one view. The addresses are good until the structure of the world changes. */
typedef struct quern__grid_rows {
    const char *positions;
    const char *payloads; /* NULL without payload */
    const quern_entity *entities;
    uint32_t count;
    uint32_t first; /* number of the first row among those of all views */
    uint32_t marks;
} quern__grid_rows;

/* items[cells.starts[cells.cell_count] .. row_count) are those that are nowhere. */
struct quern_grid {
    quern_grid_def def; /* without its name */
    quern_allocator allocator;
    quern_world *owner;
    quern_resource resource;
    char watch_name[QUERN_MAX_NAME_BYTES + 1], build_name[QUERN_MAX_NAME_BYTES + 1];
    quern_term terms[QUERN_MAX_TERMS];
    uint32_t first_mark_term, mark_count;
    uint32_t payload_term;
    uint32_t position_bytes, payload_bytes; /* of one value; no payload: 0 */
    uint32_t dimension_count;
    quern_query *query;

    quern__grid_rows *rows; /* of the last build, or of one that is prepared */
    uint32_t rows_count, rows_capacity;
    uint32_t old_rows_count; /* rows_count before this frame */
    bool rows_differ;        /* from those of the last build */
    bool rows_failed;        /* not all of them could be noted */
    uint64_t restore_count;  /* of the world, at the last build */
    atomic_bool has_changed; /* relaxed: the system that reads it runs after those that set it */

    quern_grid_cells cells;
    uint32_t row_count;  /* of all views */
    uint32_t item_count; /* that can be found */
    quern_grid_item *items;
    char *payloads; /* by item */
    uint32_t item_capacity;
    int32_t *cell_of; /* by row */
    uint32_t *starts; /* cell_count + 1 */
    size_t starts_capacity;
    uint32_t *cursors; /* by part and cell: rows, and then where the next of them comes to stand */
    size_t cursors_capacity;
    uint64_t build_count;
    quern_result last_result;
};

/* Room for one more entry of rows. */
bool quern__grid_reserve_rows(quern_grid *grid);

/* Gives all its memory back. */
void quern__grid_release(quern_grid *grid);

/* Sorts the rows that were noted. On failure the grid is empty. */
quern_result quern__grid_sort(quern_grid *grid, quern_jobs *jobs);

/* The cells along one axis where something can be whose coordinate differs from this one by at most the
 * radius, as floats compute the difference and its square. The number of a cell grows with the coordinate,
 * also in the rounding of floats, so what lies between two coordinates is in the cells between theirs. The
 * margin is far above what rounding does. */
static inline void quern__grid_reach(const quern_grid_cells *cells, uint32_t axis, float center,
                                     float radius, uint32_t *first, uint32_t *end)
{
    const float least_radius = 1e-15f, most_radius = 1e15f, margin = 1.0f / (1 << 20);
    if (radius > most_radius) { /* whose square may be infinite */
        *first = 0;
        *end = cells->counts[axis];
        return;
    }
    if (radius < least_radius) radius = least_radius; /* whose square may be 0 */
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
