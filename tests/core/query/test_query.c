/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <string.h>

static quern_component position, velocity, health, frozen;
static captured_reports reports;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    health = setup_component(world, "health", 8, 8);
    frozen = setup_tag(world, "frozen");
    capture_reports(&reports);
}

TestSuite(query, .init = open_world, .fini = close_world);

/* Creates `count` entities with the components of a mask: 1 position, 2 velocity, 4 health, 8 frozen. */
static void create_of(uint32_t mask, uint32_t count)
{
    quern_component all[] = {position, velocity, health, frozen}, chosen[4];
    uint32_t chosen_count = 0;
    for (uint32_t i = 0; i < 4; i++)
        if (mask & 1u << i) chosen[chosen_count++] = all[i];
    for (uint32_t i = 0; i < count; i++)
        setup_entity_with(world, chosen, chosen_count);
}

/* Creates m + 1 entities for each mask m. */
static void create_of_each_set(void)
{
    for (uint32_t mask = 0; mask < 16; mask++)
        create_of(mask, mask + 1);
}

static void assert_finds(const quern_term *terms, uint32_t term_count, uint64_t expected)
{
    quern_query *query = setup_query(world, terms, term_count);
    cr_assert_eq(quern_query_count(query), expected, "counted %llu, not %llu",
                 (unsigned long long)quern_query_count(query), (unsigned long long)expected);
    cr_assert_eq(iterate_rows(query), expected);
    quern_query_destroy(query);
}

#define assert_terms_find(expected, ...)      \
    assert_finds((quern_term[]){__VA_ARGS__}, \
                 (uint32_t)(sizeof((quern_term[]){__VA_ARGS__}) / sizeof(quern_term)), (expected))

/* Returns the number of entities from create_of_each_set with all bits of `all`, no bit of `none`, and one bit of `any`
 * (0: no condition). */
static uint64_t expected_count(uint32_t all, uint32_t none, uint32_t any)
{
    uint64_t count = 0;
    for (uint32_t mask = 0; mask < 16; mask++)
        if ((mask & all) == all && (mask & none) == 0 && (any == 0 || (mask & any) != 0)) count += mask + 1;
    return count;
}

/* ---------------------------------------------------------------------------------------- matching */

Test(query, archetype_must_have_all_required_components)
{
    create_of_each_set();
    assert_terms_find(expected_count(1, 0, 0), quern_term_read(position));
    assert_terms_find(expected_count(3, 0, 0), quern_term_read(position), quern_term_write(velocity));
    assert_terms_find(expected_count(15, 0, 0), quern_term_read(position), quern_term_read(velocity),
                      quern_term_read(health), quern_term_with(frozen));
}

Test(query, archetype_must_lack_excluded_components)
{
    create_of_each_set();
    assert_terms_find(expected_count(1, 2, 0), quern_term_read(position), quern_term_without(velocity));
    assert_terms_find(expected_count(0, 8, 0), quern_term_without(frozen));
    assert_terms_find(expected_count(0, 15, 0), quern_term_without(position), quern_term_without(velocity),
                      quern_term_without(health), quern_term_without(frozen));
}

Test(query, optional_terms_match_either_way)
{
    create_of_each_set();
    assert_terms_find(expected_count(1, 0, 0), quern_term_read(position),
                      quern_term_optional(velocity, QUERN_ACCESS_READ));
    assert_terms_find(expected_count(0, 0, 0), quern_term_optional(velocity, QUERN_ACCESS_READ));
}

Test(query, archetype_must_have_one_of_the_any_components)
{
    create_of_each_set();
    assert_terms_find(expected_count(0, 0, 3), quern_term_any(position, QUERN_ACCESS_READ),
                      quern_term_any(velocity, QUERN_ACCESS_READ));
    assert_terms_find(expected_count(4, 8, 3), quern_term_any(position, QUERN_ACCESS_READ),
                      quern_term_any(velocity, QUERN_ACCESS_READ), quern_term_read(health),
                      quern_term_without(frozen));
}

