/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/grid.h"

#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Grids and the systems of a world, invalid input and missing memory. test_grid_random.c compares search results. */

typedef struct spot {
    float x, y, z;
} spot;

typedef struct scene {
    quern_world *world;
    quern_component spot, hunter, asleep, weight;
    quern_grid *grid;
    quern_schedule *schedule;
} scene;

static void ok(quern_result result)
{
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
}

static scene open_world(void)
{
    scene s = {0};
    ok(quern_world_create(NULL, &s.world));
    ok(QUERN_COMPONENT_REGISTER(s.world, &s.spot, spot));
    ok(quern_component_register(s.world, &(quern_component_def){.name = "hunter"}, &s.hunter));
    ok(quern_component_register(s.world, &(quern_component_def){.name = "asleep"}, &s.asleep));
    ok(quern_component_register(
        s.world, &(quern_component_def){.name = "weight", .size_bytes = 8, .alignment_bytes = 4},
        &s.weight));
    return s;
}

static scene open_scene(const quern_grid_def *wanted)
{
    scene s = open_world();
    quern_grid_def def = *wanted;
    def.position = s.spot;
    ok(quern_grid_create(s.world, &def, &s.grid));
    ok(quern_schedule_create(s.world, &(quern_schedule_def){.phases = {"only"}}, &s.schedule));
    ok(quern_grid_add_systems(s.grid, s.schedule, 0));
    return s;
}

static void close_scene(scene *s)
{
    quern_schedule_destroy(s->schedule);
    quern_grid_destroy(s->grid);
    quern_world_destroy(s->world);
}

static quern_entity put(scene *s, float x, float y, float z)
{
    quern_entity entity;
    const spot at = {x, y, z};
    ok(quern_entity_create_with(s->world, &s->spot, (const void *const[]){&at}, 1, &entity));
    return entity;
}

static quern_grid_stats stats(const scene *s)
{
    quern_grid_stats found;
    ok(quern_grid_get_stats(s->grid, &found));
    return found;
}

static uint64_t builds_in_frame(scene *s)
{
    const uint64_t before = stats(s).build_count;
    ok(quern_schedule_run(s->schedule, NULL, 0));
    return stats(s).build_count - before;
}

static uint32_t count_near(const scene *s, float x, float y, float radius)
{
    const float center[3] = {x, y, 0};
    quern_grid_iterator it = quern_grid_radius(s->grid, center, radius);
    uint32_t count = 0;
    while (quern_grid_next(&it))
        count++;
    return count;
}

/* ----------------------------------------------------------------------------------------- rebuilding */

Test(grid, is_rebuilt_only_after_a_change)
{
    scene s = open_scene(&(quern_grid_def){.planar = true, .cell_size = 1});
    const quern_entity a = put(&s, 1, 1, 0), b = put(&s, 2, 1, 0);
    cr_assert_eq(builds_in_frame(&s), 1, "first");
    cr_assert_eq(builds_in_frame(&s), 0, "nothing new");
    ok(quern_entity_set(s.world, a, s.spot, &(spot){5, 5, 0}));
    cr_assert_eq(builds_in_frame(&s), 1, "moved");
    cr_assert_eq(count_near(&s, 5, 5, 0.5f), 1);
    ok(quern_entity_add(s.world, b, s.hunter, NULL));
    cr_assert_eq(builds_in_frame(&s), 1, "in another archetype");
    ok(quern_entity_destroy(s.world, b));
    cr_assert_eq(builds_in_frame(&s), 1, "gone, with its chunk");
    const quern_entity c = put(&s, 3, 3, 0);
    cr_assert_eq(builds_in_frame(&s), 1, "come");
    ok(quern_entity_destroy(s.world, c));
    cr_assert_eq(builds_in_frame(&s), 1, "the last row of a chunk is gone");
    cr_assert_eq(stats(&s).item_count, 1);
    quern_grid_mark(s.grid);
    cr_assert_eq(builds_in_frame(&s), 1, "marked");
    cr_assert_eq(builds_in_frame(&s), 0);
    close_scene(&s);
}

