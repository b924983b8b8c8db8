/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Sorts rows into cells: a stable parallel counting sort.
 *
 *   bounds   each part finds the bounding box of its positions, unless the box is given
 *   count    each part counts its rows per cell, in counters of its own, and stores each row's cell
 *   sum      each range of cells turns counts into item indices: within a cell, the rows of the first part come
 *            first, then those of the second, and so on
 *   place    each part copies its rows to their items, in order
 *
 * A part is a range of rows. So the rows of a cell keep their order, and the result does not depend on how rows are
 * divided: the number of parts may depend on the number of threads. It is limited by the cost of summation, which
 * reads every counter of every part. */

#include "kit/grid_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    MOST_PARTS = 64,
    ROWS_PER_PART = 4096,     /* smallest part that is worth a job */
    COUNTERS_PER_ROW = 4,     /* limit on the counters of all parts */
    LEAST_CELLS = 4096,       /* default limit of cells for few rows */
    CELLS_PER_ROW = 8,        /* default limit of cells per row */
    MOST_CELLS = 1 << 26,     /* limit of max_cell_count */
    MOST_AXIS_CELLS = 1 << 22 /* floats represent all indices up to it */
};

#if defined(__GNUC__) || defined(__clang__)
#define QUERN_GRID_INLINE static inline __attribute__((always_inline))
#else
#define QUERN_GRID_INLINE static inline
#endif

static const float smallest_cell = 1e-15f, largest_cell = 1e38f;

typedef struct box {
    float min[3], max[3];
} box;

typedef struct sorting {
    quern_grid *grid;
    uint32_t part_count;
    box boxes[MOST_PARTS]; /* bounding box of each part */
    /* per range of cells: number of rows; then the index of its first item */
    uint32_t range_sums[MOST_PARTS];
} sorting;

/* ----------------------------------------------------------------------------------------------- parts */

static uint32_t part_begin(uint32_t count, uint32_t part, uint32_t part_count)
{
    return (uint32_t)((uint64_t)count * part / part_count);
}

/* Calls function for each part, on the calling thread if there is no pool or it is busy. The pool is used for a single
 * part as well, so that forecasts see the loop. */
static void for_parts(quern_jobs *jobs, sorting *all, quern_range_function *function)
{
    if (jobs == NULL || quern_jobs_parallel_for(jobs, all->part_count, 1, function, all) != QUERN_OK)
        function(all, 0, all->part_count, 0);
}

/* The rows of a part that belong to one view. */
typedef struct slice {
    const quern__grid_rows *rows;
    uint32_t begin, end; /* indices in the view */
    uint32_t first_row;  /* index of the first row among the rows of all views */
} slice;

/* Advances to the next slice of the rows before `end`. Before the first call, `first_row` is set and `rows` is
 * NULL. Returns false after the last slice. */
static bool next_slice(const quern_grid *grid, slice *it, uint32_t end)
{
    if (it->first_row >= end) return false;
    if (it->rows != NULL) {
        it->first_row += it->end - it->begin;
        it->rows++;
        it->begin = 0;
    } else {
        /* Binary search for the last view that starts at or before `first_row`. */
        uint32_t low = 0, high = grid->rows_count;
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            if (grid->rows[middle].first <= it->first_row)
                low = middle;
            else
                high = middle;
        }
        it->rows = grid->rows + low;
        it->begin = it->first_row - it->rows->first;
    }
    if (it->first_row >= end) return false;
    it->end = it->rows->count - it->begin < end - it->first_row ? it->rows->count
                                                                : it->begin + (end - it->first_row);
    return true;
}

/* A local copy of the layout of positions. The compiler would have to reload the grid's fields after each write to a
 * counter, which it must assume to alias them. */
typedef struct layout {
    size_t position_bytes;
    size_t x, y, z;
    bool is_planar;
} layout;

static layout layout_of(const quern_grid *grid)
{
    const uint32_t *offsets = grid->def.offsets_bytes;
    return (layout){.position_bytes = grid->position_bytes,
                    .x = offsets[0],
                    .y = offsets[1],
                    .z = offsets[2],
                    .is_planar = grid->dimension_count == 2};
}

static inline float coordinate(const char *position, size_t offset_bytes)
{
    float x;
    memcpy(&x, position + offset_bytes, sizeof x);
    return x;
}

static inline void load_position(const layout *from, const char *position, float out[3])
{
    out[0] = coordinate(position, from->x);
    out[1] = coordinate(position, from->y);
    out[2] = from->is_planar ? 0.0f : coordinate(position, from->z);
}

