/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/tracked.h"

#include <quern/commands.h>
#include <quern/getter.h>
#include <quern/history.h>
#include <quern/prefab.h>

#include <stdlib.h>

/* Large archetypes, whose chunks lie in runs: there the first row of a chunk follows the last row of the chunk before, and
 * rows move when the archetype becomes large. */

static quern_component number, flag;
static tracked_counts counts;

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    flag =
        make_component(world, .name = "flag", .size_bytes = 4, .alignment_bytes = 4, .can_disable = true);
}

TestSuite(runs, .init = open_world, .fini = close_valid_world);

static const quern__archetype *archetype_of(quern_entity entity)
{
    const quern__storage *storage = &world->storage;
    return quern__storage_archetype_of(storage, quern__entities_find(&storage->entities, entity));
}

/* Creates entities that fill `chunk_count` chunks of an archetype with runs. */
static quern_entity *create_large(uint32_t chunk_count, uint32_t *out_count)
{
    const quern_component both[] = {number, flag};
    quern_entity *many = calloc(40000, sizeof *many);
    must(quern_entity_create_many(world, both, NULL, 2, 20000, many));
    const quern__archetype *archetype = archetype_of(many[0]);
    cr_assert_eq(archetype->shape.shift, (uint32_t)QUERN__RUN_SHIFT);
    *out_count = chunk_count * archetype->shape.row_capacity;
    cr_assert_lt(*out_count, 20000u);
    for (uint64_t i = 0; i < 20000; i++)
        must(quern_entity_set(world, many[i], number, &i));
    return many;
}

/* Rows of two chunks leave in one range of locations, with bits, refs and versions. */
Test(runs, rows_on_both_sides_of_a_chunk_leave_in_one_sync_point)
{
    uint32_t count;
    quern_entity *many = create_large(4, &count);
    quern_getter *getter;
    must(quern_getter_create(world, &(quern_getter_def){.component = number, .refs = true}, &getter));
    const uint32_t capacity = count / 4;
    for (uint32_t i = capacity; i < 2 * capacity; i++)
        must(quern_entity_set_component_enabled(world, many[i], flag, false));
    quern_ref ref = {.entity = many[2 * capacity + 1]}, last = {.entity = many[19999]};
    cr_assert_eq(*(const uint64_t *)quern_ref_get(getter, &ref), 2 * capacity + 1);
    cr_assert_eq(*(const uint64_t *)quern_ref_get(getter, &last), 19999u);
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = capacity - 3; i < 2 * capacity + 2; i++)
        must(quern_commands_destroy(commands, many[i]));
    must(quern_world_flush(world));
    assert_valid(world);
    cr_assert_null(quern_ref_get(getter, &ref), "its row was in the last of the chunks");
    for (uint32_t i = 0; i < 20000; i++) {
        if (i >= capacity - 3 && i < 2 * capacity + 2) continue;
        cr_assert_eq(*(const uint64_t *)quern_entity_get(world, many[i], number), i);
        cr_assert(quern_entity_is_component_enabled(world, many[i], flag), "entity %u", i);
    }
    quern_getter_destroy(getter);
    free(many);
}

static uint32_t filled_count, most_rows;

static void fill(quern_context *context, const quern_view *view)
{
    (void)context;
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = view->fill_index + i;
    filled_count += view->count;
    if (view->count > most_rows) most_rows = view->count;
}

Test(runs, a_view_that_fills_instances_has_rows_of_one_chunk)
{
    enum { INSTANCES = 20000 };
    quern_prefab prefab;
    quern_entity *roots = calloc(INSTANCES, sizeof *roots);
    const quern_entity source = setup_entity_with(world, &number, 1);
    must(quern_prefab_capture(world, source, &prefab));
    must(quern_entity_destroy(world, source)); /* an archetype without rows gets runs at once */
    const quern_spawn_def def = {.fill = fill, .fill_components = {number}};
    filled_count = most_rows = 0;
    must(quern_prefab_spawn_many(world, prefab, INSTANCES, &def, roots, NULL));
    cr_assert_eq(filled_count, (uint32_t)INSTANCES);
    cr_assert_leq(most_rows, archetype_of(roots[0])->shape.row_capacity);
    for (uint64_t i = 0; i < INSTANCES; i++)
        cr_assert_eq(*(const uint64_t *)quern_entity_get(world, roots[i], number), i);
    free(roots);
}