Test(query, view_reports_present_optional_and_any_terms)
{
    create_of(1 | 4, 3);
    create_of(2 | 4, 3);
    quern_term terms[] = {quern_term_any(position, QUERN_ACCESS_READ),
                          quern_term_any(velocity, QUERN_ACCESS_WRITE),
                          quern_term_optional(frozen, QUERN_ACCESS_NONE)};
    quern_query *query = setup_query(world, terms, 3);
    quern_query_iterator it = quern_query_iterate(query);
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert(quern_query_next(&it));
        cr_assert_eq(quern_view_has(&it.view, 0), round == 0);
        cr_assert_eq(quern_view_has(&it.view, 1), round == 1);
        cr_assert_eq(quern_view_read(&it.view, 0) != NULL, round == 0);
        cr_assert_eq(quern_view_write(&it.view, 1) != NULL, round == 1);
        cr_assert_not(quern_view_has(&it.view, 2));
        cr_assert_not(quern_view_has(&it.view, 3));
    }
    cr_assert_not(quern_query_next(&it));
    cr_assert_eq(reports.log_count, 0u, "what is absent is no misuse");
}

Test(query, a_tag_has_no_column)
{
    create_of(1 | 8, 3);
    quern_term terms[] = {quern_term_read(frozen), quern_term_write(position)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert(quern_view_has(&it.view, 0));
    cr_assert_null(quern_view_read(&it.view, 0));
    cr_assert_not_null(quern_view_read(&it.view, 1));
    cr_assert_eq(reports.log_count, 0u);
}

/* --------------------------------------------------------------------------------- following the world */

Test(query, new_archetypes_appear_in_an_old_query)
{
    quern_term terms[] = {quern_term_read(position), quern_term_without(frozen)};
    quern_query *query = setup_query(world, terms, 2);
    cr_assert_eq(quern_query_count(query), 0u);
    create_of(1, 5);
    cr_assert_eq(quern_query_count(query), 5u);
    create_of(1 | 2, 7);
    create_of(1 | 8, 100);
    cr_assert_eq(iterate_rows(query), 12u);
    create_of(1 | 2 | 4, 1);
    cr_assert_eq(quern_query_count(query), 13u);
}

Test(query, components_registered_later_do_not_affect_a_query)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_component late = setup_component(world, "late", 8, 8);
    quern_component both[] = {late, position};
    setup_entity_with(world, both, 2);
    cr_assert_eq(iterate_rows(query), 1u);
}

Test(query, empty_archetypes_are_skipped)
{
    quern_entity entity = setup_entity_with(world, &position, 1);
    create_of(1 | 2, 1);
    must(quern_entity_destroy(world, entity));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(it.view.count, 1u);
    cr_assert_eq(it.view.ordinal, 0u);
    cr_assert_not(quern_query_next(&it));
    cr_assert_not(quern_query_next(&it), "the end stays the end");
}

Test(query, an_empty_world_has_no_views)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert_not(quern_query_next(&it));
    cr_assert_eq(it.result, QUERN_OK);
}

/* ----------------------------------------------------------------------------------------- iterating */

Test(query, views_are_ordered_by_archetype_chunk_and_row)
{
    enum { COUNT = 4000 };
    create_of(1, COUNT);
    create_of(1 | 2, COUNT);
    create_of(1, 1);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    uint32_t views = 0, rows = 0, last = 0;
    quern_query_iterator it = quern_query_iterate(query);
    for (; quern_query_next(&it); views++) {
        cr_assert_eq(it.view.ordinal, views);
        for (uint32_t i = 0; i < it.view.count; i++, rows++) {
            uint32_t index = quern_entity_index(it.view.entities[i]);
            /* all of the first archetype, whose last row was created last, then the second */
            bool jumps = rows == COUNT || rows == COUNT + 1;
            if (rows > 0 && !jumps) cr_assert_eq(index, last + 1);
            last = index;
        }
    }
    cr_assert_eq(rows, 2u * COUNT + 1);
    cr_assert_gt(views, 2u);
}

Test(query, writes_through_a_view_are_visible_to_get)
{
    create_of(1 | 2, 2000);
    quern_term terms[] = {quern_term_write(position), quern_term_read(velocity)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        vec3 *p = quern_view_write(&it.view, 0);
        const vec3 *v = quern_view_read(&it.view, 1);
        for (uint32_t i = 0; i < it.view.count; i++) {
            cr_assert_eq(v[i].x, 0.0f);
            p[i].x = (float)quern_entity_index(it.view.entities[i]);
        }
    }
    it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            quern_entity entity = it.view.entities[i];
            const vec3 *p = quern_entity_get(world, entity, position);
            cr_assert_eq(p->x, (float)quern_entity_index(entity));
            cr_assert_eq((const void *)p, (const void *)((const vec3 *)quern_view_read(&it.view, 0) + i));
        }
}