/* Infinite numbers and NaN make the sum NaN. */
static inline bool is_finite_position(const float at[3])
{
    return (at[0] - at[0]) + (at[1] - at[1]) + (at[2] - at[2]) == 0;
}

/* ---------------------------------------------------------------------------------------------- bounds */

static box empty_box(void)
{
    const float far = FLT_MAX;
    return (box){{far, far, far}, {-far, -far, -far}};
}

static void extend(box *whole, const float min[3], const float max[3])
{
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (min[axis] < whole->min[axis]) whole->min[axis] = min[axis];
        if (max[axis] > whole->max[axis]) whole->max[axis] = max[axis];
    }
}

static void find_boxes(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    sorting *all = user_data;
    const quern_grid *grid = all->grid;
    const layout from = layout_of(grid);
    for (uint32_t part = begin; part < end; part++) {
        box found = empty_box();
        slice it = {.first_row = part_begin(grid->row_count, part, all->part_count)};
        const uint32_t last = part_begin(grid->row_count, part + 1, all->part_count);
        while (next_slice(grid, &it, last))
            for (uint32_t i = it.begin; i < it.end; i++) {
                float at[3];
                const char *position = it.rows->positions + (size_t)i * grid->position_bytes;
                load_position(&from, position, at);
                if (is_finite_position(at)) extend(&found, at, at);
            }
        all->boxes[part] = found;
    }
}

static bool has_fixed_box(const quern_grid_def *def)
{
    for (uint32_t axis = 0; axis < 3; axis++)
        if (def->min[axis] != 0 || def->max[axis] != 0) return true;
    return false;
}

static box find_bounds(sorting *all, quern_jobs *jobs)
{
    const quern_grid_def *def = &all->grid->def;
    box bounds = empty_box();
    if (has_fixed_box(def)) {
        extend(&bounds, def->min, def->max);
    } else {
        for_parts(jobs, all, find_boxes);
        for (uint32_t part = 0; part < all->part_count; part++)
            extend(&bounds, all->boxes[part].min, all->boxes[part].max);
    }
    for (uint32_t axis = 0; axis < 3; axis++) /* without finite positions, and along z in two dimensions */
        if (!(bounds.min[axis] <= bounds.max[axis]) || axis >= all->grid->dimension_count)
            bounds.min[axis] = bounds.max[axis] = 0;
    return bounds;
}

/* ---------------------------------------------------------------------------------------------- cells */

static double cells_along(const box *bounds, uint32_t axis, double size)
{
    return floor(((double)bounds->max[axis] - bounds->min[axis]) / size) + 1;
}

static bool fits(const box *bounds, double size, double max_count)
{
    double cells = 1;
    for (uint32_t axis = 0; axis < 3; axis++) {
        const double along = cells_along(bounds, axis, size);
        cells *= along;
        if (along > MOST_AXIS_CELLS || cells > max_count) return false;
    }
    return true;
}

/* Returns the smallest of a series of sizes, each four fifths of the one before, that gives at most half as many
 * cells as rows. Computed without roots: their results differ between machines. */
static double suggest_size(const box *bounds, uint32_t row_count)
{
    double size = 0;
    for (uint32_t axis = 0; axis < 3; axis++)
        size = fmax(size, (double)bounds->max[axis] - bounds->min[axis]);
    if (size <= 0) return 1;
    while (size > (double)smallest_cell && fits(bounds, size * 0.8, row_count * 0.5))
        size *= 0.8;
    return size;
}

static quern_grid_cells make_cells(const quern_grid *grid, const box *bounds)
{
    const uint64_t by_rows = (uint64_t)grid->row_count * CELLS_PER_ROW;
    uint64_t max_count = by_rows > LEAST_CELLS ? by_rows : LEAST_CELLS;
    if (grid->def.max_cell_count != 0) max_count = grid->def.max_cell_count;
    if (max_count > MOST_CELLS) max_count = MOST_CELLS;
    const float wanted_size = grid->def.cell_size;
    double size = wanted_size > 0 ? (double)wanted_size : suggest_size(bounds, grid->row_count);
    if (size < (double)smallest_cell) size = (double)smallest_cell;
    while (!fits(bounds, size, (double)max_count) && size < (double)largest_cell)
        size *= 2;
    const bool is_divided = fits(bounds, size, (double)max_count);
    quern_grid_cells cells = {.size = (float)size, .inverse = 1.0f / (float)size, .cell_count = 1};
    for (uint32_t axis = 0; axis < 3; axis++) {
        cells.min[axis] = bounds->min[axis];
        cells.counts[axis] = is_divided ? (uint32_t)cells_along(bounds, axis, size) : 1;
        cells.last[axis] = (float)(cells.counts[axis] - 1);
        cells.cell_count *= cells.counts[axis];
    }
    return cells;
}

