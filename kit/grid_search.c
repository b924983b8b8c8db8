/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Searches. Each iterates over the cells that can contain results, one range of cells along x after another, and
 * tests their items. */

#include "kit/grid_internal.h"

#include <float.h>
#include <math.h>

static bool is_finite(const quern_grid *grid, const float *numbers)
{
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++)
        if (!(fabsf(numbers[axis]) <= FLT_MAX)) return false;
    return true;
}

static bool is_valid_radius(float radius)
{
    return radius >= 0;
}

static void copy_point(const quern_grid *grid, const float *from, float to[3])
{
    to[0] = from[0];
    to[1] = from[1];
    to[2] = grid->dimension_count == 3 ? from[2] : 0;
}

/* The cells from first to end - 1 along each axis. */
typedef struct region {
    uint32_t first[3], end[3];
} region;

static quern_grid_iterator iterate_region(const quern_grid *grid, const region *cells)
{
    return (quern_grid_iterator){.items = grid->items,
                                 .starts = grid->starts,
                                 .columns = grid->cells.counts[0],
                                 .rows = grid->cells.counts[1],
                                 .first_x = cells->first[0],
                                 .end_x = cells->end[0],
                                 .first_y = cells->first[1],
                                 .end_y = cells->end[1],
                                 .end_z = cells->end[2],
                                 .y = cells->first[1],
                                 .z = cells->first[2]};
}

/* ------------------------------------------------------------------------------------ radius and box */

