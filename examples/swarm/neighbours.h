/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_NEIGHBOURS_H
#define SWARM_NEIGHBOURS_H

/* Finding nearby agents. A cell of the grid is as wide as an agent can see, so the neighbours of an
 * agent are in 3 by 3 cells. Items are sorted by cell, so each 3 cells of a row are consecutive in
 * memory. */

#include "components.h"

#include <quern/kit/grid.h>

enum {
    NEIGHBOUR_HUNTER = 1, /* bit in the marks of an item */
    NEIGHBOURS_PER_ROW = 10,
    NEIGHBOURS_AHEAD = 6, /* number of agents for which the items are prefetched in advance */
    CACHE_LINE_BYTES = 64
};

/* The agents in three cells of a row: items[0], items[stride], items[2 * stride], ... below count. In a
 * crowd, the stride is greater than 1, so the work per agent is bounded. */
typedef struct NeighbourRow {
    const quern_grid_item *items;
    const Velocity *velocities; /* of the items */
    uint32_t count, stride;
} NeighbourRow;

/* The cells around a position. */
typedef struct Surroundings {
    const quern_grid_cells *cells;
    uint32_t first_x, last_x;
    uint32_t first_y, last_y;
} Surroundings;

static inline Surroundings surroundings_of(const quern_grid_cells *cells, Vector place)
{
    const uint32_t x = quern_grid_cell_along(cells, 0, place.x),
                   y = quern_grid_cell_along(cells, 1, place.y);
    return (Surroundings){.cells = cells,
                          .first_x = x > 0 ? x - 1 : 0,
                          .last_x = x + 1 < cells->counts[0] ? x + 1 : x,
                          .first_y = y > 0 ? y - 1 : 0,
                          .last_y = y + 1 < cells->counts[1] ? y + 1 : y};
}

static inline NeighbourRow neighbour_row(const Surroundings *around, uint32_t y)
{
    const quern_grid_cells *cells = around->cells;
    const uint32_t *starts = cells->starts + (size_t)y * cells->counts[0];
    const uint32_t begin = starts[around->first_x], count = starts[around->last_x + 1] - begin;
    return (NeighbourRow){.items = cells->items + begin,
                          .velocities = (const Velocity *)cells->payloads + begin,
                          .count = count,
                          .stride = (count + NEIGHBOURS_PER_ROW - 1) / NEIGHBOURS_PER_ROW};
}

/* Prefetches the items around a position: the items of other agents are scattered over the grid. */
static inline void neighbours_fetch(const quern_grid_cells *cells, Vector place)
{
    const Surroundings near = surroundings_of(cells, place);
    for (uint32_t y = near.first_y; y <= near.last_y; y++) {
        const NeighbourRow row = neighbour_row(&near, y);
        for (uint32_t bytes = 0; bytes < 3 * CACHE_LINE_BYTES; bytes += CACHE_LINE_BYTES)
            __builtin_prefetch((const char *)row.items + bytes);
        __builtin_prefetch(row.velocities);
    }
}

#endif