/* ---------------------------------------------------------------------------------------------- memory */

static void *allocate_bytes(const quern_grid *grid, size_t bytes)
{
    return grid->allocator.allocate(grid->allocator.user_data, bytes, 64);
}

static void release_bytes(const quern_grid *grid, void *memory, size_t bytes)
{
    if (memory != NULL) grid->allocator.release(grid->allocator.user_data, memory, bytes, 64);
}

static void release_items(quern_grid *grid)
{
    release_bytes(grid, grid->items, grid->item_capacity * sizeof *grid->items);
    release_bytes(grid, grid->cell_of, grid->item_capacity * sizeof *grid->cell_of);
    release_bytes(grid, grid->payloads, (size_t)grid->item_capacity * grid->payload_bytes);
    grid->items = NULL;
    grid->cell_of = NULL;
    grid->payloads = NULL;
    grid->item_capacity = 0;
}

static bool reserve_items(quern_grid *grid, uint32_t count)
{
    if (count <= grid->item_capacity) return true;
    const uint32_t wanted = count > UINT32_MAX - count / 4 ? count : count + count / 4;
    release_items(grid);
    grid->item_capacity = wanted;
    grid->items = allocate_bytes(grid, wanted * sizeof *grid->items);
    grid->cell_of = allocate_bytes(grid, wanted * sizeof *grid->cell_of);
    if (grid->payload_bytes > 0)
        grid->payloads = allocate_bytes(grid, (size_t)wanted * grid->payload_bytes);
    if (grid->items != NULL && grid->cell_of != NULL &&
        (grid->payload_bytes == 0 || grid->payloads != NULL))
        return true;
    release_items(grid);
    return false;
}

static bool reserve_counters(quern_grid *grid, uint32_t **counters, size_t *capacity, size_t wanted)
{
    if (wanted <= *capacity) return true;
    release_bytes(grid, *counters, *capacity * sizeof **counters);
    *counters = allocate_bytes(grid, wanted * sizeof **counters);
    *capacity = *counters != NULL ? wanted : 0;
    return *counters != NULL;
}

void quern__grid_release(quern_grid *grid)
{
    release_items(grid);
    release_bytes(grid, grid->starts, grid->starts_capacity * sizeof *grid->starts);
    release_bytes(grid, grid->cursors, grid->cursors_capacity * sizeof *grid->cursors);
    release_bytes(grid, grid->rows, grid->rows_capacity * sizeof *grid->rows);
}

bool quern__grid_reserve_rows(quern_grid *grid)
{
    if (grid->rows_count < grid->rows_capacity) return true;
    const uint32_t wanted = grid->rows_capacity == 0 ? 64 : grid->rows_capacity * 2;
    quern__grid_rows *rows = allocate_bytes(grid, wanted * sizeof *rows);
    if (rows == NULL) return false;
    if (grid->rows != NULL) memcpy(rows, grid->rows, grid->rows_count * sizeof *rows);
    release_bytes(grid, grid->rows, grid->rows_capacity * sizeof *rows);
    grid->rows = rows;
    grid->rows_capacity = wanted;
    return true;
}

/* ----------------------------------------------------------------------------------------------- steps */

/* One counter per cell, and a last one for rows with positions that are not finite. */
static uint32_t counter_count(const quern_grid *grid)
{
    return grid->cells.cell_count + 1;
}

/* Returns the index of a cell like quern_grid_cell_along, in a form that compilers vectorise. */
static inline int32_t number_along(float x, float min, float inverse, float last)
{
    float cell = (x - min) * inverse;
    cell = cell > 0 ? cell : 0;
    return (int32_t)(cell < last ? cell : last);
}

/* Writes the cells of some rows. For speed, inlined with constant from->is_planar and from->position_bytes. */
QUERN_GRID_INLINE void find_cells(const layout *from, const quern_grid_cells *grid, const char *position,
                                  uint32_t count, int32_t *restrict cell_of)
{
    const float inverse = grid->inverse;
    const float min_x = grid->min[0], min_y = grid->min[1], min_z = grid->min[2];
    const float last_x = grid->last[0], last_y = grid->last[1], last_z = grid->last[2];
    const int32_t columns = (int32_t)grid->counts[0], rows = (int32_t)grid->counts[1];
    const int32_t no_cell = (int32_t)grid->cell_count;
    for (uint32_t i = 0; i < count; i++) {
        float at[3];
        load_position(from, position + i * from->position_bytes, at);
        int32_t cell = number_along(at[1], min_y, inverse, last_y);
        if (!from->is_planar) cell += number_along(at[2], min_z, inverse, last_z) * rows;
        cell = cell * columns + number_along(at[0], min_x, inverse, last_x);
        cell_of[i] = is_finite_position(at) ? cell : no_cell;
    }
}