Test(grid, sees_writes_of_earlier_systems_in_the_same_frame)
{
    scene s = open_scene(&(quern_grid_def){.planar = true, .cell_size = 1});
    const quern_entity a = put(&s, 0, 0, 0);
    (void)builds_in_frame(&s);
    spot *at = quern_entity_get(s.world, a, s.spot);
    at->x = 9; /* written through a pointer: unnoticed until quern_grid_mark */
    cr_assert_eq(builds_in_frame(&s), 0);
    ok(quern_entity_mark_changed(s.world, a, s.spot));
    cr_assert_eq(builds_in_frame(&s), 1);
    cr_assert_eq(count_near(&s, 9, 0, 0), 1);
    close_scene(&s);
}

Test(grid, is_rebuilt_after_a_payload_changed)
{
    scene s = open_world();
    const quern_grid_def def = {.position = s.spot, .planar = true, .cell_size = 1, .payload = s.weight};
    ok(quern_grid_create(s.world, &def, &s.grid));
    ok(quern_schedule_create(s.world, &(quern_schedule_def){.phases = {"only"}}, &s.schedule));
    ok(quern_grid_add_systems(s.grid, s.schedule, 0));
    const quern_entity entity = put(&s, 1, 1, 0);
    uint32_t weight[2] = {1, 2};
    ok(quern_entity_add(s.world, entity, s.weight, weight));
    cr_assert_eq(builds_in_frame(&s), 1);
    cr_assert_eq(builds_in_frame(&s), 0);
    weight[1] = 3;
    ok(quern_entity_set(s.world, entity, s.weight, weight));
    cr_assert_eq(builds_in_frame(&s), 1);
    quern_grid_iterator it = quern_grid_radius(s.grid, (float[2]){1, 1}, 1);
    cr_assert(quern_grid_next(&it));
    cr_assert_eq(memcmp(quern_grid_payload(s.grid, it.item), weight, sizeof weight), 0);
    close_scene(&s);
}

Test(grid, filters_marks_and_copies_the_payload)
{
    scene s = open_world();
    quern_grid_def def = {.position = s.spot, .planar = true, .cell_size = 1, .payload = s.weight};
    def.with[0] = s.hunter;
    def.without[0] = s.asleep;
    def.marks[0] = quern_world_disabled_tag(s.world);
    def.marks[1] = s.asleep;
    cr_assert_eq(quern_grid_create(s.world, &def, &s.grid), QUERN_ERROR_DUPLICATE_COMPONENT);
    def.marks[1] = (quern_component){0};
    ok(quern_grid_create(s.world, &def, &s.grid));
    const spot at = {1, 1, 0};
    const uint32_t weight[2] = {7, 8};
    const quern_component all[] = {s.spot, s.weight, s.hunter, s.asleep};
    const void *const values[] = {&at, weight, NULL, NULL};
    quern_entity found, other;
    ok(quern_entity_create_with(s.world, all, values, 3, &found));
    ok(quern_entity_create_with(s.world, all, values, 4, &other));
    ok(quern_entity_create_with(s.world, all, values, 2, &other));
    ok(quern_entity_create_with(s.world, all, values, 3, &other));
    ok(quern_entity_set_enabled(s.world, other, false));
    ok(quern_grid_build(s.grid, NULL));
    cr_assert_eq(stats(&s).item_count, 2);
    quern_grid_iterator it = quern_grid_box(s.grid, (const float[]){0, 0}, (const float[]){2, 2});
    cr_assert(quern_grid_next(&it));
    cr_assert_eq(it.item->entity.bits, found.bits);
    cr_assert_eq(it.item->marks, 0);
    cr_assert_eq(memcmp(quern_grid_payload(s.grid, it.item), weight, sizeof weight), 0);
    cr_assert(quern_grid_next(&it));
    cr_assert_eq(it.item->entity.bits, other.bits);
    cr_assert_eq(it.item->marks, 1, "disabled");
    cr_assert_not(quern_grid_next(&it));
    close_scene(&s);
}

