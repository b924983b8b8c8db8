/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_GRID_H
#define QUERN_KIT_GRID_H

/** @file
 * Spatial search. Link quern::quern_grid, and after it quern::quern.
 *
 * A grid copies the positions of all entities with some component and sorts them into cells of one size. It finds
 * entities within a radius, in a box, nearest to a point or along a ray, and all close pairs. Its systems keep it up
 * to date.
 *
 *     const quern_grid_def def = {.position = position, .planar = true, .cell_size = 2};
 *     quern_grid_create(world, &def, &grid);
 *     quern_grid_add_systems(grid, schedule, phase);
 *     ...
 *     quern_grid_iterator near = quern_grid_radius(grid, center, 1.5f);
 *     while (quern_grid_next(&near))
 *         greet(near.item->entity);
 *
 * A search reads only the copies, neither chunks nor entity records. The copies are as old as the last build: an
 * entity that was destroyed since is still found; check it with quern_entity_is_alive.
 *
 * Items are stored in the order of their cells (x first, then y, then z), and within a cell in the order of
 * archetype, chunk and row. Searches return them in this order unless a comment says otherwise, at every thread
 * count.
 *
 * Distances are computed in float, as dx * dx + dy * dy + dz * dz <= radius * radius, with dz = 0 in two dimensions.
 * quern_grid_next is compiled with your program, and your compiler may contract products and sums into fused
 * operations; the other functions never contract. Entities with a position that is not finite (NaN or infinite) are
 * never found. A search at a point that is not finite, or with a negative radius, finds nothing.
 *
 * Searches do not check for NULL pointers, because they are called too often; pointers must not be NULL unless the
 * function documents NULL_ARGUMENT.
 *
 * docs/kit.md explains how to choose the cell size, and the cost of a build. The algorithm is a stable counting sort.
 * Threads: main, between frames and in exclusive systems, unless a comment says otherwise. Any number of threads may
 * search while no thread builds the grid. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_GRID_MAX_FILTERS       6   /**< Largest number of components in `with`, and in `without`. */
#define QUERN_GRID_MAX_MARKS         16  /**< Largest number of components in `marks`. */
#define QUERN_GRID_MAX_PAYLOAD_BYTES 256 /**< Largest size of the payload component. */

/** Positions of entities sorted into cells; see quern_grid_create. */
typedef struct quern_grid quern_grid;

