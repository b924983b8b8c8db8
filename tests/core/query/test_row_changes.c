/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <criterion/criterion.h>

#include <quern/bulk.h>
#include <quern/commands.h>
#include <quern/getter.h>
#include <quern/parallel.h>
#include <quern/prefab.h>

#include <string.h>

/* Filters on components whose changes are known by row: exactly these rows come to the views of a query. */

enum { ROWS = 1500, MAX_ROWS = 3 * ROWS };

static quern_world *world;
static quern_component number, other, flag; /* with row_changes; the first and the last can be disabled */
static quern_component plain, tag;          /* without */
static quern_entity entities[ROWS];
static captured_reports reports;

static quern_component component_by_row(const char *name, uint32_t size_bytes, bool can_disable)
{
    quern_component component;
    const quern_component_def def = {.name = name,
                                     .size_bytes = size_bytes,
                                     .alignment_bytes = size_bytes > 0 ? 8 : 1,
                                     .can_disable = can_disable,
                                     .row_changes = true};
    must(quern_component_register(world, &def, &component));
    return component;
}

static void register_components(void)
{
    number = component_by_row("number", 8, true);
    other = component_by_row("other", 8, false);
    flag = component_by_row("flag", 0, true);
    plain = setup_component(world, "plain", 8, 8);
    tag = setup_tag(world, "tag");
}

/* In several chunks, in the order of the list. */
static void open_world(void)
{
    world = setup_world();
    register_components();
    const quern_component set[] = {number, other, plain};
    for (uint32_t i = 0; i < ROWS; i++)
        entities[i] = setup_entity_with(world, set, 3);
    capture_reports(&reports);
}

static void close_world(void)
{
    quern_world_destroy(world);
}

TestSuite(row_changes, .init = open_world, .fini = close_world);

static quern_query *query_changed(quern_component component)
{
    quern_term term = quern_term_changed(quern_term_with(component));
    return setup_query(world, &term, 1);
}

/* How many rows come to view; shown gets their handles in order, or is NULL. The walk is over. */
static uint32_t list_shown(quern_query *query, quern_entity *shown)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        quern_run run = {0};
        for (; quern_view_next_run(&it.view, &run); count += run.count)
            if (shown != NULL)
                memcpy(shown + count, it.view.entities + run.first, run.count * sizeof *shown);
    }
    must(it.result);
    return count;
}

static uint32_t look(quern_query *query)
{
    return list_shown(query, NULL);
}

/* Just this entity has changed. */
static bool shows_only(quern_query *query, quern_entity entity)
{
    static quern_entity shown[MAX_ROWS];
    return list_shown(query, shown) == 1 && quern_entity_equal(shown[0], entity);
}

Test(row_changes, the_first_look_shows_everything_and_the_next_nothing)
{
    quern_query *query = query_changed(number);
    cr_assert_eq(look(query), ROWS);
    cr_assert_eq(look(query), 0u);
    cr_assert_eq(quern_query_count(query), ROWS, "counting pays no heed to filters");
    quern_query_destroy(query);
    query = query_changed(number);
    cr_assert_eq(look(query), ROWS, "a new filter has seen nothing, whoever looked before");
    quern_query_destroy(query);
}

Test(row_changes, a_value_that_is_set_shows_its_row_alone)
{
    quern_query *query = query_changed(number), *other_query = query_changed(other);
    look(query);
    look(other_query);
    uint64_t value = 7;
    must(quern_entity_set(world, entities[700], number, &value));
    cr_assert(shows_only(query, entities[700]));
    cr_assert_eq(look(query), 0u);
    cr_assert_eq(look(other_query), 0u);
    must(quern_entity_mark_changed(world, entities[0], number));
    cr_assert(shows_only(query, entities[0]));
    must(quern_entity_mark_changed(world, entities[ROWS - 1], other));
    cr_assert(shows_only(other_query, entities[ROWS - 1]));
    cr_assert_eq(look(query), 0u);
    quern_query_destroy(query);
    quern_query_destroy(other_query);
}

Test(row_changes, rows_come_as_runs_or_all_in_one_view)
{
    const quern_query_def def = {.terms = {quern_term_changed(quern_term_read(number))}, .by_runs = true};
    quern_query *query = query_changed(number), *by_runs;
    must(quern_query_create(world, &def, &by_runs));
    look(query);
    look(by_runs);
    static const uint32_t changed[] = {3, 4, 5, 63, 64, 65, 127, 200};
    for (uint32_t i = 0; i < 8; i++)
        must(quern_entity_mark_changed(world, entities[changed[i]], number));
    static const uint32_t firsts[] = {3, 63, 127, 200}, counts[] = {3, 3, 1, 1};
    quern_query_iterator it = quern_query_iterate(query);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(quern_query_next(&it));
        cr_assert_eq(it.view.entities[0].bits, entities[firsts[i]].bits);
        cr_assert_eq(it.view.count, counts[i]);
        cr_assert_eq(it.view.ordinal, 0u, "runs of a chunk share the ordinal");
    }
    cr_assert_not(quern_query_next(&it));
    it = quern_query_iterate(by_runs);
    cr_assert(quern_query_next(&it));
    cr_assert_gt(it.view.count, 200u);
    quern_run run = {0};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(quern_view_next_run(&it.view, &run));
        cr_assert_eq(run.first, firsts[i]);
        cr_assert_eq(run.count, counts[i]);
    }
    cr_assert_not(quern_view_next_run(&it.view, &run));
    cr_assert_not(quern_query_next(&it));
    quern_query_destroy(query);
    quern_query_destroy(by_runs);
}