/* The first iteration over a structure uses no list of chunks, the second one does. */
Test(query, ended_iteration_has_no_more_views)
{
    for (uint32_t i = 0; i < 5; i++)
        setup_entity_with(world, (quern_component[]){position, i % 2 == 0 ? velocity : health}, 2);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    for (uint32_t walk = 0; walk < 3; walk++) {
        quern_query_iterator it = quern_query_iterate(query);
        cr_assert(quern_query_next(&it));
        quern_query_iterator_end(&it);
        cr_assert_not(quern_query_next(&it), "walk %u", walk);
        cr_assert_eq(it.result, QUERN_OK);
    }
}

Test(query, concurrent_iterations_of_one_query_are_independent)
{
    create_of(1, 10);
    create_of(1 | 2, 10);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    uint64_t pairs = 0;
    for (quern_query_iterator outer = quern_query_iterate(query); quern_query_next(&outer);) {
        for (quern_query_iterator inner = quern_query_iterate(query); quern_query_next(&inner);)
            pairs += (uint64_t)outer.view.count * inner.view.count;
    }
    cr_assert_eq(pairs, 400u);
}

/* Starts an iteration that uses the list of chunks: at least the second one over an unchanged structure. */
static quern_query_iterator walk_known_chunks(quern_query *query)
{
    iterate_rows(query);
    iterate_rows(query);
    return quern_query_iterate(query);
}

Test(query, first_and_later_iterations_visit_the_same_views)
{
    create_of_each_set();
    create_of(1 | 2, 4000);
    quern_term terms[] = {quern_term_write(position), quern_term_optional(velocity, QUERN_ACCESS_READ)};
    quern_query *query = setup_query(world, terms, 2);
    for (uint32_t walk = 0; walk < 3; walk++) {
        quern_query_iterator first = quern_query_iterate(setup_query(world, terms, 2));
        quern_query_iterator later = walk_known_chunks(query);
        while (quern_query_next(&first)) {
            cr_assert(quern_query_next(&later));
            cr_assert_eq(later.view.ordinal, first.view.ordinal);
            cr_assert_eq(later.view.count, first.view.count);
            cr_assert_eq((const void *)later.view.entities, (const void *)first.view.entities);
            cr_assert_eq(quern_view_write(&later.view, 0), quern_view_write(&first.view, 0));
            cr_assert_eq(quern_view_read(&later.view, 1), quern_view_read(&first.view, 1));
            cr_assert_eq(quern_view_has(&later.view, 1), quern_view_has(&first.view, 1));
        }
        cr_assert_not(quern_query_next(&later));
        cr_assert_not(quern_query_next(&later), "the end stays the end");
        cr_assert_eq(later.result, QUERN_OK);
        quern_query_destroy((quern_query *)(uintptr_t)first.view.query);
        create_of(1 | 8, 700); /* changes the structure for the next round */
    }
}

static uint32_t count_fetched(const quern_query *query)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < query->entries.count; i++)
        count += query->entries.items[i].fetches_next;
    return count;
}

/* Returns how many chunks begin a run, without the first of all. */
static uint32_t count_runs_after_first(const quern_query *query)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < query->entries.count; i++)
        count += query->entries.items[i].chunk_row == 0;
    return count;
}

Test(query, iterations_larger_than_the_cache_prefetch_the_next_run)
{
    create_of(1 | 2, 10000);
    create_of(1 | 2 | 8, 63);
    create_of(1 | 2 | 4, 64);
    quern_query *narrow = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query *wide =
        setup_query(world, (quern_term[]){quern_term_read(position), quern_term_write(velocity)}, 2);
    iterate_rows(narrow);
    iterate_rows(narrow);
    iterate_rows(wide);
    iterate_rows(wide);
    cr_assert_eq(count_fetched(narrow), 0u, "it touches 120 KB");
    cr_assert_eq(count_fetched(wide), 0u, "it touches 240 KB");
    create_of(1 | 2, 10000);
    iterate_rows(narrow);
    iterate_rows(narrow);
    iterate_rows(wide);
    iterate_rows(wide);
    cr_assert_eq(count_fetched(narrow), 0u, "it touches 240 KB");
    cr_assert_gt(wide->entries.count, 2u * QUERN__RUN_CHUNKS);
    cr_assert_geq(count_runs_after_first(wide), 4u, "two of the large archetype, two small archetypes");
    cr_assert_eq(count_fetched(wide), count_runs_after_first(wide) - 1, "not that of few rows");
    cr_assert_not(wide->entries.items[wide->entries.count - 1].fetches_next, "there is none behind it");
}