Test(grid, reads_coordinates_at_their_offsets)
{
    typedef struct placed {
        float m[3][4];
    } placed;
    scene s = open_world();
    quern_component world3;
    ok(QUERN_COMPONENT_REGISTER(s.world, &world3, placed));
    const quern_grid_def def = {.position = world3, .offsets_bytes = {12, 28, 44}};
    ok(quern_grid_create(s.world, &def, &s.grid));
    const placed value = {{{9, 9, 9, 1}, {9, 9, 9, 2}, {9, 9, 9, 3}}};
    quern_entity entity;
    ok(quern_entity_create_with(s.world, &world3, (const void *const[]){&value}, 1, &entity));
    ok(quern_grid_build(s.grid, NULL));
    quern_grid_hit hit;
    cr_assert_eq(quern_grid_nearest(s.grid, (const float[]){1, 2, 3}, 0, &hit, 1), 1);
    cr_assert_eq(hit.item->entity.bits, entity.bits);
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------- systems */

typedef struct asking {
    quern_resource resource;
    uint32_t found;
    bool is_refused;
} asking;

static void ask(quern_context *context, const quern_view *view)
{
    asking *question = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, question->resource);
    question->is_refused = grid == NULL;
    if (grid == NULL) return;
    quern_grid_hit hits[4];
    question->found = quern_grid_nearest(grid, (const float[]){0, 0, 0}, INFINITY, hits, 4);
}

Test(grid, is_a_resource_that_systems_declare)
{
    scene s = open_scene(&(quern_grid_def){.name = "map", .cell_size = 1});
    asking question = {.resource = quern_grid_resource(s.grid)};
    quern_system_def def = {.name = "ask",
                            .run = ask,
                            .user_data = &question,
                            .resources = {{question.resource, QUERN_ACCESS_READ}}};
    quern_system system;
    ok(quern_schedule_add_system(s.schedule, &def, &system));
    put(&s, 1, 2, 3);
    put(&s, 3, 2, 1);
    ok(quern_schedule_run(s.schedule, NULL, 0));
    cr_assert_eq(question.found, 2);
    ok(quern_schedule_compile(s.schedule));
    const quern_system builder = quern_schedule_find_system(s.schedule, "build map");
    cr_assert(quern_schedule_has_edge(s.schedule, builder, system));
    close_scene(&s);
}