Test(row_changes, entities_that_come_are_shown_and_those_that_move_are_not)
{
    quern_query *query = query_changed(number);
    look(query);
    const quern_component set[] = {number, other};
    const quern_entity fresh = setup_entity_with(world, set, 2);
    cr_assert(shows_only(query, fresh));
    must(quern_entity_destroy(world, entities[0]));
    cr_assert_eq(look(query), 0u, "the last one has moved into the gap");
    must(quern_entity_add(world, entities[5], tag, NULL));
    cr_assert_eq(look(query), 0u, "the value came along");
    must(quern_entity_mark_changed(world, entities[5], number));
    must(quern_entity_remove(world, entities[5], tag));
    cr_assert(shows_only(query, entities[5]), "and what was to be said of it, too");
    must(quern_entity_remove(world, entities[7], number));
    cr_assert_eq(look(query), 0u);
    must(quern_entity_add(world, entities[7], number, NULL));
    cr_assert(shows_only(query, entities[7]));
    must(quern_entity_create_many(world, set, NULL, 2, 700, NULL));
    cr_assert_eq(look(query), 700u);
    quern_query *all = setup_query(world, (quern_term[]){quern_term_with(plain)}, 1);
    must(quern_entity_add_matching(all, tag, NULL, NULL));
    cr_assert_eq(look(query), 0u);
    must(quern_entity_remove_matching(all, number, NULL));
    must(quern_entity_add_matching(all, number, NULL, NULL));
    cr_assert_eq(look(query), ROWS - 1u);
    quern_query_destroy(all);
    quern_query_destroy(query);
}

/* Asks for a column to write, in the first view of a query. */
static quern_query_iterator first_view(quern_query *query)
{
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    return it;
}

Test(row_changes, writing_a_column_changes_all_rows_of_the_view)
{
    quern_query *watcher = query_changed(number);
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    look(watcher);
    quern_query_iterator it = first_view(writer);
    const uint32_t count = it.view.count;
    cr_assert_lt(count, (uint32_t)ROWS);
    cr_assert_not_null(quern_view_write(&it.view, 0));
    cr_assert_eq(look(watcher), count);
    cr_assert_not_null(QUERN_COLUMN(&it.view, 0, uint64_t));
    cr_assert_eq(look(watcher), count);
    cr_assert_not_null(QUERN_COLUMN(&it.view, 0, const uint64_t));
    cr_assert_eq(look(watcher), 0u);
    quern_query_destroy(watcher);
    quern_query_destroy(writer);
}

Test(row_changes, where_rows_are_left_out_the_others_are_written)
{
    const quern_query_def def = {.terms = {quern_term_write(number)}, .by_runs = true};
    quern_query *watcher = query_changed(other), *by_row, *by_runs;
    quern_query *disabled =
        setup_query(world, (quern_term[]){quern_term_if_disabled(quern_term_write(number))}, 1);
    quern_query *either = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_with(number)))}, 1);
    by_row = setup_query(world, def.terms, 1);
    must(quern_query_create(world, &def, &by_runs));
    for (uint32_t i = 0; i < ROWS; i += 3)
        must(quern_entity_enable(world, entities[i], number, false));
    quern_query *writers[] = {by_row, by_runs, disabled};
    look(watcher);
    for (uint32_t k = 0; k < 3; k++) {
        look(either);
        quern_query_iterator it = quern_query_iterate(writers[k]);
        while (quern_query_next(&it))
            cr_assert_not_null(quern_view_write(&it.view, 0));
        cr_assert_eq(look(either), writers[k] == disabled ? (ROWS + 2u) / 3 : (uint32_t)ROWS / 3 * 2);
    }
    cr_assert_eq(look(watcher), 0u);
    quern_query_destroy(watcher);
    quern_query_destroy(disabled);
    quern_query_destroy(either);
    quern_query_destroy(by_row);
    quern_query_destroy(by_runs);
}

