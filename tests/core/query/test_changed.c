/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Change filters in queries outside of systems. */

enum { ROWS = 3000 };

static quern_component number, other, tag;
static quern_entity entities[ROWS];
static captured_reports reports;

/* Entities with a number and another component, in several chunks, in the order of the list. */
static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    tag = setup_tag(world, "tag");
    quern_component set[] = {number, other};
    for (uint32_t i = 0; i < ROWS; i++)
        entities[i] = setup_entity_with(world, set, 2);
    capture_reports(&reports);
}

TestSuite(changed, .init = open_world, .fini = close_world);

static quern_query *query_changed(quern_component component)
{
    quern_term term = quern_term_changed(quern_term_read(component));
    return setup_query(world, &term, 1);
}

static bool shows(quern_query *query, quern_entity entity)
{
    bool shown = false;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++)
            shown |= quern_entity_equal(it.view.entities[i], entity);
    return shown;
}

/* Returns the number of rows in the chunk of entities[0]. */
static uint32_t first_chunk_count(void)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    uint32_t count = it.view.count;
    quern_query_destroy(query);
    cr_assert_lt(count, (uint32_t)ROWS);
    return count;
}

Test(changed, first_iteration_visits_all_chunks_and_the_next_none)
{
    quern_query *query = query_changed(number);
    cr_assert_eq(iterate_rows(query), ROWS);
    cr_assert_eq(iterate_rows(query), 0u);
    cr_assert_eq(quern_query_count(query), ROWS, "counting pays no heed to filters");
}

Test(changed, setting_a_value_marks_only_its_chunk_as_changed)
{
    quern_query *query = query_changed(number), *other_query = query_changed(other);
    iterate_rows(query);
    iterate_rows(other_query);
    uint64_t value = 7;
    must(quern_entity_set(world, entities[0], number, &value));
    cr_assert_eq(iterate_rows(query), first_chunk_count());
    cr_assert_eq(iterate_rows(query), 0u);
    cr_assert_eq(iterate_rows(other_query), 0u, "another component");
}

Test(changed, writing_through_a_view_is_new_to_other_queries_but_not_to_the_writer)
{
    quern_query *watcher = query_changed(number);
    quern_term term = quern_term_changed(quern_term_write(number));
    quern_query *writer = setup_query(world, &term, 1);
    iterate_rows(watcher);
    quern_query_iterator it = quern_query_iterate(writer);
    cr_assert(quern_query_next(&it));
    uint64_t *numbers = quern_view_write(&it.view, 0);
    numbers[0]++;
    uint32_t written = it.view.count;
    while (quern_query_next(&it))
        cr_assert_not_null(quern_view_read(&it.view, 0), "reading is no change");
    cr_assert_eq(iterate_rows(watcher), written);
    cr_assert_eq(iterate_rows(writer), 0u);
}

/* Iterates over the watching query while a loop of the writer is at a view; that view is written afterwards. */
static void look_before_write(quern_query *writer)
{
    quern_query *watcher = query_changed(number);
    for (uint32_t i = 0; i < 3; i++) { /* from the second iteration on, the query uses its list of chunks */
        must(quern_entity_mark_changed(world, entities[0], number));
        quern_query_iterator it = quern_query_iterate(writer);
        cr_assert(quern_query_next(&it));
        iterate_rows(watcher);
        cr_assert_not_null(quern_view_write(&it.view, 0));
        while (quern_query_next(&it))
            ;
        cr_assert_eq(iterate_rows(watcher), first_chunk_count(), "it was written after the look");
        cr_assert_eq(iterate_rows(watcher), 0u);
    }
    quern_query_destroy(watcher);
    quern_query_destroy(writer);
}

Test(changed, write_after_a_nested_iteration_is_new_to_that_query)
{
    look_before_write(setup_query(world, (quern_term[]){quern_term_write(number)}, 1));
}

Test(changed, filtered_write_after_a_nested_iteration_is_new_to_that_query)
{
    quern_term term = quern_term_changed(quern_term_write(number));
    look_before_write(setup_query(world, &term, 1));
}

Test(changed, running_iteration_reports_writes_to_a_filter_created_meanwhile)
{
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    iterate_rows(writer); /* the second iteration over one structure builds the list of chunks */
    iterate_rows(writer);
    quern_query_iterator it = quern_query_iterate(writer);
    cr_assert(quern_query_next(&it));
    quern_query *watcher = query_changed(number);
    iterate_rows(watcher);
    uint64_t written = 0;
    while (quern_query_next(&it)) {
        cr_assert_not_null(quern_view_write(&it.view, 0));
        written += it.view.count;
    }
    must(it.result);
    cr_assert_eq(iterate_rows(watcher), written);
}

