/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_GRID_H
#define QUERN_KIT_GRID_H

/** @file
 * Who is near: link quern::quern_grid, and after it quern::quern.
 *
 * A grid has the positions of all entities with some component, sorted into cells of one size, and answers
 * questions about them: what is within a radius, in a box, nearest, along a ray, and which pairs are close.
 * Its systems keep it up to date.
 *
 *     const quern_grid_def def = {.position = position, .planar = true, .cell_size = 2};
 *     quern_grid_create(world, &def, &grid);
 *     quern_grid_add_systems(grid, schedule, phase);
 *     ...
 *     quern_grid_iterator near = quern_grid_radius(grid, center, 1.5f);
 *     while (quern_grid_next(&near))
 *         greet(near.item->entity);
 *
 * The grid holds copies, so that a question touches neither chunks nor records. They are as old as the last
 * build: an entity that has died since is still found, and quern_entity_is_alive tells.
 *
 * Items lie in the order of their cells (x first, then y, then z), and within one cell in the order of
 * archetype, chunk and row. Answers come in that order where nothing else is said, at every thread count.
 *
 * Distances are computed in float, as dx * dx + dy * dy + dz * dz <= radius * radius; in two dimensions dz
 * is 0. quern_grid_next does so as your compiler is told to (some contract products and sums), all others
 * as they stand here. Entities whose position is not finite (NaN or infinite) are in no answer. Questions
 * with such a number, or with a negative radius, have no answers.
 *
 * Pointers must not be NULL where no error says so: questions are too frequent to check that.
 *
 * docs/kit.md says how to choose cells, and what building costs. The algorithm is a stable counting sort.
 * Threads: where a comment does not say otherwise, main, between frames and in exclusive systems.
 * Questions: any number of threads, while nobody builds. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_GRID_MAX_FILTERS       6   /**< Components in `with`, and in `without`. */
#define QUERN_GRID_MAX_MARKS         16  /**< Components in `marks`. */
#define QUERN_GRID_MAX_PAYLOAD_BYTES 256 /**< Size of the payload's component. */

/** Entities in cells; see quern_grid_create. */
typedef struct quern_grid quern_grid;