static uint32_t count_views(quern_query *query)
{
    uint32_t count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        count++;
    return count;
}

Test(query, prefetching_iterations_report_writes_to_filters)
{
    create_of(1 | 2, 20000);
    create_of(1 | 2 | 4, 2000);
    quern_term terms[] = {quern_term_write(position), quern_term_read(velocity)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query *changed =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_read(position))}, 1);
    const uint32_t view_count = count_views(changed);
    /* the second iteration uses the list of chunks and prefetches */
    for (uint32_t walk = 0; walk < 3; walk++) {
        uint32_t written_count = 0;
        for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
            if (it.view.ordinal % 3 == walk) written_count += quern_view_write(&it.view, 0) != NULL;
        cr_assert_gt(written_count, view_count / 4);
        cr_assert_eq(count_views(changed), written_count);
    }
    cr_assert_gt(count_fetched(query), 1u);
}

Test(query, iteration_over_the_chunk_list_ends_at_a_structural_change)
{
    create_of(1, 4000);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = walk_known_chunks(query);
    cr_assert(quern_query_next(&it));
    must(quern_entity_destroy(world, it.view.entities[0]));
    cr_assert_not(quern_query_next(&it));
    cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED);
    cr_assert_not(quern_query_next(&it), "once ended, it stays so");
    cr_assert_eq(iterate_rows(query), 3999u);
}

Test(query, iteration_over_the_chunk_list_ends_when_a_frame_runs)
{
    create_of(1, 4000);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = walk_known_chunks(query);
    cr_assert(quern_query_next(&it));
    world->locked = true;
    cr_assert_not(quern_query_next(&it));
    world->locked = false;
    cr_assert_eq(it.result, QUERN_ERROR_WORLD_LOCKED);
    cr_assert_not(quern_query_next(&it), "once ended, it stays so");
}

Test(query, iteration_is_complete_without_memory_for_the_chunk_list)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world *small_world = make_world(.allocator = failing_allocator_interface(memory));
    quern_component number = setup_component(small_world, "number", 8, 8);
    must(quern_entity_create_many(small_world, &number, NULL, 1, 4000, NULL));
    quern_query *query = setup_query(small_world, (quern_term[]){quern_term_read(number)}, 1);
    failing_allocator_fail_from(memory, 1);
    for (uint32_t walk = 0; walk < 3; walk++)
        cr_assert_eq(iterate_rows(query), 4000u);
    cr_assert_eq(failing_allocator_failed_count(memory), 2u);
    failing_allocator_heal(memory);
    cr_assert_eq(iterate_rows(query), 4000u);
    quern_query_destroy(query);
    quern_world_destroy(small_world);
    failing_allocator_close(memory);
}

/* Starts an iteration over two chunks, calls `change`, and checks that the iteration ends. */
static void assert_change_ends_iteration(void (*change)(quern_entity entity))
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    change(it.view.entities[0]);
    refusal before = refusal_begin(world);
    cr_assert_not(quern_query_next(&it));
    cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED);
    cr_assert(refusal_has_message(&before));
    cr_assert_not(quern_query_next(&it), "once ended, it stays so");
    iterate_rows(query);
    quern_query_destroy(query);
}

static void change_by_create(quern_entity entity)
{
    setup_entity(world);
}

static void change_by_destroy(quern_entity entity)
{
    must(quern_entity_destroy(world, entity));
}

static void change_by_add(quern_entity entity)
{
    must(quern_entity_add(world, entity, frozen, NULL));
}

static void change_by_remove(quern_entity entity)
{
    must(quern_entity_remove(world, entity, position));
}

static void change_by_set_of_a_missing_one(quern_entity entity)
{
    uint64_t value = 1;
    must(quern_entity_set(world, entity, health, &value));
}