Test(changed, writes_without_change_tracking_are_not_reported)
{
    quern_query *watcher = query_changed(number);
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(other)}, 1);
    const quern_entity lone = setup_entity_with(world, &other, 1);
    iterate_rows(watcher);
    for (uint32_t i = 0; i < 3; i++) { /* from the second iteration on, the query uses its list of chunks */
        uint32_t written = 0;
        quern_query_iterator it = quern_query_iterate(writer);
        while (quern_query_next(&it))
            if (quern_entity_equal(it.view.entities[0], lone))
                written += quern_view_write(&it.view, 0) != NULL;
        must(it.result);
        cr_assert_eq(written, 1u);
        cr_assert_eq(iterate_rows(watcher), 0u);
    }
}

Test(changed, created_and_moved_entities_mark_their_chunks_as_changed)
{
    quern_query *query = query_changed(number);
    iterate_rows(query);
    quern_component set[] = {number, other};
    quern_entity fresh = setup_entity_with(world, set, 2);
    cr_assert(shows(query, fresh));
    cr_assert_eq(iterate_rows(query), 0u);
    must(quern_entity_destroy(world, entities[0])); /* the last entity moves into the first chunk */
    cr_assert(shows(query, fresh), "it has moved to a chunk that was not visited");
    must(quern_entity_add(world, entities[5], tag, NULL));
    cr_assert(shows(query, entities[5]));
    must(quern_entity_remove(world, entities[5], tag));
    cr_assert(shows(query, entities[5]));
    must(quern_entity_create_many(world, set, NULL, 2, 10, NULL));
    cr_assert_gt(iterate_rows(query), 9u);
}

Test(changed, writes_through_a_pointer_must_be_marked_by_the_caller)
{
    quern_query *query = query_changed(number);
    iterate_rows(query);
    *(uint64_t *)quern_entity_get(world, entities[1], number) = 3;
    cr_assert_eq(iterate_rows(query), 0u);
    must(quern_entity_mark_changed(world, entities[1], number));
    cr_assert(shows(query, entities[1]));
    must(quern_entity_mark_changed(world, entities[1], other));
    cr_assert_eq(iterate_rows(query), 0u);
    must_refuse(COMPONENT_ABSENT, world, quern_entity_mark_changed(world, entities[1], tag));
    must_refuse(NULL_ENTITY, world, quern_entity_mark_changed(world, (quern_entity){0}, number));
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_mark_changed(NULL, entities[1], number));
}

Test(changed, several_filters_select_rows_that_pass_any_of_them)
{
    quern_term terms[] = {quern_term_changed(quern_term_read(number)),
                          quern_term_changed(quern_term_optional(other, QUERN_ACCESS_NONE))};
    quern_query *query = setup_query(world, terms, 2);
    iterate_rows(query);
    uint64_t value = 1;
    must(quern_entity_set(world, entities[0], other, &value));
    cr_assert_eq(iterate_rows(query), first_chunk_count());
    must(quern_entity_set(world, entities[0], number, &value));
    cr_assert_eq(iterate_rows(query), first_chunk_count());
}

Test(changed, absent_optional_component_counts_as_unchanged)
{
    quern_entity alone = setup_entity_with(world, &number, 1);
    quern_term terms[] = {quern_term_read(number),
                          quern_term_changed(quern_term_optional(other, QUERN_ACCESS_READ))};
    quern_query *query = setup_query(world, terms, 2);
    cr_assert_not(shows(query, alone));
}

Test(changed, tag_changes_when_its_entities_do)
{
    quern_query *query = query_changed(tag);
    cr_assert_eq(iterate_rows(query), 0u);
    must(quern_entity_add(world, entities[9], tag, NULL));
    cr_assert_eq(iterate_rows(query), 1u);
    cr_assert_eq(iterate_rows(query), 0u);
}

Test(changed, bulk_calls_ignore_change_filters)
{
    quern_query *query = query_changed(number);
    iterate_rows(query);
    uint64_t count = 0;
    must(quern_entity_add_matching(query, tag, NULL, &count));
    cr_assert_eq(count, ROWS);
    cr_assert_eq(iterate_rows(query), ROWS, "they have come to other chunks");
    must(quern_entity_mark_changed(world, entities[0], tag));
    cr_assert_eq(iterate_rows(query), 0u, "a tag has nothing that could change");
    must(quern_entity_destroy_matching(query, &count));
    cr_assert_eq(count, ROWS);
}

Test(changed, each_query_has_its_own_seen_version)
{
    quern_query *first = query_changed(number), *second = query_changed(number);
    iterate_rows(first);
    cr_assert_eq(iterate_rows(second), ROWS);
    quern_query_destroy(first);
    uint64_t value = 1;
    must(quern_entity_set(world, entities[2], number, &value));
    cr_assert(shows(second, entities[2]), "another query's end changes nothing");
}