Test(row_changes, rows_are_marked_one_by_one)
{
    const quern_term terms[] = {quern_term_write(number), quern_term_write(plain), quern_term_read(other)};
    quern_query *watcher = query_changed(number), *by_chunk = query_changed(plain);
    quern_query *writer = setup_query(world, terms, 3);
    look(watcher);
    look(by_chunk);
    quern_query_iterator it = first_view(writer);
    const uint32_t count = it.view.count;
    uint64_t *numbers = QUERN_COLUMN_ROWS(&it.view, 0, uint64_t);
    cr_assert_eq(numbers, quern_view_write_rows(&it.view, 0));
    cr_assert_not_null(quern_view_write_rows(&it.view, 1));
    cr_assert_eq(look(watcher), 0u);
    cr_assert_eq(look(by_chunk), 0u);
    numbers[17] = 1;
    cr_assert(quern_view_mark_row(&it.view, 0, 17));
    cr_assert(shows_only(watcher, entities[17]));
    cr_assert_eq(look(by_chunk), 0u);
    cr_assert(quern_view_mark_row(&it.view, 1, 17));
    cr_assert_eq(look(by_chunk), count, "changes of this one are known by chunk");
    cr_assert_eq(look(watcher), 0u);
    assert_refused_value(world, quern_view_mark_row(&it.view, 0, count));
    assert_refused_value(world, quern_view_mark_row(&it.view, 2, 0));
    assert_refused_value(world, quern_view_mark_row(&it.view, 3, 0));
    const size_t column_bytes = it.view.count * sizeof(uint64_t);
    assert_refused_value(world, !is_scratch(quern_view_write_rows(&it.view, 2), column_bytes));
    assert_refused_value(world, !is_scratch(quern_view_write_rows(&it.view, 3), column_bytes));
    assert_refused_value(world, QUERN_COLUMN_ROWS(&it.view, 2, uint64_t) == numbers);
    assert_refused_value(world, !is_scratch(QUERN_COLUMN_ROWS(&it.view, 0, uint32_t), column_bytes / 2));
    cr_assert_eq(look(watcher), 0u);
    quern_query_destroy(watcher);
    quern_query_destroy(by_chunk);
    quern_query_destroy(writer);
}

Test(row_changes, a_row_that_lacks_the_component_cannot_be_marked)
{
    const quern_term terms[] = {quern_term_with(tag), quern_term_optional(number, QUERN_WRITE),
                                quern_term_optional(flag, QUERN_WRITE)};
    setup_entity_with(world, (quern_component[]){tag, flag}, 2);
    quern_query *writer = setup_query(world, terms, 3), *watcher = query_changed(flag);
    look(watcher);
    quern_query_iterator it = first_view(writer);
    cr_assert_null(quern_view_write_rows(&it.view, 1));
    assert_refused_value(world, quern_view_mark_row(&it.view, 1, 0));
    cr_assert(quern_view_mark_row(&it.view, 2, 0), "a tag that somebody writes");
    cr_assert_eq(look(watcher), 1u);
    quern_query_destroy(writer);
    quern_query_destroy(watcher);
}

Test(row_changes, pointers_to_write_change_their_rows)
{
    const quern_getter_def def = {.component = number, .refs = true};
    quern_query *query = query_changed(number);
    quern_getter *getter;
    must(quern_getter_create(world, &def, &getter));
    look(query);
    quern_ref ref = {.entity = entities[9]};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_not_null(quern_ref_get_write(getter, &ref));
        cr_assert(shows_only(query, entities[9]));
    }
    cr_assert_not_null(quern_ref_get(getter, &ref));
    cr_assert_not_null(quern_getter_get(getter, entities[1]));
    cr_assert_not_null(quern_entity_get(world, entities[1], number));
    cr_assert_eq(look(query), 0u);
    cr_assert_not_null(quern_getter_get_write(getter, entities[1000]));
    cr_assert(shows_only(query, entities[1000]));
    void *values[2];
    cr_assert_eq(
        quern_getter_get_many_write(getter, (quern_entity[]){entities[2], entities[1400]}, 2, values), 2u);
    cr_assert_eq(look(query), 2u);
    quern_getter_destroy(getter);
    quern_query_destroy(query);
}

Test(row_changes, a_switch_is_a_change)
{
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_with(number)))}, 1);
    quern_query *enabled = query_changed(number), *by_chunk = query_changed(plain);
    look(query);
    look(enabled);
    look(by_chunk);
    must(quern_entity_enable(world, entities[3], number, false));
    cr_assert(shows_only(query, entities[3]));
    cr_assert_eq(look(enabled), 0u);
    must(quern_entity_enable(world, entities[3], number, true));
    cr_assert(shows_only(enabled, entities[3]));
    cr_assert(shows_only(query, entities[3]));
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_enable(&it.view, 0, 8, false));
    cr_assert(shows_only(query, entities[8]));
    cr_assert_eq(look(by_chunk), 0u);
    quern_query_destroy(writer);
    quern_query_destroy(query);
    quern_query_destroy(enabled);
    quern_query_destroy(by_chunk);
}

/* Enabling what is enabled is a change, by whatever call; a tag that is set again is none. */
Test(row_changes, what_makes_no_difference_may_be_a_change_all_the_same)
{
    quern_query *query = query_changed(number), *flags = query_changed(flag);
    must(quern_entity_add(world, entities[5], flag, NULL));
    look(query);
    look(flags);
    must(quern_entity_enable(world, entities[3], number, true));
    cr_assert(shows_only(query, entities[3]));
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_enable(commands, entities[6], number, true));
    must(quern_world_flush(world));
    cr_assert(shows_only(query, entities[6]));
    must(quern_entity_enable_many(world, &entities[9], 1, number, true));
    cr_assert(shows_only(query, entities[9]));
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_enable(&it.view, 0, 8, true));
    cr_assert(shows_only(query, it.view.entities[8]), "one row, not all of the view");
    must(quern_entity_enable(world, entities[5], flag, true));
    cr_assert(shows_only(flags, entities[5]));
    must(quern_commands_add(quern_world_commands(world), entities[5], flag, NULL));
    must(quern_commands_set(quern_world_commands(world), entities[5], flag, NULL));
    must(quern_world_flush(world));
    cr_assert_eq(look(flags), 0u, "the tag is there already");
    quern_query_destroy(writer);
    quern_query_destroy(query);
    quern_query_destroy(flags);
}

