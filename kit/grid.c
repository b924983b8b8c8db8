/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Grids: copies of positions that are sorted into cells, the systems that keep the copies up to date, and searches.
 *
 * A rebuild is needed if rows, their values or their order have changed. Change filters detect rows that were added
 * to a chunk or moved within it. They do not detect removals, but after a removal a chunk has fewer rows than at the
 * last build, or is gone. So the grid is rebuilt if a filter passes a chunk, or if the list of chunks and their row
 * counts differs. Restoring a frame of a history also restores what filters have seen, but not the grid, which may
 * show a frame that was undone; so a restore causes a rebuild as well.
 *
 * Rows are sorted into cells by a stable parallel counting sort:
 *
 *   bounds   each part finds the bounding box of its positions, unless the box is given
 *   count    each part counts its rows per cell, in counters of its own, and stores each row's cell
 *   sum      each range of cells turns counts into item indices: within a cell, the rows of the first part come
 *            first, then those of the second, and so on
 *   place    each part copies its rows to their items, in order
 *
 * A part is a range of rows. So the rows of a cell keep their order, and the result does not depend on how rows are
 * divided: the number of parts may depend on the number of threads. It is limited by the cost of summation, which
 * reads every counter of every part.
 *
 * A search iterates over the cells that can contain results, one range of cells along x after another, and tests their
 * items. */

#include "kit/grid.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
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

/* The rows of one view. The addresses are valid until the structure of the world changes. */
typedef struct grid_rows {
    const char *positions;
    const char *payloads; /* NULL without payload */
    const quern_entity *entities;
    uint32_t count;
    uint32_t first; /* index of the first row among the rows of all views */
    uint32_t marks;
} grid_rows;

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

    grid_rows *rows; /* of the last build, or those gathered in this frame */
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

/* Makes room for one more entry of `rows`. Returns false if there is no memory. */
static bool reserve_rows(quern_grid *grid)
{
    if (grid->rows_count < grid->rows_capacity) return true;
    const uint32_t wanted = grid->rows_capacity == 0 ? 64 : grid->rows_capacity * 2;
    grid_rows *rows = allocate_bytes(grid, wanted * sizeof *rows);
    if (rows == NULL) return false;
    if (grid->rows != NULL) memcpy(rows, grid->rows, grid->rows_count * sizeof *rows);
    release_bytes(grid, grid->rows, grid->rows_capacity * sizeof *rows);
    grid->rows = rows;
    grid->rows_capacity = wanted;
    return true;
}

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

/* ------------------------------------------------------------------------------------------- checking */

static bool is_in_range(float x, float least, float most)
{
    return x >= least && x <= most;
}

static quern_result check_numbers(const quern_grid_def *def)
{
    if (def->cell_size != 0 && !is_in_range(def->cell_size, 1e-15f, 1e15f))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: the cell size is %g: set 1e-15 to 1e15, or 0 for an automatic size",
            (double)def->cell_size);
    for (uint32_t axis = 0; axis < 3; axis++)
        if (!is_in_range(def->min[axis], -FLT_MAX, FLT_MAX) ||
            !is_in_range(def->max[axis], def->min[axis], FLT_MAX))
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "quern_grid_create: along %c the box is from %g to %g: set finite numbers, min <= max",
                "xyz"[axis], (double)def -> min[axis], (double)def -> max[axis]);
    if (def->max_cell_count > MOST_CELLS)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: max_cell_count is %u: set at most %d, or 0 for the default",
            def->max_cell_count, MOST_CELLS);
    if ((def->allocator.allocate == NULL) != (def->allocator.release == NULL))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: the allocator has only one of allocate and release: set both, or neither");
    return QUERN_OK;
}