Test(changed, excluded_component_cannot_have_a_change_filter)
{
    quern_query_def def = {.terms = {quern_term_read(number), quern_term_changed(quern_term_without(tag))}};
    quern_query *query;
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
}

/* ------------------------------------------------------------------------------------ random programs */

/* Entities whose number was written, or which were created or moved, since the last iteration. */
static bool is_new[ROWS], is_alive[ROWS];
static uint32_t place_of[2 * ROWS]; /* index in the list, by slot */

static void act(random_source *random, uint32_t i)
{
    uint64_t value = random_next(random);
    switch (is_alive[i] ? random_below(random, 5) : 5) {
    case 0:
        must(quern_entity_set(world, entities[i], number, &value));
        break;
    case 1:
        must(quern_entity_destroy(world, entities[i]));
        is_alive[i] = false;
        break;
    case 2:
        if (quern_entity_has(world, entities[i], tag))
            must(quern_entity_remove(world, entities[i], tag));
        else
            must(quern_entity_add(world, entities[i], tag, NULL));
        break;
    case 3:
        must(quern_entity_set(world, entities[i], other, &value));
        return;
    case 4:
        must(quern_entity_mark_changed(world, entities[i], number));
        break;
    default:
        entities[i] = setup_entity_with(world, (quern_component[]){number, other}, 2);
        place_of[quern_entity_index(entities[i])] = i;
        is_alive[i] = true;
        break;
    }
    is_new[i] = is_alive[i];
}

/* Checks that the query visits at least all changed entities. Returns the number of visited rows. */
static uint64_t check_look(quern_query *query)
{
    uint64_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        count += it.view.count;
        for (uint32_t i = 0; i < it.view.count; i++)
            is_new[place_of[quern_entity_index(it.view.entities[i])]] = false;
    }
    must(it.result);
    for (uint32_t i = 0; i < ROWS; i++)
        cr_assert_not(is_new[i], "entity %u has changed and was not shown", i);
    return count;
}

static void play(uint64_t seed)
{
    random_source random = {seed};
    quern_query *query = query_changed(number);
    for (uint32_t i = 0; i < ROWS; i++) {
        is_alive[i] = true;
        place_of[quern_entity_index(entities[i])] = i;
    }
    uint64_t shown = iterate_rows(query), looks = 1;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t count = random_below(&random, 4);
        for (uint32_t k = 0; k < count; k++)
            act(&random, random_below(&random, ROWS));
        shown += check_look(query);
        looks++;
    }
    cr_assert_lt(shown, looks * ROWS / 4, "most of the world was shown each time");
    quern_query_destroy(query);
}

Test(changed, random_changes_are_always_visited)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        close_world();
        open_world();
        play(seed);
    }
}

/* ----------------------------------------------------------------------------------------- memory */

/* Creates and destroys queries with filters, and creates entities, while one allocation fails. Returns whether all calls
 * succeeded. */
static bool survives(failing_allocator *memory, uint64_t call)
{
    failing_allocator_fail_at(memory, call);
    quern_query_def def = {
        .terms = {quern_term_changed(quern_term_read(number)), quern_term_changed(quern_term_with(tag))}};
    quern_query *query = NULL;
    quern_component set[] = {number, tag};
    quern_result created = quern_query_create(world, &def, &query);
    quern_result added = quern_entity_create_many(world, set, NULL, 2, 5000, NULL);
    bool reached = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(reached, created != QUERN_OK || added != QUERN_OK);
    assert_valid(world);
    if (created == QUERN_OK) {
        uint64_t count = iterate_rows(query);
        cr_assert_eq(count, added == QUERN_OK ? 5000u : 0u);
        quern_query_destroy(query);
    }
    return reached;
}

Test(changed, out_of_memory_is_reported_and_loses_no_change)
{
    quern_world_destroy(world);
    uint64_t call = 1;
    bool goes_on = true;
    for (; goes_on; call++) {
        failing_allocator *memory = failing_allocator_create();
        world = make_world(.allocator = failing_allocator_interface(memory));
        number = setup_component(world, "number", 8, 8);
        tag = setup_tag(world, "tag");
        quern_component set[] = {number, tag};
        setup_entity_with(world, set, 2); /* an archetype that exists before the filter */
        quern_query *all = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
        must(quern_entity_destroy_matching(all, NULL));
        quern_query_destroy(all);
        goes_on = survives(memory, call);
        quern_world_destroy(world);
        failing_allocator_destroy(memory);
    }
    cr_assert_gt(call, 5u);
    world = setup_world();
}