Test(row_changes, a_tag_changes_when_it_is_added_or_switched)
{
    quern_query *query = query_changed(flag);
    quern_query *either =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_with(flag)))}, 1);
    cr_assert_eq(look(query), 0u);
    for (uint32_t i = 0; i < 100; i++)
        must(quern_entity_add(world, entities[i], flag, NULL));
    cr_assert_eq(look(query), 100u);
    cr_assert_eq(look(either), 100u);
    must(quern_entity_add(world, entities[500], flag, NULL));
    cr_assert(shows_only(query, entities[500]));
    must(quern_entity_mark_changed(world, entities[0], flag));
    must(quern_entity_add(world, entities[7], tag, NULL));
    cr_assert_eq(look(query), 0u);
    look(either);
    must(quern_entity_enable(world, entities[20], flag, false));
    cr_assert_eq(look(query), 0u, "it has changed, and is left out");
    cr_assert(shows_only(either, entities[20]));
    quern_query_destroy(query);
    quern_query_destroy(either);
}

Test(row_changes, switching_a_tag_changes_nothing_else_of_its_chunk)
{
    quern_query *by_chunk = query_changed(plain);
    must(quern_entity_add(world, entities[0], flag, NULL));
    look(by_chunk);
    must(quern_entity_enable(world, entities[0], flag, false));
    cr_assert_eq(look(by_chunk), 0u);
    quern_query *writer = setup_query(
        world, (quern_term[]){quern_term_either(quern_term_make(flag, QUERN_MATCH_ALL, QUERN_WRITE))}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_enable(&it.view, 0, 0, true));
    cr_assert_eq(look(by_chunk), 0u, "a system with this filter may run at the same time");
    quern_query_destroy(writer);
    quern_query_destroy(by_chunk);
}

Test(row_changes, several_filters_let_pass_what_passes_one)
{
    const quern_term both[] = {quern_term_changed(quern_term_read(number)),
                               quern_term_changed(quern_term_optional(other, QUERN_READ))};
    const quern_term mixed[] = {quern_term_changed(quern_term_read(number)),
                                quern_term_changed(quern_term_read(plain))};
    quern_query *by_row = setup_query(world, both, 2), *by_either = setup_query(world, mixed, 2);
    look(by_row);
    look(by_either);
    must(quern_entity_mark_changed(world, entities[0], number));
    must(quern_entity_mark_changed(world, entities[1], other));
    cr_assert_eq(look(by_row), 2u);
    cr_assert(shows_only(by_either, entities[0]));
    quern_query_iterator it =
        first_view(by_row = (quern_query_destroy(by_row), setup_query(world, both, 2)));
    const uint32_t chunk_count = it.view.count;
    must(quern_entity_mark_changed(world, entities[0], plain));
    cr_assert_eq(look(by_either), chunk_count, "one by chunk lets the chunk pass");
    const quern_entity alone = setup_entity_with(world, &number, 1);
    quern_query_iterator rest = quern_query_iterate(by_row);
    while (quern_query_next(&rest))
        ;
    must(quern_entity_mark_changed(world, alone, number));
    cr_assert(shows_only(by_row, alone), "without the optional component");
    quern_query_destroy(by_row);
    quern_query_destroy(by_either);
}

Test(row_changes, what_a_loop_writes_after_a_change_inside_does_not_hide_that)
{
    quern_query *writer =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_write(number))}, 1);
    look(writer);
    must(quern_entity_mark_changed(world, entities[3], number));
    quern_query_iterator it = first_view(writer);
    cr_assert_eq(it.view.count, 1u);
    must(quern_entity_mark_changed(world, entities[5], number));
    cr_assert_not_null(quern_view_write(&it.view, 0));
    cr_assert_not(quern_query_next(&it));
    assert_valid(world);
    cr_assert(shows_only(writer, entities[5]), "and not what it wrote itself");
    must(quern_entity_mark_changed(world, entities[3], number));
    it = first_view(writer);
    must(quern_entity_mark_changed(world, entities[5], number));
    cr_assert(quern_view_mark_row(&it.view, 0, 0));
    cr_assert_not(quern_query_next(&it));
    assert_valid(world);
    cr_assert(shows_only(writer, entities[5]));
    quern_query_destroy(writer);
}

/* ---------------------------------------------------------------------------------------- commands */

/* Returns the recorder for what comes next. */
static quern_commands *flush(void)
{
    must(quern_world_flush(world));
    assert_valid(world);
    return quern_world_commands(world);
}