/* Calls find_cells with constants for the most common layouts. */
static void find_cells_of_rows(const layout *from, const quern_grid_cells *grid, const char *position,
                               uint32_t count, int32_t *cell_of)
{
    const layout packed2 = {.position_bytes = 8, .y = 4, .is_planar = true};
    const layout packed3 = {.position_bytes = 12, .y = 4, .z = 8};
    const bool is_packed = from->x == 0 && from->y == 4 && (from->is_planar || from->z == 8);
    if (from->is_planar && is_packed && from->position_bytes == 8)
        find_cells(&packed2, grid, position, count, cell_of);
    else if (!from->is_planar && is_packed && from->position_bytes == 12)
        find_cells(&packed3, grid, position, count, cell_of);
    else
        find_cells(from, grid, position, count, cell_of);
}

static void count_rows(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const sorting *all = user_data;
    const quern_grid *grid = all->grid;
    const quern_grid_cells cells = grid->cells;
    const layout from = layout_of(grid);
    for (uint32_t part = begin; part < end; part++) {
        uint32_t *counters = grid->cursors + (size_t)part * counter_count(grid);
        memset(counters, 0, counter_count(grid) * sizeof *counters);
        slice it = {.first_row = part_begin(grid->row_count, part, all->part_count)};
        const uint32_t last = part_begin(grid->row_count, part + 1, all->part_count);
        while (next_slice(grid, &it, last)) {
            const uint32_t count = it.end - it.begin;
            int32_t *cell_of = grid->cell_of + it.first_row;
            find_cells_of_rows(&from, &cells, it.rows->positions + it.begin * from.position_bytes, count,
                               cell_of);
            for (uint32_t i = 0; i < count; i++)
                counters[cell_of[i]]++;
        }
    }
}

/* Counts the rows of each range of cells. */
static void sum_ranges(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    sorting *all = user_data;
    const uint32_t count = counter_count(all->grid);
    for (uint32_t range = begin; range < end; range++) {
        const uint32_t first = part_begin(count, range, all->part_count);
        const uint32_t last = part_begin(count, range + 1, all->part_count);
        uint32_t sum = 0;
        for (uint32_t part = 0; part < all->part_count; part++) {
            const uint32_t *counters = all->grid->cursors + (size_t)part * count;
            for (uint32_t cell = first; cell < last; cell++)
                sum += counters[cell];
        }
        all->range_sums[range] = sum;
    }
}

static void sum_cells(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const sorting *all = user_data;
    const uint32_t count = counter_count(all->grid);
    for (uint32_t range = begin; range < end; range++) {
        const uint32_t last = part_begin(count, range + 1, all->part_count);
        uint32_t index = all->range_sums[range];
        for (uint32_t cell = part_begin(count, range, all->part_count); cell < last; cell++) {
            all->grid->starts[cell] = index;
            uint32_t *cursor = all->grid->cursors + cell;
            for (uint32_t part = 0; part < all->part_count; part++, cursor += count) {
                const uint32_t rows = *cursor;
                *cursor = index;
                index += rows;
            }
        }
    }
}

static void sum_counts(sorting *all, quern_jobs *jobs)
{
    if (all->part_count > 1) for_parts(jobs, all, sum_ranges);
    uint32_t sum = 0;
    for (uint32_t range = 0; range < all->part_count && all->part_count > 1; range++) {
        const uint32_t rows = all->range_sums[range];
        all->range_sums[range] = sum;
        sum += rows;
    }
    for_parts(jobs, all, sum_cells);
}