Test(query, structural_change_ends_the_iteration)
{
    create_of(1, 4000);
    assert_change_ends_iteration(change_by_create);
    assert_change_ends_iteration(change_by_destroy);
    assert_change_ends_iteration(change_by_add);
    assert_change_ends_iteration(change_by_remove);
    assert_change_ends_iteration(change_by_set_of_a_missing_one);
}

Test(query, new_values_and_refused_calls_do_not_end_the_iteration)
{
    create_of(1, 4000);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    uint64_t rows = 0;
    while (quern_query_next(&it)) {
        vec3 value = {1, 2, 3};
        must(quern_entity_set(world, it.view.entities[0], position, &value));
        cr_assert_neq(quern_entity_add(world, it.view.entities[0], position, &value), QUERN_OK);
        cr_assert_neq(quern_entity_destroy(world, quern_entity_null()), QUERN_OK);
        rows += it.view.count;
    }
    must(it.result);
    cr_assert_eq(rows, 4000u);
}

/* ------------------------------------------------------------------------------------------- access */

static quern_query_iterator first_view(quern_query *query)
{
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    return it;
}

/* Checks that the first refusal of an iteration was logged and, in builds with checks, passed to the assert
 * handler. */
static void assert_reported_once(void)
{
    cr_assert_eq(reports.log_count, 1u);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
    reports = (captured_reports){0};
}

/* Checks that the column is scratch memory, and that the message names the component and the declared access. */
static void assert_undeclared(const void *column, size_t size_bytes, const char *component_name)
{
    cr_assert(is_scratch(column, size_bytes));
    cr_assert_not_null(strstr(quern_error_message(), component_name), "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), "declared"), "%s", quern_error_message());
}

Test(query, undeclared_access_is_refused)
{
    create_of(1 | 2 | 4 | 8, 3);
    quern_term terms[] = {quern_term_read(position), quern_term_with(velocity),
                          quern_term_optional(health, QUERN_ACCESS_NONE), quern_term_with(frozen)};
    quern_query *query = setup_query(world, terms, 4);
    quern_query_iterator it = first_view(query);
    assert_undeclared(quern_view_write(&it.view, 0), 3 * sizeof(vec3), "position");
    assert_undeclared(quern_view_read(&it.view, 1), 3 * sizeof(vec3), "velocity");
    assert_undeclared(quern_view_write(&it.view, 1), 3 * sizeof(vec3), "velocity");
    assert_undeclared(quern_view_read(&it.view, 2), 3 * sizeof(vec3), "health");
    assert_undeclared(quern_view_write(&it.view, 3), 3 * sizeof(vec3), "frozen");
    assert_reported_once();
    cr_assert_not_null(quern_view_read(&it.view, 0));
    it = first_view(query);
    assert_undeclared(quern_view_write(&it.view, 0), 3 * sizeof(vec3), "position");
    assert_reported_once();
}

Test(query, term_index_out_of_range_is_refused)
{
    create_of(1, 3);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_write(position)}, 1);
    quern_query_iterator it = first_view(query);
    assert_undeclared(quern_view_read(&it.view, 1), 3 * sizeof(vec3), "position");
    assert_undeclared(quern_view_write(&it.view, UINT32_MAX), 3 * sizeof(vec3), "position");
    cr_assert_not(quern_view_has(&it.view, 1));
}

/* -------------------------------------------------------------------------------- columns of a C type */

typedef struct Speed {
    float x, y;
} Speed;

typedef struct Other {
    float x, y;
} Other;

static quern_query *speed_query(quern_term (*make)(quern_component component))
{
    quern_component speed;
    must(QUERN_COMPONENT_REGISTER(world, &speed, Speed));
    setup_entity_with(world, (quern_component[]){speed}, 1);
    return setup_query(world, (quern_term[]){make(speed)}, 1);
}

Test(query, typed_column_equals_the_column_of_the_view)
{
    quern_query *query = speed_query(quern_term_write);
    quern_query_iterator it = first_view(query);
    Speed *speed = QUERN_COLUMN(&it.view, 0, Speed);
    const Speed *read = QUERN_COLUMN(&it.view, 0, const Speed),
                *named = QUERN_COLUMN(&it.view, 0, struct Speed);
    cr_assert_not_null(speed);
    cr_assert(speed == quern_view_write(&it.view, 0) && speed == read && speed == named);
}