Test(row_changes, commands_change_the_rows_that_they_give_values)
{
    quern_query *query = query_changed(number);
    quern_commands *commands = quern_world_commands(world);
    uint64_t value = 5;
    look(query);
    must(quern_commands_set(commands, entities[1], number, &value));
    commands = flush();
    cr_assert(shows_only(query, entities[1]));
    must(quern_commands_set(commands, entities[2], number, &value));
    must(quern_commands_add(commands, entities[2], tag, NULL));
    must(quern_commands_add(commands, entities[3], tag, NULL));
    must(quern_commands_add(commands, entities[4], number, NULL));
    must(quern_commands_set(commands, entities[5], other, &value));
    commands = flush();
    cr_assert(shows_only(query, entities[2]));
    must(quern_commands_remove(commands, entities[6], number));
    must(quern_commands_add(commands, entities[6], number, NULL));
    must(quern_commands_destroy(commands, entities[7]));
    commands = flush();
    cr_assert(shows_only(query, entities[6]), "it has another value");
    quern_commands_create_with(commands, (quern_component[]){number, plain}, NULL, 2);
    commands = flush();
    cr_assert_eq(look(query), 1u);
    must(quern_commands_enable(commands, entities[10], number, false));
    must(quern_commands_enable(commands, entities[10], number, true));
    flush();
    cr_assert(shows_only(query, entities[10]));
    quern_query_destroy(query);
}

Test(row_changes, accumulated_values_change_their_rows)
{
    quern_component score;
    const quern_component_def def = {.name = "score",
                                     .size_bytes = 8,
                                     .alignment_bytes = 8,
                                     .fields = {{"score", QUERN_FIELD_U64, 0, .count = 1}},
                                     .row_changes = true};
    must(quern_component_register(world, &def, &score));
    for (uint32_t i = 0; i < 100; i++)
        must(quern_entity_add(world, entities[i], score, NULL));
    quern_query *query = query_changed(score);
    look(query);
    const uint64_t one = 1;
    must(quern_commands_accumulate(quern_world_commands(world), entities[50], score, &one, QUERN_SUM));
    must(quern_commands_accumulate(quern_world_commands(world), entities[50], score, &one, QUERN_SUM));
    flush();
    cr_assert(shows_only(query, entities[50]));
    quern_query_destroy(query);
}

Test(row_changes, instances_of_prefabs_are_new)
{
    quern_query *query = query_changed(number);
    quern_prefab prefab;
    must(quern_prefab_capture(world, entities[0], &prefab));
    look(query);
    must(quern_prefab_spawn_many(world, prefab, 30, NULL, NULL, NULL));
    cr_assert_eq(look(query), 30u);
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    flush();
    cr_assert_eq(look(query), 1u);
    quern_query_destroy(query);
}

/* ---------------------------------------------------------------------------------- parallel queries */

static _Atomic uint32_t called_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    (void)context;
    called_count += view->count;
}

static void mark_tenth(quern_context *context, const quern_view *view)
{
    (void)context;
    for (uint32_t i = 0; i < view->count; i++)
        if (quern_entity_index(view->entities[i]) % 10 == 0) quern_view_mark_row(view, 0, i);
}

Test(row_changes, parallel_queries_see_and_make_changes_by_row)
{
    quern_query *watcher = query_changed(number);
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    must(quern_query_parallel_for(watcher, NULL, count_rows, NULL));
    cr_assert_eq(called_count, (uint32_t)ROWS);
    must(quern_query_parallel_for(writer, NULL, mark_tenth, NULL));
    called_count = 0;
    must(quern_query_parallel_for(watcher, NULL, count_rows, NULL));
    cr_assert_eq(called_count, (uint32_t)ROWS / 10);
    called_count = 0;
    must(quern_query_parallel_for(watcher, NULL, count_rows, NULL));
    cr_assert_eq(called_count, 0u);
    quern_query_destroy(watcher);
    quern_query_destroy(writer);
}

/* ------------------------------------------------------------------------------- other choosy terms */

/* Of the changed rows, those whose parent has the component come, whether as runs or in one view. */
Test(row_changes, of_rows_that_have_changed_up_terms_leave_out_theirs)
{
    const quern_relation parent = quern_world_parent(world);
    quern_query *queries_up[2];
    for (uint32_t k = 0; k < 2; k++) {
        const quern_query_def def = {
            .terms = {quern_term_changed(quern_term_read(number)), quern_term_up(plain, parent)},
            .by_runs = k == 1};
        must(quern_query_create(world, &def, &queries_up[k]));
    }
    const quern_entity bare = setup_entity(world);
    for (uint32_t i = 10; i < 600; i++)
        must(quern_entity_relate(world, entities[i], parent, i % 2 == 0 ? entities[0] : bare));
    for (uint32_t k = 0; k < 2; k++)
        cr_assert_eq(look(queries_up[k]), 295u);
    for (uint32_t i = 20; i < 40; i++)
        must(quern_entity_mark_changed(world, entities[i], number));
    for (uint32_t k = 0; k < 2; k++) {
        cr_assert_eq(look(queries_up[k]), 10u);
        cr_assert_eq(look(queries_up[k]), 0u);
        quern_query_destroy(queries_up[k]);
    }
}

