/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/core/query/row_changes_scene.h"

/* Change filters on components with row_changes: a query visits exactly the changed rows. */

TestSuite(row_changes, .init = open_world, .fini = close_world);

static quern_query *query_changed(quern_component component)
{
    quern_term term = quern_term_changed(quern_term_with(component));
    return setup_query(world, &term, 1);
}

/* Returns whether the query visits only this entity. */
static bool shows_only(quern_query *query, quern_entity entity)
{
    static quern_entity shown[MAX_ROWS];
    return list_shown(query, shown) == 1 && quern_entity_equal(shown[0], entity);
}

Test(row_changes, first_iteration_visits_all_rows_and_the_next_none)
{
    quern_query *query = query_changed(number);
    cr_assert_eq(look(query), ROWS);
    cr_assert_eq(look(query), 0u);
    cr_assert_eq(quern_query_count(query), ROWS, "counting pays no heed to filters");
    quern_query_destroy(query);
    query = query_changed(number);
    cr_assert_eq(look(query), ROWS, "a new filter has seen nothing, whoever looked before");
}

Test(row_changes, setting_a_value_marks_only_its_row_as_changed)
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
}

Test(row_changes, changed_rows_form_ranges_or_one_view_per_chunk)
{
    const quern_query_def def = {.terms = {quern_term_changed(quern_term_read(number))},
                                 .whole_chunks = true};
    quern_query *query = query_changed(number), *whole_chunks;
    must(quern_query_create(world, &def, &whole_chunks));
    look(query);
    look(whole_chunks);
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
    it = quern_query_iterate(whole_chunks);
    cr_assert(quern_query_next(&it));
    cr_assert_gt(it.view.count, 200u);
    quern_row_range run = {0};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(quern_view_next_range(&it.view, &run));
        cr_assert_eq(run.first, firsts[i]);
        cr_assert_eq(run.count, counts[i]);
    }
    cr_assert_not(quern_view_next_range(&it.view, &run));
    cr_assert_not(quern_query_next(&it));
}

Test(row_changes, created_entities_are_changed_and_moved_ones_are_not)
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
}

/* Returns an iterator at the first view of the query, after requesting write access to its column. */
static quern_query_iterator first_view(quern_query *query)
{
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    return it;
}

Test(row_changes, write_access_to_a_column_changes_all_rows_of_the_view)
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
}

Test(row_changes, write_access_changes_only_the_selected_rows)
{
    const quern_query_def def = {.terms = {quern_term_write(number)}, .whole_chunks = true};
    quern_query *watcher = query_changed(other), *by_row, *whole_chunks;
    quern_query *disabled =
        setup_query(world, (quern_term[]){quern_term_if_disabled(quern_term_write(number))}, 1);
    quern_query *either = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_with(number)))}, 1);
    by_row = setup_query(world, def.terms, 1);
    must(quern_query_create(world, &def, &whole_chunks));
    for (uint32_t i = 0; i < ROWS; i += 3)
        must(quern_entity_set_component_enabled(world, entities[i], number, false));
    quern_query *writers[] = {by_row, whole_chunks, disabled};
    look(watcher);
    for (uint32_t k = 0; k < 3; k++) {
        look(either);
        for (quern_query_iterator it = quern_query_iterate(writers[k]); quern_query_next(&it);)
            cr_assert_not_null(quern_view_write(&it.view, 0));
        cr_assert_eq(look(either), writers[k] == disabled ? (ROWS + 2u) / 3 : (uint32_t)ROWS / 3 * 2);
    }
    cr_assert_eq(look(watcher), 0u);
}

Test(row_changes, single_rows_can_be_marked_as_changed)
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
}

Test(row_changes, row_without_the_component_cannot_be_marked)
{
    const quern_term terms[] = {quern_term_with(tag), quern_term_optional(number, QUERN_ACCESS_WRITE),
                                quern_term_optional(flag, QUERN_ACCESS_WRITE)};
    setup_entity_with(world, (quern_component[]){tag, flag}, 2);
    quern_query *writer = setup_query(world, terms, 3), *watcher = query_changed(flag);
    look(watcher);
    quern_query_iterator it = first_view(writer);
    cr_assert_null(quern_view_write_rows(&it.view, 1));
    assert_refused_value(world, quern_view_mark_row(&it.view, 1, 0));
    cr_assert(quern_view_mark_row(&it.view, 2, 0), "a tag that somebody writes");
    cr_assert_eq(look(watcher), 1u);
}