/** Describes a grid. */
typedef struct quern_grid_def {
    /** Of its resource, and part of the names of its systems; no other grid or resource of the world has
     * it. NULL: "grid". */
    const char *name QUERN__ZERO;
    quern_component position QUERN__ZERO; /**< Has the coordinates, as floats; required. */
    /** Where x, y and z are in it. All zero: one after the other, from its beginning. For the origin of a
     * quern_world3 these are 12, 28 and 44. */
    uint32_t offsets_bytes[3] QUERN__ZERO;
    bool planar QUERN__ZERO; /**< Two dimensions: there is no z. */
    /** Width of a cell along each axis, 1e-15 to 1e15; best about the radius of most questions. 0: at each
     * build, such that a cell has two entities on average where they are spread evenly. */
    float cell_size QUERN__ZERO;
    /** The box that has cells; what is outside counts to the nearest cell, and is found as well. All zero:
     * the box of all positions, at each build. */
    float min[3] QUERN__ZERO, max[3] QUERN__ZERO;
    /** Where the box would have more cells than this, cells are made as much larger as it takes. At most
     * 2^26; 0: 8 per entity, at least 4096. */
    uint32_t max_cell_count QUERN__ZERO;
    quern_component with[QUERN_GRID_MAX_FILTERS] QUERN__ZERO; /**< Only entities that have all of these. */
    quern_component without[QUERN_GRID_MAX_FILTERS] QUERN__ZERO; /**< Only those that have none of these. */
    /** An item tells which of these the entity has. */
    quern_component marks[QUERN_GRID_MAX_MARKS] QUERN__ZERO;
    /** Plain bytes that are copied, too; see quern_grid_payload. Null: none. Only entities that have it are
     * in the grid. */
    quern_component payload QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_grid_def;

/** What the grid has of an entity. */
typedef struct quern_grid_item {
    quern_entity entity; /**< Its handle. */
    float position[3];   /**< Where it was; in two dimensions the last is 0. */
    uint32_t marks;      /**< Bit i: it has the i-th component of `marks`. */
} quern_grid_item;

/** Creates a grid, empty until it is built, and the resource by which systems declare that they ask it. The
 * resource stays when the grid is destroyed; a later grid of the same name takes it over. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, DUPLICATE_COMPONENT (a component stands in two
 * lists), DUPLICATE_NAME, LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_grid_create(quern_world *world, const quern_grid_def *def,
                                         quern_grid **out_grid);

/** Destroys a grid: before its world, and after the schedules that have its systems. NULL is allowed.
 * Threads: main, between frames. */
QUERN_API void quern_grid_destroy(quern_grid *grid);

/** Adds the systems that keep the grid: one that looks whether positions, payloads or entities have
 * changed, by change filters, and one that builds the grid anew if so, on all workers. Systems after them
 * in the phase, and in later phases, ask the grid as it is then. Where memory for it is missing, the grid
 * is empty, quern_grid_get_stats says so, and the next frame tries again. Errors: those of
 * quern_schedule_add_system. Threads: main, between frames. */
QUERN_API quern_result quern_grid_add_systems(quern_grid *grid, quern_schedule *schedule, uint32_t phase);

/** Builds the grid from the entities there are now, with the threads of jobs (NULL: only the caller).
 * Errors, with the grid as it was: NULL_ARGUMENT, WORLD_LOCKED; with the grid empty: OUT_OF_MEMORY. */
QUERN_API quern_result quern_grid_build(quern_grid *grid, quern_jobs *jobs);

/** Makes the next frame build the grid: for positions that were written through pointers from
 * quern_entity_get, which change filters do not notice. */
QUERN_API void quern_grid_mark(quern_grid *grid);

/** Returns the resource that systems declare, with QUERN_ACCESS_READ, to ask the grid. Threads: any. */
QUERN_API quern_resource quern_grid_resource(const quern_grid *grid);

/** Returns the grid of a declared resource, for questions. NULL, refused, when it is not declared. */
QUERN_API const quern_grid *quern_context_grid(quern_context *context, quern_resource resource);

/** What a grid consists of. */
typedef struct quern_grid_stats {
    uint32_t item_count;      /**< Entities that can be found. */
    uint32_t left_out_count;  /**< Those whose position is not finite. */
    uint64_t build_count;     /**< How often it was built. */
    uint32_t largest_count;   /**< Entities of the cell that has most of them. */
    quern_result last_result; /**< How the last build ended; QUERN_OK before the first. */
} quern_grid_stats;

/** Returns what a grid consists of. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_grid_get_stats(const quern_grid *grid, quern_grid_stats *out_stats);

/* ----------------------------------------------------------------------------------------- questions */

/** Walks the answers to one question. */
typedef struct quern_grid_iterator {
    const quern_grid_item *item;    /**< The answer. */
    float square;                   /**< The square of its distance, in quern_grid_radius. */
    bool is_box;                    /**< Internal. */
    bool is_spatial;                /**< Internal. */
    float center[3];                /**< Internal: or the box's least corner. */
    float corner[3];                /**< Internal: the box's other corner. */
    float limit;                    /**< Internal. */
    const quern_grid_item *next;    /**< Internal: items of this run of cells. */
    const quern_grid_item *end;     /**< Internal. */
    const quern_grid_item *items;   /**< Internal: all of them. */
    const uint32_t *starts;         /**< Internal: the first item of each cell. */
    uint32_t columns, rows;         /**< Internal: of the grid. */
    uint32_t first_x, end_x;        /**< Internal: cells of each run. */
    uint32_t first_y, end_y, end_z; /**< Internal. */
    uint32_t y, z;                  /**< Internal: the next run. */
} quern_grid_iterator;

/** Finds what is within a radius of a point, the border included. center has two or three numbers, as the
 * grid has dimensions. */
QUERN_API quern_grid_iterator quern_grid_radius(const quern_grid *grid, const float *center, float radius);

/** Finds what is in a box, its sides included: min <= position <= max, along each axis. Both have two or
 * three numbers. */
QUERN_API quern_grid_iterator quern_grid_box(const quern_grid *grid, const float *min, const float *max);

/* Goes to the next run of cells; false after the last. */
static inline bool quern__grid_next_run(quern_grid_iterator *iterator)
{
    const uint32_t *starts;
    if (iterator->y == iterator->end_y) {
        iterator->y = iterator->first_y;
        iterator->z++;
    }
    if (iterator->z >= iterator->end_z) return false;
    starts = iterator->starts + ((size_t)iterator->z * iterator->rows + iterator->y++) * iterator->columns;
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

/** Moves to the next answer; returns false after the last. */
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
    while (quern__grid_next_run(iterator));
    return false;
}

/** An answer to a question about what comes first. */
typedef struct quern_grid_hit {
    const quern_grid_item *item; /**< The answer. */
    /** quern_grid_nearest: the square of its distance. quern_grid_ray: how far along the ray it is passed.
     */
    float key;
} quern_grid_hit;

/** Finds what is nearest to a point, within a radius (INFINITY: anywhere): writes up to capacity hits, the
 * nearest first, those with one distance in the order of items, and returns how many. Takes time by how
 * many are nearer than the last, and log of capacity. */
QUERN_API uint32_t quern_grid_nearest(const quern_grid *grid, const float *center, float radius,
                                      quern_grid_hit *out_hits, uint32_t capacity);

/** Finds what a ball of that radius meets which flies from the origin along the direction, until it has
 * come length far (finite): items whose distance from that way is at most the radius. The direction need
 * not have length 1, but some. Writes up to capacity hits, the first first, those with one key in the order
 * of items, and returns how many.
 *
 * The key is where on the way the item is nearest: the dot product of direction and item - origin, 0 to
 * length. Computed in double, and rounded to float. */
QUERN_API uint32_t quern_grid_ray(const quern_grid *grid, const float *origin, const float *direction,
                                  float length, float radius, quern_grid_hit *out_hits, uint32_t capacity);

/** Two items that are close. The first comes before the second in the order of items. */
typedef struct quern_grid_pair {
    const quern_grid_item *first, *second; /**< Both. */
    float square;                          /**< The square of their distance. */
} quern_grid_pair;

/** Called with pairs, up to 256 at a time, in the order of their firsts, and for one first in that of their
 * seconds. part: 0 to quern_grid_part_count - 1, the same for one pair at every thread count; calls with
 * different parts may come at the same time, those of one part come one after another. */
typedef void quern_grid_pair_function(void *user_data, uint32_t part, const quern_grid_pair *pairs,
                                      uint32_t count);

/** Returns into how many parts quern_grid_pairs divides its work: for results by part, which the caller
 * combines afterwards in order. It follows from the number of items alone. */
QUERN_API uint32_t quern_grid_part_count(const quern_grid *grid);

/** Finds all pairs whose distance is at most the radius, each once, with the threads of jobs (NULL: only
 * the caller). Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the radius is negative or not finite), POOL_BUSY,
 * THREAD. Threads: as questions; in a system, give it quern_context_jobs. */
QUERN_API quern_result quern_grid_pairs(const quern_grid *grid, quern_jobs *jobs, float radius,
                                        quern_grid_pair_function *function, void *user_data);

/* ------------------------------------------------------------------------------------------- cells */

/** How items lie in cells, for those who look around by themselves, such as flocks that are content with
 * some of their neighbours. Cell c = (z * counts[1] + y) * counts[0] + x has items[starts[c]] to
 * items[starts[c + 1] - 1], so cells beside each other along x are one run. */
typedef struct quern_grid_cells {
    const quern_grid_item *items; /**< All of them, cell after cell. */
    const uint32_t *starts;       /**< One more than there are cells. */
    const void *payloads;         /**< In the order of items; NULL without payload. */
    uint32_t counts[3];           /**< Cells along x, y and z; all 0 without a build. */
    uint32_t cell_count;          /**< Cells in all. */
    float size;                   /**< The width of a cell along each axis. */
    float inverse;                /**< 1 / size. */
    float min[3];                 /**< The least corner of the box. */
    float last[3];                /**< The number of the last cell along each axis. */
} quern_grid_cells;

/** Returns how items lie, valid until the grid is built again. Never NULL. */
QUERN_API const quern_grid_cells *quern_grid_get_cells(const quern_grid *grid);

/** Returns the number of the cell, along one axis, of a coordinate: it grows with the coordinate, and what
 * is outside of the box counts to the nearest cell; so does NaN to the first. */
static inline uint32_t quern_grid_cell_along(const quern_grid_cells *cells, uint32_t axis, float x)
{
    float cell = (x - cells->min[axis]) * cells->inverse;
    cell = cell > 0 ? cell : 0;
    return (uint32_t)(cell < cells->last[axis] ? cell : cells->last[axis]);
}

/** Returns the payload of an item, which must be of this grid's last build; NULL without payload. */
QUERN_API const void *quern_grid_payload(const quern_grid *grid, const quern_grid_item *item);

#ifdef __cplusplus
}
#endif

#endif