Test(row_changes, of_the_children_of_a_target_those_that_have_changed_come)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_term terms[] = {quern_term_changed(quern_term_write(number)),
                                quern_term_target(parent, entities[0])};
    for (uint32_t i = 10; i < 200; i++)
        must(quern_entity_relate(world, entities[i], parent, entities[i / 100]));
    quern_query *query = setup_query(world, terms, 2);
    cr_assert_eq(look(query), 90u);
    cr_assert_eq(look(query), 0u);
    for (uint32_t i = 90; i < 110; i++)
        must(quern_entity_mark_changed(world, entities[i], number));
    must(quern_query_parallel_for(query, NULL, mark_tenth, NULL));
    must(quern_entity_mark_changed(world, entities[50], number));
    cr_assert(shows_only(query, entities[50]), "the kernel was shown the others");
    cr_assert_eq(quern_query_count(query), 90u);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------ registration */

Test(row_changes, it_is_part_of_the_layout)
{
    quern_component component;
    const quern_component_def without = {.name = "other", .size_bytes = 8, .alignment_bytes = 8};
    assert_refused(world, QUERN_ERROR_LAYOUT_MISMATCH,
                   quern_component_register(world, &without, &component));
    cr_assert_not_null(strstr(quern_error_message(), "row_changes"));
    quern_component_def same = without;
    same.row_changes = true;
    must(quern_component_register(world, &same, &component));
    cr_assert(quern_component_equal(component, other));
}

Test(row_changes, the_hash_knows_nothing_of_it)
{
    const uint64_t hash = quern_world_hash(world);
    quern_query *query = query_changed(number);
    look(query);
    must(quern_entity_mark_changed(world, entities[0], number));
    cr_assert_eq(quern_world_hash(world), hash);
    quern_query_destroy(query);
}

Test(row_changes, trimming_gives_back_what_rows_that_went_had)
{
    quern_query *query = query_changed(number);
    look(query);
    const uint64_t before = stats_of_world(world).held_bytes;
    const quern_component set[] = {number, plain};
    must(quern_entity_create_many(world, set, NULL, 2, 100000, NULL));
    cr_assert_geq(stats_of_world(world).held_bytes, before + 100000 * (2 * 8 + 8));
    cr_assert_eq(look(query), 100000u);
    quern_query *few =
        setup_query(world, (quern_term[]){quern_term_with(plain), quern_term_without(other)}, 2);
    must(quern_entity_destroy_matching(few, NULL));
    must(quern_world_trim(world));
    assert_valid(world);
    cr_assert_leq(stats_of_world(world).held_bytes, before + (2u << 20), "a slab, and records");
    must(quern_entity_mark_changed(world, entities[4], number));
    cr_assert(shows_only(query, entities[4]));
    must(quern_entity_create_many(world, set, NULL, 2, 1000, NULL));
    cr_assert_eq(look(query), 1000u);
    must(quern_world_remove_empty_archetypes(world, NULL));
    assert_valid(world);
    quern_query_destroy(few);
    quern_query_destroy(query);
}

static quern__archetype *archetype_of(quern_entity entity)
{
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    return quern__storage_archetype_of(&world->storage, record);
}

Test(row_changes, validation_finds_a_row_that_is_newer_than_its_chunk)
{
    quern_query *query = query_changed(number);
    assert_valid(world);
    const quern__row_versions *versions = archetype_of(entities[0])->row_versions;
    uint64_t *first = quern__row_versions_of(versions, 0), kept = *first;
    *first = world->storage.clock + 1;
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *first = kept;
    assert_valid(world);
    quern_query_destroy(query);
}