/* Finds the sizes of the components, which must be plain bytes, since the grid copies them without hooks. */
static quern_result look_up_sizes(quern_grid *grid)
{
    const quern_component payload = grid->def.payload;
    quern_result result = quern_component_get_size(grid->owner, grid->def.position, &grid->position_bytes);
    if (result == QUERN_OK && !quern_component_is_null(payload))
        result = quern_component_get_size(grid->owner, payload, &grid->payload_bytes);
    if (result != QUERN_OK) return result;
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++)
        if (grid->def.offsets_bytes[axis] + sizeof(float) > grid->position_bytes)
            return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                                   "quern_grid_create: %c at byte %u is not within component '%s' of %u "
                                   "bytes: correct offsets_bytes",
                                   "xyz"[axis], grid -> def.offsets_bytes[axis],
                                   quern_component_name(grid->owner, grid->def.position),
                                   grid->position_bytes);
    if (!quern_component_is_null(payload) &&
        (grid->payload_bytes == 0 || grid->payload_bytes > QUERN_GRID_MAX_PAYLOAD_BYTES))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: payload '%s' has %u bytes: choose a component of 1 to %d bytes",
            quern_component_name(grid->owner, payload), grid->payload_bytes, QUERN_GRID_MAX_PAYLOAD_BYTES);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- creating */

/* Registers the grid's resource, or reuses the one that a destroyed grid has left. */
static quern_result make_resource(quern_grid *grid, const char *name)
{
    const quern_resource_def def = {.name = name,
                                    .type_name = "quern_grid *",
                                    .size_bytes = sizeof grid,
                                    .alignment_bytes = _Alignof(quern_grid *),
                                    .value = &grid};
    const quern_resource found = quern_resource_find(grid->owner, name);
    if (found.bits == 0) return quern_resource_register(grid->owner, &def, &grid->resource);
    uint32_t size_bytes = 0;
    quern_result result = quern_resource_get_size(grid->owner, found, &size_bytes);
    if (result != QUERN_OK) return result;
    quern_grid **value = size_bytes == sizeof grid ? quern_resource_get(grid->owner, found) : NULL;
    if (value == NULL || *value != NULL)
        return quern_error_set(
            QUERN_ERROR_DUPLICATE_NAME,
            "quern_grid_create: the world has a resource '%s' already: give the grid another name", name);
    *value = grid;
    grid->resource = found;
    return QUERN_OK;
}

static quern_result init(quern_grid *grid, const char *name)
{
    quern_result result = look_up_sizes(grid);
    if (result != QUERN_OK) return result;
    const quern_grid_def *def = &grid->def;
    uint32_t count = 0;
    grid->terms[count++] = quern_term_read(def->position);
    if (grid->payload_bytes > 0 && def->payload.bits != def->position.bits) {
        grid->payload_term = count;
        grid->terms[count++] = quern_term_read(def->payload);
    }
    for (uint32_t i = 0; i < QUERN_GRID_MAX_FILTERS && def->with[i].bits != 0; i++)
        grid->terms[count++] = quern_term_with(def->with[i]);
    for (uint32_t i = 0; i < QUERN_GRID_MAX_FILTERS && def->without[i].bits != 0; i++)
        grid->terms[count++] = quern_term_without(def->without[i]);
    grid->first_mark_term = count;
    for (uint32_t i = 0; i < QUERN_GRID_MAX_MARKS && def->marks[i].bits != 0; i++)
        grid->terms[count++] = quern_term_optional(def->marks[i], QUERN_ACCESS_NONE);
    grid->mark_count = count - grid->first_mark_term;
    quern_query_def query = {0};
    memcpy(query.terms, grid->terms, sizeof query.terms);
    result = quern_query_create(grid->owner, &query, &grid->query);
    return result == QUERN_OK ? make_resource(grid, name) : result;
}