/* The most frequent search, mostly with few results: written without loops over axes for speed. */
quern_grid_iterator quern_grid_radius(const quern_grid *grid, const float *center, float radius)
{
    const quern_grid_cells *cells = &grid->cells;
    const float x = center[0], y = center[1], z = grid->dimension_count == 3 ? center[2] : 0;
    quern_grid_iterator it = {0};
    it.is_spatial = grid->dimension_count == 3;
    if (grid->item_count == 0 || (x - x) + (y - y) + (z - z) != 0 || !is_valid_radius(radius)) return it;
    uint32_t first_z = 0;
    it.end_z = 1;
    quern__grid_cells_within(cells, 0, x, radius, &it.first_x, &it.end_x);
    quern__grid_cells_within(cells, 1, y, radius, &it.first_y, &it.end_y);
    if (grid->dimension_count == 3) quern__grid_cells_within(cells, 2, z, radius, &first_z, &it.end_z);
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
    region cells = {0};
    float least[3], most[3];
    copy_point(grid, min, least);
    copy_point(grid, max, most);
    bool is_empty = grid->item_count == 0;
    for (uint32_t axis = 0; axis < 3; axis++) /* infinite sides are valid, NaN is not */
        is_empty |= !(least[axis] <= most[axis]);
    if (is_empty) return iterate_region(grid, &cells);
    for (uint32_t axis = 0; axis < 3; axis++) {
        cells.first[axis] = quern_grid_cell_along(&grid->cells, axis, least[axis]);
        cells.end[axis] = quern_grid_cell_along(&grid->cells, axis, most[axis]) + 1;
    }
    quern_grid_iterator it = iterate_region(grid, &cells);
    it.is_box = true;
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

static bool covers_all(const quern_grid *grid, const quern_grid_iterator *it)
{
    return it->first_x == 0 && it->end_x == grid->cells.counts[0] && it->first_y == 0 &&
           it->end_y == grid->cells.counts[1] && it->z == 0 && it->end_z == grid->cells.counts[2];
}

/* Searches with growing radii, each twice the last, so the last search takes most of the time. All items within a
 * radius are nearer than all others, so a radius with enough hits contains the nearest ones. */
uint32_t quern_grid_nearest(const quern_grid *grid, const float *center, float radius,
                            quern_grid_hit *out_hits, uint32_t capacity)
{
    hit_heap found = {.hits = out_hits, .capacity = capacity};
    if (capacity == 0 || grid->item_count == 0 || !is_finite(grid, center) || !is_valid_radius(radius))
        return 0;
    for (float step_radius = grid->cells.size * 0.5f;; step_radius *= 2) {
        const float searched_radius = step_radius < radius ? step_radius : radius;
        quern_grid_iterator it = quern_grid_radius(grid, center, searched_radius);
        const bool is_last = searched_radius == radius || covers_all(grid, &it);
        if (is_last) it.limit = radius * radius;
        found.count = 0;
        float at[3];
        copy_point(grid, center, at);
        while (quern__grid_next_range(&it))
            for (; it.next < it.end; it.next++) {
                const float square = quern__grid_square(it.next, at);
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
    if (!is_finite(grid, origin) || !is_finite(grid, direction) || !is_valid_radius(radius)) return false;
    if (!(length >= 0 && length <= FLT_MAX)) return false;
    *out = (ball_path){.length = (double)length, .radius = (double)radius};
    double square = 0;
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++) {
        out->origin[axis] = (double)origin[axis];
        out->direction[axis] = (double)direction[axis];
        square += out->direction[axis] * out->direction[axis];
    }
    for (uint32_t axis = 0; axis < 3 && square > 0; axis++)
        out->direction[axis] /= sqrt(square);
    return square > 0;
}

/* An interval of distances along the path; empty if begin > end. */
typedef struct interval {
    double begin, end;
} interval;

/* Limits an interval to the distances at which the coordinate is between `least` and `most`. */
static interval clip(const ball_path *ball, interval whole, uint32_t axis, double least, double most)
{
    const double speed = ball->direction[axis], from = ball->origin[axis];
    if (speed == 0) return from >= least && from <= most ? whole : (interval){1, 0};
    const double a = (least - from) / speed, b = (most - from) / speed;
    return (interval){fmax(whole.begin, fmin(a, b)), fmin(whole.end, fmax(a, b))};
}

/* Finds the cells along an axis in which the ball can touch items on an interval of its path. */
static void find_cells_along(const quern_grid *grid, const ball_path *ball, interval part, uint32_t axis,
                             double margin, uint32_t *first, uint32_t *end)
{
    const double a = ball->origin[axis] + part.begin * ball->direction[axis];
    const double b = ball->origin[axis] + part.end * ball->direction[axis];
    const double least = fmax(fmin(a, b) - margin, -(double)FLT_MAX);
    const double most = fmin(fmax(a, b) + margin, (double)FLT_MAX);
    *first = quern_grid_cell_along(&grid->cells, axis, (float)least);
    *end = quern_grid_cell_along(&grid->cells, axis, (float)most) + 1;
}

/* Limits an interval to the distances at which the ball can touch items in the cells with this index along an axis.
 * Cells at the border extend to infinity. */
static interval clip_to_cells(const quern_grid *grid, const ball_path *ball, interval whole, uint32_t axis,
                              uint32_t cell, double margin)
{
    const quern_grid_cells *cells = &grid->cells;
    const double begin = (double)cells->min[axis] + (double)cell * (double)cells->size;
    const double least = cell == 0 ? -INFINITY : begin - margin;
    const double most = cell + 1 == cells->counts[axis] ? INFINITY : begin + (double)cells->size + margin;
    return clip(ball, whole, axis, least, most);
}

/* Returns the distance from the path within which cells are searched: the radius plus far more than any rounding
 * error of numbers of this magnitude. */
static double margin_of(const quern_grid *grid, const ball_path *ball)
{
    double largest = ball->radius + ball->length;
    for (uint32_t axis = 0; axis < 3; axis++) {
        const double far = (double)grid->cells.counts[axis] * (double)grid->cells.size;
        largest = fmax(largest, fabs(ball->origin[axis]) + fabs((double)grid->cells.min[axis]) + far);
    }
    return ball->radius + largest / (1 << 20);
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
    const double margin = margin_of(grid, &ball);
    const interval whole = {0, ball.length};
    uint32_t first[3], end[3];
    find_cells_along(grid, &ball, whole, 2, margin, &first[2], &end[2]);
    for (uint32_t z = first[2]; z < end[2]; z++) {
        const interval in_layer = clip_to_cells(grid, &ball, whole, 2, z, margin);
        if (in_layer.begin > in_layer.end) continue;
        find_cells_along(grid, &ball, in_layer, 1, margin, &first[1], &end[1]);
        for (uint32_t y = first[1]; y < end[1]; y++) {
            const interval in_row = clip_to_cells(grid, &ball, in_layer, 1, y, margin);
            if (in_row.begin > in_row.end) continue;
            find_cells_along(grid, &ball, in_row, 0, margin, &first[0], &end[0]);
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
            const float square = quern__grid_square(item, first->position);
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