Test(row_changes, without_filters_nothing_is_kept)
{
    cr_assert_null(archetype_of(entities[0])->row_versions);
    quern_query *query = query_changed(plain);
    cr_assert_not_null(archetype_of(entities[0])->row_versions, "its chunks have versions, so its rows do");
    setup_entity_with(world, &tag, 1);
    cr_assert_eq(look(query), (uint32_t)ROWS);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------ random programs */

enum { QUERIES = 6, LANES = 4 };

/* By number in the list; the model's time goes on with each act and each look. */
static struct {
    bool is_alive, has[LANES], has_tag, is_off[LANES]; /* number, other, flag, plain */
    uint64_t changed[LANES];
} model[ROWS];
static uint32_t place_of[2 * ROWS]; /* in the list, by index of the handle */
static uint64_t now;
static quern_query *queries[QUERIES];
static uint64_t seen[QUERIES];
static quern_component lanes[LANES];
static quern_getter *getter;

/* What queries ask for: a filter, or just to be there, by lane. */
static const struct {
    bool wants[LANES], filters[LANES], is_optional[LANES], is_either, no_tag, by_runs;
} asks[QUERIES] = {
    {.wants = {true}, .filters = {true}},
    {.wants = {true, false},
     .filters = {true, true},
     .is_optional = {false, true},
     .is_either = true,
     .by_runs = true},
    {.wants = {false, false, true}, .filters = {false, false, true}},
    {.wants = {false, true, true}, .filters = {false, true, false}, .by_runs = true},
    {.wants = {true, true}, .filters = {true, true}, .no_tag = true},
    {.wants = {false, true}, .filters = {false, true, true}, .is_optional = {false, false, true}},
};

static void open_queries(void)
{
    lanes[0] = number;
    lanes[1] = other;
    lanes[2] = flag;
    lanes[3] = plain;
    for (uint32_t q = 0; q < QUERIES; q++) {
        quern_query_def def = {.by_runs = asks[q].by_runs};
        uint32_t count = 0;
        for (uint32_t k = 0; k < LANES; k++) {
            if (!asks[q].wants[k] && !asks[q].is_optional[k]) continue;
            quern_term term = asks[q].is_optional[k] ? quern_term_optional(lanes[k], QUERN_NO_ACCESS)
                                                     : quern_term_with(lanes[k]);
            if (asks[q].is_either && !asks[q].is_optional[k]) term = quern_term_either(term);
            def.terms[count++] = asks[q].filters[k] ? quern_term_changed(term) : term;
        }
        if (asks[q].no_tag) def.terms[count++] = quern_term_without(tag);
        must(quern_query_create(world, &def, &queries[q]));
        seen[q] = 0;
    }
    const quern_getter_def def = {.component = number};
    must(quern_getter_create(world, &def, &getter));
}

static void close_queries(void)
{
    for (uint32_t q = 0; q < QUERIES; q++)
        quern_query_destroy(queries[q]);
    quern_getter_destroy(getter);
}

static bool is_to_be_shown(uint32_t q, uint32_t i)
{
    bool is_new = false;
    if (!model[i].is_alive || (asks[q].no_tag && model[i].has_tag)) return false;
    for (uint32_t k = 0; k < LANES; k++) {
        if (asks[q].wants[k] && !model[i].has[k]) return false;
        if (asks[q].wants[k] && !asks[q].is_either && model[i].is_off[k]) return false;
        is_new |= asks[q].filters[k] && model[i].has[k] && model[i].changed[k] > seen[q];
    }
    return is_new;
}

/* Shows what is new, each once, and nothing else. */
static uint32_t check_look(uint32_t q)
{
    static quern_entity shown[MAX_ROWS];
    static bool is_shown[ROWS];
    const uint32_t count = list_shown(queries[q], shown);
    memset(is_shown, 0, sizeof is_shown);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = place_of[quern_entity_index(shown[i])];
        cr_assert_eq(shown[i].bits, entities[at].bits);
        cr_assert_not(is_shown[at]);
        is_shown[at] = true;
    }
    for (uint32_t i = 0; i < ROWS; i++)
        cr_assert_eq(is_shown[i], is_to_be_shown(q, i), "query %u, entity %u", q, i);
    seen[q] = now++;
    return count;
}

static void change_lane(uint32_t i, uint32_t k)
{
    model[i].changed[k] = now;
}

static void create_one(uint32_t i)
{
    entities[i] = setup_entity_with(world, (quern_component[]){number, other}, 2);
    place_of[quern_entity_index(entities[i])] = i;
    memset((void *)&model[i], 0, sizeof model[i]);
    model[i].is_alive = model[i].has[0] = model[i].has[1] = true;
    change_lane(i, 0);
    change_lane(i, 1);
}

/* Adds a component or takes it out, by a call or by a command. */
static void switch_lane(random_source *random, uint32_t i, uint32_t k)
{
    const bool adds = !model[i].has[k];
    if (random_chance(random, 50)) {
        must(adds ? quern_entity_add(world, entities[i], lanes[k], NULL)
                  : quern_entity_remove(world, entities[i], lanes[k]));
    } else {
        quern_commands *commands = quern_world_commands(world);
        must(adds ? quern_commands_add(commands, entities[i], lanes[k], NULL)
                  : quern_commands_remove(commands, entities[i], lanes[k]));
        must(quern_world_flush(world));
    }
    model[i].has[k] = adds;
    model[i].is_off[k] = false;
    if (adds) change_lane(i, k);
}

static void set_lane(random_source *random, uint32_t i, uint32_t k)
{
    const uint64_t value = random_next(random);
    if (random_chance(random, 30)) {
        must(quern_commands_set(quern_world_commands(world), entities[i], lanes[k], &value));
        must(quern_world_flush(world));
        if (!model[i].has[k]) model[i].is_off[k] = false;
        model[i].has[k] = true;
    } else if (!model[i].has[k]) {
        return;
    } else if (random_chance(random, 50)) {
        must(quern_entity_set(world, entities[i], lanes[k], &value));
    } else if (k == 0 && random_chance(random, 50)) {
        cr_assert_not_null(quern_getter_get_write(getter, entities[i]));
    } else {
        must(quern_entity_mark_changed(world, entities[i], lanes[k]));
    }
    change_lane(i, k);
}