/* Copies the rows of a slice to their items. Inlined with constant from->is_planar and payload_bytes. */
QUERN_GRID_INLINE void place_slice(const layout *from, const slice *it, size_t payload_bytes,
                                   uint32_t *cursors, const quern_grid *grid)
{
    const int32_t *cells = grid->cell_of + it->first_row;
    const char *position = it->rows->positions + it->begin * from->position_bytes;
    const quern_entity *entities = it->rows->entities;
    const uint32_t marks = it->rows->marks;
    for (uint32_t i = it->begin; i < it->end; i++, position += from->position_bytes) {
        const uint32_t index = cursors[*cells++]++;
        quern_grid_item *item = &grid->items[index];
        item->entity = entities[i];
        load_position(from, position, item->position);
        item->marks = marks;
        if (payload_bytes > 0)
            memcpy(grid->payloads + index * payload_bytes, it->rows->payloads + i * payload_bytes,
                   payload_bytes);
    }
}

/* Calls place_slice with constants for the most common payload sizes. */
QUERN_GRID_INLINE void place_any(const layout *from, const slice *it, uint32_t *cursors,
                                 const quern_grid *grid)
{
    switch (grid->payload_bytes) {
    case 0:
        place_slice(from, it, 0, cursors, grid);
        break;
    case 4:
        place_slice(from, it, 4, cursors, grid);
        break;
    case 8:
        place_slice(from, it, 8, cursors, grid);
        break;
    case 12:
        place_slice(from, it, 12, cursors, grid);
        break;
    case 16:
        place_slice(from, it, 16, cursors, grid);
        break;
    default:
        place_slice(from, it, grid->payload_bytes, cursors, grid);
    }
}

static void place_rows(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const sorting *all = user_data;
    const quern_grid *grid = all->grid;
    layout from = layout_of(grid);
    for (uint32_t part = begin; part < end; part++) {
        uint32_t *cursors = grid->cursors + (size_t)part * counter_count(grid);
        slice it = {.first_row = part_begin(grid->row_count, part, all->part_count)};
        const uint32_t last = part_begin(grid->row_count, part + 1, all->part_count);
        while (next_slice(grid, &it, last)) {
            if (grid->dimension_count == 2) {
                from.is_planar = true;
                place_any(&from, &it, cursors, grid);
            } else {
                from.is_planar = false;
                place_any(&from, &it, cursors, grid);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------ all */

/* Chooses the number of parts: at least ROWS_PER_PART rows per part, and, from the third part on, at most
 * COUNTERS_PER_ROW counters per row in all parts together. */
static uint32_t choose_part_count(const quern_grid *grid, quern_jobs *jobs)
{
    uint32_t max_count = jobs != NULL ? quern_jobs_worker_count(jobs) : 1;
    if (max_count > MOST_PARTS) max_count = MOST_PARTS;
    const uint32_t by_rows = grid->row_count / ROWS_PER_PART;
    const uint64_t by_counters =
        2 + (uint64_t)grid->row_count * COUNTERS_PER_ROW / ((uint64_t)grid->cells.cell_count + 1);
    if (max_count > by_rows) max_count = by_rows;
    if (max_count > by_counters) max_count = (uint32_t)by_counters;
    return max_count > 0 ? max_count : 1;
}

static void make_empty(quern_grid *grid)
{
    grid->item_count = 0;
    grid->row_count = 0;
    memset(&grid->cells, 0, sizeof grid->cells);
}

static quern_result sort(quern_grid *grid, quern_jobs *jobs)
{
    if (!reserve_items(grid, grid->row_count)) return QUERN_ERROR_OUT_OF_MEMORY;
    sorting all = {.grid = grid};
    all.part_count = choose_part_count(grid, jobs);
    const box bounds = find_bounds(&all, jobs);
    grid->cells = make_cells(grid, &bounds);
    all.part_count = choose_part_count(grid, jobs);
    const size_t counters = counter_count(grid);
    if (!reserve_counters(grid, &grid->starts, &grid->starts_capacity, counters) ||
        !reserve_counters(grid, &grid->cursors, &grid->cursors_capacity, counters * all.part_count))
        return QUERN_ERROR_OUT_OF_MEMORY;
    for_parts(jobs, &all, count_rows);
    sum_counts(&all, jobs);
    for_parts(jobs, &all, place_rows);
    grid->item_count = grid->starts[grid->cells.cell_count];
    grid->cells.items = grid->items;
    grid->cells.starts = grid->starts;
    grid->cells.payloads = grid->payloads;
    return QUERN_OK;
}

quern_result quern__grid_sort(quern_grid *grid, quern_jobs *jobs)
{
    grid->last_result = grid->rows_failed ? QUERN_ERROR_OUT_OF_MEMORY : sort(grid, jobs);
    if (grid->last_result != QUERN_OK) make_empty(grid);
    grid->restore_count = quern_world_restore_count(grid->owner);
    grid->build_count += grid->last_result == QUERN_OK;
    return grid->last_result;
}