Test(query, non_const_column_requests_write_access)
{
    quern_query *query = speed_query(quern_term_read);
    quern_query_iterator it = first_view(query);
    cr_assert_not_null(QUERN_COLUMN(&it.view, 0, const Speed));
    assert_undeclared(QUERN_COLUMN(&it.view, 0, Speed), sizeof(Speed), "Speed");
    assert_undeclared(QUERN_COLUMN(&it.view, 1, const Speed), sizeof(Speed), "Speed");
}

static void assert_no_column(const void *column, const char *message)
{
    cr_assert(is_scratch(column, 4));
    cr_assert_not_null(strstr(quern_error_message(), message), "%s", quern_error_message());
}

Test(query, a_column_of_another_size_is_refused)
{
    quern_query *query = speed_query(quern_term_write);
    quern_query_iterator it = first_view(query);
    assert_no_column(QUERN_COLUMN(&it.view, 0, vec3),
                     "QUERN_COLUMN: an iteration asked for 'Speed', term 0, as vec3 of 12 bytes; its "
                     "values have 8");
    assert_no_column(QUERN_COLUMN(&it.view, 0, const float), "as const float of 4 bytes");
}

Test(query, a_column_of_another_name_is_refused_in_builds_with_checks)
{
    quern_query *query = speed_query(quern_term_write);
    quern_query_iterator it = first_view(query);
    if (quern_has_checks())
        assert_no_column(QUERN_COLUMN(&it.view, 0, const Other),
                         "'Speed', term 0, as const Other; it was registered as Speed");
    else
        cr_assert_not_null(QUERN_COLUMN(&it.view, 0, const Other));
}

Test(query, column_of_an_absent_component_is_null)
{
    create_of(1, 3);
    quern_term terms[] = {quern_term_read(position), quern_term_optional(health, QUERN_ACCESS_READ),
                          quern_term_optional(frozen, QUERN_ACCESS_READ)};
    quern_query *query = setup_query(world, terms, 3);
    quern_query_iterator it = first_view(query);
    cr_assert_null(QUERN_COLUMN(&it.view, 1, const uint64_t), "not there");
    cr_assert_eq(reports.log_count, 0u);
    assert_no_column(QUERN_COLUMN(&it.view, 1, const float), "'health', term 1, as const float of 4 bytes");
    assert_no_column(QUERN_COLUMN(&it.view, 2, const float), "its values have 0");
}

Test(query, typed_write_access_marks_the_chunk_as_changed)
{
    quern_query *query = speed_query(quern_term_write);
    quern_component speed = quern_component_find(world, "Speed");
    quern_term changed[] = {quern_term_changed(quern_term_read(speed))};
    quern_query *watch = setup_query(world, changed, 1);
    quern_query_iterator it = quern_query_iterate(watch);
    cr_assert(quern_query_next(&it));
    it = quern_query_iterate(watch);
    cr_assert_not(quern_query_next(&it));
    it = first_view(query);
    cr_assert_not_null(QUERN_COLUMN(&it.view, 0, Speed));
    it = quern_query_iterate(watch);
    cr_assert(quern_query_next(&it));
}

/* -------------------------------------------------------------------------------------- definitions */

static quern_result try_query(const quern_term *terms, uint32_t term_count)
{
    quern_query_def def = {0};
    for (uint32_t i = 0; i < term_count; i++)
        def.terms[i] = terms[i];
    quern_query *query = NULL;
    return quern_query_create(world, &def, &query);
}

static quern_result try_term(quern_term term)
{
    return try_query(&term, 1);
}

Test(query, bad_terms_are_refused)
{
    quern_term twice[] = {quern_term_read(position), quern_term_without(position)};
    quern_term foreign = quern_term_read(component_of_other_world(position));
    quern_term unregistered = quern_term_read(component_unregistered(position));
    must_refuse(DUPLICATE_COMPONENT, world, try_query(twice, 2));
    must_refuse(UNKNOWN_COMPONENT, world, try_term(foreign));
    must_refuse(UNKNOWN_COMPONENT, world, try_term(unregistered));
    must_refuse(UNKNOWN_COMPONENT, world, try_term(quern_term_read((quern_component){0})));
    must_refuse(INVALID_ARGUMENT, world,
                try_term(quern_term_make(position, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE_CONCURRENT)));
    must_refuse(INVALID_ARGUMENT, world,
                try_term(quern_term_make(position, (quern_match)9, QUERN_ACCESS_READ)));
    must_refuse(INVALID_ARGUMENT, world,
                try_term(quern_term_make(position, QUERN_MATCH_ALL, (quern_access)9)));
    must_refuse(INVALID_ARGUMENT, world,
                try_term(quern_term_make(position, QUERN_MATCH_NONE, QUERN_ACCESS_READ)));
}