static void enable_lane(random_source *random, uint32_t i, uint32_t k)
{
    if (!model[i].has[k]) return;
    model[i].is_off[k] = random_chance(random, 60);
    if (random_chance(random, 50)) {
        must(quern_entity_enable(world, entities[i], lanes[k], !model[i].is_off[k]));
    } else {
        must(
            quern_commands_enable(quern_world_commands(world), entities[i], lanes[k], !model[i].is_off[k]));
        must(quern_world_flush(world));
    }
    change_lane(i, k);
}

static void switch_tag(uint32_t i)
{
    must(model[i].has_tag ? quern_entity_remove(world, entities[i], tag)
                          : quern_entity_add(world, entities[i], tag, NULL));
    model[i].has_tag = !model[i].has_tag;
}

/* One view of many is written, as a whole or by rows. */
static void write_view(random_source *random)
{
    const bool by_runs = random_chance(random, 50), by_rows = random_chance(random, 50);
    const quern_query_def def = {.terms = {quern_term_write(number)}, .by_runs = by_runs};
    quern_query *query;
    must(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        if (!random_chance(random, 3)) continue;
        cr_assert_not_null(by_rows ? quern_view_write_rows(&it.view, 0) : quern_view_write(&it.view, 0));
        quern_run run = {0};
        while (quern_view_next_run(&it.view, &run))
            for (uint32_t i = run.first; i < run.first + run.count; i++) {
                if (by_rows && !random_chance(random, 10)) continue;
                if (by_rows) cr_assert(quern_view_mark_row(&it.view, 0, i));
                change_lane(place_of[quern_entity_index(it.view.entities[i])], 0);
            }
    }
    must(it.result);
    quern_query_destroy(query);
}

static void act(random_source *random)
{
    const uint32_t i = random_below(random, ROWS), k = random_below(random, 3);
    now++;
    if (!model[i].is_alive) {
        create_one(i);
        return;
    }
    switch (random_below(random, 10)) {
    case 0:
        must(quern_entity_destroy(world, entities[i]));
        model[i].is_alive = false;
        break;
    case 1:
    case 2:
        switch_lane(random, i, k);
        break;
    case 3:
    case 4:
        enable_lane(random, i, k % 2 * 2);
        break;
    case 5:
        switch_tag(i);
        break;
    case 6:
        if (random_chance(random, 20)) write_view(random);
        break;
    default:
        set_lane(random, i, k % 2);
        break;
    }
}

static void play(uint64_t seed)
{
    random_source random = {seed};
    now = 1;
    open_queries();
    for (uint32_t i = 0; i < ROWS; i++) {
        memset((void *)&model[i], 0, sizeof model[i]);
        model[i].is_alive = model[i].has[0] = model[i].has[1] = model[i].has[3] = true;
        place_of[quern_entity_index(entities[i])] = i;
        for (uint32_t k = 0; k < LANES; k++)
            change_lane(i, k);
    }
    uint64_t shown = 0, looks = 0;
    for (uint32_t round = 0; round < 60; round++) {
        const uint32_t count = random_below(&random, 40);
        for (uint32_t k = 0; k < count; k++)
            act(&random);
        assert_valid(world);
        for (uint32_t q = 0; q < QUERIES; q++)
            if (random_chance(&random, 60)) {
                shown += check_look(q);
                looks++;
            }
    }
    cr_assert_lt(shown, looks * ROWS / 4, "most of the world was shown each time");
    close_queries();
}

Test(row_changes, what_has_changed_is_shown_and_nothing_else)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        close_world();
        open_world();
        play(seed);
    }
}

/* ----------------------------------------------------------------------------------------- memory */

/* Filters and rows come under memory that fails at each request in turn. */
static bool survives(failing_allocator *memory, uint64_t call)
{
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + call);
    const quern_query_def def = {
        .terms = {quern_term_changed(quern_term_read(number)), quern_term_changed(quern_term_with(flag))}};
    quern_query *query = NULL;
    const quern_component set[] = {number, flag};
    const quern_result created = quern_query_create(world, &def, &query);
    const quern_result added = quern_entity_create_many(world, set, NULL, 2, MAX_ROWS - 10, NULL);
    const quern_result trimmed = quern_world_trim(world);
    const bool reached = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(trimmed, QUERN_OK);
    assert_valid(world);
    if (created == QUERN_OK) {
        cr_assert_eq(look(query), added == QUERN_OK ? MAX_ROWS : 10u);
        quern_query_destroy(query);
    }
    return reached;
}

Test(row_changes, missing_memory_is_told_and_nothing_else_is_lost)
{
    quern_world_destroy(world);
    uint64_t call = 1;
    for (bool goes_on = true; goes_on; call++) {
        failing_allocator *memory = failing_allocator_create();
        quern_world_def def = {.allocator = failing_allocator_interface(memory)};
        must(quern_world_create(&def, &world));
        register_components();
        must(quern_entity_create_many(world, (quern_component[]){number, flag}, NULL, 2, 10, NULL));
        goes_on = survives(memory, call);
        quern_world_destroy(world);
        failing_allocator_close(memory);
    }
    cr_assert_gt(call, 8u);
    world = setup_world();
}