Test(grid, reuses_the_resource_of_a_destroyed_grid)
{
    scene s = open_world();
    const quern_grid_def def = {.position = s.spot};
    quern_grid *second = NULL;
    ok(quern_grid_create(s.world, &def, &s.grid));
    const quern_resource first = quern_grid_resource(s.grid);
    cr_assert_eq(quern_grid_create(s.world, &def, &second), QUERN_ERROR_DUPLICATE_NAME);
    quern_grid_destroy(s.grid);
    ok(quern_grid_create(s.world, &def, &s.grid));
    cr_assert_eq(quern_grid_resource(s.grid).bits, first.bits);
    const uint64_t small = 0;
    const quern_resource_def other = {.name = "taken", .size_bytes = 4, .value = &small};
    quern_resource resource;
    ok(quern_resource_register(s.world, &other, &resource));
    const quern_grid_def taken = {.name = "taken", .position = s.spot};
    cr_assert_eq(quern_grid_create(s.world, &taken, &second), QUERN_ERROR_DUPLICATE_NAME);
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------- bad input */

static void refuse(scene *s, quern_grid_def def, quern_result expected, const char *word)
{
    quern_grid *grid = NULL;
    if (def.position.bits == 0) def.position = s->spot;
    cr_assert_eq(quern_grid_create(s->world, &def, &grid), expected, "%s", word);
    cr_assert_not_null(strstr(quern_error_message(), word), "'%s' lacks '%s'", quern_error_message(), word);
    cr_assert_null(grid);
}

Test(grid, refuses_invalid_definitions)
{
    scene s = open_world();
    refuse(&s, (quern_grid_def){.cell_size = -1}, QUERN_ERROR_INVALID_ARGUMENT, "cell size");
    refuse(&s, (quern_grid_def){.cell_size = NAN}, QUERN_ERROR_INVALID_ARGUMENT, "cell size");
    refuse(&s, (quern_grid_def){.cell_size = INFINITY}, QUERN_ERROR_INVALID_ARGUMENT, "cell size");
    refuse(&s, (quern_grid_def){.min = {0, 1}, .max = {1, 0}}, QUERN_ERROR_INVALID_ARGUMENT, "along y");
    refuse(&s, (quern_grid_def){.max = {1, NAN}}, QUERN_ERROR_INVALID_ARGUMENT, "along y");
    refuse(&s, (quern_grid_def){.max_cell_count = UINT32_MAX}, QUERN_ERROR_INVALID_ARGUMENT,
           "max_cell_count");
    refuse(&s, (quern_grid_def){.position = s.weight}, QUERN_ERROR_INVALID_ARGUMENT, "weight");
    refuse(&s, (quern_grid_def){.offsets_bytes = {0, 4, 12}}, QUERN_ERROR_INVALID_ARGUMENT, "byte 12");
    refuse(&s, (quern_grid_def){.payload = s.hunter}, QUERN_ERROR_INVALID_ARGUMENT, "hunter");
    refuse(&s, (quern_grid_def){.position = {.bits = 77}}, QUERN_ERROR_UNKNOWN_COMPONENT, "");
    cr_assert_eq(quern_grid_create(NULL, &(quern_grid_def){0}, &s.grid), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_grid_create(s.world, NULL, &s.grid), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_grid_build(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    close_scene(&s);
}

Test(grid, finds_nothing_before_the_first_build)
{
    scene s = open_scene(&(quern_grid_def){0});
    quern_grid_hit hit;
    const float origin[3] = {0}, along[3] = {1};
    cr_assert_eq(count_near(&s, 0, 0, INFINITY), 0);
    cr_assert_eq(quern_grid_nearest(s.grid, origin, INFINITY, &hit, 1), 0);
    cr_assert_eq(quern_grid_ray(s.grid, origin, along, 1, 1, &hit, 1), 0);
    cr_assert_eq(quern_grid_get_cells(s.grid)->cell_count, 0);
    cr_assert_eq(quern_grid_part_count(s.grid), 0);
    ok(quern_grid_build(s.grid, NULL));
    cr_assert_eq(count_near(&s, 0, 0, INFINITY), 0, "nor afterwards, without entities");
    cr_assert_eq(quern_grid_get_cells(s.grid)->cell_count, 1);
    close_scene(&s);
}

Test(grid, leaves_out_positions_that_are_not_finite)
{
    scene s = open_scene(&(quern_grid_def){0});
    put(&s, 1, 1, 1);
    put(&s, NAN, 1, 1);
    put(&s, 1, INFINITY, 1);
    put(&s, 1, 1, -INFINITY);
    put(&s, 2, 2, 2);
    ok(quern_grid_build(s.grid, NULL));
    cr_assert_eq(stats(&s).item_count, 2);
    cr_assert_eq(stats(&s).left_out_count, 3);
    cr_assert_eq(count_near(&s, 0, 0, INFINITY), 2);
    close_scene(&s);
}

static void never(void *user_data, uint32_t part, const quern_grid_pair *pairs, uint32_t count)
{
    cr_assert_fail("called for a question that was refused");
}

Test(grid, searches_with_invalid_numbers_find_nothing)
{
    scene s = open_scene(&(quern_grid_def){0});
    put(&s, 0, 0, 0);
    ok(quern_grid_build(s.grid, NULL));
    quern_grid_hit hit;
    const float good[3] = {0, 0, 0}, bad[3] = {0, NAN, 0}, along[3] = {0, 1, 0};
    cr_assert_eq(count_near(&s, NAN, 0, 1), 0);
    cr_assert_eq(count_near(&s, INFINITY, 0, INFINITY), 0);
    cr_assert_eq(count_near(&s, 0, 0, -1), 0);
    cr_assert_eq(count_near(&s, 0, 0, NAN), 0);
    quern_grid_iterator it = quern_grid_box(s.grid, bad, good);
    cr_assert_not(quern_grid_next(&it));
    it = quern_grid_box(s.grid, (const float[]){1, 0, 0}, (const float[]){-1, 0, 0});
    cr_assert_not(quern_grid_next(&it));
    it = quern_grid_box(s.grid, (const float[]){-INFINITY, -INFINITY, -INFINITY},
                        (const float[]){INFINITY, INFINITY, INFINITY});
    cr_assert(quern_grid_next(&it), "all that is");
    cr_assert_eq(quern_grid_nearest(s.grid, bad, 1, &hit, 1), 0);
    cr_assert_eq(quern_grid_nearest(s.grid, good, NAN, &hit, 1), 0);
    cr_assert_eq(quern_grid_nearest(s.grid, good, 1, &hit, 0), 0);
    cr_assert_eq(quern_grid_ray(s.grid, good, good, 1, 1, &hit, 1), 0, "no direction");
    cr_assert_eq(quern_grid_ray(s.grid, good, along, INFINITY, 1, &hit, 1), 0);
    cr_assert_eq(quern_grid_ray(s.grid, good, along, 0, 0, &hit, 1), 1);
    cr_assert_eq(quern_grid_pairs(s.grid, NULL, NAN, never, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_grid_pairs(s.grid, NULL, 1, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    close_scene(&s);
}

Test(grid, cells_grow_to_respect_their_limit)
{
    scene s = open_scene(&(quern_grid_def){.cell_size = 1e-15f, .max_cell_count = 100});
    put(&s, -FLT_MAX, -FLT_MAX, -FLT_MAX);
    put(&s, FLT_MAX, FLT_MAX, FLT_MAX);
    put(&s, 0, 0, 0);
    put(&s, 1e-30f, 0, 0);
    ok(quern_grid_build(s.grid, NULL));
    cr_assert_leq(quern_grid_get_cells(s.grid)->cell_count, 100);
    cr_assert_eq(count_near(&s, 0, 0, 1e-15f), 2);
    cr_assert_eq(count_near(&s, 0, 0, FLT_MAX), 4, "squares are infinite on both sides");
    quern_grid_hit hits[4];
    cr_assert_eq(quern_grid_nearest(s.grid, (const float[]){1, 1, 1}, INFINITY, hits, 4), 4);
    close_scene(&s);
}

Test(grid, finds_entities_outside_of_the_box)
{
    scene s = open_scene(&(quern_grid_def){.planar = true, .cell_size = 1, .min = {0, 0}, .max = {4, 4}});
    put(&s, -100, 2, 0);
    put(&s, 100, 100, 0);
    put(&s, 2, 2, 0);
    ok(quern_grid_build(s.grid, NULL));
    const quern_grid_cells *cells = quern_grid_get_cells(s.grid);
    cr_assert_eq(cells->counts[0], 5);
    cr_assert_eq(cells->counts[2], 1);
    cr_assert_eq(count_near(&s, -100, 2, 1), 1);
    cr_assert_eq(count_near(&s, 101, 101, 2), 1);
    cr_assert_eq(count_near(&s, 50, 2, 49), 1);
    cr_assert_eq(quern_grid_cell_along(cells, 0, -100), 0);
    cr_assert_eq(quern_grid_cell_along(cells, 1, 100), 4);
    cr_assert_eq(quern_grid_cell_along(cells, 0, NAN), 0);
    cr_assert_eq(cells->starts[2 * 5 + 1] - cells->starts[2 * 5], 1, "the one far to the left");
    cr_assert_eq(cells->starts[cells->cell_count], 3);
    close_scene(&s);
}

Test(grid, is_rebuilt_after_a_restore)
{
    scene s = open_scene(&(quern_grid_def){.cell_size = 1});
    const quern_entity entity = put(&s, 1, 1, 0);
    quern_history *history;
    const quern_history_def def = {.schedules = {s.schedule}};
    ok(quern_history_create(s.world, &def, &history));
    cr_assert_eq(builds_in_frame(&s), 1);
    cr_assert_eq(builds_in_frame(&s), 0);
    ok(quern_history_save(history, 7, NULL));
    ok(quern_entity_set(s.world, entity, s.spot, &(spot){50, 50, 0}));
    cr_assert_eq(builds_in_frame(&s), 1);
    cr_assert_eq(count_near(&s, 50, 50, 1), 1);
    ok(quern_history_restore(history, 7, NULL));
    cr_assert_eq(builds_in_frame(&s), 1);
    cr_assert_eq(count_near(&s, 1, 1, 1), 1);
    cr_assert_eq(count_near(&s, 50, 50, 1), 0);
    cr_assert_eq(builds_in_frame(&s), 0);
    quern_history_destroy(history);
    close_scene(&s);
}

static void build_in_system(quern_context *context, const quern_view *view)
{
    quern_grid *grid = quern_context_user_data(context);
    quern_grid_stats before, after;
    ok(quern_grid_get_stats(grid, &before));
    cr_assert_eq(quern_grid_build(grid, NULL), QUERN_ERROR_WORLD_LOCKED);
    ok(quern_grid_get_stats(grid, &after));
    cr_assert_eq(after.item_count, before.item_count);
    cr_assert_gt(after.item_count, 0u);
    cr_assert_eq(after.build_count, before.build_count);
}

Test(grid, a_build_inside_a_system_fails_and_keeps_the_grid)
{
    scene s = open_scene(&(quern_grid_def){.cell_size = 1});
    put(&s, 1, 1, 1);
    ok(quern_grid_build(s.grid, NULL));
    put(&s, 2, 2, 2);
    const quern_system_def builder = {.name = "builder",
                                      .run = build_in_system,
                                      .terms = {quern_term_read(s.weight)},
                                      .user_data = s.grid};
    ok(quern_schedule_add_system(s.schedule, &builder, NULL));
    quern_entity heavy;
    ok(quern_entity_create_with(s.world, &s.weight, NULL, 1, &heavy));
    ok(quern_schedule_run(s.schedule, NULL, 0));
    cr_assert_eq(stats(&s).item_count, 2u);
    close_scene(&s);
}

Test(grid, a_build_without_memory_is_empty_until_the_next_frame)
{
    bool is_built = false;
    uint32_t failed_count = 0;
    for (uint32_t call = 1; !is_built; call++) {
        failing_allocator *memory = failing_allocator_create();
        scene s =
            open_scene(&(quern_grid_def){.allocator = failing_allocator_interface(memory), .cell_size = 1});
        for (uint32_t i = 0; i < 100; i++)
            put(&s, (float)i, 0, 0);
        failing_allocator_fail_at(memory, call);
        const quern_result result = quern_grid_build(s.grid, NULL);
        is_built = result == QUERN_OK;
        failed_count += !is_built;
        cr_assert(is_built || result == QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(stats(&s).last_result, result);
        cr_assert_eq(stats(&s).item_count, is_built ? 100 : 0);
        cr_assert_eq(count_near(&s, 50, 0, 1.5f), is_built ? 3 : 0);
        failing_allocator_heal(memory);
        ok(quern_schedule_run(s.schedule, NULL, 0));
        cr_assert_eq(count_near(&s, 50, 0, 1.5f), 3);
        close_scene(&s);
        failing_allocator_close(memory);
    }
    cr_assert_geq(failed_count, 5, "rows, items, cells, starts, cursors");
}

Test(grid, creation_without_memory_leaks_nothing)
{
    failing_allocator *memory = failing_allocator_create();
    scene s = open_world();
    quern_grid *grid = NULL;
    const quern_grid_def def = {.position = s.spot, .allocator = failing_allocator_interface(memory)};
    failing_allocator_fail_at(memory, 1);
    cr_assert_eq(quern_grid_create(s.world, &def, &grid), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_null(grid);
    close_scene(&s);
    failing_allocator_close(memory);
}