Test(row_changes, writable_pointers_mark_their_rows_as_changed)
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
}

Test(row_changes, enabling_or_disabling_is_a_change)
{
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_with(number)))}, 1);
    quern_query *enabled = query_changed(number), *by_chunk = query_changed(plain);
    look(query);
    look(enabled);
    look(by_chunk);
    must(quern_entity_set_component_enabled(world, entities[3], number, false));
    cr_assert(shows_only(query, entities[3]));
    cr_assert_eq(look(enabled), 0u);
    must(quern_entity_set_component_enabled(world, entities[3], number, true));
    cr_assert(shows_only(enabled, entities[3]));
    cr_assert(shows_only(query, entities[3]));
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_set_enabled(&it.view, 0, 8, false));
    cr_assert(shows_only(query, entities[8]));
    cr_assert_eq(look(by_chunk), 0u);
}

/* Enabling an enabled component counts as a change with every call; setting a tag again does not. */
Test(row_changes, enabling_an_enabled_component_is_a_change)
{
    quern_query *query = query_changed(number), *flags = query_changed(flag);
    must(quern_entity_add(world, entities[5], flag, NULL));
    look(query);
    look(flags);
    must(quern_entity_set_component_enabled(world, entities[3], number, true));
    cr_assert(shows_only(query, entities[3]));
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set_component_enabled(commands, entities[6], number, true));
    must(quern_world_flush(world));
    cr_assert(shows_only(query, entities[6]));
    must(quern_entity_set_component_enabled_many(world, &entities[9], 1, number, true));
    cr_assert(shows_only(query, entities[9]));
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_set_enabled(&it.view, 0, 8, true));
    cr_assert(shows_only(query, it.view.entities[8]), "one row, not all of the view");
    must(quern_entity_set_component_enabled(world, entities[5], flag, true));
    cr_assert(shows_only(flags, entities[5]));
    must(quern_commands_add(quern_world_commands(world), entities[5], flag, NULL));
    must(quern_commands_set(quern_world_commands(world), entities[5], flag, NULL));
    must(quern_world_flush(world));
    cr_assert_eq(look(flags), 0u, "the tag is there already");
}

Test(row_changes, tag_changes_when_it_is_added_enabled_or_disabled)
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
    must(quern_entity_set_component_enabled(world, entities[20], flag, false));
    cr_assert_eq(look(query), 0u, "it has changed, and is left out");
    cr_assert(shows_only(either, entities[20]));
}

Test(row_changes, enabling_a_tag_marks_no_other_component_of_the_chunk)
{
    quern_query *by_chunk = query_changed(plain);
    must(quern_entity_add(world, entities[0], flag, NULL));
    look(by_chunk);
    must(quern_entity_set_component_enabled(world, entities[0], flag, false));
    cr_assert_eq(look(by_chunk), 0u);
    quern_query *writer = setup_query(
        world,
        (quern_term[]){quern_term_either(quern_term_make(flag, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE))}, 1);
    quern_query_iterator it = first_view(writer);
    cr_assert(quern_view_set_enabled(&it.view, 0, 0, true));
    cr_assert_eq(look(by_chunk), 0u, "a system with this filter may run at the same time");
}

Test(row_changes, several_filters_select_rows_that_pass_any_of_them)
{
    const quern_term both[] = {quern_term_changed(quern_term_read(number)),
                               quern_term_changed(quern_term_optional(other, QUERN_ACCESS_READ))};
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
    for (quern_query_iterator rest = quern_query_iterate(by_row); quern_query_next(&rest);)
        ;
    must(quern_entity_mark_changed(world, alone, number));
    cr_assert(shows_only(by_row, alone), "without the optional component");
}

Test(row_changes, write_of_a_loop_does_not_hide_a_change_made_inside_it)
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
}

/* ---------------------------------------------------------------------------------------- commands */