Test(runs, a_removed_archetype_is_restored_in_runs)
{
    uint32_t count;
    quern_entity *many = create_large(4, &count);
    const quern_entity bare = setup_entity(world);
    quern_getter *getter;
    quern_history *history;
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &getter));
    must(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    must(quern_history_save(history, 0, NULL));
    must(quern_entity_destroy_many(world, many, 20000));
    must(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_null(quern_getter_get(getter, bare));
    must(quern_history_restore(history, 0, NULL));
    assert_valid(world);
    cr_assert_null(quern_getter_get(getter, bare), "it has no number");
    for (uint32_t i = 0; i < 20000; i++)
        cr_assert_eq(*(const uint64_t *)quern_getter_get(getter, many[i]), i);
    quern_history_destroy(history);
    quern_getter_destroy(getter);
    free(many);
}

/* The last create before rows move has a component that another one requires. */
Test(runs, required_values_are_constructed_before_rows_move)
{
    quern_component value, needing;
    counts = (tracked_counts){0};
    value = tracked_register(world, "value", &counts);
    needing = make_component(world, .name = "needing", .size_bytes = 8, .alignment_bytes = 8,
                             .required = {value});
    quern__chunk_policies.gathered_chunks = 2;
    const quern__archetype *archetype = NULL;
    for (uint64_t i = 0; archetype == NULL || archetype->shape.shift == 0; i++) {
        quern_entity entity;
        must(quern_entity_create_with(world, &needing, &(const void *){&i}, 1, &entity));
        archetype = archetype_of(entity);
    }
    assert_valid(world);
    cr_assert_eq(counts.broken_count, 0u);
    cr_assert_eq((uint64_t)tracked_live_count(&counts), quern__archetype_row_count(archetype));
}

Test(runs, reserved_rows_stay_reserved_when_an_archetype_gets_runs)
{
    enum { ROWS = 30000 };
    const quern_entity first = setup_entity_with(world, &number, 1);
    must(quern_world_reserve(world, &(quern_reserve_def){.components = {number}, .row_count = ROWS}));
    const quern__archetype *archetype = archetype_of(first);
    cr_assert_eq(archetype->shape.shift, (uint32_t)QUERN__RUN_SHIFT);
    const uint32_t held_count = archetype->held_count;
    cr_assert_geq(held_count * archetype->shape.row_capacity, (uint32_t)ROWS);
    must(quern_entity_destroy(world, first));
    cr_assert_eq(archetype->held_count, held_count);
    must(quern_world_remove_empty_archetypes(world, NULL));
    assert_valid(world);
}

/* Memory that an archetype without rows keeps becomes runs like that of one with rows. */
Test(runs, a_larger_reservation_replaces_short_runs)
{
    static const uint32_t first_counts[] = {1, 20000};
    for (uint32_t i = 0; i < 2; i++) {
        const quern_component component = i == 0 ? number : flag;
        quern_reserve_def def = {.components = {component}, .row_count = first_counts[i]};
        must(quern_world_reserve(world, &def));
        def.row_count = 1000000;
        must(quern_world_reserve(world, &def));
        const quern__archetype *archetype = archetype_of(setup_entity_with(world, &component, 1));
        cr_assert_eq(archetype->shape.shift, (uint32_t)QUERN__SLAB_SHIFT);
        cr_assert_geq((uint64_t)archetype->held_count * archetype->shape.row_capacity,
                      1000000u + first_counts[i]);
        assert_valid(world);
    }
}

/* The memory of a view is gone when its archetype has got other runs, and no slab keeps the former ones. */
static void expect_refused(const quern_query_iterator *iterator)
{
    cr_assert_eq(
        quern_commands_set_view(quern_world_commands(world), &iterator->view, NULL, number, &(uint64_t){1}),
        QUERN_ERROR_INVALID_ARGUMENT);
}

Test(runs, a_view_from_before_rows_moved_is_refused)
{
    enum { MANY = 100000, STEP = 10000 };
    quern_entity *many = calloc(MANY, sizeof *many);
    quern_query *query = make_query(world, .terms = {quern_term_read(number)});
    must(quern_entity_create_many(world, &number, NULL, 1, MANY, many));
    const quern__archetype *archetype = archetype_of(many[0]);
    cr_assert_eq(archetype->shape.shift, (uint32_t)QUERN__RUN_SHIFT);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    must(quern_commands_set_view(quern_world_commands(world), &it.view, NULL, number, &(uint64_t){1}));
    must(quern_world_flush(world));
    while (archetype->shape.shift < QUERN__SLAB_SHIFT)
        must(quern_entity_create_many(world, &number, NULL, 1, STEP, NULL));
    expect_refused(&it);

    uint32_t left = (uint32_t)quern__archetype_row_count(archetype);
    for (it = quern_query_iterate(query); left > STEP && quern_query_next(&it);) {
        const uint32_t count = it.view.count;
        must(quern_entity_destroy_many(world, it.view.entities, count));
        left -= count;
        it = quern_query_iterate(query);
    }
    it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    must(quern_world_trim(world));
    cr_assert_eq(archetype->shape.shift, (uint32_t)QUERN__RUN_SHIFT);
    expect_refused(&it);
    assert_valid(world);
    quern_query_destroy(query);
    free(many);
}