quern_result quern_grid_create(quern_world *world, const quern_grid_def *def, quern_grid **out_grid)
{
    static const char function[] = "quern_grid_create";
    if (world == NULL) return fail_null(function, "world");
    if (def == NULL) return fail_null(function, "def");
    if (out_grid == NULL) return fail_null(function, "out_grid");
    quern_result result = check_numbers(def);
    if (result != QUERN_OK) return result;
    const char *name = def->name != NULL ? def->name : "grid";
    const quern_allocator allocator =
        def->allocator.allocate != NULL ? def->allocator : quern_allocator_default();
    quern_grid *grid = allocator.allocate(allocator.user_data, sizeof *grid, _Alignof(max_align_t));
    if (grid == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for a grid", function);
    memset(grid, 0, sizeof *grid);
    grid->def = *def;
    grid->def.name = NULL;
    grid->allocator = allocator;
    grid->owner = world;
    grid->dimension_count = def->planar ? 2 : 3;
    atomic_init(&grid->has_changed, true);
    (void)snprintf(grid->watcher_name, sizeof grid->watcher_name, "watch %s", name);
    (void)snprintf(grid->builder_name, sizeof grid->builder_name, "build %s", name);
    uint32_t *offsets = grid->def.offsets_bytes;
    if (offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 0) { /* not given: consecutive coordinates */
        offsets[1] = sizeof(float);
        offsets[2] = 2 * sizeof(float);
    }
    result = init(grid, name);
    if (result != QUERN_OK) {
        quern_grid_destroy(grid);
        return result;
    }
    *out_grid = grid;
    return QUERN_OK;
}

void quern_grid_destroy(quern_grid *grid)
{
    if (grid == NULL) return;
    if (grid->resource.bits != 0) {
        quern_grid **value = quern_resource_get(grid->owner, grid->resource);
        if (value != NULL) *value = NULL;
    }
    quern_query_destroy(grid->query);
    release_items(grid);
    release_bytes(grid, grid->starts, grid->starts_capacity * sizeof *grid->starts);
    release_bytes(grid, grid->cursors, grid->cursors_capacity * sizeof *grid->cursors);
    release_bytes(grid, grid->rows, grid->rows_capacity * sizeof *grid->rows);
    const quern_allocator allocator = grid->allocator;
    allocator.release(allocator.user_data, grid, sizeof *grid, _Alignof(max_align_t));
}

quern_resource quern_grid_resource(const quern_grid *grid)
{
    return grid->resource;
}

const quern_grid *quern_context_grid(quern_context *context, quern_resource resource)
{
    const quern_grid *const *value = quern_context_resource(context, resource);
    return value != NULL ? *value : NULL;
}

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
    const grid_rows *rows;
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

static box find_bounds(sorting *all, quern_jobs *jobs)
{
    const quern_grid_def *def = &all->grid->def;
    box bounds = empty_box();
    bool is_given = false;
    for (uint32_t axis = 0; axis < 3; axis++)
        is_given |= def->min[axis] != 0 || def->max[axis] != 0;
    if (is_given) {
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

/* ------------------------------------------------------------------------------------ count, sum, place */

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

/* --------------------------------------------------------------------------------------------- sort */

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

static quern_result sort_into_cells(quern_grid *grid, quern_jobs *jobs)
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
    if (all.part_count > 1) {
        for_parts(jobs, &all, sum_ranges);
        uint32_t sum = 0;
        for (uint32_t range = 0; range < all.part_count; range++) {
            const uint32_t rows = all.range_sums[range];
            all.range_sums[range] = sum;
            sum += rows;
        }
    }
    for_parts(jobs, &all, sum_cells);
    for_parts(jobs, &all, place_rows);
    grid->item_count = grid->starts[grid->cells.cell_count];
    grid->cells.items = grid->items;
    grid->cells.starts = grid->starts;
    grid->cells.payloads = grid->payloads;
    return QUERN_OK;
}

/* Sorts the gathered rows into cells. Fails with OUT_OF_MEMORY; then the grid is empty. */
static quern_result sort_rows(quern_grid *grid, quern_jobs *jobs)
{
    grid->last_result = grid->rows_failed ? QUERN_ERROR_OUT_OF_MEMORY : sort_into_cells(grid, jobs);
    if (grid->last_result != QUERN_OK) {
        grid->item_count = 0;
        grid->row_count = 0;
        memset(&grid->cells, 0, sizeof grid->cells);
    }
    grid->restore_count = quern_world_restore_count(grid->owner);
    grid->build_count += grid->last_result == QUERN_OK;
    return grid->last_result;
}

/* ------------------------------------------------------------------------------------------- building */

static void clear_rows(quern_grid *grid)
{
    grid->row_count = 0;
    grid->rows_count = 0;
    grid->rows_failed = false;
}

static void add_rows(quern_grid *grid, const quern_view *view, uint32_t old_count)
{
    grid_rows rows = {.positions = quern_view_read(view, 0),
                      .entities = view->entities,
                      .count = view->count,
                      .first = grid->row_count};
    if (grid->payload_bytes > 0) rows.payloads = quern_view_read(view, grid->payload_term);
    for (uint32_t i = 0; i < grid->mark_count; i++)
        rows.marks |= (uint32_t)quern_view_has(view, grid->first_mark_term + i) << i;
    if (!reserve_rows(grid) || UINT32_MAX - grid->row_count < view->count) {
        grid->rows_failed = true;
        return;
    }
    grid_rows *place = &grid->rows[grid->rows_count++];
    grid->rows_differ |= grid->rows_count > old_count || place->positions != rows.positions ||
                         place->entities != rows.entities || place->count != rows.count ||
                         place->marks != rows.marks;
    *place = rows;
    grid->row_count += view->count;
}

quern_result quern_grid_build(quern_grid *grid, quern_jobs *jobs)
{
    static const char function[] = "quern_grid_build";
    if (grid == NULL) return fail_null(function, "grid");
    quern_query_iterator it = quern_query_iterate(grid->query);
    if (it.result != QUERN_OK) return it.result;
    clear_rows(grid);
    while (quern_query_next(&it))
        add_rows(grid, &it.view, 0);
    const quern_result result = sort_rows(grid, jobs);
    return result == QUERN_OK
               ? QUERN_OK
               : quern_error_set(result, "%s: no memory to sort the entities; the grid is empty now",
                                 function);
}

void quern_grid_mark(quern_grid *grid)
{
    if (grid != NULL) atomic_store_explicit(&grid->has_changed, true, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------- systems */

static void mark_changed(quern_context *context, const quern_view *view)
{
    (void)view;
    quern_grid_mark(quern_context_user_data(context));
}

static void begin_build(quern_context *context)
{
    quern_grid *grid = quern_context_user_data(context);
    grid->old_rows_count = grid->rows_count;
    grid->rows_differ = false;
    clear_rows(grid);
}

static void add_view_rows(quern_context *context, const quern_view *view)
{
    quern_grid *grid = quern_context_user_data(context);
    add_rows(grid, view, grid->old_rows_count);
}

static void end_build(quern_context *context)
{
    quern_grid *grid = quern_context_user_data(context);
    const bool differs = grid->rows_differ || grid->rows_failed ||
                         grid->rows_count != grid->old_rows_count ||
                         grid->restore_count != quern_world_restore_count(grid->owner);
    if (!differs && !atomic_load_explicit(&grid->has_changed, memory_order_relaxed)) return;
    const bool is_built = sort_rows(grid, quern_context_jobs(context)) == QUERN_OK;
    atomic_store_explicit(&grid->has_changed, !is_built, memory_order_relaxed);
}

quern_result quern_grid_add_systems(quern_grid *grid, quern_schedule *schedule, uint32_t phase)
{
    static const char function[] = "quern_grid_add_systems";
    if (grid == NULL) return fail_null(function, "grid");
    if (schedule == NULL) return fail_null(function, "schedule");
    quern_system_def watcher = {
        .name = grid->watcher_name, .phase = phase, .run = mark_changed, .user_data = grid};
    quern_system_def builder = {.name = grid->builder_name,
                                .phase = phase,
                                .begin = begin_build,
                                .run = add_view_rows,
                                .end = end_build,
                                .after = {grid->watcher_name},
                                .resources = {{grid->resource, QUERN_ACCESS_WRITE}},
                                .user_data = grid};
    memcpy(watcher.terms, grid->terms, sizeof watcher.terms);
    memcpy(builder.terms, grid->terms, sizeof builder.terms);
    watcher.terms[0] = quern_term_changed(watcher.terms[0]);
    if (grid->payload_term != 0)
        watcher.terms[grid->payload_term] = quern_term_changed(watcher.terms[grid->payload_term]);
    /* If an earlier call added the watcher and failed on the builder, this call adds the builder alone. */
    const bool has_watcher = quern_schedule_find_system(schedule, grid->watcher_name).bits != 0;
    const bool has_builder = quern_schedule_find_system(schedule, grid->builder_name).bits != 0;
    quern_result result = QUERN_OK;
    if (!has_watcher || has_builder) result = quern_schedule_add_system(schedule, &watcher, NULL);
    return result == QUERN_OK ? quern_schedule_add_system(schedule, &builder, NULL) : result;
}

/* ------------------------------------------------------------------------------------------ statistics */

quern_result quern_grid_get_stats(const quern_grid *grid, quern_grid_stats *out_stats)
{
    static const char function[] = "quern_grid_get_stats";
    if (grid == NULL) return fail_null(function, "grid");
    if (out_stats == NULL) return fail_null(function, "out_stats");
    *out_stats = (quern_grid_stats){.item_count = grid->item_count,
                                    .left_out_count = grid->row_count - grid->item_count,
                                    .build_count = grid->build_count,
                                    .last_result = grid->last_result};
    for (uint32_t cell = 0; cell < grid->cells.cell_count; cell++) {
        const uint32_t count = grid->starts[cell + 1] - grid->starts[cell];
        if (count > out_stats->largest_count) out_stats->largest_count = count;
    }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- searches */

/* Finds the cells along one axis that can contain an item with a coordinate that differs from `center` by at most the
 * radius, as computed in float. The index of a cell grows with the coordinate, also after rounding, so a coordinate
 * between two others is in a cell between theirs. The margin is far larger than any rounding error. */
static inline void find_cells_within(const quern_grid_cells *cells, uint32_t axis, float center,
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

static inline float square_of(const quern_grid_item *item, const float *center)
{
    const float x = item->position[0] - center[0], y = item->position[1] - center[1],
                z = item->position[2] - center[2];
    return x * x + y * y + z * z;
}

static bool is_finite(const quern_grid *grid, const float *numbers)
{
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++)
        if (!(fabsf(numbers[axis]) <= FLT_MAX)) return false;
    return true;
}

static void copy_point(const quern_grid *grid, const float *from, float to[3])
{
    to[0] = from[0];
    to[1] = from[1];
    to[2] = grid->dimension_count == 3 ? from[2] : 0;
}

/* ------------------------------------------------------------------------------------ radius and box */

/* The most frequent search, mostly with few results: written without loops over axes for speed. */
quern_grid_iterator quern_grid_radius(const quern_grid *grid, const float *center, float radius)
{
    const quern_grid_cells *cells = &grid->cells;
    const float x = center[0], y = center[1], z = grid->dimension_count == 3 ? center[2] : 0;
    quern_grid_iterator it = {0};
    it.is_spatial = grid->dimension_count == 3;
    if (grid->item_count == 0 || (x - x) + (y - y) + (z - z) != 0 || !(radius >= 0)) return it;
    uint32_t first_z = 0;
    it.end_z = 1;
    find_cells_within(cells, 0, x, radius, &it.first_x, &it.end_x);
    find_cells_within(cells, 1, y, radius, &it.first_y, &it.end_y);
    if (grid->dimension_count == 3) find_cells_within(cells, 2, z, radius, &first_z, &it.end_z);
    it.items = grid->items;
    it.starts = grid->starts;
    it.columns = cells->counts[0];
    it.rows = cells->counts[1];
    it.y = it.first_y;
    it.z = first_z;
    it.limit = radius * radius;
    it.center[0] = x;
    it.center[1] = y;
    it.center[2] = z;
    return it;
}

quern_grid_iterator quern_grid_box(const quern_grid *grid, const float *min, const float *max)
{
    const quern_grid_cells *cells = &grid->cells;
    float least[3], most[3];
    uint32_t first[3], end[3];
    copy_point(grid, min, least);
    copy_point(grid, max, most);
    bool is_empty = grid->item_count == 0;
    for (uint32_t axis = 0; axis < 3; axis++) /* infinite sides are valid, NaN is not */
        is_empty |= !(least[axis] <= most[axis]);
    if (is_empty) return (quern_grid_iterator){0};
    for (uint32_t axis = 0; axis < 3; axis++) {
        first[axis] = quern_grid_cell_along(cells, axis, least[axis]);
        end[axis] = quern_grid_cell_along(cells, axis, most[axis]) + 1;
    }
    quern_grid_iterator it = {.is_box = true,
                              .items = grid->items,
                              .starts = grid->starts,
                              .columns = cells->counts[0],
                              .rows = cells->counts[1],
                              .first_x = first[0],
                              .end_x = end[0],
                              .first_y = first[1],
                              .end_y = end[1],
                              .end_z = end[2],
                              .y = first[1],
                              .z = first[2]};
    copy_point(grid, min, it.center);
    copy_point(grid, max, it.corner);
    return it;
}

/* -------------------------------------------------------------------------------------------- best hits */

/* The best hits so far: a binary heap with the last of them on top. */
typedef struct hit_heap {
    quern_grid_hit *hits;
    uint32_t count, capacity;
} hit_heap;

static bool precedes(const quern_grid_hit *a, const quern_grid_hit *b)
{
    return a->key < b->key || (a->key == b->key && a->item < b->item);
}

/* Replaces the top of a heap of `count` hits by `hit` and restores the heap order. */
static void sift_down(quern_grid_hit *hits, uint32_t count, quern_grid_hit hit)
{
    uint32_t place = 0;
    for (uint32_t child = 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && precedes(&hits[child], &hits[child + 1])) child++;
        if (!precedes(&hit, &hits[child])) break;
        hits[place] = hits[child];
        place = child;
    }
    hits[place] = hit;
}

static void add_hit(hit_heap *found, quern_grid_hit hit)
{
    if (found->count == found->capacity) {
        if (precedes(&hit, &found->hits[0])) sift_down(found->hits, found->count, hit);
        return;
    }
    uint32_t place = found->count++;
    for (; place > 0 && precedes(&found->hits[(place - 1) / 2], &hit); place = (place - 1) / 2)
        found->hits[place] = found->hits[(place - 1) / 2];
    found->hits[place] = hit;
}

/* Sorts the heap into a list. */
static uint32_t sort_hits(hit_heap *found)
{
    for (uint32_t end = found->count; end > 1; end--) {
        const quern_grid_hit last = found->hits[0];
        sift_down(found->hits, end - 1, found->hits[end - 1]);
        found->hits[end - 1] = last;
    }
    return found->count;
}

/* ------------------------------------------------------------------------------------------- nearest */

/* Searches with growing radii, each twice the last, so the last search takes most of the time. All items within a
 * radius are nearer than all others, so a radius with enough hits contains the nearest ones. */
uint32_t quern_grid_nearest(const quern_grid *grid, const float *center, float radius,
                            quern_grid_hit *out_hits, uint32_t capacity)
{
    hit_heap found = {.hits = out_hits, .capacity = capacity};
    if (capacity == 0 || grid->item_count == 0 || !is_finite(grid, center) || !(radius >= 0)) return 0;
    for (float step_radius = grid->cells.size * 0.5f;; step_radius *= 2) {
        const float searched_radius = step_radius < radius ? step_radius : radius;
        quern_grid_iterator it = quern_grid_radius(grid, center, searched_radius);
        const bool covers_all = it.first_x == 0 && it.end_x == grid->cells.counts[0] && it.first_y == 0 &&
                                it.end_y == grid->cells.counts[1] && it.z == 0 &&
                                it.end_z == grid->cells.counts[2];
        const bool is_last = searched_radius == radius || covers_all;
        if (is_last) it.limit = radius * radius;
        found.count = 0;
        float at[3];
        copy_point(grid, center, at);
        while (quern__grid_next_range(&it))
            for (; it.next < it.end; it.next++) {
                const float square = square_of(it.next, at);
                if (square <= it.limit) add_hit(&found, (quern_grid_hit){.item = it.next, .key = square});
            }
        if (found.count == capacity || is_last) return sort_hits(&found);
    }
}

/* ----------------------------------------------------------------------------------------------- ray */

/* The path of a ball, from an origin along a direction of length 1. */
typedef struct ball_path {
    double origin[3], direction[3];
    double length, radius;
    /* distance from the path within which cells are searched: the radius plus far more than any rounding error of numbers
     * of this magnitude */
    double margin;
} ball_path;

/* Returns the distance along the path of the point closest to the item, or a negative number if the ball misses it. */
static double find_contact(const ball_path *ball, const quern_grid_item *item)
{
    double along = 0, square = 0;
    for (uint32_t axis = 0; axis < 3; axis++)
        along += ((double)item->position[axis] - ball->origin[axis]) * ball->direction[axis];
    along = along > 0 ? along : 0;
    along = along < ball->length ? along : ball->length;
    for (uint32_t axis = 0; axis < 3; axis++) {
        const double apart =
            (double)item->position[axis] - (ball->origin[axis] + along * ball->direction[axis]);
        square += apart * apart;
    }
    return square <= ball->radius * ball->radius ? along : -1;
}

static bool init_path(const quern_grid *grid, const float *origin, const float *direction, float length,
                      float radius, ball_path *out)
{
    if (!is_finite(grid, origin) || !is_finite(grid, direction) || !(radius >= 0)) return false;
    if (!(length >= 0 && length <= FLT_MAX)) return false;
    *out = (ball_path){.length = (double)length, .radius = (double)radius};
    double square = 0, largest = out->radius + out->length;
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++) {
        out->origin[axis] = (double)origin[axis];
        out->direction[axis] = (double)direction[axis];
        square += out->direction[axis] * out->direction[axis];
    }
    for (uint32_t axis = 0; axis < 3 && square > 0; axis++) {
        const double far = (double)grid->cells.counts[axis] * (double)grid->cells.size;
        out->direction[axis] /= sqrt(square);
        largest = fmax(largest, fabs(out->origin[axis]) + fabs((double)grid->cells.min[axis]) + far);
    }
    out->margin = out->radius + largest / (1 << 20);
    return square > 0;
}

/* An interval of distances along the path; empty if begin > end. */
typedef struct interval {
    double begin, end;
} interval;

/* Finds the cells along an axis in which the ball can touch items on an interval of its path. */
static void find_cells_along(const quern_grid *grid, const ball_path *ball, interval part, uint32_t axis,
                             uint32_t *first, uint32_t *end)
{
    const double a = ball->origin[axis] + part.begin * ball->direction[axis];
    const double b = ball->origin[axis] + part.end * ball->direction[axis];
    const double least = fmax(fmin(a, b) - ball->margin, -(double)FLT_MAX);
    const double most = fmin(fmax(a, b) + ball->margin, (double)FLT_MAX);
    *first = quern_grid_cell_along(&grid->cells, axis, (float)least);
    *end = quern_grid_cell_along(&grid->cells, axis, (float)most) + 1;
}

/* Limits an interval to the distances at which the ball can touch items in the cells with this index along an axis.
 * Cells at the border extend to infinity. */
static interval clip_to_cells(const quern_grid *grid, const ball_path *ball, interval whole, uint32_t axis,
                              uint32_t cell)
{
    const quern_grid_cells *cells = &grid->cells;
    const double begin = (double)cells->min[axis] + (double)cell * (double)cells->size;
    const double least = cell == 0 ? -INFINITY : begin - ball->margin;
    const double most =
        cell + 1 == cells->counts[axis] ? INFINITY : begin + (double)cells->size + ball->margin;
    const double speed = ball->direction[axis], from = ball->origin[axis];
    if (speed == 0) return from >= least && from <= most ? whole : (interval){1, 0};
    const double a = (least - from) / speed, b = (most - from) / speed;
    return (interval){fmax(whole.begin, fmin(a, b)), fmin(whole.end, fmax(a, b))};
}

static void add_hits_of_cells(const quern_grid *grid, const ball_path *ball, hit_heap *found, size_t row,
                              uint32_t first_x, uint32_t end_x)
{
    const uint32_t *starts = grid->starts + row * grid->cells.counts[0];
    for (uint32_t i = starts[first_x]; i < starts[end_x]; i++) {
        const double along = find_contact(ball, &grid->items[i]);
        if (along >= 0) add_hit(found, (quern_grid_hit){.item = &grid->items[i], .key = (float)along});
    }
}

/* Visits layer by layer, and row by row of cells, those cells that the path passes near enough. */
uint32_t quern_grid_ray(const quern_grid *grid, const float *origin, const float *direction, float length,
                        float radius, quern_grid_hit *out_hits, uint32_t capacity)
{
    hit_heap found = {.hits = out_hits, .capacity = capacity};
    ball_path ball;
    if (capacity == 0 || grid->item_count == 0 ||
        !init_path(grid, origin, direction, length, radius, &ball))
        return 0;
    const interval whole = {0, ball.length};
    uint32_t first[3], end[3];
    find_cells_along(grid, &ball, whole, 2, &first[2], &end[2]);
    for (uint32_t z = first[2]; z < end[2]; z++) {
        const interval in_layer = clip_to_cells(grid, &ball, whole, 2, z);
        if (in_layer.begin > in_layer.end) continue;
        find_cells_along(grid, &ball, in_layer, 1, &first[1], &end[1]);
        for (uint32_t y = first[1]; y < end[1]; y++) {
            const interval in_row = clip_to_cells(grid, &ball, in_layer, 1, y);
            if (in_row.begin > in_row.end) continue;
            find_cells_along(grid, &ball, in_row, 0, &first[0], &end[0]);
            add_hits_of_cells(grid, &ball, &found, (size_t)z * grid->cells.counts[1] + y, first[0], end[0]);
        }
    }
    return sort_hits(&found);
}

/* --------------------------------------------------------------------------------------------- pairs */

enum { ITEMS_PER_PART = 1024, PAIRS_PER_CALL = 256 };

typedef struct pair_search {
    const quern_grid *grid;
    float radius;
    quern_grid_pair_function *function;
    void *user_data;
} pair_search;

/* Pairs that were found and not yet passed to the callback. */
typedef struct pair_list {
    quern_grid_pair pairs[PAIRS_PER_CALL];
    uint32_t count;
} pair_list;

static void flush_pairs(const pair_search *all, uint32_t part, pair_list *list)
{
    if (list->count > 0) all->function(all->user_data, part, list->pairs, list->count);
    list->count = 0;
}

/* Finds the pairs of an item with later items. Ranges of cells are visited in the order of items, so the search starts
 * at the item's own layer, or row of cells, and only the first ranges can contain earlier items. */
static void find_pairs_of(const pair_search *all, uint32_t part, const quern_grid_item *first,
                          pair_list *list)
{
    quern_grid_iterator it = quern_grid_radius(all->grid, first->position, all->radius);
    it.z = quern_grid_cell_along(&all->grid->cells, 2, first->position[2]);
    if (all->grid->dimension_count == 2)
        it.y = quern_grid_cell_along(&all->grid->cells, 1, first->position[1]);
    while (quern__grid_next_range(&it)) {
        if (it.end <= first) continue;
        for (const quern_grid_item *item = it.next > first ? it.next : first + 1; item < it.end; item++) {
            const float square = square_of(item, first->position);
            if (square > it.limit) continue;
            list->pairs[list->count++] =
                (quern_grid_pair){.first = first, .second = item, .square = square};
            if (list->count == PAIRS_PER_CALL) flush_pairs(all, part, list);
        }
    }
}

static void search_parts(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const pair_search *all = user_data;
    pair_list list;
    list.count = 0;
    for (uint32_t part = begin; part < end; part++) {
        const uint32_t left = all->grid->item_count - part * ITEMS_PER_PART;
        const quern_grid_item *item = all->grid->items + (size_t)part * ITEMS_PER_PART;
        for (uint32_t i = 0; i < ITEMS_PER_PART && i < left; i++)
            find_pairs_of(all, part, item + i, &list);
        flush_pairs(all, part, &list);
    }
}

uint32_t quern_grid_part_count(const quern_grid *grid)
{
    return grid->item_count / ITEMS_PER_PART + (grid->item_count % ITEMS_PER_PART != 0);
}

quern_result quern_grid_pairs(const quern_grid *grid, quern_jobs *jobs, float radius,
                              quern_grid_pair_function *function, void *user_data)
{
    if (grid == NULL || function == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "quern_grid_pairs: '%s' is NULL",
                               grid == NULL ? "grid" : "function");
    if (!(radius >= 0 && radius <= FLT_MAX))
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_grid_pairs: the radius is %g: pass a finite number of at least 0",
                               (double)radius);
    pair_search all = {.grid = grid, .radius = radius, .function = function, .user_data = user_data};
    if (jobs != NULL)
        return quern_jobs_parallel_for(jobs, quern_grid_part_count(grid), 1, search_parts, &all);
    search_parts(&all, 0, quern_grid_part_count(grid), 0);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- cells */

const quern_grid_cells *quern_grid_get_cells(const quern_grid *grid)
{
    return &grid->cells;
}

const void *quern_grid_payload(const quern_grid *grid, const quern_grid_item *item)
{
    if (grid->payload_bytes == 0) return NULL;
    return grid->payloads + (size_t)(item - grid->items) * grid->payload_bytes;
}