/* Runs a sync point. Returns the recorder for the next commands. */
static quern_commands *flush(void)
{
    must(quern_world_flush(world));
    assert_valid(world);
    return quern_world_commands(world);
}

Test(row_changes, commands_mark_rows_to_which_they_write_values)
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
    record_entity_with(commands, (quern_component[]){number, plain}, NULL, 2);
    commands = flush();
    cr_assert_eq(look(query), 1u);
    must(quern_commands_set_component_enabled(commands, entities[10], number, false));
    must(quern_commands_set_component_enabled(commands, entities[10], number, true));
    flush();
    cr_assert(shows_only(query, entities[10]));
}

Test(row_changes, accumulated_values_mark_their_rows_as_changed)
{
    quern_component score =
        make_component(world, .name = "score", .size_bytes = 8, .alignment_bytes = 8,
                       .fields = {{"score", QUERN_FIELD_U64, 0, .count = 1}}, .row_changes = true);
    for (uint32_t i = 0; i < 100; i++)
        must(quern_entity_add(world, entities[i], score, NULL));
    quern_query *query = query_changed(score);
    look(query);
    const uint64_t one = 1;
    must(quern_commands_accumulate(quern_world_commands(world), entities[50], score, &one, QUERN_SUM));
    must(quern_commands_accumulate(quern_world_commands(world), entities[50], score, &one, QUERN_SUM));
    flush();
    cr_assert(shows_only(query, entities[50]));
}

Test(row_changes, prefab_instances_are_changed_rows)
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
}

/* ---------------------------------------------------------------------------------- parallel queries */

static _Atomic uint32_t called_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    called_count += view->count;
}

static void mark_tenth(quern_context *context, const quern_view *view)
{
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
}

/* ---------------------------------------------------------------------------- other selecting terms */

/* Only changed rows whose parent has the component are visited, as ranges or in one view. */
Test(row_changes, up_terms_select_among_changed_rows)
{
    const quern_relation parent = quern_world_parent(world);
    quern_query *queries_up[2];
    for (uint32_t k = 0; k < 2; k++) {
        queries_up[k] = make_query(
            world, .terms = {quern_term_changed(quern_term_read(number)), quern_term_up(plain, parent)},
            .whole_chunks = k == 1);
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

Test(row_changes, target_terms_select_among_changed_rows)
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
}

/* ------------------------------------------------------------------------------------ registration */

Test(row_changes, row_changes_flag_is_part_of_the_component_layout)
{
    quern_component component;
    const quern_component_def without = {.name = "other", .size_bytes = 8, .alignment_bytes = 8};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &without, &component));
    cr_assert_not_null(strstr(quern_error_message(), "row_changes"));
    quern_component_def same = without;
    same.row_changes = true;
    must(quern_component_register(world, &same, &component));
    cr_assert(quern_component_equal(component, other));
}

Test(row_changes, world_hash_ignores_row_versions)
{
    const uint64_t hash = quern_world_hash(world);
    quern_query *query = query_changed(number);
    look(query);
    must(quern_entity_mark_changed(world, entities[0], number));
    cr_assert_eq(quern_world_hash(world), hash);
}

Test(row_changes, trim_releases_row_versions_of_removed_rows)
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
}

static quern__archetype *archetype_of(quern_entity entity)
{
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    return quern__storage_archetype_of(&world->storage, record);
}

Test(row_changes, validation_detects_a_row_newer_than_its_chunk)
{
    (void)query_changed(number);
    assert_valid(world);
    const quern__row_versions *versions = archetype_of(entities[0])->row_versions;
    uint64_t *first = quern__row_versions_lane(versions, 0, 0), kept = *first;
    *first = world->storage.clock + 1;
    *quern__row_group(first, 0) = *first;
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *first = kept;
    *quern__row_group(first, 0) = kept;
    assert_valid(world);
}

Test(row_changes, no_row_versions_exist_without_filters)
{
    cr_assert_null(archetype_of(entities[0])->row_versions);
    quern_query *query = query_changed(plain);
    cr_assert_not_null(archetype_of(entities[0])->row_versions, "its chunks have versions, so its rows do");
    setup_entity_with(world, &tag, 1);
    cr_assert_eq(look(query), (uint32_t)ROWS);
}
