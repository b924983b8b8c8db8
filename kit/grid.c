/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Creation of grids, and their systems: one detects changes, the other gathers the rows and sorts them.
 *
 * A rebuild is needed if rows, their values or their order have changed. Change filters detect rows that were added
 * to a chunk or moved within it. They do not detect removals, but after a removal a chunk has fewer rows than at the
 * last build, or is gone. So the grid is rebuilt if a filter passes a chunk, or if the list of chunks and their row
 * counts differs. Restoring a frame of a history also restores what filters have seen, but not the grid, which may
 * show a frame that was undone; so a restore causes a rebuild as well. */

#include "kit/grid_internal.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

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
    if (def->max_cell_count > 1u << 26)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: max_cell_count is %u: set at most %u, or 0 for the default",
            def->max_cell_count, 1u << 26);
    if ((def->allocator.allocate == NULL) != (def->allocator.release == NULL))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: the allocator has only one of allocate and release: set both, or neither");
    return QUERN_OK;
}

/* Without given offsets, sets those of consecutive coordinates. */
static void fill_offsets(quern_grid_def *def)
{
    if (def->offsets_bytes[0] != 0 || def->offsets_bytes[1] != 0 || def->offsets_bytes[2] != 0) return;
    def->offsets_bytes[1] = sizeof(float);
    def->offsets_bytes[2] = 2 * sizeof(float);
}

static quern_result check_layout(const quern_grid *grid)
{
    for (uint32_t axis = 0; axis < grid->dimension_count; axis++)
        if (grid->def.offsets_bytes[axis] + sizeof(float) > grid->position_bytes)
            return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                                   "quern_grid_create: %c at byte %u is not within component '%s' of %u "
                                   "bytes: correct offsets_bytes",
                                   "xyz"[axis], grid -> def.offsets_bytes[axis],
                                   quern_component_name(grid->owner, grid->def.position),
                                   grid->position_bytes);
    if (!quern_component_is_null(grid->def.payload) &&
        (grid->payload_bytes == 0 || grid->payload_bytes > QUERN_GRID_MAX_PAYLOAD_BYTES))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_grid_create: payload '%s' has %u bytes: choose a component of 1 to %d bytes",
            quern_component_name(grid->owner, grid->def.payload), grid->payload_bytes,
            QUERN_GRID_MAX_PAYLOAD_BYTES);
    return QUERN_OK;
}

/* Finds the sizes of the components. They must be plain bytes, since the grid copies them without hooks. */
static quern_result look_up_sizes(quern_grid *grid)
{
    const quern_grid_def *def = &grid->def;
    quern_result result = quern_component_get_size(grid->owner, def->position, &grid->position_bytes);
    if (result == QUERN_OK && !quern_component_is_null(def->payload))
        result = quern_component_get_size(grid->owner, def->payload, &grid->payload_bytes);
    return result == QUERN_OK ? check_layout(grid) : result;
}

/* ------------------------------------------------------------------------------------------- creating */

static void list_terms(quern_grid *grid)
{
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
}

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
    list_terms(grid);
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
    fill_offsets(&grid->def);
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
    quern__grid_release(grid);
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

/* ------------------------------------------------------------------------------------------- building */

static void clear_rows(quern_grid *grid)
{
    grid->row_count = 0;
    grid->rows_count = 0;
    grid->rows_failed = false;
}

static bool are_equal(const quern__grid_rows *a, const quern__grid_rows *b)
{
    return a->positions == b->positions && a->entities == b->entities && a->count == b->count &&
           a->marks == b->marks;
}

static void add_rows(quern_grid *grid, const quern_view *view, uint32_t old_count)
{
    quern__grid_rows rows = {.positions = quern_view_read(view, 0),
                             .entities = view->entities,
                             .count = view->count,
                             .first = grid->row_count};
    if (grid->payload_bytes > 0) rows.payloads = quern_view_read(view, grid->payload_term);
    for (uint32_t i = 0; i < grid->mark_count; i++)
        rows.marks |= (uint32_t)quern_view_has(view, grid->first_mark_term + i) << i;
    if (!quern__grid_reserve_rows(grid) || UINT32_MAX - grid->row_count < view->count) {
        grid->rows_failed = true;
        return;
    }
    quern__grid_rows *place = &grid->rows[grid->rows_count++];
    grid->rows_differ |= grid->rows_count > old_count || !are_equal(place, &rows);
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
    const quern_result result = quern__grid_sort(grid, jobs);
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
    const bool is_built = quern__grid_sort(grid, quern_context_jobs(context)) == QUERN_OK;
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