/** Describes a grid. */
typedef struct quern_grid_def {
    /** Name of the grid's resource, and part of the names of its systems. No other grid or resource of the world may
     * have it. NULL: "grid". */
    const char *name QUERN__ZERO;
    quern_component position QUERN__ZERO; /**< Component with the coordinates as floats; required. */
    /** Byte offsets of x, y and z in the component. All zero: three consecutive floats at its beginning. For the
     * origin of a quern_world3 the offsets are 12, 28 and 44. */
    uint32_t offsets_bytes[3] QUERN__ZERO;
    bool planar QUERN__ZERO; /**< Two dimensions: there is no z. */
    /** Width of a cell along each axis, 1e-15 to 1e15; best near the radius of most searches. 0: chosen by each
     * build, so that a cell has two entities on average if they are spread evenly. */
    float cell_size QUERN__ZERO;
    /** Box that is divided into cells. Positions outside of it are assigned to the nearest cell and are found as
     * well. All zero: the bounding box of all positions, computed by each build. */
    float min[3] QUERN__ZERO, max[3] QUERN__ZERO;
    /** Largest number of cells, at most 2^26. If the box would have more, cells are enlarged. 0: 8 per entity, at
     * least 4096. */
    uint32_t max_cell_count QUERN__ZERO;
    quern_component with[QUERN_GRID_MAX_FILTERS] QUERN__ZERO;    /**< Entities must have all of these. */
    quern_component without[QUERN_GRID_MAX_FILTERS] QUERN__ZERO; /**< Entities must have none of these. */
    /** Components; an item has bit i set if its entity had the i-th one. */
    quern_component marks[QUERN_GRID_MAX_MARKS] QUERN__ZERO;
    /** Component of plain bytes that is copied with the position; see quern_grid_payload. Entities without it are
     * not in the grid. Null: no payload. */
    quern_component payload QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_grid_def;

/** The copy of an entity in the grid. */
typedef struct quern_grid_item {
    quern_entity entity; /**< The entity. */
    float position[3];   /**< Its position at the last build; z is 0 in two dimensions. */
    uint32_t marks;      /**< Bit i: the entity had the i-th component of `marks`. */
} quern_grid_item;

/** Creates an empty grid and the resource by which systems declare that they search it. quern_grid_destroy keeps the
 * resource; a later grid of the same name reuses it. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT (a component is in two lists), DUPLICATE_NAME, LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. Threads:
 * main, between frames. */
QUERN_API quern_result quern_grid_create(quern_world *world, const quern_grid_def *def,
                                         quern_grid **out_grid);

/** Destroys a grid. Call it before the world is destroyed, and after the schedules with the grid's systems are. NULL
 * is allowed. Threads: main, between frames. */
QUERN_API void quern_grid_destroy(quern_grid *grid);

/** Adds the systems that keep the grid up to date. One checks by change filters whether positions, payloads or
 * entities have changed; if so, the other rebuilds the grid on all workers. Later systems of the phase, and systems
 * of later phases, search the new grid. If there is no memory for it, the grid is empty, quern_grid_get_stats reports
 * the error, and the next frame tries again. Errors: those of quern_schedule_add_system. Threads: main, between
 * frames. */
QUERN_API quern_result quern_grid_add_systems(quern_grid *grid, quern_schedule *schedule, uint32_t phase);

/** Builds the grid from the current entities, with the threads of `jobs` (NULL: only the calling thread). Errors:
 * NULL_ARGUMENT and WORLD_LOCKED keep the old grid; OUT_OF_MEMORY leaves it empty. */
QUERN_API quern_result quern_grid_build(quern_grid *grid, quern_jobs *jobs);

/** Makes the next frame rebuild the grid. Needed after writing positions through pointers from quern_entity_get, which
 * change filters do not notice. */
QUERN_API void quern_grid_mark(quern_grid *grid);

/** Returns the resource that systems declare, with QUERN_ACCESS_READ, to search the grid. Thread-safe. */
QUERN_API quern_resource quern_grid_resource(const quern_grid *grid);

/** Returns the grid of a declared resource. Fails and returns NULL if the system did not declare it. */
QUERN_API const quern_grid *quern_context_grid(quern_context *context, quern_resource resource);

/** Statistics of a grid. */
typedef struct quern_grid_stats {
    uint32_t item_count;      /**< Entities that can be found. */
    uint32_t left_out_count;  /**< Entities with a position that is not finite. */
    uint64_t build_count;     /**< Successful builds so far. */
    uint32_t largest_count;   /**< Entities in the fullest cell. */
    quern_result last_result; /**< Result of the last build; QUERN_OK before the first. */
} quern_grid_stats;

/** Returns statistics. The cost is proportional to the number of cells. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_grid_get_stats(const quern_grid *grid, quern_grid_stats *out_stats);

/* ------------------------------------------------------------------------------------------ searches */

/** Iterates over the items that a search finds. */
typedef struct quern_grid_iterator {
    const quern_grid_item *item; /**< The current item. */
    float square;    /**< Squared distance of the item from the center; only quern_grid_radius. */
    bool is_box;     /**< Internal. */
    bool is_spatial; /**< Internal. */
    float center[3]; /**< Internal: center, or lower corner of the box. */
    float corner[3]; /**< Internal: upper corner of the box. */
    float limit;     /**< Internal: squared radius. */
    const quern_grid_item *next;    /**< Internal: remaining items of the current range of cells along x. */
    const quern_grid_item *end;     /**< Internal. */
    const quern_grid_item *items;   /**< Internal: all items of the grid. */
    const uint32_t *starts;         /**< Internal: index of the first item of each cell. */
    uint32_t columns, rows;         /**< Internal: cells of the grid along x and y. */
    uint32_t first_x, end_x;        /**< Internal: first and end cell along x of each range. */
    uint32_t first_y, end_y, end_z; /**< Internal. */
    uint32_t y, z;                  /**< Internal: coordinates of the next range. */
} quern_grid_iterator;

/** Finds the items within a radius of a point, the border included. center has two or three coordinates, according
 * to the dimensions of the grid. */
QUERN_API quern_grid_iterator quern_grid_radius(const quern_grid *grid, const float *center, float radius);

/** Finds the items in a box, its sides included: min <= position <= max along each axis. min and max have two or
 * three coordinates each. */
QUERN_API quern_grid_iterator quern_grid_box(const quern_grid *grid, const float *min, const float *max);

/* Advances to the next range of cells along x. Returns false after the last. */
static inline bool quern__grid_next_range(quern_grid_iterator *iterator)
{
    const uint32_t *starts;
    if (iterator->y == iterator->end_y) {
        iterator->y = iterator->first_y;
        iterator->z++;
    }
    if (iterator->z >= iterator->end_z) return false;
    starts = iterator->starts +
             (QUERN__CAST(size_t, iterator->z) * iterator->rows + iterator->y++) * iterator->columns;
    iterator->next = iterator->items + starts[iterator->first_x];
    iterator->end = iterator->items + starts[iterator->end_x];
    return true;
}

static inline bool quern__grid_is_in_box(const quern_grid_iterator *iterator, const quern_grid_item *item)
{
    const float *at = item->position, *least = iterator->center, *most = iterator->corner;
    return at[0] >= least[0] && at[0] <= most[0] && at[1] >= least[1] && at[1] <= most[1] &&
           at[2] >= least[2] && at[2] <= most[2];
}

/** Advances to the next item. Returns false after the last. */
static inline bool quern_grid_next(quern_grid_iterator *iterator)
{
    do
        while (iterator->next < iterator->end) {
            const quern_grid_item *item = iterator->next++;
            const float x = item->position[0] - iterator->center[0],
                        y = item->position[1] - iterator->center[1];
            float square = x * x + y * y;
            if (iterator->is_spatial) {
                const float z = item->position[2] - iterator->center[2];
                square += z * z;
            }
            if (iterator->is_box ? !quern__grid_is_in_box(iterator, item) : square > iterator->limit)
                continue;
            iterator->item = item;
            iterator->square = square;
            return true;
        }
    while (quern__grid_next_range(iterator));
    return false;
}

/** An item found by quern_grid_nearest or quern_grid_ray. */
typedef struct quern_grid_hit {
    const quern_grid_item *item; /**< The item. */
    /** quern_grid_nearest: squared distance. quern_grid_ray: distance along the ray of the point closest to the
     * item. */
    float key;
} quern_grid_hit;

/** Finds the items nearest to a point within a radius (INFINITY: all). Writes up to `capacity` hits, nearest first,
 * those at equal distance in the order of items, and returns their number. The cost is proportional to the number of
 * items nearer than the last hit, times the logarithm of capacity. */
QUERN_API uint32_t quern_grid_nearest(const quern_grid *grid, const float *center, float radius,
                                      quern_grid_hit *out_hits, uint32_t capacity);

/** Finds the items that a ball touches as it moves along a ray: items at a distance of at most radius from the
 * segment of length `length` (finite) that begins at origin and has this direction. direction must not be zero; its
 * length does not matter. Writes up to `capacity` hits by ascending key, those with equal keys in the order of
 * items, and returns their number.
 *
 * The key is the distance from the origin to the point of the segment closest to the item: the dot product of the
 * normalised direction and item - origin, clamped to 0 to length. It is computed in double and rounded to float. */
QUERN_API uint32_t quern_grid_ray(const quern_grid *grid, const float *origin, const float *direction,
                                  float length, float radius, quern_grid_hit *out_hits, uint32_t capacity);

/** Two close items. The first precedes the second in the order of items. */
typedef struct quern_grid_pair {
    const quern_grid_item *first, *second; /**< The items. */
    float square;                          /**< Their squared distance. */
} quern_grid_pair;

/** Receives up to 256 pairs per call, ordered by first item, then by second item. part: 0 to quern_grid_part_count - 1;
 * a pair belongs to the same part at every thread count. Calls for different parts may run in parallel; calls for one
 * part are sequential. */
typedef void quern_grid_pair_function(void *user_data, uint32_t part, const quern_grid_pair *pairs,
                                      uint32_t count);

/** Returns the number of parts into which quern_grid_pairs divides its work. It depends on the number of items alone.
 * Use it to collect results per part, and combine them in order afterwards. */
QUERN_API uint32_t quern_grid_part_count(const quern_grid *grid);

/** Finds all pairs of items at a distance of at most the radius, each pair once, with the threads of `jobs` (NULL:
 * only the calling thread). Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the radius is negative or not finite), POOL_BUSY,
 * THREAD_UNAVAILABLE. Threads: like other searches; in a system, pass quern_context_jobs. */
QUERN_API quern_result quern_grid_pairs(const quern_grid *grid, quern_jobs *jobs, float radius,
                                        quern_grid_pair_function *function, void *user_data);

/* ------------------------------------------------------------------------------------------- cells */

/** The items by cell, for custom searches, such as flocking with only some of the neighbours. Cell
 * c = (z * counts[1] + y) * counts[0] + x has items[starts[c]] to items[starts[c + 1] - 1], so the items of adjacent
 * cells along x are contiguous. */
typedef struct quern_grid_cells {
    const quern_grid_item *items; /**< All items, in the order of cells. */
    const uint32_t *starts;       /**< Index of each cell's first item; cell_count + 1 entries. */
    const void *payloads;         /**< Payloads in the order of items; NULL without payload. */
    uint32_t counts[3];           /**< Number of cells along x, y and z; all 0 before the first build. */
    uint32_t cell_count;          /**< Number of all cells. */
    float size;                   /**< Width of a cell along each axis. */
    float inverse;                /**< 1 / size. */
    float min[3];                 /**< Lower corner of the box. */
    float last[3];                /**< Index of the last cell along each axis. */
} quern_grid_cells;

/** Returns the items by cell, valid until the next build. Never NULL. */
QUERN_API const quern_grid_cells *quern_grid_get_cells(const quern_grid *grid);

/** Returns the index along one axis of the cell that contains a coordinate. Indices grow with coordinates. A
 * coordinate outside of the box gives the nearest cell, NaN the first. */
static inline uint32_t quern_grid_cell_along(const quern_grid_cells *cells, uint32_t axis, float x)
{
    float cell = (x - cells->min[axis]) * cells->inverse;
    cell = cell > 0 ? cell : 0;
    return QUERN__CAST(uint32_t, cell < cells->last[axis] ? cell : cells->last[axis]);
}

/** Returns the payload of an item of the last build, or NULL if the grid has no payload. */
QUERN_API const void *quern_grid_payload(const quern_grid *grid, const quern_grid_item *item);

#ifdef __cplusplus
}
#endif

#endif