Test(query, bad_definitions_are_refused)
{
    const quern_query_def nothing = {0}, good = {.terms = {quern_term_read(position)}};
    quern_query_def gap = good;
    gap.terms[2] = quern_term_read(velocity);
    quern_query *query = NULL;
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &nothing, &query));
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &gap, &query));
    cr_assert_not_null(strstr(quern_error_message(),
                              "term 1 is zero, which ends the list, but term 2 is set: leave no gap"));
    quern_query_def unnamed = good;
    unnamed.name = "";
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &unnamed, &query));
    must_refuse(NULL_ARGUMENT, world, quern_query_create(NULL, &good, &query));
    must_refuse(NULL_ARGUMENT, world, quern_query_create(world, NULL, &query));
    must_refuse(NULL_ARGUMENT, world, quern_query_create(world, &good, NULL));
    cr_assert_null(query);
}

Test(query, a_term_that_names_no_component_does_not_end_the_list)
{
    quern_term terms[] = {quern_term_read(position), quern_term_without((quern_component){0}),
                          quern_term_read(velocity)};
    must_refuse(UNKNOWN_COMPONENT, world, try_query(terms, 3));
    cr_assert_not_null(
        strstr(quern_error_message(), "quern_query_create: term 1 names no component: was it registered?"));
}

Test(query, term_without_match_requires_the_component)
{
    setup_entity_with(world, (quern_component[]){position}, 1);
    setup_entity_with(world, (quern_component[]){velocity}, 1);
    quern_query *query =
        setup_query(world, &(quern_term){.component = position, .access = QUERN_ACCESS_READ}, 1);
    cr_assert_eq(quern_query_count(query), 1u);
}

Test(query, entities_match_while_they_live)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(frozen)}, 1);
    const quern_entity entity = setup_entity_with(world, &frozen, 1), other = setup_entity(world);
    cr_assert(quern_query_matches(query, entity) && !quern_query_matches(query, other));
    must(quern_entity_destroy(world, entity));
    cr_assert_not(quern_query_matches(query, entity));
    cr_assert_not(quern_query_matches(query, quern_entity_null()));
    quern_query_destroy(query);
}

Test(query, null_queries_are_refused)
{
    quern_query_destroy(NULL);
    assert_refused_value(world, quern_query_count(NULL));
    quern_query_iterator it = quern_query_iterate(NULL);
    cr_assert_eq(it.result, QUERN_ERROR_NULL_ARGUMENT);
    assert_refused_value(world, quern_query_next(NULL));
    cr_assert_not(quern_query_next(&it));
}

Test(query, thirty_two_terms_are_accepted)
{
    quern_term terms[QUERN_MAX_TERMS];
    quern_component components[QUERN_MAX_TERMS];
    char name[] = "c00";
    for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++) {
        name[1] = (char)('0' + i / 10);
        name[2] = (char)('0' + i % 10);
        components[i] = setup_component(world, name, 4, 4);
        terms[i] = quern_term_write(components[i]);
    }
    setup_entity_with(world, components, QUERN_MAX_TERMS);
    quern_query *query = setup_query(world, terms, QUERN_MAX_TERMS);
    quern_query_iterator it = first_view(query);
    for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++)
        cr_assert_eq(quern_view_write(&it.view, i),
                     quern_entity_get(world, it.view.entities[0], components[i]));
    cr_assert_eq(quern_query_count(query), 1u);
}

Test(query, the_terms_are_copied)
{
    create_of(1, 3);
    quern_term terms[] = {quern_term_read(position)};
    quern_query *query = setup_query(world, terms, 1);
    terms[0] = quern_term_read(velocity);
    cr_assert_eq(iterate_rows(query), 3u);
}
